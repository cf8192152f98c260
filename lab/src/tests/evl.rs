//! Threads of the EVL core stay out-of-band, and a thread that falls back is reported.

pub mod gpio;

use std::{fs, thread, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use guest::init::kernel_log;
use machine::Gravity;
use record::{BOTH_CORES, EVL, IN_BAND, OUT_OF_BAND, Record, Series};
use rustix::{
    mount::{UnmountFlags, mount_bind, unmount},
    process::{Pid, Signal, kill_process},
};

use crate::inside::{expect, punctual, recorded, run, start, wait_until};

const GRAVITY: &str = "/sys/devices/virtual/clock/monotonic/gravity";

/// Every wake-up of 2 s is counted, and all of them are out-of-band.
pub fn wake_ups_are_out_of_band() -> Result<()> {
    // The kernel calibrates its clock source for a second, and a change of the clock source would invalidate the run.
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    wait_until("the clock source is tsc", || Ok(fs::read_to_string(clock)?.trim() == "tsc"))?;
    expect(0, &punctual("measure timer --core evl --quiet --record wake-ups --samples 2000")?)?;
    let record = recorded("wake-ups")?;
    let series = out_of_band(&record)?;
    ensure!(series.samples + series.missed >= 2000, "{} wake-ups, {} missed", series.samples, series.missed);
    // Below 1 ms, one period: with virtual time nothing else runs here.
    let (min, max) = series.min_ns.zip(series.max_ns).context("wake-ups were counted")?;
    println!("lateness {min} to {max} ns, {} early of {}", series.early, series.samples);
    ensure!((-1_000_000..1_000_000).contains(&min) && max < 1_000_000, "lateness {min} to {max} ns");
    ensure!(series.missed == 0, "{} deadlines were missed", series.missed);
    ensure!(series.cpu_checks > 0, "the CPU of the thread was never checked");
    let machine = &record.machine;
    let core = machine.evl.as_ref().context("the machine has an EVL core")?;
    ensure!(core.state.as_deref() == Some("running") && core.cpus == machine.cpus_online, "{core:?}");
    ensure!(machine.evl_gravity.as_ref().is_some_and(|gravity| gravity.ends_with('u')), "{:?}", machine.evl_gravity);
    Ok(())
}

/// Both cores measure in one run: one series each, on the same period, and the out-of-band thread never falls back.
pub fn both_cores_are_compared() -> Result<()> {
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    wait_until("the clock source is tsc", || Ok(fs::read_to_string(clock)?.trim() == "tsc"))?;
    expect(0, &punctual("measure timer --core both --quiet --record both --samples 1000 --load cpu")?)?;
    let record = recorded("both")?;
    ensure!(record.scenario.core.as_deref() == Some(BOTH_CORES), "{:?}", record.scenario);
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    for series in &record.series {
        let lateness = (series.min_ns, series.mean_ns, series.max_ns);
        println!("{}: {} wake-ups, lateness {lateness:?}", series.place(), series.samples);
    }
    let [in_band, out_of_band] = record.series.as_slice() else { bail!("{} series", record.series.len()) };
    ensure!((in_band.role.as_str(), out_of_band.role.as_str()) == (IN_BAND, OUT_OF_BAND), "roles");
    ensure!(in_band.evl.is_none() && out_of_band.evl.as_ref().is_some_and(|evl| evl.in_band == 0), "cores");
    let apart_ns = out_of_band.first_deadline_ns - in_band.first_deadline_ns;
    ensure!(apart_ns.rem_euclid(1_000_000) == 500_000, "the grids are {apart_ns} ns apart");
    ensure!(in_band.samples + in_band.missed >= 1000 && out_of_band.samples + out_of_band.missed >= 1000, "samples");
    Ok(())
}

/// The calibrated gravity makes no wake-up early, is set only on request, and `restore` undoes it.
pub fn gravity_is_calibrated_and_restored() -> Result<()> {
    let now = || -> Result<String> { Ok(fs::read_to_string(GRAVITY)?.trim().to_owned()) };
    let before = now()?;
    let json = |options: &str| -> Result<serde_json::Value> {
        let output = punctual(&format!("evl gravity --json {options}"))?;
        println!("{}", String::from_utf8_lossy(&output.stdout));
        ensure!(
            matches!(output.status.code(), Some(0 | 2)),
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let of_user = json("--context user")?;
    let curve = of_user["contexts"][0]["curve"].as_array().context("a curve")?;
    let least = |step: &serde_json::Value| step["min_ns"].as_i64();
    ensure!(curve.len() > 1 && least(&curve[0]) > curve.last().and_then(least), "{curve:?}");
    ensure!(now()? == before, "the gravity is {} instead of {before}", now()?);
    let all = json("--set")?;
    ensure!(all["is_set"] == true && all["found"] == now()?, "{}: {all}", now()?);
    expect(0, &punctual("measure timer --core evl --quiet --record calibrated --samples 2000")?)?;
    let record = recorded("calibrated")?;
    ensure!(out_of_band(&record)?.early == 0, "{} wake-ups were early", record.series[0].early);
    // A measurement keeps the gravity, and restore undoes it.
    ensure!(all["found"] == now()?, "{}", now()?);
    expect(0, &punctual("restore")?)?;
    ensure!(now()? == before, "the gravity is {} instead of {before}", now()?);
    Ok(())
}

/// The curves of lateness against gravity are those of `latmus -t`.
///
/// The driver of the kernel chooses the values of handlers and kernel threads from almost equal deviations, so that its
/// choice differs from one calibration to the next by up to 1500 ns. That of user threads is ours.
pub fn gravity_agrees_with_latmus() -> Result<()> {
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    wait_until("the clock source is tsc", || Ok(fs::read_to_string(clock)?.trim() == "tsc"))?;
    let before = fs::read_to_string(GRAVITY)?;
    let tuned = run("/bin/latmus -t --verbose=2")?;
    println!("{}{}", String::from_utf8_lossy(&tuned.stdout), String::from_utf8_lossy(&tuned.stderr));
    ensure!(tuned.status.success(), "latmus: {}", tuned.status);
    let of_latmus: Gravity = fs::read_to_string(GRAVITY)?.parse()?;
    let log = String::from_utf8(kernel_log())?;
    fs::write(GRAVITY, &before)?;
    let output = punctual("evl gravity --json")?;
    ensure!(
        matches!(output.status.code(), Some(0 | 2)),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let all: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let ours: Gravity = all["found"].as_str().context("a gravity")?.parse()?;
    ensure!(of_latmus.user_ns > 0 && of_latmus.user_ns.abs_diff(ours.user_ns) <= 500, "{of_latmus} {ours}");
    let contexts = all["contexts"].as_array().context("contexts")?;
    for (context, name) in [("irq", "irqhand"), ("kernel", "kthread")] {
        let means = means_of_latmus(&log, name)?;
        let result = contexts.iter().find(|result| result["context"] == context).context("a context")?;
        let curve = result["curve"].as_array().context("a curve")?;
        ensure!(means.len() > 2 && curve.len().abs_diff(means.len()) <= 1, "{context}: {means:?} {curve:?}");
        for (step, (gravity_ns, mean_ns)) in curve.iter().zip(means) {
            let (gravity, mean) = (step["gravity_ns"].as_u64(), step["mean_ns"].as_f64().context("a mean")?);
            ensure!(gravity == Some(gravity_ns), "{context}: {step} instead of {gravity_ns} ns");
            ensure!((mean - mean_ns).abs() < 100.0, "{context}: {step}, latmus {mean_ns} ns");
        }
    }
    Ok(())
}

/// Mean latency for each gravity, ns, in the list that the kernel wrote for a context of `latmus -t`.
fn means_of_latmus(log: &str, context: &str) -> Result<Vec<(u64, f64)>> {
    let begin = format!("latmus({context}) calibration scores");
    let lines = log.lines().skip_while(|line| !line.ends_with(&begin)).skip(1);
    let list = lines.take_while(|line| line.contains(".. S"));
    let value = |line: &str, name: &str| -> Result<String> {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name));
        Ok(word.with_context(|| format!("no {name} in {line}"))?.to_owned())
    };
    list.map(|line| Ok((value(line, "gravity=")?.parse()?, value(line, "pmean=")?.parse()?))).collect()
}

/// The amplifier runs out-of-band.
pub fn audio_plays_out_of_band() -> Result<()> {
    let arguments = "measure audio --core evl --quiet --record audio --model builtin:nano --frames 256 --duration 3s";
    expect(0, &punctual(arguments)?)?;
    let record = recorded("audio")?;
    let audio = out_of_band(&record)?.kind.audio().context("a series of audio")?;
    ensure!((562..=563).contains(&audio.played), "{} periods in 3 s", audio.played);
    ensure!((audio.xruns, audio.lost, audio.silent) == (0, 0, 0), "{} xruns, {} lost", audio.xruns, audio.lost);
    Ok(())
}

/// A stop signal switches the thread to in-band: the run is invalid and gives the reason.
pub fn reports_threads_that_fall_back() -> Result<()> {
    let mut run = start("measure timer --core evl --quiet --record fallen --duration 3s")?;
    // The core renames a thread when it is attached.
    let threads = format!("/proc/{}/task", run.id());
    let names =
        || fs::read_dir(&threads).map(|all| all.flatten().map(|one| fs::read_to_string(one.path().join("comm"))));
    wait_until("measuring", || Ok(names()?.flatten().any(|name| name.starts_with("timer."))))?;
    thread::sleep(Duration::from_secs(1));
    for signal in [Signal::STOP, Signal::CONT] {
        kill_process(Pid::from_child(&run), signal)?;
        thread::sleep(Duration::from_millis(100));
    }
    let status = run.wait()?;
    ensure!(status.code() == Some(4), "{status}");
    let record = recorded("fallen")?;
    let reasons = &record.validity.reasons;
    ensure!(reasons.iter().any(|reason| reason.id == "evl.in_band"), "{reasons:?}");
    ensure!(record.series[0].evl.as_ref().is_some_and(|evl| evl.in_band > 0), "{:?}", record.series[0].evl);
    Ok(())
}

/// A run requested out-of-band is never made in-band.
pub fn rejects_unsupported_configurations() -> Result<()> {
    for (options, expected) in [
        ("timer --core evl --policy other", "choose a policy from fifo:1 to fifo:99"),
        ("timer --core evl --clock tai", "on the monotonic clock"),
        ("timer --core evl --cpus 7", "not on this machine"),
        ("interrupt --source hpet --core evl", "waits only for GPIO lines"),
        ("interrupt --source gpio:0/0 --core both", "only `measure timer` measures with both cores"),
    ] {
        let output = punctual(&format!("measure {options} --duration 300ms --no-record"))?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        // 64 if no machine could do it, 1 if this one cannot.
        ensure!(
            matches!(output.status.code(), Some(1 | 64)) && stderr.contains(expected),
            "{options}: {}: {stderr}",
            output.status
        );
    }
    Ok(())
}

/// Without the option of the kernel, GPIO lines are refused before they are touched.
pub fn lines_need_an_option_of_the_kernel() -> Result<()> {
    let output = punctual("measure interrupt --source gpio:0/1 --core evl --duration 300ms --no-record")?;
    expect(1, &output)?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(stderr.contains("boot one built with CONFIG_GPIOLIB_OOB=y"), "{stderr}");
    Ok(())
}

/// A kernel without the option accepts the line, as one with a pull-up resistor. If its configuration is not readable,
/// the core says that it does not know the line.
pub fn lines_of_linux_are_refused() -> Result<()> {
    let measure = |options: &str| punctual(&format!("measure interrupt --source gpio:0/1 {options} --no-record"));
    mount_bind("/dev/null", "/proc/config.gz")?;
    let output = measure("--core evl --duration 300ms");
    unmount("/proc/config.gz", UnmountFlags::empty())?;
    let output = output?;
    expect(1, &output)?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(stderr.contains("this kernel has no GPIO lines for threads of the EVL core"), "{stderr}");
    // Linux has the line: it is only silent.
    let printed = expect(4, &measure("--duration 300ms")?)?;
    ensure!(printed.contains("o interrupt came from gpio:gpiochip0/1"), "{printed}");
    Ok(())
}

/// The only series of a record, whose thread must never have left the core.
fn out_of_band(record: &Record) -> Result<&Series> {
    ensure!(record.scenario.core.as_deref() == Some(EVL), "{:?}", record.scenario);
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let [series] = record.series.as_slice() else { bail!("{} series", record.series.len()) };
    let evl = series.evl.as_ref().context("a series of the EVL core")?;
    ensure!(evl.in_band == 0 && evl.abi > 0, "{evl:?}");
    Ok(series)
}
