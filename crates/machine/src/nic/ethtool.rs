//! Settings of the driver, from the generic family `ethtool`. Numbers are those of `ethtool_netlink.h`.
//!
//! A missing attribute means that the driver does not support the setting.

use serde::Serialize;
use sys::{
    link::Link,
    netlink::{Attributes, Message},
};

use super::answers::{Answers, Query, Reading, Target};

const LINKMODES_GET: u8 = 4;
const FEATURES_GET: u8 = 11;
const RINGS_GET: u8 = 15;
const CHANNELS_GET: u8 = 17;
const COALESCE_GET: u8 = 19;
const PAUSE_GET: u8 = 21;
const EEE_GET: u8 = 23;
const TSINFO_GET: u8 = 25;
const MM_GET: u8 = 42;

/// Speed and duplex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mode {
    /// Speed, Mbit/s.
    pub speed_mbit: Option<u32>,
    /// True for full duplex.
    pub is_full_duplex: Option<bool>,
    /// True if autonegotiation is on.
    pub autonegotiated: Option<bool>,
}

/// Interrupt coalescing: the delay of interrupts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coalescing {
    /// Delay after a received frame, us.
    pub rx_usecs: Option<u32>,
    /// Limit of received frames before the interrupt.
    pub rx_frames: Option<u32>,
    /// Delay after a sent frame, us.
    pub tx_usecs: Option<u32>,
    /// Limit of sent frames before the interrupt.
    pub tx_frames: Option<u32>,
    /// True if the driver changes the receive delay dynamically.
    pub adaptive_rx: Option<bool>,
    /// True if the driver changes the send delay dynamically.
    pub adaptive_tx: Option<bool>,
}

/// Energy-efficient Ethernet: the link sleeps between frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Eee {
    /// True if both sides use it.
    pub is_active: Option<bool>,
    /// True if it is enabled on this side.
    pub is_enabled: Option<bool>,
    /// True if the transmit direction may sleep.
    pub sends_to_sleep: Option<bool>,
}

/// Pause frames: a full receiver stops the sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// True if autonegotiation decides.
    pub autonegotiated: Option<bool>,
    /// True if received pause frames stop our sender.
    pub rx: Option<bool>,
    /// True if we send them.
    pub tx: Option<bool>,
}

/// Sizes of the rings between NIC and driver, frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rings {
    /// Receive ring.
    pub rx: Option<u32>,
    /// Largest receive ring.
    pub rx_max: Option<u32>,
    /// Send ring.
    pub tx: Option<u32>,
    /// Largest send ring.
    pub tx_max: Option<u32>,
}

/// Numbers of queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Channels {
    /// Queues for receiving only.
    pub rx: Option<u32>,
    /// Queues for sending only.
    pub tx: Option<u32>,
    /// Queues for both directions.
    pub combined: Option<u32>,
    /// Largest number of queues for both directions.
    pub combined_max: Option<u32>,
}

/// Offloads, by the kernel's names: `rx-gro`, `tx-tcp-segmentation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Features {
    /// Enabled offloads.
    pub active: Vec<String>,
    /// Offloads that cannot be changed.
    pub fixed: Vec<String>,
}

/// Supported timestamps, by the kernel's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stamping {
    /// `hardware-transmit`, `software-receive`, …
    pub capabilities: Vec<String>,
    /// `off`, `on`, `onestep-sync`.
    pub tx_types: Vec<String>,
    /// Received frames that can be stamped: `none`, `all`, `ptpv2-event`.
    pub rx_filters: Vec<String>,
    /// Number of its clock: N of `/dev/ptpN`.
    pub phc: Option<u32>,
}

/// Frame preemption (IEEE 802.3br): urgent frames interrupt long ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preemption {
    /// True if it is enabled.
    pub is_enabled: Option<bool>,
    /// True if the link partner uses it, too.
    pub is_active: Option<bool>,
}

pub(super) fn mode(answers: &mut Answers, link: &Link) -> Reading<Mode> {
    // The largest value and 0 mean unknown.
    ask(answers, link, "linkmodes", LINKMODES_GET, |mode| Mode {
        speed_mbit: mode.u32(5).filter(|&speed| speed != u32::MAX && speed != 0),
        is_full_duplex: mode.u8(6).filter(|&duplex| duplex <= 1).map(|duplex| duplex == 1),
        autonegotiated: mode.flag(2),
    })
}

pub(super) fn coalescing(answers: &mut Answers, link: &Link) -> Reading<Coalescing> {
    ask(answers, link, "coalesce", COALESCE_GET, |values| Coalescing {
        rx_usecs: values.u32(2),
        rx_frames: values.u32(3),
        tx_usecs: values.u32(6),
        tx_frames: values.u32(7),
        adaptive_rx: values.flag(11),
        adaptive_tx: values.flag(12),
    })
}

pub(super) fn eee(answers: &mut Answers, link: &Link) -> Reading<Eee> {
    ask(answers, link, "eee", EEE_GET, |eee| Eee {
        is_active: eee.flag(4),
        is_enabled: eee.flag(5),
        sends_to_sleep: eee.flag(6),
    })
}

pub(super) fn pause(answers: &mut Answers, link: &Link) -> Reading<Pause> {
    ask(answers, link, "pause", PAUSE_GET, |pause| Pause {
        autonegotiated: pause.flag(2),
        rx: pause.flag(3),
        tx: pause.flag(4),
    })
}

pub(super) fn rings(answers: &mut Answers, link: &Link) -> Reading<Rings> {
    ask(answers, link, "rings", RINGS_GET, |rings| Rings {
        rx: rings.u32(6),
        rx_max: rings.u32(2),
        tx: rings.u32(9),
        tx_max: rings.u32(5),
    })
}

pub(super) fn channels(answers: &mut Answers, link: &Link) -> Reading<Channels> {
    ask(answers, link, "channels", CHANNELS_GET, |channels| Channels {
        rx: channels.u32(6),
        tx: channels.u32(7),
        combined: channels.u32(9),
        combined_max: channels.u32(5),
    })
}

pub(super) fn features(answers: &mut Answers, link: &Link) -> Reading<Features> {
    let reading = ask(answers, link, "features", FEATURES_GET, |features| {
        Some(Features { active: names(features, 4)?, fixed: names(features, 5).unwrap_or_default() })
    });
    match reading {
        Reading::Known(Some(features)) => Reading::Known(features),
        Reading::Known(None) => Reading::Unknown("the kernel reports no features".to_owned()),
        Reading::NotSupported => Reading::NotSupported,
        Reading::Unknown(why) => Reading::Unknown(why),
    }
}

pub(super) fn stamping(answers: &mut Answers, link: &Link) -> Reading<Stamping> {
    ask(answers, link, "tsinfo", TSINFO_GET, |stamps| Stamping {
        capabilities: names(stamps, 2).unwrap_or_default(),
        tx_types: names(stamps, 3).unwrap_or_default(),
        rx_filters: names(stamps, 4).unwrap_or_default(),
        phc: stamps.u32(5),
    })
}

pub(super) fn preemption(answers: &mut Answers, link: &Link) -> Reading<Preemption> {
    ask(answers, link, "mm", MM_GET, |mac| Preemption { is_enabled: mac.flag(3), is_active: mac.flag(4) })
}

fn ask<T>(
    answers: &mut Answers,
    link: &Link,
    name: &'static str,
    command: u8,
    read: impl FnOnce(&Attributes) -> T,
) -> Reading<T> {
    let first = |messages: &[Message]| Some(read(&messages.first()?.generic().ok()?.1));
    answers.query(Query { name, target: Target::Ethtool(command) }, link, first)
}

/// The names of the set bits of a bit set: bits with a value, or every bit of a set without a mask.
fn names(attributes: &Attributes, kind: u16) -> Option<Vec<String>> {
    const NOMASK: u16 = 1;
    const BITS: u16 = 3;
    const BIT_NAME: u16 = 2;
    const BIT_VALUE: u16 = 3;
    let set = attributes.nested(kind)?;
    let is_list = set.get(NOMASK).is_some();
    let Some(bits) = set.get(BITS) else { return Some(Vec::new()) };
    let name = |bit: Attributes| {
        let is_set = is_list || bit.get(BIT_VALUE).is_some();
        bit.text(BIT_NAME).filter(|_| is_set)
    };
    let bits = bits.nested().ok()?;
    Some(bits.iter().filter_map(|bit| name(bit.nested().ok()?)).collect())
}
