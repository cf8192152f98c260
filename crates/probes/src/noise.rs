//! The noise probe: interruptions of a thread that never sleeps.
//!
//! One thread per CPU reads a counter continuously. Two readings further apart than a threshold are a gap: something
//! else used or stalled the CPU. The thread runs for a part of each period and sleeps for the remainder, so that the
//! machine stays usable; the remainder is not observed.
//!
//! It is prepared, started, read and ended like [`timer`](crate::timer)'s thread, with [`Spin`] in its settings.
//!
//! | module | contents |
//! |---|---|
//! | `scale` | conversion from ticks of the counter to ns of the clock |
//! | `settings` | the settings of the probe, its counters, and the usual time between two readings |
//! | `spin` | the measuring loop |
//! | `series` | the series of the record |

mod scale;
pub(crate) mod series;
pub(crate) mod settings;
pub(crate) mod spin;

pub use settings::Spin;
