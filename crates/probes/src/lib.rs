//! The probes, one module per kind of latency.
//!
//! | module | measures |
//! |---|---|
//! | [`timer`] | wake-up latency of a thread that sleeps until a deadline |
//! | [`noise`] | interruptions of a thread that never sleeps |
//! | [`round_trip`] | round trips of datagrams and frames on a fixed schedule |
//! | [`stream`] | send lateness of a stream's frames, and their arrival |
//! | [`interrupt`] | the time from an interrupt of a device to the wake-up of a thread |
//! | [`audio`] | completion of each period of audio, and xruns |
//! | [`probe_threads`] | the interface of probes that work together with the timers of a phase |
//! | [`counts`] | the histogram that a measuring thread writes, shared by all probes |
//! | `variation` | delay variation between two clocks |
//! | [`realtime`] | the offset of the clock of the kernel's timestamps from the run's clock |
//! | `times` | statistics of one kind of time, written by one thread and read by another |
//! | [`wait`] | how a thread waits for datagrams and frames |
//! | [`setup`] | affinity, policy and stack of a measuring thread |
//! | [`guard`] | keeps a measuring thread from starving the machine |

pub mod audio;
pub mod counts;
pub mod guard;
pub mod interrupt;
pub mod noise;
pub mod probe_threads;
pub mod realtime;
pub mod round_trip;
pub mod setup;
pub mod stream;
pub mod timer;
mod times;
mod variation;
pub mod wait;

pub use wait::ReceiveWait;
