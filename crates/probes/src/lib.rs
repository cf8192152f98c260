//! What we measure: one module a kind of latency.
//!
//! | module | measures |
//! |---|---|
//! | [`timer`] | how late a thread wakes that sleeps until a deadline |
//! | [`noise`] | what takes the CPU from a thread that never sleeps |
//! | [`udp`] | round trips of datagrams on a fixed schedule |
//! | [`stream`] | how punctually the frames of a stream are sent, and how they come |
//! | [`audio`] | when each period of audio was played, and which came too late for a sound card |
//! | [`companion`] | what measures together with the timers of a phase |
//! | [`counts`] | the histogram that a measuring thread writes; shared by all probes |
//! | `variation` | how much longer frames are under way than the quickest, between two clocks |
//! | `times` | times of one kind, counted by one thread and read by another |
//! | [`wait`] | how a thread waits for what comes over the network |
//! | [`setup`] | how a thread becomes one that measures |
//! | [`guard`] | keeps a measuring thread from starving the machine |

pub mod audio;
pub mod companion;
pub mod counts;
pub mod guard;
pub mod noise;
pub mod setup;
pub mod stream;
pub mod timer;
mod times;
pub mod udp;
mod variation;
pub mod wait;

pub use wait::ReceiveWait;
