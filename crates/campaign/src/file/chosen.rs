//! Which scenarios a file asks for, by its list or by the product of its parts, and whether their parts fit together.

use std::collections::HashSet;

use super::{
    SCENARIOS_MAX,
    fields::Fields,
    mistake::{Place, nearest},
    model::{CampaignProbe, Chosen, Load, PlacedOn, Placement, Settings},
};
use crate::probe::Network;

pub(super) fn scenarios(
    campaign: &mut Fields<'_>,
    probes: &[CampaignProbe],
    loads: &[Load],
    placements: &[Placement],
    settings: &[Settings],
) -> Vec<Chosen> {
    let names = [
        ("probe", probes.iter().map(|part| &*part.name).collect::<Vec<_>>()),
        ("load", loads.iter().map(|part| &*part.name).collect()),
        ("placement", placements.iter().map(|part| &*part.name).collect()),
        ("settings", settings.iter().map(|part| &*part.name).collect()),
    ];
    let mut chosen = Vec::new();
    let lists = match campaign.tables("scenario", "a scenario") {
        // Without a list, the product of all parts.
        tables if tables.is_empty() => vec![(names.each_ref().map(|(_, names)| (0..names.len()).collect()), None)],
        tables => tables.into_iter().map(|fields| listed(fields, &names)).collect(),
    };
    for (parts, place) in lists {
        let [probe, load, placement, setting]: &[Vec<usize>; 4] = &parts;
        let count = [probe, load, placement, setting]
            .iter()
            .map(|list| list.len())
            .fold(chosen.len().max(1), usize::saturating_mul);
        if count > SCENARIOS_MAX {
            campaign.wrong(
                "scenario",
                format!("the parts make more than {SCENARIOS_MAX} scenarios: list those you want as [[scenario]]"),
            );
            break;
        }
        for &probe in probe {
            for &load in load {
                for &placement in placement {
                    let place = place.unwrap_or(placements[placement].place);
                    chosen.extend(setting.iter().map(|&settings| Chosen { probe, load, placement, settings, place }));
                }
            }
        }
    }
    check_fit(campaign, probes, placements, &chosen);
    check_nic(campaign, probes, settings, &chosen);
    check_twice(campaign, &chosen);
    chosen
}

/// The parts that one entry of the list names; all of a kind where it names none.
fn listed(mut fields: Fields<'_>, names: &[(&'static str, Vec<&str>); 4]) -> ([Vec<usize>; 4], Option<Place>) {
    let parts = names.each_ref().map(|(key, names)| {
        if !fields.has(key) {
            let _ = fields.value(key);
            return (0..names.len()).collect();
        }
        fields.texts(key, |text| {
            names.iter().position(|name| *name == text).ok_or_else(|| {
                format!("no {key} is called {text:?}{}: there is {}", nearest(text, names), names.join(", "))
            })
        })
    });
    let place = fields.place();
    fields.finish();
    (parts, Some(place))
}

/// Placements with a CPU for each thread need a probe that has so many.
fn check_fit(campaign: &Fields<'_>, probes: &[CampaignProbe], placements: &[Placement], chosen: &[Chosen]) {
    for &Chosen { probe, placement, .. } in chosen {
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
                "placement `{}` gives CPUs to {}, and probe `{}` has {has}: {remedy}",
                placement.name,
                in_words(wanted),
                probe.name,
            );
            campaign.mistakes.add_at(placement.place, text);
        }
    }
}

/// Settings of an interface need a probe that goes over one.
fn check_nic(campaign: &Fields<'_>, probes: &[CampaignProbe], settings: &[Settings], chosen: &[Chosen]) {
    let mut seen = HashSet::new();
    for &Chosen { probe, settings: setting, .. } in chosen {
        let (probe, settings) = (&probes[probe], &settings[setting]);
        if settings.nic.is_empty()
            || probe.probe.definition().network() == Network::Interface
            || !seen.insert((&probe.name, &settings.name))
        {
            continue;
        }
        let text = format!(
            "settings `{}` set an interface, and probe `{}` goes over none: give it `talk`, `listen` or a `peer` elsewhere, or \
             list the scenarios",
            settings.name, probe.name
        );
        campaign.mistakes.add_at(settings.place, text);
    }
}

fn in_words(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

fn check_twice(campaign: &Fields<'_>, chosen: &[Chosen]) {
    let mut seen = HashSet::new();
    for one in chosen {
        if !seen.insert((one.probe, one.load, one.placement, one.settings)) {
            let text = "this lists a scenario that is listed already: leave it out, or write `repeats = 2` at the top";
            campaign.mistakes.add_at(one.place, text.to_owned());
        }
    }
}
