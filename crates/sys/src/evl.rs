//! The EVL core (Xenomai 4) through the kernel's own interface, `/dev/evl`: no library between.
//!
//! A kernel with the core runs threads on two stages. In-band they are Linux's; out-of-band the core alone schedules them,
//! and nothing that Linux does holds them up. An attached thread goes out-of-band with its first out-of-band call, and falls
//! back in-band with each system call of Linux's, page fault or signal.
//!
//! | module | holds |
//! |---|---|
//! | `abi` | how the core and a program talk |

mod abi;

use std::{
    ffi::{CStr, CString},
    fs::File,
    io,
    marker::PhantomData,
    ops::RangeInclusive,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use rustix::mm::{MlockAllFlags, mlockall};
use thiserror::Error;

use abi::{CloneRequest, CoreInfo, Form, SchedAttrs, ThreadState, Timespec};

/// ABI levels of the core that are understood here.
pub const LEVELS: RangeInclusive<u32> = abi::LEVELS;

const CONTROL: &str = "/dev/evl/control";
const THREADS: &str = "/dev/evl/thread/clone";
/// CLOCK_MONOTONIC as the core has it: the same time.
const CLOCK: &str = "/dev/evl/clock/monotonic";

/// Why a thread cannot be the core's.
#[derive(Debug, Error)]
pub enum EvlError {
    /// The kernel has no such core.
    #[error(
        "this kernel has no EVL core (there is no {CONTROL}): boot one built with CONFIG_EVL, as https://v4.xenomai.org tells, \
         or leave out --core evl"
    )]
    Absent,
    /// It is not for this user.
    #[error("the EVL core is not for this user: run as root, or as one of the group that `ls -l {CONTROL}` names")]
    Forbidden,
    /// It speaks otherwise than we do.
    #[error(
        "the EVL core of this kernel speaks ABI {base} to {current}, and punctual {} to {}: boot a kernel with one of those",
        LEVELS.start(), LEVELS.end()
    )]
    Level {
        /// The oldest level that it knows.
        base: u32,
        /// The newest one.
        current: u32,
    },
    /// It does not run.
    #[error("the EVL core does not run: echo start | sudo tee /sys/devices/virtual/evl/control/state")]
    Stopped,
    /// Its threads need all memory locked, also what is to come.
    #[error(
        "the EVL core asks for locked memory, which the kernel refused ({0}): run as root, or after `ulimit -l unlimited`"
    )]
    Unlocked(io::Error),
    /// The core has other CPUs.
    #[error(
        "CPU {0} is not one of the EVL core's: choose one of those that `cat /sys/devices/virtual/evl/control/cpus` tells, or \
         boot with evl.oob_cpus={0}"
    )]
    OtherCpu(u32),
    /// It does not count, so nobody could say that the thread stayed with it.
    #[error(
        "this kernel does not count what threads of the EVL core do, so that one that fell back to Linux would not be \
         noticed: build it with CONFIG_EVL_RUNSTATS=y"
    )]
    Uncounted,
    /// The core refused something else.
    #[error("the EVL core {step}: {source}; see `sudo dmesg | grep -i evl`")]
    Failed {
        /// What it did not do.
        step: &'static str,
        /// What it answered.
        source: io::Error,
    },
}

/// The calling thread as one of the EVL core's, until it is dropped.
#[derive(Debug)]
pub struct Thread {
    // What belongs to the process stays while this is open.
    _control: OwnedFd,
    clock: OwnedFd,
    element: OwnedFd,
    form: Form,
    level: u32,
    /// Only the thread that attached can wait.
    here: PhantomData<*const ()>,
}

/// What the core knows of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The CPU that it is on.
    pub cpu: u32,
    /// How often it left the out-of-band stage; goes round at 2^32.
    pub in_band: u32,
    /// How often it was switched to or woken, as the core counts; goes round at 2^32.
    pub switches: u32,
    /// Its CPU time out-of-band, ns.
    pub cpu_time_ns: u64,
    calls: u32,
}

impl Thread {
    /// Makes the calling thread one of the core's, at this priority (1 to 99, first in, first out), under a name that no
    /// other has. It is to be pinned to `cpu` before. All memory of the process is locked, also what is to come.
    ///
    /// # Errors
    /// [`EvlError`].
    pub fn attach(name: &str, priority: u8, cpu: u32) -> Result<Self, EvlError> {
        let control = open(CONTROL)?;
        let level = level_of(control.as_fd())?;
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|errno| EvlError::Unlocked(errno.into()))?;
        let clock = open(CLOCK)?;
        let factory = open(THREADS)?;
        let name = CString::new(name).unwrap_or_default();
        let element = clone(factory.as_fd(), &name)?;
        let thread = Self { _control: control, clock, element, form: Form::of(level), level, here: PhantomData };
        thread.set_priority(priority)?;
        // What the first look cost is counted by the second.
        thread.look()?;
        let State { cpu: found, calls, .. } = thread.look()?;
        if calls == 0 {
            return Err(EvlError::Uncounted);
        }
        if found == cpu { Ok(thread) } else { Err(EvlError::OtherCpu(cpu)) }
    }

    /// The ABI level that is spoken with the core.
    #[must_use]
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Sleeps out-of-band until this moment of CLOCK_MONOTONIC, or, as the clock's gravity says, a little before it.
    /// A signal may end the sleep early, but not the wait.
    ///
    /// # Errors
    /// What the core answered; it has no reason to refuse.
    #[inline]
    pub fn sleep_until(&self, deadline_ns: i64) -> io::Result<()> {
        let mut deadline = Timespec { tv_sec: deadline_ns / 1_000_000_000, tv_nsec: deadline_ns % 1_000_000_000 };
        loop {
            match self.call(self.clock.as_fd(), abi::SLEEP, &mut deadline) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                answer => return answer,
            }
        }
    }

    /// What the core knows of the thread. Asking is an out-of-band call, and brings the thread there.
    ///
    /// # Errors
    /// What the core answered; it has no reason to refuse.
    pub fn state(&self) -> io::Result<State> {
        let mut state = ThreadState::default();
        self.call(self.element.as_fd(), abi::GET_STATE, &mut state)?;
        Ok(State { cpu: state.cpu, in_band: state.isw, switches: state.csw, cpu_time_ns: state.xtime, calls: state.sc })
    }

    fn look(&self) -> Result<State, EvlError> {
        self.state().map_err(|source| EvlError::Failed { step: "does not tell of a thread", source })
    }

    fn set_priority(&self, priority: u8) -> Result<(), EvlError> {
        let mut attrs = SchedAttrs { policy: libc::SCHED_FIFO, priority: priority.into(), ..SchedAttrs::default() };
        in_band(self.element.as_fd(), abi::SET_SCHEDPARAM, &mut attrs)
            .map_err(|source| EvlError::Failed { step: "refused the priority", source })
    }

    /// An out-of-band `ioctl`.
    #[inline]
    fn call<T>(&self, file: BorrowedFd<'_>, request: u32, argument: &mut T) -> io::Result<()> {
        let (number, before) = self.form.ioctl();
        let (file, request) = (libc::c_long::from(file.as_raw_fd()), libc::c_long::from(request));
        let argument = std::ptr::from_mut(argument);
        // SAFETY: the requests of `abi` read or write one value of the type that their size was taken from, and `argument`
        // is one, live and writable; a kernel that does not know the call answers with an error.
        let answer = unsafe {
            match *before {
                [] => libc::syscall(number, file, request, argument),
                [a] => libc::syscall(number, a, file, request, argument),
                [a, b, ..] => libc::syscall(number, a, b, file, request, argument),
            }
        };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // Should it be refused, the thread is the core's until it ends, which is soon.
        let _ = in_band(self.element.as_fd(), abi::DETACH_SELF, &mut ());
    }
}

/// The ABI level that is spoken with the core of this kernel.
///
/// # Errors
/// [`EvlError`]: there is no core, it is not for this user, or it speaks another.
pub fn level() -> Result<u32, EvlError> {
    level_of(open(CONTROL)?.as_fd())
}

fn level_of(control: BorrowedFd<'_>) -> Result<u32, EvlError> {
    let mut info = CoreInfo::default();
    in_band(control, abi::GET_COREINFO, &mut info)
        .map_err(|source| EvlError::Failed { step: "does not tell its ABI", source })?;
    understood(info.abi_base, info.abi_current)
}

fn understood(base: u32, current: u32) -> Result<u32, EvlError> {
    // A core that knows levels from one to another is called as the newest that both know.
    let level = current.min(*LEVELS.end());
    if level >= base && LEVELS.contains(&level) { Ok(level) } else { Err(EvlError::Level { base, current }) }
}

/// Makes the calling thread one of the core's.
fn clone(factory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, EvlError> {
    let mut request = CloneRequest { name_ptr: name.as_ptr().addr() as u64, ..CloneRequest::default() };
    in_band(factory, abi::CLONE, &mut request).map_err(|source| match source.raw_os_error() {
        Some(libc::ENXIO) => EvlError::Stopped,
        _ => EvlError::Failed { step: "refused the thread", source },
    })?;
    // SAFETY: the kernel has just opened this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(request.efd as i32) })
}

/// An ordinary `ioctl`. The requests of `abi` alone are given.
fn in_band<T>(file: BorrowedFd<'_>, request: u32, argument: &mut T) -> io::Result<()> {
    // SAFETY: as in `Thread::call`; the name in a request to clone outlives the call.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), request as libc::Ioctl, std::ptr::from_mut(argument)) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn open(path: &str) -> Result<OwnedFd, EvlError> {
    let file = File::options().read(true).write(true).open(path).map_err(|source| match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => EvlError::Absent,
        Some(libc::EACCES | libc::EPERM) => EvlError::Forbidden,
        _ => EvlError::Failed { step: "cannot be opened", source },
    })?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_both_know_are_spoken() {
        for (base, current, expected) in [(23, 26, 26), (23, 32, 32), (39, 40, 40), (43, 43, 43), (40, 50, 43)] {
            assert_eq!(understood(base, current).unwrap(), expected);
        }
        for (base, current) in [(19, 19), (44, 44), (0, 22)] {
            let error = understood(base, current).unwrap_err().to_string();
            assert!(error.contains(&format!("speaks ABI {base} to {current}, and punctual 23 to 43")), "{error}");
        }
    }

    #[test]
    fn a_kernel_without_the_core_is_told_with_the_remedy() {
        if std::path::Path::new(CONTROL).exists() {
            eprintln!("SKIPPED: this kernel has the EVL core");
            return;
        }
        let error = Thread::attach("punctual", 90, 0).unwrap_err().to_string();
        assert!(error.contains("no EVL core") && error.contains("CONFIG_EVL"), "{error}");
    }
}
