//! One phase: measuring threads and the loads beside them.

use std::time::{Duration, Instant};

use blame::{MeasuredThread, Timerlat, Watch};
use loads::Running;
use machine::{CpuList, Root, Shield};
use probes::{
    guard::Heartbeat,
    noise::Spin,
    probe_threads::{ProbeThreads, ThreadInfo},
    timer::{End, Settings, StopOn, Timer, TimerError},
};
use record::{Phase, Series};
use sys::{
    clock::Clock,
    counter::Counter,
    sched::{self, Policy},
    signal::termination_requests,
};

use crate::{
    error::RunError,
    plan::{Length, PhasePlan, Plan},
    probe::{PhaseContext, on_its_side},
    record_budget::RecordBudget,
    shielded::start_loads,
};

/// Time between preparing the threads and their first deadline, ns.
const LEAD_NS: i64 = 2_000_000;
/// How often the threads are looked after.
const TICK: Duration = Duration::from_millis(40);
/// Time after the last deadline in which threads that are on time end.
const LINGER: Duration = Duration::from_millis(2);
/// How long a thread that was told to stop may take; one that sleeps longer is left behind.
const PATIENCE: Duration = Duration::from_millis(300);

/// What is the same for all phases of a run.
pub struct RunContext<'a> {
    pub cpus: &'a CpuList,
    pub root: &'a Root,
    pub counter: Counter,
    pub stop_on: Option<&'a StopOn>,
    pub shield: Option<&'a Shield>,
    pub spikes_kept: usize,
}

/// A phase under way.
pub struct PhaseRun<'a> {
    pub timers: Vec<Timer>,
    pub began: Instant,
    /// What measures together with the timers.
    pub companion: Option<Box<dyn ProbeThreads>>,
    /// The kernel's own measurement beside ours.
    timerlat: Option<&'a mut Timerlat>,
    loads: Vec<Running>,
}

/// Why the loop of a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    AsPlanned,
    BySignal,
    ByGuard,
    ByStopOn,
}

impl<'a> PhaseRun<'a> {
    /// Starts the loads, makes the threads, and lets them wait for the start.
    pub fn prepare(
        plan: &Plan,
        phase: &PhasePlan,
        context: &RunContext<'_>,
        timerlat: Option<&'a mut Timerlat>,
    ) -> Result<Self, RunError> {
        let &RunContext { cpus, root, counter, stop_on, shield, spikes_kept } = context;
        let load_cpus = plan.load_cpus.as_ref().unwrap_or(cpus);
        let loads = start_loads(&plan.executable, &phase.loads, load_cpus, shield)?;
        let mut companion = plan.probe.definition().prepare(&PhaseContext {
            root,
            shield,
            policy: plan.policy,
            clock: plan.clock,
            period_ns: phase.period_ns,
            threshold_ns: plan.threshold_at(phase.period_ns),
            spikes_kept,
            record_path: plan.record_path.as_deref(),
        })?;
        let heartbeat = Heartbeat::start().map_err(TimerError::Spawn)?;
        let spin = plan.probe.definition().spin_ns(phase.period_ns).map(|runtime_ns| Spin::new(counter, runtime_ns));
        let timers = threads(plan, phase, cpus, stop_on)
            .into_iter()
            .map(|settings| Settings { spin, ..settings })
            .enumerate()
            .map(|(index, settings)| {
                let work = companion.as_mut().and_then(|companion| companion.work(index));
                let prepare = || Timer::prepare_with(work, &settings, heartbeat.clone());
                Ok::<_, RunError>(on_its_side(shield, settings.cpu, prepare)??)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { timers, began: Instant::now(), companion, timerlat, loads })
    }

    /// The threads that measure and are ours.
    pub fn members(&self) -> Vec<ThreadInfo<'_>> {
        let of_companion = self.companion.iter().flat_map(|companion| companion.threads());
        self.timers.iter().map(Timer::thread_info).chain(of_companion).collect()
    }

    /// What our threads have seen so far.
    pub fn series(&self, phase: &PhasePlan) -> Vec<Series> {
        let of_timer = |(index, timer): (usize, &Timer)| {
            let mut series = timer.series(&phase.name);
            self.companion.iter().for_each(|companion| companion.add_to(index, &mut series));
            series.granted.cpus = timer.grant().cpus.iter().copied().collect::<CpuList>().to_string();
            series
        };
        let of_companion = self.companion.iter().flat_map(|companion| companion.series(&phase.name));
        self.timers.iter().enumerate().map(of_timer).chain(of_companion).collect()
    }

    /// The threads that measure, ours and the kernel's, as the kernel numbers them.
    pub fn thread_ids(&self) -> Vec<u32> {
        let ours = self.timers.iter().map(|timer| timer.grant().thread_id);
        ours.chain(self.timerlat.iter().flat_map(|timerlat| timerlat.measured_threads()).map(|thread| thread.pid))
            .collect()
    }

    /// What the kernel's own measurement has seen so far.
    pub fn timerlat_series(&self, plan: &Plan, phase: &PhasePlan) -> Vec<Series> {
        let Some(timerlat) = &self.timerlat else { return Vec::new() };
        let ahead_ns = ahead_ns(plan.clock);
        let mut all = timerlat.series(&phase.name);
        all.iter_mut().for_each(|series| series.first_deadline_ns = series.first_deadline_ns.saturating_add(ahead_ns));
        all
    }

    /// Measures until the phase is over, and has its spikes explained. `tick` is called some twenty times a second.
    pub fn measure(
        &mut self,
        plan: &Plan,
        phase: &PhasePlan,
        watch: &mut Watch,
        mut tick: impl FnMut(&Self, &Watch),
    ) -> Ended {
        let first_ns = plan.clock.now_ns() + LEAD_NS;
        let end_ns = match phase.length {
            Length::Duration(duration_ns) => first_ns.saturating_add_unsigned(duration_ns),
            Length::Samples(_) | Length::UntilStopped => i64::MAX / 2,
        };
        // Loads on every CPU must not keep this thread from reading the trace before it is overwritten. Where the right
        // is missing it does what it can. Loads are there already, and keep their own niceness.
        let niceness = sched::set_niceness(-20);
        self.began = Instant::now();
        if let Some(timerlat) = &mut self.timerlat {
            timerlat.begin(plan.threshold_at(phase.period_ns));
        }
        for (index, timer) in self.timers.iter_mut().enumerate() {
            timer.start(first_ns + (index as u64 * plan.offset_ns) as i64, end_ns);
        }
        loop {
            // No longer than to the end: a run of many short phases would add up what it is late.
            let left = Duration::from_nanos((end_ns - plan.clock.now_ns()).max(0) as u64);
            std::thread::sleep((left + LINGER).min(TICK));
            self.look(plan, phase, watch);
            if let Some(ended) = self.has_ended(left.is_zero()) {
                self.timers.iter().for_each(Timer::stop);
                self.timers.iter_mut().for_each(|timer| timer.wait_for_end(PATIENCE));
                if let Some(companion) = &mut self.companion {
                    companion.finish();
                }
                self.look(plan, phase, watch);
                let _ = niceness.map(sched::set_niceness);
                return ended;
            }
            tick(self, watch);
        }
    }

    /// Why the phase has ended; `time_is_up` ends one that has no timers.
    fn has_ended(&self, time_is_up: bool) -> Option<Ended> {
        let any = |end| self.timers.iter().any(|timer| timer.end() == Some(end));
        if termination_requests() > 0 {
            Some(Ended::BySignal)
        } else if any(End::Starved) {
            Some(Ended::ByGuard)
        } else if any(End::StoppedOn) {
            Some(Ended::ByStopOn)
        } else {
            let of_companion = || self.companion.iter().all(|companion| companion.has_ended());
            let ended = self.timers.iter().all(Timer::has_ended);
            let ended = if self.timers.is_empty() { time_is_up || of_companion() } else { ended };
            ended.then_some(Ended::AsPlanned)
        }
    }

    /// Takes in what the threads told, and has fresh spikes explained.
    fn look(&mut self, plan: &Plan, phase: &PhasePlan, watch: &mut Watch) {
        let kernels = self.timerlat.iter().flat_map(|timerlat| timerlat.measured_threads());
        let threads: Vec<MeasuredThread> = self.timers.iter().filter_map(measured_thread).chain(kernels).collect();
        watch.tick(&threads, Clock::Monotonic.now_ns() as u64);
        let ahead_ns = ahead_ns(plan.clock);
        for timer in &mut self.timers {
            timer.collect();
            if let Some(thread) = measured_thread(timer) {
                let first_ns = (timer.first_deadline_ns() - ahead_ns).max(0) as u64;
                watch.explain_spikes(&thread, &phase.name, first_ns, timer.fresh_spikes());
            }
        }
        if let Some(companion) = &mut self.companion {
            companion.collect();
            let usual_ns = companion.usual_work_ns();
            for (index, timer) in self.timers.iter().enumerate() {
                let spikes = companion.fresh_spikes(index);
                if let Some(thread) = measured_thread(timer) {
                    let first_ns = (timer.first_deadline_ns() - ahead_ns).max(0) as u64;
                    watch.explain_periods(&thread, &phase.name, first_ns, usual_ns, spikes);
                }
            }
        }
        if let Some(timerlat) = &mut self.timerlat {
            timerlat.collect();
            for (thread, first_ns, spikes) in timerlat.fresh_spikes() {
                watch.explain_spikes(&thread, &phase.name, first_ns, spikes);
            }
        }
    }

    /// Stops the loads and tells what the phase was.
    pub fn finish(&mut self, told: &mut Phase) {
        told.duration_ns = self.began.elapsed().as_nanos() as u64;
        told.loads = self.loads.drain(..).flat_map(Running::stop).collect();
    }
}

/// How far a clock is ahead of CLOCK_MONOTONIC now, ns.
fn ahead_ns(clock: Clock) -> i64 {
    if clock == Clock::Monotonic {
        return 0;
    }
    let look = |_| {
        let (before_ns, there_ns, after_ns) = (Clock::Monotonic.now_ns(), clock.now_ns(), Clock::Monotonic.now_ns());
        (after_ns - before_ns, there_ns - before_ns)
    };
    // Something may come between the clocks: the quickest look counts.
    (0..5).map(look).min().map_or(0, |(_, ahead_ns)| ahead_ns)
}

/// One thread a CPU; a single one that wanders for a deadline policy without CPUs, since the kernel pins none of those.
fn places(plan: &Plan, cpus: &CpuList) -> Vec<Option<u32>> {
    if matches!(plan.policy, Policy::Deadline { .. }) && plan.cpus.is_none() {
        return vec![None];
    }
    cpus.iter().map(Some).collect()
}

/// What each measuring thread of a phase is asked to do.
pub fn threads(plan: &Plan, phase: &PhasePlan, cpus: &CpuList, stop_on: Option<&StopOn>) -> Vec<Settings> {
    let probe = plan.probe.definition();
    let settings = |role: &str, cpu, policy, period_ns| Settings {
        role: role.to_owned(),
        cpu,
        policy,
        clock: plan.clock,
        wait: plan.wait,
        core: plan.core,
        period_ns,
        fraction: plan.fraction(period_ns),
        samples: match phase.length {
            Length::Samples(samples) => Some(samples),
            Length::Duration(_) | Length::UntilStopped => None,
        },
        // Spikes of audio are periods, not wake-ups.
        threshold_ns: if probe.has_late_wake_ups() { plan.threshold_at(period_ns) } else { i64::MAX },
        spikes_kept: RecordBudget::of(plan).spikes_kept,
        stop_on: stop_on.cloned(),
        spin: None,
    };
    match &phase.threads[..] {
        [] if probe.roles().is_empty() => places(plan, cpus)
            .into_iter()
            .map(|cpu| settings(probe.name(), cpu, plan.policy, phase.period_ns))
            .collect(),
        named => named.iter().map(|t| settings(&t.role, Some(t.cpu), t.policy, t.period_ns)).collect(),
    }
}

/// The thread whose spikes are to be explained; none that wanders over CPUs.
fn measured_thread(timer: &Timer) -> Option<MeasuredThread> {
    let priority = match timer.grant().policy {
        Policy::Deadline { .. } => -1,
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => 99 - priority as i32,
        Policy::Other | Policy::Unknown(_) => 120,
    };
    let spins = timer.settings().spin.is_some();
    Some(MeasuredThread { pid: timer.grant().thread_id, priority, cpu: timer.cpu()?, spins })
}
