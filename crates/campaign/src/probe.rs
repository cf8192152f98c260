//! The probes. Each probe is defined once, in the module of its name.
//!
//! A probe is a struct of its options. `Default` sets their defaults, constants and parsers in the same module define
//! their limits, and its [`Definition`] provides everything else that the rest of the program needs. The command line,
//! campaign files and `pair` fill in the same struct.
//!
//! | module | measures |
//! |---|---|
//! | [`timer`] | wake-ups of one thread on each CPU |
//! | [`threads`] | wake-ups of several threads, each with its own period |
//! | [`noise`] | gaps in a loop that never sleeps |
//! | [`round_trip`] | round trips of datagrams and frames |
//! | [`stream`] | frames of an AVB stream, sent and received |
//! | [`interrupt`] | the time from an interrupt of a device to the wake-up of a thread |
//! | [`audio`] | periods of audio, played through an amplifier |
//! | [`xdp`] | AF_XDP for streams and round trips |
//! | `definition` | the interface of a probe |
//! | `check` | errors in the options of a probe or in a plan |

pub mod audio;
mod check;
mod definition;
pub mod interrupt;
pub mod noise;
pub mod round_trip;
pub mod stream;
pub mod threads;
pub mod timer;
pub mod xdp;

pub use self::{
    audio::AudioProbe,
    check::PlanError,
    definition::{
        Definition, Network, PERIOD_MAX_NS, PERIOD_MIN_NS, PhaseContext, PlacementContext, PlacementRule, PrepareError,
        Properties, RunShape, ThreadPlan, Timing, best_cpu, choose_cpu, quiet_cpus,
    },
    interrupt::InterruptProbe,
    noise::NoiseProbe,
    round_trip::RoundTripProbe,
    stream::StreamProbe,
    threads::ThreadsProbe,
    timer::TimerProbe,
};
pub(crate) use definition::with_shield;

/// A probe with its options.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// Wake-up latency of one thread on each CPU.
    Timer(TimerProbe),
    /// Wake-up latency of several threads, each with its own period and CPU.
    Threads(ThreadsProbe),
    /// Interruptions of a thread that never sleeps, one on each CPU.
    Noise(NoiseProbe),
    /// Round-trip times of datagrams, of ICMP echo requests, or of Ethernet frames.
    RoundTrip(Box<RoundTripProbe>),
    /// Send and receive times of the frames of a stream.
    Stream(Box<StreamProbe>),
    /// Times from interrupts to the wake-ups of the thread that waits for them.
    Interrupt(Box<InterruptProbe>),
    /// Completion times of audio periods.
    Audio(Box<AudioProbe>),
}

impl Probe {
    /// The interface of this probe.
    #[must_use]
    pub fn definition(&self) -> &dyn Definition {
        match self {
            Self::Timer(timer) => timer,
            Self::Threads(threads) => threads,
            Self::Noise(noise) => noise,
            Self::RoundTrip(probe) => &**probe,
            Self::Stream(stream) => &**stream,
            Self::Interrupt(interrupt) => &**interrupt,
            Self::Audio(audio) => &**audio,
        }
    }

    /// The mutable interface, to place its threads.
    pub fn definition_mut(&mut self) -> &mut dyn Definition {
        match self {
            Self::Timer(timer) => timer,
            Self::Threads(threads) => threads,
            Self::Noise(noise) => noise,
            Self::RoundTrip(probe) => &mut **probe,
            Self::Stream(stream) => &mut **stream,
            Self::Interrupt(interrupt) => &mut **interrupt,
            Self::Audio(audio) => &mut **audio,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guard_remedies_name_options_of_the_probe() {
        let of_timer = TimerProbe::default().properties().guard_remedies;
        assert!(of_timer.iter().all(|remedy| remedy.contains("--period")));
        let of_audio = AudioProbe::default().properties().guard_remedies;
        let fits = |remedy: &&str| remedy.contains("--frames") && !remedy.contains("--period");
        assert!(of_audio.iter().all(fits), "{of_audio:?}");
    }
}
