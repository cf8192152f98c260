//! Invented records with a few known causes.

use record::{
    Caveat, Finding, FindingState, Granted, LoadProof, Machine, Maxima, Phase, Record, SCHEMA, Scenario, Series,
    Setting, Spike, State, Tool, Validity,
};

use crate::blamed::{self, FIRMWARE_EVERY_NS};

const SECOND_NS: u64 = 1_000_000_000;
const PERIOD_NS: u64 = 1_000_000;
const THRESHOLD_NS: i64 = 200_000;

/// A pseudorandom generator with the same numbers in every test run.
struct Dice(u64);

impl Dice {
    /// 0 up to 1.
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal: mean 0, standard deviation 1, within -6 to 6.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.roll()).sum::<f64>() - 6.0
    }
}

/// A series of `seconds` s at 1 ms: most values around `typical_ns`, a long tail, and occasional stalls.
pub fn series(phase: &str, cpu: u32, typical_ns: f64, stalls_a_second: f64, seconds: u64) -> Series {
    let mut dice = Dice(u64::from(cpu) * 977 + analysis::float::to_u64(typical_ns));
    let mut out = Series {
        phase: phase.into(),
        role: "timer".into(),
        cpu: Some(cpu),
        granted: Granted { policy: "fifo:90".into(), cpus: cpu.to_string(), memory_locked: true, ..Granted::default() },
        period_ns: PERIOD_NS,
        floor_ns: 38,
        ..Series::default()
    };
    let mut late = Vec::new();
    let mut sum = 0.0;
    let (mut at_ns, mut next_firmware_ns) = (0, FIRMWARE_EVERY_NS);
    while at_ns < seconds * SECOND_NS {
        let body = typical_ns * (dice.normal() * 0.22).exp();
        let tail = if dice.roll() < 0.02 { typical_ns * (1.0 + 9.0 * dice.roll().powi(3)) } else { 0.0 };
        let stall = if dice.roll() * 1000.0 < stalls_a_second { 60_000.0 * (dice.roll() * 3.1).exp() } else { 0.0 };
        let firmware = if at_ns >= next_firmware_ns { 212_000.0 + 9_000.0 * dice.roll() } else { 0.0 };
        next_firmware_ns += if firmware > 0.0 { FIRMWARE_EVERY_NS } else { 0 };
        let lateness_ns = analysis::float::to_i64(body + tail + stall + firmware);
        out.raw.record(lateness_ns);
        out.maxima.add(at_ns, lateness_ns);
        sum += lateness_ns as f64;
        out.samples += 1;
        out.missed += lateness_ns.cast_unsigned() / PERIOD_NS;
        if lateness_ns > THRESHOLD_NS {
            out.spikes.push(Spike { lateness_ns, at_ns, ..Spike::default() });
        }
        if lateness_ns.cast_unsigned() >= PERIOD_NS {
            late.push(lateness_ns);
        }
        if out.max_ns.is_none_or(|max_ns| lateness_ns > max_ns) {
            (out.max_ns, out.max_at_ns) = (Some(lateness_ns), Some(at_ns));
        }
        out.min_ns = Some(out.min_ns.map_or(lateness_ns, |min_ns| min_ns.min(lateness_ns)));
        at_ns += PERIOD_NS * (1 + lateness_ns.cast_unsigned() / PERIOD_NS);
    }
    out.mean_ns = Some(sum / out.samples as f64);
    out.jitter_ns = out.max_ns.unwrap_or_default().unsigned_abs();
    out.corrected = out.raw.corrected(&late, PERIOD_NS);
    out.spikes_total = out.spikes.len() as u64;
    out
}

/// Two CPUs, 15 s at rest and 15 s under three loads, on a machine with findings.
pub fn typical() -> Record {
    let mut record = bare(vec![
        series("rest", 0, 4_200.0, 0.1, 15),
        series("rest", 1, 5_900.0, 0.2, 15),
        series("load", 0, 9_500.0, 2.0, 15),
        series("load", 1, 14_000.0, 3.5, 15),
    ]);
    record.findings = findings();
    record.settings = vec![
        Setting {
            name: "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us".into(),
            before: "0".into(),
            during: "n/a".into(),
            after: Some("0".into()),
        },
        Setting {
            name: "/proc/sys/kernel/sched_rt_runtime_us".into(),
            before: "950000".into(),
            during: "-1".into(),
            after: None,
        },
    ];
    record.caveats = vec![Caveat {
        kind: "firmware".into(),
        text: "Firmware stopped all CPUs a few times: no setting of the kernel can mend it.".into(),
    }];
    blamed::blame(&mut record);
    record.series[3].notes = vec!["a guard lowered the priority of the load switch for 50 ms".into()];
    judge(&mut record);
    record
}

/// A valid, complete record of `series`, with the phases `rest` and `load`.
pub fn bare(series: Vec<Series>) -> Record {
    let load = |spec: &str, unit: &str, operations| LoadProof {
        name: spec.split(':').next().unwrap_or_default().into(),
        spec: spec.into(),
        cpus: "0-1".into(),
        threads: 2,
        operations,
        unit: unit.into(),
        cpu_time_ns: 13_870_000_000,
        wall_ns: 15_002_000_000,
        ran: true,
        ..LoadProof::default()
    };
    let phase = |name: &str, start_s: u64, loads: Vec<LoadProof>| Phase {
        name: name.into(),
        period_ns: PERIOD_NS,
        start_ns: start_s * SECOND_NS,
        planned_ns: Some(15 * SECOND_NS),
        duration_ns: 15 * SECOND_NS,
        asked_loads: loads.iter().map(|load| load.spec.clone()).collect(),
        loads,
        ..Phase::default()
    };
    Record {
        schema: SCHEMA.into(),
        tool: Tool { name: "punctual".into(), version: "0.1.0".into() },
        state: State::Complete,
        started_at: "2026-03-02T09:14:07+01:00".into(),
        written_at: "2026-03-02T09:14:38+01:00".into(),
        command: ["punctual", "measure", "timer", "--cpus", "0-1", "--load", "cache:streams=2", "--load", "disk"]
            .map(str::to_owned)
            .into(),
        scenario: Scenario {
            probe: "timer".into(),
            policy: "fifo:90".into(),
            clock: "monotonic".into(),
            wait: "nanosleep".into(),
            threshold_ns: THRESHOLD_NS,
            ..Scenario::default()
        },
        machine: machine(),
        phases: vec![
            phase("rest", 0, vec![]),
            phase(
                "load",
                16,
                vec![
                    load("cpu", "rounds of 4096 additions", 61_204_113),
                    load("cache:streams=2", "64 KiB streamed", 4_411_208),
                    load("disk", "64 KiB written and synced", 9_120),
                ],
            ),
        ],
        series,
        validity: Validity { valid: true, reasons: vec![] },
        ..Record::default()
    }
}

/// Adds the verdicts of `analysis`.
pub fn judge(record: &mut Record) {
    record.uses = analysis::ladder(record);
    record.verdict = analysis::verdict(record, &record.uses);
}

/// One series with these raw values and counts.
pub fn of_values(values: &[(i64, u64)]) -> Series {
    let mut out =
        Series { phase: "rest".into(), role: "timer".into(), cpu: Some(0), period_ns: PERIOD_NS, ..Series::default() };
    for &(value_ns, count) in values {
        out.raw.add(value_ns, count);
        out.maxima.add(0, value_ns);
        out.early += if value_ns < 0 { count } else { 0 };
    }
    out.samples = out.raw.total();
    out.min_ns = values.iter().map(|v| v.0).min();
    out.max_ns = values.iter().map(|v| v.0).max();
    out.max_at_ns = Some(0);
    out.corrected = out.raw.corrected(&[], PERIOD_NS);
    out
}

/// 128 CPUs in two phases.
pub fn many() -> Record {
    let mut all = Vec::new();
    for (phase, typical_ns, stalls) in [("rest", 4_000.0, 0.3), ("load", 12_000.0, 3.0)] {
        all.extend((0..128).map(|cpu| series(phase, cpu, typical_ns * (1.0 + f64::from(cpu % 7) / 20.0), stalls, 2)));
    }
    let mut record = bare(all);
    judge(&mut record);
    record
}

/// A week with one window per second and one known peak: more windows than the chart has columns.
pub fn week(peak_ns: i64) -> Record {
    let mut max_ns: Vec<Option<i64>> = (0..600_000).map(|second| Some(5_000 + second % 977)).collect();
    max_ns[123_457] = Some(peak_ns);
    let mut series = of_values(&[(5_000, 599_999_999), (peak_ns, 1)]);
    series.maxima = Maxima { window_ns: SECOND_NS, max_ns };
    let mut record = bare(vec![series]);
    record.phases.truncate(1);
    record.phases[0].duration_ns = 600_000 * SECOND_NS;
    record
}

fn machine() -> Machine {
    let some = |text: &str| Some(text.to_owned());
    Machine {
        hostname: some("bench-07"),
        arch: some("x86_64"),
        os: some("Debian GNU/Linux 13 (trixie)"),
        kernel: some("6.12.43-amd64"),
        kernel_build: some("#1 SMP PREEMPT_DYNAMIC Debian 6.12.43-1"),
        preempt: some("voluntary"),
        cmdline: some("BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet"),
        cpu_model: some("Intel(R) Core(TM) i5-7300U CPU @ 2.60GHz"),
        cpus_online: some("0-1"),
        cpus_isolated: some(""),
        smt: some("off"),
        memory_bytes: Some(8_242_139_136),
        clocksource: some("tsc"),
        governor: some("powersave"),
        idle_states: some("C1 2us, C1E 10us, C6 85us"),
        mitigations: vec!["spectre_v2: Mitigation: Retpolines".into(), "meltdown: Mitigation: PTI".into()],
        hypervisor: some("none"),
        rt_throttling: some("950000/1000000"),
        ..Machine::default()
    }
}

fn findings() -> Vec<Finding> {
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
        finding(
            "clock.source",
            FindingState::Ok,
            "the clock is read from the CPU (tsc)",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource = tsc",
            "",
            "",
        ),
        finding(
            "kernel.preempt",
            FindingState::Fail,
            "kernel without real-time preemption (voluntary)",
            "/sys/kernel/debug/sched/preempt = none (voluntary) full",
            "A thread in the kernel can hold the CPU until it is done, whatever waits for it.",
            "sudo apt install linux-image-rt-amd64",
        ),
        finding(
            "cpu.governor",
            FindingState::Warn,
            "frequency governor is powersave",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor = powersave",
            "A CPU that clocks down needs time to clock up again, and runs everything slower until then.",
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        ),
        finding(
            "irq.balance",
            FindingState::Unknown,
            "whether irqbalance runs could not be read",
            "/proc is mounted with hidepid",
            "",
            "",
        ),
        finding("evl.core", FindingState::NotApplicable, "no EVL core", "/dev/evl does not exist", "", ""),
    ]
}
