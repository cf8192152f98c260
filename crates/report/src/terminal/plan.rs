//! What a campaign would run: its scenarios in their order, with their parts, CPUs and lengths.

use analysis::format_duration;
use record::{Campaign, ScenarioEntry};

use super::page::Page;
use super::table::Table;
use crate::style::{Ink, Spans};

/// A column: its heading, and what stands in it.
type Column = (&'static str, fn(&ScenarioEntry) -> String);

/// What a user may choose; a column only where it varies.
const PARTS: [Column; 7] = [
    ("probe", |entry| entry.probe.clone()),
    ("load", |entry| entry.load.clone()),
    ("placement", |entry| entry.placement.clone()),
    ("settings", |entry| entry.settings.clone()),
    ("repeat", |entry| entry.repeat.to_string()),
    ("policy", |entry| entry.policy.clone()),
    ("shield", |entry| if entry.shield.is_empty() { "none".to_owned() } else { entry.shield.clone() }),
];

/// Writes the whole plan; the records would go to the folder `dir`.
pub(super) fn page(page: &mut Page, campaign: &Campaign, dir: &str) {
    let entries = &campaign.scenarios;
    page.heading(if campaign.title.is_empty() { &campaign.name } else { &campaign.title });
    let column = "scenarios".len();
    let between_ns = campaign.planned_ns.saturating_sub(entries.iter().map(|entry| entry.planned_ns).sum());
    let between = match between_ns {
        0 => String::new(),
        ns => format!(", of which {} to prepare and to rest", format_duration(ns)),
    };
    page.fact("scenarios", column, &entries.len().to_string());
    page.fact("time", column, &format!("{}{between}", format_duration(campaign.planned_ns)));
    page.fact("records", column, &format!("{dir}/"));
    if !campaign.source.is_empty() {
        page.fact("after", column, &campaign.source);
    }
    if !campaign.against.is_empty() {
        page.fact("beside", column, &campaign.against.join(", "));
    }
    page.heading("Scenarios in their order");
    page.table(&table(entries));
    for line in alike(entries).into_iter().chain(loads(entries)) {
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
        ["no."].into_iter().chain(parts.iter().map(|(heading, _)| *heading)).chain(["takes"]).collect();
    let words = (1..=parts.len()).filter(|&index| parts[index - 1].0 != "repeat");
    let mut table = words.fold(Table::new(&headings), Table::words);
    for (index, entry) in entries.iter().enumerate() {
        let cells = parts.iter().map(|(_, part)| (Ink::Plain, part(entry)));
        let number = (Ink::Quiet, (index + 1).to_string());
        let takes = (Ink::Plain, format_duration(entry.planned_ns));
        table.row([number].into_iter().chain(cells).chain([takes]).collect::<Spans>());
    }
    table
}

/// What all scenarios have in common.
fn alike(entries: &[ScenarioEntry]) -> Option<String> {
    let first = entries.first()?;
    let parts = PARTS.into_iter().filter(|(heading, part)| *heading != "repeat" && !varies(entries, *part));
    let parts: Vec<String> = parts.map(|(heading, part)| format!("{heading} {}", part(first))).collect();
    (!parts.is_empty()).then(|| format!("Each with {}.", parts.join(", ")))
}

/// What runs under the name of each load, where the name does not say so.
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
    fn what_varies_is_a_column_and_what_does_not_is_said_once() {
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
  time       2 min 02 s, of which 2 s to prepare and to rest
  records    ladder-20261121/

Scenarios in their order
  no.  load  repeat  CPUs  takes
  1    idle       1  3      40 s
  2    hogs       1  3      40 s
  3    idle       2  3      40 s
  Each with probe cyclic, placement last, settings as found, policy fifo:90,
  shield none.
  Load hogs: cpu.
  !! note last: `last` (CPU 3) stands in for `isolated` on this machine
";
        assert_eq!(out.finish(), expected);
    }
}
