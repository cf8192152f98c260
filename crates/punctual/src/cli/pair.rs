//! Options of `pair`.

use std::path::PathBuf;

use campaign::probe::{
    stream::{ListenXdp, QUEUE_MAX},
    udp::Address,
};
use clap::{Args, Subcommand};
use loads::LoadSpec;
use machine::{CpuList, nic::NicSettings};
use record::FarAsked;
use sys::sched::Policy;

use super::{Asking, StreamReceive, Streaming};

/// Options of `pair`.
#[derive(Debug, Args)]
pub struct Pair {
    /// The other machine, as ssh takes it: HOST or USER@HOST.
    pub host: String,
    /// The command that reaches it, with its options, as a shell reads them.
    #[arg(long, value_name = "COMMAND", default_value = "ssh", global = true)]
    pub ssh: String,
    /// The punctual to copy there, where the other machine is of another architecture than this one [default: this program,
    /// or punctual-ARCHITECTURE beside it].
    #[arg(long, value_name = "FILE", global = true)]
    pub far_binary: Option<PathBuf>,
    /// Copy nothing, and start punctual there with this command.
    #[arg(long, value_name = "COMMAND", global = true, conflicts_with = "far_binary")]
    pub far_command: Option<String>,
    /// Start it there with `sudo -n`, for a user that may do so without a password.
    #[arg(long, global = true)]
    pub far_sudo: bool,
    /// What is to be there.
    #[command(flatten)]
    pub there: There,
    /// What to measure.
    #[command(subcommand)]
    pub what: PairWhat,
}

/// What the far end is to be, and what is to be around it for the run. All of it is put back afterwards.
#[derive(Debug, Args)]
pub struct There {
    /// CPU of the thread there [default: the last one of --far-shield; else the last isolated one, or the last, for a
    /// listener, and any for round trips].
    #[arg(long, value_name = "CPU", global = true)]
    pub far_cpu: Option<u32>,
    /// Policy of the thread there: fifo:1-99, rr:1-99 or other [default: fifo:90 for a listener, fifo:97 for round trips].
    #[arg(long, value_name = "POLICY", global = true)]
    pub far_policy: Option<Policy>,
    /// What runs there beside it, as --load does here; can be repeated.
    #[arg(long = "far-load", value_name = "LOAD", global = true)]
    pub far_loads: Vec<LoadSpec>,
    /// CPUs there that loads may use [default: that of the thread, or those beside --far-shield].
    #[arg(long, value_name = "LIST", global = true)]
    pub far_load_cpus: Option<CpuList>,
    /// Keep these CPUs there free of other work, as --shield does here.
    #[arg(long, value_name = "LIST", global = true)]
    pub far_shield: Option<CpuList>,
    /// Hold the CPU of the thread there out of its idle states.
    #[arg(long, global = true)]
    pub far_hold_cpu_awake: bool,
    /// Set values of the interface there, as --nic does here: that of a stream, or the one that leads to this machine.
    #[arg(long, value_name = "WHAT=VALUE,...", global = true)]
    pub far_nic: Option<NicSettings>,
    /// Serve the interrupts of that interface at this real-time priority, 1 to 99.
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99), global = true)]
    pub far_irq_priority: Option<u8>,
}

impl There {
    /// What the far end is asked; `policy` unless one is given.
    pub fn asked(&self, policy: Policy) -> FarAsked {
        FarAsked {
            policy: self.far_policy.unwrap_or(policy).to_string(),
            cpu: self.far_cpu,
            loads: self.far_loads.iter().map(ToString::to_string).collect(),
            load_cpus: self.far_load_cpus.as_ref().map(ToString::to_string),
            shield: self.far_shield.as_ref().map(ToString::to_string),
            hold_cpu_awake: self.far_hold_cpu_awake,
            nic: self.far_nic.as_ref().map(ToString::to_string),
            irq_priority: self.far_irq_priority,
            ..FarAsked::default()
        }
    }
}

/// What to measure between two machines.
#[derive(Debug, Subcommand)]
pub enum PairWhat {
    /// How long a UDP datagram is under way to the other machine and back: as `measure udp`, which has the details.
    Udp(Box<PairUdp>),
    /// A stream of frames from this machine to the other, both ends of it: as `measure stream`, which has the details.
    Stream(Box<PairStream>),
}

/// Options of `pair udp`.
#[derive(Debug, Args)]
pub struct PairUdp {
    /// Address of the other machine in the network to be measured; port 7125 unless it is said, or another where that is
    /// taken [default: the one that ssh reached].
    #[arg(long, value_name = "HOST[:PORT]")]
    pub to: Option<Address>,
    /// What is sent, and how the asking end works.
    #[command(flatten)]
    pub how: Asking,
}

/// Options of `pair stream`.
#[derive(Debug, Args)]
pub struct PairStream {
    /// The wired interface of this machine that the stream goes out on. Nothing is sent on any other.
    #[arg(value_name = "IF")]
    pub interface: String,
    /// The interface of the other machine that it comes in on [default: the one of the same name].
    #[arg(long, value_name = "IF")]
    pub far_interface: Option<String>,
    /// What the listener there takes frames from [default: socket].
    #[arg(long, value_name = "FROM")]
    pub far_receive: Option<StreamReceive>,
    /// With xdp: the queue of its interface that it has [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(QUEUE_MAX)))]
    pub far_queue: Option<u32>,
    /// What the stream is, and how its ends work.
    #[command(flatten)]
    pub how: Streaming,
}

impl PairStream {
    /// How the listener has AF_XDP.
    pub fn xdp(&self) -> Option<ListenXdp> {
        self.far_receive.and_then(StreamReceive::xdp)
    }
}
