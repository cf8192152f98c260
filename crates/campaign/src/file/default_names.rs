//! Names of probes that the file does not name: the kind, and if several have the same kind, the keys that differ.

use std::collections::BTreeSet;

use toml::de::DeValue;

use super::{fields::Fields, model::CampaignProbe, parts::part_name};

/// The keys and values of a probe except `kind`, e.g. `frames 64`. Lists and tables are left out: they are too long for
/// a name.
pub(super) type KeyValues = BTreeSet<String>;

/// The keys and values of a table.
pub(super) fn key_values(fields: &Fields<'_>) -> KeyValues {
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

/// Adds the keys that differ to the names of unnamed probes of one kind. Probes that the file names have `None`.
pub(super) fn make_unique(probes: &mut [(CampaignProbe, Option<KeyValues>)], campaign: &Fields<'_>) {
    let kinds: BTreeSet<String> = unnamed(probes).map(|(probe, _)| probe.name.clone()).collect();
    for kind in kinds {
        let same_kind: Vec<&KeyValues> =
            unnamed(probes).filter(|(probe, _)| probe.name == kind).map(|(_, pairs)| pairs).collect();
        let Some((first, others)) = same_kind.split_first() else { continue };
        let common = others.iter().fold((*first).clone(), |common, pairs| &common & pairs);
        for (probe, pairs) in probes.iter_mut().filter(|(probe, _)| probe.name == kind) {
            let own: Vec<&str> =
                pairs.iter().flatten().filter(|pair| !common.contains(*pair)).map(|it| &**it).collect();
            if !own.is_empty() {
                probe.name = checked(format!("{kind} {}", own.join(" ")), probe, campaign);
            }
        }
    }
}

/// The probes that the file does not name, with their keys and values.
fn unnamed(probes: &[(CampaignProbe, Option<KeyValues>)]) -> impl Iterator<Item = (&CampaignProbe, &KeyValues)> {
    probes.iter().filter_map(|(probe, pairs)| Some((probe, pairs.as_ref()?)))
}

/// Returns the name, and reports one that is too long for a table.
fn checked(name: String, probe: &CampaignProbe, campaign: &Fields<'_>) -> String {
    if part_name(&name).is_err() {
        let text = format!("the default name `{}` is too long: give this probe a name", name.escape_debug());
        campaign.mistakes.add_at(probe.position, text);
    }
    name
}
