//! Recognises the streams of frames by the bytes of their heads, because decoding and comparing addresses takes most of
//! the time of reading a frame.

use frames::{Content, Head, Pattern, Protocol};

use crate::{
    Packet,
    filter::{Classified, is_whole, stream_protocol},
};

/// Maximum number of known heads; then the oldest one is replaced.
const KNOWN_MAX: usize = 256;

/// Known heads, each with the `stream` that its frames belong to.
#[derive(Default)]
pub(crate) struct Heads<T> {
    known: Vec<Known<T>>,
    /// The start of the frames of each, see [`start`].
    starts: Vec<u32>,
    /// The head of the last frame.
    last: usize,
    /// The head that is replaced next.
    oldest: usize,
}

struct Known<T> {
    interface: u32,
    pattern: Pattern,
    head: Head,
    /// It determines the stream of a frame together with its head, which contains the stream of AVTP frames.
    protocol: Protocol,
    by_source: bool,
    stream: T,
    /// The head of the frame that followed the last one with this head: talkers take turns.
    next: usize,
}

impl<T: Copy> Heads<T> {
    /// The stream, the head and the content of a frame; `None` if its head is not known, or if it is not that of the frame that
    /// followed the last time.
    #[inline(always)]
    pub(crate) fn find(&mut self, packet: &Packet) -> Option<(T, &Head, Content)> {
        let last = self.known.get(self.last)?;
        let index = if self.matches(last.next, packet) {
            last.next
        } else if self.matches(self.last, packet) {
            self.last
        } else {
            return None;
        };
        let known = self.known.get(index)?;
        let content = Content::read(&known.head, packet.data, is_whole(packet));
        // Frames of an AVTP stream have no other protocol: the head contains the subtype.
        if content.avtp.is_none() && stream_protocol(&content, known.by_source) != known.protocol {
            return None;
        }
        if index != self.last {
            self.follow(index);
        }
        self.known.get(index).map(|known| (known.stream, &known.head, content))
    }

    /// True if a frame has this head. Its protocol can be another one.
    #[inline(always)]
    fn matches(&self, index: usize, packet: &Packet) -> bool {
        let Some(known) = self.known.get(index) else { return false };
        known.interface == packet.interface && known.pattern.matches(packet.data)
    }

    /// As [`Self::find`], for a frame with any known head.
    #[inline(never)]
    pub(crate) fn find_any(&mut self, packet: &Packet) -> Option<(T, &Head, Content)> {
        let content = |index: usize| {
            let known = self.known.get(index).filter(|_| self.matches(index, packet))?;
            let content = Content::read(&known.head, packet.data, is_whole(packet));
            (stream_protocol(&content, known.by_source) == known.protocol).then_some((index, content))
        };
        let (index, content) = self.with_start(start(packet.data)?).find_map(content)?;
        self.follow(index);
        self.known.get(index).map(|known| (known.stream, &known.head, content))
    }

    /// The indexes of the known heads whose frames have this start.
    fn with_start(&self, start: u32) -> impl Iterator<Item = usize> {
        // A loop that compares several at once, because it does not end early.
        let is_known = self.starts.iter().fold(false, |is_known, known| is_known | (*known == start));
        let starts = if is_known { &self.starts[..] } else { &[] };
        starts.iter().enumerate().filter(move |(_, known)| **known == start).map(|(index, _)| index)
    }

    /// Learns the head of a frame of this stream.
    pub(crate) fn learn(&mut self, packet: &Packet, classified: &Classified, stream: T) {
        let Classified { by_source, head, content, .. } = classified;
        let Some((pattern, start)) = head.pattern(packet.data).zip(start(packet.data)) else { return };
        let protocol = stream_protocol(content, *by_source);
        let is_same = |&index: &usize| {
            let Known { interface, pattern: known, protocol: of_known, .. } = &self.known[index];
            *interface == packet.interface && *known == pattern && *of_known == protocol
        };
        let same = self.with_start(start).find(is_same);
        let index = same.unwrap_or_else(|| {
            let known = Known {
                interface: packet.interface,
                pattern,
                head: *head,
                protocol,
                by_source: *by_source,
                stream,
                next: 0,
            };
            if self.known.len() < KNOWN_MAX {
                self.known.push(known);
                self.starts.push(start);
                return self.known.len() - 1;
            }
            let index = self.oldest;
            (self.known[index], self.starts[index]) = (known, start);
            self.oldest = (index + 1) % KNOWN_MAX;
            index
        });
        self.follow(index);
    }

    /// Makes this head that of the last frame.
    #[inline]
    fn follow(&mut self, index: usize) {
        if let Some(last) = self.known.get_mut(self.last) {
            last.next = index;
        }
        self.last = index;
    }
}

/// A number for the bytes at the start of a frame that each pattern contains: addresses and EtherType.
#[inline]
fn start(frame: &[u8]) -> Option<u32> {
    const LENGTH: usize = 14;
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = *frame.first_chunk::<LENGTH>()?;
    let word = |bytes| u32::from_le_bytes(bytes);
    let [first, second, third, last] = [word([a, b, c, d]), word([e, f, g, h]), word([i, j, k, l]), word([m, n, 0, 0])];
    Some(first ^ second.rotate_left(7) ^ third.rotate_left(13) ^ last.rotate_left(19))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, streams::Known};

    /// UDP over IPv4 to this port.
    fn datagram(port: u16) -> Vec<u8> {
        let [high, low] = port.to_be_bytes();
        let addresses = [1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0];
        let ip = [0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&addresses[..], &ip, &[0x13, 0x88, high, low, 0, 26, 0, 0], &[0; 18]].concat()
    }

    fn packet(data: &[u8]) -> Packet<'_> {
        let length = u32::try_from(data.len()).unwrap();
        Packet { number: 1, interface: 0, link_type: 1, at_ns: Some(0), data, length }
    }

    #[test]
    fn heads_are_found_in_any_order() {
        let mut heads = Heads::default();
        let replaced = 10;
        let frames: Vec<Vec<u8>> = (0..u16::try_from(KNOWN_MAX + replaced).unwrap()).map(datagram).collect();
        for (stream, frame) in frames.iter().enumerate() {
            let packet = packet(frame);
            assert!(heads.find_any(&packet).is_none());
            let Ok(classified) = Filter::default().classify(&packet, &Known::default()) else {
                panic!("frame {stream}")
            };
            heads.learn(&packet, &classified, stream);
        }
        for (stream, frame) in frames.iter().enumerate().rev().step_by(7) {
            let found = heads.find_any(&packet(frame)).map(|(stream, ..)| stream);
            assert_eq!(found, (stream >= replaced).then_some(stream));
            let next = heads.find(&packet(frame)).map(|(stream, ..)| stream);
            assert_eq!(next, found.filter(|_| stream >= replaced), "{stream}");
        }
        assert!(heads.find_any(&packet(&[1; 13])).is_none());
    }
}
