//! Selects the threads to report, and their periods.

use std::{collections::HashSet, convert::Infallible, fmt, str::FromStr};

use super::{clocks::ClockOffsets, freezes::Freezes, quota::Quota};
use crate::Comm;

/// Selects threads by name or id: `audio`, `worker*`, `4711`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

/// The threads to report, and their periods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The threads; empty for all.
    pub threads: Vec<Pattern>,
    /// Periods, ns, with the threads that have them; `None` for all threads without another entry.
    pub periods: Vec<(Option<Pattern>, u64)>,
}

/// Settings that are the same for all threads.
#[derive(Debug, Clone)]
pub(super) struct RunConfig {
    /// Start of the run, ns on CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// A wake-up latency above this is a spike, ns.
    pub threshold_ns: u64,
    pub selection: Selection,
    /// True if the events show what a thread waits for. Else every sleep ends a cycle.
    pub knows_calls: bool,
    /// CPU time of a page fault without a wait, ns; 0 if it is unknown.
    pub fault_ns: u64,
    pub quota: Quota,
    pub freezes: Freezes,
    pub clocks: ClockOffsets,
    /// Ids of the threads of punctual.
    pub own_threads: HashSet<u32>,
}

impl RunConfig {
    pub fn new(start_ns: u64, threshold_ns: u64, selection: Selection) -> Self {
        Self {
            start_ns,
            threshold_ns,
            selection,
            knows_calls: false,
            fault_ns: 0,
            quota: Quota::default(),
            freezes: Freezes::default(),
            clocks: ClockOffsets::default(),
            own_threads: HashSet::new(),
        }
    }

    /// True for a thread of punctual.
    pub fn is_own(&self, tid: u32) -> bool {
        self.own_threads.contains(&tid)
    }
}

impl FromStr for Pattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pattern {
    /// True if the pattern matches this thread. Compares only 15 bytes of a name, because the kernel stores no more.
    #[must_use]
    pub fn matches(&self, tid: u32, comm: Comm) -> bool {
        match self.0.strip_suffix('*') {
            Some(start) => comm.0.starts_with(start.as_bytes()),
            None => Comm::new(&self.0) == comm || self.0.parse() == Ok(tid),
        }
    }
}

impl Selection {
    /// True if the thread is selected.
    #[must_use]
    pub fn selects(&self, tid: u32, comm: Comm) -> bool {
        self.threads.is_empty() || self.threads.iter().any(|pattern| pattern.matches(tid, comm))
    }

    /// True if the user named the thread, also by a prefix.
    pub(super) fn names(&self, tid: u32, comm: Comm) -> bool {
        self.patterns().any(|pattern| pattern.matches(tid, comm))
    }

    /// The names and ids in the selection.
    pub(super) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.threads.iter().chain(self.periods.iter().filter_map(|(pattern, _)| pattern.as_ref()))
    }

    /// Period of a thread, ns; `None` if none was given.
    #[must_use]
    pub fn period_ns(&self, tid: u32, comm: Comm) -> Option<u64> {
        let named = self.periods.iter().find(|(pattern, _)| pattern.as_ref().is_some_and(|p| p.matches(tid, comm)));
        named.or_else(|| self.periods.iter().find(|(pattern, _)| pattern.is_none())).map(|&(_, period_ns)| period_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_pattern_is_a_name_a_prefix_or_an_id() {
        let matches = |text: &str, tid, comm: &str| pattern(text).matches(tid, Comm::new(comm));
        assert!(matches("audio", 7, "audio") && !matches("audio", 7, "audio2"));
        assert!(matches("audio*", 7, "audio2") && !matches("audio*", 7, "video"));
        assert!(matches("7", 7, "audio") && matches("7", 8, "7") && !matches("7", 77, "audio"));
        assert!(matches("a-name-longer-than-kept", 7, "a-name-longer-t"));
    }

    #[test]
    fn a_period_with_a_name_takes_precedence() {
        let selection = Selection {
            threads: vec![pattern("servo"), pattern("base")],
            periods: vec![(None, 5), (Some(pattern("servo")), 9)],
        };
        let of = |comm| (selection.selects(1, Comm::new(comm)), selection.period_ns(1, Comm::new(comm)));
        assert_eq!([of("servo"), of("base"), of("gui")], [(true, Some(9)), (true, Some(5)), (false, Some(5))]);
        assert_eq!(Selection::default().period_ns(1, Comm::new("base")), None);
        assert!(Selection::default().selects(1, Comm::new("base")));
    }
}
