//! JSON files of rt-tests: cyclictest and oslat (`src/lib/rt-utils.c`, `rt_write_json`).

use record::{Caveat, Figures, Machine};
use serde_json::Value;

use crate::{
    Ending, Format, Imported, Mistake, STOPPED, Unit, caveat,
    cells::{Cells, omission, time_ns, to_ns},
    command::Command,
    date, preemption,
};

/// The format.
pub struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "cyclictest and oslat, JSON"
    }

    fn is_it(&self, text: &str) -> bool {
        text.trim_start().starts_with('{')
            && text.contains("\"file_version\"")
            && (text.contains("\"thread\"") || text.contains("\"cmdline:\""))
    }

    fn ending(&self) -> Ending {
        Ending::Closed
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        // A thread without cycles has the mean `nan`.
        let text = text.replace(": nan", ": null").replace(": -nan", ": null");
        let file: Value = serde_json::from_str(&text)
            .or_else(|error| serde_json::from_str(&with_quoted_command(&text)).map_err(|_| error))
            .map_err(|error| Mistake::new(error.line(), error.to_string()))?;
        let of = |key: &str| file[key].as_str().unwrap_or_default().to_owned();
        // Both keys end with a colon in the files.
        let (command, version) = (of("cmdline:"), of("rt_test_version:"));
        // Other programs of rt-tests write the same frame with other times.
        let program = command.split_whitespace().next().unwrap_or_default();
        if !program.is_empty() && !["cyclictest", "oslat"].iter().any(|known| program.contains(known)) {
            return Err(Mistake::new(
                0,
                format!("it is the result of {program}; only cyclictest and oslat can be read"),
            ));
        }
        let threads = file["thread"].as_object().ok_or_else(|| Mistake::new(0, "`thread` is no object"))?;
        let is_oslat = threads.values().any(|thread| thread["freq"].is_number());
        let mut imported = Imported {
            tool: if is_oslat { "oslat" } else { "cyclictest" }.to_owned(),
            version,
            started_at: of("start_time"),
            machine: machine(&file["sysinfo"]),
            ..Imported::default()
        };
        let words = Command::of(&command);
        let mut numbered: Vec<(u32, &Value)> = Vec::new();
        for (number, thread) in threads {
            let number = number.parse().map_err(|_| Mistake::new(0, format!("thread {number:?} has no number")))?;
            numbered.push((number, thread));
        }
        if let Some(expected) = file["num_threads"].as_u64().filter(|&expected| expected != threads.len() as u64) {
            return Err(Mistake::new(
                0,
                format!("num_threads is {expected}, but the number of its threads is {}", threads.len()),
            ));
        }
        numbered.sort_unstable_by_key(|(number, _)| *number);
        if numbered.is_empty() {
            return Err(Mistake::new(0, "it has no thread"));
        }
        for (number, thread) in numbered {
            let (figures, caveats) = match is_oslat {
                true => of_oslat(number, thread, &words)?,
                false => of_cyclictest(number, thread, &file, &words, threads.len())?,
            };
            imported.figures.push(figures);
            imported.caveats.extend(caveats);
        }
        if is_oslat {
            imported.caveats.push(caveat("mixed", LOOPS));
        }
        if let Some(code) = file["return_code"].as_i64().filter(|&code| code != 0) {
            imported.caveats.push(caveat("failed", format!("the program ended with the error code {code}")));
        }
        let limit_us = if is_oslat { words.value('T', "trace-threshold") } else { words.value('b', "breaktrace") };
        if is_above(&imported.figures, limit_us) {
            imported.caveats.push(caveat("stopped", STOPPED));
        }
        imported.command = command;
        Ok(imported)
    }
}

/// The caveat of each result of oslat.
pub const LOOPS: &str = "oslat counts each turn of its loop, so its first cell is no interruption; the last cell also contains \
                         all longer times";

/// The text with a command line whose quotes are escaped. The tools write it as it is, so a quote in it is no JSON.
fn with_quoted_command(text: &str) -> String {
    const BEGIN: &str = "\"cmdline:\": \"";
    /// The next key.
    const END: &str = "\"rt_test_version";
    let parts = || {
        let (before, rest) = text.split_once(BEGIN)?;
        let (command, after) = rest.split_at(rest.find(END)?);
        Some((before, command.trim_end().strip_suffix("\",")?, after))
    };
    let Some((before, command, after)) = parts() else { return text.to_owned() };
    let command = command.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{before}{BEGIN}{command}\",{after}")
}

fn machine(info: &Value) -> Machine {
    let of = |key: &str| info[key].as_str().map(str::to_owned);
    let of_build = || preemption::of_build(info["version"].as_str()?, info["release"].as_str());
    Machine {
        hostname: of("nodename"),
        kernel: of("release"),
        kernel_build: of("version"),
        preempt: if info["realtime"].as_i64() == Some(1) { Some(preemption::REAL_TIME.to_owned()) } else { of_build() },
        arch: of("machine"),
        ..Machine::default()
    }
}

/// The samples of a thread: by the number of the cell, its width and its upper end in units of `unit_ns`.
fn cells(thread: &Value, number: u32, of_cell: impl Fn(f64) -> Option<(i64, i64)>) -> Result<Cells, Mistake> {
    let mut cells = Cells::default();
    for (key, count) in thread["histogram"].as_object().into_iter().flatten() {
        let wrong = || Mistake::new(0, format!("thread {number}: the cell {key:?}: {count} is none"));
        let (from_ns, width_ns) = key.parse().ok().and_then(&of_cell).ok_or_else(wrong)?;
        cells.add(from_ns, width_ns, count.as_u64().ok_or_else(wrong)?).ok_or_else(wrong)?;
    }
    Ok(cells)
}

/// The time of a thread with this key.
fn time_of(thread: &Value, number: u32, key: &str, unit_ns: f64) -> Result<Option<i64>, Mistake> {
    thread[key].as_f64().map(|value| time_ns(value, unit_ns, &format!("{key} of thread {number}"))).transpose()
}

type Read = (Figures, Vec<Caveat>);

fn of_cyclictest(
    number: u32,
    thread: &Value,
    file: &Value,
    command: &Command<'_>,
    threads: usize,
) -> Result<Read, Mistake> {
    // It is a truth value: 1 for ns, 0 for us.
    let unit_ns = if file["resolution_in_ns"].as_i64() == Some(1) { 1 } else { 1_000 };
    let time = |key: &str| time_of(thread, number, key, f64::from(unit_ns));
    let mut cells = cells(thread, number, |value| {
        let from_ns = to_ns(value, f64::from(unit_ns)).filter(|&ns| ns >= 0)?;
        Some((from_ns, i64::from(unit_ns)))
    })?;
    let cycles = thread["cycles"].as_u64().ok_or_else(|| Mistake::new(0, format!("thread {number} has no cycles")))?;
    let end = command.value('h', "histogram").or_else(|| command.value('H', "histofall"));
    cells.end_ns = end.and_then(|end| end.parse::<i64>().ok()?.checked_mul(unit_ns.into()));
    // All samples can be beyond the last cell.
    let has_histogram = cells.total() > 0 || end.is_some_and(|end| end != "0");
    if has_histogram {
        cells.beyond = cycles.checked_sub(cells.total()).ok_or_else(|| {
            Mistake::new(
                0,
                format!("thread {number}: the histogram has {} samples, but only {cycles} cycles", cells.total()),
            )
        })?;
    }
    // Each thread has its own period unless the threads are equal, as with -S or with a histogram.
    let is_equal =
        threads == 1 || has_histogram || command.has('S', "smp") || command.value('d', "distance") == Some("0");
    let default_us = (!command.is_empty()).then_some(1_000);
    let period_us = command.value('i', "interval").map_or(default_us, |value| value.parse::<u64>().ok());
    let cpu = thread["cpu"].as_u64();
    let mut figures = Figures {
        probe: record::TIMER.to_owned(),
        phase: format!("thread-{number}"),
        cpus: cpu.map(|cpu| cpu.to_string()).unwrap_or_default(),
        policy: policy(command),
        period_ns: period_us.filter(|_| is_equal).and_then(|us| us.checked_mul(1_000)),
        duration_ns: duration_ns(file),
        samples: Some(cycles),
        min_ns: time("min")?.filter(|_| cycles > 0),
        mean_ns: thread["avg"].as_f64().filter(|_| cycles > 0).map(|mean| mean * f64::from(unit_ns)),
        max_ns: time("max")?.filter(|_| cycles > 0),
        ..Figures::default()
    };
    let who = format!("thread {number}");
    let caveats = cells
        .overflow(&who, figures.max_ns)
        .into_iter()
        .chain(omission(&who, figures.max_ns, figures.period_ns))
        .collect();
    cells.fill(&mut figures)?;
    Ok((figures, caveats))
}

/// The policy of the threads of cyclictest, which needs FIFO for a priority, and a priority for FIFO and RR.
fn policy(command: &Command<'_>) -> String {
    let priority = command.value('p', "priority").map_or(Some(0), |priority| priority.parse::<u32>().ok());
    let name = command.value('y', "policy").map(str::to_lowercase);
    match (name.as_deref(), priority) {
        _ if command.is_empty() => String::new(),
        // Each thread has a priority of its own.
        _ if command.has('Q', "priospread") => String::new(),
        (_, None) => String::new(),
        // The default priority depends on the number of threads.
        (Some(name @ ("fifo" | "rr")), Some(0)) => name.to_owned(),
        (Some("rr"), Some(priority)) => format!("rr:{priority}"),
        (Some("deadline"), _) => "deadline".to_owned(),
        (None | Some("other" | "normal"), Some(0)) => "other".to_owned(),
        (Some(name @ ("batch" | "idle")), Some(0)) => name.to_owned(),
        (None | Some("fifo" | "other" | "normal" | "batch" | "idle"), Some(priority)) => format!("fifo:{priority}"),
        (Some(_), _) => String::new(),
    }
}

/// The time from the start to the end of a run, in whole seconds.
fn duration_ns(file: &Value) -> Option<u64> {
    let time = |key: &str| date::timestamp(file[key].as_str()?);
    let seconds = time("end_time")?.as_second().checked_sub(time("start_time")?.as_second())?;
    u64::try_from(seconds).ok().filter(|&seconds| seconds > 0)?.checked_mul(1_000_000_000)
}

/// True if the longest time of a thread is above this limit, us, which ends a run.
fn is_above(figures: &[Figures], limit_us: Option<&str>) -> bool {
    let limit_ns = limit_us.and_then(|us| us.parse::<i64>().ok()?.checked_mul(1_000)).filter(|&ns| ns > 0);
    limit_ns.is_some_and(|limit_ns| figures.iter().any(|figures| figures.max_ns > Some(limit_ns)))
}

fn of_oslat(number: u32, thread: &Value, command: &Command<'_>) -> Result<Read, Mistake> {
    // Cells of whole us, unless -W says another width in ns.
    let width_ns = command.value('W', "bucket-width").map_or(Some(1_000), |width| width.parse::<i64>().ok());
    let width_ns =
        width_ns.filter(|&ns| ns > 0).ok_or_else(|| Mistake::new(0, "its width of cells (-W) is no number"))?;
    let unit_ns = if width_ns % 1_000 == 0 { 1_000.0 } else { 1.0 };
    let time = |key: &str| time_of(thread, number, key, unit_ns);
    // The keys are the upper ends.
    let mut cells = cells(thread, number, |upper_us| {
        let upper_ns = to_ns(upper_us, 1e3).filter(|&ns| ns > 0)?;
        Some((upper_ns - width_ns + 1, width_ns))
    })?;
    let seconds = thread["duration"].as_f64();
    let mut figures = Figures {
        probe: "noise".to_owned(),
        phase: format!("thread-{number}"),
        cpus: thread["cpu"].as_u64().map(|cpu| cpu.to_string()).unwrap_or_default(),
        duration_ns: seconds.and_then(|seconds| to_ns(seconds, 1e9)).and_then(|ns| u64::try_from(ns).ok()),
        min_ns: time("min")?,
        max_ns: time("max")?,
        ..Figures::default()
    };
    cells.open_end(figures.max_ns);
    cells.fill(&mut figures)?;
    Ok((figures, Vec::new()))
}
