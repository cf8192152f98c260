//! A user's own program in words that terminal and HTML share.

use std::{cmp::Reverse, collections::HashMap};

use record::{ProcessThread, Program, Series, priority_in_words};

use crate::blame::{percent, unsigned};

/// Culprits and preempters that are named.
const NAMED: usize = 4;

/// How the program ended, or that it did not.
pub(crate) fn ending(program: &Program) -> String {
    match (program.exit_status, program.signal) {
        (Some(status), _) => format!("with exit status {status}"),
        (None, Some(signal)) if program.ended => format!("by signal {signal}"),
        (None, Some(signal)) => format!("not before the run, and then by signal {signal}, as punctual asked"),
        (None, None) if program.ended => "during the run".to_owned(),
        (None, None) => "not before the run".to_owned(),
    }
}

/// What made the wake-ups of a thread late, all its spikes taken together: `thread a 62 %, interrupt b 20 %`. `None`
/// where nothing was looked at.
pub(crate) fn culprits(series: &Series) -> Option<String> {
    let mut shares: HashMap<String, u64> = HashMap::new();
    for culprit in series.spikes.iter().flat_map(|spike| &spike.culprits) {
        *shares.entry(culprit.cause.title()).or_default() += culprit.ns;
    }
    let all_ns: u64 = shares.values().sum();
    let mut shares: Vec<(String, u64)> = shares.into_iter().collect();
    shares.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    let told: Vec<String> =
        shares.iter().take(NAMED).map(|(title, ns)| format!("{title} {}", percent(*ns, all_ns))).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Who took the CPU from a thread: `stress-ng (pid 412, real-time 50) 40 times, 23 ms`.
pub(crate) fn preempters(thread: &ProcessThread) -> String {
    let told = thread.preempted_by.iter().take(NAMED).map(|by| {
        let who = match by.tid {
            0 => "nobody: the CPU was withheld".to_owned(),
            tid => format!("{} (pid {tid}, {})", by.comm, priority_in_words(by.priority)),
        };
        let times = if by.count == 1 { "once".to_owned() } else { format!("{} times", by.count) };
        format!("{who} {times}, {}", unsigned(by.waited_ns))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Threads that have no row.
pub(crate) fn threads_left(program: &Program) -> Vec<String> {
    let mut told = Vec::new();
    if program.other_threads > 0 {
        told.push(format!("{} other threads slept all the time, or were not asked for.", program.other_threads));
    }
    told
}

#[cfg(test)]
mod tests {
    use record::{Cause, CauseKind, Culprit, Preempter, Spike};

    use super::*;

    #[test]
    fn culprits_of_all_spikes_are_one_line() {
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
    fn a_preempter_is_named_with_its_priority() {
        let by = |comm: &str, tid, priority| Preempter { comm: comm.into(), tid, priority, count: 2, waited_ns: 5_000 };
        let thread =
            ProcessThread { preempted_by: vec![by("x", 7, 4), by("idle", 0, 120)], ..ProcessThread::default() };
        assert_eq!(
            preempters(&thread),
            "x (pid 7, real-time 95) 2 times, 5 us; nobody: the CPU was withheld 2 times, 5 us"
        );
    }
}
