//! Invented reports of every kind.

use record::{
    AUDIO, Audio, BufferSearch, CAPTURE, Campaign, Capture, CapturedStream, Cycle, CycleCause, CyclePart, Histogram,
    INTERRUPT, Interrupts, Listener, MarkedFrame, NOISE, Noise, Phase, ProcessThread, Program, RESPONSE, ROUND_TRIP,
    ReceivedStream, Record, Release, Responses, RoundTrip, ScenarioEntry, ScenarioResult, Series, SeriesKind, State,
    Stream, StreamIdentity, TIMER, Talker, ThreadTimes, Times, Zero,
};
use report::html::{render, render_campaign, render_machine, render_proof};

use crate::{blamed, proof, sample};

/// The report of each kind of run, with its name.
pub fn all() -> Vec<(&'static str, String)> {
    [
        ("timer", sample::typical()),
        ("timer on 128 CPUs", sample::many()),
        ("noise", noise()),
        ("process", process()),
        ("threads", threads()),
        ("matrix", matrix()),
        ("udp", udp()),
        ("stream", stream()),
        ("interrupt", interrupt()),
        ("outside judge", judged()),
        ("capture", capture()),
        ("audio", audio()),
        ("find-buffer", find_buffer()),
        ("without series", without_series()),
    ]
    .iter()
    .map(|(name, record)| (*name, render(record)))
    .chain([("campaign", render_campaign(&campaign()))])
    .chain([("machine", machine())])
    .chain([("tune --prove", render_proof(&proof::proof()))])
    .collect()
}

/// A record of one probe with these series, all under load, with culprits.
fn run(probe: &str, series: Vec<Series>) -> Record {
    let mut record = sample::typical();
    record.command = ["punctual", "measure", probe, "--duration", "15s"].map(str::to_owned).into();
    record.scenario.probe = probe.to_owned();
    record.series = series;
    record.phases.retain(|phase| phase.name == "load");
    blamed::blame(&mut record);
    (record.uses, record.verdict) = (Vec::new(), None);
    record
}

fn times(series: &Series) -> Times {
    Times {
        min_ns: series.min_ns.expect("samples"),
        mean_ns: series.mean_ns.expect("samples"),
        max_ns: series.max_ns.expect("samples"),
        histogram: series.raw.clone(),
    }
}

fn loaded(role: &str, cpu: u32, kind: SeriesKind) -> Series {
    Series { role: role.to_owned(), kind, ..sample::series("load", cpu, 9_500.0, 2.0, 15) }
}

fn noise() -> Record {
    let of_cpu = |cpu| {
        let noise = Noise {
            runtime_ns: 950_000_000,
            threshold_ns: 1_000,
            observed_ns: 15_000_000_000,
            lost_ns: 240_000_000,
            iterations: 91_000_000,
            strikes_of_all: Some(3),
            ..Noise::default()
        };
        let series = loaded(NOISE, cpu, SeriesKind::Gaps(Box::new(noise)));
        Series { period_ns: 0, missed: 0, ..series }
    };
    run(NOISE, vec![of_cpu(0), of_cpu(1)])
}

fn threads() -> Record {
    run("threads", vec![loaded("base", 0, SeriesKind::WakeUps), loaded("servo", 1, SeriesKind::WakeUps)])
}

/// Two threads on two CPUs: each pair once, without a load.
fn matrix() -> Record {
    let mut record = run("threads", Vec::new());
    (record.phases, record.blame) = (Vec::new(), None);
    for (row, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let phase = format!("base {row}, servo {column}, noload, round 1");
        let mut of_role = |role: &str, cpu: u32, typical_ns: f64| {
            let series = sample::series(&phase, cpu, typical_ns * f64::from(1 + row + column), 0.5, 2);
            record.series.push(Series { role: role.to_owned(), cpu_checks: 1, ..series });
            record::AskedThread { role: role.to_owned(), cpu, policy: "fifo:90".to_owned(), period_ns: 1_000_000 }
        };
        let threads = vec![of_role("base", row, 4_000.0), of_role("servo", column, 9_000.0)];
        record.phases.push(Phase {
            name: phase,
            threads,
            planned_ns: Some(2_000_000_000),
            duration_ns: 2_000_000_000,
            ..Phase::default()
        });
    }
    analysis::matrix::fill(&mut record);
    record
}

fn udp() -> Record {
    let round_trip = RoundTrip {
        peer: "192.0.2.2:7125".to_owned(),
        payload_bytes: 64,
        timeout_ns: 1_000_000_000,
        slots: 15_000,
        sent: 14_990,
        lost: 2,
        late: 1,
        from_sent: Some(times(&sample::series("load", 1, 60_000.0, 2.0, 15))),
        ..RoundTrip::default()
    };
    let trips = Series {
        kind: SeriesKind::RoundTrips(Box::new(round_trip)),
        role: ROUND_TRIP.to_owned(),
        ..sample::series("load", 1, 70_000.0, 2.0, 15)
    };
    run("udp", vec![loaded("sender", 1, SeriesKind::WakeUps), trips])
}

fn interrupt() -> Record {
    let interrupts = Interrupts {
        source: "gpio:gpiochip0/17".to_owned(),
        device: "line 17 (GPIO17) of gpiochip0, pinctrl-bcm2835".to_owned(),
        zero: Zero::Edge,
        resolution_ns: Some(1),
        driven_by: Some("line 27 (GPIO27) of gpiochip0, pinctrl-bcm2835".to_owned()),
        lost: 1,
        unanswered: 2,
        spurious: 3,
        to_kernel: Some(times(&sample::series("load", 1, 4_000.0, 2.0, 15))),
        to_thread: Some(times(&sample::series("load", 1, 6_000.0, 2.0, 15))),
        ..Interrupts::default()
    };
    run(INTERRUPT, vec![loaded(INTERRUPT, 1, SeriesKind::Interrupts(Box::new(interrupts)))])
}

/// An interrupt whose thread answers an outside judge.
fn judged() -> Record {
    let series = sample::series("load", 1, 20_000.0, 2.0, 15);
    let responses = Responses {
        judge: "/dev/ttyACM0".to_owned(),
        question_line: "line 17 (GPIO17) of gpiochip0, pinctrl-bcm2835".to_owned(),
        answer_line: "line 27 (GPIO27) of gpiochip0, pinctrl-bcm2835".to_owned(),
        resolution_ns: 8,
        random_ns: 125_000,
        questions: series.samples + 2,
        answered: series.samples,
        missed: 2,
        spurious: 1,
        complete: true,
        ..Responses::default()
    };
    let of_judge = Series { kind: SeriesKind::Responses(Box::new(responses)), role: RESPONSE.to_owned(), ..series };
    let mut record = interrupt();
    record.series.push(of_judge);
    record
}

fn stream() -> Record {
    let identity = StreamIdentity {
        interface: "eth0".to_owned(),
        stream_id: "02:00:00:00:00:01:0000".to_owned(),
        format: "aaf".to_owned(),
        frame_bytes: 90,
        ..StreamIdentity::default()
    };
    let sent = sample::series("load", 0, 9_500.0, 2.0, 15);
    let talker = Talker {
        identity: identity.clone(),
        mode: "send".to_owned(),
        tolerance_ns: 1_250,
        frames: 15_000,
        late: 7,
        max_delta_ns: sent.max_ns,
        send: sent.raw,
        curve: vec![(0, 7), (5_000, 2), (20_000, 0)],
        ..Talker::default()
    };
    let listener = Listener {
        identity,
        frames: 14_998,
        lost: 2,
        max_gap_ns: Some(2_125_000),
        interval: of_intervals(1_000_000),
        streams: (0..64).map(received).collect(),
        ..Listener::default()
    };
    run(
        "stream",
        vec![
            loaded("talker", 0, SeriesKind::Stream(Stream::Talker(Box::new(talker)))),
            loaded("listener", 1, SeriesKind::Stream(Stream::Listener(Box::new(listener)))),
        ],
    )
}

/// One of 64 streams of a talker; number 0 lost 2 frames.
fn received(number: u64) -> ReceivedStream {
    let lost = if number == 0 { 2 } else { 0 };
    ReceivedStream {
        stream_id: format!("020000000001{number:04x}"),
        frames: 15_000 - lost,
        lost,
        max_gap_ns: Some(2_125_000 - number),
        ..ReceivedStream::default()
    }
}

/// Times between frames that are due once per period.
fn of_intervals(period_ns: i64) -> Histogram {
    let mut intervals = Histogram::default();
    (0..15_000).for_each(|n: i64| intervals.record(period_ns + (n * n % 997 - 498) * 40));
    intervals
}

fn capture() -> Record {
    let frames = |first: u64| (first..first + 12).map(|frame| MarkedFrame { frame, at_ns: 1_000_000, ns: 126_700 });
    let capture = Capture {
        file: "talk.pcapng".to_owned(),
        stream: CapturedStream { name: "02:00:00:00:00:01:0000".to_owned(), ..CapturedStream::default() },
        frames: 15_000,
        duration_ns: 15_000_000_000,
        spacing: of_intervals(1_000_000),
        min_gap_ns: Some(980_080),
        max_gap_ns: Some(1_019_960),
        tolerance_ns: 1_250,
        late: Some(12),
        lost: Some(1),
        worst_gaps: frames(100).collect(),
        worst_late: frames(300).collect(),
        resolution_ns: 1,
        ..Capture::default()
    };
    let mut record = run("capture", vec![Series { cpu: None, ..loaded(CAPTURE, 0, SeriesKind::Capture) }]);
    record.command = ["punctual", "capture", "talk.pcapng"].map(str::to_owned).into();
    (record.capture, record.blame) = (Some(capture), None);
    record
}

/// A series of audio periods of so many frames.
fn played(frames: u32, xruns: u64) -> Series {
    let audio = Audio {
        rate_hz: 48_000,
        frames,
        periods: 2,
        pacer: record::CLOCK.to_owned(),
        model: "builtin:nano".to_owned(),
        limit_ns: 1_330_000,
        played: 14_990,
        xruns,
        lost: 10,
        dsp: Some(times(&sample::series("load", 0, 120_000.0, 0.1, 15))),
        completion: Some(times(&sample::series("load", 0, 200_000.0, 2.0, 15))),
        ..Audio::default()
    };
    loaded(AUDIO, 1, SeriesKind::Audio(Box::new(audio)))
}

fn audio() -> Record {
    run(AUDIO, vec![played(64, 3)])
}

fn find_buffer() -> Record {
    let phase = |name: &str, series: Series| Series { phase: name.to_owned(), ..series };
    let sizes = [32, 256, 128, 64];
    let of_size = |frames: u32| phase(&format!("{frames} frames"), played(frames, if frames < 64 { 9 } else { 0 }));
    let mut record = run(AUDIO, sizes.map(of_size).into());
    record.phases = sizes
        .map(|frames| Phase { name: format!("{frames} frames"), duration_ns: 15_000_000_000, ..Phase::default() })
        .into();
    record.buffer = Some(BufferSearch {
        candidates: vec![32, 64, 128, 256],
        held: Some(64),
        failed: Some(32),
        ..Default::default()
    });
    record
}

/// A program with more threads than the page shows at once.
fn process() -> Record {
    let thread = |number: u32| {
        let cycle = Cycle {
            times: ThreadTimes { running_ns: 900_000, ready_ns: 400_000, ..ThreadTimes::default() },
            parts: vec![
                CyclePart { cause: CycleCause::OwnWork, ns: 900_000, count: 1, ..CyclePart::default() },
                CyclePart { cause: CycleCause::WakeUp, ns: 400_000, count: 2, ..CyclePart::default() },
            ],
            ..Cycle::default()
        };
        let thread = ProcessThread {
            times: ThreadTimes { running_ns: 2_000_000_000, blocked_ns: 13_000_000_000, ..ThreadTimes::default() },
            cycles: 15_000,
            release: Release::AbsoluteSleep,
            run_time: of_intervals(300_000),
            response: of_intervals(400_000),
            interval: of_intervals(1_000_000),
            longest: Some(cycle),
            preemptions: 12,
            cpus: "0-1".to_owned(),
            ..ProcessThread::default()
        };
        Series { cpu: None, ..loaded(&format!("worker-{number}"), number % 2, SeriesKind::Process(Box::new(thread))) }
    };
    let mut record = run("process", (0..14).map(thread).collect());
    record.program = Some(Program { pid: 4711, command: "./machine --axes 3".to_owned(), ..Program::default() });
    record
}

/// Only the findings about a machine.
fn without_series() -> Record {
    let mut record = run(TIMER, Vec::new());
    record.phases = Vec::new();
    record.blame = None;
    record
}

fn machine() -> String {
    let Record { machine, findings, .. } = sample::typical();
    render_machine(&machine, &findings)
}

fn campaign() -> Campaign {
    let entry = |number: usize, load: &str, placement: &str, stalls: f64| {
        let name = format!("{load}, {placement}");
        let record =
            Record { series: vec![sample::series("run", 0, 6_000.0 * stalls, stalls, 5)], ..sample::bare(Vec::new()) };
        ScenarioEntry {
            name,
            load: load.to_owned(),
            placement: placement.to_owned(),
            repeat: 1,
            record: format!("{number:03}-run-1.punctual.json"),
            result: Some(ScenarioResult::of(&record, 5_100_000_000, Some("thread kworker".to_owned()))),
            ..ScenarioEntry::default()
        }
    };
    Campaign {
        name: "isolated-or-ordinary".to_owned(),
        title: "Does an isolated CPU help?".to_owned(),
        state: State::Complete,
        command: ["punctual", "run", "isolated-or-ordinary"].map(str::to_owned).into(),
        planned_ns: 20_000_000_000,
        took_ns: 20_400_000_000,
        scenarios: vec![
            entry(1, "idle", "isolated", 0.5),
            entry(2, "idle", "ordinary", 1.0),
            entry(3, "loaded", "isolated", 1.0),
            entry(4, "loaded", "ordinary", 4.0),
        ],
        ..Campaign::default()
    }
}
