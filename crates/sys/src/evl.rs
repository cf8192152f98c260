//! Threads of the EVL core (Xenomai 4), through the kernel interface `/dev/evl` without libevl.
//!
//! A kernel with this core runs threads on two stages. In-band threads are scheduled by Linux. Out-of-band threads are
//! scheduled by the core alone, and Linux activity does not delay them. An attached thread switches to out-of-band with
//! its first out-of-band call. Each Linux system call, page fault or signal switches it back to in-band.
//!
//! | module | contents |
//! |---|---|
//! | `abi` | system call numbers and structures of the core |
//! | [`gpio`] | lines of GPIO chips that attached threads use |

mod abi;
pub mod gpio;

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

use abi::{Call, CloneRequest, CoreInfo, Form, LatmusResult, LatmusSetup, SchedAttrs, ThreadState, Timespec};

/// The supported ABI levels of the core.
pub const LEVELS: RangeInclusive<u32> = abi::LEVELS;

const CONTROL: &str = "/dev/evl/control";
const THREADS: &str = "/dev/evl/thread/clone";
/// The driver that calibrates the gravity in the kernel (`CONFIG_EVL_LATMUS`).
const LATMUS: &str = "/dev/latmus";
/// The core's view of CLOCK_MONOTONIC; it shows the same time.
const CLOCK: &str = "/dev/evl/clock/monotonic";

/// Why a thread cannot be attached to the core.
#[derive(Debug, Error)]
pub enum EvlError {
    /// The kernel has no EVL core.
    #[error(
        "this kernel has no EVL core (there is no {CONTROL}): boot one built with CONFIG_EVL, see https://v4.xenomai.org, \
         or leave out --core"
    )]
    Absent,
    /// The user has no permission to use the core.
    #[error("no permission to use the EVL core: run as root, or as a member of the group shown by `ls -l {CONTROL}`")]
    Forbidden,
    /// The core's ABI levels are not supported.
    #[error(
        "the EVL core of this kernel supports ABI {base} to {current}, punctual {} to {}: boot a kernel with one of those",
        LEVELS.start(), LEVELS.end()
    )]
    Level {
        /// The oldest level that the core supports.
        base: u32,
        /// The newest level that the core supports.
        current: u32,
    },
    /// The core is stopped.
    #[error("the EVL core is stopped: run `echo start | sudo tee /sys/devices/virtual/evl/control/state`")]
    Stopped,
    /// The core requires all current and future memory to be locked, which failed.
    #[error("cannot lock memory, which the EVL core requires ({0}): run as root, or after `ulimit -l unlimited`")]
    Unlocked(io::Error),
    /// The CPU is not one of the core's out-of-band CPUs.
    #[error(
        "CPU {0} is not an out-of-band CPU of the EVL core: choose one from /sys/devices/virtual/evl/control/cpus, or boot with \
             evl.oob_cpus={0}"
    )]
    OtherCpu(u32),
    /// The core has no statistics, so a fallback to in-band would not be noticed.
    #[error(
        "this kernel has no statistics on EVL threads, so a thread that falls back to in-band would not be noticed: build it \
             with CONFIG_EVL_RUNSTATS=y"
    )]
    Uncounted,
    /// Another request to the core failed.
    #[error("the EVL core {step}: {source}; see `sudo dmesg | grep -i evl`")]
    Failed {
        /// The failed step.
        step: &'static str,
        /// The error of the core.
        source: io::Error,
    },
}

/// The calling thread, attached to the core until this is dropped.
#[derive(Debug)]
pub struct Thread {
    // The core keeps per-process state while this descriptor is open.
    _control: OwnedFd,
    clock: OwnedFd,
    element: OwnedFd,
    form: Form,
    level: u32,
    /// Not Send: only the attached thread can wait.
    not_send: PhantomData<*const ()>,
}

/// The core's statistics of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The CPU of the thread.
    pub cpu: u32,
    /// Switches from out-of-band to in-band; wraps at 2^32.
    pub in_band: u32,
    /// Context switches and wake-ups as the core counts them; wraps at 2^32.
    pub switches: u32,
    /// CPU time out-of-band, ns.
    pub cpu_time_ns: u64,
    calls: u32,
}

impl Thread {
    /// Attaches the calling thread with SCHED_FIFO at `priority` (1 to 99) under a name that must be unique. The thread
    /// must already be pinned to `cpu`. Locks all current and future memory of the process.
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
        let thread = Self { _control: control, clock, element, form: Form::of(level), level, not_send: PhantomData };
        thread.set_priority(priority)?;
        // The call counter covers earlier calls only, so the second query sees the first.
        thread.query()?;
        let State { cpu: found, calls, .. } = thread.query()?;
        if calls == 0 {
            return Err(EvlError::Uncounted);
        }
        if found == cpu { Ok(thread) } else { Err(EvlError::OtherCpu(cpu)) }
    }

    /// The ABI level in use.
    #[must_use]
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Sleeps out-of-band until `deadline_ns` on CLOCK_MONOTONIC, or slightly less, by the clock's gravity.
    /// Signals do not end the wait.
    ///
    /// # Errors
    /// The error of the core; none is expected.
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

    /// The core's statistics of the thread. This is an out-of-band call, so it switches the thread to out-of-band.
    ///
    /// # Errors
    /// The error of the core; none is expected.
    pub fn state(&self) -> io::Result<State> {
        let mut state = ThreadState::default();
        self.call(self.element.as_fd(), abi::GET_STATE, &mut state)?;
        Ok(State { cpu: state.cpu, in_band: state.isw, switches: state.csw, cpu_time_ns: state.xtime, calls: state.sc })
    }

    fn query(&self) -> Result<State, EvlError> {
        self.state().map_err(|source| EvlError::Failed { step: "does not report the state of the thread", source })
    }

    fn set_priority(&self, priority: u8) -> Result<(), EvlError> {
        let mut attrs = SchedAttrs { policy: libc::SCHED_FIFO, priority: priority.into(), ..SchedAttrs::default() };
        in_band(self.element.as_fd(), abi::SET_SCHEDPARAM, &mut attrs)
            .map_err(|source| EvlError::Failed { step: "refused the priority", source })
    }

    #[inline]
    fn call<T>(&self, file: BorrowedFd<'_>, request: u32, argument: &mut T) -> io::Result<()> {
        out_of_band(self.form, file, request, argument)
    }

    /// Ends a wait of this thread.
    ///
    /// # Errors
    /// The error of the kernel, e.g. too many open files.
    pub fn waker(&self) -> io::Result<Waker> {
        self.element.try_clone().map(Waker)
    }
}

/// Ends a wait of an attached thread, which stays out-of-band. A signal would also end it, but switches the thread in-band.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// Ends the wait of the thread, so that the call fails with EINTR. Has no effect on a thread that does not wait, or is
    /// no longer attached; the caller repeats it if the thread must notice.
    pub fn wake(&self) {
        // It fails only if the thread is no longer attached.
        let _ = in_band(self.0.as_fd(), abi::UNBLOCK, &mut ());
    }
}

/// A context of the kernel that has a gravity of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelContext {
    /// An interrupt handler.
    Irq,
    /// A kernel thread of the core.
    Thread,
}

/// The core's driver that calibrates the gravity, as `latmus -t` of libevl does.
#[derive(Debug)]
pub struct Latmus(OwnedFd);

impl Latmus {
    /// Opens the driver.
    ///
    /// # Errors
    /// The error of the kernel; not found without the driver.
    pub fn open() -> io::Result<Self> {
        Ok(Self(File::options().read(true).write(true).open(LATMUS)?.into()))
    }

    /// Calibrates the gravity for one context, sets it, and returns it in ns. Takes up to 30 s. On an error, the kernel
    /// keeps the old one. `thread` only waits; the CPU must be one of the core.
    ///
    /// # Errors
    /// The error of the driver, e.g. `EAGAIN` if a timer fired early without gravity.
    pub fn tune(
        &self,
        thread: &Thread,
        context: KernelContext,
        cpu: u32,
        priority: u8,
        period_ns: u64,
    ) -> io::Result<u32> {
        let context = match context {
            KernelContext::Irq => 0,
            KernelContext::Thread => 1,
        };
        let setup = LatmusSetup { context, period_ns, priority: priority.into(), cpu, verbosity: 2, unused: 0 };
        in_band(self.0.as_fd(), abi::LATMUS_TUNE, &mut { setup })?;
        let mut gravity_ns = 0_u32;
        let data_ptr = std::ptr::from_mut(&mut gravity_ns).expose_provenance() as u64;
        let mut result = LatmusResult { data_ptr, len: 4 };
        thread.call(self.0.as_fd(), abi::LATMUS_RUN, &mut result)?;
        Ok(gravity_ns)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // If this fails, the thread stays attached until it ends, which is soon.
        let _ = in_band(self.element.as_fd(), abi::DETACH_SELF, &mut ());
    }
}

/// The ABI level to use with the core of this kernel.
///
/// # Errors
/// [`EvlError`] if there is no core, no permission, or no common level.
pub fn level() -> Result<u32, EvlError> {
    level_of(open(CONTROL)?.as_fd())
}

fn level_of(control: BorrowedFd<'_>) -> Result<u32, EvlError> {
    let mut info = CoreInfo::default();
    in_band(control, abi::GET_COREINFO, &mut info)
        .map_err(|source| EvlError::Failed { step: "does not report its ABI", source })?;
    common_level(info.abi_base, info.abi_current)
}

fn common_level(base: u32, current: u32) -> Result<u32, EvlError> {
    // The newest level that both sides support.
    let level = current.min(*LEVELS.end());
    if level >= base && LEVELS.contains(&level) { Ok(level) } else { Err(EvlError::Level { base, current }) }
}

/// Attaches the calling thread to the core.
fn clone(factory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, EvlError> {
    let mut request = CloneRequest { name_ptr: name.as_ptr().addr() as u64, ..CloneRequest::default() };
    in_band(factory, abi::CLONE, &mut request).map_err(|source| match source.raw_os_error() {
        Some(libc::ENXIO) => EvlError::Stopped,
        _ => EvlError::Failed { step: "refused the thread", source },
    })?;
    // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(request.efd.cast_signed()) })
}

/// An out-of-band `ioctl` of the calling thread, which is attached, only with requests of `abi` and `gpio`.
#[inline]
fn out_of_band<T>(form: Form, file: BorrowedFd<'_>, request: u32, argument: &mut T) -> io::Result<()> {
    let (number, before) = form.of_call(Call::Ioctl);
    let (file, request) = (libc::c_long::from(file.as_raw_fd()), libc::c_long::from(request));
    let argument = std::ptr::from_mut(argument);
    // SAFETY: each request of `abi` and `gpio` accesses one value of its argument type, which is live and writable, and
    // `LATMUS_RUN` also the one that its argument names; unknown calls only fail.
    let answer = unsafe {
        match *before {
            [] => libc::syscall(number, file, request, argument),
            [a] => libc::syscall(number, a, file, request, argument),
            [a, b, ..] => libc::syscall(number, a, b, file, request, argument),
        }
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An out-of-band `read` of the calling thread, which is attached. Returns the number of bytes.
#[inline]
fn read_out_of_band(form: Form, file: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    let (number, before) = form.of_call(Call::Read);
    let file = libc::c_long::from(file.as_raw_fd());
    let (start, length) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: the kernel writes at most `length` bytes to the buffer, which is live and writable; unknown calls only fail.
    let answer = unsafe {
        match *before {
            [] => libc::syscall(number, file, start, length),
            [a] => libc::syscall(number, a, file, start, length),
            [a, b, ..] => libc::syscall(number, a, b, file, start, length),
        }
    };
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// An in-band `ioctl`, only with requests of `abi` and `gpio`.
fn in_band<T>(file: BorrowedFd<'_>, request: u32, argument: &mut T) -> io::Result<()> {
    // SAFETY: the argument is live and of the request's type; the name in a clone request outlives the call.
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
    fn selects_the_newest_common_level() {
        for (base, current, expected) in [(23, 26, 26), (23, 32, 32), (39, 40, 40), (43, 43, 43), (40, 50, 43)] {
            assert_eq!(common_level(base, current).unwrap(), expected);
        }
        for (base, current) in [(19, 19), (44, 44), (0, 22)] {
            let error = common_level(base, current).unwrap_err().to_string();
            assert!(error.contains(&format!("supports ABI {base} to {current}, punctual 23 to 43")), "{error}");
        }
    }

    #[test]
    fn explains_a_kernel_without_the_core() {
        if std::path::Path::new(CONTROL).exists() {
            eprintln!("SKIPPED: this kernel has the EVL core");
            return;
        }
        let error = Thread::attach("punctual", 90, 0).unwrap_err().to_string();
        assert!(error.contains("no EVL core") && error.contains("CONFIG_EVL"), "{error}");
    }
}
