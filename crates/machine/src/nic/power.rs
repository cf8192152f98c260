//! Power saving of the device behind an interface.

use serde::Serialize;

use super::Folder;

/// Power saving of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Power {
    /// Path of the device's folder, without its leading slash.
    pub device: String,
    /// `on`: never suspended; `auto`: suspended by the kernel.
    pub runtime: Option<String>,
    /// True if the device is on a PCI bus.
    pub is_pci: Option<bool>,
    /// Enabled sleep states of the PCIe link: `l0s`, `l1`.
    pub link_sleeps: Option<Vec<String>>,
    /// The kernel's policy for these states, e.g. `default`.
    pub link_policy: Option<String>,
}

pub(super) fn power(folder: &Folder, interface: &str) -> Power {
    let bus_of = |device: &str| {
        let target = folder.root.link(&folder.file(&format!("{device}/subsystem"))?)?;
        target.rsplit('/').next().map(str::to_owned)
    };
    // The PCI device of a virtio NIC is its parent.
    let device = if bus_of("device").as_deref() == Some("virtio") { "device/.." } else { "device" };
    let is_pci = bus_of(device).map(|bus| bus == "pci");
    let sleep = |name: &str| folder.read(&format!("{device}/link/{name}_aspm")).map(|on| (name.to_owned(), on == "1"));
    let sleeps: Vec<(String, bool)> = ["l0s", "l1"].into_iter().filter_map(sleep).collect();
    let in_force = sleeps.iter().filter(|(_, on)| *on).map(|(name, _)| name.clone()).collect();
    let policy = folder.root.read("sys/module/pcie_aspm/parameters/policy");
    Power {
        device: format!("sys/class/net/{interface}/{device}"),
        runtime: folder.read(&format!("{device}/power/control")),
        is_pci,
        link_sleeps: (!sleeps.is_empty()).then_some(in_force),
        link_policy: policy.as_deref().and_then(chosen),
    }
}

/// The word in brackets, which is the selected one.
fn chosen(words: &str) -> Option<String> {
    Some(words.split_once('[')?.1.split_once(']')?.0.to_owned())
}
