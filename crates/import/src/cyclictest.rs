//! Texts of cyclictest (`src/cyclictest/cyclictest.c`): the lines of its threads, and its histogram. OSADL publishes the rows
//! of the histogram alone.

use std::collections::BTreeMap;

use record::Figures;

use crate::{
    Format, Imported, Mistake, caveat,
    cells::{Cells, omission},
};

/// The output, or the file of `--histfile`.
pub struct Text;

/// The rows of a histogram without comments.
pub struct Rows;

/// The caveat of times whose unit the file does not say.
pub const UNITS: &str =
    "the file does not say its unit; microseconds are assumed, which is wrong for results of cyclictest -N";

impl Format for Text {
    fn name(&self) -> &'static str {
        "cyclictest, text"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(|line| line.starts_with("# Min Latencies:") || line_of_thread(line).is_some())
    }

    fn read(&self, text: &str) -> Result<Imported, Mistake> {
        let mut imported = Imported { tool: "cyclictest".to_owned(), ..Imported::default() };
        imported.caveats.push(caveat("units", UNITS));
        let columns = |name: &str| numbers_after(text, name);
        let least = columns("# Min Latencies:")?;
        let threads = match &least {
            Some(least) => least.len(),
            None => return of_lines(text, imported),
        };
        let (mean, largest) = (columns("# Avg Latencies:")?, columns("# Max Latencies:")?);
        let beyond = columns("# Histogram Overflows:")?;
        let cells = rows(text, threads)?;
        let of =
            |values: &Option<Vec<u64>>, thread: usize| values.as_ref().and_then(|values| values.get(thread).copied());
        for (thread, mut cells) in cells.into_iter().enumerate() {
            cells.beyond = of(&beyond, thread).unwrap_or(0);
            let us = |values| of(values, thread).and_then(|us| i64::try_from(us).ok()?.checked_mul(1_000));
            let mut figures = Figures {
                min_ns: us(&least),
                mean_ns: us(&mean).map(|ns| ns as f64),
                max_ns: us(&largest),
                ..figures(thread)
            };
            imported.caveats.extend(cells.overflow(&format!("thread {thread}")));
            cells.fill(&mut figures);
            imported.figures.push(figures);
        }
        imported
            .caveats
            .push(caveat("omission", "the file does not say the period, nor which deadlines have no sample"));
        Ok(imported)
    }
}

impl Format for Rows {
    fn name(&self) -> &'static str {
        "rows of a histogram of cyclictest"
    }

    fn is_it(&self, text: &str) -> bool {
        let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).peekable();
        lines.peek().is_some() && lines.all(|line| row(line).is_some()) && !Text.is_it(text)
    }

    fn read(&self, text: &str) -> Result<Imported, Mistake> {
        let first = text.lines().find_map(row).ok_or_else(|| Mistake::new(0, "it has no row"))?;
        let mut imported = Imported { tool: "cyclictest".to_owned(), ..Imported::default() };
        imported.caveats.push(caveat("units", UNITS));
        imported
            .caveats
            .push(caveat("overflow", "samples beyond the last cell are not in the file, nor is the maximum"));
        for (thread, cells) in rows(text, first.1.len())?.into_iter().enumerate() {
            let mut figures = figures(thread);
            cells.fill(&mut figures);
            imported.figures.push(figures);
        }
        Ok(imported)
    }
}

/// The figures of a thread; the CPU of a thread is not in the file.
fn figures(thread: usize) -> Figures {
    Figures { probe: record::TIMER.to_owned(), phase: format!("thread-{thread}"), ..Figures::default() }
}

/// A row such as `000004 000033<TAB>000014`: the cell, and the counts of the threads.
fn row(line: &str) -> Option<(u64, Vec<u64>)> {
    let (cell, counts) = line.split_once(' ')?;
    let number =
        |text: &str| text.trim().parse().ok().filter(|_| text.trim().bytes().all(|byte| byte.is_ascii_digit()));
    // Wider than two columns of a table: the numbers are padded with zeros.
    let cell = number(cell).filter(|_| cell.len() >= 6)?;
    let counts =
        counts.split('\t').filter(|count| !count.trim().is_empty()).map(number).collect::<Option<Vec<u64>>>()?;
    (!counts.is_empty()).then_some((cell, counts))
}

/// The cells of each thread. With -H, the rows have one more column, the sum, which is left out.
fn rows(text: &str, threads: usize) -> Result<Vec<Cells>, Mistake> {
    let mut cells = vec![Cells::default(); threads];
    for (number, line) in (1..).zip(text.lines()) {
        let Some((cell, counts)) = row(line) else { continue };
        if counts.len() != threads && counts.len() != threads + 1 {
            return Err(Mistake::new(number, format!("{} counts for {threads} threads", counts.len())));
        }
        for (cells, count) in cells.iter_mut().zip(counts) {
            let from_ns = i64::try_from(cell).ok().and_then(|us| us.checked_mul(1_000));
            let added = from_ns.and_then(|from_ns| cells.add(from_ns, 1_000, count));
            added.ok_or_else(|| Mistake::new(number, "a number is out of range"))?;
        }
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

/// The values of a line such as `T: 0 ( 3431) P:99 I:1000 C: 100000 Min:      7 Act:   10 Avg:   10 Max:      18`, by name.
fn line_of_thread(line: &str) -> Option<BTreeMap<&str, i64>> {
    let rest = line.trim_start().strip_prefix("T:")?;
    let (thread, rest) = rest.split_once('(')?;
    let (_, rest) = rest.split_once(')')?;
    let mut values = BTreeMap::from([("T", thread.trim().parse().ok()?)]);
    // A value follows its name, with or without spaces.
    let spaced = rest.replace(':', ": ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    for name in ["P", "I", "C", "Min", "Avg", "Max"] {
        let at = words.iter().position(|word| word.strip_suffix(':') == Some(name))?;
        values.insert(name, words.get(at + 1)?.parse().ok()?);
    }
    Some(values)
}

/// The last line of each thread: the screen is drawn again and again.
fn of_lines(text: &str, mut imported: Imported) -> Result<Imported, Mistake> {
    let mut threads = BTreeMap::new();
    // Escape sequences move the cursor up before a line.
    for line in text.split(['\n', '\r', '\u{1b}']) {
        let line = line.trim_start_matches(|letter: char| letter == '[' || letter.is_ascii_digit());
        let line = line.strip_prefix('A').unwrap_or(line);
        if let Some(values) = line_of_thread(line) {
            threads.insert(values["T"], values);
        }
    }
    if threads.is_empty() {
        return Err(Mistake::new(0, "it has no line of a thread"));
    }
    for (thread, values) in threads {
        let us = |name: &str| Some(values[name]).filter(|_| values["C"] > 0).and_then(|us| us.checked_mul(1_000));
        let number = usize::try_from(thread).map_err(|_| Mistake::new(0, format!("thread {thread} is none")))?;
        let figures = Figures {
            period_ns: u64::try_from(values["I"]).ok().and_then(|us| us.checked_mul(1_000)),
            samples: u64::try_from(values["C"]).ok(),
            min_ns: us("Min"),
            mean_ns: us("Avg").map(|ns| ns as f64),
            max_ns: us("Max"),
            ..figures(number)
        };
        imported.caveats.extend(omission(&format!("thread {thread}"), figures.max_ns, figures.period_ns));
        imported.figures.push(figures);
    }
    Ok(imported)
}
