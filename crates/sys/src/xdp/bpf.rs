//! The system call bpf(2): a map of sockets, a program, and a link that attaches the program to an interface.
//!
//! Numbers and layouts are those of the kernel's `bpf.h`. A request may be shorter than the kernel's structure, whose
//! remaining fields are then zero.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use crate::convert;

const MAP_CREATE: i32 = 0;
const MAP_UPDATE_ELEM: i32 = 2;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;

const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
/// The attach type of XDP programs.
const XDP: u32 = 37;

/// One instruction: opcode, registers, offset (of a jump or of memory) and immediate value.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    pub operation: u8,
    /// The destination register in the lower four bits, the source in the upper four.
    pub registers: u8,
    pub offset: i16,
    pub number: i32,
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: i32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    kind: u32,
    instructions: u32,
    first_instruction: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
struct LinkCreate {
    program: i32,
    interface: u32,
    kind: u32,
    flags: u32,
}

/// Creates a map from numbers below `sockets` to sockets.
pub fn socket_map(sockets: u32) -> io::Result<OwnedFd> {
    let request = MapCreate { kind: MAP_TYPE_XSKMAP, key_bytes: 4, value_bytes: 4, max_entries: sockets };
    // SAFETY: the request has no pointers.
    unsafe { bpf_fd(MAP_CREATE, &request) }
}

/// Puts `socket` into a map at `number`.
pub fn put_socket(map: BorrowedFd, number: u32, socket: BorrowedFd) -> io::Result<()> {
    let value = socket.as_raw_fd().cast_unsigned();
    let (key, value) = ((&raw const number) as u64, (&raw const value) as u64);
    let request = MapUpdate { map: map.as_raw_fd(), padding: 0, key, value, flags: 0 };
    // SAFETY: key and value are live and of four bytes each, as declared in `socket_map`.
    unsafe { bpf(MAP_UPDATE_ELEM, &request) }.map(drop)
}

/// Loads a program. The kernel's verifier checks it.
pub fn load(instructions: &[Instruction], name: &str) -> io::Result<OwnedFd> {
    // A licence other than the GPL excludes GPL-only helper functions, which we do not need.
    let license = c"MIT";
    let mut padded = [0; 16];
    let bytes = name.as_bytes();
    padded[..bytes.len().min(15)].copy_from_slice(&bytes[..bytes.len().min(15)]);
    let request = ProgLoad {
        kind: PROG_TYPE_XDP,
        instructions: convert::length(instructions.len()),
        first_instruction: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: padded,
    };
    // SAFETY: instructions and licence are live and of the given lengths; the kernel copies them.
    unsafe { bpf_fd(PROG_LOAD, &request) }
}

/// Attaches a program to an interface while the returned descriptor is open. `flags` are XDP_FLAGS_*.
pub fn attach(program: BorrowedFd, interface: u32, flags: u32) -> io::Result<OwnedFd> {
    let request = LinkCreate { program: program.as_raw_fd(), interface, kind: XDP, flags };
    // SAFETY: the request has no pointers.
    unsafe { bpf_fd(LINK_CREATE, &request) }
}

/// Runs a command that returns a descriptor, which is close-on-exec.
///
/// # Safety
/// The same as for [`bpf`], and the command must return a descriptor.
unsafe fn bpf_fd<T>(command: i32, request: &T) -> io::Result<OwnedFd> {
    // SAFETY: guaranteed by the caller.
    let fd = unsafe { bpf(command, request) }?;
    // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The system call itself.
///
/// # Safety
/// `request` must be the structure for this command, without padding, and its pointers must be live.
unsafe fn bpf<T>(command: i32, request: &T) -> io::Result<i32> {
    // SAFETY: the kernel reads only the bytes of the request; the rest is guaranteed by the caller.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(request), size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { i32::try_from(answer).map_err(io::Error::other) }
}
