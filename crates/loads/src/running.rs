//! The measuring side: starts a child process for each load, and collects the proof that it ran.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use machine::{CpuList, Root, usable_cpus};
use record::LoadProof;

use crate::{
    Load, LoadError, LoadSpec,
    child::{Child, Outcome},
};

/// How long a worker may take to end when told to; an fsync on a slow card takes seconds.
const STOP_WITHIN: Duration = Duration::from_secs(15);

/// Loads at work, each in a child process of its own. Dropped without [`stop`](Self::stop), they are killed.
#[derive(Debug)]
#[must_use = "dropping it ends the loads"]
pub struct Running {
    loads: Vec<AtWork>,
}

#[derive(Debug)]
struct AtWork {
    spec: LoadSpec,
    cpus: CpuList,
    since: Instant,
    /// Absent for `idle`.
    child: Option<Child>,
}

impl Running {
    /// Starts each load in a child process: `exe __load SPEC --cpus LIST`. Returns when all are at work.
    ///
    /// A load without CPUs of its own takes `default_cpus`.
    ///
    /// # Errors
    /// [`LoadError`], what kept the first of them from starting; the others have been ended.
    pub fn start(exe: &Path, specs: &[LoadSpec], default_cpus: &CpuList) -> Result<Self, LoadError> {
        if specs.len() > 1 && specs.iter().any(|spec| spec.load == Load::Idle) {
            return Err(LoadError::IdleBesideOthers);
        }
        let mut running = Self { loads: Vec::new() };
        for spec in specs {
            let wanted = spec.cpus.as_ref().unwrap_or(default_cpus);
            let cpus = usable_cpus(&Root::system(), Some(wanted))
                .map_err(|reason| LoadError::Cpus { load: spec.to_string(), reason })?;
            let child = match spec.load {
                Load::Idle => None,
                _ => Some(Child::start(exe, spec, &cpus)?),
            };
            running.loads.push(AtWork { spec: spec.clone(), cpus, since: Instant::now(), child });
        }
        for load in &mut running.loads {
            if let Some(child) = &mut load.child {
                child.wait_until_ready(&load.spec)?;
            }
            load.since = Instant::now();
        }
        Ok(running)
    }

    /// Ends the loads and returns what each did, in the order they were asked for. Takes some milliseconds; a load
    /// that has not ended after 15 s is killed.
    #[must_use]
    pub fn stop(mut self) -> Vec<LoadProof> {
        let stopped = Instant::now();
        for child in self.loads.iter_mut().filter_map(|load| load.child.as_mut()) {
            child.tell_to_stop();
        }
        self.loads.drain(..).map(|load| load.into_proof(stopped)).collect()
    }
}

impl AtWork {
    fn into_proof(self, stopped: Instant) -> LoadProof {
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
        let failure = failure(&outcome, &self.spec.load, wall, self.cpus.len());
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

const STOPPED_LATE: &str = "it did not stop when told to, and was killed: its last operations are not counted";

/// Why a load did not do what it was there for, if it did not.
fn failure(outcome: &Outcome, load: &Load, wall: Duration, cpus: usize) -> Option<String> {
    if let Some(reason) = &outcome.failure {
        return Some(reason.clone());
    }
    if outcome.proof.operations == 0 {
        return Some("it did not do a single operation: run longer, or give it more CPU time".to_owned());
    }
    // A load that never sleeps takes all it can get: less than 1 % means that it was shut out.
    let least = if load.is_busy() { wall.mul_f64(cpus as f64 / 100.0) } else { Duration::ZERO };
    let used = outcome.cpu_time;
    (used <= least).then(|| {
        format!(
            "it got {used:.1?} of CPU time in {wall:.1?} on {cpus} CPUs: give it CPUs that something else does not fill"
        )
    })
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
            proof: Proof { operations, cpu_time_ns: 0 },
            cpu_time: Duration::from_millis(cpu_time_ms),
            ..Outcome::default()
        }
    }

    fn judged(outcome: &Outcome, load: &str) -> Option<String> {
        let load = load.parse::<LoadSpec>().unwrap().load;
        failure(outcome, &load, Duration::from_secs(10), 2)
    }

    #[test]
    fn a_load_that_did_nothing_did_not_run() {
        assert_eq!(judged(&outcome(5, 20_000), "cpu"), None);
        assert!(judged(&outcome(0, 20_000), "cpu").unwrap().contains("single operation"));
        let shut_out = judged(&outcome(5, 200), "cpu").unwrap();
        assert!(shut_out.contains("200.0ms of CPU time in 10.0s on 2 CPUs"), "{shut_out}");
        assert_eq!(judged(&outcome(5, 200), "timer"), None, "a timer sleeps most of the time");
        assert!(judged(&outcome(5, 0), "timer").is_some());
        let died = Outcome { failure: Some("its worker died".into()), ..outcome(5, 20_000) };
        assert_eq!(judged(&died, "cpu").as_deref(), Some("its worker died"));
    }
}
