//! The work of the measuring thread: wait for an interrupt, and count its parts.

use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use super::{
    driver::Switch,
    shared::Shared,
    source::{Found, Interrupted, Source},
};
use crate::{
    probe_threads::{Pacer, Wake, Work},
    timer::shared::add,
};

/// Waits for the interrupts of a source.
pub struct Waiting<S: Source> {
    pub source: S,
    pub shared: Arc<Shared>,
    /// The switch of the thread that makes the edges; `None` without one.
    pub driver: Option<Arc<Switch>>,
    /// The switch of the outside judge; `None` without one.
    pub judge: Option<Arc<judge::Switch>>,
    pub has_started: bool,
}

impl<S: Source> Work for Waiting<S> {
    fn at(&mut self, _wake: Wake) {}

    fn start(&mut self) -> io::Result<Pacer> {
        let started = self.source.start();
        if let Some(driver) = &self.driver {
            driver.begin();
        }
        self.has_started = started.is_ok();
        if let Some(judge) = self.judge.as_ref().filter(|_| self.has_started) {
            judge.begin();
        }
        started.inspect_err(|error| self.shared.fail(error))
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Option<Wake>> {
        match self.source.wait() {
            Ok(Found::Interrupt(interrupted)) => Ok(Some(self.count(interrupted))),
            Ok(Found::Spurious) => {
                add(&self.shared.spurious, 1);
                Ok(None)
            }
            Ok(Found::Nothing) => Ok(None),
            Err(error) => {
                self.shared.fail(&error);
                Err(error)
            }
        }
    }
}

impl<S: Source> Drop for Waiting<S> {
    /// The measurement has ended.
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            driver.end();
        }
        if self.has_started {
            self.source.finish();
        }
    }
}

impl<S: Source> Waiting<S> {
    #[inline]
    fn count(&self, interrupted: Interrupted) -> Wake {
        let Interrupted { zero_ns, kernel_ns, woke_ns, uncertainty_ns, lost, overrun, unanswered } = interrupted;
        let shared = &self.shared;
        if let Some(kernel_ns) = kernel_ns {
            shared.to_kernel.note(kernel_ns - zero_ns);
            shared.to_thread.note(woke_ns - kernel_ns);
        }
        if let Some(uncertainty_ns) = uncertainty_ns {
            shared.uncertainty.note(uncertainty_ns);
        }
        add(&shared.lost, lost);
        add(&shared.overruns, overrun.into());
        add(&shared.unanswered, unanswered);
        let slot = shared.seen.load(Relaxed);
        add(&shared.seen, 1);
        Wake { slot, deadline_ns: zero_ns, woke_ns }
    }
}
