//! Machines that were judged wrongly, and that `check` and `tune` must judge alike.

use std::fs;

use record::{Finding, FindingState};
use tempfile::TempDir;

use crate::{
    CpuList, Root, facts, findings,
    tune::{self, Need},
};

/// A machine with these files, and two CPUs.
fn machine(files: &[(&str, &str)]) -> (TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    for (path, text) in [("sys/devices/system/cpu/online", "0-1")].iter().chain(files) {
        put(&root, path, text);
    }
    (folder, root)
}

fn put(root: &Root, path: &str, text: &str) {
    fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
    fs::write(root.path(path), text).unwrap();
}

fn finding(root: &Root, id: &str) -> Finding {
    findings(root, &facts(root), None, None).into_iter().find(|finding| finding.id == id).unwrap()
}

fn reason(root: &Root, id: &'static str) -> Option<String> {
    let plan = tune::plan(root, &Need { only: vec![id], ..Need::default() }).unwrap();
    plan.not_here.into_iter().next().map(|not| not.reason)
}

#[test]
fn a_cpu_without_turbo_needs_no_switch() {
    const NO_TURBO: &str = "sys/devices/system/cpu/intel_pstate/no_turbo";
    let (_folder, root) = machine(&[(NO_TURBO, "0"), ("proc/cpuinfo", "flags\t\t: fpu ida\n")]);
    let turbo = || finding(&root, "cpu.turbo");
    assert_eq!((turbo().state, reason(&root, "cpu.turbo")), (FindingState::Warn, None));
    put(&root, "proc/cpuinfo", "flags\t\t: fpu xcpb\n");
    assert_eq!(turbo().state, FindingState::NotApplicable);
    assert_eq!(reason(&root, "cpu.turbo").as_deref(), Some("the CPU has no turbo frequencies"));
    // Without the switch, turbo frequencies are not known to be off.
    fs::remove_file(root.path(NO_TURBO)).unwrap();
    assert_eq!(turbo().state, FindingState::NotApplicable);
    put(&root, "proc/cpuinfo", "flags\t\t: fpu cpb\n");
    assert_eq!(turbo().state, FindingState::Unknown);
    // Processors of ARM have no such flags.
    put(&root, "proc/cpuinfo", "Features\t: fp asimd\n");
    put(&root, "sys/devices/system/cpu/cpufreq/boost", "1");
    assert_eq!((turbo().state, reason(&root, "cpu.turbo")), (FindingState::Warn, None));
}

#[test]
fn a_frequency_is_constant_if_its_limits_are_equal() {
    let cpufreq = |file: &str| [0, 1].map(|cpu| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"));
    let (_folder, root) = machine(&[]);
    let set = |file: &str, text: &str| cpufreq(file).iter().for_each(|path| put(&root, path, text));
    let state = || finding(&root, "cpu.governor").state;
    for governor in ["userspace", "powersave", "schedutil"] {
        set("scaling_governor", governor);
        for (file, text) in [("scaling_min_freq", "800000"), ("scaling_max_freq", "1600000")] {
            set(file, text);
        }
        // The frequency that a program has set is not readable.
        let open = if governor == "userspace" { FindingState::Unknown } else { FindingState::Warn };
        assert_eq!(state(), open, "{governor}");
        set("scaling_min_freq", "1600000");
        assert_eq!(state(), FindingState::Ok, "{governor}");
        // The processor has one frequency only.
        cpufreq("scaling_min_freq").iter().for_each(|path| fs::remove_file(root.path(path)).unwrap());
        assert_eq!(state(), open, "{governor}");
        set("cpuinfo_min_freq", "1600000");
        set("cpuinfo_max_freq", "1600000");
        assert_eq!(state(), FindingState::Ok, "{governor}");
        cpufreq("cpuinfo_min_freq").iter().for_each(|path| fs::remove_file(root.path(path)).unwrap());
    }
}

#[test]
fn the_remedy_names_only_a_governor_that_the_machine_offers() {
    let cpufreq = |file: &str| [0, 1].map(|cpu| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"));
    let (_folder, root) = machine(&[]);
    let set = |file: &str, text: &str| cpufreq(file).iter().for_each(|path| put(&root, path, text));
    set("scaling_governor", "ondemand");
    set("energy_performance_preference", "power");
    let remedies = || ["cpu.governor", "cpu.energy_preference"].map(|id| finding(&root, id).remedy);
    assert!(remedies().iter().all(|remedy| remedy.starts_with("echo performance | ")), "{:?}", remedies());
    set("scaling_available_governors", "ondemand powersave");
    set("energy_performance_available_preferences", "default power");
    assert!(remedies()[0].contains(" tune --only cpu.frequency "), "{:?}", remedies());
    assert!(remedies()[1].starts_with("echo 0 | "), "{:?}", remedies());
}

#[test]
fn all_callbacks_of_rcu_run_in_threads_if_the_kernel_was_built_so() {
    let (_folder, root) = machine(&[
        ("sys/devices/system/cpu/isolated", "1"),
        ("proc/cmdline", "isolcpus=1"),
        ("proc/sys/kernel/osrelease", "6.12.0"),
        ("boot/config-6.12.0", "CONFIG_RCU_NOCB_CPU=y\n"),
    ]);
    let state = || finding(&root, "cpu.rcu_callbacks").state;
    assert_eq!(state(), FindingState::Warn);
    put(&root, "boot/config-6.12.0", "CONFIG_RCU_NOCB_CPU=y\nCONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y\n");
    assert_eq!(state(), FindingState::Ok);
    put(&root, "proc/cmdline", "isolcpus=1 rcu_nocbs=0");
    assert_eq!(state(), FindingState::Warn, "an argument replaces the default");
}

#[test]
fn a_processor_without_vendor_has_firmware_unless_it_is_of_another_architecture() {
    let (_folder, root) = machine(&[("proc/cpuinfo", "processor\t: 0\nflags\t: fpu\n")]);
    let state = || finding(&root, "machine.firmware").state;
    assert_eq!(state(), FindingState::Unknown);
    put(&root, "proc/sys/kernel/arch", "x86_64");
    assert_eq!(state(), FindingState::Unknown);
    put(&root, "proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
    assert_eq!(state(), FindingState::NotApplicable);
    put(&root, "proc/sys/kernel/arch", "riscv64");
    put(&root, "proc/cpuinfo", "processor\t: 0\n");
    assert_eq!(state(), FindingState::NotApplicable);
}

#[test]
fn check_and_tune_go_by_the_same_siblings() {
    const ACTIVE: &str = "sys/devices/system/cpu/smt/active";
    let (_folder, root) = machine(&[(ACTIVE, "0"), ("sys/devices/system/cpu/smt/control", "on")]);
    let siblings = |lists: [&str; 2]| {
        for (cpu, list) in lists.iter().enumerate() {
            put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), list);
        }
    };
    let judged = || (finding(&root, "cpu.smt").state, tune::by_hand(&root, &"1".parse().unwrap()).len());
    assert_eq!(judged(), (FindingState::Ok, 0));
    for active in ["0", "1", "2"] {
        put(&root, ACTIVE, active);
        siblings(["0-1", "0-1"]);
        assert_eq!(judged(), (FindingState::Warn, 1), "{active}");
        siblings(["0", "1"]);
        assert_eq!(judged(), (FindingState::Ok, 0), "{active}");
        // The other thread of the core is offline.
        siblings(["0,2", "1,3"]);
        assert_eq!(judged(), (FindingState::Ok, 0), "{active}");
    }
    fs::remove_file(root.path(ACTIVE)).unwrap();
    assert_eq!(judged(), (FindingState::NotApplicable, 0));
}

#[test]
fn debugfs_that_is_not_mounted_is_named_with_its_command() {
    const MOUNT: &str = "sudo mount -t debugfs none /sys/kernel/debug";
    let (_folder, root) = machine(&[("proc/sys/kernel/osrelease", "6.12.0")]);
    let texts = || {
        let reason = reason(&root, "rt.fair_server").unwrap_or_default();
        [finding(&root, "rt.throttling").title, reason]
    };
    assert!(texts().iter().all(|text| !text.contains(MOUNT)), "there is no folder for it: {:?}", texts());
    fs::create_dir_all(root.path("sys/kernel/debug")).unwrap();
    assert!(texts().iter().all(|text| text.contains(MOUNT)), "{:?}", texts());
    put(&root, "sys/kernel/debug/sched/preempt", "full");
    assert!(texts().iter().all(|text| !text.contains(MOUNT)), "it is mounted: {:?}", texts());
}

#[test]
fn changes_of_a_recorded_machine_that_need_a_running_one_say_so() {
    let (_folder, root) = machine(&[]);
    let interface = Need { set: vec!["nic.settings=eth0:eee=off".parse().unwrap()], ..Need::default() };
    let plan = tune::plan(&root, &interface).unwrap();
    assert!(
        plan.not_here[0].reason.contains("a recorded machine (--root) has no network cards"),
        "{:?}",
        plan.not_here[0]
    );
    let error = crate::system_ops::SystemOps::set_policy(&root, 1, "fifo:1".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("a recorded machine (--root) has no threads"), "{error}");
}

#[test]
fn a_clock_is_slow_or_can_be_replaced() {
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let found = |clock: &str, available: &str| {
        let files = [("current", clock), ("available", available)];
        let files = files.map(|(name, text)| (format!("{FOLDER}/{name}_clocksource"), text));
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        let (_folder, root) = machine(&files);
        finding(&root, "clock.source")
    };
    for quick in ["tsc", "hyperv_clocksource_tsc_page", "arch_sys_counter", "Constant"] {
        assert_eq!(found(quick, quick).state, FindingState::Ok, "{quick}");
    }
    for (clock, quick) in [("xen", "tsc"), ("hyperv_clocksource_msr", "tsc"), ("32k_counter", "arch_sys_counter")] {
        let warning = found(clock, &format!("{clock} {quick} "));
        assert_eq!(warning.state, FindingState::Warn, "{clock}");
        assert!(warning.remedy.starts_with(&format!("echo {quick} | ")), "{}", warning.remedy);
    }
    assert_eq!(found("hyperv_clocksource_msr", "hyperv_clocksource_msr").state, FindingState::Warn);
    assert_eq!(found("timer", "timer").state, FindingState::Unknown);
    assert_eq!(found("?", "tsc").state, FindingState::Unknown, "a clock that is not available");
}

#[test]
fn cpus_without_a_tick_are_isolated_as_a_whole() {
    const CPU: &str = "sys/devices/system/cpu";
    let (isolated, tickless) = (format!("{CPU}/isolated"), format!("{CPU}/nohz_full"));
    let files = [
        (&*isolated, "\n"),
        (&*tickless, "1"),
        ("proc/sys/kernel/osrelease", "5.4.0"),
        ("proc/cmdline", "nohz_full=1"),
    ];
    let (_folder, root) = machine(&files);
    put(&root, "sys/devices/system/cpu/online", "0-3");
    assert_eq!(finding(&root, "cpu.isolated").remedy, "kernel arguments: `isolcpus=1 nohz_full=1 rcu_nocbs=1`");
    put(&root, &tickless, "\n");
    assert_eq!(finding(&root, "cpu.isolated").remedy, "kernel arguments: `isolcpus=3 nohz_full=3 rcu_nocbs=3`");
    put(&root, "boot/config-5.4.0", "CONFIG_RCU_NOCB_CPU=y\n");
    let remedy = finding(&root, "cpu.isolated").remedy;
    assert!(
        remedy.starts_with("use a kernel built with CONFIG_CPU_ISOLATION=y"),
        "rcu_nocbs isolates no CPU: {remedy}"
    );
}

/// While it leaves ASPM to the firmware, the kernel answers `Operation not permitted` to each policy.
#[test]
fn links_that_the_kernel_leaves_to_the_firmware_are_not_changed() {
    const POLICY: &str = "sys/module/pcie_aspm/parameters/policy";
    const LINK: &str = "sys/bus/pci/devices/0000:00:01.0/link/l1_aspm";
    let (_folder, root) = machine(&[
        (POLICY, "[default] performance powersave powersupersave"),
        ("sys/bus/pci/devices/0000:00:01.0/class", "0x060400"),
        ("proc/cmdline", "quiet pcie_aspm=off"),
    ]);
    let judged = || (finding(&root, "power.aspm").state, reason(&root, "power.aspm"));
    let off = Some("the kernel was booted with pcie_aspm=off".to_owned());
    assert_eq!(judged(), (FindingState::Unknown, off.clone()));
    put(&root, LINK, "1");
    assert_eq!(judged(), (FindingState::Unknown, off));
    put(&root, "proc/cmdline", "quiet");
    assert_eq!(judged(), (FindingState::Warn, None));
    fs::remove_file(root.path(LINK)).unwrap();
    // Kernels before 5.5 show no links at all.
    for (release, is_changed) in [("5.4.0", true), ("5.5.0", false), ("6.12.0", false)] {
        put(&root, "proc/sys/kernel/osrelease", release);
        let (state, why) = judged();
        assert_eq!((state, why.is_none()), (FindingState::Unknown, is_changed), "{release}");
    }
    put(&root, POLICY, "default performance [powersave] powersupersave");
    assert_eq!(judged(), (FindingState::Warn, None), "this policy was accepted");
    put(&root, POLICY, "default [performance] powersave powersupersave");
    assert_eq!(judged(), (FindingState::Ok, None));
}

#[test]
fn watchdogs_that_leave_the_isolated_cpus_are_no_fault() {
    const MASK: &str = "proc/sys/kernel/watchdog_cpumask";
    let (_folder, root) = machine(&[
        ("proc/sys/kernel/nmi_watchdog", "0"),
        ("proc/sys/kernel/soft_watchdog", "1"),
        ("sys/devices/system/cpu/isolated", "\n"),
        (MASK, "0-1"),
    ]);
    let judged = || {
        let found = finding(&root, "kernel.watchdog");
        let changes = tune::plan(&root, &Need::default()).unwrap().changes.into_iter();
        let changes = changes.filter(|setting| setting.id.starts_with("kernel.watchdog"));
        let changes = changes.map(|setting| format!("{} {}", setting.id, setting.writes.last().unwrap().to));
        (found.title, found.remedy, changes.collect::<Vec<_>>())
    };
    let everywhere = "watchdogs interrupt each CPU: soft".to_owned();
    let off = "echo 0 | sudo tee /proc/sys/kernel/soft_watchdog".to_owned();
    assert_eq!(judged(), (everywhere.clone(), off.clone(), vec!["kernel.watchdog 0".to_owned()]));
    // Without isolated CPUs, those that somebody left out count.
    put(&root, MASK, "0");
    assert_eq!(judged(), ("no watchdog interrupts CPU 1".to_owned(), String::new(), Vec::new()));
    put(&root, MASK, "0-1");
    put(&root, "sys/devices/system/cpu/isolated", "1");
    let away = (
        "watchdogs interrupt CPU 1: soft".to_owned(),
        format!("echo 0 | sudo tee /{MASK}"),
        vec!["kernel.watchdog_cpus 0".to_owned()],
    );
    assert_eq!(judged(), away);
    put(&root, MASK, "0");
    assert_eq!(judged(), ("no watchdog interrupts CPU 1".to_owned(), String::new(), Vec::new()));
    assert_eq!(finding(&root, "kernel.watchdog").state, FindingState::Ok);
    // Kernels before 4.2 have no such list.
    fs::remove_file(root.path(MASK)).unwrap();
    assert_eq!(judged(), (everywhere, off, vec!["kernel.watchdog 0".to_owned()]));
}

/// The kernel has no detector of hard lockups, or its driver manages an interrupt: the file has no mode to write.
#[test]
fn files_that_nobody_may_write_are_not_planned() {
    use std::os::unix::fs::PermissionsExt;
    const NMI: &str = "proc/sys/kernel/nmi_watchdog";
    const IRQ: &str = "proc/irq/36/smp_affinity_list";
    let (_folder, root) = machine(&[(NMI, "0"), ("proc/sys/kernel/soft_watchdog", "0"), (IRQ, "0-1")]);
    let written = |id: &'static str, value: &str| {
        let set = vec![format!("{id}={value}").parse().unwrap()];
        let need = Need { only: vec![id], set, cpus: Some("1".parse().unwrap()), ..Need::default() };
        let plan = tune::plan(&root, &need).unwrap();
        let settings = plan.changes.into_iter().chain(plan.right);
        settings.flat_map(|setting| setting.writes).map(|write| write.target.to_string()).collect::<Vec<_>>()
    };
    let all = || [written("kernel.watchdog", "on"), written("irq.affinity", "away")].concat();
    assert_eq!(all(), [&*format!("/{NMI}"), "/proc/sys/kernel/soft_watchdog", &*format!("/{IRQ}")]);
    for path in [NMI, IRQ] {
        fs::set_permissions(root.path(path), fs::Permissions::from_mode(0o444)).unwrap();
    }
    assert_eq!(all(), ["/proc/sys/kernel/soft_watchdog"]);
}

#[test]
fn a_governor_that_keeps_a_low_frequency_does_not_follow_the_load() {
    let cpufreq = |file: &str| [0, 1].map(|cpu| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"));
    let (_folder, root) = machine(&[]);
    let set = |file: &str, text: &str| cpufreq(file).iter().for_each(|path| put(&root, path, text));
    for (file, text) in [
        ("scaling_min_freq", "800000"),
        ("scaling_max_freq", "1600000"),
        ("cpuinfo_min_freq", "800000"),
        ("cpuinfo_max_freq", "1600000"),
        ("scaling_setspeed", "<unsupported>"),
    ] {
        set(file, text);
    }
    let judged = || {
        let found = ["cpu.governor", "cpu.frequency_limit"].map(|id| finding(&root, id));
        let plan = tune::plan(&root, &Need::default()).unwrap();
        let is_changed = plan.changes.iter().any(|setting| setting.id == "cpu.governor");
        (found[0].title.clone(), found[1].state, is_changed)
    };
    let by_load =
        |governor: &str| (format!("frequency changes with the load (governor {governor})"), FindingState::Ok, true);
    let kept = |mhz: &str, governor: &str| {
        (format!("CPUs 0-1 kept at {mhz} of 1600 MHz by the governor {governor}"), FindingState::NotApplicable, true)
    };
    set("scaling_governor", "powersave");
    assert_eq!(judged(), by_load("powersave"), "the driver is not known");
    for driver in ["intel_pstate", "amd-pstate-epp"] {
        set("scaling_driver", driver);
        assert_eq!(judged(), by_load("powersave"), "{driver}");
    }
    for driver in ["acpi-cpufreq", "intel_cpufreq", "amd-pstate", "cpufreq-dt"] {
        set("scaling_driver", driver);
        assert_eq!(judged(), kept("800", "powersave"), "{driver}");
    }
    set("scaling_governor", "userspace");
    set("scaling_setspeed", "1000000");
    assert_eq!(judged(), kept("1000", "userspace"));
    set("scaling_setspeed", "1600000");
    assert_eq!(judged(), ("frequency fixed (governor userspace)".to_owned(), FindingState::Ok, false));
}

#[test]
fn the_remedy_for_smt_is_not_one_that_the_kernel_refuses() {
    const CONTROL: &str = "sys/devices/system/cpu/smt/control";
    let (_folder, root) = machine(&[("sys/devices/system/cpu/smt/active", "1")]);
    let siblings = |list: &str| {
        for cpu in 0..2 {
            put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), list);
        }
    };
    for (state, is_taken) in [("on", true), ("8", true), ("notimplemented", false), ("notsupported", false)] {
        put(&root, CONTROL, state);
        siblings("0-1");
        let remedy = finding(&root, "cpu.smt").remedy;
        let offline = "echo 0 | sudo tee /sys/devices/system/cpu/cpu1/online";
        assert_eq!(remedy, if is_taken { format!("echo off | sudo tee /{CONTROL}") } else { offline.to_owned() });
        siblings("?");
        assert_eq!(finding(&root, "cpu.smt").remedy.starts_with("echo off"), is_taken, "{state}");
    }
}

/// The switch would take an isolated CPU offline that is not the first thread of its core.
#[test]
fn the_remedy_for_smt_keeps_isolated_cpus_online() {
    let remedy = |isolated: &str| {
        let (_folder, root) = machine(&[
            ("sys/devices/system/cpu/online", "0-3"),
            ("sys/devices/system/cpu/isolated", isolated),
            ("sys/devices/system/cpu/smt/active", "1"),
            ("sys/devices/system/cpu/smt/control", "on"),
        ]);
        for cpu in 0..4 {
            let siblings = format!("{},{}", cpu % 2, cpu % 2 + 2);
            put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), &siblings);
        }
        finding(&root, "cpu.smt").remedy
    };
    const SWITCH: &str = "echo off | sudo tee /sys/devices/system/cpu/smt/control";
    for isolated in ["\n", "1", "1,3"] {
        assert_eq!(remedy(isolated), SWITCH, "{isolated}");
    }
    let file = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/online");
    assert_eq!(remedy("3"), format!("echo 0 | sudo tee {} {}", file(2), file(1)));
    let other = "isolate another CPU than 2: CPU 0 of its core cannot go offline";
    assert_eq!(remedy("2"), format!("echo 0 | sudo tee {}\n{other}", file(3)));
}

#[test]
fn damaged_lists_of_cpus_give_no_cpus_to_use() {
    let (_folder, root) = machine(&[
        ("sys/devices/system/cpu/isolated", "\n"),
        ("proc/irq/default_smp_affinity", "3"),
        ("sys/devices/virtual/workqueue/cpumask", "3"),
    ]);
    let found = |id: &str| finding(&root, id);
    assert_eq!(found("cpu.isolated").state, FindingState::Warn);
    put(&root, "sys/devices/system/cpu/online", "0-");
    assert_eq!(found("cpu.isolated").state, FindingState::Unknown);
    put(&root, "sys/devices/system/cpu/isolated", "1");
    for id in ["irq.default_affinity", "cpu.workqueues"] {
        let found = found(id);
        assert_eq!(found.state, FindingState::Warn, "{id}");
        assert!(found.remedy.starts_with("find out why /sys/devices/system/cpu/online "), "{}", found.remedy);
    }
    put(&root, "sys/devices/system/cpu/online", "0-1");
    assert_eq!(found("cpu.workqueues").remedy, "echo 1 | sudo tee /sys/devices/virtual/workqueue/cpumask");
}

#[test]
fn callbacks_of_rcu_leave_cpus_without_a_tick_and_need_a_list() {
    let (_folder, root) = machine(&[
        ("sys/devices/system/cpu/isolated", "1"),
        ("sys/devices/system/cpu/nohz_full", "(null)"),
        ("proc/sys/kernel/osrelease", "6.12.0"),
        ("boot/config-6.12.0", "CONFIG_RCU_NOCB_CPU=y\n"),
    ]);
    let judged = |cmdline: &str| {
        put(&root, "proc/cmdline", cmdline);
        let found = finding(&root, "cpu.rcu_callbacks");
        (found.state, found.evidence)
    };
    assert_eq!(judged("isolcpus=1 rcu_nocbs").0, FindingState::Warn, "this offloads no CPU at boot");
    assert_eq!(judged("isolcpus=1 rcu_nocbs=1").0, FindingState::Ok);
    // The kernel ignored the arguments: it lacks the feature, or cannot read them.
    for ignored in ["isolcpus=nohz,domain,1", "isolcpus=1 nohz_full=1", "isolcpus=1 nohz_full=1-x"] {
        assert_eq!(judged(ignored).0, FindingState::Warn, "{ignored}");
    }
    let read = "/proc/cmdline = nohz_full=1, /sys/devices/system/cpu/nohz_full = (null)".to_owned();
    assert_eq!(judged("isolcpus=1 nohz_full=1").1, read);
    // The kernel says so itself.
    put(&root, "sys/devices/system/cpu/nohz_full", "1");
    let by_kernel = "/sys/devices/system/cpu/nohz_full = 1".to_owned();
    assert_eq!(judged("isolcpus=1"), (FindingState::Ok, by_kernel));
    assert_eq!(judged("isolcpus=nohz,domain,1").0, FindingState::Ok);
}

/// Without its configuration, sysfs shows what a kernel was built with.
#[test]
fn options_of_a_kernel_without_configuration_are_known_by_their_files() {
    const NOHZ_FULL: &str = "sys/devices/system/cpu/nohz_full";
    let (_folder, root) = machine(&[
        ("sys/devices/system/cpu/isolated", "\n"),
        ("sys/devices/system/cpu/online", "0-3"),
        ("proc/cmdline", "quiet"),
        ("proc/sys/kernel/osrelease", "6.12.0"),
    ]);
    let advised = || finding(&root, "cpu.isolated").remedy;
    assert_eq!(advised(), "kernel arguments: `isolcpus=managed_irq,domain,3 rcu_nocbs=3`");
    put(&root, "sys/module/rcutree/parameters/blimit", "10");
    assert_eq!(advised(), "kernel arguments: `isolcpus=managed_irq,domain,3`");
    put(&root, "sys/devices/system/cpu/isolated", "3");
    assert_eq!(finding(&root, "cpu.rcu_callbacks").state, FindingState::NotApplicable);
    put(&root, "sys/devices/system/cpu/isolated", "\n");
    put(&root, "sys/module/rcutree/parameters/rcu_nocb_gp_stride", "-1");
    assert_eq!(advised(), "kernel arguments: `isolcpus=managed_irq,domain,3 rcu_nocbs=3`");
    let whole = "kernel arguments: `isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3`";
    put(&root, NOHZ_FULL, "(null)");
    assert_eq!(advised(), whole);
    fs::remove_file(root.path(NOHZ_FULL)).unwrap();
    // The configuration decides, and old kernels do not show it.
    put(&root, "boot/config-6.12.0", "CONFIG_CPU_ISOLATION=y\nCONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\n");
    assert_eq!(advised(), whole);
    put(&root, "proc/sys/kernel/osrelease", "4.1.0");
    assert_eq!(advised(), "kernel arguments: `isolcpus=3 nohz_full=3 rcu_nocbs=3`");
}

/// The governor `userspace` keeps the frequency that a program has set.
#[test]
fn the_governor_userspace_is_judged_by_the_frequency_that_is_set() {
    let (_folder, root) = machine(&[]);
    let set = |file: &str, text: &str| {
        (0..2).for_each(|cpu| put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"), text));
    };
    for (file, text) in [
        ("scaling_governor", "userspace"),
        ("scaling_min_freq", "800000"),
        ("scaling_max_freq", "2000000"),
        ("cpuinfo_max_freq", "2000000"),
    ] {
        set(file, text);
    }
    let found = |khz: &str| {
        set("scaling_setspeed", khz);
        let found = finding(&root, "cpu.governor");
        let set_to = format!("/sys/devices/system/cpu/cpu0/cpufreq/scaling_setspeed = {khz}");
        let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor = userspace, ";
        assert_eq!(found.evidence, format!("{governor}{set_to}"));
        (found.state, found.title)
    };
    assert_eq!(found("2000000"), (FindingState::Ok, "frequency fixed (governor userspace)".to_owned()));
    let slow = "CPUs 0-1 kept at 800 of 2000 MHz by the governor userspace".to_owned();
    assert_eq!(found("800000"), (FindingState::Warn, slow));
    assert_eq!(found("<unsupported>").0, FindingState::Unknown);
}

/// With turbo off, the highest frequency of the hardware cannot be reached: neither the check nor the plan wants it.
#[test]
fn a_frequency_that_the_kernel_limits_is_the_highest_one() {
    let (_folder, root) = machine(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "1")]);
    let set = |file: &str, text: &str| {
        (0..2).for_each(|cpu| put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"), text));
    };
    for (file, text) in [
        ("scaling_driver", "intel_cpufreq"),
        ("scaling_min_freq", "2000000"),
        ("scaling_max_freq", "2000000"),
        ("cpuinfo_min_freq", "800000"),
        ("cpuinfo_max_freq", "4000000"),
        ("base_frequency", "2000000"),
    ] {
        set(file, text);
    }
    for governor in ["powersave", "schedutil"] {
        set("scaling_governor", governor);
        let planned = || {
            let plan = tune::plan(&root, &Need::default()).unwrap();
            plan.changes.iter().any(|setting| setting.id == "cpu.governor")
        };
        put(&root, "sys/devices/system/cpu/intel_pstate/no_turbo", "1");
        assert_eq!((finding(&root, "cpu.governor").state, planned()), (FindingState::Ok, false), "{governor}");
        // The limit is the user's: it is lifted, and the frequency then follows the load or stays low.
        put(&root, "sys/devices/system/cpu/intel_pstate/no_turbo", "0");
        assert!(planned(), "{governor}");
    }
}

/// Isolated CPUs are for real-time work.
#[test]
fn the_governor_of_the_isolated_cpus_counts() {
    let (_folder, root) = machine(&[("sys/devices/system/cpu/isolated", "1")]);
    let governor = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    put(&root, &governor(0), "schedutil");
    put(&root, &governor(1), "performance");
    let planned = || {
        let plan = tune::plan(&root, &Need::default()).unwrap();
        plan.changes.into_iter().find(|setting| setting.id == "cpu.governor").map(|setting| setting.writes.len())
    };
    let found = finding(&root, "cpu.governor");
    assert_eq!((found.state, &*found.title), (FindingState::Ok, "frequency governor performance on isolated CPU 1"));
    assert_eq!(planned(), None);
    put(&root, &governor(1), "schedutil");
    assert_eq!((finding(&root, "cpu.governor").state, planned()), (FindingState::Warn, Some(1)));
    put(&root, "sys/devices/system/cpu/isolated", "\n");
    put(&root, &governor(1), "performance");
    assert_eq!((finding(&root, "cpu.governor").state, planned()), (FindingState::Warn, Some(2)));
}

/// A kernel with both limits of real-time threads, whose fair server only root can read.
#[test]
fn the_limit_that_can_be_read_is_judged_without_the_other() {
    let (_folder, root) = machine(&[
        ("proc/sys/kernel/osrelease", "6.12.0"),
        ("boot/config-6.12.0", "CONFIG_RT_GROUP_SCHED=y\n"),
        ("proc/sys/kernel/sched_rt_period_us", "1000000"),
        ("sys/devices/system/cpu/online", "0"),
    ]);
    const SERVER: &str = "sys/kernel/debug/sched/fair_server/cpu0/runtime";
    std::os::unix::fs::symlink("debug", root.path("sys/kernel/debug")).unwrap_or_else(|_| {
        fs::create_dir_all(root.path("sys/kernel")).unwrap();
        std::os::unix::fs::symlink("debug", root.path("sys/kernel/debug")).unwrap();
    });
    let found = |runtime_us: &str| {
        put(&root, "proc/sys/kernel/sched_rt_runtime_us", runtime_us);
        let found = finding(&root, "rt.throttling");
        (found.state, found.title)
    };
    let (state, title) = found("950000");
    assert_eq!(state, FindingState::Warn);
    let stopped = "busy real-time threads are stopped for 50 ms of every 1000 ms; fair server not readable";
    assert!(title.starts_with(stopped), "{title}");
    let (state, title) = found("-1");
    assert!(
        state == FindingState::Unknown && title.starts_with("real-time threads are not throttled; fair"),
        "{title}"
    );
    fs::remove_file(root.path("sys/kernel/debug")).unwrap();
    put(&root, SERVER, "0");
    assert_eq!(found("-1").0, FindingState::Ok);
    assert_eq!(found("950000").0, FindingState::Warn);
    // Without the configuration, the kernel may have both.
    fs::remove_file(root.path("boot/config-6.12.0")).unwrap();
    assert_eq!([found("-1").0, found("950000").0], [FindingState::Ok, FindingState::Unknown]);
    put(&root, "boot/config-6.12.0", "CONFIG_HZ=250\n");
    assert_eq!(found("950000").0, FindingState::Ok);
}

/// Each size of transparent huge pages has a mode of its own.
#[test]
fn sizes_of_huge_pages_have_modes_of_their_own() {
    const FOLDER: &str = "sys/kernel/mm/transparent_hugepage";
    let (_folder, root) = machine(&[(&format!("{FOLDER}/enabled"), "always [madvise] never")]);
    let size = |kib: u32| format!("{FOLDER}/hugepages-{kib}kB/enabled");
    put(&root, &size(2048), "always [inherit] madvise never");
    put(&root, &size(64), "always inherit madvise [never]");
    let found = || finding(&root, "memory.thp");
    let planned = |value: &str| {
        let set = vec![format!("memory.thp{value}").parse().unwrap()];
        let plan = tune::plan(&root, &Need { set, only: vec!["memory.thp"], ..Default::default() }).unwrap();
        let writes = plan.changes.iter().flat_map(|setting| setting.changes());
        writes.map(|write| format!("{}: {}", write.target, write.to)).collect::<Vec<_>>()
    };
    assert_eq!((found().state, planned("")), (FindingState::Ok, Vec::new()));
    put(&root, &size(64), "[always] inherit madvise never");
    assert_eq!(found().title, "transparent huge pages of 64kB for every process");
    assert_eq!(found().remedy, format!("echo madvise | sudo tee /{}", size(64)));
    assert_eq!(planned(""), [format!("/{}: madvise", size(64))]);
    assert_eq!(planned("=never"), [format!("/{FOLDER}/enabled: never"), format!("/{}: never", size(64))]);
    put(&root, &format!("{FOLDER}/enabled"), "[always] madvise never");
    assert_eq!(found().remedy, format!("echo madvise | sudo tee /{FOLDER}/enabled /{}", size(64)));
    put(&root, &size(64), "");
    assert_eq!(found().state, FindingState::Unknown);
}

/// Version 2 of control groups gives time for real-time threads to no group.
#[test]
fn a_group_of_version_two_has_no_time_for_realtime_threads() {
    const GROUP: &str = "sys/fs/cgroup/user.slice";
    let (_folder, root) = machine(&[
        ("proc/self/cgroup", "0::/user.slice/a.scope\n"),
        ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("proc/cmdline", "quiet"),
        ("proc/sys/kernel/osrelease", "6.16.0"),
        ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
        (&format!("{GROUP}/cgroup.events"), "populated 1\n"),
        (&format!("{GROUP}/cgroup.controllers"), "cpu memory pids\n"),
        (&format!("{GROUP}/a.scope/cgroup.controllers"), "memory pids\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n"),
    ]);
    let config = |text: &str| put(&root, "boot/config-6.16.0", text);
    let found = || finding(&root, "rights.rt_budget");
    let state = || found().state;
    assert_eq!(state(), FindingState::Unknown, "the configuration is not known");
    config("CONFIG_HZ=250\n");
    assert_eq!(state(), FindingState::NotApplicable);
    config("CONFIG_RT_GROUP_SCHED=y\n");
    let refused = found();
    let title = "control group /user.slice has no time for real-time threads";
    assert_eq!((refused.state, &*refused.title), (FindingState::Fail, title));
    assert!(
        refused.remedy.starts_with("echo $$ | sudo tee /sys/fs/cgroup/cgroup.procs ")
            && refused.remedy.ends_with("`rt_group_sched=0`")
    );
    put(&root, "proc/cmdline", "rt_group_sched=0");
    assert_eq!(state(), FindingState::NotApplicable);
    put(&root, "proc/cmdline", "rt_group_sched=1");
    config("CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n");
    assert_eq!(state(), FindingState::Fail);
    put(&root, "proc/cmdline", "quiet");
    assert_eq!(state(), FindingState::NotApplicable);
    config("CONFIG_RT_GROUP_SCHED=y\n");
    put(&root, "proc/sys/kernel/sched_rt_runtime_us", "-1");
    assert_eq!(state(), FindingState::Ok);
    put(&root, "proc/sys/kernel/sched_rt_runtime_us", "950000");
    // The root of a namespace is another group.
    put(&root, "proc/self/cgroup", "0::/\n");
    assert_eq!(state(), FindingState::NotApplicable);
    put(&root, "sys/fs/cgroup/cgroup.events", "populated 1\n");
    assert_eq!(state(), FindingState::Fail);
    assert!(found().remedy.starts_with("on the host: kernel argument"), "{}", found().remedy);
    put(&root, "sys/fs/cgroup/cgroup.controllers", "memory pids\n");
    assert_eq!(state(), FindingState::NotApplicable);
    put(&root, "proc/self/mountinfo", "30 23 0:26 / / rw - ext4 /dev/sda rw\n");
    assert_eq!(state(), FindingState::Unknown);
    put(&root, "proc/self/cgroup", "3:cpu,cpuacct:/a\n");
    assert_eq!(state(), FindingState::Unknown, "a group of version 1 that is not mounted");
    config("CONFIG_HZ=250\n");
    assert_eq!(state(), FindingState::NotApplicable);
}

#[test]
fn services_are_stopped_by_the_program_that_starts_them() {
    let (_folder, root) = machine(&[("proc/700/comm", "irqbalance"), ("sys/devices/system/cpu/isolated", "\n")]);
    let stop = || (finding(&root, "irq.balance").remedy, tune::by_hand(&root, &CpuList::new()).remove(0));
    let by = |disable: &str, stop: &str| (disable.to_owned(), format!("irqbalance moves interrupts: {stop}"));
    let by_systemd = by("sudo systemctl disable --now irqbalance", "sudo systemctl stop irqbalance");
    assert_eq!(stop(), by_systemd);
    put(&root, "etc/init.d/irqbalance", "#!/bin/sh\n");
    put(&root, "proc/1/comm", "systemd");
    assert_eq!(stop(), by_systemd, "its scripts are for other programs");
    put(&root, "proc/1/comm", "init");
    let stopped = "sudo /etc/init.d/irqbalance stop";
    assert_eq!(stop(), by(&format!("{stopped}; sudo rm /etc/rc?.d/S??irqbalance"), stopped));
    fs::create_dir_all(root.path("run/runit")).unwrap();
    assert_eq!(stop().1, "irqbalance moves interrupts: sudo sv down irqbalance");
    put(&root, "run/openrc/softlevel", "default");
    let by_openrc =
        by("sudo rc-service irqbalance stop; sudo rc-update del irqbalance", "sudo rc-service irqbalance stop");
    assert_eq!(stop(), by_openrc);
    let added = tune::by_hand(&root, &"1".parse().unwrap()).remove(0);
    let restart = "sudo tee -a /etc/conf.d/irqbalance; sudo rc-service irqbalance restart";
    assert!(added.ends_with(restart), "{added}");
    fs::create_dir_all(root.path("run/systemd/system")).unwrap();
    assert_eq!(stop(), by_systemd);
}

#[test]
fn the_line_for_irqbalance_keeps_the_cpus_that_it_leaves_alone() {
    const FILE: &str = "etc/default/irqbalance";
    let (_folder, root) = machine(&[("proc/700/comm", "irqbalance"), ("sys/devices/system/cpu/isolated", "\n")]);
    put(&root, "sys/devices/system/cpu/online", "0-3");
    let line = || tune::by_hand(&root, &"3".parse().unwrap()).pop().unwrap_or_default();
    let added = |cpus: &str| {
        format!(
            "irqbalance moves interrupts: echo IRQBALANCE_BANNED_CPULIST={cpus} | sudo tee -a /{FILE}; sudo systemctl restart irqbalance"
        )
    };
    assert_eq!(line(), added("3"));
    for (text, expected) in [
        ("#IRQBALANCE_BANNED_CPULIST=1\n", added("3")),
        ("IRQBALANCE_BANNED_CPULIST=\nIRQBALANCE_BANNED_CPUS=\n", added("3")),
        ("IRQBALANCE_BANNED_CPULIST=1\n", added("1,3")),
        ("IRQBALANCE_BANNED_CPULIST=0\nIRQBALANCE_BANNED_CPULIST=\"1-2\"\n", added("1-3")),
        ("IRQBALANCE_BANNED_CPUS=00000000,00000002\n", added("1,3")),
        ("IRQBALANCE_BANNED_CPULIST=3\n", String::new()),
        ("IRQBALANCE_BANNED_CPULIST='1-3'\n", String::new()),
    ] {
        put(&root, FILE, text);
        assert_eq!(line(), expected, "{text}");
    }
    put(&root, FILE, "IRQBALANCE_BANNED_CPULIST=$OTHERS\n");
    assert!(line().contains("make sure that the CPUs that /etc/default/irqbalance bans contain 3"), "{}", line());
    // While nothing is set, it leaves isolated CPUs and those without a tick alone.
    fs::remove_file(root.path(FILE)).unwrap();
    assert_eq!(finding(&root, "irq.balance").state, FindingState::Warn);
    put(&root, "sys/devices/system/cpu/isolated", "2");
    assert_eq!((line(), finding(&root, "irq.balance").state), (added("2-3"), FindingState::Ok));
    put(&root, "sys/devices/system/cpu/nohz_full", "3");
    assert_eq!(line(), "");
    put(&root, FILE, "IRQBALANCE_BANNED_CPULIST=3\n");
    assert_eq!(finding(&root, "irq.balance").state, FindingState::Warn, "CPU 2 is not banned any more");
}

#[test]
fn the_command_for_a_real_time_kernel_is_one_of_this_machine() {
    let (_folder, root) = machine(&[("proc/sys/kernel/version", "#1 SMP")]);
    let remedy = |os: &str, arch: &str, release: &str| {
        put(&root, "etc/os-release", &format!("PRETTY_NAME=\"{os}\"\n"));
        put(&root, "proc/sys/kernel/arch", arch);
        put(&root, "proc/sys/kernel/osrelease", release);
        finding(&root, "kernel.preempt").remedy
    };
    let pro = "sudo pro enable realtime-kernel";
    let source = "install a kernel built with CONFIG_PREEMPT_RT=y (mainline since Linux 6.12)";
    for (os, arch, release, expected) in [
        ("Ubuntu 22.04.5 LTS", "x86_64", "5.15.0-100-generic", pro),
        ("Ubuntu 24.04.3 LTS", "aarch64", "6.8.0-50-generic", pro),
        ("Ubuntu 25.10", "x86_64", "6.17.0-5-generic", source),
        ("Ubuntu 20.04.6 LTS", "x86_64", "5.4.0-216-generic", source),
        ("Ubuntu 24.04.3 LTS", "aarch64", "6.1.75-rockchip", source),
        ("Debian GNU/Linux 13 (trixie)", "aarch64", "6.12.57+deb13-arm64", "sudo apt install linux-image-rt-arm64"),
        ("Debian GNU/Linux 12 (bookworm)", "aarch64", "6.6.58-ti-arm64-r15", source),
    ] {
        assert_eq!(remedy(os, arch, release), expected, "{os} {release}");
    }
    for os in ["Ubuntu 22.04.5 LTS", "Ubuntu 18.04.6 LTS"] {
        assert!(remedy(os, "aarch64", "5.15.148-tegra").contains("of NVIDIA for this board"), "{os}");
    }
}

#[test]
fn the_boot_loader_of_a_container_is_not_the_one_that_counts() {
    let (_folder, root) = machine(&[
        ("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=0\"\n"),
        ("usr/sbin/update-grub", ""),
        ("proc/cmdline", "quiet"),
    ]);
    let steps = || tune::boot(&root, &"1".parse().unwrap()).unwrap().steps;
    assert_eq!(steps()[1], "sudo update-grub");
    put(&root, "run/.containerenv", "");
    let arguments = "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0";
    assert_eq!(steps()[0], format!("add to the kernel's arguments on the host, in its boot loader: {arguments}"));
    assert_eq!(steps().len(), 2, "{:?}", steps());
}

#[test]
fn reasons_and_remedies_are_those_of_the_case() {
    let found = |files: &[(&str, &str)], id: &str| {
        let (_folder, root) = machine(files);
        finding(&root, id)
    };
    let thp = |modes| found(&[("sys/kernel/mm/transparent_hugepage/enabled", modes)], "memory.thp").title;
    assert_eq!(thp("always [madvise] never"), "huge pages only on request");
    assert_eq!(thp("always madvise [never]"), "no transparent huge pages");
    let swap = |areas: &str| {
        let text = format!("Filename Type Size Used Priority\n{areas}");
        found(&[("proc/swaps", &text)], "memory.swap").why
    };
    assert!(swap("/dev/zram0 partition 1 0 100\n").contains("until it is decompressed"));
    assert!(swap("/dev/zram0 partition 1 0 100\n/dev/sda2 partition 1 0 -2\n").contains("milliseconds for the disk"));
    let guest = |vendor| {
        let cpuinfo = ("proc/cpuinfo", "flags\t\t: fpu hypervisor\n");
        found(&[cpuinfo, ("sys/class/dmi/id/sys_vendor", vendor)], "machine.hypervisor").remedy
    };
    assert!(guest("QEMU").ends_with(" (vcpupin of virsh)"));
    assert!(guest("VMware, Inc.").ends_with(" to a CPU of its own"));
    let timers = |tickless| {
        let files = [("sys/devices/system/cpu/nohz_full", tickless), ("proc/sys/kernel/timer_migration", "1")];
        found(&files, "kernel.timer_migration").title
    };
    assert_eq!(timers("1"), "timers of CPU 1 may run on other CPUs");
    assert_eq!(timers("0-1"), "timers of CPUs 0-1 may run on other CPUs");
}

/// A process may raise its soft limit by itself.
#[test]
fn a_right_that_the_hard_limit_grants_needs_no_setup() {
    let remedy = |limits: &str| {
        let limits = format!("Limit Soft Hard Units\nMax realtime priority     {limits}\n");
        let (_folder, root) =
            machine(&[("proc/self/status", "CapEff:\t0000000000000000\n"), ("proc/self/limits", &limits)]);
        let found = finding(&root, "rights.realtime");
        assert_eq!(found.state, FindingState::Fail);
        found.remedy
    };
    assert!(remedy("0 95").starts_with("ulimit -S -r 95   # in this shell\nsudo "), "{}", remedy("0 95"));
    assert!(remedy("0 0").starts_with("sudo "), "{}", remedy("0 0"));
}

#[test]
fn an_empty_list_of_cpus_is_refused() {
    let (_folder, root) = machine(&[]);
    let need = Need { cpus: Some("".parse().unwrap()), ..Need::default() };
    let error = tune::plan(&root, &need).unwrap_err().to_string();
    assert_eq!(error, "the list of CPUs is empty: name at least one of 0-1");
}

/// A machine with four CPUs, two of them isolated. Each interrupt has a number, handlers, CPUs, and a CPU in use.
fn with_interrupts(release: &str, cmdline: &str, interrupts: &[(u32, &str, &str, &str)]) -> (TempDir, Root) {
    let (folder, root) = machine(&[
        ("sys/devices/system/cpu/online", "0-3"),
        ("sys/devices/system/cpu/isolated", "2-3"),
        ("proc/sys/kernel/osrelease", release),
        ("proc/cmdline", cmdline),
    ]);
    let mut table = "           CPU0       CPU1       CPU2       CPU3\n".to_owned();
    for (number, handlers, cpus, effective) in interrupts {
        table += &format!(" {number}: 1 1 1 1 PCI-MSIX-0000:01:00.0 {number}-edge {handlers}\n");
        put(&root, &format!("proc/irq/{number}/smp_affinity_list"), cpus);
        put(&root, &format!("proc/irq/{number}/effective_affinity_list"), effective);
        fs::create_dir_all(root.path(&format!("proc/irq/{number}/{handlers}"))).unwrap();
    }
    put(&root, "proc/interrupts", &table);
    (folder, root)
}

/// The kernel refuses to move the interrupts of a disk's queues, and does not show before Linux 6.13 which these are.
#[test]
fn no_command_moves_the_queue_of_a_disk() {
    const ISOLATED: &str = "isolcpus=2-3";
    let judge = |release: &str, cmdline: &str, interrupts: &[(u32, &str, &str, &str)]| {
        let (_folder, root) = with_interrupts(release, cmdline, interrupts);
        let Finding { state, title, remedy, lasts, .. } = finding(&root, "irq.affinity");
        (state, title, remedy, lasts)
    };
    let own = [(24, "nvme0q0", "0-3", "0"), (25, "nvme0q3", "2", "2"), (26, "virtio0-req.3", "3", "3")];
    let (state, title, ..) = judge("6.1.0", ISOLATED, &own);
    assert_eq!(state, FindingState::Ok, "only what CPUs 2-3 start");
    assert_eq!(title, "no interrupt of a device arrives at CPUs 2-3, except for disk I/O that they start");
    // Such interrupts of old kernels were moved as all others.
    assert_eq!(
        judge("4.9.0", ISOLATED, &own).2,
        "echo 0-1 | sudo tee /proc/irq/25/smp_affinity_list /proc/irq/26/smp_affinity_list"
    );

    let shared = [(25, "nvme0q1", "0-3", "2")];
    let (state, _, remedy, lasts) = judge("6.1.0", ISOLATED, &shared);
    assert_eq!((state, lasts), (FindingState::Warn, Some(record::Lasts::Permanent)));
    assert_eq!(remedy, "kernel argument: `isolcpus=managed_irq,domain,2-3`");
    assert!(judge("5.4.0", ISOLATED, &shared).2.starts_with("use a kernel from Linux 5.6 on"));
    let with_flag = judge("6.1.0", "isolcpus=managed_irq,domain,2-3", &shared);
    assert!(with_flag.2.ends_with("see cat /proc/irq/25/smp_affinity_list"), "{}", with_flag.2);
    let (_, title, remedy, lasts) = judge("6.1.0", ISOLATED, &[shared[0], (30, "eth0", "0-3", "3")]);
    assert_eq!(title, "interrupt 25 (nvme0q1) and 1 more can arrive at CPUs 2-3");
    assert_eq!(
        remedy,
        "echo 0-1 | sudo tee /proc/irq/30/smp_affinity_list\nkernel argument: `isolcpus=managed_irq,domain,2-3`"
    );
    assert_eq!(lasts, Some(record::Lasts::UntilBoot));
}

/// Since Linux 6.13, nobody has the right to write the file.
#[test]
fn no_command_moves_an_interrupt_without_a_writable_file() {
    use std::os::unix::fs::PermissionsExt;

    let (_folder, root) = with_interrupts("6.13.0", "", &[(30, "gpio-keys", "0-3", ""), (31, "fixed", "0-3", "3")]);
    for number in [30, 31] {
        let path = root.path(&format!("proc/irq/{number}/smp_affinity_list"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
    }
    let found = finding(&root, "irq.affinity");
    assert_eq!(
        found.title, "interrupt 31 (fixed) can arrive at CPUs 2-3",
        "the other one arrives through its controller"
    );
    assert!(found.remedy.starts_with("use another CPU for real-time work"), "{}", found.remedy);
    fs::remove_dir_all(root.path("proc/irq/31")).unwrap();
    put(&root, "proc/irq/31/effective_affinity_list", "1");
    assert_eq!(finding(&root, "irq.affinity").state, FindingState::Ok);
}

#[test]
fn a_plan_says_which_interrupts_stay() {
    let plan = |interrupts: &[(u32, &str, &str, &str)], only: &[&'static str]| {
        let (folder, root) = with_interrupts("6.1.0", "", interrupts);
        let plan = tune::plan(&root, &Need { only: only.to_vec(), ..Need::default() }).unwrap();
        (folder, plan)
    };
    let note = |interrupts: &[(u32, &str, &str, &str)], only: &[&'static str]| {
        let (_folder, plan) = plan(interrupts, only);
        let setting = plan.changes.into_iter().find(|setting| setting.id == "irq.affinity").unwrap();
        (setting.writes.len(), setting.effect, setting.note)
    };
    let (eth, queue) = ((30, "eth0", "0-3", "3"), (25, "nvme0q1", "0-3", "2"));
    let effect = "devices interrupt other CPUs";
    assert_eq!(note(&[eth], &[]), (1, effect, None));
    let stays = "nvme0q1 stays: its driver probably manages this interrupt".to_owned();
    assert_eq!(note(&[eth, queue], &[]), (2, effect, Some(stays.clone())), "it is tried, because that is not certain");
    assert_eq!(note(&[queue], &["irq.affinity"]), (1, "none expected here", Some(stays)));
    let (_folder, of_own) = plan(&[(26, "nvme0q3", "2-3", "3")], &[]);
    assert!(of_own.right.iter().any(|setting| setting.id == "irq.affinity"), "only I/O of CPUs 2-3");
    let (_folder, plan) = plan(&[queue, (26, "nvme0q2", "1-2", "2")], &[]);
    let reason = plan.not_here.into_iter().find(|not| not.id == "irq.affinity").unwrap().reason;
    assert_eq!(reason, "nvme0q1 and 1 more stay: their drivers probably manage these interrupts");
}

/// `isolcpus=2-3` isolates the CPUs, but not from the queues of disks that they share with others.
#[test]
fn the_flag_for_queues_is_missing_only_on_machines_with_such_queues() {
    let arguments = |cpus: &str, cmdline: &str| {
        let (_folder, root) = with_interrupts("6.1.0", cmdline, &[(25, "nvme0q1", cpus, "2")]);
        tune::boot(&root, &"2-3".parse().unwrap()).map(|boot| boot.arguments).unwrap_or_default()
    };
    const OTHERS: &str = "nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1";
    assert_eq!(arguments("1-2", &format!("isolcpus=2-3 {OTHERS}")), "isolcpus=managed_irq,domain,2-3");
    assert_eq!(arguments("2", &format!("isolcpus=2-3 {OTHERS}")), "");
    assert_eq!(arguments("1-2", &format!("isolcpus=managed_irq,domain,2-3 {OTHERS}")), "");
}

#[test]
fn the_tick_of_cpu_0_has_no_argument_as_remedy() {
    let remedy = |isolated: &str, tickless: &str| {
        let cpu = |file: &str| format!("sys/devices/system/cpu/{file}");
        let (_folder, root) = machine(&[
            (&cpu("online"), "0-3"),
            (&cpu("isolated"), isolated),
            (&cpu("nohz_full"), tickless),
            ("proc/sys/kernel/osrelease", "6.1.0"),
        ]);
        finding(&root, "cpu.tick").remedy
    };
    assert!(remedy("0-1", "1").starts_with("use another CPU than CPU 0"));
    assert_eq!(
        remedy("0-1", "(null)"),
        "kernel arguments: `isolcpus=managed_irq,domain,0-1 nohz_full=1 rcu_nocbs=0-1`"
    );
    assert_eq!(remedy("1", "1"), "");
}

/// The kernel adds CPU 0, on which it boots, to `irqaffinity`.
#[test]
fn an_argument_that_cannot_help_is_no_remedy() {
    const PATH: &str = "proc/irq/default_smp_affinity";
    let remedy = |isolated: &str, cmdline: &str| {
        let (_folder, root) = machine(&[
            ("sys/devices/system/cpu/online", "0-3"),
            ("sys/devices/system/cpu/present", "0-5"),
            ("sys/devices/system/cpu/isolated", isolated),
            ("proc/cmdline", cmdline),
            (PATH, "3f"),
        ]);
        finding(&root, "irq.default_affinity").remedy
    };
    assert_eq!(remedy("2-3", "quiet"), "kernel argument: `irqaffinity=0-1,4-5`");
    assert_eq!(remedy("2-3", "irqaffinity=0-2"), "kernel argument: `irqaffinity=0-1,4-5`");
    assert_eq!(remedy("2-3", "irqaffinity=0-1"), format!("echo 33 | sudo tee /{PATH}"), "changed since the boot");
    assert_eq!(remedy("0", "irqaffinity=1-3"), format!("echo 3e | sudo tee /{PATH}"));
}

/// Too little memory for these commands would end programs.
#[test]
fn no_remedy_takes_more_memory_than_there_is() {
    const RUN: &str = "sys/kernel/mm/ksm/run";
    let with = |available_kib: u64| {
        machine(&[
            ("proc/meminfo", &format!("MemTotal: 8000000 kB\nMemAvailable: {available_kib} kB\n")),
            ("proc/swaps", "Filename Type Size Used Priority\n/a partition 900000 300000 -2\n/b file 900000 1000 -3\n"),
            (RUN, "1"),
            ("sys/kernel/mm/ksm/pages_sharing", "100000"),
        ])
    };
    let (_folder, root) = with(4_000_000);
    assert_eq!(finding(&root, "memory.swap").remedy, "sudo swapoff -a");
    assert_eq!(finding(&root, "memory.ksm").remedy, format!("echo 2 | sudo tee /{RUN}"));
    assert_eq!(reason(&root, "memory.ksm"), None);
    let (_folder, root) = with(300_000);
    let remedy = finding(&root, "memory.swap").remedy;
    assert!(remedy.ends_with("swap contains 294 MiB, and 293 MiB are available"), "{remedy}");
    let remedy = finding(&root, "memory.ksm").remedy;
    assert!(remedy.starts_with(&format!("echo 0 | sudo tee /{RUN}   # pages stay merged")), "{remedy}");
    assert!(reason(&root, "memory.ksm").unwrap().ends_with("(memory.ksm=stop)"));
}

#[test]
fn isolation_is_good_only_with_online_cpus_and_others() {
    let judge = |isolated: &str| {
        let (_folder, root) = machine(&[("sys/devices/system/cpu/isolated", isolated)]);
        let Finding { state, title, remedy, .. } = finding(&root, "cpu.isolated");
        (state, title, remedy)
    };
    assert_eq!(judge("1").0, FindingState::Ok);
    assert_eq!(judge("1-2").0, FindingState::Ok);
    let (state, title, remedy) = judge("2");
    assert_eq!((state, &*title), (FindingState::Warn, "the isolated CPUs (2) are offline"));
    assert_eq!(remedy, "echo 1 | sudo tee /sys/devices/system/cpu/cpu2/online");
    let (state, title, remedy) = judge("0-1");
    assert_eq!((state, &*title), (FindingState::Warn, "all CPUs are isolated, so no CPU remains for other work"));
    assert!(remedy.contains("isolcpus=managed_irq,domain,1 "), "{remedy}");
}

/// They may belong to other real-time work.
#[test]
fn work_does_not_move_to_isolated_cpus_that_were_not_named() {
    let (_folder, root) = with_interrupts("6.1.0", "", &[(30, "eth0", "0-3", "3"), (31, "can0", "2", "2")]);
    put(&root, "proc/irq/default_smp_affinity", "f");
    let planned = |isolated: &str, id: &'static str| {
        put(&root, "sys/devices/system/cpu/isolated", isolated);
        let need = Need { cpus: Some("3".parse().unwrap()), only: vec![id], ..Need::default() };
        let plan = tune::plan(&root, &need).unwrap();
        let [setting] = plan.changes.as_slice() else { panic!("{plan:?}") };
        setting.writes.iter().map(|write| write.to.clone()).collect::<Vec<_>>()
    };
    assert_eq!(planned("2-3", "irq.affinity"), ["0-1"], "that of CPU 2 stays");
    assert_eq!(planned("2-3", "irq.default_affinity"), ["3"]);
    assert_eq!(planned("", "irq.affinity"), ["0-2"]);
    assert_eq!(planned("", "irq.default_affinity"), ["7"]);
}

/// `scaling_max_freq` shows these limits. A written value would be the user's, and stay after them.
#[test]
fn a_limit_of_the_kernel_is_not_lifted() {
    let judge = |files: &[(&str, &str)]| {
        let (_folder, root) = machine(&[]);
        for cpu in 0..2 {
            let cpufreq = |file: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}");
            put(&root, &cpufreq("scaling_max_freq"), "1800000");
            put(&root, &cpufreq("cpuinfo_max_freq"), "4900000");
            put(&root, &cpufreq("cpuinfo_min_freq"), "400000");
            put(&root, &cpufreq("bios_limit"), "4900000");
        }
        files.iter().for_each(|(path, text)| put(&root, path, text));
        let Finding { state, title, remedy, .. } = finding(&root, "cpu.frequency_limit");
        let plan = tune::plan(&root, &Need { only: vec!["cpu.max_freq"], ..Need::default() }).unwrap();
        let not_here = plan.not_here.iter().find(|not| not.id == "cpu.max_freq").map(|not| not.reason.clone());
        (state, title, remedy.is_empty(), not_here)
    };
    const LIMITED: &str = "CPUs 0-1 limited to 1800 of 4900 MHz";
    const NO_TURBO: (&str, &str) = ("sys/devices/system/cpu/intel_pstate/no_turbo", "1");
    const BASE: [&str; 2] =
        ["sys/devices/system/cpu/cpu0/cpufreq/base_frequency", "sys/devices/system/cpu/cpu1/cpufreq/base_frequency"];
    let by_user = (FindingState::Warn, LIMITED.to_owned(), false, None);
    assert_eq!(judge(&[]), by_user);
    assert_eq!(
        judge(&[NO_TURBO, (BASE[0], "2400000"), (BASE[1], "2400000")]),
        by_user,
        "below the highest one without turbo"
    );
    let reason = |reason: &str| {
        (format!("{LIMITED}: {reason}"), Some(format!("the present limit may be the kernel's: {reason}")))
    };
    let (title, not_here) = reason("turbo is off, which can be the reason");
    assert_eq!(judge(&[NO_TURBO]), (FindingState::Unknown, title, true, not_here), "the base frequency is not known");
    let (title, not_here) = reason("turbo is off");
    assert_eq!(judge(&[NO_TURBO, (BASE[0], "1800000")]), (FindingState::Ok, title, true, not_here));
    let (title, not_here) = reason("the firmware has a lower limit");
    let limit = ("sys/devices/system/cpu/cpu0/cpufreq/bios_limit", "1800000");
    assert_eq!(judge(&[limit]), (FindingState::Warn, title, false, not_here));
    let (title, not_here) = reason("a CPU is too hot now, which can be the reason");
    let device = |file: &str| format!("sys/class/thermal/cooling_device0/{file}");
    let cooled = judge(&[(&device("type"), "cpufreq-cpu0"), (&device("cur_state"), "3")]);
    assert_eq!(cooled, (FindingState::Unknown, format!("{title}: see cpu.throttled"), true, not_here));
}

/// Without any idle state, idle CPUs poll.
#[test]
fn the_remedy_for_idle_states_keeps_quick_ones() {
    let (_folder, root) = machine(&[]);
    for (number, latency) in [(0, "0"), (1, "1"), (2, "90"), (3, "600")] {
        for cpu in 0..2 {
            let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}/{name}");
            put(&root, &file("latency"), latency);
            put(&root, &file("name"), &format!("C{number}"));
            put(&root, &file("disable"), "0");
        }
    }
    let found = finding(&root, "cpu.idle_states");
    let files = [2, 3].map(|number| format!("/sys/devices/system/cpu/cpu*/cpuidle/state{number}/disable"));
    assert!(found.remedy.ends_with(&format!("echo 1 | sudo tee {}", files.join(" "))), "{}", found.remedy);
}

#[test]
fn newer_mitigations_cost_time_too() {
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    for (name, state) in [
        ("reg_file_data_sampling", "Mitigation: Clear Register File"),
        (
            "spectre_v2",
            "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; PBRSB-eIBRS: SW sequence; BHI: SW loop, KVM: SW loop",
        ),
    ] {
        let (_folder, root) = machine(&[(&format!("{FOLDER}/{name}"), state)]);
        assert_eq!(finding(&root, "cpu.mitigations").state, FindingState::Warn, "{name}");
    }
}

#[test]
fn the_budget_of_a_group_counts_with_the_limit_of_the_machine_and_of_its_parents() {
    const GROUPS: &str = "sys/fs/cgroup/cpu/user.slice";
    let judge = |runtime: &str| {
        let (_folder, root) = machine(&[
            ("proc/sys/kernel/sched_rt_runtime_us", runtime),
            ("proc/self/cgroup", "4:cpu,cpuacct:/user.slice/session-1.scope\n"),
            ("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"),
            ("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000"),
            (&format!("{GROUPS}/cpu.rt_runtime_us"), "0"),
            (&format!("{GROUPS}/session-1.scope/cpu.rt_runtime_us"), "0"),
        ]);
        let Finding { state, remedy, .. } = finding(&root, "rights.rt_budget");
        (state, remedy)
    };
    let files = format!("/{GROUPS}/cpu.rt_runtime_us /{GROUPS}/session-1.scope/cpu.rt_runtime_us");
    assert_eq!(judge("950000"), (FindingState::Fail, format!("echo 950000 | sudo tee {files}")));
    assert_eq!(judge("-1"), (FindingState::Ok, String::new()), "the kernel does not look at it");
}

#[test]
fn the_interrupt_of_virtualisation_on_arm_is_not_moved() {
    let interrupts = [(9, "vgic", "0-3", "0"), (11, "arch_timer", "0-3", "0"), (12, "kvm guest vtimer", "0-3", "0")];
    let (_folder, root) = with_interrupts("6.12.0", "", &[&interrupts[..], &[(30, "eth0", "0-1", "1")]].concat());
    assert_eq!(finding(&root, "irq.affinity").state, FindingState::Ok);
    let plan = tune::plan(&root, &Need { only: vec!["irq.affinity"], ..Need::default() }).unwrap();
    assert!(plan.changes.is_empty(), "{plan:?}");
}

/// The limits of intel_pstate hold for all CPUs, and are in no file of a single one.
#[test]
fn a_limit_of_the_frequency_driver_is_found() {
    let (_folder, root) = machine(&[]);
    for cpu in 0..2 {
        for file in ["scaling_max_freq", "cpuinfo_max_freq"] {
            put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"), "3000000");
        }
    }
    let found = |percent: &str| {
        put(&root, "sys/devices/system/cpu/intel_pstate/max_perf_pct", percent);
        finding(&root, "cpu.frequency_limit").state
    };
    assert_eq!((found("100"), found("60")), (FindingState::Ok, FindingState::Warn));
}

#[test]
fn checks_of_memory_by_a_kernel_argument_are_found() {
    let (_folder, root) = machine(&[("proc/sys/kernel/osrelease", "6.12.0")]);
    put(&root, "boot/config-6.12.0", "CONFIG_SLUB_DEBUG=y\nCONFIG_DEBUG_KMEMLEAK_DEFAULT_OFF=y\n");
    let found = |arguments: &str| {
        put(&root, "proc/cmdline", arguments);
        finding(&root, "kernel.debug_options").state
    };
    for none in ["quiet", "slub_debug=-", "slub_debug=-,kmalloc-64", "debug_pagealloc=off", "kmemleak=on"] {
        assert_eq!(found(none), FindingState::Ok, "{none}");
    }
    for some in ["slub_debug", "slub_debug=FZPU", "slab_debug=F", "debug_pagealloc=on"] {
        assert_eq!(found(some), FindingState::Warn, "{some}");
    }
}

/// Few hypervisors report the time that they took from a guest.
#[test]
fn no_stolen_time_is_unknown_where_none_is_reported() {
    let (_folder, root) = machine(&[("proc/cpuinfo", "flags : hypervisor\n")]);
    let found = |vendor: &str, steal: u64| {
        put(&root, "sys/class/dmi/id/sys_vendor", vendor);
        put(&root, "proc/stat", &format!("cpu  1 1 1 100000 0 0 0 {steal} 0 0\n"));
        finding(&root, "machine.steal").state
    };
    assert_eq!((found("innotek GmbH", 0), found("innotek GmbH", 50_000)), (FindingState::Unknown, FindingState::Warn));
    assert_eq!((found("VMware, Inc.", 0), found("Amazon EC2", 0)), (FindingState::Ok, FindingState::Ok));
}

/// A container has its own `/dev`.
#[test]
fn limits_of_programs_are_unknown_in_a_container() {
    let (_folder, root) = machine(&[
        ("sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us", "0"),
        ("sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us", "0"),
        ("proc/asound/cards", " 0 [PCH]: HDA-Intel - HDA Intel PCH\n"),
    ]);
    let found = || ["cpu.latency_request", "sound.latency_request"].map(|id| finding(&root, id).state);
    assert_eq!(found(), [FindingState::Ok, FindingState::NotApplicable]);
    put(&root, "run/.containerenv", "");
    put(&root, "proc/1/environ", "container=podman\0");
    assert_eq!(found(), [FindingState::Unknown, FindingState::Unknown]);
}

/// The first thread of a core stays online without SMT.
#[test]
fn the_cpu_of_an_example_is_the_first_thread_of_its_core() {
    let (_folder, root) = machine(&[("sys/devices/system/cpu/isolated", "\n")]);
    put(&root, "sys/devices/system/cpu/online", "0-3");
    let advised = || finding(&root, "cpu.isolated").remedy;
    for (siblings, example) in [(["0-1", "2-3"], 2), (["0,2", "1,3"], 1), (["0,3", "1-2"], 3)] {
        for list in siblings {
            for cpu in list.parse::<CpuList>().unwrap().iter() {
                put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), list);
            }
        }
        assert!(advised().contains(&format!("isolcpus=managed_irq,domain,{example}")), "{siblings:?}: {}", advised());
    }
}

#[test]
fn a_partition_is_the_evidence_of_its_isolated_cpus() {
    const PARTITION: &str = "sys/fs/cgroup/cpuset.cpus.isolated";
    let (_folder, root) = machine(&[("sys/devices/system/cpu/isolated", "\n"), (PARTITION, "1")]);
    assert_eq!(finding(&root, "cpu.isolated").evidence, format!("/{PARTITION} = 1"));
    put(&root, "sys/devices/system/cpu/isolated", "0");
    put(&root, "sys/devices/system/cpu/online", "0-2");
    let both = format!("/sys/devices/system/cpu/isolated = 0, /{PARTITION} = 1");
    assert_eq!(finding(&root, "cpu.isolated").evidence, both);
}

#[test]
fn strings_of_the_device_tree_are_words() {
    let (_folder, root) = machine(&[("proc/device-tree/hypervisor/compatible", "xen,xen-4.17\0xen,xen\0")]);
    let read = "/proc/device-tree/hypervisor/compatible = xen,xen-4.17 xen,xen";
    assert_eq!(finding(&root, "machine.hypervisor").evidence, read);
}
