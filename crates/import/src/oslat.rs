//! The table that oslat prints.

use record::Figures;

use crate::{
    Ending, Format, Imported, Mistake, Unit, another_run, caveat,
    cells::{Cells, time_ns, to_ns},
    rt_tests::LOOPS,
};

/// The format.
pub struct Text;

impl Format for Text {
    fn name(&self) -> &'static str {
        "oslat, text"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(|line| line.trim_start().starts_with("Counter Freq:")) && text.contains("Core:")
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let mut imported = Imported { tool: "oslat".to_owned(), ..Imported::default() };
        imported.caveats.push(caveat("mixed", LOOPS));
        let (mut threads, mut cells): (Vec<Figures>, Vec<Cells>) = Default::default();
        let (mut width_ns, mut last_ns) = (None, None);
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(version) = line.strip_prefix("oslat V ") {
                version.trim().clone_into(&mut imported.version);
            }
            let Some((name, values)) = line.split_once(':') else { continue };
            let name = name.trim();
            let values = values.replace("(including overflows)", "");
            let (values, unit) = values.split_once('(').unwrap_or((&values, ""));
            let unit_ns = if name.ends_with("(ns)") || unit.starts_with("ns") { 1.0 } else { 1_000.0 };
            let words: Vec<&str> = values.split_whitespace().collect();
            let expected = threads.len();
            let numbers = || -> Result<Vec<f64>, Mistake> {
                let numbers = words.iter().map(|word| word.parse::<f64>()).collect::<Result<Vec<_>, _>>();
                let numbers =
                    numbers.map_err(|_| Mistake::new(number, format!("{line:?} has a word instead of a number")))?;
                match numbers.len() == expected {
                    true => Ok(numbers),
                    false => Err(Mistake::new(number, format!("{} values for {expected} threads", numbers.len()))),
                }
            };
            if name == "Core" {
                if !threads.is_empty() {
                    return Err(another_run(number));
                }
                threads = (0..).zip(&words).map(|(thread, cpu)| figures(thread, cpu)).collect();
                cells = vec![Cells::default(); threads.len()];
            } else if let Some(upper) = name.strip_suffix("(us)").or(name.strip_suffix("(ns)")) {
                let upper_ns = upper.trim().parse().ok().and_then(|upper| to_ns(upper, unit_ns));
                let upper_ns = upper_ns.filter(|&ns| ns > 0);
                let upper_ns = upper_ns.ok_or_else(|| Mistake::new(number, format!("{upper:?} is no cell")))?;
                if last_ns.is_some_and(|last_ns| upper_ns <= last_ns) {
                    return Err(Mistake::new(number, format!("the row {name} is not above the row before it")));
                }
                last_ns = Some(upper_ns);
                // All cells are as wide as the first one begins at 0.
                let width_ns = *width_ns.get_or_insert(upper_ns);
                numbers()?;
                for (cells, count) in cells.iter_mut().zip(&words) {
                    let added =
                        count.parse().ok().and_then(|count| cells.add(upper_ns - width_ns + 1, width_ns, count));
                    added.ok_or_else(|| Mistake::new(number, format!("{count} must be a whole number of samples")))?;
                }
            } else if ["Minimum", "Maximum", "Duration"].contains(&name) {
                for (figures, value) in threads.iter_mut().zip(numbers()?) {
                    match name {
                        "Minimum" => figures.min_ns = Some(time_ns(value, unit_ns, name)?),
                        "Maximum" => figures.max_ns = Some(time_ns(value, unit_ns, name)?),
                        _ => figures.duration_ns = to_ns(value, 1e9).and_then(|ns| u64::try_from(ns).ok()),
                    }
                }
            }
        }
        if threads.is_empty() {
            return Err(Mistake::new(0, "it has no line `Core:`"));
        }
        if threads.iter().any(|figures| figures.max_ns.is_none() || figures.duration_ns.is_none()) {
            return Err(Mistake::new(0, "it has no lines `Maximum:` and `Duration:`; the output is cut"));
        }
        for (mut figures, mut cells) in threads.into_iter().zip(cells) {
            cells.open_end(figures.max_ns);
            cells.fill(&mut figures)?;
            imported.figures.push(figures);
        }
        Ok(imported)
    }
}

fn figures(thread: u32, cpu: &str) -> Figures {
    Figures { probe: "noise".to_owned(), phase: format!("thread-{thread}"), cpus: cpu.to_owned(), ..Figures::default() }
}
