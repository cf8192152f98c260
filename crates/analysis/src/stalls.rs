//! The late and missing results of a series, grouped into stalls.
//!
//! One cause often makes many neighbouring cycles late, so late cycles are not independent of each other. Stalls are
//! taken as independent: late cycles that follow each other within a second belong to one stall.

use record::{Audio, Histogram, Losses, Maxima, Series, Spike, layout};

use crate::{
    events::{Events, SECOND_NS, Stretch, gap_ns, joined},
    summary::max_of,
};

/// The wake-ups of `series` that were more than `limit_ns` late, for a use with a cycle of `period_ns`.
///
/// A stall that lasts longer than a second counts as one for each second that it began. A thread of a program without a
/// known period counts as one with the period of the use.
pub(crate) fn late(series: &Series, period_ns: u64, limit_ns: i64) -> Events {
    let measured_ns = if series.period_ns == 0 { period_ns } else { series.period_ns };
    if max_of(series).is_none_or(|max_ns| max_ns <= limit_ns) {
        return Events::default();
    }
    let (listed, are_all) = listed(series, limit_ns);
    let late_deadlines_of = |spike: &Spike| deadlines_of(series, spike, measured_ns, limit_ns);
    let of_list = listed_stalls(&listed, late_deadlines_of, measured_ns, period_ns);
    if are_all {
        return of_list;
    }
    let wake_ups = late_values(series, limit_ns);
    // All in one stall, with a time on time between two of them.
    let gap_ns = gap_ns(measured_ns.max(period_ns));
    let late_ns = wake_ups
        .iter()
        .fold(0, |sum: u64, (late_ns, count)| sum.saturating_add(late_ns.unsigned_abs().saturating_mul(*count)));
    let gaps = total(&wake_ups).saturating_sub(1).saturating_mul(gap_ns.div_ceil(SECOND_NS));
    let most_seconds = late_ns.div_ceil(SECOND_NS).saturating_add(gaps);
    let windows = late_windows(&series.maxima, limit_ns);
    let seconds = least_seconds(series.maxima.window_ns, windows.iter().map(|&(number, _)| number), period_ns);
    let [certain, possible] = late_deadlines(series, &wake_ups, limit_ns);
    let [cycles, most_cycles] =
        cycles(possible, total(&wake_ups), measured_ns, period_ns).map(|count| count.max(seconds));
    // A second of a stall contains at most so many deadlines, one of them at each end.
    let in_a_second = (SECOND_NS.max(period_ns) / measured_ns.max(1)).saturating_add(1);
    // Each is a lower bound: further late wake-ups between the listed ones make stalls longer, not fewer.
    let stalls_at_least = seconds.max(certain.div_ceil(in_a_second)).max(of_list.stalls_at_least);
    let known = Events { cycles, most_cycles, stalls_at_least, gap_ns, ..Events::default() };
    match has_all_windows(series, measured_ns) && !windows.is_empty() {
        // Each stall makes a cycle late.
        true => Events {
            stretches: windows.iter().map(|&(number, late_ns)| window(&series.maxima, number, late_ns)).collect(),
            cycles_in_stretches: most_seconds.min(most_cycles),
            ..known
        },
        false => Events { unknown_runs: total(&wake_ups), unknown_seconds: most_seconds.min(most_cycles), ..known },
    }
}

/// The number of late wake-ups of `series`. If the record has no exact values, it contains those in the bucket of the limit.
pub(crate) fn late_wake_ups(series: &Series, limit_ns: i64) -> u64 {
    if max_of(series).is_none_or(|max_ns| max_ns <= limit_ns) {
        return 0;
    }
    let (listed, are_all) = listed(series, limit_ns);
    if are_all { listed.len() as u64 } else { total(&late_values(series, limit_ns)).max(1) }
}

/// The listed late wake-ups of a series that has late ones, and true if no other was late.
fn listed(series: &Series, limit_ns: i64) -> (Vec<&Spike>, bool) {
    if !series.kind.properties().spikes_are_values {
        return (Vec::new(), false);
    }
    let listed: Vec<&Spike> = series.spikes.iter().filter(|spike| spike.lateness_ns > limit_ns).collect();
    let count = listed.len() as u64;
    let is_whole_list = series.spikes.len() as u64 >= series.spikes_total || count >= series.raw.count_above(limit_ns);
    // The bucket that contains the limit also has values below it.
    let certain = series.raw.iter().filter(|(late_ns, _)| lowest_in_bucket(*late_ns) > limit_ns);
    let are_all = is_whole_list && count >= certain.map(|(_, count)| count).sum::<u64>().max(1);
    (listed, are_all)
}

fn total(values: &[(i64, u64)]) -> u64 {
    values.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))
}

/// The values above the limit with their counts, in ns. If the record has no exact values, the bucket of the limit counts.
fn late_values(series: &Series, limit_ns: i64) -> Vec<(i64, u64)> {
    match exact_values(series) {
        Some(exact) => exact.filter(|(late_ns, _)| *late_ns > limit_ns).collect(),
        None => series.raw.iter().filter(|(late_ns, _)| *late_ns > limit_ns).collect(),
    }
}

/// The exact values of the judge of punctual, if the record contains all.
fn exact_values(series: &Series) -> Option<impl Iterator<Item = (i64, u64)>> {
    let exact = &series.kind.responses()?.exact;
    let all = exact.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
    (all == series.raw.total()).then(|| exact.iter().map(|&(ns, count)| (i64::try_from(ns).unwrap_or(i64::MAX), count)))
}

/// True if the windows of the series are as long as its wake-ups.
fn has_all_windows(series: &Series, measured_ns: u64) -> bool {
    let Maxima { window_ns, max_ns } = &series.maxima;
    let windows_ns = (max_ns.len() as u128 + 1) * u128::from(*window_ns);
    windows_ns >= u128::from(series.raw.total()) * u128::from(measured_ns)
}

/// The windows with a late wake-up in order, each with its number and largest lateness in ns.
fn late_windows(maxima: &Maxima, limit_ns: i64) -> Vec<(u64, u64)> {
    let late = |max_ns: &Option<i64>| max_ns.filter(|max_ns| *max_ns > limit_ns).map(i64::unsigned_abs);
    (0u64..).zip(&maxima.max_ns).filter_map(|(number, max_ns)| Some((number, late(max_ns)?))).collect()
}

/// A window with a late wake-up, which can be at its end.
fn window(maxima: &Maxima, number: u64, late_ns: u64) -> Stretch {
    let start_ns = number.saturating_mul(maxima.window_ns);
    Stretch {
        start_ns,
        end_ns: start_ns.saturating_add(maxima.window_ns.saturating_sub(1)).saturating_add(late_ns),
        cycles: 1,
    }
}

/// The least number of seconds with a cycle late if `cycles` were.
fn seconds_of(cycles: u64, period_ns: u64) -> u64 {
    let ns = u128::from(cycles) * u128::from(period_ns);
    u64::try_from(ns.div_ceil(u128::from(SECOND_NS))).unwrap_or(u64::MAX).clamp(cycles.min(1), cycles)
}

/// The smallest lateness in the bucket of `late_ns`.
fn lowest_in_bucket(late_ns: i64) -> i64 {
    layout::lowest_in(layout::index_of(late_ns.max(0).unsigned_abs())).cast_signed()
}

/// The deadlines that a late wake-up made late. An answer or a frame is late alone, and a thread with the deadlines that it
/// overran.
fn deadlines_of(series: &Series, spike: &Spike, measured_ns: u64, limit_ns: i64) -> u64 {
    let in_deadlines = |ns: u64| ns / measured_ns.max(1);
    let omits_none = !series.corrected.is_empty() && series.corrected.total() == series.raw.total();
    match &spike.trip {
        // Nothing is sent at the deadlines that the sending thread overran.
        Some(trip) => in_deadlines(trip.wake_ns.max(0).unsigned_abs()) + 1,
        None if omits_none => 1,
        None => in_deadlines(spike.lateness_ns.abs_diff(limit_ns) - 1) + 1,
    }
}

/// Stalls from the time of each late wake-up, and the deadlines that each made late.
fn listed_stalls(late: &[&Spike], deadlines: impl Fn(&Spike) -> u64, measured_ns: u64, period_ns: u64) -> Events {
    let wake_ups = late.iter().map(|spike| LateWakeUp {
        at_ns: spike.at_ns,
        lateness_ns: spike.lateness_ns.unsigned_abs(),
        deadlines: deadlines(spike),
    });
    of_stalls(&stalls(wake_ups, measured_ns, period_ns), measured_ns, period_ns)
}

/// Stalls whose times are known exactly.
fn of_stalls(stalls: &[Stall], measured_ns: u64, period_ns: u64) -> Events {
    let seconds = |stall: &Stall| (stall.end_ns - stall.start_ns).div_ceil(SECOND_NS).clamp(1, stall.cycles_at_least);
    let most_cycles = |stall: &Stall| match measured_ns < period_ns {
        true => stall.most_cycles.min(most_cycles_in(stall.last_ns - stall.start_ns, period_ns)),
        false => stall.cycles,
    };
    let stretch =
        |stall: &Stall| Stretch { start_ns: stall.start_ns, end_ns: stall.end_ns, cycles: most_cycles(stall) };
    let sum = |of: &dyn Fn(&Stall) -> u64| stalls.iter().map(of).fold(0, u64::saturating_add);
    let most = sum(&most_cycles);
    Events {
        cycles: sum(&|stall| stall.cycles),
        most_cycles: most,
        stalls_at_least: sum(&seconds),
        stretches: stalls.iter().map(stretch).collect(),
        cycles_in_stretches: most,
        gap_ns: gap_ns(measured_ns.max(period_ns)),
        ..Events::default()
    }
}

/// A wake-up, or a period of audio, that was too late.
struct LateWakeUp {
    /// Its deadline, ns after the first one.
    at_ns: u64,
    lateness_ns: u64,
    /// Deadlines that it made late; 1 or more.
    deadlines: u64,
}

/// Late wake-ups without a second on time between them.
struct Stall {
    /// The first deadline, ns after the first one of the series.
    start_ns: u64,
    /// The last wake-up, likewise.
    end_ns: u64,
    /// Cycles of the use with a late deadline, if one begins with the stall; 1 or more.
    cycles: u64,
    /// Cycles with a late deadline of each wake-up, wherever they begin: the sum of the largest numbers.
    most_cycles: u64,
    /// The last late deadline, ns after the first deadline of the series.
    last_ns: u64,
    /// The number of the cycle after the last of these, from 0 at the begin of the stall.
    next_cycle: u64,
    /// The least number of cycles that contain the late deadlines wherever they begin; 1 or more.
    cycles_at_least: u64,
    /// The end of the last one, ns after the first deadline of the series.
    counted_ns: u64,
}

/// Groups late wake-ups in order of time.
fn stalls(late: impl Iterator<Item = LateWakeUp>, measured_ns: u64, period_ns: u64) -> Vec<Stall> {
    let gap_ns = gap_ns(measured_ns.max(period_ns));
    let mut stalls: Vec<Stall> = Vec::new();
    for LateWakeUp { at_ns, lateness_ns, deadlines } in late {
        let end_ns = at_ns.saturating_add(lateness_ns);
        let is_same = stalls.last().is_some_and(|stall| at_ns <= stall.end_ns.saturating_add(gap_ns));
        if !is_same {
            let [cycles, most_cycles, next_cycle, cycles_at_least] = [0; 4];
            let (start_ns, last_ns, counted_ns) = (at_ns, at_ns, at_ns);
            stalls.push(Stall {
                start_ns,
                end_ns,
                cycles,
                most_cycles,
                last_ns,
                next_cycle,
                cycles_at_least,
                counted_ns,
            });
        }
        let stall = stalls.last_mut().expect("one was just added");
        stall.end_ns = stall.end_ns.max(end_ns);
        if measured_ns >= period_ns {
            stall.cycles = stall.cycles.saturating_add(deadlines);
            stall.cycles_at_least = stall.cycles;
            continue;
        }
        let last_ns = at_ns.saturating_add((deadlines - 1).saturating_mul(measured_ns));
        stall.last_ns = stall.last_ns.max(last_ns);
        stall.most_cycles = stall.most_cycles.saturating_add(most_cycles_in(last_ns - at_ns, period_ns).min(deadlines));
        let cycle_of = |ns: u64| ns.saturating_sub(stall.start_ns) / period_ns;
        let after = cycle_of(last_ns).saturating_add(1);
        stall.cycles = stall.cycles.saturating_add(after.saturating_sub(stall.next_cycle.max(cycle_of(at_ns))));
        stall.next_cycle = stall.next_cycle.max(after);
        if last_ns >= stall.counted_ns {
            let from_ns = at_ns.max(stall.counted_ns);
            let cycles = (last_ns - from_ns) / period_ns + 1;
            stall.cycles_at_least = stall.cycles_at_least.saturating_add(cycles);
            stall.counted_ns = from_ns.saturating_add(cycles.saturating_mul(period_ns));
        }
    }
    stalls
}

/// The missed deadlines without a late wake-up, as those in a pause of the guard. None of them is certainly late. Several can
/// have been missed in a row.
pub(crate) fn possibly_late(series: &Series, period_ns: u64, limit_ns: i64) -> Events {
    let missed = without_late_wake_up(series);
    if missed.saturating_mul(series.period_ns) <= limit_ns.max(0).unsigned_abs() {
        return Events::default();
    }
    of_missing(Missing::anywhere(missed), series.period_ns, period_ns).possible()
}

/// The missed deadlines of a series without a late wake-up.
pub(crate) fn without_late_wake_up(series: &Series) -> u64 {
    unexplained(series.missed, &series.raw, series.period_ns)
}

/// The missed deadlines that the lateness of the others does not explain. A bucket counts with its highest value.
pub(crate) fn unexplained(missed: u64, lateness: &Histogram, period_ns: u64) -> u64 {
    let missed_by = |late_ns: i64| late_ns.max(0).unsigned_abs() / period_ns.max(1);
    let explained = lateness.iter().map(|(late_ns, count)| missed_by(late_ns).saturating_mul(count));
    missed.saturating_sub(explained.fold(0, u64::saturating_add))
}

/// Answers, frames or periods that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Missing {
    /// Their number.
    pub total: u64,
    /// The largest possible number of runs of consecutive ones.
    pub runs: u64,
}

impl Missing {
    /// Missing frames or answers whose number is known, but not their places.
    pub fn anywhere(total: u64) -> Self {
        Self { total, runs: total }
    }

    /// The same if the longest run of consecutive ones is known.
    pub fn with_longest(total: u64, longest: u64) -> Self {
        Self { total, runs: total - longest.clamp(total.min(1), total) + total.min(1) }
    }
}

/// `missing` deadlines, `measured_ns` apart, whose times the record does not contain.
///
/// They are at least one stall for each second that they fill. At most, each run of consecutive ones counts once for each
/// second. All can be in one stall, with less than a second between them.
pub(crate) fn of_missing(missing: Missing, measured_ns: u64, period_ns: u64) -> Events {
    let Missing { total, runs } = missing;
    if total == 0 {
        return Events::default();
    }
    let seconds = |run: u64| seconds_of(run, measured_ns).min(in_cycles(run, measured_ns, period_ns));
    // Wherever the cycles of the use begin, each contains no more.
    let in_a_cycle = if measured_ns < period_ns { (period_ns / measured_ns.max(1)).saturating_add(1) } else { 1 };
    // One run is long, and the others are single ones.
    let unknown_runs = runs.clamp(1, total);
    let single = unknown_runs - 1;
    let [cycles, most_cycles] = cycles(total, runs, measured_ns, period_ns);
    Events {
        cycles,
        most_cycles,
        stalls_at_least: seconds(total).min(total.div_ceil(in_a_cycle)),
        unknown_runs,
        unknown_seconds: seconds(total - single).saturating_add(single),
        gap_ns: gap_ns(measured_ns.max(period_ns)),
        ..Events::default()
    }
}

/// `missing` deadlines; `losses` contains the times of some or all. A missing result is late until the next deadline.
pub(crate) fn of_losses(missing: Missing, losses: &Losses, measured_ns: u64, period_ns: u64) -> Events {
    let of_all = of_missing(missing, measured_ns, period_ns);
    let known = losses.total().min(missing.total);
    if known == 0 {
        return of_all;
    }
    let stalls_at_least = of_all.stalls_at_least.max(least_in_windows(losses, known, period_ns));
    let of_known = of_missing(Missing { total: known, ..missing }, measured_ns, period_ns);
    let of_rest = of_missing(Missing { total: missing.total - known, ..missing }, measured_ns, period_ns);
    let window = |&(number, count): &(u64, u64)| {
        let start_ns = number.saturating_mul(losses.window_ns);
        let end_ns = start_ns.saturating_add(losses.window_ns.saturating_sub(1)).saturating_add(measured_ns);
        Stretch { start_ns, end_ns, cycles: count }
    };
    // A chain of windows has room for so many cycles of the use, with a part of one at each end.
    let cycles = |chain: Stretch| Stretch {
        cycles: chain.cycles.min(most_cycles_in(chain.end_ns - chain.start_ns, period_ns)),
        ..chain
    };
    let chains = joined(losses.counts.iter().map(window).collect(), of_known.gap_ns);
    let stretches: Vec<Stretch> = chains.into_iter().map(cycles).collect();
    let in_windows = stretches.iter().map(|stretch| stretch.cycles).fold(0, u64::saturating_add);
    let of_known = Events {
        cycles: of_known.cycles.min(in_windows),
        most_cycles: of_known.most_cycles.min(in_windows),
        stalls_at_least,
        stretches,
        cycles_in_stretches: known.min(in_windows),
        gap_ns: of_known.gap_ns,
        ..Events::default()
    };
    let by_windows = of_known.with(of_rest);
    // Both are upper bounds. In a long run, windows are long, but it can be known that all were consecutive.
    let bound = |events: &Events| events.clone().count().stalls.upper();
    if bound(&of_all) < bound(&by_windows) { Events { stalls_at_least, ..of_all } } else { by_windows }
}

/// The least number of stalls of `missing` results by the windows in `losses`.
pub(crate) fn least_in_windows(losses: &Losses, missing: u64, period_ns: u64) -> u64 {
    let windows = losses.counts.iter().map(|&(number, _)| number);
    least_seconds(losses.window_ns, windows, period_ns).clamp(missing.min(1), missing)
}

/// `total` frames that count as late although they came in their slots. `listed_ns` contains the times of some or all of them.
pub(crate) fn of_frames(total: u64, listed_ns: &[u64], measured_ns: u64, period_ns: u64) -> Events {
    let at_all_times = of_missing(Missing::anywhere(total), measured_ns, period_ns);
    if listed_ns.is_empty() {
        return at_all_times;
    }
    let mut listed: Vec<Spike> =
        listed_ns.iter().map(|&at_ns| Spike { at_ns, lateness_ns: 1, ..Spike::default() }).collect();
    listed.sort_by_key(|spike| spike.at_ns);
    let known = listed_stalls(&listed.iter().collect::<Vec<_>>(), |_| 1, measured_ns, period_ns);
    if listed.len() as u64 >= total {
        return known;
    }
    Events { stalls_at_least: at_all_times.stalls_at_least.max(known.stalls_at_least), ..at_all_times }
}

/// The xruns of an audio series. Their times are unknown if the series does not list them all.
pub(crate) fn of_xruns(series: &Series, audio: &Audio) -> Events {
    let listed: Vec<&Spike> =
        series.spikes.iter().filter(|spike| spike.played.is_some_and(|played| played.xrun)).collect();
    if (listed.len() as u64) < audio.xruns {
        return of_missing(Missing::anywhere(audio.xruns), series.period_ns, series.period_ns);
    }
    let late = listed.iter().map(|spike| LateWakeUp {
        at_ns: spike.at_ns,
        lateness_ns: spike.lateness_ns.max(0).unsigned_abs(),
        deadlines: 1,
    });
    let stalls = stalls(late, series.period_ns, series.period_ns);
    Events { cycles: audio.xruns, most_cycles: audio.xruns, ..of_stalls(&stalls, series.period_ns, series.period_ns) }
}

/// The deadlines that were certainly late, and those that can have been: without exact values, those in the bucket of the limit
/// can have been on time. The corrected histogram also counts deadlines missed by a stall.
fn late_deadlines(series: &Series, wake_ups: &[(i64, u64)], limit_ns: i64) -> [u64; 2] {
    let possible = match exact_values(series) {
        Some(_) => return [total(wake_ups).max(1); 2],
        None => corrected(series).count_above(limit_ns),
    };
    let certain = corrected(series).iter().filter(|(late_ns, _)| lowest_in_bucket(*late_ns) > limit_ns);
    [certain.fold(0, |sum: u64, (_, count)| sum.saturating_add(count)), possible].map(|count| count.max(1))
}

/// The histogram of a series that also counts deadlines missed by a stall, if it has one.
pub(crate) fn corrected(series: &Series) -> &Histogram {
    if series.corrected.is_empty() { &series.raw } else { &series.corrected }
}

/// The number of cycles of the use with late deadlines, which came in `runs` runs of consecutive ones: if the cycles begin with
/// each run, and the largest number wherever they begin.
fn cycles(deadlines: u64, runs: u64, measured_ns: u64, period_ns: u64) -> [u64; 2] {
    // One long run and single deadlines make the number largest.
    let single = runs.min(deadlines).saturating_sub(1);
    let at_begins = single.saturating_add(in_cycles(deadlines - single, measured_ns, period_ns));
    // Each run can have a part of a cycle at its begin and its end.
    let at_ends = runs.saturating_mul(2);
    [at_begins, in_cycles(deadlines, measured_ns, period_ns).saturating_add(at_ends).min(deadlines).max(at_begins)]
}

/// The largest number of cycles of the use in a time: with a part of one at each end.
fn most_cycles_in(ns: u64, period_ns: u64) -> u64 {
    (ns / period_ns.max(1)).saturating_add(2)
}

/// Consecutive `deadlines` in cycles of the use. If they are closer together than cycles, they count once per cycle.
fn in_cycles(deadlines: u64, measured_ns: u64, period_ns: u64) -> u64 {
    if measured_ns >= period_ns {
        return deadlines;
    }
    let ns = u128::from(deadlines) * u128::from(measured_ns);
    u64::try_from(ns.div_ceil(u128::from(period_ns))).unwrap_or(u64::MAX)
}

/// The least number of seconds that together contain a late or missing result of each of these windows, whose numbers are in
/// order; of cycles of the use, if they are longer. A second can contain the end of a window and the begin of the next one.
fn least_seconds(window_ns: u64, windows: impl Iterator<Item = u64>, period_ns: u64) -> u64 {
    let windows_in_a_second = SECOND_NS.max(period_ns).div_ceil(window_ns.max(1)).saturating_add(1);
    let (mut seconds, mut next) = (0, 0);
    for window in windows {
        if window >= next {
            seconds += 1;
            next = window.saturating_add(windows_in_a_second);
        }
    }
    seconds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::statistics::{Grouped, Late};

    const MS: u64 = 1_000_000;

    /// A series every 1 ms with spikes at these times, in ms.
    fn series(spikes: &[(u64, i64)], kept: usize) -> Series {
        let mut raw = Histogram::default();
        raw.add(5_000, 100_000);
        let mut maxima = Maxima::default();
        (0..100).for_each(|second| maxima.add(second * SECOND_NS, 5_000));
        for &(at_ms, late_ms) in spikes {
            raw.record(late_ms * 1_000_000);
            maxima.add(at_ms * MS, late_ms * 1_000_000);
        }
        let lateness: Vec<i64> = spikes.iter().map(|spike| spike.1 * 1_000_000).collect();
        let corrected = raw.corrected(&lateness, MS);
        let spike = |&(at_ms, late_ms): &(u64, i64)| Spike {
            at_ns: at_ms * MS,
            lateness_ns: late_ms * 1_000_000,
            ..Spike::default()
        };
        Series {
            period_ns: MS,
            samples: raw.total(),
            max_ns: lateness.iter().max().copied(),
            spikes: spikes.iter().take(kept).map(spike).collect(),
            spikes_total: spikes.len() as u64,
            raw,
            corrected,
            maxima,
            ..Series::default()
        }
    }

    fn of(series: &Series) -> (u64, u64, u64) {
        let Late { cycles, stalls, stalls_at_least } = late(series, MS, 100_000).count();
        (cycles, stalls.total, stalls_at_least)
    }

    #[test]
    fn windows_of_a_part_of_the_run_say_nothing_about_the_rest() {
        let spikes: Vec<_> = (0..40).map(|i| (i * 900, 1)).collect();
        let mut part = series(&spikes, 0);
        part.maxima.max_ns.truncate(10);
        assert_eq!(of(&part).1, 40);
    }

    #[test]
    fn neighbouring_late_cycles_are_one_stall() {
        // A wake-up that is 3 ms late makes the cycles at 0, 1 and 2 ms late by more than 100 us.
        assert_eq!(of(&series(&[(0, 3)], 9)), (3, 1, 1));
        assert_eq!(of(&series(&[(0, 1), (5, 1), (900, 1), (1_800, 1)], 9)), (4, 2, 2), "1.8 s are two seconds");
        assert_eq!(of(&series(&[(0, 1), (5_000, 1), (10_000, 1)], 9)), (3, 3, 3));
        assert_eq!(of(&series(&[(0, 2_500)], 9)), (2_500, 3, 3));
        assert_eq!(of(&series(&[(0, 100), (5_000, 1), (10_000, 1), (15_000, 1)], 9)), (103, 4, 4));
    }

    #[test]
    fn a_list_with_gaps_gives_a_range() {
        let spikes: Vec<_> = (0..40).map(|i| (i * 100, 2)).collect();
        assert_eq!(of(&series(&spikes, 40)), (80, 4, 4));
        assert_eq!(of(&series(&spikes, 39)), (80, 5, 4), "the listed ones last 4 s, the last one can end in the fifth");
        assert_eq!(of(&series(&spikes, 0)), (80, 5, 2), "4 windows were late, with two in each second");
        let mut without_windows = series(&spikes, 0);
        without_windows.maxima = Maxima::default();
        assert_eq!(of(&without_windows), (80, 40, 1));
    }

    /// Stalls of 20 ms at 1 s, 5 s, 9 s and so on, each with a late wake-up before and after the border of two windows.
    #[test]
    fn a_stall_on_the_border_of_two_windows_is_one() {
        let spikes: Vec<_> = (0..10).flat_map(|i| [(i * 4_000 + 990, 2), (i * 4_000 + 1_010, 2)]).collect();
        assert_eq!(of(&series(&spikes, 20)), (40, 10, 10));
        assert_eq!(of(&series(&spikes, 0)), (40, 20, 10));
        let windows = |late: &str| Maxima {
            max_ns: late.chars().map(|c| Some(if c == 'L' { 200_000 } else { 0 })).collect(),
            ..Maxima::default()
        };
        let numbers = |maxima: &Maxima| late_windows(maxima, 100_000).into_iter().map(|(number, _)| number);
        let least_of = |maxima: &Maxima| least_seconds(maxima.window_ns, numbers(maxima), MS);
        let least = |late| least_of(&windows(late));
        assert_eq!(["", "...", "L", "LL", "LLL", "LL.LL", "L.L"].map(least), [0, 0, 1, 1, 2, 2, 2]);
        let short = Maxima { window_ns: 500_000_000, ..windows("LLLL") };
        assert_eq!(least_of(&short), 2);
    }

    #[test]
    fn late_cycles_without_a_list_are_at_least_the_seconds_that_they_fill() {
        let mut all = series(&[], 0);
        all.raw = Histogram::default();
        all.raw.add(200_000, 100_001);
        all.corrected = all.raw.clone();
        all.max_ns = Some(200_000);
        assert_eq!(of(&all), (100_001, 100_001, 100));
    }

    /// An outage of 2.58 s, of which the record says that 257 answers were lost one after the other.
    #[test]
    fn an_outage_is_one_stall_for_each_second() {
        let of = |total, runs| {
            let Late { cycles, stalls, stalls_at_least } =
                of_missing(Missing { total, runs }, 10 * MS, 10 * MS).count();
            (cycles, stalls.total, stalls_at_least)
        };
        assert_eq!(of(258, 2), (258, 4, 3));
        assert_eq!((of(258, 258), of(1, 1), of(0, 0)), ((258, 258, 3), (1, 1, 1), (0, 0, 0)));
        assert_eq!([(600, 700), (600, 300), (9, 2000)].map(|(cycles, ms)| seconds_of(cycles, ms * MS)), [420, 180, 9]);
    }

    /// Single misses are in a cycle of the use each, also if several deadlines are in a cycle.
    #[test]
    fn scattered_misses_are_stalls_of_their_own() {
        let anywhere = of_missing(Missing::anywhere(19), 5 * MS / 2, 10 * MS).count();
        assert_eq!((anywhere.cycles, anywhere.stalls.total, anywhere.stalls_at_least), (19, 19, 1));
        let in_a_row = of_missing(Missing { total: 19, runs: 1 }, 5 * MS / 2, 10 * MS).count();
        assert_eq!((in_a_row.cycles, in_a_row.stalls.total), (5, 1));
        // The record has no times of late wake-ups either.
        let mut all = series(&[], 0);
        all.raw = Histogram::default();
        all.raw.add(200_000, 19);
        all.corrected = all.raw.clone();
        all.max_ns = Some(200_000);
        let late = late(&all, 4 * MS, 100_000).count();
        assert_eq!((late.cycles, late.stalls.total, late.stalls_at_least), (19, 19, 1));
    }

    /// An outage of 300 s beside single misses is as uncertain as a few equal stalls.
    #[test]
    fn a_long_stall_is_not_as_sure_as_many_short_ones() {
        let outage = of_missing(Missing { total: 60_009, runs: 10 }, 5 * MS, 5 * MS).count().stalls;
        assert_eq!((outage.total, outage.independent()), (309, 1.0));
        let mut all = series(&[], 0);
        all.raw = Histogram::default();
        all.raw.add(300_000_000_000, 1);
        all.raw.add(200_000, 1_100);
        (all.corrected, all.max_ns) = (all.raw.corrected(&[], MS), Some(300_000_000_000));
        let stalls = late(&all, MS, 100_000).count().stalls;
        let (total, independent) = (stalls.total, stalls.independent());
        assert!((1_400..1_402).contains(&total) && independent < 1.1, "{total} {independent}");
    }

    /// A late wake-up each 0.9 s for 36 s, for a use whose cycle contains ten deadlines.
    #[test]
    fn a_stall_of_scattered_late_wake_ups_counts_its_seconds() {
        let spikes: Vec<_> = (0..40).map(|i| (i * 900, 1)).collect();
        let late = |of: &Series, period_ms: u64| {
            let Late { cycles, stalls, stalls_at_least } = late(of, period_ms * MS, 100_000).count();
            (cycles, stalls.total, stalls.longest, stalls_at_least)
        };
        let listed = series(&spikes, 40);
        assert_eq!([1, 10, 100].map(|period_ms| late(&listed, period_ms)), [(40, 36, 36, 36); 3]);
        // Without the list, its windows show that all can be in one stall.
        assert_eq!(late(&series(&spikes, 0), 10), (40, 37, 37, 18));
        // Late wake-ups 5 s apart are in stalls of their own.
        let apart: Vec<_> = (0..40).map(|i| (i * 5_000, 1)).collect();
        assert_eq!(late(&series(&apart, 0), 10), (40, 40, 1, 40));
    }

    /// The bound is not smaller if the record lacks the times of late cycles.
    #[test]
    fn events_of_unknown_times_have_the_bound_of_one_stall() {
        let spikes: Vec<_> = (0..40).map(|i| (i * 900, 1)).collect();
        let bound = |events: Events| events.count().stalls.upper();
        let known = bound(late(&series(&spikes, 40), MS, 100_000));
        assert!(bound(of_missing(Missing::anywhere(40), MS, MS)) >= known);
        let mut without_windows = series(&spikes, 0);
        without_windows.maxima = Maxima::default();
        assert!(bound(late(&without_windows, MS, 100_000)) >= known);
        assert_eq!(
            of_missing(Missing::with_longest(60_009, 60_000), 5 * MS, 5 * MS).count().stalls,
            Grouped::of([309])
        );
    }

    fn losses(at_ms: impl IntoIterator<Item = u64>) -> Losses {
        let mut losses = Losses::default();
        at_ms.into_iter().for_each(|at_ms| losses.add(at_ms * MS, 1));
        losses
    }

    #[test]
    fn missing_results_of_known_times_are_in_stalls_of_their_own() {
        let of = |missing, losses: &Losses| {
            let Late { cycles, stalls, stalls_at_least } =
                of_losses(Missing::anywhere(missing), losses, 10 * MS, 10 * MS).count();
            (cycles, stalls.total, stalls.longest, stalls_at_least)
        };
        let apart = losses((0..40).map(|n| n * 5_000));
        assert_eq!(of(40, &apart), (40, 40, 1, 40));
        // Each 0.9 s, and an outage of 3.5 s.
        assert_eq!(of(40, &losses((0..40).map(|n| n * 900))), (40, 37, 37, 18));
        assert_eq!(of(350, &losses((0..350).map(|n| 250 + n * 10))), (350, 5, 5, 4));
        // Three of unknown times can join four others, with a second before and after each.
        assert_eq!(of(43, &apart), (43, 43, 15, 40));
        assert_eq!(of(40, &Losses::default()), (40, 40, 40, 1));
        // Ten in a row, in a window of 16 s.
        let merged = Losses { window_ns: 16_000 * MS, counts: vec![(9, 10)] };
        let in_a_row = of_losses(Missing::with_longest(10, 10), &merged, 10 * MS, 10 * MS).count();
        assert_eq!((in_a_row.stalls.total, of(10, &merged).1), (1, 10));
        // A record that contradicts itself.
        assert_eq!(of(3, &apart), (3, 3, 1, 3));
        assert_eq!(of(0, &apart), (0, 0, 0, 0));
    }

    /// The largest error of a bucket is not more late wake-ups.
    #[test]
    fn those_in_the_bucket_of_the_limit_are_not_certainly_late() {
        let mut all = series(&[], 0);
        all.raw = Histogram::default();
        all.raw.add(1_999_990, 2_000);
        all.raw.add(2_000_500, 1);
        (all.corrected, all.max_ns) = (all.raw.clone(), Some(2_000_500));
        let least = |of: &Series| late(of, MS, 2_000_000).count().stalls_at_least;
        assert_eq!((least(&all), late_wake_ups(&all, 2_000_000)), (1, 2_001));
        let exact = vec![(1_999_990, 2_000), (2_000_500, 1)];
        all.kind = record::SeriesKind::Responses(Box::new(record::Responses { exact, ..record::Responses::default() }));
        let exactly = late(&all, MS, 2_000_000).count();
        assert_eq!((exactly.cycles, exactly.stalls.total, late_wake_ups(&all, 2_000_000)), (1, 1, 1));
    }

    /// 1000 spikes are listed of 5000, and the others are in the bucket of the limit.
    #[test]
    fn a_list_that_lacks_late_wake_ups_is_not_taken_as_whole() {
        let spikes: Vec<(u64, i64)> = (0..10).map(|n| (n, 1)).collect();
        let mut all = series(&spikes, 10);
        all.spikes.iter_mut().for_each(|spike| spike.lateness_ns = 4_000_900);
        all.raw = Histogram::default();
        all.raw.add(4_000_900, 50);
        (all.corrected, all.max_ns, all.spikes_total) = (all.raw.clone(), Some(4_000_900), 50);
        assert_eq!(late(&all, MS, 4_000_000).count().stalls.total, 50);
        all.spikes_total = 10;
        assert_eq!(late(&all, MS, 4_000_000).count().stalls.total, 1);
    }

    /// Crackle of 900 s is one stall a second.
    #[test]
    fn a_storm_of_xruns_is_a_stall_a_second() {
        let played = record::Played { xrun: true, ..record::Played::default() };
        let spike = |n: u64| Spike { at_ns: n * 900 * MS, played: Some(played), ..Spike::default() };
        let series = Series { spikes: (0..1000).map(spike).collect(), period_ns: 5 * MS, ..Series::default() };
        let late = of_xruns(&series, &Audio { xruns: 1000, ..Audio::default() }).count();
        assert_eq!((late.stalls.total, late.stalls.longest, late.stalls_at_least), (900, 900, 900));
    }

    #[test]
    fn a_limit_within_a_bucket_keeps_its_stall() {
        let mut one = series(&[(0, 1)], 9);
        one.spikes[0].lateness_ns = 100_001;
        one.max_ns = Some(100_001);
        one.raw = Histogram::default();
        one.raw.record(100_001);
        assert_eq!(of(&one), (1, 1, 1));
        assert_eq!(late(&one, MS, 100_001).count(), Late::default());
    }

    /// The use has nearly the period of the measurement, and all of 36 s were late.
    #[test]
    fn a_stall_measured_a_little_faster_is_as_long() {
        let spikes: Vec<_> = (0..36).map(|n| (n * 990, 1)).collect();
        let mut late_series = series(&spikes, 36);
        late_series.period_ns = 990 * MS;
        let Late { cycles, stalls, stalls_at_least } = late(&late_series, 1_000 * MS, 100_000).count();
        assert_eq!((cycles, stalls.total, stalls_at_least), (35, 35, 18));
    }

    #[test]
    fn measuring_faster_does_not_add_late_cycles() {
        assert_eq!(late(&series(&[(0, 20)], 9), 10 * MS, 100_000).cycles, 2);
    }

    proptest! {
        #[test]
        fn a_stall_makes_a_cycle_late(
            spikes in prop::collection::btree_map(0u64..5_000, 1i64..2_000, 1..40),
            kept in 0usize..40,
            period_ns in prop::sample::select(vec![MS / 8, MS, 8 * MS, 3_000 * MS]),
        ) {
            let spikes: Vec<_> = spikes.into_iter().collect();
            let late = late(&series(&spikes, kept), period_ns, 100_000).count();
            prop_assert!(late.stalls_at_least >= 1 && late.stalls_at_least <= late.stalls.total, "{late:?}");
            prop_assert!(late.stalls.total <= late.cycles, "{late:?}");
        }

        /// The record can contain the times of late and missing results exactly, by windows, or not at all.
        #[test]
        fn the_bound_is_not_below_that_of_exact_times(
            events in prop::collection::btree_map(0u64..100_000, (0u8..4, 1u64..3_000), 1..60),
            measured_ms in prop::sample::select(vec![1u64, 10, 300, 900, 3_000]),
            period_ms in prop::sample::select(vec![1u64, 10, 100, 3_000]),
            is_listed in prop::bool::ANY,
        ) {
            let (measured_ns, period_ns) = (measured_ms * MS, period_ms * MS);
            let mut events: Vec<(u64, u8, u64)> = events
                .into_iter()
                .map(|(at_ms, (kind, late_ms))| (at_ms / measured_ms * measured_ns, kind, late_ms * MS))
                .collect();
            events.dedup_by_key(|event| event.0);
            // A thread that is late has no other deadline meanwhile.
            let mut woke_ns = 0;
            events.retain(|&(at_ns, kind, ns)| {
                let is_possible = kind > 0 || at_ns >= woke_ns;
                woke_ns = if kind == 0 && is_possible { at_ns + ns } else { woke_ns };
                is_possible
            });
            // A missing result takes a period.
            let late_ns = |kind: u8, late_ns: u64| if kind == 0 { late_ns } else { measured_ns };
            let spike = |&(at_ns, kind, ns): &(u64, u8, u64)| {
                Spike { at_ns, lateness_ns: late_ns(kind, ns).cast_signed(), ..Spike::default() }
            };
            let exact = |only: &dyn Fn(u8) -> bool| {
                let spikes: Vec<Spike> = events.iter().filter(|event| only(event.1)).map(spike).collect();
                let deadlines = |spike: &Spike| deadlines_of(&Series::default(), spike, measured_ns, 100_000);
                listed_stalls(&spikes.iter().collect::<Vec<_>>(), deadlines, measured_ns, period_ns)
            };
            let mut times = Losses::default();
            let known = events.iter().filter(|event| event.1 == 1 || event.1 == 2);
            known.for_each(|event| times.add(event.0, 1));
            let total = events.iter().filter(|event| event.1 > 0).count() as u64;
            let late_ms: Vec<(u64, i64)> = events
                .iter()
                .filter(|event| event.1 == 0)
                .map(|event| (event.0 / MS, (event.2 / MS).cast_signed()))
                .collect();
            let mut by_windows = series(&late_ms, 0);
            let lateness: Vec<i64> = late_ms.iter().map(|event| event.1 * 1_000_000).collect();
            (by_windows.period_ns, by_windows.corrected) = (measured_ns, by_windows.raw.corrected(&lateness, measured_ns));
            let of_late = if is_listed { exact(&|kind| kind == 0) } else { late(&by_windows, period_ns, 100_000) };
            let late = of_late
                .with(of_losses(Missing::anywhere(total), &times, measured_ns, period_ns))
                .count();
            let spikes: Vec<Spike> = events.iter().map(spike).collect();
            let wake_ups = spikes.iter().map(|spike| LateWakeUp {
                at_ns: spike.at_ns,
                lateness_ns: spike.lateness_ns.unsigned_abs(),
                deadlines: deadlines_of(&Series::default(), spike, measured_ns, 100_000),
            });
            let seconds = |stall: Stall| (stall.end_ns - stall.start_ns).div_ceil(SECOND_NS).clamp(1, stall.cycles);
            let exact = Grouped::of(stalls(wake_ups, measured_ns, period_ns).into_iter().map(seconds));
            prop_assert!(late.stalls.upper() >= exact.upper() - 1e-9, "{late:?} {exact:?}");
            prop_assert!(late.stalls_at_least <= exact.total, "{late:?} {exact:?}");
        }

        #[test]
        fn missing_deadlines_are_at_least_a_stall_a_second(
            total in 1u64..1_000_000, runs in 0u64..1_000, measured_ns in 1_000u64..10_000_000, period_ns in 1_000u64..10_000_000,
        ) {
            let late = of_missing(Missing { total, runs }, measured_ns, period_ns).count();
            let (least, most) = (late.stalls_at_least, late.stalls.total);
            prop_assert!(1 <= least && least <= most && most <= late.cycles && late.cycles <= total, "{late:?}");
        }
    }
}
