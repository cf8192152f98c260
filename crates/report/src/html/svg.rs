//! Scales, ticks, paths and the frame of every chart. Coordinates are SVG user units.

use std::fmt::Write;

use analysis::float::to_i32;

use super::text::{self, escape};

/// Width of every chart.
pub const WIDTH: f64 = 960.0;
/// Left end of the plotting area.
pub const LEFT: f64 = 76.0;
/// Right end of the plotting area.
pub const FAR_RIGHT: f64 = 948.0;
/// Right end of the plotting area of charts with line names to its right.
pub const RIGHT: f64 = 790.0;
/// Upper end of the plotting area.
pub const TOP: f64 = 24.0;
/// Height of the letters on a narrow screen, where charts shrink to its width, as in the style sheet.
pub const LARGE: f64 = 22.0;

/// A linear map from axis units to SVG units. The axis units (ns, decades, nines) depend on the chart.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// First value shown.
    pub lo: f64,
    /// Last value shown; above `lo`.
    pub hi: f64,
    /// Position of `lo`.
    pub from: f64,
    /// Position of `hi`.
    pub to: f64,
}

impl Axis {
    /// The position of `value`. Values outside the axis are drawn at its ends.
    pub fn at(&self, value: f64) -> f64 {
        let share = ((value - self.lo) / (self.hi - self.lo)).clamp(0.0, 1.0);
        self.from + share * (self.to - self.from)
    }

    /// The four numbers that the script needs to convert positions back to values.
    pub fn data(&self) -> String {
        format!("{} {} {} {}", self.lo, self.hi, number(self.from), number(self.to))
    }
}

/// A mark on an axis; minor marks have an empty label.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Position, in axis units.
    pub at: f64,
    /// The label.
    pub label: String,
}

/// `log10` of a quantity, at least `floor`; also `floor` for values of 0 or less.
pub fn decades(value: f64, floor: f64) -> f64 {
    if value > 0.0 { value.log10().max(floor) } else { floor }
}

/// The 1-2-5 step at or below `value`, as a power of ten.
pub fn step_below(value: f64) -> f64 {
    let decade = value.log10().floor();
    [5.0, 2.0, 1.0].map(|m: f64| decade + m.log10()).into_iter().find(|s| *s <= value.log10() + 1e-9).unwrap_or(decade)
}

/// The 1-2-5 step at or above `value`, as a power of ten.
pub fn step_above(value: f64) -> f64 {
    let decade = value.log10().floor();
    [1.0, 2.0, 5.0, 10.0]
        .map(|m: f64| decade + m.log10())
        .into_iter()
        .find(|s| *s >= value.log10() - 1e-9)
        .unwrap_or(decade + 1.0)
}

/// Marks at 1, 2 and 5 of every decade. Only decades are labelled when there are more than two of them.
pub fn log_ticks(lo: f64, hi: f64, label: impl Fn(f64) -> String) -> Vec<Tick> {
    let every = (hi - lo) <= 2.01;
    let mut ticks = Vec::new();
    for decade in to_i32(lo.floor())..=to_i32(hi.ceil()) {
        for multiple in [1.0f64, 2.0, 5.0] {
            let at = f64::from(decade) + multiple.log10();
            if at < lo - 1e-9 || at > hi + 1e-9 {
                continue;
            }
            let labelled = every || multiple == 1.0;
            ticks.push(Tick { at, label: if labelled { label(10f64.powi(decade) * multiple) } else { String::new() } });
        }
    }
    ticks
}

/// A lateness axis in decades of ns that includes `values_ns`. It spans at least a decade and ends at 1-2-5 steps.
pub fn lateness_axis(values_ns: impl Iterator<Item = i64>, least_ns: f64, from: f64, to: f64) -> Axis {
    let (mut lo, mut hi) = (f64::MAX, 0f64);
    for value in values_ns.filter(|&v| v > 0).map(|v| v as f64) {
        (lo, hi) = (lo.min(value), hi.max(value));
    }
    if hi == 0.0 {
        (lo, hi) = (1e3, 1e5);
    }
    let lo = step_below(lo.max(least_ns));
    Axis { lo, hi: step_above(hi.max(least_ns)).max(lo + 1.0), from, to }
}

/// Marks on a time axis in seconds: 1-2-5 steps, then common steps of minutes, hours and days.
pub fn time_ticks(hi_s: f64) -> Vec<Tick> {
    const STEPS: [f64; 22] = [
        0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
        1800.0, 3600.0, 7200.0, 21600.0,
    ];
    let days = |n: f64| 86400.0 * 10f64.powf(step_above(n / 86400.0));
    let least = (hi_s / 9.0).max(f64::MIN_POSITIVE);
    let step = STEPS.into_iter().find(|s| *s >= least).unwrap_or_else(|| days(least.max(86400.0)));
    (0..=9)
        .map(|i| f64::from(i) * step)
        .take_while(|at| *at <= hi_s * 1.0001)
        .map(|at| Tick { at, label: text::clock(at) })
        .collect()
}

/// A path under construction; coordinates are rounded to a tenth.
#[derive(Debug, Clone, Default)]
pub struct Path(String);

impl Path {
    /// Starts a new stroke.
    pub fn move_to(&mut self, x: f64, y: f64) -> &mut Self {
        let _ = write!(self.0, "M{} {}", number(x), number(y));
        self
    }

    /// Draws a horizontal line.
    pub fn across(&mut self, x: f64) -> &mut Self {
        let _ = write!(self.0, "H{}", number(x));
        self
    }

    /// Draws a vertical line.
    pub fn up_or_down(&mut self, y: f64) -> &mut Self {
        let _ = write!(self.0, "V{}", number(y));
        self
    }

    /// Appends path commands unchanged.
    pub fn raw(&mut self, commands: &str) -> &mut Self {
        self.0.push_str(commands);
        self
    }

    /// True if nothing is drawn.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The `d` attribute.
    pub fn d(&self) -> &str {
        &self.0
    }
}

/// A number rounded to a tenth, without trailing zeros.
pub fn number(value: f64) -> String {
    let mut out = format!("{value:.1}");
    if out.ends_with(".0") {
        out.truncate(out.len() - 2);
    }
    if out == "-0" { "0".to_owned() } else { out }
}

/// The frame of a chart: axes with marks and titles.
pub struct Frame<'a> {
    /// The `id` of the figure and prefix of its title's id.
    pub id: &'a str,
    /// The name of the chart, for screen readers.
    pub title: &'a str,
    /// The content of the chart, for screen readers.
    pub summary: &'a str,
    /// Height of the drawing.
    pub height: f64,
    /// Horizontal axis, its marks, and its title.
    pub x: (Axis, Vec<Tick>, &'a str),
    /// Vertical axis, its marks, and its title.
    pub y: (Axis, Vec<Tick>, &'a str),
    /// Further attributes for the script: trusted text.
    pub data: &'a str,
}

impl Frame<'_> {
    /// Draws the frame around `body`.
    pub fn draw(&self, body: &str) -> String {
        let (id, title, summary) = (self.id, escape(self.title), escape(self.summary));
        let mut out = format!(
            "<svg class=\"chart{}\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" \
             data-chart=\"{id}\" data-x=\"{}\" data-y=\"{}\" {}>\
             <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{summary}</desc>",
            // A narrow screen does not show the margin for names.
            if self.x.0.to == RIGHT { " named" } else { "" },
            self.height,
            self.x.0.data(),
            self.y.0.data(),
            self.data
        );
        self.horizontal_lines(&mut out);
        self.vertical_lines(&mut out);
        out.push_str(body);
        out.push_str("</svg>");
        out
    }

    fn horizontal_lines(&self, out: &mut String) {
        let (axis, ticks, title) = &self.y;
        let (x0, x1) = (number(LEFT), number(self.x.0.to));
        let mut minor = Path::default();
        for tick in ticks {
            let y = axis.at(tick.at);
            if tick.label.is_empty() {
                minor.move_to(LEFT - 3.0, y).across(LEFT);
                continue;
            }
            let (line, base) = (number(y), number(y + 4.0));
            let _ = write!(out, "<path class=\"grid\" d=\"M{x0} {line}H{x1}\"/>");
            let _ = write!(
                out,
                "<text class=\"tick\" x=\"{}\" y=\"{base}\" text-anchor=\"end\">{}</text>",
                number(LEFT - 8.0),
                escape(&tick.label)
            );
        }
        let _ = write!(out, "<path class=\"axis\" d=\"{}\"/>", minor.d());
        let _ = write!(out, "<text class=\"title\" x=\"0\" y=\"{}\">{}</text>", number(TOP - 13.0), escape(title));
    }

    fn vertical_lines(&self, out: &mut String) {
        let (axis, ticks, title) = &self.x;
        let (top, bottom) = (self.y.0.to, self.y.0.from);
        let mut marks = Path::default();
        marks.move_to(axis.from, bottom).across(axis.to);
        // The end of the labels in large letters. Left of the axis there can be further columns with labels.
        let mut taken = if axis.from > LEFT { axis.from } else { f64::MIN };
        for tick in ticks {
            let x = axis.at(tick.at);
            if tick.label.is_empty() {
                marks.move_to(x, bottom).up_or_down(bottom + 3.0);
                continue;
            }
            marks.move_to(x, bottom).up_or_down(bottom + 6.0);
            let half = tick.label.chars().count() as f64 * LARGE * 0.28;
            let is_dense = x - half < taken || x + half > axis.to + 12.0;
            let class = if is_dense { "tick dense" } else { "tick" };
            taken = if is_dense { taken } else { x + half + 8.0 };
            let x = number(x);
            let _ = write!(out, "<path class=\"grid\" d=\"M{x} {}V{}\"/>", number(top), number(bottom));
            let (y, label) = (number(bottom + 20.0), escape(&tick.label));
            let _ = write!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>");
        }
        let _ = write!(out, "<path class=\"axis\" d=\"{}\"/>", marks.d());
        let (x, y) = (number((axis.from + axis.to) / 2.0), number(bottom + 42.0));
        let _ =
            write!(out, "<text class=\"title\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{}</text>", escape(title));
    }
}

/// Moves labels apart that want the positions `wanted`, so that neighbours are at least `gap` apart, within `lo..hi` as
/// long as they fit. Keeps their order.
pub fn spread(wanted: &[f64], gap: f64, lo: f64, hi: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut placed = vec![0.0; wanted.len()];
    let mut next = lo;
    for &i in &order {
        placed[i] = wanted[i].max(next);
        next = placed[i] + gap;
    }
    let mut last = hi;
    for &i in order.iter().rev() {
        placed[i] = placed[i].min(last);
        last = placed[i] - gap;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_maps_its_ends_and_clamps_other_values() {
        let axis = Axis { lo: 2.0, hi: 6.0, from: 100.0, to: 500.0 };
        assert_eq!([1.0, 2.0, 4.0, 6.0, 9.0].map(|v| axis.at(v)), [100.0, 100.0, 300.0, 500.0, 500.0]);
        let down = Axis { lo: 0.0, hi: 1.0, from: 300.0, to: 20.0 };
        assert_eq!(down.at(0.5), 160.0);
    }

    #[test]
    fn steps_are_1_2_5() {
        for (value, below, above) in
            [(100.0, 100.0, 100.0), (130.0, 100.0, 200.0), (499.0, 200.0, 500.0), (7e9, 5e9, 1e10)]
        {
            assert!((10f64.powf(step_below(value)) / below - 1.0).abs() < 1e-6, "{value}");
            assert!((10f64.powf(step_above(value)) / above - 1.0).abs() < 1e-6, "{value}");
        }
    }

    #[test]
    fn a_long_axis_labels_only_decades() {
        let named = |lo, hi| {
            log_ticks(lo, hi, text::tick_ns).into_iter().map(|t| t.label).filter(|l| !l.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(named(2.0, 7.0), ["100 ns", "1 us", "10 us", "100 us", "1 ms", "10 ms"]);
        assert_eq!(named(3.0, 4.0), ["1 us", "2 us", "5 us", "10 us"]);
    }

    #[test]
    fn a_lateness_axis_is_never_empty() {
        for values in [vec![], vec![-5, 0], vec![1], vec![i64::MAX], vec![100, 3_600_000_000_000]] {
            let axis = lateness_axis(values.iter().copied(), 100.0, 0.0, 1.0);
            assert!(axis.hi >= axis.lo + 1.0 && axis.lo.is_finite() && axis.hi < 20.0, "{values:?}: {axis:?}");
            assert!(values.iter().all(|&v| v <= 100 || (v as f64).log10() <= axis.hi + 1e-9), "{values:?}: {axis:?}");
        }
    }

    #[test]
    fn time_ticks_are_few_and_round() {
        let labels = |s| time_ticks(s).into_iter().map(|t| t.label).collect::<Vec<_>>();
        assert_eq!(labels(30.0), ["0", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]);
        assert_eq!(labels(600.0), ["0", "2 min", "4 min", "6 min", "8 min", "10 min"]);
        assert_eq!(labels(600_000.0), ["0", "1 d", "2 d", "3 d", "4 d", "5 d", "6 d"]);
        for s in [0.0, 1e-9, 0.5, 100.0, 86_400.0, 3e7, 1e12] {
            assert!((1..=10).contains(&time_ticks(s).len()), "{s}");
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([1.0, 1.04, 1.25, -0.01, 300.96].map(number), ["1", "1", "1.2", "0", "301"]);
    }

    #[test]
    fn spread_labels_keep_their_order() {
        assert_eq!(spread(&[50.0, 52.0, 51.0], 10.0, 0.0, 100.0), [50.0, 70.0, 60.0]);
        assert_eq!(spread(&[99.0, 98.0], 10.0, 0.0, 100.0), [100.0, 90.0]);
        assert!(spread(&[], 10.0, 0.0, 100.0).is_empty());
    }
}
