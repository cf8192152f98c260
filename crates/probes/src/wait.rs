//! How a thread waits for what comes over the network.

use std::fmt;

/// How a thread waits for what comes over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReceiveWait {
    /// It sleeps until the kernel wakes it.
    #[default]
    Block,
    /// It asks again and again.
    Spin,
    /// It sleeps, after the kernel has asked the driver for so long, ns.
    BusyPoll(u64),
}

impl ReceiveWait {
    /// As two options say it, of which one at most is given.
    #[must_use]
    pub fn of(spin: bool, busy_poll_ns: Option<u64>) -> Self {
        match busy_poll_ns {
            Some(ns) => Self::BusyPoll(ns),
            None if spin => Self::Spin,
            None => Self::Block,
        }
    }
}

impl fmt::Display for ReceiveWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block => f.write_str("block"),
            Self::Spin => f.write_str("spin"),
            Self::BusyPoll(ns) => write!(f, "busy-poll:{}us", ns.div_ceil(1000)),
        }
    }
}
