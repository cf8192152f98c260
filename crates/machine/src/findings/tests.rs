//! Machines that were judged wrongly.

mod isolation;
mod plans;
mod remedies;
mod states;

use std::fs;

use record::Finding;
use tempfile::TempDir;

use crate::{
    Root, facts, findings,
    tune::{self, Need},
};

/// A machine with these files, and two CPUs.
fn machine(files: &[(&str, &str)]) -> (TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    for (path, text) in [("sys/devices/system/cpu/online", "0-1")].iter().chain(files) {
        put(&root, path, text);
    }
    (folder, root)
}

fn put(root: &Root, path: &str, text: &str) {
    fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
    fs::write(root.path(path), text).unwrap();
}

fn finding(root: &Root, id: &str) -> Finding {
    findings(root, &facts(root), None, None).into_iter().find(|finding| finding.id == id).unwrap()
}

fn reason(root: &Root, id: &'static str) -> Option<String> {
    let plan = tune::plan(root, &Need { only: vec![id], ..Need::default() }).unwrap();
    plan.not_here.into_iter().next().map(|not| not.reason)
}

/// A machine with four CPUs, two of them isolated. Each interrupt has a number, handlers, CPUs, and a CPU in use.
fn with_interrupts(release: &str, cmdline: &str, interrupts: &[(u32, &str, &str, &str)]) -> (TempDir, Root) {
    let (folder, root) = machine(&[
        ("sys/devices/system/cpu/online", "0-3"),
        ("sys/devices/system/cpu/isolated", "2-3"),
        ("proc/sys/kernel/osrelease", release),
        ("proc/cmdline", cmdline),
    ]);
    let mut table = "           CPU0       CPU1       CPU2       CPU3\n".to_owned();
    for (number, handlers, cpus, effective) in interrupts {
        table += &format!(" {number}: 1 1 1 1 PCI-MSIX-0000:01:00.0 {number}-edge {handlers}\n");
        put(&root, &format!("proc/irq/{number}/smp_affinity_list"), cpus);
        put(&root, &format!("proc/irq/{number}/effective_affinity_list"), &format!("{effective}\n"));
        fs::create_dir_all(root.path(&format!("proc/irq/{number}/{handlers}"))).unwrap();
    }
    put(&root, "proc/interrupts", &table);
    (folder, root)
}
