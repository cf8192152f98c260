//! One row of the table: figures of both engines, their ratio, and its target.

use crate::rounds::{Times, quantile};

/// Noise margin: a target missed by less than this may be met on a quieter machine.
pub const MARGIN: f64 = 0.15;

/// One row of the table.
#[derive(Debug)]
pub struct Row {
    /// Name of the row.
    pub name: String,
    ours: Times,
    peer: Option<Times>,
    /// Ratios of all rounds, sorted.
    ratios: Vec<f64>,
    /// Upper limit for the median ratio.
    target: Option<f64>,
    /// The known ratio, if it is above the target.
    known: Option<f64>,
}

impl Row {
    /// A row of two engines, measured in the same rounds.
    pub fn new(name: String, ours: Times, peer: Option<Times>, target: Option<f64>) -> Self {
        let pairs = peer.iter().flat_map(|peer| ours.medians.iter().zip(&peer.medians));
        let mut ratios: Vec<f64> = pairs.map(|(ours, peer)| ours / peer).collect();
        ratios.sort_by(f64::total_cmp);
        Self { name, ours, peer, ratios, target, known: None }
    }

    /// Sets a known ratio above the target: only a worse ratio is a failure.
    pub fn known(self, known: Option<f64>) -> Self {
        Self { known, ..self }
    }

    /// True if the target, or the known ratio, is exceeded by more than the noise margin.
    pub fn is_missed(&self) -> bool {
        let most = self.target.map(|target| target.max(self.known.unwrap_or_default()));
        most.is_some_and(|most| quantile(&self.ratios, 0.5) > most * (1.0 + MARGIN))
    }

    fn cells(&self) -> [String; COLUMNS] {
        let times = |times: &Times| {
            [times.best(), times.quantile(0.5), times.mean(), times.quantile(0.99)].map(|time| format!("{time:.2}"))
        };
        let none = || std::array::from_fn(|_| "-".to_owned());
        let [best, median, mean, p99] = times(&self.ours);
        let [peer_best, peer_median, peer_mean, peer_p99] = self.peer.as_ref().map_or_else(none, times);
        let ratio = |share: f64| quantile(&self.ratios, share);
        let (middle, spread) = match self.ratios.is_empty() {
            true => ("-".to_owned(), "-".to_owned()),
            false => (format!("{:.4}", ratio(0.5)), format!("{:.4} .. {:.4}", ratio(0.25), ratio(0.75))),
        };
        let target = self.target.map_or("-".to_owned(), |target| {
            let met = match ratio(0.5) {
                ratio if ratio <= target => "yes",
                _ if self.is_missed() => "NO",
                ratio if ratio > target * (1.0 + MARGIN) => "no, known",
                _ => "no, within noise",
            };
            format!("<= {target}  {met}")
        });
        let name = self.name.clone();
        [name, best, median, mean, p99, peer_best, peer_median, peer_mean, peer_p99, middle, spread, target]
    }
}

/// Number of columns.
const COLUMNS: usize = HEAD.len();
/// Headings of the columns.
const HEAD: [&str; 12] =
    ["", "best us", "median", "mean", "p99", "peer best", "median", "mean", "p99", "ratio", "quartiles", "target"];

/// Formats all rows in columns.
pub fn table(rows: &[Row]) -> String {
    let head = HEAD.map(str::to_owned);
    let lines: Vec<_> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or_default();
    let mut text = String::new();
    for line in &lines {
        text += &format!("{:<1$}", line[0], width(0));
        for (column, cell) in line.iter().enumerate().skip(1) {
            text += &match column {
                column if column + 1 == COLUMNS => format!("  {cell}"),
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
    fn compares_the_engines_round_by_round() {
        let row = Row::new("row".to_owned(), times(&[1.0, 8.0, 3.0]), Some(times(&[10.0, 20.0, 10.0])), None);
        assert_eq!(row.ratios, [0.1, 0.3, 0.4]);
    }

    #[test]
    fn misses_a_target_beyond_the_margin() {
        assert!(!row(&[1.0, 5.0, 9.0]).is_missed() && row(&[1.0, 5.0, 9.0]).cells()[COLUMNS - 1].ends_with("yes"));
        assert!(
            !row(&[1.0, 5.5, 9.0]).is_missed() && row(&[1.0, 5.5, 9.0]).cells()[COLUMNS - 1].ends_with("within noise")
        );
        let known = row(&[1.0, 6.0, 9.0]).known(Some(0.6));
        assert!(!known.is_missed() && known.cells()[COLUMNS - 1].ends_with("no, known"));
        assert!(row(&[1.0, 8.0, 9.0]).known(Some(0.6)).is_missed());
        assert!(row(&[1.0, 6.0, 9.0]).is_missed() && row(&[1.0, 6.0, 9.0]).cells()[COLUMNS - 1].ends_with("NO"));
    }
}
