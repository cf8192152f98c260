//! Delay lines: signals whose last frames are kept, each delay in one piece.

use std::hint::select_unpredictable;

use crate::{
    memory::BLOCK,
    simd::{CACHE_LINE, MAX_LANES, Mirror, Pass, Rows, Simd, mirror},
};

const _: () = assert!(CACHE_LINE.is_multiple_of(MAX_LANES), "what vectors read beyond a ring is there");

/// A signal with its past: a ring, whose first frames stand behind its end once more, as many as are read at once: a block,
/// or less where the block is read in pieces.
#[derive(Debug, Clone)]
pub struct DelayLine {
    rows: Rows,
    /// Frames in the ring; 0 where nothing is kept.
    size: usize,
    position: usize,
}

impl DelayLine {
    /// Frames in the ring, and from one row to the next.
    pub fn size_and_stride(history: usize) -> (usize, usize) {
        if history == 0 {
            return (0, BLOCK);
        }
        // A short ring would be copied from its begin to its end in nearly every block.
        let size = (history + BLOCK + CACHE_LINE).next_multiple_of(CACHE_LINE).max(4 * BLOCK);
        // An odd number of lines, so that rows do not compete for the same places of the cache.
        (size, (((size + BLOCK + CACHE_LINE) / CACHE_LINE) | 1) * CACHE_LINE)
    }

    /// Most values that [`Layout::delay_line`](crate::memory::Layout::delay_line) takes.
    pub fn most_values(count: usize, history: usize) -> usize {
        count.saturating_mul(history.saturating_add(6 * BLOCK))
    }

    /// A ring of `size` frames in these rows, as [`DelayLine::size_and_stride`] has both.
    pub fn new(rows: Rows, size: usize) -> Self {
        Self { rows, size, position: 0 }
    }

    /// Where the current frames are to be written.
    pub fn current(&self) -> Rows {
        Rows { at: self.rows.at + self.position, ..self.rows }
    }

    /// The frames so far ago; at most the history that was asked for.
    #[inline]
    pub fn delayed(&self, delay: usize) -> Rows {
        self.delayed_from(0, delay)
    }

    /// The same from `frame` of the block on.
    #[inline]
    pub fn delayed_from(&self, frame: usize, delay: usize) -> Rows {
        let position = (self.position + frame) as isize - delay as isize;
        // Nobody could tell beforehand in which block which tap begins anew.
        let wrapped = select_unpredictable(position < 0, position + self.size as isize, position);
        Rows { at: self.rows.at + wrapped as usize, ..self.rows }
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

    /// Back to where it began; the memory is another's to clear.
    pub fn reset(&mut self) {
        self.position = 0;
    }

    /// Copies what was written to where the ring's ends are mirrored: to be done before the frames are read at a delay.
    pub fn mirror_wrap(&self, pass: Pass, memory: &mut [f32]) {
        for copied in self.mirrors(pass.frames, BLOCK) {
            mirror(pass.instructions, memory, copied);
        }
    }

    /// The same where vectors are at work already, and at most `piece` frames are read at once.
    #[inline(always)]
    pub fn mirror_wrap_with<S: Simd>(&self, simd: S, memory: &mut [f32], frames: usize, piece: usize) {
        if self.size > 0 && (self.position < piece || self.position + frames > self.size) {
            for copied in self.mirrors(frames, piece) {
                copied.copy(simd, memory);
            }
        }
    }

    /// What has to be copied. What is copied beyond the frames, as vectors do, is read by nobody.
    #[inline]
    fn mirrors(&self, frames: usize, piece: usize) -> [Mirror; 2] {
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

    /// Moves on by `frames`, the ends of which were mirrored.
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
    use crate::{
        memory::Layout,
        simd::{InstructionSet, Op},
    };

    struct MirrorWrap<'a> {
        line: &'a DelayLine,
        memory: &'a mut [f32],
        frames: usize,
        piece: usize,
    }

    impl Op for MirrorWrap<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            self.line.mirror_wrap_with(simd, self.memory, self.frames, self.piece);
        }
    }

    proptest! {
        /// Blocks of any size, read in pieces, against the whole signal.
        #[test]
        fn every_delay_is_in_one_piece(
            history in 0..300usize,
            piece in prop::sample::select(vec![MAX_LANES, BLOCK]),
            blocks in prop::collection::vec(1..=BLOCK, 1..60),
        ) {
            let mut layout = Layout::default();
            let mut line = layout.delay_line(2, history);
            let mut memory = layout.memory();
            prop_assert!(memory.len() <= DelayLine::most_values(2, history));
            let mut count = 0;
            for frames in blocks {
                let current = line.current();
                for row in 0..2 {
                    // What lies behind the block is written, too, as vectors do.
                    for frame in 0..BLOCK {
                        memory[current.start(row) + frame] = if frame < frames { (count + frame + 1 + row) as f32 } else { -1.0 };
                    }
                }
                InstructionSet::best().run(MirrorWrap { line: &line, memory: &mut memory, frames, piece });
                for delay in [0, history.min(1), history / 2, history] {
                    for (row, frame) in (0..2).flat_map(|row| (0..frames).map(move |frame| (row, frame))) {
                        let begin = frame / piece * piece;
                        let read = memory[line.delayed_from(begin, delay).start(row) + frame - begin];
                        let expected = (count + frame + 1).checked_sub(delay).filter(|&nth| nth > 0);
                        prop_assert_eq!(read, expected.map_or(0.0, |nth| (nth + row) as f32));
                    }
                }
                line.advance(frames);
                count += frames;
            }
        }
    }
}
