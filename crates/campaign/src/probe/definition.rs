//! The interface of a probe to the rest of the program.

use std::{
    error::Error,
    fmt,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use machine::{CpuError, CpuList, Root, Shield, ShieldError, evl_cpus, isolated_cpus, usable_cpus};
use probes::{probe_threads::ProbeThreads, timer::Fraction};
use sys::{clock::Clock, sched::Policy};

use super::check::PlanError;
use crate::Cores;

/// Shortest period, ns: one microsecond. No thread sleeps and wakes up faster.
pub const PERIOD_MIN_NS: u64 = 1_000;
/// Longest period, ns: one hour.
pub const PERIOD_MAX_NS: u64 = 3_600_000_000_000;
/// Default lateness above which a wake-up is a spike, ns; a shorter period is used instead.
pub const THRESHOLD_NS: u64 = 100_000;

/// A measuring thread with its own CPU, which is one of [`Plan::cpus`](crate::Plan::cpus).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPlan {
    /// Its name in the record: `base`, `servo`.
    pub role: String,
    /// CPU it is pinned to.
    pub cpu: u32,
    /// Its policy.
    pub policy: Policy,
    /// Time between its deadlines, ns; [`PERIOD_MIN_NS`] to [`PERIOD_MAX_NS`].
    pub period_ns: u64,
}

/// The interface of a probe to the rest of the program. No method has a default, so a new probe must implement each.
pub trait Definition: fmt::Debug {
    /// Its properties, which are the same in all phases.
    fn properties(&self) -> Properties;

    /// The policy of the measuring threads: its own, `requested`, or its default.
    fn policy(&self, requested: Option<Policy>) -> Policy;

    /// Time between two deadlines, ns; the shortest of several threads.
    fn period_ns(&self) -> u64;

    /// Times that follow from the period of a phase.
    fn timing(&self, period_ns: u64) -> Timing;

    /// The placements that the probe allows.
    fn placement(&self) -> PlacementRule;

    /// Puts its threads on these CPUs, one for each role. If there are fewer CPUs than roles, chooses the others.
    /// Returns the CPUs of all roles.
    fn place(&mut self, cpus: Vec<u32>, machine: &PlacementContext<'_>) -> Vec<u32>;

    /// The placed threads with deadlines; empty if the probe has one equal thread on each CPU. Threads without their
    /// own policy get `policy`.
    fn threads(&self, policy: Policy) -> Vec<ThreadPlan>;

    /// The interface of this machine that it uses; `None` without one.
    ///
    /// # Errors
    /// No route leads to its peer.
    fn interface_name(&self) -> Result<Option<String>, PrepareError>;

    /// Files that it writes besides the record; `record_path` is where that is kept.
    fn files(&self, record_path: Option<&Path>) -> Vec<PathBuf>;

    /// Checks its options.
    ///
    /// # Errors
    /// The first option that is out of range or contradicts another.
    fn check(&self) -> Result<(), PlanError>;

    /// Checks its options against the rest of the run.
    ///
    /// # Errors
    /// The first contradiction.
    fn check_run(&self, run: &RunShape<'_>) -> Result<(), PlanError>;

    /// Creates the other measuring threads of a phase and the work of its timers; `None` if the timers alone measure.
    ///
    /// # Errors
    /// A socket, sound card, file or thread cannot be opened or created.
    fn prepare(&self, context: &PhaseContext<'_>) -> Result<Option<Box<dyn ProbeThreads>>, PrepareError>;
}

/// Properties of a probe that are the same in all phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// The name: `punctual measure NAME`, `kind = "NAME"` in a campaign file, `scenario.probe` in the record.
    pub name: &'static str,
    /// The network that its datagrams or frames use.
    pub network: Network,
    /// True if late wake-ups are its spikes; false if it reports spikes of its own instead.
    pub has_late_wake_ups: bool,
    /// True if the cost of tracing can be measured with its threads, because they do nothing but sleep and wake up.
    pub measures_trace_cost: bool,
    /// Remedies, with options of this probe, after the guard ended the run, and after it throttled a thread.
    pub guard_remedies: [&'static str; 2],
    /// True if its thread waits for interrupts of a device, whose way to the thread is explained.
    pub awaits_device: bool,
    /// The reason if the device that sets the deadlines fails, and its remedy; `None` if the clock sets them.
    pub pacer_failed: Option<[&'static str; 2]>,
    /// The reason why threads of the EVL core cannot measure it, if they cannot.
    pub evl: Result<(), PlanError>,
}

/// Times of a probe that follow from the period of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Default lateness above which a wake-up is a spike, ns. For noise this is the length of a gap, for audio the time until
    /// a period is complete.
    pub threshold_ns: u64,
    /// The fraction of a nanosecond by which the exact period exceeds the period.
    pub fraction: Fraction,
    /// How long the noise loop runs in each period, ns; `None` if the threads sleep until their deadlines.
    pub noise_loop_ns: Option<u64>,
}

impl Timing {
    /// The times of a thread that sleeps until its deadline: a wake-up is a spike above 100 us, or above a shorter period.
    #[must_use]
    pub fn of_sleeper(period_ns: u64) -> Self {
        Self { threshold_ns: period_ns.min(THRESHOLD_NS), fraction: Fraction::default(), noise_loop_ns: None }
    }
}

/// The network that a probe uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// None.
    None,
    /// A veth pair between two namespaces of this machine.
    Virtual,
    /// An interface of this machine.
    Interface,
}

/// The placements that a probe allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementRule {
    /// Names of its threads, in the order in which a placement assigns CPUs; empty for one thread on each CPU.
    pub roles: Vec<String>,
    /// Allowed number of CPUs in a placement with one CPU for each thread; `None` if no such placement is allowed.
    pub by_thread: Option<RangeInclusive<usize>>,
    /// The threads in words: `a sender and a receiver`.
    pub threads: String,
    /// Remedy for a placement that is not allowed.
    pub remedy: &'static str,
    /// True if the probe takes the best CPU of a placement instead of all.
    pub takes_best_cpu: bool,
    /// Number of its CPUs that count as measured. The CPU of a thread that answers round trips does not count, because
    /// that thread represents the other machine.
    pub measured: usize,
}

impl PlacementRule {
    /// The rule of a probe with one thread.
    pub fn one_thread(role: &str) -> Self {
        Self {
            roles: vec![role.to_owned()],
            by_thread: Some(1..=1),
            threads: "1 thread".to_owned(),
            remedy: "write cpus = \"last\", or cpus = \"each\"",
            takes_best_cpu: true,
            measured: usize::MAX,
        }
    }
}

/// The CPUs of a machine, and the policy of a placement.
#[derive(Debug, Clone, Copy)]
pub struct PlacementContext<'a> {
    /// CPUs that are online and that this process may use.
    pub usable: &'a CpuList,
    /// CPUs that are isolated or shielded.
    pub isolated: &'a CpuList,
    /// The policy of the placement.
    pub policy: Option<Policy>,
}

/// The parts of a run that the options of a probe must fit.
#[derive(Debug, Clone)]
pub struct RunShape<'a> {
    /// Policy of the measuring threads.
    pub policy: Policy,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// The period of each phase, ns.
    pub periods_ns: &'a [u64],
}

/// The parts of a run that a probe needs to prepare a phase.
#[derive(Debug, Clone, Copy)]
pub struct PhaseContext<'a> {
    /// The machine.
    pub root: &'a Root,
    /// The shield; `None` for a run without one.
    pub shield: Option<&'a Shield>,
    /// Policy of the measuring threads.
    pub policy: Policy,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// The core that schedules the measuring threads.
    pub core: Cores,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// Lateness above which a wake-up is a spike, ns.
    pub threshold_ns: i64,
    /// Number of spikes that a series keeps.
    pub spikes_kept: usize,
    /// File of the record; `None` if it is kept only in memory.
    pub record_path: Option<&'a Path>,
}

/// The error of the part of a probe that could not be prepared.
pub type PrepareError = Box<dyn Error + Send + Sync>;

/// Calls `make`, which creates a thread or load for `cpu`. If `cpu` is shielded or `None`, this thread enters the
/// shield for the call, so that new threads inherit it.
pub fn with_shield<T>(shield: Option<&Shield>, cpu: Option<u32>, make: impl FnOnce() -> T) -> Result<T, ShieldError> {
    match shield.filter(|shield| cpu.is_none_or(|cpu| shield.cpus().contains(cpu))) {
        Some(shield) => shield.enter(make),
        None => Ok(make()),
    }
}

/// The CPU for a thread that must be on time: `named`, or the best one of the shield, or the best one of all.
///
/// # Errors
/// The CPU or the shield cannot be used, or the EVL core has no CPU among them.
pub fn choose_cpu(root: &Root, named: Option<u32>, shield: Option<&CpuList>, core: Cores) -> Result<u32, CpuError> {
    let requested = named.map(|cpu| CpuList::from_iter([cpu]));
    let usable = usable_cpus(root, requested.as_ref().or(shield))?;
    // A later check reports a named CPU outside the EVL core.
    let of_core = evl_cpus(root).filter(|_| core.use_evl() && named.is_none());
    let offered = of_core.as_ref().map_or_else(|| usable.clone(), |of_core| usable.intersection(of_core));
    best_cpu(&offered, &quiet_cpus(root, shield)).ok_or(CpuError::Empty { online: of_core.unwrap_or(usable) })
}

/// The CPUs that other work leaves alone: the shielded ones, or else those isolated at boot.
#[must_use]
pub fn quiet_cpus(root: &Root, shield: Option<&CpuList>) -> CpuList {
    shield.cloned().unwrap_or_else(|| isolated_cpus(root))
}

/// The CPU for work that must be on time: the last isolated one of `usable`, or the last of all.
#[must_use]
pub fn best_cpu(usable: &CpuList, isolated: &CpuList) -> Option<u32> {
    usable.intersection(isolated).last().or_else(|| usable.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefers_an_isolated_cpu_to_the_last_cpu() {
        let cpus = |list: &str| list.parse::<CpuList>().unwrap();
        assert_eq!(best_cpu(&cpus("0-3"), &cpus("1-2,9")), Some(2));
        assert_eq!(best_cpu(&cpus("0-3"), &CpuList::new()), Some(3));
        assert_eq!(best_cpu(&CpuList::new(), &cpus("1")), None);
    }
}
