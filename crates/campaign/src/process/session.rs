//! The watching itself: the program's events are read, its spikes explained, its figures told.

use std::time::{Duration, Instant};

use blame::{Follower, Process, Watch};
use machine::{CpuList, Root};
use record::{Caveat, Record};
use sys::{clock::Clock, sched, signal::termination_requests, usage::ThreadUsage};

use super::{
    PHASE, ProcessPlan, blamed,
    people::{self, People},
    program::Program,
    unseen,
};
use crate::{error::RunError, run::now};

/// How often the program's events are read.
const TICK: Duration = Duration::from_millis(40);
/// How often where there are many.
const SHORT_TICK: Duration = Duration::from_millis(5);
/// So many events at a time are many: the rings hold some ten thousand.
const MANY: u64 = 4_000;
/// How often `/proc` is asked about its threads.
const LOOK: Duration = Duration::from_secs(1);

/// A program that is watched.
pub struct Session<'a> {
    plan: &'a ProcessPlan,
    root: &'a Root,
    program: &'a mut Program,
    blame: Watch,
    follower: Follower,
    process: Process,
    people: People,
    /// The threads whose page faults are traced for explanations.
    traced: Vec<u32>,
    start_ns: u64,
    /// When it was over, ns on CLOCK_MONOTONIC.
    end_ns: Option<u64>,
    looked: Instant,
    watched: Instant,
    usage: ThreadUsage,
    ended: bool,
}

/// Why the watching was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    AsPlanned,
    BySignal,
}

impl<'a> Session<'a> {
    /// Begins to trace the program, and lets it go if it waits for that.
    pub fn start(
        plan: &'a ProcessPlan,
        root: &'a Root,
        program: &'a mut Program,
        blame: Watch,
    ) -> Result<Self, RunError> {
        let usage = ThreadUsage::so_far();
        let mut tids = people::threads(root, program.pid);
        let follower = Follower::start(&tids).map_err(unseen)?;
        // Threads that were made before their maker was followed.
        loop {
            let more: Vec<u32> =
                people::threads(root, program.pid).into_iter().filter(|tid| !tids.contains(tid)).collect();
            if more.is_empty() {
                break;
            }
            follower.follow(&more).map_err(unseen)?;
            tids.extend(more);
        }
        let start_ns = now_ns();
        let mut process = Process::new(start_ns, plan.threshold_ns, plan.selection.clone());
        tids.iter().for_each(|&tid| process.follow(people::known(root, tid), start_ns));
        let mut people = People::default();
        people.look(root, tids.into_iter());
        let (looked, watched) = (Instant::now(), Instant::now());
        let mut session = Self {
            plan,
            root,
            program,
            blame,
            follower,
            process,
            people,
            traced: Vec::new(),
            start_ns,
            end_ns: None,
            looked,
            watched,
            usage,
            ended: false,
        };
        session.trace_threads();
        session.program.go()?;
        Ok(session)
    }

    /// Watches until it is over. `tick` is called some twenty times a second.
    pub fn watch(&mut self, mut tick: impl FnMut(&mut Self)) -> Result<Over, RunError> {
        // The rings must be read before they are overwritten, whatever the program does to the CPUs. Where the right is
        // missing it is done as well as can be.
        let niceness = sched::set_niceness(-20);
        let mut tick_length = TICK;
        let over = loop {
            std::thread::sleep(tick_length);
            let over = self.is_over();
            let before = self.follower.delivered_events();
            self.read(over.is_some())?;
            tick_length = if self.follower.delivered_events() - before > MANY { SHORT_TICK } else { TICK };
            if let Some(over) = over {
                break over;
            }
            tick(self);
        };
        let _ = niceness.map(sched::set_niceness);
        Ok(over)
    }

    fn is_over(&mut self) -> Option<Over> {
        self.ended = self.program.has_ended(self.root);
        if termination_requests() > 0 {
            return Some(Over::BySignal);
        }
        let long_enough = self.plan.duration_ns.is_some_and(|duration_ns| self.elapsed_ns() >= duration_ns);
        (self.ended || long_enough).then_some(Over::AsPlanned)
    }

    /// Takes in what the program did, and has its fresh spikes explained.
    fn read(&mut self, last: bool) -> Result<(), RunError> {
        self.process.keep_spikes();
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
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.people.look(self.root, self.process.living());
        }
        Ok(())
    }

    /// Has the page faults of the threads traced that there are now.
    fn trace_threads(&mut self) {
        let tids: Vec<u32> = self.process.living().collect();
        if tids != self.traced {
            // The new ones may not live long.
            let traced = &self.traced;
            self.people.look(self.root, tids.iter().copied().filter(|tid| !traced.contains(tid)));
            self.blame.filter_page_faults(&tids);
            self.traced = tids;
        }
    }

    /// Whether the program was started for the run.
    pub fn is_ours(&self) -> bool {
        self.program.is_ours()
    }

    /// All CPUs that any of the program's threads may run on.
    pub fn cpus(&self) -> CpuList {
        self.people.cpus()
    }

    /// Since when it watches, ns.
    pub fn elapsed_ns(&self) -> u64 {
        self.end_ns.unwrap_or_else(now_ns).saturating_sub(self.start_ns)
    }

    /// Whether it is time to report progress.
    pub fn is_due(&mut self, every: Option<Duration>) -> bool {
        let due = every.is_some_and(|every| self.watched.elapsed() >= every);
        if due {
            self.watched = Instant::now();
        }
        due
    }

    /// Writes into the record what was seen so far.
    pub fn tell(&mut self, record: &mut Record) {
        record.series = self.process.series(PHASE, self.end_ns.unwrap_or_else(now_ns));
        record.series.iter_mut().for_each(|series| self.people.tell(series));
        record.phases[0].duration_ns = self.elapsed_ns();
        record.program = Some(self.told());
        record.blame = blamed(&self.blame, record);
        record.caveats = self.caveats();
        record.written_at = now();
    }

    fn told(&self) -> record::Program {
        record::Program {
            pid: self.program.pid,
            command: self.program.command.clone(),
            started: self.program.is_ours(),
            ended: self.ended,
            events: self.follower.delivered_events(),
            lost_events: self.follower.lost_events(),
            other_threads: self.process.threads_without_series(),
            threads_left_out: self.process.threads_not_followed(),
            own_cpu_ns: ThreadUsage::so_far().cpu_time_ns.saturating_sub(self.usage.cpu_time_ns),
            ..record::Program::default()
        }
    }

    /// What the figures cannot tell.
    fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        let mut add = |kind: &str, text: String| caveats.push(Caveat { kind: kind.to_owned(), text });
        if self.follower.has_gaps() {
            let lost = self.follower.lost_events();
            add(
                "overflow",
                format!(
                    "the kernel overwrote {lost} events of the program before they could be read: its figures are \
                     incomplete, and time whose events are lost is told as unknown"
                ),
            );
        }
        let left_out = self.process.threads_not_followed();
        if left_out > 0 {
            let followed = record::THREADS_FOLLOWED;
            add("threads", format!("{left_out} threads came after the first {followed} and are in no figure"));
        }
        caveats
    }

    /// Ends the trace; what looks for culprits goes on to the end of the run.
    pub fn finish(self) -> Watch {
        self.blame
    }
}

fn now_ns() -> u64 {
    Clock::Monotonic.now_ns().unsigned_abs()
}
