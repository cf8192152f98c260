//! Options of `show`, `references`, `blame`, `machine` and `profiles`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use report::terminal::MatrixFigure;

use super::{Extent, OutputOptions, record_path};

/// Options of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// Record, folder of a campaign, or LAST.
    ///
    /// A record is a *.punctual.json file. LAST is the newest one of this folder.
    #[arg(default_value = "LAST", value_parser = record_path())]
    pub record: PathBuf,
    /// More records, files of other tools or references.
    ///
    /// All are shown together: a table, and with --export a page with their curves. `punctual compare` judges differences.
    #[arg(value_name = "MORE", conflicts_with_all = ["open", "show", "profiles", "against", "full"])]
    pub more: Vec<String>,
    /// Write FILE; its suffix is the format; repeatable.
    ///
    /// json, csv, hgrm, hlog, html, md, xml (JUnit), lava, prom, sarif or tex; for a campaign html, md or xml; for several
    /// records json, csv, html, md or tex; `-` prints JSON on standard output.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Open the HTML report in the browser.
    ///
    /// It is written next to the record.
    #[arg(long, conflicts_with_all = ["exports", "json"])]
    pub open: bool,
    /// Also show these tables of a matrix: lateness, missed.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub show: Vec<Tables>,
    /// Judge by this profile, not the record's; repeatable.
    ///
    /// A name (`punctual profiles` lists them) or a TOML file.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Unit of files that state none: ns, us, ms or s.
    ///
    /// Results of cyclictest as text, and tables, also those of --against; without it, us are assumed.
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub unit: Option<import::Unit>,
    /// Compare with a reference, record or LAST; repeatable.
    ///
    /// `punctual references` lists the published figures.
    #[arg(long, value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

/// Options of `import`.
#[derive(Debug, Args)]
pub struct Import {
    /// Files of other tools.
    ///
    /// Each becomes NAME.punctual.json in this folder. A file of that name is not replaced.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Unit of files that state none: ns, us, ms or s.
    ///
    /// Results of cyclictest as text, and tables; without it, us are assumed.
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub unit: Option<import::Unit>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
}

/// A unit of times.
pub fn unit(text: &str) -> Result<import::Unit, String> {
    match text {
        "ns" => Ok(import::Unit::Ns),
        "us" => Ok(import::Unit::Us),
        "ms" => Ok(import::Unit::Ms),
        "s" => Ok(import::Unit::S),
        _ => Err("use ns, us, ms or s".to_owned()),
    }
}

/// Options of `references`.
#[derive(Debug, Args)]
pub struct References {
    /// Show this one with its sources [default: list all].
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
    /// Record, folder of a campaign, or LAST.
    ///
    /// LAST is the newest one of this folder. Of a campaign, the worst scenario is shown.
    #[arg(default_value = "LAST", value_parser = record_path())]
    pub record: PathBuf,
    /// Show the time line of this spike; 1 is the worst.
    #[arg(long, value_name = "N")]
    pub around: Option<usize>,
    /// Write all time lines to this Chrome trace file (.json).
    ///
    /// Open it in ui.perfetto.dev or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

/// Options of `machine`.
#[derive(Debug, Args)]
pub struct Machine {
    /// Inspect the machine in this folder [default: this one].
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

/// Options of `snapshot`.
#[derive(Debug, Args)]
pub struct Snapshot {
    /// Write .tar.gz or .tar.zst.
    #[arg(long, short, value_name = "FILE", default_value = "machine.tar.gz")]
    pub output: PathBuf,
    /// Copy the machine in this folder [default: this one].
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// Options of `loads`.
#[derive(Debug, Args)]
pub struct Loads {
    /// Show this one [default: list all].
    pub name: Option<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Options of `profiles`.
#[derive(Debug, Args)]
pub struct Profiles {
    /// Show this one with its sources [default: list all].
    pub name: Option<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}
