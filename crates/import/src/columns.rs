//! Two columns: a value, and the number of samples with it.

use record::Figures;

use crate::{
    Format, Imported, Mistake, caveat,
    cells::{Cells, to_ns},
};

/// The format: numbers separated by spaces, a tab, a comma or a semicolon.
pub struct Columns;

impl Format for Columns {
    fn name(&self) -> &'static str {
        "two columns: value in us, number of samples"
    }

    fn is_it(&self, text: &str) -> bool {
        let mut rows = rows(text).peekable();
        rows.peek().is_some() && rows.all(|(_, line)| row(line).is_some())
    }

    fn read(&self, text: &str) -> Result<Imported, Mistake> {
        let mut cells = Cells::default();
        let mut last_ns = None;
        for (number, line) in rows(text) {
            let wrong = || Mistake::new(number, format!("{line:?} is no value with its number of samples"));
            let (value, count) = row(line).ok_or_else(wrong)?;
            let value_ns = to_ns(value, 1e3).ok_or_else(wrong)?;
            if last_ns.is_some_and(|last_ns| value_ns <= last_ns) {
                return Err(Mistake::new(number, format!("{line:?} is not above the row before it")));
            }
            last_ns = Some(value_ns);
            cells.add(value_ns, 1, count).ok_or_else(wrong)?;
        }
        let mut imported = Imported::default();
        imported.caveats.push(caveat("units", "the file does not say its unit; microseconds are assumed"));
        imported.caveats.push(caveat(
            "overflow",
            "the file does not say which times are in a row, nor the exact maximum: each row counts as its value",
        ));
        let mut figures =
            Figures { probe: record::TIMER.to_owned(), phase: "columns".to_owned(), ..Figures::default() };
        cells.fill(&mut figures);
        imported.figures.push(figures);
        Ok(imported)
    }
}

/// The lines except comments, empty ones and a heading, with their numbers.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';'])).peekable();
    let _heading = lines.next_if(|(_, line)| line.starts_with(|first: char| first.is_alphabetic() || first == '"'));
    lines
}

fn row(line: &str) -> Option<(f64, u64)> {
    let (value, count) = line.split_once([' ', '\t', ',', ';'])?;
    let value: f64 = value.parse().ok()?;
    Some((value, count.trim_matches([' ', '\t', ',', ';']).parse().ok()?)).filter(|_| value.is_finite())
}
