//! The frames for the sockets of a queue, as instructions of the XDP program.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::bpf::Instruction;
use crate::convert;

/// Length of an Ethernet header without a VLAN tag, bytes.
const HEADER: i16 = 14;
/// Length of a VLAN tag, bytes.
const TAG: i16 = 4;
/// Offset of the EtherType in a frame without a VLAN tag.
const ETHERTYPE_AT: i16 = 12;

/// Selects the frames for the sockets of a queue, each with or without a VLAN tag (802.1Q). All conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XdpFilter {
    ethertypes: Vec<u16>,
    fields: Vec<Field>,
    /// Offset of the byte that contains the number of the socket; `None` for socket 0.
    member_at: Option<i16>,
}

/// A condition: the 16 bits at an offset, in the byte order of the network, masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    at: i16,
    mask: u16,
    value: u16,
}

impl XdpFilter {
    /// Frames of any of these EtherTypes.
    #[must_use]
    pub fn of(ethertypes: &[u16]) -> Self {
        Self { ethertypes: ethertypes.to_vec(), fields: Vec::new(), member_at: None }
    }

    /// In addition, the frame contains these bytes at offset `at`, counted without a VLAN tag. Number and offset of the
    /// bytes must be even, and they must not contain the EtherType.
    #[must_use]
    pub fn with(mut self, at: u16, bytes: &[u8]) -> Self {
        debug_assert!(bytes.len().is_multiple_of(2), "an even number of bytes");
        for (at, pair) in (at..).step_by(2).zip(bytes.as_chunks::<2>().0) {
            self = self.with_bits(at, u16::MAX, u16::from_be_bytes(*pair));
        }
        self
    }

    /// In addition, the 16 bits at offset `at`, counted without a VLAN tag, are `value` where `mask` is 1.
    #[must_use]
    pub fn with_bits(mut self, at: u16, mask: u16, value: u16) -> Self {
        let at = i16::try_from(at).unwrap_or(i16::MAX);
        debug_assert!(at % 2 == 0 && at != ETHERTYPE_AT, "an even offset, and not that of the EtherType");
        self.fields.push(Field { at, mask, value });
        self
    }

    /// The byte at offset `at`, counted without a VLAN tag and not before the EtherType, is the number of the socket for a
    /// frame. A frame of a number without a socket is passed on.
    #[must_use]
    pub fn with_members(self, at: u16) -> Self {
        debug_assert!(at > ETHERTYPE_AT.cast_unsigned(), "after the EtherType");
        Self { member_at: Some(i16::try_from(at).unwrap_or(i16::MAX)), ..self }
    }

    /// The program that redirects the frames of this queue to their sockets.
    pub(super) fn program(&self, queue: u32, sockets: BorrowedFd) -> Vec<Instruction> {
        let mut code = Code::default();
        // Register 1 is the context, register 0 the return value; arguments are in 1 to 3.
        code.add(SET, 0, 0, 0, PASS);
        code.add(LOAD_WORD, 5, 1, RX_QUEUE_INDEX, 0);
        code.pass_on(JUMP_IF_NOT_EQUAL, 5, 0, queue.cast_signed());
        code.add(LOAD_WORD, 2, 1, DATA, 0);
        code.add(LOAD_WORD, 3, 1, DATA_END, 0);
        code.need(HEADER);
        let (before, after): (Vec<Field>, Vec<Field>) = self.fields.iter().partition(|field| field.at < ETHERTYPE_AT);
        before.into_iter().for_each(|field| code.require(field));
        // After a tag, offsets count from 4 bytes later.
        code.add(LOAD_HALF, 5, 2, ETHERTYPE_AT, 0);
        code.add(JUMP_IF_NOT_EQUAL, 5, 0, 1, as_loaded(convert::constant(libc::ETH_P_8021Q)));
        code.add(ADD, 2, 0, 0, i32::from(TAG));
        let ends = after.iter().map(|field| field.at.saturating_add(2));
        let member_end = self.member_at.map(|at| at.saturating_add(1));
        code.need(ends.chain(member_end).fold(HEADER, i16::max));
        code.add(LOAD_HALF, 5, 2, ETHERTYPE_AT, 0);
        // Each match skips the other comparisons and the jump to the end.
        for (left, ethertype) in
            (0_i16..self.ethertypes.len().try_into().unwrap_or(i16::MAX)).rev().zip(&self.ethertypes)
        {
            code.add(JUMP_IF_EQUAL, 5, 0, left + 1, as_loaded(*ethertype));
        }
        code.pass_on(JUMP, 0, 0, 0);
        after.into_iter().for_each(|field| code.require(field));
        match self.member_at {
            Some(at) => code.add(LOAD_BYTE, 2, 2, at, 0),
            None => code.add(SET, 2, 0, 0, 0),
        }
        code.add(LOAD_64_BITS, 1, PSEUDO_MAP_FD, 0, sockets.as_raw_fd());
        code.add(0, 0, 0, 0, 0);
        code.add(SET, 3, 0, 0, PASS);
        code.add(CALL, 0, 0, 0, REDIRECT_MAP);
        code.finish()
    }
}

// Operations.
const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const LOAD_BYTE: u8 = 0x71;
const LOAD_64_BITS: u8 = 0x18;
const COPY: u8 = 0xbf;
const SET: u8 = 0xb7;
const ADD: u8 = 0x07;
const AND: u8 = 0x57;
const JUMP: u8 = 0x05;
const JUMP_IF_ABOVE: u8 = 0x2d;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_IF_NOT_EQUAL: u8 = 0x55;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Return values of a program, from `enum xdp_action`.
const PASS: i32 = 2;
/// The helper `bpf_redirect_map`. It returns its third argument if the map has no such socket.
const REDIRECT_MAP: i32 = 51;
/// Marks an immediate value as the descriptor of a map.
const PSEUDO_MAP_FD: u8 = 1;

/// Offsets in `struct xdp_md`, whose fields have 32 bits.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;

/// The value that a 16-bit load of big-endian bytes gives.
fn as_loaded(value: u16) -> i32 {
    i32::from(value.to_be())
}

/// Instructions, and the jumps to the end among them. A jump of n skips n instructions.
#[derive(Default)]
struct Code {
    steps: Vec<Instruction>,
    ending: Vec<usize>,
}

impl Code {
    fn add(&mut self, operation: u8, to: u8, from: u8, offset: i16, number: i32) {
        self.steps.push(Instruction { operation, registers: to | from << 4, offset, number });
    }

    fn pass_on(&mut self, operation: u8, to: u8, from: u8, number: i32) {
        self.ending.push(self.steps.len());
        self.add(operation, to, from, 0, number);
    }

    /// Passes the frame on if it has fewer than `bytes` bytes from register 2 on.
    fn need(&mut self, bytes: i16) {
        self.add(COPY, 4, 2, 0, 0);
        self.add(ADD, 4, 0, 0, i32::from(bytes));
        self.pass_on(JUMP_IF_ABOVE, 4, 3, 0);
    }

    /// Passes the frame on if a condition does not hold.
    fn require(&mut self, field: Field) {
        self.add(LOAD_HALF, 5, 2, field.at, 0);
        if field.mask != u16::MAX {
            self.add(AND, 5, 0, 0, as_loaded(field.mask));
        }
        self.pass_on(JUMP_IF_NOT_EQUAL, 5, 0, as_loaded(field.value & field.mask));
    }

    fn finish(mut self) -> Vec<Instruction> {
        let end = self.steps.len();
        self.add(EXIT, 0, 0, 0, 0);
        for at in self.ending {
            self.steps[at].offset = i16::try_from(end - at - 1).unwrap_or(i16::MAX);
        }
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVTP: u16 = 0x22f0;
    const REDIRECTED: i64 = 4;

    const QUEUE: u32 = 3;

    fn run(frame: &[u8]) -> (i64, Option<i64>) {
        run_with(&XdpFilter::of(&[AVTP]), frame, QUEUE)
    }

    /// Interprets the program for [`QUEUE`] on a frame of a queue. Addresses count from the start of the frame. The helper
    /// call behaves as if each socket existed; its number is the second result.
    fn run_with(filter: &XdpFilter, frame: &[u8], queue: u32) -> (i64, Option<i64>) {
        let program = filter.program(QUEUE, rustix::stdio::stdin());
        let mut registers = [0_i64; 11];
        let (mut at, mut redirected_to) = (0, None);
        loop {
            let Instruction { operation, registers: which, offset, number } = program[at];
            let (to, from) = (usize::from(which & 15), usize::from(which >> 4));
            let jumps = match operation {
                0x15 => registers[to] == i64::from(number),
                0x55 => registers[to] != i64::from(number),
                0x2d => registers[to] > registers[from],
                0x05 => true,
                _ => false,
            };
            match operation {
                0x61 => {
                    registers[to] = match offset {
                        0 => 0,
                        4 => i64::try_from(frame.len()).unwrap(),
                        16 => i64::from(queue),
                        other => panic!("unexpected context offset {other}"),
                    }
                }
                0x69 => {
                    let position = usize::try_from(registers[from] + i64::from(offset)).unwrap();
                    let half = frame[position..position + 2].try_into().unwrap();
                    registers[to] = i64::from(u16::from_ne_bytes(half));
                }
                0x71 => {
                    let position = usize::try_from(registers[from] + i64::from(offset)).unwrap();
                    registers[to] = i64::from(frame[position]);
                }
                0xbf => registers[to] = registers[from],
                0xb7 => registers[to] = i64::from(number),
                0x07 => registers[to] += i64::from(number),
                0x57 => registers[to] &= i64::from(number),
                0x18 => at += 1,
                0x15 | 0x55 | 0x2d | 0x05 => {}
                0x85 => {
                    assert_eq!((number, registers[3]), (51, 2), "bpf_redirect_map with XDP_PASS as default");
                    redirected_to = Some(registers[2]);
                    registers[0] = REDIRECTED;
                }
                0x95 => return (registers[0], redirected_to),
                other => panic!("instruction {other:#x}"),
            }
            at = at + 1 + if jumps { usize::try_from(offset).unwrap() } else { 0 };
        }
    }

    fn frame(after_addresses: &[u8]) -> Vec<u8> {
        [&[2; 12], after_addresses].concat()
    }

    #[test]
    fn redirects_frames_of_the_ethertype() {
        assert_eq!(run(&frame(&[0x22, 0xf0, 0, 0, 0, 0])), (REDIRECTED, Some(0)));
        assert_eq!(run(&frame(&[0x81, 0x00, 0x60, 0x02, 0x22, 0xf0, 0])), (REDIRECTED, Some(0)));
        assert_eq!(run(&frame(&[0x22, 0xf0])), (REDIRECTED, Some(0)), "the shortest frame");
        assert_eq!(run(&frame(&[0x81, 0x00, 0x60, 0x02, 0x22, 0xf0])), (REDIRECTED, Some(0)));
    }

    #[test]
    fn passes_other_and_truncated_frames() {
        let pass = (i64::from(PASS), None);
        for others in [&[0x08, 0x00, 0x22, 0xf0, 0x22, 0xf0][..], &[0x81, 0x00, 0x60, 0x02, 0x08, 0x00], &[0xf0, 0x22]]
        {
            assert_eq!(run(&frame(others)), pass, "{others:x?}");
        }
        // Streams do not have two VLAN tags.
        assert_eq!(run(&frame(&[0x81, 0x00, 0x60, 0x02, 0x81, 0x00, 0x60, 0x02, 0x22, 0xf0])), pass);
        let tagged = frame(&[0x81, 0x00, 0x60, 0x02, 0x22, 0xf0]);
        for length in 0..tagged.len() {
            assert_eq!(run(&tagged[..length]), pass, "{length} bytes");
        }
    }

    #[test]
    fn passes_frames_of_other_queues() {
        let frame = frame(&[0x22, 0xf0, 0, 0]);
        for queue in [0, 1, 4, u32::MAX] {
            assert_eq!(run_with(&XdpFilter::of(&[AVTP]), &frame, queue), (i64::from(PASS), None), "{queue}");
        }
    }

    #[test]
    fn a_byte_of_the_frame_selects_the_socket() {
        let filter = XdpFilter::of(&[AVTP]).with(14, &[1, 2]).with_members(17);
        for (tag, member) in [(&[][..], 0), (&[0x81, 0, 0x60, 5], 255), (&[0x81, 0, 0, 0], 7)] {
            let frame = frame(&[tag, &[0x22, 0xf0, 1, 2, 9, member]].concat());
            assert_eq!(run_with(&filter, &frame, QUEUE), (REDIRECTED, Some(member.into())));
            for length in 0..frame.len() {
                assert_eq!(run_with(&filter, &frame[..length], QUEUE), (i64::from(PASS), None), "{length} bytes");
            }
        }
    }

    #[test]
    fn selects_by_several_ethertypes_and_by_fields_before_and_after_the_tag() {
        let own = [2, 0, 0, 0, 0, 9];
        let filter = XdpFilter::of(&[0x88b5, 0x8892]).with(0, &own).with(20, &[0xab, 0xcd]).with_bits(22, 0x00ff, 17);
        let after = |ethertype: [u8; 2], last: u8| [&ethertype[..], &[0, 1, 2, 3, 4, 5, 0xab, 0xcd, 77, last]].concat();
        let plain = |ethertype, last| [&own[..], &[2; 6], &after(ethertype, last)].concat();
        let tagged = |ethertype, last| [&own[..], &[2; 6], &[0x81, 0, 0x60, 5], &after(ethertype, last)].concat();
        for ethertype in [[0x88, 0xb5], [0x88, 0x92]] {
            for frame in [plain(ethertype, 17), tagged(ethertype, 17)] {
                assert_eq!(run_with(&filter, &frame, QUEUE), (REDIRECTED, Some(0)), "{frame:x?}");
                for length in 0..frame.len() {
                    assert_eq!(run_with(&filter, &frame[..length], QUEUE).0, i64::from(PASS), "{length} bytes");
                }
                for at in [0, 5, frame.len() - 1, frame.len() - 3, frame.len() - 12] {
                    let mut other = frame.clone();
                    other[at] ^= 1;
                    assert_eq!(run_with(&filter, &other, QUEUE).0, i64::from(PASS), "byte {at} of {frame:x?}");
                }
                // Outside the mask and in the source address.
                for at in [frame.len() - 2, 7] {
                    let mut other = frame.clone();
                    other[at] ^= 1;
                    assert_eq!(run_with(&filter, &other, QUEUE).0, REDIRECTED, "byte {at} of {frame:x?}");
                }
            }
        }
    }

    #[test]
    fn instruction_layout_matches_the_kernel() {
        assert_eq!(size_of::<Instruction>(), 8);
        let map = XdpFilter::of(&[AVTP])
            .program(QUEUE, rustix::stdio::stdin())
            .into_iter()
            .find(|step| step.operation == 0x18);
        assert_eq!(map.unwrap(), Instruction { operation: 0x18, registers: 0x11, offset: 0, number: 0 });
    }
}
