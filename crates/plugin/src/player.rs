//! The audio thread's side of an instance, for any host. Nothing here allocates, locks or makes a system call.

use amp::{Chain, Parameter, Settings};

/// Frames that are played at a time.
const BLOCK: usize = 64;

/// The chain of an instance with the values that the host has set.
#[derive(Debug)]
pub struct Player {
    chain: Chain,
    /// The values of the host as of the last block.
    settings: Settings,
    is_enabled: bool,
    rate_hz: u32,
    /// Frames until the old parts can be freed; `None` if there are none.
    collect_in: Option<u32>,
}

impl Player {
    /// A player of this chain, which has these settings and this sample rate, Hz.
    #[must_use]
    pub fn new(chain: Chain, settings: Settings, rate_hz: u32) -> Self {
        Self { chain, settings, is_enabled: true, rate_hz, collect_in: None }
    }

    /// Sets a parameter to the value of the host: the nearest one that it allows. NaN changes nothing.
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

    /// Ends echoes and reverb at once.
    pub fn end_echoes(&mut self) {
        self.chain.end_echoes();
    }

    /// Largest number of frames to pass to [`Self::play`], so that the caller can have buffers for them.
    pub const BLOCK: usize = BLOCK;

    /// Delay of the outputs, samples.
    #[must_use]
    pub fn delay(&self) -> usize {
        self.chain.delay()
    }

    /// Notes that files were loaded: the parts before them can be freed in a second.
    pub fn note_loaded(&mut self) {
        self.collect_in = Some(self.rate_hz);
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
