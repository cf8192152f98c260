//! Tests and how they ended.

use std::{fmt::Display, time::Instant};

use anyhow::{Result, bail};

/// A test: what it is called, and what it does.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    /// Its name, which is its path: `timer::is_granted`.
    pub name: &'static str,
    /// What it does; an error says what is wrong.
    pub run: fn() -> Result<()>,
}

/// How a test ended, as one line says it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The test.
    pub name: String,
    /// What is wrong; `None` when nothing is.
    pub wrong: Option<String>,
    /// How long it took by the guest's clock, seconds.
    pub seconds: f64,
}

const OK: &str = "test ok";
const FAILED: &str = "test FAILED";

impl Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.wrong {
            None => write!(f, "{OK}\t{}\t{:.1}\t", self.name, self.seconds),
            Some(wrong) => write!(f, "{FAILED}\t{}\t{:.1}\t{}", self.name, self.seconds, wrong.replace('\n', " | ")),
        }
    }
}

impl Verdict {
    /// Reads the line; `None` for a line that is something else.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let [how, name, seconds, wrong] = line.splitn(4, '\t').collect::<Vec<_>>()[..] else { return None };
        let wrong = match how {
            OK => None,
            FAILED => Some(wrong.to_owned()),
            _ => return None,
        };
        Some(Self { name: name.to_owned(), wrong, seconds: seconds.parse().ok()? })
    }
}

impl Test {
    /// Runs it. One that panics has failed, and the next one runs.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let begin = Instant::now();
        let answer = std::panic::catch_unwind(self.run).unwrap_or_else(|_| bail!("it panicked: see above"));
        let wrong = answer.err().map(|error| format!("{error:#}"));
        Verdict { name: self.name.to_owned(), wrong, seconds: begin.elapsed().as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_one_line_that_can_be_read_again() {
        let good = Verdict { name: "a::b".to_owned(), wrong: None, seconds: 1.5 };
        let bad = Verdict { wrong: Some("it\tis\nlate".to_owned()), ..good.clone() };
        assert_eq!(Verdict::parse(&good.to_string()), Some(good));
        assert_eq!(Verdict::parse(&bad.to_string()).unwrap().wrong.unwrap(), "it\tis | late");
        assert_eq!(Verdict::parse("progress"), None);
    }
}
