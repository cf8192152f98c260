//! Busy integer and floating-point arithmetic.

use std::hint::black_box;

use machine::CpuList;

use super::{
    kind::{Kind, LoadKind, Plan},
    shell,
};
use crate::{
    LoadError, SpecError,
    options::{Options, join},
};

/// Steps between two reads of the meter: some microseconds.
const STEPS: u64 = 1000;

/// Busy arithmetic, or a busy shell loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpu {
    /// Runs the shell loop.
    pub shell: bool,
}

impl LoadKind for Cpu {
    const KIND: Kind = Kind {
        name: "cpu",
        description: "busy integer and floating-point arithmetic, one thread per CPU",
        options: &[("shell", "run a shell loop that echoes to /dev/null instead")],
    };

    fn parse(options: &str) -> Result<Self, SpecError> {
        let mut options = Options::new(Self::KIND.name, options);
        let load = Self { shell: options.flag("shell") };
        options.finish(load)
    }

    fn options(&self) -> String {
        join([self.shell.then(|| "shell".to_owned())])
    }

    fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError> {
        if self.shell { shell::plan(cpus) } else { Ok(arithmetic(cpus)) }
    }

    fn is_busy(&self) -> bool {
        true
    }

    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)> {
        vec![("", Self { shell: false }), ("shell", Self { shell: true })]
    }

    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;

        any::<bool>().prop_map(|shell| Self { shell }).boxed()
    }
}

fn arithmetic(cpus: &CpuList) -> Plan {
    Plan::each_cpu("blocks of 1000 arithmetic steps", cpus, |meter| {
        let (mut integer, mut real) = (0x9e37_79b9_7f4a_7c15u64, 1.0f64);
        while meter.running() {
            (integer, real) = steps(black_box(integer), black_box(real));
            meter.add(1);
        }
        Ok(())
    })
}

/// Linear congruential steps and square roots; each depends on the one before.
fn steps(mut integer: u64, mut real: f64) -> (u64, f64) {
    for _ in 0..STEPS {
        integer = integer.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        real = (real + (integer >> 33) as f64).sqrt();
    }
    (integer, real)
}
