//! The kernel's descriptions of its records: `events/*/*/format` and `events/header_page`.
//!
//! The offsets in them are untrusted: each access checks them against the record.

/// A field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Offset from the start of the record, bytes.
    pub offset: usize,
    /// Size, bytes.
    pub size: usize,
    /// True if its number is signed.
    pub signed: bool,
    /// Location of the field's data.
    pub location: Location,
}

/// Location of a field's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// In the field.
    Inline,
    /// `__data_loc`: the field contains the offset in the record (low 16 bits) and the length (high 16 bits).
    DataLoc,
    /// `__rel_data_loc`: the same, but the offset counts from the end of the field.
    RelDataLoc,
}

/// The format of one event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format {
    /// Name of the event.
    pub name: String,
    /// The value of `common_type` in its records.
    pub id: u16,
    /// The kernel's print format.
    pub print: String,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Parses an event's `format` file; `None` if the text is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        Some(Self {
            name: line("name:")?.trim().to_owned(),
            id: line("ID:")?.trim().parse().ok()?,
            print: line("print fmt:").unwrap_or_default().trim().to_owned(),
            fields: text.lines().filter_map(field).collect(),
        })
    }

    /// Returns the field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(own, _)| own == name).map(|&(_, field)| field)
    }
}

/// Parses `field:char comm[16]; offset:8; size:16; signed:0;`. Kernels before 2.6.34 omit the sign.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?.trim();
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.trim().parse().ok(),
            Some(("size", number)) => size = number.trim().parse().ok(),
            Some(("signed", flag)) => signed = flag.trim() == "1",
            _ => {}
        }
    }
    let location = match declaration.split_whitespace().next()? {
        "__data_loc" => Location::DataLoc,
        "__rel_data_loc" => Location::RelDataLoc,
        _ => Location::Inline,
    };
    let last = declaration.split_whitespace().next_back()?;
    let name = last.split('[').next()?.trim_start_matches('*');
    Some((name.to_owned(), Field { offset: offset?, size: size?, signed, location }))
}

impl Field {
    /// Returns the field's number, widened; `None` if the record is too short or the field is not a number.
    #[must_use]
    pub fn number(&self, record: &[u8]) -> Option<i64> {
        let bytes = record.get(self.offset..)?.get(..self.size)?;
        Some(match (bytes, self.signed) {
            (&[a, b, c, d], true) => i32::from_le_bytes([a, b, c, d]).into(),
            (&[a, b, c, d], false) => u32::from_le_bytes([a, b, c, d]).into(),
            (&[a, b, c, d, e, f, g, h], _) => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            (&[a, b], true) => i16::from_le_bytes([a, b]).into(),
            (&[a, b], false) => u16::from_le_bytes([a, b]).into(),
            (&[a], true) => a.cast_signed().into(),
            (&[a], false) => a.into(),
            _ => return None,
        })
    }

    /// Returns this as a 32-bit field; `None` if it has another size.
    #[must_use]
    pub fn as_u32(&self) -> Option<U32Field> {
        (self.size == 4 && self.location == Location::Inline).then_some(U32Field(self.offset))
    }

    /// Returns the field's data.
    #[must_use]
    #[inline]
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let data_loc = || {
            let [low, low_2, high, high_2, ..] = self.number(record)?.to_le_bytes();
            Some((u16::from_le_bytes([low, low_2]).into(), u16::from_le_bytes([high, high_2]).into()))
        };
        let (start, length) = match self.location {
            Location::Inline => (self.offset, self.size),
            Location::DataLoc => data_loc()?,
            Location::RelDataLoc => {
                let (start, length) = data_loc()?;
                (self.offset.checked_add(self.size)?.checked_add(start)?, length)
            }
        };
        record.get(start..)?.get(..length)
    }

    /// Returns the field's data up to the first NUL.
    #[must_use]
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = self.bytes(record)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }
}

/// A 32-bit number in a record, by its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct U32Field(usize);

impl U32Field {
    /// Returns the number; `None` if the record is too short.
    #[inline]
    #[must_use]
    pub fn get(self, record: &[u8]) -> Option<u32> {
        record.get(self.0..)?.first_chunk().map(|&bytes| u32::from_le_bytes(bytes))
    }
}

/// Layout of a page of the ring: `events/header_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// Timestamp of the page.
    pub time: Field,
    /// Number of bytes used, and flags.
    pub commit: Field,
    /// Offset of the first record, bytes.
    pub data: usize,
    /// Size of the page with its header, bytes.
    pub size: usize,
}

/// Upper bound for the size of a page. A sub-buffer has at most 2^(MAX_ORDER) pages of 64 KiB; real ones are far
/// smaller.
const MAX_PAGE_SIZE: usize = 64 << 20;

impl PageLayout {
    /// Parses `events/header_page`; `None` if the text is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Vec<_> = text.lines().filter_map(field).collect();
        let find = |name: &str| fields.iter().find(|(own, _)| own == name).map(|&(_, field)| field);
        let (time, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
        let size = data.offset.checked_add(data.size)?;
        let sane = time.size == 8 && matches!(commit.size, 4 | 8) && data.size > 0 && size <= MAX_PAGE_SIZE;
        let inside = |field: Field| field.offset.checked_add(field.size).is_some_and(|end| end <= data.offset);
        (sane && inside(time) && inside(commit)).then_some(Self { time, commit, data: data.offset, size })
    }
}

#[cfg(test)]
mod tests;
