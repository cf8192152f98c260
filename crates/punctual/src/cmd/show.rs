//! `punctual show`: prints a record, or exports it in other formats.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use analysis::versus::{self, Records};
use anyhow::Context;
use record::{
    Campaign, State,
    file::{self, Document, FileError},
};
use report::export::Format;

use crate::{
    cli::{Extent, Show, Tables},
    cmd::compare,
    exit::Usage,
    output::{self, Export},
};

pub fn run(options: &Show) -> anyhow::Result<u8> {
    if !options.more.is_empty() {
        return together(options);
    }
    let mut record = match import::log(&options.record, options.unit) {
        Some(log) => log?,
        None => {
            // Once: it can be a pipe.
            let text = import::text_of(&options.record)?;
            match file::document_of(text.as_bytes()) {
                Some(Document::Campaign) => return campaign(options, &text),
                Some(Document::Proof) => return proof(options, &text),
                None => import::parse(&options.record, &text, options.unit)?,
            }
        }
    };
    let exports = Export::among(&options.exports, &Format::OF_RECORDS)?;
    let others = output::find_references_in(&options.against, options.unit)?;
    output::compare_with(&mut record, &others);
    if options.profiles.is_empty() {
        analysis::rejudge(&mut record);
        record.tails = analysis::tails(&record);
    } else {
        record.scenario.profiles.clone_from(&options.profiles);
        output::judge(&mut record, &options.profiles)?;
    }
    for export in &exports {
        export.write(&record)?;
    }
    output::print_exports(options.output, &exports);
    if options.open {
        open(&options.record, &report::html::render(&record))?;
        return Ok(output::status(&record));
    }
    let profiles = options.profiles.iter().flat_map(|profile| ["--profile", profile]);
    let repeated: Vec<&str> = profiles.chain(options.against.iter().flat_map(|other| ["--against", other])).collect();
    if options.output.json {
        output::stdout(|out| std::io::Write::write_all(out, &file::to_json(&record)))?;
    } else if exports.is_empty() && (record.cells.is_empty() || record.published.is_some()) {
        output::print_record(
            options.output,
            options.extent,
            &record,
            Some(&options.record),
            &repeated,
            |style, width| report::terminal::summary(&record, style, width),
        )?;
    } else if exports.is_empty() {
        let figures = Tables::figures(&options.show);
        let extent = Extent { full: options.extent.full || !options.show.is_empty() };
        output::print_record(options.output, extent, &record, Some(&options.record), &repeated, |style, width| {
            report::terminal::matrix(&record, &figures, style, width)
        })?;
    }
    Ok(output::status(&record))
}

/// Prints several records as one table, or exports it with their curves.
fn together(options: &Show) -> anyhow::Result<u8> {
    let exports = Export::among(&options.exports, &Format::OF_VERSUS)?;
    let first = options.record.to_string_lossy().into_owned();
    let names: Vec<String> = std::iter::once(first).chain(options.more.iter().cloned()).collect();
    let sides = output::find_references_in(&names, options.unit)?.into_iter().map(|(name, record)| {
        let mut side = Records::default();
        side.add(name.clone(), &record);
        (name, side)
    });
    compare::deliver(versus::overlay(&sides.collect::<Vec<_>>()), &exports, options.output)?;
    Ok(0)
}

/// Prints the table of a campaign, or exports it.
fn campaign(options: &Show, text: &str) -> anyhow::Result<u8> {
    let exports = Export::among(&options.exports, &Format::OF_CAMPAIGNS)?;
    let mut campaign = file::parse_campaign(text.as_bytes()).map_err(|reason| invalid(options, reason))?;
    take_results_from_records(&mut campaign, options)?;
    for export in &exports {
        if let Some(bytes) = export.format().campaign(&campaign) {
            export.write_bytes(&bytes)?;
        }
    }
    output::print_exports(options.output, &exports);
    if options.open {
        open(&options.record, &report::html::render_campaign(&campaign))?;
    } else if options.output.json {
        output::stdout(|out| out.write_all(&file::campaign_to_json(&campaign)))?;
    } else if exports.is_empty() {
        // Comparisons are tables.
        let extent = Extent { full: options.extent.full || !options.against.is_empty() };
        output::print_campaign(options.output, extent, &campaign, &options.record)?;
    }
    Ok(analysis::campaign::exit_status(&campaign))
}

/// Prints a search of `punctual tune --prove`. Its conclusions are drawn again from its rounds.
fn proof(options: &Show, text: &str) -> anyhow::Result<u8> {
    if !options.exports.is_empty() || !options.against.is_empty() || !options.profiles.is_empty() {
        return Err(Usage(
            "a search of `punctual tune --prove` has no exports, profiles or comparisons: leave them out".to_owned(),
        )
        .into());
    }
    let mut proof = file::parse_proof(text.as_bytes()).map_err(|reason| invalid(options, reason))?;
    if proof.conclusion.is_some() {
        proof.conclusion = Some(analysis::prove::conclude(&proof));
    }
    if options.open {
        open(&options.record, &report::html::render_proof(&proof))?;
    } else if options.output.json {
        output::stdout(|out| out.write_all(&file::proof_to_json(&proof)))?;
    } else {
        output::print(options.output, |style, width| match options.output.quiet {
            true => report::terminal::proof_headline(&proof, style),
            false => report::terminal::proof(&proof, options.extent.full, style, width),
        })?;
    }
    Ok(0)
}

fn invalid(options: &Show, reason: String) -> FileError {
    FileError::NotARecord { path: options.record.clone(), reason }
}

/// Writes the report next to a record, and opens it in the browser.
fn open(record: &Path, report: &str) -> anyhow::Result<()> {
    let path = record.with_extension("html");
    file::write_atomic(&path, report.as_bytes())?;
    // Without a browser, it prints each program that it tried.
    let opened =
        Command::new(OPENER).arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let path = path.display();
    let status =
        opened.with_context(|| format!("cannot start {OPENER} (package xdg-utils): open {path} in a browser"))?;
    anyhow::ensure!(status.success(), "{OPENER} found no program for {path} ({status}): open it in a browser");
    Ok(())
}

/// The program that opens a file in the user's browser.
const OPENER: &str = "xdg-open";

/// Takes the results of each scenario from its record, judged again, because anybody may have changed the campaign's
/// document. Compares the record with the references.
fn take_results_from_records(campaign: &mut Campaign, options: &Show) -> anyhow::Result<()> {
    let others = output::find_references_in(&options.against, options.unit)?;
    let dir = options.record.parent().unwrap_or(Path::new(""));
    for (index, entry) in campaign.scenarios.iter_mut().enumerate() {
        // The name is computed, so that a document cannot name the record of another campaign.
        entry.record = record::record_name(index, &entry.name, entry.repeat);
        let path = dir.join(&entry.record);
        if entry.result.is_none() && !path.exists() {
            continue;
        }
        // A pipe of this name would never end.
        let read = file::check_regular(&path).map_err(|source| FileError::Read { path: path.clone(), source });
        match read.and_then(|()| file::read(&path)) {
            Ok(record) if !entry.is_of(&record) => {
                entry.set_unreadable(&format!("{} is the record of another scenario", entry.record));
            }
            Ok(mut record) => {
                output::compare_with(&mut record, &others);
                analysis::rejudge(&mut record);
                let took_ns = entry.result.as_ref().map_or(0, |result| result.took_ns);
                entry.set_run(&record, took_ns, report::blame::heaviest(&record));
            }
            Err(error) => entry.set_unreadable(&error.to_string()),
        }
    }
    if has_more_records(dir, campaign.scenarios.len()) {
        campaign.state = State::Interrupted;
        campaign.notes.push("the folder contains records of scenarios that campaign.json does not list".to_owned());
    } else if campaign.is_complete() {
        campaign.state = State::Complete;
    } else if campaign.state == State::Complete {
        campaign.state = State::Interrupted;
    }
    Ok(())
}

/// True if the folder contains a record with the number of a scenario above `count`.
fn has_more_records(dir: &Path, count: usize) -> bool {
    let dir = if dir == Path::new("") { Path::new(".") } else { dir };
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).any(|name| {
        let number = name.strip_suffix(".punctual.json").and_then(|name| name.split('-').next());
        number
            .filter(|number| number.len() >= 3)
            .and_then(|number| number.parse().ok())
            .is_some_and(|n: usize| n > count)
    })
}
