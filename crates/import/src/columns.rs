//! Two columns: a value, and the number of samples with it.

use record::Figures;

use crate::{
    Format, Imported, Mistake, Unit, caveat,
    cells::{Cells, to_ns},
};

/// The format: numbers separated by spaces, a tab, a comma or a semicolon.
pub struct Columns;

/// Names of a column with numbers of samples.
const COUNTS: [&str; 8] = ["count", "counts", "number", "samples", "frequency", "occurrences", "hits", "n"];
/// Names of units in a heading.
const UNITS: [(Unit, [&str; 5]); 3] = [
    (Unit::Ns, ["ns", "nsec", "nsecs", "nanosecond", "nanoseconds"]),
    (Unit::Us, ["us", "usec", "usecs", "microsecond", "microseconds"]),
    (Unit::Ms, ["ms", "msec", "msecs", "millisecond", "milliseconds"]),
];

impl Format for Columns {
    fn name(&self) -> &'static str {
        "two columns: value in us, number of samples"
    }

    fn is_it(&self, text: &str) -> bool {
        let mut rows = rows(text).peekable();
        rows.peek().is_some() && rows.all(|(_, line)| pair(line).is_some())
    }

    fn read(&self, text: &str, unit: Option<Unit>) -> Result<Imported, Mistake> {
        let heading = lines(text).next().filter(|(_, line)| is_heading(line));
        let has_heading = heading.is_some();
        let heading = heading.map(|(number, line)| Heading::of(number, line)).transpose()?.unwrap_or_default();
        let (unit, assumed) = match heading.unit {
            Some(unit) => (unit, None),
            None => {
                let (unit, caveat) = Unit::of(unit, Unit::Us);
                (unit, Some(caveat))
            }
        };
        let mut cells = Cells::default();
        let mut last_ns = None;
        for (number, line) in rows(text) {
            let wrong = || Mistake::new(number, format!("{line:?} is no value with its number of samples"));
            let (first, second) = pair(line).ok_or_else(wrong)?;
            let (value, count) = if heading.is_count_first { (second, first) } else { (first, second) };
            let value_ns = value.parse().ok().filter(|value: &f64| value.is_finite());
            let value_ns = value_ns.and_then(|value| to_ns(value, unit.ns() as f64)).ok_or_else(wrong)?;
            if last_ns.is_some_and(|last_ns| value_ns <= last_ns) {
                return Err(Mistake::new(number, format!("{line:?} is not above the row before it")));
            }
            last_ns = Some(value_ns);
            cells.add(value_ns, 1, count.parse().map_err(|_| wrong())?).ok_or_else(wrong)?;
        }
        let mut imported = Imported::default();
        imported.caveats.extend(assumed);
        if !has_heading {
            let text = "the file has no heading: the first column is read as the value, and the second as its number of samples";
            imported.caveats.push(caveat("columns", text));
        }
        imported.caveats.push(caveat(
            "overflow",
            "the file does not say which times are in a row, nor the exact maximum: each row counts as its value",
        ));
        let mut figures =
            Figures { probe: record::TIMER.to_owned(), phase: "columns".to_owned(), ..Figures::default() };
        cells.fill(&mut figures)?;
        imported.figures.push(figures);
        Ok(imported)
    }
}

/// The names of the columns: `latency_us,count`.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Heading {
    /// The unit of the values, if the heading has it.
    unit: Option<Unit>,
    /// True if the number of samples is the first column.
    is_count_first: bool,
}

impl Heading {
    /// Reads a heading. One of its columns must be the number of samples: a table of times and values has none.
    fn of(number: usize, line: &str) -> Result<Self, Mistake> {
        let separator = [';', ',', '\t'].into_iter().find(|separator| line.contains(*separator)).unwrap_or(' ');
        let (first, second) = line.rsplit_once(separator).unwrap_or((line, ""));
        let words = |name: &str| -> Vec<String> {
            name.to_lowercase()
                .replace(['µ', 'μ'], "u")
                .split(|c: char| !c.is_alphabetic())
                .map(str::to_owned)
                .collect()
        };
        let (first, second) = (words(first), words(second));
        let is_count = |name: &[String]| name.iter().any(|word| COUNTS.contains(&word.as_str()));
        let (value, is_count_first) = match (is_count(&first), is_count(&second)) {
            (_, true) => (first, false),
            (true, false) => (second, true),
            (false, false) => {
                return Err(Mistake::new(
                    number,
                    format!("{line:?} names no number of samples: a histogram needs a column `count`"),
                ));
            }
        };
        let unit = UNITS.iter().find(|(_, names)| value.iter().any(|word| names.contains(&word.as_str())));
        Ok(Self { unit: unit.map(|(unit, _)| *unit), is_count_first })
    }
}

/// The lines except comments and empty ones, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';']))
}

fn is_heading(line: &str) -> bool {
    line.starts_with(|first: char| first.is_alphabetic() || first == '"')
}

/// The lines without a heading.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut lines = lines(text).peekable();
    let _heading = lines.next_if(|(_, line)| is_heading(line));
    lines
}

/// Both numbers of a row.
fn pair(line: &str) -> Option<(&str, &str)> {
    let (first, second) = line.split_once([' ', '\t', ',', ';'])?;
    let second = second.trim_matches([' ', '\t', ',', ';']);
    [first, second].iter().all(|number| number.parse::<f64>().is_ok_and(f64::is_finite)).then_some((first, second))
}
