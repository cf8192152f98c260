//! Watches a program: reads its events, explains its spikes, and updates the record.

use std::{
    cmp::Reverse,
    time::{Duration, Instant},
};

use analysis::format_unsigned_ns;
use blame::{ClockOffsets, Exec, Follower, MeasuredThread, Process, Watch, fault_time_ns};
use machine::{CpuList, FreezerFiles, QuotaFiles, Root, usable_cpus};
use record::{Caveat, MonitorUse, Reason, Record, Spike, grouped};
use sys::{clock::Clock, sched, signal::termination_requests, usage::ThreadUsage};

use super::{
    PHASE, ProcessPlan, blamed,
    marked_files::MarkedFiles,
    monitors::{self, Monitors},
    program::{Program, stat},
    thread_table::{self, ThreadTable},
    unseen,
};
use crate::{
    error::RunError,
    run::{leave_measured_cpus, now},
};

/// Time between two reads of the program's events.
const TICK: Duration = Duration::from_millis(40);
/// Time between two reads if there are many events.
const SHORT_TICK: Duration = Duration::from_millis(5);
/// More events than this in one read are many; the ring buffers hold about ten thousand.
const MANY_EVENTS: u64 = 4_000;
/// Time between two reads of the threads in `/proc`.
const PROC_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two checks of the settings of the trace.
const TRACE_CHECK: Duration = Duration::from_secs(1);
/// In this time from the start, a command may set policies: `/proc` is read more often, ns.
const START_NS: u64 = 1_000_000_000;
/// Longest time between two reads that is used to explain spikes, because the ring buffers must be read.
const EXPLAIN_LIMIT: Duration = Duration::from_millis(20);
/// The number of threads that are named if none has a requested name.
const NAMES: usize = 8;
/// The number of processes whose control groups are checked for a freeze in each read.
const FREEZERS: usize = 64;
/// Niceness while the ring buffers are read.
const URGENT: i32 = -20;

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
    /// The processes that have just executed a program, whose files are not all mapped yet.
    starting: Vec<Starting>,
    /// The processes that the program started, and that still run when it ends: id and name of each.
    left: Vec<(u32, String)>,
    /// The CPUs that this thread has left to the program.
    left_cpus: CpuList,
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
    /// The processes of the program with the files that say if they are frozen.
    freezers: Vec<(u32, FreezerFiles)>,
    /// Time for which quotas had stopped the program's groups at the first reading, us.
    stopped_us: Option<u64>,
    /// The file of the quota that stopped the program.
    quota_file: Option<String>,
    /// When the settings of the trace were last checked.
    checked: Instant,
    /// The setting of the trace that another program has changed.
    disturbed: Option<&'static str>,
}

/// A process that has executed a program.
#[derive(Debug, Clone, Copy)]
struct Starting {
    exec: Exec,
    /// The number of searches of its files for marks since then.
    searched: u32,
}

impl Starting {
    /// The number of searches. The program may map libraries for some time.
    const SEARCHES: u32 = 4;
    /// As long as a process was searched less often, it is searched as soon as possible.
    const SOON: u32 = 2;

    /// True if its files must be searched again now.
    fn is_due(&self, now_ns: u64) -> bool {
        let after_ns = if self.searched == 0 { 0 } else { 1_000_000 << (2 * self.searched) };
        now_ns >= self.exec.at_ns + after_ns
    }
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
            starting: Vec::new(),
            left: Vec::new(),
            left_cpus: CpuList::default(),
            start_ns,
            end_ns: None,
            proc_read: now,
            reported: now,
            usage,
            ended: false,
            quota: QuotaFiles::default(),
            freezers: Vec::new(),
            stopped_us: None,
            quota_file: None,
            checked: now,
            disturbed: None,
        };
        session.find_quota();
        session.trace_threads();
        session.blame.limit_round(EXPLAIN_LIMIT);
        session.note_own_threads();
        session.trace_marks();
        session.marked.trace_command(session.program.words(), &mut session.follower);
        session.program.start()?;
        Ok(session)
    }

    /// Watches until the end. Calls `tick` 25 times a second, or more often if there are many events.
    pub fn watch(&mut self, mut tick: impl FnMut(&mut Self)) -> Result<EndReason, RunError> {
        // The ring buffers must be read before the kernel overwrites them, however busy the program keeps the CPUs. The
        // rest of the work may take long, and must not delay the program. Without the right to lower it, the niceness
        // stays.
        let niceness = sched::set_niceness(URGENT).ok();
        let set_niceness = |urgent: bool| {
            if let Some(usual) = niceness {
                let _ = sched::set_niceness(if urgent { URGENT } else { usual });
            }
        };
        let mut tick_length = TICK;
        let over = loop {
            std::thread::sleep(tick_length);
            let over = self.is_over();
            let before = self.follower.delivered_events();
            let read = self.read(over.is_some());
            set_niceness(false);
            read?;
            self.process_new();
            let busy = self.follower.delivered_events() - before > MANY_EVENTS;
            let starts = self.starting.iter().any(|starting| starting.searched < Starting::SOON);
            tick_length = if busy || starts { SHORT_TICK } else { TICK };
            if let Some(over) = over {
                break over;
            }
            tick(self);
            set_niceness(true);
        };
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

    /// Reads the events of the program.
    fn read(&mut self, last: bool) -> Result<(), RunError> {
        self.process.keep_spikes();
        self.process.set_clocks(ClockOffsets::read());
        if let Some(stopped_us) = self.quota.stopped_us(self.root) {
            self.process.note_quota(now_ns(), stopped_us.saturating_mul(1000));
            let before_us = *self.stopped_us.get_or_insert(stopped_us);
            if stopped_us > before_us && self.quota_file.is_none() {
                self.quota_file = self.quota.limiting_file(self.root);
            }
        }
        for (process, files) in &self.freezers {
            self.process.note_freeze(*process, now_ns(), files.are_frozen(self.root));
        }
        if last || self.checked.elapsed() >= TRACE_CHECK {
            self.checked = Instant::now();
            self.disturbed = self.disturbed.or_else(|| self.follower.disturbed());
        }
        let read = if last {
            self.end_ns = Some(now_ns());
            self.follower.finish(&mut self.process)
        } else {
            self.follower.read(&mut self.process)
        };
        read.map_err(unseen)
    }

    /// Explains new spikes, and finds out about new threads and files.
    fn process_new(&mut self) {
        self.trace_threads();
        self.trace_marks_of_started();
        self.blame.tick(&self.process.measured_threads(), now_ns());
        self.explain_spikes();
        let set = self.process.take_policies_set();
        if !set.is_empty() {
            self.threads.refresh(self.root, set.into_iter());
            self.note_policies();
        }
        if self.elapsed_ns() < START_NS || self.proc_read.elapsed() >= PROC_INTERVAL {
            self.proc_read = Instant::now();
            self.threads.refresh(self.root, self.process.living());
            self.note_policies();
            self.note_own_threads();
            self.find_quota();
            self.trace_marks();
            self.leave_cpus();
        }
        if self.ended && self.end_ns.is_some() {
            self.left = self.processes_left();
        }
    }

    /// Explains new spikes, the worst threads first, because the time is limited.
    fn explain_spikes(&mut self) {
        let mut fresh: Vec<(MeasuredThread, &mut [Spike])> = self.process.fresh_spikes().collect();
        fresh.sort_by_key(|(_, spikes)| Reverse(spikes.iter().map(|spike| spike.lateness_ns).max()));
        for (thread, spikes) in fresh {
            self.blame.explain_spikes(&thread, PHASE, self.start_ns, spikes);
        }
    }

    /// The processes of the program that run although the program has ended.
    fn processes_left(&self) -> Vec<(u32, String)> {
        let runs = |pid: &u32| *pid != self.program.pid && stat(self.root, *pid).is_some_and(|stat| !stat.ended);
        let living: Vec<u32> = self.process.living().collect();
        let processes = self.threads.processes().filter(|pid| living.contains(pid)).filter(runs);
        let name = |pid: u32| self.root.read(&format!("proc/{pid}/comm")).unwrap_or_default().trim().to_owned();
        processes.map(|pid| (pid, name(pid))).collect()
    }

    /// Moves this thread off the CPUs that threads of the program are pinned to, unless it has no others.
    pub fn leave_cpus(&mut self) {
        let Ok(all) = usable_cpus(self.root, None) else { return };
        let pinned = self.threads.pinned_cpus(self.process.living(), &all);
        if pinned != self.left_cpus {
            leave_measured_cpus(self.root, &pinned);
            self.left_cpus = pinned;
        }
    }

    fn note_own_threads(&mut self) {
        self.process.note_own_threads(thread_table::thread_ids(self.root, std::process::id()));
    }

    /// Finds the quota of the program's control group, and the freezers of its processes, which may change.
    fn find_quota(&mut self) {
        let processes = self.threads.processes().take(FREEZERS);
        self.freezers = processes.map(|pid| (pid, FreezerFiles::of(self.root, &pid.to_string()))).collect();
        self.quota = QuotaFiles::of(self.root, &self.program.pid.to_string());
    }

    /// Traces the page faults of the current threads.
    fn trace_threads(&mut self) {
        let tids: Vec<u32> = self.process.living().collect();
        if tids != self.traced {
            // New threads are read at once, because they may end soon.
            let traced = &self.traced;
            self.threads.refresh(self.root, tids.iter().copied().filter(|tid| !traced.contains(tid)));
            self.note_policies();
            self.blame.filter_page_faults(&tids);
            self.traced = tids;
        }
    }

    /// Traces the marks in the files of the program, which may load others.
    fn trace_marks(&mut self) {
        for pid in self.threads.processes() {
            self.marked.trace(self.root, pid, None, &mut self.follower);
        }
    }

    /// Traces the marks in the files of programs that were executed a short time ago.
    fn trace_marks_of_started(&mut self) {
        let execs = self.follower.take_execs();
        if !execs.is_empty() {
            self.threads.refresh(self.root, execs.iter().map(|exec| exec.pid));
            self.note_policies();
        }
        self.starting.extend(execs.into_iter().map(|exec| Starting { exec, searched: 0 }));
        let now_ns = now_ns();
        for starting in self.starting.iter_mut().filter(|starting| starting.is_due(now_ns)) {
            let late_ns = now_ns.saturating_sub(starting.exec.at_ns);
            self.marked.trace(self.root, starting.exec.pid, Some(late_ns), &mut self.follower);
            starting.searched += 1;
        }
        self.starting.retain(|starting| starting.searched < Starting::SEARCHES);
    }

    fn note_policies(&mut self) {
        for (tid, process, has_other_calls) in self.threads.programs() {
            self.process.set_process(tid, process, has_other_calls);
        }
        for (tid, deadline_ns, own_priority) in self.threads.policies() {
            self.process.set_deadline(tid, deadline_ns);
            self.process.set_own_priority(tid, own_priority);
        }
    }

    /// Notes the problems of the kernel's monitors at the end of the run.
    pub fn update_monitors(&mut self, now: &[MonitorUse]) {
        self.monitors.update(now);
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

    /// The reason why the figures are invalid, if another program has changed the trace.
    pub fn disturbance(&self) -> Option<Reason> {
        self.disturbed.map(|part| Reason {
            id: "trace.changed".to_owned(),
            text: format!("another program changed {part} of the trace, so events of the program are missing"),
            remedy: "run no other tool that resets traces, such as `trace-cmd reset`, and measure again".to_owned(),
        })
    }

    /// Updates the record with everything measured so far.
    pub fn update_record(&mut self, record: &mut Record) {
        record.series = self.process.series(PHASE, self.end_ns.unwrap_or_else(|| self.follower.delivered_until_ns()));
        record.series.iter_mut().for_each(|series| self.threads.add_to_series(series));
        record.phases[0].duration_ns = self.elapsed_ns();
        record.program = Some(self.program_record());
        record.blame = blamed(&self.blame, record);
        record.caveats = self.caveats();
        record.caveats.extend(incomplete_threads(record));
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
            ended_threads_left_out: self.process.ended_threads_dropped(),
            processes_left: self.left.len() as u64,
            own_cpu_ns: ThreadUsage::so_far().cpu_time_ns.saturating_sub(self.usage.cpu_time_ns),
            quota_file: self.quota_file.clone(),
            frozen_ns: self.process.frozen_ns(),
            ..record::Program::default()
        }
    }

    /// The caveats about lost events and threads.
    fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        let mut add = |kind: &str, text: String| caveats.push(Caveat { kind: kind.to_owned(), text });
        if self.follower.has_gaps() {
            let lost = grouped(self.follower.lost_events());
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
        if self.threads.programs().any(|(.., has_other_calls)| has_other_calls) {
            let text = "a 32-bit program ran, whose system calls have other numbers: each sleep of its threads ends a cycle, and \
                        the causes of its waits are unknown";
            add("events", text.to_owned());
        }
        let unmatched: Vec<String> = self.process.unmatched().iter().map(ToString::to_string).collect();
        if !unmatched.is_empty() {
            let (unmatched, mut names) = (unmatched.join(", "), self.process.names());
            let others = names.split_off(NAMES.min(names.len()));
            let (names, others) = (names.join(", "), if others.is_empty() { "" } else { ", and others" });
            add(
                analysis::process::UNMATCHED,
                format!("no thread with the name or id {unmatched} ran; the threads that ran are {names}{others}"),
            );
        }
        let left_out = self.process.threads_not_followed();
        if left_out > 0 {
            let (followed, left_out) = (record::THREADS_FOLLOWED, grouped(left_out));
            add(
                "threads",
                format!(
                    "{followed} threads were watched; {left_out} others that lived at the same time are in no figure"
                ),
            );
        }
        let dropped = self.process.ended_threads_dropped();
        if dropped > 0 {
            let (followed, dropped) = (record::THREADS_FOLLOWED, grouped(dropped));
            add(
                "threads",
                format!("{dropped} ended threads have no figures: the {followed} with the longest cycles have"),
            );
        }
        if let Some((pid, name)) = self.left.first() {
            let (count, after) = (grouped(self.left.len() as u64), format_unsigned_ns(self.elapsed_ns()));
            let (ended, foreground) = match self.program.is_command() {
                true => ("the command".to_owned(), "run it in the foreground, or "),
                false => (format!("process {}", self.program.pid), ""),
            };
            add(
                "running",
                format!(
                    "{ended} ended after {after}, and the measurement with it, but {count} of its processes still run, such \
                     as {name} ({pid}): {foreground}measure it with `punctual measure process {pid}`"
                ),
            );
        }
        caveats.extend(self.marked.caveats());
        if self.plan.monitors {
            caveats.extend(monitors::caveats(&self.monitors.to_record(self.follower.lost_reports())));
        }
        caveats
    }

    /// Ends the trace of the program. The trace for culprits continues until the end of the run.
    pub fn finish(self) -> Watch {
        self.blame
    }
}

/// A caveat for each thread many of whose cycles have no known length.
fn incomplete_threads(record: &Record) -> Vec<Caveat> {
    let caveat = |missing| Caveat {
        kind: "cycles".to_owned(),
        text: format!("{missing}: these cycles are in no figure, and the others may not be typical"),
    };
    analysis::process::incomplete_threads(record).into_iter().map(caveat).collect()
}

fn now_ns() -> u64 {
    Clock::Monotonic.now_ns().unsigned_abs()
}
