//! The kernel's properties are detected.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::inside::{expect, punctual};

/// The output of `punctual check --json`.
pub(super) fn machine() -> Result<Value> {
    let output = expect(0, &punctual("check --fail-on never --json")?)?;
    serde_json::from_str(&output).context("the output is not JSON")
}

/// The finding with this id.
pub(super) fn finding<'a>(machine: &'a Value, id: &str) -> Result<&'a Value> {
    let findings = machine["findings"].as_array().context("there are no findings")?;
    findings.iter().find(|finding| finding["id"] == id).with_context(|| format!("no finding {id}"))
}

/// A PREEMPT_RT kernel is detected.
pub fn is_preempt_rt() -> Result<()> {
    let machine = machine()?;
    let preempt = &machine["machine"]["preempt"];
    ensure!(preempt == "PREEMPT_RT", "preempt is {preempt}");
    let state = &finding(&machine, "kernel.preempt")?["state"];
    ensure!(state == "ok", "kernel.preempt is {state}");
    Ok(())
}

/// A kernel without PREEMPT_RT is detected, with a remedy.
pub fn is_ordinary() -> Result<()> {
    let machine = machine()?;
    let preempt = machine["machine"]["preempt"].as_str().context("no preemption model")?;
    ensure!(["none", "voluntary", "full", "lazy"].contains(&preempt), "preempt is {preempt}");
    let finding = finding(&machine, "kernel.preempt")?;
    ensure!(finding["state"] != "ok" && finding["state"] != "unknown", "kernel.preempt is {}", finding["state"]);
    ensure!(finding["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "there is no remedy");
    Ok(())
}

/// Returns more data than the serial driver's interrupt limit allows. The host checks every frame, and fails the boot
/// if one is lost or damaged.
pub fn returns_large_files() -> Result<()> {
    let mut state: u64 = 1;
    let noise = || {
        // Xorshift (Marsaglia 2003), which cannot be compressed.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    let bytes: Vec<u8> = std::iter::repeat_with(noise).take(300_000).collect();
    std::fs::write("noise", bytes).context("cannot write to the result directory")
}
