//! The audio thread, from outside.

use std::{
    io,
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use probes::{audio::Player, guard::Heartbeat, setup::STACK_BYTES, timer::Grant};
use sys::{jack::JackError, pcm::StreamConfig, sched::Policy};
use thiserror::Error;

use crate::{
    device::Device,
    jack::{Jack, Session},
    load::{End, Load, Shared},
    thread,
};

/// How the audio thread is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How the card was set.
    pub card: StreamConfig,
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
    /// JACK's server has something against it.
    #[error(transparent)]
    Jack(#[from] JackError),
    /// JACK's server took us, and plays nothing.
    #[error("JACK's server does not run: restart it")]
    Halted,
}

/// A running audio thread. It ends when this is dropped.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    grant: Grant,
    driver: Driver,
}

/// Whose the thread is.
#[derive(Debug)]
enum Driver {
    /// Ours, on a card that was set so. It waits until it is let go.
    Own { card: StreamConfig, go: Option<mpsc::Sender<()>>, thread: Option<JoinHandle<()>> },
    /// JACK's.
    Jack(Option<Session>),
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
        let (theirs, card, settings) = (shared.clone(), settings.card.clone(), settings.clone());
        let thread = std::thread::Builder::new()
            .name("audio".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || thread::run(device, player, &settings, &theirs, &heartbeat, &tell_grant, &wait_for_start))
            .map_err(EngineError::Spawn)?;
        let grant = granted.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(EngineError::Grant)?;
        Ok(Self { shared, grant, driver: Driver::Own { card, go: Some(go), thread: Some(thread) } })
    }

    /// The same on JACK's own thread, whose policy is the server's.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn prepare_jack(jack: Jack, player: Box<dyn Player>) -> Result<Self, EngineError> {
        let shared = Arc::new(Shared::default());
        let (session, grant) = Session::prepare(jack, player, &shared)?;
        Ok(Self { shared, grant, driver: Driver::Jack(Some(session)) })
    }

    /// What the kernel granted, read back.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Starts the card, or connects to JACK's ports.
    ///
    /// # Errors
    /// [`EngineError::Jack`].
    pub fn begin(&mut self) -> Result<(), EngineError> {
        match &mut self.driver {
            Driver::Own { go, .. } => {
                if let Some(go) = go.take() {
                    // A thread that has ended says why by itself.
                    let _ = go.send(());
                }
            }
            Driver::Jack(Some(session)) => session.begin()?,
            Driver::Jack(None) => {}
        }
        Ok(())
    }

    /// Frames from what comes in to what goes out, as far as buffers and what JACK knows of make it.
    #[must_use]
    pub fn latency_frames(&self) -> u32 {
        match &self.driver {
            Driver::Own { card, .. } => card.buffer_frames(),
            Driver::Jack(session) => session.as_ref().map_or(0, Session::latency_frames),
        }
    }

    /// Tells others by how many frames what is played is late by itself, which may change while it plays: JACK's clients reckon
    /// with it. May wait for JACK's server.
    pub fn set_delay(&self, frames: usize) {
        if let Driver::Jack(Some(session)) = &self.driver {
            session.set_delay(frames);
        }
    }

    /// What it plays on, in words, as it is now.
    #[must_use]
    pub fn told(&self) -> String {
        match &self.driver {
            Driver::Own { card, .. } => card.to_string(),
            Driver::Jack(session) => session.as_ref().map_or_else(String::new, Session::told),
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
        let is_over = match &self.driver {
            Driver::Own { thread, .. } => thread.as_ref().is_none_or(JoinHandle::is_finished),
            Driver::Jack(session) => session.is_none(),
        };
        self.shared.end().or(is_over.then_some(End::Broken))
    }

    /// Ends it, and waits for that.
    pub fn stop(mut self) -> (Load, End) {
        self.join();
        (self.shared.read(), self.shared.end().unwrap_or(End::Broken))
    }

    /// Ends it, and waits for that: from then on [`end`](Self::end) tells how it ended.
    pub fn join(&mut self) {
        self.shared.stop();
        match &mut self.driver {
            Driver::Own { go, thread, .. } => {
                *go = None;
                if let Some(thread) = thread.take() {
                    // It panics nowhere on purpose; its own message stands on standard error then.
                    let _ = thread.join();
                }
            }
            Driver::Jack(session) => {
                *session = None;
                // Unless it had ended before.
                self.shared.set_end(End::Stopped);
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.join();
    }
}
