//! What goes into the guests: kernels, static programs, the module.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use lab::{Arch, Initramfs, LabError, debian::Kernel, initramfs::find_program};

use super::{Ended, Wanted};
use crate::boots::Boot;

/// What one guest is made of.
#[derive(Debug)]
pub struct Kit {
    pub kernel: Kernel,
    pub initramfs: Initramfs,
}

const GUEST: &str = "/bin/guest";
const PROFILE: &str = "dist";

/// Fetches and builds what the boots need. What is missing for one is told for that one.
pub fn prepare(wanted: &[Wanted], update: bool) -> Vec<Result<Kit, Ended>> {
    let mut kernels: BTreeMap<&str, Result<Kernel, String>> = BTreeMap::new();
    for (boot, _) in wanted {
        kernels.entry(boot.kernel.name).or_insert_with(|| kernel(boot, update).map_err(|error| error.to_string()));
    }
    let mut programs: BTreeMap<&str, Result<PathBuf, String>> = BTreeMap::new();
    let mut kit = |(boot, tests): &Wanted| {
        let kernel = kernels[boot.kernel.name].clone().map_err(Ended::Skipped)?;
        let target = target(boot.kernel.arch);
        let programs = programs.entry(target).or_insert_with(|| build(target).map_err(|error| format!("{error:#}")));
        let programs = programs.as_ref().map_err(|error| Ended::Failed(Vec::new(), error.clone()))?;
        match initramfs(boot, tests, &kernel, programs) {
            Ok(initramfs) => Ok(Kit { kernel, initramfs }),
            Err(error) if error.is::<LabError>() => Err(Ended::Skipped(format!("{error:#}"))),
            Err(error) => Err(Ended::Failed(Vec::new(), format!("{error:#}"))),
        }
    };
    wanted.iter().map(&mut kit).collect()
}

fn say(text: &str) {
    eprintln!("{text}");
}

fn kernel(boot: &Boot, update: bool) -> Result<Kernel, LabError> {
    let arch = boot.kernel.arch;
    if find_program(arch.qemu()).is_none() {
        return Err(LabError::NoQemu { arch });
    }
    if update { boot.kernel.update(&mut say) } else { boot.kernel.fetch(&mut say) }
}

fn target(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "x86_64-unknown-linux-musl",
        Arch::Arm64 => "aarch64-unknown-linux-musl",
    }
}

/// Builds punctual and the tests for a target; the folder that they are in.
fn build(target: &str) -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace has a folder")?;
    say(&format!("building for {target}"));
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--profile", PROFILE, "--target", target])
        .args(["-p", "punctual", "-p", "lab-tests", "--bin", "punctual", "--bin", "guest"])
        // rustc brings this linker along, so that no cross compiler is needed.
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld")
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the programs for the guests cannot be built; see above");
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(folder.join(target).join(PROFILE))
}

fn initramfs(boot: &Boot, tests: &[&str], kernel: &Kernel, programs: &Path) -> Result<Initramfs> {
    let mut initramfs = Initramfs::new(kernel.flavour.arch, &programs.join("punctual"))?;
    initramfs.static_program(GUEST, &programs.join("guest"))?;
    initramfs.command([GUEST, boot.name].iter().chain(tests).copied());
    for module in boot.modules {
        kernel.add_module(module, &mut initramfs)?;
    }
    for (program, package) in boot.programs {
        initramfs.host_program(program, package)?;
    }
    for (program, package) in boot.fetched {
        initramfs.unpacked_program(program, &package.fetch(&mut say)?)?;
    }
    if boot.hold {
        initramfs.module("hold", hold(kernel)?);
    }
    Ok(initramfs)
}

/// Builds `lab/module` for this kernel.
fn hold(kernel: &Kernel) -> Result<Vec<u8>> {
    let headers = kernel.headers(&mut say)?;
    let out = tempfile::tempdir()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("module/build");
    say(&format!("building hold.ko for {}", kernel.release));
    let built =
        Command::new(&script).arg(&headers).arg(out.path()).output().with_context(|| script.display().to_string())?;
    ensure!(built.status.success(), "hold.ko cannot be built: {}", String::from_utf8_lossy(&built.stderr));
    Ok(fs::read(out.path().join("hold.ko"))?)
}
