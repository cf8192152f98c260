//! Packets: a UDP flood over loopback, or raw frames on an interface that the user names.

use std::{
    io,
    net::{Ipv4Addr, UdpSocket},
    time::{Duration, Instant},
};

use machine::{CpuList, Root};
use rustix::io::Errno;
use sys::packet::{FrameSender, MIN_PAYLOAD};

use super::kind::{Job, Kind, LoadKind, Plan};
use crate::{
    LoadError, SpecError,
    meter::Meter,
    options::{Options, join, number, text},
};

/// Packets that are sent before they are received; they fit into the smallest usual receive buffer.
const BURST: usize = 32;
const DATAGRAM: usize = 512;

/// Packets on loopback or on one interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Net {
    /// Interface for raw frames; `None` for loopback.
    pub interface: Option<String>,
    /// Frames per second of all threads together.
    pub rate: Option<u64>,
}

impl LoadKind for Net {
    const KIND: Kind = Kind {
        name: "net",
        description: "UDP flood on loopback, or frames on a named Ethernet interface",
        options: &[
            ("if=NAME", "send raw frames (EtherType 0x88B5) on this interface instead of loopback"),
            ("rate=N", "frames per second of all CPUs together, 1 to 1000000, with `if` (default 10000)"),
        ],
    };

    fn parse(options: &str) -> Result<Self, SpecError> {
        let mut options = Options::new(Self::KIND.name, options);
        let interface = options.value("if", text)?;
        let rate = options.value("rate", number(1..=1_000_000))?;
        match (&interface, rate) {
            (None, Some(rate)) => Err(SpecError::Invalid(format!(
                "load `net` limits the rate on a named interface only: use net:if=NAME,rate={rate}, or plain net for \
                 loopback"
            ))),
            _ => options.finish(Self { interface, rate }),
        }
    }

    fn options(&self) -> String {
        join([self.interface.as_ref().map(|name| format!("if={name}")), self.rate.map(|rate| format!("rate={rate}"))])
    }

    fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError> {
        match &self.interface {
            None => loopback(cpus),
            Some(interface) => frames(interface, self.rate, cpus),
        }
    }

    /// Frames on an interface are sent at a limited rate.
    fn is_busy(&self) -> bool {
        self.interface.is_none()
    }

    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)> {
        let frames = Self { interface: Some("veth0".into()), rate: Some(10_000) };
        vec![("", Self { interface: None, rate: None }), ("if=veth0,rate=10000", frames)]
    }

    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::{option, prelude::*};

        let options = ("[a-z0-9.@]{1,14}[a-z]", option::of(1u64..=1_000_000));
        options.prop_map(|(name, rate)| Self { interface: Some(name), rate }).boxed()
    }
}

/// One thread per CPU that sends to itself over loopback as fast as it can.
fn loopback(cpus: &CpuList) -> Result<Plan, LoadError> {
    let jobs = cpus.iter().map(|cpu| {
        let socket = own_socket().map_err(|error| failed(&loopback_reason(&error)))?;
        Ok(Job::on(cpu, move |meter| flood(&socket, meter).map_err(|error| failed(&loopback_reason(&error)))))
    });
    Ok(Plan::new("packets received on loopback", jobs.collect::<Result<_, LoadError>>()?))
}

/// A socket connected to itself, which has already received one packet.
fn own_socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(socket.local_addr()?)?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    socket.send(&[0; DATAGRAM])?;
    socket.recv(&mut [0; DATAGRAM])?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn flood(socket: &UdpSocket, meter: &Meter) -> io::Result<()> {
    let mut packet = [0; DATAGRAM];
    while meter.running() {
        for _ in 0..BURST {
            unless_full(socket.send(&packet).map(|_| ()))?;
        }
        while unless_full(socket.recv(&mut packet).map(|_| ()))? {
            meter.add(1);
        }
    }
    Ok(())
}

/// True if the call succeeded, false if the queue was full or empty, which is not an error.
fn unless_full(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::AGAIN | Errno::NOBUFS | Errno::INTR)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn loopback_reason(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::NETUNREACH | Errno::ADDRNOTAVAIL) => "loopback is down; `sudo ip link set lo up`".to_owned(),
        Some(Errno::AGAIN) => "packets to 127.0.0.1 do not arrive; see `sudo nft list ruleset`".to_owned(),
        _ => format!("127.0.0.1: {error}; see `ip address show lo`"),
    }
}

/// IEEE 802 Local Experimental EtherType 1: no device interprets such frames.
const ETHERTYPE: u16 = 0x88b5;
/// A locally administered unicast address, which no device has.
const DESTINATION: [u8; 6] = [0x02, b'P', b'U', b'N', b'C', b'T'];
const DEFAULT_RATE: u64 = 10_000;
/// Time between two bursts of frames.
const TICK: Duration = Duration::from_millis(1);

/// One thread per CPU that sends frames of the smallest size at its share of `rate` frames per second.
fn frames(interface: &str, rate: Option<u64>, cpus: &CpuList) -> Result<Plan, LoadError> {
    let sysfs = |file: &str| Root::system().exists(&format!("sys/class/net/{interface}/{file}"));
    if sysfs("wireless") || sysfs("phy80211") {
        return Err(failed(&format!("{interface} is wireless; name a wired interface, see `ip link`")));
    }
    let rate = Rate { frames_per_s: rate.unwrap_or(DEFAULT_RATE), threads: cpus.len() as u64 };
    let explain = |error: &io::Error, interface: &str| failed(&frame_reason(error, interface));
    let jobs = cpus.iter().map(|cpu| {
        let sender =
            FrameSender::open(interface, ETHERTYPE, DESTINATION).map_err(|error| explain(&error, interface))?;
        sender.send(&payload()).map_err(|error| explain(&error, interface))?;
        let interface = interface.to_owned();
        Ok(Job::on(cpu, move |meter| send_at(rate, &sender, meter).map_err(|error| explain(&error, &interface))))
    });
    Ok(Plan::new("frames sent", jobs.collect::<Result<_, LoadError>>()?))
}

/// Names the sender for anyone who captures the frames.
fn payload() -> [u8; MIN_PAYLOAD] {
    let mut payload = [0; MIN_PAYLOAD];
    let text = b"punctual --load net";
    payload[..text.len()].copy_from_slice(text);
    payload
}

/// The share of a rate that each of several threads has.
#[derive(Clone, Copy)]
struct Rate {
    frames_per_s: u64,
    threads: u64,
}

impl Rate {
    /// Whole frames that one thread sends in `time`.
    fn frames_in(self, time: Duration) -> u64 {
        let (frames, parts) = self.fraction(time);
        u64::try_from(frames / parts).unwrap_or(u64::MAX)
    }

    /// Like [`frames_in`](Self::frames_in), but rounded up.
    fn frames_in_at_most(self, time: Duration) -> u64 {
        let (frames, parts) = self.fraction(time);
        u64::try_from(frames.div_ceil(parts)).unwrap_or(u64::MAX)
    }

    /// Numerator and denominator of the frames that one thread sends in `time`.
    fn fraction(self, time: Duration) -> (u128, u128) {
        (time.as_nanos() * u128::from(self.frames_per_s), u128::from(self.threads) * 1_000_000_000)
    }
}

/// Sends `rate` frames per second. Drops what the queue does not accept; catches up on at most two ticks.
fn send_at(rate: Rate, sender: &FrameSender, meter: &Meter) -> io::Result<()> {
    let (payload, began) = (payload(), Instant::now());
    let most = rate.frames_in_at_most(2 * TICK);
    let mut passed = 0;
    while meter.running() {
        let due = rate.frames_in(began.elapsed());
        for _ in 0..(due - passed).min(most) {
            if !unless_full(sender.send(&payload))? {
                break;
            }
            meter.add(1);
        }
        passed = due;
        meter.pause(TICK);
    }
    Ok(())
}

fn frame_reason(error: &io::Error, interface: &str) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            let program = std::env::current_exe().unwrap_or_else(|_| "punctual".into());
            let program = program.display();
            format!(
                "raw frames need CAP_NET_RAW; start as root, or `sudo setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep \
                 {program}`"
            )
        }
        Some(Errno::NODEV | Errno::NXIO) => format!("there is no interface {interface}; see `ip link`"),
        Some(Errno::NETDOWN) => format!("{interface} is down; `sudo ip link set {interface} up`"),
        None if error.kind() == io::ErrorKind::InvalidInput => {
            format!(
                "{interface} is not Ethernet; name a wired interface (see `ip link`), or leave `if` out for loopback"
            )
        }
        _ => format!("{interface}: {error}; see `ip link`"),
    }
}

fn failed(reason: &str) -> LoadError {
    LoadError::Failed { load: Net::KIND.name, reason: format!("cannot send: {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_unicast_and_locally_administered() {
        assert_eq!(DESTINATION[0] & 0b11, 0b10);
    }

    #[test]
    fn errors_name_a_remedy() {
        for (error, expected) in [
            (Errno::PERM, "setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep"),
            (Errno::NODEV, "there is no interface eth9"),
            (Errno::NETDOWN, "ip link set eth9 up"),
        ] {
            let reason = frame_reason(&error.into(), "eth9");
            assert!(reason.contains(expected), "{reason}");
        }
        assert!(loopback_reason(&Errno::NETUNREACH.into()).contains("ip link set lo up"));
    }
}
