//! Kernels and programs from Debian packages: resolved, downloaded, unpacked and cached outside the source tree.
//! Kernels that Debian does not have are given by the user.
//!
//! All apt commands use a separate apt directory. The package lists and state of this machine stay unchanged, other
//! architectures work, and no root privileges are needed. The package sources are those of this machine.

mod apt;
mod cache;
mod programs;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Arch, GuestError, Image, Initramfs,
    error::At,
    image::{decompress, vmlinux_in},
    initramfs::find_program,
};

use apt::{Apt, run};
use cache::{create_complete, lock};

pub use cache::cache;
pub use programs::{DPKG, GPIOD, PPS_TOOLS, Package, RTLA};

/// A kernel that is available under a fixed name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flavour {
    /// The name used here.
    pub name: &'static str,
    source: Source,
    /// Its architecture.
    pub arch: Arch,
}

/// The origin of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A Debian meta package that depends on the current kernel package.
    Debian(&'static str),
    /// A file named by this environment variable.
    Given(&'static str),
}

use Source::{Debian, Given};

/// Linux 6.12 with PREEMPT_RT.
pub const RT_6_12: Flavour =
    Flavour { name: "6.12-rt", source: Debian("linux-image-6.12-rt-amd64"), arch: Arch::X86_64 };
/// Linux 6.1 with PREEMPT_RT.
pub const RT_6_1: Flavour = Flavour { name: "6.1-rt", source: Debian("linux-image-rt-amd64"), arch: Arch::X86_64 };
/// Linux 6.12 without PREEMPT_RT, in the small build for virtual machines.
pub const ORDINARY_6_12: Flavour =
    Flavour { name: "6.12", source: Debian("linux-image-6.12-cloud-amd64"), arch: Arch::X86_64 };
/// Linux 6.1 with PREEMPT_RT for arm64.
pub const RT_6_1_ARM64: Flavour =
    Flavour { name: "6.1-rt-arm64", source: Debian("linux-image-rt-arm64"), arch: Arch::Arm64 };

/// A kernel with the EVL core for x86-64, which Debian does not have.
pub const EVL: Flavour = Flavour { name: "evl", source: Given("PUNCTUAL_LAB_EVL_KERNEL"), arch: Arch::X86_64 };
/// Such a kernel with GPIO lines for threads of the EVL core, and a chip whose outputs are wired to its inputs.
pub const EVL_GPIO: Flavour =
    Flavour { name: "evl-gpio", source: Given("PUNCTUAL_LAB_EVL_GPIO_KERNEL"), arch: Arch::X86_64 };

/// An available kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Its flavour.
    pub flavour: Flavour,
    /// Its release as printed by `uname -r`.
    pub release: String,
    /// The directory with its modules.
    folder: PathBuf,
    image: PathBuf,
}

impl Flavour {
    /// The kernel, if it is cached or given.
    #[must_use]
    pub fn cached(self) -> Option<Kernel> {
        if let Given(variable) = self.source {
            let image = env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)?;
            return Some(Kernel { flavour: self, release: image.display().to_string(), folder: PathBuf::new(), image });
        }
        let folder = cache().join(self.name);
        let release = fs::read_to_string(folder.join("release")).ok()?;
        let image = folder.join("kernel");
        Some(Kernel { flavour: self, release: release.trim().to_owned(), folder, image })
    }

    /// The kernel, downloaded if it is not cached. `say` receives progress messages.
    ///
    /// # Errors
    /// If there is no network, no apt, or no such package.
    pub fn fetch(self, say: &mut dyn FnMut(&str)) -> Result<Kernel, GuestError> {
        let _lock = lock()?;
        self.cached().map_or_else(|| self.fetch_current(say), Ok)
    }

    /// The kernel in its current version, downloaded if the cached one is older.
    ///
    /// # Errors
    /// The errors of [`fetch`](Self::fetch).
    pub fn update(self, say: &mut dyn FnMut(&str)) -> Result<Kernel, GuestError> {
        let _lock = lock()?;
        self.fetch_current(say)
    }

    fn fetch_current(self, say: &mut dyn FnMut(&str)) -> Result<Kernel, GuestError> {
        let name = match self.source {
            Debian(name) => name,
            Given(variable) => return self.cached().ok_or(GuestError::NotGiven { variable }),
        };
        let apt = Apt::new(self.arch, None, say)?;
        let package = apt.dependency(name, "linux-image-")?;
        if let Some(kernel) = self.cached().filter(|kernel| package.ends_with(&kernel.release)) {
            return Ok(kernel);
        }
        let folder = cache().join(self.name);
        create_complete(&folder, |new| {
            apt.unpack(&package, new, say)?;
            let release = package.trim_start_matches("linux-image-");
            depmod(new, release)?;
            let packed = packed_image(new, release);
            let image = fs::read(&packed).reading(&packed)?;
            // Without the xz program the bzImage is used, which boots more slowly.
            let kernel = vmlinux_in(&image).unwrap_or(image);
            let path = new.join("kernel");
            fs::write(&path, kernel).writing(&path)?;
            let path = new.join("release");
            fs::write(&path, release).writing(&path)
        })?;
        self.cached().ok_or(GuestError::NoPackage { package })
    }
}

impl Kernel {
    /// The kernel image.
    ///
    /// # Errors
    /// If the cache is damaged.
    pub fn image(&self) -> Result<Image, GuestError> {
        Image::open(&self.image)
    }

    /// The image as packaged; on x86 a bzImage.
    #[must_use]
    pub fn packed_image(&self) -> PathBuf {
        packed_image(&self.folder, &self.release)
    }

    /// Adds a module, after the modules that it depends on, to a guest.
    ///
    /// # Errors
    /// If this kernel has no such module, or the module cannot be decompressed.
    pub fn add_module(&self, name: &str, initramfs: &mut Initramfs) -> Result<(), GuestError> {
        let folder = self.folder.join("lib/modules").join(&self.release);
        let read = |file: &str| fs::read_to_string(folder.join(file)).reading(&folder.join(file));
        let missing = || GuestError::NoModule { release: self.release.clone(), module: name.to_owned() };
        let Some(files) = load_order(&read("modules.dep")?, name) else {
            let built_in = read("modules.builtin")?.lines().any(|path| module_name(path) == name);
            return if built_in { Ok(()) } else { Err(missing()) };
        };
        for file in files {
            let path = folder.join(&file);
            let bytes = fs::read(&path).reading(&path)?;
            let unpacked = match path.extension().unwrap_or_default().to_str() {
                Some("xz") => decompress("xz", &bytes).reading(&path)?,
                Some("zst") => decompress("zstd", &bytes).reading(&path)?,
                _ => bytes,
            };
            initramfs.module(&module_name(&file), unpacked);
        }
        Ok(())
    }

    /// A directory with the unpacked header packages for building modules, downloaded if necessary.
    ///
    /// # Errors
    /// The errors of [`Flavour::fetch`].
    pub fn headers(&self, say: &mut dyn FnMut(&str)) -> Result<PathBuf, GuestError> {
        let _lock = lock()?;
        let folder = cache().join(format!("{}-headers-{}", self.flavour.name, self.release));
        if !folder.exists() {
            let apt = Apt::new(self.flavour.arch, None, say)?;
            let headers = format!("linux-headers-{}", self.release);
            let packages = [
                headers.clone(),
                apt.dependency(&headers, "linux-headers-")?,
                apt.dependency(&headers, "linux-kbuild-")?,
            ];
            create_complete(&folder, |new| packages.iter().try_for_each(|package| apt.unpack(package, new, say)))?;
        }
        Ok(folder)
    }

    /// A directory with a folder of the kernel's sources, such as `drivers/counter`, downloaded if necessary. Returns that
    /// folder.
    ///
    /// # Errors
    /// The errors of [`Flavour::fetch`]. A kernel whose name has no version has no such package.
    pub fn sources(&self, path: &str, say: &mut dyn FnMut(&str)) -> Result<PathBuf, GuestError> {
        let _lock = lock()?;
        let folder = cache().join(format!("{}-{}-{}", self.flavour.name, path.replace('/', "-"), self.release));
        if !folder.exists() {
            let apt = Apt::new(self.flavour.arch, None, say)?;
            let version = self.flavour.name.split('-').next().unwrap_or_default();
            let name = format!("linux-source-{version}");
            create_complete(&folder, |new| {
                apt.unpack(&name, new, say)?;
                let mut unpack = Command::new("tar");
                unpack.arg("-C").arg(new).arg("-xf").arg(new.join(format!("usr/src/{name}.tar.xz")));
                unpack.args(["--strip-components=1", &format!("{name}/{path}")]);
                run(unpack)?;
                fs::remove_dir_all(new.join("usr")).writing(new)
            })?;
        }
        Ok(folder.join(path))
    }
}

fn packed_image(folder: &Path, release: &str) -> PathBuf {
    folder.join("boot").join(format!("vmlinuz-{release}"))
}

/// The module files to load, in order; `None` if the module is not listed.
fn load_order(dependencies: &str, name: &str) -> Option<Vec<String>> {
    let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
    let (file, needs) = lines.into_iter().find(|(file, _)| module_name(file) == name.replace('-', "_"))?;
    // depmod lists the dependencies in reverse load order.
    Some(needs.split_whitespace().rev().chain([file]).map(str::to_owned).collect())
}

/// The module name of a path, e.g. `parport_pc` for `kernel/drivers/parport/parport_pc.ko.xz`. The kernel treats `-` as
/// `_`.
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

fn depmod(folder: &Path, release: &str) -> Result<(), GuestError> {
    let missing = || GuestError::Missing { program: "depmod".to_owned(), package: "kmod".to_owned() };
    let mut command = Command::new(find_program("depmod").ok_or_else(missing)?);
    command.arg("-b").arg(folder).arg(release);
    run(command).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_load_after_their_dependencies() {
        let dependencies = "kernel/a/pps_parport.ko.xz: kernel/a/parport.ko.xz kernel/b/pps-core.ko.xz\n\
                            kernel/a/parport.ko.xz:\nkernel/b/pps-core.ko.xz:\n";
        let order = |name| load_order(dependencies, name).unwrap_or_default();
        assert_eq!(
            order("pps_parport"),
            ["kernel/b/pps-core.ko.xz", "kernel/a/parport.ko.xz", "kernel/a/pps_parport.ko.xz"]
        );
        assert_eq!(order("pps-core"), ["kernel/b/pps-core.ko.xz"]);
        assert!(load_order(dependencies, "parport_pc").is_none());
    }
}
