//! Remedies that cannot work on the machine, or harm it.

use std::fs;

use record::{Finding, FindingState};

use super::{finding, machine, put, reason, with_interrupts};
use crate::{CpuList, tune};

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
    assert_eq!(finding(&root, "cpu.isolated").remedy, "kernel arguments: `isolcpus=1`");
    put(&root, &tickless, "\n");
    assert_eq!(finding(&root, "cpu.isolated").remedy, "kernel arguments: `isolcpus=3 nohz_full=3 rcu_nocbs=3`");
    put(&root, "boot/config-5.4.0", "CONFIG_RCU_NOCB_CPU=y\n");
    let remedy = finding(&root, "cpu.isolated").remedy;
    assert!(
        remedy.starts_with("use a kernel built with CONFIG_CPU_ISOLATION=y"),
        "rcu_nocbs isolates no CPU: {remedy}"
    );
}

/// `nohz_full=all` chooses no CPUs: the kernel only leaves out the CPU of the boot.
#[test]
fn a_list_of_all_cpus_but_one_is_a_choice() {
    let remedy = |cmdline: &str| {
        let (_folder, root) = machine(&[
            ("sys/devices/system/cpu/isolated", "\n"),
            ("sys/devices/system/cpu/nohz_full", "1-3"),
            ("proc/sys/kernel/osrelease", "6.12.0"),
            ("proc/cmdline", cmdline),
        ]);
        put(&root, "sys/devices/system/cpu/online", "0-3");
        finding(&root, "cpu.isolated").remedy
    };
    let with_flags = |cpus: &str| format!("kernel arguments: `isolcpus=managed_irq,domain,{cpus}`");
    assert_eq!(remedy("nohz_full=1-3"), with_flags("1-3"));
    assert_eq!([remedy("nohz_full=all"), remedy("nohz_full=0-3")], [with_flags("3"), with_flags("3")]);
    assert!(remedy("quiet").contains("isolcpus=managed_irq,domain,3"), "{}", remedy("quiet"));
}

#[test]
fn check_advises_the_arguments_that_tune_prints() {
    for (cmdline, tickless) in [
        ("isolcpus=2-3", "(null)"),
        ("isolcpus=managed_irq,domain,2-3 nohz_full=2", "2"),
        ("isolcpus=2-3 rcu_nocbs=2-3 nohz_full=0", "(null)"),
        ("isolcpus=nohz,domain,2-3", "2-3"),
        ("isolcpus=2-3 irqaffinity=0-2", "(null)"),
    ] {
        let (_folder, root) = machine(&[
            ("sys/devices/system/cpu/online", "0-3"),
            ("sys/devices/system/cpu/present", "0-5"),
            ("sys/devices/system/cpu/isolated", "2-3"),
            ("sys/devices/system/cpu/nohz_full", tickless),
            ("proc/irq/default_smp_affinity", "f"),
            ("proc/sys/kernel/osrelease", "6.12.0"),
            ("proc/cmdline", cmdline),
        ]);
        let printed = tune::boot(&root, &"2-3".parse().unwrap()).unwrap().arguments;
        for id in ["cpu.rcu_callbacks", "irq.default_affinity", "cpu.tick"] {
            let remedy = finding(&root, id).remedy;
            let advised = remedy.split('`').nth(1).unwrap_or_default();
            assert!(advised.split_whitespace().all(|word| printed.contains(word)), "{id}: {advised}, not in {printed}");
        }
    }
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
    for isolated in ["\n", "0-1"] {
        assert_eq!(remedy(isolated), SWITCH, "{isolated}");
    }
    let file = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/online");
    for (isolated, sibling) in [("1", 3), ("1,3", 3), ("3", 1)] {
        assert_eq!(remedy(isolated), format!("echo 0 | sudo tee {}", file(sibling)), "{isolated}");
    }
    assert_eq!(
        remedy("2-3"),
        format!("echo 0 | sudo tee {}\nisolate another CPU than 2: CPU 0 of its core cannot go offline", file(1))
    );
    assert_eq!(remedy("2"), "isolate another CPU than 2: CPU 0 of its core cannot go offline");
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
fn services_are_stopped_by_the_program_that_starts_them() {
    let (_folder, root) = machine(&[("proc/700/comm", "irqbalance"), ("sys/devices/system/cpu/isolated", "\n")]);
    let stop = || (finding(&root, "irq.balance").remedy, tune::by_hand(&root, &CpuList::new()).remove(0));
    let by = |disable: &str, stop: &str| (disable.to_owned(), format!("irqbalance moves interrupts: {stop}"));
    let by_systemd = by("sudo systemctl disable --now irqbalance", "sudo systemctl stop irqbalance");
    assert_eq!(stop(), by_systemd);
    let stat = |state: &str| format!("700 (irqbalance) {state} 1 {}", "0 ".repeat(48));
    put(&root, "proc/700/stat", &stat("S"));
    assert_eq!(stop(), by_systemd);
    put(&root, "proc/700/stat", &stat("Z"));
    assert_ne!(finding(&root, "irq.balance").state, FindingState::Warn, "it has ended");
    put(&root, "proc/700/stat", &stat("S"));
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
    // What tune advises satisfies check.
    for (file, text) in [
        (FILE, "IRQBALANCE_BANNED_CPULIST=3\n"),
        (FILE, "IRQBALANCE_BANNED_CPUS=8\n"),
        (
            "etc/systemd/system/irqbalance.service.d/own.conf",
            "[Service]\nEnvironment=A=b \"IRQBALANCE_BANNED_CPULIST=3\"\n",
        ),
    ] {
        put(&root, file, text);
        let found = finding(&root, "irq.balance");
        let (title, state) = ("irqbalance runs, and leaves CPU 3 alone".to_owned(), FindingState::Ok);
        assert_eq!((line(), found.state, found.title), (String::new(), state, title), "{text}");
        fs::remove_file(root.path(file)).unwrap();
    }
    put(&root, FILE, "IRQBALANCE_BANNED_CPULIST=7\n");
    assert_eq!(finding(&root, "irq.balance").state, FindingState::Warn, "there is no such CPU");
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
        put(&root, &format!("usr/lib/modules/{release}/modules.dep"), "");
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
        ("Debian GNU/Linux 13 (trixie)", "armv7l", "6.12.57+deb13-armmp-lpae", "sudo apt install linux-image-rt-armmp"),
        ("Debian GNU/Linux 12 (bookworm)", "i686", "6.1.0-40-686-pae", "sudo apt install linux-image-rt-686-pae"),
        ("Debian GNU/Linux 13 (trixie)", "i686", "6.1.0-40-686-pae", source),
        ("Debian GNU/Linux 12 (bookworm)", "x86_64", "6.8.12-4-pve", &*format!("{source}; that of Debian has no ZFS")),
        ("Arch Linux", "x86_64", "6.17.1-arch1-1", "sudo pacman -S linux-rt, and start it by your boot loader"),
        ("Arch Linux ARM", "aarch64", "6.17.1-arch1-1", source),
        (
            "Red Hat Enterprise Linux 9.4 (Plow)",
            "x86_64",
            "5.14.0-427.el9.x86_64",
            "sudo dnf install kernel-rt, from the repository of RHEL for Real Time",
        ),
        (
            "Debian GNU/Linux 13 (trixie)",
            "aarch64",
            "6.12.47+rpt-rpi-2712",
            "sudo apt install linux-image-rpi-v8-rt, and add kernel=kernel8_rt.img to /boot/firmware/config.txt",
        ),
        ("Debian GNU/Linux 12 (bookworm)", "aarch64", "6.6.51+rpt-rpi-v8", source),
        ("Debian GNU/Linux 13 (trixie)", "armv7l", "6.12.47+rpt-rpi-v7", source),
    ] {
        assert_eq!(remedy(os, arch, release), expected, "{os} {release}");
    }
    put(&root, "proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0");
    let of_pi = remedy("Ubuntu 24.04.3 LTS", "aarch64", "6.8.0-1013-raspi");
    assert_eq!(of_pi, "sudo pro enable realtime-kernel --variant=raspi");
    assert_eq!(remedy("Ubuntu 22.04.5 LTS", "aarch64", "5.15.0-1061-raspi"), source);
    fs::remove_file(root.path("proc/device-tree/model")).unwrap();
    for os in ["Ubuntu 22.04.5 LTS", "Ubuntu 18.04.6 LTS"] {
        assert!(remedy(os, "aarch64", "5.15.148-tegra").contains("of NVIDIA for this board"), "{os}");
    }
}

/// A virtual machine can be started with a kernel of its host: a package would not replace it.
#[test]
fn a_kernel_that_is_not_of_the_system_is_replaced_where_it_comes_from() {
    let (_folder, root) = machine(&[
        ("proc/sys/kernel/version", "#1 SMP"),
        ("proc/sys/kernel/arch", "x86_64"),
        ("proc/sys/kernel/osrelease", "6.1.128"),
        ("etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n"),
    ]);
    let remedy = finding(&root, "kernel.preempt").remedy;
    assert!(
        remedy.ends_with("in place of 6.1.128, which is not one of this system: it has no /lib/modules/6.1.128"),
        "{remedy}"
    );
    put(&root, "usr/lib/modules/6.1.128/modules.dep", "");
    assert_eq!(finding(&root, "kernel.preempt").remedy, "sudo apt install linux-image-rt-amd64");
}

/// `nohz_full=all` does not choose CPUs for real-time work.
#[test]
fn a_few_cpus_are_isolated_where_all_run_without_a_tick() {
    let (_folder, root) =
        machine(&[("sys/devices/system/cpu/isolated", "\n"), ("sys/devices/system/cpu/nohz_full", "1-7")]);
    put(&root, "sys/devices/system/cpu/online", "0-7");
    assert!(finding(&root, "cpu.isolated").remedy.contains("isolcpus=managed_irq,domain,7 "));
}

#[test]
fn the_boot_loader_of_a_container_is_not_the_one_that_counts() {
    let (_folder, root) = machine(&[
        ("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=0\"\n"),
        ("usr/sbin/update-grub", ""),
        ("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet"),
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
    assert!(guest("QEMU").ends_with(" (e.g. virsh vcpupin)"));
    assert!(guest("VMware, Inc.").ends_with(" (latency sensitivity high, with all CPU and memory reserved)"));
    assert!(guest("Xen").ends_with(" (xl vcpu-pin, or virsh vcpupin)"));
    assert!(guest("innotek GmbH").ends_with(" to a CPU of its own"), "VirtualBox has no such setting");
    let own = [("sys/hypervisor/type", "xen"), ("proc/xen/capabilities", "control_d\n")];
    assert!(found(&own, "machine.hypervisor").remedy.ends_with(" (dom0_vcpus_pin on the command line of Xen)"));
    let timers = |tickless| {
        let files = [("sys/devices/system/cpu/nohz_full", tickless), ("proc/sys/kernel/timer_migration", "1")];
        found(&files, "kernel.timer_migration").title
    };
    assert_eq!(timers("1"), "timers of CPU 1 may run on other CPUs");
    assert_eq!(timers("0-1"), "timers of CPUs 0-1 may run on other CPUs");
}

/// Each container manager has words of its own for rights.
#[test]
fn rights_of_a_container_are_granted_in_the_words_of_its_manager() {
    let (_folder, root) = machine(&[
        ("proc/self/status", "CapEff:\t0000000000000000\n"),
        ("proc/self/limits", "Max locked memory 8388608 8388608 bytes\nMax realtime priority 0 0\n"),
        ("proc/self/ns/.keep", ""),
    ]);
    std::os::unix::fs::symlink("pid:[4026532300]", root.path("proc/self/ns/pid")).unwrap();
    for (kind, words) in [
        ("docker", ["--cap-add=SYS_NICE --ulimit rtprio=99", "--cap-add=IPC_LOCK --ulimit memlock=-1"]),
        ("systemd-nspawn", ["--capability=CAP_SYS_NICE --rlimit=RTPRIO=99", "--rlimit=MEMLOCK=infinity"]),
        ("lxc", ["`lxc.prlimit.rtprio = 99`", "`lxc.prlimit.memlock = unlimited`"]),
        ("other", ["CAP_SYS_NICE", "CAP_IPC_LOCK"]),
    ] {
        put(&root, "run/systemd/container", kind);
        let remedies = ["rights.realtime", "rights.memlock"].map(|id| finding(&root, id).remedy);
        for (remedy, words) in remedies.iter().zip(words) {
            assert!(remedy.contains(words), "{kind}: {remedy}");
        }
    }
    let hosts = "480 471 259:2 /var/lib/kubelet/pods/7/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n";
    put(&root, "proc/self/mountinfo", hosts);
    let remedy = finding(&root, "rights.realtime").remedy;
    assert!(remedy.contains("SYS_NICE in securityContext.capabilities.add"), "{remedy}");
}

/// A container has the files of another distribution than the host, whose kernel it uses.
#[test]
fn the_kernel_of_the_host_is_not_a_package_of_the_container() {
    let (_folder, root) = machine(&[
        ("etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n"),
        ("proc/sys/kernel/arch", "x86_64"),
        ("proc/sys/kernel/osrelease", "6.8.0-85-generic"),
        ("proc/sys/kernel/version", "#85-Ubuntu SMP PREEMPT_DYNAMIC"),
        ("proc/cmdline", "preempt=full"),
        ("proc/self/ns/.keep", ""),
        ("boot/config-6.8.0-85-generic", "CONFIG_PREEMPT_DYNAMIC=y\n"),
    ]);
    assert_eq!(finding(&root, "kernel.preempt").remedy, "sudo apt install linux-image-rt-amd64");
    put(&root, "run/systemd/container", "docker");
    let remedy = finding(&root, "kernel.preempt").remedy;
    assert!(remedy.starts_with("on the host: install a kernel built with CONFIG_PREEMPT_RT=y"), "{remedy}");
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

/// A thread at or below the threads of interrupts waits for each of them.
#[test]
fn a_right_to_priorities_below_interrupt_threads_is_too_small() {
    let judged = |limits: &str, has_threads: bool| {
        let limits = format!("Limit Soft Hard Units\nMax realtime priority     {limits}\n");
        let (_folder, root) =
            machine(&[("proc/self/status", "CapEff:\t0000000000000000\n"), ("proc/self/limits", &limits)]);
        if has_threads {
            let zeros = "0 ".repeat(17);
            let stat = format!("40 (irq/7-eth0) S 2 0 0 0 0 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 100 {zeros}50 1");
            for (path, text) in [("stat", &*stat), ("comm", "irq/7-eth0")] {
                put(&root, &format!("proc/40/{path}"), text);
                put(&root, &format!("proc/40/task/40/{path}"), text);
            }
            put(&root, "proc/2/comm", "kthreadd");
            put(&root, "proc/2/stat", &stat.replace("40 (irq/7-eth0) S 2", "2 (kthreadd) S 0"));
        }
        let found = finding(&root, "rights.realtime");
        (found.state, found.remedy.starts_with("ulimit -S -r "))
    };
    assert_eq!(judged("1 1", true), (FindingState::Warn, false));
    assert_eq!(judged("50 95", true), (FindingState::Warn, true));
    assert_eq!(judged("51 51", true), (FindingState::Ok, false));
    assert_eq!(judged("1 1", false), (FindingState::Ok, false));
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
    for argument in ["nosmt", "mitigations=auto,nosmt", "maxcpus=4"] {
        assert_eq!(remedy("2-3", argument), "kernel argument: `irqaffinity=0-1`", "CPUs 4-5 stay offline: {argument}");
    }
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
