//! Extends the numbers of frames whose parts are numbered (the datagrams of EtherCAT, 8 bits) to numbers of the frames.
//!
//! The next frame begins with the number after the last part of this one. Frames have different numbers of parts: a master adds
//! those of its mailbox or of its state to some. So the missing numbers limit how many frames were lost, and the time decides.

use frames::Count;

use crate::convert::nearest;
use crate::counter::{CREEP, ERROR_MAX, Extended, FIRST, is_even, used_values, usual_mean};
use crate::sequence::Contained;

/// The number of values.
const VALUES: f64 = 256.0;
/// Part of the consecutive frames that must continue the numbers of the one before.
const CONTINUES: f64 = 0.5;
/// The mean number of parts follows that of the last frames: each counts with this part.
const NEWEST_PART: f64 = 1.0 / 16.0;
/// In the time for so many numbers, they can have started again.
const MAY_START_AGAIN: f64 = 200.0;
/// The time of lost frames is exact within so many frames, and this part of them.
const EXACT: f64 = 4.0;
const EXACT_PART: f64 = 0.125;
/// A frame before the first one of a run is at most so many numbers behind.
const EARLIER_MAX: u8 = 64;
/// Without the time for them, so many numbers ahead are those of lost frames.
const LOST_MAX: u8 = 32;
/// The time for so many frames is exact within this part of it, until the period is fitted.
const INTERVAL_ERROR: f64 = 1e-3;

/// Counts the frames of a stream by the numbers of their parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parts {
    /// Mean time between two frames, ns.
    interval_ns: f64,
    /// Its possible relative error.
    interval_error: f64,
    /// True if frames are sent one by one, so that the time shows how many passed.
    is_even: bool,
    /// The smallest, the mean, and the largest number of parts.
    fewest: u8,
    mean: f64,
    most: u8,
    newest: Option<Newest>,
    /// For each value, the last frame that began with it, or that would have if it was lost; 0 if there is none.
    frames: Vec<u64>,
    /// True if frames were lost where neither the numbers nor the time show how many.
    pub(crate) lost_unknown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Newest {
    /// The number that it begins with, and that of the next frame.
    first: u8,
    next: u8,
    seq: u64,
    at_ns: i64,
    /// The earliest time of number [`FIRST`], according to each frame of the run, ns.
    base_ns: f64,
}

impl Parts {
    /// The counter of a stream with these first frames; `None` if their parts are not numbered one by one.
    pub(crate) fn learn(frames: &[(Contained, i64)]) -> Option<Self> {
        let candidate = |&(number, at_ns): &(Contained, i64)| match number {
            Contained::Candidate(count) => Some((count, count.parts?.get(), at_ns)),
            _ => None,
        };
        let found: Vec<(Count, u8, i64)> = frames.iter().filter_map(candidate).collect();
        let counts: Vec<(Count, i64)> = found.iter().map(|&(count, _, at_ns)| (count, at_ns)).collect();
        let continues = |pair: &&[(Count, u8, i64)]| low(pair[1].0) == low(pair[0].0).wrapping_add(pair[0].1);
        let continued = || found.windows(2).filter(continues);
        // Masters that number frames use a part of 8 bits. After a frame with several parts, their numbers advance by one.
        let of_several = found.windows(2).filter(|pair| pair[0].1 > 1);
        let of_frames = of_several.filter(|pair| low(pair[1].0) == low(pair[0].0).wrapping_add(1)).count();
        let numbers_frames = continued().filter(|pair| pair[0].1 > 1).count() <= of_frames;
        if counts.len() < frames.len() || numbers_frames && used_values(&counts, 1).is_some() {
            return None;
        }
        let repeated = counts.windows(2).filter(|pair| pair[0].0.value == pair[1].0.value).count();
        let intervals_ns: Vec<i64> = continued().map(|pair| pair[1].2.saturating_sub(pair[0].2)).collect();
        if (intervals_ns.len() as f64) < CONTINUES * (found.len().saturating_sub(1 + repeated)) as f64 {
            return None;
        }
        let interval_ns = usual_mean(&intervals_ns)?.max(1.0);
        let parts = || found.iter().map(|&(_, parts, _)| parts);
        Some(Self {
            interval_ns,
            interval_error: INTERVAL_ERROR,
            is_even: is_even(&intervals_ns, interval_ns),
            fewest: parts().min()?,
            mean: parts().map(f64::from).sum::<f64>() / found.len() as f64,
            most: parts().max()?,
            newest: None,
            frames: vec![0; 256],
            lost_unknown: false,
        })
    }

    /// Replaces the mean time between two frames, ns, by the one that was fitted to all frames, except for this relative error.
    pub(crate) fn set_interval(&mut self, interval_ns: f64, error: f64) {
        (self.interval_ns, self.interval_error) = (interval_ns, error);
    }

    /// The mean time between two frames, ns.
    pub(crate) fn interval_ns(&self) -> f64 {
        self.interval_ns
    }

    /// The number of a frame; `None` if it fits neither the newest one nor the time.
    #[inline]
    pub(crate) fn extend(&mut self, count: Count, at_ns: i64) -> Option<Extended> {
        let Some(newest) = self.newest else { return Some(Extended { seq: self.begin(count, at_ns), distance: 0 }) };
        let ahead = low(count).wrapping_sub(newest.next);
        let passed = at_ns.saturating_sub(newest.at_ns) as f64 / self.interval_ns;
        let lost =
            if ahead == 0 && passed < VALUES / self.mean / 2.0 { Some(0) } else { self.lost(newest, ahead, at_ns) };
        let Some(lost) = lost else {
            // An earlier frame, which came late or again.
            let seq = self.earlier(newest, count).filter(|_| passed * self.mean < MAY_START_AGAIN)?;
            return Some(Extended { seq, distance: newest.seq - seq });
        };
        // Stamps of a damaged file can be any times apart, again and again.
        let seq = newest.seq.saturating_add(1 + lost);
        self.add_lost(newest, ahead, seq);
        self.follow(newest, count, seq, at_ns);
        Some(Extended { seq, distance: 1 + lost })
    }

    /// The number of a frame before the newest one; `None` if it is none of the last ones.
    fn earlier(&self, newest: Newest, count: Count) -> Option<u64> {
        match self.frames.get(usize::from(low(count)))? {
            0 => {
                // It came before the first one of the run.
                let behind = newest.first.wrapping_sub(low(count));
                let frames = nearest((f64::from(behind) / self.mean).max(1.0)).unsigned_abs();
                (behind <= EARLIER_MAX).then(|| newest.seq - frames)
            }
            seq => Some(*seq).filter(|&seq| seq <= newest.seq),
        }
    }

    /// Begins a run with this frame; its number.
    pub(crate) fn begin(&mut self, count: Count, at_ns: i64) -> u64 {
        self.frames.fill(0);
        let base_ns = self.phase_ns(FIRST, at_ns);
        self.set_newest(count, FIRST, at_ns, base_ns);
        FIRST
    }

    /// The number of frames lost before this one, whose number is so far ahead; `None` if it does not follow the newest one.
    #[cold]
    fn lost(&mut self, newest: Newest, ahead: u8, at_ns: i64) -> Option<u64> {
        let since = |since_ns: f64| (at_ns as f64 - since_ns) / self.interval_ns - 1.0;
        let since_newest = since(newest.at_ns as f64);
        let since_slot = since(newest.base_ns + (newest.seq - FIRST) as f64 * self.interval_ns);
        if since_newest * self.mean > MAY_START_AGAIN {
            return self.lost_in_silence(since_newest, ahead);
        }
        // One of the two frames can be late.
        let of_time = |slots: f64| {
            let usual = if self.is_even { slots } else { f64::from(ahead) / self.mean };
            let [fewest, most] = self.frames_in(f64::from(ahead));
            let lost = usual.round().clamp(fewest, most);
            ((lost - slots).abs() <= EXACT.max(EXACT_PART * lost)).then_some(lost)
        };
        let found = of_time(since_newest).or_else(|| of_time(since_slot)).or_else(|| self.lost_in_pause(ahead));
        found.map(|lost| nearest(lost).unsigned_abs())
    }

    /// The same after a silence in which the numbers can have started again. If all frames have equally many parts, only a
    /// few numbers of frames fit both the numbers and the time.
    fn lost_in_silence(&mut self, slots: f64, ahead: u8) -> Option<u64> {
        let is_counted = self.is_even && self.interval_error * slots * self.mean <= ERROR_MAX * VALUES;
        if !is_counted {
            self.lost_unknown = true;
            return Some(nearest(f64::from(ahead) / self.mean).unsigned_abs());
        }
        if self.fewest < self.most {
            self.lost_unknown = true;
            return Some(nearest(slots).unsigned_abs());
        }
        let parts = f64::from(self.most);
        let is_exact = |lost: &f64| (lost * parts - f64::from(ahead)).rem_euclid(VALUES) < 0.5;
        let near = [0.0, 1.0, -1.0].map(|off| slots.round() + off).into_iter().find(is_exact);
        let paused = || self.lost_in_pause(ahead).filter(is_exact);
        near.filter(|lost| *lost >= 0.0).or_else(paused).map(|lost| nearest(lost).unsigned_abs())
    }

    /// The number of frames lost in a pause of the talker; `None` if the numbers do not continue.
    fn lost_in_pause(&self, ahead: u8) -> Option<f64> {
        let [fewest, most] = self.frames_in(f64::from(ahead));
        (ahead <= LOST_MAX).then(|| (f64::from(ahead) / self.mean).round().clamp(fewest, most))
    }

    /// The fewest and the most frames that have so many parts.
    fn frames_in(&self, numbers: f64) -> [f64; 2] {
        let fewest = (numbers / f64::from(self.most)).ceil();
        [fewest, (numbers / f64::from(self.fewest)).floor().max(fewest)]
    }

    /// Keeps the numbers of the frames that were lost before this one: they can still come.
    fn add_lost(&mut self, newest: Newest, ahead: u8, seq: u64) {
        for behind in 1..=ahead {
            let frames = nearest((f64::from(behind) / self.mean).ceil()).unsigned_abs();
            let value = newest.next.wrapping_add(ahead - behind);
            if let Some(lost) = self.frames.get_mut(usize::from(value)) {
                *lost = seq.saturating_sub(frames).max(newest.seq.saturating_add(1));
            }
        }
    }

    #[inline]
    fn follow(&mut self, newest: Newest, count: Count, seq: u64, at_ns: i64) {
        let phase_ns = self.phase_ns(seq, at_ns);
        let crept_ns = newest.base_ns + CREEP * self.interval_ns * (seq - newest.seq) as f64;
        // After a pause, the slots are later.
        let is_late = phase_ns - newest.base_ns > VALUES * self.interval_ns;
        let base_ns = if is_late { phase_ns } else { phase_ns.min(crept_ns) };
        self.set_newest(count, seq, at_ns, base_ns);
    }

    #[inline]
    fn set_newest(&mut self, count: Count, seq: u64, at_ns: i64, base_ns: f64) {
        let parts = count.parts.map_or(self.fewest, std::num::NonZero::get);
        (self.fewest, self.most) = (self.fewest.min(parts), self.most.max(parts));
        self.mean += (f64::from(parts) - self.mean) * NEWEST_PART;
        for part in 0..parts {
            if let Some(frame) = self.frames.get_mut(usize::from(low(count).wrapping_add(part))) {
                *frame = seq;
            }
        }
        let first = low(count);
        self.newest = Some(Newest { first, next: first.wrapping_add(parts), seq, at_ns, base_ns });
    }

    fn phase_ns(&self, seq: u64, at_ns: i64) -> f64 {
        at_ns as f64 - (seq - FIRST) as f64 * self.interval_ns
    }
}

/// The value, of 8 bits.
fn low(count: Count) -> u8 {
    let [low, ..] = count.value.to_le_bytes();
    low
}
