//! Control messages that the kernel attaches to datagrams, frames and messages of the error queue.

use crate::{
    native::{i32_at, u64_at},
    packet::Dropped,
    udp::{IcmpError, Stamp},
};

/// A buffer for control messages. A timestamp takes 64 bytes, a message from the error queue 64 to 96 more.
#[repr(C, align(8))]
pub struct Control {
    bytes: [u8; 256],
    used: usize,
}

/// The decoded contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ControlData {
    /// The software timestamp, ns on CLOCK_REALTIME.
    pub stamp_ns: Option<i64>,
    /// The network card's timestamp, ns on its clock.
    pub card_ns: Option<i64>,
    /// The number of the sent datagram that the timestamps belong to.
    pub sent_number: Option<u32>,
    /// The TCI of the VLAN tag of a received frame.
    pub tci: Option<u16>,
    /// The ICMP error that a datagram caused.
    pub icmp: Option<IcmpError>,
    /// Why the queueing discipline dropped a frame with a launch time.
    pub dropped: Option<Dropped>,
}

impl ControlData {
    /// The timestamp of a message from the error queue. Software and hardware timestamps arrive in separate messages.
    pub fn stamp(&self) -> Option<Stamp> {
        self.stamp_ns.map(Stamp::Driver).or(self.card_ns.map(Stamp::Card))
    }
}

impl Default for Control {
    fn default() -> Self {
        Self { bytes: [0; 256], used: 0 }
    }
}

// Numbers from linux/errqueue.h.
const SO_EE_ORIGIN_TXTIME: u8 = 6;
const SO_EE_CODE_TXTIME_INVALID_PARAM: u8 = 1;
const SO_EE_CODE_TXTIME_MISSED: u8 = 2;

/// Length of a message header: length u64, level i32, type i32.
const HEADER: usize = 16;

impl Control {
    /// Sets this buffer as the destination of control messages.
    pub fn attach_to(&mut self, header: &mut libc::msghdr) {
        header.msg_control = self.bytes.as_mut_ptr().cast();
        // The field's type depends on the C library.
        header.msg_controllen = self.bytes.len() as _;
    }

    /// Stores the number of bytes that the kernel wrote.
    #[allow(clippy::unnecessary_cast, reason = "the type differs between C libraries")]
    pub fn set_length(&mut self, header: &libc::msghdr) {
        self.used = (header.msg_controllen as usize).min(self.bytes.len());
    }

    /// Decodes the messages.
    pub fn decode(&self) -> ControlData {
        let mut decoded = ControlData::default();
        let mut rest = &self.bytes[..self.used];
        while let Some((level, kind, data, after)) = first(rest) {
            rest = after;
            decoded.add(level, kind, data);
        }
        decoded
    }
}

/// Level, type and data of the first message, and the bytes after it.
fn first(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let len = usize::try_from(u64_at(bytes, 0)?).ok()?;
    let (level, kind) = (i32_at(bytes, 8)?, i32_at(bytes, 12)?);
    let data = bytes.get(HEADER..len)?;
    let next = len.next_multiple_of(size_of::<usize>());
    Some((level, kind, data, bytes.get(next..).unwrap_or_default()))
}

impl ControlData {
    fn add(&mut self, level: i32, kind: i32, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => {
                // Three times of 16 bytes: software, deprecated, hardware.
                self.stamp_ns = time_at(data, 0).or(self.stamp_ns);
                self.card_ns = time_at(data, 32).or(self.card_ns);
            }
            // struct sock_extended_err: errno, origin, type, code, padding, info, data.
            (libc::SOL_IP, libc::IP_RECVERR)
            | (libc::SOL_IPV6, libc::IPV6_RECVERR)
            | (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP) => self.add_error(data),
            // struct tpacket_auxdata: status, length, captured length; offsets of two headers; TCI, TPID.
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                let has_tag =
                    i32_at(data, 0).is_some_and(|status| status.cast_unsigned() & libc::TP_STATUS_VLAN_VALID != 0);
                let tci = data.get(16..18).and_then(|bytes| Some(u16::from_ne_bytes(*bytes.first_chunk()?)));
                self.tci = tci.filter(|_| has_tag);
            }
            _ => {}
        }
    }

    fn add_error(&mut self, data: &[u8]) {
        let [_, _, _, _, origin, kind, code, ..] = *data else { return };
        match origin {
            libc::SO_EE_ORIGIN_TIMESTAMPING => self.sent_number = i32_at(data, 12).map(i32::cast_unsigned),
            libc::SO_EE_ORIGIN_ICMP => self.icmp = Some(IcmpError { v6: false, kind, code }),
            libc::SO_EE_ORIGIN_ICMP6 => self.icmp = Some(IcmpError { v6: true, kind, code }),
            SO_EE_ORIGIN_TXTIME => {
                self.dropped = match code {
                    SO_EE_CODE_TXTIME_INVALID_PARAM => Some(Dropped::Invalid),
                    SO_EE_CODE_TXTIME_MISSED => Some(Dropped::Missed),
                    _ => None,
                }
            }
            _ => {}
        }
    }
}

/// Decodes a timespec, ns; all zeroes means none. A card's clock can start at 0, so seconds of 0 are valid.
fn time_at(data: &[u8], at: usize) -> Option<i64> {
    let (s, ns) = (u64_at(data, at)?.cast_signed(), u64_at(data, at + 8)?.cast_signed());
    (s != 0 || ns != 0).then(|| s.saturating_mul(1_000_000_000).saturating_add(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(control: &mut Control, level: i32, kind: i32, data: &[u8]) {
        let at = control.used;
        let len = HEADER + data.len();
        control.bytes[at..at + 8].copy_from_slice(&(len as u64).to_ne_bytes());
        control.bytes[at + 8..at + 12].copy_from_slice(&level.to_ne_bytes());
        control.bytes[at + 12..at + 16].copy_from_slice(&kind.to_ne_bytes());
        control.bytes[at + 16..at + len].copy_from_slice(data);
        control.used = at + len.next_multiple_of(8);
    }

    /// Encodes three times, each in seconds and ns.
    fn times(values: [u64; 6]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    #[test]
    fn finds_time_stamps_and_number_among_other_messages() {
        let mut control = Control::default();
        put(&mut control, libc::SOL_IP, 2, &[0; 5]);
        put(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &times([7, 42, 0, 0, 0, 99]));
        let mut error = [0; 16];
        error[4] = libc::SO_EE_ORIGIN_TIMESTAMPING;
        error[12..16].copy_from_slice(&9u32.to_ne_bytes());
        put(&mut control, libc::SOL_IP, libc::IP_RECVERR, &error);
        let expected = ControlData {
            stamp_ns: Some(7_000_000_042),
            card_ns: Some(99),
            sent_number: Some(9),
            ..ControlData::default()
        };
        assert_eq!(control.decode(), expected);
        // An ICMP error: host unreachable.
        let mut control = Control::default();
        (error[4], error[5], error[6]) = (libc::SO_EE_ORIGIN_ICMP, 3, 1);
        put(&mut control, libc::SOL_IP, libc::IP_RECVERR, &error);
        let icmp = Some(IcmpError { v6: false, kind: 3, code: 1 });
        assert_eq!(control.decode(), ControlData { icmp, ..ControlData::default() });
    }

    #[test]
    fn finds_the_vlan_tag_and_the_number_of_a_frame() {
        let mut auxdata = [0; 20];
        auxdata[16..18].copy_from_slice(&0x6005u16.to_ne_bytes());
        for (status, tci) in [(0, None), (libc::TP_STATUS_VLAN_VALID, Some(0x6005))] {
            let mut control = Control::default();
            auxdata[..4].copy_from_slice(&status.to_ne_bytes());
            put(&mut control, libc::SOL_PACKET, libc::PACKET_AUXDATA, &auxdata);
            let mut error = [0; 16];
            error[4] = libc::SO_EE_ORIGIN_TIMESTAMPING;
            error[12] = 7;
            put(&mut control, libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP, &error);
            let number = u32::from_ne_bytes([7, 0, 0, 0]);
            assert_eq!(control.decode(), ControlData { tci, sent_number: Some(number), ..ControlData::default() });
        }
    }

    #[test]
    fn finds_the_reason_why_a_frame_was_dropped() {
        for (level, code, dropped) in [
            (libc::SOL_PACKET, SO_EE_CODE_TXTIME_INVALID_PARAM, Some(Dropped::Invalid)),
            (libc::SOL_PACKET, SO_EE_CODE_TXTIME_MISSED, Some(Dropped::Missed)),
            (libc::SOL_PACKET, 3, None),
            (libc::SOL_SOCKET, SO_EE_CODE_TXTIME_MISSED, None),
        ] {
            let mut control = Control::default();
            let mut error = [0; 16];
            (error[4], error[6]) = (SO_EE_ORIGIN_TXTIME, code);
            put(&mut control, level, libc::PACKET_TX_TIMESTAMP, &error);
            assert_eq!(control.decode(), ControlData { dropped, ..ControlData::default() }, "{level} {code}");
        }
    }

    #[test]
    fn zero_time_stamps_are_none() {
        let mut control = Control::default();
        put(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &times([0, 0, 5, 5, 3, 1]));
        assert_eq!(control.decode(), ControlData { card_ns: Some(3_000_000_001), ..ControlData::default() });
    }

    #[test]
    fn ignores_truncated_messages() {
        let mut control = Control::default();
        put(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &[1; 48]);
        for used in 0..64 {
            control.used = used;
            assert_eq!(control.decode(), ControlData::default(), "{used}");
        }
        control.used = 64;
        assert!(control.decode().stamp_ns.is_some());
        // A length of 0 also ends the list.
        control.bytes[..8].fill(0);
        assert_eq!(control.decode(), ControlData::default());
    }
}
