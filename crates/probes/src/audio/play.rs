//! What the audio thread does when it wakes: play every period that was captured.

use amp::Player;
use record::Played;

use super::{
    card::Card,
    shared::{Notable, Writer},
};
use crate::timer::{Wake, Work, shared::add};

/// Full scale below which a sample counts as silence: -120 dB.
const SILENCE: f32 = 1e-6;

/// The work, with all memory that it needs.
pub struct Play<P, N> {
    pub player: P,
    pub card: Card,
    /// Reads the clock of the deadlines.
    pub now_ns: N,
    pub threshold_ns: i64,
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
            self.note(slot, begun_ns, done_ns, lost);
            if lost.is_some() {
                return;
            }
            begun_ns = done_ns;
        }
    }
}

impl<P, N> Play<P, N> {
    #[inline]
    fn note(&mut self, slot: u64, begun_ns: i64, done_ns: i64, lost: Option<u64>) {
        let shared = &self.writer.shared;
        let deadline_ns = self.card.deadline_ns(slot);
        let (wait_ns, dsp_ns) = (begun_ns - deadline_ns, done_ns - begun_ns);
        let completion_ns = done_ns - deadline_ns;
        add(&shared.played, 1);
        // What lies outside the histograms is counted by themselves.
        let _ = shared.dsp.note(dsp_ns);
        let _ = shared.completion.note(completion_ns);
        add(&shared.silent, u64::from(self.left.iter().all(|sample| sample.abs() < SILENCE)));
        if completion_ns <= self.threshold_ns && lost.is_none() {
            return;
        }
        add(&shared.notable, 1);
        add(&shared.xruns, u64::from(lost.is_some()));
        add(&shared.lost, lost.unwrap_or(0));
        let notable =
            Notable { at_ns: deadline_ns.unsigned_abs(), played: Played { wait_ns, dsp_ns, xrun: lost.is_some() } };
        if self.writer.notable.push(notable).is_err() {
            add(&shared.untold, 1);
        }
    }
}

#[cfg(test)]
mod tests;
