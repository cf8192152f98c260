//! A rig: the models, impulse responses and settings that a preset or the command line names, read from their files.
//!
//! The caller reads the files, so that nothing here makes a system call.

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
    convert::db_to_gain,
    file::Options,
    preset::{IrPart, ModelPart, PresetError},
};

/// Models and impulse responses, read and checked, and the settings that play them.
#[derive(Debug)]
pub struct Rig {
    models: Vec<LoadedFile<ModelFile, ModelPart>>,
    irs: Vec<LoadedFile<Ir, IrPart>>,
    reverb_ir: Option<LoadedFile<Ir, IrPart>>,
    /// The value of every parameter.
    pub settings: Settings,
    /// MIDI controllers, 0 to 127, each with the parameter that it controls over its range.
    pub midi: BTreeMap<u8, Parameter>,
}

/// Modification time and size of a file, which reveal whether it has changed.
pub type Version = (SystemTime, u64);

/// The files and settings of a rig.
#[derive(Debug, Default)]
pub struct RigSpec {
    /// At most two models, in order.
    pub models: Vec<(PathBuf, ModelPart)>,
    /// Impulse responses, which are summed to one cabinet.
    pub irs: Vec<(PathBuf, IrPart)>,
    /// The impulse response of the reverb.
    pub reverb_ir: Option<(PathBuf, IrPart)>,
    /// The value of every parameter.
    pub settings: Settings,
    /// MIDI controllers, 0 to 127, each with the parameter that it controls over its range.
    pub midi: BTreeMap<u8, Parameter>,
}

impl RigSpec {
    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let models = self.models.iter().map(|(path, _)| &**path);
        models.chain(self.irs.iter().chain(&self.reverb_ir).map(|(path, _)| &**path))
    }
}

/// What to do about an error in reading; empty if its text says that.
fn remedy_of(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; check its name and folder",
        io::ErrorKind::PermissionDenied => "; make it readable for this user",
        io::ErrorKind::IsADirectory => "; name a file in it",
        _ => "",
    }
}

/// A file that cannot be played.
#[derive(Debug, Error)]
pub enum RigError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}{}", path.display(), remedy_of(error))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of reading it; also for a preset that is not UTF-8.
        error: io::Error,
    },
    /// The file was read, but cannot be played.
    #[error("{}: {problem}", path.display())]
    Unplayable {
        /// The file.
        path: PathBuf,
        /// Why it cannot be played.
        problem: FileProblem,
    },
}

/// Why a file cannot be played.
#[derive(Debug, Error)]
pub enum FileProblem {
    /// The preset is invalid.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// The model file is invalid.
    #[error(transparent)]
    Model(#[from] LoadError),
    /// The model cannot be played in a chain.
    #[error(transparent)]
    Amplifier(#[from] AmplifierError),
    /// The impulse response is invalid.
    #[error(transparent)]
    Ir(#[from] IrError),
}

impl RigError {
    /// True if the file is good and the requested size or knobs are not.
    #[must_use]
    pub fn is_invalid_option(&self) -> bool {
        match self {
            Self::Unplayable { problem: FileProblem::Amplifier(AmplifierError::Model(error)), .. } => {
                error.is_invalid_option()
            }
            _ => false,
        }
    }
}

/// Adds the path to the problem of a file.
fn wrong<E: Into<FileProblem>>(path: &Path) -> impl FnOnce(E) -> RigError {
    let path = path.to_owned();
    move |problem| RigError::Unplayable { path, problem: problem.into() }
}

fn bytes(path: &Path, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> Result<Vec<u8>, RigError> {
    read(path).map_err(|error| RigError::Read { path: path.to_owned(), error })
}

impl Preset {
    /// Reads a preset from a file.
    ///
    /// # Errors
    /// [`RigError`], for the first error in the file.
    pub fn read(path: &Path, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> Result<Self, RigError> {
        let text = String::from_utf8(bytes(path, read)?)
            .map_err(|error| RigError::Read { path: path.to_owned(), error: io::Error::other(error) })?;
        Self::parse(&text).map_err(wrong(path))
    }

    /// The files and settings of the preset; file names are relative to `folder`.
    #[must_use]
    pub fn into_spec(self, folder: &Path) -> RigSpec {
        let Self { models, irs, reverb_ir, settings, midi } = self;
        let models = models.into_iter().map(|part| (folder.join(&part.file), part)).collect();
        let irs = irs.into_iter().map(|part| (folder.join(&part.file), part)).collect();
        let reverb_ir = reverb_ir.map(|part| (folder.join(&part.file), part));
        RigSpec { models, irs, reverb_ir, settings, midi }
    }
}

impl Rig {
    /// Reads and checks all files.
    ///
    /// # Errors
    /// [`RigError`], for the first file that cannot be played.
    pub fn load(spec: RigSpec, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> Result<Self, RigError> {
        Self::load_sharing(spec, &[], read, |_| None)
    }

    /// [`Rig::load`] that shares files with other rigs: a file that one of them has read is only read again if its
    /// version has changed or is unknown.
    ///
    /// # Errors
    /// [`RigError`], for the first file that cannot be played.
    pub fn load_sharing(
        spec: RigSpec,
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
            let others = others.iter().flat_map(|rig| rig.all_irs());
            let version = version(&path);
            LoadedFile::load(path, part, version, others, |path| {
                Ir::from_file(&bytes(path, &read)?).map_err(wrong(path))
            })
        };
        let RigSpec { models, irs, reverb_ir, settings, midi } = spec;
        Ok(Self {
            models: models.into_iter().map(model).collect::<Result<_, RigError>>()?,
            irs: irs.into_iter().map(ir).collect::<Result<_, RigError>>()?,
            reverb_ir: reverb_ir.map(ir).transpose()?,
            settings,
            midi,
        })
    }

    /// Warnings about the files that this rig has read itself.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let of_file = |loaded: &LoadedFile<ModelFile, ModelPart>| {
            let path = loaded.path.display().to_string();
            loaded.file.warnings.iter().map(move |warning| format!("{path}: {warning}")).collect::<Vec<_>>()
        };
        self.models.iter().filter(|loaded| loaded.is_new).flat_map(of_file)
    }

    /// Sample rate of the first model, Hz, at which it needs no resampling.
    #[must_use]
    pub fn rate_hz(&self) -> Option<u32> {
        self.models.first()?.file.whole_rate_hz()
    }

    /// The model of a slot, and its file name.
    #[must_use]
    pub fn model(&self, slot: usize) -> Option<(&Path, &ModelFile)> {
        self.models.get(slot).map(|loaded| (loaded.path.as_path(), &*loaded.file))
    }

    /// The impulse responses of the cabinet, each with its file name.
    pub fn irs(&self) -> impl Iterator<Item = (&Path, &Ir)> {
        self.irs.iter().map(|loaded| (loaded.path.as_path(), &*loaded.file))
    }

    /// The files of the rig.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let models = self.models.iter().map(|loaded| loaded.path.as_path());
        models.chain(self.all_irs().map(|loaded| loaded.path.as_path()))
    }

    /// The responses of the cabinet and the reverb.
    fn all_irs(&self) -> impl Iterator<Item = &LoadedFile<Ir, IrPart>> {
        self.irs.iter().chain(&self.reverb_ir)
    }

    /// True if left and right differ with these settings: the cabinet or the reverb by impulse response is on and has two
    /// channels, or the reverb is on.
    #[must_use]
    pub fn is_stereo(&self) -> bool {
        let of = |on, irs: &[LoadedFile<Ir, IrPart>]| {
            self.settings.is_on(on) && irs.iter().any(|loaded| loaded.file.channels().len() > 1)
        };
        self.settings.is_on(Parameter::ReverbOn)
            || of(Parameter::CabinetOn, &self.irs)
            || of(Parameter::ReverbIrOn, self.reverb_ir.as_slice())
    }

    /// The models and the responses for a chain of this sample rate, Hz, and notes on parts that were resampled.
    ///
    /// # Errors
    /// [`RigError::Unplayable`], for the first file that cannot be played at this rate or as requested.
    pub fn parts(&self, rate_hz: u32) -> Result<(Parts, Vec<String>), RigError> {
        let mut notes = Vec::new();
        let models = [self.amplifier(0, rate_hz, &mut notes)?, self.amplifier(1, rate_hz, &mut notes)?];
        Ok((Parts { models, cabinet: self.cabinet(rate_hz)?, reverb_ir: self.reverb_ir(rate_hz)? }, notes))
    }

    /// The model of a slot, prewarmed.
    fn amplifier(&self, slot: usize, rate_hz: u32, notes: &mut Vec<String>) -> Result<Option<Amplifier>, RigError> {
        let Some(LoadedFile { path, file, part, .. }) = self.models.get(slot) else { return Ok(None) };
        let options = Options { slim: part.slim, ..Options::default() };
        let amplifier = Amplifier::new(file, options, &part.knobs, rate_hz).map_err(wrong(path))?;
        // The delay is left out: a parallel model has it in common with the other one, and rendering removes it.
        if amplifier.delay() > 0 {
            let own = file.sample_rate;
            notes.push(format!("{} was trained at {own} Hz and is resampled to {rate_hz} Hz", path.display()));
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

    fn reverb_ir(&self, rate_hz: u32) -> Result<Option<Cabinet>, RigError> {
        let Some(LoadedFile { path, file, part, .. }) = &self.reverb_ir else { return Ok(None) };
        Ok(Some(Cabinet::new(&ready(file, part, rate_hz).map_err(wrong(path))?.trimmed())))
    }
}

fn ready(ir: &Ir, part: &IrPart, rate_hz: u32) -> Result<Ir, IrError> {
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

    /// A folder with a single file.
    fn only(name: &'static str, content: &'static [u8]) -> impl Fn(&Path) -> io::Result<Vec<u8>> {
        move |path| match path == Path::new(name) {
            true => Ok(content.to_vec()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    #[test]
    fn errors_name_the_file() {
        let load = |read: &dyn Fn(&Path) -> io::Result<Vec<u8>>| {
            let preset = Preset::read(Path::new("tones/lead.toml"), read)?;
            Rig::load(preset.into_spec(Path::new("tones")), read).map(drop)
        };
        let error = |name, content| load(&only(name, content)).unwrap_err().to_string();
        assert_eq!(error("x", b""), "cannot read tones/lead.toml: entity not found; check its name and folder");
        let misspelt = error("tones/lead.toml", b"[gate]\nthreshhold_db = 3");
        assert!(misspelt.starts_with("tones/lead.toml: line 2: unknown \"threshhold_db\" in [gate]"), "{misspelt}");
        let missing = error("tones/lead.toml", b"[[model]]\nfile = 'deluxe.nam'");
        assert_eq!(missing, "cannot read tones/deluxe.nam: entity not found; check its name and folder");
        assert!(load(&only("tones/lead.toml", b"[gate]\non = true")).is_ok(), "a preset can have settings only");
    }
}
