//! What probes are called that the file does not name: their kind, and where several are of one kind, what tells them apart.

use std::collections::BTreeSet;

use toml::de::DeValue;

use super::{fields::Fields, model::CampaignProbe, parts::part_name};

/// What a probe says but for its kind, as `frames 64`; lists and tables are too long for a name.
pub(super) type Said = BTreeSet<String>;

/// What the probe of this table says.
pub(super) fn said(fields: &Fields<'_>) -> Said {
    let pair = |(key, value): (&str, &DeValue<'_>)| {
        let value = match value {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            _ => return None,
        };
        Some(format!("{key} {value}"))
    };
    fields.values().filter(|(key, _)| *key != "kind").filter_map(pair).collect()
}

/// Adds to the names of those without one of their own that are called alike what not all of them say. `None` is said of
/// probes that the file names.
pub(super) fn tell_apart(probes: &mut [(CampaignProbe, Option<Said>)], campaign: &Fields<'_>) {
    let kinds: BTreeSet<String> = unnamed(probes).map(|(probe, _)| probe.name.clone()).collect();
    for kind in kinds {
        let alike: Vec<&Said> = unnamed(probes).filter(|(probe, _)| probe.name == kind).map(|(_, said)| said).collect();
        let Some((first, others)) = alike.split_first() else { continue };
        let common = others.iter().fold((*first).clone(), |common, said| &common & said);
        for (probe, said) in probes.iter_mut().filter(|(probe, _)| probe.name == kind) {
            let own: Vec<&str> = said.iter().flatten().filter(|pair| !common.contains(*pair)).map(|it| &**it).collect();
            if !own.is_empty() {
                probe.name = checked(format!("{kind} {}", own.join(" ")), probe, campaign);
            }
        }
    }
}

/// The probes that the file does not name, with what they say.
fn unnamed(probes: &[(CampaignProbe, Option<Said>)]) -> impl Iterator<Item = (&CampaignProbe, &Said)> {
    probes.iter().filter_map(|(probe, said)| Some((probe, said.as_ref()?)))
}

/// The name, which may be too long for a table.
fn checked(name: String, probe: &CampaignProbe, campaign: &Fields<'_>) -> String {
    if part_name(&name).is_err() {
        let text = format!("this probe would be called `{}`: give it a shorter name", name.escape_debug());
        campaign.mistakes.add_at(probe.place, text);
    }
    name
}
