//! A bank of presets, and how MIDI chooses and changes them.

mod pending;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use amp::{Chain, Controls, Rig, chain::ControlError, rig::RigError};
use thiserror::Error;

use self::pending::PendingChanges;
use crate::{
    midi::Event,
    rig_loader::{RigLoadError, RigLoader, preset_spec, read_preset},
};

/// Number of MIDI programs.
const PROGRAMS: usize = 128;

/// Why the presets cannot be loaded.
#[derive(Debug, Error)]
pub enum BankError {
    /// The folder cannot be read.
    #[error("cannot read the folder {}: {error}{}", folder.display(), folder_remedy(error))]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The folder has no presets.
    #[error("{} has no preset: put files that end in .toml there", .0.display())]
    NoPresets(PathBuf),
    /// A preset cannot be played.
    #[error(transparent)]
    Load(#[from] RigLoadError),
}

/// What to do about an error in reading a folder of models, cabinets and presets; empty if its text says that.
#[must_use]
pub fn folder_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotADirectory => "; name the folder that contains it",
        _ => record::file::remedy_of_reading(error),
    }
}

impl From<RigError> for BankError {
    fn from(error: RigError) -> Self {
        Self::Load(error.into())
    }
}

impl BankError {
    /// True if the files are valid, but the user chose something that they do not offer.
    #[must_use]
    pub fn is_choice(&self) -> bool {
        matches!(self, Self::Load(error) if error.is_choice())
    }
}

/// Why a MIDI message cannot be carried out.
#[derive(Debug, Error)]
pub enum MidiError {
    /// The bank has no preset for the program.
    #[error("MIDI chose preset {number}, but there are only {count}: put more into the folder of --presets")]
    NoPreset {
        /// Number of the preset, from 1.
        number: usize,
        /// Number of presets.
        count: usize,
    },
    /// The preset cannot be played.
    #[error("preset {name}: {error}")]
    Load {
        /// Name of the preset.
        name: String,
        /// Why it cannot be played.
        error: Box<RigLoadError>,
    },
    /// The audio thread does not take the change.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl MidiError {
    fn is_busy(&self) -> bool {
        matches!(self, Self::Control(ControlError::Busy))
    }
}

/// Presets in the order of the MIDI programs, and the one that plays.
#[derive(Debug)]
pub struct PresetBank {
    /// Name and rig of each preset.
    rigs: Vec<(String, Rig)>,
    current: usize,
    pending: PendingChanges,
    loader: RigLoader,
}

impl PresetBank {
    /// A bank of at least one rig with its name.
    #[must_use]
    pub fn new(rigs: Vec<(String, Rig)>, loader: RigLoader) -> Self {
        Self { rigs, current: 0, pending: PendingChanges::default(), loader }
    }

    /// Appends the presets of a folder to `rigs`, in the order of their names. Loads all files now, so that errors show
    /// before anything plays.
    ///
    /// # Errors
    /// [`BankError`].
    pub fn load_folder(folder: &Path, rigs: &mut Vec<(String, Rig)>, loader: RigLoader) -> Result<(), BankError> {
        for path in preset_files(folder)? {
            let chosen = preset_spec(read_preset(&path)?, folder)?;
            let loaded: Vec<&Rig> = rigs.iter().map(|(_, rig)| rig).collect();
            let rig = loader.load(chosen, &loaded)?;
            rigs.push((file_stem(&path), rig));
        }
        Ok(())
    }

    /// A note for the user if there are more presets than MIDI programs.
    #[must_use]
    pub fn unreachable_note(&self) -> Option<String> {
        let ((first, _), count) = (self.rigs.get(PROGRAMS)?, self.rigs.len());
        let which = if count > PROGRAMS + 1 { format!("{first} and the following ones") } else { first.clone() };
        Some(format!(
            "there are {count} presets, but only {PROGRAMS} MIDI programs: {which} cannot be chosen; remove some from the folder of --presets"
        ))
    }

    /// The chain of the first preset, at this sample rate, Hz, and its controls.
    ///
    /// # Errors
    /// [`BankError::Load`].
    pub fn chain(&self, rate_hz: u32) -> Result<(Chain, Controls), BankError> {
        let rig = self.rig();
        Ok(Chain::new(rate_hz, &rig.settings, self.loader.parts(rig, rate_hz)?))
    }

    fn rig(&self) -> &Rig {
        &self.rigs[self.current].1
    }

    /// The name of the preset that plays, with its number if there are several.
    #[must_use]
    pub fn describe(&self) -> String {
        let name = &self.rigs[self.current].0;
        match self.rigs.len() {
            1 => name.clone(),
            count => format!("{name} ({} of {count})", self.current + 1),
        }
    }

    /// The file of the first (0) or second (1) model that plays, without its extension.
    #[must_use]
    pub fn model_name(&self, index: usize) -> String {
        self.rig().model(index).map_or_else(|| "the model".to_owned(), |(path, _)| file_stem(path))
    }

    /// Carries out MIDI messages: only the last preset and the last value of each parameter. Changes that do not fit
    /// into the queue of the audio thread are sent at the next call. Returns true if a model was exchanged for another.
    ///
    /// # Errors
    /// [`MidiError`]; the message that caused it changes nothing.
    pub fn follow(&mut self, events: &[Event], controls: &mut Controls) -> Result<bool, MidiError> {
        let mut handled = Ok(());
        for event in events {
            if let Err(error) = self.handle(*event) {
                handled = Err(error);
            }
        }
        match self.send_pending(controls) {
            Err(error) if error.is_busy() => {
                // A burst of messages fills the queue for a moment only. If no more have come, the audio thread has had
                // time to empty it.
                let report = events.is_empty() && !self.pending.busy_reported;
                self.pending.busy_reported |= report;
                if report { Err(error) } else { handled.map(|()| false) }
            }
            sent => {
                self.pending.busy_reported = false;
                handled.and(sent)
            }
        }
    }

    /// Adds a message to the pending changes.
    fn handle(&mut self, event: Event) -> Result<(), MidiError> {
        match event {
            Event::Program { program, .. } => {
                let (program, count) = (usize::from(program), self.rigs.len());
                if program >= count {
                    return Err(MidiError::NoPreset { number: program + 1, count });
                }
                self.pending.choose(program);
            }
            Event::Control { controller, value, .. } => {
                // The MIDI map of the preset that will play by then.
                let (_, rig) = &self.rigs[self.pending.program().unwrap_or(self.current)];
                if let Some(parameter) = rig.midi.get(&controller) {
                    self.pending.set(*parameter, parameter.denormalized(f32::from(value) / 127.0));
                }
            }
        }
        Ok(())
    }

    /// Sends the pending changes to the audio thread; returns true if a model was exchanged for another.
    fn send_pending(&mut self, controls: &mut Controls) -> Result<bool, MidiError> {
        let mut chosen = Ok(false);
        if let Some(program) = self.pending.program() {
            chosen = self.choose(program, controls);
            match &chosen {
                Err(error) if error.is_busy() => return chosen,
                chosen => self.pending.finish_choice(chosen.is_ok()),
            }
        }
        self.pending.send_values(controls)?;
        chosen
    }

    fn choose(&mut self, program: usize, controls: &mut Controls) -> Result<bool, MidiError> {
        let (name, rig) = &self.rigs[program];
        let exchange = self
            .loader
            .exchange(rig, self.rig(), controls.rate_hz())
            .map_err(|error| MidiError::Load { name: name.clone(), error: error.into() })?;
        let is_other_model = (0..2).any(|index| match (rig.model(index), self.rig().model(index)) {
            (Some((new, _)), Some((old, _))) => new != old,
            _ => false,
        });
        controls.exchange(exchange, Some(&rig.settings))?;
        self.current = program;
        Ok(is_other_model)
    }
}

/// The file name without folders and extension, used as the name of a preset or model.
#[must_use]
pub fn file_stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The presets of a folder, in the order of their names.
fn preset_files(folder: &Path) -> Result<Vec<PathBuf>, BankError> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let entries = entries.map_err(|error| BankError::Folder { folder: folder.to_owned(), error })?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    if files.is_empty() { Err(BankError::NoPresets(folder.to_owned())) } else { Ok(files) }
}

#[cfg(test)]
mod tests {
    use amp::Parameter;

    use super::*;

    /// The bank of a folder.
    fn load(folder: &Path) -> Result<PresetBank, BankError> {
        let (mut rigs, loader) = (Vec::new(), RigLoader::new(|_| {}));
        PresetBank::load_folder(folder, &mut rigs, loader)?;
        Ok(PresetBank::new(rigs, loader))
    }

    #[test]
    fn midi_chooses_presets_and_sets_their_parameters() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("1-clean.toml", "[output]\ngain_db = -6\n[midi]\n7 = 'output.gain_db'\n");
        write("2-dirty.toml", "[input]\ngain_db = 20\n");
        write("notes.txt", "no preset");
        let mut bank = load(folder.path()).unwrap();
        let (mut chain, mut controls) = bank.chain(48_000).unwrap();
        assert_eq!(bank.describe(), "1-clean (1 of 2)");
        let mut play = || chain.process(&[0.0; 64], &mut [0.0; 64], &mut [0.0; 64]);

        let control = |channel, value| Event::Control { channel, controller: 7, value };
        let program = |program| Event::Program { channel: 2, program };
        bank.follow(&[control(2, 127)], &mut controls).unwrap();
        play();
        assert_eq!(controls.settings().get(Parameter::OutputGain), 20.0);
        bank.follow(&[program(1)], &mut controls).unwrap();
        play();
        assert_eq!(
            (bank.describe(), controls.settings().get(Parameter::InputGain)),
            ("2-dirty (2 of 2)".to_owned(), 20.0)
        );
        assert_eq!(controls.settings().get(Parameter::OutputGain), 0.0);
        // This preset has no MIDI map.
        bank.follow(&[control(2, 0)], &mut controls).unwrap();
        assert_eq!(controls.settings().get(Parameter::OutputGain), 0.0);
        let error = bank.follow(&[program(9)], &mut controls).unwrap_err().to_string();
        assert!(error.contains("preset 10, but there are only 2"), "{error}");
        assert_eq!(bank.describe(), "2-dirty (2 of 2)");
    }

    /// A bank of three presets: controllers 7 and 8 are mapped in the first one, 7 to another parameter in the second.
    fn bank() -> PresetBank {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("1.toml", "[midi]\n7 = 'output.gain_db'\n8 = 'tone.bass_db'\n");
        write("2.toml", "[tone]\ntreble_db = 3\n[midi]\n7 = 'input.gain_db'\n");
        write("3.toml", "[tone]\ntreble_db = 6\n");
        load(folder.path()).unwrap()
    }

    fn control(controller: u8, value: u8) -> Event {
        Event::Control { channel: 0, controller, value }
    }

    fn program(program: u8) -> Event {
        Event::Program { channel: 0, program }
    }

    #[test]
    fn keeps_the_last_values_of_a_burst() {
        let mut bank = bank();
        let (_chain, mut controls) = bank.chain(48_000).unwrap();
        // More changes than fit into the queue, which nothing empties meanwhile.
        let values = (0..=127_u8).cycle().take(1000);
        let burst: Vec<Event> = values.flat_map(|value| [7, 8].map(|number| control(number, value))).collect();
        bank.follow(&[&burst[..], &[control(7, 127), control(8, 0)]].concat(), &mut controls).unwrap();
        let get = |controls: &Controls, it| controls.settings().get(it);
        assert_eq!([Parameter::OutputGain, Parameter::Bass].map(|it| get(&controls, it)), [20.0, -15.0]);

        // The same for presets. A control change after a program change uses the MIDI map of the new preset.
        let programs: Vec<Event> = (0..200).map(|n| program(n % 3)).collect();
        bank.follow(&[&programs[..], &[program(1), control(7, 127), control(8, 127)]].concat(), &mut controls).unwrap();
        let values = [Parameter::Treble, Parameter::InputGain, Parameter::OutputGain, Parameter::Bass];
        assert_eq!(values.map(|it| get(&controls, it)), [3.0, 40.0, 0.0, 0.0]);
        // A preset that does not exist changes nothing, but the other messages count.
        let error = bank.follow(&[program(9), control(7, 0)], &mut controls).unwrap_err().to_string();
        assert!(error.contains("preset 10, but there are only 3"), "{error}");
        assert_eq!((bank.describe().as_str(), get(&controls, Parameter::InputGain)), ("2 (2 of 3)", -40.0));
    }

    #[test]
    fn retries_when_the_queue_is_full_and_reports_it_once() {
        let mut bank = bank();
        let (mut chain, mut controls) = bank.chain(48_000).unwrap();
        for events in [&[control(7, 127)][..], &[control(7, 0), program(1), control(7, 127)]] {
            while controls.set(Parameter::Middle, 1.0).is_ok() {}
            bank.follow(events, &mut controls).expect("not reported while events come");
            let error = bank.follow(&[], &mut controls).unwrap_err().to_string();
            assert!(error.contains("has not applied the last changes"), "{error}");
            bank.follow(&[], &mut controls).expect("already reported");
            assert_eq!(bank.describe(), "1 (1 of 3)");
            chain.process(&[0.0; 64], &mut [0.0; 64], &mut [0.0; 64]);
            bank.follow(&[], &mut controls).expect("the queue is empty");
        }
        assert_eq!(bank.describe(), "2 (2 of 3)");
        let values = [Parameter::InputGain, Parameter::OutputGain, Parameter::Middle];
        assert_eq!(values.map(|it| controls.settings().get(it)), [40.0, 0.0, 0.0]);
    }

    #[test]
    fn reports_the_exchange_of_a_model() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let linear = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
            "config": {"receptive_field": 1, "bias": false}, "weights": [1.0]}"#;
        ["a.nam", "b.nam"].iter().for_each(|name| write(name, linear));
        for (name, model) in [("1", "a"), ("2", "a"), ("3", "b")] {
            write(&format!("{name}.toml"), &format!("[[model]]\nfile = '{model}.nam'\n"));
        }
        write("4.toml", "");
        let mut bank = load(folder.path()).unwrap();
        let (mut chain, mut controls) = bank.chain(48_000).unwrap();
        let mut exchanges = |number| {
            let exchanges = bank.follow(&[program(number)], &mut controls).unwrap();
            chain.process(&[0.0; 64], &mut [0.0; 64], &mut [0.0; 64]);
            exchanges
        };
        // The same model, another one, none, and one after none.
        assert_eq!([1, 2, 3, 0].map(&mut exchanges), [false, true, false, false]);
    }

    #[test]
    fn notes_presets_without_a_midi_program() {
        let folder = tempfile::tempdir().unwrap();
        let note_with = |names: std::ops::Range<usize>| {
            names.for_each(|n| fs::write(folder.path().join(format!("{n:03}.toml")), "").unwrap());
            load(folder.path()).unwrap().unreachable_note()
        };
        assert_eq!(note_with(0..128), None);
        let note = note_with(128..129).unwrap();
        assert!(note.contains("there are 129 presets") && note.contains(": 128 cannot be chosen"), "{note}");
        let note = note_with(129..140).unwrap();
        assert!(note.contains("there are 140 presets"), "{note}");
        assert!(note.contains(": 128 and the following ones cannot be chosen"), "{note}");
    }

    #[test]
    fn rejects_an_empty_folder_and_an_invalid_preset() {
        let folder = tempfile::tempdir().unwrap();
        let error = || load(folder.path()).unwrap_err().to_string();
        assert!(error().contains("has no preset"), "{}", error());
        fs::write(folder.path().join("a.toml"), "[midi]\n200 = 'tone.bass_db'").unwrap();
        assert!(error().contains("a.toml: line 2: [midi] must be"), "{}", error());
    }
}
