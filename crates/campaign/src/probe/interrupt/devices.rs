//! Input devices, counters and PTP clocks: their names, and errors if they cannot be used.

use std::{fmt, io, path::PathBuf, str::FromStr};

use analysis::format_ns;
use machine::{Root, SamplesHold};
use probes::interrupt::RunningCount;
use sys::interrupt::{
    counter::{self, EventKind, Extension},
    evdev, iio,
    ptp::{Device, Function, Pin, Stamps},
};

use super::{list::names, source::SourceError};

/// A kind of event of a device of the counter subsystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterEvent {
    /// The device: `counter0`.
    pub device: String,
    /// The kind of event.
    pub kind: EventKind,
    /// Its channel, which devices with several events of this kind have; usually 0.
    pub channel: u8,
}

/// An input of a PTP clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtpInput {
    /// The clock: `ptp0`.
    pub clock: String,
    /// Number or name of its pin, or the number of its channel if it has no pins; `None` for the only one in use.
    pub input: Option<String>,
}

/// An industrial I/O device with a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IioDevice {
    /// The device: `device0`.
    pub device: String,
    /// The trigger of its samples; `None` for the one that it has.
    pub trigger: Option<String>,
}

impl FromStr for IioDevice {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let (device, trigger) = text.split_once('/').map_or((text, None), |(device, name)| (device, Some(name)));
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| !c.is_control());
        numbered(device, "device")
            .filter(|_| trigger.is_none_or(is_name))
            .map(|device| Self { device, trigger: trigger.map(str::to_owned) })
            .ok_or_else(|| {
                SourceError::new(format!(
                    "`{text}` is no industrial I/O device: write iio:N or iio:N/TRIGGER, e.g. iio:0/my-trigger"
                ))
            })
    }
}

impl fmt::Display for IioDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.device)?;
        self.trigger.iter().try_for_each(|trigger| write!(f, "/{trigger}"))
    }
}

impl IioDevice {
    /// Its name in the kernel: `iio:device0`.
    fn kernel_name(&self) -> String {
        format!("iio:{}", self.device)
    }

    /// Lets the device take stamped samples.
    pub(crate) fn hold(&self, root: &Root) -> Result<SamplesHold, SourceError> {
        SamplesHold::take(root, &self.kernel_name(), self.trigger.as_deref())
            .map_err(|error| SourceError::new(error.to_string()))
    }

    /// Opens the device, whose buffer takes samples.
    pub(super) fn open(&self, root: &Root) -> Result<(iio::Device, String), SourceError> {
        let name = self.kernel_name();
        let folder = format!("/sys/bus/iio/devices/{name}");
        let path = PathBuf::from("/dev").join(&name);
        let (bytes, stamp_at) = machine::iio::layout(root, &name).ok_or_else(|| {
            SourceError::new(format!("the samples of {name} have an unknown form: see {folder}/scan_elements"))
        })?;
        let kept = root.number(&format!("{folder}/buffer/length")).unwrap_or(1);
        let device = iio::Device::open(&path, iio::Layout { bytes, stamp_at }, kept).map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::PermissionDenied => "run as root",
                io::ErrorKind::ResourceBusy => "end the program that uses it, such as iiod",
                _ => "see `dmesg`",
            };
            SourceError::new(format!("cannot use {}: {error}; {remedy}", path.display()))
        })?;
        let named = with_name(root, &name, &format!("{folder}/name"));
        let trigger = root.read(&format!("{folder}/trigger/current_trigger")).filter(|trigger| !trigger.is_empty());
        let trigger = trigger.map_or_else(|| "no trigger".to_owned(), |trigger| format!("trigger {trigger}"));
        Ok((device, format!("{named}, {trigger}")))
    }
}

impl FromStr for CounterEvent {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let parse = || {
            let (device, event) = text.split_once('/')?;
            let (kind, channel) = event.split_once(':').unwrap_or((event, "0"));
            let kind = EventKind::ALL.into_iter().find(|known| known.name() == kind)?;
            Some(Self { device: numbered(device, "counter")?, kind, channel: channel.parse().ok()? })
        };
        parse().ok_or_else(|| {
            let kinds = EventKind::ALL.map(EventKind::name).join(", ");
            let form = "write counter:N/EVENT or counter:N/EVENT:CHANNEL, e.g. counter:0/index";
            SourceError::new(format!("`{text}` is no event of a counter: {form}; events are {kinds}"))
        })
    }
}

impl fmt::Display for CounterEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, kind, channel } = self;
        write!(f, "{device}/{}", kind.name())?;
        if *channel == 0 { Ok(()) } else { write!(f, ":{channel}") }
    }
}

impl FromStr for PtpInput {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let (clock, input) = text.split_once('/').map_or((text, None), |(clock, input)| (clock, Some(input)));
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
        numbered(clock, "ptp")
            .filter(|_| input.is_none_or(is_name))
            .map(|clock| Self { clock, input: input.map(str::to_owned) })
            .ok_or_else(|| {
                SourceError::new(format!("`{text}` is no PTP clock: write ptp:N or ptp:N/PIN, e.g. ptp:0/SDP0"))
            })
    }
}

impl fmt::Display for PtpInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clock)?;
        self.input.iter().try_for_each(|input| write!(f, "/{input}"))
    }
}

/// The name of a device of this kind from its number or its name.
pub(super) fn numbered(name: &str, prefix: &str) -> Option<String> {
    let number: u32 = name.strip_prefix(prefix).unwrap_or(name).parse().ok()?;
    Some(format!("{prefix}{number}"))
}

/// Opens an input device: `event3`.
pub(super) fn open_input(root: &Root, name: &str) -> Result<(evdev::Device, String), SourceError> {
    let path = PathBuf::from("/dev/input").join(name);
    let device = evdev::Device::open(&path).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => {
                "see `punctual measure interrupt --list`; if there are none, `sudo modprobe evdev`".to_owned()
            }
            io::ErrorKind::PermissionDenied => "run as root, or join the group `input`".to_owned(),
            _ => this_machine_has(root, "dev/input", "event"),
        };
        SourceError::new(format!("cannot use {}: {error}; {remedy}", path.display()))
    })?;
    let named = if device.name.is_empty() { name.to_owned() } else { format!("{name}, {}", device.name) };
    Ok((device, named))
}

impl CounterEvent {
    /// Opens the device, and requests its events, those of a capture register with the captured count. Returns the
    /// device, its name in words, and that count.
    pub(super) fn open(&self, root: &Root) -> Result<(counter::Device, String, Option<RunningCount>), SourceError> {
        let path = PathBuf::from("/dev").join(&self.device);
        let register = self.register(root)?;
        let kept = root.number(&format!("/sys/bus/counter/devices/{}/events_queue_size", self.device));
        let kept = kept.unwrap_or(counter::EVENTS_KEPT);
        let device = counter::Device::open(
            &path,
            self.kind,
            self.channel,
            register.as_ref().map(|register| register.extension),
            kept,
        )
        .map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => this_machine_has(root, "dev", "counter"),
                io::ErrorKind::PermissionDenied => "run as root".to_owned(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => {
                    "it has no such event: choose another event or channel, as its driver documents".to_owned()
                }
                _ => "see `dmesg`".to_owned(),
            };
            SourceError::new(format!("cannot use {self}: {error}; {remedy}"))
        })?;
        let name = counter_device(root, &self.device);
        let name = format!("{name}, event {} of channel {}", self.kind.name(), self.channel);
        let Some(register) = register else { return Ok((device, name, None)) };
        let count = register.count(root)?;
        let (mhz, range) = (count.frequency_hz() / 1e6, format_ns(count.range_ns().cast_signed()));
        let of_count = format!("{} at {mhz:.3} MHz (measured), which starts again after {range}", register.name);
        Ok((device, format!("{name}, {of_count}"), Some(count)))
    }

    /// The capture register of this event; `None` if it has none. Drivers number registers like the channels.
    fn register(&self, root: &Root) -> Result<Option<Register>, SourceError> {
        if self.kind != EventKind::Capture {
            return Ok(None);
        }
        let folder = format!("sys/bus/counter/devices/{}", self.device);
        let of_count = |count: u8| {
            let numbered = format!("capture{}", self.channel);
            let names = [Some(numbered.as_str()), (self.channel == 0).then_some("capture")];
            names.into_iter().flatten().find_map(|name| {
                let file = format!("{folder}/count{count}/{name}");
                let id = root.number(&format!("{file}_component_id"))?;
                root.exists(&file).then(|| Register {
                    extension: Extension { count, id },
                    name: format!("{name} of count{count}"),
                    folder: format!("{folder}/count{count}"),
                })
            })
        };
        let counts = root.list(&folder).into_iter().filter_map(|name| name.strip_prefix("count")?.parse().ok());
        let mut registers: Vec<Register> = counts.filter_map(of_count).collect();
        match registers.len() {
            0 | 1 => Ok(registers.pop()),
            _ => {
                registers.sort_by_key(|register| register.extension.count);
                let names: Vec<&str> = registers.iter().map(|register| register.name.as_str()).collect();
                Err(SourceError::new(format!(
                    "cannot use {self}: {} has several capture registers of this channel ({}), and it is not known which \
                     of them belongs to the event: choose another channel",
                    self.device,
                    names.join(", ")
                )))
            }
        }
    }
}

/// A capture register of a count.
struct Register {
    extension: Extension,
    /// Its name in words: `capture0 of count0`.
    name: String,
    /// The folder of its count.
    folder: String,
}

impl Register {
    /// The count that is captured, with its measured rate.
    fn count(&self, root: &Root) -> Result<RunningCount, SourceError> {
        let failed = |why: String| {
            SourceError::new(format!(
                "the time of a capture is unknown: /{}/{why}; the event `change-of-state`, `index` or `overflow` has the \
                 kernel's stamp",
                self.folder
            ))
        };
        let ceiling = root.number(&format!("{}/ceiling", self.folder)).ok_or_else(|| {
            failed("ceiling is missing, so it is not known after which count the count starts again".to_owned())
        })?;
        let path = root.path(&format!("{}/count", self.folder));
        RunningCount::open(&path, ceiling).map_err(|error| failed(format!("count: {error}")))
    }
}

/// The device of a counter in words.
pub(super) fn counter_device(root: &Root, name: &str) -> String {
    with_name(root, name, &format!("/sys/bus/counter/devices/{name}/name"))
}

/// A device with the name that its driver gave it in a file.
pub(super) fn with_name(root: &Root, name: &str, file: &str) -> String {
    let of_driver = root.read(file).unwrap_or_default();
    let of_driver = of_driver.trim();
    if of_driver.is_empty() { name.to_owned() } else { format!("{name}, {of_driver}") }
}

/// The devices of this kind that exist, for an error.
fn this_machine_has(root: &Root, folder: &str, prefix: &str) -> String {
    let found = names(root, folder, prefix);
    let found = if found.is_empty() { format!("no /{folder}/{prefix}*") } else { found.join(", ") };
    format!("this machine has {found}")
}

impl PtpInput {
    /// Opens the clock, and lets it stamp the signal of its input.
    pub(super) fn open(&self, root: &Root) -> Result<(Stamps, String), SourceError> {
        let path = PathBuf::from("/dev").join(&self.clock);
        let failed = |error: &io::Error| {
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => this_machine_has(root, "dev", "ptp"),
                io::ErrorKind::PermissionDenied => "run as root".to_owned(),
                io::ErrorKind::ResourceBusy => "another program uses the input: end that".to_owned(),
                io::ErrorKind::Unsupported => {
                    let pins = format!("/sys/class/ptp/{}/pins", self.clock);
                    format!(
                        "the driver refuses this pin or channel: write `1 CHANNEL` to a pin in {pins}, or choose another"
                    )
                }
                _ => "time stamps of signals need Linux 5.4 or later and a driver that supports them".to_owned(),
            };
            SourceError::new(format!("cannot use {self}: {error}; {remedy}"))
        };
        let device = Device::open(&path).map_err(|error| failed(&error))?;
        let pins: Vec<Pin> = (0..device.pins).map_while(|number| device.pin(number).ok()).collect();
        let (channel, pin) = self.choose(&pins, device.channels)?;
        let stamps = device.capture(channel, pin).map_err(|error| failed(&error))?;
        let input = match pin {
            Some(Pin { number, name, .. }) if name.is_empty() => format!("pin {number}"),
            Some(Pin { name, .. }) => format!("pin {name}"),
            None => "input".to_owned(),
        };
        let edges = if stamps.all_edges { "rising and falling" } else { "rising" };
        let clock = with_name(root, &self.clock, &format!("/sys/class/ptp/{}/clock_name", self.clock));
        Ok((stamps, format!("{clock}, {input} of channel {channel}, {edges} edges")))
    }

    /// The channel, and its pin if the clock has pins. A pin without a function gets a channel that no other pin uses.
    fn choose<'a>(&self, pins: &'a [Pin], channels: u32) -> Result<(u32, Option<&'a Pin>), SourceError> {
        let error = |text: String| Err(SourceError::new(text));
        let Self { clock, input } = self;
        if channels == 0 {
            return error(format!("{clock} cannot stamp signals: choose another source"));
        }
        if pins.is_empty() {
            let channel = input.as_ref().map_or(Some(0), |input| input.parse().ok());
            return match channel.filter(|&channel| channel < channels) {
                Some(channel) => Ok((channel, None)),
                None => error(format!("{clock} has no such input: choose {clock}/0 to {clock}/{}", channels - 1)),
            };
        }
        let channel_of = |pin: &Pin| if let Function::Input(channel) = pin.function { Some(channel) } else { None };
        let all = || pins.iter().map(|pin| format!("{clock}/{}", label(pin))).collect::<Vec<_>>().join(", ");
        let Some(input) = input else {
            let set: Vec<&Pin> = pins.iter().filter(|pin| channel_of(pin).is_some()).collect();
            return match set[..] {
                [pin] => Ok((channel_of(pin).unwrap_or(0), Some(pin))),
                _ => error(format!("{clock} has several pins: choose one of {}", all())),
            };
        };
        let by_name = pins.iter().find(|pin| pin.name == *input);
        let chosen = by_name.or_else(|| pins.iter().find(|pin| input.parse() == Ok(pin.number)));
        let Some(pin) = chosen else { return error(format!("no pin {self}: choose one of {}", all())) };
        match pin.function {
            Function::Input(channel) => Ok((channel, Some(pin))),
            Function::Other(..) => {
                let path = format!("/sys/class/ptp/{clock}/pins/{}", label(pin));
                error(format!("the pin {self} has another function, such as an output: write `0 0` to {path} first"))
            }
            Function::None => {
                let is_free = |channel: &u32| pins.iter().all(|pin| channel_of(pin) != Some(*channel));
                match (0..channels).find(is_free) {
                    Some(channel) => Ok((channel, Some(pin))),
                    None => error(format!("other pins of {clock} use all of its channels: choose one of {}", all())),
                }
            }
        }
    }
}

/// Name of a pin, or its number without one.
fn label(pin: &Pin) -> String {
    if pin.name.is_empty() { pin.number.to_string() } else { pin.name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(number: u32, function: Function) -> Pin {
        Pin { number, name: format!("SDP{number}"), function }
    }

    /// The channel and the number of the pin, or the error.
    fn chosen(input: &str, pins: &[Pin], channels: u32) -> Result<(u32, Option<u32>), String> {
        let input: PtpInput = input.parse().unwrap();
        let chosen = input.choose(pins, channels).map_err(|error| error.to_string())?;
        Ok((chosen.0, chosen.1.map(|pin| pin.number)))
    }

    #[test]
    fn a_pin_gets_a_channel_that_no_other_uses() {
        let pins = [pin(0, Function::Input(0)), pin(1, Function::None), pin(2, Function::Other(2, 0))];
        assert_eq!(chosen("0/SDP1", &pins, 2), Ok((1, Some(1))));
        assert_eq!(chosen("0/1", &pins, 2), Ok((1, Some(1))));
        assert_eq!(chosen("0/SDP0", &pins, 2), Ok((0, Some(0))));
        assert_eq!(chosen("0", &pins, 2), Ok((0, Some(0))), "the only input");
        let error = |input: &str, channels| chosen(input, &pins, channels).unwrap_err();
        assert!(error("0/SDP1", 1).contains("use all of its channels"));
        assert!(error("0/SDP2", 2).contains("write `0 0` to /sys/class/ptp/ptp0/pins/SDP2"));
        assert!(error("0/SDP7", 2).contains("choose one of ptp0/SDP0, ptp0/SDP1, ptp0/SDP2"));
        assert!(error("0/SDP1", 0).contains("cannot stamp signals"));
        assert!(chosen("0", &pins[1..], 2).unwrap_err().contains("several pins"));
    }

    #[test]
    fn a_clock_without_pins_has_channels() {
        assert_eq!((chosen("0", &[], 2), chosen("0/1", &[], 2)), (Ok((0, None)), Ok((1, None))));
        assert!(chosen("0/2", &[], 2).unwrap_err().contains("choose ptp0/0 to ptp0/1"));
    }

    #[test]
    fn missing_devices_have_remedies() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let input = open_input(&root, "event4000000").map(drop).unwrap_err().to_string();
        assert!(input.contains("/dev/input/event4000000") && input.contains("--list"), "{input}");
        let counter = "4000000/index".parse::<CounterEvent>().unwrap().open(&root).map(drop).unwrap_err().to_string();
        assert!(counter.contains("counter4000000/index") && counter.contains("has no /dev/counter*"), "{counter}");
        let ptp = "4000000".parse::<PtpInput>().unwrap().open(&root).map(drop).unwrap_err().to_string();
        assert!(ptp.contains("ptp4000000") && ptp.contains("has no /dev/ptp*"), "{ptp}");
    }
}
