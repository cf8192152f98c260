//! Options of `run`, `validate` and `campaigns`.

use std::path::PathBuf;

use clap::Args;

use super::{Extent, OutputOptions, duration};

/// Options of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Name of a built-in campaign, or a TOML file.
    #[arg(value_name = "NAME|FILE")]
    pub campaign: String,
    /// Print the plan without running it.
    #[arg(long)]
    pub dry_run: bool,
    /// Resume an interrupted campaign.
    ///
    /// The one in --dir, or the newest of this plan in this folder.
    #[arg(long, conflicts_with = "dry_run")]
    pub resume: bool,
    /// Measure scenarios this long [default: of the campaign].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<u64>,
    /// Run each scenario N times [default: of the campaign].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: Option<u32>,
    /// Compare with a reference or another record; repeatable.
    ///
    /// Each scenario is compared. `punctual references` lists the published figures.
    #[arg(long = "against", value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// Use this folder [default: NAME-HOST-DATE-TIME].
    ///
    /// All files of the campaign are written to it.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Plan for the recorded machine in this folder.
    #[arg(long, value_name = "DIR", requires = "dry_run")]
    pub root: Option<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

/// Options of `validate`.
#[derive(Debug, Args)]
pub struct Validate {
    /// Campaign files, or names of built-in campaigns.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,
    /// Plan for the recorded machine in this folder.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Options of `campaigns`.
#[derive(Debug, Args)]
pub struct Campaigns {
    /// Print the file of this campaign [default: list all].
    pub name: Option<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}
