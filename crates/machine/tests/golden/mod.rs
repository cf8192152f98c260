//! Expected results in JSON files. With the environment variable `UPDATE` the files are written instead of compared.

use std::{collections::BTreeMap, fs, path::Path};

use record::Finding;
use serde::Serialize;

/// True if the files must be written.
pub fn update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// Compares a value with a file.
pub fn check(file: &Path, value: &impl Serialize) {
    let seen = serde_json::to_string_pretty(value).unwrap() + "\n";
    if update() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, &seen).unwrap();
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    for (seen, expected) in seen.lines().zip(expected.lines()) {
        assert_eq!(seen, expected, "{}", file.display());
    }
    assert_eq!(seen.lines().count(), expected.lines().count(), "{}", file.display());
}

/// Compares the findings of all subjects with the files of a folder: one per finding, so that a new finding changes no
/// existing file.
pub fn check_findings(folder: &Path, found: &BTreeMap<&str, Vec<Finding>>) {
    let ids = |findings: &[Finding]| -> Vec<String> { findings.iter().map(|finding| finding.id.clone()).collect() };
    let all_ids = found.values().next().map(|findings| ids(findings)).unwrap();
    for (subject, findings) in found {
        assert_eq!(ids(findings), all_ids, "{subject} has the same findings in the same order");
    }
    for (at, id) in all_ids.iter().enumerate() {
        let of_id: BTreeMap<&str, &Finding> =
            found.iter().map(|(subject, findings)| (*subject, &findings[at])).collect();
        check(&folder.join(format!("{id}.json")), &of_id);
    }
    let mut expected: Vec<String> = all_ids.iter().map(|id| format!("{id}.json")).collect();
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = names.collect();
    expected.sort();
    files.sort();
    assert_eq!(files, expected, "one file for each finding");
}
