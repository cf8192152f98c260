//! Statistics of hand-written events, and properties that hold for any events.

use proptest::{collection::vec, prelude::*, sample::select};
use record::{CycleCause, Monitor, MonitorReports, Overruns, ProcessThread, Rule, Series, ThreadTimes};

use super::{ClockOffsets, Process, Selection, ThreadInfo};
use crate::{Comm, Event, EventKind, Task, event::PrevState};

const START_NS: u64 = 1_000_000;
const WORKER: u32 = 10;

fn task(pid: u32) -> Task {
    let comm = match pid {
        0 => "swapper/0".to_owned(),
        WORKER => "worker".to_owned(),
        other => format!("t{other}"),
    };
    Task { pid, priority: 120, comm: Comm::new(&comm) }
}

/// An event at a time in us after the start of the run, on CPU 0.
fn at(us: u64, pid: u32, kind: EventKind) -> Event {
    Event { at_ns: START_NS + us * 1000, cpu: 0, pid, kind }
}

fn waking(us: u64, pid: u32) -> Event {
    at(us, 0, EventKind::Waking { task: task(pid), target_cpu: 0 })
}

fn switch(us: u64, from: u32, prev_state: PrevState, to: u32) -> Event {
    at(us, from, EventKind::Switch { from: task(from), prev_state, to: task(to) })
}

/// Number of a system call.
fn call(name: &str) -> u32 {
    sys::syscall::WAITING.iter().find(|call| call.name == name).unwrap().number
}

fn on(cpu: u32, event: Event) -> Event {
    Event { cpu, ..event }
}

fn process(period_us: Option<u64>) -> Process {
    let periods = period_us.map(|us| (None, us * 1000)).into_iter().collect();
    let mut process = Process::new(START_NS, 100_000, Selection { threads: Vec::new(), periods });
    process.follow(ThreadInfo { tid: WORKER, comm: Comm::new("worker"), asleep: true }, 0);
    process
}

fn after(period_us: Option<u64>, events: &[Event], us: u64) -> (Series, ProcessThread) {
    let mut process = process(period_us);
    events.iter().for_each(|event| process.handle_event(event));
    let mut series = process.series("run", START_NS + us * 1000);
    assert_eq!(series.len(), 1, "{series:?}");
    let thread = series[0].kind.process().unwrap().clone();
    (series.remove(0), thread)
}

fn times(running: u64, ready: u64, preempted: u64, blocked: u64, unknown: u64) -> ThreadTimes {
    let [running_ns, ready_ns, preempted_ns, blocked_ns, unknown_ns] =
        [running, ready, preempted, blocked, unknown].map(|us| us * 1000);
    ThreadTimes { running_ns, ready_ns, preempted_ns, blocked_ns, unknown_ns }
}

#[test]
fn a_cycle_lasts_from_wake_up_to_sleep() {
    let events = [
        waking(100, WORKER),
        switch(105, 0, PrevState::Preempted, WORKER),
        switch(305, WORKER, PrevState::Preempted, 20),
        on(1, switch(355, 0, PrevState::Preempted, WORKER)),
        on(1, switch(455, WORKER, PrevState::Sleeping, 0)),
        waking(1100, WORKER),
        switch(1107, 0, PrevState::Preempted, WORKER),
        switch(1200, WORKER, PrevState::Sleeping, 0),
    ];
    let (series, thread) = after(Some(1000), &events, 2000);
    assert_eq!((series.samples, series.max_ns, series.min_ns), (2, Some(7000), Some(5000)));
    assert_eq!((series.role.as_str(), series.missed, series.jitter_ns), ("worker", 0, 0));
    assert_eq!(thread.times, times(393, 12, 50, 1545, 0));
    assert_eq!((thread.cycles, thread.preemptions, thread.migrations, thread.cpus.as_str()), (2, 1, 2, "0-1"));
    let longest = thread.longest.unwrap();
    assert_eq!((longest.at_ns, longest.response_ns(), longest.times), (100_000, 355_000, times(300, 5, 50, 0, 0)));
    let [by] = &thread.preempted_by[..] else { panic!("{:?}", thread.preempted_by) };
    assert_eq!((by.comm.as_str(), by.tid, by.count, by.waited_ns), ("t20", 20, 1, 50_000));
    assert_eq!(thread.interval.iter().count(), 1);
}

#[test]
fn infers_the_state_before_the_first_event() {
    let running = after(None, &[switch(40, WORKER, PrevState::Sleeping, 0)], 100).1;
    assert_eq!((running.times, running.cycles), (times(40, 0, 0, 60, 0), 0));
    let ready = after(None, &[switch(40, 0, PrevState::Preempted, WORKER)], 100);
    assert_eq!((ready.1.times, ready.0.samples), (times(60, 40, 0, 0, 0), 0));
    let asleep = after(None, &[waking(40, WORKER), switch(41, 0, PrevState::Preempted, WORKER)], 100);
    assert_eq!((asleep.1.times, asleep.0.samples), (times(59, 1, 0, 40, 0), 1));
    let mut process = process(None);
    assert!(process.series("run", START_NS).is_empty() && process.threads_without_series() == 1, "it only slept");
    process.follow(ThreadInfo { tid: 11, comm: Comm::new("spinner"), asleep: false }, 0);
    let spinner = process.series("run", START_NS + 5000).remove(0).kind.process().unwrap().clone();
    assert_eq!(spinner.times, times(0, 0, 0, 0, 5));
}

#[test]
fn waiting_for_a_page_or_kernel_lock_belongs_to_the_cycle() {
    let events = [
        waking(100, WORKER),
        switch(101, 0, PrevState::Preempted, WORKER),
        switch(111, WORKER, PrevState::Uninterruptible, 0),
        waking(211, WORKER),
        switch(214, 0, PrevState::Preempted, WORKER),
        switch(224, WORKER, PrevState::Sleeping, 0),
    ];
    let (series, thread) = after(None, &events, 300);
    assert_eq!((series.samples, thread.cycles), (2, 1));
    assert_eq!(thread.longest.unwrap().times, times(20, 4, 0, 100, 0));
}

#[test]
fn a_wake_up_before_the_switch_out_makes_the_thread_ready_at_once() {
    let events = [
        waking(100, WORKER),
        switch(101, 0, PrevState::Preempted, WORKER),
        on(1, waking(109, WORKER)),
        switch(110, WORKER, PrevState::Sleeping, 0),
        switch(113, 0, PrevState::Preempted, WORKER),
        on(1, waking(115, WORKER)),
        // The thread was awake, so this is no wake-up; it sleeps until the next one.
        switch(120, WORKER, PrevState::Sleeping, 0),
        waking(150, WORKER),
        switch(152, 0, PrevState::Preempted, WORKER),
    ];
    let (series, thread) = after(None, &events, 160);
    assert_eq!((series.samples, series.max_ns, thread.cycles), (3, Some(3000), 2));
    assert_eq!(thread.times, times(9 + 7 + 8, 1 + 3 + 2, 0, 100 + 30, 0));
    assert_eq!(thread.cycles_cut, 0);
}

#[test]
fn counts_cycles_that_are_too_long_or_missing() {
    let mut events = Vec::new();
    let mut cycle = |begin: u64, work: u64, waits: u64| {
        events.push(waking(begin, WORKER));
        events.push(switch(begin + waits, 0, PrevState::Preempted, WORKER));
        events.push(switch(begin + waits + work, WORKER, PrevState::Sleeping, 0));
    };
    cycle(1000, 300, 0);
    cycle(2000, 1300, 1); // too long, and the next cycle is missing
    cycle(4000, 300, 701); // 1 us too late
    cycle(5010, 300, 700); // in time
    cycle(6010, 300, 0);
    cycle(7510, 300, 0); // the latest one that does not count as missing
    let (series, thread) = after(Some(1000), &events, 8000);
    assert_eq!((thread.overruns, thread.skipped, series.missed), (2, 1, 3));
    assert_eq!(thread.overrun_by, Some(Overruns { by_work: 1, by_waiting: 1, by_blocking: 0 }));
    assert_eq!(series.jitter_ns, 1_000_000);
    let none = after(None, &events, 8000);
    assert_eq!((none.0.missed, none.1.overrun_by, none.1.cycles), (0, None, 6));
    assert_eq!(after(Some(1000), &events, 10_110).0.missed, 3 + 2, "no cycle since 7510");
}

#[test]
fn switches_that_the_kernel_does_not_trace_are_counted_with_their_cpu() {
    let mut events = Vec::new();
    for us in [1000, 2000, 3000] {
        // Woken on CPU 1, which traces no switch from its idle thread.
        let arrives = on(1, waking(us, WORKER));
        events.extend([arrives, on(1, exit(us + 5)), on(1, enter(us + 20, "read", [3, 0, 0])), on(1, sleeps(us + 21))]);
    }
    let cut_before = with_calls(None, &events, 4000).1;
    assert_eq!((cut_before.switches_missing, cut_before.switches_missing_on.as_str()), (3, "1"));
    assert!(cut_before.cycles_cut >= 2, "{}", cut_before.cycles_cut);
    let traced = resumes(4000).into_iter().chain([sleeps(4100)]);
    let after = with_calls(None, &events.iter().copied().chain(traced).collect::<Vec<_>>(), 5000).1;
    assert_eq!((after.switches_missing, after.switches_missing_on.as_str()), (3, "1"), "CPU 0 traces them");
}

#[test]
fn missing_events_leave_time_unknown() {
    let mut process = process(None);
    let take = |process: &mut Process, events: &[Event]| events.iter().for_each(|event| process.handle_event(event));
    take(&mut process, &[waking(100, WORKER), switch(105, 0, PrevState::Preempted, WORKER)]);
    process.lost(START_NS + 200_000, START_NS + 300_000);
    take(&mut process, &[switch(350, WORKER, PrevState::Sleeping, 0)]);
    // A wake-up was lost without a gap being reported.
    take(&mut process, &[switch(500, 0, PrevState::Preempted, WORKER)]);
    let series = process.series("run", START_NS + 600_000).remove(0);
    let thread = series.kind.process().unwrap();
    assert_eq!(thread.times, times(95 + 50 + 100, 5, 0, 100, 100 + 150));
    assert_eq!((thread.cycles, thread.cycles_cut, series.samples), (0, 1, 1));
    assert!(thread.response.is_empty());
}

#[test]
fn follows_new_threads_and_stops_at_ended_ones() {
    let mut process = process(None);
    let events = [
        switch(10, 0, PrevState::Preempted, WORKER),
        at(20, WORKER, EventKind::Fork { child: 11 }),
        at(20, WORKER, EventKind::Waking { task: task(11), target_cpu: 1 }),
        on(1, switch(25, 0, PrevState::Preempted, 11)),
        at(30, 99, EventKind::Fork { child: 100 }),
        on(1, at(40, 11, EventKind::Exit)),
        on(1, switch(45, 11, PrevState::Other, 0)),
    ];
    events.iter().for_each(|event| process.handle_event(event));
    assert_eq!(process.living().collect::<Vec<_>>(), [WORKER]);
    let series = process.series("run", START_NS + 100_000);
    assert_eq!(series.iter().map(|s| s.role.as_str()).collect::<Vec<_>>(), ["worker", "t11"]);
    let child = series[1].kind.process().unwrap();
    assert!(child.ended && child.cycles == 1);
    assert_eq!(child.times, times(20, 5, 0, 0, 0));
    assert_eq!(series[1].max_ns, Some(5000));
}

#[test]
fn spikes_are_new_only_once() {
    let mut process = process(None);
    process.handle_event(&waking(100, WORKER));
    process.handle_event(&on(3, switch(350, 0, PrevState::Preempted, WORKER)));
    let fresh: Vec<_> = process
        .fresh_spikes()
        .map(|(measured_thread, spikes)| (measured_thread.pid, measured_thread.cpu, spikes.len()))
        .collect();
    assert_eq!(fresh, [(WORKER, 3, 1)]);
    process.keep_spikes();
    assert_eq!(process.fresh_spikes().count(), 0);
    let series = process.series("run", START_NS + 400_000).remove(0);
    assert_eq!((series.spikes_total, series.spikes[0].lateness_ns, series.spikes[0].at_ns), (1, 250_000, 100_000));
}

/// A thread with a real-time priority.
fn realtime(pid: u32, priority: i32) -> Task {
    Task { priority, ..task(pid) }
}

#[test]
fn marks_delimit_cycles() {
    let mark = |us, begins| at(us, WORKER, EventKind::Mark { begins });
    let sleep = |us| at(us, WORKER, EventKind::CallEntry { call: call("nanosleep"), arguments: [0; 3] });
    let events = [
        waking(100, WORKER),
        switch(105, 0, PrevState::Preempted, WORKER),
        mark(110, true),
        sleep(120),
        switch(121, WORKER, PrevState::Sleeping, 0),
        waking(220, WORKER),
        switch(225, 0, PrevState::Preempted, WORKER),
        at(226, WORKER, EventKind::CallExit { call: 0 }),
        mark(310, false),
        sleep(315),
        switch(316, WORKER, PrevState::Sleeping, 0),
        waking(1000, WORKER),
        switch(1001, 0, PrevState::Preempted, WORKER),
        mark(1010, true),
        mark(1060, true),
        mark(1070, false),
    ];
    let mut process = process(Some(1000));
    process.expect_calls();
    events.iter().for_each(|event| process.handle_event(event));
    let series = process.series("run", START_NS + 1_500_000).remove(0);
    let thread = series.kind.process().unwrap();
    assert_eq!((thread.release, thread.cycles, thread.cycles_cut), (record::Release::Mark, 3, 0));
    let responses: Vec<u64> = thread.worst_cycles.iter().map(record::Cycle::response_ns).collect();
    assert_eq!(responses, [200_000, 50_000, 10_000], "a cycle without an end lasts until the next one");
    assert_eq!(thread.worst_cycles[0].times, times(96, 5, 0, 99, 0));
}

#[test]
fn broken_rules_of_realtime_threads_are_counted() {
    let worker = realtime(WORKER, 19);
    let gui = Task { pid: 30, ..realtime(30, 120) };
    let woken = |us, by| at(us, by, EventKind::Waking { task: worker, target_cpu: 0 });
    let to = |us, from, to| at(us, from, EventKind::Switch { from: task(from), prev_state: PrevState::Preempted, to });
    let away = |us| at(us, WORKER, EventKind::Switch { from: worker, prev_state: PrevState::Sleeping, to: task(0) });
    let enters = |us, pid, name, arguments| at(us, pid, EventKind::CallEntry { call: call(name), arguments });
    let mut process = Process::new(START_NS, 100_000, Selection::default());
    process.expect_calls();
    for (tid, comm) in [(WORKER, "worker"), (30, "t30")] {
        process.follow(ThreadInfo { tid, comm: Comm::new(comm), asleep: true }, 0);
    }
    process.set_deadline(WORKER, Some(50_000));
    for event in [
        woken(100, 0),
        to(105, 0, worker),
        at(110, WORKER, EventKind::PageFault { address: 0, in_kernel: false }),
        enters(120, WORKER, "poll", [0x70, 1, 0]),
        away(200),
        // Another thread of the program, in a system call, ends the wait.
        to(210, 0, gui),
        enters(220, 30, "write", [0; 3]),
        woken(230, 30),
        to(2_000_230, 30, worker),
        at(2_000_240, WORKER, EventKind::CallExit { call: 0 }),
        enters(2_000_250, WORKER, "clock_nanosleep", [1, 1, 0]),
        away(2_000_260),
    ] {
        process.handle_event(&event);
    }
    let series = process.series("run", START_NS + 3_000_000_000);
    let breaches = |role: &str| {
        let thread = series.iter().find(|series| series.role == role).unwrap().kind.process().unwrap();
        let mut breaches: Vec<_> = thread.breaches.iter().map(|b| (b.rule, b.by.clone(), b.count)).collect();
        breaches.sort_by_key(|&(rule, ..)| rule as u8);
        breaches
    };
    let expected = [
        (Rule::PageFault, "", 1),
        (Rule::Sleep, "poll", 1),
        (Rule::WakeUp, "t30", 1),
        (Rule::Deadline, "", 2),
        (Rule::Stall, "", 1),
    ];
    assert_eq!(breaches("worker"), expected.map(|(rule, by, count)| (rule, by.to_owned(), count)));
    assert!(breaches("t30").is_empty(), "it has no real-time policy");
}

#[test]
fn counts_the_reports_of_monitors() {
    let worker = realtime(WORKER, 19);
    let report = |us, monitor, tid| at(us, 77, EventKind::MonitorReport { monitor, tid });
    let mut process = process(None);
    process.follow(ThreadInfo { tid: 30, comm: Comm::new("t30"), asleep: false }, 0);
    let away = EventKind::Switch { from: worker, prev_state: PrevState::Sleeping, to: task(0) };
    for event in [
        at(100, WORKER, away),
        report(200, Monitor::Stall, WORKER),
        report(300, Monitor::Sleep, WORKER),
        report(900, Monitor::Sleep, WORKER),
        report(910, Monitor::Stall, 30),
        report(920, Monitor::Sleep, 99),
    ] {
        process.handle_event(&event);
    }
    let series = process.series("run", START_NS + 1_000_000);
    let reports = |role: &str| {
        let thread = series.iter().find(|series| series.role == role).unwrap().kind.process().unwrap();
        (thread.monitor_reports.clone(), thread.breaches.len())
    };
    let sleep = MonitorReports { monitor: Monitor::Sleep, count: 2, first_ns: 300_000, last_ns: 900_000 };
    let stall = MonitorReports { monitor: Monitor::Stall, count: 1, first_ns: 200_000, last_ns: 200_000 };
    assert_eq!(reports("worker"), (vec![sleep, stall], 0), "they are not added to the breaches");
    assert_eq!(reports("t30"), (vec![], 0), "a stall of an ordinary thread breaks no rule");
}

#[test]
fn an_inherited_policy_is_told_from_one_that_was_set() {
    let parents = |setter: u32, tid: u64| {
        let mut process = process(None);
        process.expect_calls();
        let child = realtime(11, 19);
        let sets = EventKind::CallEntry { call: call("sched_setscheduler"), arguments: [tid, 1, 0] };
        for event in [
            switch(90, 0, PrevState::Preempted, WORKER),
            at(99, WORKER, EventKind::Fork { child: 12 }),
            at(100, WORKER, EventKind::Fork { child: 11 }),
            at(101, WORKER, EventKind::Waking { task: child, target_cpu: 0 }),
            at(102, setter, sets),
            at(103, 0, EventKind::Switch { from: task(0), prev_state: PrevState::Preempted, to: child }),
        ] {
            process.handle_event(&event);
        }
        let series = process.series("run", START_NS + 1_000_000);
        series.iter().filter_map(|series| series.kind.process()?.policy_inherited_from.clone()).collect::<Vec<_>>()
    };
    assert_eq!(parents(WORKER, 12), [format!("worker/{WORKER}")], "another thread");
    assert!(parents(WORKER, 11).is_empty(), "its parent set it");
    assert!(parents(WORKER, 2).is_empty(), "in a container, this can be its id");
    assert!(parents(WORKER, 0) == [format!("worker/{WORKER}")], "its parent set its own");
}

/// The entry of the worker into a system call.
fn enter(us: u64, name: &str, arguments: [u64; 3]) -> Event {
    at(us, WORKER, EventKind::CallEntry { call: call(name), arguments })
}

fn exit(us: u64) -> Event {
    at(us, WORKER, EventKind::CallExit { call: 0 })
}

/// The start of the timer of a sleep of the worker.
fn timer(us: u64, expires_us: u64) -> Event {
    let expires_ns = (START_NS + expires_us * 1000).cast_signed();
    at(us, WORKER, EventKind::TimerStart { function: 0, expires_ns, latest_ns: expires_ns })
}

fn sleeps(us: u64) -> Event {
    switch(us, WORKER, PrevState::Sleeping, 0)
}

/// The end of a wait of the worker, 1 us after it was woken.
fn resumes(us: u64) -> [Event; 2] {
    [waking(us, WORKER), switch(us + 1, 0, PrevState::Preempted, WORKER)]
}

/// The worker with known system calls after these events.
fn with_calls(period_us: Option<u64>, events: &[Event], us: u64) -> (Series, ProcessThread) {
    let mut process = process(period_us);
    process.expect_calls();
    process.set_clocks(ClockOffsets { tai_ns: Some(1 << 60), ..ClockOffsets::default() });
    events.iter().for_each(|event| process.handle_event(event));
    let series = process.series("run", START_NS + us * 1000);
    let series = series.into_iter().find(|series| series.role == "worker").unwrap();
    let thread = series.kind.process().unwrap().clone();
    (series, thread)
}

/// Start and response time of each cycle, us, in order of time.
fn cycles_of(thread: &ProcessThread) -> Vec<(u64, u64)> {
    let cycle = |cycle: &record::Cycle| (cycle.at_ns / 1000, cycle.response_ns() / 1000);
    let mut cycles: Vec<_> = thread.worst_cycles.iter().map(cycle).collect();
    cycles.sort_unstable();
    cycles
}

#[test]
fn a_sleep_continued_after_a_signal_is_one_sleep() {
    let retried = |name: &str, arguments, again: &str, late_us| {
        let mut events = vec![enter(0, name, arguments), timer(0, 1000), sleeps(1)];
        for number in 0..3 {
            let expires_us = 1000 + 1000 * number;
            events.extend(resumes(expires_us - 600));
            events.extend([exit(expires_us - 590), enter(expires_us - 500, again, arguments)]);
            events.extend([timer(expires_us - 500, expires_us + late_us), sleeps(expires_us - 499)]);
            events.extend(resumes(expires_us + late_us));
            events.extend([exit(expires_us + late_us + 2), enter(expires_us + 200 + late_us, name, arguments)]);
            events.extend([timer(expires_us + 201 + late_us, expires_us + 1000), sleeps(expires_us + 202 + late_us)]);
        }
        let (_, thread) = with_calls(Some(1000), &events, 3500);
        let cycles: Vec<_> = cycles_of(&thread).into_iter().filter(|&(at_us, _)| at_us > 0).collect();
        (cycles, thread.skipped, thread.cycles_cut)
    };
    let expected = |late_us: u64| (vec![(1000 + late_us, 200), (2000 + late_us, 200), (3000 + late_us, 200)], 0, 0);
    assert_eq!(retried("clock_nanosleep", [1, 1, 0], "clock_nanosleep", 0), expected(0));
    assert_eq!(retried("nanosleep", [0; 3], "nanosleep", 100), expected(100), "the rest of the time");
    assert_eq!(retried("nanosleep", [0; 3], "restart_syscall", 0), expected(0), "after SIGSTOP");
}

#[test]
fn work_after_an_interrupted_sleep_is_a_cycle() {
    let mut events = vec![enter(0, "nanosleep", [0; 3]), timer(0, 1000), sleeps(1)];
    events.extend(resumes(400));
    events.extend([exit(402), enter(700, "nanosleep", [0; 3]), timer(701, 1701), sleeps(702)]);
    let (_, thread) = with_calls(None, &events, 900);
    assert_eq!(cycles_of(&thread), [(400, 300)]);
}

#[test]
fn sleeps_on_other_clocks_start_cycles_at_their_time() {
    let tai = |us, expires_us: u64| {
        let expires_ns = (1 << 60) + (START_NS + expires_us * 1000).cast_signed();
        at(us, WORKER, EventKind::TimerStart { function: 0, expires_ns, latest_ns: expires_ns })
    };
    let mut events = vec![enter(0, "clock_nanosleep", [11, 1, 0]), tai(0, 1000), sleeps(1)];
    events.extend(resumes(1010));
    // It works for longer than the period, so the next sleep is over at once.
    events.extend([exit(1012), enter(2500, "clock_nanosleep", [11, 1, 0]), tai(2500, 2000), exit(2501)]);
    events.extend([enter(2800, "clock_nanosleep", [11, 1, 0]), tai(2800, 3000), sleeps(2801)]);
    let (series, thread) = with_calls(Some(1000), &events, 2900);
    assert_eq!(cycles_of(&thread), [(1000, 1500), (2000, 800)]);
    assert_eq!((series.missed, thread.overruns), (1, 1));
}

/// A cycle that starts with a sleep until `us`, entered 800 us before, and works for 100 us.
fn absolute_cycle(us: u64) -> Vec<Event> {
    let begun = us - 800;
    let mut events = vec![enter(begun, "clock_nanosleep", [1, 1, 0]), timer(begun, us), sleeps(begun + 1)];
    events.extend(resumes(us));
    events.extend([exit(us + 2)]);
    events
}

#[test]
fn a_cycle_between_two_kinds_of_waits_is_in_no_figure() {
    let mut events = Vec::new();
    // The start: twelve short sleeps for a duration, and one until the first cycle is due.
    for number in 1..=12 {
        let us = number * 100;
        events.extend([enter(us, "nanosleep", [0; 3]), timer(us, us + 50), sleeps(us + 1)]);
        events.extend(resumes(us + 50));
        events.push(exit(us + 52));
    }
    events.extend([enter(1300, "clock_nanosleep", [1, 1, 0]), timer(1300, 90_000), sleeps(1301)]);
    events.extend(resumes(90_000));
    events.push(exit(90_002));
    (91..120).for_each(|ms| events.extend(absolute_cycle(ms * 1000)));
    let (_, thread) = with_calls(None, &events, 120_000);
    assert_eq!(thread.release, record::Release::AbsoluteSleep);
    let longest_ns = thread.longest.unwrap().response_ns();
    assert!(longest_ns < 1_000_000 && thread.cycles_cut == 1, "{longest_ns} ns, {} cut", thread.cycles_cut);
}

#[test]
fn a_thread_keeps_its_selection_once_it_has_cycles() {
    let selection =
        || Selection { threads: vec!["worker".parse().unwrap(), "other".parse().unwrap()], periods: vec![] };
    let renamed = |cycles: u64| {
        let mut process = Process::new(START_NS, 100_000, selection());
        process.follow(ThreadInfo { tid: WORKER, comm: Comm::new("worker"), asleep: true }, 0);
        process.expect_calls();
        let mut events: Vec<Event> = (1..=cycles).flat_map(|ms| absolute_cycle(ms * 1000)).collect();
        let other = Task { comm: Comm::new("renamed"), ..task(WORKER) };
        let us = cycles * 1000 + 150;
        events.push(at(us, WORKER, EventKind::Switch { from: other, prev_state: PrevState::Sleeping, to: task(0) }));
        events.iter().for_each(|event| process.handle_event(event));
        let unmatched: Vec<String> = process.unmatched().iter().map(ToString::to_string).collect();
        (process.series("run", START_NS + us * 1000 + 1).len(), unmatched)
    };
    assert_eq!(renamed(0), (0, vec!["worker".to_owned(), "other".to_owned()]), "it had the name of its parent");
    assert_eq!(renamed(3), (1, vec!["other".to_owned()]));
}

#[test]
fn the_time_until_a_thread_ends_is_kept() {
    let mut events: Vec<Event> = (1..=3).flat_map(|ms| absolute_cycle(ms * 1000)).collect();
    events.extend([at(9000, WORKER, EventKind::Exit), sleeps(9001)]);
    let (_, thread) = with_calls(None, &events, 9500);
    assert_eq!((thread.cycles, thread.ending_ns), (2, 6_001_000));
}

#[test]
fn a_stop_by_a_signal_delays_the_cycle_after_its_sleep() {
    let mut events: Vec<Event> = (1..=3).flat_map(|ms| absolute_cycle(ms * 1000)).collect();
    events.extend([enter(3200, "clock_nanosleep", [1, 1, 0]), timer(3200, 4000), sleeps(3201)]);
    events.extend(resumes(3500));
    events.push(switch(3502, WORKER, PrevState::Stopped, 0));
    events.extend(resumes(8000));
    // The kernel enters the call again after the stop.
    events.extend([exit(8002), enter(8002, "clock_nanosleep", [1, 1, 0]), timer(8002, 4000), exit(8003)]);
    events.extend([enter(8100, "clock_nanosleep", [1, 1, 0]), timer(8100, 9000), sleeps(8101)]);
    let (_, thread) = with_calls(None, &events, 8500);
    let longest = thread.longest.unwrap();
    assert_eq!((longest.response_ns(), longest.parts[0].cause), (4_100_000, CycleCause::Stopped), "{longest:?}");
}

#[test]
fn expiries_of_a_timerfd_start_cycles_also_if_it_does_not_wait_for_them() {
    let armed = |us, expires_us: u64| {
        let expires_ns = (START_NS + expires_us * 1000).cast_signed();
        at(us, WORKER, EventKind::FdTimerStart { expires_ns })
    };
    for polls in [false, true] {
        let mut events = Vec::new();
        let waits = |events: &mut Vec<Event>, us| {
            let poll = [enter(us, "epoll_wait", [4, 0, 0]), sleeps(us + 1)];
            let read = [enter(us, "read", [3, 0, 0]), sleeps(us + 1)];
            events.extend(if polls { poll } else { read });
        };
        let woken = |events: &mut Vec<Event>, us| {
            events.extend(resumes(us));
            events.extend(polls.then(|| [exit(us + 2), enter(us + 2, "read", [3, 0, 0])]).into_iter().flatten());
        };
        events.extend(resumes(10));
        events.push(armed(20, 1000));
        waits(&mut events, 30);
        woken(&mut events, 1001);
        events.extend([armed(1002, 2000), exit(1003)]);
        waits(&mut events, 1300);
        woken(&mut events, 2001);
        events.extend([armed(2002, 3000), exit(2003)]);
        // A wait for a device within the cycle, which takes too long.
        events.extend([enter(2100, "ioctl", [7, 0, 0]), sleeps(2101)]);
        events.extend(resumes(3400));
        events.push(exit(3402));
        events.extend(polls.then(|| [enter(3500, "epoll_wait", [4, 0, 0]), exit(3500)]).into_iter().flatten());
        events.extend([enter(3500, "read", [3, 0, 0]), armed(3500, 4000), exit(3501)]);
        waits(&mut events, 3700);
        let (series, thread) = with_calls(Some(1000), &events, 3900);
        assert_eq!(thread.release, record::Release::Timer);
        assert_eq!(cycles_of(&thread), [(10, 21), (1000, 301), (2000, 1500), (3000, 701)], "polls: {polls}");
        assert_eq!((series.missed, thread.skipped), (1, 0));
    }
}

#[test]
fn readings_of_two_timerfds_are_mixed() {
    let release = |second_fd: u64| {
        let mut events = Vec::new();
        for number in 0..20 {
            let (us, fd) = (number * 1000 + 10, if number % 2 == 0 { 3 } else { second_fd });
            events.extend([enter(us, "read", [fd, 0, 0]), sleeps(us + 1)]);
            events.extend(resumes(us + 900));
            let expires_ns = (START_NS + (us + 1900) * 1000).cast_signed();
            events.extend([at(us + 902, WORKER, EventKind::FdTimerStart { expires_ns }), exit(us + 903)]);
        }
        with_calls(None, &events, 21_000).1.release
    };
    assert_eq!((release(3), release(4)), (record::Release::Timer, record::Release::Mixed));
}

#[test]
fn a_timerfd_that_is_set_to_a_time_that_is_over_starts_a_cycle() {
    let armed = |us, expires_us: u64| {
        let expires_ns = (START_NS + expires_us * 1000).cast_signed();
        at(us, WORKER, EventKind::FdTimerStart { expires_ns })
    };
    let read = |us| enter(us, "read", [3, 0, 0]);
    let mut events = vec![armed(0, 1000), read(1), sleeps(2)];
    events.extend(resumes(1001));
    events.extend([exit(1003), armed(2500, 2000), read(2501), exit(2502)]);
    events.extend([armed(2800, 3000), read(2801), sleeps(2802)]);
    let (_, thread) = with_calls(Some(1000), &events, 2900);
    assert_eq!(cycles_of(&thread), [(1000, 1502), (2000, 802)]);
    assert_eq!((thread.release, thread.skipped), (record::Release::Event, 0));
}

/// A thread wakes another one in a system call.
fn wakes(us: u64, by: u32, tid: u32, (name, object): (&str, u64)) -> [Event; 3] {
    let arguments = [object, 1, 1];
    let entry = EventKind::CallEntry { call: call(name), arguments };
    let waking = EventKind::Waking { task: task(tid), target_cpu: 0 };
    [at(us, by, entry), at(us, by, waking), at(us, by, EventKind::CallExit { call: 0 })]
}

#[test]
fn a_wait_for_an_answer_is_part_of_the_cycle() {
    const HELPER: u32 = 11;
    let mut process = process(None);
    process.expect_calls();
    process.follow(ThreadInfo { tid: HELPER, comm: Comm::new("t11"), asleep: true }, 0);
    let mut events = Vec::new();
    for us in [1000, 2000, 3000] {
        events.extend(resumes(us));
        events.push(exit(us + 2));
        events.extend(wakes(us + 100, WORKER, HELPER, ("write", 5)));
        events.extend([enter(us + 110, "read", [6, 0, 0]), switch(us + 111, WORKER, PrevState::Sleeping, HELPER)]);
        events.extend(wakes(us + 300, HELPER, WORKER, ("write", 7)));
        events.push(switch(us + 305, HELPER, PrevState::Sleeping, WORKER));
        events.extend([exit(us + 306), enter(us + 400, "poll", [0x70, 1, 0]), sleeps(us + 401)]);
    }
    events.iter().for_each(|event| process.handle_event(event));
    let series = process.series("run", START_NS + 3_900_000);
    let of = |role: &str| series.iter().find(|series| series.role == role).unwrap().kind.process().unwrap();
    let worker = of("worker");
    assert_eq!(worker.release, record::Release::Event);
    assert_eq!(cycles_of(worker), [(1000, 401), (2000, 401), (3000, 401)]);
    assert_eq!(worker.worst_cycles[0].main_cause(), Some(CycleCause::OwnWork));
    assert_eq!(of("t11").cycles, 3, "each question is a cycle of the helper");
}

#[test]
fn an_idle_thread_has_no_open_cycle_if_any_event_starts_its_cycles() {
    let events_of = |sources: &[u64]| {
        let mut events = resumes(100).to_vec();
        for (us, &source) in (1000..).step_by(1000).zip(sources) {
            events.extend([enter(us - 300, "read", [source, 0, 0]), sleeps(us - 299)]);
            events.extend(resumes(us));
            events.push(exit(us + 2));
        }
        events
    };
    let idle_at_end = |sources: &[u64]| {
        let mut events = events_of(&[sources, &[3]].concat());
        // Without the end of the last wait.
        events.truncate(events.len() - 3);
        with_calls(None, &events, 900_000).1
    };
    let alternating = idle_at_end(&[3, 4, 3, 4, 3, 4]);
    assert_eq!((alternating.release, alternating.open), (record::Release::AnyEvent, None));
    assert_eq!(alternating.cycles, 7, "the last one ended with the wait");
    let same = idle_at_end(&[3; 6]);
    assert_eq!((same.release, same.open), (record::Release::Event, None));
    let mut last_waits_elsewhere = events_of(&[3; 20]);
    last_waits_elsewhere.extend([enter(20_700, "read", [4, 0, 0]), sleeps(20_701)]);
    let thread = with_calls(None, &last_waits_elsewhere, 900_000).1;
    assert_eq!(thread.release, record::Release::Event);
    assert_eq!(thread.open.map(|open| open.at_ns), Some(20_000_000), "it may wait for an answer");
}

#[test]
fn a_wait_for_a_child_is_no_page_fault() {
    let fault = |us| at(us, WORKER, EventKind::PageFault { address: 0, in_kernel: false });
    let cause = |between: Option<Event>, us| {
        let mut events = resumes(10).to_vec();
        events.push(fault(20));
        events.extend(between);
        events.push(switch(us, WORKER, PrevState::Uninterruptible, 0));
        events.extend(resumes(us + 5000));
        events.extend([exit(us + 5002), sleeps(us + 5010)]);
        let thread = with_calls(None, &events, us + 6000).1;
        let part = thread.worst_cycles[0].parts[0].clone();
        (part.cause, part.call)
    };
    assert_eq!(cause(None, 25), (CycleCause::PageFaults, String::new()));
    assert_eq!(cause(Some(enter(21, "vfork", [0; 3])), 25), (CycleCause::Event, "vfork".into()));
    assert_eq!(cause(Some(enter(21, "syncfs", [0; 3])), 25), (CycleCause::Disk, "syncfs".into()));
    assert_eq!(cause(None, 125), (CycleCause::Unknown, String::new()), "in a system call that is not traced");
    let disk = at(120, WORKER, EventKind::BlockRequest);
    assert_eq!(cause(Some(disk), 125), (CycleCause::PageFaults, String::new()));
}

/// Starts the thread 11, which computes until its first wait.
fn starts(first_wait: &[Event]) -> ProcessThread {
    let mut process = process(None);
    process.expect_calls();
    let start = [
        switch(90, 0, PrevState::Preempted, WORKER),
        at(100, WORKER, EventKind::Fork { child: 11 }),
        waking(101, 11),
        switch(102, WORKER, PrevState::Sleeping, 11),
    ];
    start.iter().chain(first_wait).for_each(|event| process.handle_event(event));
    let series = process.series("run", START_NS + 100_000_000);
    let thread = series.iter().find_map(|series| series.kind.process().filter(|thread| thread.tid == 11));
    thread.unwrap().clone()
}

#[test]
fn the_time_before_the_first_wait_is_a_cycle_only_if_the_thread_ends_then() {
    let call = |us, name| at(us, 11, EventKind::CallEntry { call: call(name), arguments: [1, 1, 0] });
    let sleeps = [call(9000, "clock_nanosleep"), switch(9001, 11, PrevState::Sleeping, 0)];
    let waits = [call(9000, "read"), switch(9001, 11, PrevState::Sleeping, 0), waking(9100, 11)];
    let ends = [at(9000, 11, EventKind::Exit), switch(9001, 11, PrevState::Other, 0)];
    let executes = [call(5000, "execve"), call(9000, "clock_nanosleep"), switch(9001, 11, PrevState::Sleeping, 0)];
    assert_eq!([&sleeps[..], &waits, &executes].map(|events| starts(events).cycles), [0; 3]);
    let ended = starts(&ends);
    assert_eq!((ended.cycles, ended.cycles_cut, ended.longest.unwrap().response_ns()), (1, 0, 8_900_000));
    let busy = starts(&[]);
    assert_eq!((busy.cycles, busy.cycles_cut, busy.open), (0, 0, None));
}

#[test]
fn a_32_bit_program_has_no_known_calls() {
    let mut process = process(None);
    process.expect_calls();
    process.set_process(WORKER, WORKER, true);
    let sync = EventKind::CallEntry { call: call("sync"), arguments: [0; 3] };
    for event in [
        waking(100, WORKER),
        switch(105, 0, PrevState::Preempted, WORKER),
        at(200, WORKER, sync),
        switch(201, WORKER, PrevState::Sleeping, 0),
        waking(500, WORKER),
        switch(505, 0, PrevState::Preempted, WORKER),
        switch(600, WORKER, PrevState::Sleeping, 0),
    ] {
        process.handle_event(&event);
    }
    let thread = process.series("run", START_NS + 1_000_000).remove(0).kind.process().unwrap().clone();
    assert_eq!((thread.cycles, thread.release), (2, record::Release::AnySleep));
}

#[test]
fn a_quota_is_no_preemption() {
    let events = [
        waking(100, WORKER),
        switch(101, 0, PrevState::Preempted, WORKER),
        switch(200, WORKER, PrevState::Preempted, 20),
        switch(5200, 20, PrevState::Preempted, WORKER),
        switch(5300, WORKER, PrevState::Preempted, 21),
        switch(5400, 21, PrevState::Preempted, WORKER),
        switch(5500, WORKER, PrevState::Sleeping, 0),
    ];
    let mut process = process(None);
    process.note_quota(START_NS, 0);
    process.note_quota(START_NS + 5_250_000, 5_000_000);
    process.note_quota(START_NS + 6_000_000, 5_000_000);
    events.iter().for_each(|event| process.handle_event(event));
    let series = process.series("run", START_NS + 6_000_000).remove(0);
    let thread = series.kind.process().unwrap();
    assert_eq!((thread.preemptions, thread.preempted_by.len(), thread.preempted_by[0].tid), (1, 1, 21));
    assert_eq!(thread.worst_cycles[0].main_cause(), Some(CycleCause::Quota));
}

/// The events of threads on CPU 0. A thread runs from one line to the next.
struct Cpu0 {
    events: Vec<Event>,
    /// The thread on the CPU, and the priorities of all.
    now: Task,
    priorities: Vec<(u32, i32)>,
}

impl Cpu0 {
    fn new(priorities: &[(u32, i32)]) -> Self {
        Self { events: Vec::new(), now: task(0), priorities: priorities.to_vec() }
    }

    fn task(&self, pid: u32) -> Task {
        let priority = self.priorities.iter().find(|(known, _)| *known == pid).map_or(120, |&(_, priority)| priority);
        Task { priority, ..task(pid) }
    }

    fn event(&mut self, us: u64, kind: EventKind) {
        self.events.push(at(us, self.now.pid, kind));
    }

    /// Switches to a thread; the one before is in this state.
    fn switch(&mut self, us: u64, prev_state: PrevState, to: u32) {
        let to = self.task(to);
        self.event(us, EventKind::Switch { from: self.now, prev_state, to });
        self.now = to;
    }

    fn wake(&mut self, us: u64, pid: u32) {
        let task = self.task(pid);
        self.event(us, EventKind::Waking { task, target_cpu: 0 });
    }

    fn futex(&mut self, us: u64, address: u64, operation: u64, value: u64) {
        let arguments = [address, operation, value];
        self.event(us, EventKind::CallEntry { call: call("futex"), arguments });
    }

    fn leave(&mut self, us: u64) {
        self.event(us, EventKind::CallExit { call: 0 });
    }

    /// The figures of a thread when these threads are followed.
    fn thread(&self, tid: u32, end_us: u64) -> ProcessThread {
        let mut process = Process::new(START_NS, u64::MAX, Selection::default());
        process.expect_calls();
        for &(tid, _) in &self.priorities {
            process.follow(ThreadInfo { tid, comm: task(tid).comm, asleep: true }, 0);
        }
        self.events.iter().for_each(|event| process.handle_event(event));
        let series = process.series("run", START_NS + end_us * 1000);
        let threads: Vec<_> = series.iter().filter_map(|series| series.kind.process()).collect();
        threads.into_iter().find(|thread| thread.tid == tid).unwrap().clone()
    }
}

const WAIT: u64 = 0;
const WAKE: u64 = 1;
const LOCK_PI: u64 = 6;
const UNLOCK_PI: u64 = 7;
const PRIVATE: u64 = 0x80;
const LOW: u32 = 30;
const MID: u32 = 31;
const HIGH: u32 = 32;

/// `t32` waits for a lock that `t30` holds, while `t31` keeps it off the CPU. `wait` and `wake` are the address,
/// operation and value of the calls; the holder makes some calls before the last.
fn inverted(wait: (u64, u64, u64), wake: (u64, u64, u64), calls: u64) -> Cpu0 {
    let mut cpu = Cpu0::new(&[(LOW, 89), (MID, 49), (HIGH, 19)]);
    cpu.wake(10, LOW);
    cpu.switch(11, PrevState::Preempted, LOW);
    cpu.wake(100, HIGH);
    cpu.switch(101, PrevState::Preempted, HIGH);
    cpu.futex(110, wait.0, wait.1, wait.2);
    cpu.switch(111, PrevState::Sleeping, LOW);
    cpu.wake(150, MID);
    cpu.switch(151, PrevState::Preempted, MID);
    cpu.switch(5151, PrevState::Sleeping, LOW);
    for number in 0..calls {
        cpu.event(5200 + number, EventKind::CallEntry { call: call("write"), arguments: [1; 3] });
        cpu.leave(5200 + number);
    }
    cpu.futex(5900, wake.0, wake.1, wake.2);
    cpu.wake(5901, HIGH);
    cpu.switch(5902, PrevState::Preempted, HIGH);
    cpu.leave(5903);
    cpu.event(5910, EventKind::CallEntry { call: call("poll"), arguments: [0; 3] });
    cpu.switch(5911, PrevState::Sleeping, LOW);
    cpu
}

#[test]
fn priority_inversions_are_found_at_every_kind_of_lock() {
    let kinds = [
        ("a mutex", (0x40, WAIT | PRIVATE, 2), (0x40, WAKE | PRIVATE, 1), 0),
        ("many calls of the holder", (0x40, WAIT | PRIVATE, 2), (0x40, WAKE | PRIVATE, 1), 500),
        ("a rwlock", (0x48, WAIT | PRIVATE, 3), (0x48, WAKE | PRIVATE, 1), 0),
        ("at two addresses", (0x7f00_1040, WAIT, 2), (0x7e00_2040, WAKE, 1), 0),
        ("its holder ends", (0x40, WAIT, 0x8000_0000 | u64::from(LOW)), (0x99, WAIT, 1), 0),
    ];
    for (kind, wait, wake, calls) in kinds {
        let thread = inverted(wait, wake, calls).thread(HIGH, 6000);
        let [waits] = &thread.locks[..] else { panic!("{kind}: {:?}", thread.locks) };
        let by = waits.worst.preempter.as_ref().unwrap_or_else(|| panic!("{kind}: {waits:?}"));
        assert_eq!((waits.worst.holder.as_str(), by.comm.as_str(), by.kept.as_str()), ("t30", "t31", "t30"), "{kind}");
        assert_eq!((waits.count, waits.waited_ns, waits.inverted_ns), (1, 5_790_000, 5_000_000), "{kind}");
        let main = thread.longest.as_ref().unwrap().main_cause();
        assert_eq!(main, Some(CycleCause::PriorityInversion), "{kind}");
    }
}

#[test]
fn a_lock_of_the_kernel_has_a_holder_too() {
    let mut cpu = Cpu0::new(&[(LOW, 89), (MID, 49), (HIGH, 19)]);
    let writes = |cpu: &mut Cpu0, us| {
        cpu.event(us, EventKind::CallEntry { call: call("pwrite64"), arguments: [1; 3] });
    };
    cpu.wake(10, LOW);
    cpu.switch(11, PrevState::Preempted, LOW);
    writes(&mut cpu, 20);
    cpu.wake(100, HIGH);
    cpu.switch(101, PrevState::Preempted, HIGH);
    writes(&mut cpu, 110);
    cpu.event(111, EventKind::LockWait { lock: 0xffff_8881 });
    cpu.switch(112, PrevState::Uninterruptible, LOW);
    cpu.wake(150, MID);
    cpu.switch(151, PrevState::Preempted, MID);
    cpu.switch(5151, PrevState::Sleeping, LOW);
    cpu.wake(5901, HIGH);
    cpu.switch(5902, PrevState::Preempted, HIGH);
    cpu.event(5903, EventKind::LockWaitEnd { lock: 0xffff_8881 });
    cpu.leave(5904);
    cpu.event(5910, EventKind::CallEntry { call: call("poll"), arguments: [0; 3] });
    cpu.switch(5911, PrevState::Sleeping, LOW);
    let thread = cpu.thread(HIGH, 6000);
    let worst = &thread.locks[0].worst;
    assert_eq!((worst.lock.as_str(), worst.call.as_str(), worst.holder.as_str()), ("", "pwrite64", "t30"));
    let causes: Vec<_> = thread.longest.unwrap().parts.iter().map(|part| (part.cause, part.call.clone())).collect();
    assert_eq!(causes[0], (CycleCause::PriorityInversion, "pwrite64".to_owned()));
    assert_eq!(causes[1], (CycleCause::KernelLock, "pwrite64".to_owned()));
}

#[test]
fn a_chain_of_locks_is_named_with_the_holders() {
    // `t32` waits for the lock 0xa0 of `t33`, which waits for 0xb0 of `t30`, which `t31` keeps off the CPU.
    const BETWEEN: u32 = 33;
    let mut cpu = Cpu0::new(&[(LOW, 94), (BETWEEN, 89), (MID, 49), (HIGH, 19)]);
    cpu.wake(10, LOW);
    cpu.switch(11, PrevState::Preempted, LOW);
    cpu.wake(50, BETWEEN);
    cpu.switch(51, PrevState::Preempted, BETWEEN);
    cpu.wake(60, HIGH);
    cpu.switch(61, PrevState::Preempted, HIGH);
    cpu.futex(62, 0xa0, LOCK_PI | PRIVATE, 0);
    cpu.switch(63, PrevState::Sleeping, BETWEEN);
    cpu.futex(163, 0xb0, WAIT | PRIVATE, 2);
    cpu.switch(164, PrevState::Sleeping, LOW);
    cpu.wake(200, MID);
    cpu.switch(201, PrevState::Preempted, MID);
    cpu.switch(5201, PrevState::Sleeping, LOW);
    cpu.futex(5300, 0xb0, WAKE | PRIVATE, 1);
    cpu.wake(5301, BETWEEN);
    cpu.switch(5302, PrevState::Preempted, BETWEEN);
    cpu.leave(5303);
    cpu.futex(5400, 0xa0, UNLOCK_PI | PRIVATE, 0);
    cpu.wake(5401, HIGH);
    cpu.switch(5402, PrevState::Preempted, HIGH);
    cpu.leave(5403);
    let thread = cpu.thread(HIGH, 6000);
    let worst = &thread.locks[0].worst;
    let by = worst.preempter.as_ref().unwrap();
    let locks: Vec<_> = by.locks.iter().map(|h| (h.lock.as_str(), h.holder.as_str(), h.inherits_priority)).collect();
    assert_eq!(locks, [("0xa0", "t33", true), ("0xb0", "t30", false)]);
    assert_eq!((worst.holder.as_str(), by.kept.as_str(), worst.inverted_ns), ("t33", "t30", 5_001_000));
    // The inversion includes the microsecond before `t33` gets the CPU back. Before `t33` waited
    // for the other lock, it held the first one and ran.
    assert_eq!((worst.ran_ns, worst.unknown_ns), (101_000 + 37_000 + 100_000 + 99_000, 0));
}

#[test]
fn the_own_priority_of_a_holder_is_named_not_an_inherited_one() {
    let cpu = inverted((0x40, WAIT | PRIVATE, 2), (0x40, WAKE | PRIVATE, 1), 0);
    let mut process = Process::new(START_NS, u64::MAX, Selection::default());
    process.expect_calls();
    for tid in [LOW, MID, HIGH] {
        process.follow(ThreadInfo { tid, comm: task(tid).comm, asleep: true }, 0);
    }
    process.set_own_priority(LOW, 95);
    process.note_own_threads([MID]);
    cpu.events.iter().for_each(|event| process.handle_event(event));
    let series = process.series("run", START_NS + 6_000_000);
    let high = series.iter().find(|series| series.role == "t32").unwrap().kind.process().unwrap();
    let worst = &high.locks[0].worst;
    assert_eq!((worst.holder_priority, worst.priority), (95, 19));
    assert!(worst.preempter.as_ref().unwrap().own);
    let low = series.iter().find(|series| series.role == "t30").unwrap().kind.process().unwrap();
    assert!(low.preempted_by.iter().any(|by| by.own && by.comm == "t31"), "{:?}", low.preempted_by);
}

#[test]
fn a_cycle_that_does_not_end_is_known_so_far() {
    let mut cpu = Cpu0::new(&[(WORKER, 49)]);
    for number in 0..4 {
        cpu.wake(100 + 1000 * number, WORKER);
        cpu.switch(101 + 1000 * number, PrevState::Preempted, WORKER);
        cpu.event(150 + 1000 * number, EventKind::CallEntry { call: call("clock_nanosleep"), arguments: [1, 1, 0] });
        cpu.switch(151 + 1000 * number, PrevState::Sleeping, 0);
    }
    assert_eq!(cpu.thread(WORKER, 5000).open, None, "it sleeps until the next cycle");
    cpu.wake(4100, WORKER);
    cpu.switch(4101, PrevState::Preempted, WORKER);
    cpu.futex(4200, 0x40, WAIT | PRIVATE, 2);
    cpu.switch(4201, PrevState::Sleeping, 0);
    let open = cpu.thread(WORKER, 9000).open.unwrap();
    assert_eq!((open.at_ns, open.response_ns()), (4_100_000, 4_900_000));
    assert_eq!((open.main_cause(), open.parts[0].ns), (Some(CycleCause::LockHeld), 4_799_000));
    assert_eq!(open.lock.unwrap().lock, "0x40");
}

#[test]
fn ended_threads_leave_room_for_new_ones() {
    let mut process = Process::new(START_NS, u64::MAX, Selection::default());
    let life = |process: &mut Process, tid: u32, us: u64, work: u64| {
        process.follow(ThreadInfo { tid, comm: Comm::new("x"), asleep: true }, 0);
        for event in [
            waking(us, tid),
            switch(us, 0, PrevState::Preempted, tid),
            at(us + work, tid, EventKind::Exit),
            switch(us + work, tid, PrevState::Other, 0),
        ] {
            process.handle_event(&event);
        }
    };
    life(&mut process, 100, 1, 500);
    (0..2000).for_each(|number| life(&mut process, 1000 + number, 1000 + u64::from(number) * 10, 5));
    process.follow(ThreadInfo { tid: WORKER, comm: Comm::new("worker"), asleep: false }, 0);
    assert!(process.follows(WORKER) && process.follows(100) && process.threads_not_followed() == 0);
    assert_eq!(process.ended_threads_dropped(), 2000 + 2 - record::THREADS_FOLLOWED as u64);
    let longest = process.series("run", START_NS + 1_000_000_000);
    assert!(longest.iter().any(|series| series.role == "t100"), "it has the longest cycle");
    let mut full = Process::new(START_NS, u64::MAX, Selection::default());
    (1..=1026).for_each(|tid| full.follow(ThreadInfo { tid, comm: Comm::new("x"), asleep: false }, 0));
    assert_eq!((full.threads_not_followed(), full.ended_threads_dropped()), (2, 0), "all of them live");
}

#[test]
fn a_preempted_thread_that_becomes_real_time_was_not_limited() {
    let mut cpu = Cpu0::new(&[(WORKER, 120)]);
    cpu.wake(100, WORKER);
    cpu.switch(101, PrevState::Preempted, WORKER);
    cpu.switch(200, PrevState::Preempted, 20);
    cpu.priorities[0].1 = 19;
    cpu.switch(5200, PrevState::Preempted, WORKER);
    cpu.event(5210, EventKind::CallEntry { call: call("poll"), arguments: [0; 3] });
    cpu.switch(5211, PrevState::Sleeping, 0);
    let longest = cpu.thread(WORKER, 6000).longest.unwrap();
    assert_eq!(longest.main_cause(), Some(CycleCause::Preemption), "{longest:?}");
}

fn any_event() -> impl Strategy<Value = Event> {
    let pid = || select(vec![0, WORKER, WORKER, 11, 12]);
    let prev_state = select(vec![
        PrevState::Preempted,
        PrevState::Sleeping,
        PrevState::Sleeping,
        PrevState::Uninterruptible,
        PrevState::Stopped,
        PrevState::Other,
    ]);
    let kind = prop_oneof![
        6 => (pid(), prev_state, pid()).prop_map(|(from, prev_state, to)| EventKind::Switch { from: task(from), prev_state, to: task(to) }),
        4 => pid().prop_map(|pid| EventKind::Waking { task: task(pid), target_cpu: 0 }),
        1 => pid().prop_map(|child| EventKind::Fork { child }),
        1 => Just(EventKind::Exit),
        3 => (select(vec!["futex", "clock_nanosleep", "read", "sched_yield", "rt_sigreturn", "restart_syscall"]), 0..10_u64, 0..3_u64)
            .prop_map(|(name, second, third)| EventKind::CallEntry { call: call(name), arguments: [0x70, second, third] }),
        3 => Just(EventKind::CallExit { call: 0 }),
        1 => (0..5_000_000_i64).prop_map(|expires_ns| EventKind::TimerStart { function: 0, expires_ns, latest_ns: expires_ns + 50_000 }),
        1 => (0..5_000_000_i64).prop_map(|expires_ns| EventKind::FdTimerStart { expires_ns }),
        1 => any::<bool>().prop_map(|in_kernel| EventKind::PageFault { address: 0, in_kernel }),
        1 => Just(EventKind::SignalDelivered { signal: 10, handled: true }),
        1 => Just(EventKind::BlockRequest),
        2 => any::<bool>().prop_map(|begins| EventKind::Mark { begins }),
        1 => Just(EventKind::LockWait { lock: 1 }),
        1 => Just(EventKind::LockWaitEnd { lock: 1 }),
    ];
    (0..5_000_000_u64, 0..4_u32, pid(), kind).prop_map(|(at_ns, cpu, pid, kind)| Event { at_ns, cpu, pid, kind })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_times_of_a_thread_add_up(
        events in vec(any_event(), 0..150),
        gaps in vec((0..150_usize, 0..5_000_000_u64, 0..1_000_000_u64), 0..3),
        in_order in any::<bool>(),
        period_us in proptest::option::of(1..2000_u64),
        knows_calls in any::<bool>(),
    ) {
        let mut events = events;
        if in_order {
            events.sort_by_key(|event| event.at_ns);
        }
        let mut process = process(period_us);
        process.set_fault_time(1000);
        if knows_calls {
            process.expect_calls();
        }
        for (number, event) in events.iter().enumerate() {
            for &(_, from_ns, length_ns) in gaps.iter().filter(|gap| gap.0 == number) {
                process.lost(from_ns, from_ns + length_ns);
            }
            process.handle_event(event);
        }
        const END_NS: u64 = 7_000_000;
        for series in process.series("run", END_NS) {
            let thread = series.kind.process().unwrap();
            let of_the_run = thread.times.total_ns();
            // A thread that lived from start to end was observed all the time; no thread was observed for longer.
            prop_assert!(of_the_run <= END_NS - START_NS);
            if thread.tid == WORKER && !thread.ended && !events.iter().any(|e| e.kind == EventKind::Fork { child: WORKER }) {
                prop_assert_eq!(of_the_run, END_NS - START_NS);
            }
            prop_assert_eq!(series.samples, series.raw.total());
            prop_assert_eq!(thread.cycles, thread.response.total());
            prop_assert_eq!(thread.cycles, thread.run_time.total());
            prop_assert!(thread.worst_cycles.iter().all(|cycle| cycle.times.unknown_ns == 0));
            for cycle in thread.worst_cycles.iter().chain(&thread.open) {
                let parts_ns: u64 = cycle.parts.iter().map(|part| part.ns).sum();
                prop_assert_eq!(parts_ns, cycle.response_ns(), "{:?}", cycle);
            }
            prop_assert!(thread.preempted.total() <= thread.preemptions);
            prop_assert_eq!(series.missed, thread.overruns + thread.skipped);
            let waited: u64 = thread.preempted_by.iter().map(|by| by.waited_ns).sum();
            prop_assert!(waited <= thread.times.preempted_ns);
            prop_assert!(series.max_ns.unwrap_or(0).cast_unsigned() <= thread.times.ready_ns);
        }
    }
}
