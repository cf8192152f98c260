//! The file of `latency -g` of Xenomai 3 (`testsuite/latency/latency.c`, `dump_histo_gnuplot`): cells at their middle, each
//! with its number of samples plus 1, between two rows for the plotter.

use record::Figures;

use crate::{
    Ending, Format, Imported, Mistake, Unit, caveat,
    cells::{Cells, omission, to_ns},
    console,
};

/// The format.
pub struct Plot;

impl Format for Plot {
    fn name(&self) -> &'static str {
        "Xenomai latency -g"
    }

    fn is_it(&self, text: &str) -> bool {
        // Old versions write no title. Two columns of another tool do not begin and end with a half cell and a 1.
        let has_title = text.lines().any(|line| line.trim_start().starts_with('#') && line.contains(" ----lat min|"));
        has_title || rows(text).is_ok_and(|rows| rows.len() > 3 && (width_us(&rows).is_some() || is_cut(&rows)))
    }

    fn ending(&self) -> Ending {
        Ending::Closed
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let rows = rows(text)?;
        let width_us = width_us(&rows).ok_or_else(|| {
            Mistake::new(
                0,
                "its rows are no cells of equal width between two rows of a half cell with a 1; the file is cut",
            )
        })?;
        let mut figures =
            Figures { probe: record::TIMER.to_owned(), phase: "latency".to_owned(), ..Figures::default() };
        let mut imported = Imported { tool: "latency".to_owned(), ..Imported::default() };
        if let Some(title) =
            text.lines().find(|line| line.trim_start().starts_with("# ") && line.contains(" us period"))
        {
            console::title(title, &mut figures);
        }
        let summary = (1..).zip(text.lines()).skip_while(|(_, line)| !line.contains("----lat min|")).nth(1);
        if let Some((number, line)) = summary {
            summarise(line, &mut figures, &mut imported).ok_or_else(|| {
                Mistake::new(number, format!("{line:?} must have min, avg, max, overruns and mode switches"))
            })?;
        }
        let width_ns = to_ns(width_us, 1e3).filter(|&ns| ns > 0);
        let (mut cells, mut end_ns) = (Cells::default(), 0);
        for &(number, middle_us, count) in &rows[1..rows.len() - 1] {
            let from_ns = to_ns(middle_us - width_us / 2.0, 1e3);
            let added = from_ns.zip(width_ns).zip(count.checked_sub(1)).and_then(|((from_ns, width_ns), count)| {
                end_ns = from_ns.checked_add(width_ns)?;
                cells.add(from_ns, width_ns, count)
            });
            added.ok_or_else(|| Mistake::new(number, "a cell is out of range, or has no sample plus 1"))?;
        }
        if figures.max_ns.is_none_or(|max_ns| max_ns >= end_ns) {
            let last_us = end_ns as f64 / 1e3;
            imported
                .caveats
                .push(caveat("clamped", format!("the last cell (up to {last_us} us) also contains later wake-ups")));
            cells.open_end(None);
        }
        imported
            .caveats
            .push(caveat("folded", "early wake-ups are in the cells of late ones, by their absolute value"));
        imported.caveats.extend(omission("the thread", figures.max_ns, figures.period_ns));
        // The histogram also has the samples of the warm-up.
        cells.fill_unchecked(&mut figures);
        imported.figures.push(figures);
        Ok(imported)
    }
}

/// Reads `#      -0.123|      0.902|      7.915|       0|     0|`.
fn summarise(line: &str, figures: &mut Figures, imported: &mut Imported) -> Option<()> {
    let numbers = line.trim_start().trim_start_matches('#').split('|').map(str::trim).filter(|cell| !cell.is_empty());
    let numbers = numbers.map(|cell| cell.parse::<f64>().ok().filter(|number| number.is_finite()));
    let numbers = numbers.collect::<Option<Vec<f64>>>()?;
    let [min, avg, max, overruns, switches] = numbers[..] else { return None };
    (figures.min_ns, figures.mean_ns, figures.max_ns) =
        (Some(to_ns(min, 1e3)?), Some(avg * 1e3), Some(to_ns(max, 1e3)?));
    if overruns > 0.0 {
        imported
            .caveats
            .push(caveat("omission", format!("{overruns} overruns: deadlines that passed have no samples")));
    }
    if switches > 0.0 {
        imported.caveats.push(caveat("mixed", format!("the thread fell back to Linux {switches} times")));
    }
    Some(())
}

type Row = (usize, f64, u64);

/// The rows with their lines: value in us, and number of samples.
fn rows(text: &str) -> Result<Vec<Row>, Mistake> {
    let lines =
        (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with('#') && !line.trim().is_empty());
    let row = |(number, line): (usize, &str)| {
        let (value, count) = line.trim().split_once(' ')?;
        let value: f64 = value.parse().ok()?;
        value.is_finite().then_some((number, value, count.trim().parse().ok()?))
    };
    lines
        .map(|line| {
            row(line).ok_or_else(|| Mistake::new(line.0, format!("{:?} is no cell with its number of samples", line.1)))
        })
        .collect()
}

/// The width of the cells, us, if the rows are cells of equal width between two half ones with a 1.
fn width_us(rows: &[Row]) -> Option<f64> {
    let [first, second, .., before, last] = rows else {
        let [first, only, last] = rows else { return None };
        let width_us = last.1 - first.1;
        let is_middle = near(only.1 - first.1, width_us / 2.0, width_us) && width_us > 0.0;
        return (is_middle && first.2 == 1 && last.2 == 1 && only.2 > 0).then_some(width_us);
    };
    let width_us = 2.0 * (second.1 - first.1);
    let is_even = rows[1..rows.len() - 1].windows(2).all(|pair| near(pair[1].1 - pair[0].1, width_us, width_us));
    let has_ends = first.2 == 1 && last.2 == 1 && near(last.1 - before.1, width_us / 2.0, width_us);
    (width_us > 0.0 && is_even && has_ends && rows.iter().all(|row| row.2 > 0)).then_some(width_us)
}

/// True for rows that lack only the last one. As two columns, each count would be one too high. Two columns of another tool do not
/// begin with a half cell, a 1, and a value with a fraction.
fn is_cut(rows: &[Row]) -> bool {
    const LEAST: usize = 5;
    let [first, second, ..] = rows else { return false };
    let width_us = 2.0 * (second.1 - first.1);
    let is_even = rows[1..].windows(2).all(|pair| near(pair[1].1 - pair[0].1, width_us, width_us));
    let has_begin = first.2 == 1 && width_us > 0.0 && second.1.fract() != 0.0;
    rows.len() >= LEAST && has_begin && is_even && rows.iter().all(|row| row.2 > 0)
}

/// True if two numbers differ by less than a hundredth of a cell: the file has six digits.
fn near(one: f64, other: f64, width: f64) -> bool {
    (one - other).abs() < width * 0.01
}
