//! Reads the documents that version 0.1 wrote, one of each kind of run.

use std::{fs, path::Path};

use record::{Record, file};

fn path(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records-0.1").join(name)
}

fn kinds(record: &Record) -> Vec<&'static str> {
    let mut kinds: Vec<_> = record.series.iter().map(|series| series.kind.name()).collect();
    kinds.dedup();
    kinds
}

#[test]
fn records_of_version_0_1_are_read_with_their_kinds() {
    for (name, expected) in [
        ("timer", &["wake_ups"][..]),
        ("threads", &["wake_ups"]),
        ("matrix", &["wake_ups"]),
        ("noise", &["gaps"]),
        ("udp", &["wake_ups", "round_trips"]),
        ("stream", &["talker", "listener", "capture"]),
        ("audio", &["audio"]),
        ("process", &["process"]),
        ("capture", &["capture"]),
    ] {
        let record = file::read(&path(&format!("{name}.json"))).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kinds(&record), expected, "{name}");
        assert_eq!(record.tool.version, "0.1.0", "{name}");
        let written = file::parse(&file::to_json(&record)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(written, record, "{name} as this version writes it");
    }
}

#[test]
fn no_field_of_an_older_record_is_lost() {
    let names = fs::read_dir(path("")).expect("the folder is there").map(|entry| entry.expect("an entry").path());
    for path in names.filter(|path| !path.ends_with("campaign.json")) {
        let record = file::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let extra = record.series.iter().flat_map(|series| series.extra.keys());
        assert_eq!(extra.collect::<Vec<_>>(), Vec::<&String>::new(), "{}", path.display());
    }
}

#[test]
fn a_campaign_of_version_0_1_is_read() {
    let campaign = file::read_campaign(&path("campaign.json")).unwrap_or_else(|error| panic!("{error}"));
    let maxima: Vec<_> = campaign.scenarios.iter().flat_map(|entry| &entry.result).map(|of| of.roles.len()).collect();
    assert_eq!(maxima, [1, 1]);
}

#[test]
fn records_of_version_0_1_stay_valid() {
    for entry in fs::read_dir(path("")).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if !path.ends_with("campaign.json") {
            let record = file::read(&path).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(record.obstacle(), None, "{}", path.display());
        }
    }
}
