//! The amplifier's chain as a player.

use amp::Chain;
use probes::audio::Player;

/// Plays the amplifier's chain.
pub struct ChainPlayer(pub Chain);

impl Player for ChainPlayer {
    fn play(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        self.0.process(input, left, right);
    }

    fn delay(&self) -> usize {
        self.0.delay()
    }
}
