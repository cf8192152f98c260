//! Watches a program: reads its events, explains its spikes, and updates the record.

use std::time::{Duration, Instant};

use blame::{Follower, Process, Watch, fault_time_ns};
use machine::{CpuList, QuotaFiles, Root};
use record::{Caveat, MonitorUse, Record};
use sys::{clock::Clock, sched, signal::termination_requests, usage::ThreadUsage};

use super::{
    PHASE, ProcessPlan, blamed,
    marked_files::MarkedFiles,
    monitors::{self, Monitors},
    program::Program,
    thread_table::{self, ThreadTable},
    unseen,
};
use crate::{error::RunError, run::now};

/// Time between two reads of the program's events.
const TICK: Duration = Duration::from_millis(40);
/// Time between two reads if there are many events.
const SHORT_TICK: Duration = Duration::from_millis(5);
/// More events than this in one read are many; the ring buffers hold about ten thousand.
const MANY_EVENTS: u64 = 4_000;
/// Time between two reads of the threads in `/proc`.
const PROC_INTERVAL: Duration = Duration::from_secs(1);
/// In this time from the start, a command may set policies and execute another program: `/proc` is read more often, ns.
const START_NS: u64 = 1_000_000_000;

/// What is unknown if the kernel does not have an event.
const EFFECTS_OF_MISSING_EVENTS: [(&str, &str); 6] = [
    ("raw_syscalls:sys_enter", "every sleep ends a cycle, also one that waits for a mutex, and no wait has a cause"),
    ("timer:hrtimer_start", "a cycle starts when the thread is woken, not at the time that it asked for"),
    ("lock:contention_begin", "waits for locks of the kernel have no cause"),
    ("exceptions:page_fault_user", "page faults are not counted"),
    ("signal:signal_deliver", "signals are not counted"),
    ("block:block_bio_queue", "only fsync, fdatasync and msync count as waits for a disk"),
];

/// A program that is being watched.
pub struct Session<'a> {
    plan: &'a ProcessPlan,
    root: &'a Root,
    program: &'a mut Program,
    blame: Watch,
    follower: Follower,
    process: Process,
    threads: ThreadTable,
    /// The threads whose page faults are traced to explain spikes.
    traced: Vec<u32>,
    marked: MarkedFiles,
    monitors: Monitors,
    start_ns: u64,
    /// End of the watching, ns on CLOCK_MONOTONIC.
    end_ns: Option<u64>,
    /// When the threads were last read from `/proc`.
    proc_read: Instant,
    /// When progress was last reported.
    reported: Instant,
    usage: ThreadUsage,
    ended: bool,
    quota: QuotaFiles,
}

/// The reasons why the watching ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    AsPlanned,
    BySignal,
}

impl<'a> Session<'a> {
    /// Starts to trace the program, then starts a command.
    pub fn start(
        plan: &'a ProcessPlan,
        root: &'a Root,
        program: &'a mut Program,
        blame: Watch,
        monitors: Vec<MonitorUse>,
    ) -> Result<Self, RunError> {
        let usage = ThreadUsage::so_far();
        let mut tids = thread_table::thread_ids(root, program.pid);
        let mut follower = Follower::start(&tids).map_err(unseen)?;
        // Also follows threads that were created before the thread that creates them was followed.
        loop {
            let more: Vec<u32> =
                thread_table::thread_ids(root, program.pid).into_iter().filter(|tid| !tids.contains(tid)).collect();
            if more.is_empty() {
                break;
            }
            follower.follow(&more).map_err(unseen)?;
            tids.extend(more);
        }
        let monitors = Monitors::trace(monitors, &mut follower);
        let start_ns = now_ns();
        let mut process = Process::new(start_ns, plan.threshold_ns, plan.selection.clone());
        if follower.sees_calls() {
            process.expect_calls();
        }
        process.set_fault_time(fault_time_ns());
        tids.iter().for_each(|&tid| process.follow(thread_table::thread_info(root, tid), start_ns));
        let mut threads = ThreadTable::default();
        threads.refresh(root, tids.into_iter());
        let now = Instant::now();
        let mut session = Self {
            plan,
            root,
            program,
            blame,
            follower,
            process,
            threads,
            traced: Vec::new(),
            marked: MarkedFiles::default(),
            monitors,
            start_ns,
            end_ns: None,
            proc_read: now,
            reported: now,
            usage,
            ended: false,
            quota: QuotaFiles::default(),
        };
        session.find_quota();
        session.trace_threads();
        session.trace_marks();
        session.program.start()?;
        Ok(session)
    }

    /// Watches until the end. Calls `tick` 25 times a second, or more often if there are many events.
    pub fn watch(&mut self, mut tick: impl FnMut(&mut Self)) -> Result<EndReason, RunError> {
        // The ring buffers must be read before the kernel overwrites them, however busy the program keeps the CPUs.
        // Without the right to lower it, the niceness stays.
        let niceness = sched::set_niceness(-20);
        let mut tick_length = TICK;
        let over = loop {
            std::thread::sleep(tick_length);
            let over = self.is_over();
            let before = self.follower.delivered_events();
            self.read(over.is_some())?;
            tick_length = if self.follower.delivered_events() - before > MANY_EVENTS { SHORT_TICK } else { TICK };
            if let Some(over) = over {
                break over;
            }
            tick(self);
        };
        let _ = niceness.map(sched::set_niceness);
        Ok(over)
    }

    fn is_over(&mut self) -> Option<EndReason> {
        self.ended = self.program.has_ended(self.root);
        if termination_requests() > 0 {
            return Some(EndReason::BySignal);
        }
        let long_enough = self.plan.duration_ns.is_some_and(|duration_ns| self.elapsed_ns() >= duration_ns);
        (self.ended || long_enough).then_some(EndReason::AsPlanned)
    }

    /// Reads the events of the program, and explains its new spikes.
    fn read(&mut self, last: bool) -> Result<(), RunError> {
        self.process.keep_spikes();
        if let Some(stopped_us) = self.quota.stopped_us(self.root) {
            self.process.note_quota(now_ns(), stopped_us.saturating_mul(1000));
        }
        let read = if last {
            self.end_ns = Some(now_ns());
            self.follower.finish(&mut self.process)
        } else {
            self.follower.read(&mut self.process)
        };
        read.map_err(unseen)?;
        self.trace_threads();
        self.blame.tick(&self.process.measured_threads(), now_ns());
        for (thread, spikes) in self.process.fresh_spikes() {
            self.blame.explain_spikes(&thread, PHASE, self.start_ns, spikes);
        }
        if self.elapsed_ns() < START_NS || self.proc_read.elapsed() >= PROC_INTERVAL {
            self.proc_read = Instant::now();
            self.threads.refresh(self.root, self.process.living());
            self.note_deadlines();
            self.find_quota();
            self.trace_marks();
        }
        Ok(())
    }

    /// Finds the quota of the program's control group, which may change.
    fn find_quota(&mut self) {
        self.quota = QuotaFiles::of(self.root, &self.program.pid.to_string());
    }

    /// Traces the page faults of the current threads.
    fn trace_threads(&mut self) {
        let tids: Vec<u32> = self.process.living().collect();
        if tids != self.traced {
            // New threads are read at once, because they may end soon.
            let traced = &self.traced;
            self.threads.refresh(self.root, tids.iter().copied().filter(|tid| !traced.contains(tid)));
            self.note_deadlines();
            self.blame.filter_page_faults(&tids);
            self.traced = tids;
        }
    }

    /// Traces the marks in the files of the program, which may execute others.
    fn trace_marks(&mut self) {
        for pid in self.threads.processes() {
            self.marked.trace(self.root, pid, &mut self.follower);
        }
    }

    fn note_deadlines(&mut self) {
        for (tid, deadline_ns) in self.threads.deadlines() {
            self.process.set_deadline(tid, deadline_ns);
        }
    }

    /// True if the program is a command that is started for the run.
    pub fn is_command(&self) -> bool {
        self.program.is_command()
    }

    /// Notes the problems of the kernel's monitors at the end of the run.
    pub fn update_monitors(&mut self, now: &[MonitorUse]) {
        self.monitors.update(now);
    }

    /// The CPUs that at least one of the program's threads may run on.
    pub fn cpus(&self) -> CpuList {
        self.threads.cpus()
    }

    /// Time since the watching began, ns.
    pub fn elapsed_ns(&self) -> u64 {
        self.end_ns.unwrap_or_else(now_ns).saturating_sub(self.start_ns)
    }

    /// True if it is time to report progress; then the interval starts again.
    pub fn is_due(&mut self, every: Option<Duration>) -> bool {
        let due = every.is_some_and(|every| self.reported.elapsed() >= every);
        if due {
            self.reported = Instant::now();
        }
        due
    }

    /// Updates the record with everything measured so far.
    pub fn update_record(&mut self, record: &mut Record) {
        record.series = self.process.series(PHASE, self.end_ns.unwrap_or_else(now_ns));
        record.series.iter_mut().for_each(|series| self.threads.add_to_series(series));
        record.phases[0].duration_ns = self.elapsed_ns();
        record.program = Some(self.program_record());
        record.blame = blamed(&self.blame, record);
        record.caveats = self.caveats();
        record.written_at = now();
    }

    fn program_record(&self) -> record::Program {
        record::Program {
            pid: self.program.pid,
            command: self.program.command.clone(),
            started: self.program.is_command(),
            ended: self.ended,
            events: self.follower.delivered_events(),
            lost_events: self.follower.lost_events(),
            other_threads: self.process.threads_without_series(),
            threads_left_out: self.process.threads_not_followed(),
            monitors: self.monitors.to_record(self.follower.lost_reports()),
            own_cpu_ns: ThreadUsage::so_far().cpu_time_ns.saturating_sub(self.usage.cpu_time_ns),
            ..record::Program::default()
        }
    }

    /// The caveats about lost events and threads.
    fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        let mut add = |kind: &str, text: String| caveats.push(Caveat { kind: kind.to_owned(), text });
        if self.follower.has_gaps() {
            let lost = self.follower.lost_events();
            add(
                "overflow",
                format!(
                    "the kernel overwrote {lost} events of the program before they could be read: its figures are \
                    incomplete, and the time of lost events is listed as unknown"
                ),
            );
        }
        let missing = self.follower.missing_events();
        for (event, effect) in EFFECTS_OF_MISSING_EVENTS {
            if missing.iter().any(|missing| missing == event) {
                add("events", format!("this kernel cannot trace {event}: {effect}"));
            }
        }
        let left_out = self.process.threads_not_followed();
        if left_out > 0 {
            let followed = record::THREADS_FOLLOWED;
            add(
                "threads",
                format!("only the first {followed} threads were watched; the other {left_out} are in no figure"),
            );
        }
        caveats.extend(self.marked.caveat());
        caveats.extend(monitors::caveats(&self.monitors.to_record(self.follower.lost_reports())));
        caveats
    }

    /// Ends the trace of the program. The trace for culprits continues until the end of the run.
    pub fn finish(self) -> Watch {
        self.blame
    }
}

fn now_ns() -> u64 {
    Clock::Monotonic.now_ns().unsigned_abs()
}
