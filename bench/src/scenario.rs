//! What both programs are asked to do.

/// How long a run is.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// This many wake-ups.
    Cycles(u64),
    /// This many whole seconds; cyclictest knows no shorter unit.
    Seconds(u64),
}

/// One run, the same for both sides: `fifo:90`, memory locked, the CPU held awake.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The CPU that is measured.
    pub cpu: u32,
    /// The other CPUs: the place of whatever part of a program does not measure.
    pub others: Vec<u32>,
    /// Time between two deadlines, us.
    pub period_us: u64,
    /// How long.
    pub length: Length,
}

impl Scenario {
    /// The same for another length.
    pub fn lasting(&self, length: Length) -> Self {
        Self { length, ..self.clone() }
    }
}
