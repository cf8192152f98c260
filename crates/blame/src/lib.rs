//! Kernel trace in, culprits out.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | what happened on a CPU, in our words |

pub mod event;

pub use event::{Comm, Event, Name, Names, Task, What};
