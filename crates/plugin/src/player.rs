//! The audio thread's side of an instance. Nothing here allocates, locks or makes a system call.

use amp::{Chain, Parameter, Settings};

use crate::{
    messages::{Message, Writer, read},
    ports::FileProperty,
    urids::Urids,
};

/// Longest path of a file, bytes (`PATH_MAX` of Linux).
pub const PATH_BYTES: usize = 4096;
/// Frames that are played at a time.
const BLOCK: usize = 64;

/// A path in memory of its own.
#[derive(Debug, Clone, Copy)]
pub struct PathText {
    bytes: [u8; PATH_BYTES],
    length: usize,
}

impl Default for PathText {
    fn default() -> Self {
        Self { bytes: [0; PATH_BYTES], length: 0 }
    }
}

impl PathText {
    /// Stores a path; `false` if it is too long.
    pub fn store(&mut self, path: &[u8]) -> bool {
        let Some(target) = self.bytes.get_mut(..path.len()) else { return false };
        target.copy_from_slice(path);
        self.length = path.len();
        true
    }

    /// The path.
    #[must_use]
    pub fn get(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The audio thread's side of an instance.
#[derive(Debug)]
pub struct Player {
    chain: Chain,
    urids: Urids,
    /// The values of the ports as of the last block.
    settings: Settings,
    is_enabled: bool,
    /// Files that the host wants, for the worker thread.
    wanted: Box<[PathText; FileProperty::ALL.len()]>,
    is_wanted: [bool; FileProperty::ALL.len()],
    /// Files that are loaded.
    loaded: Box<[PathText; FileProperty::ALL.len()]>,
    /// Files whose path the host does not know yet.
    is_news: [bool; FileProperty::ALL.len()],
    rate_hz: u32,
    /// Frames until the old parts can be freed; `None` if there are none.
    collect_in: Option<u32>,
}

impl Player {
    /// A player of this chain, whose settings are the defaults.
    #[must_use]
    pub fn new(chain: Chain, urids: Urids, rate_hz: u32) -> Self {
        Self {
            chain,
            urids,
            settings: Settings::default(),
            is_enabled: true,
            wanted: Box::default(),
            is_wanted: [false; FileProperty::ALL.len()],
            loaded: Box::default(),
            is_news: [false; FileProperty::ALL.len()],
            rate_hz,
            collect_in: None,
        }
    }

    /// Reads the messages in the body of a sequence.
    pub fn receive(&mut self, sequence: &[u8]) {
        let urids = self.urids;
        if !urids.are_known() {
            return;
        }
        for message in read(sequence, &urids) {
            match message {
                Message::Set(file, path) => {
                    self.is_wanted[file.index()] |= self.wanted[file.index()].store(path);
                }
                Message::Get(Some(file)) => self.is_news[file.index()] = true,
                Message::Get(None) => self.is_news.fill(true),
            }
        }
    }

    /// Sets a parameter to the value of its port: the nearest one that it allows. NaN changes nothing.
    pub fn set(&mut self, parameter: Parameter, value: f32) {
        let Some(value) = parameter.nearest_to(value).filter(|value| *value != self.settings.get(parameter)) else {
            return;
        };
        // The value is allowed.
        let _ = self.settings.set(parameter, value);
        self.apply(parameter);
    }

    /// Switches everything off but the output gain, the removal of offsets and the limiter, or on again.
    pub fn enable(&mut self, is_enabled: bool) {
        if is_enabled != self.is_enabled {
            self.is_enabled = is_enabled;
            Settings::BYPASSED.iter().for_each(|parameter| self.apply(*parameter));
        }
    }

    fn apply(&mut self, parameter: Parameter) {
        let value = match self.is_enabled || !Settings::BYPASSED.contains(&parameter) {
            true => self.settings.get(parameter),
            false => 0.0,
        };
        // The value is allowed.
        let _ = self.chain.set(parameter, value);
    }

    /// Plays a block of at most [`Self::BLOCK`] frames.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn play(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        self.chain.process(input, left, right);
    }

    /// Largest number of frames to pass to [`Self::play`], so that the caller can have buffers for them.
    pub const BLOCK: usize = BLOCK;

    /// Delay of the outputs, samples.
    #[must_use]
    pub fn delay(&self) -> usize {
        self.chain.delay()
    }

    /// A file that the host wants, once; an empty path removes it.
    pub fn take_wanted(&mut self) -> Option<(FileProperty, PathText)> {
        let file = FileProperty::ALL.into_iter().find(|file| self.is_wanted[file.index()])?;
        self.is_wanted[file.index()] = false;
        Some((file, self.wanted[file.index()]))
    }

    /// Notes the files that are loaded now.
    pub fn note_loaded(&mut self, file: FileProperty, path: &[u8]) {
        self.is_news[file.index()] |= self.loaded[file.index()].store(path);
        self.collect_in = Some(self.rate_hz);
    }

    /// Sends the paths that the host does not know yet. Those that do not fit follow later.
    pub fn tell(&mut self, buffer: &mut [u8]) {
        let Some(mut writer) = Writer::new(buffer, &self.urids).filter(|_| self.urids.are_known()) else { return };
        for file in FileProperty::ALL {
            let is_news = &mut self.is_news[file.index()];
            *is_news = *is_news && !writer.set(file, self.loaded[file.index()].get());
        }
    }

    /// True once, a second after files were loaded: the parts before them can be freed.
    pub fn is_time_to_collect(&mut self, frames: u32) -> bool {
        self.collect_in = self.collect_in.map(|left| left.saturating_sub(frames));
        let is_due = self.collect_in == Some(0);
        if is_due {
            self.collect_in = None;
        }
        is_due
    }
}
