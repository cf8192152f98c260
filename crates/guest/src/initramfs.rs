//! The first file system of a guest: programs, modules and the job.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use record::file::read_regular;
use serde::{Deserialize, Serialize};
use sys::elf::Elf;

use crate::{
    Arch, GuestError,
    cpio::{Node, Tree},
    error::At,
};

/// The path of our program in the guest, which is also its first process.
pub const PUNCTUAL: &str = "/bin/punctual";
/// The directory whose files are returned, and in which the command runs.
pub const OUT: &str = "/out";
/// The path of the job description.
pub(crate) const JOB: &str = "/lab/job.json";
/// The largest static program, bytes. One with debug information takes about 100 MiB.
const PROGRAM_BYTES_MAX: u64 = 512 << 20;

/// The job of a guest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Paths of kernel modules in the guest, in load order.
    pub modules: Vec<String>,
}

/// The initramfs of a guest.
#[derive(Debug, Clone)]
pub struct Initramfs {
    arch: Arch,
    tree: Tree,
    job: Job,
}

impl Initramfs {
    /// Creates an initramfs for a kernel of `arch` with our static program `punctual`. By default the job runs it
    /// without arguments.
    ///
    /// # Errors
    /// If the program cannot be read, is not static, or has another architecture.
    pub fn new(arch: Arch, punctual: &Path) -> Result<Self, GuestError> {
        let mut tree = Tree::default();
        for folder in ["proc", "sys", "dev", "tmp", "run", "etc", "root", OUT] {
            tree.put(folder, Node::Folder);
        }
        // Needed until devtmpfs is mounted, and by kernels without devtmpfs.
        for (path, major, minor) in
            [("dev/console", 5, 1), ("dev/null", 1, 3), ("dev/zero", 1, 5), ("dev/urandom", 1, 9), ("dev/kmsg", 1, 11)]
        {
            tree.put(path, Node::Device(major, minor));
        }
        let job = Job {
            command: vec![PUNCTUAL.to_owned()],
            environment: [("PATH", "/bin:/sbin:/usr/bin:/usr/sbin"), ("HOME", "/root"), ("NO_COLOR", "1")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            modules: Vec::new(),
        };
        let mut initramfs = Self { arch, tree, job };
        initramfs.static_program(PUNCTUAL, punctual)?;
        Ok(initramfs)
    }

    /// Adds a static program at `path`.
    ///
    /// # Errors
    /// If it cannot be read, is not static, or has another architecture.
    pub fn static_program(&mut self, path: &str, from: &Path) -> Result<(), GuestError> {
        let bytes = read_regular(from, PROGRAM_BYTES_MAX).reading(from)?;
        let elf = Elf::new(&bytes);
        let (Some(elf), Some(arch)) = (elf, elf.and_then(Arch::of_elf)) else {
            return Err(GuestError::NotAProgram { path: from.to_owned() });
        };
        if arch != self.arch {
            return Err(GuestError::OtherArch { kernel: self.arch, path: from.to_owned() });
        }
        if elf.needs_linker() {
            return Err(GuestError::NotStatic { path: from.to_owned(), arch });
        }
        self.tree.program(path, bytes);
        Ok(())
    }

    /// Adds a program of this machine to `/bin`, with the shared libraries that `ldd` lists.
    ///
    /// # Errors
    /// If it is not installed, or its libraries cannot be found.
    pub fn host_program(&mut self, name: &str, package: &str) -> Result<(), GuestError> {
        let missing = || GuestError::Missing { program: name.to_owned(), package: package.to_owned() };
        let program = find_program(name).ok_or_else(missing)?;
        let listed = Command::new("ldd").arg(&program).output().reading(&program)?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
            self.tree.program(library, fs::read(library).reading(Path::new(library))?);
        }
        self.tree.program(&format!("/bin/{name}"), fs::read(&program).reading(&program)?);
        Ok(())
    }

    /// Adds a program of an unpacked Debian package to `/bin`, with the shared libraries that its dynamic linker lists.
    ///
    /// An already added C library is replaced, because a newer one also supports older programs.
    ///
    /// # Errors
    /// If the directory has no such program, or its libraries cannot be found.
    pub fn unpacked_program(&mut self, name: &str, folder: &Path) -> Result<(), GuestError> {
        let programs = ["usr/bin", "usr/sbin"].map(|of| folder.join(of).join(name));
        let program = programs.iter().find(|path| path.is_file()).unwrap_or(&programs[0]);
        let linker = folder.join("usr/lib64/ld-linux-x86-64.so.2");
        let mut list = Command::new(&linker);
        list.arg("--library-path").arg(folder.join("usr/lib/x86_64-linux-gnu")).arg("--list").arg(program);
        let listed = list.output().reading(&linker)?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for library in listed.split_whitespace().filter_map(|word| Path::new(word).strip_prefix(folder).ok()) {
            let path = library.strip_prefix("usr").unwrap_or(library);
            let from = folder.join(library);
            self.tree.program(&path.to_string_lossy(), fs::read(&from).reading(&from)?);
        }
        self.tree.program(&format!("/bin/{name}"), fs::read(program).reading(program)?);
        Ok(())
    }

    /// Adds a module after those already added.
    pub fn module(&mut self, name: &str, bytes: Vec<u8>) {
        let path = format!("/lib/modules/{name}.ko");
        if !self.tree.contains(&path) {
            self.tree.file(&path, bytes);
            self.job.modules.push(path);
        }
    }

    /// Adds a file at `path`.
    pub fn file(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.tree.file(path, bytes);
    }

    /// Adds an executable script at `path`.
    pub fn script(&mut self, path: &str, text: &str) {
        self.tree.program(path, text);
    }

    /// Sets the command of the job.
    pub fn command(&mut self, command: impl IntoIterator<Item = impl Into<String>>) {
        self.job.command = command.into_iter().map(Into::into).collect();
    }

    /// The architecture.
    #[must_use]
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Encodes the archive. It is not compressed, because QEMU copies it faster than a guest could decompress it.
    #[must_use]
    pub fn to_archive(&self) -> Vec<u8> {
        let mut tree = self.tree.clone();
        tree.file(JOB, serde_json::to_vec(&self.job).expect("a job can be encoded as JSON"));
        tree.to_archive()
    }
}

/// The path of a program on this machine, if installed.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_programs_that_the_guest_cannot_run() {
        let refused = |arch, path: &str| Initramfs::new(arch, Path::new(path)).unwrap_err().to_string();
        let host = Arch::of_host().unwrap();
        let other = if host == Arch::X86_64 { Arch::Arm64 } else { Arch::X86_64 };
        let shell = refused(host, "/bin/sh");
        assert!(shell.contains("shared libraries") && shell.contains("`make dist`"), "{shell}");
        let wrong = refused(other, "/bin/sh");
        assert!(wrong.contains("--binary dist/punctual-"), "{wrong}");
        assert!(refused(host, "/etc/passwd").contains("is not a program"));
    }

    #[test]
    fn modules_load_once_in_the_order_of_addition() {
        let mut initramfs = Initramfs { arch: Arch::X86_64, tree: Tree::default(), job: Job::default() };
        for name in ["b", "a", "b"] {
            initramfs.module(name, vec![1]);
        }
        let tree = Tree::from_archive(&initramfs.to_archive()).unwrap();
        let job: Job = serde_json::from_slice(tree.read(JOB).unwrap()).unwrap();
        assert_eq!(job.modules, ["/lib/modules/b.ko", "/lib/modules/a.ko"]);
    }
}
