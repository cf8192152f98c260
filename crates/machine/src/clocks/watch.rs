//! Reads the clocks repeatedly during a measurement.

use std::{
    io,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use record::Clocks;

use super::read;
use crate::Root;

/// An ordinary thread that reads the clocks at an interval.
#[derive(Debug)]
pub struct ClockWatch {
    /// Dropping it ends the thread.
    stop: Sender<()>,
    thread: JoinHandle<Clocks>,
}

impl ClockWatch {
    /// Starts the thread. `first` is the reading before the run; the next one follows after `every`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(root: &Root, first: Clocks, every: Duration) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let (root, mut seen) = (root.clone(), first);
        let watch = move || loop {
            let stopped = stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout);
            seen.merge(&read(&root).unwrap_or_default());
            if stopped {
                return seen;
            }
        };
        let thread = thread::Builder::new().name("clocks".to_owned()).stack_size(256 << 10).spawn(watch)?;
        Ok(Self { stop, thread })
    }

    /// Reads the clocks a last time. Returns the worst values of all readings, and changes between them. `None` if the
    /// thread panicked.
    #[must_use]
    pub fn finish(self) -> Option<Clocks> {
        drop(self.stop);
        self.thread.join().ok()
    }
}
