//! The control groups of this process, and the CPUs that its cpuset allows.

use crate::{CpuList, Root, Unreadable};

/// The effective cpuset of this process.
pub(crate) struct Cpuset {
    /// Name of the control group: `/user.slice`.
    pub(crate) group: String,
    /// The file that sets its CPUs.
    pub(crate) cpus_file: String,
    /// The CPUs in force.
    pub(crate) allowed: CpuList,
}

/// A control group of this process.
pub(crate) struct Group {
    /// Its name in `/proc/self/cgroup`.
    pub(crate) name: String,
    /// Its folder, without a leading slash.
    pub(crate) folder: String,
    /// Folder of the topmost visible group.
    pub(crate) top: String,
}

/// The cpuset of this process; `None` if it has none or the folder cannot be found.
pub(crate) fn cpuset(root: &Root) -> Option<Cpuset> {
    if let Some(group) = group_v1(root, "cpuset") {
        let allowed = ["cpuset.effective_cpus", "cpuset.cpus"]
            .iter()
            .find_map(|file| allowed(root, &format!("{}/{file}", group.folder)))?;
        return Some(Cpuset { cpus_file: format!("/{}/cpuset.cpus", group.folder), group: group.name, allowed });
    }
    // A v2 group without the cpuset controller lacks the file: the nearest group above that has it applies.
    let group = group_v2(root)?;
    let mut folder = group.folder.as_str();
    loop {
        if let Some(allowed) = allowed(root, &format!("{folder}/cpuset.cpus.effective")) {
            let name = &folder[group.top.len()..];
            let name = if name.is_empty() { "/" } else { name };
            return Some(Cpuset { group: name.to_owned(), cpus_file: format!("/{folder}/cpuset.cpus"), allowed });
        }
        if folder == group.top {
            return None;
        }
        folder = folder.rsplit_once('/')?.0;
    }
}

/// The CPU quotas that apply to a process: that of its control group, and those of the groups above it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuotaFiles {
    /// Folders of the groups, without a leading slash.
    groups: Vec<String>,
    version_one: bool,
}

impl QuotaFiles {
    /// Finds the groups of a process or thread; `process` is its folder below `/proc`, such as `self`.
    /// Source: Documentation/admin-guide/cgroup-v2.rst, `cpu.stat`, and Documentation/scheduler/sched-bwc.rst.
    #[must_use]
    pub fn of(root: &Root, process: &str) -> Self {
        let one = group_of(root, process, Version::One("cpu"));
        let version_one = one.is_some();
        let Some(group) = one.or_else(|| group_of(root, process, Version::Two)) else { return Self::default() };
        let mut groups = Vec::new();
        let mut folder = group.folder.as_str();
        while folder.len() >= group.top.len() {
            groups.push(folder.to_owned());
            let Some((above, _)) = folder.rsplit_once('/') else { break };
            folder = above;
        }
        Self { groups, version_one }
    }

    /// True if one of the groups has a quota: the kernel counts the periods of each quota.
    #[must_use]
    pub fn has_quota(&self, root: &Root) -> bool {
        let counts_periods =
            |group: &String| Self::count(root, group, "nr_periods ").is_some_and(|periods| periods > 0);
        self.groups.iter().any(counts_periods)
    }

    /// Time for which the quotas stopped threads of their groups, us, since the groups were created; `None` if no group
    /// counts it.
    #[must_use]
    pub fn stopped_us(&self, root: &Root) -> Option<u64> {
        self.stopped_us_by_group(root).map(|(_, us)| us).reduce(|sum, us| sum + us)
    }

    /// The same for each group that counts it, named by its folder without a leading slash.
    pub fn stopped_us_by_group(&self, root: &Root) -> impl Iterator<Item = (String, u64)> {
        self.groups.iter().filter_map(|group| Some((group.clone(), self.group_stopped_us(root, group)?)))
    }

    /// The same for one group.
    fn group_stopped_us(&self, root: &Root, group: &str) -> Option<u64> {
        let (field, per_us) = if self.version_one { ("throttled_time ", 1000) } else { ("throttled_usec ", 1) };
        Some(Self::count(root, group, field)? / per_us)
    }

    /// A count in the statistics of a group; `field` ends with a space.
    fn count(root: &Root, group: &str, field: &str) -> Option<u64> {
        let stat = root.read(&format!("{group}/cpu.stat"))?;
        stat.lines().find_map(|line| line.strip_prefix(field)?.trim().parse().ok())
    }

    /// The file that sets the quota of the group whose threads were stopped for the longest time; `None` if none were.
    #[must_use]
    pub fn limiting_file(&self, root: &Root) -> Option<String> {
        let stopped = self.groups.iter().filter_map(|group| Some((self.group_stopped_us(root, group)?, group)));
        let (_, group) = stopped.filter(|&(us, _)| us > 0).max_by_key(|&(us, _)| us)?;
        let file = if self.version_one { "cpu.cfs_quota_us" } else { "cpu.max" };
        Some(format!("/{group}/{file}"))
    }
}

/// The files that say if the control groups of a process are frozen, which also show a freeze of a group above.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreezerFiles {
    /// `freezer.state` of version 1.
    one: Option<String>,
    /// `cgroup.events` of version 2.
    two: Option<String>,
}

impl FreezerFiles {
    /// Finds the files of a process or thread; `task` is its folder below `/proc`. Sources:
    /// Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst, and `cgroup.events` in cgroup-v2.rst.
    #[must_use]
    pub fn of(root: &Root, task: &str) -> Self {
        let file = |version, name: &str| Some(format!("{}/{name}", group_of(root, task, version)?.folder));
        Self { one: file(Version::One("freezer"), "freezer.state"), two: file(Version::Two, "cgroup.events") }
    }

    /// True if one of the groups is frozen, or being frozen.
    #[must_use]
    pub fn are_frozen(&self, root: &Root) -> bool {
        let read = |file: &Option<String>| file.as_ref().and_then(|file| root.read(file));
        read(&self.one).is_some_and(|state| state.trim_end() != "THAWED")
            || read(&self.two).is_some_and(|events| events.lines().any(|line| line == "frozen 1"))
    }
}

/// True if a control group other than that of this process freezes a process or thread, named by its folder below
/// `/proc`.
#[must_use]
pub fn is_frozen(root: &Root, task: &str) -> bool {
    let groups = |task: &str| root.read(&format!("proc/{task}/cgroup"));
    groups(task) != groups("self") && FreezerFiles::of(root, task).are_frozen(root)
}

/// A version of control groups; the first one has a hierarchy for each controller.
#[derive(Clone, Copy)]
enum Version<'a> {
    One(&'a str),
    Two,
}

/// The folders of all mounted hierarchies, without a leading slash.
pub(crate) fn tops(root: &Root) -> Vec<String> {
    let mounts = mounts(root).unwrap_or_default();
    let top = |line: &str| {
        let (mount, source) = line.split_once(" - ")?;
        let is_cgroup = matches!(source.split(' ').next()?, "cgroup" | "cgroup2");
        let point = mount.split(' ').nth(4)?;
        is_cgroup.then(|| point.trim_matches('/').to_owned())
    };
    mounts.lines().filter_map(top).collect()
}

/// The group of this process in the v1 hierarchy of one controller.
pub(crate) fn group_v1(root: &Root, controller: &str) -> Option<Group> {
    group_of(root, "self", Version::One(controller))
}

/// The group of this process in the v2 hierarchy.
pub(crate) fn group_v2(root: &Root) -> Option<Group> {
    group_of(root, "self", Version::Two)
}

/// The group of version 2 whose controller `cpu` this process has: the nearest one above it with that controller, as
/// `cgroup.controllers` lists it. `None` for the root, which is the one without `cgroup.events`.
///
/// # Errors
/// The file that cannot be read, with the reason.
pub(crate) fn cpu_group_v2(root: &Root) -> Result<Option<Group>, (String, Unreadable)> {
    let Some(group) = group_v2(root) else { return Ok(None) };
    let mut folder = group.folder.as_str();
    loop {
        // The root of a namespace of control groups can be another group.
        if folder == group.top && !root.exists(&format!("{folder}/cgroup.events")) {
            return Ok(None);
        }
        let path = format!("{folder}/cgroup.controllers");
        let is_name = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let parse = |text: &str| text.split_whitespace().all(is_name).then(|| text.to_owned());
        let controllers = root.parsed_or_empty(&path, parse).map_err(|why| (path, why))?;
        if controllers.split_whitespace().any(|name| name == "cpu") {
            let name = &folder[group.top.len()..];
            let name = if name.is_empty() { "/" } else { name };
            return Ok(Some(Group { name: name.to_owned(), folder: folder.to_owned(), top: group.top }));
        }
        match folder.rsplit_once('/') {
            Some((above, _)) if folder != group.top => folder = above,
            _ => return Ok(None),
        }
    }
}

/// True if this process has a group of version 2, mounted here or not.
pub(crate) fn has_v2(root: &Root) -> bool {
    lines(root, "self").is_ok_and(|lines| lines.lines().any(|line| line.starts_with("0::")))
}

/// True if this process has a group of version 1 with this controller, mounted here or not.
pub(crate) fn has_v1(root: &Root, controller: &str) -> bool {
    let has = |line: &str| line.split(':').nth(1).is_some_and(|list| list.split(',').any(|name| name == controller));
    lines(root, "self").is_ok_and(|lines| lines.lines().any(has))
}

/// The group of a process in one hierarchy.
fn group_of(root: &Root, process: &str, version: Version<'_>) -> Option<Group> {
    match version {
        Version::One(controller) => {
            let has = |list: &str| list.split(',').any(|name| name == controller);
            group(root, process, |_, controllers| has(controllers), |kind, options| kind == "cgroup" && has(options))
        }
        Version::Two => {
            group(root, process, |id, controllers| id == "0" && controllers.is_empty(), |kind, _| kind == "cgroup2")
        }
    }
}

/// Finds the group by a line `id:controllers:name`, and its folder by a mount of that hierarchy.
fn group(
    root: &Root,
    process: &str,
    is_hierarchy: impl Fn(&str, &str) -> bool,
    is_mount: impl Fn(&str, &str) -> bool,
) -> Option<Group> {
    let groups = lines(root, process).ok()?;
    let name = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, name) = (fields.next()?, fields.next()?, fields.next()?);
        is_hierarchy(id, controllers).then_some(name)
    })?;
    let mounts = mounts(root).ok()?;
    mounts.lines().find_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let mut source = source.split(' ');
        let (kind, options) = (source.next()?, source.nth(1)?);
        let mut mount = mount.split(' ').skip(3);
        let (mounted, point) = (mount.next()?, mount.next()?);
        if !is_mount(kind, options) {
            return None;
        }
        let below = below(name, mounted)?;
        let top = point.trim_matches('/').to_owned();
        Some(Group { name: name.to_owned(), folder: format!("{top}{below}"), top })
    })
}

/// The control groups of a process: lines `id:controllers:name`; none if no hierarchy was ever mounted.
pub(crate) fn lines(root: &Root, process: &str) -> Result<String, Unreadable> {
    let is_groups = |text: &str| !text.is_empty() && text.lines().all(|line| line.split(':').count() >= 3);
    root.parsed_or_empty(&format!("proc/{process}/cgroup"), |text| is_groups(text).then(|| text.to_owned()))
}

/// The mounts of this process, whose lines have a dash between the fields of the mount and those of its source.
pub(crate) fn mounts(root: &Root) -> Result<String, Unreadable> {
    let is_mounts = |text: &str| !text.is_empty() && text.lines().all(|line| line.contains(" - "));
    root.text_if("proc/self/mountinfo", is_mounts)
}

/// The part of the group's name below the mounted group: empty, or with a leading slash.
fn below<'a>(name: &'a str, mounted: &str) -> Option<&'a str> {
    let below = name.strip_prefix(mounted.trim_end_matches('/'))?.trim_end_matches('/');
    let climbs = below.split('/').any(|part| part == "..");
    ((below.is_empty() || below.starts_with('/')) && !climbs).then_some(below)
}

/// Reads a cpuset file. No process can run in an empty set, so an empty file means that nothing is set.
fn allowed(root: &Root, file: &str) -> Option<CpuList> {
    root.read(file)?.parse().ok().filter(|cpus: &CpuList| !cpus.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn adds_the_stops_of_all_quotas_above() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let set = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        assert_eq!(QuotaFiles::of(&root, "self").stopped_us(&root), None);
        set("proc/self/cgroup", "0::/a/b\n");
        set("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!(QuotaFiles::of(&root, "self").stopped_us(&root), None, "no file");
        set("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 9\nnr_throttled 1\nthrottled_usec 7\n");
        set("sys/fs/cgroup/a/cpu.stat", "usage_usec 9\nthrottled_usec 30\n");
        set("sys/fs/cgroup/cpu.stat", "usage_usec 9\n");
        assert_eq!(QuotaFiles::of(&root, "self").stopped_us(&root), Some(37));
        set("proc/self/cgroup", "3:cpu,cpuacct:/a\n0::/a/b\n");
        set("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
        set("sys/fs/cgroup/cpu/a/cpu.stat", "nr_throttled 1\nthrottled_time 5000000\n");
        assert_eq!(QuotaFiles::of(&root, "self").stopped_us(&root), Some(5000));
        set("proc/self/cgroup", "3:cpu,cpuacct:/a/b\n0::/a/b\n");
        set("sys/fs/cgroup/cpu/a/b/cpu.stat", "nr_throttled 0\nthrottled_time 2000\n");
        assert_eq!(QuotaFiles::of(&root, "self").stopped_us(&root), Some(5002), "the group above, in version 1");
    }

    #[test]
    fn names_the_file_of_the_quota_that_stopped_threads() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let set = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        let file = || QuotaFiles::of(&root, "7").limiting_file(&root);
        set("proc/7/cgroup", "0::/a/b\n");
        set("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        set("sys/fs/cgroup/a/b/cpu.stat", "throttled_usec 0\n");
        assert_eq!(file(), None);
        assert!(!QuotaFiles::of(&root, "7").has_quota(&root));
        set("sys/fs/cgroup/a/cpu.stat", "nr_periods 4\nthrottled_usec 30\n");
        assert!(QuotaFiles::of(&root, "7").has_quota(&root));
        assert_eq!(file().as_deref(), Some("/sys/fs/cgroup/a/cpu.max"));
        set("proc/7/cgroup", "3:cpu,cpuacct:/a\n0::/a/b\n");
        set("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
        set("sys/fs/cgroup/cpu/a/cpu.stat", "throttled_time 5000000\n");
        assert_eq!(file().as_deref(), Some("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us"));
    }

    #[test]
    fn a_freeze_is_known_in_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let set = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        let frozen = || FreezerFiles::of(&root, "7").are_frozen(&root);
        assert!(!frozen(), "no group");
        set("proc/7/cgroup", "3:freezer:/a\n0::/a/b\n");
        let mounts = "30 23 0:26 / /fr rw - cgroup cgroup rw,freezer\n31 23 0:27 / /two rw - cgroup2 cgroup2 rw\n";
        set("proc/self/mountinfo", mounts);
        assert!(!frozen(), "no file");
        set("fr/a/freezer.state", "THAWED\n");
        set("two/a/b/cgroup.events", "populated 1\nfrozen 0\n");
        assert!(!frozen());
        set("fr/a/freezer.state", "FREEZING\n");
        assert!(frozen());
        set("fr/a/freezer.state", "THAWED\n");
        set("two/a/b/cgroup.events", "populated 1\nfrozen 1\n");
        assert!(frozen());
    }

    #[test]
    fn finds_the_group_below_its_mount() {
        assert_eq!(below("/a/b", "/"), Some("/a/b"));
        assert_eq!(below("/", "/"), Some(""));
        assert_eq!(below("/docker/1", "/docker/1"), Some(""));
        assert_eq!(below("/docker/1/x", "/docker/1"), Some("/x"));
        assert_eq!(below("/docker/12", "/docker/1"), None);
        assert_eq!(below("/../other", "/"), None);
    }
}
