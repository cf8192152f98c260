use record::{Granted, Histogram, Machine, Phase, Published, Scenario, Series};

use super::*;
use crate::reference::references;

const MS: u64 = 1_000_000;

/// A run of the timer probe: for each phase its name, loads, and CPU, period and values of each series.
type TestPhase<'a> = (&'a str, &'a [&'a str], &'a [(u32, u64, &'a [i64])]);

fn run(phases: &[TestPhase]) -> Record {
    let scenario = Scenario { probe: "timer".into(), ..Scenario::default() };
    let mut record = Record { scenario, ..Record::default() };
    for (name, loads, all) in phases {
        let asked_loads = loads.iter().map(|&load| load.to_owned()).collect();
        record.phases.push(Phase { name: (*name).to_owned(), asked_loads, duration_ns: 7, ..Phase::default() });
        for &(cpu, period_ns, values) in *all {
            record.series.push(series(name, cpu, period_ns, values));
        }
    }
    record
}

fn series(phase: &str, cpu: u32, period_ns: u64, values: &[i64]) -> Series {
    let mut raw = Histogram::default();
    values.iter().for_each(|&value| raw.record(value));
    Series {
        phase: phase.to_owned(),
        role: "timer".to_owned(),
        cpu: Some(cpu),
        granted: Granted { policy: "fifo:98".to_owned(), ..Granted::default() },
        period_ns,
        samples: values.len() as u64,
        min_ns: values.iter().min().copied(),
        mean_ns: Some(values.iter().sum::<i64>() as f64 / values.len() as f64),
        max_ns: values.iter().max().copied(),
        corrected: raw.clone(),
        raw,
        ..Series::default()
    }
}

fn reference(name: &str) -> &'static Record {
    references().iter().find(|record| record.published.as_ref().unwrap().name == name).unwrap()
}

/// Phase of ours, phase of theirs.
fn matched(of: &Against) -> Vec<(&str, &str)> {
    of.pairs.iter().map(|pair| (pair.ours.phase.as_str(), pair.theirs.phase.as_str())).collect()
}

#[test]
fn each_phase_finds_the_rung_of_the_ladder_with_its_loads() {
    let one: &[(u32, u64, &[i64])] = &[(0, MS, &[20_000])];
    let record = run(&[
        ("rest", &[], one),
        ("load", &["switch:10us@0-1", "cache:size=1M"], one),
        ("ping", &["net", "cache", "switch:10us"], one),
        ("slow", &["switch"], one),
        ("hogs", &["cpu"], one),
    ]);
    let against = against(&record, reference("vim3l-evl"), "unused");
    assert_eq!(
        matched(&against),
        [
            ("rest", "idle"),
            ("load", "switch-10us-cache"),
            ("ping", "switch-10us-cache-ping"),
            ("slow", "switch-200us"),
            ("hogs", "switch-200us"),
        ]
    );
    assert_eq!(
        (against.name.as_str(), against.on.as_str()),
        ("vim3l-evl", "Khadas VIM3L with the EVL core (Xenomai 4)")
    );
    assert!(against.source.starts_with("OldNavi, "), "{}", against.source);
}

#[test]
fn ratios_are_ours_over_theirs_where_both_are_known() {
    let values: Vec<i64> = [vec![10_000; 98], vec![30_000, 171_500]].concat();
    let record = run(&[("rest", &[], &[(0, MS, &values)])]);
    let pair = &against(&record, reference("vim3l-evl"), "").pairs[0];
    assert_eq!(pair.ratios.max, Some(171_500.0 / 8_575.0));
    assert!(pair.ratios.p50.is_some_and(|ratio| (9.9..=10.1).contains(&ratio)), "{:?}", pair.ratios);
    assert!(pair.ratios.p99.is_some_and(|ratio| (29.8..=30.2).contains(&ratio)), "{:?}", pair.ratios);
    assert_eq!(pair.ratios.mean, Some(record.series[0].mean_ns.unwrap() / 344.0));
    assert_eq!(pair.ratios.jitter, None, "latmus tells none");
    // Beyond the last cell there is no figure to divide by.
    let clamped = Figures { probe: "timer".into(), max_above_ns: Some(800_000), ..Figures::default() };
    let published = Published { figures: vec![clamped], ..Published::default() };
    let other = Record { published: Some(published), ..Record::default() };
    let against = against(&record, &other, "");
    assert_eq!((against.pairs.len(), against.pairs[0].ratios), (1, Ratios::default()));
}

#[test]
fn what_differs_is_said() {
    let record = run(&[("load", &["cpu"], &[(0, MS / 8, &[1_000; 9])])]);
    let differs = |record: &Record| against(record, reference("vim3l-evl"), "").pairs[0].differs.clone();
    assert_eq!(
        differs(&record),
        [
            "every 1 ms there, yours every 125 us",
            "under switch:200us there, yours under cpu",
            "4063 times as many samples there: more of them find larger maxima",
        ]
    );
    let mut same = run(&[("rest", &[], &[(3, MS, &[1_000; 20_000])])]);
    assert_eq!(differs(&same), [""; 0]);
    same.machine.cpus_isolated = Some("1-2".to_owned());
    same.series[0].granted.policy = "fifo:90".to_owned();
    assert_eq!(differs(&same), ["on an isolated CPU there, yours on ordinary", "fifo:98 there, yours fifo:90"]);
    assert_eq!(
        against(&same, reference("cortex-a53-rt"), "").pairs[0].differs[0],
        "its period is not told, yours is 1 ms"
    );
}

#[test]
fn isolated_cpus_are_told_apart_from_ordinary_ones() {
    let mut record = run(&[("rest", &[], &[(0, 400_000, &[5_000]), (1, 400_000, &[9_000]), (3, 400_000, &[2_000])])]);
    record.machine = Machine { cpus_isolated: Some("3".into()), ..Machine::default() };
    let against = against(&record, reference("rpi3-rt"), "");
    let told: Vec<_> =
        against.pairs.iter().map(|p| (p.ours.cpus.as_str(), p.ours.max_ns, p.theirs.phase.as_str())).collect();
    assert_eq!(told, [("0-1", Some(9_000), "ordinary"), ("3", Some(2_000), "isolated")]);
    // A shield counts as isolation does.
    record.machine.cpus_isolated = Some(String::new());
    record.shielding = Some(record::Shielding { cpus: "1".into(), ..Default::default() });
    let told = super::against(&record, reference("rpi3-rt"), "");
    let told: Vec<_> = told.pairs.iter().map(|p| (p.ours.cpus.as_str(), p.theirs.phase.as_str())).collect();
    assert_eq!(told, [("0,3", "ordinary"), ("1", "isolated")]);
}

#[test]
fn of_the_threads_of_cyclictest_that_with_the_nearest_period_is_taken() {
    for (period_us, theirs) in [(125, "thread-0"), (100, "thread-0"), (700, "thread-1"), (1_000, "thread-2")] {
        let record = run(&[("rest", &[], &[(0, period_us * 1_000, &[5_000])])]);
        assert_eq!(matched(&against(&record, reference("intel-avb"), "")), [("rest", theirs)], "{period_us}");
    }
}

#[test]
fn threads_are_matched_by_role_and_by_sharing_a_cpu() {
    let mut record = run(&[("rest", &[], &[(2, 25_000, &[1_000]), (2, MS, &[1_000])])]);
    record.scenario.probe = "threads".into();
    for (series, (role, jitter_ns)) in record.series.iter_mut().zip([("base", 15_000), ("servo", 8_400)]) {
        (series.role, series.jitter_ns) = (role.to_owned(), jitter_ns);
    }
    let told = |record: &Record| -> Vec<_> {
        let against = against(record, reference("athlon-xenomai"), "");
        against.pairs.iter().map(|p| (p.theirs.role.clone(), p.theirs.together, p.ratios.jitter)).collect()
    };
    assert_eq!(
        told(&record),
        [("base".to_owned(), Some(true), Some(2.0)), ("servo".to_owned(), Some(true), Some(8_400.0 / 7_700.0))]
    );
    record.series[0].cpu = Some(1);
    assert_eq!(told(&record)[0], ("base".to_owned(), Some(false), Some(15_000.0 / 9_800.0)));
}

#[test]
fn the_cells_of_a_matrix_are_taken_together() {
    let pairs = [("a", 0, 0), ("b", 0, 1), ("c", 1, 0), ("d", 1, 1)];
    let values: &[i64] = &[1_000];
    let all: Vec<_> = pairs.map(|(_, base, servo)| [(base, 25_000, values), (servo, MS, values)]).into();
    let phases: Vec<TestPhase> =
        pairs.iter().zip(&all).map(|((name, ..), all)| (*name, &["cpu:shell@0"][..], &all[..])).collect();
    let mut record = run(&phases);
    record.scenario.probe = "threads".into();
    record.cells = vec![Default::default()];
    for (at, series) in record.series.iter_mut().enumerate() {
        series.role = ["base", "servo"][at % 2].to_owned();
        series.jitter_ns = 1_000 * (1 + at as u64);
    }
    let against = against(&record, reference("athlon-xenomai"), "");
    let told: Vec<_> = against
        .pairs
        .iter()
        .map(|p| (p.theirs.phase.as_str(), p.ours.role.as_str(), p.ours.together, p.ours.jitter_ns))
        .collect();
    assert_eq!(
        told,
        [
            ("hogs", "base", Some(true), Some(7_000)),
            ("hogs", "servo", Some(true), Some(8_000)),
            ("hogs", "base", Some(false), Some(5_000)),
            ("hogs", "servo", Some(false), Some(6_000)),
        ]
    );
    assert_eq!(against.pairs[0].ours.duration_ns, Some(14), "two phases of 7 ns");
    assert_eq!(against.pairs[0].differs, [""; 0], "the same load on other CPUs");
}

#[test]
fn other_kinds_of_latency_are_never_laid_beside_wake_ups() {
    let mut record = run(&[("rest", &[], &[(0, MS, &[5_000])])]);
    record.scenario.probe = "noise".into();
    let against = against(&record, reference("intel-avb"), "");
    assert_eq!((against.pairs.len(), &against.alone[..]), (0, &["rest, CPUs 0".to_owned()][..]));
}

#[test]
fn a_record_of_ones_own_can_be_laid_beside() {
    let record = run(&[("rest", &[], &[(0, MS, &[6_000])]), ("load", &["cpu"], &[(0, MS, &[90_000])])]);
    let mut before = run(&[("load", &["cpu"], &[(0, MS, &[30_000])]), ("rest", &[], &[(0, MS, &[3_000])])]);
    before.machine.hostname = Some("lathe".into());
    let against = against(&record, &before, "before.punctual.json");
    assert_eq!(matched(&against), [("rest", "rest"), ("load", "load")]);
    assert_eq!(against.pairs.iter().map(|p| p.ratios.max).collect::<Vec<_>>(), [Some(2.0), Some(3.0)]);
    assert_eq!(
        (against.name.as_str(), against.on.as_str(), against.source.as_str()),
        ("before.punctual.json", "lathe", "")
    );
}
