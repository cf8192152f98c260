//! The backend of the web page: a chain that plays, and a library of files to load into it.

mod history;
mod json;
mod midi_map;

use std::{
    array,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use amp::{
    Controls, Parameter, Preset, Rig, Settings,
    chain::{ControlError, Exchange, ParameterError},
    preset::{IrPart, ModelPart},
};
use record::{file::FileError, visible::one_line};
use serde_json::Value;
use thiserror::Error;

pub use self::midi_map::MidiMapError;
use self::{
    history::{History, Named, Step},
    midi_map::{Action, Learning, MidiMap, Target},
};
use crate::{
    End, Engine, Load,
    library::{Checks, Files, Library, LibraryError, LoadedPreset},
    midi::Event,
    page::{Act, Backend, Side, Slot, Upload, UploadError},
    rig_loader::RigLoadError,
};

/// Meter readings are reused for this long, because each reading resets the peaks and several pages may be open.
const METERS_VALID_FOR: Duration = Duration::from_millis(50);
/// Maximum length of the name of a preset, characters.
const MAX_NAME: usize = 60;
/// Minimum time between two searches for files.
const SEARCH_INTERVAL: Duration = Duration::from_secs(3);
/// Models and cabinets in crossfades at which a further change waits. Each change has up to four.
const MAX_IN_FLIGHT: usize = 6;
/// The wait, and the number of waits, until crossfades are complete. A crossfade takes 30 ms.
const WAIT: Duration = Duration::from_millis(5);
const MAX_WAITS: u32 = 100;
/// A search may take this share of the time of its thread.
const SEARCH_SHARE: u32 = 20;

/// The backend of the web page.
pub struct PageController {
    library: Library,
    checks: Checks,
    playing: Mutex<Playing>,
    /// Held while files are loaded, so that choices take effect in their order.
    loading: Mutex<()>,
    midi: Mutex<Midi>,
}

/// The MIDI controllers of the page.
#[derive(Debug)]
struct Midi {
    map: MidiMap,
    /// True if a MIDI input is open.
    is_open: bool,
    learning: Option<Learning>,
    /// The last value of each controller; a switch acts when its value rises.
    values: [u8; 128],
}

/// The part of the state that a choice replaces.
#[derive(Debug)]
enum Change {
    /// All of it, by a preset with this file name.
    Preset(String),
    /// A model or the cabinet.
    Part,
    /// All of it, by an earlier or undone state with this file name.
    Step(Step, Option<String>),
}

/// Why a choice cannot be carried out.
#[derive(Debug, Error)]
enum ChooseError {
    #[error("there is no {0} in the folder any more")]
    Missing(String),
    #[error("there is nothing to {0}")]
    NoStep(&'static str),
    #[error("the folder has no preset that can be played: save one")]
    NoPreset,
    #[error("MIDI chose preset {number}, but the folder has only {count}")]
    NoProgram { number: usize, count: usize },
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Load(#[from] RigLoadError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    #[error(transparent)]
    File(#[from] FileError),
}

/// One of the two states that a player compares.
#[derive(Debug, Clone)]
struct State {
    now: Named,
    /// The files of the preset as they play.
    rig: Arc<Rig>,
    history: History,
}

/// The chain that plays, and its two states.
struct Playing {
    controls: Controls,
    engine: Engine,
    states: [State; 2],
    /// Index of the state that plays.
    active: usize,
    is_bypassed: bool,
    files: Files,
    /// The last message that is not a response, with its number.
    notice: (u64, String),
    /// Grows with each change. No earlier run has used the same versions.
    version: u64,
    /// The last meter reading.
    reading: Option<(Instant, Value)>,
    load: Load,
    /// Xruns and clipped samples at the last reset.
    xruns_before: u64,
    clips_before: u64,
}

impl Playing {
    fn state(&self) -> &State {
        &self.states[self.active]
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.states[self.active]
    }

    fn settings(&self) -> &Settings {
        &self.state().now.preset.settings
    }

    /// Sends parts, and settings as they sound with or without bypass, to the audio thread.
    fn send(&mut self, exchange: Exchange, settings: &Settings) -> Result<(), ControlError> {
        let bypassed = self.is_bypassed.then(|| settings.bypassed());
        self.controls.exchange(exchange, Some(bypassed.as_ref().unwrap_or(settings)))
    }

    /// Sends the settings that the audio thread does not have yet.
    fn send_settings(&mut self) -> Result<(), ControlError> {
        let settings = self.settings().clone();
        self.send(Exchange::default(), &settings)
    }

    /// Sets a parameter of the state that plays. If the queue of the audio thread is full, the value is sent later.
    fn set(&mut self, parameter: Parameter, value: f32) -> Result<(), ParameterError> {
        self.state_mut().now.preset.settings.set(parameter, value)?;
        self.version += 1;
        let _ = self.send_settings();
        Ok(())
    }

    /// Shows a message on every page.
    fn notify(&mut self, text: &str) {
        self.notice = (self.notice.0 + 1, one_line(text));
        self.reading = None;
    }

    /// Describes the device, the latency and the policy.
    fn describe_stream(&self) -> String {
        let latency_ms =
            |frames: u32| (f64::from(frames) + self.controls.delay() as f64) / f64::from(self.controls.rate_hz()) * 1e3;
        let latency = match self.engine.latency_frames() {
            Some(frames) => format!("{:.2} ms", latency_ms(frames)),
            None => "not connected".to_owned(),
        };
        format!("{}, {latency}, {}", self.engine.describe(), self.engine.grant().policy)
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
        let meters = self.controls.meters();
        let reading = json::Live {
            version: self.version,
            stream: self.describe_stream(),
            clips: (meters.input_clips + meters.output_clips).saturating_sub(self.clips_before),
            xruns: load.xruns.saturating_sub(self.xruns_before),
            meters,
            pitch: self.controls.tune(),
            load,
            mean_share,
            notice: &self.notice,
            has_ended: self.engine.end().is_some(),
        }
        .to_json();
        self.reading = Some((Instant::now(), reading.clone()));
        reading
    }
}

impl PageController {
    /// A controller for a chain that plays `start` on `engine`. Both states that a player compares begin with it.
    ///
    /// # Errors
    /// If the learned MIDI controllers of the folder cannot be read.
    pub fn new(
        library: Library,
        start: LoadedPreset,
        controls: Controls,
        engine: Engine,
    ) -> Result<Self, MidiMapError> {
        let map = MidiMap::read(library.folder())?;
        let LoadedPreset { preset, name, rig } = start;
        let state = State { now: Named { preset, name }, rig: Arc::new(rig), history: History::default() };
        let playing = Playing {
            controls,
            engine,
            states: array::from_fn(|_| state.clone()),
            active: 0,
            is_bypassed: false,
            files: library.files(),
            notice: (0, String::new()),
            version: first_version(),
            reading: None,
            load: Load::default(),
            xruns_before: 0,
            clips_before: 0,
        };
        let midi = Midi { map, is_open: false, learning: None, values: [0; 128] };
        Ok(Self {
            library,
            checks: Checks::default(),
            playing: Mutex::new(playing),
            loading: Mutex::new(()),
            midi: Mutex::new(midi),
        })
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

    /// Starts a thread that searches for new files and checks them, so that the lists of the page are current.
    ///
    /// # Errors
    /// If the system cannot create the thread.
    pub fn watch_files(self: &Arc<Self>) -> std::io::Result<()> {
        let own = self.clone();
        let run = move || {
            loop {
                let began = Instant::now();
                own.search_files();
                thread::sleep(SEARCH_INTERVAL.max(began.elapsed() * SEARCH_SHARE));
            }
        };
        thread::Builder::new().name("files".to_owned()).spawn(run).map(drop)
    }

    fn search_files(&self) {
        let files = self.checks.files(&self.library);
        let mut playing = self.playing();
        if playing.files != files {
            playing.files = files;
            playing.version += 1;
        }
    }

    /// Shows on the page whether a MIDI input is open.
    pub fn set_midi_open(&self, is_open: bool) {
        self.midi().is_open = is_open;
        self.playing().version += 1;
    }

    /// Shows a message on every page.
    pub fn notify(&self, text: &str) {
        self.playing().notify(text);
    }

    /// Carries out MIDI messages: programs choose presets in the order of the list, controllers do what the playing
    /// preset or learning assigns to them. Returns messages for the user, which the page shows, too.
    pub fn follow(&self, events: &[Event]) -> Vec<String> {
        let mut messages = Vec::new();
        // The queue of the audio thread may have been full at the last call.
        let _ = self.playing().send_settings();
        for (index, event) in events.iter().enumerate() {
            // Only the last of several programs is played.
            let is_program = |event: &Event| matches!(event, Event::Program { .. });
            if is_program(event) && events[index + 1..].iter().any(is_program) {
                continue;
            }
            match self.follow_one(*event) {
                Ok(message) => messages.extend(message),
                Err(error) => messages.push(error.to_string()),
            }
        }
        messages.iter().for_each(|message| self.notify(message));
        messages
    }

    fn follow_one(&self, event: Event) -> Result<Option<String>, ChooseError> {
        if let Some(learned) = self.learn(event) {
            return learned.map(Some);
        }
        match event {
            Event::Program { program, .. } => self.choose_program(usize::from(program)).map(|()| None),
            Event::Control { controller, value, .. } => self.follow_control(controller, value),
        }
    }

    /// Assigns the controller of the event if the page is learning and the player moves it.
    fn learn(&self, event: Event) -> Option<Result<String, ChooseError>> {
        let mut midi = self.midi();
        let learning = midi.learning.as_mut()?;
        let target = learning.target;
        let controller = learning.hear(event)?;
        midi.learning = None;
        if let Event::Control { value, .. } = event {
            midi.values[usize::from(controller)] = value;
        }
        let stored = midi.map.assign(controller, target);
        drop(midi);
        self.playing().version += 1;
        Some(
            stored
                .map(|()| format!("controller {controller} is assigned to {}", target.describe()))
                .map_err(ChooseError::from),
        )
    }

    fn follow_control(&self, controller: u8, value: u8) -> Result<Option<String>, ChooseError> {
        let (before, learned) = {
            let mut midi = self.midi();
            let before = std::mem::replace(&mut midi.values[usize::from(controller)], value);
            (before, midi.map.get(controller))
        };
        let of_preset = self.playing().state().now.preset.midi.get(&controller).copied();
        match of_preset.map(Target::Parameter).or(learned) {
            None => Ok(None),
            Some(Target::Parameter(parameter)) => {
                let value = parameter.denormalized(f32::from(value) / 127.0);
                self.playing().set(parameter, value)?;
                Ok(None)
            }
            Some(Target::Action(action)) if before < 64 && value >= 64 => self.perform(action).map(Some),
            Some(Target::Action(_)) => Ok(None),
        }
    }

    fn perform(&self, action: Action) -> Result<String, ChooseError> {
        match action {
            Action::Bypass => {
                let on = !self.playing().is_bypassed;
                self.bypass(on)
            }
            Action::Compare => {
                let other = 1 - self.playing().active;
                self.play_side(other)
            }
            Action::Undo => self.step(Step::Undo),
            Action::Previous => self.play_neighbour(false),
            Action::Next => self.play_neighbour(true),
        }
    }

    fn playing(&self) -> MutexGuard<'_, Playing> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn midi(&self) -> MutexGuard<'_, Midi> {
        self.midi.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loading(&self) -> MutexGuard<'_, ()> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the audio thread has finished most crossfades, so that a player who presses a pedal quickly does not
    /// fill its queues.
    fn wait_for_crossfades(&self) {
        for _ in 0..MAX_WAITS {
            if self.playing().controls.collect() <= MAX_IN_FLIGHT {
                return;
            }
            thread::sleep(WAIT);
        }
    }

    /// Loads a preset and plays it. Parts that it has in common with the one that plays are kept.
    fn play(&self, change: Change, mut preset: Preset) -> Result<(), ChooseError> {
        let (before, other, rate_hz) = {
            let playing = self.playing();
            (playing.state().rig.clone(), playing.states[1 - playing.active].rig.clone(), playing.controls.rate_hz())
        };
        let rig = self.library.rig(&preset, &[&before, &other])?;
        let exchange = self.library.loader().exchange(&rig, &before, rate_hz)?;
        self.wait_for_crossfades();
        let mut playing = self.playing();
        if matches!(change, Change::Part) {
            // Keeps the settings that changed during loading.
            preset.settings = playing.settings().clone();
        }
        playing.send(exchange, &preset.settings)?;
        let state = playing.state_mut();
        state.rig = Arc::new(rig);
        let left = std::mem::replace(&mut state.now.preset, preset);
        let left = Named { preset: left, name: state.now.name.clone() };
        match change {
            Change::Step(step, name) => {
                state.now.name = name;
                state.history.finish(step, left);
            }
            change => {
                // The name stays if a part was chosen, also if the preset was saved meanwhile.
                if let Change::Preset(name) = change {
                    state.now.name = Some(name);
                }
                if state.now != left {
                    state.history.record(left);
                }
            }
        }
        playing.version += 1;
        Ok(())
    }

    fn try_choose(&self, slot: Slot, file: Option<&str>) -> Result<(), ChooseError> {
        let _order = self.loading();
        if let Some(file) = file
            && !files_for(slot, &self.library.files()).iter().any(|name| name == file)
        {
            return Err(ChooseError::Missing(one_line(file)));
        }
        let mut preset = self.playing().state().now.preset.clone();
        match slot {
            Slot::Preset => {
                let Some(file) = file else { return Ok(()) };
                return self.play(Change::Preset(file.to_owned()), self.library.preset(file)?);
            }
            Slot::Model1 => replace_model(&mut preset.models, 0, file),
            Slot::Model2 => replace_model(&mut preset.models, 1, file),
            Slot::Cabinet => preset.irs = file.map(|file| IrPart::new(file.to_owned())).into_iter().collect(),
        }
        self.play(Change::Part, preset)
    }

    fn choose_program(&self, program: usize) -> Result<(), ChooseError> {
        let presets = self.library.files().presets;
        match presets.get(program) {
            Some(file) => self.try_choose(Slot::Preset, Some(file)),
            None => Err(ChooseError::NoProgram { number: program + 1, count: presets.len() }),
        }
    }

    /// Plays the next preset of the list, or the previous one. Skips presets that cannot be played, because a player on
    /// a stage must not get stuck at one.
    fn play_neighbour(&self, forward: bool) -> Result<String, ChooseError> {
        let presets = self.library.files().presets;
        let count = presets.len();
        let name = self.playing().state().now.name.clone();
        let at = name.and_then(|name| presets.iter().position(|preset| *preset == name));
        let first = match (at, forward) {
            (Some(at), true) => at + 1,
            (Some(at), false) => at + count - 1,
            (None, true) => 0,
            (None, false) => count.saturating_sub(1),
        };
        let mut skipped = String::new();
        for step in 0..count {
            let file = &presets[(if forward { first + step } else { first + count - step }) % count];
            match self.try_choose(Slot::Preset, Some(file)) {
                Ok(()) => return Ok(format!("{skipped}{file} is playing")),
                Err(error @ ChooseError::Control(_)) => return Err(error),
                Err(error) => skipped += &format!("skipped {file}: {error}; "),
            }
        }
        Err(ChooseError::NoPreset)
    }

    fn bypass(&self, on: bool) -> Result<String, ChooseError> {
        let mut playing = self.playing();
        let before = std::mem::replace(&mut playing.is_bypassed, on);
        if let Err(error) = playing.send_settings() {
            playing.is_bypassed = before;
            return Err(error.into());
        }
        playing.version += 1;
        Ok(if on { "bypass is on" } else { "bypass is off" }.to_owned())
    }

    /// Plays the first state (0) or the second (1).
    fn play_side(&self, side: usize) -> Result<String, ChooseError> {
        let _order = self.loading();
        let (new, before, rate_hz) = {
            let playing = self.playing();
            (playing.states[side].rig.clone(), playing.state().rig.clone(), playing.controls.rate_hz())
        };
        let exchange = self.library.loader().exchange(&new, &before, rate_hz)?;
        self.wait_for_crossfades();
        let mut playing = self.playing();
        let settings = playing.states[side].now.preset.settings.clone();
        playing.send(exchange, &settings)?;
        playing.active = side;
        playing.version += 1;
        Ok(format!("{} is playing", ["A", "B"][side]))
    }

    /// Copies the state that plays to the other one.
    fn copy(&self) -> String {
        let _order = self.loading();
        let mut playing = self.playing();
        let State { now, rig, .. } = playing.state().clone();
        let other = 1 - playing.active;
        let state = &mut playing.states[other];
        let left = std::mem::replace(&mut state.now, now);
        state.history.record(left);
        state.rig = rig;
        playing.version += 1;
        format!("{} was copied to {}", ["A", "B"][1 - other], ["A", "B"][other])
    }

    fn step(&self, step: Step) -> Result<String, ChooseError> {
        let _order = self.loading();
        let taken = self.playing().state_mut().history.take(step);
        let (nothing, done) = match step {
            Step::Undo => ("undo", "the last change is undone"),
            Step::Redo => ("redo", "the change is repeated"),
        };
        let Named { preset, name } = taken.ok_or(ChooseError::NoStep(nothing))?;
        self.play(Change::Step(step, name), preset)?;
        Ok(done.to_owned())
    }

    /// Counts xruns and clipped samples from now on.
    fn reset_counts(&self) -> String {
        let mut playing = self.playing();
        let meters = playing.controls.meters();
        playing.xruns_before = playing.engine.load().xruns;
        playing.clips_before = meters.input_clips + meters.output_clips;
        playing.reading = None;
        "xruns are counted from now on".to_owned()
    }

    fn begin_learning(&self, target: Option<&str>) -> Result<String, ChooseError> {
        let target = target.map(Target::named).transpose()?;
        let mut midi = self.midi();
        midi.learning = target.map(Learning::new);
        let is_open = midi.is_open;
        drop(midi);
        self.playing().version += 1;
        Ok(match target {
            None => "learning has ended".to_owned(),
            Some(target) if is_open => format!("move the pedal for {}", target.describe()),
            Some(_) => "there is no MIDI input: start punctual amp serve with --midi".to_owned(),
        })
    }

    fn forget(&self, controller: u8) -> Result<String, ChooseError> {
        self.midi().map.forget(controller)?;
        self.playing().version += 1;
        Ok(format!("controller {controller} is no longer assigned"))
    }

    fn try_act(&self, act: Act) -> Result<String, ChooseError> {
        match act {
            Act::Bypass { on } => self.bypass(on),
            Act::Side { side: Side::A } => self.play_side(0),
            Act::Side { side: Side::B } => self.play_side(1),
            Act::Copy => Ok(self.copy()),
            Act::Undo => self.step(Step::Undo),
            Act::Redo => self.step(Step::Redo),
            Act::Next => self.play_neighbour(true),
            Act::Previous => self.play_neighbour(false),
            Act::Reset => Ok(self.reset_counts()),
            Act::Learn { target } => self.begin_learning(target.as_deref()),
            Act::Forget { controller } => self.forget(controller),
        }
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
        let midi = json::midi(&self.midi());
        json::state(&self.playing(), &midi)
    }

    fn live(&self) -> Value {
        self.playing().read_meters()
    }

    fn set(&self, name: &str, value: f32) -> Result<u64, String> {
        let parameter = Parameter::named(name).map_err(|error| error.to_string())?;
        let mut playing = self.playing();
        let left = playing.state().now.clone();
        playing.set(parameter, value).map_err(|error| error.to_string())?;
        let state = playing.state_mut();
        if state.now != left {
            state.history.record_value(parameter, left);
        }
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
        if path.exists() && playing.state().now.name.as_deref() != Some(&file) {
            return Err(format!("{file} already exists: choose it first to change it, or use another name"));
        }
        let text = playing.state().now.preset.to_toml();
        record::file::write_atomic(&path, text.as_bytes()).map_err(|error| error.to_string())?;
        playing.state_mut().now.name = Some(file.clone());
        if !playing.files.presets.contains(&file) {
            playing.files.add_preset(file.clone());
        }
        playing.version += 1;
        Ok(file)
    }

    fn act(&self, act: Act) -> Result<String, String> {
        self.try_act(act).map_err(|error| error.to_string())
    }

    fn upload(&self, upload: Upload) -> Result<(String, Slot), UploadError> {
        let added = self.library.add(&upload)?;
        drop(upload);
        self.search_files();
        Ok(added)
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
        PageController::new(library, start, controls, engine).unwrap()
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
        let mut preset = controller.playing().state().now.preset.clone();
        preset.models.push(ModelPart::new("wire.nam".to_owned()));
        controller.save("mine").unwrap();
        controller.play(Change::Part, preset).unwrap();
        assert_eq!((name(), controller.playing().state().now.preset.models.len()), ("mine.toml".into(), 1));
        controller.save("mine").expect("may overwrite its own file");

        fs::write(folder.path().join("other.toml"), "[gate]\non = true\n").unwrap();
        controller.choose(Slot::Preset, Some("other.toml")).unwrap();
        assert_eq!(name(), "other.toml");
        controller.choose(Slot::Model1, Some("wire.nam")).unwrap();
        assert_eq!(name(), "other.toml");
    }

    #[test]
    fn controllers_and_programs_follow_the_playing_preset() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("1.toml", "[midi]\n7 = 'output.gain_db'\n");
        write("2.toml", "[midi]\n7 = 'tone.bass_db'\n");
        let controller = controller(Library::open(folder.path(), RigLoader::new(|_| {})).unwrap());
        let control = |value| Event::Control { channel: 0, controller: 7, value };
        let program = |program| Event::Program { channel: 0, program };
        let values = || [Parameter::OutputGain, Parameter::Bass].map(|it| controller.playing().settings().get(it));
        // More events than the queue of the audio thread can hold; the thread does not run.
        let burst: Vec<Event> = [program(0)].into_iter().chain((0..=127).cycle().take(1000).map(control)).collect();
        assert!(controller.follow(&burst).is_empty());
        controller.follow(&[control(127)]);
        assert_eq!(values(), [20.0, 0.0]);
        let messages = controller.follow(&[program(9)]);
        assert_eq!(messages, ["MIDI chose preset 10, but the folder has only 2"]);
        assert_eq!(controller.live()["notice"]["text"], messages[0]);
    }

    #[test]
    fn both_states_keep_their_changes_and_their_history() {
        let folder = tempfile::tempdir().unwrap();
        let controller = controller(Library::open(folder.path(), RigLoader::new(|_| {})).unwrap());
        let act = |act: Act| controller.act(act);
        let bass = || controller.playing().settings().get(Parameter::Bass);
        let sounding = || controller.playing().controls.settings().get(Parameter::ToneOn);
        controller.set("tone.bass_db", 3.0).unwrap();
        act(Act::Side { side: Side::B }).unwrap();
        assert_eq!((bass(), act(Act::Undo).unwrap_err()), (0.0, "there is nothing to undo".to_owned()));
        act(Act::Bypass { on: true }).unwrap();
        assert_eq!(sounding(), 0.0);
        act(Act::Side { side: Side::A }).unwrap();
        assert_eq!((bass(), sounding()), (3.0, 0.0));
        act(Act::Bypass { on: false }).unwrap();
        assert_eq!(sounding(), 1.0);
        act(Act::Undo).unwrap();
        assert_eq!(bass(), 0.0);
        act(Act::Redo).unwrap();
        act(Act::Copy).unwrap();
        act(Act::Side { side: Side::B }).unwrap();
        assert_eq!(bass(), 3.0);
        act(Act::Undo).unwrap();
        assert_eq!(bass(), 0.0, "the copy can be undone");
    }
}
