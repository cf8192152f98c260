//! Properties of every campaign: the product of its parts, its order and its duration.

use std::{collections::BTreeSet, fmt::Write};

use campaign::{AROUND_NS, Cpus, ExpandOptions, expand, file};
use proptest::{collection::vec, prelude::*};

/// The parts of a campaign; durations in ms.
#[derive(Debug, Clone)]
struct Parts {
    probes_ms: Vec<u64>,
    loads: usize,
    placements: Vec<&'static str>,
    settings: usize,
    repeats: u32,
    rest_ms: u64,
    order: &'static str,
}

fn parts() -> impl Strategy<Value = Parts> {
    let order = prop_oneof![Just("sequential"), Just("shuffled"), Just("abba")];
    let word = prop_oneof![Just("all"), Just("first"), Just("last ordinary or last"), Just("each"), Just("0")];
    let placements = vec(word, 1..4);
    (vec(1u64..100_000, 1..4), 1usize..4, placements, 1usize..3, 1u32..4, 0u64..5000, order).prop_map(
        |(probes_ms, loads, placements, settings, half, rest_ms, order)| Parts {
            probes_ms,
            loads,
            placements,
            settings,
            repeats: 2 * half,
            rest_ms,
            order,
        },
    )
}

fn text(parts: &Parts) -> String {
    let Parts { repeats, rest_ms, order, .. } = parts;
    let mut text = format!("name = \"a\"\nrepeats = {repeats}\nrest = \"{rest_ms}ms\"\norder = \"{order}\"\n");
    for (index, ms) in parts.probes_ms.iter().enumerate() {
        let _ = writeln!(text, "[[probe]]\nname = \"p{index}\"\nduration = \"{ms}ms\"");
    }
    for index in 0..parts.loads {
        let _ = writeln!(text, "[[load]]\nname = \"l{index}\"\nrun = [\"cpu\"]\nthreads = {}", index + 1);
    }
    for (index, cpus) in parts.placements.iter().enumerate() {
        let _ = writeln!(text, "[[placement]]\nname = \"w{index}\"\ncpus = \"{cpus}\"");
    }
    for index in 0..parts.settings {
        let _ = writeln!(text, "[[settings]]\nname = \"s{index}\"\nhold_cpu_awake = {}", index == 0);
    }
    text
}

proptest! {
    #[test]
    fn a_campaign_is_the_product_of_its_parts(parts in parts(), cpu_count in 1u32..6) {
        let cpus = Cpus { usable: (0..cpu_count).collect(), isolated: (1..2).collect(), isolation: machine::Isolation::default() };
        let file = file::parse("a.toml", &text(&parts)).expect("the parts are valid");
        let scenarios = expand(&file, &cpus, &ExpandOptions::default()).expect("the words fit every machine");
        let spots: usize = parts.placements.iter().map(|word| if *word == "each" { cpu_count as usize } else { 1 }).sum();
        let of_one_probe = parts.loads * spots * parts.settings;
        let repeats = parts.repeats as usize;
        prop_assert_eq!(scenarios.list.len(), repeats * parts.probes_ms.len() * of_one_probe);

        let measured_ms = repeats as u64 * of_one_probe as u64 * parts.probes_ms.iter().sum::<u64>();
        let rests_ms = (scenarios.list.len() as u64 - 1) * parts.rest_ms;
        let overhead_ns = scenarios.list.len() as u64 * AROUND_NS;
        prop_assert_eq!(scenarios.planned_ns(), (measured_ms + rests_ms) * 1_000_000 + overhead_ns);

        let of_repeat = |repeat: u32| scenarios.list.iter().filter(move |scenario| scenario.repeat == repeat);
        let names = |repeat| of_repeat(repeat).map(|scenario| &scenario.name).collect::<Vec<_>>();
        let all: BTreeSet<_> = names(1).into_iter().collect();
        for repeat in 1..=parts.repeats {
            prop_assert_eq!(names(repeat).len(), all.len(), "each name once in each repeat");
            prop_assert_eq!(&names(repeat).into_iter().collect::<BTreeSet<_>>(), &all);
        }
        let numbers: Vec<u32> = scenarios.list.iter().map(|scenario| scenario.repeat).collect();
        prop_assert!(numbers.is_sorted(), "one repeat after the other");
        match parts.order {
            "abba" => prop_assert_eq!(names(1), names(2).into_iter().rev().collect::<Vec<_>>()),
            "sequential" => prop_assert_eq!(names(1), names(2)),
            _ => {}
        }
    }

    #[test]
    fn no_text_panics(text in "(name = \"a\"\n)?(\\[{1,2}(probe|load|placement|settings|scenario)\\]{1,2}\n[a-z]{4,6} = [\"0-9a-z\\[\\], {}=-]{0,12}\n){0,4}") {
        let cpus = Cpus { usable: (0..2).collect(), isolated: machine::CpuList::new(), isolation: machine::Isolation::default() };
        match file::parse("a.toml", &text) {
            Ok(file) => drop(expand(&file, &cpus, &ExpandOptions::default())),
            Err(mistakes) => prop_assert!(!mistakes.list.is_empty()),
        }
    }
}
