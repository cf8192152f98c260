//! Options of `tune`.

use std::path::PathBuf;

use clap::Args;
use machine::{
    CpuList,
    tune::{Choice, DEFINITIONS, Service, definition},
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
    #[arg(long = "setting", value_name = "ID[=VALUE]", value_parser = choice)]
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
    choice(text).map(|choice| choice.id)
}

/// Reads a setting with its value, and suggests the nearest known one for an unknown one.
pub(super) fn choice(text: &str) -> Result<Choice, String> {
    let id = text.split_once('=').map_or(text, |(id, _)| id).trim();
    let known = || DEFINITIONS.iter().map(|definition| definition.id);
    match definition(id) {
        None => Err(match analysis::nearest(id, known()) {
            Some(nearest) => format!("unknown setting `{id}`: did you mean {nearest}?"),
            None => format!("unknown setting `{id}`: the settings are {}", known().collect::<Vec<_>>().join(", ")),
        }),
        Some(_) => text.parse(),
    }
}
