//! Messages between host and plugin: sequences of objects of the vocabulary patch, as bytes in the layout of LV2 atoms.
//!
//! An atom is a size (u32) and a type (u32), followed by its body. A sequence has a unit (u32) and padding (u32), then
//! events: a time in frames (i64) and an atom, padded to 8 bytes. An object has an id (u32) and a type (u32), then
//! properties: key (u32), context (u32) and an atom, padded to 8 bytes.

use crate::{ports::FileProperty, urids::Urids};

/// Length of the head of an atom, and of that of a sequence or object, bytes.
const HEAD: usize = 8;
/// Alignment of events and properties, bytes.
const ALIGNMENT: usize = 8;

/// A message of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Load this file; an empty path removes it.
    Set(FileProperty, &'a [u8]),
    /// Send the path of this file, or of all files.
    Get(Option<FileProperty>),
}

/// An atom.
#[derive(Debug, Clone, Copy)]
struct Atom<'a> {
    kind: u32,
    body: &'a [u8],
    /// Length with padding, bytes.
    length: usize,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl<'a> Atom<'a> {
    /// The atom at the start of `bytes`; `None` if it is truncated.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let size = u32_at(bytes, 0)? as usize;
        let body = bytes.get(HEAD..HEAD.checked_add(size)?)?;
        Some(Self { kind: u32_at(bytes, 4)?, body, length: (HEAD + size).next_multiple_of(ALIGNMENT) })
    }
}

/// The messages in the body of a sequence, in their order. Unknown ones and truncated ones are left out.
pub fn read<'a>(sequence: &'a [u8], urids: &Urids) -> impl Iterator<Item = Message<'a>> {
    let urids = *urids;
    let mut rest = sequence.get(HEAD..).unwrap_or_default();
    std::iter::from_fn(move || {
        // The time of the event does not matter: a file takes longer to load than a block lasts.
        let atom = Atom::read(rest.get(8..)?)?;
        rest = rest.get(8 + atom.length..).unwrap_or_default();
        Some(atom)
    })
    .filter(move |atom| atom.kind == urids.object)
    .filter_map(move |atom| message(atom.body, &urids))
}

fn message<'a>(object: &'a [u8], urids: &Urids) -> Option<Message<'a>> {
    let kind = u32_at(object, 4)?;
    let (mut property, mut value) = (None, None);
    let mut rest = object.get(HEAD..)?;
    while let (Some(key), Some(atom)) = (u32_at(rest, 0), rest.get(8..).and_then(Atom::read)) {
        if key == urids.patch_property && atom.kind == urids.urid {
            property = u32_at(atom.body, 0);
        } else if key == urids.patch_value && atom.kind == urids.path {
            value = Some(atom.body);
        }
        rest = rest.get(8 + atom.length..).unwrap_or_default();
    }
    if kind == urids.patch_get {
        return match property {
            None => Some(Message::Get(None)),
            Some(property) => Some(Message::Get(Some(urids.file(property)?))),
        };
    }
    let file = urids.file(property?).filter(|_| kind == urids.patch_set)?;
    let path = value?;
    Some(Message::Set(file, path.split(|byte| *byte == 0).next().unwrap_or_default()))
}

/// Writes a sequence to the host.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    used: usize,
    urids: Urids,
}

impl<'a> Writer<'a> {
    /// An empty sequence in the buffer of the port; `None` if it is too small for that.
    pub fn new(buffer: &'a mut [u8], urids: &Urids) -> Option<Self> {
        if buffer.len() < 2 * HEAD {
            return None;
        }
        let mut writer = Self { buffer, used: HEAD, urids: *urids };
        writer.put(&[0, 0]);
        writer.finish();
        Some(writer)
    }

    fn put(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.buffer[self.used..self.used + 4].copy_from_slice(&number.to_ne_bytes());
            self.used += 4;
        }
    }

    /// Adds the path of a file; `false` if there is too little space.
    pub fn set(&mut self, file: FileProperty, path: &[u8]) -> bool {
        let Urids { object, path: of_path, urid, patch_set, patch_property, patch_value, .. } = self.urids;
        let value = path.len() + 1;
        // An object with two properties.
        let size = HEAD + (8 + HEAD + 8) + (8 + HEAD + value.next_multiple_of(ALIGNMENT));
        if self.buffer.len() - self.used < 8 + HEAD + size {
            return false;
        }
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        self.put(&[0, 0, length(size), object, 0, patch_set]);
        self.put(&[patch_property, 0, 4, urid, self.urids.of(file), 0]);
        self.put(&[patch_value, 0, length(value), of_path]);
        let end = self.used + value.next_multiple_of(ALIGNMENT);
        self.buffer[self.used..end].fill(0);
        self.buffer[self.used..self.used + path.len()].copy_from_slice(path);
        self.used = end;
        self.finish();
        true
    }

    /// Writes the size of the sequence.
    fn finish(&mut self) {
        let size = u32::try_from(self.used - HEAD).unwrap_or(u32::MAX);
        self.buffer[..4].copy_from_slice(&size.to_ne_bytes());
        self.buffer[4..8].copy_from_slice(&self.urids.sequence.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urids() -> Urids {
        // A number for each name: its length and its last letters.
        Urids::new(|name| name.bytes().fold(7, |number: u32, byte| number.wrapping_mul(31).wrapping_add(byte.into())))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let urids = urids();
        let mut buffer = [0xff; 512];
        let mut writer = Writer::new(&mut buffer, &urids).unwrap();
        assert!(writer.set(FileProperty::Model, b"/tones/deluxe.nam"));
        assert!(writer.set(FileProperty::Cabinet, b""));
        let used = writer.used;
        assert!(!writer.set(FileProperty::Model, &[b'x'; 400]), "too long for the buffer");
        assert_eq!(u32_at(&buffer, 0), Some(u32::try_from(used).unwrap() - 8));
        let read: Vec<_> = read(&buffer[8..used], &urids).collect();
        assert_eq!(
            read,
            [Message::Set(FileProperty::Model, b"/tones/deluxe.nam"), Message::Set(FileProperty::Cabinet, b"")]
        );
    }

    #[test]
    fn an_empty_sequence_has_no_message() {
        let urids = urids();
        let mut buffer = [0; 16];
        assert!(Writer::new(&mut buffer, &urids).is_some());
        assert_eq!(u32_at(&buffer, 0), Some(8));
        assert_eq!(read(&buffer[8..], &urids).count(), 0);
        assert!(Writer::new(&mut [0; 15], &urids).is_none());
    }

    #[test]
    fn truncated_and_foreign_messages_are_left_out() {
        let urids = urids();
        let mut buffer = [0; 256];
        let mut writer = Writer::new(&mut buffer, &urids).unwrap();
        assert!(writer.set(FileProperty::Model, b"/a"));
        let used = writer.used;
        for end in 8..used {
            assert_eq!(read(&buffer[8..end], &urids).count(), 0, "{end}");
        }
        // Every single byte can be wrong without a panic.
        for at in 8..used {
            for value in [0, 1, 0x7f, 0xff] {
                let mut wrong = buffer;
                wrong[at] = value;
                let _ = read(&wrong[8..used], &urids).count();
            }
        }
    }
}
