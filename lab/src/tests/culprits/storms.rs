//! Storms: long softirq processing, and rapid sequences of interrupts.

use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, UdpSocket},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use record::{CauseKind, Culprit, Evidence, Spike};
use rustix::net::{AddressFamily, SocketAddrV4, SocketType, bind, ipproto, socket, sockopt};
use sys::{clock::Clock, sched::Policy};

use super::{
    delays::{Delay, Dice, Expected, HOLD, Measuring, adds_up, at_irregular_times, judge},
    tally::{Tally, is_right_time},
};

const PORT: u16 = 4_000;
/// Number of sockets that receive each packet to the largest group.
const SOCKETS: usize = 720;
/// The number of multicast groups. The first has a quarter of the sockets, the last has all.
const GROUPS: u8 = 4;

/// The address of group `number`, which is less than [`GROUPS`].
fn group(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(239, 1, 1, 1 + number)
}

/// Sockets that are members of the groups. They are never read; packets beyond their buffers are dropped.
fn members() -> Result<Vec<UdpSocket>> {
    let member = |number| -> Result<UdpSocket> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::UDP))?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // The smallest buffer. It is full after a few packets, so later ones need no more memory.
        sockopt::set_socket_recv_buffer_size(&socket, 0)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT))?;
        let socket = UdpSocket::from(socket);
        for at in (0..GROUPS).skip(number * usize::from(GROUPS) / SOCKETS) {
            socket
                .join_multicast_v4(&group(at), &Ipv4Addr::LOCALHOST)
                .context("cannot join a group on the loopback")?;
        }
        Ok(socket)
    };
    (0..SOCKETS).map(member).collect()
}

/// A storm of network packets on a kernel without PREEMPT_RT, where softirqs delay every thread: each packet is
/// delivered hundreds of times in one softirq.
pub fn of_softirqs() -> Result<()> {
    let members = members()?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    (0..10).try_for_each(|_| sender.send_to(&[0; 64], (group(GROUPS - 1), PORT)).map(|_| ()))?;
    let measuring = Measuring::start("softirq", "--policy fifo:80")?;
    let mut dice = Dice::new();
    let delays = at_irregular_times("sender", Policy::Other, move |_| {
        let to = (group(u8::try_from(dice.roll(0..GROUPS.into()))?), PORT);
        let begin_ns = Clock::Monotonic.now_ns();
        sender.send_to(&[0; 64], to)?;
        Ok(Delay::new(begin_ns, Clock::Monotonic.now_ns()))
    })?;
    let record = measuring.end()?;
    members.iter().try_for_each(arrived)?;
    let is = |culprit: &Culprit| culprit.cause.kind == CauseKind::Softirq && culprit.cause.name == "NET_RX";
    judge(&record, &delays, &Expected { is: &is, timed: true })
}

fn arrived(member: &UdpSocket) -> Result<()> {
    member.set_nonblocking(true)?;
    member.recv(&mut [0; 64]).context("a socket received nothing")?;
    Ok(())
}

/// Interrupts per flood.
const INTERRUPTS: usize = 20;
/// With fewer handlers in a wake-up, it is not a flood.
const FLOOD_MIN: usize = 3;
/// Lead time of the first interrupt, so that all can be scheduled before it, ns.
const AHEAD_NS: i64 = 3_000_000;

/// A flood of interrupts from a named source: the probe is delayed by several handlers, and their sum is reported.
pub fn of_interrupts() -> Result<()> {
    let measuring = Measuring::start("flood", "--policy fifo:80")?;
    fs::read_to_string(HOLD).context("cannot read /dev/hold")?;
    let mut dice = Dice::new();
    let device = fs::OpenOptions::new().write(true).open(HOLD)?;
    let (sender, floods) = std::sync::mpsc::channel();
    // Above normal threads, so that all interrupts are scheduled in time.
    at_irregular_times("holder", Policy::Fifo(70), move |_| {
        let begin_ns = Clock::Monotonic.now_ns();
        flood(&device, &mut dice)?;
        thread::sleep(Duration::from_nanos((AHEAD_NS + 5_000_000) as u64));
        sender.send(log()?)?;
        Ok(Delay::new(begin_ns, Clock::Monotonic.now_ns()))
    })?;
    let floods: Vec<Vec<Delay>> = floods.into_iter().collect();
    let record = measuring.end()?;
    ensure!(record.validity.valid, "not valid: {:?}", record.validity.reasons);
    let series = record.series.first().context("no series")?;
    let mut tally = Tally::default();
    for flood in &floods {
        judge_flood(flood, series.first_deadline_ns, &series.spikes, &mut tally)?;
    }
    println!("  {} spikes in all", series.spikes_total);
    tally.judge(99)
}

/// Schedules interrupts in a row, each shortly after the end of the previous handler.
fn flood(mut device: &fs::File, dice: &mut Dice) -> Result<()> {
    let mut at_ns = Clock::Monotonic.now_ns() + AHEAD_NS;
    for _ in 0..INTERRUPTS {
        let length_ns = dice.roll(50_000..90_000);
        let after_ns = at_ns - Clock::Monotonic.now_ns();
        ensure!(after_ns > 0, "too slow to set {INTERRUPTS} interrupts");
        device.write_all(format!("after {after_ns} hardirq {length_ns}").as_bytes())?;
        at_ns += length_ns + 10_000;
    }
    Ok(())
}

/// The times of the handlers from the module's log.
fn log() -> Result<Vec<Delay>> {
    let log = fs::read_to_string(HOLD)?;
    let handlers = log.lines().map(|line| Delay::of_log(line, "hardirq")).collect::<Result<Vec<_>>>()?;
    ensure!(handlers.len() == INTERRUPTS, "{} interrupts", handlers.len());
    Ok(handlers)
}

/// Checks the longest spike of a flood against its handlers. The probe may wake up in a gap between two handlers.
fn judge_flood(flood: &[Delay], first_deadline_ns: i64, spikes: &[Spike], tally: &mut Tally) -> Result<()> {
    let in_spike = |spike: &Spike| -> Vec<i64> {
        let deadline_ns = first_deadline_ns + spike.at_ns.cast_signed();
        let woke_ns = deadline_ns + spike.lateness_ns;
        let both = |held: &Delay| held.end_ns.min(woke_ns) - held.begin_ns.max(deadline_ns);
        flood.iter().map(both).filter(|&ns| ns > 0).collect()
    };
    let total = |spike: &&Spike| in_spike(spike).iter().sum::<i64>();
    let Some(spike) = spikes.iter().max_by_key(total) else { return Ok(()) };
    let (handlers, true_ns) = (in_spike(spike).len(), total(&spike));
    if handlers < FLOOD_MIN {
        return Ok(());
    }
    adds_up(spike)?;
    let culprit = spike.culprits.first().context("a spike without culprits")?;
    let is = culprit.cause.kind == CauseKind::Interrupt && culprit.cause.name == "hold-source";
    if is && spike.evidence == Evidence::Trace && is_right_time(culprit.ns, true_ns..=true_ns) {
        tally.right();
    } else {
        tally.wrong(format!("{true_ns} ns in {handlers} handlers: {:?} {:?}", spike.evidence, spike.culprits));
    }
    Ok(())
}
