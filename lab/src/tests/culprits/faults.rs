//! Page faults of a probe without locked memory.
//!
//! `punctual measure` locks its memory, so this test implements a probe with the same crates. A thread sleeps until
//! deadlines and, at irregular ones, touches fresh memory before it reads the clock.

use std::{
    sync::mpsc::{self, Receiver, SyncSender},
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use blame::{BlameMode, MeasuredThread, Watch};
use machine::Root;
use record::{CauseKind, Evidence, Spike};
use sys::{
    clock::{Clock, Sleeper, Wait},
    mapping::Mapping,
    sched::{self, Policy},
};

use super::{
    delays::{DELAYS, Dice, PERIOD_NS, adds_up},
    tally::{Tally, is_right_time},
};

const PRIORITY: u8 = 80;
const PAGE: usize = 4096;
/// Interval at which spikes are explained, as in a run.
const EXPLAIN_INTERVAL: Duration = Duration::from_millis(40);

/// A wake-up to explain, and the time during which memory was touched, ns.
struct WakeUp {
    spike: Spike,
    touched_ns: Option<i64>,
}

/// Page faults are named with their time, and never blamed for other wake-ups.
pub fn of_an_unlocked_probe() -> Result<()> {
    let mut watch = Watch::start(BlameMode::Trace, &Root::system(), &[0], false)?;
    let first_deadline_ns = Clock::Monotonic.now_ns() + 100_000_000;
    let (pid_sender, pid) = mpsc::channel();
    let (go_sender, go) = mpsc::channel();
    // Allocated before the probe needs it.
    let (sender, wake_ups_of_probe) = mpsc::sync_channel(2 * DELAYS);
    let probe = thread::Builder::new().name("unlocked".to_owned()).spawn(move || -> Result<()> {
        sched::set_affinity(&[0])?;
        sched::set_policy(Policy::Fifo(PRIORITY))?;
        pid_sender.send(sched::thread_id())?;
        probe(first_deadline_ns, &sender, &go)
    })?;
    let measured = MeasuredThread {
        pid: pid.recv()?,
        priority: 99 - i32::from(PRIORITY),
        cpu: 0,
        spins: false,
        awaits_device: false,
        slack_ns: 0,
        has_quota: false,
    };
    // The first call reads the kernel's function names, which takes seconds here.
    thread::sleep(Duration::from_millis(300));
    explain(&mut watch, &measured, first_deadline_ns, &wake_ups_of_probe);
    go_sender.send(())?;
    let mut wake_ups = Vec::new();
    while !probe.is_finished() {
        thread::sleep(EXPLAIN_INTERVAL);
        wake_ups.extend(explain(&mut watch, &measured, first_deadline_ns, &wake_ups_of_probe));
    }
    wake_ups.extend(explain(&mut watch, &measured, first_deadline_ns, &wake_ups_of_probe));
    match probe.join() {
        Ok(ended) => ended?,
        Err(_) => anyhow::bail!("the probe panicked"),
    }
    judge(&wake_ups)
}

/// Measures: one wake-up with page faults, and after the signal to continue all others.
fn probe(first_deadline_ns: i64, sender: &SyncSender<WakeUp>, go: &Receiver<()>) -> Result<()> {
    let sleeper = Sleeper::new(Clock::Monotonic, Wait::Nanosleep)?;
    let mut dice = Dice::new();
    let mut deadline_ns = first_deadline_ns;
    for number in 0..=DELAYS {
        let quiet = dice.roll(4..19);
        for left in (0..=quiet).rev() {
            sleeper.sleep_until(deadline_ns)?;
            let memory =
                if left == 0 { Some(Mapping::new(usize::try_from(dice.roll(20..120))? * PAGE)?) } else { None };
            let (memory, touched_ns) = memory.map(touch).unzip();
            let lateness_ns = Clock::Monotonic.now_ns() - deadline_ns;
            let at_ns = (deadline_ns - first_deadline_ns).cast_unsigned();
            // Report one wake-up without page faults for every two with page faults.
            if touched_ns.is_some() || left == quiet && number % 2 == 0 {
                sender.send(WakeUp { spike: Spike { lateness_ns, at_ns, ..Spike::default() }, touched_ns })?;
            }
            drop(memory);
            if number == 0 && left == 0 {
                go.recv()?;
            }
            // Unmapping takes time. The next deadline is at least one period ahead, so that the thread sleeps.
            let passed = (Clock::Monotonic.now_ns() - deadline_ns) / PERIOD_NS;
            deadline_ns += (passed + 2) * PERIOD_NS;
        }
    }
    Ok(())
}

/// Touches every page of the memory; returns it and the time taken, ns.
fn touch(mut memory: Mapping) -> (Mapping, i64) {
    let begin_ns = Clock::Monotonic.now_ns();
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    (memory, Clock::Monotonic.now_ns() - begin_ns)
}

/// Explains the reported wake-ups.
fn explain(
    watch: &mut Watch,
    measured: &MeasuredThread,
    first_deadline_ns: i64,
    wake_ups: &Receiver<WakeUp>,
) -> Vec<WakeUp> {
    let (mut spikes, touched): (Vec<Spike>, Vec<Option<i64>>) =
        wake_ups.try_iter().map(|WakeUp { spike, touched_ns }| (spike, touched_ns)).unzip();
    watch.explain_spikes(measured, "test", first_deadline_ns.cast_unsigned(), &mut spikes);
    let wake_up = |(spike, touched_ns)| WakeUp { spike, touched_ns };
    spikes.into_iter().zip(touched).map(wake_up).collect()
}

fn judge(wake_ups: &[WakeUp]) -> Result<()> {
    let mut tally = Tally::default();
    for WakeUp { spike, touched_ns } in wake_ups {
        adds_up(spike)?;
        let Some(first) = spike.culprits.first() else { continue };
        let is_fault = first.cause.kind == CauseKind::PageFault;
        match touched_ns {
            None => ensure!(!is_fault, "no memory was touched: {spike:?}"),
            Some(touched_ns) if !is_fault || spike.evidence != Evidence::Trace => {
                tally.wrong(format!("{touched_ns} ns of {:?} {:?}", spike.evidence, spike.culprits));
            }
            &Some(touched_ns) if !is_right_time(first.ns, touched_ns..=touched_ns) => {
                tally.wrong(format!("{} ns instead of {touched_ns}: {:?}", first.ns, spike.culprits));
            }
            Some(_) => tally.right(),
        }
    }
    println!("  {} wake-ups in all", wake_ups.len());
    tally.judge(99)
}
