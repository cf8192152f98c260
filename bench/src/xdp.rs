//! Frames of a stream over a virtual cable: AF_XDP at both ends, and at the listener alone, beside sockets at both. A talker under FIFO 90 sends one
//! every 125 us, a listener under FIFO 90 on another CPU looks for them without sleeping.

use anyhow::{Context, Result, ensure};
use record::{Histogram, Stream};

use crate::{
    punctual::{Punctual, recorded},
    rounds::alternate,
    row::{Row, Unit},
    scenario::Scenario,
};

const SECONDS: u64 = 2;
const FRAMES: u64 = SECONDS * 8000;

/// About how long `rounds` take, s.
pub fn seconds(rounds: usize) -> u64 {
    2 * rounds as u64 * (2 * SECONDS + 1)
}

/// Takes the rows: the median time from the talker's last look at the clock to when its frame was read.
pub fn measure(punctual: &Punctual, scenario: &Scenario, rounds: usize) -> Result<[Row; 2]> {
    let far_cpu = scenario.others.first().copied().unwrap_or(scenario.cpu);
    let under_way = |how: [&str; 4]| median(&punctual.under_way(scenario.cpu, far_cpu, SECONDS, how)?);
    let row = |name, ours| {
        let socket = || under_way(["--mode", "send", "--receive", "socket"]);
        let pairs = alternate(rounds, || under_way(ours), socket)?;
        Ok::<_, anyhow::Error>(Row::compared(name, Unit::Time, pairs).with_target(0.9))
    };
    Ok([
        row("frame under way, AF_XDP at both ends", ["--mode", "xdp", "--receive", "xdp"])?,
        row("frame under way, AF_XDP at the listener", ["--mode", "send", "--receive", "xdp"])?,
    ])
}

fn median(times: &Histogram) -> Result<f64> {
    ensure!(times.total() * 2 >= FRAMES, "only {} of {FRAMES} frames came", times.total());
    Ok(times.percentile(50.0).context("no frame came")? as f64)
}

impl Punctual {
    /// How long each frame of a stream between two ends of its own was under way.
    fn under_way(&self, cpu: u32, far_cpu: u32, seconds: u64, how: [&str; 4]) -> Result<Histogram> {
        let mut command =
            self.with(&["measure", "stream", "--self", "--quiet", "--no-record", "--json", "--blame=off"]);
        command.args(["--spin", "--cpu", &cpu.to_string(), "--listen-cpu", &far_cpu.to_string()]);
        command.args(["--duration", &format!("{seconds}s")]).args(how);
        let (record, _) = recorded(&mut command)?;
        ensure!(
            record.validity.valid,
            "a stream was measured without the rights that were asked for; run as root: make bench"
        );
        let heard = record.series.into_iter().find_map(|series| match series.stream? {
            Stream::Listener(listener) => listener.one_way,
            Stream::Talker(_) => None,
        });
        Ok(heard.context("punctual heard no stream")?.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_that_came_are_no_figure() {
        let mut times = Histogram::default();
        times.add(5_000, FRAMES / 4);
        assert!(median(&times).is_err());
        times.add(5_000, FRAMES / 2);
        assert!((5_000.0..5_010.0).contains(&median(&times).unwrap()));
    }
}
