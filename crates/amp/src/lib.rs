//! Neural models of guitar amplifiers, played in real time. No operating system; [`Model::process`] neither allocates, locks
//! nor calls the system.
//!
//! | module | holds |
//! |---|---|
//! | [`chain`] | the whole way from guitar to loudspeaker, and its controls |
//! | [`choice`] | a model as it was chosen of a file |
//! | [`cabinet`] | impulse responses and their convolution |
//! | [`preset`] | models, cabinets and settings in one file |
//! | [`resample`] | from one sample rate to another |
//! | [`rig`] | what a preset names, read and checked |
//! | [`tuner`] | which note is played |
//! | [`wav`] | WAV files as bytes |
//! | [`mod@file`] | files of every kind, checked, and what they tell of themselves |
//! | [`model`] | a model ready to play |
//! | `net` | the networks, one kind a file |
//! | `memory` | signals of a network, all in one slice |
//! | `delay_line` | those of them whose last frames are kept |
//! | `simd` | vectors of every processor, and the loops over them; all `unsafe` is there |
//! | [`synthetic`] | models of the usual shapes that need no file |
//!
//! One block on its way: [`Chain::process`] cuts a call into blocks of 64 frames, which go through the stages (`chain::stages`). There
//! an [`Amplifier`] brings the signal to its model's level and rate and hands it to [`Model::process`]; that scales it and calls
//! its network (`net::Net::block`), which enters vectors of the processor's kind once (`simd`) and plays all layers with them.
//!
//! | word | meaning |
//! |---|---|
//! | frame | one sample of each channel |
//! | block | at most 64 frames, what a network computes at a time |
//! | tile | 16 frames, what goes through a layer at a time: the lanes of the longest vector |
//! | strip | rows of a matrix whose sums stay in registers together |
//! | rows | channels in memory, each a stride behind the one before |
//! | delay line | rows with their last frames, in a ring |
//! | stack | layers of one kind, one behind the other, played as one |
//! | prewarm | to bring a model into the state that long silence leaves it in |

pub mod cabinet;
pub mod chain;
pub mod choice;
mod decibels;
mod error;
pub mod file;
mod memory;
pub mod model;
mod net;
pub mod preset;
pub mod resample;
pub mod rig;
mod simd;
pub mod synthetic;
pub mod tuner;
pub mod wav;

pub use cabinet::{Cabinet, Ir};
pub use chain::{Amplifier, Chain, Controls, Meters, Parameter, Parts, Settings};
pub use error::LoadError;
pub use file::ModelFile;
pub use model::Model;
pub use preset::Preset;
pub use rig::Rig;
pub use simd::InstructionSet;
pub use synthetic::SyntheticModel;
