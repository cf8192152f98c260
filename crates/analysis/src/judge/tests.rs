use proptest::prelude::*;
use record::{Far, Histogram, LoadProof, Phase, Reason, State};

use super::*;
use crate::{ladder, profiles};

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

/// A valid record with one phase at rest and one under load.
fn record(series: Vec<Series>) -> Record {
    let mut record = Record::default();
    record.validity.valid = true;
    let load = LoadProof { name: "cpu".into(), spec: "cpu".into(), ran: true, ..LoadProof::default() };
    record.phases = vec![
        Phase { name: "rest".into(), ..Phase::default() },
        Phase { name: "load".into(), asked_loads: vec!["cpu".into()], loads: vec![load], ..Phase::default() },
    ];
    record.series = series;
    record
}

fn profile(name: &str) -> &'static Profile {
    profiles().iter().find(|profile| profile.name == name).unwrap()
}

/// A limit of 100 us at 1 ms, 5000 wake-ups needed.
fn control() -> &'static Profile {
    profile("control-1khz")
}

fn judged(series: Vec<Series>) -> UseVerdict {
    judge(&record(series), control())
}

#[test]
fn passes_with_enough_wake_ups_within_the_limit() {
    let verdict = judged(vec![
        series("rest", 0, 1_000_000, &[(5_000, 4_999), (41_300, 1)]),
        series("load", 0, 1_000_000, &[(5_000, 4_999), (100_000, 1)]),
    ]);
    assert_eq!(verdict.outcome, Outcome::Pass);
    assert_eq!(verdict.reason, "at most 100 us late (CPU 0, load), within the limit of 100 us");
    assert_eq!((verdict.worst_ns, verdict.samples, verdict.over_limit, verdict.missed), (Some(100_000), 10_000, 0, 0));
}

#[test]
fn judges_by_the_exact_maximum() {
    let bucket = |max_ns| judged(vec![series("rest", 0, 1_000_000, &[(5_000, 20_000), (max_ns, 1)])]);
    assert_eq!((bucket(100_000).outcome, bucket(100_000).over_limit), (Outcome::Pass, 0));
    assert_eq!((bucket(100_001).outcome, bucket(100_001).over_limit), (Outcome::Fail, 1));
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
    let mut passing =
        record(vec![series("rest", 0, 1_000_000, &[(5_000, 5_000)]), series("load", 0, 1_000_000, &[(5_000, 5_000)])]);
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
    assert_eq!(verdict.reason, "2.74 ms late on CPU 1, load, above the limit of 100 us; CPU 0,2-3 stayed within it");
    assert_eq!((verdict.over_limit, verdict.missed, verdict.worst_where.as_str()), (1, 2, "CPU 1, load"));
    assert_eq!(
        verdict.statement,
        "CPU 1, load: 3 of 20003 cycles later than 100 us: rate < 7.8/20003 at 95 %, fewer than 1400 an hour"
    );
}

#[test]
fn fails_with_few_wake_ups() {
    assert_eq!(judged(vec![series("rest", 0, 1_000_000, &[(200_000, 1)])]).outcome, Outcome::Fail);
}

#[test]
fn every_cpu_needs_enough_wake_ups() {
    let verdict = judged(vec![
        series("load", 0, 1_000_000, &[(5_000, 1_000_000)]),
        series("load", 1, 1_000_000, &[(5_000, 4_999)]),
    ]);
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert_eq!(
        verdict.reason,
        "4999 of 5000 cycles of 1 ms needed on CPU 1, load: \
         run `punctual measure timer --period 1ms --duration 6s --profile control-1khz --load cpu`"
    );
    assert!(verdict.statement.starts_with("CPU 1, load: none of 4999 cycles"), "{}", verdict.statement);
}

/// 5000 wake-ups every 20 us last 0.1 s, which is 10 cycles of a use with a period of 10 ms.
#[test]
fn wake_ups_between_two_cycles_of_the_use_are_no_further_cycles() {
    let record = record(vec![series("rest", 0, 20_000, &[(5_000, 5_000)])]);
    let verdict = judge(&record, profile("hifi-streamer"));
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(verdict.reason.starts_with("10 of 5000 cycles of 10 ms needed on CPU 0, rest: run "), "{}", verdict.reason);
    assert!(verdict.statement.contains("none of 10 cycles"), "{}", verdict.statement);
}

#[test]
fn a_run_that_ended_early_does_not_pass() {
    let all = || vec![series("rest", 0, 1_000_000, &[(5_000, 20_000)])];
    let mut record = record(all());
    record.phases.truncate(1);
    (record.phases[0].planned_ns, record.phases[0].duration_ns) = (Some(40_000_000_000), 20_000_000_000);
    let outcome = |record: &Record| judge(record, control()).outcome;
    record.state = State::Complete;
    assert_eq!(outcome(&record), Outcome::Pass);
    for state in [State::Interrupted, State::Partial] {
        record.state = state;
        assert_eq!(outcome(&record), Outcome::Inconclusive, "{state:?}");
        let reason = "the run ended early, after 20 s of 40 s in the phase `rest`: run it to its end";
        assert_eq!(judge(&record, control()).reason, reason);
    }
    record.phases[0].planned_ns = None;
    assert_eq!(outcome(&record), Outcome::Pass, "a run until Ctrl-C ends as planned");
    record.phases[0].planned_ns = Some(40_000_000_000);
    record.series = vec![series("rest", 0, 1_000_000, &[(200_000, 1)])];
    assert_eq!(outcome(&record), Outcome::Fail, "a late wake-up counts in any case");
}

#[test]
fn an_empty_record_is_inconclusive() {
    let verdict = judged(vec![]);
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert_eq!(
        verdict.reason,
        "no wake-up was measured: run `punctual measure timer --period 1ms --duration 6s --profile control-1khz`"
    );
    assert_eq!((verdict.worst_ns, verdict.worst_where.as_str()), (None, ""));
    assert_eq!(judged(vec![series("rest", 0, 1_000_000, &[])]).outcome, Outcome::Inconclusive);
}

#[test]
fn a_much_longer_period_can_fail_but_not_pass() {
    let judge = |period_ns, lateness_ns| judged(vec![series("rest", 0, period_ns, &[(lateness_ns, 1_000_000)])]);
    assert_eq!(judge(8_000_000, 5_000).outcome, Outcome::Pass);
    assert_eq!(judge(8_000_001, 200_000).outcome, Outcome::Fail);
    let coarse = judge(10_000_000, 5_000);
    assert_eq!(coarse.outcome, Outcome::Inconclusive);
    assert!(coarse.reason.starts_with("measured every 10 ms, too coarse for a use every 1 ms: run `punctual"));
}

#[test]
fn a_much_shorter_period_passes_with_a_note() {
    let verdict = judged(vec![series("rest", 0, 100_000, &[(5_000, 1_000_000)])]);
    assert_eq!(verdict.outcome, Outcome::Pass);
    assert!(
        verdict.reason.ends_with("measured every 100 us, so CPUs used less deep idle states than with a cycle of 1 ms")
    );
    assert!(verdict.statement.starts_with("CPU 0, rest: none of 100000 cycles"), "{}", verdict.statement);

    let also_slowly = series("load", 0, 1_000_000, &[(5_000, 5_000)]);
    let verdict = judged(vec![series("rest", 0, 100_000, &[(5_000, 1_000_000)]), also_slowly]);
    assert!(!verdict.reason.contains("idle states"), "{}", verdict.reason);
}

#[test]
fn a_load_that_did_not_run_prevents_pass() {
    let mut record = record(vec![series("load", 0, 1_000_000, &[(5_000, 20_000)])]);
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
         the worst measured was 200 us (CPU 0, load)"
    );
    assert_eq!((verdict.worst_ns, verdict.samples, verdict.over_limit), (Some(200_000), 10, 1));
    assert!(verdict.statement.starts_with("of the threads as they ran: CPU 0, load"), "{}", verdict.statement);
}

#[test]
fn notes_excellent_results() {
    let verdict = judge(&record(vec![series("rest", 0, 125_000, &[(7_323, 80_000)])]), profile("avb-class-a"));
    assert_eq!(
        verdict.reason,
        "at most 7.32 us late (CPU 0, rest), within the limit of 50 us, excellent (under 10 us)"
    );
}

#[test]
fn early_wake_ups_do_not_count_as_late() {
    let verdict = judged(vec![series("rest", 0, 1_000_000, &[(-500_000, 1), (5_000, 20_000)])]);
    assert_eq!((verdict.outcome, verdict.worst_ns), (Outcome::Pass, Some(5_000)));
}

#[test]
fn quotes_loads_for_the_shell() {
    let mut record = record(vec![series("load", 0, 1_000_000, &[(5_000, 1)])]);
    record.phases[1].asked_loads = vec!["stress-ng:--vm 2 --x 'y'".into()];
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
    let counts = prop::collection::vec((-50_000i64..300_000, 0u64..30_000), 0..5);
    (phase, 0u32..4, period_ns, counts)
        .prop_map(|(phase, cpu, period_ns, counts)| series(phase, cpu, period_ns, &counts))
}

fn rank(outcome: Outcome) -> usize {
    [Outcome::Pass, Outcome::Inconclusive, Outcome::Fail, Outcome::Invalid].iter().position(|&o| o == outcome).unwrap()
}

proptest! {
    /// More wake-ups in a considered series can add evidence but not remove a failure.
    #[test]
    fn more_samples_never_turn_fail_to_pass(
        all in prop::collection::vec(some_series(), 1..6),
        more in prop::collection::vec((-50_000i64..300_000, 1u64..1_000_000), 1..4),
        at in any::<prop::sample::Index>(),
    ) {
        let before = judged(all.clone());
        let mut longer = all;
        let grown = at.get_mut(&mut longer);
        for &(lateness_ns, count) in &more {
            grown.raw.add(lateness_ns, count);
            grown.corrected.add(lateness_ns, count);
            grown.samples += count;
            grown.max_ns = grown.max_ns.max(Some(lateness_ns));
        }
        let after = judged(longer);
        prop_assert!(before.outcome != Outcome::Fail || after.outcome == Outcome::Fail);
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

    #[test]
    fn figures_and_outcome_agree(all in prop::collection::vec(some_series(), 0..6), valid in any::<bool>()) {
        let mut record = record(all);
        record.validity.valid = valid;
        for verdict in ladder(&record) {
            let over = verdict.worst_ns.is_some_and(|worst_ns| worst_ns > verdict.limit_ns);
            prop_assert_eq!(verdict.over_limit > 0, over);
            prop_assert_eq!(verdict.outcome == Outcome::Invalid, !valid);
            prop_assert!(!valid || (verdict.outcome == Outcome::Fail) == over);
            prop_assert!(verdict.reason.is_ascii() && !verdict.reason.contains("never"));
            if verdict.outcome == Outcome::Pass {
                // The statement is about the same cycles as the verdict.
                let cycles = verdict.statement.split("none of ").nth(1).and_then(|rest| rest.split(' ').next());
                let cycles: u64 = cycles.and_then(|cycles| cycles.parse().ok()).expect("a count of cycles");
                prop_assert!(cycles >= profile(&verdict.profile).samples_needed, "{}", verdict.statement);
            }
        }
    }
}
