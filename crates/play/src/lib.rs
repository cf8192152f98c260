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
//! | [`page`] | the server of the web page |
//! | [`page_controller`] | the chain that the web page controls |
//! | [`library`] | the files that the web page offers |
//! | [`preset_bank`] | the presets that MIDI chooses from |
//! | [`play_session`] | a preset bank that plays |
//! | [`rig_loader`] | loading of presets, models and cabinets |
//! | [`render`] | offline rendering |
//! | [`block_cost`] | processing time of blocks |
//! | [`board`] | expected load of models on boards that are not at hand |

pub mod block_cost;
pub mod board;
mod chain;
pub mod device;
pub mod engine;
mod error;
pub mod jack;
pub mod library;
pub mod load;
pub mod loopback;
pub mod midi;
pub mod page;
pub mod page_controller;
pub mod play_session;
pub mod port;
pub mod preset_bank;
pub mod render;
pub mod rig_loader;
pub mod settings;
mod thread;

pub use chain::ChainPlayer;
pub use device::Device;
pub use engine::Engine;
pub use error::EngineError;
pub use jack::JackClient;
pub use library::{Library, LibraryError, LoadedPreset};
pub use load::{End, Load};
pub use page_controller::PageController;
pub use play_session::PlaySession;
pub use preset_bank::PresetBank;
pub use rig_loader::{RigLoadError, RigLoader, preset_spec, read_preset};
pub use settings::Settings;
