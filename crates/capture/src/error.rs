//! Errors of reading and analysing captures.

use std::io;

use record::{counted, file::remedy_of_reading};

use crate::streams::STREAMS_MAX;

/// Why a capture could not be read or analysed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened.
    #[error("cannot open the file: {reason}{}", remedy_of_reading(reason))]
    Open {
        /// The system error.
        reason: io::Error,
    },
    /// The file cannot be read.
    #[error("cannot read at byte {offset}: {reason}")]
    Read {
        /// Offset in the file, bytes.
        offset: u64,
        /// The system error.
        reason: io::Error,
    },
    /// The file is not in a capture format.
    #[error("not a capture: the file is neither pcap nor pcapng; capture with: tcpdump -w FILE")]
    NotACapture,
    /// The file is compressed.
    #[error("compressed with {tool}; decompress it first: {tool} -dc FILE > NEW")]
    Packed {
        /// The program that decompresses it.
        tool: &'static str,
    },
    /// The file is inconsistent.
    #[error("damaged at byte {offset}: {what}; `editcap FILE NEW` may recover the rest")]
    Damaged {
        /// Offset in the file, bytes.
        offset: u64,
        /// The inconsistency.
        what: String,
    },
    /// The link type is not supported.
    #[error(
        "link type {found} is neither Ethernet (1) nor a Linux cooked capture (113, 276): capture on the Ethernet \
         interface itself"
    )]
    LinkType {
        /// The link type in the file.
        found: u32,
    },
    /// The file has no frames.
    #[error("no frames in the file: capture for longer, on an interface that the stream passes")]
    Empty,
    /// The file ends inside its first frame.
    #[error("the file ends inside its first frame at byte {offset}: no frame is complete; copy or capture it again")]
    Cut {
        /// Offset of the frame in the file, bytes.
        offset: u64,
    },
    /// No frame belongs to the requested stream.
    #[error("no stream found for {wanted}; other frames: {found}")]
    NoStream {
        /// The requested stream.
        wanted: String,
        /// The other frames in the file.
        found: String,
    },
    /// The list of streams is shorter.
    #[error("no stream {wanted}: the file has {}; without --stream, --full lists them", counted(*found as u64, "such stream"))]
    NoNumber {
        /// The requested number, from 1.
        wanted: usize,
        /// The number of streams that the filter selects.
        found: usize,
    },
    /// The file has no interface with this name or number.
    #[error("no interface `{wanted}` in the file; it has {found}")]
    NoInterface {
        /// The requested interface.
        wanted: String,
        /// The interfaces of the file, by number and name.
        found: String,
    },
    /// The stream has too few frames for an interval.
    #[error(
        "the stream has {}, too few for an interval: capture for longer, or give --period{}",
        counted(*frames, "frame"),
        as_one(*streams)
    )]
    TooFew {
        /// The number of frames.
        frames: u64,
        /// The number of streams that the filter selects.
        streams: usize,
    },
    /// The frames of the stream have no timestamps.
    #[error("the stream's frames have no timestamps (simple packet blocks): capture with a tool that writes them")]
    NoStamps,
}

/// The remedy if a capture has many streams of few frames.
fn as_one(streams: usize) -> String {
    if streams > 1 {
        let more = if streams == STREAMS_MAX { " or more" } else { "" };
        let streams = counted(streams as u64, "stream");
        format!(
            "; it is one of {streams}{more}: --ethertype TYPE takes all frames of a type as one, e.g. 0x0800 for IPv4"
        )
    } else {
        String::new()
    }
}
