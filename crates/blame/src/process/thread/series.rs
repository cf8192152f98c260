//! The figures of one thread for the record.

use std::mem;

use machine::CpuList;
use record::{Cycle, CycleCause, ProcessThread, Release, Series, SeriesKind};

use super::{RunConfig, State, Thread, Waiting};
use crate::{process::locks::Wait, time::signed_ns};

impl Thread {
    /// Its figures as of `now_ns`, without the names of phase and role. `parent` is the thread that it has its
    /// real-time policy from.
    pub fn series(&self, now_ns: u64, parent: Option<String>, config: &RunConfig) -> Series {
        let mut now = self.clone();
        now.complete_at_end(now_ns, config);
        now.account_until(now_ns);
        now.note_pending_wake_up(now_ns, config);
        let open = now.open_cycle(now_ns, config);
        now.cycles.complete_cut(now_ns, false);
        now.cycles.finish(now.period_ns);
        if let Some(period_ns) = now.period_ns.filter(|_| now.state != State::Ended) {
            now.cycles.stop(now_ns, period_ns, config);
        }
        let mut thread = ProcessThread {
            tid: now.task.pid,
            comm: now.task.comm.to_string(),
            priority: now.task.priority,
            times: now.times,
            preemptions: now.preemptions,
            preempted: mem::take(&mut now.preempted),
            preempted_by: now.preempters.to_record(config),
            migrations: now.migrations,
            cpus: now.cpus.iter().copied().collect::<CpuList>().to_string(),
            switches_missing: now.switches_missing,
            switches_missing_on: now.switches_missing_on.iter().copied().collect::<CpuList>().to_string(),
            ended: now.state == State::Ended,
            release: match () {
                () if now.is_marked => Release::Mark,
                () if now.begins_at_yields => Release::Yield,
                () if now.knows_calls(config) => now.releases.to_record(),
                () => Release::AnySleep,
            },
            breaches: now.breaches.to_record(),
            monitor_reports: now.reports.to_record(),
            policy_inherited_from: parent,
            locks: now.locks.to_record(),
            page_faults: now.page_faults,
            signals: now.signals,
            named: config.selection.names(now.task.pid, now.selected_as),
            ended_at_ns: now.ended_ns.map(|ended_ns| ended_ns.saturating_sub(config.start_ns)),
            longest_row_ns: if now.is_marked { 0 } else { now.releases.longest_row_ns() },
            open,
            ..ProcessThread::default()
        };
        let (missed, jitter_ns) = now.cycles.write_to(now.period_ns, &mut thread);
        Series {
            period_ns: now.period_ns.unwrap_or(0),
            first_deadline_ns: signed_ns(config.start_ns),
            missed,
            jitter_ns,
            kind: SeriesKind::Process(Box::new(thread)),
            ..now.wake_ups.series()
        }
    }

    /// Adds the wake-up after which it has no CPU yet. If the kernel does not trace all switches to it, it may have one.
    fn note_pending_wake_up(&mut self, now_ns: u64, config: &RunConfig) {
        if let (State::Ready { since_ns }, 0) = (self.state, self.switches_missing) {
            // A thread that never had a CPU is explained with the events of the first one.
            self.wake_ups.note(since_ns, now_ns.saturating_sub(since_ns), self.cpu.unwrap_or(0), config);
        }
    }

    /// Its current cycle as of `now_ns`, with the wait that goes on. `None` if it has none, or if it may have none: it
    /// does not repeat cycles, or does not mark their ends.
    fn open_cycle(&mut self, now_ns: u64, config: &RunConfig) -> Option<Cycle> {
        /// A thread with fewer cycles may only have started the program.
        const REPEATED: u64 = 2;
        let ends = !self.is_marked || self.marks_ends;
        let is_cycle = !self.cycles.is_tentative() && !self.cycles.is_start();
        if self.state == State::Ended || self.cycles.count() < REPEATED || !ends || !is_cycle {
            return None;
        }
        self.add_current_wait(now_ns, config);
        Some(self.cycles.now()?.to_record(config))
    }

    /// Adds the wait that goes on as a part of its cycle.
    fn add_current_wait(&mut self, now_ns: u64, config: &RunConfig) {
        let rival = self.rivals.now;
        match self.state {
            State::Ready { since_ns } => {
                self.add_part(CycleCause::WakeUp, now_ns.saturating_sub(since_ns), rival, "");
            }
            State::Preempted { since_ns } => {
                let cause = rival.map_or(CycleCause::Preemption, |rival| {
                    config.quota.cause(self.rivals.priority, rival, since_ns, now_ns)
                });
                self.add_part(cause, now_ns.saturating_sub(since_ns), rival, "");
            }
            State::Blocked => {
                if let Some(waits) = self.waits_for_lock() {
                    self.add_lock_wait(&Wait::explain(waits, now_ns, None, &|_, _, _| None), config);
                } else if let Some(Waiting { wait_for, since_ns, call, .. }) = self.waiting {
                    self.add_part(wait_for.cause(), now_ns.saturating_sub(since_ns), None, call);
                }
            }
            State::Unobserved | State::Running | State::Ended => {}
        }
    }
}
