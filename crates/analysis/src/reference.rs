//! References: figures that were published elsewhere, as records for comparison.

mod matrix;
mod parse;

use std::{path::Path, sync::LazyLock};

use import::Unit;
use record::{Record, file::is_pattern};

pub use parse::parse;

use crate::data_file::{self, LoadError, parse_all, toml_files};

/// Name and text of each file in `references/`.
const FILES: &[(&str, &str)] = toml_files!("references":
    "athlon-rtai"
    "athlon-xenomai"
    "cortex-a53-rt"
    "cortex-a9-rt"
    "intel-avb"
    "rpi3-arch"
    "rpi3-rt"
    "vim3l-evl"
);

static REFERENCES: LazyLock<Vec<Record>> = LazyLock::new(|| parse_all("references", FILES, parse));

/// The built-in references, by name. Each is a record with [`Record::published`].
#[must_use]
pub fn references() -> &'static [Record] {
    &REFERENCES
}

/// The built-in reference of that name, or the reference in a `.toml` file, or the record in another file, which can also be
/// one of another tool.
///
/// # Errors
/// If there is neither, or the file has mistakes or is not a record.
pub fn find_reference(name_or_path: &str) -> Result<Record, LoadError> {
    find_reference_in(name_or_path, None)
}

/// The same; `unit` is that of files that do not say theirs.
///
/// # Errors
/// Those of [`find_reference`].
pub fn find_reference_in(name_or_path: &str, unit: Option<Unit>) -> Result<Record, LoadError> {
    if let Some(known) = references().iter().find(|known| name_of(known) == name_or_path) {
        return Ok(known.clone());
    }
    if name_or_path.ends_with(".toml") {
        return data_file::read("reference", name_or_path, parse);
    }
    let path = Path::new(name_or_path);
    if name_or_path.ends_with(".json") || is_pattern(path) || path.exists() {
        return Ok(import::read(path, unit)?);
    }
    let names = references().iter().map(name_of);
    Err(data_file::unknown("reference", name_or_path, names, "*.toml, *.punctual.json or another tool's"))
}

fn name_of(reference: &Record) -> &str {
    reference.published.as_ref().map_or("", |published| published.name.as_str())
}

#[cfg(test)]
mod tests;
