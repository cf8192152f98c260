//! The audio probe: a thread that plays a guitar signal through an amplifier, one period at each deadline, as for a
//! sound card.
//!
//! It is the work of a timer's thread, whose wake-ups are counted as usual. The probe adds the completion of each
//! period, and whether a card would have had an xrun by then.
//!
//! | module | contents |
//! |---|---|
//! | [`card`] | the definition of an xrun |
//! | [`signal`] | the guitar signal |
//! | [`Player`] | the signal processing that the thread runs |
//! | `play` | the work at each wake-up, with the clock as pacer |
//! | `pace` | the deadlines that a sound card sets |
//! | `paced` | the work at each wake-up, with a sound card as pacer |
//! | `shared` | data shared by the thread and its reader |
//! | `reader` | the series of the record |

pub mod card;
mod pace;
mod paced;
mod play;
mod player;
mod reader;
mod shared;
pub mod signal;

use std::sync::{Arc, atomic::Ordering::Relaxed};

use record::{Caveat, Reason, Series, SoundCard, Spike, grouped};
use sys::{clock::Clock, pcm::Duplex};

use crate::{
    probe_threads::{Overdue, ProbeThreads, ThreadInfo, Work},
    timer::Grid,
};
use card::Card;
use pace::Pace;
use paced::{OnCard, Paced, State};
use play::Play;
pub use player::Player;
use reader::Reader;
use shared::Shared;

/// The settings of an audio thread.
#[derive(Debug, Clone, PartialEq)]
pub struct AudioSettings {
    /// Sample rate, Hz; above 0.
    pub rate_hz: u32,
    /// Samples per period; above 0.
    pub frames: u32,
    /// Periods in the card's buffer; 2 or more.
    pub periods: u32,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// A period completed later than this is a spike, ns after its deadline.
    pub threshold_ns: i64,
    /// Number of worst spikes to keep.
    pub spikes_kept: usize,
    /// Names of the model, the cabinet and the preset.
    pub names: Names,
    /// The card that sets the deadlines; `None` for the clock.
    pub card: Option<SoundCard>,
    /// Caveats about the figures.
    pub caveats: Vec<Caveat>,
}

/// Names of the parts of the chain that is played.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// The model.
    pub model: String,
    /// The cabinet; empty without one.
    pub cab: String,
    /// The preset; empty without one.
    pub preset: String,
}

impl AudioSettings {
    /// Returns the deadlines of its periods.
    #[must_use]
    pub fn grid(&self) -> Grid {
        Grid::of_frames(self.frames, self.rate_hz)
    }

    /// Smallest completion that makes a period an xrun, ns, rounded up.
    #[must_use]
    pub fn limit_ns(&self) -> u64 {
        let periods = u64::from(self.periods.saturating_sub(1));
        (u64::from(self.frames) * periods * 1_000_000_000).div_ceil(u64::from(self.rate_hz.max(1)))
    }
}

/// An audio probe: the work for the timer's thread, until it is taken, and the results.
pub struct Audio {
    settings: AudioSettings,
    work: Option<Box<dyn Work>>,
    shared: Arc<Shared>,
    reader: Reader,
}

impl Audio {
    /// Prepares a probe with the clock as pacer.
    #[must_use]
    pub fn prepare(settings: AudioSettings, player: impl Player + 'static) -> Self {
        let (writer, shared, queue) = shared::channel(settings.threshold_ns);
        let reader = Reader::new(queue, settings.spikes_kept);
        let silence = vec![0.0; settings.frames as usize].into_boxed_slice();
        let work = Play {
            player,
            card: Card::new(settings.grid(), settings.periods),
            now_ns: move || settings.clock.now_ns(),
            writer,
            signal: signal::guitar(settings.rate_hz, settings.frames),
            at: 0,
            left: silence.clone(),
            right: silence,
        };
        Self { settings, work: Some(Box::new(work)), shared, reader }
    }

    /// Prepares a probe with a sound card as pacer. The card is configured already and starts with the thread. `input`
    /// is the captured channel, counted from 0.
    #[must_use]
    pub fn prepare_on((duplex, input): (Duplex, u32), settings: AudioSettings, player: impl Player + 'static) -> Self {
        let (writer, shared, queue) = shared::channel(settings.threshold_ns);
        let reader = Reader::new(queue, settings.spikes_kept);
        let silence = || vec![0.0; settings.frames as usize].into_boxed_slice();
        let work = Paced {
            player,
            sound: OnCard { duplex, input },
            pace: Pace::new(settings.grid(), settings.rate_hz),
            grid: settings.grid(),
            writer,
            buffer: u64::from(settings.frames) * u64::from(settings.periods),
            signal: signal::guitar(settings.rate_hz, settings.frames),
            at: 0,
            captured: silence(),
            silence: silence(),
            left: silence(),
            right: silence(),
            state: State::default(),
        };
        Self { settings, work: Some(Box::new(work)), shared, reader }
    }

    /// Returns a reason if the card's rate differs so much from its setting that its deadlines are unknown.
    fn wrong_rate(&self) -> Option<Reason> {
        let (ppm, error_ppm) = self.shared.rate_ppm()?;
        (ppm.abs() > RATE_LIMIT_PPM + 3.0 * error_ppm).then(|| Reason {
            id: "card.rate".to_owned(),
            text: format!(
                "the card ran {ppm:+.0} ppm off its rate, more than {RATE_LIMIT_PPM:.0}: its deadlines are unknown"
            ),
            remedy: "choose another --rate or card; an emulated card does not keep time".to_owned(),
        })
    }
}

/// Deadlines follow a card up to this deviation, ppm.
const RATE_LIMIT_PPM: f64 = 1e6 / pace::CREEP as f64;

impl ProbeThreads for Audio {
    fn work(&mut self, _index: usize) -> Option<Box<dyn Work>> {
        self.work.take()
    }

    fn threads(&self) -> Vec<ThreadInfo<'_>> {
        Vec::new()
    }

    fn collect(&mut self) {
        self.reader.collect(&self.shared);
    }

    fn fresh_spikes(&mut self, _index: usize) -> &mut [Spike] {
        &mut self.reader.fresh
    }

    fn usual_work_ns(&self) -> u64 {
        self.reader.usual_dsp_ns
    }

    fn add_to(&self, _index: usize, series: &mut Series) {
        self.reader.add_to(&self.settings, &self.shared, series);
    }

    fn count_overdue(&mut self, _index: usize, overdue: Overdue) {
        self.reader.count_overdue(overdue, self.settings.limit_ns(), &self.shared);
    }

    fn finish(&mut self) {}

    fn series(&self, _phase: &str) -> Vec<Series> {
        Vec::new()
    }

    fn reasons(&self) -> Vec<Reason> {
        let (played, silent) = (self.shared.played.load(Relaxed), self.shared.silent.load(Relaxed));
        // Some silent periods are normal: a gate may close between two strings.
        let is_silent = played > 0 && silent * 2 >= played;
        let [silent, played] = [silent, played].map(grouped);
        let silent = is_silent.then(|| Reason {
            id: "audio.silent".to_owned(),
            text: format!(
                "{silent} of {played} periods were silent, which costs less than playing: the model is muted, or the gate \
                 is closed"
            ),
            remedy: "choose another model, or a lower threshold of the gate".to_owned(),
        });
        silent.into_iter().chain(self.wrong_rate()).collect()
    }

    fn caveats(&self) -> Vec<Caveat> {
        self.settings.caveats.clone()
    }
}
