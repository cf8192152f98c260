//! The values that a file of a setting may have before the change. Any other value stops the setting: it could not be
//! restored, or the file means something else than the table assumes.

use super::{Context, WhyNot, writes::absent_file};
use crate::{CpuList, Unreadable};

/// The longest value of a file, bytes.
const VALUE_LENGTH: usize = 256;

/// The old values that a setting accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OldValue {
    /// A number in this range.
    Number(i64, i64),
    /// A number in this range, or this word.
    NumberOr(i64, i64, &'static str),
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of the words of the kernel's list, in brackets: `always [madvise] never`.
    Bracketed,
    /// One of the words in the file of this name in the same folder, if there is one; else any word.
    Offered(&'static str),
    /// As `Offered`, or a number up to 255.
    OfferedOrByte(&'static str),
    /// A list of CPUs: `0-3`.
    Cpus,
    /// A mask of CPUs: `ff,ffffffff`.
    Mask,
    /// The setting writes no file, or files that its own code checks.
    NoFile,
}

impl OldValue {
    /// Reads the value of a file in words of its own: the one in force of a list.
    pub(super) fn read(self, context: &Context<'_>, path: &str) -> Result<String, WhyNot> {
        let here = |reason: String| Err(WhyNot::Here(reason));
        let text = match context.root.try_read(path) {
            Ok(text) => text,
            Err(Unreadable::Absent) => return Err(absent_file(context, path)),
            Err(why) => return here(format!("/{path}: {why}")),
        };
        if text.len() > VALUE_LENGTH || text.contains(char::is_control) {
            return here(format!("/{path} does not contain one value in one line"));
        }
        let offered = |name: &str| {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            context.root.read(&format!("{folder}/{name}"))
        };
        if self.accepts(&text, &offered) {
            return Ok(crate::journal::present(&text).to_owned());
        }
        let is = if text.is_empty() { "empty".to_owned() } else { format!("`{text}`") };
        here(format!("/{path} is {is}, but should be {}: it is left as it is", self.in_words()))
    }

    fn accepts(self, text: &str, offered: &dyn Fn(&str) -> Option<String>) -> bool {
        let is_number = |least, most| text.parse::<i64>().is_ok_and(|number| (least..=most).contains(&number));
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_offered = |name: &str| match offered(name) {
            Some(words) => words.split_whitespace().any(|word| word == text),
            None => !text.is_empty() && text.chars().all(is_word),
        };
        match self {
            Self::Number(least, most) => is_number(least, most),
            Self::NumberOr(least, most, word) => text == word || is_number(least, most),
            Self::Word(words) => words.contains(&text),
            Self::Bracketed => {
                let in_force = crate::journal::present(text);
                in_force != text && !in_force.is_empty() && in_force.chars().all(is_word)
            }
            Self::Offered(name) => is_offered(name),
            Self::OfferedOrByte(name) => is_offered(name) || is_number(0, 255),
            // An interrupt without a CPU has an empty list.
            Self::Cpus => text.parse::<CpuList>().is_ok(),
            // The kernel writes groups of at most eight digits.
            Self::Mask => {
                let has_groups = text.split(',').all(|group| group.len() <= 8);
                has_groups && CpuList::from_mask(text).is_some_and(|cpus| !cpus.is_empty())
            }
            Self::NoFile => false,
        }
    }

    fn in_words(self) -> String {
        match self {
            Self::Number(least, i64::MAX) => format!("a number from {least}"),
            Self::Number(least, most) => format!("a number from {least} to {most}"),
            Self::NumberOr(least, most, word) => format!("a number from {least} to {most}, or {word}"),
            Self::Word(words) => words.join(" or "),
            Self::Bracketed => "a list with the value in force in brackets".to_owned(),
            Self::Offered(name) => format!("one of the words in {name}"),
            Self::OfferedOrByte(name) => format!("one of the words in {name}, or a number up to 255"),
            Self::Cpus => "a list of CPUs".to_owned(),
            Self::Mask => "a mask of CPUs".to_owned(),
            Self::NoFile => "left alone".to_owned(),
        }
    }
}
