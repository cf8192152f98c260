//! Kernel images: identified by their magic, and unpacked if that speeds up booting.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use flate2::read::GzDecoder;
use record::file::read_regular;
use sys::elf::Elf;

use crate::{Arch, GuestError, error::At, memfile::MemoryFile};

/// The largest kernel image, bytes; a vmlinux with debug information takes about 1 GiB.
const KERNEL_BYTES_MAX: u64 = 2 << 30;
/// The largest kernel or module after decompression, bytes; a kernel with all options takes about 200 MiB.
const UNPACKED_BYTES_MAX: u64 = 512 << 20;
/// The beginning of an arm64 Image, bytes.
const HEADER_BYTES: u64 = 64;

/// The file to boot: the given one, or an image extracted from it.
#[derive(Debug)]
enum BootFile {
    Original(PathBuf),
    InMemory(MemoryFile),
}

/// A bootable kernel.
#[derive(Debug)]
pub struct Image {
    /// Its architecture.
    pub arch: Arch,
    file: BootFile,
}

impl Image {
    /// Opens an x86 bzImage or vmlinux, or an arm64 Image, optionally compressed with gzip.
    ///
    /// A vmlinux inside a bzImage is extracted if possible, because QEMU starts it directly, in half the time that the
    /// bzImage setup code takes.
    ///
    /// # Errors
    /// If the file cannot be read or unpacked, or has none of these formats.
    pub fn open(path: &Path) -> Result<Self, GuestError> {
        Self::open_up_to(path, UNPACKED_BYTES_MAX)
    }

    fn open_up_to(path: &Path, unpacked_max: u64) -> Result<Self, GuestError> {
        // QEMU opens the file again, so a pipe cannot be used.
        let bytes = read_regular(path, KERNEL_BYTES_MAX).reading(path)?;
        let recognised = recognise(&bytes, unpacked_max);
        let recognised = recognised.map_err(|source| GuestError::Unpack { path: path.to_owned(), source })?;
        let (arch, unpacked) = match recognised {
            Some(Format::Vmlinux) => (Arch::X86_64, None),
            Some(Format::Arm64) => (Arch::Arm64, None),
            Some(Format::Arm64Gzip(image)) => (Arch::Arm64, Some(image)),
            Some(Format::BzImage) => (Arch::X86_64, vmlinux_in(&bytes)),
            None => return Err(GuestError::NotAKernel { path: path.to_owned() }),
        };
        let file = match unpacked {
            Some(image) => BootFile::InMemory(MemoryFile::new("kernel", &image)?),
            None => BootFile::Original(path.to_owned()),
        };
        Ok(Self { arch, file })
    }

    /// The file to boot.
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.file {
            BootFile::Original(path) => path,
            BootFile::InMemory(file) => file.path(),
        }
    }
}

enum Format {
    BzImage,
    Vmlinux,
    Arm64,
    Arm64Gzip(Vec<u8>),
}

/// The format of a kernel image; `None` for other files. An image may have up to `unpacked_max` bytes after
/// decompression.
fn recognise(bytes: &[u8], unpacked_max: u64) -> io::Result<Option<Format>> {
    let at = |offset: usize, magic: &[u8]| bytes.get(offset..offset + magic.len()) == Some(magic);
    // x86: Documentation/arch/x86/boot.rst; arm64: Documentation/arch/arm64/booting.rst.
    if at(0x202, b"HdrS") {
        return Ok(Some(Format::BzImage));
    }
    if is_arm64(bytes) {
        return Ok(Some(Format::Arm64));
    }
    if at(0, b"\x1f\x8b") {
        // The beginning shows whether it is a kernel, so that nothing else is unpacked.
        let mut head = Vec::new();
        let is_read = GzDecoder::new(bytes).take(HEADER_BYTES).read_to_end(&mut head).is_ok();
        if !is_read || !is_arm64(&head) {
            return Ok(None);
        }
        return gunzip(bytes, unpacked_max).map(|image| Some(Format::Arm64Gzip(image)));
    }
    let is_vmlinux = |elf: Elf| Arch::of_elf(elf) == Some(Arch::X86_64) && elf.has_pvh_entry();
    Ok(Elf::new(bytes).is_some_and(is_vmlinux).then_some(Format::Vmlinux))
}

fn is_arm64(bytes: &[u8]) -> bool {
    bytes.get(0x38..0x3c) == Some(b"ARM\x64")
}

/// Extracts the vmlinux from a bzImage; `None` if it cannot be extracted or has no PVH entry point.
#[must_use]
pub fn vmlinux_in(image: &[u8]) -> Option<Vec<u8>> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(image.get(at..)?.first_chunk().copied()?) as usize);
    let setup_sectors = match image.get(0x1f1)? {
        0 => 4,
        &count => usize::from(count),
    };
    let begin = (setup_sectors + 1) * 512 + u32_at(0x248)?;
    let payload = image.get(begin..begin.checked_add(u32_at(0x24c)?)?)?;
    // The kernel build appends the unpacked size, which is not part of the xz or zstd stream.
    let without_size = &payload[..payload.len().saturating_sub(4)];
    let vmlinux = match payload {
        [0x1f, 0x8b, ..] => gunzip(payload, UNPACKED_BYTES_MAX).ok(),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => unpack("xz", without_size),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => unpack("zstd", without_size),
        _ => None,
    }?;
    Elf::new(&vmlinux).is_some_and(|elf| elf.has_pvh_entry()).then_some(vmlinux)
}

fn gunzip(bytes: &[u8], max_bytes: u64) -> io::Result<Vec<u8>> {
    read_up_to(GzDecoder::new(bytes), max_bytes)
}

/// Reads data whose size the sender chooses.
pub(crate) fn read_up_to(from: impl Read, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match from.take(max_bytes + 1).read_to_end(&mut bytes)? as u64 {
        length if length <= max_bytes => Ok(bytes),
        _ => Err(io::Error::other(format!("it has more than {} MiB, the most that is unpacked", max_bytes >> 20))),
    }
}

fn unpack(program: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    decompress(program, bytes).ok()
}

/// Decompresses `bytes` with the program `xz` or `zstd`.
pub(crate) fn decompress(program: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
    decompress_up_to(program, bytes, UNPACKED_BYTES_MAX)
}

fn decompress_up_to(program: &str, bytes: &[u8], max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut child =
        Command::new(program).arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let unpacked = std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(stdin) = &mut stdin {
                // A program that stops reading has failed, which its exit status shows.
                let _ = stdin.write_all(bytes);
            }
            drop(stdin);
        });
        // Closing the pipe at the limit ends the program.
        stdout.map_or(Ok(Vec::new()), |stdout| read_up_to(stdout, max_bytes))
    });
    let status = child.wait()?;
    let unpacked = unpacked?;
    if status.success() { Ok(unpacked) } else { Err(io::Error::other(format!("{program} cannot decompress the data"))) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn opened(bytes: &[u8]) -> Result<Arch, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        Image::open(file.path()).map(|image| image.arch).map_err(|error| error.to_string())
    }

    fn with_magic(offset: usize, magic: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        bytes[offset..offset + magic.len()].copy_from_slice(magic);
        bytes
    }

    #[test]
    fn identifies_images_by_their_magic() {
        assert_eq!(opened(&with_magic(0x202, b"HdrS")), Ok(Arch::X86_64));
        let arm64 = with_magic(0x38, b"ARM\x64");
        assert_eq!(opened(&arm64), Ok(Arch::Arm64));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&arm64).unwrap();
        assert_eq!(opened(&gzip.finish().unwrap()), Ok(Arch::Arm64));
    }

    #[test]
    fn rejects_other_files() {
        for bytes in [&b""[..], b"\x1f\x8bnothing", b"#!/bin/sh", &[0; 0x400]] {
            let error = opened(bytes).unwrap_err();
            assert!(error.contains("is not a kernel image: give an x86 bzImage"), "{error}");
        }
        let error = Image::open(Path::new("/nowhere/bzImage")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /nowhere/bzImage"), "{error}");
    }

    #[test]
    fn unpacks_one_layer_up_to_a_limit() {
        let gzip = |bytes: &[u8]| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(bytes).unwrap();
            gzip.finish().unwrap()
        };
        let arm64 = with_magic(0x38, b"ARM\x64");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&gzip(&[&arm64[..], &[0; 1 << 20]].concat())).unwrap();
        let error = Image::open_up_to(file.path(), 1 << 20).unwrap_err().to_string();
        assert!(error.contains("more than 1 MiB, the most that is unpacked; give the unpacked image"), "{error}");
        assert!(opened(&gzip(&gzip(&arm64))).unwrap_err().contains("is not a kernel image"));
        assert_eq!(read_up_to(&[7; 9][..], 9).unwrap(), [7; 9]);
        assert!(read_up_to(io::repeat(7), 9).unwrap_err().to_string().contains("the most that is unpacked"));
        let endless = "exec cat /dev/zero";
        let mut script = tempfile::NamedTempFile::new().unwrap();
        writeln!(script, "#!/bin/sh\n{endless}").unwrap();
        let path = script.into_temp_path();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let error = decompress_up_to(&path.to_string_lossy(), b"", 1 << 20).unwrap_err().to_string();
        assert!(error.contains("more than 1 MiB"), "{error}");
    }

    #[test]
    fn rejects_a_payload_outside_the_image() {
        let mut image = with_magic(0x202, b"HdrS");
        image[0x248..0x250].copy_from_slice(&[0xff; 8]);
        assert!(vmlinux_in(&image).is_none());
    }
}
