//! Options of `measure udp`, those that it shares with `pair`, and those of `echo`, its other end.

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
    /// Who answers: a machine on which `punctual echo` runs, by name or address; port 7125 unless it is said.
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "own_peer", conflicts_with = "own_peer")]
    pub peer: Option<String>,
    /// Answer ourselves: both ends in network namespaces of their own, joined by a virtual cable. Needs root.
    #[arg(long = "self", conflicts_with_all = ["nic", "irq_priority"])]
    pub own_peer: bool,
    /// Policy of our own answering thread.
    #[arg(long, value_name = "POLICY", default_value_t = ECHO_POLICY, requires = "own_peer")]
    pub echo_policy: Policy,
    /// CPU of our own answering thread [default: the first one that neither sends nor receives, or the sending one].
    #[arg(long, value_name = "CPU", requires = "own_peer")]
    pub echo_cpu: Option<u32>,
    /// What is sent, and how the asking end works.
    #[command(flatten)]
    pub how: Asking,
}

/// What is sent, and how the asking end works.
#[derive(Debug, Args)]
pub struct Asking {
    /// Time between two datagrams.
    #[arg(long, value_name = "TIME", value_parser = period, default_value = format_exact(UdpProbe::default().period_ns))]
    pub period: u64,
    /// Send so many datagrams.
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "endless"], value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
    /// Payload of each datagram, bytes, 56 or more; above 1472 only with --allow-fragments.
    #[arg(long, value_name = "BYTES", value_parser = size, default_value_t = UdpProbe::default().payload_bytes)]
    pub size: usize,
    /// Let datagrams be cut into fragments that do not fit into one frame.
    #[arg(long)]
    pub allow_fragments: bool,
    /// An answer later than this counts as lost [default: ten periods, or 1s where that is more].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<u64>,
    /// Refuse to send more datagrams a second.
    #[arg(long, value_name = "N", default_value_t = UdpProbe::default().max_rate, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_rate: u64,
    /// Policy of the sending thread: fifo:1-99, rr:1-99, deadline:RUNTIME/DEADLINE/PERIOD or other.
    #[arg(long, visible_alias = "priority", default_value_t = SEND_POLICY)]
    pub policy: Policy,
    /// CPU of the sending thread [default: the last isolated one, or the last].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Policy of the receiving thread.
    #[arg(long, visible_alias = "receive-priority", value_name = "POLICY", default_value_t = UdpProbe::default().receive_policy)]
    pub receive_policy: Policy,
    /// CPU of the receiving thread [default: that of the sending one].
    #[arg(long, value_name = "CPU")]
    pub receive_cpu: Option<u32>,
    /// Let the receiving thread ask for answers again and again instead of sleeping, which takes --receive-policy other.
    #[arg(long, conflicts_with = "busy_poll")]
    pub spin: bool,
    /// Let it look at the device's queue itself for so long before it sleeps.
    #[arg(long, value_name = "TIME", value_parser = us)]
    pub busy_poll: Option<u32>,
    /// How the interface that leads to HOST is set for the run.
    #[command(flatten)]
    pub nic: Nic,
    /// Which of the kernel's own stamps to ask for, to tell where the time went; `all` wakes the receiving thread once more
    /// for each datagram that goes out.
    #[arg(long, value_name = "WHICH", default_value = "receive")]
    pub stamps: WhichStamps,
    /// Round trip above which it is a spike, and lateness above which a wake-up of the sending thread is [default: 100us, or
    /// the period where that is less].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub threshold: Option<u64>,
    /// A use whose limits decide the verdict, by name or as a TOML file; can be repeated. One that is not about round trips
    /// judges the sender's wake-ups. `punctual profiles` lists them.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Lay a published reference, or another record, beside the result; can be repeated. `punctual references` lists them.
    #[arg(long, value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// Where things run.
    #[command(flatten)]
    pub placement: Placement,
    /// What every measurement has.
    #[command(flatten)]
    pub common: Common,
}

impl Asking {
    /// How the receiving thread waits.
    pub fn wait(&self) -> ReceiveWait {
        ReceiveWait::of(self.spin, self.busy_poll.map(|us| u64::from(us) * 1000))
    }
}

/// Options of `echo`.
#[derive(Debug, Args)]
pub struct Echo {
    /// Address and port to answer on.
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = address, default_value = "0.0.0.0:7125")]
    pub bind: SocketAddr,
    /// Policy of the answering thread: fifo:1-99, rr:1-99 or other.
    #[arg(long, visible_alias = "priority", default_value_t = ECHO_POLICY)]
    pub policy: Policy,
    /// CPU of the answering thread; any if not given.
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Look at the device's queue itself for so long before the thread sleeps.
    #[arg(long, value_name = "TIME", value_parser = us)]
    pub busy_poll: Option<u32>,
    /// Meanwhile serve the interrupts of --interface at this real-time priority, 1 to 99: the threads of its interrupts, and
    /// those that poll it.
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99), requires = "interface")]
    pub irq_priority: Option<u8>,
    /// The interface that questions come in on.
    #[arg(long, value_name = "IF", requires = "irq_priority")]
    pub interface: Option<String>,
    /// Print what was done as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// Write the address there once it answers, for scripts.
    #[arg(long, value_name = "FILE")]
    pub ready: Option<PathBuf>,
}

/// Which of the kernel's own stamps to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhichStamps {
    /// None.
    None,
    /// When it had each answer.
    Receive,
    /// When the driver took each datagram, too.
    All,
    /// And when the network card had both: sets it to stamp every frame during the run. Needs root, and a card that can.
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

/// A time as whole us, which is what the kernel takes.
fn us(text: &str) -> Result<u32, String> {
    let us = duration(text)?.div_ceil(1000);
    u32::try_from(us).ok().filter(|us| *us <= 1_000_000).ok_or_else(|| "must be at most 1s, as 50us".to_owned())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, UDP_PORT));
    text.parse().or_else(|_| alone()).map_err(|_| "must be an address of this machine, as 192.0.2.1:7125".to_owned())
}
