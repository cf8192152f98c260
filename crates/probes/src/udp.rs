//! The UDP probe: round trips on a fixed schedule, answered by a [peer](Echo) that does nothing else.
//!
//! A timer's thread sends one datagram at each of its deadlines; another takes the answers. The round trip is counted from
//! when the datagram was *to be* sent, so that a sender that is late itself hides nothing. Whatever becomes of answers, the
//! schedule goes on.
//!
//! | module | holds |
//! |---|---|
//! | `settings` | what is asked for |
//! | [`packet`] | the datagram |
//! | [`window`] | the datagrams that are under way |
//! | `sender` | what the sending thread does at each deadline |
//! | `receiver` | the receiving thread |
//! | [`realtime`] | the clock of the kernel's stamps beside ours |
//! | [`trip`] | where the time of one round trip went |
//! | `shared` | what the threads and the reader both see |
//! | `reader` | turns that into the series of a record |
//! | `ways` | how delays vary on each way |
//! | [`echo`] | the answering end |
//! | `watch` | keeps both from holding their CPUs |

pub mod echo;
pub mod packet;
mod reader;
pub mod realtime;
mod receiver;
mod sender;
mod settings;
mod shared;
pub mod trip;
mod watch;
mod ways;
pub mod window;

use std::{
    hash::{BuildHasher, RandomState},
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use record::{Caveat, Reason, Series};
use sys::udp::DatagramSocket;

use crate::{
    companion::{Companion, Member},
    guard::Heartbeat,
    setup::STACK_BYTES,
    timer::{Grant, Work},
};
pub use echo::{Echo, EchoCounts, EchoSettings};
use reader::Reader;
pub use settings::Settings;
use shared::Shared;

/// How long the receiving thread waits before it looks whether it is to end.
const PATIENCE: Duration = Duration::from_millis(50);
/// Without an answer for so long, the peer is said to be silent.
const SILENCE: Duration = Duration::from_secs(3);

/// Why round trips cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum UdpError {
    /// No socket, or no way to the peer.
    #[error("cannot send to {peer}: {source}; see `ip route get {}`", peer.ip())]
    Connect {
        /// The peer.
        peer: SocketAddr,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The socket cannot be set as asked.
    #[error("the kernel refused {what}: {source}")]
    Refused {
        /// What was asked for, and how to do without.
        what: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The payload needs more than one frame.
    #[error(
        "{asked} bytes do not fit into one frame on the way to {peer}: use --size {most} or less, or --allow-fragments"
    )]
    TooLarge {
        /// The peer.
        peer: SocketAddr,
        /// The payload asked for, bytes.
        asked: usize,
        /// The largest that fits, bytes.
        most: usize,
    },
    /// The system has no room for a thread.
    #[error("cannot start the receiving thread: {0}; close other programs")]
    Spawn(io::Error),
}

/// The asking end: what the timer's thread sends, and the thread that takes the answers.
pub struct Client {
    settings: Settings,
    socket: Arc<DatagramSocket>,
    run: u32,
    shared: Arc<Shared>,
    reader: Reader,
    grant: Grant,
    thread: Option<JoinHandle<()>>,
    /// The peer, where it is ours.
    echo: Option<Echo>,
    made: Instant,
}

impl Client {
    /// Sets the socket up, greets the peer, and makes the receiving thread. `echo` is the peer, where it is ours.
    ///
    /// # Errors
    /// [`UdpError`]; a peer that does not answer is none, since it may begin to.
    pub fn prepare(socket: DatagramSocket, echo: Option<Echo>, settings: Settings) -> Result<Self, UdpError> {
        let run = RandomState::new().hash_one(settings.peer) as u32;
        settings.apply(&socket)?;
        settings.greet(&socket, run)?;
        let refused = |what| move |source| UdpError::Refused { what, source };
        socket.set_receive_timeout(PATIENCE).map_err(refused("a timeout"))?;
        socket
            .set_stamps(settings.stamps)
            .map_err(refused("stamps of datagrams; leave them out with --stamps none"))?;
        let socket = Arc::new(socket);
        let (shared, events, reader) = shared::channel(&settings);
        let heartbeat = Heartbeat::start().map_err(UdpError::Spawn)?;
        let (tell_grant, told_grant) = mpsc::channel();
        let (asked, receiving, of_thread) = (settings.clone(), Arc::clone(&socket), Arc::clone(&shared));
        let receive = move || receiver::run(&asked, &receiving, run, of_thread, events, &heartbeat, &tell_grant);
        let thread = std::thread::Builder::new()
            .name("receiver".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(receive)
            .map_err(UdpError::Spawn)?;
        let granted = told_grant.recv().unwrap_or_else(|_| Err(io::ErrorKind::Unsupported.into()));
        let grant = granted.map_err(UdpError::Spawn)?;
        let thread = Some(thread);
        Ok(Self { settings, socket, run, shared, reader, grant, thread, echo, made: Instant::now() })
    }

    /// Whether nothing has come back for too long.
    fn is_silent(&self) -> bool {
        let ended = self.thread.is_none();
        self.shared.receiving.answered.load(Relaxed) == 0 && (ended || self.made.elapsed() > SILENCE)
    }
}

impl Companion for Client {
    fn work(&mut self, _index: usize) -> Option<Box<dyn Work>> {
        Some(Box::new(sender::Sender {
            socket: Arc::clone(&self.socket),
            shared: Arc::clone(&self.shared),
            clock: self.settings.clock,
            period_ns: self.settings.period_ns as i64,
            run: self.run,
            payload: vec![0; self.settings.payload_bytes].into(),
            numbered: 0,
        }))
    }

    fn members(&self) -> Vec<Member<'_>> {
        let receiver = Member { place: "receiver".to_owned(), policy: self.settings.policy, grant: &self.grant };
        [receiver].into_iter().chain(self.echo.iter().map(Echo::member)).collect()
    }

    fn collect(&mut self) {
        let Settings { threshold_ns, clock, .. } = self.settings;
        self.reader.collect(&self.shared, threshold_ns, clock.now_ns());
    }

    fn finish(&mut self) {
        let patience = Duration::from_nanos(self.settings.timeout_ns) + 4 * PATIENCE;
        let began = Instant::now();
        while !self.reader.is_settled(&self.shared) && began.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(2));
            self.collect();
        }
        // What comes twice has had its time, too.
        std::thread::sleep(PATIENCE);
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            // Its counters are there even if it panicked.
            let _ = thread.join();
        }
    }

    fn series(&self, phase: &str) -> Vec<Series> {
        vec![self.reader.series(phase, &self.settings, &self.grant, &self.shared, self.socket.is_polled())]
    }

    fn reasons(&self) -> Vec<Reason> {
        if !self.is_silent() {
            return Vec::new();
        }
        let peer = self.settings.peer;
        let refused = self.shared.receiving.refused.load(Relaxed) > 0;
        let failed = self.shared.sending.sent.load(Relaxed) == 0;
        let error = self.shared.sending.error.load(Relaxed);
        let why = match (failed, refused) {
            (true, _) if error != 0 => format!(": {}", io::Error::from_raw_os_error(error)),
            (_, true) => ": nothing listens on that port".to_owned(),
            _ => String::new(),
        };
        vec![Reason {
            id: "udp.silent".to_owned(),
            text: format!("no answer from {peer}{why}: start `punctual echo` there"),
            remedy: format!("punctual echo --bind 0.0.0.0:{}   # on {}", peer.port(), peer.ip()),
        }]
    }

    fn caveats(&self) -> Vec<Caveat> {
        let caveat = |text: String| Caveat { kind: "peer".to_owned(), text };
        let receiving = &self.shared.receiving;
        let restarts = receiving.restarts.load(Relaxed);
        let has = receiving.echo_has.load(Relaxed);
        let mut caveats = Vec::new();
        if restarts > 0 {
            caveats.push(caveat(format!("the peer was started anew {restarts} times during the run")));
        }
        if receiving.answered.load(Relaxed) > 0 && has & packet::REALTIME == 0 {
            let text = "the peer answered without a real-time policy: its wake-ups stand in the figures; start `punctual echo` as root there";
            caveats.push(caveat(text.to_owned()));
        }
        caveats
    }
}
