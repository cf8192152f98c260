//! The measuring side: starts a child process for each load, and collects the proof that it ran.

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use machine::{CpuList, Root, usable_cpus};
use record::LoadProof;
use rustix::process::{Pid, Signal, kill_process_group};
use sys::child::{Ended, reap, try_reap};

use crate::{
    Load, LoadError, LoadSpec, WORKER_COMMAND,
    protocol::{Line, Proof, Ready},
};

/// How long a worker may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How long a worker may take to end when told to; an fsync on a slow card takes seconds.
const STOP_WITHIN: Duration = Duration::from_secs(15);

/// Loads at work, each in a child process of its own. Dropped without [`stop`](Self::stop), they are killed.
#[derive(Debug)]
#[must_use = "dropping it ends the loads"]
pub struct Running {
    loads: Vec<Running1>,
}

#[derive(Debug)]
struct Running1 {
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
            running.loads.push(Running1 { spec: spec.clone(), cpus, since: Instant::now(), child });
        }
        for load in &mut running.loads {
            if let Some(child) = &mut load.child {
                child.wait_until_ready(&load.spec)?;
            }
            load.since = Instant::now();
        }
        Ok(running)
    }

    /// Ends the loads and returns what each did, in the order they were asked for. Takes at most some 15 s, normally
    /// some milliseconds.
    #[must_use]
    pub fn stop(mut self) -> Vec<LoadProof> {
        let stopped = Instant::now();
        for child in self.loads.iter_mut().filter_map(|load| load.child.as_mut()) {
            child.stdin = None;
        }
        self.loads.drain(..).map(|load| load.into_proof(stopped)).collect()
    }
}

impl Running1 {
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
        let Some(mut child) = self.child else { return proof };
        let outcome = child.outcome(stopped + STOP_WITHIN);
        let failure = outcome.failure(&self.spec.load, wall, self.cpus.len());
        LoadProof {
            threads: child.ready.threads,
            operations: outcome.said.proof.operations,
            unit: child.ready.unit.clone(),
            cpu_time_ns: outcome.ended.map_or(0, |ended| nanoseconds(ended.cpu_time)),
            ran: failure.is_none(),
            note: failure.or_else(|| outcome.late.then(|| STOPPED_LATE.to_owned())).or(child.ready.note.take()),
            ..proof
        }
    }
}

const STOPPED_LATE: &str = "it did not stop when told to, and was killed: its operations are those of the last second";

/// One worker. It stays a child of this process until it is reaped here, so its number cannot name another process.
#[derive(Debug)]
struct Child {
    pid: Pid,
    /// Closing it tells the worker to end.
    stdin: Option<ChildStdin>,
    ready: Ready,
    readiness: mpsc::Receiver<Ready>,
    listener: Option<thread::JoinHandle<Said>>,
    reaped: bool,
}

/// What a worker said up to its end.
#[derive(Debug, Default)]
struct Said {
    proof: Proof,
    error: Option<String>,
}

/// What is left of a worker.
struct Outcome {
    said: Said,
    /// Absent when the kernel did not know the child any more.
    ended: Option<Ended>,
    /// It ended before it was told to.
    early: bool,
    /// It had to be killed.
    late: bool,
}

type Started = std::io::Result<(Pid, Option<ChildStdin>)>;

impl Child {
    fn start(exe: &Path, spec: &LoadSpec, cpus: &CpuList) -> Result<Self, LoadError> {
        let failed = |reason| LoadError::Spawn { load: spec.to_string(), exe: exe.to_owned(), reason };
        let mut command = Command::new(exe);
        command.arg(WORKER_COMMAND).arg(spec.to_string()).arg("--cpus").arg(cpus.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C is for the measurement to finish in order, not for its loads.
        command.process_group(0);

        // The kernel ties a worker to the thread that started it. That thread listens to it until its end.
        let (started, start) = mpsc::sync_channel::<Started>(1);
        let (ready, readiness) = mpsc::channel();
        let listener = thread::Builder::new()
            .name("load".to_owned())
            .stack_size(256 << 10)
            .spawn(move || match command.spawn() {
                Ok(mut child) => {
                    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
                    let _ = started.send(Ok((Pid::from_child(&child), child.stdin.take())));
                    listen(stdout, stderr, &ready)
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                    Said::default()
                }
            })
            .map_err(failed)?;
        let (pid, stdin) = start.recv().map_err(|_| failed(std::io::ErrorKind::Other.into()))?.map_err(failed)?;
        Ok(Self { pid, stdin, ready: Ready::default(), readiness, listener: Some(listener), reaped: false })
    }

    fn wait_until_ready(&mut self, spec: &LoadSpec) -> Result<(), LoadError> {
        match self.readiness.recv_timeout(READY_WITHIN) {
            Ok(ready) => {
                self.ready = ready;
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(LoadError::NotReady { load: spec.to_string(), seconds: READY_WITHIN.as_secs() })
            }
            Err(RecvTimeoutError::Disconnected) => {
                let outcome = self.outcome(Instant::now() + STOP_WITHIN);
                Err(LoadError::Worker(match outcome.said.error {
                    Some(error) => error,
                    None => format!("the worker of load `{spec}` {}", outcome.how()),
                }))
            }
        }
    }

    /// Waits for the end, which `deadline` brings about if need be.
    fn outcome(&mut self, deadline: Instant) -> Outcome {
        let early = self.stdin.is_some();
        let mut late = false;
        let ended = loop {
            match try_reap(self.pid) {
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
                Ok(None) => {
                    late = true;
                    self.kill();
                    break reap(self.pid).ok();
                }
                Ok(ended) => break ended,
                Err(_) => break None,
            }
        };
        self.reaped = true;
        let said = self.listener.take().and_then(|listener| listener.join().ok()).unwrap_or_default();
        Outcome { said, ended, early, late }
    }

    /// Kills the worker with the processes that it started in its own group.
    fn kill(&self) {
        // It fails only when all of them have ended.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
            let _ = reap(self.pid);
        }
    }
}

/// Reads a worker's lines until it ends.
fn listen(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>, ready: &Sender<Ready>) -> Said {
    let mut said = Said::default();
    for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Line::Ready(message)) => drop(ready.send(message)),
            Ok(Line::Proof(proof)) => said.proof = proof,
            Ok(Line::Failed { error }) => said.error = Some(error),
            Err(_) => {}
        }
    }
    // What a panic, or a program that is no worker at all, had to say.
    let mut complaint = String::new();
    if let Some(stderr) = stderr {
        let _ = stderr.take(4096).read_to_string(&mut complaint);
    }
    let first = complaint.lines().map(str::trim).find(|line| !line.is_empty());
    said.error = said.error.or_else(|| first.map(str::to_owned));
    said
}

impl Outcome {
    /// Why the load did not do what it was there for, if it did not.
    fn failure(&self, load: &Load, wall: Duration, cpus: usize) -> Option<String> {
        let gone = self.early || self.ended.is_none_or(|ended| ended.how != Ok(0) && !self.late);
        if gone || self.said.error.is_some() {
            let reason = self.said.error.clone().unwrap_or_else(|| format!("its worker {}", self.how()));
            return Some(reason);
        }
        if self.said.proof.operations == 0 {
            return Some("it did not do a single operation: run longer, or give it more CPU time".to_owned());
        }
        let cpu_time = self.ended.map_or(Duration::ZERO, |ended| ended.cpu_time);
        // A load that never sleeps takes all it can get: less than 1 % means that it was shut out.
        let least = if load.is_busy() { wall.mul_f64(cpus as f64 / 100.0) } else { Duration::ZERO };
        (cpu_time <= least).then(|| {
            format!("it got {cpu_time:.1?} of CPU time in {wall:.1?} on {cpus} CPUs: something else kept them busy")
        })
    }

    fn how(&self) -> String {
        match self.ended.map(|ended| ended.how) {
            Some(Ok(0)) => "ended before it was told to".to_owned(),
            Some(Ok(status)) => format!("ended with exit status {status}"),
            Some(Err(9)) => "was killed by signal 9: by hand, or because memory ran out (see `dmesg`)".to_owned(),
            Some(Err(signal)) => format!("was ended by signal {signal}"),
            None => "was lost".to_owned(),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
