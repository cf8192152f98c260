//! Copying the frames at the end of a delay line's ring, so that a block at any delay is contiguous.

use super::{MAX_LANES, Op, Pass, Simd, elements::each};
use crate::memory::{BLOCK, CACHE_LINE, DelayLine, Mirror};

const _: () = assert!(CACHE_LINE.is_multiple_of(MAX_LANES), "vectors read beyond the end of the ring");

impl DelayLine {
    /// Copies the frames that wrap around. Call it after a block was written and before frames are read at a delay.
    pub fn mirror_wrap(&self, pass: Pass, memory: &mut [f32]) {
        for mirror in self.mirrors(pass.frames, BLOCK) {
            if mirror.frames > 0 {
                pass.instructions.run(Copy { mirror, memory });
            }
        }
    }

    /// [`DelayLine::mirror_wrap`] inside vector code, if at most `piece` frames are read at once.
    #[inline(always)]
    pub fn mirror_wrap_with<S: Simd>(&self, simd: S, memory: &mut [f32], frames: usize, piece: usize) {
        if self.needs_mirror(frames, piece) {
            for mirror in self.mirrors(frames, piece) {
                mirror.copy(simd, memory);
            }
        }
    }
}

impl Mirror {
    /// Copies the frames.
    ///
    /// # Panics
    /// If rows are outside `memory`.
    #[inline(always)]
    fn copy<S: Simd>(self, simd: S, memory: &mut [f32]) {
        if self.frames > 0 {
            each!(simd, memory, _, [x in self.from] => self.to, self.frames, x);
        }
    }
}

struct Copy<'a> {
    mirror: Mirror,
    memory: &'a mut [f32],
}

impl Op for Copy<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        self.mirror.copy(simd, self.memory);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{memory::Layout, simd::InstructionSet};

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
        /// Blocks of any size, read in pieces, compared with the whole signal.
        #[test]
        fn frames_at_every_delay_are_contiguous(
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
                    // Vectors also write frames after the block.
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
