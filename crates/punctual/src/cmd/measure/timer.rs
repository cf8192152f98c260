//! `punctual measure timer`.

use campaign::{Length, Plan, Probe, probe::TimerProbe};

use super::Results;
use crate::{
    cli::Timer,
    output::{self, RecordFiles},
};

pub fn run(options: &Timer) -> anyhow::Result<u8> {
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    let results = Results::prepare(common)?;
    let others = output::find_references(&wake_ups.against)?;
    let mut record = output::measure(&plan(options, &results.files)?, common.output)?;
    output::judge(&mut record, &wake_ups.profiles)?;
    output::compare_with(&mut record, &others);
    results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
    wake_ups.status(&record, &results)
}

/// The plan of these options.
pub fn plan(options: &Timer, files: &RecordFiles) -> anyhow::Result<Plan> {
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    let profiles = output::find_profiles(&wake_ups.profiles)?;
    let shortest = profiles.iter().map(|profile| profile.period_ns).min();
    let period_ns = options.period.or(shortest).unwrap_or(TimerProbe::default().period_ns);
    let length = options.samples.map_or_else(|| super::length(common), Length::Samples);
    let phase = super::phase(common, period_ns, length, Vec::new());
    let probe = Probe::Timer(TimerProbe { period_ns });
    Ok(Plan {
        cpus: options.cpus.clone(),
        shield: options.placement.shield.clone(),
        policy: options.policy,
        offset_ns: options.offset,
        blame_cost: options.blame_cost,
        ..wake_ups.apply(super::plan(common, files, probe, vec![phase])?)?
    })
}
