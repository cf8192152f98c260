//! A stream of frames: the figures of its talker and its listener.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CapturedMediaChange, ClockRelation, Extra, Histogram, PresentationMargin, Series, Times, count::is_zero, counted,
};

/// Name of the phase that finds the wake-up offset of a talker before the run.
pub const CALIBRATION: &str = "offset";

/// The figures of the stream probe. `raw` of a talker is the lateness of its wake-ups, before it waits for the slot.
/// `raw` of a listener is the interval between two frames as they were read, minus the period; it is negative for early
/// frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "snake_case")]
pub enum Stream {
    /// Figures of the talker, which sends.
    Talker(Box<Talker>),
    /// Figures of the listener, which receives.
    Listener(Box<Listener>),
}

/// The identity of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StreamIdentity {
    /// Network interface that it was sent or received on.
    pub interface: String,
    /// Stream id, 16 hexadecimal digits: the talker's MAC address and a number; empty until a stream is found.
    pub stream_id: String,
    /// Source MAC address: `02:00:00:00:00:01`; empty until a stream is found.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Destination MAC address; empty until a stream is found.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub destination: String,
    /// Sample format: `aaf`, `61883-6`; for other subtypes of AVTP their number: `0x05`. Empty until a stream is found.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format: String,
    /// Priority (PCP) of the VLAN tag; absent for untagged frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcp: Option<u8>,
    /// VLAN id of the tag; absent for untagged frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vid: Option<u16>,
    /// Frame length with VLAN tag, without check sequence, bytes.
    #[serde(default)]
    pub frame_bytes: u64,
}

/// Figures of a talker. Slots are one period apart; each has at most one frame.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Talker {
    /// Identity of the stream.
    pub identity: StreamIdentity,
    /// Transmission mode: `send`; `bypass` (past the queueing disciplines); `tx-ring` (from memory shared with the
    /// kernel); `txtime` (with launch times, until which the queueing discipline holds frames); `xdp` and
    /// `xdp-zerocopy` (AF_XDP).
    pub mode: String,
    /// True if the driver sent frames from our memory without a copy; absent without AF_XDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_copy: Option<bool>,
    /// True if the listener was part of the same run, at the other end of a virtual Ethernet pair.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_listener: bool,
    /// Wake-up offset, ns: how long before its slot the talker wakes, in order to spin until the slot or to send with a
    /// launch time.
    pub offset_ns: u64,
    /// A frame sent later than its slot by more than this is late, ns: 1 % of the period, at least 1 us.
    pub tolerance_ns: u64,
    /// Frames sent.
    pub frames: u64,
    /// Late frames: sent later than their slot by more than the tolerance.
    pub late: u64,
    /// Late packets: frames sent later than their slot by more than half a period; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_packets: Option<u64>,
    /// Slots without a frame, because the talker did not run in time.
    pub missed_slots: u64,
    /// Frames that the kernel refused because its queue was full.
    pub refused: u64,
    /// Largest send lateness, ns; absent without frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delta_ns: Option<i64>,
    /// Time of the largest send lateness, ns after the first slot; absent without frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delta_at_ns: Option<u64>,
    /// Largest |interval - period| between two consecutive frames, ns.
    pub max_interval_error_ns: u64,
    /// Frames sent less than half a period after the one before.
    pub window_violations: u64,
    /// Send lateness: time from the start of a slot to the handover of its frame to the kernel, ns; negative if before.
    pub send: Histogram,
    /// Dropped frames with launch times; absent without launch times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Timestamps of the sent frames; absent if none were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<TransmitStamps>,
    /// Frames whose presentation time was marked as uncertain (`tu`), because the clock was not synchronised; absent
    /// unless synchronisation was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertain: Option<u64>,
    /// Counts of each stream, in the order in which their frames of a slot are sent; empty for a talker of one stream without
    /// a name. The other figures are those of the first: the frames of a slot are handed over together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<SentStream>,
    /// Late frames to expect with other wake-up offsets, computed from the same wake-ups: pairs of offset in ns and
    /// count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(u64, u64)>,
    /// Knee of `curve`, ns: the shortest wake-up offset that makes at most a tenth more frames late than the longest
    /// one that `auto` would choose, or 10 in a million more. Absent if the talker does not spin, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee_ns: Option<u64>,
    /// Calibration of the wake-up offset; absent if the offset was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Destination addresses that were claimed by MAAP, those of all threads in the first talker; absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maap: Option<Maap>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Destination addresses that were claimed by MAAP (IEEE Std 1722, annex B). Times begin when the first PROBE was due.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Maap {
    /// The claimed ranges, in the order of time.
    pub claimed: Vec<ClaimedAddresses>,
    /// Messages of other devices about claimed or probed addresses.
    pub conflict_count: u64,
    /// The first conflicts, at most [`WORST_KEPT`](crate::WORST_KEPT).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<MaapConflict>,
    /// Number of times that the link returned after it was down, so that the addresses were probed again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub link_returns: u64,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Consecutive addresses that were claimed by MAAP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClaimedAddresses {
    /// The first address.
    pub first: String,
    /// Number of addresses.
    pub count: u64,
    /// True if the address was given and could not be replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fixed: bool,
    /// When they were claimed, ns.
    pub claimed_at_ns: u64,
    /// When they were lost, ns; absent if they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at_ns: Option<u64>,
    /// Source address of the device that they were lost to; absent if they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_to: Option<String>,
}

/// A message of another device about addresses that were claimed or probed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MaapConflict {
    /// When it arrived, ns.
    pub at_ns: u64,
    /// Source address of the message.
    pub source: String,
    /// Type of the message.
    pub message: MaapMessage,
    /// First address of the talker's range at that time.
    pub first: String,
    /// Number of addresses of that range.
    pub count: u64,
    /// Reaction of the talker.
    pub resolution: MaapResolution,
}

/// A type of MAAP messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaapMessage {
    /// Asks if somebody uses addresses.
    Probe,
    /// Answers a PROBE for addresses that the sender uses.
    Defend,
    /// Announces that the sender uses addresses.
    Announce,
}

/// The reaction of a talker to a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaapResolution {
    /// It answered with DEFEND.
    Defended,
    /// It kept the addresses, because the other device must yield to the lower source address.
    Kept,
    /// It had not claimed the addresses yet, and probed others.
    Left,
    /// It lost the addresses.
    Yielded,
}

/// The counts of one of several streams of a talker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SentStream {
    /// Its name in a file of streams; empty for `--streams N`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Stream id, 16 hexadecimal digits.
    pub stream_id: String,
    /// Destination MAC address.
    pub destination: String,
    /// Frames sent.
    pub frames: u64,
    /// Frames that the kernel refused.
    pub refused: u64,
    /// Length of its frames with VLAN tag, without check sequence, bytes; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_bytes: Option<u64>,
}

/// The counts of one of several streams that arrived from one talker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedStream {
    /// Stream id, 16 hexadecimal digits.
    pub stream_id: String,
    /// Destination MAC address; empty if no frame arrived.
    pub destination: String,
    /// Frames received, including duplicates.
    pub frames: u64,
    /// Lost frames according to their numbers.
    pub lost: u64,
    /// Runs of consecutive lost frames.
    pub loss_bursts: u64,
    /// Frames that were received again.
    pub duplicates: u64,
    /// Frames that arrived after a frame that was sent later.
    pub reordered: u64,
    /// Longest interval between two frames as they were read, ns; absent with fewer than two frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gap_ns: Option<u64>,
    /// Restarts of its talker: frames that were lost there are not counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u64,
    /// Time from the first frame of the followed stream to the first one of this stream, ns; 0 if it is at most 2 s, or if the
    /// talker reports how many frames it sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub began_after_ns: u64,
    /// Time from the last frame of this stream to the last one of the followed stream, ns; 0 likewise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ended_before_ns: u64,
    /// Longest interval between two frames without the time of the lost frames in it, ns; 0 likewise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub paused_ns: u64,
}

impl ReceivedStream {
    /// A time without a frame that the numbers of the frames do not explain, as the end of a sentence about the stream. Frames
    /// can have been lost there. `None` if there is no such time.
    #[must_use]
    pub fn silence(&self) -> Option<String> {
        let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
        if self.ended_before_ns > 0 {
            return Some(format!("ended {} before the run did", seconds(self.ended_before_ns)));
        }
        if self.began_after_ns > 0 {
            return Some(format!("began {} after the run did", seconds(self.began_after_ns)));
        }
        if self.paused_ns > 0 {
            return Some(format!("had no frame for {}", seconds(self.paused_ns)));
        }
        (self.restarts > 0).then(|| format!("restarted {}", counted(self.restarts, "time")))
    }
}

/// The name of a stream for people, from its id of 16 hexadecimal digits: address and number of the talker,
/// `02:00:00:00:00:01:0000`.
#[must_use]
pub fn stream_name(id: &str) -> String {
    match id.split_at_checked(12) {
        Some((address, number)) if id.len() == 16 && id.is_ascii() => {
            let bytes: Vec<&str> = (0..6).map(|byte| &address[2 * byte..2 * byte + 2]).collect();
            format!("{}:{number}", bytes.join(":"))
        }
        _ => id.to_owned(),
    }
}

impl Talker {
    /// Refused frames of the stream that had the most.
    #[must_use]
    pub fn most_refused(&self) -> u64 {
        self.streams.iter().map(|stream| stream.refused).max().unwrap_or(self.refused)
    }

    /// True if it sends the stream `stream_id`.
    #[must_use]
    pub fn sends(&self, stream_id: &str) -> bool {
        self.identity.stream_id == stream_id || self.streams.iter().any(|stream| stream.stream_id == stream_id)
    }

    /// Number of streams.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.streams.len().max(1)
    }

    /// Frames sent of the stream `stream_id`; for a talker of one stream, of that one.
    #[must_use]
    pub fn frames_of(&self, stream_id: &str) -> u64 {
        self.streams.iter().find(|stream| stream.stream_id == stream_id).map_or(self.frames, |stream| stream.frames)
    }
}

impl Listener {
    /// The streams of the talker, the worst first: most lost frames, then those with a [silence](ReceivedStream::silence), then
    /// the longest gap. Empty if there is only one.
    #[must_use]
    pub fn worst_first(&self) -> Vec<&ReceivedStream> {
        let mut streams: Vec<&ReceivedStream> = self.streams.iter().collect();
        streams.sort_by_key(|stream| std::cmp::Reverse((stream.lost, stream.silence().is_some(), stream.max_gap_ns)));
        streams
    }
}

/// Launch times: the queueing discipline ETF holds frames until their slots.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Launch {
    /// Time before its slot at which ETF passes a frame to the driver, ns.
    pub delta_ns: u64,
    /// True if the network card holds frames until their slots; otherwise they leave when the driver gets them.
    pub offloaded: bool,
    /// Frames dropped because their slot had started before the handover. They are included in `refused`.
    pub invalid: u64,
    /// Frames dropped because their slot started while they waited. They are included in `frames`.
    pub missed: u64,
}

/// Timestamps of the frames that a talker sent, of all its streams.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TransmitStamps {
    /// Frames without a timestamp of the driver.
    pub missing: u64,
    /// Timestamps that were not used because a clock was set.
    pub unusable: u64,
    /// Largest error of the conversion to the talker's clock, ns.
    pub clock_error_ns: u64,
    /// From the handover of a frame to the driver: queueing discipline and kernel. With launch times it is from the launch
    /// time, and negative if the driver got the frame before. Absent without timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_out: Option<Times>,
    /// Timestamps of the network card; absent if none were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardStamps>,
}

/// Timestamps of sent frames by the network card.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CardStamps {
    /// The card's clock, such as `ptp0`.
    pub clock: String,
    /// Largest error of the conversion from that clock to CLOCK_REALTIME, ns.
    pub clock_error_ns: u64,
    /// Frames without a timestamp: many cards stamp a frame only after they delivered the timestamp of the one before.
    pub missing: u64,
    /// From the driver to the transmission; absent without timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_and_card: Option<Times>,
    /// From the slot of a frame to its transmission; absent without timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_slot: Option<Times>,
}

/// Per cent of each period that a real-time talker leaves to other work, in addition to the share that the kernel keeps
/// for ordinary threads: its interrupts, and slots that take longer than usual.
const OTHER_WORK_PERCENT: u64 = 10;
/// Per cent of each CPU that the kernel keeps for ordinary threads unless it is configured otherwise: 50 ms of each
/// second by the fair server since Linux 6.12, and before by `sched_rt_runtime_us`.
pub const ORDINARY_PERCENT: u64 = 5;

/// The longest wake-up offset of a spinning talker that leaves other threads time on its CPU, ns. `own_ns` is the CPU
/// time that it needs in each period apart from spinning. The kernel keeps `ordinary_percent` of the CPU for ordinary
/// threads: while these wait, it stops a real-time thread that leaves them less.
#[must_use]
pub fn longest_offset_ns(period_ns: u64, own_ns: u64, ordinary_percent: u64) -> u64 {
    let percent = 100_u64.saturating_sub(ordinary_percent.saturating_add(OTHER_WORK_PERCENT));
    let most_ns = u128::from(period_ns) * u128::from(percent) / 100;
    u64::try_from(most_ns).unwrap_or(u64::MAX).saturating_sub(own_ns)
}

/// The use of its CPU by a talker that spins until its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TalkerLoad {
    /// CPU time of the thread, per cent of the time of its slots.
    pub percent: u64,
    /// CPU time of a slot without spinning, ns.
    pub own_ns: u64,
    /// Longest wake-up offset that leaves other threads enough time, ns, in whole us.
    pub longest_offset_ns: u64,
}

impl TalkerLoad {
    /// Returns the load of a talker's thread; `None` for another thread, for a talker that does not spin, and if its
    /// CPU time is unknown.
    #[must_use]
    pub fn of(series: &Series) -> Option<Self> {
        let talker = series.kind.talker().filter(|talker| talker.offset_ns > 0 && talker.launch.is_none())?;
        let slots = series.samples.saturating_add(series.missed);
        let slots_ns = u128::from(slots) * u128::from(series.period_ns);
        let used_ns = series.cpu_time_ns?;
        let percent = u64::try_from((u128::from(used_ns) * 100).checked_div(slots_ns)?).unwrap_or(u64::MAX);
        // The median, because a few stalls change a mean much.
        let late_ns = series.raw.percentile(50.0)?.max(0).unsigned_abs();
        let spun_ns = talker.offset_ns.saturating_sub(late_ns);
        let own_ns = used_ns.checked_div(series.samples)?.saturating_sub(spun_ns);
        let longest_ns = longest_offset_ns(series.period_ns, own_ns, ORDINARY_PERCENT);
        Some(Self { percent, own_ns, longest_offset_ns: longest_ns / 1_000 * 1_000 })
    }
}

/// Calibration of a wake-up offset.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Number of wake-ups that it is based on.
    pub samples: u64,
    /// 99.999th percentile of their lateness, ns.
    pub p99_999_ns: i64,
    /// Largest lateness, ns.
    pub max_ns: i64,
    /// The offset that covers all of them with a margin, ns.
    pub wanted_ns: u64,
    /// The knee of the curve of these wake-ups with the same margin, ns; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee_ns: Option<u64>,
    /// True if the run uses the knee instead of `wanted_ns`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_knee: bool,
    /// True if the period is long enough for `wanted_ns` of all wake-ups.
    pub fits: bool,
}

/// Figures of a listener.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    /// Identity of the stream.
    pub identity: StreamIdentity,
    /// Method of waiting for frames: `block`, `spin` or `busy-poll:50us`.
    #[serde(alias = "mode")]
    pub wait: String,
    /// Source of the frames: `socket`; or `xdp` (AF_XDP) with `copy` or `zero-copy` and the place of its program,
    /// `native` (in the driver) or `generic` (after the driver). Empty in old records, which means a socket.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Frames of the stream, including duplicates.
    pub frames: u64,
    /// Lost frames according to their numbers.
    pub lost: u64,
    /// Lost frames that this machine had received and dropped because the socket's buffer was full; the others were
    /// lost earlier. Absent if they may include frames of other streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_in_socket: Option<u64>,
    /// Lost frames that AF_XDP dropped for lack of free receive buffers or space in its ring; absent for sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_in_ring: Option<u64>,
    /// Runs of consecutive lost frames.
    pub loss_bursts: u64,
    /// Frames that were received again.
    pub duplicates: u64,
    /// Frames that arrived after a frame that was sent later.
    pub reordered: u64,
    /// Frames so late that duplicate and reordered ones cannot be distinguished.
    pub strays: u64,
    /// Source of the frame numbers: `probe` (64 bits, of punctual's talker) or `avtp` (8 bits, which cannot detect a
    /// loss of 256 frames).
    pub numbers: String,
    /// Longest interval between two frames as they were read, ns; absent with fewer than two frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gap_ns: Option<u64>,
    /// End of that interval, ns after the first frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gap_at_ns: Option<u64>,
    /// Longest interval between two frames by kernel timestamps, ns; absent without timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_kernel_gap_ns: Option<u64>,
    /// Number of intervals longer than two periods, as frames were read.
    pub gaps: u64,
    /// Late packets: intervals longer than one and a half periods, as frames were read; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_packets: Option<u64>,
    /// Frames less than half a period after the frame before, by kernel timestamps if there are any, otherwise as they
    /// were read.
    pub window_violations: u64,
    /// Frames with another VLAN tag than the first frame, or without one.
    pub wrong_tag: u64,
    /// Counts of each stream of the same talker, the followed one first, then by id; empty if there was only one. The
    /// other figures are those of the followed one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<ReceivedStream>,
    /// Frames of other talkers' streams, which were not analysed.
    pub other_streams: u64,
    /// Frames that were read but not analysed, because this program did not keep up.
    pub not_told: u64,
    /// Intervals between two frames as they were read, ns.
    pub interval: Histogram,
    /// Intervals between two frames by kernel timestamps, ns; absent without timestamps, e.g. with AF_XDP.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub kernel_interval: Histogram,
    /// Time from the kernel timestamp to the read, ns; absent without timestamps.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub read_delay: Histogram,
    /// One-way times; absent unless the clocks of both ends are synchronised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWay>,
    /// Delay variation, which needs no common clock; absent if the clocks are synchronised, and for a foreign talker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_variation: Option<DelayVariation>,
    /// Presentation times that are not where those before let expect them; absent if they do not advance regularly or no
    /// frame has one, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jumps: Option<u64>,
    /// The first changes of the media clock, in order; at most 20. Frames are counted from 1, and times from the arrival of the
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media_changes: Vec<CapturedMediaChange>,
    /// Counters as defined by IEEE Std 1722.1.
    pub counters: StreamCounters,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One-way times from the talker to the listener.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OneWay {
    /// Relation between the clocks of the two ends, which limits the accuracy of these times.
    #[serde(default = "ClockRelation::same_host")]
    pub clock: ClockRelation,
    /// From the talker's last reading of its clock, or the frame's launch time, to the kernel timestamp at the
    /// listener, ns; absent without timestamps.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub way: Histogram,
    /// From the same start to the read, ns.
    pub whole: Histogram,
    /// Frames that were read after their presentation time.
    pub late_presentation: u64,
    /// Smallest time left until the presentation time when a frame was read, ns; negative if it had passed; absent
    /// without presentation times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_slack_ns: Option<i64>,
    /// Time from the arrival of a frame, by the kernel's timestamp or else when it was read, to its presentation time, as in a
    /// capture; frames with an uncertain time are left out. Absent without presentation times, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<PresentationMargin>,
}

/// Delay variation of frames between two clocks that are not synchronised: how much longer each took than the fastest
/// one around the same time. A constant delay, and one longer than a window, cannot be seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DelayVariation {
    /// From the talker's last reading of its clock to the kernel timestamp at the listener, ns.
    pub way: Histogram,
    /// From the same start to the read, ns.
    pub whole: Histogram,
    /// How much faster the listener's clock ran than the talker's, parts per billion; it is subtracted from the times.
    pub drift_ppb: i64,
    /// Longest time for which that rate was assumed to be constant, ns.
    pub window_ns: u64,
}

/// Counters of a stream input, as IEEE Std 1722.1 names them. Those that need the talker's clock are absent without it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub struct StreamCounters {
    /// Packets of the stream.
    pub frames_rx: u64,
    /// Packets with an 8-bit number that does not follow that of the packet before.
    pub seq_num_mismatch: u64,
    /// Changes of the bit that signals a restart of the media clock.
    pub media_reset: u64,
    /// Packets with an uncertain timestamp.
    pub timestamp_uncertain: u64,
    /// Packets with a presentation time.
    pub timestamp_valid: u64,
    /// Packets without a presentation time.
    pub timestamp_not_valid: u64,
    /// Packets in an unsupported format.
    pub unsupported_format: u64,
    /// Packets that arrived after their presentation time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_timestamp: Option<u64>,
    /// Packets that arrived earlier than the class's maximum transit time before their presentation time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_timestamp: Option<u64>,
}

impl Stream {
    /// The talker's figures; `None` for a listener.
    #[must_use]
    pub fn talker(&self) -> Option<&Talker> {
        match self {
            Self::Talker(talker) => Some(talker),
            Self::Listener(_) => None,
        }
    }

    /// The listener's figures; `None` for a talker.
    #[must_use]
    pub fn listener(&self) -> Option<&Listener> {
        match self {
            Self::Listener(listener) => Some(listener),
            Self::Talker(_) => None,
        }
    }

    /// The identity of the stream.
    #[must_use]
    pub fn identity(&self) -> &StreamIdentity {
        match self {
            Self::Talker(talker) => &talker.identity,
            Self::Listener(listener) => &listener.identity,
        }
    }
}
