//! Devices that count their interrupts for a program, without a stamp: real-time clocks (`/dev/rtcN`,
//! `include/uapi/linux/rtc.h`) and UIO devices (`/dev/uioN`, `Documentation/driver-api/uio-howto.rst`).

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use super::request::command;

/// `RTC_UIE_ON` and `RTC_UIE_OFF`.
const UPDATES_ON: u32 = 0x7003;
const UPDATES_OFF: u32 = 0x7004;

/// A device that counts its interrupts.
pub trait Counted: AsFd + Send {
    /// Interrupts since the last call; the device must be ready. A device that waits for the program is enabled again.
    ///
    /// # Errors
    /// The error of the kernel, if the device is gone.
    fn take(&mut self) -> io::Result<u64>;

    /// Lets the device make interrupts.
    ///
    /// # Errors
    /// The error of the kernel.
    fn start(&mut self) -> io::Result<()>;
}

/// A real-time clock, which makes an interrupt when its seconds change.
#[derive(Debug)]
pub struct RealTimeClock(File);

impl RealTimeClock {
    /// Opens a clock, `/dev/rtcN`, and starts its interrupts.
    ///
    /// # Errors
    /// EBUSY if another program uses it, EACCES without rights, and EINVAL or ENOTTY if it makes no such interrupts.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut clock = Self(File::open(path)?);
        clock.start()?;
        Ok(clock)
    }
}

impl Counted for RealTimeClock {
    #[inline]
    fn take(&mut self) -> io::Result<u64> {
        let mut bytes = [0; size_of::<libc::c_ulong>()];
        let length = self.0.read(&mut bytes)?;
        // Types of interrupts in the lowest byte, and above it the number of interrupts.
        #[expect(clippy::useless_conversion, reason = "on 32-bit machines, the type has 32 bits")]
        let count = (libc::c_ulong::from_ne_bytes(bytes) >> 8).into();
        Ok(if length == bytes.len() { count } else { 0 })
    }

    fn start(&mut self) -> io::Result<()> {
        // SAFETY: the request takes no argument.
        unsafe { command(&self.0, UPDATES_ON, 0) }
    }
}

impl AsFd for RealTimeClock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for RealTimeClock {
    fn drop(&mut self) {
        // SAFETY: the request takes no argument. If the clock is gone, so are its interrupts.
        let _ = unsafe { command(&self.0, UPDATES_OFF, 0) };
    }
}

/// A UIO device.
#[derive(Debug)]
pub struct UserDevice {
    file: File,
    /// The count of the last reading.
    count: i32,
    /// True if each interrupt is enabled again after it came.
    enables: bool,
}

impl UserDevice {
    /// Opens a device, `/dev/uioN`. If `enables`, and if the driver has a function for it, its interrupt is enabled now and
    /// after each one; otherwise another program does that.
    ///
    /// # Errors
    /// EACCES without rights, EIO if the device has no interrupt.
    pub fn open(path: &Path, enables: bool) -> io::Result<Self> {
        let file = File::options().read(true).write(enables).open(path)?;
        let mut device = Self { file, count: 0, enables };
        device.start()?;
        Ok(device)
    }

    #[inline]
    fn enable(&mut self) -> io::Result<()> {
        match self.file.write_all(&1_i32.to_ne_bytes()) {
            // The driver needs no enabling.
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                self.enables = false;
                Ok(())
            }
            written => written,
        }
    }
}

impl Counted for UserDevice {
    #[inline]
    fn take(&mut self) -> io::Result<u64> {
        let mut bytes = [0; size_of::<i32>()];
        self.file.read_exact(&mut bytes)?;
        let count = i32::from_ne_bytes(bytes);
        let new = count.wrapping_sub(std::mem::replace(&mut self.count, count));
        if self.enables {
            self.enable()?;
        }
        Ok(new.cast_unsigned().into())
    }

    fn start(&mut self) -> io::Result<()> {
        if self.enables { self.enable() } else { Ok(()) }
    }
}

impl AsFd for UserDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_is_no_clock() {
        let error = RealTimeClock::open(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn the_count_of_a_device_wraps_around() {
        let mut file: File = rustix::fs::memfd_create("uio", rustix::fs::MemfdFlags::CLOEXEC).unwrap().into();
        [i32::MAX, i32::MIN + 1].iter().for_each(|count| file.write_all(&count.to_ne_bytes()).unwrap());
        io::Seek::rewind(&mut file).unwrap();
        let mut device = UserDevice { file, count: i32::MAX - 3, enables: false };
        assert_eq!((device.take().unwrap(), device.take().unwrap()), (3, 2));
        assert!(device.take().is_err(), "the end of the file");
    }
}
