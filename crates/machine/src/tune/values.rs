//! Values that the user gives to settings.

use super::WhyNot;

pub(super) fn needs_a_value(values: &str) -> WhyNot {
    WhyNot::Value(format!("it needs a value: {values}"))
}

pub(super) fn switch(value: Option<&str>, default: bool) -> Result<bool, WhyNot> {
    match value {
        None => Ok(default),
        Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(WhyNot::Value(format!("`{other}` is not on or off"))),
    }
}

pub(super) fn word(value: Option<&str>, default: &str, words: &[&str]) -> Result<String, WhyNot> {
    let value = value.unwrap_or(default);
    match words.contains(&value) {
        true => Ok(value.to_owned()),
        false => Err(WhyNot::Value(format!("`{value}` is not one of {}", words.join(", ")))),
    }
}

pub(super) fn only_word(value: Option<&str>, word: &str) -> Result<(), WhyNot> {
    self::word(value, word, &[word]).map(|_| ())
}

pub(super) fn number(
    value: Option<&str>,
    default: i64,
    range: std::ops::RangeInclusive<i64>,
) -> Result<String, WhyNot> {
    let Some(text) = value else { return Ok(default.to_string()) };
    match text.parse::<i64>() {
        Ok(number) if range.contains(&number) => Ok(number.to_string()),
        _ => Err(WhyNot::Value(format!("must be {} to {} (got {text})", range.start(), range.end()))),
    }
}
