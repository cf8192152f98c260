//! What is wrong with a campaign file, and where.

use std::{cell::RefCell, fmt};

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Where.
    pub place: Place,
    /// What, in one line, with the remedy.
    pub text: String,
}

/// Everything that is wrong with a campaign file, in the order of its lines; one line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FileMistakes {
    /// The file.
    pub path: String,
    /// The mistakes; at least one.
    pub list: Vec<Mistake>,
}

impl fmt::Display for FileMistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { place, text }) in self.list.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{}:{}:{}: {text}", self.path, place.line, place.column)?;
        }
        Ok(())
    }
}

/// Gathers mistakes while a file is read.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    path: &'a str,
    text: &'a str,
    /// Offset at which each line begins.
    lines: Vec<usize>,
    list: RefCell<Vec<Mistake>>,
}

impl<'a> Collector<'a> {
    pub fn new(path: &'a str, text: &'a str) -> Self {
        let after_newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset + 1);
        Self { path, text, lines: [0].into_iter().chain(after_newlines).collect(), list: RefCell::default() }
    }

    /// Line and column of a byte of the file.
    pub fn place(&self, offset: usize) -> Place {
        let line = self.lines.partition_point(|&begin| begin <= offset);
        let begin = self.lines[line - 1];
        Place { line, column: self.text.get(begin..offset).map_or(0, |before| before.chars().count()) + 1 }
    }

    pub fn add(&self, offset: usize, text: String) {
        self.add_at(self.place(offset), text);
    }

    pub fn add_at(&self, place: Place, text: String) {
        self.list.borrow_mut().push(Mistake { place, text });
    }

    /// The mistakes in the order of their lines, each once; `None` without any.
    pub fn finish(self) -> Option<FileMistakes> {
        let mut list = self.list.into_inner();
        list.sort();
        list.dedup();
        (!list.is_empty()).then(|| FileMistakes { path: self.path.to_owned(), list })
    }
}

/// `, did you mean `x`?` where a known word is near enough; else nothing.
pub(crate) fn nearest(word: &str, known: &[&str]) -> String {
    let word = word.to_lowercase();
    if let Some(name) = known.iter().find(|name| word.len() >= 3 && name.starts_with(&word)) {
        return format!(", did you mean `{name}`?");
    }
    let near = known.iter().map(|name| (strsim::damerau_levenshtein(&word, name), name)).min();
    match near {
        Some((edits, name)) if edits <= (name.len() / 3).max(1) => format!(", did you mean `{name}`?"),
        _ => String::new(),
    }
}

/// `a, b or c`.
pub(super) fn or_list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_has_a_line_and_a_column_of_characters() {
        let collector = Collector::new("a.toml", "ab\nµ=\n\nx");
        let place = |offset| {
            let Place { line, column } = collector.place(offset);
            (line, column)
        };
        assert_eq!([place(0), place(1), place(3), place(5)], [(1, 1), (1, 2), (2, 1), (2, 2)]);
        assert_eq!([place(7), place(8), place(9)], [(3, 1), (4, 1), (4, 2)]);
    }

    #[test]
    fn mistakes_stand_in_the_order_of_lines_and_each_once() {
        let collector = Collector::new("a.toml", "one\ntwo");
        collector.add(5, "second".to_owned());
        collector.add(0, "first".to_owned());
        collector.add(5, "second".to_owned());
        assert_eq!(collector.finish().unwrap().to_string(), "a.toml:1:1: first\na.toml:2:2: second");
        assert_eq!(Collector::new("a.toml", "").finish(), None);
    }

    #[test]
    fn only_a_near_word_is_offered() {
        assert_eq!(nearest("swich", &["idle", "switch"]), ", did you mean `switch`?");
        assert_eq!(nearest("Duraiton", &["duration", "period"]), ", did you mean `duration`?");
        assert_eq!(nearest("prio", &["period", "priority"]), ", did you mean `priority`?");
        assert_eq!(nearest("zzz", &["idle", "switch"]), "");
    }
}
