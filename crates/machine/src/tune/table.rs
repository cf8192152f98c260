//! Every setting, defined once. To add one, add its line to [`DEFINITIONS`] with the files that it writes.

use record::Lasts;

use super::{
    Context, OnRequest, Refusal, Setting, Target, WhyNot, Write,
    away::{away, others},
    cache,
    frequency::{KHZ, frequencies, governor, offered, policy_files},
    idle_states::idle_states,
    interrupts::{affinity, irq_priority, stays},
    old_value::OldValue,
    programs,
    values::{needs_a_value, number, only_word, switch, word},
    watchdogs::{WATCHDOGS, watchdog_cpus, watchdogs},
    writes::{cpu_files, each, each_unless, sysctl_switch},
};
use crate::{
    cpus::{self, Turbo},
    facts::{THP, in_mib, thp_sizes, too_much_merged, without_statistics},
    findings::{
        ASPM_POLICY, PLATFORM_PROFILE, PLATFORM_PROFILES, aspm_is_off, aspm_is_unused, fastest_profile, pci_devices,
        profile_rank, usb_devices,
    },
    has_fair_server,
    kernel::{Config, version},
    nic::NicSettings,
};

const CPUFREQ: &str = "Linux, Documentation/admin-guide/pm/cpufreq.rst";
const SYSCTL_KERNEL: &str = "Linux, Documentation/admin-guide/sysctl/kernel.rst";
const SYSCTL_VM: &str = "Linux, Documentation/admin-guide/sysctl/vm.rst";

const WORKQUEUES: &str = "sys/devices/virtual/workqueue/cpumask";
const DEFAULT_AFFINITY: &str = "proc/irq/default_smp_affinity";
const RT_RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
const RT_PERIOD: &str = "proc/sys/kernel/sched_rt_period_us";
/// The servers for threads of a scheduler that a program has loaded (sched_ext).
const EXT_SERVERS: &str = "sys/kernel/debug/sched/ext_server/cpu#/runtime";
/// The largest time for ordinary threads, ns in each second: the kernel keeps 5 % for other threads (the default of
/// `sched_rt_runtime_us`), and a whole second would stop all real-time threads.
const FAIR_NS_MAX: i64 = 950_000_000;

const SWITCH: OldValue = OldValue::Number(0, 1);

/// The effect of a value of the user that is not known to have the effect of the setting.
const AS_ASKED: &str = "as you asked";
/// The effect of a setting that has none here.
const NO_EFFECT: &str = "none expected here";
/// The risk of such a value.
const UNKNOWN_RISK: &str = "not known for this value";

/// The values of a setting that have its effect. The default always has it.
#[derive(Debug, Clone, Copy)]
enum EffectOf {
    AllValues,
    Values(&'static [&'static str]),
    /// Numbers above the present one.
    HigherValues,
}

impl EffectOf {
    fn includes(self, value: Option<&str>, writes: &[Write]) -> bool {
        let is_higher = |write: &Write| write.to.parse::<i64>().ok() > write.from.parse::<i64>().ok();
        match (value, self) {
            (None, _) | (_, Self::AllValues) => true,
            (Some(value), Self::Values(known)) => known.contains(&value),
            (Some(_), Self::HigherValues) => writes.iter().all(is_higher),
        }
    }
}

/// A setting of the table.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// Stable id.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The id of the finding that it answers; `None` if no check covers it.
    pub finding: Option<&'static str>,
    /// The values that it takes, in words, with the default.
    pub values: &'static str,
    /// Expected effect, at most 29 characters: a plan has one line for each setting.
    pub effect: &'static str,
    /// The values that have this effect.
    effect_of: EffectOf,
    /// Risk, or cost.
    pub risk: &'static str,
    /// The document that describes it.
    pub source: &'static str,
    /// True if it only changes when the user names it, because of its cost or because it needs a value.
    pub is_on_request: bool,
    /// The only files that it writes: `#` is a number, `*` a name.
    pub files: &'static [&'static str],
    /// The values that its files may have before the change.
    expects: OldValue,
    find: fn(&Context<'_>, Option<&str>) -> Result<Vec<Write>, WhyNot>,
}

impl Definition {
    /// Reads the setting on a machine.
    pub(super) fn read(&self, context: &Context<'_>, value: Option<&str>) -> Result<Setting, WhyNot> {
        let writes = (self.find)(context, value)?;
        for write in &writes {
            if let Target::File(path) = &write.target {
                self.expects.read(context, path)?;
            }
        }
        if let Some(write) = writes.iter().find(|write| is_read_only(context, write)) {
            return Err(WhyNot::ReadOnly(write.target.clone()));
        }
        let without_effect = self.without_effect(context, value);
        let (effect, risk) = match self.effect_of.includes(value, &writes) {
            true if without_effect.is_some() => (NO_EFFECT, self.risk),
            true => (self.effect, self.risk),
            false => (AS_ASKED, UNKNOWN_RISK),
        };
        let note = without_effect.or_else(|| stays(&writes));
        let Self { id, name, source, .. } = *self;
        Ok(Setting { id, name, writes, effect, risk, lasts: Lasts::UntilBoot, source, note })
    }

    /// The reason why the setting has no effect here, although the user named it.
    fn without_effect(&self, context: &Context<'_>, value: Option<&str>) -> Option<String> {
        if !context.is_named {
            return None;
        }
        let unnamed = Context { is_named: false, ..context.clone() };
        match (self.find)(&unnamed, value) {
            Err(WhyNot::NoEffect(reason)) => Some(reason),
            _ => None,
        }
    }

    /// True if its value names a device, so that several values can be used together.
    pub(super) fn names_devices(&self) -> bool {
        matches!(self.id, "irq.priority" | "nic.settings")
    }

    pub(super) fn on_request(&self) -> OnRequest {
        OnRequest { id: self.id, name: self.name, values: self.values, risk: self.risk }
    }
}

/// True if even root may not write the file. Without root, that is said when settings are applied.
fn is_read_only(context: &Context<'_>, write: &Write) -> bool {
    let Target::File(path) = &write.target else { return false };
    write.from != write.to
        && rustix::process::geteuid().is_root()
        && context.root.may_write(path) == Some(false)
        && context.root.exists(path)
}

/// All settings, in the order in which they are applied.
pub const DEFINITIONS: &[Definition] = &[
    Definition {
        id: "cpu.energy_preference",
        name: "preference between speed and energy (EPP)",
        finding: Some("cpu.energy_preference"),
        values: "performance (default), or another preference of this CPU",
        effect: "the frequency rises at once",
        effect_of: EffectOf::Values(&["performance"]),
        risk: "more power and heat",
        source: "Linux, Documentation/admin-guide/pm/intel_pstate.rst",
        is_on_request: false,
        files: &["sys/devices/system/cpu/cpu#/cpufreq/energy_performance_preference"],
        expects: OldValue::OfferedOrByte("energy_performance_available_preferences"),
        find: |context, value| {
            let paths = policy_files(context, "energy_performance_preference");
            let wanted = offered(context, value, "performance", "energy_performance_available_preferences")?;
            each_unless(context, paths, &wanted, |now| value.is_none() && now == "0")
        },
    },
    Definition {
        id: "cpu.governor",
        name: "frequency governor",
        finding: Some("cpu.governor"),
        values: "performance (default), or another governor of this machine",
        effect: "no slow start after a pause",
        effect_of: EffectOf::Values(&["performance"]),
        risk: "more power and heat",
        source: CPUFREQ,
        is_on_request: false,
        files: &["sys/devices/system/cpu/cpu#/cpufreq/scaling_governor"],
        expects: OldValue::Offered("scaling_available_governors"),
        find: governor,
    },
    Definition {
        id: "cpu.max_freq",
        name: "highest frequency",
        finding: Some("cpu.frequency_limit"),
        values: "max (default), min, or a frequency: 1000MHz",
        effect: "CPUs may run this fast",
        effect_of: EffectOf::AllValues,
        risk: "more heat, if the limit was set because of it",
        source: CPUFREQ,
        is_on_request: false,
        files: &["sys/devices/system/cpu/cpu#/cpufreq/scaling_max_freq"],
        expects: KHZ,
        find: highest_frequency,
    },
    Definition {
        id: "cpu.max_performance",
        name: "highest performance of all CPUs (max_perf_pct of intel_pstate)",
        finding: Some("cpu.frequency_limit"),
        values: "per cent, 1 to 100; default 100",
        effect: "CPUs may run this fast",
        effect_of: EffectOf::AllValues,
        risk: "more heat, if the limit was set because of it",
        source: "Linux, Documentation/admin-guide/pm/intel_pstate.rst",
        is_on_request: false,
        files: &[cpus::MAX_PERCENT],
        expects: OldValue::Number(1, 100),
        find: |context, value| {
            let percent = number(value.map(|value| value.trim_end_matches('%').trim_end()), 100, 1..=100)?;
            each(context, vec![cpus::MAX_PERCENT.to_owned()], &percent)
        },
    },
    Definition {
        id: "cpu.min_freq",
        name: "lowest frequency",
        finding: None,
        values: "max (default), min, or a frequency: 1000MHz",
        effect: "CPUs run at least this fast",
        effect_of: EffectOf::AllValues,
        risk: "more power and heat",
        source: CPUFREQ,
        is_on_request: true,
        files: &["sys/devices/system/cpu/cpu#/cpufreq/scaling_min_freq"],
        expects: KHZ,
        find: |context, value| frequencies(context, value.unwrap_or("max"), &["scaling_min_freq"]),
    },
    Definition {
        id: "cpu.frequency",
        name: "one fixed frequency",
        finding: Some("cpu.governor"),
        values: "a frequency: 1000MHz, min or max",
        effect: "the same speed all the time",
        effect_of: EffectOf::AllValues,
        risk: "slower than the CPU can be, or more heat",
        source: CPUFREQ,
        is_on_request: true,
        files: &[
            "sys/devices/system/cpu/cpu#/cpufreq/scaling_min_freq",
            "sys/devices/system/cpu/cpu#/cpufreq/scaling_max_freq",
        ],
        expects: KHZ,
        find: |context, value| {
            let Some(value) = value else { return Err(needs_a_value("a frequency: 1000MHz, min or max")) };
            frequencies(context, value, &["scaling_min_freq", "scaling_max_freq"])
        },
    },
    Definition {
        id: "cpu.turbo",
        name: "frequencies above the nominal one",
        finding: Some("cpu.turbo"),
        values: "off (default), on",
        effect: "the frequency varies less",
        effect_of: EffectOf::Values(&["off"]),
        risk: "single threads run slower",
        source: CPUFREQ,
        is_on_request: true,
        files: &[cpus::NO_TURBO, cpus::BOOST, "sys/devices/system/cpu/cpu#/cpufreq/boost"],
        expects: SWITCH,
        find: turbo,
    },
    Definition {
        id: "cpu.idle_states",
        name: "longest time to leave an idle state",
        finding: Some("cpu.idle_states"),
        values: "a time: 0us (no idle state), 10us (default; with --for a tenth of its limit), or any",
        effect: "CPUs wake quickly",
        effect_of: EffectOf::Values(&["0us", "10us"]),
        risk: "more power and heat, and other cores may reach lower turbo frequencies",
        source: "Linux, Documentation/ABI/testing/sysfs-devices-power",
        is_on_request: false,
        files: &["sys/devices/system/cpu/cpu#/power/pm_qos_resume_latency_us"],
        expects: OldValue::NumberOr(0, i32::MAX as i64, "n/a"),
        find: idle_states,
    },
    Definition {
        id: "irq.affinity",
        name: "CPUs of interrupts",
        finding: Some("irq.affinity"),
        values: "away (default): all but the CPUs for real-time work",
        effect: "devices interrupt other CPUs",
        effect_of: EffectOf::AllValues,
        risk: "other CPUs serve more interrupts; those of devices used by real-time work move, too",
        source: "Linux, Documentation/core-api/irq/irq-affinity.rst",
        is_on_request: false,
        files: &["proc/irq/#/smp_affinity_list"],
        expects: OldValue::Cpus,
        find: affinity,
    },
    Definition {
        id: "irq.default_affinity",
        name: "CPUs of interrupts that are set up later",
        finding: Some("irq.default_affinity"),
        values: "away (default): all but the CPUs for real-time work",
        effect: "new devices use other CPUs",
        effect_of: EffectOf::AllValues,
        risk: "none known",
        source: "Linux, Documentation/core-api/irq/irq-affinity.rst",
        is_on_request: false,
        files: &[DEFAULT_AFFINITY],
        expects: OldValue::Mask,
        find: |context, value| away(context, value, DEFAULT_AFFINITY),
    },
    Definition {
        id: "irq.priority",
        name: "priority of interrupt threads",
        finding: Some("irq.threads"),
        values: "NAME:PRIORITY for the threads irq/N-NAME..., or a priority for all: eth0:90, 50",
        effect: "sets what is served first",
        effect_of: EffectOf::AllValues,
        risk: "a device may lose data if its thread runs late",
        source: "Linux, Documentation/core-api/real-time/theory.rst",
        is_on_request: true,
        files: &[],
        expects: OldValue::NoFile,
        find: irq_priority,
    },
    Definition {
        id: "cpu.workqueues",
        name: "CPUs of the kernel's unbound work",
        finding: Some("cpu.workqueues"),
        values: "away (default): all but the CPUs for real-time work",
        effect: "kernel workers run elsewhere",
        effect_of: EffectOf::AllValues,
        risk: "none known",
        source: "Linux, Documentation/core-api/workqueue.rst",
        is_on_request: false,
        files: &[WORKQUEUES],
        expects: OldValue::Mask,
        find: |context, value| away(context, value, WORKQUEUES),
    },
    Definition {
        id: "cpu.programs",
        name: "CPUs of programs",
        finding: None,
        values: "away (default): all but the CPUs for real-time work",
        effect: "programs run elsewhere",
        effect_of: EffectOf::AllValues,
        risk: "programs share fewer CPUs; real-time programs must be pinned to theirs",
        source: "Linux, sched_setaffinity(2)",
        is_on_request: false,
        files: &[],
        expects: OldValue::NoFile,
        find: |context, value| {
            only_word(value, "away")?;
            others(context)?;
            if let Some(moved) = programs::moved_off_others(context.root, &context.freed) {
                let text = format!("an earlier tune moved programs off {}: revert it first", moved.in_words());
                return Err(WhyNot::Here(text));
            }
            let from = programs::value(context.root, &context.freed);
            let target = Target::Programs(context.freed.clone());
            Ok(vec![Write { target, from, to: programs::NONE.to_owned(), refusal: Refusal::Failure }])
        },
    },
    Definition {
        id: "cpu.resctrl",
        name: "share of the cache for real-time work",
        finding: Some("cpu.resctrl"),
        values: "per cent of the cache of these CPUs, 1 to 99; default 50",
        effect: "other CPUs evict no data",
        effect_of: EffectOf::AllValues,
        risk: "less cache for the other CPUs",
        source: "Linux, Documentation/filesystems/resctrl.rst",
        is_on_request: true,
        files: cache::FILES,
        expects: OldValue::NoFile,
        find: |context, value| {
            let percent = value.map_or("50", |value| value.trim_end_matches('%').trim_end());
            let percent = number(Some(percent), 50, 1..=99)?;
            others(context)?;
            cache::find(context, percent.parse().unwrap_or(50))
        },
    },
    Definition {
        id: "cpu.statistics",
        name: "interval of memory statistics (vm.stat_interval)",
        finding: Some("cpu.statistics"),
        values: "seconds, 1 to 3600; default 10",
        effect: "kernel workers run less often",
        effect_of: EffectOf::HigherValues,
        risk: "figures in /proc/vmstat are older",
        source: SYSCTL_VM,
        is_on_request: false,
        files: &["proc/sys/vm/stat_interval"],
        expects: OldValue::Number(0, i64::MAX),
        find: |context, value| {
            let wanted = number(value, 10, 1..=3600)?;
            if !context.is_named && others(context).is_err() {
                let reason =
                    "no CPU is set apart for real-time work, and only such a quiet one gains: name some with --cpus";
                return Err(WhyNot::NoEffect(reason.to_owned()));
            }
            let release = context.root.parsed("proc/sys/kernel/osrelease", version);
            let without = release.and_then(|release| without_statistics(context.root, release)).unwrap_or_default();
            if !context.is_named && context.freed.difference(&without).is_empty() {
                let freed = context.freed.in_words();
                return Err(WhyNot::NoEffect(format!("the kernel starts no update of memory statistics on {freed}")));
            }
            let is_good = |now: &str| value.is_none() && now.parse::<u64>().is_ok_and(|now| now >= 10);
            each_unless(context, vec!["proc/sys/vm/stat_interval".to_owned()], &wanted, is_good)
        },
    },
    Definition {
        id: "rt.throttling",
        name: "limit of real-time threads",
        finding: Some("rt.throttling"),
        values: "off (default), or us in each period: 950000",
        effect: "busy threads are not stopped",
        effect_of: EffectOf::Values(&["off", "-1"]),
        risk: "a real-time thread that never sleeps hangs its CPU",
        source: "Linux, Documentation/scheduler/sched-rt-group.rst",
        is_on_request: true,
        files: &[RT_RUNTIME],
        expects: OldValue::Number(-1, i64::MAX),
        find: rt_throttling,
    },
    Definition {
        id: "rt.fair_server",
        name: "time that real-time threads leave to ordinary ones",
        finding: Some("rt.throttling"),
        values: "off (default), or ns in each second: 50000000",
        effect: "ordinary threads get no share",
        effect_of: EffectOf::Values(&["off", "0"]),
        risk: "a real-time thread that never sleeps hangs its CPU",
        source: "Linux, Documentation/scheduler/sched-deadline.rst; kernel/sched/debug.c",
        is_on_request: true,
        files: &["sys/kernel/debug/sched/fair_server/cpu#/runtime", EXT_SERVERS],
        expects: OldValue::Number(0, i64::MAX),
        find: |context, value| {
            let wanted = if value == Some("off") { "0".to_owned() } else { number(value, 0, 0..=FAIR_NS_MAX)? };
            let mut paths = cpu_files(context, "sys/kernel/debug/sched/fair_server/cpu#/runtime");
            // Only kernels with sched_ext have these.
            paths.extend(cpu_files(context, EXT_SERVERS));
            each(context, paths, &wanted)
        },
    },
    Definition {
        id: "kernel.watchdog",
        name: "watchdogs for hanging CPUs",
        finding: Some("kernel.watchdog"),
        values: "off (default), on",
        effect: "no periodic timer and NMI",
        effect_of: EffectOf::Values(&["off"]),
        risk: "a CPU that hangs is not reported",
        source: SYSCTL_KERNEL,
        is_on_request: false,
        files: &WATCHDOGS,
        expects: SWITCH,
        find: watchdogs,
    },
    Definition {
        id: "kernel.watchdog_cpus",
        name: "CPUs of the watchdogs",
        finding: Some("kernel.watchdog"),
        values: "away (default): all but the CPUs for real-time work",
        effect: "watchdogs use other CPUs",
        effect_of: EffectOf::AllValues,
        risk: "a CPU for real-time work that hangs is not reported",
        source: SYSCTL_KERNEL,
        is_on_request: false,
        files: &[cpus::WATCHDOGS],
        expects: OldValue::Cpus,
        find: watchdog_cpus,
    },
    Definition {
        id: "kernel.timer_migration",
        name: "timers that move to other CPUs",
        finding: Some("kernel.timer_migration"),
        values: "off (default), on",
        effect: "timers stay on their own CPU",
        effect_of: EffectOf::Values(&["off"]),
        risk: "idle CPUs wake more often",
        source: SYSCTL_KERNEL,
        is_on_request: false,
        files: &["proc/sys/kernel/timer_migration"],
        expects: SWITCH,
        find: |context, value| {
            match cpus::tickless(context.root) {
                Ok(cpus) if !context.is_named && cpus.is_empty() => {
                    return Err(WhyNot::NoEffect("no CPU runs without a tick, so timers stay on their CPU".to_owned()));
                }
                Err(why) if !context.is_named => {
                    return Err(WhyNot::Here(format!("/{}: {why}", cpus::TICKLESS)));
                }
                _ => {}
            }
            sysctl_switch(context, value, "proc/sys/kernel/timer_migration")
        },
    },
    Definition {
        id: "memory.thp",
        name: "transparent huge pages",
        finding: Some("memory.thp"),
        values: "madvise (default), never, always",
        effect: "no waits for joined pages",
        effect_of: EffectOf::Values(&["madvise", "never"]),
        risk: "programs with much memory run slower",
        source: "Linux, Documentation/admin-guide/mm/transhuge.rst",
        is_on_request: false,
        files: &[THP, "sys/kernel/mm/transparent_hugepage/hugepages-#kB/enabled"],
        expects: OldValue::Bracketed,
        find: thp,
    },
    Definition {
        id: "memory.ksm",
        name: "merging of equal pages (KSM)",
        finding: Some("memory.ksm"),
        values: "off (default; also separates merged pages), stop, on",
        effect: "no ksmd, no copies on writes",
        effect_of: EffectOf::Values(&["off"]),
        risk: "virtual machines take more memory",
        source: "Linux, Documentation/admin-guide/mm/ksm.rst",
        is_on_request: false,
        files: &["sys/kernel/mm/ksm/run"],
        expects: OldValue::Number(0, 2),
        find: |context, value| {
            let wanted = match word(value, "off", &["off", "stop", "on"])?.as_str() {
                "off" => match too_much_merged(context.root) {
                    Some((needed, available)) if context.root.read("sys/kernel/mm/ksm/run").as_deref() == Some("1") => {
                        let [needed, available] = [needed, available].map(in_mib);
                        let reason = format!(
                            "to separate the merged pages takes {needed}, and {available} are available: stop them only \
                             (memory.ksm=stop)"
                        );
                        return Err(WhyNot::Here(reason));
                    }
                    _ => "2",
                },
                "stop" => "0",
                _ => "1",
            };
            each_unless(context, vec!["sys/kernel/mm/ksm/run".to_owned()], wanted, |now| value.is_none() && now == "0")
        },
    },
    Definition {
        id: "memory.numa_balancing",
        name: "pages that move between memory nodes",
        finding: Some("memory.numa_balancing"),
        values: "off (default), on",
        effect: "no faults in locked memory",
        effect_of: EffectOf::Values(&["off"]),
        risk: "memory may stay on a distant node",
        source: SYSCTL_KERNEL,
        is_on_request: false,
        files: &["proc/sys/kernel/numa_balancing"],
        expects: OldValue::Number(0, 3),
        find: |context, value| {
            let is_on = switch(value, false)?;
            // A mode that the user chose stays: 2 moves pages between tiers of memory, 3 does both.
            let is_good = |now: &str| is_on && now != "0";
            each_unless(
                context,
                vec!["proc/sys/kernel/numa_balancing".to_owned()],
                if is_on { "1" } else { "0" },
                is_good,
            )
        },
    },
    Definition {
        id: "memory.swappiness",
        name: "preference for swapping (vm.swappiness)",
        finding: Some("memory.swap"),
        values: "0 to 200; default 1",
        effect: "programs are swapped out last",
        effect_of: EffectOf::Values(&["0", "1"]),
        risk: "less memory for cached files",
        source: SYSCTL_VM,
        is_on_request: false,
        files: &["proc/sys/vm/swappiness"],
        expects: OldValue::Number(0, 200),
        find: |context, value| {
            let wanted = number(value, 1, 0..=200)?;
            let swaps = context.root.read("proc/swaps").unwrap_or_default();
            if !context.is_named && swaps.lines().count() < 2 {
                return Err(WhyNot::NoEffect("no swap is in use".to_owned()));
            }
            each_unless(context, vec!["proc/sys/vm/swappiness".to_owned()], &wanted, |now| {
                value.is_none() && now == "0"
            })
        },
    },
    Definition {
        id: "memory.writeback",
        name: "interval of writing files back (vm.dirty_writeback_centisecs)",
        finding: None,
        values: "hundredths of a second, 100 to 60000; default 1500",
        effect: "kernel writers wake less",
        effect_of: EffectOf::HigherValues,
        risk: "a power cut loses more of the newest data",
        source: SYSCTL_VM,
        is_on_request: true,
        files: &["proc/sys/vm/dirty_writeback_centisecs"],
        expects: OldValue::Number(0, i64::MAX),
        find: |context, value| {
            let wanted = number(value, 1500, 100..=60_000)?;
            each(context, vec!["proc/sys/vm/dirty_writeback_centisecs".to_owned()], &wanted)
        },
    },
    Definition {
        id: "power.platform_profile",
        name: "profile of the firmware (platform_profile)",
        finding: Some("power.platform_profile"),
        values: "the fastest up to performance (default), or another profile",
        effect: "no saving by the firmware",
        effect_of: EffectOf::Values(&["performance", "max-power"]),
        risk: "more power, heat and noise; a power daemon can set it back",
        source: "Linux, Documentation/ABI/testing/sysfs-platform_profile",
        is_on_request: false,
        files: &[PLATFORM_PROFILE],
        expects: OldValue::Offered("platform_profile_choices"),
        find: platform_profile,
    },
    Definition {
        id: "power.pci",
        name: "idle graphics, sound, network and USB controllers",
        finding: Some("power.pci"),
        values: "on (default: never suspended), auto",
        effect: "no wait for resuming devices",
        effect_of: EffectOf::Values(&["on"]),
        risk: "more power",
        source: "Linux, Documentation/power/pci.rst",
        is_on_request: false,
        files: &["sys/bus/pci/devices/*/power/control"],
        expects: OldValue::Word(&["on", "auto"]),
        find: |context, value| {
            let wanted = word(value, "on", &["on", "auto"])?;
            each(context, pci_devices(context.root), &wanted)
        },
    },
    Definition {
        id: "power.usb",
        name: "idle USB devices",
        finding: Some("power.usb"),
        values: "on (default: never suspended), auto",
        effect: "no wait for resuming devices",
        effect_of: EffectOf::Values(&["on"]),
        risk: "more power",
        source: "Linux, Documentation/driver-api/usb/power-management.rst",
        is_on_request: false,
        files: &["sys/bus/usb/devices/*/power/control"],
        expects: OldValue::Word(&["on", "auto"]),
        find: |context, value| {
            let wanted = word(value, "on", &["on", "auto"])?;
            each(context, usb_devices(context.root), &wanted)
        },
    },
    Definition {
        id: "power.aspm",
        name: "power saving of PCI Express links",
        finding: Some("power.aspm"),
        values: "performance (default), default, powersave, powersupersave",
        effect: "no wait for waking links",
        effect_of: EffectOf::Values(&["performance"]),
        risk: "more power",
        source: "Linux, Documentation/admin-guide/kernel-parameters.txt, pcie_aspm.policy",
        is_on_request: false,
        files: &[ASPM_POLICY],
        expects: OldValue::Bracketed,
        find: |context, value| {
            let wanted = word(value, "performance", &["performance", "default", "powersave", "powersupersave"])?;
            if !context.is_named && aspm_is_unused(context.root) {
                return Err(WhyNot::NoEffect("no PCI Express link sleeps, as the firmware chose".to_owned()));
            }
            let writes = each(context, vec![ASPM_POLICY.to_owned()], &wanted)?;
            match aspm_is_off(context.root) {
                Some(why) if writes.iter().any(|write| write.from != write.to) => Err(WhyNot::Here(why.to_owned())),
                _ => Ok(writes),
            }
        },
    },
    Definition {
        id: "nic.settings",
        name: "settings of a network card",
        finding: None,
        values: "INTERFACE:SETTINGS as for --nic: eth0:coalesce=0,eee=off",
        effect: AS_ASKED,
        effect_of: EffectOf::AllValues,
        risk: "more interrupts; some drivers reset the link",
        source: "ethtool(8)",
        is_on_request: true,
        files: &[],
        expects: OldValue::NoFile,
        find: nic,
    },
];

/// The switch of each CPU if only some of them change or have another value than the rest, else that of all CPUs.
fn turbo(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    let is_on = switch(value, false)?;
    if cpus::turbo(context.root) == Ok(Turbo::Lacking) {
        return Err(WhyNot::Here("the CPU has no turbo frequencies".to_owned()));
    }
    let to = |is_set: bool| if is_set { "1" } else { "0" };
    if context.root.exists(cpus::NO_TURBO) {
        return each(context, vec![cpus::NO_TURBO.to_owned()], to(!is_on));
    }
    let own = policy_files(context, "boost");
    let is_own = |path: &String| context.root.exists(path);
    let has_own = !own.is_empty() && own.iter().all(is_own) && context.root.read(cpus::BOOST).as_deref() == Some("1");
    let is_off = |path: &String| context.root.read(path).as_deref() != Some("1");
    // Restoring the switch of all CPUs would turn those on that were off.
    let own_only = has_own && (context.cpus != context.online || own.iter().any(is_off));
    each(context, if own_only { own } else { vec![cpus::BOOST.to_owned()] }, to(is_on))
}

/// The fastest profile of this firmware, unless the present one is as fast.
fn platform_profile(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    let paths = vec![PLATFORM_PROFILE.to_owned()];
    let Some(wanted) = value else {
        let fastest = fastest_profile(context.root).unwrap_or("performance");
        return each_unless(context, paths, fastest, |now| profile_rank(now) >= profile_rank(fastest));
    };
    let offered = context.root.read(PLATFORM_PROFILES).unwrap_or_default();
    if !offered.is_empty() && !offered.split_whitespace().any(|word| word == wanted) {
        return Err(WhyNot::Value(format!("the firmware does not offer `{wanted}`: it offers {offered}")));
    }
    each(context, paths, wanted)
}

/// A limit at the nominal frequency keeps a CPU off turbo, and is only lifted on request.
fn highest_frequency(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    let writes = frequencies(context, value.unwrap_or("max"), &["scaling_max_freq"])?;
    if context.is_named {
        return Ok(writes);
    }
    let nominal: Vec<String> = context
        .cpus
        .iter()
        .filter(|&cpu| cpus::is_nominal_limit(context.root, cpu) == Ok(true))
        .map(|cpu| Target::File(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq")).to_string())
        .collect();
    let is_nominal = |write: &Write| nominal.contains(&write.target.to_string());
    let has_others = writes.iter().any(|write| write.from != write.to && !is_nominal(write));
    if writes.iter().any(is_nominal) && !has_others {
        return Err(WhyNot::NoEffect(
            "the limit is the nominal frequency: without turbo, there is no higher one".to_owned(),
        ));
    }
    Ok(writes.into_iter().filter(|write| !is_nominal(write)).collect())
}

/// The mode of all sizes, and those of the sizes that do not inherit it and have huge pages for more programs.
fn thp(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    let wanted = word(value, "madvise", &["madvise", "never", "always"])?;
    let mut writes = each_unless(context, vec![THP.to_owned()], &wanted, |now| value.is_none() && now == "never")?;
    let is_good = |now: &str| match &*wanted {
        "never" => matches!(now, "never" | "inherit"),
        _ => now != "always" || wanted == "always",
    };
    let sizes = thp_sizes(context.root);
    if !sizes.is_empty() {
        writes.extend(each_unless(context, sizes, &wanted, is_good)?);
    }
    Ok(writes)
}

fn rt_throttling(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    let release = context.root.read("proc/sys/kernel/osrelease").unwrap_or_default();
    if has_fair_server(&release) {
        // Only a kernel with control groups for real-time threads has the limit as well.
        let config = Config::read(context.root, Some(&release));
        let has_limit = config.map(|config| config.has("RT_GROUP_SCHED"));
        if has_limit == Some(false) || has_limit.is_none() && value.is_none() {
            return Err(WhyNot::Here("this kernel has a fair server instead: see rt.fair_server".to_owned()));
        }
    }
    let period_us = context.root.number(RT_PERIOD).unwrap_or(1_000_000);
    let wanted = if value == Some("off") { "-1".to_owned() } else { number(value, -1, -1..=period_us)? };
    if wanted == "0" {
        return Err(WhyNot::Value(format!(
            "0 keeps a CPU stopped that is throttled now: use off, or a time of 1 to {period_us} us"
        )));
    }
    each(context, vec![RT_RUNTIME.to_owned()], &wanted)
}

fn nic(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    const VALUES: &str = "INTERFACE:SETTINGS as for --nic: eth0:coalesce=0,eee=off";
    let Some(value) = value else { return Err(needs_a_value(VALUES)) };
    let Some((interface, settings)) = value.split_once(':') else {
        return Err(WhyNot::Value(format!("`{value}` names no interface: use {VALUES}")));
    };
    let settings: NicSettings = settings.parse().map_err(WhyNot::Value)?;
    let write = |&(parameter, to)| {
        let from = context.ops.nic_parameter(interface, parameter).map_err(|error| match error.kind() {
            std::io::ErrorKind::Unsupported if error.get_ref().is_none() => {
                WhyNot::Here(format!("the driver of {interface} cannot change {}", parameter.name()))
            }
            _ => WhyNot::Here(format!("cannot read {} of {interface}: {error}", parameter.name())),
        })?;
        let target = Target::Nic { interface: interface.to_owned(), parameter, from, to };
        Ok(Write { target, from: from.to_string(), to: to.to_string(), refusal: Refusal::Failure })
    };
    settings.iter().map(write).collect()
}
