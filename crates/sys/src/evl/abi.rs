//! System call numbers and structures of the EVL core, from the kernel's `include/uapi/evl` at ABI 26, 32, 34, 40 and
//! 43. The calls and structures in this module are the same at all these levels; only the form of out-of-band calls
//! differs.

use std::ops::RangeInclusive;

use crate::convert::size;

/// Supported ABI levels. The clone request has had its present form, with the visibility of elements, since ABI 22.
pub const LEVELS: RangeInclusive<u32> = 23..=43;

/// The number of the out-of-band `read` call.
const CALL_READ: libc::c_long = 0;
/// The number of the out-of-band `ioctl` call.
const CALL_IOCTL: libc::c_long = 2;
/// Marks a system call number as out-of-band.
const OOB_BIT: libc::c_long = 0x1000_0000;
/// Marks a `prctl` as out-of-band.
const PR_OOB_SYSCALL: libc::c_long = 0x4f4f_4243;

/// An out-of-band call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `read`: a descriptor, a buffer and its length.
    Read,
    /// `ioctl`: a descriptor, a request and its argument.
    Ioctl,
}

/// The form of an out-of-band call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A system call with a marked number. The only form up to ABI 26.
    Marked,
    /// A `prctl` with the marked number as first argument. Since ABI 27.
    MarkedPrctl,
    /// A `prctl` with PR_OOB_SYSCALL and the call number. The only form since ABI 36.
    Prctl,
}

impl Form {
    /// The newest form that a core of this level supports.
    pub fn of(level: u32) -> Self {
        match level {
            ..27 => Self::Marked,
            27..36 => Self::MarkedPrctl,
            36.. => Self::Prctl,
        }
    }

    /// The system call for an out-of-band call, and the arguments before those of the call.
    pub fn of_call(self, call: Call) -> (libc::c_long, &'static [libc::c_long]) {
        match (self, call) {
            (Self::Marked, Call::Read) => (CALL_READ | OOB_BIT, &[]),
            (Self::Marked, Call::Ioctl) => (CALL_IOCTL | OOB_BIT, &[]),
            (Self::MarkedPrctl, Call::Read) => (libc::SYS_prctl, &[CALL_READ | OOB_BIT]),
            (Self::MarkedPrctl, Call::Ioctl) => (libc::SYS_prctl, &[CALL_IOCTL | OOB_BIT]),
            (Self::Prctl, Call::Read) => (libc::SYS_prctl, &[PR_OOB_SYSCALL, CALL_READ]),
            (Self::Prctl, Call::Ioctl) => (libc::SYS_prctl, &[PR_OOB_SYSCALL, CALL_IOCTL]),
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

/// `struct evl_clone_req`: creates an element, here for the calling thread.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct CloneRequest {
    pub name_ptr: u64,
    pub attrs_ptr: u64,
    /// 0: not visible to other processes.
    pub clone_flags: u32,
    pub minor: u32,
    pub fundle: u32,
    pub state_offset: u32,
    /// The descriptor of the new element.
    pub efd: u32,
}

/// `struct evl_sched_attrs`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct SchedAttrs {
    pub policy: i32,
    pub priority: i32,
    /// Parameters of other policies than SCHED_FIFO.
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

/// `struct latmus_setup` of the driver `/dev/latmus`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct LatmusSetup {
    /// 0: interrupt, 1: kernel thread.
    pub context: u32,
    pub period_ns: u64,
    pub priority: i32,
    pub cpu: u32,
    /// From 2 on, the driver writes the steps of a calibration to the kernel log.
    pub verbosity: u32,
    pub unused: u32,
}

/// `struct latmus_result`: the memory for the results of a run.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct LatmusResult {
    pub data_ptr: u64,
    pub len: u32,
}

const NONE: u32 = 0;
pub const WRITE: u32 = 1;
pub const READ: u32 = 2;

/// `_IOC` of `asm-generic/ioctl.h`, which x86 and ARM use.
pub const fn request(direction: u32, kind: u8, number: u32, size: u32) -> u32 {
    direction << 30 | size << 16 | (kind as u32) << 8 | number
}

pub const GET_COREINFO: u32 = request(READ, b'C', 0, size::<CoreInfo>());
pub const CLONE: u32 = request(READ | WRITE, b'f', 0, size::<CloneRequest>());
pub const SLEEP: u32 = request(WRITE, b'c', 0, size::<Timespec>());
pub const SET_SCHEDPARAM: u32 = request(WRITE, b'T', 1, size::<SchedAttrs>());
pub const GET_STATE: u32 = request(READ, b'T', 4, size::<ThreadState>());
pub const DETACH_SELF: u32 = request(NONE, b'T', 7, 0);
pub const UNBLOCK: u32 = request(NONE, b'T', 10, 0);
pub const LATMUS_TUNE: u32 = request(READ | WRITE, b'L', 0, size::<LatmusSetup>());
pub const LATMUS_RUN: u32 = request(READ, b'L', 2, size::<LatmusResult>());

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values were computed by a C compiler from the kernel's headers.
    #[test]
    fn requests_match_the_kernel_headers() {
        assert_eq!(
            [GET_COREINFO, CLONE, SLEEP, SET_SCHEDPARAM, GET_STATE, DETACH_SELF, UNBLOCK],
            [0x8018_4300, 0xc028_6600, 0x4010_6300, 0x4018_5401, 0x8038_5404, 0x5407, 0x540a]
        );
        assert_eq!([LATMUS_TUNE, LATMUS_RUN], [0xc020_4c00, 0x8010_4c02]);
        assert_eq!(
            [std::mem::offset_of!(LatmusSetup, priority), std::mem::offset_of!(LatmusSetup, verbosity)],
            [16, 24]
        );
        assert_eq!(std::mem::offset_of!(CoreInfo, shm_size), 16);
        assert_eq!(std::mem::offset_of!(CloneRequest, efd), 32);
        assert_eq!(std::mem::offset_of!(SchedAttrs, parameter), 8);
        assert_eq!([std::mem::offset_of!(ThreadState, isw), std::mem::offset_of!(ThreadState, xtime)], [32, 48]);
    }

    #[test]
    fn selects_the_call_form_by_level() {
        let forms = [23, 26, 27, 35, 36, 43].map(Form::of);
        let expected = [Form::Marked, Form::MarkedPrctl, Form::Prctl];
        assert_eq!(forms, expected.into_iter().flat_map(|form| [form, form]).collect::<Vec<_>>()[..]);
        let of = |form: Form| (form.of_call(Call::Read), form.of_call(Call::Ioctl));
        assert_eq!(of(Form::Marked), ((0x1000_0000, &[][..]), (0x1000_0002, &[][..])));
        let prctl = |before| (libc::SYS_prctl, before);
        assert_eq!(of(Form::MarkedPrctl), (prctl(&[0x1000_0000][..]), prctl(&[0x1000_0002][..])));
        assert_eq!(of(Form::Prctl), (prctl(&[0x4f4f_4243, 0][..]), prctl(&[0x4f4f_4243, 2][..])));
    }
}
