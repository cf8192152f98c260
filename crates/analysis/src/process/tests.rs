use record::{
    Cause, CauseKind, Culprit, Cycle, CycleCause, CyclePart, LockWait, LockWaits, Preempter, Program, Release,
    SeriesKind, Spike, ThreadTimes, Why,
};

use super::*;

fn record() -> Record {
    let part =
        |cause, ns, by: &str| CyclePart { cause, ns, count: 1, by: by.into(), by_tid: 5, ..CyclePart::default() };
    let parts = vec![part(CycleCause::WakeUp, 700_000, "stress-ng"), part(CycleCause::OwnWork, 400_000, "")];
    let times = ThreadTimes { running_ns: 400_000, ready_ns: 700_000, ..ThreadTimes::default() };
    let thread = ProcessThread {
        cycles: 9_997,
        overruns: 2,
        overrun_by: Some(Overruns { by_waiting: 2, ..Overruns::default() }),
        skipped: 3,
        longest: Some(Cycle { times, parts, ..Cycle::default() }),
        release: Release::AbsoluteSleep,
        preemptions: 51,
        times: ThreadTimes { preempted_ns: 23_000_000, blocked_ns: 9_977_000_000, ..ThreadTimes::default() },
        preempted_by: vec![Preempter {
            comm: "stress-ng".into(),
            tid: 5,
            count: 50,
            waited_ns: 23_000_000,
            ..Preempter::default()
        }],
        ..ProcessThread::default()
    };
    let cause = Cause { why: Some(Why::HigherPriority), ..Cause::new(CauseKind::Thread, "stress-ng") };
    let spike = Spike { lateness_ns: 700_000, culprits: vec![Culprit { cause, ns: 700_000 }], ..Spike::default() };
    let servo = Series {
        role: "servo".into(),
        period_ns: 1_000_000,
        missed: 5,
        max_ns: Some(700_000),
        spikes: vec![spike],
        kind: SeriesKind::Process(Box::new(thread)),
        ..Series::default()
    };
    Record { program: Some(Program::default()), series: vec![servo], ..Record::default() }
}

#[test]
fn explains_a_late_program() {
    let sentences = conclusion(&record());
    assert_eq!(
        sentences,
        [
            "servo missed 5 of 10,000 deadlines of 1 ms: 2 cycles took longer (mostly waiting for a CPU), 3 did not \
             start.",
            "The longest cycle of servo took 1.1 ms from the time that it slept until: 700 us waiting for a CPU \
             after a wake-up, 400 us its own work. Main cause: other work on the CPU, most of it stress-ng (pid 5).",
            "servo waited at most 700 us for a CPU after a wake-up, mostly because of: thread stress-ng, of \
             higher priority.",
            "servo was preempted 51 times and waited 23 ms for a CPU, mostly because of stress-ng (50 times).",
        ]
    );
}

#[test]
fn bounds_the_rate_without_missed_deadlines() {
    let mut record = record();
    let thread = ProcessThread { cycles: 6000, release: Release::Event, ..ProcessThread::default() };
    record.series[0].kind = SeriesKind::Process(Box::new(thread));
    record.series[0].missed = 0;
    let sentences = conclusion(&record);
    assert_eq!(
        sentences[0],
        "servo missed none of 6,000 deadlines of 1 ms; at 95 % confidence, fewer than one stall in 2 s."
    );
    assert_eq!(sentences.len(), 2, "no cycle, no preemption: {sentences:?}");
}

#[test]
fn handles_records_without_threads() {
    assert!(conclusion(&Record::default()).is_empty());
    let nothing = Record { program: Some(Program::default()), ..Record::default() };
    assert_eq!(conclusion(&nothing), ["None of the selected threads ran."]);
}

#[test]
fn an_invalid_run_without_limits_is_invalid() {
    let outcome = |valid| {
        let record = Record { validity: record::Validity { valid, reasons: vec![] }, ..record() };
        verdict(&record, Limits::default()).map(|verdict| verdict.outcome)
    };
    assert_eq!((outcome(true), outcome(false)), (None, Some(Outcome::Invalid)));
}

#[test]
fn judges_by_limits_unless_events_were_lost() {
    let mut record = Record { validity: record::Validity { valid: true, reasons: vec![] }, ..record() };
    record.series[0].samples = 70;
    let outcome = |record: &Record, latency_ns, missed| {
        let verdict = verdict(record, Limits { latency_ns, missed, response_ns: None });
        verdict.map(|verdict| (verdict.outcome, verdict.reason))
    };
    assert_eq!(outcome(&record, None, None), None);
    let reason = "servo waited 700 us for a CPU after a wake-up (limit 600 us); 5 deadlines were missed (limit 4)";
    assert_eq!(outcome(&record, Some(600_000), Some(4)), Some((Outcome::Fail, reason.to_owned())));
    let of = |record: &Record| outcome(record, Some(700_000), Some(5)).unwrap().0;
    assert_eq!(of(&record), Outcome::Pass);
    record.caveats.push(record::Caveat { kind: "overflow".into(), text: String::new() });
    assert_eq!(of(&record), Outcome::Inconclusive);
    record.validity.valid = false;
    assert_eq!(of(&record), Outcome::Invalid);
    assert_eq!(
        of(&Record { validity: record::Validity { valid: true, reasons: vec![] }, ..Record::default() }),
        Outcome::Inconclusive
    );
}

#[test]
fn the_rest_of_a_thread_that_ended_is_no_long_cycle() {
    let mut record = Record { validity: record::Validity { valid: true, reasons: vec![] }, ..record() };
    let mut outcome = |cycles, ended| {
        let times = ThreadTimes { running_ns: 3_000_000_000, ..ThreadTimes::default() };
        let longest = Some(Cycle { times, ..Cycle::default() });
        let thread =
            ProcessThread { cycles, ended, longest, release: Release::AbsoluteSleep, ..ProcessThread::default() };
        record.series[0].kind = SeriesKind::Process(Box::new(thread));
        verdict(&record, Limits { response_ns: Some(200_000_000), ..Limits::default() }).unwrap().outcome
    };
    assert_eq!(outcome(1, true), Outcome::Inconclusive, "a thread that polls");
    assert_eq!(outcome(1, false), Outcome::Fail);
    assert_eq!(outcome(20, true), Outcome::Fail);
}

#[test]
fn cycles_that_end_at_each_sleep_do_not_support_pass() {
    let mut record = Record { validity: record::Validity { valid: true, reasons: vec![] }, ..record() };
    record.series[0].samples = 70;
    let mut outcome = |release| {
        let thread = ProcessThread { cycles: 70, release, ..ProcessThread::default() };
        record.series[0].kind = SeriesKind::Process(Box::new(thread));
        verdict(&record, Limits { missed: Some(5), ..Limits::default() }).unwrap().outcome
    };
    assert_eq!(outcome(Release::AbsoluteSleep), Outcome::Pass);
    assert_eq!(outcome(Release::AnySleep), Outcome::Inconclusive, "a cycle may contain several sleeps");
}

#[test]
fn cycles_with_missing_events_do_not_support_pass() {
    let mut record = Record { validity: record::Validity { valid: true, reasons: vec![] }, ..record() };
    record.series[0].samples = 70;
    let mut outcome = |cycles, cycles_cut| {
        let thread = ProcessThread {
            cycles,
            cycles_cut,
            switches_missing: cycles_cut / 20,
            switches_missing_on: "1".to_owned(),
            release: Release::Event,
            ..ProcessThread::default()
        };
        record.series[0].kind = SeriesKind::Process(Box::new(thread));
        verdict(&record, Limits { missed: Some(5), ..Limits::default() }).unwrap()
    };
    assert_eq!(outcome(10, 2).outcome, Outcome::Pass);
    assert_eq!(outcome(9990, 10).outcome, Outcome::Pass);
    assert_eq!(outcome(10, 11).outcome, Outcome::Inconclusive);
    let verdict = outcome(1000, 50);
    assert_eq!(
        verdict.reason,
        "events of 50 of 1,050 cycles of servo are missing in the trace (on CPU 1, the kernel did not trace 2 switches \
         to it)"
    );
    assert!(outcome(10, 11).reason.ends_with(" of servo are missing in the trace"));
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
}

#[test]
fn a_response_time_can_be_limited() {
    let mut record = Record { validity: record::Validity { valid: true, reasons: vec![] }, ..record() };
    record.series[0].samples = 70;
    let outcome = |response_ns| {
        verdict(&record, Limits { response_ns: Some(response_ns), ..Limits::default() }).map(|verdict| verdict.reason)
    };
    assert_eq!(outcome(1_000_000).unwrap(), "a cycle of servo took 1.1 ms (limit 1 ms)");
    assert_eq!(outcome(1_100_000).unwrap(), "no limit was exceeded in 70 wake-ups");
}

/// The record with these figures of its thread.
fn with_thread(change: impl FnOnce(&mut ProcessThread)) -> Record {
    let mut record = Record { validity: record::Validity { valid: true, reasons: vec![] }, ..record() };
    record.series[0].samples = 70;
    if let SeriesKind::Process(thread) = &mut record.series[0].kind {
        change(thread);
    }
    record
}

#[test]
fn a_cycle_that_does_not_end_is_a_failure() {
    let wait = LockWait { lock: "0x40".into(), waited_ns: 900_000_000, ..LockWait::default() };
    let part = CyclePart { cause: CycleCause::LockHeld, ns: 900_000_000, count: 1, ..CyclePart::default() };
    let times = ThreadTimes { blocked_ns: 900_000_000, ..ThreadTimes::default() };
    let open = Cycle { times, parts: vec![part], lock: Some(wait), ..Cycle::default() };
    let record = with_thread(|thread| thread.open = Some(open));
    let limits = Limits { response_ns: Some(100_000_000), ..Limits::default() };
    let verdict = verdict(&record, limits).unwrap();
    assert_eq!(verdict.reason, "a cycle of servo had not ended after 900 ms (limit 100 ms)");
    assert_eq!(verdict.outcome, Outcome::Fail);
    let sentence = &conclusion(&record)[1];
    assert!(
        sentence.starts_with(
            "servo did not end its last cycle, 900 ms long at the end of the run: 900 ms waiting for a lock. Main \
             cause: lock 0x40, whose holder is unknown"
        ),
        "{sentence}"
    );
    assert_eq!(in_short(&record), *sentence, "it is the most important one");
}

#[test]
fn what_the_trace_does_not_show_supports_no_pass() {
    let outcome = |record: &Record, limits| verdict(record, limits).map(|verdict| (verdict.outcome, verdict.reason));
    let response = Limits { response_ns: Some(2_000_000), ..Limits::default() };
    let unclear = "the trace does not show which wait starts a cycle of servo, so the real cycles may be longer or \
                   shorter; mark the cycles with include/punctual.h";
    let alternating = with_thread(|thread| thread.release = Release::Alternating);
    assert_eq!(outcome(&alternating, response), Some((Outcome::Inconclusive, unclear.to_owned())));
    let too_many = with_thread(|thread| thread.cycles = 20_000);
    assert_eq!(outcome(&too_many, response), Some((Outcome::Inconclusive, unclear.to_owned())), "two a period");
    assert_eq!(outcome(&with_thread(|_| ()), response).unwrap().0, Outcome::Pass);
    let mixed = with_thread(|thread| {
        thread.release = Release::Mixed;
        thread.longest.as_mut().unwrap().times.blocked_ns = 5_000_000;
    });
    assert_eq!(outcome(&mixed, response), Some((Outcome::Inconclusive, unclear.to_owned())), "its wait may be idle");
    let missed = Limits { missed: Some(0), ..Limits::default() };
    assert_eq!(outcome(&mixed, missed), Some((Outcome::Inconclusive, unclear.to_owned())), "also with a period");
    let tight = Limits { response_ns: Some(1_000_000), ..Limits::default() };
    let reason = "a cycle of servo took 1.1 ms (limit 1 ms)";
    assert_eq!(outcome(&mixed, tight), Some((Outcome::Fail, reason.to_owned())), "without its waits");
    let ended = with_thread(|thread| thread.ending_ns = 3_000_000);
    let reason = outcome(&ended, response).unwrap().1;
    assert!(reason.starts_with("the time from the last release of servo to its end, 3 ms, is no cycle"), "{reason}");
    let mut unmatched = with_thread(|_| ());
    unmatched.caveats.push(record::Caveat { kind: UNMATCHED.to_owned(), text: "no thread a ran".to_owned() });
    assert_eq!(outcome(&unmatched, response), Some((Outcome::Inconclusive, "no thread a ran".to_owned())));
    let untraced = with_thread(|thread| {
        (thread.switches_missing, thread.switches_missing_on) = (3, "1".to_owned());
    });
    let latency = Limits { latency_ns: Some(700_000), ..Limits::default() };
    let reason = "the kernel did not trace 3 switches to servo on CPU 1";
    assert_eq!(outcome(&untraced, latency), Some((Outcome::Inconclusive, reason.to_owned())));
    let nothing = Record { series: vec![], ..with_thread(|_| ()) };
    let reason = "none of the selected threads ran, so nothing was measured";
    assert_eq!(outcome(&nothing, Limits::default()), Some((Outcome::Inconclusive, reason.to_owned())));
    let row = with_thread(|thread| thread.longest_row_ns = 3_000_000);
    let reason = "several cycles of servo in a row, which took 3 ms together, may be one: it waited for something else \
                  than usual between them; mark the cycles with include/punctual.h";
    assert_eq!(outcome(&row, response), Some((Outcome::Inconclusive, reason.to_owned())));
    let longer = Limits { response_ns: Some(3_000_000), ..Limits::default() };
    assert_eq!(outcome(&row, longer).unwrap().0, Outcome::Pass);
    let cut = with_thread(|thread| thread.longest_cut_ns = 3_000_000);
    let reason = outcome(&cut, response).unwrap().1;
    assert!(reason.starts_with("a cycle of servo that could not be followed from start to end may have"), "{reason}");
    assert_eq!(outcome(&cut, longer).unwrap().0, Outcome::Pass);
    let ended =
        with_thread(|thread| (thread.cycles, thread.ending_ns, thread.ending_work_ns) = (6, 9_000_000, 3_000_000));
    assert_eq!(outcome(&ended, response).unwrap().0, Outcome::Inconclusive, "few cycles");
    let yields = with_thread(|thread| thread.release = Release::Yield);
    assert!(outcome(&yields, response).unwrap().1.contains("the deadline policy starts the next period of servo"));
    assert_eq!(outcome(&yields, Limits { latency_ns: Some(700_000), ..Limits::default() }).unwrap().0, Outcome::Pass);
    let no_cycle = with_thread(|thread| (thread.cycles, thread.times.running_ns) = (0, 5));
    assert!(outcome(&no_cycle, response).unwrap().1.contains("mark them with include/punctual.h"));
}

#[test]
fn each_named_thread_must_have_worked_to_the_end() {
    let with = |change: fn(&mut ProcessThread, &mut u64)| {
        let mut record = with_thread(|_| ());
        let mut other = record.series[0].clone();
        if let SeriesKind::Process(thread) = &mut other.kind {
            change(thread, &mut other.samples);
        }
        record.phases = vec![record::Phase { duration_ns: 10_000_000_000, ..record::Phase::default() }];
        record.series.push(Series { role: "base".into(), missed: 0, ..other });
        move |limits| verdict(&record, limits).map(|verdict| (verdict.outcome, verdict.reason)).unwrap()
    };
    let missed = Limits { missed: Some(5), ..Limits::default() };
    let latency = Limits { latency_ns: Some(700_000), ..Limits::default() };
    let few = with(|thread, _| (thread.named, thread.cycles) = (true, 9));
    assert!(few(missed).1.starts_with("base has 9 cycles, and PASS needs at least 10"), "{few:?}", few = few(missed));
    assert_eq!((few(missed).0, few(latency).0), (Outcome::Inconclusive, Outcome::Pass));
    let idle = with(|thread, samples| (thread.named, *samples) = (true, 0));
    assert_eq!(idle(latency).0, Outcome::Inconclusive);
    let helper = with(|thread, samples| (thread.cycles, *samples) = (0, 0));
    assert_eq!((helper(missed).0, helper(latency).0), (Outcome::Pass, Outcome::Pass), "it was not named");
    let ended = with(|thread, _| (thread.named, thread.ended_at_ns) = (true, Some(3_000_000_000)));
    let reason = "base ended after 3 s of 10 s, so its deadlines after that were not counted";
    assert_eq!(ended(missed), (Outcome::Inconclusive, reason.to_owned()));
    let at_end = with(|thread, _| (thread.named, thread.ended_at_ns) = (true, Some(9_900_000_000)));
    assert_eq!(at_end(missed).0, Outcome::Pass);
}

#[test]
fn the_short_answer_names_a_priority_inversion() {
    let wait = LockWait { lock: "0x40".into(), waited_ns: 900_000, inverted_ns: 800_000, ..LockWait::default() };
    let waits = LockWaits { count: 7, waited_ns: 6_000_000, longest_ns: 900_000, inverted_ns: 5_600_000, worst: wait };
    let record = with_thread(|thread| thread.locks = vec![waits]);
    let text = in_short(&record);
    assert!(text.contains("servo waited 7 times for lock 0x40, 6 ms in all") && !text.contains("longest"), "{text}");
}

#[test]
fn the_cause_of_the_first_cycle_in_a_row_is_named() {
    let part = |cause| CyclePart { cause, ns: 900_000, count: 1, ..CyclePart::default() };
    let mut record = with_thread(|thread| {
        let longest = thread.longest.as_mut().unwrap();
        longest.parts = vec![part(CycleCause::PreviousCycle)];
        longest.delayed_by = Some(part(CycleCause::Quota));
    });
    record.program.as_mut().unwrap().quota_file = Some("/sys/fs/cgroup/a/cpu.max".to_owned());
    let text = in_short(&record);
    assert!(
        text.ends_with(
            "mostly because of the CPU quota of its control group: increase it in /sys/fs/cgroup/a/cpu.max."
        ),
        "{text}"
    );
}

#[test]
fn few_cycles_and_incomplete_runs_do_not_support_pass() {
    let reason = |record: &Record| {
        let limits = Limits { missed: Some(5), latency_ns: Some(700_000), response_ns: Some(2_000_000) };
        let verdict = verdict(record, limits).unwrap();
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{verdict:?}");
        verdict.reason
    };
    let few = with_thread(|thread| thread.cycles = 9);
    assert_eq!(reason(&few), "the run has 9 cycles with a period, and PASS needs at least 10");
    let mut few = with_thread(|_| ());
    few.series[0].samples = 1;
    assert_eq!(reason(&few), "the run has 1 wake-ups, and PASS needs at least 10");
    let of_program = |program| Record { program: Some(program), ..with_thread(|_| ()) };
    let crashed = Program { ended: true, signal: Some(11), ..Program::default() };
    assert_eq!(reason(&of_program(crashed)), "the program was ended by signal 11");
    let failed = Program { ended: true, exit_status: Some(3), ..Program::default() };
    assert!(reason(&of_program(failed)).starts_with("the program ended with exit status 3"));
    let left_out = Program { threads_left_out: 2, ..Program::default() };
    assert_eq!(reason(&of_program(left_out)), "2 threads were not watched");
    let ended = Program { ended_threads_left_out: 3, ..Program::default() };
    assert!(reason(&of_program(ended)).starts_with("3 ended threads have no figures"));
    let mut invalid = with_thread(|_| ());
    invalid.validity.valid = false;
    let limits = Limits { missed: Some(0), ..Limits::default() };
    assert_eq!(verdict(&invalid, limits).unwrap().outcome, Outcome::Invalid, "whatever its figures");
    let left = Program { processes_left: 1, ..Program::default() };
    assert!(reason(&of_program(left)).contains("1 of its processes still ran"));
    let mut early = with_thread(|_| ());
    early.state = State::Interrupted;
    early.phases = vec![record::Phase { planned_ns: Some(1), ..record::Phase::default() }];
    assert_eq!(reason(&early), "the run ended early, by a signal");
}
