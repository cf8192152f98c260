//! Options of `amp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Color, duration, rig::Rig, sound::Sound};

/// What to do with a model.
#[derive(Debug, Subcommand)]
pub enum Amp {
    /// Say what a model, a cabinet or a preset is, and what it costs to play on this machine.
    ///
    /// Examples:
    ///   punctual amp info deluxe.nam
    ///   punctual amp info 4x12.wav
    ///   punctual amp info lead.toml
    #[command(verbatim_doc_comment)]
    Info(Info),
    /// Time models on this machine: what a block takes, and its share of the time that it lasts.
    ///
    /// Examples:
    ///   punctual amp bench deluxe.nam twin.nam
    ///   punctual amp bench models --frames 16
    #[command(verbatim_doc_comment)]
    Bench(Bench),
    /// Play a WAV file through models and cabinet into another, without a sound card.
    ///
    /// The output begins where the input begins, sample for sample, and has its rate and length; 32-bit
    /// floating point. Models and cabinets of other rates are resampled.
    ///
    /// Examples:
    ///   punctual amp render dry.wav wet.wav --model deluxe.nam --cab 4x12.wav
    ///   punctual amp render dry.wav wet.wav --preset lead.toml --set tone.treble_db=2
    ///   punctual amp render dry.wav wet.wav --neutral --model twin.nam --cab 4x12.wav
    ///   punctual amp render dry.wav wet.wav --bare --model proteus.json --param 0.35
    #[command(verbatim_doc_comment)]
    Render(Render),
    /// Play the input of a sound card through models and cabinet, until Ctrl-C.
    ///
    /// Straight on the card, without a sound server, or with JACK's: see `punctual amp devices`. Load, latency,
    /// xruns, levels and a tuner are shown meanwhile.
    ///
    /// Examples:
    ///   punctual amp play --device hw:USB --model deluxe.nam --cab 4x12.wav
    ///   punctual amp play --device hw:USB --frames 32 --cpu 3 --preset lead.toml
    ///   punctual amp play --device hw:USB --presets my-presets --midi hw:1,0
    ///   punctual amp play --device jack --preset lead.toml
    #[command(verbatim_doc_comment)]
    Play(Box<Play>),
    /// Play through a sound card, and choose and turn on a web page that this machine alone can open.
    ///
    /// The folder is the library: models, cabinets (WAV) and presets (TOML), also in folders within. Ctrl-C ends it.
    ///
    /// Examples:
    ///   punctual amp serve ~/tones --device hw:USB
    ///   punctual amp serve ~/tones --device clock     without a card: nobody hears it
    #[command(verbatim_doc_comment)]
    Serve(Serve),
    /// List the sound cards: what each can do, and who holds it; and what a JACK server has.
    Devices(Devices),
}

/// Options of `amp serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The folder of models, cabinets and presets.
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// The preset of the folder to begin with; its first one where none is told.
    #[arg(long, value_name = "FILE")]
    pub preset: Option<String>,
    /// Port of 127.0.0.1; 0 for any that is free.
    #[arg(long, default_value = "8077", allow_negative_numbers = true)]
    pub port: u16,
    /// The card.
    #[command(flatten)]
    pub sound: Sound,
}

/// Options of `amp play`.
#[derive(Debug, Args)]
pub struct Play {
    /// A folder of presets, in the order of their names: what MIDI chooses by its programs.
    #[arg(long, value_name = "DIR")]
    pub presets: Option<PathBuf>,
    /// Where MIDI comes from: hw:CARD,DEVICE, or the path of a port, a named pipe or a file. A program chooses
    /// a preset, a controller turns what the preset's `midi` says.
    #[arg(long, value_name = "PORT")]
    pub midi: Option<String>,
    /// The MIDI channel to listen to; all of them otherwise.
    #[arg(long, value_name = "1..16", value_parser = clap::value_parser!(u8).range(1..=16), requires = "midi", allow_negative_numbers = true)]
    pub midi_channel: Option<u8>,
    /// How long to play, as 30s or 10m; until Ctrl-C otherwise.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<u64>,
    /// No live view.
    #[arg(long, short)]
    pub quiet: bool,
    /// When to use colour: auto, always or never; NO_COLOR is honoured.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// What is played.
    #[command(flatten)]
    pub rig: Rig,
    /// The card, and the audio thread.
    #[command(flatten)]
    pub sound: Sound,
}

/// Options of `amp devices`.
#[derive(Debug, Args)]
pub struct Devices {
    /// Print it as JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of `amp info`.
#[derive(Debug, Args)]
pub struct Info {
    /// The file: .nam, .json or .aidax, .wav, or .toml.
    pub file: PathBuf,
    /// Which of it.
    #[command(flatten)]
    pub choice: ModelChoice,
    /// Print it as JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of `amp bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// The models' files: .nam, .json or .aidax; or folders of them.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Frames of a block.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=8192), allow_negative_numbers = true)]
    pub frames: u32,
    /// Print it as JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of `amp render`.
#[derive(Debug, Args)]
pub struct Render {
    /// What to play: a WAV file of one channel, of any rate and depth; - for standard input.
    pub input: PathBuf,
    /// Where to write it; - for standard output.
    pub output: PathBuf,
    /// The model alone: no gain, gate, cabinet or normalisation.
    #[arg(long)]
    pub bare: bool,
    /// With --bare: begin as the network was made, not as after silence.
    #[arg(long)]
    pub no_prewarm: bool,
    /// One channel, the mean of both, where a cabinet has two.
    #[arg(long)]
    pub mono: bool,
    /// Sample rate of the output, Hz; the input's otherwise.
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=768_000), allow_negative_numbers = true)]
    pub rate: Option<u32>,
    /// What is played.
    #[command(flatten)]
    pub rig: Rig,
}

/// Which of what a file holds.
#[derive(Debug, Args)]
pub struct ModelChoice {
    /// Of files that hold several sizes, 0 for the smallest to 1 for the whole; the whole unless a preset says
    /// otherwise.
    #[arg(long, value_name = "0..1", value_parser = part, allow_negative_numbers = true)]
    pub slim: Option<f64>,
    /// A knob of the model, 0 to 1; again for the next one.
    #[arg(long, value_name = "0..1", value_parser = part, allow_negative_numbers = true)]
    pub param: Vec<f64>,
}

impl ModelChoice {
    /// Whether anything is chosen.
    pub fn is_made(&self) -> bool {
        self.slim.is_some() || !self.param.is_empty()
    }
}

fn part(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "must be 0 to 1, as 0.5".to_owned())
}
