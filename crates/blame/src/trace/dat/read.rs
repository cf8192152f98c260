//! Reads a trace file.

use std::{
    fs::File,
    io::{BufRead, BufReader, Seek},
    path::{Path, PathBuf},
};

use super::{
    error::DatError,
    input::Input,
    sections::{CpuData, MAGIC},
    v6, v7,
};
use crate::{
    event::{Event, Names},
    trace::{
        decode::Decoder,
        format::{Format, PageLayout},
        ring::{Drained, PageReader},
        symbols::Symbols,
    },
};

/// A trace file with the events of several CPUs.
#[derive(Debug)]
pub struct Dat<R = BufReader<File>> {
    path: PathBuf,
    input: Input<R>,
    layout: PageLayout,
    decoder: Decoder,
    symbols: Symbols,
    clock: String,
    cpus: Vec<CpuData>,
}

/// Bytes read at a time, rounded up to whole pages.
const CHUNK: usize = 256 << 10;

impl Dat {
    /// Opens a file written by trace-cmd or [`Instance::write_dat`](crate::Instance::write_dat). If the file has
    /// several buffers, the one with the most data is read.
    ///
    /// # Errors
    /// The file is not a trace, is damaged or compressed, or is from a big-endian machine.
    pub fn open(path: &Path) -> Result<Self, DatError> {
        let file = File::open(path).map_err(|source| DatError::Unreadable { path: path.to_owned(), source })?;
        Self::read(BufReader::new(file), path)
    }
}

impl<R: BufRead + Seek> Dat<R> {
    /// Like [`Dat::open`], but from any reader; the path is only used in errors.
    ///
    /// # Errors
    /// The errors of [`Dat::open`].
    pub fn read(reader: R, path: &Path) -> Result<Self, DatError> {
        let damaged = |part| DatError::Damaged { path: path.to_owned(), part };
        let mut input = Input::new(reader).ok_or(damaged("begin"))?;
        input.expect(MAGIC).ok_or_else(|| DatError::Other { path: path.to_owned() })?;
        let unknown = |kind: String| DatError::Unknown { path: path.to_owned(), kind };
        let version = input.string().ok_or(damaged("version"))?;
        let endian = input.u8().ok_or(damaged("begin"))?;
        if endian != 0 {
            return Err(unknown("of a big-endian machine".to_owned()));
        }
        // Skips the size of a user-space long and of a page: the page description replaces both.
        input.take(1 + 4).ok_or(damaged("begin"))?;
        let mut sections = match version.as_str() {
            "6" => v6::parse(&mut input).map_err(damaged)?,
            "7" => {
                let compression = input.string().zip(input.string()).ok_or(damaged("begin"))?.0;
                let options_at = input.u64().ok_or(damaged("begin"))?;
                if compression != "none" {
                    return Err(DatError::Compressed { path: path.to_owned() });
                }
                v7::parse(&mut input, options_at).map_err(damaged)?
            }
            other => return Err(unknown(format!("of version {other}"))),
        };
        let symbols = Symbols::parse(&sections.kallsyms);
        sections.kernel.code_start = symbols.code_start();
        sections.kernel.timers = symbols.timers();
        let mut decoder = Decoder::new(sections.kernel);
        for (system, text) in &sections.formats {
            Format::parse(text).map(|format| decoder.add_format(system, &format));
        }
        let layout = sections.layout.ok_or(damaged("description of pages"))?;
        Ok(Self { path: path.to_owned(), input, layout, decoder, symbols, clock: sections.clock, cpus: sections.cpus })
    }

    /// The CPUs in the file, in the order of the file; some may have no events.
    pub fn cpus(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.cpus.iter().map(|data| data.cpu)
    }

    /// Name of the trace's clock: `mono` is CLOCK_MONOTONIC; empty if the file does not name it.
    #[must_use]
    pub fn clock(&self) -> &str {
        &self.clock
    }

    /// Appends all events of a CPU, oldest first; appends none if the file lacks this CPU.
    ///
    /// # Errors
    /// The file is truncated.
    pub fn events(&mut self, cpu: u32, events: &mut Vec<Event>) -> Result<Drained, DatError> {
        self.for_each_chunk(cpu, |piece| events.extend_from_slice(piece))
    }

    /// Like [`events`](Self::events), but in chunks, so that a long file needs little memory.
    ///
    /// # Errors
    /// The errors of [`events`](Self::events).
    pub fn for_each_chunk(&mut self, cpu: u32, mut each: impl FnMut(&[Event])) -> Result<Drained, DatError> {
        let mut drained = Drained::default();
        let Some(&data) = self.cpus.iter().find(|data| data.cpu == cpu) else { return Ok(drained) };
        let damaged = || DatError::Damaged { path: self.path.clone(), part: "pages" };
        let mut progress = PageReader::new(cpu);
        let mut bytes = vec![0; CHUNK.next_multiple_of(self.layout.size)];
        let mut events = Vec::new();
        let mut left = data.size;
        self.input.seek_to(data.offset).ok_or_else(damaged)?;
        while left > 0 {
            let length = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
            self.input.fill(&mut bytes[..length]).ok_or_else(damaged)?;
            for page in bytes[..length].chunks(self.layout.size) {
                progress.read(page, &self.layout, &mut self.decoder, &mut events, &mut drained);
            }
            each(&events);
            events.clear();
            left -= length as u64;
        }
        Ok(drained)
    }

    /// The names in the events read so far.
    #[must_use]
    pub fn names(&self) -> &Names {
        self.decoder.names()
    }

    /// Name of the traced kernel's function at an address; `None` if the file has no symbols for it.
    #[must_use]
    pub fn symbol(&self, address: u64) -> Option<&str> {
        self.symbols.name(address)
    }
}
