//! Sources of a pulse per second: `include/uapi/linux/pps.h`. The kernel stamps each pulse in its interrupt handler, or
//! stores the stamp of a capture register of the hardware.

use std::{fs::File, io, os::fd::AsFd, path::Path, time::Duration};

use super::request::{Request, exchange};

/// Capture the assert edge. Add an offset to its stamps. The source can wait for an event. Stamps are seconds and
/// nanoseconds.
const CAPTURE_ASSERT: i32 = 0x1;
const OFFSET_ASSERT: i32 = 0x10;
const CAN_WAIT: i32 = 0x100;
const FORMAT_TIMESPEC: i32 = 0x1000;
/// The version of the interface.
const VERSION: i32 = 1;

/// A source.
#[derive(Debug)]
pub struct Source {
    file: File,
    /// Number of the last pulse that was read.
    last: u32,
    /// The settings before `open` changed them; `None` if it did not.
    before: Option<Parameters>,
    /// The kernel adds this to each stamp, as another program asked it to, ns.
    offset_ns: i64,
}

/// A pulse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// Its time, ns on CLOCK_REALTIME.
    pub stamp_ns: i64,
    /// Pulses since the last one that was read, without this one.
    pub lost: u32,
}

impl Source {
    /// Opens a source, `/dev/ppsN`, and captures its assert edge.
    ///
    /// # Errors
    /// EACCES without rights (setting the edge takes CAP_SYS_TIME), ENOTTY if it is no source, and an error of kind
    /// `Unsupported` if it cannot wait or has no assert edge.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let mut capabilities = Capabilities(0);
        exchange(&file, &mut capabilities)?;
        let needed = CAPTURE_ASSERT | CAN_WAIT;
        if capabilities.0 & needed != needed {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut read = GetParameters(Parameters::default());
        exchange(&file, &mut read)?;
        let before = (read.0.mode & CAPTURE_ASSERT == 0).then_some(read.0);
        if before.is_some() {
            let mode = read.0.mode | CAPTURE_ASSERT | FORMAT_TIMESPEC;
            exchange(&file, &mut SetParameters(Parameters { version: VERSION, mode, ..read.0 }))?;
        }
        let offset_ns = if read.0.mode & OFFSET_ASSERT == 0 { 0 } else { read.0.assert_offset.total_ns() };
        let mut source = Self { file, last: 0, before, offset_ns };
        source.skip_old()?;
        Ok(source)
    }

    /// Skips the pulses until now: they are neither returned nor counted as lost.
    ///
    /// # Errors
    /// ENODEV if the source is gone.
    pub fn skip_old(&mut self) -> io::Result<()> {
        // Without a timeout, it returns the last pulse at once.
        let mut data = Data::default();
        exchange(&self.file, &mut data)?;
        self.last = data.assert_sequence;
        Ok(())
    }

    /// Waits for the next pulse; `None` if none came in this time, which the kernel rounds down to its ticks.
    ///
    /// # Errors
    /// ENODEV if the source is gone.
    #[inline]
    pub fn wait(&mut self, time: Duration) -> io::Result<Option<Pulse>> {
        let timeout = Time {
            seconds: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            ns: time.subsec_nanos().cast_signed(),
            flags: 0,
        };
        let mut data = Data { timeout, ..Data::default() };
        match exchange(self.file.as_fd(), &mut data) {
            Ok(()) => {}
            // A stop and its end interrupt the wait.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIMEDOUT | libc::EINTR)) => return Ok(None),
            Err(error) => return Err(error),
        }
        let new = data.assert_sequence.wrapping_sub(std::mem::replace(&mut self.last, data.assert_sequence));
        let stamp_ns = data.assert.total_ns().saturating_sub(self.offset_ns);
        // A clear edge ends the wait, too.
        Ok((new > 0).then(|| Pulse { stamp_ns, lost: new - 1 }))
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // If the source is gone, so are its settings.
            let _ = exchange(&self.file, &mut SetParameters(before));
        }
    }
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Time {
    seconds: i64,
    ns: i32,
    flags: u32,
}

impl Time {
    fn total_ns(self) -> i64 {
        self.seconds.saturating_mul(1_000_000_000).saturating_add(self.ns.into())
    }
}

/// A `pps_fdata`: the last pulse, and the longest wait for the next one.
#[repr(C)]
#[derive(Debug, Default)]
struct Data {
    assert_sequence: u32,
    clear_sequence: u32,
    assert: Time,
    clear: Time,
    current_mode: i32,
    timeout: Time,
}

// SAFETY: PPS_FETCH takes a pointer to a `pps_fdata`, which has this layout (tested below); the size in its number is that
// of a pointer.
unsafe impl Request for Data {
    const CODE: u32 = 0xc008_70a4;
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Parameters {
    version: i32,
    mode: i32,
    assert_offset: Time,
    clear_offset: Time,
}

#[repr(transparent)]
struct GetParameters(Parameters);
#[repr(transparent)]
struct SetParameters(Parameters);
#[repr(transparent)]
struct Capabilities(i32);

// SAFETY: PPS_GETPARAMS takes a pointer to a `pps_kparams`, which has this layout (tested below).
unsafe impl Request for GetParameters {
    const CODE: u32 = 0x8008_70a1;
}
// SAFETY: PPS_SETPARAMS takes a pointer to a `pps_kparams`, which has this layout (tested below).
unsafe impl Request for SetParameters {
    const CODE: u32 = 0x4008_70a2;
}
// SAFETY: PPS_GETCAP takes a pointer to an `int`.
unsafe impl Request for Capabilities {
    const CODE: u32 = 0x8008_70a3;
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The expected values were computed by a C compiler from the kernel's header.
    #[test]
    fn layouts_match_the_kernel_header() {
        assert_eq!([size_of::<Data>(), size_of::<Parameters>()], [64, 40]);
        assert_eq!([offset_of!(Data, assert), offset_of!(Data, clear)], [8, 24]);
        assert_eq!([offset_of!(Data, current_mode), offset_of!(Data, timeout)], [40, 48]);
        assert_eq!(offset_of!(Parameters, mode), 4);
    }

    #[test]
    fn another_file_is_no_source() {
        assert_eq!(Source::open(Path::new("/dev/null")).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
