//! A load as the user writes it: `name[:option[,option]...][@cpus]`. An option is `key=value` or one bare value.

use std::{fmt, str::FromStr};

use machine::CpuList;

use crate::kinds::{Idle, KINDS, Load};

/// A load with its options and the CPUs that it may use.
///
/// ```
/// let spec: loads::LoadSpec = "switch:10us@0-1".parse()?;
/// assert_eq!(spec.load, loads::Load::Switch(loads::kinds::Switch { interval_ns: Some(10_000) }));
/// assert_eq!(spec.to_string(), "switch:10us@0-1");
/// # Ok::<(), loads::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadSpec {
    /// The load and its options.
    pub load: Load,
    /// CPUs that the load may use; `None` for the CPUs of the run.
    pub cpus: Option<CpuList>,
}

impl LoadSpec {
    /// No load.
    pub const IDLE: Self = Self { load: Load::Idle(Idle), cpus: None };
}

/// The reasons why a text is not a valid load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No load has this name.
    #[error("unknown load `{name}`{}: the loads are {}", nearest(.name, &names()), names().join(", "))]
    UnknownLoad {
        /// Name as written.
        name: String,
    },
    /// The load has no such option.
    #[error("load `{load}` has no option `{option}`{}: {}", nearest(.option, &keys(.load)), usage(.load))]
    UnknownOption {
        /// Name of the load.
        load: &'static str,
        /// Option as written.
        option: String,
    },
    /// The option does not accept the value.
    #[error("invalid value `{value}` for load `{load}`: {}", usage(.load))]
    Value {
        /// Name of the load.
        load: &'static str,
        /// Value as written, with its key.
        value: String,
    },
    /// An option is given twice.
    #[error("option `{option}` of load `{load}` is given twice: give it once")]
    Twice {
        /// Name of the load.
        load: &'static str,
        /// Name of the option.
        option: &'static str,
    },
    /// The options are not valid together, or a required one is missing.
    #[error("{0}")]
    Invalid(String),
    /// The text after `@` is not a CPU list.
    #[error("`{0}` is not a list of CPUs: write it as the kernel does, e.g. `@0,2-3`")]
    Cpus(String),
}

impl FromStr for LoadSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (text, cpus) = split_cpus(text.trim())?;
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let load = Load::parse(name, options)?;
        Ok(Self { load, cpus })
    }
}

/// Splits off a trailing `@cpus`. Any other text after the last `@` belongs to a folder or an argument.
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

fn names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// The keys and flags of a load: `size`, `prio`, `shell`.
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
    use crate::kinds::{any_load, examples};

    fn spec(text: &str) -> LoadSpec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn reads_and_writes_the_examples_of_every_load() {
        for (text, load) in examples() {
            assert_eq!(spec(&text), LoadSpec { load: load.clone(), cpus: None });
            assert_eq!(spec(&text).to_string(), text);
            let with_cpus = LoadSpec { load, cpus: Some([0, 2, 3].into_iter().collect()) };
            assert_eq!(spec(&format!("{text}@0,2-3")), with_cpus);
        }
        assert_eq!(spec("timer:period=1ms,prio=98"), spec("timer:98,period=1ms"));
        assert_eq!(spec("disk:size=64M,dir=/tmp"), spec("disk:dir=/tmp,size=64M"));
    }

    #[test]
    fn explains_every_invalid_text() {
        for (text, expected) in [
            ("", "unknown load ``: the loads are idle, cpu, cache"),
            ("swich", "unknown load `swich`, did you mean `switch`?: the loads are"),
            ("qqq:1", "unknown load `qqq`: the loads are"),
            ("cache:sise=1M", "has no option `sise=1M`, did you mean `size`?: it takes size=BYTES"),
            ("irq:fast", "load `irq` has no option `fast`: it takes none"),
            ("cpu:shel", "has no option `shel`, did you mean `shell`?"),
            ("switch:10", "invalid value `10` for load `switch`: it takes TIME"),
            ("switch:9us", "invalid value `9us`"),
            ("timer:99", "invalid value `99` for load `timer`"),
            ("timer:0", "invalid value `0`"),
            ("timer:50,prio=51", "option `prio` of load `timer` is given twice"),
            ("cache:size=1M,size=2M", "option `size` of load `cache` is given twice"),
            ("cache:size=1", "invalid value `size=1`"),
            ("disk:dir=", "invalid value `dir=`"),
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
    fn lists_the_keys_of_a_load() {
        assert_eq!(keys("timer"), ["prio", "period"]);
        assert_eq!(keys("cpu"), ["shell"]);
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(load in any_load(), cpus in option::of(vec(0u32..300, 1..6))) {
            let written = LoadSpec { load, cpus: cpus.map(|cpus| cpus.into_iter().collect()) };
            prop_assert_eq!(written.to_string().parse::<LoadSpec>(), Ok(written));
        }

        #[test]
        fn writes_any_valid_text_so_that_it_reads_the_same(
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
