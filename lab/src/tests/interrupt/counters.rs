//! Counters with capture registers, whose captured count shows when the signal changed.

use std::{thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::{Record, Zero};

use super::{contain, interrupts};
use crate::inside::{expect, punctual, read, recorded, start, write};

/// Sets parameters of the module `counts` during a function.
fn with_counts<T>(parameters: &[(&str, &str)], run: impl FnOnce() -> Result<T>) -> Result<T> {
    let file = |name: &str| format!("/sys/module/counts/parameters/{name}");
    let before: Vec<String> = parameters.iter().map(|(name, _)| read(&file(name))).collect::<Result<_>>()?;
    parameters.iter().try_for_each(|(name, value)| write(&file(name), value))?;
    let result = run();
    parameters.iter().zip(&before).try_for_each(|((name, _), value)| write(&file(name), value))?;
    result
}

/// Measures an event, which the module reports every 10 ms.
fn measured(event: &str, name: &str) -> Result<Record> {
    let arguments = "--cpu 0 --period 10ms --duration 3s --quiet";
    expect(0, &punctual(&format!("measure interrupt --source counter:0/{event} {arguments} --record {name}"))?)?;
    recorded(name)
}

/// Time from the capture to the kernel's stamp, and the largest error of the readings in a guest.
const DELAY_NS: i64 = 2_000_000;
const ERROR_NS: i64 = 100_000;

/// A captured count shows when the signal changed, also if the count starts again every 5 ms, twice per event.
pub fn a_capture_register_shows_the_whole_way() -> Result<()> {
    let list = expect(0, &punctual("measure interrupt --list")?)?;
    ensure!(list.contains("counter:counter0/EVENT") && list.contains("counter0, counts"), "{list}");
    for (ceiling, range) in [("999999", "after 100"), ("49999", "after 5"), ("18446744073709551615", "")] {
        let name = format!("capture-{ceiling}");
        let parameters = [("delay_ns", "2000000"), ("ceiling", ceiling)];
        let record = with_counts(&parameters, || measured("capture:1", &name))?;
        ensure!(record.validity.valid, "{:?}", record.validity.reasons);
        let (series, figures) = interrupts(&record)?;
        ensure!(figures.zero == Zero::Counter && figures.resolution_ns == Some(100), "{figures:?}");
        let device = &figures.device;
        ensure!(
            device.starts_with("counter0, counts, event capture of channel 1, capture1 of count0 at 10.0"),
            "{device}"
        );
        ensure!(device.contains(range), "{device}");
        ensure!(series.samples.abs_diff(300) <= 3 && figures.lost == 0, "{} interrupts, {figures:?}", series.samples);
        contain(series, DELAY_NS)?;
        let to_kernel = figures.to_kernel.as_ref().context("no way to the kernel")?;
        ensure!((DELAY_NS - ERROR_NS..DELAY_NS + ERROR_NS * 5).contains(&to_kernel.min_ns), "{to_kernel:?}");
        ensure!(figures.max_uncertainty_ns.is_some_and(|ns| ns < ERROR_NS.unsigned_abs()), "{figures:?}");
    }
    Ok(())
}

/// A section with interrupts off delays the handler, and so the kernel's stamp, but not the capture.
pub fn interrupts_off_delay_a_capture() -> Result<()> {
    let run =
        start("measure interrupt --source counter:0/capture:1 --cpu 0 --duration 3s --quiet --record capture-irqs")?;
    // Sections with interrupts off at other times of the period of 10 ms.
    for _ in 0..40 {
        thread::sleep(Duration::from_millis(63));
        write("/dev/hold", "irqs 8000000")?;
    }
    expect(0, &run.wait_with_output()?)?;
    let record = recorded("capture-irqs")?;
    let (_, figures) = interrupts(&record)?;
    let to_kernel = figures.to_kernel.as_ref().context("no way to the kernel")?;
    ensure!((4_000_000..9_000_000).contains(&to_kernel.max_ns) && to_kernel.min_ns < 1_000_000, "{to_kernel:?}");
    Ok(())
}

/// Other events have only the kernel's stamp.
pub fn events_without_a_register_begin_at_their_stamp() -> Result<()> {
    let record = with_counts(&[("delay_ns", "2000000")], || measured("index", "index"))?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Handler && figures.uncertainty_ns.is_none(), "{figures:?}");
    ensure!(series.samples.abs_diff(300) <= 3 && series.max_ns < Some(DELAY_NS), "{} {figures:?}", series.samples);
    Ok(())
}

/// A count that stands still, a missing event, and a register that cannot be read.
pub fn unusable_counts_are_reported() -> Result<()> {
    let error = |event: &str, status: i32| -> Result<String> {
        let source = format!("measure interrupt --source counter:0/{event} --duration 300ms --no-record");
        let output = punctual(&source)?;
        let out = expect(status, &output)?;
        Ok(out + &String::from_utf8_lossy(&output.stderr))
    };
    let stopped = with_counts(&[("khz", "0")], || error("capture:1", 1))?;
    ensure!(stopped.contains("counter0/count0/count: it does not run: enable it"), "{stopped}");
    let missing = error("threshold", 1)?;
    ensure!(missing.contains("cannot use counter0/threshold") && missing.contains("choose another event"), "{missing}");
    let broken = with_counts(&[("broken", "Y")], || error("capture:1", 4))?;
    ensure!(broken.contains("counter:counter0/capture:1 failed during the run: I/O error"), "{broken}");
    Ok(())
}
