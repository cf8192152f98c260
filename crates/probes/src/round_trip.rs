//! Round trips on a fixed schedule: UDP datagrams, answered by a [peer](Echo) that does nothing else, ICMP echo
//! requests, answered by the network stack of any device, or Ethernet frames, sent back by a mirror.
//!
//! A timer's thread sends one datagram at each deadline; another thread receives the answers. The round trip starts at
//! the time at which the datagram *should* have been sent, so that the sender's own lateness is included. The schedule
//! continues even without answers.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | the settings of the probe |
//! | [`packet`] | the format of the datagrams |
//! | [`carrier`] | the protocols that carry them |
//! | [`headers`] | UDP and IP headers of frames that bypass the network stack |
//! | [`port`] | the sockets of the near end |
//! | [`window`] | the datagrams in flight |
//! | `sender` | the work of the sending thread at each deadline |
//! | `receiver` | the receiving thread |
//! | [`trip`] | the parts of one round trip |
//! | `shared` | data shared by the threads and the reader |
//! | `reader` | the series of the record |
//! | `directions` | delay variation in each direction |
//! | [`echo`] | the answering end |
//! | `clients` | the traffic classes of a run |
//! | `watch` | keeps both ends from using their CPUs without sleeping |

pub mod carrier;
mod clients;
mod directions;
pub mod echo;
pub mod headers;
pub mod packet;
pub mod port;
mod reader;
mod receiver;
mod sender;
mod settings;
mod shared;
pub mod trip;
mod watch;
pub mod window;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::Ordering::Relaxed, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use record::{Caveat, Reason, Series, counted};
use sys::udp::{DatagramSocket, IcmpError};

use crate::{
    guard::Heartbeat,
    probe_threads::{Overdue, ThreadInfo, Work},
    setup::{Grant, STACK_BYTES},
};
pub use carrier::{Carrier, Frames};
pub use clients::Clients;
pub use echo::{Echo, EchoCounts, EchoSettings, Requests};
pub use headers::UdpPath;
use port::SendPort;
pub use port::{Port, XdpPort};
use reader::Reader;
pub use settings::{Class, Settings};
use shared::Shared;

/// The remedy if answers came after the time-out.
pub const LONGER_TIMEOUT: &str = "use a longer --timeout, or leave it out: it is then 10 periods, and at least 1 s";
/// Longest wait of the receiving thread before it checks whether to end.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(50);
/// Time without any answer after which the peer counts as silent.
const SILENCE: Duration = Duration::from_secs(3);

/// Without an answer in at least this time and number of slots before the end, the peer is gone.
const GONE_NS: u64 = 1_000_000_000;
const GONE_SLOTS: u64 = 3;

/// An error that prevents measuring round trips.
#[derive(Debug, thiserror::Error)]
pub enum RoundTripError {
    /// No socket, or no route to the peer.
    #[error("cannot send to {peer}: {source}; see `{remedy}`")]
    Connect {
        /// The peer.
        peer: String,
        /// The command that shows the cause.
        remedy: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The answering end cannot have this address.
    #[error("cannot bind {address}: {source}; choose another address or port with --bind")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the kernel.
        source: io::Error,
    },
    /// No socket for ICMP echo requests.
    #[error(
        "cannot open a socket for ICMP echo requests: {0}; run as root, or let users open it with `sudo sysctl \
         net.ipv4.ping_group_range='0 2147483647'`"
    )]
    Ping(io::Error),
    /// Each machine of a group would receive every request.
    #[error("{0} is a group address, at which several machines would receive every request: name one machine")]
    Group(IpAddr),
    /// The frames would be for this machine, which does not receive them.
    #[error("this is the address of {0} itself: name the address that `punctual mirror` shows on the other machine")]
    OwnAddress(String),
    /// The interface has no carrier: the kernel would accept frames and drop them.
    #[error(
        "{0} has no carrier, so no frame can leave it: plug in its cable, and switch on the device at the other end"
    )]
    NoCarrier(String),
    /// The interface has no Ethernet address.
    #[error("{0} is not an Ethernet interface: choose a wired one; `ip link` lists them")]
    NotEthernet(String),
    /// No socket for Ethernet frames.
    #[error("cannot open a socket for frames on {interface}: {source}; {remedy}")]
    Frames {
        /// The interface.
        interface: String,
        /// The error of the kernel.
        source: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
    /// The kernel refused a setting of the socket.
    #[error("the kernel refused {setting}: {source}; {remedy}")]
    Refused {
        /// The refused setting of the socket.
        setting: &'static str,
        /// The remedy.
        remedy: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The payload does not fit into one frame.
    #[error("{requested} bytes do not fit into one frame to {peer}: use --size {most} or less, or --allow-fragments")]
    TooLarge {
        /// The peer.
        peer: String,
        /// The requested payload, bytes.
        requested: usize,
        /// The largest that fits, bytes.
        most: usize,
    },
    /// No thread can be created.
    #[error("cannot start the receiving thread: {0}; close other programs")]
    Spawn(io::Error),
}

/// The near end of the round trips of one traffic class: the work of a timer's thread, and the receiving thread.
struct Client {
    settings: Settings,
    /// The half of the sending thread, until it takes it.
    port: Option<SendPort>,
    /// The kernel's socket; `None` for AF_XDP.
    socket: Option<Arc<DatagramSocket>>,
    run: u32,
    shared: Arc<Shared>,
    reader: Reader,
    grant: Grant,
    thread: Option<JoinHandle<()>>,
    made: Instant,
}

impl Client {
    /// Configures the socket, greets the peer, and starts the receiving thread.
    ///
    /// # Errors
    /// [`RoundTripError`]. A peer that does not answer is not an error, because it may start later.
    fn prepare(port: Port, run: u32, settings: Settings) -> Result<Self, RoundTripError> {
        let (transport, notes) = port.to_record();
        let settings = Settings { transport, notes, ..settings };
        let (mut send, mut receive) = port.split();
        let socket = send.socket().cloned();
        if let Some(socket) = &socket {
            settings.apply(socket, run)?;
        }
        settings.greet(&mut send, &mut receive, run)?;
        if let Some(socket) = &socket {
            let refused = |setting, remedy| move |source| RoundTripError::Refused { setting, remedy, source };
            socket.set_receive_timeout(RECEIVE_TIMEOUT).map_err(refused("a receive timeout", "see `dmesg`"))?;
            socket.set_stamps(settings.stamps).map_err(refused("timestamps of datagrams", "use --stamps none"))?;
        }
        let (shared, events, queue) = shared::channel(&settings);
        let reader = Reader::new(queue, &settings);
        let heartbeat = Heartbeat::start().map_err(RoundTripError::Spawn)?;
        let (grant_sender, grant_receiver) = mpsc::channel();
        let (thread_settings, thread_shared) = (settings.clone(), Arc::clone(&shared));
        let receive = move || {
            receiver::run(&thread_settings, &mut receive, run, thread_shared, events, &heartbeat, &grant_sender);
        };
        let thread = std::thread::Builder::new()
            .name("receiver".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(receive)
            .map_err(RoundTripError::Spawn)?;
        let granted = grant_receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::Unsupported.into()));
        let grant = granted.map_err(RoundTripError::Spawn)?;
        let thread = Some(thread);
        Ok(Self { settings, port: Some(send), socket, run, shared, reader, grant, thread, made: Instant::now() })
    }

    /// The last ICMP error, in words.
    fn icmp_error(&self) -> Option<String> {
        let number = self.shared.receiving.icmp_error.load(Relaxed);
        (number != 0).then(|| IcmpError::from_number(number).to_string())
    }

    /// The reason why a device answered no echo request.
    fn silent_device(&self, peer: IpAddr) -> Reason {
        let error = self.shared.sending.error.load(Relaxed);
        let refused = (error != 0).then(|| io::Error::from_raw_os_error(error).to_string());
        let why = self.icmp_error().or(refused).map_or_else(String::new, |why| format!(": {why}"));
        let foreign = self.shared.receiving.foreign.load(Relaxed);
        let changed = if foreign > 0 {
            format!("; it sent {} with other contents than the requests", counted(foreign, "reply"))
        } else {
            String::new()
        };
        Reason {
            id: "ping.silent".to_owned(),
            text: format!("no answer from {peer}{why}: it is down, or ICMP echo requests are blocked{changed}"),
            remedy: format!("ping -c 5 {peer}; ip neigh show {peer}"),
        }
    }

    /// The reason if all answers came after the time-out.
    fn all_late(&self) -> Option<Reason> {
        let late = self.shared.receiving.late.load(Relaxed);
        (late > 0).then(|| Reason {
            id: "answers.late".to_owned(),
            text: format!("{} from {} came after the time-out", counted(late, "answer"), self.settings.carrier),
            remedy: LONGER_TIMEOUT.to_owned(),
        })
    }

    /// True if nothing has been received for too long.
    fn is_silent(&self) -> bool {
        let ended = self.thread.is_none();
        self.shared.receiving.answered.load(Relaxed) == 0 && (ended || self.made.elapsed() > SILENCE)
    }

    /// The work of the sending thread, once.
    fn work(&mut self) -> Option<Box<dyn Work>> {
        let port = self.port.take()?;
        Some(Box::new(sender::Sender {
            port,
            shared: Arc::clone(&self.shared),
            clock: self.settings.clock,
            period_ns: self.settings.period_ns.cast_signed(),
            run: self.run,
            class: self.settings.class.number,
            message: vec![0; self.settings.carrier.headroom() + self.settings.payload_bytes].into(),
            carrier: self.settings.carrier,
            numbered: 0,
        }))
    }

    /// The receiving thread.
    fn thread_info(&self) -> ThreadInfo<'_> {
        let Settings { class, policy, .. } = &self.settings;
        ThreadInfo { place: class.receiver(), policy: *policy, grant: &self.grant, at_end: self.shared.at_end.get() }
    }

    fn collect(&mut self) {
        let Settings { threshold_ns, clock, .. } = self.settings;
        self.reader.collect(&self.shared, threshold_ns, clock.now_ns());
    }

    /// Time until each datagram in flight is answered or lost.
    fn longest_flight(&self) -> Duration {
        Duration::from_nanos(self.settings.timeout_ns) + 4 * RECEIVE_TIMEOUT
    }

    fn is_settled(&self) -> bool {
        self.reader.is_settled(&self.shared)
    }

    /// Ends the receiving thread, which [`Shared::stop`] has stopped.
    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Its counters are valid even if it panicked.
            let _ = thread.join();
        }
    }

    /// The reason in words why the answers ended before the run.
    fn gone(&self) -> Option<String> {
        let silence_ns = self.reader.silence_ns(&self.shared)?;
        if silence_ns < GONE_NS.max(GONE_SLOTS * self.settings.period_ns) {
            return None;
        }
        let error = self.shared.sending.error.load(Relaxed);
        let why = match self.shared.receiving.refused.load(Relaxed) {
            _ if error != 0 => io::Error::from_raw_os_error(error).to_string(),
            0 if self.settings.carrier.is_icmp() => {
                self.icmp_error().unwrap_or_else(|| "it or the path to it is down".to_owned())
            }
            0 => "it has ended, or the path to it is down".to_owned(),
            _ => "no program listens on that port any more".to_owned(),
        };
        let seconds = silence_ns as f64 / 1e9;
        Some(format!("no answer came from {} in the last {seconds:.1} s: {why}", self.settings.carrier))
    }

    fn count_overdue(&mut self, overdue: Overdue) {
        self.reader.overdue_slots = overdue.at_ns / self.settings.period_ns + overdue.deadlines;
    }

    fn series(&self, phase: &str) -> Series {
        self.reader.series(
            phase,
            &self.settings,
            &self.grant,
            &self.shared,
            self.socket.as_ref().is_some_and(|socket| socket.is_polled()),
        )
    }

    /// The reason why a program answered no datagram.
    fn silent_echo(&self, peer: SocketAddr) -> Reason {
        let refused = self.shared.receiving.refused.load(Relaxed) > 0;
        let failed = self.shared.sending.sent.load(Relaxed) == 0;
        let error = self.shared.sending.error.load(Relaxed);
        let foreign = self.shared.receiving.foreign.load(Relaxed);
        if foreign > 0 {
            let text = format!(
                "no answer from {peer}, but {} that answer nothing of this run: probably another program has that port, or \
                 another version of punctual",
                counted(foreign, "datagram")
            );
            let remedy =
                format!("start `punctual echo` of this version on {} with another port, and name it", peer.ip());
            return Reason { id: "udp.foreign".to_owned(), text, remedy };
        }
        let why = match (failed, refused) {
            (true, _) if error != 0 => format!(": {}", io::Error::from_raw_os_error(error)),
            (_, true) => ": no program listens on that port".to_owned(),
            _ => String::new(),
        };
        Reason {
            id: "udp.silent".to_owned(),
            text: format!("no answer from {peer}{why}: start `punctual echo` there"),
            remedy: format!("punctual echo --bind 0.0.0.0:{}   # on {}", peer.port(), peer.ip()),
        }
    }

    /// Caveats about the peer.
    fn caveats(&self) -> Vec<Caveat> {
        let caveat = |text: String| Caveat { kind: "peer".to_owned(), text };
        let receiving = &self.shared.receiving;
        let restarts = receiving.restarts.load(Relaxed);
        let has = receiving.echo_has.load(Relaxed);
        let mut caveats = Vec::new();
        if restarts > 0 {
            caveats.push(caveat(format!("the peer restarted {} during the run", counted(restarts, "time"))));
        }
        if receiving.echo.load(Relaxed) != 0 && has & packet::REALTIME == 0 {
            let text = "the peer answered without a real-time policy: its wake-ups are included in the figures; start `punctual echo` as root there";
            caveats.push(caveat(text.to_owned()));
        }
        caveats
    }
}
