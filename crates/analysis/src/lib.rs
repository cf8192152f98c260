//! What the figures mean: statistics, profiles and verdicts, as pure functions of run records.

#![forbid(unsafe_code)]

pub mod duration;

pub use duration::{DurationError, format_duration, format_ns, parse_ns};
