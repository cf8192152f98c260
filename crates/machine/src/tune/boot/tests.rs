use std::fs;

use super::{files::KERNELSTUB_OPTIONS, *};

fn root(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    let cpus = [("sys/devices/system/cpu/online", "0-3"), ("sys/devices/system/cpu/nohz_full", "(null)")];
    for (path, text) in cpus.iter().chain(files) {
        fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
        fs::write(root.path(path), text).unwrap();
    }
    (folder, root)
}

fn steps(files: &[(&str, &str)]) -> (Option<&'static str>, Vec<String>) {
    let (_folder, root) = root(files);
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
        ("GRUB", format!("in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash {ALL}\" | sudo update-grub"))
    );
    assert!(line(&[grub, ("boot/grub2/grub.cfg", "")]).1.ends_with("| sudo grub2-mkconfig -o /boot/grub2/grub.cfg"));
    let read_only = [grub, ("boot/grub2/grub.cfg", ""), ("usr/sbin/transactional-update", "")];
    assert!(line(&read_only).1.ends_with("| sudo transactional-update grub.cfg"));
    let pi =
        [("proc/device-tree/model", "Raspberry Pi 5 Model B"), ("boot/firmware/cmdline.txt", "root=/dev/sda rw\n")];
    let expected = format!("the one line of /boot/firmware/cmdline.txt: root=/dev/sda rw {ALL}");
    assert_eq!(line(&pi), ("Raspberry Pi firmware", expected));
    let armbian = [("boot/armbianEnv.txt", "verbosity=1\nextraargs=net.ifnames=0\n")];
    assert_eq!(line(&armbian), ("U-Boot", format!("in /boot/armbianEnv.txt: extraargs=net.ifnames=0 {ALL}")));
    assert_eq!(line(&[("boot/extlinux/extlinux.conf", "")]).0, "extlinux");
    let menu = [("boot/extlinux/extlinux.conf", ""), ("etc/default/u-boot", "")];
    assert!(line(&menu).1.contains(&format!("U_BOOT_PARAMETERS=\"{ALL}\" | sudo u-boot-update")));
    assert!(line(&[("etc/fw_env.config", "")]).1.starts_with("sudo sh -c 'old=$(fw_printenv -n bootargs)"));
    let alpine = [
        ("proc/cmdline", "BOOT_IMAGE=vmlinuz-lts modules=ext4 initrd=initramfs-lts"),
        ("etc/update-extlinux.conf", "overwrite=1\ndefault_kernel_opts=\"quiet nohz_full=1\"\n"),
        ("etc/default/grub", ""),
    ];
    let expected = format!("in /etc/update-extlinux.conf: default_kernel_opts=\"quiet {ALL}\" | sudo update-extlinux");
    assert_eq!(line(&alpine), ("extlinux", expected));
    let systemd = line(&[("boot/loader/loader.conf", ""), ("etc/kernel/cmdline", "rw")]);
    assert!(
        systemd.0 == "systemd-boot" && systemd.1.starts_with(&format!("the one line of /etc/kernel/cmdline: rw {ALL}"))
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
        ["work on CPU 6 delays CPU 2, which share a core (SMT): keep it idle, or until the next boot: echo 0 | sudo \
              tee /sys/devices/system/cpu/cpu6/online   # undo: echo 1"]
    );
    assert_eq!(steps("2,6"), ["CPUs 2,6 share one core, so each delays the other: use only one of them"]);
    assert_eq!(steps("2-3").len(), 2);
    assert!(steps("4")[0].ends_with("CPU 0 cannot go offline: choose a CPU of another core"), "{:?}", steps("4"));
    put("sys/devices/system/cpu/cpu0/online", "1");
    assert!(steps("4")[0].contains("cpu0/online"), "{:?}", steps("4"));
    put("sys/devices/system/cpu/online", "0-5");
    assert!(steps("2-3").is_empty() && steps("").is_empty(), "the siblings are offline");
}

#[test]
fn arguments_in_force_are_left_out() {
    let running = "quiet isolcpus=1 nohz_full=2-3 irqaffinity=0-1 rcu_nocbs=1 isolcpus=1";
    let (_, steps) = steps(&[("proc/cmdline", running)]);
    assert_eq!(
        steps,
        ["add to the kernel's arguments in your boot loader, in place of isolcpus=1: \
                 isolcpus=managed_irq,domain,2-3"]
    );
}

/// The running kernel has the arguments, but the next boot would not.
#[test]
fn values_that_the_next_boot_would_change_are_replaced() {
    let running = ("proc/cmdline", "BOOT_IMAGE=/vmlinuz isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3");
    let grub = ("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"isolcpus=1 nohz_full=3,2 quiet\"\n");
    assert_eq!(
        steps(&[running, grub]).1[0],
        "in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"nohz_full=3,2 quiet irqaffinity=0-1 \
             isolcpus=managed_irq,domain,2-3\""
    );
}

/// The arguments that a search across reboots keeps were measured with those of the running kernel.
#[test]
fn kept_arguments_come_with_those_that_only_the_running_kernel_has() {
    let kept = |files: &[(&str, &str)]| {
        let (_folder, root) = root(files);
        with_running_isolation(&root, vec!["nohz_full=3".to_owned()]).join(" ")
    };
    let running = ("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet isolcpus=3 nohz_full=2-3 irqaffinity=0-2");
    let grub = |value: &'static str| (GRUB, value);
    let in_file = "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet irqaffinity=0-2\"\nGRUB_CMDLINE_LINUX=\"isolcpus=3\"\n";
    assert_eq!(kept(&[running, grub(in_file)]), "nohz_full=3");
    let typed = "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=2\"\n";
    assert_eq!(kept(&[running, grub(typed)]), "nohz_full=3 isolcpus=3 irqaffinity=0-2");
    assert_eq!(kept(&[running]), "nohz_full=3", "the boot loader is not known");
}

/// Another entry was booted, or arguments were typed for one boot: the file lacks what the running kernel has.
#[test]
fn a_changed_line_has_what_only_the_running_kernel_has() {
    const RUNNING: &str = "isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3";
    const NEW: &str = "irqaffinity=0-1 isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3";
    let by_grub = format!("BOOT_IMAGE=/vmlinuz quiet {RUNNING}");
    let other = format!("root=/dev/sda2 ro quiet {RUNNING}");
    let printed = |cmdline: &str, files: &[(&str, &str)]| {
        let steps = steps(&[&[("proc/cmdline", cmdline)], files].concat()).1;
        let end = steps.iter().position(|step| step.starts_with("not printed")).unwrap_or(steps.len());
        steps[..end].join(" | ")
    };
    let grub = (GRUB, "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"a\"\n");
    assert_eq!(
        printed(&by_grub, &[grub]),
        format!("in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"quiet {NEW}\" | sudo update-grub")
    );
    // The two variables are for the same boot.
    let in_both = (GRUB, "GRUB_CMDLINE_LINUX_DEFAULT=\"nohz_full=2-3\"\nGRUB_CMDLINE_LINUX=\"isolcpus=2-3\"\n");
    assert_eq!(
        printed(&by_grub, &[in_both]),
        "in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"nohz_full=2-3 irqaffinity=0-1\" | sudo update-grub"
    );
    let of_tuned = ("etc/tuned/bootcmdline", "TUNED_BOOT_CMDLINE=\"isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3\"\n");
    assert_eq!(
        printed(&by_grub, &[grub, of_tuned]),
        "in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"quiet irqaffinity=0-1\" | sudo update-grub"
    );
    let entries =
        [("boot/loader/loader.conf", ""), ("boot/loader/entries/a.conf", "options root=/dev/sda2 ro\noptions quiet\n")];
    assert_eq!(printed(&other, &entries), format!("in /boot/loader/entries/a.conf: options quiet {NEW}"));
    let kernel = [entries[0], ("etc/kernel/cmdline", "ro")];
    assert!(printed(&other, &kernel).starts_with(&format!("the one line of /etc/kernel/cmdline: ro {NEW} |")));
    let of_uboot = ("proc/device-tree/chosen/u-boot,version", "2024.04");
    let text = format!("default a\nlabel a\nappend quiet\nlabel rt\nappend quiet {RUNNING}\n");
    let labels = printed(&other, &[of_uboot, (EXTLINUX, &text)]);
    assert_eq!(
        labels,
        ["a", "rt"].map(|label| format!("in /{EXTLINUX}, label {label}: append quiet {NEW}")).join(" | ")
    );
    let pi = [("proc/device-tree/model", "Raspberry Pi 5"), ("boot/firmware/cmdline.txt", "rootwait\n")];
    assert_eq!(printed(&other, &pi), format!("the one line of /boot/firmware/cmdline.txt: rootwait {NEW}"));
    let armbian = [of_uboot, (EXTRA_ARGUMENTS[0], "extraargs=quiet\n")];
    assert_eq!(printed(&other, &armbian), format!("in /boot/armbianEnv.txt: extraargs=quiet {NEW}"));
    // The value is not known here.
    assert!(printed(&other, &[of_uboot, ("etc/fw_env.config", "")]).contains(&format!("{NEW}\"'")));
    let grubby =
        [grub, ("usr/sbin/grubby", ""), ("boot/loader/entries/a.conf", "options root=/dev/sda2 $tuned_params\n")];
    assert!(printed(&by_grub, &grubby).contains(&format!("--args=\"{NEW}\"")));
    let nixos = [("etc/NIXOS", ""), (NIXOS, "{ boot.kernelParams = [ \"quiet\" \"isolcpus=1\" ]; }\n")];
    let line = printed(&other, &nixos);
    assert!(line.contains(", in place of isolcpus=2-3 isolcpus=1: ") && line.contains("\"nohz_full=2-3\""), "{line}");
    let parts =
        printed(&other, &[("etc/cmdline.d/root.conf", "rw\n"), ("etc/cmdline.d/b.conf", "# x\nnohz_full=2-3\n")]);
    assert_eq!(
        parts.split(" | ").next().unwrap(),
        "add a line to /etc/cmdline.d/punctual.conf: irqaffinity=0-1 isolcpus=2-3"
    );
    // Nothing is missing now, and what else gives the arguments to the kernel is not known.
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    for (path, text) in [
        ("sys/devices/system/cpu/online", "0-3"),
        (grub.0, grub.1),
        ("proc/cmdline", &format!("{by_grub} irqaffinity=0-1")),
    ] {
        fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
        fs::write(root.path(path), text).unwrap();
    }
    assert_eq!(boot(&root, &"2-3".parse().unwrap()), None);
}

/// The configuration of kernelstub can have arguments that the running kernel was not booted with.
#[test]
fn arguments_in_the_configuration_of_kernelstub_are_removed() {
    let configuration = "{\"user\": {\"kernel_options\": [\"quiet\", \"isolcpus=1\", \"rcu_nocbs=1\"]}}\n";
    let files = [
        ("proc/cmdline", "initrd=\\x root=UUID=1 quiet"),
        ("usr/bin/kernelstub", ""),
        (KERNELSTUB_OPTIONS, configuration),
    ];
    let expected = "sudo kernelstub -d \"isolcpus=1\" -d \"rcu_nocbs=1\" -a \"isolcpus=managed_irq,domain,2-3\" -a \
                    \"nohz_full=2-3\" -a \"rcu_nocbs=2-3\" -a \"irqaffinity=0-1\"";
    assert_eq!(steps(&files), (Some("kernelstub"), vec![expected.to_owned()]));
    assert_eq!(
        known_boot_lines(KERNELSTUB_OPTIONS, configuration, |line| line.replace("quiet", "x")),
        "{\"user\":{\"kernel_options\":[\"x\",\"isolcpus=1\",\"rcu_nocbs=1\"]}}\n"
    );
    assert_eq!(
        known_boot_lines(NIXOS, "boot.kernelParams = [\n \"a\"\n # \"c\"\n \"b\" ];", str::to_owned),
        "boot.kernelParams = [ \"a\" \"b\" ];\n"
    );
}

/// Each line has each argument once, with the new value; others keep their order and quotes.
#[test]
fn earlier_values_are_replaced() {
    const OLD: &str =
        "isolcpus=1 console=tty0 nohz_full=1 dyndbg=\"file x +p\" console=ttyS0 irqaffinity=0 rcu_nocbs=1";
    let new = format!("console=tty0 dyndbg=\"file x +p\" console=ttyS0 {ALL}");
    let printed = |files: &[(&str, &str)]| steps(files).1.join("\n");
    let single = format!("GRUB_CMDLINE_LINUX_DEFAULT='{OLD}' # mine\n");
    assert!(printed(&[("etc/default/grub", &single)]).contains(&format!("GRUB_CMDLINE_LINUX_DEFAULT='{new}'\n")));
    let escape = |text: &str| text.replace('"', "\\\"");
    let double = format!("GRUB_CMDLINE_LINUX=\"a=1 nohz_full=0\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"{}\"\n", escape(OLD));
    assert_eq!(
        printed(&[("etc/default/grub", &double)]),
        format!(
            "in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"{}\"\nin /etc/default/grub: \
                 GRUB_CMDLINE_LINUX=\"a=1\"\nsudo update-grub",
            escape(&new)
        )
    );
    let parts = [
        ("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n"),
        ("etc/default/grub.d/50-cloud.cfg", "GRUB_CMDLINE_LINUX_DEFAULT=\"isolcpus=1 ro\"\n"),
    ];
    let in_part = format!("in /etc/default/grub.d/50-cloud.cfg: GRUB_CMDLINE_LINUX_DEFAULT=\"ro {ALL}\"");
    assert!(printed(&parts).starts_with(&in_part), "{}", printed(&parts));
    let pi = ("proc/device-tree/model", "Raspberry Pi 5 Model B");
    let extlinux = format!("LABEL l0\n  APPEND {OLD}\nlabel l0r\n\tappend ro single nohz_full=1\n");
    let in_uboot = format!("U_BOOT_PARAMETERS=\"{}\"\n", escape(OLD));
    let options = format!("title x\noptions {OLD}\n");
    for (files, expected) in [
        (vec![pi, ("boot/cmdline.txt", OLD)], format!("the one line of /boot/cmdline.txt: {new}")),
        (vec![("boot/armbianEnv.txt", &*format!("extraargs={OLD}"))], format!("extraargs={new}")),
        (vec![("boot/uEnv.txt", &*format!("cmdline={OLD}\n"))], format!("cmdline={new}")),
        (vec![("boot/extlinux/extlinux.conf", &*extlinux)], format!("APPEND {new}\n")),
        (vec![("boot/extlinux/extlinux.conf", &*extlinux)], format!("append ro single {ALL}")),
        (
            vec![("boot/extlinux/extlinux.conf", ""), ("etc/default/u-boot", &*in_uboot)],
            format!("U_BOOT_PARAMETERS=\"{}\"", escape(&new)),
        ),
        (
            vec![("boot/loader/loader.conf", ""), ("etc/kernel/cmdline", OLD)],
            format!("the one line of /etc/kernel/cmdline: {new}\n"),
        ),
        (
            vec![("efi/loader/loader.conf", ""), ("efi/loader/entries/a.conf", &*options)],
            format!("in /efi/loader/entries/a.conf: options {new}"),
        ),
    ] {
        assert!((printed(&files) + "\n").contains(&expected), "{expected}\n{}", printed(&files));
    }
}

/// Values of a shell's variable that contain earlier ones, continued lines, and entries of boot loaders with several
/// lines or none.
#[test]
fn each_assignment_that_is_in_effect_has_its_line() {
    let printed = |files: &[(&str, &str)]| {
        let mut steps = steps(files).1;
        steps.retain(|step| step.starts_with("in /") || step.starts_with("add "));
        steps
    };
    let grub: fn(&str) -> (&str, &str) = |text| ("etc/default/grub", text);
    let part: fn(&str) -> (&str, &str) = |text| ("etc/default/grub.d/50.cfg", text);
    let old = grub("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=1 nohz_full=1\"\n");
    for own in ["$GRUB_CMDLINE_LINUX_DEFAULT", "${GRUB_CMDLINE_LINUX_DEFAULT}"] {
        let inherits = format!("GRUB_CMDLINE_LINUX_DEFAULT=\"{own} mitigations=off\"\n");
        assert_eq!(
            printed(&[old, part(&inherits)]),
            [
                "in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"".to_owned(),
                format!("in /etc/default/grub.d/50.cfg: GRUB_CMDLINE_LINUX_DEFAULT=\"{own} mitigations=off {ALL}\""),
            ]
        );
    }
    // In single quotes, the value has a dollar sign; another variable is not this one.
    let literal = part("GRUB_CMDLINE_LINUX_DEFAULT='$GRUB_CMDLINE_LINUX_DEFAULT'\n");
    let other = part("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT_OLD\"\n");
    assert_eq!((printed(&[old, literal]).len(), printed(&[old, other]).len()), (1, 1));
    assert_eq!(
        printed(&[
            grub(
                "GRUB_CMDLINE_LINUX=\"a=1 irqaffinity=0\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet \\\n splash isolcpus=1\"\n"
            ),
            part(
                "export GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} nohz_full=3\"\nGRUB_CMDLINE_LINUX_DEFAULT+=\" ro\"\n"
            ),
        ]),
        [
            "in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"".to_owned(),
            format!("in /etc/default/grub.d/50.cfg: GRUB_CMDLINE_LINUX_DEFAULT+=\" ro {ALL}\""),
            "in /etc/default/grub: GRUB_CMDLINE_LINUX=\"a=1\"".to_owned(),
            "in /etc/default/grub.d/50.cfg: export GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX}\"".to_owned(),
        ]
    );
    let extlinux = |text| printed(&[("boot/extlinux/extlinux.conf", text)]);
    assert_eq!(
        extlinux("default b\nlabel a\n  append ro nohz_full=1\nlabel b\n  linux /b\n"),
        [
            format!("in /boot/extlinux/extlinux.conf, label a: append ro {ALL}"),
            format!("add a line to /boot/extlinux/extlinux.conf, label b: append {ALL}"),
        ]
    );
    assert_eq!(
        extlinux("append quiet\ndefault b\nlabel a\nlabel b\n"),
        [format!("in /boot/extlinux/extlinux.conf: append quiet {ALL}")],
        "for all labels"
    );
    let entry = ("efi/loader/entries/a.conf", "title x\noptions ro nohz_full=1\noptions quiet\n");
    assert_eq!(
        printed(&[("efi/loader/loader.conf", ""), entry]),
        [
            "in /efi/loader/entries/a.conf: options ro".to_owned(),
            format!("in /efi/loader/entries/a.conf: options quiet {ALL}"),
        ]
    );
}

/// The command for U-Boot's environment, executed with a false environment.
#[test]
fn the_environment_of_uboot_gets_each_argument_once() {
    let command = steps(&[("etc/fw_env.config", "")]).1.remove(0);
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let program = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let file = folder.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("sudo", "exec \"$@\"");
    program("fw_setenv", "printf '%s|' \"$@\"");
    let run = |print: &str| {
        program("fw_printenv", print);
        let output = std::process::Command::new("sh").arg("-c").arg(&command).env("PATH", &path).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        run("echo 'root=/dev/sda isolcpus=1 nohz_full=1 rcu_nocbs isolcpus.x=2 quiet'"),
        format!("bootargs|root=/dev/sda isolcpus.x=2 quiet {ALL}|")
    );
    for unreadable in ["exit 1", "echo 'x=1'; exit 1", "echo"] {
        assert_eq!(run(unreadable), "", "{unreadable}: nothing is set");
    }
}

#[test]
fn distributions_with_their_own_command_get_it() {
    let printed = |files: &[(&str, &str)]| {
        let (loader, steps) = steps(files);
        format!("{}: {}", loader.unwrap_or("none"), steps.join(" | "))
    };
    let grub = ("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n");
    let options = |option: &str| ALL.split(' ').map(|word| format!(" {option}\"{word}\"")).collect::<String>();
    let ostree = [grub, ("proc/cmdline", "ostree=/ostree/boot.1/x rw nohz_full=1")];
    assert_eq!(
        printed(&ostree),
        format!(
            "rpm-ostree: sudo rpm-ostree kargs --delete-if-present=\"nohz_full=1\"{}",
            options("--append-if-missing=")
        )
    );
    assert_eq!(
        printed(&[("usr/bin/kernelstub", ""), ("boot/efi/loader/loader.conf", "")]),
        format!("kernelstub: sudo kernelstub{}", options("-a "))
    );
    let proxmox = [
        grub,
        ("etc/kernel/proxmox-boot-uuids", "1"),
        ("etc/kernel/cmdline", "rw"),
        ("proc/cmdline", "initrd=\\EFI\\proxmox\\6.8\\initrd.img rw"),
    ];
    assert_eq!(
        printed(&proxmox),
        format!("systemd-boot: the one line of /etc/kernel/cmdline: rw {ALL} | sudo proxmox-boot-tool refresh")
    );
    assert!(printed(&proxmox[..2]).ends_with("sudo update-grub"), "it boots by GRUB");
    let nixos = printed(&[("etc/NIXOS", ""), ("boot/loader/loader.conf", "")]);
    assert!(nixos.starts_with("NixOS: add to boot.kernelParams") && nixos.ends_with("sudo nixos-rebuild boot"));
    let arch = [("boot/loader/loader.conf", ""), ("etc/mkinitcpio.d/linux.preset", "default_uki=\"/efi/x.efi\"\n")];
    let line = printed(&[&arch[..], &[("etc/kernel/cmdline", "rw")]].concat());
    assert!(line.ends_with("| sudo mkinitcpio -P"), "{line}");
    let parts = printed(&[&arch[..], &[("etc/cmdline.d/root.conf", "rw")]].concat());
    assert!(parts.contains("add a line to /etc/cmdline.d/punctual.conf: isolcpus"), "{parts}");
    let suse = [("boot/efi/loader/loader.conf", ""), ("etc/kernel/cmdline", "rw"), ("usr/bin/sdbootutil", "")];
    assert!(printed(&suse).ends_with("sudo sdbootutil update-all-entries"));
    assert!(printed(&[grub, ("boot/grub/grub.cfg", "")]).ends_with("sudo grub-mkconfig -o /boot/grub/grub.cfg"));
    let bls = ("etc/default/grub", "GRUB_ENABLE_BLSCFG=true\nGRUB_CMDLINE_LINUX=\"ro\"\n");
    let entry = ("boot/loader/entries/a.conf", "options root=/dev/sda ro\n");
    assert!(printed(&[bls, entry]).contains(&format!("a.conf: options root=/dev/sda ro {ALL}")));
}

#[test]
fn the_configuration_of_a_pi_can_name_another_file() {
    let model = ("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4");
    let line = |config: &str, files: &[&str]| {
        let mut all = vec![model, ("boot/firmware/config.txt", config)];
        all.extend(files.iter().map(|path| (*path, "rw")));
        steps(&all).1.join(" | ")
    };
    assert!(
        line("cmdline=own.txt\n", &["boot/firmware/cmdline.txt", "boot/firmware/own.txt"]).contains("/own.txt: rw")
    );
    // Another board, and a file that does not exist.
    let both = ["boot/firmware/cmdline.txt", "boot/firmware/own.txt"];
    assert!(line("[pi3]\ncmdline=own.txt\n[all]\n", &both).contains("/firmware/cmdline.txt: rw"));
    assert!(line("[pi3]\ncmdline=x.txt\n[all]\ncmdline=own.txt\n", &both).contains("/firmware/own.txt: rw"));
    assert!(line("[pi4]\ncmdline=own.txt\n[pi5]\ncmdline=x.txt\n", &both).contains("/firmware/own.txt: rw"));
    assert!(line("[pi4]\n[HDMI:0]\ncmdline=own.txt\n", &both).contains("/firmware/cmdline.txt: rw"));
    assert!(
        line("cmdline=../../etc/passwd\n", &["boot/firmware/cmdline.txt", "etc/passwd"]).contains("/cmdline.txt: rw")
    );
    let running = ("proc/cmdline", "isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1");
    let config = ("boot/firmware/config.txt", "cmdline=own.txt\n");
    let own = ("boot/firmware/own.txt", "isolcpus=1 rw");
    assert_eq!(
        steps(&[model, running, config, own, ("boot/firmware/cmdline.txt", "irqaffinity=0")]).1,
        ["the one line of /boot/firmware/own.txt: rw isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 \
          irqaffinity=0-1"],
        "the other file is not read"
    );
    assert!(line("os_prefix=current/\n", &["boot/firmware/current/cmdline.txt"]).contains("/current/cmdline.txt: rw"));
    assert!(line("os_prefix=gone/\n", &["boot/firmware/cmdline.txt"]).contains("/firmware/cmdline.txt: rw"));
    let beagle = [("boot/uEnv.txt", "optargs=quiet\n")];
    assert_eq!(steps(&beagle).1, [format!("in /boot/uEnv.txt: optargs=quiet {ALL}")]);
    assert!(steps(&[("boot/uEnv.txt", "")]).1[0].starts_with("add to the variable of /boot/uEnv.txt"));
}

/// Files of a boot loader remain when another one is installed: what the running system shows decides.
#[test]
fn files_of_another_boot_loader_are_ignored() {
    let loader = |cmdline: &str, info: &str, files: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let put = |path: &str, bytes: &[u8]| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), bytes).unwrap();
        };
        put("sys/devices/system/cpu/online", b"0-3");
        put("proc/cmdline", cmdline.as_bytes());
        files.iter().for_each(|path| put(path, b""));
        if !info.is_empty() {
            let text = [6, 0, 0, 0].into_iter().chain(info.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
            put(&format!("sys/firmware/efi/efivars/LoaderInfo-{VENDOR}"), &text.collect::<Vec<u8>>());
        }
        boot(&root, &"2-3".parse().unwrap()).unwrap().loader.unwrap_or("none")
    };
    const LOADER_CONF: &str = "boot/efi/loader/loader.conf";
    const FW_ENV: &str = "etc/fw_env.config";
    let by_grub = "BOOT_IMAGE=/boot/vmlinuz-6.12 root=/dev/sda2 ro";
    let (by_syslinux, other) = ("BOOT_IMAGE=vmlinuz-lts root=/dev/sda2 initrd=initramfs-lts", "root=/dev/sda2 ro");
    for left in [LOADER_CONF, FW_ENV, "boot/armbianEnv.txt", "boot/uEnv.txt", "usr/bin/kernelstub", "etc/cmdline.d"] {
        assert_eq!(loader(by_grub, "", &[left, GRUB]), "GRUB", "{left}");
        assert_eq!(loader(by_grub, "", &[left]), "none", "{left}: GRUB without its files");
    }
    assert_eq!(loader(by_grub, "systemd-boot 257", &[LOADER_CONF, GRUB]), "GRUB", "started by systemd-boot");
    assert_eq!(loader(other, "systemd-boot 257", &[LOADER_CONF, GRUB]), "systemd-boot");
    assert_eq!(loader(other, "systemd-boot 257", &["etc/kernel/cmdline", GRUB]), "systemd-boot");
    assert_eq!(loader(other, "systemd-boot 257", &[GRUB, FW_ENV]), "none");
    assert_eq!(loader(other, "GRUB 2.12", &[LOADER_CONF, GRUB]), "GRUB");
    assert_eq!(loader(other, "rEFInd 0.14", &[LOADER_CONF, GRUB]), "none");
    assert_eq!(loader(by_grub, "", &[EXTLINUX, GRUB]), "GRUB");
    assert_eq!(loader(by_syslinux, "", &[EXTLINUX, GRUB]), "extlinux");
    assert_eq!(loader(by_grub, "", &[EXTLINUX]), "extlinux");
    let by_uboot = "proc/device-tree/chosen/u-boot,version";
    assert_eq!(loader(other, "", &[by_uboot, FW_ENV, LOADER_CONF, GRUB]), "U-Boot");
    assert_eq!(loader(other, "", &[by_uboot, LOADER_CONF, GRUB]), "U-Boot");
    assert_eq!(loader(by_grub, "", &[by_uboot, FW_ENV, GRUB]), "GRUB", "U-Boot started GRUB");
    assert_eq!(loader(other, "", &[by_uboot, "sys/firmware/efi/runtime", LOADER_CONF]), "systemd-boot");
    // Nothing shows the boot loader, but GRUB would have added its argument.
    assert_eq!(loader(other, "", &[LOADER_CONF, GRUB]), "systemd-boot");
    assert_eq!(loader(other, "", &[GRUB, "usr/sbin/grubby"]), "none");
    assert_eq!(loader("", "", &[GRUB]), "GRUB", "the arguments are not known");
    assert_eq!(loader(other, "", &[GRUB, "sys/hypervisor/type"]), "GRUB", "Xen started the kernel");
    for by_kernel in ["proc/device-tree/chosen/linux,booted-from-kexec", "proc/device-tree/ibm,opal/phandle"] {
        assert_eq!(loader(other, "", &[GRUB, by_kernel]), "GRUB", "{by_kernel}");
    }
}

/// GRUB is installed and did not start the kernel: the doubt names the places of the arguments that are known.
#[test]
fn a_kernel_that_grub_did_not_start_has_an_unknown_boot_loader() {
    let printed = |cmdline: &str, file: &str| {
        let (loader, steps) = steps(&[(GRUB, ""), ("proc/cmdline", cmdline), (file, "")]);
        assert_eq!((loader, steps.len()), (None, 2), "{steps:?}");
        assert!(steps[1].starts_with("add to the kernel's arguments in your boot loader: isolcpus="), "{steps:?}");
        steps[0].clone()
    };
    let doubt = "which boot loader started the kernel is not known: not GRUB, which adds BOOT_IMAGE= to /proc/cmdline";
    assert_eq!(printed("root=/dev/sda2 rw", "boot/grub/grub.cfg"), doubt);
    let by_kexec = ("proc/sys/kernel/bootloader_type", "208\n");
    assert_eq!(steps(&[(GRUB, ""), ("proc/cmdline", "root=/dev/sda2 rw"), by_kexec]).0, Some("GRUB"));
    let limine = printed("root=/dev/sda2 rw", "boot/limine.conf");
    assert_eq!(limine, format!("{doubt}; look in cmdline in /boot/limine.conf (Limine)"));
    let stub = printed("root=/dev/sda2 rw initrd=\\initramfs-linux.img", "boot/grub/grub.cfg");
    assert_eq!(stub, format!("{doubt}; look in the entry of the firmware (sudo efibootmgr --unicode)"));
    let (loader, steps) =
        steps(&[(GRUB, ""), ("proc/cmdline", "root=/dev/vda1"), ("sys/class/dmi/id/sys_vendor", "QEMU")]);
    assert!(
        loader.is_none() && steps[0].ends_with("look in the host, which can start the kernel of a guest by itself")
    );
}

/// Fedora, Red Hat and SUSE have no `update-grub`.
#[test]
fn grub2_has_its_own_command_and_file() {
    let grub = (GRUB, "GRUB_CMDLINE_LINUX=\"quiet\"\n");
    let command = |files: &[(&str, &str)]| steps(&[&[grub], files].concat()).1.pop().unwrap();
    let fedora = ("etc/os-release", "NAME=\"Fedora Linux\"\nID=fedora\n");
    assert_eq!(command(&[fedora]), "sudo grub2-mkconfig -o /boot/grub2/grub.cfg");
    assert_eq!(
        command(&[("etc/os-release", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n")]),
        "sudo grub2-mkconfig -o /boot/grub2/grub.cfg"
    );
    let of_efi = ("boot/efi/EFI/redhat/grub.cfg", "");
    let red_hat = [("usr/sbin/grub2-mkconfig", ""), of_efi];
    assert_eq!(command(&red_hat), "sudo grub2-mkconfig -o /boot/efi/EFI/redhat/grub.cfg");
    // The file of EFI only names the other one.
    assert_eq!(command(&[of_efi, ("boot/grub2/grub.cfg", "")]), "sudo grub2-mkconfig -o /boot/grub2/grub.cfg");
    assert_eq!(command(&[("etc/os-release", "ID=debian\n")]), "sudo update-grub");
}

/// The next boot does not read the arguments in the files of another boot loader.
#[test]
fn arguments_in_files_of_another_boot_loader_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    let put = |path: &str, text: &str| {
        fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
        fs::write(root.path(path), text).unwrap();
    };
    put("sys/devices/system/cpu/online", "0-3");
    put("sys/devices/system/cpu/nohz_full", "2-3");
    put("proc/cmdline", &format!("BOOT_IMAGE=/vmlinuz {ALL}"));
    put(GRUB, &format!("GRUB_CMDLINE_LINUX_DEFAULT=\"{ALL}\"\n"));
    let planned = || boot(&root, &"2-3".parse().unwrap());
    for (path, text) in [
        ("boot/efi/loader/entries/a.conf", "options isolcpus=1\n"),
        ("boot/armbianEnv.txt", "extraargs=nohz_full=1\n"),
        ("boot/uEnv.txt", "cmdline=nohz_full=1\n"),
        ("boot/cmdline.txt", "isolcpus=1\n"),
    ] {
        put(path, text);
        assert_eq!(planned(), None, "{path}");
    }
    put("etc/default/grub.d/a.cfg", "GRUB_CMDLINE_LINUX=\"isolcpus=1\"\n");
    assert!(planned().is_some());
    fs::remove_dir_all(root.path("etc/default/grub.d")).unwrap();
    put("boot/loader/entries/a.conf", "options isolcpus=1\n");
    assert!(planned().is_some(), "GRUB reads such entries, too");
}

#[test]
fn of_a_snapshot_only_the_change_is_printed() {
    let of = |path: &str, text: &str| steps(&[(path, text)]).1.remove(0);
    assert_eq!(
        of("boot/extlinux/extlinux.conf", "label l0\nappend root=removed nohz_full=1 removed\n"),
        format!("in /boot/extlinux/extlinux.conf: add {ALL}, in place of nohz_full=1")
    );
    assert_eq!(
        of("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"removed quiet\"\n"),
        format!("in /etc/default/grub, GRUB_CMDLINE_LINUX_DEFAULT: add {ALL}")
    );
    assert_eq!(of("boot/armbianEnv.txt", "extraargs=x=removed\n"), format!("in /boot/armbianEnv.txt: add {ALL}"));
}

/// A value that only a shell can read is not written as a line, which could lose a part of it.
#[test]
fn of_a_value_that_is_no_plain_text_only_the_change_is_printed() {
    let of = |value: &str| {
        let text = format!("GRUB_CMDLINE_LINUX_DEFAULT={value}\n");
        steps(&[("etc/default/grub", &text)]).1.remove(0)
    };
    let only = |in_place: &str| format!("in /etc/default/grub, GRUB_CMDLINE_LINUX_DEFAULT: add {ALL}{in_place}");
    for value in [
        "$(cat /etc/x)",
        "`cat /etc/x`",
        "\"$(cat /etc/x)\"",
        "'quiet'\" splash\"",
        "quiet\\ splash",
        "\"quiet\nsplash\"",
    ] {
        assert_eq!(of(value), only(""), "{value}");
    }
    assert_eq!(of("'quiet'\" isolcpus=1\""), only(", in place of isolcpus=1"));
    let condition = "if true; then\n  GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nfi\n";
    assert_eq!(steps(&[("etc/default/grub", condition)]).1.remove(0), only(""));
    for (value, line) in
        [("quiet # usual", "\"quiet "), ("'quiet $(x)'", "'quiet $(x) "), ("\"a \\\"b\\\"\"; x", "\"a \\\"b\\\" ")]
    {
        assert!(
            of(value).starts_with(&format!("in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT={line}")),
            "{}",
            of(value)
        );
    }
}

#[test]
fn arguments_depend_on_the_kernel() {
    let files = [("proc/sys/kernel/osrelease", "6.6.31"), ("boot/config-6.6.31", "CONFIG_CPU_ISOLATION=y\n")];
    let expected = "not printed, because this kernel does not have them: nohz_full (CONFIG_NO_HZ_FULL), rcu_nocbs (CONFIG_RCU_NOCB_CPU)";
    assert_eq!(steps(&files).1[1], expected);
    let of = |release: &str, config: &str| {
        let files = [("proc/sys/kernel/osrelease", release), (&*format!("boot/config-{release}"), config)];
        steps(&files[..if config.is_empty() { 1 } else { 2 }]).1.remove(0)
    };
    let of = |release: &str, config: &str| of(release, config).split_once(": ").unwrap().1.to_owned();
    assert_eq!(of("5.6.0", ""), ALL);
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    for (path, text) in [("sys/devices/system/cpu/online", "0-3"), ("proc/sys/kernel/osrelease", "5.6.0")] {
        fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
        fs::write(root.path(path), text).unwrap();
    }
    let without_file = boot(&root, &"2-3".parse().unwrap()).unwrap();
    assert_eq!(without_file.arguments, ALL.replace("nohz_full=2-3 ", ""));
    assert_eq!(
        without_file.steps[1],
        "not printed, because this kernel does not have them: nohz_full (CONFIG_NO_HZ_FULL)"
    );
    for old in ["5.4.0-rt", "4.19.0", "4.9.337-tegra"] {
        assert_eq!(of(old, ""), ALL.replace("managed_irq,domain,", ""), "{old}");
    }
    assert_eq!(of("4.18.0-553.rt7.el8_10.x86_64", ""), ALL);
    assert_eq!(
        of("6.6.31+rpt-rpi-v8", "CONFIG_CPU_ISOLATION=y\nCONFIG_RCU_NOCB_CPU=y\n"),
        ALL.replace("nohz_full=2-3 ", "")
    );
    assert_eq!(of("6.6.0", "CONFIG_HZ=250\n"), "irqaffinity=0-1");
    assert_eq!(of("4.9.0", "CONFIG_HZ=250\n"), "isolcpus=2-3 irqaffinity=0-1");
}

#[test]
fn the_cpu_of_the_time_keeps_its_tick() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    fs::create_dir_all(root.path("sys/devices/system/cpu")).unwrap();
    fs::write(root.path("sys/devices/system/cpu/online"), "0-3").unwrap();
    let of = |cpus: &str| boot(&root, &cpus.parse().unwrap()).unwrap();
    assert!(of("0-1").arguments.contains("isolcpus=managed_irq,domain,0-1 nohz_full=1 rcu_nocbs=0-1"));
    assert!(!of("0").arguments.contains("nohz_full"));
    assert!(of("0").steps.iter().any(|step| step.starts_with("CPU 0 keeps its tick")));
    assert!(of("0").steps.iter().any(|step| step.starts_with("CPU 0 stays among those of irqaffinity")));
    assert!(!of("1").steps.iter().any(|step| step.starts_with("CPU 0")));
}

/// The next boot brings them online, and the argument would keep interrupts off them for good.
#[test]
fn offline_cpus_serve_interrupts_after_the_boot() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    fs::create_dir_all(root.path("sys/devices/system/cpu")).unwrap();
    let put = |name: &str, cpus: &str| fs::write(root.path(&format!("sys/devices/system/cpu/{name}")), cpus).unwrap();
    put("online", "0-3");
    put("present", "0-5");
    let of = |cpus: &str| boot(&root, &cpus.parse().unwrap()).map(|boot| boot.arguments).unwrap_or_default();
    assert!(of("2-3").ends_with(" irqaffinity=0-1,4-5"), "{}", of("2-3"));
    assert_eq!(of("0-3"), "", "no CPU would remain for other work now");
    put("present", "0-1");
    assert!(of("2-3").ends_with(" irqaffinity=0-1"), "{}", of("2-3"));
}

#[test]
fn the_arguments_of_tuned_are_changed_in_its_profile() {
    let grub = [("etc/default/grub", "GRUB_CMDLINE_LINUX=\"ro\"\n"), ("usr/sbin/grubby", "")];
    let own = ("etc/tuned/bootcmdline", "TUNED_BOOT_CMDLINE=\"skew_tick=1 isolcpus=managed_irq,domain,1\"\n");
    let environment = ("boot/grub2/grubenv", "# GRUB Environment Block\ntuned_params=nohz_full=1 irqaffinity=0\n");
    let realtime = ("etc/tuned/active_profile", "realtime\n");
    let by_profile = [
        "tuned adds arguments of its own: in /etc/tuned/realtime-variables.conf: isolated_cores=2-3",
        "sudo tuned-adm profile realtime",
    ];
    for file in [own, environment] {
        assert_eq!(steps(&[&grub[..], &[file, realtime]].concat()).1, by_profile, "{file:?}");
    }
    let other = steps(&[&grub[..], &[own, ("etc/tuned/active_profile", "my-profile\n")]].concat()).1.join(" | ");
    assert!(other.contains("in place of isolcpus=managed_irq,domain,1") && other.contains("tuned-adm off"), "{other}");
    let with_command =
        steps(&[&grub[..], &[own, ("etc/tuned/active_profile", "realtime;reboot\n")]].concat()).1.join(" | ");
    assert!(!with_command.contains("reboot"), "{with_command}");
    let harmless = ("etc/tuned/bootcmdline", "TUNED_BOOT_CMDLINE=\"skew_tick=1\"\n");
    let unchanged = steps(&[&grub[..], &[harmless, realtime]].concat()).1.join(" | ");
    assert!(unchanged.starts_with("sudo grubby"), "{unchanged}");
}

#[test]
fn uboot_without_known_files_is_named() {
    let uboot = ("proc/device-tree/chosen/u-boot,version", "2024.04");
    let (loader, steps_of) = steps(&[uboot]);
    assert_eq!(loader, Some("U-Boot"));
    assert!(steps_of[0].starts_with("add to the variable bootargs"), "{steps_of:?}");
    let orange = steps(&[uboot, ("boot/orangepiEnv.txt", "extraargs=quiet\n")]).1.join(" | ");
    assert!(orange.starts_with("in /boot/orangepiEnv.txt: extraargs=quiet isolcpus="), "{orange}");
}
