//! Playing in real time through a sound card, a JACK server, or a timer.
//!
//! | module | contents |
//! |---|---|
//! | [`engine`] | control of the audio thread |
//! | `thread` | the audio thread itself |
//! | [`settings`] | settings of the audio thread |
//! | [`device`] | the sound card or timer that it plays on |
//! | [`ChainPlayer`] | the chain of the amplifier as a player |
//! | [`jack`] | playing on the thread of a JACK server instead |
//! | [`load`] | load of the audio thread, and why it ended |
//! | [`loopback`] | the round trip through a sound card |
//! | [`midi`], [`port`] | MIDI input |
//! | [`page`] | the web page |

pub mod device;
pub mod engine;
mod chain;
mod error;
pub mod jack;
pub mod load;
pub mod loopback;
pub mod midi;
pub mod page;
pub mod port;
pub mod settings;
mod thread;

pub use chain::ChainPlayer;
pub use device::Device;
pub use engine::Engine;
pub use error::EngineError;
pub use jack::JackClient;
pub use load::{End, Load};
pub use settings::Settings;
