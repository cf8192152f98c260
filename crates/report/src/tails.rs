//! Larger values than a run measured, in words.

use analysis::{FURTHEST, TIMES, YEAR_NS, format_duration, format_ns, format_unsigned_ns, phase_in_words};
use record::{LevelInterval, Tail, TailLevel, TailLimit, TailRefusal, counted};

use crate::words::capitalized;

/// The title of the table.
pub const TITLE: &str = "Larger values than the run showed";
/// The heading of the bounds from causes.
const FROM_CAUSES: &str = "from causes";

/// The explanation below the table: of the levels, and of the bounds from causes.
pub fn notes(tails: &[Tail]) -> String {
    let levels = "Each level is exceeded once in the time of its column on average, if the machine and its load stay as they \
                  were. In brackets: the interval at 95 %.";
    let bounds = "From causes: the worst that the parts seen in the trace could make together.";
    let has = |is: fn(&Tail) -> bool, text| tails.iter().any(is).then_some(text);
    let both = [has(|tail| !tail.levels.is_empty(), levels), has(|tail| tail.from_causes_ns.is_some(), bounds)];
    both.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The threads of a tail: `under load, timer`, `under load, 2 threads`.
pub fn threads(tail: &Tail) -> String {
    let mut parts = vec![phase_in_words(&tail.phase, tail.period_ns)];
    parts.extend(Some(tail.role.clone()).filter(|role| !role.is_empty() && role != record::TIMER));
    if tail.threads > 1 {
        parts.push(counted(tail.threads, "thread"));
    }
    parts.extend(tail.host.as_ref().map(|host| format!("on {host}")));
    parts.join(", ")
}

/// The headings and the rows of the table: for each tail one by blocks, and one by peaks if it has them. No rows if all tails
/// were refused and have no bound from causes.
pub fn table(tails: &[Tail]) -> (Vec<String>, Vec<Vec<String>>) {
    let times: Vec<(&str, u64)> =
        TIMES.into_iter().filter(|(_, ns)| tails.iter().any(|tail| level_of(tail, *ns).is_some())).collect();
    let has_bounds = tails.iter().any(|tail| tail.from_causes_ns.is_some());
    let headings = ["", "measured"]
        .map(str::to_owned)
        .into_iter()
        .chain(times.iter().map(|(name, _)| format!("in {name}")))
        .chain(has_bounds.then(|| FROM_CAUSES.to_owned()))
        .collect();
    let mut rows = Vec::new();
    for tail in tails.iter().filter(|tail| !tail.levels.is_empty() || tail.from_causes_ns.is_some()) {
        let mut add = |name: String, max: String, of: fn(&TailLevel) -> Option<LevelInterval>, bound: String| {
            let levels =
                times.iter().map(|(_, ns)| level_of(tail, *ns).and_then(of).map_or_else(|| "-".into(), interval));
            rows.push([name, max].into_iter().chain(levels).chain(has_bounds.then_some(bound)).collect());
        };
        let bound = tail.from_causes_ns.map_or_else(|| "-".to_owned(), format_unsigned_ns);
        add(threads(tail), format_ns(tail.max_ns), |level| Some(level.by_blocks), bound);
        if tail.peaks.is_some() {
            add("  by peaks".into(), String::new(), |level| level.by_peaks, String::new());
        }
    }
    (headings, rows)
}

/// The level that a tail exceeds once in this time.
fn level_of(tail: &Tail, once_in_ns: u64) -> Option<&TailLevel> {
    tail.levels.iter().find(|level| level.once_in_ns == once_in_ns)
}

/// `45.2 us (43.1 us to 60.4 us)`.
fn interval(level: LevelInterval) -> String {
    let high = level.high_ns.map_or_else(|| "unknown".to_owned(), format_ns);
    format!("{} ({} to {high})", format_ns(level.estimate_ns), format_ns(level.low_ns))
}

/// The sentences about a tail: its distribution and the limits of uses, or the reason why it has no levels.
pub fn sentences(tail: &Tail) -> Vec<String> {
    let name = capitalized(&threads(tail));
    if let Some(refusal) = tail.refused {
        return vec![format!("{name}: {}.", reason(tail, refusal))];
    }
    let mut sentences = Vec::new();
    if let Some(blocks) = &tail.blocks {
        let of = format!(
            "{name}: from the largest values of {} of {}, with shape {:.2}",
            counted(blocks.count, "block"),
            format_duration(blocks.block_ns),
            blocks.shape
        );
        let peaks = tail.peaks.as_ref().map(|peaks| {
            format!(
                "; by peaks: from {} above {}, with shape {:.2}",
                counted(peaks.count, "window"),
                format_ns(analysis::rounded_ns(peaks.threshold_ns)),
                peaks.shape
            )
        });
        sentences.push(format!("{of}{}.", peaks.unwrap_or_default()));
    }
    sentences.extend(tail.limits.iter().map(limit));
    if tail.levels.iter().all(|level| level.once_in_ns < YEAR_NS) {
        let needed = format_duration(YEAR_NS / FURTHEST);
        sentences.push(format!("A level of a year needs a run of at least {needed}."));
    }
    sentences
}

/// `More than 100 us: most likely once in 2 d 03 h; at most once in 5 h, at 97.5 %.`
fn limit(limit: &TailLimit) -> String {
    let (more, least) = (format_ns(limit.limit_ns), format_duration(limit.at_least_ns));
    match limit.once_in_ns {
        Some(once_in_ns) => {
            format!(
                "More than {more}: most likely once in {}; at most once in {least}, at 97.5 %.",
                format_duration(once_in_ns)
            )
        }
        None => format!("More than {more}: at most once in {least}, at 97.5 %."),
    }
}

/// The tail of an unfinished run in one line: `an hour 61.4 us (56.0 us to 75.0 us), ...`; `None` if nothing can be said.
pub fn so_far(tail: &Tail) -> Option<String> {
    if let Some(refusal) = tail.refused {
        return (refusal != TailRefusal::TooShort).then(|| reason(tail, refusal));
    }
    let level = |(name, ns): (&str, u64)| Some(format!("{name} {}", interval(level_of(tail, ns)?.by_blocks)));
    let limit = |limit: &TailLimit| {
        let (more, least) = (format_ns(limit.limit_ns), format_duration(limit.at_least_ns));
        format!("more than {more} at most once in {least}")
    };
    let parts: Vec<String> = TIMES.into_iter().filter_map(level).chain(tail.limits.iter().map(limit)).collect();
    (!parts.is_empty()).then(|| format!("once in {}", parts.join(", ")))
}

/// Why a run says nothing about larger values.
fn reason(tail: &Tail, refusal: TailRefusal) -> String {
    let windows = format!("{} of {}", counted(tail.windows, "window"), format_unsigned_ns(tail.window_ns));
    match refusal {
        TailRefusal::TooShort => {
            format!("no statement, because the run has {windows}, and {} are needed", analysis::LEAST_WINDOWS)
        }
        TailRefusal::FewValues => format!("no statement, because too few of the largest values of {windows} differ"),
        TailRefusal::NotStationary => {
            "no statement, because the largest values rose, fell, or changed to another level during the run".into()
        }
        TailRefusal::NotIndependent => "no statement, because large values come in bursts".into(),
        TailRefusal::DoesNotFit => {
            format!("no statement, because the largest values of {windows} have no extreme-value distribution")
        }
        TailRefusal::SecondCause => {
            "no statement, because some of the largest values are apart from the others: they have a \
                                     rare cause of their own, whose largest value is unknown"
                .into()
        }
        TailRefusal::TooHeavy => "no statement, because the tail is so heavy that it has no mean".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{TailBlocks, TailPeaks};

    fn fitted() -> Tail {
        let level = |estimate_ns: i64, high_ns| LevelInterval { estimate_ns, low_ns: estimate_ns - 5_000, high_ns };
        Tail {
            phase: "load".into(),
            role: "timer".into(),
            threads: 2,
            windows: 600,
            window_ns: 1_000_000_000,
            max_ns: 52_100,
            blocks: Some(TailBlocks { count: 150, block_ns: 4_000_000_000, shape: 0.04, ..TailBlocks::default() }),
            peaks: Some(TailPeaks { count: 60, threshold_ns: 40_000.4, shape: -0.1, ..TailPeaks::default() }),
            levels: vec![
                TailLevel {
                    once_in_ns: TIMES[0].1,
                    by_blocks: level(58_300, Some(71_000)),
                    by_peaks: Some(level(57_000, Some(69_000))),
                },
                TailLevel { once_in_ns: TIMES[1].1, by_blocks: level(70_200, None), by_peaks: None },
            ],
            limits: vec![
                TailLimit { limit_ns: 200_000, once_in_ns: Some(3 * TIMES[1].1), at_least_ns: TIMES[0].1 },
                TailLimit { limit_ns: 900_000, once_in_ns: None, at_least_ns: 12 * TIMES[1].1 },
            ],
            ..Tail::default()
        }
    }

    #[test]
    fn a_row_has_what_is_known() {
        let blocks = ["under load, 2 threads", "52.1 us", "58.3 us (53.3 us to 71 us)", "70.2 us (65.2 us to unknown)"];
        let peaks = ["  by peaks", "", "57 us (52 us to 69 us)", "-"];
        let refused = Tail { levels: Vec::new(), ..fitted() };
        let (headings, rows) = table(&[refused, fitted()]);
        assert_eq!(headings, ["", "measured", "in an hour", "in a day"]);
        assert_eq!(rows, [blocks, peaks]);
    }

    #[test]
    fn bounds_from_causes_have_a_column() {
        let bounded = Tail { from_causes_ns: Some(91_000), ..fitted() };
        let (headings, rows) = table(&[bounded.clone(), fitted()]);
        assert_eq!(headings.last().map(String::as_str), Some("from causes"));
        let last: Vec<&str> = rows.iter().map(|row| row[4].as_str()).collect();
        assert_eq!(last, ["91 us", "", "-", ""]);
        let refused = Tail { levels: Vec::new(), peaks: None, refused: Some(TailRefusal::TooShort), ..bounded };
        assert_eq!(table(std::slice::from_ref(&refused)).1, [["under load, 2 threads", "52.1 us", "91 us"]]);
        assert!(notes(&[refused]).starts_with("From causes: "));
        assert!(!notes(&[fitted()]).contains("From causes"));
    }

    #[test]
    fn sentences_tell_the_origin_and_the_limits() {
        let expected = [
            "Under load, 2 threads: from the largest values of 150 blocks of 4 s, with shape 0.04; by peaks: from 60 \
             windows above 40 us, with shape -0.10.",
            "More than 200 us: most likely once in 3 d; at most once in 1 h, at 97.5 %.",
            "More than 900 us: at most once in 12 d, at 97.5 %.",
            "A level of a year needs a run of at least 52 min 36 s.",
        ];
        assert_eq!(sentences(&fitted()), expected);
    }

    #[test]
    fn a_refused_tail_says_why() {
        let refused = |refusal| Tail { refused: Some(refusal), threads: 1, levels: Vec::new(), ..fitted() };
        let short = Tail { windows: 30, host: Some("board-b".into()), ..refused(TailRefusal::TooShort) };
        assert!(table(std::slice::from_ref(&short)).1.is_empty());
        let expected =
            "Under load, on board-b: no statement, because the run has 30 windows of 1 s, and 50 are needed.";
        assert_eq!(sentences(&short), [expected]);
        for refusal in [
            TailRefusal::FewValues,
            TailRefusal::NotStationary,
            TailRefusal::NotIndependent,
            TailRefusal::DoesNotFit,
            TailRefusal::SecondCause,
            TailRefusal::TooHeavy,
        ] {
            let sentences = sentences(&refused(refusal));
            assert_eq!(sentences.len(), 1);
            assert!(sentences[0].starts_with("Under load: no statement, because "), "{sentences:?}");
        }
    }
}
