//! Contradictions within a record: figures that no run can have written together.
//!
//! A record can be damaged or edited. Each check compares figures that a run derives from the same data. Small differences
//! are not compared if they would make a result look worse.

use crate::{
    Histogram, Losses, MeasuredBy, Phase, ProcessThread, Reason, Record, Responses, SERIES_ENDS, Series, SeriesKind,
    State, Stream, grouped, layout,
};

/// Identifier of the reason for a record that contradicts itself.
pub const INCONSISTENT: &str = "record.inconsistent";

const SECOND_NS: u64 = 1_000_000_000;

/// Time that is not compared: threads start and end up to this long apart, ns.
const SLACK_NS: u64 = 2_000_000_000;
/// Deviation of a clock that is not compared: one part of this many.
const SLACK_PART: u64 = 50;
/// A phase ends up to this much later than its threads, ns: a main thread that gets no CPU notices the end late.
const LATE_END_NS: u64 = 10_000_000_000;
/// Counts of a running measurement are not read at the same moment. One part of this many is not compared.
const RUNNING_PART: u64 = 50;

impl Record {
    /// The reasons why the run is invalid: those that were recorded, and the contradictions of the record.
    #[must_use]
    pub fn invalid_reasons(&self) -> Vec<Reason> {
        let mut reasons = self.validity.reasons.clone();
        for text in contradictions(self) {
            if !reasons.iter().any(|known| known.id == INCONSISTENT && known.text == text) {
                let remedy = "measure again".to_owned();
                reasons.push(Reason { id: INCONSISTENT.to_owned(), text, remedy });
            }
        }
        reasons
    }

    /// Adds the contradictions of the record to the reasons why it is invalid. Published figures are not checked, because
    /// they support no verdict.
    pub(crate) fn note_contradictions(&mut self) {
        let reasons = self.invalid_reasons();
        if reasons.len() > self.validity.reasons.len() {
            self.validity.valid = false;
            self.validity.reasons = reasons;
        }
    }
}

/// The contradictions of a record, one sentence each.
fn contradictions(record: &Record) -> Vec<String> {
    if record.published.is_some() {
        return Vec::new();
    }
    let mut found: Vec<String> = of_validity(record).into_iter().chain(of_uses(record)).collect();
    found.extend(record.phases.iter().filter_map(|phase| of_phase(record, phase)));
    for (index, series) in record.series.iter().enumerate() {
        let place = || format!("{}, {}", series.place(), series.phase);
        found.extend(of_series(record, series).into_iter().map(|text| format!("{}: {text}", place())));
        if record.series[..index].iter().any(|other| is_same(series, other)) {
            found.push(format!("{}: the record contains it twice", place()));
        }
    }
    found
}

fn of_validity(record: &Record) -> Option<String> {
    let reason = record.validity.reasons.iter().find(|reason| reason.id != INCONSISTENT)?;
    record.validity.valid.then(|| format!("it is marked as valid, but contains a reason why it is not: {}", reason.id))
}

/// The largest lateness of a judged use that no thread of the record has: the record lacks the thread.
fn of_uses(record: &Record) -> Option<String> {
    let has_time =
        |series: &Series| matches!(series.kind, SeriesKind::WakeUps | SeriesKind::Gaps(_) | SeriesKind::RoundTrips(_));
    if record.state != State::Complete || !record.series.iter().all(has_time) {
        return None;
    }
    let largest_ns = record.series.iter().filter_map(|series| series.max_ns).max()?;
    let missing = record.uses.iter().find(|a_use| a_use.worst_ns.is_some_and(|worst_ns| worst_ns > largest_ns))?;
    let worst_ns = missing.worst_ns?;
    Some(format!("the verdict on {} is about a lateness of {worst_ns} ns, which no thread has", missing.profile))
}

/// The contradictions of a finished phase.
fn of_phase(record: &Record, phase: &Phase) -> Option<String> {
    if record.state != State::Complete {
        return None;
    }
    let Phase { name, duration_ns, .. } = phase;
    let without_proof = phase.asked_loads.iter().find(|asked| !phase.loads.iter().any(|load| load.spec == **asked));
    if let Some(load) = without_proof {
        return Some(format!("the load {load} of the phase `{name}` has no proof that it ran"));
    }
    if let Some(text) = too_few(record, phase) {
        return Some(text);
    }
    let of_phase = record.series.iter().filter(|series| series.phase == *name);
    let period_ns = of_phase.map(|series| series.period_ns).max().unwrap_or_default();
    // A run that is shorter than a period measures nothing. It has a reason of its own.
    let planned_ns = phase.planned_ns.filter(|&planned_ns| planned_ns >= period_ns && ends_as_planned(record))?;
    if !record.is_cut_short(phase) {
        return None;
    }
    Some(format!("the run is complete, but the phase `{name}` lasted {duration_ns} of {planned_ns} ns"))
}

/// True if only the plan ends a complete run. Others also end with their traffic, their program or their verdict.
fn ends_as_planned(record: &Record) -> bool {
    let by_clock = |series: &Series| matches!(series.kind, SeriesKind::WakeUps | SeriesKind::Gaps(_));
    !record.scenario.until_decided && record.series.iter().all(by_clock)
}

fn of_series(record: &Record, series: &Series) -> Vec<String> {
    let counts = [wrong_count(record, series), wrong_correction(series)];
    if record.state == State::Partial {
        // The other figures of a running measurement are read one after the other.
        return counts.into_iter().flatten().collect();
    }
    let phase = record.phase(&series.phase);
    let unknown = phase.is_none().then(|| "the record does not contain its phase".to_owned());
    let granted = record.validity.valid.then(|| not_as_requested(record, phase, series)).flatten();
    let checks =
        [unknown, granted, wrong_maximum(series), wrong_spikes(series), too_many(phase, series), wrong_figures(series)];
    let checks = checks.into_iter().chain([wrong_windows(series), too_much_time(phase, series)]);
    let checks = checks.chain([unknown_host(record, series), without_period(series), wrong_losses(phase, series)]);
    counts.into_iter().chain(checks).flatten().collect()
}

/// Wake-ups without a period: no use can be compared with them.
fn without_period(series: &Series) -> Option<String> {
    let has_none = series.kind == SeriesKind::WakeUps && series.samples > 0 && series.period_ns == 0;
    has_none.then(|| "its wake-ups have no period".to_owned())
}

/// More missing results over time than in all, or windows that a run does not write.
fn wrong_losses(phase: Option<&Phase>, series: &Series) -> Option<String> {
    let Losses { window_ns, counts } = &series.losses;
    let missing = match &series.kind {
        SeriesKind::RoundTrips(trip) => trip.lost.saturating_add(trip.send_failed),
        SeriesKind::Interrupts(interrupts) => interrupts.lost.saturating_add(interrupts.unanswered),
        SeriesKind::Responses(responses) => responses.missed,
        SeriesKind::WakeUps
        | SeriesKind::Gaps(_)
        | SeriesKind::Stream(_)
        | SeriesKind::Capture
        | SeriesKind::Audio(_)
        | SeriesKind::Process(_)
        | SeriesKind::TimerlatIrq
        | SeriesKind::TimerlatThread => 0,
    };
    let over_time = series.losses.total();
    if over_time > missing {
        let [over_time, missing] = [over_time, missing].map(grouped);
        return Some(format!("it lists {over_time} missing results over time, but counts {missing}"));
    }
    let (last, most) = (counts.last()?.0, counts.iter().map(|(_, count)| *count).max()?);
    let is_in_order = counts.is_sorted_by(|one, next| one.0 < next.0) && counts.iter().all(|(_, count)| *count > 0);
    let is_window = window_ns.is_multiple_of(SECOND_NS) && (window_ns / SECOND_NS).is_power_of_two();
    if !is_in_order || !is_window {
        return Some("its windows with missing results are not those of a run".to_owned());
    }
    // Interrupts can come faster than their expected period.
    let slots = window_ns.checked_div(series.period_ns).filter(|_| series.kind.interrupts().is_none());
    if let Some(slots) = slots.filter(|&slots| most > slots.saturating_add(2)) {
        let [most, slots] = [most, slots].map(grouped);
        return Some(format!("it lists {most} missing results in a window with {slots} deadlines"));
    }
    let (from_ns, duration_ns) = (u128::from(last) * u128::from(*window_ns), phase?.duration_ns);
    (from_ns > u128::from(duration_ns) + u128::from(SLACK_NS))
        .then(|| format!("it lists a missing result after {from_ns} ns, but its phase lasted {duration_ns} ns"))
}

/// A series of another machine that the record does not contain. Its clock would not be compared with the run's.
fn unknown_host(record: &Record, series: &Series) -> Option<String> {
    let host = series.host.as_ref()?;
    let is_far = record.far.as_ref().is_some_and(|far| far.host == *host);
    (!is_far).then(|| format!("it is of {host}, but the record contains no such machine"))
}

/// True if these are the same series: of one thread, with the same figures.
fn is_same(one: &Series, other: &Series) -> bool {
    let thread =
        |series: &Series| (series.cpu, series.period_ns, series.samples, series.max_ns, series.first_deadline_ns);
    // Only a series that was measured has these.
    let is_measured = one.samples > 0 && (one.first_deadline_ns > 0 || one.max_at_ns.is_some());
    let is_one_thread = one.phase == other.phase && one.role == other.role && one.host == other.host;
    is_one_thread && is_measured && thread(one) == thread(other) && one.kind == other.kind && one.raw == other.raw
}

/// The difference between the requested and the granted settings of a thread, which a run reports as a reason.
fn not_as_requested(record: &Record, phase: Option<&Phase>, series: &Series) -> Option<String> {
    let granted = &series.granted;
    let is_ours = series.kind.properties().by == MeasuredBy::Probe && series.kind.process().is_none();
    if !is_ours || granted.policy.is_empty() || series.host.is_some() || series.evl.is_some() {
        return None;
    }
    let of_role = phase.and_then(|phase| phase.threads.iter().find(|thread| thread.role == series.role));
    // The policies of several roles are a list in the scenario.
    let of_all = Some(record.scenario.policy.as_str()).filter(|policy| !policy.contains(" for "));
    let asked = of_role.map(|thread| thread.policy.as_str()).or(of_all).filter(|asked| !asked.is_empty());
    if let Some(asked) = asked.filter(|asked| *asked != granted.policy) {
        return Some(format!("policy {asked} was requested, but {} granted", granted.policy));
    }
    let pinned = series.cpu.filter(|cpu| !granted.cpus.is_empty() && granted.cpus != cpu.to_string());
    if let Some(cpu) = pinned {
        return Some(format!("the thread is on CPU {cpu}, but may run on CPUs {}", granted.cpus));
    }
    let is_realtime = ["fifo", "rr", "deadline"].iter().any(|class| granted.policy.starts_with(class));
    (is_realtime && !granted.memory_locked).then(|| "the memory of a real-time thread was not locked".to_owned())
}

/// The difference between the number of samples and the counts of the histogram.
fn wrong_count(record: &Record, series: &Series) -> Option<String> {
    let (samples, counted) = (series.samples, series.raw.total());
    let slack = if record.state == State::Partial { 1000 + samples / RUNNING_PART } else { 0 };
    (samples.abs_diff(counted) > slack)
        .then(|| format!("it has {} samples, but its histogram counts {}", grouped(samples), grouped(counted)))
}

/// A corrected histogram that cannot follow from the raw one: a late value adds one deadline for each whole period.
fn wrong_correction(series: &Series) -> Option<String> {
    if series.corrected.is_empty() {
        return None;
    }
    let (raw, corrected) = (series.raw.total(), series.corrected.total());
    let missed_by = |late_ns: i64| late_ns.max(0).unsigned_abs().checked_div(series.period_ns).unwrap_or(0);
    let each = series.raw.iter().map(|(late_ns, count)| missed_by(late_ns).saturating_add(1).saturating_mul(count));
    let most = each.fold(series.missed, u64::saturating_add);
    (corrected < raw || corrected > most).then(|| {
        let [corrected, raw, most] = [corrected, raw, most].map(grouped);
        format!("its corrected histogram counts {corrected} deadlines, but its samples allow {raw} to {most}")
    })
}

/// A maximum below the largest counted value.
fn wrong_maximum(series: &Series) -> Option<String> {
    let max_ns = series.max_ns?;
    let least_ns = least_maximum(&series.raw)?;
    let of_windows = series.maxima.max_ns.iter().flatten().max().copied().unwrap_or(max_ns);
    let largest_ns = least_ns.max(of_windows);
    (max_ns < largest_ns).then(|| format!("its maximum is {max_ns} ns, but it counts a value of {largest_ns} ns"))
}

/// Maxima over time that are all below the maximum. The last window can be incomplete.
fn wrong_windows(series: &Series) -> Option<String> {
    let covers_all = matches!(series.kind, SeriesKind::WakeUps | SeriesKind::Process(_));
    let (max_ns, windows) = (series.max_ns?, &series.maxima);
    let largest_ns = windows.max_ns.iter().flatten().max().copied().filter(|_| covers_all)?;
    let last_ns = (windows.max_ns.len() as u64).saturating_sub(1).saturating_mul(windows.window_ns);
    let is_before = series.max_at_ns.is_some_and(|at_ns| at_ns < last_ns);
    (is_before && largest_ns < max_ns)
        .then(|| format!("its maximum is {max_ns} ns, but its maxima over time are at most {largest_ns} ns"))
}

/// The smallest value that the largest one in `histogram` can be.
fn least_maximum(histogram: &Histogram) -> Option<i64> {
    let (top_ns, _) = histogram.iter().next_back()?;
    let size = top_ns.unsigned_abs();
    if top_ns <= 0 {
        return Some(top_ns);
    }
    if *histogram == histogram.coarse() {
        let dropped_bits = size.checked_ilog2().unwrap_or(0).saturating_sub(4);
        return Some((size >> dropped_bits << dropped_bits).cast_signed());
    }
    Some(layout::lowest_in(layout::index_of(size)).cast_signed())
}

fn wrong_spikes(series: &Series) -> Option<String> {
    let properties = series.kind.properties();
    let (kept, total) = (series.spikes.len() as u64, series.spikes_total);
    // Those of timerlat's interrupt are stored in the series of its thread.
    if properties.by != MeasuredBy::Kernel && kept > total {
        return Some(format!("it lists {} of {} spikes", grouped(kept), grouped(total)));
    }
    let latest_ns = series.spikes.iter().map(|spike| spike.lateness_ns).max()?;
    let max_ns = series.max_ns.filter(|&max_ns| properties.spikes_are_values && max_ns < latest_ns)?;
    Some(format!("its maximum is {max_ns} ns, but it lists a spike of {latest_ns} ns"))
}

/// More deadlines than fit in the phase. Frames of another talker and cycles of a program have no clock of ours.
fn too_many(phase: Option<&Phase>, series: &Series) -> Option<String> {
    let properties = series.kind.properties();
    let has_clock = properties.has_deadlines && properties.by == MeasuredBy::Probe && series.kind.process().is_none();
    let is_trip = series.kind.round_trip().is_some();
    if !(has_clock || is_trip) || series.host.is_some() {
        return None;
    }
    let duration_ns = phase?.duration_ns;
    let missed = if series.kind == SeriesKind::WakeUps { series.missed } else { 0 };
    let deadlines = series.samples.saturating_add(missed).max(series.corrected.total());
    let needed_ns = u128::from(deadlines) * u128::from(series.period_ns);
    let fits_ns = u128::from(duration_ns) + u128::from(duration_ns / SLACK_PART) + u128::from(SLACK_NS);
    let late_ns = series.max_ns.unwrap_or_default().max(0).unsigned_abs();
    let period_ns = series.period_ns;
    (needed_ns > fits_ns + u128::from(late_ns) + u128::from(period_ns)).then(|| {
        let deadlines = grouped(deadlines);
        format!("{deadlines} deadlines every {period_ns} ns do not fit in the {duration_ns} ns of its phase")
    })
}

/// A phase that is longer than the deadlines of all threads that woke up until its end.
fn too_few(record: &Record, phase: &Phase) -> Option<String> {
    let has_ended = |series: &Series| series.notes.iter().any(|note| note.contains(SERIES_ENDS));
    let wakes_up = |series: &&Series| series.kind == SeriesKind::WakeUps && series.host.is_none() && series.samples > 0;
    let of_phase = || record.series.iter().filter(|series| series.phase == phase.name).filter(wakes_up);
    if of_phase().any(has_ended) {
        return None;
    }
    let lasted_ns = |series: &Series| {
        let deadlines = series.samples.saturating_add(series.missed).saturating_add(1);
        let late_ns = series.max_ns.unwrap_or_default().max(0).unsigned_abs();
        u128::from(deadlines) * u128::from(series.period_ns) + u128::from(late_ns)
    };
    let longest_ns = of_phase().map(lasted_ns).max()?;
    // The last datagrams are waited for.
    let round_trips = record.series.iter().filter_map(|series| series.kind.round_trip());
    let waited_ns = round_trips.map(|trip| trip.timeout_ns).max().unwrap_or(0);
    let (name, duration_ns) = (&phase.name, phase.duration_ns);
    (u128::from(duration_ns - duration_ns / 10) > longest_ns + u128::from(LATE_END_NS) + u128::from(waited_ns))
        .then(|| format!("the phase `{name}` lasted {duration_ns} ns, but its deadlines only {longest_ns} ns"))
}

/// An observed time that is longer than the phase.
fn too_much_time(phase: Option<&Phase>, series: &Series) -> Option<String> {
    let SeriesKind::Gaps(noise) = &series.kind else { return None };
    let (observed_ns, duration_ns) = (noise.observed_ns, phase?.duration_ns);
    (observed_ns > duration_ns.saturating_add(duration_ns / SLACK_PART).saturating_add(SLACK_NS))
        .then(|| format!("it observed its CPU for {observed_ns} ns, but its phase lasted {duration_ns} ns"))
}

/// Contradictions in the cycles of a program's thread.
fn wrong_cycles(thread: &ProcessThread) -> Option<String> {
    let (cycles, counted) = (thread.cycles, thread.response.total());
    if cycles != counted {
        return Some(format!("it has {} cycles, but its histogram counts {}", grouped(cycles), grouped(counted)));
    }
    let least_ns = least_maximum(&thread.response)?;
    let longest_ns =
        thread.longest.as_ref().map_or(0, |longest| i64::try_from(longest.response_ns()).unwrap_or(i64::MAX));
    (longest_ns < least_ns)
        .then(|| format!("its longest cycle took {longest_ns} ns, but it counts one of {least_ns} ns"))
}

/// Contradictions in the counts of a judge, and between them and its times.
fn wrong_responses(series: &Series, responses: &Responses) -> Option<String> {
    let Responses { questions, answered, late, missed, without_time, complete, unreported, clamped, .. } = *responses;
    if unreported.max(clamped) > answered {
        let [unreported, clamped, answered] = [unreported, clamped, answered].map(grouped);
        return Some(format!(
            "its judge counts {answered} answers, but {unreported} that its statistics lack, and {clamped} in its last cell"
        ));
    }
    let exact = &responses.exact;
    let count = |is_counted: &dyn Fn(u64) -> bool| {
        let counted = exact.iter().filter(|(ns, _)| is_counted(*ns));
        counted.fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))
    };
    let timed = if exact.is_empty() { series.samples } else { count(&|_| true) };
    let is_timed = if complete { answered == timed.saturating_add(without_time) } else { answered >= timed };
    if late > answered || !is_timed || questions != answered.saturating_add(missed) {
        let [questions, answered, late, missed, timed, without_time] =
            [questions, answered, late, missed, timed, without_time].map(grouped);
        return Some(format!(
            "its judge counts {questions} questions, {answered} answers, {late} of them late, {missed} without an answer, \
             {timed} times and {without_time} lost ones, which do not fit"
        ));
    }
    let (largest_ns, _) = exact.last()?;
    if series.max_ns != i64::try_from(*largest_ns).ok() {
        return Some(format!("its judge measured {largest_ns} ns, which is not its maximum"));
    }
    // An answer after exactly a period can be either.
    let (least, most) = (count(&|ns| ns > series.period_ns), count(&|ns| ns >= series.period_ns));
    (complete && (late < least || late > most.saturating_add(without_time))).then(|| {
        format!("its judge counts {} late answers, but {} times of a period or more", grouped(late), grouped(most))
    })
}

/// Contradictions in the figures of one kind of series.
fn wrong_figures(series: &Series) -> Option<String> {
    match &series.kind {
        SeriesKind::RoundTrips(trip) => {
            let (slots, counted) =
                (trip.slots, series.samples.saturating_add(trip.lost).saturating_add(trip.send_failed));
            (counted > slots).then(|| {
                let [counted, slots] = [counted, slots].map(grouped);
                format!("it counts {counted} answered, lost and refused datagrams of {slots}")
            })
        }
        SeriesKind::Gaps(noise) => (noise.lost_ns > noise.observed_ns)
            .then(|| format!("it lost {} ns of {} observed ns", grouped(noise.lost_ns), grouped(noise.observed_ns))),
        SeriesKind::Stream(Stream::Talker(talker)) => {
            let (frames, counted) = (talker.frames, talker.send.total());
            let least_ns =
                least_maximum(&talker.send).filter(|&least| talker.max_delta_ns.is_some_and(|max| max < least));
            let wrong_maximum =
                least_ns.map(|least_ns| format!("it counts a frame sent {least_ns} ns late, above its maximum"));
            let wrong_count = (frames != counted)
                .then(|| format!("it sent {} frames, but counts {} times", grouped(frames), grouped(counted)));
            wrong_count.or(wrong_maximum)
        }
        SeriesKind::Audio(audio) => {
            let (xruns, played) = (audio.xruns, audio.played);
            (xruns > played).then(|| format!("it counts {} xruns in {} periods", grouped(xruns), grouped(played)))
        }
        SeriesKind::Process(thread) => wrong_cycles(thread),
        SeriesKind::Responses(responses) => wrong_responses(series, responses),
        SeriesKind::WakeUps
        | SeriesKind::Interrupts(_)
        | SeriesKind::Stream(Stream::Listener(_))
        | SeriesKind::Capture
        | SeriesKind::TimerlatIrq
        | SeriesKind::TimerlatThread => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interrupts, RoundTrip};

    #[test]
    fn missing_results_over_time_are_those_of_a_run() {
        let losses = Losses { counts: vec![(0, 2), (9, 1)], ..Losses::default() };
        let phase = Phase { duration_ns: 10 * SECOND_NS, ..Phase::default() };
        let wrong = |kind: SeriesKind, losses: &Losses| {
            let series = Series { kind, losses: losses.clone(), period_ns: SECOND_NS / 10, ..Series::default() };
            wrong_losses(Some(&phase), &series)
        };
        let trip = |lost| SeriesKind::RoundTrips(Box::new(RoundTrip { lost, send_failed: 1, ..RoundTrip::default() }));
        let interrupts =
            |lost| SeriesKind::Interrupts(Box::new(Interrupts { lost, unanswered: 1, ..Interrupts::default() }));
        let responses = |missed| SeriesKind::Responses(Box::new(Responses { missed, ..Responses::default() }));
        for right in [trip(2), interrupts(2), responses(3)] {
            assert_eq!(wrong(right, &losses), None);
        }
        for too_few in [trip(1), interrupts(1), responses(2), SeriesKind::WakeUps] {
            assert!(wrong(too_few, &losses).is_some());
        }
        let with = |counts: &[(u64, u64)]| Losses { counts: counts.to_vec(), ..Losses::default() };
        for none in [&[(9, 1), (0, 2)][..], &[(3, 1), (3, 1)], &[(3, 0)], &[(13, 1)], &[(3, 13)], &[(u64::MAX, 1)]] {
            assert!(wrong(trip(20), &with(none)).is_some(), "{none:?}");
        }
        assert_eq!(wrong(interrupts(20), &with(&[(3, 13)])), None, "a burst of interrupts");
        for window_ns in [0, 1, SECOND_NS * 3, SECOND_NS / 2] {
            assert!(wrong(trip(20), &Losses { window_ns, ..losses.clone() }).is_some(), "{window_ns}");
        }
    }

    /// Each figure of a judge that is changed alone contradicts the others.
    #[test]
    fn figures_of_a_judge_fit_each_other() {
        let whole = Responses {
            questions: 13,
            answered: 12,
            late: 2,
            missed: 1,
            without_time: 2,
            complete: true,
            exact: vec![(500, 8), (1_000, 1), (1_500, 1)],
            ..Responses::default()
        };
        let series = Series { samples: 10, period_ns: 1_000, max_ns: Some(1_500), ..Series::default() };
        let wrong = |change: &dyn Fn(&mut Responses)| {
            let mut responses = whole.clone();
            change(&mut responses);
            wrong_responses(&series, &responses)
        };
        assert_eq!(wrong(&|_| ()), None);
        // The lost results and the one after exactly a period can have been late.
        assert_eq!((wrong(&|of| of.late = 1), wrong(&|of| of.late = 4)), (None, None));
        let changes: [&dyn Fn(&mut Responses); 9] = [
            &|of| of.missed = 0,
            &|of| of.questions = 12,
            &|of| of.answered = 13,
            &|of| of.without_time = 0,
            &|of| of.late = 0,
            &|of| of.late = 5,
            &|of| of.late = 13,
            &|of| of.exact[0].1 = 9,
            &|of| of.exact.push((9_000, 0)),
        ];
        for (index, change) in changes.iter().enumerate() {
            assert!(wrong(change).is_some(), "{index}");
        }
    }
}
