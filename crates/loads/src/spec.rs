//! A load as written: `name[:option[,option]...][@cpus]`, with an option `key=value` or a bare main value.

use std::{fmt, path::PathBuf, str::FromStr};

use machine::CpuList;

use crate::{
    kinds::KINDS,
    units::{parse_size, parse_time_ns, show_size, show_time_ns},
};

/// A load with its options and the CPUs it may use.
///
/// ```
/// let spec: loads::LoadSpec = "switch:10us@0-1".parse()?;
/// assert_eq!(spec.load, loads::Load::Switch { interval_ns: Some(10_000) });
/// assert_eq!(spec.to_string(), "switch:10us@0-1");
/// # Ok::<(), loads::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadSpec {
    /// What to do.
    pub load: Load,
    /// CPUs it may use; the run's own where absent.
    pub cpus: Option<CpuList>,
}

/// What a load does. An option that is absent takes its default, which [`KINDS`] names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Load {
    /// Nothing.
    Idle,
    /// Busy arithmetic, or the classic shell loop.
    Cpu {
        /// The shell loop.
        shell: bool,
    },
    /// Streams through a buffer larger than the caches.
    Cache {
        /// Bytes a thread.
        size: Option<u64>,
    },
    /// Map, touch, unmap.
    Memory {
        /// Bytes a thread.
        size: Option<u64>,
    },
    /// Context switches.
    Switch {
        /// Time between two switches, ns.
        interval_ns: Option<u64>,
    },
    /// Cyclic real-time threads.
    Timer {
        /// SCHED_FIFO priority.
        priority: Option<u8>,
        /// Time between two wake-ups, ns.
        period_ns: Option<u64>,
    },
    /// Writes with fsync.
    Disk {
        /// Folder that the unlinked file is in.
        dir: Option<PathBuf>,
        /// Bytes in all.
        size: Option<u64>,
    },
    /// Packets.
    Net {
        /// Interface for raw frames; loopback where absent.
        interface: Option<String>,
        /// Frames a second in all.
        rate: Option<u64>,
    },
    /// Interrupts.
    Irq,
    /// stress-ng with these arguments.
    StressNg {
        /// At least one.
        arguments: Vec<String>,
    },
}

/// Why a load could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No load of that name.
    #[error("unknown load `{name}`{}: the loads are {}", nearest(.name, &names()), names().join(", "))]
    UnknownLoad {
        /// As written.
        name: String,
    },
    /// The load has no such option.
    #[error("load `{load}` has no option `{option}`{}: {}", nearest(.option, &keys(.load)), usage(.load))]
    UnknownOption {
        /// The load's name.
        load: &'static str,
        /// As written.
        option: String,
    },
    /// The value does not fit the option.
    #[error("`{value}` does not fit load `{load}`: {}", usage(.load))]
    Value {
        /// The load's name.
        load: &'static str,
        /// As written.
        value: String,
    },
    /// An option was given twice.
    #[error("option `{option}` of load `{load}` is given twice: give it once")]
    Twice {
        /// The load's name.
        load: &'static str,
        /// The option's name.
        option: &'static str,
    },
    /// An option that means nothing without another one.
    #[error("load `net` paces frames on a named interface only: use net:if=NAME,rate={0}, or plain net for loopback")]
    RateWithoutInterface(u64),
    /// stress-ng without arguments.
    #[error("load `stress-ng` needs arguments: use `stress-ng:--cpu 2 --vm 1`, for example")]
    NoArguments,
    /// What stands after `@` is not a CPU list.
    #[error("`{0}` is not a list of CPUs: write it as the kernel does, `@0,2-3`")]
    Cpus(String),
}

impl Load {
    /// The load's name in [`KINDS`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Cpu { .. } => "cpu",
            Self::Cache { .. } => "cache",
            Self::Memory { .. } => "memory",
            Self::Switch { .. } => "switch",
            Self::Timer { .. } => "timer",
            Self::Disk { .. } => "disk",
            Self::Net { .. } => "net",
            Self::Irq => "irq",
            Self::StressNg { .. } => "stress-ng",
        }
    }
}

impl FromStr for LoadSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (text, cpus) = split_cpus(text)?;
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let kind = KINDS
            .iter()
            .find(|kind| kind.name == name)
            .ok_or_else(|| SpecError::UnknownLoad { name: name.to_owned() })?;
        let load = if kind.name == "stress-ng" {
            let arguments: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
            if arguments.is_empty() {
                return Err(SpecError::NoArguments);
            }
            Load::StressNg { arguments }
        } else {
            Options::new(kind.name, options).load()?
        };
        Ok(Self { load, cpus })
    }
}

/// Cuts a trailing `@cpus` off. Other text after the last `@` may belong to a folder or an argument.
fn split_cpus(text: &str) -> Result<(&str, Option<CpuList>), SpecError> {
    match text.rsplit_once('@') {
        Some((rest, list)) if list.chars().all(|c| c.is_ascii_digit() || ",-".contains(c)) => match list.parse() {
            Ok(cpus) if !list.is_empty() => Ok((rest, Some(cpus))),
            _ => Err(SpecError::Cpus(list.to_owned())),
        },
        Some((rest, list)) if !rest.contains(':') => Err(SpecError::Cpus(list.to_owned())),
        _ => Ok((text, None)),
    }
}

/// The options of one load, not yet taken.
struct Options<'a> {
    load: &'static str,
    left: Vec<&'a str>,
}

impl<'a> Options<'a> {
    fn new(load: &'static str, text: &'a str) -> Self {
        Self { load, left: text.split(',').filter(|option| !option.is_empty()).collect() }
    }

    fn load(mut self) -> Result<Load, SpecError> {
        let size = |least, most| move |text: &str| parse_size(text).filter(|size| (least..=most).contains(size));
        let time = |least, most| move |text: &str| parse_time_ns(text).filter(|ns| (least..=most).contains(ns));
        let load = match self.load {
            "idle" => Load::Idle,
            "cpu" => Load::Cpu { shell: self.flag("shell") },
            "cache" => Load::Cache { size: self.take("size", size(64 << 10, 64 << 30))? },
            "memory" => Load::Memory { size: self.take("size", size(64 << 10, 64 << 30))? },
            "switch" => Load::Switch { interval_ns: self.main(time(10_000, 1_000_000_000))? },
            "timer" => {
                let priority = |text: &str| text.parse().ok().filter(|prio| (1..=98).contains(prio));
                let named = self.take("prio", priority)?;
                let period_ns = self.take("period", time(50_000, 1_000_000_000))?;
                let bare = self.main(priority)?;
                if named.is_some() && bare.is_some() {
                    return Err(SpecError::Twice { load: self.load, option: "prio" });
                }
                Load::Timer { priority: named.or(bare), period_ns }
            }
            "disk" => Load::Disk {
                dir: self.take("dir", |text| (!text.is_empty()).then(|| PathBuf::from(text)))?,
                size: self.take("size", size(1 << 20, 1 << 40))?,
            },
            "net" => {
                let interface = self.take("if", |text| (!text.is_empty()).then(|| text.to_owned()))?;
                let rate = self.take("rate", |text| text.parse().ok().filter(|rate| (1..=1_000_000).contains(rate)))?;
                match (&interface, rate) {
                    (None, Some(rate)) => return Err(SpecError::RateWithoutInterface(rate)),
                    _ => Load::Net { interface, rate },
                }
            }
            _ => Load::Irq,
        };
        match self.left.first() {
            None => Ok(load),
            Some(option) => Err(SpecError::UnknownOption { load: self.load, option: (*option).to_owned() }),
        }
    }

    /// Takes the bare word `name`.
    fn flag(&mut self, name: &str) -> bool {
        let before = self.left.len();
        self.left.retain(|option| *option != name);
        self.left.len() < before
    }

    /// Takes `key=value`.
    fn take<T>(&mut self, key: &'static str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, SpecError> {
        let value_of =
            |option: &&'a str| option.split_once('=').filter(|(name, _)| *name == key).map(|(_, value)| value);
        let values: Vec<&str> = self.left.iter().filter_map(value_of).collect();
        self.left.retain(|option| value_of(option).is_none());
        match values[..] {
            [] => Ok(None),
            [value] => match parse(value) {
                Some(value) => Ok(Some(value)),
                None => Err(SpecError::Value { load: self.load, value: format!("{key}={value}") }),
            },
            _ => Err(SpecError::Twice { load: self.load, option: key }),
        }
    }

    /// Takes the one bare value.
    fn main<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, SpecError> {
        let Some(at) = self.left.iter().position(|option| !option.contains('=')) else { return Ok(None) };
        let value = self.left.remove(at);
        parse(value).map(Some).ok_or_else(|| SpecError::Value { load: self.load, value: value.to_owned() })
    }
}

impl fmt::Display for LoadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.load.name())?;
        let options = self.load.options();
        if !options.is_empty() {
            write!(f, ":{options}")?;
        }
        match &self.cpus {
            Some(cpus) => write!(f, "@{cpus}"),
            None => Ok(()),
        }
    }
}

impl Load {
    /// The options as written after the colon, those left to their default absent.
    fn options(&self) -> String {
        let size_option = |size: &Option<u64>| size.map(|size| format!("size={}", show_size(size)));
        let parts: Vec<Option<String>> = match self {
            Self::Idle | Self::Irq => vec![],
            Self::Cpu { shell } => vec![shell.then(|| "shell".to_owned())],
            Self::Cache { size } | Self::Memory { size } => vec![size_option(size)],
            Self::Switch { interval_ns } => vec![interval_ns.map(show_time_ns)],
            Self::Timer { priority, period_ns } => vec![
                priority.map(|priority| priority.to_string()),
                period_ns.map(|period_ns| format!("period={}", show_time_ns(period_ns))),
            ],
            Self::Disk { dir, size } => {
                vec![dir.as_ref().map(|dir| format!("dir={}", dir.display())), size_option(size)]
            }
            Self::Net { interface, rate } => {
                vec![interface.as_ref().map(|name| format!("if={name}")), rate.map(|rate| format!("rate={rate}"))]
            }
            Self::StressNg { arguments } => return arguments.join(" "),
        };
        parts.into_iter().flatten().collect::<Vec<_>>().join(",")
    }
}

fn names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// The words that may start an option: `size`, `prio`.
fn keys(load: &str) -> Vec<&'static str> {
    let options = KINDS.iter().filter(|kind| kind.name == load).flat_map(|kind| kind.options);
    options
        .filter_map(|(written, _)| written.split([' ', '=']).find(|word| word.chars().all(char::is_lowercase)))
        .collect()
}

fn usage(load: &str) -> String {
    let options = KINDS.iter().filter(|kind| kind.name == load).flat_map(|kind| kind.options);
    let options: Vec<String> = options.map(|(written, meaning)| format!("{written}, {meaning}")).collect();
    if options.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", options.join("; ")) }
}

fn nearest(word: &str, known: &[&str]) -> String {
    let word = word.split('=').next().unwrap_or(word);
    let closest = known.iter().map(|name| (strsim::jaro_winkler(word, name), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    match closest {
        Some((similarity, name)) if similarity > 0.7 => format!(", did you mean `{name}`?"),
        _ => String::new(),
    }
}
