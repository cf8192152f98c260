//! Terminal output for typical records.

use insta::assert_snapshot;
use record::{
    Cause, CauseKind, Caveat, Culprit, Finding, FindingState, Granted, Histogram, LoadProof, Machine, Outcome, Phase,
    Reason, Record, Scenario, Series, Spike, State, Tool, UseVerdict, Validity, Verdict,
};
use report::Style;
use report::terminal::{answer, findings, machine, overview, summary};

const UNICODE: Style = Style { color: false, unicode: true };

/// One series whose histogram spreads around `typical_ns`, with one wake-up at `max_ns`.
fn series(phase: &str, cpu: u32, policy: &str, typical_ns: i64, max_ns: i64) -> Series {
    let mut raw = Histogram::default();
    for (tenths, count) in [(7, 900), (10, 12_000), (14, 1_900), (22, 170), (50, 12)] {
        raw.add(typical_ns * tenths / 10, count);
    }
    raw.record(max_ns);
    let period_ns = 1_000_000;
    let corrected = raw.corrected(&[max_ns], period_ns);
    let cause = Cause::new(CauseKind::Thread, "kworker/1:2-events");
    let culprits = vec![Culprit { cause, ns: max_ns.unsigned_abs() }];
    let spike = Spike { lateness_ns: max_ns, at_ns: 7_312_000_000, culprits, ..Spike::default() };
    Series {
        phase: phase.into(),
        role: "timer".into(),
        cpu: Some(cpu),
        granted: Granted {
            policy: policy.into(),
            cpus: cpu.to_string(),
            memory_locked: policy != "other",
            timer_slack_ns: if policy == "other" { 50_000 } else { 0 },
            ..Granted::default()
        },
        period_ns,
        samples: raw.total(),
        missed: corrected.total() - raw.total(),
        min_ns: Some(typical_ns * 7 / 10),
        mean_ns: Some(typical_ns as f64 * 1.04),
        max_ns: Some(max_ns),
        max_at_ns: Some(7_312_000_000),
        jitter_ns: max_ns.unsigned_abs() * 2,
        raw,
        corrected,
        spikes_total: u64::from(max_ns > 100_000),
        spikes: if max_ns > 100_000 { vec![spike] } else { Vec::new() },
        floor_ns: 42,
        ..Series::default()
    }
}

fn phase(name: &str, loads: &[&str]) -> Phase {
    let proof = |spec: &&str| LoadProof {
        name: (*spec).into(),
        spec: (*spec).into(),
        cpus: "0-3".into(),
        threads: 4,
        operations: 48_230_112,
        unit: "64 KiB streamed".into(),
        cpu_time_ns: 58_900_000_000,
        wall_ns: 15_000_000_000,
        ran: true,
        ..LoadProof::default()
    };
    Phase {
        name: name.into(),
        period_ns: 1_000_000,
        duration_ns: 15_000_000_000,
        planned_ns: Some(15_000_000_000),
        asked_loads: loads.iter().map(|&load| load.into()).collect(),
        loads: loads.iter().map(proof).collect(),
        ..Phase::default()
    }
}

fn a_use(title: &str, outcome: Outcome, limit_ns: i64, worst_ns: i64) -> UseVerdict {
    UseVerdict {
        profile: title.to_lowercase().replace(' ', "-"),
        title: title.into(),
        outcome,
        reason: match outcome {
            Outcome::Pass => "at most 59.3 us late (CPU 3, load), within the limit of 100 us; at 95 % fewer than 24 stalls a day, 1 per hour is tolerated",
            Outcome::Fail => "59.3 us late on CPU 3, load, above the limit of 10 us",
            Outcome::Inconclusive => {
                "none late so far, at 95 % fewer than 721 stalls an hour (CPU 0, load), but 1 per hour is tolerated: run `punctual measure timer --period 125us --duration 198m --profile avb-class-a --load cpu --load cache`"
            }
            Outcome::Invalid => "the run did not go as requested (policy.refused)",
        }
        .into(),
        limit_ns,
        worst_ns: Some(worst_ns),
        worst_where: "CPU 3, load".into(),
        samples: 59_932,
        over_limit: u64::from(outcome == Outcome::Fail) * 17,
        statement: "CPU 0, load: none of 14,983 cycles later than 100 us: at 95 % fewer than 721 stalls an hour".into(),
        tolerates: "1 per hour".into(),
        clean_so_far: outcome == Outcome::Inconclusive,
        ..UseVerdict::default()
    }
}

fn base() -> Record {
    Record {
        tool: Tool { name: "punctual".into(), version: "0.1.0".into() },
        state: State::Complete,
        started_at: "2026-11-21T10:00:00Z".into(),
        command: ["punctual", "measure", "timer", "--policy", "fifo:90", "--load", "stress-ng:--vm 2"]
            .map(Into::into)
            .into(),
        scenario: Scenario {
            probe: "timer".into(),
            policy: "fifo:90".into(),
            clock: "monotonic".into(),
            wait: "nanosleep".into(),
            threshold_ns: 100_000,
            ..Scenario::default()
        },
        phases: vec![phase("rest", &[]), phase("load", &["cpu", "cache"])],
        validity: Validity { valid: true, reasons: Vec::new() },
        ..Record::default()
    }
}

fn healthy() -> Record {
    let names = ["rest", "load"];
    Record {
        machine: Machine {
            hostname: Some("amp".into()),
            model: Some("Raspberry Pi 4 Model B Rev 1.4".into()),
            cpu_model: Some("Cortex-A72".into()),
            cpus_online: Some("0-3".into()),
            arch: Some("aarch64".into()),
            kernel: Some("6.12.30-rt11".into()),
            preempt: Some("PREEMPT_RT".into()),
            governor: Some("performance".into()),
            cpus_isolated: Some("2-3".into()),
            hypervisor: Some("none".into()),
            container: Some("none".into()),
            ..Machine::default()
        },
        findings: vec![Finding { id: "kernel.preempt".into(), state: FindingState::Ok, ..Finding::default() }],
        series: names
            .iter()
            .flat_map(|name| (0..4).map(|cpu| series(name, cpu, "fifo:90", 5_200, 41_300 + i64::from(cpu) * 6_000)))
            .collect(),
        verdict: Some(Verdict { outcome: Outcome::Pass, reason: "audio-64-48k held on every CPU.".into() }),
        uses: vec![
            a_use("1 kHz control", Outcome::Pass, 100_000, 59_300),
            a_use("audio, 64 frames at 48 kHz", Outcome::Pass, 400_000, 59_300),
            a_use("AVB class A, 125 us", Outcome::Inconclusive, 50_000, 41_000),
            a_use("CNC step generation, 25 us", Outcome::Fail, 10_000, 59_300),
        ],
        ..base()
    }
}

fn virtual_machine() -> Record {
    let finding = |state, title: &str, remedy: &str| Finding {
        id: "x".into(),
        state,
        title: title.into(),
        remedy: remedy.into(),
        ..Finding::default()
    };
    use FindingState::{Fail, Ok, Unknown, Warn};
    let mut record = Record {
        machine: Machine {
            hostname: Some("cloud-7".into()),
            cpu_model: Some("Intel(R) Xeon(R) Processor @ 2.50GHz".into()),
            cpus_online: Some("0-1".into()),
            arch: Some("x86_64".into()),
            os: Some("Debian GNU/Linux 13 (trixie)".into()),
            kernel: Some("6.12.48+deb13-cloud-amd64".into()),
            preempt: Some("voluntary".into()),
            cpus_isolated: Some(String::new()),
            hypervisor: Some("kvm".into()),
            container: Some("docker".into()),
            ..Machine::default()
        },
        findings: vec![
            finding(Warn, "swap is on", "sudo swapoff -a"),
            finding(
                Fail,
                "kernel without real-time preemption (voluntary)",
                "boot with preempt=full, or sudo apt install linux-image-rt-amd64",
            ),
            finding(Ok, "clock tsc", ""),
            finding(Unknown, "huge pages not understood", ""),
            finding(
                Warn,
                "governor powersave on CPUs 0-1",
                "echo performance | sudo tee /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            ),
            finding(Warn, "irqbalance runs", "sudo systemctl disable --now irqbalance"),
            finding(Warn, "timers of CPUs 1 run on other CPUs", "echo 0 | sudo tee /proc/sys/kernel/timer_migration"),
            finding(Warn, "no CPU is isolated", "isolcpus=1"),
        ],
        series: ["rest", "load"]
            .iter()
            .flat_map(|name| (0..2).map(|cpu| series(name, cpu, "fifo:90", 61_000, 14_207_000 >> cpu)))
            .collect(),
        uses: vec![
            a_use("1 kHz control", Outcome::Fail, 100_000, 14_207_000),
            a_use("audio, 64 frames at 48 kHz", Outcome::Fail, 400_000, 14_207_000),
        ],
        caveats: vec![Caveat {
            kind: "virtual".into(),
            text: "the hypervisor gave 40 ms of CPU 0 to others during the run: some lateness is the host's".into(),
        }],
        ..base()
    };
    record.phases[1].loads[1].ran = false;
    record.phases[1].loads[1].note = Some("stopped after 3 s: out of memory".into());
    record.series[3].notes = vec!["the CPU went offline: the series ends there".into()];
    record.series[2].early = 3;
    record.series[2].raw.add(-1_200, 3);
    record
}

fn unprivileged() -> Record {
    Record {
        state: State::Interrupted,
        series: (0..2).map(|cpu| series("rest", cpu, "other", 58_000, 3_100_000)).collect(),
        validity: Validity {
            valid: false,
            reasons: vec![
                Reason {
                    id: "policy.refused".into(),
                    text: "policy fifo:90 was refused (CPU 0, CPU 1): the threads ran as `other`, so the figures say nothing about real-time work".into(),
                    remedy: "sudo setcap cap_sys_nice,cap_ipc_lock+ep \"$(command -v punctual)\"".into(),
                },
                Reason {
                    id: "memory.not_locked".into(),
                    text: "memory could not be locked: a page fault may have delayed a wake-up".into(),
                    remedy: "ulimit -l unlimited".into(),
                },
            ],
        },
        verdict: Some(Verdict { outcome: Outcome::Invalid, reason: "the run did not go as requested.".into() }),
        uses: vec![a_use("1 kHz control", Outcome::Invalid, 100_000, 3_100_000)],
        ..base()
    }
}

fn many_cpus() -> Record {
    let all = (0..128).map(|cpu| series("load", cpu, "fifo:90", 5_000, 20_000 + i64::from(cpu) * 1_000));
    Record { phases: vec![phase("load", &["cpu"])], series: all.collect(), ..base() }
}

#[test]
fn shows_a_healthy_real_time_machine() {
    assert_snapshot!("healthy_overview_80", overview(&healthy(), &UNICODE, 80));
    assert_snapshot!("healthy_overview_160", overview(&healthy(), &UNICODE, 160));
    assert_snapshot!("healthy_summary_80", summary(&healthy(), &UNICODE, 80));
    assert_snapshot!("healthy_summary_160", summary(&healthy(), &UNICODE, 160));
}

#[test]
fn shows_an_ordinary_virtual_machine() {
    assert_snapshot!("vm_overview_80", overview(&virtual_machine(), &UNICODE, 80));
    assert_snapshot!("vm_overview_60", overview(&virtual_machine(), &UNICODE, 60));
    assert_snapshot!("vm_summary_ascii_80", summary(&virtual_machine(), &Style::plain(), 80));
}

/// The command that prints everything.
const FULL: &str = "punctual show --full a.punctual.json";

#[test]
fn answers_in_at_most_20_lines() {
    for (name, record) in [
        ("healthy", healthy()),
        ("vm", virtual_machine()),
        ("invalid", unprivileged()),
        ("many_cpus", many_cpus()),
        ("empty", Record::default()),
    ] {
        for width in [60, 80, 120] {
            let text = answer(&record, FULL, &UNICODE, width);
            assert!(width < 80 || text.lines().count() <= 20, "{name}, {width} columns:\n{text}");
            assert_snapshot!(format!("{name}_answer_{width}"), text);
        }
    }
    assert_snapshot!("vm_answer_ascii_80", answer(&virtual_machine(), FULL, &Style::plain(), 80));
}

#[test]
fn shows_all_facts_about_a_machine() {
    let mut record = virtual_machine();
    record.findings[1].evidence = "/proc/version = #1 SMP PREEMPT_DYNAMIC Debian 6.12.48-1".into();
    record.findings[1].why =
        "A system call of any process delays a real-time thread until it ends or comes to a point where it may yield."
            .into();
    record.machine.memory_bytes = Some(4 << 30);
    record.machine.mitigations = vec!["spectre_v2: Retpolines".into(), "mds: Clear CPU buffers".into()];
    assert_snapshot!(
        "vm_machine_80",
        machine(&record, "punctual check", None, &UNICODE, 80) + &findings(&record.findings, &UNICODE, 80)
    );
}

#[test]
fn shows_an_invalid_run() {
    assert_snapshot!("invalid_overview_80", overview(&unprivileged(), &UNICODE, 80));
    let color = Style { color: true, unicode: true };
    assert_snapshot!("invalid_overview_color_80", overview(&unprivileged(), &color, 80).replace('\x1b', "␛"));
}

#[test]
fn shows_an_empty_record() {
    assert_snapshot!("empty_overview_80", overview(&Record::default(), &UNICODE, 80));
    assert_snapshot!("empty_summary_80", summary(&Record::default(), &UNICODE, 80));
}

#[test]
fn summarizes_128_cpus() {
    assert_snapshot!("many_cpus_overview_80", overview(&many_cpus(), &UNICODE, 80));
    let text = summary(&many_cpus(), &UNICODE, 160);
    assert!((0..128).all(|cpu| text.lines().any(|line| line.starts_with(&format!("  {cpu} ")))), "one line per CPU");
}

#[test]
fn the_ladder_shows_requested_uses_or_the_short_ladder() {
    let mut record = healthy();
    record.uses[0].profile = "control-1khz".into();
    record.uses[2].profile = "my-loop".into();
    let shows =
        |record: &Record, use_index: usize| summary(record, &UNICODE, 80).contains(&record.uses[use_index].title);
    assert!(shows(&record, 0) && !shows(&record, 2), "the short ladder");
    record.scenario.profiles = vec!["lab/my-loop.toml".into()];
    assert!(!shows(&record, 0) && shows(&record, 2), "the requested use");
}

fn all() -> [Record; 5] {
    [healthy(), virtual_machine(), unprivileged(), many_cpus(), Record::default()]
}

/// Words of commands are never broken, because a broken word could not be pasted.
#[test]
fn no_line_is_wider_than_the_page() {
    for record in all() {
        for width in [60, 80, 97, 160] {
            for text in [overview(&record, &UNICODE, width), summary(&record, &Style::plain(), width)] {
                for line in text.lines() {
                    let unbreakable = line.trim().trim_end_matches(" \\").split(' ').count() == 1;
                    assert!(line.chars().count() <= width || unbreakable, "wider than {width}: {line:?}");
                }
            }
        }
    }
}

#[test]
fn shows_larger_values_than_the_run_showed() {
    let mut record = Record { validity: Validity { valid: true, ..Validity::default() }, ..base() };
    record.uses = vec![a_use("64-frame audio at 48 kHz", Outcome::Pass, 667_000, 90_000)];
    let mut random = extremes::Random(1);
    record.series = (0..2)
        .map(|cpu| {
            let mut series = series("load", cpu, "fifo:90", 15_000, 30_000);
            for second in 0..901 {
                // The largest of 1000 exponential values.
                let place = random.uniform();
                let late_ns = 12_000.0 - 3_000.0 * (-(place.ln() / 1_000.0).exp_m1()).ln();
                series.maxima.add(second * 1_000_000_000, analysis::rounded_ns(late_ns));
            }
            series.max_ns = series.maxima.max_ns.iter().copied().flatten().max();
            series
        })
        .collect();
    record.tails = analysis::tails(&record);
    let text = summary(&record, &UNICODE, 100);
    let section: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Larger values")).collect();
    assert_snapshot!(section.iter().take_while(|line| !line.is_empty()).copied().collect::<Vec<_>>().join("\n"));
}

#[test]
fn accepts_any_width() {
    for record in all() {
        for width in (0..60).chain([usize::MAX / 4]) {
            let text = overview(&record, &UNICODE, width) + &summary(&record, &UNICODE, width);
            assert!(text.ends_with('\n'));
        }
    }
}

#[test]
fn colour_does_not_change_the_text() {
    let color = Style { color: true, unicode: true };
    for record in all() {
        let mut plain = String::new();
        let text = overview(&record, &color, 80) + &summary(&record, &color, 80);
        let mut pieces = text.split('\x1b');
        plain += pieces.next().unwrap();
        pieces.for_each(|piece| plain += piece.split_once('m').unwrap().1);
        assert_ne!(text, plain);
        assert_eq!(plain, overview(&record, &UNICODE, 80) + &summary(&record, &UNICODE, 80));
    }
}

#[test]
fn base_and_servo_end_with_the_periods_for_linuxcnc() {
    let mut record = healthy();
    record.scenario.probe = "threads".into();
    record.series.truncate(2);
    record.phases.truncate(1);
    // They are about the threads that were left out, too.
    record.uses.clear();
    for (series, (role, period_ns, jitter_ns)) in
        record.series.iter_mut().zip([("base", 25_000, 17_300), ("servo", 1_000_000, 41_000)])
    {
        (series.role, series.period_ns, series.jitter_ns) = (role.into(), period_ns, jitter_ns);
    }
    let page = |record: &Record| summary(record, &UNICODE, 80);
    let lines = "\n  BASE_PERIOD = 33000\n  SERVO_PERIOD = 1000000\n";
    assert!(page(&record).ends_with(lines), "{}", page(&record));
    let brief = answer(&record, "punctual show --full", &UNICODE, 80);
    assert!(brief.contains(lines) && brief.lines().count() <= 19, "{brief}");
    record.series[0].jitter_ns = 2_000_000;
    let text = page(&record);
    assert!(
        text.contains("  # no BASE_PERIOD: max jitter 2 ms is above 50 us") && text.contains("  SERVO_PERIOD"),
        "{text}"
    );
    record.series[1].jitter_ns = 600_000;
    let brief = answer(&record, "punctual show --full", &UNICODE, 60);
    assert!(brief.contains("\n  # no BASE_PERIOD: ") && brief.contains("\n  # no SERVO_PERIOD: "), "{brief}");
    let mut lines = brief.lines().skip_while(|line| !line.contains("BASE_PERIOD")).take_while(|l| !l.contains("more"));
    assert!(lines.all(|line| line.starts_with("  # ")), "a comment is continued as one: {brief}");
    record.validity.valid = false;
    assert!(!page(&record).contains("_PERIOD"));
}

#[test]
fn plain_style_writes_ascii_only() {
    for record in all() {
        assert!(overview(&record, &Style::plain(), 80).is_ascii());
        assert!(summary(&record, &Style::plain(), 80).is_ascii());
    }
}
