//! `punctual lab`: boots kernels in small guests, measures them, and saves the results on the host.

mod bisect;
mod git;
mod kernels;

use std::{
    io::{self, Stdout, Write},
    mem,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use guest::{Event, Guest, GuestError, Image, Initramfs, Outcome, Time, init::KERNEL_LOG, initramfs::PUNCTUAL};
use record::{
    Caveat, Record, file, shell,
    visible::{self, Passes, Visible},
};

use crate::{
    cli::Lab,
    exit,
    output::{self, RecordFiles},
};

const RECORD_ENDING: &str = ".punctual.json";
const REPORT_ENDING: &str = ".punctual.html";
/// The longest line of the guest, and the most that is kept with --quiet, bytes.
const LINE_MAX: usize = 64 << 10;
const SUPPRESSED_MAX: usize = 1 << 20;
/// The largest file with boot parameters, bytes. The kernel reads 2 KiB.
const PARAMETERS_MAX: u64 = 64 << 10;
/// The endings of the other files that runs write: traces, captures and exports.
const OTHER_ENDINGS: [&str; 11] =
    ["trace.dat", "pcapng", "csv", "hgrm", "hlog", "md", "xml", "lava", "prom", "sarif", "tex"];
/// The largest number of files with one of these endings.
const OTHERS_MAX: u32 = 1000;

pub fn run(options: &Lab) -> anyhow::Result<u8> {
    match (&options.bisect, options.kernels.as_slice(), options.rounds) {
        (Some(ends), ..) => bisect::run(options, ends),
        (None, [kernel], None | Some(1)) => {
            let files = options.record.files()?;
            Ok(boot(options, kernel, &files)?.status)
        }
        (None, kernels, rounds) => kernels::run(options, kernels, rounds.unwrap_or(1)),
    }
}

/// The result of a boot.
struct Booted {
    /// The exit status of punctual in the guest.
    status: u8,
    /// Its record, if it made one.
    record: Option<Record>,
}

/// Boots a kernel, prints the output of its guest, and saves its files.
fn boot(options: &Lab, kernel: &Path, files: &RecordFiles) -> anyhow::Result<Booted> {
    let job = Job::new(options, kernel, options.append_file.as_deref())?;
    if let Some(path) = &files.record {
        file::check_writable(path)?;
    }
    if !options.quiet {
        say!("booting {} ({}, {})", kernel.display(), job.image.arch, describe(&job.guest));
    }
    let mut printer = Printer { stdout: GuestStdout::new(files), stderr: GuestStderr::default() };
    let outcome = job.run(&mut |event| printer.print(event, options))?;
    let _ = printer.stdout.end();
    let status = u8::try_from(outcome.status).unwrap_or(exit::FAILED);
    if options.quiet && has_failed(status) {
        say_part!(Passes::Text, "{}", printer.stderr.suppressed);
    }
    let record = save(&outcome, files, job.guest.time)?;
    if !options.quiet {
        say!("guest   {:.1} s to boot, {:.1} s in total", outcome.boot.as_secs_f64(), outcome.wall.as_secs_f64());
        files.print_paths();
    }
    Ok(Booted { status, record })
}

/// True if punctual in the guest could not do its work.
const fn has_failed(status: u8) -> bool {
    matches!(status, exit::FAILED | exit::USAGE)
}

/// A guest with its kernel and its programs.
struct Job {
    guest: Guest,
    image: Image,
    initramfs: Initramfs,
}

impl Job {
    fn new(options: &Lab, kernel: &Path, append_file: Option<&Path>) -> anyhow::Result<Self> {
        let mut guest = guest(options);
        if let Some(path) = append_file {
            guest.append = format!("{} {}", guest.append, boot_parameters(path)?).trim().to_owned();
        }
        let image = Image::open(kernel)?;
        let binary = options.binary.clone().map_or_else(output::executable, Ok)?;
        let mut initramfs = Initramfs::new(image.arch, &binary)?;
        initramfs.command([PUNCTUAL].into_iter().map(str::to_owned).chain(options.arguments.iter().cloned()));
        Ok(Self { guest, image, initramfs })
    }

    fn run(&self, listen: &mut dyn FnMut(Event)) -> Result<Outcome, GuestError> {
        guest::run(&self.guest, &self.image, &self.initramfs, listen)
    }
}

/// The first line of an error, without the announcement of the console lines behind it.
fn in_one_line(error: &anyhow::Error) -> String {
    let text = exit::message(error);
    let first = text.lines().next().unwrap_or_default();
    let end = ["; its last lines", "; the last lines"].iter().filter_map(|lines| first.find(lines)).min();
    visible::one_line(&first[..end.unwrap_or(first.len())])
}

/// The boot parameters in a file, in one line.
fn boot_parameters(path: &Path) -> anyhow::Result<String> {
    let bytes = file::read_regular(path, PARAMETERS_MAX);
    let bytes = bytes.with_context(|| format!("cannot read the boot parameters in {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" "))
}

fn guest(options: &Lab) -> Guest {
    let time = match options.guest_cpus {
        _ if options.kvm => Time::Kvm,
        1 if !options.no_virtual_time => Time::Virtual,
        _ => Time::Real,
    };
    Guest {
        cpus: options.guest_cpus,
        time,
        memory_mib: options.memory,
        append: options.append.clone(),
        timeout: Duration::from_nanos(options.timeout),
        verbose: true,
        ..Guest::default()
    }
}

fn describe(guest: &Guest) -> String {
    let cpus = if guest.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", guest.cpus) };
    let time = match guest.time {
        Time::Virtual => "virtual time",
        Time::Real => "emulated in real time",
        Time::Kvm => "KVM",
    };
    format!("{cpus}, {time}")
}

/// Prints the output of the guest as it arrives.
struct Printer {
    stdout: GuestStdout,
    stderr: GuestStderr,
}

impl Printer {
    fn print(&mut self, event: Event, options: &Lab) {
        match event {
            // A write error must not end the run, because the record comes at the end.
            Event::Stdout(bytes) => drop(self.stdout.print(bytes)),
            Event::Stderr(bytes) => self.stderr.print(bytes, options.quiet),
            Event::Console(line) if options.console => say!("{line}"),
            Event::Booted(release) if !options.quiet => {
                say!("booted Linux {release}; running: punctual {}", options.arguments.join(" "));
            }
            Event::Console(_) | Event::Booted(_) => {}
        }
    }
}

/// Output of the guest, which arrives in pieces, as lines.
#[derive(Default)]
struct Lines {
    unfinished: Vec<u8>,
}

impl Lines {
    /// The lines that these bytes complete. One that is too long is divided.
    fn add(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut complete = Vec::new();
        for &byte in bytes {
            self.unfinished.push(byte);
            if byte == b'\n' || self.unfinished.len() == LINE_MAX {
                complete.push(mem::take(&mut self.unfinished));
            }
        }
        complete
    }
}

/// Prints the standard output of punctual in the guest line by line, with the path of the record on the host.
struct GuestStdout {
    out: Visible<Stdout>,
    lines: Lines,
    record: Option<PathBuf>,
}

impl GuestStdout {
    fn new(files: &RecordFiles) -> Self {
        Self { out: visible::stdout(Passes::Colours), lines: Lines::default(), record: files.record.clone() }
    }

    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        for line in self.lines.add(bytes) {
            self.out.write_all(&on_the_host(&line, self.record.as_deref()))?;
        }
        self.out.flush()
    }

    /// Prints an unfinished line.
    fn end(&mut self) -> io::Result<()> {
        self.out.write_all(&mem::take(&mut self.lines.unfinished))?;
        self.out.flush()
    }
}

/// A line of the guest; if it is the command that shows more of the record, that for the record on the host.
fn on_the_host(line: &[u8], record: Option<&Path>) -> Vec<u8> {
    const SHOW: &str = " punctual show --full ";
    let text = String::from_utf8_lossy(line);
    match (text.find(SHOW).filter(|_| text.trim_start().starts_with("more ")), record) {
        (Some(at), Some(record)) => {
            let command = visible::one_line(&shell::command(&[&record.to_string_lossy()]));
            format!("{}{command}\n", &text[..at + SHOW.len()]).into_bytes()
        }
        // Without a record on the host, there is nothing to show.
        (Some(_), None) => Vec::new(),
        (None, _) => line.to_vec(),
    }
}

/// Prints the standard error of punctual in the guest line by line, without the paths of its files, which do not exist
/// on the host.
#[derive(Default)]
struct GuestStderr {
    lines: Lines,
    /// Lines that --quiet suppressed.
    suppressed: String,
}

impl GuestStderr {
    fn print(&mut self, bytes: &[u8], quiet: bool) {
        for line in self.lines.add(bytes) {
            let line = String::from_utf8_lossy(&line);
            if line.starts_with("record  ") || line.starts_with("report  ") {
                continue;
            }
            if !quiet {
                say_part!(Passes::Text, "{line}");
            } else if self.suppressed.len() < SUPPRESSED_MAX {
                self.suppressed += &line;
            }
        }
    }
}

/// Saves the record and its report under the chosen name, and other files of the run under names made from it. Returns
/// the record, if the guest made one.
fn save(outcome: &Outcome, record_files: &RecordFiles, time: Time) -> anyhow::Result<Option<Record>> {
    let mut records = outcome.files.files().filter(|(name, _)| name.ends_with(RECORD_ENDING));
    let Some((name, bytes)) = records.next() else { return Ok(None) };
    let parsed = file::parse(bytes);
    let mut record = parsed.map_err(|error| anyhow::anyhow!("the guest's {}: {error}", visible::one_line(name)))?;
    add_caveat(&mut record, time);
    let Some(record_path) = &record_files.record else { return Ok(Some(record)) };
    record_files.write(&record)?;
    record_files.write_report(&record)?;
    let report = name.replace(RECORD_ENDING, REPORT_ENDING);
    let others = outcome.files.files().filter(|(other, _)| *other != name && *other != report);
    save_others(others, record_path)?;
    Ok(Some(record))
}

/// Saves the kernel log, and files with known endings, in the folder of the record. The guest chooses no name: it could
/// replace a file of the user.
fn save_others<'a>(others: impl Iterator<Item = (&'a str, &'a [u8])>, record_path: &Path) -> anyhow::Result<()> {
    let stem = record_path.with_extension("").with_extension("");
    let mut counts = [0_u32; OTHER_ENDINGS.len()];
    let mut left_out: Vec<&str> = Vec::new();
    for (name, bytes) in others {
        if name == KERNEL_LOG {
            file::write_atomic(&with_ending(&stem, 1, "kernel.log"), bytes)?;
            continue;
        }
        let known = OTHER_ENDINGS.iter().position(|ending| name.ends_with(&format!(".{ending}")));
        let Some(index) = known.filter(|&index| counts[index] < OTHERS_MAX) else {
            left_out.push(name);
            continue;
        };
        counts[index] += 1;
        let path = with_ending(&stem, counts[index], OTHER_ENDINGS[index]);
        match file::write_new(&path, bytes) {
            Ok(()) => say!("file    {} ({} in the guest)", path.display(), visible::one_line(name)),
            Err(error) => say!("note: the guest's {} is not saved: {error}", visible::one_line(name)),
        }
    }
    if let Some(first) = left_out.first() {
        let first = visible::one_line(first);
        say!("note: {} other files of the guest are not saved, such as {first}", left_out.len());
    }
    Ok(())
}

/// `STEM.ENDING`, or from the second such file on `STEM-NUMBER.ENDING`.
fn with_ending(stem: &Path, number: u32, ending: &str) -> PathBuf {
    let mut path = stem.as_os_str().to_owned();
    if number > 1 {
        path.push(format!("-{number}"));
    }
    path.push(format!(".{ending}"));
    path.into()
}

/// Adds a caveat about emulated time to the record.
fn add_caveat(record: &mut Record, time: Time) {
    let text = match time {
        Time::Virtual => {
            "the times are virtual, 4 ns for each instruction on one emulated CPU: they compare kernels and settings, \
             not machines"
        }
        Time::Real => {
            "the machine was emulated in software: the times depend on the emulator and the load of the host, and are \
             not those of any hardware"
        }
        Time::Kvm => return,
    };
    record.caveats.push(Caveat { kind: "virtual".to_owned(), text: text.to_owned() });
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn the_command_for_the_record_names_the_file_on_the_host() {
        let line = b"  more     punctual show --full vm-1.punctual.json\n";
        let host = Path::new("my runs/a.punctual.json");
        let on_host = String::from_utf8(on_the_host(line, Some(host))).unwrap();
        assert_eq!(on_host, "  more     punctual show --full 'my runs/a.punctual.json'\n");
        assert!(on_the_host(line, None).is_empty());
        assert_eq!(on_the_host(b"CPU 0  more\n", Some(host)), b"CPU 0  more\n");
    }

    fn options(line: &str) -> Lab {
        match Cli::try_parse_from(line.split_whitespace()).expect("a command line").command {
            Some(Command::Lab(options)) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn time_is_virtual_only_on_one_emulated_cpu() {
        let time = |line: &str| guest(&options(&format!("punctual lab --kernel bzImage {line}"))).time;
        assert_eq!(time(""), Time::Virtual);
        assert_eq!(time("--no-virtual-time"), Time::Real);
        assert_eq!(time("--guest-cpus 2"), Time::Real);
        assert_eq!(time("--kvm --guest-cpus 2"), Time::Kvm);
    }

    #[test]
    fn an_error_in_one_line_has_no_console_lines() {
        let console = "  a\n  b".to_owned();
        let error = GuestError::Panic { reason: "no init".to_owned(), console: console.clone() };
        assert_eq!(in_one_line(&error.into()), "the kernel panicked: no init");
        assert_eq!(in_one_line(&GuestError::Ended { console }.into()), "the guest ended early");
        assert_eq!(in_one_line(&anyhow::anyhow!("other")), "other");
    }

    #[test]
    fn arguments_after_two_dashes_are_for_the_guest() {
        let options = options("punctual lab --kernel bzImage --append isolcpus=1 -- measure timer --duration 5s");
        assert_eq!(options.arguments, ["measure", "timer", "--duration", "5s"]);
    }
}
