//! How the kernel keeps time: what it thinks of its system clock, and that clock beside one in hardware.

use std::{fs::File, io, os::fd::AsRawFd, path::Path};

/// What the kernel thinks of its system clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelClock {
    /// Whether a program has said that it keeps the clock right, and has not fallen silent since.
    pub synchronised: bool,
    /// Largest error, us.
    pub max_error_us: u64,
    /// Expected error, us.
    pub expected_error_us: u64,
    /// How far TAI is ahead, s.
    pub tai_offset_s: i64,
}

/// Asks the kernel (adjtimex) and sets nothing; needs no rights.
///
/// # Errors
/// What the kernel answered, as EPERM from a filter of system calls.
pub fn kernel_clock() -> io::Result<KernelClock> {
    // SAFETY: timex is plain old data, for which all zeroes is a valid value: it sets nothing.
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

/// A clock in hardware, read between two readings of the system clock; ns on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The system clock before.
    pub before_ns: i64,
    /// The clock.
    pub clock_ns: i64,
    /// The system clock afterwards; not earlier than before.
    pub after_ns: i64,
}

impl Reading {
    /// Time between the two readings of the system clock, ns.
    #[must_use]
    pub fn window_ns(self) -> u64 {
        self.after_ns.abs_diff(self.before_ns)
    }

    /// The clock minus the middle of the window, ns; wrong by half the window at most.
    #[must_use]
    pub fn ahead_ns(self) -> i64 {
        let middle_ns = i128::midpoint(self.before_ns.into(), self.after_ns.into());
        let ahead_ns = i128::from(self.clock_ns) - middle_ns;
        i64::try_from(ahead_ns).unwrap_or(if ahead_ns < 0 { i64::MIN } else { i64::MAX })
    }
}

/// Reads a PTP hardware clock (`/dev/ptpN`) `count` times, 25 at most, against CLOCK_REALTIME. Readings in which the system
/// clock was stepped back are left out.
///
/// # Errors
/// EACCES without the right to open it, ENOTTY where it is no such clock, EOPNOTSUPP where its driver cannot, and what else
/// the kernel answered.
pub fn readings(device: &Path, count: u32) -> io::Result<Vec<Reading>> {
    let file = File::open(device)?;
    // SAFETY: ptp_sys_offset_extended is plain old data, for which all zeroes is a valid value.
    let mut asked: libc::ptp_sys_offset_extended = unsafe { std::mem::zeroed() };
    asked.n_samples = count.min(asked.ts.len() as u32);
    // SAFETY: `asked` is live, writable and of the length that the request's number carries. Its type differs between C
    // libraries.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::PTP_SYS_OFFSET_EXTENDED as _, &raw mut asked) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let ns = |time: &libc::ptp_clock_time| time.sec.saturating_mul(1_000_000_000).saturating_add(time.nsec.into());
    let readings = asked.ts.iter().take(asked.n_samples as usize).map(|[before, clock, after]| Reading {
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
    fn the_kernel_tells_of_its_clock() {
        let state = match kernel_clock() {
            Ok(state) => state,
            Err(error) => return eprintln!("SKIPPED: adjtimex is refused here: {error}"),
        };
        assert!(state.max_error_us <= 16_000_000, "its largest: {state:?}");
        assert!((0..=100).contains(&state.tai_offset_s), "{state:?}");
        if !state.synchronised {
            assert!(state.max_error_us > 0, "{state:?}");
        }
    }

    #[test]
    fn a_reading_is_wrong_by_half_its_window_at_most() {
        let reading = Reading { before_ns: 1000, clock_ns: 5_000_000_000, after_ns: 1800 };
        assert_eq!((reading.window_ns(), reading.ahead_ns()), (800, 4_999_998_600));
        let behind = Reading { before_ns: 1000, clock_ns: 0, after_ns: 1001 };
        assert_eq!((behind.window_ns(), behind.ahead_ns()), (1, -1000));
        let wild = Reading { before_ns: i64::MIN, clock_ns: i64::MAX, after_ns: i64::MIN };
        assert_eq!((wild.window_ns(), wild.ahead_ns()), (0, i64::MAX));
    }

    #[test]
    fn what_is_no_clock_is_refused() {
        let error = readings(Path::new("/dev/null"), 25).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(readings(Path::new("/dev/none"), 25).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
