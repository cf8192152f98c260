//! The memory of a network: every signal and its past lie in one slice, allotted when it is made.

use crate::simd::{Aligned, Mirror, Pass, Rows, Simd, mirror};

/// Most frames that are computed at a time. A multiple of the lanes of every vector.
pub const BLOCK: usize = 64;

/// Values in a line of the cache, and at least as many as a vector has.
const LINE: usize = 16;

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
        let (size, stride) = past(history);
        Past { rows: self.take(count, stride), size, position: 0 }
    }

    /// Memory for all of it, silent.
    pub fn memory(&self) -> Aligned {
        Aligned::new(self.len, std::iter::empty())
    }

    fn take(&mut self, count: usize, stride: usize) -> Rows {
        let rows = Rows { at: self.len, stride, count };
        self.len += count * stride;
        rows
    }
}

/// Frames in a ring, and from one row to the next.
fn past(history: usize) -> (usize, usize) {
    if history == 0 {
        return (0, BLOCK);
    }
    // A short ring would be copied from its begin to its end in nearly every block.
    let size = (history + BLOCK + LINE).next_multiple_of(LINE).max(4 * BLOCK);
    // An odd number of lines, so that rows do not compete for the same places of the cache.
    (size, (((size + BLOCK + LINE) / LINE) | 1) * LINE)
}

/// Number of values that [`Layout::past`] takes.
pub fn values_of_past(count: usize, history: usize) -> usize {
    count.saturating_mul(history.saturating_add(6 * BLOCK))
}

/// Rows that are free to be used until whoever comes next.
#[derive(Debug, Clone, Copy)]
pub struct Scratch(pub Rows);

impl Scratch {
    /// The next rows.
    pub fn take(&mut self, count: usize) -> Rows {
        let taken = self.0.part(0, count);
        self.0 = self.0.part(count, self.0.count - count);
        taken
    }
}

/// A signal with its past: a ring, whose first frames stand behind its end once more, as many as are read in one piece: a block,
/// or less where the block is read in pieces.
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
    #[inline]
    pub fn before(&self, delay: usize) -> Rows {
        self.piece(0, delay)
    }

    /// The same for the piece of a block that begins at `frame`.
    #[inline]
    pub fn piece(&self, frame: usize, delay: usize) -> Rows {
        let position = self.position + frame;
        let position = if delay <= position { position - delay } else { position + self.size - delay };
        Rows { at: self.rows.at + position, ..self.rows }
    }

    /// Where its rows end: a whole block of each, at any delay that is kept, lies before.
    pub fn end(&self) -> usize {
        self.rows.at + self.rows.count * self.rows.stride
    }

    /// Whether frames so far ago are kept.
    #[inline]
    pub fn reaches(&self, delay: usize) -> bool {
        delay <= self.size.saturating_sub(BLOCK)
    }

    /// Back to where it began; the memory is another's to restore.
    pub fn rewind(&mut self) {
        self.position = 0;
    }

    /// Completes what was written: to be done before the frames are read at a delay.
    pub fn complete(&self, pass: Pass, memory: &mut [f32]) {
        for what in self.copies(pass.frames, BLOCK) {
            mirror(pass.level, memory, what);
        }
    }

    /// The same where vectors are at work already, and at most `piece` frames are read in one piece.
    #[inline(always)]
    pub fn complete_with<S: Simd>(&self, simd: S, memory: &mut [f32], frames: usize, piece: usize) {
        if self.size > 0 && (self.position < piece || self.position + frames > self.size) {
            for what in self.copies(frames, piece) {
                what.copy(simd, memory);
            }
        }
    }

    /// What has to be copied to complete it. What is copied beyond the frames, as vectors do, is read by nobody.
    #[inline]
    fn copies(&self, frames: usize, piece: usize) -> [Mirror; 2] {
        let (begin, end) = (self.position, self.position + frames);
        let at = |frame: usize| Rows { at: self.rows.at + frame, ..self.rows };
        let none = Mirror { from: self.rows, to: self.rows, frames: 0 };
        if self.size == 0 {
            return [none, none];
        }
        [
            Mirror { from: at(self.size), to: self.rows, frames: end.saturating_sub(self.size) },
            Mirror { from: at(begin), to: at(self.size + begin), frames: end.min(piece).saturating_sub(begin) },
        ]
    }

    /// Makes `frames` that were completed past.
    pub fn advance(&mut self, frames: usize) {
        if self.size > 0 {
            self.position += frames;
            // Never longer than the ring.
            self.position -= if self.position >= self.size { self.size } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::{Level, Op};

    struct Complete<'a> {
        past: &'a Past,
        memory: &'a mut [f32],
        frames: usize,
        piece: usize,
    }

    impl Op for Complete<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            self.past.complete_with(simd, self.memory, self.frames, self.piece);
        }
    }

    proptest! {
        /// Blocks of any size, read in pieces, against the whole signal.
        #[test]
        fn every_delay_is_in_one_piece(
            history in 0..300usize,
            piece in prop::sample::select(vec![16, BLOCK]),
            blocks in prop::collection::vec(1..=BLOCK, 1..60),
        ) {
            let mut layout = Layout::default();
            let mut past = layout.past(2, history);
            prop_assert!(layout.len <= values_of_past(2, history));
            let mut memory = layout.memory();
            let mut count = 0;
            for frames in blocks {
                let now = past.now();
                for row in 0..2 {
                    // What lies behind the block is written, too, as vectors do.
                    for frame in 0..BLOCK {
                        memory[now.start(row) + frame] = if frame < frames { (count + frame + 1 + row) as f32 } else { -1.0 };
                    }
                }
                Level::best().run(Complete { past: &past, memory: &mut memory, frames, piece });
                for delay in [0, history.min(1), history / 2, history] {
                    for (row, frame) in (0..2).flat_map(|row| (0..frames).map(move |frame| (row, frame))) {
                        let begin = frame / piece * piece;
                        let told = memory[past.piece(begin, delay).start(row) + frame - begin];
                        let expected = (count + frame + 1).checked_sub(delay).filter(|&nth| nth > 0);
                        prop_assert_eq!(told, expected.map_or(0.0, |nth| (nth + row) as f32));
                    }
                }
                past.advance(frames);
                count += frames;
            }
        }
    }
}
