//! One worker, seen from its parent.

use std::{
    io::{self, BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use machine::CpuList;
use rustix::process::{Pid, Signal, kill_process_group};
use sys::child::{Ended, reap, try_reap};

use crate::{
    LoadError, LoadSpec, WORKER_COMMAND,
    protocol::{Line, Proof, Ready},
};

/// How long a worker may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How long a worker that has closed its output may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A worker process. It stays a child until it is reaped here, so that its number cannot come to name another process.
/// Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    /// Closing it tells the worker to end.
    stdin: Option<ChildStdin>,
    ready: Ready,
    readiness: Receiver<Ready>,
    listener: Option<JoinHandle<Said>>,
    reaped: bool,
}

/// What a worker said up to its end.
#[derive(Debug, Default)]
struct Said {
    proof: Proof,
    /// What it reported itself.
    error: Option<String>,
    /// The first line on its standard error: a panic, or a program that is no worker at all.
    complaint: Option<String>,
}

/// What a worker left behind.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub proof: Proof,
    /// CPU time that the kernel counted for it and its own children.
    pub cpu_time: Duration,
    /// Why it ended before it was told to, or without finishing its work.
    pub failure: Option<String>,
    /// It had to be killed, because it did not end when told to.
    pub late: bool,
}

type Started = io::Result<(Pid, Option<ChildStdin>)>;

impl Child {
    /// Starts `exe __load SPEC --cpus LIST`.
    pub(crate) fn start(exe: &Path, spec: &LoadSpec, cpus: &CpuList) -> Result<Self, LoadError> {
        let failed = |reason| LoadError::Spawn { load: spec.to_string(), exe: exe.to_owned(), reason };
        let mut command = Command::new(exe);
        command.arg(WORKER_COMMAND).arg(spec.to_string()).arg("--cpus").arg(cpus.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C is for the measurement to finish in order, not for its loads.
        command.process_group(0);

        // The kernel ties a worker's life to the thread that started it, so that thread stays and listens to it.
        let (started, start) = mpsc::sync_channel::<Started>(1);
        let (ready, readiness) = mpsc::channel();
        let listener = move || match command.spawn() {
            Ok(mut child) => {
                let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
                let _ = started.send(Ok((Pid::from_child(&child), child.stdin.take())));
                listen(stdout, stderr, &ready)
            }
            Err(error) => {
                let _ = started.send(Err(error));
                Said::default()
            }
        };
        let builder = thread::Builder::new().name("load".to_owned()).stack_size(256 << 10);
        let listener = builder.spawn(listener).map_err(failed)?;
        let (pid, stdin) = start.recv().map_err(|_| failed(io::ErrorKind::Other.into()))?.map_err(failed)?;
        Ok(Self { pid, stdin, ready: Ready::default(), readiness, listener: Some(listener), reaped: false })
    }

    /// Waits until all threads of the worker are at work.
    pub(crate) fn wait_until_ready(&mut self, spec: &LoadSpec) -> Result<(), LoadError> {
        match self.readiness.recv_timeout(READY_WITHIN) {
            Ok(ready) => {
                self.ready = ready;
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(LoadError::NotReady { load: spec.to_string(), seconds: READY_WITHIN.as_secs() })
            }
            Err(RecvTimeoutError::Disconnected) => {
                let failure = self.end(Instant::now() + GONE_WITHIN).failure;
                Err(LoadError::Worker(failure.unwrap_or_else(|| format!("load `{spec}` ended at once"))))
            }
        }
    }

    /// Tells the worker to end; [`outcome`](Self::outcome) waits for it.
    pub(crate) fn tell_to_stop(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end, which `deadline` brings about if need be.
    pub(crate) fn outcome(mut self, deadline: Instant) -> (Ready, Outcome) {
        let outcome = self.end(deadline);
        (std::mem::take(&mut self.ready), outcome)
    }

    fn end(&mut self, deadline: Instant) -> Outcome {
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
        let finished = late || ended.is_some_and(|ended| ended.how == Ok(0));
        let failure = said.error.or_else(|| (!finished).then(|| how(ended, said.complaint)));
        Outcome { proof: said.proof, cpu_time: ended.map_or(Duration::ZERO, |ended| ended.cpu_time), failure, late }
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
    let mut complaint = String::new();
    if let Some(stderr) = stderr {
        let _ = stderr.take(4096).read_to_string(&mut complaint);
    }
    said.complaint = complaint.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    said
}

/// How a worker ended that should not have.
fn how(ended: Option<Ended>, complaint: Option<String>) -> String {
    let how = match ended.map(|ended| ended.how) {
        Some(Err(9)) => "was killed by signal 9: by hand, or because memory ran out (see `dmesg`)".to_owned(),
        Some(Err(24)) => "was ended by the guard: one of its real-time threads ran without sleeping".to_owned(),
        Some(Err(signal)) => format!("was ended by signal {signal}"),
        Some(Ok(status)) => format!("ended with exit status {status}"),
        None => "was lost".to_owned(),
    };
    match complaint {
        Some(complaint) => format!("its worker {how} ({complaint})"),
        None => format!("its worker {how}"),
    }
}
