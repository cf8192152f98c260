//! `punctual measure audio`.

use analysis::format_duration;
use campaign::{
    PhasePlan, Plan, Probe,
    probe::{
        AudioProbe, Definition,
        audio::{Device, frames_of_profiles},
        choose_cpu,
    },
};
use machine::Root;

use super::Results;
use crate::{
    cli::{Audio, OutputOptions},
    cmd::sound::NOT_WITH_CLOCK,
    exit::Usage,
    output::{self, RecordFiles},
};

pub fn run(options: &Audio) -> anyhow::Result<u8> {
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    let results = Results::prepare(common)?;
    let others = output::find_references(&wake_ups.against)?;
    let plan = plan(options, &results.files)?;
    print_search(&plan, common.output);
    let mut record = output::measure(&plan, common.output)?;
    output::judge(&mut record, &wake_ups.profiles)?;
    output::compare_with(&mut record, &others);
    results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
    match analysis::audio::outcome_of_search(&record) {
        Some(outcome) => Ok(outcome.exit_status()),
        None => wake_ups.status(&record, &results),
    }
}

/// The plan of these options.
pub fn plan(options: &Audio, files: &RecordFiles) -> anyhow::Result<Plan> {
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    let device = device(options)?;
    let profiles = output::find_profiles(&wake_ups.profiles)?;
    let cpu = choose_cpu(&Root::system(), options.cpu, options.placement.shield.as_ref(), wake_ups.core)?;
    let default = AudioProbe::default();
    let audio = AudioProbe {
        rate_hz: options.rate,
        frames: options.frames.or_else(|| frames_of_profiles(&profiles, options.rate)).unwrap_or(default.frames),
        periods: options.periods,
        through: options.through(),
        device,
        find: options.find_buffer.is_some(),
        cpu: Some(cpu),
    };
    // Reports an invalid model before anything is set up.
    let (_, notes) = audio.load()?;
    notes.iter().filter(|_| !common.output.quiet).for_each(|note| say!("note: {note}"));
    let phases = phases(options, &audio)?;
    Ok(Plan {
        cpus: Some([cpu].into_iter().collect()),
        shield: options.placement.shield.clone(),
        policy: options.policy,
        ..wake_ups.apply(super::plan(common, files, Probe::Audio(Box::new(audio)), phases)?)?
    })
}

/// The card that sets the deadlines; `None` for the clock, which has no sample format and no inputs.
fn device(options: &Audio) -> Result<Option<Device>, Usage> {
    let device = options.card();
    if device.is_none() && (options.sound_card.format.is_some() || options.input.is_some()) {
        return Err(Usage(NOT_WITH_CLOCK.to_owned()));
    }
    Ok(device)
}

/// The sizes that the card supports; all of them without a card.
fn supported(audio: &AudioProbe, sizes: &[u32], output_options: OutputOptions) -> anyhow::Result<Vec<u32>> {
    let (mut supported, mut skipped, mut why) = (Vec::new(), Vec::new(), None);
    for &frames in sizes {
        match audio.open(frames) {
            Ok(_) => supported.push(frames),
            Err(error) => {
                skipped.push(frames.to_string());
                why = Some(error);
            }
        }
    }
    match why {
        Some(why) if supported.is_empty() => Err(why.into()),
        Some(why) => {
            if !output_options.quiet {
                say!("note: skipped buffers of {} frames: {why}", skipped.join(", "));
            }
            Ok(supported)
        }
        None => Ok(supported),
    }
}

/// Prints the duration of a search before it begins.
fn print_search(plan: &Plan, output_options: OutputOptions) {
    let Some(total_ns) = plan.total_ns().filter(|_| plan.phases.len() > 1) else { return };
    let (steps, sizes, took) = (plan.steps(), plan.phases.len(), format_duration(total_ns));
    output::announce(
        output_options,
        "search",
        &format!("at most {steps} of {sizes} sizes are tried, which takes {took}"),
    );
}

/// A phase for each buffer size to search, or a single one.
fn phases(options: &Audio, audio: &AudioProbe) -> anyhow::Result<Vec<PhasePlan>> {
    if let Some(sizes) = &options.find_buffer {
        let sizes = supported(audio, &sizes.0, options.common.output)?;
        return Ok(sizes.into_iter().map(|frames| candidate(options, frames, audio)).collect());
    }
    audio.open(audio.frames)?;
    Ok(vec![phase(options, audio)])
}

/// The phase that tests a size.
fn candidate(options: &Audio, frames: u32, audio: &AudioProbe) -> PhasePlan {
    let audio = AudioProbe { frames, ..audio.clone() };
    PhasePlan { name: format!("{frames} frames"), ..phase(options, &audio) }
}

fn phase(options: &Audio, audio: &AudioProbe) -> PhasePlan {
    let common = &options.common;
    super::phase(common, audio.period_ns(), super::length(common), audio.threads(options.policy))
}
