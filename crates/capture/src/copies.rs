//! Recognises copies of frames by their redundancy tags, as the receiver of a redundant stream does (IEEE Std 802.1CB,
//! 7.4.3, vector recovery), by the trailers of PRP, and by the tags of HSR (both IEC 62439-3). Frames that the capture
//! contains twice, such as those of two taps, have the same content.

use frames::Content;

/// A frame of the capture is compared with so many before it.
const COMPARED: usize = 16;
/// So many bytes are compared at the start of the content, and at its end.
const COMPARED_BYTES: usize = 32;

/// The last frames.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    all: [Ends; COMPARED],
    oldest: usize,
}

/// The parts of a frame that are compared. Frames with the same number differ in them, unless one is a copy: by their time, or by
/// their data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ends {
    length: u32,
    first: [u8; COMPARED_BYTES],
    last: [u8; COMPARED_BYTES],
}

impl Ends {
    /// The ends of the content of a frame with this length.
    #[inline(always)]
    pub(crate) fn of(length: u32, content: &[u8]) -> Self {
        let content = without_lan(content);
        match (content.first_chunk(), content.last_chunk()) {
            (Some(&first), Some(&last)) => Self { length, first, last },
            _ => Self::of_short(length, content),
        }
    }

    #[cold]
    fn of_short(length: u32, content: &[u8]) -> Self {
        let mut first = [0; COMPARED_BYTES];
        first.iter_mut().zip(content).for_each(|(byte, content)| *byte = *content);
        Self { length, first, last: [0; COMPARED_BYTES] }
    }
}

/// The content without the end of PRP's trailer, in which the copies of both LANs differ: the LAN (4 bits), the size (12 bits)
/// and the suffix 0x88FB (IEC 62439-3, redundancy control trailer).
#[inline(always)]
fn without_lan(content: &[u8]) -> &[u8] {
    match content {
        [rest @ .., _, _, 0x88, 0xfb] => rest,
        _ => content,
    }
}

impl Recent {
    /// True if one of the last frames has these ends.
    #[cold]
    pub(crate) fn contains(&self, ends: &Ends) -> bool {
        self.all.contains(ends)
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, ends: Ends) {
        self.all[self.oldest] = ends;
        self.oldest = (self.oldest + 1) % COMPARED;
    }
}

/// Frames this far behind the newest one are remembered: one second of class A. The ways through a network can differ by as
/// much.
const HISTORY: u16 = 8192;
/// Frames this far behind come by a late way, or the talker started its numbers again.
const FAR_BEHIND: i16 = 256;
/// So many frames far behind, without one that is ahead of them all, show that the talker started again.
const RESTARTED: usize = 16;

/// So many numbers of a node are remembered for each stream. The ways of both networks, or around a ring, differ by less.
const OF_NODE: u16 = 1024;
/// A node forgets the number of a frame after this time, ns (IEC 62439-3, `EntryForgetTime`).
const FORGOTTEN_NS: i64 = 400_000_000;

/// The frames that were seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copies {
    newest: Option<u16>,
    /// Bit `number % HISTORY`: that frame was seen. Empty before the first frame.
    seen: Vec<u64>,
    /// The newest number that was far behind.
    behind: Option<u16>,
    /// Number of frames far behind that may be those of a talker that started again.
    again: usize,
    /// Numbers of the node, at `number % OF_NODE`, and when each was seen, ns. Empty before the first one.
    of_node: Vec<(u16, i64)>,
    pub(crate) count: u64,
}

impl Copies {
    /// True if the frame with this content, captured at this time, is a copy of one before.
    #[inline(always)]
    pub(crate) fn contain(&mut self, content: &Content, at_ns: Option<i64>) -> bool {
        let is_copy = match (content.redundant, content.of_node) {
            (Some(number), _) => self.has_tag(number),
            (None, Some(number)) => self.has_of_node(number, at_ns.unwrap_or(0)),
            (None, None) => return false,
        };
        self.count += u64::from(is_copy);
        is_copy
    }

    /// True if a frame of the node with this number was seen not long ago.
    fn has_of_node(&mut self, number: u16, at_ns: i64) -> bool {
        if self.of_node.is_empty() {
            self.of_node = vec![(0, i64::MIN); usize::from(OF_NODE)];
        }
        let Some(seen) = self.of_node.get_mut(usize::from(number % OF_NODE)) else { return false };
        let (other, seen_ns) = std::mem::replace(seen, (number, at_ns));
        other == number && at_ns.saturating_sub(seen_ns).saturating_abs() <= FORGOTTEN_NS
    }

    /// True if a tag with this number was seen before.
    fn has_tag(&mut self, number: u16) -> bool {
        let Some(newest) = self.newest else {
            self.begin(number);
            return false;
        };
        let ahead = number.wrapping_sub(newest).cast_signed();
        if ahead > 0 {
            // The numbers between them were not seen yet.
            (0..ahead.cast_unsigned().min(HISTORY)).for_each(|n| self.set(number.wrapping_sub(n), false));
            (self.newest, self.again) = (Some(number), 0);
        } else if ahead <= -FAR_BEHIND && self.starts_again(number, ahead) {
            self.begin(number);
            // These came before it, and come again by another way.
            (1..FAR_BEHIND.unsigned_abs()).for_each(|n| self.set(number.wrapping_sub(n), true));
            return false;
        }
        let (word, bit) = position(number);
        let was_seen = self.seen[word] >> bit & 1 == 1;
        self.set(number, true);
        was_seen
    }

    /// True if a frame that is far behind shows that the talker started its numbers again. A late way continues its own numbers,
    /// or frames of another way come between its frames.
    fn starts_again(&mut self, number: u16, ahead: i16) -> bool {
        let after_last = self.behind.map(|last| number.wrapping_sub(last).cast_signed());
        let is_copy = after_last.is_some_and(|ahead| (1 - FAR_BEHIND..=0).contains(&ahead));
        let continues = after_last.is_some_and(|ahead| (1..FAR_BEHIND).contains(&ahead));
        if !is_copy {
            self.behind = Some(number);
            self.again += usize::from(!continues || self.again > 0);
        }
        ahead <= -HISTORY.cast_signed() || self.again == RESTARTED
    }

    /// Begins with this number.
    fn begin(&mut self, number: u16) {
        self.seen = vec![0; usize::from(HISTORY / 64)];
        (self.newest, self.behind, self.again) = (Some(number), None, 0);
        self.set(number, true);
    }

    fn set(&mut self, number: u16, seen: bool) {
        let (word, bit) = position(number);
        self.seen[word] = self.seen[word] & !(1 << bit) | u64::from(seen) << bit;
    }
}

fn position(number: u16) -> (usize, u16) {
    let at = number % HISTORY;
    (usize::from(at / 64), at % 64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn copies(numbers: &[u16]) -> Vec<bool> {
        let mut copies = Copies::default();
        numbers.iter().map(|&number| copies.has_tag(number)).collect()
    }

    #[test]
    fn frames_with_equal_ends_are_copies() {
        let contents = [&[1; 70][..], &[[1; 69].as_slice(), &[2]].concat(), &[1; 20], &[1; 19], &[]];
        let all = contents.map(|content| Ends::of(90, content));
        for (index, ends) in all.iter().enumerate() {
            let mut recent = Recent::default();
            recent.add(*ends);
            let found = all.each_ref().map(|other| recent.contains(other));
            assert_eq!(found, [0, 1, 2, 3, 4].map(|other| other == index));
        }
        let mut recent = Recent::default();
        recent.add(Ends::of(90, &[1; 70]));
        assert!(!recent.contains(&Ends::of(91, &[1; 70])), "another length");
        (0..COMPARED).for_each(|_| recent.add(Ends::of(90, &[3; 70])));
        assert!(!recent.contains(&all[0]), "too long ago");
    }

    #[test]
    fn a_lost_frame_may_arrive_by_the_other_way() {
        assert_eq!(copies(&[1, 1, 3, 2, 2, 3]), [false, true, false, false, true, true]);
        assert_eq!(copies(&[65_535, 0, 65_535, 0]), [false, false, true, true]);
        assert_eq!(copies(&[40_000, 0, 0, 1]), [false, false, true, false], "the talker restarted");
        assert_eq!(copies(&[9_000, 700, 701]), [false; 3], "too old to be known, so a restart");
    }

    #[test]
    fn a_late_way_is_no_restart() {
        for behind in [255, 256, 300, 5_000] {
            // The first way ends at 20,000.
            let both: Vec<u16> = (0..20_000 + behind)
                .flat_map(|n: u16| [Some(n).filter(|&n| n < 20_000), n.checked_sub(behind)].into_iter().flatten())
                .collect();
            assert_eq!(copies(&both).into_iter().filter(|is_copy| !is_copy).count(), 20_000, "{behind}");
        }
        let restarted: Vec<u16> = (10_000..15_000).chain(12_000..17_000).collect();
        let passed = copies(&restarted).into_iter().filter(|is_copy| !is_copy).count();
        assert_eq!(passed, 10_000 - (RESTARTED - 1), "a restart, found at its 16th frame");
    }

    proptest! {
        #[test]
        fn each_number_passes_once(first in any::<u16>(), delay in 0u16..250, count in 300u16..2000) {
            let number = |n: u16| first.wrapping_add(n);
            // The copies come by a longer way.
            let both: Vec<u16> = (0..count + delay)
                .flat_map(|n| [Some(n).filter(|&n| n < count), n.checked_sub(delay)].into_iter().flatten().map(number))
                .collect();
            let passed = copies(&both).into_iter().filter(|is_copy| !is_copy).count();
            prop_assert_eq!(passed, usize::from(count));
        }
    }
}
