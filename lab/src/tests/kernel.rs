//! The kernel is seen for what it is.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::inside::{expect, punctual};

/// What `punctual machine --json` says.
pub(super) fn machine() -> Result<Value> {
    let told = expect(0, &punctual("machine --json")?)?;
    serde_json::from_str(&told).context("it is not JSON")
}

/// The finding of this name.
pub(super) fn finding<'a>(machine: &'a Value, id: &str) -> Result<&'a Value> {
    let findings = machine["findings"].as_array().context("there are no findings")?;
    findings.iter().find(|finding| finding["id"] == id).with_context(|| format!("no finding {id}"))
}

/// A PREEMPT_RT kernel is recognised as one.
pub fn is_preempt_rt() -> Result<()> {
    let machine = machine()?;
    let preempt = &machine["machine"]["preempt"];
    ensure!(preempt == "PREEMPT_RT", "preempt is {preempt}");
    let state = &finding(&machine, "kernel.preempt")?["state"];
    ensure!(state == "ok", "kernel.preempt is {state}");
    Ok(())
}

/// One without real-time preemption is not, and what to do about it is told.
pub fn is_ordinary() -> Result<()> {
    let machine = machine()?;
    let preempt = machine["machine"]["preempt"].as_str().context("no preemption model")?;
    ensure!(["none", "voluntary", "full", "lazy"].contains(&preempt), "preempt is {preempt}");
    let finding = finding(&machine, "kernel.preempt")?;
    ensure!(finding["state"] != "ok" && finding["state"] != "unknown", "kernel.preempt is {}", finding["state"]);
    ensure!(finding["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "there is no remedy");
    Ok(())
}

/// More comes back over the serial port than its driver has interrupts to spare for, and all of it: the host checks every
/// frame, and a boot of which one is lost or torn has failed.
pub fn much_comes_back() -> Result<()> {
    let mut state: u64 = 1;
    let noise = || {
        // Xorshift (Marsaglia 2003), which no compression makes smaller.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    let bytes: Vec<u8> = std::iter::repeat_with(noise).take(300_000).collect();
    std::fs::write("noise", bytes).context("cannot write to the folder that comes back")
}
