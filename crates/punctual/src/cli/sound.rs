//! Options of a sound card, shared by all that plays on one; and those of `latency`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sys::{pcm::Format, sched::Policy};

use super::Talk;

/// Priority of the audio thread where none is told.
const PRIORITY: u8 = 80;

/// The sound card, and the thread that plays on it.
#[derive(Debug, Args)]
#[command(next_help_heading = "The card")]
pub struct Sound {
    /// The card, for both directions: hw:CARD or hw:CARD,DEVICE by number or name, as `punctual amp devices` lists them; `jack` for the card
    /// of JACK's server, jack:NAME for a client or a port of it, jack:none for none of them; `clock` for no card at all, where a guitar of our
    /// own is played and nobody hears it.
    #[arg(long, value_name = "HW", default_value = "hw:0", conflicts_with_all = ["capture", "playback"])]
    pub device: String,
    /// The device to capture from, where it is another than the one to play on.
    #[arg(long, value_name = "HW", requires = "playback")]
    pub capture: Option<String>,
    /// The device to play on.
    #[arg(long, value_name = "HW", requires = "capture")]
    pub playback: Option<String>,
    /// Sample rate, Hz: exactly this one or none; 48000 or JACK's where none is told.
    #[arg(long, value_name = "HZ", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=768_000))]
    pub rate: Option<u32>,
    /// Frames of a period: the card wakes the audio thread after each; 64 or JACK's where none is told.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(16..=1024))]
    pub frames: Option<u32>,
    /// Periods of the buffer: what is captured is played so many periods later; 2 where none is told.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(2..=16))]
    pub periods: Option<u32>,
    /// Sample format of the card, FLOAT, S32, S24, S24_3 or S16; the most exact it has where none is told.
    #[arg(long)]
    pub format: Option<Format>,
    /// Input that is played, counted from 1.
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub input: u32,
    /// CPU that the audio thread runs on; any where none is told.
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Priority of the audio thread (SCHED_FIFO), 1 to 99; 0 for an ordinary thread; 80 where none is told.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u8).range(0..=99))]
    pub priority: Option<u8>,
}

impl Sound {
    /// Names of the devices to capture from and to play on.
    pub fn names(&self) -> (&str, &str) {
        (self.capture.as_deref().unwrap_or(&self.device), self.playback.as_deref().unwrap_or(&self.device))
    }

    /// The policy of the audio thread.
    pub fn policy(&self) -> Policy {
        match self.priority.unwrap_or(PRIORITY) {
            0 => Policy::Other,
            priority => Policy::Fifo(priority),
        }
    }
}

/// Which latency.
#[derive(Debug, Subcommand)]
pub enum Latency {
    /// Measure the true round trip of a sound card, with a cable from its output to its input.
    ///
    /// Plays a short noise on outputs 1 and 2 and looks for it in the input: from the buffer that it was
    /// written to, to the buffer that it came in with. Beside it stands what the buffers alone take.
    /// Turn the output down first: the noise is played at -12 dB of full scale.
    ///
    /// Examples:
    ///   punctual latency loop --device hw:USB
    ///   punctual latency loop --device hw:0 --frames 32 --periods 3 --input 2 --json
    #[command(verbatim_doc_comment)]
    Loop(LatencyLoop),
}

/// Options of `latency loop`.
#[derive(Debug, Args)]
pub struct LatencyLoop {
    /// How many times it is measured.
    #[arg(long, value_name = "N", default_value = "5", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Where the record goes, its name ending in .punctual.json [default: HOST-DATE-TIME.punctual.json in this folder].
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Keep no record.
    #[arg(long, conflicts_with = "record")]
    pub no_record: bool,
    /// Write the result there too, in the format of the extension: json or html; `-` is JSON on standard output; can be
    /// repeated.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
    /// The card.
    #[command(flatten)]
    pub sound: Sound,
}
