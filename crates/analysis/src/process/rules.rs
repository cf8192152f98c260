//! The rules for real-time threads that a program broke, in words.

use record::{Breach, ProcessThread, Record, Rule, Series};

use super::threads;
use crate::format_unsigned_ns;

/// The number of breaches that are named for each rule.
const NAMED: usize = 4;

/// The broken rules, with the threads and what to change, one paragraph each. The rules are those of the kernel's
/// runtime verification monitors. Empty if none was broken.
#[must_use]
pub fn broken_rules(record: &Record) -> Vec<String> {
    let threads = threads(record);
    let rules = [Rule::PageFault, Rule::Sleep, Rule::WakeUp, Rule::Deadline, Rule::Stall];
    let mut paragraphs: Vec<String> = rules.into_iter().filter_map(|rule| broken(rule, &threads)).collect();
    paragraphs.extend(inherited(&threads));
    paragraphs
}

fn broken(rule: Rule, threads: &[(&Series, &ProcessThread)]) -> Option<String> {
    let mut breaches: Vec<(&str, &Breach)> = threads
        .iter()
        .flat_map(|(series, thread)| thread.breaches.iter().map(|breach| (series.role.as_str(), breach)))
        .filter(|(_, breach)| breach.rule == rule)
        .collect();
    breaches.sort_by_key(|(_, breach)| std::cmp::Reverse(breach.count));
    let named = breaches.iter().take(NAMED).map(|(role, breach)| in_words(role, breach));
    let (title, remedy) = match rule {
        Rule::PageFault => {
            ("Page faults", "Lock the memory with mlockall(MCL_CURRENT | MCL_FUTURE) before the first cycle.")
        }
        Rule::Sleep => (
            "Waits that a real-time thread should not use",
            "Wait for a futex (a mutex or a semaphore), in epoll_wait, or with clock_nanosleep until a time on \
             CLOCK_MONOTONIC.",
        ),
        Rule::WakeUp => (
            "Waits for threads of lower priority",
            "Give the other thread at least the same priority, or use a mutex with PTHREAD_PRIO_INHERIT.",
        ),
        Rule::Deadline => ("Missed deadlines of the deadline policy", "Increase its runtime or its deadline."),
        Rule::Stall => ("More than 1 s without a CPU", "The causes of delay name what had the CPU."),
    };
    listed(title, &named.collect::<Vec<_>>(), breaches.len(), remedy)
}

fn in_words(role: &str, breach: &Breach) -> String {
    let times = if breach.count == 1 { "once".to_owned() } else { format!("{} times", breach.count) };
    let by = match breach.rule {
        _ if breach.by.is_empty() => String::new(),
        Rule::Sleep => format!(" in {}", breach.by),
        _ => format!(" for {}", breach.by),
    };
    let when = match (format_unsigned_ns(breach.first_ns), format_unsigned_ns(breach.last_ns)) {
        (first, last) if first == last => format!("at {first}"),
        (first, last) => format!("from {first} to {last}"),
    };
    format!("{role} {times}{by} ({when})")
}

fn inherited(threads: &[(&Series, &ProcessThread)]) -> Option<String> {
    let threads: Vec<String> = threads
        .iter()
        .filter_map(|(series, thread)| Some((series, thread.policy_inherited_from.as_ref()?)))
        .map(|(series, parent)| format!("{} ({}) from {parent}", series.role, series.granted.policy))
        .collect();
    let remedy = "If this is not intended, start a thread with PTHREAD_EXPLICIT_SCHED and the policy SCHED_OTHER, and a process \
                  from a thread with SCHED_RESET_ON_FORK.";
    listed("Real-time policy inherited", &threads[..threads.len().min(NAMED)], threads.len(), remedy)
}

fn listed(title: &str, named: &[String], count: usize, remedy: &str) -> Option<String> {
    let more = if count > named.len() { format!(", and {} more", count - named.len()) } else { String::new() };
    (count > 0).then(|| format!("{title}: {}{more}. {remedy}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use record::SeriesKind;

    use super::*;

    #[test]
    fn names_threads_calls_and_remedies() {
        let breach = |rule, by: &str, count, last_ns| Breach { rule, by: by.into(), count, first_ns: 1_000, last_ns };
        let thread = ProcessThread {
            breaches: vec![
                breach(Rule::Sleep, "poll", 200, 9_800_000_000),
                breach(Rule::Sleep, "nanosleep", 1, 1_000),
                breach(Rule::WakeUp, "gui", 2, 2_000),
            ],
            policy_inherited_from: Some("main/7".into()),
            ..ProcessThread::default()
        };
        let mut series =
            Series { role: "servo".into(), kind: SeriesKind::Process(Box::new(thread)), ..Series::default() };
        series.granted.policy = "fifo:80".into();
        let record = Record { series: vec![series], ..Record::default() };
        let paragraphs = broken_rules(&record);
        assert!(
            paragraphs[0].starts_with(
                "Waits that a real-time thread should not use: servo 200 times in poll (from 1 us to 9.8 s), servo \
                 once in nanosleep (at 1 us). Wait for a futex"
            ),
            "{paragraphs:?}"
        );
        assert!(paragraphs[1].contains("servo 2 times for gui (from 1 us to 2 us)"), "{paragraphs:?}");
        assert!(paragraphs[2].starts_with("Real-time policy inherited: servo (fifo:80) from main/7. If"));
        assert_eq!(paragraphs.len(), 3);
        assert!(broken_rules(&Record::default()).is_empty());
    }
}
