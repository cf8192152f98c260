//! Percentiles as HdrHistogram prints them (`AbstractHistogram.outputPercentileDistribution`), also those that punctual
//! exports as `.hgrm`: a block of rows for each histogram.

use record::Figures;

use crate::{
    Format, Imported, Mistake, caveat,
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

    fn read(&self, text: &str) -> Result<Imported, Mistake> {
        let mut imported = Imported::default();
        let (mut title, mut block): (&str, Option<Block>) = ("", None);
        let mut has_unit = true;
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if is_heading(line) {
                imported.figures.extend(block.take().map(Block::end));
                has_unit &= title.ends_with(IN_US);
                block = Some(Block::new(title.trim_end_matches(IN_US), imported.figures.len()));
            } else if let Some(rest) = line.strip_prefix("#[Max") {
                let Some(block) = &mut block else { continue };
                let largest = rest.trim_start().strip_prefix('=').and_then(|rest| rest.split(',').next());
                let largest =
                    largest.and_then(|text| text.trim().parse().ok()).and_then(|value: f64| to_ns(value, 1e3));
                block.figures.max_ns = Some(largest.ok_or_else(|| Mistake::new(number, "its maximum is no number"))?);
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
            imported.caveats.push(caveat("units", "the file does not say its unit; microseconds are assumed"));
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
    last: Option<(i64, u64)>,
}

impl Block {
    fn new(title: &str, number: usize) -> Self {
        let phase = if title.is_empty() { format!("histogram-{number}") } else { title.to_owned() };
        let figures = Figures { probe: record::TIMER.to_owned(), phase, ..Figures::default() };
        Self { figures, cells: Cells::default(), last: None }
    }

    /// Takes a row: value, share, and the number of samples up to that value. `None` if it is none, or if a number is below
    /// that of the row before.
    fn row(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let value_ns = words.next()?.parse().ok().and_then(|us: f64| to_ns(us, 1e3))?;
        let seen: u64 = words.nth(1)?.parse().ok()?;
        let (last_ns, before) = self.last.unwrap_or((i64::MIN, 0));
        let count = seen.checked_sub(before).filter(|_| value_ns >= last_ns)?;
        self.last = Some((value_ns, seen));
        self.cells.add(value_ns, 1, count)
    }

    fn end(mut self) -> Figures {
        self.cells.fill(&mut self.figures);
        self.figures
    }
}
