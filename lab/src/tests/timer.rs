//! The timer probe's requests to the kernel and what was granted.

use std::{fs, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::State;

use crate::inside::{expect, measure, punctual, read, recorded};

/// Real-time policy, pinning and locked memory are granted, the record is valid, and the report is written.
pub fn is_granted() -> Result<()> {
    let status = punctual("measure timer --quiet --samples 500 --record granted --export granted.html")?;
    expect(0, &status)?;
    let record = recorded("granted")?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    ensure!(record.state == State::Complete, "{:?}", record.state);
    let cpus = record.machine.cpus_online.clone().unwrap_or_default();
    ensure!(cpus == read("/sys/devices/system/cpu/online")?, "online: {cpus}");
    for series in &record.series {
        let granted = &series.granted;
        ensure!(granted.policy == "fifo:90" && granted.memory_locked && granted.timer_slack_ns == 0, "{granted:?}");
        ensure!(series.cpu.is_some_and(|cpu| granted.cpus == cpu.to_string()), "{granted:?}");
        ensure!(series.samples == 500, "{} samples", series.samples);
    }
    let report = fs::read_to_string(format!("{}/granted.html", guest::initramfs::OUT))?;
    ensure!(report.contains("</html>"), "the report is truncated");
    Ok(())
}

/// The CPU is kept out of idle states during the run according to the kernel, and released afterwards.
pub fn holds_the_cpu_awake() -> Result<()> {
    const FILE: &str = "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us";
    let before = read(FILE)?;
    let run = thread::spawn(|| measure(0, "awake", "--hold-cpu-awake --duration 2s"));
    let mut during = before.clone();
    // The time until the run starts depends on the kernel.
    while during == before && !run.is_finished() {
        thread::sleep(Duration::from_millis(100));
        during = read(FILE)?;
    }
    let record = run.join().ok().context("the run panicked")??;
    let after = read(FILE)?;
    ensure!((before.as_str(), during.as_str(), after.as_str()) == ("0", "n/a", "0"), "{before}, {during}, {after}");
    let [setting] = record.settings.as_slice() else { anyhow::bail!("settings: {:?}", record.settings) };
    ensure!(setting.name == FILE && setting.during == "n/a" && setting.after.as_deref() == Some("0"), "{setting:?}");
    ensure!(record.series[0].granted.cpu_awake.as_deref() == Some("pm_qos"), "{:?}", record.series[0].granted);
    Ok(())
}
