//! Records in, pictures out: terminal, live view and HTML.

#![forbid(unsafe_code)]

pub mod html;
pub mod live;
pub mod style;
pub mod terminal;

pub use style::{ColorChoice, Style};
