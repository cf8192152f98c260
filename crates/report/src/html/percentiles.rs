//! How late at most, for all but one wake-up in ten, a hundred, a thousand …: the percentile curve.

use std::fmt::Write;

use analysis::{Summary, format_ns};
use record::{Histogram, UseVerdict};

use super::{
    figure::{Figure, Table},
    lines::Line,
    svg::{self, Axis, Frame, Path, Tick, number},
    text,
    verdict::short,
};

const HEIGHT: f64 = 400.0;
const BOTTOM: f64 = 346.0;
/// How far a curve goes on at its largest value, in nines: the last deadline stands for this much.
const LEDGE: f64 = 0.15;
/// Characters that the margin at the right has room for.
const MARGIN: usize = 20;

/// Histograms of others, each with its name.
type Others<'a> = [(String, &'a Histogram)];

/// The chart of all `lines`, from their corrected histograms, with the limits of `uses` and the curves of `others`.
pub fn figure(lines: &[Line], uses: &[&UseVerdict], others: &Others) -> Figure {
    let mut lead =
        "Read it from right to left: how late was the worst wake-up, the worst in 1,000, the worst in 10? A \
                    flat line is a punctual machine. Deadlines that a late wake-up ran over are counted (corrected). \
                    A curve ends in a ledge at its largest value, one in all deadlines seen; beyond that these samples \
                    say nothing."
            .to_owned();
    let gaps = lines.first().is_some_and(|line| line.series.kind.noise().is_some());
    if gaps {
        lead = "Read it from right to left: how long was the longest gap, the longest of 1,000, the longest of 10? A curve \
                ends in a ledge at its largest value, one of all gaps seen; beyond that these samples say nothing."
            .to_owned();
    }
    let some: Vec<&Line> = lines.iter().filter(|l| !l.series.corrected.is_empty()).collect();
    let y = lateness(&some, others);
    if some.iter().any(|l| l.series.corrected.iter().next().is_some_and(|(v, _)| (v as f64) < 10f64.powf(y.lo))) {
        lead.push_str(" What was earlier than the axis begins lies on its base line.");
    }
    if !others.is_empty() {
        lead.push_str(" Grey curves are of other machines, as far as their histograms are known.");
    }
    let nothing = some.is_empty() && others.is_empty();
    let svg = if nothing { String::new() } else { draw(&some, uses, others, y) };
    let title = if gaps { "Length of gaps by percentile" } else { "Lateness by percentile" };
    Figure { id: "percentiles", title, lead, svg, table: table(lines) }
}

/// From what nearly all were later than, since the few below are the chance remains of long stalls, to the largest.
fn lateness(lines: &[&Line], others: &Others) -> Axis {
    let ends = |histogram: &Histogram| [histogram.percentile(5.0), histogram.percentile(100.0)];
    svg::lateness_axis(histograms(lines, others).flat_map(ends).flatten(), 10.0, BOTTOM, svg::TOP)
}

fn histograms<'a>(lines: &'a [&Line], others: &'a Others) -> impl Iterator<Item = &'a Histogram> {
    lines.iter().map(|line| &line.series.corrected).chain(others.iter().map(|(_, histogram)| *histogram))
}

fn draw(lines: &[&Line], uses: &[&UseVerdict], others: &Others, y: Axis) -> String {
    let gaps = lines.first().is_some_and(|line| line.series.kind.noise().is_some());
    let most = histograms(lines, others).map(Histogram::total).max().unwrap_or(1);
    let x = Axis { lo: 0.0, hi: ((most as f64).log10() + LEDGE).max(1.0), from: svg::LEFT, to: svg::RIGHT };

    // Names of limits take up to two fifths of the width: at the left where the curves are below them there.
    let reach = 100.0 - 100.0 / 10f64.powf(0.4 * x.hi);
    let left_above_ns = histograms(lines, others).filter_map(|h| h.percentile(reach)).max().unwrap_or(0);
    let limits = limits(uses, left_above_ns, x, y);
    // Under the curves: a name must not hide a figure.
    let mut body = limits.0 + &limits.1;
    let step_px = if lines.len() > 32 { 5.0 } else { 0.5 };
    let step = (x.hi - x.lo) / (x.to - x.from) * step_px;
    for (name, histogram) in others {
        curve(&mut body, ("other", ""), name, histogram, step, (x, y));
    }
    for line in lines {
        let looks = (&*line.class(), &*format!(" data-s=\"{}\"", line.index));
        curve(&mut body, looks, &line.name, &line.series.corrected, step, (x, y));
    }
    names(&mut body, lines, others, x, y);
    Frame {
        id: "percentiles",
        title: "Lateness by percentile",
        summary: "Lateness on a logarithmic axis over the percentile of deadlines, one line a series. The table below \
                  holds the figures.",
        height: HEIGHT,
        x: (
            x,
            percent_ticks(x),
            if gaps { "share of gaps that are no longer" } else { "share of deadlines met with this lateness or less" },
        ),
        y: (y, svg::log_ticks(y.lo, y.hi, text::tick_ns), "lateness"),
        data: "data-nines",
    }
    .draw(&body)
}

/// Marks at each nine. Only those with room for it have a label.
fn percent_ticks(axis: Axis) -> Vec<Tick> {
    let nines = (1..=axis.hi.floor() as u32).map(f64::from);
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

/// Where the curve rises: nines (`-log10(1 - p)`), and the lateness from there on, ns. Read every `step` nines and at
/// the end, so the largest value is always among them.
fn steps(corrected: &Histogram, step: f64) -> Vec<(f64, i64)> {
    let total = corrected.total();
    let end = (total as f64).log10();
    let mut out: Vec<(f64, i64)> = Vec::new();
    let mut buckets = corrected.iter();
    let (mut value_ns, mut seen) = (0, 0u64);
    let mut nines = 0.0;
    loop {
        // How many of the counts lie at or below the percentile: all but one in 10^nines.
        let rank = total.saturating_sub((total as f64 / 10f64.powf(nines)).floor() as u64).max(1);
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
    if let Some((largest, _)) = corrected.iter().next_back().filter(|(v, _)| *v > value_ns) {
        out.push((end, largest));
    }
    out
}

/// One curve; `looks` are its classes and further attributes.
fn curve(
    out: &mut String,
    (class, data): (&str, &str),
    name: &str,
    histogram: &Histogram,
    step: f64,
    (x, y): (Axis, Axis),
) {
    let mut path = Path::default();
    let mut points = String::new();
    for (i, (nines, value_ns)) in steps(histogram, step).into_iter().enumerate() {
        let (px, py) = (x.at(nines), y.at(svg::decades(value_ns as f64, y.lo)));
        if i == 0 {
            path.move_to(px, py);
        } else {
            path.across(px).up_or_down(py);
        }
        let _ = write!(points, "{nines:.3}:{value_ns} ");
    }
    let end = (histogram.total() as f64).log10() + LEDGE;
    path.across(x.at(end));
    let _ = write!(
        out,
        "<path class=\"line {class}\"{data} data-n=\"{}\" data-p=\"{}\" data-end=\"{end:.3}\" d=\"{}\"/>",
        svg::escape(name),
        points.trim_end(),
        path.d()
    );
}

/// The name of another's curve, without that of its record, as far as the margin has room; the read-out has all of it.
fn in_margin(name: &str) -> String {
    let phase = name.split_once(": ").map_or(name, |(_, phase)| phase);
    if phase.chars().count() <= MARGIN {
        phase.to_owned()
    } else {
        phase.chars().take(MARGIN - 1).chain(['…']).collect()
    }
}

/// The names of the curves, at their right ends.
fn names(out: &mut String, lines: &[&Line], others: &Others, x: Axis, y: Axis) {
    let of_lines = lines.iter().filter(|line| line.named).map(|line| {
        let group = format!("<g class=\"mark {}\" data-s=\"{}\">", line.class(), line.index);
        (group, line.name.clone(), &line.series.corrected)
    });
    let of_others =
        others.iter().map(|(name, histogram)| ("<g class=\"other\">".to_owned(), in_margin(name), *histogram));
    let named: Vec<_> = of_lines
        .chain(of_others)
        .filter_map(|(group, name, histogram)| Some((group, name, histogram.iter().next_back()?.0)))
        .collect();
    let wanted: Vec<f64> = named.iter().map(|(.., max)| y.at(svg::decades(*max as f64, y.lo)) + 4.0).collect();
    for ((group, name, _), at) in named.iter().zip(svg::spread(&wanted, 15.0, y.to + 4.0, y.from)) {
        let (left, top) = (number(x.to + 10.0), number(at));
        let _ = write!(out, "{group}<text x=\"{left}\" y=\"{top}\">{}</text></g>", svg::escape(name));
    }
}

/// The limits of the uses as lines across the chart, and their names. Those too near to be told apart share a name.
///
/// Names stand at the left above `left_above_ns`, at the right below.
fn limits(uses: &[&UseVerdict], left_above_ns: i64, x: Axis, y: Axis) -> (String, String) {
    let height = |limit_ns: i64| y.at(svg::decades(limit_ns as f64, y.lo));
    let mut shown: Vec<&UseVerdict> = uses.to_vec();
    shown.retain(|u| u.limit_ns > 0 && (y.lo..=y.hi).contains(&(u.limit_ns as f64).log10()));
    shown.sort_by_key(|u| u.limit_ns);
    let (mut rules, mut names) = (String::new(), String::new());
    for group in shown.chunk_by(|a, b| (height(a.limit_ns) - height(b.limit_ns)).abs() < 14.0) {
        let [others @ .., highest] = group else { continue };
        for one in group {
            let at = number(height(one.limit_ns));
            let _ = write!(rules, "<path class=\"limit\" d=\"M{} {at}H{}\"/>", number(x.from), number(x.to));
        }
        let more = if others.is_empty() { String::new() } else { format!(" and {} below", others.len()) };
        let at_left = highest.limit_ns > left_above_ns;
        let (anchor, at) = if at_left { ("start", x.from + 6.0) } else { ("end", x.to - 6.0) };
        let _ = write!(
            names,
            "<text class=\"limit\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">limit {}: {}{more}</text>",
            number(at),
            number(height(highest.limit_ns) - 4.0),
            format_ns(highest.limit_ns),
            svg::escape(short(&highest.title))
        );
    }
    (rules, names)
}

fn table(lines: &[Line]) -> Table {
    let mut head = vec!["series"];
    head.extend(Summary::default().percentiles().map(|(name, _)| name));
    head.extend(["max", "deadlines"]);
    let caption =
        "Lateness that a share of the deadlines did not exceed (corrected); a dash where there are too few of them";
    Table::of_series(caption, &head, lines, |line| {
        let figures = Summary::of(line.series);
        let times = figures.percentiles().into_iter().map(|(_, value_ns)| value_ns).chain([figures.max_ns]);
        let mut cells: Vec<String> = times.map(|ns| ns.map_or_else(|| "-".to_owned(), format_ns)).collect();
        cells.push(text::grouped(line.series.corrected.total()));
        cells
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_reads_as_the_percentiles_do() {
        let mut h = Histogram::default();
        (1..=1000).for_each(|v| h.record(v));
        let steps = steps(&h, 0.01);
        for percent in [50.0, 90.0, 99.0, 99.8] {
            let nines = -(1.0f64 - percent / 100.0).log10();
            let read = steps.iter().take_while(|(at, _)| *at <= nines + 1e-9).last().unwrap().1;
            assert!((h.percentile(percent).unwrap() - read).abs() <= 12, "{percent}: {read}");
        }
        assert_eq!(steps.last(), Some(&(3.0, 1000)));
    }

    #[test]
    fn the_largest_value_is_the_end_of_the_curve() {
        for values in [vec![7], vec![-3, -3, 9], vec![1; 50]] {
            let mut h = Histogram::default();
            values.iter().for_each(|&v| h.record(v));
            assert_eq!(steps(&h, 0.02).last().map(|s| s.1), values.iter().copied().max());
        }
    }

    #[test]
    fn labels_of_many_nines_have_room() {
        let axis = Axis { lo: 0.0, hi: 12.0, from: svg::LEFT, to: svg::RIGHT };
        let ticks = percent_ticks(axis);
        assert_eq!(ticks.len(), 14);
        let named: Vec<_> = ticks.iter().filter(|tick| !tick.label.is_empty()).collect();
        assert!(named.len() > 5);
        for pair in named.windows(2) {
            let room = axis.at(pair[1].at) - axis.at(pair[0].at);
            assert!(room > 3.4 * (pair[0].label.len() + pair[1].label.len()) as f64, "{pair:?}");
        }
    }

    #[test]
    fn limits_too_near_share_a_name() {
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
