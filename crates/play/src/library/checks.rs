//! Checks of the files of a library, so that files that cannot be played are not offered.

use std::{
    collections::HashMap,
    fs, mem,
    path::Path,
    sync::{Mutex, PoisonError},
};

use amp::{Ir, ModelFile, Preset, rig::Version};
use record::file::read_regular;

use super::{Files, Library};

/// Kind of a file, by its extension.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Model,
    Cabinet,
    Preset,
}

impl Kind {
    /// Checks the content of a file.
    ///
    /// # Errors
    /// Why it cannot be played.
    pub fn check(self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::Model => ModelFile::read(bytes).map(drop).map_err(|error| error.to_string()),
            Self::Cabinet => Ir::from_file(bytes).map(drop).map_err(|error| error.to_string()),
            Self::Preset => {
                let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
                Preset::parse(text).map(drop).map_err(|error| error.to_string())
            }
        }
    }
}

/// The results of earlier checks. A file is only checked again after it has changed.
#[derive(Debug, Default)]
pub struct Checks(Mutex<HashMap<String, Checked>>);

#[derive(Debug, Clone)]
struct Checked {
    version: Option<Version>,
    problem: Option<String>,
}

impl Checks {
    /// The current files of a library. Reads those that have changed; a file that cannot be played is among the
    /// other files.
    #[must_use]
    pub fn files(&self, library: &Library) -> Files {
        let mut files = library.files();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut current = HashMap::new();
        let mut problems = Vec::new();
        let Files { models, cabinets, presets, .. } = &mut files;
        for (kind, names) in [(Kind::Model, models), (Kind::Cabinet, cabinets), (Kind::Preset, presets)] {
            names.retain(|name| {
                let path = library.folder().join(name);
                let version = version(&path);
                let earlier = known.remove(name).filter(|earlier| earlier.version == version);
                let checked = earlier.unwrap_or_else(|| Checked { version, problem: problem(kind, &path) });
                if let Some(problem) = &checked.problem {
                    problems.push((name.clone(), problem.clone()));
                }
                let is_playable = checked.problem.is_none();
                current.insert(name.clone(), checked);
                is_playable
            });
        }
        *known = mem::take(&mut current);
        for (name, problem) in problems {
            files.add_other(&name, &problem);
        }
        files.sort();
        files
    }
}

fn version(path: &Path) -> Option<Version> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn problem(kind: Kind, path: &Path) -> Option<String> {
    match read_regular(path, amp::MAX_FILE_BYTES) {
        Ok(bytes) => kind.check(&bytes).err(),
        Err(error) => Some(format!("cannot read it: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig_loader::RigLoader;

    #[test]
    fn files_that_cannot_be_played_are_listed_apart_until_they_are_corrected() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let wire = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
            "config": {"receptive_field": 1, "bias": false}, "weights": [1.0]}"#;
        write("good.nam", wire);
        write("broken.nam", "{");
        write("settings.json", r#"{"theme": "dark"}"#);
        write("song.wav", "ID3");
        write("good.toml", "[gate]\non = true\n");
        write("bad.toml", "[gate]\nonn = true\n");
        let library = Library::open(folder.path(), RigLoader::new(|_| {})).unwrap();
        let checks = Checks::default();
        let files = checks.files(&library);
        assert_eq!((files.models, files.presets), (vec!["good.nam".to_owned()], vec!["good.toml".to_owned()]));
        assert!(files.cabinets.is_empty());
        let others: Vec<&str> = files.others.iter().map(|other| other.file.as_str()).collect();
        assert_eq!(others, ["bad.toml", "broken.nam", "settings.json", "song.wav"]);
        assert!(files.others[0].reason.contains("onn"), "{:?}", files.others);

        // An unchanged file is not read again; a changed one is.
        write("broken.nam", &format!(" {wire}"));
        let files = checks.files(&library);
        assert_eq!((files.models, files.others_count), (vec!["broken.nam".to_owned(), "good.nam".to_owned()], 3));
    }
}
