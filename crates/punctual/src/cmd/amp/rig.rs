//! What is played, as options and presets ask for it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use amp::{
    Parameter, Parts, Preset, Rig, Settings,
    preset::{IrPart, ModelPart},
    rig::{Chosen, RigError},
};

use crate::{cli, exit::Usage};

/// Reads the preset, if there is one, puts what else was asked for in its place, and reads all files.
pub fn read(options: &cli::Rig) -> anyhow::Result<Rig> {
    let mut chosen = match &options.preset {
        Some(path) => read_preset(path)?.chosen(path.parent().unwrap_or(Path::new(""))),
        None => Chosen::default(),
    };
    let models = &mut chosen.models;
    for (place, path) in [&options.model, &options.model2].into_iter().enumerate() {
        let Some(path) = path else { continue };
        let part = (path.clone(), ModelPart::new(path.display().to_string()));
        match place {
            place if place < models.len() => models[place] = part,
            _ => models.push(part),
        }
    }
    if let Some((_, first)) = models.first_mut() {
        choose(first, &options.choice);
    } else if options.choice.slim < 1.0 || !options.choice.param.is_empty() {
        return Err(Usage("--slim and --param are a model's: add --model".to_owned()).into());
    }
    if let Some(cab) = &options.cab {
        let asked = [Some(cab), options.cab2.as_ref()].into_iter().flatten();
        let part = |path: &PathBuf| (path.clone(), IrPart::new(path.display().to_string()));
        chosen.irs = asked.map(part).collect();
    }
    if chosen.models.is_empty() && chosen.irs.is_empty() && options.preset.is_none() {
        return Err(Usage("nothing is to be played: add --model, --cab or --preset".to_owned()).into());
    }
    for (_, part) in &mut chosen.irs {
        part.normalised |= options.cab_normalised;
        part.without_delay |= options.cab_without_delay;
    }
    chosen.settings = settings(chosen.settings, options)?;
    load(chosen)
}

/// A preset with all its files, which start at this folder.
pub fn of(preset: &Preset, folder: &Path) -> anyhow::Result<Rig> {
    load(preset.clone().chosen(folder))
}

fn load(chosen: Chosen) -> anyhow::Result<Rig> {
    let rig = Rig::load(chosen, |path| fs::read(path))?;
    rig.warnings().for_each(|warning| eprintln!("note: {warning}"));
    Ok(rig)
}

/// All of it, for a chain of this rate. Says on standard error what is not played as it was made.
pub fn parts(rig: &Rig, rate_hz: u32) -> anyhow::Result<Parts> {
    let told = |error: RigError| match error.is_choice() {
        true => Usage(error.to_string()).into(),
        false => anyhow::Error::from(error),
    };
    let (parts, notes) = rig.parts(rate_hz).map_err(told)?;
    notes.iter().for_each(|note| eprintln!("note: {note}"));
    Ok(parts)
}

fn choose(part: &mut ModelPart, choice: &cli::ModelChoice) {
    if choice.slim < 1.0 {
        part.slim = choice.slim;
    }
    if !choice.param.is_empty() {
        part.knobs = choice.param.iter().map(|&value| value as f32).collect();
    }
}

fn settings(of_preset: Settings, options: &cli::Rig) -> anyhow::Result<Settings> {
    let mut settings = if options.neutral { Settings::neutral() } else { of_preset };
    if options.series || options.parallel {
        settings.set(Parameter::Routing, f32::from(options.parallel))?;
    }
    for set in &options.set {
        let Some((name, value)) = set.split_once('=') else {
            return Err(Usage(format!("--set takes NAME=VALUE, as gate.on=on, and not {set:?}")).into());
        };
        let parameter = Parameter::named(name.trim()).map_err(|error| Usage(error.to_string()))?;
        let value = parameter.parse(value.trim()).map_err(|error| Usage(error.to_string()))?;
        settings.set(parameter, value)?;
    }
    Ok(settings)
}

/// A preset's file.
pub fn read_preset(path: &Path) -> anyhow::Result<Preset> {
    Ok(Preset::read(path, |path| fs::read(path))?)
}
