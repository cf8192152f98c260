//! A judge at another machine, which reads its results.

use std::sync::Arc;

use crate::{session::Switch, settings::Level};

/// A judge whose results another machine reads. Somebody who is connected to that machine relays the switch.
#[derive(Debug, Clone)]
pub struct RemoteJudge {
    level: Level,
    switch: Arc<Switch>,
}

impl RemoteJudge {
    /// A judge that has not begun. `level` is the active level of both lines.
    #[must_use]
    pub fn new(level: Level) -> Self {
        Self { level, switch: Arc::default() }
    }

    /// The active level of both lines.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// The switch, which this machine sets to begin and to end.
    #[must_use]
    pub fn switch(&self) -> Arc<Switch> {
        Arc::clone(&self.switch)
    }

    /// Notes that the judge asks no more questions.
    pub fn set_over(&self) {
        self.switch.set_over();
    }
}

/// Two are equal if they are the same judge.
impl PartialEq for RemoteJudge {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.switch, &other.switch)
    }
}

impl Eq for RemoteJudge {}
