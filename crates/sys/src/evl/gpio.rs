//! Lines of GPIO chips that threads of the EVL core use without a call of Linux: version 1 of
//! `include/uapi/linux/gpio.h`, with the flag of `include/uapi/evl/devices/gpio.h` (`CONFIG_GPIOLIB_OOB`).
//!
//! This flag has the value that Linux 5.5 gave to a pull-up resistor. A kernel without the option therefore accepts the
//! request, and only [`is_out_of_band`](Input::is_out_of_band) finds the difference.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
};

use super::{
    EvlError,
    abi::{Form, READ, WRITE, request},
    in_band, level, out_of_band, read_out_of_band,
};
use crate::{
    convert::size,
    interrupt::gpio::{Active, Chip},
};

/// Events that the kernel keeps for a line until they are read (`DECLARE_KFIFO(events, ...)` in `gpiolib-cdev.c`). It
/// drops later ones, and does not report that.
pub const EVENTS_KEPT: usize = 16;

/// Flags of a line: `GPIOHANDLE_REQUEST_*`.
const INPUT: u32 = 1 << 0;
const OUTPUT: u32 = 1 << 1;
const ACTIVE_LOW: u32 = 1 << 2;
const OUT_OF_BAND: u32 = 1 << 5;
/// `GPIOEVENT_REQUEST_RISING_EDGE`.
const RISING: u32 = 1 << 0;
/// Length of a `gpioevent_data`, bytes: the stamp, the kind of the edge, and padding.
const EVENT: usize = 16;
/// Most lines of a request.
const LINES: usize = 64;
/// The user of the line in lists such as that of `gpioinfo`.
const CONSUMER: &[u8; 8] = b"punctual";

const GET_LINE_EVENT: u32 = request(READ | WRITE, 0xb4, 4, size::<EventRequest>());
const GET_LINE_HANDLE: u32 = request(READ | WRITE, 0xb4, 3, size::<HandleRequest>());
const SET_LINE_VALUES: u32 = request(READ | WRITE, 0xb4, 9, size::<HandleData>());
/// An unsupported request.
const UNSUPPORTED: u32 = request(0, 0xb4, 0, 0);

/// An error of the request for a line.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The EVL core is not available.
    #[error(transparent)]
    Evl(#[from] EvlError),
    /// The kernel refused the line.
    #[error(transparent)]
    Refused(#[from] io::Error),
}

/// An input line. Its edges wait for an attached thread.
#[derive(Debug)]
pub struct Input {
    file: OwnedFd,
    form: Form,
}

impl Input {
    /// Takes a line as an input. The edges that make it active are events.
    ///
    /// # Errors
    /// [`LineError`]: EBUSY if the line is in use, EINVAL if the kernel has no version 1 of the interface
    /// (`CONFIG_GPIO_CDEV_V1`) or the interrupt of the line cannot be out-of-band, ENODEV or ENXIO if it has none.
    pub fn open(chip: &Chip, offset: u32, active: Active) -> Result<Self, LineError> {
        let form = Form::of(level()?);
        let mut request = EventRequest {
            offset,
            handle_flags: INPUT | OUT_OF_BAND | flag(active),
            event_flags: RISING,
            consumer: consumer(),
            fd: -1,
        };
        in_band(chip.as_fd(), GET_LINE_EVENT, &mut request)?;
        // SAFETY: the request succeeded, so its descriptor is a new one of this process.
        Ok(Self { file: unsafe { OwnedFd::from_raw_fd(request.fd) }, form })
    }

    /// True if the core knows the line, so that [`read`](Self::read) waits out-of-band. Only on an attached thread.
    ///
    /// # Errors
    /// The error of the core; none is expected.
    pub fn is_out_of_band(&self) -> io::Result<bool> {
        is_out_of_band(self.form, self.file.as_fd())
    }

    /// Reads the stamp of the oldest edge, ns, which the kernel's handler took from CLOCK_MONOTONIC; waits for an edge
    /// if there is none. Only on an attached thread.
    ///
    /// # Errors
    /// EINTR if a [`Waker`](super::Waker) or a signal ended the wait, EBADF if the core does not know the line.
    #[inline]
    pub fn read(&self) -> io::Result<i64> {
        let mut event = [0; EVENT];
        if read_out_of_band(self.form, self.file.as_fd(), &mut event)? < EVENT {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let [stamp @ .., _, _, _, _, _, _, _, _] = event;
        Ok(i64::from_ne_bytes(stamp))
    }
}

/// An output line that an attached thread sets.
#[derive(Debug)]
pub struct Output {
    file: OwnedFd,
    form: Form,
}

impl Output {
    /// Takes a line as an output, which is inactive at first.
    ///
    /// # Errors
    /// [`LineError`]: EBUSY if the line is in use, EINVAL if the kernel has no version 1 of the interface.
    pub fn open(chip: &Chip, offset: u32, active: Active) -> Result<Self, LineError> {
        let form = Form::of(level()?);
        let mut request = HandleRequest {
            offsets: [0; LINES],
            flags: OUTPUT | OUT_OF_BAND | flag(active),
            values: [0; LINES],
            consumer: consumer(),
            lines: 1,
            fd: -1,
        };
        request.offsets[0] = offset;
        in_band(chip.as_fd(), GET_LINE_HANDLE, &mut request)?;
        // SAFETY: the request succeeded, so its descriptor is a new one of this process.
        Ok(Self { file: unsafe { OwnedFd::from_raw_fd(request.fd) }, form })
    }

    /// As [`Input::is_out_of_band`].
    ///
    /// # Errors
    /// The error of the core; none is expected.
    pub fn is_out_of_band(&self) -> io::Result<bool> {
        is_out_of_band(self.form, self.file.as_fd())
    }

    /// Sets the line to active or inactive. Only on an attached thread.
    ///
    /// # Errors
    /// The error of the driver; EBADF if the core does not know the line.
    #[inline]
    pub fn set(&self, active: bool) -> io::Result<()> {
        let mut data = HandleData { values: [0; LINES] };
        data.values[0] = active.into();
        out_of_band(self.form, self.file.as_fd(), SET_LINE_VALUES, &mut data)
    }
}

/// True if the core knows this file. It refuses calls for others with EBADF before their driver sees them.
fn is_out_of_band(form: Form, file: BorrowedFd<'_>) -> io::Result<bool> {
    match out_of_band(form, file, UNSUPPORTED, &mut ()).map_err(|error| error.raw_os_error()) {
        Ok(()) | Err(Some(libc::ENOTTY | libc::EINVAL)) => Ok(true),
        Err(Some(libc::EBADF)) => Ok(false),
        Err(Some(other)) => Err(io::Error::from_raw_os_error(other)),
        Err(None) => Err(io::ErrorKind::Other.into()),
    }
}

fn flag(active: Active) -> u32 {
    match active {
        Active::High => 0,
        Active::Low => ACTIVE_LOW,
    }
}

fn consumer() -> [u8; 32] {
    let mut consumer = [0; 32];
    consumer[..CONSUMER.len()].copy_from_slice(CONSUMER);
    consumer
}

/// `struct gpioevent_request`.
#[repr(C)]
struct EventRequest {
    offset: u32,
    handle_flags: u32,
    event_flags: u32,
    consumer: [u8; 32],
    fd: i32,
}

/// `struct gpiohandle_request`.
#[repr(C)]
struct HandleRequest {
    offsets: [u32; LINES],
    flags: u32,
    values: [u8; LINES],
    consumer: [u8; 32],
    lines: u32,
    fd: i32,
}

/// `struct gpiohandle_data`.
#[repr(C)]
struct HandleData {
    values: [u8; LINES],
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The expected values were computed by a C compiler from the kernel's header.
    #[test]
    fn requests_match_the_kernel_header() {
        assert_eq!([GET_LINE_EVENT, GET_LINE_HANDLE, SET_LINE_VALUES], [0xc030_b404, 0xc16c_b403, 0xc040_b409]);
        assert_eq!([offset_of!(EventRequest, consumer), offset_of!(EventRequest, fd)], [12, 44]);
        assert_eq!([offset_of!(HandleRequest, flags), offset_of!(HandleRequest, values)], [256, 260]);
        assert_eq!([offset_of!(HandleRequest, consumer), offset_of!(HandleRequest, fd)], [324, 360]);
        assert_eq!(offset_of!(HandleRequest, lines), 356);
    }
}
