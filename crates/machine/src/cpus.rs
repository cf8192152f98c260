//! The CPUs that may be measured.

use std::fmt;

use thiserror::Error;

use crate::{CpuList, Root, Unreadable, cgroup, run_groups, virt};

/// Error: CPUs cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CpuError {
    /// The list of requested CPUs is empty.
    #[error("the list of CPUs is empty: name at least one of {online}")]
    Empty {
        /// The CPUs that are online.
        online: CpuList,
    },
    /// The machine has no such CPU.
    #[error("{} not on this machine: it has {}", with_verb(cpus), present.in_words())]
    NotThere {
        /// The requested CPUs that do not exist.
        cpus: CpuList,
        /// The CPUs that exist.
        present: CpuList,
    },
    /// The CPU exists but is offline.
    #[error("{} offline: bring online with `echo 1 | sudo tee {}`", with_verb(cpus), online_files(cpus))]
    Offline {
        /// The requested CPUs that are offline.
        cpus: CpuList,
    },
    /// The control group of this process does not allow the CPU.
    #[error("{} outside the control group {group}, which allows {allowed}: {remedy}", with_verb(cpus))]
    OutsideCgroup {
        /// The requested CPUs that are not allowed.
        cpus: CpuList,
        /// The name of the control group.
        group: String,
        /// The CPUs that it allows.
        allowed: CpuList,
        /// The command that allows more CPUs.
        remedy: String,
    },
    /// The list of online CPUs cannot be read.
    #[error(
        "cannot read which CPUs are online from {path}: mount it with `sudo mount -t sysfs sysfs /sys`, or check --root"
    )]
    Unreadable {
        /// The file.
        path: String,
    },
}

const CPU: &str = "sys/devices/system/cpu";
/// The file of the online CPUs.
pub(crate) const ONLINE: &str = "sys/devices/system/cpu/online";
/// The file of the CPUs that were isolated at boot.
pub(crate) const ISOLATED: &str = "sys/devices/system/cpu/isolated";
/// The limit of all CPUs of the driver `intel_pstate`, per cent of their highest performance, which is in no file of a single
/// one (`Documentation/admin-guide/pm/intel_pstate.rst`).
pub(crate) const MAX_PERCENT: &str = "sys/devices/system/cpu/intel_pstate/max_perf_pct";
/// The file of the CPUs that can run without a tick.
pub(crate) const TICKLESS: &str = "sys/devices/system/cpu/nohz_full";
/// The file of the CPUs that the watchdogs may interrupt (`Documentation/admin-guide/sysctl/kernel.rst`).
pub(crate) const WATCHDOGS: &str = "proc/sys/kernel/watchdog_cpumask";
/// The file of the threshold of the watchdogs, s: 0 switches all of them off, whatever their own files say (`watchdog_thresh`
/// in the same document; `__lockup_detector_reconfigure` in kernel/watchdog.c).
pub(crate) const WATCHDOG_THRESHOLD: &str = "proc/sys/kernel/watchdog_thresh";

/// The CPUs to measure: `wanted`, or all CPUs that are online and allowed by the control group.
///
/// Isolated CPUs are included. The affinity that this process inherited does not matter.
///
/// # Errors
/// [`CpuError`], with one variant for each kind of invalid request.
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
    let present = present_cpus(root);
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

/// Reads a file of CPU numbers such as `online` or `isolated`.
pub(crate) fn list(root: &Root, name: &str) -> Option<CpuList> {
    read_list(root, &format!("{CPU}/{name}")).ok()
}

/// Reads a file of CPU numbers.
///
/// # Errors
/// The errors of [`Root::parsed`].
pub(crate) fn read_list(root: &Root, path: &str) -> Result<CpuList, Unreadable> {
    // Without the boot argument `nohz_full=` the kernel writes `(null)` there.
    root.parsed(path, |text| text.replace("(null)", "").parse().ok())
}

/// The same for a file that not every kernel has; empty if it is absent.
///
/// # Errors
/// The errors of [`Root::parsed`], except for its absence.
pub(crate) fn read_list_if_present(root: &Root, path: &str) -> Result<CpuList, Unreadable> {
    match read_list(root, path) {
        Err(Unreadable::Absent) => Ok(CpuList::new()),
        read => read,
    }
}

/// True if the threshold of the watchdogs switches them off.
pub(crate) fn has_watchdogs_off(root: &Root) -> bool {
    root.number::<u32>(WATCHDOG_THRESHOLD) == Some(0)
}

/// The text of `/proc/cpuinfo`, whose lines are `key : value`.
pub(crate) fn cpuinfo(root: &Root) -> Result<String, Unreadable> {
    root.text_if("proc/cpuinfo", |text| text.lines().next().is_some_and(|line| line.contains(':')))
}

/// The CPUs that can run without a tick; empty if the kernel does not support that.
pub(crate) fn tickless(root: &Root) -> Result<CpuList, Unreadable> {
    read_list_if_present(root, TICKLESS)
}

/// Drivers with governors of their own, whose `powersave` follows the load (`Documentation/admin-guide/pm/intel_pstate.rst`,
/// `amd-pstate.rst`; the last but one is the name of amd-pstate-epp before Linux 6.9).
const OWN_GOVERNORS: [&str; 4] = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp", "longrun"];

/// The frequency that the governor of a CPU gives it at any load, kHz: `powersave` the lowest one, `userspace` the one that a
/// program has set (`Documentation/admin-guide/pm/cpufreq.rst`). `None` if it follows the load, or if that is not known.
pub(crate) fn constant_khz(root: &Root, cpu: u32) -> Option<u64> {
    root.number(&constant_file(root, cpu)?)
}

/// The file with that frequency.
pub(crate) fn constant_file(root: &Root, cpu: u32) -> Option<String> {
    let file = |name: &str| format!("{CPU}/cpu{cpu}/cpufreq/scaling_{name}");
    match root.word(&file("governor")).ok()?.as_str() {
        "powersave" => {
            let driver = root.word(&file("driver")).ok()?;
            (!OWN_GOVERNORS.contains(&&*driver)).then(|| file("min_freq"))
        }
        "userspace" => Some(file("setspeed")),
        _ => None,
    }
}

/// The highest frequency that a CPU can be set to, kHz: that of the hardware, or the present limit if the kernel keeps it, or
/// may do so, whatever it is set to, or if it is the nominal frequency, which keeps the CPU off turbo.
pub(crate) fn highest_khz(root: &Root, cpu: u32) -> Option<u64> {
    let khz = |name: &str| root.number::<u64>(&format!("{CPU}/cpu{cpu}/cpufreq/{name}"));
    let highest = khz("cpuinfo_max_freq")?;
    let now = khz("scaling_max_freq").filter(|now| {
        *now < highest && (frequency_ceiling(root, cpu).is_some() || is_nominal_limit(root, cpu) == Ok(true))
    });
    Some(now.unwrap_or(highest))
}

/// True if the frequency of a CPU cannot change with its load, because its lowest and its highest frequency are equal
/// (either its limits, or the range of the hardware), or because its governor keeps it. `None` if that cannot be read.
pub(crate) fn has_fixed_frequency(root: &Root, cpu: u32) -> Option<bool> {
    if constant_khz(root, cpu).is_some() {
        return Some(true);
    }
    let is_fixed = |kind: &str| {
        let file = |name: &str| format!("{CPU}/cpu{cpu}/cpufreq/{kind}_{name}_freq");
        let khz = |name: &str| root.parsed(&file(name), |text| text.parse::<u64>().ok());
        match (khz("min"), khz("max")) {
            (Ok(min), Ok(max)) => Some(min == max),
            (Err(Unreadable::Absent), _) | (_, Err(Unreadable::Absent)) => Some(false),
            _ => None,
        }
    };
    match is_fixed("scaling") {
        Some(false) => is_fixed("cpuinfo"),
        known => known,
    }
}

/// The flags of a processor about frequencies above its nominal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turbo {
    /// An x86 processor with this flag: `ida` of Intel, `cpb` of AMD.
    Flag(&'static str),
    /// An x86 processor without them.
    Lacking,
    /// Another processor, or one without `/proc/cpuinfo`.
    NotShown,
}

/// The flags of the processor about turbo frequencies.
///
/// # Errors
/// [`Unreadable`], but not that the file is absent.
pub(crate) fn turbo(root: &Root) -> Result<Turbo, Unreadable> {
    let cpuinfo = match cpuinfo(root) {
        Err(Unreadable::Absent) => return Ok(Turbo::NotShown),
        read => read?,
    };
    let Some(flags) = cpuinfo.lines().find(|line| line.starts_with("flags")) else { return Ok(Turbo::NotShown) };
    let known = ["ida", "cpb"].into_iter().find(|flag| flags.split_whitespace().any(|word| word == *flag));
    Ok(known.map_or(Turbo::Lacking, Turbo::Flag))
}

/// The online CPUs; empty if they cannot be read.
#[must_use]
pub fn online_cpus(root: &Root) -> CpuList {
    list(root, "online").unwrap_or_default()
}

/// The switch of turbo frequencies of the driver `intel_pstate`.
pub(crate) const NO_TURBO: &str = "sys/devices/system/cpu/intel_pstate/no_turbo";

/// The switch of turbo frequencies of all CPUs of other drivers.
pub(crate) const BOOST: &str = "sys/devices/system/cpu/cpufreq/boost";

/// The switch of turbo frequencies of one CPU and of others with the same frequency policy, since Linux 6.6
/// (`store_local_boost` in drivers/cpufreq/cpufreq.c). It can be changed only while the switch of all CPUs is on.
pub(crate) fn boost_file(cpu: u32) -> String {
    format!("{CPU}/cpu{cpu}/cpufreq/boost")
}

/// Why the kernel limits a frequency, whatever its highest frequency is set to. `scaling_max_freq` then shows this limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ceiling {
    /// Turbo is off, and the highest frequency of the CPU is one of turbo (`Documentation/admin-guide/pm/intel_pstate.rst`).
    NoTurbo,
    /// The same, but the highest frequency without turbo is not known, so the user's limit can be the reason.
    PerhapsNoTurbo,
    /// The limit of the firmware (`bios_limit` of the driver `acpi-cpufreq`).
    Firmware,
    /// A CPU is being cooled; which ones the limit is for is not known, so the user's limit can be the reason.
    Heat,
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTurbo => "turbo is off",
            Self::Firmware => "the firmware has a lower limit",
            Self::PerhapsNoTurbo => "turbo is off, which can be the reason",
            Self::Heat => "a CPU is too hot now, which can be the reason",
        })
    }
}

/// Why the kernel limits the frequency of this CPU to the present limit, or may do so; `None` if only the user's limit does.
pub(crate) fn frequency_ceiling(root: &Root, cpu: u32) -> Option<Ceiling> {
    let khz = |name: &str| root.number::<u64>(&format!("{CPU}/cpu{cpu}/cpufreq/{name}"));
    let now = khz("scaling_max_freq")?;
    if root.word(NO_TURBO).is_ok_and(|off| off == "1") {
        match khz("base_frequency") {
            Some(base) if now >= base => return Some(Ceiling::NoTurbo),
            Some(_) => {}
            None => return Some(Ceiling::PerhapsNoTurbo),
        }
    }
    if khz("bios_limit").is_some_and(|limit| Some(limit) < khz("cpuinfo_max_freq") && now >= limit) {
        return Some(Ceiling::Firmware);
    }
    (!crate::conditions::cooling(root).is_empty()).then_some(Ceiling::Heat)
}

/// True if the user's limit of a CPU is its nominal frequency, so that it never reaches those of turbo. Intel's drivers show
/// the nominal frequency; others have no such file.
///
/// # Errors
/// [`Unreadable`]: a file exists but cannot be read or understood.
pub(crate) fn is_nominal_limit(root: &Root, cpu: u32) -> Result<bool, Unreadable> {
    let khz = |name: &str| {
        let path = format!("{CPU}/cpu{cpu}/cpufreq/{name}");
        match root.parsed(&path, |text| text.parse::<u64>().ok()) {
            Err(Unreadable::Absent) => Ok(None),
            read => read.map(Some),
        }
    };
    let (base, highest, limit) = (khz("base_frequency")?, khz("cpuinfo_max_freq")?, khz("scaling_max_freq")?);
    Ok(base.is_some() && base < highest && limit == base)
}

/// The CPUs of this machine, also offline ones; the online ones if they cannot be read.
pub(crate) fn present_cpus(root: &Root) -> CpuList {
    list(root, "present").unwrap_or_default().union(&online_cpus(root))
}

/// True if the kernel offers to take this CPU offline. On most machines it does not for CPU 0, which has no such file.
pub(crate) fn can_go_offline(root: &Root, cpu: u32) -> bool {
    cpu != 0 || root.exists(&format!("{CPU}/cpu{cpu}/online"))
}

/// The CPUs that this kernel can have; empty if they cannot be read.
pub(crate) fn possible_cpus(root: &Root) -> CpuList {
    list(root, "possible").unwrap_or_default()
}

/// The way to more CPUs. A shield ends by itself, so nobody has to change its control groups.
fn widen(root: &Root, cpuset: &cgroup::Cpuset, online: &CpuList) -> String {
    let (alive, dead): (Vec<_>, Vec<_>) = run_groups::all(root).into_iter().partition(|group| group.is_alive);
    if let Some(group) = alive.first() {
        let process = group.process;
        return format!("process {process} shields CPUs: wait until it ends, or end it with `kill {process}`");
    }
    if run_groups::is_run_group(&cpuset.group) || !dead.is_empty() {
        return "a killed run left its shield: restore the CPUs with `sudo punctual restore`".to_owned();
    }
    match virt::container(root).as_deref() {
        None | Some("none") => format!("widen it with `echo {online} | sudo tee {}`", cpuset.cpus_file),
        Some("docker") => format!("widen it with `docker update --cpuset-cpus={online} CONTAINER` on the host"),
        Some("podman") => format!("start the container with `--cpuset-cpus={online}`"),
        Some("kubernetes") => {
            "give the pod whole CPUs of its own: equal requests and limits, and `cpuManagerPolicy: static` of the kubelet"
                .to_owned()
        }
        Some(_) => format!("allow the container these CPUs where it is started: {online}"),
    }
}

fn online_files(cpus: &CpuList) -> String {
    cpus.iter().map(|cpu| format!("/{CPU}/cpu{cpu}/online")).collect::<Vec<_>>().join(" ")
}

pub(crate) fn with_verb(cpus: &CpuList) -> String {
    format!("{} {}", cpus.in_words(), if cpus.len() == 1 { "is" } else { "are" })
}
