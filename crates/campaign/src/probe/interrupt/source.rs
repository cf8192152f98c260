//! Names of sources, and errors of sources that cannot be used.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use machine::Root;
use sys::interrupt::{
    gpio::{Active, Chip},
    parport::Port,
    serial,
};

use super::{
    devices::{CounterEvent, IioDevice, PtpInput, numbered, with_name},
    traced::UioDevice,
};

/// The device of the HPET.
pub(super) const HPET: &str = "/dev/hpet";

/// A source of interrupts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceName {
    /// A timer of the HPET.
    Hpet,
    /// An input line of a GPIO chip.
    Gpio(GpioLine),
    /// A source of a pulse per second: `pps0`.
    Pps(String),
    /// An input device: `event3`.
    Evdev(String),
    /// Events of a device of the counter subsystem.
    Counter(CounterEvent),
    /// An input of a PTP clock.
    Ptp(PtpInput),
    /// Samples of an industrial I/O device.
    Iio(IioDevice),
    /// A parallel port: `parport0`.
    Parport(String),
    /// A real-time clock: `rtc0`.
    Rtc(String),
    /// A UIO device.
    Uio(UioDevice),
    /// Two control lines of a serial port, joined by a wire.
    Serial(SerialLoop),
}

/// An output of a serial port that a wire connects to one of its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wire {
    name: &'static str,
    output: serial::Output,
    input: serial::Input,
    /// The pins of output and input in words.
    pins: [&'static str; 2],
}

/// The wires, the usual one first. A change of DCD would hang up the port, and of RI, drivers report one edge only.
const WIRES: [Wire; 4] = [
    Wire {
        name: "RTS-CTS",
        output: serial::Output::Rts,
        input: serial::Input::Cts,
        pins: ["RTS (pin 7)", "CTS (pin 8)"],
    },
    Wire {
        name: "DTR-DSR",
        output: serial::Output::Dtr,
        input: serial::Input::Dsr,
        pins: ["DTR (pin 4)", "DSR (pin 6)"],
    },
    Wire {
        name: "RTS-DSR",
        output: serial::Output::Rts,
        input: serial::Input::Dsr,
        pins: ["RTS (pin 7)", "DSR (pin 6)"],
    },
    Wire {
        name: "DTR-CTS",
        output: serial::Output::Dtr,
        input: serial::Input::Cts,
        pins: ["DTR (pin 4)", "CTS (pin 8)"],
    },
];

/// A serial port with a wire between two of its control lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerialLoop {
    /// The port: `ttyS0`.
    pub port: String,
    wire: Wire,
}

impl FromStr for SerialLoop {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let path = text.strip_prefix("/dev/").unwrap_or(text);
        let (port, wire) = path.split_once('/').unwrap_or((path, WIRES[0].name));
        let wire = WIRES.into_iter().find(|known| known.name.eq_ignore_ascii_case(wire));
        let is_name = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        wire.filter(|_| is_name).map(|wire| Self { port: port.to_owned(), wire }).ok_or_else(|| {
            SourceError(format!(
                "`{text}` is no wired serial port: write PORT or PORT/WIRE with one of {}, e.g. ttyS0/RTS-CTS; pulses at DCD \
                 are measured with `ldattach 18 /dev/ttyS0` and pps:0",
                WIRES.map(|wire| wire.name).join(", ")
            ))
        })
    }
}

/// True if the kernel writes its messages to this port.
pub(super) fn is_console(root: &Root, port: &str) -> bool {
    sys::console::is_console(&root.read("proc/consoles").unwrap_or_default(), port, None)
}

impl fmt::Display for SerialLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.port, self.wire.name)
    }
}

impl SerialLoop {
    /// Output and input of the port in words.
    pub(super) fn lines(&self) -> [String; 2] {
        let [output, input] = self.wire.pins;
        [output.to_owned(), format!("{input} of {}", self.port)]
    }

    /// Advice if no interrupt comes.
    pub(super) fn if_silent(&self) -> String {
        let [output, input] = self.wire.pins;
        format!("connect {output} and {input} of the port with a wire")
    }

    /// Opens the port.
    pub(super) fn open(&self, root: &Root) -> Result<serial::Port, SourceError> {
        let path = PathBuf::from("/dev").join(&self.port);
        if is_console(root, &self.port) {
            return Err(SourceError(format!(
                "the kernel uses {} as its console: choose another port, or remove console={} from the boot parameters",
                path.display(),
                self.port
            )));
        }
        serial::Port::open(&path, self.wire.output, self.wire.input).map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => "see `punctual measure interrupt --list`",
                io::ErrorKind::PermissionDenied => "run as root, or join the group `dialout`",
                io::ErrorKind::ResourceBusy => "another program uses it: end that",
                _ => "it has no hardware, or its driver has no control lines: choose another port",
            };
            SourceError(format!("cannot use {}: {error}; {remedy}", path.display()))
        })
    }
}

/// A line of a GPIO chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpioLine {
    /// The chip: `gpiochip0`.
    pub chip: String,
    /// Number or name of the line.
    pub line: String,
}

/// The use of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineUse {
    /// An input whose edges to this level are interrupts.
    Edges(Active),
    /// An output.
    Output,
}

impl LineUse {
    fn in_words(self) -> &'static str {
        match self {
            Self::Edges(Active::High) => "for rising edges",
            Self::Edges(Active::Low) => "for falling edges",
            Self::Output => "as an output",
        }
    }

    /// The remedy if the driver of the chip refuses the use: it mostly says only EINVAL.
    fn remedy(self) -> &'static str {
        match self {
            Self::Edges(Active::High) => {
                "its chip may report no rising edges, or the line may be only an output: choose another line"
            }
            Self::Edges(Active::Low) => {
                "its chip may report no falling edges, which latmon asks with, or the line may be only an output: choose \
                 another line, or a judge at a serial line, which asks with rising edges"
            }
            Self::Output => "the line may be only an input: choose another line",
        }
    }
}

/// A source that does not exist or cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub(super) String);

impl SourceError {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for SourceName {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let found = match text.split_once(':') {
            None if text == "hpet" => Some(Self::Hpet),
            Some(("gpio", line)) => return Ok(Self::Gpio(line.parse()?)),
            Some(("pps", name)) => numbered(name, "pps").map(Self::Pps),
            Some(("parport", name)) => numbered(name, "parport").map(Self::Parport),
            Some(("rtc", name)) => numbered(name, "rtc").map(Self::Rtc),
            Some(("uio", device)) => return Ok(Self::Uio(device.parse()?)),
            Some(("evdev", name)) => numbered(name, "event").map(Self::Evdev),
            Some(("counter", event)) => return Ok(Self::Counter(event.parse()?)),
            Some(("ptp", input)) => return Ok(Self::Ptp(input.parse()?)),
            Some(("serial", port)) => return Ok(Self::Serial(port.parse()?)),
            Some(("iio", device)) => return Ok(Self::Iio(device.parse()?)),
            _ => None,
        };
        let known = "use hpet, gpio:CHIP/LINE, parport:N, serial:PORT, ptp:N/PIN, counter:N/EVENT, iio:N, pps:N, evdev:N, \
                     rtc:N or uio:N, e.g. gpio:0/17; `punctual measure interrupt --list` lists them";
        found.ok_or_else(|| SourceError(format!("unknown source `{text}`: {known}")))
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hpet => f.write_str("hpet"),
            Self::Gpio(line) => write!(f, "gpio:{line}"),
            Self::Pps(name) => write!(f, "pps:{name}"),
            Self::Parport(name) => write!(f, "parport:{name}"),
            Self::Serial(wired) => write!(f, "serial:{wired}"),
            Self::Rtc(name) => write!(f, "rtc:{name}"),
            Self::Uio(device) => write!(f, "uio:{device}"),
            Self::Evdev(name) => write!(f, "evdev:{name}"),
            Self::Counter(event) => write!(f, "counter:{event}"),
            Self::Ptp(input) => write!(f, "ptp:{input}"),
            Self::Iio(device) => write!(f, "iio:{device}"),
        }
    }
}

impl FromStr for GpioLine {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        // Names of lines can contain spaces and slashes, such as `P9_22 [spi0_sclk]` of a BeagleBone.
        let is_name = |line: &str| !line.trim().is_empty() && !line.contains(char::is_control);
        let parts = text.split_once('/').filter(|(_, line)| is_name(line));
        let number = |chip: &str| chip.strip_prefix("gpiochip").unwrap_or(chip).parse::<u32>().ok();
        let named = parts.and_then(|(chip, line)| Some((number(chip)?, line)));
        let (number, line) = named.ok_or_else(|| {
            SourceError(format!("`{text}` is no line: write CHIP/LINE, e.g. gpiochip0/17, 0/17 or 0/GPIO17"))
        })?;
        Ok(Self { chip: format!("gpiochip{number}"), line: line.to_owned() })
    }
}

impl fmt::Display for GpioLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.chip, self.line)
    }
}

impl GpioLine {
    /// Opens the chip, and finds the line.
    pub(super) fn open(&self, root: &Root) -> Result<(Chip, u32), SourceError> {
        let path = PathBuf::from("/dev").join(&self.chip);
        let chip = Chip::open(&path).map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => {
                    let chips = super::list::names(root, "dev", "gpiochip");
                    let chips = if chips.is_empty() { "no GPIO chip".to_owned() } else { chips.join(", ") };
                    format!("this machine has {chips}")
                }
                io::ErrorKind::PermissionDenied => "run as root, or join the group of the file".to_owned(),
                _ => "see `dmesg`".to_owned(),
            };
            SourceError(format!("cannot open {}: {error}; {remedy}", path.display()))
        })?;
        let by_name = || (0..chip.lines).find(|&line| chip.line(line).is_ok_and(|info| info.name == self.line));
        let offset = self.line.parse().ok().filter(|&line| line < chip.lines).or_else(by_name);
        offset.map(|offset| (chip, offset)).ok_or_else(|| SourceError(format!("no line {self}: see `gpioinfo`")))
    }

    /// The folder of the chip in sysfs, which exists as long as the chip.
    pub(super) fn device(&self, root: &Root) -> PathBuf {
        root.path(&format!("sys/bus/gpio/devices/{}", self.chip))
    }

    /// The line in words: chip, number and name.
    pub(super) fn describe(&self, chip: &Chip, offset: u32) -> String {
        let name = chip.line(offset).map(|info| info.name).unwrap_or_default();
        let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
        format!("line {offset}{name} of {}, {}", self.chip, chip.label)
    }

    /// The error of a line that the kernel refused for this use.
    pub(super) fn error(&self, chip: &Chip, offset: u32, asked: LineUse, error: &io::Error) -> SourceError {
        // Linux describes a line in this way since 5.10.
        let otherwise = if chip.line(offset).is_ok() { asked.remedy() } else { "it needs Linux 5.10 or later" };
        let Self { chip: name, line } = self;
        let line = Self { chip: name.clone(), line: format!("{line} {}", asked.in_words()) };
        line.refused(chip, offset, error, otherwise)
    }

    /// The error of a line that the kernel refused, with the remedy for errors of unknown cause.
    pub(super) fn refused(&self, chip: &Chip, offset: u32, error: &io::Error, otherwise: &str) -> SourceError {
        let user = chip.line(offset).ok().and_then(|info| info.user);
        let remedy = match (error.kind(), user) {
            (io::ErrorKind::ResourceBusy, Some(user)) => format!("{user} uses it: end that, or choose another line"),
            (io::ErrorKind::ResourceBusy, None) => "something else uses it: choose another line".to_owned(),
            _ => otherwise.to_owned(),
        };
        SourceError(format!("cannot use the line {self}: {error}; {remedy}"))
    }
}

/// Takes a parallel port: `parport0`.
pub(super) fn open_parport(root: &Root, name: &str) -> Result<Port, SourceError> {
    let path = PathBuf::from("/dev").join(name);
    let port = Port::open(&path).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "see `punctual measure interrupt --list`; it needs the module ppdev",
            io::ErrorKind::PermissionDenied => "run as root, or join the group `lp`",
            _ => "another driver uses it: unload that, such as lp or pps_parport",
        };
        SourceError(format!("cannot use {}: {error}; {remedy}", path.display()))
    })?;
    match root.number::<i32>(&format!("proc/sys/dev/parport/{name}/irq")) {
        Some(number) if number < 0 => Err(SourceError(format!(
            "{name} has no interrupt: enable it in the firmware, or load parport_pc with io=0x378 irq=7"
        ))),
        _ => Ok(port),
    }
}

/// The error of the HPET.
pub(super) fn hpet_error(error: &io::Error) -> SourceError {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => {
            "this machine has no HPET, or its kernel does not offer it (CONFIG_HPET, not with hpet=disable)"
        }
        io::ErrorKind::PermissionDenied => {
            "run as root; the kernel must be started without hpet_mmap=0, or with hpet_mmap=1 if its default is off"
        }
        io::ErrorKind::ResourceBusy => "another program or the kernel uses its timers: choose another source",
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidData => {
            "its registers cannot be read: the kernel needs CONFIG_HPET_MMAP and hpet_mmap=1; choose another source"
        }
        _ => "its timers may have no periodic interrupt: choose another source",
    };
    SourceError(format!("cannot use {HPET}: {error}; {remedy}"))
}

/// The error of a source of pulses.
pub(super) fn pps_error(path: &Path, error: &io::Error) -> SourceError {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => {
            "load its driver, e.g. `sudo modprobe pps-gpio`, or attach a serial line with `ldattach 18 /dev/ttyS0`"
        }
        io::ErrorKind::PermissionDenied => "run as root",
        _ => "its driver cannot wait for an assert edge: choose another source",
    };
    SourceError(format!("cannot use {}: {error}; {remedy}", path.display()))
}

/// The device of a source of pulses in words.
pub(super) fn pps_device(root: &Root, name: &str) -> String {
    with_name(root, name, &format!("/sys/class/pps/{name}/name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_line_names_its_use() {
        for (asked, words, cause) in [
            (
                LineUse::Edges(Active::High),
                "for rising edges",
                "report no rising edges, or the line may be only an output",
            ),
            (LineUse::Edges(Active::Low), "for falling edges", "report no falling edges, which latmon asks with"),
            (LineUse::Output, "as an output", "only an input"),
        ] {
            assert_eq!(asked.in_words(), words);
            assert!(
                asked.remedy().contains(cause) && asked.remedy().contains("choose another line"),
                "{}",
                asked.remedy()
            );
        }
    }

    #[test]
    fn parses_names_and_prints_them() {
        for (text, name) in [
            ("hpet", "hpet"),
            ("gpio:0/17", "gpio:gpiochip0/17"),
            ("gpio:gpiochip2/GPIO5", "gpio:gpiochip2/GPIO5"),
            ("gpio:0/P9_22 [spi0_sclk]", "gpio:gpiochip0/P9_22 [spi0_sclk]"),
            ("pps:0", "pps:pps0"),
            ("pps:pps1", "pps:pps1"),
            ("evdev:3", "evdev:event3"),
            ("rtc:0", "rtc:rtc0"),
            ("uio:1", "uio:uio1"),
            ("uio:uio2/listen", "uio:uio2/listen"),
            ("counter:0/index", "counter:counter0/index"),
            ("counter:counter1/capture:2", "counter:counter1/capture:2"),
            ("ptp:0", "ptp:ptp0"),
            ("ptp:ptp1/SDP0", "ptp:ptp1/SDP0"),
            ("iio:0", "iio:device0"),
            ("parport:0", "parport:parport0"),
            ("serial:/dev/ttyS0", "serial:ttyS0/RTS-CTS"),
            ("serial:ttyUSB1/dtr-dsr", "serial:ttyUSB1/DTR-DSR"),
            ("iio:device1/my-trigger", "iio:device1/my-trigger"),
        ] {
            let source: SourceName = text.parse().unwrap();
            assert_eq!(source.to_string(), name);
            assert_eq!(name.parse(), Ok(source));
        }
        for wrong in [
            "",
            "HPET",
            "gpio:",
            "gpio:0",
            "gpio:../x/1",
            "gpio:a/1",
            "gpio:0/",
            "gpio:0/ ",
            "pps:x",
            "pps:../null",
            "rtc",
            "rtc:",
            "rtc:../null",
            "uio:x",
            "uio:0/",
            "uio:0/talk",
            "evdev:x",
            "evdev:../null",
            "counter:0",
            "counter:0/",
            "counter:0/idle",
            "counter:0/index:x",
            "ptp:",
            "ptp:x",
            "ptp:0/",
            "ptp:0/a/b",
            "serial:",
            "serial:../null",
            "serial:ttyS0/RTS-DCD",
            "iio:",
            "iio:x",
            "iio:0/",
            "iio:0/a b/c\n",
        ] {
            let error = wrong.parse::<SourceName>().unwrap_err().to_string();
            assert!(error.contains(wrong.split(':').next_back().unwrap_or_default()), "{error}");
        }
    }

    #[test]
    fn a_missing_device_has_a_remedy() {
        let error = |kind: io::ErrorKind| hpet_error(&kind.into()).to_string();
        assert!(error(io::ErrorKind::NotFound).contains("this machine has no HPET"));
        assert!(error(io::ErrorKind::PermissionDenied).contains("run as root"));
        let missing = GpioLine { chip: "gpiochip4000000".to_owned(), line: "1".to_owned() };
        let error = missing.open(&Root::system()).map(drop).unwrap_err().to_string();
        assert!(error.contains("/dev/gpiochip4000000") && error.contains("this machine has"), "{error}");
    }
}
