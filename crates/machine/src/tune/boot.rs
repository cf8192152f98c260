//! Arguments of the kernel. They are never written: a mistake in them can keep a machine from booting.

use serde::Serialize;

use crate::{CpuList, Root, cpus, isolation_arguments, topology};

/// Arguments of the kernel that the CPUs for real-time work need, and how this machine's boot loader takes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Boot {
    /// The arguments that are missing.
    pub arguments: String,
    /// The boot loader that was found; `None` if none is known.
    pub loader: Option<&'static str>,
    /// The steps, each in one sentence or command.
    pub steps: Vec<String>,
}

/// The arguments that keep other work off these CPUs, unless the kernel was booted with all of them.
#[must_use]
pub fn boot(root: &Root, cpus: &CpuList) -> Option<Boot> {
    let others = cpus::online_cpus(root).difference(cpus);
    if cpus.is_empty() || others.is_empty() {
        return None;
    }
    let cmdline = root.read("proc/cmdline").unwrap_or_default();
    let wanted = format!("{} irqaffinity={others}", isolation_arguments(cpus));
    let missing = |word: &&str| !cmdline.split_whitespace().any(|own| own == *word);
    let arguments = wanted.split(' ').filter(missing).collect::<Vec<_>>().join(" ");
    if arguments.is_empty() {
        return None;
    }
    Some(steps_for(root, arguments))
}

/// The steps that add these arguments to this machine's boot loader.
#[must_use]
pub fn steps_for(root: &Root, arguments: String) -> Boot {
    let (loader, mut steps) = match found(root, &arguments) {
        Some((loader, steps)) => (Some(loader), steps),
        None => (None, vec![format!("add to the kernel's arguments in your boot loader: {arguments}")]),
    };
    steps.push("reboot; `punctual check` shows if they took effect".to_owned());
    Boot { arguments, loader, steps }
}

/// Steps that no setting replaces: for cores that other work shares, and for a running irqbalance. `cpus` are the CPUs for
/// real-time work.
#[must_use]
pub fn by_hand(root: &Root, cpus: &CpuList) -> Vec<String> {
    shared_cores(root, cpus).into_iter().chain(irq_balance(root, cpus)).collect()
}

/// The cores of `cpus` whose other threads are online.
fn shared_cores(root: &Root, cpus: &CpuList) -> Vec<String> {
    let online = cpus::online_cpus(root);
    let core = |cpu: u32| topology::core_of(root, cpu).map(|core| core.intersection(&online)).unwrap_or_default();
    let mut cores: Vec<CpuList> = cpus.iter().map(core).filter(|core| core.len() > 1).collect();
    cores.dedup();
    let mut steps = Vec::new();
    for core in cores {
        let (own, others) = (core.intersection(cpus), core.difference(cpus));
        if own.len() > 1 {
            steps.push(format!("{} share one core, so each delays the other: use only one of them", own.in_words()));
        }
        if !others.is_empty() {
            let files = others.iter().map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/online"));
            let files = files.collect::<Vec<_>>().join(" ");
            steps.push(format!(
                "work on {} delays {}, which share a core (SMT): keep it idle, or until the next boot: echo 0 | sudo tee \
                 {files}   # undo: echo 1",
                others.in_words(),
                own.in_words()
            ));
        }
    }
    steps
}

fn irq_balance(root: &Root, cpus: &CpuList) -> Option<String> {
    let runs = root.list("proc").into_iter().any(|pid| {
        pid.bytes().all(|byte| byte.is_ascii_digit())
            && root.read(&format!("proc/{pid}/comm")).as_deref() == Some("irqbalance")
    });
    let file =
        if root.exists("etc/sysconfig/irqbalance") { "etc/sysconfig/irqbalance" } else { "etc/default/irqbalance" };
    runs.then(|| match cpus.is_empty() {
        true => "irqbalance moves interrupts: sudo systemctl stop irqbalance".to_owned(),
        false => format!(
            "irqbalance moves interrupts: echo IRQBALANCE_BANNED_CPULIST={cpus} | sudo tee -a /{file}; sudo systemctl \
             restart irqbalance"
        ),
    })
}

/// The boot loader of this machine, with the steps to add arguments.
fn found(root: &Root, arguments: &str) -> Option<(&'static str, Vec<String>)> {
    let first = |paths: &[&'static str]| paths.iter().copied().find(|path| root.exists(path));
    let is_pi = root.read("proc/device-tree/model").is_some_and(|model| model.starts_with("Raspberry Pi"));
    if let Some(path) = first(&["boot/firmware/cmdline.txt", "boot/cmdline.txt"]).filter(|_| is_pi) {
        let line = root.read(path).unwrap_or_default();
        return Some(("Raspberry Pi firmware", vec![format!("the one line of /{path}: {line} {arguments}")]));
    }
    if root.exists("boot/extlinux/extlinux.conf") {
        let steps = match root.exists("etc/default/u-boot") {
            true => vec![
                in_quotes(root, "etc/default/u-boot", "U_BOOT_PARAMETERS", arguments),
                "sudo u-boot-update".to_owned(),
            ],
            false => vec![format!("add to the line `append` in /boot/extlinux/extlinux.conf: {arguments}")],
        };
        return Some(("extlinux", steps));
    }
    if root.exists("boot/armbianEnv.txt") {
        return Some(("U-Boot", vec![after_equals(root, "boot/armbianEnv.txt", "extraargs", arguments)]));
    }
    if root.exists("boot/uEnv.txt") {
        return Some(("U-Boot", vec![after_equals(root, "boot/uEnv.txt", "cmdline", arguments)]));
    }
    if root.exists("etc/fw_env.config") {
        let command = format!("sudo fw_setenv bootargs \"$(fw_printenv -n bootargs) {arguments}\"");
        return Some(("U-Boot", vec![command]));
    }
    let of_systemd = ["boot/loader/loader.conf", "boot/efi/loader/loader.conf", "efi/loader/loader.conf"];
    if let Some(path) = first(&of_systemd) {
        let steps = match root.read("etc/kernel/cmdline") {
            Some(line) => vec![
                format!("the one line of /etc/kernel/cmdline: {line} {arguments}"),
                "sudo kernel-install add \"$(uname -r)\" \"/lib/modules/$(uname -r)/vmlinuz\"".to_owned(),
            ],
            None => {
                let folder = path.trim_end_matches("loader.conf");
                vec![format!("add to the line `options` in /{folder}entries/*.conf: {arguments}")]
            }
        };
        return Some(("systemd-boot", steps));
    }
    if root.exists("usr/sbin/grubby") {
        return Some(("GRUB", vec![format!("sudo grubby --update-kernel=ALL --args=\"{arguments}\"")]));
    }
    root.exists("etc/default/grub").then(|| {
        let update = match root.exists("usr/sbin/update-grub") || !root.exists("boot/grub2") {
            true => "sudo update-grub",
            false => "sudo grub2-mkconfig -o /boot/grub2/grub.cfg",
        };
        let line = in_quotes(root, "etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT", arguments);
        ("GRUB", vec![line, update.to_owned()])
    })
}

/// The value of the last line `NAME=VALUE` of a file, without quotes.
fn value_of(root: &Root, path: &str, name: &str) -> String {
    let text = root.read(path).unwrap_or_default();
    let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
    values.next_back().unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
}

/// The new line of a file of shell variables.
fn in_quotes(root: &Root, path: &str, name: &str, arguments: &str) -> String {
    let value = value_of(root, path, name);
    format!("in /{path}: {name}=\"{}\"", format!("{value} {arguments}").trim())
}

/// The new line of a file of U-Boot variables.
fn after_equals(root: &Root, path: &str, name: &str, arguments: &str) -> String {
    let value = value_of(root, path, name);
    format!("in /{path}: {name}={}", format!("{value} {arguments}").trim())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn steps(files: &[(&str, &str)]) -> (Option<&'static str>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for (path, text) in [("sys/devices/system/cpu/online", "0-3")].iter().chain(files) {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        }
        let boot = boot(&root, &"2-3".parse().unwrap()).unwrap();
        assert!(boot.steps.last().unwrap().contains("punctual check"));
        (boot.loader, boot.steps[..boot.steps.len() - 1].to_vec())
    }

    const ALL: &str = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1";

    #[test]
    fn each_boot_loader_has_its_line() {
        let line = |files: &[(&str, &str)]| {
            let (loader, steps) = steps(files);
            (loader.unwrap_or("none"), steps.join(" | "))
        };
        let grub =
            ("etc/default/grub", "# GRUB_CMDLINE_LINUX_DEFAULT=\"x\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"\n");
        assert_eq!(
            line(&[grub]),
            (
                "GRUB",
                format!("in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash {ALL}\" | sudo update-grub")
            )
        );
        assert!(
            line(&[grub, ("boot/grub2/grub.cfg", "")]).1.ends_with("| sudo grub2-mkconfig -o /boot/grub2/grub.cfg")
        );
        let pi =
            [("proc/device-tree/model", "Raspberry Pi 5 Model B"), ("boot/firmware/cmdline.txt", "root=/dev/sda rw\n")];
        let expected = format!("the one line of /boot/firmware/cmdline.txt: root=/dev/sda rw {ALL}");
        assert_eq!(line(&pi), ("Raspberry Pi firmware", expected));
        let armbian = [("boot/armbianEnv.txt", "verbosity=1\nextraargs=net.ifnames=0\n")];
        assert_eq!(line(&armbian), ("U-Boot", format!("in /boot/armbianEnv.txt: extraargs=net.ifnames=0 {ALL}")));
        assert_eq!(line(&[("boot/extlinux/extlinux.conf", "")]).0, "extlinux");
        let menu = [("boot/extlinux/extlinux.conf", ""), ("etc/default/u-boot", "")];
        assert!(line(&menu).1.contains(&format!("U_BOOT_PARAMETERS=\"{ALL}\" | sudo u-boot-update")));
        assert!(line(&[("etc/fw_env.config", "")]).1.starts_with("sudo fw_setenv bootargs "));
        let systemd = line(&[("boot/loader/loader.conf", ""), ("etc/kernel/cmdline", "rw")]);
        assert!(
            systemd.0 == "systemd-boot"
                && systemd.1.starts_with(&format!("the one line of /etc/kernel/cmdline: rw {ALL}"))
        );
        assert!(line(&[("usr/sbin/grubby", ""), grub]).1.starts_with("sudo grubby --update-kernel=ALL"));
        assert_eq!(line(&[]), ("none", format!("add to the kernel's arguments in your boot loader: {ALL}")));
    }

    #[test]
    fn cores_that_other_work_shares_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let put = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        put("sys/devices/system/cpu/online", "0-7");
        for cpu in 0..8 {
            let (one, other) = (cpu % 4, cpu % 4 + 4);
            put(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), &format!("{one},{other}"));
        }
        let steps = |cpus: &str| by_hand(&root, &cpus.parse().unwrap());
        assert_eq!(
            steps("2"),
            [
                "work on CPU 6 delays CPU 2, which share a core (SMT): keep it idle, or until the next boot: echo 0 | sudo \
              tee /sys/devices/system/cpu/cpu6/online   # undo: echo 1"
            ]
        );
        assert_eq!(steps("2,6"), ["CPUs 2,6 share one core, so each delays the other: use only one of them"]);
        assert_eq!(steps("2-3").len(), 2);
        put("sys/devices/system/cpu/online", "0-5");
        assert!(steps("2-3").is_empty() && steps("").is_empty(), "the siblings are offline");
    }

    #[test]
    fn arguments_in_force_are_left_out() {
        let (_, steps) = steps(&[("proc/cmdline", "quiet nohz_full=2-3 irqaffinity=0-1 rcu_nocbs=1")]);
        assert!(steps[0].ends_with(": isolcpus=managed_irq,domain,2-3 rcu_nocbs=2-3"), "{steps:?}");
    }
}
