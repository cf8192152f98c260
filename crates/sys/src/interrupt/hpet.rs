//! The HPET (high precision event timer) of PCs: `include/uapi/linux/hpet.h`, and registers as in the IA-PC HPET
//! specification, revision 1.0a.
//!
//! Its timers raise a periodic interrupt when its counter reaches a comparator. Counter and comparator can be read, so
//! the instant of each interrupt is known without any software.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
    ptr,
};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::request::{Request, command, exchange};

/// The registers that the kernel maps.
const REGISTERS: usize = 4096;
/// Offset of the length of a tick, fs.
const TICK: usize = 0x004;
/// Offset of the counter.
const COUNTER: usize = 0x0f0;
/// Offset of the first comparator, and of the next one from that.
const COMPARATOR: usize = 0x108;
const EACH: usize = 0x20;
/// The specification's longest tick, fs: 100 ns.
const TICK_MAX_FS: u32 = 100_000_000;
/// Requests without an argument, or with an integer.
const INTERRUPTS_ON: u32 = 0x6801;
const INTERRUPTS_OFF: u32 = 0x6802;
const PERIODIC: u32 = 0x6804;
const FREQUENCY: u32 = 0x4008_6806;

/// A timer of the HPET with its registers. Its interrupt is off until [`start`](Self::start), and again after the drop.
#[derive(Debug)]
pub struct Timer {
    file: File,
    registers: *const u32,
    comparator: usize,
    tick_fs: u64,
}

// SAFETY: the registers are mapped until the drop, and reading them needs no thread of its own.
unsafe impl Send for Timer {}

impl Timer {
    /// Takes a free timer of the HPET, `/dev/hpet`, and maps its registers.
    ///
    /// # Errors
    /// EBUSY if all timers are in use; EACCES without rights; EACCES or ENOSYS from the mapping if the kernel was started
    /// with `hpet_mmap=0` or built without the mapping; an error of kind `InvalidData` for registers that are those of no
    /// HPET.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut info = Info::default();
        exchange(&file, &mut info)?;
        // SAFETY: with a null address and without MAP_FIXED, the kernel picks a range that nothing else uses.
        let registers = unsafe { mmap(ptr::null_mut(), REGISTERS, ProtFlags::READ, MapFlags::SHARED, &file, 0) }?;
        let comparator = COMPARATOR + EACH * usize::from(info.timer);
        let mut timer = Self { file, registers: registers.cast(), comparator, tick_fs: 0 };
        let tick_fs = timer.read(TICK);
        if comparator >= REGISTERS || !(1..=TICK_MAX_FS).contains(&tick_fs) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        timer.tick_fs = tick_fs.into();
        Ok(timer)
    }

    /// Sets the frequency of the periodic interrupt, which is off.
    ///
    /// # Errors
    /// EACCES without CAP_SYS_RESOURCE above `/proc/sys/dev/hpet/max-user-freq`, ENXIO if the timer is not periodic.
    pub fn set_frequency(&self, frequency_hz: u32) -> io::Result<()> {
        // SAFETY: these requests take a number or nothing.
        unsafe {
            command(&self.file, FREQUENCY, frequency_hz.into())?;
            command(&self.file, PERIODIC, 0)
        }
    }

    /// Starts the interrupt.
    ///
    /// # Errors
    /// EBUSY if it was started already; otherwise the error of the kernel, which has no interrupt line for it.
    pub fn start(&self) -> io::Result<()> {
        // SAFETY: this request takes nothing.
        unsafe { command(&self.file, INTERRUPTS_ON, 0) }
    }

    /// Reads the number of interrupts since the last reading; waits for one if there is none.
    ///
    /// # Errors
    /// EIO without a frequency.
    #[inline]
    pub fn count(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        rustix::io::read(&self.file, &mut count)?;
        Ok(u64::from_ne_bytes(count))
    }

    /// Reads the counter, ticks modulo 2^32.
    #[inline]
    #[must_use]
    pub fn counter(&self) -> u32 {
        self.read(COUNTER)
    }

    /// Reads the comparator: the next expiry, ticks modulo 2^32.
    #[must_use]
    pub fn upcoming(&self) -> u32 {
        self.read(self.comparator)
    }

    /// The time of so many ticks, ns.
    #[inline]
    #[must_use]
    pub fn ns(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * u128::from(self.tick_fs) / 1_000_000;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// The period of a frequency, in ticks, as the kernel computes it.
    #[must_use]
    pub fn period(&self, frequency_hz: u32) -> u32 {
        let ticks_per_s = (1_000_000_000_000_000 + self.tick_fs / 2) / self.tick_fs;
        let ticks = (ticks_per_s + u64::from(frequency_hz) / 2) / u64::from(frequency_hz.max(1));
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// Length of a tick, fs.
    #[must_use]
    pub fn tick_fs(&self) -> u64 {
        self.tick_fs
    }

    /// Reads 32 bits of a register.
    #[inline]
    fn read(&self, offset: usize) -> u32 {
        // SAFETY: the offset is within the mapped page and a multiple of 4; a register can change at any time.
        unsafe { ptr::read_volatile(self.registers.wrapping_byte_add(offset)) }
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: this request takes nothing. Closing the file turns interrupts off, too.
        let _ = unsafe { command(&self.file, INTERRUPTS_OFF, 0) };
        // SAFETY: the range was mapped by `open`, and no reference to it exists.
        let unmapped = unsafe { munmap(self.registers.cast_mut().cast(), REGISTERS) };
        debug_assert!(unmapped.is_ok(), "munmap failed: {unmapped:?}");
    }
}

/// A `hpet_info`.
#[repr(C)]
#[derive(Debug, Default)]
struct Info {
    frequency: libc::c_ulong,
    flags: libc::c_ulong,
    hpet: u16,
    timer: u16,
}

// SAFETY: HPET_INFO takes a pointer to a `hpet_info`, which has this layout (tested below).
unsafe impl Request for Info {
    const CODE: u32 = 0x8018_6803;
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn layouts_match_the_kernel_header() {
        assert_eq!([size_of::<Info>(), offset_of!(Info, timer)], [24, 18]);
    }

    #[test]
    fn another_file_is_no_hpet() {
        assert_eq!(Timer::open(Path::new("/dev/null")).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
