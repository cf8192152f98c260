//! Analyses packet captures (pcap and pcapng): spacing, lateness and loss of one stream. Uses one buffer and reads the
//! file twice, or three times if sources of RTP share addresses and ports, or slaves of EtherCAT left the working counter at 0.
//!
//! | module | contents |
//! |---|---|
//! | [`reader`] | reads a file frame by frame; based on `source`, `window`, `pcap`, `pcapng` and `clock` |
//! | [`filter`] | selects frames and assigns them to streams |
//! | `heads` | recognises frames of streams that were seen before |
//! | `streams`, `track`, `period` | first pass: all streams with their period and earliest frames |
//! | `bursts` | first pass: frames in bursts with gaps between them |
//! | `rates` | first pass: changes of the period, and the usual interval |
//! | `fit`, `wander` | fit a grid of slots to the stream, on the capture's clock, and follow clocks that wander |
//! | `sequence`, `schedule`, `again` | both passes: the index of each frame in the stream; restarts among seen numbers |
//! | `counter`, `states`, `parts` | both passes: numbers of other protocols than AVTP |
//! | `copies`, `tags` | both passes: copies of redundant streams; talkers that number several streams together |
//! | `measure` | second pass: `spacing`, `groups`, `lateness`, `shaper` and `presentation` of one stream |
//! | [`analyse`](mod@analyse) | both passes |
//! | `caveats` | limitations of the results |
//! | [`to_record`](mod@to_record) | the run record |
//! | [`mod@write`] | writes captures |

#![forbid(unsafe_code)]

mod again;
pub mod analyse;
mod bursts;
mod caveats;
mod clock;
mod convert;
mod copies;
mod counter;
mod ends;
mod error;
pub mod filter;
mod fit;
mod groups;
mod heads;
mod lateness;
mod measure;
mod parts;
mod pcap;
mod pcapng;
mod period;
mod presentation;
mod rates;
pub mod reader;
mod schedule;
mod sequence;
mod shaper;
mod skips;
mod source;
mod spacing;
mod states;
mod streams;
mod tags;
mod tally;
pub mod to_record;
mod track;
mod wander;
mod window;
pub mod write;

pub use analyse::{Analysis, Options, analyse, find_interface};
pub use error::CaptureError;
pub use filter::Filter;
pub use reader::{Packet, Reader};
pub use source::Interface;
pub use to_record::to_record;
pub use write::Writer;
