//! Lines of GPIO chips: `include/uapi/linux/gpio.h`, version 2 (Linux 5.10 and later).

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
    path::Path,
};

use super::{
    records::{Records, bytes},
    request::{Request, exchange},
    text,
};

/// Length of a name, bytes.
const NAME: usize = 32;
/// Flags of a line.
const USED: u64 = 1 << 0;
const ACTIVE_LOW: u64 = 1 << 1;
const INPUT: u64 = 1 << 2;
const OUTPUT: u64 = 1 << 3;
const RISING: u64 = 1 << 4;
/// Events that the kernel keeps for a line until they are read; more are lost. The kernel's default is 16.
pub const EVENTS_KEPT: u32 = 1024;
/// Length of an event, bytes.
const EVENT: usize = 48;
/// Events that one call reads.
const READ: usize = 16;

/// The active level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Active {
    /// High: a rising edge makes the line active.
    High,
    /// Low: a falling edge makes it active.
    Low,
}

/// A GPIO chip.
#[derive(Debug)]
pub struct Chip {
    file: File,
    /// Its label, e.g. the name of its driver.
    pub label: String,
    /// Number of its lines.
    pub lines: u32,
}

/// The kernel's description of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineInfo {
    /// Its name, often that of a pin; empty without one.
    pub name: String,
    /// The program or driver that uses it; `None` if it is free.
    pub user: Option<String>,
}

impl Chip {
    /// Opens a chip, `/dev/gpiochipN`.
    ///
    /// # Errors
    /// The error of the kernel: ENOENT, EACCES, or ENOTTY if it is no GPIO chip.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let mut info = ChipInfo { name: [0; NAME], label: [0; NAME], lines: 0 };
        exchange(&file, &mut info)?;
        Ok(Self { file, label: text(&info.label), lines: info.lines })
    }

    /// Describes a line.
    ///
    /// # Errors
    /// EINVAL if there is no such line.
    pub fn line(&self, offset: u32) -> io::Result<LineInfo> {
        let mut info = RawLineInfo {
            name: [0; NAME],
            consumer: [0; NAME],
            offset,
            num_attrs: 0,
            flags: 0,
            attrs: [[0; 2]; 10],
            padding: [0; 4],
        };
        exchange(&self.file, &mut info)?;
        Ok(LineInfo { name: text(&info.name), user: (info.flags & USED != 0).then(|| text(&info.consumer)) })
    }

    /// Takes a line as an input. The edges that make it active are events.
    ///
    /// # Errors
    /// EBUSY if the line is in use, EINVAL if there is no such line, ENXIO if it cannot raise interrupts.
    pub fn watch(&self, offset: u32, active: Active) -> io::Result<Input> {
        self.take(offset, INPUT | RISING | active.flag()).map(|file| Input { file, events: Records::new() })
    }

    /// Takes a line as an output, which is inactive at first.
    ///
    /// # Errors
    /// EBUSY if the line is in use, EINVAL if there is no such line.
    pub fn drive(&self, offset: u32, active: Active) -> io::Result<Output> {
        self.take(offset, OUTPUT | active.flag()).map(|file| Output { file })
    }

    fn take(&self, offset: u32, flags: u64) -> io::Result<File> {
        let mut request = LineRequest {
            offsets: [0; 64],
            consumer: [0; NAME],
            config: LineConfig { flags, num_attrs: 0, padding: [0; 5], attrs: [[0; 3]; 10] },
            num_lines: 1,
            event_buffer_size: EVENTS_KEPT,
            padding: [0; 5],
            fd: -1,
        };
        request.offsets[0] = offset;
        request.consumer[..8].copy_from_slice(b"punctual");
        exchange(&self.file, &mut request)?;
        // SAFETY: the request succeeded, so its descriptor is a new one of this process.
        Ok(File::from(unsafe { OwnedFd::from_raw_fd(request.fd) }))
    }
}

impl AsFd for Chip {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Active {
    /// The flag of the kernel, which then calls a falling edge a rising one.
    fn flag(self) -> u64 {
        match self {
            Self::High => 0,
            Self::Low => ACTIVE_LOW,
        }
    }
}

/// An input line. Its descriptor is ready to be read when an edge has come.
#[derive(Debug)]
pub struct Input {
    file: File,
    /// Events that were read by [`fill`](Self::fill) and not yet taken.
    events: Records<EVENT, READ>,
}

/// An edge that made an input active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// When the kernel's interrupt handler noticed it, ns on CLOCK_MONOTONIC.
    pub stamp_ns: i64,
    /// Number of the edge since the line was taken, from 1; a lost one is missing.
    pub number: u32,
}

impl Input {
    /// Reads the oldest edge in the kernel; waits for one if there is none.
    ///
    /// # Errors
    /// ENODEV if the chip is gone.
    #[inline]
    pub fn read(&mut self) -> io::Result<Edge> {
        let mut event = [0; EVENT];
        self.file.read_exact(&mut event)?;
        Ok(parse(&event))
    }

    /// True if no edge is left that [`fill`](Self::fill) has read.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Reads several edges from the kernel; waits for one if there is none. Edges that were not taken are lost.
    ///
    /// # Errors
    /// EINTR if a signal interrupts the wait, ENODEV if the chip is gone. A wait does not notice that the chip is
    /// removed, and delays its removal: interrupt the wait with [`interrupt_thread`](crate::signal::interrupt_thread).
    #[inline]
    pub fn fill(&mut self) -> io::Result<()> {
        self.events.fill(&self.file, usize::MAX).map(drop)
    }

    /// Takes the oldest edge that [`fill`](Self::fill) has read.
    #[inline]
    pub fn take(&mut self) -> Option<Edge> {
        self.events.take().map(parse)
    }
}

/// Parses a `gpio_v2_line_event`.
#[inline]
fn parse(event: &[u8; EVENT]) -> Edge {
    Edge { stamp_ns: i64::from_ne_bytes(bytes(event, 0)), number: u32::from_ne_bytes(bytes(event, 20)) }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// An output line.
#[derive(Debug)]
pub struct Output {
    file: File,
}

impl Output {
    /// Sets the line to active or inactive.
    ///
    /// # Errors
    /// ENODEV if the chip is gone.
    #[inline]
    pub fn set(&self, active: bool) -> io::Result<()> {
        exchange(&self.file, &mut LineValues { bits: active.into(), mask: 1 })
    }
}

#[repr(C)]
struct ChipInfo {
    name: [u8; NAME],
    label: [u8; NAME],
    lines: u32,
}

// SAFETY: GPIO_GET_CHIPINFO_IOCTL takes a `gpiochip_info`, which has this layout (tested below); any bytes are valid.
unsafe impl Request for ChipInfo {
    const CODE: u32 = 0x8044_b401;
}

#[repr(C)]
struct RawLineInfo {
    name: [u8; NAME],
    consumer: [u8; NAME],
    offset: u32,
    num_attrs: u32,
    flags: u64,
    attrs: [[u64; 2]; 10],
    padding: [u32; 4],
}

// SAFETY: GPIO_V2_GET_LINEINFO_IOCTL takes a `gpio_v2_line_info`, which has this layout (tested below).
unsafe impl Request for RawLineInfo {
    const CODE: u32 = 0xc100_b405;
}

#[repr(C)]
struct LineConfig {
    flags: u64,
    num_attrs: u32,
    padding: [u32; 5],
    attrs: [[u64; 3]; 10],
}

#[repr(C)]
struct LineRequest {
    offsets: [u32; 64],
    consumer: [u8; NAME],
    config: LineConfig,
    num_lines: u32,
    event_buffer_size: u32,
    padding: [u32; 5],
    fd: i32,
}

// SAFETY: GPIO_V2_GET_LINE_IOCTL takes a `gpio_v2_line_request`, which has this layout (tested below).
unsafe impl Request for LineRequest {
    const CODE: u32 = 0xc250_b407;
}

#[repr(C)]
struct LineValues {
    bits: u64,
    mask: u64,
}

// SAFETY: GPIO_V2_LINE_SET_VALUES_IOCTL takes a `gpio_v2_line_values`, which has this layout (tested below).
unsafe impl Request for LineValues {
    const CODE: u32 = 0xc010_b40f;
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The expected values were computed by a C compiler from the kernel's header.
    #[test]
    fn layouts_match_the_kernel_header() {
        let sizes =
            [size_of::<ChipInfo>(), size_of::<RawLineInfo>(), size_of::<LineRequest>(), size_of::<LineValues>()];
        assert_eq!(sizes, [68, 256, 592, 16]);
        assert_eq!([offset_of!(RawLineInfo, offset), offset_of!(RawLineInfo, flags)], [64, 72]);
        assert_eq!([offset_of!(LineRequest, config), offset_of!(LineRequest, num_lines)], [288, 560]);
        assert_eq!([offset_of!(LineRequest, fd), offset_of!(LineConfig, attrs)], [588, 32]);
    }

    #[test]
    fn another_file_is_no_chip() {
        assert_eq!(Chip::open(Path::new("/dev/null")).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(text(b"GPIO17\0\0x"), "GPIO17");
    }
}
