//! Options of `lab`.

use std::path::PathBuf;

use clap::Args;

use super::{RecordOptions, duration};

/// Options of `lab`.
#[derive(Debug, Args)]
pub struct Lab {
    /// Boot this kernel: x86 bzImage or vmlinux, or arm64 Image.
    #[arg(long, value_name = "FILE")]
    pub kernel: PathBuf,
    /// Give the guest this many CPUs; virtual time needs 1.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub guest_cpus: u32,
    /// Emulate in real time instead of virtual time.
    #[arg(long)]
    pub no_virtual_time: bool,
    /// Run the guest with KVM instead of emulation; needs /dev/kvm.
    #[arg(long, conflicts_with = "no_virtual_time")]
    pub kvm: bool,
    /// Add these boot parameters, e.g. "isolcpus=1 nohz_full=1".
    #[arg(long, value_name = "ARGUMENTS", default_value = "", allow_hyphen_values = true)]
    pub append: String,
    /// Give the guest this much memory, MiB.
    #[arg(long, value_name = "MIB", default_value = "512", value_parser = clap::value_parser!(u32).range(64..))]
    pub memory: u32,
    /// Stop the guest after this time of the host's clock.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    pub timeout: u64,
    /// Run this static binary in the guest [default: this program].
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// The record and the report.
    #[command(flatten)]
    pub record: RecordOptions,
    /// Print the kernel's console.
    #[arg(long)]
    pub console: bool,
    /// Print only the standard output of punctual in the guest.
    #[arg(long, short)]
    pub quiet: bool,
    /// Arguments of punctual in the guest [default: half-minute check].
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}
