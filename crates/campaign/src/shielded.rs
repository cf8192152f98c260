//! Runs on shielded CPUs: their defaults, and starting threads and loads inside or outside the shield.

use std::{borrow::Cow, path::Path};

use loads::{LoadError, LoadSpec, Running};
use machine::{CpuError, CpuList, Isolation, Root, Shield, ShieldError, tune::Lock, usable_cpus};
use record::{Caveat, Record, Shielding, Strikes};

use crate::{plan::Plan, validity};

/// Returns the plan with the defaults of a shield: the shielded CPUs are measured, and loads run on the others.
pub fn with_defaults<'a>(plan: &'a Plan, root: &Root) -> Result<Cow<'a, Plan>, CpuError> {
    let Some(shielded) = &plan.shield else { return Ok(Cow::Borrowed(plan)) };
    let mut plan = plan.clone();
    plan.cpus.get_or_insert_with(|| shielded.clone());
    if plan.load_cpus.is_none() {
        let others = usable_cpus(root, None)?.difference(shielded);
        // If the shield leaves no CPU, taking the shield reports the error.
        plan.load_cpus = Some(others).filter(|others| !others.is_empty());
    }
    Ok(Cow::Owned(plan))
}

/// Shields the CPUs, and describes the shield in the record. `lock` is the right to change settings, if the caller has it.
pub fn take(
    record: &mut Record,
    cpus: Option<&CpuList>,
    lock: Option<&Lock>,
    root: &Root,
) -> Result<Option<Shield>, ShieldError> {
    let Some(cpus) = cpus else { return Ok(None) };
    let shield = Shield::take(root, cpus, lock)?;
    record.shielding = Some(shield.summary().clone());
    let refused: Vec<String> =
        shield.summary().left.iter().filter(|left| left.no_right).map(|left| left.in_words()).collect();
    if !refused.is_empty() {
        let text = format!("{} could not be shielded as requested: {}", cpus.in_words(), refused.join("; "));
        validity::add(record, "shield.incomplete", text, "run as root: sudo \"$(command -v punctual)\" ...");
    }
    Ok(Some(shield))
}

/// Judges by the interrupts that could not be moved: the run is invalid if one occurred on a shielded CPU.
pub fn judge_interrupts(record: &mut Record, shield: Option<&Shield>) {
    let (Some(shield), Some(shielding)) = (shield, &mut record.shielding) else { return };
    let struck = shield.strikes();
    shielding.struck = Some(struck.clone());
    if struck.is_empty() {
        return;
    }
    let words: Vec<String> = struck.iter().map(Strikes::in_words).collect();
    let (cpus, list) = (shield.cpus(), shield.cpus().in_words());
    let text = format!("{list} could not be shielded from {}", words.join(", "));
    let isolation = Isolation::of_record(&record.machine);
    let remedy =
        format!("boot with `{}`, which moves such interrupts, or shield CPUs without them", isolation.arguments(cpus));
    validity::add(record, "shield.struck", text, &remedy);
}

/// Releases the shield, and adds a caveat for everything that could not be restored.
pub fn release(record: &mut Record, shield: Shield) {
    let struck = record.shielding.as_mut().and_then(|shielding| shielding.struck.take());
    let shielding = Shielding { struck, ..shield.release() };
    for failed in shielding.put_back.iter().flat_map(|put_back| &put_back.failed) {
        let text = format!("after the run this could not be restored: {failed}; try `punctual restore`");
        record.caveats.push(Caveat { kind: "shield".to_owned(), text });
    }
    record.shielding = Some(shielding);
}

/// The reasons why loads could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A load failed.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The loads cannot be moved into the shield.
    #[error(transparent)]
    Shield(#[from] ShieldError),
}

/// Starts the loads inside or outside the shield. A load with CPUs on both sides is started once on each side, because
/// a process cannot be on both.
pub fn start_loads(
    executable: &Path,
    specs: &[LoadSpec],
    default_cpus: &CpuList,
    shield: Option<&Shield>,
) -> Result<Vec<Running>, StartError> {
    let start = |specs: &[LoadSpec]| -> Result<Option<Running>, StartError> {
        let start = || Running::start(executable, specs, default_cpus);
        Ok(if specs.is_empty() { None } else { Some(start()?) })
    };
    let Some(shield) = shield.filter(|shield| shield.needs_entering()) else {
        return Ok(start(specs)?.into_iter().collect());
    };
    let part = |side: fn(&CpuList, &CpuList) -> CpuList| -> Vec<LoadSpec> {
        let part = |spec: &LoadSpec| {
            let cpus = side(spec.cpus.as_ref().unwrap_or(default_cpus), shield.cpus());
            (!cpus.is_empty()).then(|| LoadSpec { cpus: Some(cpus), ..spec.clone() })
        };
        specs.iter().filter_map(part).collect()
    };
    let outside = start(&part(CpuList::difference))?;
    let inside = shield.enter(|| start(&part(CpuList::intersection)))??;
    Ok(outside.into_iter().chain(inside).collect())
}
