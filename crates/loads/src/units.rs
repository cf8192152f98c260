//! Durations and sizes with units: `10us`, `64M`.

const TIMES: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
const SIZES: [(&str, u64); 4] = [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10), ("", 1)];

/// Parses a whole number with its unit; returns ns.
pub(crate) fn parse_time_ns(text: &str) -> Option<u64> {
    parse(text, &TIMES)
}

/// Parses a whole number of bytes, or of `K`, `M`, `G` (powers of 1024).
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    parse(text, &SIZES)
}

/// Writes a time in the largest unit that keeps it exact.
pub(crate) fn show_time_ns(ns: u64) -> String {
    show(ns, &TIMES)
}

/// Writes a size in the largest unit that keeps it exact.
pub(crate) fn show_size(bytes: u64) -> String {
    show(bytes, &SIZES)
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn show(value: u64, units: &[(&str, u64)]) -> String {
    let fits = |factor: u64| value >= factor && value.is_multiple_of(factor);
    match units.iter().find(|(_, factor)| fits(*factor)) {
        Some((name, factor)) => format!("{}{name}", value / factor),
        None => format!("{value}{}", units[units.len() - 1].0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_units() {
        assert_eq!(parse_time_ns("10us"), Some(10_000));
        assert_eq!(parse_time_ns("2s"), Some(2_000_000_000));
        assert_eq!(parse_time_ns("10"), None, "a time needs its unit");
        assert_eq!(parse_time_ns("us"), None);
        assert_eq!(parse_time_ns("1h"), None);
        assert_eq!(parse_size("64M"), Some(64 << 20));
        assert_eq!(parse_size("64m"), Some(64 << 20));
        assert_eq!(parse_size("512"), Some(512));
        assert_eq!(parse_size("99999999999999G"), None, "too large for 64 bits");
        assert_eq!(show_time_ns(1_500_000), "1500us");
        assert_eq!(show_time_ns(0), "0ns");
        assert_eq!(show_size(3 << 29), "1536M");
    }
}
