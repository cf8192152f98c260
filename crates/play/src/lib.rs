//! Playing through a sound card, or by the clock.
//!
//! | module | holds |
//! |---|---|
//! | [`engine`] | the audio thread, from outside: made, started, looked at, ended |
//! | `thread` | the audio thread itself: it neither allocates, locks nor prints |
//! | [`device`] | what it plays on |
//! | [`jack`] | or whom it plays with: JACK's server, whose thread it is then |
//! | [`load`] | what it tells of its work |
//! | [`ChainPlayer`] | plays the amplifier's chain |
//! | [`cable`] | a signal that finds its way through a cable, and how long that takes |
//! | [`page`] | a web page to choose and turn by |
//! | [`midi`] | what comes from a MIDI keyboard or foot switch, byte by byte |
//! | [`port`] | where it comes from |

pub mod cable;
mod chain;
pub mod device;
pub mod engine;
pub mod jack;
pub mod load;
pub mod midi;
pub mod page;
pub mod port;
mod thread;

pub use chain::ChainPlayer;
pub use device::Device;
pub use engine::{Engine, EngineError, Settings};
pub use jack::Jack;
pub use load::{End, Load};
