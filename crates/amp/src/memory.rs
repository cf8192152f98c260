//! The memory of a network: every signal and every delay line lie in one slice, allotted when it is made.

use crate::{
    delay_line::DelayLine,
    simd::{Aligned, MAX_LANES, Rows},
};

/// Most frames that are computed at a time.
pub const BLOCK: usize = 64;

const _: () = assert!(BLOCK.is_multiple_of(MAX_LANES), "vectors fill a block");

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
    pub fn delay_line(&mut self, count: usize, history: usize) -> DelayLine {
        let (size, stride) = DelayLine::size_and_stride(history);
        DelayLine::new(self.take(count, stride), size)
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
