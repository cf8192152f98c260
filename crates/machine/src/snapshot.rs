//! A copy of what the checks read of a machine, without what identifies it or its user.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use flate2::{Compression, write::GzEncoder};

use crate::{Root, facts, findings, kernel::unpack, tune::firmware};

/// The parts of a machine that the checks read, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Files with their contents.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Symbolic links with their targets. What exists but could not be read is a link to itself, so that it cannot be read
    /// in the copy either.
    pub links: BTreeMap<String, String>,
    /// Folders without any of these files.
    pub folders: BTreeSet<String>,
}

impl Snapshot {
    /// Runs all checks, and copies what they read. `names` are words to remove beside the host's name, such as that of
    /// the user.
    #[must_use]
    pub fn of(root: &Root, names: &[String]) -> Self {
        let root = root.at_once();
        let machine = facts(&root);
        let _ = findings(&root, &machine, None, None);
        let seen = root.seen();
        let host = machine.hostname.iter().map(|host| (host.to_ascii_lowercase(), "host"));
        let names: Vec<(String, &str)> =
            host.chain(names.iter().map(|name| (name.to_ascii_lowercase(), "user"))).collect();
        let files: BTreeMap<String, Vec<u8>> = seen
            .files
            .into_iter()
            .filter_map(|(path, read)| Some((anonymous(&path, &names), cleaned(&path, &read.ok()?, &names)?)))
            .collect();
        // A folder that was read as a file is no file.
        let listed: BTreeSet<String> = seen.folders.keys().cloned().collect();
        let named = seen.folders.into_iter().flat_map(|(folder, names)| {
            let of_folder: Vec<String> = names.iter().map(|name| format!("{folder}/{name}")).collect();
            of_folder.into_iter().chain([folder])
        });
        // Handlers of interrupts and devices are folders. A process that ended meanwhile is none.
        let folders = named.chain(seen.existing).filter(|path| root.is_folder(path));
        let mut folders: BTreeSet<String> =
            folders.map(|path| anonymous(&path, &names)).filter(|path| !files.contains_key(path)).collect();
        let mut links = seen.links;
        let unread = seen.unread.iter().filter(|path| !listed.contains(*path));
        for path in unread.map(|path| anonymous(path, &names)) {
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
        Self { files, links, folders }
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

/// The contents of a file without what identifies the machine; `None` to leave the file out.
fn cleaned(path: &str, bytes: &[u8], names: &[(String, &str)]) -> Option<Vec<u8>> {
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
    let text = match path {
        "proc/cmdline" => arguments(&text),
        "proc/version" => version(&text),
        // Other lines name disks, shares and their users.
        "proc/self/mountinfo" => kept(&text, |line| line.contains(" - cgroup")),
        "proc/swaps" => swaps(&text),
        // Other lines have licence keys, which contain the serial number.
        path if firmware::FILES.contains(&path) => kept(&text, firmware::is_known),
        // The owner of a device may have named it.
        path if path.starts_with("sys/bus/usb/") && path.ends_with("/product") => return None,
        path if path.starts_with("boot/config-") || path.ends_with("/config") => options(&text),
        _ => text.into_owned(),
    };
    // A host can be called like its system or board.
    let is_of_maker =
        ["etc/", "usr/", "sys/class/dmi/", "proc/device-tree/"].iter().any(|folder| path.starts_with(folder));
    Some(anonymous(&text, if is_of_maker { &[] } else { names }).into_bytes())
}

fn kept(text: &str, is_kept: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| is_kept(line)).map(|line| format!("{line}\n")).collect()
}

/// The options of the kernel's configuration that are no text, which can contain names and paths.
fn options(text: &str) -> String {
    kept(text, |line| line.starts_with("CONFIG_") && !line.contains('"'))
}

fn arguments(text: &str) -> String {
    let word = |word: &str| match word.split_once('=') {
        _ if word == "--" => Some(word.to_owned()),
        Some((key, _)) if ARGUMENTS.contains(&key) => Some(word.to_owned()),
        Some((key, _)) => Some(format!("{key}=removed")),
        None => ARGUMENTS.contains(&word).then(|| word.to_owned()),
    };
    text.split_whitespace().filter_map(word).collect::<Vec<_>>().join(" ")
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

/// The text without the names, hardware addresses and other identifiers.
fn anonymous(text: &str, names: &[(String, &str)]) -> String {
    text.split_inclusive('\n').map(|line| of_line(line, names)).collect()
}

fn of_line(line: &str, names: &[(String, &str)]) -> String {
    // `Serial : 10000000abcdef` of a Raspberry Pi.
    if let Some((key, _)) = line.split_once(':').filter(|(key, _)| key.to_ascii_lowercase().contains("serial")) {
        return format!("{key}: 0\n");
    }
    // Words between separators that occur in names of hosts and volume groups.
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        out += before;
        let lower = word.to_ascii_lowercase();
        let name =
            names.iter().find(|(name, _)| name.split(['-', '.', '_']).any(|part| part == lower && part.len() > 2));
        match name {
            _ if out.ends_with("/home/") => out += "user",
            Some((_, instead)) => out += instead,
            None => out += word,
        }
        rest = after;
    }
    without_identifiers(&(out + rest))
}

/// The text with the digits of UUIDs, hardware addresses, machine ids and ids of containers replaced by zeros.
fn without_identifiers(text: &str) -> String {
    /// Lengths of the groups of hexadecimal digits of a UUID and a hardware address, and of ids in one piece.
    const FORMS: [&[usize]; 4] = [&[8, 4, 4, 4, 12], &[2, 2, 2, 2, 2, 2], &[64], &[32]];
    let is_of_id = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '-');
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_of_id) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c| !is_of_id(c)).unwrap_or(from.len());
        let (run, after) = from.split_at(end);
        out += before;
        let groups: Vec<&str> = run.split([':', '-']).collect();
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        let is_id = FORMS.iter().any(|form| lengths.windows(form.len()).any(|found| found == *form));
        if is_id {
            out.extend(run.chars().map(|c| if c.is_ascii_hexdigit() { '0' } else { c }));
        } else {
            out += run;
        }
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(path: &str, text: &[u8]) -> String {
        let names = [("studio".to_owned(), "host"), ("alice".to_owned(), "user")];
        String::from_utf8(cleaned(path, text, &names).unwrap_or_default()).unwrap()
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
    fn nothing_that_identifies_remains() {
        let cmdline: &[u8] =
            b"root=UUID=5b8a5f0e-95d7-4a5f-a3f5-0f6d1d0b2b11 rd.luks.uuid=luks-5b8a5f0e isolcpus=2-3 quiet \
            smsc95xx.macaddr=DC:A6:32:01:02:03 androidboot.serialno=SN12345 BOOTIF=01-dc-a6-32-01-02-03 ip=10.0.0.7 \
            secret systemd.machine_id=0123456789abcdef0123456789abcdef hostname=studio x=\xff";
        assert_eq!(
            clean("proc/cmdline", cmdline),
            "root=removed rd.luks.uuid=removed isolcpus=2-3 quiet smsc95xx.macaddr=removed androidboot.serialno=removed \
             BOOTIF=removed ip=removed systemd.machine_id=removed hostname=removed x=removed"
        );
        assert_eq!(clean("proc/cpuinfo", b"Serial\t\t: 10000000abcdef12\nModel: Pi\n"), "Serial\t\t: 0\nModel: Pi\n");
        assert_eq!(clean("proc/sys/kernel/hostname", b"STUDIO\n"), "host\n");
        let version = b"Linux version 6.1.0 (alice@studio.lab.example.org) (gcc) #1 SMP PREEMPT_RT";
        assert_eq!(clean("proc/version", version), "Linux version 6.1.0 (user@host) #1 SMP PREEMPT_RT");
        let mounts = b"21 1 0:3 / / rw - ext4 /dev/mapper/studio--vg rw\n26 24 0:24 / /c rw - cgroup2 cgroup2 rw\n";
        assert_eq!(clean("proc/self/mountinfo", mounts), "26 24 0:24 / /c rw - cgroup2 cgroup2 rw\n");
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
        let config =
            cleaned("proc/config.gz", &packed("CONFIG_HZ=250\nCONFIG_MODULE_SIG_KEY=\"/home/alice/k.pem\"\n"), &[]);
        assert_eq!(unpack(&config.unwrap()).unwrap(), "CONFIG_HZ=250\n");
    }
}
