//! The table of the key figures in the short answer, for each kind of measurement.

use std::cmp::Reverse;

use analysis::{
    Summary, cores, format_unsigned_ns,
    matrix::{PairRank, ranked_pairs},
    when,
};
use record::{Capture, Histogram, Noise, Record, Series, SeriesKind, Stream, grouped};

use super::capture::exact_percentile;
use super::noise::lost;
use super::table::Table;
use super::{audio, cell, count_cell, interrupt, time};
use crate::style::{Ink, Spans};

/// The figures of each thread, or the worst of each thread in each phase: as many threads as there are `rows`, the worst.
pub(super) fn figures(record: &Record, rows: usize) -> Option<Table> {
    if rows == 0 {
        return None;
    }
    if !record.cells.is_empty() {
        return of_pairs(record, rows);
    }
    if let Some(capture) = record.capture.as_ref().filter(|capture| capture.observer.is_none()) {
        return Some(of_capture(record, capture, rows));
    }
    let all: Vec<&Series> = record.probe_series().filter(|series| series.samples > 0).collect();
    if all.is_empty() {
        return None;
    }
    match &all[0].kind {
        SeriesKind::Gaps(_) => return Some(of_noise(&all, rows)),
        SeriesKind::Process(_) => return Some(of_program(&all, rows)),
        SeriesKind::Interrupts(_) | SeriesKind::Responses(_) => return Some(interrupt::brief(&all).at_most(rows)),
        SeriesKind::Audio(_) => return Some(audio::tried(record, rows)),
        SeriesKind::Stream(_) => return Some(of_stream(record, &all, rows)),
        SeriesKind::Capture
        | SeriesKind::WakeUps
        | SeriesKind::RoundTrips(_)
        | SeriesKind::TimerlatIrq
        | SeriesKind::TimerlatThread => {}
    }
    if cores::are_both(record) {
        return Some(of_cores(record).at_most(rows));
    }
    let mut phases: Vec<String> = all.iter().map(|series| when(series)).collect();
    phases.dedup();
    let mut places: Vec<String> = Vec::new();
    all.iter().map(|series| series.place()).for_each(|place| {
        if !places.contains(&place) {
            places.push(place);
        }
    });
    let of_place = |place: &String| all.iter().copied().filter(|series| series.place() == *place).collect::<Vec<_>>();
    let worst = |place: &String| of_place(place).iter().filter_map(|series| series.max_ns).max();
    if places.len() > rows {
        places.sort_by_key(|place| Reverse(worst(place)));
    }
    let table = if let [_] = phases[..] {
        let mut table = Table::new(&FIGURES);
        places.iter().flat_map(of_place).for_each(|series| table.row(in_one_phase(series)));
        table
    } else {
        let of_phase = |phase: &String| all.iter().find(|series| when(series) == *phase);
        let periods: Vec<u64> = phases.iter().filter_map(of_phase).map(|series| series.period_ns).collect();
        // The period has a row of its own, because in the heading it looks like a result.
        let names = phases.iter().map(|phase| phase.split(", ").next().unwrap_or(phase).to_owned());
        let headings: Vec<String> =
            std::iter::once("worst".to_owned()).chain(names).chain(["missed".to_owned()]).collect();
        let mut table = Table::new(&headings);
        if periods.iter().any(|period_ns| *period_ns != periods[0]) {
            let times = periods.iter().map(|&period_ns| cell(format_unsigned_ns(period_ns)));
            table.row(std::iter::once(cell("period")).chain(times).chain([cell("")]).collect());
        }
        // The row of the periods is none of the threads.
        let rows = rows + table.len();
        places.iter().for_each(|place| table.row(in_phases(place, &of_place(place), &phases)));
        return Some(table.at_most(rows));
    };
    Some(table.at_most(rows))
}

/// The time without a CPU of each thread, the largest share first.
fn of_noise(all: &[&Series], rows: usize) -> Table {
    let mut noises: Vec<(&Series, &Noise)> =
        all.iter().filter_map(|series| Some((*series, series.kind.noise()?))).collect();
    let share = |noise: &Noise| noise.lost_ns as f64 / noise.observed_ns.max(1) as f64;
    noises.sort_by(|(_, a), (_, b)| share(b).total_cmp(&share(a)));
    let mut table = Table::new(&["", "phase", "lost", "gaps", "longest"]).words(1).named_by(2);
    for (series, noise) in noises {
        let lost = lost(noise);
        let cells = [series.place(), when(series), lost, grouped(series.samples), time(series.max_ns)];
        table.row(cells.map(cell).to_vec());
    }
    table.at_most(rows)
}

/// The threads of a program in the order of the answer: that with most missed deadlines first, then that with the longest
/// cycle or wait for a CPU.
fn of_program(all: &[&Series], rows: usize) -> Table {
    let longest_ns = |series: &Series| Some(series.kind.process()?.longest.as_ref()?.response_ns());
    let mut threads = all.to_vec();
    let longest = |series: &Series| longest_ns(series).max(series.max_ns.map(|ns| ns.max(0).unsigned_abs()));
    threads.sort_by_key(|series| (Reverse(series.missed), Reverse(longest(series))));
    let mut table = Table::new(&["", "wake-ups", "missed", "worst", "longest cycle"]);
    for series in threads {
        let longest = longest_ns(series).map_or_else(|| "-".to_owned(), format_unsigned_ns);
        let missed = match series.period_ns {
            0 => cell("-".to_owned()),
            _ => count_cell(series.missed),
        };
        let samples = cell(grouped(series.samples));
        table.row(vec![cell(series.place()), samples, missed, cell(time(series.max_ns)), cell(longest)]);
    }
    table.at_most(rows)
}

/// One row for each core: the figures of two cores are never added.
pub(super) fn of_cores(record: &Record) -> Table {
    let mut table = Table::new(&FIGURES);
    for core in cores::figures(record) {
        table.row(row(core.role.to_owned(), &core.figures, core.figures.missed));
    }
    table
}

fn in_one_phase(series: &Series) -> Spans {
    row(series.place(), &Summary::of(series), series.absent())
}

/// The columns of [`row`].
const FIGURES: [&str; 6] = ["", "samples", "missed", "p50", "p99.9", "worst"];

fn row(name: String, figures: &Summary, missed: u64) -> Spans {
    vec![
        cell(name),
        cell(grouped(figures.samples)),
        count_cell(missed),
        cell(time(figures.p50_ns)),
        cell(time(figures.p99_9_ns)),
        cell(time(figures.max_ns)),
    ]
}

fn in_phases(place: &str, of_place: &[&Series], phases: &[String]) -> Spans {
    let worst = |phase: &String| of_place.iter().filter(|series| when(series) == *phase).filter_map(|s| s.max_ns).max();
    let worst = phases.iter().map(|phase| cell(time(worst(phase))));
    let missed = of_place.iter().map(|series| series.absent()).fold(0, u64::saturating_add);
    std::iter::once(cell(place.to_owned())).chain(worst).chain([count_cell(missed)]).collect()
}

/// The frames that a talker sent, a listener received and the run's own observer captured. Times are the lateness of sent and
/// captured frames, the gaps between received ones, and the margin until their presentation times, whose worst is the smallest.
fn of_stream(record: &Record, all: &[&Series], rows: usize) -> Table {
    let mut table = Table::new(&["", "frames", "late", "missing", "p99.9", "worst"]);
    let several = record.phases.len() > 1;
    for series in all {
        let host = series.host.as_ref().map_or_else(String::new, |host| format!(" by {host}"));
        let when = if several { format!(", {}", when(series)) } else { String::new() };
        table.row(match series.kind.stream() {
            Some(Stream::Talker(talker)) => vec![
                cell(format!("sent{host}{when}: lateness")),
                cell(grouped(talker.frames)),
                count_cell(talker.late),
                count_cell(talker.refused.saturating_add(talker.missed_slots)),
                cell(time(p99_9(&talker.send, talker.max_delta_ns))),
                cell(time(talker.max_delta_ns)),
            ],
            Some(Stream::Listener(listener)) => {
                let longest_ns = listener.max_gap_ns.map(u64::cast_signed);
                // A listener needs the frames of each stream, so the losses are those of the worst one.
                let lost = listener.worst_first().first().map_or(listener.lost, |worst| worst.lost.max(listener.lost));
                vec![
                    cell(format!("received{host}{when}: gaps")),
                    cell(grouped(listener.frames)),
                    cell("-"),
                    count_cell(lost),
                    cell(time(p99_9(&listener.interval, longest_ns))),
                    cell(time(longest_ns)),
                ]
            }
            None => continue,
        });
        let one_way = series.kind.listener().and_then(|listener| listener.one_way.as_ref());
        if let Some(margin) = one_way.and_then(|one_way| one_way.margin.as_ref()) {
            let valid = series.kind.listener().map_or(0, |listener| listener.counters.timestamp_valid);
            table.row(vec![
                cell(format!("received{host}{when}: margin")),
                cell(grouped(valid)),
                count_cell(margin.late),
                cell("-"),
                cell("-"),
                cell(time(Some(margin.min_ns))),
            ]);
        }
    }
    if let Some(capture) = &record.capture {
        table.row(captured("captured: lateness", record, capture));
    }
    table.at_most(rows)
}

/// The analysed stream of a capture, then the other streams, whose frames are only counted.
fn of_capture(record: &Record, capture: &Capture, rows: usize) -> Table {
    let mut table = Table::new(&["stream", "frames", "late", "missing", "p99.9", "worst"]);
    table.row(captured(&capture.name_of(&capture.stream), record, capture));
    let others = capture.streams.iter().filter(|stream| **stream != capture.stream);
    for (number, stream) in (1..).zip(others) {
        let unknown = || cell("-");
        // A name is compared with all others; the rows that do not fit are only counted.
        let name = if number < rows { capture.name_of(stream) } else { String::new() };
        table.row(vec![cell(name), cell(grouped(stream.frames)), unknown(), unknown(), unknown(), unknown()]);
    }
    table.at_most(rows)
}

/// The row of a captured stream: missing frames are lost ones and skipped slots.
fn captured(name: &str, record: &Record, capture: &Capture) -> Spans {
    let lateness = record.series.iter().find(|series| series.kind == SeriesKind::Capture).map(Summary::of);
    let (p99_9_ns, max_ns) = lateness.map_or((None, None), |figures| (figures.p99_9_ns, figures.max_ns));
    vec![
        cell(name),
        cell(grouped(capture.frames)),
        known(capture.late),
        known(capture.skipped_slots.map(|skipped| skipped.saturating_add(capture.lost.unwrap_or(0)))),
        cell(time(p99_9_ns)),
        cell(time(max_ns)),
    ]
}

/// A count that is bad news if above 0; `-` if it is not known.
fn known(count: Option<u64>) -> (Ink, String) {
    count.map_or_else(|| cell("-"), count_cell)
}

fn p99_9(histogram: &Histogram, max_ns: Option<i64>) -> Option<i64> {
    exact_percentile(histogram, 99.9, max_ns)
}

/// The best pairs of a matrix, and the worst one.
fn of_pairs(record: &Record, rows: usize) -> Option<Table> {
    let mut pairs = ranked_pairs(record);
    let [row, column] = pairs.first()?.threads.map(|thread| thread.role);
    let headings = ["", row, column].map(str::to_owned).into_iter();
    let figures = [row, column].into_iter().flat_map(|role| [format!("{role} jitter"), format!("{role} missed")]);
    let mut table = Table::new(&headings.chain(figures).collect::<Vec<_>>()).named_by(3);
    // The worst pair is the last one.
    let left_out = if rows < pairs.len() { pairs.len() + 1 - rows } else { 0 };
    if left_out > 0 {
        let worst = pairs.pop();
        pairs.truncate(rows.saturating_sub(2));
        pairs.extend(worst);
    }
    for pair in pairs {
        let (ink, word) = match pair.rank {
            PairRank::Best => (Ink::Good, "best"),
            PairRank::Equal => (Ink::Plain, "equal"),
            PairRank::Other => (Ink::Plain, ""),
            PairRank::Worst => (Ink::Bad, "worst"),
        };
        let cpus = pair.threads.map(|thread| cell(thread.cpu.to_string()));
        let figures =
            pair.threads.into_iter().flat_map(|of| [cell(format_unsigned_ns(of.jitter_ns)), count_cell(of.missed)]);
        table.row([(ink, word.to_owned())].into_iter().chain(cpus).chain(figures).collect());
    }
    if left_out > 0 {
        let blanks = std::iter::repeat_n(String::new(), 6);
        table.row(std::iter::once(format!("{left_out} others")).chain(blanks).map(cell).collect());
    }
    Some(table)
}
