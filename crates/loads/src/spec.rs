//! A load as written: `name[:option[,option]...][@cpus]`, with an option `key=value` or a bare main value.

use std::{fmt, path::PathBuf, str::FromStr};

use machine::CpuList;

use crate::{
    kinds::KINDS,
    options::Options,
    units::{show_size, show_time_ns},
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
        let (text, cpus) = split_cpus(text.trim())?;
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

/// The words that may start an option of a load: `size`, `prio`, `shell`.
fn keys(load: &str) -> Vec<&'static str> {
    let options = KINDS.iter().filter(|kind| kind.name == load).flat_map(|kind| kind.options);
    let word = |written: &'static str| match written.split_once('=') {
        Some((before, _)) => before.rsplit(' ').next(),
        None => written.chars().all(char::is_lowercase).then_some(written),
    };
    options.filter_map(|(written, _)| word(written)).collect()
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

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};

    use super::*;

    fn spec(text: &str) -> LoadSpec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn loads_read_as_they_are_written() {
        for (text, load) in [
            ("idle", Load::Idle),
            ("cpu", Load::Cpu { shell: false }),
            ("cpu:shell", Load::Cpu { shell: true }),
            ("cache:size=64M", Load::Cache { size: Some(64 << 20) }),
            ("memory", Load::Memory { size: None }),
            ("switch:10us", Load::Switch { interval_ns: Some(10_000) }),
            ("timer:98", Load::Timer { priority: Some(98), period_ns: None }),
            ("timer:98,period=1ms", Load::Timer { priority: Some(98), period_ns: Some(1_000_000) }),
            ("disk:dir=/tmp,size=64M", Load::Disk { dir: Some("/tmp".into()), size: Some(64 << 20) }),
            ("disk:dir=/a@b", Load::Disk { dir: Some("/a@b".into()), size: None }),
            ("net:if=veth0,rate=10000", Load::Net { interface: Some("veth0".into()), rate: Some(10_000) }),
            ("irq", Load::Irq),
            (
                "stress-ng:--cpu 2 --vm 1",
                Load::StressNg { arguments: ["--cpu", "2", "--vm", "1"].map(Into::into).into() },
            ),
        ] {
            assert_eq!(spec(text), LoadSpec { load: load.clone(), cpus: None });
            assert_eq!(spec(text).to_string(), text);
            let placed = LoadSpec { load, cpus: Some([0, 2, 3].into_iter().collect()) };
            assert_eq!(spec(&format!("{text}@0,2-3")), placed);
        }
        assert_eq!(spec("timer:period=1ms,prio=98"), spec("timer:98,period=1ms"));
        assert_eq!(spec("disk:size=64M,dir=/tmp"), spec("disk:dir=/tmp,size=64M"));
    }

    #[test]
    fn every_way_to_be_wrong_has_its_sentence() {
        for (text, expected) in [
            ("", "unknown load ``: the loads are idle, cpu, cache"),
            ("swich", "unknown load `swich`, did you mean `switch`?: the loads are"),
            ("qqq:1", "unknown load `qqq`: the loads are"),
            ("cache:sise=1M", "has no option `sise=1M`, did you mean `size`?: it takes size=BYTES"),
            ("irq:fast", "load `irq` has no option `fast`: it takes none"),
            ("cpu:shel", "has no option `shel`, did you mean `shell`?"),
            ("switch:10", "`10` does not fit load `switch`: it takes TIME"),
            ("switch:9us", "`9us` does not fit"),
            ("timer:99", "`99` does not fit load `timer`"),
            ("timer:0", "`0` does not fit"),
            ("timer:50,prio=51", "option `prio` of load `timer` is given twice"),
            ("cache:size=1M,size=2M", "option `size` of load `cache` is given twice"),
            ("cache:size=1", "`size=1` does not fit"),
            ("disk:dir=", "`dir=` does not fit"),
            ("net:rate=5", "use net:if=NAME,rate=5"),
            ("stress-ng", "needs arguments"),
            ("cpu@", "`` is not a list of CPUs"),
            ("cpu@x", "`x` is not a list of CPUs"),
            ("cpu@3-1", "`3-1` is not a list of CPUs"),
        ] {
            let error = text.parse::<LoadSpec>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_table_names_what_the_grammar_takes() {
        for kind in KINDS.iter().filter(|kind| kind.name != "stress-ng") {
            assert_eq!(spec(kind.name).load.name(), kind.name);
            assert!(!kind.description.is_empty());
        }
        assert_eq!(keys("timer"), ["prio", "period"]);
        assert_eq!(keys("cpu"), ["shell"]);
    }

    fn load() -> impl Strategy<Value = Load> {
        let size = || option::of((64u64 << 10)..=(64 << 30));
        let time = |least: u64| option::of(least..=1_000_000_000);
        let disk_size = option::of((1u64 << 20)..=(1 << 40));
        prop_oneof![
            Just(Load::Idle),
            Just(Load::Irq),
            any::<bool>().prop_map(|shell| Load::Cpu { shell }),
            size().prop_map(|size| Load::Cache { size }),
            size().prop_map(|size| Load::Memory { size }),
            time(10_000).prop_map(|interval_ns| Load::Switch { interval_ns }),
            (option::of(1u8..=98), time(50_000)).prop_map(|(priority, period_ns)| Load::Timer { priority, period_ns }),
            (option::of("/([a-z:= ]{0,11}[a-z])?"), disk_size)
                .prop_map(|(dir, size)| Load::Disk { dir: dir.map(Into::into), size }),
            ("[a-z0-9.@]{1,14}[a-z]", option::of(1u64..=1_000_000))
                .prop_map(|(name, rate)| Load::Net { interface: Some(name), rate }),
            vec("[-a-z0-9,=:/]{1,9}", 1..4).prop_map(|arguments| Load::StressNg { arguments }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(load in load(), cpus in option::of(vec(0u32..300, 1..6))) {
            let written = LoadSpec { load, cpus: cpus.map(|cpus| cpus.into_iter().collect()) };
            prop_assert_eq!(written.to_string().parse::<LoadSpec>(), Ok(written));
        }

        #[test]
        fn what_reads_is_written_so_that_it_reads_back(
            text in "(cpu|cache|switch|timer|disk|net|stress-ng):[-a-z0-9=,/@. ]{0,16}(@[0-9,-]{0,4})?"
        ) {
            if let Ok(read) = text.parse::<LoadSpec>() {
                prop_assert_eq!(read.to_string().parse::<LoadSpec>(), Ok(read));
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<LoadSpec>();
        }
    }
}
