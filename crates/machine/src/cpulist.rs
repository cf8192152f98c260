//! A set of CPUs in the kernel's list syntax: `0,2-3,8-11`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The highest CPU number that is accepted in text; the largest kernels support 8192 CPUs.
pub const MAX_CPU: u32 = 8191;

/// A sorted set of CPU numbers.
///
/// Accepts `0,2-3`, and the steps `0-7:2` (every second CPU) and `0-7:1/4` (the first of every four). Written without
/// steps and with neighbours joined. The empty text is the empty set, as in `/sys/devices/system/cpu/isolated`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CpuList(BTreeSet<u32>);

/// Error: a text is not a CPU list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CpuListError {
    /// Not a number, a range or a stepped range.
    #[error("'{0}' is not a CPU list: write it like 0,2-3")]
    Syntax(String),
    /// A range whose end is before its start.
    #[error("the CPU range '{0}' ends before it starts: write the lower number first")]
    Backwards(String),
    /// A number above the limit of any kernel.
    #[error("'{0}' exceeds CPU {MAX_CPU}, the highest number that a kernel supports")]
    TooHigh(String),
}

impl CpuList {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The CPU numbers in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        self.0.iter().copied()
    }

    /// True if `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// The number of CPUs in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lowest CPU number.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// The highest CPU number.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        self.0.last().copied()
    }

    /// The CPUs that are in at least one of the sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    /// The CPUs that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    /// The CPUs that are in this set but not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    /// The CPUs of a mask as the kernel writes it: hexadecimal, in groups of eight digits; `None` if it is none.
    #[must_use]
    pub fn from_mask(mask: &str) -> Option<Self> {
        let mut cpus = Self::new();
        for (digit, lowest) in mask.chars().rev().filter(|&c| c != ',').zip((0..).step_by(4)) {
            let value = digit.to_digit(16)?;
            cpus.0.extend((0..4).filter(|bit| value >> bit & 1 == 1).map(|bit| lowest + bit));
        }
        Some(cpus)
    }

    /// The CPUs of a mask that contains at least one CPU, with the mask itself.
    pub(crate) fn from_kernel_mask(mask: &str) -> Option<(Self, String)> {
        Self::from_mask(mask).filter(|cpus| !cpus.is_empty()).map(|cpus| (cpus, mask.to_owned()))
    }

    /// The set for messages: `CPU 3`, `CPUs 0-2`, `no CPU`.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self.len() {
            0 => "no CPU".to_owned(),
            1 => format!("CPU {self}"),
            _ => format!("CPUs {self}"),
        }
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a CpuList {
    type Item = u32;
    type IntoIter = std::iter::Copied<std::collections::btree_set::Iter<'a, u32>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().copied()
    }
}

impl From<CpuList> for String {
    fn from(cpus: CpuList) -> Self {
        cpus.to_string()
    }
}

impl TryFrom<String> for CpuList {
    type Error = CpuListError;

    fn try_from(text: String) -> Result<Self, CpuListError> {
        text.parse()
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::new());
        }
        let mut cpus = BTreeSet::new();
        for part in text.split(',') {
            let syntax = || CpuListError::Syntax(text.to_owned());
            let (range, step) = part.split_once(':').map_or((part, None), |(range, step)| (range, Some(step)));
            let (low, high) = match range.split_once('-') {
                Some((low, high)) => (number(low).ok_or_else(syntax)?, number(high).ok_or_else(syntax)?),
                None if step.is_none() => number(range).map(|cpu| (cpu, cpu)).ok_or_else(syntax)?,
                None => return Err(syntax()),
            };
            if low > high {
                return Err(CpuListError::Backwards(part.to_owned()));
            }
            if high > u64::from(MAX_CPU) {
                return Err(CpuListError::TooHigh(part.to_owned()));
            }
            let (used, group) = step.map_or(Some((1, 1)), used_of_group).ok_or_else(syntax)?;
            cpus.extend(
                (low..=high).filter(|cpu| (cpu - low) % group < used).filter_map(|cpu| u32::try_from(cpu).ok()),
            );
        }
        Ok(Self(cpus))
    }
}

/// Parses digits only: `parse` would also accept a sign. A number of more than 64 bits becomes `u64::MAX`.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Parses a step: `2` is the first of every two, `1/4` the first of every four.
fn used_of_group(step: &str) -> Option<(u64, u64)> {
    let (used, group) = match step.split_once('/') {
        Some((used, group)) => (number(used)?, number(group)?),
        None => (1, number(step)?),
    };
    (used >= 1 && group >= used).then_some((used, group))
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut comma = "";
        while let Some(low) = cpus.next() {
            let mut high = low;
            while let Some(next) = cpus.next_if(|&next| next == high + 1) {
                high = next;
            }
            write!(f, "{comma}{low}")?;
            if high > low {
                write!(f, "-{high}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(text: &str) -> CpuList {
        text.parse().unwrap()
    }

    #[test]
    fn reads_the_syntax_of_the_kernel_and_taskset() {
        assert_eq!(list("0,2-3,8-11:2\n").iter().collect::<Vec<_>>(), [0, 2, 3, 8, 10]);
        assert_eq!(list("0-7:2/4").to_string(), "0-1,4-5");
        assert_eq!(list("3,1,2,2").to_string(), "1-3");
        assert_eq!(list("").to_string(), "");
        assert_eq!(list("0-8191").len(), 8192);
    }

    #[test]
    fn rejects_invalid_lists() {
        for text in ["a", "1,", ",", "1-", "-1", "+1", "1-2-3", "4:2", "0-3:0", "0-3:3/2", "0-3:", "1 2", "0x1"] {
            assert!(matches!(text.parse::<CpuList>(), Err(CpuListError::Syntax(_))), "{text}");
        }
        assert_eq!("3-1".parse::<CpuList>(), Err(CpuListError::Backwards("3-1".into())));
        for text in ["8192", "0-4294967295", "0-18446744073709551616"] {
            assert!(matches!(text.parse::<CpuList>(), Err(CpuListError::TooHigh(_))), "{text}");
        }
    }

    #[test]
    fn set_operations_and_description() {
        let (a, b) = (list("0-3"), list("2-5"));
        assert_eq!(a.union(&b), list("0-5"));
        assert_eq!(a.intersection(&b), list("2-3"));
        assert_eq!(a.difference(&b), list("0-1"));
        assert!(a.contains(3) && !a.contains(4));
        assert_eq!((a.first(), a.last()), (Some(0), Some(3)));
        assert_eq!([list("").in_words(), list("3").in_words(), a.in_words()], ["no CPU", "CPU 3", "CPUs 0-3"]);
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(cpus in proptest::collection::btree_set(0..=MAX_CPU, 0..64)) {
            let written = CpuList::from_iter(cpus.clone());
            let text = written.to_string();
            prop_assert_eq!(&list(&text), &written);
            prop_assert_eq!(written.iter().collect::<BTreeSet<_>>(), cpus);
        }

        #[test]
        fn writing_is_canonical(text in "([0-9]{1,2}(-[0-9]{1,2}(:[1-3])?)?,){0,6}[0-9]{1,2}") {
            if let Ok(read) = text.parse::<CpuList>() {
                prop_assert_eq!(list(&read.to_string()), read);
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,20}") {
            let _ = text.parse::<CpuList>();
        }
    }
}
