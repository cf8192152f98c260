//! What is played, as options and presets ask for it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use amp::{
    Parameter, Parts, Preset, Rig, Settings,
    chain::Exchange,
    preset::{IrPart, ModelPart},
    rig::{FileProblem, RigError, RigSpec},
};

use crate::{cli, exit::Usage};

/// Reads the preset, if there is one, puts what else was asked for in its place, and reads all files.
pub fn read(options: &cli::Rig) -> anyhow::Result<Rig> {
    let mut chosen = match &options.preset {
        Some(path) => read_preset(path)?.into_spec(path.parent().unwrap_or(Path::new(""))),
        None => RigSpec::default(),
    };
    let models = &mut chosen.models;
    for (place, path) in [&options.model, &options.model2].into_iter().enumerate() {
        let Some(path) = path else { continue };
        let part = (path.clone(), ModelPart::new(path.display().to_string()));
        match place {
            place if place < models.len() => models[place] = part,
            place if place > models.len() => {
                return Err(Usage("--model2 is a second model: add --model for the first".to_owned()).into());
            }
            _ => models.push(part),
        }
    }
    if let Some((_, first)) = models.first_mut() {
        choose(first, &options.choice);
    } else if options.choice.is_made() {
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
    if options.parallel && chosen.models.len() < 2 {
        return Err(Usage("--parallel is for two models: add --model2".to_owned()).into());
    }
    if (options.cab_normalised || options.cab_without_delay) && chosen.irs.is_empty() {
        return Err(Usage("--cab-normalised and --cab-without-delay are a cabinet's: add --cab".to_owned()).into());
    }
    for (_, part) in &mut chosen.irs {
        part.normalised |= options.cab_normalised;
        part.without_delay |= options.cab_without_delay;
    }
    chosen.settings = settings(chosen.settings, options)?;
    load(chosen, &[])
}

/// A preset with all its files, which start at this folder; what others have read already, and has not changed since, is
/// shared with them.
pub fn of(preset: &Preset, folder: &Path, others: &[&Rig]) -> anyhow::Result<Rig> {
    load(preset.clone().into_spec(folder), others)
}

fn load(spec: RigSpec, others: &[&Rig]) -> anyhow::Result<Rig> {
    let version = |path: &Path| {
        let known = fs::metadata(path).ok()?;
        Some((known.modified().ok()?, known.len()))
    };
    let rig = Rig::load_sharing(spec, others, sys::file::read, version).map_err(model_as_cabinet)?;
    say(rig.warnings());
    Ok(rig)
}

/// Says so where a model was chosen as cabinet: that it is no WAV would be no help.
fn model_as_cabinet(error: RigError) -> anyhow::Error {
    match error {
        RigError::Unplayable { ref path, problem: FileProblem::Ir(_) } if is_json(path) => Usage(format!(
            "{0} is a model, and a cabinet is a WAV file: use --model {0}, or [[model]] in a preset",
            path.display()
        ))
        .into(),
        error => error.into(),
    }
}

/// Whether a file that can be read begins as all models do.
fn is_json(path: &Path) -> bool {
    let is_open = |bytes: Vec<u8>| {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        bytes.trim_ascii_start().starts_with(b"{")
    };
    sys::file::read(path).is_ok_and(is_open)
}

/// All of it, for a chain of this rate. Says on standard error what is not played as it was made.
pub fn parts(rig: &Rig, rate_hz: u32) -> anyhow::Result<Parts> {
    let (parts, notes) = rig.parts(rate_hz).map_err(told)?;
    say(notes.into_iter());
    Ok(parts)
}

/// What is to be exchanged where one rig is to play instead of another, made and locked: what both have in common goes on.
pub fn diff_from(rig: &Rig, playing: &Rig, rate_hz: u32) -> anyhow::Result<Exchange> {
    let (exchange, notes) = rig.diff_from(playing, rate_hz).map_err(told)?;
    say(notes.into_iter());
    if !exchange.is_empty() {
        // What came in is not locked yet; where that is refused, it was said at the beginning.
        let _ = sys::memory::lock_current_memory();
    }
    Ok(exchange)
}

fn told(error: RigError) -> anyhow::Error {
    match error.is_invalid_option() {
        true => Usage(error.to_string()).into(),
        false => error.into(),
    }
}

fn say(notes: impl Iterator<Item = String>) {
    notes.for_each(|note| say!("note: {note}"));
}

fn choose(part: &mut ModelPart, choice: &cli::ModelChoice) {
    if let Some(slim) = choice.slim {
        part.slim = slim;
    }
    if !choice.param.is_empty() {
        part.knobs = choice.param.iter().map(|&value| value as f32).collect();
    }
}

/// Nothing but models and cabinet, the models side by side or behind one another as they were.
fn neutral(of_preset: &Settings) -> anyhow::Result<Settings> {
    let mut settings = Settings::neutral();
    for parameter in [Parameter::Routing, Parameter::Mix] {
        settings.set(parameter, of_preset.get(parameter))?;
    }
    Ok(settings)
}

fn settings(of_preset: Settings, options: &cli::Rig) -> anyhow::Result<Settings> {
    let mut settings = if options.neutral { neutral(&of_preset)? } else { of_preset };
    if options.series || options.parallel {
        settings.set(Parameter::Routing, f32::from(options.parallel))?;
    }
    for set in &options.set {
        let parts = set.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        let Some((name, value)) = parts.filter(|(name, value)| !name.is_empty() && !value.is_empty()) else {
            return Err(Usage(format!("--set takes NAME=VALUE, as gate.on=on, and not {set:?}")).into());
        };
        let parameter = Parameter::named(name).map_err(|error| Usage(error.to_string()))?;
        let value = parameter.parse(value).map_err(|error| Usage(error.to_string()))?;
        let is_routed = parameter == Parameter::Routing && (options.series || options.parallel);
        if is_routed && value != settings.get(parameter) {
            let option = if options.parallel { "--parallel" } else { "--series" };
            return Err(Usage(format!("{option} and --set {set} contradict each other: leave one out")).into());
        }
        settings.set(parameter, value)?;
    }
    Ok(settings)
}

/// A preset's file.
pub fn read_preset(path: &Path) -> anyhow::Result<Preset> {
    Ok(Preset::read(path, sys::file::read)?)
}

#[cfg(test)]
mod tests {
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
    fn the_whole_model_can_be_chosen_where_a_preset_has_a_part() {
        let part = ModelPart { slim: 0.25, ..ModelPart::new("a.nam".to_owned()) };
        let slim = |arguments: &[&str]| {
            let mut part = part.clone();
            choose(&mut part, &options(arguments).choice);
            part.slim
        };
        assert_eq!([slim(&["--slim", "1"]), slim(&["--slim", "0.5"]), slim(&[])], [1.0, 0.5, 0.25]);
    }

    #[test]
    fn neutral_keeps_how_models_stand_to_each_other() {
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
