//! Definition of the command line. Parsing, help, man pages and completions are generated from it.

mod amp;
mod audio;
mod capture;
mod check;
mod common;
mod compare;
mod evl;
mod help;
mod interrupt;
mod judge;
mod lab;
mod measure;
pub mod mistakes;
mod names;
mod nic;
mod noise;
mod options;
mod pair;
mod placement;
mod pod;
mod process;
mod prove;
mod rig;
mod round_trip;
mod run;
mod setup;
mod show;
mod sound;
mod stream;
mod synonyms;
mod threads;
mod traffic_class;
mod tune;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{
    Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
    builder::{PathBufValueParser, TypedValueParser},
    error::ErrorKind,
};
use loads::LoadSpec;
use machine::CpuList;
use record::visible::Passes;
use report::ColorChoice;

use crate::{
    exit::{self, USAGE},
    last::{LAST, campaign_in, newest_result, record_named, record_of_report},
    output,
};

pub use self::{
    amp::{
        Amp, Bench as AmpBench, Devices as AmpDevices, Info as AmpInfo, Midi, Play as AmpPlay, Render as AmpRender,
        Serve as AmpServe,
    },
    audio::Audio,
    capture::{Capture, TiedClock},
    check::{Check, CheckMachine, CheckPart, FailOn, NIC_PERIOD, Nic as CheckNic},
    common::{Common, RecordOptions, Rounds, WakeUps},
    compare::{Compare, FailIf},
    evl::{Evl, EvlContext, EvlGravity},
    interrupt::{Interrupt, InterruptOptions},
    judge::{Judge, JudgeServe},
    lab::Lab,
    measure::*,
    names::{with_files, with_names},
    nic::Nic,
    noise::Noise,
    pair::{Pair, PairInterrupt, PairProbe, PairStream, PairUdp},
    placement::{Placement, Restore},
    pod::{LatencyTest, Pod},
    process::{PeriodOf, Process},
    prove::Prove,
    rig::{ModelChoice, Rig},
    round_trip::{Echo, EchoOptions, Mirror, Ping, RoundTrip, RoundTripOptions, Transport, Udp},
    run::{Campaigns, Run, Validate},
    setup::Setup,
    show::{BlameRecord, Import, Loads, Machine, Profiles, References, Show, Snapshot, Tables},
    sound::{Latency, LatencyLoop, Sound},
    stream::{Receive as StreamReceive, SentStampsChoice, Side as StreamSide, Stream, StreamOptions, Streams},
    threads::Threads,
    tune::Tune,
};

/// Columns of the widest help page.
const HELP_WIDTH_MAX: usize = 100;

/// Is this machine punctual enough for your work, what makes it late, and what should you change?
///
/// Without a command: inspects the machine, measures every CPU at rest and under load for half a minute, and lists the
/// uses whose limits it meets. Exit status: 0 pass or done, 1 error, 2 limit exceeded, 3 inconclusive, 4 invalid, 64
/// usage.
///
/// Examples:
///   punctual --duration 5s
///   punctual measure timer --duration 1m --load cpu
#[derive(Debug, Parser)]
#[command(name = "punctual", version, verbatim_doc_comment, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// The command; without it, the half-minute check of this machine.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the half-minute check.
    #[command(flatten)]
    pub quick: Quick,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure one kind of latency.
    ///
    /// Examples:
    ///   punctual measure timer --duration 1m
    ///   punctual measure noise --cpus 0 --duration 10s
    #[command(verbatim_doc_comment)]
    #[command(subcommand)]
    Measure(Measure),
    /// Echo the datagrams of `measure udp` until Ctrl-C.
    ///
    /// Ignores all other datagrams. An answer is exactly as long as the request.
    ///
    /// Examples:
    ///   punctual echo
    ///   punctual echo --bind 192.0.2.1:7125 --policy fifo:97 --cpu 3
    #[command(verbatim_doc_comment)]
    Echo(Echo),
    /// Send the frames of `measure round-trip` back until Ctrl-C.
    ///
    /// Exchanges source and destination address and keeps VLAN tag and length. Ignores all other frames.
    ///
    /// Examples:
    ///   sudo punctual mirror eth0
    ///   sudo punctual mirror eth0 --ethertype 0x88b6 --cpu 3
    #[command(verbatim_doc_comment)]
    Mirror(Mirror),
    /// Measure between two machines; ssh starts the far end.
    ///
    /// One record contains the results of both machines.
    /// This machine sends, the other one answers or receives. Nothing is installed on it: punctual is
    /// copied to a temporary folder, which is removed at the end, and uses one ssh connection only.
    /// Without root its threads are not real-time: see --far-sudo.
    ///
    /// Examples:
    ///   punctual pair root@board-b udp --duration 1m
    ///   punctual pair root@board-b interrupt --source gpio:0/17 --drive 0/27
    #[command(verbatim_doc_comment)]
    Pair(Box<Pair>),
    /// Analyse the timing of a stream in a capture file (pcap, pcapng).
    ///
    /// Reports late packets (relative to the stream's own grid), intervals, the worst gaps with their frame numbers,
    /// loss, bursts and traffic shaping. Analyses the AVTP stream with the most frames unless an option selects
    /// another.
    ///
    /// Examples:
    ///   punctual capture talk.pcapng --profile avb-class-a
    ///   punctual capture trip.pcap --udp 7000 --period 1ms
    #[command(verbatim_doc_comment)]
    Capture(Capture),
    /// Run a campaign: measure a table of scenarios, and recommend one.
    ///
    /// Examples:
    ///   punctual run cnc-matrix --dry-run
    ///   punctual run vim3l-ladder --duration 5s --dir records
    #[command(verbatim_doc_comment)]
    Run(Run),
    /// Check campaign files, with line and column of every mistake.
    ///
    /// Examples:
    ///   punctual validate cnc-matrix
    ///   punctual validate my-campaign.toml --json
    #[command(verbatim_doc_comment)]
    Validate(Validate),
    /// List the built-in campaigns, or print one.
    ///
    /// Examples:
    ///   punctual campaigns
    ///   punctual campaigns cnc-matrix
    #[command(verbatim_doc_comment)]
    Campaigns(Campaigns),
    /// Show a run record, or export it in other formats.
    ///
    /// Examples:
    ///   punctual show LAST --full
    ///   punctual show RUN.punctual.json --export RUN.html
    #[command(verbatim_doc_comment)]
    Show(Show),
    /// Compare two sides of records, and say which is more punctual.
    ///
    /// Each record is a round, because two runs of one machine differ, too: measure about 10 of each side, and alternate the
    /// sides. Conditions that differ are listed.
    ///
    /// Examples:
    ///   punctual compare old-*.punctual.json -- new-*.punctual.json
    ///   punctual compare stock/ -- tuned/ --fail-if worse
    #[command(verbatim_doc_comment)]
    Compare(Compare),
    /// Show the causes of the spikes of a run, from its record.
    ///
    /// Examples:
    ///   punctual blame LAST --around 1
    ///   punctual blame RUN.punctual.json --export trace.json
    #[command(verbatim_doc_comment)]
    Blame(BlameRecord),
    /// Show the hardware, kernel and configuration of this machine.
    ///
    /// `punctual check` says which settings cause lateness.
    ///
    /// Examples:
    ///   punctual machine
    ///   punctual machine --full --json
    #[command(verbatim_doc_comment)]
    Machine(Machine),
    /// Copy what `check` reads, to send it to somebody.
    ///
    /// The archive contains no host or user names, hardware addresses, serial numbers and UUIDs.
    ///
    /// Examples:
    ///   punctual snapshot
    ///   sudo punctual snapshot -o board.tar.zst
    #[command(verbatim_doc_comment)]
    Snapshot(Snapshot),
    /// Play models of guitar amplifiers: NAM, GuitarML, AIDA-X.
    ///
    /// Examples:
    ///   punctual amp devices
    ///   punctual amp play --device hw:USB --model deluxe.nam --cab 4x12.wav
    #[command(verbatim_doc_comment)]
    #[command(subcommand)]
    Amp(Amp),
    /// Measure the latency of a sound card.
    ///
    /// Examples:
    ///   punctual latency loop --device hw:USB
    ///   punctual latency loop --device hw:0 --frames 32 --periods 3 --input 2
    #[command(verbatim_doc_comment)]
    #[command(subcommand)]
    Latency(Latency),
    /// Use an outside judge, a board that measures response times.
    ///
    /// Examples:
    ///   punctual judge serve /dev/ttyACM0
    ///   punctual judge serve /dev/ttyUSB0,115200 --bind 192.0.2.1
    #[command(verbatim_doc_comment)]
    #[command(subcommand)]
    Judge(Judge),
    /// List the settings that cause lateness, and what to change.
    ///
    /// It changes nothing. Exit status: 0 no finding as bad as --fail-on, 2 one is.
    ///
    /// Examples:
    ///   punctual check --for audio-48k-64
    ///   punctual check --explain cpu.governor
    #[command(verbatim_doc_comment)]
    Check(Check),
    /// Calibrate the EVL core (Xenomai 4).
    ///
    /// Examples:
    ///   sudo punctual evl gravity
    ///   sudo punctual evl gravity --set
    #[command(verbatim_doc_comment)]
    #[command(subcommand)]
    Evl(Evl),
    /// List the profiles: uses with their limits and the source of each limit.
    ///
    /// Examples:
    ///   punctual profiles
    ///   punctual profiles avb-class-a
    #[command(verbatim_doc_comment)]
    Profiles(Profiles),
    /// Turn results of other tools into records.
    ///
    /// It reads cyclictest, oslat, hwlatdetect, rtla, rteval, latmus, Xenomai latency, jitterdebugger, stress-ng, sockperf,
    /// LinuxCNC, RTC-Testbench, isochron, LatencyMon, LAVA, HdrHistogram and tables.
    /// Caveats say what the tool lost or mixed. `show` and --against read such
    /// files directly.
    ///
    /// Examples:
    ///   punctual import cyclictest.json
    ///   punctual import hist-*.txt --quiet
    #[command(verbatim_doc_comment)]
    Import(Import),
    /// List the published figures that --against compares with.
    ///
    /// Examples:
    ///   punctual references
    ///   punctual references vim3l-evl
    #[command(verbatim_doc_comment)]
    References(References),
    /// List the loads and their options.
    ///
    /// Examples:
    ///   punctual loads net
    ///   punctual measure timer --duration 10s --load cpu --load switch
    #[command(verbatim_doc_comment)]
    Loads(Loads),
    /// Give ordinary users the rights for a real-time verdict.
    ///
    /// Shows the change, asks, and makes it only after yes: a file in /etc/security/limits.d, or the capabilities of
    /// this binary.
    ///
    /// Examples:
    ///   sudo punctual setup --account alice
    ///   sudo punctual setup --undo --yes
    #[command(verbatim_doc_comment)]
    Setup(Setup),
    /// Change settings of this machine for real-time work, and undo it.
    ///
    /// Shows what would change, from which value to which, with effect and risk. --yes makes the changes, after it has
    /// written the old values to a journal; --revert restores them, also after a crash. Kernel arguments are printed, never
    /// written.
    ///
    /// Examples:
    ///   sudo punctual tune --prove --duration 30m
    ///   sudo punctual tune --cpus 3 --yes
    #[command(verbatim_doc_comment)]
    Tune(Tune),
    /// Restore settings that a killed run left changed.
    ///
    /// They are those of CPUs, interrupts, network interfaces and others. Each measurement also does this when it
    /// starts. Only this command also restores what `punctual tune --yes` and `punctual evl gravity --set` changed.
    ///
    /// Examples:
    ///   punctual restore
    ///   punctual restore --json
    #[command(verbatim_doc_comment)]
    Restore(Restore),
    /// Boot a kernel in a small guest and measure it.
    ///
    /// Time is virtual by default: it advances with each instruction, so that results repeat within microseconds under
    /// any load of the host. The exit status is that of the guest.
    ///
    /// Examples:
    ///   punctual lab --kernel arch/x86/boot/bzImage
    ///   punctual lab --kernel bzImage -- measure timer --duration 10s --load cpu
    #[command(verbatim_doc_comment)]
    Lab(Lab),
    /// Run a latency test of OpenShift in a pod, with the variables that it reads.
    ///
    /// LATENCY_TEST_RUNTIME is the duration in seconds [default: 300], MAXIMUM_LATENCY the latency in us that must not be
    /// reached (CYCLICTEST_MAXIMUM_LATENCY and OSLAT_MAXIMUM_LATENCY precede it), LATENCY_TEST_CPUS the number of CPUs
    /// [default: those of the pod], and LATENCY_TEST_DELAY a time in seconds to wait before [default: 0]. All CPUs but the
    /// first are measured. Exit status: 0 below the limit, 2 not below, 3 ended early, 4 invalid.
    ///
    /// Examples:
    ///   LATENCY_TEST_RUNTIME=600 MAXIMUM_LATENCY=20 punctual pod
    ///   MAXIMUM_LATENCY=20 punctual pod cyclictest --load cpu --export result.xml
    #[command(verbatim_doc_comment)]
    Pod(Pod),
    /// Write man pages, shell completions, tables or JSON Schemas.
    ///
    /// Examples:
    ///   punctual generate man man
    ///   punctual generate completions bash
    #[command(verbatim_doc_comment)]
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

/// Options of the half-minute check.
#[derive(Debug, Args)]
pub struct Quick {
    /// Measure for this long in total.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "27s")]
    pub duration: u64,
    /// Measure these CPUs, e.g. 0,2-3 [default: all online].
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Judge by this profile instead of all; repeatable.
    ///
    /// A name (`punctual profiles` lists them) or a TOML file. Without the option, the answer says which of the uses for
    /// every machine it holds.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Causes by trace, deep, counters, off [default: auto].
    ///
    /// --blame without a value means trace.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "trace")]
    pub blame: Blame,
    /// The record and the report.
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

/// Options of the output on the terminal.
#[derive(Debug, Args, Clone, Copy)]
pub struct OutputOptions {
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
    /// Print only the first sentence, without progress.
    #[arg(long, short)]
    pub quiet: bool,
    /// Use colour: auto, always or never.
    ///
    /// auto uses colour on a terminal, unless NO_COLOR is set.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// Method of finding the causes of spikes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Blame {
    /// Kernel trace if kernel and privileges allow it, otherwise counters.
    Auto,
    /// Kernel trace only.
    Trace,
    /// Kernel trace with all sections that disable interrupts or preemption, if the kernel has these events; high
    /// overhead.
    Deep,
    /// Counters of interrupts, softirqs, stolen time and page faults: only a likely cause.
    Counters,
    /// No search for causes.
    Off,
}

impl From<Blame> for blame::BlameMode {
    fn from(method: Blame) -> Self {
        match method {
            Blame::Auto => Self::Auto,
            Blame::Trace => Self::Trace,
            Blame::Deep => Self::Deep,
            Blame::Counters => Self::Counters,
            Blame::Off => Self::Off,
        }
    }
}

/// The extent of the printed result.
#[derive(Debug, Args, Clone, Copy)]
pub struct Extent {
    /// Print all figures instead of at most 20 lines.
    #[arg(long, conflicts_with = "quiet")]
    pub full: bool,
}

/// Use of colour.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
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

/// Options of `generate`.
#[derive(Debug, Subcommand)]
pub enum Generate {
    /// Write one man page for each command.
    ///
    /// Examples:
    ///   punctual generate man man
    ///   punctual generate man /usr/local/share/man/man1
    #[command(verbatim_doc_comment)]
    Man {
        /// Output folder; created if missing.
        dir: PathBuf,
    },
    /// Print the completions of a shell on standard output.
    ///
    /// Examples:
    ///   punctual generate completions bash
    ///   punctual generate completions zsh
    #[command(verbatim_doc_comment)]
    Completions {
        /// Name of the shell.
        shell: clap_complete::Shell,
    },
    /// Print the page docs/options.md, a table of all options, on standard output.
    ///
    /// Examples:
    ///   punctual generate options
    ///   punctual generate options > docs/options.md
    #[command(verbatim_doc_comment)]
    Options,
    /// Print the JSON Schema of a file format on standard output.
    ///
    /// Examples:
    ///   punctual generate schema run
    ///   punctual generate schema campaign
    #[command(verbatim_doc_comment)]
    Schema {
        /// Document (run).
        of: Option<Document>,
    },
}

/// A file format of punctual.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Document {
    /// The run record.
    Run,
    /// The state and results of a campaign.
    Campaign,
    /// The rounds and conclusions of `tune --prove`.
    Proof,
    /// The result of `compare`.
    Compare,
    /// The result of `compare --across`.
    Across,
}

/// A load's child process.
#[derive(Debug, Args)]
pub struct Load {
    /// Load to generate.
    pub spec: LoadSpec,
    /// Measure these CPUs, e.g. 0,2-3 [default: all online].
    #[arg(long)]
    pub cpus: CpuList,
}

/// The far end of `pair`.
#[derive(Debug, Args)]
pub struct Far {
    /// Print version and build, and exit.
    #[arg(long)]
    pub identify: bool,
    /// Wait until standard input closes because the far end PID has ended, and restore settings that it left changed.
    #[arg(long, value_name = "PID")]
    pub mend: Option<u32>,
    /// Temporary folder of this binary, to be removed.
    pub folder: Option<PathBuf>,
}

/// Parses the command line. Usage errors end the process with status 64, help and version with 0.
pub fn parse() -> anyhow::Result<Cli> {
    // The kernel passes unknown boot parameters to the first process, so the arguments are ignored.
    if ::guest::init::is_init() {
        return Ok(Cli::parse_from(["punctual", ::guest::init::COMMAND]));
    }
    Ok(parse_or_exit(&joined(std::env::args_os())))
}

/// Parses the words after `punctual measure`, as [`parse`]. No record is written.
pub fn measurement(words: &[String]) -> Measure {
    let words = ["punctual", "measure"].into_iter().chain(words.iter().map(String::as_str)).chain(["--no-record"]);
    match parse_or_exit(&joined(words.map(OsString::from))).command {
        Some(Command::Measure(measure)) => measure,
        other => unreachable!("`measure` was parsed as {other:?}"),
    }
}

fn parse_or_exit(arguments: &[OsString]) -> Cli {
    let matches = definition().try_get_matches_from(arguments);
    matches.and_then(|matches| Cli::from_arg_matches(&matches)).unwrap_or_else(|error| {
        std::process::exit(print(&with_page(error, arguments), arguments));
    })
}

/// The error, with the help page if it is one. Pages are only made if one is printed.
fn with_page(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let is_full = match error.kind() {
        ErrorKind::DisplayHelp => !arguments.iter().take_while(|word| *word != "--").any(is_short_help),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => false,
        _ => return error,
    };
    let width = report::terminal::width().min(HELP_WIDTH_MAX);
    help::with_pages(definition(), is_full, width).try_get_matches_from(arguments).err().unwrap_or(error)
}

/// True for -h, also among other short options, e.g. -qh.
fn is_short_help(word: &OsString) -> bool {
    let text = word.to_string_lossy();
    text.strip_prefix('-').is_some_and(|flags| !flags.starts_with('-') && flags.contains('h'))
}

/// The arguments, in which `--blame off` is `--blame=off`: the value is optional, so the definition needs the sign. The `--`
/// of `compare` is an option, so that others can follow it.
fn joined(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut is_over = false;
    for argument in arguments {
        let is_of_compare = all.get(1).is_some_and(|command| command == "compare");
        let is_mode = argument.to_str().is_some_and(|text| Blame::from_str(text, false).is_ok());
        match all.last_mut() {
            Some(last) if !is_over && is_mode && last == "--blame" => {
                last.push("=");
                last.push(argument);
            }
            _ if argument == "--" && is_of_compare => all.push("--versus".into()),
            _ => {
                // Behind it are the words of another program.
                is_over |= argument == "--";
                all.push(argument);
            }
        }
    }
    all
}

/// Prints help, the version, or an error, and returns the exit status.
fn print(error: &clap::Error, arguments: &[OsString]) -> i32 {
    if error.use_stderr() {
        let message = mistakes::sentence(error, arguments);
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            say_part!(Passes::Text, "{}\n", error.render());
        }
        // Without clap's colours, usage, and the names that it thinks similar.
        say!("error: {message}");
        output::print_json_error(&message, USAGE);
        return USAGE.into();
    }
    match output::help(error) {
        Ok(()) => 0,
        Err(error) => {
            say!("error: {}", exit::message(&error));
            exit::FAILED.into()
        }
    }
}

/// The definition.
pub fn definition() -> clap::Command {
    help::arranged(Cli::command())
}

/// The page with all options, docs/options.md.
pub fn options_page() -> String {
    options::page(definition())
}

/// The path of a record or campaign; `LAST` is the newest one in the current folder, and a folder is its campaign.
fn record_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path {
        path if path == Path::new(LAST) => newest_result(),
        path if path.is_dir() => campaign_in(&path),
        path if path.extension().is_some_and(|suffix| suffix == "html") => Err(record_of_report(&path)),
        path if path.exists() => Ok(path),
        path if path.as_os_str().eq_ignore_ascii_case(LAST) => newest_result(),
        path => Ok(record_named(&path).unwrap_or(path)),
    })
}

fn duration_or_zero(text: &str) -> Result<u64, String> {
    analysis::duration::parse_ns(text).map_err(|error| error.to_string())
}

fn duration(text: &str) -> Result<u64, String> {
    match duration_or_zero_without_unit(text)? {
        0 => Err("must be longer than 0, e.g. 10s or 10us".to_owned()),
        duration_ns => Ok(duration_ns),
    }
}

fn period(text: &str) -> Result<u64, String> {
    let period_ns = duration_or_zero_without_unit(text)?;
    if (campaign::probe::PERIOD_MIN_NS..=campaign::probe::PERIOD_MAX_NS).contains(&period_ns) {
        Ok(period_ns)
    } else {
        Err("must be 1us to 1h, e.g. 1ms".to_owned())
    }
}

/// The duration. A 0 without a unit is no error here, because its message would recommend a 0 with a unit.
fn duration_or_zero_without_unit(text: &str) -> Result<u64, String> {
    if text.trim().parse() == Ok(0.0) { Ok(0) } else { duration_or_zero(text) }
}

#[cfg(test)]
mod documented;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        definition().debug_assert();
    }

    #[test]
    fn examples_of_times_are_accepted() {
        for zero in ["0", "0.0", "0s"] {
            assert_eq!(duration(zero), Err("must be longer than 0, e.g. 10s or 10us".to_owned()), "{zero}");
            assert_eq!(period(zero), Err("must be 1us to 1h, e.g. 1ms".to_owned()), "{zero}");
        }
        assert!(period("200").unwrap_err().ends_with("write for example 200us, 200ms or 200s"));
    }

    #[test]
    fn a_known_mistake_is_one_sentence() {
        let message = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            mistakes::sentence(&definition().try_get_matches_from(&words).unwrap_err(), &words)
        };
        assert_eq!(
            message("punctual measure timer --interval=200"),
            "unexpected argument '--interval' found: use --period TIME, such as --period 1ms"
        );
        let udp = message("punctual measure udp");
        assert_eq!(
            udp,
            "the following required arguments are missing: <HOST[:PORT]>: name the machine that runs `punctual echo`, or \
             measure on this one with --self"
        );
        assert_eq!(
            message("punctual measure timer --nonsense"),
            "unexpected argument '--nonsense' found: `punctual measure timer --help` lists its options"
        );
        for (line, expected) in [
            ("mesure", "unrecognized subcommand 'mesure': use `punctual measure`"),
            ("nonsense", "unrecognized subcommand 'nonsense': `punctual --help` lists the commands"),
            ("show a.html", "a.html is a report, which cannot be read: name its record, a *.punctual.json file"),
            (
                "compare a --versus b --versus c",
                "`compare` has two sides: write `--` only once; --across CONDITION compares more",
            ),
            ("measure timer --full --quiet", "--full cannot be used with --quiet: leave one out"),
            (
                "measure process firefox",
                "`firefox` is not a process ID: start the program with `punctual measure process -- firefox`, or give \
                 the ID of a running one",
            ),
        ] {
            assert_eq!(message(&format!("punctual {line}")), expected);
        }
    }

    #[test]
    fn a_mode_of_blame_needs_no_sign() {
        let joined = |line: &str| joined(line.split(' ').map(OsString::from)).join(" ".as_ref()).into_string().unwrap();
        assert_eq!(joined("punctual measure timer --blame off -q"), "punctual measure timer --blame=off -q");
        let unchanged =
            ["measure process --blame 4711", "blame off", "lab -- measure --blame off", "--blame=off --blame"];
        assert_eq!(unchanged.map(joined), unchanged);
        assert_eq!(joined("punctual compare a -- b --full -- c"), "punctual compare a --versus b --full --versus c");
    }
}
