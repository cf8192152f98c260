//! Extends the numbers of frames whose parts are numbered (the datagrams of EtherCAT, 8 bits) to numbers of the frames.
//!
//! The next frame begins with the number after the last part of this one. Frames have different numbers of parts: a master adds
//! those of its mailbox or of its state to some. So the missing numbers limit how many frames were lost, and the time decides.

use frames::Count;

use crate::again::Repeated;
use crate::convert::nearest;
use crate::counter::{CREEP, EARLY, ERROR_MAX, Extended, FIRST, LATE, Pace, SOON, is_even, used_values, usual_mean};
use crate::sequence::Contained;

/// The number of values of the field.
const VALUES: u16 = 256;
/// Part of the consecutive frames that must continue the numbers of the one before.
const CONTINUES: f64 = 0.5;
/// The mean number of parts follows that of the last frames: each counts with this part.
const NEWEST_PART: f64 = 1.0 / 16.0;
/// In the time for this part of all numbers, they can have started again.
const MAY_START_AGAIN: f64 = 200.0 / 256.0;
/// The time of lost frames is exact within so many frames, and this part of them.
const EXACT: f64 = 4.0;
const EXACT_PART: f64 = 0.125;
/// A frame before the first one of a run is at most this part of all numbers behind.
const EARLIER_PART: u16 = 4;
/// Without the time for them, this part of all numbers ahead are those of lost frames.
const LOST_PART: u16 = 8;
/// The time for so many frames is exact within this part of it, until the period is fitted.
const INTERVAL_ERROR: f64 = 1e-3;

/// Counts the frames of a stream by the numbers of their parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parts {
    /// The number of values, after which they start again.
    values: u16,
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
    pace: Pace,
    repeated: Repeated,
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
            fewest: parts().min()?,
            mean: parts().map(f64::from).sum::<f64>() / found.len() as f64,
            most: parts().max()?,
            ..Self::of_frames(VALUES, interval_ns, is_even(&intervals_ns, interval_ns))
        })
    }

    /// The counter of frames with one part each, so far apart, whose numbers are below this.
    pub(crate) fn of_frames(values: u16, interval_ns: f64, is_even: bool) -> Self {
        Self {
            values,
            interval_ns,
            interval_error: INTERVAL_ERROR,
            is_even,
            fewest: 1,
            mean: 1.0,
            most: 1,
            newest: None,
            pace: Pace::default(),
            repeated: Repeated::default(),
            frames: vec![0; values.into()],
            lost_unknown: false,
        }
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
        let ahead = self.after(newest.next, count)?;
        let passed = at_ns.saturating_sub(newest.at_ns) as f64 / self.interval_ns;
        let lost =
            if ahead == 0 && passed < self.all() / self.mean / 2.0 { Some(0) } else { self.lost(newest, ahead, at_ns) };
        let Some(lost) = lost else {
            // An earlier frame, which came late or again. In the slot of the next frame, the talker can have restarted.
            let seq = self.earlier(newest, count)?;
            self.repeated.add(newest.seq);
            if self.slots_by_pace(newest, at_ns) >= SOON && !self.repeated.are_copies(newest.seq) {
                return None;
            }
            return Some(Extended { seq, distance: newest.seq - seq });
        };
        // Stamps of a damaged file can be any times apart, again and again.
        let seq = newest.seq.saturating_add(1 + lost);
        self.add_lost(newest, ahead, seq);
        self.follow(newest, count, seq, at_ns);
        Some(Extended { seq, distance: 1 + lost })
    }

    /// As [`Kind::ahead_of_expected`](crate::counter).
    pub(crate) fn ahead_of_expected(&self, count: Count) -> Option<i64> {
        let newest = self.newest?;
        let ahead = self.after(newest.next, count)?;
        if u16::from(ahead) <= self.values / LOST_PART {
            let [fewest, _] = self.frames_in(f64::from(ahead));
            return Some(nearest(fewest));
        }
        self.earlier(newest, count).map(|seq| -(newest.seq - seq).cast_signed() - 1)
    }

    /// The number of a frame before the newest one; `None` if it is none of the last ones.
    fn earlier(&self, newest: Newest, count: Count) -> Option<u64> {
        match self.frames.get(usize::from(low(count)))? {
            0 => {
                // It came before the first one of the run.
                let behind = self.distance(low(count), newest.first);
                let frames = nearest((f64::from(behind) / self.mean).max(1.0)).unsigned_abs();
                (u16::from(behind) <= self.values / EARLIER_PART).then(|| newest.seq - frames)
            }
            seq => Some(*seq).filter(|&seq| seq <= newest.seq),
        }
    }

    /// Begins a run with this frame; its number.
    pub(crate) fn begin(&mut self, count: Count, at_ns: i64) -> u64 {
        if u16::from(low(count)) >= self.values {
            // The first frames used a part of them.
            self.values = VALUES;
        }
        self.frames = vec![0; self.values.into()];
        let base_ns = self.phase_ns(FIRST, at_ns);
        self.set_newest(count, FIRST, at_ns, base_ns);
        self.pace = Pace::begin(FIRST, at_ns);
        FIRST
    }

    /// The number of frames lost before this one, whose number is so far ahead; `None` if it does not follow the newest one.
    #[cold]
    fn lost(&mut self, newest: Newest, ahead: u8, at_ns: i64) -> Option<u64> {
        let since = |since_ns: f64| (at_ns as f64 - since_ns) / self.interval_ns - 1.0;
        let since_newest = since(newest.at_ns as f64);
        let since_slot = since(newest.base_ns + (newest.seq - FIRST) as f64 * self.interval_ns);
        if since_newest * self.mean > MAY_START_AGAIN * self.all() {
            return self.lost_in_silence(newest, since_newest, ahead);
        }
        // Frames were lost only if their slots have passed. One of the two frames can be late.
        let by_pace = self.slots_by_pace(newest, at_ns) - 1.0;
        let passed = since_newest.max(since_slot).max(by_pace);
        let early = if self.is_even { EARLY } else { EXACT };
        let of_time = |slots: f64, late: fn(f64) -> f64| {
            let usual = if self.is_even { slots } else { f64::from(ahead) / self.mean };
            let [fewest, most] = self.frames_in(f64::from(ahead));
            let lost = usual.round().clamp(fewest, most);
            (lost <= passed + early && (lost - slots).abs() <= late(lost)).then_some(lost)
        };
        let exact = [since_newest, since_slot, by_pace].into_iter().find_map(|slots| of_time(slots, |_| LATE));
        if !self.are_whole(ahead) && (exact.is_none() || self.begins(newest, ahead)) {
            return None;
        }
        let near = |lost: f64| EXACT.max(EXACT_PART * lost);
        let about = || of_time(since_newest, near).or_else(|| of_time(since_slot, near));
        let paused = || self.lost_in_pause(ahead).filter(|lost| *lost <= passed + early);
        let found = exact.or_else(|| about().or_else(paused));
        if exact.is_none() && found.is_some() && self.begins(newest, ahead) {
            self.lost_unknown = true;
            return None;
        }
        found.map(|lost| nearest(lost).unsigned_abs())
    }

    /// True if this is number 0, but not the next one: a talker that restarts begins with it, too.
    fn begins(&self, newest: Newest, ahead: u8) -> bool {
        ahead > 0 && u16::from(newest.next) + u16::from(ahead) == self.values
    }

    /// False if all frames have equally many parts, but this many are not those of whole frames.
    fn are_whole(&self, parts: u8) -> bool {
        self.fewest < self.most || parts.is_multiple_of(self.most.max(1))
    }

    /// The same after a silence in which the numbers can have started again. If all frames have equally many parts, only a
    /// few numbers of frames fit both the numbers and the time.
    fn lost_in_silence(&mut self, newest: Newest, slots: f64, ahead: u8) -> Option<u64> {
        let is_counted = self.is_even && self.interval_error * slots * self.mean <= ERROR_MAX * self.all();
        if !is_counted {
            self.lost_unknown = true;
            return Some(nearest(f64::from(ahead) / self.mean).unsigned_abs());
        }
        if self.fewest < self.most {
            self.lost_unknown = true;
            return Some(nearest(slots).unsigned_abs());
        }
        let parts = f64::from(self.most);
        let is_exact = |lost: &f64| (lost * parts - f64::from(ahead)).rem_euclid(self.all()) < 0.5;
        let near = [0.0, 1.0, -1.0].map(|off| slots.round() + off).into_iter().find(is_exact);
        let paused = || self.lost_in_pause(ahead).filter(is_exact);
        let near = near.filter(|lost| *lost >= 0.0);
        let found = near.or_else(paused);
        if near.is_none() && found.is_some() && self.begins(newest, ahead) {
            self.lost_unknown = true;
            return None;
        }
        found.map(|lost| nearest(lost).unsigned_abs())
    }

    /// The number of frames lost in a pause of the talker; `None` if the numbers do not continue.
    fn lost_in_pause(&self, ahead: u8) -> Option<f64> {
        let [fewest, most] = self.frames_in(f64::from(ahead));
        (u16::from(ahead) <= self.values / LOST_PART)
            .then(|| (f64::from(ahead) / self.mean).round().clamp(fewest, most))
    }

    /// The fewest and the most frames that have so many parts.
    fn frames_in(&self, numbers: f64) -> [f64; 2] {
        let fewest = (numbers / f64::from(self.most)).ceil();
        [fewest, (numbers / f64::from(self.fewest)).floor().max(fewest)]
    }

    /// The slots since the newest frame, also if the talker sends frames more quickly than before.
    fn slots_by_pace(&self, newest: Newest, at_ns: i64) -> f64 {
        let pace_ns =
            self.pace.interval_ns.filter(|&ns| ns > 0.0).map_or(self.interval_ns, |ns| ns.min(self.interval_ns));
        at_ns.saturating_sub(newest.at_ns) as f64 / pace_ns
    }

    /// Keeps the numbers of the frames that were lost before this one: they can still come.
    fn add_lost(&mut self, newest: Newest, ahead: u8, seq: u64) {
        for behind in 1..=ahead {
            let frames = nearest((f64::from(behind) / self.mean).ceil()).unsigned_abs();
            let value = self.value(newest.next, ahead - behind);
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
        let is_late = phase_ns - newest.base_ns > self.all() * self.interval_ns;
        let base_ns = if is_late { phase_ns } else { phase_ns.min(crept_ns) };
        self.set_newest(count, seq, at_ns, base_ns);
        self.pace.add(seq, at_ns);
    }

    #[inline]
    fn set_newest(&mut self, count: Count, seq: u64, at_ns: i64, base_ns: f64) {
        let parts = count.parts.map_or(self.fewest, std::num::NonZero::get);
        let [parts, _] = u16::from(parts).min(self.values - 1).to_le_bytes();
        (self.fewest, self.most) = (self.fewest.min(parts), self.most.max(parts));
        self.mean += (f64::from(parts) - self.mean) * NEWEST_PART;
        for part in 0..parts {
            let value = self.value(low(count), part);
            if let Some(frame) = self.frames.get_mut(usize::from(value)) {
                *frame = seq;
            }
        }
        let first = low(count);
        let next = self.value(first, parts);
        self.newest = Some(Newest { first, next, seq, at_ns, base_ns });
    }

    /// The number of values.
    fn all(&self) -> f64 {
        self.values.into()
    }

    /// The numbers from one value to that of a frame; `None` if it is none of the values.
    #[inline]
    fn after(&self, value: u8, count: Count) -> Option<u8> {
        (u16::from(low(count)) < self.values).then(|| self.distance(value, low(count)))
    }

    /// The value so many numbers after another one.
    #[inline]
    fn value(&self, from: u8, ahead: u8) -> u8 {
        let value = u16::from(from) + u16::from(ahead);
        let [value, _] = (if value >= self.values { value - self.values } else { value }).to_le_bytes();
        value
    }

    /// The numbers from one value to another one.
    #[inline]
    fn distance(&self, from: u8, to: u8) -> u8 {
        let ahead = u16::from(to) + self.values - u16::from(from);
        let [distance, _] = (if ahead >= self.values { ahead - self.values } else { ahead }).to_le_bytes();
        distance
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
