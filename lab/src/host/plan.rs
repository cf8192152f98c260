//! The command line, what it selects, and how a boot ended.

use std::path::PathBuf;

use clap::Parser;

use crate::{boots::Boot, verdict::Verdict};

/// Boots real-time kernels in small guests, runs the tests inside, and counts.
///
/// Kernels are Debian's, fetched once and kept in $PUNCTUAL_LAB_CACHE or ~/.cache/punctual/lab. Exit status: 0 when nothing
/// failed, 1 otherwise; what could not run is counted as skipped.
#[derive(Debug, Parser)]
#[command(name = "lab-tests", max_term_width = 100)]
pub(super) struct Options {
    /// List boots and tests instead.
    #[arg(long)]
    pub(super) list: bool,
    /// Only tests whose boot and name hold this text; can be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(super) only: Vec<String>,
    /// Leave out tests whose boot holds this text, and say so; can be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(super) without: Vec<String>,
    /// Keep the records and the kernels' logs there, a folder a boot.
    #[arg(long, value_name = "DIR")]
    pub(super) keep: Option<PathBuf>,
    /// Show what kernels and programs say.
    #[arg(long)]
    pub(super) console: bool,
    /// Guests at a time.
    #[arg(long, value_name = "N", default_value = "2")]
    pub(super) jobs: usize,
    /// Fetch the kernels anew, in their current versions.
    #[arg(long)]
    pub(super) update: bool,
}

/// How the tests of a boot ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// They ran; those that told nothing are missing.
    Ran(Vec<Verdict>),
    /// The guest could not be made or did not come to its end.
    Failed(Vec<Verdict>, String),
    /// Something that they need is not there.
    Skipped(String),
}

/// A boot with those of its tests that are wanted.
pub(super) type Wanted = (&'static Boot, Vec<&'static str>);
