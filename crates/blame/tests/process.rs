//! Compares the cycles of small programs, found in the trace, with what the programs measured themselves.
//!
//! The programs run live (needs root; tools/test skips `rights::` without it), with as many cycles as the environment
//! variable `CYCLES` says. `UPDATE=1 CYCLES=4` also records them, for the tests that replay them without rights.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

#[path = "process/programs.rs"]
mod programs;
#[path = "process/recorded.rs"]
mod recorded;

use blame::{ClockOffsets, Event, Process, Selection, ThreadInfo, event::Comm};
use programs::Truth;
use record::{Cycle, CycleCause, LockWait, ProcessThread};

/// A program that was traced.
#[derive(Default)]
struct Recording {
    /// CPU time of a page fault, ns.
    fault_ns: u64,
    tids: Vec<u32>,
    /// Readings of the quota: time, and how long it stopped threads, ns.
    quota: Vec<(u64, u64)>,
    truths: Vec<Truth>,
    events: Vec<Event>,
}

/// The thread `measured`, and the start of the run, ns on CLOCK_MONOTONIC.
fn watched(recording: &Recording) -> (ProcessThread, u64) {
    let events = &recording.events;
    let start_ns = events[0].at_ns;
    let mut process = Process::new(start_ns, u64::MAX, Selection::default());
    process.expect_calls();
    process.set_fault_time(recording.fault_ns);
    process.set_clocks(ClockOffsets::read());
    for &tid in &recording.tids {
        process.follow(ThreadInfo { tid, comm: Comm::new("measured"), asleep: true }, 0);
    }
    let mut quota = recording.quota.iter().peekable();
    for event in events {
        // Events are read later than the quota.
        while let Some(&(at_ns, stopped_ns)) = quota.next_if(|reading| reading.0 < event.at_ns + 40_000_000) {
            process.note_quota(at_ns, stopped_ns);
        }
        process.handle_event(event);
    }
    let series = process.series("run", events.last().unwrap().at_ns);
    let thread = series.iter().find(|series| series.role == "measured").unwrap();
    (thread.kind.process().unwrap().clone(), start_ns)
}

/// Asserts that each cycle has the right response time, within 5 % and 50 us or what the thread computed after its last
/// reading of the clock, and the right cause. One of 100 cycles may
/// differ, and one of fewer: this machine stalls.
fn check(name: &str, recording: &Recording) -> ProcessThread {
    let (thread, start_ns) = watched(recording);
    let cycle_of = |truth: &Truth| {
        let at_ns = truth.release_ns.cast_unsigned() - start_ns;
        thread.worst_cycles.iter().find(|cycle| cycle.at_ns.abs_diff(at_ns) < 100_000)
    };
    let is_right = |truth: &Truth, cycle: &Cycle| {
        let tolerated_ns = truth.response_ns / 20 + 50_000;
        let right_ns = truth.response_ns - tolerated_ns..=truth.response_ns + truth.after_ns + tolerated_ns;
        right_ns.contains(&cycle.response_ns().cast_signed())
            && (cycle.main_cause() == Some(truth.cause) || truth.cause == CycleCause::Unknown)
    };
    let truths = &recording.truths;
    let pairs = truths.iter().map(|truth| (truth, cycle_of(truth)));
    let wrong: Vec<_> = pairs.filter(|(truth, cycle)| cycle.is_none_or(|cycle| !is_right(truth, cycle))).collect();
    println!("{name}: {} of {} cycles right", truths.len() - wrong.len(), truths.len());
    assert!(wrong.len() <= (truths.len() / 100).max(1), "{name}: {} of {}: {wrong:#?}", wrong.len(), truths.len());
    check_details(name, &thread);
    thread
}

/// Asserts that threads, locks and calls are the right ones.
fn check_details(name: &str, thread: &ProcessThread) {
    let lock = || &thread.locks.first().unwrap_or_else(|| panic!("{name}: no lock")).worst;
    let names = |lock: &LockWait| {
        let by = lock.preempter.clone().unwrap_or_default();
        (lock.holder.clone(), by.kept, by.comm)
    };
    let is = |lock: &LockWait, holder: &str, kept: &str, by: &str| {
        assert_eq!(names(lock), (holder.to_owned(), kept.to_owned(), by.to_owned()), "{name}: {lock:?}");
    };
    let longest = thread.longest.as_ref().unwrap();
    let part = |cause| longest.parts.iter().find(|part| part.cause == cause).unwrap_or_else(|| panic!("{longest:?}"));
    match name {
        "inversion" | "inversion_after_preemption" | "inversion_by_another_program" => is(lock(), "low", "low", "mid"),
        "chained_inversion" => is(lock(), "holder", "low", "mid"),
        "inheritance" => {
            assert!(lock().inherits_priority && lock().inverted_ns * 10 < lock().waited_ns, "{:?}", lock());
            assert_eq!(lock().holder, "low");
        }
        "convoy" => assert!(lock().holders >= 3 && lock().holder == "worker2", "{:?}", lock()),
        "fault_storm" => assert!(part(CycleCause::PageFaults).count >= 3200, "{longest:?}"),
        "asks" => {
            let wait = part(CycleCause::Event);
            assert_eq!((wait.by.as_str(), wait.call.as_str()), ("replier", "recvfrom"));
        }
        "disk_wait" => assert_eq!(part(CycleCause::Disk).call, "fdatasync"),
        "sleeps" => assert!(part(CycleCause::Sleep).call.ends_with("nanosleep")),
        "overruns"
        | "overruns_on_realtime"
        | "overruns_on_tai"
        | "overruns_of_a_timerfd"
        | "asks_often"
        | "deadline_overrun"
        | "throttled" => {}
        other => panic!("no such program: {other}"),
    }
}

/// Replays a recorded program.
fn replay(name: &str) -> ProcessThread {
    check(name, &recorded::read(name))
}

#[test]
fn recorded_programs_have_the_right_cycles() {
    for name in [
        "inversion",
        "inversion_after_preemption",
        "inversion_by_another_program",
        "chained_inversion",
        "inheritance",
        "convoy",
        "disk_wait",
        "sleeps",
        "overruns",
        "deadline_overrun",
        "asks",
        "throttled",
    ] {
        replay(name);
    }
}

mod rights {
    use std::{
        fs,
        path::Path,
        sync::{Mutex, MutexGuard, PoisonError, mpsc},
        thread,
        time::Duration,
    };

    use blame::{EventKind, Instance, Settings, Tracefs};
    use stalls::{Stall, repeat_if_stalled};
    use sys::clock::{Clock, Wait};

    use super::*;
    use crate::programs::Program;

    /// Shorter stalls are within the tolerated differences.
    const STALL: Stall = Stall::Realtime(Duration::from_micros(400));

    /// Held while a program runs, because all programs use real-time priorities on the same CPU.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cycles of each program.
    fn cycles() -> i64 {
        std::env::var("CYCLES").map_or(20, |text| text.parse().unwrap())
    }

    /// Traces a program.
    fn traced(program: Program) -> Recording {
        let settings = Settings { buffer_kb_per_cpu: 16 << 10, ..Settings::default() };
        let (tids, fault_ns) = (program.tids.clone(), blame::fault_time_ns());
        let mut instance = Instance::for_threads(&Tracefs::open().unwrap(), &settings, &tids).unwrap();
        let truths = program.run();
        instance.set_on(false).unwrap();
        let mut events = Vec::new();
        for cpu in instance.cpus().collect::<Vec<_>>() {
            assert_eq!(instance.drain(cpu, &mut events).unwrap().lost_events, 0);
        }
        events.sort_by_key(|event| event.at_ns);
        Recording { fault_ns, tids, quota: Vec::new(), truths, events }
    }

    /// Checks a program, and records it if asked to.
    fn checked(name: &str, recording: &Recording) {
        if std::env::var_os("UPDATE").is_some() && name != "fault_storm" {
            recorded::write(name, recording);
        }
        check(name, recording);
    }

    /// Runs a program, and checks it.
    fn run(name: &str, program: impl Fn() -> Program) {
        repeat_if_stalled(STALL, || checked(name, &traced(program())));
    }

    #[test]
    fn locks_are_explained() {
        let _alone = alone();
        let run = |name, program: &dyn Fn() -> Program| {
            repeat_if_stalled(STALL, || {
                let recording = traced(program());
                let truths = &recording.truths;
                let waited = truths.iter().filter(|truth| truth.cause != CycleCause::Unknown).count();
                assert!(waited * 2 >= truths.len(), "{name}: only {waited} cycles waited: {truths:#?}");
                checked(name, &recording);
            });
        };
        run("inversion", &|| programs::inversion(cycles(), 0));
        // The thread that computes is woken while `measured` runs, so the holder waits for both.
        run("inversion_after_preemption", &|| programs::inversion(cycles(), 400_000));
        run("inversion_by_another_program", &|| programs::inversion_by_another_program(cycles()));
        run("chained_inversion", &|| programs::chained_inversion(cycles()));
        run("inheritance", &|| programs::inheritance(cycles()));
        run("convoy", &|| programs::convoy(cycles()));
    }

    /// The recording without the cycles that took much longer than the shorter ones: their time is that of the
    /// hypervisor, which gives pages to the guest or takes its CPUs, so their faults took longer than the faults that were
    /// timed before.
    fn without_stalls(mut recording: Recording) -> Recording {
        let mut responses_ns: Vec<i64> = recording.truths.iter().map(|truth| truth.response_ns).collect();
        responses_ns.sort_unstable();
        let (count, usual_ns) = (responses_ns.len(), responses_ns[responses_ns.len() / 4]);
        recording.truths.retain(|truth| truth.response_ns <= usual_ns + usual_ns / 4);
        assert!(recording.truths.len() * 2 >= count, "usual are {usual_ns} ns: {responses_ns:?}");
        println!("{} of {count} cycles took at most 1.25 times as long as usual", recording.truths.len());
        recording
    }

    #[test]
    fn other_waits_are_explained() {
        let _alone = alone();
        repeat_if_stalled(STALL, || checked("fault_storm", &without_stalls(traced(programs::fault_storm(cycles())))));
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        run("disk_wait", || programs::disk_wait(cycles(), folder.path()));
        run("sleeps", || programs::sleeps(cycles()));
        run("asks", || programs::asks(cycles()));
        repeat_if_stalled(STALL, || drop(check("asks_often", &traced(programs::asks_often(cycles())))));
    }

    #[test]
    fn own_work_is_explained() {
        let _alone = alone();
        run("overruns", || programs::overruns(cycles()));
        for (name, clock, wait) in [
            ("overruns_on_realtime", Clock::Realtime, Wait::Nanosleep),
            ("overruns_on_tai", Clock::Tai, Wait::Nanosleep),
            ("overruns_of_a_timerfd", Clock::Monotonic, Wait::Timerfd),
        ] {
            repeat_if_stalled(STALL, || drop(check(name, &traced(programs::overruns_on(clock, wait, cycles())))));
        }
        // A canary waits for threads with a deadline policy, too.
        repeat_if_stalled(Stall::Stolen, deadline_overrun);
    }

    fn deadline_overrun() {
        let recording = traced(programs::deadline_overrun(cycles()));
        // The kernel refuses to pin such a thread. On a CPU that was offline, Linux 6.18 leaves switches from its idle
        // thread out of the trace.
        let measured = recording.tids[0];
        let switches = || {
            recording.events.iter().filter_map(|event| match event.kind {
                EventKind::Switch { from, to, .. } => Some((event.cpu, from.pid, to.pid)),
                _ => None,
            })
        };
        let leaves_idle = |cpu| switches().any(|(on, from, _)| on == cpu && from == 0);
        let complete = watched(&recording).0.cycles_cut == 0;
        if complete || switches().filter(|&(_, from, _)| from == measured).all(|(cpu, ..)| leaves_idle(cpu)) {
            checked("deadline_overrun", &recording);
        } else {
            println!("deadline_overrun: skipped, because a CPU was offline");
        }
    }

    /// A control group of version 1 with a CPU quota, removed on drop.
    struct QuotaGroup(std::path::PathBuf);

    impl QuotaGroup {
        fn new() -> Option<Self> {
            let folder = Path::new("/sys/fs/cgroup/cpu").join(format!("punctual-test-{}", std::process::id()));
            fs::create_dir(&folder).ok()?;
            let group = Self(folder);
            fs::write(group.0.join("cpu.cfs_period_us"), "50000").ok()?;
            fs::write(group.0.join("cpu.cfs_quota_us"), "10000").ok()?;
            Some(group)
        }
    }

    impl Drop for QuotaGroup {
        fn drop(&mut self) {
            let _ = fs::remove_dir(&self.0);
        }
    }

    #[test]
    fn a_quota_is_explained() {
        let _alone = alone();
        let Some(group) = QuotaGroup::new() else {
            println!("throttled: skipped, because there are no control groups of version 1");
            return;
        };
        repeat_if_stalled(STALL, || throttled(&group));
    }

    fn throttled(group: &QuotaGroup) {
        let tasks = fs::OpenOptions::new().write(true).open(group.0.join("tasks")).unwrap();
        let stat = group.0.join("cpu.stat");
        let stopped_ns = move || {
            let text = fs::read_to_string(&stat).unwrap();
            text.lines().find_map(|line| line.strip_prefix("throttled_time ")).unwrap().parse::<i64>().unwrap()
        };
        let read = stopped_ns.clone();
        let (stop, stopped) = mpsc::channel::<()>();
        let reader = thread::spawn(move || {
            let mut readings = Vec::new();
            while stopped.recv_timeout(Duration::from_millis(20)).is_err() {
                readings.push((Clock::Monotonic.now_ns().cast_unsigned(), read().cast_unsigned()));
            }
            readings
        });
        let mut recording = traced(programs::throttled(cycles(), tasks, stopped_ns));
        stop.send(()).unwrap();
        recording.quota = reader.join().unwrap();
        checked("throttled", &recording);
    }
}
