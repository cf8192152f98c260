mod outside;

use proptest::prelude::*;
use record::{Emulation, Far, Histogram, LoadProof, Phase, Reason, Spike, State};

use super::*;
use crate::{ladder, profiles};

/// Cycles of 1 ms that show at most one stall an hour: 3 h.
const ENOUGH: u64 = 10_800_000;

/// A series with `counts` wake-ups at each lateness.
fn series(phase: &str, cpu: u32, period_ns: u64, counts: &[(i64, u64)]) -> Series {
    let mut raw = Histogram::default();
    counts.iter().for_each(|&(lateness_ns, count)| raw.add(lateness_ns, count));
    let late: Vec<i64> = counts.iter().map(|&(lateness_ns, _)| lateness_ns).collect();
    let corrected = raw.corrected(&late, period_ns);
    Series {
        phase: phase.into(),
        role: "timer".into(),
        cpu: Some(cpu),
        period_ns,
        samples: raw.total(),
        missed: corrected.total() - raw.total(),
        max_ns: late.iter().max().copied(),
        raw,
        corrected,
        ..Series::default()
    }
}

/// A valid record of a complete run with one phase at rest and one under load, as long as its series need.
fn record(series: Vec<Series>) -> Record {
    let mut record = Record::default();
    record.validity.valid = true;
    let load = LoadProof { name: "cpu".into(), spec: "cpu".into(), ran: true, ..LoadProof::default() };
    record.phases = vec![
        Phase { name: "rest".into(), ..Phase::default() },
        Phase { name: "load".into(), asked_loads: vec!["cpu".into()], loads: vec![load], ..Phase::default() },
    ];
    let needed_ns = |series: &Series| series.corrected.total().saturating_mul(series.period_ns);
    for phase in &mut record.phases {
        let of_phase = series.iter().filter(|series| series.phase == phase.name);
        phase.duration_ns = of_phase.map(needed_ns).max().unwrap_or_default();
    }
    record.state = State::Complete;
    record.series = series;
    record
}

fn profile(name: &str) -> &'static Profile {
    profiles().iter().find(|profile| profile.name == name).unwrap()
}

/// A limit of 100 us at 1 ms; one stall an hour is tolerated.
fn control() -> &'static Profile {
    profile("control-1khz")
}

fn judged(series: Vec<Series>) -> UseVerdict {
    judge(&record(series), control())
}

#[test]
fn passes_with_enough_wake_ups_within_the_limit() {
    let verdict = judged(vec![
        series("rest", 0, 1_000_000, &[(5_000, ENOUGH - 1), (41_300, 1)]),
        series("load", 0, 1_000_000, &[(5_000, ENOUGH - 1), (100_000, 1)]),
    ]);
    assert_eq!(verdict.outcome, Outcome::Pass);
    assert_eq!(
        verdict.reason,
        "at most 100 us late (CPU 0, under load), within the limit of 100 us; at 95 % fewer than 24 stalls a day, 1 per hour is \
         tolerated"
    );
    let figures = (verdict.worst_ns, verdict.samples, verdict.over_limit, verdict.missed);
    assert_eq!(figures, (Some(100_000), 2 * ENOUGH, 0, 0));
    assert_eq!((verdict.tolerates.as_str(), verdict.clean_so_far), ("1 per hour", false));
}

#[test]
fn a_clean_run_that_is_too_short_says_how_far_it_came() {
    let verdict = judged(vec![
        series("rest", 0, 1_000_000, &[(5_000, ENOUGH)]),
        series("load", 1, 1_000_000, &[(5_000, ENOUGH - 1)]),
    ]);
    assert_eq!((verdict.outcome, verdict.clean_so_far), (Outcome::Inconclusive, true));
    let mut short = vec![series("load", 1, 1_000_000, &[(5_000, 30_000)])];
    let verdict = judged(short.clone());
    assert_eq!((verdict.outcome, verdict.clean_so_far), (Outcome::Inconclusive, true));
    assert_eq!(
        verdict.reason,
        "none late so far, at 95 % fewer than 360 stalls an hour (CPU 1, under load), but 1 per hour is tolerated: \
         run `punctual measure timer --period 1ms --duration 198m --profile control-1khz --load cpu`"
    );
    short.push(series("rest", 0, 1_000_000, &[(5_000, 1_000), (200_000, 1)]));
    assert!(!judged(short).clean_so_far);
}

/// A series of `hours` every 1 ms with one late wake-up at each of these seconds.
fn long(hours: u64, late_at_s: &[u64]) -> Series {
    let late = late_at_s.len() as u64;
    let counts = [(5_000, hours * 3_600_000 - late), (300_000, late)];
    let mut series = series("rest", 0, 1_000_000, if late == 0 { &counts[..1] } else { &counts });
    let spike = |&at_s: &u64| Spike { at_ns: at_s * 1_000_000_000, lateness_ns: 300_000, ..Spike::default() };
    series.spikes = late_at_s.iter().map(spike).collect();
    series.spikes_total = late;
    series
}

#[test]
fn tolerated_stalls_do_not_fail() {
    let of = |hours, late_at_s: &[u64]| judged(vec![long(hours, late_at_s)]);
    assert_eq!(of(2, &[5, 100, 200]).outcome, Outcome::Fail, "3 in 2 hours");
    assert_eq!(of(2, &[5, 100]).outcome, Outcome::Inconclusive, "2 in 2 hours");
    let rare = of(10, &[5, 100]);
    assert_eq!((rare.outcome, rare.over_limit), (Outcome::Pass, 2));
    assert_eq!(
        rare.reason,
        "at most 300 us late (CPU 0, at rest), rarely above the limit of 100 us; at 95 % fewer than 16 stalls a day, 1 per \
         hour is tolerated"
    );
    let stall: Vec<u64> = (0..10).collect();
    assert_eq!(of(20, &stall).outcome, Outcome::Inconclusive, "a stall of ten seconds counts as ten");
}

#[test]
fn an_unfinished_run_shows_what_it_has_seen() {
    let of = |series: Vec<Series>| {
        let mut record = record(series);
        record.state = State::Partial;
        so_far(&record, control())
    };
    assert_eq!(of(vec![]), SoFar::Nothing);
    assert_eq!(of(vec![series("rest", 0, 1_000_000, &[(5_000, 3)])]), SoFar::NoneLate);
    assert_eq!(of(vec![series("rest", 0, 9_000_000, &[(5_000, 3)])]), SoFar::Nothing, "too coarse");
    assert_eq!(of(vec![series("rest", 0, 1_000_000, &[(5_000, 3), (300_000, 1)])]), SoFar::TooLate);
    assert_eq!(of(vec![long(2, &[5])]), SoFar::SomeLate);
}

#[test]
fn a_fail_names_no_tolerated_stall() {
    let often: Vec<u64> = (0..20).map(|i| i * 1000).collect();
    let mut rare = series("rest", 0, 1_000_000, &[(5_000, 10 * 3_600_000), (900_000, 1)]);
    rare.spikes = vec![Spike { at_ns: 5_000_000_000, lateness_ns: 900_000, ..Spike::default() }];
    rare.spikes_total = 1;
    let verdict = judged(vec![rare, Series { cpu: Some(1), ..long(10, &often) }]);
    assert_eq!(verdict.outcome, Outcome::Fail);
    assert_eq!(verdict.reason, "300 us late on CPU 1, at rest, above the limit of 100 us");
}

/// Looking at every moment finds too many false results with the bound of a fixed length.
#[test]
fn a_run_until_decided_needs_stronger_evidence() {
    let of = |until_decided, hours, late_at_s: &[u64]| {
        let mut record = record(vec![long(hours, late_at_s)]);
        record.scenario.until_decided = until_decided;
        judge(&record, control()).outcome
    };
    assert_eq!(
        (of(false, 3, &[]), of(true, 3, &[]), of(true, 4, &[])),
        (Outcome::Pass, Outcome::Inconclusive, Outcome::Pass)
    );
    assert_eq!((of(false, 1, &[9, 99]), of(true, 1, &[9, 99])), (Outcome::Fail, Outcome::Inconclusive));
    let often: Vec<u64> = (0..20).map(|i| i * 10).collect();
    assert_eq!(of(true, 1, &often), Outcome::Fail);
}

#[test]
fn a_pass_of_an_emulated_guest_is_not_about_hardware() {
    let mut record = record(vec![series("rest", 0, 1_000_000, &[(5_000, ENOUGH)])]);
    for (emulation, text) in [
        (
            Emulation::VirtualTime,
            "; measured in virtual time: this is about the paths of the kernel, not about hardware",
        ),
        (Emulation::Software, "; measured on emulated CPUs: this is not about hardware"),
    ] {
        record.machine.emulation = Some(emulation);
        let verdict = judge(&record, control());
        assert!(verdict.outcome == Outcome::Pass && verdict.reason.ends_with(text), "{}", verdict.reason);
    }
}

#[test]
fn judges_by_the_exact_maximum() {
    let bucket = |max_ns| judged(vec![series("rest", 0, 1_000_000, &[(5_000, ENOUGH), (max_ns, 1)])]);
    assert_eq!((bucket(100_000).outcome, bucket(100_000).over_limit), (Outcome::Pass, 0));
    assert_eq!((bucket(100_001).outcome, bucket(100_001).over_limit), (Outcome::Inconclusive, 1));
}

#[test]
fn counts_missed_deadlines_of_the_use() {
    let missed =
        |period_ns| judged(vec![series("rest", 0, period_ns, &[(5_000, 20_000), (2_740_000, 1), (900_000, 3)])]).missed;
    assert_eq!([missed(125_000), missed(1_000_000), missed(4_000_000)], [2, 2, 2]);
}

#[test]
fn published_figures_are_inconclusive() {
    for reference in crate::references() {
        for verdict in ladder(reference) {
            assert_eq!(verdict.outcome, Outcome::Inconclusive);
            assert!(verdict.reason.starts_with("published elsewhere, not measured by punctual"), "{}", verdict.reason);
        }
        assert_eq!(crate::verdict(reference, &[]), None, "not invalid either");
    }
    let reason = |name: &str| judge(&crate::find_reference(name).unwrap(), control()).reason;
    assert!(reason("vim3l-evl").contains("(largest published lateness 42.6 us, switch-10us-cache)"));
    assert!(!reason("athlon-rtai").contains("largest"), "only jitter was published");
    // The same holds for series that would pass.
    let mut passing = record(vec![
        series("rest", 0, 1_000_000, &[(5_000, ENOUGH)]),
        series("load", 0, 1_000_000, &[(5_000, ENOUGH)]),
    ]);
    assert_eq!(judge(&passing, control()).outcome, Outcome::Pass);
    passing.published = Some(Published::default());
    assert_eq!(judge(&passing, control()).outcome, Outcome::Inconclusive);
}

#[test]
fn one_late_wake_up_fails() {
    let mut all: Vec<_> = (0..4).map(|cpu| series("rest", cpu, 1_000_000, &[(5_000, 20_000)])).collect();
    all.push(series("load", 1, 1_000_000, &[(5_000, 20_000), (2_740_000, 1)]));
    let verdict = judged(all);
    assert_eq!(verdict.outcome, Outcome::Fail);
    assert_eq!(
        verdict.reason,
        "2.74 ms late on CPU 1, under load, above the limit of 100 us; CPU 0,2-3 stayed within it"
    );
    assert_eq!((verdict.over_limit, verdict.missed, verdict.worst_where.as_str()), (1, 2, "CPU 1, under load"));
    assert_eq!(
        verdict.statement,
        "CPU 1, under load: 3 of 20,003 cycles later than 100 us, in 1 stall: at 95 % fewer than 854 stalls an hour"
    );
}

#[test]
fn fails_with_few_wake_ups() {
    assert_eq!(judged(vec![series("rest", 0, 1_000_000, &[(200_000, 1)])]).outcome, Outcome::Fail);
}

#[test]
fn every_cpu_needs_enough_wake_ups() {
    let verdict = judged(vec![
        series("load", 0, 1_000_000, &[(5_000, 10 * ENOUGH)]),
        series("load", 1, 1_000_000, &[(5_000, 4_999)]),
    ]);
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(verdict.reason.contains("(CPU 1, under load)"), "{}", verdict.reason);
    assert!(verdict.statement.starts_with("CPU 1, under load: none of 4,999 cycles"), "{}", verdict.statement);
}

/// 5000 wake-ups every 20 us last 0.1 s, which is 10 cycles of a use with a period of 10 ms.
#[test]
fn wake_ups_between_two_cycles_of_the_use_are_no_further_cycles() {
    let record = record(vec![series("rest", 0, 20_000, &[(5_000, 5_000)])]);
    let verdict = judge(&record, profile("hifi-streamer"));
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(verdict.statement.contains("none of 10 cycles"), "{}", verdict.statement);
}

#[test]
fn a_run_that_ended_early_does_not_pass() {
    let all = || vec![series("rest", 0, 1_000_000, &[(5_000, ENOUGH)])];
    let mut record = record(all());
    record.phases.truncate(1);
    const HOUR_NS: u64 = 3_600_000_000_000;
    let outcome = |record: &Record| judge(record, control()).outcome;
    record.phases[0].planned_ns = Some(3 * HOUR_NS);
    assert_eq!(outcome(&record), Outcome::Pass);
    record.phases[0].planned_ns = Some(4 * HOUR_NS);
    assert_eq!(
        judge(&record, control()).reason,
        "the record contradicts itself (the run is complete, but the phase `rest` lasted 10800000000000 of 14400000000000 \
         ns), so it does not show whether 100 us holds; the worst measured was 5 us (CPU 0, at rest)"
    );
    for state in [State::Interrupted, State::Partial] {
        record.state = state;
        assert_eq!(outcome(&record), Outcome::Inconclusive, "{state:?}");
        let reason = "the run ended early, after 3 h of 4 h in the phase `at rest`: run it to its end";
        assert_eq!(judge(&record, control()).reason, reason);
    }
    record.phases[0].planned_ns = None;
    assert_eq!(outcome(&record), Outcome::Inconclusive, "it still runs, or its machine lost power");
    record.state = State::Interrupted;
    assert_eq!(outcome(&record), Outcome::Pass, "a run until Ctrl-C ends as planned");
    record.series[0].notes = vec![format!("the thread left CPU 0 during the run: {} there", record::SERIES_ENDS)];
    let reason = judge(&record, control()).reason;
    assert!(reason.starts_with("the run ended early: CPU 0: the thread left CPU 0 during the run"), "{reason}");
    record.series[0].notes.clear();
    record.phases[0].planned_samples = Some(40_000);
    assert_eq!(outcome(&record), Outcome::Inconclusive, "not all samples");
    record.phases[0].planned_ns = Some(4 * HOUR_NS);
    record.series = vec![series("rest", 0, 1_000_000, &[(200_000, 1)])];
    assert_eq!(outcome(&record), Outcome::Fail, "a late wake-up counts in any case");
}

/// A class A stream of 3 h that was always sent in time.
fn talker(change: impl FnOnce(&mut record::Talker)) -> Record {
    let mut send = Histogram::default();
    send.add(1_000, 8 * ENOUGH);
    let mut talker =
        record::Talker { frames: 8 * ENOUGH, max_delta_ns: Some(1_000), send, ..record::Talker::default() };
    change(&mut talker);
    let kind = SeriesKind::Stream(record::Stream::Talker(Box::new(talker)));
    record(vec![Series { role: "talker".into(), kind, ..series("rest", 0, 125_000, &[(5_000, 8 * ENOUGH)]) }])
}

#[test]
fn frames_that_did_not_leave_or_arrive_fail_a_stream() {
    let of = |record: &Record| judge(record, profile("avb-class-a"));
    assert_eq!(of(&talker(|_| ())).outcome, Outcome::Pass);
    let refused = of(&talker(|talker| talker.refused = 100_000));
    assert_eq!((refused.outcome, refused.missed), (Outcome::Fail, 100_000));
    assert_eq!(
        refused.reason,
        "100,000 of 86,500,000 frames are missing, 100,000 of them refused by the kernel (talker on CPU 0, at rest): a missing \
         frame counts as later than any limit"
    );
    let mut one_way = talker(|_| ());
    let listener = record::Listener { frames: 8 * ENOUGH - 8_000, lost: 8_000, loss_bursts: 1, ..Default::default() };
    let kind = SeriesKind::Stream(record::Stream::Listener(Box::new(listener)));
    let host = Some("board-b".to_owned());
    one_way.series.push(Series { kind, host, phase: "rest".into(), period_ns: 125_000, ..Series::default() });
    assert!(of(&one_way).reason.contains("it is of board-b, but the record contains no such machine"));
    one_way.far = Some(Box::new(Far { host: "board-b".to_owned(), ..Far::default() }));
    let lost = of(&one_way);
    assert_eq!((lost.outcome, lost.missed), (Outcome::Inconclusive, 8_000), "1 stall in 3 h, 1 an hour is tolerated");
    assert!(lost.statement.contains("8,000 of 86,400,000 cycles later than 50 us, in 1 stall:"), "{}", lost.statement);
}

#[test]
fn a_cpu_that_measured_nothing_prevents_pass() {
    let mut all = vec![series("rest", 0, 1_000_000, &[(5_000, ENOUGH)]), series("rest", 1, 1_000_000, &[])];
    let verdict = judged(all.clone());
    assert_eq!((verdict.outcome, verdict.clean_so_far), (Outcome::Inconclusive, false));
    assert!(
        verdict.reason.starts_with("no cycle of the use was measured on CPU 1, at rest: run `"),
        "{}",
        verdict.reason
    );
    all.push(series("rest", 2, 1_000_000, &[(200_000, 900)]));
    assert_eq!(judged(all).outcome, Outcome::Fail);
}

#[test]
fn a_run_that_is_shorter_than_a_period_does_not_contradict_itself() {
    let reasons = |planned_ns| {
        let mut short = record(vec![series("rest", 0, 1_000_000_000, &[])]);
        (short.phases[0].duration_ns, short.phases[0].planned_ns) = (0, Some(planned_ns));
        short.invalid_reasons().into_iter().map(|reason| reason.text).collect::<Vec<_>>()
    };
    assert_eq!(reasons(500_000_000), Vec::<String>::new());
    assert_eq!(reasons(5_000_000_000), ["the run is complete, but the phase `rest` lasted 0 of 5000000000 ns"]);
}

/// A thread of a program with 7 cycles, of which its histogram counts `counted` of 5 ns, and whose longest took `longest_ns`.
fn of_program(counted: u64, longest_ns: u64) -> SeriesKind {
    let times = record::ThreadTimes { running_ns: longest_ns, ..record::ThreadTimes::default() };
    let longest = Some(record::Cycle { times, ..record::Cycle::default() });
    let mut thread = record::ProcessThread { cycles: 7, longest, ..record::ProcessThread::default() };
    thread.response.add(5, counted);
    SeriesKind::Process(Box::new(thread))
}

/// Each change makes a record that would pass contradict itself.
#[test]
fn a_record_that_contradicts_itself_is_invalid() {
    type Change = fn(&mut Record);
    let changes: [(Change, &str); 23] = [
        (
            // The thread that was late was taken out.
            |r| {
                r.uses =
                    vec![UseVerdict { profile: "a-use".into(), worst_ns: Some(500_000_000), ..UseVerdict::default() }];
            },
            "the verdict on a-use is about a lateness of 500000000 ns, which no thread has",
        ),
        (|r| (r.series[0].period_ns, r.phases[0].duration_ns) = (0, 1), "its wake-ups have no period"),
        (
            |r| r.series[0].corrected.add(5_000, 100_000_000_000),
            "its corrected histogram counts 100,010,800,001 deadlines",
        ),
        (
            |r| {
                r.series[0].corrected = [5_000].into_iter().fold(Histogram::default(), |mut h, v| {
                    h.record(v);
                    h
                });
            },
            "its corrected histogram counts 1 ",
        ),
        (|r| r.series[0].samples = 0, "it has 0 samples, but its histogram counts 10,800,001"),
        (|r| r.series[0].max_ns = Some(1_000), "its maximum is 1000 ns, but it counts a value of "),
        (|r| r.series[0].maxima.add(0, 95_000), "its maximum is 90001 ns, but it counts a value of 95000 ns"),
        (
            |r| {
                r.series[0].max_at_ns = Some(3_000_000_000);
                (0..5).for_each(|second| r.series[0].maxima.add(second * 1_000_000_000, 1));
            },
            "its maximum is 90001 ns, but its maxima over time are at most 1 ns",
        ),
        (
            |r| {
                r.series[0].first_deadline_ns = 5;
                r.series.push(r.series[0].clone());
            },
            "CPU 0, rest: the record contains it twice",
        ),
        (|r| r.phases[0].duration_ns *= 10, "the phase `rest` lasted 108000010000000 ns, but its deadlines only "),
        (|r| r.phases[0].duration_ns = 3_000_000_000, "do not fit in the 3000000000 ns of its phase"),
        (|r| r.series[0].period_ns = 1 << 60, "do not fit in the "),
        (
            |r| r.validity.reasons = vec![Reason { id: "cpu.moved".into(), ..Reason::default() }],
            "a reason why it is not: cpu.moved",
        ),
        (|r| r.phases[1].loads.clear(), "the load cpu of the phase `load` has no proof that it ran"),
        (|r| r.phases[0].planned_ns = Some(u64::MAX), "but the phase `rest` lasted "),
        (
            |r| {
                r.phases.clear();
                r.state = State::Interrupted;
            },
            "CPU 0, rest: the record does not contain its phase",
        ),
        (
            |r| {
                r.scenario.policy = "fifo:90".into();
                r.series[0].granted.policy = "other".into();
            },
            "policy fifo:90 was requested, but other granted",
        ),
        (
            |r| {
                r.scenario.policy = "fifo:90".into();
                r.series[0].granted.policy = "fifo:90".into();
            },
            "the memory of a real-time thread was not locked",
        ),
        (|r| r.series[0].spikes = vec![Spike { lateness_ns: 5_000_000, ..Spike::default() }], "it lists 1 of 0 spikes"),
        (|r| r.series[0].missed = u64::MAX, "do not fit in the"),
        (
            |r| {
                let noise = record::Noise { observed_ns: 2 * r.phases[0].duration_ns, ..record::Noise::default() };
                r.series[0].kind = SeriesKind::Gaps(Box::new(noise));
            },
            "it observed its CPU for 21600002000000 ns, but its phase lasted 10800001000000 ns",
        ),
        (|r| r.series[0].kind = of_program(5, 5), "it has 7 cycles, but its histogram counts 5"),
        (|r| r.series[0].kind = of_program(7, 4), "its longest cycle took 4 ns, but it counts one of 5 ns"),
    ];
    for (change, text) in changes {
        let mut record = record(vec![series("rest", 0, 1_000_000, &[(5_000, ENOUGH), (90_001, 1)])]);
        assert_eq!(judge(&record, control()).outcome, Outcome::Pass);
        change(&mut record);
        let verdict = judge(&record, control());
        assert_eq!(verdict.outcome, Outcome::Invalid, "{text}: {}", verdict.reason);
        assert!(
            verdict.reason.starts_with("the record contradicts itself (") && verdict.reason.contains(text),
            "{}",
            verdict.reason
        );
        let read =
            record::file::parse(&record::file::to_json(&Record { schema: record::SCHEMA.into(), ..record })).unwrap();
        assert!(!read.validity.valid && read.validity.reasons.iter().any(|reason| reason.id == record::INCONSISTENT));
        assert_eq!(judge(&read, control()).outcome, Outcome::Invalid, "also as read");
    }
}

#[test]
fn missed_deadlines_without_a_late_wake_up_support_no_pass() {
    let of = |missed, counts: &[(i64, u64)]| {
        judged(vec![Series { missed, ..series("rest", 0, 1_000_000, &[&[(5_000, ENOUGH)], counts].concat()) }])
    };
    let verdict = of(200_000, &[]);
    let doubt =
        "200,000 deadlines passed without a late wake-up (CPU 0, at rest), so it is not known how late the thread was";
    assert_eq!((verdict.outcome, verdict.reason.as_str()), (Outcome::Inconclusive, doubt));
    assert!(!verdict.clean_so_far);
    assert_eq!(of(2, &[]).outcome, Outcome::Inconclusive, "more than one stall in 3 hours");
    assert_eq!(of(200_000, &[(300_000, 40_000)]).outcome, Outcome::Fail, "late wake-ups count in any case");
    let slow = |missed| {
        let slow = Series { missed, ..series("rest", 0, 10_000, &[(5_000, 100 * ENOUGH)]) };
        judged(vec![slow]).outcome
    };
    assert_eq!((slow(10), slow(11)), (Outcome::Pass, Outcome::Inconclusive), "11 in a row can be later than 100 us");
}

#[test]
fn a_record_without_a_maximum_supports_no_pass() {
    let verdict = judged(vec![Series { max_ns: None, ..series("rest", 0, 1_000_000, &[(5_000, ENOUGH)]) }]);
    let doubt = "the record does not contain the largest value of CPU 0, at rest";
    assert_eq!((verdict.outcome, verdict.reason.as_str()), (Outcome::Inconclusive, doubt));
    let talker = judge(&talker(|talker| talker.max_delta_ns = None), profile("avb-class-a"));
    assert_eq!(talker.outcome, Outcome::Inconclusive, "{}", talker.reason);
}

/// Interrupts every 1 ms for 3 h, of which `latest` were `latest_ns` late. Their times are known to 5 us.
fn within_error(latest_ns: i64, latest: u64) -> UseVerdict {
    let interrupts = record::Interrupts { max_uncertainty_ns: Some(5_000), ..record::Interrupts::default() };
    let kind = SeriesKind::Interrupts(Box::new(interrupts));
    judged(vec![Series { kind, ..series("rest", 0, 1_000_000, &[(5_000, ENOUGH), (latest_ns, latest)]) }])
}

#[test]
fn a_pass_says_that_the_time_before_the_handler_was_not_measured() {
    let of = |zero| {
        let kind = SeriesKind::Interrupts(Box::new(record::Interrupts { zero, ..record::Interrupts::default() }));
        let verdict = judged(vec![Series { kind, ..series("rest", 0, 1_000_000, &[(5_000, ENOUGH)]) }]);
        assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.reason);
        let says = verdict.reason.ends_with("; from the kernel's stamp on, the time before it was not measured");
        (says, verdict.statement.contains("CPU 0, at rest, from the kernel's stamp on: none of "))
    };
    assert_eq!([Zero::Handler, Zero::Trace].map(of), [(true, true); 2]);
    assert_eq!([Zero::Counter, Zero::Edge].map(of), [(false, false); 2]);
}

#[test]
fn a_pass_of_a_talker_says_where_its_times_end() {
    let reason = |record: &Record| {
        let verdict = judge(record, profile("avb-class-a"));
        assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.reason);
        verdict.reason
    };
    let mut record = talker(|_| ());
    let alone = "; until a frame was handed to the kernel, its time on the wire and its arrival were not measured";
    assert!(reason(&record).ends_with(alone), "{}", reason(&record));
    let listener = record::Listener { frames: 8 * ENOUGH, ..Default::default() };
    let kind = SeriesKind::Stream(record::Stream::Listener(Box::new(listener)));
    record.series.push(Series { kind, phase: "rest".into(), period_ns: 125_000, ..Series::default() });
    let received = "; until a frame was handed to the kernel, its time on the wire was not measured";
    assert!(reason(&record).ends_with(received), "{}", reason(&record));
}

#[test]
fn a_listener_needs_a_capture() {
    let kind = SeriesKind::Stream(record::Stream::Listener(Box::default()));
    let mut record = record(vec![Series { kind, phase: "rest".into(), period_ns: 125_000, ..Series::default() }]);
    record.command = "punctual measure stream listen vb --profile x".split(' ').map(str::to_owned).collect();
    let verdict = judge(&record, control());
    let with_capture = "a listener's gaps are judged from a capture: run `punctual measure stream listen vb --profile x \
                        --capture FILE`";
    assert_eq!((verdict.outcome, verdict.reason.as_str()), (Outcome::Inconclusive, with_capture));
    let text = "the capture a.pcapng could not be analysed: it has no frames".to_owned();
    record.caveats.push(record::Caveat { kind: record::CAPTURE.to_owned(), text });
    let reason =
        "a listener's gaps are judged from a capture: the capture a.pcapng could not be analysed: it has no frames";
    assert_eq!(judge(&record, control()).reason, reason);
}

#[test]
fn an_empty_record_is_inconclusive() {
    let verdict = judged(vec![]);
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert_eq!(
        verdict.reason,
        "no wake-up was measured: run `punctual measure timer --period 1ms --duration 198m --profile control-1khz`"
    );
    assert_eq!((verdict.worst_ns, verdict.worst_where.as_str()), (None, ""));
    assert_eq!(judged(vec![series("rest", 0, 1_000_000, &[])]).outcome, Outcome::Inconclusive);
}

#[test]
fn a_much_longer_period_can_fail_but_not_pass() {
    let judge = |period_ns, lateness_ns| judged(vec![series("rest", 0, period_ns, &[(lateness_ns, ENOUGH)])]);
    assert_eq!(judge(8_000_000, 5_000).outcome, Outcome::Pass);
    assert_eq!(judge(8_000_001, 200_000).outcome, Outcome::Fail);
    let coarse = judge(10_000_000, 5_000);
    assert_eq!(coarse.outcome, Outcome::Inconclusive);
    assert!(coarse.reason.starts_with("measured every 10 ms, too coarse for a use every 1 ms: run `punctual"));
}

#[test]
fn a_much_shorter_period_passes_with_a_note() {
    let verdict = judged(vec![series("rest", 0, 100_000, &[(5_000, 10 * ENOUGH)])]);
    assert_eq!(verdict.outcome, Outcome::Pass);
    assert!(
        verdict.reason.ends_with("measured every 100 us, so CPUs used less deep idle states than with a cycle of 1 ms")
    );
    assert!(verdict.statement.starts_with("CPU 0, at rest: none of 10,800,000 cycles"), "{}", verdict.statement);

    let also_slowly = series("load", 0, 1_000_000, &[(5_000, ENOUGH)]);
    let verdict = judged(vec![series("rest", 0, 100_000, &[(5_000, 10 * ENOUGH)]), also_slowly]);
    assert!(!verdict.reason.contains("idle states"), "{}", verdict.reason);
}

#[test]
fn a_load_that_did_not_run_prevents_pass() {
    let mut record = record(vec![series("load", 0, 1_000_000, &[(5_000, ENOUGH)])]);
    assert_eq!(judge(&record, control()).outcome, Outcome::Pass);
    record.phases[1].loads[0].ran = false;
    let verdict = judge(&record, control());
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(verdict.reason.starts_with("the load cpu did not run to its end"), "{}", verdict.reason);
    record.phases[1].loads[0].ran = true;
    let loads = vec![record.phases[1].loads[0].clone(), LoadProof { spec: "net".into(), ..LoadProof::default() }];
    record.far = Some(Box::new(Far { host: "board-b".into(), loads, ..Far::default() }));
    let verdict = judge(&record, control());
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(verdict.reason.starts_with("the load net did not run to its end on board-b"), "{}", verdict.reason);
}

#[test]
fn an_invalid_record_has_figures() {
    let mut record = record(vec![series("load", 0, 1_000_000, &[(5_000, 9), (200_000, 1)])]);
    record.validity.valid = false;
    record.validity.reasons = vec![Reason { id: "policy.refused".into(), ..Reason::default() }];
    let verdict = judge(&record, control());
    assert_eq!(verdict.outcome, Outcome::Invalid);
    assert_eq!(
        verdict.reason,
        "the run did not go as requested (policy.refused), so it does not show whether 100 us holds; \
         the worst measured was 200 us (CPU 0, under load)"
    );
    assert_eq!((verdict.worst_ns, verdict.samples, verdict.over_limit), (Some(200_000), 10, 1));
    assert!(verdict.statement.starts_with("of the threads as they ran: CPU 0, under load"), "{}", verdict.statement);
}

#[test]
fn notes_excellent_results() {
    let verdict = judge(&record(vec![series("rest", 0, 125_000, &[(7_323, 8 * ENOUGH)])]), profile("avb-class-a"));
    let reason = "at most 7.32 us late (CPU 0, at rest), within the limit of 50 us, excellent (under 10 us); ";
    assert!(verdict.reason.starts_with(reason), "{}", verdict.reason);
}

#[test]
fn early_wake_ups_do_not_count_as_late() {
    let verdict = judged(vec![series("rest", 0, 1_000_000, &[(-500_000, 1), (5_000, ENOUGH)])]);
    assert_eq!((verdict.outcome, verdict.worst_ns), (Outcome::Pass, Some(5_000)));
}

#[test]
fn quotes_loads_for_the_shell() {
    let mut record = record(vec![series("load", 0, 1_000_000, &[(5_000, 1)])]);
    record.phases[1].asked_loads = vec!["stress-ng:--vm 2 --x 'y'".into()];
    record.phases[1].loads[0].spec = record.phases[1].asked_loads[0].clone();
    assert!(judge(&record, control()).reason.ends_with(r"--load 'stress-ng:--vm 2 --x '\''y'\'''`"));
}

/// The ladder as text, one entry per use.
fn text(record: &Record) -> String {
    let line = |verdict: UseVerdict| {
        let UseVerdict { profile, outcome, reason, statement, .. } = verdict;
        format!("{profile}: {}\n  {reason}\n  {statement}\n", outcome.name())
    };
    ladder(record).into_iter().map(line).collect()
}

/// A tuned machine: 200 us period, 10 s at rest and 15 s under load, two CPUs.
#[test]
fn ladder_of_a_tuned_machine() {
    let ladder = text(&record(vec![
        series("rest", 0, 200_000, &[(2_000, 40_000), (4_000, 9_999), (7_300, 1)]),
        series("rest", 1, 200_000, &[(2_000, 40_000), (4_000, 9_999), (6_900, 1)]),
        series("load", 0, 200_000, &[(3_000, 60_000), (6_000, 14_990), (14_200, 10)]),
        series("load", 1, 200_000, &[(3_000, 60_000), (6_000, 14_999), (18_700, 1)]),
    ]));
    insta::assert_snapshot!(ladder);
}

/// An untuned machine: 1 ms period, one stall of 12.4 ms on CPU 1 under load.
#[test]
fn ladder_of_an_untuned_machine() {
    let ladder = text(&record(vec![
        series("rest", 0, 1_000_000, &[(55_000, 9_990), (90_000, 10)]),
        series("rest", 1, 1_000_000, &[(55_000, 9_990), (95_000, 10)]),
        series("load", 0, 1_000_000, &[(60_000, 14_000), (310_000, 1_000)]),
        series("load", 1, 1_000_000, &[(60_000, 14_000), (310_000, 987), (12_400_000, 1)]),
    ]));
    insta::assert_snapshot!(ladder);
}

fn some_series() -> impl Strategy<Value = Series> {
    let phase = prop_oneof![Just("rest"), Just("load")];
    let period_ns = prop_oneof![Just(200_000u64), Just(1_000_000), Just(20_000_000)];
    let counts = prop::collection::vec((-50_000i64..300_000, prop_oneof![0u64..30_000, 0u64..300_000_000]), 0..5);
    (phase, 0u32..4, period_ns, counts)
        .prop_map(|(phase, cpu, period_ns, counts)| series(phase, cpu, period_ns, &counts))
}

/// The late cycles and all cycles of a statement such as `CPU 0, at rest: 3 of 20,003 cycles later than 100 us`.
fn counts(statement: &str) -> Option<(u64, u64)> {
    let (late, rest) = statement.rsplit_once(": at 95 %").map_or(statement, |(seen, _)| seen).split_once(" of ")?;
    let late = late.rsplit(' ').next()?.parse().ok()?;
    Some((late, rest.split(' ').next()?.parse().ok()?))
}

fn rank(outcome: Outcome) -> usize {
    [Outcome::Pass, Outcome::Inconclusive, Outcome::Fail, Outcome::Invalid].iter().position(|&o| o == outcome).unwrap()
}

proptest! {
    /// More late wake-ups in the same time do not improve a verdict.
    #[test]
    fn more_late_wake_ups_are_not_better(
        all in prop::collection::vec(some_series(), 1..6),
        more in prop::collection::vec((100_001i64..300_000, 1u64..100), 1..4),
        at in any::<prop::sample::Index>(),
    ) {
        let before = judged(all.clone());
        let mut worse = all;
        let changed = at.get_mut(&mut worse);
        for &(lateness_ns, count) in &more {
            changed.raw.add(lateness_ns, count);
            changed.corrected.add(lateness_ns, count);
            changed.samples += count;
            changed.max_ns = changed.max_ns.max(Some(lateness_ns));
        }
        let after = judged(worse);
        // The added wake-ups are a tenth of a second at most, of the seconds that the verdict is about.
        prop_assert!(rank(after.outcome) >= rank(before.outcome), "{before:?} {after:?}");
        prop_assert!(after.worst_ns >= before.worst_ns && after.over_limit >= before.over_limit);
    }

    /// A use with a tighter limit does not get a better verdict.
    #[test]
    fn a_tighter_limit_is_not_better(all in prop::collection::vec(some_series(), 0..6), limit_ns in 1i64..300_000) {
        let record = record(all);
        let loose = Profile { limit_ns, ..control().clone() };
        let tight = Profile { limit_ns: (limit_ns / 2).max(1), ..control().clone() };
        prop_assert!(rank(judge(&record, &tight).outcome) >= rank(judge(&record, &loose).outcome));
    }

    /// Records as a run cannot write them: any counts, maxima, durations and states.
    #[test]
    fn no_verdict_contradicts_its_statement(
        all in prop::collection::vec(some_series(), 0..5),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8, 0u64..100_000_000_000), 0..4),
        state in prop::sample::select(vec![State::Complete, State::Interrupted, State::Partial]),
        until_decided in any::<bool>(),
        duration_ns in prop::option::of(0u64..100_000_000_000),
    ) {
        let mut record = record(all);
        record.state = state;
        record.scenario.until_decided = until_decided;
        if let Some(duration_ns) = duration_ns {
            record.phases.iter_mut().for_each(|phase| phase.duration_ns = duration_ns);
        }
        for (at, what, number) in changes {
            if record.series.is_empty() {
                break;
            }
            let series = at.get_mut(&mut record.series);
            match what {
                0 => series.samples = number,
                1 => series.corrected.add(5_000, number),
                2 => series.raw.add(5_000, number),
                3 => series.max_ns = Some(number.cast_signed()),
                4 => series.missed = number,
                5 => series.period_ns = number,
                6 => (series.raw, series.max_ns) = (Histogram::default(), None),
                _ => series.phase = "elsewhere".into(),
            }
        }
        for verdict in ladder(&record) {
            let text = format!("{} {}", verdict.reason, verdict.statement);
            prop_assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
            if verdict.outcome == Outcome::Pass {
                prop_assert!(record.obstacle().is_none());
                prop_assert!(!text.contains("every cycle may be late") && !text.contains("no cycle was measured"), "{text}");
            }
            if let Some((late, all)) = counts(&verdict.statement) {
                prop_assert!(late <= all, "{}", verdict.statement);
            }
        }
    }

    #[test]
    fn figures_and_outcome_agree(all in prop::collection::vec(some_series(), 0..6), valid in any::<bool>()) {
        let mut record = record(all);
        record.validity.valid = valid;
        for verdict in ladder(&record) {
            let over = verdict.worst_ns.is_some_and(|worst_ns| worst_ns > verdict.limit_ns);
            prop_assert_eq!(verdict.over_limit > 0, over);
            prop_assert_eq!(verdict.outcome == Outcome::Invalid, !valid);
            prop_assert!(verdict.outcome != Outcome::Fail || over);
            prop_assert!(!verdict.clean_so_far || !over && verdict.outcome == Outcome::Inconclusive);
            prop_assert!(verdict.reason.is_ascii() && !verdict.reason.contains("never"));
            // The statement is about the same cycles as the verdict.
            let tolerates = profile(&verdict.profile).tolerates;
            let count = |text: &str| -> u64 { text.replace(',', "").parse().expect("a count of cycles") };
            let cycles = verdict.statement.split("none of ").nth(1).map(|rest| count(rest.split(' ').next().unwrap()));
            let shows = |cycles: u64| tolerates.in_ns(cycles as f64 * verdict.period_ns as f64) >= 3.0;
            if verdict.outcome == Outcome::Pass && !over {
                prop_assert!(cycles.is_some_and(shows), "{}", verdict.statement);
            }
            if verdict.clean_so_far {
                prop_assert!(!cycles.is_some_and(shows), "{}", verdict.statement);
            }
        }
    }

    /// A wake-up later than the limit fails a short run.
    #[test]
    fn a_late_wake_up_fails_a_short_run(all in prop::collection::vec(some_series(), 1..6), late_ns in 100_001i64..1_000_000) {
        let mut late = all;
        late.push(series("rest", 7, 1_000_000, &[(5_000, 1_000), (late_ns, 1)]));
        prop_assert_eq!(judged(late).outcome, Outcome::Fail);
    }
}

/// Cycles that are further apart than those of the use do not make stalls more frequent.
#[test]
fn stalls_are_counted_in_the_measured_time() {
    let once_an_hour = control();
    let of = |late: u64| {
        let cycles = 8 * 3600 * 125;
        let series = series("rest", 0, 8_000_000, &[(5_000, cycles - late), (200_000, late)]);
        let spikes =
            (0..late).map(|n| Spike { at_ns: n * 3_000_000_000_000, lateness_ns: 200_000, ..Spike::default() });
        judge(&record(vec![Series { spikes: spikes.collect(), spikes_total: late, ..series }]), once_an_hour)
    };
    assert_eq!(
        [of(2).outcome, of(8).outcome, of(9).outcome],
        [Outcome::Inconclusive, Outcome::Inconclusive, Outcome::Fail]
    );
}
