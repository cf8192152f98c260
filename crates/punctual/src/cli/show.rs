//! Commands that show what is there: records, the machine, profiles.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use report::terminal::MatrixFigure;

use super::Talk;

/// Options of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The record: a *.punctual.json file.
    pub record: PathBuf,
    /// Write it there, in the format of the extension: json, csv, hgrm or html; can be repeated.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Tables of a matrix to show besides jitter: lateness, missed.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub show: Vec<Tables>,
    /// Judge it by this profile instead of those it was made for; can be repeated.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Lay a published reference, or another record, beside it; can be repeated. `punctual references` lists them.
    #[arg(long, value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// Options of `references`.
#[derive(Debug, Args)]
pub struct References {
    /// Show this one with its source and figures; the list if not given.
    pub name: Option<String>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// Tables of a matrix that are shown on request.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Tables {
    /// The largest lateness of each thread.
    Lateness,
    /// The deadlines that each thread missed.
    Missed,
}

impl Tables {
    /// The figures to show: jitter, and those asked for.
    pub fn figures(asked: &[Self]) -> Vec<MatrixFigure> {
        let figure = |table: &Self| match table {
            Self::Lateness => MatrixFigure::Lateness,
            Self::Missed => MatrixFigure::Missed,
        };
        std::iter::once(MatrixFigure::Jitter).chain(asked.iter().map(figure)).collect()
    }
}

/// Options of `blame`.
#[derive(Debug, Args)]
pub struct BlameRecord {
    /// The record: a *.punctual.json file.
    pub record: PathBuf,
    /// Show one spike as a time line, by its number: 1 is the worst, and the worst are listed with their numbers.
    #[arg(long, value_name = "N")]
    pub around: Option<usize>,
    /// Write all time lines there for a viewer, as Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open.
    #[arg(long, value_name = "FILE.json")]
    pub export: Option<PathBuf>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// Options of `machine`.
#[derive(Debug, Args)]
pub struct Machine {
    /// Look at a recorded machine below this folder instead.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// Options of `profiles`.
#[derive(Debug, Args)]
pub struct Profiles {
    /// Show this one with its limits and their sources; the list if not given.
    pub name: Option<String>,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}
