//! Presets: what they play, and what they set.

use std::path::Path;

use amp::Parameter;

use super::{super::rig, Told, name_of};

pub fn told(path: &Path) -> anyhow::Result<Told> {
    let preset = rig::read_preset(path)?;
    let mut lines = vec![("preset", name_of(path))];
    let there = |file: &str| match path.with_file_name("").join(file).exists() {
        true => String::new(),
        false => ", which is not there".to_owned(),
    };
    lines.extend(preset.models.iter().map(|part| ("model", format!("{}{}", part.file, there(&part.file)))));
    let ir = |part: &amp::preset::IrPart| format!("{}, {:+} dB{}", part.file, part.gain_db, there(&part.file));
    lines.extend(preset.irs.iter().map(|part| ("cabinet", ir(part))));
    for &parameter in Parameter::ALL {
        let value = preset.settings.get(parameter);
        if value != parameter.info().default {
            lines.push(("set", format!("{parameter} = {}", parameter.written(value))));
        }
    }
    let json = serde_json::json!({
        "format": "Preset",
        "models": preset.models.iter().map(|part| &part.file).collect::<Vec<_>>(),
        "cabinets": preset.irs.iter().map(|part| &part.file).collect::<Vec<_>>(),
        "settings": preset.settings,
    });
    Ok(Told { lines, json })
}
