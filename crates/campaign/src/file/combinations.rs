//! Combines the parts of a file to scenarios, as listed or all with all, and checks that the parts fit together.

use std::collections::HashSet;

use super::{
    SCENARIOS_MAX,
    fields::Fields,
    mistake::{Position, nearest, or_list},
    model::{CampaignProbe, Combination, Load, PlacedOn, Placement, Settings},
};
use crate::probe::{Network, Probe};

pub(super) fn scenarios(
    campaign: &mut Fields<'_>,
    probes: &[CampaignProbe],
    loads: &[Load],
    placements: &[Placement],
    settings: &[Settings],
) -> Vec<Combination> {
    let names = [
        ("probe", probes.iter().map(|part| &*part.name).collect::<Vec<_>>()),
        ("load", loads.iter().map(|part| &*part.name).collect()),
        ("placement", placements.iter().map(|part| &*part.name).collect()),
        ("settings", settings.iter().map(|part| &*part.name).collect()),
    ];
    let mut chosen = Vec::new();
    let lists = match campaign.tables("scenario", "a scenario") {
        // Without a list, all combinations of all parts.
        tables if tables.is_empty() => vec![(names.each_ref().map(|(_, names)| (0..names.len()).collect()), None)],
        tables => tables.into_iter().map(|fields| listed(fields, &names)).collect(),
    };
    for (parts, position) in lists {
        let [probe, load, placement, setting]: &[Vec<usize>; 4] = &parts;
        let count = [probe, load, placement, setting]
            .iter()
            .map(|list| list.len())
            .fold(chosen.len().max(1), usize::saturating_mul);
        if count > SCENARIOS_MAX {
            campaign.report(
                "scenario",
                format!("the parts make more than {SCENARIOS_MAX} scenarios: list the wanted ones as [[scenario]]"),
            );
            break;
        }
        for &probe in probe {
            for &load in load {
                for &placement in placement {
                    let position = position.unwrap_or(placements[placement].position);
                    chosen.extend(setting.iter().map(|&settings| Combination {
                        probe,
                        load,
                        placement,
                        settings,
                        position,
                    }));
                }
            }
        }
    }
    check_fit(campaign, probes, placements, &chosen);
    check_nic(campaign, probes, settings, &chosen);
    check_twice(campaign, &chosen);
    chosen
}

/// The parts of one entry of the list; all parts of a kind that the entry does not name.
fn listed(mut fields: Fields<'_>, names: &[(&'static str, Vec<&str>); 4]) -> ([Vec<usize>; 4], Option<Position>) {
    let parts = names.each_ref().map(|(key, names)| {
        if !fields.has(key) {
            let _ = fields.value(key);
            return (0..names.len()).collect();
        }
        fields.texts(key, |text| {
            names
                .iter()
                .position(|name| *name == text)
                .ok_or_else(|| format!("no {key} {text:?}{}: write {}", nearest(text, names), or_list(names)))
        })
    });
    let position = fields.position();
    fields.finish();
    (parts, Some(position))
}

/// Reports placements that name another number of CPUs than the probe has threads.
fn check_fit(campaign: &Fields<'_>, probes: &[CampaignProbe], placements: &[Placement], chosen: &[Combination]) {
    for &Combination { probe, placement, .. } in chosen {
        let (probe, placement) = (&probes[probe], &placements[placement]);
        let wanted = match &placement.on {
            PlacedOn::Set(_) | PlacedOn::Each(_) => continue,
            PlacedOn::Pairs(_) => 2,
            PlacedOn::ByThread(list) => list.len(),
        };
        let rule = probe.probe.definition().placement();
        if !rule.by_thread.is_some_and(|range| range.contains(&wanted)) {
            let (has, remedy) = (rule.threads, rule.remedy);
            let text = format!(
                "placement `{}` has CPUs for {}, but probe `{}` has {has}: {remedy}",
                placement.name,
                in_words(wanted),
                probe.name,
            );
            campaign.mistakes.add_at(placement.position, text);
        }
    }
}

/// Reports settings of a network interface for probes that use none. The priority of interrupts can also be that of the source
/// of an interrupt probe.
fn check_nic(campaign: &Fields<'_>, probes: &[CampaignProbe], settings: &[Settings], chosen: &[Combination]) {
    let mut seen = HashSet::new();
    for &Combination { probe, settings: setting, .. } in chosen {
        let (probe, settings) = (&probes[probe], &settings[setting]);
        let is_of_source = matches!(probe.probe, Probe::Interrupt(_)) && settings.nic.values.is_empty();
        if settings.nic.is_empty()
            || is_of_source
            || probe.probe.definition().properties().network == Network::Interface
            || !seen.insert((&probe.name, &settings.name))
        {
            continue;
        }
        let text = format!(
            "settings `{}` are for a network interface, but probe `{}` uses none: give it `talk`, `listen` or a remote \
            `peer`, or list the scenarios",
            settings.name, probe.name
        );
        campaign.mistakes.add_at(settings.position, text);
    }
}

fn in_words(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

fn check_twice(campaign: &Fields<'_>, chosen: &[Combination]) {
    let mut seen = HashSet::new();
    for one in chosen {
        if !seen.insert((one.probe, one.load, one.placement, one.settings)) {
            let text = "this scenario is listed twice: leave it out, or write e.g. `repeats = 2` at the top";
            campaign.mistakes.add_at(one.position, text.to_owned());
        }
    }
}
