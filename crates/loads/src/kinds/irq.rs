//! Interrupts: many fast timers on each CPU, and inter-processor interrupts between them.
//!
//! Inter-processor interrupts come from `membarrier`, which interrupts every other CPU that runs a thread of this
//! process, and from waking threads on other CPUs. Each CPU therefore also has a thread that keeps it busy.

use std::{
    hint::spin_loop,
    iter,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use machine::CpuList;
use rustix::{
    event::Timespec,
    fs::Timespec as Time,
    io::{Errno, read},
    process::setpriority_process,
    thread::{MembarrierCommand, futex, futex::Flags, gettid, membarrier, membarrier_query},
    time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime},
};

use super::kind::{Job, Kind, LoadKind, Plan};
use crate::{LoadError, SpecError, meter::Meter, options::Options};

const TIMERS: u32 = 8;
/// Time between two interrupts of one timer; with eight of them, one every 25 us.
const TIMER_PERIOD_NS: u32 = 200_000;
const BARRIER_EVERY: Duration = Duration::from_micros(20);
/// Every fifth barrier also wakes a thread on the next CPU.
const WAKE_EVERY: u64 = 5;

/// Interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Irq;

impl LoadKind for Irq {
    const KIND: Kind =
        Kind { name: "irq", description: "timer interrupts and inter-processor interrupts", options: &[] };

    fn parse(options: &str) -> Result<Self, SpecError> {
        Options::new(Self::KIND.name, options).finish(Self)
    }

    fn options(&self) -> String {
        String::new()
    }

    fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError> {
        plan(cpus)
    }

    fn is_busy(&self) -> bool {
        false
    }

    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)> {
        vec![("", Self)]
    }

    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        proptest::strategy::Strategy::boxed(proptest::strategy::Just(Self))
    }
}

fn plan(cpus: &CpuList) -> Result<Plan, LoadError> {
    let mut jobs: Vec<Job> = cpus.iter().map(|cpu| Job::on(cpu, timers)).collect();
    if cpus.len() < 2 {
        let mut plan = Plan::new("timer interrupts", jobs);
        plan.note = Some("timer interrupts only: inter-processor interrupts need two CPUs".to_owned());
        return Ok(plan);
    }
    let barriers = membarrier_query().contains_command(MembarrierCommand::RegisterPrivateExpedited)
        && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
    let gates: Vec<Arc<Gate>> = cpus.iter().map(|_| Arc::default()).collect();
    for (cpu, (own, next)) in cpus.iter().zip(gates.iter().zip(gates.iter().skip(1).chain(iter::once(&gates[0])))) {
        let (own, next) = (Arc::clone(own), Arc::clone(next));
        jobs.push(Job::on(cpu, move |meter| own.woken(meter)));
        jobs.push(Job::on(cpu, move |meter| interrupt_others(barriers, &next, meter)));
    }
    let mut plan = Plan::new("timer interrupts, barriers and wake-ups across CPUs", jobs);
    plan.note = (!barriers).then(|| "without barriers: this kernel has no membarrier".to_owned());
    Ok(plan)
}

/// Waits for this CPU's timers, one after the other.
fn timers(meter: &Meter) -> Result<(), LoadError> {
    let refused = LoadError::kernel::<Errno>("irq", "a timer");
    let timers: Vec<OwnedFd> = (1..=TIMERS).map(armed).collect::<Result<_, _>>().map_err(&refused)?;
    while meter.running() {
        for timer in &timers {
            match read(timer, &mut [0u8; 8]) {
                Ok(_) => meter.add(1),
                Err(Errno::INTR) => {}
                Err(error) => return Err(refused(error)),
            }
        }
    }
    Ok(())
}

/// Starts the periodic timer number `position`, shifted so that all timers are spread evenly over the period.
fn armed(position: u32) -> Result<OwnedFd, Errno> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let after = |ns: u32| Time { tv_sec: 0, tv_nsec: ns.into() };
    let times = Itimerspec {
        it_value: after(TIMER_PERIOD_NS + position * (TIMER_PERIOD_NS / TIMERS)),
        it_interval: after(TIMER_PERIOD_NS),
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
    Ok(timer)
}

/// Keeps this CPU busy and interrupts the others.
fn interrupt_others(barriers: bool, next: &Gate, meter: &Meter) -> Result<(), LoadError> {
    // Niceness above that of the timers' thread, so that the latter runs when its interrupt comes; not SCHED_IDLE, so
    // that other loads do not starve this thread.
    let _ = setpriority_process(Some(gettid()), 5);
    for round in 0u64.. {
        let until = Instant::now() + BARRIER_EVERY;
        if barriers {
            membarrier(MembarrierCommand::PrivateExpedited).map_err(LoadError::kernel("irq", "a barrier"))?;
            meter.add(1);
        }
        if round % WAKE_EVERY == 0 {
            next.open()?;
        }
        while Instant::now() < until {
            spin_loop();
        }
        if !meter.running() {
            break;
        }
    }
    Ok(())
}

/// Lets a thread on one CPU wake a thread on another CPU.
#[derive(Default)]
struct Gate(AtomicU32);

impl Gate {
    fn open(&self) -> Result<(), LoadError> {
        self.0.fetch_add(1, Ordering::Release);
        futex::wake(&self.0, Flags::PRIVATE, 1).map_err(LoadError::kernel("irq", "a wake-up"))?;
        Ok(())
    }

    /// Waits repeatedly, and counts the wake-ups of this thread.
    fn woken(&self, meter: &Meter) -> Result<(), LoadError> {
        // The thread that opens the gate may have stopped first.
        let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let mut seen = self.0.load(Ordering::Acquire);
        while meter.running() {
            match futex::wait(&self.0, Flags::PRIVATE, seen, Some(&timeout)) {
                Ok(()) => meter.add(1),
                Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
                Err(error) => return Err(LoadError::kernel("irq", "to wait for a wake-up")(error)),
            }
            seen = self.0.load(Ordering::Acquire);
        }
        Ok(())
    }
}
