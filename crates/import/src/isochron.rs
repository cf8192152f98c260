//! The summary of `isochron report --summary` (`isochron/stats.c`, `isochron_print_metric_stats`): a line for each metric,
//! in ns.

use record::Figures;

use crate::{Ending, Format, Imported, Mistake, Unit, caveat, cells::to_ns};

/// The format.
pub struct Summary;

impl Format for Summary {
    fn name(&self) -> &'static str {
        "isochron report --summary"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(is_metric)
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let mut imported = Imported { tool: "isochron".to_owned(), ..Imported::default() };
        for (number, line) in (1..).zip(text.lines()) {
            if is_metric(line) {
                let metric = metric(line)
                    .ok_or_else(|| Mistake::new(number, format!("{line:?} must have min, max and mean in ns")))?;
                imported.figures.push(metric);
            } else if let Some(misses) = line.strip_prefix("HW TX deadline misses:") {
                let count = misses.split_whitespace().next().and_then(|count| count.parse().ok());
                let count = count.ok_or_else(|| Mistake::new(number, format!("{line:?} must have a number")))?;
                let budget =
                    imported.figures.iter_mut().find(|figures| figures.role.starts_with("Application latency budget"));
                match budget {
                    Some(budget) => budget.missed = Some(count),
                    None => imported
                        .caveats
                        .push(caveat("omission", format!("{count} frames missed the deadline of their transmission"))),
                }
            }
        }
        let of_frames = |line: &&str| FRAMES.iter().any(|start| line.starts_with(start));
        let lost = text.lines().filter(of_frames).map(|line| caveat("omission", format!("isochron: {}", line.trim())));
        imported.caveats.extend(lost);
        if let Some(line) = text.lines().find(|line| line.contains("not synchronized")) {
            let text =
                format!("the clocks were not synchronised, so times between two machines are wrong: {}", line.trim());
            imported.caveats.push(caveat("clock", text));
        }
        imported.caveats.push(caveat("mixed", CLOCKS));
        if imported.figures.iter().any(|figures| figures.role.starts_with("Packets arrived earlier")) {
            imported
                .caveats
                .push(caveat("folded", "the sign of early arrivals is reversed, because their mean was negative"));
        }
        Ok(imported)
    }
}

/// Lines with the frames that are not in the metrics (`isochron/report.c`).
const FRAMES: [&str; 2] = ["Packets not completely TX timestamped:", "Packets not received:"];
/// The caveat of each result.
const CLOCKS: &str = "each line is another interval of the way of a frame; those between two machines are right only if their clocks are \
                      synchronised; the number of frames is not in the summary";

fn is_metric(line: &str) -> bool {
    line.contains(": min ") && line.contains(" stddev ") && line.contains("min at seqid")
}

/// Reads `Path delay: min 1000 max 1200 mean 1100.500 stddev 20.100, min at seqid 4, max at seqid 9`.
fn metric(line: &str) -> Option<Figures> {
    let (name, rest) = line.split_once(": min ")?;
    let words: Vec<&str> = rest.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let [min, "max", max, "mean", mean, "stddev", ..] = words[..] else { return None };
    let (min_ns, max_ns) = (min.parse::<i64>().ok()?, max.parse::<i64>().ok()?);
    let mean_ns: f64 = mean.parse().ok().filter(|mean: &f64| mean.is_finite())?;
    to_ns(mean_ns, 1.0)?;
    // The wake-up of the sender is the only time of a timer.
    let probe = if name == "Wakeup latency" { record::TIMER } else { "stream" };
    (min_ns <= max_ns).then(|| Figures {
        probe: probe.to_owned(),
        phase: "isochron".to_owned(),
        role: name.to_owned(),
        min_ns: Some(min_ns),
        mean_ns: Some(mean_ns),
        max_ns: Some(max_ns),
        ..Figures::default()
    })
}
