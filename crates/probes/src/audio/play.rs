//! What the audio thread does when it wakes: play every period that was captured.

use super::{
    Player,
    card::Card,
    shared::{Period, Writer},
};
use crate::timer::{Wake, Work};

/// The work, with all memory that it needs.
pub struct Play<P, N> {
    pub player: P,
    pub card: Card,
    /// Reads the clock of the deadlines.
    pub now_ns: N,
    pub writer: Writer,
    /// What is played, again and again: whole periods.
    pub signal: Box<[f32]>,
    /// Where in it the next period begins.
    pub at: usize,
    /// Both channels of a period.
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
