//! The kernel's PCM interface: structures and numbers of `include/uapi/sound/asound.h` (protocol 2.0.15) on 64-bit
//! machines.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

use crate::convert::size;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the PCM structures are defined only for 64-bit machines");

/// Mask parameters, as an index into [`HwParams::masks`].
pub const ACCESS: usize = 0;
pub const FORMAT: usize = 1;
/// Interval parameters, as an index into [`HwParams::intervals`].
pub const CHANNELS: usize = 2;
pub const RATE: usize = 3;
pub const PERIOD_SIZE: usize = 5;
pub const PERIODS: usize = 7;
pub const BUFFER_SIZE: usize = 9;

/// Access through a mapped ring with interleaved channels.
pub const MMAP_INTERLEAVED: u32 = 0;
/// [`HwParams::info`]: the buffer can be mapped.
pub const INFO_MMAP: u32 = 1;

/// [`Interval::flags`]: the minimum is excluded; the maximum is excluded; only integers.
pub const OPEN_MIN: u32 = 1;
pub const OPEN_MAX: u32 = 2;
pub const INTEGER: u32 = 4;

/// [`Status::state`].
pub const STATE_RUNNING: i32 = 3;
pub const STATE_DISCONNECTED: i32 = 8;

/// [`SyncPtr::flags`]: the kernel writes appl_ptr, or avail_min, instead of reading it.
pub const SYNC_GET_APPL: u32 = 2;
pub const SYNC_GET_AVAIL_MIN: u32 = 4;

/// [`SwParams::tstamp_mode`]: timestamps are taken. [`SwParams::tstamp_type`]: on the monotonic clock, which requires
/// protocol 2.0.12 or newer in [`SwParams::proto`].
pub const TSTAMP_ENABLE: i32 = 1;
pub const TSTAMP_MONOTONIC: u32 = 1;
pub const PROTOCOL: u32 = (2 << 16) | 15;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    pub min: u32,
    pub max: u32,
    pub flags: u32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct HwParams {
    pub flags: u32,
    /// 256 bits each; the last five masks are reserved.
    pub masks: [[u32; 8]; 8],
    /// The last nine intervals are reserved.
    pub intervals: [Interval; 21],
    pub rmask: u32,
    pub cmask: u32,
    pub info: u32,
    pub msbits: u32,
    pub rate_num: u32,
    pub rate_den: u32,
    pub fifo_size: u64,
    pub reserved: [u64; 8],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct SwParams {
    pub tstamp_mode: i32,
    pub period_step: u32,
    pub sleep_min: u32,
    pub avail_min: u64,
    pub xfer_align: u64,
    pub start_threshold: u64,
    pub stop_threshold: u64,
    pub silence_threshold: u64,
    pub silence_size: u64,
    pub boundary: u64,
    pub proto: u32,
    pub tstamp_type: u32,
    pub reserved: [u64; 7],
}

/// The state that the kernel reports, in the first 56 of 64 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Status {
    pub state: i32,
    pub hw_ptr: u64,
    /// The time of the last update of `hw_ptr`: seconds and ns.
    pub tstamp: [i64; 2],
    pub suspended_state: i32,
    pub audio_tstamp: [i64; 2],
    pub reserved: u64,
}

/// The state that the program sets.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Control {
    pub appl_ptr: u64,
    pub avail_min: u64,
    pub reserved: [u64; 6],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct SyncPtr {
    pub flags: u32,
    pub status: Status,
    pub control: Control,
}

/// A request without an argument or with an integer argument (`_IO`, `_IOW` of int).
#[derive(Debug, Clone, Copy)]
pub struct Command(u32);

pub const PREPARE: Command = Command(request(0, 0, 0x40));
pub const START: Command = Command(request(0, 0, 0x42));
pub const DROP: Command = Command(request(0, 0, 0x43));
pub const LINK: Command = Command(request(1, 4, 0x60));
pub const UNLINK: Command = Command(request(0, 0, 0x61));

const fn request(direction: u32, bytes: u32, number: u32) -> u32 {
    direction << 30 | bytes << 16 | (b'A' as u32) << 8 | number
}

/// An argument that the kernel reads and writes (`_IOWR`).
///
/// # Safety
/// The argument of the request `NUMBER` must have this layout.
pub unsafe trait Argument {
    /// The request number.
    const NUMBER: u32;
}

/// [`HwParams`] for a query of the remaining choices, which sets nothing.
#[repr(transparent)]
#[derive(Debug)]
pub struct Refine(pub HwParams);

// SAFETY: the request SNDRV_PCM_IOCTL_HW_REFINE takes a `snd_pcm_hw_params`, whose layout `HwParams` has (tested
// below).
unsafe impl Argument for Refine {
    const NUMBER: u32 = 0x10;
}
// SAFETY: the request SNDRV_PCM_IOCTL_HW_PARAMS takes a `snd_pcm_hw_params`, which has this layout (tested below).
unsafe impl Argument for HwParams {
    const NUMBER: u32 = 0x11;
}
// SAFETY: the request SNDRV_PCM_IOCTL_SW_PARAMS takes a `snd_pcm_sw_params`, which has this layout (tested below).
unsafe impl Argument for SwParams {
    const NUMBER: u32 = 0x13;
}
// SAFETY: the request SNDRV_PCM_IOCTL_SYNC_PTR takes a `snd_pcm_sync_ptr`, which has this layout (tested below).
unsafe impl Argument for SyncPtr {
    const NUMBER: u32 = 0x23;
}

/// Makes a request whose answer is stored in its argument.
#[inline]
pub fn exchange<T: Argument>(device: impl AsFd, argument: &mut T) -> io::Result<()> {
    let number = request(3, size::<T>(), T::NUMBER);
    // SAFETY: the argument is live and has the layout of this request; the type of the number depends on the C library.
    let answer = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), number as _, std::ptr::from_mut(argument)) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a request without an answer.
pub fn command(device: impl AsFd, command: Command, number: i32) -> io::Result<()> {
    // SAFETY: these requests take no pointer, only an integer that most of them ignore.
    let answer = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), command.0 as _, number) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The expected values were computed by a C compiler from the kernel's header on x86-64 and arm64.
    #[test]
    fn layouts_match_the_kernel_header() {
        assert_eq!([size_of::<HwParams>(), size_of::<SwParams>(), size_of::<SyncPtr>()], [608, 136, 136]);
        assert_eq!([offset_of!(HwParams, intervals), offset_of!(HwParams, rmask)], [260, 512]);
        assert_eq!([offset_of!(HwParams, info), offset_of!(HwParams, fifo_size)], [520, 536]);
        assert_eq!([offset_of!(SwParams, avail_min), offset_of!(SwParams, boundary)], [16, 64]);
        assert_eq!([offset_of!(SwParams, proto), offset_of!(SyncPtr, control)], [72, 72]);
        assert_eq!([offset_of!(Status, tstamp), size_of::<Control>()], [16, 64]);
    }

    #[test]
    fn requests_match_the_kernel_header() {
        let answered = |bytes, number| request(3, bytes, number);
        assert_eq!(answered(608, Refine::NUMBER), 0xc260_4110);
        assert_eq!(answered(608, HwParams::NUMBER), 0xc260_4111);
        assert_eq!(answered(136, SwParams::NUMBER), 0xc088_4113);
        assert_eq!(answered(136, SyncPtr::NUMBER), 0xc088_4123);
        assert_eq!([PREPARE.0, START.0, DROP.0], [0x4140, 0x4142, 0x4143]);
        assert_eq!([LINK.0, UNLINK.0], [0x4004_4160, 0x4161]);
    }
}
