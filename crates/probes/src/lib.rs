//! What we measure: one module a kind of latency.
//!
//! | module | measures |
//! |---|---|
//! | [`timer`] | how late a thread wakes that sleeps until a deadline |
//! | [`noise`] | what takes the CPU from a thread that never sleeps |
//! | [`udp`] | round trips of datagrams on a fixed schedule |
//! | [`stream`] | how punctually the frames of a stream are sent, and how they come |
//! | [`companion`] | what measures together with the timers of a phase |
//! | [`counts`] | the histogram that a measuring thread writes; shared by all probes |
//! | `setup` | how a thread becomes one that measures |
//! | [`guard`] | keeps a measuring thread from starving the machine |

pub mod companion;
pub mod counts;
pub mod guard;
pub mod noise;
mod setup;
pub mod stream;
pub mod timer;
pub mod udp;
