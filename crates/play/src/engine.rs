//! Control of the audio thread from other threads.

use std::{
    io,
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use probes::audio::Player;
use probes::{
    guard::Heartbeat,
    setup::{Grant, STACK_BYTES},
};
use sys::pcm::StreamConfig;

use crate::{
    device::Device,
    error::EngineError,
    jack::{JackClient, Session},
    load::{End, Load, Shared},
    settings::Settings,
    thread,
};

/// A running audio thread. Dropping it ends the thread.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    grant: Grant,
    driver: Driver,
}

/// The owner of the audio thread.
#[derive(Debug)]
enum Driver {
    /// Our own thread, and the settings of its card. It waits until `go` receives a message.
    Own { card: StreamConfig, go: Option<mpsc::Sender<()>>, thread: Option<JoinHandle<()>> },
    /// The JACK server.
    Jack(Option<Session>),
}

impl Engine {
    /// Creates the thread, which takes its policy and then waits for [`begin`](Self::begin). Memory can be locked
    /// meanwhile.
    ///
    /// # Errors
    /// [`EngineError`]. A refused policy or CPU is not an error: [`grant`](Self::grant) reports it.
    pub fn prepare(device: Device, player: Box<dyn Player>, settings: &Settings) -> Result<Self, EngineError> {
        let shared = Arc::new(Shared::default());
        let heartbeat = Heartbeat::start().map_err(EngineError::Spawn)?;
        let (go, wait_for_start) = mpsc::channel();
        let (send_grant, granted) = mpsc::channel();
        let (thread_shared, card, settings) = (shared.clone(), settings.card.clone(), settings.clone());
        let body = move || {
            thread::run(device, player, &settings, &thread_shared, &heartbeat, &send_grant, &wait_for_start);
        };
        let thread = std::thread::Builder::new()
            .name("audio".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(body)
            .map_err(EngineError::Spawn)?;
        let grant = granted.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(EngineError::Grant)?;
        Ok(Self { shared, grant, driver: Driver::Own { card, go: Some(go), thread: Some(thread) } })
    }

    /// Registers with the JACK server, whose thread will play with the server's policy.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn prepare_jack(jack: JackClient, player: Box<dyn Player>) -> Result<Self, EngineError> {
        let shared = Arc::new(Shared::default());
        let (session, grant) = Session::prepare(jack, player, &shared)?;
        Ok(Self { shared, grant, driver: Driver::Jack(Some(session)) })
    }

    /// Policy and CPU of the audio thread, as read back from the kernel.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Starts the card, or connects the JACK ports.
    ///
    /// # Errors
    /// [`EngineError::Jack`].
    pub fn begin(&mut self) -> Result<(), EngineError> {
        match &mut self.driver {
            Driver::Own { go, .. } => {
                if let Some(go) = go.take() {
                    // Sending fails only if the thread has ended, and `end` reports why.
                    let _ = go.send(());
                }
            }
            Driver::Jack(Some(session)) => session.begin()?,
            Driver::Jack(None) => {}
        }
        Ok(())
    }

    /// Latency from input to output, frames: the buffers of the card, or the latencies that JACK knows. `None` if the
    /// JACK ports are not connected.
    #[must_use]
    pub fn latency_frames(&self) -> Option<u32> {
        match &self.driver {
            Driver::Own { card, .. } => Some(card.buffer_frames()),
            Driver::Jack(session) => session.as_ref().and_then(Session::latency_frames),
        }
    }

    /// Reports the delay of the player itself, frames, to the other JACK clients, which compensate for it. May wait for
    /// the JACK server.
    pub fn set_delay(&self, frames: usize) {
        if let Driver::Jack(Some(session)) = &self.driver {
            session.set_delay(frames);
        }
    }

    /// Describes the card or the JACK server with its current settings.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.driver {
            Driver::Own { card, .. } => card.to_string(),
            Driver::Jack(session) => session.as_ref().map_or_else(String::new, Session::describe),
        }
    }

    /// The load so far. Resets the recent maximum.
    #[must_use]
    pub fn load(&self) -> Load {
        self.shared.read()
    }

    /// Why the thread ended; `None` while it runs.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        let is_over = match &self.driver {
            Driver::Own { thread, .. } => thread.as_ref().is_none_or(JoinHandle::is_finished),
            Driver::Jack(session) => session.is_none(),
        };
        self.shared.end().or(is_over.then_some(End::Broken))
    }

    /// Ends the thread and waits for it.
    pub fn stop(mut self) -> (Load, End) {
        self.join();
        (self.shared.read(), self.shared.end().unwrap_or(End::Broken))
    }

    /// Ends the thread and waits for it. Afterwards [`end`](Self::end) returns the reason.
    pub fn join(&mut self) {
        self.shared.stop();
        match &mut self.driver {
            Driver::Own { go, thread, .. } => {
                *go = None;
                if let Some(thread) = thread.take() {
                    // An error means a panic, whose message is on standard error already.
                    let _ = thread.join();
                }
            }
            Driver::Jack(session) => {
                *session = None;
                // Has no effect if an earlier end was recorded.
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
