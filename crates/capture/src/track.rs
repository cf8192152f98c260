//! Tracks the phase of a stream and keeps its earliest frames, to which the grid is fitted. Uses bounded memory.

use std::hash::{DefaultHasher, Hasher};

use record::saturating::Saturating;

use crate::bursts::{Bursts, Gaps};
use crate::convert::{nearest, signed};
use crate::counter::Counter;
use crate::fit::{in_batches, offset_ns, quantile};
use crate::period::{Estimate, estimate, indexed, is_doubtful, mean_ns, of_pairs, repeats_media_times};
use crate::rates::Rates;
use crate::schedule::Schedule;
use crate::sequence::{Contained, Number, Placed, Sequence};
use crate::skips::Skips;
use crate::wander::KNOT_NS;

/// Number of frames for the estimate of the period, and of those for a better one if these do not show it well.
const ESTIMATE_OF: usize = 256;
const ESTIMATE_OF_MAX: usize = 2048;
/// After this many consecutive regular frames off the phase, the phase is reset.
const OFF_PHASE: u32 = 64;
/// The fraction of a frame's phase error by which the phase follows it.
const FOLLOW: f64 = 1.0 / 16.0;
/// A frame follows another one closely if it comes at most this part of the period after it.
const CLOSELY: f64 = 0.55;
/// After this many slots, the observed period replaces the estimated one.
const SETTLED: i64 = 256;
/// Number of stretches of the stream whose earliest frames are kept: the usual one, and the one that a stretch of
/// [`Earliest::lasting`] slots is not joined with others for. Short stretches show clocks that wander within minutes.
pub(crate) const STRETCHES: usize = 256;
const STRETCHES_MAX: usize = 4096;
/// A stretch that shows how the clocks wander has at least so many frames: the earliest one of few scatters.
const LASTING_FRAMES: i64 = 256;
/// A given period and an observed one are the same if they differ by at most this part: far more than any clock.
pub(crate) const SAME_PERIOD: f64 = 0.01;

/// The state of tracking a stream. Times are ns after its first frame.
pub(crate) struct Track {
    asked_ns: Option<u64>,
    /// The interval of the stream's class, if it has one.
    class_ns: Option<u64>,
    /// The first frames, until the period is estimated, and their numbers in the file.
    waiting: Vec<(Contained, i64)>,
    waiting_frames: Vec<u64>,
    repeats: Repeats,
    /// Extends the numbers, if the protocol has some that count.
    counter: Option<Counter>,
    /// The counter as it was before the first frame.
    learned: Option<Counter>,
    slots: Option<Slots>,
    /// Greatest common divisor of all intervals, ns; 0 before the first one.
    step_ns: u64,
    intervals: u64,
    /// The time of the last frame.
    last_ns: Option<i64>,
}

/// The result of tracking.
pub(crate) struct Tracked {
    /// The estimate from the first frames; `None` if they are not regular.
    pub(crate) estimate: Option<Estimate>,
    /// The interval between frames that was used, ns.
    pub(crate) interval_ns: f64,
    /// Offsets of the frames of a group, ns; empty if frames are not sent in groups.
    pub(crate) offsets_ns: Vec<f64>,
    /// Index and time of the earliest frame of each stretch.
    pub(crate) earliest: Vec<(i64, i64)>,
    /// The slots that the talker skipped without a gap in its numbers, if it did.
    pub(crate) skips: Option<Skipped>,
    /// True if the stream is so long that clocks can wander within a stretch.
    pub(crate) may_wander_within: bool,
    /// The bursts, if their frames have no place in the grid.
    pub(crate) bursts: Option<Bursts>,
    pub(crate) rates: Rates,
    /// True if fewer than half of the frames without numbers came one period after the previous frame.
    pub(crate) irregular: bool,
    /// Greatest common divisor of all intervals, ns; 0 if all timestamps are equal.
    pub(crate) step_ns: u64,
    /// Number of intervals.
    pub(crate) intervals: u64,
    pub(crate) numbered: bool,
    /// True if the talker sent several states, such as a talker of GOOSE.
    pub(crate) changes_state: bool,
    /// True if the talker restarted its numbers, or perhaps did so after a silence.
    pub(crate) may_have_restarted: bool,
    /// As [`Counter::other_step`].
    pub(crate) other_step: Option<(f64, i64)>,
    /// Lost frames; `None` if frames have no number.
    pub(crate) lost: Option<u64>,
    /// As it was before the first frame.
    pub(crate) counter: Option<Counter>,
}

impl Tracked {
    /// True if all timestamps of several frames are equal.
    pub(crate) fn has_equal_stamps(&self) -> bool {
        self.step_ns == 0 && self.intervals > 0
    }
}

/// Slots that the talker skipped.
#[derive(Debug)]
pub(crate) struct Skipped {
    /// Slot and time of the earliest frame of each stretch.
    pub(crate) earliest: Vec<(i64, i64)>,
    /// Number of times that the talker skipped some, and of the frames of the stream.
    times: u64,
    frames: u64,
}

impl Skipped {
    /// A talker that skips slots before one of fewer frames, and at least so often, skips many.
    const FRAMES: u64 = 128;
    const TIMES: u64 = 8;

    /// True if too few frames are between skipped slots to show the phase by them.
    pub(crate) fn are_many(&self) -> bool {
        self.times >= Self::TIMES && self.times.saturating_mul(Self::FRAMES) > self.frames
    }
}

impl Track {
    pub(crate) fn new(asked_ns: Option<u64>, class_ns: Option<u64>) -> Self {
        Self {
            asked_ns,
            class_ns,
            waiting: Vec::new(),
            waiting_frames: Vec::new(),
            repeats: Repeats::default(),
            counter: None,
            learned: None,
            slots: None,
            step_ns: 0,
            intervals: 0,
            last_ns: None,
        }
    }

    /// Adds frame `frame` of the file with the number that it contains and its bytes.
    #[inline(always)]
    pub(crate) fn add(&mut self, frame: u64, number: Contained, at_ns: i64, bytes: &[u8]) {
        if let Some(last_ns) = self.last_ns.replace(at_ns) {
            self.intervals += 1;
            if self.step_ns != 1 {
                self.step_ns = gcd(self.step_ns, at_ns.abs_diff(last_ns));
            }
        }
        if let Some(slots) = &mut self.slots {
            slots.add(frame, extended(&mut self.counter, number, at_ns), at_ns);
            return;
        }
        self.wait(frame, number, at_ns, bytes);
    }

    /// Adds a frame before the period is estimated.
    #[cold]
    fn wait(&mut self, frame: u64, number: Contained, at_ns: i64, bytes: &[u8]) {
        if number == Contained::None {
            self.repeats.add(bytes);
        }
        self.waiting.push((number, at_ns));
        self.waiting_frames.push(frame);
        if self.waiting.len() == ESTIMATE_OF || self.waiting.len() == ESTIMATE_OF_MAX {
            self.begin(self.waiting.len() == ESTIMATE_OF_MAX);
        }
    }

    /// Estimates the period and starts to assign frames to slots; if more frames can follow, only if the period is certain.
    fn begin(&mut self, is_last: bool) {
        let known_ns = self.asked_ns.or(self.class_ns);
        let learned = Counter::learn(&self.waiting);
        let mut counter = learned.clone();
        let of = |&(number, at_ns): &(Contained, i64)| (extended(&mut counter, number, at_ns), at_ns);
        let frames: Vec<(Number, i64)> = self.waiting.iter().map(of).collect();
        let placed: Vec<_> = frames.iter().copied().filter(|(number, _)| *number != Number::Aside).collect();
        let pairs = if self.repeats.come_twice() { of_pairs(&placed) } else { None };
        let estimate = pairs.or_else(|| estimate(&placed, known_ns));
        if !is_last && (is_doubtful(estimate.as_ref(), &placed, known_ns) || self.may_be_bursts(estimate.as_ref())) {
            return;
        }
        let numbered = placed.first().is_some_and(|(number, _)| *number != Number::None);
        let own_ns = mean_ns(&indexed(&placed, None)).filter(|_| numbered);
        let Some((interval_ns, offsets_ns)) = self.interval(estimate.as_ref(), own_ns) else { return };
        let mut slots = Slots::new(estimate, interval_ns, offsets_ns, numbered, self.step_ns);
        for (frame, (number, at_ns)) in std::mem::take(&mut self.waiting_frames).into_iter().zip(frames) {
            slots.add(frame, number, at_ns);
        }
        self.waiting = Vec::new();
        (self.counter, self.learned, self.slots) = (counter, learned, Some(slots));
    }

    /// True if the frames contain parts of the same media, but no burst was found yet.
    fn may_be_bursts(&self, estimate: Option<&Estimate>) -> bool {
        estimate.is_none_or(|found| found.offsets_ns.is_empty()) && repeats_media_times(&self.waiting)
    }

    /// The interval between frames with the offsets of a group's frames: from the data, unless the data shows none, or frames
    /// without numbers can be missing. `own_ns` is the mean interval of frames with numbers: their losses do not depend on
    /// the given period.
    fn interval(&self, estimate: Option<&Estimate>, own_ns: Option<f64>) -> Option<(f64, Vec<f64>)> {
        let is_same = |ns: f64, asked_ns: u64| (ns / asked_ns as f64 - 1.0).abs() <= SAME_PERIOD;
        match (self.asked_ns, estimate) {
            (None, Some(found)) => Some((found.interval_ns, found.offsets_ns.clone())),
            (Some(asked), Some(found)) if is_same(found.period_ns(), asked) => {
                Some((found.interval_ns, found.offsets_ns.clone()))
            }
            (Some(asked), Some(found)) if own_ns.is_some() && !is_same(found.interval_ns, asked) => {
                Some((found.interval_ns, found.offsets_ns.clone()))
            }
            (Some(asked), None) if own_ns.is_some_and(|own_ns| !(0.9..=1.1).contains(&(own_ns / asked as f64))) => {
                own_ns.map(|own_ns| (own_ns.max(1.0), Vec::new()))
            }
            (Some(asked), _) => (!self.waiting.is_empty()).then_some((asked as f64, Vec::new())),
            (None, None) => {
                let (first, last) = (self.waiting.first()?, self.waiting.last()?);
                let mean = last.1.saturating_sub(first.1) as f64 / (self.waiting.len() as f64 - 1.0).max(1.0);
                let measured = own_ns.unwrap_or(mean);
                // Frames of events can have the priority of a class, too.
                let class = self.class_ns.map(|ns| ns as f64);
                let has_class = |ns: &f64| (0.9..=1.1).contains(&(measured / ns)) || self.are_multiples(*ns);
                let interval = class.filter(has_class).unwrap_or(measured);
                (self.waiting.len() > 1).then_some((interval.max(1.0), Vec::new()))
            }
        }
    }

    /// True if most of the first frames are whole periods apart, some of which can have no frame.
    fn are_multiples(&self, period_ns: f64) -> bool {
        const NEAR: f64 = 1.0 / 8.0;
        const MOST: f64 = 0.75;
        let periods = |pair: &[(Contained, i64)]| pair[1].1.saturating_sub(pair[0].1) as f64 / period_ns;
        let near = self.waiting.windows(2).map(periods).filter(|periods| (periods - periods.round()).abs() <= NEAR);
        near.count() as f64 >= MOST * (self.waiting.len() as f64 - 1.0)
    }

    /// The result; `None` if there were too few frames.
    pub(crate) fn finish(&mut self) -> Option<Tracked> {
        if self.slots.is_none() {
            self.begin(true);
        }
        let mut slots = self.slots.take()?;
        slots.finish();
        let lost_unknown = slots.sequence.lost_unknown || self.counter.as_ref().is_some_and(Counter::lost_unknown);
        let skips = slots.without_skips.take().filter(|_| slots.skips.explain(slots.frames));
        let mean_ns = self.last_ns.unwrap_or(0) as f64 / self.intervals.max(1) as f64;
        let hides_numbers = slots.sequence.is_hidden_by(self.step_ns, mean_ns);
        let lost_unknown = lost_unknown || hides_numbers && slots.sequence.unexpected() > 0;
        let irregular = !slots.numbered && slots.regular * 2 < slots.frames;
        let group_ns = slots.interval_ns * slots.offsets_ns.len() as f64;
        let differ = slots.groups.sizes.differ().then_some(Bursts { frames: None, period_ns: group_ns });
        let found = slots.gaps.bursts(slots.interval_ns).filter(|_| slots.offsets_ns.is_empty()).or(differ);
        Some(Tracked {
            bursts: slots.estimate.as_ref().and_then(|estimate| estimate.bursts).or(found),
            estimate: slots.estimate,
            rates: slots.rates,
            interval_ns: slots.interval_ns,
            offsets_ns: slots.groups.offsets_ns(&slots.offsets_ns),
            may_wander_within: slots.earliest.are_long(),
            skips: skips.map(|earliest| Skipped {
                earliest: earliest.kept,
                times: slots.skips.times,
                frames: slots.frames,
            }),
            earliest: slots.earliest.kept,
            irregular,
            step_ns: self.step_ns,
            intervals: self.intervals,
            numbered: slots.numbered,
            changes_state: self.counter.as_ref().is_some_and(Counter::changes_state),
            may_have_restarted: lost_unknown || slots.sequence.restarts > 0,
            other_step: self.counter.as_ref().and_then(Counter::other_step),
            lost: (slots.numbered && !lost_unknown).then_some(slots.sequence.lost),
            counter: self.learned.take(),
        })
    }
}

/// The number that a frame counts with; none without a counter for the numbers of its protocol.
#[inline(always)]
pub(crate) fn extended(counter: &mut Option<Counter>, number: Contained, at_ns: i64) -> Number {
    match (number, counter) {
        (Contained::Candidate(count), Some(counter)) => counter.extend(count, at_ns),
        (Contained::Candidate(_), None) => Number::None,
        (Contained::None, Some(_)) => Number::Aside,
        (Contained::None, None) => Number::None,
        (Contained::Eight(low), _) => Number::Eight(low),
        (Contained::Whole { run, seq }, _) => Number::Whole { run, seq },
    }
}

/// Frames without numbers that have the same bytes as the one before, such as copies of a mirror port.
#[derive(Default)]
struct Repeats {
    last: Option<u64>,
    /// Frames in a row with the same bytes.
    in_a_row: u64,
    /// Number of changes of the bytes, and of those after exactly two frames.
    changes: u64,
    pairs: u64,
}

impl Repeats {
    /// If this part of the bytes comes exactly twice, each frame does. Others are lost.
    const PAIRS: f64 = 0.9;

    #[inline(never)]
    fn add(&mut self, bytes: &[u8]) {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        if self.last.replace(hasher.finish()) == Some(hasher.finish()) {
            self.in_a_row += 1;
        } else {
            self.changes += 1;
            self.pairs += u64::from(self.in_a_row == 2);
            self.in_a_row = 1;
        }
    }

    fn come_twice(&self) -> bool {
        self.changes >= ESTIMATE_OF as u64 / 4 && self.pairs as f64 >= Self::PAIRS * self.changes as f64
    }
}

/// Assigns frames to slots: by their numbers, or by their times.
struct Slots {
    estimate: Option<Estimate>,
    interval_ns: f64,
    offsets_ns: Vec<f64>,
    numbered: bool,
    sequence: Sequence,
    phase: Phase,
    /// Slot and time of the last frame without a number whose slot is known.
    held: Option<(i64, i64)>,
    frames: u64,
    /// Frames without numbers that came one period after the previous frame.
    regular: u64,
    earliest: Earliest,
    groups: Groups,
    gaps: Gaps,
    rates: Rates,
    skips: Skips,
    /// The earliest frames by slot, if the talker of a numbered stream skipped some.
    without_skips: Option<Earliest>,
}

impl Slots {
    /// For frames whose stamps have this resolution.
    fn new(
        estimate: Option<Estimate>,
        interval_ns: f64,
        offsets_ns: Vec<f64>,
        numbered: bool,
        resolution_ns: u64,
    ) -> Self {
        let schedule = Schedule::new(interval_ns, None, offsets_ns.len().max(1)).with_resolution(resolution_ns);
        let groups = Groups::new(&offsets_ns, interval_ns);
        Self {
            estimate,
            interval_ns,
            offsets_ns,
            numbered,
            sequence: Sequence::new(schedule),
            phase: Phase::new(interval_ns),
            held: None,
            frames: 0,
            regular: 0,
            earliest: Earliest::with_lasting(nearest(KNOT_NS as f64 / interval_ns).max(LASTING_FRAMES)),
            groups,
            gaps: Gaps::new(interval_ns),
            rates: Rates::new(interval_ns),
            skips: Skips::default(),
            without_skips: None,
        }
    }

    #[inline(always)]
    fn add(&mut self, frame: u64, number: Number, at_ns: i64) {
        self.frames += 1;
        if !self.numbered {
            return self.add_by_time(frame, at_ns);
        }
        let shortened = match self.sequence.add_expected(frame, at_ns, number) {
            Some(placed) => self.place(placed),
            None => self.add_unexpected(frame, number, at_ns),
        };
        if shortened {
            self.settle();
        }
    }

    /// Adds a frame whose index is known. Returns true if stretches were merged.
    #[inline(always)]
    fn place(&mut self, placed: Placed) -> bool {
        let Self { earliest, interval_ns, offsets_ns, groups, gaps, rates, skips, without_skips, .. } = self;
        rates.add(placed.frame, placed.index, placed.at_ns);
        groups.add(offsets_ns, placed, *interval_ns);
        gaps.add(placed.index, placed.at_ns, *interval_ns);
        let at_ns = without_offset(offsets_ns, placed);
        if placed.restarts {
            skips.restart();
        }
        let slot = skips.slot(placed.index, at_ns, signed(offsets_ns.len().max(1)), *interval_ns);
        if skips.periods > 0 || without_skips.is_some() {
            without_skips.get_or_insert_with(|| earliest.clone()).add(slot, at_ns, *interval_ns);
        }
        earliest.add(placed.index, at_ns, *interval_ns)
    }

    #[inline(never)]
    fn add_unexpected(&mut self, frame: u64, number: Number, at_ns: i64) -> bool {
        let mut all = Vec::new();
        self.sequence.add(frame, at_ns, number, &mut |placed| all.push(placed));
        let mut shortened = false;
        for placed in all {
            shortened |= self.place(placed);
        }
        shortened
    }

    /// Adds a frame without a number.
    #[inline(always)]
    fn add_by_time(&mut self, frame: u64, at_ns: i64) {
        let Self { earliest, interval_ns, gaps, rates, .. } = self;
        let index = signed(usize::try_from(self.frames).unwrap_or(0));
        rates.add(frame, index, at_ns);
        gaps.add(index, at_ns, *interval_ns);
        // A frame that another one follows closely may be between two slots.
        let follows_closely = |held: &(i64, i64)| at_ns.minus(held.1) as f64 <= *interval_ns * CLOSELY;
        if let Some((slot, held_ns)) = self.held.take().filter(|held| !follows_closely(held)) {
            earliest.add(slot, held_ns, *interval_ns);
        }
        if let Some(slot) = self.phase.add(at_ns) {
            self.regular += 1;
            *interval_ns = self.phase.period;
            self.held = Some((slot, at_ns));
        }
    }

    /// Replaces the interval by the one of the earliest frames.
    fn settle(&mut self) {
        let kept = &self.without_skips.as_ref().unwrap_or(&self.earliest).kept;
        let slope = |pair: &[(i64, i64)]| {
            let slots = pair[1].0.saturating_sub(pair[0].0);
            (slots > 0).then(|| pair[1].1.saturating_sub(pair[0].1) as f64 / slots as f64)
        };
        let mut slopes: Vec<f64> = kept.windows(2).filter_map(slope).collect();
        let typical = quantile(&mut slopes, 0.5).unwrap_or(self.interval_ns);
        let batched = if self.offsets_ns.is_empty() { in_batches(kept, typical) } else { None };
        let found = batched.unwrap_or(typical);
        if (found / self.interval_ns - 1.0).abs() < SAME_PERIOD {
            self.interval_ns = found;
            self.sequence.schedule.set_period(found);
        }
    }

    fn finish(&mut self) {
        let Self { sequence, earliest, interval_ns, offsets_ns, .. } = self;
        if let Some((slot, held_ns)) = self.held.take() {
            earliest.add(slot, held_ns, *interval_ns);
        }
        sequence.flush(&mut |placed| {
            let at_ns = without_offset(offsets_ns, placed);
            earliest.add(placed.index, at_ns, *interval_ns);
        });
    }
}

/// The offsets of the frames of all groups from those of the estimate, against the first frame of their group.
struct Groups {
    /// Index of the last group, and its time according to its first frame, ns.
    first: Option<(i64, i64)>,
    /// Sum and number of the differences at each position, ns.
    sums: Vec<(f64, u64)>,
    sizes: Sizes,
}

impl Groups {
    fn new(offsets_ns: &[f64], interval_ns: f64) -> Self {
        Self { first: None, sums: vec![(0.0, 0); offsets_ns.len()], sizes: Sizes::new(offsets_ns, interval_ns) }
    }

    #[inline]
    fn add(&mut self, offsets_ns: &[f64], placed: Placed, interval_ns: f64) {
        if self.sums.is_empty() {
            return;
        }
        self.sizes.add(placed);
        let length = signed(self.sums.len());
        let (group, position) = (placed.index.div_euclid(length), placed.index.rem_euclid(length));
        let at_ns = without_offset(offsets_ns, placed);
        if position == 0 {
            self.first = Some((group, at_ns));
        } else if let Some((_, first_ns)) = self.first.filter(|first| first.0 == group) {
            let more_ns = at_ns.saturating_sub(first_ns) as f64 - position as f64 * interval_ns;
            let sum = usize::try_from(position).ok().and_then(|position| self.sums.get_mut(position));
            // A late frame does not count.
            if let Some((sum_ns, count)) = sum.filter(|_| more_ns.abs() < interval_ns / 4.0) {
                (*sum_ns, *count) = (*sum_ns + more_ns, *count + 1);
            }
        }
    }

    /// The offsets, from the earliest one on.
    fn offsets_ns(&self, estimated_ns: &[f64]) -> Vec<f64> {
        let mean_ns = |&(sum_ns, count): &(f64, u64)| if count == 0 { 0.0 } else { sum_ns / count as f64 };
        let mut offsets_ns: Vec<f64> = estimated_ns.to_vec();
        offsets_ns.iter_mut().zip(&self.sums).for_each(|(offset_ns, sum)| *offset_ns += mean_ns(sum));
        let earliest_ns = offsets_ns.iter().copied().fold(f64::INFINITY, f64::min);
        offsets_ns.iter().map(|offset_ns| offset_ns - earliest_ns).collect()
    }
}

/// The numbers of frames in the groups of a stream, which are between gaps.
struct Sizes {
    /// A longer gap is between two groups, ns; the largest time if gaps do not show them.
    gap_ns: i64,
    usual: i64,
    /// Index and time of the last frame.
    last: Option<(i64, i64)>,
    /// Index and time of the first frame of the last group, and the size of the one before and the time between both, ns.
    start: Option<(i64, i64)>,
    before: Option<(i64, i64)>,
    /// The last groups that each follow the one before after the same time.
    in_a_row: u64,
    /// Groups after some of these, and of those with the usual size before, the longer and the shorter ones.
    regular: u64,
    longer: u64,
    shorter: u64,
}

impl Sizes {
    /// A gap between groups is at least so many times longer than one within a group.
    const GAP: f64 = 2.0;
    /// If this part of the groups is shorter, their sizes differ. Fewer are groups of which the talker left out frames.
    const SHORTER: f64 = 0.05;
    /// Groups that show the usual time between them.
    const IN_A_ROW: u64 = 4;

    fn new(offsets_ns: &[f64], interval_ns: f64) -> Self {
        let next = offsets_ns.iter().cycle().skip(1);
        let mut gaps_ns: Vec<f64> = offsets_ns.iter().zip(next).map(|(one, next)| interval_ns + next - one).collect();
        gaps_ns.sort_unstable_by(f64::total_cmp);
        let largest_ns = gaps_ns.pop().unwrap_or(0.0);
        let within_ns = gaps_ns.pop().unwrap_or(0.0);
        let shows = largest_ns > Self::GAP * within_ns;
        Self {
            gap_ns: if shows { nearest((largest_ns + within_ns) / 2.0) } else { i64::MAX },
            usual: signed(offsets_ns.len()),
            last: None,
            start: None,
            before: None,
            in_a_row: 0,
            regular: 0,
            longer: 0,
            shorter: 0,
        }
    }

    #[inline]
    fn add(&mut self, Placed { index, at_ns, restarts, .. }: Placed) {
        let last = self.last.replace((index, at_ns));
        let follows =
            !restarts && last.is_some_and(|(last, last_ns)| index == last.saturating_add(1) && at_ns >= last_ns);
        if !follows {
            (self.start, self.before, self.in_a_row) = (None, None, 0);
        } else if last.is_some_and(|(_, last_ns)| at_ns.saturating_sub(last_ns) > self.gap_ns) {
            self.begin(index, at_ns);
        }
    }

    /// Begins a group.
    fn begin(&mut self, index: i64, at_ns: i64) {
        let Some((first, first_ns)) = self.start.replace((index, at_ns)) else { return };
        let (size, after_ns) = (index.saturating_sub(first), at_ns.saturating_sub(first_ns));
        let before = self.before.replace((size, after_ns));
        let is_as_before = |&(_, ns): &(i64, i64)| after_ns.abs_diff(ns) <= ns.unsigned_abs() / 16;
        let Some((size_before, _)) = before.filter(is_as_before) else {
            self.in_a_row = 0;
            return;
        };
        self.in_a_row += 1;
        // A late frame changes the sizes and the distances of the groups around it.
        if self.in_a_row >= Self::IN_A_ROW {
            self.regular += 1;
            self.longer += u64::from(size > self.usual && size_before >= self.usual);
            self.shorter += u64::from(size < self.usual && size_before >= self.usual);
        }
    }

    /// True if the sizes of the groups differ, so that the numbers of the frames do not show their places.
    fn differ(&self) -> bool {
        self.longer > 0 || self.shorter as f64 > Self::SHORTER * self.regular as f64
    }
}

/// The time of a frame without the offset in its group, ns.
#[inline]
fn without_offset(offsets_ns: &[f64], placed: Placed) -> i64 {
    if offsets_ns.is_empty() { placed.at_ns } else { placed.at_ns.minus(nearest(offset_ns(offsets_ns, placed.index))) }
}

/// The phase of a stream without numbers: slot number `slot` is at time `at`.
struct Phase {
    nominal: f64,
    period: f64,
    slot: i64,
    at: f64,
    begin: f64,
    last_ns: Option<i64>,
    off: u32,
    seen: u32,
}

impl Phase {
    fn new(period: f64) -> Self {
        Self { nominal: period, period, slot: 0, at: 0.0, begin: 0.0, last_ns: None, off: 0, seen: 0 }
    }

    /// The slot of a frame; `None` if it is not known.
    #[inline]
    fn add(&mut self, at_ns: i64) -> Option<i64> {
        let Some(last_ns) = self.last_ns.replace(at_ns) else {
            (self.at, self.begin) = (at_ns as f64, at_ns as f64);
            return None;
        };
        // The phase is unreliable after a stall and in the burst that follows, so only frames about one period after the
        // previous one count.
        let interval = at_ns.minus(last_ns) as f64;
        if (interval - self.period).abs() >= self.period * 0.45 {
            return None;
        }
        let since = at_ns as f64 - self.at;
        let slots = (since / self.period).round();
        let off = since - slots * self.period;
        if off.abs() >= self.period / 4.0 || slots < 0.0 {
            self.off += 1;
            if self.off >= OFF_PHASE {
                let slot = self.slot.saturating_add(nearest(slots).max(1));
                (self.slot, self.at, self.off) = (slot, at_ns as f64, 0);
                self.begin = self.at - slot as f64 * self.period;
            }
            return None;
        }
        self.off = 0;
        self.slot = self.slot.plus(nearest(slots));
        self.at = at_ns as f64 - off + off * FOLLOW;
        self.seen = self.seen.wrapping_add(1);
        if self.seen.is_multiple_of(64) {
            self.settle();
        }
        Some(self.slot)
    }

    /// Replaces the period by the observed one, so that slots remain correct after a long silence.
    fn settle(&mut self) {
        let period = (self.at - self.begin) / self.slot.max(1) as f64;
        if self.slot >= SETTLED && (period - self.nominal).abs() < self.nominal * SAME_PERIOD {
            self.period = period;
        }
    }
}

/// The earliest frame, relative to its own slot, in each stretch of the stream.
#[derive(Clone, Default)]
pub(crate) struct Earliest {
    /// Slots per stretch, as a power of two; increased if there would be too many stretches.
    shift: u32,
    /// Up to [`STRETCHES_MAX`] stretches of at least so many slots are kept; 0 for [`STRETCHES`] of any length.
    lasting: i64,
    /// The last slot of the last stretch.
    end: i64,
    /// Slot and time, in order.
    pub(crate) kept: Vec<(i64, i64)>,
}

impl Earliest {
    /// Keeps more stretches if they have at least so many slots.
    fn with_lasting(slots: i64) -> Self {
        Self { lasting: slots, ..Self::default() }
    }

    /// Adds a frame. Returns true if stretches were merged.
    #[inline]
    pub(crate) fn add(&mut self, slot: i64, at_ns: i64, period: f64) -> bool {
        match self.kept.last_mut() {
            Some(last) if slot <= self.end => {
                if is_earlier((slot, at_ns), *last, period) {
                    *last = (slot, at_ns);
                    self.end = end(slot, self.shift);
                }
                false
            }
            _ => self.begin((slot, at_ns), period),
        }
    }

    /// Begins a stretch. Returns true if stretches were merged.
    #[inline(never)]
    fn begin(&mut self, first: (i64, i64), period: f64) -> bool {
        self.kept.push(first);
        let merges = self.are_too_many();
        while self.are_too_many() {
            self.shift = (self.shift + 1).min(i64::BITS - 1);
            self.merge(period);
        }
        self.end = self.kept.last().map_or(first.0, |last| end(last.0, self.shift));
        merges
    }

    fn are_too_many(&self) -> bool {
        self.kept.len() > if self.lasting > 0 && self.slots() >= self.lasting { STRETCHES_MAX } else { STRETCHES }
    }

    /// True if the stretches are twice as long as they must be.
    fn are_long(&self) -> bool {
        self.lasting > 0 && self.slots() / 2 >= self.lasting
    }

    /// Slots per stretch.
    fn slots(&self) -> i64 {
        1 << self.shift.min(i64::BITS - 2)
    }

    fn merge(&mut self, period: f64) {
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(self.kept.len() / 2 + 1);
        for &one in &self.kept {
            match merged.last_mut() {
                Some(last) if last.0 >> self.shift == one.0 >> self.shift => {
                    if is_earlier(one, *last, period) {
                        *last = one;
                    }
                }
                _ => merged.push(one),
            }
        }
        self.kept = merged;
    }
}

/// The last slot of the stretch that contains this one.
fn end(slot: i64, shift: u32) -> i64 {
    slot | !(-1 << shift)
}

/// True if a frame is earlier than another one, each relative to its own slot.
#[inline]
pub(crate) fn is_earlier(one: (i64, i64), other: (i64, i64), period: f64) -> bool {
    (one.1.minus(other.1) as f64) < one.0.minus(other.0) as f64 * period
}

/// The greatest common divisor. One division if `a` divides `b`, the usual case.
#[inline]
pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while a != 0 {
        (a, b) = (b % a, a);
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_greatest_common_divisors() {
        assert_eq!([gcd(0, 12), gcd(12, 0), gcd(12, 18), gcd(5, 10), gcd(7, 13)], [12, 12, 6, 5, 1]);
    }
}
