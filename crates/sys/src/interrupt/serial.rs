//! Control lines of serial ports: `include/uapi/linux/serial.h` and `tty_ioctl(4)`. A change of an input raises an interrupt
//! of the port. A wire from an output makes that change.

use std::{
    fs::File,
    io,
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::Path,
};

use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
    termios::{ControlModes, OptionalActions, Termios, ioctl_tiocexcl, ioctl_tiocnxcl, tcgetattr, tcsetattr},
};

use super::request::{Request, command, exchange};

/// The request TIOCMIWAIT, which takes a number.
const WAIT_FOR_CHANGE: u32 = 0x545c;
/// Values in a `serial_icounter_struct`.
const COUNTERS: usize = 20;

/// An output of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Request to send: pin 7 of a connector with 9 pins.
    Rts,
    /// Data terminal ready: pin 4.
    Dtr,
}

/// An input of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Clear to send: pin 8.
    Cts,
    /// Data set ready: pin 6.
    Dsr,
}

/// A port with one used output and one used input. Only programs of root can open it meanwhile.
#[derive(Debug)]
pub struct Port {
    file: File,
    output: libc::c_int,
    input: Input,
    before: Termios,
}

impl Port {
    /// Opens a port, e.g. `/dev/ttyS0`, with its output inactive, and lets the changes of its inputs raise interrupts. The
    /// drop puts its settings back.
    ///
    /// # Errors
    /// ENOENT, EACCES; EBUSY if another program uses the port; EIO or ENOTTY for a port without hardware or control lines.
    pub fn open(path: &Path, output: Output, input: Input) -> io::Result<Self> {
        // Without waiting for a carrier.
        let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
        let file = File::options().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(Errno::BUSY.into()),
            locked => locked?,
        }
        let before = tcgetattr(&file)?;
        let output = match output {
            Output::Rts => libc::TIOCM_RTS,
            Output::Dtr => libc::TIOCM_DTR,
        };
        let port = Self { file, output, input, before };
        ioctl_tiocexcl(&port.file)?;
        let mut modes = port.before.clone();
        // Drivers watch the inputs of a port that is not local. With hardware flow control, they would set RTS.
        modes.control_modes -= ControlModes::CLOCAL | ControlModes::CRTSCTS;
        tcsetattr(&port.file, OptionalActions::Now, &modes)?;
        port.set(false)?;
        port.changes()?;
        Ok(port)
    }

    /// Sets the output.
    ///
    /// # Errors
    /// EIO if the port is gone.
    #[inline]
    pub fn set(&self, is_active: bool) -> io::Result<()> {
        match is_active {
            true => exchange(&self.file, &mut SetLines(self.output)),
            false => exchange(&self.file, &mut ClearLines(self.output)),
        }
    }

    /// True if the input is active.
    ///
    /// # Errors
    /// EIO if the port is gone.
    pub fn is_active(&self) -> io::Result<bool> {
        let mut lines = GetLines(0);
        exchange(&self.file, &mut lines)?;
        Ok(lines.0 & self.mask() != 0)
    }

    /// Waits for a change of the input, without a time limit. A change that comes before this call does not end it.
    ///
    /// # Errors
    /// EINTR after a signal, EIO if the port is gone.
    #[inline]
    pub fn wait(&self) -> io::Result<()> {
        // SAFETY: this request takes a number.
        unsafe { command(&self.file, WAIT_FOR_CHANGE, self.mask().unsigned_abs().into()) }
    }

    /// The changes of the input since the driver was loaded, modulo 2^32.
    ///
    /// # Errors
    /// ENOTTY if the driver does not count them, EIO if the port is gone.
    #[inline]
    pub fn changes(&self) -> io::Result<u32> {
        let mut counts = Counts([0; COUNTERS]);
        exchange(&self.file, &mut counts)?;
        let [cts, dsr, ..] = counts.0;
        Ok(match self.input {
            Input::Cts => cts.cast_unsigned(),
            Input::Dsr => dsr.cast_unsigned(),
        })
    }

    fn mask(&self) -> libc::c_int {
        match self.input {
            Input::Cts => libc::TIOCM_CTS,
            Input::Dsr => libc::TIOCM_DSR,
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // If the port is gone, so are its settings.
        let _ = tcsetattr(self.file.as_fd(), OptionalActions::Now, &self.before);
        let _ = ioctl_tiocnxcl(&self.file);
    }
}

#[repr(transparent)]
struct SetLines(libc::c_int);
#[repr(transparent)]
struct ClearLines(libc::c_int);
#[repr(transparent)]
struct GetLines(libc::c_int);
/// A `serial_icounter_struct`: changes of CTS, DSR, RI and DCD, then other counts.
#[repr(transparent)]
struct Counts([libc::c_int; COUNTERS]);

// SAFETY: TIOCMBIS takes a pointer to an `int`.
unsafe impl Request for SetLines {
    const CODE: u32 = 0x5416;
}
// SAFETY: TIOCMBIC takes a pointer to an `int`.
unsafe impl Request for ClearLines {
    const CODE: u32 = 0x5417;
}
// SAFETY: TIOCMGET takes a pointer to an `int`.
unsafe impl Request for GetLines {
    const CODE: u32 = 0x5415;
}
// SAFETY: TIOCGICOUNT takes a pointer to a `serial_icounter_struct`, which is 20 `int`.
unsafe impl Request for Counts {
    const CODE: u32 = 0x545d;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_is_no_port() {
        let open = |path: &str| Port::open(Path::new(path), Output::Rts, Input::Cts).unwrap_err().raw_os_error();
        assert_eq!((open("/dev/null"), open("/dev/ttyX")), (Some(libc::ENOTTY), Some(libc::ENOENT)));
    }
}
