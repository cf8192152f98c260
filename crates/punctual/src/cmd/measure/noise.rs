//! `punctual measure noise`.

use campaign::{PhasePlan, Plan, Probe};

use super::Results;
use crate::{cli::Noise, output};

pub fn run(options: &Noise) -> anyhow::Result<u8> {
    let common = &options.common;
    let results = Results::prepare(common)?;
    let loads = super::loads(common);
    let phase = PhasePlan {
        name: super::phase_name(&loads),
        period_ns: options.period,
        length: super::length(common),
        loads,
        threads: Vec::new(),
    };
    let plan = Plan {
        probe: Probe::Noise { runtime_ns: options.runtime },
        cpus: options.cpus.clone(),
        shield: options.placement.shield.clone(),
        policy: options.policy,
        threshold_ns: Some(options.threshold),
        ..super::plan(common, &results.kept, vec![phase])?
    };
    let mut record = output::measure(&plan, common.talk)?;
    output::judge(&mut record, &[])?;
    results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
    Ok(output::status(&record))
}
