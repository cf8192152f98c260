//! The control groups that runs of punctual made: `punctual-PID-STARTTIME-NAMESPACE`, or `punctual-PID` by version 0.2.

use std::process;

use crate::{Root, cgroup, pid_namespace, tasks};

const PREFIX: &str = "punctual-";

/// A control group that a run made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunGroup {
    /// Its folder, without a leading slash.
    pub folder: String,
    /// The file with its tasks.
    pub members: &'static str,
    /// The process of the run.
    pub process: u32,
    /// True if that process still runs.
    pub is_alive: bool,
}

/// The name of this process's group.
pub(crate) fn own_name(root: &Root) -> String {
    let process = process::id();
    let started = tasks::start_ticks(&Root::system(), "self").unwrap_or_default();
    let namespace = pid_namespace::own(root).map_or_else(String::new, |id| format!("-{id}"));
    format!("{PREFIX}{process}-{started}{namespace}")
}

/// The groups of all runs in this process's namespace of process ids. Ids of other namespaces mean nothing here.
pub(crate) fn all(root: &Root) -> Vec<RunGroup> {
    let v1 = cgroup::group_v1(root, "cpuset").map(|group| (group.top, "tasks"));
    let v2 = cgroup::group_v2(root).map(|group| (group.top, "cgroup.threads"));
    let below = |(top, members): (String, &'static str)| {
        let named = root.list(&top).into_iter().filter_map(|name| Some((format!("{top}/{name}"), parse(&name)?)));
        let group = |(folder, (process, started, other)): (String, (u32, Option<u64>, Option<u64>))| {
            let is_here = other.is_none() || other == pid_namespace::own(root);
            let now = tasks::start_ticks(root, &process.to_string());
            // Without a start time, any process with this id may be the run.
            let is_alive = now.is_some_and(|now| started.is_none_or(|started| started == now));
            is_here.then_some(RunGroup { folder, members, process, is_alive })
        };
        named.filter_map(group).collect::<Vec<_>>()
    };
    v2.into_iter().chain(v1).flat_map(below).collect()
}

/// True if a run made the group of this name.
pub(crate) fn is_run_group(name: &str) -> bool {
    parse(name.rsplit('/').next().unwrap_or_default()).is_some()
}

/// Process id, start time and namespace in the name of a group.
fn parse(name: &str) -> Option<(u32, Option<u64>, Option<u64>)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let process = parts.next()?.parse().ok()?;
    let mut number = || parts.next().map(str::parse).transpose().ok();
    let (started, namespace) = (number()?, number()?);
    parts.next().is_none().then_some((process, started, namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_names_of_all_versions() {
        assert_eq!(parse("punctual-17"), Some((17, None, None)));
        assert_eq!(parse("punctual-17-4711-4026531836"), Some((17, Some(4711), Some(4_026_531_836))));
        for other in ["punctual", "punctual-", "punctual-x", "punctual-17-", "punctual-1-2-3-4", "my-punctual-17"] {
            assert_eq!(parse(other), None, "{other}");
        }
        assert!(is_run_group("/a/punctual-17") && !is_run_group("/punctual-17/a") && !is_run_group("/"));
        let own = parse(&own_name(&Root::system())).unwrap();
        assert_eq!((own.0, own.2), (process::id(), pid_namespace::own(&Root::system())));
    }
}
