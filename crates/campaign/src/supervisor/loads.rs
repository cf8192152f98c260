//! The loads: that nobody stops, moves or throttles them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use loads::Running;
use machine::{CpuList, QuotaFiles, Root, online_cpus};
use probes::setup::Scheduling;
use record::Reason;
use sys::sched;

use super::is_stopped;

/// Shortest stop by a quota that counts, us.
const QUOTA_US: u64 = 1000;

/// The threads and quotas of the loads at the last check.
#[derive(Debug, Default)]
pub(super) struct LoadWatch {
    threads: HashMap<u32, Scheduling>,
    quotas: BTreeMap<u32, (QuotaFiles, Option<u64>)>,
    /// Each load is reported once for each kind of change.
    reported: BTreeSet<(String, &'static str)>,
}

impl LoadWatch {
    /// Remembers the threads of the loads.
    pub fn start(loads: &[Running], root: &Root) -> Self {
        let mut watch = Self::default();
        watch.check(loads, root, "at the start");
        watch.reported.clear();
        watch
    }

    /// Compares the loads with the last check.
    pub fn check(&mut self, loads: &[Running], root: &Root, seen: &str) -> Vec<Reason> {
        let (online, own) = (online_cpus(root), QuotaFiles::of(root, "self"));
        let mut threads = HashMap::new();
        let mut found = Vec::new();
        for (load, process) in loads.iter().flat_map(|running| running.processes(root)) {
            if is_stopped(root, &process.to_string()) {
                found.push((load.clone(), "load.stopped", "was stopped by a signal or a debugger".to_owned()));
            }
            for thread in numbers(root, &format!("proc/{process}/task")) {
                let read = (sched::policy_of(thread), sched::affinity_of(Some(thread)));
                let (Ok(policy), Ok(cpus)) = read else { continue };
                let now = Scheduling { policy, cpus };
                let change = self.threads.get(&thread).and_then(|before| change(before, &now, &online));
                found.extend(change.map(|what| (load.clone(), "load.changed", what)));
                threads.insert(thread, now);
            }
            let quota = self.quota(process, root, &own);
            found
                .extend(quota.map(|us| {
                    (load.clone(), "load.quota", format!("was stopped by a CPU quota for {} ms", us / 1000))
                }));
        }
        self.threads = threads;
        found.retain(|(load, id, _)| self.reported.insert((load.clone(), id)));
        found.into_iter().map(|(load, id, what)| reason(&load, id, &what, seen)).collect()
    }

    /// Time since the last check for which a quota stopped a process, us; `None` if it is that of punctual itself, which
    /// has a reason of its own.
    fn quota(&mut self, process: u32, root: &Root, own: &QuotaFiles) -> Option<u64> {
        let files = QuotaFiles::of(root, &process.to_string());
        let now = files.stopped_us(root);
        let (before_files, before) = self.quotas.insert(process, (files.clone(), now))?;
        // The count of another group is not known before it was moved there.
        let us = now?.saturating_sub(if before_files == files { before? } else { now? });
        (us >= QUOTA_US && files != *own).then_some(us)
    }
}

/// The change of a thread in words; `None` without one. The kernel itself moves the threads of a CPU that goes offline.
fn change(before: &Scheduling, now: &Scheduling, online: &CpuList) -> Option<String> {
    if before.policy != now.policy {
        return Some(format!("has a thread whose policy was changed from {} to {}", before.policy, now.policy));
    }
    let list = |cpus: &[u32]| cpus.iter().copied().collect::<CpuList>().in_words();
    let went_offline = before.cpus.iter().any(|&cpu| !online.contains(cpu));
    (before.cpus != now.cpus && !went_offline)
        .then(|| format!("has a thread that was moved from {} to {}", list(&before.cpus), list(&now.cpus)))
}

fn numbers(root: &Root, folder: &str) -> Vec<u32> {
    root.list(folder).iter().filter_map(|name| name.parse().ok()).collect()
}

fn reason(load: &str, id: &str, what: &str, seen: &str) -> Reason {
    let remedy = match id {
        "load.stopped" => "let no other program stop it, and run again",
        "load.quota" => "let no other program move it into a control group with a quota, and run again",
        _ => "let no other program change it (taskset, chrt, a cpuset), and run again",
    };
    Reason { id: id.to_owned(), text: format!("the load {load} {what} ({seen})"), remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use sys::sched::Policy;

    use super::*;

    #[test]
    fn describes_the_change_of_a_thread() {
        let scheduling = |policy, cpus: &[u32]| Scheduling { policy, cpus: cpus.to_vec() };
        let (before, online) = (scheduling(Policy::Other, &[0]), "0-1".parse().unwrap());
        assert_eq!(change(&before, &before, &online), None);
        let words = |now| change(&before, &now, &online).unwrap();
        assert_eq!(
            words(scheduling(Policy::Unknown(5), &[0])),
            "has a thread whose policy was changed from other to policy 5"
        );
        assert_eq!(words(scheduling(Policy::Other, &[1])), "has a thread that was moved from CPU 0 to CPU 1");
        let moved = scheduling(Policy::Other, &[1]);
        assert_eq!(change(&before, &moved, &"1".parse().unwrap()), None, "its CPU went offline");
    }
}
