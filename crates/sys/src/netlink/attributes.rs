//! Attributes: length, kind and value, one behind the other, each at a multiple of four bytes.

use super::error::AnswerError;

/// The bits of the kind that tell how the value is written, not what it is: NLA_F_NESTED and NLA_F_NET_BYTEORDER.
const KIND: u16 = 0x3fff;

/// The next multiple of 4.
pub(super) fn align(length: usize) -> usize {
    length.saturating_add(3) & !3
}

/// An attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// What it is; numbered anew for each kind of message and each nest.
    pub kind: u16,
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// The attributes inside.
    ///
    /// # Errors
    /// `Malformed`.
    pub fn nested(&self) -> Result<Attributes<'a>, AnswerError> {
        Attributes::read(self.value)
    }
}

/// The attributes of a message or of a nest. The getters answer `None` both for what is not there and for a value of
/// another length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes<'a>(Vec<Attribute<'a>>);

impl<'a> Attributes<'a> {
    /// Reads them all.
    ///
    /// # Errors
    /// `Malformed` when a length is too short, or longer than what is left.
    pub fn read(mut bytes: &'a [u8]) -> Result<Self, AnswerError> {
        let mut attributes = Vec::new();
        while !bytes.is_empty() {
            let head: &[u8; 4] = bytes.first_chunk().ok_or(AnswerError::Malformed)?;
            let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
            let kind = u16::from_ne_bytes([head[2], head[3]]) & KIND;
            let value = bytes.get(4..length).ok_or(AnswerError::Malformed)?;
            attributes.push(Attribute { kind, value });
            bytes = bytes.get(align(length)..).unwrap_or_default();
        }
        Ok(Self(attributes))
    }

    /// All of them, in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Attribute<'a>> {
        self.0.iter()
    }

    /// The first of a kind.
    #[must_use]
    pub fn get(&self, kind: u16) -> Option<Attribute<'a>> {
        self.0.iter().find(|attribute| attribute.kind == kind).copied()
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self, kind: u16) -> Option<&'a [u8]> {
        Some(self.get(kind)?.value)
    }

    /// A number of one byte.
    #[must_use]
    pub fn u8(&self, kind: u16) -> Option<u8> {
        self.bytes(kind)?.try_into().ok().map(u8::from_ne_bytes)
    }

    /// A number of two bytes.
    #[must_use]
    pub fn u16(&self, kind: u16) -> Option<u16> {
        self.bytes(kind)?.try_into().ok().map(u16::from_ne_bytes)
    }

    /// A number of four bytes.
    #[must_use]
    pub fn u32(&self, kind: u16) -> Option<u32> {
        self.bytes(kind)?.try_into().ok().map(u32::from_ne_bytes)
    }

    /// A number of one byte that means on or off.
    #[must_use]
    pub fn flag(&self, kind: u16) -> Option<bool> {
        self.u8(kind).map(|value| value != 0)
    }

    /// A number of eight bytes, or one of four where a kernel saves the rest.
    #[must_use]
    pub fn uint(&self, kind: u16) -> Option<u64> {
        let wide = self.bytes(kind)?.try_into().ok().map(u64::from_ne_bytes);
        wide.or_else(|| self.u32(kind).map(u64::from))
    }

    /// Text, up to its NUL.
    #[must_use]
    pub fn text(&self, kind: u16) -> Option<String> {
        let bytes = self.bytes(kind)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// The attributes inside the first of a kind; `None` also where they make no sense.
    #[must_use]
    pub fn nested(&self, kind: u16) -> Option<Self> {
        self.get(kind)?.nested().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::Request, *};

    fn payload(request: &Request) -> Vec<u8> {
        request.as_answer()[16..].to_vec()
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = payload(
            &Request::get(0).u8(1, 7).text(2, "veth").nested(3, |inner| inner.u32(1, 9).bytes_of(2, &[1, 2, 3])),
        );
        let attributes = Attributes::read(&bytes).unwrap();
        assert_eq!((attributes.u8(1), attributes.text(2).as_deref()), (Some(7), Some("veth")));
        let inner = attributes.nested(3).unwrap();
        assert_eq!((inner.u32(1), inner.bytes(2)), (Some(9), Some(&[1, 2, 3][..])));
        assert_eq!((attributes.u32(1), attributes.u8(9)), (None, None), "another length; not there");
        assert_eq!(attributes.iter().count(), 3);
    }

    #[test]
    fn wrong_lengths_are_malformed() {
        for bytes in [&[3, 0, 1, 0][..], &[9, 0, 1, 0, 0, 0, 0, 0], &[4, 0], &[0, 0, 0, 0]] {
            assert_eq!(Attributes::read(bytes), Err(AnswerError::Malformed), "{bytes:?}");
        }
        let value: &[u8] = &[8];
        assert_eq!(Attributes::read(&[5, 0, 1, 0, 8]).unwrap().bytes(1), Some(value), "padding may lack at the end");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80), kind in 0_u16..4) {
            if let Ok(attributes) = Attributes::read(&bytes) {
                let _ = (attributes.u8(kind), attributes.u32(kind), attributes.uint(kind), attributes.text(kind));
                let _ = attributes.nested(kind);
            }
        }

        #[test]
        fn any_attributes_come_back(parts in proptest::collection::vec((0_u16..0x4000, proptest::collection::vec(any::<u8>(), 0..40)), 0..6)) {
            let request = parts.iter().fold(Request::get(0), |request, (kind, value)| request.bytes_of(*kind, value));
            let bytes = payload(&request);
            let read: Vec<_> = Attributes::read(&bytes).unwrap().iter().map(|a| (a.kind, a.value.to_vec())).collect();
            prop_assert_eq!(read, parts);
        }
    }
}
