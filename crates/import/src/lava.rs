//! Test results of LAVA with latencies, as punctual exports them as `.lava` and as the scripts of Linaro's test-definitions
//! write them for cyclictest: signals (`<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=t0-max-latency ...>`) and plain lines.

use std::collections::{BTreeMap, HashMap};

use record::Figures;

use crate::{Ending, Format, Imported, Mistake, OWN, Unit, caveat, cells::to_ns};

/// The format.
pub struct Results;

impl Format for Results {
    fn name(&self) -> &'static str {
        "LAVA, results of latencies"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().filter_map(case).any(|case| is_latency(case.id))
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, unit: Option<Unit>) -> Result<Imported, Mistake> {
        let mut imported = Imported::default();
        let (mut cases, mut places): (Vec<Case<'_>>, HashMap<&str, usize>) = Default::default();
        let mut failed = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.contains(SIGNAL) && !line.contains('>') {
                return Err(Mistake::new(number, "the signal has no end `>`; the line is cut"));
            }
            let Some(case) = case(line) else {
                if line.split_whitespace().next().is_some_and(is_latency) {
                    return Err(Mistake::new(
                        number,
                        format!("{line:?} has no result such as `pass 217 us`; the line is cut"),
                    ));
                }
                continue;
            };
            // A line without a measurement can be a sentence.
            let is_result = line.contains(SIGNAL) || case.number().is_some();
            let is_known = case.id.starts_with("punctual-") || failed.contains(&case.id);
            if case.result == "fail" && is_result && !is_known {
                failed.push(case.id);
            }
            match places.get(case.id).map(|&place| &cases[place]) {
                // The same as a signal and as a line, or any other text with these words.
                Some(known) if known == &case || !is_latency(case.id) => {}
                Some(_) => {
                    let text = format!("{} has two results; split the file into its runs", case.id);
                    return Err(Mistake::new(number, text));
                }
                None => {
                    places.insert(case.id, cases.len());
                    cases.push(case);
                }
            }
            let has_latency = |case: &&Case<'_>| is_latency(case.id) && case.value.is_some();
            if let Some(case) = cases.last().filter(has_latency) {
                if case.unit.is_empty() && unit.is_none() {
                    let text = format!("{} has no unit: state it with --unit", case.id);
                    return Err(Mistake::new(number, text));
                }
                if case.ns(unit).is_none() {
                    return Err(Mistake::new(number, format!("{} must be a number of s, ms, us or ns", case.id)));
                }
            }
        }
        let mut threads: BTreeMap<u32, Figures> = BTreeMap::new();
        for case in &cases {
            let (Some((thread, name)), Some(ns)) = (thread(case.id), case.ns(unit)) else { continue };
            let figures = threads.entry(thread).or_insert_with(|| blank(format!("thread-{thread}")));
            match name {
                "min" => figures.min_ns = to_ns(ns, 1.0),
                "avg" => figures.mean_ns = Some(ns),
                _ => figures.max_ns = to_ns(ns, 1.0),
            }
        }
        // The maximum of a thread is in the file twice, by its number and by the name of its series.
        let mut known: HashMap<Option<i64>, usize> = HashMap::new();
        threads.values().for_each(|figures| *known.entry(figures.max_ns).or_default() += 1);
        imported.figures.extend(threads.into_values());
        for case in &cases {
            let (Some(name), Some(ns)) = (series(case.id), case.ns(unit)) else { continue };
            let max_ns = to_ns(ns, 1.0);
            match known.get_mut(&max_ns).filter(|threads| **threads > 0) {
                Some(threads) => *threads -= 1,
                None => imported.figures.push(Figures { role: name.to_owned(), max_ns, ..blank(name.to_owned()) }),
            }
        }
        if imported.figures.is_empty() {
            return Err(Mistake::new(0, "it has no latency with a measurement"));
        }
        let of = |id: &str| places.get(id).map(|&place| &cases[place]);
        for case in cases.iter().filter(|case| is_latency(case.id) && case.value.is_none()) {
            let text = format!("{} has no measurement, but the result {}", case.id, case.result);
            imported.caveats.push(caveat("overflow", text));
        }
        let without_unit = |case: &Case<'_>| is_latency(case.id) && case.value.is_some() && case.unit.is_empty();
        if cases.iter().any(without_unit) {
            imported.caveats.push(Unit::of(unit, Unit::Us).1);
        }
        if !failed.is_empty() {
            imported.caveats.push(caveat("failed", format!("these results are fail: {}", failed.join(", "))));
        }
        if let Some(case) = of("punctual-run") {
            OWN.clone_into(&mut imported.tool);
            measured_by(text, &mut imported);
            imported.caveats.push(caveat("verdict", format!("the result of the run was {}", case.result)));
        }
        if of("punctual-valid").is_some_and(|case| case.result == "fail") {
            imported.caveats.push(caveat("invalid", "the run did not go as requested, so its results are not valid"));
        }
        imported
            .caveats
            .push(caveat("overflow", "results of LAVA have no number of samples, no histogram, period or policy"));
        Ok(imported)
    }
}

/// Reads the comment of punctual about the tool, which a console can prefix with a time: `# measured-by=cyclictest version=2.40
/// probe=timer host=board`.
fn measured_by(text: &str, imported: &mut Imported) {
    let Some(line) = text.lines().find(|line| line.contains("# measured-by=")) else { return };
    let of = |key: &str| line.split(' ').find_map(|word| word.strip_prefix(key)).unwrap_or_default();
    of("measured-by=").clone_into(&mut imported.tool);
    of("version=").clone_into(&mut imported.version);
    let host = Some(of("host=")).filter(|host| !["", "unknown"].contains(host));
    imported.machine.hostname = host.map(str::to_owned);
    if !of("probe=").is_empty() {
        imported.figures.iter_mut().for_each(|figures| of("probe=").clone_into(&mut figures.probe));
    }
}

/// The begin of a signal.
const SIGNAL: &str = "<LAVA_SIGNAL_TESTCASE ";

fn blank(phase: String) -> Figures {
    Figures { probe: record::TIMER.to_owned(), phase, ..Figures::default() }
}

/// A test case with its measurement.
#[derive(Debug, PartialEq)]
struct Case<'a> {
    id: &'a str,
    result: &'a str,
    value: Option<&'a str>,
    unit: &'a str,
}

impl Case<'_> {
    /// The measurement, ns. `stated` is the unit of a result that has none.
    fn ns(&self, stated: Option<Unit>) -> Option<f64> {
        let unit = match self.unit {
            "" => stated?,
            "s" => Unit::S,
            "ms" => Unit::Ms,
            "us" | "µs" => Unit::Us,
            "ns" => Unit::Ns,
            _ => return None,
        };
        let unit_ns = unit.ns() as f64;
        let value = self.number()?;
        to_ns(value, unit_ns).map(|_| value * unit_ns)
    }

    fn number(&self) -> Option<f64> {
        self.value?.parse().ok()
    }
}

/// The number of the thread and the figure of `t0-max-latency`.
fn thread(id: &str) -> Option<(u32, &str)> {
    let (thread, name) = id.strip_prefix('t')?.strip_suffix("-latency")?.split_once('-')?;
    ["min", "avg", "max"].contains(&name).then_some((thread.parse().ok()?, name))
}

/// The series of `punctual-rest-timer-cpu0-max`.
fn series(id: &str) -> Option<&str> {
    id.strip_prefix("punctual-")?.strip_suffix("-max")
}

/// True for a latency of a thread or of a series.
fn is_latency(id: &str) -> bool {
    thread(id).is_some() || series(id).is_some()
}

/// Reads a signal, which a console can prefix with a time, or a line `t0-max-latency pass 217 us`.
fn case(line: &str) -> Option<Case<'_>> {
    if let Some((_, signal)) = line.split_once(SIGNAL) {
        let signal = signal.split('>').next().unwrap_or_default();
        let of = |name: &str| signal.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let (id, result) = (of("TEST_CASE_ID")?, of("RESULT")?);
        return Some(Case { id, result, value: of("MEASUREMENT"), unit: of("UNITS").unwrap_or_default() });
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    // A console can prefix a line with a time.
    let words = &words[words.iter().position(|word| is_latency(word)).unwrap_or(0)..];
    let (id, result, value, unit) = match words[..] {
        [id, result] => (id, result, None, ""),
        [id, result, value] if is_latency(id) => (id, result, Some(value), ""),
        [id, result, value, unit] => (id, result, Some(value), unit),
        _ => return None,
    };
    ["pass", "fail", "skip", "unknown"].contains(&result).then_some(Case { id, result, value, unit })
}
