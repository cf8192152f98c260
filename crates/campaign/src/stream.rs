//! Streams: a talker that is a timer with work to do, a listener beside it, on an interface or between two namespaces.

mod interface;
pub mod offset;
mod receiver;
mod sender;
mod xdp;

use std::io;

use frames::{Class, Format, Mac, ethernet};
use machine::{
    CpuList, Root, Shield,
    ends::{End, Ends, EndsError},
    nic::{LaunchError, Launching, NicSettings},
};
use probes::stream::{
    Stream,
    elsewhere::Elsewhere,
    listener::{Listener, ListenerSettings},
    talker::{Talk, Talker, TalkerSettings},
    tracker::Expected,
    transmit::{Transmit, TransmitMode},
};
use record::ClockTie;
use rustix::io::Errno;
use sys::{qdisc, sched::Policy};

use crate::{PhasePlan, Plan, RunError, shielded::on_its_side};
use interface::Interface;
pub use offset::WakeupOffset;
use receiver::Opened;
use sender::Sender;
pub use xdp::{ListenXdp, XdpRefusal};

/// A stream that a run sends, receives, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPlan {
    /// The interface; `None` for both ends in network namespaces of their own, joined by a virtual cable.
    pub interface: Option<String>,
    /// Reservation class: priority, VLAN, samples a frame, transit time.
    pub class: Class,
    /// How samples are packed.
    pub format: Format,
    /// The talker, where this run has one. Its policy is [`Plan::policy`].
    pub talk: Option<TalkPlan>,
    /// The listener, where this run has one. Its policy is [`Plan::policy`].
    pub listen: Option<ListenPlan>,
    /// The queue of the interface that AF_XDP sends and receives on.
    pub queue: u32,
    /// What the interface is set to for the run.
    pub nic: NicSettings,
}

/// A talker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TalkPlan {
    /// CPU it is pinned to; one of [`Plan::cpus`].
    pub cpu: u32,
    /// How long before its slot it wakes; at most the period, or [`OFFSET_PERCENT`] of it where it spins until its slot under
    /// a real-time policy.
    pub offset: WakeupOffset,
    /// How frames go out.
    pub mode: TransmitMode,
    /// Tells its stream from others of the same address.
    pub unique_id: u16,
}

/// A listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenPlan {
    /// CPU it is pinned to; one of [`Plan::cpus`].
    pub cpu: u32,
    /// Which stream to follow; `None` for the first that is found.
    pub stream_id: Option<u64>,
    /// How it waits for frames.
    pub wait: ListenWait,
    /// How it has AF_XDP; `None` for a socket of the network stack. Busy polling is of the socket alone.
    pub xdp: Option<ListenXdp>,
    /// The talker, where it is on another machine that tells us of it: the listener ends with it.
    pub talker: Option<Elsewhere>,
}

/// How a listener waits for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListenWait {
    /// It sleeps until one comes.
    #[default]
    Blocking,
    /// It asks again and again.
    Spin,
    /// It sleeps, after the kernel has asked the driver for so long, ns.
    BusyPoll(u64),
}

/// The part of the period, per cent, that a real-time talker may wake before its slot: the rest it must sleep.
pub const OFFSET_PERCENT: u64 = 95;

/// The part of a link, per cent, that streams may take: IEEE Std 802.1Q leaves the rest to others.
const LINK_PERCENT: u64 = 75;

/// How long before its slot the discipline of an own cable lets a frame go, ns.
const OWN_DELTA_NS: u32 = 50_000;

/// Why a stream cannot be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The name is nobody's.
    #[error("there is no interface {0}: see `ip link`, or use --self to try it without one")]
    NoSuchInterface(String),
    /// Radio has no slots.
    #[error("{0} is wireless, and a stream needs a cable: name a wired interface, see `ip link`")]
    Wireless(String),
    /// Not Ethernet.
    #[error("{0} is no Ethernet interface: name a wired one (see `ip link`), or use --self to stay on this machine")]
    NotEthernet(String),
    /// It is down.
    #[error("{0} is down: sudo ip link set {0} up")]
    Down(String),
    /// The frames are too long for it.
    #[error("{interface} takes {mtu} bytes, and a frame carries {needed}: sudo ip link set {interface} mtu 1500")]
    Mtu {
        /// The interface.
        interface: String,
        /// What it takes, bytes.
        mtu: u64,
        /// What a frame carries, bytes.
        needed: u64,
    },
    /// The stream would take more of the link than it may.
    #[error(
        "the stream needs {needed_kbit} kbit/s, and streams may take {LINK_PERCENT} % of the {link_mbit} Mbit/s of {interface}: use a longer --period, or a faster link"
    )]
    Bandwidth {
        /// The interface.
        interface: String,
        /// What the stream needs, kbit/s.
        needed_kbit: u64,
        /// What the link has, Mbit/s.
        link_mbit: u64,
    },
    /// No right to raw frames.
    #[error(
        "raw frames need the right CAP_NET_RAW: start as root, or `sudo setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep \"$(command -v punctual)\"`"
    )]
    NoRight,
    /// The two namespaces could not be made.
    #[error(transparent)]
    Ends(#[from] EndsError),
    /// AF_XDP was asked for, and cannot be had.
    #[error(transparent)]
    Xdp(#[from] XdpRefusal),
    /// Launch times take another right.
    #[error(
        "launch times need the rights CAP_NET_RAW and CAP_NET_ADMIN: start as root, or `sudo setcap cap_net_admin,cap_net_raw,cap_sys_nice,cap_ipc_lock+ep \"$(command -v punctual)\"`"
    )]
    NoRightToTimes,
    /// The interface does not keep frames until their launch times.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Nor can an own one.
    #[error(
        "the virtual cable of --self cannot keep frames until their launch times ({0}): load the ETF discipline with `sudo modprobe sch_etf`, or build a kernel with CONFIG_NET_SCH_ETF"
    )]
    NoEtf(io::Error),
    /// The kernel answered with another error.
    #[error("cannot open a socket for frames on {interface} ({source}): see `ip -details link show {interface}`")]
    Socket {
        /// The interface.
        interface: String,
        /// What the kernel answered.
        source: io::Error,
    },
}

impl StreamPlan {
    /// Checks the interface, where one was named: without this nothing is sent on it.
    ///
    /// # Errors
    /// [`StreamError`].
    pub fn check(&self, root: &Root, period_ns: u64) -> Result<(), StreamError> {
        let Some(interface) = &self.interface else { return Ok(()) };
        let found = Interface::read(root, interface)?;
        if self.talk.is_none() {
            return Ok(());
        }
        if self.has_launch_times() {
            Launching::of(root, interface, self.class.tci().pcp)?;
        }
        found.carries(self.class.frame_bytes(self.format), period_ns)
    }

    /// The number that tells the stream from all others; `None` without a talker on an interface.
    ///
    /// # Errors
    /// [`StreamError`], where the interface can carry no stream.
    pub fn stream_id(&self, root: &Root) -> Result<Option<u64>, StreamError> {
        let Some((interface, talk)) = self.interface.as_deref().zip(self.talk.as_ref()) else { return Ok(None) };
        Ok(Some(frames::stream_id(Interface::read(root, interface)?.mac, talk.unique_id)))
    }

    /// Opens the sockets and makes the listener, which receives from now on.
    pub(crate) fn prepare(
        &self,
        plan: &Plan,
        phase: &PhasePlan,
        root: &Root,
        shield: Option<&Shield>,
    ) -> Result<Stream, RunError> {
        let places = Places::of(self.interface.as_deref(), root)?;
        let listener =
            self.listen.as_ref().map(|listen| self.listener(listen, plan, phase, &places, shield)).transpose()?;
        let talker = self.talk.as_ref().map(|talk| self.talker(talk, plan, phase, root, &places)).transpose()?;
        Ok(Stream::new(talker, listener, places))
    }

    fn listener(
        &self,
        listen: &ListenPlan,
        plan: &Plan,
        phase: &PhasePlan,
        places: &Places,
        shield: Option<&Shield>,
    ) -> Result<Listener, RunError> {
        let Opened { receiver, from, notes } = places.receiver(listen, self.queue)?;
        let settings =
            ListenerSettings { from, notes, ..self.listener_settings(listen, plan, phase, places.far_interface()) };
        Ok(on_its_side(shield, Some(listen.cpu), || Listener::start(&settings, receiver))??)
    }

    fn talker(
        &self,
        talk: &TalkPlan,
        plan: &Plan,
        phase: &PhasePlan,
        root: &Root,
        places: &Places,
    ) -> Result<(Talker, Talk<Box<dyn Transmit>>), StreamError> {
        let source = places.mac();
        let stream = frames::Stream {
            source,
            destination: ethernet::multicast_of(source, talk.unique_id),
            tci: self.class.tci(),
            stream_id: frames::stream_id(source, talk.unique_id),
            format: self.format,
            samples: self.class.samples(),
        };
        let settings = TalkerSettings {
            stream,
            run: run_number(plan),
            interface: places.near_interface().to_owned(),
            mode: talk.mode,
            own_listener: self.listen.is_some(),
            period_ns: phase.period_ns,
            offset_ns: talk.offset.ns(),
            transit_ns: self.class.max_transit_ns(),
            clock: plan.clock,
        };
        let (sender, aftermath) = places.sender(talk.mode, root, self.class.tci().pcp, self.queue)?;
        let (talker, talk) = Talker::new(&settings, sender);
        Ok((talker.with_aftermath(aftermath), talk))
    }

    fn listener_settings(&self, listen: &ListenPlan, plan: &Plan, phase: &PhasePlan, on: &str) -> ListenerSettings {
        let mode = match listen.wait {
            ListenWait::Blocking => "blocking",
            ListenWait::Spin => "spin",
            ListenWait::BusyPoll(_) => "busy-poll",
        };
        ListenerSettings {
            expected: Expected {
                stream_id: listen.stream_id,
                period_ns: phase.period_ns,
                transit_ns: self.class.max_transit_ns(),
                tie: match &listen.talker {
                    Some(talker) => talker.tie,
                    None if self.talk.is_some() => ClockTie::SameHost,
                    None => ClockTie::None,
                },
                whole: self.talk.is_some() || listen.talker.is_some(),
            },
            interface: on.to_owned(),
            mode: mode.to_owned(),
            from: String::new(),
            notes: Vec::new(),
            spin: listen.wait == ListenWait::Spin,
            cpu: Some(listen.cpu),
            policy: plan.policy,
            clock: plan.clock,
            talker: listen.talker.clone(),
        }
    }

    /// Whether frames have launch times.
    pub(crate) fn has_launch_times(&self) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.mode == TransmitMode::Txtime)
    }

    /// Whether the talker wakes within the period before its slot, and sleeps in each where it must.
    pub(crate) fn offset_fits(&self, policy: Policy, period_ns: u64) -> bool {
        let keeps_slots = self.talk.as_ref().is_some_and(|talk| talk.mode.keeps_slots());
        let percent = if policy.is_realtime() && !keeps_slots { OFFSET_PERCENT } else { 100 };
        let most_ns = u128::from(period_ns) * u128::from(percent) / 100;
        u128::from(self.offset_ns()) <= most_ns
    }

    /// How long before its slot the talker wakes, ns; 0 without one, and while it is not known yet.
    fn offset_ns(&self) -> u64 {
        self.talk.as_ref().map_or(0, |talk| talk.offset.ns())
    }

    /// What is to be explained where nothing else is asked for, ns: a wake-up too late for its slot; without an offset, all
    /// above 100 us.
    pub(crate) fn threshold_at(&self, period_ns: u64) -> u64 {
        match self.offset_ns() {
            0 => period_ns.min(100_000),
            offset_ns => offset_ns + (period_ns / 100).max(1_000),
        }
    }
}

/// The CPU of a listener at the other end of a virtual cable: the last other than the talker's where there is one.
#[must_use]
pub fn listen_cpu(usable: &CpuList, talk_cpu: u32) -> u32 {
    usable.iter().rfind(|&cpu| cpu != talk_cpu).unwrap_or(talk_cpu)
}

/// A number that two runs seldom share.
fn run_number(plan: &Plan) -> u32 {
    let now_ns = plan.clock.now_ns().unsigned_abs();
    (now_ns ^ now_ns >> 32) as u32 ^ std::process::id().rotate_left(16)
}

/// Where frames go out and come in.
enum Places {
    Interface(Interface),
    Ends(Box<Ends>),
}

impl Places {
    fn of(interface: Option<&str>, root: &Root) -> Result<Self, StreamError> {
        Ok(match interface {
            Some(interface) => Self::Interface(Interface::read(root, interface)?),
            None => Self::Ends(Box::new(Ends::make()?)),
        })
    }

    fn near_interface(&self) -> &str {
        match self {
            Self::Interface(interface) => &interface.name,
            Self::Ends(ends) => &ends.near.interface,
        }
    }

    fn far_interface(&self) -> &str {
        match self {
            Self::Interface(interface) => &interface.name,
            Self::Ends(ends) => &ends.far.interface,
        }
    }

    fn mac(&self) -> Mac {
        match self {
            Self::Interface(interface) => interface.mac,
            Self::Ends(ends) => ends.near.mac,
        }
    }

    fn sender(&self, mode: TransmitMode, root: &Root, priority: u8, queue: u32) -> Result<Sender, StreamError> {
        match self {
            Self::Interface(interface) => sender::open(mode, root, &interface.name, priority, queue),
            Self::Ends(ends) => inside(&ends.near, |interface| {
                if mode == TransmitMode::Txtime {
                    qdisc::keep_launch_times(ends.near.index, OWN_DELTA_NS).map_err(StreamError::NoEtf)?;
                }
                sender::open(mode, root, interface, priority, queue)
            }),
        }
    }

    fn receiver(&self, listen: &ListenPlan, queue: u32) -> Result<Opened, StreamError> {
        let open = |interface: &str| receiver::open(listen, queue, interface);
        match self {
            Self::Interface(interface) => open(&interface.name),
            Self::Ends(ends) => inside(&ends.far, open),
        }
    }
}

/// Opens a socket inside a namespace; it stays there.
fn inside<S: Send>(end: &End, open: impl FnOnce(&str) -> Result<S, StreamError> + Send) -> Result<S, StreamError> {
    end.namespace.run(|| open(&end.interface)).map_err(|error| socket(&end.interface, error))?
}

fn socket(interface: &str, error: io::Error) -> StreamError {
    let interface = interface.to_owned();
    match Errno::from_io_error(&error) {
        Some(Errno::PERM | Errno::ACCESS) => StreamError::NoRight,
        Some(Errno::NODEV | Errno::NXIO) => StreamError::NoSuchInterface(interface),
        Some(Errno::NETDOWN) => StreamError::Down(interface),
        None if error.kind() == io::ErrorKind::InvalidInput => StreamError::NotEthernet(interface),
        _ => StreamError::Socket { interface, source: error },
    }
}
