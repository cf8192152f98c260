//! The rig that the options ask for: a preset, and what replaces parts of it.

use std::path::{Path, PathBuf};

use ::play::{RigLoadError, preset_spec, read_preset};
use amp::{
    Parameter, Rig, Settings,
    preset::{IrPart, ModelPart},
    rig::RigSpec,
};

use super::{loader, to_usage};
use crate::{cli, exit::Usage};

/// Loads the rig that the options ask for.
pub fn load(options: &cli::Rig) -> anyhow::Result<Rig> {
    loader().load(chosen(options)?, &[]).map_err(load_error)
}

/// A usage error if the options ask for something that the files do not offer.
pub fn load_error(error: RigLoadError) -> anyhow::Error {
    let is_choice = error.is_choice();
    to_usage(error, is_choice)
}

/// The preset, if one is given, with the parts and settings that the other options replace.
fn chosen(options: &cli::Rig) -> anyhow::Result<RigSpec> {
    let mut chosen = match &options.preset {
        Some(path) => preset_spec(read_preset(path)?, path.parent().unwrap_or(Path::new(""))).map_err(load_error)?,
        None => RigSpec::default(),
    };
    choose_models(&mut chosen.models, options)?;
    if let Some(cab) = &options.cab {
        let part = |path: &PathBuf| (path.clone(), IrPart::new(path.display().to_string()));
        chosen.irs = [Some(cab), options.cab2.as_ref()].into_iter().flatten().map(part).collect();
    }
    if let Some(path) = &options.reverb_ir {
        chosen.reverb_ir = Some((path.clone(), IrPart::reverb(path.display().to_string())));
    }
    check_combination(&chosen, options)?;
    for (_, part) in &mut chosen.irs {
        part.normalised |= options.cab_normalised;
        part.without_delay |= options.cab_without_delay;
    }
    chosen.settings = settings(chosen.settings, options)?;
    Ok(chosen)
}

fn choose_models(models: &mut Vec<(PathBuf, ModelPart)>, options: &cli::Rig) -> Result<(), Usage> {
    for (index, path) in [&options.model, &options.model2].into_iter().enumerate() {
        let Some(path) = path else { continue };
        let part = (path.clone(), ModelPart::new(path.display().to_string()));
        if index < models.len() {
            models[index] = part;
        } else if index == models.len() {
            models.push(part);
        } else {
            return Err(Usage("--model2 is the second model: add --model for the first".to_owned()));
        }
    }
    match models.first_mut() {
        Some((_, first)) => choose(first, &options.choice),
        None if options.choice.is_given() => {
            return Err(Usage("--slim and --param apply to a model: add --model".to_owned()));
        }
        None => {}
    }
    Ok(())
}

/// Sets size and knobs of a model to the given ones.
fn choose(part: &mut ModelPart, choice: &cli::ModelChoice) {
    if let Some(slim) = choice.slim {
        part.slim = slim;
    }
    if !choice.param.is_empty() {
        part.knobs = choice.knobs();
    }
}

fn check_combination(chosen: &RigSpec, options: &cli::Rig) -> Result<(), Usage> {
    let has_parts = !chosen.models.is_empty() || !chosen.irs.is_empty() || chosen.reverb_ir.is_some();
    let text = if !has_parts && options.preset.is_none() {
        "there is nothing to play: add --model, --cab or --preset"
    } else if options.parallel && chosen.models.len() < 2 {
        "--parallel needs two models: add --model2"
    } else if (options.cab_normalised || options.cab_without_delay) && chosen.irs.is_empty() {
        "--cab-normalised and --cab-without-delay apply to a cabinet: add --cab"
    } else {
        return Ok(());
    };
    Err(Usage(text.to_owned()))
}

fn settings(of_preset: Settings, options: &cli::Rig) -> anyhow::Result<Settings> {
    let mut settings = if options.neutral { neutral(&of_preset)? } else { of_preset };
    if options.reverb_ir.is_some() {
        settings.set(Parameter::ReverbIrOn, 1.0)?;
    }
    if options.series || options.parallel {
        settings.set(Parameter::Routing, f32::from(options.parallel))?;
    }
    for set in &options.set {
        let (parameter, value) = parse_set(set)?;
        let is_routed = parameter == Parameter::Routing && (options.series || options.parallel);
        if is_routed && value != settings.get(parameter) {
            let option = if options.parallel { "--parallel" } else { "--series" };
            return Err(Usage(format!("{option} and --set {set} contradict each other: leave one out")).into());
        }
        settings.set(parameter, value)?;
    }
    Ok(settings)
}

/// Everything but models and cabinet switched off. The routing and the mix of the models are kept.
fn neutral(of_preset: &Settings) -> anyhow::Result<Settings> {
    let mut settings = Settings::neutral();
    for parameter in [Parameter::Routing, Parameter::Mix] {
        settings.set(parameter, of_preset.get(parameter))?;
    }
    Ok(settings)
}

/// Parses NAME=VALUE.
fn parse_set(set: &str) -> Result<(Parameter, f32), Usage> {
    let parts = set.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    let Some((name, value)) = parts.filter(|(name, value)| !name.is_empty() && !value.is_empty()) else {
        return Err(Usage(format!("--set must be NAME=VALUE, for example gate.on=on (got {set:?})")));
    };
    let parameter = Parameter::named(name).map_err(|error| Usage(error.to_string()))?;
    let value = parameter.parse(value).map_err(|error| Usage(error.to_string()))?;
    Ok((parameter, value))
}

#[cfg(test)]
mod tests {
    use amp::Preset;
    use clap::Parser;

    use super::*;

    fn options(arguments: &[&str]) -> cli::Rig {
        let words = ["punctual", "amp", "render", "in.wav", "out.wav"].into_iter().chain(arguments.iter().copied());
        match cli::Cli::parse_from(words).command {
            Some(cli::Command::Amp(cli::Amp::Render(options))) => options.rig,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn slim_replaces_the_size_of_a_preset() {
        let part = ModelPart { slim: 0.25, ..ModelPart::new("a.nam".to_owned()) };
        let slim = |arguments: &[&str]| {
            let mut part = part.clone();
            choose(&mut part, &options(arguments).choice);
            part.slim
        };
        assert_eq!([slim(&["--slim", "1"]), slim(&["--slim", "0.5"]), slim(&[])], [1.0, 0.5, 0.25]);
    }

    #[test]
    fn neutral_keeps_routing_and_mix() {
        let preset = Preset::parse("[amp]\nrouting = 'parallel'\nmix = 0.25\n[gate]\non = true\n").unwrap();
        let of = |arguments: &[&str]| settings(preset.settings.clone(), &options(arguments)).unwrap();
        let get = |settings: &Settings| {
            [Parameter::Routing, Parameter::Mix, Parameter::GateOn, Parameter::LimiterOn].map(|it| settings.get(it))
        };
        assert_eq!(get(&of(&["--neutral"])), [1.0, 0.25, 0.0, 0.0]);
        assert_eq!(get(&of(&["--neutral", "--series", "--set", "amp.mix=0.75"])), [0.0, 0.75, 0.0, 0.0]);
        assert_eq!(get(&of(&[])), [1.0, 0.25, 1.0, 1.0]);
    }
}
