//! A device that is removed during a run ends the run. The record keeps everything until then, and says so.

use std::{ffi::CStr, fs::File, path::Path};

use anyhow::{Context, Result, ensure};
use record::{EndedBy, GONE, State};
use rustix::system::{delete_module, finit_module};

use super::{
    input_device, interrupts,
    pulses::{PERIOD, Pulses},
};
use crate::inside::{expect, recorded, start, wait_until, write};

/// Planned length of a run. The device is removed long before.
const PLANNED_NS: u64 = 60_000_000_000;

/// Measures a source, removes its device, and checks the end of the run.
fn ends_with_its_device(source: &str, name: &str, more: &str, remove: impl FnOnce() -> Result<()>) -> Result<()> {
    let run = start(&format!(
        "measure interrupt --source {source} --cpu 0 --period 10ms --duration 60s --quiet --record {name} {more}"
    ))?;
    // The record on the disk is renewed every three seconds: it has interrupts then.
    wait_until("interrupts are recorded", || Ok(recorded(name)?.series.iter().any(|series| series.samples > 50)))?;
    remove().with_context(|| format!("cannot remove the device of {source}"))?;
    let out = expect(4, &run.wait_with_output()?)?;
    let record = recorded(name)?;
    ensure!(record.state == State::Interrupted && record.ended_by == Some(EndedBy::Failure), "{:?}", record.ended_by);
    let (series, figures) = interrupts(&record)?;
    ensure!(series.samples > 50, "{} interrupts, {figures:?}", series.samples);
    let gone: Vec<_> = record.caveats.iter().filter(|caveat| caveat.kind == GONE).map(|caveat| &*caveat.text).collect();
    ensure!(
        gone.len() == 1
            && gone[0].starts_with(&format!("the source {source} failed during the run: "))
            && gone[0].contains("was removed"),
        "{gone:?} {:?}",
        record.caveats
    );
    let ran_ns: u64 = record.phases.iter().map(|phase| phase.duration_ns).sum();
    ensure!(ran_ns < PLANNED_NS / 2, "it ran for {ran_ns} ns");
    let [reason] = &record.validity.reasons[..] else { anyhow::bail!("{:?}", record.validity.reasons) };
    ensure!(reason.id == "pacer.failed" && reason.text == gone[0] && out.contains("the device was removed"), "{out}");
    Ok(())
}

/// Unloads a module whose devices are in use.
fn unload(module: &CStr) -> Result<()> {
    Ok(delete_module(module, 0)?)
}

/// An input device, and the pin of a PTP clock, which are of one module.
pub fn an_input_device_and_a_clock() -> Result<()> {
    let device = input_device()?;
    ends_with_its_device(&format!("evdev:{device}"), "removed-input", "", || unload(c"events"))?;
    finit_module(File::open("/lib/modules/events.ko")?, c"", 0)?;
    ends_with_its_device("ptp:ptp0/P0", "removed-clock", "", || unload(c"events"))
}

/// Both lines of a GPIO chip.
pub fn a_chip() -> Result<()> {
    let remove = || write("/sys/module/lines/parameters/gone", "Y");
    ends_with_its_device("gpio:gpiochip0/in0", "removed-chip", "--drive 0/out0", remove)?;
    ensure!(!Path::new("/dev/gpiochip0").exists(), "the chip is still there");
    Ok(())
}

/// A converter. The settings of its trigger, which stays, are put back as far as they exist.
pub fn a_converter() -> Result<()> {
    let remove = || write("/sys/module/samples/parameters/gone", "Y");
    ends_with_its_device("iio:device0/samples-ready", "removed-converter", "", remove)
}

/// A counter.
pub fn a_counter() -> Result<()> {
    ends_with_its_device("counter:counter0/index", "removed-counter", "", || unload(c"counts"))
}

/// A source of pulses, whose driver is unloaded.
pub fn a_source_of_pulses() -> Result<()> {
    let pulses = Pulses::start(PERIOD)?;
    let ended = ends_with_its_device("pps:pps0", "removed-pulses", "", || unload(c"pps_parport"));
    pulses.end()?;
    ended
}
