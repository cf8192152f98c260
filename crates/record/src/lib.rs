//! The run record: the requested measurement, what the kernel granted, and the results.
//!
//! A run is one JSON document, `*.punctual.json`, schema [`SCHEMA`]. Everything that shows a result reads only this
//! document. This crate depends on no other crate of the workspace.
//!
//! | module | contents |
//! |---|---|
//! | [`layout`] | the histogram buckets, shared with the measuring thread |
//! | [`histogram`] | sparse histograms, percentiles, the correction for coordinated omission |
//! | [`losses`] | missing results over time, in bounded memory |
//! | [`maxima`] | largest values over time, in bounded memory |
//! | [`mod@worst`] | the worst spikes, in bounded memory |
//! | [`model`] | the document itself and the requested measurement |
//! | [`machine`] | the machine, findings, settings |
//! | [`clocks`] | the clocks of a machine, their sources and errors |
//! | [`clock_relation`] | the relation between the clocks of two machines |
//! | [`matrix`] | threads on each pair of CPUs, and the recommended pair |
//! | [`process`] | a user's own program and its threads |
//! | [`saturating`] | sums and differences that saturate |
//! | [`series`] | the measurements of one thread, and its spikes |
//! | [`kind`] | the kind of a series: what its values mean |
//! | [`noise`] | measurements of a thread that never sleeps |
//! | [`audio`] | audio played in periods |
//! | [`round_trip`] | round trips of datagrams |
//! | [`capture`] | a stream in a packet capture |
//! | [`sound_loop`] | the measured round trip of a sound card |
//! | [`stream`] | the talker and the listener of a stream |
//! | [`verdict`] | validity, verdicts, caveats |
//! | [`blame`] | causes of spikes: culprits, time lines, the ledger |
//! | [`campaign`] | the document of a campaign: its scenarios and their run records |
//! | [`role`] | the figures of one role in a campaign's table |
//! | [`proof`] | the document of a search for the changes that help |
//! | [`published`] | figures that were published elsewhere |
//! | [`consistency`] | contradictions within a record |
//! | [`obstacle`] | the rule for whether a run may support a good result at all |
//! | [`comparison`] | comparison of a run with another record |
//! | [`versus`] | the document of a comparison of two sides |
//! | [`evl`] | threads that the EVL core schedules |
//! | [`far`] | the far end of a measurement between two machines |
//! | [`mod@file`] | reading records, writing them atomically |
//! | [`shell`] | commands to paste |
//! | [`shielding`] | CPUs shielded from other work |
//! | [`export`] | export to other tools' formats |
//! | [`count`] | counts in text for people |
//! | [`visible`] | text of outside origin, which must not control a terminal |

pub mod audio;
pub mod blame;
pub mod bounded;
pub mod campaign;
pub mod capture;
mod cause_bound;
pub mod clock_relation;
pub mod clocks;
pub mod comparison;
pub mod consistency;
pub mod count;
pub mod evl;
pub mod export;
pub mod far;
pub mod file;
pub mod histogram;
mod interrupt;
pub mod kind;
pub mod layout;
pub mod losses;
pub mod machine;
mod margin;
pub mod matrix;
pub mod maxima;
mod media_clock;
pub mod model;
pub mod noise;
pub mod obstacle;
pub mod process;
pub mod proof;
pub mod published;
mod response;
pub mod role;
pub mod round_trip;
pub mod saturating;
pub mod series;
pub mod shell;
pub mod shielding;
pub mod sound_loop;
pub mod stream;
mod tail;
pub mod verdict;
pub mod versus;
pub mod visible;
pub mod worst;

pub use audio::*;
pub use blame::*;
pub use campaign::*;
pub use capture::*;
pub use cause_bound::{BoundBasis, BoundRefusal, CauseBound};
pub use clock_relation::*;
pub use clocks::*;
pub use comparison::*;
pub use consistency::INCONSISTENT;
pub use count::{counted, grouped};
pub use evl::*;
pub use far::*;
pub use histogram::{Correction, Histogram, rank};
pub use interrupt::*;
pub use kind::*;
pub use losses::Losses;
pub use machine::*;
pub use margin::{LargestFrames, MarginTally};
pub use matrix::*;
pub use maxima::Maxima;
pub use media_clock::{MediaClock, MediaFrame};
pub use model::*;
pub use noise::*;
pub use obstacle::{GONE, OFFLINE, Obstacle};
pub use process::*;
pub use proof::Proof;
pub use published::*;
pub use response::*;
pub use role::*;
pub use round_trip::*;
pub use series::*;
pub use shielding::*;
pub use sound_loop::*;
pub use stream::*;
pub use tail::*;
pub use verdict::*;
pub use versus::Versus;
pub use worst::Worst;

/// Name and version of the record format.
pub const SCHEMA: &str = "punctual.run/1";

/// Returns the JSON Schema of [`Record`], generated from the types.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schema_of::<Record>(SCHEMA)
}

/// The JSON Schema of a document, whose format has this name.
fn schema_of<T: schemars::JsonSchema>(name: &str) -> serde_json::Value {
    let mut schema = schemars::schema_for!(T);
    schema.insert("$id".into(), format!("https://punctual.invalid/schema/{name}").into());
    schema.insert("title".into(), name.into());
    schema.to_value()
}
