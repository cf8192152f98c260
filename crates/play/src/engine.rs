//! The audio thread, from outside.

use std::{
    io,
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use amp::Player;
use probes::{guard::Heartbeat, setup::STACK_BYTES, timer::Grant};
use sys::{pcm::Asked, sched::Policy};
use thiserror::Error;

use crate::{
    device::Device,
    load::{End, Load, Shared},
    thread,
};

/// How the audio thread is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How the card was set.
    pub card: Asked,
    /// The channel that is played, counted from 0.
    pub input: u32,
    /// The CPU to run on; any where `None`.
    pub cpu: Option<u32>,
    /// Its policy.
    pub policy: Policy,
}

impl Settings {
    /// Time of a period, ns.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        u64::from(self.card.period_frames) * 1_000_000_000 / u64::from(self.card.rate_hz.max(1))
    }
}

/// Why there is no audio thread.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The system has no room for a thread.
    #[error("cannot start the audio thread: {0}; close other programs")]
    Spawn(#[source] io::Error),
    /// It does not say what it was granted.
    #[error("cannot read back how the audio thread runs: {0}; is /proc mounted?")]
    Grant(#[source] io::Error),
}

/// A running audio thread. It ends when this is dropped.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    grant: Grant,
    /// Lets it begin.
    go: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Makes the thread, which has taken its policy and waits: memory that is to be locked can be locked now.
    ///
    /// # Errors
    /// [`EngineError`]. What the kernel refuses the thread is no error: see [`grant`](Self::grant).
    pub fn prepare(device: Device, player: Box<dyn Player>, settings: &Settings) -> Result<Self, EngineError> {
        let shared = Arc::new(Shared::default());
        let heartbeat = Heartbeat::start().map_err(EngineError::Spawn)?;
        let (go, wait_for_start) = mpsc::channel();
        let (tell_grant, granted) = mpsc::channel();
        let (theirs, settings) = (shared.clone(), settings.clone());
        let thread = std::thread::Builder::new()
            .name("audio".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || thread::run(device, player, &settings, &theirs, &heartbeat, &tell_grant, &wait_for_start))
            .map_err(EngineError::Spawn)?;
        let grant = granted.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(EngineError::Grant)?;
        Ok(Self { shared, grant, go: Some(go), thread: Some(thread) })
    }

    /// What the kernel granted, read back.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Starts the card.
    pub fn begin(&mut self) {
        if let Some(go) = self.go.take() {
            // A thread that has ended says why by itself.
            let _ = go.send(());
        }
    }

    /// Its work so far; the recent maximum begins anew.
    #[must_use]
    pub fn load(&self) -> Load {
        self.shared.read()
    }

    /// How it ended, once it has.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        let is_over = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        self.shared.end().or(is_over.then_some(End::Broken))
    }

    /// Ends it, and waits for that.
    pub fn stop(mut self) -> (Load, End) {
        self.join();
        (self.shared.read(), self.shared.end().unwrap_or(End::Broken))
    }

    fn join(&mut self) {
        self.shared.stop();
        self.go = None;
        if let Some(thread) = self.thread.take() {
            // It panics nowhere on purpose; its own message stands on standard error then.
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.join();
    }
}
