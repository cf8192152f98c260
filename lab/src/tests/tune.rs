//! Settings of a real kernel: a search finds one that helps, and everything is as before afterwards.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use record::Proof;

use crate::{
    inside::{expect, punctual, read, scheduled},
    tests::culprits::delays::Dice,
};

/// The begin of the thread's name; the module's interrupt is `hold-source`.
const THREAD: &str = "irq/7-hold-sour";

/// The policies of the interrupt's thread.
fn policies() -> Result<Vec<String>> {
    Ok(scheduled(|name| name.starts_with(THREAD))?.into_values().collect())
}

/// An interrupt thread above the measured thread delays it. A search finds that a lower priority of it helps, and that
/// another setting does not; without `--yes` everything is as before, and `--revert` undoes what was kept.
pub fn a_search_finds_the_interrupt_that_delays() -> Result<()> {
    // The interrupt comes at irregular times, and its thread takes 300 us.
    thread::spawn(|| {
        let mut dice = Dice::new();
        loop {
            thread::sleep(Duration::from_nanos(dice.roll(5_000_000..15_000_000).cast_unsigned()));
            fs::write("/dev/hold", "thread 300000").expect("it can be written");
            // Its log keeps 1024 holds.
            fs::read_to_string("/dev/hold").expect("it can be read");
        }
    });
    let before = policies()?;
    ensure!(before == ["fifo:50"], "{before:?}");
    let migrates = "/proc/sys/kernel/timer_migration";
    let migration = read(migrates)?;
    let search = "tune --prove --quiet --cpus 0 --only kernel.timer_migration --setting irq.priority=hold-source:20";
    for probe in ["timer", "interrupt --source hpet"] {
        let dir = probe.split(' ').next().context("a probe")?;
        let begin = Instant::now();
        let search = format!("{search} --duration 3m --dir {dir}");
        let out = expect(0, &punctual(&format!("{search} -- {probe} --policy fifo:40 --period 1ms --duration 1s"))?)?;
        println!("{out}{:?}", begin.elapsed());
        let proof: Proof = serde_json::from_slice(&fs::read(format!("{dir}/proof.json"))?)?;
        ensure!(proof.scenario.probe == dir && proof.rounds.iter().all(|round| round.samples > 500), "{out}");
        let conclusion = proof.conclusion.as_ref().context("no conclusion")?;
        let kept: Vec<&str> = conclusion.kept.iter().map(|&index| proof.candidates[index].id.as_str()).collect();
        ensure!(kept == ["irq.priority"], "kept {kept:?}: {out}");
        ensure!(policies()? == before && read(migrates)? == migration, "{:?}", policies()?);
    }
    let tune = "tune --only irq.priority --setting irq.priority=hold-source:20";
    expect(0, &punctual(&format!("{tune} --yes"))?)?;
    ensure!(policies()? == ["fifo:20"], "{:?}", policies()?);
    expect(0, &punctual("tune --revert")?)?;
    ensure!(policies()? == before, "{:?}", policies()?);
    Ok(())
}
