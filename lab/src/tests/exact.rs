//! Lateness is exact: delays of known length are found, each once, with their length, and missed deadlines are counted.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use record::{Record, Series, Spike};

use super::blocker::{Delay, block, ordinary_way_ns};
use crate::inside::measure;

const PERIOD_NS: i64 = 100_000;
/// Every one holds a deadline, 100 us before its end at least, which a threshold of 80 us lets be seen.
const LENGTHS_NS: [i64; 4] = [200_000, 1_000_000, 3_000_000, 20_000_000];
const DELAYS: usize = 240;
const DURATION_S: i64 = 10;
/// A tick of the kernel, every 4 ms, may come between the end of a delay and the probe, ...
const TICK_NS: i64 = 100_000;
/// ... which then sees a longer delay than the blocker tells of, rightly; of so many per cent it must see the same. With other
/// work of the kernel behind it, it may hold the probe by itself: as seldom, and shorter than any
/// delay.
const UNDISTURBED_PERCENT: usize = 98;

/// 240 delays of 0.2 to 20 ms at irregular times.
pub fn delays_are_found() -> Result<()> {
    let way_ns = ordinary_way_ns()?;
    let (record, delays) = disturbed()?;
    let series = &record.series[0];
    ensure!(series.spikes_total == series.spikes.len() as u64, "{} spikes, not all are kept", series.spikes_total);
    let mut same = 0;
    for delay in &delays {
        let spike = find(series, delay).with_context(|| format!("{delay:?}"))?;
        let expected_ns = delay.end_ns - series.first_deadline_ns - spike.at_ns as i64 + way_ns;
        let error_ns = spike.lateness_ns - expected_ns;
        let tolerance_ns = expected_ns / 20 + 2_000;
        ensure!(
            (-tolerance_ns..=tolerance_ns + TICK_NS).contains(&error_ns),
            "a delay of {expected_ns} ns was measured as {} ns",
            spike.lateness_ns
        );
        same += usize::from(error_ns <= tolerance_ns);
    }
    ensure!(same * 100 >= DELAYS * UNDISTURBED_PERCENT, "{same} of {DELAYS} were measured within 5 % and 2 us");
    let others: Vec<_> =
        series.spikes.iter().filter(|spike| !delays.iter().any(|delay| overlap(series, spike, delay))).collect();
    let few = others.len() * 100 <= DELAYS * (100 - UNDISTURBED_PERCENT);
    ensure!(few && others.iter().all(|spike| spike.lateness_ns < LENGTHS_NS[0]), "nobody made {others:?}");
    missed_are_counted(series, &delays)
}

/// Runs punctual, and the blocker beside it once it measures.
fn disturbed() -> Result<(Record, Vec<Delay>)> {
    let options = format!(
        "--cpus 0 --policy fifo:90 --period {PERIOD_NS}ns --threshold 80us --duration {DURATION_S}s --blame=off"
    );
    let run = thread::spawn(move || measure(0, "exact", &options));
    let begin = Instant::now();
    while !Path::new("exact.punctual.json").exists() {
        ensure!(begin.elapsed() < Duration::from_secs(5), "the run does not begin");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(300));
    let delays = thread::spawn(|| block(95, &LENGTHS_NS, DELAYS, Duration::from_millis(25)));
    let delays = delays.join().ok().context("the blocker panicked")??;
    Ok((run.join().ok().context("the run panicked")??, delays))
}

/// The one spike that a delay made.
fn find<'a>(series: &'a Series, delay: &Delay) -> Result<&'a Spike> {
    let found: Vec<&Spike> = series.spikes.iter().filter(|spike| overlap(series, spike, delay)).collect();
    ensure!(found.len() == 1, "it made {} spikes: {found:?}", found.len());
    Ok(found[0])
}

fn overlap(series: &Series, spike: &Spike, delay: &Delay) -> bool {
    let begin_ns = series.first_deadline_ns + spike.at_ns as i64;
    begin_ns < delay.end_ns && begin_ns + spike.lateness_ns > delay.begin_ns
}

/// Every deadline was met by a wake-up or counted as missed, and as many as the delays ran over were missed.
fn missed_are_counted(series: &Series, delays: &[Delay]) -> Result<()> {
    let deadlines = (DURATION_S * 1_000_000_000 / PERIOD_NS) as u64;
    let accounted = series.samples + series.missed;
    ensure!(accounted.abs_diff(deadlines) <= 1, "{accounted} of {deadlines} deadlines are accounted for");
    let ran_over: i64 = series.spikes.iter().map(|spike| spike.lateness_ns / PERIOD_NS).sum();
    ensure!(series.missed == ran_over as u64, "{} missed, the spikes ran over {ran_over}", series.missed);
    // Which deadline a delay begins before and which its end lies before is for chance; both make at most one.
    let inside: i64 = delays.iter().map(|delay| (delay.end_ns - delay.begin_ns) / PERIOD_NS).sum();
    let off = ran_over - inside;
    ensure!(off.abs() <= delays.len() as i64, "{ran_over} missed, the delays held {inside}");
    Ok(())
}
