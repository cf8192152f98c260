//! Percentiles as HdrHistogram prints them (`AbstractHistogram.outputPercentileDistribution`), also those that punctual
//! exports as `.hgrm`: a block of rows for each histogram.

use std::collections::HashSet;

use record::Figures;

use crate::{
    Ending, Format, Imported, Mistake, Unit, another_run, caveat,
    cells::{Cells, to_ns, whole},
    exported_by,
};

/// The format.
pub struct Percentiles;

/// The names of the number of samples: of Java, and of the Python port.
const TOTALS: [&str; 2] = ["Total count", "TotalCount"];
/// The begin of the title of a block of wrk2, whose values are in milliseconds; the lines below it have units of their own.
const WRK2: &str = "Latency Distribution (HdrHistogram - ";
/// The end of the title of a block in exports of punctual, whose values are in microseconds.
const IN_US: &str = ", us";

impl Format for Percentiles {
    fn name(&self) -> &'static str {
        "HdrHistogram, hgrm"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(is_heading)
    }

    fn ending(&self) -> Ending {
        Ending::Closed
    }

    fn read(&self, text: &str, unit: Option<Unit>) -> Result<Imported, Mistake> {
        let mut imported = Imported::default();
        let is_exported = text.lines().any(|line| line.starts_with("# ") && line.ends_with(IN_US));
        let probe = text.lines().next().filter(|_| is_exported).and_then(|line| exported_by(line, &mut imported));
        let (stated, units) = Unit::of(unit, Unit::Us);
        let (mut title, mut block): (&str, Option<Block>) = ("", None);
        let mut is_of_wrk2 = false;
        let mut has_unit = true;
        let mut titles = HashSet::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if is_heading(line) {
                imported.figures.extend(block.take().map(Block::end).transpose()?);
                if !title.is_empty() && !titles.insert(title) {
                    return Err(another_run(number));
                }
                let is_in_us = title.ends_with(IN_US);
                has_unit &= is_in_us || is_of_wrk2;
                let unit = match is_in_us {
                    true => Unit::Us,
                    false if is_of_wrk2 => Unit::Ms,
                    false => stated,
                };
                block = Some(Block::new(title.trim_end_matches(IN_US), imported.figures.len(), unit, is_in_us));
                title = "";
            } else if let Some(rest) = line.strip_prefix(WRK2) {
                is_of_wrk2 = true;
                title = rest.split([')', '(']).next().unwrap_or_default().trim();
            } else if let Some(rest) = line.strip_prefix("#[Max") {
                let Some(block) = &mut block else { continue };
                // Punctual leaves it out if it is not known.
                if block.is_own && !TOTALS.iter().any(|name| line.contains(name)) && line.ends_with(']') {
                    block.is_uncounted = true;
                } else {
                    block.total(number, line)?;
                }
                let largest = rest.trim_start().strip_prefix('=').and_then(|rest| rest.split([',', ']']).next());
                let largest = largest
                    .and_then(|text| text.trim().parse().ok())
                    .and_then(|value: f64| to_ns(value, block.unit_ns));
                block.figures.max_ns = Some(largest.ok_or_else(|| Mistake::new(number, "its maximum is no number"))?);
            } else if let (Some(block), true) =
                (&mut block, TOTALS.iter().any(|name| line[..].starts_with(&format!("#[{name}"))))
            {
                block.total(number, line)?;
            } else if let Some(rest) = line.strip_prefix('#').filter(|rest| !rest.starts_with('[')) {
                title = rest.trim();
            } else if is_of_wrk2 && block.as_ref().is_some_and(|block| block.total.is_some()) {
                // The number of requests, and the distribution of the next block.
            } else if let (Some(block), false) = (&mut block, line.is_empty() || line.starts_with('#')) {
                block
                    .row(line)
                    .ok_or_else(|| Mistake::new(number, format!("{line:?} is no row above the one before")))?;
            }
        }
        imported.figures.extend(block.map(Block::end).transpose()?);
        // Nobody knows if the histograms of another program are of one kind. Those of punctual have a role, which can be empty.
        let is_own = |title: &str| title.ends_with("), raw") || title.ends_with("), corrected");
        if imported.figures.len() > 1 {
            for figures in imported.figures.iter_mut().filter(|figures| !is_own(&figures.phase)) {
                figures.role.clone_from(&figures.phase);
            }
        }
        let phases: HashSet<&str> = imported.figures.iter().filter_map(phase).collect();
        if phases.len() > 1 {
            for figures in imported.figures.iter_mut().filter(|figures| is_own(&figures.phase)) {
                let parts = [phase(figures).unwrap_or_default(), &figures.role];
                figures.role = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
            }
        }
        if let Some(probe) = probe {
            imported.figures.iter_mut().for_each(|figures| figures.probe.clone_from(&probe));
        }
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

/// The phase in a title of punctual: `load CPU 1 (timer), corrected`, `load base on CPU 1 (base), corrected`. In imported
/// records, phases such as `thread-1` are the threads of another tool, which are all `thread`.
fn phase(figures: &Figures) -> Option<&str> {
    let Figures { phase: title, role, .. } = figures;
    let (before, _) = title.split_once(" CPU ").or_else(|| title.split_once(" unpinned"))?;
    let without = |end: String| before.strip_suffix(&*end);
    let phase = without(format!(" {role} on")).or_else(|| without(format!(" {role},"))).unwrap_or(before);
    let thread =
        phase.rsplit_once('-').filter(|(_, number)| title.ends_with("), raw") && number.parse::<u32>().is_ok());
    Some(thread.map_or(phase, |(name, _)| name))
}

/// The rows of one histogram.
struct Block {
    figures: Figures,
    cells: Cells,
    /// Unit of the values, ns.
    unit_ns: f64,
    /// True if punctual exported it: samples beyond the last cell of an imported histogram are only in the total.
    is_own: bool,
    /// Value, share, and number of samples up to it of the last row.
    last: Option<(i64, f64, u64)>,
    /// The number of samples in the line after the rows.
    total: Option<u64>,
    /// True if that line has a maximum only.
    is_uncounted: bool,
}

impl Block {
    fn new(title: &str, number: usize, unit: Unit, is_own: bool) -> Self {
        let phase = if title.is_empty() { format!("histogram-{number}") } else { title.to_owned() };
        // `load CPU 1 (timer), corrected`
        let role = || phase.rsplit_once(" (")?.1.rsplit_once("), ").map(|(role, _)| role.to_owned());
        let role = if is_own { role().unwrap_or_default() } else { String::new() };
        let figures = Figures { probe: record::TIMER.to_owned(), phase, role, ..Figures::default() };
        Self {
            figures,
            cells: Cells::default(),
            unit_ns: unit.ns() as f64,
            is_own,
            last: None,
            total: None,
            is_uncounted: false,
        }
    }

    /// Takes a row: value, share, and the number of samples up to that value. `None` if it is none, or if a number is below
    /// that of the row before.
    fn row(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let value_ns = words.next()?.parse().ok().and_then(|value: f64| to_ns(value, self.unit_ns))?;
        let share: f64 = words.next()?.parse().ok()?;
        let seen: u64 = words.next()?.parse().ok()?;
        let (last_ns, _, before) = self.last.unwrap_or((i64::MIN, 0.0, 0));
        let count = seen.checked_sub(before).filter(|_| value_ns >= last_ns)?;
        self.last = Some((value_ns, share, seen));
        self.cells.add(value_ns, 1, count)
    }

    /// Takes the number of samples from the line after the rows.
    fn total(&mut self, number: usize, line: &str) -> Result<(), Mistake> {
        let of = |name| line.strip_suffix(']').and_then(|line| line.split_once(name));
        let total = TOTALS.into_iter().find_map(of).and_then(|(_, rest)| whole(rest.trim_matches([' ', '='])));
        self.total =
            Some(total.ok_or_else(|| Mistake::new(number, "it has no number after `Total count`; the file is cut"))?);
        Ok(())
    }

    /// The figures, if the rows have all samples.
    fn end(mut self) -> Result<Figures, Mistake> {
        /// Shares are printed with twelve digits, by some libraries with fewer.
        const TOLERANCE: f64 = 1e-4;
        let phase = &self.figures.phase;
        let cut = |text: String| Err(Mistake::new(0, format!("{phase}: {text}; the file is cut")));
        if self.is_uncounted && self.last.is_none() {
            return Ok(self.figures);
        }
        let Some(total) = self.total else {
            return cut("it has no line `#[Max ... Total count ...]` after its rows".to_owned());
        };
        let (_, share, seen) = self.last.unwrap_or_default();
        // Only punctual knows of samples without a value.
        let is_whole = seen == total || self.is_own && seen < total;
        if !is_whole {
            return cut(format!("its rows have {seen} samples, but `Total count` is {total}"));
        }
        let expected = if total == 0 { share } else { seen as f64 / total as f64 };
        if (share - expected).abs() > TOLERANCE {
            return cut(format!("its rows end at the share {share} of {total} samples"));
        }
        self.cells.beyond = total - seen;
        // A row of an imported histogram is the end of its cell, which can be above the maximum.
        if self.is_own {
            self.cells.fill_unchecked(&mut self.figures);
        } else {
            self.cells.fill(&mut self.figures)?;
        }
        Ok(self.figures)
    }
}
