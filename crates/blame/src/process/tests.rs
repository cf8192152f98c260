//! Statistics of hand-written events, and properties that hold for any events.

mod calls;
mod shared_cpu;

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
fn a_wake_up_without_a_cpu_at_the_end_of_the_run_counts() {
    let events = [
        waking(100, WORKER),
        switch(105, 0, PrevState::Preempted, WORKER),
        switch(200, WORKER, PrevState::Sleeping, 20),
        waking(1000, WORKER),
    ];
    let (series, _) = after(None, &events, 9000);
    assert_eq!((series.samples, series.max_ns, series.spikes_total), (2, Some(8_000_000), 1));
    let (series, _) = after(None, &[&events[..], &[switch(1004, 20, PrevState::Preempted, WORKER)]].concat(), 9000);
    assert_eq!((series.samples, series.max_ns), (2, Some(5000)), "it has the CPU");
}

#[test]
fn a_thread_that_executes_a_program_takes_over_the_id_of_the_first_one() {
    let mut process = process(None);
    let exec = at(900, WORKER, EventKind::Exec);
    let cycles = (10..30).flat_map(|number| {
        let us = number * 100;
        [
            waking(us, WORKER),
            switch(us + 1, 0, PrevState::Preempted, WORKER),
            switch(us + 41, WORKER, PrevState::Sleeping, 0),
        ]
    });
    let events = [
        waking(100, WORKER),
        switch(105, 0, PrevState::Preempted, WORKER),
        at(110, WORKER, EventKind::Fork { child: 20 }),
        switch(200, WORKER, PrevState::Sleeping, 20),
        // The kernel ends the first thread.
        on(1, waking(700, WORKER)),
        on(1, switch(705, 0, PrevState::Preempted, WORKER)),
        on(1, at(710, WORKER, EventKind::Exit)),
        on(1, switch(720, WORKER, PrevState::Other, 0)),
        exec,
        switch(950, WORKER, PrevState::Sleeping, 0),
    ];
    events.into_iter().chain(cycles).for_each(|event| process.handle_event(&event));
    let series = process.series("run", START_NS + 3_100_000);
    let threads: Vec<&ProcessThread> = series.iter().filter_map(|series| series.kind.process()).collect();
    let of = |tid, ended| threads.iter().find(|thread| (thread.tid, thread.ended) == (tid, ended)).unwrap();
    assert_eq!(threads.len(), 3);
    assert!(of(WORKER, false).cycles >= 19, "{threads:?}");
    assert_eq!((of(WORKER, true).ended_at_ns, of(20, true).ended_at_ns), (Some(720_000), Some(900_000)));
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
    assert_eq!(thread.overrun_by, Some(Overruns { by_work: 1, by_waiting: 1, ..Overruns::default() }));
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
        1 => (0..5_000_000_i64).prop_map(|expires_ns| EventKind::FdTimerStart { timer: 1, expires_ns }),
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
