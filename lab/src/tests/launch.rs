//! Launch times: the ETF discipline keeps frames until shortly before their slots, whenever they were handed over, and those
//! that come too late for it, or that it comes too late for, are told apart.

use std::{path::Path, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::{Launch, Listener, Record, Talker};

use super::blocker::block;
use crate::inside::{expect, punctual, recorded};

/// The guest's tick, every 4 ms, and RCU's thread behind it take as long as the discipline leaves to frames: those whose time it
/// meets come late or not at all. With this period slots drift past it, so that it meets as many of them in each run.
const OPTIONS: &str = "measure stream --self --mode txtime --period 2013us --blame=off --quiet";
/// How long before its slot a talker of these tests wakes, ns.
const OFFSET_NS: i64 = 1_000_000;
/// How much the times from slot to arrival differ, ns, where no tick comes in between; by 4 us in a guest with virtual time.
const SPREAD_NS: i64 = 15_000;
/// Of so many frames a tick meets one, or fewer.
const MET: u64 = 20;

fn run(name: &str, options: &str) -> Result<Record> {
    expect(0, &punctual(&format!("{OPTIONS} --record {name} {options}"))?)?;
    recorded(name)
}

fn both(record: &Record) -> Result<(&Talker, &Launch, &Listener)> {
    let of = |role: &str| record.series.iter().find(|series| series.role == role);
    let talker = of("talker").and_then(|series| series.kind.talker()).context("no talker")?;
    let listener = of("listener").and_then(|series| series.kind.listener()).context("no listener")?;
    Ok((talker, talker.launch.as_ref().context("nothing is told of launch times")?, listener))
}

/// Frames are handed over long before their slots, and leave when the discipline lets them, in time for them.
pub fn frames_leave_at_their_times() -> Result<()> {
    let record = run("launched", "--wakeup-offset 1ms --duration 2s")?;
    let (talker, launch, listener) = both(&record)?;
    ensure!((launch.invalid, talker.refused) == (0, 0), "{launch:?}, {} refused", talker.refused);
    ensure!(talker.frames >= 950 && launch.missed * MET <= talker.frames, "{launch:?} of {}", talker.frames);
    ensure!(listener.frames + launch.missed == talker.frames, "{} of {}", listener.frames, talker.frames);
    let latest_ns = talker.max_delta_ns.context("no frame")?;
    ensure!(latest_ns < -OFFSET_NS / 2, "handed over {latest_ns} ns after the slot");
    let way = &listener.one_way.as_ref().context("one clock")?.way;
    let first_ns = way.iter().next().context("no stamp")?.0;
    let goes_ns = -(launch.delta_ns as i64);
    // Buckets of 3 digits.
    ensure!(first_ns >= goes_ns - 100, "one came {first_ns} ns after its slot, and was to go at {goes_ns}");
    let soon =
        way.iter().filter(|(ns, _)| *ns < 0 && ns - first_ns <= SPREAD_NS).map(|(_, frames)| frames).sum::<u64>();
    ensure!((way.total() - soon) * MET <= way.total(), "of {} frames {soon} came in time: {way:?}", way.total());
    Ok(())
}

/// A talker that wakes at its slots hands all frames over too late.
pub fn too_late_for_the_discipline_is_invalid() -> Result<()> {
    let record = run("invalid", "--wakeup-offset 0us --duration 200ms")?;
    let (talker, launch, listener) = both(&record)?;
    ensure!(talker.refused >= 90 && launch.invalid == talker.refused, "{launch:?}, {} refused", talker.refused);
    ensure!((talker.frames, launch.missed, listener.frames) == (0, 0, 0), "{talker:?}");
    Ok(())
}

/// A CPU that is taken away while frames wait has their slots begin before the discipline gets to run.
pub fn what_waits_too_long_is_missed() -> Result<()> {
    let measuring = thread::spawn(|| run("missed", "--wakeup-offset 1ms --duration 3s"));
    while !Path::new("missed.punctual.json").exists() {
        ensure!(!measuring.is_finished(), "the run does not begin");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(300));
    let delays = thread::spawn(|| block(95, &[3_000_000], 40, Duration::from_millis(20)));
    delays.join().ok().context("the blocker panicked")??;
    let record = measuring.join().ok().context("the run panicked")??;
    let (talker, launch, listener) = both(&record)?;
    // A frame waits during half of each period; each delay is longer than that.
    ensure!((5..=40).contains(&launch.missed), "{launch:?}");
    ensure!(launch.invalid == talker.refused, "{launch:?}, {} refused", talker.refused);
    ensure!(listener.lost == launch.missed, "{} lost, {launch:?}", listener.lost);
    ensure!(listener.frames + launch.missed == talker.frames, "{} of {}", listener.frames, talker.frames);
    Ok(())
}
