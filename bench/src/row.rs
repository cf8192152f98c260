//! One row of the table: a figure of both programs, their ratio, and the target.

use serde::Serialize;

use crate::{
    rounds::Pair,
    statistics::{Spread, ratio},
};

/// One row of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Name of the figure.
    pub name: &'static str,
    /// Unit of the figures; JSON contains ns and bytes.
    pub unit: Unit,
    /// punctual's figures.
    pub punctual: Option<Spread>,
    /// cyclictest's figures, or those of another program; absent if punctual has a limit of its own.
    pub cyclictest: Option<Spread>,
    /// punctual / other program, for each pair of runs.
    pub ratio: Option<Spread>,
    /// Upper limit for the median of the ratio, or of punctual's figure if there is no ratio.
    pub target: Option<f64>,
    /// A remark printed below the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Nanoseconds, shown as such because the figures are small.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A fraction of 1.
    Share,
    /// A plain number.
    Count,
}

/// Result of the comparison with the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Met {
    /// True if the median meets the target.
    pub met: bool,
    /// True if the 95 % interval of the median is on one side of the target. Otherwise more rounds are needed.
    pub certain: bool,
}

impl Row {
    /// A figure of both programs, with one pair a round.
    pub fn compared(name: &'static str, unit: Unit, pairs: impl IntoIterator<Item = Pair<f64, f64>>) -> Self {
        let pairs: Vec<_> = pairs.into_iter().collect();
        Self {
            name,
            unit,
            punctual: Spread::of(pairs.iter().map(|pair| pair.own)),
            cyclictest: Spread::of(pairs.iter().map(|pair| pair.peer)),
            ratio: Spread::of(pairs.iter().map(|pair| ratio(pair.own, pair.peer))),
            target: None,
            remark: None,
        }
    }

    /// A figure of punctual with a limit of its own.
    pub fn alone(name: &'static str, unit: Unit, figures: impl IntoIterator<Item = f64>, limit: f64) -> Self {
        Self {
            name,
            unit,
            punctual: Spread::of(figures),
            cyclictest: None,
            ratio: None,
            target: Some(limit),
            remark: None,
        }
    }

    /// Sets the upper limit for the ratio.
    pub fn with_target(self, limit: f64) -> Self {
        Self { target: Some(limit), ..self }
    }

    /// Sets the remark.
    pub fn with_remark(self, remark: String) -> Self {
        Self { remark: Some(remark), ..self }
    }

    /// The figure that is compared with the target.
    pub fn judged(&self) -> Option<Spread> {
        self.ratio.or(self.punctual)
    }

    /// Compares with the target; `None` if there is none.
    pub fn met(&self) -> Option<Met> {
        let (target, judged) = (self.target?, self.judged()?);
        Some(Met { met: judged.median <= target, certain: judged.median_high <= target || judged.median_low > target })
    }
}

impl Unit {
    /// Formats a figure in this unit.
    pub fn show(self, figure: f64) -> String {
        match self {
            Self::Time if figure < 1e6 => format!("{:.2} us", figure / 1e3),
            Self::Time => format!("{:.2} ms", figure / 1e6),
            Self::Nanoseconds => format!("{figure:.1} ns"),
            Self::Bytes => format!("{:.2} MiB", figure / 1_048_576.0),
            Self::Share => format!("{:.2} %", figure * 100.0),
            Self::Count => format!("{figure:.1}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratios: &[f64]) -> Row {
        let pairs = ratios.iter().map(|&own| Pair { own, peer: 1.0 });
        Row::compared("row", Unit::Count, pairs).with_target(1.0)
    }

    #[test]
    fn the_median_meets_the_target_and_its_interval_is_certain() {
        let met = |ratios: &[f64]| row(ratios).met().unwrap();
        assert_eq!(met(&[0.8, 0.9, 0.9]), Met { met: true, certain: true });
        assert_eq!(met(&[0.8, 0.9, 1.1]), Met { met: true, certain: false });
        assert_eq!(met(&[0.9, 1.1, 1.2]), Met { met: false, certain: false });
        assert_eq!(met(&[1.1, 1.1, 1.2]), Met { met: false, certain: true });
    }

    #[test]
    fn compares_a_figure_with_its_own_limit() {
        let row = Row::alone("size", Unit::Bytes, [11.0], 10.0);
        assert_eq!(row.met(), Some(Met { met: false, certain: true }));
    }

    #[test]
    fn formats_figures_with_their_unit() {
        assert_eq!(Unit::Time.show(19_432.0), "19.43 us");
        assert_eq!(Unit::Time.show(7.5e6), "7.50 ms");
        assert_eq!(Unit::Bytes.show(4_718_592.0), "4.50 MiB");
        assert_eq!(Unit::Share.show(0.0512), "5.12 %");
        assert_eq!(Unit::Count.show(174.71), "174.7");
    }
}
