//! Frames of a stream over a veth pair: transit times with AF_XDP at both ends and only at the listener, compared with
//! sockets at both ends; and how soon after its slot a talker that wakes early and spins sends a frame. The talker runs
//! under FIFO 90 and sends every 125 us; the listener polls under FIFO 90 on another CPU.

use anyhow::{Context, Result, ensure};
use record::Histogram;

use crate::{
    punctual::{Punctual, recorded},
    rounds::alternate,
    row::{Row, Unit},
    scenario::Scenario,
};

const SECONDS: u64 = 2;
const FRAMES: u64 = SECONDS * 8000;
/// Early enough for nearly every wake-up.
const WAKEUP_OFFSET: &str = "60us";
/// Upper limit for the median time from a slot to the sending of its frame.
const SEND_LIMIT_NS: f64 = 20.0;

/// Approximate duration of `rounds`, s.
pub fn seconds(rounds: usize) -> u64 {
    rounds as u64 * (5 * SECONDS + 3)
}

/// Measures the rows: the median time from the talker's last clock reading until its frame was read, and the median
/// time from the start of a slot to the clock reading just before its frame is sent.
pub fn measure(punctual: &Punctual, scenario: &Scenario, rounds: usize) -> Result<[Row; 3]> {
    let far_cpu = scenario.others.first().copied().unwrap_or(scenario.cpu);
    let streamed = |how: &[&str]| punctual.streamed(scenario.cpu, far_cpu, how);
    let transit = |how: [&str; 4]| median(&streamed(&how)?.transit);
    let row = |name, own| {
        let socket = || transit(["--mode", "send", "--receive", "socket"]);
        let pairs = alternate(rounds, || transit(own), socket)?;
        Ok::<_, anyhow::Error>(Row::compared(name, Unit::Time, pairs).with_target(0.9))
    };
    let send = |_| median(&streamed(&["--mode", "send", "--wakeup-offset", WAKEUP_OFFSET])?.send);
    let sent = (0..rounds).map(send).collect::<Result<Vec<_>>>()?;
    Ok([
        row("frame in transit, AF_XDP at both ends", ["--mode", "xdp", "--receive", "xdp"])?,
        row("frame in transit, AF_XDP at the listener", ["--mode", "send", "--receive", "xdp"])?,
        Row::alone("frame sent after its slot, woken early and spinning", Unit::Nanoseconds, sent, SEND_LIMIT_NS),
    ])
}

fn median(times: &Histogram) -> Result<f64> {
    ensure!(times.total() * 2 >= FRAMES, "only {} of {FRAMES} frames came", times.total());
    Ok(times.percentile(50.0).context("no frame arrived")? as f64)
}

/// The figures of both ends of a stream.
struct Streamed {
    /// Time from the start of a slot to the clock reading just before its frame is sent.
    send: Histogram,
    /// Time from the talker's last clock reading until the frame was read.
    transit: Histogram,
}

impl Punctual {
    /// Measures a stream between two namespaces on this machine.
    fn streamed(&self, cpu: u32, far_cpu: u32, how: &[&str]) -> Result<Streamed> {
        let mut command =
            self.with(&["measure", "stream", "--self", "--quiet", "--no-record", "--json", "--blame=off"]);
        command.args(["--spin", "--cpu", &cpu.to_string(), "--listen-cpu", &far_cpu.to_string()]);
        command.args(["--duration", &format!("{SECONDS}s")]).args(how);
        let (record, _) = recorded(&mut command)?;
        ensure!(record.validity.valid, "a stream was measured without the requested rights; run as root: make bench");
        let (mut send, mut transit) = (None, None);
        for series in record.series {
            if let Some(talker) = series.kind.talker() {
                send = Some(talker.send.clone());
            }
            if let Some(listener) = series.kind.listener() {
                transit = listener.one_way.as_ref().map(|one_way| one_way.whole.clone());
            }
        }
        Ok(Streamed {
            send: send.context("punctual's record has no talker")?,
            transit: transit.context("punctual's record has no listener")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_a_median_of_too_few_frames() {
        let mut times = Histogram::default();
        times.add(5_000, FRAMES / 4);
        assert!(median(&times).is_err());
        times.add(5_000, FRAMES / 2);
        assert!((5_000.0..5_010.0).contains(&median(&times).unwrap()));
    }
}
