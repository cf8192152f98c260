//! Conditions that may change during a run: stolen time, throttling, the clock source. Read before and after a run.

use std::collections::BTreeMap;
use std::fmt;

use crate::{CpuList, Root};

/// Length of a tick of `/proc/stat`, ms: `USER_HZ` is 100 on every supported architecture.
const TICK_MS: u64 = 10;

/// Counters and settings at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// Time that the hypervisor gave to others since boot, by CPU, ms.
    pub steal_ms: BTreeMap<u32, u64>,
    /// Times that the CPU was throttled because of heat since boot, by CPU. Only x86 kernels count them.
    pub throttles: BTreeMap<u32, u64>,
    /// Cooling devices that limit a frequency now, each with its step (ARM). Devices at step 0 are omitted.
    pub cooling: BTreeMap<String, u64>,
    /// Clock source of the kernel.
    pub clocksource: Option<String>,
    /// The requested CPUs that are online.
    pub online: CpuList,
}

/// A change between two moments, or a limit in force at one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The hypervisor gave time of this CPU to others. This is a caveat.
    Steal {
        /// The CPU.
        cpu: u32,
        /// Stolen time, ms.
        ms: u64,
    },
    /// The CPU was throttled because of heat. The run is invalid.
    Throttled {
        /// The CPU.
        cpu: u32,
        /// Number of times.
        times: u64,
    },
    /// A frequency was limited because of heat at the start or the end. The run is invalid.
    Cooled {
        /// Name of the cooling device.
        device: String,
        /// Its step, at least 1.
        step: u64,
    },
    /// The kernel changed its clock source. The run is invalid.
    Clocksource {
        /// Clock source before.
        before: String,
        /// Clock source after.
        after: String,
    },
    /// The CPU went offline, so its series ended early.
    WentOffline {
        /// The CPU.
        cpu: u32,
    },
}

impl Conditions {
    /// Reads the current conditions of `cpus`.
    #[must_use]
    pub fn read(root: &Root, cpus: &CpuList) -> Self {
        let stat = root.read("proc/stat").unwrap_or_default();
        let steal_ms = stat.lines().filter_map(steal_ticks).map(|(cpu, ticks)| (cpu, ticks.saturating_mul(TICK_MS)));
        Self {
            steal_ms: steal_ms.filter(|(cpu, _)| cpus.contains(*cpu)).collect(),
            throttles: cpus.iter().filter_map(|cpu| Some((cpu, throttles(root, cpu)?))).collect(),
            cooling: cooling(root),
            clocksource: clocksource(root),
            online: crate::cpus::online_cpus(root).intersection(cpus),
        }
    }
}

/// The kernel's current clock source; `None` if it cannot be read.
#[must_use]
pub fn clocksource(root: &Root) -> Option<String> {
    root.read("sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// The changes from `before` to `after`, in the order of [`Change`], CPUs in ascending order.
#[must_use]
pub fn changes(before: &Conditions, after: &Conditions) -> Vec<Change> {
    let steal = rises(&before.steal_ms, &after.steal_ms).map(|(cpu, ms)| Change::Steal { cpu, ms });
    let throttled = rises(&before.throttles, &after.throttles).map(|(cpu, times)| Change::Throttled { cpu, times });
    let mut cooling = before.cooling.clone();
    for (device, step) in &after.cooling {
        let worst = cooling.entry(device.clone()).or_default();
        *worst = (*worst).max(*step);
    }
    let cooled = cooling.into_iter().map(|(device, step)| Change::Cooled { device, step });
    let clock = match (&before.clocksource, &after.clocksource) {
        (Some(before), Some(after)) if before != after => {
            Some(Change::Clocksource { before: before.clone(), after: after.clone() })
        }
        _ => None,
    };
    let gone = before.online.difference(&after.online);
    let gone = gone.iter().map(|cpu| Change::WentOffline { cpu });
    steal.chain(throttled).chain(cooled).chain(clock).chain(gone).collect()
}

/// Counters that rose. A counter that fell was reset with its CPU and is ignored.
fn rises(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> impl Iterator<Item = (u32, u64)> {
    after.iter().filter_map(|(&cpu, &now)| {
        let rise = now.checked_sub(*before.get(&cpu)?)?;
        (rise > 0).then_some((cpu, rise))
    })
}

/// Time that these CPUs were idle since boot, also while a task waited for a disk, by CPU, ms. Offline CPUs are missing.
#[must_use]
pub fn idle_ms(root: &Root, cpus: &CpuList) -> BTreeMap<u32, u64> {
    let stat = root.read("proc/stat").unwrap_or_default();
    let idle = |line: &str| {
        let (cpu, ticks) = ticks(line)?;
        let idle = ticks.get(3)?.saturating_add(*ticks.get(4)?);
        cpus.contains(cpu).then_some((cpu, idle.saturating_mul(TICK_MS)))
    };
    stat.lines().filter_map(idle).collect()
}

/// CPU and stolen ticks of a line of `/proc/stat`.
fn steal_ticks(line: &str) -> Option<(u32, u64)> {
    let (cpu, ticks) = ticks(line)?;
    Some((cpu, *ticks.get(7)?))
}

/// CPU and ticks of a line `cpu3 user nice system idle iowait irq softirq steal guest …`.
fn ticks(line: &str) -> Option<(u32, Vec<u64>)> {
    let mut fields = line.split_whitespace();
    let cpu = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
    Some((cpu, fields.map_while(|ticks| ticks.parse().ok()).collect()))
}

/// Throttle events of core and package together: each throttles the CPU.
fn throttles(root: &Root, cpu: u32) -> Option<u64> {
    let count = |what: &str| {
        root.number::<u64>(&format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{what}_throttle_count"))
    };
    match (count("core"), count("package")) {
        (Some(core), Some(package)) => Some(core.saturating_add(package)),
        (core, package) => core.or(package),
    }
}

/// True for the type of a cooling device of a CPU: `cpufreq-cpu0`, on older kernels `thermal-cpufreq-0`, and `Processor` of
/// ACPI (drivers/acpi/processor_thermal.c).
pub(crate) fn cools_cpu(kind: &str) -> bool {
    kind.contains("cpufreq") || kind == "Processor"
}

/// Cooling devices that limit a frequency now, with the largest step of each type.
pub(crate) fn cooling(root: &Root) -> BTreeMap<String, u64> {
    const FOLDER: &str = "sys/class/thermal";
    let devices = root.list(FOLDER).into_iter().filter(|name| name.starts_with("cooling_device"));
    let mut cooled: BTreeMap<String, u64> = BTreeMap::new();
    for name in devices {
        let Ok(kind) = root.word(&format!("{FOLDER}/{name}/type")) else { continue };
        let Some(step) = root.number::<u64>(&format!("{FOLDER}/{name}/cur_state")) else { continue };
        if cools_cpu(&kind) && step > 0 {
            // ACPI gives the devices of all CPUs one type.
            let largest = cooled.entry(kind).or_default();
            *largest = step.max(*largest);
        }
    }
    cooled
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steal { cpu, ms } => write!(f, "the hypervisor gave {ms} ms of CPU {cpu} to others"),
            Self::Throttled { cpu, times } => write!(f, "CPU {cpu} was throttled {times} times because of heat"),
            Self::Cooled { device, step } => write!(f, "{device} limited the frequency because of heat (step {step})"),
            Self::Clocksource { before, after } => {
                write!(f, "the kernel changed its clock source from {before} to {after}")
            }
            Self::WentOffline { cpu } => write!(f, "CPU {cpu} went offline"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn reports_every_change_between_two_moments() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let set = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
        set("proc/stat", "cpu  1 1 1 1 1 1 1 5 0 0\ncpu0 1 1 1 1 1 1 1 2 0 0\ncpu1 1 1 1 1 1 1 1 3 0 0\nintr 1\n");
        set("sys/devices/system/cpu/online", "0-2\n");
        set("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "7\n");
        set("sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "1\n");
        set("sys/class/thermal/cooling_device0/type", "cpufreq-cpu0\n");
        set("sys/class/thermal/cooling_device0/cur_state", "0\n");
        set("sys/class/thermal/cooling_device1/type", "pwm-fan\n");
        set("sys/class/thermal/cooling_device1/cur_state", "3\n");
        set(clock, "tsc\n");
        let cpus = "1-2".parse().unwrap();
        let before = Conditions::read(&root, &cpus);
        assert_eq!(before.steal_ms, BTreeMap::from([(1, 30)]));
        assert_eq!(before.throttles, BTreeMap::from([(1, 8)]));
        assert_eq!(changes(&before, &before), []);

        set("proc/stat", "cpu0 1 1 1 1 1 1 1 90 0 0\ncpu1 1 1 1 1 1 1 1 7 0 0\n");
        set("sys/devices/system/cpu/online", "0-1\n");
        set("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "9\n");
        set("sys/class/thermal/cooling_device0/cur_state", "2\n");
        set(clock, "hpet\n");
        let after = Conditions::read(&root, &cpus);
        assert_eq!(
            changes(&before, &after),
            [
                Change::Steal { cpu: 1, ms: 40 },
                Change::Throttled { cpu: 1, times: 2 },
                Change::Cooled { device: "cpufreq-cpu0".into(), step: 2 },
                Change::Clocksource { before: "tsc".into(), after: "hpet".into() },
                Change::WentOffline { cpu: 2 },
            ]
        );
        let cooled_and_clock = changes(&after, &before);
        assert_eq!(cooled_and_clock.len(), 2, "a limit at the start counts, falling counters do not");
    }
}
