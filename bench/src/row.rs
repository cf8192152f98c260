//! One row of the table: a figure of both sides, their ratio, and the target.

use serde::Serialize;

use crate::{
    rounds::Pair,
    statistics::{Spread, ratio},
};

/// What is compared in one respect.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// In what respect.
    pub name: &'static str,
    /// What the figures are; JSON has them in ns and bytes.
    pub unit: Unit,
    /// punctual's figures.
    pub punctual: Option<Spread>,
    /// cyclictest's figures; absent where punctual is held to a limit of its own.
    pub cyclictest: Option<Spread>,
    /// punctual / cyclictest, of each pair of runs.
    pub ratio: Option<Spread>,
    /// What the median of the ratio, or of punctual's figure where there is no ratio, may be at most.
    pub target: Option<f64>,
    /// What happened besides, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Nanoseconds, of what takes few of them.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Parts of 1.
    Share,
    /// A number of things.
    Count,
}

/// Whether a target is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Met {
    /// By the median.
    pub met: bool,
    /// The 95 % interval of the median lies on one side of the target; else these rounds cannot tell.
    pub certain: bool,
}

impl Row {
    /// A figure of both sides, one of each a round.
    pub fn compared(name: &'static str, unit: Unit, pairs: impl IntoIterator<Item = Pair<f64, f64>>) -> Self {
        let pairs: Vec<_> = pairs.into_iter().collect();
        Self {
            name,
            unit,
            punctual: Spread::of(pairs.iter().map(|pair| pair.ours)),
            cyclictest: Spread::of(pairs.iter().map(|pair| pair.theirs)),
            ratio: Spread::of(pairs.iter().map(|pair| ratio(pair.ours, pair.theirs))),
            target: None,
            remark: None,
        }
    }

    /// A figure of punctual's own with its limit.
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

    /// The same row with a limit for its ratio.
    pub fn with_target(self, limit: f64) -> Self {
        Self { target: Some(limit), ..self }
    }

    /// The same row with a remark.
    pub fn with_remark(self, remark: String) -> Self {
        Self { remark: Some(remark), ..self }
    }

    /// What the target applies to.
    pub fn judged(&self) -> Option<Spread> {
        self.ratio.or(self.punctual)
    }

    /// Whether the target is met; `None` where there is none.
    pub fn met(&self) -> Option<Met> {
        let (target, judged) = (self.target?, self.judged()?);
        Some(Met { met: judged.median <= target, certain: judged.median_high <= target || judged.median_low > target })
    }
}

impl Unit {
    /// A figure in this unit, for people.
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
        let pairs = ratios.iter().map(|&ours| Pair { ours, theirs: 1.0 });
        Row::compared("row", Unit::Count, pairs).with_target(1.0)
    }

    #[test]
    fn a_target_is_met_by_the_median_and_certain_by_its_interval() {
        let met = |ratios: &[f64]| row(ratios).met().unwrap();
        assert_eq!(met(&[0.8, 0.9, 0.9]), Met { met: true, certain: true });
        assert_eq!(met(&[0.8, 0.9, 1.1]), Met { met: true, certain: false });
        assert_eq!(met(&[0.9, 1.1, 1.2]), Met { met: false, certain: false });
        assert_eq!(met(&[1.1, 1.1, 1.2]), Met { met: false, certain: true });
    }

    #[test]
    fn a_limit_of_its_own_is_held_against_the_figure_itself() {
        let row = Row::alone("size", Unit::Bytes, [11.0], 10.0);
        assert_eq!(row.met(), Some(Met { met: false, certain: true }));
    }

    #[test]
    fn figures_carry_their_unit() {
        assert_eq!(Unit::Time.show(19_432.0), "19.43 us");
        assert_eq!(Unit::Time.show(7.5e6), "7.50 ms");
        assert_eq!(Unit::Bytes.show(4_718_592.0), "4.50 MiB");
        assert_eq!(Unit::Share.show(0.0512), "5.12 %");
        assert_eq!(Unit::Count.show(174.71), "174.7");
    }
}
