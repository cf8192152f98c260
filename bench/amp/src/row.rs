//! One row of the table: figures of both sides, their ratio, and what it may be at most.

use crate::rounds::{Times, quantile};

/// A target that is missed by less than this may be met on a quieter day.
pub const MARGIN: f64 = 0.15;

/// What is compared in one respect.
#[derive(Debug)]
pub struct Row {
    /// Which.
    pub name: String,
    ours: Times,
    peer: Option<Times>,
    /// Of each round; sorted.
    ratios: Vec<f64>,
    /// What the median ratio may be at most.
    target: Option<f64>,
    /// What it is known to be where it misses the target.
    known: Option<f64>,
}

impl Row {
    /// Both sides in the same rounds.
    pub fn new(name: String, ours: Times, peer: Option<Times>, target: Option<f64>) -> Self {
        let pairs = peer.iter().flat_map(|peer| ours.medians.iter().zip(&peer.medians));
        let mut ratios: Vec<f64> = pairs.map(|(ours, peer)| ours / peer).collect();
        ratios.sort_by(f64::total_cmp);
        Self { name, ours, peer, ratios, target, known: None }
    }

    /// The same row, which is known to miss its target: only what is worse than known is a failure.
    pub fn known(self, known: Option<f64>) -> Self {
        Self { known, ..self }
    }

    /// Whether the target, or what is known, is missed by more than noise.
    pub fn is_missed(&self) -> bool {
        let most = self.target.map(|target| target.max(self.known.unwrap_or_default()));
        most.is_some_and(|most| quantile(&self.ratios, 0.5) > most * (1.0 + MARGIN))
    }

    fn cells(&self) -> [String; 8] {
        let times = |times: &Times| [format!("{:.2}", times.best()), format!("{:.2}", times.quantile(0.5))];
        let none = || ["-".to_owned(), "-".to_owned()];
        let ([best, median], [peer_best, peer_median]) =
            (times(&self.ours), self.peer.as_ref().map_or_else(none, times));
        let ratio = |share: f64| quantile(&self.ratios, share);
        let (middle, spread) = match self.ratios.is_empty() {
            true => ("-".to_owned(), "-".to_owned()),
            false => (format!("{:.4}", ratio(0.5)), format!("{:.4} .. {:.4}", ratio(0.25), ratio(0.75))),
        };
        let target = self.target.map_or("-".to_owned(), |target| {
            let met = match ratio(0.5) {
                ratio if ratio <= target => "yes",
                _ if self.is_missed() => "NO",
                ratio if ratio > target * (1.0 + MARGIN) => "no, as is known",
                _ => "no, within noise",
            };
            format!("<= {target}  {met}")
        });
        [self.name.clone(), best, median, peer_best, peer_median, middle, spread, target]
    }
}

/// All rows in columns.
pub fn table(rows: &[Row]) -> String {
    let head = ["", "best us", "median", "peer best", "median", "ratio", "quartiles", "target"].map(str::to_owned);
    let lines: Vec<_> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or_default();
    let mut text = String::new();
    for line in &lines {
        text += &format!("{:<1$}", line[0], width(0));
        for (column, cell) in line.iter().enumerate().skip(1) {
            text += &match column {
                7 => format!("  {cell}"),
                _ => format!("  {cell:>0$}", width(column)),
            };
        }
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(medians: &[f64]) -> Times {
        Times { medians: medians.to_vec(), ..Times::default() }
    }

    fn row(ours: &[f64]) -> Row {
        Row::new("row".to_owned(), times(ours), Some(times(&[10.0; 3])), Some(0.5))
    }

    #[test]
    fn rounds_are_compared_with_themselves_and_the_median_decides() {
        let row = Row::new("row".to_owned(), times(&[1.0, 8.0, 3.0]), Some(times(&[10.0, 20.0, 10.0])), None);
        assert_eq!(row.ratios, [0.1, 0.3, 0.4]);
    }

    #[test]
    fn a_target_is_missed_beyond_the_margin() {
        assert!(!row(&[1.0, 5.0, 9.0]).is_missed() && row(&[1.0, 5.0, 9.0]).cells()[7].ends_with("yes"));
        assert!(!row(&[1.0, 5.5, 9.0]).is_missed() && row(&[1.0, 5.5, 9.0]).cells()[7].ends_with("within noise"));
        let known = row(&[1.0, 6.0, 9.0]).known(Some(0.6));
        assert!(!known.is_missed() && known.cells()[7].ends_with("as is known"));
        assert!(row(&[1.0, 8.0, 9.0]).known(Some(0.6)).is_missed());
        assert!(row(&[1.0, 6.0, 9.0]).is_missed() && row(&[1.0, 6.0, 9.0]).cells()[7].ends_with("NO"));
    }
}
