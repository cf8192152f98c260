//! The pages of a comparison of two sides, and of one across the values of a condition: separate documents.

use std::fmt::Write;

use askama::Template;
use record::{
    Maxima, Versus, counted,
    versus::{Across, Change, PercentileRatio, VersusGroup},
    visible::escape,
};

use super::{
    Origin,
    figure::{Key, Row, Table},
    percentiles,
    svg::{self, Axis, Frame, Path, Tick, number},
    text,
    verdict::Headline,
};
use crate::versus::{
    AcrossTable, HEADINGS, Samples, across, across_lead, across_notes, answer, answers, changes, differs,
    is_any_judged, is_overlay, names, notes, pair_tables, remarks, rounds, rows,
};

/// Bottom of the axes.
const BOTTOM: f64 = 300.0;
/// Ratios with a mark, the most important ones first.
const RATIOS: [f64; 14] = [0.1, 10.0, 0.01, 100.0, 0.5, 2.0, 0.2, 5.0, 0.8, 1.2, 0.9, 1.1, 0.7, 1.5];
/// Height of a label.
const LABEL: f64 = 14.0;

#[derive(Template)]
#[template(path = "versus.html")]
struct Page<'a> {
    versus: &'a Versus,
    title: String,
    origin: Origin<'a>,
    headline: Headline,
    keys: Vec<Key>,
    ending: &'static str,
    command: String,
    groups: Vec<Group>,
    pairs: Vec<Table>,
    conditions: Table,
    notes: Vec<String>,
    a: String,
    b: String,
}

/// A group, as the template sees it.
struct Group {
    id: String,
    name: String,
    figures: Table,
    notes: Vec<String>,
    charts: Vec<Chart>,
}

/// A chart of curves.
pub(super) struct Chart {
    pub id: String,
    pub title: String,
    pub lead: String,
    /// Classes and names of the curves: a narrow screen has no space for the names at their ends.
    pub keys: Vec<(String, String)>,
    /// Trusted SVG.
    pub svg: String,
}

/// Renders a comparison as one HTML document in UTF-8, which loads nothing. `command` repeats it.
///
/// # Panics
/// Never: writing to a string does not fail.
#[must_use]
pub fn render_versus(versus: &Versus, command: &[String]) -> String {
    let answer = answer(versus);
    let class = match versus.change {
        Change::Better => "pass",
        Change::Worse | Change::Mixed => "fail",
        Change::NoDifference => "measured",
        Change::TooFewRounds | Change::NotComparable => "inconclusive",
    };
    let side = |label, of: &record::versus::Side| Key {
        label,
        value: rounds(of),
        detail: if of.judged > 0 { format!("{} of {} PASS", of.passed, of.judged) } else { String::new() },
    };
    let page = Page {
        versus,
        title: format!("{}: compare", answer.word),
        origin: Origin { host: None, kernel: None, preempt: None, started_at: "" },
        headline: Headline { word: answer.word, class, sentence: answer.sentence, reason: String::new() },
        keys: vec![side("A", &versus.a), side("B", &versus.b)],
        ending: "",
        command: record::shell::command(command),
        groups: versus
            .groups
            .iter()
            .zip(names(versus))
            .enumerate()
            .map(|(index, (of, name))| group(index, of, name))
            .collect(),
        pairs: pair_tables(versus).into_iter().map(Table::of_jitter).collect(),
        conditions: Table::plain(
            "Conditions",
            &["", "A", "B"],
            differs(&versus.differs).into_iter().map(Vec::from).collect(),
        ),
        notes: notes(versus),
        a: versus.a.records.join(", "),
        b: versus.b.records.join(", "),
    };
    escape(page.render().expect("writing to a string does not fail, and the template has no other way to fail"))
}

#[derive(Template)]
#[template(path = "across.html")]
struct AcrossPage<'a> {
    across: &'a Across,
    title: String,
    origin: Origin<'a>,
    headline: Headline,
    keys: Vec<Key>,
    ending: &'static str,
    command: String,
    lead: &'static str,
    changes: Vec<String>,
    notes: Vec<String>,
    groups: Vec<Group>,
}

/// Renders a comparison across the values of a condition like [`render_versus`].
///
/// # Panics
/// Never: writing to a string does not fail.
#[must_use]
pub fn render_across(of: &Across, command: &[String]) -> String {
    let found = changes(of).len();
    let is_overlay = is_overlay(of);
    let sentence = match (found, &*answers(of)) {
        (0 | 1, [only]) => only.clone(),
        _ => format!("{} across {} values of {}.", counted(found as u64, "change"), of.steps.len(), of.what),
    };
    let group = |(index, table): (usize, AcrossTable)| Group {
        id: format!("group-{index}"),
        figures: Table {
            caption: "Figures".to_owned(),
            head: table.headings,
            rows: table.rows.into_iter().map(|(cells, _)| Row::plain(cells)).collect(),
        },
        notes: Vec::new(),
        charts: curves_of(
            &index.to_string(),
            "Percentiles of all rounds together",
            &table.curves.iter().map(|(name, samples)| (name.as_str(), *samples)).collect::<Vec<_>>(),
        )
        .into_iter()
        .chain(over_time(
            index,
            &table.maxima.iter().map(|(name, maxima)| (name.as_str(), *maxima)).collect::<Vec<_>>(),
        ))
        .collect(),
        name: table.name,
    };
    let page = AcrossPage {
        across: of,
        title: format!("{} values of {}: compare", of.steps.len(), of.what),
        origin: Origin { host: None, kernel: None, preempt: None, started_at: "" },
        headline: Headline {
            word: match found {
                _ if is_overlay => "TOGETHER",
                0 if !is_any_judged(of) => "NOT JUDGED",
                0 => "NO CHANGE SHOWN",
                _ => "CHANGED",
            },
            class: if is_overlay || found == 0 && is_any_judged(of) { "measured" } else { "inconclusive" },
            sentence,
            reason: String::new(),
        },
        keys: Vec::new(),
        ending: "",
        command: record::shell::command(command),
        changes: if found > 1 { answers(of) } else { Vec::new() },
        lead: across_lead(of),
        notes: across_notes(of),
        groups: across(of).into_iter().enumerate().map(group).collect(),
    };
    escape(page.render().expect("writing to a string does not fail, and the template has no other way to fail"))
}

fn group(index: usize, group: &VersusGroup, name: String) -> Group {
    let conditions = differs(&group.differs).into_iter().map(|[what, a, b]| format!("{what}: {a} / {b}."));
    Group {
        id: format!("group-{index}"),
        name,
        figures: Table::plain("Figures", &HEADINGS, rows(group).into_iter().map(|row| Vec::from(row.cells)).collect()),
        notes: remarks(group).into_iter().chain(conditions).collect(),
        charts: curves(index, group)
            .into_iter()
            .chain(ratios(index, group))
            .chain(over_time_of(index, group))
            .collect(),
    }
}

/// The curves of both sides; none if their samples are unknown.
fn curves(index: usize, group: &VersusGroup) -> Vec<Chart> {
    let a = Samples::of(&group.histogram_a, group.beyond_a).map(|samples| ("A", samples));
    let b = Samples::of(&group.histogram_b, group.beyond_b).map(|samples| ("B", samples));
    let sides: Vec<_> = a.into_iter().chain(b).collect();
    curves_of(&index.to_string(), "Percentiles of all rounds together", &sides)
}

/// Percentiles with this title, and the share of samples above each value; none without samples. `end` is the end of their ids.
pub(super) fn curves_of(end: &str, title: &str, sides: &[(&str, Samples)]) -> Vec<Chart> {
    if sides.is_empty() {
        return Vec::new();
    }
    let is_open = sides.iter().any(|(_, samples)| samples.beyond > 0);
    let dots = if is_open { percentiles::DOTS } else { "" };
    let keys = percentiles::keys_of_sides(sides);
    let (id, title) = (format!("curves-{end}"), title.to_owned());
    let svg = percentiles::of_sides(&id, &title, sides);
    let lead = "The value that this share of all samples does not exceed. Each curve ends at its largest value.";
    let percentiles = Chart { id, title, lead: format!("{lead}{dots}"), keys: keys.clone(), svg };
    let (id, title) = (format!("exceedance-{end}"), "Share of samples above each value".to_owned());
    let svg = percentiles::exceedance(&id, &title, sides);
    let lead = "Both axes are logarithmic. Each curve ends at its largest value, which no sample exceeds.";
    vec![percentiles, Chart { id, title, lead: format!("{lead}{dots}"), keys, svg }]
}

/// The largest values of both sides over time; `None` if they are unknown.
fn over_time_of(index: usize, group: &VersusGroup) -> Option<Chart> {
    let sides = [("A", &group.maxima_a), ("B", &group.maxima_b)];
    over_time(index, &sides.into_iter().filter(|(_, maxima)| !maxima.is_empty()).collect::<Vec<_>>())
}

/// The largest value of each side over the time of its rounds; `None` without sides.
fn over_time(index: usize, sides: &[(&str, &Maxima)]) -> Option<Chart> {
    if sides.is_empty() {
        return None;
    }
    let (id, title) = (format!("maxima-{index}"), "Largest value over time".to_owned());
    let svg = percentiles::over_time(&id, &title, sides);
    let lead = "Each step is the largest value of all rounds at this time after their begin. Single peaks at regular intervals \
                suggest something periodic in the machine.";
    let keys = percentiles::keys(sides.iter().map(|(name, _)| *name));
    Some(Chart { id, title, lead: lead.to_owned(), keys, svg })
}

/// The ratio of each percentile with its band; `None` without any.
fn ratios(index: usize, group: &VersusGroup) -> Option<Chart> {
    let of = &group.percentiles;
    let last = of.last()?;
    let ends = of.iter().flat_map(|one| [Some(one.estimate), one.low, one.high]).flatten();
    let farthest = ends.map(|ratio| ratio.max(1e-6).log10().abs()).fold(0.05, f64::max) * 1.1;
    let nines = |one: &PercentileRatio| -(1.0 - one.percent / 100.0).log10();
    let x = Axis { lo: 0.0, hi: nines(last).max(1.0) * 1.02, from: svg::LEFT, to: svg::FAR_RIGHT };
    let y = Axis { lo: -farthest, hi: farthest, from: BOTTOM, to: svg::TOP };
    let at = |one: &PercentileRatio, ratio: f64| (x.at(nines(one)), y.at(ratio.max(1e-6).log10()));
    let mut body = String::new();
    let mut one = Path::default();
    one.move_to(x.from, y.at(0.0)).across(x.to);
    let _ = write!(body, "<path class=\"axis\" d=\"{}\"/>", one.d());
    // Above along the upper ends, and back along the lower ones.
    let highs = of.iter().filter_map(|one| Some(at(one, one.high?)));
    let lows = of.iter().rev().filter_map(|one| Some(at(one, one.low?)));
    let band: Vec<String> = highs.chain(lows).map(|(x, y)| format!("{} {}", number(x), number(y))).collect();
    if band.len() > 2 {
        let _ = write!(body, "<path class=\"line area h1\" d=\"M{}Z\"/>", band.join("L"));
    }
    let line: Vec<String> = of
        .iter()
        .map(|one| {
            let (x, y) = at(one, one.estimate);
            let _ = write!(
                body,
                "<circle class=\"dots h1\" cx=\"{}\" cy=\"{}\" r=\"3.5\"><title>p{}: {:.2}</title></circle>",
                number(x),
                number(y),
                one.percent,
                one.estimate
            );
            format!("{} {}", number(x), number(y))
        })
        .collect();
    let _ = write!(body, "<path class=\"line h1\" d=\"M{}\"/>", line.join("L"));
    // Marks with space for their label. 1 has one.
    let mut ticks = vec![Tick { at: 0.0, label: "1".to_owned() }];
    for ratio in RATIOS {
        let tick = Tick { at: ratio.log10(), label: ratio.to_string() };
        let has_space = ticks.iter().all(|other| (y.at(other.at) - y.at(tick.at)).abs() >= LABEL);
        if tick.at.abs() <= farthest && has_space {
            ticks.push(tick);
        }
    }
    let (id, title) = (format!("ratios-{index}"), "Ratio of the percentiles, B to A".to_owned());
    let marks = of.iter().map(|one| Tick { at: nines(one), label: text::percent(nines(one)) }).collect();
    let frame = Frame {
        id: &id,
        title: &title,
        summary: "The ratio of each percentile with its interval; above 1, B is less punctual.",
        height: BOTTOM + 54.0,
        x: (x, marks, "share of samples up to this value"),
        y: (y, ticks, "B / A (1: the same)"),
        data: "",
    };
    let svg = frame.draw(&body);
    let lead =
        "Above 1, B is less punctual. The band is the interval of each percentile alone, right in 95 % of cases.";
    Some(Chart { id, title, lead: lead.to_owned(), keys: Vec::new(), svg })
}
