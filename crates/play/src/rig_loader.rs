//! Loading of rigs from disk: presets, models and impulse responses.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use amp::{
    Parts, Preset, Rig,
    chain::Exchange,
    rig::{FileProblem, RigError, RigSpec, Version},
};
use record::file::check_regular;
use thiserror::Error;

/// Why a rig cannot be loaded.
#[derive(Debug, Error)]
pub enum RigLoadError {
    /// A model was given as the cabinet.
    #[error("{0} is a model, and a cabinet is a WAV file: use --model {0}, or [[model]] in a preset", path.display())]
    ModelAsCabinet {
        /// The model.
        path: PathBuf,
    },
    /// A preset names a pipe, a device or a folder. Opening a pipe could wait forever.
    #[error("cannot read {}: {source}", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file cannot be read or played.
    #[error(transparent)]
    Rig(#[from] RigError),
}

impl RigLoadError {
    /// True if the files are valid, but the user chose something that they do not offer.
    #[must_use]
    pub fn is_choice(&self) -> bool {
        match self {
            Self::ModelAsCabinet { .. } => true,
            Self::NotRegular { .. } => false,
            Self::Rig(error) => error.is_invalid_option(),
        }
    }
}

/// Loads rigs from disk, and reports notes for the user, for example that a model is resampled.
#[derive(Debug, Clone, Copy)]
pub struct RigLoader {
    notify: fn(&str),
}

impl RigLoader {
    /// A loader that reports its notes to `notify`.
    #[must_use]
    pub fn new(notify: fn(&str)) -> Self {
        Self { notify }
    }

    /// Reports a note for the user.
    pub(crate) fn notify(&self, note: &str) {
        (self.notify)(note);
    }

    fn notify_all(self, notes: impl IntoIterator<Item = String>) {
        notes.into_iter().for_each(|note| self.notify(&note));
    }

    /// Reads and checks all files. Unchanged files of the `loaded` rigs are shared with them, not read again.
    ///
    /// # Errors
    /// [`RigLoadError`].
    pub fn load(&self, chosen: RigSpec, loaded: &[&Rig]) -> Result<Rig, RigLoadError> {
        let rig = Rig::load_sharing(chosen, loaded, read_part, version).map_err(explain_model_as_cabinet)?;
        self.notify_all(rig.warnings());
        Ok(rig)
    }

    /// Creates the models and the cabinet for a chain of this sample rate, Hz.
    ///
    /// # Errors
    /// [`RigLoadError::Rig`].
    pub fn parts(&self, rig: &Rig, rate_hz: u32) -> Result<Parts, RigLoadError> {
        let (parts, notes) = rig.parts(rate_hz)?;
        self.notify_all(notes);
        Ok(parts)
    }

    /// Creates the parts to exchange in a chain that plays `playing`, so that it plays `rig`, and locks their memory.
    /// Parts that both rigs have in common are kept.
    ///
    /// # Errors
    /// [`RigLoadError::Rig`].
    pub fn exchange(&self, rig: &Rig, playing: &Rig, rate_hz: u32) -> Result<Exchange, RigLoadError> {
        let (exchange, notes) = rig.diff_from(playing, rate_hz)?;
        self.notify_all(notes);
        if !exchange.is_empty() {
            // A refusal was reported when playing began.
            let _ = sys::memory::lock_current_memory();
        }
        Ok(exchange)
    }
}

/// Reads a preset.
///
/// # Errors
/// [`RigError`].
pub fn read_preset(path: &Path) -> Result<Preset, RigError> {
    Preset::read(path, read_part)
}

/// The files and settings of a preset that is in `folder`.
///
/// # Errors
/// If one of its files is a pipe, a device or a folder.
pub fn preset_spec(preset: Preset, folder: &Path) -> Result<RigSpec, RigLoadError> {
    let spec = preset.into_spec(folder);
    for path in spec.paths() {
        check_regular(path).map_err(|source| RigLoadError::NotRegular { path: path.to_owned(), source })?;
    }
    Ok(spec)
}

fn read_part(path: &Path) -> io::Result<Vec<u8>> {
    record::file::read_bytes(path, amp::MAX_FILE_BYTES)
}

fn version(path: &Path) -> Option<Version> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Replaces the error "not a WAV file" if the file is a model.
fn explain_model_as_cabinet(error: RigError) -> RigLoadError {
    match error {
        RigError::Unplayable { path, problem: FileProblem::Ir(_) } if is_json(&path) => {
            RigLoadError::ModelAsCabinet { path }
        }
        error => error.into(),
    }
}

/// True if the file begins like a JSON object, as all models do.
fn is_json(path: &Path) -> bool {
    let begins_with_brace = |bytes: Vec<u8>| {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        bytes.trim_ascii_start().starts_with(b"{")
    };
    read_part(path).is_ok_and(begins_with_brace)
}
