//! What the page shows and turns: a chain that plays, and a library to choose from.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use amp::{
    Controls, Parameter, Preset, Rig,
    chain::ValueKind,
    preset::{IrPart, ModelPart},
};
use play::{
    End, Engine, Load,
    page::{self, Slot},
};
use serde_json::{Value, json};

use super::library::Library;
use crate::cmd::amp::rig;

/// Looks at the meters that are nearer to one another share what was seen: each look begins the peaks anew.
const SEEN_FOR: Duration = Duration::from_millis(50);
/// Longest name of a preset.
const LONGEST_NAME: usize = 60;

/// What stands between the page and the chain that plays.
pub struct PageController {
    library: Library,
    playing: Mutex<Playing>,
    /// Files are loaded one after the other, in the order in which they were chosen.
    loading: Mutex<()>,
}

/// What is there at the beginning.
pub struct Start {
    /// What plays.
    pub preset: Preset,
    /// Its file in the library, if it has one.
    pub name: Option<String>,
    /// The same, with all files.
    pub rig: Rig,
}

/// What was chosen.
#[derive(Debug, Clone, Copy)]
enum Chosen<'a> {
    /// A preset, by its file.
    Preset(&'a str),
    /// Another model or cabinet.
    Part,
}

/// What plays.
struct Playing {
    controls: Controls,
    engine: Engine,
    preset: Preset,
    /// The file of the preset that was chosen or saved last: it may be written over.
    name: Option<String>,
    /// The preset's files, as they play.
    rig: Arc<Rig>,
    /// Goes up with every change, and is no other run's.
    version: u64,
    seen: Option<(Instant, Value)>,
    before: Load,
}

impl Playing {
    /// How the audio thread runs, in words.
    fn stream(&self) -> String {
        let late = self.engine.latency_frames() as usize + self.controls.delay();
        let latency_ms = late as f64 / f64::from(self.controls.rate_hz()) * 1e3;
        format!("{}, {latency_ms:.2} ms, {}", self.engine.describe(), self.engine.grant().policy)
    }
}

impl PageController {
    /// For a chain that plays, and the audio thread that plays it.
    pub fn new(library: Library, start: Start, (controls, engine): (Controls, Engine)) -> Self {
        let Start { preset, name, rig } = start;
        let rig = Arc::new(rig);
        let version = first_version();
        let playing = Playing { controls, engine, preset, name, rig, version, seen: None, before: Load::default() };
        Self { library, playing: Mutex::new(playing), loading: Mutex::new(()) }
    }

    /// Whether the audio thread has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.playing().engine.end().is_some()
    }

    /// Tells others how late what plays is by itself; to be called now and then.
    pub fn tell_delay(&self) {
        let playing = self.playing();
        playing.engine.report_delay(playing.controls.delay());
    }

    /// Ends the audio thread, whoever is being answered; says how it ended.
    pub fn stop(&self) -> End {
        let engine = &mut self.playing().engine;
        engine.join();
        engine.end().unwrap_or(End::Broken)
    }

    fn playing(&self) -> MutexGuard<'_, Playing> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays another preset, which is called this, or the one that plays with another part: what is the same in both goes on as
    /// it is.
    fn play(&self, chosen: Chosen<'_>, mut preset: Preset) -> anyhow::Result<()> {
        let (before, rate_hz) = {
            let playing = self.playing();
            (playing.rig.clone(), playing.controls.rate_hz())
        };
        let rig = self.library.rig(&preset, &[&before])?;
        let exchange = rig::diff_from(&rig, &before, rate_hz)?;
        let mut playing = self.playing();
        match chosen {
            Chosen::Preset(name) => {
                playing.controls.exchange(exchange, Some(&preset.settings))?;
                playing.name = Some(name.to_owned());
            }
            Chosen::Part => {
                playing.controls.exchange(exchange, None)?;
                // What was turned meanwhile stays, and the name if it was saved.
                preset.settings = playing.preset.settings.clone();
            }
        }
        playing.rig = Arc::new(rig);
        playing.preset = preset;
        playing.version += 1;
        Ok(())
    }

    fn try_choose(&self, slot: Slot, file: Option<&str>) -> anyhow::Result<()> {
        let _order = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let files = self.library.files();
        let known = match slot {
            Slot::Preset => &files.presets,
            Slot::Cabinet => &files.cabinets,
            Slot::Model1 | Slot::Model2 => &files.models,
        };
        if let Some(file) = file {
            anyhow::ensure!(
                known.iter().any(|name| name == file),
                "there is no {file} in the library: load the page anew"
            );
        }
        let mut preset = self.playing().preset.clone();
        let own = file.map(str::to_owned);
        match slot {
            Slot::Preset => {
                let Some(file) = file else { return Ok(()) };
                return self.play(Chosen::Preset(file), self.library.preset(file)?);
            }
            Slot::Model1 | Slot::Model2 => {
                let at = usize::from(slot == Slot::Model2);
                preset
                    .models
                    .splice(at.min(preset.models.len())..preset.models.len().min(at + 1), own.map(ModelPart::new));
            }
            Slot::Cabinet => preset.irs = own.map(IrPart::new).into_iter().collect(),
        }
        self.play(Chosen::Part, preset)
    }
}

impl page::Backend for PageController {
    fn state(&self) -> Value {
        let files = self.library.files();
        let playing = self.playing();
        let model = |place: usize| playing.preset.models.get(place).map(|part| &part.file);
        let parameters: Vec<Value> = Parameter::ALL
            .iter()
            .map(|&parameter| told(parameter, playing.controls.settings().get(parameter)))
            .collect();
        json!({
            "version": playing.version,
            "models": files.models,
            "cabinets": files.cabinets,
            "presets": files.presets,
            "playing": {
                "models": [model(0), model(1)],
                "cabinet": playing.preset.irs.first().map(|part| &part.file),
                "preset": playing.name,
            },
            "parameters": parameters,
        })
    }

    fn live(&self) -> Value {
        let mut playing = self.playing();
        if let Some((at, seen)) = &playing.seen
            && at.elapsed() < SEEN_FOR
        {
            return seen.clone();
        }
        playing.controls.collect();
        let load = playing.engine.load();
        let mean = load.share_since(&playing.before);
        playing.before = load;
        let meters = playing.controls.meters();
        let level = |level: amp::chain::SignalLevel| json!({ "peak": level.peak, "rms": level.rms });
        let note = playing.controls.tune();
        let live = json!({
            "version": playing.version,
            "stream": playing.stream(),
            "input": level(meters.input),
            "output": level(meters.output),
            "gate_is_open": meters.gate_is_open,
            "limiter_gain": meters.limiter_gain,
            "clips": meters.input_clips + meters.output_clips,
            "muted": meters.muted,
            "note": note.map(|pitch| json!({ "name": pitch.to_string(), "cents": pitch.cents })),
            "load_mean": mean,
            "load_most": load.recent_max_share,
            "periods": load.periods,
            "xruns": load.xruns,
            "ended": playing.engine.end().map(|_| "The audio thread has ended: the terminal says why."),
        });
        playing.seen = Some((Instant::now(), live.clone()));
        live
    }

    fn set(&self, name: &str, value: f32) -> Result<u64, String> {
        let parameter = Parameter::named(name).map_err(|error| error.to_string())?;
        let mut playing = self.playing();
        playing.controls.set(parameter, value).map_err(|error| error.to_string())?;
        playing.preset.settings.set(parameter, value).map_err(|error| error.to_string())?;
        playing.version += 1;
        Ok(playing.version)
    }

    fn choose(&self, slot: Slot, file: Option<&str>) -> Result<(), String> {
        self.try_choose(slot, file).map_err(|error| format!("{error:#}"))
    }

    fn save(&self, name: &str) -> Result<String, String> {
        let is_right = |c: char| c.is_alphanumeric() || " -_".contains(c);
        let name = name.trim();
        if name.is_empty() || name.chars().count() > LONGEST_NAME || !name.chars().all(is_right) {
            return Err(format!("a preset's name has 1 to {LONGEST_NAME} letters, digits, spaces, - and _"));
        }
        let file = format!("{name}.toml");
        let mut playing = self.playing();
        let path = self.library.folder().join(&file);
        if path.exists() && playing.name.as_deref() != Some(&file) {
            return Err(format!("there is a {file} already: choose it first to change it, or another name"));
        }
        record::file::write_atomic(&path, playing.preset.to_toml().as_bytes()).map_err(|error| error.to_string())?;
        playing.name = Some(file.clone());
        playing.version += 1;
        Ok(file)
    }
}

/// A version that no run before this has come to, so that a page that stays open over several sees that all may differ: it
/// would take a thousand changes a millisecond. A number of JavaScript has room for it until the year 2248.
fn first_version() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64 * 1024)
}

fn told(parameter: Parameter, value: f32) -> Value {
    let info = parameter.info();
    let mut told = json!({ "name": info.name, "about": info.about, "default": info.default, "value": value });
    match info.kind {
        ValueKind::Switch => told["kind"] = "switch".into(),
        ValueKind::Choice(words) => {
            told["kind"] = "choice".into();
            told["words"] = json!(words);
        }
        ValueKind::Knob { least, most, unit } => {
            told["kind"] = "knob".into();
            told["least"] = json!(least);
            told["most"] = json!(most);
            told["unit"] = unit.into();
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use std::fs;

    use amp::Chain;
    use clap::Parser;
    use play::page::Backend;

    use super::*;
    use crate::{
        cli,
        cmd::sound::{self, Ready},
    };

    /// An empty library, with an audio thread that waits.
    fn controller(library: Library) -> PageController {
        let words = ["punctual", "amp", "serve", "--device", "clock", "--priority", "0"];
        let Some(cli::Command::Amp(cli::Amp::Serve(options))) = cli::Cli::parse_from(words).command else {
            panic!("{words:?}")
        };
        let Ok(Ready::Card(device, settings)) = sound::open(&options.sound) else { panic!("the clock is there") };
        let preset = Preset::default();
        let rig = library.rig(&preset, &[]).unwrap();
        let (chain, controls) = Chain::new(48_000, &preset.settings, rig::parts(&rig, 48_000).unwrap());
        let engine = Engine::prepare(device, Box::new(ChainPlayer(chain)), &settings).unwrap();
        PageController::new(library, Start { preset, name: None, rig }, (controls, engine))
    }

    #[test]
    fn what_is_saved_while_a_model_loads_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let linear = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
            "config": {"receptive_field": 1, "bias": false}, "weights": [1.0]}"#;
        fs::write(folder.path().join("wire.nam"), linear).unwrap();
        let controller = controller(Library::open(folder.path()).unwrap());
        let name = || controller.state()["playing"]["preset"].clone();
        // As when it is saved between the choice and its end.
        let mut preset = controller.playing().preset.clone();
        preset.models.push(ModelPart::new("wire.nam".to_owned()));
        controller.save("mine").unwrap();
        controller.play(Chosen::Part, preset).unwrap();
        assert_eq!((name(), controller.playing().preset.models.len()), ("mine.toml".into(), 1));
        controller.save("mine").expect("it may be written over");

        fs::write(folder.path().join("other.toml"), "[gate]\non = true\n").unwrap();
        controller.choose(Slot::Preset, Some("other.toml")).unwrap();
        assert_eq!(name(), "other.toml");
        controller.choose(Slot::Model1, Some("wire.nam")).unwrap();
        assert_eq!(name(), "other.toml");
    }
}
