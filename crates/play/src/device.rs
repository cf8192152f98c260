//! The device that the audio thread plays on: a sound card, or a timer without one.

use std::io;

use probes::{
    audio::{card::Card, signal::guitar},
    timer::Grid,
};
use sys::{
    clock::{Clock, Sleeper, Wait},
    pcm::{Duplex, WaitResult, Wake},
};

/// The device that the audio thread plays on.
#[derive(Debug)]
pub enum Device {
    /// A sound card.
    Card(Box<Duplex>),
    /// A timer in place of a card.
    Clock(ClockDevice),
}

/// A timer in place of a card: its input is a synthetic guitar, its output is dropped. It has xruns as a card has.
#[derive(Debug)]
pub struct ClockDevice {
    sleeper: Sleeper,
    grid: Grid,
    periods: u32,
    frames: usize,
    guitar: Box<[f32]>,
    /// Next sample of the guitar.
    position: usize,
    /// The first deadline, ns of the monotonic clock.
    first_ns: i64,
    card: Card,
    /// The next period.
    slot: u64,
    has_xrun: bool,
}

impl ClockDevice {
    /// Creates a device with this sample rate, Hz, and a buffer of `periods` (2 or more) periods of `frames` frames.
    ///
    /// # Errors
    /// The kernel's error if the timer cannot be created.
    pub fn new(rate_hz: u32, frames: u32, periods: u32) -> io::Result<Self> {
        let grid = Grid::of_frames(frames, rate_hz);
        Ok(Self {
            sleeper: Sleeper::new(Clock::Monotonic, Wait::Nanosleep)?,
            grid,
            periods,
            frames: frames as usize,
            guitar: guitar(rate_hz, frames),
            position: 0,
            first_ns: 0,
            card: Card::new(grid, periods),
            slot: 0,
            has_xrun: false,
        })
    }

    fn start(&mut self) {
        self.first_ns = Clock::Monotonic.now_ns() + self.grid.offset_ns(1);
        self.card = Card::new(self.grid, self.periods);
        self.slot = 0;
        self.has_xrun = false;
    }

    fn wait(&mut self) -> io::Result<WaitResult> {
        if self.has_xrun {
            return Ok(WaitResult::Xrun);
        }
        let card_ns = self.first_ns + self.card.deadline_ns(self.slot);
        self.sleeper.sleep_until(card_ns)?;
        let captured = self.frames as u64;
        let wake = Wake { woke_ns: Clock::Monotonic.now_ns(), card_ns, captured, queued: captured };
        Ok(WaitResult::Period(wake))
    }

    fn read(&mut self, samples: &mut [f32]) {
        samples.copy_from_slice(&self.guitar[self.position..self.position + self.frames]);
        self.position = (self.position + self.frames) % self.guitar.len();
    }

    fn turn(&mut self) {
        self.has_xrun = self.card.write(self.slot, Clock::Monotonic.now_ns() - self.first_ns).is_some();
        self.slot += 1;
    }
}

impl Device {
    /// Starts the device, or restarts it after [`WaitResult::Xrun`].
    pub(crate) fn start(&mut self) -> io::Result<()> {
        match self {
            Self::Card(duplex) => duplex.start(),
            Self::Clock(clock) => {
                clock.start();
                Ok(())
            }
        }
    }

    /// Waits for the next period.
    #[inline]
    pub(crate) fn wait(&mut self) -> io::Result<WaitResult> {
        match self {
            Self::Card(duplex) => duplex.wait(),
            Self::Clock(clock) => clock.wait(),
        }
    }

    /// True if both directions start at the same time.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        match self {
            Self::Card(duplex) => duplex.is_linked(),
            Self::Clock(_) => true,
        }
    }

    /// Reads the samples of one input (from 0) in this period.
    #[inline]
    pub(crate) fn read(&mut self, input: u32, samples: &mut [f32]) {
        match self {
            Self::Card(duplex) => duplex.capture().read(input, samples),
            Self::Clock(clock) => clock.read(samples),
        }
    }

    /// True if there is only one output channel.
    pub(crate) fn is_mono(&mut self) -> bool {
        match self {
            Self::Card(duplex) => duplex.playback().channels() == 1,
            Self::Clock(_) => false,
        }
    }

    /// Writes the samples to play in this period.
    #[inline]
    pub(crate) fn write(&mut self, left: &[f32], right: &[f32]) {
        if let Self::Card(duplex) = self {
            duplex.playback().write(0, left);
            duplex.playback().write(1, right);
        }
    }

    /// Ends the period: returns both buffers to the card.
    #[inline]
    pub(crate) fn turn(&mut self) -> io::Result<()> {
        match self {
            Self::Card(duplex) => duplex.advance(),
            Self::Clock(clock) => {
                clock.turn();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_device_repeats_the_guitar_and_has_xruns() {
        let mut device = Device::Clock(ClockDevice::new(48_000, 480, 2).unwrap());
        let mut samples = vec![0.0; 480];
        let whole = guitar(48_000, 480);
        device.start().unwrap();
        for period in 0..whole.len() / 480 + 1 {
            // A busy machine may delay this test by a period.
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
