//! The placements and settings of a campaign file, and what all parts share.

use std::collections::HashSet;

use machine::nic::NicSettings;
use sys::sched::Policy;
use toml::de::DeValue;

use super::{
    fields::Fields,
    mistake::Place,
    model::{PlacedOn, Placement, Settings},
    words::{CpuWords, Use},
};
use crate::plan::NicPlan;

const AS_FOUND: &str = "as found";

pub(super) fn placements(campaign: &mut Fields<'_>) -> Vec<Placement> {
    let everywhere = |place| Placement {
        name: "all CPUs".to_owned(),
        on: PlacedOn::Set(CpuWords::all(place)),
        policy: None,
        shield: None,
        place,
    };
    let placements: Vec<Placement> = match campaign.tables("placement", "a placement") {
        tables if tables.is_empty() => vec![everywhere(campaign.place())],
        tables => tables.into_iter().map(|fields| placement(fields, everywhere)).collect(),
    };
    check_names("placements", placements.iter().map(|placement| (&*placement.name, placement.place)), campaign);
    placements
}

fn placement(mut fields: Fields<'_>, default: impl Fn(Place) -> Placement) -> Placement {
    let default = default(fields.place());
    let name = fields.parsed("name", part_name);
    let cpus = fields.value("cpus");
    let place = fields.place_of("cpus");
    let placed = |text: &str| placed_on(text, place);
    let on = cpus.and_then(|value| match value.get_ref() {
        DeValue::Array(list) => {
            let word = |text: &str| CpuWords::parse(text, Use::Measuring, place);
            Some(PlacedOn::ByThread(list.iter().filter_map(|value| fields.parse_value("cpus", value, word)).collect()))
        }
        _ => fields.parse_value("cpus", value, placed),
    });
    let policy = fields.parsed("policy", str::parse::<Policy>);
    let shield = words(&mut fields, "shield", Use::Shield);
    fields.finish();
    let told = cpus.and_then(|value| value.get_ref().as_str()).map(str::to_owned);
    let default_name = told.filter(|told| part_name(told).is_ok()).unwrap_or_else(|| default.name.clone());
    Placement { name: name.unwrap_or(default_name), on: on.unwrap_or(default.on), policy, shield, place: default.place }
}

/// CPUs in words, behind `each` or `pairs` for one placement a CPU or a pair.
fn placed_on(text: &str, place: Place) -> Result<PlacedOn, String> {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let of = |rest: &str| match rest.trim() {
        "" => Ok(CpuWords::all(place)),
        words => CpuWords::parse(words, Use::Measuring, place),
    };
    match first {
        "each" => of(rest).map(PlacedOn::Each),
        "pairs" => of(rest).map(PlacedOn::Pairs),
        _ => CpuWords::parse(text, Use::Measuring, place).map(PlacedOn::Set),
    }
}

pub(super) fn settings(campaign: &mut Fields<'_>) -> Vec<Settings> {
    let as_found =
        |place| Settings { name: AS_FOUND.to_owned(), hold_cpu_awake: false, nic: NicPlan::default(), place };
    let settings: Vec<Settings> = match campaign.tables("settings", "settings") {
        tables if tables.is_empty() => vec![as_found(campaign.place())],
        tables => tables.into_iter().map(one_settings).collect(),
    };
    check_names("settings", settings.iter().map(|settings| (&*settings.name, settings.place)), campaign);
    settings
}

fn one_settings(mut fields: Fields<'_>) -> Settings {
    let name = fields.parsed("name", part_name);
    let hold_cpu_awake = fields.flag("hold_cpu_awake");
    let values = fields.parsed("nic", |text| text.parse::<NicSettings>().map(|values| (text.to_owned(), values)));
    let irq_priority = fields.integer("irq_priority", 1..=99).map(|priority| priority as u8);
    let place = fields.place();
    let parts = [
        hold_cpu_awake.then(|| "awake".to_owned()),
        values.as_ref().map(|(text, _)| text.clone()),
        irq_priority.map(|priority| format!("irq {priority}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let own_name = if parts.is_empty() { AS_FOUND.to_owned() } else { parts.join(" ") };
    if name.is_none() && !fields.has("name") && part_name(&own_name).is_err() {
        fields.wrong("nic", format!("these settings would be called `{own_name}`: give them a shorter name"));
    }
    fields.finish();
    let nic = NicPlan { values: values.map(|(_, values)| values).unwrap_or_default(), irq_priority };
    Settings { name: name.unwrap_or(own_name), hold_cpu_awake, nic, place }
}

/// CPUs in words.
pub(super) fn words(fields: &mut Fields<'_>, key: &'static str, allowed: Use) -> Option<CpuWords> {
    let place = fields.place_of(key);
    fields.parsed(key, |text| CpuWords::parse(text, allowed, place))
}

/// A name that fits into a table.
pub(super) fn part_name(text: &str) -> Result<String, String> {
    if (1..=40).contains(&text.chars().count()) && !text.contains(char::is_control) && text.trim() == text {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} must be 1 to 40 characters in one line, with no blanks around them"))
}

/// Notes names that are given twice.
pub(super) fn check_names<'a>(what: &str, names: impl Iterator<Item = (&'a str, Place)>, campaign: &Fields<'_>) {
    let mut seen = HashSet::new();
    for (name, place) in names {
        if !seen.insert(name) {
            let text = format!("two {what} are called `{name}`: give each a name of its own, as name = \"{name} 2\"");
            campaign.mistakes.add_at(place, text);
        }
    }
}
