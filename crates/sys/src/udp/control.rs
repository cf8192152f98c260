//! What the kernel tells beside a datagram.

/// Room for it. A stamp takes 64 bytes, and what comes from the error queue 64 to 96 more.
#[repr(C, align(8))]
pub struct Control {
    bytes: [u8; 256],
    used: usize,
}

/// One thing that it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// A stamp made in software, ns on CLOCK_REALTIME.
    Stamp(i64),
    /// The number of the datagram that the stamp is of.
    SentNumber(u32),
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

    /// What was told and is of interest.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        let mut rest = &self.bytes[..self.used];
        std::iter::from_fn(move || {
            loop {
                let (level, kind, data, after) = first(rest)?;
                rest = after;
                if let Some(message) = understood(level, kind, data) {
                    return Some(message);
                }
            }
        })
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

fn understood(level: i32, kind: i32, data: &[u8]) -> Option<Message> {
    match (level, kind) {
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => {
            // Three times of 16 bytes, of which the first is software's; 0 where there is none.
            let (s, ns) = (u64_at(data, 0)?.cast_signed(), u64_at(data, 8)?.cast_signed());
            (s != 0).then(|| Message::Stamp(s.saturating_mul(1_000_000_000).saturating_add(ns)))
        }
        (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
            // struct sock_extended_err: errno, origin, type, code, padding, info, data.
            let origin = *data.get(4)?;
            (origin == libc::SO_EE_ORIGIN_TIMESTAMPING).then_some(())?;
            Some(Message::SentNumber(i32_at(data, 12)?.cast_unsigned()))
        }
        _ => None,
    }
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..at + 8)?.first_chunk()?))
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(*bytes.get(at..at + 4)?.first_chunk()?))
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

    #[test]
    fn stamp_and_number_are_found_among_others() {
        let mut control = Control::default();
        put(&mut control, libc::SOL_IP, 2, &[0; 5]);
        let mut stamp = [0; 48];
        stamp[..8].copy_from_slice(&7u64.to_ne_bytes());
        stamp[8..16].copy_from_slice(&42u64.to_ne_bytes());
        put(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &stamp);
        let mut error = [0; 16];
        error[4] = libc::SO_EE_ORIGIN_TIMESTAMPING;
        error[12..16].copy_from_slice(&9u32.to_ne_bytes());
        put(&mut control, libc::SOL_IP, libc::IP_RECVERR, &error);
        let told: Vec<_> = control.messages().collect();
        assert_eq!(told, [Message::Stamp(7_000_000_042), Message::SentNumber(9)]);
    }

    #[test]
    fn what_is_cut_off_is_no_message() {
        let mut control = Control::default();
        put(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &[1; 48]);
        for used in 0..64 {
            control.used = used;
            assert_eq!(control.messages().count(), 0, "{used}");
        }
        control.used = 64;
        assert_eq!(control.messages().count(), 1);
        // A length of 0 ends it, too.
        control.bytes[..8].fill(0);
        assert_eq!(control.messages().count(), 0);
    }
}
