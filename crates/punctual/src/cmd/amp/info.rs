//! `punctual amp info`.

mod cabinet;
mod preset;

use amp::{Model, ModelFile, file::Format};

use super::cost::{Cost, budget_us};
use crate::{cli::AmpInfo, exit::Usage, output};

/// Frames of the block whose time is told.
const BLOCK: usize = 64;

/// What is told of a file: as lines, and as JSON.
struct Told {
    lines: Vec<(&'static str, String)>,
    json: serde_json::Value,
    /// Why it cannot be played.
    fault: Option<anyhow::Error>,
}

pub fn run(options: &AmpInfo) -> anyhow::Result<u8> {
    let is = |extension: &str| options.file.extension().is_some_and(|it| it.eq_ignore_ascii_case(extension));
    if options.choice.is_made() && (is("wav") || is("toml")) {
        return Err(Usage("--slim and --param are a model's: leave them out".to_owned()).into());
    }
    let told = if is("wav") {
        cabinet::told(&options.file)?
    } else if is("toml") {
        preset::told(&options.file)?
    } else {
        of_model(options)?
    };
    output::stdout(|out| match options.json {
        true => writeln!(out, "{:#}", told.json),
        false => told.lines.iter().try_for_each(|(name, value)| writeln!(out, "{name:<16} {value}")),
    })?;
    told.fault.map_or(Ok(0), Err)
}

fn of_model(options: &AmpInfo) -> anyhow::Result<Told> {
    let file = super::read(&options.file)?;
    let mut model = super::model(&file, &options.choice)?;
    let cost_us = cost_us(|input, output| model.process(input, output));
    let budget_us = budget_us(BLOCK, file.sample_rate);
    let lines = in_words(&file, &model, cost_us, budget_us);
    Ok(Told { lines, json: as_json(&file, &model, cost_us, budget_us), fault: None })
}

/// Median time of a block, us: the shortest would be what a quiet moment gives, and the longest another's work.
fn cost_us(play: impl FnMut(&[f32], &mut [f32])) -> f64 {
    Cost::of(BLOCK, play).median_us()
}

fn in_words(file: &ModelFile, model: &Model, cost_us: f64, budget_us: f64) -> Vec<(&'static str, String)> {
    let kind = match file.format {
        Format::Nam => "Neural Amp Modeler",
        Format::GuitarMl => "GuitarML",
        Format::Keras => "AIDA-X (RTNeural)",
    };
    let about = &file.about;
    let mut lines = vec![("model", format!("{kind}: {}", file.architecture))];
    let texts = [("name", &about.name), ("modeled by", &about.modeled_by), ("gear", &about.gear_model)];
    // A file may tell anything, and a terminal would obey it.
    let harmless = |text: &String| text.replace(char::is_control, " ");
    lines.extend(texts.into_iter().filter_map(|(name, text)| Some((name, harmless(text.as_ref()?)))));
    let assumed = if file.has_sample_rate { "" } else { ", as all of its kind; the file tells none" };
    lines.push(("sample rate", format!("{} Hz{assumed}", file.sample_rate)));
    let settles_ms = model.prewarm_frames() as f64 / file.sample_rate * 1000.0;
    lines.push(("settles after", format!("{} samples, {settles_ms:.1} ms", model.prewarm_frames())));
    let at = if model.knobs() > 0 { ", at 0 where --param says nothing" } else { "" };
    lines.push(("knobs", format!("{}{at}", model.knobs())));
    let level = |name, level: Option<f64>, unit: &str| Some((name, format!("{} {unit}", level?)));
    lines.extend(level("loudness", about.loudness, "dB RMS"));
    lines.extend(level("input level", about.input_level_dbu, "dBu at full scale"));
    lines.extend(level("output level", about.output_level_dbu, "dBu at full scale"));
    lines.push(("work", format!("{} multiplications a sample, with {}", model.work(), model.instructions().name())));
    lines.push(("cost here", cost_in_words(cost_us, budget_us)));
    lines
}

/// What a kind of file is called in JSON.
fn format_word(format: Format) -> &'static str {
    match format {
        Format::Nam => "Nam",
        Format::GuitarMl => "GuitarMl",
        Format::Keras => "Keras",
    }
}

fn cost_in_words(cost_us: f64, budget_us: f64) -> String {
    let (share, times) = (cost_us / budget_us * 100.0, budget_us / cost_us);
    format!("{cost_us:.1} us for {BLOCK} samples: {share:.1} % of their time, {times:.0}x real time")
}

fn as_json(file: &ModelFile, model: &Model, cost_us: f64, budget_us: f64) -> serde_json::Value {
    let about = &file.about;
    serde_json::json!({
        "format": format_word(file.format),
        "architecture": file.architecture,
        "sample_rate_hz": file.sample_rate,
        "tells_sample_rate": file.has_sample_rate,
        "name": about.name,
        "modeled_by": about.modeled_by,
        "gear_make": about.gear_make,
        "gear_model": about.gear_model,
        "loudness_db": about.loudness,
        "input_level_dbu": about.input_level_dbu,
        "output_level_dbu": about.output_level_dbu,
        "slimmable": file.is_slimmable(),
        "settles_after_samples": model.prewarm_frames(),
        "knobs": model.knobs(),
        "multiplications_a_sample": model.work(),
        "instructions": model.instructions().name(),
        "block_samples": BLOCK,
        "block_us": cost_us,
        "block_share": cost_us / budget_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_formats_stay() {
        let words = [Format::Nam, Format::GuitarMl, Format::Keras].map(format_word);
        assert_eq!(words, ["Nam", "GuitarMl", "Keras"]);
    }
}
