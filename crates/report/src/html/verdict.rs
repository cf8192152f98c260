//! The headline, the key figures and the ladder of uses.

use std::fmt::Write;

use analysis::{Summary, format_duration, format_ns};
use record::{Outcome, Record, Series, UseVerdict, grouped};

use crate::compare::not_ours;

use super::{audio, capture, figure::Key, lines, matrix, noise, process, round_trip, stream, svg, text};
use crate::blame::unsigned;
use crate::headline;
use crate::style::Ink;
use crate::words::{Words, counted_items, is_noise, is_profile, reason_sentence, sentence};

/// The headline of the report.
pub struct Headline {
    /// `PASS` etc.; without a requested profile, what the ladder of uses shows, or `MEASURED`.
    pub word: &'static str,
    /// CSS class, which includes a mark.
    pub class: &'static str,
    /// The answer in one short sentence.
    pub sentence: String,
    /// The reason: trusted HTML.
    pub reason: String,
}

/// The longest headline in large letters, characters: two lines of the page.
const LARGE: usize = 80;

impl Headline {
    /// The answer as trusted HTML.
    pub fn answer(&self) -> String {
        text::with_code(&self.sentence)
    }

    /// True if the answer needs smaller letters.
    pub fn is_long(&self) -> bool {
        self.sentence.chars().count() > LARGE
    }
}

/// A use on the ladder.
pub struct Rung<'a> {
    /// The verdict in the record.
    pub of: &'a UseVerdict,
    /// CSS class, which includes a mark.
    pub class: &'static str,
    /// `yes`, `no`, etc.
    pub answer: &'static str,
    /// Period, as text.
    pub period: String,
    /// Limit, as text.
    pub limit: String,
    /// Worst case, as text.
    pub worst: String,
    /// The reason, as a sentence: trusted HTML.
    pub reason: String,
    /// The conclusion that the samples allow, as a sentence.
    pub statement: String,
    /// The worst case compared with the limit: trusted SVG.
    pub bar: String,
}

fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
        Outcome::Inconclusive => "inconclusive",
        Outcome::Invalid => "invalid",
    }
}

/// The headline of the report.
pub fn headline(record: &Record) -> Headline {
    if let Some(published) = &record.published {
        let (word, from) = not_ours(record);
        let sentence = format!("The figures were {from}.");
        return Headline { word, class: "measured", sentence, reason: text::escape(&published.source()) };
    }
    let judged = record.verdict.as_ref();
    let outcome = if record.validity.valid { judged.map(|v| v.outcome) } else { Some(Outcome::Invalid) };
    // For an invalid run, the full list of reasons follows, each with its remedy.
    let reasons_follow = !record.validity.valid && !record.validity.reasons.is_empty();
    let reason = judged
        .filter(|_| !reasons_follow)
        .map(|v| text::with_code(&reason_sentence(record, &v.reason)))
        .unwrap_or_default();
    let Some(outcome) = outcome else {
        if !record.uses.is_empty() {
            let shown = headline::shown_uses(record);
            let (word, class) = of_ladder(&shown);
            return Headline { word, class, sentence: format!("{}.", headline::ladder(&shown)), reason };
        }
        let answer = headline::headline(record);
        let (sentence, rest) = short_and_rest(&answer.text);
        let (word, class) = match (&record.recommendation, &record.buffer, answer.ink) {
            (Some(advice), ..) if advice.pair.is_empty() => ("NOT DECIDED", "measured"),
            (Some(advice), ..) if advice.certain => ("RECOMMENDED", "pass"),
            (None, Some(_), Ink::Good) => ("HELD", "pass"),
            (None, Some(_), Ink::Bad) => ("NONE HELD", "fail"),
            (None, Some(_), _) => ("NOT DECIDED", "measured"),
            _ => ("MEASURED", "measured"),
        };
        return Headline { word, class, sentence, reason: text::with_code(&rest) };
    };
    let requested = requested_titles(record, outcome);
    let sentence = match outcome {
        Outcome::Pass => format!("On time for {requested}."),
        Outcome::Fail => format!("Not on time for {requested}."),
        Outcome::Inconclusive if is_clean_so_far(record) => format!("None late so far for {requested}."),
        Outcome::Inconclusive => format!("Not shown for {requested}."),
        Outcome::Invalid => "The run did not go as requested.".to_owned(),
    };
    Headline { word: outcome.name(), class: class(outcome), sentence, reason }
}

/// Splits a long answer into the sentence for the headline and the rest. A sentence is never cut.
pub fn short_and_rest(answer: &str) -> (String, String) {
    /// The longest headline of several sentences, characters.
    const SEVERAL: usize = 200;
    if answer.chars().count() <= LARGE {
        return (answer.to_owned(), String::new());
    }
    let end = answer.find(". ").filter(|&at| at < LARGE || answer.chars().count() > SEVERAL);
    match end {
        Some(at) => (format!("{}.", &answer[..at]), sentence(&answer[at + 2..])),
        None => (answer.to_owned(), String::new()),
    }
}

/// True if the only thing missing for PASS on the requested uses is time.
fn is_clean_so_far(record: &Record) -> bool {
    let mut open = record.uses.iter().filter(|a_use| {
        a_use.outcome == Outcome::Inconclusive
            && record.scenario.profiles.iter().any(|name| is_profile(name, &a_use.profile))
    });
    open.next().is_some_and(|first| first.clean_so_far && open.all(|a_use| a_use.clean_so_far))
}

/// The titles of the requested uses with this outcome, which decide the verdict.
fn requested_titles(record: &Record, outcome: Outcome) -> String {
    let judged = |requested: &String| record.uses.iter().find(|u| is_profile(requested, &u.profile));
    let decides = |requested: &&String| judged(requested).is_none_or(|u| u.outcome == outcome);
    let title = |requested: &String| judged(requested).map_or_else(|| requested.clone(), |u| u.title.clone());
    let titles: Vec<String> = record.scenario.profiles.iter().filter(decides).map(title).collect();
    if titles.is_empty() { "the requested uses".to_owned() } else { titles.join(", ") }
}

/// The word for the uses on the short ladder, with the CSS class of the terminal's mark.
fn of_ladder(uses: &[&UseVerdict]) -> (&'static str, &'static str) {
    match headline::ink_of_uses(uses) {
        Ink::Good => ("ALL HOLD", class(Outcome::Pass)),
        Ink::Bad if uses.iter().all(|a_use| a_use.outcome == Outcome::Fail) => ("NONE HOLDS", class(Outcome::Fail)),
        Ink::Bad => ("NOT ALL HOLD", class(Outcome::Fail)),
        _ => ("NOT SHOWN", class(Outcome::Inconclusive)),
    }
}

/// The key figures.
pub fn keys(record: &Record) -> Vec<Key> {
    if is_noise(record) {
        return noise::keys(record);
    }
    let audio = audio::keys(record);
    if !audio.is_empty() {
        return audio;
    }
    let round_trips = round_trip::keys(record);
    if !round_trips.is_empty() {
        return round_trips;
    }
    let of_matrix = matrix::keys(record);
    if !of_matrix.is_empty() {
        return of_matrix;
    }
    let of_stream = stream::keys(record);
    if !of_stream.is_empty() {
        return of_stream;
    }
    let of_capture = capture::keys(record);
    if !of_capture.is_empty() {
        return of_capture;
    }
    let of_program = process::keys(record);
    if !of_program.is_empty() {
        return of_program;
    }
    let all: Vec<&Series> = record.probe_series().collect();
    // The way to the thread is a part of that to the answer.
    let main = all.iter().map(|series| series.kind.properties().measured).min();
    let series = || all.iter().copied().filter(|series| Some(series.kind.properties().measured) == main);
    let words = Words::of_all(series());
    let mut keys = Vec::new();
    if record.published.is_some() {
        return keys;
    }
    if let Some((worst, max_ns)) = series().filter_map(|s| Some((s, s.max_ns?))).max_by_key(|(_, max)| *max) {
        let mut detail = lines::name(worst);
        if let Some(at_ns) = worst.max_at_ns {
            let _ = write!(detail, ", at {:.1} s", at_ns as f64 / 1e9);
        }
        keys.push(Key { label: words.largest, value: format_ns(max_ns), detail });
    }
    let p99_9 = series().filter_map(|s| Some((s, Summary::of(s).p99_9_ns?)));
    if let Some((worst, value_ns)) = p99_9.max_by_key(|(_, value)| *value) {
        let detail = lines::name(worst);
        keys.push(Key { label: "worst series, p99.9", value: format_ns(value_ns), detail });
    }
    let samples = series().map(|s| s.samples).fold(0, u64::saturating_add);
    let absent = series().map(Series::absent).fold(0, u64::saturating_add);
    let label = if words.is_periodic { "missed deadlines" } else { "missed" };
    let unknown = series().filter_map(|series| series.kind.responses()).map(record::Responses::without_known_time);
    let whole = unknown.fold(samples.saturating_add(absent), u64::saturating_add);
    let detail = format!("of {}", grouped(whole));
    keys.push(Key { label, value: grouped(absent), detail });
    let duration_ns = record.phases.iter().fold(0u64, |sum, phase| sum.saturating_add(phase.duration_ns));
    let detail = format!("{} in {} series", counted_items(&all), all.len());
    keys.push(Key { label: "measured", value: format_duration(duration_ns), detail });
    keys
}

/// The uses in the record's order, from the least to the most demanding: those shown in full, and the others.
///
/// Shown in full are requested uses and those of the short ladder, or all if they are few.
pub fn ladder(record: &Record) -> (Vec<Rung<'_>>, Vec<Rung<'_>>) {
    let values = record.uses.iter().flat_map(|u| [Some(u.limit_ns), u.worst_ns]).flatten();
    let axis = svg::lateness_axis(values, 100.0, 2.0, 198.0);
    let requested =
        |of: &UseVerdict| record.scenario.profiles.iter().any(|requested| is_profile(requested, &of.profile));
    let few = record.uses.len() <= 12;
    let rungs = record.uses.iter().map(|of| rung(of, record.published.is_some(), axis));
    rungs.partition(|rung| few || requested(rung.of) || analysis::on_short_ladder(rung.of))
}

/// The uses with the same answer.
pub struct Answer {
    /// CSS class, which includes a mark.
    pub class: &'static str,
    /// `yes`, `no`, etc.
    pub word: &'static str,
    /// The titles of the uses; of many that do not hold, the least demanding.
    pub uses: String,
}

/// The uses shown in full, grouped by answer; empty if all have the same answer, which is then in the headline.
pub fn answers(ladder: &[Rung]) -> Vec<Answer> {
    let mut groups: Vec<(&Rung, Vec<&str>)> = Vec::new();
    for rung in ladder {
        let title = short(&rung.of.title);
        match groups.iter_mut().find(|(first, _)| first.class == rung.class) {
            Some((_, titles)) => titles.push(title),
            None => groups.push((rung, vec![title])),
        }
    }
    if groups.len() == 1 {
        return Vec::new();
    }
    let answer = |(first, titles): (&Rung, Vec<&str>)| Answer {
        class: first.class,
        word: first.answer,
        uses: match titles[..] {
            // The ladder below lists them, with their limits. On a phone, the main culprit follows on the first screen.
            [least, _, _, ..] if first.of.outcome == Outcome::Fail => {
                format!("{least} and {} more demanding uses", titles.len() - 1)
            }
            _ => titles.join("; "),
        },
    };
    let mut answers: Vec<Answer> = groups.into_iter().map(answer).collect();
    answers.sort_by_key(|answer| ["pass", "inconclusive", "fail"].iter().position(|class| *class == answer.class));
    answers
}

/// A title without its explanation in brackets.
pub fn short(title: &str) -> &str {
    title.split(" (").next().unwrap_or_default()
}

fn rung(of: &UseVerdict, published: bool, axis: svg::Axis) -> Rung<'_> {
    Rung {
        of,
        class: class(of.outcome),
        answer: match of.outcome {
            _ if published => "not measured here",
            Outcome::Pass => "yes",
            Outcome::Fail => "no",
            Outcome::Inconclusive if of.clean_so_far => "none late so far",
            Outcome::Inconclusive => "not shown",
            Outcome::Invalid => "invalid",
        },
        reason: text::with_code(&sentence(&of.reason)),
        statement: sentence(&of.statement),
        period: unsigned(of.period_ns),
        limit: format_ns(of.limit_ns),
        worst: of.worst_ns.map_or_else(|| "-".to_owned(), format_ns),
        bar: bar(of, axis),
    }
}

/// A bar up to the worst case, and a line at the limit, on the same logarithmic axis for all uses.
fn bar(of: &UseVerdict, axis: svg::Axis) -> String {
    let at = |ns: i64| svg::number(axis.at(svg::decades(ns as f64, axis.lo)));
    let mut decades = svg::Path::default();
    for tick in svg::log_ticks(axis.lo, axis.hi, text::tick_ns).iter().filter(|t| (t.at - t.at.round()).abs() < 1e-9) {
        decades.move_to(axis.at(tick.at), 15.0).up_or_down(19.0);
    }
    let worst = of
        .worst_ns
        .map_or_else(String::new, |ns| format!("<path class=\"worst\" d=\"M{} 10H{}\"/>", axis.from, at(ns)));
    format!(
        "<svg class=\"bar {}\" viewBox=\"0 0 200 20\" role=\"img\" aria-label=\"worst {}, limit {}\">\
         <path class=\"track\" d=\"M{} 10H{}\"/><path class=\"axis\" d=\"{}\"/>{worst}<path class=\"at\" d=\"M{} 2V18\"/></svg>",
        class(of.outcome),
        of.worst_ns.map_or_else(|| "unknown".to_owned(), format_ns),
        format_ns(of.limit_ns),
        axis.from,
        axis.to,
        decades.d(),
        at(of.limit_ns),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Validity, Verdict};

    fn one(outcome: Outcome) -> UseVerdict {
        UseVerdict { profile: "p".into(), title: "a use".into(), outcome, ..UseVerdict::default() }
    }

    #[test]
    fn the_key_figures_say_what_is_counted() {
        let keys = keys(&crate::words::tests::judged());
        let of = |label: &str| {
            let key = keys.iter().find(|key| key.label == label).unwrap_or_else(|| panic!("{label}"));
            (key.value.as_str(), key.detail.as_str())
        };
        assert_eq!(of("missed"), ("98", "of 1,884"));
        assert_eq!(of("measured").1, "1,884 interrupts, 1,786 answers in 2 series");
        assert_eq!(of("Longest response").0, "1.79 us");
    }

    #[test]
    fn the_headline_shows_the_verdict() {
        let mut record = Record { validity: Validity { valid: true, reasons: vec![] }, ..Record::default() };
        assert_eq!(headline(&record).word, "MEASURED");
        record.scenario.profiles = vec!["p".into()];
        record.uses = vec![one(Outcome::Fail)];
        record.verdict = Some(Verdict { outcome: Outcome::Fail, reason: "because".into() });
        let head = headline(&record);
        assert_eq!(
            (head.word, head.sentence.as_str(), head.reason.as_str()),
            ("FAIL", "Not on time for a use.", "Because.")
        );
        record.validity.valid = false;
        assert_eq!(headline(&record).word, "INVALID");
    }

    #[test]
    fn without_a_requested_profile_the_ladder_has_the_word() {
        use Outcome::{Fail, Inconclusive, Pass};
        let of = |outcomes: &[Outcome]| {
            let uses = outcomes.iter().map(|&outcome| one(outcome)).collect();
            let validity = Validity { valid: true, reasons: vec![] };
            let head = headline(&Record { validity, uses, ..Record::default() });
            (head.word, head.class)
        };
        assert_eq!(of(&[Pass, Pass]), ("ALL HOLD", "pass"));
        assert_eq!(of(&[Pass, Inconclusive]), ("NOT SHOWN", "inconclusive"));
        assert_eq!(of(&[Fail, Fail]), ("NONE HOLDS", "fail"));
        assert_eq!(of(&[Pass, Inconclusive, Fail]), ("NOT ALL HOLD", "fail"));
    }

    #[test]
    fn a_long_answer_has_a_short_headline() {
        assert_eq!(short_and_rest("Worst 3 us late."), ("Worst 3 us late.".to_owned(), String::new()));
        let long = format!("high waited 94 times for lock 0x4, 7.17 ms at most: {} held it.", "low ".repeat(20).trim());
        assert_eq!(short_and_rest(&long), (long.clone(), String::new()), "a sentence is never cut");
        let ends = format!("{long} Listener: 0 of 100 frames lost.");
        assert_eq!(short_and_rest(&ends), (ends.clone(), String::new()), "both ends of a stream");
        let longer = format!("{long} Main cause: the timer was {}late.", "very ".repeat(20));
        assert_eq!(short_and_rest(&longer).0, long);
        let found = format!("Smallest buffer that held: 64 frames. {}", "No xrun. ".repeat(9).trim());
        assert_eq!(short_and_rest(&found).0, "Smallest buffer that held: 64 frames.");
    }

    #[test]
    fn groups_uses_by_answer_unless_the_headline_has_it() {
        use Outcome::{Fail, Pass};
        let axis = svg::lateness_axis(std::iter::empty(), 100.0, 2.0, 198.0);
        let words = |outcomes: &[Outcome]| {
            let uses: Vec<UseVerdict> = outcomes.iter().map(|&outcome| one(outcome)).collect();
            let ladder: Vec<Rung> = uses.iter().map(|of| rung(of, false, axis)).collect();
            answers(&ladder).into_iter().map(|answer| (answer.word, answer.uses)).collect::<Vec<_>>()
        };
        assert_eq!(words(&[Fail, Pass, Fail]), [("yes", "a use".to_owned()), ("no", "a use; a use".to_owned())]);
        assert_eq!(words(&[Fail, Fail]), []);
    }
}
