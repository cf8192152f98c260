//! Isolated CPUs, and the kernel's work that they should not have.

use std::collections::BTreeSet;

use record::Finding;

use super::{
    Check, CheckContext, Explain, evidence, kernel::is_switched_off, not_applicable, ok, unknown, warn, without,
};
use crate::{
    CpuList, Unreadable, boot_arguments, cgroup,
    cpus::{self, read_list},
    facts::{self, ISOLATED_BY_PARTITION},
    kernel::{has_rcu_nocbs, shows_options, version},
};

const CPU: &str = "sys/devices/system/cpu";
const CMDLINE: &str = "proc/cmdline";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "cpu.isolated",
        subject: "isolated CPUs",
        source: "Linux, Documentation/admin-guide/kernel-parameters.txt, isolcpus",
        run: isolated,
    },
    Check {
        id: "cpu.isolation_effect",
        subject: "isolation that was requested at boot, or partitions of control groups, that are not in effect",
        source: "Linux, Documentation/admin-guide/kernel-parameters.txt, isolcpus, nohz_full",
        run: isolation_effect,
    },
    Check {
        id: "cpu.tick",
        subject: "isolated CPUs with a tick (`nohz_full`)",
        source: "Linux, Documentation/timers/no_hz.rst",
        run: tick,
    },
    Check {
        id: "cpu.rcu_callbacks",
        subject: "isolated CPUs that run callbacks of RCU (`rcu_nocbs`)",
        source: "Linux, Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
        run: rcu_callbacks,
    },
    Check {
        id: "cpu.workqueues",
        subject: "isolated CPUs that run unbound work of the kernel",
        source: "Linux, Documentation/core-api/workqueue.rst",
        run: workqueues,
    },
    Check {
        id: "cpu.statistics",
        subject: "isolated CPUs that update memory statistics each second (before Linux 6.5)",
        source: "Linux, Documentation/admin-guide/sysctl/vm.rst, stat_interval; mm/vmstat.c",
        run: statistics,
    },
];

fn isolated(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.isolated";
    let path = format!("{CPU}/isolated");
    match context.machine.cpus_isolated.as_deref() {
        None => {
            let is_of_partitions = facts::by_partition(context.root).is_err();
            let unread = if is_of_partitions { ISOLATED_BY_PARTITION } else { &path };
            unknown(ID, "isolated CPUs not readable", context.evidence(unread))
        }
        Some("") if context.online().is_empty() => {
            unknown(ID, "CPUs not readable", context.evidence(&format!("{CPU}/online")))
        }
        Some("") if context.online().len() == 1 => {
            not_applicable(ID, "one CPU alone cannot be isolated", context.evidence(&path))
        }
        Some("") => {
            // CPUs without a tick should be isolated as a whole: before 5.18, the kernel accepts only equal lists.
            let tickless = read_list(context.root, &format!("{CPU}/nohz_full")).unwrap_or_default();
            // A list of all CPUs, such as `nohz_full=all`, does not choose CPUs for real-time work. The kernel leaves out the CPU
            // of the boot then, so that the file has the same content as for a list of all others.
            let without_first = || tickless.union(&CpuList::from_iter([0]));
            let of_line =
                context.boot_argument("nohz_full").and_then(|value| boot_arguments::cpus_of(context.root, value));
            let asked = of_line.unwrap_or_else(without_first);
            let leaves_some = context.online().len() <= 2 || !context.online().difference(&asked).is_empty();
            let cpus = match !tickless.is_empty() && leaves_some {
                true => tickless,
                false => CpuList::from_iter([context.last_cpu()]),
            };
            warn(ID, "no CPU is isolated", context.evidence(&path)).because(
                "The scheduler may run any other thread on the CPU of a real-time thread, which adds kernel work and cold caches.",
                context.isolation_remedy(&cpus, "isolcpus"),
            ).permanent()
        }
        Some(cpus) => {
            let read: Vec<String> = [&*path, ISOLATED_BY_PARTITION]
                .into_iter()
                .filter(|path| context.root.read(path).is_some_and(|cpus| !cpus.trim().is_empty()))
                .map(|path| context.evidence(path))
                .collect();
            let read = if read.is_empty() { evidence(&path, cpus) } else { read.join(", ") };
            useless_isolation(context, ID, read.clone())
                .unwrap_or_else(|| ok(ID, format!("isolated CPUs: {cpus}"), read))
        }
    }
}

/// The finding if the isolated CPUs are offline, or if no CPU remains for other work.
fn useless_isolation(context: &CheckContext, id: &str, read: String) -> Option<Finding> {
    let (isolated, online) = (context.isolated(), context.online());
    if isolated.is_empty() || online.is_empty() {
        return None;
    }
    if isolated.intersection(online).is_empty() {
        let files: Vec<String> = isolated.iter().map(|cpu| format!("{CPU}/cpu{cpu}/online")).collect();
        let found = warn(id, format!("the isolated CPUs ({isolated}) are offline"), read).because(
            "All other CPUs run threads of any kind, also the real-time ones.",
            format!("echo 1 | sudo tee {}", super::files(files.iter().map(String::as_str))),
        );
        return Some(found.until_boot());
    }
    let has_others = online.len() == 1 || !online.difference(isolated).is_empty();
    (!has_others).then(|| {
        let last = CpuList::from_iter([context.last_cpu()]);
        let why = "The scheduler does not spread threads over isolated CPUs: each stays on the CPU where it began, and many share one while others idle.";
        warn(id, "all CPUs are isolated, so no CPU remains for other work", read)
            .because(why, context.isolation().remedy(&last, |_| true))
            .permanent()
    })
}

/// A boot argument with CPUs can be ignored: the kernel lacks the option, or the CPUs do not exist.
fn isolation_effect(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.isolation_effect";
    const WHY: &str = "The kernel ignores the argument if it cannot read it, if it lacks the feature (CONFIG_CPU_ISOLATION, CONFIG_NO_HZ_FULL) or the CPU, or if it cannot leave a CPU for other work.";
    const REMEDY: &str = "find the reason: sudo dmesg | grep -i -e isolcpus -e nohz -e housekeeping";
    if let Some(finding) = context.unread_arguments(ID) {
        return finding;
    }
    if context.online().is_empty() {
        return unknown(ID, "CPUs not readable", context.evidence(&format!("{CPU}/online")));
    }
    let isolcpus = context.machine.cmdline.as_deref().and_then(boot_arguments::isolcpus);
    // The flag `nohz` has the effect of `nohz_full`. That of `managed_irq` cannot be seen.
    let has_nohz = |value: &&str| boot_arguments::has_flag(value, "nohz");
    let asked = [
        (isolcpus, "isolcpus", "isolated"),
        (context.boot_argument("isolcpus").filter(has_nohz), "isolcpus", "nohz_full"),
        (context.boot_argument("nohz_full"), "nohz_full", "nohz_full"),
    ];
    let mut words: Vec<String> = Vec::new();
    for (value, argument, file) in
        asked.into_iter().filter_map(|(value, argument, file)| Some((value?, argument, file)))
    {
        let word = format!("{argument}={value}");
        let written = format!("/{CMDLINE} = {word}");
        let read = match argument {
            "isolcpus" => boot_arguments::isolated_cpus_of(context.root, value),
            _ => boot_arguments::cpus_of(context.root, value),
        };
        let Some(cpus) = read else {
            return warn(ID, format!("the kernel ignores {word}"), written).because(WHY, REMEDY);
        };
        let path = format!("{CPU}/{file}");
        let read = format!("{written}, {}", context.evidence(&path));
        let in_effect = match read_list(context.root, &path) {
            Ok(cpus) => cpus,
            Err(Unreadable::Absent) if shows_options(context.machine.kernel.as_deref()) => CpuList::new(),
            Err(why) => return unknown(ID, format!("effect of {argument} not readable"), without(&path, why)),
        };
        // The tick of the CPU that the kernel boots on never stops: it keeps the time.
        let is_tickless_in_effect = file == "nohz_full" && !in_effect.is_empty();
        let missing = match is_tickless_in_effect {
            true => cpus.difference(&in_effect).difference(&CpuList::from_iter([0])),
            false => cpus.difference(&in_effect),
        };
        if !missing.is_empty() {
            let flag = if argument == file || file == "isolated" { "" } else { "the flag nohz of " };
            return warn(ID, format!("{flag}{word} has no effect on {}", missing.in_words()), read)
                .because(WHY, REMEDY);
        }
        if let ("isolcpus", [flag, ..]) = (argument, &*boot_arguments::unknown_flags(value)) {
            return warn(ID, format!("the kernel skips the flag {flag} of isolcpus, which it does not know"), read)
                .because(
                    "The flag has no effect: interrupts that drivers manage, or the tick, may still use the CPUs.",
                    "correct the flag in the kernel arguments: it knows nohz, domain and managed_irq",
                )
                .permanent();
        }
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if let Some(finding) = invalid_partition(context, ID) {
        return finding;
    }
    if words.is_empty() {
        if let Some(value) = context.boot_argument("isolcpus") {
            let written = format!("/{CMDLINE} = isolcpus={value}");
            return match boot_arguments::isolated_cpus_of(context.root, value) {
                Some(_) => not_applicable(ID, "isolcpus does not isolate here: it has flags without domain", written),
                None => warn(ID, format!("the kernel ignores isolcpus={value}"), written).because(WHY, REMEDY),
            };
        }
        return not_applicable(ID, "no CPU is isolated at boot", "/proc/cmdline: no isolcpus, no nohz_full");
    }
    ok(ID, "the isolation requested at boot is in effect", format!("/{CMDLINE} = {}", words.join(" ")))
}

/// The finding if the kernel does not accept a partition of CPUs: that of a group below the topmost one, or of a group of this
/// process. Source: Linux, Documentation/admin-guide/cgroup-v2.rst, `cpuset.cpus.partition`.
fn invalid_partition(context: &CheckContext, id: &str) -> Option<Finding> {
    let own = cgroup::group_v2(context.root)?;
    let below_top = context.root.list(&own.top).into_iter().map(|name| format!("{}/{name}", own.top));
    let ends = own.folder.match_indices('/').map(|(end, _)| end).chain([own.folder.len()]);
    let of_own = ends.filter(|end| *end > own.top.len()).map(|end| own.folder[..end].to_owned());
    let groups: BTreeSet<String> = below_top.chain(of_own).filter(|path| context.root.is_folder(path)).collect();
    groups.iter().find_map(|group| {
        let path = format!("{group}/cpuset.cpus.partition");
        let state = context.root.read(&path)?;
        let (kind, why) = state.trim().split_once(" invalid")?;
        let name = &group[own.top.len()..];
        let title = format!("the partition ({kind}) of the control group {name} is not in effect{why}");
        let found = warn(id, title, evidence(&path, &state)).because(
            "The CPUs of the group are not kept free of other work.",
            format!("make the reason go away, then: echo {kind} | sudo tee /{path}; cat /{path}"),
        );
        Some(found.until_boot())
    })
}

/// The finding if no CPU is isolated, so that nothing has to be kept off.
pub(super) fn none_isolated(context: &CheckContext, id: &str) -> Option<Finding> {
    let path = format!("{CPU}/isolated");
    match context.machine.cpus_isolated.as_deref() {
        None => Some(unknown(id, "isolated CPUs not readable", context.evidence(&path))),
        Some("") => Some(not_applicable(id, "no CPU is isolated", context.evidence(&path))),
        Some(_) => None,
    }
}

fn tick(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.tick";
    if let Some(finding) = none_isolated(context, ID) {
        return finding;
    }
    let path = format!("{CPU}/nohz_full");
    let read = context.evidence(&path);
    let tickless = match read_list(context.root, &path) {
        Ok(tickless) => tickless,
        Err(Unreadable::Absent) if !context.online().is_empty() => {
            return not_applicable(ID, "this kernel cannot stop the tick (CONFIG_NO_HZ_FULL)", read);
        }
        Err(_) => return unknown(ID, "CPUs without a tick not readable", read),
    };
    let ticking = context.isolated().difference(&tickless);
    // No CPU stops its tick then, idle or not (`tick_nohz_enabled` in kernel/time/tick-sched.c).
    if let Some(value) = context.boot_argument("nohz").filter(is_switched_off) {
        let remove = format!("remove the kernel argument: `nohz={value}`");
        let needs_more = !ticking.difference(&CpuList::from_iter([0])).is_empty();
        let remedy = match needs_more {
            true => format!("{}; {remove}", context.isolation_remedy(context.isolated(), "nohz_full")),
            false => remove,
        };
        let title = format!("the tick interrupts a running thread on {}", context.isolated().in_words());
        return warn(ID, title, format!("/{CMDLINE} = nohz={value}, {read}")).because(TICK, remedy).permanent();
    }
    if ticking.is_empty() {
        if let Some(finding) = context.unread_arguments(ID).or_else(|| unstable_tsc(context, ID)) {
            return finding;
        }
        return ok(ID, format!("no tick on {} while one thread runs", context.isolated().in_words()), read);
    }
    let found = warn(ID, format!("the tick interrupts a running thread on {}", ticking.in_words()), read);
    if ticking == CpuList::from_iter([0]) {
        // No argument of the kernel helps.
        return found.because(
            "The kernel keeps the time on the CPU that it boots on, whose tick never stops.",
            "use another CPU than CPU 0 for real-time work that computes or polls",
        );
    }
    found.because(TICK, context.isolation_remedy(context.isolated(), "nohz_full")).permanent()
}

const TICK: &str = "The tick takes some microseconds, 100 to 1000 times a second. It matters to a thread that computes or polls; one that sleeps between its deadlines loses little.";

/// The finding if the kernel of an x86 processor uses a slow clock, and does not offer the counter: if it found the counter
/// unstable, each CPU keeps its tick (`TICK_DEP_BIT_CLOCK_UNSTABLE`, set by `__clear_sched_clock_stable` in
/// kernel/sched/clock.c).
fn unstable_tsc(context: &CheckContext, id: &str) -> Option<Finding> {
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let (current, available) = (format!("{FOLDER}/current_clocksource"), format!("{FOLDER}/available_clocksource"));
    let is_other = context.root.word(&current).is_ok_and(|clock| ["hpet", "acpi_pm"].contains(&&*clock));
    let offers_tsc = || context.root.read(&available).is_none_or(|all| all.split_whitespace().any(|it| it == "tsc"));
    (is_other && !offers_tsc()).then(|| {
        let title = "the tick may go on: the kernel does not offer the TSC as a clock, which can be unstable";
        unknown(id, title, context.evidence(&available))
    })
}

fn rcu_callbacks(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.rcu_callbacks";
    if let Some(finding) = none_isolated(context, ID) {
        return finding;
    }
    if let Some(finding) = context.unread_arguments(ID) {
        return finding;
    }
    if has_rcu_nocbs(context.root, context.machine.kernel.as_deref(), context.config()) == Some(false) {
        let read = match context.config() {
            Some(config) => config.evidence(&["RCU_NOCB_CPU"]),
            None => "/sys/module/rcutree/parameters: no rcu_nocb_gp_stride".to_owned(),
        };
        return not_applicable(ID, "this kernel always runs callbacks of RCU where they were made", read);
    }
    let cmdline = context.machine.cmdline.as_deref().unwrap_or_default();
    let offloaded = |tickless: &CpuList| {
        let offloaded = boot_arguments::rcu_offloaded(context.root, cmdline, context.config(), tickless);
        context.isolated().difference(&offloaded)
    };
    // The argument `nohz_full` can have no effect, so its effect counts.
    let tickless = match cpus::tickless(context.root) {
        Ok(tickless) => tickless,
        Err(_) if context.boot_argument("rcu_nocbs").is_some() && offloaded(&CpuList::new()).is_empty() => {
            CpuList::new()
        }
        Err(why) => return unknown(ID, "CPUs without a tick not readable", without(cpus::TICKLESS, why)),
    };
    let own = offloaded(&tickless);
    let word = |name: &&str| {
        let value = context.boot_argument(name)?;
        Some(if value.is_empty() { (*name).to_owned() } else { format!("{name}={value}") })
    };
    let words: Vec<String> = ["rcu_nocbs", "nohz_full"].iter().filter_map(word).collect();
    let read = match context.config() {
        Some(config) if words.is_empty() && tickless.is_empty() && own.is_empty() => {
            config.evidence(&["RCU_NOCB_CPU_DEFAULT_ALL"])
        }
        _ if words.is_empty() && !tickless.is_empty() => context.evidence(cpus::TICKLESS),
        _ if words.is_empty() => format!("/{CMDLINE} = no rcu_nocbs, no nohz_full"),
        _ if context.boot_argument("nohz_full").is_some() => {
            format!("/{CMDLINE} = {}, {}", words.join(" "), context.evidence(cpus::TICKLESS))
        }
        _ => format!("/{CMDLINE} = {}", words.join(" ")),
    };
    if own.is_empty() {
        return ok(ID, format!("callbacks of RCU run in threads for {}", context.isolated().in_words()), read);
    }
    warn(ID, format!("callbacks of RCU run on {}", own.in_words()), read)
        .because(
            "The kernel frees memory and objects in softirqs on the CPU that released them, up to hundreds of microseconds at once.",
            context.isolation_remedy(context.isolated(), "rcu_nocbs"),
        )
        .permanent()
}

fn workqueues(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.workqueues";
    const PATH: &str = "sys/devices/virtual/workqueue/cpumask";
    if let Some(finding) = none_isolated(context, ID) {
        return finding;
    }
    let (cpus, mask) = match context.root.parsed(PATH, CpuList::from_kernel_mask) {
        Ok(read) => read,
        Err(Unreadable::Absent) if context.root.exists("sys/devices/virtual") => {
            return not_applicable(
                ID,
                "this kernel does not place its unbound work",
                without(PATH, Unreadable::Absent),
            );
        }
        Err(why) => return unknown(ID, "CPUs of the kernel's unbound work not readable", without(PATH, why)),
    };
    let read = evidence(PATH, &mask);
    let shared = cpus.intersection(context.isolated());
    if shared.is_empty() {
        return ok(ID, "the kernel's unbound work does not run on isolated CPUs", read);
    }
    warn(ID, format!("the kernel's unbound work may run on {}", shared.in_words()), read)
        .because(
            "Workers of the kernel (kworker/u) run on these CPUs, for disks, networks and graphics.",
            format!("echo {} | sudo tee /{PATH}", mask_of(&context.housekeeping(), &mask)),
        )
        .until_boot()
}

/// A mask of these CPUs, in groups of eight digits, as long as another one.
fn mask_of(cpus: &CpuList, like: &str) -> String {
    let digits = u32::try_from(like.chars().filter(|&c| c != ',').count()).unwrap_or(0);
    let mut text = String::new();
    for at in (0..digits).rev() {
        let value = (0..4).filter(|bit| cpus.contains(at * 4 + bit)).fold(0, |sum, bit| sum | 1 << bit);
        text.push(char::from_digit(value, 16).unwrap_or('0'));
        if at > 0 && at % 8 == 0 {
            text.push(',');
        }
    }
    text
}

fn statistics(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.statistics";
    const PATH: &str = "proc/sys/vm/stat_interval";
    /// tuned's realtime profiles set 10 s.
    const GOOD_S: u64 = 10;
    if let Some(finding) = none_isolated(context, ID) {
        return finding;
    }
    let kernel = context.machine.kernel.as_deref().unwrap_or_default();
    let Some(release) = version(kernel) else {
        return unknown(ID, "version of the kernel not readable", context.evidence("proc/sys/kernel/osrelease"));
    };
    let updating = match facts::without_statistics(context.root, release) {
        Ok(without) => context.isolated().difference(&without),
        Err(why) => return unknown(ID, "CPUs without a tick not readable", without(cpus::TICKLESS, why)),
    };
    if updating.is_empty() {
        let title = format!("the kernel starts no update of memory statistics on {}", context.isolated().in_words());
        let files = [cpus::ISOLATED, cpus::TICKLESS, ISOLATED_BY_PARTITION];
        let names_some = |path: &&str| {
            read_list(context.root, path).is_ok_and(|cpus| !cpus.intersection(context.isolated()).is_empty())
        };
        let read = files.into_iter().filter(names_some).map(|path| context.evidence(path)).collect::<Vec<_>>();
        return ok(ID, title, format!("{}, Linux {kernel}", read.join(", ")));
    }
    let read = context.evidence(PATH);
    match context.root.number::<u64>(PATH) {
        Some(seconds) if seconds >= GOOD_S => ok(ID, format!("memory statistics are updated every {seconds} s"), read),
        Some(seconds) => warn(ID, format!("each CPU updates memory statistics every {seconds} s"), read)
            .because(
                "The kernel wakes a worker (kworker, vmstat_update) on each CPU that used memory.",
                format!("echo {GOOD_S} | sudo tee /{PATH}"),
            )
            .until_boot(),
        None => unknown(ID, "interval of memory statistics not readable", read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_boot_arguments_follow_flags() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join(CPU)).unwrap();
        std::fs::write(folder.path().join(format!("{CPU}/online")), "0-3").unwrap();
        let root = crate::Root::at(folder.path());
        let cmdline = "nohz_full=1 isolcpus=managed_irq,domain,2-N -- nohz_full=3".to_owned();
        let machine = record::Machine { cmdline: Some(cmdline), ..record::Machine::default() };
        let context = CheckContext::new(&root, &machine, None, None);
        let list = |text: &str| Some(text.parse::<CpuList>().unwrap());
        let of = |value| boot_arguments::cpus_of(&root, value);
        let isolated = |value| boot_arguments::isolated_cpus_of(&root, value);
        assert_eq!(isolated(context.boot_argument("isolcpus").unwrap()), list("2-3"));
        assert_eq!((context.boot_argument("nohz-full"), context.boot_argument("nohz")), (Some("1"), None));
        assert_eq!([of("1,3"), of("all"), isolated("nohz,1")], [list("1,3"), list("0-3"), list("1")]);
        assert_eq!([of("domain"), of(""), of("2-")], [None, None, None]);
    }

    #[test]
    fn masks_are_as_long_as_the_kernels() {
        let mask = |cpus: &str, like| mask_of(&cpus.parse().unwrap(), like);
        assert_eq!(mask("0-1", "f"), "3");
        assert_eq!(mask("0,32", "1,ffffffff"), "1,00000001");
        assert_eq!(mask("4", "00ff"), "0010");
        for cpus in ["0", "0-3", "5,31"] {
            let like = "ffffffff";
            assert_eq!(CpuList::from_mask(&mask(cpus, like)), Some(cpus.parse().unwrap()));
        }
    }
}
