//! What the tests inside a guest share: running them, running punctual, reading its record.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use record::Record;

/// Runs punctual with these arguments, split at spaces.
///
/// # Errors
/// When it cannot be run.
pub fn punctual(arguments: &str) -> Result<Output> {
    run(&format!("{} {arguments}", guest::initramfs::PUNCTUAL))
}

/// Runs a command, split at spaces.
///
/// # Errors
/// When it cannot be run.
pub fn run(command: &str) -> Result<Output> {
    let mut words = command.split_whitespace();
    let program = words.next().context("there is no command")?;
    Command::new(program).args(words).output().with_context(|| format!("cannot run {program}"))
}

/// Starts punctual with these arguments, split at spaces; what it prints waits to be read.
///
/// # Errors
/// When it cannot be started.
pub fn start(arguments: &str) -> Result<Child> {
    let mut command = Command::new(guest::initramfs::PUNCTUAL);
    command.args(arguments.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("cannot start punctual")
}

/// Waits for at most a minute, since emulated machines may be slow; an error counts as not yet.
///
/// # Errors
/// When that has been in vain.
pub fn wait_until(what: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    loop {
        let seen = match holds() {
            Ok(true) => return Ok(()),
            Ok(false) => String::new(),
            Err(error) => format!(": {error:#}"),
        };
        ensure!(begin.elapsed() < Duration::from_secs(60), "waited 60 s in vain until {what}{seen}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The threads whose name is wanted, each with its policy and priority: `fifo:50`, `other`.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn scheduled(is_wanted: impl Fn(&str) -> bool) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_string_lossy().into_owned();
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((name, rest)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')) else { continue };
        if is_wanted(name) {
            // Fields 40 and 41 of proc(5): real-time priority, and policy.
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let policy = match fields[38] {
                "0" => "other".to_owned(),
                "1" => format!("fifo:{}", fields[37]),
                policy => format!("policy {policy}"),
            };
            found.insert(name.to_owned(), policy);
        }
    }
    Ok(found)
}

/// What a command printed, if it ended with this status.
///
/// # Errors
/// When it ended otherwise; the error has what it said.
pub fn expect(status: i32, output: &Output) -> Result<String> {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.code() == Some(status), "ended with {} where {status} was due: {out} {err}", output.status);
    Ok(out.into_owned())
}

/// Runs `punctual measure timer` with these arguments; its record, which also comes back to the host under `name`.
///
/// # Errors
/// When its exit status is not `status`, or the record cannot be read.
pub fn measure(status: i32, name: &str, arguments: &str) -> Result<Record> {
    expect(status, &punctual(&format!("measure timer --quiet --record {name} {arguments}"))?)?;
    recorded(name)
}

/// The record of this name.
///
/// # Errors
/// When it cannot be read.
pub fn recorded(name: &str) -> Result<Record> {
    Ok(record::file::read(Path::new(&format!("{}/{name}.punctual.json", guest::initramfs::OUT)))?)
}

/// What a file of the kernel says, without white space around it.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &str) -> Result<String> {
    Ok(fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?.trim().to_owned())
}

/// Writes to a file of the kernel.
///
/// # Errors
/// What the kernel answered.
pub fn write(path: &str, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {text} to {path}"))
}

/// The middle one; 0 of none.
#[must_use]
pub fn median(values: &[i64]) -> i64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}
