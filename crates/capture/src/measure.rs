//! The second pass through a file: all figures of the selected stream.

use frames::{Parsed, wire_bytes};
use record::{CAPTURE, Capture, CapturedShaper, Maxima, NumberedBy, Series, SeriesKind, Spike, Worst};

use crate::convert::nearest;
use crate::{
    Packet,
    fit::Grid,
    lateness::{Late, Lateness},
    sequence::{Arrival, Number, Sequence},
    shaper::Shaper,
    spacing::{Largest, Spacing},
    tally::Tally,
    track::Nominal,
};

/// The reference with which a stream is compared.
pub(crate) struct Reference {
    pub(crate) nominal: Nominal,
    pub(crate) grid: Grid,
    pub(crate) idle_slope_bps: u64,
    pub(crate) idle_slope_asked: bool,
    pub(crate) link_bps: u64,
    /// The rate of the talker's clock relative to the capture's. The shaper runs on the talker's clock.
    pub(crate) clock_ratio: f64,
    /// The resolution of timestamps according to the file, ns.
    pub(crate) resolution_ns: u64,
}

/// The state of measuring a stream. Times are ns after its first frame.
pub(crate) struct Measure {
    reference: Reference,
    tolerance_ns: i64,
    first_ns: Option<i64>,
    last_ns: i64,
    last_slot: Option<i64>,
    frames: u64,
    numbered_by: NumberedBy,
    window_violations: u64,
    spacing: Spacing,
    sequence: Sequence,
    lateness: Lateness,
    shaper: Shaper,
    late: LatenessTally,
}

/// The lateness of all frames whose slot is known.
struct LatenessTally {
    all: Tally,
    largest: Largest,
    spikes: Worst,
    maxima: Maxima,
    late: u64,
    missed_slots: u64,
    early: u64,
    max: (i64, u64),
}

impl Measure {
    pub(crate) fn new(reference: Reference) -> Self {
        let nominal_ns = reference.nominal.ns;
        let tolerance_ns = (nominal_ns / 100).max(1000);
        // Frames that are early by less than the timestamp resolution count as on time for the shaper.
        let slack_ns = tolerance_ns.max(reference.resolution_ns);
        Self {
            tolerance_ns: tolerance_ns.cast_signed(),
            first_ns: None,
            last_ns: 0,
            last_slot: None,
            frames: 0,
            numbered_by: NumberedBy::Nothing,
            window_violations: 0,
            spacing: Spacing::new(nominal_ns),
            sequence: Sequence::default(),
            lateness: Lateness::new(reference.grid),
            shaper: Shaper::new(reference.idle_slope_bps as f64 * reference.clock_ratio, reference.link_bps, slack_ns),
            late: LatenessTally::new(),
            reference,
        }
    }

    /// Adds a frame of the stream. Frames without a timestamp are ignored.
    #[inline]
    pub(crate) fn add(&mut self, packet: &Packet, parsed: &Parsed) {
        let Some(stamp_ns) = packet.at_ns else { return };
        let at_ns = stamp_ns.saturating_sub(*self.first_ns.get_or_insert(stamp_ns));
        self.last_ns = at_ns;
        self.frames += 1;
        let gap_ns = self.spacing.add(packet.number, at_ns).unwrap_or(0);
        let slot = self.reference.grid.nearest(at_ns);
        self.window_violations += u64::from(self.last_slot.replace(slot) == Some(slot));
        self.shaper.add(at_ns, wire_bytes(packet.length as usize) as u64);
        let slots = nearest(gap_ns as f64 / self.reference.grid.period_ns);
        let number = self.number(parsed);
        if let Arrival::New(index) = self.sequence.add(number, slots)
            && let Some(late) = self.lateness.add(packet.number, at_ns, index)
        {
            self.late.add(late, self.tolerance_ns, self.reference.grid.period_ns);
        }
    }

    #[inline]
    fn number(&mut self, parsed: &Parsed) -> Number {
        match (parsed.probe, parsed.avtp) {
            (Some(probe), _) => {
                self.numbered_by = NumberedBy::Talker;
                Number::Whole { run: probe.run, seq: probe.seq }
            }
            (None, Some(avtp)) => {
                if self.numbered_by == NumberedBy::Nothing {
                    self.numbered_by = NumberedBy::Avtp;
                }
                Number::Eight(avtp.sequence)
            }
            (None, None) => Number::None,
        }
    }

    /// The figures, added to a capture that already has those of file and stream, and the lateness series.
    pub(crate) fn finish(mut self, capture: Capture) -> (Capture, Series) {
        while let Some(late) = self.lateness.finalize() {
            self.late.add(late, self.tolerance_ns, self.reference.grid.period_ns);
        }
        self.sequence.flush();
        let Self { reference, spacing, sequence, lateness, shaper, late, .. } = self;
        let counted = spacing.all.total > 0;
        let resolution_ns = reference.resolution_ns.max(spacing.found_resolution_ns());
        let first_ns = self.first_ns.unwrap_or(0);
        let series = Series {
            phase: CAPTURE.into(),
            role: CAPTURE.into(),
            kind: SeriesKind::Capture,
            period_ns: nearest(reference.grid.period_ns).max(1).cast_unsigned(),
            first_deadline_ns: first_ns.saturating_add(nearest(reference.grid.origin_ns)),
            samples: late.all.total,
            missed: late.missed_slots.saturating_add(lateness.skipped),
            early: late.early,
            min_ns: (late.all.total > 0).then_some(late.all.min_ns),
            mean_ns: late.all.mean_ns(),
            max_ns: (late.all.total > 0).then_some(late.all.max_ns),
            max_at_ns: (late.all.total > 0).then_some(late.max.1),
            jitter_ns: spacing.max_deviation_ns,
            maxima: late.maxima,
            spikes_total: late.late,
            spikes: late.spikes.with(&[]),
            floor_ns: resolution_ns,
            ..Series::default()
        };
        let capture = Capture {
            frames: self.frames,
            first_ns,
            duration_ns: self.last_ns.max(0).cast_unsigned(),
            min_gap_ns: counted.then_some(spacing.all.min_ns),
            mean_gap_ns: spacing.all.mean_ns(),
            max_gap_ns: counted.then_some(spacing.all.max_ns),
            max_deviation_ns: spacing.max_deviation_ns,
            worst_gaps: spacing.worst.into_vec(),
            tolerance_ns: self.tolerance_ns.cast_unsigned(),
            late: late.late,
            missed_slots: late.missed_slots,
            skipped_slots: lateness.skipped,
            worst_late: late.largest.into_vec(),
            numbered_by: self.numbered_by,
            lost: sequence.lost,
            losses: sequence.losses,
            longest_loss: sequence.longest_loss,
            duplicates: sequence.duplicates,
            reordered: sequence.reordered,
            too_late: sequence.too_late,
            restarts: sequence.restarts,
            bursts: spacing.bursts,
            longest_burst: spacing.longest_burst,
            window_violations: self.window_violations,
            shaper: Some(CapturedShaper {
                idle_slope_bps: reference.idle_slope_bps,
                asked: reference.idle_slope_asked,
                link_bps: reference.link_bps,
                violations: shaper.violations,
                lowest_bits: shaper.lowest,
            }),
            resolution_ns,
            out_of_order: spacing.out_of_order,
            spacing: spacing.all.into_histogram(),
            ..capture
        };
        let raw = late.all.into_histogram();
        // No correction is needed: each frame counts for its own slot, including those in a burst after a late frame.
        (capture, Series { corrected: raw.clone(), raw, ..series })
    }
}

impl LatenessTally {
    fn new() -> Self {
        Self {
            all: Tally::new(),
            largest: Largest::default(),
            spikes: Worst::default(),
            maxima: Maxima::default(),
            late: 0,
            missed_slots: 0,
            early: 0,
            max: (i64::MIN, 0),
        }
    }

    #[inline]
    fn add(&mut self, Late { frame, at_ns, late_ns }: Late, tolerance_ns: i64, period_ns: f64) {
        let at = at_ns.max(0).cast_unsigned();
        self.all.record(late_ns);
        self.maxima.add(at, late_ns);
        self.early += u64::from(late_ns < 0);
        if late_ns > self.max.0 {
            self.max = (late_ns, at);
        }
        if late_ns > tolerance_ns {
            self.late += 1;
            self.missed_slots += u64::from(late_ns as f64 >= period_ns);
            self.largest.add(frame, at_ns, late_ns);
            self.spikes.add(Spike { lateness_ns: late_ns, at_ns: at, ..Spike::default() });
        }
    }
}
