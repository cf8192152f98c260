//! The amplifier as a plugin for LV2 and CLAP hosts: the same chain and engine as `punctual amp`, in a host of the user's choice.
//!
//! | module | content |
//! |---|---|
//! | `abi` | the C interfaces of LV2 and CLAP: the only `unsafe` of this crate |
//! | [`player`] | the audio thread's side of an instance |
//! | [`loader`] | the side of an instance that reads files |
//! | [`ports`] | the plugins, their ports and files, one list for the code and the description |
//! | [`urids`] | LV2: the names as numbers of the host |
//! | [`messages`] | LV2: messages of the host: files to load, and answers |
//! | [`mailbox`] | LV2: the files of these messages on the audio thread |
//! | [`describe`] | LV2: the description of the plugins in Turtle |
//! | [`modgui`] | LV2: the panel of the plugins on MOD devices |
//! | [`control`] | CLAP: the parameters as the host numbers and shows them |
//! | [`state`] | CLAP: the state in bytes |
//!
//! The host calls `run` or `process` on its audio thread. It neither allocates nor locks: parameters go straight into the
//! chain. The worker thread of an LV2 host or the main thread of a CLAP host reads a file, and sends the new parts through the
//! queues of [`amp::Controls`]. A change of the bypass or of a parameter is smoothed by the chain.

mod abi;
pub mod control;
pub mod describe;
pub mod loader;
pub mod mailbox;
pub mod messages;
pub mod modgui;
pub mod player;
pub mod ports;
pub mod state;
pub mod urids;

pub use abi::{clap_entry, lv2_descriptor};
