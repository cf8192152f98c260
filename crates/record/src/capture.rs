//! What a capture of the wire tells of a stream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Histogram};

/// Role of the series of a captured stream.
pub const CAPTURE: &str = "capture";
/// How many of the worst gaps and of the latest frames a capture keeps.
pub const WORST_KEPT: usize = 20;

/// A stream in a capture. Its series, of role `capture`, holds the lateness against the fitted grid.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Capture {
    /// The file.
    pub file: String,
    /// Who took it while the stream ran; absent for a file from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<Observer>,
    /// `pcap` or `pcapng`.
    pub format: String,
    /// Frames in the file, of all kinds.
    pub file_frames: u64,
    /// The streams in the file, the busiest first; at most 4096.
    pub streams: Vec<CapturedStream>,
    /// Frames of streams beyond those.
    #[serde(default)]
    pub left_out: u64,
    /// The stream that all figures below are of.
    pub stream: CapturedStream,
    /// Its frames with a time stamp, duplicates included.
    pub frames: u64,
    /// When the first of them was seen, ns since 1970 on the capture's clock.
    pub first_ns: i64,
    /// From the first to the last, ns.
    pub duration_ns: u64,
    /// Its period.
    pub period: CapturedPeriod,
    /// Intervals from each frame to the next, ns; negative where stamps go back.
    pub spacing: Histogram,
    /// Smallest interval, ns; absent with fewer than two frames, as the next two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_gap_ns: Option<i64>,
    /// Mean interval, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_gap_ns: Option<f64>,
    /// Largest interval, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gap_ns: Option<i64>,
    /// Largest |interval - nominal period|, ns.
    pub max_deviation_ns: u64,
    /// The largest intervals, the worst first; at most [`WORST_KEPT`].
    pub worst_gaps: Vec<MarkedFrame>,
    /// A frame later than this for its slot is a late packet, ns: 1 % of the period, at least 1 us.
    pub tolerance_ns: u64,
    /// Late packets: frames later than the tolerance.
    pub late: u64,
    /// Frames later than a period.
    pub missed_slots: u64,
    /// Slots that the talker left out: the sequence goes on behind them.
    pub skipped_slots: u64,
    /// The latest frames, the worst first; at most [`WORST_KEPT`].
    pub worst_late: Vec<MarkedFrame>,
    /// Where the frames' numbers came from.
    pub numbered_by: NumberedBy,
    /// Frames that the sequence numbers miss. 0 where frames have none; see `numbered_by`.
    pub lost: u64,
    /// Losses: runs of lost frames.
    pub losses: u64,
    /// Frames of the longest loss.
    pub longest_loss: u64,
    /// Frames that were seen before.
    pub duplicates: u64,
    /// Frames that came after later ones, at most 64 behind; none of them is lost.
    pub reordered: u64,
    /// Frames more than 64 behind, which may be late or seen before.
    pub too_late: u64,
    /// How often the talker began anew.
    pub restarts: u64,
    /// Bursts: runs of frames less than a quarter of the period apart.
    pub bursts: u64,
    /// Frames of the longest burst.
    pub longest_burst: u64,
    /// Frames in a slot's interval that had one already.
    pub window_violations: u64,
    /// What a credit-based shaper would have said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<CapturedShaper>,
    /// What time stamps are multiples of, ns: as the file says or as was found, whichever is more.
    pub resolution_ns: u64,
    /// Frames whose stamp lies before that of the frame before.
    pub out_of_order: u64,
    /// Frames that the capture says were dropped on the stream's interface.
    pub dropped: u64,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Who captured the stream of a run: a packet socket of its own, with the kernel's stamps, read by an ordinary thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Observer {
    /// The interface that it looked at.
    pub interface: String,
    /// At which end of the stream that is.
    pub at: ObservedAt,
}

/// Where an observer stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObservedAt {
    /// Where frames come in, behind the driver.
    #[default]
    Receiving,
    /// Where frames leave, before the driver.
    Sending,
}

/// A stream of a capture.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CapturedStream {
    /// What tells it from others.
    pub kind: CapturedKind,
    /// Its stream id, EtherType and source, or port and source.
    pub name: String,
    /// Address that it is sent to.
    pub destination: String,
    /// VLAN id; absent where frames have no tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Priority code point of its first frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcp: Option<u8>,
    /// The interface of the file that it was seen on, from 0.
    pub interface: u32,
    /// Its frames.
    pub frames: u64,
    /// Their bytes, without check sequence.
    pub bytes: u64,
    /// From its first frame to its last, ns.
    pub duration_ns: u64,
}

/// What a stream is told from others by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapturedKind {
    /// The stream id of AVTP.
    #[default]
    Avtp,
    /// EtherType and source.
    Ethertype,
    /// UDP port and source.
    Udp,
}

/// The period of a captured stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CapturedPeriod {
    /// As it should be, ns.
    pub nominal_ns: u64,
    /// Who says so.
    pub told_by: ToldBy,
    /// Stretches of the stream whose earliest frames the grid was fitted to; the nominal period stands with fewer than 3.
    pub stretches: u64,
    /// As it was by the capture's clock, ns.
    pub fitted_ns: f64,
    /// How much longer the fitted period is than the nominal, parts per million: the clocks of talker and tap against each
    /// other. Absent where the nominal period was guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ppm: Option<f64>,
    /// What that may be off by, parts per million: the scatter of the earliest frames over the capture's length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_ppm: Option<f64>,
    /// How far the earliest frames scatter around the grid, ns, without the farthest tenth on each side; absent for short
    /// captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wander_ns: Option<f64>,
}

/// Who says what a period should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToldBy {
    /// The user.
    Asked,
    /// Priority 3: stream reservation class A.
    ClassA,
    /// Priority 2: stream reservation class B.
    ClassB,
    /// The median interval: a guess.
    #[default]
    Median,
}

/// Where the numbers of a captured stream's frames came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NumberedBy {
    /// Frames have none: loss cannot be told.
    #[default]
    Nothing,
    /// AVTP's number of 8 bits, and the time between frames.
    Avtp,
    /// The number of 64 bits of punctual's own talker.
    Talker,
}

/// A frame to look up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MarkedFrame {
    /// Its number in the file, from 1, as Wireshark counts.
    pub frame: u64,
    /// When it was seen, ns after the stream's first.
    pub at_ns: i64,
    /// Length of the gap in front of it, or how late it was, ns.
    pub ns: i64,
}

/// What a credit-based shaper would have said of a captured stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CapturedShaper {
    /// Bandwidth reserved, bit/s.
    pub idle_slope_bps: u64,
    /// Whether that was given; else it is what the stream's longest frame takes once a period.
    pub asked: bool,
    /// Speed of the link, bit/s.
    pub link_bps: u64,
    /// Frames that began while the credit was negative.
    pub violations: u64,
    /// The lowest credit that a frame began with, bits; 0 where none was negative.
    pub lowest_bits: f64,
}
