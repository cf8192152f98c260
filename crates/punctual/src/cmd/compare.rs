//! `punctual compare`: two sides of records, judged.

use std::{fs, path::Path};

use analysis::versus::{self, Records};
use anyhow::Context;
use campaign::runner::CAMPAIGN_FILE;
use record::{Outcome, Tool, Versus, file, versus::Change};
use report::export::Format;

use crate::{
    cli::{Compare, FailIf},
    exit::Usage,
    output::{self, Export},
};

/// The end of the names of records.
const RECORD: &str = ".punctual.json";

pub fn run(options: &Compare) -> anyhow::Result<u8> {
    let exports = Export::among(&options.exports, &Format::OF_VERSUS)?;
    let (a, b) = sides(options)?;
    let mut versus = versus::versus(&read(a, options)?, &read(b, options)?, options.least);
    versus.tool = Tool { name: "punctual".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    versus.written_at = campaign::now();
    for export in &exports {
        if let Some(bytes) = export.format().versus(&versus, &output::command_line()) {
            export.write_bytes(&bytes)?;
        }
    }
    output::print_exports(options.output, &exports);
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

/// Reads a side. Only the figures of its records are kept.
fn read(names: &[String], options: &Compare) -> anyhow::Result<Records> {
    let mut side = Records::default();
    for name in names {
        for name in records(name)? {
            for (name, mut record) in output::find_references(&[name])? {
                if !options.profiles.is_empty() {
                    record.scenario.profiles.clone_from(&options.profiles);
                    output::judge(&mut record, &options.profiles)?;
                }
                side.add(name, &record);
            }
        }
    }
    Ok(side)
}

/// The records in a folder, in the order of their names, or the name itself.
fn records(name: &str) -> anyhow::Result<Vec<String>> {
    let path = Path::new(name);
    let folder = match path.file_name() {
        _ if path.is_dir() => path,
        Some(file) if file == CAMPAIGN_FILE => path.parent().unwrap_or(Path::new("")),
        _ => return Ok(vec![name.to_owned()]),
    };
    let listed = if folder == Path::new("") { Path::new(".") } else { folder };
    let entries = fs::read_dir(listed).with_context(|| format!("cannot list {}", listed.display()))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut records: Vec<String> = names
        .filter(|name| name.ends_with(RECORD))
        .map(|name| folder.join(name).to_string_lossy().into_owned())
        .collect();
    records.sort();
    if records.is_empty() {
        return Err(Usage(format!("{name} has no records (*{RECORD}): name a folder or files with results")).into());
    }
    Ok(records)
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
