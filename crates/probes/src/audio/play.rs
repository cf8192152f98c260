//! The work of the audio thread with the clock as pacer: process every captured period.

use super::{
    Player,
    card::Card,
    shared::{Period, Writer},
};
use crate::probe_threads::{Wake, Work};

/// The work, with all memory that it needs.
pub struct Play<P, N> {
    pub player: P,
    pub card: Card,
    /// Reads the clock of the deadlines.
    pub now_ns: N,
    pub writer: Writer,
    /// The signal to play repeatedly, a whole number of periods.
    pub signal: Box<[f32]>,
    /// Position of the next period in the signal.
    pub at: usize,
    /// Both output channels of a period.
    pub left: Box<[f32]>,
    pub right: Box<[f32]>,
}

impl<P: Player, N: Fn() -> i64 + Send> Work for Play<P, N> {
    fn at(&mut self, wake: Wake) {
        let first_ns = wake.deadline_ns - self.card.deadline_ns(wake.slot);
        let mut begun_ns = wake.woke_ns - first_ns;
        for slot in self.card.captured(wake.slot, begun_ns) {
            let end = self.at + self.left.len();
            self.player.play(&self.signal[self.at..end], &mut self.left, &mut self.right);
            let done_ns = (self.now_ns)() - first_ns;
            self.at = if end == self.signal.len() { 0 } else { end };
            let lost = self.card.write(slot, done_ns);
            let deadline_ns = self.card.deadline_ns(slot);
            self.writer.note(Period { deadline_ns, begun_ns, done_ns, lost }, &self.left);
            if lost.is_some() {
                return;
            }
            begun_ns = done_ns;
        }
    }
}

#[cfg(test)]
mod tests;
