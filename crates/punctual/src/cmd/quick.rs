//! Bare `punctual`: the half-minute look at a machine.

use campaign::{Length, PhasePlan, Plan, Probe, probe::TimerProbe};
use loads::LoadSpec;

use crate::{
    cli::Quick,
    output::{self, Kept},
};

/// What runs beside the probe in the loaded part: work for every part of a machine that a use shares with others.
/// Nothing is written to disk, since that wears the cards that small boards run from.
const LOADS: [&str; 6] = ["cpu", "cache", "memory", "switch:200us", "net", "irq"];

/// The parts: name, period, per cent of the time. At rest the period decides how deeply a CPU falls asleep in between,
/// so both a slow and a fast one are measured; under load it does not sleep.
const PHASES: [(&str, u64, u64, bool); 3] =
    [("rest", 1_000_000, 26, false), ("rest-fast", 125_000, 22, false), ("load", 125_000, 52, true)];

pub fn run(options: &Quick) -> anyhow::Result<u8> {
    let kept = Kept::choose(options.record.as_deref(), options.no_record)?;
    let plan = Plan {
        command: output::command_line(),
        cpus: options.cpus.clone(),
        blame: options.blame.into(),
        record_path: kept.record.clone(),
        executable: output::executable()?,
        watch_every: output::watch_every(options.talk),
        ..Plan::new(Probe::Timer(TimerProbe::default()), phases(options.duration)?)
    };
    let mut record = output::measure(&plan, options.talk)?;
    record.uses = analysis::ladder(&record);
    record.verdict = analysis::verdict(&record, &[]);
    kept.write(&record)?;
    kept.write_report(&record)?;
    if options.talk.json {
        output::stdout(|out| std::io::Write::write_all(out, &record::file::to_json(&record)))?;
    } else {
        output::print(options.talk, |style, width| report::terminal::overview(&record, style, width))?;
    }
    if !options.talk.quiet {
        kept.say();
    }
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
