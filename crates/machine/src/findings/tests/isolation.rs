//! Isolated CPUs: what keeps their tick, and lists that the kernel must find equal.

use record::FindingState;

use super::{finding, machine, put};
use crate::tune;

const CPU: &str = "sys/devices/system/cpu";
const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0";

#[test]
fn the_tick_goes_on_with_nohz_off() {
    let judged = |cmdline: &str, tickless: &str| {
        let (_folder, root) = machine(&[
            (&format!("{CPU}/isolated"), "1"),
            (&format!("{CPU}/nohz_full"), tickless),
            ("proc/sys/kernel/osrelease", "6.12.0"),
            ("proc/cmdline", cmdline),
        ]);
        let found = finding(&root, "cpu.tick");
        (found.state, found.remedy)
    };
    let both = "isolcpus=1 nohz_full=1";
    assert_eq!(judged(both, "1"), (FindingState::Ok, String::new()));
    assert_eq!(judged(&format!("{both} nohz=on"), "1"), (FindingState::Ok, String::new()));
    for value in ["off", "0", "n"] {
        let remedy = format!("remove the kernel argument: `nohz={value}`");
        assert_eq!(judged(&format!("{both} nohz={value}"), "1"), (FindingState::Warn, remedy));
    }
    let (_, remedy) = judged("isolcpus=1 nohz=off", "(null)");
    assert_eq!(remedy, "kernel arguments: `nohz_full=1 rcu_nocbs=1`; remove the kernel argument: `nohz=off`");
}

#[test]
fn no_tick_is_not_sure_if_the_tsc_can_be_unstable() {
    let (_folder, root) = machine(&[
        (&format!("{CPU}/isolated"), "1"),
        (&format!("{CPU}/nohz_full"), "1"),
        ("proc/cmdline", "isolcpus=1 nohz_full=1"),
    ]);
    let judged = |current: &str, available: &str| {
        put(&root, &format!("{CLOCKS}/current_clocksource"), current);
        put(&root, &format!("{CLOCKS}/available_clocksource"), available);
        finding(&root, "cpu.tick").state
    };
    assert_eq!(judged("tsc", "tsc hpet acpi_pm"), FindingState::Ok);
    assert_eq!(judged("hpet", "tsc hpet acpi_pm"), FindingState::Ok, "the choice of a user");
    assert_eq!(judged("hpet", "hpet acpi_pm"), FindingState::Unknown);
    assert_eq!(judged("acpi_pm", "acpi_pm"), FindingState::Unknown);
    assert_eq!(judged("kvm-clock", "kvm-clock acpi_pm"), FindingState::Ok, "the host keeps it stable");
    assert_eq!(judged("arch_sys_counter", "arch_sys_counter"), FindingState::Ok);
}

/// The kernel skips empty regions of a list, and each flag of `isolcpus` has an effect of its own.
#[test]
fn each_flag_of_isolcpus_must_be_in_effect() {
    let judged = |cmdline: &str, isolated: &str, tickless: &str| {
        let (_folder, root) = machine(&[
            (&format!("{CPU}/isolated"), isolated),
            (&format!("{CPU}/nohz_full"), tickless),
            ("proc/sys/kernel/osrelease", "6.12.0"),
            ("proc/cmdline", cmdline),
        ]);
        let found = finding(&root, "cpu.isolation_effect");
        (found.state, found.title)
    };
    for list in ["1,", ",1", "1,,1"] {
        let cmdline = format!("isolcpus={list} nohz_full={list} rcu_nocbs={list}");
        assert_eq!(judged(&cmdline, "1", "1").0, FindingState::Ok, "{list}");
    }
    let both = "isolcpus=nohz,domain,1";
    assert_eq!(judged(both, "1", "1").0, FindingState::Ok);
    for tickless in ["(null)", "\n"] {
        let title = format!("the flag nohz of {both} has no effect on CPU 1");
        assert_eq!(judged(both, "1", tickless), (FindingState::Warn, title));
    }
    assert_eq!(judged("isolcpus=nohz,1", "\n", "1").0, FindingState::Ok, "it asks for nothing else");
    assert_eq!(judged("isolcpus=nohz,1", "\n", "\n").0, FindingState::Warn);
    assert_eq!(judged("isolcpus=managed_irq,1", "\n", "\n").0, FindingState::NotApplicable);
}

#[test]
fn kernels_that_show_no_isolated_cpus_leave_the_effect_unknown() {
    let judged = |release: &str| {
        let (_folder, root) =
            machine(&[("proc/sys/kernel/osrelease", release), ("proc/cmdline", "isolcpus=1 nohz_full=1")]);
        finding(&root, "cpu.isolation_effect").state
    };
    assert_eq!([judged("3.10.0-327.el7.x86_64"), judged("4.1.0")], [FindingState::Unknown; 2]);
    assert_eq!(judged("4.2.0"), FindingState::Warn);
}

#[test]
fn the_lists_are_equal_for_kernels_that_accept_only_one() {
    let printed = |release: &str, cpus: &str, cmdline: &str, line: &str| {
        let (_folder, root) = machine(&[
            (&format!("{CPU}/online"), "0-3"),
            (&format!("{CPU}/nohz_full"), "(null)"),
            ("proc/sys/kernel/osrelease", release),
            ("proc/cmdline", &format!("BOOT_IMAGE=/boot/vmlinuz {cmdline}")),
        ]);
        if !line.is_empty() {
            put(&root, "etc/default/grub", line);
        }
        let arguments = tune::boot(&root, &cpus.parse().unwrap()).map(|boot| boot.arguments).unwrap_or_default();
        let is_list = |word: &&str| word.starts_with("isolcpus=") || word.starts_with("nohz_full=");
        arguments.split(' ').filter(is_list).collect::<Vec<_>>().join(" ")
    };
    for (release, list) in [("4.14.0", "3"), ("5.10.0", "2-3"), ("5.17.0", "2-3"), ("5.18.0", "3"), ("6.1.0", "3")] {
        assert_eq!(printed(release, "3", "isolcpus=2-3", ""), format!("nohz_full={list}"), "{release}");
    }
    let of_5_15 = |cpus: &str, cmdline: &str| printed("5.15.0", cpus, cmdline, "");
    let both = "isolcpus=managed_irq,domain,3 nohz_full=3";
    assert_eq!([of_5_15("3", "quiet"), of_5_15("3", "nohz_full=2-3")], [both; 2]);
    assert_eq!(of_5_15("3", "isolcpus=2-3 nohz_full=3"), "nohz_full=2-3", "the kernel ignores one of them");
    assert_eq!([of_5_15("3", "isolcpus=2-3 nohz_full=2,3"), of_5_15("0", "isolcpus=0")], [""; 2]);
    assert_eq!(of_5_15("0,3", "quiet"), "isolcpus=managed_irq,domain,0,3 nohz_full=0,3", "its tick goes on");
    assert_eq!(printed("6.1.0", "0,3", "quiet", ""), "isolcpus=managed_irq,domain,0,3 nohz_full=3");
    // The next boot has another line than the present one.
    let line = |arguments: &str| format!("GRUB_CMDLINE_LINUX=\"{arguments}\"\n");
    assert_eq!(
        printed("5.15.0", "3", "isolcpus=2-3", &line("isolcpus=1")),
        "nohz_full=3 isolcpus=managed_irq,domain,3"
    );
    assert_eq!(printed("5.15.0", "3", "quiet", &line("isolcpus=2-3 nohz_full=3")), both);
}

/// `check` names what `tune` adds to the line of the boot loader.
#[test]
fn a_remedy_names_what_the_next_boot_would_lack() {
    let remedy = |line: &str| {
        let (_folder, root) = machine(&[
            (&format!("{CPU}/isolated"), "1"),
            (&format!("{CPU}/nohz_full"), "(null)"),
            ("proc/sys/kernel/osrelease", "6.12.0"),
            ("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz isolcpus=1"),
            ("etc/default/grub", line),
        ]);
        finding(&root, "cpu.tick").remedy
    };
    assert_eq!(remedy("GRUB_CMDLINE_LINUX=\"isolcpus=1\"\n"), "kernel arguments: `nohz_full=1 rcu_nocbs=1`");
    assert_eq!(
        remedy("GRUB_CMDLINE_LINUX=\"quiet\"\n"),
        "kernel arguments: `isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1`"
    );
}

#[test]
fn devices_of_acpi_show_that_heat_limits_a_processor() {
    let folder = |device: u32| format!("sys/class/thermal/cooling_device{device}");
    let (_folder, root) = machine(&[]);
    for device in 0..2 {
        put(&root, &format!("{}/type", folder(device)), "Processor");
        put(&root, &format!("{}/cur_state", folder(device)), "0");
    }
    assert_eq!(finding(&root, "cpu.throttled").state, FindingState::Ok);
    put(&root, &format!("{}/cur_state", folder(0)), "3");
    let found = finding(&root, "cpu.throttled");
    let title = "a frequency is limited because of heat now (Processor)";
    assert_eq!((found.state, &*found.title), (FindingState::Fail, title));
    put(&root, &format!("{}/type", folder(0)), "Fan");
    assert_eq!(finding(&root, "cpu.throttled").state, FindingState::Ok);
}
