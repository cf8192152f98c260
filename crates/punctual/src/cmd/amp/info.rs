//! `punctual amp info`.

use std::time::{Duration, Instant};

use amp::{Level, Model, ModelFile, file::Format};

use crate::{cli::AmpInfo, output};

/// Frames of the block whose time is told.
const BLOCK: usize = 64;
/// How long is measured.
const MEASURED: Duration = Duration::from_millis(300);

pub fn run(options: &AmpInfo) -> anyhow::Result<u8> {
    let file = super::read(&options.file)?;
    let mut model = super::model(&file, &options.choice)?;
    let cost = cost(&mut model);
    let budget_us = BLOCK as f64 / file.sample_rate * 1e6;
    output::stdout(|out| match options.json {
        true => writeln!(out, "{:#}", as_json(&file, &model, cost, budget_us)),
        false => {
            for (name, value) in in_words(&file, &model, cost, budget_us) {
                writeln!(out, "{name:<16} {value}")?;
            }
            Ok(())
        }
    })?;
    Ok(0)
}

/// Median time of a block, us: the shortest would be what a quiet moment gives, and the longest another's work.
fn cost(model: &mut Model) -> f64 {
    let input: [f32; BLOCK] = std::array::from_fn(|frame| (frame as f32 * 0.3).sin() * 0.2);
    let mut output = [0.0; BLOCK];
    let mut times = Vec::new();
    let began = Instant::now();
    while began.elapsed() < MEASURED {
        let before = Instant::now();
        model.process(&input, &mut output);
        times.push(before.elapsed().as_nanos());
    }
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1000.0
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
    lines.extend(texts.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
    let assumed = if file.tells_sample_rate { "" } else { ", as all of its kind; the file tells none" };
    lines.push(("sample rate", format!("{} Hz{assumed}", file.sample_rate)));
    let settles_ms = model.settles_after() as f64 / file.sample_rate * 1000.0;
    lines.push(("settles after", format!("{} samples, {settles_ms:.1} ms", model.settles_after())));
    lines.push(("knobs", model.knobs().to_string()));
    let level = |name, level: Option<f64>, unit: &str| Some((name, format!("{} {unit}", level?)));
    lines.extend(level("loudness", about.loudness, "dB RMS"));
    lines.extend(level("input level", about.input_level_dbu, "dBu at full scale"));
    lines.extend(level("output level", about.output_level_dbu, "dBu at full scale"));
    lines.push(("work", format!("{} multiplications a sample, with {}", model.work(), Level::best().name())));
    let (share, times) = (cost_us / budget_us * 100.0, budget_us / cost_us);
    lines.push((
        "cost here",
        format!("{cost_us:.1} us for {BLOCK} samples: {share:.1} % of their time, {times:.0}x real time"),
    ));
    lines
}

fn as_json(file: &ModelFile, model: &Model, cost_us: f64, budget_us: f64) -> serde_json::Value {
    let about = &file.about;
    serde_json::json!({
        "format": format!("{:?}", file.format),
        "architecture": file.architecture,
        "sample_rate_hz": file.sample_rate,
        "tells_sample_rate": file.tells_sample_rate,
        "name": about.name,
        "modeled_by": about.modeled_by,
        "gear_make": about.gear_make,
        "gear_model": about.gear_model,
        "loudness_db": about.loudness,
        "input_level_dbu": about.input_level_dbu,
        "output_level_dbu": about.output_level_dbu,
        "slimmable": file.is_slimmable(),
        "settles_after_samples": model.settles_after(),
        "knobs": model.knobs(),
        "multiplications_a_sample": model.work(),
        "instructions": Level::best().name(),
        "block_samples": BLOCK,
        "block_us": cost_us,
        "block_share": cost_us / budget_us,
    })
}
