//! Power saving of the device behind an interface.

use serde::Serialize;

use super::Folder;
use crate::findings::chosen;

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
    let sleep = |name: &str| {
        let is_on: u8 = folder.root.number(&folder.file(&format!("{device}/link/{name}_aspm"))?)?;
        Some((name.to_owned(), is_on != 0))
    };
    let sleeps: Vec<(String, bool)> = ["l0s", "l1"].into_iter().filter_map(sleep).collect();
    let in_force = sleeps.iter().filter(|(_, on)| *on).map(|(name, _)| name.clone()).collect();
    let is_control = |text: &str| ["on", "auto"].contains(&text);
    let runtime = folder.file(&format!("{device}/power/control"));
    Power {
        device: format!("sys/class/net/{interface}/{device}"),
        runtime: runtime.and_then(|path| folder.root.text_if(&path, is_control).ok()),
        is_pci,
        link_sleeps: (!sleeps.is_empty()).then_some(in_force),
        link_policy: folder.root.parsed("sys/module/pcie_aspm/parameters/policy", chosen).ok(),
    }
}
