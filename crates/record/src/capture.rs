//! A stream in a packet capture.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Histogram, count::is_zero};

/// Role of the series of a captured stream.
pub const CAPTURE: &str = "capture";
/// The number of worst gaps and of latest frames that a capture keeps.
pub const WORST_KEPT: usize = 20;

/// The analysis of one stream in a packet capture. Its series, of role `capture`, contains the lateness of its frames
/// against the fitted grid.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Capture {
    /// The capture file.
    pub file: String,
    /// The run's own observer of the stream; absent for a file that was captured otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<Observer>,
    /// File format: `pcap` or `pcapng`.
    pub format: String,
    /// Frames in the file, of any kind.
    pub file_frames: u64,
    /// The streams in the file, the one with the most frames first; at most 4096.
    pub streams: Vec<CapturedStream>,
    /// Frames of streams that `streams` has no room for.
    #[serde(default)]
    pub left_out: u64,
    /// The analysed stream; all figures below are for this one.
    pub stream: CapturedStream,
    /// Its frames with a timestamp, including duplicates.
    pub frames: u64,
    /// Timestamp of its first frame, ns since 1970 on the capture's clock.
    pub first_ns: i64,
    /// Time from its first frame to its last, ns.
    pub duration_ns: u64,
    /// Its period.
    pub period: CapturedPeriod,
    /// Intervals between consecutive frames, ns; negative if timestamps go backwards.
    pub spacing: Histogram,
    /// Smallest interval, ns; absent with fewer than two frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_gap_ns: Option<i64>,
    /// Mean interval, ns; absent with fewer than two frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_gap_ns: Option<f64>,
    /// Largest interval, ns; absent with fewer than two frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gap_ns: Option<i64>,
    /// Largest |interval - nominal period|, ns.
    pub max_deviation_ns: u64,
    /// The largest intervals, largest first; at most 20.
    pub worst_gaps: Vec<MarkedFrame>,
    /// Tolerance for late packets, ns: 1 % of the period, at least 1 us, and the resolution of the timestamps if that is
    /// coarser than 1 ns.
    pub tolerance_ns: u64,
    /// Late frames: later than their slot by more than the tolerance.
    pub late: u64,
    /// Late packets: frames later than their slot by more than half a period; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_packets: Option<u64>,
    /// Frames later than their slot by more than a period.
    pub missed_slots: u64,
    /// Slots that the talker skipped: the sequence numbers continue after them.
    pub skipped_slots: u64,
    /// Number of times that the talker skipped one or more slots; 0 in older records.
    #[serde(default)]
    pub skips: u64,
    /// Time from the last frame of the stream to the end of the capture, ns; 0 if it had no end before that.
    #[serde(default)]
    pub ended_before_ns: u64,
    /// The latest frames, latest first; at most 20.
    pub worst_late: Vec<MarkedFrame>,
    /// Changes of the stream's time grid, in order; at most 20.
    #[serde(default)]
    pub steps: Vec<CapturedStep>,
    /// Number of changes of the time grid.
    #[serde(default)]
    pub steps_total: u64,
    /// Changes of the time grid for which the clock of the capture was set, or may have been set.
    #[serde(default)]
    pub clock_steps: u64,
    /// Why the lateness of the frames cannot be known. Absent if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_unknown: Option<String>,
    /// Frames that the talker sends in a burst in each period; 0 in records of older versions.
    #[serde(default)]
    pub frames_per_period: u64,
    /// Source of the sequence numbers.
    pub numbered_by: NumberedBy,
    /// Lost frames according to the sequence numbers; 0 if frames have none, see `numbered_by`.
    pub lost: u64,
    /// Runs of consecutive lost frames.
    pub losses: u64,
    /// Frames in the longest run of lost frames.
    pub longest_loss: u64,
    /// Frames that were captured again.
    pub duplicates: u64,
    /// Frames that arrived after later ones, at most 256 numbers behind; they are not counted as lost.
    pub reordered: u64,
    /// Frames more than 256 numbers behind, which may be reordered or duplicate.
    pub too_late: u64,
    /// Frames without a sequence number that came in addition to those of the schedule, such as duplicates.
    #[serde(default)]
    pub surplus: u64,
    /// Frames without a number in a stream whose other frames have one, such as RTCP between RTP: they have no slot.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unnumbered: u64,
    /// Restarts of the talker.
    pub restarts: u64,
    /// Bursts: runs of frames that are less than a quarter of the period apart.
    pub bursts: u64,
    /// Frames in the longest burst.
    pub longest_burst: u64,
    /// Frames in a slot that already had one.
    pub window_violations: u64,
    /// Result of a credit-based shaper that is simulated on the stream; absent if the period was estimated and no idle
    /// slope was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<CapturedShaper>,
    /// The presentation times of an AVTP stream; absent if no frame has one, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presentation: Option<CapturedPresentation>,
    /// Resolution of the timestamps, ns: the one that the file states or the one that was found, whichever is coarser.
    pub resolution_ns: u64,
    /// Frames with an earlier timestamp than the frame before.
    pub out_of_order: u64,
    /// Dropped frames on the stream's interface, according to the file.
    pub dropped: u64,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Capture {
    /// Late frames; `None` if the lateness is not known, or not exactly because a clock changed its rate.
    #[must_use]
    pub fn late_known(&self) -> Option<u64> {
        let drifted = self.steps.iter().any(|step| step.kind == StepKind::Drift);
        (self.lateness_unknown.is_none() && !drifted).then_some(self.late)
    }

    /// A count that needs sequence numbers, such as that of lost frames; `None` if the frames have none.
    #[must_use]
    pub fn by_number(&self, count: u64) -> Option<u64> {
        (self.numbered_by != NumberedBy::Nothing).then_some(count)
    }

    /// The name of one of the streams, with its protocol and what distinguishes it from others of the same name. The name of
    /// an AVTP stream is enough.
    #[must_use]
    pub fn name_of(&self, stream: &CapturedStream) -> String {
        let same: Vec<_> = self.streams.iter().filter(|other| other.name == stream.name && *other != stream).collect();
        let vlan = stream.vlan.map_or_else(|| "no VLAN".to_owned(), |vlan| format!("VLAN {vlan}"));
        let has_protocol = stream.kind != CapturedKind::Avtp && !stream.protocol.is_empty();
        let differences = [
            (has_protocol || same.iter().any(|other| other.protocol != stream.protocol), stream.protocol.clone()),
            (same.iter().any(|other| other.source != stream.source), format!("from {}", stream.source)),
            (same.iter().any(|other| other.destination != stream.destination), format!("to {}", stream.destination)),
            (same.iter().any(|other| other.vlan != stream.vlan), vlan),
            (same.iter().any(|other| other.interface != stream.interface), format!("interface {}", stream.interface)),
        ];
        let differences: Vec<_> =
            differences.into_iter().filter_map(|(differs, text)| differs.then_some(text)).collect();
        if differences.is_empty() {
            stream.name.clone()
        } else {
            format!("{}, {}", stream.name, differences.join(", "))
        }
    }

    /// Slots without a frame of the talker; `None` if the lateness is not known.
    #[must_use]
    pub fn skipped_known(&self) -> Option<u64> {
        self.lateness_unknown.is_none().then_some(self.skipped_slots)
    }
}

/// A capture that the run itself made: a separate packet socket with kernel timestamps, read by an ordinary thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Observer {
    /// The captured interface.
    pub interface: String,
    /// The end of the stream that the interface belongs to.
    pub at: ObservedAt,
}

/// The end of a stream that an observer captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObservedAt {
    /// The receiving interface, after the driver.
    #[default]
    Receiving,
    /// The sending interface, before the driver.
    Sending,
}

/// A stream found in a capture.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CapturedStream {
    /// Kind of the stream's identity.
    pub kind: CapturedKind,
    /// The stream id; or EtherType and source; or address and port of destination and source.
    pub name: String,
    /// The protocol above Ethernet or UDP: `RTP`, `PTP Sync, domain 0`; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// Source address of the frames; empty in records of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Destination address; empty in a cooked capture, which has none.
    pub destination: String,
    /// VLAN id, of several tags the innermost; absent for untagged frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// VLAN id of the outermost of several tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer_vlan: Option<u16>,
    /// Priority code point of the first frame; absent for untagged frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcp: Option<u8>,
    /// Index of the interface in the file, from 0.
    pub interface: u32,
    /// Number of frames.
    pub frames: u64,
    /// Bytes of the frames without their check sequences.
    pub bytes: u64,
    /// Time from its first frame to its last, ns.
    pub duration_ns: u64,
    /// Copies of frames that arrived before, by their redundancy tags (IEEE Std 802.1CB). They are not among `frames`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copies: u64,
}

/// The fields that identify a stream in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapturedKind {
    /// The stream id of AVTP.
    #[default]
    Avtp,
    /// EtherType and source address.
    Ethertype,
    /// UDP port and source address.
    Udp,
}

/// The period of a captured stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CapturedPeriod {
    /// The nominal period, ns.
    pub nominal_ns: u64,
    /// Source of the nominal period.
    pub told_by: PeriodSource,
    /// Sections of the stream whose earliest frames the grid was fitted to; with fewer than 3 the fitted period is the
    /// nominal one.
    pub stretches: u64,
    /// The fitted period on the capture's clock, ns.
    pub fitted_ns: f64,
    /// How much longer the fitted period is than the nominal one, parts per million: the talker's clock against that of
    /// the capture. Absent if the nominal period is a guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ppm: Option<f64>,
    /// Error of `clock_ppm`, parts per million: the scatter of the earliest frames over the length of the capture;
    /// absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_ppm: Option<f64>,
    /// Scatter of the earliest frames around the grid, ns, without the largest tenth on each side; absent for short
    /// captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wander_ns: Option<f64>,
}

/// Source of a nominal period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeriodSource {
    /// The user.
    Asked,
    /// Priority 3: stream reservation class A.
    ClassA,
    /// Priority 2: stream reservation class B.
    ClassB,
    /// The frames themselves: the period that fits them.
    #[default]
    Median,
}

/// Source of the sequence numbers of a captured stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NumberedBy {
    /// Frames have no numbers, so losses cannot be detected.
    #[default]
    Nothing,
    /// The 8-bit number of AVTP together with the time between frames.
    Avtp,
    /// The 64-bit number of punctual's own talker.
    Talker,
    /// The number of the stream's protocol ([`CapturedStream::protocol`]), such as RTP's sequence number.
    Protocol,
    /// The number in the redundancy tag of IEEE Std 802.1CB, of 16 bits.
    RedundancyTag,
}

/// A change of a captured stream's time grid. The lateness of later frames is measured against the new grid.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CapturedStep {
    /// The number of the first frame after the change, from 1, as Wireshark counts.
    pub frame: u64,
    /// Its timestamp, ns after the stream's first frame.
    pub at_ns: i64,
    /// The change, ns: positive if later frames are later than the old grid; 0 if unknown.
    pub ns: i64,
    /// Its cause.
    pub kind: StepKind,
}

/// The cause of a change of a captured stream's time grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// The phase of the stream changed.
    #[default]
    Phase,
    /// The stream moved slowly against its grid: the clock of the talker or of the capture changed its rate.
    Drift,
    /// The talker restarted its sequence numbers.
    Restart,
    /// The timestamps went back: the clock of the capture was set.
    ClockSet,
    /// No frame for a long time without a known loss: the clock of the capture was set, or the talker paused.
    Silence,
}

/// A frame worth finding in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MarkedFrame {
    /// Its number in the file, from 1, as Wireshark counts.
    pub frame: u64,
    /// Its timestamp, ns after the stream's first frame.
    pub at_ns: i64,
    /// The interval before it, or its lateness, ns.
    pub ns: i64,
}

/// The presentation times in the frames of an AVTP stream, or the timestamps of a clock reference.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CapturedPresentation {
    /// Frames with a valid timestamp.
    pub valid: u64,
    /// Frames without one.
    pub not_valid: u64,
    /// Frames whose timestamp is uncertain (tu), because the talker's clock was not synchronised.
    pub uncertain: u64,
    /// Changes of the media clock restart bit (mr).
    pub restarts: u64,
    /// Timestamps that are not where those before let expect them; absent if the timestamps do not advance regularly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jumps: Option<u64>,
    /// The first changes of the media clock, in order; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<CapturedMediaChange>,
    /// Rate of the timestamps against the clock of the capture, ppm; positive if the margin grows. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
    /// Frequency of the media clock by its own timestamps against its nominal frequency, ppm; absent if the period is a
    /// guess, or the timestamps do not advance regularly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_ppm: Option<f64>,
    /// Largest less smallest margin, ns, by the times between frames alone; needs no common clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation_ns: Option<u64>,
    /// The clock of the capture as given; absent if its relation to the talker's clock is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<CaptureClock>,
    /// The time from the capture of each frame to its presentation time, ns; negative if it came too late. Absent without
    /// `clock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<PresentationMargin>,
    /// The clock reference, if this is a stream of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ClockReference>,
}

/// The time from the capture of a frame, or its arrival at a listener, to its presentation time, ns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PresentationMargin {
    /// The smallest.
    pub min_ns: i64,
    /// The mean.
    pub mean_ns: f64,
    /// The median, above the exact one by less than a thousandth; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ns: Option<i64>,
    /// The largest.
    pub max_ns: i64,
    /// Frames that came after their presentation time.
    pub late: u64,
    /// The latest of them, latest first, with the margin as `ns`; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<MarkedFrame>,
}

/// A change of the media clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CapturedMediaChange {
    /// The number of the first frame after the change, from 1, as Wireshark counts.
    pub frame: u64,
    /// Its timestamp, ns after the stream's first frame.
    pub at_ns: i64,
    /// How much later its presentation time is than expected, ns; 0 if it is as expected, absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jump_ns: Option<i64>,
    /// True if the media clock restart bit changed: the talker announced the change.
    pub restarted: bool,
}

/// The header of a clock reference stream (CRF), IEEE Std 1722-2016, clause 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClockReference {
    /// The type of its events: 0 user, 1 audio samples, 2 video frames, 3 video lines, 4 machine cycles.
    pub kind: u8,
    /// The multiplier of the base frequency: 0 to 5 for 1, 1/1.001, 1.001, 24/25, 25/24 and 1/8.
    pub pull: u8,
    /// The base frequency, Hz.
    pub base_hz: u32,
    /// Events from one timestamp to the next.
    pub interval: u16,
    /// Timestamps in each frame.
    pub timestamps: u16,
    /// Frames with the frame sync bit (fs).
    pub frame_sync: u64,
    /// Frames whose header differs from that of the first one.
    pub changed: u64,
}

/// The clock of the timestamps of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureClock {
    /// That of gPTP, which is TAI.
    Gptp,
    /// UTC of a clock that follows gPTP: 37 s behind TAI since 2017.
    Utc,
}

/// A credit-based shaper (IEEE 802.1Qav) simulated on a captured stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CapturedShaper {
    /// Reserved bandwidth (idle slope), bit/s.
    pub idle_slope_bps: u64,
    /// True if the user gave the bandwidth; otherwise it is the stream's longest frame once per period.
    pub asked: bool,
    /// Link speed, bit/s.
    pub link_bps: u64,
    /// Frames that started while the credit was negative.
    pub violations: u64,
    /// The lowest credit at the start of a frame, bits; 0 if it was never negative.
    pub lowest_bits: f64,
}
