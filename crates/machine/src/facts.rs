//! The facts about a machine that every record contains.

use record::Machine;

use crate::{CpuList, Root, Unreadable, clocks, cpus, evl, kernel, root::is_printable, usable_cpus, virt};

/// Reads the facts about the machine. A fact that cannot be read is absent; none is guessed.
#[must_use]
pub fn facts(root: &Root) -> Machine {
    let version = root.read("proc/version");
    let kernel = root
        .word("proc/sys/kernel/osrelease")
        .ok()
        .filter(|release| kernel::version(release).is_some())
        .or_else(|| version.as_deref()?.strip_prefix("Linux version ")?.split(' ').next().map(str::to_owned));
    // `uname -v` starts at the build number.
    let kernel_build = root
        .text_if("proc/sys/kernel/version", |text| text.starts_with('#'))
        .ok()
        .or_else(|| version.as_deref().and_then(|version| Some(version[version.rfind(" #")?..].trim().to_owned())));
    let cmdline = root.text_if("proc/cmdline", is_printable).ok();
    let online = cpus::online_cpus(root);

    Machine {
        hostname: root.read("proc/sys/kernel/hostname"),
        arch: root.read("proc/sys/kernel/arch").or_else(|| root.is_system().then(|| std::env::consts::ARCH.to_owned())),
        model: virt::firmware(root).or_else(|| root.read("proc/device-tree/model")),
        os: os(root),
        preempt: kernel::preempt(root, kernel_build.as_deref(), cmdline.as_deref()).map(|preempt| preempt.model),
        cobalt: evl::cobalt(root, kernel.as_deref()),
        config_digest: kernel::Config::read(root, kernel.as_deref()).map(|config| config.digest()),
        kernel,
        kernel_build,
        cpu_model: cpu_model(root),
        microcode: cpuinfo(root, "microcode").into_iter().next(),
        cpus_online: (!online.is_empty()).then(|| online.to_string()),
        cpus_isolated: isolated(root).map(|cpus| cpus.to_string()),
        cpus_nohz_full: cpus::list(root, "nohz_full").map(|cpus| cpus.to_string()),
        cpus_allowed: usable_cpus(root, None).ok().map(|cpus| cpus.to_string()),
        smt: root.read("sys/devices/system/cpu/smt/control"),
        memory_bytes: memory_bytes(root),
        clocksource: root.read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        governor: governor(root, &online),
        idle_states: idle_states(root),
        mitigations: mitigations(root),
        hypervisor: virt::hypervisor(root).name,
        emulation: virt::emulation(cmdline.as_deref().unwrap_or_default()),
        container: virt::container(root),
        boot_id: root.read("proc/sys/kernel/random/boot_id"),
        evl: evl::core(root),
        evl_gravity: evl::gravity(root),
        rt_throttling: rt_throttling(root),
        clocks: clocks::read(root),
        cmdline,
        extra: record::Extra::new(),
    }
}

fn os(root: &Root) -> Option<String> {
    let release = root.read("etc/os-release").or_else(|| root.read("usr/lib/os-release"))?;
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches(['"', '\'']).to_owned())
}

/// The distinct values of one key of `/proc/cpuinfo`, in their order there.
fn cpuinfo(root: &Root, key: &str) -> Vec<String> {
    let mut values = Vec::new();
    for line in cpus::cpuinfo(root).unwrap_or_default().lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        if name.trim() == key && !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }
    values
}

/// The CPU model. x86 has a model name; ARM has the numbers of implementer and part, with several parts on big.LITTLE.
fn cpu_model(root: &Root) -> Option<String> {
    if let Some(name) = cpuinfo(root, "model name").into_iter().next() {
        return Some(name);
    }
    let implementer = cpuinfo(root, "CPU implementer").into_iter().next()?;
    let parts = cpuinfo(root, "CPU part");
    let names: Vec<String> = parts
        .iter()
        .map(|part| match ARM_CORES.iter().find(|(number, _)| implementer == "0x41" && part == number) {
            Some((_, name)) => (*name).to_owned(),
            None => format!("implementer {implementer} part {part}"),
        })
        .collect();
    (!names.is_empty()).then(|| names.join(" + "))
}

/// Part numbers of Arm's own cores, from their technical reference manuals (MIDR_EL1).
const ARM_CORES: [(&str, &str); 40] = [
    ("0xc05", "Cortex-A5"),
    ("0xc07", "Cortex-A7"),
    ("0xc08", "Cortex-A8"),
    ("0xc09", "Cortex-A9"),
    ("0xc0e", "Cortex-A17"),
    ("0xc0f", "Cortex-A15"),
    ("0xd01", "Cortex-A32"),
    ("0xd02", "Cortex-A34"),
    ("0xd03", "Cortex-A53"),
    ("0xd04", "Cortex-A35"),
    ("0xd05", "Cortex-A55"),
    ("0xd06", "Cortex-A65"),
    ("0xd07", "Cortex-A57"),
    ("0xd08", "Cortex-A72"),
    ("0xd09", "Cortex-A73"),
    ("0xd0a", "Cortex-A75"),
    ("0xd0b", "Cortex-A76"),
    ("0xd0c", "Neoverse-N1"),
    ("0xd0d", "Cortex-A77"),
    ("0xd0e", "Cortex-A76AE"),
    ("0xd40", "Neoverse-V1"),
    ("0xd41", "Cortex-A78"),
    ("0xd42", "Cortex-A78AE"),
    ("0xd43", "Cortex-A65AE"),
    ("0xd44", "Cortex-X1"),
    ("0xd46", "Cortex-A510"),
    ("0xd47", "Cortex-A710"),
    ("0xd48", "Cortex-X2"),
    ("0xd49", "Neoverse-N2"),
    ("0xd4a", "Neoverse-E1"),
    ("0xd4b", "Cortex-A78C"),
    ("0xd4d", "Cortex-A715"),
    ("0xd4e", "Cortex-X3"),
    ("0xd4f", "Neoverse-V2"),
    ("0xd80", "Cortex-A520"),
    ("0xd81", "Cortex-A720"),
    ("0xd82", "Cortex-X4"),
    ("0xd84", "Neoverse-V3"),
    ("0xd87", "Cortex-A725"),
    ("0xd8e", "Neoverse-N3"),
];

/// The isolated CPUs; empty if they cannot be read.
#[must_use]
pub fn isolated_cpus(root: &Root) -> CpuList {
    isolated(root).unwrap_or_default()
}

/// The CPUs of isolated cpuset partitions (Linux 6.7).
pub(crate) const ISOLATED_BY_PARTITION: &str = "sys/fs/cgroup/cpuset.cpus.isolated";

/// The CPUs isolated at boot, plus those of an isolated cpuset partition, which the first list lacks.
fn isolated(root: &Root) -> Option<CpuList> {
    let by_partition = by_partition(root).ok()?;
    match cpus::list(root, "isolated") {
        Some(at_boot) => Some(at_boot.union(&by_partition)),
        None => Some(by_partition).filter(|cpus| !cpus.is_empty()),
    }
}

/// The CPUs of isolated cpuset partitions; empty if the kernel has no list of them.
///
/// # Errors
/// The list cannot be read or understood.
pub(crate) fn by_partition(root: &Root) -> Result<CpuList, Unreadable> {
    cpus::read_list_if_present(root, ISOLATED_BY_PARTITION)
}

/// The CPUs on which a kernel of this release starts no update of its memory statistics: since Linux 6.5 those isolated at
/// boot and those without a tick (commit be5e015d107d), since 6.8 also those of isolated partitions (commit 3232e7aad11e).
/// Sources: `vmstat_shepherd` in mm/vmstat.c, `cpu_is_isolated` in include/linux/sched/isolation.h.
pub(crate) fn without_statistics(root: &Root, release: (u32, u32)) -> Result<CpuList, Unreadable> {
    if release < (6, 5) {
        return Ok(CpuList::new());
    }
    let at_boot = cpus::list(root, "isolated").unwrap_or_default().union(&cpus::tickless(root)?);
    Ok(match release >= (6, 8) {
        true => at_boot.union(&by_partition(root)?),
        false => at_boot,
    })
}

fn memory_bytes(root: &Root) -> Option<u64> {
    of_meminfo(root, "MemTotal:")
}

/// The memory that programs can get without swapping, bytes; `None` if it is unknown.
pub(crate) fn available_bytes(root: &Root) -> Option<u64> {
    of_meminfo(root, "MemAvailable:")
}

fn of_meminfo(root: &Root, name: &str) -> Option<u64> {
    let meminfo = root.read("proc/meminfo")?;
    let value = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The memory that programs need more once their equal pages are separated again (KSM), if it is more than there is:
/// needed and available bytes.
pub(crate) fn too_much_merged(root: &Root) -> Option<(u64, u64)> {
    let pages: u64 = root.number("sys/kernel/mm/ksm/pages_sharing")?;
    let needed = pages.saturating_mul(rustix::param::page_size() as u64);
    let available = available_bytes(root)?;
    (needed > available).then_some((needed, available))
}

/// The mode of transparent huge pages, also of the sizes that inherit it.
pub(crate) const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";

/// The modes of the sizes of transparent huge pages (`Documentation/admin-guide/mm/transhuge.rst`), the smallest first.
pub(crate) fn thp_sizes(root: &Root) -> Vec<String> {
    const FOLDER: &str = "sys/kernel/mm/transparent_hugepage";
    if !root.exists(FOLDER) {
        return Vec::new();
    }
    let kib = |name: &String| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok();
    let mut sizes: Vec<u64> = root.list(FOLDER).iter().filter_map(kib).collect();
    sizes.sort_unstable();
    sizes.into_iter().map(|kib| format!("{FOLDER}/hugepages-{kib}kB/enabled")).collect()
}

/// Bytes in MiB, rounded up: `12 MiB`.
pub(crate) fn in_mib(bytes: u64) -> String {
    format!("{} MiB", record::grouped(bytes.div_ceil(1 << 20)))
}

/// The governor of all CPUs, or the governor of each group of CPUs: `0-3=powersave 4-5=performance`.
fn governor(root: &Root, online: &CpuList) -> Option<String> {
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    for cpu in online {
        let Ok(name) = root.word(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")) else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cpus)) => cpus.push(cpu),
            None => groups.push((name, vec![cpu])),
        }
    }
    match groups.as_slice() {
        [] => None,
        [(name, cpus)] if cpus.len() == online.len() => Some(name.clone()),
        groups => {
            let pairs =
                groups.iter().map(|(name, cpus)| format!("{}={name}", CpuList::from_iter(cpus.iter().copied())));
            Some(pairs.collect::<Vec<_>>().join(" "))
        }
    }
}

/// An idle state of a CPU.
pub(crate) struct IdleState {
    pub(crate) name: String,
    /// Exit latency, us.
    pub(crate) exit_us: u64,
    pub(crate) enabled: bool,
}

/// The idle states of one CPU, shallowest first.
pub(crate) fn idle_states_of(root: &Root, cpu: u32) -> Vec<IdleState> {
    let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
    // States are numbered from 0 without gaps; a sorted list would put state10 before state2.
    (0..)
        .map_while(|number| {
            let file = |name: &str| format!("{folder}/state{number}/{name}");
            let name = root.parsed(&file("name"), |name| (!name.is_empty()).then(|| name.to_owned())).ok()?;
            let exit_us = root.number(&file("latency"))?;
            let enabled = match root.parsed(&file("disable"), |text| text.parse::<u64>().ok()) {
                Ok(disable) => disable == 0,
                Err(Unreadable::Absent) => true,
                Err(_) => return None,
            };
            Some(IdleState { name, exit_us, enabled })
        })
        .collect()
}

/// The enabled idle states within the latency limit of a CPU and that of programs, us, with their numbers. The kernel always
/// allows the first state.
pub(crate) fn usable_idle_states(
    root: &Root,
    cpu: u32,
    programs_us: Option<u64>,
) -> impl Iterator<Item = (usize, IdleState)> {
    let own_us = match root.word(&latency_limit(cpu)).as_deref() {
        Ok("n/a") => Some(0),
        // 0 is no limit.
        Ok(_) => root.number::<u64>(&latency_limit(cpu)).filter(|us| *us > 0),
        Err(_) => None,
    };
    let limit_us = own_us.into_iter().chain(programs_us).min();
    let is_allowed = move |number: usize, state: &IdleState| {
        number == 0 || limit_us.is_none_or(|limit_us| state.exit_us <= limit_us)
    };
    let states = idle_states_of(root, cpu).into_iter().enumerate();
    states.filter(move |(number, state)| state.enabled && is_allowed(*number, state))
}

/// The file of a CPU's latency limit, us: 0 for no limit, `n/a` for no idle state.
pub(crate) fn latency_limit(cpu: u32) -> String {
    format!("sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us")
}

fn idle_states(root: &Root) -> Option<String> {
    let words = |state: &IdleState| {
        let disabled = if state.enabled { "" } else { " (disabled)" };
        format!("{} {}us{disabled}", state.name, state.exit_us)
    };
    let states = idle_states_of(root, 0);
    (!states.is_empty()).then(|| states.iter().map(words).collect::<Vec<_>>().join(", "))
}

fn mitigations(root: &Root) -> Vec<String> {
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    let in_force = |name: String| {
        let state = root.read(&format!("{FOLDER}/{name}"))?;
        state.strip_prefix("Mitigation: ").map(|mitigation| format!("{name}: {mitigation}"))
    };
    root.list(FOLDER).into_iter().filter_map(in_force).collect()
}

fn rt_throttling(root: &Root) -> Option<String> {
    let runtime = root.read("proc/sys/kernel/sched_rt_runtime_us")?;
    let period = root.read("proc/sys/kernel/sched_rt_period_us")?;
    Some(format!("{runtime}/{period}"))
}
