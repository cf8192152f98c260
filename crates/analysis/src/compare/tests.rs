use record::{
    Capture, Granted, Histogram, Machine, NumberedBy, Phase, Published, Responses, Scenario, Series, SeriesKind,
};

use super::*;
use crate::references;

const MS: u64 = 1_000_000;

/// A run of the timer probe: name, loads, and CPU, period and values of each series of each phase.
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

/// The phases of each pair: ours, theirs.
fn matched(of: &Comparison) -> Vec<(&str, &str)> {
    of.pairs.iter().map(|pair| (pair.ours.phase.as_str(), pair.theirs.phase.as_str())).collect()
}

#[test]
fn matches_phases_by_loads() {
    let one: &[(u32, u64, &[i64])] = &[(0, MS, &[20_000])];
    let record = run(&[
        ("rest", &[], one),
        ("load", &["switch:10us@0-1", "cache:size=1M"], one),
        ("ping", &["net", "cache", "switch:10us"], one),
        ("slow", &["switch"], one),
        ("hogs", &["cpu"], one),
    ]);
    let comparison = compare(&record, reference("vim3l-evl"), "unused");
    assert_eq!(
        matched(&comparison),
        [
            ("rest", "idle"),
            ("load", "switch-10us-cache"),
            ("ping", "switch-10us-cache-ping"),
            ("slow", "switch-200us"),
            ("hogs", "switch-200us"),
        ]
    );
    assert_eq!(
        (comparison.name.as_str(), comparison.on.as_str()),
        ("vim3l-evl", "Khadas VIM3L with the EVL core (Xenomai 4)")
    );
    assert!(comparison.source.starts_with("OldNavi, "), "{}", comparison.source);
}

#[test]
fn divides_our_figures_by_theirs() {
    let values: Vec<i64> = [vec![10_000; 98], vec![30_000, 171_500]].concat();
    let record = run(&[("rest", &[], &[(0, MS, &values)])]);
    let pair = &compare(&record, reference("vim3l-evl"), "").pairs[0];
    assert_eq!(pair.ratios.max, Some(171_500.0 / 8_575.0));
    assert!(pair.ratios.p50.is_some_and(|ratio| (9.9..=10.1).contains(&ratio)), "{:?}", pair.ratios);
    assert!(pair.ratios.p99.is_some_and(|ratio| (29.8..=30.2).contains(&ratio)), "{:?}", pair.ratios);
    assert_eq!(pair.ratios.mean, Some(record.series[0].mean_ns.unwrap() / 344.0));
    assert_eq!(pair.ratios.jitter, None, "latmus reports no jitter");
    // Beyond the last bucket there is no figure to divide by.
    let clamped = Figures { probe: "timer".into(), max_above_ns: Some(800_000), ..Figures::default() };
    let published = Published { figures: vec![clamped], ..Published::default() };
    let other = Record { published: Some(published), ..Record::default() };
    let comparison = compare(&record, &other, "");
    assert_eq!((comparison.pairs.len(), comparison.pairs[0].ratios), (1, Ratios::default()));
}

#[test]
fn describes_differences() {
    let record = run(&[("load", &["cpu"], &[(0, MS / 8, &[1_000; 9])])]);
    let differs = |record: &Record| compare(record, reference("vim3l-evl"), "").pairs[0].differs.clone();
    assert_eq!(
        differs(&record),
        [
            "their period is 1 ms, yours 125 us",
            "theirs under switch:200us, yours under cpu",
            "they have 4,063 times as many samples, which find larger maxima",
        ]
    );
    let mut same = run(&[("rest", &[], &[(3, MS, &[1_000; 20_000])])]);
    assert_eq!(differs(&same), [""; 0]);
    same.machine.cpus_isolated = Some("1-2".to_owned());
    same.series[0].granted.policy = "fifo:90".to_owned();
    assert_eq!(
        differs(&same),
        ["theirs on an isolated CPU, yours on an ordinary one", "their policy is fifo:98, yours fifo:90"]
    );
    assert_eq!(
        compare(&same, reference("cortex-a53-rt"), "").pairs[0].differs[0],
        "their period is unknown, yours is 1 ms"
    );
}

#[test]
fn separates_isolated_from_ordinary_cpus() {
    let mut record = run(&[("rest", &[], &[(0, 400_000, &[5_000]), (1, 400_000, &[9_000]), (3, 400_000, &[2_000])])]);
    record.machine = Machine { cpus_isolated: Some("3".into()), ..Machine::default() };
    let comparison = compare(&record, reference("rpi3-rt"), "");
    let rows: Vec<_> =
        comparison.pairs.iter().map(|p| (p.ours.cpus.as_str(), p.ours.max_ns, p.theirs.phase.as_str())).collect();
    assert_eq!(rows, [("0-1", Some(9_000), "ordinary"), ("3", Some(2_000), "isolated")]);
    // A shield counts as isolation.
    record.machine.cpus_isolated = Some(String::new());
    record.shielding = Some(record::Shielding { cpus: "1".into(), ..Default::default() });
    let comparison = compare(&record, reference("rpi3-rt"), "");
    let rows: Vec<_> = comparison.pairs.iter().map(|p| (p.ours.cpus.as_str(), p.theirs.phase.as_str())).collect();
    assert_eq!(rows, [("0,3", "ordinary"), ("1", "isolated")]);
}

#[test]
fn matches_the_nearest_period() {
    for (period_us, theirs) in [(125, "thread-0"), (100, "thread-0"), (700, "thread-1"), (1_000, "thread-2")] {
        let record = run(&[("rest", &[], &[(0, period_us * 1_000, &[5_000])])]);
        assert_eq!(matched(&compare(&record, reference("intel-avb"), "")), [("rest", theirs)], "{period_us}");
    }
}

#[test]
fn matches_threads_by_role_and_shared_cpu() {
    let mut record = run(&[("rest", &[], &[(2, 25_000, &[1_000]), (2, MS, &[1_000])])]);
    record.scenario.probe = "threads".into();
    for (series, (role, jitter_ns)) in record.series.iter_mut().zip([("base", 15_000), ("servo", 8_400)]) {
        (series.role, series.jitter_ns) = (role.to_owned(), jitter_ns);
    }
    let rows = |record: &Record| -> Vec<_> {
        let comparison = compare(record, reference("athlon-xenomai"), "");
        comparison.pairs.iter().map(|p| (p.theirs.role.clone(), p.theirs.together, p.ratios.jitter)).collect()
    };
    assert_eq!(
        rows(&record),
        [("base".to_owned(), Some(true), Some(2.0)), ("servo".to_owned(), Some(true), Some(8_400.0 / 7_700.0))]
    );
    record.series[0].cpu = Some(1);
    assert_eq!(rows(&record)[0], ("base".to_owned(), Some(false), Some(15_000.0 / 9_800.0)));
}

#[test]
fn merges_the_cells_of_a_matrix() {
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
    let comparison = compare(&record, reference("athlon-xenomai"), "");
    let rows: Vec<_> = comparison
        .pairs
        .iter()
        .map(|p| (p.theirs.phase.as_str(), p.ours.role.as_str(), p.ours.together, p.ours.jitter_ns))
        .collect();
    assert_eq!(
        rows,
        [
            ("hogs", "base", Some(true), Some(7_000)),
            ("hogs", "servo", Some(true), Some(8_000)),
            ("hogs", "base", Some(false), Some(5_000)),
            ("hogs", "servo", Some(false), Some(6_000)),
        ]
    );
    assert_eq!(comparison.pairs[0].ours.duration_ns, Some(14), "two phases of 7 ns");
    assert_eq!(comparison.pairs[0].differs, [""; 0], "the same load on other CPUs");
}

#[test]
fn wake_ups_meet_the_thread_of_timerlat_and_all_threads_of_an_import() {
    let of = |role: &str, phase: &str| Figures {
        probe: "timer".to_owned(),
        phase: phase.to_owned(),
        role: role.to_owned(),
        max_ns: Some(1_000),
        ..Figures::default()
    };
    let phases = ["all-threads", "timerlat"];
    let figures: Vec<Figures> =
        phases.iter().flat_map(|phase| [of("timerlat/irq", phase), of("timerlat/thread", phase)]).collect();
    let other = Record { published: Some(Published { figures, ..Published::default() }), ..Record::default() };
    let compared = compare(&run(&[("rest", &[], &[(0, MS, &[20_000])])]), &other, "other");
    let [pair] = &compared.pairs[..] else { panic!("{compared:?}") };
    assert_eq!((pair.theirs.role.as_str(), pair.theirs.phase.as_str()), ("timerlat/thread", "all-threads"));
}

/// A judged run: the way to the thread, and the whole way to the answer.
fn judged() -> Record {
    let mut record = run(&[("rest", &[], &[(2, MS, &[40_000]), (2, MS, &[929_000])])]);
    record.scenario.probe = "interrupt".into();
    for (series, role) in record.series.iter_mut().zip(["interrupt", "response"]) {
        series.role = role.to_owned();
    }
    record.series[0].kind = SeriesKind::Interrupts(Box::default());
    record.series[1].kind = SeriesKind::Responses(Box::default());
    record
}

#[test]
fn responses_are_only_compared_with_responses() {
    let roles = |record: &Record, other: &Record| -> Vec<_> {
        let comparison = compare(record, other, "");
        comparison.pairs.iter().map(|p| (p.ours.role.clone(), p.theirs.role.clone(), p.ratios.max)).collect()
    };
    let of = |ours: &str, theirs: &str, ratio| (ours.to_owned(), theirs.to_owned(), Some(ratio));
    assert_eq!(roles(&judged(), reference("cortex-a53-rt")), [of("interrupt", "", 40_000.0 / 30_000.0)]);
    let both = [of("interrupt", "interrupt", 1.0), of("response", "response", 1.0)];
    assert_eq!(roles(&judged(), &judged()), both);
    let mut way = judged();
    way.series.truncate(1);
    assert_eq!((roles(&way, &judged()), roles(&judged(), &way)), (both[..1].to_vec(), both[..1].to_vec()));
    let [way, whole] = &figures(&judged())[..] else { panic!("two groups") };
    assert_eq!(distance_of_conditions(way, whole), None);
}

#[test]
fn interrupts_from_the_pin_are_not_compared_with_those_from_the_kernel() {
    use record::{Interrupts, Zero};
    let of = |zero| {
        let mut record = run(&[("rest", &[], &[(0, MS, &[5_000])])]);
        record.scenario.probe = record::INTERRUPT.into();
        record.series[0].role = record::INTERRUPT.into();
        record.series[0].kind = SeriesKind::Interrupts(Box::new(Interrupts { zero, ..Interrupts::default() }));
        record
    };
    let pairs = |a, b| compare(&of(a), &of(b), "").pairs.len();
    assert_eq!(pairs(Zero::Edge, Zero::Counter), 1);
    assert_eq!(pairs(Zero::Handler, Zero::Trace), 1);
    assert_eq!(pairs(Zero::Edge, Zero::Handler), 0);
    let alone = compare(&of(Zero::Edge), &of(Zero::Handler), "").alone;
    assert_eq!(alone, ["rest, interrupt, CPUs 0"]);
    let of_kernel = compare(&of(Zero::Trace), &of(Zero::Edge), "").alone;
    assert_eq!(of_kernel, ["rest, interrupt, from the kernel's stamp, CPUs 0"]);
}

#[test]
fn never_compares_other_kinds_of_latency_with_wake_ups() {
    let mut record = run(&[("rest", &[], &[(0, MS, &[5_000])])]);
    record.scenario.probe = "noise".into();
    let comparison = compare(&record, reference("intel-avb"), "");
    assert_eq!((comparison.pairs.len(), &comparison.alone[..]), (0, &["rest, CPUs 0".to_owned()][..]));
}

#[test]
fn compares_two_measured_records() {
    let record = run(&[("rest", &[], &[(0, MS, &[6_000])]), ("load", &["cpu"], &[(0, MS, &[90_000])])]);
    let mut before = run(&[("load", &["cpu"], &[(0, MS, &[30_000])]), ("rest", &[], &[(0, MS, &[3_000])])]);
    before.machine.hostname = Some("lathe".into());
    let comparison = compare(&record, &before, "before.punctual.json");
    assert_eq!(matched(&comparison), [("rest", "rest"), ("load", "load")]);
    assert_eq!(comparison.pairs.iter().map(|p| p.ratios.max).collect::<Vec<_>>(), [Some(2.0), Some(3.0)]);
    assert_eq!(
        (comparison.name.as_str(), comparison.on.as_str(), comparison.source.as_str()),
        ("before.punctual.json", "lathe", "")
    );
}

#[test]
fn a_run_that_was_not_as_requested_has_a_caveat() {
    let caveat = |other: &Record| compare(&Record::default(), other, "other").caveats.pop().map(|caveat| caveat.text);
    let valid = Record { state: record::State::Complete, ..Record::default() };
    let valid = Record { validity: record::Validity { valid: true, ..record::Validity::default() }, ..valid };
    assert_eq!(caveat(&valid), None);
    let interrupted = Record { state: record::State::Interrupted, ..valid.clone() };
    let invalid = Record { validity: record::Validity::default(), ..valid };
    for other in [interrupted, invalid] {
        let text = caveat(&other).unwrap();
        assert!(text.starts_with("its figures are no measure of the machine, because "), "{text}");
    }
}

/// Lost results can have been the largest, and those beyond latmon's last cell count as the largest.
#[test]
fn unknown_times_of_a_judge_make_figures_unknown() {
    let of = |without_time, clamped| {
        let mut record = run(&[("rest", &[], &[(0, MS, &[5, 6, 7, 8, 900, 900])])]);
        let responses = Responses { without_time, clamped, complete: true, ..Responses::default() };
        (record.series[0].role, record.series[0].kind) =
            (record::RESPONSE.to_owned(), SeriesKind::Responses(Box::new(responses)));
        let Group { figures, histogram, beyond, unknown, .. } = groups(&record).remove(0);
        (figures.p50_ns, figures.max_ns, figures.max_above_ns, histogram.total(), beyond + unknown)
    };
    assert_eq!(of(0, 0), (Some(7), Some(900), None, 6, 0));
    assert_eq!(of(0, 2), (Some(7), Some(900), None, 4, 2));
    assert_eq!(of(1, 0), (Some(8), None, Some(900), 6, 1));
    assert_eq!(of(7, 0).0, None);
}

/// The numbers of frames show which are lost; without numbers, the slots without a frame do.
#[test]
fn frames_that_a_capture_lacks_are_lost() {
    let of = |numbered_by, lost, missed| {
        let mut record = run(&[("capture", &[], &[(0, MS, &[5, 6, 7])])]);
        record.scenario.probe = record::CAPTURE.to_owned();
        (record.series[0].kind, record.series[0].missed) = (SeriesKind::Capture, missed);
        record.capture = Some(Capture { numbered_by, lost, ..Capture::default() });
        let group = groups(&record).remove(0);
        (group.figures.missed, group.lost)
    };
    assert_eq!(of(NumberedBy::Nothing, None, 4), (Some(4), 0));
    assert_eq!(of(NumberedBy::Protocol, Some(50), 0), (Some(0), 50));
    assert_eq!(of(NumberedBy::Avtp, None, 0), (None, 0), "the numbers do not show how many");
}
