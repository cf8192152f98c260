//! The effect of `irq` in /proc/interrupts. Separate from the other tests, because it compares with a machine at rest.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod common;

use std::fs;

use common::{online, proof};

/// The count of the interrupts with one of these descriptions in /proc/interrupts, summed over the CPUs.
fn interrupts(descriptions: &[&str]) -> u64 {
    let table = fs::read_to_string("/proc/interrupts").unwrap();
    let lines = table.lines().filter(|line| descriptions.iter().any(|words| line.contains(words)));
    lines.flat_map(|line| line.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok())).sum()
}

#[test]
fn irq_causes_timer_and_inter_processor_interrupts() {
    let timer = || interrupts(&["Local timer interrupts", "arch_timer"]);
    let between = || interrupts(&["Function call interrupts", "Rescheduling interrupts"]);
    let first = online().first().unwrap();

    let before = timer();
    let alone = proof(&format!("irq@{first}"));
    assert!(alone.ran, "{alone:?}");
    let caused = timer() - before;
    assert!(caused >= alone.operations / 4, "{caused} timer interrupts for {alone:?}");
    assert!(alone.note.unwrap().contains("need two CPUs"), "one CPU has no other CPU to interrupt");

    assert!(online().len() > 1, "this test needs two CPUs");
    // Other programs cause such interrupts, too: one of five rounds must show the difference.
    let rounds = (0..5).map(|_| {
        let before = between();
        assert!(proof("idle").ran);
        let (at_rest, before) = (between() - before, between());
        let both = proof("irq");
        assert!(both.ran && both.note.is_none(), "{both:?}");
        (between() - before, at_rest)
    });
    let mut seen = Vec::new();
    let differs =
        rounds.inspect(|round| seen.push(*round)).any(|(caused, at_rest)| caused > 100 && caused > 3 * at_rest);
    assert!(differs, "interrupts between CPUs with the load, and at rest: {seen:?}");
}
