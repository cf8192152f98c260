//! The side of an instance that reads files: it runs on the worker thread of an LV2 host or on the main thread of a CLAP host, and
//! never on the audio thread.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use amp::{
    Chain, Controls, Preset, Rig, Settings,
    preset::{IrPart, ModelPart},
    rig::{RigSpec, Version},
};

use crate::ports::FileProperty;

/// The files of an instance, and the control side of its chain.
#[derive(Debug)]
pub struct Loader {
    /// `None` without a chain.
    controls: Option<Controls>,
    rig: Rig,
    chosen: Choice,
    /// Files of a restored state that could not be loaded. They are saved again, so that a session keeps a file that is
    /// missing for now.
    absent: Choice,
}

/// The file of each property, in the order of [`FileProperty::ALL`].
type Choice = [Option<PathBuf>; FileProperty::ALL.len()];

const NONE: Choice = [const { None }; FileProperty::ALL.len()];

impl Loader {
    /// A loader without files and without a chain.
    ///
    /// # Errors
    /// None is expected: there are no files to read.
    pub fn new() -> Result<Self, String> {
        let rig = Rig::load(RigSpec::default(), read).map_err(|error| error.to_string())?;
        Ok(Self { controls: None, rig, chosen: NONE, absent: NONE })
    }

    /// A chain of the chosen files at this sample rate, Hz. It gets the files that are chosen later, too, instead of the chain
    /// before it.
    ///
    /// # Errors
    /// A sentence for the user: which file cannot be played at this rate, and why.
    pub fn chain(&mut self, rate_hz: u32, settings: &Settings) -> Result<Chain, String> {
        let (parts, _) = self.rig.parts(rate_hz).map_err(|error| error.to_string())?;
        let (chain, controls) = Chain::new(rate_hz, settings, parts);
        self.controls = Some(controls);
        Ok(chain)
    }

    /// Forgets the chain: it has ended.
    pub fn release_chain(&mut self) {
        self.controls = None;
    }

    /// The settings of the chosen preset; the defaults without one.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.rig.settings
    }

    /// The chosen file.
    #[must_use]
    pub fn file(&self, file: FileProperty) -> Option<&Path> {
        self.chosen[file.index()].as_deref()
    }

    /// The file to save: that of the restored state if it could not be loaded, otherwise the chosen one.
    #[must_use]
    pub fn file_of_state(&self, file: FileProperty) -> Option<&Path> {
        self.absent[file.index()].as_deref().or(self.file(file))
    }

    /// Loads files, and sends them to the chain if there is one; `None` removes one. A preset replaces the files that were chosen before it.
    /// Nothing changes after an error.
    ///
    /// # Errors
    /// A sentence for the user: which file cannot be played, and why.
    pub fn choose(&mut self, files: &[(FileProperty, Option<PathBuf>)]) -> Result<(), String> {
        let (chosen, rig) = self.load(files)?;
        if let Some(controls) = &mut self.controls {
            let (exchange, _) = rig.diff_from(&self.rig, controls.rate_hz()).map_err(|error| error.to_string())?;
            controls.exchange(exchange, None).map_err(|error| error.to_string())?;
        }
        for (file, _) in files {
            match file {
                FileProperty::Preset => self.absent = NONE,
                file => self.absent[file.index()] = None,
            }
        }
        (self.rig, self.chosen) = (rig, chosen);
        Ok(())
    }

    /// Replaces all files by those of a saved state, a preset first. Loads the others if some cannot be loaded.
    ///
    /// # Errors
    /// A sentence for the user about each file that cannot be played.
    pub fn restore(&mut self, files: Vec<(FileProperty, PathBuf)>) -> Result<(), String> {
        let (mut usable, mut absent, mut errors) = (vec![(FileProperty::Preset, None)], NONE, Vec::new());
        let mut all = NONE;
        for (file, path) in files {
            all[file.index()] = Some(path.clone());
            usable.push((file, Some(path)));
            if let Err(error) = self.load(&usable) {
                absent[file.index()] = usable.pop().and_then(|(_, path)| path);
                errors.push(error);
            }
        }
        if let Err(error) = self.choose(&usable) {
            // The chain keeps its files, but the state that is saved next those of this one.
            self.absent = all;
            return Err(error);
        }
        self.absent = absent;
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    /// The choice and its parts after a change. Parts that are in use already are not read again.
    fn load(&self, files: &[(FileProperty, Option<PathBuf>)]) -> Result<(Choice, Rig), String> {
        let mut chosen = self.chosen.clone();
        for (file, path) in files {
            if *file == FileProperty::Preset {
                chosen = NONE;
            }
            chosen[file.index()].clone_from(path);
        }
        let rig = Rig::load_sharing(spec(&chosen)?, &[&self.rig], read, version).map_err(|error| error.to_string())?;
        Ok((chosen, rig))
    }

    /// Frees the parts that the chain no longer plays.
    pub fn collect(&mut self) {
        if let Some(controls) = &mut self.controls {
            controls.collect();
        }
    }
}

/// The files of a choice. The settings of a preset are those of the ports.
fn spec(chosen: &Choice) -> Result<RigSpec, String> {
    let [preset, model, cabinet, reverb_ir] = chosen;
    let mut spec = match preset {
        Some(path) => spec_of_preset(path)?,
        None => RigSpec::default(),
    };
    if let Some(path) = model {
        let part = (path.clone(), ModelPart::new(path.display().to_string()));
        match spec.models.first_mut() {
            Some(first) => *first = part,
            None => spec.models.push(part),
        }
    }
    if let Some(path) = cabinet {
        spec.irs = vec![(path.clone(), IrPart::new(path.display().to_string()))];
    }
    if let Some(path) = reverb_ir {
        spec.reverb_ir = Some((path.clone(), IrPart::reverb(path.display().to_string())));
    }
    Ok(spec)
}

/// The files of a preset: relative to its folder or, if they are not all there, to that of the file to which it links. Hosts
/// such as Ardour keep a link to the preset with their session.
fn spec_of_preset(path: &Path) -> Result<RigSpec, String> {
    let preset = Preset::read(path, read).map_err(|error| error.to_string())?;
    let spec_in = |path: &Path| preset.clone().into_spec(path.parent().unwrap_or(Path::new("")));
    let spec = spec_in(path);
    let target = fs::canonicalize(path).map(|target| spec_in(&target)).ok();
    Ok(match target.filter(|target| target.paths().all(Path::exists) && !spec.paths().all(Path::exists)) {
        Some(target) => target,
        None => spec,
    })
}

/// Reads a regular file: opening a pipe could wait for ever.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(amp::MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > amp::MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it is larger than {} MiB", amp::MAX_FILE_BYTES >> 20)));
    }
    Ok(bytes)
}

fn version(path: &Path) -> Option<Version> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A chain that does not run takes only some files.
    #[test]
    fn a_state_keeps_files_that_the_chain_did_not_take() {
        let folder = tempfile::tempdir().unwrap();
        let restored = |n: usize| {
            let path = folder.path().join(format!("{n}.nam"));
            let text = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
                "config": {"receptive_field": 1, "bias": false}, "weights": [0.5]}"#;
            fs::write(&path, text).unwrap();
            path
        };
        let mut loader = Loader::new().unwrap();
        let _chain = loader.chain(48_000, &Settings::default()).unwrap();
        let mut restore = |n: usize| {
            let path = restored(n);
            let result = loader.restore(vec![(FileProperty::Model, path.clone())]);
            assert_eq!(loader.file_of_state(FileProperty::Model), Some(&*path), "{n}");
            result
        };
        let taken = (0..100).take_while(|n| restore(*n).is_ok()).count();
        assert!((1..100).contains(&taken), "{taken}");
    }

    #[test]
    fn files_of_a_preset_are_found_through_a_link() {
        let (tones, session) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(tones.path().join("lead.toml"), "[[model]]\nfile = 'wire.nam'\n").unwrap();
        fs::write(tones.path().join("wire.nam"), "").unwrap();
        let link = session.path().join("lead.toml");
        symlink(tones.path().join("lead.toml"), &link).unwrap();
        let model = |spec: &RigSpec| spec.models[0].0.clone();
        let of_target = fs::canonicalize(tones.path()).unwrap().join("wire.nam");
        assert_eq!(model(&spec_of_preset(&link).unwrap()), of_target);
        // The files next to the link come first; without any, the error names those.
        fs::write(session.path().join("wire.nam"), "").unwrap();
        assert_eq!(model(&spec_of_preset(&link).unwrap()), session.path().join("wire.nam"));
        fs::remove_file(of_target).unwrap();
        fs::remove_file(session.path().join("wire.nam")).unwrap();
        assert_eq!(model(&spec_of_preset(&link).unwrap()), session.path().join("wire.nam"));
    }
}
