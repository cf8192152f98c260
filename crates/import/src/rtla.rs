//! Histograms of `rtla timerlat hist` and `rtla osnoise hist` (`tools/tracing/rtla/src/timerlat_hist.c`).

use record::{Caveat, Figures, TIMERLAT_IRQ, TIMERLAT_THREAD};

use crate::{
    Ending, Format, Imported, Mistake, Unit, another_run, caveat,
    cells::{Cells, time_ns, to_ns},
    rtla_analysis::{remarks, stopped},
};

/// The format.
pub struct Histograms;

const TITLE: &str = "# RTLA ";

impl Format for Histograms {
    fn name(&self) -> &'static str {
        "rtla hist"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(is_title) && text.contains("\nIndex")
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let title = of(TITLE).unwrap_or_default();
        let is_timerlat = title.starts_with("timerlat");
        let unit_ns = match of("# Time unit is") {
            Some(unit) if unit.starts_with("nanoseconds") => 1.0,
            Some(unit) if unit.starts_with("microseconds") => 1_000.0,
            _ => return Err(Mistake::new(0, "it has no line `# Time unit is`")),
        };
        if let Some((number, _)) = (1..).zip(text.lines()).filter(|(_, line)| is_title(line)).nth(1) {
            return Err(another_run(number));
        }
        let mut lines = (1..).zip(text.lines()).skip_while(|(_, line)| !line.starts_with("Index"));
        let (heading, names) = lines.next().ok_or_else(|| Mistake::new(0, "it has no line `Index`"))?;
        let mut columns =
            names.split_whitespace().skip(1).map(|name| column(name, is_timerlat)).collect::<Option<Vec<_>>>();
        let columns = columns.as_mut().ok_or_else(|| Mistake::new(heading, format!("columns not known: {names}")))?;
        for figures in columns.iter_mut() {
            figures.duration_ns = of("# Duration:").and_then(duration_ns);
        }
        let (mut rows, mut beyond): (Vec<(i64, Vec<u64>)>, Vec<u64>) = Default::default();
        let mut imported = Imported { tool: "rtla".to_owned(), ..Imported::default() };
        let (mut summary, mut is_of_all, mut counts_of_all) = (Vec::new(), false, Vec::<u64>::new());
        for (number, line) in lines {
            let mut words = line.split_whitespace();
            let Some(name) = words.next() else { continue };
            let words: Vec<&str> = words.collect();
            let is_row = name.bytes().all(|byte| byte.is_ascii_digit());
            if is_of_missed(line) {
                continue;
            }
            if name == "ALL:" {
                is_of_all = true;
                continue;
            }
            if is_of_all {
                if name == "count:" {
                    counts_of_all = words.iter().filter_map(|word| word.parse().ok()).collect();
                }
                continue;
            }
            if !is_row && !["over:", "count:", "min:", "avg:", "max:"].contains(&name) {
                continue;
            }
            if words.len() != columns.len() {
                return Err(Mistake::new(number, format!("{} values for {} columns", words.len(), columns.len())));
            }
            let wrong = |word: &str| Mistake::new(number, format!("{word:?} is no number"));
            let counts =
                || words.iter().map(|word| word.parse().map_err(|_| wrong(word))).collect::<Result<Vec<u64>, _>>();
            if is_row {
                let from_ns =
                    name.parse().ok().and_then(|from: f64| to_ns(from, unit_ns)).ok_or_else(|| wrong(name))?;
                if rows.last().is_some_and(|(last_ns, _)| from_ns <= *last_ns) {
                    return Err(Mistake::new(number, format!("the row {name} is not above the row before it")));
                }
                rows.push((from_ns, counts()?));
                continue;
            }
            if name == "over:" {
                beyond = counts()?;
                continue;
            }
            summary.push(name);
            for (figures, word) in columns.iter_mut().zip(&words).filter(|(_, word)| **word != "-") {
                let value: f64 = word.parse().map_err(|_| wrong(word))?;
                match name {
                    "count:" => figures.samples = Some(word.parse().map_err(|_| wrong(word))?),
                    "min:" => figures.min_ns = Some(time_ns(value, unit_ns, name)?),
                    "avg:" => figures.mean_ns = Some(value * unit_ns),
                    _ => figures.max_ns = Some(time_ns(value, unit_ns, name)?),
                }
            }
        }
        if beyond.is_empty() {
            return Err(Mistake::new(0, "it has no line `over:` after its rows; the output is cut"));
        }
        if summary.is_empty() {
            let text = "it has no line `max:` after `over:`, because of --no-summary or because the file is cut";
            imported.caveats.push(caveat("cut", text));
        }
        if summary.last().is_some_and(|last| *last != "max:") {
            return Err(Mistake::new(0, "it has no line `max:`; the output is cut"));
        }
        let width_ns = width(&rows);
        imported.caveats.push(caveat("mixed", if is_timerlat { KERNEL } else { NOISE }));
        for (at, mut figures) in columns.drain(..).enumerate() {
            let mut cells = Cells::default();
            cells.beyond = beyond.get(at).copied().unwrap_or(0);
            for (from_ns, counts) in &rows {
                // A single cell ends at the maximum, if all samples are in it.
                let to_max_ns = figures.max_ns.and_then(|max_ns| max_ns.checked_sub(*from_ns)?.checked_add(1));
                let width_ns = width_ns.or_else(|| to_max_ns.filter(|&width_ns| cells.beyond == 0 && width_ns > 0));
                let width_ns = width_ns.ok_or_else(|| {
                    Mistake::new(0, "the histogram has a single row, which does not show the width of its cells")
                })?;
                cells.add(*from_ns, width_ns, counts[at]).ok_or_else(|| Mistake::new(0, "a number is out of range"))?;
            }
            if let Some(count) = figures.samples.filter(|&count| count != cells.total()) {
                let text =
                    format!("the column of CPU {} has {} samples, its count is {count}", figures.cpus, cells.total());
                return Err(Mistake::new(0, text));
            }
            let who = format!("{} of CPU {}", figures.role, figures.cpus);
            imported.caveats.extend(cells.overflow(who.trim_start_matches(" of "), figures.max_ns));
            cells.fill(&mut figures)?;
            imported.figures.push(figures);
        }
        // Interrupt, kernel thread and program, in this order.
        for (role, count) in [TIMERLAT_IRQ, TIMERLAT_THREAD, TIMERLAT_USER].into_iter().zip(counts_of_all) {
            let of_role = imported.figures.iter().filter(|figures| figures.role == role);
            let sum: u64 = of_role.filter_map(|figures| figures.samples).fold(0, u64::saturating_add);
            if sum != count && is_timerlat {
                let text = format!("the columns of {role} have {sum} samples, their count after `ALL:` is {count}");
                return Err(Mistake::new(0, text));
            }
        }
        imported.caveats.extend(missed_events(text).into_iter().chain(stopped(text)));
        imported.remarks = remarks(text);
        Ok(imported)
    }
}

fn is_title(line: &str) -> bool {
    line.starts_with(TITLE) && line.trim_end().ends_with("histogram")
}

/// Role of the columns of programs.
pub const TIMERLAT_USER: &str = "timerlat/user";
/// The caveat of timerlat.
pub const KERNEL: &str = "timerlat measures in the kernel: the time until its interrupt handler (IRQ) and until its thread of the \
                      kernel (Thr); the way of a program (Usr) is longer. Columns are populations of their own";
/// The caveat of osnoise.
const NOISE: &str = "osnoise counts the time of each interruption";

/// The figures of a column such as `IRQ-000`, `Thr-000`, `Usr-000` or `CPU-000`.
fn column(name: &str, is_timerlat: bool) -> Option<Figures> {
    let (kind, cpu) = name.split_once('-')?;
    let cpu: u32 = cpu.parse().ok()?;
    let role = match kind {
        "IRQ" => TIMERLAT_IRQ,
        "Thr" => TIMERLAT_THREAD,
        "Usr" => TIMERLAT_USER,
        "CPU" => "",
        _ => return None,
    };
    Some(Figures {
        probe: if is_timerlat { record::TIMER } else { "noise" }.to_owned(),
        phase: if is_timerlat { "timerlat" } else { "osnoise" }.to_owned(),
        role: role.to_owned(),
        cpus: cpu.to_string(),
        ..Figures::default()
    })
}

/// The width of the cells: the greatest common divisor of the distances of rows, because empty rows are left out. `None` for
/// a single row, which does not show it.
fn width(rows: &[(i64, Vec<u64>)]) -> Option<i64> {
    let divisor = |mut a: i64, mut b: i64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    rows.windows(2).map(|pair| pair[1].0 - pair[0].0).reduce(divisor)
}

/// A duration such as `0 00:10:00`: days and time.
pub fn duration_ns(text: &str) -> Option<u64> {
    let (days, time) = text.trim().split_once(' ')?;
    let mut seconds: u64 = days.parse().ok()?;
    for (part, limit) in time.trim().split(':').zip([24, 60, 60]) {
        seconds = seconds.checked_mul(limit)?.checked_add(part.parse().ok()?)?;
    }
    seconds.checked_mul(1_000_000_000)
}

/// True for a line about events that the trace lost, after the summary.
fn is_of_missed(line: &str) -> bool {
    line.contains("events missed")
}

/// The caveat about events that the trace lost, if a line such as `12 (0.10%) events missed, results might not be accurate`
/// says so (`osnoise.c`, `osnoise_report_missed_events`).
pub fn missed_events(text: &str) -> Option<Caveat> {
    let line = text.lines().rfind(|line| is_of_missed(line))?;
    let number = line.split("events missed").next().unwrap_or_default().trim();
    Some(caveat("overflow", format!("the trace lost events, which are in no figure: {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_days_and_times() {
        assert_eq!(duration_ns("   1 02:03:04"), Some(93_784_000_000_000));
        assert_eq!(duration_ns("x"), None);
    }

    #[test]
    fn empty_rows_are_left_out() {
        let rows = |of: &[i64]| of.iter().map(|&from| (from, Vec::new())).collect::<Vec<_>>();
        assert_eq!(width(&rows(&[0, 5_000, 20_000])), Some(5_000));
        assert_eq!(width(&rows(&[0, 100_000, 250_000])), Some(50_000));
        assert_eq!(width(&rows(&[7_000])), None);
    }
}
