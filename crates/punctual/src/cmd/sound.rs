//! What all commands share that play on a sound card: finding it, setting it, starting the audio thread.

use amp::Player;
use anyhow::Context;
use machine::{
    Root,
    sound::{self, Holder},
};
use play::{Device, End, Engine, Settings, device::Paced};
use sys::{
    memory,
    pcm::{Asked, Direction, Duplex, Node, PcmError},
};

use crate::cli::Sound;

/// The name of what stands in for a card.
pub const CLOCK: &str = "clock";

/// The card, open and set, or the clock in its place; and how the audio thread is to run.
pub fn open(options: &Sound) -> anyhow::Result<(Device, Settings)> {
    let names = options.names();
    let card = Asked {
        rate_hz: options.rate,
        period_frames: options.frames,
        periods: options.periods,
        channels: options.input.max(2),
        format: options.format,
    };
    let settings = Settings { card, input: options.input - 1, cpu: options.cpu, policy: options.policy() };
    if names == (CLOCK, CLOCK) {
        let paced = Paced::new(options.rate, options.frames, options.periods).context("the clock cannot be set")?;
        return Ok((Device::Clock(paced), settings));
    }
    let (capture, playback) = names;
    let (capture, playback) = (node(capture, Direction::Capture)?, node(playback, Direction::Playback)?);
    let duplex = Duplex::open(capture, playback, &settings.card).map_err(with_holder)?;
    let channels = duplex.capture().channels();
    if options.input > channels {
        anyhow::bail!("{capture} has {channels} inputs: choose one of them, as --input 1");
    }
    Ok((Device::Card(Box::new(duplex)), settings))
}

fn node(name: &str, direction: Direction) -> anyhow::Result<Node> {
    let (card, device) = sound::find(&Root::system(), name)?;
    Ok(Node { card, device, direction })
}

/// Names the program that holds a card.
fn with_holder(error: PcmError) -> anyhow::Error {
    let PcmError::Busy(node) = error else { return error.into() };
    match sound::holder(&Root::system(), node.card, node.device, node.direction == Direction::Playback) {
        Some(Holder { process, program }) => {
            anyhow::anyhow!("{node} is held by {program} (process {process}): end it, as `kill {process}`")
        }
        None => error.into(),
    }
}

/// Starts the audio thread; says what it was refused, at once, with the remedy.
pub fn start(device: Device, player: Box<dyn Player>, settings: &Settings) -> anyhow::Result<Engine> {
    let is_linked = device.is_linked();
    let mut engine = Engine::prepare(device, player, settings)?;
    let grant = engine.grant();
    let note = |text: String| eprintln!("note: {text}");
    if grant.policy_refused.is_some() {
        let (asked, granted) = (settings.policy, grant.policy);
        note(format!(
            "{asked} was refused, the audio thread is {granted}, and other work will delay it: {}",
            machine::SETCAP
        ));
    }
    if let Some(cpu) = settings.cpu.filter(|_| grant.pin_refused.is_some()) {
        note(format!(
            "CPU {cpu} was refused, the audio thread runs anywhere: choose one of `cat /sys/devices/system/cpu/online`"
        ));
    }
    if memory::lock_what_is_there().is_err() {
        note(format!("memory cannot be locked, and missing pages will delay the audio thread: {}", machine::SETCAP));
    }
    if !is_linked {
        note("the card cannot start both directions together: the latency differs from start to start".to_owned());
    }
    engine.begin();
    Ok(engine)
}

/// Whether the audio thread ended as it should.
pub fn check(end: End) -> anyhow::Result<()> {
    match end {
        End::Stopped => Ok(()),
        End::Card(kind) => {
            Err(std::io::Error::from(kind)).context("the card stopped: is it still plugged in? See `dmesg`")
        }
        End::Silent => anyhow::bail!("the card moved nothing for a second: choose another --rate, or see `dmesg`"),
        End::Starved => {
            anyhow::bail!("nothing else got to run for five seconds: choose more --frames or a smaller model")
        }
        End::Broken => anyhow::bail!("the audio thread panicked; see above"),
    }
}
