//! The kernel's time keeping: its estimate of the system clock's error, and readings of PTP hardware clocks.

use std::{fs::File, io, os::fd::AsRawFd, path::Path};

use crate::convert;

/// The kernel's view of the system clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelClock {
    /// True if a program disciplines the clock and has reported recently.
    pub synchronised: bool,
    /// Largest error, us.
    pub max_error_us: u64,
    /// Expected error, us.
    pub expected_error_us: u64,
    /// TAI minus UTC, s.
    pub tai_offset_s: i64,
}

/// Reads the clock state (adjtimex) without setting anything. Needs no privileges.
///
/// # Errors
/// The kernel's error, e.g. EPERM from a seccomp filter.
pub fn kernel_clock() -> io::Result<KernelClock> {
    // SAFETY: timex is plain old data, so all zeroes is a valid value; zero modes set nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is live and writable.
    if unsafe { libc::adjtimex(&raw mut state) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(KernelClock {
        synchronised: state.status & libc::STA_UNSYNC == 0,
        max_error_us: u64::try_from(state.maxerror).unwrap_or(u64::MAX),
        expected_error_us: u64::try_from(state.esterror).unwrap_or(u64::MAX),
        tai_offset_s: state.tai.into(),
    })
}

/// One reading of a hardware clock between two readings of the system clock, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The system clock before.
    pub before_ns: i64,
    /// The hardware clock.
    pub clock_ns: i64,
    /// The system clock afterwards, never earlier than `before_ns`.
    pub after_ns: i64,
}

impl Reading {
    /// Time between the two readings of the system clock, ns.
    #[must_use]
    pub fn window_ns(self) -> u64 {
        self.after_ns.abs_diff(self.before_ns)
    }

    /// The hardware clock minus the middle of the window, ns. The error is at most half the window.
    #[must_use]
    pub fn ahead_ns(self) -> i64 {
        let middle_ns = i128::midpoint(self.before_ns.into(), self.after_ns.into());
        let ahead_ns = i128::from(self.clock_ns) - middle_ns;
        i64::try_from(ahead_ns).unwrap_or(if ahead_ns < 0 { i64::MIN } else { i64::MAX })
    }
}

/// Reads a PTP hardware clock (`/dev/ptpN`) `count` times, at most 25, together with CLOCK_REALTIME. Readings during
/// which the system clock was stepped back are omitted.
///
/// # Errors
/// EACCES without permission, ENOTTY if the file is not a PTP clock, EOPNOTSUPP if its driver cannot do it; otherwise
/// the kernel's error.
pub fn readings(device: &Path, count: u32) -> io::Result<Vec<Reading>> {
    let file = File::open(device)?;
    // SAFETY: ptp_sys_offset_extended is plain old data, so all zeroes is a valid value.
    let mut offsets: libc::ptp_sys_offset_extended = unsafe { std::mem::zeroed() };
    offsets.n_samples = count.min(convert::length(offsets.ts.len()));
    // SAFETY: `offsets` is live, writable and of the length encoded in the request's number.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::PTP_SYS_OFFSET_EXTENDED as _, &raw mut offsets) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let ns = |time: &libc::ptp_clock_time| time.sec.saturating_mul(1_000_000_000).saturating_add(time.nsec.into());
    let readings = offsets.ts.iter().take(offsets.n_samples as usize).map(|[before, clock, after]| Reading {
        before_ns: ns(before),
        clock_ns: ns(clock),
        after_ns: ns(after),
    });
    Ok(readings.filter(|reading| reading.before_ns <= reading.after_ns).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernel_clock() {
        let state = match kernel_clock() {
            Ok(state) => state,
            Err(error) => return eprintln!("SKIPPED: adjtimex is refused here: {error}"),
        };
        assert!(state.max_error_us <= 16_000_000, "above the kernel's maximum: {state:?}");
        assert!((0..=100).contains(&state.tai_offset_s), "{state:?}");
        if !state.synchronised {
            assert!(state.max_error_us > 0, "{state:?}");
        }
    }

    #[test]
    fn computes_window_and_offset_without_overflow() {
        let reading = Reading { before_ns: 1000, clock_ns: 5_000_000_000, after_ns: 1800 };
        assert_eq!((reading.window_ns(), reading.ahead_ns()), (800, 4_999_998_600));
        let behind = Reading { before_ns: 1000, clock_ns: 0, after_ns: 1001 };
        assert_eq!((behind.window_ns(), behind.ahead_ns()), (1, -1000));
        let wild = Reading { before_ns: i64::MIN, clock_ns: i64::MAX, after_ns: i64::MIN };
        assert_eq!((wild.window_ns(), wild.ahead_ns()), (0, i64::MAX));
    }

    #[test]
    fn rejects_files_that_are_not_clocks() {
        let error = readings(Path::new("/dev/null"), 25).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(readings(Path::new("/dev/none"), 25).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
