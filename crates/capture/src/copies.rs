//! Recognises copies of frames by their redundancy tags, as the receiver of a redundant stream does (IEEE Std 802.1CB,
//! 7.4.3, vector recovery). Frames that the capture contains twice, such as those of two taps, have the same content.

use frames::Content;

/// A frame of the capture is compared with so many before it.
const COMPARED: usize = 16;

/// The last frames.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// Length and content of each.
    all: [Option<(u32, Content)>; COMPARED],
    oldest: usize,
}

impl Recent {
    /// True if one of the last frames has this length and content.
    #[cold]
    pub(crate) fn contains(&self, length: u32, content: &Content) -> bool {
        self.all.iter().flatten().any(|recent| *recent == (length, *content))
    }

    #[inline]
    pub(crate) fn add(&mut self, length: u32, content: &Content) {
        self.all[self.oldest] = Some((length, *content));
        self.oldest = (self.oldest + 1) % COMPARED;
    }
}

/// Frames this far behind the newest one are remembered.
const HISTORY: u16 = 256;

/// The frames that were seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copies {
    newest: Option<u16>,
    /// Bit `number % HISTORY`: that frame was seen.
    seen: [u64; 4],
    pub(crate) count: u64,
}

impl Copies {
    /// True if a frame with this number was seen before.
    #[inline]
    pub(crate) fn is_copy(&mut self, number: u16) -> bool {
        let is_copy = self.passes(number);
        self.count += u64::from(is_copy);
        is_copy
    }

    fn passes(&mut self, number: u16) -> bool {
        let ahead = self.newest.map_or(HISTORY.cast_signed(), |newest| number.wrapping_sub(newest).cast_signed());
        if ahead > 0 {
            // The numbers between them were not seen yet.
            (0..ahead.min(HISTORY.cast_signed()).cast_unsigned()).for_each(|n| self.set(number.wrapping_sub(n), false));
        } else if ahead <= -HISTORY.cast_signed() {
            // The talker started its numbers again.
            self.seen = [0; 4];
        }
        if ahead > 0 || ahead <= -HISTORY.cast_signed() {
            self.newest = Some(number);
        }
        let (word, bit) = position(number);
        let was_seen = self.seen[word] >> bit & 1 == 1;
        self.set(number, true);
        was_seen
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
        numbers.iter().map(|&number| copies.is_copy(number)).collect()
    }

    #[test]
    fn a_lost_frame_may_arrive_by_the_other_way() {
        assert_eq!(copies(&[1, 1, 3, 2, 2, 3]), [false, true, false, false, true, true]);
        assert_eq!(copies(&[65_535, 0, 65_535, 0]), [false, false, true, true]);
        assert_eq!(copies(&[40_000, 0, 0, 1]), [false, false, true, false], "the talker restarted");
        assert_eq!(copies(&[0, 256, 0, 1]), [false; 4], "too old to be known, so a restart");
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
