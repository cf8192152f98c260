//! Culprits from the kernel's trace: reads the ring of a CPU at a spike and takes the events around it.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use record::{Cause, CauseBound, CauseKind, Evidence, Series};
use sys::usage::thread_cpu_time_ns;

use super::window::{Window, events_around, events_of_other_cpu, stop_signal_before};
use crate::{
    Explanation, MeasuredThread, WakeUp,
    bound::{Longest, Parts, Target, cause_bound},
    explain,
    trace::{Instance, Settings, Snapshot, TraceError, Tracefs, remove_leftovers, ring_kib},
};

/// Ring of a CPU that is not measured, KiB. Threads there may wake or stop a measuring thread, and timers of isolated
/// CPUs run there.
const OTHERS_KIB: u32 = 512;
/// The CPU time that reading all events may take, as a share of one CPU, and at once. Explaining spikes needs the rest.
const MAX_READING_SHARE: f64 = 0.25;
const READING_BURST: Duration = Duration::from_millis(200);
/// The events that show every section with interrupts or preemption off.
const SECTION_EVENTS: [&str; 4] =
    ["preemptirq:irq_disable", "preemptirq:irq_enable", "preemptirq:preempt_disable", "preemptirq:preempt_enable"];

/// The trace, and the events read so far.
#[derive(Debug)]
pub struct Traced {
    pub instance: Instance,
    /// Events by CPU.
    windows: BTreeMap<u32, Window>,
    /// The threads whose latency is bounded, by id.
    bounded: BTreeMap<u32, Bounded>,
    /// Wall clock and CPU time since the first of these threads is followed, ns.
    following: Option<(Instant, u64)>,
}

/// A thread whose latency is bounded.
#[derive(Debug)]
struct Bounded {
    cpu: u32,
    parts: Parts,
}

impl Traced {
    /// Starts tracing, and removes trace instances that crashed runs left.
    pub fn start(cpus: &[u32], deep: bool, keep: bool) -> Result<Self, TraceError> {
        let tracefs = Tracefs::open()?;
        let _ = remove_leftovers(&tracefs);
        // With a kept trace, the user wants to see all CPUs.
        let (cpus, count) = match keep {
            true => (&[][..], thread::available_parallelism().map_or(1, usize::from)),
            false => (cpus, cpus.len()),
        };
        let settings = Settings { cpus, deep, buffer_kb_per_cpu: ring_kib(count), others_kb_per_cpu: OTHERS_KIB };
        let mut instance = Instance::create(&tracefs, &settings)?;
        if keep {
            instance.keep_drained();
        }
        Ok(Self { instance, windows: BTreeMap::new(), bounded: BTreeMap::new(), following: None })
    }

    /// From now on, keeps events only for these threads. The caller then reads the new spikes of each of them.
    pub fn begin_round(&mut self, threads: &[MeasuredThread], now_ns: u64) {
        for measured in threads {
            self.windows.entry(measured.cpu).or_default();
        }
        for (&cpu, window) in &mut self.windows {
            let of_cpu = threads.iter().filter(|measured| measured.cpu == cpu);
            let left_ns =
                self.bounded.values().filter(|bounded| bounded.cpu == cpu).map(|bounded| bounded.parts.left_ns());
            window.begin_round(&of_cpu.map(|measured| measured.pid).collect::<Vec<_>>(), now_ns, left_ns.min());
        }
    }

    /// Reads all events of a CPU.
    pub fn read(&mut self, cpu: u32) {
        let window = self.windows.entry(cpu).or_default();
        let known = window.events.len();
        let bounded = self.bounded.values_mut().filter(|bounded| bounded.cpu == cpu);
        // If the ring cannot be read, the spike has no events, and its evidence is incomplete.
        if let Ok(drained) = self.instance.drain(cpu, &mut window.events) {
            bounded.for_each(|bounded| bounded.parts.take_all(&window.events[known..], &drained.gaps));
            window.gaps.extend(drained.gaps);
        }
        window.bound();
    }

    /// Reads all events of a thread's CPU, to bound its latency. Gives up if that takes too much CPU time.
    pub fn follow(&mut self, measured: &MeasuredThread, target: Target) {
        let begun_ns = thread_cpu_time_ns();
        let (since, used_ns) = self.following.unwrap_or_else(|| (Instant::now(), 0));
        let limit = since.elapsed().mul_f64(MAX_READING_SHARE) + READING_BURST;
        let has_sections = SECTION_EVENTS.iter().all(|event| self.instance.events_on().iter().any(|on| on == event));
        let bounded = self
            .bounded
            .entry(measured.pid)
            .or_insert_with(|| Bounded { cpu: measured.cpu, parts: Parts::new(Target { has_sections, ..target }) });
        if Duration::from_nanos(used_ns) > limit {
            bounded.parts.give_up();
            return;
        }
        self.read(measured.cpu);
        let took_ns = thread_cpu_time_ns() - begun_ns;
        self.following = Some((since, used_ns + took_ns));
        if let Some(bounded) = self.bounded.get_mut(&measured.pid) {
            bounded.parts.read_ns += took_ns;
        }
    }

    /// The bound of the latency of a followed thread. `others` are the ids of other followed threads, with their largest
    /// lateness, ns: those of the same CPU show more sections.
    pub fn cause_bound(&mut self, thread_id: u32, series: &Series, others: &[(u32, u64)]) -> Option<CauseBound> {
        let cpu = self.bounded.get(&thread_id)?.cpu;
        let on_cpu = |&(pid, max_ns): &(u32, u64)| {
            self.bounded.get(&pid).filter(|other| other.cpu == cpu).map(|other| other.parts.longest(max_ns))
        };
        let of_others: Vec<Longest> = others.iter().filter_map(on_cpu).collect();
        let parts = &mut self.bounded.get_mut(&thread_id)?.parts;
        let mut longest = parts.longest(series.max_ns.unwrap_or(0).max(0).unsigned_abs());
        of_others.iter().for_each(|other| longest.raise_to(other));
        Some(cause_bound(parts, &longest, series, self.instance.names(), &|address| self.instance.symbol(address)))
    }

    /// Stops following all threads.
    pub fn stop_following(&mut self) {
        self.bounded.clear();
        self.following = None;
    }

    /// Reads all events, and copies the kept ones for a file.
    pub fn snapshot(&mut self) -> Result<Snapshot, TraceError> {
        let cpus: Vec<u32> = self.instance.cpus().collect();
        cpus.into_iter().for_each(|cpu| self.read(cpu));
        self.instance.snapshot()
    }

    /// Explains a wake-up. If the events of its CPU are not enough, uses those of the other CPUs too.
    pub fn explain(&mut self, measured: &MeasuredThread, wake_up: WakeUp) -> Explanation {
        let explanation = self.explain_from(measured, wake_up, false);
        let unknown_sender = |cause: &Cause| cause.kind == CauseKind::Stopped && cause.number.is_none();
        let sender_known = !explanation.culprits.iter().any(|culprit| unknown_sender(&culprit.cause));
        if explanation.evidence == Evidence::Trace && sender_known {
            return explanation;
        }
        // Another CPU may have woken or stopped the thread.
        let others: Vec<u32> = self.instance.cpus().filter(|&cpu| cpu != measured.cpu).collect();
        others.into_iter().for_each(|cpu| self.read(cpu));
        self.explain_from(measured, wake_up, true)
    }

    fn explain_from(&mut self, measured: &MeasuredThread, wake_up: WakeUp, with_others: bool) -> Explanation {
        let (instance, windows) = (&self.instance, &mut self.windows);
        let symbol = |address| instance.symbol(address);
        let own = windows.entry(measured.cpu).or_default();
        let complete_since_ns = Some(own.complete_since_ns(wake_up.end_ns()));
        own.count_lost(wake_up);
        let events = events_around(&own.events, measured.pid, wake_up);
        if !with_others {
            return explain(events, instance.names(), &symbol, measured, wake_up, complete_since_ns);
        }
        let from_ns = events.first().map_or(wake_up.deadline_ns, |event| event.at_ns);
        let mut all = events.to_vec();
        for (_, other) in windows.iter().filter(|&(&cpu, _)| cpu != measured.cpu) {
            all.extend(stop_signal_before(&other.events, from_ns));
            all.extend_from_slice(events_of_other_cpu(&other.events, measured.pid, from_ns, wake_up.end_ns()));
        }
        all.sort_by_key(|event| event.at_ns);
        explain(&all, instance.names(), &symbol, measured, wake_up, complete_since_ns)
    }

    /// Notes that the spikes of a thread are explained up to this time, so their events can be dropped.
    pub fn explained(&mut self, measured: &MeasuredThread, end_ns: u64) {
        self.windows.entry(measured.cpu).or_default().explained(measured.pid, end_ns);
    }

    /// Number of events that were lost where a spike needed them.
    pub fn lost_events(&self) -> u64 {
        self.windows.values().map(|window| window.lost_events).sum()
    }
}
