//! The interrupt probe: a thread that waits for interrupts from outside.
//!
//! It is the work of a timer's thread, whose deadlines the device sets: each interrupt is a deadline, at the time that
//! the best clock gave it. Wake-ups, spikes and their causes are therefore counted as for a timer. The probe adds the
//! parts of this time, and counts lost interrupts.
//!
//! | module | contents |
//! |---|---|
//! | [`source`] | the interface of a source |
//! | `hpet`, `gpio`, `parport`, `pps`, `evdev`, `counter`, `ptp`, `samples`, `serial`, `traced` | the sources |
//! | `answer` | a line whose edges are the questions of an outside judge, and are answered |
//! | `capture` | a count that a clock drives, for capture registers |
//! | `missing` | the times of missing interrupts |
//! | `oob` | lines of GPIO chips, for a thread of the EVL core |
//! | `driver` | the thread that makes edges on an output line |
//! | `shared` | counters shared by the threads and their reader |
//! | `waiting` | the work of the measuring thread |

mod answer;
mod capture;
mod counter;
mod driver;
mod evdev;
mod gpio;
mod hpet;
mod missing;
mod oob;
mod parport;
mod pps;
mod ptp;
mod samples;
mod serial;
mod shared;
pub mod source;
mod traced;
mod waiting;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use judge::Session;
use record::{Caveat, Interrupts, Reason, Series, SeriesKind, Zero, counted, grouped};
use rustix::io::Errno;

pub use self::{
    answer::{AnswerLine, AnsweredLine, Answering, InBandAnswers, QuestionLine},
    capture::{CountError, RunningCount},
    counter::Counter,
    driver::{Drive, Driver, DriverSettings, Edges},
    evdev::Input,
    gpio::{InBandEdges, Line, LineEdges, NotedEdge},
    hpet::Hpet,
    oob::{OutOfBandAnswers, OutOfBandEdges, Stamps},
    parport::{Ack, Strobe},
    pps::Pulses,
    ptp::Pin,
    samples::Samples,
    serial::{ControlInput, ControlOutput},
    traced::Traced,
};
use self::{
    missing::{MissingTimes, missing_times},
    shared::Shared,
    source::Source,
    waiting::Waiting,
};
use crate::probe_threads::{ProbeThreads, ThreadInfo, Work};

/// The settings of an interrupt probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The source, as on the command line.
    pub name: String,
    /// Advice if no interrupt comes.
    pub if_silent: String,
    /// Time between two interrupts, as far as it is known, ns.
    pub period_ns: u64,
}

/// Time from the creation of the threads to the first edge or question. latmon asks after a second, and reports only after
/// another one.
const BEGINS_WITHIN: Duration = Duration::from_millis(500);
const JUDGE_BEGINS_WITHIN: Duration = Duration::from_millis(2_500);

/// An interrupt probe: the work for the timer's thread, until it is taken, and the results.
pub struct Interrupt {
    settings: Settings,
    /// The constant part of the figures.
    about: Interrupts,
    /// From [`Source::keeps_each`].
    keeps_each: bool,
    work: Option<Box<dyn Work>>,
    shared: Arc<Shared>,
    missing: MissingTimes,
    driver: Option<Driver>,
    judge: Option<Session>,
    /// True if an outside judge asks, here or at another machine.
    is_judged: bool,
    /// A file that exists as long as the source, if the kernel does not report the end of the source otherwise.
    presence: Option<PathBuf>,
    /// When the thread got its work.
    began: Option<Instant>,
    /// When the measurement ended.
    ended: Option<Instant>,
}

impl Interrupt {
    /// Prepares the probe. `driver` makes the edges, and has not started.
    #[must_use]
    pub fn prepare(source: impl Source + 'static, settings: Settings, driver: Option<Driver>) -> Self {
        Self::new(source, settings, driver, None, None)
    }

    /// Prepares a probe that answers the questions of an outside judge, which has not begun. `session` reads its results;
    /// `None` if another machine does.
    #[must_use]
    pub fn with_judge<L>(source: AnsweredLine<L>, settings: Settings, session: Option<Session>) -> Self
    where
        L: Answering + 'static,
    {
        let switch = source.switch();
        Self::new(source, settings, None, session, Some(switch))
    }

    /// `switch` is that of an outside judge, here or at another machine.
    fn new(
        source: impl Source + 'static,
        settings: Settings,
        driver: Option<Driver>,
        judge: Option<Session>,
        switch: Option<Arc<judge::Switch>>,
    ) -> Self {
        let about = Interrupts { source: settings.name.clone(), ..source.describe() };
        let (keeps_each, shared, is_judged) = (source.keeps_each(), Arc::new(Shared::default()), switch.is_some());
        let driver_switch = driver.as_ref().map(Driver::switch);
        let (notes, missing) = missing_times(settings.period_ns);
        let work = Waiting {
            source,
            shared: Arc::clone(&shared),
            missing: notes,
            driver: driver_switch,
            judge: switch,
            began_ns: None,
        };
        Self {
            settings,
            about,
            keeps_each,
            work: Some(Box::new(work)),
            shared,
            missing,
            driver,
            judge,
            is_judged,
            presence: None,
            began: None,
            ended: None,
        }
    }

    /// Ends the run when this file no longer exists. For sources whose wait does not fail when they are removed.
    #[must_use]
    pub fn while_exists(self, presence: PathBuf) -> Self {
        Self { presence: Some(presence), ..self }
    }

    fn figures(&self) -> Interrupts {
        let Shared { lost, spurious, unanswered, to_kernel, to_thread, uncertainty, .. } = &*self.shared;
        let [lost, spurious, unanswered] = [lost, spurious, unanswered].map(|count| count.load(Relaxed));
        // Edges after the last interrupt. The interrupt of the last edge may be on its way.
        let accounted = self.shared.seen.load(Relaxed) + lost + unanswered;
        let edges = self.driver.as_ref().map_or(0, Driver::edges);
        let after_last = edges.saturating_sub(accounted).saturating_sub(1);
        let max_uncertainty_ns = u64::try_from(uncertainty.max_ns()).ok();
        // The histogram gives the upper end of a class, which can be above the largest value.
        let median_ns = uncertainty.histogram().percentile(50.0).map(i64::unsigned_abs);
        Interrupts {
            skipped: self.driver.as_ref().map_or(0, Driver::skipped),
            lost,
            spurious,
            unanswered: unanswered + after_last,
            after_end: self.is_judged.then(|| self.shared.after_end.load(Relaxed)),
            overruns: self.shared.overruns.load(Relaxed),
            to_kernel: to_kernel.to_record(),
            to_thread: to_thread.to_record(),
            uncertainty_ns: median_ns.map(|ns| ns.min(max_uncertainty_ns.unwrap_or(ns))),
            max_uncertainty_ns,
            ..self.about.clone()
        }
    }
}

impl Interrupt {
    /// The reason that no interrupt came. `None` if one came or can still come. If the source failed, that is the reason, and
    /// there is no other.
    fn silence(&self) -> Option<Reason> {
        let (seen, spurious) = (self.shared.seen.load(Relaxed), self.shared.spurious.load(Relaxed));
        let edges = self.driver.as_ref().map(Driver::edges);
        let is_due = self.is_due();
        // Another machine begins to ask later.
        let can_come = self.ended.is_none() && (!is_due || self.is_judged && self.judge.is_none());
        if seen > 0 || can_come || self.shared.error.load(Relaxed) != 0 {
            return None;
        }
        let after = match edges {
            Some(edges) => format!(" after {} of the output line", counted(edges, "edge")),
            None => String::new(),
        };
        let others = if spurious > 0 { format!("; {} came without an edge", grouped(spurious)) } else { String::new() };
        let untimed = match (self.about.zero, self.shared.overruns.load(Relaxed)) {
            (Zero::Trace, 1..) => " whose handler is in the kernel's trace",
            _ => "",
        };
        let was_short = edges == Some(0) || edges.is_none() && !is_due;
        Some(Reason {
            id: "interrupt.silent".to_owned(),
            text: format!("no interrupt{untimed} came from {}{after}{others}", self.settings.name),
            remedy: if was_short {
                record::shell::run_longer(self.settings.period_ns)
            } else {
                self.settings.if_silent.clone()
            },
        })
    }

    /// True if the first interrupt should have come: after two periods.
    fn is_due(&self) -> bool {
        let begins = match (self.is_judged, self.ended) {
            (true, _) => JUDGE_BEGINS_WITHIN,
            (false, None) => BEGINS_WITHIN,
            (false, Some(_)) => Duration::ZERO,
        };
        let due = begins.saturating_add(Duration::from_nanos(self.settings.period_ns.saturating_mul(2)));
        let measured = |began: Instant| self.ended.unwrap_or_else(Instant::now).saturating_duration_since(began);
        self.began.is_some_and(|began| measured(began) >= due)
    }
}

impl ProbeThreads for Interrupt {
    fn work(&mut self, _index: usize) -> Option<Box<dyn Work>> {
        self.began = Some(Instant::now());
        self.work.take()
    }

    fn threads(&self) -> Vec<ThreadInfo<'_>> {
        self.driver.iter().map(Driver::thread_info).collect()
    }

    fn collect(&mut self) {
        if self.presence.as_ref().is_some_and(|file| !file.exists()) {
            self.shared.fail(&Errno::NODEV.into());
        }
        self.missing.collect();
    }

    fn add_to(&self, _index: usize, series: &mut Series) {
        let figures = self.figures();
        if self.keeps_each {
            // Each has a time of its own, so a late wake-up omits none.
            series.corrected = series.raw.clone();
            series.missed = 0;
        }
        series.losses = self.missing.losses().clone();
        series.kind = SeriesKind::Interrupts(Box::new(figures));
    }

    fn finish(&mut self) {
        self.ended = Some(Instant::now());
        if let Some(driver) = &mut self.driver {
            driver.stop();
        }
        if let Some(judge) = &mut self.judge {
            judge.finish();
        }
    }

    fn gone(&self) -> Option<String> {
        // The thread then ended for that reason.
        let lost = self.judge.as_ref().and_then(Session::lost);
        if lost.is_some() {
            return lost;
        }
        let error = self.shared.error.load(Relaxed);
        let why = || shared::in_words(error);
        (error != 0).then(|| format!("the source {} failed during the run: {}", self.settings.name, why()))
    }

    fn series(&self, phase: &str) -> Vec<Series> {
        self.judge.iter().map(|judge| judge.series(phase)).collect()
    }

    fn reasons(&self) -> Vec<Reason> {
        // Only a working judge asks questions. One that is lost soon has asked none.
        let of_judge: Vec<Reason> = self.judge.iter().flat_map(Session::reasons).collect();
        let is_broken = of_judge.iter().any(|reason| judge::BROKEN.contains(&reason.id.as_str()));
        let is_judge = !is_broken && (self.is_due() || self.judge.as_ref().is_none_or(|judge| judge.lost().is_none()));
        let silent = if is_judge { self.silence() } else { None };
        // Input and output are mostly lines of one device.
        let is_gone = self.shared.error.load(Relaxed) != 0;
        let failed = self.driver.as_ref().and_then(Driver::error).filter(|_| !is_gone).map(|error| Reason {
            id: "interrupt.output".to_owned(),
            text: format!("the output line could not be set: {error}"),
            remedy: "see `dmesg`".to_owned(),
        });
        silent.into_iter().chain(failed).chain(of_judge).collect()
    }

    fn caveats(&self) -> Vec<Caveat> {
        let caveat = |text| Caveat { kind: "interrupt".to_owned(), text };
        let figures = self.figures();
        let spurious = (figures.spurious > 0).then(|| {
            caveat(format!(
                "{} came without an edge of the output line, as from a switch that bounces, and {} not counted",
                counted(figures.spurious, "interrupt"),
                if figures.spurious == 1 { "is" } else { "are" }
            ))
        });
        let unanswered = (figures.unanswered > 0)
            .then(|| caveat(format!("{} of the output line caused no interrupt", counted(figures.unanswered, "edge"))));
        let skipped = (figures.skipped > 0).then(|| {
            caveat(format!(
                "left out: {} of the output line that could not be made in time",
                counted(figures.skipped, "edge")
            ))
        });
        let lost = (figures.lost > 0).then(|| {
            let why = match self.keeps_each {
                _ if self.about.zero == Zero::Trace => "the device reported several runs of its handler as one",
                true => "the kernel's buffer was full",
                false => "several were reported as one",
            };
            caveat(format!("lost: {}, because {why}", counted(figures.lost, "interrupt")))
        });
        let overruns = figures.overruns;
        let overrun = (overruns > 0).then(|| {
            caveat(match self.about.zero {
                Zero::Trace => format!(
                    "{} not known, because the kernel's trace does not contain the handler",
                    if overruns == 1 {
                        "the time of an interrupt is".to_owned()
                    } else {
                        format!("the times of {} interrupts are", grouped(overruns))
                    }
                ),
                Zero::Counter | Zero::Edge | Zero::Handler => format!(
                    "the kernel's queue of events was full {}: it does not say how many interrupts it lost",
                    counted(overruns, "time")
                ),
            })
        });
        let of_judge = self.judge.iter().flat_map(Session::caveats);
        [skipped, spurious, unanswered, lost, overrun].into_iter().flatten().chain(of_judge).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{source::Found, *};
    use crate::probe_threads::Pacer;

    struct Silent;

    impl Source for Silent {
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
            Ok(Found::Nothing)
        }
    }

    /// With a period of a second and longer, the first interrupt comes later than the first results are shown.
    #[test]
    fn a_source_is_silent_only_after_two_periods() {
        let remedies = |period_ns: u64, waits: Duration| {
            let settings = Settings { name: "hpet".to_owned(), if_silent: "connect it".to_owned(), period_ns };
            let mut interrupt = Interrupt::prepare(Silent, settings, None);
            interrupt.work(0);
            std::thread::sleep(waits);
            let early: Vec<String> = interrupt.reasons().into_iter().map(|reason| reason.remedy).collect();
            interrupt.finish();
            (early, interrupt.reasons().into_iter().map(|reason| reason.remedy).collect::<Vec<_>>())
        };
        let longer = "run longer, e.g. --duration 30s".to_owned();
        assert_eq!(remedies(3_000_000_000, Duration::ZERO), (vec![], vec![longer]));
        let connect = vec!["connect it".to_owned()];
        assert_eq!(remedies(1_000_000, BEGINS_WITHIN + Duration::from_millis(10)), (connect.clone(), connect));
    }

    #[test]
    fn the_record_contains_the_largest_error_of_a_time() {
        let settings = Settings { name: "hpet".to_owned(), if_silent: String::new(), period_ns: 0 };
        let interrupt = Interrupt::prepare(Silent, settings, None);
        let figures = interrupt.figures();
        assert_eq!((figures.uncertainty_ns, figures.max_uncertainty_ns), (None, None));
        for error_ns in [300, 301, 45_678] {
            assert!(interrupt.shared.uncertainty.note(error_ns));
        }
        let figures = interrupt.figures();
        assert_eq!((figures.uncertainty_ns, figures.max_uncertainty_ns), (Some(301), Some(45_678)));
        for _ in 0..10 {
            assert!(interrupt.shared.uncertainty.note(45_678));
        }
        assert_eq!(interrupt.figures().uncertainty_ns, Some(45_678), "not the end of its class");
    }
}
