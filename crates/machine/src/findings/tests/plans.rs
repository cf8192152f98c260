//! Machines that `check` and `tune` must judge alike.

use std::fs;

use record::{Finding, FindingState};

use super::{finding, machine, put, reason, with_interrupts};
use crate::tune::{self, Need};

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
    // CPU 2 is offline.
    put(&root, "sys/devices/system/cpu/isolated", "1-2");
    put(&root, MASK, "0-2");
    let of_both = "watchdogs interrupt CPUs 1-2: soft".to_owned();
    assert_eq!(judged(), (of_both, away.1, away.2));
    put(&root, "sys/devices/system/cpu/isolated", "1");
    put(&root, MASK, "0");
    assert_eq!(judged(), ("no watchdog interrupts CPU 1".to_owned(), String::new(), Vec::new()));
    assert_eq!(finding(&root, "kernel.watchdog").state, FindingState::Ok);
    // Kernels before 4.2 have no such list.
    fs::remove_file(root.path(MASK)).unwrap();
    assert_eq!(judged(), (everywhere, off, vec!["kernel.watchdog 0".to_owned()]));
}

#[test]
fn watchdogs_with_a_threshold_of_0_are_off() {
    for (isolated, mask) in [("\n", "0-1"), ("1", "0-1")] {
        let (_folder, root) = machine(&[
            ("proc/sys/kernel/nmi_watchdog", "1"),
            ("proc/sys/kernel/soft_watchdog", "1"),
            ("proc/sys/kernel/watchdog_cpumask", mask),
            ("sys/devices/system/cpu/isolated", isolated),
        ]);
        let judged = |seconds: &str| {
            put(&root, "proc/sys/kernel/watchdog_thresh", seconds);
            let changes = tune::plan(&root, &Need::default()).unwrap().changes;
            let is_planned = changes.iter().any(|setting| setting.id.starts_with("kernel.watchdog"));
            let found = finding(&root, "kernel.watchdog");
            (found.state, found.evidence.contains("watchdog_thresh = 0"), is_planned)
        };
        assert_eq!(judged("10"), (FindingState::Warn, false, true));
        assert_eq!(judged("0"), (FindingState::Ok, true, false));
    }
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
    ] {
        set(file, text);
    }
    for governor in ["powersave", "schedutil"] {
        set("scaling_governor", governor);
        let planned = || {
            let plan = tune::plan(&root, &Need::default()).unwrap();
            plan.changes.iter().any(|setting| setting.id == "cpu.governor")
        };
        set("base_frequency", "2000000");
        put(&root, "sys/devices/system/cpu/intel_pstate/no_turbo", "1");
        assert_eq!((finding(&root, "cpu.governor").state, planned()), (FindingState::Ok, false), "{governor}");
        // The limit is the user's: it is lifted, and the frequency then follows the load or stays low.
        put(&root, "sys/devices/system/cpu/intel_pstate/no_turbo", "0");
        assert!(!planned(), "{governor}: the nominal frequency keeps turbo off");
        set("base_frequency", "2200000");
        assert!(planned(), "{governor}");
    }
}

#[test]
fn an_empty_list_of_cpus_is_refused() {
    let (_folder, root) = machine(&[]);
    let need = Need { cpus: Some("".parse().unwrap()), ..Need::default() };
    let error = tune::plan(&root, &need).unwrap_err().to_string();
    assert_eq!(error, "the list of CPUs is empty: name at least one of 0-1");
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
        (setting.changes().count(), setting.effect, setting.note)
    };
    let (eth, queue) = ((30, "eth0", "0-3", "3"), (25, "nvme0q1", "0-3", "2"));
    let effect = "devices interrupt other CPUs";
    assert_eq!(note(&[eth], &[]), (1, effect, None));
    let stays = "nvme0q1 stays: its driver probably manages this interrupt".to_owned();
    assert_eq!(note(&[eth, queue], &[]), (1, effect, Some(stays.clone())), "the kernel would refuse the other");
    assert_eq!(note(&[eth, queue], &["irq.affinity"]), (2, effect, Some(stays.clone())), "it is tried if it is named");
    assert_eq!(note(&[queue], &["irq.affinity"]), (1, "none expected here", Some(stays)));
    let (_folder, of_own) = plan(&[(26, "nvme0q3", "2-3", "3")], &[]);
    assert!(of_own.right.iter().any(|setting| setting.id == "irq.affinity"), "only I/O of CPUs 2-3");
    let (_folder, plan) = plan(&[queue, (26, "nvme0q2", "1-2", "2")], &[]);
    let reason = plan.not_here.into_iter().find(|not| not.id == "irq.affinity").unwrap().reason;
    assert_eq!(reason, "nvme0q1 and 1 more stay: their drivers probably manage these interrupts");
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

/// The CPUs of a big.LITTLE board have several highest frequencies: the severe limit comes first.
#[test]
fn each_kind_of_cpu_has_its_own_limit() {
    let (_folder, root) = machine(&[]);
    for cpu in 0..2 {
        let (max, able) = if cpu == 0 { ("1790000", "1800000") } else { ("500000", "2400000") };
        put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq"), max);
        put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"), able);
    }
    let Finding { state, title, evidence, .. } = finding(&root, "cpu.frequency_limit");
    let limits = "CPU 1 limited to 500 of 2400 MHz, CPU 0 limited to 1790 of 1800 MHz";
    assert_eq!((state, &*title), (FindingState::Warn, limits));
    assert!(evidence.contains("/cpu1/cpufreq/scaling_max_freq"), "{evidence}");
}

#[test]
fn the_interrupt_of_virtualisation_on_arm_is_not_moved() {
    let interrupts = [(9, "vgic", "0-3", "0"), (11, "arch_timer", "0-3", "0"), (12, "kvm guest vtimer", "0-3", "0")];
    let (_folder, root) = with_interrupts("6.12.0", "", &[&interrupts[..], &[(30, "eth0", "0-1", "1")]].concat());
    assert_eq!(finding(&root, "irq.affinity").state, FindingState::Ok);
    let plan = tune::plan(&root, &Need { only: vec!["irq.affinity"], ..Need::default() }).unwrap();
    assert!(plan.changes.is_empty(), "{plan:?}");
}

/// Isolated CPUs are for real-time work: the settings of the others do not matter.
#[test]
fn settings_of_cpus_count_on_the_isolated_ones() {
    let (_folder, root) = machine(&[("sys/devices/system/cpu/isolated", "1")]);
    let set = |cpu: u32, file: &str, text: &str| put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/{file}"), text);
    for cpu in 0..2 {
        set(cpu, "cpufreq/cpuinfo_min_freq", "800000");
        set(cpu, "cpufreq/cpuinfo_max_freq", "3000000");
        set(cpu, "cpuidle/state0/name", "C6");
        set(cpu, "cpuidle/state0/latency", "130");
        set(cpu, "power/pm_qos_resume_latency_us", "0");
    }
    for (id, setting, file, bad, good) in [
        (
            "cpu.energy_preference",
            "cpu.energy_preference",
            "cpufreq/energy_performance_preference",
            "power",
            "performance",
        ),
        ("cpu.frequency_limit", "cpu.max_freq", "cpufreq/scaling_max_freq", "2000000", "3000000"),
        ("cpu.idle_states", "cpu.idle_states", "cpuidle/state0/latency", "130", "2"),
    ] {
        let judged = || {
            let found = finding(&root, id);
            let plan = tune::plan(&root, &Need::default()).unwrap();
            let planned = plan.changes.into_iter().find(|change| change.id == setting);
            let writes = planned.map(|setting| setting.changes().count());
            (found.state, found.remedy.contains("cpu1/"), found.remedy.contains("cpu*/"), writes)
        };
        set(0, file, bad);
        set(1, file, good);
        assert_eq!(judged(), (FindingState::Ok, false, false, None), "{id}");
        assert!(finding(&root, id).title.contains(" on isolated CPU 1"), "{id}");
        set(1, file, bad);
        assert_eq!(judged(), (FindingState::Warn, true, false, Some(1)), "{id}");
        // The user may name the setting for all CPUs.
        let named = tune::plan(&root, &Need { only: vec![setting], ..Need::default() }).unwrap();
        assert_eq!(named.changes[0].changes().count(), 2, "{id}");
    }
}

#[test]
fn cores_count_that_an_isolated_cpu_shares() {
    let (_folder, root) = machine(&[
        ("sys/devices/system/cpu/online", "0-3"),
        ("sys/devices/system/cpu/smt/active", "1"),
        ("sys/devices/system/cpu/smt/control", "on"),
    ]);
    let judged = |isolated: &str, cores: [&str; 4]| {
        put(&root, "sys/devices/system/cpu/isolated", isolated);
        for (cpu, core) in cores.into_iter().enumerate() {
            put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), core);
        }
        let found = finding(&root, "cpu.smt");
        (found.state, found.title, tune::by_hand(&root, &isolated.parse().unwrap_or_default()).len())
    };
    let alone = "no CPU shares the core of isolated CPUs 2-3".to_owned();
    assert_eq!(judged("2-3", ["0-1", "0-1", "2", "3"]), (FindingState::Ok, alone, 0));
    assert_eq!(judged("2", ["0-1", "0-1", "2-3", "2-3"]).0, FindingState::Warn);
    let sibling = "echo 0 | sudo tee /sys/devices/system/cpu/cpu3/online";
    assert_eq!(finding(&root, "cpu.smt").remedy, sibling, "the other core keeps its threads");
    assert_eq!(judged("\n", ["0-1", "0-1", "2", "3"]).0, FindingState::Warn);
}

/// Nothing lifts the limit that keeps the frequency, so another governor changes nothing.
#[test]
fn a_governor_alone_does_not_free_a_fixed_frequency() {
    let (_folder, root) = machine(&[]);
    for cpu in 0..2 {
        for (file, text) in [
            ("scaling_governor", "schedutil"),
            ("scaling_min_freq", "1000000"),
            ("scaling_max_freq", "1000000"),
            ("cpuinfo_min_freq", "800000"),
            ("cpuinfo_max_freq", "3000000"),
        ] {
            put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"), text);
        }
    }
    let effect = |need: &Need| {
        let plan = tune::plan(&root, need).unwrap();
        plan.changes.into_iter().find(|setting| setting.id == "cpu.governor").map(|setting| setting.effect)
    };
    let only = |ids: &[&'static str]| Need { only: ids.to_vec(), ..Need::default() };
    let useful = Some("no slow start after a pause");
    assert_eq!(effect(&Need::default()), useful, "the whole plan lifts the limit");
    assert_eq!(effect(&only(&["cpu.governor", "cpu.max_freq"])), useful);
    assert_eq!(effect(&only(&["cpu.governor"])), Some("none expected here"));
    assert_eq!(effect(&Need { without: vec!["cpu.max_freq"], ..Need::default() }), None);
}

/// The interrupts of the CPUs of a guest of Xen have numbers, but the kernel refuses to move them.
#[test]
fn interrupts_of_the_cpus_of_a_xen_guest_are_not_moved() {
    const IRQ: [(u32, &str, &str, &str); 2] = [(16, "timer3", "3", "3"), (17, "resched3", "3", "3")];
    let (_folder, root) = with_interrupts("6.1.0", "", &[IRQ[0], IRQ[1], (30, "blkif", "0-1", "0")]);
    assert_eq!(finding(&root, "irq.affinity").state, FindingState::Ok);
    let plan = tune::plan(&root, &Need::default()).unwrap();
    let writes = plan
        .changes
        .iter()
        .chain(&plan.right)
        .find(|setting| setting.id == "irq.affinity")
        .map(|setting| setting.writes.len());
    assert!(writes.is_none_or(|writes| writes <= 1), "{writes:?}");
    put(&root, "proc/uptime", "100.0 1.0");
    let heading = "      CPU0 CPU1 CPU2 CPU3\n";
    let line = " 17: 0 0 0 9000000 xen-percpu -ipi resched3\n 30: 5 0 0 0 xen-dyn -event blkif\n";
    put(&root, "proc/interrupts", &format!("{heading}{line}"));
    assert_eq!(finding(&root, "irq.storm").state, FindingState::Ok);
}

#[test]
fn queues_of_controllers_stay_and_their_other_interrupts_move() {
    let (_folder, root) = with_interrupts(
        "6.1.0",
        "quiet",
        &[
            (30, "megasas0-msix0", "0-3", "2"),
            (31, "megasas0-msix1", "1-2", "2"),
            (32, "smartpqi", "3", "3"),
            (33, "lpfc:0", "2", "2"),
        ],
    );
    put(&root, "proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n");
    let plan = tune::plan(&root, &Need { cpus: Some("2-3".parse().unwrap()), ..Need::default() }).unwrap();
    let setting = plan.changes.iter().find(|setting| setting.id == "irq.affinity").unwrap();
    let moved: Vec<String> = setting.changes().map(|write| write.target.to_string()).collect();
    assert_eq!(moved, ["/proc/irq/30/smp_affinity_list"]);
    let note = "megasas0-msix1 and 1 more stay: their drivers probably manage these interrupts";
    assert_eq!(setting.note.as_deref(), Some(note));
    let remedy = finding(&root, "irq.affinity").remedy;
    assert!(remedy.contains("tee /proc/irq/30/smp_affinity_list\n"), "{remedy}");
    assert!(
        remedy.contains("isolcpus=managed_irq,domain,2-3") && remedy.contains("cannot move interrupt 33"),
        "{remedy}"
    );
}

#[test]
fn turbo_can_be_off_for_some_cpus() {
    const ALL: &str = "sys/devices/system/cpu/cpufreq/boost";
    let own = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/boost");
    let (_folder, root) = machine(&[(ALL, "1"), ("sys/devices/system/cpu/isolated", "1")]);
    let judged = |cpus: Option<&str>, value: &str| {
        let set = vec![format!("cpu.turbo={value}").parse().unwrap()];
        let cpus = cpus.map(|cpus| cpus.parse().unwrap());
        let plan = tune::plan(&root, &Need { cpus, set, only: vec!["cpu.turbo"], ..Need::default() }).unwrap();
        let changes: Vec<String> =
            plan.changes.iter().flat_map(|setting| setting.changes()).map(|write| write.target.to_string()).collect();
        (finding(&root, "cpu.turbo").title, changes.join(" "))
    };
    let (of_all, of_one) = (format!("/{ALL}"), format!("/{}", own(1)));
    let on = |cpus: &str| format!("turbo frequencies are on{cpus}");
    assert_eq!(judged(Some("1"), "off"), (on(""), of_all.clone()), "no switch of its own");
    [0, 1].iter().for_each(|cpu| put(&root, &own(*cpu), "1"));
    assert_eq!(judged(Some("1"), "off"), (on(" for CPU 1"), of_one.clone()));
    assert_eq!(judged(None, "off").1, of_all, "all alike");
    assert_eq!(finding(&root, "cpu.turbo").remedy, format!("echo 0 | sudo tee {of_one}"));
    put(&root, &own(1), "0");
    let off = "no turbo frequencies on isolated CPU 1".to_owned();
    assert_eq!(judged(Some("1"), "off"), (off.clone(), String::new()));
    assert_eq!(judged(None, "off"), (off.clone(), format!("/{}", own(0))));
    assert_eq!(judged(None, "on"), (off, of_one));
    put(&root, &own(1), "x");
    assert_eq!(finding(&root, "cpu.turbo").state, FindingState::Unknown);
    put(&root, ALL, "0");
    assert_eq!(finding(&root, "cpu.turbo").title, "no turbo frequencies");
}

#[test]
fn a_nominal_limit_of_some_cpus_is_not_lifted() {
    let file = |cpu: u32, name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
    let (_folder, root) = machine(&[]);
    let judged = |limits: [&str; 2]| {
        for (cpu, limit) in (0..).zip(limits) {
            for (name, khz) in [
                ("base_frequency", "2000000"),
                ("cpuinfo_min_freq", "800000"),
                ("cpuinfo_max_freq", "3000000"),
                ("scaling_max_freq", limit),
            ] {
                put(&root, &file(cpu, name), khz);
            }
        }
        let plan = tune::plan(&root, &Need::default()).unwrap();
        let setting = plan.changes.iter().find(|setting| setting.id == "cpu.max_freq");
        let changes: Vec<String> =
            setting.into_iter().flat_map(|setting| setting.changes()).map(|write| write.target.to_string()).collect();
        let remedy = finding(&root, "cpu.frequency_limit").remedy;
        let advised: Vec<String> =
            remedy.lines().filter_map(|line| Some(line.split_once("tee ")?.1.to_owned())).collect();
        assert_eq!(changes, advised, "{limits:?}");
        changes.join(" ")
    };
    assert_eq!(judged(["2000000", "3000000"]), "");
    assert_eq!(judged(["2000000", "2000000"]), "");
    assert_eq!(judged(["2000000", "1500000"]), format!("/{}", file(1, "scaling_max_freq")));
    assert_eq!(judged(["1500000", "3000000"]), format!("/{}", file(0, "scaling_max_freq")));
}
