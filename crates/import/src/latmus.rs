//! The file of `latmus -g` of libevl (`benchmarks/latmus.c`, `dump_gnuplot`).

use record::{Figures, Machine};

use crate::{
    Ending, Format, Imported, Mistake, Unit, caveat,
    cells::{self, Cells, omission, to_ns},
    preemption,
};

/// The format.
pub struct Plot;

impl Format for Plot {
    fn name(&self) -> &'static str {
        "latmus -g"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(|line| line.starts_with("# sampling period:")) && text.contains("# context:")
    }

    fn ending(&self) -> Ending {
        Ending::Closed
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let of = |name: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
            lines.filter_map(|line| line.strip_prefix(name)).map(str::trim).next()
        };
        let number = |name: &str| -> Result<Option<f64>, Mistake> {
            let wrong = |value: &str| Mistake::new(0, format!("`# {name}` must be a number, not {value:?}"));
            of(name).map(|value| value.parse().map_err(|_| wrong(value))).transpose()
        };
        let us = |name: &str| number(name)?.map(|us| cells::time_ns(us, 1e3, &format!("`# {name}`"))).transpose();
        let period_us = of("sampling period:").and_then(|value| value.split(' ').next()?.parse::<u64>().ok());
        // Both lines of /proc/version and /proc/cmdline.
        let cmdline = text.lines().skip_while(|line| !line.starts_with("# Linux version ")).nth(1);
        let cmdline = cmdline.and_then(|line| line.strip_prefix("# ")).filter(|line| line.contains('='));
        let kernel = of("Linux version ").and_then(|version| version.split(' ').next()).map(str::to_owned);
        let mut imported = Imported {
            tool: "latmus".to_owned(),
            version: of("libevl version:").unwrap_or_default().to_owned(),
            started_at: of("test started on:").unwrap_or_default().to_owned(),
            machine: Machine {
                preempt: of("Linux version ").and_then(|version| {
                    let (_, build) = version.split_once('#')?;
                    preemption::of_build(&format!("#{build}"), kernel.as_deref())
                }),
                kernel,
                cmdline: cmdline.map(str::to_owned),
                clocksource: of("clocksource:").map(str::to_owned),
                evl_gravity: of("clock gravity:").map(str::to_owned),
                ..Machine::default()
            },
            ..Imported::default()
        };
        // `CPU2-noisol`.
        let cpu: String =
            of("thread affinity: CPU").unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
        let is_isolated = !of("thread affinity:").is_some_and(|affinity| affinity.ends_with("-noisol"));
        let context = of("context:").unwrap_or_default();
        let mut figures = Figures {
            probe: if context.ends_with("gpio") { "interrupt" } else { record::TIMER }.to_owned(),
            phase: "latmus".to_owned(),
            role: if context == "user" { String::new() } else { context.to_owned() },
            isolated: (!cpu.is_empty()).then_some(is_isolated),
            cpus: cpu,
            policy: of("thread priority:").map(|priority| format!("fifo:{priority}")).unwrap_or_default(),
            period_ns: period_us.and_then(|us| us.checked_mul(1_000)),
            duration_ns: of("duration (hhmmss):").and_then(time_ns),
            samples: number("sample count:")?
                .and_then(|count| to_ns(count, 1.0))
                .and_then(|count| u64::try_from(count).ok()),
            min_ns: us("min latency:")?,
            mean_ns: number("avg latency:")?.map(|us| us * 1e3),
            max_ns: us("max latency:")?,
            max_at_ns: of("peak (hhmmss):").and_then(time_ns),
            ..Figures::default()
        };
        let mut cells = Cells::default();
        for (number, line) in
            (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty())
        {
            let wrong = || Mistake::new(number, format!("{line:?} is no cell with its number of samples"));
            let (cell, count) = line.trim().split_once(' ').ok_or_else(wrong)?;
            let count: u64 = count.trim().parse().map_err(|_| wrong())?;
            let from_us: i64 = cell.trim_end_matches('+').parse().map_err(|_| wrong())?;
            if cell.ends_with('+') {
                let text = format!("the last cell ({from_us} us) also contains {count} samples that can be later");
                imported.caveats.push(caveat("clamped", text));
                cells.beyond = cells.beyond.saturating_add(count);
                cells.end_ns = from_us.checked_mul(1_000);
                continue;
            }
            let from_ns = from_us.checked_mul(1_000).filter(|&ns| ns >= 0).ok_or_else(wrong)?;
            cells.add(from_ns, 1_000, count).ok_or_else(wrong)?;
        }
        if figures.min_ns.is_some_and(|min_ns| min_ns < 0) {
            imported
                .caveats
                .push(caveat("folded", "early wake-ups are in the cells of late ones, by their absolute value"));
        }
        let samples =
            figures.samples.ok_or_else(|| Mistake::new(0, "it has no line `# sample count:`; the file is cut"))?;
        if samples != cells.total() {
            let text = format!("the cells have {} samples, the sample count is {samples}", cells.total());
            return Err(Mistake::new(0, text));
        }
        if let Some(overruns) = of("OVERRUNS:") {
            let text = format!("{overruns} overruns: deadlines that passed have no samples");
            imported.caveats.push(caveat("omission", text));
        }
        if let Some(switches) = of("IN-BAND SWITCHES:") {
            let text = format!("the thread fell back to Linux {switches} times");
            imported.caveats.push(caveat("mixed", text));
        }
        imported.caveats.extend(omission("the thread", figures.max_ns, figures.period_ns));
        // A version that does not mark its last cell counts all later samples in it.
        if cells.beyond == 0 {
            cells.open_end(figures.max_ns.map(|max_ns| max_ns.max(figures.min_ns.unwrap_or(0).saturating_neg())));
            if cells.beyond > 0 {
                let text = "the last cell also contains later samples, because the maximum is beyond it";
                imported.caveats.push(caveat("clamped", text));
            }
        }
        cells.fill(&mut figures)?;
        imported.figures.push(figures);
        Ok(imported)
    }
}

/// A time such as `00:10:00`.
fn time_ns(text: &str) -> Option<u64> {
    let parts = text.split(':').map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?.checked_mul(1_000_000_000)
}
