//! Recognises the streams of frames by the bytes of their heads, because decoding and comparing addresses takes most of
//! the time of reading a frame.

use frames::{Content, Head, Pattern, Protocol};

use crate::{
    Packet,
    filter::{Classified, is_whole, stream_protocol},
};

/// Maximum number of known heads; then the oldest one is replaced.
const KNOWN_MAX: usize = 64;

/// Known heads, each with the `stream` that its frames belong to.
#[derive(Default)]
pub(crate) struct Heads<T> {
    known: Vec<Known<T>>,
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
        if stream_protocol(&content, known.by_source) != known.protocol {
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

    /// Learns the head of a frame of this stream.
    pub(crate) fn learn(&mut self, packet: &Packet, classified: &Classified, stream: T) {
        let Classified { by_source, head, content, .. } = classified;
        let Some(pattern) = head.pattern(packet.data) else { return };
        let protocol = stream_protocol(content, *by_source);
        let is_same = |known: &Known<T>| {
            known.interface == packet.interface && known.pattern == pattern && known.protocol == protocol
        };
        let index = self.known.iter().position(is_same).unwrap_or_else(|| {
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
                return self.known.len() - 1;
            }
            let index = self.oldest;
            self.known[index] = known;
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
