//! Options of `measure udp`, those that it shares with `pair udp`, and those of `echo`.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use analysis::format_exact;
use campaign::probe::{
    UdpProbe,
    udp::{ECHO_POLICY, PAYLOAD_BYTES, SEND_POLICY, UDP_PORT},
};
use clap::{Args, ValueEnum};
use probes::ReceiveWait;
use sys::{sched::Policy, udp::Stamps};

use super::{Common, Nic, Placement, duration, period};

/// Options of `measure udp`.
#[derive(Debug, Args)]
pub struct Udp {
    /// Name or address of a machine on which `punctual echo` runs; the default port is 7125.
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "own_peer", conflicts_with = "own_peer")]
    pub peer: Option<String>,
    /// Run both ends on this machine, in two network namespaces joined by a veth pair; needs root.
    #[arg(long = "self", conflicts_with_all = ["nic", "irq_priority"])]
    pub own_peer: bool,
    /// With --self, run the echo thread with this policy.
    #[arg(long, value_name = "POLICY", default_value_t = ECHO_POLICY, requires = "own_peer")]
    pub echo_policy: Policy,
    /// With --self, run the echo thread on this CPU [default: the first that neither sends nor receives, or the sending
    /// one].
    #[arg(long, value_name = "CPU", requires = "own_peer")]
    pub echo_cpu: Option<u32>,
    /// Options shared with `pair udp`.
    #[command(flatten)]
    pub shared: UdpOptions,
}

/// Options of datagrams and of the end that sends them, for `measure udp` and `pair udp`.
#[derive(Debug, Args)]
pub struct UdpOptions {
    /// Send a datagram at this interval.
    #[arg(long, value_name = "TIME", value_parser = period, default_value = format_exact(UdpProbe::default().period_ns))]
    pub period: u64,
    /// Send this many datagrams.
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "endless"], value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
    /// Send this payload in each datagram, bytes, 56 or more; above 1472 needs --allow-fragments.
    #[arg(long, value_name = "BYTES", value_parser = size, default_value_t = UdpProbe::default().payload_bytes)]
    pub size: usize,
    /// Allow IP fragmentation of datagrams that do not fit into one frame.
    #[arg(long)]
    pub allow_fragments: bool,
    /// Count an answer as lost if it is later than this [default: ten periods, or 1s if that is longer].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<u64>,
    /// Refuse a --period with more datagrams a second than this.
    #[arg(long, value_name = "N", default_value_t = UdpProbe::default().max_rate, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_rate: u64,
    /// Run the sending thread with this policy: fifo:1-99, rr:1-99, deadline:RUNTIME/DEADLINE/PERIOD or other.
    #[arg(long, visible_alias = "priority", default_value_t = SEND_POLICY)]
    pub policy: Policy,
    /// Run the sending thread on this CPU [default: the last isolated one, or the last].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Run the receiving thread with this policy.
    #[arg(long, visible_alias = "receive-priority", value_name = "POLICY", default_value_t = UdpProbe::default().receive_policy)]
    pub receive_policy: Policy,
    /// Run the receiving thread on this CPU [default: that of the sending thread].
    #[arg(long, value_name = "CPU")]
    pub receive_cpu: Option<u32>,
    /// Poll for answers in the receiving thread instead of sleeping; needs --receive-policy other.
    #[arg(long, conflicts_with = "busy_poll")]
    pub spin: bool,
    /// Busy-poll the device in the receiving thread for this long before it sleeps [default: no polling].
    #[arg(long, value_name = "TIME", value_parser = us)]
    pub busy_poll: Option<u32>,
    /// Settings of the interface to HOST.
    #[command(flatten)]
    pub nic: Nic,
    /// Request these kernel timestamps, to divide the round-trip time into parts.
    ///
    /// `all` wakes the receiving thread once more for each datagram sent.
    #[arg(long, value_name = "WHICH", default_value = "receive")]
    pub stamps: WhichStamps,
    /// Count a round trip or a wake-up of the sending thread as a spike above this [default: 100us, or the period if
    /// that is shorter].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub threshold: Option<u64>,
    /// Judge the result by the limits of this profile, a name or a TOML file; repeatable (`punctual profiles` lists
    /// them).
    ///
    /// A profile that has no limit for round trips judges the wake-ups of the sending thread.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// End as soon as PASS or FAIL is shown at 95 %; --duration is then the longest time.
    #[arg(long, requires_all = ["profiles", "duration"])]
    pub until_decided: bool,
    /// Compare the result with a published reference (see `punctual references`), another record or LAST; repeatable.
    #[arg(long, value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// Placement of threads.
    #[command(flatten)]
    pub placement: Placement,
    /// Options of all measurements.
    #[command(flatten)]
    pub common: Common,
}

impl UdpOptions {
    /// The wait method of the receiving thread.
    pub fn wait(&self) -> ReceiveWait {
        ReceiveWait::of(self.spin, self.busy_poll.map(|us| u64::from(us) * 1000))
    }
}

/// Options of `echo`.
#[derive(Debug, Args)]
pub struct Echo {
    /// Answer on this address and port.
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = address, default_value = "0.0.0.0:7125")]
    pub bind: SocketAddr,
    /// Run the echo thread with this policy: fifo:1-99, rr:1-99 or other.
    #[arg(long, visible_alias = "priority", default_value_t = ECHO_POLICY)]
    pub policy: Policy,
    /// Run the echo thread on this CPU [default: any].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Busy-poll the device for this long before the thread sleeps [default: no polling].
    #[arg(long, value_name = "TIME", value_parser = us)]
    pub busy_poll: Option<u32>,
    /// Run the interrupt and polling threads of --interface at this real-time priority meanwhile, 1 to 99.
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99), requires = "interface")]
    pub irq_priority: Option<u8>,
    /// Interface on which the requests arrive.
    #[arg(long, value_name = "IF", requires = "irq_priority")]
    pub interface: Option<String>,
    /// Print the counters as JSON on standard output at the end.
    #[arg(long)]
    pub json: bool,
    /// Write the address to this file when ready to answer, for scripts.
    #[arg(long, value_name = "FILE")]
    pub ready: Option<PathBuf>,
}

/// Kernel timestamps of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhichStamps {
    /// No timestamps.
    None,
    /// When the kernel received each answer.
    Receive,
    /// Also when the driver took each datagram.
    All,
    /// Also when the network card sent and received: it stamps all frames during the run; needs root and hardware
    /// support.
    Hardware,
}

impl From<WhichStamps> for Stamps {
    fn from(which: WhichStamps) -> Self {
        match which {
            WhichStamps::None => Self::None,
            WhichStamps::Receive => Self::Receive,
            WhichStamps::All => Self::All,
            WhichStamps::Hardware => Self::Card,
        }
    }
}

fn size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes) if PAYLOAD_BYTES.contains(&bytes) => Ok(bytes),
        _ => Err(format!("must be {} to {} bytes, e.g. 64", PAYLOAD_BYTES.start(), PAYLOAD_BYTES.end())),
    }
}

/// Parses a duration and rounds it up to whole us, the unit of the kernel.
fn us(text: &str) -> Result<u32, String> {
    let us = duration(text)?.div_ceil(1000);
    u32::try_from(us).ok().filter(|us| *us <= 1_000_000).ok_or_else(|| "must be at most 1s, e.g. 50us".to_owned())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, UDP_PORT));
    text.parse().or_else(|_| alone()).map_err(|_| "must be an address of this machine, e.g. 192.0.2.1:7125".to_owned())
}
