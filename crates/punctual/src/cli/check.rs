//! Checks of single parts of the machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Talk, period};

/// What to check.
#[derive(Debug, Subcommand)]
pub enum Check {
    /// A network interface: everything about it that may make frames late, with what to change. Nothing is changed.
    ///
    /// Exit status: 0 nothing fails, 2 something does, 1 no such interface.
    ///
    /// Examples:
    ///   punctual check nic eth0
    ///   sudo punctual check nic eth0 --period 250us --json
    #[command(verbatim_doc_comment)]
    Nic(Nic),
}

/// Options of `check nic`.
#[derive(Debug, Args)]
pub struct Nic {
    /// The interface, as `ip -br link` lists it.
    #[arg(value_name = "IF")]
    pub interface: String,
    /// Time between two frames of the stream; a tenth of it is what one cause may cost.
    #[arg(long, value_name = "TIME", value_parser = period, default_value = "125us")]
    pub period: u64,
    /// Check a recorded machine: the folder that holds its /proc, /sys and netlink.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Keep the kernel's answers in DIR/netlink/IF, as --root reads them.
    #[arg(long, value_name = "DIR", conflicts_with = "root")]
    pub keep_answers: Option<PathBuf>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}
