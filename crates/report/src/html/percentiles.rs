//! The percentile curve: the lateness not exceeded by 9 in 10 wake-ups, 99 in 100, and so on.

use std::fmt::Write;

use analysis::{
    Summary,
    float::{to_i32, to_u64},
    format_ns,
};
use record::{Histogram, Maxima, UseVerdict, grouped};

use super::{
    figure::{Figure, Table},
    lines::{DASHES, HUES, Line},
    svg::{self, Axis, Frame, Path, Tick, number},
    text,
    verdict::short,
};
use crate::{
    versus::Samples,
    words::{Words, capitalized},
};

const HEIGHT: f64 = 400.0;
const BOTTOM: f64 = 346.0;
/// The horizontal end of a curve at its largest value, in nines.
const LEDGE: f64 = 0.15;
/// The number of characters that fit into the right margin.
const MARGIN: usize = 22;

/// The sentence about curves without their end, after another one.
pub const DOTS: &str =
    " A dot ends a curve before its largest values: the tool counted later samples, but not their times.";

/// Samples of other records, each with its name.
type Others<'a> = [(String, Samples<'a>)];

/// The chart called `id` of the corrected histograms of `lines`, with the limits of `uses` and the curves of `others`.
pub fn figure(id: &str, lines: &[Line], words: &Words, uses: &[&UseVerdict], others: &Others) -> Figure {
    let mut lead = lead(words);
    let drawn: Vec<&Line> = lines.iter().filter(|l| !l.series.corrected.is_empty()).collect();
    let y = lateness(&drawn, others);
    if drawn.iter().any(|l| l.series.corrected.iter().next().is_some_and(|(v, _)| (v as f64) < 10f64.powf(y.lo))) {
        lead.push_str(" Values below the start of the axis are drawn on its base line.");
    }
    if !others.is_empty() {
        lead.push_str(" Grey curves are other machines with known histograms.");
    }
    if others.iter().any(|(_, samples)| samples.beyond > 0) {
        lead.push_str(DOTS);
    }
    let nothing = drawn.is_empty() && others.is_empty();
    let title = format!("{} by percentile", capitalized(words.lateness));
    let svg = if nothing { String::new() } else { draw(id, &drawn, uses, others, y, (&title, words)) };
    Figure { id: id.to_owned(), title, lead, svg, table: table(lines, words) }
}

/// The percentile curves of several sides, without a table.
pub fn of_sides(id: &str, title: &str, sides: &[(&str, Samples)]) -> String {
    let y = svg::lateness_axis(sides.iter().flat_map(|(_, of)| ends(of.histogram)).flatten(), 10.0, BOTTOM, svg::TOP);
    let most = sides.iter().map(|(_, samples)| samples.total()).max().unwrap_or(1);
    let x = Axis { lo: 0.0, hi: ((most as f64).log10() + LEDGE).max(1.0), from: svg::LEFT, to: svg::RIGHT };
    let step = (x.hi - x.lo) / (x.to - x.from) * 0.5;
    let wanted = sides.iter().map(|(_, of)| of.histogram.iter().next_back().map_or(0, |(largest, _)| largest));
    let wanted: Vec<f64> = wanted.map(|largest| y.at(svg::decades(largest as f64, y.lo)) + 4.0).collect();
    let mut body = String::new();
    for (index, (name, samples)) in sides.iter().enumerate() {
        curve(&mut body, (&class_of_side(index), ""), name, *samples, step, (x, y));
    }
    names_of_sides(&mut body, &side_names(sides), &wanted, x, y);
    Frame {
        id,
        title,
        summary: "A logarithmic axis over the percentile, one line per side.",
        height: HEIGHT,
        x: (x, percent_ticks(x), "share of values up to this one"),
        y: (y, svg::log_ticks(y.lo, y.hi, text::tick_ns), "value"),
        data: "data-nines",
    }
    .draw(&body)
}

/// The share of samples above each value, with logarithmic axes: a tail that falls in a straight line is a power law.
pub fn exceedance(id: &str, title: &str, sides: &[(&str, Samples)]) -> String {
    let x =
        svg::lateness_axis(sides.iter().flat_map(|(_, of)| ends(of.histogram)).flatten(), 10.0, svg::LEFT, svg::RIGHT);
    let most = sides.iter().map(|(_, samples)| samples.total()).max().unwrap_or(1);
    let y = Axis { lo: -(most as f64).log10().max(1.0), hi: 0.0, from: BOTTOM, to: svg::TOP };
    let mut body = String::new();
    let mut ends = Vec::new();
    for (index, (name, samples)) in sides.iter().enumerate() {
        let total = samples.total();
        let (mut path, mut above, mut at, mut last) = (Path::default(), total, y.at(0.0), x.from);
        path.move_to(x.from, at);
        for (value_ns, count) in samples.histogram.iter() {
            above -= count.min(above);
            last = x.at(svg::decades(value_ns as f64, x.lo));
            path.across(last);
            if above > 0 {
                at = y.at((above as f64 / total as f64).log10());
                path.up_or_down(at);
            }
        }
        ends.push(at + 4.0);
        let class = class_of_side(index);
        if samples.beyond > 0 {
            open_end(&mut body, &class, last, at);
        } else {
            // The largest value: nothing is above it.
            path.up_or_down(y.from);
        }
        let _ = write!(body, "<path class=\"line {class}\" data-n=\"{}\" d=\"{}\"/>", text::escape(name), path.d());
    }
    names_of_sides(&mut body, &side_names(sides), &ends, x, y);
    let share = |at: i32| {
        let label = if at < -4 { format!("1e{at}") } else { 10f64.powi(at).to_string() };
        Tick { at: f64::from(at), label }
    };
    Frame {
        id,
        title,
        summary: "Logarithmic axes: the value, and the share of samples above it, one line per side.",
        height: HEIGHT,
        x: (x, svg::log_ticks(x.lo, x.hi, text::tick_ns), "value"),
        y: (y, (to_i32(y.lo.ceil())..=0).map(share).collect(), "share of samples above"),
        data: "",
    }
    .draw(&body)
}

/// Classes and names of the curves of sides.
pub fn keys_of_sides(sides: &[(&str, Samples)]) -> Vec<(String, String)> {
    keys(sides.iter().map(|(name, _)| *name))
}

fn side_names<'a>(sides: &[(&'a str, Samples)]) -> Vec<&'a str> {
    sides.iter().map(|(name, _)| *name).collect()
}

/// The classes and the names of sides.
pub fn keys<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    names.enumerate().map(|(index, name)| (class_of_side(index), name.to_owned())).collect()
}

/// The largest value of each side in each window of its time.
pub fn over_time(id: &str, title: &str, sides: &[(&str, &Maxima)]) -> String {
    const COLUMNS: usize = 370;
    let window_s = |maxima: &Maxima| maxima.window_ns as f64 / 1e9;
    let values = || sides.iter().flat_map(|(_, maxima)| maxima.max_ns.iter().copied().flatten());
    let y = svg::lateness_axis(values(), 10.0, BOTTOM, svg::TOP);
    let ends_s = sides.iter().map(|(_, maxima)| maxima.max_ns.len() as f64 * window_s(maxima));
    let x = Axis { lo: 0.0, hi: ends_s.fold(0.0, f64::max).max(f64::MIN_POSITIVE), from: svg::LEFT, to: svg::RIGHT };
    let height = |max_ns: i64| y.at(svg::decades(max_ns as f64, y.lo));
    let mut body = String::new();
    let mut ends = Vec::new();
    for (index, (name, maxima)) in sides.iter().enumerate() {
        let together = maxima.max_ns.len().div_ceil(COLUMNS).max(1);
        let (mut path, mut is_drawing, mut last) = (Path::default(), false, y.from);
        for (column, windows) in maxima.max_ns.chunks(together).enumerate() {
            let at_s = |window: usize| x.at(window as f64 * window_s(maxima));
            let (from, to) = (at_s(column * together), at_s(column * together + windows.len()));
            let Some(at) = windows.iter().copied().flatten().max().map(height) else {
                is_drawing = false;
                continue;
            };
            if is_drawing {
                path.up_or_down(at).across(to);
            } else {
                path.move_to(from, at).across(to);
            }
            (is_drawing, last) = (true, at);
        }
        ends.push(last + 4.0);
        let class = class_of_side(index);
        let _ = write!(body, "<path class=\"line {class}\" data-n=\"{}\" d=\"{}\"/>", text::escape(name), path.d());
    }
    let names: Vec<&str> = sides.iter().map(|(name, _)| *name).collect();
    names_of_sides(&mut body, &names, &ends, x, y);
    Frame {
        id,
        title,
        summary: "A logarithmic axis over the time of the rounds, one line per side.",
        height: HEIGHT,
        x: (x, svg::time_ticks(x.hi), "time since the begin of a round"),
        y: (y, svg::log_ticks(y.lo, y.hi, text::tick_ns), "largest value"),
        data: "",
    }
    .draw(&body)
}

fn class_of_side(index: usize) -> String {
    format!("h{} d{}", index % HUES, index % DASHES)
}

/// A dot at the end of a curve whose further samples have no known values.
fn open_end(out: &mut String, class: &str, x: f64, y: f64) {
    let _ = write!(out, "<circle class=\"dots {class}\" cx=\"{}\" cy=\"{}\" r=\"4\"/>", number(x), number(y));
}

fn lead(words: &Words) -> String {
    let Words { item, later, largest, is_periodic, .. } = words;
    if *is_periodic {
        return format!(
            "Read it from right to left: how late was the worst {item}, the worst in 1,000, the worst in 10? A flat line \
             means a punctual machine. Deadlines missed by a late {item} are counted (corrected). Each curve ends at its \
             largest value, one in all deadlines measured; the samples do not show more."
        );
    }
    format!(
        "Read it from right to left: the {}, the value that one {item} in 1,000 is {later} than, that one in 10 is {later} \
         than. Each curve ends at its largest value, one in all {item}s measured; the samples do not show more.",
        largest.to_lowercase()
    )
}

/// The axis, from the lateness that nearly all samples exceed to the largest. Few smaller values, left over after long
/// stalls, are not shown.
fn lateness(lines: &[&Line], others: &Others) -> Axis {
    svg::lateness_axis(samples(lines, others).flat_map(|of| ends(of.histogram)).flatten(), 10.0, BOTTOM, svg::TOP)
}

fn ends(histogram: &Histogram) -> [Option<i64>; 2] {
    [histogram.percentile(5.0), histogram.percentile(100.0)]
}

fn samples<'a>(lines: &'a [&Line], others: &'a Others) -> impl Iterator<Item = Samples<'a>> {
    lines.iter().map(|line| Samples::whole(&line.series.corrected)).chain(others.iter().map(|(_, samples)| *samples))
}

fn draw(
    id: &str,
    lines: &[&Line],
    uses: &[&UseVerdict],
    others: &Others,
    y: Axis,
    (title, words): (&str, &Words),
) -> String {
    let most = samples(lines, others).map(Samples::total).max().unwrap_or(1);
    let x = Axis { lo: 0.0, hi: ((most as f64).log10() + LEDGE).max(1.0), from: svg::LEFT, to: svg::RIGHT };

    // Names of limits take up to two fifths of the width: at the left if the curves are below them there.
    let reach = 100.0 - 100.0 / 10f64.powf(0.4 * x.hi);
    let left_above_ns =
        samples(lines, others).filter_map(|of| of.histogram.percentile_among(of.total(), reach)).max().unwrap_or(0);
    let (mut body, limit_names) = limits(uses, left_above_ns, x, y);
    let step_px = if lines.len() > 32 { 5.0 } else { 0.5 };
    let step = (x.hi - x.lo) / (x.to - x.from) * step_px;
    for (name, samples) in others {
        curve(&mut body, ("other", ""), name, *samples, step, (x, y));
    }
    for line in lines {
        let attributes = (&*line.class(), &*format!(" data-s=\"{}\"", line.index));
        curve(&mut body, attributes, &line.name, Samples::whole(&line.series.corrected), step, (x, y));
    }
    // Above the curves, which would cross them; a name has a narrow border in the colour of the page.
    body.push_str(&limit_names);
    names(&mut body, lines, others, x, y);
    Frame {
        id,
        title,
        summary: "A logarithmic axis over the percentile, one line per series. The table below contains the figures.",
        height: HEIGHT,
        x: (
            x,
            percent_ticks(x),
            if words.is_periodic {
                "share of deadlines met with this lateness or less"
            } else {
                "share of values up to this one"
            },
        ),
        y: (y, svg::log_ticks(y.lo, y.hi, text::tick_ns), words.lateness),
        data: "data-nines",
    }
    .draw(&body)
}

/// Marks at each nine; a label only if there is space for it.
fn percent_ticks(axis: Axis) -> Vec<Tick> {
    let nines = (1..=to_i32(axis.hi.floor())).map(f64::from);
    let mut taken = f64::MIN;
    let tick = |at: f64| {
        let mut label = text::percent(at);
        let half = label.len() as f64 * 3.4;
        if axis.at(at) - half < taken {
            label.clear();
        } else {
            taken = axis.at(at) + half + 8.0;
        }
        Tick { at, label }
    };
    [0.0, 2f64.log10()].into_iter().chain(nines).map(tick).collect()
}

/// The points at which the curve rises: nines (`-log10(1 - p)`), and the lateness from there on, ns. Sampled every
/// `step` nines and at the end, so the largest known value is always included.
fn steps(samples: Samples, step: f64) -> Vec<(f64, i64)> {
    let total = samples.total();
    let end = known_nines(samples);
    let mut out: Vec<(f64, i64)> = Vec::new();
    let mut buckets = samples.histogram.iter();
    let (mut value_ns, mut seen) = (0, 0u64);
    let mut nines = 0.0;
    loop {
        // The number of counts at or below the percentile: all but one in 10^nines.
        let rank = total.saturating_sub(to_u64((total as f64 / 10f64.powf(nines)).floor())).max(1);
        while seen < rank {
            let Some((value, count)) = buckets.next() else { break };
            (value_ns, seen) = (value, seen.saturating_add(count));
        }
        if out.last().is_none_or(|&(_, last)| last != value_ns) {
            out.push((nines, value_ns));
        }
        if nines >= end {
            break;
        }
        nines = (nines + step).min(end);
    }
    if let Some((largest, _)) = samples.histogram.iter().next_back().filter(|(v, _)| *v > value_ns) {
        out.push((end, largest));
    }
    out
}

/// The nines of the largest known value.
fn known_nines(samples: Samples) -> f64 {
    (samples.total() as f64 / samples.beyond.max(1) as f64).log10()
}

/// Draws one curve with its classes and further attributes.
fn curve(out: &mut String, (class, data): (&str, &str), name: &str, samples: Samples, step: f64, (x, y): (Axis, Axis)) {
    let mut path = Path::default();
    let (mut points, mut last) = (String::new(), y.from);
    for (i, (nines, value_ns)) in steps(samples, step).into_iter().enumerate() {
        let (px, py) = (x.at(nines), y.at(svg::decades(value_ns as f64, y.lo)));
        last = py;
        if i == 0 {
            path.move_to(px, py);
        } else {
            path.across(px).up_or_down(py);
        }
        let _ = write!(points, "{nines:.3}:{value_ns} ");
    }
    let end = known_nines(samples) + if samples.beyond > 0 { 0.0 } else { LEDGE };
    path.across(x.at(end));
    if samples.beyond > 0 {
        open_end(out, class, x.at(end), last);
    }
    let _ = write!(
        out,
        "<path class=\"line {class}\"{data} data-n=\"{}\" data-p=\"{}\" data-end=\"{end:.3}\" d=\"{}\"/>",
        text::escape(name),
        points.trim_end(),
        path.d()
    );
}

/// The name of another record's curve without the record's name.
fn of_phase(name: &str) -> &str {
    name.split_once(": ").map_or(name, |(_, phase)| phase)
}

/// The names in lines that fit the margin, at most two each. The read-out shows the full names.
///
/// If a name does not fit, the parts that all names have are left out, except the first part. A line that is still too
/// long loses its end, or its start if the names would be equal otherwise.
fn in_margin(names: &[&str]) -> Vec<Vec<String>> {
    if names.iter().all(|name| name.chars().count() <= MARGIN) {
        return names.iter().map(|name| vec![(*name).to_owned()]).collect();
    }
    let parts: Vec<Vec<&str>> = names.iter().map(|name| name.split(", ").collect()).collect();
    let whole: Vec<Vec<String>> = parts.iter().map(|of| in_two_lines(of)).collect();
    if whole.iter().flatten().all(|line| line.chars().count() <= MARGIN) {
        return whole;
    }
    let is_common = |part: &str| parts.len() > 1 && parts.iter().all(|of| of.contains(&part));
    let short = parts.iter().map(|of| {
        let rest = of.iter().skip(1).copied().filter(|part| !is_common(part));
        in_two_lines(&of.iter().take(1).copied().chain(rest).collect::<Vec<_>>())
    });
    let short: Vec<Vec<String>> = short.collect();
    let cut_to = |keep_end: bool| -> Vec<Vec<String>> {
        short.iter().map(|label| label.iter().map(|line| cut(line, keep_end)).collect()).collect()
    };
    let labels = cut_to(false);
    let differ = (1..labels.len()).all(|at| !labels[..at].contains(&labels[at]));
    if differ { labels } else { cut_to(true) }
}

/// The parts of a name in at most two lines. The last line can be too long.
fn in_two_lines(parts: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let is_full = lines.len() == 2;
        match lines.last_mut() {
            Some(last) if is_full || last.chars().count() + 2 + part.chars().count() <= MARGIN => {
                *last = format!("{last}, {part}");
            }
            _ => lines.push((*part).to_owned()),
        }
    }
    lines
}

fn cut(line: &str, keep_end: bool) -> String {
    let count = line.chars().count();
    match keep_end {
        _ if count <= MARGIN => line.to_owned(),
        false => line.chars().take(MARGIN - 1).chain(['…']).collect(),
        true => std::iter::once('…').chain(line.chars().skip(count + 1 - MARGIN)).collect(),
    }
}

/// Draws the names of the curves at their right ends.
fn names(out: &mut String, lines: &[&Line], others: &Others, x: Axis, y: Axis) {
    /// Distance of lines, and of names.
    const LINE: f64 = 13.0;
    let of_lines = lines.iter().filter(|line| line.named).map(|line| {
        let group = format!("<g class=\"mark {}\" data-s=\"{}\">", line.class(), line.index);
        (group, line.name.as_str(), &line.series.corrected)
    });
    let of_others =
        others.iter().map(|(name, samples)| ("<g class=\"other\">".to_owned(), of_phase(name), samples.histogram));
    let named: Vec<_> = of_lines
        .chain(of_others)
        .filter_map(|(group, name, histogram)| Some((group, name, histogram.iter().next_back()?.0)))
        .collect();
    let labels = in_margin(&named.iter().map(|(_, name, _)| *name).collect::<Vec<_>>());
    let rows = labels.iter().map(Vec::len).max().unwrap_or(1) as f64;
    let wanted: Vec<f64> = named.iter().map(|(.., max)| y.at(svg::decades(*max as f64, y.lo)) + 4.0).collect();
    let last = y.from - (rows - 1.0) * LINE;
    for (((group, ..), label), at) in
        named.iter().zip(&labels).zip(svg::spread(&wanted, rows * LINE + 2.0, y.to + 4.0, last))
    {
        out.push_str(group);
        for (row, line) in label.iter().enumerate() {
            let (left, top) = (number(x.to + 10.0), number(at + row as f64 * LINE));
            let _ = write!(out, "<text x=\"{left}\" y=\"{top}\">{}</text>", text::escape(line));
        }
        out.push_str("</g>");
    }
}

/// Draws the names of sides at the right, each near its height, with the parts that fit.
fn names_of_sides(out: &mut String, names: &[&str], wanted: &[f64], x: Axis, y: Axis) {
    const LINE: f64 = 13.0;
    let labels = in_margin(names);
    let rows = labels.iter().map(Vec::len).max().unwrap_or(1) as f64;
    let last = y.from - (rows - 1.0) * LINE;
    let left = number(x.to + 10.0);
    out.push_str("<g class=\"name\">");
    for (label, at) in labels.iter().zip(svg::spread(wanted, rows * LINE + 2.0, y.to + 4.0, last)) {
        for (row, line) in label.iter().enumerate() {
            let top = number(at + row as f64 * LINE);
            let _ = write!(out, "<text x=\"{left}\" y=\"{top}\">{}</text>", text::escape(line));
        }
    }
    out.push_str("</g>");
}

/// Draws the limits of the uses as lines across the chart, with names. Limits close to each other share one name.
///
/// Names are at the left if above `left_above_ns`, otherwise at the right.
fn limits(uses: &[&UseVerdict], left_above_ns: i64, x: Axis, y: Axis) -> (String, String) {
    let height = |limit_ns: i64| y.at(svg::decades(limit_ns as f64, y.lo));
    let mut shown: Vec<&UseVerdict> = uses.to_vec();
    shown.retain(|u| u.limit_ns > 0 && (y.lo..=y.hi).contains(&(u.limit_ns as f64).log10()));
    shown.sort_by_key(|u| u.limit_ns);
    let (mut rules, mut names) = (String::new(), String::new());
    let mut last_shown = f64::INFINITY;
    for group in shown.chunk_by(|a, b| (height(a.limit_ns) - height(b.limit_ns)).abs() < 14.0) {
        let [others @ .., highest] = group else { continue };
        for one in group {
            let at = number(height(one.limit_ns));
            let _ = write!(rules, "<path class=\"limit\" d=\"M{} {at}H{}\"/>", number(x.from), number(x.to));
        }
        let more = if others.is_empty() { String::new() } else { format!(" and {} below", others.len()) };
        let at_left = highest.limit_ns > left_above_ns;
        let (anchor, at) = if at_left { ("start", x.from + 6.0) } else { ("end", x.to - 6.0) };
        let is_dense = last_shown - height(highest.limit_ns) < svg::LARGE;
        last_shown = if is_dense { last_shown } else { height(highest.limit_ns) };
        let _ = write!(
            names,
            "<text class=\"limit{}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">limit {}: {}{more}</text>",
            if is_dense { " dense" } else { "" },
            number(at),
            number(height(highest.limit_ns) - 4.0),
            format_ns(highest.limit_ns),
            text::escape(short(&highest.title))
        );
    }
    (rules, names)
}

fn table(lines: &[Line], words: &Words) -> Table {
    let mut head = vec!["series"];
    head.extend(Summary::default().percentiles().map(|(name, _)| name));
    let Words { item, lateness, is_periodic, .. } = words;
    let (counted, correction) =
        if *is_periodic { ("deadlines".to_owned(), " (corrected)") } else { (format!("{item}s"), "") };
    head.extend(["max", &counted]);
    let caption = format!(
        "{} not exceeded by this share of {counted}{correction}; a dash if there are too few samples",
        capitalized(lateness)
    );
    Table::of_series(&caption, &head, lines, |line| {
        let figures = Summary::of(line.series);
        let times = figures.percentiles().into_iter().map(|(_, value_ns)| value_ns).chain([figures.max_ns]);
        let mut cells: Vec<String> = times.map(|ns| ns.map_or_else(|| "-".to_owned(), format_ns)).collect();
        cells.push(grouped(line.series.corrected.total()));
        cells
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_matches_the_percentiles() {
        let mut h = Histogram::default();
        (1..=1000).for_each(|v| h.record(v));
        let steps = steps(Samples::whole(&h), 0.01);
        for percent in [50.0, 90.0, 99.0, 99.8] {
            let nines = -(1.0f64 - percent / 100.0).log10();
            let read = steps.iter().take_while(|(at, _)| *at <= nines + 1e-9).last().unwrap().1;
            assert!((h.percentile(percent).unwrap() - read).abs() <= 12, "{percent}: {read}");
        }
        assert_eq!(steps.last(), Some(&(3.0, 1000)));
    }

    #[test]
    fn the_curve_ends_at_the_largest_value() {
        for values in [vec![7], vec![-3, -3, 9], vec![1; 50]] {
            let mut h = Histogram::default();
            values.iter().for_each(|&v| h.record(v));
            assert_eq!(steps(Samples::whole(&h), 0.02).last().map(|s| s.1), values.iter().copied().max());
        }
    }

    /// 90 samples of 5 us, and 10 above, whose times nobody knows: the 90th percentile is the last one known.
    #[test]
    fn largest_values_over_time_are_steps_with_gaps() {
        let of = |window_ns: u64, max_ns: &[Option<i64>]| Maxima { window_ns, max_ns: max_ns.to_vec() };
        let a = of(1_000_000_000, &[Some(20_000), Some(900_000), None, Some(20_000)]);
        let long = of(2_000_000_000, &[Some(50_000); 1000]);
        let svg = over_time("maxima-0", "Largest value over time", &[("a<b", &a), ("b", &long)]);
        let paths: Vec<&str> = svg.split("<path class=\"line ").skip(1).collect();
        assert!(paths.len() == 2 && paths[0].contains("data-n=\"a&#60;b\""), "{svg}");
        assert_eq!(paths[0].matches('M').count(), 2, "a line before the gap, and one after it: {}", paths[0]);
        assert!(paths[1].len() < 20_000, "windows are drawn together: {}", paths[1].len());
    }

    #[test]
    fn a_curve_without_its_largest_values_ends_at_the_last_known_share() {
        let mut histogram = Histogram::default();
        histogram.add(1_000, 50);
        histogram.add(5_000, 40);
        let samples = Samples { histogram: &histogram, beyond: 10 };
        let largest = histogram.percentile(100.0).unwrap();
        assert_eq!(steps(samples, 0.01).last().map(|&(nines, value)| (nines <= 1.0, value)), Some((true, largest)));
        assert!((known_nines(samples) - 1.0).abs() < 1e-9);
        let whole = Samples::whole(&histogram);
        for draw in [of_sides, exceedance] {
            assert_eq!(draw("a", "A", &[("A", samples)]).matches("<circle").count(), 1);
            assert_eq!(draw("a", "A", &[("A", whole)]).matches("<circle").count(), 0);
        }
    }

    #[test]
    fn labels_of_nines_do_not_overlap() {
        let axis = Axis { lo: 0.0, hi: 12.0, from: svg::LEFT, to: svg::RIGHT };
        let ticks = percent_ticks(axis);
        assert_eq!(ticks.len(), 14);
        let named: Vec<_> = ticks.iter().filter(|tick| !tick.label.is_empty()).collect();
        assert!(named.len() > 5);
        for pair in named.windows(2) {
            let space = axis.at(pair[1].at) - axis.at(pair[0].at);
            assert!(space > 3.4 * (pair[0].label.len() + pair[1].label.len()) as f64, "{pair:?}");
        }
    }

    #[test]
    fn names_in_the_margin_differ() {
        let short = ["CPU 0, at rest", "CPU 1, at rest"];
        assert_eq!(in_margin(&short), [["CPU 0, at rest"], ["CPU 1, at rest"]], "names that fit remain as they are");
        let matrix =
            ["servo on CPU 1, base 0, servo 1, noload, round 1", "servo on CPU 0, base 0, servo 0, noload, round 1"];
        let labels = [["servo on CPU 1", "servo 1"], ["servo on CPU 0", "servo 0"]];
        assert_eq!(in_margin(&matrix), labels, "without the parts that both have");
        let ends = ["listener on CPU 0, at rest, 125 us", "listener on CPU 0, at rest"];
        assert_eq!(in_margin(&ends), [["listener on CPU 0", "at rest, 125 us"], ["listener on CPU 0", "at rest"]]);
        let start = "the same start of all names of scenarios ";
        let ends = in_margin(&[&format!("{start}A"), &format!("{start}B")]);
        assert!(ends[0] != ends[1] && ends[0][0].starts_with('…') && ends[0][0].ends_with('A'), "{ends:?}");
        assert!(ends.iter().flatten().all(|line| line.chars().count() == MARGIN), "{ends:?}");
    }

    #[test]
    fn close_limits_share_a_name() {
        let y = Axis { lo: 3.0, hi: 7.0, from: 346.0, to: 24.0 };
        let uses: Vec<UseVerdict> = [(50_000, "A"), (51_000, "B"), (1_000_000, "C"), (1, "off the axis"), (-4, "none")]
            .map(|(limit_ns, title)| UseVerdict { limit_ns, title: title.into(), ..UseVerdict::default() })
            .into();
        let (rules, names) = limits(&uses.iter().collect::<Vec<_>>(), 60_000, y, y);
        assert_eq!(rules.matches("<path").count(), 3);
        assert!(names.contains("limit 51 us: B and 1 below<") && names.contains("limit 1 ms: C<"), "{names}");
        assert_eq!(names.matches("\"end\">limit 51 us").count() + names.matches("\"start\">limit 1 ms").count(), 2);
    }
}
