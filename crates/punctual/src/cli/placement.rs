//! Options of CPU placement, and those of `restore`.

use clap::Args;
use machine::CpuList;

/// Placement of threads.
#[derive(Debug, Args)]
pub struct Placement {
    /// Move other work off these CPUs, and measure on them.
    ///
    /// Everything movable is moved during the run, tasks and interrupts, and restored afterwards. Other options, e.g.
    /// --cpus, can measure other CPUs. Loads use the CPUs that are not shielded.
    #[arg(long, value_name = "LIST")]
    pub shield: Option<CpuList>,
}

/// Options of `restore`.
#[derive(Debug, Args)]
pub struct Restore {
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}
