//! The datagram: what both ends write into it. Numbers are big endian; what follows the header is padding of the size asked
//! for.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | magic `PNCT` |
//! | 4 | version of this form, 1 |
//! | 5 | kind: 1 request, 2 answer |
//! | 6 | what the answering end has: bit 0 a real-time policy, bit 1 locked memory |
//! | 7 | 0 |
//! | 8 | run: a number that the asking end drew |
//! | 12 | echo: a number that the answering end drew when it began |
//! | 16 | sequence: the slot, or all ones for a greeting |
//! | 24 | when it was to be sent, ns on the asking end's clock |
//! | 32 | when it was sent, ns on the asking end's clock |
//! | 40 | when it came in at the answering end, ns on that end's clock |
//! | 48 | when the answer was sent, ns on that end's clock |

/// Length of the header, bytes: the smallest payload.
pub const HEADER: usize = 56;
/// Sequence of a greeting, which is no slot.
pub const GREETING: u64 = u64::MAX;
/// The answering end runs under a real-time policy.
pub const REALTIME: u8 = 1;
/// The answering end's memory is locked.
pub const LOCKED: u8 = 2;

const MAGIC: [u8; 4] = *b"PNCT";
const VERSION: u8 = 1;

/// The header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packet {
    /// Whether it is an answer.
    pub is_answer: bool,
    /// [`REALTIME`], [`LOCKED`].
    pub has: u8,
    /// Number of the run.
    pub run: u32,
    /// Number of the answering end.
    pub echo: u32,
    /// The slot, or [`GREETING`].
    pub sequence: u64,
    /// When it was to be sent, ns on the asking end's clock.
    pub intended_ns: i64,
    /// When it was sent, ns on the asking end's clock.
    pub sent_ns: i64,
    /// When it came in, ns on the answering end's clock.
    pub received_ns: i64,
    /// When the answer was sent, ns on the answering end's clock.
    pub answered_ns: i64,
}

impl Packet {
    /// What stands at the head of `bytes`; `None` where it is not of ours.
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
        Some(Self {
            is_answer,
            has: header[6],
            run: u32::from_be_bytes(part(header, 8)),
            echo: u32::from_be_bytes(part(header, 12)),
            sequence: u64::from_be_bytes(part(header, 16)),
            intended_ns: i64::from_be_bytes(part(header, 24)),
            sent_ns: i64::from_be_bytes(part(header, 32)),
            received_ns: i64::from_be_bytes(part(header, 40)),
            answered_ns: i64::from_be_bytes(part(header, 48)),
        })
    }

    /// Writes it at the head of `bytes`, which have room for it.
    #[inline]
    pub fn write(&self, bytes: &mut [u8]) {
        let Some(header) = bytes.first_chunk_mut::<HEADER>() else { return };
        header[..4].copy_from_slice(&MAGIC);
        header[4..8].copy_from_slice(&[VERSION, if self.is_answer { 2 } else { 1 }, self.has, 0]);
        header[8..12].copy_from_slice(&self.run.to_be_bytes());
        header[12..16].copy_from_slice(&self.echo.to_be_bytes());
        header[16..24].copy_from_slice(&self.sequence.to_be_bytes());
        header[24..32].copy_from_slice(&self.intended_ns.to_be_bytes());
        header[32..40].copy_from_slice(&self.sent_ns.to_be_bytes());
        header[40..48].copy_from_slice(&self.received_ns.to_be_bytes());
        header[48..56].copy_from_slice(&self.answered_ns.to_be_bytes());
    }
}

/// Writes when it was sent into the header at the head of `bytes`: the last that is known.
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
        (any::<bool>(), any::<u8>(), any::<u32>(), any::<u32>(), any::<u64>(), times).prop_map(
            |(is_answer, has, run, echo, sequence, (intended_ns, sent_ns, received_ns, answered_ns))| Packet {
                is_answer,
                has,
                run,
                echo,
                sequence,
                intended_ns,
                sent_ns,
                received_ns,
                answered_ns,
            },
        )
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(packet in packet(), padding in 0..100usize) {
            let mut bytes = vec![0xaa; HEADER + padding];
            packet.write(&mut bytes);
            prop_assert_eq!(Packet::read(&bytes), Some(packet));
            stamp_sent(&mut bytes, 42);
            prop_assert_eq!(Packet::read(&bytes), Some(Packet { sent_ns: 42, ..packet }));
            prop_assert!(bytes[HEADER..].iter().all(|&byte| byte == 0xaa), "padding is left alone");
        }

        #[test]
        fn strangers_are_told(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            // 48 bits that must be right: never by chance.
            prop_assert_eq!(Packet::read(&bytes), None);
        }

        #[test]
        fn one_wrong_byte_of_magic_version_or_kind_is_enough(packet in packet(), at in 0..6usize, by in 3..=252u8) {
            let mut bytes = [0; HEADER];
            packet.write(&mut bytes);
            bytes[at] = bytes[at].wrapping_add(by);
            prop_assert_eq!(Packet::read(&bytes), None);
        }

        #[test]
        fn a_short_one_is_none(packet in packet(), len in 0..HEADER) {
            let mut bytes = [0; HEADER];
            packet.write(&mut bytes);
            prop_assert_eq!(Packet::read(&bytes[..len]), None);
        }
    }
}
