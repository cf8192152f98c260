//! Round trips of datagrams over a veth pair: punctual compared with a minimal loop that only sends and waits. Both
//! send every 1 ms under FIFO 98 on the same CPU, and are answered under FIFO 97 on another. And round trips by AF_XDP at
//! both ends, compared with those by sockets.

use std::{
    net::UdpSocket,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use machine::veth::VethPair;
use record::Histogram;
use sys::{
    clock::{Clock, Sleeper, Wait},
    sched::{Policy, set_affinity, set_policy},
};

use crate::{
    punctual::Punctual,
    rounds::{Pair, alternate},
    row::{Row, Unit},
    scenario::{PERIOD_US, Scenario},
};

const DATAGRAMS: u64 = 2000;
const BYTES: usize = 64;
const PORT: u16 = 7125;
const PATIENCE: Duration = Duration::from_millis(100);

/// Upper limit for the ratio of AF_XDP to sockets.
const XDP_LIMIT: f64 = 0.9;

/// Approximate duration of `rounds`, s.
pub fn seconds(rounds: usize) -> u64 {
    3 * rounds as u64 * (2 * DATAGRAMS * PERIOD_US / 1_000_000 + 1)
}

/// Measures the rows: median and 99th percentile from the time when a datagram was sent, because the loop has no other time.
pub fn measure(punctual: &Punctual, scenario: &Scenario, rounds: usize) -> Result<[Row; 2]> {
    let far_cpu = scenario.others.first().copied().unwrap_or(scenario.cpu);
    let own = || {
        let times = punctual.round_trips(scenario.cpu, far_cpu, PERIOD_US, DATAGRAMS, BYTES as u64)?;
        figures(&times)
    };
    let pairs = alternate(rounds, own, || figures(&bare(scenario.cpu, far_cpu)?))?;
    let row = |name, figure: usize| {
        let pairs = pairs.iter().map(|pair| Pair { own: pair.own[figure], peer: pair.peer[figure] });
        Row::compared(name, Unit::Time, pairs).with_target(1.0)
    };
    Ok([row("UDP round trip, vs a bare loop", 0), row("p99 of the UDP round trip, vs a bare loop", 1)])
}

/// Measures AF_XDP rows: the median time from sending to receiving, of datagrams and of Ethernet frames. Neither side asks
/// the kernel for timestamps, which AF_XDP does not have.
pub fn measure_xdp(punctual: &Punctual, scenario: &Scenario, rounds: usize) -> Result<[Row; 2]> {
    let far_cpu = scenario.others.first().copied().unwrap_or(scenario.cpu);
    let median = |kind: &str, transport: &str| {
        let options = ["--transport", transport, "--stamps", "none"];
        let times = punctual.own_round_trips(kind, [scenario.cpu, far_cpu], DATAGRAMS, &options)?;
        figures(&times).map(|[median, _]| median)
    };
    let row = |name, kind| {
        let pairs = alternate(rounds, || median(kind, "xdp"), || median(kind, "socket"))?;
        Ok::<_, anyhow::Error>(Row::compared(name, Unit::Time, pairs).with_target(XDP_LIMIT))
    };
    Ok([
        row("UDP round trip, AF_XDP at both ends, vs sockets", "udp")?,
        row("Ethernet round trip, AF_XDP at both ends, vs sockets", "round-trip")?,
    ])
}

/// Median and 99th percentile, ns.
fn figures(times: &Histogram) -> Result<[f64; 2]> {
    ensure!(times.total() * 10 >= DATAGRAMS * 8, "only {} of {DATAGRAMS} datagrams came back", times.total());
    let percentile = |percent| times.percentile(percent).context("no datagram came back");
    Ok([percentile(50.0)? as f64, percentile(99.0)? as f64])
}

/// The minimal loop: sleep, read the clock, send, wait, read the clock.
fn bare(near_cpu: u32, far_cpu: u32) -> Result<Histogram> {
    let ends = VethPair::create()?;
    let far = ends.far.namespace.run(|| UdpSocket::bind((ends.far.address, PORT)))??;
    let near = ends.near.namespace.run(|| UdpSocket::bind((ends.near.address, 0)))??;
    near.connect((ends.far.address, PORT))?;
    [&near, &far].map(|socket| socket.set_read_timeout(Some(PATIENCE))).into_iter().collect::<Result<(), _>>()?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| answer(&far, far_cpu, &done));
        let result = scope.spawn(|| send_and_wait(&near, near_cpu)).join();
        done.store(true, Relaxed);
        result.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
    })
}

fn answer(socket: &UdpSocket, cpu: u32, done: &AtomicBool) -> Result<()> {
    set_affinity(&[cpu])?;
    set_policy(Policy::Fifo(97))?;
    let mut datagram = [0; BYTES];
    while !done.load(Relaxed) {
        if let Ok((len, from)) = socket.recv_from(&mut datagram) {
            socket.send_to(&datagram[..len], from)?;
        }
    }
    Ok(())
}

fn send_and_wait(socket: &UdpSocket, cpu: u32) -> Result<Histogram> {
    set_affinity(&[cpu])?;
    set_policy(Policy::Fifo(98))?;
    let clock = Clock::Monotonic;
    let sleeper = Sleeper::new(clock, Wait::Nanosleep)?;
    let period_ns = PERIOD_US.cast_signed() * 1000;
    let mut times = Vec::with_capacity(usize::try_from(DATAGRAMS)?);
    let mut datagram = [0; BYTES];
    let mut next_ns = clock.now_ns() + period_ns;
    for _ in 0..DATAGRAMS {
        sleeper.sleep_until(next_ns)?;
        let sent_ns = clock.now_ns();
        socket.send(&datagram)?;
        if socket.recv(&mut datagram).is_ok() {
            times.push(clock.now_ns() - sent_ns);
        }
        while next_ns <= clock.now_ns() {
            next_ns += period_ns;
        }
    }
    let mut histogram = Histogram::default();
    times.into_iter().for_each(|ns| histogram.record(ns));
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_a_median_of_too_few_datagrams() {
        let mut times = Histogram::default();
        times.add(50_000, DATAGRAMS / 2);
        assert!(figures(&times).is_err());
        times.add(50_000, DATAGRAMS / 2);
        assert!(figures(&times).unwrap().iter().all(|ns| (50_000.0..50_100.0).contains(ns)));
    }
}
