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
    /// The streams in the file, the one with the most frames first; at most 4096. `--stream` counts from 1.
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
    /// Largest |interval - nominal period|, ns; absent with fewer than two frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_deviation_ns: Option<u64>,
    /// The largest intervals, largest first; at most 20.
    pub worst_gaps: Vec<MarkedFrame>,
    /// Tolerance for late packets, ns: 1 % of the period, at least 1 us, and the resolution of the timestamps if that is
    /// coarser than 1 ns.
    pub tolerance_ns: u64,
    /// Late frames: later than their slot by more than the tolerance. Absent if the lateness is not known, or not exactly
    /// because a clock changed its rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Late packets: frames later than their slot by more than half a period; absent if the lateness is
    /// not known, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_packets: Option<u64>,
    /// Frames later than their slot by more than a period; absent if the lateness is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_slots: Option<u64>,
    /// Slots that the talker skipped: the sequence numbers continue after them. Of frames without numbers, all slots without
    /// a frame. Absent if the lateness is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_slots: Option<u64>,
    /// Number of times that the talker skipped one or more slots; absent if the lateness is not known, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skips: Option<u64>,
    /// Time from the last frame of the stream to the end of the capture, ns; 0 if it had no end before that.
    #[serde(default)]
    pub ended_before_ns: u64,
    /// The latest frames, latest first; at most 20.
    pub worst_late: Vec<MarkedFrame>,
    /// Changes of the stream's time grid, in order; at most 20.
    #[serde(default)]
    pub steps: Vec<CapturedStep>,
    /// Number of changes of the time grid; absent if the lateness is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_total: Option<u64>,
    /// Changes of the time grid for which the clock of the capture was set, or may have been set; absent if the lateness is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_steps: Option<u64>,
    /// Why the lateness of the frames cannot be known. Absent if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_unknown: Option<String>,
    /// Frames that the talker sends in a burst in each period; 0 in records of older versions.
    #[serde(default)]
    pub frames_per_period: u64,
    /// Source of the sequence numbers.
    pub numbered_by: NumberedBy,
    /// Lost frames according to the sequence numbers; absent if frames have none, see `numbered_by`, or if the numbers do not show
    /// how many were lost where the clock of the capture was set. Frames lost where the talker restarted are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Runs of consecutive lost frames; absent if `lost` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses: Option<u64>,
    /// Frames in the longest run of lost frames; absent if `lost` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_loss: Option<u64>,
    /// Frames that were captured again; absent if frames have no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// Frames that arrived after later ones, at most 256 numbers behind; they are not counted as lost. Absent if frames have
    /// no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Frames more than 256 numbers behind, which may be reordered or duplicate; absent if frames have no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_late: Option<u64>,
    /// Frames that came in addition to those of the schedule: without sequence number, such as duplicates, or numbered ones
    /// between the regular ones. Absent if the lateness is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surplus: Option<u64>,
    /// Frames without a number in a stream whose other frames have one, such as RTCP between RTP: they have no slot.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unnumbered: u64,
    /// Frames of GOOSE that came after the time allowed to live of the frame before, when a receiver considers the sender
    /// lost. Absent for other protocols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired: Option<u64>,
    /// The latest of them, latest first, with the time after it as `ns`; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst_expired: Vec<MarkedFrame>,
    /// Restarts of the talker; absent if frames have no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// Bursts: runs of frames that are less than a quarter of the period apart; absent if the talker repeats frames of a new
    /// state at growing intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<u64>,
    /// Frames in the longest burst.
    pub longest_burst: u64,
    /// Frames in a slot that already had one; absent if the lateness is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_violations: Option<u64>,
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
    /// Dropped frames on the stream's interface, according to the file; absent if the file does not say. In older records 0,
    /// too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Capture {
    /// Removes the counts that cannot be known: without numbers, losses and duplicates; without a grid, lateness and slots.
    /// Older records contain 0 instead.
    #[must_use]
    pub fn without_unknown(self) -> Self {
        let is_numbered = self.numbered_by != NumberedBy::Nothing;
        let has_grid = self.lateness_unknown.is_none();
        let drifts = || self.steps.iter().filter(|step| step.kind == StepKind::Drift);
        let drifted = drifts().next().is_some();
        // With a drift of a quarter of the period, lateness of half a period is not certain.
        let quarter_ns = self.period.nominal_ns / 4;
        let drifted_far = drifts().any(|step| step.ns.is_none_or(|ns| ns.unsigned_abs() > quarter_ns));
        let by_number = |count: Option<u64>| count.filter(|_| is_numbered);
        let by_grid = |count: Option<u64>| count.filter(|_| has_grid);
        Self {
            late: by_grid(self.late).filter(|_| !drifted),
            late_packets: by_grid(self.late_packets).filter(|_| !drifted_far),
            missed_slots: by_grid(self.missed_slots).filter(|_| !drifted_far),
            skipped_slots: by_grid(self.skipped_slots),
            skips: by_grid(self.skips),
            steps_total: by_grid(self.steps_total),
            clock_steps: by_grid(self.clock_steps),
            window_violations: by_grid(self.window_violations).filter(|_| !drifted_far),
            surplus: by_grid(self.surplus),
            lost: by_number(self.lost),
            losses: by_number(self.losses),
            longest_loss: by_number(self.longest_loss),
            duplicates: by_number(self.duplicates),
            reordered: by_number(self.reordered),
            too_late: by_number(self.too_late),
            restarts: by_number(self.restarts),
            ..self
        }
    }

    /// True if the frames have numbers, which show losses and duplicates.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        self.numbered_by != NumberedBy::Nothing
    }

    /// Frames that never came, by their numbers; `None` if they have numbers that do not show how many. Without numbers, the
    /// slots without a frame show them, which the series of the capture counts as missed.
    #[must_use]
    pub fn lost_frames(&self) -> Option<u64> {
        if self.is_numbered() { self.lost } else { Some(0) }
    }

    /// The name of one of the streams, with its protocol and what distinguishes it from others of the same name. The name of
    /// an AVTP stream is enough.
    #[must_use]
    pub fn name_of(&self, stream: &CapturedStream) -> String {
        let same: Vec<_> = self.streams.iter().filter(|other| other.name == stream.name && *other != stream).collect();
        let vlan = stream.vlan.map_or_else(|| "no VLAN".to_owned(), |vlan| format!("VLAN {vlan}"));
        let has_protocol = stream.kind != CapturedKind::Avtp && !stream.protocol.is_empty();
        // The protocol says more than its EtherType.
        let by_protocol = has_protocol && stream.kind == CapturedKind::Ethertype;
        let name =
            if by_protocol { format!("{}, from {}", stream.protocol, stream.source) } else { stream.name.clone() };
        let other_protocol = has_protocol || same.iter().any(|other| other.protocol != stream.protocol);
        let differences = [
            (!by_protocol && other_protocol, stream.protocol.clone()),
            (!by_protocol && same.iter().any(|other| other.source != stream.source), format!("from {}", stream.source)),
            (same.iter().any(|other| other.destination != stream.destination), format!("to {}", stream.destination)),
            (same.iter().any(|other| other.vlan != stream.vlan), vlan),
            (same.iter().any(|other| other.interface() != stream.interface()), stream.interface()),
        ];
        let differences: Vec<_> =
            differences.into_iter().filter_map(|(differs, text)| differs.then_some(text)).collect();
        if differences.is_empty() { name } else { format!("{name}, {}", differences.join(", ")) }
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
    /// Index of the network interface in the kernel, which a Linux cooked capture of version 2 contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_interface: Option<u32>,
    /// Number of frames.
    pub frames: u64,
    /// Bytes of the frames without their check sequences.
    pub bytes: u64,
    /// Time from its first frame to its last, ns.
    pub duration_ns: u64,
    /// Lost frames according to its sequence numbers; absent if its frames have none or they do not show how many, and in older
    /// records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Copies of frames that arrived before, by their redundancy tags (IEEE Std 802.1CB), or by the numbers of PRP or HSR
    /// (IEC 62439-3). They are not among `frames`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copies: u64,
}

impl CapturedStream {
    /// The interface in words: `interface 0`, or `interface 0, index 3 in the kernel`.
    #[must_use]
    pub fn interface(&self) -> String {
        let index = self.kernel_interface.map_or_else(String::new, |index| format!(", index {index} in the kernel"));
        format!("interface {}{index}", self.interface)
    }
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
    /// The range of the grid's departure from a straight line, ns: the grid follows the wander of the clocks. Absent if it is a
    /// straight line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed_ns: Option<f64>,
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CapturedStep {
    /// The number of the first frame after the change, from 1, as Wireshark counts.
    pub frame: u64,
    /// Its timestamp, ns after the stream's first frame.
    pub at_ns: i64,
    /// The change, ns: positive if later frames are later than the old grid. Absent if the talker restarted its numbers,
    /// because the frames lost there are not known; 0 in older records. Absent also if only the rate changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<i64>,
    /// The change of the rate, parts per million: positive if the intervals became longer. Only for a change of the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppm: Option<f64>,
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
    /// The clock of the talker or of the capture changed its rate for so long that the grid follows it.
    Rate,
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const BY_NUMBER: [&str; 7] = ["lost", "losses", "longest_loss", "duplicates", "reordered", "too_late", "restarts"];
    const BY_GRID: [&str; 8] = [
        "late",
        "missed_slots",
        "skipped_slots",
        "skips",
        "steps_total",
        "clock_steps",
        "surplus",
        "window_violations",
    ];

    /// The keys of the counts that are known, of a capture as an older version wrote it: with 0 for unknown counts.
    fn known(numbered_by: &str, lateness_unknown: Option<&str>) -> Vec<String> {
        let mut older = serde_json::to_value(Capture::default()).unwrap();
        older["numbered_by"] = json!(numbered_by);
        older["lateness_unknown"] = json!(lateness_unknown);
        BY_NUMBER.iter().chain(&BY_GRID).for_each(|key| older[*key] = json!(0));
        let capture: Capture = serde_json::from_value(older).unwrap();
        let Value::Object(written) = serde_json::to_value(capture.without_unknown()).unwrap() else { panic!("no map") };
        let is_count = |key: &&String| BY_NUMBER.iter().chain(&BY_GRID).any(|count| count == key);
        written.keys().filter(is_count).cloned().collect()
    }

    #[test]
    fn counts_that_cannot_be_known_are_absent() {
        fn sorted<T: Ord>(mut keys: Vec<T>) -> Vec<T> {
            keys.sort_unstable();
            keys
        }
        let of = |numbered_by, unknown| sorted(known(numbered_by, unknown));
        assert_eq!(of("avtp", None), sorted([&BY_NUMBER[..], &BY_GRID].concat()));
        assert_eq!(of("nothing", None), sorted(BY_GRID.to_vec()));
        assert_eq!(of("avtp", Some("no period")), sorted(BY_NUMBER.to_vec()));
        assert_eq!(of("nothing", Some("no period")), Vec::<String>::new());
    }
}
