//! Builds the contents of guests: kernels, static programs and the module.

use std::{collections::BTreeMap, env, fs, io, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use guest::{Arch, GuestError, Initramfs, debian::Kernel, initramfs::find_program};

use super::plan::{Ended, Wanted};
use crate::{
    boots::Boot,
    programs::{build, program, target, workspace},
    tests::package::PACKAGE,
};

/// The contents of one guest.
#[derive(Debug)]
pub(super) struct Kit {
    pub(super) kernel: Kernel,
    pub(super) initramfs: Initramfs,
    /// The initramfs of the peer guest.
    pub(super) peer: Option<Initramfs>,
}

const GUEST: &str = "/bin/guest";
/// The modules of `lab/module` by kernel release, with their names.
type Modules = BTreeMap<(String, &'static [&'static str]), Vec<(&'static str, Vec<u8>)>>;

/// Downloads and builds the contents of all boots, and passes each one on as soon as it is ready. Failures only affect
/// the boots concerned.
pub(super) fn prepare(mut wanted: Vec<Wanted>, update: bool, on_ready: &mut dyn FnMut(Wanted, Result<Kit, Ended>)) {
    // Most boots have this architecture and can run while programs for another one are built.
    wanted.sort_by_key(|(boot, _)| boot.kernel.arch != Arch::X86_64);
    let mut kernels: BTreeMap<&str, Result<Kernel, GuestError>> = BTreeMap::new();
    for (boot, _) in &wanted {
        kernels.entry(boot.kernel.name).or_insert_with(|| kernel(boot, update));
    }
    let mut built: BTreeMap<&str, Result<(), String>> = BTreeMap::new();
    let mut modules = BTreeMap::new();
    let mut kit = |(boot, tests): &Wanted| {
        let kernel = kernels[boot.kernel.name].as_ref().map_err(ended)?;
        let arch = boot.kernel.arch;
        let built = built.entry(target(arch)).or_insert_with(|| build_for(arch).map_err(|error| format!("{error:#}")));
        built.as_ref().map_err(|error| Ended::Failed(Vec::new(), error.clone()))?;
        let mut make = || {
            let peer = boot.peer.map(|peer| initramfs(peer, &[], kernel, &mut modules)).transpose()?;
            let initramfs = initramfs(boot, tests, kernel, &mut modules)?;
            Ok(Kit { kernel: kernel.clone(), initramfs, peer })
        };
        make().map_err(|error: anyhow::Error| match error.downcast_ref() {
            Some(error) => ended(error),
            None => Ended::Failed(Vec::new(), format!("{error:#}")),
        })
    };
    for wanted in wanted {
        let kit = kit(&wanted);
        on_ready(wanted, kit);
    }
}

/// Missing prerequisites skip tests; other errors are failures.
fn ended(error: &GuestError) -> Ended {
    if error.is_missing_prerequisite() {
        Ended::Skipped(error.to_string())
    } else {
        Ended::Failed(Vec::new(), error.to_string())
    }
}

fn say(text: &str) {
    eprintln!("{text}");
}

fn kernel(boot: &Boot, update: bool) -> Result<Kernel, GuestError> {
    let arch = boot.kernel.arch;
    if find_program(arch.qemu()).is_none() {
        return Err(GuestError::NoQemu { arch });
    }
    if update { boot.kernel.update(&mut say) } else { boot.kernel.fetch(&mut say) }
}

fn build_for(arch: Arch) -> Result<()> {
    say(&format!("building for {arch}"));
    build(arch)
}

fn initramfs(boot: &Boot, tests: &[&str], kernel: &Kernel, modules: &mut Modules) -> Result<Initramfs> {
    let arch = kernel.flavour.arch;
    let mut initramfs = Initramfs::new(arch, &program(arch, "punctual")?)?;
    initramfs.static_program(GUEST, &program(arch, "guest")?)?;
    initramfs.command([GUEST, boot.name].iter().chain(tests).copied());
    for module in boot.cards.iter().map(|model| model.driver()).chain(boot.modules.iter().copied()) {
        kernel.add_module(module, &mut initramfs)?;
    }
    for (program, package) in boot.programs {
        initramfs.host_program(program, package)?;
    }
    for (program, package) in boot.fetched {
        initramfs.unpacked_program(program, &package.fetch(&mut say)?)?;
    }
    for &(program, variable) in boot.given {
        let path = env::var_os(variable).filter(|path| !path.is_empty());
        let path = path.ok_or(GuestError::ProgramNotGiven { program, variable })?;
        initramfs.static_program(&format!("/bin/{program}"), Path::new(&path))?;
    }
    if boot.package {
        initramfs.file(PACKAGE, build_package(arch)?);
    }
    if boot.hold {
        let key = (kernel.release.clone(), boot.built);
        let built = match modules.get(&key) {
            Some(built) => built.clone(),
            None => modules.entry(key).or_insert(build_modules(kernel, boot.built)?).clone(),
        };
        for (name, bytes) in built {
            initramfs.module(name, bytes);
        }
    }
    Ok(initramfs)
}

/// Builds the Debian package of punctual as `make dist` does, but compressed quickly.
fn build_package(arch: Arch) -> Result<Vec<u8>> {
    let script = workspace()?.join("tools/package");
    let name = match arch {
        Arch::X86_64 => "x86_64",
        Arch::Arm64 => "aarch64",
    };
    if find_program("dpkg-deb").is_none() {
        return Err(GuestError::Missing { program: "dpkg-deb".to_owned(), package: "dpkg".to_owned() }.into());
    }
    let out = tempfile::tempdir()?;
    say("building the package");
    let binary = program(arch, "punctual")?;
    let built = Command::new(&script)
        .arg(out.path())
        .arg(format!("{name}={}", binary.display()))
        .envs([("FORMATS", "deb"), ("DPKG_DEB_COMPRESSOR_LEVEL", "1")])
        .output()
        .with_context(|| script.display().to_string())?;
    ensure!(built.status.success(), "cannot build the package: {}", String::from_utf8_lossy(&built.stderr));
    let packages = fs::read_dir(out.path())?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let package = packages.iter().find(|path| path.extension().is_some_and(|ending| ending == "deb"));
    Ok(fs::read(package.context("tools/package made no package")?)?)
}

/// Builds the modules of `lab/module` for this kernel, those that each guest with them has and `more`, in the order of
/// loading.
fn build_modules(kernel: &Kernel, more: &[&'static str]) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let headers = kernel.headers(&mut say)?;
    let sources = more.contains(&"counter").then(|| kernel.sources("drivers/counter", &mut say)).transpose()?;
    let out = tempfile::tempdir()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("module/build");
    say(&format!("building the modules for {}", kernel.release));
    let built = Command::new(&script)
        .arg(&headers)
        .arg(out.path())
        .args(&sources)
        .output()
        .with_context(|| script.display().to_string())?;
    ensure!(built.status.success(), "cannot build the modules: {}", String::from_utf8_lossy(&built.stderr));
    let names = ["hold", "lines", "events"].into_iter().chain(more.iter().copied());
    Ok(names.map(|name| Ok((name, fs::read(out.path().join(format!("{name}.ko")))?))).collect::<io::Result<_>>()?)
}
