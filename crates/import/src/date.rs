//! Dates as tools write them: of RFC 3339 and RFC 2822, of `asctime`, and of ISO 8601 without a time zone.

use jiff::{
    Timestamp,
    civil::DateTime,
    fmt::{rfc2822::DateTimeParser, strtime},
};

/// The format of `asctime` without the day of the week, which says nothing new and would have to agree.
const ASCTIME: &str = "%b %d %H:%M:%S %Y";

/// The time in UTC: `2026-11-21T03:00:01Z`; without `Z` if the date has no time zone. `None` if the text is no date with a
/// time of day.
pub fn in_order(text: &str) -> Option<String> {
    timestamp(text).map(|time| time.to_string()).or_else(|| Some(local(text)?.to_string()))
}

/// The time of a date with a time zone.
pub fn timestamp(text: &str) -> Option<Timestamp> {
    /// The day of the week says nothing new.
    const RFC_2822: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
    text.trim().parse().ok().or_else(|| RFC_2822.parse_timestamp(text.trim()).ok())
}

/// The time of a date without a time zone.
fn local(text: &str) -> Option<DateTime> {
    let text = text.trim();
    let iso = || text.parse().ok().filter(|_| text.contains(':'));
    let asctime = || strtime::parse(ASCTIME, text.split_once(' ')?.1.trim_start()).ok()?.to_datetime().ok();
    iso().or_else(asctime)
}

/// The time of so many seconds since 1970, in UTC.
pub fn of_epoch(seconds: f64) -> Option<String> {
    const MS: f64 = 1e3;
    let ms = (seconds * MS).round();
    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
    let ms = (ms.abs() < 9e15).then_some(ms as i64)?;
    Some(Timestamp::from_millisecond(ms).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_all_tools_are_in_order() {
        for (text, expected) in [
            ("Sat, 21 Nov 2026 03:00:01 +0000", Some("2026-11-21T03:00:01Z")),
            ("Sat, 21 Nov 2026 05:30:01 +0230", Some("2026-11-21T03:00:01Z")),
            ("Mon, 21 Nov 2026 03:00:01 +0000", Some("2026-11-21T03:00:01Z")),
            ("2026-11-21T03:00:01.5Z", Some("2026-11-21T03:00:01.5Z")),
            ("2026-11-21T04:00:01+01:00", Some("2026-11-21T03:00:01Z")),
            ("Wed Dec 22 10:55:45 2021", Some("2021-12-22T10:55:45")),
            ("Thu Dec  2 10:55:45 2021\n", Some("2021-12-02T10:55:45")),
            ("2026-06-05T12:00:00", Some("2026-06-05T12:00:00")),
            ("2021-12-22", None),
            ("Wed Feb 31 10:55:45 2021", None),
            ("yesterday 10:00", None),
            ("", None),
        ] {
            assert_eq!(in_order(text).as_deref(), expected, "{text:?}");
        }
        assert_eq!(of_epoch(1_441_812_279.474).as_deref(), Some("2015-09-09T15:24:39.474Z"));
        assert_eq!((of_epoch(f64::NAN), of_epoch(1e30)), (None, None));
    }
}
