//! The results of a run, counted.

use std::{collections::BTreeMap, time::Duration};

use record::{
    Histogram, JudgeProtocol, LATMON_WAITS_NS, Losses, Maxima, RESPONSE, Responses, Series, SeriesKind, grouped,
};

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

/// For this time, at the begin and the end of a run, latmon asks nothing or reports no answers.
const UNREPORTED: Duration = Duration::from_secs(3);
/// Statistics of latmon can arrive so much later than it sent them.
const BULK_SLACK: Duration = Duration::from_millis(200);
/// A judge asks slowly if it needs so many per cent of the time of its questions, which a caveat says.
const SLOW_PERCENT: u128 = 110;
/// A judge asks too slowly if it needs more than so many per cent of that time: the run is invalid.
const TOO_SLOW_PERCENT: u128 = 200;

/// A judge that asks more slowly than requested.
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
    /// Questions without an answer, over time.
    losses: Losses,
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

    /// Time between two questions, ns.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.period_ns
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

    /// A judge that asked more slowly than requested, also in words. `None` if it did not, or if the run has not ended.
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
            u128::from(answers) * u128::from(self.period_ns) + u128::from(overruns) * u128::from(LATMON_WAITS_NS)
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
            (Kind::Missed, _) => {
                counts.missed += 1;
                self.losses.add(result.time.saturating_mul(TICK_NS), 1);
            }
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
    /// later than a period was a question without an answer, if latmon waited a second for it. The sample of Zephyr waits
    /// only 1 ms, whatever the period is (`samples/net/latmon/src/main.c`).
    pub fn add_bulk(&mut self, bulk: &Bulk, at_ns: u64) {
        let Bulk { sum_ns, min_ns, max_ns, overruns, samples } = *bulk;
        *self.counts.overruns.get_or_insert_default() += u64::from(overruns);
        // latmon compares whole microseconds.
        let has_late = samples > 0 && u64::from(max_ns) / CELL_NS > self.period_ns / CELL_NS;
        if has_late || !self.has_waited(bulk, at_ns) {
            self.counts.possibly_missed += u64::from(overruns);
        } else {
            self.counts.missed += u64::from(overruns);
            self.losses.add_run(at_ns, overruns.into(), LATMON_WAITS_NS);
        }
        if samples > 0 {
            self.counts.answered += u64::from(samples);
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

    /// True if the time since the bulk before suffices for the answers of a bulk that arrived `at_ns` after the start, and for
    /// about a second for each overrun. Before the first bulk, latmon asks for a second without reporting the answers.
    fn has_waited(&self, bulk: &Bulk, at_ns: u64) -> bool {
        let (before_ns, warm_up_ns) = self.bulks.map_or((0, BULK_NS), |[_, last]| (last.at_ns, 0));
        let answers_ns = u64::from(bulk.samples).saturating_mul(self.period_ns).saturating_add(warm_up_ns);
        let waits_ns = u64::from(bulk.overruns).saturating_mul(LATMON_WAITS_NS / 4 * 3);
        let slack_ns = u64::try_from(BULK_SLACK.as_nanos()).unwrap_or(u64::MAX);
        at_ns.saturating_sub(before_ns) >= answers_ns.saturating_add(waits_ns).saturating_add(slack_ns)
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
        self.counts.unreported = self.counts.answered - self.in_bulks;
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
            losses: self.losses.clone(),
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
mod tests;
