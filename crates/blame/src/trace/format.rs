//! The kernel's own description of its records: `events/*/*/format` and `events/header_page`.
//!
//! Every offset in it is data from outside: whoever reads a record with it checks it against that record.

/// Where a field is in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Bytes from the record's begin.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Whether its number has a sign.
    pub signed: bool,
    /// Whether it is the thing itself, or says where that is.
    pub place: Place,
}

/// What a field's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The thing itself.
    Here,
    /// `__data_loc`: offset (low 16 bits) and length (high 16 bits) of the thing in the record.
    Elsewhere,
    /// `__rel_data_loc`: the same, counted from the end of this field.
    After,
}

/// The description of one kind of record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format {
    /// Name of the event.
    pub name: String,
    /// What `common_type` is in its records.
    pub id: u16,
    /// How the kernel prints it.
    pub print: String,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Reads an event's `format` file; `None` when that is not one.
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

    /// A field by its name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(own, _)| own == name).map(|&(_, field)| field)
    }
}

/// `field:char comm[16]; offset:8; size:16; signed:0;` The sign is missing on kernels before 2.6.34.
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
    let place = match declaration.split_whitespace().next()? {
        "__data_loc" => Place::Elsewhere,
        "__rel_data_loc" => Place::After,
        _ => Place::Here,
    };
    let last = declaration.split_whitespace().next_back()?;
    let name = last.split('[').next()?.trim_start_matches('*');
    Some((name.to_owned(), Field { offset: offset?, size: size?, signed, place }))
}

impl Field {
    /// The number in the field, widened; `None` where the record is too short or the field no number.
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

    /// The field as a number of 32 bits; `None` when it is none.
    #[must_use]
    pub fn word(&self) -> Option<Word> {
        (self.size == 4 && self.place == Place::Here).then_some(Word(self.offset))
    }

    /// The bytes of the field, or those that it leads to.
    #[must_use]
    #[inline]
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let leads = || self.number(record).map(|leads| ((leads & 0xffff) as usize, (leads >> 16 & 0xffff) as usize));
        let (start, length) = match self.place {
            Place::Here => (self.offset, self.size),
            Place::Elsewhere => leads()?,
            Place::After => {
                let (start, length) = leads()?;
                (self.offset.checked_add(self.size)?.checked_add(start)?, length)
            }
        };
        record.get(start..)?.get(..length)
    }

    /// The bytes of the field up to the first NUL.
    #[must_use]
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = self.bytes(record)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }
}

/// A number of 32 bits in a record: its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word(usize);

impl Word {
    /// The number; `None` where the record is too short.
    #[inline]
    #[must_use]
    pub fn get(self, record: &[u8]) -> Option<u32> {
        record.get(self.0..)?.first_chunk().map(|&word| u32::from_le_bytes(word))
    }
}

/// How a page of a ring is laid out: `events/header_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// The time of the page.
    pub time: Field,
    /// How much of the page is used, with flags.
    pub commit: Field,
    /// Where its records begin, bytes from its own begin.
    pub data: usize,
    /// Its size with its header, bytes.
    pub size: usize,
}

/// No kernel has larger ones: a sub-buffer is at most 2^(MAX_ORDER) pages of 64 KB, and sane ones are far below.
const LARGEST_PAGE: usize = 64 << 20;

impl PageLayout {
    /// Reads `events/header_page`; `None` when that is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Vec<_> = text.lines().filter_map(field).collect();
        let find = |name: &str| fields.iter().find(|(own, _)| own == name).map(|&(_, field)| field);
        let (time, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
        let size = data.offset.checked_add(data.size)?;
        let sane = time.size == 8 && matches!(commit.size, 4 | 8) && data.size > 0 && size <= LARGEST_PAGE;
        let inside = |field: Field| field.offset.checked_add(field.size).is_some_and(|end| end <= data.offset);
        (sane && inside(time) && inside(commit)).then_some(Self { time, commit, data: data.offset, size })
    }
}

#[cfg(test)]
mod tests;
