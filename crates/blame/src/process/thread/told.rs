//! The figures of one thread, as a record holds them.

use std::mem;

use machine::CpuList;
use record::{ProcessThread, Series, SeriesKind};

use super::{At, Rules, Thread};

impl Thread {
    /// Its figures as they are at `now_ns`; the name of the phase and of its role are left open.
    pub fn series(&self, now_ns: u64, rules: &Rules) -> Series {
        let mut now = self.clone();
        now.stay(now_ns);
        if let Some(period_ns) = now.period_ns.filter(|_| now.at != At::Ended) {
            now.cycles.stop(now_ns, period_ns);
        }
        let mut told = ProcessThread {
            tid: now.task.pid,
            comm: now.task.comm.to_string(),
            priority: now.task.priority,
            times: now.times,
            preemptions: now.preemptions,
            preempted: mem::take(&mut now.preempted),
            preempted_by: now.preempters.told(),
            migrations: now.migrations,
            cpus: now.cpus.iter().copied().collect::<CpuList>().to_string(),
            ended: now.at == At::Ended,
            ..ProcessThread::default()
        };
        let (missed, jitter_ns) = now.cycles.tell(now.period_ns, &mut told);
        Series {
            period_ns: now.period_ns.unwrap_or(0),
            first_deadline_ns: i64::try_from(rules.start_ns).unwrap_or(i64::MAX),
            missed,
            jitter_ns,
            kind: SeriesKind::Process(Box::new(told)),
            ..now.wake_ups.series()
        }
    }
}
