//! `punctual measure noise`.

use campaign::{Plan, Probe, probe::NoiseProbe};

use super::Results;
use crate::{
    cli::Noise,
    output::{self, RecordFiles},
};

pub fn run(options: &Noise) -> anyhow::Result<u8> {
    let common = &options.common;
    let results = Results::prepare(common)?;
    let mut record = output::measure(&plan(options, &results.files)?, common.output)?;
    output::judge(&mut record, &options.profiles)?;
    results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
    Ok(output::status(&record))
}

/// The plan of these options.
pub fn plan(options: &Noise, files: &RecordFiles) -> anyhow::Result<Plan> {
    let common = &options.common;
    let probe = NoiseProbe { period_ns: options.period, runtime_ns: options.runtime };
    let phase = super::phase(common, options.period, super::length(common), Vec::new());
    Ok(Plan {
        cpus: options.cpus.clone(),
        shield: options.placement.shield.clone(),
        policy: options.policy,
        threshold_ns: Some(options.threshold),
        profiles: options.profiles.clone(),
        until_decided: super::until_decided(options.until_decided, &options.profiles)?,
        ..super::plan(common, files, Probe::Noise(probe), vec![phase])?
    })
}
