//! Network namespaces by the kernel's names for them: the current one, and access to others.

use crate::Root;

/// Access to a network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamespaceAccess {
    /// It is the current namespace.
    Current,
    /// Through this file, which `nsenter --net` accepts.
    ByFile(String),
    /// The namespace no longer exists.
    Gone,
    /// Not known, because the processes of other users are not visible.
    NotVisible,
}

/// The name of the calling thread's namespace, e.g. `net:[4026531840]`; `None` if `/proc` does not show it.
pub(crate) fn current(root: &Root) -> Option<String> {
    root.link("proc/thread-self/ns/net")
}

/// Finds access to the namespace `name`: by a process in it, a mount of it, or an open descriptor.
pub(crate) fn access(root: &Root, name: &str) -> NamespaceAccess {
    if current(root).as_deref() == Some(name) {
        return NamespaceAccess::Current;
    }
    let is_it = |path: &String| root.link(path).as_deref() == Some(name);
    let processes: Vec<String> = root.list("proc").into_iter().filter(|file| file.parse::<u32>().is_ok()).collect();
    let by_process = || processes.iter().map(|process| format!("proc/{process}/ns/net")).find(is_it);
    let by_descriptor = || {
        let folders = processes.iter().map(|process| format!("proc/{process}/fd"));
        folders.flat_map(|folder| root.list(&folder).into_iter().map(move |fd| format!("{folder}/{fd}"))).find(is_it)
    };
    let found = by_process().or_else(|| mount_of(root, name)).or_else(by_descriptor);
    match found {
        Some(path) => NamespaceAccess::ByFile(format!("/{path}")),
        // A process that cannot see the namespace of process 1 cannot see all others.
        None if root.link("proc/1/ns/net").is_none() => NamespaceAccess::NotVisible,
        None => NamespaceAccess::Gone,
    }
}

/// The path where the namespace is mounted, as `ip netns add` does. Fields 4 and 5 of a line are the root and the mount
/// point.
fn mount_of(root: &Root, name: &str) -> Option<String> {
    let mounts = root.read("proc/self/mountinfo")?;
    let fields = |line: &str| -> Option<String> {
        let mut fields = line.split_whitespace().skip(3);
        (fields.next()? == name).then(|| fields.next().map(|path| path.trim_start_matches('/').to_owned()))?
    };
    mounts.lines().find_map(fields)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn finds_a_namespace_by_process_mount_or_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let link = |path: &str, name: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            symlink(name, root.path(path)).unwrap();
        };
        assert_eq!(access(&root, "net:[7]"), NamespaceAccess::NotVisible);
        link("proc/thread-self/ns/net", "net:[1]");
        link("proc/1/ns/net", "net:[1]");
        assert_eq!(access(&root, "net:[1]"), NamespaceAccess::Current);
        assert_eq!(access(&root, "net:[7]"), NamespaceAccess::Gone);
        link("proc/20/fd/3", "net:[7]");
        assert_eq!(access(&root, "net:[7]"), NamespaceAccess::ByFile("/proc/20/fd/3".to_owned()));
        fs::create_dir_all(root.path("proc/self")).unwrap();
        let mounts =
            "23 28 0:21 / /sys rw - sysfs sysfs rw\n90 80 0:4 net:[7] /run/netns/b rw shared:9 - nsfs nsfs rw\n";
        fs::write(root.path("proc/self/mountinfo"), mounts).unwrap();
        assert_eq!(access(&root, "net:[7]"), NamespaceAccess::ByFile("/run/netns/b".to_owned()));
        link("proc/30/ns/net", "net:[7]");
        assert_eq!(access(&root, "net:[7]"), NamespaceAccess::ByFile("/proc/30/ns/net".to_owned()));
    }
}
