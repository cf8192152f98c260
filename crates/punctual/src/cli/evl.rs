//! Options of `evl`.

use clap::{Args, Subcommand, ValueEnum};

use super::{OutputOptions, period};

/// The calibrations.
#[derive(Debug, Subcommand)]
pub enum Evl {
    /// Find a gravity that wakes threads in time but not early.
    ///
    /// The gravity is how much earlier than requested the core sets its timers. Measures the lateness of user threads with one gravity after the other, and lets the driver /dev/latmus calibrate
    /// interrupt handlers and kernel threads. During that time (up to a minute), the gravity of the whole machine changes.
    /// At the end it is as before, unless --set is given. Exit status: 0 calibrated, 2 the gravity in force makes wake-ups
    /// early and was not changed, 1 error.
    ///
    /// Examples:
    ///   sudo punctual evl gravity
    ///   sudo punctual evl gravity --context user --cpu 3 --set
    #[command(verbatim_doc_comment)]
    Gravity(EvlGravity),
}

/// Options of `evl gravity`.
#[derive(Debug, Args)]
pub struct EvlGravity {
    /// Set the result; `punctual restore` undoes it.
    ///
    /// No wake-up of 2000 is early with it. It remains until then or until the next boot.
    #[arg(long)]
    pub set: bool,
    /// Calibrate only irq, kernel or user; repeatable.
    #[arg(long = "context", value_name = "CONTEXT")]
    pub contexts: Vec<EvlContext>,
    /// Measure this CPU [default: the best one of the core].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Wake up this often, 10us to 10ms.
    #[arg(long, value_name = "TIME", value_parser = period, default_value = "1ms")]
    pub period: u64,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
}

/// A context with a gravity of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EvlContext {
    /// Interrupt handlers.
    Irq,
    /// Kernel threads.
    Kernel,
    /// User threads.
    User,
}

impl From<EvlContext> for campaign::gravity::Context {
    fn from(context: EvlContext) -> Self {
        match context {
            EvlContext::Irq => Self::Irq,
            EvlContext::Kernel => Self::Kernel,
            EvlContext::User => Self::User,
        }
    }
}
