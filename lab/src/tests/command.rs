//! `punctual lab` itself, as who builds kernels uses it. These tests run on the host.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use guest::debian;

use crate::programs::program;

/// A bzImage boots as it was built, with an argument that it does not know; output, record, report and log come back, and
/// the exit status is the guest's.
pub fn a_kernel_image_is_measured() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path();
    let measured = lab(folder, "unheard_of", "measure timer --samples 500 --profile avb-class-a")?;
    let (told, talk) = (String::from_utf8_lossy(&measured.stdout), String::from_utf8_lossy(&measured.stderr));
    ensure!(matches!(measured.status.code(), Some(0 | 2 | 3)), "{}: {talk}", measured.status);
    ensure!(told.contains("PREEMPT_RT") && talk.contains("record  built.punctual.json"), "{told}{talk}");
    let record = record::file::read(&folder.join("built.punctual.json"))?;
    ensure!(record.validity.valid, "{:?}", record.validity);
    ensure!(record.caveats.iter().any(|caveat| caveat.kind == "virtual"), "{:?}", record.caveats);
    let status = record.verdict.as_ref().map(|verdict| i32::from(verdict.outcome.exit_status()));
    ensure!(measured.status.code() == status, "{}, but {:?}", measured.status, record.verdict);
    let read = |name: &str| fs::read_to_string(folder.join(name)).with_context(|| name.to_owned());
    ensure!(read("built.punctual.html")?.contains("the times are virtual"), "the report keeps the caveat back");
    ensure!(read("built.kernel.log")?.contains("Linux version"), "the kernel's log is no log");

    let refused = lab(folder, "", "measure timer --cpus 7")?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(1) && said.contains("CPU 7 is not on this machine"), "{said}");
    Ok(())
}

fn lab(folder: &Path, append: &str, arguments: &str) -> Result<Output> {
    let kernel = debian::RT_6_12.cached().context("the kernel has not been fetched")?;
    let mut command = Command::new(program(kernel.flavour.arch, "punctual")?);
    command.arg("lab").arg("--kernel").arg(kernel.packed_image());
    command.args(["--append", append, "--record", "built", "--"]).args(arguments.split(' '));
    Ok(command.current_dir(folder).output()?)
}
