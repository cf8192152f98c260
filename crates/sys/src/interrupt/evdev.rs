//! Input devices, such as keys, buttons and rotary encoders: `include/uapi/linux/input.h`. The kernel stamps each packet of
//! events when the driver reports it, or stores the stamp that the driver took in its handler.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use super::{
    records::{Records, bytes},
    request::{Request, exchange},
};

/// Length of an event, bytes.
const SIZE: usize = 24;
/// Events that one call reads: the kernel keeps at least so many.
const READ: usize = 64;
/// Longest name, bytes.
const NAME: usize = 128;
/// Type and codes of the events that end packets.
const SYN: u16 = 0;
const REPORT: u16 = 0;
const DROPPED: u16 = 3;

/// An input device. Its descriptor is ready to be read when a packet is complete.
#[derive(Debug)]
pub struct Device {
    file: File,
    records: Records<SIZE, READ>,
    /// Its name.
    pub name: String,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The end of a packet, with the packet's stamp, ns on CLOCK_MONOTONIC; its resolution is 1 us.
    Report(i64),
    /// The end of a packet that the kernel made itself: a repetition of a key that is held, or a part of a long packet.
    OfKernel,
    /// The kernel's buffer was full, and it dropped all packets in it. The next report is that of the newest packet.
    Dropped,
    /// A change of a key, an axis or another input.
    Input,
}

impl Device {
    /// Opens a device, `/dev/input/eventN`, whose stamps are then on CLOCK_MONOTONIC for this process.
    ///
    /// # Errors
    /// The error of the kernel: ENOENT, EACCES, ENODEV, or ENOTTY if it is no input device.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        exchange(&file, &mut ClockId(libc::CLOCK_MONOTONIC))?;
        let mut name = Name([0; NAME]);
        // ENOENT for a device without a name.
        let named = exchange(&file, &mut name);
        let name = if named.is_ok() { super::text(&name.0) } else { String::new() };
        Ok(Self { file, records: Records::new(), name })
    }

    /// True if the next event must be read from the kernel.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Reads events from the kernel; waits for a packet if there is none. Events that were not taken are lost.
    ///
    /// # Errors
    /// ENODEV if the device is gone.
    #[inline]
    pub fn read(&mut self) -> io::Result<()> {
        self.records.fill(&self.file, usize::MAX).map(drop)
    }

    /// Takes the oldest event that was read.
    #[inline]
    pub fn take(&mut self) -> Option<Event> {
        self.records.take().map(parse)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Parses an `input_event`.
#[inline]
fn parse(record: &[u8; SIZE]) -> Event {
    let [seconds, us] = [0, 8].map(|at| i64::from_ne_bytes(bytes(record, at)));
    let [kind, code] = [16, 18].map(|at| u16::from_ne_bytes(bytes(record, at)));
    match (kind, code, i32::from_ne_bytes(bytes(record, 20))) {
        (SYN, REPORT, 0) => {
            Event::Report(seconds.saturating_mul(1_000_000_000).saturating_add(us.saturating_mul(1000)))
        }
        // `drivers/input/input.c` sets the value to 1 for both.
        (SYN, REPORT, _) => Event::OfKernel,
        (SYN, DROPPED, _) => Event::Dropped,
        _ => Event::Input,
    }
}

#[repr(transparent)]
struct ClockId(libc::clockid_t);
#[repr(transparent)]
struct Name([u8; NAME]);

// SAFETY: EVIOCSCLOCKID takes a pointer to an `int`.
unsafe impl Request for ClockId {
    const CODE: u32 = 0x4004_45a0;
}
// SAFETY: EVIOCGNAME(128) takes a pointer to 128 bytes.
unsafe impl Request for Name {
    const CODE: u32 = 0x8080_4506;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(code: [u16; 2], value: i32) -> [u8; SIZE] {
        // The offsets were computed by a C compiler from the kernel's header.
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&12_i64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&345_678_i64.to_ne_bytes());
        bytes[16..18].copy_from_slice(&code[0].to_ne_bytes());
        bytes[18..20].copy_from_slice(&code[1].to_ne_bytes());
        bytes[20..].copy_from_slice(&value.to_ne_bytes());
        bytes
    }

    #[test]
    fn parses_events() {
        assert_eq!(size_of::<libc::input_event>(), SIZE);
        assert_eq!(parse(&event([0, 0], 0)), Event::Report(12_345_678_000));
        assert_eq!(parse(&event([0, 0], 1)), Event::OfKernel);
        assert_eq!(parse(&event([0, 3], 0)), Event::Dropped);
        assert_eq!(parse(&event([1, 30], 1)), Event::Input);
    }

    #[test]
    fn another_file_is_no_input_device() {
        assert_eq!(Device::open(Path::new("/dev/null")).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
