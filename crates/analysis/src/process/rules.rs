//! The rules for real-time threads that a program broke, in words.

use record::{Breach, Monitor, MonitorReports, ProcessThread, Record, Rule, Series, grouped};

use super::threads;
use crate::format_unsigned_ns;

/// The number of breaches that are named for each rule.
const NAMED: usize = 4;

/// The broken rules, with the threads and what to change, one paragraph each. The rules are those of the kernel's
/// runtime verification monitors, whose reports are named, too. Empty if none was broken.
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
    let reported = reported(rule, threads);
    match (breaches.is_empty(), reported) {
        (_, None) => listed(title, &named.collect::<Vec<_>>(), breaches.len(), remedy),
        (true, Some(reported)) => Some(format!("{title}: only the kernel's monitors reported {reported}. {remedy}")),
        (false, Some(reported)) => {
            let remedy = format!("The kernel's monitors reported {reported}. {remedy}");
            listed(title, &named.collect::<Vec<_>>(), breaches.len(), &remedy)
        }
    }
}

/// The threads that the kernel's monitors reported for a rule: `servo 3 times (sleep)`.
fn reported(rule: Rule, threads: &[(&Series, &ProcessThread)]) -> Option<String> {
    let of_thread = |(series, thread): &(&Series, &ProcessThread)| {
        let reports = thread.monitor_reports.iter().filter(|reports| rule_of(reports, thread) == rule);
        let role = series.role.clone();
        reports.map(move |reports| (role.clone(), *reports)).collect::<Vec<_>>()
    };
    let mut all: Vec<(String, MonitorReports)> = threads.iter().flat_map(of_thread).collect();
    all.sort_by_key(|(_, reports)| std::cmp::Reverse(reports.count));
    let one = |(role, reports): &(String, MonitorReports)| {
        format!("{role} {} ({})", times(reports.count), reports.monitor.name())
    };
    let named: Vec<String> = all.iter().take(NAMED).map(one).collect();
    let more = if all.len() > NAMED { format!(", and {} more", all.len() - NAMED) } else { String::new() };
    (!all.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

/// The rule that a monitor checks. The monitor `sleep` checks two, and does not report which of them was broken.
fn rule_of(reports: &MonitorReports, thread: &ProcessThread) -> Rule {
    let has_broken = |rule| thread.breaches.iter().any(|breach| breach.rule == rule);
    match reports.monitor {
        Monitor::Pagefault => Rule::PageFault,
        Monitor::Sleep if has_broken(Rule::WakeUp) && !has_broken(Rule::Sleep) => Rule::WakeUp,
        Monitor::Sleep => Rule::Sleep,
        Monitor::Wakeup => Rule::WakeUp,
        Monitor::Nomiss => Rule::Deadline,
        Monitor::Stall => Rule::Stall,
    }
}

pub(super) fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", grouped(count)) }
}

fn in_words(role: &str, breach: &Breach) -> String {
    let times = times(breach.count);
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

    #[test]
    fn names_the_reports_of_the_kernel_with_the_same_rule() {
        let breach = |rule| Breach { rule, count: 5, first_ns: 1_000, last_ns: 1_000, ..Breach::default() };
        let report = |monitor, count| MonitorReports { monitor, count, ..MonitorReports::default() };
        let series = |role: &str, breaches, monitor_reports| {
            let thread = ProcessThread { breaches, monitor_reports, ..ProcessThread::default() };
            Series { role: role.into(), kind: SeriesKind::Process(Box::new(thread)), ..Series::default() }
        };
        let series = vec![
            series("a", vec![breach(Rule::PageFault)], vec![report(Monitor::Pagefault, 1), report(Monitor::Sleep, 2)]),
            series("b", vec![breach(Rule::WakeUp)], vec![report(Monitor::Sleep, 7), report(Monitor::Wakeup, 6)]),
        ];
        let paragraphs = broken_rules(&Record { series, ..Record::default() });
        let begins = [
            "Page faults: a 5 times (at 1 us). The kernel's monitors reported a once (pagefault). Lock",
            "Waits that a real-time thread should not use: only the kernel's monitors reported a 2 times (sleep). Wait",
            "Waits for threads of lower priority: b 5 times (at 1 us). The kernel's monitors reported b 7 times (sleep), \
             b 6 times (wakeup). Give",
        ];
        assert_eq!(paragraphs.len(), begins.len(), "{paragraphs:?}");
        assert!(paragraphs.iter().zip(begins).all(|(paragraph, begin)| paragraph.starts_with(begin)), "{paragraphs:?}");
    }
}
