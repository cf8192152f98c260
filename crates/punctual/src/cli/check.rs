//! Options of `check`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Extent, OutputOptions, period};

/// The checks.
#[derive(Debug, Subcommand)]
pub enum Check {
    /// List the settings of a network interface that can delay frames, and what to change; changes nothing.
    ///
    /// Exit status: 0 no check failed, 2 a check failed, 1 no such interface. `punctual machine` lists such findings without
    /// judging them, with status 0.
    ///
    /// Examples:
    ///   punctual check nic eth0
    ///   sudo punctual check nic eth0 --period 250us --json
    #[command(verbatim_doc_comment)]
    Nic(Nic),
}

/// The default of `--period`.
pub const NIC_PERIOD: &str = "125us";

/// Options of `check nic`.
#[derive(Debug, Args)]
pub struct Nic {
    /// Name of the interface (`ip -br link` lists them).
    #[arg(value_name = "IF")]
    pub interface: String,
    /// Check for this time between frames.
    ///
    /// One cause may delay a frame by a tenth of it.
    #[arg(long, value_name = "TIME", value_parser = period, default_value = NIC_PERIOD)]
    pub period: u64,
    /// Inspect the machine in this folder [default: this one].
    ///
    /// The folder contains its /proc, /sys and netlink.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Save the netlink answers in DIR/netlink/IF for --root.
    #[arg(long, value_name = "DIR", conflicts_with = "root")]
    pub keep_answers: Option<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}
