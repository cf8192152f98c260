//! CPU words: `last`, `others or all`, `0,2-3`.

use std::{fmt, str::FromStr};

use machine::CpuList;

use super::mistake::{Position, nearest};

/// CPU words with fallbacks: `isolated or last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuWords {
    /// The wanted CPUs, then the fallbacks. The first that a machine has counts; at least one.
    pub any: Vec<CpuWord>,
    /// Position in the file.
    pub position: Position,
}

/// CPUs by a word or by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuWord {
    /// These CPUs.
    List(CpuList),
    /// All usable CPUs.
    All,
    /// The lowest of these CPUs.
    First(Box<Self>),
    /// The highest of these CPUs.
    Last(Box<Self>),
    /// The CPUs that the kernel isolates.
    Isolated,
    /// The CPUs that the kernel does not isolate.
    Ordinary,
    /// The CPUs that the scenario measures.
    Measured,
    /// The CPUs that the scenario does not measure.
    Others,
    /// The CPUs outside the shield; all CPUs if the scenario has no shield.
    Unshielded,
    /// No CPU.
    None,
}

/// Words that are used alone, or after `first` and `last`.
const WORDS: [(&str, CpuWord); 7] = [
    ("all", CpuWord::All),
    ("isolated", CpuWord::Isolated),
    ("ordinary", CpuWord::Ordinary),
    ("measured", CpuWord::Measured),
    ("others", CpuWord::Others),
    ("unshielded", CpuWord::Unshielded),
    ("none", CpuWord::None),
];

/// The keys that take CPU words. Each key allows other words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The measured CPUs.
    Measuring,
    /// The CPUs of a load.
    Load,
    /// The shielded CPUs.
    Shield,
}

impl Use {
    fn allows(self, word: &CpuWord) -> bool {
        match word {
            CpuWord::Measured => self != Self::Measuring,
            CpuWord::Others | CpuWord::Unshielded => self == Self::Load,
            CpuWord::None => self == Self::Shield,
            _ => true,
        }
    }

    fn names(self) -> Vec<&'static str> {
        let words = WORDS.iter().filter(|(_, word)| self.allows(word)).map(|(name, _)| *name);
        ["first", "last"].into_iter().chain(words).collect()
    }
}

impl CpuWords {
    /// All usable CPUs.
    pub(super) fn all(position: Position) -> Self {
        Self { any: vec![CpuWord::All], position }
    }

    /// Reads words that this key allows.
    pub(super) fn parse(text: &str, allowed: Use, position: Position) -> Result<Self, String> {
        let any = text.split(" or ").map(|word| read(word.trim(), allowed)).collect::<Result<_, _>>()?;
        Ok(Self { any, position })
    }
}

fn read(text: &str, allowed: Use) -> Result<CpuWord, String> {
    let names = allowed.names();
    let choices = || format!("write a list, e.g. 0,2-3, or {}", names.join(", "));
    let (end, of) = text.split_once(' ').unwrap_or((text, "all"));
    match end {
        "first" => return read(of.trim(), allowed).map(|word| CpuWord::First(Box::new(word))),
        "last" => return read(of.trim(), allowed).map(|word| CpuWord::Last(Box::new(word))),
        _ => {}
    }
    if let Some((_, word)) = WORDS.iter().find(|(name, _)| *name == text) {
        return match allowed.allows(word) {
            true => Ok(word.clone()),
            false => Err(format!("`{text}` is not possible here: {}", choices())),
        };
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return CpuList::from_str(text).map(CpuWord::List).map_err(|error| error.to_string());
    }
    Err(format!("{text:?} is not a list of CPUs{}: {}", nearest(text, &names), choices()))
}

impl fmt::Display for CpuWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(list) => list.fmt(f),
            Self::First(of) if **of == Self::All => f.write_str("first"),
            Self::Last(of) if **of == Self::All => f.write_str("last"),
            Self::First(of) => write!(f, "first {of}"),
            Self::Last(of) => write!(f, "last {of}"),
            word => f.write_str(WORDS.iter().find(|(_, known)| known == word).map_or("", |(name, _)| name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_words_lists_and_fallbacks() {
        let parse = |text, allowed| CpuWords::parse(text, allowed, Position::default());
        let read = |text| parse(text, Use::Load).unwrap().any;
        assert_eq!(read("others or all"), [CpuWord::Others, CpuWord::All]);
        assert_eq!(read("0,2-3"), [CpuWord::List([0, 2, 3].into_iter().collect())]);
        for text in ["first", "last", "last ordinary", "first 2-3"] {
            assert_eq!(read(text)[0].to_string(), text);
        }
        for (name, word) in &WORDS {
            assert_eq!(word.to_string(), *name);
        }
    }

    #[test]
    fn refuses_words_that_a_key_does_not_allow() {
        let parse = |text, allowed| CpuWords::parse(text, allowed, Position::default());
        let refused = |text, allowed| parse(text, allowed).unwrap_err();
        assert!(
            refused("others", Use::Measuring)
                .starts_with("`others` is not possible here: write a list, e.g. 0,2-3, or first, last, all,")
        );
        assert!(refused("none", Use::Load).starts_with("`none` is not possible here"));
        assert!(refused("lats", Use::Load).starts_with("\"lats\" is not a list of CPUs, did you mean `last`?"));
        assert!(refused("last or", Use::Load).contains("is not a list of CPUs"));
        assert!(refused("3-1", Use::Load).contains("ends before it starts"));
        assert!(refused("", Use::Shield).contains("is not a list of CPUs"));
        assert_eq!(parse("measured or none", Use::Shield).unwrap().any.len(), 2);
    }
}
