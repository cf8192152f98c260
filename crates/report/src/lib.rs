//! Records in, pictures out: terminal, live view and HTML.

#![forbid(unsafe_code)]

mod against;
mod audio;
pub mod blame;
pub mod campaign;
mod clocks;
mod evl;
mod far;
pub mod html;
pub mod live;
mod process;
mod remedy;
mod round_trip;
mod shielding;
mod sound_loop;
mod stream;
pub mod style;
pub mod terminal;
mod timeline;
mod witness;
mod words;

pub use style::{ColorChoice, Style};
