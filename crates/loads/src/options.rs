//! The options of a load as text: reading them, and writing them again.

use std::{ops::RangeInclusive, str::FromStr};

use crate::{
    SpecError,
    units::{parse_size, parse_time_ns},
};

/// The options of one load that are not read yet.
pub(crate) struct Options<'a> {
    load: &'static str,
    unread: Vec<&'a str>,
}

impl<'a> Options<'a> {
    pub(crate) fn new(load: &'static str, text: &'a str) -> Self {
        Self { load, unread: text.split(',').filter(|option| !option.is_empty()).collect() }
    }

    /// Returns `load`, or an error if an option is still unread.
    pub(crate) fn finish<T>(self, load: T) -> Result<T, SpecError> {
        match self.unread.first() {
            None => Ok(load),
            Some(option) => Err(SpecError::UnknownOption { load: self.load, option: (*option).to_owned() }),
        }
    }

    /// Reads the bare word `name`.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.unread.len();
        self.unread.retain(|option| *option != name);
        self.unread.len() < before
    }

    /// Reads `key=value`.
    pub(crate) fn value<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, SpecError> {
        let value_of =
            |option: &&'a str| option.split_once('=').filter(|(name, _)| *name == key).map(|(_, value)| value);
        let values: Vec<&str> = self.unread.iter().filter_map(value_of).collect();
        self.unread.retain(|option| value_of(option).is_none());
        match values[..] {
            [] => Ok(None),
            [value] => match parse(value) {
                Some(value) => Ok(Some(value)),
                None => Err(SpecError::Value { load: self.load, value: format!("{key}={value}") }),
            },
            _ => Err(SpecError::Twice { load: self.load, option: key }),
        }
    }

    /// Reads the bare value, for the one option that needs no key.
    pub(crate) fn bare_value<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, SpecError> {
        let Some(at) = self.unread.iter().position(|option| !option.contains('=')) else { return Ok(None) };
        let value = self.unread.remove(at);
        parse(value).map(Some).ok_or_else(|| SpecError::Value { load: self.load, value: value.to_owned() })
    }
}

/// Parses a size in bytes within `range`.
pub(crate) fn size(range: RangeInclusive<u64>) -> impl Fn(&str) -> Option<u64> {
    move |text| parse_size(text).filter(|size| range.contains(size))
}

/// Parses a time in ns within `range`.
pub(crate) fn time_ns(range: RangeInclusive<u64>) -> impl Fn(&str) -> Option<u64> {
    move |text| parse_time_ns(text).filter(|ns| range.contains(ns))
}

/// Parses a number within `range`.
pub(crate) fn number<T: FromStr + PartialOrd>(range: RangeInclusive<T>) -> impl Fn(&str) -> Option<T> {
    move |text| text.parse().ok().filter(|number| range.contains(number))
}

/// Parses a text that is not empty.
pub(crate) fn text<T: for<'a> From<&'a str>>(text: &str) -> Option<T> {
    (!text.is_empty()).then(|| T::from(text))
}

/// Writes the options that are present, separated by commas.
pub(crate) fn join(options: impl IntoIterator<Item = Option<String>>) -> String {
    options.into_iter().flatten().collect::<Vec<_>>().join(",")
}
