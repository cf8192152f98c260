//! A position in a delay line that changes without a step: the output fades from the old position to the new one.

use super::smooth::Smooth;

/// A position in a delay line, or several that change together.
#[derive(Debug)]
pub struct Tap<T> {
    now: T,
    /// The position before the last change, and the progress of the fade from it.
    previous: T,
    fade: Smooth,
    /// The position after the fade in progress, and true if it is another one.
    target: T,
    is_pending: bool,
}

impl<T: Copy + PartialEq> Tap<T> {
    pub fn new(position: T, rate_hz: f32) -> Self {
        Self { now: position, previous: position, fade: Smooth::new(1.0, rate_hz), target: position, is_pending: false }
    }

    /// Sets the position, immediately or with a fade.
    pub fn set(&mut self, position: T, at_once: bool) {
        self.target = position;
        self.is_pending = !at_once && position != self.now;
        if at_once {
            (self.now, self.previous) = (position, position);
            self.fade.set_now(1.0);
        }
    }

    /// The next samples of simultaneous signals; `at` reads them at a position.
    #[inline]
    pub fn read<const N: usize>(&mut self, at: impl Fn(&T) -> [f32; N]) -> [f32; N] {
        if self.is_pending && !self.fade.is_ramping() {
            self.is_pending = false;
            (self.previous, self.now) = (self.now, self.target);
            self.fade.set_now(0.0);
            self.fade.set(1.0);
        }
        let mut samples = at(&self.now);
        if self.fade.is_ramping() {
            let (share, previous) = (self.fade.next(), at(&self.previous));
            samples.iter_mut().zip(previous).for_each(|(sample, previous)| {
                *sample = previous + share * (*sample - previous);
            });
        }
        samples
    }
}
