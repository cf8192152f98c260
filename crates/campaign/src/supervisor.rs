//! Checks during a run that it is still what was requested.
//!
//! An ordinary thread makes the checks, so the measuring threads do not notice them: five times a second those of
//! policies, CPUs and clocks, which cost little, and once a second all others. A change between two checks that was
//! undone can stay unseen. Each measuring thread also reads its own policy and CPUs as its last act.
//!
//! | module | checks |
//! |---|---|
//! | `threads` | policies, CPUs and timer slack of the measuring threads, and that nobody stops them |
//! | `quota` | that no CPU quota stops punctual or its measuring threads |
//! | `loads` | that nobody stops, moves or throttles the loads |

mod loads;
mod quota;
mod threads;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ::loads::Running;
use machine::{Root, SettingsWatch, clocksource, shield::Watch as ShieldWatch};
use probes::{guard::Heartbeat, probe_threads::ThreadInfo};
use record::Reason;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use sys::clock::{Around, Clock};

use self::{loads::LoadWatch, quota::QuotaWatch, threads::Supervised};

/// Time between two checks of policies, CPUs and clocks.
const INTERVAL: Duration = Duration::from_millis(200);
/// Time between two checks of everything.
const FULL_INTERVAL: Duration = Duration::from_secs(1);
/// Smallest step of a clock that counts, ns: far above the error of reading two clocks.
const STEP_NS: i64 = 100_000;
/// Largest rate at which the kernel slews a clock without stepping it, one part of this many. Source: adjtimex(2),
/// 500 ppm.
const SLEW_PART: i64 = 2_000;
/// Shortest suspend that counts, ns.
const SUSPEND_NS: i64 = 10_000_000;

/// The checks of one phase, of an answering end, or of a watched program.
#[derive(Debug)]
pub struct Supervisor {
    root: Root,
    began: Instant,
    next: Instant,
    next_full: Instant,
    threads: Vec<Supervised>,
    clock: Clock,
    /// True if a CPU quota of this process makes the run invalid.
    checks_quota: bool,
    quota: QuotaWatch,
    /// True if a CPU quota can stop the threads of this process.
    has_quota: bool,
    last: Moment,
    clocksource: Option<String>,
    loads: LoadWatch,
    shield: Option<ShieldWatch>,
    settings: Vec<SettingsWatch>,
    /// Notices that punctual was stopped.
    heartbeat: Option<Arc<Heartbeat>>,
    /// Time for which it had been stopped at the last check, ns.
    stopped_ns: u64,
    reasons: Vec<Reason>,
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
}

impl Moment {
    fn now(clock: Clock) -> Self {
        Self {
            at_ns: Clock::Monotonic.now_ns(),
            clock_ahead_ns: ahead_ns(clock),
            suspended_ns: ahead_ns(Clock::Boottime),
        }
    }
}

impl Supervisor {
    /// Remembers the granted settings of `threads` and the state of the machine. `clock` is that of the deadlines.
    #[must_use]
    pub fn start(root: &Root, threads: &[ThreadInfo<'_>], clock: Clock) -> Self {
        let began = Instant::now();
        let quota = QuotaWatch::start(root, threads);
        Self {
            root: root.clone(),
            began,
            next: began + INTERVAL,
            next_full: began + FULL_INTERVAL,
            threads: threads.iter().filter_map(|thread| Supervised::of(root, thread)).collect(),
            clock,
            checks_quota: true,
            has_quota: quota.has_quota(root),
            quota,
            last: Moment::now(clock),
            clocksource: clocksource(root),
            loads: LoadWatch::default(),
            shield: None,
            settings: Vec::new(),
            heartbeat: None,
            stopped_ns: 0,
            reasons: Vec::new(),
        }
    }

    /// True if a CPU quota can stop the threads of this process.
    #[must_use]
    pub fn has_quota(&self) -> bool {
        self.has_quota
    }

    /// Adds loads, which are compared with their present state.
    #[must_use]
    pub fn with_loads(self, loads: &[Running]) -> Self {
        Self { loads: LoadWatch::start(loads, &self.root), ..self }
    }

    /// Adds the watch of a shield.
    #[must_use]
    pub fn with_shield(self, shield: Option<ShieldWatch>) -> Self {
        Self { shield, ..self }
    }

    /// Adds watches of settings that the run has changed.
    #[must_use]
    pub fn with_settings(self, settings: Vec<SettingsWatch>) -> Self {
        Self { settings, ..self }
    }

    /// Adds watches of settings that were changed for this phase.
    pub fn watch_settings(&mut self, settings: impl IntoIterator<Item = SettingsWatch>) {
        self.settings.extend(settings);
    }

    /// Adds the thread that notices that punctual was stopped.
    #[must_use]
    pub fn with_heartbeat(self, heartbeat: Arc<Heartbeat>) -> Self {
        Self { stopped_ns: heartbeat.stopped_ns(), heartbeat: Some(heartbeat), ..self }
    }

    /// Checks while a program is watched. A CPU quota is a cause of its long cycles, and makes no run invalid. Neither
    /// does a stop of punctual itself: the times are from the kernel's trace, and lost events have a caveat.
    pub fn of_program(root: &Root) -> Self {
        Self { checks_quota: false, ..Self::start(root, &[], Clock::Realtime) }
    }

    /// The reasons found so far why the run is invalid.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// Makes the checks that are due. Call it often.
    pub fn check_if_due(&mut self, loads: &[Running]) {
        let now = Instant::now();
        if now >= self.next_full {
            self.check(loads);
        } else if now >= self.next {
            self.check_settings();
        }
    }

    /// Checks threads, clocks, quota, loads, shield and settings.
    pub fn check(&mut self, loads: &[Running]) {
        self.check_open_files();
        self.check_settings();
        self.next_full = Instant::now() + FULL_INTERVAL;
        let seen = self.seen();
        self.reasons.extend(self.threads.iter_mut().filter_map(|thread| thread.check_frozen(&self.root, &seen)));
        self.reasons.extend(self.loads.check(loads, &self.root, &seen));
        self.check_quota();
        self.check_stopped();
        self.check_shield(loads);
        self.check_changed_settings();
    }

    /// Checks the threads that have ended, and that punctual was not stopped just before. Call it after the threads were
    /// stopped, and after a last [`check`](Self::check) while they existed.
    pub fn check_end(&mut self, threads: &[ThreadInfo<'_>]) {
        let found = self.threads.iter_mut().flat_map(|thread| thread.check_end(threads, &self.root, "seen at its end"));
        self.reasons.extend(found);
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.wait_for_beat();
        }
        self.check_stopped();
    }

    /// Checks policies, CPUs and clock source.
    fn check_settings(&mut self) {
        self.next = Instant::now() + INTERVAL;
        let seen = self.seen();
        self.reasons.extend(self.threads.iter_mut().flat_map(|thread| thread.check(&self.root, &seen)));
        self.check_clocksource();
        let now = Moment::now(self.clock);
        let found = [self.stepped(now), self.suspended(now)];
        self.reasons.extend(found.into_iter().flatten());
        self.last = now;
    }

    /// Reports once that files cannot be opened, because a setting that cannot be read looks unchanged.
    fn check_open_files(&mut self) {
        const ID: &str = "checks.failed";
        let is_known = self.reasons.iter().any(|reason| reason.id == ID);
        if let Err(error @ (Errno::MFILE | Errno::NFILE)) = self.can_open()
            && !is_known
        {
            let text = format!("what changed during the run could not be checked: {error} ({})", self.seen());
            self.reasons.push(Reason {
                id: ID.to_owned(),
                text,
                remedy: "raise the limit of open files (ulimit -n), and run again".to_owned(),
            });
        }
    }

    /// Opens as many files as a check has open at once.
    fn can_open(&self) -> Result<(), Errno> {
        let open =
            || rustix::fs::open(self.root.path("proc/self/stat"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let _files = [open()?, open()?];
        Ok(())
    }

    /// Reports that punctual was stopped: times during the stop say nothing about the machine.
    fn check_stopped(&mut self) {
        let Some(heartbeat) = &self.heartbeat else { return };
        let stopped_ns = heartbeat.stopped_ns();
        let ns = stopped_ns - std::mem::replace(&mut self.stopped_ns, stopped_ns);
        if ns > 0 {
            let what = format!("punctual itself was stopped or frozen for {:.1} s ({})", ns as f64 / 1e9, self.seen());
            self.reasons.push(stopped(&what));
        }
    }

    /// Reports changes of the shield, and other threads on its CPUs.
    fn check_shield(&mut self, loads: &[Running]) {
        let Some(shield) = &mut self.shield else { return };
        let own_groups: Vec<u32> = loads.iter().flat_map(Running::process_groups).collect();
        let found = shield.check(&own_groups);
        let seen = self.seen();
        self.reasons.extend(found.into_iter().map(|found| Reason {
            id: "shield.broken".to_owned(),
            text: format!("{found} ({seen})"),
            remedy: "let no other program use or change the shielded CPUs (taskset, irqbalance, a service), and run again"
                .to_owned(),
        }));
    }

    /// Reports settings that are no longer as the run has set them.
    fn check_changed_settings(&mut self) {
        let seen = self.seen();
        let found = self.settings.iter_mut().flat_map(SettingsWatch::check);
        self.reasons.extend(found.map(|found| Reason {
            id: "setting.changed".to_owned(),
            text: format!("{found} ({seen})"),
            remedy: "let no other program change it (tuned, a power daemon, ethtool, chrt), and run again".to_owned(),
        }));
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

    /// A step of the clock of the deadlines.
    fn stepped(&self, now: Moment) -> Option<Reason> {
        let slewed_ns = (now.at_ns - self.last.at_ns) / SLEW_PART;
        let step_ns = now.clock_ahead_ns - self.last.clock_ahead_ns;
        // CLOCK_BOOTTIME advances during suspend, which is reported as such.
        let is_step = self.clock != Clock::Boottime && step_ns.abs() > STEP_NS + slewed_ns;
        is_step.then(|| Reason {
            id: "clock.stepped".to_owned(),
            text: format!("the clock {} was set by {:+.4} s ({})", self.clock, step_ns as f64 / 1e9, self.seen()),
            remedy: match self.clock {
                // That of a program.
                Clock::Realtime if self.threads.is_empty() => {
                    "let the time service only slew the clock during the run".to_owned()
                }
                _ => "use --clock monotonic, or let the time service only slew the clock during the run".to_owned(),
            },
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

    /// Reports stops by a CPU quota.
    fn check_quota(&mut self) {
        const REMEDY: &str =
            "run punctual outside of that control group, or raise its cpu.max (cpu.cfs_quota_us of older systems)";
        if !self.checks_quota {
            return;
        }
        let seen = self.seen();
        let reason =
            |what| Reason { id: "cpu.quota".to_owned(), text: format!("{what} ({seen})"), remedy: REMEDY.to_owned() };
        self.reasons.extend(self.quota.check(&self.root).into_iter().map(reason));
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

/// The reason that punctual or one of its threads was stopped.
pub fn stopped(what: &str) -> Reason {
    Reason {
        id: "punctual.stopped".to_owned(),
        text: format!("{what}: lateness of that time is not that of the machine"),
        remedy: "let no program stop it (SIGSTOP, Ctrl-Z, a debugger, a frozen control group), and run again"
            .to_owned(),
    }
}

/// True if a signal or a debugger has stopped a process or thread, named by its folder below `/proc`. Source: proc(5),
/// the state in `/proc/PID/stat`.
fn is_stopped(root: &Root, task: &str) -> bool {
    let stat = root.read(&format!("proc/{task}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['T', 't']))
}

/// `clock` minus CLOCK_MONOTONIC, ns.
pub fn ahead_ns(clock: Clock) -> i64 {
    if clock == Clock::Monotonic {
        return 0;
    }
    let Around { value: other_ns, at_ns, .. } = Clock::Monotonic.around(0, || clock.now_ns());
    other_ns - at_ns
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn supervisor(root: &Root, clock: Clock) -> Supervisor {
        let last = Moment { at_ns: 0, clock_ahead_ns: 0, suspended_ns: 0 };
        Supervisor { last, ..Supervisor::start(root, &[], clock) }
    }

    #[test]
    fn a_step_of_the_clock_is_not_a_slew() {
        let supervisor = supervisor(&Root::system(), Clock::Realtime);
        let stepped = |at_ns, clock_ahead_ns| {
            supervisor.stepped(Moment { at_ns, clock_ahead_ns, ..supervisor.last }).map(|reason| reason.text)
        };
        assert_eq!(stepped(SECOND_NS, 500_000), None, "500 ppm");
        assert!(stepped(SECOND_NS / 5, 1_400_000).unwrap().contains("+0.0014 s"), "found before the next second");
        assert_eq!(stepped(60 * SECOND_NS, 30_000_000), None, "500 ppm for a minute");
        let text = stepped(SECOND_NS, 3 * SECOND_NS).unwrap();
        assert!(text.starts_with("the clock realtime was set by +3.0000 s (seen after "), "{text}");
        assert!(stepped(SECOND_NS, -20_000_000).unwrap().contains("-0.0200 s"));
    }

    #[test]
    fn a_step_of_the_wall_clock_is_a_reason_for_a_watched_program() {
        let program = Supervisor::of_program(&Root::system());
        let last = program.last;
        let moved = Moment { clock_ahead_ns: last.clock_ahead_ns - 30_000_000, ..last };
        let reason = program.stepped(moved).unwrap();
        assert!(reason.text.starts_with("the clock realtime was set by -0.0300 s"), "{}", reason.text);
        assert_eq!(reason.remedy, "let the time service only slew the clock during the run");
    }

    #[test]
    fn reports_suspend() {
        let supervisor = supervisor(&Root::system(), Clock::Monotonic);
        let text = supervisor.suspended(Moment { suspended_ns: 3 * SECOND_NS, ..supervisor.last }).unwrap().text;
        assert!(text.starts_with("the machine was suspended for 3.0 s"), "{text}");
        assert!(supervisor.suspended(supervisor.last).is_none());
    }

    #[test]
    fn a_quota_is_a_reason_except_for_a_watched_program() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        write("proc/self/cgroup", "0::/a\n");
        let stat = |us: u32| write("sys/fs/cgroup/a/cpu.stat", &format!("throttled_usec {us}\n"));
        stat(1_000);
        let mut both = [supervisor(&root, Clock::Monotonic), Supervisor::of_program(&root)];
        stat(5_000);
        let texts = both.each_mut().map(|supervisor| {
            supervisor.check(&[]);
            supervisor.reasons().iter().map(|reason| reason.text.clone()).collect::<String>()
        });
        assert!(
            texts[0].starts_with("the CPU quota of a control group stopped its threads for 4 ms (seen"),
            "{texts:?}"
        );
        assert_eq!(texts[1], "");
    }

    #[test]
    fn a_debugger_stops_as_a_signal_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        fs::create_dir_all(root.path("proc/7")).unwrap();
        let with_state = |state: &str| {
            fs::write(root.path("proc/7/stat"), format!("7 (a) T b) {state} 1 7")).unwrap();
            is_stopped(&root, "7")
        };
        assert_eq!(["T", "t", "S", "D", "R"].map(with_state), [true, true, false, false, false]);
        assert!(!is_stopped(&root, "8"));
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
