//! What a performance can play, and what a player's MIDI makes of it.

mod waiting;

use std::{
    fs,
    path::{Path, PathBuf},
};

use amp::{Chain, Controls, Rig, chain::ControlError};
use anyhow::Context;
use play::midi::Event;

use self::waiting::Waiting;
use crate::{
    cli::AmpPlay,
    cmd::amp::rig::{self, read_preset},
};

/// Programs that MIDI can tell apart.
const PROGRAMS: usize = 128;

/// Rigs in the order of MIDI's programs, and which one plays.
pub struct PresetBank {
    rigs: Vec<(String, Rig)>,
    current: usize,
    /// The MIDI channel that is listened to, 0 to 15; all where `None`.
    channel: Option<u8>,
    waiting: Waiting,
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
        Ok(Self { rigs, current: 0, channel, waiting: Waiting::default() })
    }

    /// Which presets MIDI cannot choose, in words, if there are such.
    pub fn out_of_reach(&self) -> Option<String> {
        let ((first, _), all) = (self.rigs.get(PROGRAMS)?, self.rigs.len());
        let which = if all > PROGRAMS + 1 { format!("{first} and those behind it") } else { first.clone() };
        Some(format!(
            "MIDI has {PROGRAMS} programs, and there are {all} presets: {which} cannot be chosen; put fewer into the folder of --presets"
        ))
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

    /// Does what came by MIDI since the last time: only the last preset, and the last value of each parameter, however much
    /// came. What the audio thread has no room for is tried again the next time. What cannot be done changes nothing.
    /// Answers whether a model is exchanged for another.
    pub fn follow(&mut self, events: &[Event], controls: &mut Controls) -> anyhow::Result<bool> {
        let mut understood = Ok(());
        for event in events {
            if let Err(error) = self.take(*event) {
                understood = Err(error);
            }
        }
        let told = self.tell(controls);
        let is_busy = told.as_ref().is_err_and(|error| error.downcast_ref() == Some(&ControlError::Busy));
        if !is_busy {
            self.waiting.is_told = false;
            return understood.and(told);
        }
        // A burst is over in a moment. Where nothing more has come, the audio thread has had its time.
        let is_news = events.is_empty() && !self.waiting.is_told;
        self.waiting.is_told |= is_news;
        if is_news { told } else { understood.map(|()| false) }
    }

    /// Takes an event down.
    fn take(&mut self, event: Event) -> anyhow::Result<()> {
        let (Event::Program { channel, .. } | Event::Control { channel, .. }) = event;
        if self.channel.is_some_and(|ours| ours != channel) {
            return Ok(());
        }
        match event {
            Event::Program { program, .. } => {
                let (program, all) = (usize::from(program), self.rigs.len());
                anyhow::ensure!(
                    program < all,
                    "MIDI asks for preset {}, and there are {all}: put more into the folder of --presets",
                    program + 1
                );
                self.waiting.choose(program);
            }
            Event::Control { controller, value, .. } => {
                // As the preset says that plays by then.
                let (_, rig) = &self.rigs[self.waiting.program().unwrap_or(self.current)];
                if let Some(parameter) = rig.midi.get(&controller) {
                    self.waiting.turn(*parameter, parameter.denormalized(f32::from(value) / 127.0));
                }
            }
        }
        Ok(())
    }

    /// Tells the audio thread what waits; answers whether a model is exchanged for another.
    fn tell(&mut self, controls: &mut Controls) -> anyhow::Result<bool> {
        let mut chosen = Ok(false);
        if let Some(program) = self.waiting.program() {
            chosen = self.choose(program, controls);
            match &chosen {
                Err(error) if error.downcast_ref() == Some(&ControlError::Busy) => return chosen,
                chosen => self.waiting.is_chosen(chosen.is_ok()),
            }
        }
        self.waiting.tell_turned(controls)?;
        chosen
    }

    fn choose(&mut self, program: usize, controls: &mut Controls) -> anyhow::Result<bool> {
        let (name, rig) = &self.rigs[program];
        let exchange = rig::diff_from(rig, self.rig(), controls.rate_hz()).with_context(|| format!("preset {name}"))?;
        let are_others = (0..2).any(|place| match (rig.model(place), self.rig().model(place)) {
            (Some((new, _)), Some((old, _))) => new != old,
            _ => false,
        });
        controls.exchange(exchange, Some(&rig.settings))?;
        self.current = program;
        Ok(are_others)
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
        let path = folder.path().display().to_string();
        let mut bank = PresetBank::read(&options(&["--presets", &path, "--midi-channel", "3", "--midi", "x"])).unwrap();
        let (mut chain, mut controls) = bank.chain(48_000).unwrap();
        assert_eq!(bank.playing(), "1-clean (1 of 2)");
        let mut play = || chain.process(&[0.0; 64], &mut [0.0; 64], &mut [0.0; 64]);

        let control = |channel, value| Event::Control { channel, controller: 7, value };
        let program = |program| Event::Program { channel: 2, program };
        bank.follow(&[control(2, 127), control(4, 0)], &mut controls).unwrap();
        play();
        assert_eq!(controls.settings().get(Parameter::OutputGain), 20.0);
        bank.follow(&[program(1)], &mut controls).unwrap();
        play();
        assert_eq!(
            (bank.playing(), controls.settings().get(Parameter::InputGain)),
            ("2-dirty (2 of 2)".to_owned(), 20.0)
        );
        assert_eq!(controls.settings().get(Parameter::OutputGain), 0.0);
        // It turns nothing in this one.
        bank.follow(&[control(2, 0)], &mut controls).unwrap();
        assert_eq!(controls.settings().get(Parameter::OutputGain), 0.0);
        let error = bank.follow(&[program(9)], &mut controls).unwrap_err().to_string();
        assert!(error.contains("preset 10, and there are 2"), "{error}");
        assert_eq!(bank.playing(), "2-dirty (2 of 2)");
    }

    /// A bank of three presets: both controllers turn something in the first, one of them something else in the second.
    fn bank() -> PresetBank {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("1.toml", "[midi]\n7 = 'output.gain_db'\n8 = 'tone.bass_db'\n");
        write("2.toml", "[tone]\ntreble_db = 3\n[midi]\n7 = 'input.gain_db'\n");
        write("3.toml", "[tone]\ntreble_db = 6\n");
        PresetBank::read(&options(&["--presets", &folder.path().display().to_string()])).unwrap()
    }

    fn control(controller: u8, value: u8) -> Event {
        Event::Control { channel: 0, controller, value }
    }

    fn program(program: u8) -> Event {
        Event::Program { channel: 0, program }
    }

    #[test]
    fn of_a_burst_the_last_values_count() {
        let mut bank = bank();
        let (_chain, mut controls) = bank.chain(48_000).unwrap();
        // More than can wait for the audio thread, which takes nothing meanwhile.
        let burst: Vec<Event> = (0..1000_u32).flat_map(|n| [7, 8].map(|it| control(it, (n % 128) as u8))).collect();
        bank.follow(&[&burst[..], &[control(7, 127), control(8, 0)]].concat(), &mut controls).unwrap();
        let get = |controls: &Controls, it| controls.settings().get(it);
        assert_eq!([Parameter::OutputGain, Parameter::Bass].map(|it| get(&controls, it)), [20.0, -15.0]);

        // Of presets, too, and what is turned behind one is what that one says.
        let programs: Vec<Event> = (0..200).map(|n| program(n % 3)).collect();
        bank.follow(&[&programs[..], &[program(1), control(7, 127), control(8, 127)]].concat(), &mut controls).unwrap();
        let values = [Parameter::Treble, Parameter::InputGain, Parameter::OutputGain, Parameter::Bass];
        assert_eq!(values.map(|it| get(&controls, it)), [3.0, 40.0, 0.0, 0.0]);
        // One that is not there changes nothing, and what came with it counts.
        let error = bank.follow(&[program(9), control(7, 0)], &mut controls).unwrap_err().to_string();
        assert!(error.contains("preset 10, and there are 3"), "{error}");
        assert_eq!((bank.playing().as_str(), get(&controls, Parameter::InputGain)), ("2 (2 of 3)", -40.0));
    }

    #[test]
    fn what_the_audio_thread_has_no_room_for_waits_and_is_told_once() {
        let mut bank = bank();
        let (mut chain, mut controls) = bank.chain(48_000).unwrap();
        for asked in [&[control(7, 127)][..], &[control(7, 0), program(1), control(7, 127)]] {
            while controls.set(Parameter::Middle, 1.0).is_ok() {}
            bank.follow(asked, &mut controls).expect("a burst may be over in a moment");
            let error = bank.follow(&[], &mut controls).unwrap_err().to_string();
            assert!(error.contains("has not applied the last changes"), "{error}");
            bank.follow(&[], &mut controls).expect("it has been told");
            assert_eq!(bank.playing(), "1 (1 of 3)");
            chain.process(&[0.0; 64], &mut [0.0; 64], &mut [0.0; 64]);
            bank.follow(&[], &mut controls).expect("there is room");
        }
        assert_eq!(bank.playing(), "2 (2 of 3)");
        let values = [Parameter::InputGain, Parameter::OutputGain, Parameter::Middle];
        assert_eq!(values.map(|it| controls.settings().get(it)), [40.0, 0.0, 0.0]);
    }

    #[test]
    fn one_model_for_another_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let linear = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
            "config": {"receptive_field": 1, "bias": false}, "weights": [1.0]}"#;
        ["a.nam", "b.nam"].iter().for_each(|name| write(name, linear));
        for (name, model) in [("1", "a"), ("2", "a"), ("3", "b")] {
            write(&format!("{name}.toml"), &format!("[[model]]\nfile = '{model}.nam'\n"));
        }
        write("4.toml", "");
        let mut bank = PresetBank::read(&options(&["--presets", &folder.path().display().to_string()])).unwrap();
        let (mut chain, mut controls) = bank.chain(48_000).unwrap();
        let mut exchanges = |number| {
            let exchanges = bank.follow(&[program(number)], &mut controls).unwrap();
            chain.process(&[0.0; 64], &mut [0.0; 64], &mut [0.0; 64]);
            exchanges
        };
        // The same one, another, none, one after none.
        assert_eq!([1, 2, 3, 0].map(&mut exchanges), [false, true, false, false]);
    }

    #[test]
    fn presets_that_no_program_reaches_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let told_with = |names: std::ops::Range<usize>| {
            names.for_each(|n| fs::write(folder.path().join(format!("{n:03}.toml")), "").unwrap());
            PresetBank::read(&options(&["--presets", &folder.path().display().to_string()])).unwrap().out_of_reach()
        };
        assert_eq!(told_with(0..128), None);
        let told = told_with(128..129).unwrap();
        assert!(told.contains("there are 129 presets: 128 cannot be chosen"), "{told}");
        let told = told_with(129..140).unwrap();
        assert!(told.contains("there are 140 presets: 128 and those behind it cannot be chosen"), "{told}");
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
