//! What a user's program did, in plain words.

use std::cmp::Reverse;

use record::{Outcome, Overruns, ProcessThread, Record, Series, ThreadTimes, Verdict};

use crate::format_ns;

/// What the figures of a program say, one sentence each: its deadlines, what made it miss them, who kept the CPU from it.
/// Empty for a record of another kind.
#[must_use]
pub fn conclusion(record: &Record) -> Vec<String> {
    let mut threads = threads(record);
    if threads.is_empty() {
        return match &record.program {
            Some(_) => vec!["No thread that was asked for ran meanwhile.".to_owned()],
            None => Vec::new(),
        };
    }
    let mut told = Vec::new();
    threads.sort_by_key(|(series, thread)| (Reverse(series.missed), Reverse(thread.longest.map(|c| c.response_ns()))));
    told.extend(
        threads.iter().filter(|(series, _)| series.period_ns > 0).map(|(series, thread)| deadlines(series, thread)),
    );
    told.extend(threads.first().and_then(|(series, thread)| longest(series, thread)));
    let latest = threads.iter().max_by_key(|(series, _)| series.max_ns);
    told.extend(latest.and_then(|(series, _)| wake_up(series)));
    let preempted = threads.iter().max_by_key(|(_, thread)| thread.times.preempted_ns);
    told.extend(preempted.and_then(|(series, thread)| preemptions(series, thread)));
    told
}

/// What a user's own program must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Wake-up latency of any thread, ns.
    pub latency_ns: Option<u64>,
    /// Deadlines missed, of all threads together.
    pub missed: Option<u64>,
}

/// The verdict of these limits; `None` when there is none. Figures that are incomplete support no PASS.
#[must_use]
pub fn verdict(record: &Record, limits: Limits) -> Option<Verdict> {
    if limits == Limits::default() {
        return None;
    }
    let threads = threads(record);
    let missed: u64 = threads.iter().map(|(series, _)| series.missed).sum();
    let (samples, cycles) = threads.iter().fold((0, 0), |(samples, cycles), (series, thread)| {
        (samples + series.samples, cycles + thread.cycles * u64::from(series.period_ns > 0))
    });
    let late = threads.first().and_then(|(series, _)| {
        let limit_ns = i64::try_from(limits.latency_ns?).unwrap_or(i64::MAX);
        let max_ns = series.max_ns.filter(|&max_ns| max_ns > limit_ns)?;
        let (max, limit) = (format_ns(max_ns), format_ns(limit_ns));
        Some(format!("{} waited {max} for a CPU once it was woken, where {limit} is the limit", series.role))
    });
    let many = limits.missed.filter(|&limit| missed > limit);
    let many = many.map(|limit| format!("{missed} deadlines were missed, where {limit} is the limit"));
    let failed: Vec<String> = [late, many].into_iter().flatten().collect();
    let (outcome, reason) = match () {
        () if !failed.is_empty() => (Outcome::Fail, failed.join("; ")),
        () if !record.validity.valid => (Outcome::Invalid, "the run is not valid".to_owned()),
        () if record.caveats.iter().any(|caveat| caveat.kind == "overflow") => {
            (Outcome::Inconclusive, "events were lost, so a limit may have been exceeded unseen".to_owned())
        }
        () if samples == 0 || limits.missed.is_some() && cycles == 0 => {
            (Outcome::Inconclusive, "no thread with a limit ran meanwhile".to_owned())
        }
        () => (Outcome::Pass, format!("no limit was exceeded in {samples} wake-ups")),
    };
    Some(Verdict { outcome, reason })
}

/// The threads of a program, the one with the latest wake-up first.
#[must_use]
pub fn threads(record: &Record) -> Vec<(&Series, &ProcessThread)> {
    let mut threads: Vec<_> =
        record.series.iter().filter_map(|series| Some((series, series.kind.process()?))).collect();
    threads.sort_by_key(|(series, _)| Reverse(series.max_ns));
    threads
}

fn deadlines(series: &Series, thread: &ProcessThread) -> String {
    let (role, period) = (&series.role, ns(series.period_ns));
    let all = thread.cycles + thread.skipped;
    if series.missed == 0 {
        let rate = match all / 3 {
            0 => String::new(),
            many => format!("; at 95 % confidence it misses fewer than one in {many}"),
        };
        return format!("{role} missed none of {all} deadlines of {period}{rate}.");
    }
    let too_long = match thread.overruns {
        0 => None,
        1 => Some(format!("1 cycle took longer{}", overruns(thread.overrun_by))),
        count => Some(format!("{count} cycles took longer{}", overruns(thread.overrun_by))),
    };
    let skipped = (thread.skipped > 0).then(|| format!("{} did not come", thread.skipped));
    let why: Vec<String> = [too_long, skipped].into_iter().flatten().collect();
    format!("{role} missed {} of {all} deadlines of {period}: {}.", series.missed, why.join(", "))
}

fn overruns(by: Option<Overruns>) -> String {
    let Some(Overruns { by_work, by_waiting, by_blocking }) = by else { return String::new() };
    let parts = [
        (by_work, "mostly its own work"),
        (by_waiting, "mostly waiting for a CPU"),
        (by_blocking, "mostly waiting for something else"),
    ];
    let mut parts: Vec<_> = parts.into_iter().filter(|(count, _)| *count > 0).collect();
    parts.sort_by_key(|(count, _)| Reverse(*count));
    let told: Vec<String> = match &parts[..] {
        [(_, what)] => vec![(*what).to_owned()],
        parts => parts.iter().map(|(count, what)| format!("{count} {what}")).collect(),
    };
    format!(" ({})", told.join(", "))
}

/// The longest cycle, and whether the program or the machine made it so.
fn longest(series: &Series, thread: &ProcessThread) -> Option<String> {
    let cycle = thread.longest?;
    let response_ns = cycle.response_ns();
    let ThreadTimes { running_ns, blocked_ns, .. } = cycle.times;
    let waiting_ns = cycle.times.waiting_ns();
    let parts =
        [(running_ns, "its own work"), (waiting_ns, "waiting for a CPU"), (blocked_ns, "waiting for something else")];
    let parts: Vec<String> =
        parts.iter().filter(|(part, _)| *part > 0).map(|(part, what)| format!("{} {what}", ns(*part))).collect();
    let meaning = if running_ns >= response_ns.div_ceil(2) {
        "the program itself took the time"
    } else if waiting_ns >= blocked_ns {
        "others had the CPU"
    } else {
        "it waited for a page, a device or a lock of the kernel, or was stopped"
    };
    let role = &series.role;
    Some(format!("The longest cycle of {role} took {}: {}. There {meaning}.", ns(response_ns), parts.join(", ")))
}

fn wake_up(series: &Series) -> Option<String> {
    let max_ns = series.max_ns?;
    let worst = series.spikes.iter().max_by_key(|spike| spike.lateness_ns);
    let culprit = worst.and_then(|spike| spike.culprits.first());
    let culprit = culprit.map_or_else(String::new, |culprit| format!(", mostly for: {}", culprit.cause.title()));
    Some(format!("{} waited {} for a CPU after its latest wake-up{culprit}.", series.role, format_ns(max_ns)))
}

fn preemptions(series: &Series, thread: &ProcessThread) -> Option<String> {
    let by = thread.preempted_by.first()?;
    let times = |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let (role, waited) = (&series.role, ns(thread.times.preempted_ns));
    let who = match by.tid {
        0 => "no thread at all: the kernel withheld the CPU".to_owned(),
        _ => format!("{} ({})", by.comm, times(by.count)),
    };
    Some(format!(
        "{role} lost its CPU {} and waited {waited} to have one again, mostly for {who}.",
        times(thread.preemptions)
    ))
}

fn ns(ns: u64) -> String {
    format_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use record::{Cause, CauseKind, Culprit, Cycle, Preempter, Program, SeriesKind, Spike, Why};

    use super::*;

    fn record() -> Record {
        let times =
            ThreadTimes { running_ns: 400_000, ready_ns: 700_000, preempted_ns: 100_000, ..ThreadTimes::default() };
        let thread = ProcessThread {
            cycles: 9_997,
            overruns: 2,
            overrun_by: Some(Overruns { by_work: 0, by_waiting: 2, by_blocking: 0 }),
            skipped: 3,
            longest: Some(Cycle { at_ns: 0, times }),
            preemptions: 51,
            times: ThreadTimes { preempted_ns: 23_000_000, ..ThreadTimes::default() },
            preempted_by: vec![Preempter { comm: "stress-ng".into(), tid: 5, count: 50, ..Preempter::default() }],
            ..ProcessThread::default()
        };
        let cause = Cause { why: Some(Why::HigherPriority), ..Cause::new(CauseKind::Thread, "stress-ng") };
        let spike = Spike { lateness_ns: 700_000, culprits: vec![Culprit { cause, ns: 700_000 }], ..Spike::default() };
        let servo = Series {
            role: "servo".into(),
            period_ns: 1_000_000,
            missed: 5,
            max_ns: Some(700_000),
            spikes: vec![spike],
            kind: SeriesKind::Process(Box::new(thread)),
            ..Series::default()
        };
        Record { program: Some(Program::default()), series: vec![servo], ..Record::default() }
    }

    #[test]
    fn a_program_that_is_late_is_told_why() {
        let told = conclusion(&record());
        assert_eq!(
            told,
            [
                "servo missed 5 of 10000 deadlines of 1 ms: 2 cycles took longer (mostly waiting for a CPU), 3 did not come.",
                "The longest cycle of servo took 1.2 ms: 400 us its own work, 800 us waiting for a CPU. There others had \
                 the CPU.",
                "servo waited 700 us for a CPU after its latest wake-up, mostly for: thread stress-ng, of higher priority.",
                "servo lost its CPU 51 times and waited 23 ms to have one again, mostly for stress-ng (50 times).",
            ]
        );
    }

    #[test]
    fn none_missed_is_not_never() {
        let mut record = record();
        let thread = ProcessThread { cycles: 6000, ..ProcessThread::default() };
        record.series[0].kind = SeriesKind::Process(Box::new(thread));
        record.series[0].missed = 0;
        let told = conclusion(&record);
        assert_eq!(
            told[0],
            "servo missed none of 6000 deadlines of 1 ms; at 95 % confidence it misses fewer than one in 2000."
        );
        assert_eq!(told.len(), 2, "no cycle, no preemption: {told:?}");
    }

    #[test]
    fn a_record_of_another_kind_has_no_conclusion_and_one_without_threads_says_so() {
        assert!(conclusion(&Record::default()).is_empty());
        let nothing = Record { program: Some(Program::default()), ..Record::default() };
        assert_eq!(conclusion(&nothing), ["No thread that was asked for ran meanwhile."]);
    }

    #[test]
    fn limits_decide_the_verdict_and_lost_events_leave_it_open() {
        let mut record = Record { validity: record::Validity { valid: true, reasons: vec![] }, ..record() };
        record.series[0].samples = 7;
        let outcome = |record: &Record, latency_ns, missed| {
            let verdict = verdict(record, Limits { latency_ns, missed });
            verdict.map(|verdict| (verdict.outcome, verdict.reason))
        };
        assert_eq!(outcome(&record, None, None), None);
        let reason = "servo waited 700 us for a CPU once it was woken, where 600 us is the limit; 5 deadlines were missed, \
                      where 4 is the limit";
        assert_eq!(outcome(&record, Some(600_000), Some(4)), Some((Outcome::Fail, reason.to_owned())));
        let of = |record: &Record| outcome(record, Some(700_000), Some(5)).unwrap().0;
        assert_eq!(of(&record), Outcome::Pass);
        record.caveats.push(record::Caveat { kind: "overflow".into(), text: String::new() });
        assert_eq!(of(&record), Outcome::Inconclusive);
        record.validity.valid = false;
        assert_eq!(of(&record), Outcome::Invalid);
        assert_eq!(
            of(&Record { validity: record::Validity { valid: true, reasons: vec![] }, ..Record::default() }),
            Outcome::Inconclusive
        );
    }

    #[test]
    fn the_program_itself_is_told_from_the_machine() {
        let says = |running_ns, preempted_ns, blocked_ns, expected: &str| {
            let times = ThreadTimes { running_ns, preempted_ns, blocked_ns, ..ThreadTimes::default() };
            let thread = ProcessThread { longest: Some(Cycle { at_ns: 0, times }), ..ProcessThread::default() };
            let told = longest(&Series::default(), &thread).unwrap();
            assert!(told.contains(expected), "{told}");
        };
        says(60, 20, 20, "the program itself");
        says(30, 40, 30, "others had the CPU");
        says(30, 20, 50, "a lock of the kernel");
    }
}
