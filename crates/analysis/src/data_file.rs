//! Files of profiles and references: built-in ones, and ones on disk.

use std::{
    io,
    path::{Path, PathBuf},
};

use import::ImportError;
use record::file::{SETTINGS_BYTES_MAX, read_text, remedy_of_reading};
use serde::de::DeserializeOwned;

/// Why a profile or a reference could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No built-in file has that name, and it does not name a file.
    #[error("no {kind} is called {name:?}{nearest}: list them with `punctual {kind}s`, or name a {files} file")]
    Unknown {
        /// `profile` or `reference`.
        kind: &'static str,
        /// The requested name.
        name: String,
        /// The most similar name, if one is similar enough: `, the nearest is cnc-loop`.
        nearest: String,
        /// The accepted file names.
        files: &'static str,
    },
    /// Two requested profiles have the same name.
    #[error("two profiles are called {name}, {first} and {second}: name each once, or rename one file")]
    SameName {
        /// The name of both.
        name: String,
        /// The first one, as it was requested.
        first: String,
        /// The second one, as it was requested.
        second: String,
    },
    /// The file could not be read.
    #[error("cannot read the {kind} {}: {source}{}", path.display(), remedy_of_reading(source))]
    Read {
        /// `profile` or `reference`.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// The error from the system.
        source: io::Error,
    },
    /// The file has a mistake.
    #[error("{}, line {line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The mistake, and the correct form.
        message: String,
    },
    /// The file is neither a record nor in a format of another tool.
    #[error(transparent)]
    Record(#[from] ImportError),
}

/// The line of a mistake, from 1, and the mistake.
pub(crate) type Mistake = (usize, String);

/// A table of the names and texts of TOML files in a folder of the repository.
macro_rules! toml_files {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $folder, "/", $name, ".toml")))),*]
    };
}
pub(crate) use toml_files;

/// Parses the built-in `files` of `folder`.
///
/// # Panics
/// If a file has a mistake; the tests of each folder ensure that there are none.
pub(crate) fn parse_all<T>(
    folder: &str,
    files: &[(&str, &str)],
    parse: fn(&str, &str) -> Result<T, Mistake>,
) -> Vec<T> {
    let parse = |&(name, text): &(&str, &str)| {
        parse(name, text).unwrap_or_else(|(line, message)| panic!("{folder}/{name}.toml, line {line}: {message}"))
    };
    files.iter().map(parse).collect()
}

/// Reads the TOML file at `path`; its stem is the name.
pub(crate) fn read<T>(
    kind: &'static str,
    path: &str,
    parse: fn(&str, &str) -> Result<T, Mistake>,
) -> Result<T, LoadError> {
    let path = PathBuf::from(path);
    let text =
        read_text(&path, SETTINGS_BYTES_MAX).map_err(|source| LoadError::Read { kind, path: path.clone(), source })?;
    parse(&stem(&path), &text).map_err(|(line, message)| LoadError::Invalid { path, line, message })
}

/// The error for a name that is none of `names`.
pub(crate) fn unknown<'a>(
    kind: &'static str,
    name: &str,
    names: impl Iterator<Item = &'a str>,
    files: &'static str,
) -> LoadError {
    let names: Vec<&str> = names.collect();
    let beginning: Vec<&str> =
        names.iter().filter(|known| name.len() >= 3 && known.starts_with(name)).copied().collect();
    let nearest = match (&beginning[..], nearest(name, names.iter().copied())) {
        ([first, .., last], _) if beginning.len() <= 3 => {
            let between = beginning.get(1).filter(|_| beginning.len() == 3);
            let between = between.map_or_else(String::new, |middle| format!(", {middle}"));
            format!(", the nearest are {first}{between} and {last}")
        }
        (_, Some(nearest)) => format!(", the nearest is {nearest}"),
        (_, None) => String::new(),
    };
    LoadError::Unknown { kind, name: name.to_owned(), nearest, files }
}

/// The known word that `word` is the beginning of, or else the most similar one: at most a third of its letters differ.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let known: Vec<&str> = known.collect();
    let beginning = known.iter().find(|name| word.len() >= 3 && name.starts_with(&word)).copied();
    beginning.or_else(|| {
        let (edits, name) = known.iter().map(|name| (strsim::damerau_levenshtein(&word, name), *name)).min()?;
        (edits <= (name.len() / 3).max(1)).then_some(name)
    })
}

/// The file name of `path` without its ending.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Parses TOML text.
pub(crate) fn parse_toml<T: DeserializeOwned>(text: &str) -> Result<T, Mistake> {
    toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1;
        (line, error.message().replace('\n', ", "))
    })
}

/// The first line that starts with `key`, from 1; 1 if there is none.
pub(crate) fn line_of(text: &str, key: &str) -> usize {
    text.lines().position(|line| line.trim_start().starts_with(key)).map_or(1, |index| index + 1)
}

/// True for names in lower case with digits and hyphens.
pub(crate) fn is_kebab(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}
