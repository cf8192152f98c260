//! `punctual import`: results of other tools as records.

use std::path::{Path, PathBuf};

use anyhow::bail;
use record::file;

use crate::{cli::Import, output};

pub fn run(options: &Import) -> anyhow::Result<u8> {
    // Nothing is written if one of them cannot be read.
    let records = options.files.iter().map(|path| Ok((target(path), import::import(path, options.unit)?)));
    let records = records.collect::<anyhow::Result<Vec<_>>>()?;
    for (at, (path, _)) in records.iter().enumerate() {
        let is_twice = records[..at].iter().any(|(other, _)| other == path);
        if is_twice || path.symlink_metadata().is_ok() {
            let reason = if is_twice { "would be written twice" } else { "exists" };
            bail!("{} {reason}: remove or rename it, or import in another folder; nothing was written", path.display());
        }
    }
    for (path, record) in records {
        file::write_new(&path, &file::to_json(&record))?;
        if options.output.json {
            output::stdout(|out| out.write_all(&file::to_json(&record)))?;
        } else if options.output.quiet {
            output::stdout(|out| writeln!(out, "{}", path.display()))?;
        } else {
            output::print(options.output, |style, width| report::terminal::summary(&record, style, width))?;
            output::stdout(|out| writeln!(out, "  record    {}", path.display()))?;
        }
    }
    Ok(0)
}

/// The record of a file, in this folder: `hist.punctual.json` for `run/hist.txt`.
fn target(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    let mut name = stem.to_owned();
    name.push(".punctual.json");
    PathBuf::from(name)
}
