//! One worker process, from the parent's side.

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

/// Time that a worker has until it must be ready.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// Time that a worker has to end after it closed its output.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A worker process, killed on drop. Only this type reaps it, so its pid cannot be reused before.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    /// Closing it makes the worker end.
    stdin: Option<ChildStdin>,
    ready: Ready,
    readiness: Receiver<Ready>,
    listener: Option<JoinHandle<Output>>,
    reaped: bool,
}

/// The output of a worker up to its end.
#[derive(Debug, Default)]
struct Output {
    proof: Proof,
    /// The error that the worker reported.
    error: Option<String>,
    /// The first line of its standard error: a panic, or a program that is not a worker.
    first_error_line: Option<String>,
}

/// The result of a worker.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub proof: Proof,
    /// CPU time that the kernel counted for the worker and its children.
    pub cpu_time: Duration,
    /// The reason why it ended too early or without finishing its work.
    pub failure: Option<String>,
    /// True if it was killed because it did not end in time.
    pub late: bool,
}

type Started = io::Result<(Pid, Option<ChildStdin>)>;

impl Child {
    /// The process id of the worker.
    pub(crate) fn process(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Starts `exe __load SPEC --cpus LIST`.
    pub(crate) fn start(exe: &Path, spec: &LoadSpec, cpus: &CpuList) -> Result<Self, LoadError> {
        let failed = |reason| LoadError::Spawn { load: spec.to_string(), exe: exe.to_owned(), reason };
        let mut command = Command::new(exe);
        command.arg(WORKER_COMMAND).arg(spec.to_string()).arg("--cpus").arg(cpus.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its own process group: Ctrl-C must reach only the measurement, which then ends its loads in order.
        command.process_group(0);

        // The kernel kills a worker when the thread that started it ends, so that thread stays and reads its output.
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
                Output::default()
            }
        };
        let builder = thread::Builder::new().name("load".to_owned()).stack_size(256 << 10);
        let listener = builder.spawn(listener).map_err(failed)?;
        let (pid, stdin) = start.recv().map_err(|_| failed(io::ErrorKind::Other.into()))?.map_err(failed)?;
        Ok(Self { pid, stdin, ready: Ready::default(), readiness, listener: Some(listener), reaped: false })
    }

    /// Waits until all threads of the worker work.
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

    /// Asks the worker to end; [`outcome`](Self::outcome) waits for it.
    pub(crate) fn request_stop(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the worker, and kills it at `deadline`.
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
        let output = self.listener.take().and_then(|listener| listener.join().ok()).unwrap_or_default();
        let finished = late || ended.is_some_and(|ended| ended.how == Ok(0));
        let failure = output.error.or_else(|| (!finished).then(|| describe_end(ended, output.first_error_line)));
        Outcome { proof: output.proof, cpu_time: ended.map_or(Duration::ZERO, |ended| ended.cpu_time), failure, late }
    }

    /// Kills the worker and all processes in its group.
    fn kill(&self) {
        // It fails only if all of them have ended.
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
fn listen(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>, ready: &Sender<Ready>) -> Output {
    let mut output = Output::default();
    for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Line::Ready(message)) => drop(ready.send(message)),
            Ok(Line::Proof(proof)) => output.proof = proof,
            Ok(Line::Failed { error }) => output.error = Some(error),
            Err(_) => {}
        }
    }
    let mut errors = String::new();
    if let Some(stderr) = stderr {
        let _ = stderr.take(4096).read_to_string(&mut errors);
    }
    output.first_error_line = errors.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    output
}

/// Describes the unexpected end of a worker.
fn describe_end(ended: Option<Ended>, first_error_line: Option<String>) -> String {
    let how = match ended.map(|ended| ended.how) {
        Some(Err(9)) => "was killed by signal 9: by a user, or because memory ran out (see `dmesg`)".to_owned(),
        Some(Err(24)) => "was ended by the kernel: one of its real-time threads ran without sleeping".to_owned(),
        Some(Err(signal)) => format!("was ended by signal {signal}"),
        Some(Ok(status)) => format!("ended with exit status {status}"),
        None => "was lost".to_owned(),
    };
    match first_error_line {
        Some(line) => format!("its worker {how} ({line})"),
        None => format!("its worker {how}"),
    }
}
