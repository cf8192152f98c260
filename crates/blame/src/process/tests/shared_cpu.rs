//! Threads that share a CPU: locks and their holders, priority inversions.

use super::*;

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

/// A thread waits five times for `t30`, which sleeps until shortly before it wakes the waiter. `sleeps` is true if the
/// waiter also sleeps between the waits.
fn handshakes(sleeps: bool) -> ProcessThread {
    let mut cpu = Cpu0::new(&[(LOW, 7), (HIGH, 5)]);
    cpu.wake(10, LOW);
    cpu.switch(11, PrevState::Preempted, LOW);
    cpu.wake(20, HIGH);
    cpu.switch(21, PrevState::Preempted, HIGH);
    for us in (5000..=45_000).step_by(5000) {
        cpu.futex(us - 4700, 0x40, WAIT | PRIVATE, 2);
        cpu.switch(us - 4699, PrevState::Sleeping, LOW);
        cpu.leave(us - 4690);
        cpu.event(us - 4689, EventKind::CallEntry { call: call("clock_nanosleep"), arguments: [1, 1, 0] });
        cpu.switch(us - 4680, PrevState::Sleeping, 0);
        cpu.wake(us, LOW);
        cpu.switch(us + 1, PrevState::Preempted, LOW);
        cpu.leave(us + 2);
        cpu.futex(us + 3, 0x40, WAKE | PRIVATE, 1);
        cpu.wake(us + 4, HIGH);
        cpu.switch(us + 5, PrevState::Preempted, HIGH);
        cpu.leave(us + 6);
        // The value of an idle worker again.
        cpu.futex(us + 200, 0x40, WAKE | PRIVATE, 1);
        cpu.leave(us + 201);
        if sleeps {
            cpu.event(us + 210, EventKind::CallEntry { call: call("clock_nanosleep"), arguments: [1, 1, 0] });
            cpu.switch(us + 211, PrevState::Sleeping, LOW);
            cpu.wake(us + 250, HIGH);
            cpu.switch(us + 251, PrevState::Preempted, HIGH);
            cpu.leave(us + 252);
        }
    }
    cpu.futex(45_300, 0x40, WAIT | PRIVATE, 2);
    cpu.switch(45_301, PrevState::Sleeping, LOW);
    cpu.thread(HIGH, 46_000)
}

#[test]
fn a_word_whose_holder_sleeps_until_it_wakes_the_waiter_is_no_lock() {
    let worker = handshakes(false);
    assert!(worker.locks.is_empty(), "{:?}", worker.locks);
    assert_eq!((worker.release, worker.cycles_cut), (record::Release::Event, 1));
    assert!(worker.cycles >= 5, "{}", worker.cycles);
    assert_eq!(worker.longest.unwrap().response_ns(), 297_000);
    let with_cycles = handshakes(true);
    assert_eq!((with_cycles.locks.len(), with_cycles.release), (1, record::Release::AbsoluteSleep), "a slow holder");
}
