//! Interrupts of queues of disks and their controllers, whose CPUs the driver manages (`PCI_IRQ_AFFINITY`), by the names of
//! their handlers.

use crate::{CpuList, Root};

/// A release of the kernel.
type Release = (u32, u32);

/// The names of the managed interrupts of a driver.
struct Queues {
    /// The name of the handler: `#` is a hexadecimal number.
    name: &'static str,
    /// The lowest last number of a managed one: those below, for administration and events, are not managed (`pre_vectors`).
    first: u32,
    /// The first release whose driver is known to manage them.
    since: Release,
    /// A parameter of the module, with the value that turns this off.
    unless: Option<(&'static str, &'static str)>,
}

const fn queues(name: &'static str, first: u32, since: Release) -> Queues {
    Queues { name, first, since, unless: None }
}

/// Sources: `pci_alloc_irq_vectors_affinity` and `request_irq` in nvme/host/pci.c, virtio/virtio_pci_common.c and the files of
/// drivers/scsi, in Linux 6.1 and 6.12. That the first five controllers already did so in 5.4 is not from its sources.
///
/// Not here: aacraid, which stopped (`scsi: aacraid: Stop using PCI_IRQ_AFFINITY`, 2025), and drivers whose names do not say
/// which vectors are managed (fnic).
const MANAGED: [Queues; 16] = [
    queues("nvme#q#", 1, (4, 11)),
    queues("virtio#-req.#", 0, (4, 11)),
    queues("virtio#-request", 0, (4, 11)),
    Queues {
        unless: Some(("megaraid_sas/parameters/smp_affinity_enable", "0")),
        ..queues("megasas#-msix#", 1, (5, 4))
    },
    Queues { unless: Some(("mpt3sas/parameters/smp_affinity_enable", "0")), ..queues("mpt3sas#-msix#", 0, (5, 4)) },
    Queues { unless: Some(("mpt3sas/parameters/smp_affinity_enable", "0")), ..queues("mpt2sas#-msix#", 0, (5, 4)) },
    Queues { unless: Some(("smartpqi/parameters/disable_managed_interrupts", "1")), ..queues("smartpqi", 0, (5, 4)) },
    queues("hpsa#-msix#", 0, (5, 4)),
    queues("qla2xxx#_qpair#", 0, (5, 4)),
    queues("mpi3mr#-msix#", 1, (6, 1)),
    queues("lpfc:#", 0, (6, 1)),
    queues("hisi_sas_v2_hw cq", 0, (6, 1)),
    queues("hisi_sas_v3_hw cq", 0, (6, 1)),
    queues("pm80xx#-#", 1, (6, 1)),
    queues("csio-#:#:#-scsi#", 0, (6, 1)),
    queues("beiscsi_#_#", 0, (6, 1)),
];

/// The numbers of a name with this form; `None` if it has another form.
fn numbers(form: &str, name: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    let mut rest = name;
    let mut parts = form.split('#');
    rest = rest.strip_prefix(parts.next()?)?;
    for part in parts {
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        numbers.push(u32::from_str_radix(&rest[..end], 16).ok()?);
        rest = rest[end..].strip_prefix(part)?;
    }
    rest.is_empty().then_some(numbers)
}

/// The kind of queue that an interrupt belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queue {
    /// Its driver manages the CPUs.
    Managed,
    /// Its driver chooses the CPUs, and the kernel moves it to no others (`IRQ_NO_BALANCING`).
    Pinned,
    /// Root can move it, or it is no queue.
    No,
}

/// The kind of an interrupt by its handler, in a kernel of this release; `None` for a release that is not known. Queues that
/// share an interrupt have several handlers, and are not managed.
pub(super) fn kind(root: &Root, number: u32, handler: &str, release: Option<Release>) -> Queue {
    let is_named = |queues: &&Queues| {
        let numbers = numbers(queues.name, handler);
        numbers.is_some_and(|numbers| numbers.last().copied().unwrap_or(queues.first) >= queues.first)
    };
    let Some(queues) = MANAGED.iter().find(is_named) else { return Queue::No };
    let is_off = queues.unless.is_some_and(|(parameter, off)| {
        root.read(&format!("sys/module/{parameter}")).is_some_and(|value| value == off)
    });
    // The first ones can be for many requests from any CPU: then their driver gives them a hint, which managed ones never get.
    // (`irq_set_affinity_and_hint` in megaraid_sas_base.c and mpt3sas_base.c).
    let has_hint = || {
        let hint = root.read(&format!("proc/irq/{number}/affinity_hint"));
        hint.and_then(|mask| CpuList::from_mask(&mask)).is_some_and(|cpus| !cpus.is_empty())
    };
    if is_off || release.is_some_and(|release| release < queues.since) || has_hint() {
        return Queue::No;
    }
    if queues.name.starts_with("lpfc") && is_of_intel_or_amd(root) { Queue::Pinned } else { Queue::Managed }
}

/// True for a processor of Intel or AMD: there, lpfc pins its interrupts (`lpfc_assign_default_irq_chann` in lpfc_attr.c,
/// `lpfc_irq_set_aff` in lpfc_init.c).
fn is_of_intel_or_amd(root: &Root) -> bool {
    let cpuinfo = root.read("proc/cpuinfo").unwrap_or_default();
    ["GenuineIntel", "AuthenticAMD"].iter().any(|vendor| cpuinfo.contains(vendor))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn managed_interrupts_are_known_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let kind = |name: &str, release| kind(&root, 40, name, Some(release));
        for name in [
            "nvme0q1",
            "nvme10q128",
            "virtio2-req.0",
            "virtio0-request",
            "megasas0-msix1",
            "megasas12-msix127",
            "mpt3sas0-msix0",
            "mpt2sas1-msix7",
            "smartpqi",
            "hpsa0-msix0",
            "qla2xxx7_qpair3",
            "mpi3mr0-msix1",
            "lpfc:12",
            "hisi_sas_v3_hw cq",
            "pm80xx0-1",
            "csio-00:1f:0-scsi3",
            "beiscsi_05_1a",
        ] {
            assert_eq!(kind(name, (6, 1)), Queue::Managed, "{name}");
        }
        for name in [
            "nvme0q0",
            "nvme0q0, nvme0q1",
            "nvmeq1",
            "virtio0-input.0",
            "virtio0-config",
            "virtio0-req.",
            "megasas0",
            "megasas0-msix0",
            "mpt3sas0",
            "smartpqi1",
            "hpsa0-msix",
            "qla2xxx7_default",
            "qla2xxx7_rsp_q",
            "mpi3mr0-msix0",
            "lpfc",
            "hisi_sas_v3_hw phy",
            "pm80xx0-0",
            "csio-00:1f:0-nondata",
            "beiscsi_mcc_05",
            "aacraid0",
            "eth0",
            "",
        ] {
            assert_eq!(kind(name, (6, 1)), Queue::No, "{name}");
        }
        assert_eq!([kind("hpsa0-msix0", (5, 3)), kind("nvme0q1", (4, 10))], [Queue::No; 2]);
    }

    #[test]
    fn hints_and_parameters_say_which_are_not_managed() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let put = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        let of = |number, name: &str| kind(&root, number, name, Some((6, 1)));
        put("proc/irq/40/affinity_hint", "0000,00000000\n");
        put("proc/irq/41/affinity_hint", "0000,0000ffff\n");
        assert_eq!([of(40, "mpt3sas0-msix0"), of(41, "mpt3sas0-msix1")], [Queue::Managed, Queue::No]);
        put("sys/module/mpt3sas/parameters/smp_affinity_enable", "0\n");
        put("sys/module/smartpqi/parameters/disable_managed_interrupts", "0\n");
        assert_eq!([of(40, "mpt3sas0-msix0"), of(40, "smartpqi")], [Queue::No, Queue::Managed]);
        put("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n");
        assert_eq!(of(40, "lpfc:0"), Queue::Pinned);
    }
}
