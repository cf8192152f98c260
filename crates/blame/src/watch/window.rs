//! The events of one CPU that a future spike may need.

use std::collections::BTreeMap;

use crate::{Event, EventKind, WakeUp, event::PrevState, trace::Gap};

/// Events are needed from this long before a deadline to know the state of the CPU, ns.
const CONTEXT_NS: u64 = 500_000;
/// Maximum number of events for one explanation: a stop of a second on a busy CPU.
const MAX_EVENTS_EXPLAINED: usize = 50_000;
/// Maximum number of events kept for a CPU.
const MAX_EVENTS: usize = 200_000;
/// Length of the longest spike whose events are all kept while other threads of the CPU also have spikes, ns.
const MAX_KEPT_NS: u64 = 500_000_000;
/// Number of switches of the measuring thread before a deadline that are included: it slept, a signal woke it, it
/// waited for the lock of the signal (PREEMPT_RT), and it stopped.
const OWN_SWITCHES: usize = 6;
/// Longest time from a stop signal until the thread stops, ns.
const MAX_SIGNAL_DELAY_NS: u64 = 50_000_000;

/// The events of a CPU that a future spike may need.
#[derive(Debug, Default)]
pub struct Window {
    pub events: Vec<Event>,
    /// Gaps between the events, oldest first.
    pub gaps: Vec<Gap>,
    /// The time from which each measuring thread of the CPU may need events, ns.
    needed: BTreeMap<u32, u64>,
    /// Start of the current round, ns: a spike reported in the next round ended after it.
    round_ns: u64,
    /// Number of events that were lost where a spike needed them.
    pub lost_events: u64,
}

impl Window {
    /// Counts the lost events in the gaps that the spike overlaps; each gap only once.
    pub fn count_lost(&mut self, wake_up: WakeUp) {
        for gap in &mut self.gaps {
            if gap.from_ns < wake_up.end_ns() && gap.to_ns > wake_up.deadline_ns.saturating_sub(CONTEXT_NS) {
                self.lost_events += std::mem::take(&mut gap.lost);
            }
        }
    }

    /// Drops the oldest events if there are too many, and adds a gap for them. Drops a quarter at once, because the
    /// others must be moved in memory, and a full window is read again for each spike.
    pub fn bound(&mut self) {
        if self.events.len() <= MAX_EVENTS {
            return;
        }
        let over = self.events.len() - MAX_EVENTS * 3 / 4;
        let to_ns = self.events[over].at_ns;
        self.events.drain(..over);
        self.gaps.retain(|gap| gap.to_ns > to_ns);
        self.gaps.push(Gap { from_ns: 0, to_ns, lost: 0 });
    }

    /// Begins a round with the threads that now measure on the CPU, and drops events that none of them needs. The
    /// caller then reads the new spikes of each thread.
    ///
    /// If all events are read in each round, `left_ns` is the time when a thread left the CPU some wake-ups ago. Events
    /// that are older than this and than any short spike are then dropped, too.
    pub fn begin_round(&mut self, threads: &[u32], now_ns: u64, left_ns: Option<u64>) {
        self.needed.retain(|pid, _| threads.contains(pid));
        for &pid in threads {
            self.needed.entry(pid).or_insert(0);
        }
        let recent_ns = self.round_ns.saturating_sub(MAX_KEPT_NS);
        match left_ns {
            _ if threads.len() > 1 => self.forget(recent_ns),
            Some(left_ns) => self.forget(recent_ns.min(left_ns.saturating_sub(CONTEXT_NS))),
            None => {}
        }
        self.round_ns = now_ns;
    }

    /// Notes that the spikes of a thread are explained up to this time.
    pub fn explained(&mut self, pid: u32, end_ns: u64) {
        self.needed.insert(pid, end_ns.saturating_sub(CONTEXT_NS));
        // Other threads may have spikes of the same time that are not explained yet.
        if self.needed.len() == 1 {
            self.forget(0);
        }
    }

    /// Drops events that no thread needs, and all events before `kept_ns`. Adds a gap for events that a thread may
    /// need.
    fn forget(&mut self, kept_ns: u64) {
        let needed_ns = self.needed.values().copied().min().unwrap_or(0);
        let first = first_needed(&self.events, needed_ns.max(kept_ns));
        self.events.drain(..first);
        self.events.shrink_to(1 << 16);
        let first_ns = self.events.first().map_or(kept_ns, |event| event.at_ns);
        self.gaps.retain(|gap| gap.to_ns > first_ns);
        if kept_ns > needed_ns {
            self.gaps.insert(0, Gap { from_ns: 0, to_ns: first_ns, lost: 0 });
        }
    }

    /// No event is missing between this time and `until_ns`, ns.
    pub fn complete_since_ns(&self, until_ns: u64) -> u64 {
        self.gaps.iter().filter(|gap| gap.from_ns < until_ns).map(|gap| gap.to_ns).max().unwrap_or(0)
    }
}

/// The events from well before the deadline to the end. They must show which thread had the CPU, how the measuring
/// thread last left it, and who sent a signal that stopped it.
pub fn events_around(events: &[Event], pid: u32, wake_up: WakeUp) -> &[Event] {
    let to = events.partition_point(|event| event.at_ns <= wake_up.end_ns());
    let deadline = events[..to].partition_point(|event| event.at_ns < wake_up.deadline_ns);
    let own =
        |event: &Event| matches!(event.kind, EventKind::Switch { from, to, .. } if from.pid == pid || to.pid == pid);
    let own_switches = (0..deadline).rev().filter(|&index| own(&events[index]));
    let last_left = own_switches.take(OWN_SWITCHES).last().unwrap_or(deadline);
    let from = first_needed(events, wake_up.deadline_ns.saturating_sub(CONTEXT_NS)).min(last_left).min(to);
    let stopped = |event: &Event| matches!(event.kind, EventKind::Switch { from, prev_state: PrevState::Stopped, .. } if from.pid == pid);
    let sent = match events[from..to].iter().position(stopped) {
        Some(_) => events[..from].iter().rposition(is_stop_signal),
        None => None,
    };
    // A thread that never sleeps has no switches; without this limit, all events would be included.
    &events[sent.unwrap_or(from).max(to.saturating_sub(MAX_EVENTS_EXPLAINED))..to]
}

/// The events of another CPU; empty unless the thread was woken or stopped from there.
pub fn events_of_other_cpu(events: &[Event], pid: u32, from_ns: u64, to_ns: u64) -> &[Event] {
    let from = events.partition_point(|event| event.at_ns < from_ns);
    let to = events.partition_point(|event| event.at_ns <= to_ns);
    let events = &events[from.min(to)..to];
    let concerns = |event: &Event| match event.kind {
        EventKind::Waking { task, .. } => task.pid == pid,
        EventKind::Signal { .. } => is_stop_signal(event),
        _ => false,
    };
    if events.iter().any(concerns) { events } else { &[] }
}

/// True if a signal that stops a process was sent: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU (asm-generic/signal.h).
fn is_stop_signal(event: &Event) -> bool {
    matches!(event.kind, EventKind::Signal { signal: 19..=22, .. })
}

/// The last stop signal sent before a time. It takes effect when the receiver next leaves the kernel.
pub fn stop_signal_before(events: &[Event], moment_ns: u64) -> Option<Event> {
    let before = &events[..events.partition_point(|event| event.at_ns < moment_ns)];
    let recent = before.iter().rev().take_while(|event| event.at_ns + MAX_SIGNAL_DELAY_NS > moment_ns);
    recent.copied().find(is_stop_signal)
}

/// Index of the last thread switch before a time: from there on, the thread on the CPU is known.
fn first_needed(events: &[Event], moment_ns: u64) -> usize {
    let first = events.partition_point(|event| event.at_ns < moment_ns);
    events[..first].iter().rposition(|event| matches!(event.kind, EventKind::Switch { .. })).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comm, Task, Work};

    fn event(at_ns: u64, kind: EventKind) -> Event {
        Event { at_ns, cpu: 0, pid: 1, kind }
    }

    fn switch(at_ns: u64) -> Event {
        let task = |pid| Task { pid, priority: 120, comm: Comm::new("x") };
        event(at_ns, EventKind::Switch { from: task(1), prev_state: PrevState::Sleeping, to: task(2) })
    }

    #[test]
    fn starts_where_the_running_thread_is_known() {
        let idle = |at_ns| event(at_ns, EventKind::Idle { state: None });
        let events = [switch(100), switch(200), idle(300), idle(600_000), idle(900_000), idle(900_010)];
        let wake_up = WakeUp { deadline_ns: 700_000, woke_ns: 900_000, work: Work::default() };
        let window = events_around(&events, 9, wake_up);
        assert_eq!(window.first().map(|event| event.at_ns), Some(200));
        assert_eq!(window.last().map(|event| event.at_ns), Some(900_000));
        assert_eq!(events_around(&events, 2, wake_up).len(), 5, "includes the thread's own switches");
        assert!(events_around(&[], 9, wake_up).is_empty());
    }

    #[test]
    fn drops_a_quarter_of_too_many_events() {
        let events = |count: u64| (0..count).map(switch).collect();
        let mut window = Window { events: events(MAX_EVENTS as u64), ..Window::default() };
        window.bound();
        assert_eq!((window.events.len(), window.gaps.len()), (MAX_EVENTS, 0));
        window.events.push(switch(MAX_EVENTS as u64));
        window.bound();
        let first_ns = window.events[0].at_ns;
        assert_eq!((window.events.len(), window.gaps.len()), (MAX_EVENTS * 3 / 4, 1));
        assert_eq!((first_ns, window.gaps[0].to_ns), (MAX_EVENTS as u64 / 4 + 1, first_ns));
    }

    #[test]
    fn drops_what_no_spike_of_a_thread_that_runs_needs() {
        const MS: u64 = 1_000_000;
        let mut window = Window { events: (0..1000).map(|ms| switch(ms * MS)).collect(), ..Window::default() };
        window.begin_round(&[7], 1000 * MS, Some(996 * MS));
        assert_eq!(window.events.len(), 1000, "the next spikes may be older than this round");
        window.begin_round(&[7], 1040 * MS, Some(996 * MS));
        assert_eq!(window.events[0].at_ns, 499 * MS);
        window.begin_round(&[7], 2000 * MS, Some(996 * MS));
        assert_eq!(window.events[0].at_ns, 539 * MS);
        window.begin_round(&[7], 2040 * MS, Some(996 * MS));
        assert_eq!(window.events[0].at_ns, 995 * MS, "the thread has been late since then");
        assert_eq!(window.complete_since_ns(u64::MAX), 995 * MS);
    }

    #[test]
    fn keeps_events_until_no_thread_needs_them() {
        const MS: u64 = 1_000_000;
        let since = |window: &Window| (window.events[0].at_ns / MS, window.complete_since_ns(u64::MAX) / MS);
        let mut window = Window { events: (0..1000).map(|ms| switch(ms * MS)).collect(), ..Window::default() };
        window.begin_round(&[7], 1000 * MS, None);
        window.explained(7, 600 * MS);
        assert_eq!(since(&window), (599, 0), "only one thread");

        window.begin_round(&[7, 8], 1000 * MS, None);
        window.explained(7, 900 * MS);
        assert_eq!(since(&window).0, 599, "thread 8 may report a spike of the same time");
        window.explained(8, 800 * MS);
        // Explaining thread 7 took long: its next spikes may be much older than the last event.
        window.events.extend((1000..2000).map(|ms| switch(ms * MS)));
        window.begin_round(&[7, 8], 2000 * MS, None);
        assert_eq!(since(&window), (799, 0));

        window.explained(7, 1990 * MS);
        window.begin_round(&[7, 8], 2040 * MS, None);
        let (kept, complete) = since(&window);
        assert_eq!(kept, 1499, "thread 8 had no spike for long");
        assert_eq!(complete, kept, "the dropped events are a gap");
        window.begin_round(&[8], 2080 * MS, None);
        window.explained(8, 1999 * MS);
        assert_eq!(since(&window), (1998, 0), "thread 7 has ended");
    }
}
