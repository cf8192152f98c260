//! A talker on another machine: its end, and the numbers of frames that it sent.

use std::sync::{Arc, OnceLock};

use record::ClockTie;

/// A talker on another machine. Its listener receives until somebody who is connected to it calls [`end`](Self::end).
#[derive(Debug, Clone)]
pub struct RemoteTalker {
    /// Common source of its clock and ours.
    pub tie: ClockTie,
    ended: Arc<OnceLock<Vec<(u64, u64)>>>,
}

impl RemoteTalker {
    /// Creates a talker that has not ended.
    #[must_use]
    pub fn new(tie: ClockTie) -> Self {
        Self { tie, ended: Arc::default() }
    }

    /// Marks it as ended. `sent` contains the id and the number of frames of each of its streams; it is empty if they are
    /// unknown. Only the first call counts.
    pub fn end(&self, sent: Vec<(u64, u64)>) {
        let _ = self.ended.set(sent);
    }

    /// True if it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Id and number of sent frames of each stream; empty before the end, and if they are unknown.
    #[must_use]
    pub fn sent(&self) -> &[(u64, u64)] {
        self.ended.get().map_or(&[], Vec::as_slice)
    }
}

/// Two are equal if they are the same talker.
impl PartialEq for RemoteTalker {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ended, &other.ended)
    }
}

impl Eq for RemoteTalker {}
