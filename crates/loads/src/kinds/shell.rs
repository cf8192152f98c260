//! The load `cpu:shell`, common in the machine-tool world: per CPU a shell that echoes to /dev/null forever.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use machine::{CpuList, Root};
use rustix::process::{Pid, Signal, kill_process};
use sys::child::{reap, signal_when_parent_ends, try_reap};

use super::kind::Plan;
use crate::{LoadError, meter::Meter};

const LOOP: &str = r#"while true; do echo "nothing" > /dev/null; done"#;
/// Bytes that one pass writes: `nothing` and a newline.
const BYTES_PER_PASS: u64 = 8;

pub(super) fn plan(cpus: &CpuList) -> Result<Plan, LoadError> {
    if written(&Root::system(), "self").is_none() {
        return Err(failed("this kernel does not count written bytes (no /proc/PID/io): use load `cpu` instead"));
    }
    match Command::new("sh").args(["-c", ":"]).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(Plan::each_cpu("passes of the loop", cpus, run)),
        Ok(status) => Err(failed(&format!("it ended with {status}: use load `cpu` instead"))),
        Err(error) => Err(failed(&format!("{error}: use load `cpu` instead"))),
    }
}

/// Runs the shell on this thread's CPU, and computes the passes from the kernel's count of written bytes.
fn run(meter: &Meter) -> Result<(), LoadError> {
    let mut command = Command::new("sh");
    command.args(["-c", LOOP]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let shell = signal_when_parent_ends(&mut command, Signal::KILL).spawn();
    let pid = Pid::from_child(&shell.map_err(|error| failed(&format!("{error}: use load `cpu` instead")))?);
    let root = Root::system();
    let name = pid.as_raw_nonzero().to_string();
    while meter.pause(Duration::from_millis(200)) {
        if matches!(try_reap(pid), Ok(Some(_)) | Err(_)) {
            return Err(failed("the shell ended by itself: was it killed?"));
        }
        count(meter, &root, &name);
    }
    count(meter, &root, &name);
    // The shell is not reaped yet, so its pid cannot have been reused.
    let _ = kill_process(pid, Signal::KILL);
    let _ = reap(pid);
    Ok(())
}

fn count(meter: &Meter, root: &Root, pid: &str) {
    if let Some(bytes) = written(root, pid) {
        meter.set(bytes / BYTES_PER_PASS);
    }
}

/// Bytes that a process has written since it started.
fn written(root: &Root, pid: &str) -> Option<u64> {
    let io = root.read(&format!("proc/{pid}/io"))?;
    io.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
}

fn failed(reason: &str) -> LoadError {
    LoadError::Failed { load: "cpu:shell", reason: format!("cannot run sh: {reason}") }
}
