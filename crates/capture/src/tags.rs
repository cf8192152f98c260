//! Finds talkers that number the frames of several streams together in their redundancy tags.
//!
//! IEEE Std 802.1CB identifies a stream by its destination and VLAN (6.4, null stream identification), so all datagrams to one
//! address can have one sequence, or all frames of a talker. Then the tag shows the copies of a frame, but not the losses of one
//! stream.

use std::collections::{HashMap, VecDeque};

use frames::Mac;

use crate::streams::STREAMS_MAX;

/// So many changes from one stream to another show whether the numbers go on.
const CHANGES_MIN: u64 = 16;
/// Part of the changes at which they do. Two sequences that run side by side go on at each second one.
const TOGETHER: f64 = 0.75;
/// Frames can be lost between two of different streams.
const AHEAD_MAX: u16 = 16;
/// The last frames of a talker. A number that one of them has in another stream is not of one sequence.
const RECENT: usize = 32;
/// Part of the changes at which that may happen, such as after a restart.
const REPEATED: f64 = 0.05;

/// The addresses of frames that a talker can number together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    pub(crate) source: Mac,
    pub(crate) destination: Mac,
    pub(crate) vlan: Option<u16>,
    pub(crate) interface: u32,
}

impl Flow {
    /// The frames of the source to any address.
    fn to_all(self) -> Self {
        Self { destination: Mac::default(), ..self }
    }

    /// True if the frames are numbered together with those of other streams.
    pub(crate) fn is_in(self, shared: &[Self]) -> bool {
        shared.contains(&self) || shared.contains(&self.to_all())
    }
}

/// The tags of all talkers: of their frames to each address, and of all their frames.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    talkers: HashMap<Flow, Talker>,
}

#[derive(Debug, Default)]
struct Talker {
    /// The stream of the last frame, and its number; the stream is `None` if it was not selected.
    last: Option<(Option<usize>, u16)>,
    recent: VecDeque<(Option<usize>, u16)>,
    changes: u64,
    together: u64,
    repeated: u64,
}

impl Tags {
    /// Adds a frame of the selected stream with this index, or of one that was not selected. Copies are no frames.
    pub(crate) fn add(&mut self, flow: Flow, stream: Option<usize>, number: u16) {
        for flow in [flow, flow.to_all()] {
            // Addresses of a hostile file can be different in each frame.
            if self.talkers.len() < STREAMS_MAX || self.talkers.contains_key(&flow) {
                self.talkers.entry(flow).or_default().add(stream, number);
            }
        }
    }

    /// The talkers that number several streams together.
    pub(crate) fn shared(&self) -> Vec<Flow> {
        let is_shared = |talker: &Talker| {
            let changes = talker.changes as f64;
            talker.changes >= CHANGES_MIN
                && talker.together as f64 >= TOGETHER * changes
                && talker.repeated as f64 <= REPEATED * changes
        };
        self.talkers.iter().filter(|(_, talker)| is_shared(talker)).map(|(flow, _)| *flow).collect()
    }
}

impl Talker {
    fn add(&mut self, stream: Option<usize>, number: u16) {
        self.repeated += u64::from(self.recent.iter().any(|&(other, known)| known == number && other != stream));
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((stream, number));
        if let Some((other, before)) = self.last.replace((stream, number))
            && other != stream
        {
            self.changes += 1;
            self.together += u64::from((1..=AHEAD_MAX).contains(&number.wrapping_sub(before)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: Flow = Flow { source: [2; 6], destination: [1; 6], vlan: None, interface: 0 };

    fn shared(frames: impl IntoIterator<Item = (usize, u16)>) -> bool {
        let mut tags = Tags::default();
        frames.into_iter().for_each(|(stream, number)| tags.add(FLOW, Some(stream), number));
        !tags.shared().is_empty()
    }

    #[test]
    fn numbers_that_go_on_from_stream_to_stream_are_shared() {
        assert!(shared((0..100).map(|n| (usize::from(n % 3), n))));
        assert!(shared((0..100).filter(|n| n % 7 != 0).map(|n| (usize::from(n % 5 == 0), n))), "with losses");
        for apart in [0, 1, 3, 1_000] {
            let both = (0..100).flat_map(|n| [(0, n), (1, n + apart)]);
            assert!(!shared(both), "two sequences, {apart} apart");
        }
        assert!(!shared((0..100).map(|n| (0, n))), "one stream");
        let staggered = (0..100).flat_map(|n| (0..8).map(move |stream| (usize::from(stream), n + stream)));
        assert!(!shared(staggered), "eight sequences, each one ahead of the one before");
    }

    #[test]
    fn streams_to_several_addresses_can_have_one_sequence() {
        let to = |address: u8| Flow { destination: [1, 0, 0, 0, 0, address], ..FLOW };
        let is_shared = |frames: &dyn Fn(u16) -> (u8, u16)| {
            let mut tags = Tags::default();
            for n in 0..100 {
                let (address, number) = frames(n);
                tags.add(to(address), Some(address.into()), number);
            }
            [1, 2].map(|address| to(address).is_in(&tags.shared()))
        };
        let of = |n: u16| if n.is_multiple_of(2) { 1 } else { 2 };
        assert_eq!(is_shared(&|n| (of(n), n)), [true; 2]);
        assert_eq!(is_shared(&|n| (of(n), n / 2)), [false; 2], "each has its own");
    }

    #[test]
    fn memory_is_limited_with_any_addresses() {
        let mut tags = Tags::default();
        for n in 0..2 * STREAMS_MAX {
            tags.add(Flow { interface: u32::try_from(n).unwrap(), ..FLOW }, None, 0);
        }
        assert_eq!(tags.talkers.len(), STREAMS_MAX);
    }
}
