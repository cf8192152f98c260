//! Options of `measure udp`, `measure ping` and `measure round-trip`, those that they share with `pair udp`, and those of
//! `echo` and `mirror`.

use std::{net::SocketAddr, path::PathBuf};

use analysis::format_exact;
use campaign::probe::{
    RoundTripProbe,
    round_trip::{
        Address, ECHO_POLICY, Host, MAX_PING_RATE, MacAddress, PAYLOAD_BYTES, SEND_POLICY, Xdp, parse_machine,
        parse_own_ethertype,
    },
    xdp::QUEUE_MAX,
};
use clap::{Arg, Args, ValueEnum};
use probes::ReceiveWait;
use sys::{sched::Policy, udp::Stamps};

use crate::exit::Usage;

use super::{Common, Nic, Placement, Rounds, StreamReceive, duration, period, traffic_class::ClassSpec};

/// Options of `measure udp`.
#[derive(Debug, Args)]
pub struct Udp {
    /// Machine that runs `punctual echo` [default port: 7125].
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "own_peer", conflicts_with = "own_peer")]
    pub peer: Option<String>,
    /// Run both ends here, joined by a veth pair; needs root.
    #[arg(long = "self", conflicts_with_all = ["nic", "irq_priority"])]
    pub own_peer: bool,
    /// With --self, echo with this policy.
    #[arg(long, value_name = "POLICY", default_value_t = ECHO_POLICY, requires = "own_peer", conflicts_with = "peer")]
    pub echo_policy: Policy,
    /// With --self, echo on this CPU.
    ///
    /// The default is the first that neither sends nor receives, or the sending one.
    #[arg(long, value_name = "CPU", requires = "own_peer", conflicts_with = "peer")]
    pub echo_cpu: Option<u32>,
    /// Allow IP fragmentation of datagrams above one frame.
    #[arg(long)]
    pub allow_fragments: bool,
    /// The way through this machine.
    #[command(flatten)]
    pub transport: Transport,
    /// Options shared with `pair udp`.
    #[command(flatten)]
    pub shared: RoundTripOptions,
}

/// Options of `measure ping`.
#[derive(Debug, Args)]
#[command(mut_arg("max_rate", of_device))]
pub struct Ping {
    /// Device that answers ICMP echo requests.
    #[arg(value_name = "HOST", value_parser = str::parse::<Host>)]
    pub peer: Host,
    /// Allow IP fragmentation of datagrams above one frame.
    #[arg(long)]
    pub allow_fragments: bool,
    /// Options shared with `measure udp`.
    #[command(flatten)]
    pub shared: RoundTripOptions,
}

/// The limit of the rate to a device.
fn of_device(max_rate: Arg) -> Arg {
    max_rate.help(format!("Refuse to send more a second [default: {MAX_PING_RATE}]")).long_help(format!(
        "Refuse to send more a second [default: {MAX_PING_RATE}]\n\nA --period with more of them is refused. Devices may \
         be slow."
    ))
}

/// Options of `measure round-trip`.
#[derive(Debug, Args)]
pub struct RoundTrip {
    /// Send and receive on this interface.
    #[arg(value_name = "IF", required_unless_present = "own_peer", conflicts_with = "own_peer", requires = "to")]
    pub interface: Option<String>,
    /// Ethernet address at which `punctual mirror` runs.
    #[arg(long, value_name = "MAC", requires = "interface", value_parser = parse_machine)]
    pub to: Option<MacAddress>,
    /// Run both ends here, joined by a veth pair; needs root.
    #[arg(long = "self", conflicts_with_all = ["nic", "irq_priority"])]
    pub own_peer: bool,
    /// EtherType of the frames.
    ///
    /// The default is reserved for local experiments.
    #[arg(long, value_name = "TYPE", value_parser = parse_own_ethertype, default_value = "0x88b5")]
    pub ethertype: u16,
    /// Send frames with a tag of this VLAN, 0 to 4094.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(0..=4094))]
    pub vlan: Option<u16>,
    /// Send frames with this priority, 0 to 7.
    ///
    /// The priority is that of the VLAN tag (PCP), and selects the traffic class of this machine. Without --vlan, a priority
    /// above 0 makes a tag of VLAN 0.
    #[arg(long, value_name = "PCP", value_parser = clap::value_parser!(u8).range(0..=7), default_value_t = 0)]
    pub priority: u8,
    /// Add this traffic class; repeatable.
    ///
    /// Each class has its own schedule, sending and receiving thread and figures. An example is
    /// control=1ms,priority=5,vlan=10,ethertype=0x8892,size=128,cpu=2,policy=fifo:95. Keys that are left out have the value
    /// of the option with that name.
    #[arg(long = "traffic-class", value_name = "NAME=PERIOD", conflicts_with_all = ["period", "samples"])]
    pub classes: Vec<ClassSpec>,
    /// With --self, echo with this policy.
    #[arg(long, value_name = "POLICY", default_value_t = ECHO_POLICY, requires = "own_peer", conflicts_with = "interface")]
    pub echo_policy: Policy,
    /// With --self, echo on this CPU.
    ///
    /// The default is the first that neither sends nor receives, or the sending one.
    #[arg(long, value_name = "CPU", requires = "own_peer", conflicts_with = "interface")]
    pub echo_cpu: Option<u32>,
    /// The way through this machine.
    #[command(flatten)]
    pub transport: Transport,
    /// Options shared with `measure udp`.
    #[command(flatten)]
    pub shared: RoundTripOptions,
}

/// The way of datagrams and frames through this machine.
#[derive(Debug, Args)]
pub struct Transport {
    /// By xdp, xdp-zerocopy, xdp-generic [default: socket].
    ///
    /// AF_XDP sends and receives past the network stack of this machine, which then takes no timestamps.
    #[arg(long, value_name = "HOW")]
    pub transport: Option<StreamReceive>,
    /// With xdp, use this interface queue [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(QUEUE_MAX)))]
    pub queue: Option<u32>,
}

impl Transport {
    /// AF_XDP; `None` for sockets.
    ///
    /// # Errors
    /// A queue without AF_XDP.
    pub fn xdp(&self) -> Result<Option<Xdp>, Usage> {
        let mode = self.transport.and_then(StreamReceive::xdp);
        if self.queue.is_some() && mode.is_none() {
            return Err(Usage("--queue needs xdp: leave it out, or add --transport xdp".to_owned()));
        }
        Ok(mode.map(|mode| Xdp { mode, queue: self.queue.unwrap_or(0) }))
    }
}

/// Options of datagrams and of the end that sends them, for `measure udp`, `measure ping`,
/// `measure round-trip` and `pair udp`.
#[derive(Debug, Args)]
pub struct RoundTripOptions {
    /// Send at this interval.
    #[arg(long, value_name = "TIME", value_parser = period, default_value = format_exact(RoundTripProbe::default().period_ns))]
    pub period: u64,
    /// Send this many times.
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "endless"], value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
    /// Send this payload, bytes, 56 or more.
    ///
    /// One frame has room for 1472 with UDP and ICMP, and for 1500 with Ethernet frames.
    #[arg(long, value_name = "BYTES", value_parser = size, default_value_t = RoundTripProbe::default().payload_bytes)]
    pub size: usize,
    /// Count later answers as lost [default: 10 periods, 1s].
    ///
    /// An answer later than this after its datagram is lost. The default is the longer of the two.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<u64>,
    /// Refuse to send more a second [default: 100000].
    ///
    /// A --period with more of them is refused.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_rate: Option<u64>,
    /// fifo:N, rr:N, deadline:R/D/P, other.
    ///
    /// The policy of the thread. The priority N is 1 to 99. The times of deadline:RUNTIME/DEADLINE/PERIOD are
    /// durations, e.g. 50us.
    #[arg(long, default_value_t = SEND_POLICY)]
    pub policy: Policy,
    /// Send from this CPU [default: last isolated, or last].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Receive with this policy.
    #[arg(long, value_name = "POLICY", default_value_t = RoundTripProbe::default().receive_policy)]
    pub receive_policy: Policy,
    /// Receive on this CPU [default: the sending one].
    #[arg(long, value_name = "CPU")]
    pub receive_cpu: Option<u32>,
    /// Poll for answers; needs --receive-policy other.
    ///
    /// The receiving thread polls instead of sleeping.
    #[arg(long, conflicts_with = "busy_poll")]
    pub spin: bool,
    /// Poll the device for this long before sleeping.
    ///
    /// The default is no polling.
    #[arg(long, value_name = "TIME", value_parser = us)]
    pub busy_poll: Option<u32>,
    /// Settings of the interface to HOST.
    #[command(flatten)]
    pub nic: Nic,
    /// Use timestamps none, all, hardware [default: receive].
    ///
    /// They divide the round-trip time into parts. `all` wakes the receiving thread once more for each datagram sent.
    #[arg(long, value_name = "WHICH")]
    pub stamps: Option<WhichStamps>,
    /// A spike is longer than this [default: 100us or period].
    ///
    /// A round trip that is longer counts as a spike. The default is the shorter of the two. Wake-ups of the sending thread that are later count, too.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub threshold: Option<u64>,
    /// Judge by the limits of this profile; repeatable.
    ///
    /// A name (`punctual profiles` lists them) or a TOML file. A profile that has no limit for round trips judges the
    /// wake-ups of the sending thread.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// End at PASS or FAIL; --duration is the longest time.
    ///
    /// The verdict must be shown at 95 %.
    #[arg(long, requires_all = ["profiles", "duration"])]
    pub until_decided: bool,
    /// Compare with a reference, record or LAST; repeatable.
    ///
    /// `punctual references` lists the published figures.
    #[arg(long, value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// Placement of threads.
    #[command(flatten)]
    pub placement: Placement,
    /// The number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// Options of all measurements.
    #[command(flatten)]
    pub common: Common,
}

impl RoundTripOptions {
    /// The wait method of the receiving thread.
    pub fn wait(&self) -> ReceiveWait {
        ReceiveWait::of(self.spin, self.busy_poll.map(|us| u64::from(us) * 1000))
    }
}

/// Options of `echo`.
#[derive(Debug, Args)]
pub struct Echo {
    /// Answer on this address.
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = address, default_value = "0.0.0.0:7125")]
    pub bind: SocketAddr,
    /// Interface on which the requests arrive.
    #[arg(long, value_name = "IF")]
    pub interface: Option<String>,
    /// Options shared with `mirror`.
    #[command(flatten)]
    pub shared: EchoOptions,
}

/// Options of `mirror`.
#[derive(Debug, Args)]
pub struct Mirror {
    /// Receive and send on this interface.
    #[arg(value_name = "IF")]
    pub interface: String,
    /// EtherType of the frames; repeatable.
    #[arg(long = "ethertype", value_name = "TYPE", value_parser = parse_own_ethertype, default_value = "0x88b5")]
    pub ethertypes: Vec<u16>,
    /// Options shared with `echo`.
    #[command(flatten)]
    pub shared: EchoOptions,
}

/// Options of an answering end.
#[derive(Debug, Args)]
pub struct EchoOptions {
    /// The way through this machine.
    #[command(flatten)]
    pub transport: Transport,
    /// fifo:N, rr:N, deadline:R/D/P, other.
    ///
    /// The policy of the thread. The priority N is 1 to 99. The times of deadline:RUNTIME/DEADLINE/PERIOD are
    /// durations, e.g. 50us.
    #[arg(long, default_value_t = ECHO_POLICY)]
    pub policy: Policy,
    /// Run on this CPU [default: last isolated, or last].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Poll the device for this long before sleeping.
    ///
    /// The default is no polling.
    #[arg(long, value_name = "TIME", value_parser = us)]
    pub busy_poll: Option<u32>,
    /// Run interrupts of the interface at priority N, 1 to 99.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99), requires = "interface")]
    pub irq_priority: Option<u8>,
    /// Print the counters as JSON at the end.
    #[arg(long)]
    pub json: bool,
    /// Write the address to this file when ready to answer.
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

/// Parses a payload, bytes.
pub(super) fn size(text: &str) -> Result<usize, String> {
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
    // An address without a port, or with the name of its zone. Port 0 selects a free one, and no peer has it.
    let literal = || text.parse::<Address>().ok().filter(Address::is_literal)?.resolve().ok();
    text.parse()
        .ok()
        .or_else(literal)
        .ok_or_else(|| "must be an address of this machine, e.g. 192.0.2.1:7125".to_owned())
}
