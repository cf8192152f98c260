//! Interrupts of the far machine. A shell script takes the place of ssh, and both ends are in this guest.

use std::{fs, os::unix::fs::PermissionsExt, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::{Caveat, Record, State, Zero};
use rustix::process::{Pid, Signal, kill_process};

use super::{WIRE_NS, has_the_whole_way, interrupts, judge_of_lines, set};
use crate::inside::{expect, punctual, recorded, start};

const REACH: &str = "/tmp/reach";

/// The arguments of a measurement at the far end.
fn arguments(name: &str, more: &str) -> Result<String> {
    fs::create_dir_all("/tmp")?;
    // The guest has no programs for a copy.
    fs::write(REACH, "#!/bin/sh\nSSH_CONNECTION=\"127.0.0.1 1 127.0.0.1 22\" exec sh -c \"$2\"\n")?;
    fs::set_permissions(REACH, fs::Permissions::from_mode(0o755))?;
    let far = "--far-command /bin/punctual --far-cpu 0";
    let interrupts = "interrupt --source gpio:0/in0 --period 10ms --quiet";
    Ok(format!("pair --ssh {REACH} {far} root@board-b {interrupts} --record {name} {more}"))
}

/// Measures at the far end for 4 s.
fn pair(name: &str, more: &str) -> Result<(String, Record)> {
    let run = punctual(&arguments(name, &format!("--duration 4s {more}"))?)?;
    Ok((expect(0, &run)?, recorded(name)?))
}

/// The record of a far machine has its figures, as if it had been written there.
pub fn the_far_machine_measures() -> Result<()> {
    set("delay_ns", WIRE_NS)?;
    let (_, record) = pair("far", "--drive 0/out0")?;
    set("delay_ns", 20_000)?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Edge && figures.device.contains("in0"), "{figures:?}");
    ensure!(series.samples.abs_diff(400) <= 3 && figures.lost + figures.unanswered == 0, "{figures:?}");
    let to_kernel = figures.to_kernel.as_ref().context("no way to the kernel")?;
    ensure!(to_kernel.min_ns >= WIRE_NS.into(), "{to_kernel:?}");
    let is_named = |caveat: &Caveat| caveat.kind == "far" && caveat.text.contains("measured at board-b");
    ensure!(record.caveats.iter().any(is_named), "{:?}", record.caveats);
    ensure!(
        record.machine.kernel.is_some() && record.command.iter().any(|word| word == "pair"),
        "{:?}",
        record.command
    );
    Ok(())
}

/// The serial line of the judge is at this end, the lines that it is wired to are at the far end.
pub fn a_judge_here_asks_the_far_machine() -> Result<()> {
    set("delay_ns", WIRE_NS)?;
    let board = judge_of_lines()?;
    let (printed, record) = pair("far-judged", &format!("--answer 0/out1 --judge {}", board.path()))?;
    set("delay_ns", 20_000)?;
    ensure!(printed.contains("after a question of the outside judge /dev/pts/"), "{printed}");
    let responses = record.series.iter().find_map(|series| series.kind.responses()).context("no responses")?;
    ensure!(responses.question_line == "gpio:gpiochip0/in0 of board-b", "{responses:?}");
    // The switch of the judge is at this end, and its messages take some time to the other one.
    has_the_whole_way(&record, 5)
}

/// Ctrl-C at this end ends the far run, whose results are kept.
pub fn ctrl_c_keeps_the_results() -> Result<()> {
    let run = start(&arguments("far-ended", "--drive 0/out0 --duration 1h")?)?;
    thread::sleep(Duration::from_secs(4));
    kill_process(Pid::from_child(&run), Signal::INT)?;
    expect(0, &run.wait_with_output()?)?;
    let record = recorded("far-ended")?;
    ensure!(record.state == State::Interrupted && record.validity.valid, "{:?}", record.validity);
    let (series, _) = interrupts(&record)?;
    ensure!((50..=400).contains(&series.samples), "{} interrupts", series.samples);
    Ok(())
}
