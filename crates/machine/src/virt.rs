//! Virtualization: the hypervisor and the container that this process runs in.

use record::Emulation;

use crate::{Root, Unreadable, cgroup, cpus};

/// Strings in the firmware's vendor and product names that identify a hypervisor, each with its name.
/// On ARM only these and the device tree identify a guest.
const VENDORS: [(&str, &str); 14] = [
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("QEMU", "qemu"),
    ("Amazon EC2", "kvm"),
    ("Google Compute Engine", "kvm"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek GmbH", "virtualbox"),
    ("Xen", "xen"),
    ("Parallels", "parallels"),
    ("Apple Virtualization", "apple"),
    ("BHYVE", "bhyve"),
    ("Virtual Machine", "hyperv"),
];

/// The hypervisor whose guest this machine is, `none` on bare metal; `None` if the signs cannot be read.
///
/// x86 guests have a CPU flag. ARM guests have none, so the device tree and the firmware's names decide.
pub(crate) fn hypervisor(root: &Root) -> Option<String> {
    let firmware = firmware(root);
    let by_name = firmware
        .as_deref()
        .and_then(|name| VENDORS.iter().find(|(sign, _)| name.contains(sign)))
        .map(|&(_, kind)| kind);
    let flagged = cpu_flag(root);
    let kind = match flagged {
        Some(false) => return Some("none".to_owned()),
        // QEMU may run its CPUs in software or with KVM, so its name does not identify the hypervisor.
        Some(true) => root
            .read("sys/hypervisor/type")
            .or_else(|| by_name.filter(|&kind| kind != "qemu").map(str::to_owned))
            .or_else(|| by_clock(root))
            .or_else(|| by_name.map(str::to_owned)),
        // Cloud providers also sell bare-metal machines under the same vendor name.
        None if firmware.as_deref().is_some_and(|name| name.contains(".metal")) => return Some("none".to_owned()),
        None => root
            .read("sys/hypervisor/type")
            .or_else(|| by_name.map(str::to_owned))
            .or_else(|| device_tree_hypervisor(root)),
    };
    match (kind, flagged, firmware) {
        (Some(kind), _, _) if kind == "none" => Some(kind),
        (Some(kind), _, Some(firmware)) => Some(format!("{kind} ({firmware})")),
        (Some(kind), _, None) => Some(kind),
        (None, Some(true), Some(firmware)) => Some(format!("unidentified ({firmware})")),
        (None, Some(true), None) => Some("unidentified".to_owned()),
        (None, _, _) => None,
    }
}

/// True if KVM offers this guest a clock of stolen time, according to the instruction CPUID (Linux,
/// Documentation/virt/kvm/x86/cpuid.rst); `None` for a recorded machine, and on other processors.
#[cfg(target_arch = "x86_64")]
pub(crate) fn kvm_reports_steal(root: &Root) -> Option<bool> {
    use std::arch::x86_64::__cpuid;
    const STEAL_TIME: u32 = 1 << 5;
    if !root.is_system() {
        return None;
    }
    // The base differs if the hypervisor also offers the interface of another one.
    let is_kvm = |base: &u32| {
        let answer = __cpuid(*base);
        [answer.ebx, answer.ecx, answer.edx].map(u32::to_le_bytes).concat() == b"KVMKVMKVM\0\0\0"
    };
    let base = (0x4000_0000..0x4001_0000).step_by(0x100).find(is_kvm)?;
    Some(__cpuid(base + 1).eax & STEAL_TIME != 0)
}

/// `None`: only x86 processors have the instruction.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn kvm_reports_steal(_root: &Root) -> Option<bool> {
    None
}

/// The kernel argument with the kind of emulation, set by `punctual lab`.
const EMULATION_ARGUMENT: &str = "punctual.emulation";

/// The kind of emulation, from the kernel's command line: set only in the guests of `punctual lab`.
pub(crate) fn emulation(cmdline: &str) -> Option<Emulation> {
    let mut arguments = cmdline.split_whitespace().filter_map(|word| word.split_once('='));
    match arguments.find(|(name, _)| *name == EMULATION_ARGUMENT)?.1 {
        "virtual-time" => Some(Emulation::VirtualTime),
        "software" => Some(Emulation::Software),
        _ => None,
    }
}

/// Vendor and product name from the firmware.
pub(crate) fn firmware(root: &Root) -> Option<String> {
    let name = |file: &str| root.read(&format!("sys/class/dmi/id/{file}")).filter(|name| !name.is_empty());
    match (name("sys_vendor"), name("product_name")) {
        (Some(vendor), Some(product)) => Some(format!("{vendor} {product}")),
        (vendor, product) => vendor.or(product),
    }
}

/// True if x86's `hypervisor` flag is set; `None` on other architectures.
fn cpu_flag(root: &Root) -> Option<bool> {
    let cpuinfo = cpus::cpuinfo(root).ok()?;
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The hypervisor that a paravirtual clock names.
fn by_clock(root: &Root) -> Option<String> {
    let clocks = root.read("sys/devices/system/clocksource/clocksource0/available_clocksource")?;
    let kind = clocks.split_whitespace().find_map(|clock| match clock {
        "kvm-clock" => Some("kvm"),
        "xen" => Some("xen"),
        _ if clock.starts_with("hyperv") => Some("hyperv"),
        _ => None,
    });
    kind.map(str::to_owned)
}

/// The hypervisor according to the device tree. A guest has a hypervisor node, QEMU's machine or firmware interface, or
/// calls its firmware through the hypervisor (`hvc`). Any other device tree belongs to a board.
fn device_tree_hypervisor(root: &Root) -> Option<String> {
    const TREE: &str = "proc/device-tree";
    let kind = if let Some(compatible) = root.read(&format!("{TREE}/hypervisor/compatible")) {
        match compatible.as_str() {
            name if name.contains("xen") => "xen",
            name if name.contains("kvm") => "kvm",
            _ => "unidentified",
        }
    } else if root.read(&format!("{TREE}/compatible"))?.contains("linux,dummy-virt")
        || root.list(TREE).iter().any(|node| node.starts_with("fw-cfg"))
    {
        "qemu"
    } else if psci_method(root).as_deref() == Ok("hvc") {
        "unidentified"
    } else {
        "none"
    };
    Some(kind.to_owned())
}

/// The instruction by which the kernel of an ARM machine calls its firmware: `hvc` or `smc`.
pub(crate) fn psci_method(root: &Root) -> Result<String, Unreadable> {
    root.text_if(PSCI_METHOD, |method| ["hvc", "smc"].contains(&method))
}

/// The file of [`psci_method`].
pub(crate) const PSCI_METHOD: &str = "proc/device-tree/psci/method";

/// The kind of container that this process runs in, `none` outside; `None` if the signs cannot be read.
pub(crate) fn container(root: &Root) -> Option<String> {
    let namespaces = ["pid", "uts", "ipc", "cgroup"].map(|kind| initial_namespace(root, kind));
    // Marker files of a container image also exist on machines that booted such an image, so they do not decide. A container
    // can have all these namespaces of its host (`docker run --privileged --pid host ...`), but not its files.
    if namespaces[0] == Some(true) && !namespaces.contains(&Some(false)) {
        return Some(manager_of_files(root).unwrap_or("none").to_owned());
    }
    container_mark(root).or_else(|| match namespaces[0] {
        Some(true) => Some("none".to_owned()),
        Some(false) => Some("unidentified".to_owned()),
        None => None,
    })
}

/// The container manager that has mounted the root folder of this process, or files in it that name the host; `None` if
/// none has. An overlay alone proves nothing: live systems and read-only systems have one, too.
fn manager_of_files(root: &Root) -> Option<&'static str> {
    let mounts = cgroup::mounts(root).ok()?;
    let own: Vec<usize> = mounts.lines().filter_map(folder_of_manager).collect();
    // The first one of the table: below a pod, there are folders of other managers, too.
    own.into_iter().min().map(|index| FOLDERS_OF_MANAGERS[index].1)
}

/// Folders of container managers, with the manager.
const FOLDERS_OF_MANAGERS: [(&str, &str); 7] = [
    ("/kubelet/pods/", "kubernetes"),
    ("/docker/containers/", "docker"),
    ("/docker/overlay2/", "docker"),
    ("/docker/rootfs/", "docker"),
    ("/containers/storage/", "podman"),
    ("/io.containerd.", "containerd"),
    // Docker with another `data-root`.
    ("/containers/ID/", "docker"),
];

/// Number of digits in the id of a container.
const ID_DIGITS: usize = 64;

/// The line with `ID` in place of the ids of containers in its paths.
fn without_ids(line: &str) -> String {
    let is_id = |part: &str| part.len() == ID_DIGITS && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    line.split('/').map(|part| if is_id(part) { "ID" } else { part }).collect::<Vec<_>>().join("/")
}

/// The index of the manager's folder in the table, if this line of `mountinfo` mounts a part of it.
fn folder_of_manager(line: &str) -> Option<usize> {
    const POINTS: [&str; 4] = ["/", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf"];
    let is_own = line.split(' ').nth(4).is_some_and(|point| POINTS.contains(&point));
    let line = without_ids(line);
    FOLDERS_OF_MANAGERS.iter().position(|(folder, _)| is_own && line.contains(folder))
}

/// The line of `mountinfo` that identifies a container manager, without paths and ids.
pub(crate) fn line_of_manager(line: &str) -> Option<String> {
    folder_of_manager(line).map(|index| format!("0 0 0:0 {} / rw - removed removed rw", FOLDERS_OF_MANAGERS[index].0))
}

/// True if this process is in the namespace that the kernel created at boot. Those have fixed numbers (`nsfs.h`).
pub(crate) fn initial_namespace(root: &Root, kind: &str) -> Option<bool> {
    let number = match kind {
        "cgroup" => 4_026_531_835_u64,
        "pid" => 4_026_531_836,
        "user" => 4_026_531_837,
        "uts" => 4_026_531_838,
        "ipc" => 4_026_531_839,
        _ => return None,
    };
    Some(root.link(&format!("proc/self/ns/{kind}"))? == format!("{kind}:[{number}]"))
}

/// True if this process is known to run in a container.
pub(crate) fn is_container(root: &Root) -> bool {
    container(root).is_some_and(|kind| kind != "none")
}

/// The kind of container according to the marks of container managers.
fn container_mark(root: &Root) -> Option<String> {
    // A pod also has the marks of the program that runs its containers, such as Docker or Podman.
    if let Some(kind) = manager_of_files(root).filter(|kind| *kind == "kubernetes") {
        return Some(kind.to_owned());
    }
    if let Some(kind) = root.read("run/systemd/container").filter(|kind| !kind.is_empty()) {
        return Some(kind);
    }
    if root.exists("run/.containerenv") {
        return Some("podman".to_owned());
    }
    if root.exists(".dockerenv") {
        return Some("docker".to_owned());
    }
    let environment = root.read("proc/1/environ").unwrap_or_default();
    if let Some(kind) = environment.split('\0').find_map(|variable| variable.strip_prefix("container=")) {
        return Some(kind.to_owned());
    }
    let groups = root.read("proc/1/cgroup").unwrap_or_default();
    let kind = [("kubepods", "kubernetes"), ("docker", "docker"), ("libpod", "podman"), ("lxc", "lxc")]
        .iter()
        .find(|(sign, _)| groups.contains(sign))?;
    Some(kind.1.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for (path, text) in files {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        }
        (folder, root)
    }

    fn hypervisor_of(files: &[(&str, &str)]) -> Option<String> {
        hypervisor(&machine(files).1)
    }

    #[test]
    fn detects_x86_guests_by_the_cpu_flag() {
        const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        let guest = ("proc/cpuinfo", "flags\t\t: fpu hypervisor lahf_lm\n");
        assert_eq!(hypervisor_of(&[guest]).as_deref(), Some("unidentified"));
        assert_eq!(hypervisor_of(&[guest, (CLOCKS, "tsc kvm-clock")]).as_deref(), Some("kvm"));
        assert_eq!(hypervisor_of(&[guest, ("sys/hypervisor/type", "xen")]).as_deref(), Some("xen"));
        let vendor = ("sys/class/dmi/id/sys_vendor", "VMware, Inc.");
        assert_eq!(hypervisor_of(&[guest, vendor]).as_deref(), Some("vmware (VMware, Inc.)"));
        assert_eq!(hypervisor_of(&[("proc/cpuinfo", "flags\t\t: fpu lahf_lm\n")]).as_deref(), Some("none"));
        assert_eq!(hypervisor_of(&[]), None);
    }

    /// Only a guest of KVM has the state of CPU hotplug, and the interface that names the feature.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_guest_of_kvm_knows_if_stolen_time_is_reported() {
        let states = Root::system().read("sys/devices/system/cpu/hotplug/states").unwrap_or_default();
        if states.contains("x86/kvm:online") {
            assert!(kvm_reports_steal(&Root::system()).is_some());
        }
        assert_eq!(kvm_reports_steal(&machine(&[]).1), None, "a recorded machine");
    }

    #[test]
    fn detects_arm_guests_by_device_tree_and_firmware() {
        const TREE: &str = "proc/device-tree/compatible";
        let method = |method| [(TREE, "acme,board"), ("proc/device-tree/psci/method", method)];
        assert_eq!(hypervisor_of(&[(TREE, "linux,dummy-virt\0")]).as_deref(), Some("qemu"));
        assert_eq!(hypervisor_of(&method("hvc\0")).as_deref(), Some("unidentified"));
        assert_eq!(hypervisor_of(&method("smc\0")).as_deref(), Some("none"));
        let product = |name| [("sys/class/dmi/id/sys_vendor", "Amazon EC2"), ("sys/class/dmi/id/product_name", name)];
        assert_eq!(hypervisor_of(&product("c6g.metal")).as_deref(), Some("none"));
        assert_eq!(hypervisor_of(&product("c6g.large")).as_deref(), Some("kvm (Amazon EC2 c6g.large)"));
        assert_eq!(hypervisor_of(&[("sys/class/dmi/id/sys_vendor", "Acme")]), None);
    }

    #[test]
    fn detects_containers_by_namespaces_and_marks() {
        let (_folder, root) = machine(&[("proc/self/ns/.keep", ""), (".dockerenv", "")]);
        assert_eq!(container(&root).as_deref(), Some("docker"));
        symlink("pid:[4026531836]", root.path("proc/self/ns/pid")).unwrap();
        assert_eq!(container(&root).as_deref(), Some("none"), "the marker file of an image on a booted machine");
        symlink("cgroup:[4026532201]", root.path("proc/self/ns/cgroup")).unwrap();
        assert_eq!(container(&root).as_deref(), Some("docker"), "a container in the host's PID namespace");

        let (_folder, root) = machine(&[("proc/self/ns/.keep", "")]);
        assert_eq!(container(&root), None);
        symlink("pid:[4026532300]", root.path("proc/self/ns/pid")).unwrap();
        assert_eq!(container(&root).as_deref(), Some("unidentified"));
        fs::create_dir(root.path("proc/1")).unwrap();
        fs::write(root.path("proc/1/environ"), "PATH=/bin\0container=lxc\0").unwrap();
        assert_eq!(container(&root).as_deref(), Some("lxc"));
        // CRI-O leaves the mark of Podman.
        fs::create_dir(root.path("run")).unwrap();
        fs::write(root.path("run/.containerenv"), "").unwrap();
        assert_eq!(container(&root).as_deref(), Some("podman"));
        let hosts = "480 471 259:2 /var/lib/kubelet/pods/7/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n";
        fs::create_dir(root.path("proc/self")).ok();
        fs::write(root.path("proc/self/mountinfo"), hosts).unwrap();
        assert_eq!(container(&root).as_deref(), Some("kubernetes"));
    }

    /// Such a container shares all namespaces with its host, except the one of mounts, which has no fixed number.
    #[test]
    fn a_container_in_the_namespaces_of_the_host_is_known_by_its_mounts() {
        let (_folder, root) = machine(&[("proc/self/ns/.keep", ""), (".dockerenv", "")]);
        for (kind, number) in [("pid", 836), ("uts", 838), ("ipc", 839), ("cgroup", 835)] {
            symlink(format!("{kind}:[4026531{number}]"), root.path(&format!("proc/self/ns/{kind}"))).unwrap();
        }
        let with = |mounts: &str| {
            fs::write(root.path("proc/self/mountinfo"), mounts).unwrap();
            container(&root).unwrap()
        };
        let ext4 = "25 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n";
        let overlay = |folder: &str| {
            format!("471 399 0:53 / / rw,relatime - overlay overlay rw,lowerdir={folder}/l,upperdir={folder}/diff\n")
        };
        let file = |folder: &str| format!("480 471 259:2 {folder}/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n");
        let docker = "/var/lib/docker/containers/4f2a";
        for (mounts, expected) in [
            (ext4.to_owned(), "none"),
            // The containers of a host are among its mounts.
            (ext4.to_owned() + &overlay("/var/lib/docker/overlay2/4f2a").replace(" / / ", " / /var/merged "), "none"),
            (overlay("/media/root-ro"), "none"),
            (overlay("/var/lib/docker/overlay2/4f2a"), "docker"),
            (ext4.to_owned() + &file(docker), "docker"),
            (ext4.to_owned() + &file(&format!("/srv/images/containers/{}", "4f2a".repeat(16))), "docker"),
            (ext4.to_owned() + &file("/srv/images/containers/mine"), "none"),
            (overlay("/home/me/.local/share/containers/storage/overlay/4f2a"), "podman"),
            (
                overlay("/run/io.containerd.snapshotter.v1.overlayfs/snapshots/9") + &file("/kubelet/pods/7"),
                "kubernetes",
            ),
        ] {
            assert_eq!(with(&mounts), expected, "{mounts}");
        }
    }
}
