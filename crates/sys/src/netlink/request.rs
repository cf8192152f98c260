//! Encodes requests.

use super::attributes::align;

/// Length of `nlmsghdr`, bytes: length u32, type u16, flags u16, sequence u32, port u32.
pub(super) const HEADER: usize = 16;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
/// NLM_F_REPLACE: replaces the object if it exists.
pub const REPLACE: u16 = 0x100;
/// NLM_F_EXCL: fails if the object exists.
pub const EXCLUSIVE: u16 = 0x200;
/// NLM_F_CREATE: creates the object if it does not exist.
pub const CREATE: u16 = 0x400;

const NLA_F_NESTED: u16 = 1 << 15;

/// A message to the kernel: first the header of the family, then attributes, in the order of the calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    kind: u16,
    flags: u16,
    payload: Vec<u8>,
}

impl Request {
    /// A request for one object.
    #[must_use]
    pub fn get(kind: u16) -> Self {
        Self::change(kind, 0)
    }

    /// A request for all objects of a type.
    #[must_use]
    pub fn dump(kind: u16) -> Self {
        // A dump ends with its own final message, so it needs no acknowledgement.
        Self { kind, flags: NLM_F_REQUEST | NLM_F_DUMP, payload: Vec::new() }
    }

    /// A request that changes something. `flags` is a combination of [`CREATE`], [`EXCLUSIVE`] and [`REPLACE`].
    #[must_use]
    pub fn change(kind: u16, flags: u16) -> Self {
        Self { kind, flags: NLM_F_REQUEST | NLM_F_ACK | flags, payload: Vec::new() }
    }

    /// A request for one object of the generic family with this number.
    #[must_use]
    pub fn generic(family: u16, command: u8) -> Self {
        Self::get(family).header(&[command, 1, 0, 0])
    }

    /// A request for all objects of a generic family.
    #[must_use]
    pub fn generic_dump(family: u16, command: u8) -> Self {
        Self::dump(family).header(&[command, 1, 0, 0])
    }

    /// Appends the fixed header of the family, which precedes the attributes.
    #[must_use]
    pub fn header(mut self, bytes: &[u8]) -> Self {
        self.payload.extend_from_slice(bytes);
        self.pad();
        self
    }

    /// Appends an attribute with these bytes.
    ///
    /// # Panics
    /// If there are more than 65531 bytes, the most an attribute can contain.
    #[must_use]
    pub fn bytes_of(mut self, kind: u16, bytes: &[u8]) -> Self {
        let length = u16::try_from(bytes.len() + 4).expect("an attribute holds at most 65531 bytes");
        self.payload.extend_from_slice(&length.to_ne_bytes());
        self.payload.extend_from_slice(&kind.to_ne_bytes());
        self.payload.extend_from_slice(bytes);
        self.pad();
        self
    }

    /// Appends an 8-bit attribute.
    #[must_use]
    pub fn u8(self, kind: u16, value: u8) -> Self {
        self.bytes_of(kind, &[value])
    }

    /// Appends a 32-bit attribute.
    #[must_use]
    pub fn u32(self, kind: u16, value: u32) -> Self {
        self.bytes_of(kind, &value.to_ne_bytes())
    }

    /// Appends a text attribute. The kernel expects a NUL at its end.
    ///
    /// # Panics
    /// If the text is too long, as [`bytes_of`](Self::bytes_of).
    #[must_use]
    pub fn text(self, kind: u16, text: &str) -> Self {
        self.bytes_of(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// Appends an attribute that contains attributes, optionally after a header.
    ///
    /// # Panics
    /// If the content is too long, as [`bytes_of`](Self::bytes_of).
    #[must_use]
    pub fn nested(self, kind: u16, inside: impl FnOnce(Self) -> Self) -> Self {
        let inner = inside(Self { kind, flags: 0, payload: Vec::new() });
        self.bytes_of(kind | NLA_F_NESTED, &inner.payload)
    }

    /// The encoded message.
    #[must_use]
    pub fn bytes(&self, sequence: u32) -> Vec<u8> {
        message(self.kind, self.flags, sequence, &self.payload)
    }

    /// The message as the kernel would send it, to build answers for tests.
    #[must_use]
    pub fn as_answer(&self) -> Vec<u8> {
        message(self.kind, 0, 0, &self.payload)
    }

    fn pad(&mut self) {
        self.payload.resize(align(self.payload.len()), 0);
    }
}

/// Encodes a message.
pub(super) fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + payload.len()).expect("a request is far smaller than 4 GiB");
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Derived by hand from netlink.h for a little-endian machine.
    #[test]
    #[cfg(target_endian = "little")]
    fn encodes_as_defined_in_the_kernel_headers() {
        let request = Request::generic(21, 4).nested(1, |header| header.text(2, "eth0").u32(3, 1));
        #[rustfmt::skip]
        let expected = [
            44, 0, 0, 0,  21, 0,  5, 0,  7, 0, 0, 0,  0, 0, 0, 0, // length, kind, REQUEST|ACK, sequence, port
            4, 1, 0, 0, // command, version
            24, 0,  1, 0x80, // the enclosing attribute
            9, 0,  2, 0,  b'e', b't', b'h', b'0', 0, 0, 0, 0, // padded to 4
            8, 0,  3, 0,  1, 0, 0, 0,
        ];
        assert_eq!(request.bytes(7), expected);
    }
}
