//! Settings that are changed for a run and undone afterwards.
//!
//! Every hold works in the same way: it records each change in a [`Journal`](crate::journal) before it makes the
//! change, and dropping the journal undoes the changes in reverse order. If the process is killed, the next start
//! undoes them. [`Shield`](crate::Shield) works in this way, too.

mod awake;
mod gravity;
mod irq_priority;
mod monitors;
mod nic;
mod samples;
mod source_irq;
mod thread_policies;
mod watch;

pub use self::{
    awake::{AwakeHold, HoldError},
    gravity::{GravityError, GravityHold, keep_gravity},
    irq_priority::{IrqPriorityError, IrqPriorityHold},
    monitors::MonitorHold,
    nic::{NicHold, NicHoldError},
    samples::{SamplesError, SamplesHold},
    source_irq::{IrqSettings, SourceIrqError, SourceIrqHold},
    thread_policies::ThreadPolicyError,
    watch::SettingsWatch,
};
