//! Options of measurements that go over an interface.

use campaign::NicPlan;
use clap::Args;
use machine::nic::NicSettings;

/// How the interface is set for the run that datagrams or frames go over, and as it was afterwards.
#[derive(Debug, Clone, Args)]
pub struct Nic {
    /// Set values of the interface for the run, and put them back afterwards: coalesce (us), adaptive, eee, pause, rx-ring
    /// (frames), gro, lro, tso; the others on or off, as coalesce=0,eee=off. `punctual check nic` tells what is worth it.
    #[arg(long, value_name = "WHAT=VALUE,...")]
    pub nic: Option<NicSettings>,
    /// For the run, serve the interrupts of the interface at this real-time priority, 1 to 99: the threads of its
    /// interrupts, and those that poll it.
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub irq_priority: Option<u8>,
}

impl Nic {
    /// The same for a plan.
    pub fn plan(&self) -> NicPlan {
        NicPlan { values: self.nic.clone().unwrap_or_default(), irq_priority: self.irq_priority }
    }
}
