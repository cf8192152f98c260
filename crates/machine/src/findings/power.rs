//! Devices that sleep to save power, and must wake up before they work.

use record::Finding;

use super::{Check, CheckContext, Explain, chosen, evidence, files, not_applicable, ok, unknown, warn, without};
use crate::{Root, Unreadable, boot_arguments, kernel::version, root::is_printable};

const PCI: &str = "sys/bus/pci/devices";
const USB: &str = "sys/bus/usb/devices";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "power.pci",
        subject: "graphics, sound, network and USB controllers that are suspended while idle",
        source: "Linux, Documentation/power/pci.rst; 1035 us from i915: https://github.com/redhat-performance/tuned/issues/719",
        run: pci,
    },
    Check {
        id: "power.usb",
        subject: "USB devices that are suspended while idle",
        source: "Linux, Documentation/driver-api/usb/power-management.rst",
        run: usb,
    },
    Check {
        id: "power.platform_profile",
        subject: "a profile of the firmware that saves power",
        source: "Linux, Documentation/ABI/testing/sysfs-platform_profile",
        run: platform_profile,
    },
    Check {
        id: "power.aspm",
        subject: "PCI Express links that sleep between transfers (ASPM)",
        source: "Linux, Documentation/admin-guide/kernel-parameters.txt, pcie_aspm.policy",
        run: aspm,
    },
];

/// The kinds of PCI devices whose wake-up may delay a real-time thread, by their class code, and what they are called.
const PCI_KINDS: [(&str, &str); 4] =
    [("0x02", "network card"), ("0x03", "graphics"), ("0x04", "sound card"), ("0x0c03", "USB controller")];

/// A device with its file `power/control`: `auto` allows it to be suspended, `on` does not.
struct Device {
    path: String,
    name: String,
    control: String,
    /// The file with its delay.
    delay: String,
    /// The delay, ms; `None` without one, or if the device may not be suspended. With a negative one, the kernel never suspends
    /// the device (Documentation/power/runtime_pm.rst).
    delay_ms: Result<Option<i64>, Unreadable>,
}

impl Device {
    /// The device in this folder; `None` if it has no power saving. All USB devices have a delay; for a driver without one,
    /// the kernel refuses to read the file.
    fn read(root: &Root, folder: &str, name: String, is_usb: bool) -> Option<Self> {
        let path = format!("{folder}/power/control");
        let control = root.read(&path)?;
        let delay = format!("{folder}/power/autosuspend_delay_ms");
        let read = || match root.parsed(&delay, |text| text.parse::<i64>().ok()) {
            Err(Unreadable::Absent) => Ok(None),
            Err(Unreadable::Failed) if !is_usb => Ok(None),
            read => read.map(Some),
        };
        let delay_ms = if control == "auto" { read() } else { Ok(None) };
        Some(Self { path, name, control, delay, delay_ms })
    }

    fn is_kept_awake(&self) -> bool {
        matches!(self.delay_ms, Ok(Some(..0)))
    }

    fn evidence(&self) -> String {
        let control = evidence(&self.path, &self.control);
        match self.delay_ms {
            Ok(Some(delay_ms)) if delay_ms < 0 => {
                format!("{control}, {}", evidence(&self.delay, &delay_ms.to_string()))
            }
            _ => control,
        }
    }
}

/// Devices that may be suspended, or the finding that there is none.
fn suspending(id: &str, context: &CheckContext, devices: &[Device], what: &str, folder: &str) -> Finding {
    let Some(first) = devices.first() else {
        return match context.root.exists(folder) || context.root.exists("sys/bus") {
            true => not_applicable(id, format!("no {what}"), format!("/{folder}: none with power/control")),
            false => unknown(id, format!("{what} not readable"), context.evidence(folder)),
        };
    };
    if let Some(odd) = devices.iter().find(|device| !matches!(device.control.as_str(), "on" | "auto")) {
        return unknown(id, format!("power saving of {} not understood", odd.name), evidence(&odd.path, &odd.control));
    }
    if let Some((device, why)) = devices.iter().find_map(|device| Some((device, device.delay_ms.err()?))) {
        let title = format!("power saving of {} not readable", device.name);
        return unknown(id, title, without(&device.delay, why));
    }
    let sleeping: Vec<&Device> =
        devices.iter().filter(|device| device.control == "auto" && !device.is_kept_awake()).collect();
    let Some(device) = sleeping.first() else {
        return ok(id, format!("no {what} is suspended while idle"), first.evidence());
    };
    let names: Vec<&str> = sleeping.iter().map(|device| device.name.as_str()).collect();
    let title = match names.as_slice() {
        [one] => format!("suspended while idle: {one}"),
        [first, second] => format!("suspended while idle: {first}, {second}"),
        [first, .., _] => format!("suspended while idle: {first} and {} more", names.len() - 1),
        [] => String::new(),
    };
    warn(id, title, evidence(&device.path, &device.control))
        .because(
            "A suspended device takes up to milliseconds to resume, and its driver may keep a CPU busy meanwhile.",
            format!("echo on | sudo tee {}", files(sleeping.iter().map(|device| device.path.as_str()))),
        )
        .until_boot()
}

fn pci(context: &CheckContext) -> Finding {
    suspending("power.pci", context, &pci_controllers(context.root), "graphics, sound, network or USB controller", PCI)
}

fn pci_controllers(root: &Root) -> Vec<Device> {
    let device = |name: String| {
        let is_class = |class: &str| class.strip_prefix("0x").is_some_and(|hex| u32::from_str_radix(hex, 16).is_ok());
        let class = root.text_if(&format!("{PCI}/{name}/class"), is_class).ok()?;
        let (_, kind) = PCI_KINDS.iter().find(|(code, _)| class.starts_with(code))?;
        Device::read(root, &format!("{PCI}/{name}"), format!("{kind} {name}"), false)
    };
    root.list(PCI).into_iter().filter_map(device).collect()
}

/// The files `power/control` of the controllers that a negative delay does not keep awake.
pub(crate) fn pci_devices(root: &Root) -> Vec<String> {
    paths(pci_controllers(root))
}

fn paths(devices: Vec<Device>) -> Vec<String> {
    devices.into_iter().filter(|device| !device.is_kept_awake()).map(|device| device.path).collect()
}

fn usb(context: &CheckContext) -> Finding {
    suspending("power.usb", context, &peripherals(context.root), "USB device", USB)
}

fn peripherals(root: &Root) -> Vec<Device> {
    /// `bDeviceClass` of a hub.
    const HUB: &str = "09";
    let device = |name: String| {
        // Interfaces have a colon in their name, root hubs begin with `usb`.
        if name.contains(':') || name.starts_with("usb") {
            return None;
        }
        let read = |file: &str| root.read(&format!("{USB}/{name}/{file}"));
        let is_class = |text: &str| text.len() == 2 && u8::from_str_radix(text, 16).is_ok();
        let class = root.text_if(&format!("{USB}/{name}/bDeviceClass"), is_class).ok()?;
        if class == HUB {
            return None;
        }
        let product = read("product").filter(|product| !product.is_empty());
        Device::read(root, &format!("{USB}/{name}"), product.unwrap_or_else(|| name.clone()), true)
    };
    root.list(USB).into_iter().filter_map(device).collect()
}

/// The files `power/control` of the USB devices that a negative delay does not keep awake.
pub(crate) fn usb_devices(root: &Root) -> Vec<String> {
    paths(peripherals(root))
}

/// The profile of the firmware, which chooses between power, heat and speed.
pub(crate) const PLATFORM_PROFILE: &str = "sys/firmware/acpi/platform_profile";
pub(crate) const PLATFORM_PROFILES: &str = "sys/firmware/acpi/platform_profile_choices";
/// All profiles, the one that saves most first. `max-power` may exceed what the battery can give.
const PROFILES: [&str; 7] =
    ["low-power", "cool", "quiet", "balanced", "balanced-performance", "performance", "max-power"];
/// The profile that gives up no speed within the limits of the machine.
const FULL_SPEED: usize = 5;

/// The place of a profile in [`PROFILES`]; `None` for another one.
pub(crate) fn profile_rank(profile: &str) -> Option<usize> {
    PROFILES.iter().position(|known| *known == profile)
}

/// The fastest profile that this firmware offers, up to `performance`; `None` if it is not known.
pub(crate) fn fastest_profile(root: &Root) -> Option<&'static str> {
    let is_list = |text: &str| text.split_whitespace().any(|word| profile_rank(word).is_some());
    let offered = root.text_if(PLATFORM_PROFILES, is_list).ok()?;
    let ranks = offered.split_whitespace().filter_map(profile_rank).filter(|rank| *rank <= FULL_SPEED);
    ranks.max().map(|rank| PROFILES[rank])
}

fn platform_profile(context: &CheckContext) -> Finding {
    const ID: &str = "power.platform_profile";
    let profile = match context.root.word(PLATFORM_PROFILE) {
        Ok(profile) => profile,
        Err(Unreadable::Absent) if context.root.exists("sys/kernel") => {
            return not_applicable(ID, "the firmware has no profiles", without(PLATFORM_PROFILE, Unreadable::Absent));
        }
        Err(why) => return unknown(ID, "profile of the firmware not readable", without(PLATFORM_PROFILE, why)),
    };
    let read = evidence(PLATFORM_PROFILE, &profile);
    let Some(fastest) = fastest_profile(context.root) else {
        let read = format!("{read}, {}", context.evidence(PLATFORM_PROFILES));
        return unknown(ID, "profiles of the firmware not readable", read);
    };
    match profile_rank(&profile) {
        Some(rank) if Some(rank) >= profile_rank(fastest) => {
            let title = match rank >= FULL_SPEED {
                true => format!("the firmware saves neither power nor noise (profile {profile})"),
                false => format!("the firmware offers no faster profile than {profile}"),
            };
            ok(ID, title, read)
        }
        Some(_) => warn(ID, format!("the firmware saves power or noise (profile {profile})"), read)
            .because(
                "It then limits power and frequency below what the kernel asks for, and changes both with the heat.",
                match context.root.exists("usr/bin/powerprofilesctl") && fastest == "performance" {
                    // Its daemon would set the file back.
                    true => "powerprofilesctl set performance".to_owned(),
                    false => format!("echo {fastest} | sudo tee /{PLATFORM_PROFILE}"),
                },
            )
            .until_boot(),
        None => unknown(ID, format!("profile {profile} of the firmware not understood"), read),
    }
}

/// The policy of power saving of PCI Express links.
pub(crate) const ASPM_POLICY: &str = "sys/module/pcie_aspm/parameters/policy";

/// Power saving of each PCI Express link that the kernel may change: the file, and its value.
fn aspm_links(root: &Root) -> Vec<(String, Result<u8, Unreadable>)> {
    let devices = root.list(PCI).into_iter();
    let files = devices.flat_map(|device| ["l1_aspm", "l0s_aspm"].map(|file| format!("{PCI}/{device}/link/{file}")));
    let read = files.map(|path| (root.parsed(&path, |text| text.parse().ok()), path));
    read.filter(|(state, _)| *state != Err(Unreadable::Absent)).map(|(state, path)| (path, state)).collect()
}

/// The reason why the kernel leaves PCI Express links as the firmware set them, and refuses another policy; `None` if it
/// may accept one. Source: `aspm_disabled` in the kernel's drivers/pci/pcie/aspm.c, which also hides the files of links.
pub(crate) fn aspm_is_off(root: &Root) -> Option<&'static str> {
    /// The first kernel with files for links (commit 72ea91afbfb0).
    const HAS_LINKS: (u32, u32) = (5, 5);
    let cmdline = root.text_if("proc/cmdline", is_printable).unwrap_or_default();
    if boot_arguments::value(&cmdline, "pcie_aspm") == Some("off") {
        return Some("the kernel was booted with pcie_aspm=off");
    }
    let policy = root.read(ASPM_POLICY).and_then(|policy| chosen(&policy));
    let shows_links = root.parsed("proc/sys/kernel/osrelease", version).is_ok_and(|release| release >= HAS_LINKS);
    let is_off = policy.as_deref() == Some("default") && shows_links && aspm_links(root).is_empty();
    is_off.then_some("no link can be changed, because none can sleep or the firmware forbids it")
}

/// True if the firmware chose the power saving of the PCI Express links, and is known to have chosen none.
pub(crate) fn aspm_is_unused(root: &Root) -> bool {
    let policy = root.read(ASPM_POLICY).and_then(|policy| chosen(&policy));
    let links = aspm_links(root);
    policy.as_deref() == Some("default") && !links.is_empty() && links.iter().all(|(_, state)| *state == Ok(0))
}

fn aspm(context: &CheckContext) -> Finding {
    const ID: &str = "power.aspm";
    const WHY: &str = "A sleeping link takes some microseconds to wake, at each access to its device.";
    let policy = match context.root.try_read(ASPM_POLICY) {
        Ok(policy) => policy,
        Err(Unreadable::Absent) if context.root.exists("sys/module") && context.root.list(PCI).is_empty() => {
            return not_applicable(ID, "no PCI Express links", without(ASPM_POLICY, Unreadable::Absent));
        }
        Err(why) => return unknown(ID, "power saving of PCI Express links not readable", without(ASPM_POLICY, why)),
    };
    let read = evidence(ASPM_POLICY, &policy);
    let remedy = format!("echo performance | sudo tee /{ASPM_POLICY}");
    let chosen = chosen(&policy).unwrap_or_default();
    match chosen.as_str() {
        "performance" => ok(ID, "PCI Express links do not sleep", read),
        "default" | "powersave" | "powersupersave" if let Some(why) = aspm_is_off(context.root) => {
            unknown(ID, format!("PCI Express links are as the firmware set them: {why}"), read)
        }
        "powersave" | "powersupersave" => {
            warn(ID, format!("PCI Express links sleep between transfers ({chosen})"), read)
                .because(WHY, remedy)
                .until_boot()
        }
        "default" => {
            let links = aspm_links(context.root);
            let known = links.iter().filter_map(|(path, state)| Some((path, state.ok()?)));
            match known.clone().find(|(_, state)| *state != 0) {
                Some((path, state)) => {
                    let read = evidence(path, &state.to_string());
                    warn(ID, "PCI Express links sleep between transfers, as the firmware chose", read)
                        .because(WHY, remedy)
                        .until_boot()
                }
                None if known.count() == 0 => {
                    unknown(ID, "the firmware chose the power saving of PCI Express links", read)
                }
                None => ok(ID, "PCI Express links do not sleep, as the firmware chose", read),
            }
        }
        _ => unknown(ID, "power saving of PCI Express links not understood", read),
    }
}
