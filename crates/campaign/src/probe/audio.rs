//! Audio: a timer thread processes a period at each deadline with an amplifier.

mod cab;
mod device;
mod source;
mod validate;

use std::{
    io,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use amp::{Chain, Controls, Parts, Preset, Rig, Settings};
use analysis::Profile;
use machine::Root;
use probes::{
    audio::{Audio, AudioSettings, Names, Player},
    probe_threads::ProbeThreads,
    timer::Grid,
};
use record::{Caveat, SoundCard};
use sys::{clock::Clock, pcm::Duplex, sched::Policy};

pub use cab::CabSource;
pub use device::{Device, INPUTS};
pub use source::{AudioError, ModelSource};

use super::{
    check::PlanError,
    definition::{
        Definition, Network, PhaseContext, PlacementContext, PlacementRule, PrepareError, Properties, RunShape,
        ThreadPlan, Timing,
    },
    timer::POLICY,
};

/// Number of samples in a period.
pub const FRAMES: RangeInclusive<u32> = 8..=4096;
/// Sample rates, Hz.
pub const RATES_HZ: RangeInclusive<u32> = 8_000..=384_000;
/// Number of periods in the buffer of a card.
pub const PERIODS: RangeInclusive<u32> = 2..=16;

/// Options of the audio probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudioProbe {
    /// Sample rate, Hz; one of [`RATES_HZ`].
    pub rate_hz: u32,
    /// Samples of a period; one of [`FRAMES`].
    pub frames: u32,
    /// Periods in the buffer of the card; one of [`PERIODS`].
    pub periods: u32,
    /// The amplifier that processes the audio.
    pub through: Through,
    /// The card that paces it; `None` for the clock.
    pub device: Option<Device>,
    /// True to find the smallest buffer without dropouts: the phases are then the candidates, the smallest first, and a
    /// binary search decides which of them run.
    pub find: bool,
    /// CPU of the audio thread; `None` before it is placed.
    pub cpu: Option<u32>,
}

impl Default for AudioProbe {
    fn default() -> Self {
        Self {
            rate_hz: 48_000,
            frames: 64,
            periods: 2,
            through: Through::default(),
            device: None,
            find: false,
            cpu: None,
        }
    }
}

/// The amplifier that processes the audio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Through {
    /// A model followed by a cabinet, with default settings.
    Parts {
        /// The model.
        model: ModelSource,
        /// The cabinet.
        cab: CabSource,
    },
    /// Everything that a preset contains.
    Preset(PathBuf),
}

impl Default for Through {
    fn default() -> Self {
        Self::Parts { model: ModelSource::default(), cab: CabSource::default() }
    }
}

impl Through {
    /// The names in the record.
    fn names(&self) -> Names {
        match self {
            Self::Parts { model, cab } => Names { model: model.to_string(), cab: cab.named(), ..Names::default() },
            Self::Preset(path) => Names { preset: path.display().to_string(), ..Names::default() },
        }
    }
}

/// The frames of the shortest period of the profiles, among those that are a whole number of frames at this rate.
#[must_use]
pub fn frames_of_profiles(profiles: &[Profile], rate_hz: u32) -> Option<u32> {
    let frames = |profile: &Profile| {
        let samples = u128::from(profile.period_ns) * u128::from(rate_hz);
        let frames = (samples + 500_000_000) / 1_000_000_000;
        // A profile's period is rounded to whole ns.
        let is_whole = (frames * 1_000_000_000).abs_diff(samples) <= u128::from(rate_hz);
        u32::try_from(frames).ok().filter(|frames| is_whole && FRAMES.contains(frames))
    };
    profiles.iter().filter_map(frames).min()
}

impl AudioProbe {
    /// The period of this number of frames, ns, rounded down.
    #[must_use]
    pub fn period_of(&self, frames: u32) -> u64 {
        Grid::of_frames(frames, self.rate_hz).period_ns()
    }

    /// The number of frames in a period.
    #[must_use]
    pub fn frames_of(&self, period_ns: u64) -> u32 {
        let frames = (u128::from(period_ns) * u128::from(self.rate_hz) + 500_000_000) / 1_000_000_000;
        frames.try_into().unwrap_or(u32::MAX)
    }

    /// The exact deadlines for a period.
    fn grid(&self, period_ns: u64) -> Grid {
        Grid::of_frames(self.frames_of(period_ns), self.rate_hz)
    }

    /// Reads the files of the amplifier, and builds the signal chain. Models of a preset that were trained at another
    /// rate are resampled; the returned notes say so.
    ///
    /// # Errors
    /// [`AudioError`].
    pub fn load(&self) -> Result<(Amplifier, Vec<String>), AudioError> {
        let (settings, parts, notes) = match &self.through {
            Through::Parts { model, cab } => {
                let models = [Some(model.load(self.rate_hz)?), None];
                (
                    Settings::default(),
                    Parts { models, cabinet: cab.load(self.rate_hz)?, ..Parts::default() },
                    Vec::new(),
                )
            }
            Through::Preset(path) => {
                let folder = path.parent().unwrap_or(path);
                let rig = Rig::load(Preset::read(path, read_part)?.into_spec(folder), read_named)?;
                let (parts, notes) = rig.parts(self.rate_hz)?;
                (rig.settings, parts, notes)
            }
        };
        let (chain, controls) = Chain::new(self.rate_hz, &settings, parts);
        Ok((Amplifier(chain, controls), notes))
    }

    /// Opens the card for periods of this number of frames; `None` if a clock paces the probe.
    ///
    /// # Errors
    /// [`AudioError`], with the settings that the card offers.
    pub fn open(&self, frames: u32) -> Result<Option<(Duplex, SoundCard)>, AudioError> {
        let Some(device) = &self.device else { return Ok(None) };
        Ok(Some(device.open(&Root::system(), self.rate_hz, frames, self.periods)?))
    }

    fn check_period(&self, period_ns: u64) -> Result<(), PlanError> {
        let fits = RATES_HZ.contains(&self.rate_hz) && PERIODS.contains(&self.periods);
        if fits && FRAMES.contains(&self.frames_of(period_ns)) {
            return Ok(());
        }
        Err(PlanError::Audio(format!(
            "--frames must be {} to {}, --rate {} to {} Hz, --periods {} to {}",
            FRAMES.start(),
            FRAMES.end(),
            RATES_HZ.start(),
            RATES_HZ.end(),
            PERIODS.start(),
            PERIODS.end()
        )))
    }

    /// Loads the amplifier, opens the card, and creates the audio probe.
    fn player(&self, context: &PhaseContext<'_>) -> Result<Audio, PrepareError> {
        let frames = self.frames_of(context.period_ns);
        let (player, notes) = self.load()?;
        let (duplex, card) = self.open(frames)?.unzip();
        let settings = AudioSettings {
            rate_hz: self.rate_hz,
            frames,
            periods: self.periods,
            clock: context.clock,
            threshold_ns: context.threshold_ns,
            spikes_kept: context.spikes_kept,
            names: self.through.names(),
            card,
            caveats: notes.into_iter().map(|text| Caveat { kind: "resampled".to_owned(), text }).collect(),
        };
        Ok(match duplex {
            Some(duplex) => {
                let input = self.device.as_ref().map_or(0, |device| device.input);
                Audio::prepare_on((duplex, input), settings, player)
            }
            None => Audio::prepare(settings, player),
        })
    }
}

impl Definition for AudioProbe {
    fn properties(&self) -> Properties {
        Properties {
            name: record::AUDIO,
            network: Network::None,
            has_late_wake_ups: false,
            measures_trace_cost: false,
            guard_remedies: [
                "use more --frames, a smaller model or a lower priority",
                "use more --frames or a smaller model; this period is too short for this machine",
            ],
            awaits_device: false,
            pacer_failed: Some([
                "the sound card transferred nothing for a second, or is gone",
                "see `dmesg`, plug it in again, or choose another --rate",
            ]),
            evl: if self.device.is_some() { Err(PlanError::EvlCard) } else { Ok(()) },
        }
    }

    fn policy(&self, requested: Option<Policy>) -> Policy {
        requested.unwrap_or(POLICY)
    }

    fn period_ns(&self) -> u64 {
        self.period_of(self.frames)
    }

    /// A spike takes more than half of the time that a period has until its deadline.
    fn timing(&self, period_ns: u64) -> Timing {
        Timing {
            threshold_ns: period_ns.saturating_mul(u64::from(self.periods.saturating_sub(1))) / 2,
            fraction: self.grid(period_ns).fraction(),
            noise_loop_ns: None,
        }
    }

    fn placement(&self) -> PlacementRule {
        PlacementRule::one_thread(record::AUDIO)
    }

    fn place(&mut self, cpus: Vec<u32>, _machine: &PlacementContext<'_>) -> Vec<u32> {
        self.cpu = cpus.first().copied();
        cpus
    }

    fn threads(&self, policy: Policy) -> Vec<ThreadPlan> {
        let thread = |cpu| ThreadPlan { role: record::AUDIO.to_owned(), cpu, policy, period_ns: self.period_ns() };
        self.cpu.map(thread).into_iter().collect()
    }

    fn interface_name(&self) -> Result<Option<String>, PrepareError> {
        Ok(None)
    }

    fn files(&self, _record_path: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn check(&self) -> Result<(), PlanError> {
        self.check_period(self.period_ns())
    }

    fn check_run(&self, run: &RunShape<'_>) -> Result<(), PlanError> {
        if self.device.is_some() && run.clock != Clock::Monotonic {
            return Err(PlanError::CardClock);
        }
        run.periods_ns.iter().try_for_each(|period_ns| self.check_period(*period_ns))
    }

    fn prepare(&self, context: &PhaseContext<'_>) -> Result<Option<Box<dyn ProbeThreads>>, PrepareError> {
        Ok(Some(Box::new(self.player(context)?)))
    }
}

/// The signal chain, as `punctual amp` uses it, with controls that are never changed.
pub struct Amplifier(
    Chain,
    #[expect(dead_code, reason = "the chain reads them, so they must live as long as it")] Controls,
);

impl Player for Amplifier {
    fn play(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        self.0.process(input, left, right);
    }

    fn delay(&self) -> usize {
        self.0.delay()
    }
}

/// Reads a file that a preset names.
fn read_named(path: &Path) -> io::Result<Vec<u8>> {
    record::file::read_regular(path, amp::MAX_FILE_BYTES)
}

/// Reads a model, a cabinet or a preset.
fn read_part(path: &Path) -> io::Result<Vec<u8>> {
    record::file::read_bytes(path, amp::MAX_FILE_BYTES)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn audio(rate_hz: u32) -> AudioProbe {
        let through = Through::Parts { model: ModelSource::BuiltIn(amp::SyntheticModel::Nano), cab: CabSource::None };
        AudioProbe { rate_hz, through, ..AudioProbe::default() }
    }

    proptest! {
        #[test]
        fn frames_follow_from_the_period(rate_hz in RATES_HZ, frames in FRAMES) {
            let plan = audio(rate_hz);
            prop_assert_eq!(plan.frames_of(plan.period_of(frames)), frames);
            prop_assert_eq!(plan.grid(plan.period_of(frames)), Grid::of_frames(frames, rate_hz));
        }
    }

    #[test]
    fn refuses_settings_out_of_range() {
        let plan = audio(48_000);
        let check = |plan: &AudioProbe, period_ns: u64| {
            plan.check_run(&RunShape { policy: POLICY, clock: Clock::Monotonic, periods_ns: &[period_ns] })
        };
        let is_refused = |result| matches!(result, Err(PlanError::Audio(_)));
        assert_eq!(check(&plan, plan.period_of(64)), Ok(()));
        assert!(is_refused(check(&plan, plan.period_of(4))));
        assert!(is_refused(check(&AudioProbe { periods: 1, ..plan.clone() }, 1_333_333)));
        assert!(is_refused(check(&AudioProbe { rate_hz: 400, ..plan.clone() }, 1_333_333)));
        let on_a_card = AudioProbe { device: Some("hw:0".parse().unwrap()), ..plan };
        let of_tai = RunShape { policy: POLICY, clock: Clock::Tai, periods_ns: &[1_333_333] };
        assert_eq!(on_a_card.check_run(&of_tai), Err(PlanError::CardClock));
        assert_eq!(check(&on_a_card, 1_333_333), Ok(()));
    }

    #[test]
    fn loads_presets_and_reports_their_mistakes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lead.toml");
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../amp/tests/vectors/wn_a1_nano.nam");
        let load = |text: &str, rate_hz| {
            fs::write(&path, text).unwrap();
            AudioProbe { through: Through::Preset(path.clone()), ..audio(rate_hz) }.load()
        };
        let two = format!("[[model]]\nfile = '{model}'\n[[model]]\nfile = '{model}'\n[amp]\nrouting = 'parallel'\n");
        assert_eq!(load(&two, 48_000).map(|(_, notes)| notes.len()).unwrap(), 0);
        let notes = load(&two, 44_100).unwrap().1;
        assert!(
            notes.len() == 2 && notes[0].contains("was trained at 48000 Hz and is resampled to 44100 Hz"),
            "{notes:?}"
        );
        let error = load("[gate]\nthreshhold_db = 1", 48_000).map(drop).unwrap_err().to_string();
        assert!(
            error.ends_with(r#"lead.toml: line 2: unknown "threshhold_db" in [gate]; did you mean "threshold_db"?"#),
            "{error}"
        );
    }
}
