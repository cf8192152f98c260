//! Integer conversions for the kernel's interfaces.

use libc::socklen_t;

/// The size of a type, as the kernel wants it.
pub const fn size<T>() -> socklen_t {
    const { assert!(size_of::<T>() <= u32::MAX as usize) }
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    let size = size_of::<T>() as socklen_t;
    size
}

/// A length, as the kernel wants it. Its limits are far below `u32::MAX`.
#[inline]
pub fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// An offset or a length from the kernel. Values that do not fit are out of range of any memory, and so is the result.
#[inline]
pub fn offset(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// A constant of libc, for a field of 16 bits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked in the debug build")]
pub const fn constant(value: i32) -> u16 {
    debug_assert!(value >= 0 && value <= u16::MAX as i32);
    value as u16
}
