//! Options that say what is played: models, cabinets, and what is set.

use std::path::PathBuf;

use amp::Parameter;
use clap::Args;

use super::amp::ModelChoice;

/// What is played.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is played")]
pub struct Rig {
    /// A preset (TOML): models, cabinets and settings. What is given besides goes before it.
    #[arg(long, value_name = "FILE")]
    pub preset: Option<PathBuf>,
    /// The model's file: .nam, .json or .aidax.
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Which of it.
    #[command(flatten)]
    pub choice: ModelChoice,
    /// A second model, behind the first or beside it.
    #[arg(long, value_name = "FILE")]
    pub model2: Option<PathBuf>,
    /// The second model behind the first one; this is how it is unless a preset says otherwise.
    #[arg(long, conflicts_with = "parallel")]
    pub series: bool,
    /// The second model beside the first one: the share of each is amp.mix.
    #[arg(long)]
    pub parallel: bool,
    /// The cabinet: an impulse response, a WAV file of one or two channels.
    #[arg(long, value_name = "FILE")]
    pub cab: Option<PathBuf>,
    /// A second cabinet, mixed with the first one.
    #[arg(long, value_name = "FILE", requires = "cab")]
    pub cab2: Option<PathBuf>,
    /// Bring the cabinets to the level at which white noise keeps its own.
    #[arg(long)]
    pub cab_normalised: bool,
    /// Cut off the silence that cabinets begin with.
    #[arg(long)]
    pub cab_without_delay: bool,
    /// Nothing but models and cabinet: begin with tone, levels, offset filter and limiter off. Two models stand to
    /// each other as the preset has them.
    #[arg(long)]
    pub neutral: bool,
    /// Set a parameter, as gate.on=on or tone.bass_db=3; again for more.
    #[arg(long, value_name = "NAME=VALUE", long_help = parameters())]
    pub set: Vec<String>,
}

impl Rig {
    /// Whether anything is asked for.
    pub fn is_asked_for(&self) -> bool {
        self.preset.is_some() || self.model.is_some() || self.cab.is_some()
    }
}

/// All parameters, from the one list that there is.
fn parameters() -> String {
    let line = |&parameter: &Parameter| {
        let default = parameter.to_toml(parameter.info().default);
        format!("  {parameter}: {}; {default} unless set.\n    {}\n", parameter.allowed(), parameter.info().about)
    };
    let lines: String = Parameter::ALL.iter().map(line).collect();
    format!("Set a parameter, as gate.on=on or tone.bass_db=3; again for more:\n{lines}")
}
