//! The histogram: counts over lateness on logarithmic axes, all series in one chart.

use std::{collections::BTreeMap, fmt::Write};

use analysis::{float::to_i32, format_ns};
use record::grouped;

use crate::words::Words;

use super::{
    figure::{Figure, Table},
    lines::Line,
    svg::{self, Axis, Frame, Path, Tick, number},
    text,
};

/// Bins per decade: each is 12 % wide.
const PER_DECADE: f64 = 20.0;
const HEIGHT: f64 = 400.0;
const BOTTOM: f64 = 346.0;
/// Width of the area for counts that a logarithmic axis cannot show.
const GUTTER: f64 = 84.0;

/// The counts of one series by bin.
struct Binned<'a, 'b> {
    line: &'b Line<'a>,
    /// Count by bin; bin `b` spans `10^(b/20) ns` up to the start of the next.
    bins: BTreeMap<i32, u64>,
    /// Wake-ups before the deadline.
    early: u64,
    /// Wake-ups on time, or late by less than the start of the axis.
    under: u64,
}

/// The chart called `id` of the raw histograms of `lines`.
pub fn figure(id: &str, lines: &[Line], words: &Words) -> Figure {
    let values = || lines.iter().flat_map(|line| line.series.raw.iter().map(|(value_ns, _)| value_ns));
    let smallest = values().filter(|&value_ns| value_ns > 0).min();
    let floor_ns: i64 = if smallest.is_some_and(|v| v < 100) { 10 } else { 100 };
    let binned: Vec<Binned> = lines.iter().map(|line| bin(line, floor_ns)).collect();
    let Words { item, lateness, is_periodic, .. } = words;
    let items = items(lines, item);
    let counted = items.iter().map(|item| format!("{item}s")).collect::<Vec<_>>().join(" and ");
    let mut lead = format!(
        "Each {} is counted once (raw). Both axes are logarithmic, so single ones stay visible next to millions.",
        items.join(" and ")
    );
    if *is_periodic {
        lead.push_str(" A long, thin tail to the right makes deadlines fail.");
    }
    if values().any(|value_ns| value_ns < 0) {
        lead.push_str(" Times below 0 are counted separately, at the far left.");
    }
    let svg = if values().next().is_none() { String::new() } else { draw(id, &binned, floor_ns, &counted, lateness) };
    Figure {
        id: id.to_owned(),
        title: format!("Histogram of {lateness}"),
        lead,
        svg,
        table: table(lines, &counted, lateness),
    }
}

/// The counted items of the lines, singular: `first` and those of the other series.
fn items(lines: &[Line], first: &'static str) -> Vec<&'static str> {
    let mut items = vec![first];
    for line in lines {
        let item = Words::of_series(line.series).item;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    items
}

fn bin<'a, 'b>(line: &'b Line<'a>, floor_ns: i64) -> Binned<'a, 'b> {
    let mut out = Binned { line, bins: BTreeMap::new(), early: 0, under: 0 };
    for (value_ns, count) in line.series.raw.iter() {
        let slot = match value_ns {
            v if v < 0 => &mut out.early,
            v if v < floor_ns => &mut out.under,
            v => out.bins.entry(to_i32(((v as f64).log10() * PER_DECADE + 1e-9).floor())).or_default(),
        };
        *slot = slot.saturating_add(count);
    }
    out
}

fn draw(id: &str, binned: &[Binned], floor_ns: i64, counted: &str, lateness: &str) -> String {
    let early = binned.iter().any(|b| b.early > 0);
    let under = binned.iter().any(|b| b.under > 0);
    let gutters = GUTTER * (f64::from(u8::from(early)) + f64::from(u8::from(under)));
    // The axis begins where the data begin; smaller values have their own area.
    let first = binned.iter().filter_map(|b| b.bins.keys().next()).min();
    let lo = first.map_or((floor_ns as f64).log10(), |&bin| f64::from(bin) / PER_DECADE);
    let lo = svg::step_below(10f64.powf(lo + 1e-9));
    let last = binned.iter().filter_map(|b| b.bins.keys().last()).max().map_or(lo, |&b| f64::from(b + 1) / PER_DECADE);
    let x = Axis { lo, hi: last.max(lo + 1.0), from: svg::LEFT + gutters, to: svg::FAR_RIGHT };
    let most = binned.iter().flat_map(|b| b.bins.values().copied().chain([b.early, b.under])).max().unwrap_or(1);
    let y = Axis { lo: -0.2, hi: svg::step_above(most as f64).max(1.0), from: BOTTOM, to: svg::TOP };

    let mut body = String::new();
    for b in binned {
        outline(&mut body, b, x, y);
    }
    let mut at = svg::LEFT;
    let under_label = format!("< {}", format_ns(floor_ns));
    for (shown, label, count) in
        [(early, "early", (|b| b.early) as fn(&Binned) -> u64), (under, under_label.as_str(), |b| b.under)]
    {
        if shown {
            gutter(&mut body, binned, at, y, label, count);
            at += GUTTER;
        }
    }
    maxima(&mut body, binned, x);
    Frame {
        id,
        title: &format!("Histogram of {lateness}"),
        summary: &format!(
            "Count of {counted} by {lateness}, one line per series, both axes logarithmic. The table below contains the \
             figures."
        ),
        height: HEIGHT,
        x: (x, svg::log_ticks(x.lo, x.hi, text::tick_ns), lateness),
        y: (y, count_ticks(y.hi), counted),
        data: "data-bins=\"20\"",
    }
    .draw(&body)
}

fn count_ticks(hi: f64) -> Vec<Tick> {
    svg::log_ticks(0.0, hi, text::tick_count)
}

/// Draws the outline of a series' bins; empty bins lie on the base line.
fn outline(out: &mut String, b: &Binned, x: Axis, y: Axis) {
    let mut path = Path::default();
    let mut points = String::new();
    let mut end = None;
    for (&bin, &count) in &b.bins {
        let (from, to) = (x.at(f64::from(bin) / PER_DECADE), x.at(f64::from(bin + 1) / PER_DECADE));
        if end != Some(bin) && !b.line.thin {
            if end.is_some() {
                path.up_or_down(y.from);
            }
            path.move_to(from, y.from);
        }
        let top = y.at((count as f64).log10());
        if b.line.thin {
            // Many series are drawn without verticals, which would hide other series.
            path.move_to(from, top).across(to);
        } else {
            path.up_or_down(top).across(to);
        }
        end = Some(bin + 1);
        let _ = write!(points, "{bin}:{count} ");
    }
    if path.is_empty() {
        return;
    }
    if !b.line.thin {
        path.up_or_down(y.from);
    }
    let (index, class, name) = (b.line.index, b.line.class(), text::escape(&b.line.name));
    let _ = write!(
        out,
        "<path class=\"line area {class}\" data-s=\"{index}\" data-n=\"{name}\" data-p=\"{}\" d=\"{}\"/>",
        points.trim_end(),
        path.d()
    );
}

/// Draws counts that the logarithmic axis cannot show, one bar per series.
fn gutter(out: &mut String, binned: &[Binned], from: f64, y: Axis, label: &str, count: impl Fn(&Binned) -> u64) {
    let middle = number(from + (GUTTER - 32.0) / 2.0);
    let _ = write!(
        out,
        "<path class=\"axis\" d=\"M{} {}h{}\"/><text class=\"tick\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        number(from),
        number(y.from),
        number(GUTTER - 32.0),
        number(y.from + 20.0),
        text::escape(label)
    );
    let step = (GUTTER - 36.0) / binned.len() as f64;
    for (i, b) in binned.iter().enumerate().filter(|(_, b)| count(b) > 0) {
        let (x, top) = (from + 2.0 + step * (i as f64 + 0.5), y.at((count(b) as f64).log10()));
        let _ = write!(
            out,
            "<path class=\"line {}\" data-s=\"{}\" d=\"M{} {}V{}\"><title>{}, {}: {}</title></path>",
            b.line.class().replace(" d", " solid d"),
            b.line.index,
            number(x),
            number(y.from),
            number(top),
            text::escape(&b.line.name),
            text::escape(label),
            grouped(count(b))
        );
    }
}

/// Marks the largest lateness of each named series: a stem from the axis to its label, labels below one another.
fn maxima(out: &mut String, binned: &[Binned], x: Axis) {
    let mut named: Vec<(&Line, i64)> =
        binned.iter().filter(|b| b.line.named).filter_map(|b| Some((b.line, b.line.series.max_ns?))).collect();
    named.retain(|(_, max_ns)| *max_ns > 0);
    // The largest at the top, so that no stem crosses a label.
    named.sort_by_key(|(_, max_ns)| std::cmp::Reverse(*max_ns));
    for (row, (line, max_ns)) in named.iter().enumerate() {
        let at = x.at((*max_ns as f64).log10());
        let y = svg::TOP + 14.0 + 15.0 * row as f64;
        let class = if row == 0 { "" } else { " dense" };
        let (anchor, side) = if at > svg::LEFT + 220.0 { ("end", -5.0) } else { ("start", 5.0) };
        let _ = write!(
            out,
            "<g class=\"mark {}\" data-s=\"{}\"><path d=\"M{at:.1} {BOTTOM}V{}\"/>\
             <text class=\"max{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}: max {}</text></g>",
            line.class(),
            line.index,
            number(y - 4.0),
            number(at + side),
            number(y),
            text::escape(&line.name),
            format_ns(*max_ns)
        );
    }
}

fn table(lines: &[Line], counted: &str, lateness: &str) -> Table {
    const EDGES: [i64; 6] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    let head = ["series", "early", "to 1 us", "to 10 us", "to 100 us", "to 1 ms", "to 10 ms", "to 100 ms", "above"];
    let caption = format!("Number of {counted} by {lateness} (raw)");
    Table::of_series(&caption, &head, lines, |line| {
        let mut counts = [0u64; 8];
        for (value_ns, count) in line.series.raw.iter() {
            let column = if value_ns < 0 { 0 } else { 1 + EDGES.iter().filter(|&&edge| value_ns > edge).count() };
            counts[column] = counts[column].saturating_add(count);
        }
        counts.map(grouped).to_vec()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::lines::lines;
    use record::{Record, Series, SeriesKind};

    fn record(values: &[(i64, u64)]) -> Record {
        let mut series = Series { phase: "rest".into(), cpu: Some(0), ..Series::default() };
        for &(value_ns, count) in values {
            series.raw.add(value_ns, count);
        }
        series.max_ns = values.iter().map(|v| v.0).max();
        Record { series: vec![series], ..Record::default() }
    }

    #[test]
    fn counts_every_wake_up() {
        let record = record(&[(-400, 3), (0, 5), (99, 2), (100, 7), (1_000, 11), (9_000_000_000_000, 1)]);
        let lines = lines(&record);
        let b = bin(&lines[0], 100);
        assert_eq!((b.early, b.under, b.bins.values().sum::<u64>()), (3, 7, 19));
        assert_eq!(b.bins.keys().copied().collect::<Vec<_>>(), [40, 60, 259]);
        let figure = figure("histogram", &lines, Words::of(&record));
        assert!(figure.svg.contains("early: 3") && figure.svg.contains("CPU 0, at rest: max 9000 s"), "{}", figure.svg);
        assert_eq!(figure.table.rows[0].cells[1..], ["3", "25", "0", "0", "0", "0", "0", "1"].map(str::to_owned)[..]);
    }

    #[test]
    fn the_axis_begins_where_the_data_begin() {
        let first = |values: &[(i64, u64)]| {
            let record = record(values);
            let svg = figure("histogram", &lines(&record), Words::of(&record)).svg;
            let axis =
                svg.split("data-x=\"").nth(1).and_then(|rest| rest.split(' ').next()).expect("an axis").to_owned();
            10f64.powf(axis.parse::<f64>().expect("a number")).round()
        };
        assert_eq!(first(&[(64_000, 5), (9_000_000, 1)]), 50_000.0);
        assert_eq!(first(&[(-5, 1), (0, 5), (5_500, 1)]), 5_000.0, "values up to 0 have their own area");
    }

    #[test]
    fn draws_one_bucket_as_one_bin() {
        let record = record(&[(5_000, 1)]);
        let figure = figure("histogram", &lines(&record), Words::of(&record));
        assert_eq!(figure.svg.matches("data-p=\"73:1\"").count(), 1, "{}", figure.svg);
    }

    #[test]
    fn draws_nothing_without_data() {
        assert!(figure("histogram", &lines(&record(&[])), Words::of(&record(&[]))).svg.is_empty());
        assert!(figure("histogram", &[], Words::of(&record(&[]))).svg.is_empty());
    }

    #[test]
    fn names_the_items_of_all_series() {
        let mut record = record(&[(5_000, 1), (-5, 1)]);
        let kind = SeriesKind::RoundTrips(Box::default());
        record.series.push(Series { kind, ..record.series[0].clone() });
        let figure = figure("histogram", &lines(&record), Words::of(&record));
        assert!(figure.lead.starts_with("Each wake-up and round trip is counted once"), "{}", figure.lead);
        assert!(figure.lead.ends_with("Times below 0 are counted separately, at the far left."), "{}", figure.lead);
        assert!(figure.svg.contains(">wake-ups and round trips<"));
    }

    #[test]
    fn charts_of_audio_runs_name_their_times() {
        let mut series = Series { kind: SeriesKind::Audio(Box::default()), samples: 1, ..Series::default() };
        series.raw.record(100_000);
        let page = crate::html::render(&Record { series: vec![series], ..Record::default() });
        assert!(page.contains("<h3>Histogram of wake-up lateness</h3>") && !page.contains("Histogram of lateness"));
    }
}
