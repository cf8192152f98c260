//! The library of the web page: a folder of models, cabinets and presets.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use amp::{Parts, Preset, Rig, rig::RigError};
use thiserror::Error;

use record::file::check_regular;

use crate::rig_loader::{RigLoadError, RigLoader, preset_spec, read_preset};

/// Maximum depth of subfolders that are searched.
const MAX_DEPTH: usize = 4;
/// Maximum number of listed files.
const MAX_FILES: usize = 5000;

/// True if the extension of the file name is one of a model.
#[must_use]
pub fn is_model_file(path: &Path) -> bool {
    path.extension().is_some_and(is_model_extension)
}

fn is_model_extension(extension: &OsStr) -> bool {
    ["nam", "json", "aidax"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Why a file of the library cannot be loaded.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// The library has no such preset.
    #[error("there is no preset {name} in the folder (available: {available})")]
    NoPreset {
        /// The name that was given.
        name: String,
        /// The presets of the folder.
        available: String,
    },
    /// The file cannot be read or played.
    #[error(transparent)]
    Load(#[from] RigLoadError),
}

impl From<RigError> for LibraryError {
    fn from(error: RigError) -> Self {
        Self::Load(error.into())
    }
}

impl LibraryError {
    /// True if the files are valid, but the user chose something that they do not offer.
    #[must_use]
    pub fn is_choice(&self) -> bool {
        match self {
            Self::NoPreset { .. } => true,
            Self::Load(error) => error.is_choice(),
        }
    }
}

/// A folder of models, cabinets and presets; models and cabinets may be in subfolders.
#[derive(Debug, Clone)]
pub struct Library {
    folder: PathBuf,
    loader: RigLoader,
}

/// File names relative to the folder of the library, in alphabetical order.
#[derive(Debug, Default)]
pub struct Files {
    /// `.nam`, `.json` and `.aidax` files.
    pub models: Vec<String>,
    /// `.wav` files.
    pub cabinets: Vec<String>,
    /// `.toml` files of the folder itself, not of subfolders, because their paths start at the folder.
    pub presets: Vec<String>,
}

impl Files {
    fn count(&self) -> usize {
        self.models.len() + self.cabinets.len() + self.presets.len()
    }
}

/// A preset of a library with all its files.
#[derive(Debug)]
pub struct LoadedPreset {
    /// The preset.
    pub preset: Preset,
    /// Its file in the library; `None` for the default settings.
    pub name: Option<String>,
    /// Its models and cabinets.
    pub rig: Rig,
}

impl Library {
    /// Opens the library in this folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn open(folder: &Path, loader: RigLoader) -> io::Result<Self> {
        fs::read_dir(folder)?;
        Ok(Self { folder: folder.to_owned(), loader })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The loader of its files.
    #[must_use]
    pub fn loader(&self) -> RigLoader {
        self.loader
    }

    /// The current files. Skips what cannot be read.
    #[must_use]
    pub fn files(&self) -> Files {
        let mut files = Files::default();
        self.search("", MAX_DEPTH, &mut files);
        for names in [&mut files.models, &mut files.cabinets, &mut files.presets] {
            names.sort_by_key(|name| name.to_lowercase());
        }
        files
    }

    /// The file of a preset, which may be named without its extension.
    ///
    /// # Errors
    /// [`LibraryError::NoPreset`].
    pub fn find_preset(&self, name: &str) -> Result<String, LibraryError> {
        let presets = self.files().presets;
        if let Some(found) = presets.iter().find(|file| *file == name || file.strip_suffix(".toml") == Some(name)) {
            return Ok(found.clone());
        }
        let available = if presets.is_empty() { "none".to_owned() } else { presets.join(", ") };
        Err(LibraryError::NoPreset { name: name.to_owned(), available })
    }

    /// Reads a preset of [`files`](Self::files).
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn preset(&self, name: &str) -> Result<Preset, LibraryError> {
        let path = self.folder.join(name);
        check_regular(&path).map_err(|source| RigLoadError::NotRegular { path: path.clone(), source })?;
        Ok(read_preset(&path)?)
    }

    /// Loads the files of a preset. Unchanged files of the `loaded` rigs are shared with them, not read again.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn rig(&self, preset: &Preset, loaded: &[&Rig]) -> Result<Rig, LibraryError> {
        Ok(self.loader.load(preset_spec(preset.clone(), &self.folder)?, loaded)?)
    }

    /// Loads a preset, or the default settings if `None`, for a chain of this sample rate, Hz.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn load(&self, name: Option<String>, rate_hz: u32) -> Result<(LoadedPreset, Parts), LibraryError> {
        let preset = name.as_deref().map(|name| self.preset(name)).transpose()?.unwrap_or_default();
        let rig = self.rig(&preset, &[])?;
        let parts = self.loader.parts(&rig, rate_hz)?;
        Ok((LoadedPreset { preset, name, rig }, parts))
    }

    /// Loads the first preset that can be played, or the default settings if there is none. Reports the presets that it
    /// skips.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn load_first(&self, rate_hz: u32) -> Result<(LoadedPreset, Parts), LibraryError> {
        for name in self.files().presets {
            match self.load(Some(name.clone()), rate_hz) {
                Ok(loaded) => return Ok(loaded),
                Err(error) => {
                    self.loader.notify(&format!("skipped {name}: {error}; correct it, then choose it on the page"));
                }
            }
        }
        self.load(None, rate_hz)
    }

    fn search(&self, subfolder: &str, depth: usize, files: &mut Files) {
        for entry in fs::read_dir(self.folder.join(subfolder)).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.starts_with('.') || files.count() >= MAX_FILES {
                continue;
            }
            let path = format!("{subfolder}{name}");
            // The type of the entry itself: links to folders are not followed, because they may form a loop.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let extension = Path::new(&name).extension().unwrap_or_default();
            if is_folder && depth > 0 {
                self.search(&format!("{path}/"), depth - 1, files);
            } else if !entry.path().is_file() {
                // A pipe, a device, a link to a folder, or a broken link.
            } else if is_model_extension(extension) {
                files.models.push(path);
            } else if extension.eq_ignore_ascii_case("wav") {
                files.cabinets.push(path);
            } else if extension.eq_ignore_ascii_case("toml") && subfolder.is_empty() {
                files.presets.push(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, process::Command};

    use super::*;

    fn open(folder: &Path) -> io::Result<Library> {
        Library::open(folder, RigLoader::new(|_| {}))
    }

    #[test]
    fn finds_files_in_subfolders() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "b.nam",
            "A.json",
            "x.txt",
            ".hidden.nam",
            "cabs/4x12.WAV",
            "cabs/old/v30.wav",
            "clean.toml",
            "cabs/x.toml",
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let files = open(folder.path()).unwrap().files();
        assert_eq!(files.models, ["A.json", "b.nam"]);
        assert_eq!(files.cabinets, ["cabs/4x12.WAV", "cabs/old/v30.wav"]);
        assert_eq!(files.presets, ["clean.toml"]);
        assert!(open(&folder.path().join("none")).is_err());
    }

    #[test]
    fn follows_links_to_files_but_skips_pipes_and_links_to_folders() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("cabs")).unwrap();
        fs::write(at("cabs/4x12.wav"), "").unwrap();
        symlink("cabs/4x12.wav", at("linked.wav")).unwrap();
        symlink("nowhere.nam", at("broken.nam")).unwrap();
        symlink(".", at("loop")).unwrap();
        symlink("cabs", at("more.nam")).unwrap();
        fs::create_dir(at("folder.toml")).unwrap();
        for pipe in ["pipe.nam", "pipe.toml"] {
            assert!(Command::new("mkfifo").arg(at(pipe)).status().unwrap().success());
        }
        let library = open(folder.path()).unwrap();
        let files = library.files();
        assert_eq!(files.cabinets, ["cabs/4x12.wav", "linked.wav"]);
        assert!(files.models.is_empty() && files.presets.is_empty(), "{files:?}");

        // Opening a pipe without a writer would block forever.
        assert!(library.preset("pipe.toml").unwrap_err().to_string().contains("not a regular file"));
        let preset = Preset::parse("[[model]]\nfile = 'pipe.nam'").unwrap();
        assert!(library.rig(&preset, &[]).unwrap_err().to_string().contains("not a regular file"));
    }
}
