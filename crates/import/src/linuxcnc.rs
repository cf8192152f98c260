//! Lines of LinuxCNC's `latency-histogram --nox` (`scripts/latency-histogram`): smallest and largest difference between
//! interval and period since the start.

use std::collections::BTreeMap;

use record::Figures;

use crate::{Ending, Format, Imported, Mistake, Unit, another_run, caveat, cells::to_ns};

/// The format.
pub struct Lines;

impl Format for Lines {
    fn name(&self) -> &'static str {
        "LinuxCNC latency-histogram --nox"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(|line| thread(line).is_some())
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let mut threads = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some((name, seconds, rest)) = thread(line) else { continue };
            let jitter =
                jitter_ns(rest).ok_or_else(|| Mistake::new(number, format!("{line:?} must have min and max in us")))?;
            // The lines of a run are about the whole time since its start.
            if threads.insert(name, (seconds, jitter)).is_some_and(|(before, _)| seconds < before) {
                return Err(another_run(number));
            }
        }
        let mut imported = Imported { tool: "latency-histogram".to_owned(), ..Imported::default() };
        for (name, (seconds, (min_ns, max_ns))) in threads {
            imported.figures.push(Figures {
                probe: record::TIMER.to_owned(),
                phase: "latency-histogram".to_owned(),
                role: name.to_owned(),
                duration_ns: u64::checked_mul(seconds, 1_000_000_000),
                jitter_ns: Some(min_ns.unsigned_abs().max(max_ns.unsigned_abs())),
                note: format!("Interval minus period from {min_ns} to {max_ns} ns."),
                ..Figures::default()
            });
        }
        if imported.figures.is_empty() {
            return Err(Mistake::new(0, "it has no line of the base or the servo thread"));
        }
        imported.caveats.extend([caveat("mixed", JITTER), caveat("units", DEVIATION)]);
        Ok(imported)
    }
}

/// The caveat about the quantity.
const JITTER: &str = "LinuxCNC measures |interval - period|, not lateness: a constant lateness is not seen, and one late wake-up counts \
                      twice";
/// The caveat about the standard deviation.
const DEVIATION: &str = "the standard deviation is left out, because it overflows above 46 us in old versions";

/// The thread, the seconds and the rest of `   12 s  servo min: -12.345 us max:  23.456 us sdev:   1.234 us`.
fn thread(line: &str) -> Option<(&str, u64, &str)> {
    let (head, rest) = line.split_once(" min:")?;
    let words: Vec<&str> = head.split_whitespace().collect();
    let [seconds, "s", name @ ("base" | "servo")] = words[..] else { return None };
    Some((name, seconds.parse().ok()?, rest))
}

/// Min and max of ` -12.345 us max:  23.456 us sdev:   1.234 us`.
fn jitter_ns(rest: &str) -> Option<(i64, i64)> {
    let (min, rest) = rest.split_once(" us max:")?;
    let (max, _) = rest.split_once(" us")?;
    let ns = |us: &str| to_ns(us.trim().parse::<f64>().ok().filter(|us| us.is_finite())?, 1e3);
    Some((ns(min)?, ns(max)?)).filter(|(min, max)| min <= max)
}
