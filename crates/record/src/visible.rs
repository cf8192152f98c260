//! Text of outside origin, such as names in records and errors of files, must not control a terminal.
//!
//! All output of the command passes one filter, [`Visible`], directly before standard output and standard error. Text
//! in files does not pass it, so [`escape`] and [`escape_json`] make such text harmless before it is written.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Stderr, Stdout, Write},
    os::fd::{AsFd, BorrowedFd},
};

/// Text that the filter collects before it writes, bytes.
const COLLECTED: usize = 64 << 10;
/// The longest escape sequence of our own, bytes: `ESC [ 6 5 5 3 5 A`.
const SEQUENCE_MAX: usize = 8;

/// True for characters that a terminal obeys or does not show: control characters except line break and tab, characters
/// that change the direction of text, separators of lines, and characters without width.
///
/// Sources: the Unicode properties `Cc`, `Zl`, `Zp`, `Bidi_Control` and `Default_Ignorable_Code_Point`, and the
/// interlinear annotations.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{feff}' | '\u{3164}' | '\u{ffa0}' => true,
        '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    }
}

/// The text in one line: line breaks and tabs are spaces, and hidden characters are written as `\u{1b}`.
#[must_use]
pub fn one_line(text: &str) -> String {
    escape(text.replace(['\n', '\t', '\r'], " "))
}

/// The same text, with each line after the first indented: a line break in a name or a message of outside origin
/// cannot begin a line that looks like ours.
#[must_use]
pub fn continued(text: &str) -> String {
    let mut lines = text.split('\n');
    let mut whole = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let is_indented = line.is_empty() || line.starts_with("  ");
        whole += if is_indented { "\n" } else { "\n  " };
        whole += line;
    }
    whole
}

/// The same text with hidden characters written as `\u{1b}`. Line breaks and tabs remain.
#[must_use]
pub fn escape(text: String) -> String {
    if text.bytes().all(is_plain) || !text.contains(is_hidden) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if is_hidden(c) { escaped.extend(c.escape_unicode()) } else { escaped.push(c) }
    }
    escaped
}

/// The same JSON document with hidden characters written as `\u001b`. They occur only inside strings.
#[must_use]
pub fn escape_json(json: String) -> String {
    if json.bytes().all(is_plain) || !json.contains(is_hidden) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// True for a visible ASCII character, a line break and a tab.
fn is_plain(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte) || byte == b'\n' || byte == b'\t'
}

/// The escape sequences that pass the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// None.
    Text,
    /// The colours and weights of our own palette.
    Colours,
    /// Colours, and cursor moves and erasures of the live view.
    Drawing,
}

impl Passes {
    /// Length of our own sequence at the start of the text, bytes.
    fn own_sequence(self, text: &str) -> Option<usize> {
        let rest = match self {
            Self::Text => None,
            Self::Colours => after_colour(text),
            Self::Drawing => after_colour(text).or_else(|| after_move(text)),
        }?;
        Some(text.len() - rest.len())
    }
}

/// The text after a colour: `ESC [ 0`, `;1` or `;2`, `;31` to `;36`, `m`; or black on white, for QR codes.
fn after_colour(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix("\x1b[0;30;47m") {
        return Some(rest);
    }
    let rest = text.strip_prefix("\x1b[0")?;
    let after_one = |rest, of: &[&str]| of.iter().find_map(|part| str::strip_prefix(rest, part)).unwrap_or(rest);
    let rest = after_one(rest, &[";1", ";2"]);
    let rest = after_one(rest, &[";31", ";32", ";33", ";34", ";35", ";36"]);
    rest.strip_prefix('m')
}

/// The text after a return to the first column, an erasure, or a move up by at most 65535 lines.
fn after_move(text: &str) -> Option<&str> {
    if let Some(rest) = ["\r", "\x1b[K", "\x1b[J"].iter().find_map(|sequence| text.strip_prefix(sequence)) {
        return Some(rest);
    }
    let rest = text.strip_prefix("\x1b[")?;
    let digits = rest.bytes().take(5).take_while(u8::is_ascii_digit).count();
    if digits > 0 { rest[digits..].strip_prefix('A') } else { None }
}

/// The filter under standard output and standard error. Visible text, line breaks and tabs pass. Hidden characters are
/// written as `\u{1b}`, and bytes that are not UTF-8 as `\xff`.
///
/// It writes when it is flushed or dropped, and at 64 KiB.
#[derive(Debug)]
pub struct Visible<W: Write> {
    out: W,
    passes: Passes,
    /// The beginning of a character or sequence whose end was not yet written.
    held: Vec<u8>,
    ready: String,
}

/// Standard output behind the filter.
#[must_use]
pub fn stdout(passes: Passes) -> Visible<Stdout> {
    Visible::new(io::stdout(), passes)
}

/// Standard error behind the filter.
#[must_use]
pub fn stderr(passes: Passes) -> Visible<Stderr> {
    Visible::new(io::stderr(), passes)
}

/// Standard output without the filter, for data that only programs read.
#[must_use]
pub fn unfiltered_stdout() -> Stdout {
    io::stdout()
}

impl<W: Write> Visible<W> {
    /// A filter before `out`.
    pub fn new(out: W, passes: Passes) -> Self {
        Self { out, passes, held: Vec::new(), ready: String::new() }
    }

    /// Writes everything, including an unfinished character.
    ///
    /// # Errors
    /// The output's.
    pub fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.show(&held);
        self.flush()
    }

    fn show(&mut self, bytes: &[u8]) {
        for chunk in bytes.utf8_chunks() {
            self.show_text(chunk.valid());
            for byte in chunk.invalid() {
                // Writing to a string does not fail.
                let _ = write!(self.ready, "\\x{byte:02x}");
            }
        }
    }

    fn show_text(&mut self, mut text: &str) {
        while !text.is_empty() {
            let (plain, rest) = text.split_at(text.bytes().take_while(|&byte| is_plain(byte)).count());
            self.ready.push_str(plain);
            let Some(c) = rest.chars().next() else { return };
            let length = match self.passes.own_sequence(rest) {
                Some(length) => {
                    self.ready.push_str(&rest[..length]);
                    length
                }
                None if is_hidden(c) => {
                    self.ready.extend(c.escape_unicode());
                    c.len_utf8()
                }
                None => {
                    self.ready.push(c);
                    c.len_utf8()
                }
            };
            text = &rest[length..];
        }
    }

    fn write_ready(&mut self) -> io::Result<()> {
        // Taken first: what could not be written is not written again.
        let ready = std::mem::take(&mut self.ready);
        self.out.write_all(ready.as_bytes())
    }
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        let rest = self.held.split_off(self.held.len() - unfinished(&self.held));
        let whole = std::mem::replace(&mut self.held, rest);
        self.show(&whole);
        if self.ready.len() >= COLLECTED {
            self.write_ready()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_ready()?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Visible<W> {
    fn drop(&mut self) {
        // Callers that report write errors call `finish`.
        let _ = self.end();
    }
}

impl<W: Write + IsTerminal> Visible<W> {
    /// True if the output is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.out.is_terminal()
    }
}

impl<W: Write + AsFd> AsFd for Visible<W> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.out.as_fd()
    }
}

/// The number of bytes at the end that the next bytes may continue to a character or to a sequence of our own.
fn unfinished(bytes: &[u8]) -> usize {
    let sequence = bytes.iter().rev().take(SEQUENCE_MAX - 1).position(|&byte| byte == b'\x1b').map(|at| at + 1);
    if let Some(count) = sequence {
        let parameters = bytes[bytes.len() - count..].iter().skip(1);
        if parameters.clone().all(|byte| matches!(byte, b'[' | b';' | b'0'..=b'9')) {
            return count;
        }
    }
    let start = bytes.iter().rev().take(3).position(|&byte| byte >= 0xc0).map(|at| at + 1);
    let is_unfinished = |count: &usize| {
        let error = std::str::from_utf8(&bytes[bytes.len() - count..]).err();
        error.is_some_and(|error| error.error_len().is_none())
    };
    start.filter(is_unfinished).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_break_begins_no_line_of_its_own() {
        assert_eq!(continued("error: x\nPASS\n\n    remedy"), "error: x\n  PASS\n\n    remedy");
        assert_eq!(continued("one line"), "one line");
    }

    /// The output of the filter for these pieces.
    fn shown(passes: Passes, pieces: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut filter = Visible::new(&mut out, passes);
        pieces.iter().for_each(|piece| filter.write_all(piece).unwrap());
        filter.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    const HOSTILE: &str = "a\x1b[2Jb\u{9b}31mc\u{202e}d\u{200b}e\u{2066}f\x07\rg\u{7f}h\u{e0041}i\u{feff}";

    #[test]
    fn shows_what_a_terminal_would_obey_or_hide() {
        let expected = "a\\u{1b}[2Jb\\u{9b}31mc\\u{202e}d\\u{200b}e\\u{2066}f\\u{7}\\u{d}g\\u{7f}h\\u{e0041}i\\u{feff}";
        assert_eq!(shown(Passes::Text, &[HOSTILE.as_bytes()]), expected);
        assert_eq!(shown(Passes::Text, &[b"\x1b[0;31m \xff\x9b"]), "\\u{1b}[0;31m \\xff\\x9b");
        let ordinary = "Grüße, 日本語 ✔ é\n\tµs 👍";
        assert_eq!(shown(Passes::Text, &[ordinary.as_bytes()]), ordinary);
    }

    #[test]
    fn only_the_sequences_of_our_own_pass() {
        let colours = "\x1b[0;1mbold\x1b[0m \x1b[0;31mred\x1b[0;2;36m \x1b[0;30;47mcode";
        assert_eq!(shown(Passes::Colours, &[colours.as_bytes()]), colours);
        let moves = "\r\x1b[12A\x1b[K\x1b[J";
        assert_eq!(shown(Passes::Drawing, &[moves.as_bytes()]), moves);
        assert!(!shown(Passes::Colours, &[moves.as_bytes()]).contains(char::is_control));
        for other in ["\x1b[2J", "\x1b[8m", "\x1b[0;8m", "\x1b]0;x\x07", "\x1b[31m", "\x1bc", "\x1b[A", "\x1b[1;1H"] {
            assert!(!shown(Passes::Drawing, &[other.as_bytes()]).contains(char::is_control), "{other:?}");
        }
    }

    #[test]
    fn json_stays_the_same_document() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE, "plain ü"] });
        let json = escape_json(serde_json::to_string_pretty(&value).unwrap());
        assert!(!json.contains(is_hidden), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
        assert_eq!(escape_json("{\"a\": \"ü\"}\n".to_owned()), "{\"a\": \"ü\"}\n");
    }

    #[test]
    fn one_line_has_no_line_breaks() {
        assert_eq!(one_line("a\nb\tc\r\u{202e}"), "a b c \\u{202e}");
        assert_eq!(escape("a\nb\tc\r\u{202e}".to_owned()), "a\nb\tc\\u{d}\\u{202e}");
    }

    proptest! {
        #[test]
        fn pieces_are_shown_like_the_whole(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                "(\u{1b}\\[0;31m|\u{1b}\\[3A|\u{1b}|\u{202e}|é|👍|[\\[;0-9mA]){0,12}".prop_map(String::into_bytes),
            ],
            cuts in prop::collection::vec(0_usize..40, 0..4),
        ) {
            for passes in [Passes::Text, Passes::Colours, Passes::Drawing] {
                let whole = shown(passes, &[&bytes]);
                let mut cuts: Vec<usize> = cuts.iter().map(|&cut| cut.min(bytes.len())).collect();
                cuts.extend([0, bytes.len()]);
                cuts.sort_unstable();
                let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
                prop_assert_eq!(&shown(passes, &pieces), &whole);
                if passes == Passes::Text {
                    prop_assert!(!whole.contains(is_hidden));
                }
            }
        }
    }
}
