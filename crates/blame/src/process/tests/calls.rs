//! Cycles by the system calls of one thread.

use super::*;

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
        at(us, WORKER, EventKind::FdTimerStart { timer: 1, expires_ns })
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
            events.extend([at(us + 902, WORKER, EventKind::FdTimerStart { timer: 1, expires_ns }), exit(us + 903)]);
        }
        with_calls(None, &events, 21_000).1.release
    };
    assert_eq!((release(3), release(4)), (record::Release::Timer, record::Release::Mixed));
}

#[test]
fn a_watchdog_that_is_armed_in_each_cycle_starts_none() {
    let starts = |us, timer, expires_us: u64| {
        let expires_ns = (START_NS + expires_us * 1000).cast_signed();
        at(us, WORKER, EventKind::FdTimerStart { timer, expires_ns })
    };
    let mut events = Vec::new();
    for number in 0..20 {
        let us = number * 1000 + 10;
        events.extend([enter(us, "read", [3, 0, 0]), sleeps(us + 1)]);
        events.extend(resumes(us + 900));
        events.extend([starts(us + 902, 1, us + 1900), exit(us + 903)]);
        events.push(starts(us + 904, 2, us + 950));
    }
    let thread = with_calls(None, &events, 21_000).1;
    assert_eq!(thread.release, record::Release::Timer);
    let longest_ns = thread.longest.unwrap().response_ns();
    assert!(longest_ns < 120_000, "{longest_ns} ns from the periodic timer, not from the watchdog");
}

/// An event of the timerfd that the thread arms or reads, with its next expiry.
fn fd_timer(us: u64, expires_us: u64) -> Event {
    let expires_ns = (START_NS + expires_us * 1000).cast_signed();
    at(us, WORKER, EventKind::FdTimerStart { timer: 1, expires_ns })
}

#[test]
fn a_timerfd_that_is_only_polled_leaves_the_kind_of_release_open() {
    let release = |polls: bool| {
        let mut events = vec![fd_timer(2, 1000)];
        for number in 0..20 {
            let us = number * 1000 + 10;
            // The thread sleeps for half a period, and then reads the timer, which has expired once in two readings.
            if polls {
                for begun in [us, us + 500] {
                    events.extend([enter(begun, "nanosleep", [0; 3]), timer(begun, begun + 400), sleeps(begun + 1)]);
                    events.extend(resumes(begun + 400));
                    events.extend([exit(begun + 402), enter(begun + 410, "read", [3, 0, 0])]);
                    events.extend((begun > us).then(|| fd_timer(begun + 411, us + 1990)));
                    events.push(exit(begun + 412));
                }
            } else {
                events.extend([enter(us, "read", [3, 0, 0]), sleeps(us + 1)]);
                events.extend(resumes(us + 990));
                events.extend([fd_timer(us + 991, us + 1990), exit(us + 992)]);
            }
        }
        with_calls(None, &events, 21_000).1.release
    };
    assert_eq!((release(false), release(true)), (record::Release::Timer, record::Release::Mixed));
}

#[test]
fn an_old_expiry_of_a_timer_that_is_never_read_decides_nothing() {
    let release = |late_us: u64| {
        let mut events = vec![];
        for number in 1..=20 {
            let us = number * 10_000;
            // A watchdog that the thread arms in each cycle, and that expires before the next event or long before.
            events.push(fd_timer(us + 1, us + 9_000 - late_us));
            events.extend([enter(us + 10, "read", [6, 0, 0]), sleeps(us + 11)]);
            events.extend(resumes(us + 9_000));
            events.push(exit(us + 9_002));
        }
        with_calls(None, &events, 215_000).1.release
    };
    assert_eq!((release(100), release(5_000)), (record::Release::Event, record::Release::Mixed));
}

#[test]
fn a_timerfd_that_is_set_to_a_time_that_is_over_starts_a_cycle() {
    let armed = |us, expires_us: u64| {
        let expires_ns = (START_NS + expires_us * 1000).cast_signed();
        at(us, WORKER, EventKind::FdTimerStart { timer: 1, expires_ns })
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

/// A switch to or from the worker with this priority.
fn deadline_switch(us: u64, priority: i32, prev_state: Option<PrevState>) -> Event {
    let worker = Task { priority, ..task(WORKER) };
    let (from, to) = if prev_state.is_some() { (worker, task(0)) } else { (task(0), worker) };
    let prev_state = prev_state.unwrap_or(PrevState::Preempted);
    at(us, from.pid, EventKind::Switch { from, prev_state, to })
}

#[test]
fn the_first_yield_under_the_deadline_policy_is_a_wait_for_the_next_period() {
    let mut events = vec![enter(0, "nanosleep", [0; 3]), timer(0, 1000), sleeps(1)];
    events.extend(resumes(1000));
    // No switch shows the policy before the first yield.
    events.extend([exit(1002), enter(1010, "sched_setattr", [0; 3]), exit(1012)]);
    for us in (1300..200_000).step_by(20_000) {
        events.extend([enter(us, "sched_yield", [0; 3]), deadline_switch(us + 1, -1, Some(PrevState::Preempted))]);
        events.extend([deadline_switch(us + 19_700, -1, None), exit(us + 19_701)]);
    }
    let thread = with_calls(None, &events, 201_000).1;
    assert_eq!(thread.release, record::Release::Yield);
    let cycles = cycles_of(&thread);
    assert_eq!(cycles[..3], [(1000, 301), (21_000, 300), (41_000, 300)], "{cycles:?}");
    assert!(thread.causes.iter().all(|entry| entry.cause == CycleCause::OwnWork), "{:?}", thread.causes);
}

#[test]
fn a_yield_after_many_waits_for_events_is_no_exhausted_budget() {
    let mut events = Vec::new();
    for us in (1000..13_000).step_by(1000) {
        events.extend([enter(us, "read", [3, 0, 0]), deadline_switch(us + 1, -1, Some(PrevState::Sleeping))]);
        events.extend([waking(us + 500, WORKER), deadline_switch(us + 501, -1, None), exit(us + 502)]);
    }
    events.extend([enter(13_000, "sched_yield", [0; 3]), deadline_switch(13_001, -1, Some(PrevState::Preempted))]);
    events.extend([deadline_switch(33_001, -1, None), exit(33_002), enter(33_100, "read", [3, 0, 0])]);
    events.push(deadline_switch(33_101, -1, Some(PrevState::Sleeping)));
    let thread = with_calls(None, &events, 34_000).1;
    let causes: Vec<_> = thread.worst_cycles.iter().flat_map(|cycle| &cycle.parts).map(|part| part.cause).collect();
    assert!(!causes.contains(&CycleCause::DeadlineBudget) && thread.preemptions == 0, "{causes:?}");
}

/// The longest cycle of a worker whose control group is frozen from 4.2 ms to 8 ms, read every millisecond.
fn frozen(events: impl FnOnce(&mut Vec<Event>)) -> record::Cycle {
    let mut all: Vec<Event> = (1..=3).flat_map(|ms| absolute_cycle(ms * 1000)).collect();
    events(&mut all);
    let mut process = process(None);
    process.expect_calls();
    process.set_process(WORKER, WORKER, false);
    for us in (3500..9000).step_by(1000) {
        process.note_freeze(WORKER, START_NS + us * 1000, (4200..8000).contains(&us));
    }
    all.iter().for_each(|event| process.handle_event(event));
    assert_eq!(process.frozen_ns(), 4_000_000);
    process.series("run", START_NS + 9_500_000).remove(0).kind.process().unwrap().longest.clone().unwrap()
}

#[test]
fn a_frozen_control_group_stops_a_thread() {
    // Version 1 freezes a sleeping thread where it is.
    let asleep = frozen(|events| {
        events.extend([enter(3200, "clock_nanosleep", [1, 1, 0]), timer(3200, 4000), sleeps(3201)]);
        events.extend(resumes(8000));
        events.extend([exit(8002), enter(8100, "clock_nanosleep", [1, 1, 0]), timer(8100, 9000), sleeps(8101)]);
    });
    assert_eq!((asleep.response_ns(), asleep.main_cause()), (4_100_000, Some(CycleCause::Stopped)), "{asleep:?}");
    // Version 2 wakes it, and it waits on its way back to the program.
    let woken = frozen(|events| {
        events.extend([enter(3200, "clock_nanosleep", [1, 1, 0]), timer(3200, 5000), sleeps(3201)]);
        events.extend(resumes(4200));
        events.extend([exit(4202), sleeps(4203)]);
        events.extend(resumes(8000));
        events.extend([enter(8002, "clock_nanosleep", [1, 1, 0]), timer(8002, 5000), exit(8003)]);
        events.extend([enter(8100, "clock_nanosleep", [1, 1, 0]), timer(8100, 9000), sleeps(8101)]);
    });
    assert_eq!((woken.response_ns(), woken.main_cause()), (3_100_000, Some(CycleCause::Stopped)), "{woken:?}");
    let working = frozen(|events| {
        events.extend(absolute_cycle(4000));
        events.push(sleeps(4200));
        events.extend(resumes(8000));
        events.extend([enter(8100, "clock_nanosleep", [1, 1, 0]), timer(8100, 9000), sleeps(8101)]);
    });
    assert_eq!((working.response_ns(), working.main_cause()), (4_100_000, Some(CycleCause::Stopped)), "{working:?}");
}
