//! Tracks the phase of a stream and keeps its earliest frames, to which the grid is fitted. Uses bounded memory.

use frames::Class;
use record::PeriodSource;

use crate::convert::nearest;

/// Number of frames used for the median interval.
const MEDIAN_OF: usize = 256;
/// After this many consecutive regular frames off the phase, the phase is reset.
const OFF_PHASE: u32 = 64;
/// The fraction of a frame's phase error by which the phase follows it.
const FOLLOW: f64 = 1.0 / 16.0;
/// After this many slots, the observed period replaces the nominal one.
const SETTLED: i64 = 256;
/// Number of stretches of the stream whose earliest frames are kept.
pub(crate) const STRETCHES: usize = 256;

/// The state of tracking a stream. Times are ns after its first frame.
pub(crate) struct Track {
    asked_ns: Option<u64>,
    pcp: Option<u8>,
    /// The first frames, until there are enough for a median.
    waiting: Vec<i64>,
    phase: Option<Phase>,
}

/// The nominal period of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nominal {
    pub(crate) ns: u64,
    pub(crate) told_by: PeriodSource,
}

/// The result of tracking.
pub(crate) struct Tracked {
    pub(crate) nominal: Nominal,
    pub(crate) earliest: Earliest,
}

impl Track {
    pub(crate) fn new(asked_ns: Option<u64>, pcp: Option<u8>) -> Self {
        Self { asked_ns, pcp, waiting: Vec::new(), phase: None }
    }

    #[inline]
    pub(crate) fn add(&mut self, at_ns: i64) {
        if let Some(phase) = &mut self.phase {
            phase.add(at_ns);
            return;
        }
        self.waiting.push(at_ns);
        if self.waiting.len() == MEDIAN_OF {
            self.begin();
        }
    }

    fn begin(&mut self) {
        let Some(nominal) = self.nominal() else { return };
        let mut phase = Phase::new(nominal, self.waiting[0]);
        self.waiting.drain(..).for_each(|at_ns| phase.add(at_ns));
        self.waiting = Vec::new();
        self.phase = Some(phase);
    }

    /// The nominal period: the given one, that of the class if the median is close to it, or the median.
    fn nominal(&self) -> Option<Nominal> {
        let mut intervals: Vec<i64> = self.waiting.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        intervals.sort_unstable();
        let median = intervals.get(intervals.len() / 2).copied().filter(|&ns| ns > 0);
        // If coarse timestamps make the median 0, the mean is a better estimate.
        let count = i64::try_from(intervals.len().max(1)).unwrap_or(i64::MAX);
        let mean = || intervals.iter().fold(0, |sum: i64, &ns| sum.saturating_add(ns)) / count;
        let median = Some(median.unwrap_or_else(mean)).filter(|&ns| ns > 0).map(i64::cast_unsigned);
        if let Some(ns) = self.asked_ns {
            return (!self.waiting.is_empty()).then_some(Nominal { ns, told_by: PeriodSource::Asked });
        }
        let median = median?;
        let class = match self.pcp {
            Some(3) => Some((Class::A.interval_ns(), PeriodSource::ClassA)),
            Some(2) => Some((Class::B.interval_ns(), PeriodSource::ClassB)),
            _ => None,
        };
        let near = class.filter(|(ns, _)| median.abs_diff(*ns) <= ns / 4);
        Some(
            near.map_or(Nominal { ns: median, told_by: PeriodSource::Median }, |(ns, told_by)| Nominal { ns, told_by }),
        )
    }

    /// The result; `None` if there were too few frames.
    pub(crate) fn finish(mut self) -> Option<Tracked> {
        if self.phase.is_none() {
            self.begin();
        }
        self.phase.map(|phase| Tracked { nominal: phase.nominal, earliest: phase.earliest })
    }
}

/// The phase of a stream: slot number `slot` is at time `at`.
struct Phase {
    nominal: Nominal,
    period: f64,
    slot: i64,
    at: f64,
    begin: f64,
    last_ns: i64,
    off: u32,
    seen: u32,
    earliest: Earliest,
}

impl Phase {
    fn new(nominal: Nominal, at_ns: i64) -> Self {
        let at = at_ns as f64;
        let (period, earliest) = (nominal.ns as f64, Earliest { slots: 1, kept: Vec::new() });
        Self { nominal, period, slot: 0, at, begin: at, last_ns: at_ns, off: 0, seen: 0, earliest }
    }

    #[inline]
    fn add(&mut self, at_ns: i64) {
        // The phase is unreliable after a stall and in the burst that follows, so only frames one period after the
        // previous one count.
        let interval = at_ns.saturating_sub(std::mem::replace(&mut self.last_ns, at_ns)) as f64;
        if (interval - self.period).abs() >= self.period / 4.0 {
            return;
        }
        let since = at_ns as f64 - self.at;
        let slots = (since / self.period).round();
        let off = since - slots * self.period;
        if off.abs() >= self.period / 4.0 {
            self.off += 1;
            if self.off >= OFF_PHASE && since > 0.0 {
                (self.slot, self.at, self.off) = (self.slot + nearest(slots), at_ns as f64, 0);
            }
            return;
        }
        self.off = 0;
        if slots < 0.0 {
            return;
        }
        self.slot += nearest(slots);
        self.at = at_ns as f64 - off + off * FOLLOW;
        self.earliest.add(self.slot, at_ns, self.period);
        self.seen = self.seen.wrapping_add(1);
        if self.seen.is_multiple_of(64) {
            self.settle();
        }
    }

    /// Replaces the period by the observed one, so that slots remain correct after a long silence.
    fn settle(&mut self) {
        let period = (self.at - self.begin) / self.slot.max(1) as f64;
        let nominal = self.nominal.ns as f64;
        if self.slot >= SETTLED && (period - nominal).abs() < nominal / 10.0 {
            self.period = period;
        }
    }
}

/// The earliest frame, relative to its own slot, in each stretch of the stream.
pub(crate) struct Earliest {
    /// Slots per stretch; doubled if there would be too many stretches.
    slots: i64,
    /// Slot and time, in order.
    pub(crate) kept: Vec<(i64, i64)>,
}

impl Earliest {
    #[inline]
    fn add(&mut self, slot: i64, at_ns: i64, period: f64) {
        let stretch = slot / self.slots;
        match self.kept.last_mut() {
            Some(last) if last.0 / self.slots == stretch => earlier(last, (slot, at_ns), period),
            _ => self.kept.push((slot, at_ns)),
        }
        while self.kept.len() > STRETCHES {
            self.slots *= 2;
            self.merge(period);
        }
    }

    fn merge(&mut self, period: f64) {
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(STRETCHES);
        for &one in &self.kept {
            match merged.last_mut() {
                Some(last) if last.0 / self.slots == one.0 / self.slots => earlier(last, one, period),
                _ => merged.push(one),
            }
        }
        self.kept = merged;
    }
}

/// Keeps the earlier of two frames, each relative to its own slot.
fn earlier(kept: &mut (i64, i64), other: (i64, i64), period: f64) {
    let ahead = (other.1 - kept.1) as f64 - (other.0 - kept.0) as f64 * period;
    if ahead < 0.0 {
        *kept = other;
    }
}
