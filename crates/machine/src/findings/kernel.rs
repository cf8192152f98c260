//! The kernel: preemption, throttling, timers and the clock source.

use record::{Finding, FindingState, Machine};

use super::{Check, CheckContext, Explain, evidence, fail, not_applicable, ok, sched_ext, unknown, warn, without};
use crate::kernel::{
    DEBUGFS, DYNAMIC, FAIR_SERVERS_OFF, MOUNT_DEBUGFS, Preempt, has_fair_server, lacks_debugfs,
    preempt as preempt_model, version,
};
use crate::{Unreadable, cpus};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "kernel.preempt",
        subject: "real-time preemption of the kernel",
        source: "Linux, Documentation/core-api/real-time/theory.rst",
        run: preempt,
    },
    Check {
        id: "kernel.timers",
        subject: "timers with the resolution of the clock (high-resolution timers)",
        source: "Linux, Documentation/timers/highres.rst",
        run: timer_resolution,
    },
    Check {
        id: "kernel.tick",
        subject: "frequency of the tick (HZ)",
        source: "Linux, Documentation/timers/no_hz.rst",
        run: tick,
    },
    Check {
        id: "kernel.debug_options",
        subject: "debug options of the kernel that cost time in each lock or memory access",
        source: "Linux, Documentation/dev-tools",
        run: debug_options,
    },
    Check {
        id: "kernel.watchdog",
        subject: "watchdogs that interrupt each CPU",
        source: "Linux, Documentation/admin-guide/lockup-watchdogs.rst",
        run: watchdogs,
    },
    Check {
        id: "rt.throttling",
        subject: "time that real-time threads lose in each period",
        source: "Linux, Documentation/scheduler/sched-rt-group.rst",
        run: rt_throttling,
    },
    Check {
        id: "kernel.timer_migration",
        subject: "timers of CPUs without a tick (`nohz_full`) that may run on other CPUs",
        source: "Linux, Documentation/admin-guide/sysctl/kernel.rst",
        run: timer_migration,
    },
    Check {
        id: sched_ext::ID,
        subject: "a scheduler of ordinary threads that a program has loaded (sched_ext)",
        source: "Linux, Documentation/scheduler/sched-ext.rst",
        run: sched_ext::check,
    },
    Check {
        id: "clock.source",
        subject: "a clock that is quick to read",
        source: "Linux, Documentation/timers/timekeeping.rst",
        run: clock_source,
    },
];

fn preempt(context: &CheckContext) -> Finding {
    const ID: &str = "kernel.preempt";
    let machine = context.machine;
    let found = preempt_model(context.root, machine.kernel_build.as_deref(), machine.cmdline.as_deref());
    let Some(Preempt { model, evidence }) = found else {
        return unknown(ID, "preemption model not readable", context.evidence("proc/sys/kernel/version"));
    };
    if model == "PREEMPT_RT" {
        return ok(ID, "real-time kernel (PREEMPT_RT)", evidence);
    }
    if let Some(gravity) = &machine.evl_gravity {
        let title = format!("EVL core (gravity {gravity}) on a kernel without PREEMPT_RT ({model})");
        return warn(ID, title, evidence).because(
            "Only threads attached to the EVL core are real-time; ordinary threads wait as on any other kernel.",
            "attach the threads that must be on time to the EVL core: evl_attach_self() of libevl",
        );
    }
    let install = real_time_kernel(context);
    let title = format!("kernel without real-time preemption ({model})");
    match model.as_str() {
        "full" | "lazy" | "full or lazy" => warn(ID, title, evidence).because(
            "Interrupt handlers and code under spin locks still delay a real-time thread, by hundreds of microseconds and more.",
            install,
        ).permanent(),
        DYNAMIC => warn(ID, "kernel without real-time preemption, its dynamic mode not readable", evidence).because(
            "Even with the boot argument preempt=full, which shortens delays, interrupt handlers and code under spin locks delay a real-time thread.",
            install,
        ).permanent(),
        _ => fail(ID, title, evidence).because(
            if machine.kernel_build.as_deref().is_some_and(|build| build.contains("PREEMPT_DYNAMIC")) {
                "A system call of any process delays a real-time thread until it ends or reaches a scheduling point. The boot argument preempt=full shortens these delays, but does not make the kernel real-time."
            } else {
                "A system call of any process delays a real-time thread until it ends or reaches a scheduling point."
            },
            install,
        ).permanent(),
    }
}

/// The command that installs a real-time kernel on this distribution, if it has a package that this machine boots.
fn real_time_kernel(context: &CheckContext) -> String {
    const FROM_SOURCE: &str = "install a kernel built with CONFIG_PREEMPT_RT=y (mainline since Linux 6.12)";
    let kernel = context.machine.kernel.as_deref();
    if kernel.is_some_and(|kernel| kernel.contains("tegra")) {
        return "install the real-time kernel of NVIDIA for this board: see Real-Time Kernel in the developer guide of Jetson Linux"
            .to_owned();
    }
    // A container has the files of another distribution than its host.
    let package = if context.in_container() { None } else { real_time_package(context.machine) };
    let Some(command) = package else {
        let of_proxmox = kernel.is_some_and(|kernel| kernel.ends_with("-pve"));
        return if of_proxmox { format!("{FROM_SOURCE}; that of Debian has no ZFS") } else { FROM_SOURCE.to_owned() };
    };
    let is_installed = |release: &str| {
        ["boot/config-", "boot/vmlinuz-", "lib/modules/", "usr/lib/modules/"]
            .iter()
            .any(|place| context.root.exists(&format!("{place}{release}")))
    };
    match kernel.filter(|release| !is_installed(release)) {
        Some(release) => format!(
            "start a kernel built with CONFIG_PREEMPT_RT=y (mainline since Linux 6.12) in place of {release}, which is not one of this system: it has no /lib/modules/{release}"
        ),
        None => command,
    }
}

/// The command that installs the real-time kernel of the distribution, which this machine boots: by the lists of packages of
/// Debian 11 to 13, Arch Linux (extra) and Raspberry Pi OS, and the documents of Ubuntu Pro and of RHEL for Real Time.
fn real_time_package(machine: &Machine) -> Option<String> {
    let os = machine.os.as_deref().unwrap_or_default();
    let kernel = machine.kernel.as_deref();
    let ends_with = |ends: &[&str]| kernel.is_some_and(|kernel| ends.iter().any(|end| kernel.ends_with(end)));
    let pro = release_of_ubuntu_pro(os);
    // The firmware of a Raspberry Pi boots its own image, whatever is installed, and so do the boot loaders of other boards.
    let is_pi = machine.model.as_deref().is_some_and(|model| model.contains("Raspberry Pi"))
        || kernel.is_some_and(|kernel| kernel.contains("rpi"));
    if is_pi {
        let is_of_pi_os = kernel.is_some_and(|kernel| kernel.contains("+rpt-rpi") && version(kernel) >= Some((6, 12)));
        let is_64 = machine.arch.as_deref() == Some("aarch64");
        return match is_64 {
            true if is_of_pi_os => Some(
                "sudo apt install linux-image-rpi-v8-rt, and add kernel=kernel8_rt.img to /boot/firmware/config.txt"
                    .to_owned(),
            ),
            true if pro >= Some((24, 4)) => Some("sudo pro enable realtime-kernel --variant=raspi".to_owned()),
            _ => None,
        };
    }
    let release =
        os.strip_prefix("Debian GNU/Linux ").and_then(|release| release.split(' ').next()?.parse::<u32>().ok());
    let of_debian = |suffix: &str| Some(format!("sudo apt install linux-image-rt-{suffix}"));
    match machine.arch.as_deref()? {
        "x86_64" if ends_with(&["-pve"]) => None,
        "x86_64" if os.starts_with("Debian") => of_debian("amd64"),
        "x86_64" if os == "Arch Linux" => Some("sudo pacman -S linux-rt, and start it by your boot loader".to_owned()),
        "x86_64" if ["9", "10"].iter().any(|major| os.starts_with(&format!("Red Hat Enterprise Linux {major}."))) => {
            Some("sudo dnf install kernel-rt, from the repository of RHEL for Real Time".to_owned())
        }
        "aarch64" if !(kernel.is_none() || ends_with(&["-arm64", "-generic", "-lowlatency"])) => None,
        "aarch64" if os.starts_with("Debian") => of_debian("arm64"),
        "armv7l" if release.is_some() && ends_with(&["-armmp", "-armmp-lpae"]) => of_debian("armmp"),
        // Debian 13 has no kernel for it.
        "i686" if matches!(release, Some(..=12)) && ends_with(&["-686-pae"]) => of_debian("686-pae"),
        "x86_64" | "aarch64" if pro.is_some() => Some("sudo pro enable realtime-kernel".to_owned()),
        _ => None,
    }
}

/// The release of Ubuntu if it has a real-time kernel in Ubuntu Pro: long-term ones since 22.04.
fn release_of_ubuntu_pro(os: &str) -> Option<(u32, u32)> {
    let release = os.strip_prefix("Ubuntu ").filter(|release| release.ends_with(" LTS"))?;
    version(release).filter(|release| *release >= (22, 4))
}

fn rt_throttling(context: &CheckContext) -> Finding {
    const ID: &str = "rt.throttling";
    let Some(kernel) = context.machine.kernel.as_deref() else {
        return unknown(ID, "version of the kernel not readable", context.evidence("proc/sys/kernel/osrelease"));
    };
    if !has_fair_server(kernel) {
        return rt_limit(context, ID);
    }
    let server = match server(context, ID, "fair_server") {
        // Threads of a loaded scheduler have a server of their own.
        fair if fair.state == FindingState::Ok && sched_ext::is_loaded(context.root) && has_ext_server(context) => {
            server(context, ID, "ext_server")
        }
        fair => fair,
    };
    // With control groups for real-time threads, such a kernel has the old limit as well.
    let has_both = context.config().map(|config| config.has("RT_GROUP_SCHED"));
    match (server.state, has_both) {
        (FindingState::Ok, Some(true)) => rt_limit(context, ID),
        (FindingState::Ok, None) => match rt_limit(context, ID) {
            limit if limit.state == FindingState::Ok => server,
            limit => {
                let title = "no fair server, but this kernel may also limit real-time threads (CONFIG_RT_GROUP_SCHED)";
                unknown(ID, title, format!("{}, {}", context.evidence("proc/config.gz"), limit.evidence))
            }
        },
        (FindingState::Unknown, Some(true)) => {
            let limit = rt_limit(context, ID);
            let (title, evidence) =
                (format!("{}; {UNREAD_SERVER}", limit.title), format!("{}, {}", limit.evidence, server.evidence));
            // One limit that is off says nothing about the other.
            match limit.state {
                FindingState::Warn => Finding { title, evidence, ..limit },
                _ => unknown(ID, title, evidence),
            }
        }
        _ => server,
    }
}

/// A time in whole units: `50 ms`, `1 us`.
fn in_words_us(us: i64) -> String {
    if us % 1000 == 0 { format!("{} ms", us / 1000) } else { format!("{us} us") }
}

/// The share of each period that real-time threads may use.
fn rt_limit(context: &CheckContext, id: &str) -> Finding {
    const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
    const PERIOD: &str = "proc/sys/kernel/sched_rt_period_us";
    let runtime = match context.root.try_read(RUNTIME) {
        Ok(runtime) => runtime,
        Err(why) => return unknown(id, "limit of real-time threads not readable", without(RUNTIME, why)),
    };
    let read = evidence(RUNTIME, &runtime);
    if runtime == "-1" {
        return ok(id, "real-time threads are not throttled", read);
    }
    match (runtime.parse::<i64>(), context.root.number::<i64>(PERIOD)) {
        (Ok(runtime), Some(period)) if runtime >= period => ok(id, "real-time threads are not throttled", read),
        (Ok(runtime), Some(period)) => {
            let read = format!("{read}, {}", context.evidence(PERIOD));
            if runtime == 0 {
                // `sched_rt_runtime_exceeded` in kernel/sched/rt.c throttles only if the limit is not 0, but
                // `do_sched_rt_period_timer` then gives a throttled CPU no time to go on.
                return warn(id, "the limit of real-time threads is 0", read)
                    .because(
                        "The kernel then stops no CPU, but one whose real-time threads it had stopped before stays so.",
                        "echo -1 | sudo tee /proc/sys/kernel/sched_rt_runtime_us",
                    )
                    .until_boot();
            }
            let (stopped, period) = (in_words_us(period.saturating_sub(runtime)), in_words_us(period));
            let title = format!("busy real-time threads are stopped for {stopped} of every {period}");
            warn(id, title, read).because(
                "Real-time threads that use more than their share of a CPU wait until the end of the period, even past a deadline. Without the limit, one that never sleeps hangs its CPU.",
                "echo -1 | sudo tee /proc/sys/kernel/sched_rt_runtime_us",
            ).until_boot()
        }
        _ => unknown(id, "limit of real-time threads not understood", read),
    }
}

/// True if this kernel has a server for the threads of a loaded scheduler.
fn has_ext_server(context: &CheckContext) -> bool {
    context.root.exists("sys/kernel/debug/sched/ext_server")
}

/// Since Linux 6.12 a server of each CPU gives ordinary threads time on demand.
fn server(context: &CheckContext, id: &str, kind: &str) -> Finding {
    const NS_PER_US: u64 = 1000;
    let folder = |cpu: u32| format!("sys/kernel/debug/sched/{kind}/cpu{cpu}");
    let mut off = None;
    for cpu in context.online() {
        let path = format!("{}/runtime", folder(cpu));
        let runtime = match context.root.try_read(&path) {
            Ok(runtime) => runtime,
            Err(Unreadable::Absent) if lacks_debugfs(context.root) => {
                let title = format!("fair server not readable, because debugfs is not mounted: `{MOUNT_DEBUGFS}`");
                return unknown(id, title, format!("/{DEBUGFS} is empty"));
            }
            Err(why) => return unknown(id, UNREAD_SERVER, without(&path, why)),
        };
        let read = evidence(&path, &runtime);
        match (runtime.parse::<u64>(), context.root.number::<u64>(&format!("{}/period", folder(cpu)))) {
            (Ok(0), _) => off = off.or(Some(read)),
            (Ok(runtime_ns), Some(period_ns)) => {
                let in_words = |ns: u64| in_words_us(i64::try_from(ns / NS_PER_US).unwrap_or(i64::MAX));
                let (given, period) = (in_words(runtime_ns), in_words(period_ns));
                let title = format!("busy real-time threads give ordinary ones {given} of every {period}");
                return warn(id, title, read)
                    .because(
                        "A real-time thread that never sleeps loses this time to waiting ordinary threads; one that sleeps between its deadlines does not. Without the server, one that never sleeps starves its CPU.",
                        FAIR_SERVERS_OFF,
                    )
                    .until_boot();
            }
            _ => return unknown(id, "fair server not understood", read),
        }
    }
    match off {
        Some(read) => ok(id, "busy real-time threads give no time to ordinary ones", read),
        None => unknown(id, UNREAD_SERVER, context.evidence("sys/devices/system/cpu/online")),
    }
}

const UNREAD_SERVER: &str =
    "fair server not readable; unless changed, a real-time thread that never sleeps loses 50 ms of each second";

/// The timer of a sleeping thread on a tickless CPU may move to another CPU, which must then wake the first one.
fn timer_migration(context: &CheckContext) -> Finding {
    const ID: &str = "kernel.timer_migration";
    const PATH: &str = "proc/sys/kernel/timer_migration";
    let unread = |why| unknown(ID, "CPUs without a tick not readable", without(cpus::TICKLESS, why));
    let tickless = match cpus::tickless(context.root) {
        Ok(_) if context.online().is_empty() => return unread(Unreadable::Absent),
        Ok(tickless) => tickless,
        Err(why) => return unread(why),
    };
    let migration = context.root.parsed(PATH, |text| text.parse::<u32>().ok());
    match migration.map(|value| (value, evidence(PATH, &value.to_string()))) {
        Ok((0, read)) => ok(ID, "timers stay on their CPU", read),
        Ok((_, read)) if tickless.is_empty() => {
            ok(ID, "no CPU runs without a tick, so timers of running threads stay on their CPU", read)
        }
        Ok((_, read)) => warn(ID, format!("timers of {} may run on other CPUs", tickless.in_words()), read).because(
            "The kernel may move timers of a nohz_full CPU to a housekeeping CPU, whose delays then add to those of the thread.",
            "echo 0 | sudo tee /proc/sys/kernel/timer_migration",
        ).until_boot(),
        Err(Unreadable::Absent) if context.root.exists("proc/sys/kernel") => {
            not_applicable(ID, "this kernel does not migrate timers", context.evidence(PATH))
        }
        Err(why) => unknown(ID, "timer migration not readable", without(PATH, why)),
    }
}

/// Clocks that programs read without a system call, from a counter of the CPU or a page of the hypervisor, by their names
/// in the kernel (`vdso_clock_mode` of the clock sources; the first ones are preferred).
const QUICK_CLOCKS: [&str; 10] = [
    "tsc",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "kvm-clock",
    "riscv_clocksource",
    "timebase",
    "tod",
    "Constant",
    "GIC",
    "MIPS",
];

fn clock_source(context: &CheckContext) -> Finding {
    const ID: &str = "clock.source";
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let path = format!("{FOLDER}/current_clocksource");
    let clock = match context.root.try_read(&path) {
        Ok(clock) => clock,
        Err(why) => return unknown(ID, "clock source not readable", without(&path, why)),
    };
    let read = evidence(&path, &clock);
    if QUICK_CLOCKS.contains(&&*clock) {
        return ok(ID, format!("clock {clock}"), read);
    }
    let available = context.root.read(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let available: Vec<&str> = available.split_whitespace().collect();
    let quick = QUICK_CLOCKS.iter().find(|quick| available.contains(quick));
    let switch_to = |quick: &str| format!("echo {quick} | sudo tee /{path}");
    let remedy = || match quick {
        Some(quick) => switch_to(quick),
        None => {
            "find out why the kernel rejected the CPU's counter: sudo dmesg | grep -i -e tsc -e clocksource".to_owned()
        }
    };
    match clock.as_str() {
        "jiffies" | "refined-jiffies" => fail(ID, format!("clock counts ticks ({clock})"), read)
            .because("Timestamps have the resolution of a tick, 1 to 10 ms: smaller latencies cannot be measured.", remedy()).until_boot(),
        "hpet" | "acpi_pm" | "pit" | "hyperv_clocksource_msr" => warn(ID, format!("slow clock ({clock})"), read).because(
            "Each reading of the clock is a system call and an access to a slow device, which costs microseconds in every cycle.",
            remedy(),
        ).until_boot(),
        other => match quick {
            Some(quick) if available.contains(&other) => warn(ID, format!("clock {other}, although {quick} is available"), read).because(
                "Reading it can need a system call, and access to a slow device or to the hypervisor, in every cycle.",
                switch_to(quick),
            ).until_boot(),
            _ => unknown(ID, format!("clock {other} is not known to be read without a system call"), read),
        },
    }
}

/// Without high-resolution timers a thread wakes at the next tick.
fn timer_resolution(context: &CheckContext) -> Finding {
    const ID: &str = "kernel.timers";
    const WHY: &str = "A thread wakes at the next tick, up to 10 ms late.";
    if let Some(value) = timers_switched_off(context) {
        return fail(ID, "high-resolution timers are switched off", format!("/proc/cmdline = highres={value}"))
            .because(WHY, format!("remove the kernel argument: `highres={value}`"))
            .permanent();
    }
    if let Some(finding) = context.unread_arguments(ID) {
        return finding;
    }
    let Some(config) = context.config() else { return no_config(context, ID) };
    let read = config.evidence(&["HIGH_RES_TIMERS"]);
    if config.has("HIGH_RES_TIMERS") {
        return ok(ID, "high-resolution timers", read);
    }
    fail(ID, "no high-resolution timers", read)
        .because(WHY, "install a kernel built with CONFIG_HIGH_RES_TIMERS=y")
        .permanent()
}

/// The value of the argument that switches high-resolution timers off; `None` without it.
fn timers_switched_off<'a>(context: &'a CheckContext) -> Option<&'a str> {
    context.boot_argument("highres").filter(is_switched_off)
}

/// True for the value of an argument that means off, by its first letters (`kstrtobool` in lib/kstrtox.c).
pub(super) fn is_switched_off(value: &&str) -> bool {
    ["0", "n", "of"].iter().any(|off| value.to_ascii_lowercase().starts_with(off))
}

/// With high-resolution timers the tick does not limit how exact a wake-up is.
fn tick(context: &CheckContext) -> Finding {
    const ID: &str = "kernel.tick";
    if let Some(finding) = context.unread_arguments(ID) {
        return finding;
    }
    let Some(config) = context.config() else { return no_config(context, ID) };
    let read = config.evidence(&["HZ", "HIGH_RES_TIMERS"]);
    let switched_off = timers_switched_off(context);
    match config.value("HZ") {
        Some(hz) if config.has("HIGH_RES_TIMERS") && switched_off.is_none() => {
            ok(ID, format!("{hz} ticks a second, which do not limit the timers"), read)
        }
        Some(hz) => {
            let (read, remedy) = match switched_off {
                Some(value) => (
                    format!("{read}; /proc/cmdline = highres={value}"),
                    format!("remove the kernel argument: `highres={value}`"),
                ),
                None => (read, "install a kernel built with CONFIG_HIGH_RES_TIMERS=y".to_owned()),
            };
            warn(ID, format!("timers with the resolution of {hz} ticks a second"), read)
                .because("A thread wakes at the next tick.", remedy)
                .permanent()
        }
        None => unknown(ID, "frequency of the tick not known", read),
    }
}

/// Options that check each lock, memory access or list, and are meant for developers of the kernel.
const DEBUG_OPTIONS: [&str; 16] = [
    "PROVE_LOCKING",
    "LOCKDEP",
    "LOCK_STAT",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_SPINLOCK",
    "DEBUG_RT_MUTEXES",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "DEBUG_KMEMLEAK",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "SLUB_DEBUG_ON",
    "IRQSOFF_TRACER",
    "DEBUG_PREEMPT",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_OBJECTS",
];
/// Options that make each lock or memory access several times slower.
const SLOWEST: [&str; 5] = ["PROVE_LOCKING", "LOCKDEP", "KASAN", "KCSAN", "KMSAN"];

/// The kernel argument that switches on checks of memory (Documentation/admin-guide/kernel-parameters.txt), with its value.
fn debug_argument<'a>(context: &'a CheckContext) -> Option<(&'static str, &'a str)> {
    let argument = |name: &'static str| Some((name, context.boot_argument(name)?));
    // `slub_debug=-` switches them off.
    let of_slabs =
        ["slab_debug", "slub_debug"].into_iter().filter_map(argument).find(|(_, value)| !value.starts_with('-'));
    let on = |name, wanted: &str| argument(name).filter(|(_, value)| *value == wanted);
    of_slabs.or_else(|| on("debug_pagealloc", "on")).or_else(|| {
        on("kmemleak", "on").filter(|_| context.config().is_some_and(|config| config.has("DEBUG_KMEMLEAK")))
    })
}

fn debug_options(context: &CheckContext) -> Finding {
    const ID: &str = "kernel.debug_options";
    if context.machine.evl.is_some() {
        return not_applicable(
            ID,
            "evl.debug_options checks them",
            context.evidence("sys/devices/virtual/evl/control/abi"),
        );
    }
    let Some(config) = context.config() else { return no_config(context, ID) };
    let set: Vec<&str> = DEBUG_OPTIONS.into_iter().filter(|option| config.has(option)).collect();
    if set.is_empty() {
        let Some((name, value)) = debug_argument(context) else {
            return ok(ID, "no debug options that cost time", config.evidence(&["LOCKDEP", "KASAN"]));
        };
        let argument = if value.is_empty() { name.to_owned() } else { format!("{name}={value}") };
        return warn(ID, format!("kernel argument {argument} checks memory"), context.evidence("proc/cmdline"))
            .because(
                "The kernel then checks each allocation, which takes microseconds.",
                format!("remove the kernel argument `{argument}`"),
            )
            .permanent();
    }
    let slow = set.iter().any(|option| SLOWEST.contains(option));
    let options: String = set.iter().map(|option| format!(" --disable {option}")).collect();
    let title = format!("debug options of the kernel: {}", set.join(", "));
    let finding = if slow { fail(ID, title, config.evidence(&set)) } else { warn(ID, title, config.evidence(&set)) };
    finding
        .because(
            if slow {
                "They check each lock or memory access, with interrupts off for up to hundreds of microseconds."
            } else {
                "They check some operations each time, which takes a few microseconds."
            },
            format!("build the kernel after: scripts/config{options} && make olddefconfig"),
        )
        .permanent()
}

fn watchdogs(context: &CheckContext) -> Finding {
    const ID: &str = "kernel.watchdog";
    const HARD: &str = "proc/sys/kernel/nmi_watchdog";
    const SOFT: &str = "proc/sys/kernel/soft_watchdog";
    const WHY: &str = "A timer every 4 s, a thread above all real-time priorities, and for NMI an interrupt every 10 s that nothing can mask. Without them, a CPU that hangs is not reported.";
    let mut read: Vec<(&str, u32)> = Vec::new();
    for path in [HARD, SOFT] {
        match context.root.parsed(path, |text| text.parse().ok()) {
            Ok(value) => read.push((path, value)),
            Err(Unreadable::Absent) => {}
            Err(why) => return unknown(ID, "watchdogs not readable", without(path, why)),
        }
    }
    let on: Vec<&(&str, u32)> = read.iter().filter(|(_, value)| *value != 0).collect();
    let (path, value) = match (read.first(), on.first()) {
        (None, _) if context.root.exists("proc/sys/kernel") => {
            return not_applicable(ID, "this kernel has no watchdogs", context.evidence(HARD));
        }
        (None, _) => return unknown(ID, "watchdogs not readable", context.evidence(HARD)),
        (Some((path, value)), None) => {
            return ok(ID, "no watchdog interrupts the CPUs", evidence(path, &value.to_string()));
        }
        (_, Some(_)) if cpus::has_watchdogs_off(context.root) => {
            return ok(ID, "no watchdog interrupts the CPUs", context.evidence(cpus::WATCHDOG_THRESHOLD));
        }
        (_, Some((path, value))) => (path, value),
    };
    let names = on.iter().map(|(path, _)| if *path == HARD { "hard (NMI)" } else { "soft" });
    let names = names.collect::<Vec<_>>().join(" and ");
    // The kernel leaves out the CPUs of nohz_full by default.
    let watched = match cpus::read_list(context.root, cpus::WATCHDOGS) {
        Err(Unreadable::Absent) => None,
        Err(why) => return unknown(ID, "CPUs of the watchdogs not readable", without(cpus::WATCHDOGS, why)),
        Ok(watched) => Some(watched),
    };
    if let Some(finding) = context.unread_isolation(ID) {
        return finding;
    }
    if let Some(watched) = watched {
        let read = evidence(cpus::WATCHDOGS, &watched.to_string());
        // Without isolated CPUs, those that were left out are meant for real-time work.
        let meant = match context.isolated().is_empty() {
            true => context.online().difference(&watched),
            false => context.isolated().clone(),
        };
        let (hit, others) = (watched.intersection(&meant), watched.difference(&meant));
        if hit.is_empty() && !meant.is_empty() {
            return ok(ID, format!("no watchdog interrupts {}", meant.in_words()), read);
        }
        if !hit.is_empty() && !others.is_empty() {
            return warn(ID, format!("watchdogs interrupt {}: {names}", hit.in_words()), read)
                .because(WHY, format!("echo {others} | sudo tee /{}", cpus::WATCHDOGS))
                .until_boot();
        }
    }
    let files: Vec<String> = on.iter().map(|(path, _)| format!("/{path}")).collect();
    warn(ID, format!("watchdogs interrupt each CPU: {names}"), evidence(path, &value.to_string()))
        .because(WHY, format!("echo 0 | sudo tee {}", files.join(" ")))
        .until_boot()
}

pub(super) fn no_config(context: &CheckContext, id: &str) -> Finding {
    unknown(id, "configuration of the kernel not readable", context.evidence("proc/config.gz"))
}
