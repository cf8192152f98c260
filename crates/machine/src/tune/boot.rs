//! Arguments of the kernel. They are never written: a mistake in them can keep a machine from booting.

use std::cell::RefCell;

use serde::Serialize;

use crate::{CpuList, Root, boot_arguments, cpus, irqbalance, kernel::Isolation, topology, virt};

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
    let mut arguments = boot_arguments::missing_isolation(root, &cmdline, cpus, &others);
    // The next boot would replace what the running kernel has.
    for line in lines(root) {
        let of_line = boot_arguments::missing_isolation(root, &line, cpus, &others).into_iter();
        let is_other =
            |word: &String| !boot_arguments::replaced(&line, &[word]).is_empty() && !arguments.contains(word);
        let other: Vec<String> = of_line.filter(is_other).collect();
        arguments.extend(other);
    }
    if arguments.is_empty() {
        return None;
    }
    let mut boot = steps_for(root, arguments.join(" "));
    let lacking = Isolation::read(root).lacking();
    if !lacking.is_empty() {
        let place = boot.steps.len() - 1;
        let text = format!("not printed, because this kernel does not have them: {}", lacking.join(", "));
        boot.steps.insert(place, text);
    }
    if cpus.contains(0) && boot.arguments.contains("isolcpus=") {
        let reboot = boot.steps.len() - 1;
        boot.steps
            .insert(reboot, "CPU 0 keeps its tick: the kernel keeps the time on the CPU that it boots on".to_owned());
    }
    Some(boot)
}

/// The lines of arguments in the files of boot loaders. Those of a container are not the ones of its host.
fn lines(root: &Root) -> Vec<String> {
    if virt::is_container(root) {
        return Vec::new();
    }
    let lines = RefCell::new(Vec::new());
    for path in boot_files(root) {
        known_boot_lines(&path, &root.read(&path).unwrap_or_default(), |line| {
            lines.borrow_mut().push(line.to_owned());
            String::new()
        });
    }
    lines.into_inner()
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
            (None, vec![format!("add to the kernel's arguments {place}{in_place_of}: {arguments}")])
        }
    };
    steps.push("reboot; `punctual check` shows if they took effect".to_owned());
    Boot { arguments, loader, steps }
}

/// The arguments that others replace, in words.
fn in_place_of(line: &str, added: &[&str]) -> String {
    let mut old: Vec<&str> = Vec::new();
    for word in boot_arguments::replaced(line, added) {
        if !added.contains(&word) && !old.contains(&word) {
            old.push(word);
        }
    }
    match old.as_slice() {
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
    irqbalance::process(root)?;
    let file = irqbalance::file(root);
    match irqbalance::banned(root) {
        _ if cpus.is_empty() => Some("irqbalance moves interrupts: sudo systemctl stop irqbalance".to_owned()),
        Some(banned) if cpus.difference(&banned).is_empty() => None,
        // The last line of the file is in effect, and replaces what irqbalance bans by itself.
        Some(banned) => Some(format!(
            "irqbalance moves interrupts: echo {} | sudo tee -a /{file}; sudo systemctl restart irqbalance",
            irqbalance::line(&banned.union(cpus))
        )),
        None => Some(format!(
            "irqbalance moves interrupts: make sure that the CPUs that /{file} bans contain {cpus}; sudo systemctl \
             restart irqbalance"
        )),
    }
}

/// The boot loader of this machine, with the steps to add arguments.
fn found(root: &Root, added: &[&str]) -> Option<(&'static str, Vec<String>)> {
    let first = |paths: &[&'static str]| paths.iter().copied().find(|path| root.exists(path));
    let arguments = added.join(" ");
    let cmdline = root.read("proc/cmdline").unwrap_or_default();
    let is_pi = root.read("proc/device-tree/model").is_some_and(|model| model.starts_with("Raspberry Pi"));
    if is_pi && let Some(path) = pi_command_line(root) {
        return Some(("Raspberry Pi firmware", vec![one_line(root, &path, added)]));
    }
    if boot_arguments::value(&cmdline, "ostree").is_some() {
        return Some(("rpm-ostree", vec![by_command("sudo rpm-ostree kargs", OSTREE, &cmdline, added)]));
    }
    if root.exists("etc/NIXOS") {
        let list = added.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" ");
        let place = "add to boot.kernelParams in /etc/nixos/configuration.nix";
        let steps =
            vec![format!("{place}{}: {list}", in_place_of(&cmdline, added)), "sudo nixos-rebuild boot".to_owned()];
        return Some(("NixOS", steps));
    }
    if root.exists("usr/bin/kernelstub") || root.exists("etc/kernelstub") {
        return Some(("kernelstub", vec![by_command("sudo kernelstub", KERNELSTUB, &cmdline, added)]));
    }
    // Proxmox boots by GRUB or by systemd-boot; only the latter is given this file.
    if root.exists("etc/kernel/proxmox-boot-uuids") && cmdline.contains("initrd=\\EFI\\proxmox") {
        let steps = vec![one_line(root, "etc/kernel/cmdline", added), "sudo proxmox-boot-tool refresh".to_owned()];
        return Some(("systemd-boot", steps));
    }
    if root.exists(EXTLINUX) {
        let steps = match root.exists("etc/default/u-boot") {
            true => vec![
                shell_variable(root, &["etc/default/u-boot".to_owned()], "U_BOOT_PARAMETERS", added).join("\n"),
                "sudo u-boot-update".to_owned(),
            ],
            false => extlinux_with(root, added),
        };
        return Some(("extlinux", steps));
    }
    if root.exists("boot/armbianEnv.txt") {
        return Some(("U-Boot", vec![after_equals(root, "boot/armbianEnv.txt", "extraargs", added)]));
    }
    if root.exists(U_ENV) {
        return Some(("U-Boot", vec![u_env(root, added)]));
    }
    if root.exists("etc/fw_env.config") {
        return Some(("U-Boot", set_environment(added)));
    }
    // With entries of their own, the parts of the line are for something else.
    if root.exists("etc/cmdline.d") && !root.exists("etc/kernel/cmdline") && !has_entries(root) {
        let place = "add a line to /etc/cmdline.d/punctual.conf";
        let update = if root.exists(PRESETS) { UNIFIED } else { "make the unified kernel image again" };
        let steps = vec![format!("{place}{}: {arguments}", in_place_of(&cmdline, added)), update.to_owned()];
        return Some(("unified kernel image", steps));
    }
    let of_systemd = ["boot/loader/loader.conf", "boot/efi/loader/loader.conf", "efi/loader/loader.conf"];
    if let Some(path) = first(&of_systemd) {
        let steps = match root.exists("etc/kernel/cmdline") {
            true => vec![one_line(root, "etc/kernel/cmdline", added), update_of_entries(root).to_owned()],
            false => entries_with(root, &format!("{}entries", path.trim_end_matches("loader.conf")), added),
        };
        return Some(("systemd-boot", steps));
    }
    if root.exists("usr/sbin/grubby") {
        // It replaces arguments of the same name.
        return Some(("GRUB", vec![format!("sudo grubby --update-kernel=ALL --args=\"{arguments}\"")]));
    }
    root.exists(GRUB).then(|| {
        let update = match () {
            () if root.exists("usr/sbin/update-grub") => "sudo update-grub",
            () if root.exists("boot/grub2") => "sudo grub2-mkconfig -o /boot/grub2/grub.cfg",
            () if root.exists("boot/grub") => "sudo grub-mkconfig -o /boot/grub/grub.cfg",
            () => "sudo update-grub",
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
        steps.push(update.to_owned());
        ("GRUB", steps)
    })
}

/// The file with the arguments that the firmware of a Raspberry Pi reads: `config.txt` can name another one, and a folder.
fn pi_command_line(root: &Root) -> Option<String> {
    let folder = ["boot/firmware", "boot"].into_iter().find(|folder| root.exists(&format!("{folder}/config.txt")));
    let folder = folder.or_else(|| {
        ["boot/firmware", "boot"].into_iter().find(|folder| root.exists(&format!("{folder}/cmdline.txt")))
    })?;
    let config = root.read(&format!("{folder}/config.txt")).unwrap_or_default();
    let option = |name: &str| {
        let mut values = config.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
        values.next_back().map(str::trim).filter(|value| !value.is_empty())
    };
    let name = option("cmdline").unwrap_or("cmdline.txt");
    let path = format!("{folder}/{}{name}", option("os_prefix").unwrap_or_default());
    // The firmware ignores a prefix without these files.
    [path, format!("{folder}/{name}")].into_iter().find(|path| root.exists(path))
}

/// Options of a command that removes an argument, and adds one.
type Options = [&'static str; 2];
/// Those of rpm-ostree.
const OSTREE: Options = ["--delete-if-present=", "--append-if-missing="];
/// Those of kernelstub of Pop!_OS.
const KERNELSTUB: Options = ["-d ", "-a "];

/// The command that removes the arguments which others replace, and adds these.
fn by_command(command: &str, [remove, add]: Options, line: &str, added: &[&str]) -> String {
    let old = boot_arguments::replaced(line, added).into_iter().filter(|word| !added.contains(word));
    let old = old.map(|word| format!(" {remove}\"{word}\""));
    let new = added.iter().map(|word| format!(" {add}\"{word}\""));
    old.chain(new).fold(command.to_owned(), |command, option| command + &option)
}

/// True if systemd-boot or GRUB has entries in files.
fn has_entries(root: &Root) -> bool {
    FOLDERS[1..].iter().any(|folder| root.list(folder).iter().any(|name| name.ends_with(".conf")))
}

/// The presets of mkinitcpio.
const PRESETS: &str = "etc/mkinitcpio.d";

/// True if mkinitcpio makes images that contain the arguments.
fn makes_unified_images(root: &Root) -> bool {
    let has_image = |name: &String| {
        let text = root.read(&format!("{PRESETS}/{name}")).unwrap_or_default();
        text.lines().any(|line| line.trim().starts_with("default_uki="))
    };
    root.list(PRESETS).iter().filter(|name| name.ends_with(".preset")).any(has_image)
}

/// The command that makes such images again.
const UNIFIED: &str = "sudo mkinitcpio -P";

/// The command that writes the arguments of `/etc/kernel/cmdline` to the boot entries or images.
fn update_of_entries(root: &Root) -> &'static str {
    match () {
        () if makes_unified_images(root) => UNIFIED,
        () if root.exists("usr/bin/sdbootutil") => "sudo sdbootutil update-all-entries",
        () => "sudo kernel-install add \"$(uname -r)\" \"/lib/modules/$(uname -r)/vmlinuz\"",
    }
}

/// The new line of a file with one line of arguments.
fn one_line(root: &Root, path: &str, added: &[&str]) -> String {
    let text = root.read(path).unwrap_or_default();
    // What reads such a file ignores later lines.
    changed(&format!("the one line of /{path}"), text.lines().next().unwrap_or_default(), added, str::to_owned)
}

/// The line of a file with these arguments; `write` makes it from all arguments. Of a line that a snapshot has removed words
/// from, only the change.
fn changed(place: &str, line: &str, added: &[&str], write: impl Fn(&str) -> String) -> String {
    match boot_arguments::is_incomplete(line) {
        true => format!("{place}: add {}{}", added.join(" "), in_place_of(line, added)),
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

/// The entries of GRUB that follow the boot loader specification.
const BLS_ENTRIES: &str = "boot/loader/entries";
/// Variables of U-Boot that a script reads.
const U_ENV: &str = "boot/uEnv.txt";

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

/// The files with one line of arguments.
const ONE_LINE: [&str; 4] =
    ["boot/firmware/cmdline.txt", "boot/firmware/current/cmdline.txt", "boot/cmdline.txt", "etc/kernel/cmdline"];

/// The other files with arguments of the kernel, and the folders with such files.
const OTHERS: [&str; 5] = [EXTLINUX, GRUB, "etc/default/u-boot", "boot/armbianEnv.txt", U_ENV];
const FOLDERS: [&str; 4] =
    ["etc/default/grub.d", "boot/loader/entries", "boot/efi/loader/entries", "efi/loader/entries"];

/// True for a file of a boot loader that has arguments of the kernel.
pub(crate) fn is_boot_file(path: &str) -> bool {
    let is_below = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    ONE_LINE.contains(&path) || OTHERS.contains(&path) || FOLDERS.iter().any(|folder| is_below(folder))
}

fn boot_files(root: &Root) -> Vec<String> {
    let single = ONE_LINE.iter().chain(&OTHERS).map(|path| (*path).to_owned());
    let in_folders = FOLDERS.iter().flat_map(|folder| {
        let names = root.list(folder).into_iter();
        names.map(move |name| format!("{folder}/{name}"))
    });
    single.chain(in_folders).filter(|path| root.exists(path)).collect()
}

/// The lines of such a file with arguments of the kernel, which are cleaned.
pub(crate) fn known_boot_lines(path: &str, text: &str, clean: impl Fn(&str) -> String) -> String {
    if ONE_LINE.contains(&path) {
        return clean(text.lines().next().unwrap_or_default()) + "\n";
    }
    const SHELL: [&str; 3] = [GRUB_DEFAULT, GRUB_EVERY, "U_BOOT_PARAMETERS"];
    let known = |line: &str| {
        let line = line.trim();
        let (key, rest) = line.split_once('=').unwrap_or_default();
        let (keyword, words) = line.split_once(char::is_whitespace).unwrap_or_default();
        if let Some(Assignment { head, value, .. }) = SHELL.iter().find_map(|name| Assignment::of(path, line, name)) {
            return Some(Assignment::line(&head, &value, &clean(&value.text)) + "\n");
        }
        if matches!(key, "extraargs" | "cmdline" | "optargs" | "bootargs") {
            return Some(format!("{key}={}\n", clean(rest)));
        }
        let is = |known: &[&str]| known.iter().any(|known| keyword.eq_ignore_ascii_case(known));
        match () {
            () if is(&["append", "options"]) => Some(format!("{keyword} {}\n", clean(words))),
            // The names of entries of extlinux, and of the one that boots.
            () if path == EXTLINUX && is(&["default", "label"]) => Some(format!("{line}\n")),
            () => None,
        }
    };
    joined(text).lines().filter_map(known).collect()
}

/// The text of a shell's file with each continued line in one.
fn joined(text: &str) -> String {
    text.replace("\\\n", "")
}

const EXTLINUX: &str = "boot/extlinux/extlinux.conf";
const GRUB: &str = "etc/default/grub";
/// The arguments of an ordinary boot, and those of every boot.
const GRUB_DEFAULT: &str = "GRUB_CMDLINE_LINUX_DEFAULT";
const GRUB_EVERY: &str = "GRUB_CMDLINE_LINUX";

/// The lines of the variables that GRUB's configuration is made from. The arguments are those of an ordinary boot; a value
/// that they replace can also be among those of every boot.
fn grub_variables(root: &Root, added: &[&str]) -> Vec<String> {
    // Later files replace the variables of earlier ones.
    let mut files = vec![GRUB.to_owned()];
    let parts = root.list("etc/default/grub.d").into_iter().filter(|name| name.ends_with(".cfg"));
    files.extend(parts.map(|name| format!("etc/default/grub.d/{name}")));
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

/// The value of a shell variable, with its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ShellValue {
    text: String,
    quote: char,
}

impl ShellValue {
    /// The value at the start of a text, which a comment can follow.
    fn parse(text: &str) -> Self {
        let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
        let Some(quote) = quote else {
            let text = text.split([' ', '\t', ';', '#']).next().unwrap_or_default().to_owned();
            return Self { text, quote: '"' };
        };
        let mut is_escaped = false;
        let ends = |c: char| {
            let ends = c == quote && !is_escaped;
            is_escaped = c == '\\' && quote == '"' && !is_escaped;
            ends
        };
        Self { text: text[1..].split(ends).next().unwrap_or_default().to_owned(), quote }
    }
}

/// An assignment of a shell variable.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Assignment {
    path: String,
    /// The text before the value: `NAME=`, `export NAME+=`.
    head: String,
    value: ShellValue,
    /// True if its value contains the one before.
    inherits: bool,
}

impl Assignment {
    /// The assignment of this variable in a line.
    fn of(path: &str, line: &str, name: &str) -> Option<Self> {
        let line = line.trim();
        let plain = line.strip_prefix("export ").map_or(line, str::trim_start).strip_prefix(name)?;
        let value = plain.strip_prefix("+=").or_else(|| plain.strip_prefix('='))?;
        let head = &line[..line.len() - value.len()];
        let value = ShellValue::parse(value);
        let contains_itself = || {
            let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            value.text.contains(&format!("${{{name}}}")) || value.text.split(&format!("${name}")).skip(1).any(is_end)
        };
        let inherits = head.ends_with("+=") || (value.quote == '"' && contains_itself());
        Some(Self { path: path.to_owned(), head: head.to_owned(), value, inherits })
    }

    /// The line with this value. A part that is appended begins with a blank.
    fn line(head: &str, value: &ShellValue, text: &str) -> String {
        let blank = if head.ends_with("+=") && !text.is_empty() { " " } else { "" };
        format!("{head}{0}{blank}{text}{0}", value.quote)
    }

    fn with(&self, added: &[&str]) -> String {
        let write = |text: &str| Self::line(&self.head, &self.value, text);
        changed(&self.place(), &self.value.text, added, write)
    }

    /// The file, and the variable if its line is not known as a whole.
    fn place(&self) -> String {
        match boot_arguments::is_incomplete(&self.value.text) {
            true => format!("in /{}, {}", self.path, self.head.trim_end_matches(['=', '+'])),
            false => format!("in /{}", self.path),
        }
    }

    /// The line without the arguments that others replace; `None` if it has none of them.
    fn without(&self, added: &[&str]) -> Option<String> {
        let write = |text: &str| Self::line(&self.head, &self.value, text);
        reduced(&self.place(), &self.value.text, added, write)
    }
}

/// The assignments that make the value of a variable, in their order: the last one, and those before it whose value it
/// contains.
fn in_effect(root: &Root, files: &[String], name: &str) -> Vec<Assignment> {
    let mut all: Vec<Assignment> = Vec::new();
    for path in files {
        let text = joined(&root.read(path).unwrap_or_default());
        all.extend(text.lines().filter_map(|line| Assignment::of(path, line, name)));
    }
    let first = all.iter().rposition(|assignment| !assignment.inherits).unwrap_or(0);
    all.split_off(first.min(all.len()))
}

/// The new lines of files of shell variables.
fn shell_variable(root: &Root, files: &[String], name: &str, added: &[&str]) -> Vec<String> {
    let all = in_effect(root, files, name);
    let Some((last, earlier)) = all.split_last() else {
        let path = files.first().map_or("", |path| path);
        return vec![format!("in /{path}: {name}=\"{}\"", added.join(" "))];
    };
    let mut lines: Vec<String> = earlier.iter().filter_map(|assignment| assignment.without(added)).collect();
    lines.push(last.with(added));
    lines
}

/// The new line of a file of U-Boot variables, whose values end with the line.
fn after_equals(root: &Root, path: &str, name: &str, added: &[&str]) -> String {
    let text = root.read(path).unwrap_or_default();
    let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
    let value = values.next_back().unwrap_or_default();
    changed(&format!("in /{path}"), value, added, |line| format!("{name}={line}"))
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
        assert!(line(&[("etc/fw_env.config", "")]).1.starts_with("sudo sh -c 'old=$(fw_printenv -n bootargs)"));
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
        let running = ("proc/cmdline", "isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3");
        let grub = ("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"isolcpus=1 nohz_full=3,2 quiet\"\n");
        assert_eq!(
            steps(&[running, grub]).1[0],
            "in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"nohz_full=3,2 quiet irqaffinity=0-1 \
             isolcpus=managed_irq,domain,2-3\""
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
        let double =
            format!("GRUB_CMDLINE_LINUX=\"a=1 nohz_full=0\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"{}\"\n", escape(OLD));
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
                    format!(
                        "in /etc/default/grub.d/50.cfg: GRUB_CMDLINE_LINUX_DEFAULT=\"{own} mitigations=off {ALL}\""
                    ),
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
        let model = ("proc/device-tree/model", "Raspberry Pi 4");
        let line = |config: &str, files: &[&str]| {
            let mut all = vec![model, ("boot/firmware/config.txt", config)];
            all.extend(files.iter().map(|path| (*path, "rw")));
            steps(&all).1.join(" | ")
        };
        assert!(
            line("cmdline=own.txt\n", &["boot/firmware/cmdline.txt", "boot/firmware/own.txt"]).contains("/own.txt: rw")
        );
        assert!(
            line("os_prefix=current/\n", &["boot/firmware/current/cmdline.txt"]).contains("/current/cmdline.txt: rw")
        );
        assert!(line("os_prefix=gone/\n", &["boot/firmware/cmdline.txt"]).contains("/firmware/cmdline.txt: rw"));
        let beagle = [("boot/uEnv.txt", "optargs=quiet\n")];
        assert_eq!(steps(&beagle).1, [format!("in /boot/uEnv.txt: optargs=quiet {ALL}")]);
        assert!(steps(&[("boot/uEnv.txt", "")]).1[0].starts_with("add to the variable of /boot/uEnv.txt"));
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
    }
}
