//! All that is played, from the files that a preset names, or that were chosen: models, responses, settings.
//!
//! Files are read by who asks for them, so that nothing here calls the system.

mod diff;
mod loaded;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use thiserror::Error;

use self::loaded::LoadedFile;
use crate::{
    Amplifier, Cabinet, Ir, LoadError, ModelFile, Parameter, Parts, Preset, Settings,
    cabinet::IrError,
    chain::AmplifierError,
    decibels::db_to_gain,
    file::Options,
    preset::{IrPart, ModelPart, PresetError},
    resample::RateError,
};

/// Models and responses, read and checked, and how they are played.
#[derive(Debug)]
pub struct Rig {
    models: Vec<LoadedFile<ModelFile, ModelPart>>,
    irs: Vec<LoadedFile<Ir, IrPart>>,
    /// The value of every parameter.
    pub settings: Settings,
    /// Controllers of MIDI, 0 to 127, and the parameter that each turns from end to end.
    pub midi: BTreeMap<u8, Parameter>,
}

/// What tells whether a file has changed: when it was written, and how many bytes it has.
pub type Version = (SystemTime, u64);

/// What is to be played, with the files as paths.
#[derive(Debug, Default)]
pub struct Chosen {
    /// At most two models, the first one first.
    pub models: Vec<(PathBuf, ModelPart)>,
    /// Impulse responses, summed to one cabinet.
    pub irs: Vec<(PathBuf, IrPart)>,
    /// The value of every parameter.
    pub settings: Settings,
    /// Controllers of MIDI, 0 to 127, and the parameter that each turns from end to end.
    pub midi: BTreeMap<u8, Parameter>,
}

/// A file that cannot be played.
#[derive(Debug, Error)]
pub enum RigError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file that was to be read.
        path: PathBuf,
        /// The error of reading it; of a preset that is no UTF-8, too.
        error: io::Error,
    },
    /// It was read, and cannot be played.
    #[error("{}: {problem}", path.display())]
    Unplayable {
        /// The file that was read.
        path: PathBuf,
        /// Why it cannot be played.
        problem: FileProblem,
    },
}

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum FileProblem {
    /// It is no preset.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// It is no model.
    #[error(transparent)]
    Model(#[from] LoadError),
    /// The model cannot be played in a chain.
    #[error(transparent)]
    Amplifier(#[from] AmplifierError),
    /// It is no response.
    #[error(transparent)]
    Ir(#[from] IrError),
    /// Its rate cannot be changed to the one that is played.
    #[error(transparent)]
    Rate(#[from] RateError),
}

impl RigError {
    /// Whether the file is right, and what was chosen of it is not.
    #[must_use]
    pub fn is_choice(&self) -> bool {
        match self {
            Self::Unplayable { problem: FileProblem::Amplifier(AmplifierError::Model(error)), .. } => error.is_choice(),
            _ => false,
        }
    }
}

/// What is wrong with the file at a path.
fn wrong<E: Into<FileProblem>>(path: &Path) -> impl FnOnce(E) -> RigError {
    let path = path.to_owned();
    move |problem| RigError::Unplayable { path, problem: problem.into() }
}

fn bytes(path: &Path, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> Result<Vec<u8>, RigError> {
    read(path).map_err(|error| RigError::Read { path: path.to_owned(), error })
}

impl Preset {
    /// The preset in a file.
    ///
    /// # Errors
    /// [`RigError`], with the first mistake and its line.
    pub fn read(path: &Path, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> Result<Self, RigError> {
        let text = String::from_utf8(bytes(path, read)?)
            .map_err(|error| RigError::Read { path: path.to_owned(), error: io::Error::other(error) })?;
        Self::parse(&text).map_err(wrong(path))
    }

    /// What it plays; its paths start at this folder.
    #[must_use]
    pub fn chosen(self, folder: &Path) -> Chosen {
        let Self { models, irs, settings, midi } = self;
        let models = models.into_iter().map(|part| (folder.join(&part.file), part)).collect();
        let irs = irs.into_iter().map(|part| (folder.join(&part.file), part)).collect();
        Chosen { models, irs, settings, midi }
    }
}

impl Rig {
    /// Reads and checks all files.
    ///
    /// # Errors
    /// [`RigError`]: the first file that cannot be played.
    pub fn load(chosen: Chosen, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> Result<Self, RigError> {
        Self::load_beside(chosen, &[], read, |_| None)
    }

    /// The same where others have been loaded: what they have read is not read again, unless its version is another, or
    /// unknown.
    ///
    /// # Errors
    /// [`RigError`]: the first file that cannot be played.
    pub fn load_beside(
        chosen: Chosen,
        others: &[&Self],
        read: impl Fn(&Path) -> io::Result<Vec<u8>>,
        version: impl Fn(&Path) -> Option<Version>,
    ) -> Result<Self, RigError> {
        let model = |(path, part): (PathBuf, ModelPart)| {
            let others = others.iter().flat_map(|rig| &rig.models);
            let version = version(&path);
            LoadedFile::load(path, part, version, others, |path| {
                ModelFile::read(&bytes(path, &read)?).map_err(wrong(path))
            })
        };
        let ir = |(path, part): (PathBuf, IrPart)| {
            let others = others.iter().flat_map(|rig| &rig.irs);
            let version = version(&path);
            LoadedFile::load(path, part, version, others, |path| {
                Ir::from_wav(&bytes(path, &read)?).map_err(wrong(path))
            })
        };
        let Chosen { models, irs, settings, midi } = chosen;
        Ok(Self {
            models: models.into_iter().map(model).collect::<Result<_, RigError>>()?,
            irs: irs.into_iter().map(ir).collect::<Result<_, RigError>>()?,
            settings,
            midi,
        })
    }

    /// What files tell that their authors should know, in words: of those that were read for this one.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let of_file = |loaded: &LoadedFile<ModelFile, ModelPart>| {
            let path = loaded.path.display().to_string();
            loaded.file.warnings.iter().map(move |warning| format!("{path}: {warning}")).collect::<Vec<_>>()
        };
        self.models.iter().filter(|loaded| loaded.is_new).flat_map(of_file)
    }

    /// The sample rate that the first model was made for, Hz: at which all is best.
    #[must_use]
    pub fn rate_hz(&self) -> Option<u32> {
        Some(self.models.first()?.file.sample_rate)
            .filter(|rate| rate.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(rate))
            .map(|rate| rate as u32)
    }

    /// The model at a place, and its file's name.
    #[must_use]
    pub fn model(&self, place: usize) -> Option<(&Path, &ModelFile)> {
        self.models.get(place).map(|loaded| (loaded.path.as_path(), &*loaded.file))
    }

    /// The files that were read.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let models = self.models.iter().map(|loaded| loaded.path.as_path());
        models.chain(self.irs.iter().map(|loaded| loaded.path.as_path()))
    }

    /// Whether left and right can differ: one of the responses has two channels.
    #[must_use]
    pub fn is_stereo(&self) -> bool {
        self.irs.iter().any(|loaded| loaded.file.channels().len() > 1)
    }

    /// All of it, for a chain of this rate, Hz: models settled, responses resampled; and in words what is not played as it
    /// was made.
    ///
    /// # Errors
    /// [`RigError::Unplayable`], with the first file that cannot be played at this rate, or not as it was chosen.
    pub fn parts(&self, rate_hz: u32) -> Result<(Parts, Vec<String>), RigError> {
        let mut notes = Vec::new();
        let models = [self.amplifier(0, rate_hz, &mut notes)?, self.amplifier(1, rate_hz, &mut notes)?];
        Ok((Parts { models, cabinet: self.cabinet(rate_hz)? }, notes))
    }

    /// The model at a place, settled.
    fn amplifier(&self, place: usize, rate_hz: u32, notes: &mut Vec<String>) -> Result<Option<Amplifier>, RigError> {
        let Some(LoadedFile { path, file, part, .. }) = self.models.get(place) else { return Ok(None) };
        let options = Options { slim: part.slim, ..Options::default() };
        let amplifier = Amplifier::new(file, options, &part.knobs, rate_hz).map_err(wrong(path))?;
        if amplifier.delay() > 0 {
            let (own, late) = (file.sample_rate, amplifier.delay());
            notes.push(format!("{} is made for {own} Hz: resampled, {late} samples late", path.display()));
        }
        Ok(Some(amplifier))
    }

    fn cabinet(&self, rate_hz: u32) -> Result<Option<Cabinet>, RigError> {
        let mut mixed: Option<Ir> = None;
        for LoadedFile { path, file, part, .. } in &self.irs {
            let ready = ready(file, part, rate_hz).map_err(wrong(path))?;
            mixed = Some(match mixed {
                Some(other) => other.mixed(&ready).map_err(wrong(path))?,
                None => ready,
            });
        }
        Ok(mixed.map(|ir| Cabinet::new(&ir.trimmed())))
    }
}

fn ready(ir: &Ir, part: &IrPart, rate_hz: u32) -> Result<Ir, RateError> {
    let mut ir = ir.resampled(rate_hz)?;
    if part.without_delay {
        ir = ir.without_delay();
    }
    if part.normalised {
        ir = ir.normalised();
    }
    Ok(ir.scaled(db_to_gain(part.gain_db)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of one file.
    fn only(name: &'static str, content: &'static [u8]) -> impl Fn(&Path) -> io::Result<Vec<u8>> {
        move |path| match path == Path::new(name) {
            true => Ok(content.to_vec()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    #[test]
    fn each_mistake_names_its_file() {
        let told = |read: &dyn Fn(&Path) -> io::Result<Vec<u8>>| {
            let preset = Preset::read(Path::new("tones/lead.toml"), read)?;
            Rig::load(preset.chosen(Path::new("tones")), read).map(drop)
        };
        let error = |name, content| told(&only(name, content)).unwrap_err().to_string();
        assert_eq!(error("x", b""), "cannot read tones/lead.toml: entity not found");
        let misspelt = error("tones/lead.toml", b"[gate]\nthreshhold_db = 3");
        assert!(misspelt.starts_with("tones/lead.toml: line 2: [gate] has no"), "{misspelt}");
        let missing = error("tones/lead.toml", b"[[model]]\nfile = 'deluxe.nam'");
        assert_eq!(missing, "cannot read tones/deluxe.nam: entity not found");
        assert!(told(&only("tones/lead.toml", b"[gate]\non = true")).is_ok(), "settings alone are a preset");
    }
}
