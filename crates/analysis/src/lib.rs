//! What the figures mean: statistics, profiles and verdicts, as pure functions of run records.
//!
//! | module | holds |
//! |---|---|
//! | [`duration`] | durations as people write and read them |
//! | [`summary`] | one series in a dozen figures |
//! | [`statistics`] | what n cycles allow to be said |
//! | [`process`] | what a user's program did, in plain words |
//! | [`profile`] | the limits of a use, read from TOML |
//! | `builtin` | the profiles of `profiles/`, in the binary |
//! | [`audio`] | which part of a period of audio was at fault, and who |
//! | `capture` | the verdict on a captured stream |
//! | [`observation`] | a stream at talker, capture and listener |
//! | `round_trip` | the verdict on round trips |
//! | `consider` | which series of a record tell something about a use |
//! | [`campaign`] | the table of a campaign, and what it recommends |
//! | [`matrix`] | the tables of a matrix, and the pair of CPUs that it recommends |
//! | [`mod@reference`] | figures published elsewhere, read from TOML; `references/` in the binary |
//! | [`against()`] | figures of another record beside those of a run |
//! | [`judge()`] | the verdict on one use |
//! | [`verdict()`] | the verdicts on all uses, and the one on a run |

#![forbid(unsafe_code)]

mod against;
pub mod audio;
mod builtin;
pub mod campaign;
mod capture;
mod consider;
pub mod duration;
mod judge;
pub mod matrix;
pub mod observation;
pub mod process;
pub mod profile;
pub mod reference;
mod round_trip;
pub mod statistics;
pub mod stream;
pub mod summary;
mod verdict;

pub use against::{against, figures};
pub use builtin::builtin;
pub use duration::{DurationError, format_duration, format_exact, format_ns, parse_ns};
pub use judge::judge;
pub use profile::{Judges, Profile, ProfileError, Source, find_profile};
pub use reference::{ReferenceError, find_reference, references};
pub use summary::Summary;
pub use verdict::{ladder, on_short_ladder, verdict};
