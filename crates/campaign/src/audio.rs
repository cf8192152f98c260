//! Audio: a timer that plays a period at each deadline, through a model.

mod cab;
mod device;
mod faults;
pub(crate) mod search;
mod source;

use std::path::PathBuf;

use amp::{Chain, Controls, Parts, Player, Preset, Rig, Settings};
use machine::Root;
use probes::{
    audio::{Audio, AudioSettings, Names},
    timer::Grid,
};
use record::{BufferSearch, Caveat, Record, SoundCard};
use sys::{clock::Clock, file, pcm::Duplex};

use crate::{PhasePlan, Plan, PlanError, Probe, RunError, thrift::Thrift};
pub use cab::CabSource;
pub use device::{Device, INPUTS};
pub use source::{AudioError, ModelSource};

/// Samples of a period, at least and at most.
pub const FRAMES: std::ops::RangeInclusive<u32> = 8..=4096;
/// Sample rates, Hz.
pub const RATES_HZ: std::ops::RangeInclusive<u32> = 8_000..=384_000;
/// Periods that a card may hold.
pub const PERIODS: std::ops::RangeInclusive<u32> = 2..=16;

/// What an audio thread plays. It is the thread of the phase; its period tells the frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudioPlan {
    /// Sample rate, Hz; one of [`RATES_HZ`].
    pub rate_hz: u32,
    /// Periods that the card holds; one of [`PERIODS`].
    pub periods: u32,
    /// What it plays through.
    pub through: Through,
    /// The card that paces it; `None` for the clock.
    pub device: Option<Device>,
    /// Whether to look for the smallest buffer that holds: phases are candidates then, the smallest first, and only those run
    /// that decide.
    pub find: bool,
}

/// What is played through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Through {
    /// A model and the cabinet behind it, as their files are.
    Parts {
        /// The model.
        model: ModelSource,
        /// The cabinet.
        cab: CabSource,
    },
    /// All that a preset says.
    Preset(PathBuf),
}

impl Default for Through {
    fn default() -> Self {
        Self::Parts { model: ModelSource::default(), cab: CabSource::default() }
    }
}

impl Through {
    /// What the record calls it.
    fn names(&self) -> Names {
        match self {
            Self::Parts { model, cab } => Names { model: model.to_string(), cab: cab.named(), ..Names::default() },
            Self::Preset(path) => Names { preset: path.display().to_string(), ..Names::default() },
        }
    }
}

impl AudioPlan {
    /// The period of so many frames, ns, rounded down: what a [`PhasePlan`] and a [`ThreadPlan`](crate::ThreadPlan) take.
    #[must_use]
    pub fn period_ns(&self, frames: u32) -> u64 {
        Grid::of_frames(frames, self.rate_hz).period_ns()
    }

    /// The frames of such a period.
    #[must_use]
    pub fn frames_of(&self, period_ns: u64) -> u32 {
        let frames = (u128::from(period_ns) * u128::from(self.rate_hz) + 500_000_000) / 1_000_000_000;
        frames.try_into().unwrap_or(u32::MAX)
    }

    /// The exact deadlines of such a period.
    pub(crate) fn grid(&self, period_ns: u64) -> Grid {
        Grid::of_frames(self.frames_of(period_ns), self.rate_hz)
    }

    /// What is to be explained where nothing else is asked for, ns: a period that took more than half of the time that it has.
    pub(crate) fn threshold_at(&self, period_ns: u64) -> u64 {
        period_ns.saturating_mul(u64::from(self.periods.saturating_sub(1))) / 2
    }

    /// Reads what is played through, and makes the chain of it. A model of a preset that was made for another rate is
    /// resampled, which is told.
    ///
    /// # Errors
    /// [`AudioError`].
    pub fn load(&self) -> Result<(Amplifier, Vec<String>), AudioError> {
        let (settings, parts, notes) = match &self.through {
            Through::Parts { model, cab } => {
                let models = [Some(model.load(self.rate_hz)?), None];
                (Settings::default(), Parts { models, cabinet: cab.load(self.rate_hz)? }, Vec::new())
            }
            Through::Preset(path) => {
                let folder = path.parent().unwrap_or(path);
                let rig = Rig::load(Preset::read(path, file::read)?.chosen(folder), file::read)?;
                let (parts, notes) = rig.parts(self.rate_hz)?;
                (rig.settings, parts, notes)
            }
        };
        let (chain, controls) = Chain::new(self.rate_hz, &settings, parts);
        Ok((Amplifier(chain, controls), notes))
    }

    /// Opens the card for periods of so many frames; `None` where the clock paces.
    ///
    /// # Errors
    /// [`AudioError`], with what the card offers instead.
    pub fn open(&self, frames: u32) -> Result<Option<(Duplex, SoundCard)>, AudioError> {
        let Some(device) = &self.device else { return Ok(None) };
        Ok(Some(device.open(&Root::system(), self.rate_hz, frames, self.periods)?))
    }

    pub(crate) fn check(&self, clock: Clock, period_ns: u64) -> Result<(), PlanError> {
        if self.device.is_some() && clock != Clock::Monotonic {
            return Err(PlanError::CardClock);
        }
        let fits = RATES_HZ.contains(&self.rate_hz) && PERIODS.contains(&self.periods);
        (fits && FRAMES.contains(&self.frames_of(period_ns))).then_some(()).ok_or(PlanError::Audio)
    }
}

/// What a search has found so far; `None` for a run that does not search.
pub(crate) fn found(plan: &Plan, record: &Record) -> Option<BufferSearch> {
    let Probe::Audio(audio) = &plan.probe else { return None };
    let candidates = plan.phases.iter().map(|phase| audio.frames_of(phase.period_ns)).collect();
    audio.find.then(|| analysis::audio::search(record, candidates))
}

/// Reads the model, and makes everything that playing needs.
pub fn prepare(plan: &Plan, phase: &PhasePlan, audio: &AudioPlan) -> Result<Audio, RunError> {
    let frames = audio.frames_of(phase.period_ns);
    let (player, notes) = audio.load()?;
    let (duplex, card) = audio.open(frames)?.unzip();
    let settings = AudioSettings {
        rate_hz: audio.rate_hz,
        frames,
        periods: audio.periods,
        clock: plan.clock,
        threshold_ns: plan.threshold_at(phase.period_ns),
        spikes_kept: Thrift::of(plan).spikes_kept,
        names: audio.through.names(),
        card,
        caveats: notes.into_iter().map(|text| Caveat { kind: "resampled".to_owned(), text }).collect(),
    };
    Ok(match duplex {
        Some(duplex) => {
            let input = audio.device.as_ref().map_or(0, |device| device.input);
            Audio::prepare_on((duplex, input), settings, player)
        }
        None => Audio::prepare(settings, player),
    })
}

/// The whole chain, as `punctual amp` plays it, and the controls that nobody turns.
pub struct Amplifier(
    Chain,
    #[expect(dead_code, reason = "the chain listens to them for as long as they are there")] Controls,
);

impl Player for Amplifier {
    fn play(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        self.0.process(input, left, right);
    }

    fn delay(&self) -> usize {
        self.0.delay()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn audio(rate_hz: u32) -> AudioPlan {
        let through = Through::Parts { model: ModelSource::BuiltIn(amp::SyntheticModel::Nano), cab: CabSource::None };
        AudioPlan { rate_hz, periods: 2, through, device: None, find: false }
    }

    proptest! {
        #[test]
        fn a_period_tells_its_frames(rate_hz in RATES_HZ, frames in FRAMES) {
            let plan = audio(rate_hz);
            prop_assert_eq!(plan.frames_of(plan.period_ns(frames)), frames);
            prop_assert_eq!(plan.grid(plan.period_ns(frames)), Grid::of_frames(frames, rate_hz));
        }
    }

    #[test]
    fn what_no_card_does_is_refused() {
        let plan = audio(48_000);
        let check = |plan: &AudioPlan, period_ns| plan.check(Clock::Monotonic, period_ns);
        assert_eq!(check(&plan, plan.period_ns(64)), Ok(()));
        assert_eq!(check(&plan, plan.period_ns(4)), Err(PlanError::Audio));
        assert_eq!(check(&AudioPlan { periods: 1, ..plan.clone() }, 1_333_333), Err(PlanError::Audio));
        assert_eq!(check(&AudioPlan { rate_hz: 400, ..plan.clone() }, 1_333_333), Err(PlanError::Audio));
        let on_a_card = AudioPlan { device: Some("hw:0".parse().unwrap()), ..plan };
        assert_eq!(on_a_card.check(Clock::Tai, 1_333_333), Err(PlanError::CardClock));
        assert_eq!(on_a_card.check(Clock::Monotonic, 1_333_333), Ok(()));
    }

    #[test]
    fn a_preset_plays_and_a_bad_one_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lead.toml");
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../amp/tests/vectors/wn_a1_nano.nam");
        let load = |text: &str, rate_hz| {
            fs::write(&path, text).unwrap();
            AudioPlan { through: Through::Preset(path.clone()), ..audio(rate_hz) }.load()
        };
        let two = format!("[[model]]\nfile = '{model}'\n[[model]]\nfile = '{model}'\n[amp]\nrouting = 'parallel'\n");
        assert_eq!(load(&two, 48_000).map(|(_, notes)| notes.len()).unwrap(), 0);
        let notes = load(&two, 44_100).unwrap().1;
        assert!(notes.len() == 2 && notes[0].contains("is made for 48000 Hz: resampled"), "{notes:?}");
        let error = load("[gate]\nthreshhold_db = 1", 48_000).map(drop).unwrap_err().to_string();
        assert!(
            error.ends_with(r#"lead.toml: line 2: [gate] has no "threshhold_db": did you mean "threshold_db"?"#),
            "{error}"
        );
    }
}
