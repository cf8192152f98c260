//! The command line, the selected tests and the result of a boot.

use std::path::PathBuf;

use clap::Parser;

use crate::{boots::Boot, verdict::Verdict};

/// Boot kernels in small guests and run tests inside.
///
/// Debian's kernels are downloaded once and cached in $PUNCTUAL_LAB_CACHE or ~/.cache/punctual/lab. Exit status: 0 if
/// nothing failed, 1 otherwise. Tests that cannot run are counted as skipped.
#[derive(Debug, Parser)]
#[command(name = "lab-tests", max_term_width = 100)]
pub(super) struct Options {
    /// List boots and tests, and exit.
    #[arg(long)]
    pub(super) list: bool,
    /// Run only tests whose boot or name contains TEXT; can be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(super) only: Vec<String>,
    /// Exclude tests whose boot contains TEXT, and report them; can be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(super) without: Vec<String>,
    /// Store records and kernel logs in DIR, in one directory per boot.
    #[arg(long, value_name = "DIR")]
    pub(super) keep: Option<PathBuf>,
    /// Show the output of kernels and programs.
    #[arg(long)]
    pub(super) console: bool,
    /// Run this many guests in parallel.
    #[arg(long, value_name = "N", default_value = "2")]
    pub(super) jobs: usize,
    /// Download the current versions of the kernels.
    #[arg(long)]
    pub(super) update: bool,
}

/// The result of a boot.
#[derive(Debug)]
pub(super) enum Ended {
    /// The tests ran. Tests without a result are missing here.
    Ran(Vec<Verdict>),
    /// The guest could not be built, or did not finish.
    Failed(Vec<Verdict>, String),
    /// A prerequisite is missing.
    Skipped(String),
}

/// A boot and the selected tests.
pub(super) type Wanted = (&'static Boot, Vec<&'static str>);
