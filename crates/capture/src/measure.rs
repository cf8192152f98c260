//! The second pass through a file: all figures of the selected stream.

use std::ops::Range;

use frames::{Content, Count, Head, wire_bytes};
use record::{
    CAPTURE, Capture, CaptureClock, CapturedShaper, CapturedStep, LargestFrames, Maxima, NumberedBy, PeriodSource,
    Series, SeriesKind, Spike, StepKind, WORST_KEPT, Worst, saturating::Saturating,
};

use crate::convert::nearest;
use crate::{
    Packet,
    copies::{Copies, Ends, Recent},
    counter::Counter,
    fit::Grid,
    groups::Places,
    lateness::{Late, Lateness, Step},
    presentation::Presentation,
    schedule::Schedule,
    sequence::{Contained, Number, Placed, Sequence},
    shaper::Shaper,
    spacing::Spacing,
    tally::Tally,
    track::{SAME_PERIOD, extended},
    wander::Turn,
};

/// The smallest tolerance for late packets, ns.
const TOLERANCE_MIN_NS: u64 = 1000;

/// In a burst of at most so many frames, the time shows which of those with the same 8 bits came.
const SHORT_BURST: u64 = 16;
/// Drift after a pause of at least this long is another change of the grid, ns.
const DRIFT_PAUSE_NS: i64 = 1_000_000_000;

/// The nominal period of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nominal {
    pub(crate) ns: u64,
    pub(crate) told_by: PeriodSource,
}

/// The reference with which a stream is compared.
pub(crate) struct Reference {
    pub(crate) nominal: Nominal,
    pub(crate) grid: Grid,
    /// The bandwidth that the stream reserves, bit/s; `None` if it is not known.
    pub(crate) idle_slope_bps: Option<u64>,
    pub(crate) idle_slope_asked: bool,
    /// True for a stream of class B, which waits for class A.
    pub(crate) is_class_b: bool,
    pub(crate) link_bps: u64,
    /// The rate of the talker's clock relative to the capture's. The shaper runs on the talker's clock.
    pub(crate) clock_ratio: f64,
    /// The resolution of timestamps: that of the file, or the one found in its intervals if that is coarser, ns.
    pub(crate) resolution_ns: u64,
    /// Why the lateness of the frames cannot be known; `None` if it can.
    pub(crate) lateness_unknown: Option<String>,
    /// Extends the numbers of the frames, if the protocol has some that count.
    pub(crate) counter: Option<Counter>,
    /// The clock of the capture, if it is tied to that of the talker.
    pub(crate) clock: Option<CaptureClock>,
    /// True if the timestamps differ, in steps that show intervals of a quarter of the period.
    pub(crate) shows_intervals: bool,
    /// True if the talker repeats frames of a new state at growing intervals.
    pub(crate) changes_state: bool,
    /// True if the frames are sent in bursts of different lengths.
    pub(crate) bursts_differ: bool,
    /// True if the frames come at irregular times, so that the time does not show which of the frames with the same 8 bits came.
    pub(crate) is_irregular: bool,
    /// Greatest common divisor of all intervals, ns; 0 if all timestamps are equal.
    pub(crate) step_ns: u64,
    /// True if clocks can wander within the stretches to whose earliest frames the grid was fitted.
    pub(crate) may_wander_within: bool,
    /// True if the talker numbers several streams together in the redundancy tags.
    pub(crate) shares_tag: bool,
    /// True if the talker skips many slots of a grid that has one phase for the whole stream.
    pub(crate) skips_many: bool,
}

/// The state of measuring a stream. Times are ns after its first frame.
pub(crate) struct Measure {
    reference: Reference,
    tolerance_ns: i64,
    first_ns: Option<i64>,
    last_ns: i64,
    /// The largest of all times; not negative.
    latest_ns: i64,
    frames: u64,
    numbered_by: NumberedBy,
    copies: Copies,
    recent: Recent,
    spacing: Spacing,
    sequence: Sequence,
    on_grid: OnGrid,
    shaper: Option<Shaper>,
    presentation: Presentation,
    expired: Expired,
}

/// The frames whose index is known, compared with the grid.
struct OnGrid {
    places: Places,
    lateness: Lateness,
    late: LatenessTally,
    steps: Steps,
}

impl OnGrid {
    #[inline(always)]
    fn add(&mut self, placed: Placed) {
        let Self { places, lateness, late, steps } = self;
        places.add(placed.index, placed.at_ns);
        lateness.add(placed, &mut |some| late.add_all(some), &mut |step| steps.add(step));
    }

    fn end(&mut self) {
        let Self { lateness, late, steps, .. } = self;
        lateness.end(&mut |some| late.add_all(some), &mut |step| steps.add(step));
    }
}

/// The lateness of all frames whose slot is known.
struct LatenessTally {
    all: Tally,
    largest: LargestFrames,
    spikes: Worst,
    maxima: Maxima,
    /// The window of `maxima` that a frame was added to, and the lateness of that frame, ns.
    window: (Range<u64>, i64),
    late: u64,
    late_packets: u64,
    missed_slots: u64,
    early: u64,
    max: (i64, u64),
    /// The grid interval of the last frame, and its number of frames.
    interval: (i64, u64),
    window_violations: u64,
    tolerance_ns: i64,
    group: u64,
    group_ns: f64,
    half_group_ns: u64,
}

/// Frames that came after the time allowed to live of the frame before.
#[derive(Default)]
struct Expired {
    /// The end of the time of the last frame, ns; `None` before the first one.
    until_ns: Option<i64>,
    count: u64,
    worst: LargestFrames,
}

impl Expired {
    #[inline(never)]
    fn add(&mut self, frame: u64, at_ns: i64, allowed_ms: u32) {
        let until_ns = self.until_ns.replace(at_ns.saturating_add(i64::from(allowed_ms) * 1_000_000));
        let late_ns = until_ns.map_or(0, |until_ns| at_ns.saturating_sub(until_ns));
        if late_ns > 0 {
            self.count += 1;
            self.worst.add(frame, at_ns, late_ns);
        }
    }
}

/// The changes of the grid. Drift that continues is one change.
struct Steps {
    kept: Vec<CapturedStep>,
    total: u64,
    clock: u64,
    /// If the last change was drift: when it was seen last, and the lateness before it, ns.
    drift: Option<(i64, i64)>,
    /// True if some change was drift, and if some was one of the phase.
    has_drift: bool,
    has_phase: bool,
    /// The changes of a clock's rate that are still to come, the next one last.
    turns: Vec<Turn>,
    /// When the next one comes, ns; the largest time if there is none.
    next_turn_ns: i64,
}

impl Measure {
    pub(crate) fn new(mut reference: Reference) -> Self {
        let nominal_ns = reference.nominal.ns;
        let part_of_period_ns = (nominal_ns / 100).max(TOLERANCE_MIN_NS);
        // The difference of two timestamps is wrong by less than their resolution. A resolution of 1 ns is exact.
        let rounding_ns = if reference.resolution_ns > 1 { reference.resolution_ns } else { 0 };
        let tolerance_ns = part_of_period_ns.saturating_add(rounding_ns).min(i64::MAX.unsigned_abs());
        let grid = &reference.grid;
        let period_error = if grid.wander_ns.is_some() { 2.0 * grid.slope_error + grid.wander.rate_max() } else { 1.0 };
        let schedule = Schedule::new(grid.period_ns, Some(grid.origin_ns), grid.offsets_ns.len().max(1))
            .with_period_error(period_error)
            .with_resolution(reference.resolution_ns);
        let period_error = schedule.period_error;
        if let Some(counter) = reference.counter.as_mut().filter(|_| reference.lateness_unknown.is_none()) {
            counter.set_interval(grid.period_ns, period_error);
        }
        let lateness = Lateness::new(grid.clone(), tolerance_ns.cast_signed());
        Self {
            tolerance_ns: tolerance_ns.cast_signed(),
            first_ns: None,
            last_ns: 0,
            latest_ns: 0,
            frames: 0,
            numbered_by: NumberedBy::Nothing,
            copies: Copies::default(),
            recent: Recent::default(),
            spacing: Spacing::new(nominal_ns, grid.frames(), nearest(grid.idle_ns())),
            sequence: Sequence::new(schedule),
            on_grid: OnGrid {
                places: Places::new(grid.frames(), grid.period_ns),
                lateness: if reference.skips_many { lateness.with_one_phase() } else { lateness },
                late: LatenessTally::new(tolerance_ns.cast_signed(), grid),
                steps: Steps::new(&grid.wander.turns),
            },
            shaper: reference.idle_slope_bps.map(|bps| {
                let idle_slope = bps as f64 * reference.clock_ratio;
                Shaper::new(idle_slope, reference.link_bps, tolerance_ns, reference.is_class_b)
            }),
            presentation: Presentation::new(
                reference.clock,
                grid.period_ns,
                (reference.nominal.told_by != PeriodSource::Median).then(|| nominal_ns as f64 / grid.frames() as f64),
            ),
            expired: Expired::default(),
            reference,
        }
    }

    /// Adds a frame as [`Self::add`] does, without a second copy of its code in the loop over all frames.
    #[cold]
    pub(crate) fn add_rare(&mut self, packet: &Packet, head: &Head, content: &Content) {
        self.add(packet, head, content);
    }

    /// Adds a frame of the stream. Frames without a timestamp are ignored.
    #[inline(always)]
    pub(crate) fn add(&mut self, packet: &Packet, head: &Head, content: &Content) {
        if self.copies.contain(content, packet.at_ns) {
            return;
        }
        let Some(stamp_ns) = packet.at_ns else { return };
        let at_ns = stamp_ns.minus(*self.first_ns.get_or_insert(stamp_ns));
        let goes_back = at_ns < self.last_ns;
        self.last_ns = at_ns;
        self.latest_ns = self.latest_ns.max(at_ns);
        self.frames += 1;
        self.presentation.add(packet.number, at_ns, stamp_ns, content);
        let contained = Contained::of(content, self.reference.shares_tag);
        if let Contained::Candidate(Count { state: Some(state), .. }) = contained {
            self.expired.add(packet.number, at_ns, state.allowed_ms);
        }
        let number = extended(&mut self.reference.counter, contained, at_ns);
        self.numbered_by = match (contained, number) {
            (Contained::Whole { .. }, _) => NumberedBy::Talker,
            (Contained::Candidate(_), Number::Whole { .. } | Number::Eight(_))
                if content.redundant.is_some() && !self.reference.shares_tag =>
            {
                NumberedBy::RedundancyTag
            }
            (Contained::Candidate(_), Number::Whole { .. } | Number::Eight(_)) => NumberedBy::Protocol,
            (Contained::Eight(_), _) if self.numbered_by == NumberedBy::Nothing => NumberedBy::Avtp,
            _ => self.numbered_by,
        };
        if at_ns >= self.on_grid.steps.next_turn_ns {
            self.on_grid.steps.add_turn(packet.number, at_ns);
        }
        let duplicates = self.sequence.duplicates;
        match self.sequence.add_expected(packet.number, at_ns, number) {
            Some(placed) => self.on_grid.add(placed),
            None => self.add_unexpected(packet.number, at_ns, number),
        }
        let ends = Ends::of(packet.length, head.content(packet.data));
        let is_copy = self.sequence.duplicates > duplicates && self.recent.contains(&ends);
        self.recent.add(ends);
        self.spacing.add(packet.number, at_ns, is_copy);
        if let Some(shaper) = self.shaper.as_mut().filter(|_| !is_copy) {
            if goes_back {
                shaper.restart();
            }
            shaper.add(self.reference.grid.steady_ns(at_ns), wire_bytes(packet.length as usize));
        }
    }

    #[inline(never)]
    fn add_unexpected(&mut self, frame: u64, at_ns: i64, number: Number) {
        let Self { sequence, on_grid, .. } = self;
        sequence.add(frame, at_ns, number, &mut |placed| on_grid.add(placed));
    }

    /// True if the clocks wandered within the stretches to whose earliest frames the grid was fitted, so that frames seem late.
    pub(crate) fn wanders_within(&self) -> bool {
        let Reference { lateness_unknown, may_wander_within, grid, .. } = &self.reference;
        lateness_unknown.is_none() && *may_wander_within && grid.between_ns > self.tolerance_ns as f64
    }

    /// True if the clocks wandered, or the phase changed, by more than the tolerance in a way that the slots do not follow. If they
    /// follow a wander, they follow it to half of the tolerance.
    fn is_unfollowed(&self) -> bool {
        let Reference { grid, resolution_ns, .. } = &self.reference;
        let tolerance_ns = self.tolerance_ns as f64;
        let most_ns = if grid.wander.is_none() { tolerance_ns } else { (tolerance_ns + *resolution_ns as f64) / 2.0 };
        grid.unfollowed_ns > most_ns
    }

    /// True if the frames come in groups, although the stated period, or what their numbers count, shows that a frame is due in
    /// each interval, or if the groups are not those of the talker.
    pub(crate) fn comes_in_batches(&self) -> bool {
        let Reference { nominal, grid, counter, shows_intervals, .. } = &self.reference;
        let has_stated =
            nominal.told_by != PeriodSource::Median && (grid.period_ns / nominal.ns as f64 - 1.0).abs() <= SAME_PERIOD;
        let counts_time = counter.as_ref().is_some_and(Counter::counts_time);
        self.on_grid.places.change() || *shows_intervals && (has_stated || counts_time) && self.spacing.is_in_groups()
    }

    /// The figures, added to a capture that already has those of file and stream, and the lateness series.
    pub(crate) fn finish(mut self, capture: Capture) -> (Capture, Series) {
        let Self { sequence, on_grid, .. } = &mut self;
        sequence.flush(&mut |placed| on_grid.add(placed));
        on_grid.end();
        let wanders_within = self.wanders_within();
        let clock_was_set = self.on_grid.steps.clock > 0 || self.spacing.out_of_order > 0;
        let why = if self.on_grid.places.change() {
            Some(
                "the groups of frames begin at changing places: a card or a driver probably makes them, and the stamps show only \
                 when each group came",
            )
        } else if self.reference.grid.frames() == 1 && self.comes_in_batches() {
            Some("frames that are due one by one come in groups: the stamps show only when each group came")
        } else if self.is_unfollowed() && !self.on_grid.steps.only_drift() {
            Some(
                "the clock of the talker or of the capture changed its rate in a way that slots cannot follow, or the stream changed \
                 its phase a little: shorter pieces show more, e.g. of 5 s (editcap -i 5)",
            )
        } else {
            None
        };
        if let Some(why) = why {
            self.reference.lateness_unknown.get_or_insert_with(|| why.to_owned());
        }
        if self.reference.lateness_unknown.is_some() {
            // Losses and intervals do not need a grid.
            let OnGrid { lateness, late, steps, .. } = &mut self.on_grid;
            (*late, *steps) = (LatenessTally::new(self.tolerance_ns, &self.reference.grid), Steps::new(&[]));
            (lateness.skipped, lateness.skips) = (0, 0);
        }
        let Self { reference, spacing, sequence, shaper, presentation, expired, .. } = self;
        let OnGrid { lateness, late, steps, .. } = self.on_grid;
        let counted = spacing.all.total > 0;
        // Without numbers, slots without a frame are found in both ways.
        let (mut skipped, mut skips) = (lateness.skipped, lateness.skips);
        if self.numbered_by == NumberedBy::Nothing {
            (skipped, skips) = (skipped + sequence.lost, skips + sequence.losses);
        }
        let surplus = sequence.surplus + lateness.surplus;
        let lost_unknown = sequence.lost_unknown || reference.counter.as_ref().is_some_and(Counter::lost_unknown);
        // In long bursts of different lengths, the time does not show which of the frames with the same 8 bits came.
        let unexpected = sequence.unexpected();
        let has_other_step = reference.counter.as_ref().is_some_and(|counter| counter.other_step().is_some());
        // A swap or a loss can look like a restart.
        let hides_order = reference.is_irregular && sequence.is_eight && sequence.restarts > 0;
        let is_ambiguous = has_other_step
            || hides_order
            || sequence.is_hidden_by(reference.step_ns, reference.grid.period_ns) && unexpected > 0
            || reference.bursts_differ && sequence.is_eight && spacing.longest_burst > SHORT_BURST && unexpected > 0;
        let by_number = |count: u64| (!lost_unknown && !is_ambiguous).then_some(count);
        let by_order = |count: u64| (!is_ambiguous).then_some(count);
        let resolution_ns = reference.resolution_ns;
        let first_ns = self.first_ns.unwrap_or(0);
        let series = Series {
            phase: CAPTURE.into(),
            role: CAPTURE.into(),
            kind: SeriesKind::Capture,
            period_ns: nearest(reference.grid.group_ns()).max(1).cast_unsigned(),
            first_deadline_ns: first_ns.saturating_add(nearest(reference.grid.origin_ns)),
            samples: late.all.total,
            missed: if reference.lateness_unknown.is_some() { 0 } else { skipped },
            early: late.early,
            min_ns: (late.all.total > 0).then_some(late.all.min_ns),
            mean_ns: late.all.mean_ns(),
            max_ns: (late.all.total > 0).then_some(late.all.max_ns),
            max_at_ns: (late.all.total > 0).then_some(late.max.1),
            jitter_ns: spacing.max_deviation_ns(),
            maxima: late.maxima,
            spikes_total: late.late,
            spikes: late.spikes.with(&[]),
            floor_ns: resolution_ns,
            ..Series::default()
        };
        let capture = Capture {
            frames: self.frames,
            first_ns,
            duration_ns: self.latest_ns.cast_unsigned(),
            min_gap_ns: counted.then_some(spacing.all.min_ns),
            mean_gap_ns: spacing.all.mean_ns(),
            max_gap_ns: counted.then_some(spacing.all.max_ns),
            max_deviation_ns: counted.then_some(spacing.max_deviation_ns()),
            worst_gaps: spacing.worst.into_vec(),
            tolerance_ns: self.tolerance_ns.cast_unsigned(),
            late: Some(late.late).filter(|_| !wanders_within),
            late_packets: Some(late.late_packets),
            missed_slots: Some(late.missed_slots),
            skipped_slots: Some(skipped),
            skips: Some(skips),
            worst_late: late.largest.into_vec(),
            numbered_by: self.numbered_by,
            lost: by_number(sequence.lost),
            losses: by_number(sequence.losses),
            longest_loss: by_number(sequence.longest_loss),
            duplicates: by_order(sequence.duplicates),
            reordered: by_order(sequence.reordered),
            too_late: by_order(sequence.too_late),
            restarts: by_order(sequence.restarts),
            surplus: Some(surplus),
            unnumbered: sequence.aside,
            expired: expired.until_ns.map(|_| expired.count),
            worst_expired: expired.worst.into_vec(),
            steps_total: Some(steps.total),
            clock_steps: Some(steps.clock),
            steps: steps.in_order(),
            frames_per_period: reference.grid.frames(),
            lateness_unknown: reference.lateness_unknown,
            bursts: (!reference.changes_state && reference.shows_intervals).then_some(spacing.bursts),
            longest_burst: spacing.longest_burst,
            window_violations: Some(late.window_violations.saturating_add(sequence.duplicates).saturating_add(surplus)),
            shaper: shaper.zip(reference.idle_slope_bps).map(|(shaper, idle_slope_bps)| CapturedShaper {
                idle_slope_bps,
                asked: reference.idle_slope_asked,
                link_bps: reference.link_bps,
                violations: shaper.violations,
                lowest_bits: shaper.lowest,
            }),
            presentation: presentation.finish(clock_was_set || reference.grid.batches_ns.is_some(), resolution_ns),
            resolution_ns,
            out_of_order: spacing.out_of_order,
            spacing: spacing.all.into_histogram(),
            ..capture
        }
        .without_unknown();
        let raw = late.all.into_histogram();
        // No correction is needed: each frame counts for its own slot, including those in a burst after a late frame.
        (capture, Series { corrected: raw.clone(), raw, ..series })
    }
}

impl LatenessTally {
    fn new(tolerance_ns: i64, grid: &Grid) -> Self {
        Self {
            all: Tally::new(),
            largest: LargestFrames::default(),
            spikes: Worst::default(),
            maxima: Maxima::default(),
            window: (0..0, 0),
            late: 0,
            late_packets: 0,
            missed_slots: 0,
            early: 0,
            max: (i64::MIN, 0),
            interval: (i64::MIN, 0),
            window_violations: 0,
            tolerance_ns,
            group: grid.frames(),
            group_ns: grid.group_ns(),
            half_group_ns: nearest(grid.group_ns() / 2.0).unsigned_abs(),
        }
    }

    fn add_all(&mut self, some: &[Late]) {
        self.all.record_all(some.iter().map(|one| one.late_ns));
        self.early += some.iter().filter(|one| one.late_ns < 0).count() as u64;
        some.iter().for_each(|one| self.add(one));
    }

    #[inline(always)]
    fn add(&mut self, &Late { frame, at_ns, index, late_ns, .. }: &Late) {
        let at = at_ns.max(0).cast_unsigned();
        self.add_maximum(at, late_ns);
        if late_ns > self.max.0 {
            self.max = (late_ns, at);
        }
        if late_ns > self.tolerance_ns {
            self.late += 1;
            self.late_packets += u64::from(late_ns.unsigned_abs() > self.half_group_ns);
            self.missed_slots += u64::from(late_ns as f64 >= self.group_ns);
            self.largest.add(frame, at_ns, late_ns);
            self.spikes.add(Spike { lateness_ns: late_ns, at_ns: at, ..Spike::default() });
        }
        let group = if self.group == 1 { index } else { index.div_euclid(self.group.cast_signed()) };
        let is_in_own = late_ns.unsigned_abs() < self.half_group_ns;
        let slots = if is_in_own { 0 } else { nearest(late_ns as f64 / self.group_ns) };
        let interval = group.plus(slots);
        let frames = if interval == self.interval.0 { self.interval.1 + 1 } else { 1 };
        self.interval = (interval, frames);
        self.window_violations += u64::from(frames > self.group);
    }

    /// Adds a frame to the maxima, unless an earlier one of its window was as late: finding the window takes a division.
    #[inline]
    fn add_maximum(&mut self, at: u64, late_ns: i64) {
        let (window, max_ns) = &self.window;
        if late_ns > *max_ns || !window.contains(&at) {
            self.maxima.add(at, late_ns);
            let start = at - at % self.maxima.window_ns;
            self.window = (start..start.saturating_add(self.maxima.window_ns), late_ns);
        }
    }
}

impl Steps {
    fn new(turns: &[Turn]) -> Self {
        let turns: Vec<Turn> = turns.iter().rev().copied().collect();
        let next_turn_ns = turns.last().map_or(i64::MAX, |turn| turn.at_ns);
        Self {
            kept: Vec::new(),
            total: 0,
            clock: 0,
            drift: None,
            has_drift: false,
            has_phase: false,
            turns,
            next_turn_ns,
        }
    }

    /// Adds the next change of a clock's rate, at its first frame.
    #[cold]
    fn add_turn(&mut self, frame: u64, at_ns: i64) {
        let ppm = self.turns.pop().map(|turn| turn.by * 1e6);
        self.next_turn_ns = self.turns.last().map_or(i64::MAX, |turn| turn.at_ns);
        self.total += 1;
        if self.kept.len() < WORST_KEPT {
            self.kept.push(CapturedStep { frame, at_ns, ns: None, ppm, kind: StepKind::Rate });
        }
    }

    /// True if drift shows how far the stream moved from the slots, and no change of the phase hides a part of it.
    fn only_drift(&self) -> bool {
        self.has_drift && !self.has_phase
    }

    /// The kept changes in the order of their frames: other changes are found later than those of a rate.
    fn in_order(mut self) -> Vec<CapturedStep> {
        self.kept.sort_by_key(|step| step.frame);
        self.kept
    }

    fn add(&mut self, Step { frame, at_ns, ns, level_ns, kind }: Step) {
        let is_drift = kind == StepKind::Drift;
        self.has_drift |= is_drift;
        self.has_phase |= kind == StepKind::Phase;
        let continued =
            self.drift.take().filter(|&(last_ns, _)| is_drift && at_ns.saturating_sub(last_ns) <= DRIFT_PAUSE_NS);
        let from_ns = continued.map_or(level_ns.saturating_sub(ns), |(_, from_ns)| from_ns);
        self.drift = is_drift.then_some((at_ns, from_ns));
        if continued.is_some() {
            let last = self.kept.iter_mut().rev().find(|step| step.kind == StepKind::Drift);
            if let Some(first) = last.filter(|_| self.total <= WORST_KEPT as u64) {
                // The stream can move back.
                let moved_ns = level_ns.saturating_sub(from_ns);
                first.ns = first.ns.filter(|ns| ns.abs() >= moved_ns.abs()).or(Some(moved_ns));
            }
            return;
        }
        self.total += 1;
        self.clock += u64::from(matches!(kind, StepKind::ClockSet | StepKind::Silence));
        if self.kept.len() < WORST_KEPT {
            self.kept.push(CapturedStep {
                frame,
                at_ns,
                ns: (kind != StepKind::Restart).then_some(ns),
                ppm: None,
                kind,
            });
        }
    }
}
