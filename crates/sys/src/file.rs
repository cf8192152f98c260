//! Reads whole files.

use std::{
    fs::File,
    io::{self, IsTerminal, Read},
    os::unix::fs::FileTypeExt,
    path::Path,
};

/// The size limit, bytes. Without it, an endless pipe would use up all memory.
const MAX_BYTES: u64 = 1 << 32;

/// Reads all bytes of a file, a pipe or a terminal.
///
/// # Errors
/// Fails if the file cannot be read, is a device, or is larger than 4 GiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_block_device() || (kind.is_char_device() && !file.is_terminal()) {
        return Err(io::Error::other("a device, not a regular file, pipe or terminal"));
    }
    let mut bytes = Vec::new();
    match file.take(MAX_BYTES + 1).read_to_end(&mut bytes)? as u64 {
        0..=MAX_BYTES => Ok(bytes),
        _ => Err(io::Error::other("the file is larger than 4 GiB: shorten it first")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_files_and_rejects_devices() {
        let own = Path::new(file!()).file_name().unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(own);
        assert_eq!(read(&path).unwrap(), include_bytes!("file.rs"));
        for device in ["/dev/zero", "/dev/null"] {
            assert_eq!(
                read(Path::new(device)).unwrap_err().to_string(),
                "a device, not a regular file, pipe or terminal"
            );
        }
    }
}
