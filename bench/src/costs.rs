//! CPU time of a short and a long run. Their difference is the cost of the additional cycles, without start and end.

use anyhow::Result;
use sys::child::Ended;

use crate::{
    cyclictest::{self, Buckets},
    punctual::Punctual,
    scenario::Scenario,
};

/// User and system time of both runs of a program.
#[derive(Debug)]
pub struct Costs {
    short_ns: f64,
    short_cycles: f64,
    long_ns: f64,
    long_cycles: f64,
}

impl Costs {
    /// Measures punctual.
    pub fn of_punctual(punctual: &Punctual, lengths: &[Scenario; 2]) -> Result<Self> {
        Self::of(lengths, |scenario| punctual.measure(scenario).map(|seen| (seen.usage, seen.cycles)))
    }

    /// Measures cyclictest.
    pub fn of_cyclictest(lengths: &[Scenario; 2]) -> Result<Self> {
        Self::of(lengths, |scenario| cyclictest::measure(scenario, Buckets::None).map(|seen| (seen.usage, seen.cycles)))
    }

    fn of(lengths: &[Scenario; 2], run: impl Fn(&Scenario) -> Result<(Ended, u64)>) -> Result<Self> {
        let [short, long] = lengths;
        let ((short, short_cycles), (long, long_cycles)) = (run(short)?, run(long)?);
        Ok(Self {
            short_ns: short.cpu_time.as_nanos() as f64,
            short_cycles: short_cycles as f64,
            long_ns: long.cpu_time.as_nanos() as f64,
            long_cycles: long_cycles as f64,
        })
    }

    /// CPU time of the long run divided by its cycles, ns.
    pub fn a_cycle_with_start_ns(&self) -> f64 {
        self.long_ns / self.long_cycles
    }

    /// CPU time of one more cycle, ns.
    pub fn a_cycle_ns(&self) -> f64 {
        (self.long_ns - self.short_ns) / (self.long_cycles - self.short_cycles)
    }
}
