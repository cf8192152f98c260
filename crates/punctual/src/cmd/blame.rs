//! `punctual blame`: the causes of the spikes of a run, from its record.

use std::path::{Path, PathBuf};

use anyhow::bail;
use record::{BlameMode, Record};
use report::{
    blame::{Ranked, ranked},
    terminal,
};
use serde_json::{Value, json};

use crate::{cli::BlameRecord, exit::Usage, output};

pub fn run(options: &BlameRecord) -> anyhow::Result<u8> {
    if let Some(path) = options.export.as_deref().filter(|path| path.extension().is_none_or(|suffix| suffix != "json"))
    {
        return Err(Usage(format!("cannot export the trace to {}: its name must end in .json", path.display())).into());
    }
    let path = &record_of(&options.record)?;
    let record = record::file::read(path)?;
    check_blame_was_on(&record, path)?;
    let spikes = ranked(&record);
    if let Some(number) = options.around.filter(|number| !(1..=spikes.len()).contains(number)) {
        let path = path.display();
        return Err(Usage(match spikes.len() {
            0 => format!("{path} contains no spikes: leave out --around {number}"),
            1 => format!("{path} contains no spike {number}: choose 1, the only one"),
            last => format!("{path} contains no spike {number}: choose 1 (the worst) to {last}"),
        })
        .into());
    }
    if let Some(path) = &options.export {
        record::file::check_writable(path)?;
        record::file::write_atomic(path, output::json(&::blame::perfetto(&record)).as_bytes())?;
        if !options.output.quiet {
            say!("trace  {}: open it in https://ui.perfetto.dev or chrome://tracing", path.display());
        }
    }
    if options.output.json {
        let json = match options.around {
            Some(number) => spike(&spikes[number - 1]),
            None => json!({ "blame": record.blame, "spikes": spikes.iter().map(spike).collect::<Vec<_>>() }),
        };
        output::stdout(|out| writeln!(out, "{}", output::json(&json)))?;
    } else if options.export.is_none() || options.around.is_some() {
        output::print(options.output, |style, width| match options.around {
            Some(number) => terminal::spike(&record, number, style, width).unwrap_or_default(),
            None if options.extent.full => terminal::blame(&record, style, width),
            None if options.output.quiet => terminal::blame_headline(&record, style, width),
            None => terminal::blame_answer(&record, &path.to_string_lossy(), style, width),
        })?;
    }
    Ok(0)
}

/// The record; of a campaign that of its worst scenario.
fn record_of(path: &Path) -> anyhow::Result<PathBuf> {
    if !record::file::is_campaign(path) {
        return Ok(path.to_owned());
    }
    let campaign = record::file::read_campaign(path)?;
    let Some(worst) = report::campaign::worst_record(&campaign) else {
        bail!("{} has no scenario with a result: finish it with the same command and --resume", path.display());
    };
    let worst = path.with_file_name(worst);
    say!("record  {}: the worst scenario of the campaign", worst.display());
    Ok(worst)
}

/// An error if the run did not search for causes of spikes.
fn check_blame_was_on(record: &Record, path: &Path) -> anyhow::Result<()> {
    let mode = record.blame.as_ref().map_or(BlameMode::Off, |blame| blame.mode);
    if mode == BlameMode::Off {
        let path = path.display();
        bail!(
            "{path} contains no causes of spikes, because the run did not search for them: measure again with --blame, \
             e.g. `sudo punctual measure timer --blame`"
        );
    }
    Ok(())
}

/// A spike with its number, phase and CPU.
fn spike(ranked: &Ranked) -> Value {
    let Ranked { number, series, spike } = ranked;
    json!({ "number": number, "phase": series.phase, "cpu": series.cpu, "spike": spike })
}
