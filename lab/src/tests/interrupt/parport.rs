//! The parallel port of QEMU, which answers the end of each strobe with the interrupt of ACK, like a wire between them.

use std::{fs, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::{Record, Zero};
use sys::sched::{self, Policy};

use super::interrupts;
use crate::inside::{expect, punctual, recorded, start};

const PROBE: &str = "measure interrupt --source parport:0 --cpu 0 --period 10ms --quiet";

/// Each edge has one interrupt, and the time begins before the output is set.
pub fn each_edge_has_its_interrupt() -> Result<()> {
    let list = expect(0, &punctual("measure interrupt --list")?)?;
    ensure!(list.lines().any(|line| line.starts_with("parport:parport0")), "{list}");
    expect(0, &punctual(&format!("{PROBE} --duration 4s --record parport"))?)?;
    let record = recorded("parport")?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Edge && figures.device == "ACK (pin 10) of parport0", "{figures:?}");
    ensure!(figures.driven_by.as_deref() == Some("STROBE (pin 1)"), "{figures:?}");
    ensure!(
        series.samples.abs_diff(400) <= 3 && figures.lost + figures.spurious + figures.unanswered == 0,
        "{} {figures:?}",
        series.samples
    );
    ensure!(series.min_ns > Some(0) && series.max_ns < Some(5_000_000), "{:?} {:?}", series.min_ns, series.max_ns);
    Ok(())
}

/// Length of the delays.
const DELAY_NS: i64 = 4_000_000;

/// Measures while a thread at FIFO 60, below the probe and above the interrupt's thread, runs for 4 ms at a time.
fn disturbed(name: &str, more: &str) -> Result<Record> {
    let run = start(&format!("{PROBE} --policy fifo:80 --duration 3s --record {name} {more}"))?;
    let intruder = thread::spawn(|| -> Result<()> {
        sched::set_policy(Policy::Fifo(60))?;
        for _ in 0..60 {
            thread::sleep(Duration::from_millis(37));
            let end_ns = sys::clock::Clock::Monotonic.now_ns() + DELAY_NS;
            while sys::clock::Clock::Monotonic.now_ns() < end_ns {}
        }
        Ok(())
    });
    expect(0, &run.wait_with_output()?)?;
    intruder.join().ok().context("the intruder panicked")??;
    recorded(name)
}

/// A thread delays the interrupt's thread, unless that has a higher priority.
pub fn a_thread_delays_the_interrupt() -> Result<()> {
    let delayed = disturbed("parport-50", "")?;
    let (series, _) = interrupts(&delayed)?;
    let range = DELAY_NS / 2..DELAY_NS * 3 / 2;
    ensure!(series.max_ns.is_some_and(|ns| range.contains(&ns)), "{:?}", series.max_ns);
    let raised = disturbed("parport-70", "--irq-priority 70")?;
    ensure!(raised.validity.valid, "{:?}", raised.validity.reasons);
    let (series, _) = interrupts(&raised)?;
    ensure!(series.max_ns < Some(DELAY_NS / 4), "{:?}", series.max_ns);
    let setting =
        raised.settings.iter().find(|setting| setting.name.contains("irq/7-parport")).context("no setting")?;
    ensure!(setting.after.as_deref() == Some("fifo:50"), "{setting:?}");
    Ok(())
}

/// Errors for a port in use, and a missing port.
pub fn a_port_in_use_is_reported() -> Result<()> {
    let error = |port: u32| -> Result<String> {
        let output = punctual(&format!("measure interrupt --source parport:{port} --duration 300ms --no-record"))?;
        expect(1, &output)?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let run = start(&format!("{PROBE} --duration 3s --no-record"))?;
    thread::sleep(Duration::from_secs(2));
    let used = error(0)?;
    expect(0, &run.wait_with_output()?)?;
    ensure!(used.contains("cannot use /dev/parport0") && used.contains("another driver uses it"), "{used}");
    let missing = error(5)?;
    ensure!(missing.contains("cannot use /dev/parport5") && missing.contains("ppdev"), "{missing}");
    ensure!(fs::metadata("/dev/parport0").is_ok());
    Ok(())
}
