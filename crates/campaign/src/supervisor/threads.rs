//! The policies and CPUs of the measuring threads.

use machine::CpuList;
use probes::{probe_threads::ThreadInfo, setup::Scheduling};
use record::Reason;
use sys::sched::{self, Policy};

use super::moved;

/// A thread of punctual with the settings that the kernel granted, or that were found last.
#[derive(Debug)]
pub(super) struct Supervised {
    place: String,
    thread_id: u32,
    last: Scheduling,
    /// Niceness of an ordinary thread.
    niceness: Option<i32>,
}

impl Supervised {
    /// A thread as it was set up; `None` for a thread of the EVL core, which Linux does not schedule.
    pub fn of(thread: &ThreadInfo) -> Option<Self> {
        let (thread_id, policy) = (thread.grant.thread_id, thread.grant.policy);
        thread.grant.evl_level.is_none().then(|| Self {
            place: thread.place.clone(),
            thread_id,
            last: Scheduling { policy, cpus: thread.grant.cpus.clone() },
            niceness: sched::niceness_of(thread_id).ok().filter(|_| !policy.is_realtime()),
        })
    }

    /// Compares a running thread with its last settings. A thread that has ended is not compared.
    pub fn check(&mut self, online: &CpuList, seen: &str) -> Vec<Reason> {
        let found = (sched::policy_of(self.thread_id), sched::affinity_of(Some(self.thread_id)));
        let (Ok(policy), Ok(cpus)) = found else { return Vec::new() };
        let mut reasons = self.compare(&Scheduling { policy, cpus }, online, seen);
        if policy == Policy::Other {
            reasons.extend(self.renice(sched::niceness_of(self.thread_id).ok(), seen));
        }
        reasons
    }

    /// Compares a thread that has ended with its last settings.
    pub fn check_end(&mut self, threads: &[ThreadInfo<'_>], online: &CpuList, seen: &str) -> Vec<Reason> {
        let thread = threads.iter().find(|thread| thread.grant.thread_id == self.thread_id);
        let at_end = thread.and_then(|thread| thread.at_end);
        at_end.map(|at_end| self.compare(at_end, online, seen)).unwrap_or_default()
    }

    fn compare(&mut self, found: &Scheduling, online: &CpuList, seen: &str) -> Vec<Reason> {
        let before = std::mem::replace(&mut self.last, found.clone());
        let mut reasons = Vec::new();
        if found.policy != before.policy {
            reasons.push(changed(format!(
                "the policy of {} was changed from {} to {} ({seen})",
                self.place, before.policy, found.policy
            )));
        }
        // The kernel itself moves the threads of a CPU that goes offline.
        let went_offline = before.cpus.iter().any(|&cpu| !online.contains(cpu));
        if found.cpus != before.cpus && !went_offline {
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

    fn renice(&mut self, found: Option<i32>, seen: &str) -> Option<Reason> {
        let (before, now) = (self.niceness?, found?);
        self.niceness = found;
        (now != before)
            .then(|| changed(format!("the niceness of {} was changed from {before} to {now} ({seen})", self.place)))
    }
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
    use super::*;

    #[test]
    fn reports_each_change_once_and_not_that_of_an_offline_cpu() {
        let scheduling = |policy, cpus: &[u32]| Scheduling { policy, cpus: cpus.to_vec() };
        let last = scheduling(Policy::Fifo(90), &[1]);
        let mut thread = Supervised { place: "CPU 1".to_owned(), thread_id: 1, last, niceness: Some(0) };
        let mut compare = |found: Scheduling, online: &str| -> Vec<String> {
            thread.compare(&found, &online.parse().unwrap(), "now").into_iter().map(|reason| reason.text).collect()
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
    }
}
