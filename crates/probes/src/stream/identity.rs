//! Addresses, ids and formats as text.

use frames::{CRF, Format, Mac};

/// Formats a MAC address: `02:00:00:00:00:01`.
pub fn mac([a, b, c, d, e, f]: Mac) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

/// Formats a stream id for people: address and number of the talker, `02:00:00:00:00:01:0000`.
pub fn stream_name(id: u64) -> String {
    let [a, b, c, d, e, f, ..] = id.to_be_bytes();
    format!("{}:{:04x}", mac([a, b, c, d, e, f]), id & 0xffff)
}

/// Formats a stream id as 16 hexadecimal digits.
pub fn stream_id(id: u64) -> String {
    format!("{id:016x}")
}

/// Returns the name of a known format, or the number of another subtype.
pub fn format(subtype: u8) -> String {
    match Format::of(subtype) {
        Some(Format::Aaf) => "aaf".to_owned(),
        Some(Format::Iec61883) => "61883-6".to_owned(),
        None if subtype == CRF => "crf".to_owned(),
        None => format!("{subtype:#04x}"),
    }
}
