//! Histograms drawn with characters: lateness from left to right, counts upwards, both on logarithmic scales.

use analysis::{
    float::{to_i64, to_usize},
    format_ns,
};
use record::{Histogram, grouped};

/// A cell filled in eighths.
const BLOCKS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// The same in ASCII.
const ASCII: [&str; 9] = [" ", ".", ".", ".", ":", ":", ":", "#", "#"];

/// Smaller values are drawn in the first column.
const SMALLEST_NS: i64 = 10;

/// The range of a drawing: 10^first to 10^last ns. Drawings to compare share one scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    first: u32,
    last: u32,
}

impl Scale {
    /// The whole decades, at least two, that include all values of 0 or more; `None` without such values.
    ///
    /// Whole decades rarely change while a run is in progress.
    pub(crate) fn of<'a>(histograms: impl IntoIterator<Item = &'a Histogram>) -> Option<Self> {
        let ends = histograms.into_iter().filter_map(|h| {
            let smallest = h.iter().map(|(value_ns, _)| value_ns).find(|&value_ns| value_ns >= 0)?;
            Some((smallest, h.iter().next_back()?.0))
        });
        let (low, high) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        let first = low.max(SMALLEST_NS).ilog10();
        Some(Self { first, last: (high.max(SMALLEST_NS).ilog10() + 1).max(first + 2) })
    }

    /// The upper end of each of `width` columns, ns.
    fn edges(self, width: usize) -> Vec<i64> {
        let (first, span) = (f64::from(self.first), f64::from(self.last - self.first));
        (1..=width).map(|n| to_i64(10f64.powf(first + span * n as f64 / width as f64).round())).collect()
    }
}

/// Counts per column of a drawing.
pub(crate) struct Bars {
    counts: Vec<u64>,
    scale: Scale,
    /// Wake-ups before their deadline, which a logarithmic scale cannot show.
    pub(crate) early: u64,
}

impl Bars {
    /// The sum of `histograms` in `width` columns, at least 1.
    pub(crate) fn of<'a>(histograms: impl IntoIterator<Item = &'a Histogram>, scale: Scale, width: usize) -> Self {
        let edges = scale.edges(width.max(1));
        let mut bars = Self { counts: vec![0; edges.len()], scale, early: 0 };
        for histogram in histograms {
            let mut column = 0;
            for (value_ns, count) in histogram.iter() {
                if value_ns < 0 {
                    bars.early += count;
                    continue;
                }
                while column + 1 < edges.len() && value_ns >= edges[column] {
                    column += 1;
                }
                bars.counts[column] += count;
            }
        }
        bars
    }

    /// The largest count of a column, i.e. the count of the highest bar.
    pub(crate) fn tallest(&self) -> u64 {
        self.counts.iter().copied().max().unwrap_or(0)
    }

    /// The drawing, top row first. Even a single wake-up is visible.
    pub(crate) fn rows(&self, height: usize, unicode: bool) -> Vec<String> {
        let cells = if unicode { &BLOCKS } else { &ASCII };
        let full = (height * 8) as f64;
        let scale = (self.tallest().max(2) as f64).ln();
        let eighths = |count: u64| match count {
            0 => 0,
            _ => to_usize((1.0 + (full - 1.0) * (count as f64).ln() / scale).round()),
        };
        let levels: Vec<usize> = self.counts.iter().map(|&count| eighths(count)).collect();
        let row = |above: usize| {
            let cells: String = levels.iter().map(|&level| cells[level.saturating_sub(above * 8).min(8)]).collect();
            cells.trim_end().to_owned()
        };
        (0..height).rev().map(row).collect()
    }

    /// The line below the drawing: a tick and the time at each decade, if they fit.
    pub(crate) fn axis(&self, unicode: bool) -> String {
        let tick = if unicode { "╵" } else { "|" };
        let Scale { first, last } = self.scale;
        let width = self.counts.len();
        let (mut line, mut used) = (String::new(), 0);
        for decade in first..last {
            let column = (decade - first) as usize * width / (last - first) as usize;
            let label = format_ns(10i64.saturating_pow(decade));
            let ends = column + 1 + label.len();
            if (column > used || line.is_empty()) && ends <= width {
                line += &format!("{}{tick}{label}", " ".repeat(column - used));
                used = ends;
            }
        }
        line
    }
}

/// A count with at most 5 characters: `9,999`, `12.3k`, `4.56M`.
pub(crate) fn short_count(count: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let value = count as f64 / unit as f64;
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        format!("{value:.decimals$}{name}")
    };
    match count {
        0..10_000 => grouped(count),
        10_000..999_500 => scaled(1_000, "k"),
        999_500..999_500_000 => scaled(1_000_000, "M"),
        _ => scaled(1_000_000_000, "G"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(histograms: &[&Histogram], width: usize) -> Option<Bars> {
        let all = || histograms.iter().copied();
        Some(Bars::of(all(), Scale::of(all())?, width))
    }

    fn example() -> Histogram {
        let mut h = Histogram::default();
        for (value_ns, count) in [(-700, 3), (1_100, 40), (2_000, 9_000), (4_000, 700), (15_000, 12), (870_000, 1)] {
            h.add(value_ns, count);
        }
        h
    }

    #[test]
    fn draws_every_wake_up_and_single_ones_visibly() {
        let h = example();
        let twice = bars(&[&h, &h], 30).unwrap();
        assert_eq!(twice.counts.iter().sum::<u64>() + twice.early, 2 * h.total());
        assert_eq!(twice.early, 6);
        let alone = bars(&[&h], 30).unwrap();
        let draw = |height, unicode| {
            let lines = alone.rows(height, unicode).into_iter().chain([alone.axis(unicode)]);
            lines.collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(draw(4, true), @"
           █
           █  ▇
        ▆  █  █    ▁
        █  █  █    █                 ▁
        ╵1 us     ╵10 us    ╵100 us
        ");
        insta::assert_snapshot!(draw(2, false), @"
           #  :
        #  #  #    :                 .
        |1 us     |10 us    |100 us
        ");
    }

    #[test]
    fn draws_nothing_without_values() {
        let mut early = Histogram::default();
        early.record(-5);
        assert!(bars(&[], 10).is_none());
        assert!(bars(&[&Histogram::default(), &early], 10).is_none());
    }

    #[test]
    fn accepts_any_width_and_value() {
        let mut h = Histogram::default();
        [0, 1, i64::MAX].into_iter().for_each(|value_ns| h.record(value_ns));
        for width in 0..40 {
            let bars = bars(&[&h], width).unwrap();
            assert!(textwrap::core::display_width(&bars.axis(true)) <= width.max(1));
            assert_eq!(bars.counts.iter().sum::<u64>(), 3);
        }
    }

    #[test]
    fn short_counts_fit_five_characters() {
        for (count, text) in [(0, "0"), (9_999, "9,999"), (12_340, "12.3k"), (999_499, "999k"), (4_560_000, "4.56M")] {
            assert_eq!(short_count(count), text);
        }
        assert!(short_count(999_499_999).len() <= 5);
    }
}
