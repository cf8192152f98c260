//! Arguments of the kernel. They are never written: a mistake in them can keep a machine from booting.

mod files;
mod loader;
mod shell;
#[cfg(test)]
mod tests;

use serde::Serialize;

use self::{
    files::{
        BLS_ENTRIES, EXTLINUX, EXTLINUX_OPTIONS, EXTLINUX_VARIABLE, EXTRA_ARGUMENTS, GRUB, GRUB_DEFAULT, GRUB_EVERY,
        NIXOS, U_ENV, boots, first_line, grub_files, has_parts, lines,
    },
    loader::{Loader, Traces},
    shell::{after_equals, in_effect, shell_variable},
};
pub(crate) use self::{
    files::{is_boot_file, known_boot_lines},
    loader::VENDOR,
};
use super::firmware;
use crate::{
    CpuList, Root, boot_arguments, cpus,
    init::Init,
    irqbalance::{self, Environment},
    kernel::Isolation,
    topology, virt,
};

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
    let others = boot_arguments::others_at_boot(root, cpus)?;
    let cmdline = root.read("proc/cmdline").unwrap_or_default();
    let arguments = arguments_to_add(root, &cmdline, cpus, &others);
    if arguments.is_empty() {
        return None;
    }
    let isolation = Isolation::read(root);
    let mut boot = steps_for(root, arguments.join(" "));
    let mut notes = Vec::new();
    let lacking = isolation.lacking();
    if !lacking.is_empty() {
        notes.push(format!("not printed, because this kernel does not have them: {}", lacking.join(", ")));
    }
    if cpus.contains(0) && boot.arguments.contains("isolcpus=") {
        notes.push("CPU 0 keeps its tick: the kernel keeps the time on the CPU that it boots on".to_owned());
    }
    if cpus.contains(0) && boot.arguments.contains("irqaffinity=") {
        // `irq_affinity_setup` in kernel/irq/irqdesc.c.
        notes.push("CPU 0 stays among those of irqaffinity: the kernel adds the CPU that it boots on".to_owned());
    }
    let reboot = boot.steps.len() - 1;
    boot.steps.splice(reboot..reboot, notes);
    Some(boot)
}

/// The arguments that keep other work off these CPUs and that the running kernel lacks, or that its next boot would lack.
///
/// The files of a boot loader can differ from `cmdline`, the arguments of the running kernel: another entry was booted, or
/// arguments were typed for one boot. If the running kernel and each line agree in the values, nothing is added.
pub(crate) fn arguments_to_add(root: &Root, cmdline: &str, cpus: &CpuList, others: &CpuList) -> Vec<String> {
    let missing = |line: &str| boot_arguments::missing_isolation(root, line, cpus, others);
    let is_new = |word: &str, all: &[String]| {
        !all.iter().any(|own| boot_arguments::is_same(boot_arguments::name(own), boot_arguments::name(word)))
    };
    let mut arguments = missing(cmdline);
    // The next boot would replace what the running kernel has.
    for line in lines(root) {
        let is_other = |word: &String| !boot_arguments::replaced(&line, &[word]).is_empty() && is_new(word, &arguments);
        let other: Vec<String> = missing(&line).into_iter().filter(is_other).collect();
        arguments.extend(other);
    }
    if arguments.is_empty() {
        return arguments;
    }
    let isolation = Isolation::read(root);
    // The two lists must be equal, but the present one of `isolcpus` is not kept if a line of a boot loader has another.
    if isolation.has_one_list && arguments.iter().any(|word| boot_arguments::name(word) == "isolcpus") {
        let own = isolation.arguments(cpus);
        let own = own.split(' ').find(|word| boot_arguments::name(word) == "nohz_full");
        let lists = arguments.iter_mut().filter(|word| boot_arguments::name(word) == "nohz_full");
        lists.zip(own).for_each(|(word, own)| own.clone_into(word));
    }
    // The changed line must also have what only the running kernel has.
    for line in boots(root, &arguments) {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let lacking = missing(&boot_arguments::with(&line, &words)).into_iter().filter(|word| is_new(word, &arguments));
        let running = |word: String| match boot_arguments::replaced(cmdline, &[&word]).last() {
            Some(running) => (*running).to_owned(),
            None => word,
        };
        let lacking: Vec<String> = lacking.map(running).collect();
        arguments.extend(lacking);
    }
    arguments
}

/// These arguments, and those of the running kernel that keep other work off CPUs and that a boot with them would lack,
/// because the files of the boot loader do not contain them.
#[must_use]
pub fn with_running_isolation(root: &Root, mut arguments: Vec<String>) -> Vec<String> {
    let cmdline = root.read("proc/cmdline").unwrap_or_default();
    let boots = boots(root, &arguments);
    for name in ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"] {
        let Some(running) = boot_arguments::value(&cmdline, name) else { continue };
        let is_new = boot_arguments::value(&arguments.join(" "), name).is_some();
        if !is_new && boots.iter().any(|line| boot_arguments::value(line, name) != Some(running)) {
            arguments.push(format!("{name}={running}"));
        }
    }
    arguments
}

/// The steps that add these arguments to this machine's boot loader. They replace those of the same name.
#[must_use]
pub fn steps_for(root: &Root, arguments: String) -> Boot {
    let added = boot_arguments::words(&arguments);
    let is_container = virt::is_container(root);
    let loader = if is_container { None } else { found(root, &added) };
    let (loader, mut steps) = match loader {
        Some((loader, steps)) => (Some(loader), steps),
        None => {
            let cmdline = root.read("proc/cmdline").unwrap_or_default();
            let in_place_of = in_place_of(&cmdline, &added);
            let place = if is_container { "on the host, in its boot loader" } else { "in your boot loader" };
            let add = format!("add to the kernel's arguments {place}{in_place_of}: {arguments}");
            let doubt = if is_container { None } else { not_grub(root, &cmdline) };
            (None, doubt.into_iter().chain([add]).collect())
        }
    };
    steps.push("reboot; `punctual check` shows if they took effect".to_owned());
    Boot { arguments, loader, steps }
}

/// True if the files of GRUB are here.
fn has_grub(root: &Root) -> bool {
    root.exists("usr/sbin/grubby") || root.exists(GRUB)
}

/// The doubt if GRUB is installed but did not start the kernel, with the places where its arguments can be instead.
fn not_grub(root: &Root, cmdline: &str) -> Option<String> {
    /// Files of boot loaders that leave no trace in the running system.
    const FILES: [(&str, &str); 5] = [
        ("boot/limine.conf", "cmdline in /boot/limine.conf (Limine)"),
        ("boot/limine/limine.conf", "cmdline in /boot/limine/limine.conf (Limine)"),
        ("boot/efi/limine.conf", "cmdline in /boot/efi/limine.conf (Limine)"),
        ("boot/refind_linux.conf", "the lines of /boot/refind_linux.conf (rEFInd)"),
        ("boot/efi/EFI/refind/refind.conf", "options in /boot/efi/EFI/refind/refind.conf (rEFInd)"),
    ];
    if !has_grub(root) || cmdline.is_empty() {
        return None;
    }
    let mut places: Vec<&str> =
        FILES.into_iter().filter(|(path, _)| root.exists(path)).map(|(_, place)| place).collect();
    // The path is one of EFI: the firmware, or a program of it, started the kernel itself.
    if boot_arguments::value(cmdline, "initrd").is_some_and(|path| path.starts_with('\\')) {
        places.push("the entry of the firmware (sudo efibootmgr --unicode)");
    }
    if virt::hypervisor(root).name.is_some_and(|kind| kind != "none") {
        places.push("the host, which can start the kernel of a guest by itself");
    }
    let places = if places.is_empty() { String::new() } else { format!("; look in {}", places.join(", or ")) };
    Some(format!(
        "which boot loader started the kernel is not known: not GRUB, which adds BOOT_IMAGE= to /proc/cmdline{places}"
    ))
}

/// The arguments of these lines that others replace.
fn replaced_in<'a>(lines: impl IntoIterator<Item = &'a str>, added: &[&str]) -> Vec<&'a str> {
    let mut old: Vec<&str> = Vec::new();
    for word in lines.into_iter().flat_map(|line| boot_arguments::replaced(line, added)) {
        if !added.contains(&word) && !old.contains(&word) {
            old.push(word);
        }
    }
    old
}

/// The same in words.
fn in_place_of(line: &str, added: &[&str]) -> String {
    in_place_of_any([line], added)
}

fn in_place_of_any<'a>(lines: impl IntoIterator<Item = &'a str>, added: &[&str]) -> String {
    match replaced_in(lines, added).as_slice() {
        [] => String::new(),
        old => format!(", in place of {}", old.join(" ")),
    }
}

/// Steps that no setting replaces: for cores that other work shares, and for a running irqbalance. `cpus` are the CPUs for
/// real-time work.
#[must_use]
pub fn by_hand(root: &Root, cpus: &CpuList) -> Vec<String> {
    shared_cores(root, cpus).into_iter().chain(irq_balance(root, cpus)).collect()
}

/// The cores of `cpus` whose other threads are online.
fn shared_cores(root: &Root, cpus: &CpuList) -> Vec<String> {
    let (mut cores, _) = topology::shared_cores(root);
    cores.retain(|core| !core.intersection(cpus).is_empty());
    let mut steps = Vec::new();
    for core in cores {
        let (own, others) = (core.intersection(cpus), core.difference(cpus));
        if own.len() > 1 {
            steps.push(format!("{} share one core, so each delays the other: use only one of them", own.in_words()));
        }
        if others.iter().any(|cpu| !cpus::can_go_offline(root, cpu)) {
            steps.push(format!(
                "work on {} delays {}, which share a core (SMT), and CPU 0 cannot go offline: choose a CPU of another core",
                others.in_words(),
                own.in_words()
            ));
        } else if !others.is_empty() {
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
    irqbalance::process(root)?;
    let init = Init::of(root);
    let step = |step: String| Some(format!("irqbalance moves interrupts: {step}"));
    if cpus.is_empty() {
        return step(init.stop(irqbalance::SERVICE));
    }
    let restart = init.restart(irqbalance::SERVICE);
    let environment = Environment::read(root);
    let Some(banned) = environment.banned(root) else {
        let place = environment.decider.map_or_else(|| "its settings".to_owned(), |(path, _)| format!("/{path}"));
        return step(format!("make sure that the CPUs that {place} bans contain {cpus}; {restart}"));
    };
    if cpus.difference(&banned).is_empty() {
        return None;
    }
    let line = irqbalance::line(&banned.union(cpus));
    match environment.file {
        // The last line of the file is in effect, and replaces what irqbalance bans by itself.
        Some(file) => step(format!("echo {line} | sudo tee -a /{file}; {restart}")),
        None => step(format!(
            "add Environment={line} to the section [Service] with: sudo systemctl edit {}; {restart}",
            irqbalance::SERVICE
        )),
    }
}

/// The program that changes the read-only systems of SUSE (openSUSE MicroOS, SUSE Linux Micro).
const TRANSACTIONAL_UPDATE: &str = "usr/sbin/transactional-update";

/// The boot loader of this machine, with the steps to add arguments.
fn found(root: &Root, added: &[&str]) -> Option<(&'static str, Vec<String>)> {
    let first = |paths: &[&'static str]| paths.iter().copied().find(|path| root.exists(path));
    let arguments = added.join(" ");
    let cmdline = root.read("proc/cmdline").unwrap_or_default();
    // The next boot can have other arguments than the running kernel.
    let lines = lines(root);
    let all_lines = || [&*cmdline].into_iter().chain(lines.iter().map(String::as_str));
    let traces = Traces::read(root);
    if traces.allow(Loader::PiFirmware)
        && firmware::is_pi(root)
        && let Some(path) = pi_command_line(root)
    {
        return Some(("Raspberry Pi firmware", vec![one_line(root, &path, added)]));
    }
    if boot_arguments::value(&cmdline, "ostree").is_some() {
        return Some(("rpm-ostree", vec![by_command("sudo rpm-ostree kargs", OSTREE, all_lines(), added)]));
    }
    if root.exists("etc/NIXOS") {
        let list = added.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" ");
        let place = format!("add to boot.kernelParams in /{NIXOS}");
        let in_place_of = in_place_of_any(all_lines(), added);
        let steps = vec![format!("{place}{in_place_of}: {list}"), "sudo nixos-rebuild boot".to_owned()];
        return Some(("NixOS", steps));
    }
    if traces.allow(Loader::SystemdBoot) && (root.exists("usr/bin/kernelstub") || root.exists("etc/kernelstub")) {
        return Some(("kernelstub", vec![by_command("sudo kernelstub", KERNELSTUB, all_lines(), added)]));
    }
    // Proxmox boots by GRUB or by systemd-boot; only the latter is given this file.
    if root.exists("etc/kernel/proxmox-boot-uuids") && cmdline.contains("initrd=\\EFI\\proxmox") {
        let steps = vec![one_line(root, "etc/kernel/cmdline", added), "sudo proxmox-boot-tool refresh".to_owned()];
        return Some(("systemd-boot", steps));
    }
    // U-Boot reads such a configuration, too.
    let is_extlinux =
        traces.allow(Loader::Extlinux) && (!traces.allow(Loader::Grub) || traces.is_syslinux() || !has_grub(root));
    if is_extlinux && root.exists(EXTLINUX_OPTIONS) {
        let mut steps = shell_variable(root, &[EXTLINUX_OPTIONS.to_owned()], EXTLINUX_VARIABLE, added);
        steps.push("sudo update-extlinux".to_owned());
        return Some(("extlinux", steps));
    }
    if is_extlinux && root.exists(EXTLINUX) {
        let steps = match root.exists("etc/default/u-boot") {
            true => vec![
                shell_variable(root, &["etc/default/u-boot".to_owned()], "U_BOOT_PARAMETERS", added).join("\n"),
                "sudo u-boot-update".to_owned(),
            ],
            false => extlinux_with(root, added),
        };
        return Some(("extlinux", steps));
    }
    let is_uboot = traces.allow(Loader::UBoot);
    if let Some(path) = first(&EXTRA_ARGUMENTS).filter(|_| is_uboot) {
        return Some(("U-Boot", vec![after_equals(root, path, "extraargs", added)]));
    }
    if is_uboot && root.exists(U_ENV) {
        return Some(("U-Boot", vec![u_env(root, added)]));
    }
    if is_uboot && root.exists("etc/fw_env.config") {
        return Some(("U-Boot", set_environment(added)));
    }
    if traces.is_uboot() {
        let place =
            "add to the variable bootargs, at the prompt of U-Boot (printenv, setenv, saveenv) or in its boot script";
        return Some(("U-Boot", vec![format!("{place}{}: {arguments}", in_place_of(&cmdline, added))]));
    }
    if has_parts(root, &traces) {
        let place = "add a line to /etc/cmdline.d/punctual.conf";
        let update = if root.exists(PRESETS) { UNIFIED } else { "make the unified kernel image again" };
        let steps = vec![format!("{place}{}: {arguments}", in_place_of_any(all_lines(), added)), update.to_owned()];
        return Some(("unified kernel image", steps));
    }
    let of_systemd = ["boot/loader/loader.conf", "boot/efi/loader/loader.conf", "efi/loader/loader.conf"];
    let of_entries = || vec![one_line(root, "etc/kernel/cmdline", added), update_of_entries(root).to_owned()];
    if let Some(path) = first(&of_systemd).filter(|_| traces.allow(Loader::SystemdBoot)) {
        let steps = match root.exists("etc/kernel/cmdline") {
            true => of_entries(),
            false => entries_with(root, &format!("{}entries", path.trim_end_matches("loader.conf")), added),
        };
        return Some(("systemd-boot", steps));
    }
    // Its partition is not mounted.
    if traces.is_systemd_boot() && root.exists("etc/kernel/cmdline") {
        return Some(("systemd-boot", of_entries()));
    }
    if !traces.allow(Loader::Grub) {
        return None;
    }
    if let Some(steps) = with_tuned(root, added) {
        return Some(("GRUB", steps));
    }
    if root.exists("usr/sbin/grubby") {
        // It replaces arguments of the same name.
        return Some(("GRUB", vec![format!("sudo grubby --update-kernel=ALL --args=\"{arguments}\"")]));
    }
    root.exists(GRUB).then(|| {
        let update = if root.exists(TRANSACTIONAL_UPDATE) {
            // Its system is read-only: only a new snapshot has the new file.
            "sudo transactional-update grub.cfg".to_owned()
        } else if root.exists("usr/sbin/update-grub") {
            "sudo update-grub".to_owned()
        } else if let Some(path) = configuration_of_grub2(root) {
            format!("sudo grub2-mkconfig -o /{path}")
        } else if root.exists("boot/grub") {
            "sudo grub-mkconfig -o /boot/grub/grub.cfg".to_owned()
        } else {
            "sudo update-grub".to_owned()
        };
        let mut steps = grub_variables(root, added);
        // The entries have their own arguments, which making the configuration again does not change.
        if in_effect(root, &[GRUB.to_owned()], "GRUB_ENABLE_BLSCFG")
            .last()
            .is_some_and(|last| last.value.text == "true")
            && !root.list(BLS_ENTRIES).is_empty()
        {
            steps.extend(entries_with(root, BLS_ENTRIES, added));
        }
        steps.push(update);
        ("GRUB", steps)
    })
}

/// The configuration that `grub2-mkconfig` writes, on distributions that call it so: Fedora, SUSE, and those made from them.
/// `None` on others. On EFI, earlier releases of Red Hat have it in the partition of EFI.
fn configuration_of_grub2(root: &Root) -> Option<String> {
    const OWN: &str = "boot/grub2/grub.cfg";
    const EFI: &str = "boot/efi/EFI";
    let is_relative = || {
        let release = root.read("etc/os-release").unwrap_or_default();
        let of = |name: &str| release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let ids = format!("{} {}", of("ID").unwrap_or_default(), of("ID_LIKE").unwrap_or_default());
        let mut ids = ids.split(|c: char| !c.is_ascii_alphanumeric());
        ids.any(|id| ["fedora", "rhel", "centos", "suse", "opensuse"].contains(&id))
    };
    if !root.exists("usr/sbin/grub2-mkconfig") && !root.exists("boot/grub2") && !is_relative() {
        return None;
    }
    // The distribution links its configuration of EFI machines.
    let linked = root.link("etc/grub2-efi.cfg").filter(|_| root.exists("sys/firmware/efi"));
    if let Some(target) = linked {
        return Some(target.trim_start_matches("../").trim_start_matches('/').to_owned());
    }
    let of_efi = root.list(EFI).into_iter().map(|folder| format!("{EFI}/{folder}/grub.cfg"));
    let of_efi = of_efi.filter(|path| root.exists(path)).find(|_| !root.exists(OWN));
    Some(of_efi.unwrap_or_else(|| OWN.to_owned()))
}

/// The files with arguments that tuned adds to those of GRUB, each with its variable.
const OF_TUNED: [(&str, &str); 3] = [
    ("etc/tuned/bootcmdline", "TUNED_BOOT_CMDLINE="),
    ("boot/grub2/grubenv", "tuned_params="),
    ("boot/grub/grubenv", "tuned_params="),
];
/// The file with the names of tuned's profiles in force.
const TUNED_PROFILE: &str = "etc/tuned/active_profile";
/// The profiles of tuned for real-time work.
const REALTIME_PROFILES: [&str; 5] =
    ["realtime", "realtime-virtual-guest", "realtime-virtual-host", "cpu-partitioning", "cpu-partitioning-powersave"];

/// The arguments in the variable of a file of tuned.
fn tuned_line<'a>(text: &'a str, variable: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(variable))?;
    Some(line.trim_matches('"'))
}

/// The arguments that GRUB gets from tuned.
fn of_tuned(root: &Root) -> Option<String> {
    let line = |(path, variable): (&str, &str)| Some(tuned_line(&root.read(path)?, variable)?.to_owned());
    let lines: Vec<String> = OF_TUNED.into_iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

/// The known lines of a file of tuned, with cleaned arguments, and without names that the owner of the machine chose. `None`
/// for other files.
pub(crate) fn known_tuned_lines(path: &str, text: &str, clean: impl Fn(&str) -> String) -> Option<String> {
    if path == TUNED_PROFILE {
        let known = |name: &str| if REALTIME_PROFILES.contains(&name) { name.to_owned() } else { clean(name) };
        return Some(text.split_whitespace().map(known).collect::<Vec<_>>().join(" ") + "\n");
    }
    let (_, variable) = OF_TUNED.into_iter().find(|(own, _)| *own == path)?;
    Some(tuned_line(text, variable).map_or_else(String::new, |line| format!("{variable}\"{}\"\n", clean(line))))
}

/// The steps on a machine where tuned adds arguments that these replace: the kernel does not accept two sets of isolated CPUs.
/// tuned keeps its arguments in these files, and its profiles for real-time work have a variable for the CPUs (tuned,
/// `profiles/realtime/tuned.conf`).
fn with_tuned(root: &Root, added: &[&str]) -> Option<Vec<String>> {
    let line = of_tuned(root).filter(|line| !boot_arguments::replaced(line, added).is_empty())?;
    let profile = root.read(TUNED_PROFILE).unwrap_or_default();
    // The name becomes a part of a command.
    let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let is_realtime = |name: &&str| ["realtime", "cpu-partitioning"].iter().any(|of| name.starts_with(of));
    let profile = profile.split_whitespace().find(|name| is_plain(name) && is_realtime(name));
    let is_cpus = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
    let cpus = added.iter().find_map(|word| word.strip_prefix("isolcpus="));
    let cpus = cpus.map(|value| value.split(',').filter(is_cpus).collect::<Vec<_>>().join(","));
    Some(match (profile, cpus) {
        (Some(profile), Some(cpus)) if !cpus.is_empty() => vec![
            format!("tuned adds arguments of its own: in /etc/tuned/{profile}-variables.conf: isolated_cores={cpus}"),
            format!("sudo tuned-adm profile {profile}"),
        ],
        _ => vec![format!(
            "tuned adds arguments that do not go together with these{}: change its profile (tuned-adm active), or switch it \
             off: sudo tuned-adm off; then add: {}",
            in_place_of(&line, added),
            added.join(" ")
        )],
    })
}

/// The file with the arguments that the firmware of a Raspberry Pi reads: `config.txt` can name another one, and a folder.
fn pi_command_line(root: &Root) -> Option<String> {
    const FOLDERS: [&str; 2] = ["boot/firmware", "boot"];
    let with = |name: &str| FOLDERS.into_iter().find(|folder| root.exists(&format!("{folder}/{name}")));
    let folder = with("config.txt").or_else(|| with("cmdline.txt"))?;
    let config = root.read(&format!("{folder}/config.txt")).unwrap_or_default();
    // The firmware reads no other partition.
    let option = |name| firmware::option(root, &config, name).filter(|value| !value.contains(".."));
    let name = option("cmdline").unwrap_or_else(|| "cmdline.txt".to_owned());
    let path = format!("{folder}/{}{name}", option("os_prefix").unwrap_or_default());
    // The firmware ignores a prefix without these files.
    [path, format!("{folder}/{name}")].into_iter().find(|path| root.exists(path))
}

/// Options of a command that removes an argument, and adds one.
type Options = [&'static str; 2];
/// The options of rpm-ostree.
const OSTREE: Options = ["--delete-if-present=", "--append-if-missing="];
/// The options of kernelstub, for Pop!_OS.
const KERNELSTUB: Options = ["-d ", "-a "];

/// The command that removes the arguments which others replace, and adds these.
fn by_command<'a>(
    command: &str,
    [remove, add]: Options,
    lines: impl IntoIterator<Item = &'a str>,
    added: &[&str],
) -> String {
    let old = replaced_in(lines, added).into_iter().map(|word| format!(" {remove}\"{word}\""));
    let new = added.iter().map(|word| format!(" {add}\"{word}\""));
    old.chain(new).fold(command.to_owned(), |command, option| command + &option)
}

/// The presets of mkinitcpio, and their variable with the path of an image that contains the arguments.
const PRESETS: &str = "etc/mkinitcpio.d";
const UNIFIED_IMAGE: &str = "default_uki=";

/// The part of such a preset that decides, without paths; `None` for other files.
pub(crate) fn known_preset_lines(path: &str, text: &str) -> Option<String> {
    path.strip_prefix(PRESETS).filter(|rest| rest.starts_with('/'))?;
    let known = text.lines().filter(|line| line.trim().starts_with(UNIFIED_IMAGE));
    Some(known.map(|_| format!("{UNIFIED_IMAGE}\"\"\n")).collect())
}

/// True if mkinitcpio makes images that contain the arguments.
fn makes_unified_images(root: &Root) -> bool {
    let has_image = |name: &String| {
        let text = root.read(&format!("{PRESETS}/{name}")).unwrap_or_default();
        text.lines().any(|line| line.trim().starts_with(UNIFIED_IMAGE))
    };
    root.list(PRESETS).iter().filter(|name| name.ends_with(".preset")).any(has_image)
}

/// The command that makes such images again.
const UNIFIED: &str = "sudo mkinitcpio -P";

/// The command that writes the arguments of `/etc/kernel/cmdline` to the boot entries or images.
fn update_of_entries(root: &Root) -> &'static str {
    if makes_unified_images(root) {
        UNIFIED
    } else if root.exists("usr/bin/sdbootutil") {
        "sudo sdbootutil update-all-entries"
    } else {
        "sudo kernel-install add \"$(uname -r)\" \"/lib/modules/$(uname -r)/vmlinuz\""
    }
}

/// The new line of a file with one line of arguments.
fn one_line(root: &Root, path: &str, added: &[&str]) -> String {
    changed(&format!("the one line of /{path}"), &first_line(root, path), added, str::to_owned)
}

/// The change of a line that is not known as a whole.
fn only_change(place: &str, line: &str, added: &[&str]) -> String {
    format!("{place}: add {}{}", added.join(" "), in_place_of(line, added))
}

/// The line of a file with these arguments; `write` makes it from all arguments. Of a line that a snapshot has removed words
/// from, only the change.
fn changed(place: &str, line: &str, added: &[&str], write: impl Fn(&str) -> String) -> String {
    match boot_arguments::is_incomplete(line) {
        true => only_change(place, line, added),
        false => format!("{place}: {}", write(&boot_arguments::with(line, added))),
    }
}

/// The line of a file without the arguments that these replace, likewise; `None` if it has none of them.
fn reduced(place: &str, line: &str, added: &[&str], write: impl Fn(&str) -> String) -> Option<String> {
    let old = boot_arguments::replaced(line, added);
    let text = match boot_arguments::is_incomplete(line) {
        true => format!("remove {}", old.join(" ")),
        false => write(&boot_arguments::without(line, added)),
    };
    (!old.is_empty()).then(|| format!("{place}: {text}"))
}

/// The new line of that file. Its variables depend on the script: `cmdline` in the images of BeagleBoard.org.
fn u_env(root: &Root, added: &[&str]) -> String {
    let text = root.read(U_ENV).unwrap_or_default();
    let has =
        |name: &str| text.lines().any(|line| line.trim().strip_prefix(name).is_some_and(|rest| rest.starts_with('=')));
    let is_beagle = has("uname_r") || root.read("proc/device-tree/model").is_some_and(|model| model.contains("Beagle"));
    match ["cmdline", "optargs", "extraargs", "bootargs"].into_iter().find(|name| has(name)) {
        Some(name) => after_equals(root, U_ENV, name, added),
        None if is_beagle => after_equals(root, U_ENV, "cmdline", added),
        None => {
            format!("add to the variable of /{U_ENV} that your boot script puts into bootargs: {}", added.join(" "))
        }
    }
}

/// The lines of the variables that GRUB's configuration is made from. The arguments are those of an ordinary boot; a value
/// that they replace can also be among those of every boot.
fn grub_variables(root: &Root, added: &[&str]) -> Vec<String> {
    let files = grub_files(root);
    let mut steps = shell_variable(root, &files, GRUB_DEFAULT, added);
    steps.extend(in_effect(root, &files, GRUB_EVERY).iter().filter_map(|assignment| assignment.without(added)));
    steps
}

/// The keyword and the rest of a line.
fn keyword(line: &str) -> (&str, &str) {
    let line = line.trim();
    line.split_once(char::is_whitespace).map_or((line, ""), |(keyword, rest)| (keyword, rest.trim()))
}

/// An entry of extlinux; the first one is the part before all labels.
#[derive(Debug, Clone, Copy, Default)]
struct Entry<'a> {
    label: Option<&'a str>,
    /// The keyword as it is written, and the arguments.
    append: Option<(&'a str, &'a str)>,
}

/// The lines `append` of extlinux with these arguments, each with its label if there are several. A line before all labels
/// is for the labels that have none.
fn extlinux_with(root: &Root, added: &[&str]) -> Vec<String> {
    let text = root.read(EXTLINUX).unwrap_or_default();
    let mut default = None;
    let mut entries = vec![Entry::default()];
    for line in text.lines() {
        let (word, rest) = keyword(line);
        match word.to_ascii_lowercase().as_str() {
            "default" => default = Some(rest),
            "label" => entries.push(Entry { label: Some(rest), append: None }),
            "append" => entries.last_mut().into_iter().for_each(|entry| entry.append = Some((word, rest))),
            _ => {}
        }
    }
    let has_common = entries.first().is_some_and(|entry| entry.append.is_some());
    let has_several = entries.len() > 2;
    let of_label = |label: Option<&str>| match label {
        Some(label) if has_several => format!(", label {label}"),
        _ => String::new(),
    };
    let line = |&Entry { label, append }: &Entry| match append {
        Some((word, rest)) => {
            let place = format!("in /{EXTLINUX}{}", of_label(label));
            Some(changed(&place, rest, added, |line| format!("{word} {line}")))
        }
        None if !has_common && label.is_some() && (label == default || !has_several) => {
            Some(format!("add a line to /{EXTLINUX}{}: append {}", of_label(label), added.join(" ")))
        }
        None => None,
    };
    let lines: Vec<String> = entries.iter().filter_map(line).collect();
    match lines.is_empty() {
        true => vec![format!("add a line to /{EXTLINUX}: append {}", added.join(" "))],
        false => lines,
    }
}

/// The lines `options` of an entry of systemd-boot, which joins them: the last one gets the arguments, and values that they
/// replace are left out of the others.
fn options_with(root: &Root, path: &str, added: &[&str]) -> Vec<String> {
    let text = root.read(path).unwrap_or_default();
    let options: Vec<(&str, &str)> =
        text.lines().map(keyword).filter(|(word, _)| word.eq_ignore_ascii_case("options")).collect();
    let Some(((word, last), earlier)) = options.split_last() else {
        return vec![format!("add a line to /{path}: options {}", added.join(" "))];
    };
    let place = format!("in /{path}");
    let without = |(word, rest): &(&str, &str)| reduced(&place, rest, added, |line| format!("{word} {line}"));
    let mut lines: Vec<String> = earlier.iter().filter_map(without).collect();
    lines.push(changed(&place, last, added, |line| format!("{word} {line}")));
    lines
}

/// The lines of the entries of systemd-boot.
fn entries_with(root: &Root, folder: &str, added: &[&str]) -> Vec<String> {
    let names = root.list(folder).into_iter().filter(|name| name.ends_with(".conf"));
    let entries: Vec<String> = names.flat_map(|name| options_with(root, &format!("{folder}/{name}"), added)).collect();
    match entries.is_empty() {
        true => vec![format!("in the line `options` of /{folder}/*.conf, each once: {}", added.join(" "))],
        false => entries,
    }
}

/// The steps that change the variable of U-Boot with the arguments, whose value is not known here. The command changes nothing
/// if the variable cannot be read or is empty.
fn set_environment(added: &[&str]) -> Vec<String> {
    let names: Vec<&str> = added
        .iter()
        .map(|word| boot_arguments::name(word))
        .filter(|name| !boot_arguments::is_repeatable(name))
        .collect();
    let filter = match names.is_empty() {
        true => String::new(),
        false => format!(" | tr \" \" \"\\n\" | grep -Ev \"^({})(=|$)\" | tr \"\\n\" \" \"", names.join("|")),
    };
    vec![
        format!(
            "sudo sh -c 'old=$(fw_printenv -n bootargs) && [ -n \"$old\" ] && fw_setenv bootargs \"$(printf %s \"$old\"{filter}) {}\"'",
            added.join(" ")
        ),
        "if U-Boot has no variable bootargs, or its script sets bootargs at each boot (fw_printenv bootcmd), add the arguments \
         in that script"
            .to_owned(),
    ]
}
