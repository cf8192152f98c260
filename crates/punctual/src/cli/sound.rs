//! Options of a sound card, shared by all commands that use one; and options of `latency`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sys::{pcm::Format, sched::Policy};

use super::{Extent, OutputOptions, RecordOptions};

/// Default priority of the audio thread.
const PRIORITY: u8 = 80;

/// Options that every command with a sound card has. Each command adds its own `--device`, because the defaults differ.
#[derive(Debug, Args)]
pub struct Card {
    /// Capture from this device; needs --playback-device.
    ///
    /// Both devices replace --device.
    #[arg(long = "capture-device", value_name = "HW", requires = "playback")]
    pub capture: Option<String>,
    /// Play on this device; needs --capture-device.
    ///
    /// Both devices replace --device.
    #[arg(long = "playback-device", value_name = "HW", requires = "capture")]
    pub playback: Option<String>,
    /// FLOAT, S32, S24, S24_3, S16 [default: the most exact].
    #[arg(long = "sample-format", value_name = "FORMAT")]
    pub format: Option<Format>,
}

impl Card {
    /// Names of the devices to capture from and to play on; `device` is the one for both.
    pub fn names<'a>(&'a self, device: &'a str) -> (&'a str, &'a str) {
        (self.capture.as_deref().unwrap_or(device), self.playback.as_deref().unwrap_or(device))
    }
}

/// The sound card, and the thread that plays on it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sound card")]
pub struct Sound {
    /// Card hw:CARD,DEVICE, jack or clock.
    ///
    /// CARD is a number or a name; `punctual amp devices` lists them. jack is the card of the JACK server, jack:NAME a
    /// JACK client or port, jack:none no connection. clock is a timer with a synthetic guitar as its input and no
    /// output.
    #[arg(long, value_name = "HW", default_value = "hw:0", conflicts_with_all = ["capture", "playback"])]
    pub device: String,
    /// Capture and playback device, and format.
    #[command(flatten)]
    pub card: Card,
    /// Use this sample rate, Hz [default: 48000, or of JACK].
    ///
    /// The card must support exactly this one.
    #[arg(long, value_name = "HZ", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=768_000))]
    pub rate: Option<u32>,
    /// Use periods of N frames [default: 64, or of JACK].
    ///
    /// The card wakes the audio thread once per period.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(16..=1024))]
    pub frames: Option<u32>,
    /// Use a buffer of this many periods [default: 2].
    ///
    /// Its length is the latency from input to output.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(2..=16))]
    pub periods: Option<u32>,
    /// Read input N of the card, from 1.
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub input: u32,
    /// Run the audio thread on this CPU [default: any].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Use policy fifo:N, rr:N or other [default: fifo:80].
    ///
    /// The priority N is 1 to 99. The JACK server sets that of its clients.
    #[arg(long)]
    pub policy: Option<Policy>,
}

impl Sound {
    /// Names of the devices to capture from and to play on.
    pub fn names(&self) -> (&str, &str) {
        self.card.names(&self.device)
    }

    /// The policy of the audio thread.
    pub fn policy(&self) -> Policy {
        self.policy.unwrap_or(Policy::Fifo(PRIORITY))
    }
}

/// The latency to measure.
#[derive(Debug, Subcommand)]
pub enum Latency {
    /// Measure the round-trip latency of a sound card, with a cable from its output to its input.
    ///
    /// Plays a short noise on outputs 1 and 2, and finds it in the input. The time from the buffer that it was written
    /// to until the buffer that it was captured in is shown together with the computed latency of the buffers alone.
    /// Turn the output down first: the level of the noise is -12 dB of full scale.
    ///
    /// Examples:
    ///   punctual latency loop --device hw:USB
    ///   punctual latency loop --device hw:0 --frames 32 --periods 3 --input 2 --json
    #[command(verbatim_doc_comment)]
    Loop(LatencyLoop),
}

/// Options of `latency loop`.
#[derive(Debug, Args)]
#[command(mut_arg("device", looped))]
pub struct LatencyLoop {
    /// Measure this many times.
    #[arg(long, value_name = "N", default_value = "5", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// The record.
    #[command(flatten)]
    pub record: RecordOptions,
    /// Also write FILE; its suffix is the format; repeatable.
    ///
    /// json or html; `-` prints JSON on standard output.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Output options.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
    /// The card.
    #[command(flatten)]
    pub sound: Sound,
}

/// The device of a measurement with a cable, which the clock does not have.
fn looped(device: clap::Arg) -> clap::Arg {
    device.help("hw:CARD,DEVICE, jack or jack:NAME").long_help(
        "hw:CARD,DEVICE, jack or jack:NAME.\n\nCARD is a number or a name; `punctual amp devices` lists them. jack \
         is the card of the JACK server, jack:NAME a JACK client or port, jack:none no connection.",
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_measurement_with_a_cable_does_not_offer_the_clock() {
        let definition = crate::cli::definition();
        let device = |words: [&str; 2]| {
            let command = words.iter().fold(&definition, |command, word| command.find_subcommand(word).unwrap());
            let device = command.get_arguments().find(|arg| arg.get_long() == Some("device")).unwrap();
            [device.get_help(), device.get_long_help()].map(|help| help.unwrap().to_string())
        };
        assert!(device(["latency", "loop"]).iter().all(|help| help.contains("jack:NAME") && !help.contains("clock")));
        assert!(device(["amp", "play"]).iter().all(|help| help.contains("clock")));
    }
}
