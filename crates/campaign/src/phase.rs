//! One phase: measuring threads, and the loads that run at the same time.

use std::time::{Duration, Instant};

use blame::{MeasuredThread, RemedyFacts, Timerlat, Watch};
use loads::Running;
use machine::{CpuList, Root, SettingsWatch, Shield};
use probes::{
    guard::Heartbeat,
    noise::Spin,
    probe_threads::{ProbeThreads, ThreadInfo},
    timer::{Core, End, Settings, StopOn, Timer, TimerError},
};
use record::{EndedBy, Phase, Series, TIMERLAT_THREAD};
use sys::{
    clock::Clock,
    counter::Counter,
    sched::{self, Policy},
    signal::{ending_signal, is_ended_by_key, termination_requests},
};

use crate::{
    error::RunError,
    on_spike::Actor,
    plan::{Length, PhasePlan, Plan},
    probe::{PhaseContext, with_shield},
    shielded::start_loads,
    supervisor::{Supervisor, ahead_ns},
};

/// Time between preparing the threads and their first deadline, ns.
const LEAD_NS: i64 = 2_000_000;
/// Time between two collections of the samples.
const TICK: Duration = Duration::from_millis(40);
/// Threads without delays end within this time after the last deadline.
const LINGER: Duration = Duration::from_millis(2);
/// Threads that do not end within this time after a stop request are left running.
const PATIENCE: Duration = Duration::from_millis(300);

/// The parts of a run that all its phases share.
pub struct RunContext<'a> {
    pub cpus: &'a CpuList,
    pub root: &'a Root,
    pub counter: Counter,
    pub stop_on: Option<&'a StopOn>,
    pub shield: Option<&'a Shield>,
    pub settings: &'a [SettingsWatch],
    pub spikes_kept: usize,
}

/// A running phase.
pub struct PhaseRun<'a> {
    pub timers: Vec<Timer>,
    pub began: Instant,
    /// The other measuring threads of the probe, and the work of the timers.
    pub probe_threads: Option<Box<dyn ProbeThreads>>,
    /// The kernel's timerlat tracer.
    timerlat: Option<&'a mut Timerlat>,
    /// Acts at spikes.
    on_spike: Option<&'a mut Actor>,
    loads: Vec<Running>,
    pub supervisor: Supervisor,
    /// The reason in words why the other end or the interface is gone, after the phase has ended.
    pub gone: Option<String>,
}

/// The reasons why a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    AsPlanned,
    BySignal,
    /// The user pressed a key of the live view.
    ByKey,
    ByGuard,
    ByStopOn,
    /// A thread left its CPU, its clock or sound card failed, or the other end or the interface is gone.
    ByFailure,
}

impl Ended {
    /// The reason why the phase was interrupted; `None` if it ended as planned.
    pub fn interruption(self) -> Option<EndedBy> {
        match self {
            Self::AsPlanned => None,
            Self::BySignal => Some(EndedBy::Signal),
            Self::ByKey => Some(EndedBy::Key),
            Self::ByGuard => Some(EndedBy::Guard),
            Self::ByStopOn => Some(EndedBy::Spike),
            Self::ByFailure => Some(EndedBy::Failure),
        }
    }
}

impl<'a> PhaseRun<'a> {
    /// Starts the loads, and creates the threads, which wait for the start.
    pub fn prepare(
        plan: &Plan,
        phase: &PhasePlan,
        context: &RunContext<'_>,
        timerlat: Option<&'a mut Timerlat>,
        on_spike: Option<&'a mut Actor>,
    ) -> Result<Self, RunError> {
        let &RunContext { cpus, root, counter, stop_on, shield, settings, spikes_kept } = context;
        let load_cpus = plan.load_cpus.as_ref().unwrap_or(cpus);
        let loads = start_loads(&plan.executable, &phase.loads, load_cpus, shield)?;
        let mut probe_threads = plan.probe.definition().prepare(&PhaseContext {
            root,
            shield,
            policy: plan.policy,
            clock: plan.clock,
            core: plan.core,
            period_ns: phase.period_ns,
            threshold_ns: plan.threshold_at(phase.period_ns),
            spikes_kept,
            record_path: plan.record_path.as_deref(),
        })?;
        let heartbeat = Heartbeat::start().map_err(TimerError::Spawn)?;
        let timing = plan.probe.definition().timing(phase.period_ns);
        let spin = timing.noise_loop_ns.map(|runtime_ns| Spin::new(counter, runtime_ns));
        let timers = threads(plan, phase, cpus, stop_on, spikes_kept)
            .into_iter()
            .map(|settings| Settings { spin, ..settings })
            .enumerate()
            .map(|(index, settings)| {
                let work = probe_threads.as_mut().and_then(|probe_threads| probe_threads.work(index));
                let prepare = || Timer::prepare_with(work, &settings, heartbeat.clone());
                Ok::<_, RunError>(with_shield(shield, settings.cpu, prepare)??)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let supervisor = Supervisor::start(root, &thread_infos(&timers, probe_threads.as_deref()), plan.clock)
            .with_loads(&loads)
            .with_shield(shield.map(Shield::watch))
            .with_settings(settings.to_vec())
            .with_heartbeat(heartbeat);
        Ok(Self { timers, began: Instant::now(), probe_threads, timerlat, on_spike, loads, supervisor, gone: None })
    }

    /// The measuring threads of this process.
    pub fn members(&self) -> Vec<ThreadInfo<'_>> {
        thread_infos(&self.timers, self.probe_threads.as_deref())
    }

    /// The series so far of the threads of this process.
    pub fn series(&self, phase: &PhasePlan) -> Vec<Series> {
        let of_timer = |(index, timer): (usize, &Timer)| {
            let mut series = timer.series(&phase.name);
            self.probe_threads.iter().for_each(|probe_threads| probe_threads.add_to(index, &mut series));
            series.granted.cpus = timer.grant().cpus.iter().copied().collect::<CpuList>().to_string();
            series
        };
        let of_probe = self.probe_threads.iter().flat_map(|probe_threads| probe_threads.series(&phase.name));
        self.timers.iter().enumerate().map(of_timer).chain(of_probe).collect()
    }

    /// Thread ids of all measuring threads, including those of the timerlat tracer.
    pub fn thread_ids(&self) -> Vec<u32> {
        let timers = self.timers.iter().map(|timer| timer.grant().thread_id);
        let timerlat = self.timerlat.iter().flat_map(|timerlat| timerlat.measured_threads());
        timers.chain(timerlat.map(|thread| thread.pid)).collect()
    }

    /// The series so far of the timerlat tracer, on the clock of the plan.
    pub fn timerlat_series(&self, plan: &Plan, phase: &PhasePlan) -> Vec<Series> {
        let Some(timerlat) = &self.timerlat else { return Vec::new() };
        let ahead_ns = ahead_ns(plan.clock);
        let mut all = timerlat.series(&phase.name);
        all.iter_mut().for_each(|series| series.first_deadline_ns = series.first_deadline_ns.saturating_add(ahead_ns));
        all
    }

    /// Measures until the phase ends, and lets `watch` explain its spikes. Calls `tick` about 25 times a second; the phase
    /// ends as planned if it returns true.
    pub fn measure(
        &mut self,
        plan: &Plan,
        phase: &PhasePlan,
        watch: &mut Watch,
        mut tick: impl FnMut(&Self, &Watch) -> bool,
    ) -> Ended {
        let first_ns = plan.clock.now_ns() + LEAD_NS;
        let mut end_ns = match phase.length {
            Length::Duration(duration_ns) => first_ns.saturating_add_unsigned(duration_ns),
            Length::Samples(_) | Length::UntilStopped => i64::MAX / 2,
        };
        // This thread must read the trace before the kernel overwrites it, even with loads on every CPU. The loads are
        // already started and keep their own niceness. Without the right to lower it, the niceness stays.
        let niceness = sched::set_niceness(-20);
        self.began = Instant::now();
        if let Some(timerlat) = &mut self.timerlat {
            timerlat.begin(plan.threshold_at(phase.period_ns));
        }
        for (index, timer) in self.timers.iter_mut().enumerate() {
            timer.start(first_ns.saturating_add_unsigned(shift_ns(plan, phase, index)), end_ns);
        }
        let mut decided = false;
        let mut awaits_first = self.awaits_first();
        loop {
            // Sleeps at most until the end, because the delays of many short phases add up.
            let left = Duration::from_nanos(u64::try_from(end_ns - plan.clock.now_ns()).unwrap_or(0));
            std::thread::sleep((left + LINGER).min(TICK));
            self.collect(plan, phase, watch);
            let left = match (awaits_first && !self.awaits_first(), phase.length) {
                (true, Length::Duration(duration_ns)) => {
                    awaits_first = false;
                    self.began = Instant::now();
                    end_ns = plan.clock.now_ns().saturating_add_unsigned(duration_ns);
                    Duration::from_nanos(duration_ns)
                }
                _ => left,
            };
            if let Some(ended) = self.has_ended(left.is_zero()).or(decided.then_some(Ended::AsPlanned)) {
                // Before the threads end, because nothing can be read of them afterwards.
                self.supervisor.check(&self.loads);
                self.stop_threads();
                self.collect(plan, phase, watch);
                self.supervisor.check_end(&thread_infos(&self.timers, self.probe_threads.as_deref()));
                let _ = niceness.map(sched::set_niceness);
                self.gone = self.probe_threads.as_ref().and_then(|probe_threads| probe_threads.gone());
                // A listener that the user ends has no planned length: it ends with its talker.
                let too_early =
                    self.gone.is_some() && !(self.timers.is_empty() && phase.length == Length::UntilStopped);
                return if too_early && ended == Ended::AsPlanned { Ended::ByFailure } else { ended };
            }
            decided = tick(self, watch);
        }
    }

    /// True if the duration of the phase has not begun: threads of the probe, and no timers, wait for the first frame.
    fn awaits_first(&self) -> bool {
        self.timers.is_empty() && self.probe_threads.as_ref().is_some_and(|probe_threads| probe_threads.awaits_first())
    }

    /// Stops all threads. A timer that does not end in time is late, and is counted as such.
    fn stop_threads(&mut self) {
        self.timers.iter().for_each(Timer::stop);
        let until = Instant::now() + PATIENCE;
        for (index, timer) in self.timers.iter_mut().enumerate() {
            timer.wait_for_end(until.saturating_duration_since(Instant::now()));
            let overdue = timer.count_overdue();
            if let (Some(overdue), Some(probe_threads)) = (overdue, &mut self.probe_threads) {
                probe_threads.count_overdue(index, overdue);
            }
        }
        if let Some(probe_threads) = &mut self.probe_threads {
            probe_threads.finish();
        }
        // A thread that answers an outside judge ends only after it.
        let until = Instant::now() + PATIENCE;
        for timer in &mut self.timers {
            timer.wait_for_end(until.saturating_duration_since(Instant::now()));
        }
    }

    /// The reason why the phase has ended; `None` if it goes on. A phase without timers ends with `time_is_up`.
    fn has_ended(&self, time_is_up: bool) -> Option<Ended> {
        let any = |end| self.timers.iter().any(|timer| timer.end() == Some(end));
        if termination_requests() > 0 {
            Some(match ending_signal() {
                Some(_) => Ended::BySignal,
                None if is_ended_by_key() => Ended::ByKey,
                // The other end is gone.
                None => Ended::ByFailure,
            })
        } else if any(End::Starved) {
            Some(Ended::ByGuard)
        } else if any(End::StoppedOn) || self.on_spike.as_ref().is_some_and(|actor| actor.stops()) {
            Some(Ended::ByStopOn)
        } else {
            let of_probe = || self.probe_threads.iter().all(|probe_threads| probe_threads.has_ended());
            let ended = self.timers.iter().all(Timer::has_ended);
            let ended = if self.timers.is_empty() { time_is_up || of_probe() } else { ended };
            let failed = any(End::LeftCpu) || any(End::ClockFailed) || any(End::PacerFailed);
            ended.then_some(if failed { Ended::ByFailure } else { Ended::AsPlanned })
        }
    }

    /// Collects the samples of the threads, and lets `watch` explain new spikes.
    fn collect(&mut self, plan: &Plan, phase: &PhasePlan, watch: &mut Watch) {
        let has_quota = self.supervisor.has_quota();
        let kernels = self.timerlat.iter().flat_map(|timerlat| timerlat.measured_threads());
        let timers = self.timers.iter().filter_map(|timer| measured_thread(plan, timer, has_quota));
        let threads: Vec<MeasuredThread> = timers.chain(kernels).collect();
        watch.tick(&threads, Clock::Monotonic.now_ns().unsigned_abs());
        let ahead_ns = ahead_ns(plan.clock);
        self.supervisor.check_if_due(&self.loads);
        self.timers.iter_mut().for_each(Timer::collect);
        if let Some(probe_threads) = &mut self.probe_threads {
            probe_threads.collect();
        }
        if let Some(timerlat) = &mut self.timerlat {
            timerlat.collect();
        }
        watch.share_round(self.threads_with_fresh_spikes());
        for timer in &mut self.timers {
            if let Some(thread) = measured_thread(plan, timer, has_quota) {
                let first_ns = u64::try_from(timer.first_deadline_ns() - ahead_ns).unwrap_or(0);
                // It is 0 until the thread has started.
                if first_ns > 0 && has_cause_bound(plan, timer) {
                    watch.follow(&thread, first_ns, timer.settings().period_ns);
                }
                watch.explain_spikes(&thread, &phase.name, first_ns, timer.fresh_spikes());
            }
            if let Some(actor) = &mut self.on_spike {
                actor.act(&timer.place(), timer.fresh_spikes(), watch);
            }
        }
        if let Some(probe_threads) = &mut self.probe_threads {
            let usual_ns = probe_threads.usual_work_ns();
            for (index, timer) in self.timers.iter().enumerate() {
                let spikes = probe_threads.fresh_spikes(index);
                if let Some(thread) = measured_thread(plan, timer, has_quota) {
                    let first_ns = u64::try_from(timer.first_deadline_ns() - ahead_ns).unwrap_or(0);
                    watch.explain_periods(&thread, &phase.name, first_ns, usual_ns, &mut *spikes);
                }
                if let Some(actor) = &mut self.on_spike {
                    actor.act(&timer.place(), spikes, watch);
                }
            }
        }
        if let Some(timerlat) = &mut self.timerlat {
            let period_ns = timerlat.setup().period_ns;
            for (thread, first_ns, spikes) in timerlat.fresh_spikes() {
                if self.timers.iter().any(|timer| has_cause_bound(plan, timer)) {
                    watch.follow(&thread, first_ns, period_ns);
                }
                watch.explain_spikes(&thread, &phase.name, first_ns, spikes);
            }
        }
    }

    /// Adds the bounds from causes to the series of the timers, and stops following their threads. The threads of the
    /// timerlat tracer show more sections.
    pub fn bound_by_causes(&self, watch: &mut Watch, series: &mut [Series], facts: &RemedyFacts) {
        let max_ns = |cpu: u32| {
            let of_thread = |series: &&Series| series.cpu == Some(cpu) && series.role == TIMERLAT_THREAD;
            series.iter().find(of_thread)?.max_ns.and_then(|max_ns| u64::try_from(max_ns).ok())
        };
        let kernels = self.timerlat.iter().flat_map(|timerlat| timerlat.measured_threads());
        let others: Vec<(u32, u64)> = kernels.filter_map(|thread| Some((thread.pid, max_ns(thread.cpu)?))).collect();
        for (timer, series) in self.timers.iter().zip(series) {
            series.cause_bound = watch.cause_bound(timer.grant().thread_id, series, &others, facts);
        }
        watch.stop_following();
    }

    /// The number of threads with spikes to explain.
    fn threads_with_fresh_spikes(&mut self) -> usize {
        let indices = 0..self.timers.len();
        let of_probe: usize = self
            .probe_threads
            .as_mut()
            .map_or(0, |probe_threads| indices.filter(|&index| !probe_threads.fresh_spikes(index).is_empty()).count());
        let of_timers =
            self.timers.iter_mut().map(|timer| usize::from(!timer.fresh_spikes().is_empty())).sum::<usize>();
        let timerlat = self.timerlat.iter_mut().flat_map(|timerlat| timerlat.fresh_spikes());
        of_timers + of_probe + timerlat.filter(|(.., spikes)| !spikes.is_empty()).count()
    }

    /// Stops the loads, and writes their results and the duration of the phase into the record.
    pub fn finish(&mut self, record: &mut Phase) {
        record.duration_ns = elapsed_ns(self.began);
        record.loads = self.loads.drain(..).flat_map(Running::stop).collect();
    }
}

/// The measuring threads of this process.
fn thread_infos<'a>(timers: &'a [Timer], probe_threads: Option<&'a dyn ProbeThreads>) -> Vec<ThreadInfo<'a>> {
    let of_probe = probe_threads.into_iter().flat_map(|probe_threads| probe_threads.threads());
    timers.iter().map(Timer::thread_info).chain(of_probe).collect()
}

/// Time since `began`, ns.
pub fn elapsed_ns(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The CPU of each thread: one thread on each CPU. The kernel does not pin deadline threads, so a deadline policy
/// without CPUs gets one unpinned thread.
fn thread_cpus(plan: &Plan, cpus: &CpuList) -> Vec<Option<u32>> {
    if matches!(plan.policy, Policy::Deadline { .. }) && plan.cpus.is_none() {
        return vec![None];
    }
    cpus.iter().map(Some).collect()
}

/// True if the threads of a phase are equal, one of each core on each CPU, and not named one by one.
fn is_one_on_each_cpu(plan: &Plan, phase: &PhasePlan) -> bool {
    phase.threads.is_empty() && plan.probe.definition().placement().roles.is_empty()
}

/// Number of measuring threads of a phase, without those that the probe itself creates.
pub fn thread_count(plan: &Plan, phase: &PhasePlan, cpus: &CpuList) -> usize {
    if is_one_on_each_cpu(plan, phase) {
        thread_cpus(plan, cpus).len() * plan.core.threads().len()
    } else {
        phase.threads.len()
    }
}

/// The settings of each measuring thread of a phase.
pub fn threads(
    plan: &Plan,
    phase: &PhasePlan,
    cpus: &CpuList,
    stop_on: Option<&StopOn>,
    spikes_kept: usize,
) -> Vec<Settings> {
    let probe = plan.probe.definition();
    let properties = probe.properties();
    let is_one_on_each_cpu = is_one_on_each_cpu(plan, phase);
    let settings = |role: &str, core, cpu, policy, period_ns| Settings {
        role: role.to_owned(),
        has_own_role: role != properties.name || !is_one_on_each_cpu,
        cpu,
        policy,
        clock: plan.clock,
        wait: plan.wait,
        core,
        period_ns,
        fraction: probe.timing(period_ns).fraction,
        samples: match phase.length {
            Length::Samples(samples) => Some(samples),
            Length::Duration(_) | Length::UntilStopped => None,
        },
        // The spikes of audio are late periods, which the player counts, not late wake-ups.
        threshold_ns: if properties.has_late_wake_ups { plan.threshold_at(period_ns) } else { i64::MAX },
        spikes_kept,
        stop_on: stop_on.cloned(),
        spin: None,
    };
    if is_one_on_each_cpu {
        let on_cpu = |cpu| {
            let equal =
                move |&(core, role): &(Core, Option<&'static str>)| (core, role.unwrap_or(properties.name), cpu);
            plan.core.threads().iter().map(equal)
        };
        let equal = |(core, role, cpu)| settings(role, core, cpu, plan.policy, phase.period_ns);
        return thread_cpus(plan, cpus).into_iter().flat_map(on_cpu).map(equal).collect();
    }
    let core = plan.core.of_named_threads();
    phase.threads.iter().map(|t| settings(&t.role, core, Some(t.cpu), t.policy, t.period_ns)).collect()
}

/// Time by which the grid of a thread is later than that of the first one, ns.
///
/// The threads of two cores on a CPU share the period: one has its deadlines in the middle between those of the other.
/// At the same deadline, the out-of-band thread would delay the in-band one by its own work.
fn shift_ns(plan: &Plan, phase: &PhasePlan, index: usize) -> u64 {
    let on_each_cpu = plan.core.threads().len();
    let (cpu, core) = ((index / on_each_cpu) as u64, (index % on_each_cpu) as u64);
    cpu * plan.offset_ns + core * phase.period_ns / on_each_cpu as u64
}

/// True if the latency of a timer's thread is bounded by its causes: it only sleeps until deadlines of the trace's clock.
fn has_cause_bound(plan: &Plan, timer: &Timer) -> bool {
    let Settings { core, clock, spin, .. } = timer.settings();
    let only_sleeps = plan.probe.definition().properties().measures_trace_cost && spin.is_none();
    only_sleeps && *core == Core::Linux && *clock == Clock::Monotonic
}

/// The thread as the trace knows it; `None` for an unpinned thread, whose spikes are not explained.
fn measured_thread(plan: &Plan, timer: &Timer, has_quota: bool) -> Option<MeasuredThread> {
    let priority = match timer.grant().policy {
        Policy::Deadline { .. } => -1,
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => 99 - i32::from(priority),
        Policy::Other | Policy::Unknown(_) => 120,
    };
    let spins = timer.settings().spin.is_some();
    let awaits_device = plan.probe.definition().properties().awaits_device;
    // Only the timers of ordinary threads have slack.
    let slack_ns = if priority < 100 { 0 } else { timer.grant().timer_slack_ns };
    Some(MeasuredThread {
        pid: timer.grant().thread_id,
        priority,
        cpu: timer.cpu()?,
        spins,
        awaits_device,
        slack_ns,
        has_quota,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Cores,
        plan::tests::{phase, plan},
    };

    #[test]
    fn both_cores_have_a_thread_on_each_cpu_half_a_period_apart() {
        let of = |core| {
            let run = Plan { core, offset_ns: 10, ..plan(vec![phase(1_000, Length::UntilStopped)]) };
            let (phase, cpus) = (&run.phases[0], CpuList::from_iter([1, 3]));
            let all = threads(&run, phase, &cpus, None, 1);
            assert_eq!(thread_count(&run, phase, &cpus), all.len());
            let described = all.into_iter().enumerate().map(|(index, settings)| {
                (settings.role, settings.core, settings.cpu, settings.has_own_role, shift_ns(&run, phase, index))
            });
            described.collect::<Vec<_>>()
        };
        let thread = |role: &str, core, cpu, own, shift_ns| (role.to_owned(), core, Some(cpu), own, shift_ns);
        assert_eq!(
            of(Cores::Both),
            [
                thread("in-band", Core::Linux, 1, true, 0),
                thread("out-of-band", Core::Evl, 1, true, 500),
                thread("in-band", Core::Linux, 3, true, 10),
                thread("out-of-band", Core::Evl, 3, true, 510),
            ]
        );
        let evl = [thread("timer", Core::Evl, 1, false, 0), thread("timer", Core::Evl, 3, false, 10)];
        assert_eq!(of(Cores::Evl), evl);
    }
}
