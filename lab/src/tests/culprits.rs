//! Delays of known causes: the correct culprit is named with its time.
//!
//! Each test makes delays while `punctual measure timer` runs, and then checks the record. The tests run in virtual
//! time, because they assert times.

pub(super) mod delays;
pub mod faults;
pub mod storms;
pub(super) mod tally;

use std::{thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::{CauseKind, Culprit, Why};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use sys::{clock::Clock, sched::Policy};

use delays::{DELAYS, Delay, Expected, Measuring, adds_up, at_irregular_times, hold, judge, signal_to, spin};

/// Most interruptions of one delay.
const MOST_GAPS: usize = 8;

fn is_thread(culprit: &Culprit, name: &str, why: Why) -> bool {
    culprit.cause.kind == CauseKind::Thread && culprit.cause.name == name && culprit.cause.why == Some(why)
}

/// A real-time thread with higher priority.
pub fn a_thread_above_the_probe() -> Result<()> {
    let measuring = Measuring::start("thread", "--policy fifo:80")?;
    // Allocating memory would make a delay longer than recorded.
    let mut spaces: Vec<_> = std::iter::repeat_with(|| Vec::with_capacity(MOST_GAPS)).take(DELAYS).collect();
    let delays = at_irregular_times("intruder", Policy::Fifo(90), move |length_ns| {
        Ok(spin(length_ns, spaces.pop().context("more delays than planned")?))
    })?;
    let is = |culprit: &Culprit| is_thread(culprit, "intruder", Why::HigherPriority);
    judge(&measuring.end()?, &delays, &Expected { is: &is, timed: true })
}

/// A section with interrupts off.
pub fn interrupts_off() -> Result<()> {
    let measuring = Measuring::start("irqs", "--policy fifo:80")?;
    let delays = hold("irqs")?;
    let is = |culprit: &Culprit| culprit.cause.kind == CauseKind::LateInterrupt && culprit.cause.name == "holder";
    judge(&measuring.end()?, &delays, &Expected { is: &is, timed: true })
}

/// A section with preemption off.
pub fn preemption_off() -> Result<()> {
    let measuring = Measuring::start("preempt", "--policy fifo:80")?;
    let delays = hold("preempt")?;
    let is = |culprit: &Culprit| is_thread(culprit, "holder", Why::PreemptionOff);
    judge(&measuring.end()?, &delays, &Expected { is: &is, timed: true })
}

/// The handler of a named interrupt.
pub fn an_interrupt_handler() -> Result<()> {
    let measuring = Measuring::start("hardirq", "--policy fifo:80")?;
    let delays = hold("hardirq")?;
    let is = |culprit: &Culprit| culprit.cause.kind == CauseKind::Interrupt && culprit.cause.name == "hold-source";
    judge(&measuring.end()?, &delays, &Expected { is: &is, timed: true })
}

/// An interrupt's thread at priority 50, above a probe at 40.
pub fn an_interrupt_thread() -> Result<()> {
    let measuring = Measuring::start("irqthread", "--policy fifo:40")?;
    let delays = hold("thread")?;
    let is = |culprit: &Culprit| {
        culprit.cause.kind == CauseKind::Thread
            && culprit.cause.name.contains("hold")
            && culprit.cause.priority == Some(49)
            && culprit.cause.why == Some(Why::HigherPriority)
    };
    judge(&measuring.end()?, &delays, &Expected { is: &is, timed: true })
}

/// SIGSTOP.
pub fn a_stop_signal() -> Result<()> {
    let measuring = Measuring::start("stop", "--policy fifo:80")?;
    let pid = measuring.pid();
    let delays = at_irregular_times("stopper", Policy::Fifo(90), move |length_ns| {
        signal_to(pid, Signal::STOP)?;
        // A thread stops when it leaves the kernel, which can take some ms if others have the CPU.
        waitpid(Pid::from_raw(pid.cast_signed()), WaitOptions::UNTRACED)?;
        let begin_ns = Clock::Monotonic.now_ns();
        thread::sleep(Duration::from_nanos(length_ns.cast_unsigned()));
        signal_to(pid, Signal::CONT)?;
        Ok(Delay::new(begin_ns, Clock::Monotonic.now_ns()))
    })?;
    let is = |culprit: &Culprit| culprit.cause.kind == CauseKind::Stopped && culprit.cause.name == "SIGSTOP";
    // A stopped probe makes the run INVALID.
    judge(&measuring.end_with(4)?, &delays, &Expected { is: &is, timed: false })
}

/// Without delays, none of the other tests' culprits is named.
pub fn names_no_culprit_without_delays() -> Result<()> {
    let measuring = Measuring::start("rest", "--policy fifo:80 --threshold 20us")?;
    thread::sleep(Duration::from_secs(10));
    let record = measuring.end()?;
    for spike in record.series.iter().flat_map(|series| &series.spikes) {
        adds_up(spike)?;
        let named = spike.culprits.iter().find(|culprit| {
            ["intruder", "holder", "hold-source"].contains(&culprit.cause.name.as_str())
                || culprit.cause.kind == CauseKind::Stopped
        });
        ensure!(named.is_none(), "{named:?}");
    }
    Ok(())
}
