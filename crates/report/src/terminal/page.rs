//! A page of text: paragraphs, commands and tables, none wider than the page.

use textwrap::core::display_width;

use super::table::Table;
use crate::remedy::is_command;
use crate::style::{Ink, Spans, Style};
use record::visible::one_line;

/// Indentation of text below a heading.
const INDENT: &str = "  ";
/// The smallest width that text is wrapped to; on narrower terminals, lines exceed the width.
const NARROWEST: usize = 24;

/// A page under construction.
pub(crate) struct Page {
    out: String,
    pub(crate) style: Style,
    width: usize,
    /// The remedies on the page.
    remedies: Vec<String>,
}

/// A note on a row of a table; either part can be empty.
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) remedy: String,
}

impl Page {
    pub(crate) fn new(style: Style, width: usize) -> Self {
        Self { out: String::new(), style, width: width.max(NARROWEST), remedies: Vec::new() }
    }

    /// The text, ending with one line break; in plain ASCII if the style requires it.
    pub(crate) fn finish(self) -> String {
        if self.style.unicode {
            self.out
        } else {
            self.out.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
        }
    }

    /// The columns available below a heading.
    pub(crate) fn inner_width(&self) -> usize {
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

    /// A line to paste into a configuration file; a comment is continued as a comment.
    pub(crate) fn of_file(&mut self, line: &str) {
        match line.strip_prefix("# ") {
            Some(comment) => {
                let mark = format!("{INDENT}# ");
                self.wrapped(Ink::Plain, &mark, &mark, comment);
            }
            None => self.line(&vec![(Ink::Plain, line.to_owned())]),
        }
    }

    /// A named fact: `name` padded to `column` columns, then the text.
    pub(crate) fn fact(&mut self, name: &str, column: usize, text: &str) {
        let first = format!("{INDENT}{name:column$}  ");
        self.wrapped(Ink::Plain, &first, &" ".repeat(first.len()), text);
    }

    /// An assessment: mark and word in colour, then the text. Returns the column where the text starts.
    pub(crate) fn item(&mut self, ink: Ink, word: &str, column: usize, text: &str) -> usize {
        let label = format!("{} {word}", self.style.mark(ink));
        let label = format!("{label}{}", " ".repeat((column + 3).saturating_sub(display_width(&label))));
        let start = INDENT.len() + display_width(&label) + 1;
        let lines = self.wrap("", "", text, self.width.saturating_sub(start));
        for (n, line) in lines.iter().enumerate() {
            let label = if n == 0 { self.style.paint(ink, &label) } else { " ".repeat(start - INDENT.len() - 1) };
            self.push(&format!("{INDENT}{label} {line}"));
        }
        start
    }

    /// The answer of the page: a mark, then the text in the colour of `ink`.
    pub(crate) fn answer(&mut self, ink: Ink, text: &str) {
        let mark = self.style.mark(ink);
        let first = if mark.is_empty() { String::new() } else { format!("{mark} ") };
        let rest = " ".repeat(display_width(&first));
        self.wrapped(ink, &first, &rest, text);
    }

    /// A named fact whose name is coloured.
    pub(crate) fn labelled(&mut self, ink: Ink, name: &str, column: usize, text: &str) {
        let start = INDENT.len() + column + 2;
        let blanks = " ".repeat(column.saturating_sub(display_width(name)));
        for (n, line) in self.wrap("", "", text, self.width.saturating_sub(start)).into_iter().enumerate() {
            let before = match n {
                0 => format!("{INDENT}{}{blanks}  ", self.style.paint(ink, name)),
                _ => " ".repeat(start),
            };
            self.push(&format!("{before}{line}"));
        }
    }

    /// An important note. Returns the column where the text starts.
    pub(crate) fn remark(&mut self, text: &str) -> usize {
        self.item(Ink::Alarm, "note", 4, text)
    }

    /// A blank line.
    pub(crate) fn gap(&mut self) {
        self.out.push('\n');
    }

    /// A paragraph that starts at `column`; nothing if the text is empty.
    pub(crate) fn below(&mut self, column: usize, ink: Ink, text: &str) {
        if text.is_empty() {
            return;
        }
        let indent = " ".repeat(column.min(self.width / 2));
        self.wrapped(ink, &indent, &indent, text);
    }

    /// Remedies, one per line of `text`, unless the page contains them already. A command too long for its line is
    /// continued after a backslash, so that the pasted text is still one command; advice is wrapped like other text.
    pub(crate) fn remedy(&mut self, column: usize, text: &str) {
        let column = column.min(self.width / 2);
        for remedy in text.lines().filter(|line| !line.trim().is_empty()) {
            if self.remedies.iter().any(|known| known == remedy) {
                continue;
            }
            self.remedies.push(remedy.to_owned());
            if !is_command(remedy) {
                self.below(column, Ink::Accent, remedy);
                continue;
            }
            for line in continued(&one_line(remedy), self.width - column) {
                self.push(&format!("{:column$}{}", "", self.style.paint(Ink::Accent, &line)));
            }
        }
    }

    /// True if the page contains all of these remedies, and there are some.
    pub(crate) fn has_remedies(&self, text: &str) -> bool {
        let mut remedies = text.lines().filter(|line| !line.trim().is_empty()).peekable();
        remedies.peek().is_some() && remedies.all(|remedy| self.remedies.iter().any(|known| known == remedy))
    }

    /// A named command, on one line or continued like a remedy; below its name if a word would be too wide for the page.
    pub(crate) fn command(&mut self, name: &str, column: usize, command: &str) {
        let mut before = format!("{INDENT}{name:column$}  ");
        let lines = |width: usize| continued(&one_line(command), width);
        let space = self.width.saturating_sub(before.len());
        let mut lines_of_command = lines(space);
        if lines_of_command.iter().any(|line| display_width(line) > space) {
            self.push(&format!("{INDENT}{name}"));
            before = INDENT.repeat(2);
            lines_of_command = lines(self.width.saturating_sub(before.len()));
        }
        for line in lines_of_command {
            self.push(&format!("{before}{line}"));
            before = " ".repeat(before.len());
        }
    }

    /// A table below a heading.
    pub(crate) fn table(&mut self, table: &Table) {
        for line in table.lines(self.inner_width()) {
            self.line(&line);
        }
    }

    /// A table with a note below each row.
    pub(crate) fn table_with_notes(&mut self, table: &Table, notes: &[Note]) {
        if let Some(lines) = table.whole(self.inner_width()) {
            for (n, line) in lines.iter().enumerate() {
                self.line(line);
                if n > 0 {
                    self.note(2 * INDENT.len(), &notes[n - 1]);
                }
            }
            return;
        }
        for (block, note) in table.blocks(self.inner_width()).iter().zip(notes) {
            block.iter().for_each(|line| self.line(line));
            self.note(2 * INDENT.len(), note);
        }
    }

    /// A table with a text right of each row, under `heading`, and notes below each row, starting at `column`.
    ///
    /// If there is not enough space right of the row, the text is written below it. If the row does not fit, or has no
    /// name of its own, the text names it and the figures are below.
    pub(crate) fn table_with_texts(
        &mut self,
        table: &Table,
        heading: &str,
        texts: &[String],
        (column, notes): (usize, &[Vec<Note>]),
    ) {
        // Figures without a name are below the text that names them.
        let is_named =
            |lines: &Vec<Spans>| table.has_names() || lines.first().is_none_or(|line| !self.is_narrow_by(line, 2));
        let Some(lines) = table.whole(self.inner_width()).filter(is_named) else {
            for (n, block) in table.blocks(self.inner_width() - INDENT.len()).into_iter().enumerate() {
                self.text(Ink::Plain, &texts[n]);
                for line in block {
                    self.line(&[vec![(Ink::Plain, INDENT.to_owned())], line].concat());
                }
                notes.get(n).into_iter().flatten().for_each(|note| self.note(column, note));
            }
            return;
        };
        for (n, mut line) in lines.into_iter().enumerate() {
            line.push((Ink::Plain, "  ".to_owned()));
            match n {
                0 if self.is_narrow(&line) => self.line(&line),
                0 => self.after(&line, Ink::Quiet, heading),
                n => {
                    self.after(&line, Ink::Plain, &texts[n - 1]);
                    notes.get(n - 1).into_iter().flatten().for_each(|note| self.note(column, note));
                }
            }
        }
    }

    /// Spans that fit on one line, then a text wrapped right of them, or below them if there is not enough space.
    pub(crate) fn after(&mut self, spans: &Spans, ink: Ink, text: &str) {
        let used = INDENT.len() + width_of(spans);
        if self.is_narrow(spans) {
            self.line(spans);
            self.below(2 * INDENT.len(), ink, text);
            return;
        }
        let painted: String = spans.iter().map(|(ink, text)| self.style.paint(*ink, text)).collect();
        for (n, line) in self.wrap("", "", text, self.width - used).into_iter().enumerate() {
            let before = if n == 0 { format!("{INDENT}{painted}") } else { " ".repeat(used) };
            let line = self.style.paint(ink, &line);
            self.push(&format!("{before}{line}"));
        }
    }

    /// True if there is not enough space for a text right of these spans.
    fn is_narrow(&self, spans: &Spans) -> bool {
        self.is_narrow_by(spans, 0)
    }

    /// True if there is not enough space for a text right of these spans and a gap.
    fn is_narrow_by(&self, spans: &Spans, gap: usize) -> bool {
        self.width.saturating_sub(INDENT.len() + width_of(spans) + gap) < NARROWEST
    }

    fn note(&mut self, column: usize, note: &Note) {
        self.below(column, Ink::Quiet, &note.text);
        self.remedy(column, &note.remedy);
    }

    /// One line below a heading, of spans that fit.
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

    /// The lines of a text. A command in it is not broken; one that is too long for a line has lines of its own, which can
    /// be pasted.
    fn wrap(&self, first: &str, rest: &str, text: &str, width: usize) -> Vec<String> {
        let width = width.max(NARROWEST / 2);
        let text = glued(&one_line(text));
        let mut lines: Vec<String> = Vec::new();
        let mut prose = String::new();
        let space = width.saturating_sub(display_width(rest));
        let mut parts = text.split('`');
        prose += parts.next().unwrap_or_default();
        while let Some(code) = parts.next() {
            let Some(after) = parts.next() else {
                // A lone backtick.
                prose += &format!("`{code}");
                break;
            };
            // With the two backticks and the punctuation after the second one.
            if display_width(code) + 3 <= space {
                prose += &format!("`{}`{after}", code.replace(' ', GLUE));
            } else if is_command(code) {
                // The command ends the sentence, as far as the reader sees.
                let before = prose.trim_end().trim_end_matches([',', ';', ':']);
                prose = format!("{before}{}", if before.is_empty() { "" } else { ":" });
                lines.extend(paragraph(&prose, if lines.is_empty() { first } else { rest }, rest, width));
                let code = code.replace(GLUE, " ");
                lines.extend(continued(&code, space).into_iter().map(|line| format!("{rest}{line}")));
                prose = after.trim_start_matches([',', ';', '.', ')', ' ']).to_owned();
            } else {
                prose += &format!("`{code}`{after}");
            }
        }
        if lines.is_empty() || !prose.is_empty() {
            lines.extend(paragraph(&prose, if lines.is_empty() { first } else { rest }, rest, width));
        }
        lines.into_iter().map(|line| line.replace(GLUE, " ")).collect()
    }

    fn push(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

fn width_of(spans: &Spans) -> usize {
    spans.iter().map(|(_, text)| display_width(text)).sum()
}

/// The lines of a text; words are not broken.
fn paragraph(text: &str, first: &str, rest: &str, width: usize) -> Vec<String> {
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::wrap(text, options).into_iter().map(Into::into).collect()
}

/// A space at which lines are not broken.
const GLUE: &str = "\u{a0}";

/// Replaces the space between each number and its unit by [`GLUE`].
fn glued(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(' ') {
        let unit = word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%');
        let is_unit = ["%", "ns", "us", "ms", "s", "min", "h", "d", "years"].contains(&unit);
        let after_number = out.ends_with(|c: char| c.is_ascii_digit());
        out += if is_unit && after_number { GLUE } else { " " };
        out += word;
    }
    out.remove(0);
    out
}

/// Breaks a shell command at spaces outside quotes; each line except the last ends with ` \`. A comment at its end has
/// its own lines, because a backslash does not continue it.
fn continued(command: &str, width: usize) -> Vec<String> {
    if display_width(command) <= width {
        return vec![command.to_owned()];
    }
    let mut words: Vec<&str> = shell_words(command).collect();
    let comment = words.iter().position(|word| *word == "#").map(|at| words.split_off(at)).unwrap_or_default();
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            // Two columns are reserved for the backslash.
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
    if comment.is_empty() {
        return lines;
    }
    let comment = comment[1..].join(" ");
    let options = textwrap::Options::new(width).initial_indent("# ").subsequent_indent("# ");
    let options = options.word_splitter(textwrap::WordSplitter::NoHyphenation).break_words(false);
    lines.extend(textwrap::wrap(&comment, options).into_iter().map(Into::into));
    lines
}

/// The words of a command; quoted spaces do not separate words.
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
    fn breaks_long_commands_outside_quotes() {
        let command = "echo 'a b c' | sudo tee /etc/security/limits.d/90-punctual.conf";
        assert_eq!(continued(command, 80), [command]);
        let commented = "sudo punctual setup   # or at once: sudo setcap x";
        assert_eq!(continued(commented, 80), [commented]);
        assert_eq!(continued(commented, 30), ["sudo punctual setup", "# or at once: sudo setcap x"]);
        assert_eq!(continued(command, 30), ["echo 'a b c' | sudo tee \\", "  /etc/security/limits.d/90-punctual.conf"]);
    }

    #[test]
    fn keeps_a_number_with_its_unit() {
        let page = Page::new(Style::plain(), 80);
        assert_eq!(
            page.wrap("", "", "worst of the run 12 us, seen once", 19),
            ["worst of the run", "12 us, seen once"]
        );
        assert_eq!(page.wrap("", "", "", 19), [""]);
    }

    #[test]
    fn does_not_break_commands_within_a_text() {
        let page = Page::new(Style::plain(), 80);
        let short = "keep it awake, `echo 1 | sudo tee /x/disable`; then measure";
        assert_eq!(page.wrap("", "", short, 38), ["keep it awake,", "`echo 1 | sudo tee /x/disable`; then", "measure"]);
        let long = "keep it awake, `echo 1 | sudo tee /sys/a/cpu0/disable /sys/a/cpu1/disable`; then measure";
        assert_eq!(
            page.wrap("do ", "   ", long, 38),
            [
                "do keep it awake:",
                "   echo 1 | sudo tee \\",
                "     /sys/a/cpu0/disable \\",
                "     /sys/a/cpu1/disable",
                "   then measure"
            ]
        );
        let last = "too few: run `/opt/punctual measure timer --period 10ms --duration 198m`";
        assert_eq!(
            page.wrap("", "", last, 40),
            ["too few: run:", "/opt/punctual measure timer --period \\", "  10ms --duration 198m"]
        );
        let path = "write it into /sys/devices/system/cpu/cpu0/cpuidle/disable";
        assert_eq!(page.wrap("", "", path, 20), ["write it into", "/sys/devices/system/cpu/cpu0/cpuidle/disable"]);
        assert_eq!(page.wrap("", "", "a lone ` stays", 40), ["a lone ` stays"]);
    }

    #[test]
    fn writes_a_command_below_its_name_if_a_word_is_too_wide() {
        let shown = |width| {
            let mut page = Page::new(Style::plain(), width);
            page.command("more", 7, "punctual show --full board-20261125-090056.json");
            page.finish()
        };
        assert_eq!(shown(80), "  more     punctual show --full board-20261125-090056.json\n");
        assert_eq!(shown(40), "  more     punctual show --full \\\n             board-20261125-090056.json\n");
        assert_eq!(shown(36), "  more\n    punctual show --full \\\n      board-20261125-090056.json\n");
    }

    #[test]
    fn removes_control_characters() {
        let mut page = Page::new(Style { color: false, unicode: true }, 80);
        page.text(Ink::Plain, "host\x1b[2Jname\u{9b}0m");
        page.remedy(2, "sudo ls\x07");
        assert!(!page.finish().chars().any(|c| c.is_control() && c != '\n'));
    }
}
