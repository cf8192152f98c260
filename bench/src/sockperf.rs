//! Round trips of datagrams over loopback, compared with sockperf's ping-pong: 64 bytes every 1 ms, FIFO 98 on one CPU,
//! answered under FIFO 97 on another.
//!
//! sockperf polls the clock until its next datagram is due, so its CPU is awake when the answer arrives. punctual's
//! sender sleeps, like the programs that it represents.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::{
    punctual::Punctual,
    rounds::{Pair, alternate},
    row::{Row, Unit},
    run::run,
    scenario::{PERIOD_US, Scenario},
};

const SECONDS: u64 = 2;
const BYTES: u64 = 64;
/// Not the port of a known service; sockperf cannot choose a free one.
const PORT: &str = "17125";

/// Approximate duration, s.
pub fn seconds(rounds: usize) -> u64 {
    rounds as u64 * (2 * SECONDS + 4)
}

/// Measures median and 99th percentile; prints a message and skips the rows if sockperf is not installed.
pub fn measure(punctual: &Punctual, scenario: &Scenario, rounds: usize) -> Result<Vec<Row>> {
    if Command::new("sockperf").arg("--version").output().is_err() {
        eprintln!("SKIPPED: comparison with sockperf; install it: sudo apt-get install sockperf");
        return Ok(Vec::new());
    }
    let far_cpu = scenario.others.first().copied().unwrap_or(scenario.cpu);
    let pairs = alternate(rounds, || own(punctual, scenario.cpu, far_cpu), || peer(scenario.cpu, far_cpu))?;
    let row = |name, figure: usize| {
        let pairs = pairs.iter().map(|pair| Pair { own: pair.own[figure], peer: pair.peer[figure] });
        Row::compared(name, Unit::Time, pairs).with_target(1.0)
    };
    Ok(vec![row("UDP round trip, vs sockperf", 0), row("p99 of the UDP round trip, vs sockperf", 1)])
}

/// punctual's median and 99th percentile from sending to receiving, ns.
fn own(punctual: &Punctual, cpu: u32, far_cpu: u32) -> Result<[f64; 2]> {
    let folder = tempfile::tempdir().context("cannot create a folder for the address of `punctual echo`")?;
    let ready = folder.path().join("address");
    let _echo = Running(punctual.echo(far_cpu, &ready).spawn().context("cannot start `punctual echo`")?);
    let began = Instant::now();
    while !ready.exists() {
        ensure!(began.elapsed() < Duration::from_secs(10), "`punctual echo` does not answer");
        thread::sleep(Duration::from_millis(5));
    }
    let address = fs::read_to_string(&ready).context("cannot read the address of `punctual echo`")?;
    let times = punctual.round_trips_to(address.trim(), cpu, PERIOD_US, SECONDS * 1_000_000 / PERIOD_US, BYTES)?;
    let percentile = |percent| times.percentile(percent).context("no datagram came back");
    Ok([percentile(50.0)? as f64, percentile(99.0)? as f64])
}

/// sockperf's median and 99th percentile, ns.
fn peer(cpu: u32, far_cpu: u32) -> Result<[f64; 2]> {
    let mut server = on(far_cpu, 97);
    server.args(["server", "-i", "127.0.0.1", "-p", PORT]).stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Running(server.spawn().context("cannot start sockperf")?);
    thread::sleep(Duration::from_millis(500));
    let mut client = on(cpu, 98);
    client.args(["ping-pong", "-i", "127.0.0.1", "-p", PORT, "--full-rtt", "-m", &BYTES.to_string()]);
    client.args(["-t", &SECONDS.to_string(), &format!("--mps={}", 1_000_000 / PERIOD_US)]);
    let text = run(&mut client, &[0], "see `sockperf ping-pong --help`")?.stdout;
    Ok([percentile_ns(&text, "50.000")?, percentile_ns(&text, "99.000")?])
}

/// The command that runs sockperf on a CPU with a priority.
fn on(cpu: u32, priority: u32) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string(), "chrt", "-f", &priority.to_string(), "sockperf"]);
    command
}

/// A percentile of sockperf's output, which has lines such as `percentile 50.000 =   98.533`, in us.
fn percentile_ns(text: &str, percent: &str) -> Result<f64> {
    let heading = format!("percentile {percent} =");
    let after = text.split(&heading).nth(1).with_context(|| format!("sockperf printed no percentile {percent}"))?;
    let us: f64 =
        after.split_whitespace().next().unwrap_or_default().parse().context("cannot parse sockperf's times")?;
    Ok(us * 1000.0)
}

/// A program that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Errors are ignored, because the program may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Punctual {
    /// The command for an echo that writes its address to `ready`.
    fn echo(&self, cpu: u32, ready: &Path) -> Command {
        let mut command =
            self.with(&["echo", "--bind", "127.0.0.1:0", "--policy", "fifo:97", "--cpu", &cpu.to_string()]);
        command.arg("--ready").arg(ready).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_percentiles() {
        let text = "sockperf: ---> percentile 99.000 =  109.444\nsockperf: ---> percentile 50.000 =   98.533\n";
        assert!((percentile_ns(text, "50.000").unwrap() - 98_533.0).abs() < 1e-6);
        assert!((percentile_ns(text, "99.000").unwrap() - 109_444.0).abs() < 1e-6);
        assert!(percentile_ns("sockperf: No messages were received from the server.", "99.000").is_err());
    }
}
