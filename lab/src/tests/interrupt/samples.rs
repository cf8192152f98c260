//! A converter of industrial I/O, whose samples the kernel stamps.

use std::{fs, path::PathBuf, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::{Record, Zero};
use rustix::mount::{MountFlags, mount};

use super::{contain, interrupts};
use crate::inside::{expect, punctual, read, recorded, start, wait_until, write};

/// Sets parameters of the module `samples` during a function.
fn with_samples<T>(parameters: &[(&str, &str)], run: impl FnOnce() -> Result<T>) -> Result<T> {
    let file = |name: &str| format!("/sys/module/samples/parameters/{name}");
    let before: Vec<String> = parameters.iter().map(|(name, _)| read(&file(name))).collect::<Result<_>>()?;
    parameters.iter().try_for_each(|(name, value)| write(&file(name), value))?;
    let result = run();
    parameters.iter().zip(&before).try_for_each(|((name, _), value)| write(&file(name), value))?;
    result
}

/// Measures the converter, which has a sample every 10 ms.
fn measured(name: &str, more: &str) -> Result<Record> {
    let arguments = "--source iio:0/samples-ready --cpu 0 --period 10ms --duration 3s --quiet";
    expect(0, &punctual(&format!("measure interrupt {arguments} --record {name} {more}"))?)?;
    recorded(name)
}

const DEVICE: &str = "/sys/bus/iio/devices/iio:device0";

/// The settings of the converter that a run changes.
fn settings() -> Result<Vec<String>> {
    let files = [
        "trigger/current_trigger",
        "current_timestamp_clock",
        "scan_elements/in_timestamp_en",
        "scan_elements/in_voltage0_en",
        "buffer/length",
        "buffer/watermark",
        "buffer/enable",
    ];
    files.into_iter().map(|file| read(&format!("{DEVICE}/{file}"))).collect()
}

/// The test module sets its stamps back by this time.
const DELAY_NS: i64 = 2_000_000;

/// The times of samples begin at their stamp, and each sample is one interrupt.
pub fn begin_at_their_stamp() -> Result<()> {
    let list = expect(0, &punctual("measure interrupt --list")?)?;
    ensure!(list.contains("iio:device0") && list.contains("iio:device0, samples"), "{list}");
    let before = settings()?;
    let record = with_samples(&[("delay_ns", "2000000")], || measured("samples", ""))?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Handler && figures.resolution_ns == Some(1), "{figures:?}");
    ensure!(figures.device == "iio:device0, samples, trigger samples-ready", "{figures:?}");
    ensure!(
        series.samples.abs_diff(300) <= 3 && figures.lost + figures.overruns == 0,
        "{} {figures:?}",
        series.samples
    );
    contain(series, DELAY_NS)?;
    let clock = record.settings.iter().find(|setting| setting.name.ends_with("current_timestamp_clock"));
    let clock = clock.context("the clock was not changed")?;
    ensure!((clock.before.as_str(), clock.during.as_str()) == ("realtime", "monotonic"), "{clock:?}");
    let after = settings()?;
    ensure!(after == before, "{after:?} instead of {before:?}");
    Ok(())
}

/// The kernel does not say that the buffer of a device was full.
pub fn a_full_buffer_is_reported() -> Result<()> {
    let full = with_samples(&[("burst", "200"), ("period_ns", "100000000")], || measured("full", "--policy other"))?;
    let is_reported =
        full.caveats.iter().any(|caveat| caveat.text.contains("does not say how many interrupts it lost"));
    ensure!(is_reported, "{:?}", full.caveats);
    let (series, figures) = interrupts(&full)?;
    // The kernel keeps 128 of the 200 samples of each burst.
    ensure!(
        (20 * 128..=31 * 128).contains(&series.samples) && figures.overruns >= 20,
        "{} {figures:?}",
        series.samples
    );
    let complete =
        with_samples(&[("burst", "30"), ("period_ns", "100000000")], || measured("complete", "--policy other"))?;
    let (series, figures) = interrupts(&complete)?;
    ensure!((20 * 30..=31 * 30).contains(&series.samples) && figures.overruns == 0, "{} {figures:?}", series.samples);
    Ok(())
}

/// Settings are put back after an error and after a kill, and a trigger of the user works.
pub fn settings_are_put_back() -> Result<()> {
    let before = settings()?;
    let other = with_samples(&[("other_clock", "Y")], || {
        punctual("measure interrupt --source iio:0/samples-ready --duration 1s --no-record")
    })?;
    let out = expect(4, &other)?;
    ensure!(out.contains("stamps with another clock"), "{out}");
    ensure!(settings()? == before, "after an error: {:?}", settings()?);

    let mut run = start("measure interrupt --source iio:0/samples-ready --duration 60s --no-record")?;
    wait_until("the buffer is enabled", || Ok(read(&format!("{DEVICE}/buffer/enable"))? == "1"))?;
    thread::sleep(Duration::from_millis(300));
    run.kill()?;
    run.wait()?;
    ensure!(settings()? != before, "nothing to put back");
    let restored = expect(0, &punctual("restore")?)?;
    ensure!(restored.contains("6 settings"), "{restored}");
    ensure!(settings()? == before, "after a kill: {:?}", settings()?);

    write("/sys/bus/iio/devices/iio_sysfs_trigger/add_trigger", "3")?;
    let fire = fs::canonicalize("/sys/bus/iio/devices/trigger1/trigger_now").context("no sysfs trigger")?;
    let run = start("measure interrupt --source iio:0/sysfstrig3 --cpu 0 --duration 2s --quiet --record fired")?;
    wait_until("the buffer is enabled", || Ok(read(&format!("{DEVICE}/buffer/enable"))? == "1"))?;
    thread::sleep(Duration::from_millis(500));
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(20));
        fs::write(&fire, "1")?;
    }
    expect(0, &run.wait_with_output()?)?;
    let record = recorded("fired")?;
    let (series, figures) = interrupts(&record)?;
    ensure!(series.samples == 20 && figures.device.ends_with("trigger sysfstrig3"), "{} {figures:?}", series.samples);
    ensure!(settings()? == before, "after a trigger of the user: {:?}", settings()?);
    Ok(())
}

/// A device without a trigger, without an existing one, in use, and a missing device.
pub fn unusable_devices_are_reported() -> Result<()> {
    let error = |source: &str| -> Result<String> {
        let output = punctual(&format!("measure interrupt --source {source} --duration 300ms --no-record"))?;
        expect(1, &output)?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let before = settings()?;
    let none = error("iio:0")?;
    ensure!(
        none.contains("iio:device0 has no trigger: choose one with iio:N/TRIGGER") && none.contains("samples-ready"),
        "{none}"
    );
    let missing = error("iio:0/clock")?;
    ensure!(missing.contains("no trigger `clock`: this machine has samples-ready"), "{missing}");
    let absent = error("iio:7")?;
    ensure!(absent.contains("no iio:device7: this machine has iio:device0"), "{absent}");
    let open = fs::File::open("/dev/iio:device0")?;
    let used = error("iio:0/samples-ready")?;
    drop(open);
    ensure!(used.contains("iio:device0 is in use (another program has it open)"), "{used}");
    write(&format!("{DEVICE}/scan_elements/in_voltage0_en"), "1")?;
    write(&format!("{DEVICE}/trigger/current_trigger"), "samples-ready")?;
    write(&format!("{DEVICE}/buffer/enable"), "1")?;
    let enabled = error("iio:0/samples-ready")?;
    ensure!(enabled.contains("iio:device0 is in use (its buffer is enabled)"), "{enabled}");
    write(&format!("{DEVICE}/buffer/enable"), "0")?;
    write(&format!("{DEVICE}/trigger/current_trigger"), "\n")?;
    write(&format!("{DEVICE}/scan_elements/in_voltage0_en"), "0")?;
    ensure!(settings()? == before, "{:?} instead of {before:?}", settings()?);
    Ok(())
}

/// Samples that the kernel's own trigger module starts: a timer of the kernel, here with 100 Hz.
pub fn a_trigger_of_the_kernel_starts_them() -> Result<()> {
    // It may be mounted.
    let _ = mount("configfs", "/sys/kernel/config", "configfs", MountFlags::empty(), None);
    fs::create_dir("/sys/kernel/config/iio/triggers/hrtimer/hz100")
        .context("the kernel has no trigger of this kind")?;
    let triggers = fs::read_dir("/sys/bus/iio/devices")?.flatten().map(|entry| entry.path());
    let is_ours = |path: &PathBuf| fs::read_to_string(path.join("name")).is_ok_and(|name| name.trim() == "hz100");
    let trigger = triggers.into_iter().find(is_ours).context("the trigger does not exist")?;
    fs::write(trigger.join("sampling_frequency"), "100")?;
    let before = settings()?;
    let arguments = "--source iio:0/hz100 --cpu 0 --period 10ms --duration 3s --quiet --record hz100";
    expect(0, &punctual(&format!("measure interrupt {arguments}"))?)?;
    let record = recorded("hz100")?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.device == "iio:device0, samples, trigger hz100", "{figures:?}");
    ensure!(series.samples.abs_diff(300) <= 3 && figures.overruns == 0, "{} {figures:?}", series.samples);
    ensure!(settings()? == before, "the settings were not put back: {:?}", settings()?);
    Ok(())
}
