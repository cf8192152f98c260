//! A device that answers ICMP echo requests, and that loses, doubles, swaps, delays and refuses as requested.

use std::{
    collections::BTreeMap,
    fs,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use machine::veth::VethEnd;
use probes::round_trip::packet::{GREETING, HEADER, Packet};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};

/// The fault of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    Lose,
    Double,
    /// The answer is sent after the next one.
    SwapWithNext,
    Delay(Duration),
    /// A message "host unreachable" is sent instead of an answer.
    Refuse,
    /// The answer is sent with other contents.
    Change,
}

/// The number of faults of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    pub lost: u64,
    pub doubled: u64,
    pub reordered: u64,
    pub delayed: u64,
    pub refused: u64,
    pub changed: u64,
}

pub struct Device {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Faults>,
}

impl Device {
    /// Starts the device at one end of a veth pair. The kernel there stops answering.
    pub fn at(end: &VethEnd, fault: impl Fn(u64) -> Fault + Send + 'static) -> Self {
        let open = || {
            fs::write("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1").unwrap();
            let raw =
                socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::ICMP)).unwrap();
            UdpSocket::from(raw)
        };
        let socket = end.namespace.run(open).unwrap();
        socket.set_nonblocking(true).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || run(&socket, &stopped, fault));
        Self { stop, thread }
    }

    /// Ends the device; returns its counts.
    pub fn end(self) -> Faults {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap()
    }
}

fn run(socket: &UdpSocket, stop: &AtomicBool, fault: impl Fn(u64) -> Fault) -> Faults {
    let mut faults = Faults::default();
    let mut buffer = [0; 2000];
    let mut held: Option<Vec<u8>> = None;
    let mut delayed: BTreeMap<Instant, Vec<u8>> = BTreeMap::new();
    let mut to = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    while !stop.load(Relaxed) {
        let received = socket.recv_from(&mut buffer);
        let Ok((len, from)) = received else {
            if let Some(due) = delayed.first_entry().filter(|due| *due.key() <= Instant::now()) {
                socket.send_to(&due.remove(), to).unwrap();
            }
            thread::sleep(Duration::from_micros(50));
            continue;
        };
        to = from;
        let request = &buffer[..len];
        // A header without options, and an echo request.
        if request[20] != 8 {
            continue;
        }
        let sequence = Packet::read(&request[28..]).unwrap().sequence;
        let answer = answer_to(&request[20..]);
        match if sequence == GREETING { Fault::None } else { fault(sequence) } {
            Fault::Lose => faults.lost += 1,
            Fault::Double => {
                (0..2).for_each(|_| assert!(socket.send_to(&answer, from).is_ok()));
                faults.doubled += 1;
            }
            Fault::SwapWithNext if held.is_none() => held = Some(answer),
            Fault::Delay(time) => {
                delayed.insert(Instant::now() + time, answer);
                faults.delayed += 1;
            }
            Fault::Refuse => {
                socket.send_to(&unreachable(request), from).unwrap();
                faults.refused += 1;
            }
            Fault::Change => {
                let mut changed = answer;
                changed[8] = !changed[8];
                with_checksum(&mut changed);
                socket.send_to(&changed, from).unwrap();
                faults.changed += 1;
            }
            Fault::None | Fault::SwapWithNext => {
                socket.send_to(&answer, from).unwrap();
                if let Some(held) = held.take() {
                    socket.send_to(&held, from).unwrap();
                    faults.reordered += 1;
                }
            }
        }
    }
    faults
}

fn answer_to(request: &[u8]) -> Vec<u8> {
    assert!(request.len() >= 8 + HEADER);
    let mut answer = request.to_vec();
    answer[0] = 0;
    with_checksum(&mut answer);
    answer
}

/// "Host unreachable" with the IP packet of the request (RFC 792).
fn unreachable(packet: &[u8]) -> Vec<u8> {
    let mut message = [&[3, 1, 0, 0, 0, 0, 0, 0], packet].concat();
    with_checksum(&mut message);
    message
}

/// Computes the Internet checksum (RFC 1071).
fn with_checksum(message: &mut [u8]) {
    message[2..4].fill(0);
    let words = message.chunks(2).map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |&low| u64::from(low)));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let checksum = !u16::try_from(sum).unwrap();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
}
