//! What the rest of the program asks of a probe, and what it tells the probe.

use std::{
    error::Error,
    fmt,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use machine::{CpuList, Root, Shield, ShieldError};
use probes::{probe_threads::ProbeThreads, timer::Fraction};
use sys::{clock::Clock, sched::Policy};

use super::check::PlanError;

/// Longest period, ns: one hour.
pub const PERIOD_MAX_NS: u64 = 3_600_000_000_000;
/// Lateness above which a wake-up is a spike where nothing else is asked for, ns; the period where that is less.
pub const THRESHOLD_NS: u64 = 100_000;

/// A measuring thread with its own place. Its CPU is one of [`Plan::cpus`](crate::Plan::cpus).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPlan {
    /// Its name in the record: `base`, `servo`.
    pub role: String,
    /// CPU it is pinned to.
    pub cpu: u32,
    /// Its policy.
    pub policy: Policy,
    /// Time between its deadlines, ns; 1 to [`PERIOD_MAX_NS`].
    pub period_ns: u64,
}

/// What the rest of the program asks of a probe. No method has a default: a new probe answers each question.
pub trait Definition: fmt::Debug {
    /// The name: `punctual measure NAME`, `kind = "NAME"` in a campaign file, `scenario.probe` in the record.
    fn name(&self) -> &'static str;

    /// The policy of the measuring threads: its own, `asked`, or its default.
    fn policy(&self, asked: Option<Policy>) -> Policy;

    /// Time between two deadlines, ns; the shortest of several threads.
    fn period_ns(&self) -> u64;

    /// Lateness above which a wake-up is a spike where none is asked for, ns. For noise this is the length of
    /// a gap, for audio the completion of a period.
    fn threshold_ns(&self, period_ns: u64) -> u64;

    /// The part of a period beyond its whole ns.
    fn fraction(&self, period_ns: u64) -> Fraction;

    /// Names of its threads, in the order in which a placement gives them CPUs; empty for one thread on each CPU.
    fn roles(&self) -> Vec<String>;

    /// Which placements fit it.
    fn placement(&self) -> PlacementRule;

    /// Puts its threads on these CPUs, one for each role, and returns the CPUs of all roles: those that are not named are
    /// completed.
    fn place(&mut self, cpus: Vec<u32>, machine: &Places<'_>) -> Vec<u32>;

    /// The threads with deadlines that are not one alike on each CPU, once placed. Their policy is `policy`, unless they have
    /// one of their own.
    fn threads(&self, policy: Policy) -> Vec<ThreadPlan>;

    /// The network that its datagrams or frames use.
    fn network(&self) -> Network;

    /// The interface of this machine that it uses; `None` without one.
    ///
    /// # Errors
    /// No route leads to its peer.
    fn interface_name(&self) -> Result<Option<String>, PrepareError>;

    /// How long its threads run in each period without sleeping, ns; `None` if they sleep until their deadlines.
    fn spin_ns(&self, period_ns: u64) -> Option<u64>;

    /// True if late wake-ups are its spikes; false if it reports spikes of its own instead.
    fn has_late_wake_ups(&self) -> bool;

    /// Files that it writes besides the record; `record_path` is where that is kept.
    fn files(&self, record_path: Option<&Path>) -> Vec<PathBuf>;

    /// Checks that threads of the EVL core can measure it.
    ///
    /// # Errors
    /// It makes system calls of Linux.
    fn check_evl(&self) -> Result<(), PlanError>;

    /// Checks its options.
    ///
    /// # Errors
    /// The first option that is out of range, or that contradicts another.
    fn check(&self) -> Result<(), PlanError>;

    /// Checks its options against the rest of the run.
    ///
    /// # Errors
    /// The first contradiction.
    fn check_run(&self, run: &RunShape<'_>) -> Result<(), PlanError>;

    /// Makes what measures together with the timers of a phase, with its threads waiting; `None` where there is nothing.
    ///
    /// # Errors
    /// When a socket, a card, a file or a thread is not to be had.
    fn prepare(&self, context: &PhaseContext<'_>) -> Result<Option<Box<dyn ProbeThreads>>, PrepareError>;

    /// What helps where the guard ended the run, and where it throttled a thread, in the options of this probe.
    fn guard_remedies(&self) -> [&'static str; 2];
}

/// The network that a probe uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// None.
    None,
    /// A virtual cable between two namespaces of this machine.
    Virtual,
    /// An interface of this machine.
    Interface,
}

/// Which placements fit a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementRule {
    /// How many CPUs fit where a placement gives one to each thread; `None` where no such placement fits.
    pub by_thread: Option<RangeInclusive<usize>>,
    /// The threads in words: `a sender and a receiver`.
    pub threads: String,
    /// What to write instead of a placement that does not fit.
    pub remedy: &'static str,
    /// True if the probe takes the best CPU of a placement instead of all.
    pub takes_best_cpu: bool,
    /// How many of its CPUs count as measured. A thread that answers round trips stands for the other machine.
    pub measured: usize,
}

/// The CPUs of a machine, and the policy that a placement asks for.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// CPUs that are online and that this process may use.
    pub usable: &'a CpuList,
    /// CPUs that are isolated or shielded.
    pub isolated: &'a CpuList,
    /// The policy of the placement.
    pub policy: Option<Policy>,
}

/// What a probe is checked against.
#[derive(Debug, Clone)]
pub struct RunShape<'a> {
    /// Policy of the measuring threads.
    pub policy: Policy,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// The period of each phase, ns.
    pub periods_ns: &'a [u64],
}

/// What a probe needs to prepare a phase.
#[derive(Debug, Clone, Copy)]
pub struct PhaseContext<'a> {
    /// The machine.
    pub root: &'a Root,
    /// The shield, where there is one.
    pub shield: Option<&'a Shield>,
    /// Policy of the measuring threads.
    pub policy: Policy,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// What is a spike, ns.
    pub threshold_ns: i64,
    /// How many spikes a series keeps.
    pub spikes_kept: usize,
    /// Where the record is kept.
    pub record_path: Option<&'a Path>,
}

/// Why a probe could not be prepared: the error of what it prepares.
pub type PrepareError = Box<dyn Error + Send + Sync>;

/// Makes something, with this thread on the side of the shield that `cpu` is on; `None` is inside.
pub fn on_its_side<T>(shield: Option<&Shield>, cpu: Option<u32>, make: impl FnOnce() -> T) -> Result<T, ShieldError> {
    match shield.filter(|shield| cpu.is_none_or(|cpu| shield.cpus().contains(cpu))) {
        Some(shield) => shield.enter(make),
        None => Ok(make()),
    }
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
    fn an_isolated_cpu_is_better_than_the_last() {
        let cpus = |list: &str| list.parse::<CpuList>().unwrap();
        assert_eq!(best_cpu(&cpus("0-3"), &cpus("1-2,9")), Some(2));
        assert_eq!(best_cpu(&cpus("0-3"), &CpuList::new()), Some(3));
        assert_eq!(best_cpu(&CpuList::new(), &cpus("1")), None);
    }
}
