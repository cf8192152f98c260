//! The files of a folder that can be played.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Folders within folders that are looked into.
const DEPTH: usize = 4;
/// Files that are told.
const MOST: usize = 5000;

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

    fn look(&self, within: &str, depth: usize, files: &mut Files) {
        for entry in fs::read_dir(self.folder.join(within)).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.starts_with('.') || files.models.len() + files.cabinets.len() + files.presets.len() >= MOST {
                continue;
            }
            let path = format!("{within}{name}");
            let is_folder = entry.path().is_dir();
            let ending = Path::new(&name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            match ending.to_lowercase().as_str() {
                _ if is_folder && depth > 0 => self.look(&format!("{path}/"), depth - 1, files),
                _ if is_folder => {}
                "nam" | "json" | "aidax" => files.models.push(path),
                "wav" => files.cabinets.push(path),
                "toml" if within.is_empty() => files.presets.push(path),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
}
