//! The output of hwlatdetect of rt-tests, and the file of its `--report` (`src/hwlatdetect/hwlatdetect.py`).

use record::Figures;

use crate::{
    Ending, Format, Imported, Mistake, Unit, another_run, caveat,
    cells::{Cells, time_ns},
};

/// The format.
pub struct Detected;

const TITLE: &str = "hwlatdetect:";

impl Format for Detected {
    fn name(&self) -> &'static str {
        "hwlatdetect"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(|line| is_title(line) || is_sample(line))
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let of = |name: &str| {
            (1..).zip(text.lines()).find_map(|(at, line)| Some((at, line.trim().strip_prefix(name)?.trim())))
        };
        let number = |name: &str| -> Result<Option<u64>, Mistake> {
            let Some((line, value)) = of(name) else { return Ok(None) };
            let wrong = || Mistake::new(line, format!("`{name}` must be a whole number (got {value:?})"));
            Ok(Some(value.trim_end_matches("us").parse().map_err(|_| wrong())?))
        };
        let mut titles = (1..).zip(text.lines()).filter(|(_, line)| is_title(line));
        if let Some((number, _)) = titles.nth(1) {
            return Err(another_run(number));
        }
        let mut imported = Imported { tool: "hwlatdetect".to_owned(), ..Imported::default() };
        let seconds = of(TITLE).and_then(|(_, title)| title.split_whitespace().nth(2)?.parse::<u64>().ok());
        let mut figures = Figures {
            probe: "noise".to_owned(),
            phase: "hwlat".to_owned(),
            cpus: of("CPU list:").map(|(_, cpus)| cpus).filter(|cpus| *cpus != "None").unwrap_or_default().to_owned(),
            duration_ns: seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000)),
            samples: number("Samples recorded:")?,
            ..Figures::default()
        };
        if of(TITLE).is_some() && figures.samples.is_none() {
            return Err(Mistake::new(0, "it has no line `Samples recorded:`; the output is cut"));
        }
        let mut cells = Cells::default();
        let mut largest_us = None;
        for (line, sample) in (1..).zip(text.lines()).filter(|(_, line)| is_sample(line)) {
            let gap_us = gap_us(sample)
                .ok_or_else(|| Mistake::new(line, format!("{sample:?} has no inner and outer gap in us")))?;
            largest_us = largest_us.max(Some(gap_us));
            let from_ns = i64::try_from(gap_us).ok().and_then(|us| us.checked_mul(1_000));
            let added = from_ns.and_then(|from_ns| cells.add(from_ns, 1_000, 1));
            added.ok_or_else(|| Mistake::new(line, format!("{gap_us} us is out of range")))?;
        }
        if let Some(samples) = figures.samples.filter(|&samples| samples != cells.total() && cells.total() > 0) {
            return Err(Mistake::new(0, format!("it has {} samples, but recorded {samples}", cells.total())));
        }
        if let Some(samples) = figures.samples.filter(|&samples| samples > 0 && cells.total() == 0) {
            let text = format!(
                "{} not listed, so the output can be cut",
                match samples {
                    1 => "its only sample is".to_owned(),
                    _ => format!("its {} are", record::counted(samples, "sample")),
                }
            );
            imported.caveats.push(caveat("cut", text));
        }
        // Old versions print `0us` if nothing was above the threshold, later ones `Below threshold`.
        let printed_us = match of("Max Latency:") {
            Some((_, "Below threshold")) => None,
            _ => number("Max Latency:")?.filter(|&us| us > 0),
        };
        if let (Some(printed), Some(largest)) =
            (printed_us, largest_us.filter(|&us| printed_us.is_some_and(|max| us > max)))
        {
            return Err(Mistake::new(0, format!("a sample has {largest} us, above `Max Latency: {printed}us`")));
        }
        figures.max_ns = printed_us.or(largest_us).map(|us| time_ns(us as f64, 1e3, "`Max Latency:`")).transpose()?;
        imported.caveats.push(caveat(
            "overflow",
            match number("Latency threshold:")? {
                Some(threshold) => {
                    format!("only gaps above {threshold} us are recorded; shorter ones are not in the figures")
                }
                None => "only gaps above a threshold are recorded, which the file does not say".to_owned(),
            },
        ));
        let (window, width) = (number("Sample window:")?, number("Sample width:")?);
        if let Some((window, width)) = window.zip(width).filter(|(window, width)| width < window) {
            let text = format!(
                "the detector measured {width} us of each {window} us; gaps in the rest of the time are not seen"
            );
            imported.caveats.push(caveat("omission", text));
        }
        imported
            .caveats
            .push(caveat("mixed", "a sample is the longer of its inner and outer gap; gaps of all CPUs are together"));
        if let Some(interrupts) = number("SMIs during run:")? {
            figures.note = format!("{interrupts} system management interrupts (SMIs) during the run.");
        }
        // The maximum can be that of a sample that the trace lost.
        cells.fill_unchecked(&mut figures);
        imported.figures.push(figures);
        Ok(imported)
    }
}

fn is_title(line: &str) -> bool {
    line.starts_with(TITLE) && line.contains("test duration")
}

fn is_sample(line: &str) -> bool {
    line.starts_with("ts: ") && line.contains("inner:") && line.contains("outer:")
}

/// The longer gap of `ts: 1662650749.257272414, inner:14, outer:326`, us. Later versions add `delta`, `cpu` and `count`.
fn gap_us(sample: &str) -> Option<u64> {
    let of = |name: &str| sample.split(", ").find_map(|part| part.trim().strip_prefix(name)?.parse::<u64>().ok());
    Some(of("inner:")?.max(of("outer:")?))
}
