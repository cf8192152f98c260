//! What goes on beside the measuring threads: a look at the clocks, and the kernel's own measurement.

use std::time::Duration;

use blame::{Timerlat, TimerlatError};
use machine::{CpuList, Root, clocks::ClockWatch};
use record::{Caveat, Record};

use crate::{plan::Plan, probe::Network};

/// How often clocks are looked at.
const CLOCKS_EVERY: Duration = Duration::from_secs(5);

/// Whoever sends over a network may be at the end of one that PTP ties to others: it is looked at all the time.
pub(super) fn watch_clocks(record: &Record, plan: &Plan, root: &Root) -> Option<ClockWatch> {
    let is_sent = plan.probe.definition().network() != Network::None;
    let first = record.machine.clocks.clone().filter(|clocks| is_sent && clocks.ptp.is_some())?;
    // Without a thread there is the first look.
    ClockWatch::start(root, first, CLOCKS_EVERY).ok()
}

/// Starts the kernel's timerlat tracer, and says in the record that it ran.
pub(super) fn start_timerlat(record: &mut Record, root: &Root, cpus: &CpuList) -> Result<Timerlat, TimerlatError> {
    let timerlat = Timerlat::start(root, cpus)?;
    let setup = timerlat.setup();
    let (period_us, cpus) = (setup.period_ns / 1000, setup.cpus.in_words());
    let text = format!(
        "the kernel's timerlat tracer ran beside the probe, on {cpus} every {period_us} us, as osnoise/cpus and \
         osnoise/timerlat_period_us of its trace say: its threads, FIFO 95 unless set otherwise, may delay the probe"
    );
    record.caveats.push(Caveat { kind: "timerlat".to_owned(), text });
    Ok(timerlat)
}
