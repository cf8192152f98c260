//! The console output of latmus (libevl, `benchmarks/latmus.c`) and of the program latency of Xenomai 3
//! (`testsuite/latency/latency.c`): lines that begin with `RTT`, `RTH`, `RTD`, `RTS`, `HSH`, `HSD` and `HSS`.

use record::Figures;

use crate::{
    Ending, Format, Imported, Mistake, Unit, another_run, caveat,
    cells::{Cells, omission, time_ns},
};

/// The format.
pub struct Lines;

impl Format for Lines {
    fn name(&self) -> &'static str {
        "latmus and Xenomai latency, console"
    }

    fn is_it(&self, text: &str) -> bool {
        let begins = |begin: &str| text.lines().any(|line| line.starts_with(begin));
        begins("RTH|") && (begins("RTS|") || begins("RTD|"))
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let numbered = || (1..).zip(text.lines());
        let last = |begin: &'static str| numbered().filter(|(_, line)| line.starts_with(begin)).last();
        if let Some((number, _)) = numbered().filter(|(_, line)| line.starts_with("RTS|")).nth(1) {
            return Err(another_run(number));
        }
        check_sequence(text)?;
        let mut figures =
            Figures { probe: record::TIMER.to_owned(), phase: "latency".to_owned(), ..Figures::default() };
        if let Some((_, title)) = last("RTT|") {
            self::title(title, &mut figures);
        }
        // Whole times at the end, or those until the last line of a run that was ended.
        let (number, line, least, largest) = match (last("RTS|"), last("RTD|")) {
            (Some((number, line)), _) => (number, line, 1, 3),
            (None, Some((number, line))) => (number, line, 6, 7),
            (None, None) => return Err(Mistake::new(0, "it has no line `RTS|`")),
        };
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let cell = |at: usize| -> Result<f64, Mistake> {
            let value = cells.get(at).and_then(|cell| cell.parse().ok());
            value.ok_or_else(|| Mistake::new(number, format!("column {at} of {line:?} must be a number")))
        };
        figures.min_ns = Some(time_ns(cell(least)?, 1e3, "its minimum")?);
        figures.max_ns = Some(time_ns(cell(largest)?, 1e3, "its maximum")?);
        figures.mean_ns = (least == 1).then(|| cell(2)).transpose()?.map(|us| us * 1e3);
        let mut imported = Imported::default();
        let overruns = cell(4)?;
        if overruns > 0.0 {
            imported
                .caveats
                .push(caveat("omission", format!("{overruns} overruns: deadlines that passed have no samples")));
        }
        if cell(5)? > 0.0 {
            imported.caveats.push(caveat("mixed", format!("the thread fell back to Linux {} times", cells[5])));
        }
        imported.caveats.extend(omission("the thread", figures.max_ns, figures.period_ns));
        let mut histogram = histogram(text)?;
        match (least == 1, text.lines().any(|line| line.starts_with("HSD|"))) {
            (true, _) => {}
            (false, true) => {
                return Err(Mistake::new(0, "it has no line `RTS|` after its histogram; the output is cut"));
            }
            (false, false) => imported.caveats.push(caveat(
                "cut",
                "it has no summary (`RTS|`), so the run was ended or the file is cut: the figures are those until its last line",
            )),
        }
        if histogram.total() > 0 {
            imported
                .caveats
                .push(caveat("folded", "early wake-ups are in the cells of late ones, by their absolute value"));
            imported.caveats.push(caveat("clamped", "the last cell of the histogram also contains later wake-ups"));
            histogram.open_end(figures.max_ns);
            // The histogram also has the samples of the warm-up.
            histogram.fill_unchecked(&mut figures);
        }
        imported.figures.push(figures);
        Ok(imported)
    }
}

/// Compares the smallest and largest latencies since the start, which each line has: best and worst of `RTD`, and those of the
/// summary `RTS`. The titles have the time since the start.
///
/// # Errors
/// Another run begins, or a line contradicts those before it.
fn check_sequence(text: &str) -> Result<(), Mistake> {
    let (mut time, mut known): (Option<&str>, Option<[f64; 2]>) = (None, None);
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |what: &str| Err(Mistake::new(number, format!("{line:?} has {what}")));
        let cells: Vec<Option<f64>> = line.split('|').map(|cell| cell.trim().parse().ok()).collect();
        match (line.split('|').next(), &cells[..]) {
            (Some("RTT"), _) => {
                let now = line.split('|').nth(1).and_then(|title| title.split_whitespace().next());
                // From 100 hours on, a time has more digits.
                let in_order = |time: &str| (time.len(), time.to_owned());
                if time.is_some() && now.map(in_order) <= time.map(in_order) {
                    return Err(another_run(number));
                }
                time = now;
            }
            (Some("RTD"), [_, Some(min), _, Some(max), _, _, Some(best), Some(worst), ..]) => {
                if known.is_some_and(|[least, largest]| *best > least || *worst < largest) {
                    return Err(another_run(number));
                }
                if best > min || worst < max {
                    return wrong("a latency beyond its best or worst one");
                }
                known = Some([*best, *worst]);
            }
            (Some("RTS"), [_, Some(min), _, Some(max), ..])
                if known.is_some_and(|[least, largest]| *min > least || *max < largest) =>
            {
                return wrong("less than the best and worst latencies of the lines before");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads period, priority, CPU and kind of thread from the title of Xenomai, `RTT|  00:00:01  (periodic user-mode task, 1000 us
/// period, priority 99)`, or of latmus, `RTT|  00:00:01  (user, 1000 us period, priority 98, CPU1-noisol)`.
pub fn title(title: &str, figures: &mut Figures) {
    let words: Vec<&str> = title.split([' ', ',', '(', ')']).filter(|word| !word.is_empty()).collect();
    let before = |unit: &[&str]| words.windows(unit.len() + 1).find(|all| all[1..] == *unit).map(|all| all[0]);
    figures.period_ns = before(&["us", "period"]).and_then(|us| us.parse::<u64>().ok()?.checked_mul(1_000));
    let priority = words.iter().position(|word| *word == "priority").and_then(|at| words.get(at + 1));
    figures.policy = priority.map(|priority| format!("fifo:{priority}")).unwrap_or_default();
    let has = |word: &str| words.contains(&word);
    figures.role = match () {
        // The contexts of latmus.
        () if has("irq") => "irq",
        () if has("sirq") => "sirq",
        () if title.contains("kernel") || title.contains("timer handler") => "kernel",
        () => "",
    }
    .to_owned();
    let cpu = words.iter().find_map(|word| word.strip_prefix("CPU"));
    if let Some(cpu) = cpu {
        figures.isolated = Some(!cpu.ends_with("-noisol"));
        figures.cpus = cpu.chars().take_while(char::is_ascii_digit).collect();
    }
}

/// The cells of lines such as `HSD|    avg|   3 -  4 |  12345`. Those of `min` and `max` count each second only once.
fn histogram(text: &str) -> Result<Cells, Mistake> {
    let mut cells = Cells::default();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| line.starts_with("HSD|")) {
        let wrong = || Mistake::new(number, format!("{line:?} is no cell with its number of samples"));
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, range, count, ..] = columns[..] else { return Err(wrong()) };
        if name != "avg" {
            continue;
        }
        let (from, to) = range.split_once('-').ok_or_else(wrong)?;
        let us = |text: &str| text.trim().parse::<i64>().ok().and_then(|us| us.checked_mul(1_000)).ok_or_else(wrong);
        let (from_ns, to_ns) = (us(from)?, us(to)?);
        if to_ns <= from_ns {
            return Err(wrong());
        }
        let count = count.parse().map_err(|_| wrong())?;
        cells.add(from_ns, to_ns - from_ns, count).ok_or_else(wrong)?;
    }
    Ok(cells)
}
