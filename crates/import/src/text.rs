//! The text of a file: UTF-8, UTF-16 as programs of Windows write it, or packed with gzip.

use std::{
    io::{self, Read},
    path::Path,
};

use flate2::read::MultiGzDecoder;
use record::file::read_bytes;

/// First bytes of packed files, and the program that unpacks them.
const PACKED: [(&[u8], &str); 4] =
    [(b"\xfd7zXZ\0", "xz -dk"), (b"\x28\xb5\x2f\xfd", "zstd -d"), (b"BZh", "bzip2 -dk"), (b"PK\x03\x04", "unzip")];
/// First bytes of a file of gzip.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Reads a text of at most so many bytes, also after unpacking.
///
/// # Errors
/// If the file cannot be read, is larger, or is no text.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<String> {
    let bytes = read_bytes(path, max_bytes)?;
    decoded(if bytes.starts_with(GZIP) { unpacked(&bytes, max_bytes)? } else { bytes })
}

/// The bytes of a file, unpacked while they are read if it is packed with gzip.
pub fn unpacking<'a>(mut file: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut begin = Vec::new();
    file.by_ref().take(GZIP.len() as u64).read_to_end(&mut begin)?;
    let is_packed = begin == GZIP;
    let whole = io::Cursor::new(begin).chain(file);
    Ok(if is_packed { Box::new(Unpacked(MultiGzDecoder::new(whole))) } else { Box::new(whole) })
}

/// The unpacked bytes of a file of gzip, with an error that has a remedy.
struct Unpacked<R>(MultiGzDecoder<R>);

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let damaged = |error: io::Error| match error.raw_os_error() {
            // The file cannot be read, or a signal came.
            Some(_) => error,
            None => io::Error::other(format!("its gzip data are cut or damaged, so copy it again ({error})")),
        };
        self.0.read(into).map_err(damaged)
    }
}

fn unpacked(bytes: &[u8], max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    Unpacked(MultiGzDecoder::new(bytes)).take(max_bytes + 1).read_to_end(&mut unpacked)?;
    if unpacked.len() as u64 > max_bytes {
        return Err(io::Error::other(format!("it is larger than {} MiB after unpacking", max_bytes >> 20)));
    }
    Ok(unpacked)
}

fn decoded(bytes: Vec<u8>) -> io::Result<String> {
    if let Some((_, program)) = PACKED.iter().find(|(begin, _)| bytes.starts_with(begin)) {
        return Err(io::Error::other(format!("it is packed: unpack it with `{program}`")));
    }
    let wide = |read: fn([u8; 2]) -> u16| -> io::Result<String> {
        let (units, rest) = bytes[2..].as_chunks::<2>();
        let text = char::decode_utf16(units.iter().copied().map(read)).collect::<Result<String, _>>();
        text.ok().filter(|_| rest.is_empty()).ok_or_else(|| io::Error::other("it is not whole UTF-16 text"))
    };
    match bytes {
        _ if bytes.starts_with(&[0xff, 0xfe]) => wide(u16::from_le_bytes),
        _ if bytes.starts_with(&[0xfe, 0xff]) => wide(u16::from_be_bytes),
        _ => String::from_utf8(bytes).map_err(|_| {
            io::Error::other(
                "it is not text in UTF-8 or UTF-16; convert text of old programs with `iconv -f CP1252 -t UTF-8`",
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn of(bytes: &[u8]) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        read(&path, 1 << 20).map_err(|error| error.to_string())
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn reads_utf_16_and_gzip() {
        let text = "latency (µs): 1 𝄞\r\n";
        let units = || std::iter::once('\u{feff}').chain(text.chars()).collect::<String>();
        let little: Vec<u8> = units().encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [text.as_bytes().to_vec(), little.clone(), big, packed(text.as_bytes()), packed(&little)] {
            assert_eq!(of(&bytes).as_deref(), Ok(text));
        }
        assert_eq!(of(&little[..little.len() - 1]).unwrap_err(), "it is not whole UTF-16 text");
    }

    #[test]
    fn other_files_have_a_remedy() {
        let whole = packed(b"12345678");
        for (bytes, expected) in [
            (&b"\xfd7zXZ\0..."[..], "it is packed: unpack it with `xz -dk`"),
            (&[0xb5, b's'], "it is not text in UTF-8 or UTF-16; convert"),
            (&whole[..whole.len() - 9], "its gzip data are cut or damaged, so copy it again"),
            (&packed(&vec![b'7'; 2 << 20]), "it is larger than 1 MiB after unpacking"),
        ] {
            let error = of(bytes).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
