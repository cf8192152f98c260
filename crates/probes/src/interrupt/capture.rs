//! A count that a clock drives: its rate, and the time of a count that was captured.

use std::{fs::File, io, path::Path, thread, time::Duration};

use rustix::io::{Errno, pread};
use sys::clock::{Around, Clock};

use super::source::QUICK_NS;

/// Times between two readings for the rate, ns: from the first to the last, each twice as long as the one before.
const GAPS_NS: std::ops::RangeInclusive<u32> = 14..=27;
/// Share by which the rate between two readings may differ from that of all readings, in addition to the errors of the
/// readings.
const TOLERANCE: f64 = 0.002;
/// Digits of a count of 64 bits, and the end of the line.
const TEXT: usize = 24;

/// A count in sysfs that counts up at a constant rate, and starts again at 0 after its ceiling.
#[derive(Debug)]
pub struct RunningCount {
    file: File,
    ceiling: u64,
    rate: Rate,
}

/// The rate of a count.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rate {
    ns_per_tick: f64,
    /// Largest relative error.
    error: f64,
}

/// A count that cannot give the time of a capture.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// It cannot be read.
    #[error("it cannot be read ({0}): see `dmesg`")]
    Unreadable(#[from] io::Error),
    /// It does not change.
    #[error("it does not run: enable it, and let it count a clock, as its driver documents")]
    Stopped,
    /// It changes irregularly, slowly or down.
    #[error("it does not count up at a constant rate of 10 kHz or more: let it count a clock, as its driver documents")]
    Irregular,
}

/// The time since a count was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ago {
    /// The time, ns.
    pub ns: i64,
    /// Largest error that the rate adds, ns.
    pub error_ns: i64,
}

impl RunningCount {
    /// Opens a count, and measures its rate, which takes about 0.3 s.
    ///
    /// # Errors
    /// [`CountError`].
    pub fn open(path: &Path, ceiling: u64) -> Result<Self, CountError> {
        let file = File::open(path)?;
        let mut readings = vec![read_at(&file)?];
        for exponent in GAPS_NS {
            thread::sleep(Duration::from_nanos(1 << exponent));
            readings.push(read_at(&file)?);
        }
        let rate = Rate::of(&readings, ceiling)?;
        Ok(Self { file, ceiling, rate })
    }

    /// Frequency of the count, Hz.
    #[must_use]
    pub fn frequency_hz(&self) -> f64 {
        1e9 / self.rate.ns_per_tick
    }

    /// Length of a tick, ns; at least 1.
    #[must_use]
    pub fn resolution_ns(&self) -> u64 {
        whole_ns(self.rate.ns_per_tick).max(1).unsigned_abs()
    }

    /// Time after which the count starts again, ns.
    #[must_use]
    pub fn range_ns(&self) -> u64 {
        whole_ns(range(self.ceiling) * self.rate.ns_per_tick).unsigned_abs()
    }

    /// Reads the count between two readings of the clock.
    ///
    /// # Errors
    /// The error of the kernel.
    #[inline]
    pub fn read(&self) -> io::Result<Around<u64>> {
        read_at(&self.file)
    }

    /// The time from a capture to the reading of `now`, if the kernel stamped its event `since_stamp_ns` before that
    /// reading.
    ///
    /// # Errors
    /// EOVERFLOW if more than half of the range passed from the capture to the stamp, because the time is then ambiguous.
    #[inline]
    pub fn ago(&self, now: u64, captured: u64, since_stamp_ns: i64, error_ns: i64) -> io::Result<Ago> {
        ago(self.rate, self.ceiling, ticks(now, captured, self.ceiling), since_stamp_ns, error_ns)
    }
}

/// Ticks from one start of a count at 0 to the next.
fn range(ceiling: u64) -> f64 {
    ceiling as f64 + 1.0
}

/// Whole nanoseconds; a value that is too large becomes the largest one.
#[expect(clippy::cast_possible_truncation, reason = "a float is converted to the nearest integer")]
fn whole_ns(ns: f64) -> i64 {
    ns.round() as i64
}

/// The ticks from one count to a later one, less than the range.
#[inline]
fn ticks(later: u64, earlier: u64, ceiling: u64) -> u64 {
    match later.checked_sub(earlier) {
        Some(ticks) => ticks,
        None => ceiling.saturating_sub(earlier).saturating_add(later).saturating_add(1),
    }
}

#[inline]
fn ago(rate: Rate, ceiling: u64, ticks: u64, since_stamp_ns: i64, error_ns: i64) -> io::Result<Ago> {
    let (ns, range_ns) = (ticks as f64 * rate.ns_per_tick, range(ceiling) * rate.ns_per_tick);
    let stamp_ns = since_stamp_ns as f64;
    // The capture came before the stamp. Add the rounds that the count made after it.
    let rounds = ((stamp_ns - ns) / range_ns - 0.5).ceil().max(0.0);
    let ns = rounds.mul_add(range_ns, ns);
    let error_ns = error_ns as f64 + rate.ns_per_tick + ns * rate.error;
    if (stamp_ns - ns).abs() > range_ns / 2.0 || stamp_ns - ns > error_ns {
        return Err(Errno::OVERFLOW.into());
    }
    Ok(Ago { ns: whole_ns(ns), error_ns: whole_ns((ns * rate.error).ceil()) })
}

impl Rate {
    /// The rate of readings whose distances double.
    fn of(readings: &[Around<u64>], ceiling: u64) -> Result<Self, CountError> {
        let range = range(ceiling);
        let mut ticks_per_ns = 0.0;
        // Ticks since the first reading.
        let mut totals = vec![0.0];
        for pair in readings.windows(2) {
            let passed = ticks(pair[1].value, pair[0].value, ceiling) as f64;
            let expected = ticks_per_ns * (pair[1].at_ns - pair[0].at_ns) as f64;
            let rounds = ((expected - passed) / range).round().max(0.0);
            let total = rounds.mul_add(range, passed) + totals.last().unwrap_or(&0.0);
            totals.push(total);
            let elapsed_ns = pair[1].at_ns - readings[0].at_ns;
            ticks_per_ns = total / elapsed_ns.max(1) as f64;
        }
        if totals.iter().all(|&total| total == 0.0) {
            return Err(CountError::Stopped);
        }
        let ns_per_tick = 1.0 / ticks_per_ns;
        let is_regular = readings.windows(2).zip(totals.windows(2)).all(|(pair, totals)| {
            let elapsed_ns = (pair[1].at_ns - pair[0].at_ns) as f64;
            let counted_ns = (totals[1] - totals[0]) * ns_per_tick;
            let error_ns = (pair[0].error_ns + pair[1].error_ns) as f64 + 2.0 * ns_per_tick;
            (counted_ns - elapsed_ns).abs() <= TOLERANCE.mul_add(elapsed_ns, error_ns)
        });
        let [first, .., last] = readings else { return Err(CountError::Irregular) };
        let error_ns = (first.error_ns + last.error_ns) as f64 + 2.0 * ns_per_tick;
        let rate = Self { ns_per_tick, error: error_ns / (last.at_ns - first.at_ns) as f64 };
        if is_regular && rate.error < TOLERANCE { Ok(rate) } else { Err(CountError::Irregular) }
    }
}

/// Reads a count between two readings of the clock.
#[inline]
fn read_at(file: &File) -> io::Result<Around<u64>> {
    let Around { value, at_ns, error_ns } = Clock::Monotonic.around(QUICK_NS, || read(file));
    Ok(Around { value: value?, at_ns, error_ns })
}

/// Reads a count from sysfs.
#[inline]
fn read(file: &File) -> io::Result<u64> {
    let mut text = [0; TEXT];
    let length = pread(file, &mut text, 0)?;
    let digits = text[..length].trim_ascii();
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(|| Errno::IO.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of a count with this frequency, whose distances double.
    fn readings(count: impl Fn(i64) -> u64) -> Vec<Around<u64>> {
        let mut at_ns = 1_000_000;
        let mut next = |gap_ns: i64| {
            at_ns += gap_ns + 55_000;
            Around { value: count(at_ns), at_ns, error_ns: 1500 }
        };
        std::iter::once(next(0)).chain(GAPS_NS.map(|exponent| next(1 << exponent))).collect()
    }

    #[test]
    fn the_rate_is_measured_across_the_ceiling() {
        for (mhz, ceiling) in [(100, u64::from(u32::MAX)), (100, u64::from(u16::MAX)), (10, 9_999), (24, u64::MAX)] {
            let start = ceiling - 70;
            let count =
                |ns: i64| (u128::from(start) + u128::from(ns.unsigned_abs()) * mhz / 1000) % (u128::from(ceiling) + 1);
            let rate = Rate::of(&readings(|ns| u64::try_from(count(ns)).unwrap()), ceiling).unwrap();
            let expected = 1000.0 / mhz as f64;
            assert!((rate.ns_per_tick / expected - 1.0).abs() <= rate.error, "{mhz} {ceiling}: {rate:?}");
            assert!(rate.error < 1e-4, "{rate:?}");
        }
    }

    #[test]
    fn counts_that_no_clock_drives_are_refused() {
        let refused = |count: &dyn Fn(i64) -> u64| Rate::of(&readings(count), u64::from(u32::MAX)).unwrap_err();
        assert!(matches!(refused(&|_| 17), CountError::Stopped));
        let accelerates = |ns: i64| (ns.unsigned_abs() / 10).pow(2) / 1_000_000;
        assert!(matches!(refused(&accelerates), CountError::Irregular));
        let pauses = |ns: i64| ns.unsigned_abs().min(100_000_000) / 10;
        assert!(matches!(refused(&pauses), CountError::Irregular));
        let down = |ns: i64| 4_000_000_000 - ns.unsigned_abs() / 10;
        assert!(matches!(refused(&down), CountError::Irregular));
        let slow = |ns: i64| ns.unsigned_abs() / 200_000_000;
        assert!(Rate::of(&readings(slow), u64::from(u32::MAX)).is_err());
    }

    #[test]
    fn a_capture_has_one_time() {
        let rate = Rate { ns_per_tick: 10.0, error: 1e-4 };
        let of =
            |ticks, since_stamp_ns| ago(rate, 9_999, ticks, since_stamp_ns, 100).map_err(|error| error.raw_os_error());
        assert_eq!(ticks(5, 9_990, 9_999), 15, "the count started again");
        assert_eq!(ticks(3, u64::MAX, u64::MAX), 4);
        assert_eq!(of(700, 5_000), Ok(Ago { ns: 7_000, error_ns: 1 }), "the handler ran 2 us later");
        assert_eq!(of(700, 205_000), Ok(Ago { ns: 207_000, error_ns: 21 }), "the count made two rounds since");
        assert_eq!(of(495, 5_000), Ok(Ago { ns: 4_950, error_ns: 1 }), "later than the stamp, within the error");
        assert_eq!(of(480, 5_000), Err(Some(Errno::OVERFLOW.raw_os_error())), "later than the stamp");
        assert_eq!(
            of(5_600, 5_000),
            Err(Some(Errno::OVERFLOW.raw_os_error())),
            "more than half of the range before it"
        );
    }

    #[test]
    fn files_are_read_as_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("count");
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&File::open(&path).unwrap()).ok()
        };
        assert_eq!(
            [of("18446744073709551615\n"), of("0\n"), of("-1\n"), of("")],
            [Some(u64::MAX), Some(0), None, None]
        );
        std::fs::write(&path, "5\n").unwrap();
        assert!(matches!(RunningCount::open(&path, 100), Err(CountError::Stopped)));
    }
}
