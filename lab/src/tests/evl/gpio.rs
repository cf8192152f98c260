//! A thread of the EVL core waits for a GPIO line, and answers on one, without a call of Linux.
//!
//! The kernel has a chip `oob-lines`, whose outputs `out0` and `out1` are wired to the inputs `in0` and `in1`.

use std::{fs, path::Path, thread, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use guest::init::kernel_log;
use record::{Interrupts, Record, Series, Zero};
use rustix::process::{Pid, Signal, kill_process};
use sys::interrupt::gpio::{Active, Chip};

use super::{super::interrupt::judge_of_lines, out_of_band};
use crate::inside::{expect, punctual, recorded, start, wait_until};

const SOURCE: &str = "measure interrupt --source gpio:0/in0 --core evl --quiet";

/// The figures of the only series, whose thread must never have left the core.
fn interrupts(record: &Record) -> Result<(&Series, &Interrupts)> {
    let series = out_of_band(record)?;
    Ok((series, series.kind.interrupts().context("no interrupts")?))
}

/// Every edge of the output line wakes the thread, which stays out-of-band with a load of Linux on its CPU.
pub fn edges_wake_the_thread() -> Result<()> {
    // The kernel calibrates its clock source for a second, and a change of the clock source would invalidate the run.
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    wait_until("the clock source is tsc", || Ok(fs::read_to_string(clock)?.trim() == "tsc"))?;
    expect(0, &punctual(&format!("{SOURCE} --drive 0/out0 --period 1ms --duration 3s --load cpu --record driven"))?)?;
    let record = recorded("driven")?;
    let (series, figures) = interrupts(&record)?;
    println!("{} interrupts, {:?} to {:?} ns, {figures:?}", series.samples, series.min_ns, series.max_ns);
    ensure!(figures.zero == Zero::Edge && figures.device.contains("in0"), "{figures:?}");
    // Linux may make an edge late or omit it while its load runs. Each one that it makes is an interrupt.
    ensure!(series.samples > 2_000, "{} interrupts", series.samples);
    ensure!(figures.lost + figures.spurious + figures.unanswered + figures.overruns == 0, "{figures:?}");
    let [to_kernel, to_thread] = [&figures.to_kernel, &figures.to_thread].map(|part| part.as_ref().context("a part"));
    let parts = to_kernel?.mean_ns + to_thread?.mean_ns;
    let whole = series.mean_ns.context("a mean")?;
    // The parts may contain an interrupt more, which came just before the end.
    ensure!((whole - parts).abs() < whole / 100.0, "{whole} ns, but its parts take {parts} ns");
    ensure!(!String::from_utf8(kernel_log())?.contains("BUG:"), "the kernel reports a bug");
    Ok(())
}

/// A thread whose line is silent ends with the run. It is not interrupted by a signal, which would switch it in-band.
pub fn a_silent_line_ends_with_the_run() -> Result<()> {
    let arguments = "measure interrupt --source gpio:0/in1 --core evl --quiet --duration 1s --record silent";
    expect(4, &punctual(arguments)?)?;
    let record = recorded("silent")?;
    let reasons: Vec<&str> = record.validity.reasons.iter().map(|reason| reason.id.as_str()).collect();
    let [series] = &record.series[..] else { bail!("{} series", record.series.len()) };
    ensure!(reasons.contains(&"interrupt.silent") && !reasons.contains(&"evl.in_band"), "{reasons:?}");
    ensure!(series.samples == 0 && series.evl.as_ref().is_some_and(|evl| evl.in_band == 0), "{:?}", series.evl);
    Ok(())
}

/// The thread answers the questions of a judge, and sets the line of the answers out-of-band.
pub fn a_judge_is_answered() -> Result<()> {
    let board = judge_of_lines()?;
    let arguments = format!("{SOURCE} --answer 0/out1 --duration 4s --period 10ms --record judged");
    let printed = expect(0, &punctual(&format!("{arguments} --judge {}", board.path()))?)?;
    ensure!(printed.contains("after a question of the outside judge /dev/pts/"), "{printed}");
    let record = recorded("judged")?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let [thread, of_judge] = &record.series[..] else { bail!("{} series", record.series.len()) };
    let responses = of_judge.kind.responses().context("no responses")?;
    println!("{} answers, {:?} to {:?} ns", responses.answered, of_judge.min_ns, of_judge.max_ns);
    ensure!(responses.complete && responses.answered > 100, "{responses:?}");
    // The judge of software omits each seventh question.
    ensure!(
        responses.missed == responses.questions / 7 && responses.unknown() + responses.spurious == 0,
        "{responses:?}"
    );
    ensure!(thread.samples.abs_diff(responses.answered) <= 1, "{} {responses:?}", thread.samples);
    ensure!(thread.evl.as_ref().is_some_and(|evl| evl.in_band == 0), "{:?}", thread.evl);
    Ok(())
}

/// A thread that is stopped falls back in-band, and loses the edges for which the queue of the kernel has no space.
pub fn a_stopped_thread_is_reported() -> Result<()> {
    let output = Chip::open(Path::new("/dev/gpiochip0"))?.drive(0, Active::High)?;
    let mut run = start(&format!("{SOURCE} --duration 3s --record stopped"))?;
    let edges = |count: u32| -> Result<()> {
        for _ in 0..count {
            output.set(true)?;
            output.set(false)?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    // The core renames a thread when it is attached.
    let threads = format!("/proc/{}/task", run.id());
    let names =
        || fs::read_dir(&threads).map(|all| all.flatten().map(|one| fs::read_to_string(one.path().join("comm"))));
    wait_until("measuring", || Ok(names()?.flatten().any(|name| name.starts_with("interrupt."))))?;
    thread::sleep(Duration::from_secs(1));
    edges(20)?;
    kill_process(Pid::from_child(&run), Signal::STOP)?;
    thread::sleep(Duration::from_millis(100));
    edges(40)?;
    kill_process(Pid::from_child(&run), Signal::CONT)?;
    thread::sleep(Duration::from_millis(100));
    edges(20)?;
    let status = run.wait()?;
    ensure!(status.code() == Some(4), "{status}");
    let record = recorded("stopped")?;
    let [series] = &record.series[..] else { bail!("{} series", record.series.len()) };
    let figures = series.kind.interrupts().context("no interrupts")?;
    println!("{} interrupts, {figures:?}, {:?}", series.samples, series.evl);
    let reasons = &record.validity.reasons;
    ensure!(reasons.iter().any(|reason| reason.id == "evl.in_band"), "{reasons:?}");
    // The queue keeps 16 edges of the 40.
    ensure!((40 + 16..40 + 20).contains(&series.samples), "{} of 80 edges", series.samples);
    ensure!(figures.overruns >= 1, "{figures:?}");
    Ok(())
}

/// Errors for a line in use and a missing line.
pub fn unusable_lines_are_reported() -> Result<()> {
    let error = |arguments: &str| -> Result<String> {
        let output = punctual(&format!("measure interrupt {arguments} --core evl --duration 300ms --no-record"))?;
        expect(1, &output)?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let missing = error("--source gpio:0/77")?;
    ensure!(missing.contains("no line gpiochip0/77: see `gpioinfo`"), "{missing}");
    // The same line by its name and its number.
    let used = error("--source gpio:0/in0 --drive 0/2")?;
    ensure!(
        used.contains("cannot use the line gpiochip0/2 as an output") && used.contains("punctual uses it"),
        "{used}"
    );
    let output = error("--source gpio:0/out0")?;
    ensure!(
        output.contains("cannot use the line gpiochip0/out0") && output.contains("CONFIG_GPIO_CDEV_V1"),
        "{output}"
    );
    Ok(())
}
