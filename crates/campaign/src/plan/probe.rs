//! What the measuring threads do, and what follows from it for their periods.

use probes::timer::Fraction;

use super::Plan;
use crate::{AudioPlan, StreamPlan, UdpPlan};

/// Period of the noise probe unless asked otherwise, ns.
pub const NOISE_PERIOD_NS: u64 = 100_000_000;
/// The part of each period that the noise probe spins unless asked otherwise, per cent: the kernel keeps the rest from
/// real-time threads, too.
pub const NOISE_SHARE_PERCENT: u64 = 95;
/// A gap is longer than this unless asked otherwise, ns.
const NOISE_THRESHOLD_NS: u64 = 1_000;

/// What the measuring threads do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Probe {
    /// They sleep until their deadlines: how late they wake.
    #[default]
    Timer,
    /// They look at a clock and do nothing else: what takes their CPU from them. One period is a stretch of that, and a
    /// rest.
    Noise {
        /// How long they look in each period, ns; `None` for [`NOISE_SHARE_PERCENT`] of it.
        runtime_ns: Option<u64>,
    },
    /// They send datagrams, which come back: how long each is under way.
    Udp(Box<UdpPlan>),
    /// One wakes before each slot and sends a frame of a stream in it, or frames are received, or both.
    Stream(Box<StreamPlan>),
    /// One plays a period of audio at each deadline.
    Audio(Box<AudioPlan>),
}

impl Plan {
    /// How long the noise probe looks in each period, ns; `None` for other probes.
    #[must_use]
    pub fn runtime_ns(&self, period_ns: u64) -> Option<u64> {
        match self.probe {
            Probe::Timer | Probe::Udp(_) | Probe::Stream(_) | Probe::Audio(_) => None,
            Probe::Noise { runtime_ns } => {
                Some(runtime_ns.unwrap_or_else(|| period_ns.saturating_mul(NOISE_SHARE_PERCENT) / 100))
            }
        }
    }

    /// What a period of that many whole ns is longer.
    pub(crate) fn fraction(&self, period_ns: u64) -> Fraction {
        match &self.probe {
            Probe::Audio(audio) => audio.grid(period_ns).fraction(),
            _ => Fraction::default(),
        }
    }

    /// Lateness above which a wake-up at `period_ns` is a spike, ns; of the noise probe the length of a gap, of audio the
    /// completion of a period.
    #[must_use]
    pub fn threshold_at(&self, period_ns: u64) -> i64 {
        let threshold_ns = self.threshold_ns.unwrap_or(match &self.probe {
            Probe::Timer | Probe::Udp(_) => period_ns.min(100_000),
            Probe::Stream(stream) => stream.threshold_at(period_ns),
            Probe::Audio(audio) => audio.threshold_at(period_ns),
            Probe::Noise { .. } => NOISE_THRESHOLD_NS,
        });
        // What ends the run is a spike.
        self.stop_on.as_ref().map_or(threshold_ns, |stop_on| threshold_ns.min(stop_on.lateness_ns)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;

    #[test]
    fn a_spike_is_above_100_us_or_a_period() {
        assert_eq!(plan(vec![]).threshold_at(1_000_000), 100_000);
        assert_eq!(plan(vec![]).threshold_at(25_000), 25_000);
        assert_eq!(Plan { threshold_ns: Some(7), ..plan(vec![]) }.threshold_at(25_000), 7);
    }
}
