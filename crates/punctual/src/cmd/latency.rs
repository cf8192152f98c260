//! `punctual latency`.

use std::{thread, time::Duration};

use machine::Root;
use play::loopback::{self, RoundTrip};
use record::{Caveat, LoopRound, Outcome, Scenario, SoundLoop, State};
use sys::clock::Clock;

use crate::{
    cli::{Latency, LatencyLoop},
    cmd::sound,
    exit::Usage,
    output::{self, Export, Kept},
};

/// Longest round trip that is looked for, s, beyond what the buffers take.
const LONGEST_S: f64 = 0.25;

pub fn run(what: &Latency) -> anyhow::Result<u8> {
    match what {
        Latency::Loop(options) => run_loop(options),
    }
}

/// Exit status 3 where nothing clear came back, or the card ran over us meanwhile.
fn run_loop(options: &LatencyLoop) -> anyhow::Result<u8> {
    sys::signal::count_termination()?;
    let (capture, playback) = options.sound.names();
    if capture == sound::CLOCK {
        return Err(Usage("the clock has no cable: choose a card, as --device hw:0".to_owned()).into());
    }
    let exports = Export::all(&options.exports)?;
    let kept = Kept::choose(options.record.as_deref(), options.no_record)?;
    let mut record =
        campaign::begin(&output::command_line(), &output::executable()?, scenario(options), &Root::system());

    let ready = sound::open(&options.sound)?;
    let rate_hz = ready.rate_hz();
    let round_frames =
        loopback::SEQUENCE_LEN + ready.buffer_frames() as usize + (LONGEST_S * f64::from(rate_hz)) as usize;
    let (player, mut recorder) = loopback::loopback(round_frames, options.rounds as usize);
    let engine = sound::start(ready, Box::new(player))?;
    let mut rounds = Vec::new();
    while rounds.len() < options.rounds as usize && engine.end().is_none() && sys::signal::termination_requests() == 0 {
        match recorder.round(round_frames) {
            Some(round) => rounds.push(told(loopback::find(&loopback::sequence(rounds.len()), &round))),
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
    let (computed, setup) = (u64::from(engine.latency_frames()), engine.describe());
    let (load, end) = engine.stop();
    sound::check(end)?;

    let result = SoundLoop {
        capture: capture.to_owned(),
        playback: playback.to_owned(),
        setup,
        rate_hz,
        computed_samples: computed,
        rounds,
        xruns: load.xruns,
        ..SoundLoop::default()
    }
    .summed();
    let status = if result.is_clear() { Outcome::Pass } else { Outcome::Inconclusive }.exit_status();
    if result.xruns > 0 {
        let text = format!("{} xruns: rounds that they fell into are not to be trusted", result.xruns);
        record.caveats.push(Caveat { kind: "xruns".to_owned(), text });
    }
    record.state = if result.rounds.len() == options.rounds as usize { State::Complete } else { State::Interrupted };
    record.written_at = campaign::now();
    record.sound_loop = Some(result);

    kept.write(&record)?;
    exports.iter().try_for_each(|export| export.write(&record))?;
    if options.talk.json {
        output::stdout(|out| out.write_all(&record::file::to_json(&record)))?;
    } else if !exports.iter().any(Export::is_stdout) {
        output::print(options.talk, |style, width| report::terminal::summary(&record, style, width))?;
    }
    if !options.talk.quiet {
        kept.say();
    }
    Ok(status)
}

/// What was asked for, as the record tells it.
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

fn told(found: Option<RoundTrip>) -> LoopRound {
    LoopRound {
        samples: found.map(|found| found.delay as u64),
        gain: found.map(|found| found.gain.into()),
        clarity: found.map(|found| found.clarity),
    }
}
