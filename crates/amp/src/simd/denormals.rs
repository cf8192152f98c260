//! Denormal numbers: decaying signals end in them, and many processors compute with them a hundred times more slowly.

use std::marker::PhantomData;

/// The register that controls floating-point computation.
#[cfg(target_arch = "x86_64")]
type Control = u32;
#[cfg(not(target_arch = "x86_64"))]
type Control = u64;

/// While this value exists, the thread treats denormal numbers as zero.
#[derive(Debug)]
#[must_use = "dropping the value restores the state"]
pub struct Flushed {
    before: Control,
    /// The state belongs to the thread, so the value must not be sent to another one.
    here: PhantomData<*const ()>,
}

/// Makes this thread treat denormal numbers as zero until the returned value is dropped. Makes no system call.
///
/// The compiler assumes that the processor's floating-point state never changes. It may therefore evaluate a constant
/// with denormal numbers, or move a computation across this call. That is harmless: no result here depends on the
/// difference between denormal numbers and zero. [`Flushed`] restores the state when it is dropped, also during a
/// panic, so that other code on the thread is not affected. It is not `Send`, because it would overwrite the state of
/// another thread.
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

/// FTZ (bit 15) and DAZ (bit 6) of MXCSR: Intel's manual, volume 1, section 10.2.3.
#[cfg(target_arch = "x86_64")]
const FLUSH: Control = 1 << 15 | 1 << 6;

#[cfg(target_arch = "x86_64")]
fn control() -> Control {
    let mut control = 0;
    // SAFETY: every x86-64 processor has the instruction; it writes four bytes to `control` and changes no state.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags)) };
    control
}

#[cfg(target_arch = "x86_64")]
fn set_control(control: Control) {
    // SAFETY: every x86-64 processor has the instruction; it reads four bytes from `control`. Rounding and exceptions
    // do not change, because only the bits of denormal numbers differ from the previous state. No result here depends
    // on these bits, and they are restored, see `flush_denormals`.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, preserves_flags)) };
}

/// FZ of FPCR: Arm's architecture reference manual.
#[cfg(target_arch = "aarch64")]
const FLUSH: Control = 1 << 24;

#[cfg(target_arch = "aarch64")]
fn control() -> Control {
    let control;
    // SAFETY: every 64-bit Arm processor has the register; reading it changes nothing.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack, preserves_flags)) };
    control
}

#[cfg(target_arch = "aarch64")]
fn set_control(control: Control) {
    // SAFETY: every 64-bit Arm processor has the register. Rounding and exceptions do not change, because only the bit
    // of denormal numbers differs from the previous state. No result here depends on it, and it is restored, see
    // `flush_denormals`.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const FLUSH: Control = 0;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn control() -> Control {
    0
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn set_control(_control: Control) {}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn denormal_numbers_are_zero_until_the_value_is_dropped() {
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
