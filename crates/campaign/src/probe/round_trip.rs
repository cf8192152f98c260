//! Round trips: a timer thread sends, another thread receives, and a peer answers: a program of ours (UDP), the network
//! stack of a device (ICMP echo), or a mirror (Ethernet frames).

mod address;
mod xdp;

use std::{
    collections::HashSet,
    io,
    net::SocketAddr,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use frames::Mac;
use machine::{CpuList, Shield, nic::outgoing_interface, veth::VethPair};
use probes::{
    ReceiveWait,
    probe_threads::ProbeThreads,
    round_trip::{
        Carrier, Class, Clients, Echo, EchoSettings, Frames, Port, Requests, RoundTripError, Settings, packet::HEADER,
    },
};
use rustix::io::Errno;
use sys::{
    link::Links,
    sched::Policy,
    udp::{DatagramSocket, MAX_PAYLOAD, ONE_FRAME, Stamps},
};

pub use address::{
    Address, AddressError, Host, MacAddress, UDP_PORT, parse_ethertype, parse_machine, parse_own_ethertype,
};

use super::{
    check::PlanError,
    definition::{
        Definition, Network, PhaseContext, PlacementContext, PlacementRule, PrepareError, Properties, RunShape,
        ThreadPlan, Timing, with_shield,
    },
    stream::link::stays_without_carrier,
    timer::GUARD_REMEDIES,
};
pub use xdp::Xdp;

/// Longest timeout, ns: one minute.
pub const TIMEOUT_MAX_NS: u64 = 60_000_000_000;
/// Payload of a datagram, bytes; above [`ONE_FRAME`] only in fragments.
pub const PAYLOAD_BYTES: RangeInclusive<usize> = HEADER..=MAX_PAYLOAD;
/// Largest payload of an Ethernet frame, bytes (IEEE 802.3).
pub const ETHERNET_PAYLOAD: usize = 1500;
/// Default policy of an answering thread.
pub const ECHO_POLICY: Policy = Policy::Fifo(97);

/// Most datagrams a second to a program of ours, unless the user chooses another limit.
pub const MAX_RATE: u64 = 100_000;
/// Most echo requests a second to a device, unless the user chooses another limit.
pub const MAX_PING_RATE: u64 = 10_000;

/// The machine that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A thread of this process, with a veth pair between two network namespaces.
    Own,
    /// A machine that runs `punctual echo`.
    Echo(Address),
    /// A device that answers ICMP echo requests.
    Device(Host),
    /// A thread of this process that sends frames back, with a veth pair between two network namespaces.
    OwnMirror(Frames),
    /// A machine that sends frames back, as `punctual mirror` does.
    Mirror {
        /// The interface that sends.
        interface: String,
        /// Ethernet address of the mirror.
        to: Mac,
        /// EtherType and VLAN tag.
        frames: Frames,
    },
}

impl Peer {
    /// True if the peer is a thread of this process.
    #[must_use]
    pub fn is_own(&self) -> bool {
        match self {
            Self::Own | Self::OwnMirror(_) => true,
            Self::Echo(_) | Self::Device(_) | Self::Mirror { .. } => false,
        }
    }
}

/// IDs of VLANs; 4095 is reserved (802.1Q).
pub const VLAN_IDS: RangeInclusive<u64> = 0..=4094;
/// Priorities of frames (802.1Q, PCP).
pub const PRIORITIES: RangeInclusive<u64> = 0..=7;
/// EtherType of frames to a mirror, unless the user chooses another: Local Experimental EtherType 1 (IEEE 802).
pub const ETHERTYPE: u16 = 0x88b5;

/// Most traffic classes of one measurement.
pub const CLASSES_MAX: usize = 64;

/// A socket of the near end, and what its datagrams travel in.
type OpenSocket = (Port, Carrier);

/// A traffic class: Ethernet frames with their own schedule, priority and threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficClass {
    /// Its name, the role of its round trips in the record.
    pub name: String,
    /// Time between two frames, ns.
    pub period_ns: u64,
    /// EtherType, VLAN tag and priority.
    pub frames: Frames,
    /// Payload of each frame, bytes.
    pub payload_bytes: usize,
    /// Policy of its sending thread; `None` for that of the measurement.
    pub send_policy: Option<Policy>,
    /// CPU of its sending and receiving threads; `None` for those of the measurement.
    pub cpu: Option<u32>,
}

impl TrafficClass {
    /// Role of the wake-ups of its sending thread.
    fn sender(&self) -> String {
        format!("{}-sender", self.name)
    }
}

/// Options of round trips.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundTripProbe {
    /// Time between two datagrams, ns.
    pub period_ns: u64,
    /// The machine that answers, and thereby the protocol.
    pub peer: Peer,
    /// Payload of each datagram, bytes; one of [`PAYLOAD_BYTES`].
    pub payload_bytes: usize,
    /// Traffic classes of Ethernet frames, each instead of the period, the payload and the frames of the peer; empty for
    /// one class.
    pub classes: Vec<TrafficClass>,
    /// True if datagrams may be cut into fragments; Ethernet frames never are.
    pub allow_fragments: bool,
    /// An answer later than this counts as lost, ns after sending; `None` for ten periods, but at least one second.
    pub timeout_ns: Option<u64>,
    /// Most datagrams a second; `None` for [`MAX_RATE`] or [`MAX_PING_RATE`].
    pub max_rate: Option<u64>,
    /// Policy of the sending thread; `None` for the policy of the run.
    pub send_policy: Option<Policy>,
    /// Policy of the receiving thread.
    pub receive_policy: Policy,
    /// Policy of the answering thread of this process.
    pub echo_policy: Policy,
    /// Method by which the receiving thread waits.
    pub wait: ReceiveWait,
    /// The kernel's timestamps to request.
    pub stamps: Stamps,
    /// AF_XDP instead of sockets.
    pub xdp: Option<Xdp>,
    /// CPU of the sending thread; `None` before it is placed.
    pub send_cpu: Option<u32>,
    /// CPU of the receiving thread; `None` for that of the sending thread.
    pub receive_cpu: Option<u32>,
    /// CPU of the answering thread of this process; `None` for [`echo_cpu`].
    pub echo_cpu: Option<u32>,
}

impl Default for RoundTripProbe {
    fn default() -> Self {
        Self {
            period_ns: 1_000_000,
            peer: Peer::Own,
            payload_bytes: 64,
            classes: Vec::new(),
            allow_fragments: false,
            timeout_ns: None,
            max_rate: None,
            send_policy: None,
            receive_policy: Policy::Fifo(97),
            echo_policy: ECHO_POLICY,
            wait: ReceiveWait::Block,
            stamps: Stamps::default(),
            xdp: None,
            send_cpu: None,
            receive_cpu: None,
            echo_cpu: None,
        }
    }
}

/// Default policy of the sending thread.
pub const SEND_POLICY: Policy = Policy::Fifo(98);

impl RoundTripProbe {
    /// The interface on the route to the peer.
    ///
    /// # Errors
    /// There is no peer on another machine, or no route to it.
    pub fn interface(&self) -> Result<String, PrepareError> {
        let address = match &self.peer {
            Peer::Own | Peer::OwnMirror(_) => return Err(PlanError::NoInterface.into()),
            Peer::Echo(address) => address.resolve()?,
            Peer::Device(host) => host.resolve()?,
            Peer::Mirror { interface, .. } => return Ok(interface.clone()),
        };
        Ok(outgoing_interface(address.ip())?)
    }

    /// Most datagrams a second.
    fn max_rate(&self) -> u64 {
        self.max_rate.unwrap_or(match self.peer {
            Peer::Own | Peer::Echo(_) | Peer::OwnMirror(_) | Peer::Mirror { .. } => MAX_RATE,
            Peer::Device(_) => MAX_PING_RATE,
        })
    }

    /// The timeout of an answer at this period, ns.
    fn timeout_at(&self, period_ns: u64) -> u64 {
        self.timeout_ns.unwrap_or_else(|| period_ns.saturating_mul(10).clamp(1_000_000_000, TIMEOUT_MAX_NS))
    }

    /// The payload of each class, bytes.
    fn payloads(&self) -> Vec<usize> {
        match &self.classes[..] {
            [] => vec![self.payload_bytes],
            classes => classes.iter().map(|class| class.payload_bytes).collect(),
        }
    }

    /// Datagrams a second, rounded up for each class.
    fn rate(&self) -> u64 {
        let rate = |period_ns: u64| 1_000_000_000_u64.div_ceil(period_ns.max(1));
        match &self.classes[..] {
            [] => rate(self.period_ns),
            classes => classes.iter().map(|class| rate(class.period_ns)).fold(0, u64::saturating_add),
        }
    }

    /// The Ethernet frames of each class.
    fn all_frames(&self, only: Frames) -> Vec<Frames> {
        match &self.classes[..] {
            [] => vec![only],
            classes => classes.iter().map(|class| class.frames).collect(),
        }
    }

    /// Opens the socket of each class, and starts the answering thread of this process if there is no other peer.
    fn open(&self, shield: Option<&Shield>) -> Result<(Vec<OpenSocket>, Option<Echo>), PrepareError> {
        let settings = EchoSettings { cpu: self.echo_cpu, policy: self.echo_policy };
        Ok(match &self.peer {
            Peer::Echo(address) => {
                let peer = address.resolve()?;
                refuse_group(peer)?;
                (vec![self.connect(peer)?], None)
            }
            Peer::Device(host) => (vec![open_ping(host)?], None),
            Peer::Own => {
                let ends = VethPair::create()?;
                let peer = SocketAddr::from((ends.far.address, UDP_PORT));
                let open_far = || open_echo(peer, self.xdp.map(|xdp| (xdp, ends.far.interface.as_str())));
                let far = ends.far.namespace.run(open_far).map_err(RoundTripError::Spawn)?;
                let near = ends.near.namespace.run(|| self.connect(peer)).map_err(RoundTripError::Spawn)??;
                let far = far?;
                let start = || Echo::start(far, Requests::Datagrams, settings).map_err(RoundTripError::Spawn);
                let echo = with_shield(shield, settings.cpu, start)??;
                (vec![near], Some(echo))
            }
            Peer::Mirror { interface, to, frames } => {
                if stays_without_carrier(interface) {
                    return Err(RoundTripError::NoCarrier(interface.clone()).into());
                }
                let classes = self.open_classes(interface, *to, &self.all_frames(*frames))?;
                if classes.iter().any(|(_, carrier)| matches!(carrier, Carrier::Ethernet { own, .. } if own == to)) {
                    return Err(RoundTripError::OwnAddress(interface.clone()).into());
                }
                (classes, None)
            }
            Peer::OwnMirror(frames) => {
                let ends = VethPair::create()?;
                let all = self.all_frames(*frames);
                let mut ethertypes: Vec<u16> = all.iter().map(|frames| frames.ethertype).collect();
                ethertypes.sort_unstable();
                ethertypes.dedup();
                let far = ends.far.namespace.run(|| open_mirror(&ends.far.interface, &ethertypes, self.xdp));
                let (far, peer) = far.map_err(RoundTripError::Spawn)??;
                let near = ends.near.namespace.run(|| self.open_classes(&ends.near.interface, peer, &all));
                let near = near.map_err(RoundTripError::Spawn)??;
                let requests = Requests::Frames { own: peer, ethertypes };
                let start = || Echo::start(far, requests, settings).map_err(RoundTripError::Spawn);
                (near, Some(with_shield(shield, settings.cpu, start)??))
            }
        })
    }

    /// Opens the socket for datagrams to a peer, in the present namespace.
    fn connect(&self, peer: SocketAddr) -> Result<OpenSocket, PrepareError> {
        let failed =
            |source| RoundTripError::Connect { peer: peer.to_string(), remedy: Carrier::Udp(peer).remedy(), source };
        let socket = DatagramSocket::connect(peer).map_err(failed)?;
        let Some(xdp) = self.xdp else { return Ok((Port::Socket(socket), Carrier::Udp(peer))) };
        let own = socket.local_address().map_err(failed)?;
        xdp.connect(own, peer, self.payload_bytes, socket)
    }

    /// Opens a socket for the frames of each class on an interface of the present namespace.
    fn open_classes(&self, interface: &str, peer: Mac, all: &[Frames]) -> Result<Vec<OpenSocket>, PrepareError> {
        if let Some(xdp) = self.xdp {
            return xdp.open(interface, peer, all, &self.payloads());
        }
        let open = |&frames: &Frames| {
            let (socket, own) = open_ethernet(interface, &[frames.ethertype], frames.priority)?;
            Ok((Port::Socket(socket), Carrier::Ethernet { peer, own, frames }))
        };
        all.iter().map(open).collect()
    }

    /// The traffic class with this number, its period, payload and CPU.
    fn class(&self, number: usize, period_ns: u64) -> (Class, u64, usize, Option<u32>) {
        let Some(class) = self.classes.get(number) else {
            return (Class::default(), period_ns, self.payload_bytes, None);
        };
        let of_same = |other: &&TrafficClass| other.frames.ethertype == class.frames.ethertype;
        let described = Class {
            number: u8::try_from(number).unwrap_or(u8::MAX),
            role: class.name.clone(),
            shares_ethertype: self.classes.iter().filter(of_same).count() > 1,
        };
        (described, class.period_ns, class.payload_bytes, class.cpu)
    }

    /// Opens the sockets, and creates the receiving threads.
    fn clients(&self, context: &PhaseContext<'_>) -> Result<Clients, PrepareError> {
        let (sockets, echo) = self.open(context.shield)?;
        let settings = |(number, (port, carrier)): (usize, OpenSocket)| {
            let (class, period_ns, payload_bytes, class_cpu) = self.class(number, context.period_ns);
            let settings = Settings {
                class,
                carrier,
                // The port has them.
                transport: None,
                notes: Vec::new(),
                own_peer: echo.is_some(),
                payload_bytes,
                timeout_ns: self.timeout_at(period_ns),
                period_ns,
                clock: context.clock,
                cpu: class_cpu.or(self.receive_cpu).or(self.send_cpu),
                policy: self.receive_policy,
                wait: self.wait,
                stamps: self.stamps,
                allow_fragments: self.allow_fragments,
                threshold_ns: context.threshold_ns,
                spikes_kept: context.spikes_kept,
            };
            (port, settings)
        };
        let classes: Vec<(Port, Settings)> = sockets.into_iter().enumerate().map(settings).collect();
        // One of the shielded CPUs is enough to enter the shield.
        let cpus = || classes.iter().filter_map(|(_, settings)| settings.cpu);
        let is_shielded = |cpu: &u32| context.shield.is_some_and(|shield| shield.cpus().contains(*cpu));
        let cpu = cpus().find(is_shielded).or_else(|| cpus().next());
        Ok(with_shield(context.shield, cpu, || Clients::prepare(classes, echo))??)
    }
}

impl RoundTripProbe {
    /// Refuses the options that AF_XDP does not support.
    fn check_xdp(&self) -> Result<(), PlanError> {
        let not = |what, key, why| Err(PlanError::NotWithXdp { what, key, why });
        if self.stamps != Stamps::None {
            return not("timestamps", "stamps", "frames bypass the network stack, which takes them");
        }
        if matches!(self.wait, ReceiveWait::BusyPoll(_)) {
            return not("busy polling", "busy_poll", "the kernel polls for sockets only (spin polls the ring)");
        }
        if self.allow_fragments {
            return not("fragments", "size", "only the network stack makes them");
        }
        if matches!(self.peer, Peer::Device(_)) {
            return not("ICMP echo", "peer", "the network stack of this machine answers and sends it");
        }
        Ok(())
    }
}

impl Definition for RoundTripProbe {
    fn properties(&self) -> Properties {
        Properties {
            name: match self.peer {
                Peer::Own | Peer::Echo(_) => "udp",
                Peer::Device(_) => "ping",
                Peer::OwnMirror(_) | Peer::Mirror { .. } => "round-trip",
            },
            network: if self.peer.is_own() { Network::Virtual } else { Network::Interface },
            has_late_wake_ups: true,
            measures_trace_cost: false,
            guard_remedies: GUARD_REMEDIES,
            awaits_device: false,
            pacer_failed: None,
            evl: Err(PlanError::EvlProbe),
        }
    }

    fn policy(&self, requested: Option<Policy>) -> Policy {
        self.send_policy.or(requested).unwrap_or(SEND_POLICY)
    }

    fn period_ns(&self) -> u64 {
        self.classes.iter().map(|class| class.period_ns).min().unwrap_or(self.period_ns)
    }

    fn timing(&self, period_ns: u64) -> Timing {
        Timing::of_sleeper(period_ns)
    }

    fn placement(&self) -> PlacementRule {
        let (by_thread, threads) = match self.peer {
            // The CPU of the answering thread of this process is optional.
            Peer::Own | Peer::OwnMirror(_) => (2..=3, "a sender, a receiver and an echo"),
            Peer::Echo(_) | Peer::Device(_) | Peer::Mirror { .. } => (2..=2, "a sender and a receiver"),
        };
        PlacementRule {
            roles: ["sender", "receiver", "echo"].map(str::to_owned).to_vec(),
            by_thread: Some(by_thread),
            threads: threads.to_owned(),
            remedy: "write one CPU for each, or cpus = \"last\"",
            takes_best_cpu: true,
            measured: 2,
        }
    }

    fn place(&mut self, mut cpus: Vec<u32>, machine: &PlacementContext<'_>) -> Vec<u32> {
        let Some(&first) = cpus.first() else { return cpus };
        cpus.resize(cpus.len().max(2), first);
        if self.peer.is_own() && cpus.len() == 2 {
            let taken = cpus.iter().copied().collect();
            cpus.push(echo_cpu(machine.usable, machine.isolated, &taken).unwrap_or(first));
        }
        self.send_cpu = Some(first);
        (self.receive_cpu, self.echo_cpu) = (cpus.get(1).copied(), cpus.get(2).copied());
        cpus
    }

    fn threads(&self, policy: Policy) -> Vec<ThreadPlan> {
        let Some(cpu) = self.send_cpu else { return Vec::new() };
        let policy = self.policy(Some(policy));
        let of_class = |class: &TrafficClass| ThreadPlan {
            role: class.sender(),
            cpu: class.cpu.unwrap_or(cpu),
            policy: class.send_policy.unwrap_or(policy),
            period_ns: class.period_ns,
        };
        match &self.classes[..] {
            [] => vec![ThreadPlan { role: "sender".to_owned(), cpu, policy, period_ns: self.period_ns }],
            classes => classes.iter().map(of_class).collect(),
        }
    }

    fn interface_name(&self) -> Result<Option<String>, PrepareError> {
        (!self.peer.is_own()).then(|| self.interface()).transpose()
    }

    fn files(&self, _record_path: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn check(&self) -> Result<(), PlanError> {
        if let Some(timeout_ns) = self.timeout_ns.filter(|timeout_ns| !(1..=TIMEOUT_MAX_NS).contains(timeout_ns)) {
            return Err(PlanError::Timeout(timeout_ns));
        }
        if self.classes.len() > CLASSES_MAX {
            return Err(PlanError::TooManyClasses(self.classes.len()));
        }
        let mut roles = HashSet::new();
        let of_same_name = |class: &&TrafficClass| !roles.insert(class.name.clone()) || !roles.insert(class.sender());
        if let Some(class) = self.classes.iter().find(of_same_name) {
            return Err(PlanError::SameClass(class.name.clone()));
        }
        for bytes in self.payloads() {
            match self.peer {
                Peer::OwnMirror(_) | Peer::Mirror { .. } if bytes > ETHERNET_PAYLOAD => {
                    return Err(PlanError::FrameSize { bytes, max: ETHERNET_PAYLOAD });
                }
                Peer::Own | Peer::Echo(_) | Peer::Device(_) if bytes > ONE_FRAME && !self.allow_fragments => {
                    return Err(PlanError::Fragments { bytes, max: ONE_FRAME });
                }
                Peer::OwnMirror(_) | Peer::Mirror { .. } | Peer::Own | Peer::Echo(_) | Peer::Device(_) => {}
            }
        }
        let (needed, max) = (self.rate(), self.max_rate());
        if needed > max {
            return Err(PlanError::Rate { period_ns: self.period_ns(), max, needed });
        }
        if self.stamps == Stamps::Card && self.peer.is_own() {
            return Err(PlanError::CardOfOwnPeer);
        }
        if self.xdp.is_some() {
            self.check_xdp()?;
        }
        if self.wait == ReceiveWait::Spin && self.receive_policy.is_realtime() {
            return Err(PlanError::SpinningReceiver);
        }
        Ok(())
    }

    fn check_run(&self, _run: &RunShape<'_>) -> Result<(), PlanError> {
        Ok(())
    }

    fn prepare(&self, context: &PhaseContext<'_>) -> Result<Option<Box<dyn ProbeThreads>>, PrepareError> {
        Ok(Some(Box::new(self.clients(context)?)))
    }
}

/// Refuses an address of several machines, because each of them would receive every request.
fn refuse_group(peer: SocketAddr) -> Result<(), RoundTripError> {
    // `connect`, which sends nothing, fails with EACCES for a broadcast address.
    let refused = || DatagramSocket::connect(peer).err().and_then(|error| error.raw_os_error());
    let is_group = peer.ip().is_multicast() || refused() == Some(Errno::ACCESS.raw_os_error());
    if is_group { Err(RoundTripError::Group(peer.ip())) } else { Ok(()) }
}

/// Opens the socket for echo requests to a device.
fn open_ping(host: &Host) -> Result<OpenSocket, PrepareError> {
    let peer = host.resolve()?;
    refuse_group(peer)?;
    // Any number serves, because the contents of a reply decide whether it is ours.
    #[expect(clippy::cast_possible_truncation, reason = "the identifier of ICMP has 16 bits")]
    let identifier = std::process::id() as u16;
    let (socket, layout) = DatagramSocket::ping(peer, identifier).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => RoundTripError::Ping(source),
        _ => RoundTripError::Connect { peer: host.to_string(), remedy: format!("ip route get {}", peer.ip()), source },
    })?;
    Ok((Port::Socket(socket), Carrier::Icmp { peer: peer.ip(), layout }))
}

/// Opens a socket for frames of these EtherTypes on an interface of the present namespace. Returns also the address of the
/// interface.
///
/// # Errors
/// There is no such interface, it is not Ethernet, or the right to open the socket is missing.
fn open_ethernet(interface: &str, ethertypes: &[u16], priority: u8) -> Result<(DatagramSocket, Mac), RoundTripError> {
    let failed = |source: io::Error| RoundTripError::Frames {
        interface: interface.to_owned(),
        remedy: match source.kind() {
            io::ErrorKind::PermissionDenied => "run as root",
            _ => "`ip link` lists the interfaces",
        },
        source,
    };
    let socket = DatagramSocket::ethernet(interface, ethertypes, priority).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidInput => RoundTripError::NotEthernet(interface.to_owned()),
        _ => failed(source),
    })?;
    let link = Links::open().and_then(|mut links| links.find(interface)).map_err(failed)?;
    let own = link.mac.ok_or_else(|| RoundTripError::NotEthernet(interface.to_owned()))?;
    Ok((socket, own))
}

/// Opens the port of an answering end for datagrams to `address`; with AF_XDP only for arrivals on an interface.
///
/// # Errors
/// The address cannot be bound, or the interface cannot be used.
pub fn open_echo(address: SocketAddr, xdp: Option<(Xdp, &str)>) -> Result<Port, PrepareError> {
    let failed = |source| RoundTripError::Bind { address, source };
    let socket = DatagramSocket::bind(address).map_err(failed)?;
    match xdp {
        Some((xdp, interface)) => {
            let own = socket.local_address().map_err(failed)?;
            Ok(xdp.open_echo(interface, own, socket)?)
        }
        None => Ok(Port::Socket(socket)),
    }
}

/// Opens the port of an answering end for frames of these EtherTypes to an interface of the present namespace. Returns also
/// the address of the interface.
///
/// # Errors
/// There is no such interface, it is not Ethernet, the right to open the socket is missing, or the interface cannot be used
/// with AF_XDP.
pub fn open_mirror(interface: &str, ethertypes: &[u16], xdp: Option<Xdp>) -> Result<(Port, Mac), PrepareError> {
    match xdp {
        Some(xdp) => Ok(xdp.open_mirror(interface, ethertypes)?),
        None => {
            let (socket, own) = open_ethernet(interface, ethertypes, 0)?;
            Ok((Port::Socket(socket), own))
        }
    }
}

/// The CPU of the answering thread of this process: the first that is not `taken`, if possible one that is not `quiet`
/// either; `None` if all are `taken`.
#[must_use]
pub fn echo_cpu(usable: &CpuList, quiet: &CpuList, taken: &CpuList) -> Option<u32> {
    let free = usable.difference(taken);
    free.difference(quiet).first().or_else(|| free.first())
}
