//! The interrupts that a source has in the kernel.

use machine::{Handlers, Root};

use super::source::SourceName;

impl SourceName {
    /// The numbers of its interrupts, if the source is open, and `before` was read before it was opened. Empty if they are
    /// not known.
    pub(super) fn interrupts(&self, root: &Root, before: &Handlers) -> Vec<u32> {
        let now = Handlers::read(root);
        let of_device = |folder: String| now.of_device(root, &folder);
        match self {
            // The kernel requests the interrupts of these when they are opened.
            Self::Hpet => now.since(before, |handler| handler.starts_with("hpet")),
            Self::Parport(name) => now.since(&Handlers::default(), |handler| handler == name),
            Self::Gpio(_) => now.since(before, |handler| handler == CONSUMER),
            Self::Iio(_) => now.since(before, |handler| handler.contains("_consumer")),
            Self::Pps(name) => {
                let folder = format!("sys/class/pps/{name}");
                let named = root.read(&format!("{folder}/name")).unwrap_or_default();
                // Its handler has the name of the port. With several ports, it is not known which is meant.
                let is_port = |handler: &str| named == "pps_parport" && handler.starts_with("parport");
                let of_port = now.since(&Handlers::default(), is_port);
                let of_name = match of_port[..] {
                    [port] => vec![port],
                    _ => now.since(&Handlers::default(), |handler| handler == named),
                };
                // The terminal of a serial line: `/dev/ttyS0`.
                let terminal = root.read(&format!("{folder}/path")).unwrap_or_default();
                let terminal = terminal.strip_prefix("/dev/").filter(|name| !name.contains('/')).map(str::to_owned);
                match (of_name, terminal) {
                    (found, _) if !found.is_empty() => found,
                    (_, Some(terminal)) => of_device(format!("sys/class/tty/{terminal}")),
                    (_, None) => of_device(folder),
                }
            }
            Self::Serial(wired) => of_device(format!("sys/class/tty/{}", wired.port)),
            Self::Rtc(name) => of_device(format!("sys/class/rtc/{name}")),
            Self::Uio(device) => {
                let folder = format!("sys/class/uio/{}", device.device);
                let of_name = || now.named(&root.read(&format!("{folder}/name")).unwrap_or_default());
                let found = of_device(folder.clone());
                if found.is_empty() { of_name() } else { found }
            }
            Self::Evdev(name) => of_device(format!("sys/class/input/{name}")),
            Self::Counter(event) => of_device(format!("sys/bus/counter/devices/{}", event.device)),
            Self::Ptp(input) => of_device(format!("sys/class/ptp/{}", input.clock)),
        }
    }
}

/// The name of this program as the user of a GPIO line.
const CONSUMER: &str = "punctual";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_new_handlers_or_those_of_its_device() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let make = |path: &str| std::fs::create_dir_all(root.path(path)).unwrap();
        make("proc/irq/0/hpet-clock");
        make("proc/irq/7/pps@12.-1");
        let before = Handlers::read(&root);
        make("proc/irq/5/parport0");
        make("proc/irq/20/hpet0");
        make("proc/irq/21/punctual");
        make("proc/irq/22/converter_consumer0");
        make("sys/class/pps/pps0");
        std::fs::write(root.path("sys/class/pps/pps0/name"), "pps@12.-1\n").unwrap();
        make("sys/class/pps/pps1");
        std::fs::write(root.path("sys/class/pps/pps1/path"), "/dev/ttyS0\n").unwrap();
        make("sys/class/pps/pps2");
        std::fs::write(root.path("sys/class/pps/pps2/name"), "pps_parport\n").unwrap();
        make("sys/devices/pnp0/00:04/tty/ttyS0");
        std::fs::write(root.path("sys/devices/pnp0/00:04/tty/ttyS0/irq"), "4\n").unwrap();
        make("sys/class/tty");
        std::os::unix::fs::symlink(root.path("sys/devices/pnp0/00:04/tty/ttyS0"), root.path("sys/class/tty/ttyS0"))
            .unwrap();
        let of = |source: &str| source.parse::<SourceName>().unwrap().interrupts(&root, &before);
        assert_eq!([of("parport:0"), of("pps:2"), of("serial:ttyS0")], [[5], [5], [4]]);
        assert_eq!([of("hpet"), of("gpio:0/1"), of("iio:0"), of("pps:0"), of("pps:1")], [[20], [21], [22], [7], [4]]);
        make("proc/irq/6/parport1");
        assert!(of("pps:2").is_empty(), "one of two ports");
        assert!(["evdev:3", "counter:0/index", "ptp:0/1"].into_iter().all(|source| of(source).is_empty()));
    }
}
