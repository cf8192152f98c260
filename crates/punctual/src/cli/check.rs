//! Options of `check`.

use std::{ops::RangeInclusive, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::{Extent, OutputOptions, duration, period};

/// Options of `check`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Check {
    /// A part of the machine in more detail.
    #[command(subcommand)]
    pub part: Option<CheckPart>,
    /// Options of the check of the machine.
    #[command(flatten)]
    pub machine: CheckMachine,
}

/// Options of the check of the machine.
#[derive(Debug, Args)]
pub struct CheckMachine {
    /// Check for the use of this profile.
    ///
    /// Uses its limit, and says if this machine and kernel held it in the newest record here. A name (`punctual profiles`
    /// lists them) or a TOML file.
    #[arg(long = "for", value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// Explain one finding.
    ///
    /// With reason, evidence, commands, how long they last, and source.
    #[arg(long, value_name = "ID", conflicts_with_all = ["full", "quiet", "exports"])]
    pub explain: Option<String>,
    /// Status 2 at: warn, fail or never.
    ///
    /// The exit status is 2 if a finding is this bad. `warn` includes `fail`. A setting that cannot be read is neither.
    #[arg(long, value_name = "STATE", default_value = "fail")]
    pub fail_on: FailOn,
    /// Count interrupts this long [default: 200ms].
    ///
    /// 100ms to 1h; the default is 1s if a device has many interrupts. Each second has a rate of its own, so that bursts are found. irq.storm reports the busiest second.
    #[arg(long, value_name = "TIME", value_parser = storm_window, conflicts_with = "root")]
    pub storm_window: Option<u64>,
    /// Check the machine in this folder [default: this one].
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Also write FILE: .html or .sarif; repeatable.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

fn storm_window(text: &str) -> Result<u64, String> {
    const NS: RangeInclusive<u64> = 100_000_000..=3_600_000_000_000;
    duration(text).and_then(|ns| if NS.contains(&ns) { Ok(ns) } else { Err("it must be 100ms to 1h".to_owned()) })
}

/// The state of a finding that makes the exit status 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A setting that causes lateness, or may cause it.
    Warn,
    /// A setting that causes lateness.
    Fail,
    /// None: the status is 0.
    Never,
}

/// The parts of the machine with a check of their own.
#[derive(Debug, Subcommand)]
pub enum CheckPart {
    /// List the settings of a network interface that can delay frames, and what to change; changes nothing.
    ///
    /// Exit status: 0 no check failed, 2 a check failed, 1 no such interface.
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
