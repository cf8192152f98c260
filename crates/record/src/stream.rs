//! A stream of frames: what its talker sent, what its listener got.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClockRelation, Extra, Histogram};

/// The rest of a series of the stream probe. A talker's `raw` is how late it woke, before it waited for its slot; a
/// listener's is how much later than a period each frame was read after the one before, negative for sooner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "snake_case")]
pub enum Stream {
    /// Of the thread that sent.
    Talker(Box<Talker>),
    /// Of the thread that received.
    Listener(Box<Listener>),
}

/// Which stream it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StreamIdentity {
    /// Interface it was sent or received on.
    pub interface: String,
    /// Its id, 16 hexadecimal digits: the talker's address and a number. Empty while none was found.
    pub stream_id: String,
    /// From whom, `02:00:00:00:00:01`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// To whom.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub destination: String,
    /// How samples are packed: `aaf`, `61883-6`; another subtype of AVTP as `0x05`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format: String,
    /// Priority of its VLAN tag; absent where frames had no tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcp: Option<u8>,
    /// VLAN of its tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vid: Option<u16>,
    /// Length of a frame with its VLAN tag, without its check sequence, bytes.
    #[serde(default)]
    pub frame_bytes: u64,
}

/// What a talker did. Slots follow each other by the period; each has at most one frame.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Talker {
    /// Which stream.
    pub identity: StreamIdentity,
    /// How frames went out: `send`; `bypass` past the queueing disciplines; `tx-ring` from memory shared with the kernel;
    /// `txtime` with launch times, up to which the queueing discipline keeps them; `xdp` and `xdp-zerocopy` by AF_XDP.
    pub mode: String,
    /// With AF_XDP, whether the driver took frames out of our memory without a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_copy: Option<bool>,
    /// Whether its listener was ours too, at the other end of a virtual cable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_listener: bool,
    /// How long before its slot the talker woke, to spin until it, or to hand its frame over with a launch time, ns.
    pub offset_ns: u64,
    /// A frame sent later than its slot by more than this is late, ns: 1 % of the period, at least 1 us.
    pub tolerance_ns: u64,
    /// Frames sent.
    pub frames: u64,
    /// Late packets.
    pub late: u64,
    /// Slots in which no frame was sent, because the talker was not there in time.
    pub missed_slots: u64,
    /// Frames that the kernel did not take, as its queue was full.
    pub refused: u64,
    /// Largest send lateness, ns; absent without frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delta_ns: Option<i64>,
    /// When it was seen, ns after the first slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delta_at_ns: Option<u64>,
    /// Largest |interval - period| between two frames that follow each other, ns.
    pub max_interval_error_ns: u64,
    /// Frames sent less than half a period after the one before.
    pub window_violations: u64,
    /// Send lateness: how long after its slot began each frame was handed to the kernel; negative for before.
    pub send: Histogram,
    /// What the queueing discipline made of launch times; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Late packets for other wake-up offsets, from the same wake-ups: offset ns, count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(u64, u64)>,
    /// How the offset was found; absent when it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Launch times: frames that the queueing discipline ETF keeps until their slots.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Launch {
    /// How long before its slot a frame goes to the driver, ns.
    pub delta_ns: u64,
    /// Whether the NIC keeps it from then until its slot; otherwise it leaves then.
    pub offloaded: bool,
    /// Frames dropped because their slot had begun when they were handed over. They are among the refused.
    pub invalid: u64,
    /// Frames dropped because their slot began while they waited. They are among the frames sent.
    pub missed: u64,
}

/// Wake-ups that a wake-up offset was taken from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// How many there were.
    pub samples: u64,
    /// Lateness that one in 100 000 exceeds, ns.
    pub p99_999_ns: i64,
    /// Largest lateness, ns.
    pub max_ns: i64,
    /// The offset that covers all of them with its margin, ns.
    pub wanted_ns: u64,
    /// Whether the period had room for it.
    pub fits: bool,
}

/// What a listener got.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    /// Which stream.
    pub identity: StreamIdentity,
    /// How it waited: `block`, `spin` or `busy-poll:50us`.
    #[serde(alias = "mode")]
    pub wait: String,
    /// What it took frames from: `socket`; with AF_XDP `xdp`, whether frames were copied (`copy`, `zero-copy`) and where its
    /// program ran (`native` in the driver, `generic` after it). Empty in old records, for a socket.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Frames of the stream, duplicates among them.
    pub frames: u64,
    /// Frames that never came, by their numbers.
    pub lost: u64,
    /// Of those, the ones that this machine had, and dropped because the socket's buffer was full; the others were lost before
    /// that. Absent where frames of other streams may have been among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_in_socket: Option<u64>,
    /// The same where it received with AF_XDP: dropped because there was no memory to receive into, or no room in the ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_in_ring: Option<u64>,
    /// Stretches of frames lost one after the other.
    pub loss_bursts: u64,
    /// Frames that came again.
    pub duplicates: u64,
    /// Frames that came after one that was sent later.
    pub reordered: u64,
    /// Frames that came so late that duplicates cannot be told from reordered ones.
    pub strays: u64,
    /// What numbers the frames: `probe`, 64 bits of our talker's, or `avtp`, 8 bits that cannot tell the loss of 256.
    pub numbers: String,
    /// Longest time between two frames as they were read, ns; absent with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gap_ns: Option<u64>,
    /// When it ended, ns after the first frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gap_at_ns: Option<u64>,
    /// Longest time between two frames as the kernel stamped them, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_kernel_gap_ns: Option<u64>,
    /// Gaps longer than two periods, as frames were read.
    pub gaps: u64,
    /// Frames that came less than half a period after the one before, by the kernel's stamps; without them, as they were read.
    pub window_violations: u64,
    /// Frames with another VLAN tag than the first, or with none.
    pub wrong_tag: u64,
    /// Frames of other streams, not looked at further.
    pub other_streams: u64,
    /// Frames that were read, but not counted because this program did not keep up.
    pub not_told: u64,
    /// Time between two frames as they were read.
    pub interval: Histogram,
    /// Time between two frames as the kernel stamped them; absent without stamps, as with AF_XDP.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub kernel_interval: Histogram,
    /// From the kernel's stamp to the read; absent without stamps.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub read_delay: Histogram,
    /// What needs clocks that are tied to each other; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWay>,
    /// What can be told without; absent where they are tied, and for another talker than ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_variation: Option<DelayVariation>,
    /// Counters in the words of IEEE Std 1722.1.
    pub counters: StreamCounters,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Times from one end to the other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OneWay {
    /// How the clocks of the two ends stand to each other: what these times are worth.
    #[serde(default = "ClockRelation::same_host")]
    pub clock: ClockRelation,
    /// From the talker's last look at the clock, or the frame's launch time, to the kernel's stamp at the listener; absent
    /// without stamps.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub way: Histogram,
    /// From there to the read.
    pub whole: Histogram,
    /// Frames read after their presentation time.
    pub late_presentation: u64,
    /// Least time left to the presentation time when a frame was read, ns; negative when it had passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_slack_ns: Option<i64>,
}

/// How much longer frames were under way than the quickest of their time, between two clocks that nothing relates. A time
/// that all of them were under way, or longer than a window, cannot be seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DelayVariation {
    /// From the talker's last look at its clock to the kernel's stamp at the listener.
    pub way: Histogram,
    /// From there to the read.
    pub whole: Histogram,
    /// How much faster the listener's clock ran than the talker's, parts per billion; it is taken out of the times.
    pub drift_ppb: i64,
    /// The longest time over which that was taken to be constant, ns.
    pub window_ns: u64,
}

/// Counters of a stream's input, as IEEE Std 1722.1 names them; what needs the talker's clock is absent without it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub struct StreamCounters {
    /// Packets of the stream.
    pub frames_rx: u64,
    /// Packets whose 8-bit number did not follow that of the one before.
    pub seq_num_mismatch: u64,
    /// Changes of the bit that says that the media clock began anew.
    pub media_reset: u64,
    /// Packets whose talker's clock was uncertain.
    pub timestamp_uncertain: u64,
    /// Packets with a presentation time.
    pub timestamp_valid: u64,
    /// Packets without one.
    pub timestamp_not_valid: u64,
    /// Packets in a format that is not looked into.
    pub unsupported_format: u64,
    /// Packets that came after their presentation time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_timestamp: Option<u64>,
    /// Packets that came more than the class's transit time before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_timestamp: Option<u64>,
}

impl Stream {
    /// The talker's side, where it is that.
    #[must_use]
    pub fn talker(&self) -> Option<&Talker> {
        match self {
            Self::Talker(talker) => Some(talker),
            Self::Listener(_) => None,
        }
    }

    /// The listener's side, where it is that.
    #[must_use]
    pub fn listener(&self) -> Option<&Listener> {
        match self {
            Self::Listener(listener) => Some(listener),
            Self::Talker(_) => None,
        }
    }

    /// Which stream it is.
    #[must_use]
    pub fn identity(&self) -> &StreamIdentity {
        match self {
            Self::Talker(talker) => &talker.identity,
            Self::Listener(listener) => &listener.identity,
        }
    }
}
