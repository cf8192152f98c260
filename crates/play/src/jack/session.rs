//! A client that plays: begun, connected, looked at.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use probes::{audio::Player, setup::floor_ns, timer::Grant};
use sys::{
    clock::Clock,
    jack::{Client, JackError},
};

use super::{
    Jack,
    work::{Begin, Seen, Work},
};
use crate::{engine::EngineError, load::Shared};

/// What a server may take for its first period.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client that plays.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    wires: Vec<(String, String)>,
    go: Arc<AtomicBool>,
}

impl Session {
    /// Begins with silence.
    pub fn prepare(jack: Jack, player: Box<dyn Player>, shared: &Arc<Shared>) -> Result<(Self, Grant), EngineError> {
        let Jack { mut client, wires, cpu } = jack;
        let go = Arc::new(AtomicBool::new(false));
        client.set_delay(frames(player.delay()));
        let (tell_grant, granted) = mpsc::channel();
        let rate_hz = client.rate_hz();
        let begin = Begin { cpu, floor_ns: floor_ns(Clock::Monotonic), tell_grant };
        let work = Work { player, shared: shared.clone(), go: go.clone(), rate_hz, begin: Some(begin) };
        client.activate(Box::new(work), Arc::new(Seen { shared: shared.clone(), rate_hz }))?;
        let grant = granted.recv_timeout(PATIENCE).map_err(|_| EngineError::Halted)?.map_err(EngineError::Grant)?;
        Ok((Self { client, wires, go }, grant))
    }

    /// Plays, and is connected.
    pub fn begin(&self) -> Result<(), JackError> {
        self.go.store(true, Relaxed);
        self.wires.iter().try_for_each(|(from, to)| self.client.connect(from, to))
    }

    /// Tells the server by how many frames what is played is late by itself, where that has changed.
    pub fn set_delay(&self, delay: usize) {
        self.client.set_delay(frames(delay));
    }

    /// Frames from a card's input to its output.
    pub fn latency_frames(&self) -> u32 {
        self.client.latency_frames()
    }

    pub fn told(&self) -> String {
        let (frames, rate_hz) = (self.client.period_frames(), self.client.rate_hz());
        format!("JACK, periods of {frames} frames at {rate_hz} Hz")
    }
}

/// As JACK counts them.
fn frames(samples: usize) -> u32 {
    samples.try_into().unwrap_or(u32::MAX)
}
