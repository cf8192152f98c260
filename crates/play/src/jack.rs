//! Playing with JACK: its server's real-time thread plays, in periods of its length, from and to other clients' ports.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use amp::Player;
use probes::{setup::floor_ns, timer::Grant};
use sys::{
    alloc_guard::without_allocation,
    clock::Clock,
    jack::{Client, Direction, Events, JackError, Period, Process},
    memory, sched, signal,
};
use thiserror::Error;

use crate::{
    engine::EngineError,
    load::{End, Shared},
};

/// How clients see us.
const NAME: &str = "punctual";
/// What the name of a device begins with, and is, where cards are meant.
const PREFIX: &str = "jack";
/// What a server may take for its first period.
const PATIENCE: Duration = Duration::from_secs(5);
/// Stack that a period may need, bytes; touched before it begins.
const STACK_TOUCHED: usize = 64 * 1024;

/// Whom we are connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// The server's card: `jack`.
    Card,
    /// Nobody, so that another program can connect us: `jack:none`.
    Nobody,
    /// A client or a port of this name: `jack:NAME`.
    Named(String),
}

impl Peer {
    /// What the name of a device means, if it is one of JACK's.
    #[must_use]
    pub fn parse(device: &str) -> Option<Self> {
        match device.strip_prefix(PREFIX)? {
            "" => Some(Self::Card),
            ":none" => Some(Self::Nobody),
            named => named.strip_prefix(':').filter(|name| !name.is_empty()).map(|name| Self::Named(name.to_owned())),
        }
    }

    /// Its ports, of all that there are.
    fn among(&self, client: &Client, direction: Direction) -> Result<Vec<String>, PortError> {
        if *self == Self::Nobody {
            return Ok(Vec::new());
        }
        let all = client.ports(direction, *self == Self::Card);
        let ports: Vec<_> = all.iter().filter(|port| self.is_of(port)).cloned().collect();
        match ports.is_empty() {
            true => Err(PortError::None { wanted: self.to_string(), way: way(direction), there: listed(&all) }),
            false => Ok(ports),
        }
    }

    fn is_of(&self, port: &str) -> bool {
        match self {
            Self::Card => true,
            Self::Nobody => false,
            Self::Named(name) => port.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')),
        }
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Card => f.write_str("a card"),
            Self::Nobody => f.write_str("nobody"),
            Self::Named(name) => write!(f, "`{name}`"),
        }
    }
}

fn way(direction: Direction) -> &'static str {
    if direction == Direction::Output { "capture from" } else { "play to" }
}

fn listed(ports: &[String]) -> String {
    if ports.is_empty() { "none".to_owned() } else { ports.join(", ") }
}

/// Why what was asked for cannot be connected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PortError {
    /// The server has something against it.
    #[error(transparent)]
    Jack(#[from] JackError),
    /// There is no such port.
    #[error("JACK has no port of {wanted} to {way}, there are {there}: choose one, as jack:NAME, or jack:none")]
    None {
        /// Whose.
        wanted: String,
        /// What for.
        way: &'static str,
        /// What there is.
        there: String,
    },
    /// There are not so many.
    #[error("JACK has {there} ports of {wanted} to capture from: choose one of them, as --input 1")]
    Few {
        /// How many.
        there: usize,
        /// Whose.
        wanted: String,
    },
}

/// What a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its sample rate, Hz.
    pub rate_hz: u32,
    /// Frames of its periods.
    pub period_frames: u32,
    /// Ports of its card to capture from.
    pub captures: Vec<String>,
    /// Ports of its card to play to.
    pub plays: Vec<String>,
}

/// What the server has that runs.
///
/// # Errors
/// [`JackError`].
pub fn offer() -> Result<Offer, JackError> {
    let client = Client::open(NAME, None)?;
    let ports = |direction| client.ports(direction, true);
    let (captures, plays) = (ports(Direction::Output), ports(Direction::Input));
    Ok(Offer { rate_hz: client.rate_hz(), period_frames: client.period_frames(), captures, plays })
}

/// A client of a server that runs, which knows its ports, and plays nothing yet.
#[derive(Debug)]
pub struct Jack {
    client: Client,
    /// From where to where.
    wires: Vec<(String, String)>,
    cpu: Option<u32>,
}

impl Jack {
    /// Joins the server. Its input is to be connected to the port of `capture` at the place `input`, counted from 0, its outputs to
    /// the first two of `playback`; its thread is to run on `cpu`, or anywhere.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn open(capture: &Peer, playback: &Peer, input: usize, cpu: Option<u32>) -> Result<Self, PortError> {
        let client = Client::open(NAME, None)?;
        let [own_input, left, right] = client.own_ports();
        let sources = capture.among(&client, Direction::Output)?;
        let source = match sources.get(input) {
            None if *capture != Peer::Nobody => {
                return Err(PortError::Few { there: sources.len(), wanted: capture.to_string() });
            }
            source => source.map(|source| (source.clone(), own_input)),
        };
        let sides = [left, right].into_iter().zip(playback.among(&client, Direction::Input)?);
        let wires = source.into_iter().chain(sides).collect();
        Ok(Self { client, wires, cpu })
    }

    /// The server's sample rate, Hz.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        self.client.rate_hz()
    }

    /// Frames of the server's periods.
    #[must_use]
    pub fn period_frames(&self) -> u32 {
        self.client.period_frames()
    }

    /// The CPU that its thread is to run on.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        self.cpu
    }
}

/// A client that plays.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    wires: Vec<(String, String)>,
    go: Arc<AtomicBool>,
}

impl Session {
    /// Begins with silence.
    pub fn prepare(jack: Jack, player: Box<dyn Player>, shared: &Arc<Shared>) -> Result<(Self, Grant), EngineError> {
        let Jack { mut client, wires, cpu } = jack;
        let go = Arc::new(AtomicBool::new(false));
        let (tell_grant, granted) = mpsc::channel();
        let rate_hz = client.rate_hz();
        let begin = Begin { cpu, floor_ns: floor_ns(Clock::Monotonic), tell_grant };
        let work = Work { player, shared: shared.clone(), go: go.clone(), rate_hz, begin: Some(begin) };
        client.activate(Box::new(work), Arc::new(Seen { shared: shared.clone(), rate_hz }))?;
        let grant = granted.recv_timeout(PATIENCE).map_err(|_| EngineError::Halted)?.map_err(EngineError::Grant)?;
        Ok((Self { client, wires, go }, grant))
    }

    /// Plays, and is connected.
    pub fn begin(&self) -> Result<(), JackError> {
        self.go.store(true, Relaxed);
        self.wires.iter().try_for_each(|(from, to)| self.client.connect(from, to))
    }

    /// Frames from a card's input to its output.
    pub fn latency_frames(&self) -> u32 {
        self.client.latency_frames()
    }

    pub fn told(&self) -> String {
        let (frames, rate_hz) = (self.client.period_frames(), self.client.rate_hz());
        format!("JACK, periods of {frames} frames at {rate_hz} Hz")
    }
}

/// What is done before the first period.
struct Begin {
    cpu: Option<u32>,
    floor_ns: u64,
    tell_grant: mpsc::Sender<io::Result<Grant>>,
}

impl Begin {
    /// On the server's thread, while nobody hears us.
    fn run(self) {
        let _ = self.tell_grant.send(self.set_up());
    }

    fn set_up(&self) -> io::Result<Grant> {
        signal::block_termination_here()?;
        let pin_refused = self.cpu.and_then(|cpu| sched::set_affinity(&[cpu]).err());
        memory::touch_stack::<STACK_TOUCHED>();
        Ok(Grant {
            thread_id: sched::thread_id(),
            policy: sched::policy()?,
            cpus: sched::affinity()?,
            timer_slack_ns: sched::timer_slack_ns(),
            policy_refused: None,
            pin_refused: pin_refused.map(|error| error.kind()),
            floor_ns: self.floor_ns,
            evl_level: None,
        })
    }
}

/// What the server's thread does.
struct Work {
    player: Box<dyn Player>,
    shared: Arc<Shared>,
    go: Arc<AtomicBool>,
    rate_hz: u32,
    begin: Option<Begin>,
}

impl Process for Work {
    fn period(&mut self, period: &mut Period<'_>) {
        if let Some(begin) = self.begin.take() {
            begin.run();
        }
        if !self.go.load(Relaxed) || self.shared.end().is_some() {
            return period.play(|_, left, right| {
                left.fill(0.0);
                right.fill(0.0);
            });
        }
        let began_ns = Clock::Monotonic.now_ns();
        without_allocation(|| period.play(|input, left, right| self.player.play(input, left, right)));
        let work_ns = (Clock::Monotonic.now_ns() - began_ns).max(0) as u64;
        self.shared.note(work_ns, period.frames() as u64 * 1_000_000_000 / u64::from(self.rate_hz.max(1)));
    }
}

/// What the server tells.
struct Seen {
    shared: Arc<Shared>,
    rate_hz: u32,
}

impl Events for Seen {
    fn xrun(&self) {
        self.shared.note_xrun();
    }

    fn rate(&self, rate_hz: u32) {
        if rate_hz != self.rate_hz {
            self.shared.set_end(End::Rate(rate_hz));
        }
    }

    fn ended(&self) {
        self.shared.set_end(End::Server);
    }

    fn panicked(&self) {
        self.shared.set_end(End::Broken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_name_whom_we_are_connected_to() {
        let named = |name: &str| Some(Peer::Named(name.to_owned()));
        for (device, peer) in [
            ("jack", Some(Peer::Card)),
            ("jack:none", Some(Peer::Nobody)),
            ("jack:guitarix", named("guitarix")),
            ("jack:system:capture_2", named("system:capture_2")),
            ("jack:", None),
            ("jackpot", None),
            ("hw:0", None),
        ] {
            assert_eq!(Peer::parse(device), peer, "{device}");
        }
    }

    #[test]
    fn a_name_is_that_of_a_client_or_of_a_port() {
        let is_of = |name: &str, port| Peer::Named(name.to_owned()).is_of(port);
        assert!(is_of("amp", "amp:out") && is_of("amp:out", "amp:out"));
        assert!(!is_of("amp", "ampere:out") && !is_of("amp:out", "amp:out_2") && !is_of("out", "amp:out"));
        assert!(Peer::Card.is_of("system:capture_1") && !Peer::Nobody.is_of("system:capture_1"));
    }
}
