//! Delay lines: signals whose last frames are kept. The frames at any delay are contiguous.

use std::hint::select_unpredictable;

use super::{BLOCK, CACHE_LINE, Rows};

/// A signal and its history in a ring. The first frames of the ring are stored a second time after its end, as many as
/// are read at once: a block, or fewer if blocks are read in pieces.
#[derive(Debug, Clone)]
pub struct DelayLine {
    rows: Rows,
    /// Frames in the ring; 0 without history.
    size: usize,
    position: usize,
}

/// Frames of a ring to copy, so that frames that wrap around its end are contiguous.
#[derive(Debug, Clone, Copy)]
pub struct Mirror {
    /// Source.
    pub from: Rows,
    /// Destination.
    pub to: Rows,
    /// Number of frames; may be 0. Vectors copy more, up to a multiple of their length.
    pub frames: usize,
}

impl DelayLine {
    /// Number of frames in the ring, and the distance from one row to the next.
    pub fn size_and_stride(history: usize) -> (usize, usize) {
        if history == 0 {
            return (0, BLOCK);
        }
        // With a shorter ring, nearly every block would have frames to mirror.
        let size = (history + BLOCK + CACHE_LINE).next_multiple_of(CACHE_LINE).max(4 * BLOCK);
        // An odd number of cache lines, so that the rows do not compete for the same cache sets.
        (size, (((size + BLOCK + CACHE_LINE) / CACHE_LINE) | 1) * CACHE_LINE)
    }

    /// Upper bound of the values that [`Layout::delay_line`](super::Layout::delay_line) takes.
    pub fn most_values(count: usize, history: usize) -> usize {
        count.saturating_mul(history.saturating_add(6 * BLOCK))
    }

    /// A ring of `size` frames in these rows; both as [`DelayLine::size_and_stride`] returns them.
    pub fn new(rows: Rows, size: usize) -> Self {
        Self { rows, size, position: 0 }
    }

    /// The rows that the current block is written to.
    pub fn current(&self) -> Rows {
        Rows { at: self.rows.at + self.position, ..self.rows }
    }

    /// The current block `delay` frames ago; `delay` is at most the history.
    #[inline]
    pub fn delayed(&self, delay: usize) -> Rows {
        self.delayed_from(0, delay)
    }

    /// [`DelayLine::delayed`], beginning with `frame` of the block.
    #[inline]
    pub fn delayed_from(&self, frame: usize, delay: usize) -> Rows {
        let position = (self.position + frame).wrapping_sub(delay);
        // The wrap point differs per tap, so a branch would be mispredicted.
        let wrapped = select_unpredictable(position.cast_signed() < 0, position.wrapping_add(self.size), position);
        Rows { at: self.rows.at + wrapped, ..self.rows }
    }

    /// End of the last row. A whole block of every row, at any delay within the history, is before it.
    pub fn end(&self) -> usize {
        self.rows.at + self.rows.count * self.rows.stride
    }

    /// True if frames at this delay are kept.
    #[inline]
    pub fn reaches(&self, delay: usize) -> bool {
        delay <= self.size.saturating_sub(BLOCK)
    }

    /// Sets the position back to the start; the caller clears the memory.
    pub fn reset(&mut self) {
        self.position = 0;
    }

    /// True if [`DelayLine::mirrors`] has frames to copy.
    #[inline(always)]
    pub fn needs_mirror(&self, frames: usize, piece: usize) -> bool {
        self.size > 0 && (self.position < piece || self.position + frames > self.size)
    }

    /// The frames to copy once `frames` frames were written, if at most `piece` frames are read at once.
    #[inline]
    pub fn mirrors(&self, frames: usize, piece: usize) -> [Mirror; 2] {
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

    /// Moves on by `frames`, after they were mirrored.
    pub fn advance(&mut self, frames: usize) {
        if self.size > 0 {
            self.position += frames;
            // A block is never longer than the ring.
            self.position -= if self.position >= self.size { self.size } else { 0 };
        }
    }
}
