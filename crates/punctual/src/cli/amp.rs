//! Options of `amp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What to do with a model.
#[derive(Debug, Subcommand)]
pub enum Amp {
    /// Say what a model's file is, and what it costs to play on this machine.
    ///
    /// Example:
    ///   punctual amp info deluxe.nam
    #[command(verbatim_doc_comment)]
    Info(Info),
    /// Play a WAV file through a model into another, without a sound card.
    ///
    /// The output begins where the input begins, sample for sample, as 32-bit floating point.
    ///
    /// Examples:
    ///   punctual amp render dry.wav wet.wav --bare --model deluxe.nam
    ///   punctual amp render dry.wav wet.wav --bare --model proteus.json --param 0.35
    #[command(verbatim_doc_comment)]
    Render(Render),
    /// List the sound cards: what each can do, and who holds it.
    Devices(Devices),
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
    /// The model's file: .nam, .json or .aidax.
    pub file: PathBuf,
    /// Which of it.
    #[command(flatten)]
    pub choice: ModelChoice,
    /// Print it as JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of `amp render`.
#[derive(Debug, Args)]
pub struct Render {
    /// What to play: a WAV file of one channel, at the model's sample rate.
    pub input: PathBuf,
    /// Where to write it.
    pub output: PathBuf,
    /// The model's file: .nam, .json or .aidax.
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// The model alone: no gain, gate, cabinet or normalisation. So far nothing else is to be had.
    #[arg(long)]
    pub bare: bool,
    /// Which of it.
    #[command(flatten)]
    pub choice: ModelChoice,
    /// Begin as the network was made, not as after silence.
    #[arg(long)]
    pub no_prewarm: bool,
}

/// Which of what a file holds.
#[derive(Debug, Args)]
pub struct ModelChoice {
    /// Of files that hold several sizes, 0 for the smallest to 1 for the whole.
    #[arg(long, value_name = "0..1", value_parser = part, default_value = "1")]
    pub slim: f64,
    /// A knob of the model, 0 to 1; again for the next one.
    #[arg(long, value_name = "0..1", value_parser = part)]
    pub param: Vec<f64>,
}

fn part(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "must be 0 to 1, as 0.5".to_owned())
}
