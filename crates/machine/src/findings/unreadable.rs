//! An unreadable file or folder is never taken for an absent one, and an empty or damaged file never for a good or a bad
//! value: on each recorded machine, each file and folder that is read is broken in turn, also for root.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use record::{Finding, FindingState};

use super::{CheckContext, GROUPS, checks, findings};
use crate::{Root, facts};

/// Reads that a check can do without: the id, a part of the path, and the evidence that it has instead.
const OTHER_EVIDENCE: [(&str, &str, &str); 2] = [
    ("evl.core", "evl/control/abi", "the state of the core; the title then has no version"),
    ("kernel.debug_options", "sys/devices/virtual", "the configuration of the kernel"),
];

/// True if the content of a broken file is as valid as any (texts that people or programs choose), or not needed.
fn is_valid(path: &str, how: How) -> bool {
    let is_one_of = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    match how {
        How::Unreadable => false,
        // `uname -v` has PREEMPT_RT, too.
        _ if path == "sys/kernel/realtime" => true,
        // The lists of siblings decide.
        _ if path.ends_with("/smt/active") => true,
        // The firmware chose these names, or left them empty.
        How::Empty | How::Garbage if is_one_of(&["/id/sys_vendor", "/id/product_name"]) => true,
        // A kernel that never mounted control groups writes no line, nor does one for a group without controllers. A program can
        // have an empty name.
        How::Empty => is_one_of(&["/config.txt", "/product", "/comm", "proc/self/cgroup", "/cgroup.controllers"]),
        How::Binary => is_one_of(&["/product", "/comm", "/name"]),
        How::Garbage => is_one_of(&["/config.txt", "/product", "/comm", "/model", "/cmdline", "/name"]),
    }
}

fn machines() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = entries.filter(|path| path.is_dir() && !path.ends_with("findings")).collect();
    all.sort();
    all
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&entry.path(), &to),
            kind if kind.is_file() => drop(fs::copy(entry.path(), to).unwrap()),
            _ => symlink(fs::read_link(entry.path()).unwrap(), to).unwrap(),
        }
    }
}

/// The ways to break a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// A link to itself: the kernel returns ELOOP for files and folders, to root as well.
    Unreadable,
    Empty,
    Garbage,
    Binary,
}

/// A file or folder that is broken until this is dropped.
struct Broken {
    path: PathBuf,
    saved: PathBuf,
}

impl Broken {
    fn new(path: PathBuf, saved: &Path, how: How) -> Self {
        let saved = saved.join("saved");
        fs::rename(&path, &saved).unwrap();
        match how {
            How::Unreadable => symlink(&path, &path).unwrap(),
            How::Empty => fs::write(&path, "").unwrap(),
            How::Garbage => fs::write(&path, "%$xyzzy\n").unwrap(),
            How::Binary => fs::write(&path, b"\x01\x7fELF\xff\xfe").unwrap(),
        }
        Self { path, saved }
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        fs::remove_file(&self.path).unwrap();
        fs::rename(&self.saved, &self.path).unwrap();
    }
}

/// The finding of each check, and what only this check read: files and folders.
fn each(root: &Root) -> Vec<(Finding, BTreeSet<String>)> {
    let machine = facts(root);
    let run = |check: &super::Check| {
        let own = root.at_once();
        let finding = check.finding(&CheckContext::new(&own, &machine, None, None));
        let seen = own.seen();
        let files = seen.files.into_iter().filter(|(_, read)| read.is_ok()).map(|(path, _)| path);
        (finding, files.chain(seen.folders.into_keys()).chain(seen.existing).collect())
    };
    checks().map(run).collect()
}

fn is_content(finding: &Finding) -> bool {
    matches!(finding.state, FindingState::Ok | FindingState::NotApplicable)
}

const ALL: [How; 4] = [How::Unreadable, How::Empty, How::Garbage, How::Binary];

/// Without one of its files, a check is unknown: neither content nor a warning. Each machine has one of the ways.
#[test]
fn no_check_decides_with_a_broken_file() {
    for (n, how) in ALL.into_iter().enumerate() {
        let some: Vec<PathBuf> = machines().into_iter().skip(n).step_by(ALL.len()).collect();
        let broken = break_each_file(&some, how).0;
        assert!(broken > 200, "{how:?}: {broken} files and folders");
    }
}

#[test]
#[ignore = "breaks each file of each machine in each way, which takes minutes: make test-all runs it"]
fn no_check_decides_with_a_file_that_is_broken_in_any_way() {
    for how in ALL {
        let (broken, used) = break_each_file(&machines(), how);
        assert!(broken > 900, "{how:?}: {broken} files and folders");
        let unused: Vec<_> = OTHER_EVIDENCE.iter().filter(|known| !used.contains(*known)).collect();
        assert!(how != How::Unreadable || unused.is_empty(), "no machine needs {unused:?}");
    }
}

/// Returns the number of files and folders that were broken, and the other evidence that was used.
fn break_each_file(machines: &[PathBuf], how: How) -> (usize, BTreeSet<(&'static str, &'static str, &'static str)>) {
    let mut found = BTreeMap::new();
    let mut used = BTreeSet::new();
    let mut broken_count = 0;
    for machine in machines {
        let copied = tempfile::tempdir().unwrap();
        let saved = tempfile::tempdir().unwrap();
        copy(machine, copied.path());
        let root = Root::at(copied.path());
        let before = each(&root);
        let of_facts = root.at_once();
        let _ = facts(&of_facts);
        let of_facts = of_facts.seen();
        let paths: BTreeSet<&String> = before.iter().flat_map(|(_, read)| read).collect();
        let paths: BTreeSet<&String> = paths.into_iter().chain(of_facts.files.keys()).collect();
        for path in paths.into_iter().filter(|path| !path.is_empty() && root.exists(path)) {
            if is_valid(path, how) || (how != How::Unreadable && root.is_folder(path)) {
                continue;
            }
            let broken = Broken::new(root.path(path), saved.path(), how);
            broken_count += 1;
            for ((was, read), (is, _)) in before.iter().zip(each(&root)) {
                // The facts can have read the file for the check.
                let has_changed = (was.state, &was.title) != (is.state, &is.title);
                let is_false_alarm = is_content(was) && matches!(is.state, FindingState::Warn | FindingState::Fail);
                if !is_false_alarm && (!is_content(&is) || !(read.contains(path) || has_changed)) {
                    continue;
                }
                match OTHER_EVIDENCE.iter().find(|(id, part, _)| *id == is.id && path.contains(part)) {
                    Some(known) => drop(used.insert(*known)),
                    None => drop(found.insert(format!("{} without {path}", is.id), (was.title.clone(), is))),
                }
            }
            drop(broken);
        }
    }
    assert!(found.is_empty(), "{} cases: {found:#?}", found.len());
    (broken_count, used)
}

/// All folders of a machine at once, as in a root folder of mode 000.
#[test]
fn a_machine_without_a_readable_folder_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["proc", "sys", "dev", "run", "etc", "usr", "boot", ".dockerenv"] {
        symlink(name, folder.path().join(name)).unwrap();
    }
    let root = Root::at(folder.path());
    let found = findings(&root, &facts(&root), None, None);
    assert_eq!(found.len(), GROUPS.iter().map(|group| group.len()).sum::<usize>());
    for finding in found {
        assert_eq!(finding.state, FindingState::Unknown, "{finding:?}");
    }
}
