//! Options of `lab`.

use std::path::PathBuf;

use clap::Args;

use super::{RecordOptions, duration};

/// Options of `lab`.
#[derive(Debug, Args)]
pub struct Lab {
    /// Boot this bzImage or vmlinux (x86) or Image (arm64).
    #[arg(long, value_name = "FILE")]
    pub kernel: PathBuf,
    /// Give the guest this many CPUs.
    ///
    /// Virtual time needs 1.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub guest_cpus: u32,
    /// Emulate in real time instead of virtual time.
    #[arg(long)]
    pub no_virtual_time: bool,
    /// Run with KVM instead of emulation; needs /dev/kvm.
    #[arg(long, conflicts_with = "no_virtual_time")]
    pub kvm: bool,
    /// Add boot parameters, e.g. "isolcpus=1 nohz_full=1".
    #[arg(long, value_name = "ARGUMENTS", default_value = "", allow_hyphen_values = true)]
    pub append: String,
    /// Give the guest this much memory, MiB.
    #[arg(long, value_name = "MIB", default_value = "512", value_parser = clap::value_parser!(u32).range(64..))]
    pub memory: u32,
    /// Stop the guest after this host time.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    pub timeout: u64,
    /// Run this static binary [default: this program].
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// The record and the report.
    #[command(flatten)]
    pub record: RecordOptions,
    /// Print the kernel's console.
    #[arg(long)]
    pub console: bool,
    /// Print only the output of punctual in the guest.
    #[arg(long, short)]
    pub quiet: bool,
    /// Arguments of punctual [default: half-minute check].
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}
