//! Denormal numbers: what a decaying signal ends in, and what many processors compute a hundred times more slowly.

use std::marker::PhantomData;

/// While it lives, this thread computes with zeros instead of denormal numbers.
#[derive(Debug)]
#[must_use = "it ends with this value"]
pub struct Flushed {
    before: u64,
    /// The state is the thread's own.
    here: PhantomData<*const ()>,
}

/// Computes with zeros instead of denormal numbers, on this thread, until what is returned goes. No system call.
///
/// The compiler takes the processor's state to be as it was when the program began, so it may compute a constant with
/// denormal numbers that this would make zero, or move a computation to before or behind this. That is relied on: nothing
/// compiled here depends on what comes of denormal numbers, they or zeros are equally good. What runs on the thread
/// afterwards finds the state as it was, since [`Flushed`] restores it when it is dropped, in a panic as well. It cannot go
/// to another thread, whose state would be overwritten.
pub fn flush_denormals() -> Flushed {
    let before = control();
    set_control(before | FLUSH);
    Flushed { before, here: PhantomData }
}

impl Drop for Flushed {
    fn drop(&mut self) {
        set_control(self.before);
    }
}

/// FTZ (bit 15) and DAZ (bit 6) of MXCSR: Intel's manual, volume 1, 10.2.3.
#[cfg(target_arch = "x86_64")]
const FLUSH: u64 = 1 << 15 | 1 << 6;

#[cfg(target_arch = "x86_64")]
fn control() -> u64 {
    let mut control = 0_u32;
    // SAFETY: every x86-64 has the instruction; it writes the four bytes that are there, and changes no state.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags)) };
    u64::from(control)
}

#[cfg(target_arch = "x86_64")]
fn set_control(control: u64) {
    let control = control as u32;
    // SAFETY: every x86-64 has the instruction; it reads the four bytes that are there. Rounding and exceptions stay as they
    // were, since only the bits of denormal numbers differ from what was read: no result depends on these here, and they are
    // restored, see `flush_denormals`.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, preserves_flags)) };
}

/// FZ of FPCR: Arm's architecture reference manual.
#[cfg(target_arch = "aarch64")]
const FLUSH: u64 = 1 << 24;

#[cfg(target_arch = "aarch64")]
fn control() -> u64 {
    let control: u64;
    // SAFETY: every 64-bit Arm has the register, and reading it changes nothing.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack, preserves_flags)) };
    control
}

#[cfg(target_arch = "aarch64")]
fn set_control(control: u64) {
    // SAFETY: every 64-bit Arm has the register. Rounding and exceptions stay as they were, since only the bit of denormal
    // numbers differs from what was read: no result depends on it here, and it is restored, see `flush_denormals`.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const FLUSH: u64 = 0;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn control() -> u64 {
    0
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn set_control(_control: u64) {}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn denormal_numbers_are_zero_until_the_value_goes() {
        let half = || black_box(f32::MIN_POSITIVE) * black_box(0.5);
        assert!(half() > 0.0);
        {
            let _flushed = flush_denormals();
            if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
                assert_eq!(half(), 0.0);
            }
        }
        assert!(half() > 0.0);
    }
}
