//! The rights of this process: real-time priorities and locked memory.

use record::Finding;

use super::{
    Check, CheckContext, Explain, evidence, fail, files, irq::usual_priority, not_applicable, ok, unknown, warn,
    without,
};
use crate::{RIGHTS, cgroup, kernel::version, virt};

/// Bits of `CapEff` (`capability.h`).
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

const STATUS: &str = "proc/self/status";
const LIMITS: &str = "proc/self/limits";
const GROUPS: &str = "proc/self/cgroup";

/// Memory that a run with a hundred threads locks, whose whole stacks count, bytes.
const MEMLOCK_BYTES_NEEDED: u64 = 256 << 20;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "rights.realtime",
        subject: "real-time priority ([rights](rights.md))",
        source: "getrlimit(2), RLIMIT_RTPRIO",
        run: realtime,
    },
    Check {
        id: "rights.rt_budget",
        subject: "real-time time of the control group",
        source: "Linux, Documentation/scheduler/sched-rt-group.rst",
        run: rt_budget,
    },
    Check { id: "rights.memlock", subject: "locked memory", source: "mlock(2)", run: memlock },
];

/// A right in the words of container managers.
struct Right {
    /// The capability without `CAP_`.
    capability: &'static str,
    /// The limit for Docker and Podman.
    ulimit: &'static str,
    /// The limit for systemd-nspawn.
    rlimit: &'static str,
    /// The setting of LXC.
    lxc: &'static str,
}

const REALTIME: Right =
    Right { capability: "SYS_NICE", ulimit: "rtprio=99", rlimit: "RTPRIO=99", lxc: "lxc.prlimit.rtprio = 99" };
const MEMLOCK: Right = Right {
    capability: "IPC_LOCK",
    ulimit: "memlock=-1",
    rlimit: "MEMLOCK=infinity",
    lxc: "lxc.prlimit.memlock = unlimited",
};

/// The remedy that grants a right to this process.
fn how_to_grant(context: &CheckContext, right: &Right) -> String {
    let Right { capability, ulimit, rlimit, lxc } = right;
    // No capability of a user namespace grants these rights, and its root cannot raise a limit.
    let is_confined = virt::initial_namespace(context.root, "user") == Some(false);
    match context.machine.container.as_deref() {
        None | Some("none") if is_confined => "run it outside of this user namespace".to_owned(),
        None | Some("none") => RIGHTS.to_owned(),
        Some("docker" | "podman") if is_confined => format!(
            "on the host, give the limits to the user that starts the container (sudo punctual setup), then start it with \
             --ulimit {ulimit}"
        ),
        Some("docker" | "podman") => format!("start the container with --cap-add={capability} --ulimit {ulimit}"),
        // A pod has no limits of its own.
        Some("kubernetes") => {
            format!("run the container as root, with {capability} in securityContext.capabilities.add of its pod")
        }
        Some("systemd-nspawn") => {
            format!("start the container with --capability=CAP_{capability} --rlimit={rlimit}")
        }
        Some("lxc") => format!("set `{lxc}` in the container's configuration, and start it again"),
        Some(_) => format!("start the container with CAP_{capability}, or with the limit {ulimit}"),
    }
}

/// The priority of interrupt threads, if a limit allows none above it.
fn not_above_interrupts(context: &CheckContext, limit: &str) -> Option<u32> {
    let limit: u32 = limit.parse().ok().filter(|limit| *limit > 0)?;
    usual_priority(context.threads()?).filter(|usual| limit <= *usual)
}

fn realtime(context: &CheckContext) -> Finding {
    const ID: &str = "rights.realtime";
    let granted = Granted::read(context, CAP_SYS_NICE, "Max realtime priority");
    match (granted.capable, granted.soft_limit.as_deref()) {
        (Some(true), _) => ok(ID, "may use real-time priorities (CAP_SYS_NICE)", granted.evidence),
        (_, Some("unlimited")) => ok(ID, "may use real-time priorities (RLIMIT_RTPRIO)", granted.evidence),
        (Some(false), Some("0")) => fail(ID, "may not use real-time priorities", granted.evidence).because(
            "Without one, the measuring thread is scheduled like all others: the results say nothing about real-time threads.",
            match granted.hard_limit.filter(|limit| limit.parse::<u8>().is_ok_and(|limit| limit > 0)) {
                Some(limit) => format!("ulimit -S -r {limit}   # in this shell\n{RIGHTS}"),
                None => how_to_grant(context, &REALTIME),
            },
        ).permanent(),
        (Some(false), Some(limit)) if let Some(usual) = not_above_interrupts(context, limit) => {
            let title = format!("may use real-time priorities up to {limit} only, not above interrupt threads ({usual})");
            warn(ID, title, granted.evidence)
                .because(
                    "Each interrupt of any device delays a thread that is not above the threads of interrupts.",
                    match granted.hard_limit.filter(|limit| not_above_interrupts(context, limit).is_none()) {
                        Some(limit) => format!("ulimit -S -r {limit}   # in this shell\n{RIGHTS}"),
                        None => how_to_grant(context, &REALTIME),
                    },
                )
                .permanent()
        }
        (_, Some(limit)) if limit != "0" => {
            ok(ID, format!("may use real-time priorities up to {limit} (RLIMIT_RTPRIO)"), granted.evidence)
        }
        _ => unknown(ID, "right to real-time priorities not readable", granted.evidence),
    }
}

/// Kernels with CONFIG_RT_GROUP_SCHED refuse real-time priorities in a group without a budget, even for root.
fn rt_budget(context: &CheckContext) -> Finding {
    const ID: &str = "rights.rt_budget";
    if let Err(why) = cgroup::lines(context.root, "self") {
        return unknown(ID, UNREAD_GROUP, without(GROUPS, why));
    }
    let Some(group) = cgroup::group_v1(context.root, "cpu") else { return without_budgets(context, ID) };
    if let Some(finding) = unlimited(context, ID) {
        return finding;
    }
    let path = format!("{}/cpu.rt_runtime_us", group.folder);
    let budget = context.root.parsed(&path, |text| text.parse::<i64>().ok());
    match budget.map(|us| (us, evidence(&path, &us.to_string()))) {
        Ok((0, read)) => fail(ID, format!("control group {} has no time for real-time threads", group.name), read)
            .because(
                "The kernel refuses real-time priorities for every process in this group, even for root.",
                format!("echo 950000 | sudo tee {}", files(without_time(context, &path).iter().map(String::as_str))),
            )
            .until_boot(),
        Ok((_, read)) => ok(ID, format!("control group {} may run real-time threads", group.name), read),
        Err(crate::Unreadable::Absent) if context.root.exists(&group.folder) => {
            not_applicable(ID, NO_BUDGETS, context.evidence(&path))
        }
        Err(why) => unknown(ID, "real-time budget of the control group not readable", without(&path, why)),
    }
}

const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
const NO_BUDGETS: &str = "no control group limits real-time threads";

/// The finding if real-time threads have no limit: the kernel then does not use the budgets of groups either.
fn unlimited(context: &CheckContext, id: &str) -> Option<Finding> {
    let is_unlimited = context.root.word(RUNTIME).is_ok_and(|us| us == "-1");
    let title = "no time of real-time threads is limited, also not by control groups";
    is_unlimited.then(|| ok(id, title, context.evidence(RUNTIME)))
}

/// Version 2 of control groups has no file for budgets, so that of each group is 0, except for the root. Sources:
/// `__sched_setscheduler` in kernel/sched/syscalls.c, and CONFIG_RT_GROUP_SCHED in Documentation/admin-guide/cgroup-v2.rst.
fn without_budgets(context: &CheckContext, id: &str) -> Finding {
    const OPTION: &str = "RT_GROUP_SCHED";
    const ARGUMENT: &str = "rt_group_sched";
    const OFF_BY_DEFAULT: &str = "RT_GROUP_SCHED_DEFAULT_DISABLED";
    if let Some(config) = context.config().filter(|config| !config.has(OPTION)) {
        return not_applicable(id, NO_BUDGETS, config.evidence(&[OPTION]));
    }
    // Its hierarchy is not mounted here.
    if cgroup::has_v1(context.root, "cpu") {
        return unknown(id, UNREAD_GROUP, context.evidence("proc/self/mountinfo"));
    }
    let group = match cgroup::cpu_group_v2(context.root) {
        Ok(Some(group)) => group,
        // A group whose hierarchy is not mounted here may be another one than the root.
        Ok(None) if cgroup::has_v2(context.root) && cgroup::group_v2(context.root).is_none() => {
            return unknown(id, UNREAD_GROUP, context.evidence("proc/self/mountinfo"));
        }
        Ok(None) => return not_applicable(id, NO_BUDGETS, context.evidence(GROUPS)),
        Err((path, why)) => return unknown(id, UNREAD_GROUP, without(&path, why)),
    };
    if let Some(finding) = unlimited(context, id) {
        return finding;
    }
    let controllers = context.evidence(&format!("{}/cgroup.controllers", group.folder));
    let Some(config) = context.config() else {
        let title = format!("control group {} may have no time for real-time threads (CONFIG_{OPTION})", group.name);
        return unknown(id, title, format!("{}, {controllers}", context.evidence("proc/config.gz")));
    };
    if let Some(finding) = context.unread_arguments(id) {
        return finding;
    }
    // Since Linux 6.16.
    match context.boot_argument(ARGUMENT) {
        Some("0") => return not_applicable(id, NO_BUDGETS, format!("/proc/cmdline = {ARGUMENT}=0")),
        Some("1") => {}
        _ if config.has(OFF_BY_DEFAULT) => return not_applicable(id, NO_BUDGETS, config.evidence(&[OFF_BY_DEFAULT])),
        _ => {}
    }
    let has_argument = context.machine.kernel.as_deref().and_then(version) >= Some((6, 16));
    // Only the root of all groups has time, which is not visible from a namespace of control groups.
    let sees_root = !context.root.exists(&format!("{}/cgroup.events", group.top));
    let for_all =
        if has_argument { "kernel argument: `rt_group_sched=0`" } else { "a kernel without CONFIG_RT_GROUP_SCHED" };
    let remedy = match sees_root {
        true => format!(
            "echo $$ | sudo tee /{}/cgroup.procs   # moves this shell to the root group; for all: {for_all}",
            group.top
        ),
        false => format!("on the host: {for_all}, or until the next boot: echo -1 | sudo tee /{RUNTIME}"),
    };
    let title = format!("control group {} has no time for real-time threads", group.name);
    let found = fail(id, title, format!("{}, {controllers}", config.evidence(&[OPTION]))).because(
        "The kernel refuses real-time priorities for every process in this group, even for root. Version 2 of control groups can give time to no group.",
        remedy,
    );
    if sees_root { found.until_exit() } else { found.until_boot() }
}

const UNREAD_GROUP: &str = "control group not readable";

/// The budgets of this group and of its parents that are 0, from the outermost one on: a group gets no more than its parent.
fn without_time(context: &CheckContext, path: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parents = std::path::Path::new(folder).ancestors().filter_map(|folder| folder.to_str());
    let mut files: Vec<String> = parents
        .map(|folder| format!("{folder}/{name}"))
        .take_while(|path| context.root.word(path).is_ok_and(|us| us == "0"))
        .collect();
    files.reverse();
    files
}

fn memlock(context: &CheckContext) -> Finding {
    const ID: &str = "rights.memlock";
    let granted = Granted::read(context, CAP_IPC_LOCK, "Max locked memory");
    match (granted.capable, granted.soft_limit.as_deref()) {
        (Some(true), _) => ok(ID, "may lock its memory (CAP_IPC_LOCK)", granted.evidence),
        (_, Some("unlimited")) => ok(ID, "may lock its memory (RLIMIT_MEMLOCK)", granted.evidence),
        (Some(false), Some(limit)) => {
            let Ok(bytes) = limit.parse::<u64>() else {
                return unknown(ID, "limit of locked memory not understood", granted.evidence);
            };
            let title = format!("may lock {} KiB of memory", bytes / 1024);
            if bytes >= MEMLOCK_BYTES_NEEDED {
                return ok(ID, title, granted.evidence);
            }
            warn(ID, format!("{title} only"), granted.evidence)
                .because(
                    "Memory that cannot be locked may be paged out, and the next access takes up to milliseconds.",
                    how_to_grant(context, &MEMLOCK),
                )
                .permanent()
        }
        _ => unknown(ID, "right to lock memory not readable", granted.evidence),
    }
}

/// A right of the process, by capability and by limit.
struct Granted {
    capable: Option<bool>,
    soft_limit: Option<String>,
    /// The process may raise its soft limit to it.
    hard_limit: Option<String>,
    evidence: String,
}

impl Granted {
    fn read(context: &CheckContext, bit: u32, limit: &str) -> Self {
        let status = context.root.text_if(STATUS, |text| text.contains("CapEff:")).unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).map(str::trim);
        let held = effective.and_then(|hex| u64::from_str_radix(hex, 16).ok()).map(|set| set & (1 << bit) != 0);
        // Root in a user namespace has every capability, but none of them grants these rights.
        let confined = virt::initial_namespace(context.root, "user") == Some(false);
        let capable = if confined { held.map(|_| false) } else { held };

        let limits = context.root.text_if(LIMITS, |text| text.contains("Max ")).unwrap_or_default();
        let values = limits.lines().find_map(|line| line.strip_prefix(limit));
        let mut values = values.unwrap_or_default().split_whitespace().map(str::to_owned);
        let (soft_limit, hard_limit) = (values.next(), values.next());

        let mut seen = match effective {
            Some(effective) => evidence(STATUS, &format!("CapEff: {effective}")),
            None => format!("/{STATUS}: no CapEff"),
        };
        if confined {
            seen += " (in a user namespace)";
        }
        seen += &match &soft_limit {
            Some(value) => format!(", {}", evidence(LIMITS, &format!("{limit}: {value}"))),
            None => format!(", /{LIMITS}: no {limit}"),
        };
        Self { capable, soft_limit, hard_limit, evidence: seen }
    }
}
