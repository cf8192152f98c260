//! Launch times: ETF holds frames until shortly before their slots, whenever they were queued. Frames queued too late
//! and frames dequeued too late are distinguished.

use std::{path::Path, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::{Launch, Listener, Record, Talker};

use super::blocker::block;
use crate::inside::{expect, punctual, recorded};

/// The guest's tick (every 4 ms) and the RCU thread after it take as long as the delta of ETF, so frames at that time
/// are late or dropped. With this period the slots drift relative to the tick, so each run has the same number of such
/// frames.
const OPTIONS: &str = "measure stream --self --mode txtime --period 2013us --blame=off --quiet";
/// The time before its slot at which the talker wakes up, ns.
const OFFSET_NS: i64 = 1_000_000;
/// Variation of the time from slot to arrival without an intervening tick, ns; 4 us in a guest with virtual time.
const SPREAD_NS: i64 = 15_000;
/// At most one of this many frames coincides with a tick.
const FRAMES_PER_TICK: u64 = 20;

fn run(status: i32, name: &str, options: &str) -> Result<Record> {
    expect(status, &punctual(&format!("{OPTIONS} --record {name} {options}"))?)?;
    recorded(name)
}

fn both(record: &Record) -> Result<(&Talker, &Launch, &Listener)> {
    let of = |role: &str| record.series.iter().find(|series| series.role == role);
    let talker = of("talker").and_then(|series| series.kind.talker()).context("no talker")?;
    let listener = of("listener").and_then(|series| series.kind.listener()).context("no listener")?;
    Ok((talker, talker.launch.as_ref().context("no figures about launch times")?, listener))
}

/// Frames are queued long before their slots, and ETF releases them in time.
pub fn frames_leave_at_their_launch_times() -> Result<()> {
    let record = run(0, "launched", "--wakeup-offset 1ms --duration 2s --stamps all")?;
    let (talker, launch, listener) = both(&record)?;
    ensure!((launch.invalid, talker.refused) == (0, 0), "{launch:?}, {} refused", talker.refused);
    ensure!(
        talker.frames >= 950 && launch.missed * FRAMES_PER_TICK <= talker.frames,
        "{launch:?} of {}",
        talker.frames
    );
    ensure!(listener.frames + launch.missed == talker.frames, "{} of {}", listener.frames, talker.frames);
    let latest_ns = talker.max_delta_ns.context("no frame")?;
    ensure!(latest_ns < -OFFSET_NS / 2, "queued {latest_ns} ns after the slot");
    let times = &listener.one_way.as_ref().context("no one-way times")?.way;
    let first_ns = times.iter().next().context("no timestamp")?.0;
    let release_ns = -launch.delta_ns.cast_signed();
    // Buckets have 3 digits.
    ensure!(
        first_ns >= release_ns - 100,
        "a frame arrived {first_ns} ns after its slot, before its release at {release_ns}"
    );
    let in_time =
        times.iter().filter(|(ns, _)| *ns < 0 && ns - first_ns <= SPREAD_NS).map(|(_, frames)| frames).sum::<u64>();
    ensure!(
        (times.total() - in_time) * FRAMES_PER_TICK <= times.total(),
        "only {in_time} of {} frames in time: {times:?}",
        times.total()
    );
    // The driver stamps each frame when ETF releases it, before it arrives.
    let stamps = talker.stamps.as_ref().context("no timestamps of sent frames")?;
    let released = stamps.stack_out.as_ref().context("no timestamps of the driver")?;
    ensure!((stamps.missing, stamps.unusable) == (0, 0), "{} missing, {} unusable", stamps.missing, stamps.unusable);
    ensure!(released.histogram.total() + launch.missed == talker.frames, "{} stamps", released.histogram.total());
    let arrived_ns = times.percentile(50.0).context("no arrival")?;
    ensure!(
        (release_ns - 100..=first_ns).contains(&released.min_ns)
            && released.histogram.percentile(50.0) <= Some(arrived_ns),
        "released at {} ns, arrived at {first_ns} ns, half of them at {arrived_ns} ns",
        released.min_ns
    );
    Ok(())
}

/// A talker that wakes at its slots queues all frames too late. A run without any frame is invalid.
pub fn frames_queued_too_late_are_invalid() -> Result<()> {
    let record = run(4, "invalid", "--wakeup-offset 0us --duration 200ms")?;
    let (talker, launch, listener) = both(&record)?;
    ensure!(talker.refused >= 90 && launch.invalid == talker.refused, "{launch:?}, {} refused", talker.refused);
    ensure!((talker.frames, launch.missed, listener.frames) == (0, 0, 0), "{talker:?}");
    Ok(())
}

/// If the CPU is blocked while frames are queued, their slots pass before ETF can run.
pub fn frames_dequeued_too_late_are_missed() -> Result<()> {
    let measuring = thread::spawn(|| run(0, "missed", "--wakeup-offset 1ms --duration 3s"));
    while !Path::new("missed.punctual.json").exists() {
        ensure!(!measuring.is_finished(), "the run did not start");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(300));
    let delays = thread::spawn(|| block(95, &[3_000_000], 40, Duration::from_millis(20)));
    delays.join().ok().context("the blocker panicked")??;
    let record = measuring.join().ok().context("the run panicked")??;
    let (talker, launch, listener) = both(&record)?;
    // A frame is queued during half of each period, and each delay is longer than that.
    ensure!((5..=40).contains(&launch.missed), "{launch:?}");
    ensure!(launch.invalid == talker.refused, "{launch:?}, {} refused", talker.refused);
    ensure!(listener.lost == launch.missed, "{} lost, {launch:?}", listener.lost);
    ensure!(listener.frames + launch.missed == talker.frames, "{} of {}", listener.frames, talker.frames);
    Ok(())
}
