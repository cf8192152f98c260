//! The first pass through a file: finds all streams with their period and phase.

use std::collections::{BTreeMap, HashMap};

use frames::{Class, Content, Datagram, Head, Mac, Protocol};
use record::{CapturedStream, PeriodSource, grouped, saturating::Saturating};

use crate::{
    Options, Packet,
    copies::Copies,
    filter::{Classified, Key, Kind, Other, Unmatched, is_whole},
    heads::Heads,
    sequence::Contained,
    tags::{Flow, Tags},
    track::{Track, Tracked},
};

/// Maximum number of tracked streams. Frames of further streams are only counted.
pub const STREAMS_MAX: usize = 4096;
/// Maximum number of EtherTypes and streams counted separately among other frames.
const OTHERS_MAX: usize = 32;
/// A stream with fewer frames is not preferred because of its protocol: Announce messages of PTP, for example.
const FRAMES_FEW: u64 = 64;
/// Number of sources of RTP that are distinguished in one stream of datagrams.
const SOURCES_MAX: usize = 16;
/// A number of RTP is in order if it is at most this far after the expected one: frames can be lost.
const IN_ORDER: u32 = 64;
/// Up to this many streams are searched linearly; more are looked up by hash.
const LINEAR_SEARCH_MAX: usize = 8;

/// All streams of a file.
#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) all: Vec<Stream>,
    index: HashMap<Key, usize>,
    /// Known heads with the index of their stream.
    heads: Heads<usize>,
    known: Known,
    tags: Tags,
    /// Frames of streams beyond [`STREAMS_MAX`].
    pub(crate) left_out: u64,
    others: BTreeMap<Other, u64>,
    others_left_out: u64,
    /// Frames too short for their header.
    short: u64,
    /// Frames of other link types.
    pub(crate) foreign: u64,
}

/// Knowledge about the streams from an earlier pass through the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Datagrams with several sources of RTP: each source is a stream.
    pub(crate) by_source: Vec<Datagram>,
    /// Talkers that number several streams together in their redundancy tags.
    pub(crate) shared_tags: Vec<Flow>,
    /// Source addresses of EtherCAT frames that slaves returned, also those whose working counter is 0.
    pub(crate) slaves: Vec<Mac>,
}

/// A stream.
pub(crate) struct Stream {
    pub(crate) key: Key,
    /// The publisher, if the protocol distinguishes several behind the same addresses.
    publisher: Option<String>,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) first_ns: Option<i64>,
    pub(crate) last_ns: i64,
    /// The number of its last frame in the file.
    pub(crate) last_number: u64,
    /// Priority code point of its first frame, if tagged.
    pub(crate) pcp: Option<u8>,
    /// Length of its longest frame, bytes.
    pub(crate) longest: u32,
    /// Truncated frames.
    pub(crate) truncated: u64,
    /// Frames without a timestamp.
    pub(crate) without_stamp: u64,
    copies: Copies,
    /// True if the talker numbers several streams together in the redundancy tags.
    pub(crate) shares_tag: bool,
    /// The sources in frames that look like RTP.
    sources: Vec<Source>,
    pub(crate) track: Track,
}

/// A source of RTP, as the headers say. Other payloads look like RTP by chance, but their numbers are not in order.
struct Source {
    source: u32,
    /// The number after that of its last frame.
    next: u32,
    /// Frames, without those with the number of the one before: a mirror port repeats each frame.
    frames: u64,
    repeated: u64,
    in_order: u64,
}

impl Source {
    /// True if most of its numbers are in order.
    fn counts(&self) -> bool {
        self.in_order >= 2 && 2 * self.in_order >= self.frames
    }
}

impl Streams {
    /// No streams yet.
    pub(crate) fn new(known: Known) -> Self {
        Self { known, ..Self::default() }
    }

    /// Adds a frame.
    #[inline(always)]
    pub(crate) fn add(&mut self, packet: &Packet, options: &Options) {
        match self.heads.find(packet) {
            Some((index, _, content)) => self.add_to(index, packet, &content),
            None => self.add_by_key(packet, options),
        }
    }

    /// Adds a frame of this stream.
    #[inline(always)]
    fn add_to(&mut self, index: usize, packet: &Packet, content: &Content) {
        let stream = &mut self.all[index];
        let is_counted = stream.add(packet, content);
        if let Some(number) = content.redundant.filter(|_| is_counted) {
            self.tags.add(stream.key.flow(), Some(index), number);
        }
    }

    /// Adds a frame whose head is not known, or is not that of the frame that followed the last time.
    #[inline(never)]
    fn add_by_key(&mut self, packet: &Packet, options: &Options) {
        if let Some((index, _, content)) = self.heads.find_any(packet) {
            return self.add_to(index, packet, &content);
        }
        match options.filter.classify(packet, &self.known) {
            Ok(classified) => match self.find(&classified, packet, options) {
                Some(index) => {
                    self.heads.learn(packet, &classified, index);
                    self.add_to(index, packet, &classified.content);
                }
                None => self.left_out += 1,
            },
            Err(Unmatched::Other(other, tag)) => {
                self.other(other);
                if let Some((flow, number)) = tag {
                    self.tags.add(flow, None, number);
                }
            }
            Err(Unmatched::Short) => self.short += 1,
            Err(Unmatched::Foreign) => self.foreign += 1,
        }
    }

    fn find(&mut self, classified: &Classified, packet: &Packet, options: &Options) -> Option<usize> {
        let Classified { key, head, content, .. } = classified;
        let known = if self.all.len() <= LINEAR_SEARCH_MAX {
            self.all.iter().position(|stream| stream.key == *key)
        } else {
            self.index.get(key).copied()
        };
        known.or_else(|| {
            (self.all.len() < STREAMS_MAX).then(|| {
                self.index.insert(*key, self.all.len());
                let publisher = content.publisher(head, packet.data);
                let shares_tag = key.flow().is_in(&self.known.shared_tags);
                self.all.push(Stream::new(*key, head, publisher, options.period_of(key), shares_tag));
                self.all.len() - 1
            })
        })
    }

    fn other(&mut self, other: Other) {
        if self.others.len() < OTHERS_MAX || self.others.contains_key(&other) {
            *self.others.entry(other).or_default() += 1;
        } else {
            self.others_left_out += 1;
        }
    }

    /// The indexes of the streams, the one with the most frames first; the first one in the file if equal.
    pub(crate) fn by_frames(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(self.all[index].frames));
        order
    }

    /// Knowledge for the next pass.
    pub(crate) fn known(&self) -> Known {
        Known { by_source: self.with_several_sources(), shared_tags: self.tags.shared(), slaves: self.slaves() }
    }

    /// The datagrams that contain several sources of RTP.
    fn with_several_sources(&self) -> Vec<Datagram> {
        let datagram = |stream: &Stream| match stream.key.kind {
            Kind::Udp { datagram, .. } if stream.has_several_sources() => Some(datagram),
            _ => None,
        };
        self.all.iter().filter_map(datagram).collect()
    }

    /// The addresses of slaves whose frames would be two streams by their working counters.
    fn slaves(&self) -> Vec<Mac> {
        let of = |wanted| move |stream: &&Stream| stream.is_processed() == Some(wanted);
        let with_counter: Vec<Mac> = self.all.iter().filter(of(true)).map(|stream| stream.key.source).collect();
        let without = self.all.iter().filter(of(false)).map(|stream| stream.key.source);
        without.filter(|source| with_counter.contains(source) && self.is_of_slave(*source)).collect()
    }

    /// True if this source address shows that a slave returned the EtherCAT frame: the first one sets this bit of the master's
    /// address, unless it is configured otherwise.
    fn is_of_slave(&self, [first, rest @ ..]: Mac) -> bool {
        let is_master = |stream: &Stream| {
            let [sent, of_sent @ ..] = stream.key.source;
            stream.is_processed() == Some(false) && sent == first & !2 && of_sent == rest
        };
        first & 2 != 0 && self.all.iter().any(is_master)
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

    /// The result of tracking each stream.
    pub(crate) fn finish(&mut self) -> Vec<Option<Tracked>> {
        self.all.iter_mut().map(|stream| stream.track.finish()).collect()
    }

    /// The streams for the record, in their order in the file.
    pub(crate) fn to_records(&self, tracked: &[Option<Tracked>]) -> Vec<CapturedStream> {
        let of = |(stream, tracked): (&Stream, &Option<Tracked>)| {
            let mut record = stream.to_record();
            record.lost = tracked.as_ref().and_then(|tracked| tracked.lost);
            if stream.is_processed().is_some_and(|is| is || self.is_of_slave(stream.key.source)) {
                record.protocol.push_str(", returned by a slave");
            }
            record
        };
        self.all.iter().zip(tracked).map(of).collect()
    }

    /// A text about the frames that belong to no stream, e.g. `120 of EtherType 0x0800`.
    pub(crate) fn describe_others(&self) -> String {
        let mut all: Vec<_> = self.others.iter().collect();
        all.sort_by_key(|&(_, &count)| std::cmp::Reverse(count));
        let mut words: Vec<_> =
            all.iter().take(8).map(|(other, count)| format!("{} of {other}", grouped(**count))).collect();
        let more = all.iter().skip(8).fold(self.others_left_out, |sum, (_, count)| sum + **count);
        if more > 0 {
            words.push(format!("{} others", grouped(more)));
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
    fn new(key: Key, head: &Head, publisher: Option<String>, period_ns: Option<u64>, shares_tag: bool) -> Self {
        let pcp = head.vlan.map(|tci| tci.pcp);
        Self {
            key,
            publisher,
            frames: 0,
            bytes: 0,
            first_ns: None,
            last_ns: 0,
            last_number: 0,
            pcp,
            longest: 0,
            truncated: 0,
            without_stamp: 0,
            copies: Copies::default(),
            shares_tag,
            sources: Vec::new(),
            track: Track::new(period_ns, class_of(pcp).map(|(ns, _)| ns)),
        }
    }

    /// Adds a frame. Returns false if it is a copy.
    #[inline(always)]
    fn add(&mut self, packet: &Packet, content: &Content) -> bool {
        if self.copies.contain(content, packet.at_ns) {
            return false;
        }
        self.frames += 1;
        if let (Protocol::Rtp { source }, Some(count)) = (content.protocol, content.count) {
            self.add_source(source, count.value);
        }
        self.bytes += u64::from(packet.length);
        self.longest = self.longest.max(packet.length);
        self.truncated += u64::from(!is_whole(packet));
        let Some(at_ns) = packet.at_ns else {
            self.without_stamp += 1;
            return true;
        };
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        (self.last_number, self.last_ns) = (packet.number, at_ns);
        let number = Contained::of(content, self.shares_tag);
        self.track.add(packet.number, number, at_ns.minus(first_ns), packet.data);
        true
    }

    /// True if a slave returned its EtherCAT frames, by their working counters or the address; `None` for other protocols.
    fn is_processed(&self) -> Option<bool> {
        match self.key.kind {
            Kind::Ethertype { protocol: Protocol::EtherCat { is_processed }, .. } => Some(is_processed),
            _ => None,
        }
    }

    /// Orders streams by their kind, the most interesting last. A few frames are of no interest.
    fn rank(&self) -> u8 {
        match self.key.kind {
            _ if self.frames < FRAMES_FEW => 0,
            kind if kind.is_other_ip() => 1,
            Kind::Avtp { .. } => 4,
            Kind::Ethertype { protocol, .. } | Kind::Udp { protocol, .. } => {
                if protocol == Protocol::Unknown && !self.is_rtp() { 2 } else { 3 }
            }
        }
    }

    fn add_source(&mut self, source: u32, number: u32) {
        let known = self.sources.iter().position(|known| known.source == source);
        let Some(known) = known.and_then(|index| self.sources.get_mut(index)) else {
            if self.sources.len() < SOURCES_MAX {
                self.sources.push(Source { source, next: (number + 1) & 0xffff, frames: 1, repeated: 0, in_order: 0 });
            }
            return;
        };
        if number.wrapping_add(1) & 0xffff == known.next {
            known.repeated += 1;
            return;
        }
        known.frames += 1;
        known.in_order += u64::from(number.wrapping_sub(known.next) & 0xffff <= IN_ORDER);
        known.next = (number + 1) & 0xffff;
    }

    /// True if most frames look like RTP and count. RTCP can be between them.
    fn is_rtp(&self) -> bool {
        let in_order: u64 = self.sources.iter().map(|source| source.in_order).sum();
        let repeated: u64 = self.sources.iter().map(|source| source.repeated).sum();
        2 * in_order >= self.frames - repeated
    }

    fn has_several_sources(&self) -> bool {
        self.is_rtp() && self.sources.iter().filter(|source| source.counts()).count() > 1
    }

    /// The stream for the record.
    pub(crate) fn to_record(&self) -> CapturedStream {
        let duration_ns =
            self.first_ns.map_or(0, |first_ns| self.last_ns.saturating_sub(first_ns)).max(0).cast_unsigned();
        let mut stream = self.key.to_record();
        if self.is_rtp() && stream.protocol.is_empty() {
            "RTP".clone_into(&mut stream.protocol);
        }
        if let Some(publisher) = &self.publisher {
            stream.protocol.push_str(", ");
            stream.protocol.push_str(publisher);
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
