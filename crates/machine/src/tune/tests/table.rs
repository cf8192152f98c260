//! The table of settings and the files that it names.

use std::{collections::BTreeSet, fs};

use super::{
    super::{apply::*, *},
    fake::Fake,
};
use crate::journal;

#[test]
fn links_never_lead_out_of_a_recorded_machine() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (root, other) = (Root::at(folder.path()), Root::at(outside.path()));
    let entries = || fs::read_dir(outside.path()).unwrap().count();
    // The journals of another machine.
    keep_files(&other, &unit(&root, "x")).unwrap();
    fs::create_dir_all(outside.path().join("run")).unwrap();
    for name in ["run", "var"] {
        symlink(outside.path().join(name), folder.path().join(name)).unwrap();
    }
    let error = revert(&root).unwrap_err().to_string();
    assert!(error.contains("leads out of") && error.ends_with(": remove what is there, and run again"), "{error}");
    assert!(journal::restore_all(&root).unwrap().is_empty());
    fs::remove_file(folder.path().join("run")).unwrap();
    assert!(keep_files(&root, &unit(&root, "x")).unwrap_err().to_string().contains("leads out of"));
    assert!(revert(&root).unwrap().is_empty());
    assert_eq!(fs::read_dir(outside.path().join("var/lib/punctual")).unwrap().count(), 1, "the other journal stays");
    fs::remove_file(folder.path().join("var")).unwrap();
    // Files of systemd.
    fs::create_dir_all(folder.path().join("etc/systemd")).unwrap();
    symlink(outside.path(), folder.path().join("etc/systemd/system")).unwrap();
    let before = entries();
    let failed = keep_files(&root, &unit(&root, "x")).unwrap().failed;
    assert!(failed.len() == 2 && failed.iter().all(|text| text.contains("leads out of")), "{failed:?}");
    assert_eq!(entries(), before);
    // A file of the kernel, and the lock.
    fs::create_dir_all(folder.path().join("proc/sys/vm")).unwrap();
    symlink(outside.path().join("swappiness"), folder.path().join("proc/sys/vm/swappiness")).unwrap();
    fs::write(outside.path().join("swappiness"), "60").unwrap();
    assert!(SystemOps::write(&root, "proc/sys/vm/swappiness", "1").is_err());
    assert_eq!(other.read("swappiness").as_deref(), Some("60"));
    let lock = journal::folder(&root).join("tune.lock");
    fs::remove_file(&lock).unwrap();
    symlink(outside.path().join("new"), &lock).unwrap();
    let error = revert(&root).unwrap_err().to_string();
    assert!(
        error.contains("it is a symbolic link") && error.ends_with("remove what is there, and run again"),
        "{error}"
    );
    assert!(!other.exists("new"));
}

#[test]
fn only_files_of_the_table_are_written() {
    let fake = Fake::new();
    keep_with(fake.ops(), &fake.all()).unwrap();
    let written: BTreeSet<String> = fake.written.borrow().iter().cloned().collect();
    let files: Vec<&String> =
        written.iter().filter(|path| !path.starts_with("thread") && !path.starts_with("affinity")).collect();
    assert!(files.len() >= 15 && files.iter().all(|path| is_tuned_file(path)), "{files:?}");
    for path in [
        "proc/sys/kernel/core_pattern",
        "proc/sys/kernel/../vm/swappiness",
        "sys/devices/system/cpu/cpu/cpufreq/scaling_governor",
        "sys/devices/system/cpu/cpux/cpufreq/scaling_governor",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor/x",
        "sys/bus/pci/devices/../power/control",
        "sys/bus/pci/devices//power/control",
        "sys/bus/pci/devices/0000:00:02.0/remove",
        "/proc/sys/vm/swappiness",
        "",
    ] {
        assert!(!is_tuned_file(path), "{path}");
    }
}

#[test]
fn ids_are_unique_and_name_findings() {
    let ids: BTreeSet<&str> = DEFINITIONS.iter().map(|definition| definition.id).collect();
    assert_eq!(ids.len(), DEFINITIONS.len());
    let findings: BTreeSet<&str> = crate::checks().map(|check| check.id).collect();
    for Definition { id, finding, values, effect, risk, .. } in DEFINITIONS {
        assert!(finding.is_none_or(|finding| findings.contains(finding)), "{id}");
        assert!(!findings.contains(id) || *finding == Some(*id), "{id}");
        assert!([values, effect, risk].iter().all(|text| !text.is_empty()), "{id}");
        assert!(effect.chars().count() <= 29, "{id}");
    }
}

#[test]
fn every_setting_is_documented() {
    let document = include_str!("../../../../../docs/tune.md");
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    let missing = DEFINITIONS.iter().filter(|definition| {
        let id = format!("`{}`", definition.id);
        !rows.iter().any(|row| row.split('|').nth(1).is_some_and(|ids| ids.contains(&id)))
    });
    assert_eq!(missing.map(|definition| definition.id).collect::<Vec<_>>(), [] as [&str; 0]);
}
