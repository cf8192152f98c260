//! Resolves CPU words to the CPUs of a machine.

use std::collections::BTreeSet;

use machine::{CpuError, CpuList, Isolation, Root, usable_cpus};

use sys::sched::Policy;

use crate::{
    file::{CpuWord, CpuWords, Mistake, PlacedOn, Placement, Position},
    probe::{self, Probe, best_cpu},
};

/// The CPUs of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus {
    /// The CPUs that are online and that this process may use; at least one.
    pub usable: CpuList,
    /// The CPUs that the kernel isolates.
    pub isolated: CpuList,
    /// The arguments of the kernel that isolate CPUs.
    pub isolation: Isolation,
}

impl Cpus {
    /// Reads the CPUs of the machine below `root`.
    ///
    /// # Errors
    /// The kernel does not report which CPUs are online.
    pub fn of(root: &Root) -> Result<Self, CpuError> {
        let isolated = machine::facts(root).cpus_isolated.and_then(|list| list.parse().ok());
        let usable = usable_cpus(root, None)?;
        Ok(Self { usable, isolated: isolated.unwrap_or_default(), isolation: Isolation::read(root) })
    }
}

/// The CPUs of a scenario that words such as `measured` and `unshielded` refer to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WordContext {
    /// All CPUs that the placement measures.
    pub measured: CpuList,
    /// CPUs that other work is moved off.
    pub shield: Option<CpuList>,
}

/// The CPUs of one scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CpuAssignment {
    /// The CPUs that words refer to.
    pub context: WordContext,
    /// The CPUs of the run: the measured CPUs, and that of a listener at the other end of a veth pair.
    pub cpus: CpuList,
    /// The CPUs that the threads take in turn; for a probe over the network the CPU of each thread.
    pub in_turn: Vec<u32>,
    /// True if the placement makes several scenarios, which are then named by their CPUs.
    pub one_of_many: bool,
}

impl CpuAssignment {
    /// The name of the placement in this scenario: `shielded`, `CPU 2`, `base 0, servo 1`.
    pub fn name(&self, placement: &Placement, several_placements: bool, probe: &Probe) -> String {
        if !self.one_of_many {
            return placement.name.clone();
        }
        let cpus = match (&placement.on, &self.in_turn[..]) {
            (PlacedOn::Pairs(_), pair) => {
                let placed = probe
                    .definition()
                    .placement()
                    .roles
                    .into_iter()
                    .zip(pair)
                    .map(|(role, cpu)| format!("{role} {cpu}"));
                placed.take(2).collect::<Vec<_>>().join(", ")
            }
            (_, [first, ..]) => CpuList::from_iter([*first]).in_words(),
            (_, []) => self.context.measured.in_words(),
        };
        if several_placements { format!("{}, {cpus}", placement.name) } else { cpus }
    }
}

/// Resolves words to CPUs, and collects mistakes and notes on fallbacks.
pub(super) struct Resolver<'a> {
    cpus: &'a Cpus,
    notes: BTreeSet<String>,
    mistakes: BTreeSet<Mistake>,
}

impl<'a> Resolver<'a> {
    pub fn new(cpus: &'a Cpus) -> Self {
        Self { cpus, notes: BTreeSet::new(), mistakes: BTreeSet::new() }
    }

    pub fn report(&mut self, position: Position, text: String) {
        self.mistakes.insert(Mistake { position, text });
    }

    /// The notes, and the mistakes in the order of lines.
    pub fn finish(self) -> (Vec<String>, Vec<Mistake>) {
        (self.notes.into_iter().collect(), self.mistakes.into_iter().collect())
    }

    /// Any CPU, in place of a wrong one: reading goes on, so that all mistakes are reported.
    fn any_cpu(&self) -> impl Iterator<Item = u32> + use<> {
        self.cpus.usable.first().into_iter()
    }

    /// The CPUs of each scenario that a placement makes for a probe; at least one.
    pub fn of(&mut self, placement: &Placement, probe: &Probe) -> Vec<CpuAssignment> {
        let nothing = WordContext::default();
        let set = |resolver: &mut Self, words| -> CpuList {
            let found = resolver.resolve(words, &nothing, &placement.name);
            found.unwrap_or_else(|| resolver.any_cpu().collect())
        };
        let rule = probe.definition().placement();
        let assignments: Vec<Vec<u32>> = match &placement.on {
            PlacedOn::Set(words) if rule.takes_best_cpu => {
                vec![best_cpu(&set(self, words), &self.cpus.isolated).into_iter().collect()]
            }
            PlacedOn::Set(words) => vec![set(self, words).iter().collect()],
            PlacedOn::Each(words) => set(self, words).iter().map(|cpu| vec![cpu]).collect(),
            PlacedOn::Pairs(words) => {
                let cpus: Vec<u32> = set(self, words).iter().collect();
                cpus.iter().flat_map(|&a| cpus.iter().map(move |&b| vec![a, b])).collect()
            }
            PlacedOn::ByThread(list) => {
                let one = |words: &CpuWords| self.one(words, &placement.name).or_else(|| self.any_cpu().next());
                vec![list.iter().filter_map(one).collect()]
            }
        };
        let one_of_many = matches!(placement.on, PlacedOn::Each(_) | PlacedOn::Pairs(_));
        let assignment = |named: Vec<u32>| {
            let measured: CpuList = named.iter().take(rule.measured).copied().collect();
            let context = WordContext { measured, shield: None };
            let words = placement.shield.as_ref();
            let shield = words.and_then(|words| self.shield(words, &context, &placement.name));
            let in_turn = probe.clone().definition_mut().place(named, &self.machine(placement.policy));
            let cpus = in_turn.iter().take(rule.measured).copied().collect();
            CpuAssignment { context: WordContext { shield, ..context }, cpus, in_turn, one_of_many }
        };
        assignments.into_iter().map(assignment).collect()
    }

    /// The CPUs of the machine and this policy, for the placement of a probe.
    pub fn machine(&self, policy: Option<Policy>) -> probe::PlacementContext<'a> {
        probe::PlacementContext { usable: &self.cpus.usable, isolated: &self.cpus.isolated, policy }
    }

    /// The one CPU of a thread.
    fn one(&mut self, words: &CpuWords, part: &str) -> Option<u32> {
        let cpus = self.resolve(words, &WordContext::default(), part)?;
        if cpus.len() > 1 {
            let text = format!("each thread needs one CPU (got {}): write last or a number", cpus.in_words());
            self.report(words.position, text);
        }
        cpus.first()
    }

    /// Resolves the shielded CPUs; `None` for no shield.
    fn shield(&mut self, words: &CpuWords, context: &WordContext, part: &str) -> Option<CpuList> {
        let usable = self.cpus.usable.clone();
        self.choose(words, part, |cpus, word| match cpus.find(word, context) {
            Ok(shield) if usable.difference(&shield).is_empty() => Err(format!(
                "shielding {} leaves no CPU for other work: shield fewer, or write `{word} or none`",
                shield.in_words()
            )),
            found => found,
        })
        .filter(|shield| !shield.is_empty())
    }

    /// Resolves words to CPUs; `None` if this machine has no such CPUs.
    pub fn resolve(&mut self, words: &CpuWords, context: &WordContext, part: &str) -> Option<CpuList> {
        self.choose(words, part, |cpus, word| cpus.find(word, context))
    }

    /// Takes the first word that this machine has CPUs for, with a note if it is a fallback. If there is none, reports
    /// the error of the first word.
    fn choose(
        &mut self,
        words: &CpuWords,
        part: &str,
        find: impl Fn(&Cpus, &CpuWord) -> Result<CpuList, String>,
    ) -> Option<CpuList> {
        let mut first_error = None;
        for word in &words.any {
            match (find(self.cpus, word), &first_error) {
                (Ok(found), None) => return Some(found),
                (Ok(found), Some(_)) => {
                    let preferred = &words.any[0];
                    self.notes.insert(format!(
                        "{part}: `{preferred}` is not possible on this machine, so `{word}` ({}) is used",
                        found.in_words()
                    ));
                    return Some(found);
                }
                (Err(error), _) => _ = first_error.get_or_insert(error),
            }
        }
        self.report(words.position, first_error.unwrap_or_default());
        None
    }

    /// Reports CPUs, given by number, that this process may not use.
    pub fn check(&mut self, position: Position, cpus: &CpuList) {
        if let Err(text) = self.cpus.find(&CpuWord::List(cpus.clone()), &WordContext::default()) {
            self.report(position, text);
        }
    }
}

impl Cpus {
    /// Resolves one word; the error says why there is no such CPU.
    fn find(&self, word: &CpuWord, context: &WordContext) -> Result<CpuList, String> {
        let Self { usable, isolated, isolation } = self;
        let measured = &context.measured;
        let (found, none): (CpuList, &str) = match word {
            CpuWord::None => return Ok(CpuList::new()),
            CpuWord::List(cpus) => {
                let (missing, there) = (cpus.difference(usable), usable.in_words());
                let text = format!(
                    "cannot use {}, because this process may only use {there}: name those, or a word such as last",
                    missing.in_words()
                );
                return if missing.is_empty() { Ok(cpus.clone()) } else { Err(text) };
            }
            CpuWord::All => (usable.clone(), "no CPU is usable here: widen the cpuset of this control group"),
            CpuWord::First(of) => return self.find(of, context).map(|cpus| cpus.first().into_iter().collect()),
            CpuWord::Last(of) => return self.find(of, context).map(|cpus| cpus.last().into_iter().collect()),
            CpuWord::Isolated => {
                let last = usable.last().unwrap_or(0);
                let text = format!(
                    "the kernel isolates no CPU here: boot with `{}`, or write `isolated or last`",
                    isolation.arguments(&CpuList::from_iter([last]))
                );
                return Some(usable.intersection(isolated)).filter(|found| !found.is_empty()).ok_or(text);
            }
            CpuWord::Ordinary => (usable.difference(isolated), "all CPUs are isolated: write `ordinary or first`"),
            CpuWord::Measured => (measured.clone(), "no CPU is measured here: widen the cpuset of this control group"),
            CpuWord::Others => (
                usable.difference(measured),
                "all CPUs are measured, so no others are left: measure fewer, or write `others or all`",
            ),
            CpuWord::Unshielded => {
                let outside =
                    context.shield.as_ref().map_or_else(|| usable.clone(), |shield| usable.difference(shield));
                (outside, "all CPUs are shielded: shield fewer")
            }
        };
        if found.is_empty() { Err(none.to_owned()) } else { Ok(found) }
    }
}
