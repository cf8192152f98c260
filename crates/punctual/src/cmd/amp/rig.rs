//! What is played, from its files: models, cabinets, settings.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use amp::{
    Amplifier, Cabinet, Ir, ModelFile, Parameter, Parts, Preset, Settings,
    file::Options,
    preset::{IrPart, ModelPart},
};
use anyhow::Context;

use crate::{cli, exit::Usage};

/// What is played.
pub struct Rig {
    models: Vec<(PathBuf, ModelFile, ModelPart)>,
    irs: Vec<(PathBuf, Ir, IrPart)>,
    /// What is set.
    pub settings: Settings,
    /// What the controllers of MIDI turn.
    pub midi: BTreeMap<u8, Parameter>,
}

impl Rig {
    /// Reads the preset, if there is one, puts what else was asked for in its place, and reads all files.
    pub fn read(options: &cli::Rig) -> anyhow::Result<Self> {
        let (mut preset, folder) = match &options.preset {
            Some(path) => (read_preset(path)?, path.parent().map(Path::to_owned).unwrap_or_default()),
            None => (Preset::default(), PathBuf::new()),
        };
        // Paths of a preset start at its folder.
        let from_preset = |file: &str| folder.join(file);
        let mut models: Vec<_> = preset.models.drain(..).map(|part| (from_preset(&part.file), part)).collect();
        let mut irs: Vec<_> = preset.irs.drain(..).map(|part| (from_preset(&part.file), part)).collect();
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
            irs = asked.map(|path| (path.clone(), IrPart::new(path.display().to_string()))).collect();
        }
        if models.is_empty() && irs.is_empty() && options.preset.is_none() {
            return Err(Usage("nothing is to be played: add --model, --cab or --preset".to_owned()).into());
        }
        for (_, part) in &mut irs {
            part.normalised |= options.cab_normalised;
            part.without_delay |= options.cab_without_delay;
        }
        Self::load(settings(preset.settings, options)?, preset.midi, models, irs)
    }

    /// A preset with all its files, which start at this folder.
    pub fn of(preset: &Preset, folder: &Path) -> anyhow::Result<Self> {
        let models = preset.models.iter().map(|part| (folder.join(&part.file), part.clone())).collect();
        let irs = preset.irs.iter().map(|part| (folder.join(&part.file), part.clone())).collect();
        Self::load(preset.settings.clone(), preset.midi.clone(), models, irs)
    }

    fn load(
        settings: Settings,
        midi: BTreeMap<u8, Parameter>,
        models: Vec<(PathBuf, ModelPart)>,
        irs: Vec<(PathBuf, IrPart)>,
    ) -> anyhow::Result<Self> {
        let model = |(path, part): (PathBuf, ModelPart)| Ok((path.clone(), super::read(&path)?, part));
        let ir = |(path, part): (PathBuf, IrPart)| Ok((path.clone(), read_ir(&path)?, part));
        Ok(Self {
            settings,
            midi,
            models: models.into_iter().map(model).collect::<anyhow::Result<_>>()?,
            irs: irs.into_iter().map(ir).collect::<anyhow::Result<_>>()?,
        })
    }

    /// The sample rate that the first model was made for, Hz: at which all is best.
    pub fn rate_hz(&self) -> Option<u32> {
        let (_, file, _) = self.models.first()?;
        Some(file.sample_rate)
            .filter(|rate| rate.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(rate))
            .map(|rate| rate as u32)
    }

    /// The model at a place, and its file's name.
    pub fn model(&self, place: usize) -> Option<(&Path, &ModelFile)> {
        self.models.get(place).map(|(path, file, _)| (path.as_path(), file))
    }

    /// Whether another one plays the same models in the same way, so that they can go on.
    pub fn shares_models(&self, other: &Self) -> bool {
        let models =
            |rig: &Self| rig.models.iter().map(|(path, _, part)| (path.clone(), part.clone())).collect::<Vec<_>>();
        let routing = |rig: &Self| rig.settings.is_on(Parameter::Routing);
        models(self) == models(other) && routing(self) == routing(other)
    }

    /// Whether another one has the same cabinet.
    pub fn shares_cabinet(&self, other: &Self) -> bool {
        let irs = |rig: &Self| rig.irs.iter().map(|(path, _, part)| (path.clone(), part.clone())).collect::<Vec<_>>();
        irs(self) == irs(other)
    }

    /// Whether left and right differ.
    pub fn is_stereo(&self) -> bool {
        self.irs.iter().any(|(_, ir, _)| ir.channels().len() > 1)
    }

    /// All of it, for a chain of this rate: models settled, responses resampled. Says on standard error what is not played as
    /// it was made.
    pub fn parts(&self, rate_hz: u32) -> anyhow::Result<Parts> {
        let mut models = [None, None];
        for (place, (path, file, part)) in self.models.iter().enumerate().take(2) {
            let amplifier = amplifier(file, part, rate_hz).with_context(|| path.display().to_string())?;
            if amplifier.delay() > 0 {
                let (own, late) = (file.sample_rate, amplifier.delay());
                eprintln!("note: {} is made for {own} Hz: resampled, {late} samples late", path.display());
            }
            models[place] = Some(amplifier);
        }
        if let (true, [Some(first), Some(second)]) = (self.settings.is_on(Parameter::Routing), &mut models) {
            let late = first.delay().max(second.delay());
            first.delay_to(late);
            second.delay_to(late);
        }
        Ok(Parts { models, cabinet: self.cabinet(rate_hz)? })
    }

    fn cabinet(&self, rate_hz: u32) -> anyhow::Result<Option<Cabinet>> {
        let mut mixed: Option<Ir> = None;
        for (path, ir, part) in &self.irs {
            let ready = ready(ir, part, rate_hz).with_context(|| path.display().to_string())?;
            mixed = Some(match mixed {
                Some(other) => other.mixed(&ready)?,
                None => ready,
            });
        }
        Ok(mixed.map(|ir| Cabinet::new(&ir.trimmed())))
    }
}

fn ready(ir: &Ir, part: &IrPart, rate_hz: u32) -> anyhow::Result<Ir> {
    let mut ir = ir.resampled(rate_hz)?;
    if part.without_delay {
        ir = ir.without_delay();
    }
    if part.normalised {
        ir = ir.normalised();
    }
    Ok(ir.scaled(10.0_f32.powf(part.gain_db / 20.0)))
}

fn amplifier(file: &ModelFile, part: &ModelPart, rate_hz: u32) -> anyhow::Result<Amplifier> {
    if part.slim < 1.0 && !file.is_slimmable() {
        return Err(Usage("the model has one size: leave out --slim".to_owned()).into());
    }
    let options = Options { slim: part.slim, ..Options::default() };
    let amplifier = Amplifier::new(file, options, &part.knobs, rate_hz)?;
    if part.knobs.len() > amplifier.knobs() {
        let (turned, there) = (part.knobs.len(), amplifier.knobs());
        return Err(Usage(format!("{turned} knobs are turned by --param, and the model has {there}")).into());
    }
    Ok(amplifier)
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
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Preset::parse(&text).with_context(|| path.display().to_string())
}

/// A WAV file as impulse response.
pub fn read_ir(path: &Path) -> anyhow::Result<Ir> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ir::from_wav(&bytes).with_context(|| path.display().to_string())
}
