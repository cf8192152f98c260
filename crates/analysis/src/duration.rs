//! Durations in the form `30s`, `10m`, `125us`, `1.5ms`, `250ns`, `2d`, `1h30m`.

use std::fmt::Write;

/// The units of durations, with their length in ns.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Other names of units, with the name here.
const OTHER_NAMES: [(&str, &[&str]); 7] = [
    ("ns", &["nsec", "nsecs", "nanosecond", "nanoseconds"]),
    ("us", &["usec", "usecs", "microsecond", "microseconds"]),
    ("ms", &["msec", "msecs", "millisecond", "milliseconds"]),
    ("s", &["sec", "secs", "second", "seconds"]),
    ("m", &["min", "mins", "minute", "minutes"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("d", &["day", "days"]),
];

const SECOND_NS: u64 = 1_000_000_000;
const YEAR_NS: u64 = 31_557_600 * SECOND_NS;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is empty.
    #[error("a duration is missing: write for example 30s, 10m or 125us")]
    Empty,
    /// The unit is missing.
    #[error("{number:?} has no unit: write for example {number}us, {number}ms or {number}s")]
    NoUnit {
        /// The text up to the number as written.
        number: String,
    },
    /// The unit is unknown.
    #[error("{text:?} has the unknown unit {unit:?}: use ns, us, ms, s, m, h or d, for example {example}")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The text up to this unit, with the unit that was probably meant.
        example: String,
        /// The text in place of a unit.
        unit: String,
    },
    /// The text does not start with a number.
    #[error("{text:?} is not a duration: write a positive number and a unit, for example 30s, 1.5ms or 125us")]
    NotANumber {
        /// The whole text.
        text: String,
    },
    /// The duration is not a whole number of nanoseconds.
    #[error("{text:?} is finer than 1 ns: use whole nanoseconds, for example 1333.333us")]
    TooFine {
        /// The whole text.
        text: String,
    },
    /// The duration does not fit into signed nanoseconds.
    #[error("{text:?} is too long: a duration can be at most 106751d (292 years)")]
    TooLong {
        /// The whole text.
        text: String,
    },
}

/// Reads a duration in ns, 0 to `i64::MAX`: a decimal number and one of the units ns, us, ms, s, m (minutes), h, d; or
/// several of them from the largest to the smallest unit, such as `1h30m`.
///
/// Accepts `µs` for us, and a space before the unit. The value is exact, without rounding.
///
/// # Errors
/// If a unit is missing or unknown, not smaller than the one before, or a number is missing, negative, finer than 1 ns
/// or above 292 years.
pub fn parse_ns(text: &str) -> Result<u64, DurationError> {
    let written = text.trim();
    if written.is_empty() {
        return Err(DurationError::Empty);
    }
    let too_long = || DurationError::TooLong { text: written.to_owned() };
    let (mut total_ns, mut larger_ns, mut rest) = (0u64, u64::MAX, written);
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !c.is_ascii_digit() && c != '.');
        let (unit, after) = split_where(after.trim_start(), |c| c.is_ascii_digit());
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return Err(DurationError::NotANumber { text: written.to_owned() });
        }
        let up_to_number = &written[..written.len() - rest.len() + number.len()];
        let scale_ns = scale_of(unit.trim_end(), up_to_number, written)?;
        if scale_ns >= larger_ns {
            return Err(DurationError::NotANumber { text: written.to_owned() });
        }
        let whole: u64 = whole.parse().map_err(|_| too_long())?;
        let too_fine = || DurationError::TooFine { text: written.to_owned() };
        let fraction_ns = fraction_of(fraction, scale_ns).ok_or_else(too_fine)?;
        let part_ns = whole.checked_mul(scale_ns).and_then(|ns| ns.checked_add(fraction_ns));
        total_ns = part_ns.and_then(|ns| ns.checked_add(total_ns)).ok_or_else(too_long)?;
        (larger_ns, rest) = (scale_ns, after);
    }
    if i64::try_from(total_ns).is_ok() { Ok(total_ns) } else { Err(too_long()) }
}

/// The text before the first character of this kind, and the rest.
fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

/// The length of `unit` in ns; `number`, the text before it, and `text` are for the error.
fn scale_of(unit: &str, number: &str, text: &str) -> Result<u64, DurationError> {
    if unit.is_empty() {
        return Err(DurationError::NoUnit { number: number.to_owned() });
    }
    let unit = unit.replace(['µ', 'μ'], "u");
    let known = UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, scale_ns)| scale_ns);
    known.ok_or_else(|| {
        let is_other = |names: &[&str]| names.contains(&unit.to_lowercase().as_str());
        let probable = OTHER_NAMES.iter().find(|(_, names)| is_other(names)).map_or("ms", |(name, _)| *name);
        DurationError::UnknownUnit { text: text.to_owned(), example: format!("{number}{probable}"), unit }
    })
}

/// The digits after the decimal point as a share of `scale_ns`; `None` if that is not a whole number of ns.
fn fraction_of(digits: &str, scale_ns: u64) -> Option<u64> {
    let digits = digits.trim_end_matches('0');
    let Ok(length @ ..=18) = u32::try_from(digits.len()) else { return None };
    let numerator: u128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let (scaled, unit) = (numerator * u128::from(scale_ns), 10u128.pow(length));
    if scaled % unit == 0 { u64::try_from(scaled / unit).ok() } else { None }
}

/// A time with 3 significant digits: `41.3 us`, `2.74 ms`, `-1.03 s`.
///
/// Trailing zeros are dropped if the value is exact: `1 ms`, `50 us`. Above 999 s, all digits before the point are
/// shown.
#[must_use]
pub fn format_ns(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let size = u128::from(ns.unsigned_abs());
    for &(unit, scale_ns) in &UNITS[..4] {
        let scale_ns = u128::from(scale_ns);
        for (decimals, shift) in [(2, 100), (1, 10), (0, 1)] {
            let digits = (size * shift + scale_ns / 2) / scale_ns;
            // The rounded value decides, so that 999.96 us becomes 1.00 ms instead of 1000 us.
            if digits < 1000 || (unit == "s" && decimals == 0) {
                let exact = (size * shift).is_multiple_of(scale_ns);
                return format!("{sign}{} {unit}", decimal(digits, decimals, exact));
            }
        }
    }
    unreachable!("seconds without decimals take every value")
}

/// Formats an unsigned time like [`format_ns`]; times above `i64::MAX` ns are shown as that.
#[must_use]
pub fn format_unsigned_ns(ns: u64) -> String {
    format_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// The exact duration in the form that [`parse_ns`] reads: `125us`, `1333.333us`, `3m`; for commands to paste.
#[must_use]
pub fn format_exact(ns: u64) -> String {
    let whole = UNITS.iter().rev().find(|(_, scale_ns)| ns > 0 && ns.is_multiple_of(*scale_ns));
    match whole {
        Some((unit, scale_ns)) if *scale_ns > 1 || ns < 1000 => format!("{}{unit}", ns / scale_ns),
        Some(_) => format!("{}us", decimal(u128::from(ns), 3, true)),
        None => "0s".to_owned(),
    }
}

/// `digits` with a decimal point before the last `decimals` digits.
fn decimal(digits: u128, decimals: u32, drop_zeros: bool) -> String {
    let unit = 10u128.pow(decimals);
    let mut text = (digits / unit).to_string();
    if decimals > 0 {
        let _ = write!(text, ".{:0width$}", digits % unit, width = decimals as usize);
        if drop_zeros {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
    }
    text
}

/// A long duration in its two largest units: `1 h 05 min`, `3 min 20 s`, `2 d 04 h`, `3 years`.
///
/// Below a minute, the same as [`format_ns`].
#[must_use]
pub fn format_duration(ns: u64) -> String {
    let seconds = ns.saturating_add(SECOND_NS / 2) / SECOND_NS;
    let minutes = (seconds + 30) / 60;
    let hours = (minutes + 30) / 60;
    match () {
        () if seconds < 60 => format_unsigned_ns(ns),
        () if seconds < 3600 => two_units(seconds / 60, "min", seconds % 60, "s"),
        () if minutes < 24 * 60 => two_units(minutes / 60, "h", minutes % 60, "min"),
        () if ns < 2 * YEAR_NS => two_units(hours / 24, "d", hours % 24, "h"),
        () => format!("{:.1} years", ns as f64 / YEAR_NS as f64).replace(".0 ", " "),
    }
}

fn two_units(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 { format!("{large} {large_unit}") } else { format!("{large} {large_unit} {small:02} {small_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_durations_exactly() {
        for (text, ns) in [
            ("30s", 30_000_000_000),
            ("10m", 600_000_000_000),
            ("1h", 3_600_000_000_000),
            ("125us", 125_000),
            ("125µs", 125_000),
            ("1.5ms", 1_500_000),
            ("1333.333us", 1_333_333),
            ("250ns", 250),
            ("2d", 172_800_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1 m 1.5 s 2ns", 61_500_000_002),
            (" 41.3 us ", 41_300),
            ("0s", 0),
            ("0.000000001s", 1),
            ("1.50000000000000000000000000000000ms", 1_500_000),
            ("9223372036854775807ns", i64::MAX as u64),
        ] {
            assert_eq!(parse_ns(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn rejects_other_texts_with_a_remedy() {
        for (text, expected) in [
            ("", "a duration is missing: write for example 30s, 10m or 125us"),
            ("125", "\"125\" has no unit: write for example 125us, 125ms or 125s"),
            ("1.5", "\"1.5\" has no unit: write for example 1.5us, 1.5ms or 1.5s"),
            ("5 sec", "\"5 sec\" has the unknown unit \"sec\": use ns, us, ms, s, m, h or d, for example 5s"),
            ("2min", "\"2min\" has the unknown unit \"min\": use ns, us, ms, s, m, h or d, for example 2m"),
            ("1h30min", "\"1h30min\" has the unknown unit \"min\": use ns, us, ms, s, m, h or d, for example 1h30m"),
            ("1h30", "\"1h30\" has no unit: write for example 1h30us, 1h30ms or 1h30s"),
            (
                "30m1h",
                "\"30m1h\" is not a duration: write a positive number and a unit, for example 30s, 1.5ms or 125us",
            ),
            ("-5ms", "\"-5ms\" is not a duration: write a positive number and a unit, for example 30s, 1.5ms or 125us"),
            (
                "1.2.3s",
                "\"1.2.3s\" is not a duration: write a positive number and a unit, for example 30s, 1.5ms or 125us",
            ),
            (".5s", "\".5s\" is not a duration: write a positive number and a unit, for example 30s, 1.5ms or 125us"),
            ("1e3s", "\"1e3s\" has the unknown unit \"e\": use ns, us, ms, s, m, h or d, for example 1ms"),
            ("0.5ns", "\"0.5ns\" is finer than 1 ns: use whole nanoseconds, for example 1333.333us"),
            (
                "9223372036854775808ns",
                "\"9223372036854775808ns\" is too long: a duration can be at most 106751d (292 years)",
            ),
            (
                "99999999999999999999d",
                "\"99999999999999999999d\" is too long: a duration can be at most 106751d (292 years)",
            ),
        ] {
            assert_eq!(parse_ns(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn formats_times_with_three_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (7, "7 ns"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (41_321, "41.3 us"),
            (41_000, "41 us"),
            (41_001, "41.0 us"),
            (2_740_000, "2.74 ms"),
            (999_499, "999 us"),
            (999_960, "1.00 ms"),
            (9_996, "10.0 us"),
            (1_030_000_000, "1.03 s"),
            (-1_030_400_000, "-1.03 s"),
            (-500, "-500 ns"),
            (1_234_567_890_123, "1235 s"),
            (i64::MIN, "-9223372037 s"),
        ] {
            assert_eq!(format_ns(ns), text, "{ns}");
        }
    }

    #[test]
    fn formats_long_durations_with_two_units() {
        for (seconds, text) in [
            (30, "30 s"),
            (60, "1 min"),
            (200, "3 min 20 s"),
            (3_600, "1 h"),
            (3_900, "1 h 05 min"),
            (86_340, "23 h 59 min"),
            (187_200, "2 d 04 h"),
            (94_672_800, "3 years"),
        ] {
            assert_eq!(format_duration(seconds * SECOND_NS), text);
        }
        assert_eq!(format_duration(12_500_000), "12.5 ms");
        assert_eq!(format_duration(59_999_999_999), "1 min");
        assert_eq!(format_duration(86_399_999_999_999), "1 d");
        assert_eq!(format_duration(u64::MAX), "584.5 years");
    }

    #[test]
    fn formats_exact_durations_briefly() {
        for (ns, text) in
            [(0, "0s"), (7, "7ns"), (125_000, "125us"), (1_333_333, "1333.333us"), (180_000_000_000, "3m")]
        {
            assert_eq!(format_exact(ns), text);
        }
    }

    proptest! {
        #[test]
        fn whole_nanoseconds_round_trip(ns in 0..=i64::MAX as u64) {
            prop_assert_eq!(parse_ns(&format!("{ns}ns")), Ok(ns));
            prop_assert_eq!(parse_ns(&format!("{}.{:09}s", ns / SECOND_NS, ns % SECOND_NS)), Ok(ns));
            prop_assert_eq!(parse_ns(&format!("{}s{}ns", ns / SECOND_NS, ns % SECOND_NS)), Ok(ns));
        }

        #[test]
        fn exact_durations_round_trip(ns in prop_oneof![0..=i64::MAX as u64, 0..100_000_000u64]) {
            prop_assert_eq!(parse_ns(&format_exact(ns)), Ok(ns));
        }

        #[test]
        fn formatted_times_read_back_within_three_digits(exponent in 0u32..40, mantissa in any::<u64>()) {
            let ns = mantissa >> (24 + exponent % 40);
            let read = parse_ns(&format_unsigned_ns(ns)).unwrap();
            prop_assert!(read.abs_diff(ns) as f64 <= ns as f64 * 0.005 + 0.5, "{ns} read back as {read}");
        }

        #[test]
        fn exactly_three_digits_round_trip(digits in 0u64..1000, power in 0u32..10) {
            let ns = digits * 10u64.pow(power);
            prop_assert_eq!(parse_ns(&format_unsigned_ns(ns)), Ok(ns));
        }

        #[test]
        fn numbers_stay_below_a_thousand_up_to_a_second(ns in -999_499_999_999i64..=999_499_999_999) {
            let text = format_ns(ns);
            let (number, _) = text.split_once(' ').unwrap();
            prop_assert!(number.parse::<f64>().unwrap().abs() < 1000.0, "{text}");
        }

        #[test]
        fn accepts_any_text_without_panic(text in "[0-9.]{0,25}[ a-zµ-]{0,4}") {
            let _ = parse_ns(&text);
        }
    }
}
