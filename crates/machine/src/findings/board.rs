//! Small boards: their power supply, and activity that they do for nobody.

use record::Finding;

use super::{Check, CheckContext, Explain, chosen, evidence, fail, files, not_applicable, ok, unknown, warn, without};
use crate::{
    Root, Unreadable,
    root::is_printable,
    tune::firmware::{self, Radio, radio_kind},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "board.throttled",
        subject: "under-voltage and heat of a Raspberry Pi",
        source: "https://www.raspberrypi.com/documentation/computers/os.html, get_throttled; Linux, Documentation/hwmon/raspberrypi-hwmon.rst",
        run: throttled,
    },
    Check {
        id: "board.leds",
        subject: "LEDs that blink with disks and CPUs",
        source: "Linux, Documentation/leds/leds-class.rst",
        run: leds,
    },
    Check {
        id: "board.radio",
        subject: "wireless devices that are switched on",
        source: "Linux, Documentation/driver-api/rfkill.rst",
        run: radio,
    },
    Check {
        id: "board.firmware",
        subject: "lines of `config.txt` of a Raspberry Pi that are not in effect",
        source: "https://www.raspberrypi.com/documentation/computers/config_txt.html",
        run: firmware_lines,
    },
];

/// The finding that this is not a small board, which has a device tree.
fn no_board(context: &CheckContext, id: &str) -> Option<Finding> {
    const TREE: &str = "proc/device-tree";
    const MODEL: &str = "proc/device-tree/model";
    match context.root.text_if(MODEL, is_printable) {
        Ok(model) if model.is_empty() => Some(unknown(id, "kind of machine not readable", evidence(MODEL, &model))),
        Ok(_) => None,
        // A container hides the folder that the kernel's link leads to.
        Err(Unreadable::Absent) if context.root.link(TREE).is_some() => {
            Some(unknown(id, "the device tree is hidden, e.g. in a container", without(MODEL, Unreadable::Absent)))
        }
        Err(Unreadable::Absent) if context.root.exists("proc/sys/kernel") => {
            Some(not_applicable(id, "not a board with a device tree", without(MODEL, Unreadable::Absent)))
        }
        Err(why) => Some(unknown(id, "kind of machine not readable", without(MODEL, why))),
    }
}

/// Bits of the firmware's answer: now, and since boot 16 bits higher.
const THROTTLED: [(u32, &str); 4] =
    [(0, "under-voltage"), (1, "frequency capped"), (2, "throttled"), (3, "soft temperature limit")];

fn throttled(context: &CheckContext) -> Finding {
    const ID: &str = "board.throttled";
    const PATH: &str = "sys/devices/platform/soc/soc:firmware/get_throttled";
    if let Some(finding) = no_board(context, ID) {
        return finding;
    }
    let supply = supply_alarm(context.root);
    if let Some((path, alarm)) = supply.as_ref().filter(|(_, alarm)| alarm == "1") {
        return fail(ID, "now: under-voltage", evidence(path, alarm)).because(SUPPLY_WHY, SUPPLY_REMEDY);
    }
    let is_pi = context.machine.model.as_deref().is_some_and(|model| model.contains("Raspberry Pi"));
    let value = match (context.root.try_read(PATH), supply) {
        (Ok(value), _) => value,
        // The driver shows the last two seconds only.
        (Err(Unreadable::Absent), Some((path, alarm))) if alarm == "0" => {
            let title = "no under-voltage now; earlier, and heat: `vcgencmd get_throttled` shows them";
            return unknown(ID, title, evidence(&path, &alarm));
        }
        (Err(Unreadable::Absent), None) if !is_pi => {
            return not_applicable(ID, "not a Raspberry Pi", without(PATH, Unreadable::Absent));
        }
        (Err(why), _) => {
            return unknown(
                ID,
                "state of the power supply not readable; `vcgencmd get_throttled` shows it",
                without(PATH, why),
            );
        }
    };
    let read = evidence(PATH, &value);
    let Ok(bits) = u32::from_str_radix(value.trim_start_matches("0x"), 16) else {
        return unknown(ID, "state of the power supply not understood", read);
    };
    let named = |shift: u32| {
        let set = THROTTLED.iter().filter(|(bit, _)| bits >> (bit + shift) & 1 == 1);
        set.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
    };
    match (named(0), named(16)) {
        (now, _) if !now.is_empty() => fail(ID, format!("now: {now}"), read).because(SUPPLY_WHY, SUPPLY_REMEDY),
        (_, past) if !past.is_empty() => {
            warn(ID, format!("since boot: {past}"), read).because(SUPPLY_WHY, SUPPLY_REMEDY)
        }
        _ => ok(ID, "neither under-voltage nor heat since boot", read),
    }
}

const SUPPLY_WHY: &str =
    "The firmware lowers the frequency of all CPUs while the supply is weak or the chip is hot, for seconds at a time.";
const SUPPLY_REMEDY: &str = "use the power supply that is made for the board, and a heat sink or fan";

/// The alarm of the driver `raspberrypi-hwmon`, with its path: `1` if the supply was too weak in the last two seconds
/// (Linux, Documentation/hwmon/raspberrypi-hwmon.rst).
fn supply_alarm(root: &Root) -> Option<(String, String)> {
    const FOLDER: &str = "sys/class/hwmon";
    let devices = root.list(FOLDER).into_iter();
    let is_supply = |name: &String| root.read(&format!("{FOLDER}/{name}/name")).as_deref() == Some("rpi_volt");
    let path = devices.into_iter().find(is_supply).map(|name| format!("{FOLDER}/{name}/in0_lcrit_alarm"))?;
    Some((path.clone(), root.read(&path)?))
}

fn leds(context: &CheckContext) -> Finding {
    const ID: &str = "board.leds";
    const FOLDER: &str = "sys/class/leds";
    if let Some(finding) = no_board(context, ID) {
        return finding;
    }
    // The trigger in force is in brackets. Those of CPUs and disks act in the idle loop and in interrupts.
    let active = |name: String| {
        let path = format!("{FOLDER}/{name}/trigger");
        let trigger = context.root.parsed(&path, chosen).ok()?;
        Some((path, trigger))
    };
    let leds: Vec<(String, String)> = context.root.list(FOLDER).into_iter().filter_map(active).collect();
    let busy = ["cpu", "mmc", "disk", "heartbeat", "activity", "panic", "netdev"];
    let blinks = |trigger: &str| trigger != "panic" && busy.iter().any(|word| trigger.starts_with(word));
    let blinking: Vec<&(String, String)> = leds.iter().filter(|(_, trigger)| blinks(trigger)).collect();
    match (leds.first(), blinking.first()) {
        (None, _) => not_applicable(ID, "no LED that the kernel controls", format!("/{FOLDER}: none")),
        (Some((path, trigger)), None) => {
            ok(ID, "no LED blinks with CPUs, disks or network", evidence(path, &format!("[{trigger}]")))
        }
        (_, Some((path, trigger))) => {
            warn(ID, format!("an LED blinks ({trigger})"), evidence(path, &format!("[{trigger}]")))
                .because(
                    "Each blink is work for the kernel, on some boards over a slow bus.",
                    format!("echo none | sudo tee {}", files(blinking.iter().map(|(path, _)| path.as_str()))),
                )
                .until_boot()
        }
    }
}

fn radio(context: &CheckContext) -> Finding {
    const ID: &str = "board.radio";
    const FOLDER: &str = "sys/class/rfkill";
    if let Some(finding) = no_board(context, ID) {
        return finding;
    }
    let device = |name: String| {
        let file = |file: &str| format!("{FOLDER}/{name}/{file}");
        let kind = context.root.parsed(&file("type"), radio_kind).ok()?;
        let blocked = |name: &str| context.root.number::<u8>(&file(name));
        Some((format!("{FOLDER}/{name}"), kind, blocked("soft")?, blocked("hard")))
    };
    let devices: Vec<_> = context.root.list(FOLDER).into_iter().filter_map(device).collect();
    let on: Vec<_> = devices.iter().filter(|(_, _, soft, hard)| *soft == 0 && hard.unwrap_or(0) == 0).collect();
    match (devices.first(), on.first()) {
        (None, _) => not_applicable(ID, "no wireless device", format!("/{FOLDER}: none")),
        (Some((path, kind, soft, _)), None) => {
            ok(ID, format!("wireless devices are off ({kind})"), evidence(&format!("{path}/soft"), &soft.to_string()))
        }
        (_, Some((path, _, soft, _))) => {
            let kinds: Vec<&str> = on.iter().map(|(_, kind, _, _)| *kind).collect();
            let read = evidence(&format!("{path}/soft"), &soft.to_string());
            warn(ID, format!("wireless devices are on: {}", kinds.join(", ")), read)
                .because(
                    "Their drivers scan and receive at any time, and those of some boards take a large share of a CPU. Do not block the one that you are connected through: the block remains after a reboot.",
                    format!("sudo rfkill block {}", kinds.join(" ")),
                )
                .permanent()
        }
    }
}

fn firmware_lines(context: &CheckContext) -> Finding {
    const ID: &str = "board.firmware";
    if let Some(finding) = no_board(context, ID) {
        return finding;
    }
    let root = context.root;
    if !firmware::is_pi(root) {
        let model = root.read("proc/device-tree/model").unwrap_or_default();
        return not_applicable(ID, "not a Raspberry Pi", evidence("proc/device-tree/model", &model));
    }
    let path = firmware::file(root).unwrap_or(firmware::FILES[0]);
    let lines = match root.parsed_or_empty(path, |text| is_printable(text).then(|| text.to_owned())) {
        Ok(text) => firmware::known_lines(context.root, &text),
        Err(why) => return unknown(ID, "configuration of the firmware not readable", without(path, why)),
    };
    let with = |wanted: Option<bool>| {
        let lines = lines.iter().filter(|line| line.is_in_effect(root) == wanted);
        lines.map(|line| line.text()).collect::<Vec<_>>().join(", ")
    };
    let (in_effect, not_in_effect, not_readable) = (with(Some(true)), with(Some(false)), with(None));
    let all = lines.iter().map(|line| line.text()).collect::<Vec<_>>().join(", ");
    let read = evidence(path, if all.is_empty() { "none of these lines" } else { &all });
    if !not_in_effect.is_empty() {
        return warn(ID, format!("not in effect: {not_in_effect}"), read)
            .because("The firmware reads config.txt only at boot.", "sudo reboot");
    }
    let adapters: Vec<Radio> = lines.iter().flat_map(|line| line.adapters_on(root)).collect();
    if !adapters.is_empty() {
        let indexes = adapters.iter().map(|radio| &*radio.index).collect::<Vec<_>>().join(" ");
        let mut modules: Vec<&str> = adapters.iter().filter_map(|radio| radio.module.as_deref()).collect();
        modules.sort_unstable();
        modules.dedup();
        let unload = match modules.is_empty() {
            true => String::new(),
            false => format!(", or `sudo modprobe -r {}` (until the next boot)", modules.join(" ")),
        };
        let kinds = adapters.iter().map(|radio| &*radio.kind).collect::<Vec<_>>().join(", ");
        return warn(ID, format!("adapters are on, which config.txt does not switch off: {kinds}"), read).because(
            "The lines of config.txt switch off the radios of the board only. An adapter on USB or PCI Express, with its driver, works as before.",
            format!("unplug the adapter, or `sudo rfkill block {indexes}` (also after a reboot){unload}"),
        );
    }
    if !not_readable.is_empty() {
        return unknown(ID, format!("effect not readable: {not_readable}; `vcgencmd get_config int` shows it"), read);
    }
    match in_effect.is_empty() {
        true => ok(ID, "config.txt changes neither radio, sound nor frequency", read),
        false => ok(ID, format!("in effect: {in_effect}"), read),
    }
}

#[cfg(test)]
mod tests {
    use record::FindingState;

    use crate::{Root, facts, findings};

    #[test]
    fn the_alarm_of_the_supply_counts_without_the_file_of_the_firmware() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let root = Root::at(folder.path());
        let state = || {
            let found = findings(&root, &facts(&root), None, None);
            let finding = found.into_iter().find(|finding| finding.id == "board.throttled").unwrap();
            (finding.state, finding.evidence)
        };
        put("proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0\0");
        assert_eq!(state().0, FindingState::Unknown);
        put("sys/class/hwmon/hwmon0/name", "cpu_thermal\n");
        put("sys/class/hwmon/hwmon1/name", "rpi_volt\n");
        put("sys/class/hwmon/hwmon1/in0_lcrit_alarm", "0\n");
        let read = |value| format!("/sys/class/hwmon/hwmon1/in0_lcrit_alarm = {value}");
        assert_eq!(state(), (FindingState::Unknown, read(0)), "the firmware may have slowed the CPUs before");
        put("sys/class/hwmon/hwmon1/in0_lcrit_alarm", "1\n");
        assert_eq!(state(), (FindingState::Fail, read(1)));
        put("sys/devices/platform/soc/soc:firmware/get_throttled", "0\n");
        assert_eq!(state(), (FindingState::Fail, read(1)));
        put("sys/class/hwmon/hwmon1/in0_lcrit_alarm", "0\n");
        assert_eq!(state().0, FindingState::Ok);
    }

    /// A Raspberry Pi whose own radios are off, with a Wi-Fi adapter on USB.
    #[test]
    fn an_adapter_that_remains_is_no_reason_to_reboot() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0");
        put("boot/firmware/config.txt", "dtoverlay=disable-wifi\n");
        put("sys/class/rfkill/rfkill2/type", "wlan\n");
        put("sys/class/rfkill/rfkill2/soft", "0\n");
        let root = Root::at(folder.path());
        let finding = || {
            let found = findings(&root, &facts(&root), None, None);
            found.into_iter().find(|finding| finding.id == "board.firmware").unwrap()
        };
        // Without its bus, it counts as one of the board.
        assert_eq!(finding().remedy, "sudo reboot");

        let device = folder.path().join("sys/class/rfkill/rfkill2/device/device");
        std::fs::create_dir_all(device.join("driver")).unwrap();
        std::os::unix::fs::symlink("../../../../bus/usb", device.join("subsystem")).unwrap();
        let remedy = "unplug the adapter, or `sudo rfkill block 2` (also after a reboot)";
        assert_eq!((finding().state, &*finding().remedy), (FindingState::Warn, remedy));
        std::os::unix::fs::symlink("../../../../module/rtl8xxxu", device.join("driver/module")).unwrap();
        assert!(finding().remedy.ends_with("or `sudo modprobe -r rtl8xxxu` (until the next boot)"));

        put("sys/class/rfkill/rfkill2/soft", "1\n");
        assert_eq!(finding().state, FindingState::Ok);
        put("boot/firmware/config.txt", "");
        assert_eq!(finding().title, "config.txt changes neither radio, sound nor frequency");
    }
}
