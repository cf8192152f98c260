//! Reading a record, and writing it so that it is whole at every moment.

mod atomic;
mod target;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

pub use self::atomic::{check_writable, write_atomic};
use crate::{CAMPAIGN_SCHEMA, Campaign, Record, SCHEMA};

/// Why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not a record.
    #[error("{} is not a run record: {reason}", path.display())]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Reads a record.
///
/// # Errors
/// When the file cannot be read, is not JSON, or is not of schema `punctual.run/1`.
pub fn read(path: &Path) -> Result<Record, FileError> {
    let bytes = fs::read(path).map_err(|source| FileError::Read { path: path.to_owned(), source })?;
    parse(&bytes).map_err(|reason| FileError::NotARecord { path: path.to_owned(), reason })
}

/// Reads a record from memory; the error says what is wrong in one line.
///
/// # Errors
/// When the bytes are not JSON, or not of schema `punctual.run/1`.
pub fn parse(bytes: &[u8]) -> Result<Record, String> {
    parse_as(bytes, SCHEMA)
}

fn parse_as<T: DeserializeOwned>(bytes: &[u8], schema: &str) -> Result<T, String> {
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| format!("not JSON ({error})"))?;
    match value.get("schema").and_then(|schema| schema.as_str()) {
        Some(found) if found == schema => {}
        Some(other) => return Err(format!("its schema is {other:?}, this version reads {schema:?}")),
        None => return Err(format!("it has no \"schema\": {schema:?}")),
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Reads the document of a campaign.
///
/// # Errors
/// When the file cannot be read, is not JSON, or is not of schema `punctual.campaign/1`.
pub fn read_campaign(path: &Path) -> Result<Campaign, FileError> {
    let bytes = fs::read(path).map_err(|source| FileError::Read { path: path.to_owned(), source })?;
    parse_as(&bytes, CAMPAIGN_SCHEMA).map_err(|reason| FileError::NotARecord { path: path.to_owned(), reason })
}

/// Whether the file says that it is the document of a campaign.
#[must_use]
pub fn is_campaign(path: &Path) -> bool {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: String,
    }
    let head = fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Head>(&bytes).ok());
    head.is_some_and(|head| head.schema == CAMPAIGN_SCHEMA)
}

/// The document as bytes.
#[must_use]
pub fn to_json(record: &Record) -> Vec<u8> {
    let mut json = serde_json::to_vec(record).expect("a record has no map with keys that are not strings");
    json.push(b'\n');
    json
}

/// The document of a campaign as bytes, indented: people look into it.
#[must_use]
pub fn campaign_to_json(campaign: &Campaign) -> Vec<u8> {
    let mut json = serde_json::to_vec_pretty(campaign).expect("it has no map with keys that are not strings");
    json.push(b'\n');
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn minimal() -> Record {
        Record { schema: SCHEMA.into(), ..Record::default() }
    }

    #[test]
    fn unknown_fields_are_kept() {
        let mut value = serde_json::to_value(minimal()).unwrap();
        value["from_the_future"] = json!({"a": [1, 2]});
        value["machine"]["colour"] = json!("green");
        let record = parse(&serde_json::to_vec(&value).unwrap()).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), value);
    }

    #[test]
    fn what_is_not_a_record_is_refused_in_one_line() {
        for (bytes, expected) in [
            (&b"not json"[..], "not JSON"),
            (b"{}", "no \"schema\""),
            (br#"{"schema":"punctual.run/2"}"#, "its schema is \"punctual.run/2\""),
            (br#"{"schema":"punctual.run/1"}"#, "missing field"),
        ] {
            let error = parse(bytes).unwrap_err();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_record_holds_to_its_schema() {
        let schema = crate::json_schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut record = minimal();
        record.series.push(crate::Series::default());
        record.phases.push(crate::Phase::default());
        record.uses.push(crate::UseVerdict::default());
        let value = serde_json::to_value(&record).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}
