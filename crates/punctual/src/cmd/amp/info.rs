//! `punctual amp info`.

mod cabinet;
mod preset;

use ::play::block_cost::{BlockCost, block_us};
use amp::{Model, ModelFile, file::Format};
use record::grouped;
use record::visible::one_line;

use crate::{cli::AmpInfo, exit::Usage, output};

/// Frames of the block whose cost is measured.
const BLOCK: usize = 64;

/// The description of a file.
struct Description {
    /// Label and text.
    lines: Vec<(&'static str, String)>,
    json: serde_json::Value,
    /// Why the file cannot be played.
    error: Option<anyhow::Error>,
}

pub fn run(options: &AmpInfo) -> anyhow::Result<u8> {
    let is = |extension: &str| options.file.extension().is_some_and(|it| it.eq_ignore_ascii_case(extension));
    let is_cabinet = amp::recording::EXTENSIONS.iter().any(|extension| is(extension));
    if options.choice.is_given() && (is_cabinet || is("toml")) {
        return Err(Usage("--slim and --param apply to a model: leave them out".to_owned()).into());
    }
    let description = if is_cabinet {
        cabinet::describe(&options.file)?
    } else if is("toml") {
        preset::describe(&options.file)?
    } else {
        describe_model(options)?
    };
    output::stdout(|out| match options.json {
        true => writeln!(out, "{}", output::json(&description.json)),
        false => description.lines.iter().try_for_each(|(label, text)| writeln!(out, "{label:<16} {text}")),
    })?;
    description.error.map_or(Ok(0), Err)
}

fn describe_model(options: &AmpInfo) -> anyhow::Result<Description> {
    let file = super::read_model(&options.file)?;
    let mut model = super::model(&file, &options.choice)?;
    let cost = Cost::measure(file.sample_rate, |input, output| model.process(input, output));
    super::refuse_muted(&options.file, &model)?;
    let lines = lines(&file, &model, &cost);
    Ok(Description { lines, json: to_json(&file, &model, &cost), error: None })
}

/// The cost of a block.
struct Cost {
    /// Median, us: the best time occurs only on a quiet machine, and the longest may be caused by other programs.
    us: f64,
    /// Fraction of the duration of the block.
    share: f64,
}

impl Cost {
    fn measure(rate_hz: f64, play: impl FnMut(&[f32], &mut [f32])) -> Self {
        let us = BlockCost::measure(BLOCK, play).median_us();
        Self { us, share: us / block_us(BLOCK, rate_hz) }
    }

    fn describe(&self) -> String {
        let Self { us, share } = self;
        format!(
            "{us:.1} us for {BLOCK} samples: {:.1} % of their duration, {:.0}x real time",
            share * 100.0,
            1.0 / share
        )
    }
}

fn lines(file: &ModelFile, model: &Model, cost: &Cost) -> Vec<(&'static str, String)> {
    let kind = match file.format {
        Format::Nam => "Neural Amp Modeler",
        Format::GuitarMl => "GuitarML",
        Format::Keras => "AIDA-X (RTNeural)",
    };
    let about = &file.about;
    let mut lines = vec![("model", format!("{kind}: {}", file.architecture))];
    let texts = [("name", &about.name), ("modeled by", &about.modeled_by), ("gear", &about.gear_model)];
    lines.extend(texts.into_iter().filter_map(|(label, text)| Some((label, one_line(text.as_ref()?)))));
    let assumed =
        if file.has_sample_rate { "" } else { ", the usual rate of this format; the file does not contain one" };
    lines.push(("sample rate", format!("{} Hz{assumed}", file.sample_rate)));
    let settles_ms = model.prewarm_frames() as f64 / file.sample_rate * 1000.0;
    lines.push(("settles after", format!("{} samples, {settles_ms:.1} ms", grouped(model.prewarm_frames() as u64))));
    let unset = if model.knobs() > 0 { ", 0 unless set with --param" } else { "" };
    lines.push(("knobs", format!("{}{unset}", model.knobs())));
    let level = |label, level: Option<f64>, unit: &str| Some((label, format!("{} {unit}", level?)));
    lines.extend(level("loudness", about.loudness, "dB RMS"));
    lines.extend(level("input level", about.input_level_dbu, "dBu at full scale"));
    lines.extend(level("output level", about.output_level_dbu, "dBu at full scale"));
    let work = grouped(model.work().multiplications);
    lines.push(("work", format!("{work} multiplications a sample, with {}", model.instructions().name())));
    lines.push(("cost here", cost.describe()));
    lines
}

/// The name of a format in JSON.
fn format_name(format: Format) -> &'static str {
    match format {
        Format::Nam => "Nam",
        Format::GuitarMl => "GuitarMl",
        Format::Keras => "Keras",
    }
}

fn to_json(file: &ModelFile, model: &Model, cost: &Cost) -> serde_json::Value {
    let about = &file.about;
    serde_json::json!({
        "format": format_name(file.format),
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
        "multiplications_a_sample": model.work().multiplications,
        "instructions": model.instructions().name(),
        "block_samples": BLOCK,
        "block_us": cost.us,
        "block_share": cost.share,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_names_do_not_change() {
        let names = [Format::Nam, Format::GuitarMl, Format::Keras].map(format_name);
        assert_eq!(names, ["Nam", "GuitarMl", "Keras"]);
    }
}
