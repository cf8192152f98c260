//! Presets: what they play, what they set, and what all of it costs.

use std::path::Path;

use amp::{
    Chain, Parameter, Preset,
    preset::{IrPart, ModelPart},
};
use serde_json::{Value, json};

use super::{
    super::{cost::budget_us, name_of, rig},
    BLOCK, Told, cost_in_words, cost_us,
};

/// Sample rate where no model has one, Hz.
const RATE_HZ: u32 = 48_000;

/// What the whole chain costs.
struct Cost {
    rate_hz: u32,
    us: f64,
    budget_us: f64,
}

pub fn told(path: &Path) -> anyhow::Result<Told> {
    let preset = rig::read_preset(path)?;
    let folder = path.with_file_name("");
    let (cost, fault) = match cost(&preset, &folder) {
        Ok(cost) => (Some(cost), None),
        Err(fault) => (None, Some(fault)),
    };
    let mut lines = vec![("preset", name_of(path))];
    lines.extend(in_words(&preset, &folder));
    lines.extend(cost.iter().flat_map(Cost::in_words));
    Ok(Told { lines, json: as_json(&preset, cost.as_ref()), fault })
}

/// Plays it, at the first model's rate as everything else does.
fn cost(preset: &Preset, folder: &Path) -> anyhow::Result<Cost> {
    let rig = rig::of(preset, folder, &[])?;
    let rate_hz = rig.rate_hz().unwrap_or(RATE_HZ);
    let (mut chain, _controls) = Chain::new(rate_hz, &rig.settings, rig::parts(&rig, rate_hz)?);
    let mut right = [0.0; BLOCK];
    let us = cost_us(|input, left| chain.process(input, left, &mut right));
    Ok(Cost { rate_hz, us, budget_us: budget_us(BLOCK, f64::from(rate_hz)) })
}

impl Cost {
    fn in_words(&self) -> [(&'static str, String); 2] {
        let cost = cost_in_words(self.us, self.budget_us);
        [("sample rate", format!("{} Hz", self.rate_hz)), ("cost here", format!("{cost}, the whole chain"))]
    }
}

fn in_words(preset: &Preset, folder: &Path) -> Vec<(&'static str, String)> {
    let there = |file: &str| if folder.join(file).exists() { "" } else { ", which is not there" };
    let models = preset.models.iter().map(|part| ("model", format!("{}{}", model(part), there(&part.file))));
    let irs = preset.irs.iter().map(|part| ("cabinet", format!("{}{}", cabinet(part), there(&part.file))));
    let is_set = |parameter: &&Parameter| preset.settings.get(**parameter) != parameter.info().default;
    let set = Parameter::ALL.iter().filter(is_set);
    let set = set.map(|&it| ("set", format!("{it} = {}", it.to_toml(preset.settings.get(it)))));
    let midi = preset.midi.iter().map(|(number, it)| ("midi", format!("controller {number} turns {it}")));
    models.chain(irs).chain(set).chain(midi).collect()
}

fn model(part: &ModelPart) -> String {
    let ModelPart { file, slim, knobs } = part;
    let slim = if *slim < 1.0 { format!(", slim {slim}") } else { String::new() };
    let knobs = if knobs.is_empty() { String::new() } else { format!(", knobs {knobs:?}") };
    format!("{file}{slim}{knobs}")
}

fn cabinet(part: &IrPart) -> String {
    let IrPart { file, gain_db, normalised, without_delay } = part;
    let normalised = if *normalised { ", normalised" } else { "" };
    let without_delay = if *without_delay { ", without delay" } else { "" };
    format!("{file}, {gain_db:+} dB{normalised}{without_delay}")
}

fn as_json(preset: &Preset, cost: Option<&Cost>) -> Value {
    let model = |part: &ModelPart| {
        let knobs: Vec<Value> = part.knobs.iter().map(|&knob| number(knob)).collect();
        json!({ "file": part.file, "slim": part.slim, "knobs": knobs })
    };
    let ir = |part: &IrPart| {
        let IrPart { file, gain_db, normalised, without_delay } = part;
        json!({
            "file": file, "gain_db": number(*gain_db), "normalised": normalised, "without_delay": without_delay,
        })
    };
    let setting = |it: &Parameter| (it.to_string(), as_written(&it.to_toml(preset.settings.get(*it))));
    let midi = preset.midi.iter().map(|(number, it)| (number.to_string(), Value::from(it.info().name)));
    json!({
        "format": "Preset",
        "models": preset.models.iter().map(model).collect::<Vec<_>>(),
        "cabinets": preset.irs.iter().map(ir).collect::<Vec<_>>(),
        "settings": Parameter::ALL.iter().map(setting).collect::<serde_json::Map<_, _>>(),
        "midi": midi.collect::<serde_json::Map<_, _>>(),
        "sample_rate_hz": cost.map(|cost| cost.rate_hz),
        "block_samples": BLOCK,
        "block_us": cost.map(|cost| cost.us),
        "block_share": cost.map(|cost| cost.us / cost.budget_us),
    })
}

/// The value that stands so in a preset: it is written alike in JSON.
fn as_written(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// The number as the preset has it, rather than its nearest of 32 bits.
fn number(value: f32) -> Value {
    as_written(&format!("{value:?}"))
}
