//! Reads the keys of one table. Keys that were not read are reported as unknown.

use std::{fmt::Display, ops::RangeInclusive};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::mistake::{Collector, Position, nearest, or_list};

/// A table that is being read.
pub(super) struct Fields<'a> {
    /// The kind of table, for messages: `a load`.
    what: &'static str,
    table: &'a DeTable<'a>,
    at: usize,
    taken: Vec<&'static str>,
    /// Keys whose mistake is already reported.
    reported: Vec<&'static str>,
    pub mistakes: &'a Collector<'a>,
}

impl<'a> Fields<'a> {
    /// Starts to read a table that begins at byte `at` of the file.
    pub fn new(what: &'static str, table: &'a DeTable<'a>, at: usize, mistakes: &'a Collector<'a>) -> Self {
        Self { what, table, at, taken: Vec::new(), reported: Vec::new(), mistakes }
    }

    /// Position of the table.
    pub fn position(&self) -> Position {
        self.mistakes.position(self.at)
    }

    /// True if the table has this key.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// Ignores a key whose mistake is already reported.
    pub fn pass_over(&mut self, key: &'static str) {
        self.reported.push(key);
    }

    /// Reads a value of any type.
    pub fn value(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.taken.push(key);
        self.table.get(key)
    }

    /// All keys with their values.
    pub fn values(&self) -> impl Iterator<Item = (&str, &DeValue<'a>)> {
        self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), value.get_ref()))
    }

    /// Position of the value of a key, or of the table if it does not have the key.
    pub fn position_of(&self, key: &str) -> Position {
        self.mistakes.position(self.offset_of(key))
    }

    fn offset_of(&self, key: &str) -> usize {
        self.table.get(key).map_or(self.at, |value| value.span().start)
    }

    /// Reports a mistake at the value of a key, or at the table if it does not have the key.
    pub fn report(&self, key: &str, text: impl Into<String>) {
        self.mistakes.add(self.offset_of(key), text.into());
    }

    /// Reads a string.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.parsed(key, |text| Ok::<_, String>(text.to_owned()))
    }

    /// Reads a string and parses it.
    pub fn parsed<T, E: Display>(&mut self, key: &'static str, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        let value = self.value(key)?;
        self.parse_value(key, value, parse)
    }

    /// Reads and parses a string or a list of strings; empty if the table does not have the key.
    pub fn texts<T, E: Display>(&mut self, key: &'static str, parse: impl Fn(&str) -> Result<T, E>) -> Vec<T> {
        let Some(value) = self.value(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::Array(list) => list.iter().filter_map(|value| self.parse_value(key, value, &parse)).collect(),
            _ => self.parse_value(key, value, &parse).into_iter().collect(),
        }
    }

    /// Reads a whole number within bounds.
    pub fn integer(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(key)?;
        let bounds = || format!("a whole number from {} to {}", range.start(), range.end());
        let Some(written) = value.get_ref().as_integer() else {
            self.report_type(key, value, &bounds());
            return None;
        };
        let number =
            u64::from_str_radix(written.as_str(), written.radix()).ok().filter(|number| range.contains(number));
        if number.is_none() {
            self.report(key, format!("{key}: {written} must be {}", bounds()));
        }
        number
    }

    /// Reads `true` or `false`; false if the table does not have the key.
    pub fn flag(&mut self, key: &'static str) -> bool {
        let Some(value) = self.value(key) else { return false };
        value.get_ref().as_bool().unwrap_or_else(|| {
            self.report_type(key, value, "true or false");
            false
        })
    }

    /// Reads the tables of one key: `[[key]]` several times, or `[key]` once.
    pub fn tables(&mut self, key: &'static str, what: &'static str) -> Vec<Fields<'a>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let list: Vec<&'a Spanned<DeValue<'a>>> = match value.get_ref() {
            DeValue::Array(list) => list.iter().collect(),
            _ => vec![value],
        };
        if list.is_empty() {
            self.report(key, format!("{key} is empty: leave it out, or give it at least one entry"));
        }
        list.into_iter().filter_map(|value| self.table_of(key, what, value)).collect()
    }

    /// Reads a value that must be a table.
    pub fn table_of(&self, key: &str, what: &'static str, value: &'a Spanned<DeValue<'a>>) -> Option<Fields<'a>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.report_type(key, value, &format!("a table, written [{key}] or [[{key}]]"));
        }
        Some(Self::new(what, table?, value.span().start, self.mistakes))
    }

    /// Parses a value that must be a string.
    pub fn parse_value<T, E: Display>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let Some(text) = value.get_ref().as_str() else {
            self.report_type(key, value, "a text in quotes");
            return None;
        };
        parse(text).map_err(|error| self.mistakes.add(value.span().start, format!("{key}: {error}"))).ok()
    }

    fn report_type(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) {
        let found = match value.get_ref() {
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a point",
            DeValue::Boolean(_) => "true or false",
            DeValue::String(_) => "a text in quotes",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.mistakes.add(value.span().start, format!("{key} must be {expected} (got {found})"));
    }

    /// Reports all keys that were not read.
    pub fn finish(self) {
        let known = || self.taken.iter().chain(&self.reported);
        for key in self.table.keys().filter(|key| !known().any(|known| known == key.get_ref())) {
            let (word, what) = (key.get_ref(), self.what);
            let nearest = nearest(word, &self.taken);
            self.mistakes.add(
                key.span().start,
                format!("{what} has no key `{word}`{nearest}: it takes {}", or_list(&self.taken)),
            );
        }
    }
}
