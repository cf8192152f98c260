//! Exports of a small record, and of records with text that a format could obey.

#![allow(clippy::unwrap_used, reason = "a panic is the failure of a test")]

use std::{io::Cursor, path::Path};

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hdrhistogram::{Histogram as Reader, serialization::Deserializer};
use insta::assert_snapshot;
use proptest::prelude::*;
use record::{
    Account, Blame, BlameMode, Campaign, Cause, CauseKind, Caveat, EndedBy, Figures, Finding, FindingState, Granted,
    Histogram, Machine, Outcome, Phase, Reason, Record, RoleResult, Scenario, ScenarioEntry, ScenarioResult, Series,
    Spike, State, Tool, UseVerdict, Validity, Verdict, visible,
};
use report::export::Format;
use roxmltree::{Document, Node};
use serde_json::Value;

const PERIOD_NS: u64 = 1_000_000;

fn series(cpu: u32, role: &str, max_ns: i64) -> Series {
    let mut raw = Histogram::default();
    raw.add(5_200, 97);
    raw.add(9_800, 2);
    raw.record(max_ns);
    let corrected = raw.corrected(&[max_ns], PERIOD_NS);
    let spike = Spike { lateness_ns: max_ns, at_ns: 42_000_000, ..Spike::default() };
    let is_spike = max_ns > 100_000;
    Series {
        phase: "load".into(),
        role: role.into(),
        cpu: Some(cpu),
        granted: Granted { policy: "fifo:90".into(), cpus: cpu.to_string(), memory_locked: true, ..Granted::default() },
        period_ns: PERIOD_NS,
        samples: raw.total(),
        missed: corrected.total() - raw.total(),
        min_ns: Some(5_200),
        mean_ns: Some(5_400.5),
        max_ns: Some(max_ns),
        max_at_ns: Some(42_000_000),
        jitter_ns: 36_000,
        raw,
        corrected,
        spikes_total: u64::from(is_spike),
        spikes: if is_spike { vec![spike] } else { Vec::new() },
        ..Series::default()
    }
}

fn a_use(profile: &str, title: &str, outcome: Outcome, limit_ns: i64, reason: &str) -> UseVerdict {
    UseVerdict {
        profile: profile.into(),
        title: title.into(),
        outcome,
        reason: reason.into(),
        period_ns: PERIOD_NS,
        limit_ns,
        worst_ns: Some(141_300),
        worst_where: "CPU 1, load".into(),
        samples: 200,
        over_limit: u64::from(outcome == Outcome::Fail),
        missed: u64::from(outcome == Outcome::Fail),
        statement: "at 95 % fewer than 24 stalls a day".into(),
        tolerates: "1 per hour".into(),
        ..UseVerdict::default()
    }
}

/// A valid run of two threads with one use of each outcome.
fn sample() -> Record {
    let (late, device) = (
        Cause::new(CauseKind::Thread, "irq/125-i915"),
        "Leave the interrupt to CPU 0: `echo 0 | sudo tee /proc/irq/125/smp_affinity_list`",
    );
    let account = Account {
        cause: late,
        count: 1,
        total_ns: 141_300,
        worst_ns: 141_300,
        remedy: device.into(),
        ..Account::default()
    };
    Record {
        schema: record::SCHEMA.into(),
        tool: Tool { name: "punctual".into(), version: "0.2.0".into() },
        state: State::Complete,
        started_at: "2026-11-21T10:00:00Z".into(),
        written_at: "2026-11-21T10:00:01Z".into(),
        command: ["punctual", "measure", "timer", "--load", "cpu"].map(Into::into).into(),
        scenario: Scenario {
            probe: "timer".into(),
            policy: "fifo:90".into(),
            threshold_ns: 100_000,
            profiles: ["hifi", "avb-class-a", "cnc"].map(Into::into).into(),
            ..Scenario::default()
        },
        machine: Machine {
            hostname: Some("amp".into()),
            model: Some("Raspberry Pi 4 Model B".into()),
            cpu_model: Some("Cortex-A72".into()),
            arch: Some("aarch64".into()),
            kernel: Some("6.12.30-rt11".into()),
            preempt: Some("PREEMPT_RT".into()),
            ..Machine::default()
        },
        findings: sample_findings(),
        phases: vec![Phase {
            name: "load".into(),
            period_ns: PERIOD_NS,
            planned_ns: Some(100_000_000),
            duration_ns: 100_000_000,
            start_ns: 2_000_000_000,
            ..Phase::default()
        }],
        series: vec![series(0, "timer", 41_300), series(1, "timer", 141_300)],
        blame: Some(Blame { mode: BlameMode::Trace, spikes: 1, ledger: vec![account], ..Blame::default() }),
        validity: Validity { valid: true, reasons: Vec::new() },
        verdict: Some(Verdict { outcome: Outcome::Fail, reason: "cnc: 141 us late, above the limit of 10 us".into() }),
        uses: vec![
            a_use("hifi", "hi-fi streaming", Outcome::Pass, 5_000_000, "at most 141 us late, within the limit of 5 ms"),
            a_use(
                "avb-class-a",
                "AVB class A",
                Outcome::Inconclusive,
                200_000,
                "too few cycles: run `punctual measure timer --duration 10m`",
            ),
            a_use("cnc", "CNC step generation", Outcome::Fail, 10_000, "141 us late, above the limit of 10 us"),
        ],
        caveats: vec![Caveat { kind: "virtual".into(), text: "the hypervisor took 2 ms of CPU 0".into() }],
        ..Record::default()
    }
}

fn sample_findings() -> Vec<Finding> {
    let finding = |id: &str, state, title: &str, evidence: &str, why: &str, remedy: &str| Finding {
        id: id.into(),
        state,
        title: title.into(),
        evidence: evidence.into(),
        why: why.into(),
        remedy: remedy.into(),
        lasts: None,
    };
    vec![
        finding("kernel.preempt", FindingState::Ok, "kernel with PREEMPT_RT", "/proc/version = PREEMPT_RT", "", ""),
        finding(
            "memory.swap",
            FindingState::Warn,
            "swap is on",
            "/proc/swaps: /dev/sda2",
            "a page may have to be read from disk",
            "sudo swapoff -a",
        ),
        finding(
            "cpu.governor",
            FindingState::Fail,
            "governor powersave",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor = powersave",
            "the CPU changes its frequency",
            "echo performance | sudo tee /sys/x",
        ),
        finding("cpu.smt", FindingState::Unknown, "SMT not readable", "ethtool: none", "", ""),
        finding("rt.evl", FindingState::NotApplicable, "no EVL core", "", "", ""),
    ]
}

/// The same run with refused rights. Its stored verdicts still claim PASS.
fn invalid() -> Record {
    let mut record = sample();
    let text = "policy fifo:90 was refused: the threads ran as `other`".into();
    let reason = Reason { id: "policy.refused".into(), text, remedy: "sudo punctual".into() };
    record.validity = Validity { valid: false, reasons: vec![reason] };
    claim_pass(&mut record);
    record
}

/// The same run, ended by the user. Its stored verdicts still claim PASS.
fn interrupted() -> Record {
    let mut record = sample();
    record.state = State::Interrupted;
    record.ended_by = Some(EndedBy::Signal);
    record.phases[0].planned_ns = Some(3_600_000_000_000);
    claim_pass(&mut record);
    record
}

fn claim_pass(record: &mut Record) {
    record.uses.iter_mut().for_each(|a_use| a_use.outcome = Outcome::Pass);
    record.verdict = Some(Verdict { outcome: Outcome::Pass, reason: "held".into() });
}

/// A valid run without profiles.
fn unjudged() -> Record {
    let mut record = sample();
    record.scenario.profiles.clear();
    record.uses.clear();
    record.verdict = None;
    record
}

fn sample_campaign() -> Campaign {
    let entry = |name: &str, result, reason: Option<&str>, error: Option<&str>| ScenarioEntry {
        name: name.into(),
        repeat: 1,
        record: format!("{name}.punctual.json"),
        result,
        reason: reason.map(Into::into),
        error: error.map(Into::into),
        ..ScenarioEntry::default()
    };
    let with_reason = |result: Option<ScenarioResult>, reason: &str| {
        result.map(|result| ScenarioResult { reason: Some(reason.into()), ..result })
    };
    let result = |valid, outcome, problem: Option<&str>| {
        let role = RoleResult {
            role: "timer".into(),
            samples: 100,
            missed: 2,
            max_ns: Some(141_300),
            ..RoleResult::default()
        };
        Some(ScenarioResult {
            took_ns: 1_500_000_000,
            valid,
            outcome,
            problem: problem.map(Into::into),
            roles: vec![role],
            ..ScenarioResult::default()
        })
    };
    Campaign {
        tool: Tool { name: "punctual".into(), version: "0.2.0".into() },
        name: "table".into(),
        title: "Two loads".into(),
        started_at: "2026-11-21T10:00:00Z".into(),
        hostname: Some("amp".into()),
        kernel: Some("6.12.30-rt11".into()),
        took_ns: 6_000_000_000,
        scenarios: vec![
            entry("idle", result(true, Some(Outcome::Pass), None), None, None),
            entry(
                "busy",
                with_reason(result(true, Some(Outcome::Fail), None), "2 of 100 deadlines missed"),
                None,
                None,
            ),
            entry(
                "undecided",
                with_reason(result(true, Some(Outcome::Inconclusive), None), "none late so far"),
                None,
                None,
            ),
            entry("refused", result(false, Some(Outcome::Pass), None), Some("policy refused"), None),
            entry("short", result(true, Some(Outcome::Pass), Some("the run ended early")), None, None),
            entry("unjudged", result(true, None, None), None, None),
            entry("broken", None, None, Some("no such CPU")),
            entry("later", None, None, None),
        ],
        ..Campaign::default()
    }
}

fn text(format: Format, record: &Record) -> String {
    String::from_utf8(format.record(record)).unwrap()
}

#[test]
fn junit_of_each_outcome() {
    assert_snapshot!("junit", text(Format::JUnit, &sample()));
    assert_snapshot!("junit_invalid", text(Format::JUnit, &invalid()));
    let campaign = Format::JUnit.campaign(&sample_campaign()).unwrap();
    assert_snapshot!("junit_campaign", String::from_utf8(campaign).unwrap());
}

#[test]
fn prometheus_of_each_outcome() {
    assert_snapshot!("prometheus", text(Format::Prometheus, &sample()));
}

#[test]
fn lava_of_each_outcome() {
    assert_snapshot!("lava", text(Format::Lava, &sample()));
    assert_snapshot!("lava_invalid", text(Format::Lava, &invalid()));
}

#[test]
fn markdown_of_each_outcome() {
    assert_snapshot!("markdown", text(Format::Markdown, &sample()));
    assert_snapshot!("markdown_invalid", text(Format::Markdown, &invalid()));
    let campaign = Format::Markdown.campaign(&sample_campaign()).unwrap();
    assert_snapshot!("markdown_campaign", String::from_utf8(campaign).unwrap());
}

#[test]
fn sarif_of_each_state() {
    assert_snapshot!("sarif", text(Format::Sarif, &invalid()));
    let machine = sample().machine;
    assert_snapshot!(
        "sarif_machine",
        String::from_utf8(Format::Sarif.findings(&machine, &sample_findings()).unwrap()).unwrap()
    );
}

#[test]
fn an_hlog_names_its_run() {
    let log = text(Format::Hlog, &sample());
    // The bytes of a compressed histogram depend on the version of the compressor.
    let without_histograms: Vec<&str> = log.lines().map(|line| line.split("HISTF").next().unwrap()).collect();
    assert_snapshot!("hlog", without_histograms.join("\n"));
}

/// The record of an export, read as a file of another tool.
fn imported(format: Format, record: &Record) -> Record {
    let exported = text(format, record);
    let reader = import::format_of(&exported).expect("its format is recognised");
    import::to_record(reader.read(&exported, None).unwrap(), Path::new("a"))
}

/// The figures of each series, without sums of several.
fn figures(record: &Record) -> Vec<&Figures> {
    let all = &record.published.as_ref().unwrap().figures;
    all.iter().filter(|figures| figures.phase != "all-threads").collect()
}

#[test]
fn an_imported_hlog_has_the_histograms_of_its_record() {
    let record = sample();
    let read = imported(Format::Hlog, &record);
    let all = figures(&read);
    assert_eq!(all.len(), record.series.len());
    for (figures, series) in all.iter().zip(&record.series) {
        assert_eq!(figures.histogram.as_ref(), Some(&series.corrected));
        assert_eq!((figures.max_ns, figures.samples), (series.max_ns, Some(series.corrected.total())));
        assert_eq!(figures.cpus, series.cpu.unwrap().to_string());
    }
    assert_eq!((read.tool.name.as_str(), &read.tool.version), ("punctual", &record.tool.version));
    assert_eq!((&read.started_at, &read.scenario.probe), (&record.started_at, &record.scenario.probe));
    let texts: Vec<&str> = read.caveats.iter().map(|caveat| caveat.text.as_str()).collect();
    assert!(record.caveats.iter().all(|caveat| texts.contains(&caveat.text.as_str())), "{texts:?}");
}

#[test]
fn an_imported_csv_has_the_histograms_of_its_record() {
    let record = sample();
    let read = imported(Format::Csv, &record);
    let all = figures(&read);
    assert_eq!(all.len(), record.series.len());
    for (figures, series) in all.iter().zip(&record.series) {
        assert_eq!(figures.histogram.as_ref(), Some(&series.corrected));
        assert_eq!((figures.samples, figures.missed), (Some(series.samples), Some(series.missed)));
        assert_eq!((&figures.cpus, figures.period_ns), (&series.cpu.unwrap().to_string(), Some(PERIOD_NS)));
    }
}

/// Without the samples beyond the last cell, other readers would compute too low percentiles.
#[test]
fn an_hlog_has_all_samples_of_an_imported_histogram() {
    let log = text(Format::Hlog, &of_another_tool());
    let totals: Vec<u64> = read_log(&log).iter().map(|(_, histogram)| histogram.len()).collect();
    assert_eq!(totals, [6000, 5999]);
}

/// Wake-ups at rest and under load are no threads of one kind.
#[test]
fn the_phases_of_a_record_stay_apart() {
    let mut record = sample();
    record.series.truncate(1);
    let rest = Series { phase: "rest".to_owned(), ..record.series[0].clone() };
    let of = |cpu, phase: &str| Series { cpu: Some(cpu), phase: phase.to_owned(), ..rest.clone() };
    record.series.extend([of(7, "rest"), of(7, "load"), of(8, "load")]);
    record.series[0].phase = "rest".to_owned();
    for format in [Format::Hgrm, Format::Hlog] {
        let read = imported(format, &record);
        let sums: Vec<u64> = read
            .published
            .iter()
            .flat_map(|published| &published.figures)
            .filter(|figures| figures.phase == "all-threads")
            .filter_map(|figures| figures.samples)
            .collect();
        assert_eq!(sums, [2 * rest.corrected.total(); 2], "{format:?}");
    }
}

#[test]
fn an_hlog_without_a_thread_is_cut() {
    let log = text(Format::Hlog, &sample());
    let end = log.rfind("Tag=").unwrap();
    let error = import::format_of(&log).unwrap().read(&log[..end], None).unwrap_err();
    assert!(error.text.ends_with("; the file is cut"), "{error:?}");
}

/// An imported record with samples beyond the last cell, whose duration is not known.
fn of_another_tool() -> Record {
    of_cyclictest(&include_str!("../../import/tests/samples/cyclictest-2.4.json").replace("end_time", "end"))
}

fn of_cyclictest(text: &str) -> Record {
    let reader = import::format_of(text).unwrap();
    import::to_record(reader.read(text, None).unwrap(), Path::new("cyclictest.json"))
}

#[test]
fn the_threads_of_another_tool_ran_at_the_same_time() {
    let record = of_cyclictest(include_str!("../../import/tests/samples/cyclictest-2.4.json"));
    assert!(
        text(Format::Markdown, &record).ends_with("2026-11-21T03:17:01Z, 6 s\n"),
        "{}",
        text(Format::Markdown, &record)
    );
}

#[test]
fn an_imported_record_is_exported_with_its_figures() {
    let record = of_another_tool();
    for (format, parts) in [
        (Format::Csv, &["thread-0,timer,0,1000000,raw,3999,199\n", "thread-0,timer,0,1000000,beyond,,23\n"][..]),
        (Format::Hgrm, &["# thread-0 CPU 0 (timer), raw, us", "#[Max = 632.000, Total count = 6000]"]),
        (
            Format::Hlog,
            &[
                "#[cyclictest 2.40: timer on ",
                "Unit of the values: ns]",
                "#[thread-0-timer-cpu0: 23 samples are beyond the last cell of the histogram, and counted at the maximum]",
                "\nTag=thread-0-timer-cpu0,",
            ],
        ),
        (
            Format::Markdown,
            &[
                "Not judged: measured by cyclictest, not by punctual.",
                "| 6,000 | - | - | 632 us |",
                "cyclictest 2.40",
                ", -\n",
            ],
        ),
        (Format::Lava, &["punctual-valid unknown\n", "t0-max-latency unknown 632.000 us"]),
        (
            Format::Prometheus,
            &["punctual_lateness_max_seconds{", "} 0.000632\n", ",quantile=\"0.99\"} 0.0000", "punctual_verdict{"],
        ),
    ] {
        let text = text(format, &record);
        parts.iter().for_each(|part| assert!(text.contains(part), "{format:?}: {part:?} in {text}"));
    }
    let page = text(Format::Html, &record);
    assert!(page.contains("A dot ends a curve before its largest values"));
    assert!(page.contains("data-n=\"thread-0, CPU 0\"") && page.contains("<circle class=\"dots h1"));
    assert!(!page.contains("Grey curves"), "they are of this record");
    let table = text(Format::Latex, &record);
    assert!(table.contains("record & median & p99 & max & threads"), "{table}");
    assert!(table.contains("cyclictest.json & 7.00 us & 33.0 us & 1.03 ms & all-threads"), "{table}");
    let metrics = text(Format::Prometheus, &record);
    for unknown in ["punctual_valid", "punctual_complete", "punctual_missed_total", "duration_seconds", "spikes"] {
        assert!(!metrics.contains(unknown), "{unknown}: {metrics}");
    }
    for format in [Format::Hgrm, Format::Hlog] {
        let read = imported(format, &record);
        let threads = |record: &Record| record.published.as_ref().unwrap().figures.len();
        assert_eq!(threads(&read), threads(&record), "{format:?}: the threads are of one kind, also here");
        for (read, of) in figures(&read).iter().zip(figures(&record)) {
            assert_eq!((&read.histogram, read.max_ns), (&of.histogram, of.max_ns), "{format:?}");
            assert_eq!(read.samples, of.samples, "{format:?}: also those beyond the last cell");
        }
    }
    // Rows of a histogram have no exact maximum.
    let rows = "000003 000199\n000004 000001\n";
    let rows = import::to_record(import::format_of(rows).unwrap().read(rows, None).unwrap(), Path::new("rows"));
    assert_eq!(figures(&imported(Format::Hlog, &rows))[0].max_ns, None);
}

/// The summary of `cyclictest -q` has no histogram; one without samples would say that nothing was measured.
#[test]
fn figures_without_a_histogram_keep_their_maximum() {
    let record = of_cyclictest(
        "T: 0 (10822) P:50 I:2000 C:    500 Min:      9 Act:   13 Avg:   16 Max:      45\n\
         T: 1 (10823) P:50 I:2500 C:    400 Min:     12 Act:   14 Avg:   23 Max:     870\n",
    );
    let mut without_number = record.clone();
    without_number.published.as_mut().unwrap().figures.iter_mut().for_each(|of| of.samples = None);
    for record in [record, without_number] {
        assert_eq!(read_log(&text(Format::Hlog, &record)), [], "no interval");
        assert!(!text(Format::Hgrm, &record).contains("count = 0"));
        for format in [Format::Hgrm, Format::Hlog] {
            let read = imported(format, &record);
            let of = |record: &Record| {
                figures(record).iter().map(|of| (of.samples, of.max_ns, of.histogram.clone())).collect::<Vec<_>>()
            };
            assert_eq!(of(&read), of(&record), "{format:?}");
            assert!(read.caveats.iter().all(|caveat| caveat.kind != "empty"), "{format:?}: {:?}", read.caveats);
        }
    }
}

/// Each caveat can change the meaning of the figures, so none is left out.
#[test]
fn a_markdown_comment_has_all_caveats_of_an_imported_record() {
    let record = of_cyclictest(
        "T: 0 (900) P:90 I:1000 C:  10000 Min:   2100 Act:   5000 Avg:  5251 Max:   32464\n\
         T: 1 (900) P:90 I:1000 C:  10000 Min:   2100 Act:   5000 Avg:  5251 Max:   32464\n",
    );
    let comment = text(Format::Markdown, &record);
    assert!(comment.contains("\n- the file does not say its unit; "), "{comment}");
    assert!(comment.contains("\n- thread 0: its mean is longer than its period, "), "{comment}");
}

/// Nobody knows afterwards if the run of another tool went as requested.
#[test]
fn junit_does_not_say_that_an_imported_record_is_valid() {
    let valid = |record: &Record| {
        let suite = text(Format::JUnit, record);
        suite.split_once("name=\"valid\" value=\"").unwrap().1.split('"').next().unwrap().to_owned()
    };
    assert_eq!([&of_another_tool(), &sample(), &invalid()].map(valid), ["unknown", "true", "false"]);
}

/// Figures of cyclictest are none of punctual, and those of punctual none of another tool.
#[test]
fn exports_name_the_tool_that_measured() {
    for record in [of_another_tool(), sample()] {
        for format in [Format::Hgrm, Format::Hlog, Format::Lava] {
            let read = imported(format, &record);
            assert_eq!(read.tool, record.tool, "{format:?}");
            assert_eq!(read.machine.hostname, record.machine.hostname, "{format:?}");
        }
    }
    let record = of_another_tool();
    assert!(text(Format::Prometheus, &record).contains(",tool=\"cyclictest\",version=\"2.40\","));
    assert!(text(Format::JUnit, &record).contains("name=\"tool\" value=\"cyclictest\""));
    assert!(!text(Format::JUnit, &record).contains("punctual.version"), "2.40 is no version of punctual");
    assert!(!text(Format::Sarif, &record).contains("2.40"));
    assert!(text(Format::Latex, &record).starts_with("% cyclictest 2.40: timer on "));
}

proptest! {
    #[test]
    fn any_histogram_comes_back_from_an_hlog(cells in prop::collection::vec((0..i64::MAX >> 1, 1..1_u64 << 40), 0..40)) {
        let mut record = sample();
        record.series[0].corrected = Histogram::default();
        cells.iter().for_each(|(value_ns, count)| record.series[0].corrected.add(*value_ns, *count));
        let read = imported(Format::Hlog, &record);
        let corrected = Some(&record.series[0].corrected).filter(|histogram| !histogram.is_empty());
        prop_assert_eq!(figures(&read)[0].histogram.as_ref(), corrected);
    }
}

#[test]
fn imported_results_of_lava_have_the_times_of_their_record() {
    let record = sample();
    let read = imported(Format::Lava, &record);
    let all = figures(&read);
    assert_eq!(all.len(), record.series.len());
    for (figures, series) in all.iter().zip(&record.series) {
        assert_eq!((figures.min_ns, figures.max_ns), (series.min_ns, series.max_ns));
        // The file has whole ns.
        assert!((figures.mean_ns.unwrap() - series.mean_ns.unwrap()).abs() <= 0.501, "{figures:?}");
    }
    let read = imported(Format::Lava, &invalid());
    assert!(read.caveats.iter().any(|caveat| caveat.kind == "invalid"), "{:?}", read.caveats);
}

/// The tags and histograms of a log, by an independent reader.
fn read_log(log: &str) -> Vec<(String, Reader<u64>)> {
    let mut read = Vec::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        let LogEntry::Interval(interval) = entry.expect("a legal line") else { continue };
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, interval.encoded_histogram());
        let histogram = Deserializer::new().deserialize(&mut Cursor::new(bytes.unwrap())).unwrap();
        read.push((interval.tag().unwrap().as_str().to_owned(), histogram));
    }
    read
}

/// The counts of a histogram of ours, with negative values as 0.
fn counts(histogram: &Histogram) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (value, count) in histogram.iter() {
        let value = u64::try_from(value).unwrap_or(0);
        match all.last_mut().filter(|(last, _)| *last == value) {
            Some((_, sum)) => *sum += count,
            None => all.push((value, count)),
        }
    }
    all
}

fn counts_read(histogram: &Reader<u64>) -> Vec<(u64, u64)> {
    let of = |bucket: hdrhistogram::iterators::IterationValue<u64>| {
        (histogram.highest_equivalent(bucket.value_iterated_to()), bucket.count_at_value())
    };
    histogram.iter_recorded().map(of).collect()
}

#[test]
fn an_independent_reader_finds_the_same_histograms() {
    let mut record = sample();
    record.series[1].corrected.add(-300, 4);
    record.series[1].corrected.add(0, 2);
    record.series[1].corrected.add(i64::from(u32::MAX) * 1000, 1 << 40);
    let log = text(Format::Hlog, &record);
    assert!(log.contains("4 early wake-ups"), "{log}");
    let read = read_log(&log);
    assert_eq!(read.iter().map(|(tag, _)| tag.as_str()).collect::<Vec<_>>(), ["load-timer-cpu0", "load-timer-cpu1"]);
    for (series, (_, histogram)) in record.series.iter().zip(&read) {
        assert_eq!(counts_read(histogram), counts(&series.corrected));
    }
    record.series[0].corrected = Histogram::default();
    assert_eq!(read_log(&text(Format::Hlog, &record))[0].1.len(), 0);
}

#[test]
fn the_suffix_chooses_the_format() {
    for format in Format::OF_RECORDS {
        let path = format!("a/run.{}", format.suffix().to_uppercase());
        assert_eq!(Format::of(Path::new(&path), &Format::OF_RECORDS), Ok(format));
    }
    let refused = Format::of(Path::new("run.xls"), &Format::OF_RECORDS).unwrap_err();
    let all = ".json, .csv, .hgrm, .hlog, .html, .md, .xml, .lava, .prom, .sarif or .tex";
    assert_eq!(refused, format!("cannot export to run.xls: its name must end in {all}"));
    let refused = Format::of(Path::new("run.prom"), &Format::OF_FINDINGS).unwrap_err();
    assert_eq!(refused, "cannot export to run.prom: its name must end in .html or .sarif");
    for format in Format::OF_RECORDS {
        assert_eq!(format.campaign(&sample_campaign()).is_some(), Format::OF_CAMPAIGNS.contains(&format));
        assert_eq!(format.findings(&Machine::default(), &[]).is_some(), Format::OF_FINDINGS.contains(&format));
    }
}

/// The signs of PASS in the exports of a run; a run that is not PASS must have none.
fn passes(record: &Record) -> Vec<&'static str> {
    let junit = text(Format::JUnit, record);
    let document = Document::parse(&junit).unwrap();
    let is_case = |node: &Node| node.has_tag_name("testcase");
    let has = |case: &Node, name: &str| case.children().any(|child| child.has_tag_name(name));
    let is_passed = |case: Node| !["failure", "error", "skipped"].iter().any(|name| has(&case, name));
    let sarif: Value = serde_json::from_str(&text(Format::Sarif, record)).unwrap();
    [
        (document.descendants().filter(is_case).any(is_passed), "JUnit"),
        (text(Format::Lava, record).contains("pass"), "LAVA"),
        (
            text(Format::Prometheus, record).lines().any(|line| line.contains("\"PASS\"") && line.ends_with(" 1")),
            "prom",
        ),
        (text(Format::Markdown, record).contains("PASS"), "Markdown"),
        (text(Format::Hlog, record).contains("PASS"), "hlog"),
        (sarif["runs"][0]["properties"]["verdict"] == "PASS", "SARIF"),
    ]
    .into_iter()
    .filter_map(|(is_passed, format)| is_passed.then_some(format))
    .collect()
}

#[test]
fn a_run_without_requested_profiles_has_a_case_for_each_use() {
    let mut record = sample();
    record.scenario.profiles.clear();
    record.verdict = None;
    for (a_use, profile) in record.uses.iter_mut().zip(["hifi-streamer", "audio-48k-64", "control-1khz"]) {
        a_use.profile = profile.into();
    }
    let junit = text(Format::JUnit, &record);
    assert!(junit.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{junit}");
    let lava = text(Format::Lava, &record);
    for part in [
        "\npunctual-control-1khz fail 141.300 us\n",
        "\npunctual-load-timer-cpu0-max fail 41.300 us\n",
        "\nt0-max-latency fail 41.300 us\n",
    ] {
        assert!(lava.contains(part), "{part} is missing in {lava}");
    }
    let terminal = report::terminal::headline(&record, &report::Style::plain(), 1000);
    let comment = text(Format::Markdown, &record);
    let first = comment.lines().next().unwrap();
    assert!(terminal.contains(first.trim_end_matches('.')) && !first.is_empty(), "{first}\n{terminal}");
}

#[test]
fn a_time_has_one_result_under_all_its_names() {
    let mut without_uses = sample();
    without_uses.uses.clear();
    without_uses.verdict = None;
    let result_of = |lava: &str, id: &str| {
        let line = lava.lines().find(|line| line.starts_with(&format!("{id} "))).unwrap().to_owned();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    for (record, expected) in [(sample(), "fail"), (invalid(), "unknown"), (without_uses, "unknown")] {
        let lava = text(Format::Lava, &record);
        assert_eq!(result_of(&lava, "t1-max-latency"), expected);
        assert_eq!(result_of(&lava, "punctual-load-timer-cpu1-max"), expected);
    }
}

#[test]
fn only_a_pass_looks_passed() {
    assert_eq!(passes(&invalid()), Vec::<&str>::new());
    assert_eq!(passes(&interrupted()), Vec::<&str>::new());
    // The measurements of a valid run without profiles are results of LAVA, the run itself is skipped.
    assert_eq!(passes(&unjudged()), ["LAVA"]);
    assert!(
        text(Format::Lava, &unjudged()).starts_with("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=punctual-run RESULT=skip>")
    );
    let mut passed = sample();
    claim_pass(&mut passed);
    assert_eq!(passes(&passed).len(), 6);
    assert!(
        text(Format::Prometheus, &invalid())
            .contains("punctual_valid{host=\"amp\",kernel=\"6.12.30-rt11\",probe=\"timer\"} 0")
    );
}

#[test]
fn a_comment_has_at_most_40_lines() {
    let mut record = invalid();
    for list in 0..30 {
        record.uses.push(record.uses[0].clone());
        record.caveats.push(Caveat { kind: "x".into(), text: format!("caveat {list}") });
        record.validity.reasons.push(record.validity.reasons[0].clone());
        record.series.push(series(list + 2, "timer", 50_000));
    }
    for valid in [false, true] {
        record.validity.valid = valid;
        if valid {
            record.validity.reasons.clear();
        }
        let lines = text(Format::Markdown, &record).lines().count();
        assert!(lines <= 40, "{lines}");
    }
    let mut campaign = sample_campaign();
    campaign.scenarios.extend((0..100).map(|n| ScenarioEntry { name: n.to_string(), ..ScenarioEntry::default() }));
    let comment = String::from_utf8(Format::Markdown.campaign(&campaign).unwrap()).unwrap();
    assert!(comment.lines().count() <= 40, "{comment}");
}

#[test]
fn equal_threads_have_different_labels_and_ids() {
    let mut record = sample();
    record.series[1].cpu = Some(0);
    record.series.push(Series { role: "ti\nmer".into(), ..record.series[1].clone() });
    record.series.push(Series { role: "ti mer".into(), ..record.series[1].clone() });
    let metrics = text(Format::Prometheus, &record);
    let mut keys: Vec<&str> =
        metrics.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap().0).collect();
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count, "{metrics}");
    let tags: Vec<String> = read_log(&text(Format::Hlog, &record)).into_iter().map(|(tag, _)| tag).collect();
    assert_eq!(tags, ["load-timer-cpu0", "load-timer-cpu0.2", "load-ti_mer-cpu0", "load-ti_mer-cpu0.2"]);
}

/// The sample with this text wherever a record has text of outside origin.
fn with_text(hostile: &str) -> Record {
    let mut record = sample();
    let text = || hostile.to_owned();
    record.machine.hostname = Some(text());
    record.machine.kernel = Some(text());
    record.machine.model = Some(text());
    record.scenario.probe = text();
    record.scenario.profiles = vec![text()];
    record.command = vec![text()];
    record.tool.version = text();
    record.started_at = text();
    record.caveats = vec![Caveat { kind: text(), text: text() }];
    record.validity = Validity { valid: false, reasons: vec![Reason { id: text(), text: text(), remedy: text() }] };
    record.phases[0].name = text();
    for series in &mut record.series {
        (series.phase, series.role) = (text(), text());
    }
    for a_use in &mut record.uses {
        (a_use.profile, a_use.title, a_use.reason) = (text(), text(), text());
        (a_use.statement, a_use.worst_where) = (text(), text());
    }
    for finding in &mut record.findings {
        (finding.title, finding.evidence, finding.remedy) = (text(), format!("/{hostile}"), text());
    }
    record
}

/// Any text, with many characters that have a meaning in one of the formats.
fn hostile() -> impl Strategy<Value = String> {
    let special = "[<>&\"'`|\\\\*_\\[\\]()#@!:~${}\\n\\r\\t\u{1b}\u{7}\u{202e}\u{fffe}\u{ffff},=/ a1.-]{0,24}";
    prop_oneof![special, any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_stays_text(text_in in hostile()) {
        let record = with_text(&text_in);
        for format in Format::OF_RECORDS.into_iter().filter(|format| ![Format::Html, Format::Json].contains(format)) {
            prop_assert!(!text(format, &record).contains(visible::is_hidden), "{:?}", format);
        }
        // The same elements in XML, with the text in one line as the attribute of a name.
        let junit = text(Format::JUnit, &record);
        let document = Document::parse(&junit).map_err(|error| TestCaseError::fail(format!("{error}: {junit}")))?;
        let cases: Vec<Node> = document.descendants().filter(|node| node.has_tag_name("testcase")).collect();
        prop_assert_eq!(cases.len(), 3);
        let shown = visible::one_line(&text_in).replace('\u{fffe}', "\\u{fffe}").replace('\u{ffff}', "\\u{ffff}");
        prop_assert_eq!(cases[0].attribute("name"), Some(shown.as_str()));
        // One sample a line in metrics, with balanced quotes.
        for line in text(Format::Prometheus, &record).lines().filter(|line| !line.starts_with('#')) {
            prop_assert!(line.starts_with("punctual_"), "{}", line);
            prop_assert_eq!(line.replace("\\\\", "").replace("\\\"", "").matches('"').count() % 2, 0);
            prop_assert!(line.rsplit_once("} ").is_some_and(|(_, value)| value.parse::<f64>().is_ok()), "{}", line);
        }
        for line in text(Format::Lava, &record).lines().filter(|line| !line.starts_with("# measured-by=")) {
            let signal = line.strip_prefix("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=").and_then(|rest| rest.strip_suffix('>'));
            let id = signal.unwrap_or(line).split(' ').next().unwrap_or_default();
            prop_assert!(["punctual-", "t0-", "t1-"].iter().any(|begin| id.starts_with(begin)), "{}", id);
            prop_assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)), "{}", id);
        }
        prop_assert_eq!(read_log(&text(Format::Hlog, &record)).len(), 2);
        let sarif: Value = serde_json::from_str(&text(Format::Sarif, &record)).unwrap();
        prop_assert_eq!(&sarif["runs"][0]["invocations"][0]["commandLine"], &text_in);
        // In Markdown, the text adds no line.
        let comment = text(Format::Markdown, &record);
        prop_assert!(comment.lines().count() <= text(Format::Markdown, &with_text("x")).lines().count(), "{}", comment);
    }
}
