//! Options of `tune --prove`.

use std::path::PathBuf;

use clap::Args;
use machine::tune::reboot::BootChange;

use super::duration;

/// Options of `tune --prove`.
#[derive(Debug, Args)]
pub struct Prove {
    /// Measure which changes help, and keep only these.
    ///
    /// Rounds with and without the changes alternate; nothing stays changed, unless --yes keeps what helps.
    #[arg(long, conflicts_with_all = ["service", "persist", "revert", "root"])]
    pub prove: bool,
    /// Measure for this long in total [default: 30m].
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "prove")]
    pub duration: Option<u64>,
    /// Use this folder [default: tune-HOST-DATE-TIME].
    #[arg(long, value_name = "DIR", requires = "prove")]
    pub dir: Option<PathBuf>,
    /// Continue a search that was stopped.
    ///
    /// The one in --dir, or the newest in this folder.
    #[arg(long, requires = "prove")]
    pub resume: bool,
    /// Try kernel arguments; each round is a reboot.
    ///
    /// Shows the plan; with --yes it begins, and a unit of systemd continues after each boot. The configuration of the boot
    /// loader is not changed.
    #[arg(long, requires = "prove", conflicts_with_all = ["profile", "only", "without", "settings"])]
    pub reboot: bool,
    /// Try these arguments [default: to isolate --cpus].
    ///
    /// Kernel arguments that belong together, such as "isolcpus=3 nohz_full=3", or another kernel: kernel=PATH. Repeatable.
    #[arg(long = "boot", value_name = "ARGS", requires = "reboot")]
    pub boots: Vec<BootChange>,
    /// What each round measures [default: timer --load cpu].
    ///
    /// A measurement of `punctual measure` with its options, after `--`. Its --duration is the length of a round, 5 s by
    /// default.
    #[arg(last = true, value_name = "MEASUREMENT", requires = "prove")]
    pub measurement: Vec<String>,
}
