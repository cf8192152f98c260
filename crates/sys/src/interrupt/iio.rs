//! Buffers of industrial I/O devices, such as converters and sensors: `Documentation/iio/iio_devbuf.rst` of the kernel. The
//! kernel stamps each sample in the handler of its trigger, or where the driver does.

use std::{
    fs::File,
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
};

use rustix::{fs::OFlags, io::Errno};

use super::records::bytes;

/// Length of a time stamp, bytes.
const STAMP: usize = 8;

/// The form of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Length of a sample, bytes.
    pub bytes: usize,
    /// Offset of its time stamp.
    pub stamp_at: usize,
}

/// The buffer of a device. Its descriptor is ready to be read when a sample has come.
#[derive(Debug)]
pub struct Device {
    file: File,
    layout: Layout,
    /// Samples that the kernel keeps.
    kept: usize,
    samples: Vec<u8>,
    /// The bytes from `next` to `filled` are still to be taken.
    next: usize,
    filled: usize,
    /// Samples that were read since the kernel had no more of them.
    backlog: usize,
}

impl Device {
    /// Opens a device, `/dev/iio:deviceN`, whose buffer keeps `kept` samples of this form. Only one program can do so.
    ///
    /// # Errors
    /// The error of the kernel: ENOENT, EACCES, EBUSY; EINVAL for a form without a time stamp.
    pub fn open(path: &Path, layout: Layout, kept: usize) -> io::Result<Self> {
        if layout.stamp_at + STAMP > layout.bytes {
            return Err(Errno::INVAL.into());
        }
        let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
        // More than the kernel keeps, so that a call empties its buffer.
        let samples = vec![0; layout.bytes * (kept + 1)];
        Ok(Self { file, layout, kept, samples, next: 0, filled: 0, backlog: 0 })
    }

    /// True if the next sample must be read from the kernel.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next == self.filled
    }

    /// Reads samples from the kernel. Samples that were not taken are lost. Returns true if the kernel's buffer was full, so
    /// that an unknown number of samples may be lost.
    ///
    /// # Errors
    /// ENODEV if the device is gone.
    #[inline]
    pub fn read(&mut self) -> io::Result<bool> {
        (self.next, self.filled) = (0, 0);
        let length = match (&self.file).read(&mut self.samples) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            read => read?,
        };
        let count = length / self.layout.bytes;
        self.filled = count * self.layout.bytes;
        let before = self.backlog;
        self.backlog += count;
        let is_full = before < self.kept && self.backlog >= self.kept;
        if count <= self.kept {
            self.backlog = 0;
        }
        Ok(is_full)
    }

    /// Checks that the device still exists.
    ///
    /// # Errors
    /// ENODEV if it is gone.
    pub fn exists(&self) -> io::Result<()> {
        // A reading of less than a sample returns nothing, unless the device is gone.
        match rustix::io::read(&self.file, &mut [0; 1]) {
            Err(Errno::NODEV) => Err(Errno::NODEV.into()),
            _ => Ok(()),
        }
    }

    /// Takes the stamp of the oldest sample that was read, ns on the clock of the device.
    #[inline]
    pub fn take(&mut self) -> Option<i64> {
        let sample = self.samples[..self.filled].get(self.next..self.next + self.layout.bytes)?;
        let stamp_ns = i64::from_ne_bytes(bytes(sample, self.layout.stamp_at));
        self.next += self.layout.bytes;
        Some(stamp_ns)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_taken_in_order_and_a_full_buffer_is_noticed() {
        let file = rustix::fs::memfd_create("samples", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let sample = |stamp_ns: i64| [&[7; 8][..], &stamp_ns.to_ne_bytes()].concat();
        let written: Vec<u8> = [10, 20, 30, 40].into_iter().flat_map(sample).collect();
        rustix::io::write(&file, &written).unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let open = |layout, kept| Device::open(Path::new(&path), layout, kept);
        let layout = Layout { bytes: 16, stamp_at: 8 };
        let mut device = open(layout, 8).unwrap();
        assert!(device.is_empty() && device.take().is_none());
        assert!(!device.read().unwrap());
        assert_eq!(std::iter::from_fn(|| device.take()).collect::<Vec<_>>(), [10, 20, 30, 40]);
        assert!(!device.read().unwrap() && device.is_empty() && device.exists().is_ok());
        let mut full = open(layout, 3).unwrap();
        assert!(full.read().unwrap());
        assert_eq!(open(Layout { bytes: 8, stamp_at: 8 }, 3).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
