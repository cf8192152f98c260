//! The report of LatencyMon, of Windows, as its menu "Copy report text to clipboard" gives it.

use record::{Figures, Machine};

use crate::{Ending, Format, Imported, Mistake, Unit, another_run, caveat, cells::to_ns};

/// The format.
pub struct Report;

impl Format for Report {
    fn name(&self) -> &'static str {
        "LatencyMon, report"
    }

    fn is_it(&self, text: &str) -> bool {
        text.contains("LatencyMon has been analyzing your system") || value(text, PROCESS).is_some()
    }

    fn ending(&self) -> Ending {
        Ending::Any
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let mut titles = (1..).zip(text.lines()).filter(|(_, line)| line.contains("analyzing your system for"));
        if let Some((number, _)) = titles.nth(1) {
            return Err(another_run(number));
        }
        for name in [PROCESS, DPC] {
            let mut lines = (1..).zip(text.lines()).filter(|(_, line)| line.trim_start().starts_with(name));
            if let Some((number, _)) = lines.nth(1) {
                return Err(another_run(number));
            }
        }
        let us = |name: &str| -> Result<Option<f64>, Mistake> {
            let Some((line, value)) = value(text, name) else { return Ok(None) };
            let wrong = |text: &str| Mistake::new(line, format!("`{name}` {text} (got {value:?})"));
            let us = number(value).map_err(wrong)?;
            to_ns(us, 1e3).map(|_| Some(us)).ok_or_else(|| wrong("is out of range"))
        };
        let text_of =
            |name: &str| value(text, name).map(|(_, value)| value.to_owned()).filter(|value| !value.is_empty());
        let mut imported = Imported {
            tool: "LatencyMon".to_owned(),
            machine: Machine {
                hostname: text_of("Computer name"),
                os: text_of("OS version"),
                model: text_of("Hardware"),
                cpu_model: text_of("CPU"),
                ..Machine::default()
            },
            ..Imported::default()
        };
        let duration_ns = duration_ns(text);
        for (role, name) in [("process", "interrupt to process latency"), ("dpc", "interrupt to DPC latency")] {
            let Some(max) = us(&format!("Highest measured {name}"))? else { continue };
            let mean = us(&format!("Average measured {name}"))?;
            imported.figures.push(Figures {
                probe: "interrupt".to_owned(),
                phase: "latencymon".to_owned(),
                role: role.to_owned(),
                duration_ns,
                mean_ns: mean.map(|us| us * 1e3),
                max_ns: to_ns(max, 1e3),
                ..Figures::default()
            });
        }
        for (role, kind) in [("isr", "ISR"), ("dpc", "DPC")] {
            let Some(max) = us(&format!("Highest {kind} routine execution time"))? else { continue };
            let driver = text_of(&format!("Driver with highest {kind} routine execution time"));
            imported.figures.push(Figures {
                probe: "noise".to_owned(),
                phase: "latencymon".to_owned(),
                role: role.to_owned(),
                duration_ns,
                max_ns: to_ns(max, 1e3),
                note: driver.map(|driver| format!("Longest in {driver}.")).unwrap_or_default(),
                ..Figures::default()
            });
        }
        if imported.figures.is_empty() {
            return Err(Mistake::new(0, "it has no latency or execution time; the report is cut"));
        }
        // A part of a report has no title.
        let is_report = text.contains("LatencyMon has been analyzing your system");
        let last = "Driver with highest DPC routine execution time";
        if is_report && text_of(last).is_none() {
            return Err(Mistake::new(0, format!("it has no line `{last}`; the report is cut")));
        }
        imported.caveats.extend([caveat("mixed", BEGIN), caveat("units", SPEED)]);
        Ok(imported)
    }
}

/// Two lines that each report has at most once.
const PROCESS: &str = "Highest measured interrupt to process latency";
const DPC: &str = "Highest measured interrupt to DPC latency";
/// The caveat about the begin of the latencies.
const BEGIN: &str = "the latencies of Windows begin when the interrupt handler runs, so the time from the interrupt to its handler is not in \
                     them; all CPUs are together";
/// The caveat about execution times.
const SPEED: &str =
    "execution times may be calculated for a fixed CPU speed; the number of samples is not in the report";

/// A number with the signs of the language of Windows: `1.234,56`, `1,234.56`, `1 234,56`, `1'234.56` or `1234,56`.
fn number(text: &str) -> Result<f64, &'static str> {
    const WRONG: &str = "must be a number of us";
    let text: String = text.chars().filter(|sign| !(sign.is_whitespace() || ['\'', '’'].contains(sign))).collect();
    let signs: Vec<(usize, char)> = text.char_indices().filter(|(_, sign)| ['.', ','].contains(sign)).collect();
    let has_both = signs.iter().any(|(_, sign)| *sign != signs[0].1);
    let decimal = match signs[..] {
        [] => None,
        // LatencyMon prints two or six digits behind the decimal sign.
        [(at, _)] if text.len() - at == 4 && !text.starts_with('0') => {
            return Err("has a sign that can separate thousands or decimals: write it without thousands separators");
        }
        [(at, _)] => Some(at),
        [.., (at, _)] if has_both => Some(at),
        _ => None,
    };
    let (whole, fraction) = decimal.map_or((text.as_str(), "0"), |at| (&text[..at], &text[at + 1..]));
    let groups: Vec<&str> = whole.split(['.', ',']).collect();
    let is_group = |group: &&str| group.len() == 3;
    let is_grouped = groups.len() == 1 || (1..=3).contains(&groups[0].len()) && groups[1..].iter().all(is_group);
    let has_one_decimal_sign = decimal.is_none_or(|at| !whole.contains(&text[at..=at]));
    let digits = groups.concat();
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_grouped || !has_one_decimal_sign || !is_digits(&digits) || !is_digits(fraction) {
        return Err(WRONG);
    }
    format!("{digits}.{fraction}").parse().map_err(|_| WRONG)
}

/// The value of a line `NAME:   value` or `NAME (µs):   value`, with its line. The sign of the unit can be damaged.
fn value<'a>(text: &'a str, name: &str) -> Option<(usize, &'a str)> {
    (1..).zip(text.lines()).find_map(|(at, line)| {
        let rest = line.trim().strip_prefix(name)?.trim_start();
        let rest = if rest.starts_with('(') { rest.split_once(')')?.1 } else { rest };
        Some((at, rest.trim_start().strip_prefix(':')?.trim()))
    })
}

/// The duration of `... analyzing your system for  0:01:00  (h:mm:ss) on all processors.`
fn duration_ns(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("analyzing your system for")?;
    let parts =
        rest.split_whitespace().next()?.split(':').map(str::parse::<u64>).collect::<Result<Vec<_>, _>>().ok()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?.checked_mul(1_000_000_000)
}
