//! The JSON that the page reads.

use amp::{
    Ir, Meters, ModelFile, Parameter,
    chain::{SignalLevel, ValueKind},
    tuner::Pitch,
};
use record::visible::one_line;
use serde_json::{Map, Value, json};

use super::{Midi, Playing, history::Step, midi_map::Action};
use crate::{Load, library::OtherFile};

/// Maximum length of a text of a model file, characters.
const MAX_TEXT: usize = 120;

/// The files of the library, the preset that plays, and all parameters.
pub fn state(playing: &Playing, midi: &Value) -> Value {
    let (files, state) = (&playing.files, playing.state());
    let preset = &state.now.preset;
    let model = |index: usize| preset.models.get(index).map(|part| &part.file);
    let details = |slot: usize| state.rig.model(slot).map(|(_, file)| describe_model(playing, slot, file));
    let parameters: Vec<Value> =
        Parameter::ALL.iter().map(|&parameter| describe(parameter, preset.settings.get(parameter))).collect();
    let other = |OtherFile { file, reason }: &OtherFile| json!({ "file": file, "reason": reason });
    let name = |index: usize| &playing.states[index].now.name;
    let of_preset: Vec<Value> =
        preset.midi.iter().map(|(controller, parameter)| json!([controller, parameter.to_string()])).collect();
    let actions: Map<String, Value> =
        Action::ALL.into_iter().map(|(_, name, description)| (name.to_owned(), description.into())).collect();
    json!({
        "version": playing.version,
        "models": files.models,
        "cabinets": files.cabinets,
        "presets": files.presets,
        "others": files.others.iter().map(other).collect::<Vec<_>>(),
        "others_count": files.others_count,
        "playing": {
            "models": [model(0), model(1)],
            "cabinet": preset.irs.first().map(|part| &part.file),
            "preset": state.now.name,
            "model_details": [details(0), details(1)],
            "cabinet_details": state.rig.irs().map(|(_, ir)| describe_ir(playing, ir)).collect::<Vec<_>>(),
        },
        "side": (if playing.active == 0 { "a" } else { "b" }),
        "sides": { "a": name(0), "b": name(1) },
        "bypass": playing.is_bypassed,
        "can_undo": state.history.has(Step::Undo),
        "can_redo": state.history.has(Step::Redo),
        "midi": midi,
        "actions": actions,
        "preset_midi": of_preset,
        "parameters": parameters,
    })
}

/// The MIDI controllers.
pub fn midi(midi: &Midi) -> Value {
    let learned: Vec<Value> =
        midi.map.iter().map(|(controller, target)| json!([controller, target.to_string()])).collect();
    json!({
        "is_open": midi.is_open,
        "learning": midi.learning.as_ref().map(|learning| learning.target.to_string()),
        "learned": learned,
    })
}

/// Description of a model that plays. The texts come from the file.
fn describe_model(playing: &Playing, slot: usize, file: &ModelFile) -> Value {
    let about = &file.about;
    let text = |text: &Option<String>| text.as_deref().map(short).filter(|text| !text.is_empty());
    let gear: Vec<String> = [text(&about.gear_make), text(&about.gear_model)].into_iter().flatten().collect();
    let (rate_hz, delay) = (f64::from(playing.controls.rate_hz()), playing.controls.model_delay(slot));
    json!({
        "name": text(&about.name),
        "author": text(&about.modeled_by),
        "gear": if gear.is_empty() { None } else { Some(gear.join(" ")) },
        "loudness_db": about.loudness,
        "input_dbu": about.input_level_dbu,
        "output_dbu": about.output_level_dbu,
        "architecture": short(&file.architecture),
        "rate_hz": file.sample_rate,
        "chain_rate_hz": rate_hz,
        "resampling_delay_ms": if delay > 0 { Some(delay as f64 / rate_hz * 1e3) } else { None },
        "warnings": file.warnings.iter().map(|warning| short(warning)).collect::<Vec<_>>(),
    })
}

fn describe_ir(playing: &Playing, ir: &Ir) -> Value {
    json!({
        "rate_hz": ir.rate_hz(),
        "chain_rate_hz": playing.controls.rate_hz(),
        "channels": ir.channels().len(),
        "length_ms": ir.frames() as f64 / f64::from(ir.rate_hz()) * 1e3,
    })
}

/// A text from a file in one line of limited length.
fn short(text: &str) -> String {
    one_line(text).trim().chars().take(MAX_TEXT).collect()
}

/// A reading of meters, tuner and load.
pub struct Live<'a> {
    pub version: u64,
    /// Description of the device, latency and policy.
    pub stream: String,
    pub meters: Meters,
    pub pitch: Option<Pitch>,
    pub load: Load,
    /// Mean fraction of a period that processing took since the last reading.
    pub mean_share: f64,
    /// Clipped samples and xruns since the last reset.
    pub clips: u64,
    pub xruns: u64,
    /// The last message, with its number.
    pub notice: &'a (u64, String),
    pub has_ended: bool,
}

impl Live<'_> {
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
            "clips": self.clips,
            "muted": meters.muted,
            "note": note,
            "load_mean": self.mean_share,
            "load_most": load.recent_max_share,
            "periods": load.periods,
            "xruns": self.xruns,
            "notice": { "number": self.notice.0, "text": self.notice.1 },
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
