//! Methods of waiting for datagrams and frames.

use std::fmt;

/// A method of waiting for datagrams and frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReceiveWait {
    /// Sleeps until the kernel wakes the thread.
    #[default]
    Block,
    /// Polls continuously.
    Spin,
    /// Lets the kernel poll the driver for this long, ns, and then sleeps.
    BusyPoll(u64),
}

impl ReceiveWait {
    /// Combines two options, at most one of which may be given.
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
