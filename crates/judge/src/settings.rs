//! The settings of the judge of punctual: its commands, and its replies.

use std::{fmt, time::Duration};

/// One tick of the judge, ns.
pub const TICK_NS: u64 = 8;
/// Shortest and longest time between two questions, ns.
pub const PERIOD_NS: std::ops::RangeInclusive<u64> = 50_000..=10_000_000_000;
/// Shortest time that a question is active or inactive, ns.
const WIDTH_MIN_NS: u64 = 1_000;
/// The random addition to a period is one part of it of this many.
const RANDOM_PART: u64 = 8;

/// A result can need so long on its way to this machine.
const LINE_WITHIN: Duration = Duration::from_secs(3);

/// The active level of a pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A rising edge is a question or an answer.
    High,
    /// A falling edge is one, as for latmon and latmus.
    Low,
}

/// The settings of a run. Times are multiples of 8 ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Time between two questions, ns.
    pub period_ns: u64,
    /// Largest random addition to it, ns.
    pub random_ns: u64,
    /// Time that a question is active, ns.
    pub width_ns: u64,
    /// Largest time of an answer that is not late, ns.
    pub timeout_ns: u64,
    /// Number of questions; 0 for no end.
    pub count: u32,
    /// Start of the random numbers, 1 or more.
    pub seed: u32,
    /// Active level of the pin of the questions.
    pub question: Level,
    /// Active level of the pin of the answers.
    pub answer: Level,
}

impl Settings {
    /// The settings of an endless run with this period, in which each answer before the next period is in time. A random
    /// addition of an eighth avoids beats with the timers of the machine. `None` if the judge has no such period.
    #[must_use]
    pub fn with_period(period_ns: u64, level: Level) -> Option<Self> {
        let settings = Self {
            period_ns,
            random_ns: in_ticks(period_ns / RANDOM_PART).min(PERIOD_NS.end().checked_sub(period_ns)?),
            width_ns: in_ticks(period_ns / 2),
            timeout_ns: period_ns,
            count: 0,
            seed: 1,
            question: level,
            answer: level,
        };
        let fits = PERIOD_NS.contains(&period_ns) && period_ns.is_multiple_of(TICK_NS);
        (fits && settings.width_ns >= WIDTH_MIN_NS).then_some(settings)
    }

    /// Longest time between two results, or from the last one to the end of a run: the frame of a miss comes at the next
    /// question.
    #[must_use]
    pub const fn result_within(&self) -> Duration {
        Duration::from_nanos(2 * (self.period_ns + self.random_ns)).saturating_add(LINE_WITHIN)
    }

    /// The commands that make these settings, without `start`.
    #[must_use]
    pub fn commands(&self) -> [String; 8] {
        let Self { period_ns, random_ns, width_ns, timeout_ns, count, seed, question, answer } = self;
        [
            format!("question {question}"),
            format!("answer {answer}"),
            format!("period {period_ns}ns"),
            format!("random {random_ns}ns"),
            format!("width {width_ns}ns"),
            format!("timeout {timeout_ns}ns"),
            format!("count {count}"),
            format!("seed {seed}"),
        ]
    }

    /// Reads the settings in the reply to `start` or `show`, without `ok` and CRC; `None` if one is missing or unknown.
    #[must_use]
    pub fn parse(reply: &str) -> Option<Self> {
        let mut words = reply.split(' ');
        let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
        let level = |text: &str| match text {
            "high" => Some(Level::High),
            "low" => Some(Level::Low),
            _ => None,
        };
        let settings = Self {
            period_ns: value("period")?.parse().ok()?,
            random_ns: value("random")?.parse().ok()?,
            width_ns: value("width")?.parse().ok()?,
            timeout_ns: value("timeout")?.parse().ok()?,
            count: value("count")?.parse().ok()?,
            seed: value("seed")?.parse().ok()?,
            question: level(value("question")?)?,
            answer: level(value("answer")?)?,
        };
        words.next().is_none().then_some(settings)
    }
}

/// The time, rounded down to whole ticks.
fn in_ticks(ns: u64) -> u64 {
    ns / TICK_NS * TICK_NS
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::High => "high",
            Self::Low => "low",
        })
    }
}

/// The settings as in a reply of the judge.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { period_ns, random_ns, width_ns, timeout_ns, count, seed, question, answer } = self;
        write!(
            f,
            "period={period_ns} random={random_ns} width={width_ns} timeout={timeout_ns} count={count} seed={seed} \
             question={question} answer={answer}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_reply_of_the_documents() {
        let reply = "period=1000000 random=0 width=10000 timeout=900000 count=10000 seed=1 question=high answer=high";
        let settings = Settings::parse(reply).unwrap();
        assert_eq!((settings.period_ns, settings.count, settings.answer), (1_000_000, 10_000, Level::High));
        assert_eq!(settings.to_string(), reply);
        for wrong in
            ["", "period=1000000", &reply.replace("high", "up"), &format!("{reply} more=1"), &reply.replace('=', " ")]
        {
            assert_eq!(Settings::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn settings_fit_the_judge() {
        let of = |period_ns| Settings::with_period(period_ns, Level::High);
        let one_ms = of(1_000_000).unwrap();
        assert_eq!((one_ms.random_ns, one_ms.width_ns, one_ms.timeout_ns), (125_000, 500_000, 1_000_000));
        for period_ns in [50_000, 125_000, 999_992, 9_999_999_992, 10_000_000_000] {
            let Settings { random_ns, width_ns, .. } = of(period_ns).unwrap();
            assert!(period_ns + random_ns <= 10_000_000_000 && width_ns + 1_000 <= period_ns);
            assert!(random_ns.is_multiple_of(8) && width_ns.is_multiple_of(8), "{period_ns}");
        }
        assert_eq!([49_992, 1_000_001, 10_000_000_008].map(of), [None; 3]);
        assert_eq!(one_ms.commands()[2], "period 1000000ns");
    }
}
