//! Logs of the reference application of RTC-Testbench (`src/log.c`, `log_add_traffic_class`): a line for each interval, with
//! the statistics since the start.

use std::collections::BTreeMap;

use record::{Figures, grouped};

use crate::{Ending, Format, Imported, Mistake, Unit, another_run, caveat, cells::time_ns};

/// The format.
pub struct Log;

impl Format for Log {
    fn name(&self) -> &'static str {
        "RTC-Testbench, log"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(is_statistics)
    }

    fn ending(&self) -> Ending {
        Ending::Closed
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let (whole, is_cut) = match text.rsplit_once('\n') {
            Some((whole, rest)) => (whole, !rest.is_empty()),
            None => ("", true),
        };
        let lines: Vec<(usize, &str)> = (1..).zip(whole.lines()).filter(|(_, line)| is_statistics(line)).collect();
        check_sequence(&lines)?;
        let (Some(first), Some(&(number, line))) = (lines.first(), lines.last()) else {
            return Err(Mistake::new(0, "it has no whole line with RttMin and RttMax"));
        };
        let values = values(line);
        let classes = values.keys().filter_map(|key| key.strip_suffix("Sent"));
        let mut imported = Imported { tool: "RTC-Testbench".to_owned(), ..Imported::default() };
        if is_cut {
            imported.caveats.push(caveat("cut", "the last line has no end, so it is left out"));
        }
        let started_s = first.1.trim_start_matches('[').split(']').next().and_then(seconds);
        let ended_s = line.trim_start_matches('[').split(']').next().and_then(seconds);
        let duration_ns =
            started_s.zip(ended_s).and_then(|(start, end)| end.checked_sub(start)?.checked_mul(1_000_000_000));
        for class in classes {
            let of = |name: &str| values.get(format!("{class}{name}").as_str()).copied();
            let wrong = |name: &str| Mistake::new(number, format!("{class}{name} must be a number; the line is cut"));
            let count = |name: &str| of(name).and_then(|value| value.parse::<u64>().ok()).ok_or_else(|| wrong(name));
            let (sent, received) = (count("Sent")?, count("Received")?);
            if received == 0 {
                let text = format!("{class}: no frame came back of {} sent; it has no figures", grouped(sent));
                imported.caveats.push(caveat("overflow", text));
                continue;
            }
            if sent > received {
                let (lost, sent) = (grouped(sent - received), grouped(sent));
                let text = format!("{class}: {lost} of {sent} frames had not come back; they are in no figure");
                imported.caveats.push(caveat("overflow", text));
            }
            // Old versions have no one-way times.
            let has_oneway = of("OnewayMax").is_some();
            for (quantity, probe, suffix) in [("Rtt", "udp", ""), ("Oneway", "stream", "/one-way")] {
                if quantity == "Oneway" && !has_oneway {
                    continue;
                }
                let us = |end: &str| {
                    let name = format!("{quantity}{end}");
                    let value = of(&name).and_then(|value| value.parse::<f64>().ok()).filter(|us| us.is_finite());
                    value.ok_or_else(|| wrong(&name))
                };
                let outliers = of(&format!("{quantity}Outliers")).and_then(|value| value.parse().ok());
                imported.figures.push(Figures {
                    probe: probe.to_owned(),
                    phase: "reference".to_owned(),
                    role: format!("{class}{suffix}"),
                    samples: Some(received),
                    duration_ns,
                    min_ns: Some(time_ns(us("Min")?, 1e3, "Min")?),
                    mean_ns: Some(us("Avg")? * 1e3),
                    max_ns: Some(time_ns(us("Max")?, 1e3, "Max")?),
                    late: outliers,
                    ..Figures::default()
                });
            }
        }
        if imported.figures.is_empty() {
            return Err(Mistake::new(number, "no frame came back, so it has no figures"));
        }
        imported
            .caveats
            .push(caveat("mixed", "the times are taken in the application, in whole us, and include both machines"));
        if imported.figures.iter().any(|figures| figures.probe == "stream") {
            let text = "one-way times are right only if the clocks of both machines are synchronised; the file does not say it";
            imported.caveats.push(caveat("units", text));
        }
        Ok(imported)
    }
}

fn is_statistics(line: &str) -> bool {
    line.contains("RttMin=") && line.contains("RttMax=") && line.contains("Sent=")
}

/// # Errors
/// A line has fewer frames than the one before, or lacks one of its values.
fn check_sequence(lines: &[(usize, &str)]) -> Result<(), Mistake> {
    for pair in lines.windows(2) {
        let [(_, before), (number, line)] = pair else { continue };
        if all_sent(line) < all_sent(before) {
            return Err(another_run(*number));
        }
        let found = values(line);
        if let Some(name) = values(before).keys().find(|name| !found.contains_key(*name)) {
            return Err(Mistake::new(*number, format!("it has no {name}, unlike the line before; the line is cut")));
        }
    }
    Ok(())
}

/// The frames that all traffic classes have sent since the start.
fn all_sent(line: &str) -> u64 {
    let sent = values(line).into_iter().filter(|(name, _)| name.ends_with("Sent"));
    sent.filter_map(|(_, count)| count.parse::<u64>().ok()).fold(0, u64::saturating_add)
}

/// The values of `TsnHighSent=12 | TsnHighRttMin=1786 [us] | ...` by name.
fn values(line: &str) -> BTreeMap<&str, &str> {
    let statistics = line.rsplit("]: ").next().unwrap_or(line);
    let parts = statistics.split('|').filter_map(|part| part.trim().trim_start_matches("- ").split_once('='));
    parts.map(|(name, value)| (name, value.trim().trim_end_matches("[us]").trim())).collect()
}

/// Seconds of `    1234.  5678901`, the time of a line.
fn seconds(time: &str) -> Option<u64> {
    time.split('.').next()?.trim().parse().ok()
}
