//! A talker on another machine: when it has ended, and how many frames it has sent.

use std::sync::{Arc, OnceLock};

use record::ClockTie;

/// A talker on another machine. Whoever hears from it [says](Self::has_ended) when it has ended; until then its listener
/// listens.
#[derive(Debug, Clone)]
pub struct Elsewhere {
    /// What ties its clock to ours.
    pub tie: ClockTie,
    ended: Arc<OnceLock<Option<u64>>>,
}

impl Elsewhere {
    /// One that has not ended.
    #[must_use]
    pub fn new(tie: ClockTie) -> Self {
        Self { tie, ended: Arc::default() }
    }

    /// It has ended, after so many frames; `None` where that is not known. What was said first counts.
    pub fn end(&self, sent: Option<u64>) {
        let _ = self.ended.set(sent);
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// How many frames it has sent, once it has ended and that is known.
    #[must_use]
    pub fn sent(&self) -> Option<u64> {
        self.ended.get().copied().flatten()
    }
}

/// Two are equal when they are the same talker.
impl PartialEq for Elsewhere {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ended, &other.ended)
    }
}

impl Eq for Elsewhere {}
