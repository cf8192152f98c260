//! Every setting, defined once. To add one, add its line to [`DEFINITIONS`] with the files that it writes.

use record::Lasts;

use super::{
    Context, OnRequest, Setting, Target, WhyNot, Write, cache,
    frequency::{in_mhz, parse_khz},
    old_value::OldValue,
    programs,
};
use crate::{
    CpuList, Unreadable,
    cpus::{self, Turbo},
    facts::{idle_states_of, latency_limit, usable_idle_states},
    findings::{ASPM_POLICY, IDLE_EXIT_LIMIT_NS, aspm_is_off, pci_devices, usb_devices},
    has_fair_server,
    kernel::{Config, DEBUGFS, MOUNT_DEBUGFS, lacks_debugfs},
    nic::{NicSettings, Thread},
    shield, tasks,
};

const CPUFREQ: &str = "Linux, Documentation/admin-guide/pm/cpufreq.rst";
const SYSCTL_KERNEL: &str = "Linux, Documentation/admin-guide/sysctl/kernel.rst";
const SYSCTL_VM: &str = "Linux, Documentation/admin-guide/sysctl/vm.rst";

const WORKQUEUES: &str = "sys/devices/virtual/workqueue/cpumask";
const DEFAULT_AFFINITY: &str = "proc/irq/default_smp_affinity";
const RT_RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
const RT_PERIOD: &str = "proc/sys/kernel/sched_rt_period_us";
const NO_TURBO: &str = "sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "sys/devices/system/cpu/cpufreq/boost";
const WATCHDOGS: [&str; 2] = ["proc/sys/kernel/nmi_watchdog", "proc/sys/kernel/soft_watchdog"];
const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";

/// Old values of frequencies, kHz: up to 100 GHz.
const KHZ: OldValue = OldValue::Number(1, 100_000_000);
const SWITCH: OldValue = OldValue::Number(0, 1);

/// The effect of a value of the user that is not known to have the effect of the setting.
const AS_ASKED: &str = "as you asked";
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
        let (effect, risk) = match self.effect_of.includes(value, &writes) {
            true => (self.effect, self.risk),
            false => (AS_ASKED, UNKNOWN_RISK),
        };
        let Self { id, name, source, .. } = *self;
        Ok(Setting { id, name, writes, effect, risk, lasts: Lasts::UntilBoot, source })
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
        find: |context, value| {
            let leads = policies(context);
            // A limit below the highest frequency of the CPU is lifted by cpu.max_freq, so the frequency is not fixed any more.
            // Another governor replaces one that keeps a low frequency.
            let khz = |lead: u32, name: &str| context.root.number::<u64>(&cpufreq(lead, name));
            let is_limited = |lead: u32| {
                let highest = khz(lead, "cpuinfo_max_freq");
                let own = cpus::constant_khz(context.root, lead);
                khz(lead, "scaling_max_freq") < highest || own.is_some() && own < highest
            };
            let has_fixed =
                |lead: &u32| cpus::has_fixed_frequency(context.root, *lead) != Some(false) && !is_limited(*lead);
            if !context.is_named && !leads.is_empty() && leads.iter().all(has_fixed) {
                return Err(WhyNot::Here("the lowest and the highest frequency are equal, so it is fixed".to_owned()));
            }
            let wanted = offered(context, value, "performance", "scaling_available_governors")?;
            let scaled = leads.into_iter().filter(|lead| context.is_named || !has_fixed(lead));
            each(context, scaled.map(|lead| cpufreq(lead, "scaling_governor")).collect(), &wanted)
        },
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
        find: |context, value| frequencies(context, value.unwrap_or("max"), &["scaling_max_freq"]),
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
        files: &[NO_TURBO, BOOST],
        expects: SWITCH,
        find: |context, value| {
            let is_on = switch(value, false)?;
            if cpus::turbo(context.root) == Ok(Turbo::Lacking) {
                return Err(WhyNot::Here("the CPU has no turbo frequencies".to_owned()));
            }
            let (path, to) = match context.root.exists(NO_TURBO) {
                true => (NO_TURBO, !is_on),
                false => (BOOST, is_on),
            };
            each(context, vec![path.to_owned()], if to { "1" } else { "0" })
        },
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
        find: |context, value| {
            only_word(value, "away")?;
            let others = others(context)?;
            // One that cannot be understood would seem to be away.
            for path in shield::affinity_files(context.root) {
                OldValue::Cpus.read(context, &path)?;
            }
            let write = |(path, from, to)| Write { may_be_refused: true, ..file(path, from, to) };
            let mut files = shield::interrupt_files(context.root, &context.freed, &others);
            // Since Linux 6.13, the file of an interrupt that its driver manages cannot be written.
            files.retain(|(path, ..)| !context.root.is_fixed(path));
            Ok(files.into_iter().map(write).collect())
        },
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
            Ok(vec![Write { target, from, to: programs::NONE.to_owned(), may_be_refused: false }])
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
            // Only a CPU that is otherwise quiet gains from it.
            if !context.is_named {
                others(context)?;
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
        files: &["sys/kernel/debug/sched/fair_server/cpu#/runtime"],
        expects: OldValue::Number(0, i64::MAX),
        find: |context, value| {
            let wanted = if value == Some("off") { "0".to_owned() } else { number(value, 0, 0..=1_000_000_000)? };
            each(context, cpu_files(context, "sys/kernel/debug/sched/fair_server/cpu#/runtime"), &wanted)
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
        find: |context, value| {
            if !context.is_named
                && let Ok(watched) = cpus::read_list(context.root, cpus::WATCHDOGS)
            {
                let left = context.online.difference(&watched);
                if !context.freed.is_empty() {
                    let text = "the watchdogs leave the CPUs for real-time work instead: see kernel.watchdog_cpus";
                    return Err(WhyNot::Here(text.to_owned()));
                }
                if !left.is_empty() && !context.is_all_named {
                    return Err(WhyNot::Here(format!("the watchdogs leave {} already", left.in_words())));
                }
            }
            let wanted = if switch(value, false)? { "1" } else { "0" };
            let mut paths = WATCHDOGS.map(str::to_owned).to_vec();
            // The file of a kernel without a detector of that kind takes no value.
            paths.retain(|path| !context.root.is_fixed(path));
            each(context, if paths.is_empty() { WATCHDOGS.map(str::to_owned).to_vec() } else { paths }, wanted)
        },
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
                    return Err(WhyNot::Here("no CPU runs without a tick, so timers stay on their CPU".to_owned()));
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
        files: &[THP],
        expects: OldValue::Bracketed,
        find: |context, value| {
            let wanted = word(value, "madvise", &["madvise", "never", "always"])?;
            each_unless(context, vec![THP.to_owned()], &wanted, |now| value.is_none() && now == "never")
        },
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
                "off" => "2",
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
            if value.is_none() && swaps.lines().count() < 2 {
                return Err(WhyNot::Here("no swap is in use".to_owned()));
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

/// A write to a file.
fn file(path: String, from: String, to: String) -> Write {
    Write { target: Target::File(path), from, to, may_be_refused: false }
}

/// The same value for each file.
fn each(context: &Context<'_>, paths: Vec<String>, to: &str) -> Result<Vec<Write>, WhyNot> {
    each_unless(context, paths, to, |_| false)
}

/// The same value for each file, except for those whose value is good enough. Files that do not exist are left out.
fn each_unless(
    context: &Context<'_>,
    paths: Vec<String>,
    to: &str,
    is_good: impl Fn(&str) -> bool,
) -> Result<Vec<Write>, WhyNot> {
    let mut writes = Vec::new();
    let mut absent = None;
    for path in paths {
        match context.root.try_read(&path) {
            Ok(text) => {
                let from = crate::journal::present(&text).to_owned();
                let to = if is_good(&from) { from.clone() } else { to.to_owned() };
                writes.push(file(path, from, to));
            }
            Err(Unreadable::Absent) => absent = absent.or(Some(path)),
            Err(why) => return Err(WhyNot::Here(format!("/{path}: {why}"))),
        }
    }
    match absent {
        _ if !writes.is_empty() => Ok(writes),
        Some(path) => Err(absent_file(context, &path)),
        None => Err(no_device(context)),
    }
}

/// The reason if a file does not exist.
pub(super) fn absent_file(context: &Context<'_>, path: &str) -> WhyNot {
    WhyNot::Here(match path.starts_with(DEBUGFS) && lacks_debugfs(context.root) {
        true => format!("debugfs is not mounted: `{MOUNT_DEBUGFS}`"),
        false => format!("this machine has no /{path}"),
    })
}

/// The reason if there is nothing to change: it cannot be read, or the machine does not have it.
fn no_device(context: &Context<'_>) -> WhyNot {
    WhyNot::Here(match context.root.take_unread().first() {
        _ if context.online.is_empty() => UNREAD_CPUS.to_owned(),
        Some(unread) => format!("/{}: {}", unread.path, unread.why),
        None => "this machine has no such device".to_owned(),
    })
}

const UNREAD_CPUS: &str = "/sys/devices/system/cpu/online cannot be read, so the CPUs are not known";

/// A file of each CPU whose settings change.
fn cpu_files(context: &Context<'_>, pattern: &str) -> Vec<String> {
    context.cpus.iter().map(|cpu| pattern.replace('#', &cpu.to_string())).collect()
}

fn cpufreq(cpu: u32, name: &str) -> String {
    format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}")
}

/// The first CPU of each group of CPUs that share a frequency.
fn policies(context: &Context<'_>) -> Vec<u32> {
    let mut leads: Vec<u32> = Vec::new();
    let mut known: Vec<u32> = Vec::new();
    for cpu in &context.cpus {
        if !known.contains(&cpu) {
            leads.push(cpu);
            let related = context.root.read(&cpufreq(cpu, "related_cpus")).unwrap_or_default();
            known.extend(related.split_whitespace().filter_map(|cpu| cpu.parse::<u32>().ok()));
        }
    }
    leads
}

fn policy_files(context: &Context<'_>, name: &str) -> Vec<String> {
    policies(context).into_iter().map(|lead| cpufreq(lead, name)).collect()
}

/// The value, or else the default, if each group of CPUs offers this word in its file of that name, or has no such file.
fn offered(context: &Context<'_>, value: Option<&str>, default: &str, words: &str) -> Result<String, WhyNot> {
    let wanted = value.unwrap_or(default);
    for lead in policies(context) {
        if let Some(words) = context.root.read(&cpufreq(lead, words))
            && !words.split_whitespace().any(|word| word == wanted)
        {
            let reason = format!("CPU {lead} does not offer `{wanted}`: it offers {words}");
            // The machine lacks the default; the user did not ask for it.
            return Err(if value.is_some() { WhyNot::Value(reason) } else { WhyNot::Here(reason) });
        }
    }
    Ok(wanted.to_owned())
}

/// These files of each group of CPUs, set to one frequency. To raise it, the highest frequency is set before the lowest
/// one, because the lowest may not be above the highest.
fn frequencies(context: &Context<'_>, value: &str, names: &[&str]) -> Result<Vec<Write>, WhyNot> {
    let mut writes = Vec::new();
    let leads = policies(context);
    for &lead in &leads {
        let khz = |name: &str| context.root.number::<u64>(&cpufreq(lead, name));
        let limits = ["cpuinfo_min_freq", "cpuinfo_max_freq"].map(|name| cpufreq(lead, name));
        if !limits.iter().any(|path| context.root.exists(path)) {
            continue;
        }
        for path in &limits {
            KHZ.read(context, path)?;
        }
        let (Some(lowest), Some(highest)) = (khz("cpuinfo_min_freq"), khz("cpuinfo_max_freq")) else { continue };
        let to = match value {
            "max" => highest,
            "min" => lowest,
            text => parse_khz(text).map_err(WhyNot::Value)?,
        };
        if !(lowest..=highest).contains(&to) {
            let range = format!("{} to {}", in_mhz(lowest), in_mhz(highest));
            return Err(WhyNot::Value(format!("CPU {lead} has no frequency of {}: use {range}", in_mhz(to))));
        }
        let steps = context.root.read(&cpufreq(lead, "scaling_available_frequencies")).unwrap_or_default();
        let steps: Vec<u64> = steps.split_whitespace().filter_map(|khz| khz.parse().ok()).collect();
        if !steps.is_empty() && !steps.contains(&to) && to != highest {
            let steps = steps.iter().map(|&khz| in_mhz(khz)).collect::<Vec<_>>().join(", ");
            return Err(WhyNot::Value(format!("CPU {lead} has no frequency of {}: it has {steps}", in_mhz(to))));
        }
        let mut own = each(context, names.iter().map(|name| cpufreq(lead, name)).collect(), &to.to_string())?;
        if khz("scaling_max_freq").is_some_and(|now| to > now) {
            own.reverse();
        }
        writes.extend(own);
    }
    match leads.first() {
        Some(&lead) if writes.is_empty() => {
            Err(WhyNot::Here(format!("this machine has no /{}", cpufreq(lead, "cpuinfo_max_freq"))))
        }
        None => Err(no_device(context)),
        _ => Ok(writes),
    }
}

/// The longest time to leave an idle state that can be set, us.
const IDLE_LIMIT_MAX_US: u64 = 1_000_000;

fn idle_states(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    let default = || match context.limit_ns {
        // The file takes whole microseconds.
        Some(limit_ns) => (limit_ns / 10_000).min(IDLE_LIMIT_MAX_US).to_string() + "us",
        None => format!("{}us", IDLE_EXIT_LIMIT_NS / 1000),
    };
    let text = value.map_or_else(default, str::to_owned);
    let to = match text.as_str() {
        // The kernel takes 0 for no limit, and `n/a` for no idle state at all.
        "any" => "0".to_owned(),
        "0us" => "n/a".to_owned(),
        text => match text
            .strip_suffix("us")
            .and_then(|us| us.parse::<u32>().ok())
            .filter(|us| u64::from(*us) <= IDLE_LIMIT_MAX_US)
        {
            Some(us) => us.to_string(),
            None => {
                return Err(WhyNot::Value(format!(
                    "`{text}` is not a time: use e.g. 10us, 0us (no idle state), or any"
                )));
            }
        },
    };
    let has_states = context.root.exists("sys/devices/system/cpu/cpu0/cpuidle/state0");
    if value.is_none() && !has_states {
        return Err(WhyNot::Here("the kernel has no idle states for this CPU".to_owned()));
    }
    let limit_us = if to == "n/a" { Some(0) } else { to.parse::<u64>().ok() };
    let has_known = context.cpus.iter().any(|cpu| !idle_states_of(context.root, cpu).is_empty());
    let mut usable = context.cpus.iter().flat_map(|cpu| usable_idle_states(context.root, cpu));
    let is_quick = usable.all(|(_, state)| Some(state.exit_us) <= limit_us);
    let is_met = value.is_none() && has_known && is_quick && context.root.take_unread().is_empty();
    let is_limited = |cpu: u32| context.root.read(&latency_limit(cpu)).is_some_and(|limit| limit != "0");
    if is_met && !context.cpus.iter().any(is_limited) {
        return Err(WhyNot::Here(format!("every enabled idle state can be left in {text}")));
    }
    // `n/a` and lower limits are stricter.
    let is_stricter = |now: &str| {
        let limit = |text: &str| text.parse::<u32>().ok();
        value.is_none() && (now == "n/a" || limit(now).is_some_and(|now| now > 0 && Some(now) <= limit(&to)))
    };
    each_unless(context, context.cpus.iter().map(latency_limit).collect(), &to, |now| is_met || is_stricter(now))
}

/// The CPUs for other work.
fn others(context: &Context<'_>) -> Result<CpuList, WhyNot> {
    match context.freed.is_empty() {
        true if context.online.is_empty() => Err(WhyNot::Here(UNREAD_CPUS.to_owned())),
        true if context.online.len() < 2 => Err(WhyNot::Here("there is no other CPU".to_owned())),
        true if context.is_all_named => {
            Err(WhyNot::Here("no CPU would remain for other work: name fewer with --cpus".to_owned()))
        }
        true => Err(WhyNot::Here("no CPU is set apart for real-time work: name some with --cpus".to_owned())),
        false => Ok(context.online.difference(&context.freed)),
    }
}

/// A mask without the CPUs for real-time work.
fn away(context: &Context<'_>, value: Option<&str>, path: &str) -> Result<Vec<Write>, WhyNot> {
    only_word(value, "away")?;
    let others = others(context)?;
    let from = match context.root.try_read(path) {
        Ok(from) => from,
        Err(Unreadable::Absent) => return Err(WhyNot::Here(format!("this machine has no /{path}"))),
        Err(why) => return Err(WhyNot::Here(format!("/{path}: {why}"))),
    };
    match shield::mask_without(&from, &context.freed, &others) {
        Some(to) => Ok(vec![file(path.to_owned(), from, to)]),
        None => Err(WhyNot::Here(format!("/{path} is not a mask of CPUs"))),
    }
}

fn watchdog_cpus(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    const PATH: &str = cpus::WATCHDOGS;
    only_word(value, "away")?;
    let others = others(context)?;
    if !context.is_named && WATCHDOGS.iter().all(|path| context.root.number::<u32>(path).is_none_or(|on| on == 0)) {
        return Err(WhyNot::Here("no watchdog is on".to_owned()));
    }
    let from = OldValue::Cpus.read(context, PATH)?;
    let now: CpuList = from.parse().unwrap_or_default();
    let left = now.difference(&context.freed);
    let to = match (left == now, left.is_empty()) {
        (true, _) => from.clone(),
        (false, true) => others.to_string(),
        (false, false) => left.to_string(),
    };
    Ok(vec![file(PATH.to_owned(), from, to)])
}

/// Length to which kernels before 5.17 cut the names of their threads, bytes (`TASK_COMM_LEN` without the zero byte).
const KEPT_OF_NAME: usize = 15;

fn irq_priority(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    const VALUES: &str = "NAME:PRIORITY for the threads irq/N-NAME..., or a priority for all: eth0:90, 50";
    let Some(value) = value else { return Err(needs_a_value(VALUES)) };
    let (name, priority) = value.rsplit_once(':').unwrap_or(("", value));
    let priority = priority.parse::<u8>().ok().filter(|priority| (1..=99).contains(priority));
    let Some(priority) = priority else {
        return Err(WhyNot::Value(format!("the priority of `{value}` must be 1 to 99: use {VALUES}")));
    };
    if context.root.read("proc/2/comm").as_deref() != Some("kthreadd") {
        let remedy = match context.root.is_system() {
            true => "run on the host",
            false => "they are not in this copy of a machine (--root)",
        };
        return Err(WhyNot::Here(format!("the kernel's threads are not visible: {remedy}")));
    }
    let threads = tasks::scheduled(context.root);
    let handlers: Vec<_> =
        threads.iter().filter(|thread| thread.is_kernels && thread.name.starts_with("irq/")).collect();
    if handlers.is_empty() {
        let remedy = "boot with `threadirqs`, or use a PREEMPT_RT kernel";
        return Err(WhyNot::Here(format!("this kernel handles interrupts without threads: {remedy}")));
    }
    let is_meant = |thread: &str| {
        let is_cut = thread.len() >= KEPT_OF_NAME;
        let is = |own: &str| own.starts_with(name) || is_cut && name.starts_with(own);
        name.is_empty() || thread.split_once('-').is_some_and(|(_, own)| is(own))
    };
    let mut writes = Vec::new();
    for thread in handlers.iter().filter(|thread| is_meant(&thread.name)) {
        let (Some(now), Some(start_ticks)) =
            (Thread::of(context.root, thread.id), tasks::start_ticks(context.root, &thread.id.to_string()))
        else {
            continue;
        };
        let from = now.scheduled();
        if from.parse::<sys::sched::Policy>().is_err() {
            return Err(WhyNot::Here(format!("{} is scheduled as `{from}`, which could not be restored", now.name)));
        }
        let target = Target::Thread { id: now.id, start_ticks, name: now.name };
        writes.push(Write { target, from, to: format!("fifo:{priority}"), may_be_refused: false });
    }
    if writes.is_empty() {
        let mut names: Vec<&str> = handlers.iter().filter_map(|thread| Some(thread.name.split_once('-')?.1)).collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(12);
        return Err(WhyNot::Value(format!("no interrupt thread is called `{name}`: there are {}", names.join(", "))));
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
        Ok(Write { target, from: from.to_string(), to: to.to_string(), may_be_refused: false })
    };
    settings.iter().map(write).collect()
}

fn needs_a_value(values: &str) -> WhyNot {
    WhyNot::Value(format!("it needs a value: {values}"))
}

fn sysctl_switch(context: &Context<'_>, value: Option<&str>, path: &str) -> Result<Vec<Write>, WhyNot> {
    each(context, vec![path.to_owned()], if switch(value, false)? { "1" } else { "0" })
}

fn switch(value: Option<&str>, default: bool) -> Result<bool, WhyNot> {
    match value {
        None => Ok(default),
        Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(WhyNot::Value(format!("`{other}` is not on or off"))),
    }
}

fn word(value: Option<&str>, default: &str, words: &[&str]) -> Result<String, WhyNot> {
    let value = value.unwrap_or(default);
    match words.contains(&value) {
        true => Ok(value.to_owned()),
        false => Err(WhyNot::Value(format!("`{value}` is not one of {}", words.join(", ")))),
    }
}

fn only_word(value: Option<&str>, word: &str) -> Result<(), WhyNot> {
    self::word(value, word, &[word]).map(|_| ())
}

fn number(value: Option<&str>, default: i64, range: std::ops::RangeInclusive<i64>) -> Result<String, WhyNot> {
    let Some(text) = value else { return Ok(default.to_string()) };
    match text.parse::<i64>() {
        Ok(number) if range.contains(&number) => Ok(number.to_string()),
        _ => Err(WhyNot::Value(format!("must be {} to {} (got {text})", range.start(), range.end()))),
    }
}
