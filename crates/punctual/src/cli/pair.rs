//! Options of `pair`.

use std::path::PathBuf;

use campaign::probe::{
    interrupt::SourceName,
    round_trip::Address,
    xdp::{QUEUE_MAX, XdpMode},
};
use clap::{Args, Subcommand};
use loads::LoadSpec;
use machine::{CpuList, nic::NicSettings};
use record::FarAsked;
use sys::sched::Policy;

use super::{
    Extent, InterruptOptions, OutputOptions, RecordOptions, RoundTripOptions, StreamOptions, StreamReceive, Transport,
    duration,
};
use crate::exit::Usage;

/// Options of `pair`.
#[derive(Debug, Args)]
pub struct Pair {
    /// The other machine, HOST or USER@HOST.
    pub host: String,
    /// Connect with this shell command.
    ///
    /// Words are quoted as in a shell.
    #[arg(long, value_name = "COMMAND", default_value = "ssh", global = true)]
    pub ssh: String,
    /// Copy this binary there [default: this program].
    ///
    /// For another architecture, the default is punctual-ARCHITECTURE in the folder of this program.
    #[arg(long, value_name = "FILE", global = true)]
    pub far_binary: Option<PathBuf>,
    /// Start punctual with this command, without a copy.
    ///
    /// The command runs on the other machine.
    #[arg(long, value_name = "COMMAND", global = true, conflicts_with = "far_binary")]
    pub far_command: Option<String>,
    /// Start it with `sudo -n`, which asks no password.
    #[arg(long, global = true)]
    pub far_sudo: bool,
    /// Options of the far end.
    #[command(flatten)]
    pub far: FarOptions,
    /// The measurement.
    #[command(subcommand)]
    pub probe: PairProbe,
}

/// Settings of the far end during the run. They are restored afterwards.
#[derive(Debug, Args)]
pub struct FarOptions {
    /// Use this far CPU [default: last of --far-shield].
    ///
    /// Without --far-shield, a listener or a thread that waits for interrupts runs on the last isolated CPU, or the last,
    /// and an echo thread on any.
    #[arg(long, value_name = "CPU", global = true)]
    pub far_cpu: Option<u32>,
    /// Run the far thread with policy fifo:N, rr:N or other.
    ///
    /// The default is fifo:90 for stream and interrupt, and fifo:97 for udp.
    #[arg(long, value_name = "POLICY", global = true)]
    pub far_policy: Option<Policy>,
    /// Run this load there, like --load; repeatable.
    #[arg(long = "far-load", value_name = "LOAD", global = true)]
    pub far_loads: Vec<LoadSpec>,
    /// Run far loads on these CPUs.
    ///
    /// The default is the CPU of the thread, or those outside --far-shield.
    #[arg(long, value_name = "LIST", global = true)]
    pub far_load_cpus: Option<CpuList>,
    /// Move other work off these far CPUs, like --shield.
    #[arg(long, value_name = "LIST", global = true)]
    pub far_shield: Option<CpuList>,
    /// Keep the CPU of the far thread out of idle states.
    #[arg(long, global = true)]
    pub far_hold_cpu_awake: bool,
    /// Change settings of the far interface, like --nic.
    #[arg(long, value_name = "WHAT=VALUE,...", global = true)]
    pub far_nic: Option<NicSettings>,
    /// Run far interrupts at priority N, 1 to 99.
    ///
    /// Those of the far interface, or of --source.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99), global = true)]
    pub far_irq_priority: Option<u8>,
}

impl FarOptions {
    /// An error for --far-load-cpus without a load.
    pub fn check(&self) -> Result<(), Usage> {
        match &self.far_load_cpus {
            Some(cpus) if self.far_loads.is_empty() => Err(Usage(format!(
                "--far-load-cpus {cpus} has no effect without a load: add --far-load, e.g. --far-load cpu"
            ))),
            _ => Ok(()),
        }
    }

    /// The request to the far end. `default_policy` applies without --far-policy.
    pub fn request(&self, default_policy: Policy) -> FarAsked {
        FarAsked {
            policy: self.far_policy.unwrap_or(default_policy).to_string(),
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

/// The measurements between two machines.
#[derive(Debug, Subcommand)]
pub enum PairProbe {
    /// Measure the round-trip time of UDP datagrams; see `measure udp` for details.
    ///
    /// Examples:
    ///   punctual pair root@board-b udp --duration 1m
    ///   punctual pair pi@board-b --far-sudo udp --to 192.0.2.2 --period 250us
    #[command(verbatim_doc_comment)]
    Udp(Box<PairUdp>),
    /// Measure both ends of a stream from this machine to the other; see `measure stream` for details.
    ///
    /// Examples:
    ///   punctual pair root@board-b stream eth0 --duration 1m
    ///   punctual pair root@board-b stream eth0 --far-interface end0 --far-shield 3
    #[command(verbatim_doc_comment)]
    Stream(Box<PairStream>),
    /// Measure interrupts of the other machine; see `measure interrupt` for details.
    ///
    /// The other machine measures; the record is written here. An outside judge (--judge) is connected to this
    /// machine, so that its serial line is no work for the measured one.
    ///
    /// Examples:
    ///   punctual pair root@board-b interrupt --source gpio:0/17 --drive 0/27
    ///   punctual pair root@board-b interrupt --source hpet --duration 1m
    #[command(verbatim_doc_comment)]
    Interrupt(Box<PairInterrupt>),
}

/// Options of `pair udp`.
#[derive(Debug, Args)]
pub struct PairUdp {
    /// Send to this address [default: that of ssh, 7125].
    ///
    /// If the port is in use, another one is chosen.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub to: Option<Address>,
    /// Allow IP fragmentation of datagrams above one frame.
    #[arg(long)]
    pub allow_fragments: bool,
    /// The way through this machine.
    #[command(flatten)]
    pub transport: Transport,
    /// By xdp, xdp-zerocopy, xdp-generic [default: socket].
    ///
    /// The far end answers by AF_XDP, past the network stack of the far machine, on its interface to this one.
    #[arg(long, value_name = "HOW")]
    pub far_transport: Option<StreamReceive>,
    /// With xdp, use this far interface queue [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(QUEUE_MAX)))]
    pub far_queue: Option<u32>,
    /// Options shared with `measure udp`.
    #[command(flatten)]
    pub shared: RoundTripOptions,
}

/// Options of `pair stream`.
#[derive(Debug, Args)]
pub struct PairStream {
    /// Wired interface of this machine to send on.
    #[arg(value_name = "IF")]
    pub interface: String,
    /// Receive on this far interface [default: same name].
    #[arg(long, value_name = "IF")]
    pub far_interface: Option<String>,
    /// From xdp, xdp-zerocopy, xdp-generic [default: socket].
    #[arg(long, value_name = "FROM")]
    pub far_receive: Option<StreamReceive>,
    /// With xdp, use this far interface queue [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(QUEUE_MAX)))]
    pub far_queue: Option<u32>,
    /// Options shared with `measure stream`.
    #[command(flatten)]
    pub shared: StreamOptions,
}

/// Options of `pair interrupt`.
#[derive(Debug, Args)]
pub struct PairInterrupt {
    /// Wait for interrupts of this source there.
    ///
    /// With the words of `measure interrupt`; `punctual measure interrupt --list` there shows which it has.
    #[arg(long, value_name = "SOURCE")]
    pub source: SourceName,
    /// Options shared with `measure interrupt`. The GPIO lines are those of the other machine, the judge is at this one.
    #[command(flatten)]
    pub shared: InterruptOptions,
    /// Measure for this long.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub duration: u64,
    /// A spike is later than this [default: 100us or period].
    ///
    /// A wake-up that is later counts as a spike. The default is the shorter of the two.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub threshold: Option<u64>,
    /// Move its interrupts to this far CPU.
    #[arg(long, value_name = "CPU")]
    pub far_irq_cpu: Option<u32>,
    /// Judge by the limits of this profile; repeatable.
    ///
    /// A name (`punctual profiles` lists them) or a TOML file.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Compare with a reference, record or LAST; repeatable.
    ///
    /// `punctual references` lists the published figures.
    #[arg(long, value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// The record.
    #[command(flatten)]
    pub record: RecordOptions,
    /// Also write FILE; its suffix is the format; repeatable.
    ///
    /// json, csv, hgrm, hlog, html, md, xml (JUnit), lava, prom, sarif or tex; `-` prints JSON on standard output.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

impl PairUdp {
    /// AF_XDP mode of the answering end; `None` for a socket.
    ///
    /// # Errors
    /// A queue without AF_XDP.
    pub fn far_xdp(&self) -> Result<Option<XdpMode>, Usage> {
        let mode = self.far_transport.and_then(StreamReceive::xdp);
        if self.far_queue.is_some() && mode.is_none() {
            return Err(Usage("--far-queue needs xdp: leave it out, or add --far-transport xdp".to_owned()));
        }
        Ok(mode)
    }
}

impl PairStream {
    /// AF_XDP mode of the listener; `None` for a socket.
    pub fn xdp(&self) -> Option<XdpMode> {
        self.far_receive.and_then(StreamReceive::xdp)
    }
}
