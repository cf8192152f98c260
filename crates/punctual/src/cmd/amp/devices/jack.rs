//! The card of a running JACK server.

use play::jack::{self, Offer};
use record::grouped;
use serde_json::json;
use sys::pcm::Direction;

/// The server's card in one direction.
pub struct Endpoint {
    direction: Direction,
    ports: Vec<String>,
    rate_hz: u32,
    period_frames: u32,
}

/// Both directions; empty if no server runs.
pub fn endpoints() -> Vec<Endpoint> {
    let Ok(Offer { rate_hz, period_frames, captures, plays }) = jack::offer() else { return Vec::new() };
    [(Direction::Playback, plays), (Direction::Capture, captures)]
        .map(|(direction, ports)| Endpoint { direction, ports, rate_hz, period_frames })
        .into()
}

impl Endpoint {
    fn name(&self) -> String {
        if self.ports.is_empty() { "no ports".to_owned() } else { self.ports.join(", ") }
    }

    pub fn lines(&self) -> Vec<String> {
        let Self { direction, rate_hz, .. } = self;
        let frames = grouped(self.period_frames.into());
        vec![
            format!("{direction:<8} jack: JACK, {}", self.name()),
            format!("         FLOAT; {rate_hz} Hz; periods of {frames} frames, set by the server"),
        ]
    }

    pub fn to_json(&self) -> serde_json::Value {
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
