//! The run record: what was asked, what was granted, what was seen.
//!
//! A run is one JSON document, `*.punctual.json`, schema [`SCHEMA`]. Everything that shows a result reads this
//! document and nothing else. This crate depends on nothing else of ours.
//!
//! | module | holds |
//! |---|---|
//! | [`layout`] | which histogram bucket a value falls into; shared with the measuring thread |
//! | [`histogram`] | sparse histograms, percentiles, the correction for omitted deadlines |
//! | [`maxima`] | largest values over time, in bounded memory |
//! | [`mod@worst`] | the worst spikes, in bounded memory |
//! | [`model`] | the document itself: what was asked for, its parts |
//! | [`machine`] | the machine, findings, settings |
//! | [`clocks`] | what a machine's clocks follow, and how closely |
//! | [`clock_relation`] | how the clocks of two machines stand to each other |
//! | [`matrix`] | threads on each pair of CPUs, and which pair is recommended |
//! | [`process`] | a user's own program, and what its threads did |
//! | [`series`] | what a thread saw; its spikes |
//! | [`kind`] | what the values of a series are |
//! | [`noise`] | what one saw that never slept |
//! | [`audio`] | audio played in periods |
//! | [`round_trip`] | what became of datagrams that were to come back |
//! | [`capture`] | what a capture of the wire tells of a stream |
//! | [`sound_loop`] | the true round trip of a sound card |
//! | [`stream`] | what the talker and the listener of a stream saw |
//! | [`verdict`] | validity, verdicts, caveats |
//! | [`blame`] | who made the spikes: causes, time lines, the ledger |
//! | [`campaign`] | the document of a campaign: its scenarios with their records |
//! | [`role`] | what that keeps of the threads of one role |
//! | [`published`] | figures that were published elsewhere |
//! | [`against`] | figures of another record beside those of a run |
//! | [`evl`] | threads that the EVL core schedules |
//! | [`far`] | the far end of a measurement between two machines |
//! | [`mod@file`] | reading it, writing it atomically |
//! | [`shell`] | commands to paste |
//! | [`shielding`] | CPUs kept free of other work |
//! | [`export`] | the same figures in other tools' formats |

pub mod against;
pub mod audio;
pub mod blame;
pub mod campaign;
pub mod capture;
pub mod clock_relation;
pub mod clocks;
pub mod evl;
pub mod export;
pub mod far;
pub mod file;
pub mod histogram;
pub mod kind;
pub mod layout;
pub mod machine;
pub mod matrix;
pub mod maxima;
pub mod model;
pub mod noise;
pub mod process;
pub mod published;
pub mod role;
pub mod round_trip;
pub mod series;
pub mod shell;
pub mod shielding;
pub mod sound_loop;
pub mod stream;
pub mod verdict;
pub mod worst;

pub use against::*;
pub use audio::*;
pub use blame::*;
pub use campaign::*;
pub use capture::*;
pub use clock_relation::*;
pub use clocks::*;
pub use evl::*;
pub use far::*;
pub use histogram::{Correction, Histogram};
pub use kind::SeriesKind;
pub use machine::*;
pub use matrix::*;
pub use maxima::Maxima;
pub use model::*;
pub use noise::*;
pub use process::*;
pub use published::*;
pub use role::*;
pub use round_trip::*;
pub use series::*;
pub use shielding::*;
pub use sound_loop::*;
pub use stream::*;
pub use verdict::*;
pub use worst::Worst;

/// Name and version of the document's form.
pub const SCHEMA: &str = "punctual.run/1";

/// The JSON Schema of [`Record`], generated from the types.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Record);
    schema.insert("$id".into(), format!("https://punctual.invalid/schema/{SCHEMA}").into());
    schema.insert("title".into(), SCHEMA.into());
    schema.to_value()
}
