//! Options of `measure audio`.

use campaign::{
    ModelSource,
    audio::{FRAMES, PERIODS, RATES_HZ},
};
use clap::Args;
use sys::sched::Policy;

use super::{Common, Placement, WakeUps};

/// Options of `measure audio`.
#[derive(Debug, Args)]
pub struct Audio {
    /// Sample rate, Hz.
    #[arg(long, value_name = "HZ", default_value = "48000", value_parser = rate)]
    pub rate: u32,
    /// Samples of a period [default: those of the profile, or 64].
    #[arg(long, value_name = "N", value_parser = frames)]
    pub frames: Option<u32>,
    /// Periods that the card holds: a period must be played within all but one of them.
    #[arg(long, value_name = "N", default_value = "2", value_parser = periods)]
    pub periods: u32,
    /// The model to play through: a .nam, .json or .aidax file, or builtin:standard, feather, nano or lstm, which cost what
    /// files of these shapes cost.
    #[arg(long, value_name = "FILE|NAME", default_value = "builtin:standard")]
    pub model: ModelSource,
    /// CPU of the audio thread [default: the last isolated one, or the last].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Its policy: fifo:1-99, rr:1-99, deadline:RUNTIME/DEADLINE/PERIOD or other.
    #[arg(long, visible_alias = "priority", default_value = "fifo:90")]
    pub policy: Policy,
    /// Where things run.
    #[command(flatten)]
    pub placement: Placement,
    /// What each measurement of wake-ups has.
    #[command(flatten)]
    pub wake_ups: WakeUps,
    /// What every measurement has.
    #[command(flatten)]
    pub common: Common,
}

fn rate(text: &str) -> Result<u32, String> {
    let (first, last) = (RATES_HZ.start(), RATES_HZ.end());
    let hz = text.parse().ok().filter(|hz| RATES_HZ.contains(hz));
    hz.ok_or_else(|| format!("must be {first} to {last} Hz, as 48000"))
}

fn frames(text: &str) -> Result<u32, String> {
    let (first, last) = (FRAMES.start(), FRAMES.end());
    let frames = text.parse().ok().filter(|frames| FRAMES.contains(frames));
    frames.ok_or_else(|| format!("must be {first} to {last}, as 64"))
}

fn periods(text: &str) -> Result<u32, String> {
    let (first, last) = (PERIODS.start(), PERIODS.end());
    let periods = text.parse().ok().filter(|periods| PERIODS.contains(periods));
    periods.ok_or_else(|| format!("must be {first} to {last}, as 2"))
}
