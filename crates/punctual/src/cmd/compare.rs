//! `punctual compare`: two sides of records, judged.

mod names;
mod runs;

use std::{collections::BTreeMap, fs, num::NonZero, path::Path, sync::mpsc, thread};

use analysis::versus::{self, Records};
use anyhow::Context;
use campaign::runner::CAMPAIGN_FILE;
use import::Unit;
use record::{
    Outcome, Record, Tool, Versus, file,
    versus::{Across, Change, LeftOut},
};
use report::export::Format;

use self::runs::Run;
use crate::{
    cli::{Compare, FailIf, OutputOptions},
    exit::Usage,
    output::{self, Export},
};

/// The end of the names of records.
const RECORD: &str = ".punctual.json";
/// Most threads that read files. Up to three records of each are in memory.
const AT_ONCE: usize = 8;

pub fn run(options: &Compare) -> anyhow::Result<u8> {
    if let Some(what) = &options.across {
        return across(what, options);
    }
    let exports = Export::among(&options.exports, &Format::OF_VERSUS)?;
    let (a, b) = sides(options)?;
    let ((a, runs_of_a), (b, runs_of_b)) = (read(a, options)?, read(b, options)?);
    runs_of_b.iter().try_for_each(|run| is_other(run, &runs_of_a, "on one side only"))?;
    let mut versus = versus::versus(&a, &b, options.least);
    versus.tool = tool();
    versus.written_at = campaign::now();
    write(&exports, options.output, |format| format.versus(&versus, &output::command_line()))?;
    if options.output.json {
        output::stdout(|out| out.write_all(&file::versus_to_json(&versus)))?;
    } else if !exports.iter().any(Export::is_stdout) {
        output::print(options.output, |style, width| match options.output.quiet {
            true => report::terminal::versus_headline(&versus, style),
            false => report::terminal::versus(&versus, options.extent.full, style, width),
        })?;
    }
    Ok(status(&versus, options.fail_if))
}

/// Writes the exports.
fn write(
    exports: &[Export],
    output_options: OutputOptions,
    document: impl Fn(Format) -> Option<Vec<u8>>,
) -> anyhow::Result<()> {
    for export in exports {
        if let Some(bytes) = document(export.format()) {
            export.write_bytes(&bytes)?;
        }
    }
    output::print_exports(output_options, exports);
    Ok(())
}

/// The names of both sides.
fn sides(options: &Compare) -> anyhow::Result<(&[String], &[String])> {
    match (options.a.as_slice(), options.b.as_slice()) {
        ([a, b], []) => Ok((std::slice::from_ref(a), std::slice::from_ref(b))),
        (_, []) => Err(Usage(format!(
            "`compare` needs two sides: write `--` between the records of the first side and those of the second, e.g. \
             `punctual compare a-*{RECORD} -- b-*{RECORD}`"
        ))
        .into()),
        sides => Ok(sides),
    }
}

/// Reads a side, with the identities of its runs. Only the figures of its records are kept.
fn read(names: &[String], options: &Compare) -> anyhow::Result<(Records, Vec<Run>)> {
    let mut side = Records::default();
    let runs = each(names, options.unit, &options.profiles, |name, record| side.add(name, record))?;
    Ok((side, runs))
}

/// The records of a name as a side.
///
/// # Errors
/// There are none, or one cannot be read.
pub fn side(name: &str) -> anyhow::Result<Records> {
    let mut side = Records::default();
    each(&[name.to_owned()], None, &[], |name, record| side.add(name, record))?;
    Ok(side)
}

/// Compares the values of a condition, each with the one before it.
fn across(what: &str, options: &Compare) -> anyhow::Result<u8> {
    if !versus::condition_names().contains(&what) {
        let names = versus::condition_names().join(", ");
        return Err(Usage(format!("no condition is called \"{what}\": use one of {names}")).into());
    }
    let exports = Export::among(&options.exports, &Format::OF_VERSUS)?;
    let mut values = Values::of(what);
    each(&options.a, options.unit, &options.profiles, |name, record| values.add(name, record))?;
    if values.len() == 0 {
        return Err(Usage(format!("no record contains the {what}: use another condition")).into());
    }
    if let Some(value) = values.single() {
        return Err(
            Usage(format!("all records have the same {what} ({value}): name records with different ones")).into()
        );
    }
    let across = deliver(values.compare(options.least), &exports, options.output)?;
    let last = across.steps.last().and_then(|step| step.versus.as_deref());
    Ok(last.map_or(0, |versus| status(versus, options.fail_if)))
}

/// Writes and prints several values or records, and returns the document.
pub fn deliver(mut across: Across, exports: &[Export], output_options: OutputOptions) -> anyhow::Result<Across> {
    across.tool = tool();
    across.written_at = campaign::now();
    write(exports, output_options, |format| format.across(&across, &output::command_line()))?;
    if output_options.json {
        output::stdout(|out| out.write_all(&file::across_to_json(&across)))?;
    } else if !exports.iter().any(Export::is_stdout) {
        let quiet = output_options.quiet;
        output::print(output_options, |style, width| report::terminal::across(&across, quiet, style, width))?;
    }
    Ok(across)
}

/// Records by the values of a condition.
pub struct Values<'a> {
    what: &'a str,
    sides: BTreeMap<Vec<Part>, (String, Records)>,
    /// Names of records that do not contain the condition.
    without: Vec<String>,
}

impl<'a> Values<'a> {
    /// No records yet, by the condition with this name.
    pub const fn of(what: &'a str) -> Self {
        Self { what, sides: BTreeMap::new(), without: Vec::new() }
    }

    /// Adds a record.
    pub fn add(&mut self, name: String, record: &Record) {
        let value = versus::condition(record, self.what);
        if value == versus::UNKNOWN {
            return self.without.push(name);
        }
        self.sides.entry(parts(&value)).or_insert_with(|| (value, Records::default())).1.add(name, record);
    }

    /// Number of different values.
    pub fn len(&self) -> usize {
        self.sides.len()
    }

    /// The value of all records, if it is the same.
    pub fn single(&self) -> Option<&str> {
        let mut values = self.sides.values();
        values.next().filter(|_| values.next().is_none()).map(|(value, _)| value.as_str())
    }

    /// Compares each value with the one before it.
    pub fn compare(self, least: f64) -> Across {
        let sides: Vec<(String, Records)> = self.sides.into_values().collect();
        let why = format!("it does not contain the {}", self.what);
        let left_out = self.without.into_iter().map(|record| LeftOut { record, why: why.clone() }).collect();
        Across { left_out, ..versus::across(self.what, &sides, least) }
    }
}

/// A part of a value: versions and numbers have their order, not that of their characters. A release candidate comes before
/// its release, and a release before its updates.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Candidate(String),
    End,
    Number(u64, String),
    Text(String),
}

fn parts(value: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let characters: Vec<char> = value.chars().collect();
    for run in characters.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
        let text: String = run.iter().collect();
        parts.push(match text.parse() {
            Ok(number) => Part::Number(number, text),
            // `-rc` of the kernel, `~rc` of Debian.
            Err(_) if text.starts_with('~') || text.trim_start_matches(['-', '.', '_']) == "rc" => {
                Part::Candidate(text)
            }
            Err(_) => Part::Text(text),
        });
    }
    parts.push(Part::End);
    parts
}

/// Reads each record, and returns the runs.
///
/// # Errors
/// One cannot be read, or two are the same run.
fn each(
    names: &[String],
    unit: Option<Unit>,
    profiles: &[String],
    mut use_it: impl FnMut(String, &Record),
) -> anyhow::Result<Vec<Run>> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for name in names::in_order(names) {
        files.extend(records(name)?.into_iter().map(|file| (name.as_str(), file)));
    }
    let mut runs: Vec<Run> = Vec::new();
    read_ahead(&files, unit, |name, mut record| {
        let run = Run::of(&name, &record);
        is_other(&run, &runs, "once")?;
        runs.push(run);
        if !profiles.is_empty() {
            record.scenario.profiles = profiles.to_vec();
            output::judge_uses(&mut record, profiles)?;
        }
        use_it(name, &record);
        Ok(())
    })?;
    Ok(runs)
}

/// Reads files, each with the name on the command line that it belongs to, and uses their records in this order. A thread of
/// each CPU reads the next ones meanwhile.
fn read_ahead(
    files: &[(&str, String)],
    unit: Option<Unit>,
    mut use_it: impl FnMut(String, Record) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(AT_ONCE);
    thread::scope(|scope| {
        let start = |first: usize| {
            let (sender, receiver) = mpsc::sync_channel(1);
            scope.spawn(move || {
                let own = files.iter().skip(first).step_by(threads);
                // After an error nobody receives the rest.
                own.map(|file| read_file(file, unit)).try_for_each(|found| sender.send(found))
            });
            receiver
        };
        let readers: Vec<_> = (0..threads).map(start).collect();
        for (index, (_, file)) in files.iter().enumerate() {
            let found = readers[index % threads].recv().with_context(|| format!("{file} was not read"))?;
            for (name, record) in found? {
                use_it(name, record)?;
            }
        }
        Ok(())
    })
}

/// Reads a file, with the name on the command line that it belongs to.
fn read_file((name, file): &(&str, String), unit: Option<Unit>) -> anyhow::Result<Vec<(String, Record)>> {
    let is_of_other_tool = file != name && !file.ends_with(RECORD);
    output::find_references_in(std::slice::from_ref(file), unit).map_err(|error| match is_of_other_tool {
        true => error.context(format!(
            "{name} has no records (*{RECORD}), so each of its files must be a result of another tool; name the results if \
             other files are among them"
        )),
        false => error,
    })
}

/// Checks that a run is none of the known ones: it would count as two rounds.
///
/// # Errors
/// It is. `remedy` says how to name it: `once`.
fn is_other(run: &Run, known: &[Run], remedy: &str) -> anyhow::Result<()> {
    let Some((first, why)) = known.iter().find_map(|known| Some((known, known.same(run)?))) else { return Ok(()) };
    Err(Usage(format!("{} and {} are the same run, {why}: name it {remedy}", first.name, run.name)).into())
}

fn tool() -> Tool {
    Tool { name: "punctual".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// The records in a folder, in the order of their names and the numbers in them, or the name itself. Without a record,
/// each of its files is a result of another tool.
fn records(name: &str) -> anyhow::Result<Vec<String>> {
    let path = Path::new(name);
    let folder = match path.file_name() {
        _ if path.is_dir() => path,
        Some(file) if file == CAMPAIGN_FILE => path.parent().unwrap_or(Path::new("")),
        _ => return Ok(vec![name.to_owned()]),
    };
    let listed = if folder == Path::new("") { Path::new(".") } else { folder };
    let entries = fs::read_dir(listed).with_context(|| format!("cannot list {}", listed.display()))?;
    let is_file = |entry: &fs::DirEntry| fs::metadata(entry.path()).is_ok_and(|of| of.is_file());
    let names = entries.flatten().filter(is_file).filter_map(|entry| entry.file_name().into_string().ok());
    let mut files: Vec<String> = names.filter(|name| !name.starts_with('.') && name != CAMPAIGN_FILE).collect();
    if files.iter().any(|name| name.ends_with(RECORD)) {
        files.retain(|name| name.ends_with(RECORD));
    }
    if files.is_empty() {
        return Err(Usage(format!("{name} has no records (*{RECORD}): name a folder or files with results")).into());
    }
    files.sort_by(|a, b| names::natural(a, b));
    Ok(files.into_iter().map(|file| folder.join(file).to_string_lossy().into_owned()).collect())
}

/// The exit status.
fn status(versus: &Versus, fail_if: Option<FailIf>) -> u8 {
    let outcome = match (fail_if, versus.change) {
        (None, _) | (Some(_), Change::Better) => Outcome::Pass,
        (Some(_), Change::TooFewRounds | Change::NotComparable) => Outcome::Inconclusive,
        (Some(_), Change::Worse | Change::Mixed) => Outcome::Fail,
        (Some(FailIf::NotBetter), Change::NoDifference) => Outcome::Fail,
        (Some(FailIf::Worse), Change::NoDifference) => Outcome::Pass,
    };
    outcome.exit_status()
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn versions_have_their_order() {
        let ordered = [
            "5.10.0-rc2",
            "6.1.0",
            "6.1.0-9-amd64",
            "6.1.0-13-amd64",
            "6.2",
            "6.10-rc1",
            "6.10.0-rc2",
            "6.10.0-rc10",
            "6.10.0",
            "6.10.0-rt14",
            "6.11~rc7-amd64",
            "6.11-amd64",
            "6.12.3",
        ];
        let mut kernels = ordered;
        kernels.reverse();
        kernels.sort_by_key(|kernel| parts(kernel));
        assert_eq!(kernels, ordered);
    }
}
