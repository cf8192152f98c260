//! Terminal output about culprits.

#[path = "common/blamed.rs"]
mod blamed;

use insta::assert_snapshot;
use record::{
    Account, Blame, BlameMode, Cause, CauseKind, Culprit, Evidence, ProcessThread, Program, Record, Scenario, Series,
    SeriesKind, Spike, State, Stretch, Validity, Why,
};
use report::Style;
use report::terminal::{answer, blame, blame_answer, overview, spike, summary};

const UNICODE: Style = Style { color: false, unicode: true };

/// Two CPUs at rest and under load, with 16 spikes in total and one more from the firmware in each series.
fn blamed() -> Record {
    let series = |phase: &str, cpu: u32, late: &[i64]| {
        let one = |(n, &lateness_ns): (u64, &i64)| Spike {
            lateness_ns,
            at_ns: 700_000_000 + n * 311_000_000,
            ..Spike::default()
        };
        let firmware = Spike { lateness_ns: 247_311, at_ns: blamed::FIRMWARE_EVERY_NS, ..Spike::default() };
        let spikes: Vec<Spike> = (0..).zip(late).map(one).chain([firmware]).collect();
        Series {
            phase: phase.into(),
            cpu: Some(cpu),
            samples: 15_000,
            spikes_total: spikes.len() as u64,
            spikes,
            ..Series::default()
        }
    };
    let mut record = Record {
        state: State::Complete,
        validity: Validity { valid: true, reasons: Vec::new() },
        scenario: Scenario { threshold_ns: 80_000, ..Scenario::default() },
        series: vec![
            series("rest", 0, &[131_420, 95_210]),
            series("rest", 1, &[183_004]),
            series("load", 0, &[412_118, 120_045, 90_731, 211_907, 350_040]),
            series("load", 1, &[99_108, 87_010, 1_204_600, 301_772, 140_909, 81_113, 269_444, 95_070]),
        ],
        ..Record::default()
    };
    blamed::blame(&mut record);
    record
}

/// One series with these spikes and this ledger.
fn record(blame: Blame, spikes: Vec<Spike>) -> Record {
    let spikes_total = spikes.len() as u64;
    let series = Series { phase: "load".into(), cpu: Some(1), spikes, spikes_total, ..Series::default() };
    let scenario = Scenario { threshold_ns: 80_000, ..Scenario::default() };
    Record {
        state: State::Complete,
        validity: Validity { valid: true, reasons: Vec::new() },
        scenario,
        series: vec![series],
        blame: Some(blame),
        ..Record::default()
    }
}

fn i915() -> Account {
    Account {
        cause: blamed::thread("irq/125-i915", 412, 49, Why::HigherPriority),
        count: 14,
        worst_ns: 412_000,
        total_ns: 3_910_000,
        cpus: "0-1".into(),
        phases: vec!["rest".into(), "load".into()],
        every_ns: Some(64_000_120_000),
        remedy: "sudo chrt -f -p 40 412".into(),
        ..Account::default()
    }
}

#[test]
fn the_ledger_names_culprits() {
    assert_snapshot!("blame_100", blame(&blamed(), &UNICODE, 100));
    assert_snapshot!("blame_60", blame(&blamed(), &UNICODE, 60));
    assert_snapshot!("blame_ascii_80", blame(&blamed(), &Style::plain(), 80));
    assert_snapshot!("blame_overview_80", overview(&blamed(), &UNICODE, 80));
}

#[test]
fn the_answer_has_at_most_20_lines() {
    let answer = |width| blame_answer(&blamed(), "a b.punctual.json", &UNICODE, width);
    for width in 80..200 {
        let text = answer(width);
        assert!(text.lines().count() <= 20 && text.contains(" do ") && text.contains("--around 1"), "{width}:\n{text}");
    }
    for width in [40, 80, 120] {
        assert_snapshot!(format!("blame_answer_{width}"), answer(width));
    }
}

#[test]
fn proposes_nothing_for_the_ended_threads_of_a_command() {
    let remedies = |tid, started| {
        let account = i915();
        let culprit = Culprit { cause: account.cause.clone(), ..Culprit::default() };
        let spike = Spike { lateness_ns: 412_000, culprits: vec![culprit], ..Spike::default() };
        let blame = Blame { mode: BlameMode::Trace, spikes: 14, ledger: vec![account], ..Blame::default() };
        let mut record = record(blame, vec![spike]);
        record.program = Some(Program { started, ..Program::default() });
        record.series[0].kind = SeriesKind::Process(Box::new(ProcessThread { tid, ..ProcessThread::default() }));
        answer(&record, "", &UNICODE, 80).contains("sudo chrt -f -p 40 412")
    };
    assert!(remedies(412, false) && remedies(77, true) && remedies(41, true));
    assert!(!remedies(412, true));
}

#[test]
fn shows_a_spike_as_a_time_line() {
    assert_snapshot!("spike_100", spike(&blamed(), 1, &UNICODE, 100).unwrap());
    assert_snapshot!("spike_60", spike(&blamed(), 2, &UNICODE, 60).unwrap());
    assert_snapshot!("spike_ascii_80", spike(&blamed(), 2, &Style::plain(), 80).unwrap());
    assert_snapshot!(
        "spike_color_80",
        spike(&blamed(), 2, &Style { color: true, unicode: true }, 80).unwrap().replace('\x1b', "␛")
    );
}

#[test]
fn ranks_spikes_by_lateness() {
    let record = blamed();
    let kept: usize = record.series.iter().map(|series| series.spikes.len()).sum();
    assert!(spike(&record, 0, &UNICODE, 80).is_none() && spike(&record, kept + 1, &UNICODE, 80).is_none());
    let mut lateness: Vec<i64> =
        record.series.iter().flat_map(|series| series.spikes.iter().map(|spike| spike.lateness_ns)).collect();
    lateness.sort_unstable_by_key(|&ns| std::cmp::Reverse(ns));
    for (number, ns) in (1..).zip(lateness) {
        let page = spike(&record, number, &UNICODE, 80).unwrap();
        let begins = format!("Spike {number} of {kept}: {} late", analysis::format_ns(ns));
        assert!(page.starts_with(&begins), "{begins}\n{page}");
        assert!(page.contains("100.0 %  "), "the shares add up: {page}");
    }
    let mut more = record;
    more.series[0].spikes_total += 1000;
    let counted = record::grouped(more.spikes_total());
    let page = spike(&more, 1, &UNICODE, 80).unwrap();
    assert!(page.starts_with(&format!("Spike 1 of {kept} stored, {counted} counted: ")), "{page}");
}

#[test]
fn the_headline_names_the_main_culprit() {
    let of = |spikes, count| {
        let ledger = vec![Account { count, ..i915() }];
        blame(&record(Blame { mode: BlameMode::Trace, spikes, ledger, ..Blame::default() }, Vec::new()), &UNICODE, 80)
    };
    assert!(
        of(16, 14).contains("\n  Main cause of 14 of the 16 spikes above 80 us: i915 interrupt thread\n"),
        "{}",
        of(16, 14)
    );
    assert!(of(14, 14).contains("\n  Main cause of all 14 spikes above 80 us: i915"), "{}", of(14, 14));
    assert!(of(1, 1).contains("\n  Main cause of the only spike above 80 us: i915"), "{}", of(1, 1));
    // The first row of the table, although another cause made more spikes late.
    let cause = Cause::new(CauseKind::Softirq, "NET_RX");
    let often = Account { cause, count: 13, total_ns: 1_000, worst_ns: 100, ..Account::default() };
    let first = Account { count: 3, ..i915() };
    // Part of many spikes, but never the main cause: not in the table.
    let never = Account { count: 0, total_ns: first.total_ns + 1, ..often.clone() };
    let ledger = vec![never, first, often];
    let blame_of_16 = Blame { mode: BlameMode::Trace, spikes: 16, ledger, ..Blame::default() };
    let page = blame(&record(blame_of_16, Vec::new()), &UNICODE, 80);
    assert!(
        page.contains(
            "\n  Main cause of 3 of the 16 spikes above 80 us, and 50 % of the lateness of all\n  spikes: i915"
        ),
        "{page}"
    );
    assert!(page.contains("\n  Spikes and worst: those with this main cause. Total and share: its time"), "{page}");
}

#[test]
fn shows_doubts() {
    let unexplained = Account { total_ns: 170_000, count: 2, worst_ns: 90_000, ..Account::default() };
    let blame = Blame {
        mode: BlameMode::Counters,
        why: "tracefs is not mounted: mount it with `sudo mount -t tracefs nodev /sys/kernel/tracing`".into(),
        spikes: 16,
        incomplete: 3,
        lost_events: 812,
        passed_over: 40,
        ledger: vec![i915(), unexplained],
        ..Blame::default()
    };
    let cause = blamed::thread("irq/125-i915", 412, 49, Why::HigherPriority);
    let likely = Spike {
        lateness_ns: 412_000,
        culprits: vec![Culprit { cause, ns: 412_000 }],
        evidence: Evidence::Counters,
        ..Spike::default()
    };
    assert_snapshot!("doubts_summary_80", summary(&record(blame.clone(), vec![likely.clone()]), &UNICODE, 80));
    assert_snapshot!("likely_spike_80", spike(&record(blame, vec![likely]), 1, &UNICODE, 80).unwrap());
}

#[test]
fn shows_why_culprits_were_not_recorded() {
    let why = "tracefs belongs to root: sudo punctual";
    let spikes = vec![Spike { lateness_ns: 90_000, ..Spike::default() }];
    let record = record(Blame { why: why.into(), ..Blame::default() }, spikes);
    for page in [overview(&record, &UNICODE, 80), summary(&record, &UNICODE, 80)] {
        assert!(page.contains(&format!("Culprits were not recorded: {why}.")), "{page}");
    }
    assert!(spike(&record, 1, &UNICODE, 80).unwrap().contains("No events were recorded around this spike"));
}

#[test]
fn shows_a_traced_spike_without_a_time_line() {
    let cause = blamed::thread("irq/125-i915", 412, 49, Why::HigherPriority);
    let culprits = vec![Culprit { cause, ns: 90_000 }];
    let traced = Spike { lateness_ns: 90_000, culprits, evidence: Evidence::Trace, ..Spike::default() };
    let record = record(Blame { mode: BlameMode::Trace, spikes: 1, ..Blame::default() }, vec![traced]);
    let page = spike(&record, 1, &UNICODE, 80).unwrap();
    assert!(page.contains("irq/125-i915") && !page.contains("No events"), "{page}");
    assert!(page.contains("The record has time lines only of the worst spikes of each series."), "{page}");
    // Nor does the page of the run say how to show a time line.
    assert!(!blame(&record, &UNICODE, 80).contains("as a time line"));
}

#[test]
fn reports_no_culprits_without_spikes() {
    let record = record(Blame { mode: BlameMode::Trace, ..Blame::default() }, Vec::new());
    assert!(!overview(&record, &UNICODE, 80).contains("Culprits of"));
    assert!(blame(&record, &UNICODE, 80).contains("No wake-up was later than 80 us"));
}

#[test]
fn notes_an_incomplete_time_line() {
    let stretch = |start_ns, ns| Stretch { start_ns, ns, cause: Cause::new(CauseKind::Softirq, "NET_RX\x1b[2J") };
    let odd = Spike {
        lateness_ns: 100_000,
        timeline: vec![stretch(-30_000, 50_000), stretch(40_000, 20_000), stretch(i64::MIN, 3), stretch(5, u64::MAX)],
        ..Spike::default()
    };
    let record = record(Blame { mode: BlameMode::Trace, ..Blame::default() }, vec![odd, Spike::default()]);
    for width in (0..200).chain([usize::MAX / 4]) {
        for number in [1, 2] {
            let text = spike(&record, number, &UNICODE, width).unwrap();
            assert!(text.ends_with('\n') && !text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
        }
    }
    assert!(spike(&record, 1, &UNICODE, 80).unwrap().contains("of the lateness"));
}

#[test]
fn no_line_is_wider_than_the_page() {
    let record = blamed();
    for width in [40, 60, 72, 80, 97, 160] {
        let spikes = (1..=20).filter_map(|number| spike(&record, number, &UNICODE, width));
        let answer = blame_answer(&record, "a.punctual.json", &UNICODE, width);
        for text in spikes.chain([answer, blame(&record, &UNICODE, width), blame(&record, &Style::plain(), width)]) {
            for line in text.lines() {
                let unbreakable = line.trim().trim_end_matches(" \\").split(' ').count() == 1;
                assert!(line.chars().count() <= width || unbreakable, "wider than {width}: {line:?}");
            }
        }
    }
}
