//! Values that several parts of a campaign file use.

use super::mistake::{nearest, or_list};

/// Reads a duration within bounds, ns.
pub(super) fn duration_in(text: &str, least_ns: u64, most_ns: u64, bounds: &str) -> Result<u64, String> {
    match analysis::duration::parse_ns(text) {
        Ok(ns) if (least_ns..=most_ns).contains(&ns) => Ok(ns),
        Ok(_) => Err(format!("{text:?} must be {bounds}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the value of a known word.
pub(super) fn one_of<T: Copy>(word: &str, known: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, meaning)) = known.iter().find(|(name, _)| *name == word) {
        return Ok(*meaning);
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    Err(format!("{word:?} is unknown{}: write {}", nearest(word, &names), or_list(&names)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_a_similar_word() {
        assert_eq!(
            one_of("abb", &[("abba", 1), ("other", 2)]).unwrap_err(),
            "\"abb\" is unknown, did you mean `abba`?: write abba or other"
        );
    }
}
