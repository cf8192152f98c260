//! What a guest finds when it wakes: programs, modules, its job.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, Serialize};
use sys::elf::Elf;

use crate::{
    Arch, GuestError,
    cpio::{Node, Tree},
    error::At,
};

/// Where our program lies in the guest, which is also its first process.
pub const PUNCTUAL: &str = "/bin/punctual";
/// The folder whose files come back, and in which the command runs.
pub const OUT: &str = "/out";
/// Where the job stands.
pub(crate) const JOB: &str = "/lab/job.json";

/// What the guest is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Kernel modules by their paths in the guest, in the order in which to load them.
    pub modules: Vec<String>,
}

/// The first file system of a guest.
#[derive(Debug, Clone)]
pub struct Initramfs {
    arch: Arch,
    tree: Tree,
    job: Job,
}

impl Initramfs {
    /// A file system with our static program `punctual` for a kernel of `arch`. Its job is to run that program bare.
    ///
    /// # Errors
    /// When the program cannot be read, is not static, or is for another architecture.
    pub fn new(arch: Arch, punctual: &Path) -> Result<Self, GuestError> {
        let mut tree = Tree::default();
        for folder in ["proc", "sys", "dev", "tmp", "run", "etc", "root", OUT] {
            tree.put(folder, Node::Folder);
        }
        // For the first moments, and for kernels that make no device nodes of their own.
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

    /// Puts a static program at `path`.
    ///
    /// # Errors
    /// When it cannot be read, is not static, or is for another architecture.
    pub fn static_program(&mut self, path: &str, from: &Path) -> Result<(), GuestError> {
        let bytes = fs::read(from).reading(from)?;
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

    /// Puts a program of this machine into `/bin`, with the shared libraries that `ldd` lists.
    ///
    /// # Errors
    /// When it is not installed, or its libraries cannot be found.
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

    /// Puts a program of an unpacked Debian into `/bin`, with the shared libraries that the dynamic linker there lists.
    ///
    /// Its C library takes the place of this machine's, if that is there already; a newer one serves older programs.
    ///
    /// # Errors
    /// When the folder has no such program, or its libraries cannot be found.
    pub fn unpacked_program(&mut self, name: &str, folder: &Path) -> Result<(), GuestError> {
        let program = folder.join("usr/bin").join(name);
        let linker = folder.join("usr/lib64/ld-linux-x86-64.so.2");
        let mut list = Command::new(&linker);
        list.arg("--library-path").arg(folder.join("usr/lib/x86_64-linux-gnu")).arg("--list").arg(&program);
        let listed = list.output().reading(&linker)?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for library in listed.split_whitespace().filter_map(|word| Path::new(word).strip_prefix(folder).ok()) {
            let path = library.strip_prefix("usr").unwrap_or(library);
            let from = folder.join(library);
            self.tree.program(&path.to_string_lossy(), fs::read(&from).reading(&from)?);
        }
        self.tree.program(&format!("/bin/{name}"), fs::read(&program).reading(&program)?);
        Ok(())
    }

    /// Puts a module at the end of those to load.
    pub fn module(&mut self, name: &str, bytes: Vec<u8>) {
        let path = format!("/lib/modules/{name}.ko");
        if !self.tree.contains(&path) {
            self.tree.file(&path, bytes);
            self.job.modules.push(path);
        }
    }

    /// Puts a file at `path`.
    pub fn file(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.tree.file(path, bytes);
    }

    /// Has this command run instead.
    pub fn command(&mut self, command: impl IntoIterator<Item = impl Into<String>>) {
        self.job.command = command.into_iter().map(Into::into).collect();
    }

    /// What it is made for.
    #[must_use]
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The archive, not compressed: the emulator copies it faster than a guest could unpack it.
    #[must_use]
    pub fn to_archive(&self) -> Vec<u8> {
        let mut tree = self.tree.clone();
        tree.file(JOB, serde_json::to_vec(&self.job).expect("a job is JSON"));
        tree.to_archive()
    }
}

/// Where a program of this name lies on this machine, if it is installed.
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
    fn a_program_that_the_guest_could_not_run_is_refused_with_the_remedy() {
        let refused = |arch, path: &str| Initramfs::new(arch, Path::new(path)).unwrap_err().to_string();
        let host = Arch::of_host().unwrap();
        let other = if host == Arch::X86_64 { Arch::Arm64 } else { Arch::X86_64 };
        let shell = refused(host, "/bin/sh");
        assert!(shell.contains("shared libraries") && shell.contains("`make dist`"), "{shell}");
        let wrong = refused(other, "/bin/sh");
        assert!(wrong.contains("--binary dist/punctual-"), "{wrong}");
        assert!(refused(host, "/etc/passwd").contains("is no program"));
    }

    #[test]
    fn a_module_is_loaded_once_and_in_the_order_it_was_put_in() {
        let mut initramfs = Initramfs { arch: Arch::X86_64, tree: Tree::default(), job: Job::default() };
        for name in ["b", "a", "b"] {
            initramfs.module(name, vec![1]);
        }
        let tree = Tree::from_archive(&initramfs.to_archive()).unwrap();
        let job: Job = serde_json::from_slice(tree.read(JOB).unwrap()).unwrap();
        assert_eq!(job.modules, ["/lib/modules/b.ko", "/lib/modules/a.ko"]);
    }
}
