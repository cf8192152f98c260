//! Page faults of a probe whose memory is not locked.
//!
//! `punctual measure` locks its memory, so this test plays the probe itself, through the same crates: a thread sleeps to
//! deadlines, and at irregular ones touches fresh memory before it looks at the clock.

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
/// How often what the probe told is looked at, as in a run.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// A wake-up that is to be explained, and how long memory was touched in it, ns.
struct WakeUp {
    spike: Spike,
    touched_ns: Option<i64>,
}

/// Page faults of an unlocked probe: they are named with their time, and no wake-up without them is put to them.
pub fn of_an_unlocked_probe() -> Result<()> {
    let mut watch = Watch::start(BlameMode::Trace, &Root::system(), &[0], false)?;
    let first_deadline_ns = Clock::Monotonic.now_ns() + 100_000_000;
    let (tell_pid, pid) = mpsc::channel();
    let (tell_go, go) = mpsc::channel();
    // The room is there before the probe needs it.
    let (tell, told) = mpsc::sync_channel(2 * DELAYS);
    let probe = thread::Builder::new().name("unlocked".to_owned()).spawn(move || -> Result<()> {
        sched::set_affinity(&[0])?;
        sched::set_policy(Policy::Fifo(PRIORITY))?;
        tell_pid.send(sched::thread_id())?;
        probe(first_deadline_ns, &tell, &go)
    })?;
    let thread = MeasuredThread { pid: pid.recv()?, priority: 99 - i32::from(PRIORITY), cpu: 0, spins: false };
    // The first look learns the names of the kernel's functions, which takes seconds here.
    thread::sleep(Duration::from_millis(300));
    look(&mut watch, &thread, first_deadline_ns, &told);
    tell_go.send(())?;
    let mut wake_ups = Vec::new();
    while !probe.is_finished() {
        thread::sleep(LOOK_EVERY);
        wake_ups.extend(look(&mut watch, &thread, first_deadline_ns, &told));
    }
    wake_ups.extend(look(&mut watch, &thread, first_deadline_ns, &told));
    match probe.join() {
        Ok(ended) => ended?,
        Err(_) => anyhow::bail!("the probe panicked"),
    }
    judge(&wake_ups)
}

/// Measures: one wake-up with page faults first, and when it is told to go on, all others.
fn probe(first_deadline_ns: i64, tell: &SyncSender<WakeUp>, go: &Receiver<()>) -> Result<()> {
    let sleeper = Sleeper::new(Clock::Monotonic, Wait::Nanosleep)?;
    let mut dice = Dice::new();
    let mut deadline_ns = first_deadline_ns;
    for number in 0..=DELAYS {
        let quiet = dice.roll(4..19);
        for left in (0..=quiet).rev() {
            sleeper.sleep_until(deadline_ns)?;
            let memory = if left == 0 { Some(Mapping::new(dice.roll(20..120) as usize * PAGE)?) } else { None };
            let (memory, touched_ns) = memory.map(touch).unzip();
            let lateness_ns = Clock::Monotonic.now_ns() - deadline_ns;
            let at_ns = (deadline_ns - first_deadline_ns) as u64;
            // One of those without is looked at for every two with page faults.
            if touched_ns.is_some() || left == quiet && number % 2 == 0 {
                tell.send(WakeUp { spike: Spike { lateness_ns, at_ns, ..Spike::default() }, touched_ns })?;
            }
            drop(memory);
            if number == 0 && left == 0 {
                go.recv()?;
            }
            // Giving memory back takes a while; the next deadline is a period off at least, so that it is slept to.
            let passed = (Clock::Monotonic.now_ns() - deadline_ns) / PERIOD_NS;
            deadline_ns += (passed + 2) * PERIOD_NS;
        }
    }
    Ok(())
}

/// Touches every page of some memory, and gives it back with how long that took, ns.
fn touch(mut memory: Mapping) -> (Mapping, i64) {
    let begin_ns = Clock::Monotonic.now_ns();
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    (memory, Clock::Monotonic.now_ns() - begin_ns)
}

/// Has the wake-ups that were told looked at.
fn look(watch: &mut Watch, thread: &MeasuredThread, first_deadline_ns: i64, told: &Receiver<WakeUp>) -> Vec<WakeUp> {
    let (mut spikes, touched): (Vec<Spike>, Vec<Option<i64>>) =
        told.try_iter().map(|WakeUp { spike, touched_ns }| (spike, touched_ns)).unzip();
    watch.explain_spikes(thread, "test", first_deadline_ns as u64, &mut spikes);
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
            &Some(touched_ns) if !is_right_time(first.ns, touched_ns) => {
                tally.wrong(format!("{} ns instead of {touched_ns}: {:?}", first.ns, spike.culprits));
            }
            Some(_) => tally.right(),
        }
    }
    println!("  {} wake-ups in all", wake_ups.len());
    tally.judge()
}
