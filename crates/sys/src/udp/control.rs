//! What the kernel tells beside a datagram.

use crate::native::{i32_at, u64_at};

/// Room for it. A stamp takes 64 bytes, and what comes from the error queue 64 to 96 more.
#[repr(C, align(8))]
pub struct Control {
    bytes: [u8; 256],
    used: usize,
}

/// What it tells and is of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// A stamp made in software, ns on CLOCK_REALTIME.
    pub stamp_ns: Option<i64>,
    /// A stamp of the network card, ns on its clock.
    pub card_ns: Option<i64>,
    /// The number of the datagram that went out and that these are of.
    pub sent_number: Option<u32>,
}

impl Default for Control {
    fn default() -> Self {
        Self { bytes: [0; 256], used: 0 }
    }
}

/// What stands in front of each: its length with this, level and type.
const HEADER: usize = 16;

impl Control {
    /// Lets the kernel write into it.
    pub fn lend_to(&mut self, header: &mut libc::msghdr) {
        header.msg_control = self.bytes.as_mut_ptr().cast();
        // The type differs between C libraries.
        header.msg_controllen = self.bytes.len() as _;
    }

    /// Notes how much the kernel wrote.
    #[allow(clippy::unnecessary_cast, reason = "the type differs between C libraries")]
    pub fn take_back(&mut self, header: &libc::msghdr) {
        self.used = (header.msg_controllen as usize).min(self.bytes.len());
    }

    /// What was told.
    pub fn told(&self) -> Told {
        let mut told = Told::default();
        let mut rest = &self.bytes[..self.used];
        while let Some((level, kind, data, after)) = first(rest) {
            rest = after;
            told.take_in(level, kind, data);
        }
        told
    }
}

/// Level, type and data of the first one, and what follows it.
fn first(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let len = usize::try_from(u64_at(bytes, 0)?).ok()?;
    let (level, kind) = (i32_at(bytes, 8)?, i32_at(bytes, 12)?);
    let data = bytes.get(HEADER..len)?;
    let next = len.next_multiple_of(size_of::<usize>());
    Some((level, kind, data, bytes.get(next..).unwrap_or_default()))
}

impl Told {
    fn take_in(&mut self, level: i32, kind: i32, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => {
                // Three times of 16 bytes: software's, one that is no more, the card's.
                self.stamp_ns = time_at(data, 0).or(self.stamp_ns);
                self.card_ns = time_at(data, 32).or(self.card_ns);
            }
            // struct sock_extended_err: errno, origin, type, code, padding, info, data.
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
                if data.get(4) == Some(&libc::SO_EE_ORIGIN_TIMESTAMPING) =>
            {
                self.sent_number = i32_at(data, 12).map(i32::cast_unsigned);
            }
            _ => {}
        }
    }
}

/// A timespec, ns; 0 is none. A card's clock may begin at 0 with the machine, so its first second counts.
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

    /// Three times, each in seconds and ns.
    fn times(values: [u64; 6]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    #[test]
    fn stamp_and_number_are_found_among_others() {
        let mut control = Control::default();
        put(&mut control, libc::SOL_IP, 2, &[0; 5]);
        put(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &times([7, 42, 0, 0, 0, 99]));
        let mut error = [0; 16];
        error[4] = libc::SO_EE_ORIGIN_TIMESTAMPING;
        error[12..16].copy_from_slice(&9u32.to_ne_bytes());
        put(&mut control, libc::SOL_IP, libc::IP_RECVERR, &error);
        let expected = Told { stamp_ns: Some(7_000_000_042), card_ns: Some(99), sent_number: Some(9) };
        assert_eq!(control.told(), expected);
    }

    #[test]
    fn a_stamp_of_nothing_is_none() {
        let mut control = Control::default();
        put(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &times([0, 0, 5, 5, 3, 1]));
        assert_eq!(control.told(), Told { card_ns: Some(3_000_000_001), ..Told::default() });
    }

    #[test]
    fn what_is_cut_off_is_no_message() {
        let mut control = Control::default();
        put(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &[1; 48]);
        for used in 0..64 {
            control.used = used;
            assert_eq!(control.told(), Told::default(), "{used}");
        }
        control.used = 64;
        assert!(control.told().stamp_ns.is_some());
        // A length of 0 ends it, too.
        control.bytes[..8].fill(0);
        assert_eq!(control.told(), Told::default());
    }
}
