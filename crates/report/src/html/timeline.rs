//! Lateness over time: the largest lateness of each window, and the spikes.

use std::{collections::HashSet, fmt::Write};

use analysis::{
    float::{to_i32, to_usize},
    format_duration, format_ns, when,
};
use record::visible::escape_json;
use record::{Maxima, Record, Spike, counted, grouped};

use crate::{missing, words::Words};

use super::{
    figure::{Figure, Table},
    lines::Line,
    svg::{self, Axis, Frame, Path, number},
    text, worst,
};

const HEIGHT: f64 = 330.0;
const BOTTOM: f64 = 276.0;
/// The largest number of dots; the smallest spikes are left out first.
const DOTS: usize = 4000;

/// The chart of the largest lateness of each window.
pub fn maxima(record: &Record, lines: &[Line]) -> Figure {
    let columns = if lines.len() > 32 { 100 } else { 370 };
    let longest = lines.iter().map(|l| l.series.maxima.max_ns.len()).max().unwrap_or(0);
    let together = longest.div_ceil(columns).max(1);
    let window_ns = lines.iter().map(|l| l.series.maxima.window_ns).max().unwrap_or(0);
    let step_ns = window_ns.saturating_mul(together as u64);
    let words = Words::of_charts(record);
    let mut lead = format!(
        "Each step is the {} within {} (raw). A level that rises with the load is caused by the load; single \
                 peaks at regular intervals suggest something periodic in the machine.",
        words.largest.to_lowercase(),
        format_duration(step_ns)
    );
    if lines.iter().any(|line| !line.series.losses.is_empty()) {
        lead.push_str(" The marks at the bottom are the times with missing results.");
    }
    let title = format!("{} over time", words.largest);
    let values = || lines.iter().flat_map(|l| l.series.maxima.max_ns.iter().copied().flatten());
    let svg = if values().next().is_none() {
        String::new()
    } else {
        let (x, y) = (run_axis(record, lines), svg::lateness_axis(values(), 10.0, BOTTOM, svg::TOP));
        let mut body = phases(record, lines, x);
        for line in lines {
            steps(&mut body, line, together, x, y);
            losses(&mut body, line, x);
        }
        frame("maxima", &title, words.lateness, "data-time", x, y).draw(&body)
    };
    Figure { id: "maxima".to_owned(), title, lead, svg, table: maxima_table(lines, words) }
}

/// The chart of all spikes in the record, with a table of the `worst` worst.
pub fn spikes(record: &Record, lines: &[Line], worst: usize) -> Figure {
    let words = Words::of(record);
    let threshold_ns = record.scenario.threshold_ns;
    let total = record.spikes_total();
    let kept: usize = lines.iter().map(|l| l.series.spikes.len()).sum();
    let x = run_axis(record, lines);
    let values = lines.iter().flat_map(|l| l.series.spikes.iter().map(|s| s.lateness_ns)).chain([threshold_ns]);
    let y = svg::lateness_axis(values, 10.0, BOTTOM, svg::TOP);
    let (dots, drawn, names) = dots(lines, x, y);

    let mut lead = format!("{} above the threshold of {}.", counted(total, words.item), format_ns(threshold_ns));
    if (kept as u64) < total {
        let _ = write!(lead, " The record contains the worst of each series: {}.", grouped(kept as u64));
    }
    if drawn < kept - kept / 10 {
        let _ = write!(lead, " Overlapping spikes are drawn once: {} dots.", grouped(drawn as u64));
    }
    let svg = if kept == 0 {
        String::new()
    } else {
        let at = number(y.at(svg::decades(threshold_ns as f64, y.lo)));
        let mut body = phases(record, lines, x);
        let _ = write!(body, "<path class=\"limit\" d=\"M{} {at}H{}\"/>", number(x.from), number(x.to));
        body.push_str(&dots);
        let data = format!("data-time data-dots{}", names.attribute());
        let title = format!("{} over time", words.spikes_title());
        frame("spikes", &title, words.lateness, &data, x, y).draw(&body)
    };
    Figure { id: "spikes".to_owned(), title: words.spikes_title(), lead, svg, table: worst::table(lines, worst) }
}

fn frame<'a>(id: &'a str, title: &'a str, lateness: &'a str, data: &'a str, x: Axis, y: Axis) -> Frame<'a> {
    Frame {
        id,
        title,
        summary: "A logarithmic axis over the time of the run, one line or marker per series. The table below contains \
            the figures.",
        height: HEIGHT,
        x: (x, svg::time_ticks(x.hi), "time since the start of the run"),
        y: (y, svg::log_ticks(y.lo, y.hi, text::tick_ns), lateness),
        data,
    }
}

/// The axis of the whole run, s.
pub fn run_axis(record: &Record, lines: &[Line]) -> Axis {
    let of_phases = record.phases.iter().map(|p| (p.start_ns as f64 + p.duration_ns as f64) / 1e9);
    let windows_s = |l: &Line| l.series.maxima.max_ns.len() as f64 * window_s(&l.series.maxima);
    let of_maxima = lines.iter().map(|l| (l.start_s + windows_s(l)).min(l.end_s));
    let of_spikes = lines.iter().flat_map(|l| l.series.spikes.iter().map(|s| l.start_s + s.at_ns as f64 / 1e9));
    let end = of_phases.chain(of_maxima).chain(of_spikes).fold(0.0, f64::max);
    Axis { lo: 0.0, hi: if end > 0.0 { end } else { 1.0 }, from: svg::LEFT, to: svg::FAR_RIGHT }
}

fn window_s(maxima: &Maxima) -> f64 {
    maxima.window_ns as f64 / 1e9
}

/// Draws the start of each phase with its name.
fn phases(record: &Record, lines: &[Line], x: Axis) -> String {
    let mut out = String::new();
    // In the letters of a wide screen, and in the large ones of a narrow screen.
    let (mut free_from, mut large_from) = (0.0, 0.0);
    for phase in &record.phases {
        let Some(line) = lines.iter().find(|line| line.series.phase == phase.name) else { continue };
        let at = x.at(phase.start_ns as f64 / 1e9);
        let _ = write!(out, "<path class=\"phase\" d=\"M{} {}V{BOTTOM}\"/>", number(at), number(svg::TOP - 4.0));
        let loads =
            if phase.asked_loads.is_empty() { String::new() } else { format!(": {}", phase.asked_loads.join(", ")) };
        let mut label = format!("{}{loads}", when(line.series));
        let space = to_usize((x.to - at) / 6.2);
        if label.chars().count() > space.max(8) {
            label = label.chars().take(space.max(8) - 1).chain(['…']).collect();
        }
        if at >= free_from {
            let (left, top) = (number(at + 5.0), number(svg::TOP + 4.0));
            let class = if at >= large_from { "phase" } else { "phase dense" };
            let _ = write!(out, "<text class=\"{class}\" x=\"{left}\" y=\"{top}\">{}</text>", text::escape(&label));
            let count = label.chars().count() as f64;
            free_from = at + count * 6.2 + 8.0;
            large_from = if at >= large_from { at + count * svg::LARGE * 0.5 + 8.0 } else { large_from };
        }
    }
    out
}

/// Draws the largest of each `together` windows as a stepped line, interrupted where nothing was measured.
fn steps(out: &mut String, line: &Line, together: usize, x: Axis, y: Axis) {
    let width_s = window_s(&line.series.maxima) * together as f64;
    let mut path = Path::default();
    let mut points = String::new();
    let mut drawing = false;
    let mut end_s = line.start_s;
    for (i, windows) in line.series.maxima.max_ns.chunks(together).enumerate() {
        let from_s = line.start_s + i as f64 * width_s;
        end_s = from_s + windows.len() as f64 * window_s(&line.series.maxima);
        let Some(max_ns) = windows.iter().copied().flatten().max() else {
            if drawing {
                let _ = write!(points, "{from_s:.1}: ");
            }
            drawing = false;
            continue;
        };
        // The last window can end after the phase.
        end_s = end_s.min(line.end_s).max(from_s);
        let (from, to, at) = (x.at(from_s), x.at(end_s), y.at(svg::decades(max_ns as f64, y.lo)));
        if drawing {
            path.up_or_down(at).across(to);
        } else {
            path.move_to(from, at).across(to);
        }
        drawing = true;
        let _ = write!(points, "{from_s:.1}:{max_ns} ");
    }
    if path.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<path class=\"line {}\" data-s=\"{}\" data-n=\"{}\" data-p=\"{}\" data-end=\"{end_s:.1}\" d=\"{}\"/>",
        line.class(),
        line.index,
        text::escape(&line.name),
        points.trim_end(),
        path.d()
    );
}

/// Draws a bar at the bottom for each stretch with missing results.
fn losses(out: &mut String, line: &Line, x: Axis) {
    let at = |ns: u64| x.at(line.start_s + ns as f64 / 1e9);
    let mut path = Path::default();
    let mut end = f64::MIN;
    for stretch in missing::stretches(&line.series.losses) {
        // A narrower bar would not be visible.
        let (from, to) = (at(stretch.from_ns), at(stretch.to_ns).max(at(stretch.from_ns) + 1.5));
        if to >= end + 1.0 {
            path.move_to(from.max(end), BOTTOM - 3.0).across(to);
            end = to;
        }
    }
    if !path.is_empty() {
        let _ = write!(out, "<path class=\"missing\" d=\"{}\"/>", path.d());
    }
}

/// The names of main culprits without repetition.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    /// The index of a spike's main culprit; `None` without culprits.
    fn of(&mut self, spike: &Spike) -> Option<usize> {
        let culprit = spike.culprits.first()?;
        let name = culprit.cause.title();
        let at = self.0.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        });
        Some(at)
    }

    /// The names as an attribute for the script; empty without names.
    fn attribute(&self) -> String {
        let json = escape_json(serde_json::Value::from(self.0.clone()).to_string());
        if self.0.is_empty() { String::new() } else { format!(" data-culprits=\"{}\"", text::escape(&json)) }
    }
}

/// Draws one dot per spike, overlapping ones of a series once. Returns also the number of dots, and the culprits.
fn dots(lines: &[Line], x: Axis, y: Axis) -> (String, usize, Names) {
    let mut names = Names::default();
    let all = lines.iter().flat_map(|line| line.series.spikes.iter().map(move |spike| (line, spike)));
    let mut worst_first: Vec<_> = all.collect();
    worst_first.sort_by_key(|(_, spike)| std::cmp::Reverse(spike.lateness_ns));
    let mut taken = HashSet::new();
    let mut by_line = vec![(Path::default(), String::new(), String::new()); lines.len()];
    for (line, spike) in worst_first {
        let at_s = line.start_s + spike.at_ns as f64 / 1e9;
        let (px, py) = (x.at(at_s), y.at(svg::decades(spike.lateness_ns as f64, y.lo)));
        if taken.len() == DOTS || !taken.insert((line.index, to_i32(px / 2.0), to_i32(py / 2.0))) {
            continue;
        }
        let (path, points, culprits) = &mut by_line[line.index];
        path.move_to(px, py).raw(line.marker());
        let _ = write!(points, "{at_s:.3}:{} ", spike.lateness_ns);
        let culprit = names.of(spike).map_or_else(|| "-1".to_owned(), |index| index.to_string());
        let _ = write!(culprits, "{culprit} ");
    }
    let mut out = String::new();
    for (line, (path, points, culprits)) in lines.iter().zip(&by_line).filter(|(_, of)| !of.0.is_empty()) {
        let culprits = if names.0.is_empty() { String::new() } else { format!(" data-c=\"{}\"", culprits.trim_end()) };
        let _ = write!(
            out,
            "<path class=\"dots {}\" data-s=\"{}\" data-n=\"{}\" data-p=\"{}\"{culprits} d=\"{}\"/>",
            line.class(),
            line.index,
            text::escape(&line.name),
            points.trim_end(),
            path.d()
        );
    }
    (out, taken.len(), names)
}

fn maxima_table(lines: &[Line], words: &Words) -> Table {
    let has_losses = lines.iter().any(|line| !line.series.losses.is_empty());
    let head = ["series", "windows", "of", "smallest", "median", "largest", "missing"];
    let head = &head[..head.len() - usize::from(!has_losses)];
    Table::of_series(&format!("{} of each window (raw)", words.largest), head, lines, |line| {
        let maxima = &line.series.maxima;
        let mut seen: Vec<i64> = maxima.max_ns.iter().copied().flatten().collect();
        seen.sort_unstable();
        let show = |value: Option<&i64>| value.map_or_else(|| "-".to_owned(), |&ns| format_ns(ns));
        let figures = vec![
            grouped(seen.len() as u64),
            format_duration(maxima.window_ns),
            show(seen.first()),
            show(seen.get(seen.len().saturating_sub(1) / 2)),
            show(seen.last()),
        ];
        let missing = || missing::in_words(line.series).unwrap_or_else(|| "-".to_owned());
        figures.into_iter().chain(has_losses.then(missing)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::lines::lines;
    use record::{Phase, Series};

    fn record(maxima: Vec<Option<i64>>, spikes: Vec<Spike>) -> Record {
        let maxima = Maxima { window_ns: 1_000_000_000, max_ns: maxima };
        let spikes_total = spikes.len() as u64;
        let series = Series { phase: "rest".into(), cpu: Some(0), maxima, spikes, spikes_total, ..Series::default() };
        Record { series: vec![series], ..Record::default() }
    }

    #[test]
    fn keeps_the_maxima_of_a_long_run() {
        let mut windows = vec![Some(5_000); 600_000];
        windows[123_456] = Some(77_000_000);
        windows[599_999] = Some(9_000_000);
        let record = record(windows, vec![]);
        let figure = maxima(&record, &lines(&record));
        assert!(figure.svg.contains(":77000000 ") && figure.svg.contains(":9000000\""));
        assert!(figure.svg.len() < 30_000, "{}", figure.svg.len());
        assert!(figure.lead.contains("within 27 min 02 s"), "{}", figure.lead);
    }

    #[test]
    fn keeps_gaps_between_windows() {
        let record = record(vec![Some(1000), None, Some(-5)], vec![]);
        let svg = maxima(&record, &lines(&record)).svg;
        assert!(svg.contains("data-p=\"0.0:1000 1.0: 2.0:-5\""), "{svg}");
    }

    #[test]
    fn draws_overlapping_dots_once_and_the_worst_always() {
        let spike = |at_ns| Spike { lateness_ns: 1_000_000 + i64::try_from(at_ns).unwrap(), at_ns, ..Spike::default() };
        let record = record(vec![], (0..100_000).map(|i| spike(i * 1_000)).collect());
        let figure = spikes(&record, &lines(&record), 20);
        assert!(figure.svg.contains(":100999000 "), "the worst is drawn");
        assert!(figure.svg.len() < 200_000, "{}", figure.svg.len());
        assert_eq!(figure.table.rows.len(), 20);
        assert!(figure.lead.contains("drawn once"), "{}", figure.lead);
    }

    #[test]
    fn ends_the_last_window_with_its_phase() {
        let mut record = record(vec![Some(1000), Some(2000)], vec![]);
        record.phases = vec![Phase { name: "rest".into(), duration_ns: 1_250_000_000, ..Phase::default() }];
        let lines = lines(&record);
        let figure = maxima(&record, &lines);
        assert_eq!(run_axis(&record, &lines).hi, 1.25);
        assert!(figure.svg.contains("data-end=\"1.2\""), "{}", figure.svg);
    }

    #[test]
    fn shows_when_results_were_missing() {
        let mut record = record(vec![Some(1000); 100], vec![]);
        assert!(!maxima(&record, &lines(&record)).svg.contains("missing"));
        record.series[0].losses.counts = vec![(20, 3), (21, 4), (50, 1)];
        let lines = lines(&record);
        let figure = maxima(&record, &lines);
        let at = |second: f64| number(run_axis(&record, &lines).at(second));
        let bars = format!("d=\"M{} 273H{}M{} 273H{}\"", at(20.0), at(22.0), at(50.0), at(51.0));
        assert!(figure.svg.contains(&bars), "{bars} {}", figure.svg);
        assert!(figure.lead.contains("missing results"), "{}", figure.lead);
        assert_eq!(figure.table.head.last().unwrap(), "missing");
    }

    #[test]
    fn draws_nothing_without_data() {
        let record = record(vec![None, None], vec![]);
        assert!(maxima(&record, &lines(&record)).svg.is_empty());
        assert!(spikes(&record, &lines(&record), 20).svg.is_empty());
    }
}
