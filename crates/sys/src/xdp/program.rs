//! The XDP program: redirects AVTP frames of one queue to the socket and passes all other frames on.
//!
//! The program is attached by a BPF link. The kernel detaches it when the last descriptor of the link is closed, at the
//! latest when the process ends for any reason.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::io::Errno;

use super::{
    Step, XdpError,
    bpf::{self, Instruction},
};
use crate::convert;

/// The point in the receive path where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// In the driver, before the kernel allocates a buffer for the frame.
    Native,
    /// After the buffer is allocated. Every driver supports this.
    Generic,
}

impl Hook {
    /// The matching XDP_FLAGS_* of `if_link.h`.
    fn flags(self) -> u32 {
        match self {
            Self::Native => 1 << 2,
            Self::Generic => 1 << 1,
        }
    }
}

/// A program that is attached to an interface until this is dropped.
#[derive(Debug)]
pub struct Attached {
    _link: OwnedFd,
    sockets: OwnedFd,
    queue: u32,
    /// The hook at which the program runs.
    pub hook: Hook,
}

impl Attached {
    /// Attaches the program to the interface with this index, at `hook` or at the best hook that the driver supports.
    /// The program passes all frames on until a socket is registered for `queue`.
    pub fn to(interface: u32, ethertype: u16, queue: u32, hook: Option<Hook>) -> Result<Self, XdpError> {
        let failed = |error| Step::Program.failed(error);
        let sockets = bpf::socket_map(queue.saturating_add(1)).map_err(failed)?;
        let program = bpf::load(&program(ethertype, sockets.as_fd()), "avtp_to_socket").map_err(failed)?;
        let attach = |hook: Hook| bpf::attach(program.as_fd(), interface, hook.flags()).map(|link| (link, hook));
        let attached = match hook {
            Some(hook) => attach(hook),
            None => attach(Hook::Native).or_else(|error: io::Error| match Errno::from_io_error(&error) {
                // These errors are not caused by a missing feature of the driver.
                Some(Errno::BUSY | Errno::EXIST | Errno::PERM | Errno::ACCESS) => Err(error),
                _ => attach(Hook::Generic),
            }),
        };
        let (link, hook) = attached.map_err(|error| Step::Attach.failed(error))?;
        Ok(Self { _link: link, sockets, queue, hook })
    }

    /// Redirects the queue's frames to this socket, which must be bound to it.
    pub fn redirect_to(&self, socket: BorrowedFd) -> Result<(), XdpError> {
        bpf::put_socket(self.sockets.as_fd(), self.queue, socket).map_err(|error| Step::Program.failed(error))
    }
}

/// Return values of a program, from `enum xdp_action`.
const PASS: i32 = 2;
/// The helper `bpf_redirect_map`. It returns its third argument if the map has no socket for the queue.
const REDIRECT_MAP: i32 = 51;
/// Marks an immediate value as the descriptor of a map.
const PSEUDO_MAP_FD: u8 = 1;

/// Offsets in `struct xdp_md`, whose fields have 32 bits.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;

/// Offset of the EtherType in a frame, and of the EtherType after a VLAN tag.
const ETHERTYPE_AT: i16 = 12;
const INNER_ETHERTYPE_AT: i16 = 16;

/// Redirects frames of `ethertype`, with or without a VLAN tag, to the socket of their queue.
fn program(ethertype: u16, sockets: BorrowedFd) -> [Instruction; 19] {
    const LOAD_WORD: u8 = 0x61;
    const LOAD_HALF: u8 = 0x69;
    const LOAD_64_BITS: u8 = 0x18;
    const COPY: u8 = 0xbf;
    const SET: u8 = 0xb7;
    const ADD: u8 = 0x07;
    const JUMP_IF_ABOVE: u8 = 0x2d;
    const JUMP_IF_EQUAL: u8 = 0x15;
    const JUMP_IF_NOT_EQUAL: u8 = 0x55;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    let step = |operation, to: u8, from: u8, offset, number| Instruction {
        operation,
        registers: to | from << 4,
        offset,
        number,
    };
    // The value that a 16-bit load of big-endian bytes gives.
    let as_loaded = |ethertype: u16| i32::from(ethertype.to_be());
    let (wanted, vlan) = (as_loaded(ethertype), as_loaded(convert::constant(libc::ETH_P_8021Q)));
    // Register 1 is the context, register 0 the return value; arguments are in 1 to 3. A jump of n skips n
    // instructions. All jumps but one go to the end.
    [
        step(SET, 0, 0, 0, PASS),
        step(LOAD_WORD, 2, 1, DATA, 0),
        step(LOAD_WORD, 3, 1, DATA_END, 0),
        step(COPY, 4, 2, 0, 0),
        step(ADD, 4, 0, 0, i32::from(ETHERTYPE_AT) + 2),
        step(JUMP_IF_ABOVE, 4, 3, 12, 0),
        step(LOAD_HALF, 5, 2, ETHERTYPE_AT, 0),
        step(JUMP_IF_EQUAL, 5, 0, 5, wanted),
        step(JUMP_IF_NOT_EQUAL, 5, 0, 9, vlan),
        step(ADD, 4, 0, 0, i32::from(INNER_ETHERTYPE_AT - ETHERTYPE_AT)),
        step(JUMP_IF_ABOVE, 4, 3, 7, 0),
        step(LOAD_HALF, 5, 2, INNER_ETHERTYPE_AT, 0),
        step(JUMP_IF_NOT_EQUAL, 5, 0, 5, wanted),
        step(LOAD_WORD, 2, 1, RX_QUEUE_INDEX, 0),
        step(LOAD_64_BITS, 1, PSEUDO_MAP_FD, 0, sockets.as_raw_fd()),
        step(0, 0, 0, 0, 0),
        step(SET, 3, 0, 0, PASS),
        step(CALL, 0, 0, 0, REDIRECT_MAP),
        step(EXIT, 0, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVTP: u16 = 0x22f0;
    const REDIRECTED: i64 = 4;

    /// Interprets the program on a frame. Addresses count from the start of the frame. The helper call behaves as for a
    /// queue with a socket.
    fn run(frame: &[u8], queue: u32) -> (i64, Option<i64>) {
        let program = program(AVTP, rustix::stdio::stdin());
        let mut registers = [0_i64; 11];
        let (mut at, mut redirected_queue) = (0, None);
        loop {
            let Instruction { operation, registers: which, offset, number } = program[at];
            let (to, from) = (usize::from(which & 15), usize::from(which >> 4));
            let jumps = match operation {
                0x15 => registers[to] == i64::from(number),
                0x55 => registers[to] != i64::from(number),
                0x2d => registers[to] > registers[from],
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
                0xbf => registers[to] = registers[from],
                0xb7 => registers[to] = i64::from(number),
                0x07 => registers[to] += i64::from(number),
                0x18 => at += 1,
                0x15 | 0x55 | 0x2d => {}
                0x85 => {
                    assert_eq!((number, registers[3]), (51, 2), "bpf_redirect_map with XDP_PASS as default");
                    redirected_queue = Some(registers[2]);
                    registers[0] = REDIRECTED;
                }
                0x95 => return (registers[0], redirected_queue),
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
        assert_eq!(run(&frame(&[0x22, 0xf0, 0, 0, 0, 0]), 3), (REDIRECTED, Some(3)));
        assert_eq!(run(&frame(&[0x81, 0x00, 0x60, 0x02, 0x22, 0xf0, 0]), 0), (REDIRECTED, Some(0)));
        assert_eq!(run(&frame(&[0x22, 0xf0]), 0), (REDIRECTED, Some(0)), "the shortest frame");
        assert_eq!(run(&frame(&[0x81, 0x00, 0x60, 0x02, 0x22, 0xf0]), 0), (REDIRECTED, Some(0)));
    }

    #[test]
    fn passes_other_and_truncated_frames() {
        let pass = (i64::from(PASS), None);
        for others in [&[0x08, 0x00, 0x22, 0xf0, 0x22, 0xf0][..], &[0x81, 0x00, 0x60, 0x02, 0x08, 0x00], &[0xf0, 0x22]]
        {
            assert_eq!(run(&frame(others), 0), pass, "{others:x?}");
        }
        // Streams do not have two VLAN tags.
        assert_eq!(run(&frame(&[0x81, 0x00, 0x60, 0x02, 0x81, 0x00, 0x60, 0x02, 0x22, 0xf0]), 0), pass);
        let tagged = frame(&[0x81, 0x00, 0x60, 0x02, 0x22, 0xf0]);
        for length in 0..tagged.len() {
            assert_eq!(run(&tagged[..length], 0), pass, "{length} bytes");
        }
    }

    #[test]
    fn instruction_layout_matches_the_kernel() {
        assert_eq!(size_of::<Instruction>(), 8);
        let map = program(AVTP, rustix::stdio::stdin())[14];
        assert_eq!(map, Instruction { operation: 0x18, registers: 0x11, offset: 0, number: 0 });
    }
}
