//! Extends the numbers of protocols to 64 bits. They have different widths and steps, and some start again each second.

use std::cmp::Reverse;

use frames::{Count, MediaTime, Range};

use crate::convert::nearest;
use crate::fit::quantile;
use crate::parts::Parts;
use crate::schedule::coarse_slots;
use crate::sequence::{Contained, Number, OVERTAKES, RESTARTED};
use crate::states::States;
use crate::track::{SAME_PERIOD, gcd};

/// The first extended number, so that earlier ones do not underflow.
pub(crate) const FIRST: u64 = 1 << 32;
/// Part of consecutive frames with different numbers whose numbers must differ by the same step, or a few of them if frames
/// are lost.
const COUNTS: f64 = 0.5;
/// Steps of the numbers of consecutive frames, if many are lost.
const STEPS_MAX: u64 = 16;
/// Largest part of consecutive frames that may have the same number: each frame can be in the file three times.
const REPEATED: f64 = 0.7;
/// A copy of a frame, such as that of a second tap, comes at most so many frames later; with copies of all frames, at least this
/// part of them are copies.
const COPIED_WITHIN: usize = 64;
const COPIED: f64 = 0.25;
/// A frame at most this far behind the newest one is an earlier frame, as in [`crate::sequence`].
const BEHIND_MAX: u64 = 256;
/// The number of frames may differ from the slots that passed by this many, or by a quarter.
const SLOTS_APART: f64 = 32.0;
/// A frame is before its slot by at most this part of the interval, and after it by so many intervals.
pub(crate) const EARLY: f64 = 0.5;
pub(crate) const LATE: f64 = 1.5;
/// Less than this part of the interval after the newest frame, the slot of the next one has not come.
pub(crate) const SOON: f64 = 0.75;
/// After a silence of more than this many slots without as many lost frames, the talker continues with another phase.
const PAUSE: f64 = 1024.0;
/// The time for so many slots is exact within this part of it, until the period is fitted, and this many slots.
const EXACT: f64 = 1e-3;
const EXACT_SLOTS: f64 = 4.0;
/// The error of the time must be at most this part of the frames after which the numbers start again. Otherwise, any time is
/// near that of one of their multiples.
pub(crate) const ERROR_MAX: f64 = 1.0 / 32.0;
/// Part of the first intervals that are near the usual one in a stream whose frames are sent one by one, and how near.
const EVEN: f64 = 0.75;
const EVEN_NEAR: f64 = 0.5;
/// The number of packets of a burst can differ from that of others by this part.
const BURSTS_DIFFER: f64 = 0.1;
/// If so many frames in a row are each a number of several steps after the one before, that is the new step.
const OTHER_STEP: u32 = 256;
/// After a silence of unknown length, a number continues the one before it if it is up to this far ahead, and up to this part
/// of all numbers.
const CONTINUES_MAX: u64 = BEHIND_MAX;
const CONTINUES_PART: u64 = 8;
/// A talker that restarts usually begins with 0. The number of the first frame that arrives is less than so many frames later.
const BEGINS_BELOW: u64 = 32;
/// The phase of the earliest frame follows a slower clock by this part of the interval for each frame.
pub(crate) const CREEP: f64 = 1e-3;
/// smpCnt starts again after this time, ns.
const SECOND_NS: i64 = 1_000_000_000;
/// Samples a second of IEC 61850-9-2 LE (80 and 256 a cycle of 50 and 60 Hz) and IEC 61869-9: smpCnt starts again there.
const SAMPLES_A_SECOND: [u32; 7] = [4000, 4800, 5760, 12_800, 14_400, 15_360, 96_000];

/// Counts the frames of a stream by the numbers of its protocol.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Counter {
    kind: Kind,
    /// The run of the talker that the frames belong to, and the number of runs.
    run: u32,
    runs: u32,
    suspended: Option<Suspended>,
}

/// The frames that the numbers count.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// All frames.
    Numbers(Numbers),
    /// The parts of frames.
    Parts(Parts),
    /// The frames of a state.
    States(States),
}

/// The run before a number that does not continue it. That frame begins another run, or it is only far too late: the next
/// frames show which.
#[derive(Debug, Clone, PartialEq)]
struct Suspended {
    kind: Kind,
    run: u32,
    /// Frames of the other run, and the time of the first one, ns.
    frames: usize,
    since_ns: i64,
}

impl Counter {
    /// The counter of a stream with these first frames; `None` if their numbers do not count.
    pub(crate) fn learn(frames: &[(Contained, i64)]) -> Option<Self> {
        let numbers = || {
            let numbers = Numbers::learn(frames).or_else(|| Numbers::learn(&without_copies(frames)?))?;
            Some(numbers.as_parts().map_or(Kind::Numbers(numbers), Kind::Parts))
        };
        let parts = || without_copies(frames).and_then(|kept| Parts::learn(&kept)).or_else(|| Parts::learn(frames));
        let kind = States::learn(frames).map(Kind::States).or_else(|| parts().map(Kind::Parts)).or_else(numbers)?;
        Some(Self { kind, run: 0, runs: 0, suspended: None })
    }

    /// The number of a frame. Frames of one run have consecutive numbers; a number that fits neither the newest one nor the
    /// time begins another run.
    #[inline]
    pub(crate) fn extend(&mut self, count: Count, at_ns: i64) -> Number {
        if let Kind::Numbers(Numbers { is_eight: true, .. }) = self.kind {
            let [low, ..] = count.value.to_le_bytes();
            return Number::Eight(low);
        }
        if let Some(before) = self.suspended.take() {
            return self.extend_either(before, count, at_ns);
        }
        match self.kind.extend(count, at_ns) {
            Some(Extended { seq, .. }) => Number::Whole { run: self.run, seq },
            None => self.begin_run(
                Suspended { kind: self.kind.clone(), run: self.run, frames: 1, since_ns: at_ns },
                count,
                at_ns,
            ),
        }
    }

    /// Begins another run. Until enough frames continue it, the one before can continue, too.
    #[cold]
    fn begin_run(&mut self, before: Suspended, count: Count, at_ns: i64) -> Number {
        let ahead = before.kind.ahead_of_expected(count);
        self.suspended = Some(Suspended { frames: 1, since_ns: at_ns, ..before });
        self.runs += 1;
        self.run = self.runs;
        let seq = self.kind.begin(count, at_ns);
        self.of_other(seq, ahead)
    }

    /// The number of a frame of another run: `ahead` of the expected one of the run before.
    fn of_other(&self, seq: u64, ahead: Option<i16>) -> Number {
        let run = self.run;
        ahead.map_or(Number::Whole { run, seq }, |ahead| Number::Either { run, seq, ahead })
    }

    /// The number of a frame that continues the other run or the suspended one, whichever is nearer.
    #[cold]
    fn extend_either(&mut self, before: Suspended, count: Count, at_ns: i64) -> Number {
        let (mut other, mut suspended) = (self.kind.clone(), before.kind.clone());
        let (found, continued) = (other.extend(count, at_ns), suspended.extend(count, at_ns));
        // Both can continue after a duplicate, or a frame that overtook this one. If this is the next frame, and comes a slot
        // later, the talker restarted with the newest number.
        let is_nearer = |continued: Extended, found: Extended| {
            let passed = at_ns.saturating_sub(before.since_ns) as f64;
            let is_soon = suspended.interval_ns().is_none_or(|ns| passed < SOON * ns);
            let is_before = found.seq < FIRST;
            continued.distance < found.distance || (is_soon || is_before) && continued.distance == found.distance
        };
        match (found, continued) {
            (found, Some(continued)) if found.is_none_or(|found| is_nearer(continued, found)) => {
                (self.kind, self.run, self.suspended) = (suspended, before.run, None);
                Number::Whole { run: self.run, seq: continued.seq }
            }
            (Some(found), _) => {
                let (frames, ahead) = (before.frames + 1, before.kind.ahead_of_expected(count));
                self.kind = other;
                self.suspended = (frames < RESTARTED).then_some(Suspended { frames, ..before });
                self.of_other(found.seq, ahead)
            }
            (None, _) => self.begin_run(before, count, at_ns),
        }
    }

    /// Replaces the mean time between two frames, ns, by the one that was fitted to all frames, except for this relative error.
    pub(crate) fn set_interval(&mut self, interval_ns: f64, error: f64) {
        let is_same = |known_ns: f64| (interval_ns / known_ns - 1.0).abs() <= SAME_PERIOD;
        match &mut self.kind {
            Kind::Numbers(numbers) if is_same(numbers.interval_ns) => {
                (numbers.interval_ns, numbers.interval_error) = (interval_ns, error);
            }
            Kind::Parts(parts) if is_same(parts.interval_ns()) => parts.set_interval(interval_ns, error),
            Kind::Numbers(_) | Kind::Parts(_) | Kind::States(_) => {}
        }
    }

    /// True if frames were lost where neither their numbers nor the time show how many.
    pub(crate) fn lost_unknown(&self) -> bool {
        match &self.kind {
            Kind::Numbers(numbers) => numbers.lost_unknown || numbers.other_step.is_some(),
            Kind::Parts(parts) => parts.lost_unknown,
            Kind::States(_) => false,
        }
    }

    /// The ratio of the step of the numbers from a frame on to the step before, and the time of that frame, ns; `None` if the
    /// talker kept its step.
    pub(crate) fn other_step(&self) -> Option<(f64, i64)> {
        if let Kind::Numbers(numbers) = &self.kind { numbers.other_step } else { None }
    }

    /// True if the frames show the time for which each is due: by that of the media, by a cycle counter, or by samples.
    pub(crate) fn counts_time(&self) -> bool {
        let counts_time = |numbers: &Numbers| numbers.ticks.is_some() || numbers.step > 1 || numbers.in_field.is_none();
        matches!(&self.kind, Kind::Numbers(numbers) if counts_time(numbers))
    }

    /// True if the talker sent several states.
    pub(crate) fn changes_state(&self) -> bool {
        matches!(&self.kind, Kind::States(states) if states.changes_state())
    }
}

/// An extended number of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extended {
    pub(crate) seq: u64,
    /// The distance from the newest one.
    pub(crate) distance: u64,
}

impl Kind {
    /// The number of a frame in the run; `None` if it begins another one.
    #[inline]
    fn extend(&mut self, count: Count, at_ns: i64) -> Option<Extended> {
        match self {
            Self::Numbers(numbers) => numbers.extend(count, at_ns),
            Self::Parts(parts) => parts.extend(count, at_ns),
            Self::States(states) => states.extend(count),
        }
    }

    /// The mean time between two frames, ns; `None` for states.
    fn interval_ns(&self) -> Option<f64> {
        match self {
            Self::Numbers(numbers) => Some(numbers.interval_ns),
            Self::Parts(parts) => Some(parts.interval_ns()),
            Self::States(_) => None,
        }
    }

    /// The distance of a frame from the expected one, if it overtook a few frames, or came late or again; `None` if it is no
    /// such frame.
    fn ahead_of_expected(&self, count: Count) -> Option<i16> {
        let ahead = match self {
            Self::Numbers(numbers) => numbers.ahead_of_expected(count)?,
            Self::Parts(parts) => parts.ahead_of_expected(count)?,
            Self::States(_) => return None,
        };
        i16::try_from(ahead).ok()
    }

    /// Begins a run with this frame; its number.
    fn begin(&mut self, count: Count, at_ns: i64) -> u64 {
        match self {
            Self::Numbers(numbers) => numbers.begin(count, at_ns),
            Self::Parts(parts) => parts.begin(count, at_ns),
            Self::States(states) => states.begin(count),
        }
    }
}

/// Counts frames by the numbers of one sequence.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numbers {
    /// The number of values, after which they start again; `None` if not known yet.
    values: Option<u64>,
    /// The number of values of the field; `None` if its width does not limit them.
    in_field: Option<u64>,
    /// True if the numbers count all values of 8 bits one by one, which [`crate::sequence`] follows itself.
    is_eight: bool,
    /// The difference between the numbers of two frames.
    step: u64,
    /// Mean time between two frames, ns.
    interval_ns: f64,
    /// Its possible relative error.
    interval_error: f64,
    /// The slots by which a stamp can be earlier than its frame because the clock is coarse.
    coarse: f64,
    /// Ticks of the media clock between two frames of RTP; `None` if they are not the same for most frames.
    ticks: Option<u32>,
    /// The bursts of RTP that have one time of the media each, such as the packets of a video frame.
    burst: Option<Burst>,
    /// The time of the media and the number of the first frame of the present burst.
    burst_begins: Option<(u32, u64)>,
    /// True if frames are sent one by one, so that the time shows how many passed.
    is_even: bool,
    newest: Option<Newest>,
    /// The time of the last frame that was a little behind the newest one, ns.
    behind_ns: i64,
    pace: Pace,
    /// The frames from each frame to the next one.
    stride: InARow,
    /// The difference of numbers that is less than a step.
    part: InARow,
    /// The ratio of the new step to the one before, if the talker changed it, and the time of the first frame after it, ns.
    other_step: Option<(f64, i64)>,
    /// True if frames were lost where neither the numbers nor the time show how many.
    lost_unknown: bool,
}

/// Bursts of RTP whose packets have the same time of the media.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Burst {
    /// Ticks of the media clock from a burst to the next one.
    ticks: u32,
    /// Number of packets of the last whole one.
    packets: f64,
}

impl Burst {
    /// Bursts with this number of packets in the last one; `None` for single packets.
    fn of(ticks: u32, packets: u64) -> Option<Self> {
        (packets > 1 && ticks > 0).then_some(Self { ticks, packets: packets as f64 })
    }

    /// True if so many packets ahead are those of the bursts that the media advanced by, with so many lost.
    fn explains(self, before: MediaTime, now: MediaTime, ahead: u64) -> bool {
        let bursts = f64::from(now.timestamp.wrapping_sub(before.timestamp)) / f64::from(self.ticks);
        let is_whole = (bursts - bursts.round()).abs() <= 0.1;
        is_whole && (ahead as f64 - bursts * self.packets).abs() <= self.packets * (1.0 + bursts * BURSTS_DIFFER)
    }
}

/// The restarts of numbers that are possible before a frame.
#[derive(Debug, Clone, Copy)]
struct Around {
    /// Frames after which they start again.
    frames: u64,
    /// The time of the media in the frame.
    media: Option<MediaTime>,
}

impl Around {
    /// The number of times that `ahead` frames, and so many times [`Self::frames`], passed, if `media_frames` passed by the
    /// time of the media and `slots` by that of the capture. If the numbers and both times agree, frames were lost. If they
    /// do not, or if the frame is marked as the first one after a pause, the talker sent none.
    fn times(self, ahead: u64, media_frames: u64, slots: f64) -> u64 {
        let more = media_frames.saturating_sub(ahead);
        let agrees = more.is_multiple_of(self.frames) && (slots - media_frames as f64).abs() <= tolerance(media_frames);
        if agrees && !self.media.is_some_and(|media| media.marker) { more / self.frames } else { 0 }
    }
}

/// The newest frame.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Newest {
    value: u64,
    seq: u64,
    at_ns: i64,
    media: Option<MediaTime>,
    /// The earliest time of number [`FIRST`], according to each frame of the run, ns.
    base_ns: f64,
}

/// The last equal values in a row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct InARow {
    value: u64,
    count: u32,
    /// The time of the first one, ns.
    first_ns: i64,
}

impl InARow {
    /// Adds a value. Returns true if it is the [`OTHER_STEP`]th one in a row.
    #[inline]
    fn add(&mut self, value: u64, at_ns: i64) -> bool {
        if value != self.value {
            *self = Self { value, count: 0, first_ns: at_ns };
        }
        self.count = self.count.saturating_add(1);
        self.count == OTHER_STEP
    }
}

/// The mean interval of the last frames, which is another one than before if the talker changed its period.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Pace {
    /// The first one of the present frames.
    seq: u64,
    at_ns: i64,
    /// The interval of the frames before them, ns.
    pub(crate) interval_ns: Option<f64>,
}

impl Pace {
    /// Frames that show the interval.
    const FRAMES: u64 = 8;

    /// Begins with this frame.
    pub(crate) fn begin(seq: u64, at_ns: i64) -> Self {
        Self { seq, at_ns, interval_ns: None }
    }

    #[inline]
    pub(crate) fn add(&mut self, seq: u64, at_ns: i64) {
        let frames = seq.saturating_sub(self.seq);
        if frames >= Self::FRAMES {
            let interval_ns = at_ns.saturating_sub(self.at_ns) as f64 / frames as f64;
            *self = Self { seq, at_ns, interval_ns: Some(interval_ns) };
        }
    }
}

impl Numbers {
    /// The counter of a stream with these first frames; `None` if their numbers do not count.
    fn learn(frames: &[(Contained, i64)]) -> Option<Self> {
        let candidate = |&(number, at_ns): &(Contained, i64)| match number {
            Contained::Candidate(count) => Some((count, at_ns)),
            _ => None,
        };
        // Other frames can be between them.
        let all = frames.len();
        let frames: Vec<(Count, i64)> = frames.iter().filter_map(candidate).collect();
        let range = frames.first()?.0.range;
        let in_field = match range {
            Range::Bits(bits) => Some(1u64 << bits.min(32)),
            Range::Second => None,
        };
        // Steps backwards, where the values start again, are no candidates without a known number of values.
        let step = |pair: &[(Count, i64)]| {
            let [before, next] = [pair[0], pair[1]].map(|(count, _)| u64::from(count.value));
            match in_field {
                Some(values) => Some(next.wrapping_sub(before) & (values - 1)),
                None => next.checked_sub(before),
            }
        };
        let steps: Vec<(u64, i64)> =
            frames.windows(2).filter_map(|pair| Some((step(pair)?, pair[1].1.saturating_sub(pair[0].1)))).collect();
        let mut sorted: Vec<u64> = steps.iter().map(|(step, _)| *step).filter(|step| *step > 0).collect();
        sorted.sort_unstable();
        let runs = sorted.chunk_by(|a, b| a == b);
        let &usual = runs.max_by_key(|run| (run.len(), Reverse(run[0])))?.first()?;
        // Most frames can be lost, so the step that the protocol states says more than the usual one.
        let stated =
            frames.first()?.0.step.map(|step| u64::from(step.get())).filter(|step| usual.is_multiple_of(*step));
        let step = stated.unwrap_or(usual);
        let is_few = |one: u64| one.is_multiple_of(step) && one <= STEPS_MAX * step;
        let found = sorted.iter().filter(|&&one| is_few(one)).count();
        // A mirror port can repeat each frame.
        let repeated = steps.iter().filter(|(step, _)| *step == 0).count();
        let (pairs, repeats) = ((all - 1) as f64, repeated as f64);
        // Copies that come later have earlier numbers.
        let backward = match in_field {
            Some(values) => sorted.iter().filter(|&&one| one >= values / 2).count(),
            None => frames.windows(2).filter(|pair| pair[1].0.value < pair[0].0.value).count(),
        };
        let is_forward = backward as f64 <= COPIED * (pairs - repeats);
        if !is_forward || repeats > REPEATED * pairs || (found as f64) < COUNTS * (pairs - repeats) {
            return None;
        }
        let in_one = |ns: i64| ns / (usual / step).cast_signed();
        let intervals_ns: Vec<i64> = steps.iter().filter(|(one, _)| *one == usual).map(|(_, ns)| in_one(*ns)).collect();
        let interval_ns = usual_mean(&intervals_ns)?.max(1.0);
        let resolution_ns = steps.iter().fold(0, |found, (_, ns)| gcd(found, ns.unsigned_abs()));
        // EtherCAT masters use a part of 8 bits. With wider numbers, two restarts after equal times would look like this.
        let used = (range == Range::Bits(8)).then(|| used_values(&frames, step)).flatten();
        let used = used.filter(|values| Some(*values) != in_field);
        let of_second = || {
            let samples_a_second = step as f64 * 1e9 / interval_ns;
            let is_rate = |rate: &u64| (*rate as f64 / samples_a_second - 1.0).abs() <= EXACT;
            let all_below = |rate: &u64| frames.iter().all(|(count, _)| u64::from(count.value) < *rate);
            SAMPLES_A_SECOND.map(u64::from).into_iter().find(|rate| is_rate(rate) && all_below(rate))
        };
        let (values, is_eight) =
            (used.or(in_field).or_else(of_second), range == Range::Bits(8) && step == 1 && used.is_none());
        Some(Self {
            values,
            in_field,
            is_eight,
            step,
            interval_ns,
            interval_error: EXACT,
            coarse: coarse_slots(resolution_ns, interval_ns),
            ticks: ticks(&frames, step),
            burst: None,
            burst_begins: None,
            is_even: is_even(&intervals_ns, interval_ns),
            newest: None,
            behind_ns: i64::MIN,
            pace: Pace::default(),
            stride: InARow::default(),
            part: InARow::default(),
            other_step: None,
            lost_unknown: false,
        })
    }

    /// The counter of frames with one part each, if the talker uses a part of 8 bits one by one: they start again after few frames.
    fn as_parts(&self) -> Option<Parts> {
        let values = self.values.filter(|&values| values < 256 && self.step == 1)?;
        Some(Parts::of_frames(u16::try_from(values).ok()?, self.interval_ns, self.is_even))
    }

    /// The number of a frame; `None` if it fits neither the newest one nor the time.
    #[inline]
    fn extend(&mut self, count: Count, at_ns: i64) -> Option<Extended> {
        let Some(newest) = self.newest else { return Some(Extended { seq: self.begin(count, at_ns), distance: 0 }) };
        let ahead = self.ahead(newest, count, at_ns)?;
        let seq = newest.seq.saturating_add_signed(ahead);
        if seq > newest.seq {
            let phase_ns = self.phase_ns(seq, at_ns);
            let crept_ns = newest.base_ns + CREEP * self.interval_ns * (seq - newest.seq) as f64;
            let base_ns = if self.pauses(newest, seq, at_ns) { phase_ns } else { phase_ns.min(crept_ns) };
            self.newest = Some(Newest { value: count.value.into(), seq, at_ns, media: count.media, base_ns });
            self.pace.add(seq, at_ns);
            match count.media {
                None if count.step.is_none() => self.follow_stride(seq - newest.seq, at_ns),
                Some(media) if self.ticks.is_none() => self.follow_bursts(media.timestamp, seq),
                None | Some(_) => {}
            }
        }
        Some(Extended { seq, distance: ahead.unsigned_abs() })
    }

    /// Notices a burst of RTP by its time of the media.
    #[inline]
    fn follow_bursts(&mut self, timestamp: u32, seq: u64) {
        match self.burst_begins {
            Some((last, _)) if last == timestamp => {}
            Some((last, first)) => {
                self.burst = Burst::of(timestamp.wrapping_sub(last), seq - first).or(self.burst);
                self.burst_begins = Some((timestamp, seq));
            }
            None => self.burst_begins = Some((timestamp, seq)),
        }
    }

    /// Notices a new step of the numbers of protocols that do not state it: so many frames are between the last two.
    #[inline]
    fn follow_stride(&mut self, frames: u64, at_ns: i64) {
        if self.stride.add(frames, at_ns) && frames > 1 {
            self.other_step.get_or_insert((frames as f64, self.stride.first_ns));
        }
    }

    /// Notices a new step of the numbers that is less than the one before, by a frame so far from the newest one.
    #[cold]
    fn follow_part(&mut self, difference: u64, at_ns: i64) {
        if self.part.add(difference, at_ns) {
            self.other_step.get_or_insert((difference as f64 / self.step as f64, self.part.first_ns));
        }
    }

    fn begin(&mut self, count: Count, at_ns: i64) -> u64 {
        let base_ns = self.phase_ns(FIRST, at_ns);
        self.newest = Some(Newest { value: count.value.into(), seq: FIRST, at_ns, media: count.media, base_ns });
        self.burst_begins = None;
        self.pace = Pace::begin(FIRST, at_ns);
        FIRST
    }

    fn phase_ns(&self, seq: u64, at_ns: i64) -> f64 {
        at_ns as f64 - (seq - FIRST) as f64 * self.interval_ns
    }

    /// True if much more time passed before this frame than that of the frames since the newest one: the talker paused.
    #[inline]
    fn pauses(&self, newest: Newest, seq: u64, at_ns: i64) -> bool {
        let slots = at_ns.saturating_sub(newest.at_ns) as f64 / self.interval_ns;
        slots > PAUSE && slots - (seq - newest.seq) as f64 > self.tolerance(seq - newest.seq).max(PAUSE)
    }

    /// The number of frames from the newest one to this one; `None` if the talker started its numbers again.
    #[inline]
    fn ahead(&mut self, newest: Newest, count: Count, at_ns: i64) -> Option<i64> {
        let value = u64::from(count.value);
        let is_soon = at_ns.saturating_sub(newest.at_ns) as f64 <= (SLOTS_APART + self.coarse) * self.interval_ns;
        if value == newest.value + self.step && is_soon {
            return Some(1);
        }
        // A number of values that was learned from a restart is wrong.
        let values = self.values.filter(|&values| value.max(newest.value) < values).or(self.in_field);
        self.values = values.or_else(|| self.learn_values(newest, value, at_ns));
        match self.values {
            Some(values) => {
                let forward = (value + values - newest.value) % values;
                let around = Around { frames: values / self.step, media: count.media };
                self.fitting(newest, forward, (values - forward) % values, around, (value, at_ns))
            }
            None => {
                // The numbers have started again at an unknown value.
                self.lost_unknown |= at_ns.saturating_sub(newest.at_ns) > SECOND_NS;
                let (forward, backward) = (value.checked_sub(newest.value), newest.value.checked_sub(value));
                self.fitting(
                    newest,
                    forward.unwrap_or(u64::MAX),
                    backward.unwrap_or(u64::MAX),
                    Around { frames: u64::MAX, media: None },
                    (value, at_ns),
                )
            }
        }
    }

    /// The number of values, if this one is the first after they started again.
    fn learn_values(&self, newest: Newest, value: u64, at_ns: i64) -> Option<u64> {
        let last = newest.value + self.step;
        // A usual rate comes first, because frames can be lost just before the numbers start again.
        // The first number can also come again as a copy.
        let is_end = value == 0 && last > COPIED_WITHIN as u64 * self.step;
        let rates = SAMPLES_A_SECOND.map(u64::from).into_iter().chain(is_end.then_some(last));
        let fits = |rate: &u64| {
            let ahead = (rate + value).checked_sub(newest.value).and_then(|difference| self.frames_in(difference));
            ahead.is_some_and(|ahead| {
                self.off_time(newest, ahead, at_ns).any(|slots| slots.abs() <= self.tolerance(ahead))
            })
        };
        rates.filter(|&rate| value < newest.value && rate >= last).find(fits)
    }

    /// Frames forward, if the time fits, or backward to an earlier frame, for a frame with this number at this time.
    fn fitting(
        &mut self,
        newest: Newest,
        forward: u64,
        backward: u64,
        around: Around,
        (value, at_ns): (u64, i64),
    ) -> Option<i64> {
        if forward < self.step && forward > 0 {
            self.follow_part(forward, at_ns);
        }
        let behind = self.frames_in(backward).filter(|&behind| behind <= BEHIND_MAX);
        let ahead = self.frames_in(forward).map(|ahead| {
            // In a long silence, the numbers can have started again several times.
            let slots = self.slots_since(newest, at_ns);
            let times = match self.media_frames(newest, around.media) {
                Some(frames) => Some(around.times(ahead, frames, slots)),
                None => self.times_by_clock(newest, ahead, around.frames, at_ns),
            };
            (ahead, times)
        });
        if let Some((ahead, None)) = ahead {
            let is_counted = self.counts_slots(self.slots_between(newest.at_ns, at_ns), around.frames);
            return self.after_silence(ahead, around, value, is_counted);
        }
        let ahead = ahead.map(|(ahead, times)| ahead.saturating_add(times.unwrap_or(0).saturating_mul(around.frames)));
        match (ahead, behind) {
            (Some(0), _) => Some(0),
            (Some(ahead), _) if self.jumps(newest, ahead, at_ns) => None,
            // The frame can be late, too.
            (Some(ahead), _) if self.have_passed(newest, ahead, at_ns) => {
                if self.may_begin(newest, ahead, value, around, at_ns) {
                    self.lost_unknown |= ahead <= continues_max(around);
                    return None;
                }
                match self.is_doubtful(newest, ahead, around, at_ns) {
                    false => Some(ahead.cast_signed()),
                    // The time of the media is that of another run, too.
                    true if around.media.is_some() => None,
                    true => self.after_silence(ahead, around, value, true),
                }
            }
            // A frame can be late, but not by so long.
            (_, Some(behind)) if self.slots_between(newest.at_ns.max(self.behind_ns), at_ns) <= PAUSE => {
                // A talker that restarted a little behind sends them one after the other.
                self.behind_ns = at_ns;
                Some(-behind.cast_signed())
            }
            // This part of the file is not in the order of its times.
            _ if let Some(behind) = self.of_earlier_time(newest, backward, around, at_ns) => Some(-behind),
            (Some(ahead), _) if self.is_lost_at_set(newest, ahead, around, at_ns) => Some(ahead.cast_signed()),
            _ => None,
        }
    }

    /// As [`Kind::ahead_of_expected`].
    fn ahead_of_expected(&self, count: Count) -> Option<i64> {
        let (newest, value) = (self.newest?, u64::from(count.value));
        let values = self.values.filter(|&values| value.max(newest.value) < values)?;
        let forward = (value + values - newest.value) % values;
        let ahead = self.frames_in(forward).filter(|ahead| (1..=OVERTAKES).contains(ahead));
        let behind = self.frames_in(values - forward).filter(|&behind| behind <= BEHIND_MAX);
        ahead.map(|ahead| ahead.cast_signed() - 1).or_else(|| behind.map(|behind| -behind.cast_signed() - 1))
    }

    /// True if samples were skipped by number, but no time passed for them: a merging unit set its counter at the pulse of a
    /// second. A frame is not captured before its slot.
    fn jumps(&self, newest: Newest, ahead: u64, at_ns: i64) -> bool {
        let counts_samples = self.in_field.is_none() && self.values.is_some() && self.is_even;
        let is_later = (2..=CONTINUES_MAX).contains(&ahead) && at_ns >= newest.at_ns;
        let is_later = is_later && !self.is_time_by_pace(newest, ahead, at_ns, EARLY);
        counts_samples && is_later && self.slots_since(newest, at_ns) < ahead as f64 - EARLY - self.coarse
    }

    /// True if the slots of so many frames have passed since the newest one.
    fn have_passed(&self, newest: Newest, ahead: u64, at_ns: i64) -> bool {
        let early = if self.is_even { EARLY + self.coarse } else { self.tolerance(ahead) };
        let by_pace = || {
            let pace_ns = self.pace.interval_ns.filter(|&ns| ns > 0.0);
            pace_ns.is_some_and(|ns| at_ns.saturating_sub(newest.at_ns) as f64 / ns - ahead as f64 >= -early)
        };
        self.off_time(newest, ahead, at_ns).any(|slots| slots >= -early) || by_pace()
    }

    /// True if a frame with number 0 is ahead, but more time has passed: a talker that restarts begins with 0, too.
    fn may_begin(&self, newest: Newest, ahead: u64, value: u64, around: Around, at_ns: i64) -> bool {
        let is_later = |slots: f64| slots > LATE.max(self.interval_error * ahead as f64) + self.coarse;
        let begins = value == 0 && ahead > 1 && self.is_even && around.media.is_none();
        begins && self.off_time(newest, ahead, at_ns).all(is_later) && !self.is_time_by_pace(newest, ahead, at_ns, LATE)
    }

    /// True if the time for so many frames passed before this one, except for so many, by the interval of the last frames.
    fn is_time_by_pace(&self, newest: Newest, ahead: u64, at_ns: i64, apart: f64) -> bool {
        let pace_ns = self.pace.interval_ns.filter(|&ns| ns > 0.0);
        let passed = at_ns.saturating_sub(newest.at_ns) as f64;
        pace_ns.is_some_and(|ns| (passed / ns - ahead as f64).abs() <= apart)
    }

    /// True if the numbers show a long loss before this frame, but another time passed than that of the lost frames, and the
    /// time of the media shows neither: the talker can have started again with any number.
    fn is_doubtful(&self, newest: Newest, ahead: u64, around: Around, at_ns: i64) -> bool {
        if ahead <= continues_max(around) {
            return false;
        }
        let slots = self.slots_between(newest.at_ns, at_ns);
        let error = EXACT_SLOTS + self.interval_error * slots;
        let apart_max = if self.is_even { SLOTS_APART.max(error) } else { self.tolerance(ahead) };
        let is_time_of = |frames: f64| (slots - frames).abs() <= apart_max;
        let by_media = self.media_slots(newest, around.media);
        let is_of_bursts = self.burst.zip(newest.media).zip(around.media);
        if is_of_bursts.is_some_and(|((burst, before), now)| burst.explains(before, now, ahead)) {
            return false;
        }
        let agrees = by_media.is_some_and(|frames| is_time_of(frames) || (frames - ahead as f64).abs() < 1.0);
        let agrees = agrees || self.is_time_by_pace(newest, ahead, at_ns, apart_max);
        !agrees && self.off_time(newest, ahead, at_ns).all(|slots| slots.abs() > apart_max)
    }

    /// The number of frames from the newest one to this one, with this number, after a long silence. If its slots are not
    /// counted, the numbers can have started again any number of times. `None` if the talker started them again.
    fn after_silence(&mut self, ahead: u64, around: Around, value: u64, is_counted: bool) -> Option<i64> {
        if ahead > continues_max(around) {
            if value < BEGINS_BELOW * self.step {
                return None;
            }
            self.lost_unknown = true;
        }
        self.lost_unknown |= !is_counted;
        // After a silence, the newest number again is that of another frame.
        let ahead = if ahead == 0 && !is_counted { around.frames } else { ahead };
        Some(ahead.cast_signed())
    }

    /// True if the clock of the capture was set back before this frame, and the frames between the newest one and this one, so
    /// far ahead, were lost: the time of the media advanced by as many, or they are few.
    fn is_lost_at_set(&self, newest: Newest, ahead: u64, around: Around, at_ns: i64) -> bool {
        let is_continued = match self.media_frames(newest, around.media) {
            Some(frames) => ahead == frames && ahead < around.frames / 2,
            None => ahead <= continues_max(around),
        };
        is_continued && self.slots_between(newest.at_ns, at_ns) < -1.0
    }

    /// The frames that a frame is behind the newest one if its stamp is as much earlier as its number, after which the numbers can
    /// have started again several times; `None` if it is not.
    fn of_earlier_time(&self, newest: Newest, backward: u64, around: Around, at_ns: i64) -> Option<i64> {
        let slots = -self.slots_between(newest.at_ns, at_ns);
        let behind = self.frames_in(backward)?;
        let times = ((slots - behind as f64) / around.frames as f64).round().max(0.0);
        let all = behind as f64 + times * around.frames as f64;
        let error = EXACT_SLOTS + self.interval_error * slots.abs();
        let is_exact = (slots - all).abs() <= error && (times == 0.0 || self.counts_slots(slots, around.frames));
        (all > 0.0 && is_exact).then(|| nearest(all))
    }

    /// The number of times that `ahead` frames, and so many times `frames`, passed, if exactly the time for them did. If it did
    /// not, the talker paused. `None` if the silence was so long that the numbers alone show that.
    fn times_by_clock(&self, newest: Newest, ahead: u64, frames: u64, at_ns: i64) -> Option<u64> {
        // The slot of the newest frame follows from an interval that can differ from the mean one, such as that within the
        // packets of a video frame. So at least half of the time must have passed since the frame itself.
        let since_newest = self.slots_between(newest.at_ns, at_ns);
        let exactly = |more: f64| {
            let times = (more / frames as f64).round();
            let error = EXACT_SLOTS + self.interval_error * (more + ahead as f64);
            let is_exact = (more - times * frames as f64).abs() <= error && since_newest >= times * frames as f64 / 2.0;
            (times > 0.0 && is_exact).then(|| nearest(times).unsigned_abs())
        };
        let is_counted = self.counts_slots(since_newest, frames);
        let times = is_counted.then(|| self.off_time(newest, ahead, at_ns).find_map(exactly)).flatten();
        let is_short = self.shows_values(frames) && EXACT * since_newest <= ERROR_MAX * frames as f64;
        times.or_else(|| is_short.then_some(0))
    }

    /// True if the time of so many slots shows how often the numbers started again, which they do after so many frames.
    fn counts_slots(&self, slots: f64, frames: u64) -> bool {
        self.shows_values(frames) && self.interval_error * slots <= ERROR_MAX * frames as f64
    }

    /// True if the stamps are fine enough to show whether the numbers started again, which they do after so many frames.
    fn shows_values(&self, frames: u64) -> bool {
        self.coarse < frames as f64 / 2.0
    }

    /// Largest error in counting so many frames by time, slots.
    fn tolerance(&self, ahead: u64) -> f64 {
        tolerance(ahead) + self.coarse
    }

    /// The number of frames since the newest one by the time of the media; 0 if it is not that of whole frames. `None` if the
    /// media has no such time.
    fn media_frames(&self, newest: Newest, media: Option<MediaTime>) -> Option<u64> {
        let (ticks, before, now) = (self.ticks?, newest.media?, media?);
        let passed = now.timestamp.wrapping_sub(before.timestamp);
        Some(if passed.is_multiple_of(ticks) { (passed / ticks).into() } else { 0 })
    }

    /// The same with the parts of frames.
    fn media_slots(&self, newest: Newest, media: Option<MediaTime>) -> Option<f64> {
        let (ticks, before, now) = (self.ticks?, newest.media?, media?);
        Some(f64::from(now.timestamp.wrapping_sub(before.timestamp)) / f64::from(ticks))
    }

    fn frames_in(&self, difference: u64) -> Option<u64> {
        (difference < u64::MAX && difference.is_multiple_of(self.step)).then(|| difference / self.step)
    }

    /// The slots that passed since the slot of the newest frame.
    fn slots_since(&self, newest: Newest, at_ns: i64) -> f64 {
        (at_ns as f64 - newest.base_ns) / self.interval_ns - (newest.seq - FIRST) as f64
    }

    fn slots_between(&self, from_ns: i64, to_ns: i64) -> f64 {
        to_ns.saturating_sub(from_ns) as f64 / self.interval_ns
    }

    /// The slots by which more time has passed than that of so many frames: since the newest one, and since its slot, which
    /// it can have missed.
    fn off_time(&self, newest: Newest, ahead: u64, at_ns: i64) -> impl Iterator<Item = f64> {
        let since_newest = self.slots_between(newest.at_ns, at_ns);
        [since_newest, self.slots_since(newest, at_ns)].into_iter().map(move |slots| slots - ahead as f64)
    }
}

/// These frames without those whose number one of the frames just before has, if they are a large part, but not most of them.
fn without_copies(frames: &[(Contained, i64)]) -> Option<Vec<(Contained, i64)>> {
    let value = |number: Contained| if let Contained::Candidate(count) = number { Some(count.value) } else { None };
    let mut kept: Vec<(Contained, i64)> = Vec::with_capacity(frames.len());
    for &(number, at_ns) in frames {
        let is_copy = |&(other, _): &(Contained, i64)| value(number).is_some() && value(other) == value(number);
        if !kept.iter().rev().take(COPIED_WITHIN).any(is_copy) {
            kept.push((number, at_ns));
        }
    }
    let part = (frames.len() - kept.len()) as f64 / frames.len().max(1) as f64;
    (COPIED..=REPEATED).contains(&part).then_some(kept)
}

/// True if most of these intervals are near the usual one: the frames are not sent in groups.
pub(crate) fn is_even(intervals_ns: &[i64], usual_ns: f64) -> bool {
    let is_near = |ns: &&i64| (**ns as f64 - usual_ns).abs() <= EVEN_NEAR * usual_ns;
    intervals_ns.iter().filter(is_near).count() as f64 >= EVEN * intervals_ns.len() as f64
}

/// The number of values that a talker uses, if its numbers start again below the largest of their field: the one after which
/// they start again most often, twice at least.
pub(crate) fn used_values(frames: &[(Count, i64)], step: u64) -> Option<u64> {
    let values = || frames.iter().map(|(count, _)| u64::from(count.value));
    let starts = values().zip(values().skip(1)).filter(|(before, next)| before > next && *next == 0);
    let mut ends: Vec<u64> = starts.map(|(before, _)| before + step).collect();
    ends.sort_unstable();
    let most = ends.chunk_by(|a, b| a == b).filter(|run| run.len() >= 2).max_by_key(|run| run.len())?;
    let used = *most.first()?;
    values().all(|value| value < used).then_some(used)
}

/// The ticks of the media clock from one frame to the next, if most frames have the same.
fn ticks(frames: &[(Count, i64)], step: u64) -> Option<u32> {
    let ticks = |pair: &[(Count, i64)]| {
        let [(before, _), (next, _)] = [pair[0], pair[1]];
        let follows = u64::from(next.value.wrapping_sub(before.value) & 0xffff) == step;
        let passed = next.media?.timestamp.wrapping_sub(before.media?.timestamp);
        follows.then_some(passed)
    };
    let mut all: Vec<u32> = frames.windows(2).filter_map(ticks).collect();
    all.sort_unstable();
    let most = all.chunk_by(|a, b| a == b).max_by_key(|run| run.len())?;
    most.first().copied().filter(|&ticks| ticks > 0 && 2 * most.len() > all.len())
}

/// The median of the means of several intervals in a row. A single one can be that within a group of frames, or of stamps that
/// are coarser than it; and the mean of all can contain a pause.
pub(crate) fn usual_mean(intervals_ns: &[i64]) -> Option<f64> {
    /// Intervals of a mean, in a stream with enough frames.
    const IN_A_ROW: usize = 32;
    let count = (intervals_ns.len() / 4).clamp(1, IN_A_ROW);
    let mean = |some: &[i64]| some.iter().map(|ns| *ns as f64).sum::<f64>() / some.len() as f64;
    let mut means: Vec<f64> = intervals_ns.windows(count).map(mean).collect();
    // If the stamps are so coarse that most means are 0, only all intervals together show the usual one.
    quantile(&mut means, 0.5).map(|usual_ns| if usual_ns > 0.0 { usual_ns } else { mean(intervals_ns) })
}

/// A number up to so many frames ahead continues the one before it, if the time shows nothing.
fn continues_max(around: Around) -> u64 {
    CONTINUES_MAX.min(around.frames / CONTINUES_PART)
}

/// Largest error in counting so many frames by time, slots.
fn tolerance(ahead: u64) -> f64 {
    (ahead as f64 / 4.0).max(SLOTS_APART)
}

#[cfg(test)]
mod tests;
