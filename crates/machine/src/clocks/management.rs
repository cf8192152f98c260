//! PTP's management messages as bytes: questions to ptp4l, and what its answers say. Nothing here is trusted to be long
//! enough or to make sense.
//!
//! The layout is that of IEEE 1588-2008, clauses 13.3 and 15; what linuxptp adds was read off a running one, version 3.1.1.

use std::fmt;

/// Length of the header and of what stands behind it in a management message, bytes.
const FIXED: usize = 48;
/// A TLV's kind, length, and the data set's number, bytes.
const TLV_HEADER: usize = 6;
const MESSAGE_MANAGEMENT: u8 = 0xd;
const ACTION_GET: u8 = 0;
const ACTION_RESPONSE: u8 = 2;
const TLV_MANAGEMENT: u16 = 1;
const TLV_ERROR: u16 = 2;

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum DataSet {
    /// The clock itself.
    Default = 0x2000,
    /// The distance to the master.
    Current = 0x2001,
    /// Whom it follows.
    Parent = 0x2002,
    /// What the time means.
    TimeProperties = 0x2003,
    /// Each port.
    Port = 0x2004,
    /// Each port's interface and stamps.
    PortProperties = 0xc004,
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The clock itself.
    Default {
        /// How many ports it has.
        ports: u16,
        /// Its identity.
        identity: Identity,
    },
    /// The distance to the master.
    Current {
        /// Boundaries up to the grandmaster.
        steps: u16,
        /// Distance to the master, ns, rounded away from 0.
        offset_ns: i64,
        /// Mean time of a message, ns, rounded away from 0.
        path_delay_ns: i64,
    },
    /// Whom it follows.
    Parent {
        /// The clock that all follow.
        grandmaster: Identity,
    },
    /// What the time means.
    TimeProperties {
        /// How far TAI is ahead of UTC, s.
        utc_offset_s: i16,
        /// Whether the time is TAI.
        is_tai: bool,
    },
    /// A port.
    Port {
        /// Its number.
        number: u16,
        /// Its state, by its number.
        state: u8,
        /// Mean time of a message to the neighbour, ns, rounded away from 0; 0 where that is not measured.
        peer_delay_ns: i64,
    },
    /// A port's interface and stamps.
    PortProperties {
        /// Its number.
        number: u16,
        /// Whether the network card takes the stamps.
        stamps_in_hardware: bool,
        /// Its interface.
        interface: String,
    },
    /// It does not tell.
    Refused,
}

/// The identity of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity([u8; 8]);

impl fmt::Display for Identity {
    /// As linuxptp writes it: `5a666e.fffe.d25bdc`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}.{d:02x}{e:02x}.{g:02x}{h:02x}{i:02x}")
    }
}

/// Whom a question goes to, or an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// PTP domain.
    pub domain: u8,
    /// Whether it is a gPTP instance, which hears only its own kind.
    pub is_gptp: bool,
}

impl Address {
    /// A question for a data set of the clock, or of all its ports.
    #[must_use]
    pub fn question(self, about: DataSet) -> Vec<u8> {
        let mut bytes = vec![0; FIXED];
        bytes[0] = u8::from(self.is_gptp) << 4 | MESSAGE_MANAGEMENT;
        bytes[1] = 2;
        bytes[2..4].copy_from_slice(&((FIXED + TLV_HEADER) as u16).to_be_bytes());
        bytes[4] = self.domain;
        bytes[30..32].copy_from_slice(&(about as u16).to_be_bytes());
        // The control field of management messages, an unspecified interval, then all clocks and all ports.
        bytes[32..34].copy_from_slice(&[4, 0x7f]);
        bytes[34..44].fill(0xff);
        bytes[46] = ACTION_GET;
        bytes.extend(TLV_MANAGEMENT.to_be_bytes());
        bytes.extend(2_u16.to_be_bytes());
        bytes.extend((about as u16).to_be_bytes());
        bytes
    }
}

/// An answer of ptp4l.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Where it comes from.
    pub address: Address,
    /// What was asked for.
    pub about: DataSet,
    /// What it says.
    pub told: Told,
}

impl Answer {
    /// Reads a datagram; `None` for what is no answer to one of our questions, or is cut short.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let message = Bytes(bytes);
        let message = Bytes(bytes.get(..usize::from(message.u16(2)?))?);
        let (kind, action) = (message.u8(0)?, message.u8(46)? & 0xf);
        let is_answer = kind & 0xf == MESSAGE_MANAGEMENT && message.u8(1)? & 0xf == 2 && action == ACTION_RESPONSE;
        // In place of the data an error has its reason first, and then the number of what was asked for.
        let (about_at, data) = match message.u16(FIXED)? {
            TLV_MANAGEMENT => (FIXED + 4, true),
            TLV_ERROR => (FIXED + 6, false),
            _ => return None,
        };
        let about = DataSet::of(message.u16(about_at)?)?;
        let tlv_end = FIXED + 4 + usize::from(message.u16(FIXED + 2)?);
        let told = if data { about.read(&Bytes(message.0.get(FIXED + TLV_HEADER..tlv_end)?))? } else { Told::Refused };
        // The sequence number is that of the question, in which it is the number of the data set.
        let is_ours = is_answer && message.u16(30)? == about as u16;
        is_ours.then_some(())?;
        Some(Self { address: Address { domain: message.u8(4)?, is_gptp: kind >> 4 == 1 }, about, told })
    }
}

impl DataSet {
    const ALL: [Self; 6] =
        [Self::Default, Self::Current, Self::Parent, Self::TimeProperties, Self::Port, Self::PortProperties];

    fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|&set| set as u16 == number)
    }

    fn read(self, data: &Bytes) -> Option<Told> {
        Some(match self {
            Self::Default => Told::Default { ports: data.u16(2)?, identity: data.identity(10)? },
            Self::Current => {
                let (offset_ns, path_delay_ns) = (data.interval(2)?, data.interval(10)?);
                Told::Current { steps: data.u16(0)?, offset_ns, path_delay_ns }
            }
            Self::Parent => Told::Parent { grandmaster: data.identity(24)? },
            Self::TimeProperties => {
                let is_tai = data.u8(2)? & 1 << 3 != 0;
                Told::TimeProperties { utc_offset_s: data.u16(0)?.cast_signed(), is_tai }
            }
            Self::Port => Told::Port { number: data.u16(8)?, state: data.u8(10)?, peer_delay_ns: data.interval(12)? },
            Self::PortProperties => {
                let length = usize::from(data.u8(12)?);
                let name = String::from_utf8_lossy(data.0.get(13..13 + length)?);
                let interface = name.trim_end_matches('\0').to_owned();
                Told::PortProperties { number: data.u16(8)?, stamps_in_hardware: data.u8(11)? != 0, interface }
            }
        })
    }
}

/// A port's state in the words of IEEE 1588-2008, clause 8.2.5.3.1; 10 is linuxptp's own.
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

/// Big-endian values at their places.
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

    /// A TimeInterval, 2^-16 ns, in ns rounded away from 0: an error must not shrink on its way.
    fn interval(&self, at: usize) -> Option<i64> {
        let scaled = i64::from_be_bytes(self.array(at)?);
        let ns = scaled.unsigned_abs().div_ceil(1 << 16).cast_signed();
        Some(if scaled < 0 { -ns } else { ns })
    }
}
