//! Builds our programs for guests, and finds them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use guest::Arch;

/// What is built: package, program.
const PROGRAMS: [(&str, &str); 2] = [("punctual", "punctual"), ("lab-tests", "guest")];

/// Built without whole-program optimisation, one for all programs and boots.
const PROFILE: &str = "guest";

pub(crate) fn target(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "x86_64-unknown-linux-musl",
        Arch::Arm64 => "aarch64-unknown-linux-musl",
    }
}

/// Builds punctual and the tests for a target.
pub(crate) fn build(arch: Arch) -> Result<()> {
    for (package, program) in PROGRAMS {
        let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["build", "--quiet", "--profile", PROFILE, "--target", target(arch), "-p", package, "--bin", program])
            // rustc brings this linker along, so that no cross compiler is needed.
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld")
            .current_dir(workspace()?)
            .status()
            .context("cannot run cargo")?;
        ensure!(status.success(), "{program} cannot be built for {arch}; see above");
    }
    Ok(())
}

/// Where a program of ours for the guests is, once they have been prepared.
///
/// # Errors
/// When there is no such program.
pub fn program(arch: Arch, name: &str) -> Result<PathBuf> {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or(workspace()?.join("target"), PathBuf::from);
    ensure!(PROGRAMS.iter().any(|(_, program)| *program == name), "no program of ours is called {name}");
    Ok(folder.join(target(arch)).join(PROFILE).join(name))
}

fn workspace() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace has no folder")
}
