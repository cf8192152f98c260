//! The newest record or campaign, named `LAST` on the command line.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use campaign::runner::CAMPAIGN_FILE;

/// The name of the newest record.
pub const LAST: &str = "LAST";

/// The newest record in the current folder that this user, root, or the caller of sudo wrote.
pub fn newest_record() -> Result<PathBuf, String> {
    let record = newest(entries()?.iter().filter(|path| is_record(path)).cloned());
    record.ok_or_else(|| match newest_result() {
        Ok(campaign) => format!("{} is a campaign: name the record of one of its scenarios", campaign.display()),
        Err(none) => none,
    })
}

/// The same among records and campaigns. A campaign is in the current folder or in one that is in it.
pub fn newest_result() -> Result<PathBuf, String> {
    let entries = entries()?;
    let campaigns = entries.iter().map(|path| path.join(CAMPAIGN_FILE)).chain([PathBuf::from(CAMPAIGN_FILE)]);
    let records = entries.iter().filter(|path| is_record(path)).cloned();
    newest(campaigns.chain(records)).ok_or_else(none)
}

/// The campaign in a folder.
pub fn campaign_in(folder: &Path) -> Result<PathBuf, String> {
    let campaign = folder.join(CAMPAIGN_FILE);
    match campaign.is_file() {
        true => Ok(campaign),
        false => Err(format!("{} is a folder without a campaign: name a *.punctual.json file", folder.display())),
    }
}

/// The error for the HTML report of a record, which names the record.
pub fn record_of_report(report: &Path) -> String {
    let record = report.with_extension("json");
    let record = if record.is_file() { record.display().to_string() } else { "a *.punctual.json file".to_owned() };
    format!("{} is a report, which cannot be read: name its record, {record}", report.display())
}

/// The record that a run with this `--record` wrote: `foo.punctual.json` for `foo` and `foo.json`.
pub fn record_named(path: &Path) -> Option<PathBuf> {
    let record = crate::output::with_extension(path);
    record.is_file().then_some(record)
}

fn entries() -> Result<Vec<PathBuf>, String> {
    let folder =
        fs::read_dir(".").map_err(|error| format!("cannot list the current folder ({error}): name a record"))?;
    Ok(folder.flatten().map(|entry| PathBuf::from(entry.file_name())).collect())
}

fn is_record(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".punctual.json")
}

/// The newest of our files. Others may wait when they are opened.
fn newest(paths: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let is_written = |file: &fs::Metadata| file.is_file() && file.len() > 0;
    let metadata = |path: &PathBuf| fs::metadata(path).ok().filter(is_written).filter(is_ours);
    let mut written: Vec<(SystemTime, PathBuf)> =
        paths.filter_map(|path| Some((metadata(&path)?.modified().ok()?, path))).collect();
    written.sort();
    // Other programs have files of this name, too.
    let is_result = |path: &PathBuf| !path.ends_with(CAMPAIGN_FILE) || record::file::is_campaign(path);
    written.into_iter().rev().map(|(_, path)| path).find(is_result)
}

fn none() -> String {
    "there is no record of yours in the current folder: name one, or run `punctual` first".to_owned()
}

/// True for a file of this user or of root. In a shared folder, the newest record may be that of somebody else.
fn is_ours(file: &fs::Metadata) -> bool {
    file.uid() == 0 || record::file::is_of_this_user(file)
}
