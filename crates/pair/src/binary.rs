//! Selects the program for the far end: an identical installed one, or a copy of a local binary.

use std::path::{Path, PathBuf};

use record::file::read_bytes;
use sys::elf::{EM_AARCH64, EM_X86_64, Elf};

use crate::PairError;

/// The largest program that is copied to the far machine, bytes.
const BINARY_BYTES_MAX: u64 = 512 << 20;

/// The version and build of a punctual binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The version.
    pub version: String,
    /// CRC-32 of the binary, 8 hexadecimal digits.
    pub build: String,
}

/// Facts about the far machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarMachine {
    /// Its host name.
    pub host: String,
    /// Its architecture as printed by `uname -m`.
    pub arch: String,
    /// The installed punctual, if any.
    pub installed: Option<Identity>,
}

/// The program to run on the far machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The installed one.
    Installed,
    /// A copy of this binary.
    Copy(Program),
}

/// A binary to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its file.
    pub bytes: Vec<u8>,
    /// True if it starts only where its shared libraries are.
    pub needs_libraries: bool,
}

impl Identity {
    /// The identity of a binary of this version.
    #[must_use]
    pub fn of(program: &[u8]) -> Self {
        let build = format!("{:08x}", crc32fast::hash(program));
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), build }
    }

    /// Parses the output of `punctual __far --identify`, e.g. `0.1.0 1a2b3c4d`.
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

impl FarMachine {
    fn machine(&self) -> Option<u16> {
        match self.arch.as_str() {
            "x86_64" => Some(EM_X86_64),
            "aarch64" => Some(EM_AARCH64),
            _ => None,
        }
    }
}

/// Selects the program. Candidates are the `given` file, or else, in this order: this executable and its sibling for the
/// other architecture if they are static, an installed program of this version, and this executable with its shared
/// libraries, which the far machine may have, too. A binary that is already installed is not copied.
///
/// # Errors
/// If the given file is unsuitable, or there is no suitable program.
pub fn choose(executable: &Path, given: Option<&Path>, far: &FarMachine) -> Result<Choice, PairError> {
    let program = match given {
        Some(path) => Some(given_binary(path, far)?),
        None => {
            let sibling = executable.with_file_name(format!("punctual-{}", far.arch));
            let both = [executable.to_owned(), sibling];
            both.iter().filter_map(|path| binary(path, far)).find(|program| !program.needs_libraries)
        }
    };
    let is_this_version = |installed: &Identity| installed.version == env!("CARGO_PKG_VERSION");
    match (program, &far.installed) {
        (Some(program), Some(installed)) if *installed == Identity::of(&program.bytes) => Ok(Choice::Installed),
        (Some(program), _) => Ok(Choice::Copy(program)),
        (None, Some(installed)) if is_this_version(installed) => Ok(Choice::Installed),
        (None, _) => {
            let no_binary = || PairError::NoBinary { host: far.host.clone(), arch: far.arch.clone() };
            binary(executable, far).map(Choice::Copy).ok_or_else(no_binary)
        }
    }
}

/// Reads the file that the user gave.
fn given_binary(path: &Path, far: &FarMachine) -> Result<Program, PairError> {
    let bytes =
        read_bytes(path, BINARY_BYTES_MAX).map_err(|source| PairError::Read { path: path.to_owned(), source })?;
    program(bytes, far).ok_or_else(|| {
        let (host, arch, path) = (far.host.clone(), far.arch.clone(), PathBuf::from(path));
        PairError::WrongBinary { host, arch, path }
    })
}

/// Reads a binary for the architecture of the far machine; `None` if there is none.
fn binary(path: &Path, far: &FarMachine) -> Option<Program> {
    program(read_bytes(path, BINARY_BYTES_MAX).ok()?, far)
}

/// A binary for the architecture of the far machine; `None` if it is something else.
fn program(bytes: Vec<u8>, far: &FarMachine) -> Option<Program> {
    let elf = Elf::new(&bytes)?;
    let is_suitable = elf.machine().is_some() && elf.machine() == far.machine();
    let needs_libraries = elf.needs_linker();
    is_suitable.then_some(Program { bytes, needs_libraries })
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    /// The header of a static program.
    fn file(machine: u8) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = machine;
        bytes
    }

    fn copy(machine: u8) -> Choice {
        Choice::Copy(Program { bytes: file(machine), needs_libraries: false })
    }

    const X86_64: u8 = 62;
    const AARCH64: u8 = 183;

    fn far(arch: &str, installed: Option<Identity>) -> FarMachine {
        FarMachine { host: "board-b".to_owned(), arch: arch.to_owned(), installed }
    }

    #[test]
    fn copies_a_suitable_binary_unless_installed() {
        let folder = tempfile::tempdir().unwrap();
        let (executable, sibling) = (folder.path().join("punctual-x86_64"), folder.path().join("punctual-aarch64"));
        fs::write(&executable, file(X86_64)).unwrap();
        let choose_for = |far: &FarMachine| choose(&executable, None, far);
        assert_eq!(choose_for(&far("x86_64", None)).unwrap(), copy(X86_64));
        let same = Identity::of(&file(X86_64));
        assert_eq!(choose_for(&far("x86_64", Some(same.clone()))).unwrap(), Choice::Installed);
        let other = Identity { build: "00000000".to_owned(), ..same };
        assert_eq!(choose_for(&far("x86_64", Some(other.clone()))).unwrap(), copy(X86_64));
        // The build differs between architectures, so the version decides.
        assert_eq!(choose_for(&far("aarch64", Some(other.clone()))).unwrap(), Choice::Installed);
        let old = Identity { version: "0.0.1".to_owned(), ..other };
        let none = choose_for(&far("aarch64", Some(old))).unwrap_err().to_string();
        assert!(none.contains("dist/punctual-aarch64") && none.contains("board-b"), "{none}");
        let other = choose_for(&far("armv7l", None)).unwrap_err().to_string();
        assert!(other.contains("no punctual for armv7l") && !other.contains("make dist"), "{other}");
        fs::write(&sibling, file(AARCH64)).unwrap();
        assert_eq!(choose_for(&far("aarch64", None)).unwrap(), copy(AARCH64));
    }

    #[test]
    fn copies_a_binary_with_shared_libraries_if_there_is_no_other() {
        let own = env::current_exe().unwrap();
        let bytes = fs::read(&own).unwrap();
        let far = |installed| far(env::consts::ARCH, installed);
        let copy = Program { bytes: bytes.clone(), needs_libraries: true };
        assert_eq!(choose(&own, None, &far(None)).unwrap(), Choice::Copy(copy), "the test itself");
        let this = Identity { build: "00000000".to_owned(), ..Identity::of(&bytes) };
        assert_eq!(choose(&own, None, &far(Some(this.clone()))).unwrap(), Choice::Installed);
        let old = Identity { version: "0.0.1".to_owned(), ..this };
        assert!(matches!(choose(&own, None, &far(Some(old))).unwrap(), Choice::Copy(_)));
    }

    #[test]
    fn accepts_or_rejects_a_given_file() {
        let folder = tempfile::tempdir().unwrap();
        let given = folder.path().join("mine");
        let choose = |arch: &str| choose(Path::new("/nowhere"), Some(&given), &far(arch, None));
        assert!(matches!(choose("x86_64"), Err(PairError::Read { .. })));
        fs::write(&given, file(AARCH64)).unwrap();
        assert!(matches!(choose("aarch64"), Ok(Choice::Copy(_))));
        let wrong = choose("x86_64").unwrap_err().to_string();
        assert!(wrong.contains("mine does not run on board-b, which is x86_64"), "{wrong}");
        fs::write(&given, "#!/bin/sh").unwrap();
        assert!(matches!(choose("x86_64"), Err(PairError::WrongBinary { .. })));
        assert!(matches!(choose("riscv64"), Err(PairError::WrongBinary { .. })));
    }

    #[test]
    fn identities_round_trip() {
        let identity = Identity::of(b"123456789");
        assert_eq!(identity.build, "cbf43926", "the standard check value of CRC-32");
        assert_eq!(Identity::parse(&format!("{identity}\n")), Some(identity));
        assert_eq!(Identity::parse(""), None);
    }
}
