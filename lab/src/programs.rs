//! Builds our programs for guests and locates them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use guest::Arch;

/// The programs with their packages.
const PROGRAMS: [(&str, &str); 2] = [("punctual", "punctual"), ("lab-tests", "guest")];

/// The build profile, that of `make run`.
const PROFILE: &str = "quick";

pub(crate) fn target(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "x86_64-unknown-linux-musl",
        Arch::Arm64 => "aarch64-unknown-linux-musl",
    }
}

/// Builds all programs for an architecture. One command builds them, as in `tools/test`: alone, each would need other
/// features of the dependencies, and all crates would be built once for each.
pub(crate) fn build(arch: Arch) -> Result<()> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--profile", PROFILE, "--target", target(arch)])
        .args(PROGRAMS.iter().flat_map(|(package, program)| ["-p", package, "--bin", program]))
        // This linker comes with rustc, so no cross compiler is needed.
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld")
        .current_dir(workspace()?)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "cannot build the programs for {arch}; see above");
    Ok(())
}

/// The path of one of our programs after it was built.
///
/// # Errors
/// If there is no such program.
pub fn program(arch: Arch, name: &str) -> Result<PathBuf> {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or(workspace()?.join("target"), PathBuf::from);
    ensure!(PROGRAMS.iter().any(|(_, program)| *program == name), "unknown program {name}");
    Ok(folder.join(target(arch)).join(PROFILE).join(name))
}

/// The folder of the workspace.
pub(crate) fn workspace() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace has no folder")
}
