//! PTP management messages as bytes: requests to ptp4l, and its responses. Length and contents of a response are
//! checked, never trusted.
//!
//! The layout follows IEEE 1588-2008, clauses 13.3 and 15; linuxptp's additions were observed on version 3.1.1.

use std::fmt;

/// Length of the header and of the management fields after it, bytes.
const FIXED: usize = 48;
/// Length of a TLV's type, length and data set number, bytes.
const TLV_HEADER: usize = 6;
/// Length of a request: the fixed part and the header of an empty TLV, bytes.
const REQUEST_LENGTH: u16 = 54;
const MESSAGE_MANAGEMENT: u8 = 0xd;
const ACTION_GET: u8 = 0;
const ACTION_RESPONSE: u8 = 2;
const TLV_MANAGEMENT: u16 = 1;
const TLV_ERROR: u16 = 2;

/// A data set of a PTP clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum DataSet {
    /// The clock: identity and number of ports.
    Default = 0x2000,
    /// The offset from the master.
    Current = 0x2001,
    /// The master and the grandmaster.
    Parent = 0x2002,
    /// The time scale.
    TimeProperties = 0x2003,
    /// The state of each port.
    Port = 0x2004,
    /// The interface and the timestamping of each port.
    PortProperties = 0xc004,
}

/// The contents of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// The clock.
    Default {
        /// The number of its ports.
        ports: u16,
        /// Its identity.
        identity: Identity,
    },
    /// The offset from the master.
    Current {
        /// Boundary clocks up to the grandmaster (stepsRemoved).
        steps: u16,
        /// Offset from the master, ns, rounded away from 0.
        offset_ns: i64,
        /// Mean path delay, ns, rounded away from 0.
        path_delay_ns: i64,
    },
    /// The master and the grandmaster.
    Parent {
        /// The grandmaster's identity.
        grandmaster: Identity,
    },
    /// The time scale.
    TimeProperties {
        /// Offset of TAI from UTC, s.
        utc_offset_s: i16,
        /// True if the time scale is TAI.
        is_tai: bool,
    },
    /// The state of a port.
    Port {
        /// Port number.
        number: u16,
        /// Number of its state; see [`state_name`].
        state: u8,
        /// Mean path delay to the neighbour, ns, rounded away from 0; 0 if it is not measured.
        peer_delay_ns: i64,
    },
    /// The interface and the timestamping of a port.
    PortProperties {
        /// Port number.
        number: u16,
        /// True if the network card takes the timestamps.
        stamps_in_hardware: bool,
        /// Name of the interface.
        interface: String,
    },
    /// ptp4l returned an error instead of the data set.
    Refused,
}

/// The identity of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity([u8; 8]);

impl fmt::Display for Identity {
    /// Formats it as linuxptp does: `5a666e.fffe.d25bdc`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}.{d:02x}{e:02x}.{g:02x}{h:02x}{i:02x}")
    }
}

/// The PTP instance that a request goes to or a response comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// PTP domain.
    pub domain: u8,
    /// True for a gPTP instance, which only accepts gPTP messages.
    pub is_gptp: bool,
}

impl Address {
    /// Builds a request for a data set of the clock, or of all its ports.
    #[must_use]
    pub fn request(self, data_set: DataSet) -> Vec<u8> {
        let mut bytes = vec![0; FIXED];
        bytes[0] = u8::from(self.is_gptp) << 4 | MESSAGE_MANAGEMENT;
        bytes[1] = 2;
        bytes[2..4].copy_from_slice(&REQUEST_LENGTH.to_be_bytes());
        bytes[4] = self.domain;
        bytes[30..32].copy_from_slice(&(data_set as u16).to_be_bytes());
        // The control field of management messages and an unspecified interval; then all clocks and all ports.
        bytes[32..34].copy_from_slice(&[4, 0x7f]);
        bytes[34..44].fill(0xff);
        bytes[46] = ACTION_GET;
        bytes.extend(TLV_MANAGEMENT.to_be_bytes());
        bytes.extend(2_u16.to_be_bytes());
        bytes.extend((data_set as u16).to_be_bytes());
        bytes
    }
}

/// A response of ptp4l.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The instance that sent it.
    pub address: Address,
    /// The requested data set.
    pub data_set: DataSet,
    /// Its contents.
    pub contents: Contents,
}

impl Response {
    /// Parses a datagram; `None` if it is truncated or not a response to one of our requests.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let message = Bytes(bytes);
        let message = Bytes(bytes.get(..usize::from(message.u16(2)?))?);
        let (kind, action) = (message.u8(0)?, message.u8(46)? & 0xf);
        let is_response = kind & 0xf == MESSAGE_MANAGEMENT && message.u8(1)? & 0xf == 2 && action == ACTION_RESPONSE;
        // An error TLV contains its reason before the number of the data set.
        let (data_set_at, has_data) = match message.u16(FIXED)? {
            TLV_MANAGEMENT => (FIXED + 4, true),
            TLV_ERROR => (FIXED + 6, false),
            _ => return None,
        };
        let data_set = DataSet::of(message.u16(data_set_at)?)?;
        let tlv_end = FIXED + 4 + usize::from(message.u16(FIXED + 2)?);
        let contents = if has_data {
            data_set.read(&Bytes(message.0.get(FIXED + TLV_HEADER..tlv_end)?))?
        } else {
            Contents::Refused
        };
        // A response has the sequence number of its request, which is the number of the data set.
        let is_ours = is_response && message.u16(30)? == data_set as u16;
        is_ours.then_some(())?;
        Some(Self { address: Address { domain: message.u8(4)?, is_gptp: kind >> 4 == 1 }, data_set, contents })
    }
}

impl DataSet {
    const ALL: [Self; 6] =
        [Self::Default, Self::Current, Self::Parent, Self::TimeProperties, Self::Port, Self::PortProperties];

    fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|&set| set as u16 == number)
    }

    fn read(self, data: &Bytes) -> Option<Contents> {
        Some(match self {
            Self::Default => Contents::Default { ports: data.u16(2)?, identity: data.identity(10)? },
            Self::Current => {
                let (offset_ns, path_delay_ns) = (data.interval(2)?, data.interval(10)?);
                Contents::Current { steps: data.u16(0)?, offset_ns, path_delay_ns }
            }
            Self::Parent => Contents::Parent { grandmaster: data.identity(24)? },
            Self::TimeProperties => {
                let is_tai = data.u8(2)? & 1 << 3 != 0;
                Contents::TimeProperties { utc_offset_s: data.u16(0)?.cast_signed(), is_tai }
            }
            Self::Port => {
                Contents::Port { number: data.u16(8)?, state: data.u8(10)?, peer_delay_ns: data.interval(12)? }
            }
            Self::PortProperties => {
                let length = usize::from(data.u8(12)?);
                let name = String::from_utf8_lossy(data.0.get(13..13 + length)?);
                let interface = name.trim_end_matches('\0').to_owned();
                Contents::PortProperties { number: data.u16(8)?, stamps_in_hardware: data.u8(11)? != 0, interface }
            }
        })
    }
}

/// The name of a port state in IEEE 1588-2008, clause 8.2.5.3.1; 10 is linuxptp's own.
#[must_use]
pub fn state_name(state: u8) -> String {
    const NAMES: [&str; 10] = [
        "INITIALIZING",
        "FAULTY",
        "DISABLED",
        "LISTENING",
        "PRE_MASTER",
        "MASTER",
        "PASSIVE",
        "UNCALIBRATED",
        "SLAVE",
        "GRAND_MASTER",
    ];
    let name = usize::from(state).checked_sub(1).and_then(|at| NAMES.get(at));
    name.map_or_else(|| format!("of unknown state {state}"), |&name| name.to_owned())
}

/// Big-endian values at byte offsets.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    fn u8(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_be_bytes)
    }

    fn identity(&self, at: usize) -> Option<Identity> {
        self.array(at).map(Identity)
    }

    /// Converts a TimeInterval (2^-16 ns) to ns, rounded away from 0 so that no error is understated.
    fn interval(&self, at: usize) -> Option<i64> {
        let scaled = i64::from_be_bytes(self.array(at)?);
        let ns = scaled.unsigned_abs().div_ceil(1 << 16).cast_signed();
        Some(if scaled < 0 { -ns } else { ns })
    }
}
