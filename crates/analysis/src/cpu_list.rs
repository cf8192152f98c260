//! Lists of CPUs as the kernel writes them: `0,2-3`.

use std::ops::RangeInclusive;

/// The list of `cpus`.
pub(crate) fn format(mut cpus: Vec<u32>) -> String {
    cpus.sort_unstable();
    cpus.dedup();
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let runs = runs.map(|run| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// True if `list` contains `cpu`. Parts that are not CPUs are ignored.
pub(crate) fn contains(list: &str, cpu: u32) -> bool {
    list.trim().split(',').filter_map(range).any(|range| range.contains(&cpu))
}

fn range(part: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_lists() {
        assert_eq!(format(vec![5, 0, 2, 3, 3]), "0,2-3,5");
        assert_eq!(format(vec![]), "");
    }

    #[test]
    fn finds_cpus_in_lists() {
        let held = |list: &str| (0..8).filter(|&cpu| contains(list, cpu)).collect::<Vec<_>>();
        assert_eq!(held("1,3-5\n"), [1, 3, 4, 5]);
        assert_eq!(held(""), [0; 0]);
        assert_eq!(held("7"), [7]);
    }
}
