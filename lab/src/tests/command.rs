//! Tests of `punctual lab` as kernel developers use it. They run on the host.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use guest::debian;

use crate::programs::program;

/// Boots an unmodified bzImage with an unknown kernel argument. Output, record, report and log are returned, and the
/// exit status is that of the guest.
pub fn measures_a_kernel_image() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path();
    let measured = lab(folder, "unheard_of", "measure timer --full --samples 500 --profile avb-class-a")?;
    let (stdout, stderr) = (String::from_utf8_lossy(&measured.stdout), String::from_utf8_lossy(&measured.stderr));
    ensure!(matches!(measured.status.code(), Some(0 | 2 | 3)), "{}: {stderr}", measured.status);
    ensure!(stdout.contains("PREEMPT_RT") && stderr.contains("record  built.punctual.json"), "{stdout}{stderr}");
    let record = record::file::read(&folder.join("built.punctual.json"))?;
    ensure!(record.validity.valid, "{:?}", record.validity);
    ensure!(record.caveats.iter().any(|caveat| caveat.kind == "virtual"), "{:?}", record.caveats);
    let status = record.verdict.as_ref().map(|verdict| i32::from(verdict.outcome.exit_status()));
    ensure!(measured.status.code() == status, "{}, but {:?}", measured.status, record.verdict);
    let read = |name: &str| fs::read_to_string(folder.join(name)).with_context(|| name.to_owned());
    ensure!(read("built.punctual.html")?.contains("the times are virtual"), "the report lacks the caveat");
    ensure!(read("built.kernel.log")?.contains("Linux version"), "the kernel log is not a log");

    let refused = lab(folder, "", "measure timer --cpus 7")?;
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(1) && stderr.contains("CPU 7 is not on this machine"), "{stderr}");
    Ok(())
}

/// Number of commits of the test repository.
const COMMITS: u32 = 17;
/// The commit that adds a boot parameter, which traces each function and so makes all wake-ups later.
const PLANTED: u32 = 11;

/// `--bisect` finds the commit after which the same image has another boot parameter. The user's tree stays as it is.
pub fn finds_a_planted_delay() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let repository = scratch.path().join("repository");
    fs::create_dir(&repository)?;
    let git = |words: &[&str]| -> Result<String> {
        let own = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
        let output = Command::new("git").args(own).args(words).current_dir(&repository).output()?;
        ensure!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    git(&["init", "--quiet"])?;
    for number in 0..COMMITS {
        let parameters = if number < PLANTED { "" } else { "ftrace=function" };
        fs::write(repository.join("number"), number.to_string())?;
        fs::write(repository.join("parameters"), parameters)?;
        git(&["add", "."])?;
        git(&["commit", "--quiet", "-m", &format!("Change {number}")])?;
        git(&["tag", &format!("change-{number}")])?;
    }
    let kernel = debian::RT_6_12.cached().context("the kernel is not cached")?;
    let mut command = Command::new(program(kernel.flavour.arch, "punctual")?);
    command.args(["lab", "--bisect", "change-0", &format!("change-{}", COMMITS - 1), "--kernel", "bzImage", "--build"]);
    command.arg(format!("cp '{}' bzImage", kernel.packed_image().display()));
    command.args(["--append-file", "parameters", "--rounds", "1", "--record", "../records", "--"]);
    let found =
        command.args("measure timer --samples 1000 --blame=off".split(' ')).current_dir(&repository).output()?;
    let (stdout, stderr) = (String::from_utf8_lossy(&found.stdout), String::from_utf8_lossy(&found.stderr));
    ensure!(found.status.success(), "{}: {stdout}{stderr}", found.status);
    let last = stdout.lines().last().unwrap_or_default();
    ensure!(last.starts_with("first ") && last.contains(&format!(" Change {PLANTED}: ")), "{stdout}");
    ensure!(git(&["worktree", "list"])?.lines().count() == 1, "the temporary working tree is left");
    ensure!(git(&["status", "--porcelain"])?.is_empty(), "the working tree of the user has changed");
    ensure!(!scratch.path().join("records/tree").exists(), "the folder of the working tree is left");
    Ok(())
}

fn lab(folder: &Path, append: &str, arguments: &str) -> Result<Output> {
    let kernel = debian::RT_6_12.cached().context("the kernel is not cached")?;
    let mut command = Command::new(program(kernel.flavour.arch, "punctual")?);
    command.arg("lab").arg("--kernel").arg(kernel.packed_image());
    command.args(["--append", append, "--record", "built", "--"]).args(arguments.split(' '));
    Ok(command.current_dir(folder).output()?)
}
