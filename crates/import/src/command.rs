//! Options in the command line of a tool, as getopt reads them.

/// Options of one letter without a value that tools of rt-tests combine in one word: `-mqSp99`.
const FLAGS: &str = "mMnNqrRsSuUvxz";

/// The words of a command line.
pub struct Command<'a>(Vec<&'a str>);

impl<'a> Command<'a> {
    pub fn of(text: &'a str) -> Self {
        Self(text.split_whitespace().collect())
    }

    /// True without any word.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of an option in its short form (`-i1000`, `-i 1000`, `-qi1000`) or long form (`--interval=1000`,
    /// `--interval 1000`, `--int=1000`). The last one counts.
    pub fn value(&self, letter: char, long: &str) -> Option<&'a str> {
        self.0.iter().enumerate().rev().find_map(|(at, word)| {
            let after = after_letter(word, letter).or_else(|| after_name(word, long))?;
            if after.is_empty() { self.0.get(at + 1).copied() } else { Some(after) }
        })
    }

    /// True if the command line has this option.
    pub fn has(&self, letter: char, long: &str) -> bool {
        self.0.iter().any(|word| after_letter(word, letter).is_some() || after_name(word, long).is_some())
    }
}

/// The rest of a word behind a letter, if only options without a value are before it.
fn after_letter(word: &str, letter: char) -> Option<&str> {
    let (before, after) = word.strip_prefix('-')?.split_once(letter)?;
    before.chars().all(|flag| FLAGS.contains(flag)).then_some(after)
}

/// The value behind a long name, which can be shortened; empty if it is the next word.
fn after_name<'a>(word: &'a str, long: &str) -> Option<&'a str> {
    let option = word.strip_prefix("--")?;
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    (!name.is_empty() && long.starts_with(name)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_all_forms_of_an_option() {
        for text in [
            "cyclictest -q -i250 -h60",
            "cyclictest -i 250",
            "cyclictest -mqSi250 -p99",
            "cyclictest -mqSi 250",
            "cyclictest -i1000 -i250",
            "x --interval=250",
            "x --interval 250",
            "x --int=250",
        ] {
            assert_eq!(Command::of(text).value('i', "interval"), Some("250"), "{text}");
        }
        for text in ["x --idle 3", "x -p99", "x -Dilater", "x -- 250", "x"] {
            assert_eq!(Command::of(text).value('i', "interval"), None, "{text}");
        }
        for text in ["x -S", "x -mqSp90", "x --smp"] {
            assert!(Command::of(text).has('S', "smp"), "{text}");
        }
    }
}
