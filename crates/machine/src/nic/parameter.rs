//! The parameters of an interface that can be changed, read and written over the generic netlink family `ethtool`.

use std::{io, str::FromStr};

use serde::{Deserialize, Serialize};
use sys::{
    hwstamp,
    netlink::{Request, Socket},
};

use super::{
    answers::{Answers, Reading, to_interface},
    ethtool,
};
use crate::Root;

const FEATURES_SET: u8 = 12;
const RINGS_SET: u8 = 16;
const COALESCE_SET: u8 = 20;
const PAUSE_SET: u8 = 22;
const EEE_SET: u8 = 24;

/// A parameter of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parameter {
    /// Delay of receive interrupts, us.
    RxUsecs,
    /// Number of received frames in one interrupt.
    RxFrames,
    /// Delay of send interrupts, us.
    TxUsecs,
    /// Number of sent frames in one interrupt.
    TxFrames,
    /// Adaptive coalescing: the driver changes the delay dynamically.
    AdaptiveRx,
    /// Energy-efficient Ethernet.
    Eee,
    /// Autonegotiation of pause frames.
    PauseAutoneg,
    /// Reaction to received pause frames.
    PauseRx,
    /// Transmission of pause frames.
    PauseTx,
    /// Length of the receive ring, frames.
    RxRing,
    /// Generic receive offload: the kernel joins received packets.
    Gro,
    /// Large receive offload: the NIC joins received packets.
    Lro,
    /// TCP segmentation offload: the NIC splits long segments.
    Tso,
    /// The received frames that the NIC stamps, as a number of the kernel.
    RxFilter,
    /// The sent frames that the NIC stamps, as a number of the kernel.
    TxType,
}

/// The value of a parameter: a number, or on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// Microseconds, frames, or a number of the kernel.
    Number(u32),
}

impl FromStr for Value {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(Self::Switch(true)),
            "off" => Ok(Self::Switch(false)),
            _ => text.parse().map(Self::Number).map_err(|_| {
                let digits = text.strip_prefix('-').unwrap_or(text);
                match !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    true => format!("must be 0 to {} (got {text})", u32::MAX),
                    false => format!("{text:?} is neither a number nor on or off"),
                }
            }),
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

impl Parameter {
    /// The name in the output of ethtool.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RxUsecs => "rx-usecs",
            Self::RxFrames => "rx-frames",
            Self::TxUsecs => "tx-usecs",
            Self::TxFrames => "tx-frames",
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

    /// True if its value is a number.
    pub(super) fn is_number(self) -> bool {
        match self {
            Self::RxUsecs
            | Self::RxFrames
            | Self::TxUsecs
            | Self::TxFrames
            | Self::RxRing
            | Self::RxFilter
            | Self::TxType => true,
            Self::AdaptiveRx
            | Self::Eee
            | Self::PauseAutoneg
            | Self::PauseRx
            | Self::PauseTx
            | Self::Gro
            | Self::Lro
            | Self::Tso => false,
        }
    }

    /// The kernel's name of an offload; `None` for other parameters.
    fn feature(self) -> Option<&'static str> {
        match self {
            Self::Gro => Some("rx-gro"),
            Self::Lro => Some("rx-lro"),
            Self::Tso => Some("tx-tcp-segmentation"),
            Self::RxUsecs
            | Self::RxFrames
            | Self::TxUsecs
            | Self::TxFrames
            | Self::AdaptiveRx
            | Self::Eee
            | Self::PauseAutoneg
            | Self::PauseRx
            | Self::PauseTx
            | Self::RxRing
            | Self::RxFilter
            | Self::TxType => None,
        }
    }

    /// Reads the current value.
    ///
    /// # Errors
    /// `NotFound` if there is no such interface, `Unsupported` if its driver does not support the parameter, or the
    /// kernel's error.
    pub(crate) fn read(self, interface: &str) -> io::Result<Value> {
        let mut answers = Answers::of(&Root::system());
        let found = answers.link(interface).map_err(io::Error::other)?;
        let (link, _) = found.ok_or(io::ErrorKind::NotFound)?;
        let switch = |value: Option<bool>| value.map(Value::Switch);
        let number = |value: Option<u32>| value.map(Value::Number);
        let answers = &mut answers;
        let coalescing = |answers: &mut Answers| supported(ethtool::coalescing(answers, &link));
        let value = match self {
            Self::RxUsecs => coalescing(answers)?.and_then(|values| number(values.rx_usecs)),
            Self::RxFrames => coalescing(answers)?.and_then(|values| number(values.rx_frames)),
            Self::TxUsecs => coalescing(answers)?.and_then(|values| number(values.tx_usecs)),
            Self::TxFrames => coalescing(answers)?.and_then(|values| number(values.tx_frames)),
            Self::AdaptiveRx => coalescing(answers)?.and_then(|values| switch(values.adaptive_rx)),
            Self::Eee => supported(ethtool::eee(answers, &link))?.and_then(|eee| switch(eee.is_enabled)),
            Self::PauseAutoneg => {
                supported(ethtool::pause(answers, &link))?.and_then(|pause| switch(pause.autonegotiated))
            }
            Self::PauseRx => supported(ethtool::pause(answers, &link))?.and_then(|pause| switch(pause.rx)),
            Self::PauseTx => supported(ethtool::pause(answers, &link))?.and_then(|pause| switch(pause.tx)),
            Self::RxRing => supported(ethtool::rings(answers, &link))?.and_then(|rings| number(rings.rx)),
            Self::Gro | Self::Lro | Self::Tso => supported(ethtool::features(answers, &link))?.map(|features| {
                Value::Switch(features.active.iter().any(|name| Some(name.as_str()) == self.feature()))
            }),
            Self::RxFilter => number(Some(hwstamp::stamping(interface)?.rx_filter)),
            Self::TxType => number(Some(hwstamp::stamping(interface)?.tx_type)),
        };
        value.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Changes the value. The caller must read it back, because a driver may set another value.
    ///
    /// # Errors
    /// EPERM without CAP_NET_ADMIN, `Unsupported` if the parameter cannot be changed, or the kernel's error.
    pub(crate) fn write(self, interface: &str, value: Value) -> io::Result<()> {
        if let (Self::RxFilter | Self::TxType, Value::Number(number)) = (self, value) {
            // The kernel sets both together.
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

    /// Builds the request; `None` for parameters that the family does not set.
    fn request(self, family: u16, interface: &str, value: Value) -> Option<Request> {
        let request = |command: u8| to_interface(Request::generic(family, command), interface);
        let with_value = |command: u8, attribute: u16| match value {
            Value::Switch(on) => request(command).u8(attribute, u8::from(on)),
            Value::Number(number) => request(command).u32(attribute, number),
        };
        let with_feature = |feature: &str| {
            let wanted =
                |wanted: Request| wanted.nested(3, |bits| bits.nested(1, |bit| wanted_bit(bit, feature, value)));
            request(FEATURES_SET).nested(3, wanted)
        };
        match self {
            Self::RxUsecs => Some(with_value(COALESCE_SET, 2)),
            Self::RxFrames => Some(with_value(COALESCE_SET, 3)),
            Self::TxUsecs => Some(with_value(COALESCE_SET, 6)),
            Self::TxFrames => Some(with_value(COALESCE_SET, 7)),
            Self::AdaptiveRx => Some(with_value(COALESCE_SET, 11)),
            Self::Eee => Some(with_value(EEE_SET, 5)),
            Self::PauseAutoneg => Some(with_value(PAUSE_SET, 2)),
            Self::PauseRx => Some(with_value(PAUSE_SET, 3)),
            Self::PauseTx => Some(with_value(PAUSE_SET, 4)),
            Self::RxRing => Some(with_value(RINGS_SET, 6)),
            Self::Gro | Self::Lro | Self::Tso => self.feature().map(with_feature),
            Self::RxFilter | Self::TxType => None,
        }
    }
}

/// Adds a bit by its name; it has a value attribute if it must be set.
fn wanted_bit(bit: Request, feature: &str, value: Value) -> Request {
    let bit = bit.text(2, feature);
    if value == Value::Switch(true) { bit.bytes_of(3, &[]) } else { bit }
}

fn supported<T>(reading: Reading<T>) -> io::Result<Option<T>> {
    match reading {
        Reading::Known(value) => Ok(Some(value)),
        Reading::NotSupported => Ok(None),
        Reading::Unknown(why) => Err(io::Error::other(why)),
    }
}
