//! The plan of a campaign: its scenarios in order, with their parts, CPUs and durations.

use analysis::format_duration;
use record::{Campaign, ScenarioEntry, grouped};

use super::page::Page;
use super::table::Table;
use crate::style::{Ink, Spans};

/// A column: its heading, and the text of a scenario.
type Column = (&'static str, fn(&ScenarioEntry) -> String);

/// The properties of a scenario that a user can choose; each gets a column only if it varies.
const PARTS: [Column; 7] = [
    ("probe", |entry| entry.probe.clone()),
    ("load", |entry| entry.load.clone()),
    ("placement", |entry| entry.placement.clone()),
    ("settings", |entry| entry.settings.clone()),
    ("repeat", |entry| entry.repeat.to_string()),
    ("policy", |entry| entry.policy.clone()),
    ("shield", |entry| if entry.shield.is_empty() { "none".to_owned() } else { entry.shield.clone() }),
];

/// Writes the whole plan. `dir` is the folder for the records.
pub(super) fn page(page: &mut Page, campaign: &Campaign, dir: &str) {
    let entries = &campaign.scenarios;
    page.heading(if campaign.title.is_empty() { &campaign.name } else { &campaign.title });
    let column = "scenarios".len();
    let between_ns = campaign.planned_ns.saturating_sub(entries.iter().map(|entry| entry.planned_ns).sum());
    let between = match between_ns {
        0 => String::new(),
        ns => format!(", including {} of preparation and pauses", format_duration(ns)),
    };
    page.fact("scenarios", column, &grouped(entries.len() as u64));
    page.fact("time", column, &format!("{}{between}", format_duration(campaign.planned_ns)));
    page.fact("records", column, &format!("{dir}/"));
    if !campaign.source.is_empty() {
        page.fact("source", column, &campaign.source);
    }
    if !campaign.against.is_empty() {
        page.fact("compare", column, &campaign.against.join(", "));
    }
    page.heading("Scenarios in order");
    page.table(&table(entries));
    for line in common(entries).into_iter().chain(loads(entries)) {
        page.text(Ink::Quiet, &line);
    }
    for note in &campaign.notes {
        page.remark(note);
    }
}

fn table(entries: &[ScenarioEntry]) -> Table {
    let varying = PARTS.into_iter().filter(|(_, part)| varies(entries, *part));
    let parts: Vec<Column> = varying.chain([("CPUs", cpus as fn(&ScenarioEntry) -> String)]).collect();
    let headings: Vec<&str> =
        ["no."].into_iter().chain(parts.iter().map(|(heading, _)| *heading)).chain(["time"]).collect();
    let words = (1..=parts.len()).filter(|&index| parts[index - 1].0 != "repeat");
    let mut table = words.fold(Table::new(&headings), Table::words);
    for (index, entry) in entries.iter().enumerate() {
        let cells = parts.iter().map(|(_, part)| (Ink::Plain, part(entry)));
        let number = (Ink::Quiet, (index + 1).to_string());
        let duration = (Ink::Plain, format_duration(entry.planned_ns));
        table.row([number].into_iter().chain(cells).chain([duration]).collect::<Spans>());
    }
    table
}

/// The properties that all scenarios have in common.
fn common(entries: &[ScenarioEntry]) -> Option<String> {
    let first = entries.first()?;
    let parts = PARTS.into_iter().filter(|(heading, part)| *heading != "repeat" && !varies(entries, *part));
    let parts: Vec<String> = parts.map(|(heading, part)| format!("{heading} {}", part(first))).collect();
    (!parts.is_empty()).then(|| format!("Each with {}.", parts.join(", ")))
}

/// The kinds of each load, unless its name says so already.
fn loads(entries: &[ScenarioEntry]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for entry in entries {
        let mut kinds: Vec<&str> = entry.loads.iter().map(|load| load.split('@').next().unwrap_or(load)).collect();
        kinds.dedup();
        let line = format!("Load {}: {}.", entry.load, kinds.join(", "));
        if !kinds.is_empty() && kinds != [entry.load.as_str()] && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn varies(entries: &[ScenarioEntry], part: fn(&ScenarioEntry) -> String) -> bool {
    entries.windows(2).any(|pair| part(&pair[0]) != part(&pair[1]))
}

fn cpus(entry: &ScenarioEntry) -> String {
    if entry.cpus.is_empty() { "all".to_owned() } else { entry.cpus.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    fn entry(load: &str, repeat: u32) -> ScenarioEntry {
        ScenarioEntry {
            probe: "cyclic".to_owned(),
            load: load.to_owned(),
            placement: "last".to_owned(),
            settings: "as found".to_owned(),
            policy: "fifo:90".to_owned(),
            repeat,
            cpus: "3".to_owned(),
            planned_ns: 40_000_000_000,
            ..ScenarioEntry::default()
        }
    }

    #[test]
    fn shows_varying_properties_as_columns() {
        let campaign = Campaign {
            name: "ladder".to_owned(),
            planned_ns: 122_000_000_000,
            notes: vec!["last: `last` (CPU 3) stands in for `isolated` on this machine".to_owned()],
            scenarios: vec![
                entry("idle", 1),
                ScenarioEntry { loads: vec!["cpu@0-2".to_owned(), "cpu@0".to_owned()], ..entry("hogs", 1) },
                entry("idle", 2),
            ],
            ..Campaign::default()
        };
        let mut out = Page::new(Style::plain(), 80);
        page(&mut out, &campaign, "ladder-20261121");
        let expected = "\
ladder
  scenarios  3
  time       2 min 02 s, including 2 s of preparation and pauses
  records    ladder-20261121/

Scenarios in order
  no.  load  repeat  CPUs  time
  1    idle       1  3     40 s
  2    hogs       1  3     40 s
  3    idle       2  3     40 s
  Each with probe cyclic, placement last, settings as found, policy fifo:90,
  shield none.
  Load hogs: cpu.
  !! note last: `last` (CPU 3) stands in for `isolated` on this machine
";
        assert_eq!(out.finish(), expected);
    }
}
