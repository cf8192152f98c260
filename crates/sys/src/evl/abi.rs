//! How the EVL core and a program talk. Numbers and layouts are those of the kernel's `include/uapi/evl` at ABI 26, 32, 34, 40
//! and 43, which do not differ in what is used here but for the way to make an out-of-band call.

use std::ops::RangeInclusive;

/// ABI levels that are spoken here. 22 gave elements their visibility, and so the request that makes a thread its form.
pub const LEVELS: RangeInclusive<u32> = 23..=43;

/// The out-of-band call that stands for `ioctl`.
const CALL_IOCTL: libc::c_long = 2;
/// Marks a call as out-of-band where its number does.
const OOB_BIT: libc::c_long = 0x1000_0000;
/// Marks a `prctl` as out-of-band.
const PR_OOB_SYSCALL: libc::c_long = 0x4f4f_4243;

/// How a program makes an out-of-band call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// By a system call whose number is marked: the only way up to ABI 26.
    Marked,
    /// By a `prctl` whose first argument is the marked number: since ABI 27.
    MarkedPrctl,
    /// By a `prctl` of its own, the number following: the only way since ABI 36.
    Prctl,
}

impl Form {
    /// The newest that a core of this level knows.
    pub fn of(level: u32) -> Self {
        match level {
            ..27 => Self::Marked,
            27..36 => Self::MarkedPrctl,
            36.. => Self::Prctl,
        }
    }

    /// The system call for an out-of-band `ioctl`, and what stands before its own arguments.
    pub fn ioctl(self) -> (libc::c_long, &'static [libc::c_long]) {
        match self {
            Self::Marked => (CALL_IOCTL | OOB_BIT, &[]),
            Self::MarkedPrctl => (libc::SYS_prctl, &[CALL_IOCTL | OOB_BIT]),
            Self::Prctl => (libc::SYS_prctl, &[PR_OOB_SYSCALL, CALL_IOCTL]),
        }
    }
}

/// `struct evl_core_info`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct CoreInfo {
    pub abi_base: u32,
    pub abi_current: u32,
    pub fpu_features: u32,
    pub shm_size: u64,
}

/// `struct evl_clone_req`: makes an element, here a thread of the calling one.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct CloneRequest {
    pub name_ptr: u64,
    pub attrs_ptr: u64,
    /// 0: no file for other processes.
    pub clone_flags: u32,
    pub minor: u32,
    pub fundle: u32,
    pub state_offset: u32,
    /// The descriptor of what was made.
    pub efd: u32,
}

/// `struct evl_sched_attrs`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct SchedAttrs {
    pub policy: i32,
    pub priority: i32,
    /// Of other policies than FIFO.
    pub parameter: [i64; 2],
}

/// `struct evl_thread_state`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadState {
    pub attrs: SchedAttrs,
    pub cpu: u32,
    pub state: u32,
    /// Switches to the in-band stage.
    pub isw: u32,
    /// Context switches.
    pub csw: u32,
    /// Out-of-band calls.
    pub sc: u32,
    /// Wake-ups from other CPUs.
    pub rwa: u32,
    /// CPU time, ns.
    pub xtime: u64,
}

/// `struct __evl_timespec`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Timespec {
    pub tv_sec: i64,
    pub tv_nsec: i64,
}

const NONE: u32 = 0;
const WRITE: u32 = 1;
const READ: u32 = 2;

/// As `_IOC` of `asm-generic/ioctl.h`, which x86 and ARM use.
const fn request(direction: u32, kind: u8, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (kind as u32) << 8 | number
}

pub const GET_COREINFO: u32 = request(READ, b'C', 0, size_of::<CoreInfo>());
pub const CLONE: u32 = request(READ | WRITE, b'f', 0, size_of::<CloneRequest>());
pub const SLEEP: u32 = request(WRITE, b'c', 0, size_of::<Timespec>());
pub const SET_SCHEDPARAM: u32 = request(WRITE, b'T', 1, size_of::<SchedAttrs>());
pub const GET_STATE: u32 = request(READ, b'T', 4, size_of::<ThreadState>());
pub const DETACH_SELF: u32 = request(NONE, b'T', 7, 0);

#[cfg(test)]
mod tests {
    use super::*;

    /// As a C compiler has them that reads the kernel's headers.
    #[test]
    fn requests_are_the_kernel_s() {
        assert_eq!(
            [GET_COREINFO, CLONE, SLEEP, SET_SCHEDPARAM, GET_STATE, DETACH_SELF],
            [0x8018_4300, 0xc028_6600, 0x4010_6300, 0x4018_5401, 0x8038_5404, 0x5407]
        );
        assert_eq!(std::mem::offset_of!(CoreInfo, shm_size), 16);
        assert_eq!(std::mem::offset_of!(CloneRequest, efd), 32);
        assert_eq!(std::mem::offset_of!(SchedAttrs, parameter), 8);
        assert_eq!([std::mem::offset_of!(ThreadState, isw), std::mem::offset_of!(ThreadState, xtime)], [32, 48]);
    }

    #[test]
    fn each_level_is_called_in_the_way_that_it_knows() {
        let forms = [23, 26, 27, 35, 36, 43].map(Form::of);
        let expected = [Form::Marked, Form::MarkedPrctl, Form::Prctl];
        assert_eq!(forms, expected.into_iter().flat_map(|form| [form, form]).collect::<Vec<_>>()[..]);
        assert_eq!(Form::Marked.ioctl(), (0x1000_0002, &[][..]));
        assert_eq!(Form::MarkedPrctl.ioctl(), (libc::SYS_prctl, &[0x1000_0002][..]));
        assert_eq!(Form::Prctl.ioctl(), (libc::SYS_prctl, &[0x4f4f_4243, 2][..]));
    }
}
