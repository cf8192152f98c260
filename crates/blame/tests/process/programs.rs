//! Small programs whose cycles are known: each measures its own response times.

use std::{
    fs::File,
    io::Write,
    os::unix::net::UnixDatagram,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU32, Ordering::SeqCst},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use record::CycleCause;
use rustix::thread::futex;
use sys::{
    clock::{Clock, Sleeper, Wait},
    mapping::Mapping,
    sched::{self, Policy},
    usage::thread_cpu_time_ns,
};

/// Period of all programs, ns.
pub const PERIOD_NS: i64 = 20_000_000;
const MS: i64 = 1_000_000;
/// The CPU of all threads.
const CPU: u32 = 0;

/// One cycle as the program knows it.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    /// Its release, ns on CLOCK_MONOTONIC.
    pub release_ns: i64,
    /// From the release to its last reading of the clock.
    pub response_ns: i64,
    /// CPU time from that reading to the first one of the next cycle: a cycle ends when the thread blocks, which a busy
    /// hypervisor can delay.
    pub after_ns: i64,
    pub cause: CycleCause,
}

/// A program that waits for its start.
pub struct Program {
    /// The threads to trace.
    pub tids: Vec<u32>,
    go: Vec<mpsc::Sender<i64>>,
    measured: JoinHandle<Vec<Truth>>,
    others: Vec<JoinHandle<()>>,
}

/// Adds threads to a program.
struct Builder {
    cycles: i64,
    /// The clock of the measured thread, and how it waits.
    clock: Clock,
    wait: Wait,
    tids: Vec<u32>,
    go: Vec<mpsc::Sender<i64>>,
    others: Vec<JoinHandle<()>>,
}

impl Builder {
    fn new(cycles: i64) -> Self {
        Self {
            cycles,
            clock: Clock::Monotonic,
            wait: Wait::Nanosleep,
            tids: Vec::new(),
            go: Vec::new(),
            others: Vec::new(),
        }
    }

    fn spawn<T: Send + 'static>(
        &mut self,
        name: &str,
        policy: Policy,
        body: impl FnOnce(i64) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let (go, start) = mpsc::channel();
        let (send_tid, tid) = mpsc::channel();
        let run = move || {
            let allowed = sched::affinity().unwrap();
            sched::set_affinity(&[CPU]).expect("the right to pin a thread");
            // The kernel refuses to pin threads with a deadline policy, but leaves them on their CPU.
            if matches!(policy, Policy::Deadline { .. }) {
                sched::set_affinity(&allowed).unwrap();
            }
            sched::set_policy(policy).expect("the right to real-time policies: run as root");
            send_tid.send(sched::thread_id()).unwrap();
            body(start.recv().unwrap())
        };
        let handle = thread::Builder::new().name(name.to_owned()).spawn(run).unwrap();
        self.tids.push(tid.recv().unwrap());
        self.go.push(go);
        handle
    }

    /// Adds a thread that does `work` at `offset_ns` after each release of the program.
    fn add(&mut self, name: &str, policy: Policy, offset_ns: i64, mut work: impl FnMut() + Send + 'static) {
        let cycles = self.cycles;
        let body = move |first_ns: i64| {
            for number in 0..cycles {
                sleep_until(first_ns + number * PERIOD_NS + offset_ns);
                work();
            }
        };
        let thread = self.spawn(name, policy, body);
        self.others.push(thread);
    }

    /// Removes the last thread from the traced ones.
    fn untraced(&mut self) {
        self.tids.pop();
    }

    /// Adds the thread whose cycles are measured: they start at `offset_ns`, and `work` returns their main cause.
    fn measure(
        mut self,
        policy: Policy,
        offset_ns: i64,
        mut work: impl FnMut(i64) -> CycleCause + Send + 'static,
    ) -> Program {
        let (cycles, clock) = (self.cycles, self.clock);
        let sleeper = Sleeper::new(clock, self.wait).unwrap();
        let body = move |first_ns: i64| {
            let ahead_ns = clock.now_ns() - now_ns();
            let sleep_until = |at_ns: i64| sleeper.sleep_until(at_ns + ahead_ns).unwrap();
            let mut previous_ns = 0;
            let mut truths: Vec<Truth> = Vec::new();
            let mut end_cpu_ns = 0;
            for number in 0..=cycles {
                let release_ns = first_ns + number * PERIOD_NS + offset_ns;
                sleep_until(release_ns);
                if let Some(last) = truths.last_mut() {
                    last.after_ns = (thread_cpu_time_ns() - end_cpu_ns).cast_signed();
                }
                if number == cycles {
                    break;
                }
                let late_ns = now_ns() - release_ns;
                let cause = work(number);
                let end_ns = now_ns();
                let response_ns = end_ns - release_ns;
                // The wait for the previous cycle, or for a CPU on a busy machine, can be the largest part.
                let cause = match (late_ns * 10 / response_ns.max(1), release_ns < previous_ns) {
                    (0..4, _) => cause,
                    (6.., true) => CycleCause::PreviousCycle,
                    _ => CycleCause::Unknown,
                };
                previous_ns = end_ns;
                end_cpu_ns = thread_cpu_time_ns();
                truths.push(Truth { release_ns, response_ns, after_ns: 0, cause });
            }
            truths
        };
        let measured = self.spawn("measured", policy, body);
        Program { tids: self.tids, go: self.go, measured, others: self.others }
    }
}

impl Program {
    /// Runs it to its end; returns the cycles of the thread `measured`.
    pub fn run(self) -> Vec<Truth> {
        let first_ns = now_ns() + 5 * MS;
        self.go.iter().for_each(|go| go.send(first_ns).unwrap());
        self.others.into_iter().for_each(|thread| thread.join().unwrap());
        self.measured.join().unwrap()
    }
}

fn now_ns() -> i64 {
    Clock::Monotonic.now_ns()
}

fn sleep_until(at_ns: i64) {
    Sleeper::new(Clock::Monotonic, Wait::Nanosleep).unwrap().sleep_until(at_ns).unwrap();
}

/// Locks a mutex; returns `cause` if that took at least 1 ms. After a stall, all threads are ready at the same time, and
/// the one with the highest priority gets the mutex at once.
fn lock(mutex: &Mutex<()>, cause: CycleCause) -> (MutexGuard<'_, ()>, CycleCause) {
    let begun_ns = now_ns();
    let held = mutex.lock().unwrap();
    (held, if now_ns() - begun_ns >= MS { cause } else { CycleCause::Unknown })
}

/// Computes for this CPU time.
fn compute(ns: i64) {
    let begun_ns = thread_cpu_time_ns();
    while thread_cpu_time_ns() < begun_ns + ns.unsigned_abs() {}
}

/// A mutex whose holder inherits the priority of those who wait, as with PTHREAD_PRIO_INHERIT.
#[derive(Default)]
struct InheritingMutex(AtomicU32);

impl InheritingMutex {
    /// Works with the mutex held; returns true if another thread held it before.
    fn hold(&self, work: impl FnOnce()) -> bool {
        let tid = sched::thread_id();
        let contended = self.0.compare_exchange(0, tid, SeqCst, SeqCst).is_err();
        if contended {
            futex::lock_pi(&self.0, futex::Flags::PRIVATE, None).unwrap();
        }
        work();
        if self.0.compare_exchange(tid, 0, SeqCst, SeqCst).is_err() {
            futex::unlock_pi(&self.0, futex::Flags::PRIVATE).unwrap();
        }
        contended
    }
}

/// The textbook case: `low` holds a mutex, `mid` computes, `measured` of high priority waits for the mutex after some
/// work of its own.
pub fn inversion(cycles: i64, work_ns: i64) -> Program {
    let mut program = Builder::new(cycles);
    let mutex = Arc::new(Mutex::new(()));
    let low = Arc::clone(&mutex);
    program.add("low", Policy::Fifo(10), 0, move || {
        let _held = low.lock().unwrap();
        compute(MS);
    });
    program.add("mid", Policy::Fifo(50), MS / 2, || compute(8 * MS));
    program.measure(Policy::Fifo(80), MS * 3 / 10, move |_| {
        compute(work_ns);
        let (_held, cause) = lock(&mutex, CycleCause::PriorityInversion);
        compute(MS / 5);
        cause
    })
}

/// The same, but the thread that computes belongs to another program.
pub fn inversion_by_another_program(cycles: i64) -> Program {
    let mut program = Builder::new(cycles);
    program.add("mid", Policy::Fifo(50), MS / 2, || compute(8 * MS));
    program.untraced();
    let mutex = Arc::new(Mutex::new(()));
    let low = Arc::clone(&mutex);
    program.add("low", Policy::Fifo(10), 0, move || {
        let _held = low.lock().unwrap();
        compute(MS);
    });
    program.measure(Policy::Fifo(80), MS * 3 / 10, move |_| {
        let (_held, cause) = lock(&mutex, CycleCause::PriorityInversion);
        compute(MS / 5);
        cause
    })
}

/// The same as [`inversion`], but the holder of the mutex inherits the priority.
pub fn inheritance(cycles: i64) -> Program {
    let mut program = Builder::new(cycles);
    let mutex = Arc::new(InheritingMutex::default());
    let low = Arc::clone(&mutex);
    program.add("low", Policy::Fifo(10), 0, move || {
        low.hold(|| compute(MS));
    });
    program.add("mid", Policy::Fifo(50), MS / 2, || compute(8 * MS));
    program.measure(Policy::Fifo(80), MS * 3 / 10, move |_| {
        if mutex.hold(|| compute(MS / 5)) { CycleCause::LockHeld } else { CycleCause::Unknown }
    })
}

/// A chain: `measured` waits for the first mutex, whose holder waits for the second one, whose holder is kept off the
/// CPU.
pub fn chained_inversion(cycles: i64) -> Program {
    let mut program = Builder::new(cycles);
    let [first, second] = [0, 1].map(|_| Arc::new(Mutex::new(())));
    let low = Arc::clone(&second);
    program.add("low", Policy::Fifo(10), 0, move || {
        let _held = low.lock().unwrap();
        compute(MS);
    });
    let holder = Arc::clone(&first);
    program.add("holder", Policy::Fifo(20), MS / 5, move || {
        let _first = holder.lock().unwrap();
        let _second = second.lock().unwrap();
        compute(MS / 10);
    });
    program.add("mid", Policy::Fifo(50), MS / 2, || compute(8 * MS));
    program.measure(Policy::Fifo(80), MS * 4 / 10, move |_| {
        let (_held, cause) = lock(&first, CycleCause::PriorityInversion);
        compute(MS / 5);
        cause
    })
}

/// Several threads of one priority wait for the same mutex, and pass it on.
pub fn convoy(cycles: i64) -> Program {
    let mut program = Builder::new(cycles);
    let mutex = Arc::new(Mutex::new(()));
    for number in 0..3 {
        let mutex = Arc::clone(&mutex);
        program.add(&format!("worker{number}"), Policy::Fifo(50), number * MS / 10, move || {
            let _held = mutex.lock().unwrap();
            thread::sleep(Duration::from_millis(2));
        });
    }
    program.measure(Policy::Fifo(50), MS * 4 / 10, move |_| {
        let (_held, cause) = lock(&mutex, CycleCause::LockConvoy);
        compute(MS / 10);
        cause
    })
}

/// Touches new memory in each cycle.
pub fn fault_storm(cycles: i64) -> Program {
    Builder::new(cycles).measure(Policy::Fifo(80), 0, |_| {
        // Small mappings, so that the kernel does not use huge pages.
        for _ in 0..200 {
            let mut memory = Mapping::new(64 << 10).unwrap();
            memory.chunks_mut(4096).for_each(|page| page[0] = 1);
        }
        CycleCause::PageFaults
    })
}

/// Writes to a disk in each cycle.
pub fn disk_wait(cycles: i64, folder: &Path) -> Program {
    let mut file = File::create(folder.join("file")).unwrap();
    Builder::new(cycles).measure(Policy::Fifo(80), 0, move |_| {
        let begun = (now_ns(), thread_cpu_time_ns());
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
        // A disk that is emulated or cached can be fast.
        let (took_ns, computed_ns) = (now_ns() - begun.0, (thread_cpu_time_ns() - begun.1).cast_signed());
        if took_ns > 3 * computed_ns { CycleCause::Disk } else { CycleCause::Unknown }
    })
}

/// Sleeps within each cycle.
pub fn sleeps(cycles: i64) -> Program {
    Builder::new(cycles).measure(Policy::Fifo(80), 0, |_| {
        compute(MS / 5);
        thread::sleep(Duration::from_millis(5));
        compute(MS / 5);
        CycleCause::Sleep
    })
}

/// Computes for longer than its period in every fifth cycle, and catches up.
pub fn overruns(cycles: i64) -> Program {
    Builder::new(cycles).measure(Policy::Fifo(80), 0, |number| {
        compute(if number % 5 == 2 { 50 * MS } else { 2 * MS });
        CycleCause::OwnWork
    })
}

/// The same with sleeps on another clock, or with a timerfd.
pub fn overruns_on(clock: Clock, wait: Wait, cycles: i64) -> Program {
    Builder { clock, wait, ..Builder::new(cycles) }.measure(Policy::Fifo(80), 0, |number| {
        compute(if number % 5 == 2 { 25 * MS } else { 2 * MS });
        CycleCause::OwnWork
    })
}

/// Uses more CPU time than its deadline policy grants.
pub fn deadline_overrun(cycles: i64) -> Program {
    let ms = MS.unsigned_abs();
    let policy = Policy::Deadline { runtime_ns: 2 * ms, deadline_ns: 10 * ms, period_ns: 10 * ms };
    Builder::new(cycles).measure(policy, 0, |_| {
        compute(3 * MS);
        CycleCause::DeadlineBudget
    })
}

/// Asks another thread in each cycle, and waits for the answer.
pub fn asks(cycles: i64) -> Program {
    let mut program = Builder::new(cycles);
    let (near, far) = UnixDatagram::pair().unwrap();
    let (mut question, mut answer) = ([0; 8], [0; 8]);
    program.add("replier", Policy::Fifo(70), -4 * MS, move || {
        far.recv(&mut question).unwrap();
        compute(4 * MS);
        far.send(&question).unwrap();
    });
    program.measure(Policy::Fifo(80), 0, move |_| {
        near.send(&[1; 8]).unwrap();
        near.recv(&mut answer).unwrap();
        compute(MS / 10);
        CycleCause::Event
    })
}

/// Asks another thread often in each cycle.
pub fn asks_often(cycles: i64) -> Program {
    const QUESTIONS: i64 = 20;
    let mut program = Builder::new(cycles);
    let (near, far) = UnixDatagram::pair().unwrap();
    let (mut question, mut answer) = ([0; 8], [0; 8]);
    program.add("replier", Policy::Fifo(70), -4 * MS, move || {
        for _ in 0..QUESTIONS {
            far.recv(&mut question).unwrap();
            compute(MS / 10);
            far.send(&question).unwrap();
        }
    });
    program.measure(Policy::Fifo(80), 0, move |_| {
        for _ in 0..QUESTIONS {
            near.send(&[1; 8]).unwrap();
            near.recv(&mut answer).unwrap();
        }
        CycleCause::Event
    })
}

/// Computes in a control group whose CPU quota is too small. `stopped_ns` returns how long the quota stopped it so far.
pub fn throttled(cycles: i64, tasks: File, stopped_ns: impl Fn() -> i64 + Send + 'static) -> Program {
    let mut tasks = Some(tasks);
    Builder::new(cycles).measure(Policy::Other, 0, move |_| {
        if let Some(mut tasks) = tasks.take() {
            tasks.write_all(sched::thread_id().to_string().as_bytes()).unwrap();
        }
        let (begun_ns, stopped_before_ns) = (now_ns(), stopped_ns());
        compute(4 * MS);
        let (took_ns, stopped_ns) = (now_ns() - begun_ns, stopped_ns() - stopped_before_ns);
        // Other programs on this machine also take the CPU of an ordinary thread.
        if stopped_ns > took_ns * 3 / 4 { CycleCause::Quota } else { CycleCause::Unknown }
    })
}
