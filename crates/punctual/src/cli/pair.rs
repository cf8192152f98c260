//! Options of `pair`.

use std::path::PathBuf;

use campaign::udp::Address;
use clap::{Args, Subcommand};
use sys::sched::Policy;

use super::{Asking, Streaming};

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
    /// CPU of the thread there [default: the last isolated one, or the last, for a listener; any for round trips].
    #[arg(long, value_name = "CPU", global = true)]
    pub far_cpu: Option<u32>,
    /// Policy of the thread there: fifo:1-99, rr:1-99 or other [default: fifo:90 for a listener, fifo:97 for round trips].
    #[arg(long, value_name = "POLICY", global = true)]
    pub far_policy: Option<Policy>,
    /// What to measure.
    #[command(subcommand)]
    pub what: PairWhat,
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
    /// What the stream is, and how its ends work.
    #[command(flatten)]
    pub how: Streaming,
}
