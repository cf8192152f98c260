//! Responses to an outside judge as text and figures for terminal and HTML.

use analysis::format_ns;
use record::{JudgeProtocol, Responses, Series, counted, grouped};

use crate::{blame::unsigned, round_trip::of_series};

/// The judge and its lines.
pub fn title(responses: &Responses) -> String {
    format!("Responses to the outside judge {} ({})", responses.judge, responses.protocol.in_words())
}

/// The times from question to answer: the figures of [`TIMES`](crate::round_trip::TIMES).
pub fn times(series: &Series) -> [String; 6] {
    of_series(series).map(|ns| ns.map_or_else(|| "-".to_owned(), format_ns))
}

/// Counts of questions by outcome: name, count, and true if a count above 0 is bad news.
pub fn outcomes(responses: &Responses) -> Vec<(&'static str, u64, bool)> {
    let common = [
        ("questions", responses.questions, false),
        ("answered", responses.answered, false),
        ("no answer", responses.missed, true),
        ("unknown", responses.unknown(), true),
    ];
    let own = match responses.protocol {
        JudgeProtocol::Punctual => [("late", responses.late, true), ("spurious", responses.spurious, true)],
        JudgeProtocol::Latmon => {
            [("overruns", responses.overruns.unwrap_or(0), true), ("in last cell", responses.clamped, true)]
        }
    };
    common.into_iter().chain(own).collect()
}

/// The source of the times, their resolution, and the lines.
pub fn remarks(responses: &Responses) -> String {
    let Responses { question_line, answer_line, .. } = responses;
    let resolution = unsigned(responses.resolution_ns);
    let random = match responses.random_ns {
        0 => String::new(),
        random_ns => format!("; up to {} are added to each period", unsigned(random_ns)),
    };
    let flaw = match responses.protocol {
        JudgeProtocol::Punctual => "",
        JudgeProtocol::Latmon => "; latmon discards the time of an answer that takes longer than 1 s",
    };
    format!(
        "measured by the judge at its own pins with its own clock, resolution {resolution}; question at {question_line}, answer \
         at {answer_line}{random}{flaw}"
    )
}

/// The answer: `The machine answered at most 85.2 us after a question of the outside judge /dev/ttyACM0 (10,000 questions,
/// 2 without an answer).`
pub fn sentence(series: &Series, responses: &Responses) -> String {
    let Responses { judge, questions, missed, .. } = responses;
    let unknown = match responses.unknown() {
        0 => String::new(),
        unknown => format!(", {} unknown", counted(unknown, "result")),
    };
    let without = match missed {
        0 => "all answered".to_owned(),
        missed => format!("{} without an answer", grouped(*missed)),
    };
    let counts = format!("({}, {without}{unknown})", counted(*questions, "question"));
    match series.max_ns {
        Some(max_ns) => {
            let max = format_ns(max_ns);
            format!("The machine answered at most {max} after a question of the outside judge {judge} {counts}.")
        }
        None if responses.answered > 0 => {
            format!("The outside judge {judge} does not say how late the latest answer was {counts}.")
        }
        None => format!("No answer reached the outside judge {judge}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_who_measured_and_what_is_missing() {
        let mut responses = Responses {
            judge: "/dev/ttyACM0".to_owned(),
            questions: 10_000,
            answered: 9_998,
            missed: 2,
            ..Responses::default()
        };
        let series = |max_ns| Series { max_ns, ..Series::default() };
        assert_eq!(
            sentence(&series(Some(85_200)), &responses),
            "The machine answered at most 85.2 us after a question of the outside judge /dev/ttyACM0 (10,000 questions, 2 \
             without an answer)."
        );
        (responses.missed, responses.without_time) = (0, 3);
        assert!(
            sentence(&series(Some(8)), &responses).ends_with("(10,000 questions, all answered, 3 results unknown).")
        );
        assert!(sentence(&series(None), &responses).contains("does not say how late"));
        responses.answered = 0;
        assert_eq!(sentence(&series(None), &responses), "No answer reached the outside judge /dev/ttyACM0.");
    }
}
