//! The policies, CPUs and timer slack of the measuring threads, and that nobody stops them.

use machine::{CpuList, Root, is_frozen, online_cpus};
use probes::{probe_threads::ThreadInfo, setup::Scheduling};
use record::Reason;
use sys::sched::{self, Policy};

use super::{is_stopped, moved, stopped};

/// A thread of punctual with the settings that the kernel granted, or that were found last.
#[derive(Debug)]
pub(super) struct Supervised {
    place: String,
    thread_id: u32,
    last: Scheduling,
    /// Niceness of an ordinary thread.
    niceness: Option<i32>,
    /// Timer slack of an ordinary thread, ns; `None` if this process may not read it.
    slack_ns: Option<u64>,
    /// The number of checks in a row that found it stopped.
    stopped_checks: u32,
    was_frozen: bool,
    /// The number of checks in a row that found it on other CPUs.
    moved_checks: u32,
}

/// Stopped in this number of checks in a row, a thread was stopped alone. While the whole process stops and goes on, a
/// thread that checks can see another one stopped once.
const STOPPED_CHECKS: u32 = 2;
/// On other CPUs in this number of checks in a row, a thread was moved.
const MOVED_CHECKS: u32 = 3;

impl Supervised {
    /// A thread as it was set up; `None` for a thread of the EVL core, which Linux does not schedule.
    pub fn of(root: &Root, thread: &ThreadInfo) -> Option<Self> {
        let (thread_id, policy) = (thread.grant.thread_id, thread.grant.policy);
        thread.grant.evl_level.is_none().then(|| Self {
            place: thread.place.clone(),
            thread_id,
            last: Scheduling { policy, cpus: thread.grant.cpus.clone() },
            niceness: sched::niceness_of(thread_id).ok().filter(|_| !policy.is_realtime()),
            slack_ns: slack_ns(root, thread_id).filter(|_| !policy.is_realtime()),
            stopped_checks: 0,
            was_frozen: false,
            moved_checks: 0,
        })
    }

    /// Compares a running thread with its last settings. A thread that has ended is not compared.
    pub fn check(&mut self, root: &Root, seen: &str) -> Vec<Reason> {
        let found = (sched::policy_of(self.thread_id), sched::affinity_of(Some(self.thread_id)));
        let (Ok(policy), Ok(mut cpus)) = found else { return Vec::new() };
        self.moved_checks = if cpus == self.last.cpus { 0 } else { self.moved_checks.saturating_add(1) };
        // The kernel moves the threads of a CPU that goes offline a while before it lists that CPU as offline.
        if self.moved_checks < MOVED_CHECKS {
            cpus.clone_from(&self.last.cpus);
        }
        let mut reasons = self.compare(&Scheduling { policy, cpus }, root, seen);
        if policy == Policy::Other {
            reasons.extend(self.renice(sched::niceness_of(self.thread_id).ok(), seen));
            reasons.extend(self.set_slack(slack_ns(root, self.thread_id), seen));
        }
        reasons.extend(self.stop(is_stopped(root, &task(self.thread_id)), seen));
        reasons
    }

    /// Reports a thread that a control group of its own freezes. It has the state of a sleeping one.
    pub fn check_frozen(&mut self, root: &Root, seen: &str) -> Option<Reason> {
        let is_frozen = is_frozen(root, &task(self.thread_id));
        let was_frozen = std::mem::replace(&mut self.was_frozen, is_frozen);
        (is_frozen && !was_frozen).then(|| {
            stopped(&format!("the measuring thread ({}) was frozen by its control group ({seen})", self.place))
        })
    }

    /// Compares a thread that has ended with its last settings.
    pub fn check_end(&mut self, threads: &[ThreadInfo<'_>], root: &Root, seen: &str) -> Vec<Reason> {
        let thread = threads.iter().find(|thread| thread.grant.thread_id == self.thread_id);
        let at_end = thread.and_then(|thread| thread.at_end);
        at_end.map(|at_end| self.compare(at_end, root, seen)).unwrap_or_default()
    }

    fn compare(&mut self, found: &Scheduling, root: &Root, seen: &str) -> Vec<Reason> {
        let before = std::mem::replace(&mut self.last, found.clone());
        let mut reasons = Vec::new();
        if found.policy != before.policy {
            reasons.push(changed(format!(
                "the policy of {} was changed from {} to {} ({seen})",
                self.place, before.policy, found.policy
            )));
        }
        // The kernel itself moves the threads of a CPU that goes offline.
        let went_offline = || {
            let online = online_cpus(root);
            before.cpus.iter().any(|&cpu| !online.contains(cpu))
        };
        if found.cpus != before.cpus && !went_offline() {
            let list = |cpus: &[u32]| cpus.iter().copied().collect::<CpuList>().in_words();
            reasons.push(moved(&format!(
                "{} was moved from {} to {} ({seen})",
                self.place,
                list(&before.cpus),
                list(&found.cpus)
            )));
        }
        reasons
    }

    /// Reports a thread that a signal or a debugger has stopped, once for each stop.
    fn stop(&mut self, is_stopped: bool, seen: &str) -> Option<Reason> {
        self.stopped_checks = if is_stopped { self.stopped_checks.saturating_add(1) } else { 0 };
        (self.stopped_checks == STOPPED_CHECKS).then(|| {
            stopped(&format!("the measuring thread ({}) was stopped by a signal or a debugger ({seen})", self.place))
        })
    }

    fn set_slack(&mut self, found: Option<u64>, seen: &str) -> Option<Reason> {
        let (before, now) = (self.slack_ns?, found?);
        self.slack_ns = found;
        (now != before).then(|| Reason {
            id: "slack.changed".to_owned(),
            text: format!("the timer slack of {} was changed from {before} ns to {now} ns ({seen})", self.place),
            remedy: "let no other program write its timerslack_ns in /proc, and run again".to_owned(),
        })
    }

    fn renice(&mut self, found: Option<i32>, seen: &str) -> Option<Reason> {
        let (before, now) = (self.niceness?, found?);
        self.niceness = found;
        (now != before)
            .then(|| changed(format!("the niceness of {} was changed from {before} to {now} ({seen})", self.place)))
    }
}

/// The folder of a thread of this process, below `proc`.
fn task(thread_id: u32) -> String {
    format!("self/task/{thread_id}")
}

/// The timer slack of a thread, ns; `None` without the right to read it.
fn slack_ns(root: &Root, thread_id: u32) -> Option<u64> {
    root.read(&format!("proc/{thread_id}/timerslack_ns"))?.parse().ok()
}

fn changed(text: String) -> Reason {
    Reason {
        id: "policy.changed".to_owned(),
        text,
        remedy: "let no other program change it (chrt, renice, rtkit), and run again".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn reports_each_change_once_and_not_that_of_an_offline_cpu() {
        let scheduling = |policy, cpus: &[u32]| Scheduling { policy, cpus: cpus.to_vec() };
        let last = scheduling(Policy::Fifo(90), &[1]);
        let mut thread = Supervised {
            place: "CPU 1".to_owned(),
            thread_id: 1,
            last,
            niceness: Some(0),
            slack_ns: Some(50_000),
            stopped_checks: 0,
            was_frozen: false,
            moved_checks: 0,
        };
        let folder = tempfile::tempdir().unwrap();
        let cpus = folder.path().join("sys/devices/system/cpu");
        fs::create_dir_all(&cpus).unwrap();
        let mut compare = |found: Scheduling, online: &str| -> Vec<String> {
            fs::write(cpus.join("online"), online).unwrap();
            let reasons = thread.compare(&found, &Root::at(folder.path()), "now");
            reasons.into_iter().map(|reason| reason.text).collect()
        };
        assert_eq!(compare(scheduling(Policy::Fifo(90), &[1]), "0-1"), [] as [&str; 0]);
        let changed = ["the policy of CPU 1 was changed from fifo:90 to other (now)"];
        assert_eq!(compare(scheduling(Policy::Other, &[1]), "0-1"), changed);
        assert_eq!(compare(scheduling(Policy::Other, &[0]), "0"), [] as [&str; 0]);
        let back = ["CPU 1 was moved from CPU 0 to CPU 1 (now)"];
        assert_eq!(compare(scheduling(Policy::Other, &[1]), "0-1"), back);
        let text = "the niceness of CPU 1 was changed from 0 to 19 (now)";
        assert_eq!(thread.renice(Some(19), "now").unwrap().text, text);
        assert!(thread.renice(Some(19), "now").is_none() && thread.renice(None, "now").is_none());
        let reason = thread.set_slack(Some(300_000_000), "now").unwrap();
        assert_eq!(reason.id, "slack.changed");
        assert_eq!(reason.text, "the timer slack of CPU 1 was changed from 50000 ns to 300000000 ns (now)");
        assert!(thread.set_slack(Some(300_000_000), "now").is_none() && thread.set_slack(None, "now").is_none());
        let stops =
            [true, false, true, true, true, false, true, true].map(|stopped| thread.stop(stopped, "now").is_some());
        assert_eq!(stops, [false, false, false, true, false, false, false, true], "once for each stop");
    }

    #[test]
    fn reports_a_thread_that_its_control_group_freezes() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        write("proc/self/mountinfo", "31 23 0:27 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n");
        write("proc/self/cgroup", "6:freezer:/\n");
        write("proc/self/task/1/cgroup", "6:freezer:/ice\n");
        let last = Scheduling { policy: Policy::Other, cpus: vec![1] };
        let mut thread = Supervised {
            place: "CPU 1".to_owned(),
            thread_id: 1,
            last,
            niceness: None,
            slack_ns: None,
            stopped_checks: 0,
            was_frozen: false,
            moved_checks: 0,
        };
        let mut frozen = |state: &str| {
            write("sys/fs/cgroup/freezer/ice/freezer.state", state);
            thread.check_frozen(&root, "now").map(|reason| (reason.id, reason.text))
        };
        assert_eq!(frozen("THAWED\n"), None);
        let expected = ("punctual.stopped".to_owned(), "the measuring thread (CPU 1) was frozen by its control group (now): lateness of that time is not that of the machine".to_owned());
        assert_eq!((frozen("FROZEN\n"), frozen("FROZEN\n")), (Some(expected), None));
    }
}
