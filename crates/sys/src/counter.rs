//! Counters that a thread can read many times a microsecond.

use crate::clock::Clock;

/// Something that counts evenly with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counter {
    /// The CPU's own: TSC on x86-64, the virtual counter on aarch64. The same on all CPUs where the kernel keeps its own
    /// time with it.
    Cycles,
    /// CLOCK_MONOTONIC, ns.
    #[default]
    Clock,
}

/// Clock sources, as the kernel names them, for which it reads the CPU's own counter.
const BY_CYCLES: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

impl Counter {
    /// The finest that can be trusted where the kernel's clock source is this one.
    #[must_use]
    pub fn for_clocksource(name: Option<&str>) -> Self {
        if name.is_some_and(|name| BY_CYCLES.contains(&name)) { Self::Cycles } else { Self::Clock }
    }

    /// What it is called: `tsc`, `cntvct` or `clock`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles if cfg!(target_arch = "aarch64") => "cntvct",
            Self::Cycles => "tsc",
            Self::Clock => "clock",
        }
    }
}

/// A counter as a type, so that a loop over it has no branch for its kind.
pub trait Ticks {
    /// Its value now. Two readings of one thread are in order, but for a CPU that runs instructions ahead of each other:
    /// a difference may be a few ticks below 0.
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
        // SAFETY: every x86-64 CPU has the instruction; Linux lets programs use it unless prctl forbids it, which we do not.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn now() -> u64 {
        let ticks: u64;
        // SAFETY: reads a register that Linux lets programs read, and touches nothing else.
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
        Clock::Monotonic.now_ns() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_own_counter_is_used_where_the_kernel_does_so() {
        assert_eq!(Counter::for_clocksource(Some("tsc")), Counter::Cycles);
        assert_eq!(Counter::for_clocksource(Some("hpet")), Counter::Clock);
        assert_eq!(Counter::for_clocksource(None), Counter::Clock);
    }

    #[test]
    fn both_count_upwards() {
        let (cycles, ns) = (Cycles::now(), Nanoseconds::now());
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(Cycles::now() > cycles);
        assert!(Nanoseconds::now() >= ns + 1_000_000);
    }
}
