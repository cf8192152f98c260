//! External time stamps of PTP hardware clocks: `include/uapi/linux/ptp_clock.h`. A network card or a timer card stamps the
//! edges of one of its pins with its own clock.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    path::Path,
};

use super::{
    records::{Records, bytes},
    request::{Request, exchange},
};

/// Length of an event, bytes.
const SIZE: usize = 32;
/// Events that one call reads: the kernel returns no more.
const READ: usize = 30;
/// Events that the kernel keeps (`PTP_MAX_TIMESTAMPS`, one less than its ring); the oldest ones give way to further ones.
const EVENTS_KEPT: usize = 127;
/// Flags of a request: enable it, and the edges.
const ENABLE: u32 = 1 << 0;
const RISING: u32 = 1 << 1;
const FALLING: u32 = 1 << 2;
/// Flag of an event whose time is an offset.
const OFFSET: u32 = 1 << 4;

/// A clock with inputs for signals.
#[derive(Debug)]
pub struct Device {
    file: File,
    /// Number of its channels. A channel stamps one signal.
    pub channels: u32,
    /// Number of its pins; without any, each channel has its own input.
    pub pins: u32,
}

/// The function of a pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// None.
    None,
    /// Input of the channel with this number.
    Input(u32),
    /// Another one, such as an output: number of the function and of its channel.
    Other(u32, u32),
}

/// A pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Its number.
    pub number: u32,
    /// Its name; empty without one.
    pub name: String,
    /// Its function.
    pub function: Function,
}

impl Device {
    /// Opens a clock, `/dev/ptpN`.
    ///
    /// # Errors
    /// The error of the kernel: ENOENT, EACCES, or ENOTTY if it is no PTP clock.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let mut capabilities = Capabilities::default();
        exchange(&file, &mut capabilities)?;
        let count = |number: i32| u32::try_from(number).unwrap_or(0);
        Ok(Self { file, channels: count(capabilities.channels), pins: count(capabilities.pins) })
    }

    /// Reads the function of a pin.
    ///
    /// # Errors
    /// EINVAL if there is no such pin.
    pub fn pin(&self, number: u32) -> io::Result<Pin> {
        let mut description = GetPin(PinDescription { index: number, ..PinDescription::default() });
        exchange(&self.file, &mut description)?;
        let PinDescription { name, function, channel, .. } = description.0;
        let function = match function {
            0 => Function::None,
            1 => Function::Input(channel),
            other => Function::Other(other, channel),
        };
        Ok(Pin { number, name: super::text(&name), function })
    }

    /// Lets a channel stamp the rising edges of its input, or all edges if the driver offers nothing else. If a pin is
    /// given, it becomes this input until the drop.
    ///
    /// # Errors
    /// EINVAL if there is no such channel, EOPNOTSUPP if the pin cannot be its input, EBUSY, or ENOTTY before Linux 5.4.
    pub fn capture(self, channel: u32, pin: Option<&Pin>) -> io::Result<Stamps> {
        let before = pin.filter(|pin| pin.function != Function::Input(channel));
        if let Some(pin) = before {
            self.set(pin.number, Function::Input(channel))?;
        }
        // From here on, the drop puts the pin back.
        let before = before.map(|pin| (pin.number, pin.function));
        let mut stamps = Stamps { device: self, channel, before, records: Records::new(), all_edges: false };
        match stamps.request(ENABLE | RISING) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                stamps.all_edges = true;
                stamps.request(ENABLE | RISING | FALLING)?;
            }
            answer => answer?,
        }
        Ok(stamps)
    }

    fn set(&self, number: u32, function: Function) -> io::Result<()> {
        let (function, channel) = match function {
            Function::None => (0, 0),
            Function::Input(channel) => (1, channel),
            Function::Other(function, channel) => (function, channel),
        };
        let pin = PinDescription { index: number, function, channel, ..PinDescription::default() };
        exchange(&self.file, &mut SetPin(pin))
    }
}

/// A channel that stamps a signal until the drop. Its descriptor is ready to be read when a stamp has come.
#[derive(Debug)]
pub struct Stamps {
    device: Device,
    channel: u32,
    /// The pin that was changed, and its function before.
    before: Option<(u32, Function)>,
    records: Records<SIZE, READ>,
    /// True if it also stamps falling edges.
    pub all_edges: bool,
}

impl Stamps {
    /// True if the next stamp must be read from the kernel.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Reads stamps from the kernel; waits for one if there is none. Stamps that were not taken are lost. Returns true if
    /// the kernel's queue was full, so that an unknown number of stamps may be lost.
    ///
    /// # Errors
    /// ENODEV if the clock is gone.
    #[inline]
    pub fn read(&mut self) -> io::Result<bool> {
        self.records.fill(&self.device.file, EVENTS_KEPT)
    }

    /// True if the last call read as many stamps as it could, so that more may wait.
    #[inline]
    #[must_use]
    pub fn may_continue(&self) -> bool {
        self.records.may_continue()
    }

    /// Notes that no stamp waited, so that those to come do not add up with those before to a full queue.
    #[inline]
    pub fn set_drained(&mut self) {
        self.records.set_drained();
    }

    /// Takes the oldest stamp of this channel that was read, ns on the device's clock.
    #[inline]
    pub fn take(&mut self) -> Option<i64> {
        while let Some(record) = self.records.take() {
            let stamp = parse(record, self.channel);
            if stamp.is_some() {
                return stamp;
            }
        }
        None
    }

    /// Reads the device's clock, ns; 0 if the device is gone.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> i64 {
        // As `FD_TO_CLOCKID` in clock_getres(2).
        let clock = (!self.device.file.as_raw_fd() << 3) | 3;
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is live and writable; without such a clock, it stays zero.
        unsafe { libc::clock_gettime(clock, &raw mut now) };
        now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
    }

    fn request(&self, flags: u32) -> io::Result<()> {
        exchange(&self.device.file, &mut StampRequest { channel: self.channel, flags, reserved: [0; 2] })
    }
}

impl AsFd for Stamps {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.file.as_fd()
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        // If the clock is gone, so are its settings.
        let _ = self.request(0);
        if let Some((pin, function)) = self.before {
            let _ = self.device.set(pin, function);
        }
    }
}

/// Parses a `ptp_extts_event`; `None` if it is not a stamp of this channel.
#[inline]
fn parse(record: &[u8; SIZE], channel: u32) -> Option<i64> {
    let [ns, of_channel, flags] = [8, 16, 20].map(|at| u32::from_ne_bytes(bytes(record, at)));
    let seconds = i64::from_ne_bytes(bytes(record, 0));
    let is_stamp = of_channel == channel && flags & OFFSET == 0;
    is_stamp.then(|| seconds.saturating_mul(1_000_000_000).saturating_add(ns.into()))
}

/// A `ptp_clock_caps`.
#[repr(C)]
#[derive(Debug, Default)]
struct Capabilities {
    adjustment: i32,
    alarms: i32,
    channels: i32,
    outputs: i32,
    pps: i32,
    pins: i32,
    others: [i32; 14],
}

// SAFETY: PTP_CLOCK_GETCAPS takes a pointer to a `ptp_clock_caps`, which has this layout (tested below).
unsafe impl Request for Capabilities {
    const CODE: u32 = 0x8050_3d01;
}

/// A `ptp_pin_desc`.
#[repr(C)]
struct PinDescription {
    name: [u8; 64],
    index: u32,
    function: u32,
    channel: u32,
    reserved: [u32; 5],
}

impl Default for PinDescription {
    fn default() -> Self {
        Self { name: [0; 64], index: 0, function: 0, channel: 0, reserved: [0; 5] }
    }
}

#[repr(transparent)]
struct GetPin(PinDescription);
#[repr(transparent)]
struct SetPin(PinDescription);

// SAFETY: PTP_PIN_GETFUNC takes a pointer to a `ptp_pin_desc`, which has this layout (tested below).
unsafe impl Request for GetPin {
    const CODE: u32 = 0xc060_3d06;
}
// SAFETY: PTP_PIN_SETFUNC takes a pointer to a `ptp_pin_desc`, which has this layout (tested below).
unsafe impl Request for SetPin {
    const CODE: u32 = 0x4060_3d07;
}

/// A `ptp_extts_request`.
#[repr(C)]
struct StampRequest {
    channel: u32,
    flags: u32,
    reserved: [u32; 2],
}

// SAFETY: PTP_EXTTS_REQUEST2 takes a pointer to a `ptp_extts_request`, which has this layout (tested below).
unsafe impl Request for StampRequest {
    const CODE: u32 = 0x4010_3d0b;
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The expected values were computed by a C compiler from the kernel's header.
    #[test]
    fn layouts_match_the_kernel_header() {
        assert_eq!([size_of::<Capabilities>(), size_of::<PinDescription>(), size_of::<StampRequest>()], [80, 96, 16]);
        assert_eq!([offset_of!(Capabilities, channels), offset_of!(Capabilities, pins)], [8, 20]);
        let offsets = [
            offset_of!(PinDescription, index),
            offset_of!(PinDescription, function),
            offset_of!(PinDescription, channel),
        ];
        assert_eq!(offsets, [64, 68, 72]);
    }

    #[test]
    fn parses_stamps_of_its_channel() {
        let event = |channel: u32, flags: u32| {
            let mut bytes = [0; SIZE];
            bytes[..8].copy_from_slice(&12_i64.to_ne_bytes());
            bytes[8..12].copy_from_slice(&345_678_901_u32.to_ne_bytes());
            bytes[16..20].copy_from_slice(&channel.to_ne_bytes());
            bytes[20..24].copy_from_slice(&flags.to_ne_bytes());
            bytes
        };
        assert_eq!(parse(&event(1, 0), 1), Some(12_345_678_901));
        assert_eq!(parse(&event(1, 1), 1), Some(12_345_678_901), "newer kernels mark it as valid");
        assert_eq!((parse(&event(0, 0), 1), parse(&event(1, OFFSET), 1)), (None, None));
    }

    #[test]
    fn another_file_is_no_clock() {
        assert_eq!(Device::open(Path::new("/dev/null")).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
