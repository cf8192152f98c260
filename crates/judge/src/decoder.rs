//! Splits the bytes of the judge's serial line into replies and frames.

use crate::frame::{Frame, SYNC, crc16, decode, length_of};

/// Longest reply, bytes. A longer text is damaged.
const TEXT_MAX: usize = 512;
/// Length of the CRC of a reply with the `*` before it, bytes.
const CRC_BYTES: usize = 5;

/// A part of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A reply to a command, without its CRC.
    Reply(Reply),
    /// A frame.
    Frame(Frame),
}

/// A reply to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The command was obeyed; with the text after `ok`.
    Ok(String),
    /// The command was refused, with the reason.
    Error(String),
}

/// Takes bytes, and returns what they contain. It keeps less than 1 KiB, whatever it gets.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// The bytes before this are used up.
    used: usize,
    damaged: u64,
}

impl Decoder {
    /// Adds bytes of the line.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that belonged to no valid reply or frame.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Takes the next reply or frame; `None` if more bytes are needed.
    pub fn take(&mut self) -> Option<Item> {
        loop {
            let left = self.bytes.get(self.used..).unwrap_or_default();
            let first = *left.first()?;
            let (length, item) = if first == SYNC { next_frame(left)? } else { next_reply(left)? };
            self.used += length;
            match item {
                Some(item) => return Some(item),
                None => self.damaged += length as u64,
            }
        }
    }
}

/// The length of the next part and the part itself, which is `None` if it is damaged; or `None` if bytes are missing.
fn next_frame(bytes: &[u8]) -> Option<(usize, Option<Item>)> {
    let Some(length) = length_of(*bytes.get(1)?) else { return Some((1, None)) };
    let whole = bytes.get(..length)?;
    // The frame may begin at a later byte.
    Some(decode(whole).map_or((1, None), |frame| (length, Some(Item::Frame(frame)))))
}

/// The same for a line of text. Empty lines count as damaged without a byte.
fn next_reply(bytes: &[u8]) -> Option<(usize, Option<Item>)> {
    let end = bytes.iter().position(|&byte| byte == b'\n' || byte == SYNC);
    match end {
        Some(end) if bytes[end] == b'\n' => {
            let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
            Some((end + 1, reply(line).map(Item::Reply)))
        }
        Some(end) => Some((end, None)),
        None if bytes.len() > TEXT_MAX => Some((bytes.len(), None)),
        None => None,
    }
}

/// The reply in a line whose CRC is right.
fn reply(line: &[u8]) -> Option<Reply> {
    let (text, crc) = line.split_at_checked(line.len().checked_sub(CRC_BYTES)?)?;
    let text = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| (b' '..=b'~').contains(&byte)))?;
    if crc != crc_of(text).as_bytes() {
        return None;
    }
    match text.strip_prefix("error: ") {
        Some(reason) => Some(Reply::Error(reason.to_owned())),
        None if text == "ok" => Some(Reply::Ok(String::new())),
        None => Some(Reply::Ok(text.strip_prefix("ok ")?.to_owned())),
    }
}

/// A line with its CRC, for the judge or from it.
#[must_use]
pub fn with_crc(text: &str) -> String {
    format!("{text}{}", crc_of(text))
}

/// The `*` and the CRC that end a line with this text.
fn crc_of(text: &str) -> String {
    format!("*{:04x}", crc16(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::tests::{ENDED, LATE, bytes_of};

    fn items(chunks: &[&[u8]]) -> (Vec<Item>, u64) {
        let (mut decoder, mut items) = (Decoder::default(), Vec::new());
        for chunk in chunks {
            decoder.push(chunk);
            items.extend(std::iter::from_fn(|| decoder.take()));
        }
        (items, decoder.damaged())
    }

    #[test]
    fn reads_the_replies_of_the_documents() {
        assert_eq!(with_crc("count 10000"), "count 10000*9cd8");
        let (found, damaged) = items(&[b"ok punctual-judge 1*c12f\r\nok*dbd6\r\n"]);
        let expected = ["punctual-judge 1", ""].map(|text| Item::Reply(Reply::Ok(text.to_owned())));
        assert_eq!((found, damaged), (expected.to_vec(), 0));
        let refused = with_crc("error: unknown command") + "\r\n";
        assert_eq!(items(&[refused.as_bytes()]).0, [Item::Reply(Reply::Error("unknown command".to_owned()))]);
        assert_eq!(items(&[b"ok*dbd7\r\n"]), (Vec::new(), 9), "a wrong CRC");
    }

    #[test]
    fn frames_are_found_among_damaged_bytes() {
        let (late, end) = (bytes_of(LATE), bytes_of(ENDED));
        let mut stream = vec![0xa5, 0x01, 0xa5, 0x77];
        stream.extend(&late);
        // A frame without its end, and a text without one.
        stream.extend(&late[..20]);
        stream.extend(&end);
        stream.extend(b"garb\xa5");
        stream.extend(&late);
        let kinds = |items: Vec<Item>| items.into_iter().filter(|item| matches!(item, Item::Frame(_))).count();
        let (found, damaged) = items(&[&stream]);
        assert_eq!((kinds(found), damaged), (3, 4 + 20 + 5));
    }

    proptest! {
        #[test]
        fn the_size_of_the_chunks_changes_nothing(
            parts in prop::collection::vec(prop_oneof![
                Just(bytes_of(LATE)),
                Just(bytes_of(ENDED)),
                Just(b"ok*dbd6\r\n".to_vec()),
                prop::collection::vec(any::<u8>(), 0..40),
            ], 0..12),
            size in 1..100_usize,
        ) {
            let stream = parts.concat();
            let chunks: Vec<&[u8]> = stream.chunks(size).collect();
            let (whole, in_chunks) = (items(&[&stream]), items(&chunks));
            prop_assert_eq!(whole.0, in_chunks.0);
        }

        #[test]
        fn any_bytes_are_bounded(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)) {
            let mut decoder = Decoder::default();
            for chunk in &chunks {
                decoder.push(chunk);
                while decoder.take().is_some() {}
                prop_assert!(decoder.bytes.len() - decoder.used <= TEXT_MAX);
            }
        }
    }
}
