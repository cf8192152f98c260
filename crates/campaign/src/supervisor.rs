//! Checks once a second during a run that it is still what was requested.
//!
//! An ordinary thread makes the checks, so the measuring threads do not notice them. A change that lasts less than a
//! second can stay unseen.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use loads::Running;
use machine::{CpuList, Root, clocksource, online_cpus, quota_stopped_us};
use probes::probe_threads::ThreadInfo;
use record::Reason;
use sys::{
    clock::Clock,
    sched::{self, Policy},
};

/// Time between two checks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Smallest step of a clock that counts, ns.
const STEP_NS: i64 = 1_000_000;
/// Largest rate at which the kernel slews a clock without stepping it, ns per s. Source: adjtimex(2), 500 ppm.
const SLEW_NS_PER_S: i64 = 500_000;
/// Shortest suspend that counts, ns.
const SUSPEND_NS: i64 = 10_000_000;

/// The checks of one phase, of an answering end, or of a watched program.
#[derive(Debug)]
pub struct Supervisor {
    root: Root,
    began: Instant,
    next: Instant,
    threads: Vec<Supervised>,
    clock: Clock,
    /// True if a CPU quota of this process makes the run invalid.
    checks_quota: bool,
    last: Moment,
    clocksource: Option<String>,
    stopped_loads: BTreeSet<String>,
    reasons: Vec<Reason>,
}

/// A thread of punctual with the settings that the kernel granted.
#[derive(Debug)]
struct Supervised {
    place: String,
    thread_id: u32,
    policy: Policy,
    cpus: Vec<u32>,
}

/// Values that are compared between two checks.
#[derive(Debug, Clone, Copy)]
struct Moment {
    /// CLOCK_MONOTONIC, ns.
    at_ns: i64,
    /// The clock of the deadlines minus CLOCK_MONOTONIC, ns.
    clock_ahead_ns: i64,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC: time in suspend since boot, ns.
    suspended_ns: i64,
    /// Time that the CPU quota of the control groups stopped their threads since they were created, us.
    quota_us: Option<u64>,
}

impl Moment {
    fn now(root: &Root, clock: Clock) -> Self {
        Self {
            at_ns: Clock::Monotonic.now_ns(),
            clock_ahead_ns: ahead_ns(clock),
            suspended_ns: ahead_ns(Clock::Boottime),
            quota_us: quota_stopped_us(root),
        }
    }
}

impl Supervisor {
    /// Remembers the granted settings of `threads` and the state of the machine. `clock` is that of the deadlines.
    #[must_use]
    pub fn start(root: &Root, threads: &[ThreadInfo<'_>], clock: Clock) -> Self {
        let began = Instant::now();
        let supervised = |thread: &ThreadInfo| Supervised {
            place: thread.place.clone(),
            thread_id: thread.grant.thread_id,
            policy: thread.grant.policy,
            cpus: thread.grant.cpus.clone(),
        };
        Self {
            root: root.clone(),
            began,
            next: began + INTERVAL,
            // Linux does not schedule a thread of the EVL core, so its settings there say nothing.
            threads: threads.iter().filter(|thread| thread.grant.evl_level.is_none()).map(supervised).collect(),
            clock,
            checks_quota: true,
            last: Moment::now(root, clock),
            clocksource: clocksource(root),
            stopped_loads: BTreeSet::new(),
            reasons: Vec::new(),
        }
    }

    /// Checks while a program is watched. A CPU quota is a cause of its long cycles, and makes no run invalid.
    pub fn of_program(root: &Root) -> Self {
        Self { checks_quota: false, ..Self::start(root, &[], Clock::Monotonic) }
    }

    /// The reasons found so far why the run is invalid.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// Checks if a second has passed since the last check.
    pub fn check_if_due(&mut self, loads: &[Running]) {
        if Instant::now() >= self.next {
            self.check(loads);
        }
    }

    /// Checks threads, clocks, quota and loads.
    pub fn check(&mut self, loads: &[Running]) {
        self.next = Instant::now() + INTERVAL;
        self.check_threads();
        self.check_clocksource();
        self.check_loads(loads);
        let now = Moment::now(&self.root, self.clock);
        let found = [self.stepped(now), self.suspended(now), self.stopped_by_quota(now)];
        self.reasons.extend(found.into_iter().flatten());
        self.last = now;
    }

    /// Reports each thread whose policy or CPUs were changed. A thread that has ended is not there any more.
    fn check_threads(&mut self) {
        let online = online_cpus(&self.root);
        let seen = self.seen();
        for thread in &mut self.threads {
            let Ok(policy) = sched::policy_of(thread.thread_id) else { continue };
            if policy != thread.policy {
                let Supervised { place, policy: before, .. } = thread;
                self.reasons.push(Reason {
                    id: "policy.changed".to_owned(),
                    text: format!("the policy of {place} was changed from {before} to {policy} ({seen})"),
                    remedy: "let no other program change it (chrt, rtkit), and run again".to_owned(),
                });
                thread.policy = policy;
            }
            let Ok(cpus) = sched::affinity_of(Some(thread.thread_id)) else { continue };
            // The kernel itself moves the threads of a CPU that goes offline.
            let went_offline = thread.cpus.iter().any(|&cpu| !online.contains(cpu));
            if cpus != thread.cpus && !went_offline {
                let list = |cpus: &[u32]| cpus.iter().copied().collect::<CpuList>().in_words();
                self.reasons.push(moved(&format!(
                    "{} was moved from {} to {} ({seen})",
                    thread.place,
                    list(&thread.cpus),
                    list(&cpus)
                )));
                thread.cpus = cpus;
            }
        }
    }

    fn check_clocksource(&mut self) {
        let now = clocksource(&self.root);
        if let (Some(before), Some(after)) = (&self.clocksource, &now)
            && before != after
        {
            let text = format!("the kernel changed its clock source from {before} to {after} ({})", self.seen());
            self.reasons.push(Reason {
                id: "clock.changed".to_owned(),
                text,
                remedy: "boot with `tsc=reliable`, or find out with: sudo dmesg | grep -i clocksource".to_owned(),
            });
        }
        self.clocksource = now;
    }

    /// Reports each load that is stopped, once.
    fn check_loads(&mut self, loads: &[Running]) {
        let stopped: Vec<String> = loads.iter().flat_map(|running| running.stopped(&self.root)).collect();
        let seen = self.seen();
        for load in stopped.into_iter().filter(|load| self.stopped_loads.insert(load.clone())) {
            self.reasons.push(Reason {
                id: "load.stopped".to_owned(),
                text: format!("the load {load} was stopped by a signal ({seen})"),
                remedy: "let no other program stop it, and run again".to_owned(),
            });
        }
    }

    /// A step of the clock of the deadlines.
    fn stepped(&self, now: Moment) -> Option<Reason> {
        let elapsed_s = (now.at_ns - self.last.at_ns) / 1_000_000_000 + 1;
        let step_ns = now.clock_ahead_ns - self.last.clock_ahead_ns;
        // CLOCK_BOOTTIME advances during suspend, which is reported as such.
        let is_step = self.clock != Clock::Boottime && step_ns.abs() > STEP_NS + elapsed_s * SLEW_NS_PER_S;
        is_step.then(|| Reason {
            id: "clock.stepped".to_owned(),
            text: format!("the clock {} was set by {:+.3} s ({})", self.clock, step_ns as f64 / 1e9, self.seen()),
            remedy: "use --clock monotonic, or let the time service only slew the clock during the run".to_owned(),
        })
    }

    fn suspended(&self, now: Moment) -> Option<Reason> {
        let ns = now.suspended_ns - self.last.suspended_ns;
        (ns > SUSPEND_NS).then(|| Reason {
            id: "machine.suspended".to_owned(),
            text: format!("the machine was suspended for {:.1} s ({})", ns as f64 / 1e9, self.seen()),
            remedy: "start punctual below systemd-inhibit, and keep the lid open".to_owned(),
        })
    }

    fn stopped_by_quota(&self, now: Moment) -> Option<Reason> {
        let us = now.quota_us?.saturating_sub(self.last.quota_us?);
        (self.checks_quota && us >= 1000).then(|| Reason {
            id: "cpu.quota".to_owned(),
            text: format!(
                "the CPU quota of a control group stopped its threads for {} ms ({})",
                us / 1000,
                self.seen()
            ),
            remedy:
                "run punctual outside of that control group, or raise its cpu.max (cpu.cfs_quota_us of older systems)"
                    .to_owned(),
        })
    }

    fn seen(&self) -> String {
        format!("seen after {:.1} s", self.began.elapsed().as_secs_f64())
    }
}

/// The reason that a thread was moved off its CPU.
pub fn moved(text: &str) -> Reason {
    Reason {
        id: "cpu.moved".to_owned(),
        text: text.to_owned(),
        remedy:
            "let no other program change its CPUs (taskset, a cpuset, another punctual with --shield), and run again"
                .to_owned(),
    }
}

/// `clock` minus CLOCK_MONOTONIC, ns.
pub fn ahead_ns(clock: Clock) -> i64 {
    if clock == Clock::Monotonic {
        return 0;
    }
    let read = |_| {
        let (before_ns, other_ns, after_ns) = (Clock::Monotonic.now_ns(), clock.now_ns(), Clock::Monotonic.now_ns());
        (after_ns - before_ns, other_ns - before_ns)
    };
    // This thread may be delayed between two clock reads, so the fastest of five readings counts.
    (0..5).map(read).min().map_or(0, |(_, ahead_ns)| ahead_ns)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn supervisor(root: &Root, clock: Clock) -> Supervisor {
        let last = Moment { at_ns: 0, clock_ahead_ns: 0, suspended_ns: 0, quota_us: None };
        Supervisor { last, ..Supervisor::start(root, &[], clock) }
    }

    #[test]
    fn a_step_of_the_clock_is_not_a_slew() {
        let supervisor = supervisor(&Root::system(), Clock::Realtime);
        let stepped = |at_ns, clock_ahead_ns| {
            supervisor.stepped(Moment { at_ns, clock_ahead_ns, ..supervisor.last }).map(|reason| reason.text)
        };
        assert_eq!(stepped(SECOND_NS, 500_000), None, "500 ppm");
        assert_eq!(stepped(60 * SECOND_NS, 30_000_000), None, "500 ppm for a minute");
        let text = stepped(SECOND_NS, 3 * SECOND_NS).unwrap();
        assert!(text.starts_with("the clock realtime was set by +3.000 s (seen after "), "{text}");
        assert!(stepped(SECOND_NS, -20_000_000).unwrap().contains("-0.020 s"));
    }

    #[test]
    fn reports_suspend_and_quota() {
        let supervisor = supervisor(&Root::system(), Clock::Monotonic);
        let moment = Moment { suspended_ns: 3 * SECOND_NS, quota_us: Some(5_000), ..supervisor.last };
        let text = supervisor.suspended(moment).unwrap().text;
        assert!(text.starts_with("the machine was suspended for 3.0 s"), "{text}");
        assert!(supervisor.stopped_by_quota(moment).is_none(), "no count before");
        let before = Supervisor { last: Moment { quota_us: Some(1_000), ..supervisor.last }, ..supervisor };
        let text = before.stopped_by_quota(moment).unwrap().text;
        assert!(text.starts_with("the CPU quota of a control group stopped its threads for 4 ms"), "{text}");
        assert!(before.suspended(before.last).is_none() && before.stopped_by_quota(before.last).is_none());
        let of_program = Supervisor { last: before.last, ..Supervisor::of_program(&Root::system()) };
        assert!(of_program.stopped_by_quota(moment).is_none() && of_program.suspended(moment).is_some());
    }

    #[test]
    fn a_clock_source_that_changes_for_a_while_is_reported_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sys/devices/system/clocksource/clocksource0/current_clocksource");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "tsc\n").unwrap();
        let mut supervisor = supervisor(&Root::at(folder.path()), Clock::Monotonic);
        for name in ["tsc", "kvm-clock", "kvm-clock", "tsc"] {
            fs::write(&path, name).unwrap();
            supervisor.check(&[]);
        }
        let texts: Vec<_> = supervisor.reasons().iter().map(|reason| reason.text.split(" (").next().unwrap()).collect();
        assert_eq!(
            texts,
            [
                "the kernel changed its clock source from tsc to kvm-clock",
                "the kernel changed its clock source from kvm-clock to tsc"
            ]
        );
    }
}
