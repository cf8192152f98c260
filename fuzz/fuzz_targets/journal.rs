//! Parses any bytes as the journal of a killed run. Undoing it may change only the kernel's files that a run changes.
#![no_main]

use harmless::check_error;
use libfuzzer_sys::fuzz_target;
use machine::{Root, journal};

fuzz_target!(|bytes: &[u8]| {
    let journal = match journal::parse(bytes) {
        Ok(journal) => journal,
        Err(error) => return check_error(error),
    };
    let json = serde_json::to_vec(&journal).expect("a journal can be written");
    assert_eq!(journal::parse(&json), Ok(journal));
    let root = Root::at(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/machine/tests/machines/khadas-vim3l-evl"));
    let journal = journal::parse(&json).expect("parsed before");
    for file in journal.changed_files(&root) {
        let parts: Vec<&str> = file.split('/').collect();
        assert!(!parts.iter().any(|part| matches!(*part, "" | "." | "..")), "{file:?}");
        let starts = ["proc/irq/", "sys/devices/", "sys/fs/cgroup", "sys/kernel/tracing/rv/monitors/"];
        assert!(starts.iter().any(|start| file.starts_with(start)), "{file:?}");
    }
});
