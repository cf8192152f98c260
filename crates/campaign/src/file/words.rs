//! CPUs in words: `last`, `others or all`, `0,2-3`.

use std::{fmt, str::FromStr};

use machine::CpuList;

use super::mistake::{Place, nearest};

/// CPUs in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuWords {
    /// What is wished, and what stands in where a machine has none such: the first that fits counts; at least one.
    pub any: Vec<CpuWord>,
    /// Where they stand.
    pub place: Place,
}

/// CPUs by a word, or by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuWord {
    /// These.
    List(CpuList),
    /// All that may be used.
    All,
    /// The lowest of those.
    First(Box<Self>),
    /// The highest of those.
    Last(Box<Self>),
    /// Those that the kernel isolates.
    Isolated,
    /// Those that it does not.
    Ordinary,
    /// Those that the scenario measures.
    Measured,
    /// Those that it does not.
    Others,
    /// Those outside its shield; all without one.
    Unshielded,
    /// None at all.
    None,
}

/// Words that stand alone, or behind `first` and `last`.
const WORDS: [(&str, CpuWord); 7] = [
    ("all", CpuWord::All),
    ("isolated", CpuWord::Isolated),
    ("ordinary", CpuWord::Ordinary),
    ("measured", CpuWord::Measured),
    ("others", CpuWord::Others),
    ("unshielded", CpuWord::Unshielded),
    ("none", CpuWord::None),
];

/// What words may be used where, besides a list of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// For what is measured.
    Measuring,
    /// For what runs beside it.
    Load,
    /// For what is kept free.
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
    /// Every CPU that may be used.
    pub(super) fn all(place: Place) -> Self {
        Self { any: vec![CpuWord::All], place }
    }

    /// Reads words that may stand there.
    pub(super) fn parse(text: &str, allowed: Use, place: Place) -> Result<Self, String> {
        let any = text.split(" or ").map(|word| read(word.trim(), allowed)).collect::<Result<_, _>>()?;
        Ok(Self { any, place })
    }
}

fn read(text: &str, allowed: Use) -> Result<CpuWord, String> {
    let names = allowed.names();
    let choices = || format!("write a list as 0,2-3, or {}", names.join(", "));
    let (end, of) = text.split_once(' ').unwrap_or((text, "all"));
    match end {
        "first" => return read(of.trim(), allowed).map(|word| CpuWord::First(Box::new(word))),
        "last" => return read(of.trim(), allowed).map(|word| CpuWord::Last(Box::new(word))),
        _ => {}
    }
    if let Some((_, word)) = WORDS.iter().find(|(name, _)| *name == text) {
        return match allowed.allows(word) {
            true => Ok(word.clone()),
            false => Err(format!("`{text}` means nothing here: {}", choices())),
        };
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return CpuList::from_str(text).map(CpuWord::List).map_err(|error| error.to_string());
    }
    Err(format!("{text:?} names no CPUs{}: {}", nearest(text, &names), choices()))
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
    fn words_and_lists_are_read_with_what_stands_in() {
        let parse = |text, allowed| CpuWords::parse(text, allowed, Place::default());
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
    fn each_use_has_its_words() {
        let parse = |text, allowed| CpuWords::parse(text, allowed, Place::default());
        let refused = |text, allowed| parse(text, allowed).unwrap_err();
        assert!(
            refused("others", Use::Measuring)
                .starts_with("`others` means nothing here: write a list as 0,2-3, or first, last, all,")
        );
        assert!(refused("none", Use::Load).starts_with("`none` means nothing here"));
        assert!(refused("lats", Use::Load).starts_with("\"lats\" names no CPUs, did you mean `last`?"));
        assert!(refused("last or", Use::Load).contains("names no CPUs"));
        assert!(refused("3-1", Use::Load).contains("runs backwards"));
        assert!(refused("", Use::Shield).contains("names no CPUs"));
        assert_eq!(parse("measured or none", Use::Shield).unwrap().any.len(), 2);
    }
}
