//! What the audio thread plays on: a sound card, or the clock in its place.

use std::io;

use probes::{
    audio::{card::Card, signal::guitar},
    timer::Grid,
};
use sys::{
    clock::{Clock, Sleeper, Wait},
    pcm::{Duplex, WaitResult, Wake},
};

/// A card, or what stands in for one.
#[derive(Debug)]
pub enum Device {
    /// A sound card.
    Card(Box<Duplex>),
    /// The clock.
    Clock(Paced),
}

/// A guitar of our own at the clock's pace, heard by nobody: for machines without a card. It runs dry as a card would.
#[derive(Debug)]
pub struct Paced {
    sleeper: Sleeper,
    grid: Grid,
    periods: u32,
    frames: usize,
    guitar: Box<[f32]>,
    at: usize,
    /// The first deadline, ns of the monotonic clock.
    first_ns: i64,
    card: Card,
    /// The period that is due next.
    slot: u64,
    is_dry: bool,
}

impl Paced {
    /// Periods of so many frames at this rate, Hz, of which a card holds so many, 2 or more.
    ///
    /// # Errors
    /// What the kernel answered when it was asked for a timer.
    pub fn new(rate_hz: u32, frames: u32, periods: u32) -> io::Result<Self> {
        let grid = Grid::of_frames(frames, rate_hz);
        Ok(Self {
            sleeper: Sleeper::new(Clock::Monotonic, Wait::Nanosleep)?,
            grid,
            periods,
            frames: frames as usize,
            guitar: guitar(rate_hz, frames),
            at: 0,
            first_ns: 0,
            card: Card::new(grid, periods),
            slot: 0,
            is_dry: false,
        })
    }

    fn start(&mut self) {
        self.first_ns = Clock::Monotonic.now_ns() + self.grid.offset_ns(1);
        self.card = Card::new(self.grid, self.periods);
        self.slot = 0;
        self.is_dry = false;
    }

    fn wait(&mut self) -> io::Result<WaitResult> {
        if self.is_dry {
            return Ok(WaitResult::Xrun);
        }
        let card_ns = self.first_ns + self.card.deadline_ns(self.slot);
        self.sleeper.sleep_until(card_ns)?;
        let captured = self.frames as u64;
        let wake = Wake { woke_ns: Clock::Monotonic.now_ns(), card_ns, captured, queued: captured };
        Ok(WaitResult::Period(wake))
    }

    fn read(&mut self, samples: &mut [f32]) {
        samples.copy_from_slice(&self.guitar[self.at..self.at + self.frames]);
        self.at = (self.at + self.frames) % self.guitar.len();
    }

    fn turn(&mut self) {
        self.is_dry = self.card.write(self.slot, Clock::Monotonic.now_ns() - self.first_ns).is_some();
        self.slot += 1;
    }
}

impl Device {
    /// Begins, also after [`WaitResult::Xrun`].
    pub(crate) fn start(&mut self) -> io::Result<()> {
        match self {
            Self::Card(duplex) => duplex.start(),
            Self::Clock(paced) => {
                paced.start();
                Ok(())
            }
        }
    }

    /// Waits for the next period.
    #[inline]
    pub(crate) fn wait(&mut self) -> io::Result<WaitResult> {
        match self {
            Self::Card(duplex) => duplex.wait(),
            Self::Clock(paced) => paced.wait(),
        }
    }

    /// Whether both directions start in the same moment.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        match self {
            Self::Card(duplex) => duplex.is_linked(),
            Self::Clock(_) => true,
        }
    }

    /// Takes what one input captured in this period.
    #[inline]
    pub(crate) fn read(&mut self, input: u32, samples: &mut [f32]) {
        match self {
            Self::Card(duplex) => duplex.capture().read(input, samples),
            Self::Clock(paced) => paced.read(samples),
        }
    }

    /// Whether there is one output only.
    pub(crate) fn is_mono(&mut self) -> bool {
        match self {
            Self::Card(duplex) => duplex.playback().channels() == 1,
            Self::Clock(_) => false,
        }
    }

    /// Gives what is to be played.
    #[inline]
    pub(crate) fn write(&mut self, left: &[f32], right: &[f32]) {
        if let Self::Card(duplex) = self {
            duplex.playback().write(0, left);
            duplex.playback().write(1, right);
        }
    }

    /// Hands both back.
    #[inline]
    pub(crate) fn turn(&mut self) -> io::Result<()> {
        match self {
            Self::Card(duplex) => duplex.advance(),
            Self::Clock(paced) => {
                paced.turn();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_plays_the_guitar_around_and_runs_dry_when_nobody_comes() {
        let mut device = Device::Clock(Paced::new(48_000, 480, 2).unwrap());
        let mut samples = vec![0.0; 480];
        let whole = guitar(48_000, 480);
        device.start().unwrap();
        for period in 0..whole.len() / 480 + 1 {
            // What is late by a period is another's doing, and no part of this test.
            if device.wait().unwrap() == WaitResult::Xrun {
                device.start().unwrap();
            }
            device.read(0, &mut samples);
            assert_eq!(samples, whole[period * 480 % whole.len()..][..480]);
            device.turn().unwrap();
        }
        device.start().unwrap();
        assert!(matches!(device.wait().unwrap(), WaitResult::Period(_)));
        std::thread::sleep(std::time::Duration::from_millis(25));
        device.turn().unwrap();
        assert_eq!(device.wait().unwrap(), WaitResult::Xrun);
        device.start().unwrap();
        assert!(matches!(device.wait().unwrap(), WaitResult::Period(_)));
    }
}
