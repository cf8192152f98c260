//! The format of the datagrams. Numbers are big endian; the header is followed by padding up to the requested size.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | magic `PNCT` |
//! | 4 | version of the format, 1 |
//! | 5 | kind: 1 request, 2 answer |
//! | 6 | properties of the answering end: bit 0 real-time policy, bit 1 locked memory, bit 2 kernel's time of reception, bit 3 AF_XDP |
//! | 7 | number of the traffic class in the run, from 0 |
//! | 8 | run: random number of the asking end |
//! | 12 | echo: random number that the answering end chose at its start |
//! | 16 | sequence: the slot, or all ones for a greeting |
//! | 24 | request: intended time of sending, ns on the asking end's clock; answer with bit 2: time at which the answering
//! end's kernel received the request, ns on that end's clock |
//! | 32 | actual time of sending, ns on the asking end's clock |
//! | 40 | time of reception at the answering end, ns on that end's clock |
//! | 48 | time of sending the answer, ns on that end's clock |
//!
//! Answering ends before version 0.3 return bytes 24 to 31 unchanged and never set bit 2.

/// Length of the header, bytes: the smallest payload.
pub const HEADER: usize = 56;
/// Sequence number of a greeting, which is not a slot.
pub const GREETING: u64 = u64::MAX;
/// The answering thread has a real-time policy.
pub const REALTIME: u8 = 1;
/// The answering end's memory is locked.
pub const LOCKED: u8 = 2;
/// The answering end bypasses its network stack, so it has no [time of the kernel](Packet::kernel_ns).
pub const XDP: u8 = 8;

/// The answer contains the time at which the answering end's kernel received the request.
const KERNEL_TIME: u8 = 4;

const MAGIC: [u8; 4] = *b"PNCT";
const VERSION: u8 = 1;

/// Offset of the number of the run.
pub(super) const RUN_AT: u32 = 8;
/// Offset of the number of the traffic class.
pub(super) const CLASS_AT: u16 = 7;

/// The header of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packet {
    /// True for an answer.
    pub is_answer: bool,
    /// Properties of the answering end: [`REALTIME`], [`LOCKED`], [`XDP`].
    pub has: u8,
    /// Number of the traffic class in the run.
    pub class: u8,
    /// Number of the run.
    pub run: u32,
    /// Number of the answering end, chosen at its start.
    pub echo: u32,
    /// The slot, or [`GREETING`].
    pub sequence: u64,
    /// Intended time of sending, ns on the asking end's clock.
    pub intended_ns: i64,
    /// Actual time of sending, ns on the asking end's clock.
    pub sent_ns: i64,
    /// Time at which the answering end's kernel received the request, ns on that end's clock; only in answers, and `None`
    /// without a timestamp. It takes the place of the intended time.
    pub kernel_ns: Option<i64>,
    /// Time at which the answering thread received the request, ns on the answering end's clock.
    pub received_ns: i64,
    /// Time of sending the answer, ns on the answering end's clock.
    pub answered_ns: i64,
}

impl Packet {
    /// Reads the header of `bytes`; `None` for a datagram of another program.
    #[inline]
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER] = bytes.first_chunk()?;
        let is_answer = match header[5] {
            1 => false,
            2 => true,
            _ => return None,
        };
        (header[..4] == MAGIC && header[4] == VERSION).then_some(())?;
        let has_kernel_time = is_answer && header[6] & KERNEL_TIME != 0;
        let intended_or_kernel_ns = i64::from_be_bytes(part(header, 24));
        Some(Self {
            is_answer,
            has: header[6] & !KERNEL_TIME,
            class: header[7],
            run: u32::from_be_bytes(part(header, 8)),
            echo: u32::from_be_bytes(part(header, 12)),
            sequence: u64::from_be_bytes(part(header, 16)),
            intended_ns: if has_kernel_time { 0 } else { intended_or_kernel_ns },
            kernel_ns: has_kernel_time.then_some(intended_or_kernel_ns),
            sent_ns: i64::from_be_bytes(part(header, 32)),
            received_ns: i64::from_be_bytes(part(header, 40)),
            answered_ns: i64::from_be_bytes(part(header, 48)),
        })
    }

    /// Writes the header at the start of `bytes`, which must be long enough.
    #[inline]
    pub fn write(&self, bytes: &mut [u8]) {
        let Some(header) = bytes.first_chunk_mut::<HEADER>() else { return };
        let kernel_ns = self.kernel_ns.filter(|_| self.is_answer);
        let kernel_time = if kernel_ns.is_some() { KERNEL_TIME } else { 0 };
        header[..4].copy_from_slice(&MAGIC);
        let kind = if self.is_answer { 2 } else { 1 };
        header[4..8].copy_from_slice(&[VERSION, kind, self.has | kernel_time, self.class]);
        header[8..12].copy_from_slice(&self.run.to_be_bytes());
        header[12..16].copy_from_slice(&self.echo.to_be_bytes());
        header[16..24].copy_from_slice(&self.sequence.to_be_bytes());
        header[24..32].copy_from_slice(&kernel_ns.unwrap_or(self.intended_ns).to_be_bytes());
        header[32..40].copy_from_slice(&self.sent_ns.to_be_bytes());
        header[40..48].copy_from_slice(&self.received_ns.to_be_bytes());
        header[48..56].copy_from_slice(&self.answered_ns.to_be_bytes());
    }
}

/// Writes the time of sending into the header, right before sending.
#[inline]
pub fn stamp_sent(bytes: &mut [u8], sent_ns: i64) {
    if let Some(field) = bytes.get_mut(32..40) {
        field.copy_from_slice(&sent_ns.to_be_bytes());
    }
}

fn part<const N: usize>(header: &[u8; HEADER], at: usize) -> [u8; N] {
    std::array::from_fn(|index| header[at + index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet() -> impl Strategy<Value = Packet> {
        let times = (any::<i64>(), any::<i64>(), any::<i64>(), any::<i64>());
        let kernel_ns = proptest::option::of(any::<i64>());
        (any::<bool>(), (0..4u8, any::<u8>()), any::<u32>(), any::<u32>(), any::<u64>(), times, kernel_ns).prop_map(
            |(
                is_answer,
                (has, class),
                run,
                echo,
                sequence,
                (intended_ns, sent_ns, received_ns, answered_ns),
                kernel_ns,
            )| {
                let kernel_ns = kernel_ns.filter(|_| is_answer);
                let intended_ns = if kernel_ns.is_some() { 0 } else { intended_ns };
                Packet {
                    is_answer,
                    has,
                    class,
                    run,
                    echo,
                    sequence,
                    intended_ns,
                    sent_ns,
                    kernel_ns,
                    received_ns,
                    answered_ns,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn reads_the_written_header(packet in packet(), padding in 0..100usize) {
            let mut bytes = vec![0xaa; HEADER + padding];
            packet.write(&mut bytes);
            prop_assert_eq!(Packet::read(&bytes), Some(packet));
            stamp_sent(&mut bytes, 42);
            prop_assert_eq!(Packet::read(&bytes), Some(Packet { sent_ns: 42, ..packet }));
            prop_assert!(bytes[HEADER..].iter().all(|&byte| byte == 0xaa), "padding is unchanged");
        }

        #[test]
        fn rejects_other_datagrams(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            // 48 bits must match, which does not happen by chance.
            prop_assert_eq!(Packet::read(&bytes), None);
        }

        #[test]
        fn rejects_one_wrong_byte_of_magic_version_or_kind(packet in packet(), at in 0..6usize, by in 3..=252u8) {
            let mut bytes = [0; HEADER];
            packet.write(&mut bytes);
            bytes[at] = bytes[at].wrapping_add(by);
            prop_assert_eq!(Packet::read(&bytes), None);
        }

        #[test]
        fn rejects_a_truncated_header(packet in packet(), len in 0..HEADER) {
            let mut bytes = [0; HEADER];
            packet.write(&mut bytes);
            prop_assert_eq!(Packet::read(&bytes[..len]), None);
        }
    }
}
