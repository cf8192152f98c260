//! Compares the answers at an outside judge with the thread that gave them.
//!
//! The way from the kernel's stamp to the thread is a part of the way that the judge measured. A judge whose answer pin
//! floats or touches its question pin reports other edges as answers.

use analysis::{format_ns, format_unsigned_ns};
use record::{Interrupts, Reason, Record, Responses, Series, grouped};

/// Deviation of the judge's clock that is not compared: one part of this many.
const CLOCK_PART: u64 = 50;
/// Interrupts that the thread answered, but that are not in its series: the one that ended the measurement, and the one
/// whose event could not be read.
const UNCOUNTED: u64 = 2;

/// The reason why the responses of a phase cannot be answers of the thread of the same phase.
#[must_use]
pub fn contradiction(record: &Record, phase: &str) -> Option<Reason> {
    let of_phase = || record.series.iter().filter(|series| series.phase == phase);
    let (of_judge, responses) = of_phase().find_map(|series| Some((series, series.kind.responses()?)))?;
    let (of_thread, interrupts) = of_phase().find_map(|series| Some((series, series.kind.interrupts()?)))?;
    let text = too_early(of_judge, responses, of_thread, interrupts)
        .or_else(|| too_many(responses, of_thread.samples, interrupts))?;
    let remedy = format!(
        "check the wiring: connect the answer pin of the judge with {}, and both grounds; question and answer pin must not \
         touch or disturb each other",
        responses.answer_line
    );
    Some(Reason { id: "judge.wiring".to_owned(), text, remedy })
}

/// Answers that were earlier than the thread can have given them. An answer that comes after the next question seems to be
/// that of the next one, and its own question is then missed. The times of interrupts that are not in the series are not
/// known.
fn too_early(of_judge: &Series, responses: &Responses, of_thread: &Series, interrupts: &Interrupts) -> Option<String> {
    let (first_ns, least_ns) = (of_judge.min_ns?, u64::try_from(of_thread.min_ns?).ok()?);
    let errors = [least_ns / CLOCK_PART, responses.resolution_ns, interrupts.largest_error_ns()?];
    let bound_ns = least_ns.saturating_sub(errors.into_iter().fold(0, u64::saturating_add));
    let bound_ns = i64::try_from(bound_ns).ok().filter(|&bound_ns| first_ns < bound_ns)?;
    let early = of_judge.raw.total().saturating_sub(of_judge.raw.count_above(bound_ns)).max(1);
    let unseen = interrupts.lost.saturating_add(interrupts.after_end?).saturating_add(UNCOUNTED);
    let possible = responses.missed.saturating_add(responses.unknown()).saturating_add(unseen);
    (interrupts.overruns == 0 && early > possible).then(|| {
        let Responses { judge, answered, .. } = responses;
        format!(
            "{} of {} answers at the judge {judge} cannot be those of the thread: they came {} or more after the question, but \
             the thread woke {} or more after the kernel's stamp",
            grouped(early),
            grouped(*answered),
            format_ns(first_ns),
            format_unsigned_ns(least_ns)
        )
    })
}

/// More answers than interrupts that the thread can have answered.
fn too_many(responses: &Responses, samples: u64, interrupts: &Interrupts) -> Option<String> {
    let after_end = interrupts.after_end?;
    // The kernel does not say how many interrupts it lost when its queue was full.
    if interrupts.overruns > 0 {
        return None;
    }
    let seen = samples.saturating_add(interrupts.lost).saturating_add(after_end);
    (responses.answered > seen.saturating_add(UNCOUNTED)).then(|| {
        format!(
            "the judge {} counts {} answers, but {} caused only {} interrupts",
            responses.judge,
            grouped(responses.answered),
            interrupts.source,
            grouped(seen)
        )
    })
}

#[cfg(test)]
mod tests {
    use record::{Histogram, SeriesKind};

    use super::*;

    /// A run whose thread woke after 95 us or more, with these responses of the judge.
    fn run(
        responses: Responses,
        times: &[(i64, u64)],
        change: impl Fn(&mut Interrupts, &mut Series),
    ) -> Option<Reason> {
        let series = |times: &[(i64, u64)]| {
            let raw = times.iter().fold(Histogram::default(), |mut all, &(ns, count)| {
                all.add(ns, count);
                all
            });
            let [min_ns, max_ns] = [times.iter().map(|time| time.0).min(), times.iter().map(|time| time.0).max()];
            Series { phase: "rest".into(), samples: raw.total(), raw, min_ns, max_ns, ..Series::default() }
        };
        let mut interrupts = Interrupts {
            source: "gpio:gpiochip0/17".into(),
            resolution_ns: Some(1),
            after_end: Some(40),
            ..Interrupts::default()
        };
        let mut of_thread = series(&[(95_000, 5_000), (120_000, 5_000)]);
        change(&mut interrupts, &mut of_thread);
        of_thread.kind = SeriesKind::Interrupts(Box::new(interrupts));
        let answered = times.iter().map(|time| time.1).sum();
        let responses =
            Responses { judge: "J".into(), answer_line: "line 27".into(), answered, resolution_ns: 8, ..responses };
        let of_judge = Series { kind: SeriesKind::Responses(Box::new(responses)), ..series(times) };
        let record = Record { series: vec![of_thread, of_judge], ..Record::default() };
        assert_eq!(contradiction(&record, "load"), None, "another phase");
        contradiction(&record, "rest")
    }

    fn same(_: &mut Interrupts, _: &mut Series) {}

    #[test]
    fn answers_that_are_faster_than_the_thread_are_none() {
        let fast = run(Responses::default(), &[(0, 10_000)], same).unwrap();
        assert_eq!(
            (fast.id.as_str(), fast.text.as_str()),
            (
                "judge.wiring",
                "10,000 of 10,000 answers at the judge J cannot be those of the thread: they came 0 ns or more after the \
                 question, but the thread woke 95 us or more after the kernel's stamp"
            )
        );
        assert!(fast.remedy.starts_with("check the wiring: ") && fast.remedy.contains("line 27"), "{}", fast.remedy);
        let latmon = |resolution_ns| Responses { resolution_ns, ..Responses::default() };
        assert!(run(latmon(1000), &[(24_800, 43), (130_000, 9_957)], same).is_some());
        assert_eq!(
            run(latmon(1000), &[(24_800, 42), (130_000, 9_958)], same),
            None,
            "as many as are not in the series"
        );
        // The clocks differ a little.
        assert_eq!(run(Responses::default(), &[(94_000, 10_000)], same), None);
        assert_eq!(run(Responses::default(), &[(96_000, 10_000)], same), None);
        let of_old_record = |_: &mut Interrupts, series: &mut Series| series.min_ns = None;
        assert_eq!(run(Responses::default(), &[(0, 100)], of_old_record), None, "nothing is known");
    }

    #[test]
    fn an_answer_after_the_next_question_seems_too_early() {
        let late = |missed, without_time| Responses { missed, without_time, ..Responses::default() };
        let times = [(2_000, 45), (130_000, 9_900)];
        assert_eq!(run(late(3, 0), &times, same), None);
        assert_eq!(run(late(1, 2), &times, same), None);
        assert!(run(late(2, 0), &times, same).is_some());
    }

    #[test]
    fn more_answers_than_interrupts_are_none() {
        let times = |count| [(130_000, count)];
        assert_eq!(run(Responses::default(), &times(10_042), same), None, "with those after the end");
        let more = run(Responses::default(), &times(15_000), same).unwrap();
        assert_eq!(more.text, "the judge J counts 15,000 answers, but gpio:gpiochip0/17 caused only 10,040 interrupts");
        assert_eq!(run(Responses::default(), &times(15_000), |figures, _| figures.lost = 5_000), None);
        assert_eq!(run(Responses::default(), &times(15_000), |figures, _| figures.overruns = 1), None);
        assert_eq!(run(Responses::default(), &times(15_000), |figures, _| figures.after_end = None), None);
    }
}
