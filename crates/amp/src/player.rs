//! What an audio thread plays.

use crate::Chain;

/// What makes a period's output of its input: a chain, or what stands in for one.
///
/// It runs on the audio thread, and neither allocates, locks, prints nor calls the system.
pub trait Player: Send {
    /// Makes the next frames of both sides from those of the input, all three of equal length. What has one channel writes
    /// it to `left`.
    fn play(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]);

    /// Samples by which its output is late by itself.
    fn delay(&self) -> usize {
        0
    }
}

impl Player for Chain {
    fn play(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        self.process(input, left, right);
    }

    fn delay(&self) -> usize {
        Self::delay(self)
    }
}
