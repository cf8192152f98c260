//! Why the kernel's trace cannot be used, with the remedy.

use std::{fs, io, path::Path};

use rustix::io::Errno;
use thiserror::Error;

/// Why the kernel's trace cannot be used.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The kernel was built without it.
    #[error("this kernel has no tracefs: use one that is built with CONFIG_FTRACE, as those of distributions are")]
    NoTracefs,
    /// It has one, but it is mounted nowhere, and the kernel is too old for a private mount.
    #[error("tracefs is not mounted: mount it with `sudo mount -t tracefs nodev /sys/kernel/tracing`")]
    NotMounted,
    /// This process lacks the right.
    #[error("no right to use the kernel's trace: run as root, with `sudo`, and not in a container")]
    Forbidden,
    /// Nobody has the right.
    #[error("the kernel is locked down, which forbids its trace: boot with the kernel argument `lockdown=integrity`")]
    LockedDown,
    /// The kernel has not enough memory for the rings.
    #[error("no memory for a trace ring of {kb_per_cpu} KB: free some, or use `--blame counters`")]
    NoMemory {
        /// What was asked for.
        kb_per_cpu: u32,
    },
    /// A CPU that is not there, or offline.
    #[error("CPU {cpu} has no trace: choose CPUs that are online, as listed in /sys/devices/system/cpu/online")]
    NoCpu {
        /// The CPU.
        cpu: u32,
    },
    /// Someone else holds it.
    #[error("another tracer uses {what} of the kernel's trace: end that one, or use `--blame counters`")]
    Busy {
        /// Which part.
        what: String,
    },
    /// The kernel lacks a part that is needed.
    #[error("this kernel's trace has no {what}: use Linux 4.14 or newer")]
    Missing {
        /// Which part.
        what: String,
    },
    /// The kernel answered with another error.
    #[error("the kernel refused {what} of its trace ({source}): use `--blame counters` instead")]
    Refused {
        /// Which part.
        what: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A description of records that cannot be understood.
    #[error(
        "the kernel describes {what} of its trace in a way that is not understood: please report it, with that file"
    )]
    Format {
        /// Which part.
        what: String,
    },
}

impl TraceError {
    /// What the kernel's answer to the use of a part of its trace means.
    pub(crate) fn of(what: impl Into<String>, source: io::Error) -> Self {
        let what = what.into();
        match Errno::from_io_error(&source) {
            Some(Errno::PERM | Errno::ACCESS) if is_locked_down() => Self::LockedDown,
            Some(Errno::PERM | Errno::ACCESS) => Self::Forbidden,
            Some(Errno::BUSY) => Self::Busy { what },
            Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => Self::Missing { what },
            _ => Self::Refused { what, source },
        }
    }
}

/// Whether lockdown keeps even root from the trace: `none integrity [confidentiality]`.
pub(crate) fn is_locked_down() -> bool {
    let path = Path::new("/sys/kernel/security/lockdown");
    fs::read_to_string(path).is_ok_and(|text| text.contains("[confidentiality]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_answers_becomes_one_sentence_with_a_remedy() {
        let told = |errno: Errno| TraceError::of("tracing_on", errno.into()).to_string();
        for (errno, expected) in [
            (
                Errno::BUSY,
                "another tracer uses tracing_on of the kernel's trace: end that one, or use `--blame counters`",
            ),
            (Errno::NODEV, "this kernel's trace has no tracing_on: use Linux 4.14 or newer"),
            (Errno::NOENT, "this kernel's trace has no tracing_on: use Linux 4.14 or newer"),
        ] {
            assert_eq!(told(errno), expected);
        }
        for errno in [Errno::ACCESS, Errno::PERM] {
            let expected = if is_locked_down() { "lockdown=integrity" } else { "run as root" };
            assert!(told(errno).contains(expected), "{}", told(errno));
        }
        assert!(told(Errno::INVAL).starts_with("the kernel refused tracing_on of its trace (Invalid argument"));
    }
}
