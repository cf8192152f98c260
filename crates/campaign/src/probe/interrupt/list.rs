//! The sources of interrupts of this machine.

use machine::Root;

use super::source::{HPET, pps_device};

/// A kind of source, and what this machine has of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The sources, as for `--source`; empty if there are none.
    pub sources: Vec<String>,
    /// The kind of source in words.
    pub kind: &'static str,
    /// The clock that gives the time of an interrupt, or the part that this machine lacks.
    pub about: String,
}

/// The kinds of sources, those with the most complete times first.
#[must_use]
pub fn offers(root: &Root) -> Vec<Offer> {
    let exists = |path: &str| root.path(path).exists();
    let chips = names(root, "dev", "gpiochip");
    let pulses = names(root, "dev", "pps");
    let hpet = Offer {
        sources: exists(HPET).then(|| "hpet".to_owned()).into_iter().collect(),
        kind: "timer of the HPET",
        about: match exists(HPET) {
            true => "its counter gives the time of the interrupt itself: the whole way is measured".to_owned(),
            false => format!("no {HPET}: only PCs have an HPET, and firmware or hypervisor may hide it"),
        },
    };
    let gpio = Offer {
        sources: chips.iter().map(|chip| format!("gpio:{chip}/LINE")).collect(),
        kind: "line of a GPIO chip",
        about: match chips.is_empty() {
            false => "with --drive and a wire, the time of the edge is known; else from the kernel's stamp".to_owned(),
            true => "no /dev/gpiochip*: boards have one; a USB adapter with GPIO lines also works".to_owned(),
        },
    };
    let pps = Offer {
        sources: pulses.iter().map(|name| format!("pps:{name}")).collect(),
        kind: "pulse per second",
        about: match pulses.is_empty() {
            false => {
                let devices: Vec<String> = pulses.iter().map(|name| pps_device(root, name)).collect();
                format!("from the kernel's stamp ({})", devices.join("; "))
            }
            true => "no /dev/pps*: `modprobe pps-gpio`, or `ldattach 18 /dev/ttyS0` for a serial line".to_owned(),
        },
    };
    vec![hpet, gpio, pps]
}

/// Names in a folder of the machine that are a prefix and a number, in the order of numbers.
pub(super) fn names(root: &Root, folder: &str, prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root.path(folder)).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut numbers: Vec<u32> = found.filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| format!("{prefix}{number}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_what_is_there_and_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        std::fs::create_dir_all(root.path("dev")).unwrap();
        let none = offers(&root);
        assert!(none.iter().all(|offer| offer.sources.is_empty() && offer.about.starts_with("no /dev/")), "{none:?}");
        for name in ["hpet", "gpiochip10", "gpiochip9", "pps0", "ppsx", "gpiochip"] {
            std::fs::write(root.path(&format!("dev/{name}")), "").unwrap();
        }
        std::fs::create_dir_all(root.path("sys/class/pps/pps0")).unwrap();
        std::fs::write(root.path("sys/class/pps/pps0/name"), "serial0\n").unwrap();
        let sources: Vec<Vec<String>> = offers(&root).into_iter().map(|offer| offer.sources).collect();
        assert_eq!(sources, [vec!["hpet"], vec!["gpio:gpiochip9/LINE", "gpio:gpiochip10/LINE"], vec!["pps:pps0"]]);
        assert!(offers(&root)[2].about.contains("pps0, serial0"));
    }
}
