//! Neural models of guitar amplifiers, played in real time. No operating system; [`Model::process`] neither allocates, locks
//! nor calls the system.
//!
//! | module | holds |
//! |---|---|
//! | [`file`] | files of every kind, checked, and what they tell of themselves |
//! | [`model`] | a model ready to play |
//! | `net` | the networks, one kind a file |
//! | `memory` | signals and their past, all in one slice |
//! | [`simd`] | vectors of every processor, and the loops over them; all `unsafe` is there |

pub mod file;
mod memory;
pub mod model;
mod net;
pub mod simd;

pub use file::{LoadError, ModelFile};
pub use model::Model;
pub use simd::Level;
