//! Reading records, and writing them atomically.

mod atomic;
mod target;
mod whole;

use std::{
    env, fs,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

pub use self::{
    atomic::{Output, check_writable, create, fill_or_send, write_atomic, write_new, write_or_send, write_unfollowed},
    target::create_folder,
    target::writer_of_unfinished,
    whole::{SETTINGS_BYTES_MAX, check_regular, read_bytes, read_regular, read_text},
};
use crate::{
    CAMPAIGN_SCHEMA, Campaign, Capture, Proof, Record, SCHEMA, Versus, bounded, proof::PROOF_SCHEMA, versus::Across,
    visible::escape_json,
};

/// The largest record and document of a campaign that is read, bytes: 64 measured CPUs take about 35 MB. Reading takes
/// about four times as much memory, and [`bounded`] limits it.
const RECORD_BYTES_MAX: u64 = 128 << 20;
/// The memory that reading may take in addition, bytes, such as for fields of a newer version.
const PARSE_BYTES: usize = 64 << 20;

/// An error in reading or writing a record.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file could not be read.
    #[error("cannot read {}: {source}{}", path.display(), remedy_of_opening(path, source))]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file could not be written.
    #[error("cannot write {}: {source}{}", path.display(), remedy_of(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is not a record.
    #[error("{} is not a run record: {reason}", path.display())]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// Reason, in one line.
        reason: String,
    },
}

/// The same about a file that the user names: the shell leaves a pattern as it is if no file matches it.
#[must_use]
pub fn remedy_of_opening(path: &Path, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound if is_pattern(path) => "; no file matches this pattern",
        _ => remedy_of_reading(error),
    }
}

/// What to do about an error in reading; empty if its text says that.
#[must_use]
pub fn remedy_of_reading(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; check its name and folder",
        io::ErrorKind::PermissionDenied => "; make it readable for this user",
        io::ErrorKind::IsADirectory => "; name a file in it",
        _ => "",
    }
}

/// True for a name with wildcards of the shell.
#[must_use]
pub fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

/// What to do about an error in writing; empty if its text says that.
fn remedy_of(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; create its folder, or choose another one",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a folder that you can write to"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space, or choose another folder",
        io::ErrorKind::FileTooLarge => "; raise the limit with `ulimit -f unlimited`",
        io::ErrorKind::Other => "",
        _ => "; choose another file",
    }
}

/// True for a file or folder of this user or, for root, of the user who called sudo.
#[must_use]
pub fn is_of_this_user(found: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid();
    let caller = env::var("SUDO_UID").ok().and_then(|id| id.parse::<u32>().ok()).filter(|_| user.is_root());
    found.uid() == user.as_raw() || Some(found.uid()) == caller
}

/// Reads a record.
///
/// # Errors
/// If the file cannot be read, is not JSON, or is not of schema `punctual.run/1`.
pub fn read(path: &Path) -> Result<Record, FileError> {
    let bytes = bytes_of(path)?;
    parse(&bytes).map_err(|reason| FileError::NotARecord { path: path.to_owned(), reason })
}

/// Reads a record from memory. The error is one line. A record that contradicts itself becomes invalid.
///
/// # Errors
/// If the bytes are not JSON or not of schema `punctual.run/1`.
pub fn parse(bytes: &[u8]) -> Result<Record, String> {
    let mut record: Record = parse_as(bytes, SCHEMA)?;
    record.capture = record.capture.map(Capture::without_unknown);
    record.note_contradictions();
    Ok(record)
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, FileError> {
    read_bytes(path, RECORD_BYTES_MAX).map_err(|source| FileError::Read { path: path.to_owned(), source })
}

fn parse_as<T: DeserializeOwned>(bytes: &[u8], schema: &str) -> Result<T, String> {
    let head = serde_json::from_slice::<Head>(bytes);
    match head.map(|head| head.schema) {
        Ok(found) if found == schema => {}
        Ok(other) if other == CAMPAIGN_SCHEMA => {
            return Err("it is a campaign: print it with `punctual show`, or name the record of a scenario".to_owned());
        }
        Ok(other) if other == PROOF_SCHEMA => {
            return Err("it is a search of `punctual tune --prove`: print it with `punctual show`".to_owned());
        }
        Ok(other) => return Err(format!("its schema is {other:?}, but this version reads {schema:?}")),
        Err(error) if error.is_data() => return Err(format!("it has no \"schema\": {schema:?}")),
        Err(error) => return Err(format!("not JSON ({error})")),
    }
    // Not by way of a `serde_json::Value`, which takes several times the memory of the record.
    bounded::from_slice(bytes, PARSE_BYTES).map_err(|error| error.to_string())
}

/// The first key of a document, which names its schema.
#[derive(serde::Deserialize)]
struct Head {
    schema: String,
}

/// True if the file contains the record of a run that started at another time. Only its head is read.
#[must_use]
pub fn is_of_another_run(path: &Path, started_at: &str) -> bool {
    // `started_at` is one of the first fields.
    const HEAD_BYTES: u64 = 4096;
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    let (head, own) = (String::from_utf8_lossy(&head), format!("\"started_at\":\"{started_at}\""));
    read.is_ok() && head.contains("\"started_at\"") && !head.contains(&own)
}

/// Reads the document of a campaign.
///
/// # Errors
/// If the file cannot be read, is not JSON, or is not of schema `punctual.campaign/1`.
pub fn read_campaign(path: &Path) -> Result<Campaign, FileError> {
    let bytes = bytes_of(path)?;
    parse_campaign(&bytes).map_err(|reason| FileError::NotARecord { path: path.to_owned(), reason })
}

/// Reads the document of a campaign from memory. The error is one line.
///
/// # Errors
/// If the bytes are not JSON or not of schema `punctual.campaign/1`.
pub fn parse_campaign(bytes: &[u8]) -> Result<Campaign, String> {
    parse_as(bytes, CAMPAIGN_SCHEMA)
}

/// True if the file claims to be the document of a campaign.
#[must_use]
pub fn is_campaign(path: &Path) -> bool {
    bytes_of(path).is_ok_and(|bytes| document_of(&bytes) == Some(Document::Campaign))
}

/// A document of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// A campaign.
    Campaign,
    /// A search for the changes that help.
    Proof,
}

/// The document that this text claims to be; `None` for a record and other texts.
#[must_use]
pub fn document_of(bytes: &[u8]) -> Option<Document> {
    match serde_json::from_slice::<Head>(bytes).ok()?.schema.as_str() {
        CAMPAIGN_SCHEMA => Some(Document::Campaign),
        PROOF_SCHEMA => Some(Document::Proof),
        _ => None,
    }
}

/// Reads the document of a search for the changes that help.
///
/// # Errors
/// If the file cannot be read, is not JSON, is not of schema `punctual.proof/1`, or contradicts itself.
pub fn read_proof(path: &Path) -> Result<Proof, FileError> {
    let bytes = bytes_of(path)?;
    parse_proof(&bytes).map_err(|reason| FileError::NotARecord { path: path.to_owned(), reason })
}

/// Reads the document of a search from memory. The error is one line.
///
/// # Errors
/// If the bytes are not JSON, not of schema `punctual.proof/1`, or contradict themselves.
pub fn parse_proof(bytes: &[u8]) -> Result<Proof, String> {
    let proof: Proof = parse_as(bytes, PROOF_SCHEMA)?;
    proof.check()?;
    Ok(proof)
}

/// Serializes a record.
#[must_use]
pub fn to_json(record: &Record) -> Vec<u8> {
    let json = serde_json::to_string(record).expect("all map keys of a record are strings");
    escape_json(json + "\n").into_bytes()
}

/// Serializes the document of a campaign, indented for human readers.
#[must_use]
pub fn campaign_to_json(campaign: &Campaign) -> Vec<u8> {
    in_json(campaign)
}

/// Serializes the document of a search.
#[must_use]
pub fn proof_to_json(proof: &Proof) -> Vec<u8> {
    in_json(proof)
}

/// Serializes the document of a comparison.
#[must_use]
pub fn versus_to_json(versus: &Versus) -> Vec<u8> {
    in_json(versus)
}

/// Serializes the document of a comparison across the values of a condition.
#[must_use]
pub fn across_to_json(across: &Across) -> Vec<u8> {
    in_json(across)
}

fn in_json(document: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_string_pretty(document).expect("all map keys of the documents are strings");
    escape_json(json + "\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_campaign_and_a_missing_file_have_a_remedy() {
        let campaign = json!({ "schema": CAMPAIGN_SCHEMA });
        let error = parse(campaign.to_string().as_bytes()).unwrap_err();
        assert_eq!(error, "it is a campaign: print it with `punctual show`, or name the record of a scenario");
        let missing = read(Path::new("/no/such.punctual.json")).unwrap_err().to_string();
        assert!(missing.ends_with("; check its name and folder"), "{missing}");
    }

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
    fn refuses_other_files_with_a_one_line_error() {
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
    fn a_record_conforms_to_its_schema() {
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
