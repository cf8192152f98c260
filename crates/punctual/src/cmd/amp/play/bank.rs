//! What a performance can play, and what a player's MIDI makes of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use amp::{Chain, Controls, Rig};
use anyhow::Context;
use play::midi::Event;

use crate::{
    cli::AmpPlay,
    cmd::amp::rig::{self, read_preset},
};

/// Rigs in the order of MIDI's programs, and which one plays.
pub struct PresetBank {
    rigs: Vec<(String, Rig)>,
    current: usize,
    /// The MIDI channel that is listened to, 0 to 15; all where `None`.
    channel: Option<u8>,
}

impl PresetBank {
    /// Reads all of it, so that a mistake is told before anything plays. What the command line asks for comes first, then the
    /// presets of the folder.
    pub fn read(options: &AmpPlay) -> anyhow::Result<Self> {
        let mut rigs: Vec<(String, Rig)> = Vec::new();
        if options.rig.is_asked_for() || options.presets.is_none() {
            let named = options.rig.preset.as_ref().or(options.rig.model.as_ref()).or(options.rig.cab.as_ref());
            rigs.push((named.map_or_else(String::new, |path| stem(path)), rig::read(&options.rig)?));
        }
        for path in options.presets.iter().map(|folder| files(folder)).collect::<anyhow::Result<Vec<_>>>()?.concat() {
            let folder = path.parent().unwrap_or(Path::new(""));
            let others: Vec<&Rig> = rigs.iter().map(|(_, rig)| rig).collect();
            let rig = rig::of(&read_preset(&path)?, folder, &others)?;
            rigs.push((stem(&path), rig));
        }
        let channel = options.midi_channel.map(|channel| channel - 1);
        Ok(Self { rigs, current: 0, channel })
    }

    /// The chain with what is played first, at this rate, and its controls.
    pub fn chain(&self, rate_hz: u32) -> anyhow::Result<(Chain, Controls)> {
        let rig = self.rig();
        Ok(Chain::new(rate_hz, &rig.settings, rig::parts(rig, rate_hz)?))
    }

    fn rig(&self) -> &Rig {
        &self.rigs[self.current].1
    }

    /// What plays, in words.
    pub fn playing(&self) -> String {
        let name = &self.rigs[self.current].0;
        match self.rigs.len() {
            1 => name.clone(),
            all => format!("{name} ({} of {all})", self.current + 1),
        }
    }

    /// The file of a model that plays.
    pub fn model(&self, place: usize) -> String {
        self.rig().model(place).map_or_else(|| "the model".to_owned(), |(path, _)| stem(path))
    }

    /// Does what came by MIDI. What cannot be done changes nothing.
    pub fn follow(&mut self, event: Event, controls: &mut Controls) -> anyhow::Result<()> {
        let (Event::Program { channel, .. } | Event::Control { channel, .. }) = event;
        if self.channel.is_some_and(|ours| ours != channel) {
            return Ok(());
        }
        match event {
            Event::Program { program, .. } => self.choose(program.into(), controls),
            Event::Control { controller, value, .. } => match self.rig().midi.get(&controller) {
                Some(parameter) => Ok(controls.set(*parameter, parameter.denormalized(f32::from(value) / 127.0))?),
                None => Ok(()),
            },
        }
    }

    fn choose(&mut self, program: usize, controls: &mut Controls) -> anyhow::Result<()> {
        let all = self.rigs.len();
        let (name, rig) = self.rigs.get(program).with_context(|| {
            format!("MIDI asks for preset {}, and there are {all}: put more into the folder of --presets", program + 1)
        })?;
        let exchange = rig::diff_from(rig, self.rig(), controls.rate_hz()).with_context(|| format!("preset {name}"))?;
        controls.exchange(exchange, Some(&rig.settings))?;
        self.current = program;
        Ok(())
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The presets of a folder, in the order of their names.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let what = || format!("cannot read the folder {}", folder.display());
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).with_context(what)?.collect();
    let mut files: Vec<PathBuf> = entries.with_context(what)?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    anyhow::ensure!(!files.is_empty(), "{} has no preset: put files that end in .toml there", folder.display());
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use amp::Parameter;
    use clap::Parser;

    use crate::cli;

    fn options(arguments: &[&str]) -> AmpPlay {
        let words = ["punctual", "amp", "play"].into_iter().chain(arguments.iter().copied());
        match cli::Cli::parse_from(words).command {
            Some(cli::Command::Amp(cli::Amp::Play(options))) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn midi_chooses_presets_and_turns_what_they_say() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("1-clean.toml", "[output]\ngain_db = -6\n[midi]\n7 = 'output.gain_db'\n");
        write("2-dirty.toml", "[input]\ngain_db = 20\n");
        write("notes.txt", "no preset");
        let mut bank = PresetBank::read(&options(&[
            "--presets",
            &folder.path().display().to_string(),
            "--midi-channel",
            "3",
            "--midi",
            "x",
        ]))
        .unwrap();
        let (mut chain, mut controls) = bank.chain(48_000).unwrap();
        assert_eq!(bank.playing(), "1-clean (1 of 2)");
        let mut play = || chain.process(&[0.0; 64], &mut [0.0; 64], &mut [0.0; 64]);

        let control = |channel, value| Event::Control { channel, controller: 7, value };
        bank.follow(control(2, 127), &mut controls).unwrap();
        bank.follow(control(4, 0), &mut controls).unwrap();
        play();
        assert_eq!(controls.settings().get(Parameter::OutputGain), 20.0);
        bank.follow(Event::Program { channel: 2, program: 1 }, &mut controls).unwrap();
        play();
        assert_eq!(
            (bank.playing(), controls.settings().get(Parameter::InputGain)),
            ("2-dirty (2 of 2)".to_owned(), 20.0)
        );
        assert_eq!(controls.settings().get(Parameter::OutputGain), 0.0);
        // It turns nothing in this one.
        bank.follow(control(2, 0), &mut controls).unwrap();
        assert_eq!(controls.settings().get(Parameter::OutputGain), 0.0);
        let error = bank.follow(Event::Program { channel: 2, program: 9 }, &mut controls).unwrap_err().to_string();
        assert!(error.contains("preset 10, and there are 2"), "{error}");
        assert_eq!(bank.playing(), "2-dirty (2 of 2)");
    }

    #[test]
    fn a_folder_without_presets_and_a_wrong_preset_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let error =
            |_: ()| PresetBank::read(&options(&["--presets", &path])).err().map(|error| format!("{error:#}")).unwrap();
        assert!(error(()).contains("has no preset"), "{}", error(()));
        fs::write(folder.path().join("a.toml"), "[midi]\n200 = 'tone.bass_db'").unwrap();
        assert!(error(()).contains("a.toml: line 2: [midi] must be"), "{}", error(()));
    }
}
