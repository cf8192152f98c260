//! Shows records: terminal output, live view and HTML reports.

#![forbid(unsafe_code)]

mod advice;
mod audio;
pub mod blame;
pub mod campaign;
mod cause_bound;
mod caveats;
mod clocks;
mod compare;
mod evl;
pub mod export;
mod far;
mod headline;
pub mod html;
mod interrupt;
pub mod live;
mod missing;
mod observation;
mod process;
mod proof;
mod remedy;
mod response;
mod round_trip;
mod shielding;
mod sound_loop;
mod stream;
pub mod style;
mod tails;
pub mod terminal;
mod timeline;
mod versus;
mod words;

pub use style::{ColorChoice, Style};
