//! `punctual` without a command: the half-minute check of a machine.

use analysis::Judges;
use campaign::{Length, PhasePlan, Plan, Probe, probe::TimerProbe};
use loads::LoadSpec;

use crate::{cli::Quick, output};

/// Loads of the loaded phase, for every shared part of a machine except the disk: writes wear the memory cards of small
/// boards.
const LOADS: [&str; 6] = ["cpu", "cache", "memory", "switch:200us", "net", "irq"];

/// The phases: name, period in ns, share of the time in per cent, and true for a phase with loads. At rest the period
/// decides which idle state a CPU enters, so a slow and a fast one are measured. Under load CPUs do not idle.
const PHASES: [(&str, u64, u64, bool); 3] =
    [("rest", 1_000_000, 26, false), ("rest-fast", 125_000, 22, false), ("load", 125_000, 52, true)];

pub fn run(options: &Quick) -> anyhow::Result<u8> {
    let files = options.record.files()?.with_exports(&options.exports)?;
    let requested = output::find_profiles(&options.profiles)?;
    let plan = Plan {
        command: output::command_line(),
        cpus: options.cpus.clone(),
        blame: options.blame.into(),
        record_path: files.record.clone(),
        executable: output::executable()?,
        profiles: options.profiles.clone(),
        watch_every: output::watch_every(options.output),
        ..Plan::new(Probe::Timer(TimerProbe::default()), phases(options.duration)?)
    };
    let ladder = analysis::profiles().iter().filter(|profile| profile.ladder && profile.judges == Judges::WakeUps);
    let uses = if requested.is_empty() { ladder.cloned().collect() } else { requested };
    let mut record = output::measure_for(&plan, options.output, uses)?;
    if options.profiles.is_empty() {
        record.uses = analysis::ladder(&record);
        record.verdict = analysis::verdict(&record, &[]);
        record.tails = analysis::tails(&record);
    } else {
        output::judge(&mut record, &options.profiles)?;
    }
    output::deliver(options.output, options.extent, &record, &files, |style, width| {
        report::terminal::overview(&record, style, width)
    })?;
    Ok(output::status(&record))
}

fn phases(total_ns: u64) -> anyhow::Result<Vec<PhasePlan>> {
    let loads: Vec<LoadSpec> = LOADS.iter().map(|spec| spec.parse()).collect::<Result<_, _>>()?;
    Ok(PHASES
        .iter()
        .map(|&(name, period_ns, percent, loaded)| PhasePlan {
            name: name.to_owned(),
            period_ns,
            length: Length::Duration((total_ns / 100 * percent).max(1)),
            loads: if loaded { loads.clone() } else { Vec::new() },
            threads: Vec::new(),
        })
        .collect())
}
