//! What goes from the guest to the host over its serial console: lines that kernel messages cannot be mistaken for.
//!
//! A frame is one line, `@lab:KIND:NUMBER:CRC:BASE64`. Numbers count from 0 without a gap and the CRC covers kind, number
//! and content, so that a line which is torn by a kernel message, or lost, is noticed. One serial port is all that it
//! takes, which every kernel with a console has.

use std::io::{self, Write};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};

const MARK: &str = "@lab:";

/// Content of a frame, bytes; a multiple of three, so that base64 needs no padding in the middle of a file.
pub const CONTENT_MAX: usize = 3072;

/// What a frame is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The guest has begun; the content is the kernel's release.
    Hello,
    /// Standard output of the command.
    Out,
    /// Standard error of the command.
    Err,
    /// A piece of the archive of files, compressed.
    Files,
    /// The guest could not do what it was to do; the content says why.
    Failure,
    /// All is said; the content is the exit status.
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

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is about.
    pub kind: Kind,
    /// What it says.
    pub content: Vec<u8>,
}

/// Why the stream of frames cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A line with the mark is not a whole frame.
    #[error("frame {expected} arrived torn")]
    Torn {
        /// The number that was due.
        expected: u64,
    },
    /// One or more frames did not arrive.
    #[error("frame {arrived} arrived where {expected} was due")]
    Lost {
        /// The number that was due.
        expected: u64,
        /// The number that came.
        arrived: u64,
    },
}

/// The guest's end.
#[derive(Debug)]
pub struct Sender<W> {
    console: W,
    next: u64,
}

impl<W: Write> Sender<W> {
    /// Sends over this console.
    pub fn new(console: W) -> Self {
        Self { console, next: 0 }
    }

    /// Sends `content`, in as many frames as it takes, at least one.
    ///
    /// # Errors
    /// What the console answered.
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

/// The host's end.
#[derive(Debug, Default)]
pub struct Receiver {
    next: u64,
}

/// What a line of the console holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// What the kernel said, alone or before a frame.
    pub text: &'a str,
    /// The frame.
    pub frame: Option<Frame>,
}

impl Receiver {
    /// Reads one line without its end.
    ///
    /// # Errors
    /// [`FrameError`]; nothing after it can be trusted.
    pub fn read<'a>(&mut self, line: &'a str) -> Result<Line<'a>, FrameError> {
        let Some(at) = line.find(MARK) else { return Ok(Line { text: line, frame: None }) };
        let torn = FrameError::Torn { expected: self.next };
        let (number, frame) = parse(&line[at + MARK.len()..]).ok_or(torn)?;
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
    fn kernel_messages_are_told_apart() {
        let frames = sent(&[(Kind::Out, b"hello"), (Kind::End, b"0")]);
        let console = format!("[ 0.1] booting\n[ 0.2] half a message{}[ 9.9] power off\n", frames);
        let mut receiver = Receiver::default();
        let lines: Vec<_> = console.lines().map(|line| receiver.read(line).unwrap()).collect();
        let texts: Vec<_> = lines.iter().map(|line| line.text).collect();
        assert_eq!(texts, ["[ 0.1] booting", "[ 0.2] half a message", "", "[ 9.9] power off"]);
        let said: Vec<_> = lines.iter().filter_map(|line| line.frame.as_ref()).map(|frame| frame.kind).collect();
        assert_eq!(said, [Kind::Out, Kind::End]);
    }

    #[test]
    fn a_lost_frame_is_noticed_at_the_next() {
        let frames = sent(&[(Kind::Out, b"a"), (Kind::Out, b"b"), (Kind::Out, b"c")]);
        let mut receiver = Receiver::default();
        let outcomes: Vec<_> = frames.lines().step_by(2).map(|line| receiver.read(line).map(|_| ())).collect();
        assert_eq!(outcomes, [Ok(()), Err(FrameError::Lost { expected: 1, arrived: 2 })]);
    }

    proptest! {
        #[test]
        fn content_arrives_as_it_was_sent(content in prop::collection::vec(any::<u8>(), 0..3 * CONTENT_MAX)) {
            let mut receiver = Receiver::default();
            let mut arrived = Vec::new();
            for line in sent(&[(Kind::Files, &content)]).lines() {
                arrived.extend(receiver.read(line).unwrap().frame.unwrap().content);
            }
            prop_assert_eq!(arrived, content);
        }

        #[test]
        fn a_torn_frame_is_never_taken_for_another(
            content in prop::collection::vec(any::<u8>(), 1..60), at in any::<prop::sample::Index>(), what in "[ -~]{1,20}"
        ) {
            let line = sent(&[(Kind::Out, &content)]);
            let line = line.trim_end();
            let at = at.index(line.len());
            let torn = format!("{}{what}{}", &line[..at], &line[at..]);
            let mut receiver = Receiver::default();
            match receiver.read(&torn) {
                // The message stands before the frame, or broke the mark, so that the next frame's number tells.
                Ok(Line { frame: None, .. }) => {}
                Ok(Line { frame: Some(frame), .. }) => prop_assert_eq!(frame.content, content),
                Err(error) => prop_assert_eq!(error, FrameError::Torn { expected: 0 }),
            }
            prop_assert!(receiver.read(&line[..line.len() - 1]).is_err());
        }
    }
}
