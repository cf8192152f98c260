//! The amplifier as an LV2 plugin: the same chain and engine as `punctual amp`, in a host of the user's choice.
//!
//! | module | content |
//! |---|---|
//! | `abi` | the C interface of LV2: the only `unsafe` of this crate |
//! | [`urids`] | the names of LV2 as numbers of the host |
//! | [`messages`] | messages of the host: files to load, and answers |
//! | [`player`] | the audio thread's side of an instance |
//! | [`loader`] | the side of an instance that reads files |
//! | [`ports`] | the ports, one list for the code and the description |
//! | [`describe`] | the description of the plugins in Turtle |
//! | [`modgui`] | the panel of the plugins on MOD devices |
//!
//! The host calls `run` on its audio thread. It neither allocates nor locks: parameters go straight into the chain. A file to
//! load goes to the worker thread of the host, which reads it and sends the new parts through the queues of
//! [`amp::Controls`]. A change of the bypass or of a parameter is smoothed by the chain.

mod abi;
pub mod describe;
pub mod loader;
pub mod messages;
pub mod modgui;
pub mod player;
pub mod ports;
pub mod urids;

pub use abi::lv2_descriptor;
