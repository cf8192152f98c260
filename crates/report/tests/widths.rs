//! The answer and the page of each kind of measurement at three widths.

#![allow(clippy::unwrap_used, reason = "a panic is the failure of a test")]

#[path = "common/proof.rs"]
mod search;

use insta::assert_snapshot;
use record::{
    Account, Blame, BlameMode, Campaign, Cause, CauseKind, Caveat, Compared, Culprit, INTERRUPT, Interrupts, Outcome,
    Record, RoleResult, ScenarioEntry, ScenarioResult, Series, SeriesKind, Spike, Times, UseVerdict, Verdict, Zero,
    file::{parse, parse_campaign},
};
use report::{
    Style,
    terminal::{
        CheckCommands, MatrixFigure, answer, campaign, campaign_answer, findings, findings_answer, machine, matrix,
        summary,
    },
};

const UNICODE: Style = Style { color: false, unicode: true };
const WIDTHS: [usize; 3] = [40, 80, 120];
const FULL: &str = "punctual show --full a.punctual.json";

fn record(name: &str) -> Record {
    let text = match name {
        "interrupt" => return interrupt(),
        "audio" => include_str!("../../record/tests/records-0.1/audio.json"),
        "capture" => include_str!("../../record/tests/records-0.1/capture.json"),
        "machine" | "timer" => include_str!("../../record/tests/records-0.1/timer.json"),
        "matrix" => include_str!("../../record/tests/records-0.1/matrix.json"),
        "noise" => include_str!("../../record/tests/records-0.1/noise.json"),
        "process" => include_str!("../../record/tests/records-0.1/process.json"),
        "stream" => include_str!("../../record/tests/records-0.1/stream.json"),
        "udp" => include_str!("../../record/tests/records-0.1/udp.json"),
        other => panic!("no record of {other}"),
    };
    parse(text.as_bytes()).unwrap()
}

/// A line of a GPIO chip, with the figures of a timer.
fn interrupt() -> Record {
    let mut record = record("timer");
    record.scenario.probe = INTERRUPT.to_owned();
    (record.uses, record.verdict) = (Vec::new(), None);
    record.phases.truncate(1);
    record.series.retain(|series| series.phase == record.phases[0].name);
    record.series.truncate(1);
    let series = &mut record.series[0];
    series.role = INTERRUPT.to_owned();
    let times = Times {
        min_ns: series.min_ns.unwrap(),
        mean_ns: series.mean_ns.unwrap(),
        max_ns: series.max_ns.unwrap(),
        histogram: series.raw.clone(),
    };
    series.kind = SeriesKind::Interrupts(Box::new(Interrupts {
        source: "gpio:gpiochip0/17".to_owned(),
        device: "line 17 (GPIO17) of gpiochip0, pinctrl-bcm2835".to_owned(),
        zero: Zero::Edge,
        resolution_ns: Some(1),
        driven_by: Some("line 27 (GPIO27) of gpiochip0, pinctrl-bcm2835".to_owned()),
        unanswered: 2,
        spurious: 3,
        to_kernel: Some(times.clone()),
        to_thread: Some(times),
        ..Interrupts::default()
    }));
    record
}

fn of_campaign() -> Campaign {
    parse_campaign(include_bytes!("../../record/tests/records-0.1/campaign.json")).unwrap()
}

/// The answer, then the page.
fn shown(name: &str, width: usize) -> String {
    let (answer, page) = match name {
        "campaign" => {
            let of = of_campaign();
            (campaign_answer(&of, "a/campaign.json", &UNICODE, width), campaign(&of, &UNICODE, width))
        }
        "machine" => {
            let record = record(name);
            let commands = CheckCommands {
                explain: "punctual check --explain".to_owned(),
                full: "punctual check --full".to_owned(),
            };
            let facts = machine(&record, "punctual check", None, &UNICODE, width);
            (
                findings_answer(&record.findings, &commands, &UNICODE, width),
                facts + &findings(&record.findings, &UNICODE, width),
            )
        }
        "matrix" => {
            let figures = [MatrixFigure::Jitter, MatrixFigure::Lateness, MatrixFigure::Missed];
            let record = record(name);
            (answer(&record, FULL, &UNICODE, width), matrix(&record, &figures, &UNICODE, width))
        }
        _ => {
            let record = record(name);
            (answer(&record, FULL, &UNICODE, width), summary(&record, &UNICODE, width))
        }
    };
    format!("{answer}{}\n{page}", "=".repeat(width))
}

fn check(name: &str) {
    for width in WIDTHS {
        let text = shown(name, width);
        for line in text.lines() {
            // A word is not broken, because a command or a path could not be pasted.
            let unbreakable = line.trim().trim_end_matches(" \\").split(' ').count() == 1;
            assert!(line.chars().count() <= width || unbreakable, "{name} is wider than {width}: {line:?}\n{text}");
        }
        assert_snapshot!(format!("{name}_{width}"), text);
    }
}

#[test]
fn pages_fit_at_three_widths() {
    const NAMES: [&str; 11] = [
        "audio",
        "campaign",
        "capture",
        "interrupt",
        "machine",
        "matrix",
        "noise",
        "process",
        "stream",
        "timer",
        "udp",
    ];
    for name in NAMES {
        check(name);
    }
}

#[test]
fn answers_have_at_most_20_lines_with_the_paths_of_the_files() {
    const PATHS: usize = 2;
    for name in ["audio", "capture", "interrupt", "matrix", "noise", "process", "stream", "timer", "udp"] {
        let mut record = record(name);
        // A use, a limit and a long path take as many lines as they can.
        let text =
            "the hypervisor took 100 ms of CPU 0 and 10 ms of CPU 1 during the run, which is a part of the latency";
        record.caveats = vec![Caveat { kind: "virtual".into(), text: text.into() }; 3];
        // The first line has a sentence for each end of a stream, and a run has one source of interrupts.
        let series = record.series.first().filter(|_| !["stream", "interrupt"].contains(&name)).cloned();
        record.series.extend((2..9).filter_map(|cpu| Some(Series { cpu: Some(cpu), ..series.clone()? })));
        record.blame = Some(blame());
        if name != "matrix" {
            record.cells.clear();
        }
        let heading = match name {
            "audio" => "  xruns  ",
            "capture" | "stream" => "  missing  ",
            "matrix" => "  base jitter  ",
            "noise" => "  longest",
            "process" => "  longest cycle",
            _ => "  p99.9  ",
        };
        for width in [80, 120] {
            let full = format!("punctual show --full {}.punctual.json", "a".repeat(60));
            let text = answer(&record, &full, &UNICODE, width);
            assert!(text.lines().count() + PATHS <= 20, "{name} at {width}:\n{text}");
            assert!(text.contains(heading), "no table of {name} at {width}:\n{text}");
        }
    }
    let text = campaign_answer(&of_campaign(), "a/campaign.json", &UNICODE, 80);
    assert!(text.lines().count() + PATHS <= 20, "{text}");
}

fn account(kind: CauseKind, name: &str, total_ns: u64, remedy: &str) -> Account {
    Account {
        cause: Cause::new(kind, name),
        count: 9,
        worst_ns: 1_590_000,
        total_ns,
        remedy: remedy.into(),
        ..Account::default()
    }
}

fn blame() -> Blame {
    let hypervisor = "the hypervisor kvm can take a CPU at any time, and no setting in this guest prevents it: on the \
                      host, give each virtual CPU a core of its own (e.g. virsh vcpupin), and isolate these cores";
    let idle = "keep the CPU out of deep idle states, `echo 1 | sudo tee /sys/devices/system/cpu/cpu0/cpuidle/state[1-9]/disable \
                /sys/devices/system/cpu/cpu1/cpuidle/state[1-9]/disable`; measure the effect with `punctual measure timer --hold-cpu-awake`";
    Blame {
        mode: BlameMode::Trace,
        spikes: 100,
        ledger: vec![
            account(CauseKind::WakeUp, "", 300, "this is the kernel's normal cost on this CPU"),
            account(CauseKind::Interrupt, "local_timer", 200, "stop the tick: kernel argument `nohz_full=1`"),
            account(CauseKind::IdleExit, "C6", 100, idle),
            account(CauseKind::LateInterrupt, "load/cache", 50, hypervisor),
        ],
        ..Blame::default()
    }
}

/// A record whose worst spike has a cause that is not the first of the ledger.
fn blamed() -> Record {
    let mut record = record("timer");
    let cause = Cause::new(CauseKind::LateInterrupt, "load/cache");
    record.series[0].spikes =
        vec![Spike { lateness_ns: 6_750_000, culprits: vec![Culprit { cause, ns: 6_700_000 }], ..Spike::default() }];
    record.blame = Some(blame());
    record
}

#[test]
fn remedies_name_their_causes_that_of_the_worst_spike_first() {
    let mut record = blamed();
    let text = answer(&record, FULL, &UNICODE, 120);
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("  do ") || line.starts_with("           ")).collect();
    assert!(
        lines[0]
            .starts_with("  do       1  worst spike, interrupt came late, while load/cache ran: the hypervisor kvm"),
        "{text}"
    );
    assert!(
        text.contains("\n           2  interrupt local_timer: stop the tick: kernel argument `nohz_full=1`\n"),
        "{text}"
    );
    assert!(text.contains("\n           3  return from idle"), "{text}");
    // With few lines, the number of the others remains.
    record.caveats = vec![Caveat { kind: "virtual".into(), text: "a caveat ".repeat(60) }];
    let text = answer(&record, FULL, &UNICODE, 80);
    assert!(text.contains("worst spike, interrupt came late"), "{text}");
    assert!(text.contains("(and 2 more)") || text.contains("(and 1 more)"), "{text}");
}

#[test]
fn a_narrow_answer_keeps_cause_and_remedy_and_shortens_the_caveats() {
    let mut record = blamed();
    let of = |text: &str| Caveat { kind: "virtual".into(), text: text.into() };
    record.caveats =
        vec![of("the hypervisor took 100 ms of CPU 0, 10 ms of CPU 1 during the run"), of("second"), of("third")];
    for width in [40, 60] {
        let text = answer(&record, FULL, &UNICODE, width);
        for label in ["caveat", "why", "do"] {
            assert!(text.contains(&format!("\n  {label}  ")), "no {label} at {width}:\n{text}");
        }
        assert!(text.contains("more)") || text.contains("caveat   3, shown with --full"), "{text}");
        // A narrow answer is wrapped, not shortened.
        assert!(text.lines().count() <= 18 * 80 / width, "{text}");
    }
    let text = answer(&record, "the same command with --full", &UNICODE, 32);
    assert!(text.ends_with("  more     the same command with\n           --full\n"), "a text is not continued: {text}");
}

#[test]
fn a_reason_in_the_headline_is_not_repeated() {
    let mut record = record("timer");
    record.scenario.profiles = vec!["hi-fi".into(), "voip".into()];
    let of = |profile: &str, outcome, reason: &str| UseVerdict {
        profile: profile.into(),
        outcome,
        reason: reason.into(),
        ..UseVerdict::default()
    };
    record.uses =
        vec![of("hi-fi", Outcome::Fail, "6.75 ms late, above the limit of 5 ms"), of("voip", Outcome::Pass, "in time")];
    let reason = format!("hi-fi: {}", record.uses[0].reason);
    record.verdict = Some(Verdict { outcome: Outcome::Fail, reason });
    let text = answer(&record, FULL, &UNICODE, 120);
    assert_eq!(text.matches("6.75 ms late").count(), 1, "{text}");
    assert!(text.contains("\n  pass     voip: in time\n"), "{text}");
}

#[test]
fn a_campaign_names_its_first_failed_scenario() {
    let of = |name: &str, outcome, reason: &str| ScenarioEntry {
        name: name.into(),
        result: Some(ScenarioResult {
            valid: true,
            outcome: Some(outcome),
            reason: Some(reason.into()),
            ..ScenarioResult::default()
        }),
        ..ScenarioEntry::default()
    };
    let fail = |name| of(name, Outcome::Fail, "2 ms late, above the limit");
    let mut campaign = Campaign {
        scenarios: vec![of("idle", Outcome::Inconclusive, "too few samples"), fail("load"), fail("net")],
        ..Campaign::default()
    };
    let text = campaign_answer(&campaign, "a/campaign.json", &UNICODE, 80);
    assert_eq!(text.matches("of 3 scenarios").count(), 1, "{text}");
    assert!(text.contains("\n  fail     load: 2 ms late, above the limit (and 1 more)\n"), "{text}");
    campaign.scenarios.truncate(1);
    let text = campaign_answer(&campaign, "a/campaign.json", &UNICODE, 80);
    assert!(text.contains("\n  unsure   idle: too few samples\n"), "{text}");
}

#[test]
fn a_campaign_without_choices_names_its_reference_and_the_causes() {
    let beside =
        |ratio| Compared { name: "theirs".into(), max_ns: Some(1_000), ratio: Some(ratio), ..Compared::default() };
    let of = |name: &str, ratio: f64, max_ns| ScenarioEntry {
        name: name.into(),
        record: format!("{name}.punctual.json"),
        result: Some(ScenarioResult {
            valid: true,
            culprit: Some("softirq BLOCK".into()),
            roles: vec![RoleResult {
                role: "timer".into(),
                max_ns: Some(max_ns),
                beside: vec![beside(ratio)],
                ..RoleResult::default()
            }],
            ..ScenarioResult::default()
        }),
        ..ScenarioEntry::default()
    };
    let campaign = Campaign { scenarios: vec![of("idle", 5.0, 5_000), of("load", 9.0, 9_000)], ..Campaign::default() };
    let text = campaign_answer(&campaign, "a b/campaign.json", &UNICODE, 80);
    assert!(text.contains("\n  against  theirs (load): 1 us, here 9 us (9.00x)\n"), "{text}");
    assert!(text.contains("\n           punctual blame 'a b/load.punctual.json'\n"), "{text}");
}

#[test]
fn headlines_of_round_trips_and_streams_have_counts_and_magnitudes() {
    let mut record = record("udp");
    for series in &mut record.series {
        if let SeriesKind::RoundTrips(trip) = &mut series.kind {
            (trip.slots, trip.sent, trip.lost, trip.late, trip.timeout_ns) = (3001, 2991, 0, 0, 1_000_000_000);
        }
    }
    let text = answer(&record, FULL, &UNICODE, 120);
    assert!(text.contains("0 of 2,991 lost, 10 not sent, 0 answered after the time-out of 1 s."), "{text}");
    let text = answer(&self::record("stream"), FULL, &UNICODE, 120);
    assert!(text.contains(" late (at most "), "{text}");
    let text = answer(&self::record("capture"), FULL, &UNICODE, 120);
    assert!(text.contains(" late (at most "), "{text}");
}

#[test]
fn searches_fit_at_three_widths() {
    let proof = search::proof();
    for width in WIDTHS {
        assert_snapshot!(format!("proof_{width}"), report::terminal::proof(&proof, false, &UNICODE, width));
    }
    assert_snapshot!("proof_full_80", report::terminal::proof(&proof, true, &UNICODE, 80));
    let mut without_effect = proof.clone();
    let conclusion = without_effect.conclusion.as_mut().unwrap();
    conclusion.effects = vec![conclusion.effects[1].clone(); 4];
    (conclusion.kept, conclusion.together) = (Vec::new(), None);
    let headline = |proof| report::terminal::proof_headline(proof, &UNICODE);
    assert_eq!(
        headline(&without_effect),
        "No change made a measurable difference for the better. At 98 %, none improves p99 by more than 4 % or p99.99 by \
         more than 4 %.\n"
    );
    let mut dropped = proof.clone();
    dropped.chosen = Some(vec![0, 1]);
    assert_eq!(
        headline(&dropped),
        "✔ cpu.governor helps; memory.thp harms together with the others, and is not kept.\n"
    );
    let mut begun = proof;
    (begun.conclusion, begun.state) = (None, record::State::Interrupted);
    begun.rounds.truncate(30);
    assert_snapshot!("proof_begun_80", report::terminal::proof(&begun, false, &UNICODE, 80));
}
