//! The backend of the web page: a chain that plays, and a library of files to load into it.

mod json;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use amp::{
    Controls, Parameter, Preset, Rig,
    chain::ControlError,
    preset::{IrPart, ModelPart},
};
use serde_json::Value;
use thiserror::Error;

use crate::{
    End, Engine, Load,
    library::{Files, Library, LibraryError, LoadedPreset},
    page::{Backend, Slot},
    rig_loader::RigLoadError,
};

/// Meter readings are reused for this long, because each reading resets the peaks and several pages may be open.
const METERS_VALID_FOR: Duration = Duration::from_millis(50);
/// Maximum length of the name of a preset, characters.
const MAX_NAME: usize = 60;

/// The backend of the web page.
pub struct PageController {
    library: Library,
    playing: Mutex<Playing>,
    /// Held while files are loaded, so that choices take effect in their order.
    loading: Mutex<()>,
}

/// The part of the playing preset that a choice replaces.
#[derive(Debug, Clone, Copy)]
enum Change<'a> {
    /// All of it, by a preset with this file name.
    Preset(&'a str),
    /// A model or the cabinet.
    Part,
}

/// Why a choice cannot be carried out.
#[derive(Debug, Error)]
enum ChooseError {
    #[error("there is no {0} in the library: reload the page")]
    Missing(String),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Load(#[from] RigLoadError),
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// The chain that plays, and its preset.
struct Playing {
    controls: Controls,
    engine: Engine,
    preset: Preset,
    /// File of the preset that was last chosen or saved, which may be overwritten.
    name: Option<String>,
    /// The files of the preset as they play.
    rig: Arc<Rig>,
    /// Grows with each change. No earlier run has used the same versions.
    version: u64,
    /// The last meter reading.
    reading: Option<(Instant, Value)>,
    load: Load,
}

impl Playing {
    /// Describes the device, the latency and the policy.
    fn describe_stream(&self) -> String {
        let latency_frames = f64::from(self.engine.latency_frames()) + self.controls.delay() as f64;
        let latency_ms = latency_frames / f64::from(self.controls.rate_hz()) * 1e3;
        format!("{}, {latency_ms:.2} ms, {}", self.engine.describe(), self.engine.grant().policy)
    }

    /// The meter reading for the page.
    fn read_meters(&mut self) -> Value {
        if let Some((at, reading)) = &self.reading
            && at.elapsed() < METERS_VALID_FOR
        {
            return reading.clone();
        }
        self.controls.collect();
        let load = self.engine.load();
        let mean_share = load.share_since(&self.load);
        self.load = load;
        let reading = json::Live {
            version: self.version,
            stream: self.describe_stream(),
            meters: self.controls.meters(),
            pitch: self.controls.tune(),
            load,
            mean_share,
            has_ended: self.engine.end().is_some(),
        }
        .to_json();
        self.reading = Some((Instant::now(), reading.clone()));
        reading
    }
}

impl PageController {
    /// A controller for a chain that plays `start` on `engine`.
    #[must_use]
    pub fn new(library: Library, start: LoadedPreset, controls: Controls, engine: Engine) -> Self {
        let LoadedPreset { preset, name, rig } = start;
        let rig = Arc::new(rig);
        let version = first_version();
        let playing = Playing { controls, engine, preset, name, rig, version, reading: None, load: Load::default() };
        Self { library, playing: Mutex::new(playing), loading: Mutex::new(()) }
    }

    /// True if the audio thread has ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.playing().engine.end().is_some()
    }

    /// Reports the delay of the chain to other JACK clients. Must be called from time to time.
    pub fn set_delay(&self) {
        let playing = self.playing();
        playing.engine.set_delay(playing.controls.delay());
    }

    /// Ends the audio thread, even while requests are processed; returns why it ended.
    pub fn stop(&self) -> End {
        let engine = &mut self.playing().engine;
        engine.join();
        engine.end().unwrap_or(End::Broken)
    }

    fn playing(&self) -> MutexGuard<'_, Playing> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads a preset and plays it. Parts that it has in common with the one that plays are kept.
    fn play(&self, change: Change<'_>, mut preset: Preset) -> Result<(), ChooseError> {
        let (before, rate_hz) = {
            let playing = self.playing();
            (playing.rig.clone(), playing.controls.rate_hz())
        };
        let rig = self.library.rig(&preset, &[&before])?;
        let exchange = self.library.loader().exchange(&rig, &before, rate_hz)?;
        let mut playing = self.playing();
        match change {
            Change::Preset(name) => {
                playing.controls.exchange(exchange, Some(&preset.settings))?;
                playing.name = Some(name.to_owned());
            }
            Change::Part => {
                playing.controls.exchange(exchange, None)?;
                // Keeps the settings that changed during loading, and the name if the preset was saved meanwhile.
                preset.settings = playing.preset.settings.clone();
            }
        }
        playing.rig = Arc::new(rig);
        playing.preset = preset;
        playing.version += 1;
        Ok(())
    }

    fn try_choose(&self, slot: Slot, file: Option<&str>) -> Result<(), ChooseError> {
        let _order = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = file
            && !files_for(slot, &self.library.files()).iter().any(|name| name == file)
        {
            return Err(ChooseError::Missing(file.to_owned()));
        }
        let mut preset = self.playing().preset.clone();
        match slot {
            Slot::Preset => {
                let Some(file) = file else { return Ok(()) };
                return self.play(Change::Preset(file), self.library.preset(file)?);
            }
            Slot::Model1 => replace_model(&mut preset.models, 0, file),
            Slot::Model2 => replace_model(&mut preset.models, 1, file),
            Slot::Cabinet => preset.irs = file.map(|file| IrPart::new(file.to_owned())).into_iter().collect(),
        }
        self.play(Change::Part, preset)
    }
}

/// The files that can be loaded into a slot.
fn files_for(slot: Slot, files: &Files) -> &[String] {
    match slot {
        Slot::Preset => &files.presets,
        Slot::Cabinet => &files.cabinets,
        Slot::Model1 | Slot::Model2 => &files.models,
    }
}

/// Replaces or removes a model. A second model without a first one becomes the first.
fn replace_model(models: &mut Vec<ModelPart>, index: usize, file: Option<&str>) {
    let replaced = index.min(models.len())..models.len().min(index + 1);
    models.splice(replaced, file.map(|file| ModelPart::new(file.to_owned())));
}

impl Backend for PageController {
    fn state(&self) -> Value {
        let files = self.library.files();
        let playing = self.playing();
        json::state(&files, &playing.preset, playing.name.as_deref(), playing.controls.settings(), playing.version)
    }

    fn live(&self) -> Value {
        self.playing().read_meters()
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
        self.try_choose(slot, file).map_err(|error| error.to_string())
    }

    fn save(&self, name: &str) -> Result<String, String> {
        let is_allowed = |c: char| c.is_alphanumeric() || " -_".contains(c);
        let name = name.trim();
        if name.is_empty() || name.chars().count() > MAX_NAME || !name.chars().all(is_allowed) {
            return Err(format!("the name of a preset must have 1 to {MAX_NAME} letters, digits, spaces, - and _"));
        }
        let file = format!("{name}.toml");
        let mut playing = self.playing();
        let path = self.library.folder().join(&file);
        if path.exists() && playing.name.as_deref() != Some(&file) {
            return Err(format!("{file} already exists: choose it first to change it, or use another name"));
        }
        record::file::write_atomic(&path, playing.preset.to_toml().as_bytes()).map_err(|error| error.to_string())?;
        playing.name = Some(file.clone());
        playing.version += 1;
        Ok(file)
    }
}

/// A version that no earlier run has reached, so that a page that was open during a restart reloads everything. A run
/// would need a thousand changes each millisecond to reach the first version of the next. Fits into a JavaScript number
/// until 2248.
fn first_version() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use std::fs;

    use amp::Chain;
    use sys::{pcm::StreamConfig, sched::Policy};

    use super::*;
    use crate::{ChainPlayer, Device, Settings, device::ClockDevice, rig_loader::RigLoader};

    const RATE_HZ: u32 = 48_000;
    const FRAMES: u32 = 64;

    /// A controller of a library, with an audio thread that was not started.
    fn controller(library: Library) -> PageController {
        let (start, parts) = library.load(None, RATE_HZ).unwrap();
        let (chain, controls) = Chain::new(RATE_HZ, &start.preset.settings, parts);
        let card = StreamConfig { rate_hz: RATE_HZ, period_frames: FRAMES, periods: 2, inputs: 2, format: None };
        let settings = Settings { card, input: 0, cpu: None, policy: Policy::Other };
        let device = Device::Clock(ClockDevice::new(RATE_HZ, FRAMES, 2).unwrap());
        let engine = Engine::prepare(device, Box::new(ChainPlayer(chain)), &settings).unwrap();
        PageController::new(library, start, controls, engine)
    }

    #[test]
    fn a_preset_saved_while_a_model_loads_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let linear = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
            "config": {"receptive_field": 1, "bias": false}, "weights": [1.0]}"#;
        fs::write(folder.path().join("wire.nam"), linear).unwrap();
        let controller = controller(Library::open(folder.path(), RigLoader::new(|_| {})).unwrap());
        let name = || controller.state()["playing"]["preset"].clone();
        // The same order of steps as when the preset is saved between the choice of a model and the end of its loading.
        let mut preset = controller.playing().preset.clone();
        preset.models.push(ModelPart::new("wire.nam".to_owned()));
        controller.save("mine").unwrap();
        controller.play(Change::Part, preset).unwrap();
        assert_eq!((name(), controller.playing().preset.models.len()), ("mine.toml".into(), 1));
        controller.save("mine").expect("may overwrite its own file");

        fs::write(folder.path().join("other.toml"), "[gate]\non = true\n").unwrap();
        controller.choose(Slot::Preset, Some("other.toml")).unwrap();
        assert_eq!(name(), "other.toml");
        controller.choose(Slot::Model1, Some("wire.nam")).unwrap();
        assert_eq!(name(), "other.toml");
    }
}
