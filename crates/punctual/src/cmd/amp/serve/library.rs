//! The files of a folder that can be played.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use amp::{Preset, Rig};

use crate::cmd::amp::rig;

/// Folders within folders that are looked into.
const DEPTH: usize = 4;
/// Files that are told.
const MAX: usize = 5000;

/// A folder with models, cabinets and presets, and folders of them.
#[derive(Debug, Clone)]
pub struct Library {
    folder: PathBuf,
}

/// What it holds: names from the folder on, in their order.
#[derive(Debug, Default)]
pub struct Files {
    /// `.nam`, `.json`, `.aidax`.
    pub models: Vec<String>,
    /// `.wav`.
    pub cabinets: Vec<String>,
    /// `.toml`, of the folder itself: what they name starts there.
    pub presets: Vec<String>,
}

impl Library {
    /// The library in this folder.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::read_dir(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What there is now. What cannot be read is passed over.
    pub fn files(&self) -> Files {
        let mut files = Files::default();
        self.look("", DEPTH, &mut files);
        for names in [&mut files.models, &mut files.cabinets, &mut files.presets] {
            names.sort_by_key(|name| name.to_lowercase());
        }
        files
    }

    /// A preset of [`files`](Self::files).
    pub fn preset(&self, name: &str) -> anyhow::Result<Preset> {
        let path = self.folder.join(name);
        check_regular(&path)?;
        rig::read_preset(&path)
    }

    /// A preset with all its files; what others have read already, and has not changed since, is shared with them.
    pub fn rig(&self, preset: &Preset, others: &[&Rig]) -> anyhow::Result<Rig> {
        let models = preset.models.iter().map(|part| &part.file);
        for file in models.chain(preset.irs.iter().map(|part| &part.file)) {
            check_regular(&self.folder.join(file))?;
        }
        rig::of(preset, &self.folder, others)
    }

    fn look(&self, within: &str, depth: usize, files: &mut Files) {
        for entry in fs::read_dir(self.folder.join(within)).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.starts_with('.') || files.models.len() + files.cabinets.len() + files.presets.len() >= MAX {
                continue;
            }
            let path = format!("{within}{name}");
            // Of the entry itself: a link to a folder is none, so that none is looked into twice, or for ever.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let ending = Path::new(&name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            match ending.to_lowercase().as_str() {
                _ if is_folder && depth > 0 => self.look(&format!("{path}/"), depth - 1, files),
                _ if !entry.path().is_file() => {}
                "nam" | "json" | "aidax" => files.models.push(path),
                "wav" => files.cabinets.push(path),
                "toml" if within.is_empty() => files.presets.push(path),
                _ => {}
            }
        }
    }
}

/// Whether it is a file, or a link to one: a pipe would keep who opens it waiting. What is missing is for the reader to say.
fn check_regular(path: &Path) -> anyhow::Result<()> {
    let is_other = fs::metadata(path).is_ok_and(|known| !known.is_file());
    anyhow::ensure!(!is_other, "{} is not a regular file: choose one that is", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, process::Command};

    use super::*;

    #[test]
    fn what_can_be_played_is_found_also_in_folders() {
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
        let files = Library::open(folder.path()).unwrap().files();
        assert_eq!(files.models, ["A.json", "b.nam"]);
        assert_eq!(files.cabinets, ["cabs/4x12.WAV", "cabs/old/v30.wav"]);
        assert_eq!(files.presets, ["clean.toml"]);
        assert!(Library::open(&folder.path().join("none")).is_err());
    }

    #[test]
    fn links_to_files_are_followed_and_neither_those_to_folders_nor_pipes() {
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
        let library = Library::open(folder.path()).unwrap();
        let files = library.files();
        assert_eq!(files.cabinets, ["cabs/4x12.wav", "linked.wav"]);
        assert!(files.models.is_empty() && files.presets.is_empty(), "{files:?}");

        // Nobody writes into the pipe, so who opens it waits for ever.
        assert!(library.preset("pipe.toml").unwrap_err().to_string().contains("pipe.toml is not a regular file"));
        let preset = Preset::parse("[[model]]\nfile = 'pipe.nam'").unwrap();
        assert!(library.rig(&preset, &[]).unwrap_err().to_string().contains("pipe.nam is not a regular file"));
    }
}
