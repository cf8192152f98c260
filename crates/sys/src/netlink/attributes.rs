//! Netlink attributes: each has length, type and value, and starts at a multiple of four bytes.

use super::error::AnswerError;

/// Mask for the attribute type, without the flags NLA_F_NESTED and NLA_F_NET_BYTEORDER.
const KIND: u16 = 0x3fff;

/// Rounds up to a multiple of 4.
pub(super) fn align(length: usize) -> usize {
    length.saturating_add(3) & !3
}

/// An attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The attribute type. Its meaning depends on the message and on the enclosing attribute.
    pub kind: u16,
    /// The value.
    pub value: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// Decodes the value as nested attributes.
    ///
    /// # Errors
    /// [`AnswerError::Malformed`].
    pub fn nested(&self) -> Result<Attributes<'a>, AnswerError> {
        Attributes::read(self.value)
    }
}

/// The attributes of a message or of an enclosing attribute. The getters return `None` if the attribute is missing or
/// its value has another length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes<'a>(Vec<Attribute<'a>>);

impl<'a> Attributes<'a> {
    /// Decodes all attributes.
    ///
    /// # Errors
    /// [`AnswerError::Malformed`] if a length is too short or exceeds the remaining bytes.
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

    /// All attributes, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Attribute<'a>> {
        self.0.iter()
    }

    /// The first attribute of a type.
    #[must_use]
    pub fn get(&self, kind: u16) -> Option<Attribute<'a>> {
        self.0.iter().find(|attribute| attribute.kind == kind).copied()
    }

    /// The bytes of the first attribute of a type.
    #[must_use]
    pub fn bytes(&self, kind: u16) -> Option<&'a [u8]> {
        Some(self.get(kind)?.value)
    }

    /// An 8-bit number.
    #[must_use]
    pub fn u8(&self, kind: u16) -> Option<u8> {
        self.bytes(kind)?.try_into().ok().map(u8::from_ne_bytes)
    }

    /// A 16-bit number.
    #[must_use]
    pub fn u16(&self, kind: u16) -> Option<u16> {
        self.bytes(kind)?.try_into().ok().map(u16::from_ne_bytes)
    }

    /// A 32-bit number.
    #[must_use]
    pub fn u32(&self, kind: u16) -> Option<u32> {
        self.bytes(kind)?.try_into().ok().map(u32::from_ne_bytes)
    }

    /// An 8-bit number as a boolean.
    #[must_use]
    pub fn flag(&self, kind: u16) -> Option<bool> {
        self.u8(kind).map(|value| value != 0)
    }

    /// A 64-bit number. The kernel may send it as 32 bits if it fits.
    #[must_use]
    pub fn uint(&self, kind: u16) -> Option<u64> {
        let wide = self.bytes(kind)?.try_into().ok().map(u64::from_ne_bytes);
        wide.or_else(|| self.u32(kind).map(u64::from))
    }

    /// Text up to the first NUL.
    #[must_use]
    pub fn text(&self, kind: u16) -> Option<String> {
        let bytes = self.bytes(kind)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// The attributes nested in the first attribute of a type; `None` also if they are malformed.
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
    fn reads_what_request_wrote() {
        let bytes = payload(
            &Request::get(0).u8(1, 7).text(2, "veth").nested(3, |inner| inner.u32(1, 9).bytes_of(2, &[1, 2, 3])),
        );
        let attributes = Attributes::read(&bytes).unwrap();
        assert_eq!((attributes.u8(1), attributes.text(2).as_deref()), (Some(7), Some("veth")));
        let inner = attributes.nested(3).unwrap();
        assert_eq!((inner.u32(1), inner.bytes(2)), (Some(9), Some(&[1, 2, 3][..])));
        assert_eq!((attributes.u32(1), attributes.u8(9)), (None, None), "wrong length; missing");
        assert_eq!(attributes.iter().count(), 3);
    }

    #[test]
    fn rejects_wrong_lengths() {
        for bytes in [&[3, 0, 1, 0][..], &[9, 0, 1, 0, 0, 0, 0, 0], &[4, 0], &[0, 0, 0, 0]] {
            assert_eq!(Attributes::read(bytes), Err(AnswerError::Malformed), "{bytes:?}");
        }
        let value: &[u8] = &[8];
        assert_eq!(
            Attributes::read(&[5, 0, 1, 0, 8]).unwrap().bytes(1),
            Some(value),
            "padding may be missing at the end"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), kind in 0_u16..4) {
            if let Ok(attributes) = Attributes::read(&bytes) {
                let _ = (attributes.u8(kind), attributes.u32(kind), attributes.uint(kind), attributes.text(kind));
                let _ = attributes.nested(kind);
            }
        }

        #[test]
        fn attributes_round_trip(parts in proptest::collection::vec((0_u16..0x4000, proptest::collection::vec(any::<u8>(), 0..40)), 0..6)) {
            let request = parts.iter().fold(Request::get(0), |request, (kind, value)| request.bytes_of(*kind, value));
            let bytes = payload(&request);
            let read: Vec<_> = Attributes::read(&bytes).unwrap().iter().map(|a| (a.kind, a.value.to_vec())).collect();
            prop_assert_eq!(read, parts);
        }
    }
}
