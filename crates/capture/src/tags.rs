//! Finds talkers that number the frames of several streams together in their redundancy tags.
//!
//! IEEE Std 802.1CB identifies a stream by its destination and VLAN (6.4, null stream identification), so all datagrams to one
//! address can have one sequence. Then the tag shows the copies of a frame, but not the losses of one stream.

use std::collections::HashMap;

use frames::Mac;

use crate::streams::STREAMS_MAX;

/// So many changes from one stream to another show whether the numbers go on.
const CHANGES_MIN: u64 = 16;
/// Part of the changes at which they do. Two sequences that run side by side go on at each second one.
const TOGETHER: f64 = 0.75;
/// Frames can be lost between two of different streams.
const AHEAD_MAX: u16 = 16;

/// The addresses of frames that a talker can number together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    pub(crate) source: Mac,
    pub(crate) destination: Mac,
    pub(crate) vlan: Option<u16>,
    pub(crate) interface: u32,
}

/// The tags of all talkers.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    talkers: HashMap<Flow, Talker>,
}

#[derive(Debug, Default)]
struct Talker {
    /// The stream of the last frame, and its number; the stream is `None` if it was not selected.
    last: Option<(Option<usize>, u16)>,
    changes: u64,
    together: u64,
}

impl Tags {
    /// Adds a frame of the selected stream with this index, or of one that was not selected. Copies are no frames.
    pub(crate) fn add(&mut self, flow: Flow, stream: Option<usize>, number: u16) {
        // Addresses of a hostile file can be different in each frame.
        if self.talkers.len() == STREAMS_MAX && !self.talkers.contains_key(&flow) {
            return;
        }
        let talker = self.talkers.entry(flow).or_default();
        if let Some((other, before)) = talker.last.replace((stream, number))
            && other != stream
        {
            talker.changes += 1;
            talker.together += u64::from((1..=AHEAD_MAX).contains(&number.wrapping_sub(before)));
        }
    }

    /// The talkers that number several streams together.
    pub(crate) fn shared(&self) -> Vec<Flow> {
        let is_shared = |talker: &Talker| {
            talker.changes >= CHANGES_MIN && talker.together as f64 >= TOGETHER * talker.changes as f64
        };
        self.talkers.iter().filter(|(_, talker)| is_shared(talker)).map(|(flow, _)| *flow).collect()
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
