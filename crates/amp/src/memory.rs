//! The memory of a network: every signal and its past lie in one slice, allotted when it is made.

use crate::simd::Rows;

/// Most frames that are computed at a time. A multiple of the lanes of every vector.
pub const BLOCK: usize = 64;

/// Signals allotted so far.
#[derive(Debug, Default)]
pub struct Layout {
    len: usize,
}

impl Layout {
    /// A signal of which only the current frames are needed.
    pub fn rows(&mut self, count: usize) -> Rows {
        self.take(count, BLOCK)
    }

    /// A signal of which the last `history` frames are needed, too.
    pub fn past(&mut self, count: usize, history: usize) -> Past {
        let size = if history == 0 { 0 } else { (history + BLOCK).next_multiple_of(BLOCK / 4) };
        Past { rows: self.take(count, size + BLOCK), size, position: 0 }
    }

    /// Number of values allotted.
    pub fn len(&self) -> usize {
        self.len
    }

    fn take(&mut self, count: usize, pitch: usize) -> Rows {
        let rows = Rows { at: self.len, pitch: pitch as isize, count };
        self.len += count * pitch;
        rows
    }
}

/// A signal with its past: a ring, whose first block stands behind its end once more, so that every block is in one piece.
#[derive(Debug, Clone)]
pub struct Past {
    rows: Rows,
    /// Frames in the ring; 0 where no past is kept.
    size: usize,
    position: usize,
}

impl Past {
    /// Where the current frames are to be written.
    pub fn now(&self) -> Rows {
        self.before(0)
    }

    /// The frames so far ago; at most the history that was asked for.
    pub fn before(&self, delay: usize) -> Rows {
        let position = if delay <= self.position { self.position - delay } else { self.position + self.size - delay };
        Rows { at: self.rows.at + position, ..self.rows }
    }

    /// The current frames of its first row and those up to `count - 1` frames ago, one row each, the oldest first: in two
    /// pieces, as the ring lies.
    pub fn one_frame_apart(&self, count: usize) -> [Rows; 2] {
        let young = count.min(self.position + 1);
        let rows = |oldest: usize, count: usize| Rows { at: self.before(oldest).at, pitch: 1, count };
        match count - young {
            0 => [rows(0, 0), rows(young - 1, young)],
            old => [rows(count - 1, old), rows(young - 1, young)],
        }
    }

    /// Back to where it began; the memory is another's to restore.
    pub fn rewind(&mut self) {
        self.position = 0;
    }

    /// Completes what was written: to be called before the frames are read at a delay.
    pub fn complete(&self, memory: &mut [f32], frames: usize) {
        if self.size == 0 {
            return;
        }
        let (begin, end) = (self.position, self.position + frames);
        for row in 0..self.rows.count {
            let at = self.rows.start(row);
            if end > self.size {
                memory.copy_within(at + self.size..at + end, at);
            }
            if begin < BLOCK {
                memory.copy_within(at + begin..at + end.min(BLOCK), at + self.size + begin);
            }
        }
    }

    /// Makes `frames` that were completed past.
    pub fn advance(&mut self, frames: usize) {
        if self.size > 0 {
            self.position = (self.position + frames) % self.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Blocks of any size against the whole signal in one piece.
        #[test]
        fn every_delay_is_in_one_piece(history in 0..300usize, blocks in prop::collection::vec(1..=BLOCK, 1..60)) {
            let mut layout = Layout::default();
            let mut past = layout.past(2, history);
            let mut memory = vec![0.0; layout.len()];
            let mut count = 0;
            for frames in blocks {
                let now = past.now();
                for row in 0..2 {
                    // What lies behind the block is written, too, as vectors do.
                    for frame in 0..BLOCK {
                        memory[now.start(row) + frame] = if frame < frames { (count + frame + 1 + row) as f32 } else { -1.0 };
                    }
                }
                past.complete(&mut memory, frames);
                for delay in [0, history / 2, history] {
                    for row in 0..2 {
                        for frame in 0..frames {
                            let expected = if count + frame < delay { 0.0 } else { (count + frame - delay + 1 + row) as f32 };
                            prop_assert_eq!(memory[past.before(delay).start(row) + frame], expected);
                        }
                    }
                }
                past.advance(frames);
                count += frames;
            }
        }
    }
}
