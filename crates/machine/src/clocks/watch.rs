//! Clocks looked at again and again, while something is measured.

use std::{
    io,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use record::Clocks;

use super::look;
use crate::Root;

/// An ordinary thread that looks at the clocks of a machine every so often.
#[derive(Debug)]
pub struct ClockWatch {
    /// Dropped, it ends the thread.
    stop: Sender<()>,
    thread: JoinHandle<Clocks>,
}

impl ClockWatch {
    /// Starts it. `first` is what was seen before; the next look comes after `every`.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(root: &Root, first: Clocks, every: Duration) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let (root, mut seen) = (root.clone(), first);
        let watch = move || loop {
            let stopped = stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout);
            seen.take_in(&look(&root).unwrap_or_default());
            if stopped {
                return seen;
            }
        };
        let thread = thread::Builder::new().name("clocks".to_owned()).stack_size(256 << 10).spawn(watch)?;
        Ok(Self { stop, thread })
    }

    /// Looks for a last time; the worst of all looks, and what happened in between. `None` where the thread has panicked.
    #[must_use]
    pub fn finish(self) -> Option<Clocks> {
        drop(self.stop);
        self.thread.join().ok()
    }
}
