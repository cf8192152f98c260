//! Responses to questions of an outside judge: a board that sets a pin, waits for the answer on another pin, and measures
//! the time between with its own clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, count::is_zero};

/// Role of a series of responses.
pub const RESPONSE: &str = "response";

/// Time that latmon waits for an answer before its next question, ns.
pub const LATMON_WAITS_NS: u64 = 1_000_000_000;

/// The figures of responses. The values of the series are the times from the edge of the question to the edge of the
/// answer, both at the pins of the judge and by its clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Responses {
    /// The judge, as on the command line: `/dev/ttyACM0`, `192.0.2.7:2306`.
    pub judge: String,
    /// Its protocol.
    pub protocol: JudgeProtocol,
    /// The input line that receives the questions, in words: chip, number and name.
    pub question_line: String,
    /// The output line that answers, in words.
    pub answer_line: String,
    /// Resolution of the times, ns. A time of latmon is rounded up to the end of its cell of the histogram.
    pub resolution_ns: u64,
    /// Largest random addition to the time between two questions, ns; 0 for latmon.
    pub random_ns: u64,
    /// Time from the start of the judge to the end of the window of its last question, ns, by its clock. Absent for latmon, and
    /// if the judge did not report its totals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_ns: Option<u64>,
    /// Questions whose results the judge reported: answered, late and missed.
    pub questions: u64,
    /// Questions with an answer.
    pub answered: u64,
    /// Answers that came after a period or later, and before the next question. They are also `answered`.
    pub late: u64,
    /// Questions without an answer.
    pub missed: u64,
    /// Overruns that latmon counted: one for each question without an answer within 1 s (of Zephyr's sample: within 1 ms),
    /// whose time it then discards, and one for each whole period that an answer took. Absent for other judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overruns: Option<u64>,
    /// Overruns of latmon that were questions without an answer or late answers, because it does not say which; or whose
    /// answers can have been in time, because it did not wait a second for them.
    pub possibly_missed: u64,
    /// Answers in latmon's histogram that its statistics lack: those of the warm-up of Zephyr's latmon, and of a last second
    /// that it lost. Its overruns in that time are not known, so the time does not count as measured. Absent if there are
    /// none, and in older records.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreported: u64,
    /// Answered questions whose time was lost on the serial line.
    pub without_time: u64,
    /// Edges of the answer line that answered no question.
    pub spurious: u64,
    /// Questions that came while the answer line was still active.
    pub active_before: u64,
    /// Times that edges of the answer line came faster than the judge could read them, so that it discarded some.
    pub discarded: u64,
    /// Answers in the last cell of latmon's histogram that can be later than that cell. They count as the largest time.
    pub clamped: u64,
    /// Bytes of the serial line that belonged to no valid frame or reply.
    pub damaged_bytes: u64,
    /// True if the judge reported its totals at the end of the run.
    pub complete: bool,
    /// Each time in ns and its count, ascending and exact, as the judge of punctual measured them; empty for latmon, and if
    /// there were more than 50,000 different times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exact: Vec<(u64, u64)>,
    /// The histogram of latmon: cell N contains times from N to N + 1 us, the last one also all later times. Empty for
    /// other judges, and if the connection was lost before the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<u64>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The protocol of a judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeProtocol {
    /// The judge of punctual at a serial line: one result for each question.
    #[default]
    Punctual,
    /// latmon of the EVL project over TCP: a histogram at the end.
    Latmon,
}

impl JudgeProtocol {
    /// The kind of judge, in words.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Punctual => "judge of punctual",
            Self::Latmon => "latmon",
        }
    }
}

impl Responses {
    /// Questions whose result is unknown: it was lost on the serial line, or latmon did not say what an overrun was.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.possibly_missed.saturating_add(self.without_time)
    }

    /// Time that a question without an answer takes, ns, if the judge asks every `period_ns`.
    #[must_use]
    pub fn unanswered_ns(&self, period_ns: u64) -> u64 {
        match self.protocol {
            JudgeProtocol::Punctual => period_ns,
            JudgeProtocol::Latmon => period_ns.max(LATMON_WAITS_NS),
        }
    }

    /// Questions that had an answer, but whose time was lost.
    #[must_use]
    pub fn without_known_time(&self) -> u64 {
        self.unknown() - self.perhaps_missed()
    }

    /// Questions that can have had no answer: latmon did not say so, or a result was lost and the totals of the judge are missing.
    #[must_use]
    pub fn perhaps_missed(&self) -> u64 {
        if self.complete { self.possibly_missed } else { self.unknown() }
    }
}
