//! The results of a run, counted.

use std::collections::BTreeMap;

use record::{Histogram, JudgeProtocol, Maxima, RESPONSE, Responses, Series, SeriesKind};

use crate::{
    frame::{End, Kind, QuestionResult},
    latmon::Bulk,
    settings::TICK_NS,
};

/// Most different times that are kept exactly. The judge can report 125,000 of them for each ms.
const EXACT_MAX: usize = 50_000;
/// Length of a cell of latmon, ns.
const CELL_NS: u64 = 1_000;

/// The results of a run so far.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    counts: Responses,
    raw: Histogram,
    /// Each time of the judge of punctual in ticks, with its count; `None` if there were too many.
    exact: Option<BTreeMap<u32, u64>>,
    min_ns: Option<u64>,
    /// Largest time and when it was; `None` without a time, or if latmon does not say how large it was.
    max: Option<(u64, u64)>,
    sum_ns: u128,
    timed: u64,
    maxima: Maxima,
    /// Number of the next frame.
    next_frame: u32,
    /// Frames that are missing so far.
    lost_frames: u64,
    /// Answers that the bulks of latmon contain, without those of its warm-up.
    in_bulks: u64,
}

impl Tally {
    /// An empty tally. `about` contains the constant figures: judge, protocol, lines and settings.
    #[must_use]
    pub fn new(about: Responses) -> Self {
        let overruns = (about.protocol == JudgeProtocol::Latmon).then_some(0);
        Self { counts: Responses { overruns, ..about }, exact: Some(BTreeMap::new()), ..Self::default() }
    }

    /// The figures so far.
    #[must_use]
    pub fn counts(&self) -> &Responses {
        &self.counts
    }

    /// Answers in the bulks of latmon. Its histogram can contain others.
    #[must_use]
    pub fn in_bulks(&self) -> u64 {
        self.in_bulks
    }

    /// Notes the bytes of the line that belonged to nothing.
    pub fn set_damaged_bytes(&mut self, bytes: u64) {
        self.counts.damaged_bytes = bytes;
    }

    /// Counts a result of the judge of punctual.
    ///
    /// # Errors
    /// The contradiction to the results before.
    pub fn add_result(&mut self, result: &QuestionResult) -> Result<(), String> {
        self.add_frame(result.number)?;
        let counts = &mut self.counts;
        counts.active_before += u64::from(result.was_active_before() && result.kind != Kind::Spurious);
        counts.discarded += u64::from(result.has_discarded());
        match (result.kind, result.after) {
            (Kind::Answered | Kind::Late, Some(ticks)) => {
                counts.answered += 1;
                counts.late += u64::from(result.kind == Kind::Late);
                self.add_time(ticks, result.time.saturating_mul(TICK_NS));
            }
            (Kind::Missed, _) => counts.missed += 1,
            (Kind::Spurious, _) | (Kind::Answered | Kind::Late, None) => counts.spurious += 1,
        }
        // At most: they can be misses or spurious edges, too.
        self.counts.without_time = self.lost_frames;
        self.counts.questions = self.counts.answered + self.counts.missed;
        Ok(())
    }

    /// Takes the totals at the end, which count lost frames, too.
    ///
    /// # Errors
    /// The contradiction to the results before.
    pub fn add_end(&mut self, end: &End) -> Result<(), String> {
        self.add_frame(end.number)?;
        let answered = u64::from(end.answered) + u64::from(end.late);
        let counts = &mut self.counts;
        let is_less = answered < counts.answered || u64::from(end.missed) < counts.missed;
        if is_less || answered + u64::from(end.missed) != u64::from(end.questions) {
            return Err("totals that contradict its results".to_owned());
        }
        counts.without_time = answered - self.timed.min(answered);
        counts.answered = answered;
        counts.late = end.late.into();
        counts.missed = end.missed.into();
        counts.questions = end.questions.into();
        counts.spurious = end.spurious.into();
        counts.active_before = end.active_before.into();
        counts.discarded = end.discarded.into();
        counts.complete = true;
        Ok(())
    }

    /// Counts the frames that are missing before this one.
    fn add_frame(&mut self, number: u32) -> Result<(), String> {
        let missing = number.wrapping_sub(self.next_frame);
        if missing > u32::MAX / 2 {
            return Err("a frame with an earlier number: it was reset, or another program uses it".to_owned());
        }
        self.lost_frames += u64::from(missing);
        self.next_frame = number.wrapping_add(1);
        Ok(())
    }

    fn add_time(&mut self, ticks: u32, at_ns: u64) {
        let ns = u64::from(ticks) * TICK_NS;
        self.timed += 1;
        self.sum_ns += u128::from(ns);
        self.min_ns = Some(self.min_ns.map_or(ns, |min_ns| min_ns.min(ns)));
        if self.max.is_none_or(|(max_ns, _)| ns > max_ns) {
            self.max = Some((ns, at_ns));
        }
        self.raw.record(ns.cast_signed());
        self.maxima.add(at_ns, ns.cast_signed());
        if let Some(exact) = &mut self.exact {
            *exact.entry(ticks).or_default() += 1;
            if exact.len() > EXACT_MAX {
                self.exact = None;
            }
        }
    }

    /// Counts the times of a bulk of latmon that arrived `at_ns` after the start. An overrun in a bulk without an answer
    /// later than a period was a question without an answer.
    pub fn add_bulk(&mut self, bulk: &Bulk, period_ns: u64, at_ns: u64) {
        let Bulk { sum_ns, min_ns, max_ns, overruns, samples } = *bulk;
        let counts = &mut self.counts;
        *counts.overruns.get_or_insert_default() += u64::from(overruns);
        // latmon compares whole microseconds.
        let has_late = samples > 0 && u64::from(max_ns) / CELL_NS > period_ns / CELL_NS;
        let counted = if has_late { &mut counts.possibly_missed } else { &mut counts.missed };
        *counted += u64::from(overruns);
        if samples > 0 {
            counts.answered += u64::from(samples);
            self.in_bulks += u64::from(samples);
            self.timed += u64::from(samples);
            self.sum_ns += u128::from(sum_ns);
            let (min_ns, max_ns) = (u64::from(min_ns), u64::from(max_ns));
            self.min_ns = Some(self.min_ns.map_or(min_ns, |known_ns| known_ns.min(min_ns)));
            if self.max.is_none_or(|(known_ns, _)| max_ns > known_ns) {
                self.max = Some((max_ns, at_ns));
            }
            self.maxima.add(at_ns, max_ns.cast_signed());
        }
        self.counts.questions = self.counts.answered + self.counts.missed;
    }

    /// Takes the histogram of latmon. A time counts as the end of its cell, but not as later than the largest one. Those in
    /// the last cell can be later than that cell; if the largest time is, they all count as the largest.
    pub fn set_cells(&mut self, cells: Vec<u64>) {
        let last = cells.len().saturating_sub(1);
        let end_of = |cell: usize| (cell as u64 + 1) * CELL_NS - 1;
        let Some(top) = cells.iter().rposition(|&count| count > 0) else {
            (self.counts.cells, self.counts.complete) = (cells, true);
            return;
        };
        // The bulks lack the answers of the warm-up, and can lack those of the last second.
        let known_ns = self.max.map(|(max_ns, _)| max_ns).filter(|&max_ns| max_ns >= end_of(top) + 1 - CELL_NS);
        let max_ns = known_ns.unwrap_or(end_of(top));
        if known_ns.is_none() {
            self.max = (top < last).then_some((max_ns, self.max.map_or(0, |(_, at_ns)| at_ns)));
        }
        if let Some(lowest) = cells.iter().position(|&count| count > 0) {
            self.min_ns = self.min_ns.map(|min_ns| min_ns.min(end_of(lowest))).or(Some(end_of(lowest)));
        }
        for (cell, &count) in cells.iter().enumerate() {
            let can_be_later = cell == last && (max_ns > end_of(last) || known_ns.is_none());
            if can_be_later {
                self.counts.clamped = count;
            }
            let ns = if can_be_later { max_ns } else { end_of(cell).min(max_ns) };
            self.raw.add(ns.cast_signed(), count);
        }
        self.counts.answered = self.raw.total();
        self.counts.questions = self.counts.answered + self.counts.missed;
        (self.counts.cells, self.counts.complete) = (cells, true);
    }

    /// The series so far.
    #[must_use]
    pub fn to_series(&self, phase: &str, period_ns: u64) -> Series {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let exact = self.exact.iter().flatten().map(|(&ticks, &count)| (u64::from(ticks) * TICK_NS, count)).collect();
        // latmon waits for an answer before its next question, so a late one omits others.
        let corrected = match self.counts.protocol {
            JudgeProtocol::Punctual => self.raw.clone(),
            JudgeProtocol::Latmon => self.raw.corrected(&[], period_ns),
        };
        Series {
            phase: phase.to_owned(),
            role: RESPONSE.to_owned(),
            period_ns,
            samples: self.raw.total(),
            min_ns: self.min_ns.map(signed),
            mean_ns: (self.timed > 0).then(|| self.sum_ns as f64 / self.timed as f64),
            max_ns: self.max.map(|(ns, _)| signed(ns)),
            max_at_ns: self.max.map(|(_, at_ns)| at_ns),
            corrected,
            raw: self.raw.clone(),
            maxima: self.maxima.clone(),
            kind: SeriesKind::Responses(Box::new(Responses { exact, ..self.counts.clone() })),
            ..Series::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::EndReason;

    fn result(number: u32, kind: Kind, after: Option<u32>) -> QuestionResult {
        QuestionResult {
            kind,
            flags: 0,
            number,
            question: number + 1,
            time: 125_000 * u64::from(number),
            after,
            lost_before: 0,
        }
    }

    fn end(number: u32, answered: u32, late: u32, missed: u32) -> End {
        End {
            reason: EndReason::Stopped,
            number,
            questions: answered + late + missed,
            time: 0,
            answered,
            missed,
            late,
            spurious: 1,
            active_before: 0,
            lost: 0,
            discarded: 0,
        }
    }

    fn latmon() -> Tally {
        Tally::new(Responses { protocol: JudgeProtocol::Latmon, resolution_ns: 1000, ..Responses::default() })
    }

    #[test]
    fn each_time_is_exact_and_misses_are_counted() {
        let mut tally = Tally::new(Responses::default());
        for (number, kind, after) in [
            (0, Kind::Answered, Some(1)),
            (1, Kind::Missed, None),
            (2, Kind::Late, Some(12_501)),
            (3, Kind::Answered, Some(1)),
        ] {
            tally.add_result(&result(number, kind, after)).unwrap();
        }
        tally.add_result(&result(4, Kind::Spurious, Some(9))).unwrap();
        tally.add_end(&end(5, 2, 1, 1)).unwrap();
        let series = tally.to_series("rest", 1_000_000);
        let responses = series.kind.responses().unwrap();
        assert_eq!((series.samples, series.min_ns, series.max_ns), (3, Some(8), Some(100_008)));
        assert_eq!(series.max_at_ns, Some(2_000_000));
        assert_eq!(responses.exact, [(8, 2), (100_008, 1)]);
        assert_eq!((responses.questions, responses.answered, responses.late, responses.missed), (4, 3, 1, 1));
        assert_eq!((responses.spurious, responses.without_time, responses.complete), (1, 0, true));
    }

    #[test]
    fn lost_frames_are_unknown_until_the_totals_say_more() {
        let mut tally = Tally::new(Responses::default());
        tally.add_result(&result(0, Kind::Answered, Some(5))).unwrap();
        tally.add_result(&result(4, Kind::Answered, Some(5))).unwrap();
        assert_eq!((tally.counts().without_time, tally.counts().missed), (3, 0));
        // Of the three, one was a miss and one a spurious edge.
        tally.add_end(&end(5, 3, 0, 1)).unwrap();
        assert_eq!((tally.counts().without_time, tally.counts().missed, tally.counts().answered), (1, 1, 3));
        assert!(tally.add_result(&result(2, Kind::Missed, None)).unwrap_err().contains("reset"));
        let mut tally = Tally::new(Responses::default());
        tally.add_result(&result(0, Kind::Missed, None)).unwrap();
        assert!(tally.add_end(&end(1, 1, 0, 0)).unwrap_err().contains("contradict"));
    }

    #[test]
    fn latmon_gives_cells_and_discards_missing_answers() {
        let mut tally = latmon();
        tally.add_bulk(&Bulk { sum_ns: 9_000, min_ns: 1_500, max_ns: 5_200, overruns: 2, samples: 3 }, 1_000_000, 1);
        tally.add_bulk(&Bulk { overruns: 1, ..Bulk::default() }, 1_000_000, 2);
        let mut cells = vec![0; 10];
        (cells[1], cells[2], cells[5]) = (1, 1, 1);
        tally.set_cells(cells);
        let series = tally.to_series("rest", 1_000_000);
        let responses = series.kind.responses().unwrap();
        assert_eq!((responses.missed, responses.possibly_missed, responses.overruns), (3, 0, Some(3)));
        assert_eq!((series.max_ns, series.samples, responses.clamped), (Some(5_200), 3, 0));
        let expected = Histogram::from_buckets([(1_999, 1), (2_999, 1), (5_203, 1)].into_iter());
        assert_eq!(series.raw, expected, "the largest is exact");
    }

    #[test]
    fn answers_beyond_the_last_cell_count_as_the_largest() {
        let mut tally = latmon();
        tally.add_bulk(
            &Bulk { sum_ns: 1_300_000, min_ns: 9_100, max_ns: 1_200_000, overruns: 4, samples: 3 },
            1_000_000,
            1,
        );
        tally.set_cells(vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
        let series = tally.to_series("rest", 1_000_000);
        let responses = series.kind.responses().unwrap();
        assert_eq!(
            (responses.clamped, responses.possibly_missed, responses.missed),
            (3, 4, 0),
            "an overrun can be late"
        );
        assert_eq!(series.raw.count_above(1_000_000), 3);
        assert_eq!(series.corrected.total(), 6, "each of the three may have omitted a question");
        // The histogram contains an answer that no bulk has, beyond the last cell: its time is not known.
        let mut tally = latmon();
        tally.add_bulk(&Bulk { sum_ns: 10, min_ns: 10, max_ns: 10, overruns: 0, samples: 1 }, 1_000_000, 1);
        tally.set_cells(vec![1, 1]);
        let series = tally.to_series("rest", 1_000_000);
        assert_eq!((series.max_ns, series.samples), (None, 2));
    }
}
