//! Files that the page adds to a library.

use std::{fs, path::Path};

use record::{
    file::{write_new, write_unfollowed},
    visible::is_hidden,
};

use super::{Library, checks::Kind, is_cabinet_extension, is_model_extension};
use crate::page::{Slot, Upload, UploadError};

/// Maximum length of a name without its extension, bytes. File systems allow 255, also for the name while it is written.
const MAX_STEM: usize = 180;

impl Library {
    /// Adds a model or a cabinet to the folder itself, under its own name with unusual characters replaced. Presets are
    /// refused, because they could name any file of this machine.
    ///
    /// # Errors
    /// [`UploadError`]; the folder is unchanged then.
    pub fn add(&self, upload: &Upload) -> Result<(String, Slot), UploadError> {
        let (name, kind, slot) = safe_name(&upload.name).map_err(UploadError::Refused)?;
        kind.check(&upload.bytes)
            .map_err(|problem| UploadError::Refused(format!("{name} was not added: {problem}")))?;
        let path = self.folder().join(&name);
        let written = match fs::symlink_metadata(&path) {
            Err(_) => write_new(&path, &upload.bytes),
            Ok(found) if !found.is_file() => {
                let text = format!("{name} exists already and is a link or a folder: rename the new file");
                return Err(UploadError::Refused(text));
            }
            Ok(_) if !upload.overwrite => return Err(UploadError::Exists(name)),
            Ok(_) => write_unfollowed(&path, &upload.bytes),
        };
        written.map_err(|error| UploadError::Refused(error.to_string()))?;
        Ok((name, slot))
    }
}

/// The file name to use for a name of outside origin, its kind, and the slot that it is for.
///
/// # Errors
/// If its extension is not one of a model or a cabinet.
fn safe_name(name: &str) -> Result<(String, Kind, Slot), String> {
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let path = Path::new(base);
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    let (kind, slot) = if is_model_extension(&extension) {
        (Kind::Model, Slot::Model1)
    } else if is_cabinet_extension(&extension) {
        (Kind::Cabinet, Slot::Cabinet)
    } else if extension == "toml" {
        return Err("presets cannot be added on the page, because they name files: copy it into the folder".to_owned());
    } else {
        return Err("only models (.nam, .json, .aidax) and cabinets (.wav, .flac, .aiff) can be added".to_owned());
    };
    let is_usual = |c: char| !is_hidden(c) && (c.is_alphanumeric() || " -_.,()+#&".contains(c));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let replaced: String = stem.chars().map(|c| if is_usual(c) { c } else { '_' }).collect();
    let mut stem = replaced.trim().trim_start_matches(['.', '-', ' ']);
    while stem.len() > MAX_STEM {
        stem = &stem[..stem.char_indices().next_back().map_or(0, |(at, _)| at)];
    }
    let stem = if stem.is_empty() { "file" } else { stem };
    Ok((format!("{stem}.{}", extension.to_string_lossy()), kind, slot))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::rig_loader::RigLoader;

    const WIRE: &str = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
        "config": {"receptive_field": 1, "bias": false}, "weights": [1.0]}"#;

    fn name(of: &str) -> Result<String, String> {
        safe_name(of).map(|(name, ..)| name)
    }

    #[test]
    fn names_are_reduced_to_harmless_ones() {
        for (given, expected) in [
            ("Deluxe 65 (clean).NAM", "Deluxe 65 (clean).nam"),
            ("../../etc/cron.d/x.nam", "x.nam"),
            ("C:\\tones\\x.wav", "x.wav"),
            ("..nam.nam", "nam.nam"),
            (" .hidden.json", "hidden.json"),
            ("a\u{1b}[2J\u{202e}\n<b>.aidax", "a__2J___b_.aidax"),
            ("Größe ♯1.wav", "Größe _1.wav"),
            ("\u{3164}.nam", "_.nam"),
            (" .nam", "file.nam"),
        ] {
            assert_eq!(name(given).as_deref(), Ok(expected), "{given:?}");
        }
        let long = name(&format!("{}.nam", "é".repeat(500))).unwrap();
        assert!(long.len() <= 200 && long.ends_with("é.nam"), "{long}");
        for (given, expected) in
            [("x.toml", "presets"), ("x.exe", "only models"), ("nam", "only"), (".nam", "only"), ("", "only")]
        {
            assert!(name(given).unwrap_err().contains(expected), "{given}");
        }
    }

    #[test]
    fn adds_only_playable_files_and_replaces_none_without_permission() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::open(folder.path(), RigLoader::new(|_| {})).unwrap();
        let add = |name: &str, text: &str, overwrite| {
            library.add(&Upload { name: name.to_owned(), overwrite, bytes: text.as_bytes().to_vec() })
        };
        let content = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(add("../x.nam", WIRE, false).unwrap(), ("x.nam".to_owned(), Slot::Model1));
        let other = format!("{WIRE} ");
        assert!(matches!(add("x.nam", &other, false), Err(UploadError::Exists(name)) if name == "x.nam"));
        assert_eq!(content("x.nam"), WIRE);
        add("x.nam", &other, true).unwrap();
        assert_eq!(content("x.nam"), other);
        for (name, text, expected) in
            [("y.nam", "{", "y.nam was not added"), ("y.wav", "RIFF", "y.wav was not added"), ("y.toml", "", "presets")]
        {
            let error = add(name, text, true).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        // A link is neither followed nor replaced.
        symlink("x.nam", folder.path().join("link.nam")).unwrap();
        symlink("nowhere", folder.path().join("broken.nam")).unwrap();
        for link in ["link.nam", "broken.nam"] {
            let error = add(link, WIRE, true).unwrap_err().to_string();
            assert!(error.contains("is a link"), "{error}");
        }
        assert_eq!(content("x.nam"), other);
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["broken.nam", "link.nam", "x.nam"]);
    }
}
