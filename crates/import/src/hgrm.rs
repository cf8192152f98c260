//! Percentiles as HdrHistogram prints them (`AbstractHistogram.outputPercentileDistribution`), also those that punctual
//! exports as `.hgrm`: a block of rows for each histogram.

use record::Figures;

use crate::{
    Format, Imported, Mistake, Unit, caveat,
    cells::{Cells, to_ns},
};

/// The format.
pub struct Percentiles;

/// The end of the title of a block in exports of punctual, whose values are in microseconds.
const IN_US: &str = ", us";

impl Format for Percentiles {
    fn name(&self) -> &'static str {
        "HdrHistogram, hgrm"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(is_heading)
    }

    fn read(&self, text: &str, unit: Option<Unit>) -> Result<Imported, Mistake> {
        let mut imported = Imported::default();
        let (stated, units) = Unit::of(unit, Unit::Us);
        let (mut title, mut block): (&str, Option<Block>) = ("", None);
        let mut has_unit = true;
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if is_heading(line) {
                imported.figures.extend(block.take().map(Block::end));
                let is_in_us = title.ends_with(IN_US);
                has_unit &= is_in_us;
                let unit = if is_in_us { Unit::Us } else { stated };
                block = Some(Block::new(title.trim_end_matches(IN_US), imported.figures.len(), unit));
            } else if let Some(rest) = line.strip_prefix("#[Max") {
                let Some(block) = &mut block else { continue };
                block.total(line);
                let largest = rest.trim_start().strip_prefix('=').and_then(|rest| rest.split(',').next());
                let largest = largest
                    .and_then(|text| text.trim().parse().ok())
                    .and_then(|value: f64| to_ns(value, block.unit_ns));
                block.figures.max_ns = Some(largest.ok_or_else(|| Mistake::new(number, "its maximum is no number"))?);
            } else if let (Some(block), true) = (&mut block, line.starts_with("#[Total count")) {
                block.total(line);
            } else if let Some(rest) = line.strip_prefix('#') {
                title = rest.trim();
            } else if let (Some(block), false) = (&mut block, line.is_empty()) {
                block
                    .row(line)
                    .ok_or_else(|| Mistake::new(number, format!("{line:?} is no row above the one before")))?;
            }
        }
        imported.figures.extend(block.map(Block::end));
        if !has_unit {
            imported.caveats.push(units);
        }
        if imported.figures.iter().any(|figures| figures.phase.ends_with("corrected")) {
            imported
                .caveats
                .push(caveat("omission", "omitted deadlines were added to the counts, so they are more than samples"));
        }
        imported.caveats.push(caveat("clamped", "values between two rows count as the later row"));
        Ok(imported)
    }
}

fn is_heading(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.starts_with(&["Value", "Percentile", "TotalCount"])
}

/// The rows of one histogram.
struct Block {
    figures: Figures,
    cells: Cells,
    /// Unit of the values, ns.
    unit_ns: f64,
    last: Option<(i64, u64)>,
}

impl Block {
    fn new(title: &str, number: usize, unit: Unit) -> Self {
        let phase = if title.is_empty() { format!("histogram-{number}") } else { title.to_owned() };
        let figures = Figures { probe: record::TIMER.to_owned(), phase, ..Figures::default() };
        Self { figures, cells: Cells::default(), unit_ns: unit.ns() as f64, last: None }
    }

    /// Takes a row: value, share, and the number of samples up to that value. `None` if it is none, or if a number is below
    /// that of the row before.
    fn row(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let value_ns = words.next()?.parse().ok().and_then(|value: f64| to_ns(value, self.unit_ns))?;
        let seen: u64 = words.nth(1)?.parse().ok()?;
        let (last_ns, before) = self.last.unwrap_or((i64::MIN, 0));
        let count = seen.checked_sub(before).filter(|_| value_ns >= last_ns)?;
        self.last = Some((value_ns, seen));
        self.cells.add(value_ns, 1, count)
    }

    /// Takes the number of samples from the last line. Those above the last row have unknown values.
    fn total(&mut self, line: &str) {
        let total =
            line.split_once("Total count").and_then(|(_, rest)| rest.trim_matches([' ', '=', ']']).parse().ok());
        self.cells.beyond = total.unwrap_or(0_u64).saturating_sub(self.cells.total());
    }

    fn end(mut self) -> Figures {
        self.cells.fill(&mut self.figures);
        self.figures
    }
}
