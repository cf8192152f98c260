//! The progress of a run in one plain line, for logs and small terminals.

use std::io::{self, Write};

use analysis::{format_duration, format_ns};
use record::{Record, Series, grouped};

use super::{Progress, running, time_left};
use crate::terminal::noise::lost_by;
use crate::words::counted_items;
use record::visible::one_line;

/// Limits lines to one per second of the run's own clock, and at least one per phase.
#[derive(Debug, Default)]
pub(super) struct Pace {
    last: Option<(usize, u64)>,
}

impl Pace {
    /// Writes the line if a new second or phase has begun.
    pub(super) fn print(&mut self, out: &mut impl Write, record: &Record, progress: &Progress) -> io::Result<()> {
        let now = (progress.phase_index, progress.elapsed_ns / 1_000_000_000);
        if self.last.replace(now) == Some(now) {
            return Ok(());
        }
        writeln!(out, "{}", line(record, progress))
    }
}

/// The phase, the remaining time, samples, missed deadlines, and the worst lateness with its thread.
fn line(record: &Record, progress: &Progress) -> String {
    let all = running(record, progress);
    let left = time_left(progress).map_or_else(
        || format!("{} so far", format_duration(progress.elapsed_ns)),
        |left| match progress.decides {
            true => format!("{left} to PASS if nothing is late"),
            false => format!("{left} left"),
        },
    );
    let worst = all.iter().max_by_key(|series| series.max_ns).and_then(|series| Some((series, series.max_ns?)));
    let worst =
        worst.map_or_else(String::new, |(series, ns)| format!(", worst {} on {}", format_ns(ns), series.place()));
    let phase = one_line(&progress.phase);
    match lost_by(&all) {
        Some(lost) => format!("{phase}: {left}, {}, lost {lost}{worst}", counted_items(&all)),
        None if all.is_empty() => format!("{phase}: {left}, no samples yet"),
        None => {
            let missed = grouped(Series::absent_of_all(&all));
            format!("{phase}: {left}, {}, {missed} missed{worst}", counted_items(&all))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Phase;

    fn example() -> (Record, Progress) {
        let series = |cpu, max_ns| Series {
            phase: "load".into(),
            cpu: Some(cpu),
            samples: 1000,
            max_ns: Some(max_ns),
            ..Series::default()
        };
        let phases = vec![Phase { name: "load".into(), ..Phase::default() }];
        let record = Record { phases, series: vec![series(0, 4_100), series(1, 84_100)], ..Record::default() };
        let progress = Progress {
            phase: "under load".into(),
            elapsed_ns: 17_200_000_000,
            total_ns: Some(30_000_000_000),
            phase_index: 0,
            phase_count: 1,
            decides: false,
        };
        (record, progress)
    }

    #[test]
    fn a_line_shows_remaining_time_and_worst_lateness() {
        let (record, mut progress) = example();
        insta::assert_snapshot!(line(&record, &progress), @"under load: 13 s left, 2,000 wake-ups, 0 missed, worst 84.1 us on CPU 1");
        progress.decides = true;
        let deciding = line(&record, &progress);
        assert!(deciding.starts_with("under load: 13 s to PASS if nothing is late, 2,000 wake-ups"), "{deciding}");
        progress.total_ns = None;
        insta::assert_snapshot!(line(&Record::default(), &progress), @"under load: 17.2 s so far, no samples yet");
    }

    #[test]
    fn interrupts_and_answers_are_counted_apart() {
        let mut progress = example().1;
        progress.phase = "at rest".to_owned();
        let text = line(&crate::words::tests::judged(), &progress);
        assert!(
            text.starts_with("at rest: 13 s left, 1,884 interrupts, 1,786 answers, 98 missed, worst 1.88 us"),
            "{text}"
        );
    }

    #[test]
    fn writes_one_line_per_second_and_phase() {
        let (record, mut progress) = example();
        let (mut pace, mut out) = (Pace::default(), Vec::new());
        for tenth in 0..25 {
            progress.elapsed_ns = tenth * 100_000_000;
            progress.phase_index = usize::from(tenth >= 24);
            pace.print(&mut out, &record, &progress).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 4);
    }
}
