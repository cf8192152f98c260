//! Evaluates run records: statistics, profiles, verdicts and comparisons, as pure functions.
//!
//! | module | content |
//! |---|---|
//! | [`duration`] | reading and writing durations |
//! | [`summary`] | the key figures of one series |
//! | [`statistics`] | conclusions from a number of cycles |
//! | [`process`] | conclusions about a watched program |
//! | [`profile`] | the limits of a use, read from TOML |
//! | `profiles` | built-in profiles, and profiles in files |
//! | [`float`] | conversions of floating-point numbers |
//! | [`audio`] | causes of xruns, and the smallest buffer |
//! | `capture` | the verdict on a captured stream |
//! | `presentation` | the limits of presentation times |
//! | [`observation`] | a stream at talker, capture and listener |
//! | `round_trip` | the verdict on round trips |
//! | `groups` | the series of a record that are relevant for a use |
//! | [`campaign`] | the table of a campaign, and its recommendation |
//! | [`matrix`] | the tables of a matrix, and the recommended pair of CPUs |
//! | [`mod@reference`] | figures published elsewhere |
//! | [`cores`] | the results of each core, in-band and out-of-band |
//! | [`prove`] | which changes make a machine more punctual |
//! | [`compare()`] | comparison of a run with another record |
//! | [`versus`] | two sets of records, judged: which side is more punctual |
//! | `ranks` | shifts with their intervals, by ranks |
//! | `tails` | larger values than a run measured |
//! | [`judge()`] | the verdict on one use |
//! | [`verdict()`] | the verdicts on all uses, and the one on a run |
//! | [`linuxcnc`] | the periods of a `LinuxCNC` configuration |
//! | `rate` | rates as text: `1 per hour` |
//! | `stalls` | the late and missing results of a series |
//! | `events` | late and missing results, counted as stalls |
//! | `sequential` | conclusions that hold at every moment of a run |
//! | `rules` | rules that several verdicts share |
//! | `data_file` | files of profiles and references |
//! | `cpu_list` | lists of CPUs |

#![forbid(unsafe_code)]

pub mod audio;
mod badness;
pub mod campaign;
mod capture;
mod compare;
pub mod cores;
mod cpu_list;
mod data_file;
pub mod duration;
mod events;
pub mod float;
mod gaps;
mod groups;
mod judge;
mod latency_limit;
pub mod linuxcnc;
pub mod matrix;
pub mod observation;
mod presentation;
pub mod process;
pub mod profile;
mod profiles;
pub mod prove;
mod ranks;
mod rate;
pub mod reference;
mod round_trip;
mod rules;
mod sequential;
#[cfg(test)]
mod simulated;
mod stalls;
pub mod statistics;
pub mod stream;
pub mod summary;
mod tails;
mod verdict;
pub mod versus;

pub use compare::{NOT_AS_REQUESTED, compare, figures, is_response};
pub use data_file::{LoadError, nearest};
pub use duration::{DurationError, format_duration, format_exact, format_ns, format_unsigned_ns, parse_ns};
pub use extremes::LEAST_WINDOWS;
pub use judge::{SoFar, judge, so_far, time_to_pass_ns};
pub use profile::{Judges, Profile, Source};
pub use profiles::{find_profile, find_profiles, profiles};
pub use rate::Rate;
pub use reference::{find_reference, find_reference_in, references};
pub use summary::{Summary, phase_in_words, rounded_ns, when};
pub use tails::{FURTHEST, TIMES, YEAR_NS, tail_so_far, tails};
pub use verdict::{conclude, ladder, on_short_ladder, outcome, rejudge, verdict, worst_of};
