//! Busy integer and floating-point arithmetic.

use std::hint::black_box;

use machine::CpuList;

use super::Plan;

/// Steps between two looks at the meter: some microseconds.
const STEPS: u64 = 1000;

pub(super) fn plan(cpus: &CpuList) -> Plan {
    Plan::each_cpu("times 1000 arithmetic steps", cpus, |meter| {
        let (mut integer, mut real) = (0x9e37_79b9_7f4a_7c15u64, 1.0f64);
        while meter.running() {
            (integer, real) = steps(black_box(integer), black_box(real));
            meter.add(1);
        }
        Ok(())
    })
}

/// A linear congruential step and a square root each time; each depends on the one before.
fn steps(mut integer: u64, mut real: f64) -> (u64, f64) {
    for _ in 0..STEPS {
        integer = integer.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        real = (real + (integer >> 33) as f64).sqrt();
    }
    (integer, real)
}
