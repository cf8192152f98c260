//! Options in the command line of a tool.

/// The words of a command line.
pub struct Command<'a>(Vec<&'a str>);

impl<'a> Command<'a> {
    pub fn of(text: &'a str) -> Self {
        Self(text.split_whitespace().collect())
    }

    /// The value of an option in its short form (`-i1000`, `-i 1000`) or long form (`--interval=1000`, `--interval 1000`).
    pub fn value(&self, short: &str, long: &str) -> Option<&'a str> {
        self.0.iter().enumerate().find_map(|(at, word)| {
            let next = || self.0.get(at + 1).copied();
            if *word == short || *word == long {
                return next();
            }
            let of_long = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
            of_long.or_else(|| word.strip_prefix(short).filter(|_| !word.starts_with("--")))
        })
    }

    /// True if the command line has one of these words.
    pub fn has(&self, words: &[&str]) -> bool {
        self.0.iter().any(|word| words.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_of_an_option() {
        for text in ["cyclictest -q -i250 -h60", "cyclictest -i 250", "x --interval=250", "x --interval 250"] {
            assert_eq!(Command::of(text).value("-i", "--interval"), Some("250"), "{text}");
        }
        assert_eq!(Command::of("x --idle 3").value("-i", "--interval"), None);
        assert!(Command::of("x -S").has(&["-S", "--smp"]));
    }
}
