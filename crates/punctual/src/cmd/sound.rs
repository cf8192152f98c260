//! Opening a sound card and starting the audio thread, for all commands that play.

use anyhow::Context;
use machine::{RIGHTS, Root, sound};
use play::{Device, End, Engine, JackClient, Settings, device::ClockDevice, jack::Peer};
use probes::audio::Player;
use record::CLOCK;
use sys::{memory, pcm::StreamConfig};

use crate::{cli::Sound, exit::Usage};

/// Usage error for options of a card that the timer does not have.
pub const NOT_WITH_CLOCK: &str =
    "--sample-format and --input apply to a sound card, not to the clock: leave them out, or add --device hw:0";

/// Default sample rate of a card.
const RATE_HZ: u32 = 48_000;
/// Default period of a card.
const FRAMES: u32 = 64;
/// Default number of periods in the buffer of a card.
const PERIODS: u32 = 2;

/// A device that is ready to play.
pub enum Ready {
    /// A card that is open and configured, or a timer, and the settings of the audio thread.
    Card(Device, Settings),
    /// A client of a JACK server.
    Jack(JackClient),
}

impl Ready {
    /// Sample rate, Hz.
    pub fn rate_hz(&self) -> u32 {
        match self {
            Self::Card(_, settings) => settings.card.rate_hz,
            Self::Jack(jack) => jack.rate_hz(),
        }
    }

    /// Frames of the buffer; for JACK those of a period, because the rest is not known before it plays.
    pub fn buffer_frames(&self) -> u32 {
        match self {
            Self::Card(_, settings) => settings.card.buffer_frames(),
            Self::Jack(jack) => jack.period_frames(),
        }
    }
}

/// Opens the device that the options name.
pub fn open(options: &Sound) -> anyhow::Result<Ready> {
    let (capture, playback) = options.names();
    match (Peer::parse(capture), Peer::parse(playback)) {
        (Some(capture), Some(playback)) => open_jack(options, &capture, &playback),
        (None, None) => open_card(options),
        _ => Err(Usage("--capture-device and --playback-device must both be JACK or both be cards".to_owned()).into()),
    }
}

/// Uses the rate and period of the server; options that differ are an error.
fn open_jack(options: &Sound, capture: &Peer, playback: &Peer) -> anyhow::Result<Ready> {
    if options.periods.is_some() || options.card.format.is_some() || options.policy.is_some() {
        let text = "the JACK server sets these: leave out --periods, --sample-format and --policy";
        return Err(Usage(text.to_owned()).into());
    }
    let jack = JackClient::open(capture, playback, options.input as usize - 1, options.cpu)?;
    check_server("--rate", options.rate, jack.rate_hz(), "-r")?;
    check_server("--frames", options.frames, jack.period_frames(), "-p")?;
    Ok(Ready::Jack(jack))
}

/// Checks that an option, if given, matches the setting of the JACK server.
fn check_server(option: &str, wanted: Option<u32>, actual: u32, jackd_option: &str) -> anyhow::Result<()> {
    match wanted {
        Some(wanted) if wanted != actual => anyhow::bail!(
            "the JACK server runs with {actual}, not {wanted}: leave out {option}, or start it with `jackd ... \
             {jackd_option} {wanted}`"
        ),
        _ => Ok(()),
    }
}

fn open_card(options: &Sound) -> anyhow::Result<Ready> {
    let card = StreamConfig {
        rate_hz: options.rate.unwrap_or(RATE_HZ),
        period_frames: options.frames.unwrap_or(FRAMES),
        periods: options.periods.unwrap_or(PERIODS),
        inputs: options.input.max(2),
        format: options.card.format,
    };
    let settings = Settings { card, input: options.input - 1, cpu: options.cpu, policy: options.policy() };
    let (capture, playback) = options.names();
    if (capture, playback) == (CLOCK, CLOCK) {
        return open_clock(options, settings);
    }
    let duplex = sound::open(&Root::system(), capture, playback, &settings.card, settings.input)?;
    Ok(Ready::Card(Device::Card(Box::new(duplex)), settings))
}

fn open_clock(options: &Sound, settings: Settings) -> anyhow::Result<Ready> {
    if options.card.format.is_some() || options.input > 1 {
        return Err(Usage(NOT_WITH_CLOCK.to_owned()).into());
    }
    let StreamConfig { rate_hz, period_frames, periods, .. } = settings.card;
    let clock = ClockDevice::new(rate_hz, period_frames, periods).context("cannot set a timer")?;
    Ok(Ready::Card(Device::Clock(clock), settings))
}

/// Starts the audio thread. Prints a note with a remedy for each privilege that was refused.
pub fn start(ready: Ready, player: Box<dyn Player>) -> anyhow::Result<Engine> {
    let (mut engine, cpu) = match ready {
        Ready::Card(device, settings) => (prepare_card(device, &settings, player)?, settings.cpu),
        Ready::Jack(jack) => {
            let cpu = jack.cpu();
            (prepare_jack(jack, player)?, cpu)
        }
    };
    if let Some(cpu) = cpu.filter(|_| engine.grant().pin_refused.is_some()) {
        say!(
            "note: cannot pin the audio thread to CPU {cpu}, so it runs on any: choose one of `cat \
             /sys/devices/system/cpu/online`"
        );
    }
    if memory::lock_current_memory().is_err() {
        // The note on a refused policy has the same remedy.
        let remedy = if engine.grant().policy_refused.is_some() { String::new() } else { format!(": {RIGHTS}") };
        say!("note: cannot lock memory, so page faults may delay the audio thread{remedy}");
    }
    engine.begin()?;
    Ok(engine)
}

fn prepare_card(device: Device, settings: &Settings, player: Box<dyn Player>) -> anyhow::Result<Engine> {
    let is_linked = device.is_linked();
    let engine = Engine::prepare(device, player, settings)?;
    let grant = engine.grant();
    if grant.policy_refused.is_some() {
        say!(
            "note: {} was refused, so the audio thread has the policy {} and other programs will delay it: {RIGHTS}",
            settings.policy,
            grant.policy
        );
    }
    if !is_linked {
        say!("note: the card cannot start both directions together, so the latency differs at each start");
    }
    Ok(engine)
}

fn prepare_jack(jack: JackClient, player: Box<dyn Player>) -> anyhow::Result<Engine> {
    let engine = Engine::prepare_jack(jack, player)?;
    if !engine.grant().policy.is_realtime() {
        say!("note: the JACK server is not real-time, so other programs will delay it: start it with `jackd -R ...`");
    }
    Ok(engine)
}

/// An error unless the audio thread was stopped on purpose.
pub fn check(end: End) -> anyhow::Result<()> {
    match end {
        End::Stopped => Ok(()),
        End::Gone => anyhow::bail!("the card was removed: plug it in and play again"),
        End::Card(number) => {
            let error = std::io::Error::from_raw_os_error(number);
            anyhow::bail!("the card stopped and cannot be restarted: {error}; see `dmesg`, or play again")
        }
        End::Silent => anyhow::bail!("the card made no progress for a second: choose another --rate, or see `dmesg`"),
        End::Server => {
            anyhow::bail!(
                "the JACK server ended, or removed this client because it was too slow: start the server and play again"
            )
        }
        End::Rate(rate_hz) => {
            anyhow::bail!("the JACK server changed its sample rate to {rate_hz} Hz: play again")
        }
        End::Starved => {
            anyhow::bail!("no other program could run for five seconds: use more --frames or a smaller model")
        }
        End::Broken => anyhow::bail!("the audio thread panicked; see the message above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_contains_that_of_the_card() {
        let message = |end| check(end).unwrap_err().to_string();
        assert_eq!(message(End::Gone), "the card was removed: plug it in and play again");
        // EBUSY of Linux.
        let busy = message(End::Card(16));
        assert!(busy.contains("(os error 16); see `dmesg`") && !busy.contains("plug"), "{busy}");
        assert!(check(End::Stopped).is_ok());
    }
}
