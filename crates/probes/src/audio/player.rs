//! The interface of the signal processing that an audio thread runs.

/// Signal processing that an audio thread runs: an amplifier, or a test signal.
///
/// The audio thread calls it, so it must not allocate, lock, print or make a system call.
pub trait Player: Send {
    /// Processes one period. All three slices have the same length. A mono player writes to `left` only.
    fn play(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]);

    /// Processing delay, samples.
    fn delay(&self) -> usize {
        0
    }
}
