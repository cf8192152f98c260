//! Streams: a talker that is a timer with work to do, a listener beside it, on an interface or between two namespaces.
//!
//! | module | holds |
//! |---|---|
//! | `interface` | whether an interface can carry a stream |
//! | `prepare` | from a plan to a talker and a listener |
//! | `places` | where frames go out and come in |
//! | `sender`, `receiver` | what they go out by, and what they are taken from |
//! | [`offset`] | the wake-up offset that this machine needs |
//! | `observe` | the observer that captures it, and what its file tells |
//! | `error`, `xdp` | what can go wrong, each with its remedy |

mod error;
mod interface;
pub(crate) mod observe;
pub mod offset;
mod places;
mod prepare;
mod receiver;
mod sender;
mod xdp;

use frames::{Class, Format};
use machine::{CpuList, Root, nic::Launching};
use probes::{
    ReceiveWait,
    stream::{elsewhere::Elsewhere, transmit::TransmitMode},
};
use sys::sched::Policy;

pub use error::StreamError;
use interface::Interface;
pub use observe::CaptureTo;
pub use offset::WakeupOffset;
pub use xdp::{ListenXdp, XdpRefusal};

/// Highest number of a queue that can be asked for.
pub const QUEUE_MAX: u32 = 4095;
/// The part of the period, per cent, that a real-time talker may wake before its slot: the rest it must sleep.
pub const OFFSET_PERCENT: u64 = 95;

/// A stream that a run sends, receives, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPlan {
    /// The interface; `None` for both ends in network namespaces of their own, joined by a virtual cable.
    pub interface: Option<String>,
    /// Reservation class: priority, VLAN, samples a frame, transit time.
    pub class: Class,
    /// How samples are packed.
    pub format: Format,
    /// The talker, where this run has one. Its policy is [`Plan::policy`](crate::Plan::policy).
    pub talk: Option<TalkPlan>,
    /// The listener, where this run has one. Its policy is [`Plan::policy`](crate::Plan::policy).
    pub listen: Option<ListenPlan>,
    /// The queue of the interface that AF_XDP sends and receives on.
    pub queue: u32,
    /// Where an observer of its own captures it to meanwhile: where it comes in, or, if this machine only sends it, where it
    /// leaves.
    pub capture: Option<CaptureTo>,
}

/// A talker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TalkPlan {
    /// CPU it is pinned to; one of [`Plan::cpus`](crate::Plan::cpus).
    pub cpu: u32,
    /// How long before its slot it wakes; at most the period, or [`OFFSET_PERCENT`] of it where it spins until its slot under
    /// a real-time policy.
    pub offset: WakeupOffset,
    /// How frames go out.
    pub mode: TransmitMode,
    /// Tells its stream from others of the same address.
    pub unique_id: u16,
}

/// A listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenPlan {
    /// CPU it is pinned to; one of [`Plan::cpus`](crate::Plan::cpus).
    pub cpu: u32,
    /// Which stream to follow; `None` for the first that is found.
    pub stream_id: Option<u64>,
    /// How it waits for frames.
    pub wait: ReceiveWait,
    /// How it has AF_XDP; `None` for a socket of the network stack. Busy polling is of the socket alone.
    pub xdp: Option<ListenXdp>,
    /// The talker, where it is on another machine that tells us of it: the listener ends with it.
    pub talker: Option<Elsewhere>,
}

impl StreamPlan {
    /// Checks the interface, where one was named: without this nothing is sent on it.
    ///
    /// # Errors
    /// [`StreamError`].
    pub fn check(&self, root: &Root, period_ns: u64) -> Result<(), StreamError> {
        let Some(interface) = &self.interface else { return Ok(()) };
        let found = Interface::read(root, interface)?;
        if self.talk.is_none() {
            return Ok(());
        }
        if self.has_launch_times() {
            Launching::of(root, interface, self.class.tci().pcp)?;
        }
        found.carries(self.class.frame_bytes(self.format), period_ns)
    }

    /// The number that tells the stream from all others; `None` without a talker on an interface.
    ///
    /// # Errors
    /// [`StreamError`], where the interface can carry no stream.
    pub fn stream_id(&self, root: &Root) -> Result<Option<u64>, StreamError> {
        let Some((interface, talk)) = self.interface.as_deref().zip(self.talk.as_ref()) else { return Ok(None) };
        Ok(Some(frames::stream_id(Interface::read(root, interface)?.mac, talk.unique_id)))
    }

    /// Whether frames have launch times.
    pub(crate) fn has_launch_times(&self) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.mode == TransmitMode::Txtime)
    }

    /// Whether the talker wakes within the period before its slot, and sleeps in each where it must.
    pub(crate) fn offset_fits(&self, policy: Policy, period_ns: u64) -> bool {
        let keeps_slots = self.talk.as_ref().is_some_and(|talk| talk.mode.keeps_slots());
        let percent = if policy.is_realtime() && !keeps_slots { OFFSET_PERCENT } else { 100 };
        let most_ns = u128::from(period_ns) * u128::from(percent) / 100;
        u128::from(self.offset_ns()) <= most_ns
    }

    /// How long before its slot the talker wakes, ns; 0 without one, and while it is not known yet.
    fn offset_ns(&self) -> u64 {
        self.talk.as_ref().map_or(0, |talk| talk.offset.ns())
    }

    /// What is to be explained where nothing else is asked for, ns: a wake-up too late for its slot; without an offset, all
    /// above 100 us.
    pub(crate) fn threshold_at(&self, period_ns: u64) -> u64 {
        match self.offset_ns() {
            0 => period_ns.min(100_000),
            offset_ns => offset_ns + (period_ns / 100).max(1_000),
        }
    }
}

/// The CPU of a listener at the other end of a virtual cable: the last other than the talker's where there is one.
#[must_use]
pub fn listen_cpu(usable: &CpuList, talk_cpu: u32) -> u32 {
    usable.iter().rfind(|&cpu| cpu != talk_cpu).unwrap_or(talk_cpu)
}

/// `3064 3e54 ee01 0001`, `30:64:3e:54:ee:01:00:01`, `0x30643e54ee010001`: 16 hexadecimal digits with or without marks.
///
/// # Errors
/// What it must be, in words.
pub fn parse_stream_id(text: &str) -> Result<u64, String> {
    let digits: String = text.trim_start_matches("0x").chars().filter(|c| !": .-".contains(*c)).collect();
    let is_whole = digits.len() == 16 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let id = u64::from_str_radix(&digits, 16).ok().filter(|_| is_whole);
    id.ok_or_else(|| "must have 16 hexadecimal digits, as 30643e54ee010001".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_16_digits() {
        for text in ["30643e54ee010001", "0x30643E54EE010001", "30:64:3e:54:ee:01:00:01"] {
            assert_eq!(parse_stream_id(text), Ok(0x3064_3e54_ee01_0001));
        }
        for wrong in ["", "1", "30643e54ee0100010", "30643e54ee01000g", "+0643e54ee010001"] {
            assert!(parse_stream_id(wrong).is_err(), "{wrong}");
        }
    }
}
