//! The synchronisation over PTP that a stream requires.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use analysis::format_unsigned_ns;
use machine::{
    Root,
    clocks::sync::{self, Losses, SyncWatch},
};
use probes::stream::Monitor;
use record::{Caveat, grouped};
use sys::signal;

use super::error::StreamError;
use crate::probe::definition::PrepareError;

/// Longest time to wait for the synchronisation.
pub const SYNC_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until the clock is within `limit_ns` of PTP time.
///
/// # Errors
/// [`StreamError::NotSynchronised`], after [`SYNC_TIMEOUT`] or a signal.
pub fn wait(root: &Root, limit_ns: u64) -> Result<(), StreamError> {
    let is_interrupted = || signal::termination_requests() > 0;
    sync::wait(root, limit_ns, SYNC_TIMEOUT, is_interrupted)
        .map_err(|why| StreamError::NotSynchronised { limit_ns, why })
}

/// Watches the synchronisation during the run, and reports losses.
#[derive(Debug)]
pub(super) struct SyncMonitor {
    limit_ns: u64,
    watch: Option<SyncWatch>,
    losses: Option<Losses>,
}

impl SyncMonitor {
    /// Starts to watch. `is_lost` is true while the clock is further than `limit_ns` from PTP time.
    pub fn start(root: &Root, limit_ns: u64, is_lost: Arc<AtomicBool>) -> Result<Self, PrepareError> {
        let watch = SyncWatch::start(root, limit_ns, is_lost).map_err(probes::timer::TimerError::Spawn)?;
        Ok(Self { limit_ns, watch: Some(watch), losses: None })
    }
}

impl Monitor for SyncMonitor {
    fn finish(&mut self) {
        self.losses = self.watch.take().and_then(SyncWatch::finish);
    }

    fn caveat(&self) -> Option<Caveat> {
        let Losses { times, lost_ns, first } = self.losses.as_ref().filter(|losses| losses.times > 0)?;
        let text = format!(
            "the clock was not within {} of PTP time {} times, for {} together; first: {first}",
            format_unsigned_ns(self.limit_ns),
            grouped(*times),
            format_unsigned_ns(*lost_ns)
        );
        Some(Caveat { kind: "sync".to_owned(), text })
    }

    /// Each talker counts its own uncertain frames.
    fn add_to(&self, _: &mut record::Talker) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_a_caveat() {
        let of = |losses| SyncMonitor { limit_ns: 1_000, watch: None, losses }.caveat().map(|caveat| caveat.text);
        assert_eq!((of(None), of(Some(Losses::default()))), (None, None));
        let losses = Losses { times: 2, lost_ns: 400_000_000, first: "ptp4l does not run".to_owned() };
        assert_eq!(
            of(Some(losses)).as_deref(),
            Some("the clock was not within 1 us of PTP time 2 times, for 400 ms together; first: ptp4l does not run")
        );
    }
}
