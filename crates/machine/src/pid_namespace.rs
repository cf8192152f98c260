//! Namespaces of process ids: an id means nothing in another one.

use std::process;

use crate::Root;

/// The inode of the first namespace (`PROC_PID_INIT_INO`, include/linux/proc_ns.h). It contains all processes.
const FIRST: u64 = 0xEFFF_FFFC;

/// The inode of this process's namespace; `None` if it is unknown.
#[must_use]
pub fn own(root: &Root) -> Option<u64> {
    inode(root, "self")
}

/// True if this process is in the first namespace, that of the host; `None` if it is unknown.
#[must_use]
pub fn is_first(root: &Root) -> Option<bool> {
    own(root).map(|namespace| namespace == FIRST)
}

/// True if `/proc` shows this process's namespace, so that an id in it is the same process.
#[must_use]
pub fn is_that_of_proc(root: &Root) -> bool {
    !root.is_system() || root.link("proc/self").is_some_and(|id| id == process::id().to_string())
}

/// True if a process of another namespace still runs, or if that is unknown: only root in the first namespace sees all
/// processes.
pub(crate) fn may_run(root: &Root, process: u32, namespace: u64) -> bool {
    let sees_all = is_first(root) == Some(true) && rustix::process::geteuid().is_root();
    !sees_all || root.list("proc").iter().any(|id| inode(root, id) == Some(namespace) && is_called(root, id, process))
}

/// True if the process has this id in its own namespace: the last one in `NSpid`.
fn is_called(root: &Root, id: &str, process: u32) -> bool {
    let status = root.read(&format!("proc/{id}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.and_then(|ids| ids.split_whitespace().last()).is_some_and(|last| last == process.to_string())
}

fn inode(root: &Root, process: &str) -> Option<u64> {
    root.link(&format!("proc/{process}/ns/pid"))?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn finds_a_process_of_another_namespace() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for (id, namespace, ids) in [("self", FIRST, "1"), ("17", 7, "17\t5"), ("18", 8, "18\t6")] {
            fs::create_dir_all(root.path(&format!("proc/{id}/ns"))).unwrap();
            symlink(format!("pid:[{namespace}]"), root.path(&format!("proc/{id}/ns/pid"))).unwrap();
            fs::write(root.path(&format!("proc/{id}/status")), format!("Name:\tx\nNSpid:\t{ids}\nVmPeak: 1\n"))
                .unwrap();
        }
        assert!(may_run(&root, 5, 7) && !may_run(&root, 6, 7) && !may_run(&root, 17, 7) && !may_run(&root, 5, 9));
        // Elsewhere, the processes of other namespaces are not visible.
        fs::remove_file(root.path("proc/self/ns/pid")).unwrap();
        symlink("pid:[9]", root.path("proc/self/ns/pid")).unwrap();
        assert!(may_run(&root, 6, 7));
    }

    #[test]
    fn proc_shows_this_namespace() {
        assert!(is_that_of_proc(&Root::system()) && own(&Root::system()).is_some());
    }
}
