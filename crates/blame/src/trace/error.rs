//! Reasons why the kernel's trace cannot be used.

use std::{fs, io, path::Path};

use rustix::io::Errno;
use thiserror::Error;

/// Reason why the kernel's trace cannot be used.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The kernel was built without tracefs.
    #[error("this kernel has no tracefs: use a kernel built with CONFIG_FTRACE, e.g. that of your distribution")]
    NoTracefs,
    /// Tracefs is not mounted, and the kernel is too old for a detached mount.
    #[error("tracefs is not mounted: mount it with `sudo mount -t tracefs nodev /sys/kernel/tracing`")]
    NotMounted,
    /// This process lacks the right to trace.
    #[error("no right to use the kernel's trace: run as root, with `sudo`, and outside of containers")]
    Forbidden,
    /// The threads of this process have other ids in the trace.
    #[error(
        "the kernel's trace has the thread ids of the host, not those of this container: run punctual on the host, or with \
         the host's process ids, e.g. `docker run --pid=host`"
    )]
    OtherIds,
    /// The clocks of this process have offsets, which the trace does not have.
    #[error("the kernel's trace has the times of the host, not those of this time namespace: run punctual on the host")]
    OtherTimes,
    /// The kernel is locked down, also for root.
    #[error("kernel lockdown forbids tracing: boot with the kernel argument `lockdown=integrity`")]
    LockedDown,
    /// Not enough memory for the rings.
    #[error("no memory for a trace ring of {kb_per_cpu} KiB per CPU: free memory, or use `--blame counters`")]
    NoMemory {
        /// The requested size, KiB.
        kb_per_cpu: u32,
    },
    /// The CPU does not exist or is offline.
    #[error("CPU {cpu} cannot be traced: choose online CPUs, listed in /sys/devices/system/cpu/online")]
    NoCpu {
        /// The CPU.
        cpu: u32,
    },
    /// Another tracer uses the same part of the trace.
    #[error("another tracer uses {part} of the kernel's trace: end that tracer, or use `--blame counters`")]
    Busy {
        /// File of tracefs.
        part: String,
    },
    /// The kernel lacks a required part.
    #[error("this kernel's trace has no {part}: use Linux 4.14 or newer")]
    Missing {
        /// File of tracefs.
        part: String,
    },
    /// No trace is kept for files.
    #[error("the kernel's trace is not kept: use `--blame trace`")]
    NotKept,
    /// The kernel returned another error.
    #[error("the kernel refused {part} of its trace ({source}): use `--blame counters` instead")]
    Refused {
        /// File of tracefs.
        part: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A format description cannot be parsed.
    #[error("cannot parse {part} of the kernel's trace: please report it and attach that file")]
    Format {
        /// File of tracefs.
        part: String,
    },
}

impl TraceError {
    /// Converts the error of a system call on a part of the trace.
    pub(crate) fn of(part: impl Into<String>, source: io::Error) -> Self {
        let part = part.into();
        match Errno::from_io_error(&source) {
            Some(Errno::PERM | Errno::ACCESS) if is_locked_down() => Self::LockedDown,
            Some(Errno::PERM | Errno::ACCESS) => Self::Forbidden,
            Some(Errno::BUSY) => Self::Busy { part },
            Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => Self::Missing { part },
            _ => Self::Refused { part, source },
        }
    }
}

/// True if lockdown forbids tracing even to root: the file contains `none integrity [confidentiality]`.
pub(crate) fn is_locked_down() -> bool {
    let path = Path::new("/sys/kernel/security/lockdown");
    fs::read_to_string(path).is_ok_and(|text| text.contains("[confidentiality]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_system_errors_to_remedies() {
        let found = |errno: Errno| TraceError::of("tracing_on", errno.into()).to_string();
        for (errno, expected) in [
            (
                Errno::BUSY,
                "another tracer uses tracing_on of the kernel's trace: end that tracer, or use `--blame counters`",
            ),
            (Errno::NODEV, "this kernel's trace has no tracing_on: use Linux 4.14 or newer"),
            (Errno::NOENT, "this kernel's trace has no tracing_on: use Linux 4.14 or newer"),
        ] {
            assert_eq!(found(errno), expected);
        }
        for errno in [Errno::ACCESS, Errno::PERM] {
            let expected = if is_locked_down() { "lockdown=integrity" } else { "run as root" };
            assert!(found(errno).contains(expected), "{}", found(errno));
        }
        assert!(found(Errno::INVAL).starts_with("the kernel refused tracing_on of its trace (Invalid argument"));
    }
}
