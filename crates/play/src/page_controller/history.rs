//! The earlier presets of a state, for undo and redo.

use std::time::{Duration, Instant};

use amp::{Parameter, Preset};

/// Maximum number of steps.
const MAX_STEPS: usize = 100;
/// Changes of one parameter within this time of each other are one step, because a knob sends many values.
const ONE_STEP: Duration = Duration::from_secs(1);

/// A preset with its file name.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    pub preset: Preset,
    /// File of the preset that was last chosen or saved, which may be overwritten.
    pub name: Option<String>,
}

/// Earlier and undone presets.
#[derive(Debug, Clone, Default)]
pub struct History {
    undo: Vec<Named>,
    redo: Vec<Named>,
    /// The parameter that the last step has changed, and when it did so last.
    last: Option<(Parameter, Instant)>,
}

/// The direction of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Undo,
    Redo,
}

impl History {
    /// Adds a step before which the preset was `past`.
    pub fn record(&mut self, past: Named) {
        self.redo.clear();
        self.last = None;
        push(&mut self.undo, past);
    }

    /// Adds a change of a parameter before which the preset was `past`.
    pub fn record_value(&mut self, parameter: Parameter, past: Named) {
        let now = Instant::now();
        let continues = self.last.is_some_and(|(last, at)| last == parameter && now.duration_since(at) < ONE_STEP);
        if !continues {
            self.record(past);
        }
        self.last = Some((parameter, now));
    }

    /// Takes the preset to go to.
    pub fn take(&mut self, step: Step) -> Option<Named> {
        match step {
            Step::Undo => self.undo.pop(),
            Step::Redo => self.redo.pop(),
        }
    }

    /// Ends a step whose preset was taken, before which the preset was `left`.
    pub fn finish(&mut self, step: Step, left: Named) {
        self.last = None;
        match step {
            Step::Undo => push(&mut self.redo, left),
            Step::Redo => push(&mut self.undo, left),
        }
    }

    /// True if there is a step in this direction.
    pub fn has(&self, step: Step) -> bool {
        match step {
            Step::Undo => !self.undo.is_empty(),
            Step::Redo => !self.redo.is_empty(),
        }
    }
}

fn push(steps: &mut Vec<Named>, step: Named) {
    if steps.len() == MAX_STEPS {
        steps.remove(0);
    }
    steps.push(step);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Named {
        Named { preset: Preset::default(), name: Some(name.to_owned()) }
    }

    #[test]
    fn values_of_one_knob_are_one_step() {
        let mut history = History::default();
        history.record_value(Parameter::Bass, named("1"));
        history.record_value(Parameter::Bass, named("2"));
        history.record_value(Parameter::Treble, named("3"));
        history.record_value(Parameter::Bass, named("4"));
        history.record(named("5"));
        history.record_value(Parameter::Bass, named("6"));
        let mut taken = Vec::new();
        while let Some(named) = history.take(Step::Undo) {
            taken.push(named.name.unwrap());
        }
        assert_eq!(taken, ["6", "5", "4", "3", "1"]);
    }

    #[test]
    fn a_new_change_ends_redo_and_the_number_of_steps_is_limited() {
        let mut history = History::default();
        (0..MAX_STEPS + 5).for_each(|n| history.record(named(&n.to_string())));
        let past = history.take(Step::Undo).unwrap();
        assert_eq!(past, named(&(MAX_STEPS + 4).to_string()));
        history.finish(Step::Undo, named("now"));
        assert!(history.has(Step::Redo));
        assert_eq!(history.take(Step::Redo), Some(named("now")));
        history.finish(Step::Redo, past.clone());
        assert_eq!(history.take(Step::Undo), Some(past.clone()));
        history.finish(Step::Undo, past.clone());
        history.record(past);
        assert!(!history.has(Step::Redo));
        let mut count = 0;
        while history.take(Step::Undo).is_some() {
            count += 1;
        }
        assert_eq!(count, MAX_STEPS);
    }
}
