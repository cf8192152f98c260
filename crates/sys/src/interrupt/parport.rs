//! Parallel ports: `include/uapi/linux/ppdev.h`. The port raises an interrupt when the level of its input ACK rises. A wire
//! from its output STROBE makes that edge.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use super::request::{Request, command, exchange};

/// Requests without an argument.
const CLAIM: u32 = 0x708b;
const EXCLUSIVE: u32 = 0x708f;
/// The bit of the control register that drives STROBE, inverted.
const STROBE: u8 = 0x01;

/// A port that only this program uses. Its descriptor is ready to be read when an interrupt has come.
#[derive(Debug)]
pub struct Port {
    file: File,
}

impl Port {
    /// Takes a port, `/dev/parportN`, with its interrupt on and STROBE low.
    ///
    /// # Errors
    /// ENOENT, EACCES; ENXIO if another driver uses the port.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        // SAFETY: these requests take nothing.
        unsafe {
            command(&file, EXCLUSIVE, 0)?;
            command(&file, CLAIM, 0)?;
        }
        let port = Self { file };
        port.set_strobe(false)?;
        Ok(port)
    }

    /// Sets the level of STROBE.
    ///
    /// # Errors
    /// The error of the kernel.
    #[inline]
    pub fn set_strobe(&self, is_high: bool) -> io::Result<()> {
        exchange(&self.file, &mut Frob { mask: STROBE, value: if is_high { 0 } else { STROBE } })
    }

    /// Takes the number of interrupts since the last call, and lets the port raise the next one.
    ///
    /// # Errors
    /// The error of the kernel.
    #[inline]
    pub fn take(&self) -> io::Result<u32> {
        let mut count = Count(0);
        exchange(&self.file, &mut count)?;
        // Some ports hold their interrupt until the status is read.
        exchange(&self.file, &mut Status(0))?;
        Ok(count.0.unsigned_abs())
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A `ppdev_frob_struct`.
#[repr(C)]
struct Frob {
    mask: u8,
    value: u8,
}
#[repr(transparent)]
struct Count(libc::c_int);
#[repr(transparent)]
struct Status(u8);

// SAFETY: PPFCONTROL takes a pointer to a `ppdev_frob_struct`, which has this layout (tested below).
unsafe impl Request for Frob {
    const CODE: u32 = 0x4002_708e;
}
// SAFETY: PPCLRIRQ takes a pointer to an `int`.
unsafe impl Request for Count {
    const CODE: u32 = 0x8004_7093;
}
// SAFETY: PPRSTATUS takes a pointer to an `unsigned char`.
unsafe impl Request for Status {
    const CODE: u32 = 0x8001_7081;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_match_the_kernel_header() {
        assert_eq!((size_of::<Frob>(), std::mem::offset_of!(Frob, value)), (2, 1));
    }

    #[test]
    fn another_file_is_no_port() {
        assert_eq!(Port::open(Path::new("/dev/null")).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
