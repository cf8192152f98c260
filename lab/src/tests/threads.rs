//! Interrupt threads run at priority 50: above a probe at 40, below one at 90.

use std::{thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::Record;

use super::blocker::block;
use crate::inside::{measure, read, scheduled};

/// Every interrupt thread with its policy and priority: FIFO 50 by default.
pub fn interrupts_have_threads_at_50() -> Result<()> {
    let seen = scheduled(|name| name.starts_with("irq/"))?;
    ensure!(seen.keys().any(|name| name.starts_with("irq/7-parport")), "no thread of the parallel port: {seen:?}");
    ensure!(seen.keys().any(|name| name.contains("ttyS0")), "no thread of the console: {seen:?}");
    ensure!(seen.values().all(|policy| policy == "fifo:50"), "{seen:?}");
    let listed = read("/proc/interrupts")?;
    ensure!(listed.lines().any(|line| line.trim_start().starts_with("7:") && line.contains("parport")), "{listed}");
    Ok(())
}

const DELAYS: usize = 50;

/// A thread at priority 50 delays a probe at 40 each time, and never one at 90.
pub fn only_a_probe_of_lower_priority_is_delayed() -> Result<()> {
    let below = spikes_with_blocker(40)?;
    ensure!(below == DELAYS as u64, "{below} spikes of a probe at 40 with {DELAYS} delays");
    let above = spikes_with_blocker(90)?;
    ensure!(above == 0, "{above} spikes of a probe at 90");
    Ok(())
}

/// Spikes of a probe with this priority while another thread repeatedly takes the CPU for 2 ms at priority 50.
fn spikes_with_blocker(priority: u8) -> Result<u64> {
    let name = format!("at{priority}");
    let options = format!("--cpus 0 --policy fifo:{priority} --period 500us --threshold 1ms --duration 4s --blame=off");
    let run = thread::spawn(move || measure(0, &name, &options));
    thread::sleep(Duration::from_millis(700));
    let blocker = thread::spawn(|| block(50, &[2_000_000], DELAYS, Duration::from_millis(40)));
    let delays = blocker.join().ok().context("the blocker panicked")??;
    let record: Record = run.join().ok().context("the run panicked")??;
    let series = &record.series[0];
    let last_ns = delays.last().context("no delay")?.end_ns - series.first_deadline_ns;
    ensure!(delays[0].begin_ns > series.first_deadline_ns, "the delays started before the run");
    ensure!(last_ns < 4_000_000_000, "the delays continued after the run");
    Ok(series.spikes_total)
}
