//! What all commands share: running with the live view, judging, keeping the record, printing.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use analysis::{LoadError, Profile};
use anyhow::Context;
use campaign::{Plan, ProcessPlan, RunError, Target};
use machine::Root;
use record::{Campaign, Outcome, Record, ScenarioEntry, export, file};
use report::{
    Style,
    live::{Live, LiveMode, Progress},
};

use crate::{cli::Talk, exit::Usage};

/// Time between two looks at a run, while someone watches.
const WATCH_EVERY: Duration = Duration::from_millis(200);

/// How often to report progress.
pub fn watch_every(talk: Talk) -> Option<Duration> {
    (!talk.quiet).then_some(WATCH_EVERY)
}

/// The command line as it was typed.
pub fn command_line() -> Vec<String> {
    env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// The file of this program, which runs itself for each load.
pub fn executable() -> anyhow::Result<PathBuf> {
    env::current_exe().context("cannot find the file of this program; is /proc mounted?")
}

/// Runs the plan with the live view.
pub fn measure(plan: &Plan, talk: Talk) -> anyhow::Result<Record> {
    let mode = if talk.quiet { LiveMode::Off } else { LiveMode::Auto };
    live(talk, mode, |watch| campaign::run(plan, &Root::system(), watch))
}

/// Watches a program as the plan says, with the live view where it does not write to the terminal itself.
pub fn watch_process(plan: &ProcessPlan, talk: Talk) -> anyhow::Result<Record> {
    let ours = matches!(plan.target, Target::Command(_));
    let mode = if talk.quiet || ours { LiveMode::Off } else { LiveMode::Auto };
    live(talk, mode, |watch| campaign::watch_process(plan, &Root::system(), watch))
}

/// Who is told how far a run has got.
type OnProgress<'a> = dyn FnMut(&Record, &campaign::Progress) + 'a;

fn live(
    talk: Talk,
    mode: LiveMode,
    run: impl FnOnce(&mut OnProgress) -> Result<Record, RunError>,
) -> anyhow::Result<Record> {
    sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    let mut live = Live::new(mode).with_style(Style::for_stderr(talk.color.into()));
    let record = run(&mut |record, progress| {
        let progress = Progress {
            phase: phase_in_words(record, progress.phase_index, progress.phase_count),
            elapsed_ns: progress.elapsed_ns,
            total_ns: progress.total_ns,
            phase_index: progress.phase_index,
            phase_count: progress.phase_count,
        };
        live.update(record, &progress);
    });
    live.finish();
    Ok(record?)
}

fn phase_in_words(record: &Record, index: usize, count: usize) -> String {
    if let Some(program) = &record.program {
        return format!("process {}", program.pid);
    }
    match record.phases.get(index) {
        // A cell of a matrix says where its threads are.
        Some(phase) if count > 1 && !phase.threads.is_empty() => format!("{}/{count} {}", index + 1, phase.name),
        Some(phase) if !phase.asked_loads.is_empty() => format!("under load ({})", phase.asked_loads.join(", ")),
        _ => "at rest".to_owned(),
    }
}

/// The profiles of these names.
pub fn find_profiles(names: &[String]) -> anyhow::Result<Vec<Profile>> {
    names.iter().map(|name| Ok(analysis::find_profile(name).map_err(|error| Usage(error.to_string()))?)).collect()
}

/// Writes the verdict of these profiles into the record.
pub fn judge(record: &mut Record, profiles: &[String]) -> anyhow::Result<()> {
    record.uses = find_profiles(profiles)?.iter().map(|profile| analysis::judge(record, profile)).collect();
    record.verdict = analysis::verdict(record, &record.uses);
    Ok(())
}

/// The published references, or records, of these names; each with its name.
pub fn find_references(names: &[String]) -> anyhow::Result<Vec<(String, Record)>> {
    let find = |name: &String| match analysis::find_reference(name) {
        Ok(record) => Ok((name.clone(), record)),
        Err(error @ LoadError::Unknown { .. }) => Err(Usage(error.to_string()).into()),
        Err(error) => Err(error.into()),
    };
    names.iter().map(find).collect()
}

/// Writes these records beside the figures of the record.
pub fn lay_beside(record: &mut Record, others: &[(String, Record)]) {
    if !others.is_empty() {
        record.against = others.iter().map(|(name, other)| analysis::compare(record, other, name)).collect();
    }
}

/// The exit status that says the same as the record's verdict.
pub fn status(record: &Record) -> u8 {
    record.verdict.as_ref().map_or(Outcome::Pass, |verdict| verdict.outcome).exit_status()
}

/// The exit status that says the same as a campaign: its worst scenario, and inconclusive where one has not run.
pub fn campaign_status(campaign: &Campaign) -> u8 {
    let any = |is: &dyn Fn(&ScenarioEntry) -> bool| campaign.scenarios.iter().any(is);
    let outcome = |wanted: Outcome| any(&|entry| entry.result.as_ref().is_some_and(|r| r.outcome == Some(wanted)));
    let invalid = any(&|entry| entry.result.as_ref().is_some_and(|result| !result.valid));
    if any(&|entry| entry.error.is_some()) {
        1
    } else if invalid || outcome(Outcome::Invalid) {
        Outcome::Invalid.exit_status()
    } else if outcome(Outcome::Fail) {
        Outcome::Fail.exit_status()
    } else if !campaign.is_complete() || outcome(Outcome::Inconclusive) {
        Outcome::Inconclusive.exit_status()
    } else {
        Outcome::Pass.exit_status()
    }
}

/// Prints to standard output. A reader that has gone away is no error: it has read what it wanted.
pub fn stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Prints a page in the style and width of the terminal.
pub fn print(talk: Talk, page: impl FnOnce(&Style, usize) -> String) -> anyhow::Result<()> {
    let style = Style::for_stdout(talk.color.into());
    let text = page(&style, report::terminal::width());
    stdout(|out| out.write_all(text.as_bytes()))
}

/// Where a run is kept.
pub struct Kept {
    /// The record; `None` to keep none.
    pub record: Option<PathBuf>,
}

impl Kept {
    /// The place asked for, or a name from host, date and time in this folder.
    pub fn choose(asked: Option<&Path>, none: bool) -> anyhow::Result<Self> {
        if none {
            return Ok(Self { record: None });
        }
        let record = match asked {
            Some(path) if path.is_dir() => path.join(default_name("punctual.json")),
            Some(path) => with_ending(path),
            None => PathBuf::from(default_name("punctual.json")),
        };
        Ok(Self { record: Some(record) })
    }

    /// Writes the record; to the temporary folder where its own place has no room, so that nothing is lost.
    pub fn write(&self, record: &Record) -> anyhow::Result<()> {
        let Some(path) = &self.record else { return Ok(()) };
        let bytes = file::to_json(record);
        let Err(error) = file::write_atomic(path, &bytes) else { return Ok(()) };
        let elsewhere = env::temp_dir().join(path.file_name().unwrap_or_default());
        file::write_atomic(&elsewhere, &bytes).with_context(|| format!("{error}; nor elsewhere"))?;
        anyhow::bail!("{error}; the record is in {} instead", elsewhere.display())
    }

    /// Writes the HTML report beside the record.
    pub fn write_report(&self, record: &Record) -> anyhow::Result<()> {
        let Some(path) = self.report() else { return Ok(()) };
        Ok(file::write_atomic(&path, report::html::render(record).as_bytes())?)
    }

    fn report(&self) -> Option<PathBuf> {
        // `a.punctual.json` to `a.punctual.html`.
        self.record.as_ref().map(|path| path.with_extension("html"))
    }

    /// Says where things are.
    pub fn say(&self) {
        if let Some(path) = &self.record {
            say!("record  {}", path.display());
        }
        if let Some(path) = self.report().filter(|path| path.exists()) {
            say!("report  {}", path.display());
        }
    }
}

/// `HOST-20261121-143000.ENDING`, in UTC.
pub fn default_name(ending: &str) -> String {
    format!("{}.{ending}", host_and_time())
}

/// `CAMPAIGN-HOST-20261121-143000`, in UTC.
pub fn default_folder(campaign: &str) -> String {
    format!("{campaign}-{}", host_and_time())
}

fn host_and_time() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect();
    let now = campaign::stamp_now();
    format!("{}-{now}", if host.is_empty() { "machine" } else { &host })
}

fn with_ending(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.trim_end_matches(".json").trim_end_matches(".punctual");
    path.with_file_name(format!("{stem}.punctual.json"))
}

/// A file to export to.
pub struct Export {
    path: PathBuf,
    render: fn(&Record) -> Vec<u8>,
}

impl Export {
    /// Checks all of them before a run: format and place.
    pub fn all(paths: &[PathBuf]) -> anyhow::Result<Vec<Self>> {
        paths.iter().map(|path| Self::new(path)).collect()
    }

    fn new(path: &Path) -> anyhow::Result<Self> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let render: fn(&Record) -> Vec<u8> = match extension.as_str() {
            _ if path == Path::new("-") => file::to_json,
            "json" => file::to_json,
            "csv" => |record| export::csv(record).into_bytes(),
            "hgrm" => |record| export::hgrm(record).into_bytes(),
            "html" => |record| report::html::render(record).into_bytes(),
            _ => {
                let text =
                    format!("cannot export to {}: its name must end in .json, .csv, .hgrm or .html", path.display());
                return Err(Usage(text).into());
            }
        };
        let export = Self { path: path.to_owned(), render };
        if !export.is_stdout() {
            file::check_writable(path)?;
        }
        Ok(export)
    }

    /// Whether it goes to standard output.
    pub fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Writes the record in this format.
    pub fn write(&self, record: &Record) -> anyhow::Result<()> {
        let bytes = (self.render)(record);
        if self.is_stdout() {
            return stdout(|out| out.write_all(&bytes));
        }
        Ok(file::write_atomic(&self.path, &bytes)?)
    }
}
