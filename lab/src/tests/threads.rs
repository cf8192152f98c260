//! Interrupt threads, which run at priority 50: above a probe at 40, below one at 90.

use std::{thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::Record;

use super::blocker::block;
use crate::inside::{measure, read, scheduled};

/// Every interrupt thread, by name, with its policy and priority: FIFO 50 where nobody has set another.
pub fn interrupts_have_threads_at_50() -> Result<()> {
    let seen = scheduled(|name| name.starts_with("irq/"))?;
    ensure!(seen.keys().any(|name| name.starts_with("irq/7-parport")), "no thread of the port: {seen:?}");
    ensure!(seen.keys().any(|name| name.contains("ttyS0")), "no thread of the console: {seen:?}");
    ensure!(seen.values().all(|policy| policy == "fifo:50"), "{seen:?}");
    let listed = read("/proc/interrupts")?;
    ensure!(listed.lines().any(|line| line.trim_start().starts_with("7:") && line.contains("parport")), "{listed}");
    Ok(())
}

const DELAYS: usize = 50;

/// What runs at 50 delays a probe at 40, each time, and never one at 90.
pub fn a_probe_below_them_is_delayed_and_one_above_is_not() -> Result<()> {
    let below = spikes_beside(40)?;
    ensure!(below == DELAYS as u64, "{DELAYS} delays made {below} spikes of a probe at 40");
    let above = spikes_beside(90)?;
    ensure!(above == 0, "{above} spikes of a probe at 90");
    Ok(())
}

/// Spikes of a probe of this priority while another thread takes the CPU for 2 ms at priority 50, again and again.
fn spikes_beside(priority: u8) -> Result<u64> {
    let name = format!("at{priority}");
    let options = format!("--cpus 0 --policy fifo:{priority} --period 500us --threshold 1ms --duration 4s --blame=off");
    let run = thread::spawn(move || measure(0, &name, &options));
    thread::sleep(Duration::from_millis(700));
    let blocker = thread::spawn(|| block(50, &[2_000_000], DELAYS, Duration::from_millis(40)));
    let delays = blocker.join().ok().context("the blocker panicked")??;
    let record: Record = run.join().ok().context("the run panicked")??;
    let series = &record.series[0];
    let last_ns = delays.last().context("no delay")?.end_ns - series.first_deadline_ns;
    ensure!(delays[0].begin_ns > series.first_deadline_ns, "the delays began before the run");
    ensure!(last_ns < 4_000_000_000, "the delays went on after the run");
    Ok(series.spikes_total)
}
