//! The results of a run, counted.

use std::{collections::BTreeMap, time::Duration};

use record::{Histogram, JudgeProtocol, Maxima, RESPONSE, Responses, Series, SeriesKind, grouped};

use crate::{
    frame::{End, Kind, QuestionResult},
    latmon::Bulk,
    settings::TICK_NS,
};

/// Most different times that are kept exactly. The judge can report 125,000 of them for each ms.
const EXACT_MAX: usize = 50_000;
/// Length of a cell of latmon, ns.
const CELL_NS: u64 = 1_000;
/// Time of a bulk of latmon, ns: it contains as many answers as periods fit in.
const BULK_NS: u64 = 1_000_000_000;
/// Most unsent bulks in the histogram of latmon: the bulk of its warm-up, and the last bulk before the end.
const BULKS_UNSENT: u64 = 2;
/// The clock of a judge can be faster than that of this machine by one part of this many.
const CLOCK_PART: u32 = 20;
/// Time that is not compared with the number of questions.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// latmon waits so long for an answer before it asks again, ns.
const ANSWER_WITHIN_NS: u64 = 1_000_000_000;
/// For this time, at the begin and the end of a run, latmon asks nothing or reports no answers.
const UNREPORTED: Duration = Duration::from_secs(3);
/// Statistics of latmon can arrive so much later than it sent them.
const BULK_SLACK: Duration = Duration::from_millis(200);
/// A judge asks slowly if it needs so many per cent of the time of its questions, which a caveat says.
const SLOW_PERCENT: u128 = 110;
/// A judge asks too slowly if it needs more than so many per cent of that time: the run is invalid.
const TOO_SLOW_PERCENT: u128 = 200;

/// How slowly a judge asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slowness {
    /// By a tenth or more.
    Slow,
    /// More than half of the questions are missing.
    TooSlow,
}

/// The results of a run so far.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    counts: Responses,
    /// Time between two questions, which is also the timeout of the judge of punctual: a later answer is late.
    period_ns: u64,
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
    /// Number of the last question with a result. The judge reports the lower 32 bits.
    last_question: u64,
    /// Questions whose frames are missing so far.
    skipped: u64,
    /// Time from the start of the judge until it was stopped.
    asked_for: Duration,
    /// Time from the start to the latest edge that the judge of punctual reported, ticks.
    latest_edge: u64,
    /// Time from the start to the answer of the last question, or to the question if it had none, ticks.
    last_answer: u64,
    /// The first and the last bulk of latmon.
    bulks: Option<[BulkEnd; 2]>,
    /// Answers that the bulks of latmon contain, without those of its warm-up.
    in_bulks: u64,
}

/// The counts at the end of a bulk of latmon.
#[derive(Debug, Clone, Copy)]
struct BulkEnd {
    at_ns: u64,
    answers: u64,
    overruns: u64,
}

impl Tally {
    /// An empty tally. `about` contains the constant figures: judge, protocol, lines and settings.
    #[must_use]
    pub fn new(about: Responses, period_ns: u64) -> Self {
        let overruns = (about.protocol == JudgeProtocol::Latmon).then_some(0);
        let counts = Responses { overruns, ..about };
        Self { counts, period_ns, exact: Some(BTreeMap::new()), ..Self::default() }
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

    /// Answers whose time is known.
    #[must_use]
    pub fn timed(&self) -> u64 {
        self.timed
    }

    /// Questions whose results are missing so far; at the end, those of them that had an answer, by the totals.
    #[must_use]
    pub fn lost(&self) -> u64 {
        if self.counts.complete { self.counts.without_time } else { self.skipped }
    }

    /// Checks that the judge can have asked its questions in the time since its start. latmon needs a period or more for
    /// each answer and for each overrun.
    ///
    /// # Errors
    /// The contradiction.
    pub fn check_elapsed(&self, elapsed: Duration) -> Result<(), String> {
        let overruns = self.counts.overruns.unwrap_or_default();
        let questions = match self.counts.protocol {
            JudgeProtocol::Punctual => self.counts.questions.max(self.last_question),
            JudgeProtocol::Latmon => self.in_bulks.max(overruns),
        };
        let time_ns = (elapsed + elapsed / CLOCK_PART + CLOCK_SLACK).as_nanos();
        let latest_edge_ns = u128::from(self.latest_edge) * u128::from(TICK_NS);
        let latest_ns = latest_edge_ns.max(self.counts.asked_ns.unwrap_or_default().into());
        if latest_ns > time_ns {
            let [latest_ms, elapsed_ms] = [latest_ns / 1_000_000, elapsed.as_millis()];
            return Err(format!("a time of {latest_ms} ms after the start of a run that took {elapsed_ms} ms so far"));
        }
        if u128::from(questions) * u128::from(self.period_ns) <= time_ns {
            return Ok(());
        }
        let [questions, elapsed_ms, period_us] =
            [questions, u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX), self.period_ns / 1000].map(grouped);
        Err(format!("{questions} results in {elapsed_ms} ms, but a question takes {period_us} us or more"))
    }

    /// True if the judge of punctual should have asked its first question before it was stopped.
    #[must_use]
    pub fn has_had_time(&self) -> bool {
        let largest_ns = self.period_ns.saturating_add(self.counts.random_ns);
        self.asked_for > Duration::from_nanos(largest_ns.saturating_mul(2)) + CLOCK_SLACK
    }

    /// The remedy if the run was too short for an answer.
    #[must_use]
    pub fn run_longer(&self) -> String {
        let seconds = self.period_ns.saturating_mul(10).div_ceil(1_000_000_000).max(10);
        format!("run longer, e.g. --duration {seconds}s")
    }

    /// Notes the time from the start of the judge until it was stopped.
    pub fn set_asked_for(&mut self, time: Duration) {
        self.asked_for = time;
    }

    /// The time from the start of the judge until it was stopped.
    #[must_use]
    pub fn asked_for(&self) -> Duration {
        self.asked_for
    }

    /// How much more slowly than requested the judge asked, and that in words; `None` if it did not, or if the run has
    /// not ended.
    #[must_use]
    pub fn slowness(&self) -> Option<(Slowness, String)> {
        let Responses { judge, questions, complete, .. } = &self.counts;
        let paces = match self.counts.protocol {
            JudgeProtocol::Punctual => self.paces_of_board(),
            JudgeProtocol::Latmon => self.paces_of_latmon(),
        };
        let is_beyond = |percent: u128| paces.iter().any(|(asked_ns, needed_ns)| asked_ns * 100 > percent * needed_ns);
        if !complete || !is_beyond(SLOW_PERCENT) {
            return None;
        }
        let slowness = if is_beyond(TOO_SLOW_PERCENT) { Slowness::TooSlow } else { Slowness::Slow };
        let asked_ms = u64::try_from(self.asked_for.as_millis()).unwrap_or(u64::MAX);
        let [questions, asked_ms, period_us] = [*questions, asked_ms, self.period_ns / 1000].map(grouped);
        let text = format!(
            "the judge {judge} asked only {questions} questions in {asked_ms} ms, not one every {period_us} us as requested"
        );
        Some((slowness, text))
    }

    /// The times that the judge of punctual asked, by its clock and by that of this machine, each with the time of its
    /// questions, ns. The last window is as long as the largest period.
    fn paces_of_board(&self) -> [(u128, u128); 2] {
        let Responses { questions, random_ns, .. } = self.counts;
        let [count, period_ns, random_ns] = [questions, self.period_ns, random_ns].map(u128::from);
        // The sum of the random additions is above its mean by less than 3.4 standard deviations, √(count / 12) of one.
        let random_sum_ns = count * random_ns / 2 + u128::from(questions.isqrt() + 1) * random_ns;
        let needed_ns = count * period_ns + random_sum_ns + period_ns + random_ns;
        let here_ns = self.asked_for.saturating_sub(CLOCK_SLACK).as_nanos();
        [self.counts.asked_ns.unwrap_or_default().into(), here_ns].map(|asked_ns| (asked_ns, needed_ns))
    }

    /// The time between the first and the last bulk of latmon, and that of the whole run, each with the time of its
    /// questions, ns.
    fn paces_of_latmon(&self) -> [(u128, u128); 2] {
        let needed_ns = |answers: u64, overruns: u64| {
            u128::from(answers) * u128::from(self.period_ns) + u128::from(overruns) * u128::from(ANSWER_WITHIN_NS)
        };
        let Responses { questions, overruns, .. } = self.counts;
        let whole_ns = self.asked_for.saturating_sub(UNREPORTED).as_nanos();
        let whole = (whole_ns, needed_ns(questions + 1, overruns.unwrap_or_default()));
        let [first, last] = self.bulks.unwrap_or([BulkEnd { at_ns: 0, answers: 0, overruns: 0 }; 2]);
        let between_ns = u128::from(last.at_ns - first.at_ns).saturating_sub(BULK_SLACK.as_nanos());
        [(between_ns, needed_ns(last.answers - first.answers, last.overruns - first.overruns)), whole]
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
        let missing = self.add_frame(result.number)?;
        if result.kind != Kind::Spurious {
            self.add_question(result.question, missing)?;
        }
        self.check_timeout(result)?;
        self.check_order(result)?;
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
        // Frames that were damaged on the line are missing, too.
        let is_whole =
            end.questions.wrapping_add(end.spurious) == end.number && u64::from(end.lost) <= self.lost_frames;
        let totals = self.whole_totals(end).filter(|_| is_whole);
        let Some(Totals { answered, late, missed, spurious, questions }) = totals else {
            return Err("totals that contradict its results".to_owned());
        };
        let counts = &mut self.counts;
        counts.without_time = answered - self.timed.min(answered);
        counts.answered = answered;
        counts.late = late;
        counts.missed = missed;
        counts.questions = questions;
        counts.spurious = spurious;
        counts.active_before = whole(end.active_before, counts.active_before).unwrap_or(end.active_before.into());
        counts.discarded = end.discarded.into();
        counts.complete = true;
        counts.asked_ns = Some(end.time.saturating_mul(TICK_NS));
        Ok(())
    }

    /// The totals, whose lower 32 bits the judge reports; `None` if they are less than the results, or do not add up.
    fn whole_totals(&self, end: &End) -> Option<Totals> {
        let counts = &self.counts;
        let late = whole(end.late, counts.late)?;
        let totals = Totals {
            answered: whole(end.answered, counts.answered - counts.late)? + late,
            late,
            missed: whole(end.missed, counts.missed)?,
            spurious: whole(end.spurious, counts.spurious)?,
            questions: whole(end.questions, self.last_question)?,
        };
        (totals.answered + totals.missed == totals.questions).then_some(totals)
    }

    /// Counts the questions that are missing before this one, as which at most `missing` frames were lost.
    fn add_question(&mut self, question: u32, missing: u32) -> Result<(), String> {
        let skipped = question.wrapping_sub(low(self.last_question)).wrapping_sub(1);
        if skipped > missing {
            let last = low(self.last_question);
            return Err(format!("a result of question {question} after that of question {last}"));
        }
        self.last_question += u64::from(skipped) + 1;
        self.skipped += u64::from(skipped);
        Ok(())
    }

    /// An answer is late if it came after the timeout.
    fn check_timeout(&self, result: &QuestionResult) -> Result<(), String> {
        let Some(ns) = result.after.map(|ticks| u64::from(ticks) * TICK_NS) else { return Ok(()) };
        let kind = match result.kind {
            Kind::Late if ns < self.period_ns => "a late answer",
            Kind::Answered if ns > self.period_ns => "an answer in time",
            Kind::Answered | Kind::Late | Kind::Missed | Kind::Spurious => return Ok(()),
        };
        let [ns, timeout_ns] = [ns, self.period_ns].map(grouped);
        Err(format!("{kind} after {ns} ns, but its timeout is {timeout_ns} ns"))
    }

    /// A question does not come before the answer to the one before it. An edge in the tick of a question belongs to the
    /// question before.
    fn check_order(&mut self, result: &QuestionResult) -> Result<(), String> {
        let after = u64::from(result.after.unwrap_or_default());
        if result.kind == Kind::Spurious {
            self.latest_edge = self.latest_edge.max(result.time);
            return Ok(());
        }
        if result.time < self.last_answer {
            return Err("a question before the answer to the one before it".to_owned());
        }
        self.last_answer = result.time.saturating_add(after);
        self.latest_edge = self.latest_edge.max(self.last_answer);
        Ok(())
    }

    /// Counts the frames that are missing before this one. Returns their number.
    fn add_frame(&mut self, number: u32) -> Result<u32, String> {
        let missing = number.wrapping_sub(self.next_frame);
        if missing > u32::MAX / 2 {
            return Err("a frame with an earlier number: it was reset, or another program uses it".to_owned());
        }
        self.lost_frames += u64::from(missing);
        self.next_frame = number.wrapping_add(1);
        Ok(missing)
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
    pub fn add_bulk(&mut self, bulk: &Bulk, at_ns: u64) {
        let Bulk { sum_ns, min_ns, max_ns, overruns, samples } = *bulk;
        let counts = &mut self.counts;
        *counts.overruns.get_or_insert_default() += u64::from(overruns);
        // latmon compares whole microseconds.
        let has_late = samples > 0 && u64::from(max_ns) / CELL_NS > self.period_ns / CELL_NS;
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
        let end = BulkEnd { at_ns, answers: self.in_bulks, overruns: self.counts.overruns.unwrap_or_default() };
        self.bulks = Some([self.bulks.map_or(end, |[first, _]| first), end]);
    }

    /// Takes the histogram of latmon. A time counts as the end of its cell, but not as later than the largest one. Those in
    /// the last cell can be later than that cell; if the largest time is, they all count as the largest.
    ///
    /// # Errors
    /// The contradiction to the bulks.
    pub fn set_cells(&mut self, cells: Vec<u64>) -> Result<(), String> {
        self.check_cells(&cells)?;
        let last = cells.len().saturating_sub(1);
        let Some(top) = cells.iter().rposition(|&count| count > 0) else {
            (self.counts.cells, self.counts.complete) = (cells, true);
            return Ok(());
        };
        // The bulks lack the answers of the warm-up, and can lack those of the last second.
        let known_ns = self.max.map(|(max_ns, _)| max_ns).filter(|&max_ns| max_ns >= end_of(top) + 1 - CELL_NS);
        let max_ns = known_ns.unwrap_or(end_of(top));
        if known_ns.is_none() {
            self.max = (top < last).then_some((max_ns, self.max.map_or(0, |(_, at_ns)| at_ns)));
        }
        if let Some(lowest) = cells.iter().position(|&count| count > 0) {
            // The last cell has no end.
            let known_ns = self.min_ns.filter(|_| lowest == last).unwrap_or(end_of(lowest));
            self.min_ns = Some(self.min_ns.map_or(known_ns, |min_ns| min_ns.min(known_ns)));
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
        Ok(())
    }

    /// Checks that the histogram of latmon contains the answers of its bulks.
    ///
    /// latmon of Zephyr also counts its warm-up in the histogram, as many answers as in a bulk, and can lose a bulk at the
    /// end (`subsys/net/lib/latmon/latmon.c`). It counts an answer that took longer than a period in the cell of the
    /// remainder. latmon of libevl counts the same answers in both.
    fn check_cells(&self, cells: &[u64]) -> Result<(), String> {
        let all = cells.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let of_bulk = (BULK_NS / self.period_ns.max(1)).max(1);
        let contradiction = |what: String| Err(format!("a histogram that contradicts its statistics: {what}"));
        if all < self.in_bulks || all > self.in_bulks + BULKS_UNSENT * of_bulk {
            let [all, known] = [all, self.in_bulks].map(grouped);
            return contradiction(format!("{all} answers instead of {known}"));
        }
        let (Some(min_ns), Some((max_ns, _)), Some(last)) = (self.min_ns, self.max, cells.len().checked_sub(1)) else {
            return Ok(());
        };
        let cell_of = |ns: u64| usize::try_from(ns / CELL_NS).unwrap_or(usize::MAX).min(last);
        let has_cell = |ns: u64| ns / CELL_NS <= self.period_ns / CELL_NS;
        for (name, ns) in [("smallest", min_ns), ("largest", max_ns)] {
            if has_cell(ns) && cells[cell_of(ns)] == 0 {
                return contradiction(format!("it lacks the {name} time of {} ns", grouped(ns)));
            }
        }
        // The smallest and the largest sum of as many answers as the bulks contain.
        let least =
            sum_of(cells.iter().enumerate().map(|(cell, &count)| (cell as u64 * CELL_NS, count)), self.in_bulks);
        let end_ns = |cell: usize| if cell == last { end_of(cell).max(max_ns) } else { end_of(cell) };
        let most = sum_of(cells.iter().enumerate().rev().map(|(cell, &count)| (end_ns(cell), count)), self.in_bulks);
        if self.sum_ns < least || has_cell(max_ns) && self.sum_ns > most {
            return contradiction(format!("its times cannot have a sum of {} ns", self.sum_ns));
        }
        let extra = all - self.in_bulks;
        let inside = &cells[cell_of(min_ns)..=cell_of(max_ns).max(cell_of(min_ns))];
        let outside = all - inside.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        if has_cell(max_ns) && outside > extra {
            let what = format!("{} answers are outside of its smallest and largest time", grouped(outside));
            return contradiction(what);
        }
        Ok(())
    }

    /// The series so far.
    #[must_use]
    pub fn to_series(&self, phase: &str) -> Series {
        let period_ns = self.period_ns;
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

/// The totals at the end of a run.
struct Totals {
    answered: u64,
    late: u64,
    missed: u64,
    spurious: u64,
    questions: u64,
}

/// The whole total: the judge reports its lower 32 bits, and `counted` of it are known. `None` if it is less.
fn whole(total: u32, counted: u64) -> Option<u64> {
    let more = total.wrapping_sub(low(counted));
    (more <= u32::MAX / 2).then(|| counted + u64::from(more))
}

/// The lower 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "the judge counts modulo 2^32")]
fn low(count: u64) -> u32 {
    count as u32
}

/// The end of a cell of latmon, ns.
fn end_of(cell: usize) -> u64 {
    (cell as u64 + 1) * CELL_NS - 1
}

/// The sum of the first `count` times; each is given with its count.
fn sum_of(times: impl Iterator<Item = (u64, u64)>, mut count: u64) -> u128 {
    let mut sum = 0;
    for (ns, of_time) in times {
        let taken = of_time.min(count);
        sum += u128::from(ns) * u128::from(taken);
        count -= taken;
    }
    sum
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
            time: 130_000 * u64::from(number),
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

    const PERIOD_NS: u64 = 1_000_000;

    fn board() -> Tally {
        Tally::new(Responses::default(), PERIOD_NS)
    }

    fn latmon() -> Tally {
        let about = Responses { protocol: JudgeProtocol::Latmon, resolution_ns: 1000, ..Responses::default() };
        Tally::new(about, PERIOD_NS)
    }

    #[test]
    fn each_time_is_exact_and_misses_are_counted() {
        let mut tally = board();
        for (number, kind, after) in [
            (0, Kind::Answered, Some(1)),
            (1, Kind::Missed, None),
            (2, Kind::Late, Some(125_001)),
            (3, Kind::Answered, Some(1)),
        ] {
            tally.add_result(&result(number, kind, after)).unwrap();
        }
        tally.add_result(&result(4, Kind::Spurious, Some(9))).unwrap();
        tally.add_end(&end(5, 2, 1, 1)).unwrap();
        let series = tally.to_series("rest");
        let responses = series.kind.responses().unwrap();
        assert_eq!((series.samples, series.min_ns, series.max_ns), (3, Some(8), Some(1_000_008)));
        assert_eq!(series.max_at_ns, Some(2_080_000));
        assert_eq!(responses.exact, [(8, 2), (1_000_008, 1)]);
        assert_eq!((responses.questions, responses.answered, responses.late, responses.missed), (4, 3, 1, 1));
        assert_eq!((responses.spurious, responses.without_time, responses.complete), (1, 0, true));
    }

    #[test]
    fn lost_frames_are_unknown_until_the_totals_say_more() {
        let mut tally = board();
        tally.add_result(&result(0, Kind::Answered, Some(5))).unwrap();
        tally.add_result(&QuestionResult { question: 4, ..result(4, Kind::Answered, Some(5)) }).unwrap();
        assert_eq!((tally.lost(), tally.timed()), (2, 2));
        assert_eq!((tally.counts().without_time, tally.counts().missed), (3, 0));
        // Of the three, one was a miss and one a spurious edge.
        tally.add_end(&end(5, 3, 0, 1)).unwrap();
        assert_eq!((tally.counts().without_time, tally.counts().missed, tally.counts().answered), (1, 1, 3));
        assert!(tally.add_result(&result(2, Kind::Missed, None)).unwrap_err().contains("reset"));
        let mut tally = board();
        tally.add_result(&result(0, Kind::Missed, None)).unwrap();
        assert!(tally.add_end(&end(1, 1, 0, 0)).unwrap_err().contains("contradict"));
        // The judge lost more frames than are missing.
        let mut tally = board();
        tally.add_result(&result(0, Kind::Spurious, Some(5))).unwrap();
        assert!(tally.add_end(&End { lost: 1, ..end(1, 0, 0, 0) }).unwrap_err().contains("contradict"));
        tally = board();
        tally.add_end(&End { lost: 1, ..end(1, 0, 0, 0) }).unwrap();
    }

    /// A run at 50 us comes to 2^32 questions in 60 hours.
    #[test]
    fn an_endless_run_counts_beyond_32_bits() {
        let mut tally = board();
        let before = (1 << 32) - 3;
        (tally.last_question, tally.counts.answered, tally.timed) = (before, before - 1, before - 1);
        tally.counts.missed = 1;
        tally.next_frame = low(before);
        for n in 0..5 {
            let number = low(before + n);
            let question = low(before + n + 1);
            let time = 130_000 * n;
            tally.add_result(&QuestionResult { question, number, time, ..result(0, Kind::Answered, Some(7)) }).unwrap();
        }
        let total = 1 << 32 | 2;
        let ended = End { questions: 2, answered: 1, missed: 1, spurious: 0, ..end(2, 1, 0, 1) };
        tally.add_end(&ended).unwrap();
        let Responses { questions, answered, missed, without_time, .. } = *tally.counts();
        assert_eq!((questions, answered, missed, without_time), (total, total - 1, 1, 0));
    }

    #[test]
    fn a_judge_that_asks_too_slowly_is_noticed() {
        let slowness = |tally: &Tally| tally.slowness().map(|(slowness, _)| slowness);
        for (asked_ms, questions, expected) in [
            (35_000, 877, Some(Slowness::TooSlow)),
            (35_000, 14_000, Some(Slowness::TooSlow)),
            (35_000, 20_000, Some(Slowness::Slow)),
            (35_000, 30_000, Some(Slowness::Slow)),
            (35_000, 33_000, None),
            (900, 0, None),
        ] {
            let mut tally = board();
            tally.counts = Responses { questions, complete: true, ..Responses::default() };
            tally.set_asked_for(Duration::from_millis(asked_ms));
            assert_eq!(slowness(&tally), expected, "{asked_ms} {questions}");
        }
        // The clock of the judge shows short runs, too. A random eighth takes a sixteenth of the time on average.
        for (time_ms, questions, expected) in [
            (2_000, 1_880, None),
            (2_000, 1_880 * 10 / 13, Some(Slowness::Slow)),
            (2_000, 900, Some(Slowness::TooSlow)),
            (23, 20, None),
            (100, 20, Some(Slowness::TooSlow)),
        ] {
            let mut tally = board();
            tally.counts = Responses { questions, random_ns: PERIOD_NS / 8, complete: true, ..Responses::default() };
            tally.counts.asked_ns = Some(time_ms * 1_000_000);
            assert_eq!(slowness(&tally), expected, "{time_ms} {questions}");
        }
        // Each missing answer can take a second.
        let mut tally = latmon();
        let of_run = Responses {
            questions: 877,
            overruns: Some(34),
            complete: true,
            protocol: JudgeProtocol::Latmon,
            ..Responses::default()
        };
        tally.counts = Responses { overruns: Some(0), ..of_run.clone() };
        tally.set_asked_for(Duration::from_secs(35));
        assert_eq!(slowness(&tally), Some(Slowness::TooSlow));
        tally.counts = of_run;
        assert_eq!(slowness(&tally), None);
        // The time between the first and the last bulk shows short runs, too. Each contains 1000 answers.
        for (between_ms, expected) in
            [(1_000, None), (1_150, None), (1_500, Some(Slowness::Slow)), (2_500, Some(Slowness::TooSlow))]
        {
            let mut tally = latmon();
            for n in 0..3 {
                let bulk = Bulk { sum_ns: 9_000, min_ns: 1_500, max_ns: 5_200, overruns: 0, samples: 1000 };
                tally.add_bulk(&bulk, (2_000 + n * between_ms) * 1_000_000);
            }
            tally.counts.complete = true;
            tally.set_asked_for(Duration::from_millis(3_000 + 2 * between_ms));
            assert_eq!(slowness(&tally), expected, "{between_ms}");
        }
    }

    #[test]
    fn times_that_cannot_be_are_contradictions() {
        let late = |number, after| result(number, Kind::Late, Some(after));
        let mut tally = board();
        tally.add_result(&late(0, 130_000)).unwrap();
        tally.add_result(&late(1, 130_001)).unwrap();
        let error = tally.add_result(&result(2, Kind::Missed, None)).unwrap_err();
        assert!(error.contains("before the answer"), "{error}");
        // An answer later than the run lasts.
        let mut tally = board();
        tally.add_result(&late(0, 3_750_000_000)).unwrap();
        assert!(tally.check_elapsed(Duration::from_secs(1)).unwrap_err().contains("30000 ms"));
        assert!(tally.check_elapsed(Duration::from_secs(30)).is_ok());
    }

    #[test]
    fn latmon_gives_cells_and_discards_missing_answers() {
        let mut tally = latmon();
        tally.add_bulk(&Bulk { sum_ns: 9_000, min_ns: 1_500, max_ns: 5_200, overruns: 2, samples: 3 }, 1);
        tally.add_bulk(&Bulk { overruns: 1, ..Bulk::default() }, 2);
        let mut cells = vec![0; 10];
        (cells[1], cells[2], cells[5]) = (1, 1, 1);
        tally.set_cells(cells).unwrap();
        let series = tally.to_series("rest");
        let responses = series.kind.responses().unwrap();
        assert_eq!((responses.missed, responses.possibly_missed, responses.overruns), (3, 0, Some(3)));
        assert_eq!((series.max_ns, series.samples, responses.clamped), (Some(5_200), 3, 0));
        let expected = Histogram::from_buckets([(1_999, 1), (2_999, 1), (5_203, 1)].into_iter());
        assert_eq!(series.raw, expected, "the largest is exact");
    }

    #[test]
    fn answers_beyond_the_last_cell_count_as_the_largest() {
        let mut tally = latmon();
        tally.add_bulk(&Bulk { sum_ns: 1_300_000, min_ns: 9_100, max_ns: 1_200_000, overruns: 4, samples: 3 }, 1);
        tally.set_cells(vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 3]).unwrap();
        let series = tally.to_series("rest");
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
        tally.add_bulk(&Bulk { sum_ns: 10, min_ns: 10, max_ns: 10, overruns: 0, samples: 1 }, 1);
        tally.set_cells(vec![1, 1]).unwrap();
        let series = tally.to_series("rest");
        assert_eq!((series.max_ns, series.samples), (None, 2));
    }

    #[test]
    fn results_that_contradict_each_other_are_refused() {
        let after = |results: &[QuestionResult]| {
            let mut tally = board();
            results.iter().try_for_each(|result| tally.add_result(result)).unwrap_err()
        };
        let first = result(0, Kind::Answered, Some(3_000));
        assert!(after(&[first, first]).contains("an earlier number"), "a frame is repeated");
        assert!(
            after(&[result(0, Kind::Late, Some(100))]).starts_with("a late answer after 800 ns, but its timeout is")
        );
        assert!(after(&[result(0, Kind::Answered, Some(125_001))]).starts_with("an answer in time after 1,000,008 ns"));
        let again = QuestionResult { question: 1, ..result(1, Kind::Missed, None) };
        assert_eq!(after(&[first, again]), "a result of question 1 after that of question 1");
        // More questions are missing than frames.
        let far = QuestionResult { question: 900, ..result(1, Kind::Missed, None) };
        assert_eq!(after(&[first, far]), "a result of question 900 after that of question 1");
        let totals = |end: End| {
            let mut tally = board();
            tally.add_result(&first).unwrap();
            tally.add_end(&end)
        };
        let right = End { spurious: 0, ..end(1, 1, 0, 0) };
        assert_eq!(totals(right), Ok(()));
        for wrong in [
            End { answered: 0, questions: 0, number: 1, ..right },
            End { answered: 6, ..right },
            End { answered: 6, questions: 6, ..right },
            End { spurious: 1, ..right },
        ] {
            assert_eq!(totals(wrong).unwrap_err(), "totals that contradict its results", "{wrong:?}");
        }
    }

    #[test]
    fn more_results_than_the_time_allows_are_refused() {
        let (bulk, second) =
            (Bulk { sum_ns: 24_000_000, min_ns: 24_000, max_ns: 24_000, overruns: 0, samples: 1000 }, 1);
        let mut tally = latmon();
        (1..=4).for_each(|_| tally.add_bulk(&bulk, second));
        // It discards the answers of its first second. Its clock can be faster.
        for (seconds, fits) in [(5, true), (4, true), (3, true), (2, false)] {
            assert_eq!(tally.check_elapsed(Duration::from_secs(seconds)).is_ok(), fits, "{seconds} s");
        }
        let error = tally.check_elapsed(Duration::from_secs(2)).unwrap_err();
        assert_eq!(error, "4,000 results in 2,000 ms, but a question takes 1,000 us or more");
        tally.add_bulk(&Bulk { overruns: u32::MAX, ..bulk }, second);
        assert!(tally.check_elapsed(Duration::from_hours(1)).is_err(), "an overrun takes a period, too");
        let mut tally = board();
        tally.add_result(&QuestionResult { number: 9_000, question: 9_001, ..result(0, Kind::Missed, None) }).unwrap();
        assert_eq!([7, 9].map(|seconds| tally.check_elapsed(Duration::from_secs(seconds)).is_ok()), [false, true]);
    }

    #[test]
    fn a_histogram_must_contain_the_answers_of_the_bulks() {
        // 1,000 answers after 24 us and 1,000 after 30 us.
        let check = |change: &dyn Fn(&mut Vec<u64>)| {
            let mut tally = latmon();
            tally.add_bulk(&Bulk { sum_ns: 54_400_000, min_ns: 24_100, max_ns: 30_700, overruns: 0, samples: 2000 }, 1);
            let mut cells = vec![0; 1000];
            (cells[24], cells[30]) = (1000, 1000);
            change(&mut cells);
            tally.set_cells(cells)
        };
        assert_eq!(check(&|_| ()), Ok(()));
        // The warm-up is in the histogram of Zephyr's latmon only.
        assert_eq!(check(&|cells| cells[12] = 1000), Ok(()));
        for (why, change) in [
            ("2,000 answers are missing", &(|cells: &mut Vec<u64>| cells.fill(0)) as &dyn Fn(&mut Vec<u64>)),
            ("doubled and more", &|cells| cells.iter_mut().for_each(|count| *count *= 3)),
            ("shifted", &|cells| cells.rotate_right(50)),
            ("without the smallest time", &|cells| cells.swap(24, 25)),
            ("without the largest time", &|cells| cells.swap(30, 29)),
            ("too many small times", &|cells| (cells[24], cells[30]) = (1_990, 10)),
            ("too many large times", &|cells| (cells[24], cells[30]) = (10, 1_990)),
            ("times above the largest", &|cells| (cells[24], cells[31]) = (999, 1)),
            ("a huge count", &|cells| cells[5] = u64::from(u32::MAX)),
        ] {
            let error = check(change).expect_err(why);
            assert!(error.starts_with("a histogram that contradicts its statistics: "), "{error}");
        }
        // Zephyr's latmon counts an answer of 1.2 ms at 200 us if the period is 1 ms.
        let mut tally = latmon();
        tally.add_bulk(&Bulk { sum_ns: 1_224_100, min_ns: 24_100, max_ns: 1_200_000, overruns: 1, samples: 2 }, 1);
        let mut cells = vec![0; 1000];
        (cells[24], cells[200]) = (1, 1);
        assert_eq!(tally.set_cells(cells), Ok(()));
    }
}
