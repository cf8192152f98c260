//! The output of `stress-ng --cyclic` (`stress-cyclic.c`). Its `--yaml` file has no latencies; it can follow the output.

use record::{Figures, Machine, grouped};

use crate::{
    Ending, Format, Imported, Mistake, Unit, another_run, caveat,
    cells::{Cells, check_percentiles, to_ns},
    date, preemption,
};

/// The format.
pub struct Cyclic;

impl Format for Cyclic {
    fn name(&self) -> &'static str {
        "stress-ng --cyclic"
    }

    fn is_it(&self, text: &str) -> bool {
        // The words alone can be in any text about stress-ng.
        let is_yaml = text.starts_with("---") && is_yaml(text);
        is_yaml || text.lines().any(|line| message(line).is_some_and(|text| text.starts_with("sched SCHED_")))
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let mut imported = Imported { tool: "stress-ng".to_owned(), ..Imported::default() };
        if is_yaml(text) {
            (imported.version, imported.started_at, imported.machine) = system_info(text);
        }
        let mut blocks: Vec<Block> = Vec::new();
        let (mut has_begun, mut instances, mut seconds) = (false, 0, None);
        for (number, line) in (1..).zip(text.lines()) {
            if line.contains("stress-ng: ") && line.contains("] dispatching hogs: ") {
                if has_begun {
                    return Err(another_run(number));
                }
                (has_begun, instances) = (true, hogs(line));
            }
            seconds = seconds.or_else(|| completed(line));
            let Some(message) = message(line) else { continue };
            if let Some(title) = message.strip_prefix("sched SCHED_") {
                blocks.push(Block::new(number, title)?);
            } else if let Some(block) = blocks.last_mut() {
                block.line(number, message)?;
            }
        }
        if blocks.is_empty() {
            return Err(Mistake::new(0, NO_LATENCIES));
        }
        for (at, block) in blocks.into_iter().enumerate() {
            block.end(at, seconds, &mut imported)?;
        }
        if has_begun && seconds.is_none() {
            imported.caveats.push(caveat("cut", "the output has no line `run completed in ...`, so it can be cut"));
        }
        let has_more =
            instances > 1 || text.lines().filter_map(message).any(|text| text.contains("run just 1 instance"));
        if has_more {
            imported.caveats.push(caveat("mixed", "several instances ran, and stress-ng prints only one of them"));
        }
        imported.caveats.push(caveat("omission", RELATIVE));
        Ok(imported)
    }
}

const NO_LATENCIES: &str =
    "the YAML of stress-ng has no latencies; save its output: stress-ng --cyclic 1 ... 2>&1 | tee FILE";
/// The percentile that stress-ng prints last.
const LAST_PERCENT: &str = "99.99%:";
/// The caveat of each result.
const RELATIVE: &str =
    "each sleep begins after the one before, so there are no deadlines; latencies include the cost of the calls";

/// The number of instances in `dispatching hogs: 4 cyclic, 2 cpu`.
fn hogs(line: &str) -> u64 {
    let (_, hogs) = line.split_once("dispatching hogs: ").unwrap_or_default();
    let cyclic = hogs.split(',').find_map(|hog| hog.trim().strip_suffix("cyclic")?.trim().parse().ok());
    cyclic.unwrap_or_default()
}

/// The seconds of `successful run completed in 600.00s (10 mins, 0.00 secs)`.
fn completed(line: &str) -> Option<f64> {
    let (_, time) = line.split_once("run completed in ")?;
    time.split('s').next()?.trim().parse().ok().filter(|seconds: &f64| seconds.is_finite())
}

/// The text behind `cyclic:` in a line of the log.
fn message(line: &str) -> Option<&str> {
    let (before, text) = line.split_once("cyclic: ")?;
    before.contains("stress-ng").then(|| text.trim())
}

fn is_yaml(text: &str) -> bool {
    text.contains("stress-ng-version:") && text.contains("stressor: cyclic")
}

/// The version, the start and the machine in the YAML.
fn system_info(text: &str) -> (String, String, Machine) {
    let of = |name: &str| {
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
        let values = lines.map(|value| value.trim().trim_matches(['\'', '"'])).filter(|value| !value.is_empty());
        values.map(str::to_owned).next()
    };
    let machine = Machine {
        hostname: of("hostname"),
        kernel: of("release"),
        preempt: of("version").and_then(|build| preemption::of_build(&build, of("release").as_deref())),
        kernel_build: of("version"),
        arch: of("machine"),
        ..Machine::default()
    };
    let started_at = of("epoch-secs").and_then(|seconds| seconds.parse().ok()).and_then(date::of_epoch);
    (of("stress-ng-version").unwrap_or_default(), started_at.unwrap_or_default(), machine)
}

/// The results of one instance.
struct Block {
    figures: Figures,
    cells: Cells,
    width_ns: Option<i64>,
    p50_ns: Option<i64>,
    p99_ns: Option<i64>,
    /// Percentiles without a figure of their own.
    others: Vec<String>,
    /// All percentiles, ns.
    percentiles: Vec<(f64, f64)>,
    /// The number of rows of the distribution, and of its cells, as its title has them.
    rows_and_cells: Option<(u64, u64)>,
    /// The rows that the output has, and the begin of the last one, ns.
    rows: u64,
    last_row_ns: f64,
    /// True if the output leaves out rows without samples: `.. .. (all zeros hereafter)`.
    leaves_out: bool,
    /// True after the last percentile.
    has_last: bool,
    /// Samples of the whole run.
    needed: Option<u64>,
}

impl Block {
    /// Reads `FIFO: 100000 ns delay, 10000 samples`.
    fn new(number: usize, title: &str) -> Result<Self, Mistake> {
        let wrong = || Mistake::new(number, format!("{title:?} has no policy, delay and number of samples"));
        let (policy, rest) = title.split_once(':').ok_or_else(wrong)?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [delay, "ns", "delay,", samples, "samples"] = words[..] else { return Err(wrong()) };
        let figures = Figures {
            probe: record::TIMER.to_owned(),
            phase: "cyclic".to_owned(),
            policy: policy.trim().to_lowercase(),
            period_ns: Some(delay.parse().map_err(|_| wrong())?),
            samples: Some(samples.parse().map_err(|_| wrong())?),
            ..Figures::default()
        };
        Ok(Self {
            figures,
            cells: Cells::default(),
            width_ns: None,
            p50_ns: None,
            p99_ns: None,
            others: Vec::new(),
            percentiles: Vec::new(),
            rows_and_cells: None,
            rows: 0,
            last_row_ns: 0.0,
            leaves_out: false,
            has_last: false,
            needed: None,
        })
    }

    /// The part of a run with these samples, by its length in seconds. A sample takes a sleep and its latency.
    fn share(&self, samples: u64, seconds: f64) -> Option<f64> {
        let each_ns = self.figures.period_ns? as f64 + self.figures.mean_ns?;
        (seconds > 0.0).then(|| samples as f64 * each_ns / (seconds * 1e9))
    }

    fn line(&mut self, number: usize, message: &str) -> Result<(), Mistake> {
        let wrong = || Mistake::new(number, format!("{message:?} must have a number of ns"));
        let words: Vec<&str> = message.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        match words[..] {
            ["mean:", mean, "ns", "mode:", mode, "ns"] => {
                self.figures.mean_ns =
                    Some(mean.parse::<f64>().ok().filter(|mean| mean.is_finite()).ok_or_else(wrong)?);
                self.figures.mode_ns = Some(mode.parse().map_err(|_| wrong())?);
            }
            ["min:", min, "ns", "max:", max, "ns", ..] => {
                self.figures.min_ns = Some(min.parse().map_err(|_| wrong())?);
                self.figures.max_ns = Some(max.parse().map_err(|_| wrong())?);
            }
            [percent, value, "ns"] if percent.ends_with("%:") => {
                let value_ns: i64 = value.parse().map_err(|_| wrong())?;
                let number = percent.trim_end_matches("%:").parse().map_err(|_| wrong())?;
                self.percentiles.push((number, value_ns as f64));
                self.has_last |= percent == LAST_PERCENT;
                match percent {
                    "50.00%:" => self.p50_ns = Some(value_ns),
                    "99.00%:" => self.p99_ns = Some(value_ns),
                    _ => self.others.push(format!("{} % {value_ns} ns", percent.trim_end_matches("%:"))),
                }
            }
            ["latency", "distribution", width, "ns", ..] => {
                let width_ns = width.trim_start_matches('(').parse().ok().filter(|&ns: &i64| ns > 0);
                self.width_ns = Some(width_ns.ok_or_else(wrong)?);
            }
            ["(for", "the", "first", rows, "buckets", "of", cells] => {
                let number = |text: &str| text.trim_end_matches(')').parse().map_err(|_| wrong());
                self.rows_and_cells = Some((number(rows)?, number(cells)?));
            }
            ["Note:", "--cyclic-samples", "needed", "to", "be", needed, ..] => {
                self.needed = Some(needed.parse().map_err(|_| wrong())?);
            }
            ["..", "..", ..] => self.leaves_out = true,
            [from, count] => {
                if let (Some(width_ns), Ok(from_ns), Ok(count)) = (self.width_ns, from.parse(), count.parse()) {
                    let added = to_ns(from_ns, 1.0).and_then(|from_ns| self.cells.add(from_ns, width_ns, count));
                    added.ok_or_else(|| Mistake::new(number, format!("{message:?} is out of range")))?;
                    self.rows += 1;
                    self.last_row_ns = from_ns;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The run took so many seconds, if its output says so.
    fn end(mut self, at: usize, seconds: Option<f64>, imported: &mut Imported) -> Result<(), Mistake> {
        let samples = self.figures.samples.unwrap_or_default();
        if self.figures.max_ns.is_none() {
            return Err(Mistake::new(0, "it has no line `cyclic: min: ... max: ...`; the output is cut"));
        }
        if !self.has_last {
            return Err(Mistake::new(0, format!("it has no line `cyclic: {LAST_PERCENT} ...`; the output is cut")));
        }
        if at > 0 {
            self.figures.phase = format!("cyclic-{at}");
        }
        let who = self.figures.phase.clone();
        let ends = [(0.0, self.figures.min_ns), (100.0, self.figures.max_ns)];
        self.percentiles.extend(ends.into_iter().filter_map(|(percent, ns)| Some((percent, ns? as f64))));
        check_percentiles(&who, &self.percentiles)?;
        let is_whole = |rows: u64| {
            let last_ns = rows.saturating_sub(1) as f64 * self.width_ns.unwrap_or_default() as f64;
            self.rows == rows || self.leaves_out && (self.last_row_ns - last_ns).abs() < 1.0
        };
        if let Some((rows, _)) = self.rows_and_cells.filter(|(rows, _)| !is_whole(*rows)) {
            let text = format!("the distribution has {} of its {rows} rows; the output is cut", self.rows);
            return Err(Mistake::new(0, text));
        }
        if self.width_ns.is_some() && self.rows == 0 {
            return Err(Mistake::new(0, "the distribution has no row; the output is cut"));
        }
        let has_all_cells = self.rows_and_cells.is_some_and(|(rows, cells)| rows == cells);
        if has_all_cells && self.cells.total() < samples {
            let text = format!("the distribution has {} samples, but the run {samples}", self.cells.total());
            return Err(Mistake::new(0, text));
        }
        if self.cells.total() > 0 {
            let text = || format!("the distribution has {} samples, but the run only {samples}", self.cells.total());
            self.cells.beyond = samples.checked_sub(self.cells.total()).ok_or_else(|| Mistake::new(0, text()))?;
        }
        if let Some(needed) = self.needed {
            let text =
                format!("{who}: only the first {} of {} samples are in the figures", grouped(samples), grouped(needed));
            imported.caveats.push(caveat("overflow", text));
        } else if let Some(share) =
            seconds.and_then(|seconds| self.share(samples, seconds)).filter(|&share| share < 0.9)
        {
            let text = format!(
                "{who}: the {} samples of the figures are only the first {:.1} % of the run; --cyclic-samples keeps more",
                grouped(samples),
                100.0 * share
            );
            imported.caveats.push(caveat("overflow", text));
        }
        imported.caveats.extend(self.cells.overflow(&who, self.figures.max_ns));
        self.cells.fill(&mut self.figures)?;
        // Those of the file are exact.
        self.figures.p50_ns = self.p50_ns.or(self.figures.p50_ns);
        self.figures.p99_ns = self.p99_ns.or(self.figures.p99_ns);
        if !self.others.is_empty() {
            self.figures.note = format!("Other percentiles: {}.", self.others.join(", "));
        }
        imported.figures.push(self.figures);
        Ok(())
    }
}
