//! Tests and their results.

use std::{fmt::Display, time::Instant};

use anyhow::{Result, bail};

/// A test.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    /// Its name: the path of its function, e.g. `timer::is_granted`.
    pub name: &'static str,
    /// The function; an error describes the failure.
    pub run: fn() -> Result<()>,
}

/// The result of a test, printed as one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The test.
    pub name: String,
    /// The failure, if any.
    pub wrong: Option<String>,
    /// Duration on the guest's clock, seconds.
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
    /// Parses a printed verdict; `None` for other lines.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let [result, name, seconds, wrong] = line.splitn(4, '\t').collect::<Vec<_>>()[..] else { return None };
        let wrong = match result {
            OK => None,
            FAILED => Some(wrong.to_owned()),
            _ => return None,
        };
        Some(Self { name: name.to_owned(), wrong, seconds: seconds.parse().ok()? })
    }
}

impl Test {
    /// Runs the test. A panic counts as a failure.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let begin = Instant::now();
        let result = std::panic::catch_unwind(self.run).unwrap_or_else(|_| bail!("the test panicked: see above"));
        let wrong = result.err().map(|error| format!("{error:#}"));
        Verdict { name: self.name.to_owned(), wrong, seconds: begin.elapsed().as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_round_trip_as_one_line() {
        let good = Verdict { name: "a::b".to_owned(), wrong: None, seconds: 1.5 };
        let bad = Verdict { wrong: Some("it\tis\nlate".to_owned()), ..good.clone() };
        assert_eq!(Verdict::parse(&good.to_string()), Some(good));
        assert_eq!(Verdict::parse(&bad.to_string()).unwrap().wrong.unwrap(), "it\tis | late");
        assert_eq!(Verdict::parse("progress"), None);
    }
}
