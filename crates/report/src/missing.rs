//! The times at which results were missing, in words.

use record::{Losses, Series, grouped};

/// The largest number of stretches that a text names.
const NAMED: usize = 3;

/// Consecutive windows that all contain missing results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Begin after the first deadline, ns.
    pub(crate) from_ns: u64,
    /// End after the first deadline, ns.
    pub(crate) to_ns: u64,
    /// The number of missing results.
    pub(crate) count: u64,
}

/// The stretches of a series in order of time.
pub(crate) fn stretches(losses: &Losses) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    for &(window, count) in &losses.counts {
        let from_ns = window.saturating_mul(losses.window_ns);
        let to_ns = from_ns.saturating_add(losses.window_ns);
        match found.last_mut() {
            Some(last) if last.to_ns == from_ns => {
                last.to_ns = to_ns;
                last.count = last.count.saturating_add(count);
            }
            _ => found.push(Stretch { from_ns, to_ns, count }),
        }
    }
    found
}

/// The stretches with the most missing results, in order of time: `300 from 12 s to 14 s, 1 from 40 s to 41 s, and 9 in 4
/// other stretches`. `None` if no times are known.
pub(crate) fn in_words(series: &Series) -> Option<String> {
    let mut largest = stretches(&series.losses);
    largest.sort_by_key(|stretch| std::cmp::Reverse(stretch.count));
    let others = largest.split_off(largest.len().min(NAMED));
    largest.sort_by_key(|stretch| stretch.from_ns);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let name = |Stretch { from_ns, to_ns, count }: &Stretch| {
        format!("{} from {} s to {} s", grouped(*count), seconds(*from_ns), seconds(*to_ns))
    };
    let mut named: Vec<String> = largest.iter().map(name).collect();
    let count = grouped(others.iter().fold(0, |sum: u64, stretch| sum.saturating_add(stretch.count)));
    match others.len() {
        0 => {}
        1 => named.push(format!("and {count} in another stretch")),
        number => named.push(format!("and {count} in {} other stretches", grouped(number as u64))),
    }
    (!named.is_empty()).then(|| named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_largest_stretches_in_order_of_time() {
        let of = |counts: &[(u64, u64)]| {
            let losses = Losses { counts: counts.to_vec(), ..Losses::default() };
            in_words(&Series { losses, ..Series::default() })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(0, 7)]).as_deref(), Some("7 from 0 s to 1 s"));
        assert_eq!(
            of(&[(3, 1), (12, 100), (13, 200), (40, 5), (50, 6)]).as_deref(),
            Some("300 from 12 s to 14 s, 5 from 40 s to 41 s, 6 from 50 s to 51 s, and 1 in another stretch")
        );
        let many = of(&[(3, 1), (5, 1), (12, 4), (40, 5), (4_000, 6)]);
        assert_eq!(
            many.as_deref(),
            Some("4 from 12 s to 13 s, 5 from 40 s to 41 s, 6 from 4000 s to 4001 s, and 2 in 2 other stretches")
        );
    }
}
