//! The protocol on the serial console from guest to host. Its lines cannot be confused with kernel messages.
//!
//! A frame is one line, `@lab:KIND:NUMBER:CRC:BASE64`. Numbers count up from 0. The CRC covers kind, number and
//! content, so that lost lines and lines interrupted by a kernel message are detected. This needs only one serial port,
//! which every kernel with a console supports.

use std::io::{self, Write};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};

const MARK: &str = "@lab:";

/// Maximum content of a frame, bytes. A multiple of three, so that base64 needs no padding inside a file.
pub const CONTENT_MAX: usize = 3072;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The guest has started; the content is the kernel's release.
    Hello,
    /// Standard output of the command.
    Out,
    /// Standard error of the command.
    Err,
    /// A part of the compressed archive of files.
    Files,
    /// The guest could not run its job; the content is the reason.
    Failure,
    /// The last frame; the content is the exit status.
    End,
}

const KINDS: [(char, Kind); 6] = [
    ('H', Kind::Hello),
    ('O', Kind::Out),
    ('E', Kind::Err),
    ('F', Kind::Files),
    ('X', Kind::Failure),
    ('Z', Kind::End),
];

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its kind.
    pub kind: Kind,
    /// Its content.
    pub content: Vec<u8>,
}

/// Why the stream of frames is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A line with the marker is not a valid frame.
    #[error("frame {expected} is damaged")]
    Damaged {
        /// The expected number.
        expected: u64,
    },
    /// At least one frame is missing.
    #[error("frame {arrived} arrived instead of frame {expected}")]
    Lost {
        /// The expected number.
        expected: u64,
        /// The received number.
        arrived: u64,
    },
}

/// The sending side, in the guest.
#[derive(Debug)]
pub struct Sender<W> {
    console: W,
    next: u64,
}

impl<W: Write> Sender<W> {
    /// Creates a sender on this console.
    pub fn new(console: W) -> Self {
        Self { console, next: 0 }
    }

    /// Sends `content` in one or more frames.
    ///
    /// # Errors
    /// The error of the console.
    pub fn send(&mut self, kind: Kind, content: &[u8]) -> io::Result<()> {
        let mut rest = content;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(CONTENT_MAX));
            self.send_one(kind, piece)?;
            rest = after;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    fn send_one(&mut self, kind: Kind, content: &[u8]) -> io::Result<()> {
        let letter = letter(kind);
        let crc = check(letter, self.next, content);
        let line = format!("{MARK}{letter}:{}:{crc:08x}:{}\n", self.next, BASE64.encode(content));
        self.next += 1;
        self.console.write_all(line.as_bytes())?;
        self.console.flush()
    }
}

/// The receiving side, on the host.
#[derive(Debug, Default)]
pub struct Receiver {
    next: u64,
}

/// A decoded console line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// The kernel's output, before a frame or alone.
    pub text: &'a str,
    /// The frame.
    pub frame: Option<Frame>,
}

impl Receiver {
    /// Decodes a line without its line ending.
    ///
    /// # Errors
    /// [`FrameError`]. The stream is unusable afterwards.
    pub fn read<'a>(&mut self, line: &'a str) -> Result<Line<'a>, FrameError> {
        let Some(at) = line.find(MARK) else { return Ok(Line { text: line, frame: None }) };
        let damaged = FrameError::Damaged { expected: self.next };
        let (number, frame) = parse(&line[at + MARK.len()..]).ok_or(damaged)?;
        if number != self.next {
            return Err(FrameError::Lost { expected: self.next, arrived: number });
        }
        self.next += 1;
        Ok(Line { text: &line[..at], frame: Some(frame) })
    }
}

fn parse(text: &str) -> Option<(u64, Frame)> {
    let mut fields = text.splitn(4, ':');
    let (letter, number, crc, content) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let letter: char = letter.parse().ok()?;
    let &(_, kind) = KINDS.iter().find(|(known, _)| *known == letter)?;
    let (number, crc) = (number.parse().ok()?, u32::from_str_radix(crc, 16).ok()?);
    let content = BASE64.decode(content).ok()?;
    (check(letter, number, &content) == crc).then_some((number, Frame { kind, content }))
}

fn letter(kind: Kind) -> char {
    KINDS.iter().find(|(_, known)| *known == kind).map_or('?', |&(letter, _)| letter)
}

fn check(letter: char, number: u64, content: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(format!("{letter}:{number}:").as_bytes());
    crc.update(content);
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sent(messages: &[(Kind, &[u8])]) -> String {
        let mut sender = Sender::new(Vec::new());
        messages.iter().for_each(|(kind, content)| sender.send(*kind, content).unwrap());
        String::from_utf8(sender.console).unwrap()
    }

    #[test]
    fn separates_kernel_messages_from_frames() {
        let frames = sent(&[(Kind::Out, b"hello"), (Kind::End, b"0")]);
        let console = format!("[ 0.1] booting\n[ 0.2] half a message{}[ 9.9] power off\n", frames);
        let mut receiver = Receiver::default();
        let lines: Vec<_> = console.lines().map(|line| receiver.read(line).unwrap()).collect();
        let texts: Vec<_> = lines.iter().map(|line| line.text).collect();
        assert_eq!(texts, ["[ 0.1] booting", "[ 0.2] half a message", "", "[ 9.9] power off"]);
        let kinds: Vec<_> = lines.iter().filter_map(|line| line.frame.as_ref()).map(|frame| frame.kind).collect();
        assert_eq!(kinds, [Kind::Out, Kind::End]);
    }

    #[test]
    fn detects_lost_frames() {
        let frames = sent(&[(Kind::Out, b"a"), (Kind::Out, b"b"), (Kind::Out, b"c")]);
        let mut receiver = Receiver::default();
        let outcomes: Vec<_> = frames.lines().step_by(2).map(|line| receiver.read(line).map(|_| ())).collect();
        assert_eq!(outcomes, [Ok(()), Err(FrameError::Lost { expected: 1, arrived: 2 })]);
    }

    proptest! {
        #[test]
        fn content_round_trips(content in prop::collection::vec(any::<u8>(), 0..3 * CONTENT_MAX)) {
            let mut receiver = Receiver::default();
            let mut arrived = Vec::new();
            for line in sent(&[(Kind::Files, &content)]).lines() {
                arrived.extend(receiver.read(line).unwrap().frame.unwrap().content);
            }
            prop_assert_eq!(arrived, content);
        }

        #[test]
        fn damaged_frames_are_never_accepted(
            content in prop::collection::vec(any::<u8>(), 1..60), at in any::<prop::sample::Index>(), inserted in "[ -~]{1,20}"
        ) {
            let line = sent(&[(Kind::Out, &content)]);
            let line = line.trim_end();
            let at = at.index(line.len());
            let damaged = format!("{}{inserted}{}", &line[..at], &line[at..]);
            let mut receiver = Receiver::default();
            match receiver.read(&damaged) {
                // The inserted text is before the frame, or destroyed the marker. The number of the next frame reveals
                // the loss.
                Ok(Line { frame: None, .. }) => {}
                Ok(Line { frame: Some(frame), .. }) => prop_assert_eq!(frame.content, content),
                Err(error) => prop_assert_eq!(error, FrameError::Damaged { expected: 0 }),
            }
            prop_assert!(receiver.read(&line[..line.len() - 1]).is_err());
        }
    }
}
