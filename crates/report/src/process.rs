//! A watched program as text for terminal and HTML.

use std::{cmp::Reverse, collections::HashMap};

use record::{ProcessThread, Program, Series, grouped, priority_in_words};

use crate::blame::{percent, unsigned};

/// The number of culprits and preempting threads that are named.
const NAMED: usize = 4;

/// The end of the program: exit status, signal, or none during the run.
pub(crate) fn ending(program: &Program) -> String {
    match (program.exit_status, program.signal) {
        (Some(status), _) => format!("with exit status {status}"),
        (None, Some(signal)) if program.ended => format!("by signal {signal}"),
        (None, Some(signal)) => format!("after the run, by signal {signal} from punctual"),
        (None, None) if program.ended => "during the run".to_owned(),
        (None, None) => "not during the run".to_owned(),
    }
}

/// The causes of a thread's late wake-ups, summed over all its spikes: `thread a 62 %, interrupt b 20 %`. `None` if no
/// spike was explained.
pub(crate) fn culprits(series: &Series) -> Option<String> {
    let mut shares: HashMap<String, u64> = HashMap::new();
    for culprit in series.spikes.iter().flat_map(|spike| &spike.culprits) {
        *shares.entry(culprit.cause.title()).or_default() += culprit.ns;
    }
    let all_ns: u64 = shares.values().sum();
    let mut shares: Vec<(String, u64)> = shares.into_iter().collect();
    shares.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    let named: Vec<String> =
        shares.iter().take(NAMED).map(|(title, ns)| format!("{title} {}", percent(*ns, all_ns))).collect();
    (!named.is_empty()).then(|| named.join("; "))
}

/// The threads that preempted a thread: `stress-ng (pid 412, real-time 50) 40 times, 23 ms`.
pub(crate) fn preempters(thread: &ProcessThread) -> String {
    let named = thread.preempted_by.iter().take(NAMED).map(|by| {
        let who = match by.tid {
            0 => "no thread: the CPU was withheld".to_owned(),
            tid => {
                let own = if by.own { "punctual itself, thread " } else { "" };
                format!("{own}{} (pid {tid}, {})", by.comm, priority_in_words(by.priority))
            }
        };
        let times = if by.count == 1 { "once".to_owned() } else { format!("{} times", grouped(by.count)) };
        format!("{who} {times}, {}", unsigned(by.waited_ns))
    });
    named.collect::<Vec<_>>().join("; ")
}

/// The kernel's monitors that watched the program: `pagefault, sleep`. `None` without any.
pub(crate) fn monitors(program: &Program) -> Option<String> {
    let watched = program.monitors.iter().filter(|used| used.problem.is_empty());
    let names: Vec<&str> = watched.map(|used| used.monitor.name()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// A note about threads without a row.
pub(crate) fn threads_left(program: &Program) -> Vec<String> {
    if program.other_threads == 0 {
        return Vec::new();
    }
    vec![format!("{} other threads slept all the time or were not selected.", grouped(program.other_threads))]
}

#[cfg(test)]
mod tests {
    use record::{Cause, CauseKind, Culprit, Monitor, MonitorUse, Preempter, Spike};

    use super::*;

    #[test]
    fn sums_culprits_over_all_spikes() {
        let spike = |shares: &[(&str, u64)]| Spike {
            culprits: shares
                .iter()
                .map(|&(name, ns)| Culprit { cause: Cause::new(CauseKind::Interrupt, name), ns })
                .collect(),
            ..Spike::default()
        };
        let series = Series { spikes: vec![spike(&[("a", 30), ("b", 10)]), spike(&[("b", 60)])], ..Series::default() };
        assert_eq!(culprits(&series).unwrap(), "interrupt b 70 %; interrupt a 30 %");
        assert_eq!(culprits(&Series::default()), None);
    }

    #[test]
    fn names_a_preempting_thread_with_its_priority() {
        let by = |comm: &str, tid, priority| Preempter {
            comm: comm.into(),
            tid,
            priority,
            own: false,
            count: 2,
            waited_ns: 5_000,
        };
        let thread =
            ProcessThread { preempted_by: vec![by("x", 7, 4), by("idle", 0, 120)], ..ProcessThread::default() };
        assert_eq!(
            preempters(&thread),
            "x (pid 7, real-time 95) 2 times, 5 us; no thread: the CPU was withheld 2 times, 5 us"
        );
    }

    #[test]
    fn names_the_monitors_that_watched() {
        let used = |monitor, problem: &str| MonitorUse { monitor, problem: problem.to_owned() };
        let monitors_of = |all: &[MonitorUse]| monitors(&Program { monitors: all.to_vec(), ..Program::default() });
        let all = [used(Monitor::Pagefault, ""), used(Monitor::Sleep, "no slot"), used(Monitor::Stall, "")];
        assert_eq!(monitors_of(&all).as_deref(), Some("pagefault, stall"));
        assert_eq!(monitors_of(&all[1..2]), None);
    }
}
