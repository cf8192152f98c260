//! Commands around campaigns: run, check, list.

use std::path::PathBuf;

use clap::Args;

use super::{Talk, duration};

/// Options of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The campaign: one that ships with punctual, or a TOML file. `punctual campaigns` lists them.
    #[arg(value_name = "NAME|FILE")]
    pub campaign: String,
    /// Print the plan and run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Go on with a campaign that was stopped or cut off: the one in --dir, or the newest of this plan in this folder.
    #[arg(long, conflicts_with = "dry_run")]
    pub resume: bool,
    /// Measure every scenario for so long, instead of what the campaign says.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<u64>,
    /// Lay a published reference, or the record of another run, beside each scenario, besides those that the file names; can be
    /// repeated. `punctual references` lists them.
    #[arg(long = "against", value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// Folder for the records and the campaign's own [default: NAME-HOST-DATE-TIME in this folder].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Plan for a recorded machine below this folder instead.
    #[arg(long, value_name = "DIR", requires = "dry_run")]
    pub root: Option<PathBuf>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// Options of `validate`.
#[derive(Debug, Args)]
pub struct Validate {
    /// The campaign files; names of those that ship with punctual will do, too.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,
    /// Check them for a recorded machine below this folder instead of this machine.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of `campaigns`.
#[derive(Debug, Args)]
pub struct Campaigns {
    /// Print the file of this one, to begin a campaign of your own from; the list if not given.
    pub name: Option<String>,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}
