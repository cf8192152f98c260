//! Description of presets, and the cost of their chain.

use std::path::Path;

use ::play::{preset_spec, read_preset};
use amp::{
    Chain, Parameter, Preset,
    preset::{IrPart, ModelPart},
};
use serde_json::{Value, json};

use super::{
    super::{file_name, loader, muted, rig::load_error},
    BLOCK, Cost, Description,
};

/// Sample rate if the preset has no model, Hz.
const DEFAULT_RATE_HZ: u32 = 48_000;

/// The cost of the whole chain.
struct ChainCost {
    rate_hz: u32,
    cost: Cost,
}

pub fn describe(path: &Path) -> anyhow::Result<Description> {
    let preset = read_preset(path)?;
    let folder = path.with_file_name("");
    let (cost, error) = match ChainCost::measure(&preset, &folder) {
        Ok(cost) => (Some(cost), None),
        Err(error) => (None, Some(error)),
    };
    let mut lines = vec![("preset", file_name(path))];
    lines.extend(preset_lines(&preset, &folder));
    lines.extend(cost.iter().flat_map(ChainCost::lines));
    Ok(Description { lines, json: to_json(&preset, cost.as_ref()), error })
}

impl ChainCost {
    /// Measures at the sample rate of the first model, like offline rendering.
    fn measure(preset: &Preset, folder: &Path) -> anyhow::Result<Self> {
        let rig = preset_spec(preset.clone(), folder).and_then(|spec| loader().load(spec, &[])).map_err(load_error)?;
        let rate_hz = rig.rate_hz().unwrap_or(DEFAULT_RATE_HZ);
        let parts = loader().parts(&rig, rate_hz).map_err(load_error)?;
        let (mut chain, controls) = Chain::new(rate_hz, &rig.settings, parts);
        let mut right = [0.0; BLOCK];
        let cost = Cost::measure(f64::from(rate_hz), |input, left| chain.process(input, left, &mut right));
        if let Some(slot) = controls.meters().muted.iter().position(|&is_muted| is_muted) {
            let model = rig.model(slot).map_or(Path::new("a model"), |(path, _)| path);
            return Err(muted(model));
        }
        Ok(Self { rate_hz, cost })
    }

    fn lines(&self) -> [(&'static str, String); 2] {
        let cost = self.cost.describe();
        [("sample rate", format!("{} Hz", self.rate_hz)), ("cost here", format!("{cost}, the whole chain"))]
    }
}

fn preset_lines(preset: &Preset, folder: &Path) -> Vec<(&'static str, String)> {
    let missing = |file: &str| if folder.join(file).exists() { "" } else { ", which does not exist" };
    let models = preset.models.iter().map(|part| ("model", format!("{}{}", model(part), missing(&part.file))));
    let irs = preset.irs.iter().map(|part| ("cabinet", format!("{}{}", cabinet(part), missing(&part.file))));
    let reverb = preset.reverb_ir.iter().map(|part| ("reverb", format!("{}{}", cabinet(part), missing(&part.file))));
    let is_set = |parameter: &&Parameter| preset.settings.get(**parameter) != parameter.info().default;
    let set = Parameter::ALL.iter().filter(is_set);
    let set = set.map(|&it| ("set", format!("{it} = {}", it.to_toml(preset.settings.get(it)))));
    let midi = preset.midi.iter().map(|(number, it)| ("midi", format!("controller {number} sets {it}")));
    models.chain(irs).chain(reverb).chain(set).chain(midi).collect()
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

fn to_json(preset: &Preset, cost: Option<&ChainCost>) -> Value {
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
    let setting = |it: &Parameter| (it.to_string(), parse_written(&it.to_toml(preset.settings.get(*it))));
    let midi = preset.midi.iter().map(|(number, it)| (number.to_string(), Value::from(it.info().name)));
    json!({
        "format": "Preset",
        "models": preset.models.iter().map(model).collect::<Vec<_>>(),
        "cabinets": preset.irs.iter().map(ir).collect::<Vec<_>>(),
        "reverb_ir": preset.reverb_ir.as_ref().map(ir),
        "settings": Parameter::ALL.iter().map(setting).collect::<serde_json::Map<_, _>>(),
        "midi": midi.collect::<serde_json::Map<_, _>>(),
        "sample_rate_hz": cost.map(|cost| cost.rate_hz),
        "block_samples": BLOCK,
        "block_us": cost.map(|cost| cost.cost.us),
        "block_share": cost.map(|cost| cost.cost.share),
    })
}

/// The JSON value of a number, word or switch as it is written in a preset.
fn parse_written(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// The number with the digits of the preset: a conversion to `f64` would show the rounding of `f32`.
fn number(value: f32) -> Value {
    parse_written(&format!("{value:?}"))
}
