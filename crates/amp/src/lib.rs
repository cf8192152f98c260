//! Neural models of guitar amplifiers, played in real time. Independent of the operating system: [`Model::process`]
//! does not allocate, lock or make system calls.
//!
//! | module | content |
//! |---|---|
//! | [`chain`] | the signal chain from the guitar to the loudspeaker, and its controls |
//! | [`configure`] | building a model in a requested size and with its knobs turned |
//! | [`cabinet`] | impulse responses of loudspeaker cabinets |
//! | `convolver` | convolution with long impulse responses |
//! | [`preset`] | models, cabinets and settings in one file |
//! | [`resample`] | sample rate conversion |
//! | [`rig`] | the files that a preset names, read and checked |
//! | [`tuner`] | finding the note that is played |
//! | [`recording`] | reading WAV, FLAC and AIFF files |
//! | [`wav`] | reading and writing WAV files |
//! | [`mod@file`] | reading and checking model files |
//! | [`model`] | a model that is ready to play |
//! | `net` | the networks, one module per kind |
//! | `memory` | signals of a network and their history, all in one slice |
//! | `simd` | vectors for every processor and the loops that use them; contains all `unsafe` |
//! | [`synthetic`] | built-in models with common shapes |
//! | [`work`] | the work of a network, and the instructions that it takes on arm64 |
//!
//! The path of a block: [`Chain::process`] divides a call into blocks of 64 frames, which pass through the stages
//! (`chain::stages`). There an [`Amplifier`] converts the signal to the level and sample rate of its model and calls
//! [`Model::process`]. This scales the signal and calls the network (`net::Net::block`), which enters vector code once
//! (`simd`) and computes all layers there.
//!
//! | term | meaning |
//! |---|---|
//! | frame | one sample of each channel |
//! | block | at most 64 frames, which a network computes at a time |
//! | tile | 16 frames, which pass through a layer at a time: one vector of the longest kind |
//! | strip | rows of a matrix whose sums stay in registers together |
//! | rows | the channels of a signal in memory, at a constant distance |
//! | delay line | rows with their history, in a ring |
//! | stack | consecutive layers of one kind, computed together |
//! | prewarm | to bring a model into the state after long silence |

pub mod cabinet;
pub mod chain;
pub mod configure;
mod convert;
mod convolver;
mod error;
pub mod file;
mod memory;
pub mod model;
mod net;
pub mod preset;
pub mod recording;
pub mod resample;
pub mod rig;
mod simd;
pub mod synthetic;
pub mod tuner;
pub mod wav;
pub mod work;

pub use cabinet::{Cabinet, Ir};
pub use chain::{Amplifier, Chain, Controls, Meters, Parameter, Parts, Settings};
pub use error::LoadError;
pub use file::{MAX_FILE_BYTES, ModelFile};
pub use model::Model;
pub use preset::Preset;
pub use rig::Rig;
pub use simd::InstructionSet;
pub use synthetic::SyntheticModel;
pub use work::Work;
