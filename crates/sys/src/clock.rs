//! Clocks, and sleeping until an absolute time on a clock.

use std::{fmt, io, str::FromStr};

use rustix::{
    fd::OwnedFd,
    io::Errno,
    time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime},
};

/// A clock for deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// Time since boot without suspend; never stepped. The usual choice.
    #[default]
    Monotonic,
    /// Wall-clock time; stepped when the clock is set.
    Realtime,
    /// International atomic time (TAI), the time scale of PTP.
    Tai,
    /// Time since boot, including suspend.
    Boottime,
}

/// A name that is not a [`Clock`] or a [`Wait`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{given}`: use {choices}")]
pub struct UnknownName {
    what: &'static str,
    given: String,
    choices: &'static str,
}

const CLOCKS: [(&str, Clock); 4] = [
    ("monotonic", Clock::Monotonic),
    ("realtime", Clock::Realtime),
    ("tai", Clock::Tai),
    ("boottime", Clock::Boottime),
];

impl FromStr for Clock {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        CLOCKS.iter().find(|(name, _)| *name == text).map(|&(_, clock)| clock).ok_or_else(|| UnknownName {
            what: "clock",
            given: text.to_owned(),
            choices: "monotonic, realtime, tai or boottime",
        })
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CLOCKS.iter().find(|(_, clock)| clock == self).map_or("", |&(name, _)| name))
    }
}

impl Clock {
    /// The time now, ns on this clock. Uses the vDSO where the architecture has one.
    #[inline]
    #[must_use]
    pub fn now_ns(self) -> i64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is live and writable; the clock exists on every supported kernel.
        unsafe { libc::clock_gettime(self.id(), &raw mut now) };
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    }

    /// Reads something else between two readings of this clock. If that takes `quick_ns` or longer, as after an
    /// interruption, it is done again, up to five times in all; returns the quickest reading. With 0, it is done five times.
    #[inline]
    pub fn around<T>(self, quick_ns: i64, mut read: impl FnMut() -> T) -> Around<T> {
        let mut once = || {
            let before_ns = self.now_ns();
            let value = read();
            let half_ns = (self.now_ns() - before_ns) / 2;
            // Negative if the clock was set back meanwhile.
            Around { value, at_ns: before_ns + half_ns, error_ns: half_ns.abs() }
        };
        let mut best = once();
        for _ in 1..5 {
            if best.error_ns < quick_ns / 2 {
                break;
            }
            let next = once();
            if next.error_ns < best.error_ns {
                best = next;
            }
        }
        best
    }

    // rustix cannot sleep on CLOCK_TAI, so this uses libc.
    fn id(self) -> libc::clockid_t {
        match self {
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::Realtime => libc::CLOCK_REALTIME,
            Self::Tai => libc::CLOCK_TAI,
            Self::Boottime => libc::CLOCK_BOOTTIME,
        }
    }
}

/// A value, and when it was read on a [`Clock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Around<T> {
    /// The value.
    pub value: T,
    /// The middle between the two readings of the clock, ns.
    pub at_ns: i64,
    /// Largest error of that time, ns.
    pub error_ns: i64,
}

/// The system call with which a thread waits for its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// `clock_nanosleep` to an absolute time.
    #[default]
    Nanosleep,
    /// `read` of a timer file descriptor armed for an absolute time.
    Timerfd,
}

impl FromStr for Wait {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text {
            "nanosleep" => Ok(Self::Nanosleep),
            "timerfd" => Ok(Self::Timerfd),
            _ => Err(UnknownName { what: "wait method", given: text.to_owned(), choices: "nanosleep or timerfd" }),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nanosleep => "nanosleep",
            Self::Timerfd => "timerfd",
        })
    }
}

/// A clock and the timer descriptor that [`Wait::Timerfd`] needs. Created before the measuring loop starts.
#[derive(Debug)]
pub struct Sleeper {
    clock: Clock,
    timer: Option<OwnedFd>,
}

impl Sleeper {
    /// Prepares waiting on `clock`.
    ///
    /// # Errors
    /// Fails for [`Clock::Tai`] with [`Wait::Timerfd`], because the kernel has no such timer file descriptor.
    pub fn new(clock: Clock, wait: Wait) -> io::Result<Self> {
        let timer = match wait {
            Wait::Nanosleep => None,
            Wait::Timerfd => Some(timerfd_create(timerfd_clock(clock)?, TimerfdFlags::CLOEXEC)?),
        };
        Ok(Self { clock, timer })
    }

    /// The clock of the deadlines.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Sleeps until `deadline_ns`; returns at once if that is in the past. Signals do not end the wait.
    ///
    /// # Errors
    /// Fails if the kernel cannot wait on this clock.
    #[inline]
    pub fn sleep_until(&self, deadline_ns: i64) -> io::Result<()> {
        match &self.timer {
            None => nanosleep_until(self.clock.id(), deadline_ns),
            Some(timer) => read_timer(timer, deadline_ns),
        }
    }
}

#[inline]
fn nanosleep_until(clock: libc::clockid_t, deadline_ns: i64) -> io::Result<()> {
    let deadline = libc::timespec { tv_sec: deadline_ns / 1_000_000_000, tv_nsec: deadline_ns % 1_000_000_000 };
    loop {
        // SAFETY: `deadline` is live for the call; an absolute sleep writes no remaining time.
        match unsafe { libc::clock_nanosleep(clock, libc::TIMER_ABSTIME, &raw const deadline, std::ptr::null_mut()) } {
            0 => return Ok(()),
            libc::EINTR => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

fn timerfd_clock(clock: Clock) -> io::Result<TimerfdClockId> {
    Ok(match clock {
        Clock::Monotonic => TimerfdClockId::Monotonic,
        Clock::Realtime => TimerfdClockId::Realtime,
        Clock::Boottime => TimerfdClockId::Boottime,
        Clock::Tai => return Err(io::ErrorKind::Unsupported.into()),
    })
}

#[inline]
fn read_timer(timer: &OwnedFd, deadline_ns: i64) -> io::Result<()> {
    let deadline = Timespec { tv_sec: deadline_ns / 1_000_000_000, tv_nsec: deadline_ns % 1_000_000_000 };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: deadline };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
    let mut expirations = [0; 8];
    loop {
        match rustix::io::read(timer, &mut expirations) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (name, clock) in CLOCKS {
            assert_eq!((name.parse(), clock.to_string()), (Ok(clock), name.to_owned()));
        }
        assert_eq!("timerfd".parse(), Ok(Wait::Timerfd));
        let error = "wall".parse::<Clock>().unwrap_err().to_string();
        assert_eq!(error, "unknown clock `wall`: use monotonic, realtime, tai or boottime");
    }

    #[test]
    fn a_value_is_between_two_readings_of_a_clock() {
        let mut times = 0;
        let slow = Clock::Monotonic.around(0, || {
            times += 1;
            Clock::Monotonic.now_ns()
        });
        assert_eq!(times, 5, "no reading is quick enough");
        assert!((slow.value - slow.at_ns).abs() <= slow.error_ns + 1, "{slow:?}");
        let mut times = 0;
        let _ = Clock::Monotonic.around(i64::MAX, || times += 1);
        assert_eq!(times, 1);
    }

    #[test]
    fn sleeps_never_end_early() {
        for (clock, wait) in [
            (Clock::Monotonic, Wait::Nanosleep),
            (Clock::Tai, Wait::Nanosleep),
            (Clock::Monotonic, Wait::Timerfd),
            (Clock::Boottime, Wait::Timerfd),
        ] {
            let sleeper = Sleeper::new(clock, wait).unwrap();
            let deadline = clock.now_ns() + 2_000_000;
            sleeper.sleep_until(deadline).unwrap();
            assert!(clock.now_ns() >= deadline, "{clock} {wait}");
            sleeper.sleep_until(deadline).unwrap();
        }
        assert!(Sleeper::new(Clock::Tai, Wait::Timerfd).is_err());
    }
}
