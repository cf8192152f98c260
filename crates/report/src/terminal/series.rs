//! The requested measurement, and the figures of each thread.

use analysis::{Summary, format_duration, format_ns, rounded_ns};
use record::{LoadProof, MeasuredBy, Phase, Record, Series, SeriesKind, Stream, grouped};

use super::histogram::{Bars, Scale, short_count};
use super::page::Page;
use super::table::Table;
use super::{audio, cell, count_cell, interrupt, response, round_trip, stream, time};
use crate::blame::unsigned;
use crate::evl;
use crate::missing;
use crate::style::{Ink, Spans};
use crate::words::{Words, cpus, is_noise};

/// The largest number of rows of a brief table.
const BRIEF_ROWS: usize = 16;
/// The number of worst series shown if there are more than that.
const BRIEF_WORST: usize = 8;
/// Up to this many series of a phase have a histogram each; more share one.
const HISTOGRAMS: usize = 8;
const HISTOGRAM_HEIGHT: usize = 5;
const HISTOGRAM_WIDTH: usize = 100;
/// Columns left of a histogram: count, space and axis.
const GUTTER: usize = 7;

/// The requested measurement, and the granted rights.
pub(super) fn run(page: &mut Page, record: &Record) {
    let asked = &record.scenario;
    let cpus = asked.cpus.as_ref().map_or_else(|| "every online CPU".to_owned(), |list| cpus(list));
    let awake = if asked.hold_cpu_awake { ", CPUs held awake" } else { "" };
    let offset = match asked.offset_ns {
        0 => String::new(),
        ns => format!(", {} between neighbouring CPUs", unsigned(ns)),
    };
    page.heading(&format!("Run of {}", or(&record.started_at, "unknown date")));
    let how = match is_noise(record) {
        true => format!("{awake}{}", noise_request(record)),
        false => format!(
            ", clock {}, wait {}{offset}{awake}, spikes above {}",
            or(&asked.clock, "unknown"),
            or(&asked.wait, "unknown"),
            format_ns(asked.threshold_ns)
        ),
    };
    let (probe, policy) = (or(&asked.probe, "no"), or(&asked.policy, "no policy"));
    page.fact("asked", 7, &format!("{probe} probe, {policy} on {cpus}{how}"));
    for (places, granted) in granted(record) {
        page.fact("granted", 7, &format!("{granted} ({places})"));
    }
    if let Some(floor_ns) = record.probe_series().map(|series| series.floor_ns).max() {
        page.fact("floor", 7, &format!("{}: the probe's own cost of reading the clock", unsigned(floor_ns)));
    }
    if !record.command.is_empty() {
        page.text(Ink::Plain, "repeat with");
        page.remedy(4, &record::shell::command(&record.command));
    }
}

/// The requested measurement of a noise probe.
fn noise_request(record: &Record) -> String {
    let period_ns = record.phases.first().map_or(0, |phase| phase.period_ns);
    let noise = record.series.iter().find_map(|series| series.kind.noise());
    let observation = noise.map_or_else(String::new, |noise| {
        format!(", reads its {} for {} of every {}", noise.counter, unsigned(noise.runtime_ns), unsigned(period_ns))
    });
    format!("{observation}, gaps above {}", format_ns(record.scenario.threshold_ns))
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// The different grants, each with the threads that have it.
fn granted(record: &Record) -> Vec<(String, String)> {
    let mut found: Vec<(String, Vec<&Series>)> = Vec::new();
    // An outside judge is a board, which has no rights.
    let threads = || record.probe_series().filter(|series| series.kind.properties().by != MeasuredBy::Judge);
    for series in threads() {
        let granted = &series.granted;
        let locked = if granted.memory_locked { "memory locked" } else { "memory not locked" };
        let pinned =
            if series.cpu.is_some_and(|cpu| granted.cpus == cpu.to_string()) { "pinned" } else { "not pinned" };
        let awake = granted.cpu_awake.as_ref().map_or_else(String::new, |by| format!(", held awake by {by}"));
        let slack = unsigned(granted.timer_slack_ns);
        let core = evl::granted(series);
        let text = format!("{}, {pinned}, {locked}, timer slack {slack}{awake}{core}", granted.policy);
        match found.iter_mut().find(|(known, _)| *known == text) {
            Some((_, places)) => places.push(series),
            None => found.push((text, vec![series])),
        }
    }
    let words = |all: &[&Series]| {
        if all.len() == threads().count() { "all threads".to_owned() } else { places(all) }
    };
    found.into_iter().map(|(text, all)| (words(&all), text)).collect()
}

fn places(all: &[&Series]) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in all.iter().map(|series| series.place()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// A phase in one small table.
pub(super) fn brief(page: &mut Page, record: &Record, phase: &Phase) {
    heading(page, record, phase);
    let mut all = of(record, phase);
    let mut rest = Vec::new();
    if all.len() > BRIEF_ROWS {
        all.sort_by_key(|series| std::cmp::Reverse(series.max_ns));
        rest = all.split_off(BRIEF_WORST);
    }
    let mut table = Table::new(&["CPU", "samples", "missed", "p50", "p99", "max"]);
    for series in &all {
        table.row(brief_row(name(series), &Summary::of(series), record.absent(series)));
    }
    if !rest.is_empty() {
        let absent = rest.iter().map(|series| record.absent(series)).try_fold(0u64, |a, b| Some(a.saturating_add(b?)));
        table.row(brief_row(format!("{} others", rest.len()), &together(&rest), absent));
    }
    page.table(&table);
    for load in phase.loads.iter().filter(|load| !load.ran) {
        page.remark(&format!(
            "load {} did not run to the end: {}",
            load.spec,
            load.note.as_deref().unwrap_or("no reason known")
        ));
    }
    remarks(page, record, phase);
}

fn brief_row(name: String, figures: &Summary, missed: Option<u64>) -> Spans {
    vec![
        cell(name),
        cell(grouped(figures.samples)),
        missed.map_or_else(|| cell("-"), count_cell),
        cell(time(figures.p50_ns)),
        cell(time(figures.p99_ns)),
        cell(time(figures.max_ns)),
    ]
}

/// The figures of several series, merged.
fn together(all: &[&Series]) -> Summary {
    let mut sum = Series::default();
    for series in all {
        sum.samples += series.samples;
        sum.max_ns = sum.max_ns.max(series.max_ns);
        sum.corrected.merge(&series.corrected);
    }
    Summary::of(&sum)
}

/// A phase with all its figures, loads and histograms.
pub(super) fn full(page: &mut Page, record: &Record, phase: &Phase) {
    heading(page, record, phase);
    let all = of(record, phase);
    let name_of_all = if all.iter().any(|series| series.has_own_role()) { "thread" } else { "CPU" };
    let mut table = Table::new(&[
        name_of_all,
        "policy",
        "period",
        "samples",
        "missed",
        "early",
        "min",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "max",
        "max at",
        "jitter",
    ])
    .words(1);
    for series in all.iter().filter(|series| is_in_table(&series.kind)) {
        table.row(full_row(series));
    }
    page.table(&table);
    remarks(page, record, phase);
    proofs(page, &phase.loads);
    histograms(page, record, &all);
    for series in &all {
        match &series.kind {
            SeriesKind::RoundTrips(round_trip) => round_trip::section(page, series, round_trip),
            SeriesKind::Audio(audio) => audio::section(page, series, audio),
            SeriesKind::Stream(_) => stream::section(page, series),
            SeriesKind::Interrupts(interrupts) => interrupt::section(page, series, interrupts),
            SeriesKind::Responses(responses) => response::section(page, series, responses),
            // Gaps, programs and captures have pages of their own.
            SeriesKind::WakeUps
            | SeriesKind::Gaps(_)
            | SeriesKind::Process(_)
            | SeriesKind::Capture
            | SeriesKind::TimerlatIrq
            | SeriesKind::TimerlatThread => {}
        }
    }
}

/// True if the table of a phase shows the figures of this kind; false if they have a section or a page of their own.
fn is_in_table(kind: &SeriesKind) -> bool {
    match kind {
        SeriesKind::WakeUps
        | SeriesKind::Gaps(_)
        | SeriesKind::Stream(Stream::Talker(_))
        | SeriesKind::Audio(_)
        | SeriesKind::Process(_)
        | SeriesKind::Interrupts(_)
        | SeriesKind::TimerlatIrq
        | SeriesKind::TimerlatThread => true,
        SeriesKind::RoundTrips(_)
        | SeriesKind::Responses(_)
        | SeriesKind::Stream(Stream::Listener(_))
        | SeriesKind::Capture => false,
    }
}

/// The histograms of the series of a phase.
pub(super) fn histograms(page: &mut Page, record: &Record, all: &[&Series]) {
    // One scale for the whole run, so that histograms can be compared.
    let Some(scale) = Scale::of(record.series.iter().map(|series| &series.raw)) else { return };
    if all.len() <= HISTOGRAMS {
        all.iter().for_each(|series| histogram(page, &series.place(), &[series], scale));
    } else {
        histogram(page, &format!("all {} threads", all.len()), all, scale);
    }
}

fn full_row(series: &Series) -> Spans {
    let figures = Summary::of(series);
    vec![
        cell(name(series)),
        cell(&series.granted.policy),
        cell(unsigned(series.period_ns)),
        cell(grouped(series.samples)),
        count_cell(series.absent()),
        cell(grouped(series.early)),
        cell(time(series.min_ns)),
        cell(time(series.mean_ns.map(rounded_ns))),
        cell(time(figures.p50_ns)),
        cell(time(figures.p99_ns)),
        cell(time(figures.p99_9_ns)),
        cell(time(figures.max_ns)),
        cell(series.max_at_ns.map_or_else(|| "-".to_owned(), unsigned)),
        cell(series.jitter().map_or_else(|| "-".to_owned(), unsigned)),
    ]
}

/// The histogram of several series together.
fn histogram(page: &mut Page, title: &str, all: &[&Series], scale: Scale) {
    let width = page.inner_width().saturating_sub(GUTTER).min(HISTOGRAM_WIDTH);
    let bars = Bars::of(all.iter().map(|series| &series.raw), scale, width);
    let early = if bars.early > 0 { format!(", {} early not drawn", grouped(bars.early)) } else { String::new() };
    page.gap();
    let Words { item, lateness, .. } = Words::of_all(all.iter().copied());
    page.text(Ink::Quiet, &format!("{title}: {lateness} of {item}s, both scales logarithmic{early}"));
    let unicode = page.style.unicode;
    let axis = if unicode { "▕" } else { "|" };
    for (n, row) in bars.rows(HISTOGRAM_HEIGHT, unicode).into_iter().enumerate() {
        let count = match n {
            0 => short_count(bars.tallest()),
            _ if n + 1 == HISTOGRAM_HEIGHT => "1".to_owned(),
            _ => String::new(),
        };
        page.line(&vec![(Ink::Quiet, format!("{count:>5} {axis}")), (Ink::Accent, row)]);
    }
    page.line(&vec![(Ink::Quiet, format!("{:GUTTER$}{}", "", bars.axis(unicode)))]);
}

/// The loads of a phase, with proof that they ran.
pub(super) fn proofs(page: &mut Page, loads: &[LoadProof]) {
    for load in loads {
        let (ink, word) = if load.ran { (Ink::Good, "ran") } else { (Ink::Bad, "fail") };
        page.item(ink, word, 4, &proof(load));
    }
}

/// The work that a load did.
pub(crate) fn proof(load: &LoadProof) -> String {
    let note = load.note.as_ref().map_or_else(String::new, |note| format!("; {note}"));
    format!(
        "load {} on {}: {} {}, {} of CPU time in {} by {} threads{note}",
        load.spec,
        cpus(&load.cpus),
        short_count(load.operations),
        load.unit,
        unsigned(load.cpu_time_ns),
        format_duration(load.wall_ns),
        load.threads
    )
}

pub(super) fn heading(page: &mut Page, record: &Record, phase: &Phase) {
    let mut load = match phase.asked_loads.join(", ") {
        loads if loads.is_empty() => "At rest".to_owned(),
        loads => format!("Under load ({loads})"),
    };
    if let Some(far) = record.far.as_ref().filter(|far| !far.asked.loads.is_empty()) {
        load += &format!(", {} under load ({})", far.host, far.asked.loads.join(", "));
    }
    let lasted = format_duration(phase.duration_ns);
    page.heading(&match Words::of(record).is_periodic {
        true => format!("{load}: {lasted}, {}", periods(phase)),
        false => format!("{load}: {lasted}"),
    });
    if of(record, phase).is_empty() {
        page.text(Ink::Plain, "Nothing was measured.");
    }
}

/// `every 1 ms`, or the period of each thread where they differ.
fn periods(phase: &Phase) -> String {
    let every = |period_ns: u64| format!("every {}", unsigned(period_ns));
    match phase.threads.split_first() {
        Some((first, rest)) if rest.iter().any(|thread| thread.period_ns != first.period_ns) => {
            let each = phase.threads.iter().map(|thread| format!("{} {}", thread.role, every(thread.period_ns)));
            each.collect::<Vec<_>>().join(", ")
        }
        Some((first, _)) => every(first.period_ns),
        None => every(phase.period_ns),
    }
}

/// The notes of the series of a phase.
pub(super) fn remarks(page: &mut Page, record: &Record, phase: &Phase) {
    for series in of(record, phase) {
        for note in &series.notes {
            page.remark(&format!("{}: {note}", series.place()));
        }
        if let Some(times) = missing::in_words(series) {
            page.remark(&format!("{}: missing {times}", series.place()));
        }
    }
}

pub(super) fn of<'a>(record: &'a Record, phase: &Phase) -> Vec<&'a Series> {
    record.series.iter().filter(|series| series.phase == phase.name).collect()
}

pub(super) fn name(series: &Series) -> String {
    series.place().replacen("CPU ", "", 1)
}
