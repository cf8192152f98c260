//! Two machines: the far end is started over ssh and told what to do, and what both ends saw becomes one record.
//!
//! There is no control port that a stranger could connect to: both ends talk over the input and output of the one ssh
//! connection, and the far end is gone when that is.
//!
//! | module | holds |
//! |---|---|
//! | [`protocol`] | what the ends say to each other |
//! | [`channel`] | lines out, lines in, and whether the other end is still there |
//! | [`binary`] | which program runs at the far end |
//! | [`reach`] | ssh, and the shell at its other end |
//! | [`near`] | the end that the user sees |
//! | [`far`] | the other one |
//! | [`bring`] | what the far end saw, brought into the record |
//! | [`words`] | what it says of itself, in words for those who read it here |

pub mod binary;
pub mod bring;
pub mod channel;
mod error;
pub mod far;
pub mod near;
pub mod protocol;
pub mod reach;
pub mod words;

pub use error::PairError;
pub use near::Near;
pub use protocol::{Ask, AskEcho, AskListen};
pub use reach::Reach;

/// The hidden command that is the far end.
pub const FAR_COMMAND: &str = "__far";
