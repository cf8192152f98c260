//! Names of idle states, because the trace contains only their numbers.

use std::collections::HashMap;

use machine::Root;
use record::{Cause, CauseKind};

use crate::explain::{Explanation, IDLE_STATE_PREFIX};

/// The names of a machine's idle states. Each is read once.
#[derive(Debug, Clone)]
pub(crate) struct IdleStates {
    root: Root,
    /// By CPU and number, as text; `None` if the state has no name.
    names: HashMap<(u32, String), Option<String>>,
}

impl IdleStates {
    pub fn of(root: &Root) -> Self {
        Self { root: root.clone(), names: HashMap::new() }
    }

    /// Replaces the numbers of idle states by their names. A state without a name keeps its number.
    pub fn name(&mut self, cpu: u32, explanation: &mut Explanation) {
        let shares = explanation.culprits.iter_mut().map(|culprit| &mut culprit.cause);
        for cause in shares.chain(explanation.timeline.iter_mut().map(|stretch| &mut stretch.cause)) {
            self.name_in(cpu, cause);
        }
    }

    fn name_in(&mut self, cpu: u32, cause: &mut Cause) {
        if cause.kind == CauseKind::IdleExit {
            if let Some(name) = self.name_of(cpu, &cause.name) {
                name.clone_into(&mut cause.name);
            }
        } else if let Some(name) =
            cause.detail.strip_prefix(IDLE_STATE_PREFIX).and_then(|state| self.name_of(cpu, state))
        {
            cause.detail = format!("{IDLE_STATE_PREFIX}{name}");
        }
    }

    fn name_of(&mut self, cpu: u32, state: &str) -> Option<&str> {
        let Self { root, names } = self;
        let name = names.entry((cpu, state.to_owned())).or_insert_with(|| {
            let number: u32 = state.parse().ok()?;
            let name = root.read(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}/name"))?;
            (!name.is_empty()).then_some(name)
        });
        name.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use record::{Culprit, Stretch};

    use super::*;

    #[test]
    fn replaces_numbers_by_names_and_reads_them_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for (cpu, state, name) in [(0, 0, "POLL"), (0, 2, "C6"), (1, 2, "C7s")] {
            let part = root.path(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}"));
            std::fs::create_dir_all(&part).unwrap();
            std::fs::write(part.join("name"), format!("{name}\n")).unwrap();
        }
        let mut states = IdleStates::of(&root);
        let mut title = |cpu, state: &str| {
            let cause = Cause::new(CauseKind::IdleExit, state);
            let mut explanation = Explanation { culprits: vec![Culprit { cause, ns: 1 }], ..Explanation::default() };
            states.name(cpu, &mut explanation);
            explanation.culprits[0].cause.title()
        };
        assert_eq!(title(0, "2"), "return from idle state C6");
        assert_eq!(title(1, "2"), "return from idle state C7s");
        assert_eq!(title(0, "0"), "return from idle state POLL");
        assert_eq!(title(0, "5"), "return from idle state 5", "this state has no name");
        assert_eq!(title(0, ""), "return from idle", "no event has the state");
        drop(folder);
        assert_eq!(title(0, "2"), "return from idle state C6", "read before");
    }

    #[test]
    fn replaces_numbers_in_the_time_line() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let part = root.path("sys/devices/system/cpu/cpu3/cpuidle/state1");
        std::fs::create_dir_all(&part).unwrap();
        std::fs::write(part.join("name"), "C1E\n").unwrap();
        let of = |detail: &str| Cause { detail: detail.to_owned(), ..Cause::new(CauseKind::Thread, "swapper/3") };
        let stretch = |detail: &str| Stretch { cause: of(detail), ..Stretch::default() };
        let timeline = vec![stretch("idle state 1"), stretch("idle state 4"), stretch("ran 2 times"), stretch("")];
        let mut explanation = Explanation { timeline, ..Explanation::default() };
        IdleStates::of(&root).name(3, &mut explanation);
        let details: Vec<_> = explanation.timeline.iter().map(|stretch| stretch.cause.detail.as_str()).collect();
        assert_eq!(details, ["idle state C1E", "idle state 4", "ran 2 times", ""]);
    }
}
