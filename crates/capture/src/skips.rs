//! Finds the slots that a talker skips without a gap in its numbers: all later frames are later by whole periods.
//!
//! A late frame is followed by frames that catch up, so some frames in a row must be late by the same number of periods.
//! Frames that catch up later take the slots back. If the first late frame is not late by whole periods, the period may have
//! changed, so that the lateness grows: then more frames in a row must show the skipped slots.

use record::saturating::Saturating;

use crate::convert::nearest;
use crate::lateness::is_silence;

/// So many frames in a row that are late by the same number of periods show that slots were skipped.
const IN_A_ROW: u32 = 4;
/// The same if the first late frame was not late by whole periods.
const IN_A_ROW_LATER: u32 = 40;
/// So many frames in a row that are late by no whole number of periods show another phase.
const OTHER_PHASE: u32 = 16;
/// A lateness is one of whole periods if it differs by at most this part of a period.
const NEARLY_WHOLE: f64 = 0.25;
/// The phase follows each frame by this part of their distance.
const FOLLOW: f64 = 1.0 / 16.0;
/// A talker that skips a larger part of its slots has another period.
pub(crate) const SKIPPED_MOST: f64 = 0.1;
/// At most this part of the frames of a talker that skips slots is not on time.
const OTHERS_MOST: f64 = 0.3;

/// The skipped slots so far, of a stream whose frames have numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Skips {
    /// Skipped slots, in periods.
    pub(crate) periods: i64,
    /// Number of times that the talker skipped some.
    pub(crate) times: u64,
    /// Frames that were not on time.
    others: u64,
    /// A slot, and the time of a frame on time there, ns.
    phase: Option<(i64, f64)>,
    late: Option<Late>,
}

/// The frames since the last one on time.
#[derive(Debug, Clone, Copy)]
struct Late {
    /// True if the first one was late by whole periods.
    began_whole: bool,
    /// How late the last one was, in whole periods, and how many in a row; `None` if not in whole ones.
    periods: Option<i64>,
    in_a_row: u32,
}

impl Skips {
    /// Adds a frame with its index, in a stream with `group` frames a period, `interval_ns` apart. Returns its slot.
    #[inline]
    pub(crate) fn slot(&mut self, index: i64, at_ns: i64, group: i64, interval_ns: f64) -> i64 {
        let slot = index.plus(self.periods.saturating_mul(group));
        let (of_phase, phase_ns) = *self.phase.get_or_insert((slot, at_ns as f64));
        let due_ns = phase_ns + slot.minus(of_phase) as f64 * interval_ns;
        let late_ns = at_ns as f64 - due_ns;
        if late_ns.abs() <= NEARLY_WHOLE * interval_ns * group as f64 {
            self.phase = Some((slot, due_ns + FOLLOW * late_ns));
            self.late = None;
            return slot;
        }
        self.place_late(slot, at_ns, late_ns, group, interval_ns)
    }

    /// Places a frame that is not on time.
    #[cold]
    fn place_late(&mut self, slot: i64, at_ns: i64, late_ns: f64, group: i64, interval_ns: f64) -> i64 {
        self.others += 1;
        let period_ns = interval_ns * group as f64;
        let periods = late_ns / period_ns;
        let whole = nearest(periods);
        let is_whole = (periods - whole as f64).abs() <= NEARLY_WHOLE && !is_silence(nearest(late_ns), period_ns);
        // Only skipped slots can be taken back.
        let skipped = Some(whole).filter(|&whole| is_whole && whole.saturating_add(self.periods) >= 0);
        let first = Late { began_whole: skipped.is_some(), periods: skipped, in_a_row: 0 };
        let late = self.late.get_or_insert(first);
        late.in_a_row = if late.periods == skipped { late.in_a_row + 1 } else { 1 };
        late.periods = skipped;
        let enough = if late.began_whole { IN_A_ROW } else { IN_A_ROW_LATER };
        let moved = match skipped {
            Some(whole) if whole < 0 || late.in_a_row >= enough => whole,
            None if late.in_a_row >= OTHER_PHASE => 0,
            _ => return slot,
        };
        self.periods = self.periods.saturating_add(moved);
        self.times += u64::from(moved > 0);
        let slot = slot.saturating_add(moved.saturating_mul(group));
        (self.phase, self.late) = (Some((slot, at_ns as f64)), None);
        slot
    }

    /// True if skipped slots explain when these `frames` came: most were on time, and few slots were skipped.
    pub(crate) fn explain(&self, frames: u64) -> bool {
        let few = self.periods > 0 && self.periods as f64 <= SKIPPED_MOST * frames as f64;
        few && self.others as f64 <= OTHERS_MOST * frames as f64
    }

    /// Forgets the phase, because the talker restarted.
    pub(crate) fn restart(&mut self) {
        (self.phase, self.late) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: i64 = 125_000;

    /// The slots of frames that came at these times.
    fn slots(times_ns: impl Iterator<Item = i64>) -> (Vec<i64>, Skips) {
        let mut skips = Skips::default();
        let slots = (0..).zip(times_ns).map(|(index, at_ns)| skips.slot(index, at_ns, 1, PERIOD_NS as f64)).collect();
        (slots, skips)
    }

    #[test]
    fn frames_after_skipped_slots_have_later_ones() {
        let sent = |n: i64| n + n / 100 * 3;
        let (slots, skips) = slots((0..1000).map(|n| sent(n) * PERIOD_NS + n % 7 * 2_000));
        assert_eq!((skips.periods, skips.times), (27, 9));
        let right = slots.iter().zip(0..).filter(|&(&slot, n)| slot == sent(n)).count();
        assert_eq!(right, 1000 - 9 * (IN_A_ROW as usize - 1), "the first frames after each skip seem to be late");
    }

    #[test]
    fn a_stall_skips_no_slot() {
        // The frames of a stall of 50 periods come at once; after another one, the talker catches up slowly.
        let catches_up = |n: i64| if (500..550).contains(&n) { 550 * PERIOD_NS } else { n * PERIOD_NS };
        assert_eq!(slots((0..1000).map(catches_up)).1.periods, 0);
        let slowly = |n: i64| (n + if (500..560).contains(&n) { (560 - n) / 20 } else { 0 }) * PERIOD_NS;
        let (slots, skips) = slots((0..1000).map(slowly));
        assert_eq!(skips.periods, 0, "taken back");
        assert_eq!(slots[600..], (600..1000).collect::<Vec<_>>());
    }

    #[test]
    fn another_period_skips_no_slot() {
        for percent in [101, 102, 103, 110, 130, 180, 200] {
            let longer = |n: i64| (n.min(500) * 100 + (n - n.min(500)) * percent) * PERIOD_NS / 100;
            assert_eq!(slots((0..1000).map(longer)).1.periods, 0, "{percent}");
        }
    }

    #[test]
    fn a_late_frame_before_skipped_slots_does_not_hide_them() {
        let sent = |n: i64| (n + if n > 300 { 2 } else { 0 }) * PERIOD_NS + if n == 300 { PERIOD_NS / 2 } else { 0 };
        assert_eq!(slots((0..1000).map(sent)).1.periods, 2);
    }

    #[test]
    fn another_phase_skips_no_slot() {
        let stepped = |n: i64| n * PERIOD_NS + if n < 300 { 0 } else { 5 * PERIOD_NS + PERIOD_NS / 2 };
        assert_eq!(slots((0..1000).map(stepped)).1.periods, 0);
        let set_back = |n: i64| n * PERIOD_NS - if n < 300 { 0 } else { 7 * PERIOD_NS };
        assert_eq!(slots((0..1000).map(set_back)).1.periods, 0);
        let silent = |n: i64| n * PERIOD_NS + if n < 300 { 0 } else { 8_000 * PERIOD_NS };
        assert_eq!(slots((0..1000).map(silent)).1.periods, 0);
    }
}
