//! The report of rteval, `summary.xml` (`rteval/modules/measurement/cyclictest.py` and `timerlat.py`, `MakeReport`).

use record::{Caveat, Figures, Machine};
use roxmltree::{Document, Node};

use crate::{
    Ending, Format, Imported, Mistake, STOPPED, Unit, caveat,
    cells::{Cells, omission, to_ns},
    command::Command,
};

/// The format.
pub struct Summary;

impl Format for Summary {
    fn name(&self) -> &'static str {
        "rteval, summary.xml"
    }

    fn is_it(&self, text: &str) -> bool {
        text.trim_start().starts_with('<') && text.contains("<rteval")
    }

    fn ending(&self) -> Ending {
        Ending::Closed
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let document =
            Document::parse(text).map_err(|error| Mistake::new(error.pos().row as usize, error.to_string()))?;
        let root = document.root_element();
        if !root.has_tag_name("rteval") {
            return Err(mistake(root, format!("the root is <{}>, not <rteval>", root.tag_name().name())));
        }
        let run = child(root, "run_info");
        let mut imported = Imported {
            tool: "rteval".to_owned(),
            version: root.attribute("version").unwrap_or_default().to_owned(),
            started_at: run.map(started_at).unwrap_or_default(),
            machine: child(root, "SystemInfo").map(machine).unwrap_or_default(),
            ..Imported::default()
        };
        let measurements = children(root, "Measurements").flat_map(|node| node.children());
        for tool in measurements.filter(|node| node.has_tag_name("cyclictest") || node.has_tag_name("timerlat")) {
            let (figures, caveats) = of_tool(tool)?;
            if is_stopped(tool) {
                imported.caveats.push(caveat("stopped", STOPPED));
            }
            imported.command = tool.attribute("command_line").unwrap_or_default().to_owned();
            imported.figures.extend(figures);
            imported.caveats.extend(caveats);
        }
        if imported.figures.is_empty() {
            return Err(Mistake::new(0, "it has no figures of cyclictest or timerlat in <Measurements>"));
        }
        let (duration_ns, loads) = (run.and_then(duration_ns), child(root, "loads").map(loads).unwrap_or_default());
        for figures in &mut imported.figures {
            figures.duration_ns = duration_ns;
            figures.said.clone_from(&loads);
        }
        Ok(imported)
    }
}

/// True if a sample above a limit ended the run: `--stoptrace` of timerlat, `--breaktrace` of cyclictest.
fn is_stopped(tool: Node<'_, '_>) -> bool {
    let is_false = |node: Node<'_, '_>| matches!(node.attribute("invoked"), Some("0" | "false" | "False"));
    let is_stop = |node: Node<'_, '_>| {
        let name = node.tag_name().name();
        name.starts_with("stoptrace_invoked") && !is_false(node)
            || name == "abort_report" && node.attribute("reason").is_none_or(|reason| reason == "breaktrace")
    };
    tool.descendants().any(is_stop)
}

/// The caveat of timerlat.
const MIXED: &str = "rteval adds the latencies of interrupt, kernel thread and program of timerlat in one histogram; its minimum, mean \
                     and percentiles are not those of one of them";
/// The caveat about the cells of timerlat.
const LOST: &str = "rteval leaves out the samples of timerlat beyond the last cell of the histogram, also from the maximum and the number \
                    of samples";

fn of_tool(tool: Node<'_, '_>) -> Result<(Vec<Figures>, Vec<Caveat>), Mistake> {
    let name = tool.tag_name().name();
    let is_timerlat = name == "timerlat";
    let words = Command::of(tool.attribute("command_line").unwrap_or_default());
    let period = if is_timerlat { words.value('p', "period") } else { words.value('i', "interval") };
    let blank = Figures {
        probe: record::TIMER.to_owned(),
        role: if is_timerlat { "timerlat/all" } else { "" }.to_owned(),
        period_ns: period.and_then(|us| us.parse::<u64>().ok()?.checked_mul(1_000)),
        ..Figures::default()
    };
    let mut caveats = Vec::new();
    if is_timerlat {
        caveats.extend([caveat("mixed", MIXED), caveat("overflow", LOST)]);
    }
    let mut all = Vec::new();
    for core in children(tool, "core") {
        let cpu = core.attribute("id").ok_or_else(|| mistake(core, "<core> has no id"))?;
        let mut figures = Figures {
            phase: format!("{name}-{cpu}"),
            cpus: cpu.to_owned(),
            policy: core.attribute("priority").map(|priority| format!("fifo:{priority}")).unwrap_or_default(),
            ..blank.clone()
        };
        fill(core, is_timerlat, &mut figures)?;
        caveats.extend(omission(&format!("CPU {cpu}"), figures.max_ns, figures.period_ns));
        all.push(figures);
    }
    if all.is_empty() {
        all.extend(of_all_threads(tool, blank, &words, &mut caveats)?);
    }
    Ok((all, caveats))
}

/// The figures of a tool without those of its threads: the sum over all of them, or the end of the histogram as a lower
/// bound of the maximum.
fn of_all_threads(
    tool: Node<'_, '_>,
    blank: Figures,
    words: &Command<'_>,
    caveats: &mut Vec<Caveat>,
) -> Result<Option<Figures>, Mistake> {
    let name = tool.tag_name().name();
    let mut figures = Figures { phase: name.to_owned(), ..blank };
    if let Some(system) = child(tool, "system") {
        fill(system, name == "timerlat", &mut figures)?;
        caveats.push(caveat("mixed", format!("the figures of {name} are those of all threads together")));
        return Ok(Some(figures));
    }
    let stop = tool.descendants().find(|node| node.has_tag_name("stoptrace_report"));
    if let Some(stop) = stop {
        // That of the sample that ended the run.
        let latency = stop.descendants().find(|node| node.has_tag_name("Thread_latency"));
        let latency = latency.and_then(|node| child(node, "latency").or(Some(node)));
        let latency_ns = latency.map(|node| time_of(node, "Thread_latency")).transpose()?;
        figures.max_above_ns = latency_ns.and_then(|ns| to_ns(ns, 1.0));
        stop.attribute("CPU").unwrap_or_default().clone_into(&mut figures.cpus);
        caveats.push(caveat(
            "overflow",
            format!(
                "rteval has no statistics of {name}, because its run was ended; only the sample that ended it is known"
            ),
        ));
        return Ok(figures.max_above_ns.is_some().then_some(figures));
    }
    let range = if name == "timerlat" { words.value('E', "entries") } else { words.value('h', "histogram") };
    let range_us = range.and_then(|cells| cells.parse::<i64>().ok());
    figures.max_above_ns = range_us.and_then(|us| us.checked_mul(1_000));
    let range = range_us.map(|us| format!(" of {us} us")).unwrap_or_default();
    let why = if is_stopped(tool) {
        "a sample above a limit ended its run".to_owned()
    } else {
        format!("its maximum exceeded the range{range} of the histogram")
    };
    if is_stopped(tool) {
        figures.max_above_ns = None;
    }
    caveats.push(caveat("overflow", format!("rteval left out all statistics of {name}, because {why}")));
    Ok(figures.max_above_ns.is_some().then_some(figures))
}

/// Reads the statistics and the histogram of an element `core` or `system`.
fn fill(node: Node<'_, '_>, is_timerlat: bool, figures: &mut Figures) -> Result<(), Mistake> {
    let statistics = child(node, "statistics").ok_or_else(|| mistake(node, "it has no <statistics>"))?;
    let samples = child(statistics, "samples").ok_or_else(|| mistake(statistics, "it has no <samples>"))?;
    figures.samples = Some(number(samples)?);
    figures.min_ns = time_ns(statistics, "minimum")?.and_then(|ns| to_ns(ns, 1.0));
    figures.mode_ns = time_ns(statistics, "mode")?.and_then(|ns| to_ns(ns, 1.0));
    figures.mean_ns = time_ns(statistics, "mean")?;
    let max_ns = time_ns(statistics, "maximum")?.and_then(|ns| to_ns(ns, 1.0));
    // That of timerlat is the last cell with samples; later samples may have been left out.
    let place = if is_timerlat { &mut figures.max_above_ns } else { &mut figures.max_ns };
    *place = max_ns;
    let Some(histogram) = child(node, "histogram") else { return Ok(()) };
    let mut cells = Cells::default();
    for bucket in children(histogram, "bucket") {
        let of = |name: &str| bucket.attribute(name).and_then(|value| value.parse::<u64>().ok());
        let added = of("index").zip(of("value")).and_then(|(index, count)| {
            let from_ns = i64::try_from(index).ok()?.checked_mul(1_000)?;
            cells.add(from_ns, 1_000, count)
        });
        added.ok_or_else(|| mistake(bucket, "<bucket> must have an index and a number of samples"))?;
    }
    let (counted, samples) = (cells.total(), figures.samples.unwrap_or_default());
    if counted != samples {
        return Err(mistake(histogram, format!("the histogram has {counted} samples, <samples> is {samples}")));
    }
    cells.fill(figures)?;
    Ok(())
}

fn time_ns(statistics: Node<'_, '_>, name: &str) -> Result<Option<f64>, Mistake> {
    child(statistics, name).map(|node| time_of(node, name)).transpose()
}

/// The time in an element with its unit, ns.
fn time_of(node: Node<'_, '_>, name: &str) -> Result<f64, Mistake> {
    let unit_ns = match node.attribute("unit") {
        Some("us") => 1e3,
        Some("ns") => 1.0,
        unit => {
            return Err(mistake(
                node,
                format!("the unit of <{name}> must be us or ns (got {})", unit.unwrap_or("none")),
            ));
        }
    };
    let ns = number::<f64>(node)? * unit_ns;
    let is_time = ns.is_finite() && to_ns(ns, 1.0).is_some();
    is_time.then_some(ns).ok_or_else(|| mistake(node, format!("<{name}> is out of range")))
}

fn number<T: std::str::FromStr>(node: Node<'_, '_>) -> Result<T, Mistake> {
    let text = node.text().unwrap_or_default().trim();
    text.parse().map_err(|_| mistake(node, format!("<{}> must be a number (got {text:?})", node.tag_name().name())))
}

fn started_at(run: Node<'_, '_>) -> String {
    let parts = ["date", "time"].map(|name| text_of(run, name).unwrap_or_default());
    parts.join("T").trim_matches('T').to_owned()
}

fn duration_ns(run: Node<'_, '_>) -> Option<u64> {
    let parts = [("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)];
    let mut seconds = parts.iter().map(|(name, seconds)| {
        let value: u64 = run.attribute(*name)?.parse().ok()?;
        value.checked_mul(*seconds)
    });
    seconds.try_fold(0_u64, |sum, seconds| sum.checked_add(seconds?))?.checked_mul(1_000_000_000)
}

/// The names of the loads: `hackbench, kcompile`.
fn loads(loads: Node<'_, '_>) -> String {
    let lines = children(loads, "command_line").filter(|line| line.attribute("run") != Some("0"));
    lines.filter_map(|line| line.attribute("name")).collect::<Vec<_>>().join(", ")
}

fn machine(info: Node<'_, '_>) -> Machine {
    let uname = child(info, "uname");
    let of = |name: &str| uname.and_then(|uname| text_of(uname, name));
    let is_rt = uname.and_then(|uname| child(uname, "kernel")?.attribute("is_RT"));
    let clock = children(info, "Kernel").find_map(|kernel| child(kernel, "ClockSource"));
    let clock =
        clock.and_then(|clock| children(clock, "source").find(|source| source.attribute("current") == Some("1")));
    Machine {
        hostname: of("node"),
        kernel: of("kernel"),
        arch: of("arch"),
        os: of("baseos"),
        preempt: (is_rt == Some("1")).then(|| "PREEMPT_RT".to_owned()),
        clocksource: clock.and_then(|clock| Some(clock.text()?.trim().to_owned())),
        cmdline: child(info, "cmdlineInfo").and_then(|info| text_of(info, "cmdline")),
        ..Machine::default()
    }
}

fn text_of(node: Node<'_, '_>, name: &str) -> Option<String> {
    child(node, name)?.text().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| child.has_tag_name(name))
}

fn children<'a, 'input>(node: Node<'a, 'input>, name: &'static str) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(move |child| child.has_tag_name(name))
}

fn mistake(node: Node<'_, '_>, text: impl Into<String>) -> Mistake {
    Mistake::new(node.document().text_pos_at(node.range().start).row as usize, text)
}
