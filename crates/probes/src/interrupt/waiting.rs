//! The work of the measuring thread: wait for an interrupt, and count its parts.

use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use sys::{clock::Clock, signal::allow_interruption_here};

use super::{
    driver::Switch,
    missing::MissingNotes,
    shared::{OTHER_CLOCK, Shared, check_clock},
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
    pub missing: MissingNotes,
    /// The switch of the thread that makes the edges; `None` without one.
    pub driver: Option<Arc<Switch>>,
    /// The switch of the outside judge; `None` without one.
    pub judge: Option<Arc<judge::Switch>>,
    /// When the source had started, ns on CLOCK_MONOTONIC; `None` if it has not, or could not.
    pub began_ns: Option<i64>,
}

/// The longest time from an interrupt before the start to its event after it, ns.
const OLD_NS: i64 = 1_000_000_000;

impl<S: Source> Work for Waiting<S> {
    fn at(&mut self, _wake: Wake) {}

    fn waits_for_ever(&self) -> bool {
        self.source.waits_for_ever()
    }

    fn start(&mut self) -> io::Result<Pacer> {
        if self.source.waits_for_ever() {
            allow_interruption_here()?;
        }
        let started = self.source.start();
        self.began_ns = started.is_ok().then(|| Clock::Monotonic.now_ns());
        if let Some(driver) = &self.driver {
            driver.begin();
        }
        if let Some(judge) = self.judge.as_ref().filter(|_| started.is_ok()) {
            judge.begin();
        }
        started.inspect_err(|error| self.shared.fail(error))
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Option<Wake>> {
        let found = self.source.wait().and_then(|found| self.check(found));
        match found {
            Ok(Found::Interrupt(interrupted)) => Ok(Some(self.count(interrupted))),
            Ok(Found::Spurious) => {
                add(&self.shared.spurious, 1);
                Ok(None)
            }
            Ok(Found::Untimed) => {
                add(&self.shared.overruns, 1);
                Ok(None)
            }
            Ok(Found::Nothing) => self.shared.check_presence().map(|()| None),
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
        if self.began_ns.is_some()
            && let Some(interrupts) = self.source.finish()
        {
            add(&self.shared.after_end, interrupts);
        }
    }
}

impl<S: Source> Waiting<S> {
    /// Checks that the times of an interrupt are in order, and of this run.
    #[inline]
    fn check(&self, found: Found) -> io::Result<Found> {
        if let Found::Interrupt(Interrupted { zero_ns, kernel_ns, woke_ns, uncertainty_ns, .. }) = found {
            check_clock(zero_ns.saturating_sub(uncertainty_ns.unwrap_or(0)), woke_ns)?;
            check_clock(kernel_ns.unwrap_or(woke_ns), woke_ns)?;
            if self.began_ns.is_some_and(|began_ns| zero_ns < began_ns.saturating_sub(OLD_NS)) {
                return Err(OTHER_CLOCK.into());
            }
        }
        Ok(found)
    }

    #[inline]
    fn count(&mut self, interrupted: Interrupted) -> Wake {
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
        self.missing.note(zero_ns, lost.saturating_add(unanswered));
        let slot = shared.seen.load(Relaxed);
        add(&shared.seen, 1);
        Wake { slot, deadline_ns: zero_ns, woke_ns }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::PipeReader,
        time::{Duration, Instant},
    };

    use record::Interrupts;
    use sys::{
        clock::{Clock, Wait},
        sched::Policy,
    };

    use super::*;
    use crate::interrupt::missing::missing_times;
    use crate::{
        guard::Heartbeat,
        timer::{Core, End, Fraction, Settings, Timer},
    };

    /// A source whose wait has no time limit.
    struct Blocking(PipeReader);

    impl Source for Blocking {
        fn describe(&self) -> Interrupts {
            Interrupts::default()
        }

        fn keeps_each(&self) -> bool {
            true
        }

        fn waits_for_ever(&self) -> bool {
            true
        }

        fn start(&mut self) -> io::Result<Pacer> {
            Ok(Pacer::Irregular)
        }

        fn wait(&mut self) -> io::Result<Found> {
            match rustix::io::read(&self.0, &mut [0; 1]) {
                Ok(0) => Err(rustix::io::Errno::NODEV.into()),
                Err(rustix::io::Errno::INTR) => Ok(Found::Nothing),
                read => read.map(|_| Found::Spurious).map_err(Into::into),
            }
        }
    }

    /// Runs a silent source for `length`, or until a stop after `stop_after`. Returns how the thread ended.
    fn run(source: PipeReader, length: Duration, stop_after: Option<Duration>) -> End {
        run_source(Blocking(source), length, stop_after).0
    }

    /// Runs a source. Returns also its counters.
    fn run_source<S: Source + 'static>(
        source: S,
        length: Duration,
        stop_after: Option<Duration>,
    ) -> (End, Arc<Shared>) {
        let shared = Arc::<Shared>::default();
        let (missing, _times) = missing_times(1_000_000);
        let work = Waiting { source, shared: Arc::clone(&shared), missing, driver: None, judge: None, began_ns: None };
        let settings = Settings {
            role: "interrupt".to_owned(),
            has_own_role: true,
            cpu: None,
            policy: Policy::Other,
            clock: Clock::Monotonic,
            wait: Wait::Nanosleep,
            core: Core::Linux,
            period_ns: 1_000_000,
            fraction: Fraction::default(),
            samples: None,
            threshold_ns: i64::MAX,
            spikes_kept: 3,
            stop_on: None,
            spin: None,
        };
        let mut timer = Timer::prepare_with(Some(Box::new(work)), &settings, Heartbeat::start().unwrap()).unwrap();
        let now_ns = Clock::Monotonic.now_ns();
        timer.start(now_ns, now_ns + i64::try_from(length.as_nanos()).unwrap());
        let (began, latest) = (Instant::now(), Duration::from_secs(30));
        while !timer.has_ended() && stop_after.is_none_or(|after| began.elapsed() < after) {
            assert!(began.elapsed() < latest, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
            timer.collect();
        }
        timer.stop();
        timer.wait_for_end(latest);
        (timer.end().expect("it has ended"), shared)
    }

    #[test]
    fn a_silent_source_does_not_keep_a_thread_from_its_end() {
        let (source, writer) = io::pipe().unwrap();
        assert_eq!(run(source, Duration::from_millis(100), None), End::Planned);
        drop(writer);
        let (source, writer) = io::pipe().unwrap();
        assert_eq!(run(source, Duration::from_hours(1), Some(Duration::from_millis(100))), End::Planned);
        drop(writer);
        let (source, writer) = io::pipe().unwrap();
        drop(writer);
        assert_eq!(run(source, Duration::from_hours(1), None), End::PacerFailed, "it is gone");
    }

    /// A source with an interrupt each 5 ms, which it stamps with this function of the present time, ns.
    struct Stamped(fn(i64) -> i64);

    impl Source for Stamped {
        fn describe(&self) -> Interrupts {
            Interrupts::default()
        }

        fn keeps_each(&self) -> bool {
            true
        }

        fn start(&mut self) -> io::Result<Pacer> {
            Ok(Pacer::Irregular)
        }

        fn wait(&mut self) -> io::Result<Found> {
            std::thread::sleep(Duration::from_millis(5));
            let woke_ns = Clock::Monotonic.now_ns();
            Ok(Found::Interrupt(Interrupted {
                zero_ns: (self.0)(woke_ns),
                kernel_ns: None,
                woke_ns,
                uncertainty_ns: None,
                lost: 0,
                overrun: false,
                unanswered: 0,
            }))
        }
    }

    #[test]
    fn stamps_of_another_clock_end_the_run() {
        const SECOND_NS: i64 = 1_000_000_000;
        let of = |stamp| {
            let (end, shared) = run_source(Stamped(stamp), Duration::from_millis(100), None);
            (end, shared.error.load(Relaxed), shared.seen.load(Relaxed) > 0)
        };
        let refused = (End::PacerFailed, OTHER_CLOCK.raw_os_error(), false);
        assert_eq!(of(|now_ns| now_ns + 5_000_000), refused, "later than the reading");
        assert_eq!(of(|now_ns| now_ns + 1_700_000_000 * SECOND_NS), refused, "a wall clock");
        assert_eq!(of(|_| 0), refused);
        assert_eq!(of(|now_ns| now_ns - 1_000 * SECOND_NS), refused, "from before the run");
        assert_eq!(of(|now_ns| now_ns - 4_000_000), (End::Planned, 0, true));
    }
}
