//! The buckets of all histograms that punctual exports as `.csv`: values in ns.

use std::collections::HashSet;

use record::{Caveat, Figures};

use crate::{
    Ending, Format, Imported, Mistake, OWN, Unit, caveat,
    cells::{Cells, whole},
};

/// The format.
pub struct Buckets;

/// The first line.
const HEADING: &str = "phase,role,cpu,period_ns,histogram,value_ns,count";
/// Roles of probes that measure no wake-ups, and the names of these probes.
const PROBES: [(&str, &str); 3] = [("noise", "noise"), (record::ROUND_TRIP, "udp"), ("interrupt", "interrupt")];

impl Format for Buckets {
    fn name(&self) -> &'static str {
        "histograms of punctual, csv"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().next().is_some_and(|line| line.trim() == HEADING)
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let mut all: Vec<Thread> = Vec::new();
        for (number, line) in (1..).zip(text.lines()).skip(1).filter(|(_, line)| !line.trim().is_empty()) {
            let row = Row::of(line).ok_or_else(|| {
                Mistake::new(number, format!("{line:?} is no row such as `rest,timer,0,1000000,raw,5119,3`"))
            })?;
            let last = all.last().filter(|thread| !thread.has(&row));
            // Threads that can migrate have no CPU, so several ones can have the same names.
            if last.is_some_and(|thread| thread.is_in_row(&row) && !row.names[2].is_empty()) {
                return Err(Mistake::new(number, format!("{line:?} is not above the row before it")));
            }
            if all.is_empty() || last.is_some() {
                all.push(Thread::new(&row));
            }
            let Some(thread) = all.last_mut() else { continue };
            thread.add(&row).ok_or_else(|| Mistake::new(number, format!("{line:?} has too many samples")))?;
        }
        // Imported figures have no corrected histogram.
        let is_measured = all.iter().any(|thread| thread.corrected.total() > 0);
        let mut imported = Imported::default();
        if is_measured {
            OWN.clone_into(&mut imported.tool);
        }
        let corrected: HashSet<&String> =
            all.iter().filter(|thread| thread.corrected.total() > 0).map(|thread| &thread.names[1]).collect();
        let lacking = |thread: &&Thread| thread.corrected.total() == 0 && corrected.contains(&thread.names[1]);
        if let Some(thread) = all.iter().find(lacking) {
            return Err(Mistake::new(0, format!("{}: it has no corrected histogram; the file is cut", thread.who())));
        }
        let mut phases: Vec<String> = all.iter().map(|thread| thread.phase(is_measured).to_owned()).collect();
        phases.sort();
        phases.dedup();
        for (place, thread) in all.iter().enumerate() {
            let of_name = all[..place].iter().filter(|other| other.names == thread.names).count();
            let figures = thread.figures(is_measured, phases.len() > 1, of_name + 1, &mut imported.caveats)?;
            imported.figures.push(figures);
        }
        Ok(imported)
    }
}

/// A row of the file.
struct Row {
    /// Phase, role, CPU and period.
    names: [String; 4],
    histogram: Kind,
    /// `None` for the samples beyond the last cell.
    value_ns: Option<i64>,
    count: u64,
}

/// The histogram of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Raw,
    Corrected,
    /// Samples of an imported histogram beyond its last cell.
    Beyond,
}

impl Row {
    fn of(line: &str) -> Option<Self> {
        let [phase, role, cpu, period_ns, histogram, value_ns, count] = <[String; 7]>::try_from(fields(line)?).ok()?;
        let histogram = match &*histogram {
            "raw" => Kind::Raw,
            "corrected" => Kind::Corrected,
            "beyond" => Kind::Beyond,
            _ => return None,
        };
        let value_ns = match histogram {
            Kind::Beyond => value_ns.is_empty().then_some(None)?,
            Kind::Raw | Kind::Corrected => Some(value_ns.parse().ok()?),
        };
        let _: u64 = period_ns.parse().ok()?;
        let count = whole(&count)?;
        Some(Self { names: [phase, role, cpu, period_ns], histogram, value_ns, count })
    }
}

/// The fields of a line (RFC 4180).
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut rest) = (Vec::new(), line.trim_end());
    loop {
        let mut field = String::new();
        if let Some(mut quoted) = rest.strip_prefix('"') {
            loop {
                let (text, after) = quoted.split_once('"')?;
                field.push_str(text);
                match after.strip_prefix('"') {
                    Some(after) => {
                        field.push('"');
                        quoted = after;
                    }
                    None => {
                        rest = after;
                        break;
                    }
                }
            }
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            field.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        fields.push(field);
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None => return rest.is_empty().then_some(fields),
        }
    }
}

/// The histograms of a thread.
struct Thread {
    names: [String; 4],
    raw: Cells,
    corrected: Cells,
    /// Histogram and value of the last row.
    last: (Kind, i64),
}

impl Thread {
    fn new(row: &Row) -> Self {
        let last = (Kind::Raw, i64::MIN);
        Self { names: row.names.clone(), raw: Cells::default(), corrected: Cells::default(), last }
    }

    /// True if the last row is of the same histogram.
    fn is_in_row(&self, row: &Row) -> bool {
        self.names == row.names && row.histogram == self.last.0
    }

    /// True if the row is the next one of this thread.
    fn has(&self, row: &Row) -> bool {
        self.names == row.names && (row.histogram, row.value_ns.unwrap_or(i64::MAX)) > self.last
    }

    /// Adds a row; `None` if it has too many samples.
    fn add(&mut self, row: &Row) -> Option<()> {
        self.last = (row.histogram, row.value_ns.unwrap_or(i64::MAX));
        match (row.histogram, row.value_ns) {
            (Kind::Corrected, Some(value_ns)) => self.corrected.add(value_ns, 1, row.count),
            (_, Some(value_ns)) => self.raw.add(value_ns, 1, row.count),
            (_, None) => {
                self.raw.total().checked_add(row.count)?;
                self.raw.beyond = row.count;
                Some(())
            }
        }
    }

    /// The phase. In imported records, phases such as `thread-1` are the threads of another tool, which are all `thread`.
    fn phase(&self, is_measured: bool) -> &str {
        let phase = &self.names[0];
        let thread = phase.rsplit_once('-').filter(|(_, number)| !is_measured && number.parse::<u32>().is_ok());
        thread.map_or(phase, |(name, _)| name)
    }

    /// Its name in messages.
    fn who(&self) -> String {
        let [phase, role, cpu, _] = &self.names;
        if cpu.is_empty() { format!("{phase} ({role})") } else { format!("{phase} CPU {cpu} ({role})") }
    }

    /// The figures of the `number`th thread with these names.
    fn figures(
        &self,
        is_measured: bool,
        has_phases: bool,
        number: usize,
        caveats: &mut Vec<Caveat>,
    ) -> Result<Figures, Mistake> {
        let ([phase, role, cpu, period_ns], who) = (&self.names, self.who());
        let (raw, corrected) = (self.raw.total(), self.corrected.total());
        let probe = PROBES.iter().find(|(of, _)| of == role).map_or(record::TIMER, |(_, probe)| probe);
        let mut figures = Figures {
            probe: probe.to_owned(),
            phase: if number == 1 { phase.clone() } else { format!("{phase}, thread {number}") },
            role: match has_phases {
                true => [self.phase(is_measured), role]
                    .into_iter()
                    .filter(|name| !name.is_empty())
                    .collect::<Vec<_>>()
                    .join("-"),
                false if role == probe => String::new(),
                false => role.clone(),
            },
            cpus: cpu.clone(),
            period_ns: period_ns.parse().ok().filter(|&period_ns| period_ns > 0),
            ..Figures::default()
        };
        if corrected == 0 {
            if self.raw.beyond > 0 {
                figures.max_above_ns = self.raw.highest_ns();
            } else {
                figures.max_ns = self.raw.highest_ns();
                let text = format!("{who}: the maximum is the end of its cell; the exact one is not in the file");
                caveats.push(caveat("clamped", text));
            }
            caveats.extend(self.raw.overflow(&who, None));
            self.raw.clone().fill_unchecked(&mut figures);
            return Ok(figures);
        }
        let missed = corrected.checked_sub(raw).filter(|_| raw > 0).ok_or_else(|| {
            Mistake::new(0, format!("{who}: it has {raw} raw samples and {corrected} corrected ones; the file is cut"))
        })?;
        figures.max_ns = self.corrected.highest_ns();
        let text = format!("{who}: the maximum is the end of its bucket, which is up to 0.1 % above it");
        caveats.push(caveat("clamped", text));
        (figures.samples, figures.missed) = (Some(raw), Some(missed));
        self.corrected.clone().fill_unchecked(&mut figures);
        if missed > 0 {
            let text = format!("{who}: the histogram also counts omitted deadlines; the raw one is not imported");
            caveats.push(caveat("omission", text));
        }
        Ok(figures)
    }
}
