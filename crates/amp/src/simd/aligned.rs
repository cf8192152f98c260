//! Values that begin where a line of the cache does: a vector that lies across two lines takes twice as long to load.

use std::ops::{Deref, DerefMut};

/// Values in a line of the cache, which has 64 bytes.
pub const CACHE_LINE: usize = 64 / size_of::<f32>();

/// Values that begin where a line of the cache does.
#[derive(Debug)]
pub struct Aligned {
    values: Vec<f32>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// So many values, the first of which are `given`; the rest is 0.
    #[must_use]
    pub fn new(len: usize, given: impl IntoIterator<Item = f32>) -> Self {
        let values = vec![0.0; len + CACHE_LINE];
        // Where it cannot be told, nothing is lost but time.
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
    fn copies_begin_where_a_line_does_too() {
        let all: Vec<Aligned> = (1..20).map(|len| Aligned::new(len, [1.0, 2.0])).collect();
        for aligned in all.iter().chain(&all.clone()) {
            assert!(aligned.as_ptr().addr().is_multiple_of(64));
            assert!(aligned[0] == 1.0 && aligned.iter().sum::<f32>() <= 3.0);
        }
    }
}
