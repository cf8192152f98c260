//! References: figures that were published elsewhere, as records to be laid beside one's own.

mod builtin;
mod matrix;
mod parse;

use std::{fs, io, path::PathBuf};

use record::{Record, file::FileError};

pub use builtin::references;

/// Why there is no such reference.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// No reference has that name, and it is no file.
    #[error(
        "no reference and no file is called {name:?}, the nearest is {nearest}: list the references with \
         `punctual references`, or name a *.punctual.json file"
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// The most similar name that exists.
        nearest: String,
    },
    /// The file could not be read.
    #[error("cannot read the reference {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no reference.
    #[error("{}, line {line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and how it should be written.
        message: String,
    },
    /// The file is no record.
    #[error(transparent)]
    Record(#[from] FileError),
}

/// The reference of that name; else the record in a file, or the reference in a file whose name ends in `.toml`.
///
/// # Errors
/// When there is neither, or the file holds no record.
pub fn find_reference(name_or_path: &str) -> Result<Record, ReferenceError> {
    if let Some(known) = references().iter().find(|known| name_of(known) == name_or_path) {
        return Ok(known.clone());
    }
    let path = PathBuf::from(name_or_path);
    if name_or_path.ends_with(".toml") {
        let text = fs::read_to_string(&path).map_err(|source| ReferenceError::Read { path: path.clone(), source })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        return parse::parse(&name, &text).map_err(|(line, message)| ReferenceError::Invalid { path, line, message });
    }
    if name_or_path.ends_with(".json") || path.exists() {
        return Ok(record::file::read(&path)?);
    }
    let likeness = |known: &&Record| strsim::jaro_winkler(name_of(known), &name_or_path.to_lowercase());
    let nearest = references().iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let nearest = nearest.map(|known| name_of(known).to_owned()).unwrap_or_default();
    Err(ReferenceError::Unknown { name: name_or_path.to_owned(), nearest })
}

fn name_of(reference: &Record) -> &str {
    reference.published.as_ref().map_or("", |published| published.name.as_str())
}
