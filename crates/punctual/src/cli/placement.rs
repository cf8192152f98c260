//! Where things run: options of the measurements that place their own threads.

use clap::Args;
use machine::CpuList;

/// Options of where things run.
#[derive(Debug, Args)]
pub struct Placement {
    /// Keep these CPUs free of other work during the run: every task and interrupt that can be moved is, and is put back
    /// afterwards. They are the measured ones unless --cpus says otherwise; loads use the others.
    #[arg(long, value_name = "LIST")]
    pub shield: Option<CpuList>,
}

/// Options of `restore`.
#[derive(Debug, Args)]
pub struct Restore {
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}
