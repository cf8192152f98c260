//! Finds out whether the groups of a stream are those of the talker.
//!
//! A talker that sends groups begins each of them at the same place: with groups of two, always with an even number. A card that
//! waits, and then delivers all frames that have come, begins the next group with the frame that comes next, whichever that is.
//! So after a lost or a late frame, the groups can begin at another place, although the talker left out no time.

use crate::convert::signed;

/// So many groups in a row begin at a place of the talker.
const IN_A_ROW: i64 = 3;
/// One change of the place can be a fault of the talker.
const CHANGES_MIN: u32 = 2;

/// The places at which the groups of a stream with numbers begin.
#[derive(Debug)]
pub(crate) struct Places {
    /// Mean time between frames, ns. A longer interval is a pause.
    interval_ns: f64,
    /// Index and time of the last frame.
    last: Option<(i64, i64)>,
    /// For each place in a group, the frames after a pause; empty if frames are sent one by one.
    places: Vec<Place>,
    /// Changes of the place without a change of the time.
    changes: u32,
}

/// A place in the groups.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Index and time of the last frame that came here after a pause.
    index: i64,
    at_ns: i64,
    /// The time of the one a group before it, ns.
    before_ns: i64,
    /// In so many groups in a row a frame came here after a pause; 0 if the groups left this place.
    in_a_row: i64,
}

impl Places {
    /// For groups of so many frames, `interval_ns` apart on average.
    pub(crate) fn new(group: u64, interval_ns: f64) -> Self {
        let group = usize::try_from(group).unwrap_or(0);
        let places = if group > 1 { vec![Place::default(); group] } else { Vec::new() };
        Self { interval_ns, last: None, places, changes: 0 }
    }

    /// True if groups begin at changing places: they are not those of the talker.
    pub(crate) fn change(&self) -> bool {
        self.changes >= CHANGES_MIN
    }

    /// Adds the frame with this index.
    #[inline(always)]
    pub(crate) fn add(&mut self, index: i64, at_ns: i64) {
        if !self.places.is_empty() {
            self.add_of_group(index, at_ns);
        }
    }

    fn add_of_group(&mut self, index: i64, at_ns: i64) {
        let Some((last_index, last_ns)) = self.last.replace((index, at_ns)) else { return };
        // After a lost frame, the group can have begun before.
        let follows = index.saturating_sub(last_index) == 1;
        if follows && at_ns.saturating_sub(last_ns) as f64 > self.interval_ns {
            self.add_after_pause(index, at_ns);
        }
    }

    fn add_after_pause(&mut self, index: i64, at_ns: i64) {
        let group = signed(self.places.len());
        let Some(place) = usize::try_from(index.rem_euclid(group)).ok().and_then(|at| self.places.get_mut(at)) else {
            return;
        };
        let is_next = place.in_a_row > 0 && index.saturating_sub(place.index) == group;
        let in_a_row = if is_next { place.in_a_row + 1 } else { 1 };
        *place = Place { index, at_ns, before_ns: place.at_ns, in_a_row };
        if place.in_a_row == IN_A_ROW {
            self.leave_others(index, at_ns);
        }
    }

    /// The groups begin at a new place, and left those at which none of the last ones began.
    fn leave_others(&mut self, index: i64, at_ns: i64) {
        let group = signed(self.places.len());
        let is_left =
            |place: &&mut Place| place.in_a_row >= IN_A_ROW && index.saturating_sub(place.index) > IN_A_ROW * group;
        for place in self.places.iter_mut().filter(is_left) {
            // The last group can have waited for the frame after a lost one.
            let frames = index.saturating_sub(place.index).saturating_add(group);
            let passed_ns = at_ns.saturating_sub(place.before_ns) as f64;
            let is_on_time = (passed_ns - frames as f64 * self.interval_ns).abs() < self.interval_ns / 2.0;
            self.changes += u32::from(is_on_time);
            place.in_a_row = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_NS: i64 = 125_000;

    /// Whether the places of groups of two change, for frames with these indexes and times.
    fn change(frames: impl IntoIterator<Item = (i64, i64)>) -> bool {
        let mut places = Places::new(2, INTERVAL_NS as f64);
        frames.into_iter().for_each(|(index, at_ns)| places.add(index, at_ns));
        places.change()
    }

    #[test]
    fn groups_of_a_talker_keep_their_place() {
        let of_talker = |index: i64| (index, index / 2 * 2 * INTERVAL_NS);
        let with_losses = (0..1_000).filter(|index| index % 97 != 0).map(of_talker);
        assert!(!change(with_losses));
        // The talker leaves out a period each 100 frames, and one frame in each of these groups.
        let left_out = (0..1_000).map(|index| (index, of_talker(index + index / 99).1));
        assert!(!change(left_out));
    }

    #[test]
    fn groups_of_a_card_move_after_a_loss() {
        // The card waits for a frame and the next one.
        let mut frames = Vec::new();
        let mut waits_until = -1;
        for index in (0..1_000).filter(|index| index % 97 != 0) {
            if index > waits_until {
                waits_until = index + 1;
            }
            frames.push((index, waits_until * INTERVAL_NS));
        }
        assert!(change(frames));
    }
}
