//! Rates of rare events, as people write them: `1 per hour`.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use crate::float::to_u64;

const SECOND_NS: u64 = 1_000_000_000;

/// The spans of a rate, with their length in ns; a year has 365.25 days.
const SPANS: [(&str, u64); 5] = [
    ("second", SECOND_NS),
    ("minute", 60 * SECOND_NS),
    ("hour", 3600 * SECOND_NS),
    ("day", 86_400 * SECOND_NS),
    ("year", 31_557_600 * SECOND_NS),
];

/// A number of events in a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Number of events; 1 or more.
    count: u32,
    /// Name of the span.
    span: &'static str,
    /// Length of the span, ns.
    span_ns: u64,
}

impl Rate {
    /// The number of events expected in `ns`.
    #[must_use]
    pub fn in_ns(&self, ns: f64) -> f64 {
        f64::from(self.count) * ns / self.span_ns as f64
    }

    /// The time in which `events` are expected, ns, rounded up.
    #[must_use]
    pub fn time_ns(&self, events: f64) -> u64 {
        to_u64((events * self.span_ns as f64 / f64::from(self.count)).ceil())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per {}", self.count, self.span)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Rate {
    type Err = String;

    /// Reads `1 per hour`.
    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (count, span) = text.split_once(" per ")?;
            let (name, span_ns) = SPANS.into_iter().find(|(name, _)| *name == span.trim())?;
            Some((count.trim().parse::<u32>().ok()?, name, span_ns))
        };
        match read() {
            Some((0, span, _)) => Err(format!(
                "no run can show a rate of {text:?}: write the rate that the use tolerates, for example \"1 per {span}\""
            )),
            Some((count, span, span_ns)) => Ok(Self { count, span, span_ns }),
            None => Err(format!(
                "{text:?} is not a rate: write a whole number per second, minute, hour, day or year, for example \
                 \"1 per hour\""
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_rates() {
        for text in ["1 per hour", "20 per minute", "4294967295 per second", "1 per year"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        let hourly: Rate = "2 per hour".parse().unwrap();
        assert_eq!((hourly.in_ns(1.8e12), hourly.time_ns(3.0)), (1.0, 5_400_000_000_000));
        for wrong in ["", "1", "per hour", "one per hour", "1 per week", "-1 per hour", "1.5 per hour", "1 / hour"] {
            assert!(wrong.parse::<Rate>().unwrap_err().ends_with("for example \"1 per hour\""), "{wrong}");
        }
        let none = "0 per day".parse::<Rate>().unwrap_err();
        assert!(
            none.starts_with("no run can show a rate of \"0 per day\"") && none.ends_with("\"1 per day\""),
            "{none}"
        );
    }
}
