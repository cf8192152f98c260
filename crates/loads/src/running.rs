//! The parent's side: starts a child process for each load, and collects the proof that it ran.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use machine::{CpuList, Root, idle_ms, usable_cpus};
use record::LoadProof;

use crate::{
    Load, LoadError, LoadSpec,
    child::{Child, Outcome},
};

/// Time that a worker has to end after the stop request; an fsync on a slow card takes seconds.
const STOP_WITHIN: Duration = Duration::from_secs(15);

/// Running loads, each in its own child process. Dropping it without [`stop`](Self::stop) kills them.
#[derive(Debug)]
#[must_use = "dropping it ends the loads"]
pub struct Running {
    loads: Vec<RunningLoad>,
}

#[derive(Debug)]
struct RunningLoad {
    spec: LoadSpec,
    cpus: CpuList,
    since: Instant,
    /// Time for which each CPU had been idle then, ms.
    idle_before: BTreeMap<u32, u64>,
    /// `None` for `idle`.
    child: Option<Child>,
}

impl Running {
    /// Starts each load in a child process: `exe __load SPEC --cpus LIST`. Returns when all of them work.
    ///
    /// A load without CPUs uses `default_cpus`.
    ///
    /// # Errors
    /// [`LoadError`] of the first load that did not start; the others are stopped.
    pub fn start(exe: &Path, specs: &[LoadSpec], default_cpus: &CpuList) -> Result<Self, LoadError> {
        if specs.len() > 1 && specs.iter().any(|spec| spec.load.is_idle()) {
            return Err(LoadError::IdleWithOthers);
        }
        let mut running = Self { loads: Vec::new() };
        for spec in specs {
            let wanted = spec.cpus.as_ref().unwrap_or(default_cpus);
            let cpus = usable_cpus(&Root::system(), Some(wanted))
                .map_err(|reason| LoadError::Cpus { load: spec.to_string(), reason })?;
            let child = if spec.load.is_idle() { None } else { Some(Child::start(exe, spec, &cpus)?) };
            let idle_before = BTreeMap::new();
            running.loads.push(RunningLoad { spec: spec.clone(), cpus, since: Instant::now(), idle_before, child });
        }
        for load in &mut running.loads {
            if let Some(child) = &mut load.child {
                child.wait_until_ready(&load.spec)?;
            }
            load.since = Instant::now();
            load.idle_before = idle_ms(&Root::system(), &load.cpus);
        }
        Ok(running)
    }

    /// The processes of the loads: each worker with its child processes, unless these change their own threads. Each has
    /// the load that it belongs to.
    pub fn processes(&self, root: &Root) -> impl Iterator<Item = (String, u32)> {
        let of_load = |load: &RunningLoad| {
            let (spec, worker) = (load.spec.to_string(), load.child.as_ref().map(Child::process));
            let children = worker.filter(|_| !load.spec.load.runs_foreign_program());
            let children = children.map(|worker| children_of(root, worker)).unwrap_or_default();
            worker.into_iter().chain(children).map(move |process| (spec.clone(), process))
        };
        self.loads.iter().flat_map(of_load)
    }

    /// The process groups of the loads, which also contain the processes that their programs start.
    pub fn process_groups(&self) -> impl Iterator<Item = u32> {
        self.loads.iter().filter_map(|load| load.child.as_ref().map(Child::process))
    }

    /// Stops the loads and returns the proof of each, in the order of `specs`. Takes some milliseconds; a load that has
    /// not ended after 15 s is killed.
    #[must_use]
    pub fn stop(mut self) -> Vec<LoadProof> {
        let stopped = Instant::now();
        let idle: Vec<_> = self.loads.iter().map(RunningLoad::longest_idle).collect();
        for child in self.loads.iter_mut().filter_map(|load| load.child.as_mut()) {
            child.request_stop();
        }
        self.loads.drain(..).zip(idle).map(|(load, idle)| load.into_proof(stopped, idle)).collect()
    }
}

impl RunningLoad {
    /// The CPU that was idle for the longest time since the load works, and that time.
    fn longest_idle(&self) -> Option<(u32, Duration)> {
        let now = idle_ms(&Root::system(), &self.cpus);
        let since = |(&cpu, ms): (&u32, &u64)| Some((now.get(&cpu)?.saturating_sub(*ms), cpu));
        let (ms, cpu) = self.idle_before.iter().filter_map(since).max()?;
        Some((cpu, Duration::from_millis(ms)))
    }

    fn into_proof(self, stopped: Instant, idle: Option<(u32, Duration)>) -> LoadProof {
        let wall = stopped.duration_since(self.since);
        let proof = LoadProof {
            name: self.spec.load.name().to_owned(),
            spec: self.spec.to_string(),
            cpus: self.cpus.to_string(),
            unit: "nothing".to_owned(),
            wall_ns: nanoseconds(wall),
            ran: true,
            ..LoadProof::default()
        };
        let Some(child) = self.child else { return proof };
        let (ready, outcome) = child.outcome(stopped + STOP_WITHIN);
        let failure = failure(&outcome, &self.spec.load, wall, self.cpus.len())
            .or_else(|| left_idle(&self.spec.load, wall, idle));
        LoadProof {
            threads: ready.threads,
            operations: outcome.proof.operations,
            unit: ready.unit,
            cpu_time_ns: nanoseconds(outcome.cpu_time),
            ran: failure.is_none(),
            note: failure.or_else(|| outcome.late.then(|| STOPPED_LATE.to_owned())).or(ready.note),
            ..proof
        }
    }
}

/// The child processes of a process.
fn children_of(root: &Root, process: u32) -> Vec<u32> {
    let folder = format!("proc/{process}/task");
    let of_thread = |thread: &String| root.read(&format!("{folder}/{thread}/children")).unwrap_or_default();
    let children: Vec<String> = root.list(&folder).iter().map(of_thread).collect();
    children.iter().flat_map(|list| list.split_whitespace()).filter_map(|id| id.parse().ok()).collect()
}

/// Longest time that a load may not run. A worker checks once a second, so a pause of 1.5 s is always seen.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Error of the kernel's count of idle time, and the time to start and stop a load.
const IDLE_ERROR: Duration = Duration::from_millis(50);
const STOPPED_LATE: &str = "it did not stop in time and was killed: its last operations are not counted";

/// The reason why a load did not do its work; `None` if it did.
fn failure(outcome: &Outcome, load: &Load, wall: Duration, cpus: usize) -> Option<String> {
    if let Some(reason) = &outcome.failure {
        return Some(reason.clone());
    }
    if outcome.proof.operations == 0 {
        return Some("it did no operation: run longer, or give it more CPU time".to_owned());
    }
    let pause = Duration::from_nanos(outcome.proof.longest_pause_ns);
    if pause > LONGEST_PAUSE {
        return Some(format!(
            "it did not run for {pause:.1?}: let no program stop or freeze it, and give it CPUs that are less busy"
        ));
    }
    // A load that never sleeps uses all the CPU time that it can get: with less than 1 % it was starved.
    let least = if load.is_busy() { wall.mul_f64(cpus as f64 / 100.0) } else { Duration::ZERO };
    let used = outcome.cpu_time;
    (used <= least)
        .then(|| format!("it got {used:.1?} of CPU time in {wall:.1?} on {cpus} CPUs: give it CPUs that are less busy"))
}

/// The reason why a load that never waits did not run on one of its CPUs: the CPU had nothing to do. A CPU that is busy
/// with other work, e.g. with real-time threads, is not idle, so this is not the fault of the machine.
fn left_idle(load: &Load, wall: Duration, idle: Option<(u32, Duration)>) -> Option<String> {
    let (cpu, idle) = idle.filter(|(_, idle)| load.never_waits() && *idle > wall / 10 + IDLE_ERROR)?;
    Some(format!(
        "CPU {cpu} was idle for {idle:.1?} of {wall:.1?}, although this load never waits: let no program stop, move or \
         throttle it"
    ))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Proof;

    fn outcome(operations: u64, cpu_time_ms: u64) -> Outcome {
        Outcome {
            proof: Proof { operations, ..Proof::default() },
            cpu_time: Duration::from_millis(cpu_time_ms),
            ..Outcome::default()
        }
    }

    fn failure_of(outcome: &Outcome, load: &str) -> Option<String> {
        let load = load.parse::<LoadSpec>().unwrap().load;
        failure(outcome, &load, Duration::from_secs(10), 2)
    }

    #[test]
    fn a_load_that_never_waits_leaves_no_cpu_idle() {
        let left_idle = |load: &str, idle_ms| {
            let load = load.parse::<LoadSpec>().unwrap().load;
            left_idle(&load, Duration::from_secs(2), Some((1, Duration::from_millis(idle_ms))))
        };
        assert_eq!(left_idle("cpu", 250), None);
        assert!(left_idle("cpu", 260).unwrap().starts_with("CPU 1 was idle for 260.0ms of 2.0s"));
        assert_eq!(left_idle("memory", 1900), None, "its threads wait for each other");
    }

    #[test]
    fn detects_a_load_that_did_no_work() {
        assert_eq!(failure_of(&outcome(5, 20_000), "cpu"), None);
        assert!(failure_of(&outcome(0, 20_000), "cpu").unwrap().contains("no operation"));
        let starved = failure_of(&outcome(5, 200), "cpu").unwrap();
        assert!(starved.contains("200.0ms of CPU time in 10.0s on 2 CPUs"), "{starved}");
        assert_eq!(failure_of(&outcome(5, 200), "timer"), None, "a timer sleeps most of the time");
        assert!(failure_of(&outcome(5, 0), "timer").is_some());
        let paused = |ms: u64| {
            let mut outcome = outcome(5, 20_000);
            outcome.proof.longest_pause_ns = ms * 1_000_000;
            failure_of(&outcome, "timer")
        };
        assert_eq!(paused(300), None);
        assert!(paused(1500).unwrap().starts_with("it did not run for 1.5s"), "{:?}", paused(1500));
        let died = Outcome { failure: Some("its worker died".into()), ..outcome(5, 20_000) };
        assert_eq!(failure_of(&died, "cpu").as_deref(), Some("its worker died"));
    }
}
