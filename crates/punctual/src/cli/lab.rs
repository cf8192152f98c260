//! Options of `lab`.

use std::path::PathBuf;

use clap::Args;

use super::{RecordOptions, duration};

/// Options of `lab`.
#[derive(Debug, Args)]
pub struct Lab {
    /// Boot this bzImage, vmlinux or arm64 Image; repeatable.
    ///
    /// Several kernels are booted in turn and compared. With --bisect, the path in the working tree.
    #[arg(long = "kernel", value_name = "FILE", num_args = 1.., required = true)]
    pub kernels: Vec<PathBuf>,
    /// Boot each kernel this many times [default: 1 or 3].
    ///
    /// The default is 1, with --bisect 3 for each commit.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Find the first commit with a longer maximum.
    ///
    /// GOOD is an ancestor of BAD in the git repository of this folder. Commits are checked out in a temporary working
    /// tree, built with --build, and booted. The decision is by the median of the maxima of the rounds.
    #[arg(long, value_names = ["GOOD", "BAD"], num_args = 2, requires = "build", conflicts_with = "no_record")]
    pub bisect: Option<Vec<String>>,
    /// Build a commit of --bisect with this shell command.
    ///
    /// It runs in the root of the working tree, which has no files from outside git, such as .config. If it fails, the
    /// commit is skipped.
    #[arg(long, value_name = "COMMAND", requires = "bisect")]
    pub build: Option<String>,
    /// A commit above this maximum is bad [default: auto].
    ///
    /// The default is the geometric mean of the maxima of GOOD and BAD.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "bisect")]
    pub limit: Option<u64>,
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
    /// Add the boot parameters in this file.
    ///
    /// With --bisect, a path in the working tree.
    #[arg(long, value_name = "FILE")]
    pub append_file: Option<PathBuf>,
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
    /// Print only the output of the guest, or only the answer.
    ///
    /// The output of punctual in the guest; with several kernels their table, and with --bisect the first bad commit.
    #[arg(long, short)]
    pub quiet: bool,
    /// Arguments of punctual [default: half-minute check].
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}
