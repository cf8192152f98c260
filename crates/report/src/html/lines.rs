//! The style of each series: the same colour, dash and name in every chart, the key and the tables.

use std::fmt::Write;

use record::{Record, Series};

use analysis::when;

/// The number of colours in the style sheet.
pub const HUES: usize = 7;
/// The number of dash patterns in the style sheet.
pub const DASHES: usize = 4;
/// Up to this many lines differ by dash too; more are drawn thin, and the script highlights them.
const FEW: usize = 12;
/// Up to this many lines are named in the chart; of more, the worst of each phase.
const NAMED: usize = 6;

/// A series with its style.
pub struct Line<'a> {
    /// The series.
    pub series: &'a Series,
    /// The index in the record; the script uses it as an id.
    pub index: usize,
    /// `CPU 1, under load`.
    pub name: String,
    /// True if the charts show the name.
    pub named: bool,
    /// The start of its phase, s after the start of the run.
    pub start_s: f64,
    /// The end of its phase, s after the start of the run; infinite if unknown.
    pub end_s: f64,
    hue: usize,
    dash: usize,
    /// True if it is drawn thin because there are many lines.
    pub thin: bool,
}

impl Line<'_> {
    /// CSS classes.
    pub fn class(&self) -> String {
        format!("h{} d{}{}", self.hue, self.dash, if self.thin { " thin" } else { "" })
    }

    /// The marker of its spikes, as path commands relative to the pen.
    pub fn marker(&self) -> &'static str {
        ["m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z", "m-2.7-2.7h5.4v5.4h-5.4z", "m0-3.6l3.6 6.3h-7.2z", "m0-4l4 4l-4 4l-4-4z"]
            [self.dash % DASHES]
    }

    /// A sample of the line for the key and the tables.
    pub fn swatch(&self) -> String {
        format!(
            "<svg class=\"swatch\" viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"line {}\" d=\"M1 5H25\"/></svg>",
            self.class()
        )
    }
}

/// The series of one phase, for the key of a record with many series.
pub struct Group {
    /// The phase.
    pub name: String,
    /// A sample of one of its lines.
    pub swatch: String,
    /// The indices of its series, separated by spaces.
    pub members: String,
    /// The number of its series.
    pub size: usize,
}

/// One group per phase if there are many lines, otherwise none.
pub fn groups(lines: &[Line]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for line in lines.iter().filter(|_| lines.len() > FEW) {
        match groups.iter_mut().find(|group| group.name == when(line.series)) {
            Some(group) => {
                let _ = write!(group.members, " {}", line.index);
                group.size += 1;
            }
            None => groups.push(Group {
                name: when(line.series),
                swatch: line.swatch(),
                members: line.index.to_string(),
                size: 1,
            }),
        }
    }
    groups
}

/// The name of a series: place and phase, or only one if they are the same, as for a capture. The phase has the words
/// of the answer on the terminal.
pub fn name(series: &Series) -> String {
    let place = series.place();
    if place == series.phase { place } else { format!("{place}, {}", when(series)) }
}

/// All series of a record with their styles.
///
/// With several phases, the colour stands for the phase and the dash for the CPU; with one phase, both stand for the
/// CPU.
pub fn lines(record: &Record) -> Vec<Line<'_>> {
    let mut phases: Vec<&str> = record.phases.iter().map(|phase| phase.name.as_str()).collect();
    for series in &record.series {
        note(&mut phases, &series.phase);
    }
    phases.retain(|phase| record.series.iter().any(|series| series.phase == *phase));
    let worst = |phase: &str| {
        let of_phase = record.series.iter().enumerate().filter(|(_, s)| s.phase == phase && s.max_ns.is_some());
        of_phase.max_by_key(|(_, s)| s.max_ns).map(|(i, _)| i)
    };
    let named: Vec<usize> = if record.series.len() <= NAMED {
        (0..record.series.len()).collect()
    } else {
        phases.iter().filter_map(|phase| worst(phase)).take(NAMED).collect()
    };

    let mut ranks = vec![0; phases.len()];
    let mut out = Vec::with_capacity(record.series.len());
    for (index, series) in record.series.iter().enumerate() {
        let phase = phases.iter().position(|p| *p == series.phase).unwrap_or_default();
        let rank = ranks[phase];
        ranks[phase] += 1;
        out.push(Line {
            series,
            index,
            name: name(series),
            named: named.contains(&index),
            end_s: record
                .phase(&series.phase)
                .filter(|phase| phase.duration_ns > 0)
                .map_or(f64::INFINITY, |phase| (phase.start_ns as f64 + phase.duration_ns as f64) / 1e9),
            start_s: record.phase(&series.phase).map_or(0.0, |phase| phase.start_ns as f64 / 1e9),
            hue: if phases.len() > 1 { phase } else { rank } % HUES,
            dash: if record.series.len() <= FEW { rank % DASHES } else { 0 },
            thin: record.series.len() > FEW && !named.contains(&index),
        });
    }
    out
}

/// The scenarios of a campaign with their styles, each with the series that contains its times.
///
/// `all` contains the index of each scenario in the campaign, which also selects colour and dash, its name, and the
/// series.
pub fn scenarios<'a>(all: &'a [(usize, String, Series)]) -> Vec<Line<'a>> {
    let mut largest: Vec<usize> = all.iter().map(|(index, ..)| *index).collect();
    largest.sort_by_key(|index| std::cmp::Reverse(all.iter().find(|of| of.0 == *index).and_then(|of| of.2.max_ns)));
    largest.truncate(NAMED);
    let line = |(index, name, series): &'a (usize, String, Series)| Line {
        series,
        index: *index,
        name: name.clone(),
        named: largest.contains(index),
        start_s: 0.0,
        end_s: f64::INFINITY,
        hue: index % HUES,
        dash: index / HUES % DASHES,
        thin: false,
    };
    all.iter().map(line).collect()
}

fn note<'a>(seen: &mut Vec<&'a str>, name: &'a str) {
    if !seen.contains(&name) {
        seen.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(cpus: u32, phases: &[&str]) -> Record {
        let mut record = Record::default();
        for phase in phases {
            for cpu in 0..cpus {
                let max_ns = Some(i64::from(cpu));
                record.series.push(Series { phase: (*phase).into(), cpu: Some(cpu), max_ns, ..Series::default() });
            }
        }
        record
    }

    #[test]
    fn uses_colour_for_the_phase_and_dash_for_the_cpu() {
        let record = record(2, &["rest", "load"]);
        let classes: Vec<_> = lines(&record).iter().map(Line::class).collect();
        assert_eq!(classes, ["h0 d0", "h0 d1", "h1 d0", "h1 d1"]);
    }

    #[test]
    fn uses_colour_for_the_cpu_with_one_phase() {
        let classes: Vec<_> = lines(&record(3, &["rest"])).iter().map(Line::class).collect();
        assert_eq!(classes, ["h0 d0", "h1 d1", "h2 d2"]);
    }

    #[test]
    fn names_the_worst_of_each_phase_among_many() {
        let record = record(128, &["rest", "load"]);
        let lines = lines(&record);
        let named: Vec<_> = lines.iter().filter(|line| line.named).map(|line| line.name.as_str()).collect();
        assert_eq!(named, ["CPU 127, at rest", "CPU 127, under load"]);
        assert_eq!(lines.iter().filter(|line| line.thin).count(), 254);
        let groups: Vec<_> = groups(&lines).into_iter().map(|group| (group.name, group.size)).collect();
        assert_eq!(groups, [("at rest".to_owned(), 128), ("under load".to_owned(), 128)]);
    }
}
