//! Callbacks that run on the threads of the JACK server: one for each period, and one for each event.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
};

use probes::{
    audio::Player,
    setup::{self, Grant},
};
use sys::{
    alloc_guard::without_allocation,
    clock::Clock,
    jack::{Events, Period, Process},
    memory, sched, signal,
};

use crate::load::{End, Shared};

/// Stack to touch before the first period, bytes; a period needs less.
const STACK_TOUCHED: usize = 64 * 1024;

/// Setup of the server's thread, done once before the first period.
pub struct ThreadSetup {
    pub cpu: Option<u32>,
    pub floor_ns: u64,
    pub send_grant: mpsc::Sender<io::Result<Grant>>,
}

impl ThreadSetup {
    /// Runs on the server's thread, while the client is not yet connected.
    fn run(self) {
        let _ = self.send_grant.send(self.set_up());
    }

    fn set_up(&self) -> io::Result<Grant> {
        signal::block_termination_here()?;
        let pin_refused = self.cpu.and_then(|cpu| sched::set_affinity(&[cpu]).err());
        memory::touch_stack::<STACK_TOUCHED>();
        setup::granted(None, pin_refused, || self.floor_ns)
    }
}

/// The callback for each period.
pub struct AudioProcess {
    pub player: Box<dyn Player>,
    pub shared: Arc<Shared>,
    pub go: Arc<AtomicBool>,
    pub rate_hz: u32,
    pub setup: Option<ThreadSetup>,
}

impl Process for AudioProcess {
    fn period(&mut self, period: &mut Period<'_>) {
        if let Some(setup) = self.setup.take() {
            setup.run();
        }
        if !self.go.load(Relaxed) || self.shared.end().is_some() {
            return period.play(|_, left, right| {
                left.fill(0.0);
                right.fill(0.0);
            });
        }
        let began_ns = Clock::Monotonic.now_ns();
        without_allocation(|| period.play(|input, left, right| self.player.play(input, left, right)));
        let work_ns = (Clock::Monotonic.now_ns() - began_ns).max(0).cast_unsigned();
        let period_ns = period.frames() as u64 * 1_000_000_000 / u64::from(self.rate_hz.max(1));
        self.shared.note(work_ns, period_ns);
    }
}

/// The callbacks for events of the server.
pub struct EventHandler {
    pub shared: Arc<Shared>,
    pub rate_hz: u32,
}

impl Events for EventHandler {
    fn xrun(&self) {
        self.shared.note_xrun();
    }

    fn rate(&self, rate_hz: u32) {
        if rate_hz != self.rate_hz {
            self.shared.set_end(End::Rate(rate_hz));
        }
    }

    fn ended(&self) {
        self.shared.set_end(End::Server);
    }

    fn panicked(&self) {
        self.shared.set_end(End::Broken);
    }
}
