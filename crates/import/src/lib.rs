//! Results of other tools as run records, with caveats about what the tool lost or mixed.
//!
//! | module | contents |
//! |---|---|
//! | `cells` | printed histograms, and the figures that follow from them |
//! | `command` | options in the command line of a tool |
//! | `date` | dates as tools write them |
//! | `preemption` | the preemption model of a kernel's build |
//! | `text` | the text of a file, also of packed ones and those of Windows |
//! | `log` | logs with a line for each sample, of any length |
//! | all others | a format each, named after its tool |
//!
//! A format is one file and one entry in [`FORMATS`].

mod buckets;
mod cells;
mod columns;
mod command;
mod console;
mod cyclictest;
mod date;
mod hgrm;
mod hlog;
mod hwlatdetect;
mod isochron;
mod jitterdebugger;
mod latencymon;
mod latmus;
mod lava;
mod linuxcnc;
mod log;
mod oslat;
mod preemption;
mod rt_tests;
mod rtc_testbench;
mod rteval;
mod rtla;
mod rtla_analysis;
mod rtla_top;
mod sockperf;
mod stress_ng;
mod text;
mod xenomai;

pub use cells::is_same_kind;

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use record::{
    Caveat, Figures, IMPORTED, Machine, Published, Reason, Record, SCHEMA, Scenario, State, Tool, Validity,
    file::{FileError, remedy_of_opening},
    grouped,
};

use log::Log;

/// Length of the begin of a file, bytes; a record of punctual has its schema there.
const HEAD_BYTES: usize = 200;
/// The largest file that is read, bytes; that of records. A log can be longer.
const BYTES_MAX: u64 = 128 << 20;
/// Size of the buffer of a log, bytes.
const LOG_BUFFER_BYTES: usize = 1 << 20;

/// The largest number of threads, tags or series in a file. Tools write one a CPU or thread.
const FIGURES_MAX: usize = 10_000;

/// A format of another tool.
pub trait Format: Sync {
    /// Its name for readers: `cyclictest, text`.
    fn name(&self) -> &'static str;

    /// True if the text is in this format.
    fn is_it(&self, text: &str) -> bool;

    /// The end of a text of this format, which shows if its last number can be cut.
    fn ending(&self) -> Ending;

    /// Reads it. `unit` is that of its times if the format does not say it.
    ///
    /// # Errors
    /// The first mistake.
    fn read(&self, text: &str, unit: Option<Unit>) -> Result<Imported, Mistake>;
}

/// The end of the texts of a format. If a file was cut inside its last number, this number is still one, such as 12 of 1234.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A file that was cut is no whole text: it lacks a closing sign, or contradicts its totals.
    Closed,
    /// The tool ends each line, so a last line without an end was cut.
    Line,
    /// People write such files, too, often without an end of the last line.
    Any,
}

impl Ending {
    /// The caveat about a text whose last line has no end.
    ///
    /// # Errors
    /// The last number can be cut.
    fn doubt(self, text: &str) -> Result<Option<Caveat>, Mistake> {
        let is_whole = self == Self::Closed || text.ends_with(['\n', '\r']);
        let ends_in_number = text.ends_with(|last: char| last.is_ascii_digit() || ['.', ','].contains(&last));
        match (self, ends_in_number) {
            _ if is_whole => Ok(None),
            (Self::Line, true) => Err(Mistake::new(text.lines().count(), CUT_NUMBER)),
            (Self::Line, false) => Ok(Some(caveat("cut", "the last line has no end, so the file can be cut"))),
            (Self::Any, true) => Ok(Some(caveat("cut", "the last line has no end, so its last number can be cut"))),
            (Self::Any, false) | (Self::Closed, _) => Ok(None),
        }
    }
}

/// The mistake of a text that ends inside a number.
const CUT_NUMBER: &str =
    "the last line has no end, so its last number can be cut: end the line if the file is whole, or remove it";

/// The unit of the times of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl Unit {
    /// The unit in ns.
    #[must_use]
    pub const fn ns(self) -> i64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ns => "nanoseconds",
            Self::Us => "microseconds",
            Self::Ms => "milliseconds",
            Self::S => "seconds",
        }
    }

    /// The unit of a file that does not say it, with the caveat about it: `stated` by the user, or the usual one of its tool.
    fn of(stated: Option<Self>, usual: Self) -> (Self, Caveat) {
        let unit = stated.unwrap_or(usual);
        let why = match stated {
            Some(_) => "were stated with --unit",
            None => "are assumed; --unit states another unit",
        };
        (unit, caveat("units", format!("the file does not say its unit; {} {why}", unit.name())))
    }
}

/// All formats. The first one that recognises a text reads it.
pub const FORMATS: [&dyn Format; 23] = [
    &rt_tests::Json,
    &jitterdebugger::Json,
    &rteval::Summary,
    &oslat::Text,
    &rtla::Histograms,
    &rtla_top::Tables,
    &latmus::Plot,
    &console::Lines,
    &xenomai::Plot,
    &hgrm::Percentiles,
    &hlog::Intervals,
    &stress_ng::Cyclic,
    &hwlatdetect::Detected,
    &sockperf::Report,
    &linuxcnc::Lines,
    &rtc_testbench::Log,
    &isochron::Summary,
    &latencymon::Report,
    &lava::Results,
    &cyclictest::Text,
    &cyclictest::Rows,
    &buckets::Buckets,
    &columns::Columns,
];

/// The contents of a file of another tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Imported {
    /// Name of the tool: `cyclictest`; empty if the file does not say.
    pub tool: String,
    /// Version of the tool; empty if the file does not say.
    pub version: String,
    /// Command line; empty if the file does not say.
    pub command: String,
    /// Start of the measurement, as the file writes it; empty if the file does not say.
    pub started_at: String,
    /// The machine.
    pub machine: Machine,
    /// The figures of each thread.
    pub figures: Vec<Figures>,
    /// Samples and facts that the tool lost or mixed.
    pub caveats: Vec<Caveat>,
    /// Further results, in sentences.
    pub remarks: Vec<String>,
}

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1; 0 if it concerns the whole file.
    pub line: usize,
    /// The mistake.
    pub text: String,
}

impl Mistake {
    /// A mistake. A long text, which quotes a long line of the file, loses its middle.
    fn new(line: usize, text: impl Into<String>) -> Self {
        /// Characters that are kept before and after the middle.
        const KEPT: usize = 150;
        let text: String = text.into();
        let length = text.chars().count();
        if length <= 3 * KEPT {
            return Self { line, text };
        }
        let (begin, end): (String, String) =
            (text.chars().take(KEPT).collect(), text.chars().skip(length - KEPT).collect());
        Self { line, text: format!("{begin} ... {end}") }
    }
}

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file could not be read.
    #[error("cannot read {}: {source}{}", path.display(), remedy_of_opening(path, source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error from the system.
        source: io::Error,
    },
    /// No format recognises the file.
    #[error("{} is in no format that punctual reads: {}", path.display(), names())]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// The file is a record already.
    #[error("{} is a record or a document of punctual already: see it with `punctual show`", path.display())]
    Own {
        /// The file.
        path: PathBuf,
    },
    /// The file has a mistake.
    #[error("{} is not whole ({format}): {}{}", path.display(), at_line(mistake.line), mistake.text)]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The format that recognised it.
        format: &'static str,
        /// The mistake.
        mistake: Mistake,
    },
    /// A record could not be read.
    #[error(transparent)]
    Record(#[from] FileError),
}

fn at_line(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

fn names() -> String {
    let logs = [Log::Cyclictest, Log::Timerlat].map(Log::name);
    FORMATS.map(Format::name).into_iter().chain(logs).collect::<Vec<_>>().join("; ")
}

/// Reads a file of another tool into a record with [`Record::published`], named after the file. `unit` is that of files that do
/// not say theirs.
///
/// # Errors
/// [`ImportError`].
pub fn import(path: &Path, unit: Option<Unit>) -> Result<Record, ImportError> {
    if let Some(record) = log(path, unit) {
        return record;
    }
    let text = text::read(path, BYTES_MAX).map_err(|source| ImportError::Read { path: path.to_owned(), source })?;
    imported(path, &text, unit).unwrap_or_else(|| {
        let path = path.to_owned();
        Err(if is_own(&text) { ImportError::Own { path } } else { ImportError::Unknown { path } })
    })
}

/// Reads a record, or a file of another tool. `unit` is that of files that do not say theirs.
///
/// # Errors
/// [`ImportError`], except [`ImportError::Own`].
pub fn read(path: &Path, unit: Option<Unit>) -> Result<Record, ImportError> {
    log(path, unit).unwrap_or_else(|| parse(path, &text_of(path)?, unit))
}

/// Reads a file with a log of samples, of any length, in constant memory; `None` if it is none, or if it is a pipe, which
/// [`text_of`] reads.
///
/// # Errors
/// [`ImportError`].
#[must_use]
pub fn log(path: &Path, unit: Option<Unit>) -> Option<Result<Record, ImportError>> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|of| of.is_file()))?;
    let (mut file, mut head) = (text::unpacking(file).ok()?, Vec::new());
    file.by_ref().take(log::HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    let log = Log::of(&head)?;
    Some(of_log(path, log, unit, BufReader::with_capacity(LOG_BUFFER_BYTES, head.as_slice().chain(file))))
}

fn of_log(path: &Path, log: Log, unit: Option<Unit>, from: impl BufRead) -> Result<Record, ImportError> {
    let read = log.read(from, unit).map_err(|source| ImportError::Read { path: path.to_owned(), source })?;
    finished(path, log.name(), read)
}

/// The text of a record, of another document, or of another tool. It can be read only once from a pipe.
///
/// # Errors
/// If it cannot be read.
pub fn text_of(path: &Path) -> Result<String, FileError> {
    text::read(path, BYTES_MAX).map_err(|source| FileError::Read { path: path.to_owned(), source })
}

/// Reads a record, or a text of another tool, from the text of this file. JSON in an unknown format is an error of a record.
///
/// # Errors
/// The errors of [`read`], except for reading the file.
pub fn parse(path: &Path, text: &str, unit: Option<Unit>) -> Result<Record, ImportError> {
    imported(path, text, unit).unwrap_or_else(|| {
        if !text.trim_start().starts_with('{') {
            return Err(ImportError::Unknown { path: path.to_owned() });
        }
        let record = record::file::parse(text.as_bytes());
        Ok(record.map_err(|reason| FileError::NotARecord { path: path.to_owned(), reason })?)
    })
}

/// The record of a text; `None` if no format recognises it.
fn imported(path: &Path, text: &str, unit: Option<Unit>) -> Option<Result<Record, ImportError>> {
    // Editors of Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let bytes = text.as_bytes();
    if let Some(log) = Log::of(bytes.get(..log::HEAD_BYTES).unwrap_or(bytes)) {
        return Some(of_log(path, log, unit, bytes));
    }
    let format = format_of(text)?;
    Some(finished(path, format.name(), checked(format, text, unit)))
}

/// The record from the figures that a format has read; an error without any.
fn finished(path: &Path, format: &'static str, read: Result<Imported, Mistake>) -> Result<Record, ImportError> {
    let has_figure = |imported: &Imported| imported.figures.iter().any(|figures| !is_blank(figures));
    let read = read.and_then(|imported| if has_figure(&imported) { Ok(imported) } else { Err(without_figures()) });
    let invalid = |mistake| ImportError::Invalid { path: path.to_owned(), format, mistake };
    read.map(|imported| to_record(imported, path)).map_err(invalid)
}

/// True for figures without any number of a measurement.
fn is_blank(of: &Figures) -> bool {
    let times = [of.min_ns, of.mode_ns, of.p50_ns, of.p99_ns, of.max_ns, of.max_above_ns];
    let counts = [of.samples, of.missed, of.late, of.jitter_ns, of.max_gap_ns];
    times.iter().all(Option::is_none) && counts.iter().all(Option::is_none) && of.mean_ns.is_none()
}

fn without_figures() -> Mistake {
    Mistake::new(0, "it has no figure; its run may have ended early, or its lines do not end as those of the tool")
}

/// Reads a text, and makes the checks of all formats.
fn checked(format: &dyn Format, text: &str, unit: Option<Unit>) -> Result<Imported, Mistake> {
    let mut imported = format.read(text, unit)?;
    imported.caveats.extend(format.ending().doubt(text)?);
    let number = imported.figures.len();
    if number > FIGURES_MAX {
        let most = grouped(FIGURES_MAX as u64);
        let text = format!("it has {} figures, at most {most} can be imported", grouped(number as u64));
        return Err(Mistake::new(0, text));
    }
    cells::check(&imported.figures)?;
    imported.caveats.extend(of_others(format, text));
    Ok(imported)
}

/// The format of a text; `None` if no format recognises it.
#[must_use]
pub fn format_of(text: &str) -> Option<&'static dyn Format> {
    // A record is large, and each format would search it.
    if is_own(text) {
        return None;
    }
    FORMATS.into_iter().find(|format| format.is_it(text))
}

/// The caveats about the parts of a file in other formats, which are not read. Rows of two columns are also those of others.
fn of_others(format: &dyn Format, text: &str) -> impl Iterator<Item = Caveat> {
    let others =
        FORMATS[..FORMATS.len() - 1].iter().filter(move |other| other.name() != format.name() && other.is_it(text));
    others.map(|other| {
        caveat("mixed", format!("the file also contains {}, which is not imported: split the file", other.name()))
    })
}

/// True for the JSON of a record or another document of punctual.
fn is_own(text: &str) -> bool {
    text.get(..HEAD_BYTES).unwrap_or(text).contains("\"punctual.")
}

/// The name of this program, as the tool of its exports.
const OWN: &str = "punctual";
/// Reads the title of an export of punctual, which can be one of an imported file: `#[cyclictest 2.40: timer on board]`. Returns
/// the probe; `None` if the line is no title.
fn exported_by(line: &str, imported: &mut Imported) -> Option<String> {
    let (tool, rest) = line.strip_prefix("#[")?.strip_suffix(']')?.split_once(": ")?;
    let (probe, host) = rest.split_once(" on ")?;
    if tool != "unknown tool" {
        let (tool, version) = tool.rsplit_once(' ').unwrap_or((tool, ""));
        tool.clone_into(&mut imported.tool);
        version.clone_into(&mut imported.version);
    }
    let host = Some(host).filter(|host| !["", "unknown"].contains(host));
    imported.machine = Machine { hostname: host.map(str::to_owned), ..Machine::default() };
    Some(if probe.is_empty() { record::TIMER.to_owned() } else { probe.to_owned() })
}

/// The caveat of every imported record.
const NOT_MEASURED: &str = "another tool measured this, so it cannot be checked that the run went as requested";
/// The same for an export of punctual: it lacks what a check needs.
const EXPORTED: &str = "this is an export of a record, so it cannot be checked that the run went as requested";

/// The record of a file of another tool, named after the file.
#[must_use]
pub fn to_record(imported: Imported, path: &Path) -> Record {
    let Imported { tool, version, command, started_at, machine, mut figures, mut caveats, remarks } = imported;
    // The sums of all threads come first, because a comparison takes the first of equally good figures.
    figures.splice(0..0, cells::together(&figures));
    for figures in &mut figures {
        figures.tool.clone_from(&tool);
        figures.command.clone_from(&command);
        figures.started_at.clone_from(&started_at);
    }
    let (why, remedy) = match tool.as_str() {
        OWN => (EXPORTED, "read the record itself, a file .punctual.json"),
        _ => (NOT_MEASURED, "measure with punctual for a verdict"),
    };
    caveats.insert(0, caveat(IMPORTED, why));
    let empty: Vec<&str> = figures.iter().filter(|of| of.samples == Some(0)).map(|of| of.phase.as_str()).collect();
    if !empty.is_empty() {
        caveats
            .push(caveat("empty", format!("no sample of {}, so nothing is known about its latency", empty.join(", "))));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let parts = [machine.hostname.clone(), machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}"))];
    let on = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let reason = Reason { id: IMPORTED.to_owned(), text: why.to_owned(), remedy: remedy.to_owned() };
    let published = Published {
        name,
        on: if on.is_empty() { "an unnamed machine".to_owned() } else { on },
        ..Published::default()
    };
    let probe = figures.first().map(|figures| figures.probe.clone()).unwrap_or_default();
    Record {
        schema: SCHEMA.to_owned(),
        tool: Tool { name: tool, version },
        state: State::Complete,
        // Comparisons need the order of the runs in time.
        started_at: date::in_order(&started_at).unwrap_or(started_at),
        scenario: Scenario { probe, ..Scenario::default() },
        machine,
        validity: Validity { valid: false, reasons: vec![reason] },
        caveats,
        published: Some(Published { figures, remarks, ..published }),
        ..Record::default()
    }
}

/// The text of the caveat of a run that its latencies ended.
const STOPPED: &str = "a sample above a limit ended the run, so its length depends on its latencies";

/// The mistake of a file with several runs: only one of them would be read.
fn another_run(line: usize) -> Mistake {
    Mistake::new(line, "another run begins here: split the file into its runs")
}

/// A caveat of this kind.
fn caveat(kind: &str, text: impl Into<String>) -> Caveat {
    Caveat { kind: kind.to_owned(), text: text.into() }
}
