//! Settings of a run, the same for both programs.

/// Period of most measurements, us.
pub const PERIOD_US: u64 = 1000;

/// Length of a run.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// This many wake-ups.
    Cycles(u64),
    /// This many seconds; cyclictest accepts only whole seconds.
    Seconds(u64),
}

/// Settings of one run. Both programs use `fifo:90`, lock their memory and keep the CPU awake.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The measured CPU.
    pub cpu: u32,
    /// The other CPUs, for the threads that do not measure.
    pub others: Vec<u32>,
    /// Period, us.
    pub period_us: u64,
    /// Length of the run.
    pub length: Length,
}

impl Scenario {
    /// The same scenario with another length.
    pub fn lasting(&self, length: Length) -> Self {
        Self { length, ..self.clone() }
    }
}
