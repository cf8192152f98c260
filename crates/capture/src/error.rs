//! Why a capture could not be read, each in one sentence with what to do about it.

use std::io;

/// Why a capture could not be read or analysed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The system refused to open it.
    #[error("cannot open it: {reason}")]
    Open {
        /// What the system said.
        reason: io::Error,
    },
    /// The system refused to give the bytes.
    #[error("cannot read at byte {offset}: {reason}")]
    Read {
        /// Where, bytes from the file's begin.
        offset: u64,
        /// What the system said.
        reason: io::Error,
    },
    /// It begins as no capture does.
    #[error("not a capture: it begins as neither pcap nor pcapng does; capture with: tcpdump -w FILE")]
    NotACapture,
    /// It is packed.
    #[error("packed with {tool}; unpack it first: {tool} -dk FILE")]
    Packed {
        /// What unpacks it.
        tool: &'static str,
    },
    /// The file contradicts itself.
    #[error("damaged at byte {offset}: {what}; editcap FILE NEW may save what is left")]
    Damaged {
        /// Where, bytes from the file's begin.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// Its frames are not those of Ethernet.
    #[error("link type {found} is not Ethernet (1), and no other is read: capture on the Ethernet interface itself")]
    LinkType {
        /// The number of its link type.
        found: u32,
    },
    /// It holds no frame.
    #[error("holds no frame: capture on the interface that the stream passes, and longer")]
    Empty,
    /// No frame is of the stream that was asked for.
    #[error("no stream found for {wanted}; there are {found}")]
    NoStream {
        /// What was looked for.
        wanted: String,
        /// What is there instead.
        found: String,
    },
    /// A stream has no interval.
    #[error("the stream has {frames} frames, too few for an interval: capture for longer, or give its --period")]
    TooFew {
        /// Its frames.
        frames: u64,
    },
    /// The stream's frames have no time stamps.
    #[error("the stream's frames have no time stamps (simple packet blocks): capture with a tool that writes them")]
    NoStamps,
}
