//! What a JACK server has, if one runs.

use play::jack::{self, Offer};
use serde_json::json;
use sys::pcm::Direction;

/// A direction of the server's card.
pub struct Way {
    direction: Direction,
    ports: Vec<String>,
    rate_hz: u32,
    period_frames: u32,
}

/// Both directions; none where no server answers.
pub fn ways() -> Vec<Way> {
    let Ok(Offer { rate_hz, period_frames, captures, plays }) = jack::offer() else { return Vec::new() };
    [(Direction::Playback, plays), (Direction::Capture, captures)]
        .map(|(direction, ports)| Way { direction, ports, rate_hz, period_frames })
        .into()
}

impl Way {
    fn name(&self) -> String {
        if self.ports.is_empty() { "no port".to_owned() } else { self.ports.join(", ") }
    }

    pub fn in_words(&self) -> Vec<String> {
        let Self { direction, rate_hz, period_frames, .. } = self;
        vec![
            format!("{direction:<8} jack: JACK, {}", self.name()),
            format!("         FLOAT; {rate_hz} Hz; periods of {period_frames} frames, as the server has them"),
        ]
    }

    pub fn as_json(&self) -> serde_json::Value {
        json!({
            "device": "jack",
            "direction": self.direction.to_string(),
            "card": "JACK",
            "name": self.name(),
            "formats": ["FLOAT"],
            "rates_hz": [self.rate_hz],
            "channels": [self.ports.len(), self.ports.len()],
            "period_frames": [self.period_frames, self.period_frames],
            "buffer_frames": null,
            "can_map": null,
            "error": null,
            "held_by": null,
        })
    }
}
