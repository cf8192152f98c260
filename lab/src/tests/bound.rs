//! The bound from causes: holds that never met in one run are brought together in another one.

use std::{fs, io::Write, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::{BoundBasis, CauseBound, CauseKind, Culprit, Record, Why};
use sys::{
    clock::Clock,
    sched::{self, Policy},
};

use super::culprits::delays::{Dice, HOLD, Measuring};

const PREEMPT_NS: i64 = 1_300_000;
const IRQS_NS: i64 = 1_100_000;
const HANDLER_NS: i64 = 900_000;
/// Holds of each kind in a run. With a period of 1 ms, one of them begins within some 20 us of a deadline.
const HOLDS: usize = 120;
/// Number of holds of each kind between the wake-ups of a probe with [`LONG_PERIOD_NS`].
const FEW_HOLDS: usize = 24;
/// ns.
const LONG_PERIOD_NS: i64 = 5_000_000;
/// Time from a command to its hold, ns.
const LEAD_NS: i64 = 2_000_000;

/// The bound of a run in which one thing at a time holds the CPU is not below the lateness of a run in which they meet, and
/// at most twice as large.
pub fn contains_what_is_provoked() -> Result<()> {
    let apart = run("apart", || {
        let holds = [format!("preempt {PREEMPT_NS}"), format!("irqs {IRQS_NS}"), format!("hardirq {HANDLER_NS}")];
        holds.iter().try_for_each(|hold| repeat(HOLDS, &[format!("after {LEAD_NS} {hold}")]))
    })?;
    // The interrupt comes shortly before the section ends, and prolongs it.
    let together = run("together", || {
        let handler_ns = LEAD_NS + PREEMPT_NS - 40_000;
        repeat(
            HOLDS,
            &[format!("after {LEAD_NS} preempt {PREEMPT_NS}"), format!("after {handler_ns} hardirq {HANDLER_NS}")],
        )?;
        let handler_ns = LEAD_NS + IRQS_NS - 40_000;
        repeat(HOLDS, &[format!("after {LEAD_NS} irqs {IRQS_NS}"), format!("after {handler_ns} hardirq {HANDLER_NS}")])
    })?;
    let seen_ns = max_ns(&apart)?;
    let provoked_ns = max_ns(&together)?;
    let bound = bound_of(&apart)?;
    let bound_ns = bound.bound_ns.with_context(|| format!("{bound:?}"))?;
    println!("  {seen_ns} ns seen, {provoked_ns} ns provoked, at most {bound_ns} ns from causes: {:?}", bound.parts);
    ensure!(bound.basis == BoundBasis::WakeUps, "Debian's kernels have no events of sections");
    ensure!(provoked_ns > seen_ns + HANDLER_NS.unsigned_abs() / 2, "{provoked_ns} ns, which the first run showed, too");
    ensure!((provoked_ns..=2 * provoked_ns).contains(&bound_ns), "{bound_ns} ns for {provoked_ns} ns");
    ensure!(bound.parts.iter().map(|part| part.ns).sum::<u64>() == bound_ns, "the parts do not add up");
    let part = |kind, name: &str, why| {
        let is = |part: &&Culprit| (part.cause.kind, &*part.cause.name, part.cause.why) == (kind, name, why);
        let part = bound.parts.iter().find(is).with_context(|| format!("no {kind:?} {name}: {:?}", bound.parts))?;
        anyhow::Ok(part.ns)
    };
    let preempt_ns = part(CauseKind::Thread, "hold", Some(Why::PreemptionOff))?;
    let irqs_ns = part(CauseKind::LateInterrupt, "hold", None)?;
    let handler_ns = part(CauseKind::Interrupt, "hold-source", None)?;
    for (ns, held_ns) in [(preempt_ns, PREEMPT_NS), (irqs_ns, IRQS_NS), (handler_ns, HANDLER_NS)] {
        let percent = ns * 100 / held_ns.unsigned_abs();
        ensure!((90..=110).contains(&percent), "{ns} ns of a hold of {held_ns} ns");
    }
    // The second run has a bound of its own.
    let own_ns = bound_of(&together)?.bound_ns.context("no bound")?;
    ensure!(own_ns >= provoked_ns, "{own_ns} ns is less than was seen");
    Ok(())
}

/// The threads of the timerlat tracer show the sections that a probe with a long period does not meet.
pub fn timerlat_shows_more_sections() -> Result<()> {
    let measuring = Measuring::start_every("5ms", "sampled", "--policy fifo:80 --timerlat")?;
    thread::scope(|scope| {
        let holds = thread::Builder::new().name("hold".to_owned());
        holds.spawn_scoped(scope, || hold_between_wake_ups(&measuring))?.join().expect("the thread ends by itself")
    })?;
    // A bound needs 1000 wake-ups.
    thread::sleep(Duration::from_secs(5));
    let record = measuring.end()?;
    let bound = bound_of(&record)?;
    println!("  {bound:?}");
    let longest_ns = |parts: &mut dyn Iterator<Item = &Culprit>| {
        parts.filter(|part| part.cause.name == "hold").map(|part| part.ns).max().unwrap_or(0)
    };
    let met_ns = longest_ns(&mut record.series[0].spikes.iter().flat_map(|spike| &spike.culprits));
    let shown_ns = longest_ns(&mut bound.parts.iter());
    ensure!(met_ns < HANDLER_NS.unsigned_abs() / 2, "the probe itself waited {met_ns} ns for a hold");
    let percent = shown_ns * 100 / PREEMPT_NS.unsigned_abs();
    ensure!((80..=105).contains(&percent), "{percent} % of the hold: {bound:?}");
    ensure!(
        bound.bound_ns.is_some_and(|bound_ns| bound_ns < 2 * (PREEMPT_NS + HANDLER_NS).unsigned_abs()),
        "{bound:?}"
    );
    Ok(())
}

/// Holds the CPU after a wake-up of the probe and before the next, at any time of timerlat's period of 1 ms.
fn hold_between_wake_ups(measuring: &Measuring) -> Result<()> {
    // Nothing but the probe and interrupts may delay the holds.
    sched::set_policy(Policy::Fifo(70))?;
    let wake_up_ns = measuring.a_wake_up_ns()?;
    let mut device = fs::OpenOptions::new().write(true).open(HOLD).context("cannot open /dev/hold")?;
    let mut dice = Dice::new();
    for (kind, length_ns) in [("preempt", PREEMPT_NS), ("irqs", IRQS_NS), ("hardirq", HANDLER_NS)] {
        for _ in 0..FEW_HOLDS {
            let periods = (Clock::Monotonic.now_ns() - wake_up_ns) / LONG_PERIOD_NS + 2;
            let begin_ns = wake_up_ns + periods * LONG_PERIOD_NS + dice.roll(1_000_000..2_000_000);
            let wait_ns = begin_ns - Clock::Monotonic.now_ns();
            thread::sleep(Duration::from_nanos(wait_ns.max(0).unsigned_abs()));
            device
                .write_all(format!("{kind} {length_ns}").as_bytes())
                .with_context(|| format!("cannot write {kind}"))?;
        }
    }
    Ok(())
}

/// Measures while `holds` runs.
fn run(name: &'static str, holds: impl FnOnce() -> Result<()>) -> Result<Record> {
    let measuring = Measuring::start(name, "--policy fifo:80")?;
    holds()?;
    measuring.end()
}

/// Gives these commands at irregular times.
fn repeat(count: usize, commands: &[String]) -> Result<()> {
    let mut device = fs::OpenOptions::new().write(true).open(HOLD).context("cannot open /dev/hold")?;
    let mut dice = Dice::new();
    for _ in 0..count {
        for command in commands {
            device.write_all(command.as_bytes()).with_context(|| format!("cannot write {command}"))?;
        }
        thread::sleep(Duration::from_nanos(dice.roll(17_000_000..23_000_000).unsigned_abs()));
    }
    Ok(())
}

fn max_ns(record: &Record) -> Result<u64> {
    let max_ns = record.series.first().and_then(|series| series.max_ns).context("nothing was measured")?;
    Ok(max_ns.unsigned_abs())
}

fn bound_of(record: &Record) -> Result<CauseBound> {
    record.series.first().and_then(|series| series.cause_bound.clone()).context("no bound from causes")
}
