//! Monitors that run at the same time as the measuring threads: the clock watch and the timerlat tracer.

use std::time::Duration;

use blame::{Timerlat, TimerlatError};
use machine::{CpuList, Root, clocks::ClockWatch};
use record::{Caveat, Record};

use crate::{plan::Plan, probe::Network};

/// Time between two reads of the clocks.
const CLOCKS_INTERVAL: Duration = Duration::from_secs(5);

/// Watches the clocks during probes that use a network, if PTP synchronises them.
pub(super) fn watch_clocks(record: &Record, plan: &Plan, root: &Root) -> Option<ClockWatch> {
    let uses_network = plan.probe.definition().properties().network != Network::None;
    let first = record.machine.clocks.clone().filter(|clocks| uses_network && clocks.ptp.is_some())?;
    // If the thread cannot be started, the record keeps the first read.
    ClockWatch::start(root, first, CLOCKS_INTERVAL).ok()
}

/// Starts the kernel's timerlat tracer, and adds a caveat to the record.
pub(super) fn start_timerlat(record: &mut Record, root: &Root, cpus: &CpuList) -> Result<Timerlat, TimerlatError> {
    let timerlat = Timerlat::start(root, cpus)?;
    let setup = timerlat.setup();
    let (period_us, cpus) = (setup.period_ns / 1000, setup.cpus.in_words());
    let text = format!(
        "the kernel's timerlat tracer ran at the same time, on {cpus} every {period_us} us (osnoise/cpus and \
        osnoise/timerlat_period_us): its threads, by default FIFO 95, may delay the probe"
    );
    record.caveats.push(Caveat { kind: "timerlat".to_owned(), text });
    Ok(timerlat)
}
