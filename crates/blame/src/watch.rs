//! Watches a run: when a measuring thread tells a spike, reads out the trace of its CPU and explains it, while
//! measuring goes on.

use std::{collections::BTreeMap, fs::File, path::Path, thread};

use machine::Root;
use record::{Blame, BlameMode, Cause, CauseKind, Evidence, Record, Spike};
use rustix::system::sysinfo;

use crate::{
    Counters, Entry, Event, Explanation, Ledger, RemedyFacts, Waiter, Wake, What,
    event::Left,
    explain,
    idle::IdleStates,
    trace::{DatError, Gap, Instance, Settings, TraceError, Tracefs, remove_leftovers},
};

/// How culprits are to be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asked {
    /// In the kernel's trace where rights and kernel allow it, else by counters.
    #[default]
    Auto,
    /// In this way and no other.
    Only(BlameMode),
}

/// Ring of one CPU, KiB: at best several hundred ms of a busy CPU, since the reader is an ordinary thread that may be late.
const RING_KIB: std::ops::RangeInclusive<u64> = 1024..=4096;
/// The part of the memory that all rings together may take.
const MEMORY_SHARE: u64 = 64;
/// Ring of a CPU that is not measured, KiB: a thread there may wake or stop a measuring thread, and timers of isolated
/// CPUs run on others.
const OTHERS_KIB: u32 = 512;
/// Events kept of a CPU, at most.
const EVENTS_KEPT: usize = 200_000;
/// Spikes explained at a time, the worst first; at the usual 25 times a second it bounds what looking may cost.
const EXPLAINED_AT_A_TIME: usize = 400;
/// Events that only a spike yet to be told may need are kept for so long, where other threads of the CPU have spikes, ns.
const KEPT_NS: u64 = 500_000_000;
/// How far before a deadline events are needed, to tell what the CPU was at, ns.
const CONTEXT_NS: u64 = 500_000;
/// How many switches of the measuring thread before a deadline are looked back to: it slept, a signal woke it, it waited
/// for the signal's lock (PREEMPT_RT), and it stopped.
const OWN_SWITCHES: usize = 6;
/// How long a signal may take to stop the measuring thread, ns.
const SIGNAL_NS: u64 = 50_000_000;
/// Where the kernel with the EVL core shows it. Its threads wake outside what Linux can trace.
const EVL: &str = "sys/devices/virtual/evl";

/// Looks for culprits, in one of several ways.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    idle_states: IdleStates,
    source: Source,
    told: Blame,
    ledger: Ledger,
    keep: bool,
}

#[derive(Debug)]
enum Source {
    Off,
    /// By thread.
    Counters(BTreeMap<u32, Counters>),
    Trace(Box<Instance>, BTreeMap<u32, Window>),
}

/// The events of a CPU that a spike may still need.
#[derive(Debug, Default)]
struct Window {
    events: Vec<Event>,
    /// Where events are missing, oldest first.
    gaps: Vec<Gap>,
    /// Since when each measuring thread of the CPU may need events, ns.
    needed: BTreeMap<u32, u64>,
    /// Events that were lost where a spike needed them.
    lost_events: u64,
}

impl Watch {
    /// Gets ready to look for the culprits on these CPUs; removes what crashed runs have left behind. With `keep`, all
    /// CPUs are traced, and what was read is kept for [`write_dat`](Self::write_dat).
    ///
    /// # Errors
    /// When the kernel's trace was asked for by name, and the kernel or the rights do not allow it. Otherwise the
    /// reason stands in the record, and counters take its place.
    pub fn start(asked: Asked, root: &Root, cpus: &[u32], keep: bool) -> Result<Self, TraceError> {
        let evl = root.exists(EVL);
        let (source, mode, why) = match asked {
            Asked::Only(BlameMode::Off) => (Source::Off, BlameMode::Off, String::new()),
            Asked::Only(BlameMode::Counters) => {
                (Source::Counters(BTreeMap::new()), BlameMode::Counters, "counters were asked for".to_owned())
            }
            Asked::Only(mode) => (traced(cpus, mode == BlameMode::Deep, keep)?, mode, String::new()),
            Asked::Auto if evl => {
                let why = "threads of the EVL core wake outside what the kernel's trace sees".to_owned();
                (Source::Counters(BTreeMap::new()), BlameMode::Counters, why)
            }
            Asked::Auto => match traced(cpus, false, keep) {
                Ok(source) => (source, BlameMode::Trace, String::new()),
                Err(error) => (Source::Counters(BTreeMap::new()), BlameMode::Counters, error.to_string()),
            },
        };
        let events = match &source {
            Source::Trace(instance, _) => instance.events_on().to_vec(),
            _ => Vec::new(),
        };
        let told = Blame { mode, why, events, ..Blame::default() };
        let (root, idle_states) = (root.clone(), IdleStates::of(root));
        Ok(Self { root, idle_states, source, told, ledger: Ledger::default(), keep })
    }

    /// From what culprits are found.
    #[must_use]
    pub fn mode(&self) -> BlameMode {
        self.told.mode
    }

    /// Why culprits are not found from the kernel's trace; empty where they are.
    #[must_use]
    pub fn why_not(&self) -> &str {
        &self.told.why
    }

    /// To be told before threads begin to measure. Page faults and wake-ups of others are not traced, unless the trace
    /// is kept for other tools.
    pub fn begin(&mut self, thread_ids: &[u32]) {
        if let (Source::Trace(instance, _), false) = (&self.source, self.keep) {
            // Without the filters the rings fill sooner; what is lost then is told.
            let _ = instance.only_of(thread_ids);
        }
    }

    /// To be called some twenty times a second, spike or not, with all threads that measure now: counters must be read
    /// before a spike to tell its cause, and events kept that a thread's next spike may need.
    pub fn tick(&mut self, waiters: &[Waiter], now_ns: u64) {
        let measures = |pid: u32| waiters.iter().any(|waiter| waiter.pid == pid);
        match &mut self.source {
            Source::Off => {}
            Source::Counters(counters) => {
                counters.retain(|&pid, _| measures(pid));
                for &Waiter { pid, cpu, .. } in waiters {
                    counters.entry(pid).or_insert_with(|| Counters::start(&self.root, cpu, pid)).read(now_ns);
                }
            }
            Source::Trace(_, windows) => {
                windows.values_mut().for_each(|window| window.needed.retain(|&pid, _| measures(pid)));
                for &Waiter { pid, cpu, .. } in waiters {
                    windows.entry(cpu).or_default().needed.entry(pid).or_insert(0);
                }
            }
        }
    }

    /// Explains the spikes that one measuring thread just told. `first_deadline_ns` is on CLOCK_MONOTONIC.
    pub fn look(&mut self, waiter: &Waiter, phase: &str, first_deadline_ns: u64, spikes: &mut [Spike]) {
        if spikes.is_empty() || matches!(self.source, Source::Off) {
            return;
        }
        self.read_trace(waiter.cpu);
        let mut by_lateness: Vec<&mut Spike> = spikes.iter_mut().collect();
        by_lateness.sort_by_key(|spike| std::cmp::Reverse(spike.lateness_ns));
        self.told.passed_over += by_lateness.len().saturating_sub(EXPLAINED_AT_A_TIME) as u64;
        by_lateness.truncate(EXPLAINED_AT_A_TIME);
        by_lateness.sort_by_key(|spike| spike.at_ns);
        let mut last_woke_ns = 0;
        for spike in by_lateness {
            let deadline_ns = first_deadline_ns + spike.at_ns;
            let wake = Wake { deadline_ns, woke_ns: deadline_ns.saturating_add_signed(spike.lateness_ns) };
            let mut explanation = self.explain(waiter, wake);
            self.idle_states.name(waiter.cpu, &mut explanation);
            let Explanation { culprits, timeline, evidence } = explanation;
            let &mut Spike { at_ns, lateness_ns, .. } = spike;
            self.ledger.add(Entry { cpu: waiter.cpu, phase, at_ns, deadline_ns, lateness_ns, culprits: &culprits });
            self.told.spikes += 1;
            self.told.incomplete += u64::from(evidence == Evidence::Incomplete);
            (spike.culprits, spike.timeline, spike.evidence) = (culprits, timeline, evidence);
            last_woke_ns = wake.woke_ns;
        }
        self.forget(waiter, last_woke_ns.saturating_sub(CONTEXT_NS));
    }

    fn explain(&mut self, waiter: &Waiter, wake: Wake) -> Explanation {
        match &self.source {
            Source::Off => Explanation::default(),
            Source::Counters(counters) => counters
                .get(&waiter.pid)
                .map_or_else(Explanation::default, |counters| counters.explain(wake.deadline_ns, wake.woke_ns)),
            Source::Trace(..) => {
                let explanation = self.explain_from_trace(waiter, wake, false);
                let unknown_sender = |cause: &Cause| cause.kind == CauseKind::Stopped && cause.number.is_none();
                let nothing_open = !explanation.culprits.iter().any(|culprit| unknown_sender(&culprit.cause));
                if explanation.evidence == Evidence::Trace && nothing_open {
                    return explanation;
                }
                // Another CPU may have woken or stopped the thread.
                self.others_of(waiter.cpu).into_iter().for_each(|cpu| self.read_trace(cpu));
                self.explain_from_trace(waiter, wake, true)
            }
        }
    }

    fn explain_from_trace(&mut self, waiter: &Waiter, wake: Wake, with_others: bool) -> Explanation {
        let Source::Trace(instance, windows) = &mut self.source else { return Explanation::default() };
        let symbol = |address| instance.symbol(address).map(str::to_owned);
        let own = windows.entry(waiter.cpu).or_default();
        let complete_since_ns = Some(own.complete_since_ns(wake.woke_ns));
        own.count_lost(wake);
        let events = around(&own.events, waiter.pid, wake);
        if !with_others {
            return explain(events, instance.names(), &symbol, waiter, wake, complete_since_ns);
        }
        let from_ns = events.first().map_or(wake.deadline_ns, |event| event.at_ns);
        let mut all = events.to_vec();
        for (_, other) in windows.iter().filter(|&(&cpu, _)| cpu != waiter.cpu) {
            all.extend(signal_before(&other.events, from_ns));
            all.extend_from_slice(of_another(&other.events, waiter.pid, from_ns, wake.woke_ns));
        }
        all.sort_by_key(|event| event.at_ns);
        explain(&all, instance.names(), &symbol, waiter, wake, complete_since_ns)
    }

    fn others_of(&self, cpu: u32) -> Vec<u32> {
        match &self.source {
            Source::Trace(instance, _) => instance.cpus().filter(|&other| other != cpu).collect(),
            _ => Vec::new(),
        }
    }

    /// Takes in what the ring of a CPU holds.
    fn read_trace(&mut self, cpu: u32) {
        let Source::Trace(instance, windows) = &mut self.source else { return };
        let window = windows.entry(cpu).or_default();
        // A ring that cannot be read leaves its windows without events, which is what they then tell.
        if let Ok(drained) = instance.drain(cpu, &mut window.events) {
            window.gaps.extend(drained.gaps);
        }
        window.bound();
    }

    /// Lets go of events that no later spike needs, now that this thread needs none from before.
    fn forget(&mut self, waiter: &Waiter, before_ns: u64) {
        if let Source::Trace(_, windows) = &mut self.source {
            windows.entry(waiter.cpu).or_default().forget(waiter.pid, before_ns);
        }
    }

    /// A handle that freezes the trace when `0` is written to it; `None` without a trace.
    #[must_use]
    pub fn switch(&self) -> Option<File> {
        match &self.source {
            Source::Trace(instance, _) => instance.switch().ok(),
            _ => None,
        }
    }

    /// Turns the trace on or off; nothing without one.
    pub fn set_on(&mut self, on: bool) {
        if let Source::Trace(instance, _) = &mut self.source {
            // Asked of a file that was written to before; should it fail, the cost that is measured by it is none.
            let _ = instance.set_on(on);
        }
    }

    /// Writes the trace that led here, for trace-cmd and KernelShark; to be asked once, after it was frozen.
    ///
    /// # Errors
    /// The rings cannot be read, the file cannot be written, or there is no trace.
    pub fn write_dat(&mut self, path: &Path) -> Result<(), DatError> {
        match &mut self.source {
            Source::Trace(instance, _) => instance.write_dat(path),
            _ => Ok(()),
        }
    }

    /// What was found so far, with the ledger.
    #[must_use]
    pub fn told(&self, facts: &RemedyFacts) -> Blame {
        let mut told = self.told.clone();
        if let Source::Trace(_, windows) = &self.source {
            told.lost_events = windows.values().map(|window| window.lost_events).sum();
        }
        told.ledger = self.ledger.accounts(facts);
        told
    }

    /// Gives the spikes that the ledger counts as stalls of all CPUs that cause in the record too. It takes the whole run
    /// to know them, so this is for its end.
    pub fn mend(&self, record: &mut Record) {
        self.ledger.mend(record, &RemedyFacts::of(record).measured);
    }
}

fn traced(cpus: &[u32], deep: bool, keep: bool) -> Result<Source, TraceError> {
    let tracefs = Tracefs::open()?;
    remove_leftovers(&tracefs);
    // A kernel developer wants to see what the other CPUs did.
    let (cpus, count) = match keep {
        true => (&[][..], thread::available_parallelism().map_or(1, usize::from)),
        false => (cpus, cpus.len()),
    };
    let settings = Settings { cpus, deep, buffer_kb_per_cpu: ring_kib(count), others_kb_per_cpu: OTHERS_KIB };
    let mut instance = Instance::create(&tracefs, &settings)?;
    if keep {
        instance.keep_drained();
    }
    Ok(Source::Trace(Box::new(instance), BTreeMap::new()))
}

impl Window {
    /// Counts the events that are missing where a spike needs them; each gap once.
    fn count_lost(&mut self, wake: Wake) {
        for gap in &mut self.gaps {
            if gap.from_ns < wake.woke_ns && gap.to_ns > wake.deadline_ns.saturating_sub(CONTEXT_NS) {
                self.lost_events += std::mem::take(&mut gap.lost);
            }
        }
    }

    /// Drops the oldest events where there are too many, and says so.
    fn bound(&mut self) {
        let Some(over @ 1..) = self.events.len().checked_sub(EVENTS_KEPT) else { return };
        let to_ns = self.events[over].at_ns;
        self.events.drain(..over);
        self.gaps.push(Gap { from_ns: 0, to_ns, lost: 0 });
    }

    /// Lets go of events that no thread needs, now that this one needs none from before.
    fn forget(&mut self, pid: u32, before_ns: u64) {
        self.needed.insert(pid, before_ns);
        let oldest_ns = self.needed.values().copied().min().unwrap_or(before_ns);
        let kept_ns = self.events.last().map_or(0, |event| event.at_ns.saturating_sub(KEPT_NS)).min(before_ns);
        let first = first_needed(&self.events, oldest_ns.max(kept_ns));
        self.events.drain(..first);
        self.events.shrink_to(1 << 16);
        let last = self.gaps.len().saturating_sub(1);
        self.gaps.drain(..last);
        if kept_ns > oldest_ns {
            let to_ns = self.events.first().map_or(kept_ns, |event| event.at_ns);
            self.gaps.insert(0, Gap { from_ns: 0, to_ns, lost: 0 });
        }
    }

    /// Since when no event is missing before `until_ns`, ns.
    fn complete_since_ns(&self, until_ns: u64) -> u64 {
        self.gaps.iter().filter(|gap| gap.from_ns < until_ns).map(|gap| gap.to_ns).max().unwrap_or(0)
    }
}

/// Size of a ring, so that small machines keep their memory.
fn ring_kib(cpus: usize) -> u32 {
    let memory = sysinfo();
    let kib = memory.totalram as u64 * u64::from(memory.mem_unit) / 1024;
    (kib / MEMORY_SHARE / cpus.max(1) as u64).clamp(*RING_KIB.start(), *RING_KIB.end()) as u32
}

/// The events from well before the deadline to the wake-up: it must be known who had the CPU, how the measuring thread
/// left it last, and who sent a signal that stopped it.
fn around(events: &[Event], pid: u32, wake: Wake) -> &[Event] {
    let to = events.partition_point(|event| event.at_ns <= wake.woke_ns);
    let deadline = events[..to].partition_point(|event| event.at_ns < wake.deadline_ns);
    let own = |event: &Event| matches!(event.what, What::Switch { from, to, .. } if from.pid == pid || to.pid == pid);
    let own_switches = (0..deadline).rev().filter(|&index| own(&events[index]));
    let last_left = own_switches.take(OWN_SWITCHES).last().unwrap_or(deadline);
    let from = first_needed(events, wake.deadline_ns.saturating_sub(CONTEXT_NS)).min(last_left).min(to);
    let stopped =
        |event: &Event| matches!(event.what, What::Switch { from, left: Left::Stopped, .. } if from.pid == pid);
    let sent = match events[from..to].iter().position(stopped) {
        Some(_) => events[..from].iter().rposition(stops),
        None => None,
    };
    &events[sent.unwrap_or(from)..to]
}

/// What another CPU had to do with a wake-up: all of it where the thread was woken or stopped from there.
fn of_another(events: &[Event], pid: u32, from_ns: u64, to_ns: u64) -> &[Event] {
    let from = events.partition_point(|event| event.at_ns < from_ns);
    let to = events.partition_point(|event| event.at_ns <= to_ns);
    let events = &events[from.min(to)..to];
    let concerns = |event: &Event| match event.what {
        What::Waking { task, .. } => task.pid == pid,
        What::Signal { .. } => stops(event),
        _ => false,
    };
    if events.iter().any(concerns) { events } else { &[] }
}

/// Whether a signal that stops a process was sent: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU (asm-generic/signal.h).
fn stops(event: &Event) -> bool {
    matches!(event.what, What::Signal { signal: 19..=22, .. })
}

/// The last such signal that another CPU sent before a moment: it takes effect when a thread leaves the kernel, maybe later.
fn signal_before(events: &[Event], moment_ns: u64) -> Option<Event> {
    let before = &events[..events.partition_point(|event| event.at_ns < moment_ns)];
    let recent = before.iter().rev().take_while(|event| event.at_ns + SIGNAL_NS > moment_ns);
    recent.copied().find(stops)
}

/// The last thread switch before a moment: from there on it is known who had the CPU.
fn first_needed(events: &[Event], moment_ns: u64) -> usize {
    let first = events.partition_point(|event| event.at_ns < moment_ns);
    events[..first].iter().rposition(|event| matches!(event.what, What::Switch { .. })).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comm, Task};

    fn event(at_ns: u64, what: What) -> Event {
        Event { at_ns, cpu: 0, pid: 1, what }
    }

    fn switch(at_ns: u64) -> Event {
        let task = |pid| Task { pid, priority: 120, comm: Comm::new("x") };
        event(at_ns, What::Switch { from: task(1), left: Left::Sleeping, to: task(2) })
    }

    #[test]
    fn a_window_begins_where_it_is_known_who_ran() {
        let idle = |at_ns| event(at_ns, What::Idle { state: None });
        let events = [switch(100), switch(200), idle(300), idle(600_000), idle(900_000), idle(900_010)];
        let wake = Wake { deadline_ns: 700_000, woke_ns: 900_000 };
        let window = around(&events, 9, wake);
        assert_eq!(window.first().map(|event| event.at_ns), Some(200));
        assert_eq!(window.last().map(|event| event.at_ns), Some(900_000));
        assert_eq!(around(&events, 2, wake).len(), 5, "the thread's own switches are needed");
        assert!(around(&[], 9, wake).is_empty());
    }

    #[test]
    fn events_stay_until_no_thread_of_the_cpu_needs_them() {
        const MS: u64 = 1_000_000;
        let mut window = Window { events: (0..1000).map(|ms| switch(ms * MS)).collect(), ..Window::default() };
        window.needed.extend([(7, 600 * MS), (8, 600 * MS)]);
        window.forget(7, 900 * MS);
        assert_eq!(window.events[0].at_ns, 599 * MS, "thread 8 may tell a spike that began then");
        window.forget(8, 950 * MS);
        assert_eq!((window.events[0].at_ns, window.complete_since_ns(u64::MAX)), (899 * MS, 0));

        window.events = (1000..2000).map(|ms| switch(ms * MS)).collect();
        window.forget(7, 1990 * MS);
        let kept_since = window.events[0].at_ns;
        assert!((1498 * MS..=1500 * MS).contains(&kept_since), "thread 8 has told nothing for long: {kept_since}");
        assert_eq!(window.complete_since_ns(u64::MAX), kept_since, "what it needs from before is missing, and told so");
    }
}
