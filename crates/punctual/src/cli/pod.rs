//! Options of `pod`.

use clap::{Args, ValueEnum};

/// Options of `pod`.
#[derive(Debug, Args)]
pub struct Pod {
    /// Test to run.
    #[arg(default_value = "cyclictest")]
    pub test: LatencyTest,
    /// Further options of `measure timer` or `measure noise`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

/// A test with the name of the program that OpenShift runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LatencyTest {
    /// Late wake-ups of threads that sleep for 1 ms (`measure timer`).
    Cyclictest,
    /// Gaps in a loop that never sleeps (`measure noise`).
    Oslat,
}
