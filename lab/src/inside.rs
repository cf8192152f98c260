//! Helpers for tests inside a guest: run punctual and other commands, read records and kernel files.

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

/// Runs punctual with these arguments, separated by spaces.
///
/// # Errors
/// If it cannot be run.
pub fn punctual(arguments: &str) -> Result<Output> {
    run(&format!("{} {arguments}", guest::initramfs::PUNCTUAL))
}

/// Runs a command line, separated by spaces.
///
/// # Errors
/// If it cannot be run.
pub fn run(command: &str) -> Result<Output> {
    let mut words = command.split_whitespace();
    let program = words.next().context("the command line is empty")?;
    Command::new(program).args(words).output().with_context(|| format!("cannot run {program}"))
}

/// Starts punctual with these arguments, separated by spaces. Its output is piped.
///
/// # Errors
/// If it cannot be started.
pub fn start(arguments: &str) -> Result<Child> {
    let mut command = Command::new(guest::initramfs::PUNCTUAL);
    command.args(arguments.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("cannot start punctual")
}

/// Waits up to a minute, because emulated machines can be slow. An error counts as false.
///
/// # Errors
/// On timeout.
pub fn wait_until(condition: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    loop {
        let last_error = match holds() {
            Ok(true) => return Ok(()),
            Ok(false) => String::new(),
            Err(error) => format!(": {error:#}"),
        };
        ensure!(begin.elapsed() < Duration::from_secs(60), "timeout after 60 s: {condition}{last_error}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The selected threads with policy and priority, e.g. `fifo:50` or `other`.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn scheduled(is_wanted: impl Fn(&str) -> bool) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_string_lossy().into_owned();
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((name, rest)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')) else { continue };
        if is_wanted(name) {
            // Fields 40 and 41 of proc(5): real-time priority and policy.
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

/// The standard output of a command that must have ended with this exit status.
///
/// # Errors
/// If it ended with another status; the error contains its output.
pub fn expect(status: i32, output: &Output) -> Result<String> {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.code() == Some(status), "exit status {} instead of {status}: {out} {err}", output.status);
    Ok(out.into_owned())
}

/// Runs `punctual measure timer` and reads its record `name`, which is also returned to the host.
///
/// # Errors
/// If its exit status is not `status`, or the record cannot be read.
pub fn measure(status: i32, name: &str, arguments: &str) -> Result<Record> {
    expect(status, &punctual(&format!("measure timer --quiet --record {name} {arguments}"))?)?;
    recorded(name)
}

/// Reads the record `name`.
///
/// # Errors
/// If it cannot be read.
pub fn recorded(name: &str) -> Result<Record> {
    Ok(record::file::read(Path::new(&format!("{}/{name}.punctual.json", guest::initramfs::OUT)))?)
}

/// The content of a kernel file, without surrounding white space.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &str) -> Result<String> {
    Ok(fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?.trim().to_owned())
}

/// Writes to a kernel file.
///
/// # Errors
/// The kernel's error.
pub fn write(path: &str, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {text} to {path}"))
}

/// The median; 0 if there are no values.
#[must_use]
pub fn median(values: &[i64]) -> i64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}
