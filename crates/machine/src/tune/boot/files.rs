//! The files of boot loaders with arguments of the kernel, and the lines in them.

use std::cell::RefCell;

use super::{
    found,
    loader::{Loader, Traces},
    of_tuned, pi_command_line,
    shell::{Assignment, in_effect, joined},
};
use crate::{Root, boot_arguments, tune::firmware, virt};

/// The entries of GRUB that follow the boot loader specification.
pub(super) const BLS_ENTRIES: &str = "boot/loader/entries";
/// Variables for the script of Armbian's and of Orange Pi's images, with the same names.
pub(super) const EXTRA_ARGUMENTS: [&str; 2] = ["boot/armbianEnv.txt", "boot/orangepiEnv.txt"];
/// Variables of U-Boot that a script reads.
pub(super) const U_ENV: &str = "boot/uEnv.txt";
/// The files with one line of arguments.
pub(super) const ONE_LINE: [&str; 4] =
    ["boot/firmware/cmdline.txt", "boot/firmware/current/cmdline.txt", "boot/cmdline.txt", "etc/kernel/cmdline"];
/// The folder with the parts of the arguments that mkinitcpio puts into images.
pub(super) const PARTS: &str = "etc/cmdline.d";
/// The configuration of NixOS.
pub(super) const NIXOS: &str = "etc/nixos/configuration.nix";
/// The configuration of kernelstub.
pub(super) const KERNELSTUB_OPTIONS: &str = "etc/kernelstub/configuration";
pub(super) const EXTLINUX: &str = "boot/extlinux/extlinux.conf";
/// The file that the configuration is made from on Alpine, and its variable.
pub(super) const EXTLINUX_OPTIONS: &str = "etc/update-extlinux.conf";
pub(super) const EXTLINUX_VARIABLE: &str = "default_kernel_opts";
pub(super) const GRUB: &str = "etc/default/grub";
/// The arguments of an ordinary boot, and those of every boot.
pub(super) const GRUB_DEFAULT: &str = "GRUB_CMDLINE_LINUX_DEFAULT";
pub(super) const GRUB_EVERY: &str = "GRUB_CMDLINE_LINUX";
/// The other files with arguments of the kernel, and the folders with such files.
pub(super) const OTHERS: [&str; 9] = [
    EXTLINUX,
    EXTLINUX_OPTIONS,
    GRUB,
    "etc/default/u-boot",
    EXTRA_ARGUMENTS[0],
    EXTRA_ARGUMENTS[1],
    U_ENV,
    NIXOS,
    KERNELSTUB_OPTIONS,
];
pub(super) const FOLDERS: [&str; 4] =
    ["etc/default/grub.d", "boot/loader/entries", "boot/efi/loader/entries", "efi/loader/entries"];

/// The files with arguments that the boot loader of this machine reads. Those of a container are not the ones of its host.
pub(super) fn files_of_loader(root: &Root) -> Vec<String> {
    if virt::is_container(root) {
        return Vec::new();
    }
    // The firmware of a Raspberry Pi reads one of the files, which can have another name.
    let of_pi = if firmware::is_pi(root) { pi_command_line(root) } else { None };
    let traces = Traces::read(root);
    let is_of_other = |path: &String| readers(path).is_some_and(|readers| !readers.iter().any(|it| traces.allow(*it)));
    let is_unused = |path: &String| match &of_pi {
        Some(own) => ONE_LINE.contains(&&**path) && path.starts_with("boot/") || path == own,
        None => false,
    };
    let parts = if has_parts(root, &traces) { list_of(root, PARTS) } else { Vec::new() };
    let others = boot_files(root).into_iter().chain(parts).filter(|path| !is_unused(path) && !is_of_other(path));
    of_pi.iter().cloned().chain(others).collect()
}

/// The lines of arguments in such a file.
pub(super) fn lines_of(root: &Root, path: &str) -> Vec<String> {
    if !is_boot_file(path) {
        return vec![first_line(root, path)];
    }
    let lines = RefCell::new(Vec::new());
    known_boot_lines(path, &root.read(path).unwrap_or_default(), |line| {
        lines.borrow_mut().push(line.to_owned());
        String::new()
    });
    lines.into_inner()
}

/// The lines of arguments in the files of the boot loader.
pub(super) fn lines(root: &Root) -> Vec<String> {
    files_of_loader(root).iter().flat_map(|path| lines_of(root, path)).collect()
}

/// The arguments of each boot that these files describe, in one line. Several lines of a file can be for one boot.
pub(super) fn boots(root: &Root, added: &[String]) -> Vec<String> {
    let of_tuned = of_tuned(root).unwrap_or_default();
    let mut boots = Vec::new();
    let mut parts = Vec::new();
    for path in files_of_loader(root) {
        let lines = lines_of(root, &path);
        match &*path {
            GRUB => {
                let files = grub_files(root);
                let all = [GRUB_EVERY, GRUB_DEFAULT].into_iter().flat_map(|name| in_effect(root, &files, name));
                let all = all.map(|assignment| assignment.value.text).chain([of_tuned.clone()]);
                boots.push(all.collect::<Vec<_>>().join(" "));
            }
            // They are a part of the above.
            path if path.starts_with("etc/default/grub.d/") => {}
            EXTLINUX => boots.extend(lines),
            path if path.starts_with(PARTS) => parts.extend(lines),
            // The arguments are in another file.
            U_ENV | NIXOS | KERNELSTUB_OPTIONS if lines.is_empty() => {}
            path if path.contains("/loader/entries/") => {
                let line = lines.join(" ").replace("$tuned_params", &of_tuned);
                // An entry without arguments is for another system.
                boots.extend((!lines.is_empty()).then_some(line));
            }
            _ => boots.push(lines.join(" ")),
        }
    }
    boots.extend((!parts.is_empty()).then(|| parts.join(" ")));
    // A command changes arguments that are not known here, and replaces those of the same name.
    let words: Vec<&str> = added.iter().map(String::as_str).collect();
    let is_command = |(_, steps): (_, Vec<String>)| steps.first().is_some_and(|step| step.starts_with("sudo "));
    if boots.is_empty() && !virt::is_container(root) && found(root, &words).is_some_and(is_command) {
        boots.push(String::new());
    }
    boots
}

/// True if the arguments of an image are in parts of their own. With entries, the parts are for something else.
pub(super) fn has_parts(root: &Root, traces: &Traces) -> bool {
    traces.allow(Loader::UnifiedImage) && root.exists(PARTS) && !root.exists("etc/kernel/cmdline") && !has_entries(root)
}

/// True if systemd-boot or GRUB has entries in files.
pub(super) fn has_entries(root: &Root) -> bool {
    FOLDERS[1..].iter().any(|folder| root.list(folder).iter().any(|name| name.ends_with(".conf")))
}

/// True for a file of a boot loader that has arguments of the kernel.
pub(crate) fn is_boot_file(path: &str) -> bool {
    let is_below = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    ONE_LINE.contains(&path) || OTHERS.contains(&path) || is_below(PARTS) || FOLDERS.iter().any(|it| is_below(it))
}

pub(super) fn list_of(root: &Root, folder: &str) -> Vec<String> {
    root.list(folder).into_iter().map(|name| format!("{folder}/{name}")).collect()
}

pub(super) fn boot_files(root: &Root) -> Vec<String> {
    let single = ONE_LINE.iter().chain(&OTHERS).map(|path| (*path).to_owned());
    let in_folders = FOLDERS.iter().flat_map(|folder| list_of(root, folder));
    single.chain(in_folders).filter(|path| root.exists(path)).collect()
}

/// The boot loaders that such a file is for; `None` if it is for any.
pub(super) fn readers(path: &str) -> Option<&'static [Loader]> {
    match path {
        EXTLINUX | EXTLINUX_OPTIONS | "etc/default/u-boot" => Some(&[Loader::Extlinux]),
        U_ENV => Some(&[Loader::UBoot]),
        KERNELSTUB_OPTIONS => Some(&[Loader::SystemdBoot]),
        path if EXTRA_ARGUMENTS.contains(&path) => Some(&[Loader::UBoot]),
        path if path.starts_with(GRUB) => Some(&[Loader::Grub]),
        path if path.starts_with(BLS_ENTRIES) => Some(&[Loader::Grub, Loader::SystemdBoot]),
        path if path.contains("/loader/entries/") => Some(&[Loader::SystemdBoot]),
        path if path.ends_with("/cmdline.txt") => Some(&[Loader::PiFirmware]),
        _ => None,
    }
}

/// The files of these variables. Later ones replace the variables of earlier ones.
pub(super) fn grub_files(root: &Root) -> Vec<String> {
    let parts = list_of(root, "etc/default/grub.d").into_iter().filter(|name| name.ends_with(".cfg"));
    [GRUB.to_owned()].into_iter().chain(parts).collect()
}

/// The only line of such a file that boot loaders read.
pub(super) fn first_line(root: &Root, path: &str) -> String {
    root.read(path).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// The lines of such a file with arguments of the kernel, which are cleaned.
pub(crate) fn known_boot_lines(path: &str, text: &str, clean: impl Fn(&str) -> String) -> String {
    if ONE_LINE.contains(&path) {
        return clean(text.lines().next().unwrap_or_default()) + "\n";
    }
    if path.strip_prefix(PARTS).is_some_and(|rest| rest.starts_with('/')) {
        let used = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        return used.map(|line| clean(line) + "\n").collect();
    }
    if path == NIXOS {
        let list = |line: String| {
            let quoted: Vec<String> = boot_arguments::words(&line).iter().map(|word| format!("\"{word}\"")).collect();
            format!("boot.kernelParams = [ {} ];\n", quoted.join(" "))
        };
        return nix_parameters(text).map(|line| list(clean(&line))).unwrap_or_default();
    }
    if path == KERNELSTUB_OPTIONS {
        let json = |line: String| {
            let options = boot_arguments::words(&line);
            serde_json::json!({ "user": { "kernel_options": options } }).to_string() + "\n"
        };
        return kernelstub_options(text).map(|line| json(clean(&line))).unwrap_or_default();
    }
    const SHELL: [&str; 4] = [GRUB_DEFAULT, GRUB_EVERY, "U_BOOT_PARAMETERS", EXTLINUX_VARIABLE];
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
        if is(&["append", "options"]) {
            return Some(format!("{keyword} {}\n", clean(words)));
        }
        // The names of entries of extlinux, and of the one that boots.
        (path == EXTLINUX && is(&["default", "label"])).then(|| format!("{line}\n"))
    };
    joined(text).lines().filter_map(known).collect()
}

/// The strings of the list `boot.kernelParams`.
pub(super) fn nix_parameters(text: &str) -> Option<String> {
    let uncommented: String = text.lines().filter(|line| !line.trim().starts_with('#')).collect();
    let (_, value) = uncommented.split_once("boot.kernelParams")?;
    let (list, _) = value.split_once('[')?.1.split_once(']')?;
    // Every second part is between quotes.
    Some(list.split('"').skip(1).step_by(2).collect::<Vec<_>>().join(" "))
}

/// The arguments that kernelstub gives to each boot entry.
pub(super) fn kernelstub_options(text: &str) -> Option<String> {
    let configuration: serde_json::Value = serde_json::from_str(text).ok()?;
    let options = configuration.pointer("/user/kernel_options")?.as_array()?;
    Some(options.iter().filter_map(serde_json::Value::as_str).collect::<Vec<_>>().join(" "))
}
