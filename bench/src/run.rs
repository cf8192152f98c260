//! Runs one program to its end, and says what it printed and what it cost.

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

/// A run that came to its end.
#[derive(Debug)]
pub struct Run {
    /// What it printed.
    pub stdout: String,
    /// What it cost.
    pub usage: Ended,
    /// Just before it was started, ns on the monotonic clock.
    pub started_ns: i64,
}

/// Runs `command`; an exit status that is not among `accepted` is an error with what it said. `remedy` is what to do
/// when it cannot be started.
pub fn run(command: &mut Command, accepted: &[i32], remedy: &str) -> Result<Run> {
    let name = command.get_program().to_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started_ns = Clock::Monotonic.now_ns();
    let mut child = command.spawn().with_context(|| format!("cannot start {}; {remedy}", shown(&name)))?;
    // These programs say little on standard error, so that reading one after the other blocks none.
    let stdout = read(child.stdout.take())?;
    let complaint = read(child.stderr.take())?;
    let usage = reap(Pid::from_child(&child))?;
    match usage.how {
        Ok(code) if accepted.contains(&code) => {}
        Ok(code) => bail!("{} ended with exit status {code}: {}", shown(&name), complaint.trim()),
        Err(signal) => bail!("{} was ended by signal {signal}", shown(&name)),
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

fn shown(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Run> {
        run(Command::new("sh").args(["-c", script]), &[0, 3], "")
    }

    #[test]
    fn what_is_printed_and_refused() {
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
