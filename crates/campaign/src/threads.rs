//! Where threads of their own go: those that a user names, and many alike.

use machine::CpuList;
use sys::sched::Policy;

use crate::ThreadPlan;

/// Priority of the thread with the shortest period, where none is asked for.
const HIGHEST_PRIORITY: usize = 90;

/// A thread as a user asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadAsk {
    /// What it is called.
    pub role: String,
    /// Time between its deadlines, ns.
    pub period_ns: u64,
    /// Its CPU, where it matters to the user.
    pub cpu: Option<u32>,
    /// Its policy, where it matters to the user.
    pub policy: Option<Policy>,
}

impl ThreadAsk {
    /// The two threads of machine-tool control: steps every 25 us, position every 1 ms.
    #[must_use]
    pub fn base_and_servo() -> Vec<Self> {
        let thread = |role: &str, period_ns| Self { role: role.to_owned(), period_ns, cpu: None, policy: None };
        vec![thread("base", 25_000), thread("servo", 1_000_000)]
    }
}

/// Puts each thread on its CPU, or on `otherwise`, with its policy, or one by its period: the shorter, the higher.
#[must_use]
pub fn place(asks: &[ThreadAsk], otherwise: u32) -> Vec<ThreadPlan> {
    let by_period = |period_ns: u64| {
        let mut shorter: Vec<u64> = asks.iter().map(|ask| ask.period_ns).filter(|&other| other < period_ns).collect();
        shorter.sort_unstable();
        shorter.dedup();
        Policy::Fifo(HIGHEST_PRIORITY.saturating_sub(shorter.len()).max(1) as u8)
    };
    asks.iter()
        .map(|ask| ThreadPlan {
            role: ask.role.clone(),
            cpu: ask.cpu.unwrap_or(otherwise),
            policy: ask.policy.unwrap_or_else(|| by_period(ask.period_ns)),
            period_ns: ask.period_ns,
        })
        .collect()
}

/// `count` threads alike, one CPU after the other; none without CPUs.
#[must_use]
pub fn spread(count: usize, period_ns: u64, policy: Policy, cpus: &CpuList) -> Vec<ThreadPlan> {
    let places = cpus.iter().collect::<Vec<_>>().into_iter().cycle();
    let named = |(number, cpu)| ThreadPlan { role: format!("thread-{number}"), cpu, policy, period_ns };
    (1..=count).zip(places).map(named).collect()
}

/// The CPU for work that must be on time: the last isolated one of `usable`, or the last of all.
#[must_use]
pub fn best_cpu(usable: &CpuList, isolated: &CpuList) -> Option<u32> {
    usable.intersection(isolated).last().or_else(|| usable.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> CpuList {
        list.parse().unwrap()
    }

    #[test]
    fn the_shorter_the_period_the_higher_the_priority() {
        let placed = place(&ThreadAsk::base_and_servo(), 3);
        let told: Vec<_> = placed.iter().map(|t| (t.role.as_str(), t.cpu, t.policy, t.period_ns)).collect();
        assert_eq!(told, [("base", 3, Policy::Fifo(90), 25_000), ("servo", 3, Policy::Fifo(89), 1_000_000)]);
    }

    #[test]
    fn what_is_asked_for_is_given_and_equal_periods_share_a_priority() {
        let mut asks = ThreadAsk::base_and_servo();
        asks.push(ThreadAsk { role: "other".to_owned(), cpu: Some(1), ..asks[1].clone() });
        asks[0].policy = Some(Policy::Fifo(40));
        let told: Vec<_> = place(&asks, 0).iter().map(|t| (t.cpu, t.policy)).collect();
        assert_eq!(told, [(0, Policy::Fifo(40)), (0, Policy::Fifo(89)), (1, Policy::Fifo(89))]);
        let many: Vec<_> =
            (1..200).map(|n| ThreadAsk { period_ns: n * 1000, policy: None, ..asks[0].clone() }).collect();
        assert_eq!(place(&many, 0).last().unwrap().policy, Policy::Fifo(1));
    }

    #[test]
    fn many_go_round_the_cpus() {
        let placed = spread(5, 1000, Policy::Other, &cpus("1,3"));
        assert_eq!(placed.iter().map(|t| t.cpu).collect::<Vec<_>>(), [1, 3, 1, 3, 1]);
        assert_eq!(placed[4].role, "thread-5");
        assert!(spread(5, 1000, Policy::Other, &CpuList::new()).is_empty());
    }

    #[test]
    fn an_isolated_cpu_is_better_than_the_last() {
        assert_eq!(best_cpu(&cpus("0-3"), &cpus("1-2,9")), Some(2));
        assert_eq!(best_cpu(&cpus("0-3"), &CpuList::new()), Some(3));
        assert_eq!(best_cpu(&CpuList::new(), &cpus("1")), None);
    }
}
