//! The results of jitterdebugger, JSON (`jitterdebugger.c`, `dump_stats`).

use record::{Figures, Machine};
use serde_json::Value;

use crate::{
    Ending, Format, Imported, Mistake, Unit, caveat,
    cells::{Cells, time_ns},
    preemption,
};

/// The format.
pub struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "jitterdebugger, JSON"
    }

    fn is_it(&self, text: &str) -> bool {
        let is_object = text.trim_start().starts_with('{');
        let has = |key: &str| text.contains(key);
        // A file that is cut has no count, but the resolution comes first.
        let is_whole_or_cut = has("\"count\"") || has("\"cpus_online\"") || has("\"resolution_in_ns\"");
        is_object && has("\"cpu\"") && has("\"histogram\"") && is_whole_or_cut && !has("\"file_version\"")
    }

    fn ending(&self) -> Ending {
        Ending::Closed
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let file: Value = serde_json::from_str(text).map_err(|error| Mistake::new(error.line(), error.to_string()))?;
        let info = &file["sysinfo"];
        let of = |key: &str| info[key].as_str().map(str::to_owned);
        // Nanoseconds in a unit; versions before 3 do not say it, and have microseconds.
        let unit_ns = info["resolution_in_ns"].as_i64().unwrap_or(1_000);
        if ![1, 1_000].contains(&unit_ns) {
            return Err(Mistake::new(0, format!("resolution_in_ns is {unit_ns}, not 1 or 1000")));
        }
        let mut imported = Imported {
            tool: "jitterdebugger".to_owned(),
            machine: Machine {
                hostname: of("nodename"),
                kernel: of("release"),
                kernel_build: of("version"),
                preempt: info["version"]
                    .as_str()
                    .and_then(|build| preemption::of_build(build, info["release"].as_str())),
                arch: of("machine"),
                ..Machine::default()
            },
            ..Imported::default()
        };
        let threads = file["cpu"].as_object().ok_or_else(|| Mistake::new(0, "`cpu` is no object"))?;
        for (name, thread) in threads {
            let count =
                thread["count"].as_u64().ok_or_else(|| Mistake::new(0, format!("thread {name} has no count")))?;
            let has_samples = count > 0;
            let unit = |key: &str| {
                let value = thread[key].as_f64().filter(|_| has_samples);
                value.map(|value| time_ns(value, unit_ns as f64, &format!("{key} of thread {name}"))).transpose()
            };
            let mut cells = Cells::default();
            for (key, samples) in thread["histogram"].as_object().into_iter().flatten() {
                let wrong = || Mistake::new(0, format!("thread {name}: the cell {key:?}: {samples} is none"));
                let from_ns = key.parse().ok().and_then(|from: i64| from.checked_mul(unit_ns)).filter(|&ns| ns >= 0);
                cells
                    .add(from_ns.ok_or_else(wrong)?, unit_ns, samples.as_u64().ok_or_else(wrong)?)
                    .ok_or_else(wrong)?;
            }
            cells.beyond = count.checked_sub(cells.total()).ok_or_else(|| {
                Mistake::new(
                    0,
                    format!("thread {name}: {} samples in the histogram, but a count of {count}", cells.total()),
                )
            })?;
            let mut figures = Figures {
                probe: record::TIMER.to_owned(),
                phase: format!("thread-{name}"),
                samples: Some(count),
                min_ns: unit("min")?,
                mean_ns: thread["avg"].as_f64().filter(|_| count > 0).map(|mean| mean * unit_ns as f64),
                max_ns: unit("max")?,
                ..Figures::default()
            };
            imported.caveats.extend(cells.overflow(&format!("thread {name}"), figures.max_ns));
            cells.fill(&mut figures)?;
            imported.figures.push(figures);
        }
        if imported.figures.is_empty() {
            return Err(Mistake::new(0, "it has no thread"));
        }
        imported.caveats.push(caveat("omission", "deadlines that a late wake-up passed have no samples"));
        Ok(imported)
    }
}
