//! Rows: the channels of a signal in the memory of a network.

/// The channels of a signal in the memory of a network, one row each. The frames of a row are contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Index of the first frame of the first row.
    pub at: usize,
    /// Distance from one row to the next, values.
    pub stride: usize,
    /// Number of rows.
    pub count: usize,
}

impl Rows {
    /// Index of the first frame of row `index`.
    #[must_use]
    #[inline(always)]
    pub fn start(&self, index: usize) -> usize {
        self.at + self.stride * index
    }

    /// `count` of the rows, beginning with row `first`.
    #[must_use]
    #[inline(always)]
    pub fn part(&self, first: usize, count: usize) -> Self {
        Self { at: self.start(first), count, ..*self }
    }

    /// True if `frames` frames of every row are within `len` values.
    #[inline(always)]
    pub fn fit(&self, frames: usize, len: usize) -> bool {
        let last = self.start(self.count.saturating_sub(1));
        self.count == 0 || last.saturating_add(frames) <= len
    }
}
