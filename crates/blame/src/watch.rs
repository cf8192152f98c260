//! Watches a run: when a measuring thread tells a spike, reads out the trace of its CPU and explains it, while
//! measuring goes on.
//!
//! | module | holds |
//! |---|---|
//! | `traced` | culprits from the kernel's trace |
//! | `window` | the events of one CPU that a spike may still need |

mod traced;
mod window;

use std::{
    collections::BTreeMap,
    fs::File,
    path::Path,
    time::{Duration, Instant},
};

use machine::Root;
use record::{Blame, BlameMode, CauseKind, Evidence, Record, SeriesKind, Spike};

use crate::{
    Counters, Entry, Explanation, Ledger, RemedyFacts, Waiter, Wake, Work,
    idle::IdleStates,
    trace::{DatError, TraceError},
};
use traced::Traced;
pub(crate) use traced::ring_kib;

/// How culprits are to be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asked {
    /// In the kernel's trace where rights and kernel allow it, else by counters.
    #[default]
    Auto,
    /// In this way and no other.
    Only(BlameMode),
}

/// How long explaining may take at a time, the worst spikes first; at the usual 25 times a second it bounds what looking
/// may cost.
const LOOK_LIMIT: Duration = Duration::from_millis(100);
/// The worst spikes that are explained however long it takes: the first one reads the kernel's symbols, and the whole
/// process may be stopped meanwhile.
const EXPLAINED_AT_LEAST: usize = 64;
/// And how many spikes.
const EXPLAINED_AT_A_TIME: usize = 400;
/// Where the kernel with the EVL core shows it. Its threads wake outside what Linux can trace.
const EVL: &str = "sys/devices/virtual/evl";

/// Looks for culprits, in one of several ways.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    idle_states: IdleStates,
    source: Source,
    told: Blame,
    ledger: Ledger,
    keep: bool,
}

#[derive(Debug)]
enum Source {
    Off,
    /// By thread.
    Counters(BTreeMap<u32, Counters>),
    Trace(Box<Traced>),
}

impl Source {
    fn traced(cpus: &[u32], deep: bool, keep: bool) -> Result<Self, TraceError> {
        Ok(Self::Trace(Box::new(Traced::start(cpus, deep, keep)?)))
    }
}

impl Watch {
    /// Gets ready to look for the culprits on these CPUs; removes what crashed runs have left behind. With `keep`, all
    /// CPUs are traced, and what was read is kept for [`write_dat`](Self::write_dat).
    ///
    /// # Errors
    /// When the kernel's trace was asked for by name, and the kernel or the rights do not allow it. Otherwise the
    /// reason stands in the record, and counters take its place.
    pub fn start(asked: Asked, root: &Root, cpus: &[u32], keep: bool) -> Result<Self, TraceError> {
        let evl = root.exists(EVL);
        let (source, mode, why) = match asked {
            Asked::Only(BlameMode::Off) => (Source::Off, BlameMode::Off, String::new()),
            Asked::Only(BlameMode::Counters) => {
                (Source::Counters(BTreeMap::new()), BlameMode::Counters, "counters were asked for".to_owned())
            }
            Asked::Only(mode) => (Source::traced(cpus, mode == BlameMode::Deep, keep)?, mode, String::new()),
            Asked::Auto if evl => {
                let why = "threads of the EVL core wake outside what the kernel's trace sees".to_owned();
                (Source::Counters(BTreeMap::new()), BlameMode::Counters, why)
            }
            Asked::Auto => match Source::traced(cpus, false, keep) {
                Ok(source) => (source, BlameMode::Trace, String::new()),
                Err(error) => (Source::Counters(BTreeMap::new()), BlameMode::Counters, error.to_string()),
            },
        };
        let events = match &source {
            Source::Trace(traced) => traced.instance.events_on().to_vec(),
            _ => Vec::new(),
        };
        let told = Blame { mode, why, events, ..Blame::default() };
        let (root, idle_states) = (root.clone(), IdleStates::of(root));
        Ok(Self { root, idle_states, source, told, ledger: Ledger::default(), keep })
    }

    /// From what culprits are found.
    #[must_use]
    pub fn mode(&self) -> BlameMode {
        self.told.mode
    }

    /// Why culprits are not found from the kernel's trace; empty where they are.
    #[must_use]
    pub fn why_not(&self) -> &str {
        &self.told.why
    }

    /// To be told before threads begin to measure. Page faults and wake-ups of others are not traced, unless the trace
    /// is kept for other tools.
    pub fn begin(&mut self, thread_ids: &[u32]) {
        if let (Source::Trace(traced), false) = (&self.source, self.keep) {
            // Without the filters the rings fill sooner; what is lost then is told.
            let _ = traced.instance.only_of(thread_ids);
        }
    }

    /// As [`begin`](Self::begin), for threads that make others at any time: wake-ups of all are traced.
    pub fn follow(&mut self, thread_ids: &[u32]) {
        if let Source::Trace(traced) = &self.source {
            // As above; the kernel takes no filter of more than a page, and then keeps the one before.
            let _ = traced.instance.only_faults_of(thread_ids);
        }
    }

    /// To be called some twenty times a second, spike or not, with all threads that measure now: counters must be read
    /// before a spike to tell its cause, and events kept that a thread's next spike may need.
    pub fn tick(&mut self, waiters: &[Waiter], now_ns: u64) {
        let measures = |pid: u32| waiters.iter().any(|waiter| waiter.pid == pid);
        match &mut self.source {
            Source::Off => {}
            Source::Counters(counters) => {
                counters.retain(|&pid, _| measures(pid));
                for &Waiter { pid, cpu, .. } in waiters {
                    counters.entry(pid).or_insert_with(|| Counters::start(&self.root, cpu, pid)).read(now_ns);
                }
            }
            Source::Trace(traced) => traced.keep_for(waiters, now_ns),
        }
    }

    /// Explains the spikes that one measuring thread just told. `first_deadline_ns` is on CLOCK_MONOTONIC.
    pub fn look(&mut self, waiter: &Waiter, phase: &str, first_deadline_ns: u64, spikes: &mut [Spike]) {
        self.look_at_work(waiter, phase, first_deadline_ns, 0, spikes);
    }

    /// As [`look`](Self::look), for a thread whose spikes are periods: what they were made of usually takes `usual_work_ns`.
    pub fn look_at_work(
        &mut self,
        waiter: &Waiter,
        phase: &str,
        first_deadline_ns: u64,
        usual_work_ns: u64,
        spikes: &mut [Spike],
    ) {
        if spikes.is_empty() || matches!(self.source, Source::Off) {
            return;
        }
        if let Source::Trace(traced) = &mut self.source {
            traced.read(waiter.cpu);
        }
        let mut by_lateness: Vec<&mut Spike> = spikes.iter_mut().collect();
        by_lateness.sort_by_key(|spike| std::cmp::Reverse(spike.lateness_ns));
        self.told.passed_over += by_lateness.len().saturating_sub(EXPLAINED_AT_A_TIME) as u64;
        by_lateness.truncate(EXPLAINED_AT_A_TIME);
        let mut last_ns = 0;
        let (begun, count) = (Instant::now(), by_lateness.len());
        for (done, spike) in by_lateness.into_iter().enumerate() {
            if done >= EXPLAINED_AT_LEAST && begun.elapsed() > LOOK_LIMIT {
                self.told.passed_over += (count - done) as u64;
                break;
            }
            let deadline_ns = first_deadline_ns + spike.at_ns;
            let work_ns = spike.played.map_or(0, |played| played.dsp_ns.max(0));
            let woke_ns = deadline_ns.saturating_add_signed(spike.lateness_ns - work_ns);
            let work = Work { ns: work_ns.unsigned_abs(), usual_ns: usual_work_ns };
            let wake = Wake { deadline_ns, woke_ns, work };
            let mut explanation = self.explain(waiter, wake);
            self.idle_states.name(waiter.cpu, &mut explanation);
            let Explanation { culprits, timeline, evidence } = explanation;
            let &mut Spike { at_ns, lateness_ns, .. } = spike;
            let may_coincide = waiter.spins && evidence == Evidence::Counters;
            let cpu = waiter.cpu;
            self.ledger.add(Entry { cpu, phase, at_ns, deadline_ns, lateness_ns, culprits: &culprits, may_coincide });
            self.told.spikes += 1;
            self.told.incomplete += u64::from(evidence == Evidence::Incomplete);
            (spike.culprits, spike.timeline, spike.evidence) = (culprits, timeline, evidence);
            last_ns = last_ns.max(wake.end_ns());
        }
        if let Source::Trace(traced) = &mut self.source {
            traced.explained(waiter, last_ns);
        }
    }

    fn explain(&mut self, waiter: &Waiter, wake: Wake) -> Explanation {
        match &mut self.source {
            Source::Off => Explanation::default(),
            Source::Counters(counters) => counters
                .get(&waiter.pid)
                .map_or_else(Explanation::default, |counters| counters.explain(wake.deadline_ns, wake.end_ns())),
            Source::Trace(traced) => traced.explain(waiter, wake),
        }
    }

    /// A handle that freezes the trace when `0` is written to it; `None` without a trace.
    #[must_use]
    pub fn switch(&self) -> Option<File> {
        match &self.source {
            Source::Trace(traced) => traced.instance.switch().ok(),
            _ => None,
        }
    }

    /// Turns the trace on or off; nothing without one.
    pub fn set_on(&mut self, on: bool) {
        if let Source::Trace(traced) = &mut self.source {
            // Asked of a file that was written to before; should it fail, the cost that is measured by it is none.
            let _ = traced.instance.set_on(on);
        }
    }

    /// Writes the trace that led here, for trace-cmd and KernelShark; to be asked once, after it was frozen.
    ///
    /// # Errors
    /// The rings cannot be read, the file cannot be written, or there is no trace.
    pub fn write_dat(&mut self, path: &Path) -> Result<(), DatError> {
        match &mut self.source {
            Source::Trace(traced) => traced.instance.write_dat(path),
            _ => Ok(()),
        }
    }

    /// What was found so far, with the ledger.
    #[must_use]
    pub fn told(&self, facts: &RemedyFacts) -> Blame {
        let mut told = self.told.clone();
        if let Source::Trace(traced) = &self.source {
            told.lost_events = traced.lost_events();
        }
        told.ledger = self.ledger.accounts(facts);
        told
    }

    /// Gives the spikes that the ledger counts as stalls of all CPUs that cause in the record too. It takes the whole run
    /// to know them, so this is for its end.
    pub fn mend(&self, record: &mut Record) {
        let measured = RemedyFacts::of(record).measured;
        self.ledger.mend(record, &measured);
        if matches!(self.source, Source::Trace(_)) && measured.len() > 1 {
            count_strikes_of_all(record);
        }
    }
}

/// Writes into each series of gaps how many of those that are kept struck all CPUs at once.
fn count_strikes_of_all(record: &mut Record) {
    let of_all = |spike: &&Spike| spike.culprits.first().is_some_and(|main| main.cause.kind == CauseKind::AllCpus);
    for series in &mut record.series {
        if let SeriesKind::Gaps(noise) = &mut series.kind {
            noise.strikes_of_all = Some(series.spikes.iter().filter(of_all).count() as u64);
        }
    }
}
