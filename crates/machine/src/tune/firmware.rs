//! Lines of `config.txt`, which the firmware of a Raspberry Pi reads at boot. They are never written: a mistake in them can
//! keep a board from booting.

use serde::Serialize;

use super::{Plan, Setting, Target, Write};
use crate::{Root, Unreadable, sound};

/// Documentation of the options of the firmware.
const OPTIONS: &str = "https://www.raspberrypi.com/documentation/computers/config_txt.html, overclocking options";
/// Documentation of `dtoverlay` and `dtparam`, in the kernel of Raspberry Pi.
const OVERLAYS: &str = "https://github.com/raspberrypi/linux, arch/arm/boot/dts/overlays/README";
/// Name of the on-board sound in `/proc/asound/cards`: the driver is snd-bcm2835.
const ON_BOARD_SOUND: &str = "bcm2835";
/// Frequencies of the first CPU; all CPUs of these boards have the same.
const FREQUENCIES: &str = "sys/devices/system/cpu/cpu0/cpufreq";

/// The lines to add to `config.txt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Firmware {
    /// Path of the file; `None` if it was not found.
    pub path: Option<&'static str>,
    /// The lines.
    pub lines: Vec<AdvisedLine>,
}

/// A line to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdvisedLine {
    /// The line.
    pub line: String,
    /// Expected effect.
    pub effect: &'static str,
    /// Risk, or cost.
    pub risk: &'static str,
    /// The document that describes it.
    pub source: &'static str,
}

/// A line that punctual knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// `dtoverlay=disable-wifi`.
    NoWifi,
    /// `dtoverlay=disable-bt`.
    NoBluetooth,
    /// `dtparam=audio=off`.
    NoSound,
    /// `force_turbo=1`.
    ForceTurbo,
    /// `arm_freq=MHZ`.
    ArmFreq {
        /// Frequency of the CPUs, MHz.
        mhz: u64,
    },
}

impl Line {
    /// The line as `config.txt` has it.
    pub(crate) fn text(self) -> String {
        match self {
            Self::NoWifi => "dtoverlay=disable-wifi".to_owned(),
            Self::NoBluetooth => "dtoverlay=disable-bt".to_owned(),
            Self::NoSound => "dtparam=audio=off".to_owned(),
            Self::ForceTurbo => "force_turbo=1".to_owned(),
            Self::ArmFreq { mhz } => format!("arm_freq={mhz}"),
        }
    }

    fn advised(self) -> AdvisedLine {
        let (effect, risk, source) = match self {
            Self::NoWifi => ("no Wi-Fi of the board, nor its driver", "the board is not reached over Wi-Fi", OVERLAYS),
            Self::NoBluetooth => ("no Bluetooth of the board, nor its driver", "no devices over Bluetooth", OVERLAYS),
            Self::NoSound => ("no sound of the board, nor its driver", "no sound at the jack of the board", OVERLAYS),
            Self::ForceTurbo => ("the highest frequency from the boot on", "more power and heat", OPTIONS),
            Self::ArmFreq { .. } => ("CPUs run at most this fast", "slower than the CPU can be", OPTIONS),
        };
        AdvisedLine { line: self.text(), effect, risk, source }
    }

    /// The kind of radio that this line switches off.
    fn radio(self) -> Option<&'static str> {
        match self {
            Self::NoWifi => Some("wlan"),
            Self::NoBluetooth => Some("bluetooth"),
            Self::NoSound | Self::ForceTurbo | Self::ArmFreq { .. } => None,
        }
    }

    /// Adapters that are switched on, although this line switches off the radio of the board of their kind.
    pub(crate) fn adapters_on(self, root: &Root) -> Vec<Radio> {
        let Some(kind) = self.radio() else { return Vec::new() };
        radios(root).into_iter().filter(|radio| radio.kind == kind && radio.is_adapter && radio.is_on).collect()
    }

    /// True if the board runs as this line says; `None` if that cannot be read.
    pub(crate) fn is_in_effect(self, root: &Root) -> Option<bool> {
        match self {
            Self::NoWifi | Self::NoBluetooth => {
                let kind = self.radio()?;
                Some(radios(root).iter().all(|radio| radio.kind != kind || radio.is_adapter))
            }
            Self::NoSound => match sound::cards_text(root) {
                Ok(_) => Some(!sound::cards(root).iter().any(|card| card.name.contains(ON_BOARD_SOUND))),
                Err(Unreadable::Absent) if root.exists("proc/sys/kernel") => Some(true),
                Err(_) => None,
            },
            // Firmware that does not report a higher lowest frequency may have fixed it all the same.
            Self::ForceTurbo => {
                let is_fixed = frequency(root, "cpuinfo_min_freq")? == frequency(root, "cpuinfo_max_freq")?;
                is_fixed.then_some(true)
            }
            Self::ArmFreq { mhz } => Some(frequency(root, "cpuinfo_max_freq")? == mhz * 1000),
        }
    }
}

/// True for a board whose firmware reads `config.txt`.
pub(crate) fn is_pi(root: &Root) -> bool {
    root.read("proc/device-tree/model").is_some_and(|model| model.starts_with("Raspberry Pi"))
}

/// `config.txt`: since Debian 12 (bookworm) of Raspberry Pi OS in `/boot/firmware`.
pub(crate) const FILES: [&str; 2] = ["boot/firmware/config.txt", "boot/config.txt"];

/// The path of `config.txt`.
pub(crate) fn file(root: &Root) -> Option<&'static str> {
    FILES.into_iter().find(|path| root.exists(path))
}

/// The lines of `config.txt` that apply to this board. Filters of different kinds add up until `[all]`, and one for models
/// replaces another (conditional filters in the documentation). Those for displays, pins and serial numbers are not known to
/// apply.
fn applying<'a>(root: &Root, text: &'a str) -> impl Iterator<Item = &'a str> {
    let model = root.read("proc/device-tree/model").unwrap_or_default();
    let (mut is_model, mut is_other) = (true, true);
    text.lines().map(str::trim).filter(move |line| {
        let Some(section) = line.strip_prefix('[').map(|section| section.trim_end_matches(']')) else {
            return is_model && is_other;
        };
        match section {
            "all" => (is_model, is_other) = (true, true),
            "none" => is_model = false,
            _ => match is_for(section, &model) {
                Some(applies) => is_model = applies,
                None => is_other = false,
            },
        }
        false
    })
}

/// The lines of `config.txt` that punctual knows and that apply to this board. Of several frequencies or `audio`, the last one
/// counts.
pub(crate) fn known_lines(root: &Root, text: &str) -> Vec<Line> {
    let (mut overlays, mut sound_is_off, mut turbo, mut mhz) = (Vec::new(), false, false, None);
    for (key, value) in applying(root, text).filter_map(|line| line.split_once('=')) {
        match (key.trim(), value.trim()) {
            ("dtoverlay", "disable-wifi" | "disable-wifi-pi5" | "pi3-disable-wifi") => overlays.push(Line::NoWifi),
            ("dtoverlay", "disable-bt" | "disable-bt-pi5" | "pi3-disable-bt") => overlays.push(Line::NoBluetooth),
            ("dtparam", parameters) => {
                let mut audio = parameters.split(',').filter_map(|parameter| parameter.trim().strip_prefix("audio="));
                sound_is_off = audio.next_back().map_or(sound_is_off, |value| value == "off");
            }
            ("force_turbo", value) => turbo = value == "1",
            ("arm_freq", value) => mhz = value.parse().ok(),
            _ => {}
        }
    }
    overlays.dedup();
    let sound = sound_is_off.then_some(Line::NoSound);
    let turbo = turbo.then_some(Line::ForceTurbo);
    overlays.into_iter().chain(sound).chain(turbo).chain(mhz.map(|mhz| Line::ArmFreq { mhz })).collect()
}

/// The last value of an option of `config.txt` that applies to this board; `None` without one, or if it is empty.
pub(crate) fn option(root: &Root, text: &str, name: &str) -> Option<String> {
    let values = applying(root, text).filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.last().map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// True if a section of `config.txt` is for this model; `None` for a section that is not for models.
fn is_for(section: &str, model: &str) -> Option<bool> {
    let rest = model.strip_prefix("Raspberry Pi ").unwrap_or_default();
    let rest = rest.strip_prefix("Model ").map_or(rest, |_| "1");
    let is = |starts: &[&str]| starts.iter().any(|start| rest.starts_with(start));
    Some(match section {
        "pi0" => is(&["Zero"]),
        "pi0w" => is(&["Zero W"]),
        "pi02" => is(&["Zero 2"]),
        "pi1" => rest == "1" || is(&["Compute Module Rev"]),
        "pi2" => is(&["2 "]),
        "pi3" => is(&["3 ", "Compute Module 3"]),
        "pi3+" => is(&["3 Model A Plus", "3 Model B Plus"]),
        "pi4" => is(&["4 ", "400", "Compute Module 4"]),
        "pi400" => is(&["400"]),
        "cm4" => is(&["Compute Module 4 "]),
        "cm4s" => is(&["Compute Module 4S"]),
        "pi5" => is(&["5 ", "500", "Compute Module 5"]),
        "pi500" => is(&["500"]),
        "cm5" => is(&["Compute Module 5"]),
        _ => return None,
    })
}

/// True for a section of `config.txt`, for a line that [`known_lines`] reads, and for the name of the file of arguments.
pub(crate) fn is_known(line: &str) -> bool {
    let line = line.trim();
    let keys = [
        "cmdline=",
        "os_prefix=",
        "dtoverlay=disable-",
        "dtoverlay=pi3-disable-",
        "dtparam=audio=",
        "force_turbo=",
        "arm_freq=",
    ];
    line.starts_with('[') || keys.iter().any(|key| line.starts_with(key))
}

/// The lines that the findings of this machine and the plan advise, except those that the file contains. `None` if this is
/// not a Raspberry Pi, or no line is advised.
#[must_use]
pub fn firmware(root: &Root, plan: &Plan) -> Option<Firmware> {
    if !is_pi(root) {
        return None;
    }
    let path = file(root);
    let present = path.and_then(|path| root.read(path)).map(|text| known_lines(root, &text)).unwrap_or_default();
    let mut lines = advised(root, plan);
    lines.retain(|line| !present.contains(line));
    let lines: Vec<AdvisedLine> = lines.into_iter().map(Line::advised).collect();
    (!lines.is_empty()).then_some(Firmware { path, lines })
}

fn advised(root: &Root, plan: &Plan) -> Vec<Line> {
    let changed = |id: &str| plan.changes.iter().find(|setting| setting.id == id);
    let mut lines = Vec::new();
    let radios = radios(root);
    let is_on = |kind| radios.iter().any(|radio| radio.kind == kind && radio.is_on && !radio.is_adapter);
    lines.extend([Line::NoWifi, Line::NoBluetooth].into_iter().filter(|line| line.radio().is_some_and(is_on)));
    let cards = sound::cards(root);
    let is_on_board = |card: &&sound::Card| card.name.contains(ON_BOARD_SOUND);
    let on_board = cards.iter().filter(is_on_board).count();
    if on_board > 0 && on_board < cards.len() {
        lines.push(Line::NoSound);
    }
    if changed("cpu.governor").is_some() || changed("cpu.frequency").is_some() {
        lines.push(Line::ForceTurbo);
    }
    let limit = ["cpu.frequency", "cpu.max_freq"].into_iter().filter_map(changed).find_map(limit_mhz);
    let is_below_default = |mhz: &u64| frequency(root, "cpuinfo_max_freq").is_some_and(|max_khz| mhz * 1000 < max_khz);
    lines.extend(limit.filter(is_below_default).map(|mhz| Line::ArmFreq { mhz }));
    lines
}

/// The highest frequency that a setting sets, MHz.
fn limit_mhz(setting: &Setting) -> Option<u64> {
    let is_limit = |write: &&Write| matches!(&write.target, Target::File(path) if path.ends_with("scaling_max_freq"));
    Some(setting.writes.iter().find(is_limit)?.to.parse::<u64>().ok()? / 1000)
}

/// A frequency of the first CPU, kHz.
fn frequency(root: &Root, file: &str) -> Option<u64> {
    root.number(&format!("{FREQUENCIES}/{file}"))
}

/// A wireless device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Radio {
    /// Its number for `rfkill`.
    pub index: String,
    /// Its kind, e.g. `wlan`.
    pub kind: String,
    /// The kernel module of its driver.
    pub module: Option<String>,
    /// True for one on USB or PCI Express. Those of the boards are on SDIO and a serial port.
    is_adapter: bool,
    is_on: bool,
}

/// The kinds of wireless devices (`Documentation/ABI/stable/sysfs-class-rfkill`).
const RADIO_KINDS: [&str; 8] = ["wlan", "bluetooth", "ultrawideband", "wimax", "wwan", "gps", "fm", "nfc"];

/// The kind of wireless device that this text names.
pub(crate) fn radio_kind(text: &str) -> Option<&'static str> {
    RADIO_KINDS.into_iter().find(|kind| *kind == text)
}

fn radios(root: &Root) -> Vec<Radio> {
    const FOLDER: &str = "sys/class/rfkill";
    let radio = |name: String| {
        let file = |file: &str| format!("{FOLDER}/{name}/{file}");
        let is_blocked = |name: &str| root.number::<u8>(&file(name)).map(|blocked| blocked != 0);
        // Above the wireless device, which `device` links to, is the device of the bus.
        let last_of_link = |file: &str| {
            let target = root.link(&format!("{FOLDER}/{name}/device/device/{file}"))?;
            target.rsplit('/').next().map(str::to_owned)
        };
        Some(Radio {
            index: name.strip_prefix("rfkill")?.to_owned(),
            kind: root.parsed(&file("type"), radio_kind).ok()?.to_owned(),
            module: last_of_link("driver/module"),
            is_adapter: last_of_link("subsystem").is_some_and(|bus| matches!(&*bus, "usb" | "pci")),
            is_on: is_blocked("soft") == Some(false) && is_blocked("hard") != Some(true),
        })
    };
    root.list(FOLDER).into_iter().filter_map(radio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::{Choice, Need, plan};

    #[test]
    fn a_section_is_for_the_boards_of_its_name() {
        for (model, sections) in [
            ("4 Model B Rev 1.4", "pi4"),
            ("400 Rev 1.0", "pi4 pi400"),
            ("Compute Module 4 Rev 1.0", "pi4 cm4"),
            ("Compute Module 4S Rev 1.0", "pi4 cm4s"),
            ("5 Model B Rev 1.0", "pi5"),
            ("Compute Module 5 Rev 1.0", "pi5 cm5"),
            ("3 Model B Plus Rev 1.3", "pi3 pi3+"),
            ("Zero 2 W Rev 1.0", "pi0 pi02"),
            ("Model B Plus Rev 1.2", "pi1"),
        ] {
            let model = format!("Raspberry Pi {model}");
            let all = [
                "pi0", "pi0w", "pi02", "pi1", "pi2", "pi3", "pi3+", "pi4", "pi400", "cm4", "cm4s", "pi5", "pi500",
                "cm5",
            ];
            let mut found: Vec<&str> =
                all.into_iter().filter(|section| is_for(section, &model) == Some(true)).collect();
            let mut expected: Vec<&str> = sections.split(' ').collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{model}");
            assert_eq!([is_for("gpio4=1", &model), is_for("0x12345678", &model)], [None; 2]);
        }
    }

    #[test]
    fn lines_of_other_boards_and_comments_do_not_count() {
        let (_folder, root) = board();
        let of = |text: &str| known_lines(&root, text).into_iter().map(Line::text).collect::<Vec<_>>().join(" ");
        assert_eq!(of("# dtoverlay=disable-wifi\n[pi3]\ndtoverlay=disable-bt\n[all]\nforce_turbo=0\n"), "");
        assert_eq!(of("[pi3]\n[pi4]\ndtoverlay=disable-bt-pi5\n"), "dtoverlay=disable-bt", "of this board");
        assert_eq!(of("[gpio4=1]\n[pi4]\ndtoverlay=disable-bt\n[none]\nforce_turbo=1\n"), "");
        assert_eq!(of("arm_freq=1500\n[pi5]\narm_freq=2400\n[all]\n arm_freq = 1000 \r\n"), "arm_freq=1000");
        assert_eq!(of("dtparam=audio=off\ndtparam=i2c_arm=on,audio=on\n"), "");
        assert_eq!(of("dtparam=i2c_arm=on,audio=off\ndtparam=spi=on\n"), "dtparam=audio=off");
        assert_eq!(
            of("dtoverlay=disable-wifi\ndtoverlay=pi3-disable-wifi\ndtoverlay=disable-bt\nforce_turbo=1"),
            "dtoverlay=disable-wifi dtoverlay=disable-bt force_turbo=1"
        );
    }

    /// A Raspberry Pi with two radios, two sound cards, and frequencies that change.
    fn board() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let cpufreq = |file: &str| format!("{FREQUENCIES}/{file}");
        let files = [
            ("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4".to_owned()),
            ("proc/sys/kernel/ostype", "Linux".to_owned()),
            ("sys/class/rfkill/rfkill0/type", "wlan".to_owned()),
            ("sys/class/rfkill/rfkill0/soft", "0".to_owned()),
            ("sys/class/rfkill/rfkill1/type", "bluetooth".to_owned()),
            ("sys/class/rfkill/rfkill1/soft", "1".to_owned()),
            (
                "proc/asound/cards",
                " 0 [Headphones     ]: bcm2835_headpho - bcm2835 Headphones\n                      bcm2835 Headphones\n \
                 1 [DAC            ]: USB-Audio - USB DAC\n                      USB DAC\n"
                    .to_owned(),
            ),
            ("sys/devices/system/cpu/online", "0".to_owned()),
            (&cpufreq("scaling_governor"), "ondemand".to_owned()),
            (&cpufreq("scaling_available_governors"), "ondemand performance".to_owned()),
            (&cpufreq("cpuinfo_min_freq"), "600000".to_owned()),
            (&cpufreq("cpuinfo_max_freq"), "1500000".to_owned()),
            (&cpufreq("scaling_min_freq"), "600000".to_owned()),
            (&cpufreq("scaling_max_freq"), "1500000".to_owned()),
        ];
        for (path, text) in files {
            set(&root, path, &text);
        }
        (folder, root)
    }

    fn set(root: &Root, path: &str, text: &str) {
        std::fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
        std::fs::write(root.path(path), text).unwrap();
    }

    fn lines(root: &Root, need: &Need) -> Option<(Option<&'static str>, String)> {
        let Firmware { path, lines } = firmware(root, &plan(root, need).unwrap())?;
        Some((path, lines.into_iter().map(|advised| advised.line).collect::<Vec<_>>().join(" ")))
    }

    #[test]
    fn advises_what_findings_and_the_plan_change() {
        let (_folder, root) = board();
        let all = "dtoverlay=disable-wifi dtparam=audio=off force_turbo=1";
        assert_eq!(lines(&root, &Need::default()), Some((None, all.to_owned())));
        set(&root, FILES[0], "dtoverlay=disable-wifi\n");
        let fixed =
            Need { set: vec![Choice { id: "cpu.frequency", value: Some("1000MHz".to_owned()) }], ..Need::default() };
        let expected = "dtparam=audio=off force_turbo=1 arm_freq=1000".to_owned();
        assert_eq!(lines(&root, &fixed), Some((Some(FILES[0]), expected)));
        let without = Need { without: vec!["cpu.governor"], ..Need::default() };
        assert_eq!(lines(&root, &without), Some((Some(FILES[0]), "dtparam=audio=off".to_owned())));
        set(&root, "proc/asound/cards", " 0 [Headphones     ]: bcm2835_headpho - bcm2835 Headphones\n");
        assert_eq!(lines(&root, &without), None, "the only card is not switched off");
        set(&root, "proc/device-tree/model", "Khadas VIM3");
        assert_eq!(lines(&root, &fixed), None);
    }

    #[test]
    fn knows_which_lines_are_in_effect() {
        let (_folder, root) = board();
        let is = |line: Line| line.is_in_effect(&root);
        assert_eq!((is(Line::NoWifi), is(Line::NoSound), is(Line::ForceTurbo)), (Some(false), Some(false), None));
        assert_eq!((is(Line::ArmFreq { mhz: 1500 }), is(Line::ArmFreq { mhz: 1000 })), (Some(true), Some(false)));
        std::fs::remove_dir_all(root.path("sys/class/rfkill")).unwrap();
        std::fs::remove_file(root.path("proc/asound/cards")).unwrap();
        set(&root, &format!("{FREQUENCIES}/cpuinfo_min_freq"), "1500000");
        assert_eq!((is(Line::NoWifi), is(Line::NoBluetooth), is(Line::NoSound)), (Some(true), Some(true), Some(true)));
        assert_eq!(is(Line::ForceTurbo), Some(true));
    }

    #[test]
    fn adapters_are_not_switched_off_by_the_firmware() {
        let (_folder, root) = board();
        let above = |number: u32| root.path(&format!("sys/class/rfkill/rfkill{number}/device/device"));
        for (number, bus) in [(0, "usb"), (1, "serial")] {
            std::fs::create_dir_all(above(number)).unwrap();
            std::os::unix::fs::symlink(format!("../../../bus/{bus}"), above(number).join("subsystem")).unwrap();
        }
        std::fs::create_dir_all(above(0).join("driver")).unwrap();
        std::os::unix::fs::symlink("../../../../module/mt7601u", above(0).join("driver/module")).unwrap();
        assert_eq!(Line::NoWifi.is_in_effect(&root), Some(true));
        assert_eq!(Line::NoBluetooth.is_in_effect(&root), Some(false));
        let adapters = Line::NoWifi.adapters_on(&root);
        assert_eq!(adapters.len(), 1);
        assert_eq!((&*adapters[0].index, adapters[0].module.as_deref()), ("0", Some("mt7601u")));
        assert_eq!(Line::NoBluetooth.adapters_on(&root), []);
        let all = "dtparam=audio=off force_turbo=1";
        assert_eq!(lines(&root, &Need::default()), Some((None, all.to_owned())), "no advice to disable Wi-Fi");
        set(&root, "sys/class/rfkill/rfkill0/soft", "1");
        assert_eq!(Line::NoWifi.adapters_on(&root), []);
    }

    #[test]
    fn a_snapshot_keeps_only_known_lines() {
        let kept = |line| is_known(line);
        assert!(kept("[all]") && kept("dtoverlay=disable-bt") && kept("arm_freq=1000"));
        assert!(!kept("decode_MPG2=0x12345678") && !kept("dtoverlay=hifiberry-dac") && !kept("# my name"));
    }
}
