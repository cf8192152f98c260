//! The side of an instance that reads files: it runs on the worker thread of the host, and never on its audio thread.

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
    chosen: [Option<PathBuf>; FileProperty::ALL.len()],
}

impl Loader {
    /// A loader without files and without a chain.
    ///
    /// # Errors
    /// None is expected: there are no files to read.
    pub fn new() -> Result<Self, String> {
        let rig = Rig::load(RigSpec::default(), read).map_err(|error| error.to_string())?;
        Ok(Self { controls: None, rig, chosen: [const { None }; FileProperty::ALL.len()] })
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

    /// The chosen file.
    #[must_use]
    pub fn file(&self, file: FileProperty) -> Option<&Path> {
        self.chosen[file.index()].as_deref()
    }

    /// Loads files, and sends them to the chain if there is one; `None` removes one. A preset replaces the files that were chosen before it.
    /// Nothing changes after an error.
    ///
    /// # Errors
    /// A sentence for the user: which file cannot be played, and why.
    pub fn choose(&mut self, files: &[(FileProperty, Option<PathBuf>)]) -> Result<(), String> {
        let mut chosen = self.chosen.clone();
        for (file, path) in files {
            if *file == FileProperty::Preset {
                chosen = [const { None }; FileProperty::ALL.len()];
            }
            chosen[file.index()].clone_from(path);
        }
        let rig = Rig::load_sharing(spec(&chosen)?, &[&self.rig], read, version).map_err(|error| error.to_string())?;
        if let Some(controls) = &mut self.controls {
            let (exchange, _) = rig.diff_from(&self.rig, controls.rate_hz()).map_err(|error| error.to_string())?;
            controls.exchange(exchange, None).map_err(|error| error.to_string())?;
        }
        (self.rig, self.chosen) = (rig, chosen);
        Ok(())
    }

    /// Frees the parts that the chain no longer plays.
    pub fn collect(&mut self) {
        if let Some(controls) = &mut self.controls {
            controls.collect();
        }
    }
}

/// The files of a choice. The settings of a preset are those of the ports.
fn spec(chosen: &[Option<PathBuf>; FileProperty::ALL.len()]) -> Result<RigSpec, String> {
    let [preset, model, cabinet, reverb_ir] = chosen;
    let mut spec = match preset {
        Some(path) => {
            let preset = Preset::read(path, read).map_err(|error| error.to_string())?;
            preset.into_spec(path.parent().unwrap_or(Path::new("")))
        }
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
