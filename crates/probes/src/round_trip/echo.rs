//! The answering end: returns each datagram of the probe with the times at which its kernel and its thread received it,
//! and the time of the answer.
//!
//! It answers neither other datagrams nor answers, so that two echoes cannot answer each other endlessly. An answer is
//! exactly as long as the datagram.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use sys::{
    alloc_guard::without_allocation,
    clock::Clock,
    packet::Poll,
    sched::{self, Policy},
    udp::{DatagramSocket, MAX_PAYLOAD, Received, Sender, Stamps},
};

use super::{
    carrier::{ETHERNET_HEADER, TAG, TAG_TYPE, write_header},
    headers::{Datagram, answer_in_place, exchange},
    packet::{GREETING, LOCKED, Packet, REALTIME, XDP},
    port::{Port, PortKind},
    watch::Watch,
};
use crate::{
    guard::Heartbeat,
    probe_threads::ThreadInfo,
    realtime::Realtime,
    setup::{Grant, STACK_BYTES, floor_ns, set_up},
    timer::shared::add,
};

/// Longest wait of the thread before it checks whether to end.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(50);

/// The settings of an answering thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoSettings {
    /// CPU to pin the thread to; `None` for any CPU.
    pub cpu: Option<u32>,
    /// Scheduling policy.
    pub policy: Policy,
}

/// The requests of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requests {
    /// UDP datagrams. An answer goes to the sender.
    Datagrams,
    /// Ethernet frames to this address with one of these EtherTypes. An answer is the frame with exchanged addresses and
    /// the same VLAN tag. The priority of the tag selects the traffic class of the answer.
    Frames {
        /// Address of the interface.
        own: [u8; 6],
        /// The EtherTypes.
        ethertypes: Vec<u16>,
    },
}

impl Requests {
    /// The packet of a received message and the bytes before it; `None` for a message of another program. Messages of
    /// AF_XDP are whole frames.
    #[inline]
    fn read(&self, message: &[u8], from: PortKind) -> Option<(Packet, usize)> {
        let before = match self {
            Self::Datagrams if from == PortKind::Xdp => {
                // As below.
                let datagram = Datagram::read(message).filter(|_| message[6] & 1 == 0)?;
                return read_request(datagram.payload).map(|packet| (packet, datagram.payload_at));
            }
            Self::Datagrams => 0,
            Self::Frames { own, ethertypes } => {
                let (addresses, rest) = message.split_first_chunk::<12>()?;
                // A socket removes the VLAN tag, AF_XDP does not.
                let tag = if rest.starts_with(&TAG_TYPE.to_be_bytes()) { TAG } else { 0 };
                let ethertype = u16::from_be_bytes(*rest.get(tag..)?.first_chunk()?);
                // A source that is a group address would send the answer to many.
                let is_ours = addresses[..6] == *own && addresses[6] & 1 == 0 && ethertypes.contains(&ethertype);
                is_ours.then_some(ETHERNET_HEADER + tag)?
            }
        };
        read_request(message.get(before..)?).map(|packet| (packet, before))
    }
}

#[inline]
fn read_request(bytes: &[u8]) -> Option<Packet> {
    Packet::read(bytes).filter(|packet| !packet.is_answer)
}

/// An answering thread.
#[derive(Debug)]
pub struct Echo {
    settings: EchoSettings,
    grant: Grant,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The counts of an answering thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EchoCounts {
    /// Answered datagrams, including greetings.
    pub answered: u64,
    /// Answered greetings, which are not slots.
    pub greetings: u64,
    /// Datagrams of other programs, which were not answered.
    pub strangers: u64,
    /// Answers that the kernel refused to send.
    pub failed: u64,
    /// Number of runs, which are distinguished by their numbers.
    pub runs: u64,
    /// Pauses that the guard imposed on the thread.
    pub pauses: u64,
    /// Number of the last answered run; 0 without one.
    pub run: u32,
}

/// Counters that only the thread writes, and flags that it reads.
#[derive(Debug, Default)]
struct Shared {
    answered: AtomicU64,
    greetings: AtomicU64,
    strangers: AtomicU64,
    failed: AtomicU64,
    runs: AtomicU64,
    pauses: AtomicU64,
    run: AtomicU32,
    locked: AtomicBool,
    realtime: AtomicBool,
    stop: AtomicBool,
}

impl Echo {
    /// Starts the thread, which answers on `port` at once. A refused setting of the thread is not an error:
    /// [`grant`](Self::grant) contains it.
    ///
    /// # Errors
    /// If no thread can be created, or the kernel refuses timestamps of received datagrams.
    pub fn start(mut port: Port, requests: Requests, settings: EchoSettings) -> io::Result<Self> {
        if let Port::Socket(socket) = &port {
            socket.set_receive_timeout(RECEIVE_TIMEOUT)?;
            socket.set_stamps(Stamps::Receive)?;
        }
        let heartbeat = Heartbeat::start()?;
        let shared = Arc::new(Shared::default());
        let (grant_sender, grant_receiver) = mpsc::channel();
        let of_thread = Arc::clone(&shared);
        let run = move || run(settings, &mut port, &requests, &of_thread, &heartbeat, &grant_sender);
        let thread = std::thread::Builder::new().name("echo".to_owned()).stack_size(STACK_BYTES).spawn(run)?;
        let grant = grant_receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::Unsupported.into()))?;
        Ok(Self { settings, grant, shared, thread: Some(thread) })
    }

    /// The settings that the kernel granted.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The thread with its requested policy.
    #[must_use]
    pub fn thread_info(&self) -> ThreadInfo<'_> {
        // Its owner checks it before the thread is stopped.
        ThreadInfo { place: "echo".to_owned(), policy: self.settings.policy, grant: &self.grant, at_end: None }
    }

    /// Sets whether the memory of the process is locked; answers contain this.
    pub fn set_memory_locked(&self, locked: bool) {
        self.shared.locked.store(locked, Relaxed);
    }

    /// Sets whether the thread is real-time, after its policy has changed; answers contain this.
    pub fn set_realtime(&self, realtime: bool) {
        self.shared.realtime.store(realtime, Relaxed);
    }

    /// The present policy of the thread. Without an answer of the kernel, it is that at the start.
    #[must_use]
    pub fn policy(&self) -> Policy {
        sched::policy_of(self.grant.thread_id).unwrap_or(self.grant.policy)
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> EchoCounts {
        EchoCounts {
            answered: self.shared.answered.load(Relaxed),
            greetings: self.shared.greetings.load(Relaxed),
            strangers: self.shared.strangers.load(Relaxed),
            failed: self.shared.failed.load(Relaxed),
            runs: self.shared.runs.load(Relaxed),
            pauses: self.shared.pauses.load(Relaxed),
            run: self.shared.run.load(Relaxed),
        }
    }

    /// Ends the thread and returns its counts.
    pub fn stop(&mut self) -> EchoCounts {
        self.shared.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its counters are valid even if it panicked.
            let _ = thread.join();
        }
        self.counts()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(
    settings: EchoSettings,
    port: &mut Port,
    requests: &Requests,
    shared: &Shared,
    heartbeat: &Heartbeat,
    grant_sender: &mpsc::Sender<io::Result<Grant>>,
) {
    let granted = set_up(settings.cpu, settings.policy, || floor_ns(Clock::Monotonic));
    shared.realtime.store(granted.as_ref().is_ok_and(|grant| grant.policy.is_realtime()), Relaxed);
    // The other side waits for this message, so sending cannot fail.
    let _ = grant_sender.send(granted);
    // Never 0, because the near end uses 0 for "no answer yet".
    #[expect(clippy::cast_possible_truncation, reason = "any 32 bits of the hash serve as a random number")]
    let echo = RandomState::new().hash_one(sched::thread_id()) as u32 | 1;
    let realtime = Realtime::to(Clock::Monotonic);
    let message = vec![0; TAG + MAX_PAYLOAD].into();
    let mut answering = Answering { shared, echo, requests, realtime, priority: 0, runs: KnownRuns::new(), message };
    let mut watch = Watch::new(Clock::Monotonic);
    without_allocation(|| {
        while !shared.stop.load(Relaxed) {
            answering.answer_one(port);
            add(&shared.pauses, u64::from(watch.check(heartbeat)));
        }
    });
}

/// Number of runs that are remembered.
const RUNS_KNOWN: usize = 64;

/// The numbers of the last runs, the latest first. Several runs can be answered at the same time.
#[derive(Debug)]
struct KnownRuns {
    runs: [u32; RUNS_KNOWN],
    count: usize,
}

impl KnownRuns {
    fn new() -> Self {
        Self { runs: [0; RUNS_KNOWN], count: 0 }
    }

    /// Makes this run the latest. Returns true for a run that is not known.
    #[inline]
    fn is_new(&mut self, run: u32) -> bool {
        let known = self.runs.iter().take(self.count).position(|known| *known == run);
        let place = known.unwrap_or(self.count.min(RUNS_KNOWN - 1));
        self.runs[..=place].rotate_right(1);
        self.runs[0] = run;
        if known.is_none() {
            self.count = place + 1;
        }
        known.is_none()
    }
}

struct Answering<'a> {
    shared: &'a Shared,
    echo: u32,
    requests: &'a Requests,
    realtime: Realtime,
    /// Priority that was last requested for the socket.
    priority: u8,
    runs: KnownRuns,
    /// The message after the space for a VLAN tag.
    message: Box<[u8]>,
}

impl Answering<'_> {
    #[inline]
    fn answer_one(&mut self, port: &mut Port) {
        let mut requester = Sender::default();
        let Some(buffer) = self.message.get_mut(TAG..) else { return };
        let received = match receive(port, buffer, &mut requester) {
            Ok(Some(received)) => received,
            Ok(None) => return,
            // Errors caused by earlier answers do not matter here.
            Err(_) => return add(&self.shared.failed, 1),
        };
        let received_ns = Clock::Monotonic.now_ns();
        let from = port.kind();
        let request = buffer.get(..received.len).and_then(|message| self.requests.read(message, from));
        let Some((packet, before)) = request else { return add(&self.shared.strangers, 1) };
        self.shared.run.store(packet.run, Relaxed);
        add(&self.shared.runs, u64::from(self.runs.is_new(packet.run)));
        let locked = if self.shared.locked.load(Relaxed) { LOCKED } else { 0 };
        let realtime = if self.shared.realtime.load(Relaxed) { REALTIME } else { 0 };
        let has = locked | realtime | if from == PortKind::Xdp { XDP } else { 0 };
        let kernel_ns = received.stamp_ns.and_then(|stamp_ns| self.realtime.converted(stamp_ns, received_ns));
        let answered_ns = Clock::Monotonic.now_ns();
        let answer = Packet { is_answer: true, has, echo: self.echo, kernel_ns, received_ns, answered_ns, ..packet };
        answer.write(self.message.get_mut(TAG + before..).unwrap_or_default());
        let sent = self.send(port, &requester, received);
        add(&self.shared.greetings, u64::from(sent.is_ok() && packet.sequence == GREETING));
        add(if sent.is_ok() { &self.shared.answered } else { &self.shared.failed }, 1);
    }

    /// Sends the answer in `message`, as long as the request.
    #[inline]
    fn send(&mut self, port: &mut Port, requester: &Sender, received: Received) -> io::Result<()> {
        let Some(message) = self.message.get_mut(..TAG + received.len) else { return Ok(()) };
        let socket = match port {
            Port::Socket(socket) => socket,
            Port::Xdp(port) => {
                let Some(frame) = message.get_mut(TAG..) else { return Ok(()) };
                match self.requests {
                    Requests::Datagrams => answer_in_place(frame),
                    Requests::Frames { .. } => exchange(frame, 0, 6),
                }
                return port.sender.send(frame);
            }
        };
        match self.requests {
            Requests::Datagrams => socket.answer(message.get(TAG..).unwrap_or_default(), requester),
            Requests::Frames { own, .. } => {
                let begin = if received.tci.is_some() { 0 } else { TAG };
                let header = message.get(TAG..).and_then(|frame| frame.first_chunk::<ETHERNET_HEADER>().copied());
                let (Some(header), Some(frame)) = (header, message.get_mut(begin..)) else { return Ok(()) };
                let [_, _, _, _, _, _, asking @ .., high, low] = header;
                write_header(frame, asking, *own, u16::from_be_bytes([high, low]), received.tci);
                set_priority(&mut self.priority, socket, received.tci);
                socket.send(frame)
            }
        }
    }
}

/// Receives a message, for at most 50 ms; the requester is known for sockets only.
#[inline]
fn receive(port: &mut Port, buffer: &mut [u8], requester: &mut Sender) -> io::Result<Option<Received>> {
    match port {
        Port::Socket(socket) => socket.receive(buffer, requester, true),
        Port::Xdp(port) => {
            let frame = port.receiver.receive(buffer, Poll::Sleep)?;
            Ok(frame.map(|frame| Received { len: frame.length, stamp_ns: None, card_ns: None, tci: frame.tci }))
        }
    }
}

/// Sets the priority of the socket to that of the VLAN tag, if it is not the `latest` one. Without the right to a priority
/// above 6, it stays.
#[inline]
fn set_priority(latest: &mut u8, socket: &DatagramSocket, tci: Option<u16>) {
    let [high, _] = tci.unwrap_or(0).to_be_bytes();
    let priority = high >> 5;
    if priority != *latest {
        let _ = socket.set_priority(priority);
        // A refusal is not asked for again with each frame.
        *latest = priority;
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::round_trip::packet::HEADER;

    fn echo() -> (Echo, UdpSocket) {
        let socket = DatagramSocket::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = socket.local_address().unwrap();
        let echo =
            Echo::start(Port::Socket(socket), Requests::Datagrams, EchoSettings { cpu: None, policy: Policy::Other })
                .unwrap();
        let requester = UdpSocket::bind("127.0.0.1:0").unwrap();
        requester.connect(address).unwrap();
        requester.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (echo, requester)
    }

    fn request(sequence: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![7; len];
        Packet { run: 42, sequence, intended_ns: 1, sent_ns: 2, ..Packet::default() }.write(&mut bytes);
        bytes
    }

    #[test]
    fn answers_have_the_same_length_and_the_times_of_the_peer() {
        let (mut echo, requester) = echo();
        // The kernel enables timestamping with a delay.
        std::thread::sleep(Duration::from_millis(50));
        let (mut buffer, mut stamped) = ([0; 2000], 0);
        for len in [HEADER, 100, 1472] {
            requester.send(&request(9, len)).unwrap();
            assert_eq!(requester.recv(&mut buffer).unwrap(), len);
            let answer = Packet::read(&buffer).unwrap();
            assert!(answer.is_answer && answer.echo != 0 && answer.received_ns <= answer.answered_ns);
            assert_eq!((answer.run, answer.sequence, answer.sent_ns, answer.has), (42, 9, 2, 0));
            stamped += u32::from(answer.kernel_ns.is_some_and(|kernel_ns| kernel_ns < answer.received_ns));
            assert!(buffer[HEADER..len].iter().all(|&byte| byte == 7));
        }
        assert_eq!(stamped, 3, "each datagram was received by the kernel before the thread");
        let counts = echo.stop();
        assert_eq!((counts.answered, counts.strangers, counts.runs, counts.run), (3, 0, 1, 42));
    }

    #[test]
    fn runs_that_alternate_count_once_each() {
        let mut known = KnownRuns::new();
        let news = (0..1_000).filter(|n| known.is_new(n % 2)).count();
        assert_eq!((news, known.is_new(0), known.is_new(7)), (2, false, true));
        // A run that goes on is remembered among many short ones.
        let many = (100..300).filter(|&run| known.is_new(run) && !known.is_new(7)).count();
        assert_eq!((many, known.is_new(299), known.is_new(100)), (200, false, true));
    }

    #[test]
    fn reads_only_frames_to_its_own_address() {
        let own = [2, 0, 0, 0, 0, 2];
        let requests = Requests::Frames { own, ethertypes: vec![0x8892, 0x88b5] };
        let mut frame = [&own[..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb5], &request(9, HEADER)].concat();
        assert_eq!(
            requests.read(&frame, PortKind::Socket).map(|(packet, before)| (packet.sequence, before)),
            Some((9, 14))
        );
        // Another destination, a group address as source, another EtherType, and an answer.
        for (at, by) in [(5, 1), (6, 1), (13, 1), (14 + 5, 3)] {
            frame[at] ^= by;
            assert_eq!(requests.read(&frame, PortKind::Socket), None, "{at}");
            frame[at] ^= by;
        }
        assert_eq!(requests.read(&frame[..13], PortKind::Socket), None);
    }

    #[test]
    fn does_not_answer_strangers_and_answers() {
        let (mut echo, requester) = echo();
        let mut answer = request(1, HEADER);
        answer[5] = 2;
        let mut newer = request(1, HEADER);
        newer[4] = 9;
        let strangers: [&[u8]; 6] = [b"", b"hello", &[0; 1400], &request(1, HEADER)[..HEADER - 1], &answer, &newer];
        strangers.iter().for_each(|stranger| assert!(requester.send(stranger).is_ok()));
        requester.send(&request(GREETING, HEADER)).unwrap();
        let mut buffer = [0; 2000];
        requester.recv(&mut buffer).unwrap();
        assert_eq!(Packet::read(&buffer).unwrap().sequence, GREETING, "the first answer");
        requester.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!(requester.recv(&mut buffer).is_err(), "there is no other answer");
        let counts = echo.stop();
        assert_eq!((counts.answered, counts.greetings, counts.strangers), (1, 1, 6));
    }
}
