//! Writes pcapng files with one section, one interface and timestamps in ns. IETF draft-ietf-opsawg-pcapng.

use std::io::{self, Write};

use crate::convert;

const SECTION_BLOCK: u32 = 0x0a0d_0d0a;
const INTERFACE_BLOCK: u32 = 1;
const STATISTICS_BLOCK: u32 = 5;
const PACKET_BLOCK: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const ETHERNET: u16 = 1;
const INTERFACE: u32 = 0;

const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const ISB_OSDROP: u16 = 7;
const ISB_USRDELIV: u16 = 8;

/// Maximum length of a text option, bytes. The option length field has 16 bits.
const TEXT_MAX: usize = 1024;

/// Writes frames of one interface in the order of the calls.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    block: Vec<u8>,
    frames: u64,
    last_ns: u64,
}

impl<W: Write> Writer<W> {
    /// Starts a file for the Ethernet interface `interface`. `description` says at which point frames are captured.
    ///
    /// # Errors
    /// The system error.
    pub fn begin(to: W, interface: &str, description: &str) -> io::Result<Self> {
        let mut writer = Self { to, block: Vec::with_capacity(2048), frames: 0, last_ns: 0 };
        writer.start(SECTION_BLOCK);
        writer.u32(BYTE_ORDER);
        // Version 1.0; the section length is unknown.
        [1_u16.to_le_bytes(), 0_u16.to_le_bytes()].iter().for_each(|half| writer.block.extend(half));
        writer.block.extend((-1_i64).to_le_bytes());
        writer.option(SHB_USERAPPL, concat!("punctual ", env!("CARGO_PKG_VERSION")).as_bytes());
        writer.end_of_options()?;
        writer.start(INTERFACE_BLOCK);
        // No snapshot length: frames are not truncated.
        [ETHERNET.to_le_bytes(), [0; 2], [0; 2], [0; 2]].iter().for_each(|half| writer.block.extend(half));
        writer.option(IF_NAME, interface.as_bytes());
        writer.option(IF_DESCRIPTION, description.as_bytes());
        writer.option(IF_TSRESOL, &[9]);
        writer.end_of_options()?;
        Ok(writer)
    }

    /// Writes a frame with its timestamp in ns since 1970, its captured bytes and its length on the wire.
    ///
    /// # Errors
    /// The system error. The file can then end inside a frame.
    pub fn frame(&mut self, at_ns: u64, frame: &[u8], length: usize) -> io::Result<()> {
        self.start(PACKET_BLOCK);
        self.u32(INTERFACE);
        self.stamp(at_ns);
        self.u32(convert::length(frame.len()));
        self.u32(convert::length(length));
        self.block.extend(frame);
        (self.frames, self.last_ns) = (self.frames + 1, at_ns);
        self.finish()
    }

    /// Frames written so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Ends the file. `dropped` is the number of frames missing from it because the system dropped them.
    ///
    /// # Errors
    /// The system error.
    pub fn end(&mut self, dropped: u64) -> io::Result<()> {
        let (last_ns, frames) = (self.last_ns, self.frames);
        self.start(STATISTICS_BLOCK);
        self.u32(INTERFACE);
        self.stamp(last_ns);
        self.option(ISB_OSDROP, &dropped.to_le_bytes());
        self.option(ISB_USRDELIV, &frames.to_le_bytes());
        self.end_of_options()?;
        self.to.flush()
    }

    /// Starts a block. Its length is filled in by `finish`.
    fn start(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        self.u32(0);
    }

    fn u32(&mut self, value: u32) {
        self.block.extend(value.to_le_bytes());
    }

    fn stamp(&mut self, at_ns: u64) {
        self.u32((at_ns >> 32) as u32);
        self.u32((at_ns & 0xffff_ffff) as u32);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(TEXT_MAX)];
        self.block.extend(code.to_le_bytes());
        self.block.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn end_of_options(&mut self) -> io::Result<()> {
        self.u32(0);
        self.finish()
    }

    /// Writes the block with its length at both ends.
    fn finish(&mut self) -> io::Result<()> {
        self.pad();
        let length = convert::length(self.block.len() + size_of::<u32>());
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.u32(length);
        self.to.write_all(&self.block)
    }
}
