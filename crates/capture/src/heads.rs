//! Recognises the streams of frames by the bytes of their heads, because decoding and comparing addresses takes most of
//! the time of reading a frame.

use frames::{Content, Head, Pattern, Protocol};

use crate::{Packet, filter::is_whole};

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
    identity: Identity,
    stream: T,
    /// The head of the frame that followed the last one with this head: talkers take turns.
    next: usize,
}

/// The part of the content that determines the stream of a frame together with its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    avtp: Option<(u64, u8)>,
    protocol: Protocol,
}

impl Identity {
    #[inline]
    fn of(content: &Content) -> Self {
        Self {
            avtp: content.avtp.map(|avtp| (avtp.stream_id, avtp.subtype)),
            // Other payloads look like RTP by chance.
            protocol: if content.protocol == Protocol::Rtp { Protocol::Unknown } else { content.protocol },
        }
    }
}

impl<T: Copy> Heads<T> {
    /// The stream of a frame and its content; `None` if its head is not known, or if it is not that of the frame that
    /// followed the last time.
    #[inline(always)]
    pub(crate) fn find(&mut self, packet: &Packet) -> Option<(T, Content)> {
        let expected = self.known.get(self.last)?.next;
        self.find_at(expected, packet).or_else(|| self.find_again(packet))
    }

    /// The same, if the head is that of the last frame.
    fn find_again(&mut self, packet: &Packet) -> Option<(T, Content)> {
        self.find_at(self.last, packet)
    }

    #[inline(always)]
    fn find_at(&mut self, index: usize, packet: &Packet) -> Option<(T, Content)> {
        let known = self.known.get(index)?;
        if known.interface != packet.interface || !known.pattern.matches(packet.data) {
            return None;
        }
        let content = Content::read(&known.head, packet.data, is_whole(packet));
        let stream = known.stream;
        (Identity::of(&content) == known.identity).then(|| {
            if index != self.last {
                self.follow(index);
            }
            (stream, content)
        })
    }

    /// Learns the head of a frame of this stream.
    pub(crate) fn learn(&mut self, packet: &Packet, head: &Head, content: &Content, stream: T) {
        let Some(pattern) = head.pattern(packet.data) else { return };
        let identity = Identity::of(content);
        let is_same = |known: &Known<T>| {
            known.interface == packet.interface && known.pattern == pattern && known.identity == identity
        };
        let index = self.known.iter().position(is_same).unwrap_or_else(|| {
            let known = Known { interface: packet.interface, pattern, head: *head, identity, stream, next: 0 };
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
