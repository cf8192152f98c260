//! Virtualization: the hypervisor and the container that this process runs in.

use record::Emulation;

use crate::{Root, Unreadable, cgroup, cpus, root::is_printable};

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

/// Hypervisors of [`VENDORS`] whose names only guests have. Bare-metal machines of cloud providers have the others, too.
const ONLY_GUESTS: [&str; 5] = ["qemu", "vmware", "virtualbox", "parallels", "bhyve"];

/// The hypervisor whose guest this machine is, and what says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hypervisor {
    /// Its name, `none` on bare metal; `None` if the signs cannot be read.
    pub(crate) name: Option<String>,
    /// The file that decides.
    pub(crate) path: &'static str,
    /// The line of it that decides; `None` for the whole file.
    pub(crate) line: Option<&'static str>,
}

impl Hypervisor {
    fn of_file(name: impl Into<String>, path: &'static str) -> Self {
        Self { name: Some(name.into()), path, line: None }
    }

    fn of_line(name: impl Into<String>, path: &'static str, line: &'static str) -> Self {
        Self { name: Some(name.into()), path, line: Some(line) }
    }
}

const XEN: &str = "sys/hypervisor/type";
const CPUINFO: &str = "proc/cpuinfo";
const VENDOR: &str = "sys/class/dmi/id/sys_vendor";
const PRODUCT: &str = "sys/class/dmi/id/product_name";

/// The hypervisor of this machine.
///
/// x86 guests have a CPU flag. Those of other architectures have none, so the firmware's names, the device tree and the
/// files of the architecture decide.
pub(crate) fn hypervisor(root: &Root) -> Hypervisor {
    let firmware = firmware(root);
    let named = by_name(root, |_| true);
    let mut found = match cpu_flag(root) {
        Some(true) => {
            // QEMU may run its CPUs in software or with KVM, so its name does not identify the hypervisor.
            let kind = by_type(root)
                .and_then(|found| found.name)
                .or_else(|| named.filter(|&(kind, _)| kind != "qemu").map(|(kind, _)| kind.to_owned()))
                .or_else(|| by_kernel(root))
                .or_else(|| named.map(|(kind, _)| kind.to_owned()));
            let kind = kind.unwrap_or_else(|| "unidentified".to_owned());
            Hypervisor::of_line(kind, CPUINFO, "flags: ... hypervisor ...")
        }
        // Xen hides the flag from its paravirtualized guests, and settings of other hypervisors hide it, too.
        Some(false) => by_type(root)
            .or_else(|| by_name(root, |kind| ONLY_GUESTS.contains(&kind)).map(of_name))
            .unwrap_or_else(|| Hypervisor::of_line("none", CPUINFO, "flags without hypervisor")),
        None if firmware.as_deref().is_some_and(|name| name.contains(".metal")) => {
            return Hypervisor::of_file("none", PRODUCT);
        }
        None => by_type(root)
            .or_else(|| named.map(of_name))
            .or_else(|| by_mainframe(root))
            .or_else(|| by_device_tree(root))
            .unwrap_or(Hypervisor { name: None, path: VENDOR, line: None }),
    };
    if let (Some(name), Some(firmware)) = (found.name.as_mut().filter(|name| *name != "none"), firmware) {
        *name += &format!(" ({firmware})");
    }
    found
}

fn of_name((kind, path): (&'static str, &'static str)) -> Hypervisor {
    Hypervisor::of_file(kind, path)
}

/// The hypervisor of such a kind that the firmware names, and the file with the name.
fn by_name(root: &Root, is_kind: impl Fn(&'static str) -> bool) -> Option<(&'static str, &'static str)> {
    let names = [VENDOR, PRODUCT].map(|path| (path, root.text_if(path, is_printable).unwrap_or_default()));
    let file = |sign: &str| names.iter().find(|(_, name)| name.contains(sign)).map(|(path, _)| *path);
    VENDORS.iter().filter(|(_, kind)| is_kind(kind)).find_map(|(sign, kind)| Some((*kind, file(sign)?)))
}

/// The hypervisor that the kernel names, which is Xen, also for the machine that manages the guests (`dom0`).
fn by_type(root: &Root) -> Option<Hypervisor> {
    let kind = root.text_if(XEN, |kind| kind == "xen").ok()?;
    Some(Hypervisor::of_file(kind, XEN))
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

/// The hypervisor that a paravirtual clock or the name of the kernel identifies.
fn by_kernel(root: &Root) -> Option<String> {
    let clocks = root.read("sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    let kind = clocks.split_whitespace().find_map(|clock| match clock {
        "kvm-clock" => Some("kvm"),
        "xen" => Some("xen"),
        _ if clock.starts_with("hyperv") => Some("hyperv"),
        _ => None,
    });
    // The kernel of the Windows Subsystem for Linux.
    let is_wsl = || root.read("proc/sys/kernel/osrelease").is_some_and(|release| is_of_wsl(&release));
    kind.or_else(|| is_wsl().then_some("hyperv")).map(str::to_owned)
}

/// True for the release of a kernel of the Windows Subsystem for Linux, version 2: `6.6.87.2-microsoft-standard-WSL2`.
pub(crate) fn is_of_wsl(release: &str) -> bool {
    release.contains("microsoft-standard")
}

/// The hypervisor of an IBM Z machine, which always runs in a partition (arch/s390/kernel/sysinfo.c).
fn by_mainframe(root: &Root) -> Option<Hypervisor> {
    const SYSINFO: &str = "proc/sysinfo";
    let text = root.read(SYSINFO)?;
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_prefix(':'));
    match value("VM00 Control Program") {
        Some(program) if program.contains("z/VM") => {
            Some(Hypervisor::of_line("zvm", SYSINFO, "VM00 Control Program: z/VM"))
        }
        Some(program) if program.contains("KVM") => {
            Some(Hypervisor::of_line("kvm", SYSINFO, "VM00 Control Program: KVM"))
        }
        Some(_) => Some(Hypervisor::of_line("unidentified", SYSINFO, "VM00 Control Program")),
        None => value("LPAR Number").map(|_| Hypervisor::of_line("pr/sm", SYSINFO, "LPAR Number")),
    }
}

/// The hypervisor according to the device tree. A guest has a hypervisor node, devices or names that boards lack, or calls
/// its firmware through the hypervisor (`hvc`). Any other device tree belongs to a board.
fn by_device_tree(root: &Root) -> Option<Hypervisor> {
    const TREE: &str = "proc/device-tree";
    const NODE: &str = "proc/device-tree/hypervisor/compatible";
    const COMPATIBLE: &str = "proc/device-tree/compatible";
    const MODEL: &str = "proc/device-tree/model";
    const PARTITION: &str = "proc/device-tree/ibm,partition-name";
    /// Machines of QEMU and of kvmtool, and cells of Jailhouse.
    const MACHINES: [(&str, &str); 4] = [
        ("linux,dummy-virt", "qemu"),
        ("riscv-virtio", "qemu"),
        ("qemu,pseries", "qemu"),
        ("jailhouse-cell", "jailhouse"),
    ];
    if let Some(compatible) = root.read(NODE) {
        let kinds = ["xen", "kvm", "vmware"];
        return Some(Hypervisor::of_file(
            kinds.into_iter().find(|kind| compatible.contains(kind)).unwrap_or("unidentified"),
            NODE,
        ));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '\0' || ",-_.+".contains(c);
    let compatible = root.text_if(COMPATIBLE, |names| !names.is_empty() && names.chars().all(is_name)).ok();
    let names = compatible.as_deref().unwrap_or_default();
    if let Some((_, kind)) = MACHINES.iter().find(|(name, _)| names.contains(name)) {
        return Some(Hypervisor::of_file(*kind, COMPATIBLE));
    }
    if root.text_if(MODEL, is_printable).is_ok_and(|model| model.contains("qemu")) {
        return Some(Hypervisor::of_file("qemu", MODEL));
    }
    let nodes = root.list(TREE);
    let has_node = |name: &str| nodes.iter().any(|node| node.starts_with(name));
    if has_node("fw-cfg") {
        return Some(Hypervisor::of_line("qemu", TREE, "fw-cfg"));
    }
    if has_node("virtio_mmio@") {
        return Some(Hypervisor::of_line("unidentified", TREE, "virtio_mmio"));
    }
    // Linux on this platform always runs in a partition or a guest; on the machine itself it is called PowerNV.
    if root.exists(PARTITION) {
        return Some(Hypervisor::of_file("powervm", PARTITION));
    }
    if cpus::cpuinfo(root).is_ok_and(|text| text.lines().any(is_pseries)) {
        return Some(Hypervisor::of_line("unidentified", CPUINFO, "platform: pSeries"));
    }
    match psci_method(root) {
        Ok(method) if method == "hvc" => Some(Hypervisor::of_file("unidentified", PSCI_METHOD)),
        Ok(_) => Some(Hypervisor::of_file("none", PSCI_METHOD)),
        Err(_) => compatible.map(|_| Hypervisor::of_file("none", NODE)),
    }
}

/// True for the line of the platform of virtual IBM Power machines: `platform : pSeries`.
fn is_pseries(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, value)| key.trim() == "platform" && value.trim() == "pSeries")
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

/// The setting of this kind of hypervisor that gives a virtual CPU a CPU of its own; `None` if it is not known to have one.
///
/// Sources: virsh(1); xl(1); VMware, Deploying Extremely Latency-Sensitive Applications in vSphere; Microsoft, Managing Hyper-V
/// hypervisor scheduler types; IBM, z/VM CP Commands, `DEDICATE`.
#[must_use]
pub fn pinning(kind: &str) -> Option<&'static str> {
    Some(match kind.split(' ').next()? {
        "xen" => "xl vcpu-pin, or virsh vcpupin",
        // Other programs than libvirt can have started the guest.
        "kvm" | "qemu" | "unidentified" => "e.g. virsh vcpupin",
        "vmware" => "latency sensitivity high, with all CPU and memory reserved",
        "hyperv" => "CPU groups of Hyper-V, or reserve its time: Set-VMProcessor -Reserve 100",
        "powervm" | "pr/sm" => "dedicated processors in the profile of the partition",
        "zvm" => "DEDICATE in the directory of z/VM",
        _ => return None,
    })
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
        hypervisor(&machine(files).1).name
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

    /// The file that is named as evidence is the one that decides.
    #[test]
    fn detects_guests_of_other_architectures_by_their_own_files() {
        const MODEL: &str = "proc/device-tree/model";
        const COMPATIBLE: &str = "proc/device-tree/compatible";
        const PARTITION: &str = "proc/device-tree/ibm,partition-name";
        let power = ("proc/cpuinfo", "processor\t: 0\nplatform\t: pSeries\nmachine\t\t: CHRP IBM,9009-42A\n");
        let mainframe = |line| [("proc/cpuinfo", "vendor_id       : IBM/S390\n"), ("proc/sysinfo", line)];
        let board = (COMPATIBLE, "acme,board\0");
        for (files, kind, path) in [
            (vec![(COMPATIBLE, "riscv-virtio\0"), (MODEL, "riscv-virtio,qemu\0")], "qemu", COMPATIBLE),
            (vec![board, (MODEL, "riscv-virtio,qemu\0")], "qemu", MODEL),
            (vec![(COMPATIBLE, "qemu,pseries\0"), power], "qemu", COMPATIBLE),
            (vec![(COMPATIBLE, "IBM,9009-42A\0"), (PARTITION, "lp1\0"), power], "powervm", PARTITION),
            (vec![(COMPATIBLE, "IBM,9009-42A\0"), power], "unidentified", CPUINFO),
            (vec![(COMPATIBLE, "jailhouse-cell\0"), (MODEL, "Jailhouse cell on ARM\0")], "jailhouse", COMPATIBLE),
            (vec![(COMPATIBLE, "linux,dummy-virt\0")], "qemu", COMPATIBLE),
            (
                vec![board, ("proc/device-tree/virtio_mmio@a000000/compatible", "virtio,mmio\0")],
                "unidentified",
                "proc/device-tree",
            ),
            (vec![board], "none", "proc/device-tree/hypervisor/compatible"),
            (vec![("sys/class/dmi/id/product_name", "Virtual Machine\n")], "hyperv (Virtual Machine)", PRODUCT),
            (mainframe("LPAR Number:          4\nVM00 Control Program: z/VM    7.2.0\n").into(), "zvm", "proc/sysinfo"),
            (mainframe("VM00 Control Program: KVM/Linux\n").into(), "kvm", "proc/sysinfo"),
            (mainframe("LPAR Number:          4\n").into(), "pr/sm", "proc/sysinfo"),
        ] {
            let found = hypervisor(&machine(&files).1);
            assert_eq!((found.name.as_deref(), found.path), (Some(kind), path), "{files:?}");
        }
    }

    #[test]
    fn a_guest_of_x86_can_lack_the_cpu_flag() {
        let bare = ("proc/cpuinfo", "flags\t\t: fpu lahf_lm\n");
        let vendor = |name| ("sys/class/dmi/id/sys_vendor", name);
        assert_eq!(hypervisor_of(&[bare, (XEN, "xen\n")]).as_deref(), Some("xen"));
        assert_eq!(hypervisor_of(&[bare, vendor("QEMU\n")]).as_deref(), Some("qemu (QEMU)"));
        // A cloud provider and a maker of remote consoles name real machines, too.
        for name in ["Amazon EC2", "KVM Switches Inc."] {
            assert_eq!(hypervisor_of(&[bare, vendor(name)]).as_deref(), Some("none"), "{name}");
        }
        let guest = ("proc/cpuinfo", "flags\t\t: fpu hypervisor\n");
        let wsl = ("proc/sys/kernel/osrelease", "6.6.87.2-microsoft-standard-WSL2\n");
        assert_eq!(hypervisor_of(&[guest, wsl]).as_deref(), Some("hyperv"));
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
