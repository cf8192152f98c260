//! Mistakes in a campaign file, and their positions.

use std::{cell::RefCell, fmt};

/// A position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Its position.
    pub position: Position,
    /// One line with the problem and the remedy.
    pub text: String,
}

/// All mistakes in a campaign file, in the order of its lines; displayed as one line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FileMistakes {
    /// The file.
    pub path: String,
    /// The mistakes; at least one.
    pub list: Vec<Mistake>,
}

impl fmt::Display for FileMistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { position, text }) in self.list.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{}:{}:{}: {text}", self.path, position.line, position.column)?;
        }
        Ok(())
    }
}

/// Collects mistakes while a file is read.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    path: &'a str,
    text: &'a str,
    /// Byte offset of each line.
    lines: Vec<usize>,
    list: RefCell<Vec<Mistake>>,
}

impl<'a> Collector<'a> {
    /// The path of the file.
    pub fn path(&self) -> &'a str {
        self.path
    }

    pub fn new(path: &'a str, text: &'a str) -> Self {
        let after_newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset + 1);
        Self { path, text, lines: [0].into_iter().chain(after_newlines).collect(), list: RefCell::default() }
    }

    /// Line and column of a byte offset.
    pub fn position(&self, offset: usize) -> Position {
        let line = self.lines.partition_point(|&begin| begin <= offset);
        let begin = self.lines[line - 1];
        Position { line, column: self.text.get(begin..offset).map_or(0, |before| before.chars().count()) + 1 }
    }

    pub fn add(&self, offset: usize, text: String) {
        self.add_at(self.position(offset), text);
    }

    pub fn add_at(&self, position: Position, text: String) {
        self.list.borrow_mut().push(Mistake { position, text });
    }

    /// The mistakes in the order of their lines, without duplicates; `None` if there are none.
    pub fn finish(self) -> Option<FileMistakes> {
        let mut list = self.list.into_inner();
        list.sort();
        list.dedup();
        (!list.is_empty()).then(|| FileMistakes { path: self.path.to_owned(), list })
    }
}

/// Returns `, did you mean `x`?` if a known word is similar enough; else nothing.
pub(crate) fn nearest(word: &str, known: &[&str]) -> String {
    analysis::nearest(word, known.iter().copied()).map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

/// Formats a list as `a, b or c`.
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
    fn counts_columns_in_characters() {
        let collector = Collector::new("a.toml", "ab\nµ=\n\nx");
        let position = |offset| {
            let Position { line, column } = collector.position(offset);
            (line, column)
        };
        assert_eq!([position(0), position(1), position(3), position(5)], [(1, 1), (1, 2), (2, 1), (2, 2)]);
        assert_eq!([position(7), position(8), position(9)], [(3, 1), (4, 1), (4, 2)]);
    }

    #[test]
    fn sorts_mistakes_by_line_and_removes_duplicates() {
        let collector = Collector::new("a.toml", "one\ntwo");
        collector.add(5, "second".to_owned());
        collector.add(0, "first".to_owned());
        collector.add(5, "second".to_owned());
        assert_eq!(collector.finish().unwrap().to_string(), "a.toml:1:1: first\na.toml:2:2: second");
        assert_eq!(Collector::new("a.toml", "").finish(), None);
    }

    #[test]
    fn suggests_only_similar_words() {
        assert_eq!(nearest("swich", &["idle", "switch"]), ", did you mean `switch`?");
        assert_eq!(nearest("Duraiton", &["duration", "period"]), ", did you mean `duration`?");
        assert_eq!(nearest("prio", &["period", "priority"]), ", did you mean `priority`?");
        assert_eq!(nearest("zzz", &["idle", "switch"]), "");
    }
}
