//! The first pass through a file: finds all streams with their period and phase.

use std::collections::{BTreeMap, HashMap};

use frames::{Class, Content, Head, Mac, Protocol};
use record::{CapturedStream, PeriodSource, grouped};

use crate::{
    Options, Packet,
    copies::Copies,
    filter::{Classified, Key, Kind, Unmatched, is_whole},
    heads::Heads,
    sequence::Number,
    track::Track,
};

/// Maximum number of tracked streams. Frames of further streams are only counted.
pub const STREAMS_MAX: usize = 4096;
/// Maximum number of EtherTypes counted separately among other frames.
const OTHERS_MAX: usize = 32;
/// A stream with fewer frames is not preferred because of its protocol: Announce messages of PTP, for example.
const FRAMES_FEW: u64 = 64;
/// Up to this many streams are searched linearly; more are looked up by hash.
const LINEAR_SEARCH_MAX: usize = 8;

/// All streams of a file.
#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) all: Vec<Stream>,
    index: HashMap<Key, usize>,
    /// Known heads with the index of their stream.
    heads: Heads<usize>,
    /// Frames of streams beyond [`STREAMS_MAX`].
    pub(crate) left_out: u64,
    others: BTreeMap<u16, u64>,
    others_left_out: u64,
    /// Frames too short for their header.
    short: u64,
    /// Frames of other link types.
    pub(crate) foreign: u64,
}

/// A stream.
pub(crate) struct Stream {
    pub(crate) key: Key,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) first_ns: Option<i64>,
    pub(crate) last_ns: i64,
    /// Priority code point of its first frame, if tagged.
    pub(crate) pcp: Option<u8>,
    /// Length of its longest frame, bytes.
    pub(crate) longest: u32,
    /// Truncated frames.
    pub(crate) truncated: u64,
    /// Frames without a timestamp.
    pub(crate) without_stamp: u64,
    copies: Copies,
    /// Frames that look like RTP and follow the one before.
    rtp: u64,
    /// The number after that of the last frame that looks like RTP.
    rtp_next: u32,
    pub(crate) track: Track,
}

impl Streams {
    /// Adds a frame.
    #[inline]
    pub(crate) fn add(&mut self, packet: &Packet, options: &Options) {
        match self.heads.find(packet) {
            Some((index, head)) => self.all[index].add(packet, head),
            None => self.add_by_key(packet, options),
        }
    }

    /// Adds a frame whose head is not known.
    fn add_by_key(&mut self, packet: &Packet, options: &Options) {
        match options.filter.classify(packet) {
            Ok(Classified { key, head, content }) => match self.find(key, &head, options) {
                Some(index) => {
                    self.heads.learn(packet, &head, &content, index);
                    self.all[index].add(packet, &head);
                }
                None => self.left_out += 1,
            },
            Err(Unmatched::Other(ethertype)) => self.other(ethertype),
            Err(Unmatched::Short) => self.short += 1,
            Err(Unmatched::Foreign) => self.foreign += 1,
        }
    }

    fn find(&mut self, key: Key, head: &Head, options: &Options) -> Option<usize> {
        let known = if self.all.len() <= LINEAR_SEARCH_MAX {
            self.all.iter().position(|stream| stream.key == key)
        } else {
            self.index.get(&key).copied()
        };
        known.or_else(|| {
            (self.all.len() < STREAMS_MAX).then(|| {
                self.index.insert(key, self.all.len());
                self.all.push(Stream::new(key, head, options.period_of(&key)));
                self.all.len() - 1
            })
        })
    }

    fn other(&mut self, ethertype: u16) {
        if self.others.len() < OTHERS_MAX || self.others.contains_key(&ethertype) {
            *self.others.entry(ethertype).or_default() += 1;
        } else {
            self.others_left_out += 1;
        }
    }

    /// The stream to analyse: the AVTP stream with the id `wanted`, or else the busiest one.
    pub(crate) fn to_analyse(&self, wanted: Option<u64>) -> Option<usize> {
        let Some(wanted) = wanted else { return self.busiest() };
        let is_wanted =
            |stream: &Stream| matches!(stream.key.kind, Kind::Avtp { stream_id, .. } if stream_id == wanted);
        self.all.iter().position(is_wanted)
    }

    /// The index of the stream with the most frames, the first one if equal. AVTP streams come before others, and other
    /// frames with numbers before those without.
    fn busiest(&self) -> Option<usize> {
        let key = |&index: &usize| (self.all[index].rank(), self.all[index].frames, std::cmp::Reverse(index));
        (0..self.all.len()).max_by_key(key)
    }

    /// The streams for the record, in their order in the file.
    pub(crate) fn to_records(&self) -> Vec<CapturedStream> {
        let ethercat =
            |stream: &&Stream| matches!(stream.key.kind, Kind::Ethertype { protocol: Protocol::EtherCat, .. });
        let sources: Vec<Mac> = self.all.iter().filter(ethercat).map(|stream| stream.key.source).collect();
        // The first slave sets this bit of the source address.
        let is_returned = |[first, rest @ ..]: Mac| {
            first & 2 != 0 && sources.iter().any(|[sent, of_sent @ ..]| *sent == first & !2 && *of_sent == rest)
        };
        let of = |stream: &Stream| {
            let mut record = stream.to_record();
            if ethercat(&stream) && is_returned(stream.key.source) {
                record.protocol.push_str(", returned by a slave");
            }
            record
        };
        self.all.iter().map(of).collect()
    }

    /// A text about the frames that belong to no stream, e.g. `120 of EtherType 0x0800`.
    pub(crate) fn describe_others(&self) -> String {
        let mut all: Vec<_> = self.others.iter().collect();
        all.sort_by_key(|&(_, &count)| std::cmp::Reverse(count));
        let mut words: Vec<_> = all
            .iter()
            .take(8)
            .map(|(ethertype, count)| format!("{} of EtherType {ethertype:#06x}", grouped(**count)))
            .collect();
        let more = all.iter().skip(8).fold(self.others_left_out, |sum, (_, count)| sum + **count);
        if more > 0 {
            words.push(format!("{} of other EtherTypes", grouped(more)));
        }
        if self.short > 0 {
            words.push(format!("{} too short for a header", grouped(self.short)));
        }
        if self.foreign > 0 {
            words.push(format!("{} of other link types", grouped(self.foreign)));
        }
        words.join(", ")
    }
}

/// The interval of the stream reservation class of a priority, ns.
pub(crate) fn class_of(pcp: Option<u8>) -> Option<(u64, PeriodSource)> {
    match pcp {
        Some(3) => Some((Class::A.interval_ns(), PeriodSource::ClassA)),
        Some(2) => Some((Class::B.interval_ns(), PeriodSource::ClassB)),
        _ => None,
    }
}

impl Stream {
    fn new(key: Key, head: &Head, period_ns: Option<u64>) -> Self {
        let pcp = head.vlan.map(|tci| tci.pcp);
        Self {
            key,
            frames: 0,
            bytes: 0,
            first_ns: None,
            last_ns: 0,
            pcp,
            longest: 0,
            truncated: 0,
            without_stamp: 0,
            copies: Copies::default(),
            rtp: 0,
            rtp_next: 0,
            track: Track::new(period_ns, class_of(pcp).map(|(ns, _)| ns)),
        }
    }

    #[inline]
    fn add(&mut self, packet: &Packet, head: &Head) {
        let content = Content::read(head, packet.data, is_whole(packet));
        if content.redundant.is_some_and(|number| self.copies.is_copy(number)) {
            return;
        }
        self.frames += 1;
        if let (Protocol::Rtp, Some(count)) = (content.protocol, content.count) {
            self.rtp += u64::from(count.value == self.rtp_next);
            self.rtp_next = (count.value + 1) & 0xffff;
        }
        self.bytes += u64::from(packet.length);
        self.longest = self.longest.max(packet.length);
        self.truncated += u64::from(!is_whole(packet));
        let Some(at_ns) = packet.at_ns else {
            self.without_stamp += 1;
            return;
        };
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        self.last_ns = at_ns;
        self.track.add(Number::of(&content), at_ns.saturating_sub(first_ns));
    }

    /// Orders streams by their kind, the most interesting last. A few frames are of no interest.
    fn rank(&self) -> u8 {
        match self.key.kind {
            _ if self.frames < FRAMES_FEW => 0,
            Kind::Avtp { .. } => 2,
            Kind::Ethertype { protocol, .. } | Kind::Udp { protocol, .. } => {
                u8::from(!matches!(protocol, Protocol::Unknown | Protocol::Goose { .. }) || self.is_rtp())
            }
        }
    }

    /// True if most frames look like RTP and count. Other payloads look like it by chance; RTCP can be between them.
    fn is_rtp(&self) -> bool {
        2 * self.rtp >= self.frames
    }

    /// The stream for the record.
    pub(crate) fn to_record(&self) -> CapturedStream {
        let duration_ns =
            self.first_ns.map_or(0, |first_ns| self.last_ns.saturating_sub(first_ns)).max(0).cast_unsigned();
        let mut stream = self.key.to_record();
        if self.is_rtp() {
            "RTP".clone_into(&mut stream.protocol);
        }
        CapturedStream {
            pcp: self.pcp,
            frames: self.frames,
            bytes: self.bytes,
            duration_ns,
            copies: self.copies.count,
            ..stream
        }
    }
}
