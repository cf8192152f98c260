//! Writes trace files of version 6, which all versions of trace-cmd read.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, ErrorKind, Write},
    path::Path,
};

use super::{
    error::DatError,
    sections::{MAGIC, option},
};
use crate::event::Comm;

/// The content of a trace file, as the kernel returned it.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Size of a page with its header, bytes.
    pub(crate) page_size: u32,
    /// `events/header_page`.
    pub(crate) header_page: String,
    /// `events/header_event`.
    pub(crate) header_event: String,
    /// The formats of the system `ftrace`.
    pub(crate) ftrace_formats: Vec<String>,
    /// The formats of other events, by system.
    pub(crate) formats: BTreeMap<String, Vec<String>>,
    /// `/proc/kallsyms`.
    pub(crate) kallsyms: String,
    /// `printk_formats`.
    pub(crate) printk_formats: String,
    /// Names of threads, by thread id.
    pub(crate) threads: BTreeMap<u32, Comm>,
    /// `trace_clock`: all clocks, with the clock in use in brackets.
    pub(crate) clocks: String,
    /// Output of `uname`.
    pub(crate) uname: String,
    /// Whole pages, by CPU.
    pub(crate) pages: BTreeMap<u32, Vec<u8>>,
}

/// Size of an entry in the CPU table: offset and size of the pages.
const TABLE_ENTRY: usize = 8 + 8;

impl Snapshot {
    /// Writes the file, and replaces an existing one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), DatError> {
        self.write_to(path).map_err(|source| DatError::Unwritable { path: path.to_owned(), source })
    }

    fn write_to(&self, path: &Path) -> io::Result<()> {
        let head = self.head()?;
        let clock = self.clock();
        // The table has an entry for each CPU up to the last traced one.
        let cpus = self.cpus();
        let head_end = head.len() + cpus as usize * TABLE_ENTRY + 8 + clock.len();
        let page_size = self.page_size.max(1) as usize;
        let mut offset = head_end.next_multiple_of(page_size);
        let padding = vec![0; offset - head_end];
        let mut file = BufWriter::new(record::file::create(path)?);
        file.write_all(&head)?;
        for cpu in 0..cpus {
            let size = self.pages.get(&cpu).map_or(0, Vec::len);
            file.write_all(&(offset as u64).to_le_bytes())?;
            file.write_all(&(size as u64).to_le_bytes())?;
            offset += size.next_multiple_of(page_size);
        }
        file.write_all(&long_text(&clock))?;
        file.write_all(&padding)?;
        for pages in self.pages.values() {
            file.write_all(pages)?;
            file.write_all(&vec![0; pages.len().next_multiple_of(page_size) - pages.len()])?;
        }
        file.into_inner()?.sync_all()
    }

    /// The sections before the CPU table.
    fn head(&self) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        head.extend_from_slice(MAGIC);
        // Version 6, little-endian, a long of 8 bytes.
        head.extend_from_slice(b"6\0\0\x08");
        head.extend_from_slice(&self.page_size.to_le_bytes());
        head.extend_from_slice(b"header_page\0");
        head.extend_from_slice(&long_text(&self.header_page));
        head.extend_from_slice(b"header_event\0");
        head.extend_from_slice(&long_text(&self.header_event));
        head.extend_from_slice(&formats(&self.ftrace_formats)?);
        head.extend_from_slice(&length(self.formats.len())?);
        for (system, texts) in &self.formats {
            head.extend_from_slice(format!("{system}\0").as_bytes());
            head.extend_from_slice(&formats(texts)?);
        }
        head.extend_from_slice(&short_text(&self.kallsyms)?);
        head.extend_from_slice(&short_text(&self.printk_formats)?);
        let threads: String = self.threads.iter().map(|(pid, comm)| format!("{pid} {comm}\n")).collect();
        head.extend_from_slice(&long_text(&threads));
        head.extend_from_slice(&self.cpus().to_le_bytes());
        head.extend_from_slice(b"options  \0");
        head.extend_from_slice(&option(option::TRACE_CLOCK, format!("{}\0", self.clocks).as_bytes())?);
        head.extend_from_slice(&option(option::UNAME, format!("{}\0", self.uname).as_bytes())?);
        head.extend_from_slice(&option(option::CPU_COUNT, &self.cpus().to_le_bytes())?);
        head.extend_from_slice(&0_u16.to_le_bytes());
        head.extend_from_slice(b"flyrecord\0");
        Ok(head)
    }

    fn cpus(&self) -> u32 {
        self.pages.last_key_value().map_or(0, |(cpu, _)| cpu + 1)
    }

    /// The clock in use, in brackets.
    fn clock(&self) -> String {
        let clock = self.clocks.split_whitespace().find(|clock| clock.starts_with('['));
        clock.unwrap_or("[local]").to_owned()
    }
}

fn formats(texts: &[String]) -> io::Result<Vec<u8>> {
    let mut bytes = length(texts.len())?.to_vec();
    texts.iter().for_each(|text| bytes.extend_from_slice(&long_text(text)));
    Ok(bytes)
}

/// The text, preceded by its length in 8 bytes.
fn long_text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// The text, preceded by its length in 4 bytes.
fn short_text(text: &str) -> io::Result<Vec<u8>> {
    Ok([&length(text.len())?, text.as_bytes()].concat())
}

fn option(number: u16, data: &[u8]) -> io::Result<Vec<u8>> {
    Ok([&number.to_le_bytes(), &length(data.len())?[..], data].concat())
}

/// A length in 4 bytes. Fails above 4 GiB, which the format cannot represent.
fn length(length: usize) -> io::Result<[u8; 4]> {
    u32::try_from(length).map(u32::to_le_bytes).map_err(|_| ErrorKind::FileTooLarge.into())
}
