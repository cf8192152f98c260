//! Options of measurements that use a network interface.

use campaign::NicPlan;
use clap::Args;
use machine::nic::NicSettings;

/// Settings of the network interface during the run. They are restored afterwards.
#[derive(Debug, Clone, Args)]
pub struct Nic {
    /// Change interface settings, e.g. coalesce=0,eee=off.
    ///
    /// The settings are coalesce (or rx-usecs) and tx-usecs (us), rx-frames, tx-frames and rx-ring (frames), and, on or
    /// off, adaptive, eee, pause, gro, lro and tso. They are restored afterwards. `punctual check nic` recommends them.
    #[arg(long, value_name = "WHAT=VALUE,...")]
    pub nic: Option<NicSettings>,
    /// Run its interrupt threads at priority N, 1 to 99.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub irq_priority: Option<u8>,
}

impl Nic {
    /// Converts the options to a plan.
    pub fn plan(&self) -> NicPlan {
        NicPlan { values: self.nic.clone().unwrap_or_default(), irq_priority: self.irq_priority }
    }
}
