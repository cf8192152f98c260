//! Round trips: a timer that sends, a thread beside it that receives, and a peer that answers.

mod address;

use std::net::SocketAddr;

use machine::{CpuList, Shield, ends::Ends, nic::way_to};
use probes::{
    ReceiveWait,
    udp::{Client, Echo, EchoSettings, Settings, UdpError},
};
use sys::{
    sched::Policy,
    udp::{DatagramSocket, Stamps},
};

pub use address::{Address, AddressError};

use crate::{PhasePlan, Plan, PlanError, RunError, shielded::on_its_side, thrift::Thrift};

/// Port of the answering end unless asked otherwise.
pub const UDP_PORT: u16 = 7125;
/// Longest timeout, ns: one minute.
pub const TIMEOUT_MAX_NS: u64 = 60_000_000_000;

/// Datagrams that a run sends and waits for. The sending thread is the one of the phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpPlan {
    /// Who answers.
    pub peer: Peer,
    /// Payload of each datagram, bytes.
    pub payload_bytes: usize,
    /// An answer later than this is none, ns after sending; `None` for ten periods, or a second where that is more.
    pub timeout_ns: Option<u64>,
    /// CPU of the receiving thread; one of [`Plan::cpus`].
    pub cpu: u32,
    /// Policy of the receiving thread.
    pub policy: Policy,
    /// How it waits.
    pub wait: ReceiveWait,
    /// Which of the kernel's stamps to ask for.
    pub stamps: Stamps,
    /// Whether datagrams may be cut into fragments.
    pub allow_fragments: bool,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// `punctual echo` somewhere.
    At(Address),
    /// A thread of this process: both ends are in network namespaces of their own, joined by a virtual cable.
    Own(EchoSettings),
}

impl UdpPlan {
    /// Checks what types alone cannot say.
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        if self.timeout_ns.is_some_and(|timeout_ns| !(1..=TIMEOUT_MAX_NS).contains(&timeout_ns)) {
            return Err(PlanError::Timeout);
        }
        if self.stamps == Stamps::Card && matches!(self.peer, Peer::Own(_)) {
            return Err(PlanError::CardOfOwnPeer);
        }
        if self.wait == ReceiveWait::Spin && self.policy.is_realtime() {
            return Err(PlanError::SpinningReceiver);
        }
        Ok(())
    }

    /// The interface over which the way to the peer leads.
    pub(crate) fn interface(&self) -> Result<String, RunError> {
        let Peer::At(address) = &self.peer else { return Err(PlanError::NoInterface.into()) };
        Ok(way_to(address.resolve()?.ip())?)
    }

    /// How long an answer may take at this period, ns.
    fn timeout_at(&self, period_ns: u64) -> u64 {
        self.timeout_ns.unwrap_or_else(|| period_ns.saturating_mul(10).clamp(1_000_000_000, TIMEOUT_MAX_NS))
    }
}

/// The CPU of our own answering thread: the first that neither sends nor receives, and is not `quiet` where there is one
/// such; `None` where all are `taken`.
#[must_use]
pub fn echo_cpu(usable: &CpuList, quiet: &CpuList, taken: &CpuList) -> Option<u32> {
    let free = usable.difference(taken);
    free.difference(quiet).first().or_else(|| free.first())
}

/// Opens the socket, starts the peer where it is ours, and makes the receiving thread.
pub fn prepare(plan: &Plan, phase: &PhasePlan, udp: &UdpPlan, shield: Option<&Shield>) -> Result<Client, RunError> {
    let failed = |peer| move |source| UdpError::Connect { peer, source };
    let (peer, socket, echo) = match &udp.peer {
        Peer::At(address) => {
            let peer = address.resolve()?;
            (peer, DatagramSocket::connect(peer).map_err(failed(peer))?, None)
        }
        &Peer::Own(settings) => {
            let ends = Ends::make()?;
            let peer = SocketAddr::from((ends.far.address, UDP_PORT));
            let far = ends.far.namespace.run(|| DatagramSocket::bind(peer)).and_then(|bound| bound);
            let near = ends.near.namespace.run(|| DatagramSocket::connect(peer)).and_then(|connected| connected);
            let start = || Echo::start(far.map_err(failed(peer))?, settings).map_err(UdpError::Spawn);
            let echo = on_its_side(shield, settings.cpu, start)??;
            (peer, near.map_err(failed(peer))?, Some(echo))
        }
    };
    let settings = Settings {
        peer,
        own_peer: echo.is_some(),
        payload_bytes: udp.payload_bytes,
        timeout_ns: udp.timeout_at(phase.period_ns),
        period_ns: phase.period_ns,
        clock: plan.clock,
        cpu: Some(udp.cpu),
        policy: udp.policy,
        wait: udp.wait,
        stamps: udp.stamps,
        allow_fragments: udp.allow_fragments,
        threshold_ns: plan.threshold_at(phase.period_ns),
        spikes_kept: Thrift::of(plan).spikes_kept,
    };
    Ok(on_its_side(shield, settings.cpu, || Client::prepare(socket, echo, settings))??)
}
