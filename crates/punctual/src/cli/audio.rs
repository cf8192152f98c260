//! Options of `measure audio`.

use std::path::PathBuf;

use campaign::probe::{
    AudioProbe, Definition,
    audio::{CabSource, Device, FRAMES, INPUTS, ModelSource, PERIODS, RATES_HZ, Through},
};
use clap::Args;
use record::CLOCK;
use sys::sched::Policy;

use super::{Common, Placement, Rounds, WakeUps, sound::Card};

/// Options of `measure audio`.
#[derive(Debug, Args)]
pub struct Audio {
    /// Use this sample rate, Hz.
    #[arg(long, value_name = "HZ", default_value_t = AudioProbe::default().rate_hz, value_parser = rate)]
    pub rate: u32,
    /// Use periods of N frames [default: of profile, or 64].
    #[arg(long, value_name = "N", value_parser = frames)]
    pub frames: Option<u32>,
    /// Use a buffer of this many periods.
    ///
    /// The deadline of each period is N - 1 periods later.
    #[arg(long, value_name = "N", default_value_t = AudioProbe::default().periods, value_parser = periods)]
    pub periods: u32,
    /// Play this model.
    ///
    /// A .nam, .json or .aidax file, or a built-in model. builtin:standard, builtin:feather, builtin:nano and builtin:lstm cost as much as real
    /// models of these sizes.
    #[arg(long, value_name = "FILE|NAME", default_value_t = ModelSource::default())]
    pub model: ModelSource,
    /// Play this cabinet, or none.
    ///
    /// A WAV file, or builtin:SAMPLES, which costs as much as an impulse response of this length.
    #[arg(long, value_name = "FILE|NAME", default_value_t = CabSource::default())]
    pub cab: CabSource,
    /// Play this preset (TOML) instead of --model and --cab.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "cab"])]
    pub preset: Option<PathBuf>,
    /// Pace by clock or hw:CARD,DEVICE.
    ///
    /// It sets the deadlines. CARD is a number or a name; `punctual amp devices` lists them. The measurement plays silence.
    #[arg(long, value_name = "HW", default_value = "clock", conflicts_with_all = ["capture", "playback"])]
    pub device: String,
    /// Capture and playback device, and format.
    #[command(flatten)]
    pub sound_card: Card,
    /// Read this input of the card, from 1 [default: 1].
    #[arg(long, value_name = "N", value_parser = input)]
    pub input: Option<u32>,
    /// Find the smallest buffer without late periods.
    ///
    /// It searches the powers of two from 16 to 1024 or in FROM..TO, or the multiples of STEP in FROM..TO, e.g.
    /// --find-buffer=16..256:16. Each tested size takes --duration under the loads; the binary search tests 3 of 7
    /// sizes.
    #[arg(
        long,
        value_name = "FROM..TO[:STEP]",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "16..1024",
        value_parser = sizes,
        conflicts_with_all = ["frames", "endless"]
    )]
    pub find_buffer: Option<Sizes>,
    /// Run on this CPU [default: last isolated, or last].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// fifo:N, rr:N, deadline:R/D/P, other.
    ///
    /// The policy of the thread. The priority N is 1 to 99. The times of deadline:RUNTIME/DEADLINE/PERIOD are
    /// durations, e.g. 50us.
    #[arg(long, default_value_t = AudioProbe::default().policy(None))]
    pub policy: Policy,
    /// Placement of threads.
    #[command(flatten)]
    pub placement: Placement,
    /// Options of measurements with deadlines.
    #[command(flatten)]
    pub wake_ups: WakeUps,
    /// The number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// Options of all measurements.
    #[command(flatten)]
    pub common: Common,
}

impl Audio {
    /// The chain to play.
    pub fn through(&self) -> Through {
        let parts = || Through::Parts { model: self.model.clone(), cab: self.cab.clone() };
        self.preset.clone().map_or_else(parts, Through::Preset)
    }

    /// The card that sets the deadlines; `None` for the clock.
    pub fn card(&self) -> Option<Device> {
        let (capture, playback) = self.sound_card.names(&self.device);
        if (capture, playback) == (CLOCK, CLOCK) {
            return None;
        }
        let (format, input) = (self.sound_card.format, self.input.map_or(0, |input| input - 1));
        Some(Device { capture: capture.to_owned(), playback: playback.to_owned(), format, input })
    }
}

/// Buffer sizes to search, frames, in ascending order; at least one.
#[derive(Debug, Clone)]
pub struct Sizes(pub Vec<u32>);

fn sizes(text: &str) -> Result<Sizes, String> {
    let form =
        || format!("must be FROM..TO of {} to {} frames, e.g. 16..1024 or 16..256:16", FRAMES.start(), FRAMES.end());
    let (range, step) = text.split_once(':').map_or((text, None), |(range, step)| (range, Some(step)));
    let (from, to) = range.split_once("..").ok_or_else(form)?;
    let (from, to) = (frames(from).map_err(|_| form())?, frames(to).map_err(|_| form())?);
    let sizes: Vec<u32> = match step {
        None => (from..=to).filter(|size| size.is_power_of_two()).collect(),
        Some(step) => {
            let step = step.parse().ok().filter(|step| *step > 0).ok_or_else(form)?;
            (from..=to).filter(|size: &u32| size.is_multiple_of(step)).collect()
        }
    };
    if sizes.is_empty() { Err(form()) } else { Ok(Sizes(sizes)) }
}

fn rate(text: &str) -> Result<u32, String> {
    let (first, last) = (RATES_HZ.start(), RATES_HZ.end());
    let hz = text.parse().ok().filter(|hz| RATES_HZ.contains(hz));
    hz.ok_or_else(|| format!("must be {first} to {last} Hz, e.g. 48000"))
}

fn frames(text: &str) -> Result<u32, String> {
    let (first, last) = (FRAMES.start(), FRAMES.end());
    let frames = text.parse().ok().filter(|frames| FRAMES.contains(frames));
    frames.ok_or_else(|| format!("must be {first} to {last}, e.g. 64"))
}

fn periods(text: &str) -> Result<u32, String> {
    let (first, last) = (PERIODS.start(), PERIODS.end());
    let periods = text.parse().ok().filter(|periods| PERIODS.contains(periods));
    periods.ok_or_else(|| format!("must be {first} to {last}, e.g. 2"))
}

fn input(text: &str) -> Result<u32, String> {
    let (first, last) = (INPUTS.start(), INPUTS.end());
    let input = text.parse().ok().filter(|input| INPUTS.contains(input));
    input.ok_or_else(|| format!("must be {first} to {last}, e.g. 1"))
}
