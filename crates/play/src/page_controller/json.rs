//! The JSON that the page reads.

use amp::{
    Meters, Parameter, Preset, Settings,
    chain::{SignalLevel, ValueKind},
    tuner::Pitch,
};
use serde_json::{Value, json};

use crate::{Load, library::Files};

/// The files of the library, the preset that plays, and all parameters.
pub fn state(files: &Files, preset: &Preset, name: Option<&str>, settings: &Settings, version: u64) -> Value {
    let model = |index: usize| preset.models.get(index).map(|part| &part.file);
    let parameters: Vec<Value> =
        Parameter::ALL.iter().map(|&parameter| describe(parameter, settings.get(parameter))).collect();
    json!({
        "version": version,
        "models": files.models,
        "cabinets": files.cabinets,
        "presets": files.presets,
        "playing": {
            "models": [model(0), model(1)],
            "cabinet": preset.irs.first().map(|part| &part.file),
            "preset": name,
        },
        "parameters": parameters,
    })
}

/// A reading of meters, tuner and load.
pub struct Live {
    pub version: u64,
    /// Description of the device, latency and policy.
    pub stream: String,
    pub meters: Meters,
    pub pitch: Option<Pitch>,
    pub load: Load,
    /// Mean fraction of a period that processing took since the last reading.
    pub mean_share: f64,
    pub has_ended: bool,
}

impl Live {
    pub fn to_json(&self) -> Value {
        let Self { meters, load, .. } = self;
        let level = |level: SignalLevel| json!({ "peak": level.peak, "rms": level.rms });
        let note = self.pitch.map(|pitch| json!({ "name": pitch.to_string(), "cents": pitch.cents }));
        json!({
            "version": self.version,
            "stream": self.stream,
            "input": level(meters.input),
            "output": level(meters.output),
            "gate_is_open": meters.gate_is_open,
            "limiter_gain": meters.limiter_gain,
            "clips": meters.input_clips + meters.output_clips,
            "muted": meters.muted,
            "note": note,
            "load_mean": self.mean_share,
            "load_most": load.recent_max_share,
            "periods": load.periods,
            "xruns": load.xruns,
            "ended": self.has_ended.then_some("The audio thread has ended: the terminal shows the reason."),
        })
    }
}

fn describe(parameter: Parameter, value: f32) -> Value {
    let info = parameter.info();
    let mut json = json!({ "name": info.name, "about": info.about, "default": info.default, "value": value });
    match info.kind {
        ValueKind::Switch => json["kind"] = "switch".into(),
        ValueKind::Choice(words) => {
            json["kind"] = "choice".into();
            json["words"] = json!(words);
        }
        ValueKind::Knob { least, most, unit } => {
            json["kind"] = "knob".into();
            json["least"] = json!(least);
            json["most"] = json!(most);
            json["unit"] = unit.into();
        }
    }
    json
}
