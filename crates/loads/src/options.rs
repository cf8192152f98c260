//! The options of a load, from text.

use std::path::PathBuf;

use crate::{
    Load, SpecError,
    units::{parse_size, parse_time_ns},
};

/// The options of one load, not yet taken.
pub(crate) struct Options<'a> {
    load: &'static str,
    left: Vec<&'a str>,
}

impl<'a> Options<'a> {
    pub(crate) fn new(load: &'static str, text: &'a str) -> Self {
        Self { load, left: text.split(',').filter(|option| !option.is_empty()).collect() }
    }

    /// The load with its options; an error if any option is left over.
    pub(crate) fn load(mut self) -> Result<Load, SpecError> {
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
