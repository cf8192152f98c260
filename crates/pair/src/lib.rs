//! Measurements between two machines: starts the far end over ssh, controls it, and merges both results into one
//! record.
//!
//! Both ends communicate over standard input and output of one ssh connection, so there is no open control port. The
//! far end exits when the connection ends.
//!
//! | module | contents |
//! |---|---|
//! | [`protocol`] | the messages |
//! | [`channel`] | sending, receiving and keep-alive |
//! | [`binary`] | selection of the far end's program |
//! | [`reach`] | ssh and the bootstrap shell script |
//! | [`near`] | the near end, which the user runs |
//! | [`far`] | the far end |
//! | [`merge`](mod@merge) | merges the far end's results into the record |
//! | [`messages`] | adapts the far end's messages for users of the near end |

pub mod binary;
pub mod channel;
mod error;
pub mod far;
pub mod merge;
pub mod messages;
pub mod near;
pub mod protocol;
pub mod reach;

pub use error::PairError;
pub use near::Near;
pub use protocol::{AnswerTask, EchoTask, InterruptTask, ListenTask, NamedTask, Task};
pub use reach::Reach;

/// The hidden command that runs the far end.
pub const FAR_COMMAND: &str = "__far";
