//! Audio: a timer that plays a period at each deadline, through a model.

mod cab;
pub(crate) mod search;
mod source;

use amp::{Chain, Controls, Parts, Player, Settings};
use probes::{
    audio::{Audio, AudioSettings, Names},
    timer::Grid,
};

use record::{BufferSearch, Record};

use crate::{PhasePlan, Plan, PlanError, Probe, RunError, thrift::Thrift};
pub use cab::CabSource;
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
    /// The model that it plays through.
    pub model: ModelSource,
    /// The cabinet behind it.
    pub cab: CabSource,
    /// Whether to look for the smallest buffer that holds: phases are candidates then, the smallest first, and only those run
    /// that decide.
    pub find: bool,
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

    /// Reads model and cabinet, and makes the chain of them.
    ///
    /// # Errors
    /// [`AudioError`].
    pub fn load(&self) -> Result<Amplifier, AudioError> {
        let models = [Some(self.model.load(self.rate_hz)?), None];
        let parts = Parts { models, cabinet: self.cab.load(self.rate_hz)? };
        let (chain, controls) = Chain::new(self.rate_hz, &Settings::default(), parts);
        Ok(Amplifier(chain, controls))
    }

    pub(crate) fn check(&self, period_ns: u64) -> Result<(), PlanError> {
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
    let settings = AudioSettings {
        rate_hz: audio.rate_hz,
        frames: audio.frames_of(phase.period_ns),
        periods: audio.periods,
        clock: plan.clock,
        threshold_ns: plan.threshold_at(phase.period_ns),
        spikes_kept: Thrift::of(plan).spikes_kept,
        names: Names { model: audio.model.to_string(), cab: audio.cab.named(), ..Names::default() },
    };
    Ok(Audio::prepare(settings, audio.load()?))
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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn audio(rate_hz: u32) -> AudioPlan {
        let model = ModelSource::BuiltIn(amp::Shape::Nano);
        AudioPlan { rate_hz, periods: 2, model, cab: CabSource::None, find: false }
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
        assert_eq!(plan.check(plan.period_ns(64)), Ok(()));
        assert_eq!(plan.check(plan.period_ns(4)), Err(PlanError::Audio));
        assert_eq!(AudioPlan { periods: 1, ..plan.clone() }.check(1_333_333), Err(PlanError::Audio));
        assert_eq!(AudioPlan { rate_hz: 400, ..plan }.check(1_333_333), Err(PlanError::Audio));
    }
}
