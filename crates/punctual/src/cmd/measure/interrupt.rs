//! `punctual measure interrupt`.

use campaign::{
    NicPlan, Plan, Probe,
    probe::{
        Definition, InterruptProbe, choose_cpu,
        interrupt::{Offer, offers},
    },
};
use machine::Root;
use serde_json::json;
use sys::clock::Wait;

use super::Results;
use crate::{
    cli::{Interrupt, OutputOptions},
    exit::Usage,
    output::{self, RecordFiles},
};

/// Columns of the names in the list of sources.
const COLUMN: usize = 27;

pub fn run(options: &Interrupt) -> anyhow::Result<u8> {
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    if options.list {
        return list(common.output);
    }
    let results = Results::prepare(common)?;
    let plan = plan(options, &results.files)?;
    let others = output::find_references(&wake_ups.against)?;
    let mut record = output::measure(&plan, common.output)?;
    output::judge(&mut record, &wake_ups.profiles)?;
    output::compare_with(&mut record, &others);
    results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
    wake_ups.status(&record, &results)
}

/// The plan of these options.
pub fn plan(options: &Interrupt, files: &RecordFiles) -> anyhow::Result<Plan> {
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    let source = options.source.clone().ok_or_else(|| {
        Usage("choose a source of interrupts with --source; `punctual measure interrupt --list` shows those of this machine".to_owned())
    })?;
    if wake_ups.wait != Wait::Nanosleep {
        return Err(Usage(
            "--wait has no effect here, because the thread waits for its source: leave it out".to_owned(),
        )
        .into());
    }
    output::find_profiles(&wake_ups.profiles)?;
    let cpu = choose_cpu(&Root::system(), options.cpu, options.placement.shield.as_ref(), wake_ups.core)?;
    let probe = InterruptProbe { cpu: Some(cpu), irq_cpu: options.irq_cpu, ..options.shared.probe(source) };
    let threads = probe.threads(options.policy);
    let phase = super::phase(common, probe.period_ns(), super::length(common), threads);
    Ok(Plan {
        cpus: Some([cpu].into_iter().collect()),
        shield: options.placement.shield.clone(),
        policy: options.policy,
        nic: NicPlan { irq_priority: options.irq_priority, ..NicPlan::default() },
        ..wake_ups.apply(super::plan(common, files, Probe::Interrupt(Box::new(probe)), vec![phase])?)?
    })
}

/// The answer of the list: the source with the most complete times, which is the first.
fn best(offers: &[Offer]) -> String {
    match offers.iter().find_map(|offer| offer.sources.first()) {
        Some(source) => format!("The source that shows most: --source {source}"),
        None => "This machine has no source. What each kind needs:".to_owned(),
    }
}

/// Prints what this machine offers.
fn list(output_options: OutputOptions) -> anyhow::Result<u8> {
    let offers = offers(&Root::system());
    output::stdout(|out| {
        if output_options.json {
            let offer =
                |Offer { sources, kind, about }: &Offer| json!({ "kind": kind, "sources": sources, "about": about });
            return writeln!(out, "{}", output::json(&offers.iter().map(offer).collect()));
        }
        writeln!(out, "{}", best(&offers))?;
        if offers.iter().any(|offer| !offer.sources.is_empty()) && !rustix::process::geteuid().is_root() {
            writeln!(out, "Most sources need root: run the measurement with sudo.")?;
        }
        offers.iter().try_for_each(|offer| {
            let name = if offer.sources.is_empty() { "-".to_owned() } else { offer.sources.join(" ") };
            let text = format!("{}: {}", offer.kind, offer.about);
            write!(out, "{}", report::terminal::entry(&name, COLUMN, &text, report::terminal::width()))
        })
    })?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_begins_with_the_best_source() {
        let offer = |sources: &[&str]| Offer {
            sources: sources.iter().map(|source| (*source).to_owned()).collect(),
            kind: "a kind",
            about: String::new(),
        };
        let all = [offer(&[]), offer(&["pps:pps0", "pps:pps1"]), offer(&["evdev:event0"])];
        assert_eq!(best(&all), "The source that shows most: --source pps:pps0");
        assert!(best(&all[..1]).starts_with("This machine has no source."));
    }
}
