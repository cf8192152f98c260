//! What the driver was told, as the generic family `ethtool` answers it. Numbers are those of `ethtool_netlink.h`.
//!
//! An attribute that is not there means that the driver does not know such a value.

use serde::Serialize;
use sys::{
    link::Link,
    netlink::{Attributes, Message},
};

use super::answers::{Answers, Question, To, Told};

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
    /// Mbit/s.
    pub speed_mbit: Option<u32>,
    /// Whether both directions are used at once.
    pub is_full_duplex: Option<bool>,
    /// Whether it was agreed on with the other side.
    pub autonegotiated: Option<bool>,
}

/// When the NIC raises an interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coalescing {
    /// After a frame has come, us.
    pub rx_usecs: Option<u32>,
    /// After so many frames.
    pub rx_frames: Option<u32>,
    /// After a frame was sent, us.
    pub tx_usecs: Option<u32>,
    /// After so many frames were sent.
    pub tx_frames: Option<u32>,
    /// Whether the driver changes the first by itself.
    pub adaptive_rx: Option<bool>,
    /// Whether the driver changes that of sending by itself.
    pub adaptive_tx: Option<bool>,
}

/// Energy-efficient Ethernet: the line sleeps between frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Eee {
    /// Both sides do it.
    pub is_active: Option<bool>,
    /// This side would.
    pub is_enabled: Option<bool>,
    /// Whether the line that we send on sleeps.
    pub sends_to_sleep: Option<bool>,
}

/// Pause frames: a full receiver stops the sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// Whether it is agreed on with the other side.
    pub autonegotiated: Option<bool>,
    /// Whether we obey them.
    pub rx: Option<bool>,
    /// Whether we send them.
    pub tx: Option<bool>,
}

/// Frames that can wait between NIC and driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rings {
    /// On their way in.
    pub rx: Option<u32>,
    /// The most that the NIC allows.
    pub rx_max: Option<u32>,
    /// On their way out.
    pub tx: Option<u32>,
    /// The most that the NIC allows.
    pub tx_max: Option<u32>,
}

/// Queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Channels {
    /// For receiving alone.
    pub rx: Option<u32>,
    /// For sending alone.
    pub tx: Option<u32>,
    /// For both.
    pub combined: Option<u32>,
    /// The most that there can be for both.
    pub combined_max: Option<u32>,
}

/// Offloads, by the kernel's names: `rx-gro`, `tx-tcp-segmentation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Features {
    /// In force.
    pub active: Vec<String>,
    /// Those that nobody can change.
    pub fixed: Vec<String>,
}

/// Time stamps that the interface can take, by the kernel's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stamping {
    /// `hardware-transmit`, `software-receive`, …
    pub capabilities: Vec<String>,
    /// `off`, `on`, `onestep-sync`.
    pub tx_types: Vec<String>,
    /// Frames that can be stamped on arrival: `none`, `all`, `ptpv2-event`.
    pub rx_filters: Vec<String>,
    /// The number of its clock, N of `/dev/ptpN`.
    pub phc: Option<u32>,
}

/// Frame preemption (IEEE 802.3br): long frames make way for urgent ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preemption {
    /// Whether it was asked for.
    pub is_enabled: Option<bool>,
    /// Whether the other side takes part.
    pub is_active: Option<bool>,
}

pub(super) fn mode(answers: &mut Answers, link: &Link) -> Told<Mode> {
    // The greatest values stand for unknown.
    ask(answers, link, "linkmodes", LINKMODES_GET, |mode| Mode {
        speed_mbit: mode.u32(5).filter(|&speed| speed != u32::MAX && speed != 0),
        is_full_duplex: mode.u8(6).filter(|&duplex| duplex <= 1).map(|duplex| duplex == 1),
        autonegotiated: mode.flag(2),
    })
}

pub(super) fn coalescing(answers: &mut Answers, link: &Link) -> Told<Coalescing> {
    ask(answers, link, "coalesce", COALESCE_GET, |values| Coalescing {
        rx_usecs: values.u32(2),
        rx_frames: values.u32(3),
        tx_usecs: values.u32(6),
        tx_frames: values.u32(7),
        adaptive_rx: values.flag(11),
        adaptive_tx: values.flag(12),
    })
}

pub(super) fn eee(answers: &mut Answers, link: &Link) -> Told<Eee> {
    ask(answers, link, "eee", EEE_GET, |eee| Eee {
        is_active: eee.flag(4),
        is_enabled: eee.flag(5),
        sends_to_sleep: eee.flag(6),
    })
}

pub(super) fn pause(answers: &mut Answers, link: &Link) -> Told<Pause> {
    ask(answers, link, "pause", PAUSE_GET, |pause| Pause {
        autonegotiated: pause.flag(2),
        rx: pause.flag(3),
        tx: pause.flag(4),
    })
}

pub(super) fn rings(answers: &mut Answers, link: &Link) -> Told<Rings> {
    ask(answers, link, "rings", RINGS_GET, |rings| Rings {
        rx: rings.u32(6),
        rx_max: rings.u32(2),
        tx: rings.u32(9),
        tx_max: rings.u32(5),
    })
}

pub(super) fn channels(answers: &mut Answers, link: &Link) -> Told<Channels> {
    ask(answers, link, "channels", CHANNELS_GET, |channels| Channels {
        rx: channels.u32(6),
        tx: channels.u32(7),
        combined: channels.u32(9),
        combined_max: channels.u32(5),
    })
}

pub(super) fn features(answers: &mut Answers, link: &Link) -> Told<Features> {
    let told = ask(answers, link, "features", FEATURES_GET, |features| {
        Some(Features { active: names(features, 4)?, fixed: names(features, 5).unwrap_or_default() })
    });
    match told {
        Told::Known(Some(features)) => Told::Known(features),
        Told::Known(None) => Told::Unknown("the kernel tells no features".to_owned()),
        Told::NotSupported => Told::NotSupported,
        Told::Unknown(why) => Told::Unknown(why),
    }
}

pub(super) fn stamping(answers: &mut Answers, link: &Link) -> Told<Stamping> {
    ask(answers, link, "tsinfo", TSINFO_GET, |stamps| Stamping {
        capabilities: names(stamps, 2).unwrap_or_default(),
        tx_types: names(stamps, 3).unwrap_or_default(),
        rx_filters: names(stamps, 4).unwrap_or_default(),
        phc: stamps.u32(5),
    })
}

pub(super) fn preemption(answers: &mut Answers, link: &Link) -> Told<Preemption> {
    ask(answers, link, "mm", MM_GET, |mac| Preemption { is_enabled: mac.flag(3), is_active: mac.flag(4) })
}

fn ask<T>(
    answers: &mut Answers,
    link: &Link,
    name: &'static str,
    command: u8,
    read: impl FnOnce(&Attributes) -> T,
) -> Told<T> {
    let first = |messages: &[Message]| Some(read(&messages.first()?.generic().ok()?.1));
    answers.told(Question { name, to: To::Ethtool(command) }, link, first)
}

/// The names of the bits that are set in a bit set: those with a value, or all that stand in one without a mask.
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
