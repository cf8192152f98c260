//! Assigns frames to positions in the stream, and counts lost, duplicated and reordered frames.
//!
//! A frame's index is its position in the stream; lost frames have an index too. With 64-bit numbers, the index follows
//! from the number. With 8-bit numbers, several indexes are possible, so the time that has passed and, for unexpected
//! numbers, the following frames decide.
//!
//! Without numbers, a frame has the slot after that of the frame before. If it is near a later slot, the slots between them
//! had no frame, unless several of the next frames catch up: then these frames are late, because the talker was stalled. A
//! frame that is early has no slot: it is a second one of the slot before.

use frames::{Content, Count};

use crate::again::Again;
use crate::convert::floor;
use crate::fit::quantile;
use crate::schedule::Schedule;

/// Frames this far behind the newest one can still be classified. Each 8-bit number occurs once within it.
const WINDOW: u64 = 256;
/// Number of 64-bit words with one bit for each frame of the window.
const WORDS: usize = 4;
/// The start value for 8-bit numbers, so that earlier ones do not underflow.
const FIRST: u64 = 1 << 32;
/// The number of frames, with the first one, that decide about an unexpected 8-bit number.
const LOOKAHEAD: usize = 16;
/// So many frames of another run show that the talker restarted. Fewer, followed by the run before, were far too late.
pub(crate) const RESTARTED: usize = LOOKAHEAD;
/// The number of the last of these frames is at most this far ahead of the first one.
const FOLLOWING_MAX: i64 = 32;
/// An 8-bit number up to this far ahead may belong to a frame that overtook others.
pub(crate) const OVERTAKES: u64 = 32;
/// A frame that overtakes so many others does not come again within the frames that decide.
const FEW_OVERTAKEN: u64 = LOOKAHEAD as u64 / 2;
/// Frames overtake each other if more than one of so many is behind the one before it.
const DISORDERED: usize = 8;
/// Up to this many slots of silence, a continued 8-bit number means that no frame was lost.
const SILENCE: f64 = 128.0;
/// After this many slots, a number that continues shows a pause, and one that does not shows a restart.
const SILENCE_MAX: i64 = 16_000;
/// With a larger error of the elapsed slots, which is a large part of 256, 8-bit numbers do not show how many frames were lost.
const SILENCE_ERROR_MAX: f64 = WINDOW as f64 / 32.0;
/// Most slots between a frame's time and its number, both from the frame before, if they agree.
pub(crate) const APART_MAX: i64 = 2;
/// The time of lost frames by the pace of the frames after them is exact within so many frames, and this part of them.
const PACE_APART: f64 = 0.5;
const PACE_ERROR: f64 = 1.0 / 16.0;
/// A talker that restarts usually begins with 0. The first number that arrives is below this.
const BEGINS_BELOW: u8 = 32;

/// A frame without a number is a second one of a slot if it is this part of the period before the next slot.
const SECOND: f64 = 0.5;
/// A frame without a number this part of the period before its slot may be between two slots.
const BETWEEN: f64 = 1.0 / 64.0;
/// After slots without a frame, a frame this part of the period before its slot catches up.
const CATCHES_UP: f64 = 0.125;

/// The talker was stalled if so many frames catch up after at least so many slots without a frame.
const CAUGHT_UP: u64 = 2;

/// The sequence number of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// The frame has no number.
    None,
    /// AVTP's number, modulo 256.
    Eight(u8),
    /// The number of our own talker, with its run; or that of a protocol, extended by its [`Counter`](crate::counter).
    Whole { run: u32, seq: u64 },
    /// The same for a frame of another run; if the present run continues, `ahead` of its expected frame.
    Either { run: u32, seq: u64, ahead: i16 },
    /// The frame has no number, but others of its stream do, such as RTCP between RTP: it has no slot.
    Aside,
}

/// The number that a frame contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contained {
    /// The frame has no number.
    None,
    /// AVTP's number, modulo 256.
    Eight(u8),
    /// The number of our own talker, with its run.
    Whole { run: u32, seq: u64 },
    /// A number of a protocol, which a [`Counter`](crate::counter) extends if it counts.
    Candidate(Count),
}

impl Contained {
    /// The number of a frame. The number of our own talker shows more than that of the redundancy tag, and that more than
    /// the one of AVTP, unless the talker numbers several streams together in the tag (`shares_tag`).
    #[inline]
    pub(crate) fn of(content: &Content, shares_tag: bool) -> Self {
        match (content.probe, content.redundant.filter(|_| !shares_tag), content.avtp) {
            (Some(probe), ..) => Self::Whole { run: probe.run, seq: probe.seq },
            (None, Some(tag), _) => Self::Candidate(Count::one_by_one(tag)),
            (None, None, Some(avtp)) => Self::Eight(avtp.sequence),
            (None, None, None) => content.count.map_or(Self::None, Self::Candidate),
        }
    }
}

/// A frame with its index in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    /// The frame's number in the file.
    pub(crate) frame: u64,
    /// Its timestamp, ns after the stream's first frame.
    pub(crate) at_ns: i64,
    /// Its position in the stream.
    pub(crate) index: i64,
    /// True if the talker restarted its numbers with this frame.
    pub(crate) restarts: bool,
}

/// A frame whose 8-bit number is not expected, until the following frames decide.
#[derive(Debug, Clone, Copy)]
struct Held {
    frame: u64,
    at_ns: i64,
    low: u8,
}

/// The frames lost before one on another clock: the clock of the capture was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostAtSet {
    /// So many, because the number is so far ahead.
    Ahead(u64),
    /// The number does not show how many.
    Unknown,
}

/// A frame of another run than the present one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfRun {
    pub(crate) frame: u64,
    pub(crate) at_ns: i64,
    pub(crate) seq: u64,
    /// Its number in the present run, if that continues.
    pub(crate) before: Option<u64>,
}

/// Frames without numbers after slots without a frame, until the following frames show whether they are late.
#[derive(Debug)]
struct Gap {
    /// Slots without a frame, at least 1.
    slots: u64,
    /// Number and time of the first frame after them and of the early frames that follow.
    frames: Vec<(u64, i64)>,
}

impl Gap {
    fn last_ns(&self) -> i64 {
        self.frames.last().map_or(i64::MIN, |&(_, at_ns)| at_ns)
    }
}

/// The state of counting the frames of a stream.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub(crate) schedule: Schedule,
    begun: bool,
    /// True if the first number has 8 bits.
    pub(crate) is_eight: bool,
    next: u64,
    /// Bit `number % WINDOW`, see [`position`]: that frame was seen. Frames before the first one of a run count as seen, so that
    /// they are not missing.
    seen: [u64; WORDS],
    /// The first number of the run, and the numbers before it that were seen: other frames overtook them.
    first: u64,
    before_first: Vec<u64>,
    run: Option<u32>,
    /// Frames of another run, until they are enough for a restart.
    other_run: u32,
    held_run: Vec<OfRun>,
    again: Again,
    /// Wrapping offset from a number to the frame's index.
    to_index: u64,
    held: Vec<Held>,
    /// True if all held frames are copies of the newest ones, one after the other.
    held_again: bool,
    gap: Option<Gap>,
    /// Number and time of the last frames without numbers, if their stamps are before those of others.
    back: Vec<(u64, i64)>,
    /// A frame without a number that is early, until the next one shows whether it is a frame between the others.
    early: Option<(u64, i64)>,
    /// True while frames without numbers are late.
    stalled: bool,
    last_ns: i64,
    /// Consecutive frames that are certainly missing.
    missing: u64,
    /// Lost frames; of frames without numbers, slots without a frame.
    pub(crate) lost: u64,
    pub(crate) losses: u64,
    pub(crate) longest_loss: u64,
    /// True if frames were lost where their number cannot be known.
    pub(crate) lost_unknown: bool,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) too_late: u64,
    pub(crate) restarts: u64,
    /// Frames without a number that had no slot of their own.
    pub(crate) surplus: u64,
    /// Frames without a number in a stream that has some.
    pub(crate) aside: u64,
}

impl Sequence {
    pub(crate) fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            begun: false,
            is_eight: false,
            next: 0,
            seen: [u64::MAX; WORDS],
            first: 0,
            before_first: Vec::new(),
            run: None,
            other_run: 0,
            held_run: Vec::new(),
            again: Again::default(),
            to_index: 0,
            held: Vec::new(),
            held_again: false,
            gap: None,
            back: Vec::new(),
            early: None,
            stalled: false,
            last_ns: i64::MIN,
            missing: 0,
            lost: 0,
            losses: 0,
            longest_loss: 0,
            lost_unknown: false,
            duplicates: 0,
            reordered: 0,
            too_late: 0,
            restarts: 0,
            surplus: 0,
            aside: 0,
        }
    }

    /// Adds a frame with the number after the newest one, which is the usual case, and returns its place. `None` without a change
    /// for other frames, which must be added with [`Self::add`].
    #[inline(always)]
    pub(crate) fn add_expected(&mut self, frame: u64, at_ns: i64, number: Number) -> Option<Placed> {
        let is_expected = match number {
            Number::Eight(low) => self.begun && self.held.is_empty() && self.is_expected(Held { frame, at_ns, low }),
            Number::Whole { run, seq } => {
                self.begun && seq == self.next && self.run == Some(run) && self.held_run.is_empty()
            }
            Number::Either { .. } | Number::Aside | Number::None => false,
        };
        is_expected.then(|| self.append(frame, at_ns))
    }

    /// Adds a frame, and gives each frame whose index is known to `place`. Duplicates have no index.
    pub(crate) fn add(&mut self, frame: u64, at_ns: i64, number: Number, place: &mut impl FnMut(Placed)) {
        match number {
            Number::Eight(low) => self.add_eight(Held { frame, at_ns, low }, place),
            Number::Whole { run, seq } => {
                if self.run.is_some_and(|last| last != run) {
                    return self.hold_run(run, OfRun { frame, at_ns, seq, before: None }, place);
                }
                if !self.held_run.is_empty() {
                    self.drop_run(place);
                }
                self.run = Some(run);
                if seq == self.next && self.begun {
                    place(self.append(frame, at_ns));
                } else if self.was_seen(seq) {
                    self.add_again(OfRun { frame, at_ns, seq, before: None }, place);
                } else {
                    self.assign(frame, at_ns, seq, false, place);
                }
            }
            Number::Either { run, seq, ahead } => {
                let before = self.next.checked_add_signed(ahead.into());
                self.hold_run(run, OfRun { frame, at_ns, seq, before }, place);
            }
            Number::Aside => self.aside += 1,
            Number::None => self.add_unnumbered(frame, at_ns, place),
        }
    }

    /// Adds a frame of another run. Enough of them in a row are a restart.
    #[cold]
    fn hold_run(&mut self, run: u32, one: OfRun, place: &mut impl FnMut(Placed)) {
        if self.other_run != run {
            self.drop_run(place);
            self.other_run = run;
        }
        self.held_run.push(one);
        if self.held_run.len() == RESTARTED {
            self.begin_run(place);
        }
    }

    /// Gives the held frames of another run their numbers in the run before, because that continues. Without one, they are too
    /// late.
    #[cold]
    fn drop_run(&mut self, place: &mut impl FnMut(Placed)) {
        for OfRun { frame, at_ns, before, .. } in std::mem::take(&mut self.held_run) {
            match before {
                Some(number) => self.assign(frame, at_ns, number, false, place),
                None => self.too_late += 1,
            }
        }
    }

    /// Begins the run of the held frames.
    fn begin_run(&mut self, place: &mut impl FnMut(Placed)) {
        let held = std::mem::take(&mut self.held_run);
        self.run = Some(self.other_run);
        self.begin_with(&held, place);
    }

    /// Begins a run with these frames.
    fn begin_with(&mut self, frames: &[OfRun], place: &mut impl FnMut(Placed)) {
        let Some(first) = frames.first() else { return };
        self.flush_frames(place);
        self.restart(first.seq);
        for (n, &OfRun { frame, at_ns, seq, .. }) in frames.iter().enumerate() {
            self.assign(frame, at_ns, seq, n == 0, place);
        }
    }

    /// True if a frame with this number is in the window.
    #[inline]
    fn was_seen(&self, number: u64) -> bool {
        self.begun && number < self.next && self.next - number <= WINDOW && self.is_seen(number)
    }

    /// Adds a frame whose number was seen before: a duplicate, or one of a talker that restarted with a number a little behind.
    #[cold]
    fn add_again(&mut self, one: OfRun, place: &mut impl FnMut(Placed)) {
        self.duplicates += 1;
        // An earlier part of the stream is in the file again.
        if self.goes_back(one.at_ns) && self.is_on_time(self.index(one.seq), one.at_ns) {
            return;
        }
        if let Some(row) = self.again.add(one, self.next, &self.schedule) {
            self.duplicates -= row.len() as u64;
            self.begin_with(&row, place);
        }
    }

    /// Adds a frame without a number. Frames whose stamps go back are held, until the following ones show whether they are in
    /// the wrong order, or the clock of the capture was set.
    #[inline]
    fn add_unnumbered(&mut self, frame: u64, at_ns: i64, place: &mut impl FnMut(Placed)) {
        if self.begun && self.schedule.is_before(at_ns, self.newest_ns()) {
            self.back.push((frame, at_ns));
            if self.back.len() == LOOKAHEAD {
                self.place_after_set(place);
            }
            return;
        }
        if !self.back.is_empty() {
            self.place_back(place);
        }
        self.add_in_order(frame, at_ns, place);
    }

    /// The time of the newest frame without a number.
    #[inline]
    fn newest_ns(&self) -> i64 {
        self.gap.as_ref().map_or(self.last_ns, |gap| gap.last_ns().max(self.last_ns))
    }

    /// Places the frames whose stamps went back after the clock of the capture was set.
    #[cold]
    fn place_after_set(&mut self, place: &mut impl FnMut(Placed)) {
        for (frame, at_ns) in std::mem::take(&mut self.back) {
            self.add_in_order(frame, at_ns, place);
        }
    }

    /// Places the frames whose stamps went back, because the next one continues those before: in the slots of their times, or
    /// after the clock of the capture was set if these slots had frames.
    #[cold]
    fn place_back(&mut self, place: &mut impl FnMut(Placed)) {
        self.end_gap(true, place);
        let number = |at_ns| self.next.saturating_add_signed(self.schedule.slots_late(self.index(self.next), at_ns));
        let numbers: Vec<u64> = self.back.iter().map(|&(_, at_ns)| number(at_ns)).collect();
        let missing = numbers.iter().filter(|&&number| number < self.next && !self.was_seen(number)).count();
        if 2 * missing < numbers.len() {
            return self.place_after_set(place);
        }
        for ((frame, at_ns), number) in std::mem::take(&mut self.back).into_iter().zip(numbers) {
            if number >= self.next || self.was_seen(number) {
                self.surplus += 1;
            } else {
                self.assign(frame, at_ns, number, false, place);
            }
        }
    }

    #[inline]
    fn add_in_order(&mut self, frame: u64, at_ns: i64, place: &mut impl FnMut(Placed)) {
        if let Some(mut gap) = self.gap.take() {
            let in_order = at_ns >= gap.last_ns();
            let index = self.index(self.next.wrapping_add(gap.slots).wrapping_add(1));
            let catches_up = in_order && self.schedule.is_early(index, at_ns, CATCHES_UP);
            if catches_up {
                gap.frames.push((frame, at_ns));
            }
            // One more frame in a slot is a duplicate.
            let is_stall = gap.slots >= CAUGHT_UP && gap.frames.len() as u64 > CAUGHT_UP;
            self.gap = Some(gap);
            self.stalled |= is_stall;
            if is_stall || !catches_up {
                self.end_gap(in_order && !is_stall, place);
            }
            if catches_up {
                return;
            }
        }
        if let Some((early, early_ns)) = self.early.take() {
            if self.schedule.is_near(self.index(self.next), at_ns) {
                self.surplus += 1;
            } else {
                self.place_next(early, early_ns, place);
            }
        }
        let index = self.index(self.next);
        let is_late = self.begun && self.schedule.slots_late(index, at_ns) > 0;
        let slots = if is_late && !self.stalled { self.schedule.whole_slots_late(index, at_ns) } else { 0 };
        if slots > 0 {
            self.gap = Some(Gap { slots, frames: vec![(frame, at_ns)] });
        } else {
            let is_early = |part| self.schedule.is_early(index, at_ns, part);
            let may_be_between = self.begun && at_ns >= self.last_ns && is_early(BETWEEN) && !is_early(SECOND);
            self.stalled = is_late;
            if may_be_between {
                self.early = Some((frame, at_ns));
            } else {
                self.place_next(frame, at_ns, place);
            }
        }
    }

    /// Assigns the frames after slots without a frame: to the slots near them if frames are missing.
    fn end_gap(&mut self, is_missing: bool, place: &mut impl FnMut(Placed)) {
        let Some(Gap { slots, frames }) = self.gap.take() else { return };
        let mut frames = frames.into_iter().peekable();
        if let Some((frame, at_ns)) = frames.next_if(|_| is_missing) {
            self.last_ns = at_ns;
            self.assign(frame, at_ns, self.next.saturating_add(slots), false, place);
        }
        frames.for_each(|(frame, at_ns)| self.place_next(frame, at_ns, place));
    }

    /// Assigns the next slot to a frame without a number, unless it is early.
    #[inline]
    fn place_next(&mut self, frame: u64, at_ns: i64, place: &mut impl FnMut(Placed)) {
        // A frame is not sent before its slot, so it is a second frame of the slot before. If the time steps back, the clock
        // was set.
        let early = self.begun && self.schedule.is_early(self.index(self.next), at_ns, SECOND);
        if early && at_ns >= self.last_ns {
            self.surplus += 1;
        } else {
            if early {
                self.schedule.restart();
            }
            self.assign(frame, at_ns, self.next, false, place);
        }
        self.last_ns = at_ns;
    }

    #[inline(always)]
    fn add_eight(&mut self, held: Held, place: &mut impl FnMut(Placed)) {
        if !self.begun {
            self.is_eight = true;
            self.assign(held.frame, held.at_ns, FIRST | u64::from(held.low), false, place);
        } else if self.held.is_empty() && self.is_expected(held) {
            place(self.append(held.frame, held.at_ns));
        } else {
            self.add_unexpected(held, place);
        }
    }

    /// True if this is the number after the newest one, and less time has passed than that of all numbers.
    #[inline(always)]
    fn is_expected(&self, held: Held) -> bool {
        let silence = SILENCE.max(self.schedule.uneven as f64 + 2.0);
        self.ahead(held) == 0 && self.schedule.follows_within(self.index(self.next), held.at_ns, silence)
    }

    /// Adds a frame whose number is not expected, or that follows one that is not decided yet.
    fn add_unexpected(&mut self, held: Held, place: &mut impl FnMut(Placed)) {
        if !self.held.is_empty() {
            self.hold(held);
            if self.held.len() >= LOOKAHEAD && !self.may_be_last_copies() {
                self.decide(place);
            }
        } else if let Some(number) = self.evident(held) {
            self.assign(held.frame, held.at_ns, number, false, place);
        } else {
            self.hold(held);
        }
    }

    /// The full number of a frame with an unexpected one, if the frame and its time show it without doubt.
    fn evident(&self, held: Held) -> Option<u64> {
        let ahead = self.ahead(held);
        let after_newest = self.room_after_newest(held);
        // Frames were lost if the time for them has passed, and not more.
        let in_slots = || self.lost_in(ahead, self.room(held)).filter(|&lost| self.can_be_lost(lost, held));
        let lost = self.lost_in(ahead, after_newest).or_else(in_slots);
        if let Some(lost) = lost {
            return Some(self.next.saturating_add(lost));
        }
        if self.may_be_set_back(held) {
            return None;
        }
        // A frame that was missing, and not one that overtook few others, or a duplicate, because the slot of the next frame has not come.
        let behind = self.behind(ahead);
        let is_missing =
            ahead > FEW_OVERTAKEN && !self.is_seen(behind) && self.schedule.is_soon(self.index(self.next), held.at_ns);
        let is_duplicate =
            ahead >= WINDOW / 2 && after_newest < -self.schedule.uneven || ahead > 0 && self.is_in_file_again(held);
        (is_missing || is_duplicate).then_some(behind)
    }

    /// Decides about the first held frame with the frames after it.
    fn decide(&mut self, place: &mut impl FnMut(Placed)) {
        let are_last_copies = self.may_be_last_copies();
        let first = self.held.remove(0);
        let mut rest = std::mem::take(&mut self.held);
        let later = rest.split_off(rest.len().min(LOOKAHEAD - 1));
        let ahead = self.ahead(first);
        let room = self.room(first);
        // True if the first frame would have overtaken some of the others. After a long loss, the numbers of later frames
        // are smaller because they are modulo 256.
        let overtaken = rest.iter().any(|other| self.ahead(*other) < ahead && !follows(first, *other));
        // True if the others continue without the first frame, and no later than it.
        let latest = self.room_after_newest(first).max(0) + self.schedule.uneven;
        let in_time = |other: Held| self.room_after_newest(other) - self.ahead(other).cast_signed() <= latest;
        let continued = rest.iter().zip(1..).any(|(other, n)| self.ahead(*other) < ahead.min(2 * n) && in_time(*other));
        let last = rest.last().copied().unwrap_or(first);
        let by_time = self.lost_by_time(first, last).filter(|_| !overtaken);
        let lost = ahead.cast_signed();
        // If all frames before it still come, or many of the others overtook each other, its time does not show how many are lost.
        let comes = |n: u64| rest.iter().any(|other| self.ahead(*other) == n);
        let overtakes_all = ahead <= FEW_OVERTAKEN && (0..ahead).all(comes);
        let back = rest.windows(2).filter(|pair| !follows(pair[0], pair[1])).count();
        let is_disordered = !comes(ahead) && (overtakes_all || back * DISORDERED > rest.len());
        let is_close = ahead <= OVERTAKES && (lost <= room || lost == room + 1 && overtaken || is_disordered);
        // A talker that restarts with a number a little behind goes on to the newest numbers.
        let is_late = self.is_just_missing(first) && !rest.iter().any(|other| self.is_newest_again(*other));
        let at_set = self.lost_at_set(first, &rest);
        if are_last_copies && rest.len() + 1 == LOOKAHEAD && at_set.is_none() && by_time.is_none() {
            let all = std::iter::once(first).chain(rest).chain(later);
            all.for_each(|one| self.assign(one.frame, one.at_ns, self.behind(self.ahead(one)), false, place));
            return;
        }
        // A talker that restarts after any time begins with 0, too, which can be a little ahead.
        let begins = first.low == 0 && ahead > 0 && by_time.is_none() && !self.may_be_set_back(first);
        let begins = begins && lost <= room && !overtaken && !is_disordered && (is_close || at_set.is_some());
        let number = if begins {
            None
        } else if let Some(LostAtSet::Ahead(lost)) = at_set {
            if self.may_be_set_back(first) {
                self.schedule.restart();
            }
            Some(self.next.saturating_add(lost))
        } else if at_set.is_some() {
            None
        } else if let Some(lost) = by_time {
            Some(self.next.saturating_add(lost))
        } else if ahead == 0 || is_close && room <= SILENCE_MAX {
            Some(self.next.saturating_add(ahead))
        } else if continued || are_last_copies || is_late {
            Some(self.behind(ahead))
        } else if self.is_lost_by_pace(first, &rest) {
            Some(self.next.saturating_add(ahead))
        } else {
            None
        };
        match number {
            Some(number) => self.assign(first.frame, first.at_ns, number, false, place),
            None if rest.is_empty() => self.too_late += 1,
            None => {
                self.lost_unknown |= begins || at_set.is_some() || self.may_be_set(first, &rest);
                self.flush_seen();
                self.restart(FIRST | u64::from(first.low));
                let is_set = at_set.is_some() && !begins;
                if is_set {
                    self.schedule.restart();
                }
                self.assign(first.frame, first.at_ns, self.next, !is_set, place);
            }
        }
        rest.into_iter().chain(later).for_each(|held| self.add_eight(held, place));
    }

    /// Holds a frame until the following ones decide about it.
    fn hold(&mut self, held: Held) {
        let is_next = match self.held.last() {
            Some(last) => self.held_again && held.low == last.low.wrapping_add(1),
            // After a short loss, all numbers are a little ahead.
            None => self.ahead(held) > OVERTAKES,
        };
        self.held_again = is_next && self.is_copy(held);
        self.held.push(held);
    }

    /// True if the stream perhaps ends with the held frames, and frames with their numbers were the newest ones: copies of
    /// these. A talker that restarts goes on to later numbers. More copies than a restart has to show come one by one.
    fn may_be_last_copies(&self) -> bool {
        if self.held.len() >= LOOKAHEAD {
            return self.held_again;
        }
        self.held.iter().all(|&held| self.is_newest_again(held))
    }

    /// True if the frame with this number is missing, and others just after it came.
    fn is_just_missing(&self, held: Held) -> bool {
        let ahead = self.ahead(held);
        WINDOW - ahead <= OVERTAKES && !self.is_seen(self.behind(ahead))
    }

    /// True if this frame has one of the newest numbers, which came before.
    fn is_newest_again(&self, held: Held) -> bool {
        self.is_copy(held) && WINDOW - self.ahead(held) <= OVERTAKES
    }

    /// True if a frame with this number is among the newest ones.
    fn is_copy(&self, held: Held) -> bool {
        let ahead = self.ahead(held);
        ahead > 0 && self.is_seen(self.behind(ahead))
    }

    /// The frames lost before `first`, if it and `rest` continue the numbers on a clock that was set; `None` if they do not,
    /// or if the clock was not set.
    fn lost_at_set(&self, first: Held, rest: &[Held]) -> Option<LostAtSet> {
        let (ahead, room) = (self.ahead(first), self.room_after_newest(first));
        let few = |most: u64| if ahead < most { LostAtSet::Ahead(ahead) } else { LostAtSet::Unknown };
        let lost = if self.may_be_set_back(first) {
            // A talker that restarts does not set the clock of the capture.
            if self.is_of_earlier_time(first) { LostAtSet::Unknown } else { few(WINDOW / 2) }
        } else if room > SILENCE_MAX && (ahead <= OVERTAKES || first.low >= BEGINS_BELOW) {
            if self.counts_slots(room) { few(OVERTAKES + 1) } else { LostAtSet::Unknown }
        } else if ahead > 0
            && (ahead.cast_signed() - room).unsigned_abs() <= ahead / 4
            && (first.low >= BEGINS_BELOW || self.have_passed(ahead, room as f64))
        {
            LostAtSet::Ahead(ahead)
        } else {
            return None;
        };
        self.keeps_time(first, rest).then_some(lost)
    }

    /// True if frames were perhaps lost while the clock of the capture was set: neither the number nor the time of `first`
    /// continues, and the number is not that of a talker that restarts.
    fn may_be_set(&self, first: Held, rest: &[Held]) -> bool {
        let apart = self.room_after_newest(first).abs() > APART_MAX + self.schedule.uneven;
        apart && first.low >= BEGINS_BELOW && self.keeps_time(first, rest)
    }

    /// True if this frame is earlier than the newest one, so that the clock of the capture may have been set back. It was not if
    /// the number is as far behind: then an earlier part of the stream is in the file again.
    fn may_be_set_back(&self, held: Held) -> bool {
        self.goes_back(held.at_ns) && !self.is_in_file_again(held)
    }

    /// True if this frame is as far behind the newest one by its number as by its stamp.
    fn is_in_file_again(&self, held: Held) -> bool {
        let behind = (WINDOW - self.ahead(held)).cast_signed();
        self.goes_back(held.at_ns) && (self.room_after_newest(held) + behind).abs() <= 1 + self.schedule.uneven
    }

    /// True if a frame at this time was captured before the newest one.
    fn goes_back(&self, at_ns: i64) -> bool {
        self.schedule.goes_back(self.index(self.next), at_ns)
    }

    /// True if a frame with this index was captured at about its time.
    fn is_on_time(&self, index: i64, at_ns: i64) -> bool {
        self.schedule.slots_late(index, at_ns).abs() <= APART_MAX + self.schedule.uneven
    }

    /// True if the number of this frame, modulo 256, is as much earlier as its stamp: the parts of the file are not in the order
    /// of their times, and the frames between were not lost.
    fn is_of_earlier_time(&self, first: Held) -> bool {
        let room = self.room_after_newest(first);
        let error = room as f64 * -self.schedule.period_error;
        let apart = (room - self.ahead(first).cast_signed() + 128).rem_euclid(256) - 128;
        error <= SILENCE_ERROR_MAX && apart.abs() <= 1 + self.schedule.uneven + floor(error)
    }

    /// True if most of the frames `rest` are as far from `first` by their times as by their numbers.
    fn keeps_time(&self, first: Held, rest: &[Held]) -> bool {
        let keeps_time = |other: &&Held| {
            let frames = i64::from(other.low.wrapping_sub(first.low));
            let slots = self.schedule.slots_between(first.at_ns, other.at_ns);
            frames <= FOLLOWING_MAX && (slots - frames).abs() <= APART_MAX + self.schedule.uneven
        };
        2 * rest.iter().filter(keeps_time).count() > rest.len()
    }

    /// The number of lost frames before `first` if it fits the time that passed until `last`. After a stall, frames come in a
    /// burst, so more time can have passed until `first`.
    fn lost_by_time(&self, first: Held, last: Held) -> Option<u64> {
        let following = i64::from(last.low.wrapping_sub(first.low));
        let fits = |room: fn(&Self, Held) -> i64| {
            let lost = self.lost_in(self.ahead(first), room(self, last) - following)?;
            let room = room(self, first);
            (lost.cast_signed() <= room || self.is_time_of(lost.cast_signed(), room)).then_some(lost)
        };
        (following <= FOLLOWING_MAX)
            .then(|| {
                let in_slots = || fits(Self::room).filter(|&lost| self.can_be_lost(lost, first));
                fits(Self::room_after_newest).or_else(in_slots)
            })
            .flatten()
    }

    /// True if exactly the time for the frames that the number of `first` is ahead has passed, if the talker has changed its period
    /// to that of the frames `rest`.
    fn is_lost_by_pace(&self, first: Held, rest: &[Held]) -> bool {
        let follows = |(before, next): (&Held, &Held)| {
            (next.low == before.low.wrapping_add(1)).then(|| next.at_ns.saturating_sub(before.at_ns) as f64)
        };
        let mut intervals: Vec<f64> = std::iter::once(&first).chain(rest).zip(rest).filter_map(follows).collect();
        let (ahead, enough) = (self.ahead(first) as f64, intervals.len() >= LOOKAHEAD / 2);
        let pace_ns = quantile(&mut intervals, 0.5).filter(|&ns| ns > 0.0 && enough);
        let passed = |ns| self.schedule.slots_after_newest_of(self.index(self.next), first.at_ns, ns);
        pace_ns.is_some_and(|ns| {
            let passed = passed(ns);
            (passed - ahead).abs() <= PACE_APART + PACE_ERROR * ahead && self.have_passed(self.ahead(first), passed)
        })
    }

    /// True if the slots of so many lost frames have passed, if a frame came so many slots late.
    fn have_passed(&self, lost: u64, slots: f64) -> bool {
        lost as f64 <= slots + PACE_APART + self.schedule.uneven as f64
    }

    /// False if the numbers started again since the newest frame, but less time has passed than that of all numbers. A pause
    /// before the newest frame is no time for lost ones.
    fn can_be_lost(&self, lost: u64, held: Held) -> bool {
        let room = self.room_after_newest(held);
        lost < WINDOW || lost.cast_signed() <= room || self.is_time_of(lost.cast_signed(), room)
    }

    /// The number of lost frames for which the time has passed, and not much more, if the next frame is this far ahead and
    /// came `room` slots late. Numbers are modulo 256.
    #[inline]
    fn lost_in(&self, ahead: u64, room: i64) -> Option<u64> {
        let ahead = ahead.cast_signed();
        // The first frame of a group comes after the time of all of its group: the fewest losses that this allows.
        let lost = ahead + 256 * (room - ahead - self.schedule.uneven + 128).div_euclid(256).max(0);
        (lost > 0 && self.counts_slots(room) && self.is_time_of(lost, room)).then_some(lost.unsigned_abs())
    }

    /// True if the time of so many slots distinguishes the numbers of frames that have the same 8 bits.
    #[inline]
    fn counts_slots(&self, room: i64) -> bool {
        room <= SILENCE_MAX || room as f64 * self.schedule.period_error <= SILENCE_ERROR_MAX
    }

    /// True if the time for so many lost frames has passed, and not much more, when the next frame came `room` slots late.
    #[inline]
    fn is_time_of(&self, lost: i64, room: i64) -> bool {
        // In a long silence, the clocks can wander by more than the jitter of a frame.
        let wander = i64::from(room > SILENCE_MAX);
        let error = floor(room as f64 * self.schedule.period_error) + wander + self.schedule.uneven;
        (lost - error..=lost + 1 + error).contains(&room)
    }

    /// The number of a frame that is this far ahead modulo 256, if it is behind the newest one.
    #[inline]
    fn behind(&self, ahead: u64) -> u64 {
        self.next.wrapping_add(ahead).wrapping_sub(WINDOW)
    }

    /// The distance of an 8-bit number from the expected one, 0 to 255.
    #[inline]
    fn ahead(&self, held: Held) -> u64 {
        let [expected, ..] = self.next.to_le_bytes();
        u64::from(held.low.wrapping_sub(expected))
    }

    /// The number of slots that passed without a frame before this one.
    #[inline]
    fn room(&self, held: Held) -> i64 {
        self.schedule.slots_late(self.index(self.next), held.at_ns)
    }

    /// The number of slots that passed between the newest frame and this one.
    #[inline]
    fn room_after_newest(&self, held: Held) -> i64 {
        self.schedule.slots_after_newest(self.index(self.next), held.at_ns)
    }

    #[inline]
    fn index(&self, number: u64) -> i64 {
        number.wrapping_add(self.to_index).cast_signed()
    }

    /// Starts a run with `number`, which continues directly after the previous run.
    fn restart(&mut self, number: u64) {
        let index = self.next.wrapping_add(self.to_index);
        (self.next, self.to_index) = (number, index.wrapping_sub(number));
        self.begin_seen(number);
    }

    /// Forgets which frames were seen: the run begins with this number.
    fn begin_seen(&mut self, number: u64) {
        self.seen = [u64::MAX; WORDS];
        self.first = number;
        self.before_first.clear();
    }

    /// Assigns the number after the newest one to a frame: the usual case of [`Self::assign`].
    #[inline(always)]
    fn append(&mut self, frame: u64, at_ns: i64) -> Placed {
        let index = self.index(self.next);
        self.advance(self.next);
        self.schedule.add(index, at_ns);
        Placed { frame, at_ns, index, restarts: false }
    }

    /// Assigns a number to a frame.
    #[inline(never)]
    fn assign(&mut self, frame: u64, at_ns: i64, number: u64, restarts: bool, place: &mut impl FnMut(Placed)) {
        if !self.begun {
            (self.begun, self.next, self.to_index) = (true, number, number.wrapping_neg());
            self.begin_seen(number);
        }
        let index = self.index(number);
        if number >= self.next {
            self.restarts += u64::from(restarts);
            self.advance(number);
            if restarts {
                self.schedule.restart();
            }
            self.schedule.add(index, at_ns);
        } else if self.next - number > WINDOW {
            self.too_late += 1;
            // It was captured in time, and is at another place in the file: it counted as lost there.
            self.lost_unknown |= self.is_on_time(index, at_ns);
            return;
        } else if self.is_seen(number) {
            self.duplicates += 1;
            return;
        } else {
            self.set_seen(number, true);
            self.reordered += 1;
        }
        place(Placed { frame, at_ns, index, restarts });
    }

    #[inline]
    fn is_seen(&self, number: u64) -> bool {
        if self.may_be_overtaken(number) {
            return self.before_first.contains(&number);
        }
        let (word, bit) = position(number);
        self.seen[word] >> bit & 1 == 1
    }

    /// True if the frame with this number is so little before the first one that it can have been overtaken, and was not captured
    /// before.
    #[inline]
    fn may_be_overtaken(&self, number: u64) -> bool {
        number < self.first && self.first - number <= OVERTAKES && self.next - number <= 2 * OVERTAKES
    }

    #[inline]
    fn set_seen(&mut self, number: u64, seen: bool) {
        if self.may_be_overtaken(number) {
            return self.before_first.push(number);
        }
        let (word, bit) = position(number);
        self.seen[word] = self.seen[word] & !(1 << bit) | u64::from(seen) << bit;
    }

    /// Makes `number` the newest. Frames that leave the window are final.
    #[inline(always)]
    fn advance(&mut self, number: u64) {
        if number > self.next {
            self.skip(number - self.next);
        }
        let (word, bit) = position(number);
        self.finalize(self.seen[word] >> bit & 1 == 1);
        self.seen[word] |= 1 << bit;
        self.next = number.saturating_add(1);
    }

    /// Appends so many missing frames as the newest ones.
    #[cold]
    fn skip(&mut self, skipped: u64) {
        for missing in self.next..self.next + skipped.min(WINDOW) {
            self.finalize(self.is_seen(missing));
            self.set_seen(missing, false);
        }
        if skipped > WINDOW {
            self.missing = self.missing.saturating_add(skipped - WINDOW);
        }
    }

    /// Counts the frame that leaves the window as seen or missing.
    #[inline]
    fn finalize(&mut self, seen: bool) {
        if !seen {
            self.missing = self.missing.saturating_add(1);
        } else if self.missing > 0 {
            self.lost = self.lost.saturating_add(self.missing);
            self.losses += 1;
            self.longest_loss = self.longest_loss.max(self.missing);
            self.missing = 0;
        }
    }

    /// True if stamps that are multiples of this, or all equal if it is 0, do not show which of the frames with the same 8 bits
    /// came.
    pub(crate) fn is_hidden_by(&self, step_ns: u64, interval_ns: f64) -> bool {
        self.is_eight && (step_ns == 0 || step_ns as f64 >= SILENCE * interval_ns)
    }

    /// The number of faults by the numbers, without duplicates.
    pub(crate) fn unexpected(&self) -> u64 {
        self.lost + self.reordered + self.too_late + self.restarts
    }

    /// Finalizes the remaining frames at the end of the stream.
    pub(crate) fn flush(&mut self, place: &mut impl FnMut(Placed)) {
        // A single frame of another run does not show a restart, and neither do frames with earlier numbers of this run.
        let is_new = |one: &OfRun| one.before.is_none_or(|before| before >= self.next);
        if self.held_run.len() > 1 && self.held_run.iter().any(is_new) {
            self.begin_run(place);
        }
        self.drop_run(place);
        self.flush_frames(place);
    }

    /// Finalizes the remaining frames of a run.
    fn flush_frames(&mut self, place: &mut impl FnMut(Placed)) {
        while !self.held.is_empty() {
            self.decide(place);
        }
        self.place_after_set(place);
        self.end_gap(true, place);
        if let Some((frame, at_ns)) = self.early.take() {
            self.place_next(frame, at_ns, place);
        }
        self.flush_seen();
    }

    fn flush_seen(&mut self) {
        // Bit `next % WINDOW` is that of the oldest frame.
        (0..WINDOW).for_each(|n| self.finalize(self.is_seen(self.next.wrapping_add(n))));
        self.begin_seen(self.next);
    }
}

/// True if the number of `other` is after that of `first`, by less than half of the window.
fn follows(first: Held, other: Held) -> bool {
    u64::from(other.low.wrapping_sub(first.low)) < WINDOW / 2
}

/// The word and the bit of a number in the window.
#[inline]
fn position(number: u64) -> (usize, u64) {
    let [low, ..] = number.to_le_bytes();
    (usize::from(low) / 64, number % 64)
}

#[cfg(test)]
mod tests;
