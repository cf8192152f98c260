//! The sources of interrupts of this machine.

use machine::Root;

use super::{
    devices::{counter_device, with_name},
    source::{HPET, is_console, pps_device},
    traced::has_polled_alarm,
};

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
    let (ports, used_ports): (Vec<_>, Vec<_>) =
        names(root, "dev", "parport").into_iter().partition(|port| user_of_port(root, port).is_none());
    let (clocks, polled_clocks): (Vec<_>, Vec<_>) =
        names(root, "dev", "rtc").into_iter().partition(|clock| !has_polled_alarm(root, clock));
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
            false => "with --drive and a wire, the time of the edge is known; else from the kernel's stamp; with \
                      --answer and --judge, a board measures until the answer"
                .to_owned(),
            true => "no /dev/gpiochip*: boards have one; a USB adapter with GPIO lines also works".to_owned(),
        },
    };
    let parport = Offer {
        sources: ports.iter().map(|port| format!("parport:{port}")).collect(),
        kind: "parallel port",
        about: match ports.is_empty() {
            false => "with a wire from pin 1 to pin 10, the time of the edge is known".to_owned(),
            true if used_ports.is_empty() => {
                "no /dev/parport*: only PCs have one, with the modules parport_pc and ppdev".to_owned()
            }
            true => {
                let used =
                    used_ports.iter().filter_map(|port| Some(format!("{port} by {}", user_of_port(root, port)?)));
                format!("in use: {}", used.collect::<Vec<_>>().join(", "))
            }
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
    let mut all = vec![
        hpet,
        gpio,
        parport,
        serial_ports(root),
        ptp_inputs(root),
        counters(root),
        samples(root),
        pps,
        input_devices(root),
    ];
    let no_clock = match polled_clocks.is_empty() {
        true => "no /dev/rtc*: virtual machines and small boards may have none".to_owned(),
        false => format!("the kernel replaces the interrupts of {} by a timer of the HPET", polled_clocks.join(", ")),
    };
    let users = names(root, "dev", "uio");
    let no_device = "no /dev/uio*: a driver of UIO, such as uio_pdrv_genirq, makes one";
    all.extend([
        counted(root, "rtc", &clocks, "real-time clock", "once a second, ", &no_clock),
        counted(root, "uio", &users, "UIO device", "", no_device),
    ]);
    all
}

/// The driver that has claimed a parallel port, such as `pps_parport`; `None` if there is none.
fn user_of_port(root: &Root, port: &str) -> Option<String> {
    let active = root.read(&format!("proc/sys/dev/parport/{port}/devices/active"))?;
    Some(active.trim().to_owned()).filter(|user| !user.is_empty() && user != "none")
}

/// Devices that only count their interrupts, `/dev/CLASSN`. `rate` is how often they come, and `none` says why there is no
/// such device.
fn counted(root: &Root, class: &str, devices: &[String], kind: &'static str, rate: &str, none: &str) -> Offer {
    let named = |name: &String| with_name(root, name, &format!("sys/class/{class}/{name}/name"));
    let described = devices.iter().map(named).collect::<Vec<_>>().join("; ");
    Offer {
        sources: devices.iter().map(|name| format!("{class}:{name}")).collect(),
        kind,
        about: match devices.is_empty() {
            false => format!("{rate}from the begin of its handler in the kernel's trace ({described})"),
            true => none.to_owned(),
        },
    }
}

/// Serial ports with hardware.
fn serial_ports(root: &Root) -> Offer {
    let mut ports = root.list("sys/class/tty");
    // Other terminals are no devices; the kernel prepares ports of type 0 for hardware that does not exist.
    ports.retain(|port| {
        let folder = format!("sys/class/tty/{port}");
        root.path(&format!("{folder}/device")).exists() && root.number::<u32>(&format!("{folder}/type")) != Some(0)
    });
    ports.sort_unstable();
    let (consoles, ports): (Vec<String>, Vec<String>) = ports.into_iter().partition(|port| is_console(root, port));
    Offer {
        sources: ports.iter().map(|port| format!("serial:{port}")).collect(),
        kind: "control line of a serial port",
        about: match ports.is_empty() {
            false => "with a wire from RTS to CTS, the time of the edge is known".to_owned(),
            true => match consoles.first() {
                Some(console) => format!(
                    "the kernel uses /dev/{console} as its console, and there is no other port: connect a USB adapter with \
                     RTS and CTS, or remove console={console} from the boot parameters"
                ),
                None => "no /dev/ttyS* with hardware, and no /dev/ttyUSB*: connect a USB adapter with RTS and CTS"
                    .to_owned(),
            },
        },
    }
}

/// Inputs of PTP clocks.
fn ptp_inputs(root: &Root) -> Offer {
    let clocks = names(root, "sys/class/ptp", "ptp");
    let number = |clock: &str, file: &str| root.number::<u32>(&format!("sys/class/ptp/{clock}/{file}")).unwrap_or(0);
    let inputs = |clock: &String| {
        let channels = number(clock, "n_external_timestamps");
        let mut pins = root.list(&format!("sys/class/ptp/{clock}/pins"));
        pins.sort_unstable();
        let all = match channels {
            0 => Vec::new(),
            _ if pins.is_empty() => (0..channels).map(|channel| channel.to_string()).collect(),
            _ => pins,
        };
        all.into_iter().map(|input| format!("ptp:{clock}/{input}")).collect::<Vec<_>>()
    };
    let sources: Vec<String> = clocks.iter().flat_map(inputs).collect();
    let described = || {
        let named = |clock: &String| with_name(root, clock, &format!("sys/class/ptp/{clock}/clock_name"));
        clocks.iter().map(named).collect::<Vec<_>>().join("; ")
    };
    let about = match (clocks.is_empty(), sources.is_empty()) {
        (true, _) => "no /dev/ptp*: only some network cards have a clock, and few of them have pins".to_owned(),
        (false, true) => format!("no clock of this machine can stamp signals ({})", described()),
        (false, false) => format!("the clock stamps the edge itself: the whole way is measured ({})", described()),
    };
    Offer { sources, kind: "pin of a PTP clock", about }
}

/// Devices of the counter subsystem.
fn counters(root: &Root) -> Offer {
    let devices = names(root, "dev", "counter");
    let described = || devices.iter().map(|name| counter_device(root, name)).collect::<Vec<_>>().join("; ");
    Offer {
        sources: devices.iter().map(|name| format!("counter:{name}/EVENT")).collect(),
        kind: "event of a counter",
        about: match devices.is_empty() {
            false => format!(
                "a capture register shows the whole way; other events count from the kernel's stamp ({})",
                described()
            ),
            true => {
                "no /dev/counter*: boards with encoder inputs or capture timers, whose driver and kernel support it \
                     (CONFIG_COUNTER), have one"
                    .to_owned()
            }
        },
    }
}

/// Industrial I/O devices.
fn samples(root: &Root) -> Offer {
    let devices = machine::iio::devices(root);
    let described = || devices.iter().map(|(name, of_driver)| format!("{name}, {of_driver}")).collect::<Vec<_>>();
    Offer {
        sources: devices.iter().map(|(name, _)| name.clone()).collect(),
        kind: "sample of industrial I/O",
        about: match devices.is_empty() {
            false => format!("from the kernel's stamp ({})", described().join("; ")),
            true => "no /dev/iio:device* with a buffer and time stamps: converters and sensors have one".to_owned(),
        },
    }
}

/// Input devices.
fn input_devices(root: &Root) -> Offer {
    let devices = names(root, "dev/input", "event");
    let described = || {
        let named = |name: &String| with_name(root, name, &format!("sys/class/input/{name}/device/name"));
        devices.iter().map(named).collect::<Vec<_>>().join("; ")
    };
    Offer {
        sources: devices.iter().map(|name| format!("evdev:{name}")).collect(),
        kind: "input device",
        about: match devices.is_empty() {
            false => format!("from the kernel's stamp, in steps of 1 us ({})", described()),
            true => "no /dev/input/event*: `modprobe evdev`, or connect a device".to_owned(),
        },
    }
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
        let is_missing = |offer: &Offer| offer.sources.is_empty() && offer.about.starts_with("no /dev/");
        assert!(none.iter().all(is_missing), "{none:?}");
        for name in ["hpet", "gpiochip10", "gpiochip9", "pps0", "ppsx", "gpiochip"] {
            std::fs::write(root.path(&format!("dev/{name}")), "").unwrap();
        }
        std::fs::create_dir_all(root.path("sys/class/pps/pps0")).unwrap();
        std::fs::write(root.path("sys/class/pps/pps0/name"), "serial0\n").unwrap();
        assert_eq!(sources_of(&root, "HPET"), ["hpet"]);
        assert_eq!(sources_of(&root, "GPIO"), ["gpio:gpiochip9/LINE", "gpio:gpiochip10/LINE"]);
        assert_eq!(sources_of(&root, "pulse"), ["pps:pps0"]);
        assert!(offer(&root, "pulse").about.contains("pps0, serial0"));
    }

    #[test]
    fn a_serial_port_that_is_the_console_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        std::fs::create_dir_all(root.path("sys/class/tty/ttyS0/device")).unwrap();
        std::fs::create_dir_all(root.path("proc")).unwrap();
        std::fs::write(root.path("sys/class/tty/ttyS0/type"), "4\n").unwrap();
        assert_eq!(sources_of(&root, "serial"), ["serial:ttyS0"]);
        std::fs::write(root.path("proc/consoles"), "ttyS0 -W- (EC p a) 4:64\n").unwrap();
        let serial = offer(&root, "serial");
        assert!(
            serial.sources.is_empty() && serial.about.starts_with("the kernel uses /dev/ttyS0 as its console"),
            "{serial:?}"
        );
    }

    fn offer(root: &Root, kind: &str) -> Offer {
        offers(root).into_iter().find(|offer| offer.kind.contains(kind)).unwrap()
    }

    fn sources_of(root: &Root, kind: &str) -> Vec<String> {
        offer(root, kind).sources
    }

    #[test]
    fn lists_clocks_with_inputs_and_named_devices() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/class/ptp/ptp0/clock_name", "KVM virtual PTP\n");
        write("sys/class/ptp/ptp0/n_external_timestamps", "0\n");
        assert_eq!(offer(&root, "PTP").about, "no clock of this machine can stamp signals (ptp0, KVM virtual PTP)");
        write("sys/class/ptp/ptp1/n_external_timestamps", "2\n");
        write("sys/class/ptp/ptp2/n_external_timestamps", "2\n");
        write("sys/class/ptp/ptp2/pins/SDP1", "0 0\n");
        write("sys/class/ptp/ptp2/pins/SDP0", "0 0\n");
        assert_eq!(sources_of(&root, "PTP"), ["ptp:ptp1/0", "ptp:ptp1/1", "ptp:ptp2/SDP0", "ptp:ptp2/SDP1"]);
        ["dev/counter0", "dev/rtc0", "dev/uio3"].iter().for_each(|path| write(path, ""));
        write("sys/class/rtc/rtc0/name", "rtc_cmos 00:04\n");
        assert_eq!(sources_of(&root, "real-time"), ["rtc:rtc0"]);
        assert!(offer(&root, "real-time").about.contains("rtc0, rtc_cmos 00:04"));
        assert_eq!(sources_of(&root, "UIO"), ["uio:uio3"]);
        write("proc/driver/rtc", "HPET_emulated\t: yes\n");
        assert!(sources_of(&root, "real-time").is_empty(), "its interrupts are those of a timer");
        assert!(offer(&root, "real-time").about.contains("of rtc0 by a timer of the HPET"));
        ["dev/parport0", "dev/parport1"].iter().for_each(|path| write(path, ""));
        write("proc/sys/dev/parport/parport0/devices/active", "pps_parport\n");
        write("proc/sys/dev/parport/parport1/devices/active", "none\n");
        assert_eq!(sources_of(&root, "parallel"), ["parport:parport1"]);
        write("proc/sys/dev/parport/parport1/devices/active", "lp\n");
        assert_eq!(offer(&root, "parallel").about, "in use: parport0 by pps_parport, parport1 by lp");
        write("dev/input/event2", "");
        write("sys/class/input/event2/device/name", "Power Button\n");
        write("sys/class/tty/ttyS0/type", "4\n");
        write("sys/class/tty/ttyS1/type", "0\n");
        write("sys/class/tty/ttyUSB0/device/driver", "");
        ["ttyS0", "ttyS1"].iter().for_each(|port| write(&format!("sys/class/tty/{port}/device/id"), ""));
        write("sys/class/tty/tty1/active", "");
        assert_eq!(sources_of(&root, "serial port"), ["serial:ttyS0", "serial:ttyUSB0"]);
        write("proc/consoles", "ttyS0                -W- (EC   a)    4:64\n");
        assert_eq!(sources_of(&root, "serial port"), ["serial:ttyUSB0"]);
        write("dev/counter0", "");
        assert_eq!(sources_of(&root, "counter"), ["counter:counter0/EVENT"]);
        assert_eq!(sources_of(&root, "input device"), ["evdev:event2"]);
        assert!(offer(&root, "input device").about.contains("event2, Power Button"));
        write("sys/bus/iio/devices/iio:device0/name", "converter\n");
        assert!(sources_of(&root, "industrial").is_empty(), "it has no buffer");
        write("sys/bus/iio/devices/iio:device0/scan_elements/in_timestamp_en", "0\n");
        assert_eq!(sources_of(&root, "industrial"), ["iio:device0"]);
        assert!(offer(&root, "industrial").about.contains("iio:device0, converter"));
    }
}
