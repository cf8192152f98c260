//! A relay between both ends that disturbs responses on request and counts the faults.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use probes::round_trip::packet::{GREETING, Packet};

/// The fault of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    Lose,
    Double,
    /// The response is forwarded after the next one.
    SwapWithNext,
    Delay(Duration),
}

/// The number of faults of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults {
    pub lost: u64,
    pub lost_in_a_row: u64,
    pub doubled: u64,
    pub reordered: u64,
    pub delayed: u64,
    /// The real delay of each delayed response, by sequence number.
    pub held: BTreeMap<u64, Duration>,
}

pub struct Relay {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Faults>,
}

impl Relay {
    pub fn to(peer: SocketAddr, fault: impl Fn(u64) -> Fault + Send + 'static) -> Self {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.connect(peer).unwrap();
        let address = near.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || run(&near, &far, &stopped, fault));
        Self { address, stop, thread }
    }

    /// Ends the relay; returns its counts.
    pub fn end(self) -> Faults {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap()
    }
}

/// A response that waits for its time.
struct Delayed {
    sequence: u64,
    received: Instant,
    datagram: Vec<u8>,
}

fn run(near: &UdpSocket, far: &UdpSocket, stop: &AtomicBool, fault: impl Fn(u64) -> Fault) -> Faults {
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    let (mut buffer, mut client) = ([0; 2000], None);
    let mut faults = Faults::default();
    let mut lost = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut held: Option<Vec<u8>> = None;
    let mut delayed: BTreeMap<Instant, Delayed> = BTreeMap::new();
    while !stop.load(Relaxed) {
        let mut idle = true;
        if let Ok((len, from)) = near.recv_from(&mut buffer) {
            idle = false;
            client = Some(from);
            let _ = far.send(&buffer[..len]);
        }
        let pass = |datagram: &[u8]| drop(near.send_to(datagram, client.unwrap()));
        if let Ok(len) = far.recv(&mut buffer) {
            idle = false;
            let datagram = &buffer[..len];
            let sequence = Packet::read(datagram).unwrap().sequence;
            seen.insert(sequence);
            match if sequence == GREETING { Fault::None } else { fault(sequence) } {
                Fault::Lose => drop(lost.insert(sequence)),
                Fault::Double => {
                    pass(datagram);
                    pass(datagram);
                    faults.doubled += 1;
                }
                Fault::SwapWithNext if held.is_none() => held = Some(datagram.to_vec()),
                Fault::Delay(time) => {
                    let received = Instant::now();
                    delayed.insert(received + time, Delayed { sequence, received, datagram: datagram.to_vec() });
                    faults.delayed += 1;
                }
                Fault::None | Fault::SwapWithNext => {
                    pass(datagram);
                    if let Some(held) = held.take() {
                        pass(&held);
                        faults.reordered += 1;
                    }
                }
            }
        }
        while let Some(due) = delayed.first_entry().filter(|due| *due.key() <= Instant::now()) {
            let Delayed { sequence, received, datagram } = due.remove();
            // Before the response is sent, so that it cannot be longer than the delay that the client sees.
            faults.held.insert(sequence, received.elapsed());
            pass(&datagram);
        }
        if idle {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    faults.lost = lost.len() as u64;
    // In the order of sequence numbers. A number that was not sent neither ends a row nor lengthens it.
    let mut row = 0;
    for sequence in &seen {
        row = if lost.contains(sequence) { row + 1 } else { 0 };
        faults.lost_in_a_row = faults.lost_in_a_row.max(row);
    }
    faults
}
