//! Serial lines.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    },
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
    termios::{self, ControlModes, OptionalActions, QueueSelector},
};

use crate::error::JudgeError;

/// Longest time until a line accepts a command.
const WRITE_WITHIN: Duration = Duration::from_secs(1);

/// A serial line in raw mode: 8 data bits, no parity, 1 stop bit, no flow control. Only one program can open it.
#[derive(Debug)]
pub struct SerialLine {
    file: File,
}

impl SerialLine {
    /// Opens a line with this speed in bit/s, and discards the bytes that were received before.
    ///
    /// # Errors
    /// [`JudgeError::Line`], [`JudgeError::Speed`], and [`JudgeError::Console`].
    pub fn open(path: &str, baud: u32) -> Result<Self, JudgeError> {
        Self::open_unless_console(path, baud, &fs::read_to_string("/proc/consoles").unwrap_or_default())
    }

    /// Opens a line unless it is one of these consoles. To open a console at another speed would garble it, and the kernel
    /// would write its messages to the judge.
    fn open_unless_console(path: &str, baud: u32, consoles: &str) -> Result<Self, JudgeError> {
        if is_console(path, consoles) {
            return Err(JudgeError::Console { path: path.to_owned() });
        }
        let of_line = |source| JudgeError::Line { path: path.to_owned(), source };
        // Without waiting for a carrier, which a line of three wires does not have.
        let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
        let options = OpenOptions::new().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(path);
        let file = options.map_err(of_line)?;
        // Another program would take a part of the bytes: the lock is for those of root, which may open it in any case.
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(of_line(Errno::BUSY.into())),
            locked => locked.map_err(|error| of_line(error.into()))?,
        }
        let is_exclusive = set_raw(&file, baud).and_then(|()| termios::ioctl_tiocexcl(&file));
        is_exclusive.map_err(|error| JudgeError::Speed { path: path.to_owned(), baud, source: error.into() })?;
        Ok(Self { file })
    }

    /// Reads the received bytes; waits for at most `timeout`. Returns 0 if nothing came.
    ///
    /// # Errors
    /// The error of the kernel; ENODEV if the line is gone.
    pub fn read_within(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        if !self.wait_for(PollFlags::IN, timeout)? {
            return Ok(0);
        }
        match self.file.read(bytes) {
            // A line without a reader's end, such as an adapter that was unplugged.
            Ok(0) => Err(Errno::NODEV.into()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            other => other,
        }
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// The error of the kernel; `TimedOut` if the line does not accept the bytes for a second.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.wait_for(PollFlags::OUT, WRITE_WITHIN)? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait_for(&self, flags: PollFlags, timeout: Duration) -> io::Result<bool> {
        let mut watched = [PollFd::new(&self.file, flags)];
        let timeout = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match poll(&mut watched, Some(&timeout)) {
            Err(Errno::INTR) | Ok(0) => Ok(false),
            Ok(_) if watched[0].revents().intersects(flags) => Ok(true),
            Ok(_) => Err(Errno::NODEV.into()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for SerialLine {
    /// Lets other programs open the line, also if something else keeps it open.
    fn drop(&mut self) {
        // The line may be gone.
        let _ = termios::ioctl_tiocnxcl(&self.file);
    }
}

impl AsFd for SerialLine {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// True if the file, or the one that it is a link to, is one of these consoles.
fn is_console(path: &str, consoles: &str) -> bool {
    let Ok(real) = fs::canonicalize(path) else { return false };
    let name = real.strip_prefix("/dev").unwrap_or(&real);
    let device = fs::metadata(&real).ok().filter(|about| about.file_type().is_char_device());
    let device = device.map(|about| (rustix::fs::major(about.rdev()), rustix::fs::minor(about.rdev())));
    sys::console::is_console(consoles, &name.to_string_lossy(), device)
}

fn set_raw(file: &File, baud: u32) -> rustix::io::Result<()> {
    let mut settings = termios::tcgetattr(file)?;
    settings.make_raw();
    settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD | ControlModes::CS8;
    settings.control_modes -= ControlModes::CRTSCTS | ControlModes::CSTOPB | ControlModes::PARENB | ControlModes::HUPCL;
    settings.set_speed(baud)?;
    termios::tcsetattr(file, OptionalActions::Now, &settings)?;
    termios::tcflush(file, QueueSelector::IOFlush)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Outcome, SimulatedBoard};

    #[test]
    fn a_console_of_the_kernel_is_refused() {
        let board = SimulatedBoard::start(|_| Outcome::Pause).unwrap();
        let name = board.path().trim_start_matches("/dev/");
        let numbers = fs::metadata(board.path()).unwrap().rdev();
        let numbers = format!("{}:{}", rustix::fs::major(numbers), rustix::fs::minor(numbers));
        for consoles in [format!("{name} -W- (EC p) 0:0\n"), format!("ttyS9 -W- (EC p) {numbers}\n")] {
            let error = SerialLine::open_unless_console(board.path(), 115_200, &consoles).unwrap_err().to_string();
            let expected = format!("the kernel uses {} as a console: choose another line", board.path());
            assert!(error.starts_with(&expected), "{error}");
        }
        SerialLine::open_unless_console(board.path(), 115_200, "tty0 -WU (EC p) 4:7\n").unwrap();
    }
}
