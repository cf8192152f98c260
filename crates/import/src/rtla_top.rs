//! Tables of `rtla timerlat top`, `rtla osnoise top` and `rtla hwnoise` (`tools/tracing/rtla/src/timerlat_top.c` and
//! `osnoise_top.c`).

use std::collections::BTreeMap;

use record::{Figures, TIMERLAT_IRQ, TIMERLAT_THREAD};

use crate::{
    Ending, Format, Imported, Mistake, Unit, another_run, caveat,
    cells::to_ns,
    rtla::{KERNEL, TIMERLAT_USER, duration_ns, missed_events},
    rtla_analysis::{remarks, stopped},
};

/// The format.
pub struct Tables;

impl Format for Tables {
    fn name(&self) -> &'static str {
        "rtla top"
    }

    fn is_it(&self, text: &str) -> bool {
        let has_title = ["Timer Latency", "Operating System Noise", "Hardware-related Noise"]
            .iter()
            .any(|title| text.contains(title));
        has_title && text.lines().any(|line| is_heading(&plain(line)))
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let lines: Vec<(usize, String)> = (1..).zip(text.lines().map(plain)).collect();
        // The screen is drawn again and again; the last table has the results.
        let heading = lines.iter().rposition(|(_, line)| is_heading(line));
        let heading = heading.ok_or_else(|| Mistake::new(0, "it has no line `CPU COUNT` or `CPU Period`"))?;
        let counts = check_single_run(&lines)?;
        let is_timerlat = lines[heading].1.starts_with("CPU COUNT");
        let title = heading.checked_sub(1).map(|at| lines[at].1.as_str()).unwrap_or_default();
        let mut imported = Imported { tool: "rtla".to_owned(), ..Imported::default() };
        imported.caveats.push(caveat("mixed", if is_timerlat { KERNEL } else { NOISE }));
        for (number, line) in &lines[heading + 1..] {
            let cpu = line.split_whitespace().next().unwrap_or_default();
            if !cpu.bytes().all(|byte| byte.is_ascii_digit()) || cpu.is_empty() {
                break;
            }
            let row = if is_timerlat { of_timerlat(line, title) } else { of_osnoise(line) };
            let row = row.ok_or_else(|| Mistake::new(*number, format!("{line:?} is no row of this table")))?;
            // osnoise has more columns than hwnoise.
            let is_alike = |first: &Figures| row.iter().all(|figures| figures.phase == first.phase);
            if !imported.figures.first().is_none_or(is_alike) {
                return Err(Mistake::new(*number, format!("{line:?} has other columns than the row before it")));
            }
            if imported.figures.iter().any(|figures| figures.cpus == cpu) {
                return Err(Mistake::new(*number, format!("the table has CPU {cpu} twice")));
            }
            imported.figures.extend(row);
        }
        if imported.figures.is_empty() {
            return Err(Mistake::new(lines[heading].0, "the table has no row of a CPU"));
        }
        let is_in_table = |cpu: &u32| imported.figures.iter().any(|figures| figures.cpus == cpu.to_string());
        if let Some(cpu) = counts.keys().find(|cpu| !is_in_table(cpu)) {
            let text = format!("the last table lacks CPU {cpu}, which a table before it has; the output is cut");
            return Err(Mistake::new(lines[heading].0, text));
        }
        let of_all = lines[heading + 1..].iter().find_map(|(number, line)| Some((*number, count_of_all(line)?)));
        let sum = imported.figures.iter().filter_map(|figures| figures.samples).fold(0, u64::saturating_add);
        if let Some((number, count)) = of_all.filter(|(_, count)| is_timerlat && *count != sum) {
            return Err(Mistake::new(number, format!("the rows have {sum} samples, but the row `ALL` has {count}")));
        }
        let duration_ns = if is_timerlat { time_of_title(title) } else { None };
        for figures in imported.figures.iter_mut().filter(|figures| figures.duration_ns.is_none()) {
            figures.duration_ns = duration_ns;
        }
        imported.caveats.extend(missed_events(text).into_iter().chain(stopped(text)));
        imported.remarks = remarks(text);
        Ok(imported)
    }
}

/// The caveat of osnoise.
const NOISE: &str = "the maximum is the longest single noise (`Max Single`); the number and the other times of noises are not in the table";

/// The time of a title such as `  0 00:01:00   |          IRQ Timer Latency (us)`, or of `duration:   0 00:01:00 | time is in us`.
fn time_of_title(line: &str) -> Option<u64> {
    let (time, _) = line.split_once('|')?;
    duration_ns(time.trim().trim_start_matches("duration:"))
}

/// The last number of samples or periods of each CPU in any table.
///
/// # Errors
/// The time of a table is before that of the table above it, or a CPU has fewer samples or periods than there.
fn check_single_run(lines: &[(usize, String)]) -> Result<BTreeMap<u32, u64>, Mistake> {
    let (mut last, mut counts) = (0, BTreeMap::new());
    for (number, line) in lines {
        if let Some(time) = time_of_title(line) {
            if time < last {
                return Err(another_run(*number));
            }
            last = time;
        }
        if let Some((cpu, count)) = count_of_cpu(line)
            && counts.insert(cpu, count).is_some_and(|before| count < before)
        {
            return Err(another_run(*number));
        }
    }
    Ok(counts)
}

/// The CPU and the number of samples or periods at the begin of a row, `  0 #60001 `.
fn count_of_cpu(line: &str) -> Option<(u32, u64)> {
    let (cpu, rest) = line.split_once('#')?;
    Some((cpu.trim().parse().ok()?, rest.split_whitespace().next()?.parse().ok()?))
}

/// The number in `ALL #120001 e0 |`, which later versions print below the rows.
fn count_of_all(line: &str) -> Option<u64> {
    let rest = line.trim_start().strip_prefix("ALL #")?;
    rest.split([' ', '|']).next()?.parse().ok()
}

fn is_heading(line: &str) -> bool {
    line.starts_with("CPU COUNT") || line.starts_with("CPU Period")
}

/// The line without escape sequences for colours (`ESC [ ... m`) and for a new screen (`ESC c`).
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    let rests = parts.map(|part| match part.strip_prefix('[') {
        Some(sequence) => sequence.split_once(|letter: char| letter.is_ascii_alphabetic()).map_or("", |(_, rest)| rest),
        None => part.strip_prefix('c').unwrap_or(part),
    });
    first + &rests.collect::<String>()
}

/// Reads `  0 #12345     |        1         1         2        19 |        2 ...`: cur, min, avg and max of interrupt, thread and
/// program.
fn of_timerlat(line: &str, title: &str) -> Option<Vec<Figures>> {
    let unit_ns = if title.contains("(ns)") {
        1.0
    } else if title.contains("(us)") {
        1e3
    } else {
        return None;
    };
    let mut parts = line.split('|');
    let (cpu, count) = parts.next()?.split_once('#')?;
    let (cpu, count) = (cpu.trim().parse::<u32>().ok()?, count.trim().parse::<u64>().ok()?);
    let mut all = Vec::new();
    for (part, role) in parts.zip([TIMERLAT_IRQ, TIMERLAT_THREAD, TIMERLAT_USER]) {
        let words: Vec<&str> = part.split_whitespace().collect();
        let [_, min, avg, max] = words[..] else { return None };
        let time =
            |word: &str| if word == "-" { Some(None) } else { Some(Some(word.parse::<u64>().ok()? as f64 * unit_ns)) };
        // A time out of range is none.
        let to_whole = |ns: Option<f64>| ns.map_or(Some(None), |ns| Some(Some(to_ns(ns, 1.0)?)));
        let (min, avg, max) = (time(min)?, time(avg)?, time(max)?);
        if max.is_none() {
            continue;
        }
        all.push(Figures {
            probe: record::TIMER.to_owned(),
            phase: "timerlat".to_owned(),
            role: role.to_owned(),
            cpus: cpu.to_string(),
            // The count is that of interrupts.
            samples: (role == TIMERLAT_IRQ).then_some(count),
            min_ns: to_whole(min)?,
            mean_ns: avg,
            max_ns: to_whole(max)?,
            ..Figures::default()
        });
    }
    (!all.is_empty()).then_some(all)
}

/// Reads `  0 #59         53100000       304896    99.42580        6978           56         549            0 ...`: periods,
/// runtime, noise, available share, largest noise of a period, longest noise, and counts of causes.
fn of_osnoise(line: &str) -> Option<Vec<Figures>> {
    // The number of periods can fill its column.
    let line = line.replace('#', " # ");
    let words: Vec<&str> = line.split_whitespace().collect();
    let [cpu, "#", periods, runtime, noise, available, of_period, single, counts @ ..] = &words[..] else {
        return None;
    };
    let number = |word: &str| word.parse::<u64>().ok();
    let (cpu, _, _) = (number(cpu)?, number(periods)?, number(noise)?);
    let available: f64 = available.parse().ok().filter(|share: &f64| (0.0..=100.0).contains(share))?;
    if counts.len() != 2 && counts.len() != 5 || counts.iter().any(|count| number(count).is_none()) {
        return None;
    }
    let figures = Figures {
        probe: "noise".to_owned(),
        phase: if counts.len() == 2 { "hwnoise" } else { "osnoise" }.to_owned(),
        cpus: cpu.to_string(),
        duration_ns: Some(number(runtime)?.checked_mul(1_000)?),
        max_ns: Some(to_ns(number(single)? as f64, 1e3)?),
        note: format!("{available} % of the CPU available, at most {} us of noise in a period.", number(of_period)?),
        ..Figures::default()
    };
    Some(vec![figures])
}
