//! What a frame is: the protocol above Ethernet and UDP, and the number that it counts its frames with.
//!
//! | protocol | recognised by | number | layout |
//! |---|---|---|---|
//! | AVTP | EtherType 0x22f0 | see [`crate::avtp`] | IEEE Std 1722 |
//! | PTP | EtherType 0x88f7, UDP ports 319 and 320 | sequenceId, for each message type | IEEE Std 1588, 13.3 |
//! | PROFINET | EtherType 0x8892 | cycle counter in the last four bytes, in steps of 31.25 us | IEC 61158-6-10 |
//! | EtherCAT | EtherType 0x88a4 | index of the first datagram, if the master counts with it: frames, or datagrams | ETG.1000.4 |
//! | sampled values | EtherType 0x88ba | smpCnt of the first ASDU; starts again each second | IEC 61850-9-2 |
//! | GOOSE | EtherType 0x88b8 | sqNum within stNum | IEC 61850-8-1 |
//! | OPC UA `PubSub` | EtherType 0xb62c, UDP port 4840 | sequence number of the group header | OPC UA part 14, 7.2.4 |
//! | RTP | UDP, a valid header | sequence number | RFC 3550, 5.1 |
//!
//! A number is a candidate: the header may look like one by chance, and a sender may not count. Readers must check that
//! it counts.

use std::num::{NonZeroU8, NonZeroU16};

use crate::bytes;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of PTP.
const PTP: u16 = 0x88f7;
/// EtherType of PROFINET real-time frames.
const PROFINET: u16 = 0x8892;
/// EtherType of EtherCAT.
const ETHERCAT: u16 = 0x88a4;
/// EtherType of IEC 61850 GOOSE.
const GOOSE: u16 = 0x88b8;
/// EtherType of IEC 61850 sampled values.
const SAMPLED_VALUES: u16 = 0x88ba;
/// EtherType of OPC UA `PubSub`.
const UADP: u16 = 0xb62c;
/// UDP port of OPC UA.
const UADP_PORT: u16 = 4840;
/// UDP ports of PTP: event and general messages.
const PTP_PORTS: [u16; 2] = [319, 320];

/// The protocol of a frame, with the part of its header that separates one stream from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Protocol {
    /// None of the others.
    #[default]
    Unknown,
    /// Precision time protocol.
    Ptp {
        /// The message type: 0 is Sync, 8 is Follow_Up.
        message: u8,
        /// The domain.
        domain: u8,
        /// The port that a response is for, whose request has its number; without a port for other messages.
        requester: Publisher,
    },
    /// Control messages of AVTP.
    AvtpControl {
        /// Their name: MAAP, or ADP, AECP and ACMP of AVDECC.
        name: &'static str,
    },
    /// PROFINET real-time data.
    Profinet {
        /// The frame id.
        frame_id: u16,
    },
    /// EtherCAT.
    EtherCat {
        /// True if a slave has processed a datagram of the frame: its working counter is not 0.
        is_processed: bool,
    },
    /// IEC 61850 sampled values.
    SampledValues {
        /// The application id.
        appid: u16,
        /// The identifier of the samples (svID).
        publisher: Publisher,
    },
    /// IEC 61850 GOOSE.
    Goose {
        /// The application id.
        appid: u16,
        /// The reference of the control block (gocbRef).
        publisher: Publisher,
    },
    /// OPC UA `PubSub` in the UADP encoding.
    Uadp {
        /// The publisher id with the writer group.
        publisher: Publisher,
    },
    /// RTP. Other payloads can look like it.
    Rtp {
        /// The synchronisation source (SSRC).
        source: u32,
    },
}

/// Distinguishes the publishers that use the same addresses and application id: a hash of their identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Publisher(u64);

impl Publisher {
    /// The publisher with this identifier.
    fn of(identifier: &[u8]) -> Self {
        // The prime of the hash FNV for 64 bits, by which the bits of a word reach the higher ones.
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let word = |chunk: &[u8]| chunk.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let mixed = |hash: u64, chunk: &[u8]| (hash.rotate_left(29) ^ word(chunk)).wrapping_mul(PRIME);
        Self(identifier.chunks(8).fold(identifier.len() as u64, mixed))
    }
}

/// The values that a number runs through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Range {
    /// All values of this number of bits.
    Bits(u32),
    /// From 0 to a value that the sender chooses, in one second.
    Second,
}

/// A candidate for the number of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Count {
    /// The value.
    pub value: u32,
    /// The values that it runs through.
    pub range: Range,
    /// The difference between the numbers of consecutive frames, if the protocol states it.
    pub step: Option<NonZeroU16>,
    /// So many numbers, from this one on, are those of the parts of the frame: the datagrams of EtherCAT. `None` if the parts
    /// have no numbers of their own.
    pub parts: Option<NonZeroU8>,
    /// The time of the media in the frame, if the header contains it.
    pub media: Option<MediaTime>,
    /// The state that the number counts the frames of, if there are several.
    pub state: Option<State>,
}

/// The state that a frame of GOOSE repeats. Each new state begins with number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// Its number (stNum), one more than that of the state before.
    pub number: u32,
    /// The next frame must arrive within this time (timeAllowedtoLive), ms.
    pub allowed_ms: u32,
}

/// The time of the media in a frame of RTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MediaTime {
    /// In ticks of the media clock, modulo 2^32. It also advances in a pause.
    pub timestamp: u32,
    /// The marker bit: of audio, the first frame after a pause (RFC 3551, 4.1).
    pub marker: bool,
}

impl Count {
    fn bits(value: impl Into<u32>, bits: u32) -> Self {
        Self { value: value.into(), range: Range::Bits(bits), step: None, parts: None, media: None, state: None }
    }

    /// A number of 16 bits that counts frames one by one.
    #[must_use]
    pub fn one_by_one(value: u16) -> Self {
        Self { step: Some(NonZeroU16::MIN), ..Self::bits(value, 16) }
    }
}

impl Protocol {
    /// The name of a PTP message type, as in IEEE Std 1588, table 36.
    #[must_use]
    pub fn ptp_message(message: u8) -> Option<&'static str> {
        Some(match message {
            0x0 => "Sync",
            0x1 => "Delay_Req",
            0x2 => "Pdelay_Req",
            0x3 => "Pdelay_Resp",
            0x8 => "Follow_Up",
            0x9 => "Delay_Resp",
            0xa => "Pdelay_Resp_Follow_Up",
            0xb => "Announce",
            0xc => "Signaling",
            0xd => "Management",
            _ => return None,
        })
    }
}

/// The protocol of a control message of AVTP, by its subtype (IEEE Std 1722, table 6).
pub(crate) fn avtp_control(packet: &[u8]) -> Protocol {
    let name = match packet.first() {
        Some(0xfa) => "ADP",
        Some(0xfb) => "AECP",
        Some(0xfc) => "ACMP",
        Some(0xfe) => "MAAP",
        _ => return Protocol::Unknown,
    };
    Protocol::AvtpControl { name }
}

/// The protocol of a frame with this EtherType, and its number. `packet` follows the EtherType; `is_whole` is true if
/// the capture contains all of it.
pub(crate) fn of_ethertype(ethertype: u16, packet: &[u8], is_whole: bool) -> (Protocol, Option<Count>) {
    match ethertype {
        PTP => ptp(packet),
        PROFINET => profinet(packet, is_whole),
        ETHERCAT => ethercat(packet),
        SAMPLED_VALUES => sampled_values(packet),
        GOOSE => goose(packet),
        UADP => uadp(packet),
        _ => (Protocol::Unknown, None),
    }
}

/// The protocol of a datagram to this port, and its number.
pub(crate) fn of_datagram(port: u16, payload: &[u8]) -> (Protocol, Option<Count>) {
    let found = match port {
        _ if PTP_PORTS.contains(&port) => ptp(payload),
        UADP_PORT => uadp(payload),
        _ => (Protocol::Unknown, None),
    };
    if found.0 == Protocol::Unknown { rtp(payload) } else { found }
}

fn ptp(from: &[u8]) -> (Protocol, Option<Count>) {
    let read = || {
        let [first, version, _, _, domain] = bytes(from, 0)?;
        let message = first & 0xf;
        Protocol::ptp_message(message).filter(|_| version & 0xf == 2)?;
        let sequence = u16::from_be_bytes(bytes(from, 30)?);
        let port = requester(message, from);
        let requester = Publisher::of(port.as_ref().map_or(&[], |port| port));
        // One more than that of the message of this type before it (IEEE Std 1588-2019, 7.3.7). Answers have the number of their
        // request.
        Some((Protocol::Ptp { message, domain, requester }, Some(Count::one_by_one(sequence))))
    };
    read().unwrap_or_default()
}

/// The requestingPortIdentity of Delay_Resp, Pdelay_Resp and Pdelay_Resp_Follow_Up, after header and timestamp.
fn requester(message: u8, from: &[u8]) -> Option<[u8; 10]> {
    if matches!(message, 0x9 | 0x3 | 0xa) { bytes(from, 44) } else { None }
}

/// Cyclic frames end with the cycle counter, the data status and the transfer status.
fn profinet(from: &[u8], is_whole: bool) -> (Protocol, Option<Count>) {
    let Some(frame_id) = bytes(from, 0).map(u16::from_be_bytes) else { return (Protocol::Unknown, None) };
    let is_cyclic = matches!(frame_id, 0x0100..=0x0fff | 0x8000..=0xfbff);
    let status = from.len().checked_sub(4).filter(|&at| is_cyclic && is_whole && at >= 2);
    let cycle = status.and_then(|at| bytes(from, at)).map(|[high, low]| u16::from_be_bytes([high, low]));
    (Protocol::Profinet { frame_id }, cycle.map(|cycle| Count::bits(cycle, 16)))
}

/// The header of two bytes has the length and the type, 1 for datagrams.
fn ethercat(from: &[u8]) -> (Protocol, Option<Count>) {
    let Some([_, _, _, index]) = bytes(from, 0).filter(|[_, high, _, _]| high >> 4 == 1) else {
        return (Protocol::Unknown, None);
    };
    let (mut is_processed, mut parts, mut same, mut is_whole) = (false, 0u8, 0u8, false);
    for Datagram { index: next, counter, is_last } in datagrams(from) {
        is_processed |= counter.is_some_and(|counter| counter != 0);
        // Masters number each datagram, or each frame.
        parts += u8::from(parts < u8::MAX && next == index.wrapping_add(parts));
        same += u8::from(same < u8::MAX && next == index);
        is_whole = is_last;
    }
    // If datagrams are cut off, the number of the next frame is not known.
    let count = NonZeroU8::new(parts).filter(|_| is_whole).map(|parts| {
        // Several datagrams with one index have that of the frame.
        Count { parts: Some(parts).filter(|_| same == 1), ..Count::bits(index, 8) }
    });
    (Protocol::EtherCat { is_processed }, count)
}

/// A datagram of EtherCAT.
struct Datagram {
    index: u8,
    /// The working counter; `None` if it is cut off.
    counter: Option<u16>,
    is_last: bool,
}

/// The datagrams of a frame whose length is not cut off. Each has ten bytes before its data: command, index, address, the length
/// (11 bits) with, in bit 15, if another one follows, and the interrupt; then come the data and the working counter.
fn datagrams(from: &[u8]) -> impl Iterator<Item = Datagram> {
    let mut at = 2;
    let mut is_last = false;
    std::iter::from_fn(move || {
        let length = bytes(from, at + 6).map(u16::from_le_bytes).filter(|_| !is_last)?;
        let counter_at = at + 10 + usize::from(length & 0x7ff);
        let counter = bytes(from, counter_at).map(u16::from_le_bytes);
        let index = *from.get(at + 1)?;
        is_last = length & 0x8000 == 0;
        at = counter_at + 2;
        Some(Datagram { index, counter, is_last })
    })
}

/// The publisher of a frame in words, if its protocol distinguishes them. `packet` follows the EtherType, or is the payload
/// of a datagram.
pub(crate) fn publisher(protocol: Protocol, packet: &[u8]) -> Option<String> {
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    match protocol {
        Protocol::SampledValues { .. } => asdu(packet).and_then(|asdu| element(asdu, 0x80)).map(text),
        Protocol::Goose { .. } => goose_pdu(packet).and_then(|pdu| element(pdu, 0x80)).map(text),
        Protocol::Uadp { .. } => Some(uadp_header(packet)?.describe()).filter(|text| !text.is_empty()),
        Protocol::Ptp { message, .. } => requester(message, packet).map(|port| {
            // As ptp4l writes it.
            let [a, b, c, d, e, f, g, h, high, low] = port;
            let number = u16::from_be_bytes([high, low]);
            format!("for {a:02x}{b:02x}{c:02x}.{d:02x}{e:02x}.{f:02x}{g:02x}{h:02x}-{number}")
        }),
        _ => None,
    }
}

/// The savPdu (0x60) of a frame of sampled values, after application id, length and 4 reserved bytes. It contains the number of
/// ASDUs (0x80) and their sequence (0xa2).
fn sav_pdu(from: &[u8]) -> Option<&[u8]> {
    element(from.get(8..)?, 0x60)
}

/// The first ASDU (0x30) of a frame of sampled values.
fn asdu(from: &[u8]) -> Option<&[u8]> {
    element(element(sav_pdu(from)?, 0xa2)?, 0x30)
}

/// The ASDU contains svID (0x80) and smpCnt (0x82), which counts samples: each ASDU has one.
fn sampled_values(from: &[u8]) -> (Protocol, Option<Count>) {
    let Some(appid) = bytes(from, 0).map(u16::from_be_bytes) else { return (Protocol::Unknown, None) };
    let asdu = asdu(from);
    let publisher = asdu.and_then(|asdu| element(asdu, 0x80)).map(Publisher::of).unwrap_or_default();
    let count = || {
        let value = u16::from_be_bytes(bytes(element(asdu?, 0x82)?, 0)?).into();
        let asdus = sav_pdu(from).and_then(|pdu| element(pdu, 0x80)).and_then(unsigned);
        let step = asdus.and_then(|asdus| u16::try_from(asdus).ok()).and_then(NonZeroU16::new);
        Some(Count { value, range: Range::Second, step, parts: None, media: None, state: None })
    };
    (Protocol::SampledValues { appid, publisher }, count())
}

/// After application id, length and 4 reserved bytes: goosePdu (0x61).
fn goose_pdu(from: &[u8]) -> Option<&[u8]> {
    element(from.get(8..)?, 0x61)
}

/// The goosePdu contains gocbRef (0x80), timeAllowedtoLive (0x81), stNum (0x85) and sqNum (0x86).
fn goose(from: &[u8]) -> (Protocol, Option<Count>) {
    let Some(appid) = bytes(from, 0).map(u16::from_be_bytes) else { return (Protocol::Unknown, None) };
    let pdu = goose_pdu(from);
    let publisher = pdu.and_then(|pdu| element(pdu, 0x80)).map(Publisher::of).unwrap_or_default();
    let count = || {
        let unsigned = |tag: u8| element(pdu?, tag).and_then(unsigned);
        let state = State { number: unsigned(0x85)?, allowed_ms: unsigned(0x81)? };
        Some(Count { state: Some(state), ..Count::bits(unsigned(0x86)?, 32) })
    };
    (Protocol::Goose { appid, publisher }, count())
}

/// An unsigned integer of BER; it begins with a zero byte if its highest bit is set.
fn unsigned(bytes: &[u8]) -> Option<u32> {
    let fits = (1..=5).contains(&bytes.len()) && (bytes.len() < 5 || bytes[0] == 0);
    fits.then(|| bytes.iter().fold(0, |value: u32, &byte| value << 8 | u32::from(byte)))
}

/// The contents of the first element with this tag in BER. The last element can be truncated.
fn element(mut from: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        let [tag, length] = bytes(from, 0)?;
        let (length, header) = match length {
            ..=0x7f => (usize::from(length), 2),
            0x81 => (usize::from(*from.get(2)?), 3),
            0x82 => (usize::from(u16::from_be_bytes(bytes(from, 2)?)), 4),
            _ => return None,
        };
        let rest = from.get(header..)?;
        if tag == wanted {
            return Some(&rest[..length.min(rest.len())]);
        }
        from = rest.get(length..)?;
    }
}

/// The header of a network message of UADP.
struct UadpHeader<'a> {
    /// The publisher id, little-endian or text; empty if there is none.
    publisher: &'a [u8],
    publisher_is_text: bool,
    /// The writer group.
    group: Option<u16>,
    sequence: Option<u16>,
}

impl UadpHeader<'_> {
    fn describe(&self) -> String {
        let number = self.publisher.iter().rev().fold(0, |value: u64, &byte| value << 8 | u64::from(byte));
        let publisher = match self.publisher {
            [] => String::new(),
            name if self.publisher_is_text => format!("publisher {}", String::from_utf8_lossy(name)),
            _ => format!("publisher {number}"),
        };
        let group = self.group.map_or_else(String::new, |group| format!("group {group}"));
        [publisher, group].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// The header has flags that say which fields follow. Numbers are little-endian (OPC 10000-14, 7.2.4.4). `None` if its first
/// fields are missing or of an unknown type.
fn uadp_header(from: &[u8]) -> Option<UadpHeader<'_>> {
    let flags = *from.first()?;
    let mut rest = from.get(1..)?;
    let mut next = |length: usize| {
        let (field, after) = rest.split_at_checked(length).unwrap_or((&[], &[]));
        rest = after;
        (field.len() == length).then_some(field)
    };
    let more = if flags & 0x80 == 0 { 0 } else { *next(1)?.first()? };
    if more & 0x80 != 0 {
        next(1)?;
    }
    let publisher_is_text = more & 7 == 4;
    let publisher = match more & 7 {
        _ if flags & 0x10 == 0 => &[][..],
        0 => next(1)?,
        1 => next(2)?,
        2 => next(4)?,
        3 => next(8)?,
        4 => {
            let length = u32::from_le_bytes(bytes(next(4)?, 0)?);
            next(usize::try_from(length).ok()?)?
        }
        _ => return None,
    };
    if more & 8 != 0 {
        next(16)?;
    }
    let mut header = UadpHeader { publisher, publisher_is_text, group: None, sequence: None };
    let in_group = if flags & 0x20 == 0 { 0 } else { *next(1)?.first()? };
    let mut number = |bit: u8, length: usize| if in_group & bit == 0 { None } else { next(length) };
    header.group = number(1, 2).and_then(|field| bytes(field, 0)).map(u16::from_le_bytes);
    number(2, 4);
    number(4, 2);
    header.sequence = number(8, 2).and_then(|field| bytes(field, 0)).map(u16::from_le_bytes);
    Some(header)
}

fn uadp(from: &[u8]) -> (Protocol, Option<Count>) {
    if from.first().is_none_or(|flags| flags & 0xf != 1) {
        return (Protocol::Unknown, None);
    }
    let header = uadp_header(from);
    let publisher = header.as_ref().map_or_else(Publisher::default, |header| {
        let Publisher(id) = Publisher::of(header.publisher);
        Publisher(id ^ header.group.map_or(0, |group| u64::from(group) + 1))
    });
    let count = header.and_then(|header| header.sequence).map(|sequence| Count::bits(sequence, 16));
    (Protocol::Uadp { publisher }, count)
}

/// Version 2, a payload type that is not one of RTCP, and a length that contains the sources and the extension.
fn rtp(from: &[u8]) -> (Protocol, Option<Count>) {
    let read = || {
        let [first, second, high, low] = bytes(from, 0)?;
        let is_media = matches!(second & 0x7f, 0..=34 | 96..=127);
        let mut length = 12 + 4 * usize::from(first & 0xf);
        if first & 0x10 != 0 {
            length += 4 + 4 * usize::from(u16::from_be_bytes(bytes(from, length + 2)?));
        }
        let source = bytes(from, 8).map(u32::from_be_bytes)?;
        let media = MediaTime { timestamp: bytes(from, 4).map(u32::from_be_bytes)?, marker: second & 0x80 != 0 };
        let count = Count { media: Some(media), ..Count::one_by_one(u16::from_be_bytes([high, low])) };
        (first >> 6 == 2 && is_media && from.len() >= length).then_some((Protocol::Rtp { source }, Some(count)))
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_sequence_of_ptp_messages() {
        let mut sync = [0; 44];
        (sync[0], sync[1], sync[4]) = (0x10, 0x12, 24);
        sync[30..32].copy_from_slice(&[0x12, 0x34]);
        let (protocol, count) = of_ethertype(PTP, &sync, true);
        assert_eq!(protocol, Protocol::Ptp { message: 0, domain: 24, requester: Publisher::of(&[]) });
        assert_eq!(count, Some(Count::one_by_one(0x1234)));
        assert_eq!(of_datagram(319, &sync), (protocol, count));
        // The answers of a master to several slaves have numbers of their requests.
        for message in [0x9, 0x3, 0xa] {
            let response = |port: u8| {
                let mut response = [0; 54];
                (response[0], response[1], response[53]) = (message, 2, port);
                of_ethertype(PTP, &response, true).0
            };
            assert_eq!(response(1), response(1));
            assert_ne!(response(1), response(2), "{message:#x}");
        }
        sync[1] = 1;
        assert_eq!(of_ethertype(PTP, &sync, true), (Protocol::Unknown, None), "PTP version 1 has another header");
    }

    #[test]
    fn reads_the_cycle_counter_of_cyclic_profinet_frames() {
        let mut frame = [0; 46];
        frame[..2].copy_from_slice(&[0x80, 0x01]);
        frame[42..].copy_from_slice(&[0x01, 0x40, 0x35, 0x00]);
        let of = |frame: &[u8], is_whole| of_ethertype(PROFINET, frame, is_whole);
        let expected = Protocol::Profinet { frame_id: 0x8001 };
        assert_eq!(of(&frame, true), (expected, Some(Count::bits(0x140u16, 16))));
        assert_eq!(of(&frame, false), (expected, None), "truncated");
        frame[..2].copy_from_slice(&[0xfe, 0xff]);
        assert_eq!(of(&frame, true).1, None, "DCP is not cyclic");
    }

    #[test]
    fn names_the_control_messages_of_avtp() {
        let of = |subtype: u8| avtp_control(&[subtype, 0, 0, 16]);
        assert_eq!([of(0xfe), of(0xfa)], ["MAAP", "ADP"].map(|name| Protocol::AvtpControl { name }));
        assert_eq!([of(0x02), of(0xfd), avtp_control(&[])], [Protocol::Unknown; 3]);
    }

    #[test]
    fn reads_the_index_of_ethercat() {
        let as_sent = Protocol::EtherCat { is_processed: false };
        let frame = [0x0d, 0x10, 0x0c, 0x42, 0, 0, 0, 0, 200, 0, 0, 0];
        let count = Some(Count { parts: Some(NonZeroU8::MIN), ..Count::bits(0x42u16, 8) });
        assert_eq!(of_ethertype(ETHERCAT, &frame, false), (as_sent, count), "cut in the only datagram");
        let more = [0x0d, 0x10, 0x0c, 0x42, 0, 0, 0, 0, 200, 0x80, 0, 0];
        assert_eq!(of_ethertype(ETHERCAT, &more, false), (as_sent, None), "others are cut off");
        let with_counters = |first, second| {
            let read = [0x0c, 0x42, 0, 0, 0, 0, 2, 0x80, 0, 0, 7, 7, first, 0];
            let write = [0x0b, 0x42, 0, 0, 0, 0, 1, 0, 0, 0, 7, second, 0];
            of_ethertype(ETHERCAT, &[&[0x1b, 0x10][..], &read, &write].concat(), true).0
        };
        assert_eq!(with_counters(0, 0), as_sent);
        for (first, second) in [(1, 0), (0, 3), (1, 3)] {
            assert_eq!(with_counters(first, second), Protocol::EtherCat { is_processed: true });
        }
        let parts = |second: u8| {
            let datagrams = [0x0c, 0x42, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0x0b, second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            let count = of_ethertype(ETHERCAT, &[&[0x18, 0x10][..], &datagrams].concat(), true).1;
            count.and_then(|count| count.parts).map(NonZeroU8::get)
        };
        assert_eq!([parts(0x43), parts(0x42)], [Some(2), None], "an index for each datagram, or for the frame");
        assert_eq!(of_ethertype(ETHERCAT, &[0x0d, 0x40, 0, 0], true).0, Protocol::Unknown, "network variables");
    }

    #[test]
    fn reads_the_sample_count_of_sampled_values() {
        let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
        let asdu = [&[0x80, 3][..], b"MU1", &[0x82, 2, 0x0f, 0x9f, 0x83, 4, 0, 0, 0, 1]].concat();
        let asdus = [&[0x30, length(&asdu)][..], &asdu].concat();
        let pdu = [&[0x80, 1, 1, 0xa2, 0x81, length(&asdus)][..], &asdus].concat();
        let frame = [&[0x40, 0, 0, 99, 0, 0, 0, 0, 0x60, length(&pdu)][..], &pdu].concat();
        let (protocol, count) = of_ethertype(SAMPLED_VALUES, &frame, true);
        assert_eq!(protocol, Protocol::SampledValues { appid: 0x4000, publisher: Publisher::of(b"MU1") });
        assert_eq!(publisher(protocol, &frame).as_deref(), Some("MU1"));
        let count_of = |step| Count { value: 3999, range: Range::Second, step, parts: None, media: None, state: None };
        assert_eq!(count, Some(count_of(NonZeroU16::new(1))));
        let at = frame.windows(3).position(|three| three == [0x80, 1, 1]).unwrap();
        for asdus in [8, 0] {
            let mut other = frame.clone();
            other[at + 2] = asdus;
            assert_eq!(of_ethertype(SAMPLED_VALUES, &other, true).1, Some(count_of(NonZeroU16::new(asdus.into()))));
        }
    }

    #[test]
    fn reads_the_state_of_goose() {
        let pdu = [&[0x80, 3][..], b"gcb", &[0x81, 2, 7, 0xd0, 0x85, 1, 9, 0x86, 5, 0, 0xff, 0, 0, 1]].concat();
        let frame = [&[0x10, 1, 0, 50, 0, 0, 0, 0, 0x61, u8::try_from(pdu.len()).unwrap()][..], &pdu].concat();
        let state = Some(State { number: 9, allowed_ms: 2_000 });
        let count = Count { state, ..Count::bits(0xff00_0001u32, 32) };
        let protocol = Protocol::Goose { appid: 0x1001, publisher: Publisher::of(b"gcb") };
        assert_eq!(of_ethertype(GOOSE, &frame, true), (protocol, Some(count)));
        assert_eq!(publisher(protocol, &frame).as_deref(), Some("gcb"));
        assert_eq!(of_ethertype(GOOSE, &frame[..20], true).1, None, "truncated");
        assert_eq!([unsigned(&[]), unsigned(&[1, 0, 0, 0, 0]), unsigned(&[0x80])], [None, None, Some(128)]);
    }

    #[test]
    fn reads_the_sequence_of_pubsub_behind_optional_fields() {
        // Publisher id of 16 bits; group header with writer group, version and sequence.
        let frame = [0x80 | 0x30 | 1, 1, 0xdd, 0xcc, 0b1011, 7, 0, 1, 2, 3, 4, 0x34, 0x12, 0xff];
        let (protocol, count) = of_ethertype(UADP, &frame, true);
        assert_eq!(count, Some(Count::bits(0x1234u16, 16)));
        assert_eq!(publisher(protocol, &frame).as_deref(), Some("publisher 52445, group 7"));
        let mut other = frame;
        other[5] = 8;
        assert_ne!(of_ethertype(UADP, &other, true).0, protocol, "another group");
        assert_eq!(of_datagram(4840, &frame), (protocol, count));
        let (none, count) = of_ethertype(UADP, &[0x01, 0, 0], true);
        assert_eq!((publisher(none, &[0x01, 0, 0]), count), (None, None), "no group header");
        // A publisher id that is a text.
        let frame = [0x80 | 0x30 | 1, 4, 2, 0, 0, 0, b'P', b'1', 0b1001, 7, 0, 0x34, 0x12];
        let (protocol, count) = of_ethertype(UADP, &frame, true);
        assert_eq!(publisher(protocol, &frame).as_deref(), Some("publisher P1, group 7"));
        assert_eq!(count, Some(Count::bits(0x1234u16, 16)));
    }

    #[test]
    fn reads_the_sequence_of_rtp_but_not_of_rtcp() {
        let mut packet = [0; 60];
        (packet[0], packet[1], packet[2], packet[3]) = (0x80, 0x80 | 98, 0xab, 0xcd);
        (packet[7], packet[11]) = (9, 7);
        let media = Some(MediaTime { timestamp: 9, marker: true });
        assert_eq!(
            of_datagram(5004, &packet),
            (Protocol::Rtp { source: 7 }, Some(Count { media, ..Count::one_by_one(0xabcd) }))
        );
        packet[1] = 200;
        assert_eq!(of_datagram(5005, &packet), (Protocol::Unknown, None));
        (packet[0], packet[1]) = (0x90, 98);
        packet[14..16].copy_from_slice(&[0xff, 0xff]);
        assert_eq!(of_datagram(5004, &packet).0, Protocol::Unknown, "the extension is longer than the datagram");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(packet in prop::collection::vec(any::<u8>(), 0..100), port in any::<u16>()) {
            for ethertype in [PTP, PROFINET, ETHERCAT, GOOSE, SAMPLED_VALUES, UADP, 0x1234] {
                publisher(of_ethertype(ethertype, &packet, true).0, &packet);
            }
            for port in [port, 319, 320, UADP_PORT] {
                of_datagram(port, &packet);
            }
        }

        #[test]
        fn arbitrary_elements_do_not_panic(inner in prop::collection::vec(any::<u8>(), 0..80)) {
            let frame = [&[0; 8][..], &[0x60, 0x82, 0, 80, 0xa2, 70, 0x30, 60], &inner].concat();
            sampled_values(&frame);
        }
    }
}
