//! The command line: the one definition that parsing, help, man pages and completions come from.

mod amp;
mod audio;
mod capture;
mod check;
mod common;
mod help;
mod lab;
mod measure;
mod nic;
mod noise;
mod pair;
mod placement;
mod process;
mod rig;
mod run;
mod show;
mod sound;
mod stream;
mod threads;
mod udp;

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use loads::LoadSpec;
use machine::CpuList;
use report::ColorChoice;

pub use self::{
    amp::{
        Amp, Bench as AmpBench, Devices as AmpDevices, Info as AmpInfo, ModelChoice, Play as AmpPlay,
        Render as AmpRender, Serve as AmpServe,
    },
    audio::Audio,
    capture::Capture,
    check::{Check, Nic as CheckNic},
    common::{Common, WakeUps},
    lab::Lab,
    measure::{Measure, Timer},
    nic::Nic,
    noise::Noise,
    pair::{Pair, PairStream, PairUdp, PairWhat},
    placement::{Placement, Restore},
    process::Process,
    rig::Rig,
    run::{Campaigns, Run, Validate},
    show::{BlameRecord, Machine, Profiles, References, Show, Tables},
    sound::{Latency, LatencyLoop, Sound},
    stream::{Receive as StreamReceive, Side as StreamSide, Stream, Streaming},
    threads::Threads,
    udp::{Asking, Echo, Udp},
};

/// Is this machine punctual enough for your work, what makes it late, and what should you change?
///
/// Without a command: looks at the machine, measures every CPU at rest and under load for half a minute, and says which
/// uses it can hold. Exit status: 0 pass or done, 1 error, 2 limit exceeded, 3 inconclusive, 4 invalid, 64 usage.
#[derive(Debug, Parser)]
#[command(name = "punctual", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
pub struct Cli {
    /// What to do; without it, the half-minute look at this machine.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the half-minute look.
    #[command(flatten)]
    pub quick: Quick,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure one kind of latency.
    #[command(subcommand)]
    Measure(Measure),
    /// Answer the round trips that `measure udp` sends from another machine, until Ctrl-C.
    ///
    /// Answers what `measure udp` sends and nothing else; an answer is exactly as long as what it answers.
    ///
    /// Examples:
    ///   punctual echo
    ///   punctual echo --bind 192.0.2.1:7125 --policy fifo:97 --cpu 3
    #[command(verbatim_doc_comment)]
    Echo(Echo),
    /// Measure between two machines: ssh starts the far end, and what both saw is one record.
    ///
    /// This machine asks, or talks; the other one answers, or listens. Nothing is installed there,
    /// and nothing is left: this program is copied to a temporary folder, and all goes over the one
    /// ssh connection. Without root there, its threads are not real-time: see --far-sudo.
    ///
    /// Examples:
    ///   punctual pair root@board-b udp --duration 1m
    ///   punctual pair pi@board-b --far-sudo udp --to 192.0.2.2 --period 250us
    ///   punctual pair root@board-b stream eth0 --far-interface end0
    ///   punctual pair --ssh 'ssh -p 2222' root@board-b udp
    ///   punctual pair root@board-b --far-binary dist/punctual-aarch64 udp
    #[command(verbatim_doc_comment)]
    Pair(Box<Pair>),
    /// Say how punctual a stream was on the wire, from a capture of it (pcap, pcapng).
    ///
    /// Late packets against the grid that the stream kept, intervals and the worst gaps with their frame numbers, loss,
    /// bursts, shaping. The busiest AVTP stream unless told otherwise.
    ///
    /// Examples:
    ///   punctual capture talk.pcapng
    ///   punctual capture talk.pcapng --profile avb-class-a --record talk
    ///   punctual capture trip.pcap --udp 7000 --period 1ms
    #[command(verbatim_doc_comment)]
    Capture(Capture),
    /// Run a campaign: a table of scenarios, each with its record, and the table with a recommendation.
    ///
    /// Examples:
    ///   punctual run cnc-matrix --dry-run
    ///   punctual run vim3l-ladder --duration 5s
    ///   punctual run my-campaign.toml --dir records
    #[command(verbatim_doc_comment)]
    Run(Run),
    /// Check campaign files: every mistake with its line and column, and the nearest word that is right.
    Validate(Validate),
    /// List the campaigns that ship with punctual, or print one.
    Campaigns(Campaigns),
    /// Show a run record, or export it in other formats.
    Show(Show),
    /// Say who made the spikes of a run, from its record.
    ///
    /// Examples:
    ///   punctual blame RUN.punctual.json
    ///   punctual blame RUN.punctual.json --around 1
    ///   punctual blame RUN.punctual.json --export trace.json
    #[command(verbatim_doc_comment)]
    Blame(BlameRecord),
    /// Say what this machine is and how it is set, and what to change.
    Machine(Machine),
    /// Play models of guitar amplifiers: NAM, GuitarML, AIDA-X.
    #[command(subcommand)]
    Amp(Amp),
    /// Measure how long sound is on its way through a card.
    #[command(subcommand)]
    Latency(Latency),
    /// Check one part of this machine closely.
    #[command(subcommand)]
    Check(Check),
    /// List the profiles: uses with their limits, and where each limit comes from.
    Profiles(Profiles),
    /// List the references: figures that others published, to lay beside your own with --against.
    References(References),
    /// List the loads and their options.
    Loads,
    /// Put back what a killed run had changed on this machine: shielded CPUs, idle states.
    ///
    /// Each measurement does so when it starts, too.
    Restore(Restore),
    /// Boot a kernel image in a small guest and measure it there: a regression test for who builds kernels.
    ///
    /// Time is virtual unless told otherwise: it passes with each instruction, so that figures repeat within microseconds
    /// whatever else the host does. The exit status is the guest's.
    ///
    /// Examples:
    ///   punctual lab --kernel arch/x86/boot/bzImage
    ///   punctual lab --kernel bzImage -- measure timer --duration 10s --load cpu
    ///   punctual lab --kernel arch/arm64/boot/Image --binary dist/punctual-aarch64
    #[command(verbatim_doc_comment)]
    Lab(Lab),
    /// Write man pages, shell completions or the record's JSON Schema.
    #[command(subcommand)]
    Generate(Generate),
    /// A load's child process.
    #[command(name = loads::WORKER_COMMAND, hide = true)]
    Load(Load),
    /// The far end of `pair`.
    #[command(name = ::pair::FAR_COMMAND, hide = true)]
    Far(Far),
    /// The first process of a guest.
    #[command(name = ::guest::init::COMMAND, hide = true)]
    Guest,
}

/// Options of the half-minute look.
#[derive(Debug, Args)]
pub struct Quick {
    /// How long to measure in all.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "27s")]
    pub duration: u64,
    /// CPUs to measure, as the kernel writes a list (0,2-3); every online CPU if not given.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// How to look for the culprits of spikes.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "trace")]
    pub blame: Blame,
    /// Where the record and the report go: FILE.punctual.json and FILE.punctual.html.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Keep neither record nor report.
    #[arg(long, conflicts_with = "record")]
    pub no_record: bool,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// How to talk.
#[derive(Debug, Args, Clone, Copy)]
pub struct Talk {
    /// Print the record as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// No live view and no progress.
    #[arg(long, short)]
    pub quiet: bool,
    /// When to use colour: auto, always or never; NO_COLOR is honoured.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// How to look for the culprits of spikes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Blame {
    /// In the kernel's trace where rights and kernel allow it, else by counters.
    Auto,
    /// In the kernel's trace, or not at all.
    Trace,
    /// As trace, with every section that turns interrupts or preemption off, where the kernel tells them; costly.
    Deep,
    /// By counters of interrupts, softirqs, stolen time and page faults: a likely culprit.
    Counters,
    /// Not at all.
    Off,
}

impl From<Blame> for blame::BlameMode {
    fn from(how: Blame) -> Self {
        match how {
            Blame::Auto => Self::Auto,
            Blame::Trace => Self::Trace,
            Blame::Deep => Self::Deep,
            Blame::Counters => Self::Counters,
            Blame::Off => Self::Off,
        }
    }
}

/// When to use colour.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<Color> for ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

/// What to generate.
#[derive(Debug, Subcommand)]
pub enum Generate {
    /// Man pages, one a command.
    Man {
        /// Folder to write them to.
        dir: PathBuf,
    },
    /// Completions for a shell, on standard output.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// The JSON Schema of a document, on standard output.
    Schema {
        /// The run record, or the document of a campaign.
        #[arg(default_value = "run")]
        of: Document,
    },
}

/// A document that punctual writes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Document {
    /// The run record.
    Run,
    /// The document of a campaign.
    Campaign,
}

/// A load's child process.
#[derive(Debug, Args)]
pub struct Load {
    /// The load.
    pub spec: LoadSpec,
    /// CPUs it may use.
    #[arg(long)]
    pub cpus: CpuList,
}

/// The far end of `pair`.
#[derive(Debug, Args)]
pub struct Far {
    /// Say which version and build this is, and end.
    #[arg(long)]
    pub identify: bool,
    /// Wait for the end of this far end, which gives it as standard input, and put back what it left changed.
    #[arg(long, value_name = "PID")]
    pub mend: Option<u32>,
    /// The folder that this program was copied to, to be removed.
    pub folder: Option<PathBuf>,
}

/// Parses the command line. Usage errors end the process with status 64, help and version with 0.
pub fn parse() -> anyhow::Result<Cli> {
    // The kernel hands on every argument that it does not know, in front of ours.
    if ::guest::init::is_init() {
        return Ok(Cli::parse_from(["punctual", ::guest::init::COMMAND]));
    }
    definition().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| {
        // Help that cannot be printed has no one to read it.
        let _ = error.print();
        std::process::exit(if error.use_stderr() { 64 } else { 0 });
    })
}

/// The definition, with its help as it is shown.
pub fn definition() -> clap::Command {
    help::flowing(Cli::command())
}

fn duration_or_zero(text: &str) -> Result<u64, String> {
    analysis::duration::parse_ns(text).map_err(|error| error.to_string())
}

fn duration(text: &str) -> Result<u64, String> {
    match duration_or_zero(text)? {
        0 => Err("must be longer than 0, as 10s".to_owned()),
        duration_ns => Ok(duration_ns),
    }
}

fn period(text: &str) -> Result<u64, String> {
    let period_ns = duration_or_zero(text)?;
    if (1..=campaign::probe::PERIOD_MAX_NS).contains(&period_ns) {
        Ok(period_ns)
    } else {
        Err("must be longer than 0 and at most 1h, as 1ms".to_owned())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_consistent() {
        super::definition().debug_assert();
    }
}
