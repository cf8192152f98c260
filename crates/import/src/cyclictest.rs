//! Texts of cyclictest (`src/cyclictest/cyclictest.c`): the lines of its threads, and its histogram. OSADL publishes the rows
//! of the histogram alone.

use std::collections::BTreeMap;

use record::Figures;

use crate::{
    Ending, Format, Imported, Mistake, Unit, another_run, caveat,
    cells::{Cells, omission, time_ns},
};

/// The output, or the file of `--histfile`.
pub struct Text;

/// The rows of a histogram without comments.
pub struct Rows;

/// The line before the rows in the files of cyclictest, which have a summary after them.
const TITLE: &str = "# Histogram";
/// The first line of the summary after the rows.
const MINIMA: &str = "# Min Latencies:";
/// The line after the rows, and after the sums of the rows.
const OVERFLOWS: &str = "# Histogram Overflows:";

impl Format for Text {
    fn name(&self) -> &'static str {
        "cyclictest, text"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines()
            .any(|line| line.starts_with(MINIMA) || line_of_thread(line).is_some() || wrong_value(line).is_some())
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, unit: Option<Unit>) -> Result<Imported, Mistake> {
        let (stated, mut imported) = (unit, Imported { tool: "cyclictest".to_owned(), ..Imported::default() });
        let (unit, units) = Unit::of(stated, Unit::Us);
        imported.caveats.push(units);
        if text.contains("# Break value:") {
            let text = "a sample above a limit (-b) ended the run, so its length depends on its latencies";
            imported.caveats.push(caveat("stopped", text));
        }
        let begins = |line: &str| line.trim_end() == TITLE || line.starts_with(MINIMA);
        for name in [TITLE, MINIMA] {
            let mut lines = (1..).zip(text.lines()).filter(|(_, line)| begins(line) && line.starts_with(name));
            if let Some((number, _)) = lines.nth(1) {
                return Err(another_run(number));
            }
        }
        let lines = lines_of_threads(text)?;
        let policy = policy(text);
        let Some(least) = numbers_after(text, MINIMA)? else {
            return of_lines(lines, policy, stated, unit, imported);
        };
        let threads = least.len();
        let columns = |name: &str| -> Result<Vec<u64>, Mistake> {
            let cut = || Mistake::new(0, format!("it has no line `{name}` with {threads} numbers; the file is cut"));
            numbers_after(text, name)?.filter(|numbers| is_of(numbers, threads)).ok_or_else(cut)
        };
        let (mean, largest, beyond) = (columns("# Avg Latencies:")?, columns("# Max Latencies:")?, columns(OVERFLOWS)?);
        let cells = rows(text, threads, unit)?;
        let totals = numbers_after(text, "# Total:")?.unwrap_or_default();
        for (thread, mut cells) in cells.into_iter().enumerate() {
            if let Some(total) = totals.get(thread).filter(|&&total| total != cells.total()) {
                let text = format!("thread {thread}: the rows have {} samples, `# Total:` has {total}", cells.total());
                return Err(Mistake::new(0, text));
            }
            cells.beyond = beyond[thread];
            // Without samples, the times are the initial ones.
            let has_samples = cells.total() > 0;
            let time = |values: &[u64], name: &str| -> Result<Option<i64>, Mistake> {
                let value = Some(values[thread]).filter(|_| has_samples);
                value.map(|value| time_ns(value as f64, unit.ns() as f64, name)).transpose()
            };
            let mut figures = Figures {
                min_ns: time(&least, MINIMA)?,
                mean_ns: time(&mean, "# Avg Latencies:")?.map(|ns| ns as f64),
                max_ns: time(&largest, "# Max Latencies:")?,
                ..figures(thread)
            };
            let who = format!("thread {thread}");
            // Only without -q, a file has lines of threads, too.
            if let Some(values) = i64::try_from(thread).ok().and_then(|thread| lines.get(&thread)) {
                figures.period_ns = period_ns(values);
                figures.policy = policy_of(policy, values);
            }
            imported.caveats.extend(cells.overflow(&who, figures.max_ns));
            imported.caveats.extend(omission(&who, figures.max_ns, figures.period_ns));
            cells.fill(&mut figures)?;
            imported.figures.push(figures);
        }
        if imported.figures.iter().any(|figures| figures.period_ns.is_none()) {
            imported
                .caveats
                .push(caveat("omission", "the file does not say the period, nor which deadlines have no sample"));
        }
        Ok(imported)
    }
}

impl Format for Rows {
    fn name(&self) -> &'static str {
        "rows of a histogram of cyclictest"
    }

    fn is_it(&self, text: &str) -> bool {
        let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let begins = lines.next().is_some_and(|line| row(line).is_some());
        begins && lines.all(begins_with_digit) && !Text.is_it(text)
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, unit: Option<Unit>) -> Result<Imported, Mistake> {
        let first = text.lines().find_map(row).ok_or_else(|| Mistake::new(0, "it has no row"))?;
        if text.lines().any(|line| line.trim_end() == TITLE) {
            return Err(Mistake::new(0, "it has no line `# Min Latencies:` after its rows; the file is cut"));
        }
        let mut imported = Imported { tool: "cyclictest".to_owned(), ..Imported::default() };
        let (unit, units) = Unit::of(unit, Unit::Us);
        imported.caveats.push(units);
        imported
            .caveats
            .push(caveat("overflow", "samples beyond the last cell are not in the file, nor is the maximum"));
        for (thread, cells) in rows(text, first.1.len(), unit)?.into_iter().enumerate() {
            let (mut figures, highest_ns) = (figures(thread), cells.highest_ns());
            cells.fill(&mut figures)?;
            figures.max_above_ns = highest_ns;
            imported.figures.push(figures);
        }
        Ok(imported)
    }
}

/// The figures of a thread; the CPU of a thread is not in the file.
fn figures(thread: usize) -> Figures {
    Figures { probe: record::TIMER.to_owned(), phase: format!("thread-{thread}"), ..Figures::default() }
}

fn begins_with_digit(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_digit())
}

/// A row such as `000004 000033<TAB>000014`: the cell, and the counts of the threads. Numbers have zeros before them, up to
/// six digits; a shorter one is cut.
fn row(line: &str) -> Option<(u64, Vec<u64>)> {
    let (cell, counts) = line.split_once(' ')?;
    let number = |text: &str| {
        let text = text.trim();
        text.parse().ok().filter(|_| text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let cell = number(cell)?;
    let counts =
        counts.split('\t').filter(|count| !count.trim().is_empty()).map(number).collect::<Option<Vec<u64>>>()?;
    (!counts.is_empty()).then_some((cell, counts))
}

/// True for a number for each thread. With -H, there is one more, the sum, which is left out.
fn is_of(numbers: &[u64], threads: usize) -> bool {
    numbers.len() == threads || numbers.len() == threads + 1
}

/// The cells of each thread.
fn rows(text: &str, threads: usize, unit: Unit) -> Result<Vec<Cells>, Mistake> {
    let mut cells = vec![Cells::default(); threads];
    let (mut last, mut has_empty_rows) = (None, false);
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| begins_with_digit(line)) {
        let (cell, counts) = row(line)
            .ok_or_else(|| Mistake::new(number, format!("{line:?} is no row of a histogram; the file is cut")))?;
        if !is_of(&counts, threads) {
            return Err(Mistake::new(number, format!("{} counts for {threads} threads", counts.len())));
        }
        if last.is_some_and(|last| cell <= last) {
            return Err(Mistake::new(number, format!("{line:?} is not above the row before it")));
        }
        last = Some(cell);
        has_empty_rows |= counts.iter().all(|&count| count == 0);
        let wrong = || Mistake::new(number, "a number is out of range");
        let from_ns = i64::try_from(cell).ok().and_then(|cell| cell.checked_mul(unit.ns())).ok_or_else(wrong)?;
        for (cells, count) in cells.iter_mut().zip(counts) {
            cells.add(from_ns, unit.ns(), count).ok_or_else(wrong)?;
            cells.end_ns = from_ns.checked_add(unit.ns());
        }
    }
    // Newer versions leave empty rows out, so the last row is not the last cell.
    if !has_empty_rows {
        cells.iter_mut().for_each(|cells| cells.end_ns = None);
    }
    Ok(cells)
}

/// The numbers of the line that begins with `name`.
fn numbers_after(text: &str, name: &str) -> Result<Option<Vec<u64>>, Mistake> {
    let Some((number, rest)) = (1..).zip(text.lines()).find_map(|(at, line)| Some((at, line.strip_prefix(name)?)))
    else {
        return Ok(None);
    };
    let numbers = rest.split_whitespace().map(str::parse).collect::<Result<Vec<_>, _>>();
    numbers.map(Some).map_err(|_| Mistake::new(number, format!("`{name}` has a word instead of a number")))
}

/// The values of a line such as `T: 0 ( 3431) P:99 I:1000 C: 100000 Min:      7 Act:   10 Avg:   10 Max:      18`, by name;
/// that in parentheses is the id of the thread.
type Values<'a> = BTreeMap<&'a str, i64>;

/// The names of these values.
const NAMES: [&str; 6] = ["P", "I", "C", "Min", "Avg", "Max"];

fn line_of_thread(line: &str) -> Option<Values<'_>> {
    let rest = line.trim_start().strip_prefix("T:")?;
    let (thread, rest) = rest.split_once('(')?;
    let (id, rest) = rest.split_once(')')?;
    let mut values = BTreeMap::from([("T", thread.trim().parse().ok()?), ("id", id.trim().parse().ok()?)]);
    // A value follows its name, with or without spaces.
    let spaced = rest.replace(':', ": ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    for name in NAMES {
        let at = words.iter().position(|word| word.strip_suffix(':') == Some(name))?;
        values.insert(name, words.get(at + 1)?.parse().ok()?);
    }
    if values["C"] < 0 {
        return None;
    }
    let smi = words.iter().position(|word| *word == "SMI:").and_then(|at| words.get(at + 1)?.parse().ok());
    values.extend(smi.map(|smi| ("SMI", smi)));
    Some(values)
}

/// The name of the first value that is no number, in the line of a thread. Each name of the line has one word as its value.
fn wrong_value(line: &str) -> Option<&'static str> {
    line.trim_start().strip_prefix("T:")?;
    let spaced = line.replace(':', ": ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let value = |name: &'static str| {
        let at = words.iter().position(|word| word.strip_suffix(':') == Some(name))?;
        Some((name, words.get(at + 1).filter(|word| !word.ends_with(':'))?.parse::<i64>().is_ok()))
    };
    let values = NAMES.map(value).into_iter().collect::<Option<Vec<_>>>()?;
    values.into_iter().find(|(_, is_number)| !is_number).map(|(name, _)| name)
}

fn period_ns(values: &Values<'_>) -> Option<u64> {
    u64::try_from(values["I"]).ok().and_then(|us| us.checked_mul(1_000))
}

/// The policy in `policy: fifo: loadavg: 0.08 0.03 0.05 1/101 3431`, which is printed above the lines of the threads.
fn policy(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.split_once("policy: ")?.1.split(':').next())
}

/// The policy of a thread; empty if unknown.
fn policy_of(policy: Option<&str>, values: &Values<'_>) -> String {
    match policy {
        Some(name @ ("fifo" | "rr")) => format!("{name}:{}", values["P"]),
        Some(name @ ("other" | "batch" | "idle")) => name.to_owned(),
        _ => String::new(),
    }
}

/// The last line of each thread, by its number: the screen is drawn again and again.
fn lines_of_threads(text: &str) -> Result<BTreeMap<i64, Values<'_>>, Mistake> {
    let (mut threads, mut cut): (BTreeMap<i64, Values<'_>>, Vec<(usize, &str)>) = Default::default();
    // Escape sequences move the cursor up before a line.
    let parts =
        (1..).zip(text.lines()).flat_map(|(number, line)| line.split(['\r', '\u{1b}']).map(move |part| (number, part)));
    for (number, line) in parts {
        let line = line.trim_start_matches(|letter: char| letter == '[' || letter.is_ascii_digit());
        let line = line.strip_prefix('A').unwrap_or(line);
        match line_of_thread(line) {
            Some(values) => {
                // Until a thread has started, its id is 0.
                let is_other = |known: &Values<'_>| known["id"] != 0 && known["id"] != values["id"];
                if threads.get(&values["T"]).is_some_and(is_other) {
                    return Err(another_run(number));
                }
                threads.insert(values["T"], values);
            }
            None if wrong_value(line).is_some() => {
                let name = wrong_value(line).unwrap_or_default();
                return Err(Mistake::new(number, format!("{line:?}: the value of `{name}` is no number")));
            }
            // With --spike, `T: 1 Spike:    1322: TS:   6361195760` follows for each long latency.
            None if line.trim_start().starts_with("T:") && line.contains(" Spike:") => {}
            None if line.trim_start().starts_with("T:") => cut.push((number, line)),
            None => {}
        }
    }
    // The last of many lines of a thread can be cut.
    let is_known = |line: &str| {
        let thread = line.trim_start().strip_prefix("T:").and_then(|rest| rest.split('(').next()?.trim().parse().ok());
        thread.is_some_and(|thread: i64| threads.contains_key(&thread))
    };
    match cut.into_iter().find(|(_, line)| !is_known(line)) {
        Some((number, line)) => {
            Err(Mistake::new(number, format!("{line:?} is no whole line of a thread; the file is cut")))
        }
        None => Ok(threads),
    }
}

/// Threads without lines that a caveat names.
const MISSING_MAX: usize = 20;

/// The figures of threads without a histogram.
fn of_lines(
    threads: BTreeMap<i64, Values<'_>>,
    policy: Option<&str>,
    stated: Option<Unit>,
    unit: Unit,
    mut imported: Imported,
) -> Result<Imported, Mistake> {
    if threads.is_empty() {
        return Err(Mistake::new(0, "it has no line of a thread"));
    }
    let missing: Vec<String> = (0..threads.keys().next_back().copied().unwrap_or(0))
        .filter(|thread| !threads.contains_key(thread))
        .take(MISSING_MAX)
        .map(|thread| thread.to_string())
        .collect();
    if !missing.is_empty() {
        imported.caveats.push(caveat("cut", format!("the file lacks the lines of threads {}", missing.join(", "))));
    }
    for (thread, values) in threads {
        let time = |name: &str| -> Result<Option<i64>, Mistake> {
            let value = Some(values[name]).filter(|_| values["C"] > 0);
            value.map(|value| time_ns(value as f64, unit.ns() as f64, name)).transpose()
        };
        let number = usize::try_from(thread).map_err(|_| Mistake::new(0, format!("thread {thread} is none")))?;
        let figures = Figures {
            policy: policy_of(policy, &values),
            period_ns: period_ns(&values),
            samples: u64::try_from(values["C"]).ok(),
            min_ns: time("Min")?,
            mean_ns: time("Avg")?.map(|ns| ns as f64),
            max_ns: time("Max")?,
            note: values.get("SMI").map(|smi| format!("{smi} system management interrupts")).unwrap_or_default(),
            ..figures(number)
        };
        if stated.is_none() && values["Avg"] > values["I"] {
            let text = format!(
                "thread {thread}: its mean is longer than its period, as with cyclictest -N: then read the file with --unit ns"
            );
            imported.caveats.push(caveat("units", text));
        }
        imported.caveats.extend(omission(&format!("thread {thread}"), figures.max_ns, figures.period_ns));
        imported.figures.push(figures);
    }
    Ok(imported)
}
