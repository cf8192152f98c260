//! The memory of a network: all its signals and delay lines are in one slice, which is allocated when the network is
//! made.

mod aligned;
mod delay_line;
mod rows;

pub use self::{
    aligned::{Aligned, CACHE_LINE},
    delay_line::{DelayLine, Mirror},
    rows::Rows,
};

/// Maximum number of frames computed at a time.
pub const BLOCK: usize = 64;

/// Reserves parts of a slice that is allocated afterwards.
#[derive(Debug, Default)]
pub struct Layout {
    len: usize,
}

impl Layout {
    /// A signal without history: only the current block is kept.
    pub fn rows(&mut self, count: usize) -> Rows {
        self.take(count, BLOCK)
    }

    /// A signal whose last `history` frames are kept as well.
    pub fn delay_line(&mut self, count: usize, history: usize) -> DelayLine {
        let (size, stride) = DelayLine::size_and_stride(history);
        DelayLine::new(self.take(count, stride), size)
    }

    /// Allocates memory for all signals; it contains zeros.
    pub fn memory(&self) -> Aligned {
        Aligned::new(self.len, std::iter::empty())
    }

    fn take(&mut self, count: usize, stride: usize) -> Rows {
        let rows = Rows { at: self.len, stride, count };
        self.len += count * stride;
        rows
    }
}

/// Rows for intermediate results, which every layer overwrites.
#[derive(Debug, Clone, Copy)]
pub struct Scratch(pub Rows);

impl Scratch {
    /// Takes the next `count` rows.
    pub fn take(&mut self, count: usize) -> Rows {
        let taken = self.0.part(0, count);
        self.0 = self.0.part(count, self.0.count - count);
        taken
    }
}
