//! Replacing a part without a click: both parts play for a while, with constant total power.

use std::{f32::consts::FRAC_PI_2, mem};

use super::exchange::Change;
use crate::convert::whole;

/// Duration of the crossfade, s.
const FADE_S: f32 = 0.03;

/// The input of the new part fades in faster than its output, by this factor.
const INPUT_FADE_SPEED: usize = 3;

/// A part, or none.
pub type Part<T> = Option<Box<T>>;

/// A part that can be replaced while it plays.
#[derive(Debug)]
pub struct Crossfade<T> {
    current: Part<T>,
    fade: Option<Fade<T>>,
    /// The replacement of the incoming part: the last one that was offered during the fade.
    next: Change<Box<T>>,
    /// Weights of the incoming part; those of the outgoing part are the same in reverse.
    weights: Vec<f32>,
}

/// A crossfade in progress.
#[derive(Debug)]
struct Fade<T> {
    incoming: Part<T>,
    /// Number of samples since its start.
    at: usize,
}

impl<T> Crossfade<T> {
    pub fn new(current: Part<T>, rate_hz: f32) -> Self {
        let frames = whole(f64::from(rate_hz * FADE_S));
        let weights = (0..=frames).map(|n| (FRAC_PI_2 * n as f32 / frames as f32).sin()).collect();
        Self { current, fade: None, next: Change::Keep, weights }
    }

    /// Starts replacing the part, or does so when the crossfade in progress ends. Returns a part that was offered
    /// before and has not started.
    pub fn offer(&mut self, new: Part<T>) -> Option<Part<T>> {
        if self.fade.is_none() {
            self.fade = Some(Fade { incoming: new, at: 0 });
            return None;
        }
        match mem::replace(&mut self.next, Change::Replace(new)) {
            Change::Keep => None,
            Change::Replace(unplayed) => Some(unplayed),
        }
    }

    /// The part that plays after all crossfades.
    pub fn latest(&self) -> Option<&T> {
        match (&self.next, &self.fade) {
            (Change::Replace(next), _) => next.as_deref(),
            (Change::Keep, Some(fade)) => fade.incoming.as_deref(),
            (Change::Keep, None) => self.current.as_deref(),
        }
    }

    /// All parts.
    pub fn each(&mut self) -> impl Iterator<Item = &mut T> {
        let incoming = self.fade.as_mut().and_then(|fade| fade.incoming.as_deref_mut());
        let next = match &mut self.next {
            Change::Keep => None,
            Change::Replace(next) => next.as_deref_mut(),
        };
        self.current.as_deref_mut().into_iter().chain(incoming).chain(next)
    }

    /// The current or outgoing part.
    pub fn current(&mut self) -> Option<&mut T> {
        self.current.as_deref_mut()
    }

    /// The incoming part.
    pub fn incoming(&mut self) -> Option<&mut T> {
        self.fade.as_mut().and_then(|fade| fade.incoming.as_deref_mut())
    }

    /// True during a crossfade.
    pub fn is_fading(&self) -> bool {
        self.fade.is_some()
    }

    /// Fades in the input of the incoming part: its state is that after silence, so a full input would cause a step.
    pub fn fade_in_input(&self, input: &mut [f32]) {
        let Some(Fade { at, .. }) = self.fade else { return };
        let last = self.weights.len() - 1;
        for (n, sample) in input.iter_mut().enumerate() {
            *sample *= self.weights[((at + n) * INPUT_FADE_SPEED).min(last)];
        }
    }

    /// Mixes `incoming` into `outgoing`.
    pub fn mix<const N: usize>(&self, outgoing: [&mut [f32]; N], incoming: [&mut [f32]; N]) {
        let Some(Fade { at, .. }) = self.fade else { return };
        let last = self.weights.len() - 1;
        for (outgoing, incoming) in outgoing.into_iter().zip(incoming) {
            for (n, (outgoing, incoming)) in outgoing.iter_mut().zip(incoming).enumerate() {
                let index = (at + n + 1).min(last);
                *outgoing = *outgoing * self.weights[last - index] + *incoming * self.weights[index];
            }
        }
    }

    /// Moves on by `frames` samples; returns the outgoing part at the end of the crossfade.
    pub fn advance(&mut self, frames: usize) -> Option<Part<T>> {
        let fade = self.fade.as_mut()?;
        fade.at += frames;
        if fade.at + 1 < self.weights.len() {
            return None;
        }
        let Fade { incoming, .. } = self.fade.take()?;
        if let Change::Replace(incoming) = mem::take(&mut self.next) {
            self.fade = Some(Fade { incoming, at: 0 });
        }
        Some(mem::replace(&mut self.current, incoming))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_part_wins_and_all_parts_are_returned() {
        let mut crossfade = Crossfade::new(Some(Box::new(1)), 1000.0);
        assert_eq!(crossfade.offer(Some(Box::new(2))), None);
        assert_eq!(crossfade.offer(Some(Box::new(3))), None);
        assert_eq!(crossfade.offer(None), Some(Some(Box::new(3))));
        assert_eq!(crossfade.latest(), None);
        assert_eq!(crossfade.advance(29), None);
        assert_eq!(crossfade.advance(1), Some(Some(Box::new(1))));
        assert_eq!(crossfade.advance(30), Some(Some(Box::new(2))));
        assert!(crossfade.current().is_none() && !crossfade.is_fading());
    }

    #[test]
    fn total_power_is_constant() {
        let mut crossfade = Crossfade::new(Some(Box::new(1)), 1000.0);
        crossfade.offer(None);
        for _ in 0..30 {
            let (mut outgoing, mut incoming) = ([1.0], [0.0]);
            crossfade.mix([&mut outgoing], [&mut [0.0]]);
            crossfade.mix([&mut incoming], [&mut [1.0]]);
            assert!((outgoing[0].powi(2) + incoming[0].powi(2) - 1.0).abs() < 1e-5);
            crossfade.advance(1);
        }
    }
}
