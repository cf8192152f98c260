//! A copy of what the checks read of a machine, without what identifies it or its user.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use flate2::{Compression, write::GzEncoder};

use crate::{Root, boot_arguments, facts, findings, irqbalance, kernel::unpack, tune, virt::line_of_manager};

/// The parts of a machine that the checks read, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Files with their contents.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The read-only ones among them, also for root, such as the CPUs of an interrupt that its driver manages.
    pub read_only: BTreeSet<String>,
    /// Symbolic links with their targets. What exists but could not be read is a link to itself, so that it cannot be read
    /// in the copy either.
    pub links: BTreeMap<String, String>,
    /// Folders without any of these files.
    pub folders: BTreeSet<String>,
}

impl Snapshot {
    /// Runs all checks, plans all settings of `tune`, and copies the files that were read. `names` are more words to remove
    /// than the name of the host, such as that of the user.
    #[must_use]
    pub fn of(root: &Root, names: &[String]) -> Self {
        let root = root.at_once();
        let machine = facts(&root);
        let _ = findings(&root, &machine, None, None);
        tune::read_all(&root);
        let seen = root.seen();
        let host = machine.hostname.iter().map(|host| (host.to_ascii_lowercase(), "host"));
        let names = host.chain(names.iter().map(|name| (name.to_ascii_lowercase(), "user"))).collect();
        let paths = seen.files.keys().chain(seen.folders.keys()).chain(&seen.existing);
        let words = KERNEL_WORDS.split_whitespace().map(str::to_owned);
        let kept = paths.flat_map(|path| words_of_kernel(path)).chain(words).collect();
        let anonymizer = Anonymizer { names, kept, ids: RefCell::default() };
        // Names of threads are cut, so the whole names must be known first.
        seen.folders.iter().for_each(|(folder, names)| {
            names.iter().for_each(|name| drop(anonymizer.text(&format!("{folder}/{name}"))));
        });
        let anonymous = |path: &str| anonymizer.text(path);
        let read_only = seen.files.keys().filter(|path| root.is_fixed(path)).map(|path| anonymous(path)).collect();
        let mut files: BTreeMap<String, Vec<u8>> = seen
            .files
            .into_iter()
            .filter_map(|(path, read)| Some((anonymous(&path), cleaned(&path, &read.ok()?, &anonymizer)?)))
            .collect();
        // A folder that was read as a file is no file.
        let listed: BTreeSet<String> = seen.folders.keys().cloned().collect();
        let named = seen.folders.into_iter().flat_map(|(folder, names)| {
            let of_folder: Vec<String> = names.iter().map(|name| format!("{folder}/{name}")).collect();
            of_folder.into_iter().chain([folder])
        });
        // Handlers of interrupts and devices are folders. A process that ended meanwhile is none.
        let (existing, others): (Vec<String>, Vec<String>) =
            seen.existing.into_iter().partition(|path| root.is_folder(path));
        let folders = named.filter(|path| root.is_folder(path)).chain(existing);
        let mut folders: BTreeSet<String> =
            folders.map(|path| anonymous(&path)).filter(|path| !files.contains_key(path)).collect();
        let mut links: BTreeMap<String, String> =
            seen.links.into_iter().map(|(path, target)| (anonymous(&path), anonymous(&target))).collect();
        // Only their existence was asked.
        for path in others.iter().map(|path| anonymous(path)).filter(|path| !links.contains_key(path)) {
            files.entry(path).or_default();
        }
        let unread = seen.unread.iter().filter(|path| !listed.contains(*path));
        for path in unread.map(|path| anonymous(path)) {
            // A folder that cannot be listed may have files that can be read.
            let below = format!("{path}/");
            let has_content = files.keys().chain(&folders).any(|other| other.starts_with(&below));
            let is_below_link = path.match_indices('/').any(|(at, _)| links.contains_key(&path[..at]));
            if !has_content && !is_below_link {
                let target = path.rsplit('/').next().unwrap_or(&path).to_owned();
                links.insert(path, target);
            }
        }
        folders.retain(|path| !links.contains_key(path));
        Self { files, read_only, links, folders }
    }
}

/// Arguments of the kernel whose values say nothing about the machine's owner. Those of others are removed.
const ARGUMENTS: [&str; 52] = [
    "amd_pstate",
    "apparmor",
    "audit",
    "clocksource",
    "console",
    "cpufreq.default_governor",
    "cpuidle.off",
    "default_hugepagesz",
    "efi",
    "evl.oob_cpus",
    "evl.state",
    "highres",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_pstate",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "lockdown",
    "maxcpus",
    "mem",
    "mitigations",
    "nmi_watchdog",
    "noefi",
    "nohz",
    "nohz_full",
    "nosmt",
    "nosoftlockup",
    "nowatchdog",
    "nr_cpus",
    "pcie_aspm",
    "pcie_aspm.policy",
    "preempt",
    "processor.max_cstate",
    "psi",
    "punctual.emulation",
    "quiet",
    "rcu_nocbs",
    "rcutree.kthread_prio",
    "ro",
    "rw",
    "selinux",
    "skew_tick",
    "splash",
    "systemd.unified_cgroup_hierarchy",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
    "usbcore.autosuspend",
    "xenomai.supported_cpus",
];

/// The folder of EFI with the kernels of Proxmox.
const PROXMOX: &str = "\\EFI\\proxmox";

/// The contents of a file without what identifies the machine; `None` to leave the file out.
fn cleaned(path: &str, bytes: &[u8], anonymizer: &Anonymizer) -> Option<Vec<u8>> {
    if path == "proc/config.gz" {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(options(&unpack(bytes)?).as_bytes()).ok()?;
        return packed.finish().ok();
    }
    if path.starts_with("dev/") {
        // A number, not a text.
        return Some(bytes.to_vec());
    }
    let text = String::from_utf8_lossy(bytes);
    let of_boot = tune::known_tuned_lines(path, &text, arguments).or_else(|| tune::known_preset_lines(path, &text));
    let text = match path {
        _ if of_boot.is_some() => of_boot.unwrap_or_default(),
        "proc/cmdline" => arguments(&text),
        "proc/version" => version(&text),
        // Words of two characters are no names elsewhere.
        "proc/sys/kernel/hostname" => return Some(b"host\n".to_vec()),
        // Other lines name disks, shares and their users.
        "proc/self/mountinfo" => text
            .lines()
            .filter_map(|line| if line.contains(" - cgroup") { Some(line.to_owned()) } else { line_of_manager(line) })
            .map(|line| line + "\n")
            .collect(),
        "proc/swaps" => swaps(&text),
        // Other lines of a mainframe have serial numbers and the names of partitions.
        "proc/sysinfo" => {
            kept(&text, |line| ["LPAR Number", "VM00 Control Program"].iter().any(|key| line.starts_with(key)))
        }
        // Other lines name the program, its user and its groups.
        path if path.starts_with("proc/") && path.contains("/task/") && path.ends_with("/status") => {
            kept(&text, |line| line.starts_with("Cpus_allowed_list:"))
        }
        path if tune::is_boot_file(path) => tune::known_boot_lines(path, &text, arguments),
        path if irqbalance::is_file(path) => irqbalance::known_lines(&text),
        // Other lines have licence keys, which contain the serial number.
        path if tune::firmware::FILES.contains(&path) => for_any_board(&kept(&text, tune::firmware::is_known)),
        // The owner of a device may have named it.
        path if path.starts_with("sys/bus/usb/") && path.ends_with("/product") => return None,
        path if path.starts_with("boot/config-") || path.ends_with("/config") => options(&text),
        // The firmware of a Raspberry Pi can read the arguments from a file of any name.
        path if path.starts_with("boot/") => arguments(text.lines().next().unwrap_or_default()) + "\n",
        // The owner of the machine wrote the others; only their existence counts.
        path if path.starts_with("etc/") && path != "etc/os-release" => String::new(),
        _ => text.into_owned(),
    };
    // A host can be called like its system or board, and a user like a word of the kernel.
    let of_maker = ["etc/", "usr/", "boot/", "sys/class/dmi/", "proc/device-tree/", "proc/self/limits"];
    let is_of_maker = of_maker.iter().any(|start| path.starts_with(start));
    Some(anonymizer.lines(&text, !is_of_maker).into_bytes())
}

/// Words in the contents of files that the kernel chose and that checks read, in lower case: preemption, governors, drivers and
/// preferences of processors, clock sources, settings of memory, flags of `isolcpus`, keys of `cpuinfo` and of the status of a
/// process, states of partitions, and threads and daemons.
const KERNEL_WORDS: &str = "none full lazy voluntary dynamic preempt realtime rcu \
    performance powersave schedutil ondemand conservative userspace unknown \
    intel amd acpi cppc cpufreq pstate epp scmi raspberrypi passive active guided \
    default balance power normal hwp tsc hpet arch sys counter kvm clock hyperv clocksource page timer jiffies refined \
    always madvise never advise inherit within size force deny defer auto powersupersave enabled disabled \
    managed irq domain nohz housekeeping isolated root member invalid all nmi panic \
    vulnerable mitigation affected processor model name vendor family stepping microcode mhz cache flags features hardware \
    revision serial cpu cpus allowed list mems threads capinh capprm capeff capbnd capamb seccomp state pid ppid tgid uid gid \
    kthreadd ksoftirqd migration rcuc rcuop rcuog kworker idle inject cpuhp watchdog irqbalance tuned jackd jackdbus pipewire \
    wireplumber pulseaudio forceon forceoff notsupported notimplemented on off menu teo ladder haltpoll";

/// The words in a path that the kernel or the distribution chose, in lower case. A host or user can have the same name.
fn words_of_kernel(path: &str) -> Vec<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let is_chosen = |n: usize| {
        let of_interface = n > 0 && ["net", "leds"].contains(&parts[n - 1]);
        let of_handler = n == 3 && path.starts_with("proc/irq/");
        of_interface || of_handler
    };
    let fixed: &[&str] = match &parts[..] {
        ["sys", "fs", "cgroup", ..] => &[],
        ["proc" | "sys", ..] => &parts,
        // A file such as /etc/NIXOS.
        ["etc", _] => &parts,
        _ => &[],
    };
    let words = |part: &&str| part.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase).collect();
    let chosen = fixed.iter().enumerate().filter(|(n, _)| !is_chosen(*n));
    chosen.flat_map(|(_, part)| -> Vec<String> { words(part) }).collect()
}

/// The lines of config.txt, with another serial number in the filters for one Raspberry Pi: `[0x10000000abcdef12]`.
fn for_any_board(text: &str) -> String {
    let is_filter = |line: &str| line.trim_start().starts_with("[0x");
    text.lines().map(|line| format!("{}\n", if is_filter(line) { "[0x0]" } else { line })).collect()
}

fn kept(text: &str, is_kept: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| is_kept(line)).map(|line| format!("{line}\n")).collect()
}

/// The options of the kernel's configuration that are no text, which can contain names and paths.
fn options(text: &str) -> String {
    kept(text, |line| line.starts_with("CONFIG_") && !line.contains('"'))
}

/// The earlier values in a variable of GRUB.
const INHERITED: [&str; 4] =
    ["$GRUB_CMDLINE_LINUX", "$GRUB_CMDLINE_LINUX_DEFAULT", "${GRUB_CMDLINE_LINUX}", "${GRUB_CMDLINE_LINUX_DEFAULT}"];

fn arguments(text: &str) -> String {
    let word = |word: &str| match word.split_once('=') {
        _ if word == "--" || INHERITED.contains(&word) => word.to_owned(),
        // Blanks in quotes are not among the values that the kernel knows.
        Some((key, value)) if ARGUMENTS.contains(&key) && !value.contains(char::is_whitespace) => word.to_owned(),
        // A path of EFI shows which program started the kernel.
        Some((key @ "initrd", value)) if value.starts_with('\\') => {
            let folder = if value.starts_with(PROXMOX) { PROXMOX } else { "" };
            format!("{key}={folder}\\{}", boot_arguments::REMOVED)
        }
        // Other texts, such as an address with a password, can have an equals sign, too.
        Some((key, _)) if key.chars().all(|c| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c)) => {
            format!("{key}={}", boot_arguments::REMOVED)
        }
        None if ARGUMENTS.contains(&word) => word.to_owned(),
        Some(_) | None => boot_arguments::REMOVED.to_owned(),
    };
    let mut words: Vec<String> = boot_arguments::words(text).into_iter().map(word).collect();
    words.dedup();
    words.join(" ")
}

/// `Linux version RELEASE #BUILD`, without the names of who built it.
fn version(text: &str) -> String {
    let release = text.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let build = text.rfind(" #").map(|at| &text[at..]).unwrap_or_default();
    format!("{release} (user@host){build}")
}

/// The heading and the lines of the areas, whose paths can contain names.
fn swaps(text: &str) -> String {
    let line = |(number, line): (usize, &str)| match (number, line.split_whitespace().next()) {
        (0, _) | (_, None) => format!("{line}\n"),
        (_, Some(path)) => line.replacen(path, "/removed", 1) + "\n",
    };
    text.lines().enumerate().map(line).collect()
}

/// Removes names and identifiers. Different ones stay different, so that two paths never become the same.
struct Anonymizer<'a> {
    /// Words to remove in lower case, each with its replacement.
    names: Vec<(String, &'a str)>,
    /// Words that stay, although a name can contain them.
    kept: BTreeSet<String>,
    /// The digits of the replaced identifiers, in the order of their first occurrence.
    ids: RefCell<Vec<String>>,
}

impl Anonymizer<'_> {
    /// A path or a name without names and identifiers.
    fn text(&self, text: &str) -> String {
        self.line(text, true)
    }

    /// The content of a file without identifiers, and without names if they are removed.
    fn lines(&self, text: &str, removes_names: bool) -> String {
        // `Serial : 10000000abcdef` of a Raspberry Pi, and `Hardware serial number: ...`. Other lines have "serial" in the name of
        // a device.
        let is_serial = |key: &str| {
            let key = key.trim().to_ascii_lowercase();
            ["serial", "serial number"].iter().any(|end| key.ends_with(end)) && !key.contains(['=', '/', '['])
        };
        let without_serial = |line: &str| {
            let (key, _) = line.split_once(':').filter(|(key, _)| is_serial(key))?;
            Some(format!("{key}: 0\n"))
        };
        let clean = |line: &str| without_serial(line).unwrap_or_else(|| self.line(line, removes_names));
        text.split_inclusive('\n').map(clean).collect()
    }

    fn line(&self, line: &str, removes_names: bool) -> String {
        let names: &[(String, &str)] = if removes_names { &self.names } else { &[] };
        // Words between separators that occur in names of hosts and volume groups.
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
            let (before, from) = rest.split_at(at);
            let end = from.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            out += before;
            let lower = word.to_ascii_lowercase();
            let is_part = |name: &str| name.split(['-', '.', '_']).any(|part| part == lower && part.len() > 2);
            let name = names.iter().find(|(name, _)| is_part(name) && !self.kept.contains(&lower));
            match name {
                _ if out.ends_with("/home/") => out += "user",
                Some((_, instead)) => out += instead,
                None => out += word,
            }
            rest = after;
        }
        self.without_identifiers(&(out + rest))
    }

    /// The text with other digits in UUIDs, hardware addresses, machine ids and ids of containers and pods.
    fn without_identifiers(&self, text: &str) -> String {
        let is_of_id = |c: char| c.is_ascii_hexdigit() || is_separator(c);
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(is_of_id) {
            let (before, from) = rest.split_at(at);
            out += before;
            // `pod` of a group of Kubernetes ends with a hexadecimal digit.
            let from = match from.strip_prefix('d').filter(|_| out.ends_with("po")) {
                Some(after) => {
                    out.push('d');
                    after
                }
                None => from,
            };
            let end = from.find(|c| !is_of_id(c)).unwrap_or(from.len());
            let (run, after) = from.split_at(end);
            out += &self.other_digits(&out, run, after);
            rest = after;
        }
        out + rest
    }

    /// The run of hexadecimal digits and separators, with other digits in identifiers.
    fn other_digits(&self, before: &str, run: &str, after: &str) -> String {
        // The id of a maker's variables in EFI is the same on each machine.
        if run.trim_matches(is_separator) == tune::VENDOR {
            return run.to_owned();
        }
        let groups: Vec<&str> = run.split(is_separator).collect();
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        let mut is_id = vec![false; groups.len()];
        for form in FORMS {
            for at in 0..lengths.len().saturating_sub(form.len() - 1) {
                if lengths[at..at + form.len()] == *form {
                    is_id[at..at + form.len()].fill(true);
                }
            }
        }
        // The name of an interface by its address: `enx001122334455`, which the name of a thread contains in part.
        let is_interface = INTERFACES.iter().any(|kind| {
            let above = before.strip_suffix('x').and_then(|before| before.strip_suffix(kind));
            above.is_some_and(|above| !above.ends_with(|c: char| c.is_ascii_alphanumeric()))
        });
        let is_known = |part: &str| self.ids.borrow().iter().any(|id| id.len() == ADDRESS && id.starts_with(part));
        let first = groups[0].to_ascii_lowercase();
        // `001122aabbcc::lan`, `enp0s1f6-001122aabbcc`. A number has decimal digits only.
        let is_bounded = |at: usize| {
            (at > 0 || !before.ends_with(|c: char| c.is_ascii_alphanumeric()))
                && (at + 1 < groups.len() || !after.starts_with(|c: char| c.is_ascii_alphanumeric()))
        };
        for (at, group) in groups.iter().enumerate().filter(|(_, group)| group.len() == ADDRESS) {
            let is_number = group.bytes().all(|byte| byte.is_ascii_digit());
            is_id[at] |= is_bounded(at) && (!is_number || is_known(group));
        }
        // `eui.0025388b71b0a5c2`, `wwn-0x5002538e40a1b2c3`.
        is_id[0] |= first.len() >= DISK && DISKS.iter().any(|kind| before.to_ascii_lowercase().ends_with(kind));
        is_id[0] |= is_interface && (first.len() == ADDRESS || first.len() >= 3 && is_known(&first));
        let id: String = groups.iter().zip(&is_id).filter(|(_, is_id)| **is_id).map(|(group, _)| *group).collect();
        if id.is_empty() {
            return run.to_owned();
        }
        let mut digits = self.instead_of(&id.to_ascii_lowercase()).into_bytes().into_iter().map(char::from);
        let mut group = 0;
        let other = |c: char| {
            group += usize::from(is_separator(c));
            if is_id[group] && !is_separator(c) { digits.next().unwrap_or('0') } else { c }
        };
        run.chars().map(other).collect()
    }

    /// The replacement for the digits of an identifier: its number, which is 0 for the first one.
    fn instead_of(&self, id: &str) -> String {
        let mut ids = self.ids.borrow_mut();
        let is_it = |known: &String| known == id || id.len() < ADDRESS && known.starts_with(id);
        let number = ids.iter().position(is_it).unwrap_or_else(|| {
            ids.push(id.to_owned());
            ids.len() - 1
        });
        let length = ids[number].len();
        format!("{number:0length$x}")[..id.len()].to_owned()
    }
}

/// Lengths of the groups of hexadecimal digits of a UUID and a hardware address, and of ids in one piece.
const FORMS: [&[usize]; 4] = [&[8, 4, 4, 4, 12], &[2, 2, 2, 2, 2, 2], &[64], &[32]];
/// Digits of a hardware address.
const ADDRESS: usize = 12;
/// Digits of the shortest identifier of a disk, and the words before one.
const DISK: usize = 16;
const DISKS: [&str; 4] = ["eui.", "naa.", "wwn-0x", "nguid."];
/// The kinds of interfaces that udev can name by their address (systemd.net-naming-scheme(7)).
const INTERFACES: [&str; 5] = ["en", "ib", "sl", "wl", "ww"];

fn is_separator(c: char) -> bool {
    matches!(c, ':' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anonymizer() -> Anonymizer<'static> {
        let names = vec![("studio".to_owned(), "host"), ("alice".to_owned(), "user")];
        Anonymizer { names, kept: BTreeSet::new(), ids: RefCell::default() }
    }

    fn clean(path: &str, text: &[u8]) -> String {
        String::from_utf8(cleaned(path, text, &anonymizer()).unwrap_or_default()).unwrap()
    }

    #[test]
    fn what_cannot_be_read_is_not_absent_in_the_copy() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let swaps = |root: &Root| {
            let found = findings(root, &facts(root), None, None);
            found.into_iter().find(|finding| finding.id == "memory.swap").unwrap()
        };
        std::fs::create_dir(root.path("proc")).unwrap();
        std::fs::write(root.path("proc/meminfo"), "").unwrap();
        assert_eq!(swaps(&root).state, record::FindingState::NotApplicable);
        std::os::unix::fs::symlink("swaps", root.path("proc/swaps")).unwrap();
        assert_eq!(swaps(&root).state, record::FindingState::Unknown);
        let copy = Snapshot::of(&root, &[]);
        assert_eq!(copy.links.get("proc/swaps").map(String::as_str), Some("swaps"), "{copy:?}");
    }

    #[test]
    fn values_of_the_kernel_stay_although_a_host_has_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/hostname", "lazy-amd-kestrel\n");
        write("sys/kernel/debug/sched/preempt", "full (lazy)\n");
        write("proc/swaps", "/kestrel-swap\n");
        let copy = Snapshot::of(&root, &[]);
        let of = |path: &str| String::from_utf8_lossy(copy.files.get(path).map_or(&[][..], Vec::as_slice)).into_owned();
        assert_eq!(of("sys/kernel/debug/sched/preempt"), "full (lazy)\n", "{copy:?}");
        assert!(!format!("{copy:?}").contains("kestrel"), "{copy:?}");
    }

    #[test]
    fn nothing_that_identifies_remains() {
        let cmdline: &[u8] =
            b"root=UUID=5b8a5f0e-95d7-4a5f-a3f5-0f6d1d0b2b11 rd.luks.uuid=luks-5b8a5f0e isolcpus=2-3 quiet \
            smsc95xx.macaddr=DC:A6:32:01:02:03 androidboot.serialno=SN12345 BOOTIF=01-dc-a6-32-01-02-03 ip=10.0.0.7 \
            secret systemd.machine_id=0123456789abcdef0123456789abcdef hostname=studio x=\xff";
        assert_eq!(
            clean("proc/cmdline", cmdline),
            "root=removed rd.luks.uuid=removed isolcpus=2-3 quiet smsc95xx.macaddr=removed androidboot.serialno=removed \
             BOOTIF=removed ip=removed removed systemd.machine_id=removed hostname=removed x=removed"
        );
        assert_eq!(
            clean("proc/cmdline", b"quiet http://bob:hunter2@10.0.0.1/?x=1 \"my secret two=x\""),
            "quiet removed"
        );
        assert_eq!(clean("proc/cpuinfo", b"Serial\t\t: 10000000abcdef12\nModel: Pi\n"), "Serial\t\t: 0\nModel: Pi\n");
        assert_eq!(clean("proc/cpuinfo", b"Serial\t\t: 10000000abcdef12"), "Serial\t\t: 0\n", "the last line");
        assert_eq!(anonymizer().text("sys/class/leds/serial:green:tx"), "sys/class/leds/serial:green:tx");
        assert_eq!(
            clean("proc/cmdline", b"bcm2708.serial=0xabcdef12 isolcpus=domain,0-3:1/2 nohz_full=2"),
            "bcm2708.serial=removed isolcpus=domain,0-3:1/2 nohz_full=2"
        );
        assert_eq!(clean("sys/class/leds/serial:green:tx/trigger", b"[none] timer\n"), "[none] timer\n");
        assert_eq!(clean("boot/config.txt", b"[0x10000000abcdef12]\narm_freq=900\n"), "[0x0]\narm_freq=900\n");
        assert_eq!(clean("proc/sys/kernel/hostname", b"STUDIO\n"), "host\n");
        assert_eq!(clean("proc/sys/kernel/hostname", b"vm\n"), "host\n");
        let version = b"Linux version 6.1.0 (alice@studio.lab.example.org) (gcc) #1 SMP PREEMPT_RT";
        assert_eq!(clean("proc/version", version), "Linux version 6.1.0 (user@host) #1 SMP PREEMPT_RT");
        let mounts = b"21 1 0:3 / / rw - ext4 /dev/mapper/studio--vg rw\n26 24 0:24 / /c rw - cgroup2 cgroup2 rw\n";
        assert_eq!(clean("proc/self/mountinfo", mounts), "26 24 0:24 / /c rw - cgroup2 cgroup2 rw\n");
        let mounts = b"4 3 0:5 / / rw - overlay overlay rw,upperdir=/home/alice/containers/storage/overlay/4f2a/diff\n";
        assert_eq!(clean("proc/self/mountinfo", mounts), "0 0 0:0 /containers/storage/ / rw - removed removed rw\n");
        let swap = b"Filename Type\n/dev/mapper/studio--vg-swap_1 partition 1\n";
        assert_eq!(clean("proc/swaps", swap), "Filename Type\n/removed partition 1\n");
        assert_eq!(clean("sys/bus/usb/devices/1-2/product", b"alices phone"), "");
        assert_eq!(clean("boot/config-6", b"CONFIG_A=y\nCONFIG_DEFAULT_HOSTNAME=\"studio\"\n"), "CONFIG_A=y\n");
        assert_eq!(
            clean("x", b"\xff /home/bob/x dc:a6:32:01:02:03 studio-vg alice\n"),
            "\u{fffd} /home/user/x 00:00:00:00:00:00 host-vg user\n"
        );
        let id = "0123456789abcdef".repeat(4);
        assert_eq!(
            clean("proc/self/cgroup", format!("0::/docker-{id}.scope").as_bytes()),
            format!("0::/docker-{}.scope", "0".repeat(64))
        );
        for text in [
            "CapEff:\t000001ffffffffff\n",
            "31: 200 1000 BRCM-PCIe 524288 Edge xhci_hcd",
            "00000001,ffffffff",
            "studios 12:30",
        ] {
            assert_eq!(clean("x", text.as_bytes()), text);
        }
        let packed = |text: &str| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            packed.write_all(text.as_bytes()).unwrap();
            packed.finish().unwrap()
        };
        let config = cleaned(
            "proc/config.gz",
            &packed("CONFIG_HZ=250\nCONFIG_MODULE_SIG_KEY=\"/home/alice/k.pem\"\n"),
            &anonymizer(),
        );
        assert_eq!(unpack(&config.unwrap()).unwrap(), "CONFIG_HZ=250\n");
    }

    #[test]
    fn identifiers_in_names_are_replaced_alike_everywhere() {
        let anonymizer = anonymizer();
        let clean = |text: &str| anonymizer.text(text);
        assert_eq!(clean("sys/class/net/enx001122334455"), "sys/class/net/enx000000000000");
        assert_eq!(clean("sys/class/net/wlx00aabbccddee/x"), "sys/class/net/wlx000000000001/x");
        assert_eq!(clean("sys/class/leds/enx001122334455::lan"), "sys/class/leds/enx000000000000::lan");
        assert_eq!(
            clean("42: 7 0 IR-PCI-MSI 1-edge wlx00aabbccddee-rx-0"),
            "42: 7 0 IR-PCI-MSI 1-edge wlx000000000001-rx-0"
        );
        assert_eq!(clean("00:aa:bb:cc:dd:ee"), "00:00:00:00:00:01");
        // A name of a thread is cut after 15 characters.
        assert_eq!(clean("irq/42-wlx00aab (irq/42-enx00112)"), "irq/42-wlx00000 (irq/42-enx00000)");
        for text in ["enx00", "irq/42-enxfade", "xenx001122334455", "0x001122334455", "eno1 enp3s0f0 rx-112233445566"] {
            assert_eq!(clean(text), text);
        }
        assert_eq!(
            clean("sys/class/leds/001122aabbcc::lan enp0s1f6-001122AABBCC"),
            "sys/class/leds/000000000002::lan enp0s1f6-000000000002"
        );
        assert_eq!(clean("00:11:22:aa:bb:cc"), "00:00:00:00:00:02");
        assert_eq!(
            clean("nvme-eui.0025388b71b0a5c2 wwn-0x5002538e40a1b2c3-part1"),
            "nvme-eui.0000000000000003 wwn-0x0000000000000004-part1"
        );
        for text in ["cpu 123456789012 0", "decade123456x", "0x001122aabbcc", "abcdef123456789"] {
            assert_eq!(clean(text), text);
        }
        let pod = "kubepods.slice/kubepods-burstable-pod5b8a5f0e_95d7_4a5f_a3f5_0f6d1d0b2b11.slice/cri-containerd-";
        assert_eq!(
            clean(&format!("{pod}{}.scope", "ab".repeat(32))),
            format!(
                "kubepods.slice/kubepods-burstable-pod00000000_0000_0000_0000_000000000005.slice/cri-containerd-{}6.scope",
                "0".repeat(63)
            )
        );
        assert_eq!(
            clean("kubepods/pod5b8a5f0e-95d7-4a5f-a3f5-0f6d1d0b2b11 pod0123456789abcdef0123456789abcdef"),
            "kubepods/pod00000000-0000-0000-0000-000000000005 pod00000000000000000000000000000007"
        );
        assert_eq!(
            clean("card.AA_BB_CC_DD_EE_FF battery_aa:bb:cc:dd:ee:ff:red"),
            "card.00_00_00_00_00_08 battery_00:00:00:00:00:08:red"
        );
    }

    #[test]
    fn a_snapshot_has_no_address_in_paths_links_and_names_of_interrupts() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let put = |path: &str, text: &str| {
            std::fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            std::fs::write(root.path(path), text).unwrap();
        };
        put("sys/devices/system/cpu/online", "0-1");
        put("sys/devices/system/cpu/isolated", "1");
        put("proc/device-tree/model", "Raspberry Pi 4");
        put("proc/uptime", "1000.00 1.00");
        put("proc/interrupts", "      CPU0 CPU1\n 42: 7 9 GIC 1 Level enx001122334455\n");
        put("proc/irq/42/effective_affinity_list", "1");
        put("proc/irq/42/smp_affinity_list", "0-1");
        std::fs::create_dir_all(root.path("proc/irq/42/enx001122334455")).unwrap();
        put("sys/class/leds/enx001122334455::lan/trigger", "none [netdev]");
        put("sys/class/rfkill/rfkill0/type", "wlan");
        std::fs::create_dir_all(root.path("sys/class/rfkill/rfkill0/device/device/driver")).unwrap();
        symlink("../../net/enx001122334455", root.path("sys/class/rfkill/rfkill0/device/device/subsystem")).unwrap();
        let copy = Snapshot::of(&root, &[]);
        let all = format!("{copy:?}");
        assert!(!all.contains("001122334455"), "{all}");
        assert!(copy.files.contains_key("sys/class/leds/enx000000000000::lan/trigger"), "{all}");
        assert!(copy.folders.contains("proc/irq/42/enx000000000000"), "{all}");
        let interrupts = String::from_utf8(copy.files["proc/interrupts"].clone()).unwrap();
        assert!(interrupts.contains("Level enx000000000000"), "{interrupts}");
        assert!(copy.links.values().any(|target| target == "../../net/enx000000000000"), "{all}");
    }

    /// A file of any name can have the arguments of the kernel; the variable of EFI names the boot loader.
    #[test]
    fn a_snapshot_has_what_names_the_boot_loader_and_no_secret_argument() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let put = |path: &str, text: &str| {
            std::fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            std::fs::write(root.path(path), text).unwrap();
        };
        put("sys/devices/system/cpu/online", "0-3");
        put("sys/devices/system/cpu/isolated", "3");
        put("proc/device-tree/model", "Raspberry Pi 4");
        put("boot/firmware/config.txt", "cmdline=own.txt\n");
        put("boot/firmware/own.txt", "isolcpus=2 password=alice\n");
        let info = format!("sys/firmware/efi/efivars/LoaderInfo-{}", tune::VENDOR);
        put(&info, "\u{6}\0\0\0G\0R\0U\0B\0\0\0");
        let copy = Snapshot::of(&root, &[]);
        assert_eq!(copy.files["boot/firmware/own.txt"], b"isolcpus=2 password=removed\n");
        assert_eq!(copy.files[&info], std::fs::read(root.path(&info)).unwrap());
    }

    #[test]
    fn files_of_tuned_and_of_the_owner_are_cleaned() {
        let line = "isolcpus=2 nohz_full=2 password=alice ip=10.1.1.1 BOOTIF=01-00-11-22-33-44-55 secret";
        let known = "isolcpus=2 nohz_full=2 password=removed ip=removed BOOTIF=removed removed";
        assert_eq!(
            clean(
                "etc/tuned/bootcmdline",
                format!("# x\nTUNED_BOOT_CMDLINE=\"{line}\"\nTUNED_BOOT_INITRD_ADD=\"/boot/studio\"\n").as_bytes()
            ),
            format!("TUNED_BOOT_CMDLINE=\"{known}\"\n")
        );
        for path in ["boot/grub/grubenv", "boot/grub2/grubenv"] {
            let text = format!("# GRUB Environment Block\nsaved_entry=studio\ntuned_params={line}\n###\n");
            assert_eq!(clean(path, text.as_bytes()), format!("tuned_params=\"{known}\"\n"));
        }
        assert_eq!(clean("etc/tuned/active_profile", b"studio-rt realtime\n"), "removed realtime\n");
        assert_eq!(
            clean("etc/mkinitcpio.d/linux.preset", b"default_uki=\"/efi/studio.efi\"\nALL_kver=/x\n"),
            "default_uki=\"\"\n"
        );
        assert_eq!(
            clean("etc/nixos/configuration.nix", b"# studio\nboot.kernelParams = [ \"quiet\" \"ip=10.0.0.1\" ];\n"),
            "boot.kernelParams = [ \"quiet\" \"ip=removed\" ];\n"
        );
        assert_eq!(
            clean(
                "etc/kernelstub/configuration",
                b"{\"user\":{\"kernel_options\":[\"quiet\",\"x=alice\"],\"esp\":\"/studio\"}}"
            ),
            "{\"user\":{\"kernel_options\":[\"quiet\",\"x=removed\"]}}\n"
        );
        assert_eq!(clean("etc/cmdline.d/root.conf", b"# alice\nroot=UUID=1 isolcpus=1\n"), "root=removed isolcpus=1\n");
        assert_eq!(clean("etc/own.conf", b"studio\n"), "");
        assert_eq!(clean("etc/os-release", b"ID=debian\n"), "ID=debian\n");
    }

    #[test]
    fn serial_numbers_of_a_mainframe_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc")).unwrap();
        let text = "Manufacturer: IBM\nSequence Code: 00000000000ABC12\nLPAR Number: 5\nLPAR Name: PAYROLL\n\
                    VM00 Name: LINUX42\nVM00 Control Program: z/VM 7.3.0\n";
        std::fs::write(folder.path().join("proc/sysinfo"), text).unwrap();
        let copy = Snapshot::of(&Root::at(folder.path()), &[]);
        let kept = copy.files.get("proc/sysinfo").map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert_eq!(kept.as_deref(), Some("LPAR Number: 5\nVM00 Control Program: z/VM 7.3.0\n"));
    }

    /// Proxmox, and a kernel that the firmware starts itself, are known by a path of EFI.
    #[test]
    fn a_snapshot_gives_the_same_steps_for_the_boot_loader() {
        for (path, kept) in
            [("\\EFI\\proxmox\\6.8-pve\\initrd.img", "\\EFI\\proxmox\\removed"), ("\\alice.img", "\\removed")]
        {
            let (folder, copied) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let write = |folder: &std::path::Path, path: &str, text: &[u8]| {
                std::fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
                std::fs::write(folder.join(path), text).unwrap();
            };
            for (path, text) in [
                ("sys/devices/system/cpu/online", "0-3"),
                ("etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet\"\n"),
                ("etc/kernel/proxmox-boot-uuids", "1234-5678\n"),
                ("etc/kernel/cmdline", "quiet\n"),
                ("proc/cmdline", &format!("initrd={path} quiet\n")),
            ] {
                write(folder.path(), path, text.as_bytes());
            }
            let root = Root::at(folder.path());
            let copy = Snapshot::of(&root, &[]);
            assert_eq!(copy.files["proc/cmdline"], format!("initrd={kept} quiet").into_bytes());
            copy.files.iter().for_each(|(path, bytes)| write(copied.path(), path, bytes));
            let steps = |root: &Root| tune::boot(root, &"3".parse().unwrap()).map(|boot| (boot.loader, boot.steps));
            assert_eq!(steps(&Root::at(copied.path())), steps(&root), "{path}");
        }
    }

    /// Since Linux 6.13, only the rights of the file show that a driver manages an interrupt.
    #[test]
    fn a_snapshot_keeps_which_files_nobody_may_write() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for number in ["1", "2"] {
            std::fs::create_dir_all(root.path(&format!("proc/irq/{number}"))).unwrap();
            std::fs::write(root.path(&format!("proc/irq/{number}/smp_affinity_list")), "0-1").unwrap();
        }
        std::fs::create_dir_all(root.path("sys/devices/system/cpu")).unwrap();
        std::fs::write(root.path("sys/devices/system/cpu/online"), "0-1").unwrap();
        let managed = root.path("proc/irq/2/smp_affinity_list");
        std::fs::set_permissions(managed, std::fs::Permissions::from_mode(0o444)).unwrap();
        let copy = Snapshot::of(&root, &[]);
        assert!(copy.files.contains_key("proc/irq/1/smp_affinity_list"));
        assert_eq!(copy.read_only, BTreeSet::from(["proc/irq/2/smp_affinity_list".to_owned()]));
    }
}
