//! The placements and settings of a campaign file, and functions for all parts.

use std::collections::HashSet;

use machine::{nic::NicSettings, tune::Choice};
use sys::sched::Policy;
use toml::de::DeValue;

use super::{
    fields::Fields,
    mistake::Position,
    model::{PlacedOn, Placement, Settings},
    words::{CpuWords, Use},
};
use crate::plan::NicPlan;

const AS_FOUND: &str = "as found";

pub(super) fn placements(campaign: &mut Fields<'_>) -> Vec<Placement> {
    let everywhere = |position| Placement {
        name: "all CPUs".to_owned(),
        on: PlacedOn::Set(CpuWords::all(position)),
        policy: None,
        shield: None,
        position,
    };
    let placements: Vec<Placement> = match campaign.tables("placement", "a placement") {
        tables if tables.is_empty() => vec![everywhere(campaign.position())],
        tables => tables.into_iter().map(|fields| placement(fields, everywhere)).collect(),
    };
    check_names("placements", placements.iter().map(|placement| (&*placement.name, placement.position)), campaign);
    placements
}

fn placement(mut fields: Fields<'_>, default: impl Fn(Position) -> Placement) -> Placement {
    let default = default(fields.position());
    let name = fields.parsed("name", part_name);
    let cpus = fields.value("cpus");
    let position = fields.position_of("cpus");
    let placed = |text: &str| placed_on(text, position);
    let on = cpus.and_then(|value| match value.get_ref() {
        DeValue::Array(list) => {
            let word = |text: &str| CpuWords::parse(text, Use::Measuring, position);
            Some(PlacedOn::ByThread(list.iter().filter_map(|value| fields.parse_value("cpus", value, word)).collect()))
        }
        _ => fields.parse_value("cpus", value, placed),
    });
    let policy = fields.parsed("policy", str::parse::<Policy>);
    let shield = words(&mut fields, "shield", Use::Shield);
    fields.finish();
    let cpus_text = cpus.and_then(|value| value.get_ref().as_str()).map(str::to_owned);
    let default_name = cpus_text.filter(|text| part_name(text).is_ok()).unwrap_or_else(|| default.name.clone());
    Placement {
        name: name.unwrap_or(default_name),
        on: on.unwrap_or(default.on),
        policy,
        shield,
        position: default.position,
    }
}

/// Reads CPU words, or `each` or `pairs` followed by CPU words.
fn placed_on(text: &str, position: Position) -> Result<PlacedOn, String> {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let of = |rest: &str| match rest.trim() {
        "" => Ok(CpuWords::all(position)),
        words => CpuWords::parse(words, Use::Measuring, position),
    };
    match first {
        "each" => of(rest).map(PlacedOn::Each),
        "pairs" => of(rest).map(PlacedOn::Pairs),
        _ => CpuWords::parse(text, Use::Measuring, position).map(PlacedOn::Set),
    }
}

pub(super) fn settings(campaign: &mut Fields<'_>) -> Vec<Settings> {
    let as_found = |position| Settings {
        name: AS_FOUND.to_owned(),
        hold_cpu_awake: false,
        set: Vec::new(),
        nic: NicPlan::default(),
        position,
    };
    let settings: Vec<Settings> = match campaign.tables("settings", "settings") {
        tables if tables.is_empty() => vec![as_found(campaign.position())],
        tables => tables.into_iter().map(one_settings).collect(),
    };
    check_names("settings", settings.iter().map(|settings| (&*settings.name, settings.position)), campaign);
    settings
}

fn one_settings(mut fields: Fields<'_>) -> Settings {
    let name = fields.parsed("name", part_name);
    let hold_cpu_awake = fields.flag("hold_cpu_awake");
    let set = fields.texts("set", str::parse::<Choice>);
    let values = fields.parsed("nic", |text| text.parse::<NicSettings>().map(|values| (text.to_owned(), values)));
    let irq_priority = fields.integer("irq_priority", 1..=99).and_then(|priority| u8::try_from(priority).ok());
    let position = fields.position();
    let parts = [
        hold_cpu_awake.then(|| "awake".to_owned()),
        values.as_ref().map(|(text, _)| text.clone()),
        irq_priority.map(|priority| format!("irq {priority}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().chain(set.iter().map(Choice::to_string)).collect();
    let own_name = if parts.is_empty() { AS_FOUND.to_owned() } else { parts.join(" ") };
    if name.is_none() && !fields.has("name") && part_name(&own_name).is_err() {
        let key = if values.is_some() { "nic" } else { "set" };
        fields.report(key, format!("the default name `{own_name}` is too long: give these settings a name"));
    }
    fields.finish();
    let nic = NicPlan { values: values.map(|(_, values)| values).unwrap_or_default(), irq_priority };
    Settings { name: name.unwrap_or(own_name), hold_cpu_awake, set, nic, position }
}

/// Reads CPU words.
pub(super) fn words(fields: &mut Fields<'_>, key: &'static str, allowed: Use) -> Option<CpuWords> {
    let position = fields.position_of(key);
    fields.parsed(key, |text| CpuWords::parse(text, allowed, position))
}

/// Checks the name of a part, which must fit into a table.
pub(super) fn part_name(text: &str) -> Result<String, String> {
    if (1..=40).contains(&text.chars().count()) && !text.contains(char::is_control) && text.trim() == text {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} must be one line of 1 to 40 characters, without spaces at its ends"))
}

/// Reports names that are used twice.
pub(super) fn check_names<'a>(what: &str, names: impl Iterator<Item = (&'a str, Position)>, campaign: &Fields<'_>) {
    let mut seen = HashSet::new();
    for (name, position) in names {
        if !seen.insert(name) {
            let text = format!("two {what} have the name `{name}`: give each its own, e.g. name = \"{name} 2\"");
            campaign.mistakes.add_at(position, text);
        }
    }
}
