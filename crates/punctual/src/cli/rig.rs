//! Options for models, cabinets and their settings.

use std::path::PathBuf;

use amp::Parameter;
use clap::Args;

/// Models, cabinets and their settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Models and cabinets")]
pub struct Rig {
    /// Play this preset (TOML); the other options override it.
    #[arg(long, value_name = "FILE")]
    pub preset: Option<PathBuf>,
    /// Play this model: a .nam, .json or .aidax file.
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Size and knobs of the model.
    #[command(flatten)]
    pub choice: ModelChoice,
    /// Play this second model, in series or in parallel.
    #[arg(long, value_name = "FILE")]
    pub model2: Option<PathBuf>,
    /// Play the second model after the first, as by default.
    ///
    /// A parallel preset changes the default.
    #[arg(long, conflicts_with = "parallel")]
    pub series: bool,
    /// Play the models in parallel, mixed by amp.mix.
    #[arg(long)]
    pub parallel: bool,
    /// Play this cabinet: an impulse response, e.g. WAV.
    ///
    /// A WAV, FLAC or AIFF file.
    #[arg(long, value_name = "FILE")]
    pub cab: Option<PathBuf>,
    /// Mix this second cabinet with the first one.
    #[arg(long, value_name = "FILE", requires = "cab")]
    pub cab2: Option<PathBuf>,
    /// Keep the level of white noise in the cabinets.
    #[arg(long)]
    pub cab_normalised: bool,
    /// Remove the silence at the start of the cabinets.
    #[arg(long)]
    pub cab_without_delay: bool,
    /// Add reverb: an impulse response, e.g. WAV.
    ///
    /// A WAV, FLAC or AIFF file. Its share is set with reverb_ir.mix. White noise keeps its level.
    #[arg(long, value_name = "FILE")]
    pub reverb_ir: Option<PathBuf>,
    /// Play models and cabinet without gate, tone and levels.
    ///
    /// Effects, DC filter and limiter are off, too, unless set with --set. The routing of two models is kept.
    #[arg(long)]
    pub neutral: bool,
    /// Set e.g. gate.on=on or tone.bass_db=3; repeatable.
    #[arg(long, value_name = "NAME=VALUE", long_help = parameters())]
    pub set: Vec<String>,
}

impl Rig {
    /// True if a preset, a model or an impulse response is given.
    pub fn is_given(&self) -> bool {
        self.preset.is_some() || self.model.is_some() || self.cab.is_some() || self.reverb_ir.is_some()
    }
}

/// Size and knobs of a model.
#[derive(Debug, Args)]
pub struct ModelChoice {
    /// Use model size 0 (small) to 1 [default: of the preset].
    ///
    /// Without a preset, the default is 1.
    #[arg(long, value_name = "0..1", value_parser = fraction, allow_negative_numbers = true)]
    pub slim: Option<f64>,
    /// Set the next knob; repeatable [default: of the preset].
    ///
    /// The first one sets the first knob of the model. Without a preset, the default is 0.
    #[arg(long, value_name = "0..1", value_parser = fraction, allow_negative_numbers = true)]
    pub param: Vec<f64>,
}

impl ModelChoice {
    /// True if a size or a knob is given.
    pub fn is_given(&self) -> bool {
        self.slim.is_some() || !self.param.is_empty()
    }

    /// The knobs that are given, as the model takes them.
    pub fn knobs(&self) -> Vec<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "rounds to the precision of the model")]
        self.param.iter().map(|&value| value as f32).collect()
    }
}

/// Help with the list of all parameters.
fn parameters() -> String {
    let line = |&parameter: &Parameter| {
        let default = parameter.to_toml(parameter.info().default);
        format!("  {parameter}: {} [default: {default}]\n    {}\n", parameter.allowed(), parameter.info().about)
    };
    let lines: String = Parameter::ALL.iter().map(line).collect();
    format!("Set a parameter, e.g. gate.on=on or tone.bass_db=3; repeatable:\n{lines}")
}

fn fraction(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "must be 0 to 1, e.g. 0.5".to_owned())
}
