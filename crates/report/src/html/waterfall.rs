//! A spike as a chart: one bar and row per part of its time line, from before the deadline to the wake-up.

use std::{borrow::Cow, fmt::Write};

use analysis::{
    float::{to_i64, to_usize},
    format_ns,
};
use record::Cause;

use super::{
    colours::Colours,
    figure::{Row, Table},
    svg::{self, Axis, Frame, Tick, number},
    text,
};
use crate::blame::{Ranked, in_short, percent_in_column, unsigned};
use crate::timeline::{Part, Unit, drawn_from_ns, parts};
use crate::words::Words;

/// The largest number of rows; with more parts, neighbouring short ones share a row.
const ROWS: usize = 24;
const ROW: f64 = 24.0;
/// Approximate width of a letter.
const LETTER: f64 = 6.3;

/// The chart of a spike with its table.
pub struct Waterfall {
    /// The drawing: trusted SVG.
    pub svg: String,
    /// The same figures as a table.
    pub table: Table,
}

/// One row: a part of the time line, or several short ones.
struct Bar<'a> {
    start_ns: i64,
    end_ns: i64,
    /// `None` for several parts.
    cause: Option<&'a Cause>,
    /// The short name.
    label: Cow<'a, str>,
    /// The full name.
    name: String,
}

/// Draws the time line of a spike.
pub fn draw(ranked: Ranked, colours: &Colours) -> Waterfall {
    let spike = ranked.spike;
    let parts = parts(spike);
    let bars = rows(&parts);
    let late_ns = spike.lateness_ns.unsigned_abs();
    let bottom = svg::TOP + bars.len().max(1) as f64 * ROW;
    let first_ns = drawn_from_ns(&parts, spike.lateness_ns);
    let x = Axis { lo: first_ns as f64, hi: (late_ns as f64).max(1.0), from: svg::LEFT, to: svg::FAR_RIGHT };
    let y = Axis { lo: 0.0, hi: bars.len().max(1) as f64, from: bottom, to: svg::TOP };

    let words = Words::of_series(ranked.series);
    let mut body = marks(x, bottom, words);
    for (n, bar) in bars.iter().enumerate() {
        let top = svg::TOP + n as f64 * ROW + 4.0;
        let before = bar.end_ns <= 0;
        let share = if before { String::new() } else { percent_in_column(bar.end_ns.abs_diff(bar.start_ns), late_ns) };
        let class = bar.cause.map_or_else(|| "h6".to_owned(), |cause| colours.class(cause));
        let (from, to) = (x.at(bar.start_ns as f64), x.at(bar.end_ns as f64).max(x.at(bar.start_ns as f64) + 1.0));
        let heading = match before {
            true => format!("before the {}", words.start),
            false => {
                format!("{} to {} after the {}, {share}", format_ns(bar.start_ns), format_ns(bar.end_ns), words.start)
            }
        };
        let _ = write!(
            body,
            "<path class=\"stretch {class}{}\" data-n=\"{}\" data-h=\"{heading}\" data-p=\"{}:{}\" d=\"M{} {}H{}V{}H{}z\"/>",
            if before { " before" } else { "" },
            text::escape(&bar.name),
            bar.start_ns,
            bar.end_ns.abs_diff(bar.start_ns),
            number(from),
            number(top),
            number(to),
            number(top + ROW - 8.0),
            number(from),
        );
        let text = if before { bar.label.to_string() } else { format!("{share}  {}", bar.label) };
        label(&mut body, &text, (from, to), x, top + 12.0, before);
    }
    let length = |bar: &Bar| unsigned(bar.end_ns.abs_diff(bar.start_ns));
    let lengths =
        bars.iter().enumerate().map(|(n, bar)| Tick { at: (bars.len() - n) as f64 - 0.5, label: length(bar) });
    let id = format!("spike-{}", ranked.number);
    let svg = Frame {
        id: &id,
        title: &format!("Time line of {} {}", words.spike, ranked.number),
        summary: &format!(
            "Causes on the CPU, one bar per part of the time line, from shortly before the {}. The table below contains \
             the figures.",
            words.start
        ),
        height: bottom + 50.0,
        x: (x, ticks(x), &format!("time after the {}", words.start)),
        y: (y, lengths.collect(), "length"),
        data: "data-stretches",
    }
    .draw(&body);
    Waterfall { svg, table: table(&bars, Unit::of(spike.lateness_ns), late_ns, words) }
}

/// One row per part; if there are too many, neighbouring short ones share a row.
fn rows<'a>(parts: &[Part<'a>]) -> Vec<Bar<'a>> {
    let mut lengths: Vec<u64> = parts.iter().map(Part::length_ns).collect();
    lengths.sort_unstable_by_key(|&ns| std::cmp::Reverse(ns));
    // Each long part can separate two rows of short ones.
    let short_ns = if parts.len() > ROWS { lengths[ROWS / 2] } else { 0 };
    let mut bars: Vec<Bar> = Vec::new();
    let mut together = 0;
    for part in parts {
        let short = part.length_ns() <= short_ns && parts.len() > ROWS && !part.is_before();
        if short && together > 0 {
            together += 1;
            if let Some(bar) = bars.last_mut() {
                (bar.end_ns, bar.cause) = (part.end_ns, None);
                bar.name = format!("{together} short stretches");
                bar.label = Cow::Owned(bar.name.clone());
            }
            continue;
        }
        together = usize::from(short);
        bars.push(Bar {
            start_ns: part.start_ns,
            end_ns: part.end_ns,
            cause: Some(part.cause),
            label: Cow::Owned(in_short(part.cause)),
            name: part.cause.in_full(),
        });
    }
    bars
}

/// Draws the deadline and the wake-up.
fn marks(x: Axis, bottom: f64, words: &Words) -> String {
    let (start, end) = words.marks;
    let (at, top) = (x.at(0.0), number(svg::TOP - 4.0));
    let text = |at: f64, anchor: &str, text: &str| {
        format!(
            "<text class=\"phase\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{text}</text>",
            number(at),
            number(svg::TOP - 9.0)
        )
    };
    format!(
        "<path class=\"edge\" d=\"M{0} {top}V{1}M{2} {top}V{1}\"/>{3}{4}",
        number(at),
        number(bottom),
        number(x.to),
        text(at.max(svg::LEFT + 2.0), "start", start.trim_matches('|')),
        text(x.to, "end", end.trim_matches('|')),
    )
}

/// Draws the label of a bar: right of it, in it or left of it, wherever it fits.
fn label(out: &mut String, text: &str, (from, to): (f64, f64), x: Axis, y: f64, before: bool) {
    let wanted = text.chars().count() as f64 * LETTER;
    let places = [
        (x.to - to - 8.0, to + 6.0, "start", ""),
        (to - from - 12.0, from + 6.0, "start", " in"),
        (from - x.from - 8.0, from - 6.0, "end", ""),
    ];
    let widest = || places.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or(places[0]);
    let (space, at, anchor, class) = places.into_iter().find(|place| place.0 >= wanted).unwrap_or_else(widest);
    let letters = to_usize(space.max(0.0) / LETTER);
    let shown: Cow<str> = if wanted <= space {
        text.into()
    } else {
        text.chars().take(letters.saturating_sub(1)).chain(['…']).collect::<String>().into()
    };
    let quiet = if before { " before" } else { "" };
    let _ = write!(
        out,
        "<text class=\"what{class}{quiet}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
        number(at),
        number(y),
        text::escape(&shown)
    );
}

/// Marks at 1-2-5 steps, including the deadline.
fn ticks(x: Axis) -> Vec<Tick> {
    let step = 10f64.powf(svg::step_above((x.hi - x.lo) / 9.0));
    let first = to_i64((x.lo / step).ceil());
    let at = |n: i64| n as f64 * step;
    let label = |ns: f64| if ns == 0.0 { "0".to_owned() } else { format_ns(to_i64(ns.round())) };
    (first..first + 12).take_while(|&n| at(n) <= x.hi).map(|n| Tick { at: at(n), label: label(at(n)) }).collect()
}

fn table(bars: &[Bar], unit: Unit, late_ns: u64, words: &Words) -> Table {
    let row = |bar: &Bar| {
        let share = if bar.end_ns <= 0 {
            "-".to_owned()
        } else {
            percent_in_column(bar.end_ns.abs_diff(bar.start_ns), late_ns)
        };
        let cells = vec![bar.name.clone(), unit.show(bar.start_ns), unit.length(bar.start_ns, bar.end_ns), share];
        Row { swatch: String::new(), cells }
    };
    let after = |bar: &&Bar| bar.end_ns > 0;
    let sum_ns: u64 =
        bars.iter().filter(after).fold(0, |sum, bar| bar.end_ns.abs_diff(bar.start_ns).saturating_add(sum));
    let length = unit.length(0, i64::try_from(sum_ns).unwrap_or(i64::MAX));
    let sum = Row {
        swatch: String::new(),
        cells: vec![format!("after the {}", words.start), String::new(), length, percent_in_column(sum_ns, late_ns)],
    };
    Table {
        caption: "Causes on the CPU and their durations".to_owned(),
        head: [
            "cause".to_owned(),
            format!("start, {}", unit.name),
            format!("length, {}", unit.name),
            "share".to_owned(),
        ]
        .into(),
        rows: bars.iter().map(row).chain([sum]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{CauseKind, Spike, Stretch};

    #[test]
    fn a_long_time_line_has_few_rows_without_gaps() {
        let stretch = |n: i64| Stretch {
            start_ns: n * 1000,
            ns: 1000 + if n % 40 == 7 { 90_000 } else { 0 },
            cause: Cause::new(CauseKind::Interrupt, format!("nic{}", n % 3)),
        };
        let mut timeline = Vec::new();
        let mut at_ns = 0;
        for n in 0..400 {
            let stretch = Stretch { start_ns: at_ns, ..stretch(n) };
            at_ns += stretch.ns.cast_signed();
            timeline.push(stretch);
        }
        let spike = Spike { lateness_ns: at_ns, timeline, ..Spike::default() };
        let all = parts(&spike);
        let bars = rows(&all);
        assert!(bars.len() <= 2 * ROWS, "{} rows", bars.len());
        assert!(bars.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns), "no gap");
        assert_eq!(bars.last().map(|bar| bar.end_ns), Some(at_ns));
        assert!(bars.iter().any(|bar| bar.name.ends_with(" short stretches")));
    }

    #[test]
    fn ticks_are_round_and_include_the_deadline() {
        let axis = |lo, hi| Axis { lo, hi, from: 0.0, to: 1.0 };
        let labels = |lo, hi| ticks(axis(lo, hi)).into_iter().map(|tick| tick.label).collect::<Vec<_>>();
        assert_eq!(
            labels(-12_000.0, 412_000.0),
            ["0", "50 us", "100 us", "150 us", "200 us", "250 us", "300 us", "350 us", "400 us"]
        );
        assert_eq!(labels(-30.0, 60.0)[..4], ["-30 ns", "-20 ns", "-10 ns", "0"]);
        assert!(ticks(axis(-9e18, 9e18)).len() <= 12);
    }
}
