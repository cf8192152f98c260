//! Variables in the configuration of boot loaders, as a shell reads them.

use super::{changed, only_change, reduced};
use crate::{Root, boot_arguments};

/// The value of a shell variable, with its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellValue {
    pub(super) text: String,
    quote: char,
    /// True if it is one word or one text in quotes, which another text can replace. Other forms, such as `'a'" b"`, `$(cat
    /// FILE)` or a text over several lines, are only read.
    is_plain: bool,
}

impl ShellValue {
    /// The value at the start of a text, which a comment can follow.
    fn parse(text: &str) -> Self {
        const COMMAND: [&str; 2] = ["$(", "`"];
        let has_command = |text: &str| COMMAND.iter().any(|begin| text.contains(begin));
        let is_end = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', ';', '#']);
        let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
        let Some(quote) = quote else {
            let word = text.split([' ', '\t', ';', '#']).next().unwrap_or_default();
            let is_plain = !word.contains(['"', '\'', '\\']) && !has_command(word);
            let text = if is_plain { word.to_owned() } else { without_quotes(text) };
            return Self { text, quote: '"', is_plain };
        };
        let mut is_escaped = false;
        let ends = |c: char| {
            let ends = c == quote && !is_escaped;
            is_escaped = c == '\\' && quote == '"' && !is_escaped;
            ends
        };
        let is_plain = |(inside, rest): &(&str, &str)| is_end(rest) && !(quote == '"' && has_command(inside));
        match text[1..].split_once(ends).filter(is_plain) {
            Some((inside, _)) => Self { text: inside.to_owned(), quote, is_plain: true },
            None => Self { text: without_quotes(text), quote, is_plain: false },
        }
    }
}

/// A text without quotes and commands, whose words are arguments.
fn without_quotes(text: &str) -> String {
    text.replace(['"', '\'', '\\', '`', '(', ')'], "")
}

/// An assignment of a shell variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    path: String,
    /// The text before the value: `NAME=`, `export NAME+=`.
    pub(super) head: String,
    pub(super) value: ShellValue,
    /// True if its value contains the one before.
    inherits: bool,
}

impl Assignment {
    /// The assignment of this variable in a line.
    pub(super) fn of(path: &str, line: &str, name: &str) -> Option<Self> {
        // An indented line is a part of a condition, which can be false.
        let is_indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        let plain = line.strip_prefix("export ").map_or(line, str::trim_start).strip_prefix(name)?;
        let value = plain.strip_prefix("+=").or_else(|| plain.strip_prefix('='))?;
        let head = &line[..line.len() - value.len()];
        let mut value = ShellValue::parse(value);
        value.is_plain &= !is_indented;
        let contains_itself = || {
            let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            value.text.contains(&format!("${{{name}}}")) || value.text.split(&format!("${name}")).skip(1).any(is_end)
        };
        let inherits = head.ends_with("+=") || (value.quote == '"' && contains_itself());
        Some(Self { path: path.to_owned(), head: head.to_owned(), value, inherits })
    }

    /// The line with this value. A part that is appended begins with a blank.
    pub(super) fn line(head: &str, value: &ShellValue, text: &str) -> String {
        let blank = if head.ends_with("+=") && !text.is_empty() { " " } else { "" };
        format!("{head}{0}{blank}{text}{0}", value.quote)
    }

    fn with(&self, added: &[&str]) -> String {
        if !self.value.is_plain {
            return only_change(&self.place(), &self.value.text, added);
        }
        let write = |text: &str| Self::line(&self.head, &self.value, text);
        changed(&self.place(), &self.value.text, added, write)
    }

    /// The file, and the variable if its line is not known as a whole.
    fn place(&self) -> String {
        match !self.value.is_plain || boot_arguments::is_incomplete(&self.value.text) {
            true => format!("in /{}, {}", self.path, self.head.trim_end_matches(['=', '+'])),
            false => format!("in /{}", self.path),
        }
    }

    /// The line without the arguments that others replace; `None` if it has none of them.
    pub(super) fn without(&self, added: &[&str]) -> Option<String> {
        if !self.value.is_plain {
            let old = boot_arguments::replaced(&self.value.text, added);
            return (!old.is_empty()).then(|| format!("{}: remove {}", self.place(), old.join(" ")));
        }
        let write = |text: &str| Self::line(&self.head, &self.value, text);
        reduced(&self.place(), &self.value.text, added, write)
    }
}

/// The assignments that make the value of a variable, in their order: the last one, and those before it whose value it
/// contains.
pub(super) fn in_effect(root: &Root, files: &[String], name: &str) -> Vec<Assignment> {
    let mut all: Vec<Assignment> = Vec::new();
    for path in files {
        let text = joined(&root.read(path).unwrap_or_default());
        all.extend(text.lines().filter_map(|line| Assignment::of(path, line, name)));
    }
    let first = all.iter().rposition(|assignment| !assignment.inherits).unwrap_or(0);
    all.split_off(first.min(all.len()))
}

/// The new lines of files of shell variables.
pub(super) fn shell_variable(root: &Root, files: &[String], name: &str, added: &[&str]) -> Vec<String> {
    let all = in_effect(root, files, name);
    let Some((last, earlier)) = all.split_last() else {
        let path = files.first().map_or("", |path| path);
        return vec![format!("in /{path}: {name}=\"{}\"", added.join(" "))];
    };
    let mut lines: Vec<String> = earlier.iter().filter_map(|assignment| assignment.without(added)).collect();
    lines.push(last.with(added));
    lines
}

/// The new line of a file of U-Boot variables, whose values end with the line.
pub(super) fn after_equals(root: &Root, path: &str, name: &str, added: &[&str]) -> String {
    let text = root.read(path).unwrap_or_default();
    let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
    let value = values.next_back().unwrap_or_default();
    changed(&format!("in /{path}"), value, added, |line| format!("{name}={line}"))
}

/// The text of a shell's file with each continued line in one.
pub(super) fn joined(text: &str) -> String {
    text.replace("\\\n", "")
}
