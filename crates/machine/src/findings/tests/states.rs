//! States that were wrong: good machines with a warning, and bad or unknown ones without.

use std::fs;

use record::{Finding, FindingState};

use super::{finding, machine, put};
use crate::tune::{self, Need};

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

/// The kernel says why it does not accept a partition.
#[test]
fn a_partition_that_is_invalid_is_found() {
    let (_folder, root) = machine(&[
        ("proc/cmdline", "quiet\n"),
        ("sys/devices/system/cpu/online", "0-3"),
        ("proc/self/cgroup", "0::/rt.slice/loop.service\n"),
        ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
    ]);
    let found = |group: &str, state: &str| {
        put(&root, &format!("sys/fs/cgroup/{group}/cpuset.cpus.partition"), state);
        let found = finding(&root, "cpu.isolation_effect");
        (found.state, found.title)
    };
    assert_eq!(found("rt.slice/loop.service", "member\n").0, FindingState::NotApplicable);
    assert_eq!(found("other.slice", "isolated\n").0, FindingState::NotApplicable);
    let title = "the partition (isolated) of the control group /rt.slice/loop.service is not in effect (Parent is not a partition root)";
    let invalid = found("rt.slice/loop.service", "isolated invalid (Parent is not a partition root)\n");
    assert_eq!(invalid, (FindingState::Warn, title.to_owned()));
    found("rt.slice/loop.service", "isolated\n");
    let title = "the partition (root) of the control group /other.slice is not in effect (Cpu list in cpuset.cpus not exclusive)";
    assert_eq!(found("other.slice", "root invalid (Cpu list in cpuset.cpus not exclusive)\n").1, title);
}

/// A fault of one CPU counts, also if the file of another one is not readable.
#[test]
fn a_governor_that_is_known_counts() {
    let (_folder, root) = machine(&[]);
    let governor = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    put(&root, &governor(0), "ondemand");
    assert_eq!(finding(&root, "cpu.governor").state, FindingState::Warn);
    put(&root, &governor(0), "performance");
    assert_eq!(finding(&root, "cpu.governor").state, FindingState::Unknown);
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
    assert_eq!(found().state, FindingState::Warn, "known from another file");
    put(&root, &format!("{FOLDER}/enabled"), "always [madvise] never");
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
        let plan = tune::plan(&root, &Need::default()).unwrap();
        let planned = plan.changes.iter().find(|setting| setting.id == "cpu.max_performance");
        (finding(&root, "cpu.frequency_limit").state, planned.map(|setting| setting.writes[0].to.clone()))
    };
    assert_eq!(found("100"), (FindingState::Ok, None));
    assert_eq!(found("60"), (FindingState::Warn, Some("100".to_owned())));
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

/// A hypervisor reports the time that it took from a guest only if the kernel has a clock of it.
#[test]
fn no_stolen_time_is_unknown_where_none_is_reported() {
    const STATES: &str = "sys/devices/system/cpu/hotplug/states";
    const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    let (_folder, root) = machine(&[("proc/cpuinfo", "flags : hypervisor\n")]);
    let found = |vendor: &str, steal: u64| {
        put(&root, "sys/class/dmi/id/sys_vendor", vendor);
        put(&root, "proc/stat", &format!("cpu  1 1 1 100000 0 0 0 {steal} 0 0\n"));
        finding(&root, "machine.steal").state
    };
    // `stealclock.enable` of VMware is off by default, and other hypervisors of KVM need not offer its clock.
    for vendor in ["innotek GmbH", "VMware, Inc.", "Xen", "Amazon EC2"] {
        assert_eq!((found(vendor, 0), found(vendor, 50_000)), (FindingState::Unknown, FindingState::Warn), "{vendor}");
        assert_eq!(found(vendor, 1), FindingState::Ok, "{vendor}");
    }
    put(&root, CLOCKS, "xen tsc");
    assert_eq!(found("Xen", 0), FindingState::Ok);
    put(&root, CLOCKS, "tsc kvm-clock");
    put(&root, STATES, "144: cpu:teardown\n192: x86/kvm:online\n");
    assert_eq!(found("Amazon EC2", 0), FindingState::Unknown, "a recorded machine has no answer of the processor");
    for state in ["x86/vmware:online", "hypervisor/arm/pvtime:online", "arm/xen_runstate:starting"] {
        put(&root, STATES, &format!("144: cpu:teardown\n192: {state}\n"));
        assert_eq!(found("VMware, Inc.", 0), FindingState::Ok, "{state}");
    }
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

/// A negative delay keeps a device awake, whatever `power/control` allows.
#[test]
fn a_device_with_an_endless_delay_is_never_suspended() {
    for (id, folder, class) in [
        ("power.usb", "sys/bus/usb/devices/1-1", ("bDeviceClass", "00")),
        ("power.pci", "sys/bus/pci/devices/0000:00:1f.3", ("class", "0x040300")),
    ] {
        let file = |name: &str| format!("{folder}/{name}");
        let (_folder, root) = machine(&[(&file(class.0), class.1), (&file("power/control"), "auto")]);
        let judged = |delay: &str| {
            put(&root, &file("power/autosuspend_delay_ms"), delay);
            let is_planned =
                tune::plan(&root, &Need::default()).unwrap().changes.iter().any(|setting| setting.id == id);
            let Finding { state, evidence, .. } = finding(&root, id);
            (state, evidence.contains("power/autosuspend_delay_ms = "), is_planned)
        };
        assert_eq!(judged("2000"), (FindingState::Warn, false, true), "{id}");
        assert_eq!(judged("-1000"), (FindingState::Ok, true, false), "{id}");
    }
}

/// The limit of tuned is a setting; that of another program ends with it.
#[test]
fn a_limit_of_programs_keeps_cpus_out_of_deep_states() {
    let (_folder, root) = machine(&[]);
    for (number, latency) in [(0, "0"), (1, "2"), (2, "600")] {
        for cpu in 0..2 {
            let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}/{name}");
            [("latency", latency), ("name", "C"), ("disable", "0")]
                .iter()
                .for_each(|(name, text)| put(&root, &file(name), text));
            put(&root, &format!("sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us"), "0");
        }
    }
    let judged = |limit_us: i32, program: &str| {
        fs::create_dir_all(root.path("dev")).unwrap();
        fs::write(root.path("dev/cpu_dma_latency"), limit_us.to_ne_bytes()).unwrap();
        put(&root, "proc/700/comm", program);
        let plan = tune::plan(&root, &Need::default()).unwrap();
        let is_planned = plan.changes.iter().any(|setting| setting.id == "cpu.idle_states");
        let states = ["cpu.idle_states", "cpu.latency_request"].map(|id| finding(&root, id).state);
        (states, is_planned)
    };
    fs::create_dir_all(root.path("proc/700/fd")).unwrap();
    std::os::unix::fs::symlink("/dev/cpu_dma_latency", root.path("proc/700/fd/7")).unwrap();
    use FindingState::{Ok, Warn};
    assert_eq!(judged(2_000_000_000, "tuned"), ([Warn, Ok], true));
    for limit_us in [0, 2] {
        assert_eq!(judged(limit_us, "tuned"), ([Ok, Ok], false), "{limit_us}");
        assert_eq!(judged(limit_us, "jackd"), ([Ok, Warn], true), "{limit_us}");
    }
    assert_eq!(judged(600, "tuned"), ([Warn, Ok], true), "too high");
    // A copy of the machine knows the service, and no other program.
    judged(2, "tuned");
    let links = |root: &crate::Root| crate::snapshot::Snapshot::of(root, &[]).links;
    assert_eq!(links(&root).get("proc/700/fd/7").map(String::as_str), Some("/dev/cpu_dma_latency"));
    judged(2, "jackd");
    assert!(links(&root).keys().all(|path| !path.contains("/fd/")));
}

#[test]
fn the_kernel_skips_unknown_flags_of_isolcpus_since_5_8() {
    let (_folder, root) = machine(&[
        ("sys/devices/system/cpu/isolated", "1"),
        ("sys/devices/system/cpu/nohz_full", "1"),
        ("proc/cmdline", "isolcpus=domain,mangaged_irq,1 nohz_full=1"),
    ]);
    let found = |release: &str| {
        put(&root, "proc/sys/kernel/osrelease", release);
        finding(&root, "cpu.isolation_effect").title
    };
    assert_eq!(found("6.12.0"), "the kernel skips the flag mangaged_irq of isolcpus, which it does not know");
    assert_eq!(found("5.6.0"), "the kernel ignores isolcpus=domain,mangaged_irq,1");
    put(&root, "proc/cmdline", "isolcpus=domain,1 nohz_full=all");
    assert_eq!(found("6.12.0"), "the isolation requested at boot is in effect", "CPU 0 keeps the time");
    put(&root, "sys/devices/system/cpu/nohz_full", "(null)");
    assert!(found("6.12.0").starts_with("nohz_full=all has no effect on "));
}

/// A limit at the nominal frequency and turbo that is out of its reach are one choice of the user.
#[test]
fn a_limit_at_the_nominal_frequency_keeps_turbo_off() {
    let (_folder, root) = machine(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "0")]);
    let judged = |limit: &str| {
        for cpu in 0..2 {
            let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
            for (name, khz) in [
                ("base_frequency", "3000000"),
                ("cpuinfo_min_freq", "800000"),
                ("cpuinfo_max_freq", "4100000"),
                ("scaling_min_freq", "800000"),
                ("scaling_max_freq", limit),
            ] {
                put(&root, &file(name), khz);
            }
        }
        let plan = tune::plan(&root, &Need::default()).unwrap();
        let is_lifted = plan.changes.iter().any(|setting| setting.id == "cpu.max_freq");
        (["cpu.frequency_limit", "cpu.turbo"].map(|id| finding(&root, id).state), is_lifted)
    };
    assert_eq!(judged("3000000"), ([FindingState::Ok, FindingState::Ok], false));
    assert_eq!(judged("2000000"), ([FindingState::Warn, FindingState::Warn], true));
    assert_eq!(judged("4100000"), ([FindingState::Ok, FindingState::Warn], false));
}

#[test]
fn the_limit_of_real_time_threads_is_not_rounded() {
    let (_folder, root) = machine(&[("proc/sys/kernel/osrelease", "6.1.0")]);
    put(&root, "proc/sys/kernel/sched_rt_period_us", "1000000");
    let found = |runtime: &str| {
        put(&root, "proc/sys/kernel/sched_rt_runtime_us", runtime);
        let Finding { state, title, .. } = finding(&root, "rt.throttling");
        (state, title)
    };
    let stopped = |time: &str| format!("busy real-time threads are stopped for {time} of every 1000 ms");
    assert_eq!(found("950000"), (FindingState::Warn, stopped("50 ms")));
    assert_eq!(found("999999"), (FindingState::Warn, stopped("1 us")));
    let zero = "the limit of real-time threads is 0";
    assert_eq!(found("0"), (FindingState::Warn, zero.to_owned()));
    found("950000");
    let refused = tune::chosen(&root, &["rt.throttling=0".parse().unwrap()], None).unwrap_err().to_string();
    let why = "0 keeps a CPU stopped that is throttled now: use off, or a time of 1 to 1000000 us";
    assert_eq!(refused, format!("rt.throttling: {why}"));
}

#[test]
fn a_profile_of_the_firmware_is_judged_by_what_it_offers() {
    let (_folder, root) = machine(&[]);
    let judged = |profile: &str, offered: &str| {
        put(&root, "sys/firmware/acpi/platform_profile", profile);
        put(&root, "sys/firmware/acpi/platform_profile_choices", offered);
        let plan = tune::plan(&root, &Need::default()).unwrap();
        let planned = plan.changes.iter().find(|setting| setting.id == "power.platform_profile");
        let Finding { state, remedy, .. } = finding(&root, "power.platform_profile");
        let of_remedy = remedy.split(' ').nth(1).map(str::to_owned);
        let planned = planned.map(|setting| setting.writes[0].to.clone());
        assert_eq!(of_remedy, planned, "{profile} of {offered}");
        (state, planned)
    };
    use FindingState::{Ok, Unknown, Warn};
    const ALL: &str = "low-power balanced performance";
    let faster = |profile: &str| (Warn, Some(profile.to_owned()));
    assert_eq!(judged("low-power", ALL), faster("performance"));
    assert_eq!(judged("balanced", ALL), faster("performance"));
    assert_eq!(judged("performance", ALL), (Ok, None));
    assert_eq!(judged("max-power", "balanced performance max-power"), (Ok, None));
    assert_eq!(
        judged("balanced", "balanced performance max-power"),
        faster("performance"),
        "within the battery's limit"
    );
    assert_eq!(judged("quiet", "quiet balanced"), faster("balanced"));
    assert_eq!(judged("balanced", "quiet balanced"), (Ok, None));
    assert_eq!(judged("custom", ALL), (Unknown, None), "several drivers, each with another one");
    let refused = tune::chosen(&root, &["power.platform_profile=cool".parse().unwrap()], None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("power.platform_profile: the firmware does not offer `cool`: it offers {ALL}")
    );
}

#[test]
fn a_loaded_scheduler_and_its_server_are_found() {
    const EXT: &str = "sys/kernel/debug/sched/ext_server";
    let (_folder, root) = machine(&[("proc/sys/kernel/osrelease", "7.0.0"), ("proc/config.gz", "")]);
    put(&root, "boot/config-7.0.0", "CONFIG_SCHED_CLASS_EXT=y\n");
    for (kind, runtime) in [("fair_server", "0"), ("ext_server", "50000000")] {
        for cpu in 0..2 {
            put(&root, &format!("sys/kernel/debug/sched/{kind}/cpu{cpu}/runtime"), runtime);
            put(&root, &format!("sys/kernel/debug/sched/{kind}/cpu{cpu}/period"), "1000000000");
        }
    }
    let judged = |state: &str| {
        put(&root, "sys/kernel/sched_ext/state", state);
        ["kernel.sched_ext", "rt.throttling"].map(|id| finding(&root, id).state)
    };
    use FindingState::{NotApplicable, Ok, Unknown, Warn};
    assert_eq!(finding(&root, "kernel.sched_ext").state, NotApplicable);
    assert_eq!(judged("disabled"), [Ok, Ok]);
    assert_eq!(judged("enabled"), [Warn, Warn]);
    assert_eq!(judged("??"), [Unknown, Unknown]);
    judged("enabled");
    put(&root, "sys/kernel/sched_ext/root/ops", "lavd_1.0.17");
    put(&root, "proc/845/comm", "scx_lavd");
    let Finding { title, remedy, .. } = finding(&root, "kernel.sched_ext");
    assert_eq!(title, "a program schedules ordinary threads: lavd_1.0.17 (sched_ext)");
    assert_eq!(remedy, "end scx_lavd, and the kernel's own scheduler returns: sudo kill 845");
    let plan = tune::chosen(&root, &["rt.fair_server".parse().unwrap()], None).unwrap();
    let changed: Vec<String> = plan[0].changes().map(|write| write.target.to_string()).collect();
    assert_eq!(changed, [0, 1].map(|cpu| format!("/{EXT}/cpu{cpu}/runtime")));
}

#[test]
fn new_kernels_start_no_update_of_memory_statistics_on_isolated_cpus() {
    let (_folder, root) = machine(&[
        ("sys/devices/system/cpu/online", "0-3"),
        ("sys/devices/system/cpu/isolated", "2"),
        ("sys/devices/system/cpu/nohz_full", "(null)"),
        ("sys/fs/cgroup/cpuset.cpus.isolated", "3"),
        ("proc/sys/vm/stat_interval", "1"),
    ]);
    let judged = |release: &str, need: Need| {
        put(&root, "proc/sys/kernel/osrelease", release);
        let plan = tune::plan(&root, &need).unwrap();
        let is_planned = plan.changes.iter().any(|setting| setting.id == "cpu.statistics");
        (finding(&root, "cpu.statistics").state, is_planned)
    };
    let of_check = || Need::default();
    assert_eq!(judged("6.4.0", of_check()), (FindingState::Warn, true));
    assert_eq!(judged("6.7.0", of_check()), (FindingState::Warn, true), "partitions do not count before 6.8");
    assert_eq!(judged("6.8.0", of_check()), (FindingState::Ok, false));
    assert_eq!(judged("unknown", of_check()), (FindingState::Unknown, true));
    let named = || Need { only: vec!["cpu.statistics"], ..Need::default() };
    assert_eq!(judged("6.8.0", named()), (FindingState::Ok, true), "a setting that the user names changes");
    let other = || Need { cpus: Some("1-2".parse().unwrap()), ..Need::default() };
    assert_eq!(judged("6.8.0", other()), (FindingState::Ok, true), "CPU 1 is not isolated");
    put(&root, "sys/fs/cgroup/cpuset.cpus.isolated", "\n");
    assert_eq!(judged("6.5.0", of_check()), (FindingState::Ok, false));
    put(&root, "sys/devices/system/cpu/isolated", "\n");
    put(&root, "sys/devices/system/cpu/nohz_full", "2-3");
    let tickless = || Need { cpus: Some("2-3".parse().unwrap()), ..Need::default() };
    assert_eq!(judged("6.5.0", tickless()), (FindingState::NotApplicable, false));
}

#[test]
fn a_damaged_configuration_is_made_up_for_by_the_other_file() {
    let (_folder, root) = machine(&[
        ("proc/sys/kernel/osrelease", "6.12.0"),
        ("proc/sys/kernel/version", "#1 SMP PREEMPT"),
        ("proc/config.gz", "damaged"),
        ("boot/config-6.12.0", "CONFIG_PREEMPT_RT=y\n"),
    ]);
    let state = || finding(&root, "kernel.preempt").state;
    assert_eq!(state(), FindingState::Ok);
    fs::remove_file(root.path("boot/config-6.12.0")).unwrap();
    put(&root, "proc/sys/kernel/version", "#1 SMP PREEMPT_RT");
    assert_eq!(state(), FindingState::Ok, "the version says it");
}
