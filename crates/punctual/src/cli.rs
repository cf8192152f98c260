//! The command line: the one definition that parsing, help, man pages and completions come from.

use std::{path::PathBuf, process};

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use loads::LoadSpec;
use machine::CpuList;
use report::ColorChoice;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
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
    /// List the profiles: uses with their limits, and where each limit comes from.
    Profiles(Profiles),
    /// List the loads and their options.
    Loads,
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
    /// The first process of a guest.
    #[command(name = lab::guest::COMMAND, hide = true)]
    Guest,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Measure {
    /// How late a thread wakes that sleeps until a deadline: what cyclictest measures.
    ///
    /// Examples:
    ///   punctual measure timer --duration 1m
    ///   punctual measure timer --cpus 2-3 --period 250us --load cache --load switch:10us
    ///   punctual measure timer --profile avb-class-a --duration 1h
    #[command(verbatim_doc_comment)]
    Timer(Box<Timer>),
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

/// Options of `measure timer`.
#[derive(Debug, Args)]
pub struct Timer {
    /// CPUs to measure, as the kernel writes a list (0,2-3); every online CPU if not given, isolated ones included.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Time between two deadlines [default: that of the profile, or 1ms].
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub period: Option<u64>,
    /// How long to measure [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<u64>,
    /// Measure so many wake-ups a CPU.
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
    /// Measure until Ctrl-C.
    #[arg(long, conflicts_with_all = ["duration", "samples"])]
    pub endless: bool,
    /// fifo:1-99, rr:1-99, deadline:RUNTIME/DEADLINE/PERIOD or other.
    #[arg(long, default_value = "fifo:90")]
    pub policy: Policy,
    /// Shift between the grids of neighbouring CPUs.
    #[arg(long, value_name = "TIME", value_parser = duration_or_zero, default_value = "0ns")]
    pub offset: u64,
    /// What runs beside the probe: cpu, cache, memory, switch:10us, timer, disk, net, irq, stress-ng:ARGS, idle; can be
    /// repeated. `punctual loads` lists them.
    #[arg(long = "load", value_name = "LOAD")]
    pub loads: Vec<LoadSpec>,
    /// CPUs that loads may use [default: the measured ones].
    #[arg(long, value_name = "LIST")]
    pub load_cpus: Option<CpuList>,
    /// A use whose limits decide the verdict, by name or as a TOML file; can be repeated. `punctual profiles` lists them.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Lateness above which a wake-up is a spike [default: 100us, or the period where that is less].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub threshold: Option<u64>,
    /// Hold the measured CPUs out of their idle states; as found if not given.
    #[arg(long)]
    pub hold_cpu_awake: bool,
    /// How to look for the culprits of spikes.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "trace")]
    pub blame: Blame,
    /// Run the kernel's own timerlat tracer beside the probe: how late a timer's interrupt comes, and how late a thread of
    /// the kernel runs then. Its threads run above the probe (FIFO 95) and delay it, so it is off unless asked for.
    #[arg(long)]
    pub timerlat: bool,
    /// End with the first wake-up that is later, and keep the kernel's trace of what led to it.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stop_on: Option<u64>,
    /// Where that trace goes, for trace-cmd and KernelShark [default: HOST-DATE-TIME.trace.dat in this folder].
    #[arg(long, value_name = "FILE", requires = "stop_on")]
    pub stop_trace: Option<PathBuf>,
    /// Shell command to run once stopped; PUNCTUAL_TRACE and PUNCTUAL_RECORD name the files.
    #[arg(long, value_name = "COMMAND", requires = "stop_on")]
    pub stop_run: Option<String>,
    /// monotonic, realtime, tai or boottime.
    #[arg(long, default_value = "monotonic")]
    pub clock: Clock,
    /// nanosleep or timerfd.
    #[arg(long, default_value = "nanosleep")]
    pub wait: Wait,
    /// Where the record goes [default: HOST-DATE-TIME.punctual.json in this folder].
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Keep no record.
    #[arg(long, conflicts_with = "record")]
    pub no_record: bool,
    /// Write the result there too, in the format of the extension: json, csv, hgrm or html; `-` is JSON on standard
    /// output; can be repeated.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
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

impl From<Blame> for blame::Asked {
    fn from(how: Blame) -> Self {
        match how {
            Blame::Auto => Self::Auto,
            Blame::Trace => Self::Only(record::BlameMode::Trace),
            Blame::Deep => Self::Only(record::BlameMode::Deep),
            Blame::Counters => Self::Only(record::BlameMode::Counters),
            Blame::Off => Self::Only(record::BlameMode::Off),
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

/// Options of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The record: a *.punctual.json file.
    pub record: PathBuf,
    /// Write it there, in the format of the extension: json, csv, hgrm or html; can be repeated.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Judge it by this profile instead of those it was made for; can be repeated.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// Options of `blame`.
#[derive(Debug, Args)]
pub struct BlameRecord {
    /// The record: a *.punctual.json file.
    pub record: PathBuf,
    /// Show one spike as a time line, by its number: 1 is the worst, and the worst are listed with their numbers.
    #[arg(long, value_name = "N")]
    pub around: Option<usize>,
    /// Write all time lines there for a viewer, as Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open.
    #[arg(long, value_name = "FILE.json")]
    pub export: Option<PathBuf>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// Options of `machine`.
#[derive(Debug, Args)]
pub struct Machine {
    /// Look at a recorded machine below this folder instead.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// Options of `profiles`.
#[derive(Debug, Args)]
pub struct Profiles {
    /// Show this one with its limits and their sources; the list if not given.
    pub name: Option<String>,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of `lab`.
#[derive(Debug, Args)]
pub struct Lab {
    /// The kernel: an x86 bzImage or vmlinux, or an arm64 Image.
    #[arg(long, value_name = "FILE")]
    pub kernel: PathBuf,
    /// CPUs of the guest; time is virtual with one alone.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: u32,
    /// Let the host's time pass in the guest.
    #[arg(long)]
    pub no_virtual_time: bool,
    /// Run on the host's own CPUs, where its /dev/kvm can do that.
    #[arg(long, conflicts_with = "no_virtual_time")]
    pub kvm: bool,
    /// More kernel arguments: "isolcpus=1 nohz_full=1".
    #[arg(long, value_name = "ARGUMENTS", default_value = "", allow_hyphen_values = true)]
    pub append: String,
    /// Main memory of the guest, MiB.
    #[arg(long, value_name = "MIB", default_value = "512", value_parser = clap::value_parser!(u32).range(64..))]
    pub memory: u32,
    /// How long the guest may take by the host's clock.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    pub timeout: u64,
    /// The static punctual to run in the guest [default: this one].
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// Where the record and the report go: FILE.punctual.json and FILE.punctual.html.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Keep neither record nor report.
    #[arg(long, conflicts_with = "record")]
    pub no_record: bool,
    /// Show what the kernel says.
    #[arg(long)]
    pub console: bool,
    /// Show only what the guest's punctual prints.
    #[arg(long, short)]
    pub quiet: bool,
    /// Arguments of the punctual in the guest; without them, the half-minute look.
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
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
    /// The JSON Schema of the run record, on standard output.
    Schema,
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

/// Parses the command line. Usage errors end the process with status 64, help and version with 0.
pub fn parse() -> anyhow::Result<Cli> {
    // The kernel hands on every argument that it does not know, in front of ours.
    if lab::guest::is_init() {
        return Ok(Cli::parse_from(["punctual", lab::guest::COMMAND]));
    }
    Cli::try_parse().map_err(|error| {
        // Help that cannot be printed has no one to read it.
        let _ = error.print();
        process::exit(if error.use_stderr() { 64 } else { 0 });
    })
}

/// The definition, for man pages and completions.
pub fn definition() -> clap::Command {
    Cli::command()
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
    if (1..=campaign::plan::PERIOD_MAX_NS).contains(&period_ns) {
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
