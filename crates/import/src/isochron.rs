//! The summary of `isochron report --summary` (`isochron/stats.c`, `isochron_print_metric_stats`): a line for each metric,
//! in ns.

use record::Figures;

use crate::{Ending, Format, Imported, Mistake, Unit, another_run, caveat, cells::to_ns};

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
        let (mut reserves, mut misses): (Vec<&str>, Option<u64>) = (Vec::new(), None);
        for (number, line) in (1..).zip(text.lines()) {
            if let Some((name, _)) = line.split_once(": min ") {
                let metric = metric(line).ok_or_else(|| {
                    Mistake::new(number, format!("{line:?} must have min, max, mean and stddev in ns"))
                })?;
                if imported.figures.iter().any(|known| known.role == metric.role) {
                    return Err(another_run(number));
                }
                reserves.extend(Some(known(name)).filter(|name| is_reserve(name)));
                imported.figures.push(metric);
            } else if let Some((_, rest)) = line.split_once(MISSES) {
                let count = rest.split_whitespace().next().and_then(|count| count.parse().ok());
                misses = Some(count.ok_or_else(|| Mistake::new(number, format!("{line:?} must have a number")))?);
            }
        }
        let has = |role: &str| imported.figures.iter().any(|figures| figures.role == role);
        if text.lines().any(|line| line.trim_end().ends_with("Summary:")) && !has(LAST) {
            return Err(Mistake::new(0, format!("it has no line `{LAST}:`; the report is cut")));
        }
        if reserves.contains(&BUDGET) && misses.is_none() {
            return Err(Mistake::new(0, format!("it has no line `{MISSES}`; the report is cut")));
        }
        if let Some(count) = misses {
            match imported.figures.iter_mut().find(|figures| figures.role == SENT) {
                Some(sent) => sent.missed = Some(count),
                None => imported
                    .caveats
                    .push(caveat("omission", format!("{count} frames missed the deadline of their transmission"))),
            }
        }
        let of_frames = |line: &&str| FRAMES.iter().any(|start| line.contains(start));
        let lost = text.lines().filter(of_frames).map(|line| caveat("omission", format!("isochron: {}", line.trim())));
        imported.caveats.extend(lost);
        if let Some(line) = text.lines().find(|line| line.contains("not synchronized")) {
            let text =
                format!("the clocks were not synchronised, so times between two machines are wrong: {}", line.trim());
            imported.caveats.push(caveat("clock", text));
        }
        imported.caveats.push(caveat("mixed", CLOCKS));
        imported.caveats.extend(reserves.into_iter().map(|name| {
            let text = format!(
                "`{name}` is time that was left, so its smallest value is the worst: it is imported as `{}`, with the sign \
                 reversed, so that early frames have negative times",
                role_of(name)
            );
            caveat("reversed", text)
        }));
        Ok(imported)
    }
}

/// The time that was left before the scheduled time of a frame.
const BUDGET: &str = "Application latency budget";
/// The same metric with the sign reversed, as isochron prints it if the network card waits for the scheduled time.
const SENT: &str = "MAC latency";
/// Arrivals, by the sign of their mean. isochron prints early ones with the sign reversed.
const ARRIVED_EARLY: &str = "Packets arrived earlier than scheduled. HW RX timestamp to TX time";
const ARRIVED_LATE: &str = "Packets arrived later than scheduled. TX time to HW RX timestamp";
/// The role of arrivals of both signs.
const ARRIVED: &str = "TX time to HW RX timestamp";
/// The last metric.
const LAST: &str = "Arrival latency";
/// The only time of a timer: the wake-up of the sender.
const WAKE_UP: &str = "Wakeup latency";
/// The line about missed deadlines, which follows the application latency budget.
const MISSES: &str = "HW TX deadline misses:";

/// The name of a metric without a text before it, such as the time of a console.
fn known(name: &str) -> &str {
    let names = [
        BUDGET,
        SENT,
        ARRIVED_EARLY,
        ARRIVED_LATE,
        LAST,
        WAKE_UP,
        "Path delay",
        "Wakeup to HW TX timestamp",
        "Sender latency",
        "Driver latency",
    ];
    let found = names.into_iter().find_map(|known| name.strip_suffix(known).map(str::len));
    found.map_or(name.trim(), |begin| &name[begin..])
}

/// True for a metric whose largest value is the best one.
fn is_reserve(name: &str) -> bool {
    [BUDGET, ARRIVED_EARLY].contains(&name)
}

/// The role of a metric: one for each quantity, of both signs.
fn role_of(name: &str) -> &str {
    match name {
        BUDGET => SENT,
        ARRIVED_EARLY | ARRIVED_LATE => ARRIVED,
        _ => name,
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
    let name = known(name);
    let words: Vec<&str> = rest.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let [min, "max", max, "mean", mean, "stddev", ..] = words[..] else { return None };
    let (min_ns, max_ns) = (min.parse::<i64>().ok()?, max.parse::<i64>().ok()?);
    let mean_ns: f64 = mean.parse().ok().filter(|mean: &f64| mean.is_finite())?;
    to_ns(mean_ns, 1.0)?;
    let (min_ns, mean_ns, max_ns) = match is_reserve(name) {
        true => (max_ns.checked_neg()?, -mean_ns, min_ns.checked_neg()?),
        false => (min_ns, mean_ns, max_ns),
    };
    let probe = if name == WAKE_UP { record::TIMER } else { "stream" };
    (min_ns <= max_ns).then(|| Figures {
        probe: probe.to_owned(),
        phase: "isochron".to_owned(),
        role: role_of(name).to_owned(),
        min_ns: Some(min_ns),
        mean_ns: Some(mean_ns),
        max_ns: Some(max_ns),
        ..Figures::default()
    })
}
