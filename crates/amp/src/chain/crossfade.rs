//! One thing that is played given way to another, without a click: both play for a while, with equal power.

use std::{f32::consts::FRAC_PI_2, mem};

use super::exchange::Change;

/// How long both play, s.
const FADE_S: f32 = 0.03;

/// How much sooner than it is heard in full, what comes hears all of its input.
const INPUT_FADE_SPEED: usize = 3;

/// What is exchanged: something, or nothing.
pub type Part<T> = Option<Box<T>>;

/// Something that can be exchanged while it plays.
#[derive(Debug)]
pub struct Crossfade<T> {
    current: Part<T>,
    fade: Option<Fade<T>>,
    /// What takes the place of what is coming: the last that was offered meanwhile.
    next: Change<Box<T>>,
    /// Weights of what comes; those of what goes are the same backwards.
    weights: Vec<f32>,
}

/// A fade under way.
#[derive(Debug)]
struct Fade<T> {
    coming: Part<T>,
    /// Samples since it began.
    at: usize,
}

impl<T> Crossfade<T> {
    pub fn new(current: Part<T>, rate_hz: f32) -> Self {
        let frames = (rate_hz * FADE_S) as usize;
        let weights = (0..=frames).map(|n| (FRAC_PI_2 * n as f32 / frames as f32).sin()).collect();
        Self { current, fade: None, next: Change::Keep, weights }
    }

    /// Begins to exchange, or does so as soon as the exchange under way is over. What was offered before and has not begun
    /// is given back.
    pub fn offer(&mut self, new: Part<T>) -> Option<Part<T>> {
        if self.fade.is_none() {
            self.fade = Some(Fade { coming: new, at: 0 });
            return None;
        }
        match mem::replace(&mut self.next, Change::Replace(new)) {
            Change::Keep => None,
            Change::Replace(unplayed) => Some(unplayed),
        }
    }

    /// What is to play in the end.
    pub fn latest(&self) -> Option<&T> {
        match (&self.next, &self.fade) {
            (Change::Replace(next), _) => next.as_deref(),
            (Change::Keep, Some(fade)) => fade.coming.as_deref(),
            (Change::Keep, None) => self.current.as_deref(),
        }
    }

    /// All that there is.
    pub fn each(&mut self) -> impl Iterator<Item = &mut T> {
        let coming = self.fade.as_mut().and_then(|fade| fade.coming.as_deref_mut());
        let next = match &mut self.next {
            Change::Keep => None,
            Change::Replace(next) => next.as_deref_mut(),
        };
        self.current.as_deref_mut().into_iter().chain(coming).chain(next)
    }

    /// What plays, or goes.
    pub fn current(&mut self) -> Option<&mut T> {
        self.current.as_deref_mut()
    }

    /// What comes.
    pub fn coming(&mut self) -> Option<&mut T> {
        self.fade.as_mut().and_then(|fade| fade.coming.as_deref_mut())
    }

    /// Whether something is being exchanged.
    pub fn is_fading(&self) -> bool {
        self.fade.is_some()
    }

    /// The input of what comes: it begins softly, because what comes remembers silence, and would play a jump.
    pub fn fade_in_input(&self, input: &mut [f32]) {
        let Some(Fade { at, .. }) = self.fade else { return };
        let last = self.weights.len() - 1;
        for (n, sample) in input.iter_mut().enumerate() {
            *sample *= self.weights[((at + n) * INPUT_FADE_SPEED).min(last)];
        }
    }

    /// Adds what comes to what goes, in `going`.
    pub fn mix<const N: usize>(&self, going: [&mut [f32]; N], coming: [&mut [f32]; N]) {
        let Some(Fade { at, .. }) = self.fade else { return };
        let last = self.weights.len() - 1;
        for (going, coming) in going.into_iter().zip(coming) {
            for (n, (going, coming)) in going.iter_mut().zip(coming).enumerate() {
                let place = (at + n + 1).min(last);
                *going = *going * self.weights[last - place] + *coming * self.weights[place];
            }
        }
    }

    /// So many samples later; gives back what has gone.
    pub fn advance(&mut self, frames: usize) -> Option<Part<T>> {
        let fade = self.fade.as_mut()?;
        fade.at += frames;
        if fade.at + 1 < self.weights.len() {
            return None;
        }
        let Fade { coming, .. } = self.fade.take()?;
        if let Change::Replace(coming) = mem::take(&mut self.next) {
            self.fade = Some(Fade { coming, at: 0 });
        }
        Some(mem::replace(&mut self.current, coming))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_wins_and_nothing_is_lost() {
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
    fn power_stays_the_same() {
        let mut crossfade = Crossfade::new(Some(Box::new(1)), 1000.0);
        crossfade.offer(None);
        for _ in 0..30 {
            let (mut going, mut coming) = ([1.0], [0.0]);
            crossfade.mix([&mut going], [&mut [0.0]]);
            crossfade.mix([&mut coming], [&mut [1.0]]);
            assert!((going[0].powi(2) + coming[0].powi(2) - 1.0).abs() < 1e-5);
            crossfade.advance(1);
        }
    }
}
