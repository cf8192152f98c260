//! Network namespaces by the kernel's names for them: the one that we are in, and the way into another.

use crate::Root;

/// The way into a network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is this one.
    Here,
    /// Through this file, which `nsenter --net` takes.
    Through(String),
    /// Nothing holds it any more.
    Gone,
    /// Other users' processes cannot be seen from here.
    Unseen,
}

/// The name of the one that the calling thread is in, as `net:[4026531840]`; `None` where `/proc` does not tell.
pub(crate) fn here(root: &Root) -> Option<String> {
    root.link("proc/thread-self/ns/net")
}

/// The way into the one of this name: by a process in it, a mount of it, or a descriptor of it.
pub(crate) fn way_into(root: &Root, name: &str) -> Way {
    if here(root).as_deref() == Some(name) {
        return Way::Here;
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
        Some(path) => Way::Through(format!("/{path}")),
        // Who does not see the first process's does not see all others'.
        None if root.link("proc/1/ns/net").is_none() => Way::Unseen,
        None => Way::Gone,
    }
}

/// Where it is mounted, as `ip netns add` does. The fourth and fifth field of a line are what is mounted, and where.
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
    fn a_process_a_mount_or_a_descriptor_leads_into_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let link = |path: &str, name: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            symlink(name, root.path(path)).unwrap();
        };
        assert_eq!(way_into(&root, "net:[7]"), Way::Unseen);
        link("proc/thread-self/ns/net", "net:[1]");
        link("proc/1/ns/net", "net:[1]");
        assert_eq!(way_into(&root, "net:[1]"), Way::Here);
        assert_eq!(way_into(&root, "net:[7]"), Way::Gone);
        link("proc/20/fd/3", "net:[7]");
        assert_eq!(way_into(&root, "net:[7]"), Way::Through("/proc/20/fd/3".to_owned()));
        fs::create_dir_all(root.path("proc/self")).unwrap();
        let mounts =
            "23 28 0:21 / /sys rw - sysfs sysfs rw\n90 80 0:4 net:[7] /run/netns/b rw shared:9 - nsfs nsfs rw\n";
        fs::write(root.path("proc/self/mountinfo"), mounts).unwrap();
        assert_eq!(way_into(&root, "net:[7]"), Way::Through("/run/netns/b".to_owned()));
        link("proc/30/ns/net", "net:[7]");
        assert_eq!(way_into(&root, "net:[7]"), Way::Through("/proc/30/ns/net".to_owned()));
    }
}
