//! The order of names: files without dates are rounds in this order.

use std::cmp::Ordering;

/// The names in the order of the numbers in them, if they are sorted, as a shell sorts what a pattern such as `run-*` matches. Names
/// in another order are in that of the user.
pub fn in_order(names: &[String]) -> Vec<&String> {
    let mut ordered: Vec<&String> = names.iter().collect();
    // The order of bytes, or that of most languages, which ignores case and punctuation.
    let letters =
        |name: &String| name.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>().to_lowercase();
    if names.is_sorted() || names.is_sorted_by_key(letters) {
        ordered.sort_by(|a, b| natural(a, b));
    }
    ordered
}

/// Compares two names: numbers in them by their values, so that `run-2` comes before `run-10`.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut ours, mut theirs) = (a, b);
    loop {
        let ((number, rest), (other, other_rest)) = (digits(ours), digits(theirs));
        let order = match number.is_empty() || other.is_empty() {
            true => {
                let (mut letters, mut other_letters) = (ours.chars(), theirs.chars());
                let (letter, other) = (letters.next(), other_letters.next());
                (ours, theirs) = (letters.as_str(), other_letters.as_str());
                if letter.is_none() && other.is_none() {
                    return a.cmp(b);
                }
                letter.cmp(&other)
            }
            false => {
                (ours, theirs) = (rest, other_rest);
                let [number, other] = [number, other].map(|digits| digits.trim_start_matches('0'));
                number.len().cmp(&other.len()).then_with(|| number.cmp(other))
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The digits at the beginning of a text, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        in_order(&names).into_iter().cloned().collect()
    }

    #[test]
    fn numbers_in_names_have_their_order() {
        let names = ["run-1.txt", "run-10.txt", "run-11.txt", "run-2.txt"];
        assert_eq!(ordered(&names), ["run-1.txt", "run-2.txt", "run-10.txt", "run-11.txt"]);
        let of_language = ["run-10.txt", "run-1.txt", "run-2.txt"];
        assert_eq!(ordered(&of_language), ["run-1.txt", "run-2.txt", "run-10.txt"]);
        for (before, after) in [
            ("run.txt", "run1.txt"),
            ("a-2/run-9", "a-10/run-1"),
            ("x-2", "x-010"),
            ("x-01", "x-1"),
            ("18446744073709551616", "18446744073709551617"),
            ("a", "a1"),
        ] {
            assert_eq!(
                (natural(before, after), natural(after, before)),
                (Ordering::Less, Ordering::Greater),
                "{before}"
            );
        }
        assert_eq!(natural("a1", "a1"), Ordering::Equal);
    }

    #[test]
    fn names_in_another_order_stay_in_it() {
        let names = ["run-2", "run-1", "run-10"];
        assert_eq!(ordered(&names), names);
    }
}
