//! Draws a buffer in place with relative cursor moves.
//!
//! ratatui's inline viewport queries the cursor position on standard output, where our results go, and in raw mode,
//! where Ctrl-C is no signal. Moving up by the number of lines drawn before needs neither.

use std::io::{self, Write};

use ratatui::buffer::Buffer;
use textwrap::core::display_width;

use crate::style::{Ink, escape};

/// The current drawing and its output. The cursor is on the line below the drawing.
#[derive(Debug)]
pub(super) struct Screen<W: Write> {
    out: W,
    /// Columns used by each line on the screen.
    drawn: Vec<u16>,
}

impl<W: Write> Screen<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, drawn: Vec::new() }
    }

    /// Draws `buffer` over the previous drawing. Its width is the terminal's.
    pub(super) fn show(&mut self, buffer: &Buffer, color: bool) -> io::Result<()> {
        let width = buffer.area.width;
        let mut text = self.home(width);
        self.drawn.clear();
        for y in 0..buffer.area.height {
            // The row is cleared before writing: after a full row, the cursor is still on its last cell.
            text += "\x1b[K";
            self.drawn.push(push_row(&mut text, buffer, y, color));
            text += "\r\n";
        }
        // Clears anything below, e.g. a taller drawing or an echoed ^C.
        text += "\x1b[J";
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Erases the drawing; the cursor returns to where the drawing began.
    pub(super) fn erase(&mut self) -> io::Result<()> {
        if self.drawn.is_empty() {
            return Ok(());
        }
        let text = self.home(super::terminal_size().0) + "\x1b[J";
        self.drawn.clear();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// The sequence that moves to the first cell of the drawing. A terminal that became narrower has wrapped long
    /// lines, so they occupy more rows than were drawn.
    fn home(&self, width: u16) -> String {
        let rows: u16 = self.drawn.iter().map(|&used| used.div_ceil(width.max(1)).max(1)).sum();
        if rows == 0 { "\r".to_owned() } else { format!("\r\x1b[{rows}A") }
    }
}

/// Appends one row without trailing spaces; returns the number of columns used.
fn push_row(text: &mut String, buffer: &Buffer, y: u16, color: bool) -> u16 {
    let row = &buffer.content[buffer.index_of(0, y)..][..usize::from(buffer.area.width)];
    let used = row.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |last| last + 1);
    let plain = Ink::Plain.look();
    let mut look = plain;
    let mut covered = 0;
    for cell in &row[..used] {
        // A symbol of two columns also covers the next cell.
        if covered > 0 {
            covered -= 1;
            continue;
        }
        covered = display_width(cell.symbol()).saturating_sub(1);
        if color && look != (cell.fg, cell.modifier) {
            look = (cell.fg, cell.modifier);
            text.push_str(&escape(look));
        }
        text.push_str(cell.symbol());
    }
    if look != plain {
        text.push_str("\x1b[0m");
    }
    u16::try_from(used).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(lines: &[&str]) -> Buffer {
        Buffer::with_lines(lines.iter().copied())
    }

    #[test]
    fn overwrites_and_erases_drawings() {
        let mut screen = Screen::new(Vec::new());
        screen.show(&drawing(&["one", "two"]), false).unwrap();
        screen.show(&drawing(&["1  "]), false).unwrap();
        screen.erase().unwrap();
        screen.erase().unwrap();
        let first = "\r\x1b[Kone\r\n\x1b[Ktwo\r\n\x1b[J";
        let second = "\r\x1b[2A\x1b[K1\r\n\x1b[J";
        let erased = "\r\x1b[1A\x1b[J";
        assert_eq!(String::from_utf8(screen.out).unwrap(), [first, second, erased].concat());
    }

    #[test]
    fn counts_rows_wrapped_by_a_narrower_terminal() {
        let mut screen = Screen::new(Vec::new());
        screen.show(&drawing(&["0123456789", "01234     ", "          "]), false).unwrap();
        assert_eq!(screen.home(10), "\r\x1b[3A");
        assert_eq!(screen.home(5), "\r\x1b[4A");
        assert_eq!(screen.home(3), "\r\x1b[7A");
        assert_eq!(screen.home(0), "\r\x1b[16A");
    }

    #[test]
    fn resets_colours_at_the_end_of_a_row() {
        let mut buffer = drawing(&["ab  "]);
        buffer[(1, 0)].set_fg(ratatui::style::Color::Red);
        let mut text = String::new();
        assert_eq!(push_row(&mut text, &buffer, 0, true), 2);
        assert_eq!(text, "a\x1b[0;31mb\x1b[0m");
    }
}
