//! Which CPUs may be measured.

use thiserror::Error;

use crate::{CpuList, Root, cgroup, virt};

/// Why CPUs cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CpuError {
    /// The list of wanted CPUs is empty.
    #[error("the list of CPUs is empty: name at least one of {online}")]
    Empty {
        /// CPUs that are online.
        online: CpuList,
    },
    /// This machine has no such CPU.
    #[error("{} not on this machine: it has {}", be(cpus), present.in_words())]
    NotThere {
        /// CPUs that were wanted and do not exist.
        cpus: CpuList,
        /// CPUs that exist.
        present: CpuList,
    },
    /// The CPU is there but switched off.
    #[error("{} offline: bring back with `echo 1 | sudo tee {}`", be(cpus), online_files(cpus))]
    Offline {
        /// CPUs that were wanted and are offline.
        cpus: CpuList,
    },
    /// The control group of this process does not let it onto the CPU.
    #[error("{} outside the control group {group}, which allows {allowed}: {remedy}", be(cpus))]
    OutsideCgroup {
        /// CPUs that were wanted and are not allowed.
        cpus: CpuList,
        /// Name of the control group.
        group: String,
        /// CPUs that it allows.
        allowed: CpuList,
        /// How to widen it.
        remedy: String,
    },
    /// The kernel does not tell which CPUs are online.
    #[error(
        "cannot read which CPUs are online from {path}: mount it with `sudo mount -t sysfs sysfs /sys`, or check --root"
    )]
    Unreadable {
        /// The file that could not be read.
        path: String,
    },
}

const CPU: &str = "sys/devices/system/cpu";

/// The CPUs to measure: those wanted, or without a wish all that are online and allowed by the control group.
///
/// Isolated CPUs are among them; the affinity that this process inherited plays no part.
///
/// # Errors
/// [`CpuError`], one kind for each way in which a wish can be wrong.
pub fn usable_cpus(root: &Root, wanted: Option<&CpuList>) -> Result<CpuList, CpuError> {
    let online = list(root, "online").filter(|online| !online.is_empty());
    let online = online
        .ok_or_else(|| CpuError::Unreadable { path: root.path(&format!("{CPU}/online")).display().to_string() })?;
    let cpuset = cgroup::cpuset(root);
    let Some(wanted) = wanted else {
        return Ok(cpuset.map_or(online.clone(), |cpuset| online.intersection(&cpuset.allowed)));
    };
    if wanted.is_empty() {
        return Err(CpuError::Empty { online });
    }
    let present = list(root, "present").map_or(online.clone(), |present| present.union(&online));
    let missing = wanted.difference(&present);
    if !missing.is_empty() {
        return Err(CpuError::NotThere { cpus: missing, present });
    }
    let offline = wanted.difference(&online);
    if !offline.is_empty() {
        return Err(CpuError::Offline { cpus: offline });
    }
    if let Some(cpuset) = cpuset {
        let outside = wanted.difference(&cpuset.allowed);
        if !outside.is_empty() {
            let remedy = widen(root, &cpuset, &online);
            return Err(CpuError::OutsideCgroup {
                cpus: outside,
                group: cpuset.group,
                allowed: cpuset.allowed,
                remedy,
            });
        }
    }
    Ok(wanted.clone())
}

/// A file of CPU numbers such as `online` or `isolated`.
pub(crate) fn list(root: &Root, name: &str) -> Option<CpuList> {
    // A kernel with no `nohz_full=` argument writes `(null)` there.
    root.read(&format!("{CPU}/{name}"))?.replace("(null)", "").parse().ok()
}

/// The online CPUs, or none when that cannot be read.
pub(crate) fn online(root: &Root) -> CpuList {
    list(root, "online").unwrap_or_default()
}

fn widen(root: &Root, cpuset: &cgroup::Cpuset, online: &CpuList) -> String {
    match virt::container(root).as_deref() {
        None | Some("none") => format!("widen it with `echo {online} | sudo tee {}`", cpuset.cpus_file),
        Some("docker") => format!("widen it with `docker update --cpuset-cpus={online} CONTAINER` on the host"),
        Some(_) => format!("start the container with `--cpuset-cpus={online}`"),
    }
}

fn online_files(cpus: &CpuList) -> String {
    cpus.iter().map(|cpu| format!("/{CPU}/cpu{cpu}/online")).collect::<Vec<_>>().join(" ")
}

fn be(cpus: &CpuList) -> String {
    format!("{} {}", cpus.in_words(), if cpus.len() == 1 { "is" } else { "are" })
}
