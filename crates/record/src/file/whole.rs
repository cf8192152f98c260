//! Reads whole files, up to a size.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
};

use rustix::fs::OFlags;

/// Reads all bytes of a file, a pipe or a terminal.
///
/// `max_bytes` is the size that the caller can use; without it, an endless pipe or a huge file would use up all memory.
///
/// # Errors
/// If the file cannot be read, is a device, or is larger than `max_bytes`.
pub fn read_bytes(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_block_device() || (kind.is_char_device() && !file.is_terminal()) {
        return Err(io::Error::other("a device, not a regular file, pipe or terminal"));
    }
    read_open(file, max_bytes)
}

/// Reads all bytes of a regular file. Pipes are not opened for reading, because that could wait forever.
///
/// # Errors
/// If the file cannot be read, is not a regular file, or is larger than `max_bytes`.
pub fn read_regular(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(nonblocking).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(not_regular());
    }
    read_open(file, max_bytes)
}

/// Checks that a path does not lead to a pipe, a device or a folder. Reading it reports a missing file.
///
/// # Errors
/// If it does.
pub fn check_regular(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(not_regular()),
        _ => Ok(()),
    }
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file: choose another one")
}

fn read_open(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let too_large = || {
        let limit = format!("{} MiB", max_bytes >> 20);
        io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {limit}, the most that is read"))
    };
    if file.metadata()?.len() > max_bytes {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    match file.take(max_bytes + 1).read_to_end(&mut bytes)? as u64 {
        len if len <= max_bytes => Ok(bytes),
        _ => Err(too_large()),
    }
}

/// The largest file of settings that is read, bytes: a profile, a reference or a campaign.
pub const SETTINGS_BYTES_MAX: u64 = 4 << 20;

/// Reads a text as [`read_bytes`] does.
///
/// # Errors
/// Those of [`read_bytes`], and if the text is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    String::from_utf8(read_bytes(path, max_bytes)?).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(path: &Path, max_bytes: u64) -> String {
        read_bytes(path, max_bytes).unwrap_err().to_string()
    }

    #[test]
    fn reads_files_up_to_the_limit() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        assert_eq!(read_bytes(&path, 1 << 20).unwrap(), [7; 1 << 20]);
        fs::write(&path, vec![7; (1 << 20) + 1]).unwrap();
        assert_eq!(error(&path, 1 << 20), "it is larger than 1 MiB, the most that is read");
        // Sparse, so it takes no space.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(error(&path, 1 << 20), "it is larger than 1 MiB, the most that is read");
    }

    #[test]
    fn an_endless_pipe_is_read_up_to_the_limit() {
        let (reader, mut writer) = io::pipe().unwrap();
        let endless = std::thread::spawn(move || while io::Write::write_all(&mut writer, &[0; 4096]).is_ok() {});
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(error(Path::new(&path), 1 << 20), "it is larger than 1 MiB, the most that is read");
        drop(reader);
        endless.join().unwrap();
    }

    #[test]
    fn a_pipe_without_a_writer_is_not_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let pipe = scratch.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for path in [&pipe, Path::new("/dev/zero"), scratch.path()] {
            let errors = [read_regular(path, 1).map(drop), check_regular(path)];
            assert!(errors.iter().all(|error| error.as_ref().unwrap_err().to_string().contains("not a regular file")));
        }
        fs::write(scratch.path().join("a"), "ab").unwrap();
        assert_eq!(read_regular(&scratch.path().join("a"), 2).unwrap(), b"ab");
        assert!(
            read_regular(&scratch.path().join("a"), 1).is_err() && check_regular(&scratch.path().join("b")).is_ok()
        );
    }

    #[test]
    fn rejects_devices_and_texts_that_are_not_utf_8() {
        for device in ["/dev/zero", "/dev/null"] {
            assert_eq!(error(Path::new(device), 1), "a device, not a regular file, pipe or terminal");
        }
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path, 1).unwrap_err().to_string(), "it is not UTF-8 text");
    }
}
