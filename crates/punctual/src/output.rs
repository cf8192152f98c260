//! Functions shared by the commands: run with the live view, judge, write the record, print.

use std::{
    env, fmt, fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use analysis::{LoadError, Profile};
use anyhow::Context;
use campaign::{Plan, ProcessPlan, RunError, Target};
use machine::Root;
use record::{
    Campaign, Outcome, Record,
    file::{self, FileError},
    visible::{self, Passes},
};
use report::{
    Style,
    export::Format,
    live::{Live, LiveMode, Progress, phase_title},
};
use rustix::fs::{AtFlags, StatxFlags};

use crate::{
    cli::{Extent, OutputOptions},
    exit::{self, Usage},
    last::{LAST, newest_record},
};

/// Time between two updates of the live view.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// Time between two lines of progress, where no view can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Time between two reports of progress; `None` with --quiet.
pub fn watch_every(output_options: OutputOptions) -> Option<Duration> {
    (!output_options.quiet).then(|| if report::live::can_draw() { DRAW_EVERY } else { LINE_EVERY })
}

/// The width of a page in one line.
const ONE_LINE: usize = 10_000;

/// Column of the text of announcements, behind names such as `matrix` and `search`.
const ANNOUNCED: usize = 8;

/// The arguments of this process, including its name.
pub fn command_line() -> Vec<String> {
    env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// The path of this executable, which is started again for each load.
pub fn executable() -> anyhow::Result<PathBuf> {
    env::current_exe().context("cannot read /proc/self/exe; mount /proc")
}

/// A command with those of its named arguments that have a value, quoted for a shell.
pub fn command_of(words: &[&str], named: &[(&str, Option<&str>)]) -> String {
    let named = named.iter().filter_map(|(name, value)| Some([*name, (*value)?])).flatten();
    record::shell::command(&words.iter().copied().chain(named).collect::<Vec<_>>())
}

/// The machine recorded in a folder, or without one this machine.
pub fn root(folder: Option<&PathBuf>) -> anyhow::Result<Root> {
    let Some(folder) = folder else { return Ok(Root::system()) };
    let name = folder.to_string_lossy();
    let unpacked = [".tar.gz", ".tar.zst"].iter().find_map(|ending| name.strip_suffix(ending));
    if let Some(unpacked) = unpacked.filter(|_| folder.is_file()) {
        let [to, archive] = [unpacked, &name].map(|word| record::shell::command(&[word]));
        anyhow::bail!(
            "{name} is an archive: unpack it with `mkdir {to} && tar xf {archive} -C {to}`, and use --root {to}"
        );
    }
    if let Err(error) = fs::read_dir(folder)
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        anyhow::bail!("cannot read the machine in {name} ({error}): run as root, or as its owner");
    }
    anyhow::ensure!(
        // A folder of `check nic --keep-answers` may have only these answers.
        ["proc", "sys", "netlink"].iter().any(|part| folder.join(part).is_dir()),
        "no machine is recorded in {}: name a folder with its proc and sys",
        folder.display()
    );
    Ok(Root::at(real_folder(folder)?))
}

/// The absolute path of a folder without links. Links in `/proc` can lead where no path leads, such as to the files of a
/// container: its path without links is that of another folder.
///
/// # Errors
/// The folder has no such path.
pub fn real_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    let cannot_find = || format!("cannot find {}", folder.display());
    let real = fs::canonicalize(folder).with_context(cannot_find)?;
    let identity = |path: &Path| -> anyhow::Result<[u64; 4]> {
        let flags = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let found = rustix::fs::statx(rustix::fs::CWD, path, AtFlags::empty(), flags).with_context(cannot_find)?;
        // Kernels before 5.8 leave the mount at 0.
        Ok([found.stx_dev_major.into(), found.stx_dev_minor.into(), found.stx_ino, found.stx_mnt_id])
    };
    anyhow::ensure!(
        identity(folder)? == identity(&real)?,
        "{} leads to another root, which has no path here: run punctual in it",
        folder.display()
    );
    Ok(real)
}

/// Runs the plan with the live view, which shows what the run has shown about its profiles so far.
pub fn measure(plan: &Plan, output_options: OutputOptions) -> anyhow::Result<Record> {
    measure_for(plan, output_options, find_profiles(&plan.profiles)?)
}

/// The same for these uses, from the least to the most demanding one.
pub fn measure_for(plan: &Plan, output_options: OutputOptions, uses: Vec<Profile>) -> anyhow::Result<Record> {
    let mode = if output_options.quiet { LiveMode::Off } else { LiveMode::Auto };
    live(output_options, mode, uses, |watch| campaign::run(plan, &Root::system(), watch))
}

/// Measures a program. There is no live view if punctual starts the program, because it shares the terminal.
pub fn watch_process(plan: &ProcessPlan, output_options: OutputOptions) -> anyhow::Result<Record> {
    let is_child = matches!(plan.target, Target::Command(_));
    let mode = if output_options.quiet || is_child { LiveMode::Off } else { LiveMode::Auto };
    live(output_options, mode, Vec::new(), |watch| campaign::watch_process(plan, &Root::system(), watch))
}

/// Callback for the progress of a run.
type OnProgress<'a> = dyn FnMut(&Record, &campaign::Progress) + 'a;

fn live(
    output_options: OutputOptions,
    mode: LiveMode,
    uses: Vec<Profile>,
    run: impl FnOnce(&mut OnProgress) -> Result<Record, RunError>,
) -> anyhow::Result<Record> {
    sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    let mut live = Live::new(mode).with_style(Style::for_stderr(output_options.color.into())).with_uses(uses);
    let record = run(&mut |record, progress| {
        let progress = Progress {
            phase: phase_title(record, progress.phase_index, progress.phase_count),
            phase_index: progress.phase_index,
            phase_count: progress.phase_count,
            elapsed_ns: progress.elapsed_ns,
            total_ns: progress.total_ns,
            decides: progress.decides,
        };
        if live.update(record, &progress) {
            sys::signal::request_termination_by_key();
        }
    });
    live.finish();
    Ok(record?)
}

/// Finds the profiles with these names.
pub fn find_profiles(names: &[String]) -> anyhow::Result<Vec<Profile>> {
    Ok(analysis::find_profiles(names).map_err(|error| Usage(error.to_string()))?)
}

/// Judges the record by these profiles, and stores the verdict and the tails in it.
pub fn judge(record: &mut Record, profiles: &[String]) -> anyhow::Result<()> {
    judge_uses(record, profiles)?;
    record.tails = analysis::tails(record);
    Ok(())
}

/// The same without the tails, which take 0.1 s.
pub fn judge_uses(record: &mut Record, profiles: &[String]) -> anyhow::Result<()> {
    analysis::conclude(record);
    record.uses = find_profiles(profiles)?.iter().map(|profile| analysis::judge(record, profile)).collect();
    record.verdict = analysis::verdict(record, &record.uses);
    Ok(())
}

/// Finds published references or records, and returns each with its name.
pub fn find_references(names: &[String]) -> anyhow::Result<Vec<(String, Record)>> {
    find_references_in(names, None)
}

/// The same; `unit` is that of files of other tools that do not say theirs.
pub fn find_references_in(names: &[String], unit: Option<import::Unit>) -> anyhow::Result<Vec<(String, Record)>> {
    let find = |name: &String| match analysis::find_reference_in(name, unit) {
        Err(LoadError::Unknown { .. }) if name == LAST => {
            let path = newest_record().map_err(Usage)?;
            Ok((path.to_string_lossy().into_owned(), file::read(&path)?))
        }
        Ok(record) => Ok((name.clone(), record)),
        Err(error @ LoadError::Unknown { .. }) => Err(Usage(error.to_string()).into()),
        Err(error) => Err(error.into()),
    };
    names.iter().map(find).collect()
}

/// Stores a comparison with each of the other records in the record.
pub fn compare_with(record: &mut Record, others: &[(String, Record)]) {
    if !others.is_empty() {
        record.against = others.iter().map(|(name, other)| analysis::compare(record, other, name)).collect();
    }
}

/// The exit status of the record's outcome; 0 if nothing was judged.
pub fn status(record: &Record) -> u8 {
    analysis::outcome(record).unwrap_or(Outcome::Pass).exit_status()
}

/// Prints text without escape sequences to standard output.
pub fn stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    print_with(Passes::Text, write)
}

/// Prints text with the colours of our own palette to standard output.
pub fn stdout_in_colour(text: &str) -> anyhow::Result<()> {
    print_with(Passes::Colours, |out| out.write_all(text.as_bytes()))
}

/// A document without hidden characters.
pub fn json(document: &serde_json::Value) -> String {
    visible::escape_json(format!("{document:#}"))
}

/// Writes audio to standard output, as a program reads it.
pub fn audio(bytes: &[u8]) -> anyhow::Result<()> {
    check_open()?;
    let mut out = visible::unfiltered_stdout();
    anyhow::ensure!(
        !out.is_terminal(),
        "standard output is a terminal, which cannot show audio: redirect it to a file"
    );
    check_written(out.write_all(bytes).and_then(|()| out.flush()))
}

/// Prints help or the version.
pub fn help(text: &clap::Error) -> anyhow::Result<()> {
    check_open()?;
    check_written(text.print())
}

fn print_with(passes: Passes, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    check_open()?;
    let mut out = visible::stdout(passes);
    check_written(write(&mut out).and_then(|()| out.finish()))
}

/// True if anything was to be printed on standard output.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints an error as JSON on standard output, if `--json` asks for it and no document was printed before.
pub fn print_json_error(message: &str, status: u8) {
    let is_wanted = env::args_os().skip(1).take_while(|argument| argument != "--").any(|argument| argument == "--json");
    if is_wanted && !PRINTED.load(Ordering::Relaxed) {
        let text = json(&serde_json::json!({ "error": message, "exit_status": status }));
        // The message is also on standard error.
        let _ = stdout(|out| writeln!(out, "{text}"));
    }
}

fn check_open() -> anyhow::Result<()> {
    PRINTED.store(true, Ordering::Relaxed);
    anyhow::ensure!(
        !sys::stdio::is_stdout_closed(),
        "cannot write to standard output: it is closed; redirect it to a file, or to /dev/null"
    );
    Ok(())
}

/// A closed pipe is not an error, because the reader has read all that it needs.
fn check_written(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Prints a page with the colours and width of the terminal. With --quiet, a sentence is one line if it is not printed
/// to a terminal.
pub fn print(output_options: OutputOptions, page: impl FnOnce(&Style, usize) -> String) -> anyhow::Result<()> {
    let style = Style::for_stdout(output_options.color.into());
    let is_one_line = output_options.quiet && !visible::stdout(Passes::Text).is_terminal();
    let width = if is_one_line { ONE_LINE } else { report::terminal::width() };
    let text = for_this_user(page(&style, width));
    print_with(style.passes(), |out| out.write_all(text.as_bytes()))
}

/// Prints a record: the answer, with --full also the page; with --quiet only the first sentence of the answer.
/// `repeated` are the options that the command for the page repeats.
pub fn print_record(
    output_options: OutputOptions,
    extent: Extent,
    record: &Record,
    path: Option<&Path>,
    repeated: &[&str],
    page: impl FnOnce(&Style, usize) -> String,
) -> anyhow::Result<()> {
    if output_options.quiet && !extent.full && record.published.is_some() {
        return print(output_options, |style, width| first_sentence(&page(style, width)));
    }
    if extent.full || record.published.is_some() {
        return print(output_options, |style, width| {
            report::terminal::opening(record, style, width) + &page(style, width)
        });
    }
    if output_options.quiet {
        return print(output_options, |style, width| report::terminal::headline(record, style, width));
    }
    let full = match path {
        Some(path) => show_command(path, repeated),
        None if record.capture.as_ref().is_some_and(|capture| capture.observer.is_none()) => {
            "the same command with --full".to_owned()
        }
        // The same command would measure again.
        None => "the record was not stored, and `punctual show --full` needs it".to_owned(),
    };
    print(output_options, |style, width| report::terminal::answer(record, &full, style, width))
}

/// The sentence at the top of a page of published figures, whose other lines are indented.
fn first_sentence(page: &str) -> String {
    let is_indented = |line: &&str| line.starts_with(' ') || line.is_empty();
    page.lines().take_while(|line| !is_indented(line)).map(|line| format!("{line}\n")).collect()
}

/// Writes the files of a finished run, and prints its answer as [`print_record`] does. A file that cannot be written is
/// an error, but neither keeps the other files from being written nor the answer from being printed.
pub fn deliver(
    output_options: OutputOptions,
    extent: Extent,
    record: &Record,
    files: &RecordFiles,
    page: impl FnOnce(&Style, usize) -> String,
) -> anyhow::Result<()> {
    let mut outcomes = vec![files.write(record)];
    let (is_in_place, elsewhere) = match &outcomes[0] {
        Ok(()) => (true, None),
        Err(error) => (false, error.downcast_ref::<WrittenElsewhere>().map(|error| error.path.clone())),
    };
    let path = if is_in_place { files.record.as_deref() } else { elsewhere.as_deref() };
    if is_in_place {
        outcomes.push(files.write_report(record));
    }
    outcomes.extend(files.exports.iter().map(|export| export.write(record)));
    if output_options.json {
        outcomes.push(stdout(|out| out.write_all(&file::to_json(record))));
    } else if !files.exports.iter().any(Export::is_stdout) {
        outcomes.push(print_record(output_options, extent, record, path, &[], page));
    }
    if is_in_place && !output_options.quiet {
        files.print_paths();
    }
    if outcomes.iter().all(Result::is_ok) {
        print_exports(output_options, &files.exports);
    }
    first_error(outcomes)
}

/// Prints the paths of the files that were written in other formats, unless --quiet.
pub fn print_exports(output_options: OutputOptions, exports: &[Export]) {
    for export in exports.iter().filter(|export| !output_options.quiet && !export.is_stdout()) {
        say!("export  {}", export.path.display());
    }
}

/// Prints a named line before a run, wrapped to the terminal, unless --quiet.
pub fn announce(output_options: OutputOptions, name: &str, text: &str) {
    if !output_options.quiet {
        say!("{}", announcement(name, text, report::terminal::width()));
    }
}

/// The lines of an announcement. The names of its lines have a column of their own.
fn announcement(name: &str, text: &str, width: usize) -> String {
    report::terminal::entry(name, ANNOUNCED, text, width).trim_end().to_owned()
}

/// Returns the first error, and prints the others.
pub fn first_error(outcomes: impl IntoIterator<Item = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut errors = outcomes.into_iter().filter_map(Result::err);
    let first = errors.next();
    errors.for_each(|error| say!("error: {}", exit::message(&error)));
    first.map_or(Ok(()), Err)
}

/// The command that prints everything about a record, with these options.
fn show_command(path: &Path, options: &[&str]) -> String {
    let path = path.to_string_lossy();
    record::shell::command(&[&["punctual", "show", "--full", &path], options].concat())
}

/// Prints a campaign in the same way. `path` is that of its document.
pub fn print_campaign(
    output_options: OutputOptions,
    extent: Extent,
    campaign: &Campaign,
    path: &Path,
) -> anyhow::Result<()> {
    let document = path.to_string_lossy();
    print(output_options, |style, width| match (extent.full, output_options.quiet) {
        (true, _) => {
            report::terminal::campaign_opening(campaign, &document, style, width)
                + &report::terminal::campaign(campaign, style, width)
        }
        (false, true) => report::terminal::campaign_headline(campaign, style, width),
        (false, false) => report::terminal::campaign_answer(campaign, &document, style, width),
    })
}

/// The text with commands as this user can execute them: without `sudo` for root on a machine without it.
pub fn for_this_user(text: String) -> String {
    static NO_SUDO: LazyLock<bool> = LazyLock::new(|| {
        let path = env::var_os("PATH").unwrap_or_default();
        rustix::process::geteuid().is_root() && !env::split_paths(&path).any(|folder| folder.join("sudo").is_file())
    });
    if *NO_SUDO { without_sudo(&text) } else { text }
}

/// The text without `sudo` before a command, also at the end of a line.
fn without_sudo(text: &str) -> String {
    let mut parts = text.split("sudo");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_word = !kept.ends_with(|c: char| c.is_alphanumeric() || "-_/".contains(c));
        match part.strip_prefix(' ') {
            Some(command) if is_word => kept.push_str(command),
            None if is_word && part.starts_with('\n') => kept.push_str(part),
            _ => kept.extend(["sudo", part]),
        }
    }
    kept
}

/// The error of a record that is not in its place, but in another.
#[derive(Debug)]
struct WrittenElsewhere {
    why: String,
    path: PathBuf,
}

impl fmt::Display for WrittenElsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; the record is in {} instead", self.why, self.path.display())
    }
}

impl std::error::Error for WrittenElsewhere {}

/// The files of a run.
pub struct RecordFiles {
    /// Path of the record, whose HTML report is written next to it; `None` to write neither.
    pub record: Option<PathBuf>,
    exports: Vec<Export>,
    /// The name of the record, if it was not given.
    _reserved: Option<ReservedName>,
    chosen_at: SystemTime,
}

impl RecordFiles {
    /// Uses the given path, or a name with host, date and time: in the given folder, or in the current one.
    pub fn choose(path: Option<&Path>, no_record: bool) -> anyhow::Result<Self> {
        let (record, reserved) = match path {
            _ if no_record => (None, None),
            Some(path) if !path.is_dir() => (Some(with_extension(path)), None),
            folder => {
                let reserved = ReservedName::new(folder.unwrap_or(Path::new("")))?;
                (Some(reserved.path.clone()), Some(reserved))
            }
        };
        Ok(Self { record, exports: Vec::new(), _reserved: reserved, chosen_at: SystemTime::now() })
    }

    /// Adds files to export to. Their formats and folders are checked, so that errors are reported before the run.
    pub fn with_exports(self, paths: &[PathBuf]) -> anyhow::Result<Self> {
        self.with_exports_to(paths, &Format::OF_RECORDS)
    }

    /// The same for what can be exported to these formats only.
    pub fn with_exports_to(self, paths: &[PathBuf], formats: &[Format]) -> anyhow::Result<Self> {
        Ok(Self { exports: Export::among(paths, formats)?, ..self })
    }

    /// Writes the record. If that fails, writes it to the temporary folder, or if another run has taken the name meanwhile,
    /// under a new name. Then the error is [`WrittenElsewhere`].
    pub fn write(&self, record: &Record) -> anyhow::Result<()> {
        let Some(path) = &self.record else { return Ok(()) };
        let bytes = file::to_json(record);
        if self.is_taken(path, record) {
            let own = ReservedName::new(path.parent().unwrap_or(Path::new("")))?;
            file::write_atomic(&own.path, &bytes)?;
            let why = format!("another run wrote {} at the same time", path.display());
            return Err(WrittenElsewhere { why, path: own.path.clone() }.into());
        }
        let Err(error) = file::write_atomic(path, &bytes) else { return Ok(()) };
        let fallback = env::temp_dir().join(path.file_name().unwrap_or_default());
        file::write_atomic(&fallback, &bytes).with_context(|| format!("{error}; the temporary folder failed, too"))?;
        Err(WrittenElsewhere { why: error.to_string(), path: fallback }.into())
    }

    /// True if another run has written its record to the file since the name was chosen.
    fn is_taken(&self, path: &Path, record: &Record) -> bool {
        let changed = fs::metadata(path).and_then(|found| found.modified());
        changed.is_ok_and(|changed| changed > self.chosen_at) && file::is_of_another_run(path, &record.started_at)
    }

    /// Writes the HTML report to the folder of the record.
    pub fn write_report(&self, record: &Record) -> anyhow::Result<()> {
        let Some(path) = self.report() else { return Ok(()) };
        Ok(file::write_atomic(&path, report::html::render(record).as_bytes())?)
    }

    fn report(&self) -> Option<PathBuf> {
        // Changes `a.punctual.json` to `a.punctual.html`.
        self.record.as_ref().map(|path| path.with_extension("html"))
    }

    /// Prints the paths of the record and of the report.
    pub fn print_paths(&self) {
        if let Some(path) = &self.record {
            say!("record  {}", path.display());
        }
        if let Some(path) = self.report().filter(|path| path.exists()) {
            say!("report  {}", path.display());
        }
    }
}

/// A name for a record that no other file has, e.g. `HOST-20261121-143000.punctual.json`, in UTC. Its file is created
/// empty, so that a second run of the same second takes another name, and is deleted if it remains empty.
struct ReservedName {
    path: PathBuf,
}

impl ReservedName {
    fn new(folder: &Path) -> Result<Self, FileError> {
        let start = host_and_time();
        let mut number = 1;
        loop {
            let end = if number == 1 { String::new() } else { format!("-{number}") };
            let path = folder.join(format!("{start}{end}.punctual.json"));
            match file::write_new(&path, &[]) {
                Ok(()) => return Ok(Self { path }),
                Err(FileError::Write { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for ReservedName {
    fn drop(&mut self) {
        if fs::metadata(&self.path).is_ok_and(|found| found.len() == 0) {
            // The run was not begun. If the file stays, it is no record.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A file name in the current folder, e.g. `HOST-20261121-143000.EXTENSION`, in UTC.
pub fn default_name(extension: &str) -> String {
    format!("{}.{extension}", host_and_time())
}

/// A folder name, e.g. `CAMPAIGN-HOST-20261121-143000`, in UTC.
pub fn default_folder(campaign: &str) -> String {
    format!("{campaign}-{}", host_and_time())
}

/// Start of the names of files, e.g. `HOST-20261121-143000`, in UTC.
pub fn host_and_time() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect();
    let now = campaign::stamp_now();
    format!("{}-{now}", if host.is_empty() { "machine" } else { &host })
}

pub fn with_extension(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.trim_end_matches(".json").trim_end_matches(".punctual");
    path.with_file_name(format!("{stem}.punctual.json"))
}

/// A file to export to, and its format.
pub struct Export {
    path: PathBuf,
    format: Format,
}

impl Export {
    /// Checks the folder of each path, and that its format is one of these, so that errors are reported before the run.
    pub fn among(paths: &[PathBuf], formats: &[Format]) -> anyhow::Result<Vec<Self>> {
        paths.iter().map(|path| Self::new(path, formats)).collect()
    }

    fn new(path: &Path, formats: &[Format]) -> anyhow::Result<Self> {
        if is_stdout(path) && formats.contains(&Format::Json) {
            return Ok(Self { path: path.to_owned(), format: Format::Json });
        }
        let format = Format::of(path, formats).map_err(Usage)?;
        file::check_writable(path)?;
        Ok(Self { path: path.to_owned(), format })
    }

    /// True for `-`, standard output.
    pub fn is_stdout(&self) -> bool {
        is_stdout(&self.path)
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Writes the record in the format of the file.
    pub fn write(&self, record: &Record) -> anyhow::Result<()> {
        self.write_bytes(&self.format.record(record))
    }

    /// Writes a document in the format of the file.
    pub fn write_bytes(&self, bytes: &[u8]) -> anyhow::Result<()> {
        if self.is_stdout() {
            return stdout(|out| out.write_all(bytes));
        }
        Ok(file::write_atomic(&self.path, bytes)?)
    }
}

/// True for `-`, standard output.
fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_same_second_differ_and_unused_ones_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<ReservedName> = (0..20).map(|_| ReservedName::new(folder.path()).unwrap()).collect();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 20);
        fs::write(&names[7].path, "{}").unwrap();
        drop(names);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn two_runs_with_one_name_keep_both_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.punctual.json");
        let run = |started_at: &str| Record {
            schema: record::SCHEMA.to_owned(),
            started_at: started_at.to_owned(),
            ..Record::default()
        };
        let (old, first, second) =
            (run("2026-01-01T00:00:00Z"), run("2026-01-02T00:00:00Z"), run("2026-01-03T00:00:00Z"));
        file::write_atomic(&path, &file::to_json(&old)).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let files = || RecordFiles::choose(Some(&path), false).unwrap();
        let (files_of_first, files_of_second) = (files(), files());
        std::thread::sleep(Duration::from_millis(50));
        files_of_first.write(&first).unwrap();
        let error = files_of_second.write(&second).unwrap_err().to_string();
        assert!(error.contains("another run wrote"), "{error}");
        files_of_first.write(&first).unwrap();
        let started_at = |entry: fs::DirEntry| file::read(&entry.path()).unwrap().started_at;
        let mut kept: Vec<String> = fs::read_dir(folder.path()).unwrap().flatten().map(started_at).collect();
        kept.sort();
        assert_eq!(kept, [first.started_at, second.started_at]);
    }

    #[test]
    fn announcements_are_wrapped_beside_their_name() {
        let text = "at most 4 of 7 sizes are tried, which takes 2 min";
        let lines = announcement("search", text, 36);
        assert_eq!(lines, "search  at most 4 of 7 sizes are\n        tried, which takes 2 min");
        assert_eq!(announcement("search", text, 100), format!("search  {text}"));
        assert_eq!(visible::continued(&lines), lines, "its lines keep their column");
    }

    #[test]
    fn the_first_sentence_of_published_figures_can_have_two_lines() {
        let page = "a-long-name.json: measured by cyclictest,\nnot by punctual\n  machine   vm\nRemarks\n";
        assert_eq!(first_sentence(page), "a-long-name.json: measured by cyclictest,\nnot by punctual\n");
        assert_eq!(first_sentence(""), "");
    }

    #[test]
    fn commands_lose_sudo_but_prose_keeps_it() {
        let text = "run as root, with `sudo`; or `echo 0 | sudo tee /x` or `sudo\n  chrt -p 1`; --far-sudo helps";
        let expected = "run as root, with `sudo`; or `echo 0 | tee /x` or `\n  chrt -p 1`; --far-sudo helps";
        assert_eq!(without_sudo(text), expected);
    }
}
