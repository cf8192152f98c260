//! What can be measured: each probe is defined once, in the module of its name.
//!
//! A probe is a struct of its options. `Default` has their defaults, constants and parsers beside it have their limits, and
//! its [`Definition`] has everything else that the rest of the program asks of a probe. The command line, the campaign
//! file and `pair` fill in the same struct.
//!
//! | module | measures |
//! |---|---|
//! | [`timer`] | wake-ups of one thread on each CPU |
//! | [`threads`] | wake-ups of several threads, each with its own period |
//! | [`noise`] | gaps in a loop that never sleeps |
//! | [`udp`] | round trips of datagrams |
//! | [`stream`] | frames of an AVB stream, sent and received |
//! | [`audio`] | periods of audio, played through an amplifier |
//! | `definition` | what the rest of the program asks of a probe |
//! | `check` | what is wrong with options |

pub mod audio;
mod check;
mod definition;
pub mod noise;
pub mod stream;
pub mod threads;
pub mod timer;
pub mod udp;

pub use self::{
    audio::AudioProbe,
    check::PlanError,
    definition::{
        Definition, Network, PERIOD_MAX_NS, PhaseContext, PlacementRule, Places, PrepareError, RunShape, ThreadPlan,
        best_cpu,
    },
    noise::NoiseProbe,
    stream::StreamProbe,
    threads::ThreadsProbe,
    timer::TimerProbe,
    udp::UdpProbe,
};
pub(crate) use definition::on_its_side;

/// A probe with its options.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// How late a thread wakes, one on each CPU.
    Timer(TimerProbe),
    /// How late several threads wake, each with its own period and CPU.
    Threads(ThreadsProbe),
    /// What takes the CPU from a thread that never sleeps, one on each CPU.
    Noise(NoiseProbe),
    /// How long datagrams take to another machine and back.
    Udp(Box<UdpProbe>),
    /// How punctually the frames of a stream are sent and received.
    Stream(Box<StreamProbe>),
    /// How punctually periods of audio are played.
    Audio(Box<AudioProbe>),
}

impl Probe {
    /// What the rest of the program asks of this probe.
    #[must_use]
    pub fn definition(&self) -> &dyn Definition {
        match self {
            Self::Timer(timer) => timer,
            Self::Threads(threads) => threads,
            Self::Noise(noise) => noise,
            Self::Udp(udp) => &**udp,
            Self::Stream(stream) => &**stream,
            Self::Audio(audio) => &**audio,
        }
    }

    /// The same, to place its threads.
    pub fn definition_mut(&mut self) -> &mut dyn Definition {
        match self {
            Self::Timer(timer) => timer,
            Self::Threads(threads) => threads,
            Self::Noise(noise) => noise,
            Self::Udp(udp) => &mut **udp,
            Self::Stream(stream) => &mut **stream,
            Self::Audio(audio) => &mut **audio,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedies_of_the_guard_name_options_that_the_probe_has() {
        let of_timer = TimerProbe::default().guard_remedies();
        assert!(of_timer.iter().all(|remedy| remedy.contains("--period")));
        let of_audio = AudioProbe::default().guard_remedies();
        let fits = |remedy: &&str| remedy.contains("--frames") && !remedy.contains("--period");
        assert!(of_audio.iter().all(fits), "{of_audio:?}");
    }
}
