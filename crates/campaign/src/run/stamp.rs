//! The current time as text.

/// The current time for file names, UTC: `20261121-143000`.
#[must_use]
pub fn stamp_now() -> String {
    jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}

/// The current time as RFC 3339, to the millisecond.
pub fn now() -> String {
    jiff::Timestamp::now().round(jiff::Unit::Millisecond).unwrap_or_default().to_string()
}
