//! Options of `amp`.

use std::{net::IpAddr, path::PathBuf};

use clap::{Args, Subcommand};
use play::board::Board;

use super::{
    Color, duration,
    rig::{ModelChoice, Rig},
    sound::Sound,
};

/// The subcommands of `amp`.
#[derive(Debug, Subcommand)]
pub enum Amp {
    /// Describe a model, a cabinet or a preset, and measure what it costs to play on this machine.
    ///
    /// Examples:
    ///   punctual amp info deluxe.nam
    ///   punctual amp info 4x12.wav
    #[command(verbatim_doc_comment)]
    Info(Info),
    /// Measure the processing time of models on this machine, also as a share of the duration of a block.
    ///
    /// With --board, estimate the share of one core of a board instead, and print how certain that is.
    ///
    /// Examples:
    ///   punctual amp bench models --frames 16
    ///   punctual amp bench deluxe.nam twin.nam --board pi4
    #[command(verbatim_doc_comment)]
    Bench(Bench),
    /// Render recordings (WAV, FLAC, AIFF) through models and cabinet to WAV files, without a sound card.
    ///
    /// The output has the rate and length of the input and is aligned with it to the sample; its format is
    /// 32-bit floating point. Models and cabinets of other rates are resampled. Several recordings are rendered
    /// to a folder, on all CPUs.
    ///
    /// Examples:
    ///   punctual amp render dry.wav wet.wav --model deluxe.nam --cab 4x12.wav
    ///   punctual amp render takes/*.flac wet --preset lead.toml --set tone.treble_db=2
    #[command(verbatim_doc_comment)]
    Render(Render),
    /// Play the input of a sound card through models and cabinet, until Ctrl-C.
    ///
    /// Uses the card directly, without a sound server, or a JACK server: see `punctual amp devices`. Shows load,
    /// latency, xruns, levels and a tuner.
    ///
    /// Examples:
    ///   punctual amp play --device hw:USB --model deluxe.nam --cab 4x12.wav
    ///   punctual amp play --device jack --preset lead.toml
    #[command(verbatim_doc_comment)]
    Play(Box<Play>),
    /// Play through a sound card, controlled from a web page and by MIDI.
    ///
    /// The folder contains models, cabinets (WAV) and presets (TOML); models and cabinets may be in subfolders.
    /// Only this machine can open the page. With --bind, a phone or tablet can, too: it scans the QR code in the
    /// terminal, which contains a secret token. Ends with Ctrl-C.
    ///
    /// Examples:
    ///   punctual amp serve ~/tones --device hw:USB
    ///   punctual amp serve ~/tones --device hw:USB --bind 0.0.0.0 --midi hw:1,0
    #[command(verbatim_doc_comment)]
    Serve(Serve),
    /// List the sound cards with their formats and the programs that use them, and the card of a JACK server.
    ///
    /// Examples:
    ///   punctual amp devices
    ///   punctual amp devices --json
    #[command(verbatim_doc_comment)]
    Devices(Devices),
}

/// Options of `amp serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// Folder of models, cabinets and presets.
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// Begin with this preset [default: the first one].
    ///
    /// A file of the folder.
    #[arg(long, value_name = "FILE")]
    pub preset: Option<String>,
    /// Serve at this address.
    ///
    /// 0.0.0.0 serves at all of them. Except on loopback addresses, every request needs the token of the printed link. The connection is not encrypted.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = address)]
    pub bind: IpAddr,
    /// Keep the token in this file [default: a new one].
    ///
    /// The link stays the same. Then a page on a loopback address needs the token, too.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Use this TCP port; 0 for any free one.
    #[arg(long, default_value = "8077", allow_negative_numbers = true)]
    pub port: u16,
    /// MIDI input.
    #[command(flatten)]
    pub midi: Midi,
    /// Sound card and audio thread.
    #[command(flatten)]
    pub sound: Sound,
}

/// MIDI input of `amp serve` and `amp play`.
#[derive(Debug, Args)]
pub struct Midi {
    /// Read MIDI from hw:CARD,DEVICE, a port, pipe or file.
    ///
    /// Program changes choose presets, control changes set the parameters in the `[midi]` section of the preset.
    #[arg(id = "midi", long, value_name = "PORT")]
    pub port: Option<String>,
    /// Accept only this MIDI channel [default: all].
    #[arg(id = "midi_channel", long = "midi-channel", value_name = "1..16", value_parser = clap::value_parser!(u8).range(1..=16), requires = "midi", allow_negative_numbers = true)]
    pub channel: Option<u8>,
}

/// Options of `amp play`.
#[derive(Debug, Args)]
pub struct Play {
    /// Play presets of this folder, chosen by MIDI programs.
    ///
    /// In the order of their names.
    #[arg(long, value_name = "DIR")]
    pub presets: Option<PathBuf>,
    /// MIDI input.
    #[command(flatten)]
    pub midi: Midi,
    /// Play for this long [default: until Ctrl-C].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<u64>,
    /// Show no live view.
    #[arg(long, short)]
    pub quiet: bool,
    /// Use colour: auto, always or never.
    ///
    /// auto uses colour on a terminal, unless NO_COLOR is set.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Preset, models and cabinets.
    #[command(flatten)]
    pub rig: Rig,
    /// Sound card and audio thread.
    #[command(flatten)]
    pub sound: Sound,
}

/// Options of `amp devices`.
#[derive(Debug, Args)]
pub struct Devices {
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Options of `amp info`.
#[derive(Debug, Args)]
pub struct Info {
    /// Model, cabinet (e.g. .wav) or preset (.toml).
    ///
    /// A model is a .nam, .json or .aidax file, a cabinet a .wav, .flac or .aiff file.
    pub file: PathBuf,
    /// Size and knobs of the model.
    #[command(flatten)]
    pub choice: ModelChoice,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Options of `amp bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// Models (.nam, .json, .aidax), or folders of models.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Estimate for this core or board, e.g. pi4@1800 (MHz).
    ///
    /// Cores: cortex-a53, cortex-a55, cortex-a72, cortex-a76. Boards: pi3, pi4, pi5, rk3566, rk3588. The estimates are
    /// for blocks of 64 frames; longer blocks are played in blocks of 64.
    #[arg(long, value_name = "CORE[@MHZ]")]
    pub board: Option<Board>,
    /// Process blocks of this many frames.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=8192), allow_negative_numbers = true)]
    pub frames: u32,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Options of `amp render`.
#[derive(Debug, Args)]
pub struct Render {
    /// Recordings to read; - for standard input.
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// WAV file or folder to write; - for standard output.
    ///
    /// In a folder, each file has the name of its recording and the ending .wav.
    pub output: PathBuf,
    /// Use the model alone, without gain, gate or cabinet.
    ///
    /// Without normalisation, too.
    #[arg(long)]
    pub bare: bool,
    /// With --bare, start with the network's initial state.
    ///
    /// Otherwise it starts with its state after silence.
    #[arg(long)]
    pub no_prewarm: bool,
    /// Play channel N of the input [default: the mean].
    ///
    /// The mean of all channels has the level of a guitar that is on all of them. A guitar on one of two channels would be
    /// 6 dB softer: choose its channel.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), allow_negative_numbers = true)]
    pub channel: Option<u16>,
    /// Write one channel: the mean of left and right.
    #[arg(long)]
    pub mono: bool,
    /// Write at this rate, Hz [default: that of the input].
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=768_000), allow_negative_numbers = true)]
    pub rate: Option<u32>,
    /// Preset, models and cabinets.
    #[command(flatten)]
    pub rig: Rig,
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "must be an IP address of this machine, e.g. 192.168.1.5, or 0.0.0.0 for all".to_owned())
}
