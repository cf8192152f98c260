//! What about an interface can be set: one value each, read and written over the generic family `ethtool`.

use std::{io, str::FromStr};

use serde::{Deserialize, Serialize};
use sys::{
    hwstamp,
    netlink::{Request, Socket},
};

use super::{
    answers::{Answers, Told, to_interface},
    ethtool,
};
use crate::Root;

const FEATURES_SET: u8 = 12;
const RINGS_SET: u8 = 16;
const COALESCE_SET: u8 = 20;
const PAUSE_SET: u8 = 22;
const EEE_SET: u8 = 24;

/// A value of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// Delay of receive interrupts, us.
    RxUsecs,
    /// Whether the driver changes that by itself.
    AdaptiveRx,
    /// Energy-efficient Ethernet.
    Eee,
    /// Whether pause frames are agreed on with the other side.
    PauseAutoneg,
    /// Whether pause frames are obeyed.
    PauseRx,
    /// Whether pause frames are sent.
    PauseTx,
    /// Length of the receive ring, frames.
    RxRing,
    /// Joining of received packets.
    Gro,
    /// The same by the NIC.
    Lro,
    /// Cutting of long segments by the NIC.
    Tso,
    /// Which received frames the NIC stamps, by the kernel's number.
    RxFilter,
    /// Which sent frames it stamps, by the kernel's number.
    TxType,
}

/// A number, or on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// Microseconds, or frames.
    Number(u32),
}

impl FromStr for Value {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(Self::Switch(true)),
            "off" => Ok(Self::Switch(false)),
            _ => text.parse().map(Self::Number).map_err(|_| format!("{text:?} is neither a number nor on or off")),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Switch(true) => f.write_str("on"),
            Self::Switch(false) => f.write_str("off"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

impl Knob {
    /// As ethtool calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RxUsecs => "rx-usecs",
            Self::AdaptiveRx => "adaptive-rx",
            Self::Eee => "eee",
            Self::PauseAutoneg => "pause autoneg",
            Self::PauseRx => "pause rx",
            Self::PauseTx => "pause tx",
            Self::RxRing => "ring rx",
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::Tso => "tso",
            Self::RxFilter => "rx-filter",
            Self::TxType => "tx-type",
        }
    }

    /// Whether it takes a number.
    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::RxUsecs | Self::RxRing | Self::RxFilter | Self::TxType)
    }

    /// The kernel's name, where it is an offload.
    fn feature(self) -> Option<&'static str> {
        match self {
            Self::Gro => Some("rx-gro"),
            Self::Lro => Some("rx-lro"),
            Self::Tso => Some("tx-tcp-segmentation"),
            _ => None,
        }
    }

    /// The value now.
    ///
    /// # Errors
    /// `NotFound` where there is no such interface, `Unsupported` where its driver knows no such value, and what else the
    /// kernel answered.
    pub(crate) fn read(self, interface: &str) -> io::Result<Value> {
        let mut answers = Answers::of(&Root::system());
        let found = answers.link(interface).map_err(io::Error::other)?;
        let (link, _) = found.ok_or(io::ErrorKind::NotFound)?;
        let switch = |value: Option<bool>| value.map(Value::Switch);
        let number = |value: Option<u32>| value.map(Value::Number);
        let answers = &mut answers;
        let value = match self {
            Self::RxUsecs => told(ethtool::coalescing(answers, &link))?.and_then(|values| number(values.rx_usecs)),
            Self::AdaptiveRx => {
                told(ethtool::coalescing(answers, &link))?.and_then(|values| switch(values.adaptive_rx))
            }
            Self::Eee => told(ethtool::eee(answers, &link))?.and_then(|eee| switch(eee.is_enabled)),
            Self::PauseAutoneg => told(ethtool::pause(answers, &link))?.and_then(|pause| switch(pause.autonegotiated)),
            Self::PauseRx => told(ethtool::pause(answers, &link))?.and_then(|pause| switch(pause.rx)),
            Self::PauseTx => told(ethtool::pause(answers, &link))?.and_then(|pause| switch(pause.tx)),
            Self::RxRing => told(ethtool::rings(answers, &link))?.and_then(|rings| number(rings.rx)),
            Self::Gro | Self::Lro | Self::Tso => told(ethtool::features(answers, &link))?.map(|features| {
                Value::Switch(features.active.iter().any(|name| Some(name.as_str()) == self.feature()))
            }),
            Self::RxFilter => number(Some(hwstamp::stamping(interface)?.rx_filter)),
            Self::TxType => number(Some(hwstamp::stamping(interface)?.tx_type)),
        };
        value.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Sets it. Whether the driver has taken it is to be read afterwards.
    ///
    /// # Errors
    /// EPERM without CAP_NET_ADMIN, `Unsupported` where the driver takes no such value, and what else the kernel answered.
    pub(crate) fn write(self, interface: &str, value: Value) -> io::Result<()> {
        if let (Self::RxFilter | Self::TxType, Value::Number(number)) = (self, value) {
            // Both go together.
            let mut stamping = hwstamp::stamping(interface)?;
            let one = if self == Self::RxFilter { &mut stamping.rx_filter } else { &mut stamping.tx_type };
            *one = number;
            return hwstamp::set_stamping(interface, stamping).map(|_| ());
        }
        let mut socket = Socket::generic()?;
        let family = socket.family("ethtool")?;
        let request = self.request(family, interface, value).ok_or(io::ErrorKind::Unsupported)?;
        socket.ask(&request)?.messages()?;
        Ok(())
    }

    /// `None` for what the family does not set.
    fn request(self, family: u16, interface: &str, value: Value) -> Option<Request> {
        let command = match self {
            Self::RxUsecs | Self::AdaptiveRx => COALESCE_SET,
            Self::Eee => EEE_SET,
            Self::PauseAutoneg | Self::PauseRx | Self::PauseTx => PAUSE_SET,
            Self::RxRing => RINGS_SET,
            Self::Gro | Self::Lro | Self::Tso => FEATURES_SET,
            Self::RxFilter | Self::TxType => return None,
        };
        let request = to_interface(Request::generic(family, command), interface);
        if let Some(feature) = self.feature() {
            let wanted =
                |wanted: Request| wanted.nested(3, |bits| bits.nested(1, |bit| wanted_bit(bit, feature, value)));
            return Some(request.nested(3, wanted));
        }
        let kind = match self {
            Self::RxUsecs | Self::PauseAutoneg => 2,
            Self::AdaptiveRx => 11,
            Self::Eee => 5,
            Self::PauseRx => 3,
            Self::PauseTx => 4,
            _ => 6,
        };
        Some(match value {
            Value::Switch(on) => request.u8(kind, u8::from(on)),
            Value::Number(number) => request.u32(kind, number),
        })
    }
}

/// A bit by its name, set where it has a value.
fn wanted_bit(bit: Request, feature: &str, value: Value) -> Request {
    let bit = bit.text(2, feature);
    if value == Value::Switch(true) { bit.bytes_of(3, &[]) } else { bit }
}

fn told<T>(told: Told<T>) -> io::Result<Option<T>> {
    match told {
        Told::Known(value) => Ok(Some(value)),
        Told::NotSupported => Ok(None),
        Told::Unknown(why) => Err(io::Error::other(why)),
    }
}
