//! Runs a program to its end, and returns its output and resource usage.

use std::{
    ffi::OsStr,
    io::Read,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use rustix::process::Pid;
use sys::{
    child::{Ended, reap},
    clock::Clock,
};

/// A finished run.
#[derive(Debug)]
pub struct Run {
    /// Standard output.
    pub stdout: String,
    /// Resource usage.
    pub usage: Ended,
    /// Time just before the start, ns on CLOCK_MONOTONIC.
    pub started_ns: i64,
}

/// Runs `command`. An exit code that is not in `accepted` is an error, which contains the standard error. `remedy` is
/// added to the error if the command cannot be started.
pub fn run(command: &mut Command, accepted: &[i32], remedy: &str) -> Result<Run> {
    let name = command.get_program().to_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started_ns = Clock::Monotonic.now_ns();
    let mut child = command.spawn().with_context(|| format!("cannot start {}; {remedy}", display_name(&name)))?;
    // These programs write little to standard error, so reading both streams one after the other does not block.
    let stdout = read(child.stdout.take())?;
    let stderr = read(child.stderr.take())?;
    let usage = reap(Pid::from_child(&child))?;
    match usage.how {
        Ok(code) if accepted.contains(&code) => {}
        Ok(code) => bail!("{} ended with exit status {code}: {}", display_name(&name), stderr.trim()),
        Err(signal) => bail!("{} was killed by signal {signal}", display_name(&name)),
    }
    Ok(Run { stdout, usage, started_ns })
}

fn read(from: Option<impl Read>) -> Result<String> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        from.read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn display_name(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Run> {
        run(Command::new("sh").args(["-c", script]), &[0, 3], "")
    }

    #[test]
    fn returns_output_or_error() {
        assert_eq!(shell("echo seen; exit 3").unwrap().stdout, "seen\n");
        let refused = shell("echo no rights >&2; exit 1").unwrap_err().to_string();
        assert_eq!(refused, "sh ended with exit status 1: no rights");
    }

    #[test]
    fn a_missing_program_names_the_remedy() {
        let error = run(&mut Command::new("no-such-program"), &[0], "install it").unwrap_err();
        assert_eq!(error.to_string(), "cannot start no-such-program; install it");
    }
}
