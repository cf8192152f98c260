//! Values aligned to cache lines: loading a vector that crosses two lines takes twice as long.

use std::ops::{Deref, DerefMut};

/// Number of values in a cache line of 64 bytes.
pub const CACHE_LINE: usize = 64 / size_of::<f32>();

/// Values that begin at the start of a cache line.
#[derive(Debug)]
pub struct Aligned {
    values: Vec<f32>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// `len` values: first those of `given`, then zeros.
    #[must_use]
    pub fn new(len: usize, given: impl IntoIterator<Item = f32>) -> Self {
        let values = vec![0.0; len + CACHE_LINE];
        // `align_offset` may fail. Then the values are not aligned, which only costs time.
        let start = values.as_ptr().align_offset(CACHE_LINE * size_of::<f32>()).min(CACHE_LINE);
        let mut aligned = Self { values, start, len };
        aligned.iter_mut().zip(given).for_each(|(value, given)| *value = given);
        aligned
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        Self::new(self.len, self.iter().copied())
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[self.start..self.start + self.len]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_aligned_too() {
        let all: Vec<Aligned> = (1..20).map(|len| Aligned::new(len, [1.0, 2.0])).collect();
        for aligned in all.iter().chain(&all.clone()) {
            assert!(aligned.as_ptr().addr().is_multiple_of(64));
            assert!(aligned[0] == 1.0 && aligned.iter().sum::<f32>() <= 3.0);
        }
    }
}
