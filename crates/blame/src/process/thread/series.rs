//! The figures of one thread for the record.

use std::mem;

use machine::CpuList;
use record::{ProcessThread, Release, Series, SeriesKind};

use super::{RunConfig, State, Thread};
use crate::time::signed_ns;

impl Thread {
    /// Its figures as of `now_ns`, without the names of phase and role. `parent` is the thread that it has its
    /// real-time policy from.
    pub fn series(&self, now_ns: u64, parent: Option<String>, config: &RunConfig) -> Series {
        let mut now = self.clone();
        now.account_until(now_ns);
        now.cycles.finish(now.period_ns);
        if let Some(period_ns) = now.period_ns.filter(|_| now.state != State::Ended) {
            now.cycles.stop(now_ns, period_ns);
        }
        let mut thread = ProcessThread {
            tid: now.task.pid,
            comm: now.task.comm.to_string(),
            priority: now.task.priority,
            times: now.times,
            preemptions: now.preemptions,
            preempted: mem::take(&mut now.preempted),
            preempted_by: now.preempters.to_record(),
            migrations: now.migrations,
            cpus: now.cpus.iter().copied().collect::<CpuList>().to_string(),
            ended: now.state == State::Ended,
            release: match () {
                () if now.is_marked => Release::Mark,
                () if config.knows_calls => now.releases.rank().into(),
                () => Release::AnySleep,
            },
            breaches: now.breaches.to_record(),
            monitor_reports: now.reports.to_record(),
            policy_inherited_from: parent,
            locks: now.locks.to_record(),
            page_faults: now.page_faults,
            signals: now.signals,
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
}
