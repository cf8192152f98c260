//! The progress of a run in one plain line, for logs and small terminals.

use std::io::{self, Write};

use analysis::{format_duration, format_ns};
use record::{Record, counted, grouped};

use super::{Progress, running, time_left};
use crate::terminal::noise::lost_by;
use crate::words::Words;
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
    let samples: u64 = all.iter().map(|series| series.samples).sum();
    let missed: u64 = all.iter().map(|series| series.missed).sum();
    let worst = all.iter().max_by_key(|series| series.max_ns).and_then(|series| Some((series, series.max_ns?)));
    let worst =
        worst.map_or_else(String::new, |(series, ns)| format!(", worst {} on {}", format_ns(ns), series.place()));
    let phase = one_line(&progress.phase);
    match lost_by(&all) {
        Some(lost) => format!("{phase}: {left}, {}, lost {lost}{worst}", counted(samples, "gap")),
        None if Words::of(record).is_periodic => {
            format!("{phase}: {left}, {} samples, {} missed{worst}", grouped(samples), grouped(missed))
        }
        None => format!("{phase}: {left}, {} samples{worst}", grouped(samples)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Phase, Series};

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
        insta::assert_snapshot!(line(&record, &progress), @"under load: 13 s left, 2,000 samples, 0 missed, worst 84.1 us on CPU 1");
        progress.decides = true;
        let deciding = line(&record, &progress);
        assert!(deciding.starts_with("under load: 13 s to PASS if nothing is late, 2,000 samples"), "{deciding}");
        progress.total_ns = None;
        insta::assert_snapshot!(line(&Record::default(), &progress), @"under load: 17.2 s so far, 0 samples, 0 missed");
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
