//! Watches a run: when a measuring thread reports a spike, reads the trace of its CPU and explains the spike, while
//! the measurement goes on.
//!
//! | module | contents |
//! |---|---|
//! | `traced` | culprits from the kernel's trace |
//! | `window` | the events of one CPU that a spike may still need |

mod traced;
mod window;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fs::File,
    time::{Duration, Instant},
};

use machine::{Root, is_realtime_kernel, limits_realtime_threads};
use record::{Blame, Cause, CauseBound, CauseKind, Culprit, Evidence, Record, Series, SeriesKind, Spike};

use crate::{
    Counters, Entry, Explanation, Ledger, MeasuredThread, RemedyFacts, WakeUp, Work,
    bound::Target,
    idle::IdleStates,
    remedy,
    trace::{Snapshot, TraceError},
};
use traced::Traced;

/// The requested source of culprits; the record has the source that was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlameMode {
    /// The kernel's trace if rights and kernel allow it, else counters.
    #[default]
    Auto,
    /// The kernel's trace, or an error.
    Trace,
    /// The kernel's trace with every section that disables interrupts or preemption, or an error.
    Deep,
    /// Counters.
    Counters,
    /// None.
    Off,
}

/// Shortest time limit for explaining spikes in one round, worst spikes of each thread first. It bounds the delay of the
/// next round, and of the end of the run. After a long round the limit is half of that round, because more spikes wait:
/// the first spike reads the kernel's symbols, which takes seconds on a slow CPU.
const EXPLAIN_LIMIT: Duration = Duration::from_millis(100);
/// Spikes explained in one round regardless of the time limit, because the process may be stopped meanwhile.
const MIN_EXPLAINED: usize = 64;
/// Maximum number of spikes explained in one call.
const MAX_EXPLAINED: usize = 400;
/// Exists on kernels with the EVL core. Linux cannot trace the wake-ups of EVL threads.
const EVL: &str = "sys/devices/virtual/evl";

/// Finds the culprits of spikes during a run.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    idle_states: IdleStates,
    source: Source,
    /// The results so far, without the ledger.
    blame: Blame,
    ledger: Ledger,
    /// True if the trace is kept for a file.
    keep: bool,
    /// The latest call of [`tick`](Self::tick).
    round_began: Instant,
    /// Time limit for explaining spikes in this round.
    explain_limit: Duration,
    /// Number of threads that share [`explain_limit`](Self::explain_limit) equally.
    sharers: usize,
    /// Time limit for a round, for the spikes of all threads together; `None` for no limit.
    round_limit: Option<Duration>,
    /// True if the kernel may limit the CPU time of real-time threads.
    realtime_limited: bool,
    /// True if threads can preempt softirqs.
    preempts_softirqs: bool,
    /// The ids of all threads that this process had: the last spikes are explained after their threads have ended.
    own_threads: BTreeSet<u32>,
}

#[derive(Debug)]
enum Source {
    Off,
    /// By thread id.
    Counters(BTreeMap<u32, Counters>),
    Trace(Box<Traced>),
}

impl Source {
    fn counters() -> Self {
        Self::Counters(BTreeMap::new())
    }

    fn traced(cpus: &[u32], deep: bool, keep: bool) -> Result<Self, TraceError> {
        Ok(Self::Trace(Box::new(Traced::start(cpus, deep, keep)?)))
    }
}

impl Watch {
    /// Prepares to find culprits on these CPUs, and removes trace instances that crashed runs left. With `keep`, all
    /// CPUs are traced, and the events are kept for [`snapshot`](Self::snapshot).
    ///
    /// # Errors
    /// The trace was requested by name, and the kernel or the rights do not allow it. With [`BlameMode::Auto`],
    /// counters replace the trace then, and the record contains the reason.
    pub fn start(mode: BlameMode, root: &Root, cpus: &[u32], keep: bool) -> Result<Self, TraceError> {
        let (source, used, why) = match mode {
            BlameMode::Off => (Source::Off, record::BlameMode::Off, String::new()),
            BlameMode::Counters => {
                (Source::counters(), record::BlameMode::Counters, "counters were requested".to_owned())
            }
            BlameMode::Trace => (Source::traced(cpus, false, keep)?, record::BlameMode::Trace, String::new()),
            BlameMode::Deep => (Source::traced(cpus, true, keep)?, record::BlameMode::Deep, String::new()),
            BlameMode::Auto if root.exists(EVL) => {
                let why = "the kernel's trace does not contain the wake-ups of EVL threads".to_owned();
                (Source::counters(), record::BlameMode::Counters, why)
            }
            BlameMode::Auto => match Source::traced(cpus, false, keep) {
                Ok(source) => (source, record::BlameMode::Trace, String::new()),
                Err(error) => (Source::counters(), record::BlameMode::Counters, error.to_string()),
            },
        };
        let events = match &source {
            Source::Trace(traced) => traced.instance.events_on().to_vec(),
            _ => Vec::new(),
        };
        let blame = Blame { mode: used, why, events, ..Blame::default() };
        let (root, idle_states) = (root.clone(), IdleStates::of(root));
        let (ledger, round_began, explain_limit) = (Ledger::default(), Instant::now(), EXPLAIN_LIMIT);
        let (realtime_limited, preempts_softirqs) = (limits_realtime_threads(&root), is_realtime_kernel(&root));
        Ok(Self {
            root,
            idle_states,
            source,
            blame,
            ledger,
            keep,
            round_began,
            explain_limit,
            sharers: 1,
            round_limit: None,
            own_threads: BTreeSet::new(),
            realtime_limited,
            preempts_softirqs,
        })
    }

    /// Limits the time of a round, from its [`tick`](Self::tick), for the spikes of all threads together. Spikes that are
    /// left are counted as passed over.
    pub fn limit_round(&mut self, limit: Duration) {
        self.round_limit = Some(limit);
    }

    /// True if the time of this round is over.
    fn is_round_over(&self) -> bool {
        self.round_limit.is_some_and(|limit| self.round_began.elapsed() > limit)
    }

    /// The source of culprits in use.
    #[must_use]
    pub fn mode(&self) -> record::BlameMode {
        self.blame.mode
    }

    /// The reason why the kernel's trace is not used; empty if it is used.
    #[must_use]
    pub fn why_not_traced(&self) -> &str {
        match self.source {
            Source::Off => "--blame=off was given",
            Source::Counters(_) | Source::Trace(_) => &self.blame.why,
        }
    }

    /// Restricts page faults and wake-ups in the trace to these threads, unless the trace is kept for other tools. Call
    /// it before the threads begin to measure.
    pub fn filter_by_threads(&mut self, thread_ids: &[u32]) {
        self.own_threads.extend(thread_ids);
        if let (Source::Trace(traced), false) = (&self.source, self.keep) {
            // Without the filters the rings fill sooner; lost events are reported.
            let _ = traced.instance.filter_by_threads(thread_ids);
        }
    }

    /// Restricts page faults in the trace to these threads; traces the wake-ups of all threads, because these threads
    /// may create others at any time.
    pub fn filter_page_faults(&mut self, thread_ids: &[u32]) {
        if let Source::Trace(traced) = &self.source {
            // As above. The kernel refuses a filter longer than a page, and then keeps the previous one.
            let _ = traced.instance.filter_page_faults(thread_ids);
        }
    }

    /// Reads the counters, or keeps the events that the next spikes may need. Call it about 25 times a second with
    /// all threads that measure at this time, whether there was a spike or not.
    pub fn tick(&mut self, threads: &[MeasuredThread], now_ns: u64) {
        self.explain_limit = EXPLAIN_LIMIT.max(self.round_began.elapsed() / 2);
        self.round_began = Instant::now();
        self.sharers = 1;
        let measures = |pid: u32| threads.iter().any(|thread| thread.pid == pid);
        match &mut self.source {
            Source::Off => {}
            Source::Counters(counters) => {
                counters.retain(|&pid, _| measures(pid));
                for &MeasuredThread { pid, cpu, .. } in threads {
                    counters.entry(pid).or_insert_with(|| Counters::start(&self.root, cpu, pid)).read(now_ns);
                }
            }
            Source::Trace(traced) => traced.begin_round(threads, now_ns),
        }
    }

    /// Divides the time for explaining in this round between `sharers` threads. Call it after [`tick`](Self::tick) with
    /// the number of threads that have new spikes; without it, each thread may use all of the time.
    pub fn share_round(&mut self, sharers: usize) {
        self.sharers = sharers.max(1);
    }

    /// Reads the trace of a thread that sleeps until its deadlines, to bound its latency by its causes. Call it in each
    /// round after the first deadline is known; without a trace it does nothing.
    pub fn follow(&mut self, thread: &MeasuredThread, first_deadline_ns: u64, period_ns: u64) {
        if let Source::Trace(traced) = &mut self.source {
            let target = Target {
                pid: thread.pid,
                priority: thread.priority,
                first_deadline_ns,
                period_ns: period_ns.max(1),
                preempts_softirqs: self.preempts_softirqs,
                has_sections: false,
            };
            traced.follow(thread, target);
        }
    }

    /// The bound of the latency of a followed thread; `None` if it was not followed. `series` contains its measurements.
    /// `others` are the ids of other followed threads, with their largest lateness, ns: their wake-ups show more sections.
    pub fn cause_bound(
        &mut self,
        thread_id: u32,
        series: &Series,
        others: &[(u32, u64)],
        facts: &RemedyFacts,
    ) -> Option<CauseBound> {
        let Source::Trace(traced) = &mut self.source else { return None };
        let mut bound = traced.cause_bound(thread_id, series, others)?;
        mark_own_threads(&self.own_threads, thread_id, bound.parts.iter_mut().map(|part| &mut part.cause));
        let avoidable = |part: &&Culprit| !matches!(part.cause.kind, CauseKind::WakeUp | CauseKind::Unexplained);
        if let Some(first) = bound.parts.iter().find(avoidable) {
            bound.remedy = remedy(&first.cause, facts);
        }
        Some(bound)
    }

    /// Stops following all threads.
    pub fn stop_following(&mut self) {
        if let Source::Trace(traced) = &mut self.source {
            traced.stop_following();
        }
    }

    /// Explains new spikes of one measuring thread. `first_deadline_ns` is on CLOCK_MONOTONIC.
    pub fn explain_spikes(
        &mut self,
        thread: &MeasuredThread,
        phase: &str,
        first_deadline_ns: u64,
        spikes: &mut [Spike],
    ) {
        self.explain_periods(thread, phase, first_deadline_ns, 0, spikes);
    }

    /// Explains new spikes that include the work of their period. The work usually takes `usual_work_ns`.
    pub fn explain_periods(
        &mut self,
        thread: &MeasuredThread,
        phase: &str,
        first_deadline_ns: u64,
        usual_work_ns: u64,
        spikes: &mut [Spike],
    ) {
        if spikes.is_empty() || matches!(self.source, Source::Off) {
            return;
        }
        if let Source::Trace(traced) = &mut self.source {
            traced.read(thread.cpu);
        }
        self.note_own_threads();
        let count = spikes.len();
        let mut worst_first: Vec<&mut Spike> = spikes.iter_mut().collect();
        worst_first.sort_by_key(|spike| Reverse(spike.lateness_ns));
        let begun = Instant::now();
        let limit = self.explain_limit.div_f64(self.sharers as f64);
        let at_least = MIN_EXPLAINED.div_ceil(self.sharers);
        let (mut explained, mut last_ns) = (0, 0);
        for spike in worst_first.into_iter().take(MAX_EXPLAINED) {
            if self.is_round_over() || explained >= at_least && begun.elapsed() > limit {
                break;
            }
            let wake_up = wake_up_of(spike, first_deadline_ns, usual_work_ns);
            self.explain_spike(thread, phase, wake_up, spike);
            explained += 1;
            last_ns = last_ns.max(wake_up.end_ns());
        }
        self.blame.passed_over += (count - explained) as u64;
        if let Source::Trace(traced) = &mut self.source {
            traced.explained(thread, last_ns);
        }
    }

    /// Explains one spike, and adds it to the ledger.
    fn explain_spike(&mut self, thread: &MeasuredThread, phase: &str, wake_up: WakeUp, spike: &mut Spike) {
        let mut explanation = self.explain(thread, wake_up);
        self.idle_states.name(thread.cpu, &mut explanation);
        if !self.realtime_limited {
            without_throttling(&mut explanation);
        }
        mark_own_threads(&self.own_threads, thread.pid, causes_of(&mut explanation));
        let Explanation { culprits, timeline, evidence } = explanation;
        self.ledger.add(Entry {
            cpu: thread.cpu,
            thread: (thread.pid, thread.priority),
            phase,
            at_ns: spike.at_ns,
            deadline_ns: wake_up.deadline_ns,
            lateness_ns: spike.lateness_ns,
            culprits: &culprits,
            may_coincide: thread.spins && evidence == Evidence::Counters,
        });
        self.blame.spikes += 1;
        self.blame.incomplete += u64::from(evidence == Evidence::Incomplete);
        (spike.culprits, spike.timeline, spike.evidence) = (culprits, timeline, evidence);
    }

    /// Adds the threads of this process. A lookup for each cause of each spike would take longer than explaining.
    fn note_own_threads(&mut self) {
        let ids = self.root.list("proc/self/task");
        self.own_threads.extend(ids.iter().filter_map(|id| id.parse::<u32>().ok()));
    }

    fn explain(&mut self, thread: &MeasuredThread, wake_up: WakeUp) -> Explanation {
        match &mut self.source {
            Source::Off => Explanation::default(),
            Source::Counters(counters) => counters
                .get(&thread.pid)
                .map_or_else(Explanation::default, |counters| counters.explain(wake_up.deadline_ns, wake_up.end_ns())),
            Source::Trace(traced) => traced.explain(thread, wake_up),
        }
    }

    /// The setting of the trace that another program has changed, see
    /// [`Instance::disturbed`](crate::trace::Instance::disturbed). A trace that is kept may be frozen on purpose.
    #[must_use]
    pub fn disturbed(&self) -> Option<&'static str> {
        match &self.source {
            Source::Trace(traced) if !self.keep => traced.instance.disturbed(),
            Source::Trace(_) | Source::Off | Source::Counters(_) => None,
        }
    }

    /// Another handle of the trace's `tracing_on` file: writing `0` freezes the trace.
    ///
    /// # Errors
    /// There is no trace, or the process has too many open files.
    pub fn tracing_on_file(&self) -> Result<File, TraceError> {
        match &self.source {
            Source::Trace(traced) => traced.instance.tracing_on_file(),
            Source::Off | Source::Counters(_) => Err(TraceError::NotKept),
        }
    }

    /// Turns the trace on or off; does nothing without a trace.
    pub fn set_on(&mut self, on: bool) {
        if let Source::Trace(traced) = &mut self.source {
            // The file was written before. If this fails, the cost of tracing that is measured with it is zero.
            let _ = traced.instance.set_on(on);
        }
    }

    /// The kernel's trace up to now, for a file. The events stay available to explain later spikes.
    ///
    /// # Errors
    /// There is no trace that is kept, or the kernel's descriptions of its events cannot be read.
    pub fn snapshot(&mut self) -> Result<Snapshot, TraceError> {
        match &mut self.source {
            Source::Trace(traced) if self.keep => traced.snapshot(),
            Source::Trace(_) | Source::Off | Source::Counters(_) => Err(TraceError::NotKept),
        }
    }

    /// The results so far, with the ledger.
    #[must_use]
    pub fn to_record(&self, facts: &RemedyFacts) -> Blame {
        let mut blame = self.blame.clone();
        if let Source::Trace(traced) = &self.source {
            blame.lost_events = traced.lost_events();
        }
        // Many spikes name the same threads.
        let mut ended: BTreeSet<u32> = self.ledger.threads().collect();
        ended.retain(|id| !self.root.exists(&format!("proc/{id}")));
        blame.ledger = self.ledger.accounts(&RemedyFacts { ended, ..facts.clone() });
        blame
    }

    /// Changes the cause of the record's spikes that the ledger counts as stalls of all CPUs. Call it at the end of the
    /// run, because stalls are found from the spikes of the whole run.
    pub fn relabel_stalls(&self, record: &mut Record) {
        let measured = RemedyFacts::of(record).measured;
        self.ledger.relabel_stalls(record, &measured);
        if matches!(self.source, Source::Trace(_)) && measured.len() > 1 {
            count_strikes_of_all(record);
        }
    }
}

/// All causes in an explanation.
fn causes_of(explanation: &mut Explanation) -> impl Iterator<Item = &mut Cause> {
    let Explanation { culprits, timeline, .. } = explanation;
    let culprits = culprits.iter_mut().map(|culprit| &mut culprit.cause);
    culprits.chain(timeline.iter_mut().map(|stretch| &mut stretch.cause))
}

/// Marks the causes that are other threads of this process.
fn mark_own_threads<'a>(own_threads: &BTreeSet<u32>, explained: u32, causes: impl Iterator<Item = &'a mut Cause>) {
    for cause in causes {
        let (CauseKind::Thread | CauseKind::LateInterrupt, Some(thread_id)) = (cause.kind, cause.number) else {
            continue;
        };
        cause.own = thread_id != explained && own_threads.contains(&thread_id);
    }
}

/// Calls throttling unexplained, because the kernel does not limit real-time threads.
fn without_throttling(explanation: &mut Explanation) {
    for cause in causes_of(explanation).filter(|cause| cause.kind == CauseKind::Throttled) {
        cause.kind = CauseKind::Unexplained;
    }
}

/// The wake-up of a spike. The lateness of a played period includes its signal processing.
fn wake_up_of(spike: &Spike, first_deadline_ns: u64, usual_work_ns: u64) -> WakeUp {
    let deadline_ns = first_deadline_ns + spike.at_ns;
    let work_ns = spike.played.map_or(0, |played| played.dsp_ns.max(0));
    WakeUp {
        deadline_ns,
        woke_ns: deadline_ns.saturating_add_signed(spike.lateness_ns - work_ns),
        work: Work { ns: work_ns.unsigned_abs(), usual_ns: usual_work_ns },
    }
}

/// Stores in each noise series how many of its kept spikes are stalls of all CPUs.
fn count_strikes_of_all(record: &mut Record) {
    let of_all = |spike: &&Spike| spike.culprits.first().is_some_and(|main| main.cause.kind == CauseKind::AllCpus);
    for series in &mut record.series {
        if let SeriesKind::Gaps(noise) = &mut series.kind {
            noise.strikes_of_all = Some(series.spikes.iter().filter(of_all).count() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_the_time_for_explaining() {
        let folder = tempfile::tempdir().unwrap();
        let explained = |sharers| {
            let mut watch = Watch::start(BlameMode::Counters, &Root::at(folder.path()), &[], false).unwrap();
            let thread = MeasuredThread {
                pid: 1,
                priority: 9,
                cpu: 0,
                spins: false,
                awaits_device: false,
                slack_ns: 0,
                has_quota: false,
            };
            watch.tick(&[thread], 0);
            watch.share_round(sharers);
            watch.explain_limit = Duration::ZERO;
            watch.explain_spikes(&thread, "run", 0, &mut vec![Spike::default(); 1000]);
            (watch.blame.spikes, watch.blame.passed_over)
        };
        assert_eq!(explained(1), (64, 936));
        assert_eq!(explained(64), (1, 999));
        assert_eq!(explained(1000), (1, 999));
    }

    #[test]
    fn own_threads_are_the_other_threads_of_this_process() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc/self/task/42")).unwrap();
        let mut watch = Watch::start(BlameMode::Off, &Root::at(folder.path()), &[], false).unwrap();
        watch.note_own_threads();
        // It has ended when its last spikes are explained.
        std::fs::remove_dir_all(folder.path().join("proc/self/task/42")).unwrap();
        watch.note_own_threads();
        let thread = |kind, number| {
            let cause = Cause { number: Some(number), ..Cause::new(kind, "punctual") };
            Culprit { cause, ns: 1 }
        };
        let own = |explained| {
            let kind = CauseKind::Thread;
            let culprits = vec![thread(kind, 42), thread(CauseKind::LateInterrupt, 42), thread(kind, 43)];
            let mut explanation = Explanation { culprits, ..Explanation::default() };
            explanation.culprits.push(thread(CauseKind::Interrupt, 42));
            mark_own_threads(&watch.own_threads, explained, causes_of(&mut explanation));
            explanation.culprits.iter().map(|culprit| culprit.cause.own).collect::<Vec<_>>()
        };
        assert_eq!(own(7), [true, true, false, false]);
        assert_eq!(own(42), [false; 4]);
    }
}
