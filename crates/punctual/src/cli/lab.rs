//! `punctual lab`.

use std::path::PathBuf;

use clap::Args;

use super::duration;

/// Options of `lab`.
#[derive(Debug, Args)]
pub struct Lab {
    /// The kernel: an x86 bzImage or vmlinux, or an arm64 Image.
    #[arg(long, value_name = "FILE")]
    pub kernel: PathBuf,
    /// CPUs of the guest; time is virtual with one alone.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: u32,
    /// Let the host's time pass in the guest.
    #[arg(long)]
    pub no_virtual_time: bool,
    /// Run on the host's own CPUs, where its /dev/kvm can do that.
    #[arg(long, conflicts_with = "no_virtual_time")]
    pub kvm: bool,
    /// More kernel arguments: "isolcpus=1 nohz_full=1".
    #[arg(long, value_name = "ARGUMENTS", default_value = "", allow_hyphen_values = true)]
    pub append: String,
    /// Main memory of the guest, MiB.
    #[arg(long, value_name = "MIB", default_value = "512", value_parser = clap::value_parser!(u32).range(64..))]
    pub memory: u32,
    /// How long the guest may take by the host's clock.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    pub timeout: u64,
    /// The static punctual to run in the guest [default: this one].
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// Where the record and the report go: FILE.punctual.json and FILE.punctual.html.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Keep neither record nor report.
    #[arg(long, conflicts_with = "record")]
    pub no_record: bool,
    /// Show what the kernel says.
    #[arg(long)]
    pub console: bool,
    /// Show only what the guest's punctual prints.
    #[arg(long, short)]
    pub quiet: bool,
    /// Arguments of the punctual in the guest; without them, the half-minute look.
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}
