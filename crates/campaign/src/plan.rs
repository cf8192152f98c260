//! What is asked for.

mod check;

use std::{path::PathBuf, time::Duration};

use loads::LoadSpec;
use machine::CpuList;
use probes::timer::{Core, Fraction};
use record::{AskedThread, Scenario};
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

pub use self::check::PlanError;
use crate::{AudioPlan, NicPlan, StreamPlan, UdpPlan, WakeupOffset, audio::search, stream::offset::CALIBRATION_NS};

/// Longest period, ns: one hour.
pub const PERIOD_MAX_NS: u64 = 3_600_000_000_000;
/// Period of the noise probe unless asked otherwise, ns.
pub const NOISE_PERIOD_NS: u64 = 100_000_000;
/// The part of each period that the noise probe spins unless asked otherwise, per cent: the kernel keeps the rest from
/// real-time threads, too.
pub const NOISE_SHARE_PERCENT: u64 = 95;
/// A gap is longer than this unless asked otherwise, ns.
const NOISE_THRESHOLD_NS: u64 = 1_000;

/// What the measuring threads do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Probe {
    /// They sleep until their deadlines: how late they wake.
    #[default]
    Timer,
    /// They look at a clock and do nothing else: what takes their CPU from them. One period is a stretch of that, and a
    /// rest.
    Noise {
        /// How long they look in each period, ns; `None` for [`NOISE_SHARE_PERCENT`] of it.
        runtime_ns: Option<u64>,
    },
    /// They send datagrams, which come back: how long each is under way.
    Udp(Box<UdpPlan>),
    /// One wakes before each slot and sends a frame of a stream in it, or frames are received, or both.
    Stream(Box<StreamPlan>),
    /// One plays a period of audio at each deadline.
    Audio(Box<AudioPlan>),
}

/// A run: what measures, where and how, and what runs beside it, phase after phase.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// What the measuring threads do.
    pub probe: Probe,
    /// CPUs to measure; `None` for every CPU that is online and allowed.
    pub cpus: Option<CpuList>,
    /// CPUs that loads may use where they do not say so themselves; `None` for the measured ones.
    pub load_cpus: Option<CpuList>,
    /// Policy of the measuring threads.
    pub policy: Policy,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// How the threads wait.
    pub wait: Wait,
    /// Who schedules them.
    pub core: Core,
    /// Shift between the grids of neighbouring CPUs, ns.
    pub offset_ns: u64,
    /// Lateness above which a wake-up is a spike, ns; `None` for 100 us, or the period where that is less. Of the noise
    /// probe the length above which a gap is one; `None` for 1 us.
    pub threshold_ns: Option<u64>,
    /// CPUs that all else is moved off for the run. They are the measured ones, and loads use the others, unless `cpus` and
    /// `load_cpus` say otherwise.
    pub shield: Option<CpuList>,
    /// Whether to hold the measured CPUs out of their idle states.
    pub hold_cpu_awake: bool,
    /// How the interface is set for the run that datagrams or frames go over.
    pub nic: NicPlan,
    /// How to look for the culprits of spikes.
    pub blame: blame::Asked,
    /// Whether to measure after the run what looking costs; that takes half a second.
    pub blame_cost: bool,
    /// Whether to run the kernel's timerlat tracer beside the probe.
    pub timerlat: bool,
    /// When to end early and keep the trace.
    pub stop_on: Option<StopOn>,
    /// The parts of the run in their order; at least one.
    pub phases: Vec<PhasePlan>,
    /// Names of the profiles that decide the verdict.
    pub profiles: Vec<String>,
    /// Where the record is kept while the run goes on; `None` to keep it in memory alone.
    pub record_path: Option<PathBuf>,
    /// The punctual binary, which runs itself for each load.
    pub executable: PathBuf,
    /// How often to report progress; `None` for never.
    pub watch_every: Option<Duration>,
}

/// When to end a run early, and what to do with the trace that led there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopOn {
    /// Lateness above which the run ends, ns.
    pub lateness_ns: u64,
    /// Where the trace goes, in the format of trace-cmd.
    pub trace_path: PathBuf,
}

/// One part of a run.
#[derive(Debug, Clone)]
pub struct PhasePlan {
    /// Name, unique in the run: `rest`, `load`.
    pub name: String,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// When it ends.
    pub length: Length,
    /// What runs beside the probe.
    pub loads: Vec<LoadSpec>,
    /// The measuring threads, each with its own place and period; empty for one on every measured CPU.
    pub threads: Vec<ThreadPlan>,
}

/// A measuring thread that is not like the others. Its CPU is one of [`Plan::cpus`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPlan {
    /// What it is called in the record: `base`, `servo`.
    pub role: String,
    /// CPU it is pinned to.
    pub cpu: u32,
    /// Its policy.
    pub policy: Policy,
    /// Time between its deadlines, ns; 1 to [`PERIOD_MAX_NS`].
    pub period_ns: u64,
}

/// When a phase ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// After so many ns.
    Duration(u64),
    /// After so many wake-ups a thread.
    Samples(u64),
    /// When the user ends it.
    UntilStopped,
}

impl Plan {
    /// How long the noise probe looks in each period, ns; `None` for other probes.
    #[must_use]
    pub fn runtime_ns(&self, period_ns: u64) -> Option<u64> {
        match self.probe {
            Probe::Timer | Probe::Udp(_) | Probe::Stream(_) | Probe::Audio(_) => None,
            Probe::Noise { runtime_ns } => {
                Some(runtime_ns.unwrap_or_else(|| period_ns.saturating_mul(NOISE_SHARE_PERCENT) / 100))
            }
        }
    }

    /// How long all phases take together, ns, with the time to find a wake-up offset; `None` when no duration ends them.
    #[must_use]
    pub fn total_ns(&self) -> Option<u64> {
        if matches!(&self.probe, Probe::Audio(audio) if audio.find) {
            let longest_ns = self.phases.iter().map(PhasePlan::duration_ns).max()??;
            return Some(longest_ns.saturating_mul(self.steps() as u64));
        }
        let phases_ns: u64 = self.phases.iter().map(PhasePlan::duration_ns).sum::<Option<u64>>()?;
        Some(phases_ns.saturating_add(if self.calibrates() { CALIBRATION_NS } else { 0 }))
    }

    /// How many phases are measured, at most.
    #[must_use]
    pub fn steps(&self) -> usize {
        match &self.probe {
            Probe::Audio(audio) if audio.find => search::steps(self.phases.len()),
            _ => self.phases.len(),
        }
    }

    /// Whether a talker's wake-up offset is to be found first.
    #[must_use]
    pub fn calibrates(&self) -> bool {
        let Probe::Stream(stream) = &self.probe else { return false };
        stream.talk.as_ref().is_some_and(|talk| talk.offset == WakeupOffset::Auto)
    }

    /// What a period of that many whole ns is longer.
    pub(crate) fn fraction(&self, period_ns: u64) -> Fraction {
        match &self.probe {
            Probe::Audio(audio) => audio.grid(period_ns).fraction(),
            _ => Fraction::default(),
        }
    }

    /// Lateness above which a wake-up at `period_ns` is a spike, ns; of the noise probe the length of a gap, of audio the
    /// completion of a period.
    #[must_use]
    pub fn threshold_at(&self, period_ns: u64) -> i64 {
        let threshold_ns = self.threshold_ns.unwrap_or(match &self.probe {
            Probe::Timer | Probe::Udp(_) => period_ns.min(100_000),
            Probe::Stream(stream) => stream.threshold_at(period_ns),
            Probe::Audio(audio) => audio.threshold_at(period_ns),
            Probe::Noise { .. } => NOISE_THRESHOLD_NS,
        });
        // What ends the run is a spike.
        self.stop_on.as_ref().map_or(threshold_ns, |stop_on| threshold_ns.min(stop_on.lateness_ns)) as i64
    }

    /// What measures: `timer`, or `threads` where they have places of their own; `noise`, `udp`, `stream`, `audio`.
    fn probe(&self) -> &'static str {
        match &self.probe {
            Probe::Noise { .. } => "noise",
            Probe::Udp(_) => "udp",
            Probe::Stream(_) => "stream",
            Probe::Audio(_) => "audio",
            Probe::Timer if self.phases.iter().any(|phase| !phase.threads.is_empty()) => "threads",
            Probe::Timer => "timer",
        }
    }

    /// The policy of all threads, or that of each role.
    fn policy_in_words(&self) -> String {
        if let Probe::Udp(udp) = &self.probe {
            return format!("{} for sender, {} for receiver", self.policy, udp.policy);
        }
        let threads = self.phases.first().map_or(&[][..], |phase| &phase.threads);
        match threads.split_first() {
            None => self.policy.to_string(),
            Some((first, rest)) if rest.iter().all(|thread| thread.policy == first.policy) => first.policy.to_string(),
            Some(_) => {
                let each = threads.iter().map(|thread| format!("{} for {}", thread.policy, thread.role));
                each.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// The plan as the record tells it.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        Scenario {
            probe: self.probe().to_owned(),
            cpus: self.cpus.as_ref().map(ToString::to_string),
            policy: self.policy_in_words(),
            clock: self.clock.to_string(),
            wait: if self.core == Core::Linux { self.wait.to_string() } else { self.core.to_string() },
            core: (self.core != Core::Linux).then(|| self.core.to_string()),
            offset_ns: self.offset_ns,
            threshold_ns: self.phases.first().map_or(0, |phase| self.threshold_at(phase.period_ns)),
            hold_cpu_awake: self.hold_cpu_awake,
            timerlat: self.timerlat,
            profiles: self.profiles.clone(),
            extra: record::Extra::new(),
        }
    }
}

impl ThreadPlan {
    /// The thread as the record tells it.
    pub(crate) fn told(&self) -> AskedThread {
        let Self { role, cpu, policy, period_ns } = self.clone();
        AskedThread { role, cpu, policy: policy.to_string(), period_ns }
    }
}

impl PhasePlan {
    /// How long the phase takes, ns, where its length says so.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        match self.length {
            Length::Duration(duration_ns) => Some(duration_ns),
            Length::Samples(samples) => samples.checked_mul(self.period_ns),
            Length::UntilStopped => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn phase(period_ns: u64, length: Length) -> PhasePlan {
        PhasePlan { name: "rest".to_owned(), period_ns, length, loads: Vec::new(), threads: Vec::new() }
    }

    pub fn plan(phases: Vec<PhasePlan>) -> Plan {
        Plan {
            command: Vec::new(),
            probe: Probe::Timer,
            cpus: None,
            load_cpus: None,
            policy: Policy::Other,
            clock: Clock::Monotonic,
            wait: Wait::Nanosleep,
            core: Core::Linux,
            offset_ns: 0,
            threshold_ns: None,
            shield: None,
            hold_cpu_awake: false,
            nic: NicPlan::default(),
            blame: blame::Asked::Auto,
            blame_cost: true,
            timerlat: false,
            stop_on: None,
            phases,
            profiles: Vec::new(),
            record_path: None,
            executable: PathBuf::new(),
            watch_every: None,
        }
    }

    #[test]
    fn threads_of_their_own_are_told_with_their_policies() {
        let thread = |role: &str, priority| ThreadPlan {
            role: role.to_owned(),
            cpu: 0,
            policy: Policy::Fifo(priority),
            period_ns: 25_000,
        };
        let told = |threads| plan(vec![PhasePlan { threads, ..phase(1, Length::UntilStopped) }]).scenario();
        let scenario = told(vec![thread("base", 90), thread("servo", 89)]);
        assert_eq!(
            (scenario.probe.as_str(), scenario.policy.as_str()),
            ("threads", "fifo:90 for base, fifo:89 for servo")
        );
        assert_eq!(told(vec![thread("t1", 90), thread("t2", 90)]).policy, "fifo:90");
    }

    #[test]
    fn the_whole_time_is_known_unless_the_user_ends_it() {
        let two = [phase(1000, Length::Duration(5_000)), phase(1000, Length::Samples(7))];
        assert_eq!(plan(two.to_vec()).total_ns(), Some(12_000));
        assert_eq!(plan(vec![two[0].clone(), phase(1, Length::UntilStopped)]).total_ns(), None);
    }

    #[test]
    fn a_spike_is_above_100_us_or_a_period() {
        assert_eq!(plan(vec![]).threshold_at(1_000_000), 100_000);
        assert_eq!(plan(vec![]).threshold_at(25_000), 25_000);
        assert_eq!(Plan { threshold_ns: Some(7), ..plan(vec![]) }.threshold_at(25_000), 7);
    }
}
