//! A JACK client that plays, seen from other threads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use probes::{
    audio::Player,
    setup::{Grant, floor_ns},
};
use sys::{
    clock::Clock,
    jack::{Client, JackError},
};

use super::{
    client::JackClient,
    process::{AudioProcess, EventHandler, ThreadSetup},
};
use crate::{error::EngineError, load::Shared};

/// Maximum wait for the first period of the server.
const FIRST_PERIOD_TIMEOUT: Duration = Duration::from_secs(5);

/// A JACK client that plays.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    connections: Vec<(String, String)>,
    go: Arc<AtomicBool>,
}

impl Session {
    /// Activates the client, which plays silence until [`begin`](Self::begin).
    pub fn prepare(
        jack: JackClient,
        player: Box<dyn Player>,
        shared: &Arc<Shared>,
    ) -> Result<(Self, Grant), EngineError> {
        let JackClient { mut client, connections, cpu } = jack;
        let go = Arc::new(AtomicBool::new(false));
        client.set_delay(jack_frames(player.delay()));
        let (send_grant, granted) = mpsc::channel();
        let rate_hz = client.rate_hz();
        let setup = ThreadSetup { cpu, floor_ns: floor_ns(Clock::Monotonic), send_grant };
        let process = AudioProcess { player, shared: shared.clone(), go: go.clone(), rate_hz, setup: Some(setup) };
        client.activate(Box::new(process), Arc::new(EventHandler { shared: shared.clone(), rate_hz }))?;
        let grant = granted.recv_timeout(FIRST_PERIOD_TIMEOUT).map_err(|_| EngineError::Halted)?;
        Ok((Self { client, connections, go }, grant.map_err(EngineError::Grant)?))
    }

    /// Starts to play, and connects the ports.
    pub fn begin(&self) -> Result<(), JackError> {
        self.go.store(true, Relaxed);
        self.connections.iter().try_for_each(|(from, to)| self.client.connect(from, to))
    }

    /// Reports the delay of the player itself to the server, if it has changed.
    pub fn set_delay(&self, delay: usize) {
        self.client.set_delay(jack_frames(delay));
    }

    /// Latency from the input of the card to its output, frames. `None` if the input or the outputs are not connected.
    pub fn latency_frames(&self) -> Option<u32> {
        self.client.is_connected().then(|| self.client.latency_frames())
    }

    pub fn describe(&self) -> String {
        let (frames, rate_hz) = (self.client.period_frames(), self.client.rate_hz());
        format!("JACK, periods of {frames} frames at {rate_hz} Hz")
    }
}

fn jack_frames(samples: usize) -> u32 {
    samples.try_into().unwrap_or(u32::MAX)
}
