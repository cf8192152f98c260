//! What all commands share that play on a sound card: finding it, setting it, starting the audio thread.

use anyhow::Context;
use machine::{Root, sound};
use play::{Device, End, Engine, JackClient, Settings, device::ClockDevice, jack::Peer};
use sys::{memory, pcm::StreamConfig};

use crate::{cli::Sound, exit::Usage};

/// The name of what stands in for a card.
pub const CLOCK: &str = "clock";

/// Rate and period of a card where none are asked for.
const RATE_HZ: u32 = 48_000;
const FRAMES: u32 = 64;

/// What is ready to be played on.
pub enum Ready {
    /// A card, open and set, or the clock in its place; and how the audio thread is to run.
    Card(Device, Settings),
    /// JACK's server.
    Jack(JackClient),
}

impl Ready {
    /// Its sample rate, Hz.
    pub fn rate_hz(&self) -> u32 {
        match self {
            Self::Card(_, settings) => settings.card.rate_hz,
            Self::Jack(jack) => jack.rate_hz(),
        }
    }

    /// Frames of its buffer, as far as it tells before it plays.
    pub fn buffer_frames(&self) -> u32 {
        match self {
            Self::Card(_, settings) => settings.card.buffer_frames(),
            Self::Jack(jack) => jack.period_frames(),
        }
    }
}

/// Opens what the options name.
pub fn open(options: &Sound) -> anyhow::Result<Ready> {
    let (capture, playback) = options.names();
    match (Peer::parse(capture), Peer::parse(playback)) {
        (Some(capture), Some(playback)) => open_jack(options, &capture, &playback),
        (None, None) => open_card(options),
        _ => Err(Usage("JACK goes with JACK alone: write jack for both --capture and --playback".to_owned()).into()),
    }
}

/// The server's rate and periods are followed; where others were asked for, they are refused.
fn open_jack(options: &Sound, capture: &Peer, playback: &Peer) -> anyhow::Result<Ready> {
    if options.periods.is_some() || options.format.is_some() || options.priority.is_some() {
        let text = "JACK's server decides on these: leave out --periods, --format and --priority";
        return Err(Usage(text.to_owned()).into());
    }
    let jack = JackClient::open(capture, playback, options.input as usize - 1, options.cpu)?;
    let refuse = |option: &str, asked: Option<u32>, is: u32, server: &str| match asked {
        Some(asked) if asked != is => {
            anyhow::bail!(
                "JACK's server runs with {is}, not {asked}: leave out {option}, or start it as `jackd {server} {asked}`"
            )
        }
        _ => Ok(()),
    };
    refuse("--rate", options.rate, jack.rate_hz(), "... -r")?;
    refuse("--frames", options.frames, jack.period_frames(), "... -p")?;
    Ok(Ready::Jack(jack))
}

fn open_card(options: &Sound) -> anyhow::Result<Ready> {
    let names = options.names();
    let card = StreamConfig {
        rate_hz: options.rate.unwrap_or(RATE_HZ),
        period_frames: options.frames.unwrap_or(FRAMES),
        periods: options.periods.unwrap_or(2),
        inputs: options.input.max(2),
        format: options.format,
    };
    let settings = Settings { card, input: options.input - 1, cpu: options.cpu, policy: options.policy() };
    if names == (CLOCK, CLOCK) {
        if options.format.is_some() || options.input > 1 {
            let text =
                "--format and --input are a sound card's, and the clock paces: leave them out, or add --device hw:0";
            return Err(Usage(text.to_owned()).into());
        }
        let StreamConfig { rate_hz, period_frames, periods, .. } = settings.card;
        let clock = ClockDevice::new(rate_hz, period_frames, periods).context("cannot set a timer")?;
        return Ok(Ready::Card(Device::Clock(clock), settings));
    }
    let (capture, playback) = names;
    let duplex = sound::open(&Root::system(), capture, playback, &settings.card, settings.input)?;
    Ok(Ready::Card(Device::Card(Box::new(duplex)), settings))
}

/// Starts the audio thread; says what it was refused, at once, with the remedy.
pub fn start(ready: Ready, player: Box<dyn Player>) -> anyhow::Result<Engine> {
    let note = |text: String| say!("note: {text}");
    let (mut engine, cpu) = match ready {
        Ready::Card(device, settings) => {
            let is_linked = device.is_linked();
            let engine = Engine::prepare(device, player, &settings)?;
            if engine.grant().policy_refused.is_some() {
                note(format!(
                    "{} was refused, the audio thread is {}, and other work will delay it: {}",
                    settings.policy,
                    engine.grant().policy,
                    machine::SETCAP
                ));
            }
            if !is_linked {
                let text = "the card cannot start both directions together: the latency differs from start to start";
                note(text.to_owned());
            }
            (engine, settings.cpu)
        }
        Ready::Jack(jack) => {
            let cpu = jack.cpu();
            let engine = Engine::prepare_jack(jack, player)?;
            if !engine.grant().policy.is_realtime() {
                note(
                    "JACK's server is not real-time, and other work will delay it: start it as `jackd -R ...`"
                        .to_owned(),
                );
            }
            (engine, cpu)
        }
    };
    if let Some(cpu) = cpu.filter(|_| engine.grant().pin_refused.is_some()) {
        note(format!(
            "CPU {cpu} was refused, the audio thread runs anywhere: choose one of `cat /sys/devices/system/cpu/online`"
        ));
    }
    if memory::lock_current_memory().is_err() {
        note(format!("memory cannot be locked, and missing pages will delay the audio thread: {}", machine::SETCAP));
    }
    engine.begin()?;
    Ok(engine)
}

/// Whether the audio thread ended as it should.
pub fn check(end: End) -> anyhow::Result<()> {
    match end {
        End::Stopped => Ok(()),
        End::Gone => anyhow::bail!("the card is gone: plug it in, and play again"),
        End::Card(number) => {
            let error = std::io::Error::from_raw_os_error(number);
            anyhow::bail!("the card stopped, and refuses to go on: {error}; see `dmesg`, or play again")
        }
        End::Silent => anyhow::bail!("the card moved nothing for a second: choose another --rate, or see `dmesg`"),
        End::Server => anyhow::bail!("JACK's server has ended, or cut us off as too slow: start it, and play again"),
        End::Rate(rate_hz) => {
            anyhow::bail!("JACK's server has changed its rate to {rate_hz} Hz: play again at that rate")
        }
        End::Starved => {
            anyhow::bail!("nothing else got to run for five seconds: choose more --frames or a smaller model")
        }
        End::Broken => anyhow::bail!("the audio thread panicked; see above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_says_what_the_card_answered() {
        let said = |end| check(end).unwrap_err().to_string();
        assert_eq!(said(End::Gone), "the card is gone: plug it in, and play again");
        // EBUSY of Linux.
        let busy = said(End::Card(16));
        assert!(busy.contains("(os error 16); see `dmesg`") && !busy.contains("plug"), "{busy}");
        assert!(check(End::Stopped).is_ok());
    }
}
