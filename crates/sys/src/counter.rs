//! Time counters that are cheap enough to read many times per microsecond.

use crate::clock::Clock;

/// A counter that advances at a constant rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counter {
    /// The CPU's counter: TSC on x86-64, the virtual counter on aarch64. It is synchronised across CPUs if the kernel
    /// uses it as its clock source.
    Cycles,
    /// CLOCK_MONOTONIC, ns.
    #[default]
    Clock,
}

/// Names of kernel clock sources that are based on the CPU's counter.
const BY_CYCLES: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

impl Counter {
    /// The finest counter that is reliable with the kernel's clock source `name`.
    #[must_use]
    pub fn for_clocksource(name: Option<&str>) -> Self {
        if name.is_some_and(|name| BY_CYCLES.contains(&name)) { Self::Cycles } else { Self::Clock }
    }

    /// The name in records: `tsc`, `cntvct` or `clock`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles if cfg!(target_arch = "aarch64") => "cntvct",
            Self::Cycles => "tsc",
            Self::Clock => "clock",
        }
    }
}

/// A counter as a type, so that a loop over it has no branch for the kind of counter.
pub trait Ticks {
    /// The current value. Because of out-of-order execution, the difference of two readings can be negative by a few
    /// ticks.
    fn now() -> u64;
}

/// [`Counter::Cycles`].
#[derive(Debug)]
pub struct Cycles;

/// [`Counter::Clock`].
#[derive(Debug)]
pub struct Nanoseconds;

impl Ticks for Cycles {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn now() -> u64 {
        // SAFETY: every x86-64 CPU has this instruction, and Linux permits it unless prctl forbids it, which we never
        // request.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn now() -> u64 {
        let ticks: u64;
        // SAFETY: the instruction reads a register that Linux makes readable, and has no other effect.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    #[inline(always)]
    fn now() -> u64 {
        Nanoseconds::now()
    }
}

impl Ticks for Nanoseconds {
    #[inline(always)]
    fn now() -> u64 {
        Clock::Monotonic.now_ns().cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_the_cpu_counter_only_if_the_kernel_does() {
        assert_eq!(Counter::for_clocksource(Some("tsc")), Counter::Cycles);
        assert_eq!(Counter::for_clocksource(Some("hpet")), Counter::Clock);
        assert_eq!(Counter::for_clocksource(None), Counter::Clock);
    }

    #[test]
    fn both_counters_increase() {
        let (cycles, ns) = (Cycles::now(), Nanoseconds::now());
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(Cycles::now() > cycles);
        assert!(Nanoseconds::now() >= ns + 1_000_000);
    }
}
