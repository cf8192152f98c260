//! A page of text: paragraphs, commands and tables, none wider than the page.

use textwrap::core::display_width;

use super::table::Table;
use crate::style::{Ink, Spans, Style, clean};

/// Indentation of everything below a heading.
const INDENT: &str = "  ";
/// Lines are never wrapped tighter than this; on a narrower terminal they run over its edge.
const NARROWEST: usize = 24;

/// Text under way.
pub(crate) struct Page {
    out: String,
    pub(crate) style: Style,
    width: usize,
}

impl Page {
    pub(crate) fn new(style: Style, width: usize) -> Self {
        Self { out: String::new(), style, width: width.max(NARROWEST) }
    }

    /// The text, ending in one line break; in plain ASCII where the style asks for it.
    pub(crate) fn finish(self) -> String {
        if self.style.unicode {
            self.out
        } else {
            self.out.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
        }
    }

    /// The columns that are left below a heading.
    pub(crate) fn room(&self) -> usize {
        self.width - INDENT.len()
    }

    /// A blank line and a heading.
    pub(crate) fn heading(&mut self, text: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.wrapped(Ink::Title, "", "", text);
    }

    /// A paragraph below a heading.
    pub(crate) fn text(&mut self, ink: Ink, text: &str) {
        self.wrapped(ink, INDENT, INDENT, text);
    }

    /// A named fact: `name`, then the text beside it, the names `column` wide.
    pub(crate) fn fact(&mut self, name: &str, column: usize, text: &str) {
        let first = format!("{INDENT}{name:column$}  ");
        self.wrapped(Ink::Plain, &first, &" ".repeat(first.len()), text);
    }

    /// A judgement: mark and word in colour, then the text beside them. Returns the column where the text begins.
    pub(crate) fn item(&mut self, ink: Ink, word: &str, column: usize, text: &str) -> usize {
        let label = format!("{} {word}", self.style.mark(ink));
        let label = format!("{label}{}", " ".repeat((column + 3).saturating_sub(display_width(&label))));
        let begins = INDENT.len() + display_width(&label) + 1;
        let lines = self.wrap("", "", text, self.width.saturating_sub(begins));
        for (n, line) in lines.iter().enumerate() {
            let label = if n == 0 { self.style.paint(ink, &label) } else { " ".repeat(begins - INDENT.len() - 1) };
            self.push(&format!("{INDENT}{label} {line}"));
        }
        begins
    }

    /// Something that the reader must not miss.
    pub(crate) fn remark(&mut self, text: &str) {
        self.item(Ink::Alarm, "note", 4, text);
    }

    /// A blank line.
    pub(crate) fn gap(&mut self) {
        self.out.push('\n');
    }

    /// A paragraph that begins at `column`.
    pub(crate) fn below(&mut self, column: usize, ink: Ink, text: &str) {
        let indent = " ".repeat(column.min(self.width / 2));
        self.wrapped(ink, &indent, &indent, text);
    }

    /// Commands to paste, one a line of `text`. A long one goes on behind a backslash, so that the shell still reads one
    /// command.
    pub(crate) fn command(&mut self, column: usize, text: &str) {
        let indent = " ".repeat(column.min(self.width / 2));
        for command in text.lines().filter(|line| !line.trim().is_empty()) {
            for line in continued(&clean(command), self.width - indent.len()) {
                self.push(&format!("{indent}{}", self.style.paint(Ink::Accent, &line)));
            }
        }
    }

    /// A table below a heading.
    pub(crate) fn table(&mut self, table: &Table) {
        for line in table.lines(self.room()) {
            self.line(&line);
        }
    }

    /// A table with a note on each row: below the row, or below the table where that is stacked. Empty notes are left out.
    pub(crate) fn table_with_notes(&mut self, table: &Table, notes: &[String]) {
        let lines = table.lines(self.room());
        let beside = lines.len() == notes.len() + 1;
        for (n, line) in lines.iter().enumerate() {
            self.line(line);
            if beside && n > 0 {
                self.note(&notes[n - 1]);
            }
        }
        if !beside {
            notes.iter().for_each(|note| self.note(note));
        }
    }

    fn note(&mut self, text: &str) {
        if !text.is_empty() {
            self.below(2 * INDENT.len(), Ink::Quiet, text);
        }
    }

    /// One line below a heading, of pieces that are known to fit.
    pub(crate) fn line(&mut self, spans: &Spans) {
        let painted: String = spans.iter().map(|(ink, text)| self.style.paint(*ink, text)).collect();
        self.push(&format!("{INDENT}{painted}"));
    }

    fn wrapped(&mut self, ink: Ink, first: &str, rest: &str, text: &str) {
        for line in self.wrap(first, rest, text, self.width) {
            let line = self.style.paint(ink, &line);
            self.push(&line);
        }
    }

    fn wrap(&self, first: &str, rest: &str, text: &str, width: usize) -> Vec<String> {
        let options = textwrap::Options::new(width.max(NARROWEST / 2)).initial_indent(first).subsequent_indent(rest);
        textwrap::wrap(&clean(text), options).into_iter().map(std::borrow::Cow::into_owned).collect()
    }

    fn push(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

/// Breaks a shell command at blanks outside quotes, each line but the last ending in ` \`.
fn continued(command: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in shell_words(command) {
        match lines.last_mut() {
            // Two columns stay free for the backslash.
            Some(line) if display_width(line) + 1 + display_width(word) + 2 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(line) => {
                line.push_str(" \\");
                lines.push(format!("  {word}"));
            }
            None => lines.push(word.to_owned()),
        }
    }
    if display_width(command) <= width { vec![command.to_owned()] } else { lines }
}

/// The words of a command; quoted blanks do not divide.
fn shell_words(command: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    command
        .split(move |c: char| {
            match (quote, c) {
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if open == c => quote = None,
                _ => {}
            }
            quote.is_none() && c == ' '
        })
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_go_on_behind_a_backslash_and_quotes_stay_whole() {
        let command = "echo 'a b c' | sudo tee /etc/security/limits.d/90-punctual.conf";
        assert_eq!(continued(command, 80), [command]);
        assert_eq!(continued(command, 30), ["echo 'a b c' | sudo tee \\", "  /etc/security/limits.d/90-punctual.conf"]);
    }

    #[test]
    fn a_record_cannot_drive_the_terminal() {
        let mut page = Page::new(Style { color: false, unicode: true }, 80);
        page.text(Ink::Plain, "host\x1b[2Jname\u{9b}0m");
        page.command(2, "ls\x07");
        assert!(!page.finish().chars().any(|c| c.is_control() && c != '\n'));
    }
}
