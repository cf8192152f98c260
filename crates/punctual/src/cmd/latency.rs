//! `punctual latency`.

use std::{thread, time::Duration};

use machine::Root;
use play::{
    Engine, Load,
    loopback::{self, Recorder, RoundTrip},
};
use record::{CLOCK, Caveat, EndedBy, LoopRound, Outcome, Scenario, SoundLoop, State, grouped};
use report::export::Format;
use sys::clock::Clock;

use crate::{
    cli::{Latency, LatencyLoop},
    cmd::sound,
    exit::Usage,
    output,
};

/// Time between two checks for a complete round.
const INTERVAL: Duration = Duration::from_millis(20);

pub fn run(what: &Latency) -> anyhow::Result<u8> {
    match what {
        Latency::Loop(options) => run_loop(options),
    }
}

/// Exit status 3 if no clear signal came back, or if there were xruns.
fn run_loop(options: &LatencyLoop) -> anyhow::Result<u8> {
    sys::signal::count_termination()?;
    if options.sound.names().0 == CLOCK {
        return Err(Usage("the clock has no loopback: choose a card, e.g. --device hw:0".to_owned()).into());
    }
    let formats = [Format::Json, Format::Html];
    let files = options.record.files()?.with_exports_to(&options.exports, &formats)?;
    let mut record =
        campaign::begin(&output::command_line(), &output::executable()?, scenario(options), &Root::system());

    let (result, load) = measure(options)?;
    let status = if result.is_clear() { Outcome::Pass } else { Outcome::Inconclusive }.exit_status();
    if load.xruns > 0 {
        let text = format!("{} xruns: rounds with an xrun are not reliable", grouped(load.xruns));
        record.caveats.push(Caveat { kind: "xruns".to_owned(), text });
    }
    let is_complete = result.rounds.len() == options.rounds as usize;
    record.state = if is_complete { State::Complete } else { State::Interrupted };
    record.ending_signal = sys::signal::ending_signal().filter(|_| !is_complete);
    record.ended_by = record.ending_signal.as_ref().map(|_| EndedBy::Signal);
    record.written_at = campaign::now();
    record.sound_loop = Some(result);

    output::deliver(options.output, options.extent, &record, &files, |style, width| {
        report::terminal::summary(&record, style, width)
    })?;
    Ok(status)
}

/// Plays all rounds, or as many as are complete when the user or the card ends it.
fn measure(options: &LatencyLoop) -> anyhow::Result<(SoundLoop, Load)> {
    let (capture, playback) = options.sound.names();
    let ready = sound::open(&options.sound)?;
    let rate_hz = ready.rate_hz();
    // A round trip may take a quarter of a second in addition to the buffers.
    let round_frames = loopback::SEQUENCE_LEN + ready.buffer_frames() as usize + rate_hz as usize / 4;
    let (player, mut recorder) = loopback::loopback(round_frames, options.rounds as usize);
    let engine = sound::start(ready, Box::new(player))?;
    let rounds = rounds(options, &engine, &mut recorder, round_frames);
    let (computed_samples, setup) = (u64::from(engine.latency_frames().unwrap_or_default()), engine.describe());
    let (load, end) = engine.stop();
    sound::check(end)?;
    let result = SoundLoop {
        capture: capture.to_owned(),
        playback: playback.to_owned(),
        setup,
        rate_hz,
        computed_samples,
        rounds,
        xruns: load.xruns,
        ..SoundLoop::default()
    };
    Ok((result.summarized(), load))
}

fn rounds(options: &LatencyLoop, engine: &Engine, recorder: &mut Recorder, frames: usize) -> Vec<LoopRound> {
    let mut rounds = Vec::new();
    while rounds.len() < options.rounds as usize && engine.end().is_none() && sys::signal::termination_requests() == 0 {
        match recorder.round(frames) {
            Some(recording) => {
                rounds.push(to_record(loopback::find(&loopback::sequence(rounds.len()), &recording)));
            }
            None => thread::sleep(INTERVAL),
        }
    }
    rounds
}

fn to_record(found: Option<RoundTrip>) -> LoopRound {
    LoopRound {
        samples: found.map(|found| found.delay as u64),
        gain: found.map(|found| found.gain.into()),
        clarity: found.map(|found| found.clarity),
    }
}

/// The scenario of the record.
fn scenario(options: &LatencyLoop) -> Scenario {
    Scenario {
        probe: "loop".to_owned(),
        cpus: options.sound.cpu.map(|cpu| cpu.to_string()),
        policy: options.sound.policy().to_string(),
        clock: Clock::Monotonic.to_string(),
        wait: "card".to_owned(),
        ..Scenario::default()
    }
}
