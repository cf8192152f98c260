//! Options of `tune`.

use std::path::PathBuf;

use clap::Args;
use machine::{
    CpuList,
    tune::{Choice, Service, definition},
};

use super::{Extent, OutputOptions, Prove};

/// Options of `tune`.
#[derive(Debug, Args)]
pub struct Tune {
    /// Plan for the use of this profile.
    ///
    /// A CPU may then take a tenth of its limit to leave an idle state. A name (`punctual profiles` lists them) or a TOML
    /// file.
    #[arg(long = "for", value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// CPUs for real-time work [default: isolated ones].
    ///
    /// Settings of CPUs then change these only, and interrupts and the kernel's work are moved away from them. Without it,
    /// settings of CPUs change all CPUs.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Change only these settings; ids, separated by commas.
    #[arg(long, value_name = "ID,..", value_delimiter = ',', value_parser = id)]
    pub only: Vec<&'static str>,
    /// Leave these settings alone; ids, separated by commas.
    #[arg(long, value_name = "ID,..", value_delimiter = ',', value_parser = id)]
    pub without: Vec<&'static str>,
    /// Also change this, ID or ID=VALUE; repeatable.
    ///
    /// For settings that need a value, that have a cost, or that get another value than the default.
    #[arg(long = "setting", value_name = "ID[=VALUE]")]
    pub settings: Vec<Choice>,
    /// Also schedule this service: NAME or NAME:PRIORITY.
    ///
    /// Creates a file for systemd with policy fifo, the priority [default: 80], the CPUs of --cpus, and limits for
    /// real-time priority and locked memory.
    #[arg(long, value_name = "NAME")]
    pub service: Option<Service>,
    /// Make the changes; they last until --revert or a reboot.
    #[arg(long, short)]
    pub yes: bool,
    /// Also tune at each boot, by a unit of systemd.
    #[arg(long, requires = "yes")]
    pub persist: bool,
    /// Restore everything that tune has changed.
    #[arg(long, conflicts_with_all = ["profile", "cpus", "only", "without", "settings", "service", "yes"])]
    pub revert: bool,
    /// The search for changes that help.
    #[command(flatten)]
    pub how: Prove,
    /// Tune the machine in this folder [default: this one].
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

fn id(text: &str) -> Result<&'static str, String> {
    match definition(text) {
        Some(definition) => Ok(definition.id),
        None => text.parse::<Choice>().map(|choice| choice.id),
    }
}
