//! Which program runs at the far end: the one that is installed there, where it is the same, or a copy.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sys::elf::{EM_AARCH64, EM_X86_64, Elf};

use crate::PairError;

/// A version and a build of punctual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The version.
    pub version: String,
    /// CRC-32 of the program, 8 hexadecimal digits.
    pub build: String,
}

/// What the other machine is, and has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct There {
    /// How it is called.
    pub host: String,
    /// Its architecture, as `uname -m`.
    pub arch: String,
    /// The punctual that is installed there.
    pub installed: Option<Identity>,
}

/// What is to run there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// What is installed there.
    Installed,
    /// A copy of this.
    Copy(Vec<u8>),
}

impl Identity {
    /// That of a program of this version.
    #[must_use]
    pub fn of(program: &[u8]) -> Self {
        let build = format!("{:08x}", crc32fast::hash(program));
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), build }
    }

    /// As `punctual __far --identify` says it: `0.1.0 1a2b3c4d`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (version, build) = text.trim().split_once(' ')?;
        Some(Self { version: version.to_owned(), build: build.to_owned() })
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.version, self.build)
    }
}

impl There {
    fn machine(&self) -> Option<u16> {
        match self.arch.as_str() {
            "x86_64" => Some(EM_X86_64),
            "aarch64" => Some(EM_AARCH64),
            _ => None,
        }
    }
}

/// Chooses: the file that was `asked` for, else `executable`, which is this program, or its sibling for the other
/// architecture, where they need no shared library. Nothing is copied that is installed there already.
///
/// # Errors
/// When the file asked for does not fit, or there is none that does.
pub fn choose(executable: &Path, asked: Option<&Path>, there: &There) -> Result<Choice, PairError> {
    let program = match asked {
        Some(path) => Some(named(path, there)?),
        None => {
            let sibling = executable.with_file_name(format!("punctual-{}", there.arch));
            [executable.to_owned(), sibling].into_iter().find_map(|path| fitting(&path, there))
        }
    };
    let host = &there.host;
    match (program, &there.installed) {
        (Some(program), Some(installed)) if *installed == Identity::of(&program) => Ok(Choice::Installed),
        (Some(program), _) => Ok(Choice::Copy(program)),
        (None, Some(installed)) if installed.version == env!("CARGO_PKG_VERSION") => Ok(Choice::Installed),
        (None, _) => Err(PairError::NoBinary { host: host.clone(), arch: there.arch.clone() }),
    }
}

/// The file that the user named, static or not.
fn named(path: &Path, there: &There) -> Result<Vec<u8>, PairError> {
    let program = fs::read(path).map_err(|source| PairError::Read { path: path.to_owned(), source })?;
    let machine = Elf::new(&program).and_then(|elf| elf.machine());
    if machine.is_none() || machine != there.machine() {
        let (host, arch, path) = (there.host.clone(), there.arch.clone(), PathBuf::from(path));
        return Err(PairError::WrongBinary { host, arch, path });
    }
    Ok(program)
}

/// A file that runs there whatever is installed.
fn fitting(path: &Path, there: &There) -> Option<Vec<u8>> {
    let program = fs::read(path).ok()?;
    let elf = Elf::new(&program)?;
    let fits = elf.machine().is_some() && elf.machine() == there.machine() && !elf.needs_linker();
    fits.then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a static program.
    fn program(machine: u8) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = machine;
        bytes
    }

    const X86_64: u8 = 62;
    const AARCH64: u8 = 183;

    fn there(arch: &str, installed: Option<Identity>) -> There {
        There { host: "board-b".to_owned(), arch: arch.to_owned(), installed }
    }

    #[test]
    fn what_fits_is_copied_unless_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (executable, sibling) = (folder.path().join("punctual-x86_64"), folder.path().join("punctual-aarch64"));
        fs::write(&executable, program(X86_64)).unwrap();
        let choose_for = |there: &There| choose(&executable, None, there);
        assert_eq!(choose_for(&there("x86_64", None)).unwrap(), Choice::Copy(program(X86_64)));
        let same = Identity::of(&program(X86_64));
        assert_eq!(choose_for(&there("x86_64", Some(same.clone()))).unwrap(), Choice::Installed);
        let other = Identity { build: "00000000".to_owned(), ..same };
        assert_eq!(choose_for(&there("x86_64", Some(other.clone()))).unwrap(), Choice::Copy(program(X86_64)));
        // Another architecture has another build; its version decides.
        assert_eq!(choose_for(&there("aarch64", Some(other.clone()))).unwrap(), Choice::Installed);
        let old = Identity { version: "0.0.1".to_owned(), ..other };
        let none = choose_for(&there("aarch64", Some(old))).unwrap_err().to_string();
        assert!(none.contains("dist/punctual-aarch64") && none.contains("board-b"), "{none}");
        assert!(choose_for(&there("armv7l", None)).unwrap_err().to_string().contains("armv7l"));
        fs::write(&sibling, program(AARCH64)).unwrap();
        assert_eq!(choose_for(&there("aarch64", None)).unwrap(), Choice::Copy(program(AARCH64)));
    }

    #[test]
    fn a_file_that_was_named_is_taken_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("mine");
        let choose = |arch: &str| choose(Path::new("/nowhere"), Some(&named), &there(arch, None));
        assert!(matches!(choose("x86_64"), Err(PairError::Read { .. })));
        fs::write(&named, program(AARCH64)).unwrap();
        assert!(matches!(choose("aarch64"), Ok(Choice::Copy(_))));
        let wrong = choose("x86_64").unwrap_err().to_string();
        assert!(wrong.contains("mine does not run on board-b, which is x86_64"), "{wrong}");
        fs::write(&named, "#!/bin/sh").unwrap();
        assert!(matches!(choose("x86_64"), Err(PairError::WrongBinary { .. })));
        assert!(matches!(choose("riscv64"), Err(PairError::WrongBinary { .. })));
    }

    #[test]
    fn an_identity_is_read_back() {
        let identity = Identity::of(b"123456789");
        assert_eq!(identity.build, "cbf43926", "the check value of CRC-32");
        assert_eq!(Identity::parse(&format!("{identity}\n")), Some(identity));
        assert_eq!(Identity::parse(""), None);
    }
}
