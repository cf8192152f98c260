//! Kernels for the lab, and Debian's programs: names resolved, fetched, unpacked, and kept outside the tree. A kernel that
//! Debian does not have is given by who has it.
//!
//! Everything goes through an apt folder of our own, so that the package lists and the state of this machine stay as they
//! are, other architectures work, and no rights are needed. The package sources are those of this machine.

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

use apt::{Apt, answer};
use cache::{at_once, lock};

pub use cache::cache;
pub use programs::{Package, RTLA};

/// A kernel that is found under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flavour {
    /// What we call it.
    pub name: &'static str,
    source: Source,
    /// What it runs on.
    pub arch: Arch,
}

/// Where a kernel comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// From the Debian package that always depends on the current one.
    Debian(&'static str),
    /// From a file that this variable of the environment names.
    Given(&'static str),
}

use Source::{Debian, Given};

/// Linux 6.12 with PREEMPT_RT.
pub const RT_6_12: Flavour =
    Flavour { name: "6.12-rt", source: Debian("linux-image-6.12-rt-amd64"), arch: Arch::X86_64 };
/// Linux 6.1 with PREEMPT_RT.
pub const RT_6_1: Flavour = Flavour { name: "6.1-rt", source: Debian("linux-image-rt-amd64"), arch: Arch::X86_64 };
/// Linux 6.12 without it: the one for virtual machines, which is small.
pub const ORDINARY_6_12: Flavour =
    Flavour { name: "6.12", source: Debian("linux-image-6.12-cloud-amd64"), arch: Arch::X86_64 };
/// Linux 6.1 with PREEMPT_RT for arm64.
pub const RT_6_1_ARM64: Flavour =
    Flavour { name: "6.1-rt-arm64", source: Debian("linux-image-rt-arm64"), arch: Arch::Arm64 };

/// A kernel with the EVL core for x86-64, which Debian does not have.
pub const EVL: Flavour = Flavour { name: "evl", source: Given("PUNCTUAL_LAB_EVL_KERNEL"), arch: Arch::X86_64 };

/// A kernel that is there.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Which one.
    pub flavour: Flavour,
    /// Its release, as `uname -r`.
    pub release: String,
    /// Where its modules are.
    folder: PathBuf,
    image: PathBuf,
}

impl Flavour {
    /// The kernel, if it has been fetched or given.
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

    /// The kernel, fetched now if it has not been. `say` is told what takes time.
    ///
    /// # Errors
    /// When there is no network, no apt, or no such package.
    pub fn fetch(self, say: &mut dyn FnMut(&str)) -> Result<Kernel, GuestError> {
        let _alone = lock()?;
        self.cached().map_or_else(|| self.fetch_current(say), Ok)
    }

    /// The kernel in its current version, fetched now unless it is the one that is there.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    pub fn update(self, say: &mut dyn FnMut(&str)) -> Result<Kernel, GuestError> {
        let _alone = lock()?;
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
        at_once(&folder, |new| {
            apt.unpack(&package, new, say)?;
            let release = package.trim_start_matches("linux-image-");
            depmod(new, release)?;
            let packed = packed_image(new, release);
            let image = fs::read(&packed).reading(&packed)?;
            // Without xz the whole image boots as well, only slower.
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
    /// Its image.
    ///
    /// # Errors
    /// When the cache is damaged.
    pub fn image(&self) -> Result<Image, GuestError> {
        Image::open(&self.image)
    }

    /// The file that the package has: on x86 a bzImage, as it was built.
    #[must_use]
    pub fn packed_image(&self) -> PathBuf {
        packed_image(&self.folder, &self.release)
    }

    /// Puts a module, and before it those that it needs, into a guest.
    ///
    /// # Errors
    /// When this kernel has no such module, or it cannot be unpacked.
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

    /// A folder with the unpacked header packages of this kernel, for building modules; fetched now if need be.
    ///
    /// # Errors
    /// As [`Flavour::fetch`].
    pub fn headers(&self, say: &mut dyn FnMut(&str)) -> Result<PathBuf, GuestError> {
        let _alone = lock()?;
        let folder = cache().join(format!("{}-headers-{}", self.flavour.name, self.release));
        if !folder.exists() {
            let apt = Apt::new(self.flavour.arch, None, say)?;
            let headers = format!("linux-headers-{}", self.release);
            let packages = [
                headers.clone(),
                apt.dependency(&headers, "linux-headers-")?,
                apt.dependency(&headers, "linux-kbuild-")?,
            ];
            at_once(&folder, |new| packages.iter().try_for_each(|package| apt.unpack(package, new, say)))?;
        }
        Ok(folder)
    }
}

fn packed_image(folder: &Path, release: &str) -> PathBuf {
    folder.join("boot").join(format!("vmlinuz-{release}"))
}

/// The files to load for a module, in their order; `None` where the list does not have it.
fn load_order(dependencies: &str, name: &str) -> Option<Vec<String>> {
    let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
    let (file, needs) = lines.into_iter().find(|(file, _)| module_name(file) == name.replace('-', "_"))?;
    // depmod writes what is needed first last.
    Some(needs.split_whitespace().rev().chain([file]).map(str::to_owned).collect())
}

/// `kernel/drivers/parport/parport_pc.ko.xz` to `parport_pc`; the kernel takes `-` in a file's name for `_`.
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

fn depmod(folder: &Path, release: &str) -> Result<(), GuestError> {
    let missing = || GuestError::Missing { program: "depmod".to_owned(), package: "kmod".to_owned() };
    let mut command = Command::new(find_program("depmod").ok_or_else(missing)?);
    command.arg("-b").arg(folder).arg(release);
    answer(command).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_load_after_what_they_need() {
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
