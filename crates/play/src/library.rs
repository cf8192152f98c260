//! The library of the web page: a folder of models, cabinets and presets.

mod checks;
mod upload;

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use amp::{Parts, Preset, Rig, rig::RigError};
use thiserror::Error;

use record::{file::check_regular, visible::one_line};

pub use self::checks::Checks;
use crate::rig_loader::{RigLoadError, RigLoader, preset_spec, read_preset};

/// Maximum depth of subfolders that are searched.
const MAX_DEPTH: usize = 4;
/// Maximum number of listed files.
const MAX_FILES: usize = 5000;
/// Maximum number of listed files that cannot be chosen.
const MAX_OTHERS: usize = 100;
/// Maximum number of files and folders in a search, because the folder may be a whole home folder.
const MAX_ENTRIES: usize = 20_000;
/// Maximum length of the reason why a file cannot be chosen, characters.
const MAX_REASON: usize = 300;

/// True if the extension of the file name is one of a model.
#[must_use]
pub fn is_model_file(path: &Path) -> bool {
    path.extension().is_some_and(is_model_extension)
}

fn is_model_extension(extension: &OsStr) -> bool {
    amp::file::EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn is_cabinet_extension(extension: &OsStr) -> bool {
    amp::recording::EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
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
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// `.nam`, `.json` and `.aidax` files.
    pub models: Vec<String>,
    /// `.wav` files.
    pub cabinets: Vec<String>,
    /// `.toml` files of the folder itself, not of subfolders, because their paths start at the folder.
    pub presets: Vec<String>,
    /// At most 100 files that cannot be chosen.
    pub others: Vec<OtherFile>,
    /// Number of files that cannot be chosen.
    pub others_count: usize,
    /// Number of files and folders that the search found.
    entries: usize,
}

/// A file of the folder that cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherFile {
    /// Its name, without hidden characters.
    pub file: String,
    /// Why it cannot be chosen.
    pub reason: String,
}

impl Files {
    fn add_other(&mut self, file: &str, reason: &str) {
        self.others_count += 1;
        if self.others.len() < MAX_OTHERS {
            let reason = one_line(reason).chars().take(MAX_REASON).collect();
            self.others.push(OtherFile { file: one_line(file), reason });
        }
    }

    /// Adds a preset that was saved.
    pub(crate) fn add_preset(&mut self, name: String) {
        self.presets.push(name);
        self.sort();
    }

    /// Brings the names into alphabetical order.
    fn sort(&mut self) {
        for names in [&mut self.models, &mut self.cabinets, &mut self.presets] {
            names.sort_by_key(|name| name.to_lowercase());
        }
        self.others.sort_by_key(|other| other.file.to_lowercase());
    }

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
        files.sort();
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
            files.entries += 1;
            if files.count() >= MAX_FILES || files.entries > MAX_ENTRIES {
                return;
            }
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // The type of the entry itself: links to folders are not followed, because they may form a loop.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let path = format!("{subfolder}{}", name.to_string_lossy());
            // A name with hidden characters could pass for another one.
            let is_plain = name.to_str().is_some_and(|name| one_line(name) == name);
            let extension = Path::new(&name).extension().unwrap_or_default();
            if is_folder {
                if depth > 0 && is_plain {
                    self.search(&format!("{path}/"), depth - 1, files);
                }
            } else if !is_plain {
                files.add_other(&path, "its name contains control characters, or is not UTF-8: rename it");
            } else if !entry.path().is_file() {
                files.add_other(&path, "it is a pipe, a device, a link to a folder, or a broken link");
            } else if is_model_extension(extension) {
                files.models.push(path);
            } else if is_cabinet_extension(extension) {
                files.cabinets.push(path);
            } else if !extension.eq_ignore_ascii_case("toml") {
                files.add_other(
                    &path,
                    "it is not a model (.nam, .json, .aidax), a cabinet (.wav, .flac, .aiff) or a preset (.toml)",
                );
            } else if subfolder.is_empty() {
                files.presets.push(path);
            } else {
                files.add_other(&path, "presets must be in the folder itself, not in a subfolder");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::{ffi::OsStrExt, fs::symlink},
        process::Command,
    };

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
        let others: Vec<&str> = files.others.iter().map(|other| other.file.as_str()).collect();
        assert_eq!((others, files.others_count), (vec!["cabs/x.toml", "x.txt"], 2));
        assert!(open(&folder.path().join("none")).is_err());
    }

    #[test]
    fn names_with_hidden_characters_are_listed_apart() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a\u{1b}[2J.nam", "a\n.wav", "a\u{202e}man.toml"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::write(folder.path().join(OsStr::from_bytes(b"\xff.nam")), "").unwrap();
        let files = open(folder.path()).unwrap().files();
        assert_eq!((files.count(), files.others_count), (0, 4));
        assert!(files.others.iter().all(|other| one_line(&other.file) == other.file), "{:?}", files.others);
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
        assert_eq!(files.others_count, 5);

        // Opening a pipe without a writer would block forever.
        assert!(library.preset("pipe.toml").unwrap_err().to_string().contains("not a regular file"));
        let preset = Preset::parse("[[model]]\nfile = 'pipe.nam'").unwrap();
        assert!(library.rig(&preset, &[]).unwrap_err().to_string().contains("not a regular file"));
    }
}
