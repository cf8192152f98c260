//! Playing through a sound card.
//!
//! | module | holds |
//! |---|---|
//! | [`engine`] | the audio thread, from outside: made, started, looked at, ended |
//! | `thread` | the audio thread itself: it neither allocates, locks nor prints |
//! | [`load`] | what it tells of its work |
//! | [`cable`] | a signal that finds its way through a cable, and how long that takes |
//! | [`midi`] | what comes from a MIDI keyboard or foot switch |

pub mod cable;
pub mod engine;
pub mod load;
pub mod midi;
mod thread;

pub use engine::{Engine, EngineError, Player, Settings};
pub use load::{End, Load};
