//! The work of the audio thread with a sound card as pacer: wait for the card, then process every captured period.
//!
//! The card is real, and so are its xruns. The processed signal is the guitar; the captured input is read and dropped,
//! and the card plays silence, which costs as much as sound and disturbs nobody.

use std::io;

use sys::{
    clock::Clock,
    pcm::{Duplex, WaitResult},
};

use super::{
    Player,
    pace::Pace,
    shared::{Period, Writer},
};
use crate::{
    probe_threads::{Pacer, Wake, Work},
    timer::Grid,
};

/// The operations of a sound card that the work needs.
pub trait Sound: Send {
    /// Starts both directions, with a buffer of silence for playback; also after [`WaitResult::Xrun`].
    fn start(&mut self) -> io::Result<()>;
    /// Waits for the next period.
    fn wait(&mut self) -> io::Result<WaitResult>;
    /// Time at which the kernel updated the capture position, ns of the monotonic clock.
    fn stamp_ns(&self) -> i64;
    /// Copies a period of the input.
    fn read(&self, samples: &mut [f32]);
    /// Writes a period to both output channels and hands it over together with the captured one; `false` if the card
    /// has stopped.
    fn give(&mut self, samples: &[f32]) -> io::Result<bool>;
    /// Reads the monotonic clock.
    fn now_ns(&self) -> i64 {
        Clock::Monotonic.now_ns()
    }
}

/// A card of the kernel.
pub struct OnCard {
    pub duplex: Duplex,
    /// The captured channel.
    pub input: u32,
}

impl Sound for OnCard {
    fn start(&mut self) -> io::Result<()> {
        self.duplex.start()
    }

    #[inline]
    fn wait(&mut self) -> io::Result<WaitResult> {
        self.duplex.wait()
    }

    #[inline]
    fn stamp_ns(&self) -> i64 {
        self.duplex.capture().stamp_ns()
    }

    #[inline]
    fn read(&self, samples: &mut [f32]) {
        self.duplex.capture().read(self.input, samples);
    }

    #[inline]
    fn give(&mut self, samples: &[f32]) -> io::Result<bool> {
        self.duplex.playback().write(0, samples);
        self.duplex.playback().write(1, samples);
        self.duplex.advance()?;
        self.duplex.is_running()
    }
}

/// The work, with all memory that it needs.
pub struct Paced<P, S> {
    pub player: P,
    pub sound: S,
    pub pace: Pace,
    pub grid: Grid,
    pub writer: Writer,
    /// Frames of the buffer.
    pub buffer: u64,
    /// The signal to play repeatedly, a whole number of periods.
    pub signal: Box<[f32]>,
    /// Position of the next period in the signal.
    pub at: usize,
    /// Buffers for one period of one channel.
    pub captured: Box<[f32]>,
    pub silence: Box<[f32]>,
    pub left: Box<[f32]>,
    pub right: Box<[f32]>,
    pub state: State,
}

/// Progress of the card.
#[derive(Debug, Default)]
pub struct State {
    /// The first deadline after the first start, ns of the monotonic clock.
    first_ns: Option<i64>,
    /// Periods processed since the card was started.
    slot: u64,
    /// Periods ready to be processed.
    ready: u64,
    /// True if the card had an xrun.
    has_stopped: bool,
    /// Error that stops the card for good.
    failed: Option<io::ErrorKind>,
}

impl<P: Player, S: Sound> Work for Paced<P, S> {
    fn start(&mut self) -> io::Result<Pacer> {
        self.restart()?;
        Ok(Pacer::Periodic)
    }

    fn wait(&mut self) -> io::Result<Option<Wake>> {
        if let Some(kind) = self.state.failed {
            return Err(kind.into());
        }
        let period = self.captured.len() as u64;
        let woke_ns = match self.sound.wait()? {
            WaitResult::Period(wake) => {
                self.pace.stamp(self.state.slot * period + wake.captured, self.sound.stamp_ns());
                let free = self.buffer.saturating_sub(wake.queued);
                self.state.ready = (wake.captured.min(free) / period).max(1);
                wake.woke_ns
            }
            // The period that it waited for is still processed, too late.
            WaitResult::Xrun => {
                self.state.has_stopped = true;
                self.state.ready = 1;
                self.sound.now_ns()
            }
        };
        let deadline_ns = self.pace.deadline_ns(self.state.slot);
        Ok(Some(Wake { slot: self.state.slot, deadline_ns, woke_ns }))
    }

    fn at(&mut self, wake: Wake) {
        if let Err(error) = self.play(wake) {
            self.state.failed = Some(error.kind());
        }
    }
}

impl<P: Player, S: Sound> Paced<P, S> {
    fn restart(&mut self) -> io::Result<()> {
        self.sound.start()?;
        self.pace.start(self.sound.now_ns());
        self.state.slot = 0;
        self.state.has_stopped = false;
        Ok(())
    }

    /// Processes the periods that are ready.
    fn play(&mut self, wake: Wake) -> io::Result<()> {
        let first_ns = *self.state.first_ns.get_or_insert(wake.deadline_ns);
        let mut begun_ns = wake.woke_ns;
        for _ in 0..self.state.ready {
            let deadline_ns = self.pace.deadline_ns(self.state.slot);
            let end = self.at + self.left.len();
            self.sound.read(&mut self.captured);
            self.player.play(&self.signal[self.at..end], &mut self.left, &mut self.right);
            self.at = if end == self.signal.len() { 0 } else { end };
            let runs = !self.state.has_stopped && self.sound.give(&self.silence)?;
            let done_ns = self.sound.now_ns();
            self.state.slot += 1;
            let lost = if runs {
                None
            } else {
                self.restart()?;
                Some(self.grid.periods_in(self.sound.now_ns() - deadline_ns).cast_unsigned())
            };
            let [deadline_ns, since_ns, until_ns] = [deadline_ns, begun_ns, done_ns].map(|ns| ns - first_ns);
            self.writer.note(Period { deadline_ns, begun_ns: since_ns, done_ns: until_ns, lost }, &self.left);
            if !runs {
                break;
            }
            begun_ns = done_ns;
        }
        if let Some(rate) = self.pace.rate_ppm() {
            self.writer.shared.note_rate(rate);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
