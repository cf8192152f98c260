//! Options of `show`, `references`, `blame`, `machine` and `profiles`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use report::terminal::MatrixFigure;

use super::{Extent, OutputOptions, record_path};

/// Options of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// Record: a *.punctual.json file, or LAST for the newest in the current folder.
    #[arg(default_value = "LAST", value_parser = record_path())]
    pub record: PathBuf,
    /// Write the record to this file; its suffix is the format: json, csv, hgrm, hlog, html, md, xml (JUnit), lava, prom
    /// or sarif; for a campaign html, md or xml; repeatable.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Write the HTML report next to the record, and open it in the browser instead of printing.
    #[arg(long, conflicts_with_all = ["exports", "json"])]
    pub open: bool,
    /// Also show these tables of a matrix: lateness, missed [default: jitter only].
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub show: Vec<Tables>,
    /// Judge by this profile instead of the profiles of the record; repeatable.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Compare with a published reference (see `punctual references`), another record or LAST; repeatable.
    #[arg(long, value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

/// Options of `references`.
#[derive(Debug, Args)]
pub struct References {
    /// Show this reference with its source and figures [default: list all references].
    pub name: Option<String>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
}

/// Optional tables of a matrix.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Tables {
    /// The maximum lateness of each thread.
    Lateness,
    /// The missed deadlines of each thread.
    Missed,
}

impl Tables {
    /// Jitter, and the figures of the selected tables.
    pub fn figures(selected: &[Self]) -> Vec<MatrixFigure> {
        let figure = |table: &Self| match table {
            Self::Lateness => MatrixFigure::Lateness,
            Self::Missed => MatrixFigure::Missed,
        };
        std::iter::once(MatrixFigure::Jitter).chain(selected.iter().map(figure)).collect()
    }
}

/// Options of `blame`.
#[derive(Debug, Args)]
pub struct BlameRecord {
    /// Record: a *.punctual.json file, or LAST for the newest in the current folder.
    #[arg(default_value = "LAST", value_parser = record_path())]
    pub record: PathBuf,
    /// Show the time line of the spike with this number; 1 is the worst.
    #[arg(long, value_name = "N")]
    pub around: Option<usize>,
    /// Write all time lines to this Chrome trace file, for ui.perfetto.dev or chrome://tracing.
    #[arg(long, value_name = "FILE.json")]
    pub export: Option<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
}

/// Options of `machine`.
#[derive(Debug, Args)]
pub struct Machine {
    /// Inspect the recorded machine in this folder [default: this machine].
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Write the findings to this file instead of printing them; its suffix is the format: sarif; repeatable.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

/// Options of `profiles`.
#[derive(Debug, Args)]
pub struct Profiles {
    /// Show this profile with its limits and their sources [default: list all profiles].
    pub name: Option<String>,
    /// Print JSON on standard output instead of text.
    #[arg(long)]
    pub json: bool,
}
